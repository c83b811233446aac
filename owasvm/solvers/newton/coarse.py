"""A start for many samples: the solution on a share of them.

A tenth of the samples, each paying for ten, has nearly the same classifier, at a tenth of the
cost of a step. The steps on all samples begin there, with the dual point that the classifier's
ranks ask for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.grouping import GroupedCosts, parts_of
from owasvm.losses import RankedLoss
from owasvm.problem import Costs, OWAProblem, PlainCosts
from owasvm.samples import Vector
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate, cold_start, minimise

IntArray = NDArray[np.int64]

__all__ = ["start_on_share"]

# One sample out of so many.
_SHARE = 10
# Below this many samples a step costs too little for it to pay.
_WORTH_A_SHARE = 100_000
# A share of fewer rows per feature has another classifier: 500,000 sparse rows of 50,000 features
# took 50 steps from there, 42 from a cold start.
_ROWS_PER_FEATURE = 100
# Gap on the share. n = 400,000, d = 50, six fits: 11 steps on average with it, 12.3 with 1e-3,
# 13.3 with 1e-2, 14.3 from a cold start; a smaller one says nothing more about the whole.
_ACCURACY = 1e-4


def start_on_share(
    problem: OWAProblem, task: ConvexTask, loss: RankedLoss, max_iter: int, clock: Clock
) -> Iterate | None:
    """Where steps on all samples begin; None where a share of them would not help.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    task : ConvexTask
        The same as the Newton core takes it.
    loss : RankedLoss
        Its loss.
    max_iter : int
        Newton steps on the share, at most.
    clock : Clock
        Of the solve.

    Returns
    -------
    start : Iterate or None
    """
    n_samples = problem.n_samples
    features = problem.features
    if features is None or problem.costs.sample_weight is not None:
        return None
    if n_samples < max(_WORTH_A_SHARE, _ROWS_PER_FEATURE * features.shape[1]):
        return None
    costs, drawn = _draw_share(problem.costs)
    y = problem.y[drawn]
    if y.min() == y.max():
        return None
    share = OWAProblem(y, costs, samples=problem.samples.take(drawn), loss=problem.loss)
    small = ConvexTask(
        share.samples.operator(), y, share.ranked_loss(), np.ones(y.size), tuning=task.tuning
    )
    found = minimise(small, cold_start(small), _ACCURACY, max_iter, clock)
    return _spread(task, loss, found, y.size / n_samples)


def _draw_share(costs: Costs) -> tuple[Costs, IntArray]:
    """Some samples of each group, each with the costs of as many ranks as it stands for."""
    rng = np.random.default_rng(0)
    parts, drawn, begin = [], [], 0
    for group, part in parts_of(costs):
        size = max(group.size // _SHARE, 1)
        starts = np.linspace(0, group.size, size + 1).astype(np.int64)[:-1]
        kept = rng.permutation(group.size)[:size]
        kept.sort()
        parts.append(
            (np.arange(begin, begin + size), PlainCosts(np.add.reduceat(part.by_rank(), starts)))
        )
        drawn.append(group[kept])
        begin += size
    if len(parts) == 1:
        return parts[0][1], drawn[0]
    return GroupedCosts(parts, costs.C), np.concatenate(drawn)


def _spread(task: ConvexTask, loss: RankedLoss, found: Iterate, share: float) -> Iterate:
    """The classifier of a share, with coefficients for all samples."""
    w = Vector(np.empty(0), np.empty(0), found.w.weight)
    task.operator.complete(w)
    dual = loss.subgradient(task.margin - task.y * (w.scores + found.intercept))
    # They belong to w as soon as a full step was made.
    w.coef = task.target(dual)
    penalty = min(max(share * found.penalty, task.first_penalty), task.max_penalty)
    return Iterate(w=w, intercept=found.intercept, dual=dual, penalty=penalty)
