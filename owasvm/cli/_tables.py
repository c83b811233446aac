"""Tables with named columns: CSV and Parquet files."""

from __future__ import annotations

import csv
import io
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, counted, listing, one_line, what_there_is
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
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
# 2026-01-31, 31.1.2026, 1/31/26, each with a time if need be.
_LIKE_A_DATE = re.compile(
    r"\s*(\d{4}([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])"
    r"|(0?[1-9]|[12]\d|3[01])([-/.])(0?[1-9]|[12]\d|3[01])\6(\d{4}|\d{2}))"
    r"([T ]\s*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[-+]\d{2}:?\d{2})?)?\s*"
)
# Numbers of other countries, amounts, shares: no categories.
_LIKE_A_NUMBER = r"\s*[-+$€£]?\s*\d[\d.,' ]*\s*[%$€£]?\s*"


@dataclass(frozen=True)
class TableData:
    """The content of a table.

    Parameters
    ----------
    name : str
        What messages call the file.
    frame : pandas.DataFrame
        The columns, names are text.
    has_separator : bool, default=True
        Whether a separator tells the columns apart, which may be the wrong one.
    decimal : str, default="."
        Decimal mark of numbers that are there as text.
    is_for_training : bool, default=True
        Whether a model is to be made of it; else one is applied to it, with the features it has.
    """

    name: str
    frame: Any
    has_separator: bool = True
    decimal: str = "."
    is_for_training: bool = True

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    @property
    def hint_of_separator(self) -> str:
        """What helps where there is but one column."""
        return " (if the columns were not told apart, give --separator)" * self.has_separator

    def check_columns(self, names: Sequence[str], option: str) -> None:
        """Refuse an option that names columns which are not there."""
        for name in names:
            if name not in self.columns:
                raise UsageError(
                    f"{self.name} has no column {name!r} ({option}); "
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
        return as_labels(self.frame[column].to_numpy(), f"column {column!r} of {self.name}")

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
                f"--rank-groups {column!r} has another value in every row of {self.name}, so that "
                "no rows are ranked together; name a column whose values repeat"
            )
        return names

    def _check_complete(self, column: str, remedy: str) -> None:
        """Refuse a column with empty cells."""
        missing = self.frame[column].isna().to_numpy()
        if missing.any():
            n_more = int(missing.sum()) - 1
            more = f", as {'is' if n_more == 1 else 'are'} {n_more} more" if n_more else ""
            raise UsageError(f"{self.name}: {_cell(column, missing)} is empty{more}; {remedy}")

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
                f"{self.name}: column {name!r} holds no plain values; {self._how_to_drop(name)}"
            )
        given = zip(values.isna(), values, strict=True)
        return np.array(["" if missing else _as_text(value) for missing, value in given], object)

    def numbers(self, name: str, *, may_miss: bool = False) -> NDArray[np.float64]:
        """A column as finite numbers, NaN where nothing is there if that is allowed."""
        import numpy as np

        series = self.frame[name]
        values = _as_numbers(series, self.decimal)
        if values is None:
            raise UsageError(
                f"{self.name}: column {name!r} holds {series.dtype}, not numbers; "
                f"{self._how_to_drop(name)}"
            )
        # Not a number compares as false.
        bad = ~(np.abs(values) <= LARGEST_NUMBER)
        if may_miss and bad.any():
            bad &= ~_is_missing(series)
        if bad.any():
            row = int(np.argmax(bad))
            fault = _fault(series.iloc[row], values[row], self.decimal)
            remedy = self._remedy(fault, name, fills=may_miss)
            raise UsageError(f"{self.name}: {_cell(name, bad)} {fault.words}; {remedy}")
        return values

    def _how_to_drop(self, name: str) -> str:
        """How to do without a column."""
        option = f"--drop {shlex.quote(name)}"
        if self.is_for_training:
            return f"leave the column out: {option}"
        return f"train the model without the column: 'owasvm fit {option}'"

    def _remedy(self, fault: _Fault, name: str, *, fills: bool) -> str:
        """What helps against a bad cell of a column of numbers."""
        if fault.kind == "decimal comma":
            return "if the comma is a decimal mark, add --decimal ,"
        if self.is_for_training:
            ways = [*_ways_to_train(fault, name), self._how_to_drop(name)]
        else:
            ways = _ways_to_apply(fault, name, fills=fills) or [self._how_to_drop(name)]
        *others, last = ways
        return f"{', '.join(others)}, or {last}" if others else last


