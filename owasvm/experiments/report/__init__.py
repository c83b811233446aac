"""The report of a run: one page, and its tables as files.

:func:`write_report` is the entrance. The page needs no network and no script.
"""

from __future__ import annotations

from pathlib import Path

from owasvm.experiments.tables import RunError

__all__ = ["RunError", "write_report"]


def write_report(run_folder: Path, output: Path | None = None) -> Path:
    """Write the report of a run.

    The folder gets ``index.html``, a page that contains everything, and the tables in
    ``tables/`` as Markdown, LaTeX (for the package booktabs) and CSV. What it says depends on
    the store alone, and for the figures of the winning models on the data files: two reports
    of the same store are equal, byte by byte. Files are replaced only when all are made.

    Parameters
    ----------
    run_folder : Path
        Folder of the run, with its store.
    output : Path or None, default=None
        Folder for the report; by default ``report`` in the folder of the run. It is made if
        need be.

    Returns
    -------
    page : Path
        The page.

    Raises
    ------
    RunError
        The folder holds no run, or one without results.
    """
    from owasvm.experiments.report.content import make_tables
    from owasvm.experiments.report.formats import FORMATS, render_page, render_table
    from owasvm.experiments.report.illustrations import make_galleries
    from owasvm.experiments.report.page import page_content
    from owasvm.experiments.report.run import load_run

    run = load_run(Path(run_folder))
    tables = make_tables(run)
    folder = Path(run_folder) / "report" if output is None else Path(output)
    files = {
        folder / "tables" / f"{slug}.{ending}": render_table(table, name)
        for slug, table in tables.items()
        for name, ending in FORMATS.items()
    }
    page = folder / "index.html"
    files[page] = render_page(**page_content(run, tables, make_galleries(run)))
    _write_all(files)
    return page


def _write_all(files: dict[Path, str]) -> None:
    from owasvm.files import replace_file

    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as stream:
            stream.write(text.encode())
