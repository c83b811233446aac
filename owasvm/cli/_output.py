"""Tables that a command writes: CSV or Parquet, to a file or to standard output."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, check_output
from owasvm.cli._packages import is_parquet
from owasvm.extras import require
from owasvm.files import replace_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Programs that go by the name of a file would not read the CSV in it.
_OTHER_FORMATS = {".xlsx", ".xls", ".ods", ".json"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def add_output_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options that say where a table goes."""
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        type=lambda name: "-" if name == "/dev/stdout" else name,
        help=f"where {what} go, '-' for standard output (default)",
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put an apostrophe before labels that a spreadsheet would run as formulas: "
        "text that starts with = + - @ or a tab (CSV only)",
    )


def check_output_options(arguments: argparse.Namespace, *inputs: Path) -> None:
    """Refuse an output that cannot be written, before any work is done for it."""
    if arguments.escape_formulas and is_parquet(arguments.output):
        raise UsageError("--escape-formulas is for CSV; cells of Parquet files hold no formulas")
    if Path(arguments.output).suffix.lower() in _OTHER_FORMATS:
        raise UsageError(
            f"--output {arguments.output}: tables are written as CSV or Parquet; end the name in "
            ".csv or .parquet"
        )
    if arguments.output != "-":
        check_output(Path(arguments.output), *inputs)


def escape_formulas(labels: NDArray[Any]) -> list[Any]:
    """Labels that a spreadsheet shows as they are; numbers need no protection."""
    return [
        f"'{label}" if isinstance(label, str) and label.startswith(_FORMULA_STARTS) else label
        for label in labels.tolist()
    ]


def write_table(columns: dict[str, Any], output: str, what: str) -> None:
    """Write a table in one piece."""
    pandas = require("pandas", f"Writing {what}", "cli")
    frame = pandas.DataFrame(columns)
    if output == "-":
        sys.stdout.write(frame.to_csv(index=False, lineterminator="\n"))
        return
    buffer = io.BytesIO()
    if is_parquet(output):
        require("pyarrow", "Writing Parquet files", "cli")
        frame.to_parquet(buffer, index=False, engine="pyarrow")
    else:
        buffer.write(frame.to_csv(index=False, lineterminator="\n").encode())
    with replace_file(output) as stream:
        stream.write(buffer.getbuffer())
