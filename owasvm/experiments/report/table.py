"""A table that can be written as HTML, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from owasvm.experiments.report.symbols import ALPHA, DASH, MINUS, SIGMA, TIMES

__all__ = ["MARKS", "Cell", "Column", "Header", "Table", "plain", "to_csv"]

#: Marks of cells: sign and meaning.
MARKS: dict[str, tuple[str, str]] = {
    "differs": ("†", "differs from the printed value by more than allowed"),
    "outside": (
        "°",
        "this grid has no point that is known to reach the printed value, so nothing follows "
        "from the difference",
    ),
    "partial": ("*", "the grid is not complete"),
}

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Cell:
    """A value with what is to be said about it.

    Parameters
    ----------
    value : object
        Number, text or None where there is nothing.
    marks : tuple of str, default=()
        Keys of :data:`MARKS`.
    bold : bool, default=False
        Whether it is the best of its row.
    """

    value: Any
    marks: tuple[str, ...] = ()
    bold: bool = False


@dataclass(frozen=True)
class Column:
    """A column.

    Parameters
    ----------
    header : str
        Its header.
    kind : str, default="text"
        How values are written, see :func:`plain`.
    group : str, default=""
        Header over several neighbouring columns.
    """

    header: str
    kind: str = "text"
    group: str = ""

    @property
    def is_number(self) -> bool:
        """Whether values are aligned to the right."""
        return self.kind != "text"


@dataclass(frozen=True)
class Header:
    """A cell of the head.

    Parameters
    ----------
    text : str
        What it says.
    column : Column or None
        Its column; None for the header of a group.
    n_columns, n_rows : int, default=1
        What it spans.
    starts_group : bool, default=False
        Whether a line is drawn before it.
    """

    text: str
    column: Column | None
    n_columns: int = 1
    n_rows: int = 1
    starts_group: bool = False


@dataclass(frozen=True)
class Table:
    """A table; see the module.

    Parameters
    ----------
    slug : str
        Name of its files and its place in the page.
    title : str
        Heading.
    caption : str
        What the table shows, in a sentence or two.
    columns : sequence of Column
        The columns.
    rows : sequence of sequence of object
        Values, or :class:`Cell` where there is more to say.
    n_row_headers : int, default=1
        How many leading columns name the row.
    empty : str, default="Nothing to show."
        What is said when there are no rows.
    notes : sequence of str, default=()
        Sentences below the table.
    """

    slug: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    n_row_headers: int = 1
    empty: str = "Nothing to show."
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headers over the columns and how many columns each spans; empty without groups."""
        if not any(column.group for column in self.columns):
            return []
        return [
            (name, len(list(members)))
            for name, members in groupby(self.columns, key=lambda column: column.group)
        ]

    @property
    def header_rows(self) -> list[list[Header]]:
        """The headers, row by row; columns outside groups span both rows."""
        if not self.groups:
            return [[Header(column.header, column) for column in self.columns]]
        top: list[Header] = []
        position = 0
        for name, span in self.groups:
            members = self.columns[position : position + span]
            if name:
                top.append(Header(name, None, n_columns=span, starts_group=True))
            else:
                top += [Header(column.header, column, n_rows=2) for column in members]
            position += span
        bottom = [
            Header(column.header, column, starts_group=index in self.group_starts)
            for index, column in enumerate(self.columns)
            if column.group
        ]
        return [top, bottom]

    @property
    def group_starts(self) -> set[int]:
        """Columns with which a group, or what follows one, begins."""
        names = [column.group for column in self.columns]
        return {index for index in range(1, len(names)) if names[index] != names[index - 1]}

    @property
    def block_starts(self) -> set[int]:
        """Rows with which the first of several row headers changes."""
        if self.n_row_headers < 2:
            return set()
        names = [row[0].value for row in self.cells]
        return {index for index in range(1, len(names)) if names[index] != names[index - 1]}

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every value a :class:`Cell`."""
        return [
            [value if isinstance(value, Cell) else Cell(value) for value in row]
            for row in self.rows
        ]

    @property
    def used_marks(self) -> list[str]:
        """Keys of the marks that occur, in the order of :data:`MARKS`."""
        used = {mark for row in self.cells for cell in row for mark in cell.marks}
        return [mark for mark in MARKS if mark in used]


def is_missing(value: Any) -> bool:
    """Tell whether there is nothing to write."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any, kind: str) -> str:
    """Write a value as text.

    Parameters
    ----------
    value : object
        Number or text; None and NaN are written as a dash, text as it is.
    kind : str
        ``"text"``, ``"integer"``, ``"percent"`` (two decimals), ``"points"`` (signed),
        ``"seconds"``, ``"printed seconds"`` (three decimals, as in the paper), ``"ratio"``,
        ``"power"`` (a power of two), ``"number"``, ``"share"`` (a fraction as percent), ``"gap"``
        (a small fraction as percent) or ``"p"`` (p-value).

    Returns
    -------
    text : str

    Examples
    --------
    >>> from owasvm.experiments.report.table import plain
    >>> plain(0.125, "power"), plain(-0.001, "points"), plain(0.0004, "p")
    ('2⁻³', '0.00', '< 0.001')
    """
    if is_missing(value):
        return DASH
    if isinstance(value, str):
        return value
    return _WRITERS[kind](value)


def _points(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", MINUS)


def _seconds(value: float) -> str:
    return "< 0.0001" if value < 5e-5 else f"{value:.4f}"


def _ratio(value: float) -> str:
    if value >= 99.5:
        return f"{float(f'{value:.3g}'):,.0f} {TIMES}"
    return f"{value:.1f} {TIMES}" if value >= 0.95 else f"{value:.2f} {TIMES}"


def _power(value: float) -> str:
    exponent = math.log2(value) if value > 0 else math.nan
    if exponent == round(exponent):
        return "2" + str(round(exponent)).translate(_SUPERSCRIPTS)
    return f"{value:g}"


def _gap(value: float) -> str:
    percent = 100.0 * value
    return "< 0.001 %" if percent < 1e-3 else f"{percent:.3f} %"


def _share(value: float) -> str:
    # A share is only called all or nothing when it is.
    if 0.0 < value < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 <= value < 1.0 else f"{100 * value:.0f} %"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "integer": lambda value: f"{int(value):,}",
    "percent": lambda value: f"{value:.2f}",
    "points": _points,
    "seconds": _seconds,
    "printed seconds": lambda value: f"{value:.3f}",
    "ratio": _ratio,
    "power": _power,
    "number": lambda value: f"{value:g}",
    "share": _share,
    "gap": _gap,
    "p": lambda value: "< 0.001" if value < 1e-3 else f"{value:.3f}",
}


def to_csv(table: Table) -> str:
    """Write a table as CSV, numbers with ten digits, nothing where a value is missing."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_csv_header(column) for column in table.columns])
    for row in table.cells:
        writer.writerow([_csv_value(cell.value) for cell in row])
    return stream.getvalue()


def _csv_header(column: Column) -> str:
    header = f"{column.group} {column.header}".strip()
    for symbol, name in ((ALPHA, "alpha"), (SIGMA, "sigma"), (DASH, "-"), ("≤", "<=")):
        header = header.replace(symbol, name)
    return header


def _csv_value(value: Any) -> str:
    if is_missing(value):
        return ""
    # Eight decimals leave out the noise of sums; adding 0 turns -0 into 0.
    return f"{round(value, 8) + 0.0:.10g}" if isinstance(value, float) else str(value)
