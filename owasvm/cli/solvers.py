"""``owasvm solvers``: the solvers behind the paper's models."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from owasvm.cli._errors import note

HELP = "list the solvers behind the paper's models"

_DESCRIPTION = """\
List the solvers behind the paper's models: what each solves, and which version
is installed.

'owasvm fit --solver' uses them for the models assignment, ogryczak-tamir,
assignment-dual and miqp. The default solver needs none of them.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = _DESCRIPTION


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001
    """Write the table of back-ends."""
    from owasvm.models import available

    header = ("back-end", "kind", "installed", "solves")
    lines = [header] + [
        (row.name, row.kind, row.version or ("yes" if row.installed else "no"), row.capabilities)
        for row in available()
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        start = "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=False))
        sys.stdout.write(f"{start}  {line[3]}\n")
    if find_spec("cvxpy") is None:
        note("they work through cvxpy, which is not installed: pip install 'owasvm[models]'")
    return 0
