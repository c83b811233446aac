"""A run with invented results, written in the format of the store."""

import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from owasvm.experiments import paper
from owasvm.experiments.protocol import GRIDS, Grid

CELL_COLUMNS = (
    "dataset TEXT, folds TEXT, model TEXT, width REAL, C REAL, quantifier TEXT, alpha REAL, "
    "fold INTEGER, n_test INTEGER, correct INTEGER, balanced_accuracy REAL, "
    "true_positive INTEGER, true_negative INTEGER, n_test_positive INTEGER, objective REAL, "
    "lower_bound REAL, gap REAL, status TEXT, solver TEXT, convex INTEGER, n_iter INTEGER, "
    "n_support INTEGER, fit_time REAL, first_time REAL, versions INTEGER"
)
KEY = "dataset, folds, model, width, C, quantifier, alpha, fold"
NAMES = tuple(column.split()[0] for column in CELL_COLUMNS.split(", "))
VERSIONS = {
    "owasvm": "0.1.0",
    "python": "3.11.2",
    "numpy": "2.4.6",
    "scipy": "1.17.1",
    "scikit-learn": "1.9.1",
    "numba": "0.68.1",
    "platform": "Linux-6.1-x86_64",
}
# Quantifier and alpha of non-decreasing weights.
CONVEX = {
    (quantifier, alpha)
    for quantifier in paper.QUANTIFIERS
    for alpha in paper.ALPHAS
    if quantifier in ("basic", "exponential") or (quantifier, alpha) == ("quadratic", 0.2)
}

Cell = tuple[Any, ...]


class SyntheticRun:
    """Writer of a store; every method adds rows and returns the run."""

    def __init__(self, folder: Path, grid: str = "paper") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.store = sqlite3.connect(folder / "cells.sqlite")
        self.store.execute("PRAGMA synchronous = OFF")
        self.store.execute(f"CREATE TABLE cells ({CELL_COLUMNS}, PRIMARY KEY ({KEY}))")
        self.store.execute(
            "CREATE TABLE orders (dataset TEXT, fold INTEGER, step_two REAL, exact REAL, "
            "PRIMARY KEY (dataset, fold))"
        )
        self.store.execute("CREATE TABLE versions (id INTEGER PRIMARY KEY, text TEXT)")
        self.store.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        self.store.execute("INSERT INTO versions VALUES (1, ?)", (json.dumps(VERSIONS),))
        self.store.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("grid", grid), ("command", f"owasvm reproduce --grid {grid}")],
        )
        self.store.commit()

    def add(self, **values: Any) -> "SyntheticRun":
        """One cell; what is not given has a harmless value."""
        cell = {
            "dataset": "wbc",
            "folds": "shuffled",
            "model": "l2-SVM",
            "width": 0.0,
            "C": 1.0,
            "quantifier": "",
            "alpha": 0.0,
            "fold": 0,
            "n_test": 50,
            "correct": 40,
            "balanced_accuracy": 0.8,
            "true_positive": 20,
            "true_negative": 20,
            "n_test_positive": 25,
            "objective": 1.0,
            "lower_bound": 1.0,
            "gap": 0.0,
            "status": "optimal",
            "solver": "newton",
            "convex": 1,
            "n_iter": 5,
            "n_support": 10,
            "fit_time": 0.01,
            "first_time": 0.0,
            "versions": 1,
        }
        cell.update(values)
        self._insert([tuple(cell[name] for name in NAMES)])
        return self

    def add_point(self, corrects: Sequence[int], **values: Any) -> "SyntheticRun":
        """One point of the grid: a cell a fold, the balanced accuracy equal to the accuracy."""
        n_test = values.get("n_test", 50)
        for fold, correct in enumerate(corrects):
            cell = {"balanced_accuracy": correct / n_test, **values}
            self.add(fold=fold, correct=correct, **cell)
        return self

    def add_orders(self, datasets: Sequence[str]) -> "SyntheticRun":
        """Coincidences near the printed ones."""
        rng = np.random.default_rng(5)
        for dataset in datasets:
            printed = paper.ORDER[dataset]
            for fold in range(10):
                shares = [
                    max(0.0, printed[column] + 0.1 * rng.normal())
                    for column in ("step_two", "exact")
                ]
                self.store.execute(
                    "INSERT INTO orders VALUES (?, ?, ?, ?)", (dataset, fold, *shares)
                )
        return self

    def fill(
        self,
        datasets: Sequence[str],
        grid: Grid = GRIDS["paper"],
        models: Sequence[str] = paper.MODELS,
        nested: bool = False,
    ) -> "SyntheticRun":
        """Whole grids, best near the printed values."""
        for dataset, model in itertools.product(datasets, models):
            self._insert(_grid_cells(dataset, model, grid, nested))
        return self

    def close(self) -> Path:
        """Close the store and return the folder."""
        self.store.commit()
        self.store.close()
        return self.folder

    def _insert(self, cells: Sequence[Cell] | Iterator[Cell]) -> None:
        self.store.executemany(f"INSERT INTO cells VALUES ({', '.join('?' * len(NAMES))})", cells)


def _grid_cells(dataset: str, model: str, grid: Grid, nested: bool) -> Iterator[Cell]:
    facts = paper.DATASETS[dataset]
    seed = list(paper.DATASETS).index(dataset) * 10 + paper.MODELS.index(model)
    rng = np.random.default_rng(seed)
    fold_effects = np.random.default_rng(seed // 10).normal(size=200)
    weights = (("", 0.0),) if paper.is_classical(model) else grid.weights
    kinds = [("shuffled", range(10))]
    if model == "l2-SVM_K":
        kinds.append(("unshuffled", range(10)))
    if nested:
        kinds.append(("nested", [100 * o + i for o in range(10) for i in range(5)]))
    printed_times = paper.TIMES[dataset][model]
    kernel_widths = grid.widths if paper.is_kernel(model) else (0.0,)
    for width, C, (quantifier, alpha) in itertools.product(kernel_widths, grid.Cs, weights):
        convex = quantifier == "" or (quantifier, alpha) in CONVEX
        distance = abs(np.log2(C) - 1.5) / 10
        if width:
            distance += abs(np.log2(width) - 1.0 + 0.2 * np.log2(C)) / 6
        distance += 0.0 if convex else 0.05
        for kind, folds in kinds:
            n_test = facts.n_samples // 10 if kind != "nested" else facts.n_samples // 6
            for fold in folds:
                level = paper.ACC[dataset][model] / 100 - 0.06 * distance**1.3
                noise = 0.02 * fold_effects[fold % 200] + 0.008 * rng.normal()
                correct = int(np.clip(round(n_test * (level + noise)), 0, n_test))
                positives = n_test // 2
                skew = (paper.AUC[dataset][model] - paper.ACC[dataset][model]) / 100
                gap = float(rng.exponential(2e-3)) if not convex else float(rng.uniform(0, 1e-6))
                optimal = convex or gap <= 1e-4
                fast = float(rng.lognormal(0, 0.3)) * facts.n_samples**1.7 / 4e7
                yield (
                    dataset,
                    kind,
                    model,
                    width,
                    C,
                    quantifier,
                    alpha,
                    fold,
                    n_test,
                    correct,
                    correct / n_test + skew,
                    correct // 2,
                    correct - correct // 2,
                    positives,
                    100.0,
                    100.0 * (1 - gap),
                    gap,
                    "optimal" if optimal else "time_limit",
                    "newton" if convex else "dca",
                    int(convex),
                    8,
                    n_test,
                    fast * (1.0 if convex else 40.0),
                    printed_times[0] if len(printed_times) == 2 else 0.0,
                    1,
                )
