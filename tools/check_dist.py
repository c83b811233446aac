"""Build wheel and source distribution, and try them as a stranger would.

    python tools/check_dist.py

Built into ``dist/``. Checked: the metadata by twine; that the wheel holds every file of the
package and the source distribution the tests; that these can be imported; and, in clean virtual
environments, that the wheel installs and prints what the README says, with the oldest versions of
the dependencies that it allows and with the newest. Interpreters that are not there are skipped,
and so are old versions without wheels for an interpreter.

The interpreter that runs this script needs pip, and for the import of the tests what they import.
The exit status is 1 if a check fails.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"

# What a source distribution needs beside the package.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tests", "tools")

# Code, and what it prints.
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
MINIMUM = re.compile(r"^([\w-]+)>=([\d.]+)$")


class Failure(Exception):
    """A check that failed, and why."""


class Skip(Exception):
    """A check that is not possible here, and why."""


class Environment(NamedTuple):
    """An interpreter, and whether the dependencies are the oldest that are allowed."""

    interpreter: str
    oldest: bool

    @property
    def name(self) -> str:
        """For the list of checks."""
        return f"{self.interpreter}, {'oldest' if self.oldest else 'newest'} dependencies"


ENVIRONMENTS = (
    Environment("python3.10", oldest=True),
    Environment("python3.11", oldest=True),
    Environment("python3.13", oldest=False),
)


def run(*command: object, folder: Path = ROOT, **variables: str) -> str:
    """What a command writes to its output; a Failure, with its messages, if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Failure(f"{' '.join(str(part) for part in command)}\n{tail}")
    return done.stdout


def make_environment(folder: Path, interpreter: str | None = None) -> Path:
    """A clean virtual environment; its interpreter."""
    if interpreter is None:
        venv.create(folder, with_pip=True)
    else:
        run(interpreter, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def build(tools: Path) -> tuple[Path, Path]:
    """Build both; the wheel out of the source distribution."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    return wheel, source


def check_metadata(tools: Path, *files: Path) -> str:
    """What an index shows of them is in order."""
    run(tools, "-m", "twine", "check", "--strict", *files)
    return "ok"


def check_wheel(wheel: Path) -> str:
    """Every file of the package is in the wheel, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    skipped = ("__pycache__", ".nbi", ".nbc")
    present = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "owasvm").rglob("*")
        if path.is_file() and not any(part in path.as_posix() for part in skipped)
    }
    if packed != present:
        raise Failure(f"missing {sorted(present - packed)}, too many {sorted(packed - present)}")
    data = sum(not name.endswith(".py") for name in packed)
    return f"{len(packed)} files, {data} of them data, {wheel.stat().st_size / 1e6:.1f} MB"


def check_source(source: Path, folder: Path) -> str:
    """The source distribution has the tests, and they can be imported."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    missing = [name for name in SOURCES if not (unpacked / name).exists()]
    if missing:
        raise Failure(f"missing {missing}")
    collected = run(
        sys.executable,
        *("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"),
        folder=unpacked,
        PYTHONPATH=str(unpacked),
    )
    return f"{collected.strip().splitlines()[-1]}, {source.stat().st_size / 1e6:.1f} MB"


def oldest_dependencies(wheel: Path) -> list[str]:
    """Requirements that pin every dependency of the wheel to the oldest version."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    needed = [one for one in metadata.get_all("Requires-Dist", []) if ";" not in one]
    found = [MINIMUM.match(one) for one in needed]
    return [f"{one[1]}=={one[2]}" for one in found if one is not None]


def check_installed(environment: Environment, wheel: Path, folder: Path) -> str:
    """The wheel installs, and the examples of the README print what they should."""
    if not works(environment.interpreter):
        raise Skip(f"no {environment.interpreter}")
    python = make_environment(folder / "venv", environment.interpreter)
    pins = oldest_dependencies(wheel) if environment.oldest else []
    try:
        run(python, "-m", "pip", "install", "--only-binary", ":all:", wheel, *pins)
    except Failure as failure:
        missing = re.search(r"No matching distribution found for (\S+)", str(failure))
        if environment.oldest and missing:
            raise Skip(f"no wheel of {missing[1]} for {environment.interpreter}") from failure
        raise
    run(python, "-m", "pip", "check", folder=folder)
    run(python.with_name("owasvm"), "--help", folder=folder)
    examples = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    if not examples:
        raise Failure("README.md has no example with its output")
    for code, expected in examples:
        printed = run(python, "-W", "error::DeprecationWarning:owasvm", "-c", code, folder=folder)
        if printed != expected:
            raise Failure(f"the README says\n{expected}and it prints\n{printed}")
    installed = run(python, "-m", "pip", "list", "--format", "freeze", folder=folder)
    names = ("numpy", "scipy", "scikit-learn", "numba")
    versions = [line for line in installed.split() if line.partition("==")[0] in names]
    return " ".join(versions)


def works(interpreter: str) -> bool:
    """Whether an interpreter is there; version managers leave names without one."""
    if shutil.which(interpreter) is None:
        return False
    return subprocess.run([interpreter, "--version"], capture_output=True).returncode == 0


def main() -> int:
    """Run all checks; one line for each."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tools = make_environment(work / "tools")
        run(tools, "-m", "pip", "install", "build", "twine")
        wheel, source = build(tools)
        checks: dict[str, Callable[[], str]] = {
            "twine": lambda: check_metadata(tools, wheel, source),
            "wheel": lambda: check_wheel(wheel),
            "sdist": lambda: check_source(source, work / "source"),
        }
        for number, environment in enumerate(ENVIRONMENTS):
            folder = work / str(number)
            folder.mkdir()
            checks[environment.name] = partial(check_installed, environment, wheel, folder)
        return int(not all([report(name, check) for name, check in checks.items()]))


def report(name: str, check: Callable[[], str]) -> bool:
    """Run a check and say how it went; False if it failed."""
    passed = True
    try:
        text = check()
    except Skip as skip:
        text = f"skipped: {skip}"
    except Failure as failure:
        text = f"FAILED: {failure}"
        passed = False
    sys.stdout.write(f"{name}: {text}\n")
    sys.stdout.flush()
    return passed


if __name__ == "__main__":
    sys.exit(main())
