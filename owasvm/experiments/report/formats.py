"""Words and tables in HTML, Markdown and LaTeX, through templates."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from owasvm.experiments.report.symbols import ALPHA, DASH, MINUS, SCRIPT_L, SIGMA, TIMES
from owasvm.experiments.report.table import MARKS, Cell, Column, Table, plain, to_csv
from owasvm.extras import require

__all__ = ["FORMATS", "render_page", "render_table"]

#: Formats of the tables beside the page, and the ends of their file names.
FORMATS: dict[str, str] = {"markdown": "md", "latex": "tex", "csv": "csv"}

_TEMPLATES = Path(__file__).parent / "templates"
_MODEL = re.compile(r"\b(l2|app-OWA|ex-OWA)-SVM(_K)?(?![\w])")
_POWER = re.compile("2([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|2\\^(-?\\d+)")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "≤": r"$\le$",
    "†": r"$^{\dagger}$",
    "°": r"$^{\circ}$",
    "*": r"$^{*}$",
    ALPHA: r"$\alpha$",
    DASH: "--",
    MINUS: "$-$",
    SIGMA: r"$\sigma$",
    TIMES: r"$\times$",
}


def render_table(table: Table, format: str) -> str:
    """Write a table in one of :data:`FORMATS`."""
    if format == "csv":
        return to_csv(table)
    template = _environment().get_template(f"table.{FORMATS[format]}")
    return template.render(table=table, marks=MARKS)


def render_page(**content: Any) -> str:
    """Write the page; `content` is what the template ``page.html`` refers to."""
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    # Our own style sheet, without a character that HTML would escape.
    return _environment().get_template("page.html").render(style=style, marks=MARKS, **content)


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", "A report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        rich=_rich, latex=_latex, markdown=_markdown, written=_written, aligned=_aligned
    )
    return environment


def _written(cell: Cell, column: Column) -> str:
    """The value of a cell as text, with the signs of its marks."""
    return plain(cell.value, column.kind) + "".join(MARKS[mark][0] for mark in cell.marks)


def _aligned(column: Column, left: str, right: str) -> str:
    return right if column.is_number else left


def _rich(text: object) -> Any:
    """Escape text for HTML; names of models and powers get their subscripts and superscripts."""
    markupsafe = require("markupsafe", "A report")
    html = str(markupsafe.escape(text))
    html = _MODEL.sub(
        lambda name: (
            (f"{SCRIPT_L}<sub>2</sub>" if name[1] == "l2" else name[1])
            + "-SVM"
            + ("<sub>K</sub>" if name[2] else "")
        ),
        html,
    )
    html = html.replace(" %", "&nbsp;%")
    html = _POWER.sub(lambda power: f"2<sup>{_exponent(power, MINUS)}</sup>", html)
    return markupsafe.Markup(html)


def _latex(text: object) -> str:
    """Escape text for LaTeX."""
    parts = []
    position = 0
    plain_text = str(text)
    for match in re.finditer(f"{_MODEL.pattern}|{_POWER.pattern}", plain_text):
        parts.append(_escape_latex(plain_text[position : match.start()]))
        position = match.end()
        name = _MODEL.fullmatch(match[0])
        if name is None:
            power = _POWER.fullmatch(match[0])
            parts.append(f"$2^{{{_exponent(power, '-')}}}$" if power else "")
        else:
            parts.append(
                (r"$\ell_2$" if name[1] == "l2" else name[1])
                + "-SVM"
                + ("$_K$" if name[2] else "")
            )
    return "".join([*parts, _escape_latex(plain_text[position:])])


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_SPECIALS.get(character, character) for character in text)


def _exponent(power: re.Match[str], minus: str) -> str:
    digits = (power[1] or power[2]).translate(_DIGITS)
    return digits.replace("-", minus)


def _markdown(text: object) -> str:
    """Escape text for a cell of a Markdown table."""
    return re.sub(r"([\\|*<])", r"\\\1", str(text))