def _ways_to_train(fault: _Fault, name: str) -> list[str]:
    """What helps against a bad cell of training data, beside leaving the column out."""
    return {
        "too large": ["if it stands for a missing value, empty the cell"],
        "structure": [],
        "empty": ["fill it in", "have it filled in with --missing impute"],
        "mark": ["have it filled in with --missing impute"],
        "infinite": ["correct it"],
        "date": ["turn dates into numbers beforehand, such as days since the first"],
        "word": [
            "correct it",
            f"take the column as categories: --categorical {shlex.quote(name)}",
        ],
    }[fault.kind]


def _ways_to_apply(fault: _Fault, name: str, *, fills: bool) -> list[str]:
    """What helps against a bad cell of data for a model, none if only other features do."""
    if fault.kind == "structure":
        return []
    if fault.kind in {"empty", "mark"}:
        return [
            "put a number there",
            "train the model so that it fills gaps: 'owasvm fit --missing impute'",
        ]
    ways = ["correct it", *(["empty the cell, which the model fills in"] if fills else [])]
    if fault.kind == "word":
        option = f"--categorical {shlex.quote(name)}"
        ways.append(f"train the model on categories: 'owasvm fit {option}'")
    return ways


def _cell(column: str, is_bad: NDArray[np.bool_]) -> str:
    """The first bad cell of a column, in words."""
    return f"column {column!r}, row {int(is_bad.argmax()) + 1}"


def _as_text(value: Any) -> str:
    """A category; whole numbers look alike, whether a gap made decimal numbers of them or not."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_numbers(series: Any, decimal: str) -> NDArray[np.float64] | None:
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
        texts = series.astype(object)
        if decimal != ".":
            # A word among the numbers makes text of all of them.
            texts = texts.map(
                lambda cell: cell.replace(decimal, ".") if isinstance(cell, str) else cell
            )
        numbers = pd.to_numeric(texts, errors="coerce")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    return None


def _is_missing(series: Any) -> NDArray[np.bool_]:
    """Which cells are empty or hold a word for that."""
    import numpy as np

    marks = [isinstance(value, str) and value.strip().lower() in MISSING_MARKS for value in series]
    return np.asarray(series.isna()) | np.array(marks)


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a cell of a column of numbers, in a word and in words for an error."""

    kind: str
    words: str


def _fault(raw: Any, number: float, decimal: str) -> _Fault:
    """What is wrong with a cell."""
    import numpy as np
    import pandas as pd

    if np.isfinite(number):
        return _Fault("too large", f"is {number}, {TOO_LARGE}")
    if not pd.api.types.is_scalar(raw):
        return _Fault("structure", f"holds a {type(raw).__name__}, not a number")
    if pd.isna(raw):
        return _Fault("empty", "is empty")
    if not isinstance(raw, str):
        return _Fault("infinite", f"is {number}, not a finite number")
    shown = repr(raw if len(raw) <= _LONGEST_VALUE else f"{raw[:_LONGEST_VALUE]}...")
    if np.isinf(number):
        return _Fault("infinite", f"is {shown}, not a finite number")
    kind = "word"
    if raw.strip().lower() in MISSING_MARKS:
        kind = "mark"
    elif decimal != "," and _DECIMAL_COMMA.fullmatch(raw):
        kind = "decimal comma"
    elif are_dates([raw]):
        kind = "date"
    return _Fault(kind, f"is {shown}, not a number")


def are_dates(texts: Iterable[str]) -> bool:
    """Whether texts are dates, with or without a time: year first, or last."""
    return all(_LIKE_A_DATE.fullmatch(text) for text in texts)


