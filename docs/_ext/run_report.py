"""The reports of the stored runs become a part of the built pages, each in a folder of its own."""

import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
sys.path.insert(0, str(RESULTS))

import packed_run  # noqa: E402

FOLDERS = {"paper-run": "report", "coarse-run": "report-coarse"}


def write_reports(app: Any, error: Exception | None) -> None:
    """After a build of web pages, write the reports beside them."""
    if error is None and app.builder.format == "html":
        for run, folder in FOLDERS.items():
            packed_run.report(RESULTS / f"{run}.sqlite.xz", Path(app.outdir) / folder)


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
