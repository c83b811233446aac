"""Data files: which format they have, and the samples in them."""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from owasvm.cli._errors import UsageError, one_line
from owasvm.cli._svmlight import SvmlightData, read_svmlight
from owasvm.cli._tables import TableData, read_csv, read_parquet, separator_of

FORMATS = ("csv", "parquet", "svmlight")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_SVMLIGHT_LINE = re.compile(r"[-+]?[\d.][^\s:]*(\s+(\d+|qid):\S+)+\s*(#.*)?$")
_SAMPLE_CHARACTERS = 1 << 20

#: For the epilog of commands that read data.
MANUAL = """\
data files:
  CSV       The first line names the columns. The separator is guessed (comma,
            semicolon, tab, bar or spaces) unless --separator is given. Errors
            count the rows from 1, the first below the names.
  Parquet   Any table of numbers.
  svmlight  Lines 'label index:value ...', as LIBSVM reads and writes them.
  The format follows from the name or, failing that, from the content; --format
  settles it. Text files may be compressed (.gz, .bz2, .xz). Features must be
  finite numbers: nothing missing, no text.
"""


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a data file."""

    format: str | None
    separator: str | None
    decimal: str
    has_header: bool


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a data file."""
    group = parser.add_argument_group("how to read the data")
    group.add_argument(
        "--format", choices=FORMATS, help="format of the data file (default: by name and content)"
    )
    group.add_argument(
        "--separator",
        metavar="CHARACTER",
        help="separator of a CSV file, one character or comma, semicolon, tab, bar, space "
        "(default: guessed)",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        default=".",
        help="decimal mark of a CSV file (default: .)",
    )
    group.add_argument(
        "--no-header",
        action="store_true",
        help="the CSV file has no line of names; its columns are called 1, 2, 3 ...",
    )


def reading_options(arguments: argparse.Namespace) -> ReadingOptions:
    """The options of :func:`add_reading_options`, checked."""
    return ReadingOptions(
        format=arguments.format,
        separator=None if arguments.separator is None else separator_of(arguments.separator),
        decimal=arguments.decimal,
        has_header=not arguments.no_header,
    )


def read_data(path: Path, options: ReadingOptions) -> TableData | SvmlightData:
    """Read a data file of any of the formats."""
    try:
        if not path.exists():
            raise UsageError(f"there is no file {path}")
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a data file")
        return _read(path, options)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text ({one_line(error.reason)}); convert it, or give --format"
        ) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise UsageError(f"cannot read {path}: {reason}") from error


def _read(path: Path, options: ReadingOptions) -> TableData | SvmlightData:
    chosen = options.format or _format_by_name(path)
    if chosen == "parquet" or (chosen is None and _starts_like_parquet(path)):
        return read_parquet(path)
    sample = _sample(path)
    if not sample.strip():
        raise UsageError(f"{path} is empty")
    if chosen == "svmlight" or (chosen is None and looks_like_svmlight(sample)):
        with _opened(path) as stream:
            return read_svmlight(path, stream)
    if chosen == "csv" and options.format is None and looks_like_svmlight(sample):
        raise UsageError(
            f"{path} looks like an svmlight file in spite of its name: --format svmlight"
        )
    return read_csv(path, sample, options.separator, options.decimal, options.has_header)


def looks_like_svmlight(sample: str) -> bool:
    """Whether the first line with content is 'label index:value ...'."""
    lines = (line.strip() for line in sample.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return _SVMLIGHT_LINE.match(first) is not None


def _format_by_name(path: Path) -> str | None:
    name = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    return _SUFFIXES.get(name.suffix.lower())


def _starts_like_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _opened(path: Path) -> IO[bytes]:
    """The bytes of a file, decompressed."""
    opener = _OPENERS.get(path.suffix.lower(), Path.open)
    return cast("IO[bytes]", opener(path, "rb"))


def _sample(path: Path) -> str:
    """The beginning of a text file, in whole lines."""
    with io.TextIOWrapper(_opened(path), encoding="utf-8-sig") as stream:
        text = stream.read(_SAMPLE_CHARACTERS)
    return text if len(text) < _SAMPLE_CHARACTERS else text.rpartition("\n")[0] or text