def _hint_of_no_header(names: Sequence[str]) -> str:
    """What helps where the first line seems to hold data."""
    if 2 * sum(_is_number(name) for name in names) < len(names):
        return ""
    return (
        " (if the first line holds data instead of names, --no-header calls the columns 1, 2, 3 "
        "...)"
    )


def read_parquet(source: Source, texts: Collection[str]) -> TableData:
    """Read a Parquet file.

    Parameters
    ----------
    source : Source
        The file.
    texts : collection of str
        Columns to take as text even where they hold numbers.
    """
    pandas = require("pandas", "Reading Parquet files", "cli")
    arrow = require("pyarrow", "Reading Parquet files", "cli")
    try:
        with source.raw() as stream:
            _check_parquet(source, stream)
            stream.seek(0)
            frame = pandas.read_parquet(stream, engine="pyarrow")
            for name in set(texts) & set(frame.columns):
                frame[name] = _as_stored(stream, frame[name])
    except (arrow.ArrowException, ValueError) as error:
        raise UsageError(f"{source.name} is no Parquet file: {one_line(error)}") from error
    frame.columns = [str(name) for name in frame.columns]
    return _check_table(TableData(source.name, frame, has_separator=False))


def _as_stored(stream: IO[bytes], column: Any) -> Any:
    """A column of a Parquet file; a gap would make decimal numbers of whole ones."""
    parquet = require("pyarrow.parquet", "Reading Parquet files", "cli")
    if column.dtype.kind != "f":
        return column
    stream.seek(0)
    stored = parquet.read_table(stream, columns=[column.name], use_pandas_metadata=False)
    values = stored.column(column.name).to_pandas(integer_object_nulls=True)
    return values.set_axis(column.index)


