"""A run as the report sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from owasvm.experiments import paper, tables
from owasvm.experiments.report import comparison

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRIC_NAMES", "Run", "label", "load_run"]

METRIC_NAMES = {"acc": "ACC", "auc": "AUC"}


@dataclass(frozen=True)
class Run:
    """Everything the report says about a run is derived from this.

    Parameters
    ----------
    cells, points, progress, orders, inner, counts : DataFrame
        From :mod:`owasvm.experiments.tables`.
    meta : dict
        Facts about the run as a whole.
    versions : dict
        Software by number.
    compared : dict
        By metric and protocol, from
        :func:`owasvm.experiments.report.comparison.compare_with_paper`.
    """

    cells: pd.DataFrame
    points: pd.DataFrame
    progress: pd.DataFrame
    orders: pd.DataFrame
    inner: pd.DataFrame
    counts: pd.DataFrame
    meta: dict[str, str]
    versions: dict[int, dict[str, str]]
    compared: dict[tuple[str, str], pd.DataFrame]

    @property
    def datasets(self) -> list[str]:
        """Datasets that were run, in the order of the paper."""
        run = set(self.points["dataset"])
        return [name for name in paper.DATASETS if name in run]

    @property
    def n_fits(self) -> int:
        """All fits of the run."""
        return int(self.counts["fits"].sum())

    @property
    def n_inner_fits(self) -> int:
        """Fits on inner folds of nested cross-validations."""
        return int(self.counts.loc[self.counts["folds"] == "nested", "fits"].sum())

    @property
    def grid(self) -> str:
        """Name of the grid."""
        return self.meta.get("grid", "unnamed")


def load_run(run_folder: Path) -> Run:
    """Read a run from its folder."""
    cells = tables.load_cells(run_folder)
    meta = tables.load_meta(run_folder)
    points = tables.summarise(cells)
    progress = tables.completeness(cells, tables.grid_of_run(meta))
    return Run(
        cells=cells,
        points=points,
        progress=progress,
        orders=tables.load_orders(run_folder),
        inner=tables.load_nested(run_folder),
        counts=tables.load_counts(run_folder),
        meta=meta,
        versions=tables.load_versions(run_folder),
        compared={
            (metric, protocol): comparison.compare_with_paper(points, progress, metric, protocol)
            for metric in comparison.METRICS
            for protocol in comparison.PROTOCOLS
        },
    )


def label(dataset: str) -> str:
    """Return the label of a dataset in the paper's tables."""
    return paper.DATASETS[dataset].label
