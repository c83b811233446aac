"""Convex problems on the way of a search: where they start, and their limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers import newton
from owasvm.solvers.general.search import Search

FloatArray = NDArray[np.float64]


def start_at(task: newton.ConvexTask, coef: FloatArray, intercept: float) -> newton.Iterate:
    """Start at a classifier."""
    signed = task.y * coef
    return newton.Iterate(
        w=task.operator.vector(signed),
        intercept=intercept + task.operator.intercept_shift(signed),
        dual=np.maximum(coef, 0.0),
        penalty=task.first_penalty,
    )


def resume(search: Search, task: newton.ConvexTask, known: newton.Iterate) -> newton.Iterate:
    """Start where a similar problem ended, at a share of its last penalty."""
    penalty = search.tuning.restart_share * known.penalty
    return newton.Iterate(
        w=known.w.copy(),
        intercept=known.intercept,
        dual=known.dual,
        penalty=min(max(penalty, task.first_penalty), task.max_penalty),
    )


def minimise(
    search: Search,
    task: newton.ConvexTask,
    start: newton.Iterate,
    accuracy: float,
    max_steps: int | None = None,
) -> newton.Iterate:
    """Solve a convex problem within the limits of the search and, if given, fewer steps."""
    most = search.settings.max_iter
    most = most if max_steps is None else min(most, max_steps)
    return newton.minimised(task, start, accuracy, most, search.clock)
