r"""Branching on who gets which cost, for few samples or few different costs.

Write the costs as ``c = p + r``, p the rises added up, r non-increasing. By the rearrangement
inequality ``Phi_r`` is the smallest of the sums ``sum_i r_pi(i) xi_i`` over all permutations, so

.. math:: \min F = \min_\pi \min_{w, b}\ \tfrac12 |w|^2 + \Phi_p(\xi) + \sum_i r_{\pi(i)} \xi_i ,

with no condition on the order of the deviations. A negative entry contributes ``-|r| xi``, the
smaller of 0 and ``-|r| u``: two convex cases.

A node has handed out some entries. All other samples get the smallest entry that is left, if it
is positive; negative ones are left with p, as costs of the last ranks, below which
there is a non-decreasing minorant. That is a convex problem; with equal entries left it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import proven_value
from owasvm.losses import OffsetHinge
from owasvm.problem import OWAProblem
from owasvm.rank_split import pointwise_minorant, rising_part
from owasvm.samples import Operator
from owasvm.solvers import newton
from owasvm.solvers._clock import Clock
from owasvm.solvers.branch_and_bound.tree import Node, Tree
from owasvm.solvers.dca import Candidate, evaluate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Values of r closer than this, relative to the largest cost, count as one.
SAME = 1e-12

# Steps of convex problems that decide, and of those that only bound: costs of many magnitudes can
# make them slow, and any step gives a valid bound.
_MAX_STEPS = 1000
_STEPS_FOR_A_BOUND = 60
# Accuracy of the convex problems that decide.
_EXACT = 1e-9


def falling_values(costs: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different values of the falling part, ascending, and how often each occurs."""
    falling = costs - rising_part(costs)
    step = SAME * float(np.abs(costs).max())
    values, counts = np.unique(np.round(falling / step) * step, return_counts=True)
    return values, counts.astype(np.int64)


def log_assignments(costs: FloatArray) -> float:
    """Logarithm of the number of ways to hand out the falling part."""
    values, counts = falling_values(costs)
    ways = math.lgamma(costs.size + 1) - sum(math.lgamma(count + 1) for count in counts)
    return ways + math.log(2.0) * float(counts[values < 0.0].sum())


def bound_and_candidate(
    problem: OWAProblem,
    task: newton.ConvexTask,
    loss: OffsetHinge,
    iterate: newton.Iterate,
) -> tuple[float, Candidate]:
    """What an iterate of a convex problem below ours proves, and the classifier it stands for.

    `loss` is that of the task.
    """
    operator = task.operator
    linear = np.zeros(problem.n_samples) if task.linear is None else task.linear
    bounds, candidates = [0.0], []
    # Where w says little about its coefficients, as at w = 0, the multiplier says more.
    for guess in (task.dual_of(iterate.w), iterate.dual):
        charged = newton.project_balanced(task, guess)
        coef = charged - linear
        excess = loss.excess(charged)
        bounds.append(proven_value(problem, coef, float(charged.sum()), excess))
        intercept = iterate.intercept - operator.intercept_shift(task.y * coef)
        candidates.append(evaluate(problem, coef, intercept))
    return max(bounds), min(candidates, key=lambda one: one.objective)


@dataclass
class RankNode(Node):
    """Samples that took the first entries, in their order.

    ``counted`` says of each whether its entry acts; only negative ones may not.
    """

    samples: tuple[int, ...]
    counted: tuple[bool, ...]
    start: newton.Iterate | None


def _rarest_first(entries: FloatArray) -> FloatArray:
    """The entries with the most frequent non-negative one at the end: whoever is left gets it."""
    values, counts = np.unique(entries[entries >= 0.0], return_counts=True)
    common = values[int(np.argmax(counts))]
    return np.concatenate((entries[entries != common], entries[entries == common]))


class RankBranching:
    """Hands out the falling part of the costs, the most frequent entry last.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    operator : Operator
        Its data, not centred: negative entries add a linear term.
    accuracy : float
        Relative accuracy of the convex problems.
    """

    def __init__(self, problem: OWAProblem, operator: Operator, accuracy: float) -> None:
        costs = problem.costs.by_rank()
        self._problem = problem
        self._operator = operator
        self._accuracy = accuracy
        self._rising = rising_part(costs)
        falling = costs - self._rising
        # Differences of rounding size would only multiply the ways to hand them out.
        falling[np.abs(falling) <= 1e-14 * float(costs.max())] = 0.0
        self._falling = _rarest_first(falling[::-1])

    def root(self) -> RankNode:
        """Nobody has a rank yet."""
        return RankNode(0.0, (), (), None)

    def expand(self, node: RankNode, tree: Tree) -> Sequence[RankNode]:
        """Bound a node; close it, or hand out the next entry in all ways."""
        tree.n_nodes += 1
        left = self._falling[len(node.samples) :]
        exact = left.size == 0 or (left[0] >= 0.0 and bool(np.all(left == left[0])))
        accuracy = _EXACT if exact else self._accuracy
        bound, candidate, iterate = self._bounded(node, accuracy, tree.clock)
        tree.propose(candidate)
        bound = max(bound, node.bound)
        if exact or bound >= tree.target:
            return [RankNode(bound, node.samples, node.counted, None, settled=exact)]
        return self._children(node, bound, iterate)

    def _children(self, node: RankNode, bound: float, iterate: newton.Iterate) -> list[RankNode]:
        taken = len(node.samples)
        entry = self._falling[taken]
        # Equal entries are interchangeable: hand them out in the order of the samples.
        same = taken > 0 and self._falling[taken - 1] == entry
        first = node.samples[-1] + 1 if same else 0
        cases = (True, False) if entry < 0.0 else (True,)
        return [
            RankNode(bound, (*node.samples, sample), (*node.counted, counted), iterate)
            for sample in range(first, self._problem.n_samples)
            if sample not in node.samples
            for counted in cases
        ]

    def _bounded(
        self, node: RankNode, accuracy: float, clock: Clock
    ) -> tuple[float, Candidate, newton.Iterate]:
        problem = self._problem
        n_samples = problem.n_samples
        taken = len(node.samples)
        left = self._falling[taken:]
        offsets = np.full(n_samples, max(float(left.min()), 0.0) if left.size else 0.0)
        linear = np.zeros(n_samples)
        for sample, entry, counted in zip(node.samples, self._falling, node.counted, strict=False):
            offsets[sample] = max(entry, 0.0)
            linear[sample] = -entry if counted and entry < 0.0 else 0.0
        negative = np.sort(np.minimum(left, 0.0))[::-1]
        charged = self._rising.copy()
        charged[n_samples - negative.size :] += negative
        ranked = pointwise_minorant(np.maximum(charged, 0.0))
        loss = OffsetHinge(ranked, offsets)
        task = newton.ConvexTask(
            self._operator,
            problem.y,
            loss,
            np.ones(n_samples),
            linear if linear.any() else None,
        )
        start = newton.cold_start(task)
        if node.start is not None and task.linear is None:
            start.w = self._operator.vector(node.start.w.coef.copy())
            start.intercept = node.start.intercept
            start.dual = np.maximum(problem.y * node.start.w.coef, 0.0)
        n_steps = _MAX_STEPS if accuracy <= _EXACT else _STEPS_FOR_A_BOUND
        iterate = newton.minimise(task, start, accuracy, n_steps, clock)
        return *bound_and_candidate(problem, task, loss, iterate), iterate
