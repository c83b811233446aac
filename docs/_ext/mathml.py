"""Formulas as MathML, made when the pages are built: browsers need no script and no network."""

from html import escape

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
converter = LatexToMathML(fancy_error=False)


def convert(node: nodes.Element, displaystyle: bool) -> str:
    """MathML of a formula; one that cannot be converted is a warning and shown as typed."""
    latex = node.astext().strip()
    if r"\tag{" in latex and not latex.startswith(r"\begin{"):
        latex = rf"\begin{{equation}}{latex}\end{{equation}}"
    try:
        return converter.convert_with_local_state(latex, displaystyle=displaystyle)
    except LatexError as error:
        logger.warning("formula %r: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node, displaystyle=False))
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    # Wide formulas scroll in a box of their own.
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(convert(node, displaystyle=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer; ``html_math_renderer = "mathml"`` selects it."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
