r"""Costs that are handed out to samples: what rules that branch on it share.

Write the costs as ``c = p + r``, p the rises added up, r non-increasing. By the rearrangement
inequality ``Phi_r`` is the smallest of the sums ``sum_i r_pi(i) xi_i`` over all permutations, so

.. math:: \min F = \min_\pi \min_{w, b}\ \tfrac12 |w|^2 + \Phi_p(\xi) + \sum_i r_{\pi(i)} \xi_i ,

with no condition on the order of the deviations.

With sample weights ``R(t)``, the tail sums of r, are convex in the mass t, a sample with mass t
ranked above it gets ``R(t + s_i) - R(t)``, and the minimum is over all orders of the samples.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import proven_value
from owasvm.losses import OffsetHinge
from owasvm.problem import OWAProblem
from owasvm.samples import Memory, Operator
from owasvm.solvers import newton
from owasvm.solvers.general.candidates import Candidate, evaluate
from owasvm.solvers.general.convex import minimise, start_at
from owasvm.solvers.general.rank_split import pointwise_minorant, rising_part
from owasvm.solvers.general.search import Search
from owasvm.solvers.newton import project_balanced

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Values of r closer than this, relative to the largest cost, are equal up to rounding.
SAME = 1e-12
# A profile of masses is a little below its share function in places, which bends it there. What
# may be lost to that, as a share of all costs.
_NEGLIGIBLE = 1e-3


def falling_values(costs: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different values of the falling part, ascending, and how often each occurs."""
    falling = costs - rising_part(costs)
    step = SAME * float(np.abs(costs).max())
    values, counts = np.unique(np.round(falling / step) * step, return_counts=True)
    return values, counts.astype(np.int64)


def log_assignments(costs: FloatArray) -> float:
    """Logarithm of the number of ways to hand out the falling part by ranks."""
    values, counts = falling_values(costs)
    ways = math.lgamma(costs.size + 1) - sum(math.lgamma(count + 1) for count in counts)
    return ways + math.log(2.0) * float(counts[values < 0.0].sum())


def has_few_assignments(search: Search) -> bool:
    """Whether the ways to hand out the falling part can be enumerated implicitly."""
    most = search.tuning.tree.max_log_assignments
    if search.problem.costs.sample_weight is None:
        return log_assignments(search.costs) <= most
    n_samples = search.problem.n_samples
    cases = 0.0 if has_shares(search) else n_samples * math.log(2.0)
    return math.lgamma(n_samples + 1) + cases <= most


def has_shares(search: Search) -> bool:
    """Whether no entry of the falling part is negative."""
    if search.problem.costs.sample_weight is None:
        return bool(falling_values(search.costs)[0][0] >= 0.0)
    rising, falling = split_shares(search.costs)
    kept = float((rising + falling) @ search.profile.width)
    return kept >= (1.0 - _NEGLIGIBLE) * search.profile.total


def split_shares(costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Costs as a part that never falls and one that never rises, neither negative, or a bit less.

    Nothing is lost where the falling part has no negative entry.
    """
    rising = pointwise_minorant(costs)
    return rising, np.minimum.accumulate(costs - rising)


def assess(
    problem: OWAProblem, task: newton.ConvexTask, loss: OffsetHinge, iterate: newton.Iterate
) -> tuple[float, Candidate]:
    """What an iterate of a convex problem below ours proves, and the classifier it stands for.

    `loss` is that of the task.
    """
    operator = task.operator
    linear = np.zeros(problem.n_samples) if task.linear is None else task.linear
    bounds, candidates = [0.0], []
    # Where w says little about its coefficients, as at w = 0, the multiplier says more.
    for guess in (task.dual_of(iterate.w), iterate.dual):
        charged = project_balanced(task, guess)
        coef = charged - linear
        excess = loss.excess(charged)
        bounds.append(proven_value(problem, coef, float(charged.sum()), excess))
        intercept = iterate.intercept - operator.intercept_shift(task.y * coef)
        candidates.append(evaluate(problem, coef, intercept))
    return max(bounds), min(candidates, key=lambda one: one.objective)


def bound_case(
    search: Search,
    loss: OffsetHinge,
    linear: FloatArray,
    known: newton.Iterate | None,
    operator: Operator,
    memory: Memory,
    *,
    exact: bool,
) -> tuple[float, Candidate, newton.Iterate]:
    """Bound a node that charges hinges and, by `linear`, tangents of negative ones.

    `known` is the iterate of the node above, to start from.
    """
    problem, tuning = search.problem, search.tuning.tree
    charged = linear if linear.any() else None
    margin = np.ones(problem.n_samples)
    task = newton.ConvexTask(operator, problem.y, loss, margin, charged, memory=memory)
    if known is not None and task.linear is None:
        start = start_at(task, problem.y * known.w.coef, known.intercept)
    else:
        start = newton.cold_start(task)
    if exact:
        iterate = minimise(search, task, start, tuning.exact)
    else:
        # Costs of many magnitudes can make it slow, and any step gives a valid bound.
        iterate = minimise(search, task, start, search.accuracy, tuning.steps_to_bound)
    return *assess(problem, task, loss, iterate), iterate


def bound_shares(search: Search, loss: OffsetHinge, known: Candidate) -> tuple[float, Candidate]:
    """Bound a node that charges hinges alone, from the classifier of the node above."""
    problem = search.problem
    margin = np.ones(problem.n_samples)
    task = newton.ConvexTask(search.operator, problem.y, loss, margin, memory=search.memory)
    start = start_at(task, known.coef, known.intercept)
    return assess(problem, task, loss, minimise(search, task, start, search.accuracy))
