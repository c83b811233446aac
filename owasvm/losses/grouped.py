"""Ranked losses of disjoint groups of samples, added up: everything is asked group by group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from owasvm.grouping import GroupedCosts
from owasvm.losses.base import ProximalLoss, ProxPoint, RankedLoss
from owasvm.rounding import accumulated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["GroupedLoss", "GroupedRankedLoss"]


class GroupedLoss:
    """Disjoint rank groups, each with its own loss.

    Parameters
    ----------
    groups : sequence of ndarray
        Sample indices of each group; together every sample exactly once.
    losses : sequence of ProximalLoss
        The loss of each group; sample weights in all of them or in none.
    """

    def __init__(self, groups: Sequence[IntArray], losses: Sequence[ProximalLoss]) -> None:
        points = [ProxPoint(group.size) for group in groups]
        self._parts = list(zip(groups, losses, points, strict=True))
        self.is_curved = losses[0].is_curved
        self.mass: FloatArray | None = None
        if losses[0].mass is not None:
            self.mass = np.empty(sum(group.size for group in groups))
        total = n_units = 0.0
        for group, loss, _ in self._parts:
            units = float(group.size)
            if self.mass is not None and loss.mass is not None:
                self.mass[group] = loss.mass
                units = float(loss.mass.sum())
            total += units * loss.mean_cost
            n_units += units
        self.mean_cost = total / n_units

    def value(self, slack: FloatArray) -> float:
        return sum(loss.value(slack[group]) for group, loss, _ in self._parts)

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        for group, loss, point in self._parts:
            loss.prox(v[group], penalty, point)
            out.prox[group] = point.prox
        self._collect(out)

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        for group, loss, point in self._parts:
            loss.project(v[group], point)
        self._collect(out)

    def _collect(self, out: ProxPoint) -> None:
        out.n_blocks = 0
        for group, _, point in self._parts:
            out.dual[group] = point.dual
            out.block[group] = point.block + np.where(point.block > 0, out.n_blocks, 0)
            last = out.n_blocks + point.n_blocks
            out.shrink[out.n_blocks + 1 : last + 1] = point.shrink[1 : point.n_blocks + 1]
            out.n_blocks = last

    def conjugate_at(self, point: ProxPoint) -> float:
        """The sum over the groups; their own points are those of the last prox."""
        del point
        return sum(loss.conjugate_at(own) for _, loss, own in self._parts)


class GroupedRankedLoss(GroupedLoss):
    """A ranked loss within each group of grouped costs: a :class:`RankedLoss` again.

    Parameters
    ----------
    kind : type
        The loss of a group, one of :data:`owasvm.losses.LOSSES`.
    costs : GroupedCosts
        Who pays what.
    """

    def __init__(self, kind: type[RankedLoss], costs: GroupedCosts) -> None:
        groups = [index for index, _ in costs.parts]
        losses = [kind(part) for _, part in costs.parts]
        super().__init__(groups, losses)
        self._ranked = list(zip(groups, losses, strict=True))

    def conjugate(self, dual: FloatArray) -> float:
        return sum(loss.conjugate(dual[group]) for group, loss in self._ranked)

    def excess(self, dual: FloatArray) -> float:
        return max(loss.excess(dual[group]) for group, loss in self._ranked)

    def subgradient(self, slack: FloatArray) -> FloatArray:
        dual = np.empty(slack.size)
        for group, loss in self._ranked:
            dual[group] = loss.subgradient(slack[group])
        return dual

    def slopes(
        self, scores: FloatArray, y: FloatArray, intercept: float, resolution: float
    ) -> tuple[float, float, float]:
        found = [
            loss.slopes(scores[group], y[group], intercept, resolution)
            for group, loss in self._ranked
        ]
        value, left, right = (sum(parts) for parts in zip(*found, strict=True))
        return value, left, right

    def rounding(self, slack: FloatArray, error: FloatArray, value: float) -> float:
        off = accumulated(len(self._ranked)) * value
        for group, loss in self._ranked:
            own = slack[group]
            off += loss.rounding(own, error[group], loss.value(own))
        return off

    def constant_intercepts(self, y: FloatArray) -> tuple[float, ...]:
        """Those of the groups, and where the sum of their slopes vanishes between two of them."""
        of_groups = [loss.constant_intercepts(y[group]) for group, loss in self._ranked]
        bends = sorted({bend for found in of_groups for bend in found})
        if not self.is_curved:
            return tuple(bends)
        scores = np.zeros(y.size)
        between = []
        for low, high in pairwise(bends):
            falling = self.slopes(scores, y, low, 0.0)[2]
            rising = self.slopes(scores, y, high, 0.0)[1]
            if falling < 0.0 < rising:
                # The sum of parabolas is one.
                between.append(low + (high - low) * falling / (falling - rising))
        return (*bends, *between)
