"""The tables of a run's database.

==================== ===========================================================================
table                rows
==================== ===========================================================================
``cells``            one fit each: its key (:data:`KEY`), what came out of it, and times
``orders``           percentages of samples that keep their position in the sorted deviations
``versions``         software versions as JSON; cells refer to them by ``id``
``meta``             facts about the run as a whole, key and value
``chains``           chains of cells in progress: how often the next cell has been started
``states``           what the next cell of a chain in progress starts from
``session``          the process that may write to the chains
==================== ===========================================================================

Columns of ``cells`` whose meaning is not obvious: ``width`` is sigma, 0 for linear models;
``objective`` is that of the model, for two-step models the ordered weighted objective of the final
classifier; ``gap`` is the proven relative gap of the problem that was solved, for two-step models
that of the second step, and they have no ``lower_bound``; ``n_iter`` and ``fit_time`` belong to
the second step as well, ``first_time`` to the first; ``attempts`` counts how often the cell was
started until it was stored, more than once only if a run was killed in between.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COLUMNS", "FILE_NAME", "HISTORY", "KEY", "REALS", "SCHEMA", "Cell"]

#: The database in the folder of a run.
FILE_NAME = "cells.sqlite"

_TYPES: dict[str, str] = {
    "dataset": "TEXT NOT NULL",
    "folds": "TEXT NOT NULL",
    "model": "TEXT NOT NULL",
    "width": "REAL NOT NULL",
    "C": "REAL NOT NULL",
    "quantifier": "TEXT NOT NULL",
    "alpha": "REAL NOT NULL",
    "fold": "INTEGER NOT NULL",
    "n_test": "INTEGER",
    "correct": "INTEGER",
    "balanced_accuracy": "REAL",
    "true_positive": "INTEGER",
    "true_negative": "INTEGER",
    "n_test_positive": "INTEGER",
    "objective": "REAL",
    "lower_bound": "REAL",
    "gap": "REAL",
    "status": "TEXT",
    "solver": "TEXT",
    "convex": "INTEGER",
    "n_iter": "INTEGER",
    "n_support": "INTEGER",
    "fit_time": "REAL",
    "first_time": "REAL",
    "versions": "INTEGER",
    "attempts": "INTEGER NOT NULL DEFAULT 1",
}
#: Columns that identify a cell.
KEY: tuple[str, ...] = (
    "dataset",
    "folds",
    "model",
    "width",
    "C",
    "quantifier",
    "alpha",
    "fold",
)
#: All columns of a cell.
COLUMNS: tuple[str, ...] = tuple(_TYPES)
#: Columns of real numbers; empty ones are NaN in tables.
REALS: tuple[str, ...] = tuple(name for name, kind in _TYPES.items() if kind.startswith("REAL"))
#: Columns that tell how a run went; all others are the same in every run.
HISTORY: tuple[str, ...] = ("fit_time", "first_time", "attempts")

#: Statements that create the tables.
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS cells (
    {", ".join(f"{name} {kind}" for name, kind in _TYPES.items())},
    PRIMARY KEY ({", ".join(KEY)})
);
CREATE TABLE IF NOT EXISTS orders (
    dataset TEXT, fold INTEGER, step_two REAL, exact REAL, PRIMARY KEY (dataset, fold)
);
CREATE TABLE IF NOT EXISTS versions (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS chains (chain TEXT PRIMARY KEY, attempts INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (
    chain TEXT, part TEXT, state BLOB, PRIMARY KEY (chain, part)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (only INTEGER PRIMARY KEY CHECK (only = 1), token TEXT);
"""


class Cell(NamedTuple):
    """The key of a cell, in the order of :data:`KEY`."""

    dataset: str
    folds: str
    model: str
    width: float
    C: float
    quantifier: str
    alpha: float
    fold: int
