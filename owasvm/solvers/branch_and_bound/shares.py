r"""Branching on how much of the falling costs a sample gets: much or little, keep or trim.

As in :mod:`~owasvm.solvers.branch_and_bound.ranks`, with ``c = p + r`` and r non-increasing and
not negative,

.. math:: \min F = \min_\pi \min_{w, b}\ \tfrac12 |w|^2 + \Phi_p(\xi) + \sum_i r_{\pi(i)} \xi_i .

A node knows an interval of the different values of r for each sample. Charging every sample the
lower end is a convex problem below all assignments of the node. The sample with the most at stake,
deviation times width, is split. With trimmed weights that is the question whether to keep or
to trim the worst sample; once as many are trimmed as there are zeros, all others are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.losses import OffsetHinge
from owasvm.problem import OWAProblem
from owasvm.rank_split import rising_part
from owasvm.samples import Operator
from owasvm.solvers import newton
from owasvm.solvers._clock import Clock
from owasvm.solvers.branch_and_bound.ranks import SAME, bound_and_candidate, falling_values
from owasvm.solvers.branch_and_bound.tree import Node, Tree
from owasvm.solvers.dca import Candidate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MAX_STEPS = 1000


@dataclass
class ShareNode(Node):
    """Intervals of the values each sample may get, by their indices."""

    lowest: IntArray
    highest: IntArray
    start: FloatArray
    intercept: float


class ShareBranching:
    """Splits intervals of the falling costs.

    Parameters
    ----------
    problem : OWAProblem
        The problem. The falling part of its costs is not negative.
    operator : Operator
        Its data.
    incumbent : Candidate
        A classifier, whose violations matter as long as nothing is charged.
    accuracy : float
        Relative accuracy of the convex problems.
    """

    def __init__(
        self, problem: OWAProblem, operator: Operator, incumbent: Candidate, accuracy: float
    ) -> None:
        costs = problem.costs.by_rank()
        self._problem = problem
        self._operator = operator
        self._incumbent = incumbent
        self._accuracy = accuracy
        self._rising = rising_part(costs)
        self._values, counts = falling_values(costs)
        # Rounded values are charged only where they do not exceed any that they stand for.
        self._charges = np.maximum(self._values - SAME * float(costs.max()), 0.0)
        self._at_most = np.cumsum(counts)

    def root(self) -> ShareNode:
        """Everybody may get anything."""
        n_samples = self._problem.n_samples
        lowest = np.zeros(n_samples, dtype=np.int64)
        highest = np.full(n_samples, self._values.size - 1)
        return ShareNode(0.0, lowest, highest, self._incumbent.coef, self._incumbent.intercept)

    def expand(self, node: ShareNode, tree: Tree) -> Sequence[ShareNode]:
        """Bound a node; close it, or split the interval of one sample."""
        tree.n_nodes += 1
        bound, candidate = self._bounded(node, tree.clock)
        tree.propose(candidate)
        bound = max(bound, node.bound)
        widths = self._values[node.highest] - self._values[node.lowest]
        exact = not widths.any()
        if exact or bound >= tree.target:
            return [ShareNode(bound, node.lowest, node.highest, node.start, 0.0, settled=exact)]
        stakes = widths * candidate.deviations
        if not stakes.any():
            # Nothing that is open is violated: what is left to decide does not matter here.
            stakes = widths
        sample = int(np.argmax(stakes))
        return self._halves(node, bound, sample, candidate)

    def _halves(
        self, node: ShareNode, bound: float, sample: int, candidate: Candidate
    ) -> list[ShareNode]:
        middle = int(node.lowest[sample] + node.highest[sample]) // 2
        little, much = node.highest.copy(), node.lowest.copy()
        little[sample] = middle
        much[sample] = middle + 1
        parts = []
        for lowest, highest in ((node.lowest.copy(), little), (much, node.highest.copy())):
            if self._propagated(lowest, highest):
                parts.append(
                    ShareNode(bound, lowest, highest, candidate.coef, candidate.intercept)
                )
        return parts

    def _propagated(self, lowest: IntArray, highest: IntArray) -> bool:
        """Tighten intervals by how often the values occur; False if that is impossible."""
        n_samples = lowest.size
        for j in range(self._values.size - 1):
            low = highest <= j
            high = lowest > j
            places = int(self._at_most[j])
            if low.sum() > places or high.sum() > n_samples - places:
                return False
            if low.sum() == places:
                lowest[~low] = np.maximum(lowest[~low], j + 1)
            if high.sum() == n_samples - places:
                highest[~high] = np.minimum(highest[~high], j)
        return True

    def _bounded(self, node: ShareNode, clock: Clock) -> tuple[float, Candidate]:
        problem = self._problem
        offsets = self._charges[node.lowest]
        if not offsets.any() and self._rising[-1] <= 0.0:
            return 0.0, self._incumbent
        loss = OffsetHinge(self._rising, offsets)
        task = newton.ConvexTask(
            self._operator,
            problem.y,
            loss,
            np.ones(problem.n_samples),
            None,
        )
        start = newton.cold_start(task)
        start.w = self._operator.vector(problem.y * node.start)
        start.intercept = node.intercept + self._operator.intercept_shift(problem.y * node.start)
        start.dual = np.maximum(node.start, 0.0)
        iterate = newton.minimise(task, start, self._accuracy, _MAX_STEPS, clock)
        return bound_and_candidate(problem, task, loss, iterate)
