"""What the paper does not report: certified gaps, nested cross-validation, paired tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from owasvm.experiments import paper
from owasvm.experiments.protocol import N_INNER_FOLDS
from owasvm.experiments.statistics import compare_folds, holm
from owasvm.experiments.tables import PARAMETERS, best_parameters
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PAIRS",
    "SELECTIONS",
    "best_fold_scores",
    "gap_distribution",
    "nested_fold_scores",
    "paired_comparisons",
]

#: Which models are compared, fold by fold.
PAIRS: tuple[tuple[str, str], ...] = (
    ("ex-OWA-SVM", "app-OWA-SVM"),
    ("ex-OWA-SVM", "l2-SVM"),
    ("ex-OWA-SVM_K", "app-OWA-SVM_K"),
    ("ex-OWA-SVM_K", "l2-SVM_K"),
)

#: How the parameters of a compared model are chosen.
SELECTIONS: tuple[str, ...] = ("best of the grid", "nested")

_SCORE_COLUMNS = ["dataset", "model", "fold", "score"]


def gap_distribution(cells: pd.DataFrame) -> pd.DataFrame:
    """Describe the certified gaps of the exact models with general weights.

    Returns
    -------
    gaps : DataFrame
        For each dataset, quantifier, alpha and exact model: the number of ``cells``, the shares
        ``optimal``, ``below_0.1%`` and ``below_1%``, and the largest gap, ``worst``. A cell
        without a gap counts as not certified.
    """
    pandas = require("pandas", "A report")
    exact = [model for model in paper.MODELS if paper.is_exact(model)]
    general = cells[cells["model"].isin(exact) & (cells["convex"] == 0)]
    rows = []
    for dataset in paper.DATASETS:
        of_dataset = general[general["dataset"] == dataset]
        for quantifier in paper.QUANTIFIERS:
            of_family = of_dataset[of_dataset["quantifier"] == quantifier]
            for (alpha, model), part in of_family.groupby(["alpha", "model"], sort=True):
                rows.append(
                    {
                        "dataset": dataset,
                        "quantifier": quantifier,
                        "alpha": alpha,
                        "model": model,
                        "cells": len(part),
                        "optimal": float((part["status"] == "optimal").mean()),
                        "below_0.1%": float((part["gap"] <= 1e-3).mean()),
                        "below_1%": float((part["gap"] <= 1e-2).mean()),
                        "worst": float(part["gap"].max()),
                    }
                )
    columns = ["dataset", "quantifier", "alpha", "model", "cells", "optimal"]
    return pandas.DataFrame(rows, columns=[*columns, "below_0.1%", "below_1%", "worst"])


def best_fold_scores(cells: pd.DataFrame, points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the scores of the best parameters on the shuffled folds, fold by fold.

    Returns
    -------
    scores : DataFrame
        Columns ``dataset``, ``model``, ``fold`` and ``score``, in percent.
    """
    winners = best_parameters(points[points["folds"] == "shuffled"], metric)
    scores = winners[["dataset", "folds", "model", *PARAMETERS]].merge(
        cells, on=["dataset", "folds", "model", *PARAMETERS]
    )
    return _scores(scores, metric)


def nested_fold_scores(cells: pd.DataFrame, inner: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the scores of parameters chosen without the test fold.

    In every outer fold the point of the grid with the best mean over the inner folds is taken, and
    its score on the outer test samples counts. The columns are those of :func:`best_fold_scores`.
    """
    means = inner.assign(**{metric: inner[metric].round(11)})
    chosen = best_parameters(means, metric, ("dataset", "model", "outer_fold"), N_INNER_FOLDS)
    chosen = chosen[["dataset", "model", "outer_fold", *PARAMETERS]].rename(
        columns={"outer_fold": "fold"}
    )
    outer = cells[cells["folds"] == "shuffled"]
    return _scores(chosen.merge(outer, on=["dataset", "model", "fold", *PARAMETERS]), metric)


def _scores(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    scores = rows.assign(score=100.0 * rows[metric])[_SCORE_COLUMNS]
    return scores.sort_values(_SCORE_COLUMNS[:3]).reset_index(drop=True)


def paired_comparisons(scores: pd.DataFrame) -> pd.DataFrame:
    """Test the exact models against the others over the same folds.

    Parameters
    ----------
    scores : DataFrame
        From :func:`best_fold_scores` or :func:`nested_fold_scores`.

    Returns
    -------
    comparisons : DataFrame
        One row per dataset and pair of :data:`PAIRS` whose ten folds are there: the fields of
        :class:`owasvm.experiments.statistics.PairedTest`, and both p-values after Holm's
        correction over all rows, ``t_holm`` and ``wilcoxon_holm``.
    """
    pandas = require("pandas", "A report")
    vectors = {
        key: part.sort_values("fold")["score"].to_numpy()
        for key, part in scores.groupby(["dataset", "model"])
        if part["fold"].nunique() == paper.N_FOLDS
    }
    rows: list[dict[str, Any]] = []
    for dataset in paper.DATASETS:
        for first, second in PAIRS:
            both = [vectors.get((dataset, model)) for model in (first, second)]
            if both[0] is None or both[1] is None:
                continue
            test = compare_folds(both[0], both[1], 1.0 / (paper.N_FOLDS - 1))
            rows.append({"dataset": dataset, "first": first, "second": second, **vars(test)})
    columns = ["dataset", "first", "second", "mean_difference", "t", "t_p_value"]
    columns += ["wilcoxon_p_value", "wins", "draws", "losses"]
    frame = pandas.DataFrame(rows, columns=columns)
    frame["t_holm"] = holm(frame["t_p_value"].tolist())
    frame["wilcoxon_holm"] = holm(frame["wilcoxon_p_value"].tolist())
    return frame
