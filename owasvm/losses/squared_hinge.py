r"""The ranked squared hinge ``Phi(u) = sum_k c_k (max(u, 0)_(k))^2``.

Prox. In the order of v it is ``sum_k m_k/2 (x_k - t_k)^2`` up to a constant, with the masses
``m_k = penalty s_k + 2 c_k`` and the targets ``t_k = penalty s_k v_k / m_k``: an isotonic
regression. Nothing is clipped, every block of it moves, a single sample is a block of its own.

Conjugate. ``Phi(u)`` is the largest of the sums ``sum_i c'_i max(u_i, 0)^2`` over all costs c'
that an average of rankings hands out, so ``Phi*(a) <= sum_i a_i^2 / (4 c'_i)`` for each of them,
``a >= 0``. The best ones share the costs of a block in the proportions of a, and the blocks are
those of the isotonic regression of ``a / 2c``:

.. math:: \Phi^*(a) = \sum_B \frac{(\sum_{i \in B} a_i)^2}{4 \sum_{i \in B} c_i} .

It is finite for every ``a >= 0``, so the dual set is that cone.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.costs import Costs
from owasvm.losses._sorting import (
    CLIPPED,
    INACTIVE,
    SINGLE,
    Pooling,
    Workspace,
    keep_inactive,
    make_pooling,
    make_workspace,
    pool_adjacent,
    sort_positive,
)
from owasvm.losses.base import ProxPoint
from owasvm.losses.hinge import look_on_both_sides
from owasvm.rounding import accumulated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]

__all__ = ["RankedSquaredHinge"]


@njit(cache=True)
def _prox_squared(
    mass: FloatArray,
    totals: FloatArray,
    penalty: float,
    n_positive: int,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
    shrink: FloatArray,
    workspace: Workspace,
    pooling: Pooling,
) -> int:
    """Overwrites the arrays from `x` on at positive entries; returns the number of blocks.

    ``workspace`` holds these entries, sorted, `totals` their costs.
    """
    keys, order, levels = workspace.keys, workspace.order, workspace.levels
    for k in range(n_positive):
        own = penalty * mass[order[k]]
        pooling.masses[k] = own + 2.0 * totals[k]
        levels[k] = own * keys[k] / pooling.masses[k]
    n_pooled = pool_adjacent(
        levels, pooling.masses, levels, pooling.block_masses, workspace.starts, n_positive
    )
    n_blocks = 0
    for pooled in range(n_pooled):
        start, stop, level = workspace.starts[pooled], workspace.starts[pooled + 1], levels[pooled]
        cost = 0.0
        weight = 0.0
        mean = 0.0
        for k in range(start, stop):
            cost += totals[k]
            weight += mass[order[k]]
            mean += mass[order[k]] * (keys[k] - keys[start])
        if cost == 0.0:
            # Nothing is charged here, so nothing reacts; such ranks are never pooled.
            for k in range(start, stop):
                x[order[k]] = keys[k]
                dual[order[k]] = 0.0
                block[order[k]] = SINGLE
            continue
        n_blocks += 1
        shrink[n_blocks] = 1.0 - np.sqrt(2.0 * cost / (penalty * weight + 2.0 * cost))
        # v - x, as a distance to the mean of v plus that of the mean to x: no digits are lost.
        offset = 2.0 * cost * level / (penalty * weight) - mean / weight
        for k in range(start, stop):
            x[order[k]] = level
            block[order[k]] = n_blocks
            dual[order[k]] = penalty * mass[order[k]] * ((keys[k] - keys[start]) + offset)
    return n_blocks


@njit(cache=True)
def _pool_conjugate(dual: FloatArray, costs: FloatArray) -> float:
    """``sum_B (sum a)^2 / (4 sum c)`` of entries in the order of their size."""
    tops = np.empty(dual.size)
    bottoms = np.empty(dual.size)
    size = 0
    for k in range(dual.size):
        top, bottom = dual[k], costs[k]
        while size > 0 and tops[size - 1] * bottom < top * bottoms[size - 1]:
            size -= 1
            top += tops[size]
            bottom += bottoms[size]
        tops[size], bottoms[size] = top, bottom
        size += 1
    total = 0.0
    for b in range(size):
        if tops[b] > 0.0:
            total += np.inf if bottoms[b] <= 0.0 else tops[b] * (tops[b] / (4.0 * bottoms[b]))
    return total


class RankedSquaredHinge:
    """``Phi(u) = sum_k c_k (max(u, 0)_(k))^2``, for costs that do not fall.

    Parameters
    ----------
    costs : Costs
        Who pays what.
    """

    is_curved: ClassVar[bool] = True

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.mass = costs.sample_weight
        self._masses = np.ones(costs.n_samples) if self.mass is None else self.mass
        self.mean_cost = costs.total / float(self._masses.sum())
        self._workspace = make_workspace(costs.n_samples)
        self._pooling = make_pooling(costs.n_samples)

    def value(self, slack: FloatArray) -> float:
        n_positive = sort_positive(slack, self._workspace)
        charged = self._costs.largest_first(self._workspace.order[:n_positive])
        return float(charged @ self._workspace.keys[:n_positive] ** 2)

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        n_positive = sort_positive(v, self._workspace)
        totals = self._costs.largest_first(self._workspace.order[:n_positive])
        keep_inactive(v, out.prox, out.dual, out.block)
        out.n_blocks = _prox_squared(
            self._masses,
            totals,
            penalty,
            n_positive,
            out.prox,
            out.dual,
            out.block,
            out.shrink,
            self._workspace,
            self._pooling,
        )

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        out.dual[:] = self._masses * np.maximum(v, 0.0)
        out.block[:] = np.where(v > 0.0, CLIPPED, INACTIVE)
        out.n_blocks = 0

    def conjugate_at(self, point: ProxPoint) -> float:
        # For a loss of degree 2 the conjugate of a subgradient at x is the loss at x.
        return self.value(point.prox)

    def conjugate(self, dual: FloatArray) -> float:
        order = np.argsort(-dual / self._masses, kind="stable")
        return float(_pool_conjugate(dual[order], self._costs.largest_first(order)))

    def excess(self, dual: FloatArray) -> float:
        return 1.0

    def subgradient(self, slack: FloatArray) -> FloatArray:
        n_positive = sort_positive(slack, self._workspace)
        order = self._workspace.order[:n_positive]
        dual = np.zeros(slack.size)
        dual[order] = 2.0 * self._costs.largest_first(order) * self._workspace.keys[:n_positive]
        return dual

    def slopes(
        self, scores: FloatArray, y: FloatArray, intercept: float, resolution: float
    ) -> tuple[float, float, float]:
        def charge(order: IntArray, keys: FloatArray) -> FloatArray:
            return self._costs.largest_first(order) * keys

        value, left, right = look_on_both_sides(
            scores, y, intercept, resolution, self._workspace, charge
        )
        # The charge is half the derivative of a square.
        return value, 2.0 * left, 2.0 * right

    def rounding(self, slack: FloatArray, error: FloatArray, value: float) -> float:
        near = slack > -error
        if not near.any():
            return 0.0
        number, off = int(near.sum()), float(error[near].max())
        charge = self._costs.largest_sum(number)
        # (u + e)^2 - u^2 = 2 u e + e^2, and by Cauchy and Schwarz the sum of c u is at most this.
        drift = 2.0 * off * np.sqrt(charge * value) + charge * off * off
        return float(drift) + accumulated(slack.size + 4) * value

    def constant_intercepts(self, y: FloatArray) -> tuple[float, ...]:
        """For b > 0 the class -1 deviates by 1 + b, the others by 1 - b: two parabolas."""
        ends = [0.0]
        for side in (-1.0, 1.0):
            dearer = float(self._costs.largest_first(np.flatnonzero(y == -side)).sum())
            ends.append(side * min(max(1.0 - 2.0 * dearer / self._costs.total, 0.0), 1.0))
        return tuple(ends)
