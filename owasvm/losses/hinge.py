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
from owasvm.costs import Costs
from owasvm.losses._sorting import (
    CLIPPED,
    Pooling,
    Workspace,
    make_pooling,
    make_workspace,
    prox_blocks,
    prox_blocks_weighted,
    sort_descending,
    sort_positive,
)
from owasvm.losses.base import ProxPoint
from owasvm.rounding import accumulated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["OffsetHinge", "RankedHinge", "Workspace", "look_on_both_sides", "prox_blocks"]


@njit(cache=True, internal=True)
def _order_along(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    side: float,
    resolution: float,
    workspace: Workspace,
) -> int:
    """Overwrites ``keys`` and ``order`` of `workspace`: deviations beside an intercept.

    Largest first, as :meth:`~owasvm.losses.RankedLoss.slopes` asks for: the growing ones stand in
    front of those they tie with, since they are written first and the sort is stable. Returns
    their number.
    """
    # No literal, for which the sort would be compiled once more.
    size = 0 * scores.size
    for attempt in range(2):
        growing = attempt == 0
        for i in range(scores.size):
            if (y[i] * side < 0.0) == growing:
                deviation = 1.0 - y[i] * (scores[i] + intercept)
                if deviation > resolution or (growing and deviation >= -resolution):
                    workspace.keys[size] = deviation if deviation > 0.0 else 0.0
                    workspace.order[size] = i
                    size += 1
    sort_descending(
        workspace.keys,
        workspace.order,
        workspace.levels,
        workspace.starts,
        workspace.counts,
        size,
    )
    return size


@njit(cache=True, internal=True)
def _is_bent(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    resolution: float,
    workspace: Workspace,
    size: int,
) -> bool:
    """Whether what :func:`_order_along` has left would be another on the other side."""
    keys, order = workspace.keys, workspace.order
    for k in range(size - 1):
        if keys[k] == keys[k + 1] and y[order[k]] != y[order[k + 1]]:
            return True
    for i in range(scores.size):
        if abs(1.0 - y[i] * (scores[i] + intercept)) <= resolution:
            return True
    return False


@njit(cache=True)
def _slopes_along(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    resolution: float,
    ascending: FloatArray,
    workspace: Workspace,
) -> tuple[float, float, float]:
    """Overwrites `workspace`; value and derivatives of the hinge with one cost per rank."""
    value = 0.0
    left = 0.0
    right = 0.0
    last = ascending.size - 1
    size = _order_along(scores, y, intercept, 1.0, resolution, workspace)
    for k in range(size):
        value += ascending[last - k] * workspace.keys[k]
        right -= ascending[last - k] * y[workspace.order[k]]
    if not _is_bent(scores, y, intercept, resolution, workspace, size):
        return value, right, right
    for k in range(_order_along(scores, y, intercept, -1.0, resolution, workspace)):
        left -= ascending[last - k] * y[workspace.order[k]]
    return value, left, right


@njit(cache=True)
def order_along(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    side: float,
    resolution: float,
    workspace: Workspace,
) -> int:
    """:func:`_order_along` for calls from Python."""
    return _order_along(scores, y, intercept, side, resolution, workspace)


@njit(cache=True)
def is_bent(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    resolution: float,
    workspace: Workspace,
    size: int,
) -> bool:
    """:func:`_is_bent` for calls from Python."""
    return _is_bent(scores, y, intercept, resolution, workspace, size)


def look_on_both_sides(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    resolution: float,
    workspace: Workspace,
    look_aside: Callable[[IntArray, FloatArray], tuple[float, float]],
) -> tuple[float, float, float]:
    """Value and derivatives to the left and right of an intercept, one sort where it is smooth.

    `look_aside` takes samples and their deviations, the largest first, and returns value and
    derivative.
    """
    size = order_along(scores, y, intercept, 1.0, resolution, workspace)
    value, right = look_aside(workspace.order[:size], workspace.keys[:size])
    if not is_bent(scores, y, intercept, resolution, workspace, size):
        return value, right, right
    size = order_along(scores, y, intercept, -1.0, resolution, workspace)
    return value, look_aside(workspace.order[:size], workspace.keys[:size])[1], right


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
    def arrays(self) -> tuple[FloatArray, Workspace] | None:
        """What :func:`prox_blocks` takes; None with sample weights."""
        return None if self.mass is not None else (self._ascending, self._workspace)

    def value(self, slack: FloatArray) -> float:
        n_positive = sort_positive(slack, self._workspace)
        if self.mass is None:
            charged = self._ascending[::-1][:n_positive]
        else:
            charged = self._costs.largest_first(self._workspace.order[:n_positive])
        return float(charged @ self._workspace.keys[:n_positive])

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
        workspace = self._workspace
        if self.mass is None:
            found = _slopes_along(scores, y, intercept, resolution, self._ascending, workspace)
            return float(found[0]), float(found[1]), float(found[2])

        def look_aside(order: IntArray, keys: FloatArray) -> tuple[float, float]:
            charged = self._costs.largest_first(order)
            return float(charged @ keys), -float(charged @ y[order])

        return look_on_both_sides(scores, y, intercept, resolution, workspace, look_aside)

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
