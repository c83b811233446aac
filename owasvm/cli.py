"""The ``owasvm`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

__all__ = ["main"]


def _solvers() -> int:
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
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="owasvm",
        description="Support vector machines with an ordered weighted average of deviations.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "solvers",
        help="list the solvers behind the paper's models",
        description="List the solvers behind the paper's models: what each solves, and which "
        "version is installed.",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        Arguments, those of the process by default.

    Returns
    -------
    status : int
        0 on success; bad usage ends the process with 2 and one line on standard error.
    """
    arguments = _parser().parse_args(argv)
    commands = {"solvers": _solvers}
    return commands[arguments.command]()


if __name__ == "__main__":
    raise SystemExit(main())
