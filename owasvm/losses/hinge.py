r"""The ranked hinge ``Phi(u) = sum_k c_k max(u, 0)_(k)``, alone and composed.

It is positively homogeneous, so its conjugate is 0 on the dual set P(c) of :mod:`owasvm.loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.costs import Costs, WeightedCosts
from owasvm.losses._sorting import (
    CLIPPED,
    Pooling,
    RankTable,
    Workspace,
    make_pooling,
    make_workspace,
    prox_blocks,
    prox_blocks_weighted,
    sort_beside,
    sort_positive,
)
from owasvm.losses.base import ProxPoint, find_slack
from owasvm.rounding import accumulated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["OffsetHinge", "RankedHinge", "look_on_both_sides"]


@njit(cache=True)
def _add_up_along(
    slack: FloatArray,
    y: FloatArray,
    resolution: float,
    charged: FloatArray,
    workspace: Workspace,
    size: int,
) -> tuple[float, float, bool]:
    """Value and derivative on the side where :func:`sort_beside` has left `size` deviations.

    `charged` is what they pay per unit. And whether it would be another on the other side.
    """
    keys, order = workspace.keys, workspace.order
    value = 0.0
    slope = 0.0
    is_bent = False
    for k in range(size):
        value += charged[k] * keys[k]
        slope -= charged[k] * y[order[k]]
        if k > 0 and keys[k] == keys[k - 1] and y[order[k]] != y[order[k - 1]]:
            is_bent = True
    for i in range(slack.size):
        if abs(slack[i]) <= resolution:
            is_bent = True
    return value, slope, is_bent


def look_on_both_sides(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    resolution: float,
    workspace: Workspace,
    charge: Callable[[IntArray, FloatArray], FloatArray],
) -> tuple[float, float, float]:
    """Value and derivatives to the left and right of an intercept, one sort where it is smooth.

    `charge` takes samples and their deviations, the largest first, and returns what they pay per
    unit.
    """
    slack = find_slack(scores, y, intercept)

    def look_aside(side: float) -> tuple[float, float, bool]:
        size = sort_beside(slack, y, side, resolution, workspace)
        charged = charge(workspace.order[:size], workspace.keys[:size])
        return _add_up_along(slack, y, resolution, charged, workspace, size)

    value, right, is_bent = look_aside(1.0)
    left = look_aside(-1.0)[1] if is_bent else right
    return value, left, right


class RankedHinge:
    """``Phi(u) = sum_k c_k max(u, 0)_(k)``.

    Parameters
    ----------
    costs : Costs
        Who pays what.
    """

    is_curved: ClassVar[bool] = False

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.mass = costs.sample_weight
        self._ascending = np.empty(0) if self.mass is not None else costs.by_rank()
        n_units = costs.n_samples if self.mass is None else float(self.mass.sum())
        self.mean_cost = costs.total / n_units

    @cached_property
    def _workspace(self) -> Workspace:
        return make_workspace(self._costs.n_samples)

    @cached_property
    def _pooling(self) -> Pooling:
        return make_pooling(self._costs.n_samples)

    @property
    def plain(self) -> tuple[FloatArray, Workspace] | None:
        """For compiled loops: costs by rank, and where to work. None with sample weights.

        The argument of :meth:`prox` may lie in ``levels`` of the latter, and is overwritten then,
        and an empty prox may be asked for.
        """
        return None if self.mass is not None else (self._ascending, self._workspace)

    @property
    def table(self) -> RankTable | None:
        """For compiled loops; None where sample weights are no whole numbers."""
        costs, nothing = self._costs, np.empty(0)
        if self.mass is None:
            no_pooling = Pooling(nothing, nothing, nothing)
            return RankTable(self._ascending, nothing, nothing, self._workspace, no_pooling)
        copies = costs.by_copy if isinstance(costs, WeightedCosts) else None
        if copies is None:
            return None
        return RankTable(copies.density, copies.sums, self.mass, self._workspace, self._pooling)

    def value(self, slack: FloatArray) -> float:
        n_positive = sort_positive(slack, self._workspace)
        charged = self._charge(self._workspace.order[:n_positive])
        return float(charged @ self._workspace.keys[:n_positive])

    def _charge(self, order: IntArray) -> FloatArray:
        """What samples pay per unit, given from the largest deviation down."""
        if self.mass is None:
            return self._ascending[::-1][: order.size]
        return self._costs.largest_first(order)

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        workspace, mass = self._workspace, self.mass
        if mass is None:
            out.n_blocks = prox_blocks(
                v, penalty, self._ascending, workspace, out.prox, out.dual, out.block, out.shrink
            )
            return
        n_positive = sort_positive(v, workspace)
        totals = self._costs.largest_first(workspace.order[:n_positive])
        out.n_blocks = prox_blocks_weighted(
            v,
            mass,
            totals,
            1.0 / penalty,
            n_positive,
            out.prox,
            out.dual,
            out.block,
            workspace,
            self._pooling,
        )
        out.dual *= penalty
        # Members of a block stay equal.
        out.shrink[1 : out.n_blocks + 1] = 1.0

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        # Moreau: what the prox takes away is the projection.
        self.prox(v, 1.0, out)

    def conjugate_at(self, point: ProxPoint) -> float:
        return 0.0

    def conjugate(self, dual: FloatArray) -> float:
        return 0.0

    def excess(self, dual: FloatArray) -> float:
        return self._costs.excess(dual)

    def subgradient(self, slack: FloatArray) -> FloatArray:
        n_positive = sort_positive(slack, self._workspace)
        order = self._workspace.order[:n_positive]
        dual = np.zeros(slack.size)
        dual[order] = self._costs.largest_first(order)
        return dual

    def slopes(
        self, scores: FloatArray, y: FloatArray, intercept: float, resolution: float
    ) -> tuple[float, float, float]:
        return look_on_both_sides(
            scores, y, intercept, resolution, self._workspace, lambda order, _: self._charge(order)
        )

    def rounding(self, slack: FloatArray, error: FloatArray, value: float) -> float:
        near = slack > -error
        if not near.any():
            return 0.0
        charge = self._costs.largest_sum(int(np.count_nonzero(near)))
        off = float(error.max(where=near, initial=0.0))
        return charge * off + accumulated(slack.size + 2) * value

    def constant_intercepts(self, y: FloatArray) -> tuple[float, ...]:
        # The loss bends at these intercepts only.
        return 0.0, -1.0, 1.0


class OffsetHinge:
    """One rank group plus a hinge of its own for every sample.

    ``Phi(u) = sum_k c_k max(u, 0)_(k) + sum_i offsets[i] max(u_i, 0)``.

    Parameters
    ----------
    costs : Costs
        Who pays what by rank, non-decreasing.
    offsets : ndarray of shape (n_samples,)
        Non-negative costs by sample.
    """

    is_curved: ClassVar[bool] = False

    def __init__(self, costs: Costs, offsets: FloatArray) -> None:
        self.ranked = RankedHinge(costs)
        self.mass = self.ranked.mass
        self.offsets = np.ascontiguousarray(offsets)
        n_units = costs.n_samples if self.mass is None else float(self.mass.sum())
        self.mean_cost = self.ranked.mean_cost + float(self.offsets.sum()) / n_units

    def value(self, slack: FloatArray) -> float:
        return self.ranked.value(slack) + float(self.offsets @ np.maximum(slack, 0.0))

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        # On positive slacks an offset is a linear term, so it shifts v; what it shifts beyond 0
        # is clipped like what the ranked costs shift there.
        weight = penalty if self.mass is None else penalty * self.mass
        positive = v > 0.0
        shifted = np.where(positive, v - self.offsets / weight, v)
        self.ranked.prox(shifted, penalty, out)
        out.dual[positive] += self.offsets[positive]
        clipped = positive & (shifted <= 0.0)
        out.prox[clipped] = 0.0
        out.dual[clipped] = np.minimum(weight * v, self.offsets)[clipped]
        out.block[clipped] = CLIPPED

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        self.prox(v, 1.0, out)

    def conjugate_at(self, point: ProxPoint) -> float:
        return self.ranked.conjugate_at(point)

    def excess(self, dual: FloatArray) -> float:
        """Factor by which a non-negative point exceeds the dual set, at most 1 inside.

        What a sample pays beyond its offset belongs to the ranked costs.
        """
        return self.ranked.excess(np.maximum(dual - self.offsets, 0.0))
