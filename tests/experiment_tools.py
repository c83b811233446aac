"""Small experiments for the tests of the engine."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from owasvm.experiments.plan import FitOptions, Plan, make_plan
from owasvm.experiments.protocol import Data, Grid
from owasvm.experiments.store import COLUMNS, FILE_NAME, HISTORY, KEY

CONVEX = (("basic", 0.2), ("exponential", 0.6))
SMALL = Grid("small", (0.5, 8.0), (2.0,), CONVEX)


def made_up(name: str = "toy", n_samples: int = 60, seed: int = 3) -> Data:
    """Two noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=n_samples) > 0.5, 1.0, -1.0)
    return Data(name, X, y)


def small_plan(data: Data | None = None, **choices: Any) -> Plan:
    """All models on made-up data, convex weights unless told otherwise."""
    chosen = data or made_up()
    choices.setdefault("grid", SMALL)
    choices.setdefault("options", FitOptions(general="skip"))
    return make_plan({chosen.name: chosen}, **choices)


def lasting_rows(folder: Path) -> list[tuple[Any, ...]]:
    """Cells and orders without what tells how the run went."""
    database = sqlite3.connect(folder / FILE_NAME)
    columns = ", ".join(name for name in COLUMNS if name not in HISTORY)
    try:
        cells = database.execute(f"SELECT {columns} FROM cells ORDER BY {', '.join(KEY)}")
        orders = database.execute("SELECT * FROM orders ORDER BY dataset, fold")
        return [*cells.fetchall(), *orders.fetchall()]
    finally:
        database.close()


def total_attempts(folder: Path) -> int:
    """How often cells were started."""
    database = sqlite3.connect(folder / FILE_NAME)
    try:
        return int(database.execute("SELECT TOTAL(attempts) FROM cells").fetchone()[0])
    finally:
        database.close()
