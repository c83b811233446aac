r"""Branching on how much mass is ranked above a sample: shares of the falling costs with masses.

Let the falling part r (:mod:`~owasvm.solvers.general.assignments`) have no negative entry. A
sample with mass t ranked above it gets ``R(t + s_i) - R(t)``, which never falls with t. A node
knows an interval of t for each sample; charging every sample the lower end is a convex problem
below all orders of the node. The sample with the most at stake, deviation times width of the
charges, is split. With trimmed weights that is the question whether to keep or to trim it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import costs_by_profile
from owasvm.losses import OffsetHinge
from owasvm.solvers.general.assignments import SAME, bound_shares, split_shares
from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Node

FloatArray = NDArray[np.float64]

# Sums of masses, relative to the total, may be off by rounding.
_ROUNDING = 1e-11
# Charges closer than this, relative to the dearest unit, are equal.
_EQUAL = 1e-10
# Halvings of an interval in search of the middle of its charges.
_N_HALVINGS = 50


@dataclass
class PositionNode(Node):
    """Intervals of the mass ranked above each sample."""

    low: FloatArray
    high: FloatArray
    start: Candidate


class PositionBranching:
    """Splits intervals of the mass above, for falling costs of which none is negative."""

    def __init__(self, search: Search, mass: FloatArray) -> None:
        self._search = search
        self._mass = mass
        self._total = float(mass.sum())
        profile = search.profile
        rising, falling = split_shares(profile.density)
        self._rising = costs_by_profile(mass, profile.with_density(rising))
        self._edges = profile.edges
        self._dearest = float(profile.density.max())
        self._sums = profile.with_density(falling).sums

    def make_root(self) -> PositionNode:
        """Everybody may be anywhere."""
        high = np.maximum(self._total - self._mass, 0.0)
        return PositionNode(0.0, np.zeros(self._mass.size), high, self._search.incumbent)

    def _charges(self, above: FloatArray, mass: FloatArray) -> FloatArray:
        """What samples get with a mass above them."""
        ends = np.interp(above + mass, self._edges, self._sums)
        return ends - np.interp(above, self._edges, self._sums)

    def expand(self, node: PositionNode) -> Sequence[PositionNode]:
        """Bound a node; close it, or split the interval of one sample."""
        charges = self._charges(node.low, self._mass)
        bound, candidate = self._bound(node, charges)
        propose(self._search, candidate)
        bound = max(bound, node.bound)
        widths = self._charges(node.high, self._mass) - charges
        widths[widths <= _EQUAL * self._dearest * self._mass] = 0.0
        exact = not widths.any()
        if exact or bound >= self._search.target:
            return [replace(node, bound=bound, settled=exact)]
        stakes = widths * candidate.deviations
        if not stakes.any():
            # Nothing that is open is violated: what is left to decide does not matter here.
            stakes = widths
        return self._halve(replace(node, bound=bound, start=candidate), int(np.argmax(stakes)))

    def _halve(self, node: PositionNode, sample: int) -> list[PositionNode]:
        below, above = self._find_middle(node, sample)
        little, much = node.high.copy(), node.low.copy()
        little[sample] = below
        much[sample] = above
        ends = ((node.low.copy(), little), (much, node.high.copy()))
        return [
            replace(node, low=low, high=high) for low, high in ends if self._propagate(low, high)
        ]

    def _find_middle(self, node: PositionNode, sample: int) -> tuple[float, float]:
        """Where to split: no sum of masses lies between both numbers."""
        low, high = node.low[sample], node.high[sample]
        mass = self._mass[sample : sample + 1]
        first, last = (float(self._charges(np.array([t]), mass)[0]) for t in (low, high))
        goal = 0.5 * (first + last)
        if self._search.profile.has_all_sums:
            near = _ROUNDING * self._total
            sums = self._edges[(self._edges >= low - near) & (self._edges <= high + near)]
            if sums.size > 1:
                charges = self._charges(sums, mass)
                k = min(max(int(np.searchsorted(charges, goal)), 1), sums.size - 1)
                return float(sums[k - 1]) + near, float(sums[k]) - near
        for _ in range(_N_HALVINGS):
            middle = 0.5 * (low + high)
            if float(self._charges(np.array([middle]), mass)[0]) < goal:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high), 0.5 * (low + high)

    def _propagate(self, low: FloatArray, high: FloatArray) -> bool:
        """Tighten intervals by how much mass fits above and below; False if that is impossible.

        Samples that end within the upper mass t fill it. Whoever does not fit in beside them ends
        behind it, and they are all above him. The same holds from below.
        """
        mass, total = self._mass, self._total
        near = _ROUNDING * total
        ends = high + mass
        for t in np.unique(ends[ends < total - near]):
            inside = high + mass <= t + near
            filled = float(mass[inside].sum())
            if filled > t + near * (1 + mass.size):
                return False
            others = ~inside & (filled + mass > t + near * (1 + mass.size))
            low[others] = np.maximum(low[others], np.maximum(t - mass[others], filled) - near)
        for t in np.unique(low[low > near]):
            inside = low >= t - near
            filled = float(mass[inside].sum())
            if filled > total - t + near * (1 + mass.size):
                return False
            others = ~inside & (filled + mass > total - t + near * (1 + mass.size))
            most = np.minimum(t, total - filled - mass[others]) + near
            high[others] = np.minimum(high[others], most)
        np.maximum(low, 0.0, out=low)
        return bool(np.all(low <= high + near * (1 + mass.size)))

    def _bound(self, node: PositionNode, charges: FloatArray) -> tuple[float, Candidate]:
        search = self._search
        # Rounded charges must not exceed what they stand for.
        offsets = np.maximum(charges - SAME * self._dearest * self._mass, 0.0)
        if not offsets.any() and self._rising.total <= 0.0:
            return 0.0, search.incumbent
        loss = OffsetHinge(self._rising, offsets)
        return bound_shares(search, loss, node.start)
