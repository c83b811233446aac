"""From the cells of a run to the numbers of the paper's tables.

A run is a folder with a store, see :mod:`owasvm.experiments.store`; everything here reads it and
nothing writes it.

A cell of the accuracy and AUC tables is the mean over the ten folds at the best parameters of the
grid, accuracy and AUC each with its own. Among parameters that reach the same mean the winner is,
in this order: non-decreasing (convex) weights, the smallest C, the largest kernel width, the first
quantifier in the order of the paper, the smallest alpha. Only parameters for which all ten folds
are there take part.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from owasvm.experiments import paper
from owasvm.experiments.protocol import GRIDS, Grid
from owasvm.experiments.store import FILE_NAME
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "GRID",
    "PARAMETERS",
    "RunError",
    "best_parameters",
    "completeness",
    "grid_of_run",
    "load_cells",
    "load_counts",
    "load_meta",
    "load_nested",
    "load_orders",
    "load_versions",
    "summarise",
]

#: What makes a point of the grid.
PARAMETERS: tuple[str, ...] = ("width", "C", "quantifier", "alpha")

#: What makes a grid.
GRID: tuple[str, ...] = ("dataset", "folds", "model")

_RESULTS = (
    "n_test",
    "correct",
    "balanced_accuracy",
    "gap",
    "status",
    "convex",
    "fit_time",
    "first_time",
    "versions",
)


class RunError(ValueError):
    """The folder does not hold a run that can be reported."""


@contextmanager
def _open_store(run_folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the store for reading; what is wrong with it becomes a RunError."""
    folder = Path(run_folder)
    if not folder.is_dir():
        raise RunError(f"{folder} is not a folder; name the folder of a run.")
    path = folder / FILE_NAME
    if not path.is_file():
        raise RunError(
            f"{folder} has no {FILE_NAME}; name the folder that owasvm reproduce wrote."
        )
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as store:
            yield store
    except (sqlite3.DatabaseError, require("pandas", "A report").errors.DatabaseError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise RunError(f"{path} is not the store of a run ({reason}).") from error


def _read(run_folder: Path, query: str) -> pd.DataFrame:
    pandas = require("pandas", "A report")
    with _open_store(run_folder) as store:
        return pandas.read_sql_query(query, store)


def load_cells(run_folder: Path) -> pd.DataFrame:
    """Read the cells of a run, without the inner folds of nested cross-validations.

    Returns
    -------
    cells : DataFrame
        One row per fit, sorted by its key, with the columns of the store that tables are made of,
        and ``acc``, the share of correct predictions, and ``auc``, the balanced accuracy.

    Raises
    ------
    RunError
        No folder, no store, or a store without cells.
    """
    key = ", ".join([*GRID, *PARAMETERS, "fold"])
    cells = _read(
        run_folder,
        f"SELECT {key}, {', '.join(_RESULTS)} FROM cells WHERE folds <> 'nested' ORDER BY {key}",
    )
    cells = cells[cells["dataset"].isin(list(paper.DATASETS))].reset_index(drop=True)
    if cells.empty:
        raise RunError(
            f"{Path(run_folder) / FILE_NAME} holds no finished cell; run owasvm reproduce first."
        )
    cells["acc"] = cells["correct"] / cells["n_test"]
    cells["auc"] = cells["balanced_accuracy"]
    return cells


def load_nested(run_folder: Path) -> pd.DataFrame:
    """Read the inner folds of nested cross-validations, averaged.

    Returns
    -------
    inner : DataFrame
        One row per dataset, model, outer fold and point of the grid, with the means ``acc`` and
        ``auc`` over the inner folds and their number, ``n_folds``.
    """
    # There are many inner folds: SQLite averages them while it reads.
    return _read(
        run_folder,
        "SELECT dataset, model, width, C, quantifier, alpha, fold / 100 AS outer_fold, "
        "MIN(convex) AS convex, COUNT(*) AS n_folds, "
        "AVG(1.0 * correct / n_test) AS acc, AVG(balanced_accuracy) AS auc "
        "FROM cells WHERE folds = 'nested' "
        "GROUP BY dataset, model, width, C, quantifier, alpha, outer_fold "
        "ORDER BY dataset, model, width, C, quantifier, alpha, outer_fold",
    )


def load_counts(run_folder: Path) -> pd.DataFrame:
    """Count all fits of a run, inner folds too, by dataset, folds, model and set of versions.

    Returns
    -------
    counts : DataFrame
        Columns ``dataset``, ``folds``, ``model``, ``versions`` and ``fits``.

    Notes
    -----
    A store from which fits were left out to make it small has them in a table of this name.
    """
    keys = "dataset, folds, model, versions"
    query = f"SELECT {keys}, COUNT(*) AS fits FROM cells GROUP BY {keys} ORDER BY {keys}"
    with _open_store(run_folder) as store:
        tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
    if "counts" in tables:
        query = f"SELECT {keys}, fits FROM counts ORDER BY {keys}"
    return _read(run_folder, query)


def load_orders(run_folder: Path) -> pd.DataFrame:
    """Read how far the orders of the deviations coincide, in percent, by dataset and fold."""
    return _read(
        run_folder, "SELECT dataset, fold, step_two, exact FROM orders ORDER BY dataset, fold"
    )


def load_meta(run_folder: Path) -> dict[str, str]:
    """Read the facts about a run as a whole, sorted by key."""
    with _open_store(run_folder) as store:
        return {
            str(key): str(value)
            for key, value in store.execute("SELECT key, value FROM meta ORDER BY key")
        }


def load_versions(run_folder: Path) -> dict[int, dict[str, str]]:
    """Read name and version of the software, by the number that the cells refer to."""
    with _open_store(run_folder) as store:
        rows = list(store.execute("SELECT * FROM versions ORDER BY 1"))
    return {
        int(row[0]): {str(name): str(version) for name, version in json.loads(row[1]).items()}
        for row in rows
    }


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Average cells, from :func:`load_cells`, over the folds.

    Returns
    -------
    points : DataFrame
        One row per dataset, kind of folds, model and point of the grid: ``n_folds``, the means
        ``acc`` and ``auc`` in percent, the mean times ``fit_time`` and ``first_time``, the largest
        ``gap``, and ``convex``.
    """
    points = (
        cells.groupby([*GRID, *PARAMETERS], sort=True)
        .agg(
            n_folds=("fold", "nunique"),
            acc=("acc", "mean"),
            auc=("auc", "mean"),
            fit_time=("fit_time", "mean"),
            first_time=("first_time", "mean"),
            gap=("gap", "max"),
            convex=("convex", "min"),
        )
        .reset_index()
    )
    # Equal means must stay equal: the order of a sum must not decide who wins.
    points[["acc", "auc"]] = (100.0 * points[["acc", "auc"]]).round(9)
    return points


def best_parameters(
    points: pd.DataFrame, metric: str, by: tuple[str, ...] = GRID, n_folds: int = paper.N_FOLDS
) -> pd.DataFrame:
    """Choose the best point of each grid; see the module for how ties are broken.

    Parameters
    ----------
    points : DataFrame
        From :func:`summarise`.
    metric : {"acc", "auc"}
        What is to be largest.
    by : tuple of str, default=("dataset", "folds", "model")
        Columns that identify a grid.
    n_folds : int, default=10
        Folds that a point must have to take part.

    Returns
    -------
    winners : DataFrame
        The winning rows, and in ``n_ties`` how many points reach the same mean.
    """
    complete = points[points["n_folds"] >= n_folds]
    ranks = {name: rank for rank, name in enumerate(paper.QUANTIFIERS)}
    ordered = complete.assign(
        _rank=complete["quantifier"].map(ranks).fillna(len(ranks)),
        _wide=-complete["width"],
        _value=-complete[metric],
        _general=-complete["convex"].fillna(1),
    ).sort_values([*by, "_value", "_general", "C", "_wide", "_rank", "alpha"], kind="stable")
    grids = ordered.groupby(list(by), sort=True)
    top = grids[metric].transform("max")
    ordered = ordered.assign(
        n_ties=(ordered[metric] == top).groupby([ordered[key] for key in by]).transform("sum")
    )
    winners = ordered.groupby(list(by), sort=True).head(1)
    return winners.drop(columns=["_rank", "_wide", "_value", "_general"]).reset_index(drop=True)


def grid_of_run(meta: Mapping[str, str]) -> Grid | None:
    """Return the grid that a run was asked for; None when it does not say.

    Examples
    --------
    >>> from owasvm.experiments.tables import grid_of_run
    >>> grid = grid_of_run({"grid": "paper", "Cs": "[1.0]", "widths": "[2.0]",
    ...                     "weights": '[["basic", 0.6]]'})
    >>> grid.Cs, grid.weights
    ((1.0,), (('basic', 0.6),))
    """
    named = GRIDS.get(meta.get("grid", ""))
    if not {"Cs", "widths", "weights"} <= set(meta):
        return named
    return Grid(
        name=meta.get("grid", ""),
        Cs=tuple(json.loads(meta["Cs"])),
        widths=tuple(json.loads(meta["widths"])),
        weights=tuple((str(name), float(alpha)) for name, alpha in json.loads(meta["weights"])),
    )


def completeness(cells: pd.DataFrame, grid: Grid | None) -> pd.DataFrame:
    """Count how much of the grid is there.

    Parameters
    ----------
    cells : DataFrame
        From :func:`load_cells`.
    grid : Grid or None
        From :func:`grid_of_run`; without it the values that occur for any model of the dataset
        are taken to be the grid.

    Returns
    -------
    progress : DataFrame
        For each dataset, kind of folds and model the cells ``done`` and ``expected``, their
        ratio ``share``, and ``paper_share``, the share of the paper's grid that is covered.
    """
    rows = []
    for dataset, of_dataset in cells.groupby("dataset", sort=True):
        of_run = grid or _occurring_grid(of_dataset)
        for (folds, model), part in of_dataset.groupby(["folds", "model"], sort=True):
            counts = []
            for expected in (of_run, GRIDS["paper"]):
                size = _grid_size(expected, model)
                counts += [_count_inside(part, expected), size]
            done, size, in_paper, paper_size = counts
            rows.append((dataset, folds, model, done, size, done / size, in_paper / paper_size))
    columns = [*GRID, "done", "expected", "share", "paper_share"]
    return require("pandas", "A report").DataFrame(rows, columns=columns)


def _occurring_grid(cells: pd.DataFrame) -> Grid:
    weighted = cells.loc[cells["quantifier"] != "", ["quantifier", "alpha"]].drop_duplicates()
    return Grid(
        name="",
        Cs=tuple(sorted(set(cells["C"]))),
        widths=tuple(sorted(set(cells.loc[cells["width"] > 0, "width"]))),
        weights=tuple(weighted.itertuples(index=False, name=None)),
    )


def _grid_size(grid: Grid, model: str) -> int:
    widths = len(grid.widths) if paper.is_kernel(model) else 1
    weights = 1 if paper.is_classical(model) else len(grid.weights)
    return len(grid.Cs) * widths * weights * paper.N_FOLDS


def _count_inside(cells: pd.DataFrame, grid: Grid) -> int:
    """Count the cells that belong to a grid; linear and classical models ignore parts of it."""
    inside = cells["C"].isin(grid.Cs) & cells["width"].isin([0.0, *grid.widths])
    weights = set(grid.weights) | {("", 0.0)}
    pairs = zip(cells["quantifier"], cells["alpha"], strict=True)
    return sum(pair in weights for pair, kept in zip(pairs, inside, strict=True) if kept)
