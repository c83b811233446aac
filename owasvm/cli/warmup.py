"""``owasvm warmup``: compile ahead what the first fits would compile."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import owasvm

HELP = "compile the inner loops now, so that no fit has to"

_DESCRIPTION = """\
Compile the inner loops of all solvers now, so that no fit has to: once per
installation, and again after an update of owasvm, numba or Python.

numba keeps compiled functions beside the package, or in the folder named by
the environment variable NUMBA_CACHE_DIR. In an image of a container run this
command when the image is built.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = _DESCRIPTION


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001
    """Compile, one line per kind of fits, and say where the result is."""
    from owasvm.warmup import count_steps, find_cache, warm_up

    total = 0.0
    for number, step in enumerate(warm_up(), start=1):
        total += step.compiling
        outcome = f"compiled in {step.compiling:.1f} s" if step.compiling else "ready"
        sys.stdout.write(f"{number:2d}/{count_steps()}  {step.name}: {outcome}\n")
        sys.stdout.flush()
    folder = find_cache()
    if folder is None:
        sys.stdout.write("Nothing could be kept on disk; set NUMBA_CACHE_DIR.\n")
        return 0
    done = f"Compiled for {total:.1f} s" if total else "All was compiled before"
    sys.stdout.write(f"{done}; the compiled functions are in folders below {_above(folder)}\n")
    return 0


def _above(folder: str) -> Path:
    """The folder above those that numba keeps compiled functions in, one for each package."""
    package = Path(owasvm.__file__).parent
    return package if package in Path(folder).parents else Path(folder).parent
