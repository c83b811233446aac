"""The ordered loss as the Newton solver sees it: a value and a prox with its structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm._sorting import (
    CLIPPED,
    Workspace,
    make_workspace,
    prox_blocks,
    prox_blocks_weighted,
    sort_positive,
)
from owasvm.loss import dual_excess
from owasvm.problem import RankCosts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ProxPoint:
    """Where a prox was taken: the dual point and the label of every sample."""

    def __init__(self, n_samples: int) -> None:
        self.prox = np.empty(n_samples)
        self.dual = np.empty(n_samples)
        self.block = np.empty(n_samples, dtype=np.int64)
        self.n_tied_blocks = 0


class RankLoss(Protocol):
    """``Phi(u)``, symmetric and convex, positively homogeneous, zero for ``u <= 0``."""

    @property
    def mass(self) -> FloatArray | None:
        """Sample weights s, None when all are 1."""

    @property
    def mean_cost(self) -> float:
        """Mean cost of a unit of sample weight."""

    def value(self, slack: FloatArray) -> float:
        """``Phi(slack)``."""

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        """Fill `out`: ``argmin_x penalty/2 sum_i s_i (x_i - v_i)^2 + Phi(x)``, dual, labels."""


class PlainRankLoss:
    """One rank group, every sample once: ``Phi(u) = sum_k costs[k] max(u, 0)_(k)``."""

    mass: FloatArray | None = None

    def __init__(self, costs: FloatArray) -> None:
        self.costs = np.ascontiguousarray(costs)
        self.mean_cost = float(self.costs.mean())
        self._workspace = make_workspace(costs.size)

    def value(self, slack: FloatArray) -> float:
        n_positive = sort_positive(slack, self._workspace)
        return float(self.costs[::-1][:n_positive] @ self._workspace.keys[:n_positive])

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        out.n_tied_blocks = prox_blocks(
            v, self.costs, 1.0 / penalty, out.prox, out.dual, out.block, self._workspace
        )
        out.dual *= penalty


class WeightedRankLoss:
    """One rank group of samples that stand for ``mass`` copies each."""

    def __init__(self, costs: RankCosts) -> None:
        assert costs.sample_weight is not None
        self.mass = costs.sample_weight
        self.mean_cost = costs.total / float(self.mass.sum())
        self._costs = costs
        self._workspace: Workspace = make_workspace(costs.n_samples)

    def value(self, slack: FloatArray) -> float:
        n_positive = sort_positive(slack, self._workspace)
        order = self._workspace.order[:n_positive]
        return float(self._costs.largest_first(order) @ self._workspace.keys[:n_positive])

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        n_positive = sort_positive(v, self._workspace)
        totals = self._costs.largest_first(self._workspace.order[:n_positive])
        out.n_tied_blocks = prox_blocks_weighted(
            v,
            self.mass,
            totals,
            1.0 / penalty,
            n_positive,
            out.prox,
            out.dual,
            out.block,
            self._workspace,
        )
        out.dual *= penalty


class OffsetRankLoss:
    """One rank group plus a hinge of its own for every sample.

    ``Phi(u) = sum_k costs[k] max(u, 0)_(k) + sum_i offsets[i] max(u_i, 0)``.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
        Ascending, non-decreasing costs by rank.
    offsets : ndarray of shape (n_samples,)
        Non-negative costs by sample.
    """

    mass: FloatArray | None = None

    def __init__(self, costs: FloatArray, offsets: FloatArray) -> None:
        self.ranked = PlainRankLoss(costs)
        self.offsets = np.ascontiguousarray(offsets)
        self.mean_cost = self.ranked.mean_cost + float(self.offsets.mean())

    def value(self, slack: FloatArray) -> float:
        return self.ranked.value(slack) + float(self.offsets @ np.maximum(slack, 0.0))

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        # On positive slacks an offset is a linear term, so it shifts v; what it shifts beyond 0
        # is clipped like what the ranked costs shift there.
        positive = v > 0.0
        shifted = np.where(positive, v - self.offsets / penalty, v)
        self.ranked.prox(shifted, penalty, out)
        out.dual[positive] += self.offsets[positive]
        clipped = positive & (shifted <= 0.0)
        out.prox[clipped] = 0.0
        out.dual[clipped] = penalty * v[clipped]
        out.block[clipped] = CLIPPED

    def excess(self, dual: FloatArray) -> float:
        """Factor by which a non-negative point exceeds the dual set, at most 1 inside.

        What a sample pays beyond its offset belongs to the ranked costs.
        """
        return dual_excess(np.maximum(dual - self.offsets, 0.0), self.ranked.costs)


class GroupedRankLoss:
    """Disjoint rank groups, each with its own loss.

    Parameters
    ----------
    groups : list of ndarray
        Sample indices of each group; together every sample exactly once.
    losses : list of PlainRankLoss or OffsetRankLoss
        The loss of each group.
    """

    mass: FloatArray | None = None

    def __init__(
        self, groups: list[IntArray], losses: Sequence[PlainRankLoss | OffsetRankLoss]
    ) -> None:
        self._groups = groups
        self._losses = losses
        self._points = [ProxPoint(group.size) for group in groups]
        sizes = np.array([group.size for group in groups])
        self.mean_cost = float(sizes @ [loss.mean_cost for loss in losses] / sizes.sum())

    def value(self, slack: FloatArray) -> float:
        return sum(
            loss.value(slack[group])
            for group, loss in zip(self._groups, self._losses, strict=True)
        )

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        out.n_tied_blocks = 0
        for group, loss, point in zip(self._groups, self._losses, self._points, strict=True):
            loss.prox(v[group], penalty, point)
            out.prox[group] = point.prox
            out.dual[group] = point.dual
            tied = point.block > 0
            point.block[tied] += out.n_tied_blocks
            out.block[group] = point.block
            out.n_tied_blocks += point.n_tied_blocks


def rank_loss(costs: RankCosts) -> RankLoss:
    """The loss of a problem's rank costs."""
    if costs.ascending is not None:
        return PlainRankLoss(costs.ascending)
    return WeightedRankLoss(costs)
