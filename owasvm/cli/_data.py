"""Data files: which format they have, and the samples in them."""

from __future__ import annotations

import argparse
import codecs
import io
import lzma
import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from owasvm.cli._errors import UsageError, one_line
from owasvm.cli._sources import MAX_DATA_BYTES, OPENERS, Source, in_words, name_of, size, source_of
from owasvm.cli._svmlight import SvmlightData, read_svmlight
from owasvm.cli._tables import TableData, read_csv, read_parquet, separator_of
from owasvm.persistence import ModelFileError, read_metadata

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
_SVMLIGHT_LINE = re.compile(r"[-+]?[\d.][^\s:]*(\s+(\d+|qid):\S+)+\s*(#.*)?$")
_WORKBOOKS = {".xls", ".xlsx", ".xlsm", ".ods"}
# A mark at the beginning, as some programs write it, is skipped.
_DEFAULT_ENCODING = "utf-8-sig"
_SAMPLE_CHARACTERS = 1 << 20
_LONGEST_FIRST_LINE = 1 << 26

#: For the epilog of commands that read data.
MANUAL = f"""\
data files:
  CSV       The first line names the columns. The separator is guessed (comma,
            semicolon, tab, bar or spaces) unless --separator is given. Blanks
            around names and values are no part of them. Messages count the
            rows from 1, the first below the names.
  Parquet   Any table of numbers and text.
  svmlight  Lines 'label index:value ...', as LIBSVM reads and writes them.
  The format follows from the name or, failing that, from the content; --format
  settles it. Text files may be compressed (.gz, .bz2, .xz). Text is UTF-8
  unless --encoding says otherwise. A pipe is read to its end. No more than
  {in_words(MAX_DATA_BYTES)} are read, unpacked, unless --max-size allows it.
"""


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a data file."""

    format: str | None
    encoding: str
    separator: str | None
    decimal: str
    has_header: bool
    max_bytes: int


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a data file."""
    group = parser.add_argument_group("how to read the data")
    group.add_argument(
        "--format", choices=FORMATS, help="format of the data file (default: by name and content)"
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        type=_encoding,
        default=_DEFAULT_ENCODING,
        help="how the characters of a CSV file are written, such as latin-1, cp1252 or utf-16 "
        "(default: UTF-8)",
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
    group.add_argument(
        "--max-size",
        type=size,
        metavar="SIZE",
        default=MAX_DATA_BYTES,
        help="most bytes to read, unpacked, such as 500M or 20G "
        f"(default: {in_words(MAX_DATA_BYTES)})",
    )


def reading_options(arguments: argparse.Namespace) -> ReadingOptions:
    """The options of :func:`add_reading_options`, checked."""
    return ReadingOptions(
        format=arguments.format,
        encoding=arguments.encoding,
        separator=None if arguments.separator is None else separator_of(arguments.separator),
        decimal=arguments.decimal,
        has_header=not arguments.no_header,
        max_bytes=arguments.max_size,
    )


def read_data(
    path: Path, options: ReadingOptions, texts: Collection[str] = ()
) -> TableData | SvmlightData:
    """Read a data file of any of the formats.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadingOptions
        How to read it.
    texts : collection of str
        Columns to take as text even where they look like numbers.

    Returns
    -------
    data : TableData or SvmlightData
    """
    try:
        return _read(source_of(path, options.max_bytes), options, texts)
    except UnicodeError as error:
        encoding = options.encoding.upper().removesuffix("-SIG")
        raise UsageError(
            f"{name_of(path)} is not {encoding} text; say how it is written: --encoding latin-1 "
            "reads files of Western Europe"
        ) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise UsageError(f"cannot read {name_of(path)}: {reason}") from error


def _read(
    source: Source, options: ReadingOptions, texts: Collection[str]
) -> TableData | SvmlightData:
    name = source.name
    chosen = options.format or _format_by_name(source.path)
    start = _first_bytes(source)
    if chosen == "parquet" or (chosen is None and start.startswith(b"PAR1")):
        return read_parquet(source, texts)
    _refuse_foreign(source, start, options.encoding)
    sample = _sample(source, options.encoding)
    if not sample.strip():
        raise UsageError(f"{name} is empty")
    if "\0" in sample:
        raise UsageError(f"{name} is no text: it holds bytes of value 0")
    _refuse_json(source.path, sample)
    if chosen == "svmlight" or (chosen is None and looks_like_svmlight(sample)):
        return read_svmlight(source)
    if chosen == "csv" and options.format is None and looks_like_svmlight(sample):
        raise UsageError(
            f"{name} looks like an svmlight file in spite of its name: --format svmlight"
        )
    return read_csv(
        source,
        sample,
        separator=options.separator,
        decimal=options.decimal,
        has_header=options.has_header,
        encoding=options.encoding,
        texts=texts,
    )


def _refuse_foreign(source: Source, start: bytes, encoding: str) -> None:
    """Refuse files of other programs, and say what makes a table of them."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == _DEFAULT_ENCODING:
        raise UsageError(f"{source.name} is UTF-16 text: --encoding utf-16")
    if start.startswith(b"\xd0\xcf\x11\xe0") or source.path.suffix.lower() in _WORKBOOKS:
        raise UsageError(
            f"{source.name} is a workbook; save its sheet as CSV in the spreadsheet program"
        )
    if start.startswith(b"PK\x03\x04"):
        if _is_model(source):
            raise UsageError(
                f"{source.name} is a model file of owasvm, not data: CSV, Parquet or svmlight"
            )
        raise UsageError(f"{source.name} is a zip archive; unpack it first")


def _is_model(source: Source) -> bool:
    """Whether a zip archive is what 'owasvm fit' writes."""
    if source.piped is not None:
        return False
    try:
        read_metadata(source.path)
    except ModelFileError:
        return False
    return True


def _refuse_json(path: Path, sample: str) -> None:
    """Refuse JSON with a line that makes a table of it."""
    text = sample.lstrip()
    if not re.match(r'\{\s*"|\[\s*[\[{]', text):
        return
    first = text.partition("\n")[0].strip()
    is_lines = first.startswith("{") and first.endswith("}") and text.count("\n{") > 0
    reading = f"read_json({str(path)!r}{', lines=True' if is_lines else ''})"
    is_named = path.is_file() and name_of(path) == str(path)
    table = str(path.with_suffix(".csv")) if is_named else "table.csv"
    raise UsageError(
        f"{name_of(path)} holds JSON, not a table; make one of it: python -c "
        f'"import pandas; pandas.{reading}.to_csv({table!r}, index=False)"'
    )


def looks_like_svmlight(sample: str) -> bool:
    """Whether the first line with content is 'label index:value ...'."""
    lines = (line.strip() for line in sample.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return _SVMLIGHT_LINE.match(first) is not None


def _format_by_name(path: Path) -> str | None:
    name = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return _SUFFIXES.get(name.suffix.lower())


def _first_bytes(source: Source) -> bytes:
    with source.raw() as stream:
        return stream.read(4)


def _encoding(text: str) -> str:
    """The name of an encoding, out of an option."""
    try:
        name = codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(
            f"must be an encoding such as utf-8, latin-1, cp1252 or utf-16, got {text!r}"
        ) from None
    return _DEFAULT_ENCODING if name == "utf-8" else name


def _sample(source: Source, encoding: str) -> str:
    """The beginning of a text file, in whole lines, at least one that is not blank."""
    with io.TextIOWrapper(source.unpack(), encoding=encoding) as stream:
        text = stream.read(_SAMPLE_CHARACTERS).lstrip("\r\n")
        while "\n" not in text.strip("\n") and (more := stream.read(_SAMPLE_CHARACTERS)):
            text = (text + more).lstrip("\r\n")
            if len(text) > _LONGEST_FIRST_LINE:
                raise UsageError(
                    f"the first line of {source.name} has more than {_LONGEST_FIRST_LINE} "
                    "characters; is it a table?"
                )
        is_whole = not stream.read(1)
    return text if is_whole else text.rpartition("\n")[0]
