"""Tables with named columns: CSV and Parquet files."""

from __future__ import annotations

import csv
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, listing, one_line, what_there_is
from owasvm.cli._labels import as_labels
from owasvm.cli._numbers import LARGEST_NUMBER, MISSING_MARKS, TOO_LARGE
from owasvm.cli._sources import Source
from owasvm.extras import require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", r"\s+": "space"}
_LINES_TO_GUESS_FROM = 50
_LONGEST_VALUE = 40
# Numbers of other countries, amounts, shares: no categories.
_LIKE_A_NUMBER = r"\s*[-+$€£]?\s*\d[\d.,' ]*\s*[%$€£]?\s*"


@dataclass(frozen=True)
class TableData:
    """The content of a table.

    Parameters
    ----------
    path : Path
        The file.
    frame : pandas.DataFrame
        The columns, names are text.
    """

    path: Path
    frame: Any

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def check_columns(self, names: Sequence[str], option: str) -> None:
        """Refuse an option that names columns which are not there."""
        for name in names:
            if name not in self.columns:
                raise UsageError(
                    f"{self.path} has no column {name!r} ({option}); "
                    f"{what_there_is(name, self.columns)}{_hint_of_no_header(self.columns)}"
                )

    def names_in(self, given: Sequence[str], option: str) -> list[str]:
        """The columns that an option names, each by itself or several with commas between."""
        names = [
            name
            for text in given
            for name in ([text] if text in self.columns else text.split(","))
        ]
        self.check_columns(names, option)
        return names

    def labels(self, column: str) -> NDArray[Any]:
        """A column as class labels; nothing may be missing."""
        self._check_complete(column, "every row needs a label: fill it in, or leave the row out")
        return as_labels(self.frame[column].to_numpy(), f"column {column!r} of {self.path}")

    def groups(self, column: str) -> NDArray[Any]:
        """A column as names of groups; nothing may be missing, and some rows share a group."""
        import numpy as np

        self._check_complete(
            column,
            "every row needs a group (--rank-groups): fill it in, such as 'unknown', or leave the "
            "row out",
        )
        names = self.texts(column).astype(str)
        if np.unique(names).size == names.size:
            raise UsageError(
                f"--rank-groups {column!r} has another value in every row of {self.path}, so that "
                "no rows are ranked together; name a column whose values repeat"
            )
        return names

    def _check_complete(self, column: str, remedy: str) -> None:
        """Refuse a column with empty cells."""
        missing = self.frame[column].isna().to_numpy()
        if missing.any():
            n_more = int(missing.sum()) - 1
            more = f", as are {n_more} more" if n_more else ""
            raise UsageError(f"{self.path}: {_cell(column, missing)} is empty{more}; {remedy}")

    def is_text(self, name: str) -> bool:
        """Whether a column holds categories: text, and more of it than numbers."""
        import pandas as pd

        if pd.api.types.is_numeric_dtype(self.frame[name].dtype):
            return False
        series = self.frame[name].dropna().astype(object)
        if pd.api.types.infer_dtype(series, skipna=True) != "string":
            return False
        present = series[~series.str.strip().str.lower().isin(MISSING_MARKS)]
        looks_like_number = present.str.fullmatch(_LIKE_A_NUMBER)
        is_number = pd.to_numeric(present, errors="coerce").notna() | looks_like_number
        return bool(is_number.sum() < (~is_number).sum())

    def texts(self, name: str) -> NDArray[Any]:
        """A column as text, empty where nothing is there."""
        import numpy as np

        values = self.frame[name].astype(object)
        if any(isinstance(value, (list, dict, np.ndarray)) for value in values):
            raise UsageError(
                f"{self.path}: column {name!r} holds no plain values; leave it out: --drop {name}"
            )
        given = zip(values.isna(), values, strict=True)
        return np.array(["" if missing else _as_text(value) for missing, value in given], object)

    def numbers(self, name: str, *, may_miss: bool = False) -> NDArray[np.float64]:
        """A column as finite numbers, NaN where nothing is there if that is allowed."""
        import numpy as np

        series = self.frame[name]
        values = _as_numbers(series)
        if values is None:
            raise UsageError(
                f"{self.path}: column {name!r} holds {series.dtype}, not numbers; leave it out "
                f"with --drop {shlex.quote(name)}"
            )
        # Not a number compares as false.
        bad = ~(np.abs(values) <= LARGEST_NUMBER)
        if may_miss and bad.any():
            bad &= ~_is_missing(series)
        if bad.any():
            row = int(np.argmax(bad))
            raise UsageError(
                f"{self.path}: {_cell(name, bad)} "
                f"{_complaint(name, series.iloc[row], values[row])}"
            )
        return values


