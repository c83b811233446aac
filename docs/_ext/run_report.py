"""The report of the stored run becomes a part of the built pages, in the folder ``report``."""

import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
sys.path.insert(0, str(RESULTS))

import packed_run  # noqa: E402


def write_report(app: Any, error: Exception | None) -> None:
    """After a build of web pages, write the report beside them."""
    if error is None and app.builder.format == "html":
        packed_run.report(RESULTS / "run.sqlite.xz", Path(app.outdir) / "report")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
