"""The best cells of a run beside the printed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from owasvm.experiments import paper
from owasvm.experiments.known_points import KNOWN_POINTS
from owasvm.experiments.tables import GRID, PARAMETERS, best_parameters
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "METRICS",
    "PROTOCOLS",
    "TOLERANCE",
    "agrees",
    "compare_orders",
    "compare_times",
    "compare_with_paper",
]

#: The two figures of merit and their printed tables.
METRICS: dict[str, dict[str, dict[str, float]]] = {"acc": paper.ACC, "auc": paper.AUC}

#: Folds of a model under the two ways of comparing models.
PROTOCOLS: dict[str, Mapping[str, str]] = {
    "paper": {model: paper.paper_folds(model) for model in paper.MODELS},
    "same": dict.fromkeys(paper.MODELS, "shuffled"),
}

#: Points by which a cell may differ from the printed one.
TOLERANCE = 0.05


def compare_with_paper(
    points: pd.DataFrame, progress: pd.DataFrame, metric: str, protocol: str
) -> pd.DataFrame:
    """Put the best cells beside the printed ones.

    Parameters
    ----------
    points : DataFrame
        From :func:`summarise`.
    progress : DataFrame
        From :func:`completeness`.
    metric : {"acc", "auc"}
        Which table.
    protocol : {"paper", "same"}
        The paper's folds, or shuffled folds for all models.

    Returns
    -------
    comparison : DataFrame
        One row for each dataset that was run and each model: ``ours`` and ``paper`` in percent,
        ``difference`` in points, the winning parameters, ``n_ties``, ``convex``, ``gap``,
        ``share`` and ``paper_share`` of the grid, and ``agrees``: within 0.05 points, for exact
        models not more than 0.05 points below. ``in_reach`` tells whether the run could have shown
        the printed value: it has the paper's whole grid, or a point that is known to reach it, or
        does reach it. Both are None where a number is missing or was printed for other folds.
    """
    pandas = require("pandas", "A report")
    winners = best_parameters(points, metric).set_index(list(GRID))
    complete = points[points["n_folds"] >= paper.N_FOLDS]
    computed = set(complete[[*GRID, *PARAMETERS]].itertuples(index=False, name=None))
    shares = progress.set_index(list(GRID))
    run = set(points["dataset"])
    rows = []
    for dataset in (name for name in paper.DATASETS if name in run):
        for model in paper.MODELS:
            key = (dataset, PROTOCOLS[protocol][model], model)
            row: dict[str, Any] = dict(zip(GRID, key, strict=True))
            row["paper"] = METRICS[metric][dataset][model]
            row["share"] = shares["share"].get(key, 0.0)
            row["paper_share"] = shares["paper_share"].get(key, 0.0)
            if key in winners.index:
                winner = winners.loc[key]
                row["ours"] = float(winner[metric])
                row["difference"] = row["ours"] - row["paper"]
                if row["folds"] == paper.paper_folds(model):
                    row["agrees"] = agrees(model, row["difference"])
                    known = KNOWN_POINTS.get((metric, dataset, model))
                    row["in_reach"] = (
                        row["agrees"]
                        or row["paper_share"] >= 1.0
                        or (known is not None and (*key, *known) in computed)
                    )
                for name in (*PARAMETERS, "n_ties", "convex", "gap", "fit_time", "first_time"):
                    row[name] = winner[name]
            rows.append(row)
    columns = [*GRID, "ours", "paper", "difference", "agrees", "in_reach", *PARAMETERS, "n_ties"]
    columns += ["convex", "gap", "fit_time", "first_time", "share", "paper_share"]
    frame = pandas.DataFrame(rows, columns=columns)
    for column in ("agrees", "in_reach"):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
    return frame


def agrees(model: str, difference: float) -> bool:
    """Tell whether a difference from the printed value, in points, is small enough.

    An exact model may be better than printed, the others may not differ.
    """
    allowed = TOLERANCE + 1e-9
    return difference >= -allowed if paper.is_exact(model) else abs(difference) <= allowed


def compare_orders(orders: pd.DataFrame) -> pd.DataFrame:
    """Put the coincidence of orders beside the printed one.

    Returns
    -------
    comparison : DataFrame
        For each dataset the means over the folds ``step_two`` and ``exact``, both also with the
        suffixes ``_paper`` and ``_difference``, and ``n_folds``.
    """
    pandas = require("pandas", "A report")
    rows = []
    for dataset in paper.DATASETS:
        part = orders[orders["dataset"] == dataset]
        if part.empty:
            continue
        row: dict[str, Any] = {"dataset": dataset, "n_folds": len(part)}
        for column in ("step_two", "exact"):
            row[column] = float(part[column].mean())
            row[f"{column}_paper"] = paper.ORDER[dataset][column]
            row[f"{column}_difference"] = row[column] - row[f"{column}_paper"]
        rows.append(row)
    return pandas.DataFrame(rows)


def compare_times(auc: pd.DataFrame) -> pd.DataFrame:
    """Put the times per fold at the best AUC parameters beside the printed ones.

    Parameters
    ----------
    auc : DataFrame
        The AUC table from :func:`compare_with_paper`.

    Returns
    -------
    comparison : DataFrame
        For each dataset and model ``ours`` and ``paper`` in seconds, all steps together, the same
        for the steps (``ours_1``, ``ours_2``, ``paper_1``, ``paper_2``; missing for models of one
        step), and ``ratio``, printed over ours.
    """
    pandas = require("pandas", "A report")
    rows = []
    for cell in auc.itertuples():
        printed = paper.TIMES[cell.dataset][cell.model]
        two_step = paper.is_two_step(cell.model)
        ours = cell.fit_time + (cell.first_time if two_step else 0.0)
        row = {
            "dataset": cell.dataset,
            "model": cell.model,
            "share": cell.share,
            "ours_1": cell.first_time if two_step else math.nan,
            "ours_2": cell.fit_time if two_step else math.nan,
            "ours": ours,
            "paper_1": printed[0] if two_step else math.nan,
            "paper_2": printed[1] if two_step else math.nan,
            "paper": sum(printed),
            "ratio": sum(printed) / ours if ours > 0 else math.nan,
        }
        rows.append(row)
    return pandas.DataFrame(rows)