def _cell(column: str, is_bad: NDArray[np.bool_]) -> str:
    """The first bad cell of a column, in words."""
    return f"column {column!r}, row {int(is_bad.argmax()) + 1}"


def _as_text(value: Any) -> str:
    """A category; whole numbers look alike, whether a gap made decimal numbers of them or not."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_numbers(series: Any) -> NDArray[np.float64] | None:
    """A column as numbers, NaN where it holds none; None if its type has no numbers at all."""
    import numpy as np
    import pandas as pd

    types = pd.api.types
    if types.is_complex_dtype(series.dtype):
        return None
    if types.is_numeric_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if types.is_object_dtype(series.dtype) or types.is_string_dtype(series.dtype):
        numbers = pd.to_numeric(series.astype(object), errors="coerce")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    return None


def _is_missing(series: Any) -> NDArray[np.bool_]:
    """Which cells are empty or hold a word for that."""
    import numpy as np

    marks = [isinstance(value, str) and value.strip().lower() in MISSING_MARKS for value in series]
    return np.asarray(series.isna()) | np.array(marks)


def _complaint(name: str, raw: Any, number: float) -> str:
    """What is wrong with a cell, and what helps."""
    import numpy as np
    import pandas as pd

    drop = f"leave the column out: --drop {shlex.quote(name)}"
    if np.isfinite(number):
        remedy = "if it stands for a missing value, empty the cell"
        return f"is {number}, {TOO_LARGE}; {remedy}, or {drop}"
    if not pd.api.types.is_scalar(raw):
        return f"holds a {type(raw).__name__}, not a number; {drop}"
    if pd.isna(raw):
        return f"is empty; fill it in, have it filled in with --missing impute, or {drop}"
    shown = repr(raw if len(str(raw)) <= _LONGEST_VALUE else f"{str(raw)[:_LONGEST_VALUE]}...")
    if not isinstance(raw, str):
        return f"is {number}, not a finite number; correct it, or {drop}"
    if raw.strip().lower() in MISSING_MARKS:
        return f"is {shown}, not a number; have it filled in with --missing impute, or {drop}"
    if np.isinf(number):
        return f"is {shown}, not a finite number; correct it, or {drop}"
    if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", raw):
        return f"is {shown}, not a number; if the comma is a decimal mark, add --decimal ,"
    return (
        f"is {shown}, not a number; correct it, take the column as categories: "
        f"--categorical {shlex.quote(name)}, or {drop}"
    )


def _hint_of_no_header(names: Sequence[str]) -> str:
    """What helps where the first line seems to hold data."""
    if 2 * sum(_is_number(name) for name in names) < len(names):
        return ""
    return (
        " (if the first line holds data instead of names, --no-header calls the columns 1, 2, 3 "
        "...)"
    )


def read_parquet(source: Source) -> TableData:
    """Read a Parquet file."""
    pandas = require("pandas", "Reading Parquet files", "cli")
    arrow = require("pyarrow", "Reading Parquet files", "cli")
    try:
        with source.raw() as stream:
            _check_parquet(source, stream)
            stream.seek(0)
            frame = pandas.read_parquet(stream, engine="pyarrow")
    except (arrow.ArrowException, ValueError) as error:
        raise UsageError(f"{source.path} is no Parquet file: {one_line(error)}") from error
    frame.columns = [str(name) for name in frame.columns]
    return _check_table(source.path, frame)


def _check_parquet(source: Source, stream: IO[bytes]) -> None:
    """Refuse a table that is larger in memory than allowed, or names a column twice."""
    parquet = require("pyarrow.parquet", "Reading Parquet files", "cli")
    metadata = parquet.read_metadata(stream)
    # Runs of equal values take no room in the file.
    if 8 * metadata.num_rows * metadata.num_columns > source.max_bytes:
        raise source.too_large(
            f"{metadata.num_rows} rows and {metadata.num_columns} columns, more than "
        )
    _check_unique(source.path, metadata.schema.to_arrow_schema().names)


def read_csv(
    source: Source,
    sample: str,
    *,
    separator: str | None,
    decimal: str,
    has_header: bool,
    encoding: str,
    texts: Collection[str],
) -> TableData:
    """Read a CSV file.

    Parameters
    ----------
    source : Source
        The file, possibly compressed.
    sample : str
        Its first lines.
    separator : str or None
        Separator; None guesses it from the sample.
    decimal : str
        Decimal mark.
    has_header : bool
        Whether the first line names the columns.
    encoding : str
        How characters are written.
    texts : collection of str
        Columns to take as text even where they look like numbers.
    """
    path = source.path
    pandas = require("pandas", "Reading CSV files", "cli")
    used = separator or guess_separator(sample) or ","
    if has_header:
        _check_header(path, sample, used)
    try:
        with source.unpack() as stream, warnings.catch_warnings():
            # Lines longer than the first would lose their end with no more than a warning.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                stream,
                sep=used,
                decimal=decimal,
                header=0 if has_header else None,
                index_col=False,
                encoding=encoding,
                dtype=dict.fromkeys(_as_written(texts, has_header), str),
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                low_memory=False,
            )
    except pandas.errors.ParserWarning as error:
        raise UsageError(
            f"{path}: rows have more values than the first line has names (separator "
            f"{_SEPARATORS.get(used, used)})"
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise UsageError(f"{path} is not a proper CSV file: {one_line(error)}") from error
    frame.columns = [
        str(name) if has_header else str(position)
        for position, name in enumerate(frame.columns, start=1)
    ]
    if frame.shape[1] == 1:
        _check_single_column(path, sample, used)
    return _check_table(path, frame)


def _as_written(names: Iterable[str], has_header: bool) -> list[Any]:
    """Names of columns as pandas calls them, which counts from 0 where there are no names."""
    return [
        name if has_header else int(name) - 1 for name in names if has_header or name.isdecimal()
    ]


def _check_table(path: Path, frame: Any) -> TableData:
    """The table, if it has rows and its names are unique."""
    if frame.shape[1] == 0:
        raise UsageError(f"{path} has no columns")
    if len(frame) == 0:
        raise UsageError(f"{path} names columns, but has no rows")
    _check_unique(path, frame.columns)
    return TableData(path, frame)


def _check_unique(path: Path, names: Iterable[str]) -> None:
    """Refuse a name that is there twice; columns without a name are another matter."""
    names = list(names)
    repeated = [name for name, count in Counter(names).items() if name and count > 1]
    if repeated:
        raise UsageError(
            f"{path} has several columns called {listing(repeated)}; give each its own "
            f"name{_hint_of_no_header(names)}"
        )


def _check_header(path: Path, sample: str, separator: str) -> None:
    """Refuse a first line without names, or with a name that is there twice."""
    first = next(line for line in sample.splitlines() if line.strip())
    names = [name.strip() for name in _fields([first], separator)[0]]
    if all(_is_number(name) for name in names):
        raise UsageError(
            f"the first line of {path} has numbers where the names of the columns should be; "
            "with --no-header the columns are called 1, 2, 3 ..."
        )
    _check_unique(path, names)


def _check_single_column(path: Path, sample: str, used: str) -> None:
    """Refuse one column where another separator would find more."""
    guess = guess_separator(sample)
    if guess is not None and guess != used:
        name = _SEPARATORS[guess]
        raise UsageError(
            f"only one column found in {path} with the separator "
            f"{_SEPARATORS.get(used, used)!r}; its lines look separated by {name}: "
            f"--separator {name}"
        )


def guess_separator(sample: str) -> str | None:
    """The separator that cuts all lines into the same number of fields, the more the better."""
    lines = [line for line in sample.splitlines() if line.strip()][:_LINES_TO_GUESS_FROM]
    if not lines:
        return None
    regular: dict[str, int] = {}
    ragged: dict[str, int] = {}
    for separator in _SEPARATORS:
        counts = [len(fields) for fields in _fields(lines, separator)]
        if counts[0] > 1:
            (regular if len(set(counts)) == 1 else ragged)[separator] = counts[0]
    # Spaces separate words of text as well: they count only if nothing else does.
    for found in (regular, ragged):
        marks = {separator: count for separator, count in found.items() if separator != r"\s+"}
        if marks:
            return max(marks, key=marks.__getitem__)
    return r"\s+" if r"\s+" in regular else None


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    if separator == r"\s+":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return [line.split(separator) for line in lines]


def separator_of(text: str) -> str:
    """What an option ``--separator`` means."""
    names = {name: separator for separator, name in _SEPARATORS.items()}
    if text in names:
        return names[text]
    if text in {"\\t", " "}:
        return "\t" if text == "\\t" else r"\s+"
    if len(text) != 1 or text.isalnum() or text in "\"'.\n\r":
        raise UsageError(
            f"--separator {text!r} must be one character such as , ; | or one of the words "
            f"{', '.join(names)}"
        )
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
