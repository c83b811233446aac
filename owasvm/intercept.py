"""The best intercept for given scores: exact minimiser of a convex piecewise-linear function.

``h(b) = sum_k c_k xi_(k)`` with ``xi_i = max(0, 1 - y_i (s_i + b))``. For non-decreasing costs h
is convex and piecewise linear; its minimisers form a point or an interval, whose midpoint is
returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm._sorting import Workspace, make_workspace, sort_descending
from owasvm.problem import RankCosts

FloatArray = NDArray[np.float64]

# Slopes below this share of the total cost count as zero: they are sums of that many roundings.
_FLAT = 1e-12
_MAX_EVALUATIONS = 200
_VALUE_RESOLUTION = 1e-15

# Value of h and its derivative towards one side of a point: (b, side) with side -1.0 or 1.0.
# The derivative is always with respect to b.
_OneSided = Callable[[float, float], tuple[float, float]]


class _Tangent(NamedTuple):
    """A point of the graph of h with a slope there."""

    where: float
    value: float
    slope: float


@njit(cache=True)
def _one_sided(
    scores: FloatArray,
    y: FloatArray,
    intercept: float,
    costs: FloatArray,
    side: float,
    resolution: float,
    workspace: Workspace,
) -> tuple[float, float]:
    """Overwrites `workspace`; value and derivative to the right (side 1) or the left (side -1).

    Just to the right of b the deviations of the class -1 grow and those of the class +1 shrink, to
    the left the other way round. The growing ones rank above those they tie with, and count even
    at deviation 0 (up to `resolution`); the stable sort keeps them in front because they are
    written first.
    """
    n_samples = scores.size
    size = 0
    for growing in (True, False):
        for i in range(n_samples):
            if (y[i] * side < 0.0) == growing:
                deviation = 1.0 - y[i] * (scores[i] + intercept)
                if deviation > resolution or (growing and deviation >= -resolution):
                    workspace.keys[size] = max(deviation, 0.0)
                    workspace.order[size] = i
                    size += 1
    sort_descending(workspace, size)
    value = 0.0
    slope = 0.0
    for k in range(size):
        cost = costs[n_samples - 1 - k]
        value += cost * workspace.keys[k]
        slope -= cost * y[workspace.order[k]]
    return value, slope


def _plain(scores: FloatArray, y: FloatArray, costs: FloatArray, resolution: float) -> _OneSided:
    workspace = make_workspace(scores.size)

    def one_sided(intercept: float, side: float) -> tuple[float, float]:
        return _one_sided(scores, y, intercept, costs, side, resolution, workspace)

    return one_sided


def _weighted(scores: FloatArray, y: FloatArray, costs: RankCosts, resolution: float) -> _OneSided:
    def one_sided(intercept: float, side: float) -> tuple[float, float]:
        deviation = 1.0 - y * (scores + intercept)
        growing = y * side < 0.0
        counted = np.flatnonzero((deviation > resolution) | (growing & (deviation >= -resolution)))
        deviation = np.maximum(deviation, 0.0)
        counted = counted[np.lexsort((~growing[counted], -deviation[counted]))]
        charged = costs.largest_first(counted)
        return float(charged @ deviation[counted]), -float(charged @ y[counted])

    return one_sided


def best_intercept(
    scores: FloatArray, y: FloatArray, costs: RankCosts, guess: float = 0.0
) -> float:
    """Minimiser of the loss over the intercept, for fixed scores and non-decreasing costs.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Decision values without intercept.
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0, both present.
    costs : RankCosts
        Non-decreasing rank costs.
    guess : float, default=0.0
        Where to start; a good guess saves evaluations, the result does not depend on it.

    Returns
    -------
    intercept : float
        The minimiser, or the midpoint of the interval of minimisers.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.intercept import best_intercept
    >>> from owasvm.problem import RankCosts
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> scores = np.array([-3.0, -2.0, 2.0, 4.0])
    >>> best_intercept(scores, y, RankCosts(4, "uniform", None))
    0.0
    """
    resolution = 4.0 * np.finfo(float).eps * max(1.0, float(np.max(np.abs(scores))))
    if costs.ascending is not None:
        one_sided = _plain(scores, y, costs.ascending, resolution)
    else:
        one_sided = _weighted(scores, y, costs, resolution)
    margins = y - scores
    return _Search(one_sided, margins, _FLAT * costs.total, resolution).minimiser(guess)


class _Search:
    """Finds the minimisers of h from its one-sided derivatives.

    `margins` are the intercepts that put a sample on the margin: the strong kinks of h, and most
    often its minimiser is one of them. `flat` is the slope that counts as zero.
    """

    def __init__(
        self, one_sided: _OneSided, margins: FloatArray, flat: float, resolution: float
    ) -> None:
        self._one_sided = one_sided
        self._margins = margins
        self._flat = flat
        self._resolution = resolution

    def minimiser(self, guess: float) -> float:
        """The minimiser, or the midpoint of all."""
        side, tangent = self._look(guess)
        low = high = tangent
        if side != 0:
            low, high, side = self._bracket(tangent, float(side))
        if side != 0:
            low, high, side = self._shrink(low, high)
        if side != 0:
            return 0.5 * (low.where + high.where)
        inside = low
        return 0.5 * (self._flat_end(inside, -1.0) + self._flat_end(inside, 1.0))

    def _look(self, where: float) -> tuple[int, _Tangent]:
        """On which side of `where` the minimisers lie (0: here), and the slope towards them."""
        value, slope = self._one_sided(where, 1.0)
        if slope < -self._flat:
            return 1, _Tangent(where, value, slope)
        value, slope = self._one_sided(where, -1.0)
        return (-1 if slope > self._flat else 0), _Tangent(where, value, slope)

    def _bracket(self, near: _Tangent, towards: float) -> tuple[_Tangent, _Tangent, int]:
        """Tangents on both sides of the minimisers, or a minimiser that was hit."""
        start = near.where
        reach = max(1e-8 * max(1.0, abs(start)), 16.0 * self._resolution)
        for _ in range(_MAX_EVALUATIONS):
            side, tangent = self._look(start + towards * reach)
            if side == 0:
                return tangent, tangent, 0
            if side != towards:
                return (near, tangent, 1) if towards > 0 else (tangent, near, 1)
            near = tangent
            reach *= 100.0
        return near, near, 0

    def _shrink(self, low: _Tangent, high: _Tangent) -> tuple[_Tangent, _Tangent, int]:
        """Take the middle kink, or cross the two tangents, until a minimiser is hit."""
        kinks = self._margins
        for evaluation in range(_MAX_EVALUATIONS):
            width = high.where - low.where
            if width <= self._resolution:
                break
            rise = high.value - low.value - high.slope * width
            crossing = min(max(low.where + rise / (low.slope - high.slope), low.where), high.where)
            # The graph lies above both tangents; between them and it only rounding may be left.
            bound = low.value + low.slope * (crossing - low.where)
            best = low if low.value <= high.value else high
            if best.value - bound <= _VALUE_RESOLUTION * abs(best.value):
                return best, best, 0
            kinks = kinks[(kinks > low.where) & (kinks < high.where)]
            where = low.where + 0.5 * width
            if evaluation % 2 == 0 and kinks.size > 0:
                where = float(np.partition(kinks, kinks.size // 2)[kinks.size // 2])
            elif evaluation % 4 != 0 and low.where < crossing < high.where:
                where = crossing
            side, tangent = self._look(where)
            if side == 0:
                return tangent, tangent, 0
            if side > 0:
                low = tangent
            else:
                high = tangent
        return low, high, 1

    def _flat_end(self, inside: _Tangent, towards: float) -> float:
        """End of the interval of minimisers on one side of a minimiser."""
        if towards * self._one_sided(inside.where, towards)[1] > self._flat:
            return inside.where
        reach = 1e-6
        while True:
            where = inside.where + towards * reach
            value, slope = self._one_sided(where, -towards)
            if towards * slope > self._flat:
                break
            reach *= 100.0
            if reach > 1e12:
                # No slope anywhere on this side: the interval has no end here.
                return inside.where
        # Newton's method from outside never overshoots the end of a flat piece.
        for _ in range(_MAX_EVALUATIONS):
            if abs(value - inside.value) <= _VALUE_RESOLUTION * abs(value):
                # Only rounding is left of the rise.
                break
            step = (value - inside.value) / slope
            where -= step
            if abs(step) <= self._resolution:
                break
            value, slope = self._one_sided(where, -towards)
            if towards * slope <= self._flat:
                break
        return where
