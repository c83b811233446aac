"""The ordered loss as the Newton solver sees it: a value and a prox with its structure."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import RankCosts
from owasvm.solvers._sorting import (
    Workspace,
    make_workspace,
    prox_blocks,
    prox_blocks_weighted,
    sort_positive,
)

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


class GroupedRankLoss:
    """Disjoint rank groups, each with its own non-decreasing costs.

    Parameters
    ----------
    groups : list of ndarray
        Sample indices of each group; together every sample exactly once.
    costs : list of ndarray
        Ascending costs of each group.
    """

    mass: FloatArray | None = None

    def __init__(self, groups: list[IntArray], costs: list[FloatArray]) -> None:
        self._groups = groups
        self._losses = [PlainRankLoss(group_costs) for group_costs in costs]
        self._points = [ProxPoint(group.size) for group in groups]
        self.mean_cost = float(np.concatenate(costs).mean())

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