def _check_parquet(source: Source, stream: IO[bytes]) -> None:
    """Refuse a table that is larger in memory than allowed, or names a column twice."""
    parquet = require("pyarrow.parquet", "Reading Parquet files", "cli")
    metadata = parquet.read_metadata(stream)
    # Runs of equal values take no room in the file.
    if 8 * metadata.num_rows * metadata.num_columns > source.max_bytes:
        raise source.too_large(
            f"{counted(metadata.num_rows, 'row')} and "
            f"{counted(metadata.num_columns, 'column')}, more than "
        )
    _check_unique(source.name, metadata.schema.to_arrow_schema().names)


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
    file = source.name
    pandas = require("pandas", "Reading CSV files", "cli")
    used = separator or guess_separator(sample, decimal) or ("," if decimal != "," else ";")
    if has_header:
        _check_header(file, sample, used)
    try:
        with source.unpack() as stream, warnings.catch_warnings():
            # Lines longer than the first would lose their end with no more than a warning.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            layout = {
                "sep": used,
                "header": 0 if has_header else None,
                "index_col": False,
                "skipinitialspace": True,
            }
            head = pandas.read_csv(io.StringIO(sample), nrows=0 if has_header else 1, **layout)
            # As messages and options call the columns, and as pandas does.
            names = _names(head.columns, has_header)
            by_name = dict(zip(names, head.columns, strict=True))
            frame = pandas.read_csv(
                stream,
                decimal=decimal,
                encoding=encoding,
                dtype={by_name[name]: str for name in texts if name in by_name},
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                **layout,
            )
    except pandas.errors.ParserWarning as error:
        raise UsageError(
            f"{file}: rows have more values than the first line has names (separator "
            f"{_SEPARATORS.get(used, used)})"
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise UsageError(_improper(file, one_line(error), used)) from error
    frame.columns = _names(frame.columns, has_header)
    if frame.shape[1] == 1:
        _check_single_column(file, sample, used, decimal)
    return _check_table(TableData(file, _strip_texts(frame), decimal=decimal))


def _names(columns: Iterable[Any], has_header: bool) -> list[str]:
    """Names of columns without the blanks around them, or their positions."""
    return [
        str(name).strip() if has_header else str(position)
        for position, name in enumerate(columns, start=1)
    ]


def _improper(file: str, reason: str, separator: str) -> str:
    """What is wrong with a CSV file, out of the words of pandas."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
    if found is None:
        return f"{file} is not a proper CSV file: {reason.rpartition('C error: ')[2]}"
    expected, line, seen = found.groups()
    return (
        f"{file}: line {line} has {seen} fields instead of {expected} (separator "
        f"{_SEPARATORS.get(separator, separator)}); put a text that holds the separator in quotes"
    )


def _strip_texts(frame: Any) -> Any:
    """A table whose texts have no blanks around them; blanks alone are an empty cell."""
    import pandas as pd

    texts = {}
    for name, dtype in frame.dtypes.items():
        column = frame[name]
        # Gaps make objects of truth values as well, which have nothing to strip.
        is_numeric = pd.api.types.is_numeric_dtype(dtype)
        if not is_numeric and pd.api.types.infer_dtype(column, skipna=True) == "string":
            stripped = column.str.strip()
            texts[name] = stripped.mask(stripped == "")
    return frame.assign(**texts)


def _check_table(table: TableData) -> TableData:
    """The table, if it has rows and its names are unique."""
    if table.frame.shape[1] == 0:
        raise UsageError(f"{table.name} has no columns")
    if len(table.frame) == 0:
        raise UsageError(f"{table.name} names columns, but has no rows")
    _check_unique(table.name, table.columns)
    return table


def _check_unique(file: str, names: Iterable[str]) -> None:
    """Refuse a name that is there twice; columns without a name are another matter."""
    names = list(names)
    repeated = [name for name, count in Counter(names).items() if name and count > 1]
    if repeated:
        raise UsageError(
            f"{file} has several columns called {listing(repeated)}; give each its own "
            f"name{_hint_of_no_header(names)}"
        )


def _check_header(file: str, sample: str, separator: str) -> None:
    """Refuse a first line without names, or with a name that is there twice."""
    first = next(line for line in sample.splitlines() if line.strip())
    names = [name.strip() for name in _fields([first], separator)[0]]
    if all(_is_number(name) for name in names):
        raise UsageError(
            f"the first line of {file} has numbers where the names of the columns should be; "
            "with --no-header the columns are called 1, 2, 3 ..."
        )
    _check_unique(file, names)


def _check_single_column(file: str, sample: str, used: str, decimal: str) -> None:
    """Refuse one column where another separator would find more."""
    guess = guess_separator(sample, decimal)
    if guess is not None and guess != used:
        name = _SEPARATORS[guess]
        raise UsageError(
            f"only one column found in {file} with the separator "
            f"{_SEPARATORS.get(used, used)!r}; its lines look separated by {name}: "
            f"--separator {name}"
        )


def guess_separator(sample: str, decimal: str = ".") -> str | None:
    """The separator that cuts all lines into the same number of fields, the more the better.

    Parameters
    ----------
    sample : str
        The first lines.
    decimal : str, default="."
        Decimal mark, which separates nothing.

    Returns
    -------
    separator : str or None
        None where nothing cuts the lines.
    """
    lines = [line for line in sample.splitlines() if line.strip()][:_LINES_TO_GUESS_FROM]
    if not lines:
        return None
    regular: dict[str, int] = {}
    ragged: dict[str, int] = {}
    for separator in _SEPARATORS:
        if separator == decimal:
            continue
        counts = [len(fields) for fields in _fields(lines, separator)]
        if counts[0] > 1:
            (regular if len(set(counts)) == 1 else ragged)[separator] = counts[0]
    # Spaces separate words of text as well: they count only if nothing else does.
    for found in (regular, ragged):
        marks = {separator: count for separator, count in found.items() if separator != r"\s+"}
        if any(_has_decimal_commas(_fields(lines, mark)) for mark in marks if mark != ","):
            marks.pop(",", None)
        if marks:
            # Of marks that cut alike the comma comes last: it may be within numbers.
            return max(marks, key=lambda mark: (marks[mark], mark != ","))
    return r"\s+" if r"\s+" in regular else None


def _has_decimal_commas(rows: Iterable[Sequence[str]]) -> bool:
    """Whether fields have commas, within numbers only."""
    with_comma = [field for row in rows for field in row if "," in field]
    return bool(with_comma) and all(_DECIMAL_COMMA.fullmatch(field) for field in with_comma)


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
