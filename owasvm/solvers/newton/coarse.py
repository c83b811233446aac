"""A start for many samples: the solution on a share of them.

A tenth of the samples, each paying for ten, has nearly the same classifier, at a tenth of the
cost of a step, or a thousandth from kernel values. The steps on all samples begin there, with the
dual point that the classifier's ranks ask for. Where kernel values are computed on demand, the
share is one whose systems fit into the cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.grouping import GroupedCosts, parts_of
from owasvm.losses import RankedLoss
from owasvm.problem import Costs, OWAProblem, PlainCosts
from owasvm.samples import GramSamples, OnDemandSamples, Vector
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate, cold_start, minimise

IntArray = NDArray[np.int64]

__all__ = ["start_on_share"]

# One sample out of so many.
_SHARE = 10
# Below this many samples a step costs too little for it to pay.
_WORTH_A_SHARE = 100_000
# From kernel values the first steps, in which nearly all samples are active, cost most of a fit.
# Ten classes of digits, n = 1,797, C = 10: 0.3 s instead of 1.3 s. Below, a share says too little
# about the whole: 35 fits of 1,000 to 1,300 samples take a fifth less steps and time without.
_WORTH_A_SHARE_OF_GRAM = 1_500
# A share of fewer rows per feature has another classifier: 500,000 sparse rows of 50,000 features
# took 50 steps from there, 42 from a cold start.
_ROWS_PER_FEATURE = 100
# Gap on the share. n = 400,000, d = 50, six fits: 11 steps on average with it, 12.3 with 1e-3,
# 13.3 with 1e-2, 14.3 from a cold start; a smaller one says nothing more about the whole. A share
# of a kernel's samples says less: digits took 10 to 40 % more steps with 1e-4 than with 1e-2.
_ACCURACY = 1e-4
_ACCURACY_OF_GRAM = 1e-2
# The penalty there, relative to where the share ended: digits took 1.5 times the steps with 1. On
# demand the number of active samples makes steps dear, and a larger penalty has fewer: n = 50,000,
# clusters, 38 s instead of 49 s; n = 20,000, overlap, 10.5 s instead of 15.4 s.
_PENALTY_OF_GRAM = 0.1
_PENALTY_ON_DEMAND = 1.0


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
    spacing = 0 if problem.costs.sample_weight is not None else _choose_spacing(problem, task)
    if spacing == 0:
        return None
    costs, drawn = _draw_share(problem.costs, spacing)
    y = problem.y[drawn]
    if y.min() == y.max():
        return None
    share = OWAProblem(y, costs, samples=problem.samples.take(drawn), loss=problem.loss)
    small = ConvexTask(
        share.samples.operator().condense(share.n_samples),
        y,
        share.ranked_loss(),
        np.ones(1),
        tuning=task.tuning,
    )
    accuracy = _ACCURACY_OF_GRAM if problem.features is None else _ACCURACY
    found = minimise(small, cold_start(small), accuracy, max_iter, clock)
    if problem.features is None:
        return _spread_coefficients(task, loss, found, small, drawn)
    return _spread(task, loss, found, y.size / problem.n_samples)


def _choose_spacing(problem: OWAProblem, task: ConvexTask) -> int:
    """How many samples one of the share stands for; 0 where it is not worth its time."""
    n_samples, samples = problem.n_samples, problem.samples
    if problem.features is not None:
        least = max(_WORTH_A_SHARE, _ROWS_PER_FEATURE * problem.features.shape[1])
        return _SHARE if n_samples >= least else 0
    if n_samples < _WORTH_A_SHARE_OF_GRAM:
        return 0
    if isinstance(samples, GramSamples):
        return _SHARE
    # A kernel of few columns has cheap steps anyway.
    if not isinstance(samples, OnDemandSamples) or isinstance(task.operator, FeatureOperator):
        return 0
    return max(_SHARE, -(-n_samples // samples.n_in_cache))


def _draw_share(costs: Costs, spacing: int) -> tuple[Costs, IntArray]:
    """Some samples of each group, each with the costs of as many ranks as it stands for."""
    rng = np.random.default_rng(0)
    parts, drawn, begin = [], [], 0
    for group, part in parts_of(costs):
        size = max(group.size // spacing, 1)
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


def _spread_coefficients(
    task: ConvexTask, loss: RankedLoss, found: Iterate, small: ConvexTask, drawn: IntArray
) -> Iterate:
    """The same from kernel values, where w is its coefficients."""
    coef = np.zeros(task.y.size)
    coef[drawn] = found.w.coef
    w = task.operator.vector(coef)
    # Both operators have moved the samples, each by the mean of its own.
    intercept = found.intercept - small.operator.intercept_shift(found.w.coef)
    intercept += task.operator.intercept_shift(coef)
    dual = loss.subgradient(task.margin - task.y * (w.scores + intercept))
    part = _PENALTY_OF_GRAM if task.operator.is_gram else _PENALTY_ON_DEMAND
    penalty = min(max(part * found.penalty, task.first_penalty), task.max_penalty)
    return Iterate(w=w, intercept=intercept, dual=dual, penalty=penalty)
