"""Sphinx extension: writes the explorer beside the static files of the documentation.

``extensions = [..., "docs.explorer.sphinx_page"]``, with the root of the repository on the path.
"""

from pathlib import Path
from typing import Any

from docs.explorer.build import assemble, read_solutions

NAME = "explorer.html"


def write_page(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        static.mkdir(exist_ok=True)
        (static / NAME).write_text(assemble(read_solutions()), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
