"""The page about the command line prints what it says: its code and its commands run."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from owasvm.cli import _progress, main

pytest.importorskip("pandas")
pytest.importorskip("skops")
pytest.importorskip("matplotlib")
pytest.importorskip("skl2onnx")

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
# Code or a command, and what it prints.
BLOCK = re.compile(r"```(python|sh)\n(.*?)```\n(?:```text\n(.*?)```)?", re.DOTALL)


def comparable(text: str) -> str:
    """Without times, and without digits that are beyond the gap."""
    names = "time|gap|objective|lower bound"
    return re.sub(rf"^({names}) .*$", r"\1", text, flags=re.MULTILINE)


def test_page(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("source distributions have no docs")
    monkeypatch.chdir(tmp_path)
    # A slow machine would speak where the page is silent.
    monkeypatch.setattr(_progress, "_SILENCE", float("inf"))
    names: dict[str, Any] = {}
    commands = 0
    for kind, code, expected in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            if kind == "python":
                exec(code, names)
            elif expected:
                commands += 1
                assert main(shlex.split(code.replace("\\\n", " "))[1:]) == 0, code
        if expected:
            assert comparable(printed.getvalue()) == comparable(expected), code
    assert commands == 4
    assert (tmp_path / "birds.png").stat().st_size > 10_000
