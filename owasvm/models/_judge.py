"""A solver's answer becomes figures of ours: objective, lower bound, intercept.

The figures come from :mod:`owasvm.optimality`; added here is the exact intercept for weights in
any order, where the loss over the intercept is piecewise linear but not convex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm import optimality
from owasvm.models._data import rank_costs
from owasvm.problem import OWAProblem

FloatArray = NDArray[np.float64]

# Losses that differ by less, relative to their size, are equal up to rounding.
_EQUAL = 1e-12
_CHUNK = 2_000_000


class Judged(NamedTuple):
    """Objective of a classifier, a lower bound, and the point both belong to."""

    objective: float
    lower_bound: float
    dual: FloatArray
    intercept: float


def judge(problem: OWAProblem, dual: FloatArray, intercept: float | None = None) -> Judged:
    """Figures of the classifier ``w = sum_i a_i y_i phi(x_i)``.

    For convex weights `dual` is made dual feasible first, and the intercept is the best for that
    w. For others the coefficients stay as they are, the intercept becomes the best one, and the
    lower bound is that of :func:`owasvm.optimality.judge`, weak unless `dual` solves the problem
    with the minorant weights.
    """
    if not problem.costs.convex:
        intercept = best_intercept(problem.scores(dual), problem.y, rank_costs(problem))
    found = optimality.judge(problem, np.asarray(dual, dtype=np.float64), intercept)
    return Judged(found.objective, found.lower_bound, found.dual, found.intercept)


def best_intercept(scores: FloatArray, y: FloatArray, costs: FloatArray) -> float:
    """Minimiser over b of ``sum_k costs[k] * xi_(k)``, any order of the costs.

    The loss is piecewise linear in b and bends only where a deviation vanishes or two deviations
    of opposite labels cross, so the least value at those points is the least of all. Of a flat
    stretch the midpoint is returned. O(n^3 log n) for classes of similar size.
    """
    positive, negative = scores[y > 0], scores[y < 0]
    crossings = -0.5 * np.add.outer(positive, negative).ravel()
    bends = np.unique(np.concatenate((y - scores, crossings)))
    losses = np.concatenate(
        [
            np.sort(np.maximum(1.0 - y * (scores + part[:, None]), 0.0), axis=1) @ costs
            for part in np.array_split(bends, 1 + bends.size * y.size // _CHUNK)
        ]
    )
    best = int(np.argmin(losses))
    flat = losses <= losses[best] + _EQUAL * max(1.0, losses[best])
    first, last = best, best
    while first > 0 and flat[first - 1]:
        first -= 1
    while last < bends.size - 1 and flat[last + 1]:
        last += 1
    return float(0.5 * (bends[first] + bends[last]))
