r"""Branching on how much of the falling costs a sample gets: much or little, keep or trim.

The falling part r (:mod:`~owasvm.solvers.general.assignments`) must not be negative. A node knows
an interval of the different values of r for each sample. Charging every sample the lower end is a
convex problem below all assignments of the node. The sample with the most at stake, deviation
times width, is split. With trimmed weights that is the question whether to keep or to trim the
worst sample; once as many are trimmed as there are zeros, all others are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import PlainCosts
from owasvm.losses import OffsetHinge
from owasvm.solvers.general.assignments import SAME, bound_shares, falling_values
from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.rank_split import rising_part
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Node

IntArray = NDArray[np.int64]


@dataclass
class ShareNode(Node):
    """Intervals of the values each sample may get, by their indices."""

    lowest: IntArray
    highest: IntArray
    start: Candidate


class ShareBranching:
    """Splits intervals of the falling costs, none of which may be negative."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._rising = rising_part(search.costs)
        self._values, counts = falling_values(search.costs)
        # Rounded values are charged only where they do not exceed any that they stand for.
        self._charges = np.maximum(self._values - SAME * float(search.costs.max()), 0.0)
        self._at_most = np.cumsum(counts)

    def make_root(self) -> ShareNode:
        """Everybody may get anything."""
        n_samples = self._search.problem.n_samples
        lowest = np.zeros(n_samples, dtype=np.int64)
        highest = np.full(n_samples, self._values.size - 1)
        return ShareNode(0.0, lowest, highest, self._search.incumbent)

    def expand(self, node: ShareNode) -> Sequence[ShareNode]:
        """Bound a node; close it, or split the interval of one sample."""
        bound, candidate = self._bound(node)
        propose(self._search, candidate)
        bound = max(bound, node.bound)
        widths = self._values[node.highest] - self._values[node.lowest]
        exact = not widths.any()
        if exact or bound >= self._search.target:
            return [replace(node, bound=bound, settled=exact)]
        stakes = widths * candidate.deviations
        if not stakes.any():
            # Nothing that is open is violated: what is left to decide does not matter here.
            stakes = widths
        return self._halve(replace(node, bound=bound, start=candidate), int(np.argmax(stakes)))

    def _halve(self, node: ShareNode, sample: int) -> list[ShareNode]:
        middle = int(node.lowest[sample] + node.highest[sample]) // 2
        little, much = node.highest.copy(), node.lowest.copy()
        little[sample] = middle
        much[sample] = middle + 1
        ends = ((node.lowest.copy(), little), (much, node.highest.copy()))
        return [
            replace(node, lowest=lowest, highest=highest)
            for lowest, highest in ends
            if self._propagate(lowest, highest)
        ]

    def _propagate(self, lowest: IntArray, highest: IntArray) -> bool:
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

    def _bound(self, node: ShareNode) -> tuple[float, Candidate]:
        search = self._search
        offsets = self._charges[node.lowest]
        if not offsets.any() and self._rising[-1] <= 0.0:
            return 0.0, search.incumbent
        loss = OffsetHinge(PlainCosts(self._rising), offsets)
        return bound_shares(search, loss, node.start)
