"""The pages keep their word: code prints what they say, commands exist, links lead somewhere."""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from owasvm import losses, samples, solvers, weights
from owasvm.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    if path.exists()
]
# Source distributions have no docs.
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]

# Packages of an extra that the code of a page needs.
NEEDS = {
    "docs/inspection.md": ["matplotlib"],
    "docs/large-data.md": ["dask"],
    "docs/watching.md": ["matplotlib"],
    "docs/onnx.md": ["skl2onnx", "onnxruntime"],
    "docs/paper-models.md": ["cvxpy", "pyscipopt"],
    "docs/using-models.md": ["skops"],
}

# Code and commands of this page need each other: test_cli_page.py runs both.
JOB = "docs/command-line.md"

# Code, and what it prints where the page shows it.
CODE = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^(`{3,}|:{3,}).*?^\1", re.DOTALL | re.MULTILINE)
# A block that starts so is a module of its own, which later blocks import.
MODULE = re.compile(r'"""(\w+\.py)"""')
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#{1,6} +(.*)", re.MULTILINE)
EXTRAS = re.compile(r"(?:owasvm|\.)\[([\w,]+)\]")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def have(pattern: re.Pattern[str]) -> list[str]:
    return [page for page in NAMES if pattern.search(read(page))]


@pytest.fixture
def registries_as_before() -> Iterator[None]:
    families, known_losses = dict(weights.REGISTRY), dict(losses.LOSSES)
    known_solvers, kinds = dict(solvers.REGISTRY), list(samples.KINDS)
    yield
    for registry, before in (
        (weights.REGISTRY, families),
        (losses.LOSSES, known_losses),
        (solvers.REGISTRY, known_solvers),
    ):
        for name in set(registry) - set(before):
            del registry[name]
    samples.KINDS[:] = kinds


# Shows weights so steep that w = 0 is the best, and says that the warning is left out.
CONSTANT = "docs/weights.md"
IGNORED = pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")


@pytest.mark.usefixtures("registries_as_before")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[IGNORED] if page == CONSTANT else [])
        for page in have(CODE)
        if page != JOB
    ],
)
def test_code_prints_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in NEEDS.get(page, []):
        pytest.importorskip(package, reason=f"the code of {page} needs {package}")
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    modules = []
    for code, expected in CODE.findall(read(page)):
        if 'device="cuda"' in code:
            continue
        if module := MODULE.match(code):
            (tmp_path / module[1]).write_text(code, encoding="utf-8")
            modules.append(Path(module[1]).stem)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if expected:
            assert printed.getvalue() == expected, code
    for name in modules:
        sys.modules.pop(name, None)


def commands(page: str) -> Iterator[list[str]]:
    for block in SHELL.findall(read(page)):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words


@pytest.mark.parametrize("page", have(SHELL))
def test_commands_exist(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in commands(page):
        if words[0] == "owasvm" and not words[1].startswith("-"):
            # Known to the parser, options included; what they do is tested elsewhere.
            command = import_module(f"owasvm.cli.{words[1]}")
            monkeypatch.setattr(command, "run", lambda _: 0)
            stop = next((i for i, word in enumerate(words) if word in "|&&<>>"), len(words))
            assert main(words[1:stop]) == 0
        elif words[0] == "make":
            rules = (ROOT / "Makefile").read_text(encoding="utf-8")
            for target in words[1:]:
                assert "=" in target or re.search(rf"^{target}:", rules, re.MULTILINE), target
        elif words[0] in ("python", ".venv/bin/python") and not words[1].startswith("-"):
            assert (ROOT / words[1]).exists(), words


@pytest.mark.parametrize("page", have(EXTRAS))
def test_extras_exist(page: str) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ",".join(EXTRAS.findall(read(page))).split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def anchor(heading: str) -> str:
    """The anchor that GitHub and MyST give to a heading."""
    text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@pytest.mark.parametrize("page", NAMES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    folder = (ROOT / page).parent
    for target, fragment in LINK.findall(FENCED.sub("", read(page))):
        if target.startswith(("auto_examples/", "generated/")):
            continue  # made by the build, which warns of its own
        path = folder / target if target else ROOT / page
        assert path.exists(), target
        if fragment and path.suffix == ".md":
            headings = HEADING.findall(FENCED.sub("", path.read_text(encoding="utf-8")))
            assert fragment in map(anchor, headings), f"{target}#{fragment}"
