"""``owasvm report``: the tables and figures of a run, as a page and as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "write the report of a run"

_DESCRIPTION = """\
Write the report of a run: the paper's tables with ours beside the printed values, what differs,
statistical tests and figures.

The page index.html contains everything and needs no network. The tables are also written as
Markdown, LaTeX (booktabs) and CSV, into the folder tables beside it. A report can be written at
any time, also while the run goes on; two reports of the same results are equal.
"""
_EPILOG = """\
examples:
  owasvm report runs/paper
  owasvm report runs/paper --output docs/results
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="folder of a run, made by owasvm reproduce"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="folder for the report (default: RUN/report), made if need be",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from owasvm.cli._errors import UsageError
    from owasvm.cli._packages import REPORT_PACKAGES, check_packages
    from owasvm.experiments.report import RunError, write_report

    check_packages("report", *REPORT_PACKAGES, extra="experiments")
    try:
        page = write_report(arguments.run, arguments.output)
    except RunError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"cannot write the report: {error}") from error
    sys.stdout.write(f"{page}\n")
    return 0
