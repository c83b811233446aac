"""Keep a run small enough for the repository, and write its report from that.

    python docs/results/packed_run.py pack RUN docs/results/paper-run.sqlite.xz
    python docs/results/packed_run.py report docs/results/paper-run.sqlite.xz FOLDER

A packed run is a store without what its report does not need: of the inner folds only those of the
points that were chosen, gaps and times rounded to what the tables show, no objectives. The report
is that of the whole run; how many fits it had is kept in a table of its own.
"""

import lzma
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from owasvm.experiments.protocol import N_INNER_FOLDS
from owasvm.experiments.report import write_report
from owasvm.experiments.schema import FILE_NAME, KEY
from owasvm.experiments.tables import PARAMETERS, best_parameters, load_counts, load_nested

ROUNDED = {
    "gap": "ROUND(gap, 5)",
    "fit_time": "ROUND(fit_time, 4)",
    "first_time": "ROUND(first_time, 4)",
}
KEPT = (*KEY, "n_test", "correct", "balanced_accuracy", "status", "convex", "versions", *ROUNDED)


def pack(run: Path, target: Path) -> None:
    """Write the packed run."""
    inner = load_nested(run)
    outer_grids = ("dataset", "model", "outer_fold")
    chosen = set()
    for metric in ("acc", "auc"):
        means = inner.assign(**{metric: inner[metric].round(11)})
        best = best_parameters(means, metric, outer_grids, N_INNER_FOLDS)
        chosen |= set(best[[*outer_grids, *PARAMETERS]].itertuples(index=False, name=None))
    keys = ("dataset", "model", "fold / 100", *PARAMETERS)
    columns = ", ".join(KEPT)
    values = ", ".join(ROUNDED.get(name, name) for name in KEPT)
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        with closing(sqlite3.connect(path)) as store:
            store.execute("ATTACH ? AS run", (str(run / FILE_NAME),))
            for table in ("orders", "versions", "meta"):
                store.execute(f"CREATE TABLE {table} AS SELECT * FROM run.{table}")
            # Without a row number and an index beside it the file is half as large.
            store.execute(
                f"CREATE TABLE cells ({columns}, PRIMARY KEY ({', '.join(KEY)})) WITHOUT ROWID"
            )
            store.execute(
                f"INSERT INTO cells ({columns}) SELECT {values} FROM run.cells "
                f"WHERE folds <> 'nested' ORDER BY {', '.join(KEY)}"
            )
            condition = " AND ".join(f"{key} = ?" for key in keys)
            store.executemany(
                f"INSERT INTO cells ({columns}) SELECT {values} FROM run.cells "
                f"WHERE folds = 'nested' AND {condition}",
                sorted(chosen),
            )
            store.execute("CREATE TABLE counts (dataset, folds, model, versions, fits)")
            rows = load_counts(run).itertuples(index=False, name=None)
            store.executemany("INSERT INTO counts VALUES (?, ?, ?, ?, ?)", rows)
            store.commit()
            store.execute("DETACH run")
            store.execute("VACUUM")
        target.write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def report(source: Path, output: Path) -> Path:
    """Write the report of a packed run and return its page."""
    with TemporaryDirectory() as folder:
        (Path(folder) / FILE_NAME).write_bytes(lzma.decompress(source.read_bytes()))
        return write_report(Path(folder), output)


if __name__ == "__main__":
    {"pack": pack, "report": report}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
