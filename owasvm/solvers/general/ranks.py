r"""Branching on who gets which cost, for few samples or few different costs.

Entries of the falling part r (:mod:`~owasvm.solvers.general.assignments`) are handed out one after
the other. A negative entry contributes ``-|r| xi``, the smaller of 0 and ``-|r| u``: two convex
cases.

A node has handed out some entries. All other samples get the smallest entry that is left, if it
is positive; negative ones are left with p, as costs of the last ranks, below which
there is a non-decreasing minorant. That is a convex problem; with equal entries left it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import PlainCosts
from owasvm.losses import OffsetHinge
from owasvm.samples import Memory
from owasvm.solvers import newton
from owasvm.solvers.general.assignments import bound_case
from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.rank_split import pointwise_minorant, rising_part
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Node

FloatArray = NDArray[np.float64]

# Differences of rounding size, relative to the largest cost: they would only multiply the ways.
_ROUNDING = 1e-14


@dataclass
class RankNode(Node):
    """Samples that took the first entries, in their order.

    ``counted`` says of each whether its entry acts; only negative ones may not.
    """

    samples: tuple[int, ...]
    counted: tuple[bool, ...]
    start: newton.Iterate | None


def _put_rarest_first(entries: FloatArray) -> FloatArray:
    """The entries with the most frequent non-negative one at the end: whoever is left gets it."""
    values, counts = np.unique(entries[entries >= 0.0], return_counts=True)
    common = values[int(np.argmax(counts))]
    return np.concatenate((entries[entries != common], entries[entries == common]))


class RankBranching:
    """Hands out the falling part of the costs, the most frequent entry last."""

    def __init__(self, search: Search) -> None:
        self._search = search
        # Not centred: negative entries add a linear term.
        samples = search.problem.samples
        self._operator = samples.operator(centred=False).condense(samples.n_samples)
        self._memory = Memory()
        self._rising = rising_part(search.costs)
        falling = search.costs - self._rising
        falling[np.abs(falling) <= _ROUNDING * float(search.costs.max())] = 0.0
        self._falling = _put_rarest_first(falling[::-1])

    def make_root(self) -> RankNode:
        """Nobody has a rank yet."""
        return RankNode(0.0, (), (), None)

    def expand(self, node: RankNode) -> Sequence[RankNode]:
        """Bound a node; close it, or hand out the next entry in all ways."""
        left = self._falling[len(node.samples) :]
        exact = left.size == 0 or (left[0] >= 0.0 and bool(np.all(left == left[0])))
        bound, candidate, iterate = self._bound(node, exact)
        propose(self._search, candidate)
        bound = max(bound, node.bound)
        if exact or bound >= self._search.target:
            return [replace(node, bound=bound, start=None, settled=exact)]
        return self._split(node, bound, iterate)

    def _split(
        self, node: RankNode, bound: float, iterate: newton.Iterate | None
    ) -> list[RankNode]:
        taken = len(node.samples)
        entry = self._falling[taken]
        # Equal entries are interchangeable: hand them out in the order of the samples.
        same = taken > 0 and self._falling[taken - 1] == entry
        first = node.samples[-1] + 1 if same else 0
        cases = (True, False) if entry < 0.0 else (True,)
        return [
            RankNode(bound, (*node.samples, sample), (*node.counted, counted), iterate)
            for sample in range(first, self._search.problem.n_samples)
            if sample not in node.samples
            for counted in cases
        ]

    def _bound(self, node: RankNode, exact: bool) -> tuple[float, Candidate, newton.Iterate]:
        search = self._search
        n_samples = search.problem.n_samples
        left = self._falling[len(node.samples) :]
        offsets = np.full(n_samples, max(float(left.min()), 0.0) if left.size else 0.0)
        linear = np.zeros(n_samples)
        for sample, entry, counted in zip(node.samples, self._falling, node.counted, strict=False):
            offsets[sample] = max(entry, 0.0)
            linear[sample] = -entry if counted and entry < 0.0 else 0.0
        negative = np.sort(np.minimum(left, 0.0))[::-1]
        charged = self._rising.copy()
        charged[n_samples - negative.size :] += negative
        minorant = pointwise_minorant(np.maximum(charged, 0.0))
        loss = OffsetHinge(PlainCosts(minorant), offsets)
        known, operator, memory = node.start, self._operator, self._memory
        return bound_case(search, loss, linear, known, operator, memory, exact=exact)
