r"""Branching on the order of few weighted samples, whatever the signs of the falling costs.

Samples take their places from the largest deviation down. One with mass t above it gets
``R(t + s_i) - R(t)`` of the falling part r (:mod:`~owasvm.solvers.general.assignments`); where
that is negative it contributes ``-|r| xi``, the smaller of 0 and ``-|r| u``: two convex cases.

A node has given the first places, to a mass T in all. The others get at least the positive part
of r from T on. Its negative part from T on is left with p, as costs of the largest deviations,
below which there is a non-decreasing minorant. That is a convex problem; where r is constant and
not negative from T on, it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import ProfileCosts
from owasvm.losses import OffsetHinge
from owasvm.profiles import Profile
from owasvm.samples import Memory
from owasvm.solvers import newton
from owasvm.solvers.general.assignments import SAME, bound_case
from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.rank_split import pointwise_minorant, rising_part
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Node

FloatArray = NDArray[np.float64]

# Differences of rounding size, relative to the dearest unit: they would only multiply the ways.
_ROUNDING = 1e-10


@dataclass
class OrderNode(Node):
    """Samples at the first places, the largest deviation first.

    ``counted`` says of each whether what it gets acts; only negative charges may not.
    """

    samples: tuple[int, ...]
    counted: tuple[bool, ...]
    start: newton.Iterate | None


class OrderBranching:
    """Gives places to weighted samples, one after the other."""

    def __init__(self, search: Search, mass: FloatArray) -> None:
        self._search = search
        self._mass = mass
        # Not centred: negative charges add a linear term.
        samples = search.problem.samples
        self._operator = samples.operator(centred=False).condense(samples.n_samples)
        self._memory = Memory()
        profile = search.profile
        self._edges = profile.edges
        self._rising = rising_part(profile.density)[::-1]
        self._dearest = float(profile.density.max())
        self._falling = profile.density[::-1] - self._rising
        self._falling[np.abs(self._falling) <= SAME * self._dearest] = 0.0

    def make_root(self) -> OrderNode:
        """Nobody has a place yet."""
        return OrderNode(0.0, (), (), None)

    def _sums(self, density: FloatArray) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(density * np.diff(self._edges))))

    def _charge(self, density: FloatArray, above: FloatArray, mass: FloatArray) -> FloatArray:
        """What a density hands to samples with a mass above them."""
        sums = self._sums(density)
        ends = np.interp(above + mass, self._edges, sums)
        return ends - np.interp(above, self._edges, sums)

    def _is_constant(self, start: float, stop: float) -> bool:
        """Whether the falling part is constant on masses from one to another."""
        near = SAME * float(self._edges[-1])
        inside = (self._edges[1:] > start + near) & (self._edges[:-1] < stop - near)
        return (
            bool(np.ptp(self._falling[inside]) <= _ROUNDING * self._dearest)
            if inside.any()
            else True
        )

    def expand(self, node: OrderNode) -> Sequence[OrderNode]:
        """Bound a node; close it, or give the next place in all ways."""
        placed = float(self._mass[list(node.samples)].sum())
        total = float(self._edges[-1])
        exact = len(node.samples) == self._mass.size or (
            self._falling[-1] >= 0.0 and self._is_constant(placed, total)
        )
        bound, candidate, iterate = self._bound(node, placed, exact)
        propose(self._search, candidate)
        bound = max(bound, node.bound)
        if exact or bound >= self._search.target:
            return [replace(node, bound=bound, start=None, settled=exact)]
        return self._split(node, placed, bound, iterate)

    def _split(
        self, node: OrderNode, placed: float, bound: float, iterate: newton.Iterate
    ) -> list[OrderNode]:
        parts = []
        for sample in range(self._mass.size):
            if sample in node.samples:
                continue
            mass = float(self._mass[sample])
            if node.samples and sample < node.samples[-1]:
                # Neighbours that pay the same per unit are interchangeable.
                before = float(self._mass[node.samples[-1]])
                if self._is_constant(placed - before, placed + mass):
                    continue
            charge = self._charge(self._falling, np.array([placed]), np.array([mass]))[0]
            cases = (True, False) if charge < 0.0 else (True,)
            parts += [
                OrderNode(bound, (*node.samples, sample), (*node.counted, counted), iterate)
                for counted in cases
            ]
        return parts

    def _bound(
        self, node: OrderNode, placed: float, exact: bool
    ) -> tuple[float, Candidate, newton.Iterate]:
        search = self._search
        mass, taken = self._mass, list(node.samples)
        rounding = SAME * self._dearest * mass
        everywhere = np.full(mass.size, placed)
        charges = self._charge(np.maximum(self._falling, 0.0), everywhere, mass)
        above = np.concatenate(([0.0], np.cumsum(mass[taken])))[:-1]
        charges[taken] = self._charge(self._falling, above, mass[taken])
        charges -= rounding
        offsets = np.maximum(charges, 0.0)
        linear = np.zeros(mass.size)
        linear[taken] = np.where(node.counted, np.maximum(-charges[taken], 0.0), 0.0)
        loss = OffsetHinge(self._rising_left(placed), offsets)
        known, operator, memory = node.start, self._operator, self._memory
        return bound_case(search, loss, linear, known, operator, memory, exact=exact)

    def _rising_left(self, placed: float) -> ProfileCosts:
        """The rising part and what is negative behind the places given, a minorant of both."""
        negative = np.minimum(self._falling, 0.0)
        edges = np.unique(np.concatenate((self._edges, self._edges - placed)))
        edges = edges[(edges >= 0.0) & (edges <= self._edges[-1])]
        middle = 0.5 * (edges[1:] + edges[:-1])
        at = np.searchsorted(self._edges, middle) - 1
        later = np.minimum(np.searchsorted(self._edges, middle + placed) - 1, negative.size - 1)
        charged = self._rising[at] + np.where(
            middle + placed < self._edges[-1], negative[later], 0
        )
        minorant = pointwise_minorant(np.maximum(charged, 0.0)[::-1])
        return ProfileCosts(self._mass, Profile(minorant, edges))
