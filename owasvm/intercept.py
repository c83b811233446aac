"""Intercepts: the best one for given scores, and the middle where several are best.

``h(b) = Phi(1 - y (s + b))`` is convex for costs that do not fall; for the hinge it is piecewise
linear whatever the costs. Its minimisers form a point or an interval, whose midpoint is returned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.losses import RankedLoss, make_loss

FloatArray = NDArray[np.float64]

__all__ = ["best_intercept", "global_intercept", "middle_of_flat", "spread_intercepts"]

# Slopes below this share of the total cost count as zero: they are sums of that many roundings.
_FLAT = 1e-12
# Every second evaluation halves an interval or the kinks in it, every third for many samples: so
# many leave nothing.
_MAX_EVALUATIONS = 200
_VALUE_RESOLUTION = 1e-15
# Ends this close, relative to their size, between which only rounding is left, need no look at
# whether the graph is flat between them: where many samples make it smooth or both ends are
# steep, and where few make it.
_NARROW = 1e-6
_NARROW_WITH_FEW = 1e-10
# A kink is nearby up to this distance, relative to the intercept.
_NEARBY = 1e-4
# Slopes this many times those that count as zero are not what rounding leaves of a flat stretch.
_STEEP = 1e3
# The graph of so many samples has so many kinks that it looks like a parabola near its minimum.
_MANY_SAMPLES = 5000
# Nobody asks for a gap that would notice this share of the loss.
_SMOOTH_RESOLUTION = 1e-13
# Losses that differ by less, relative to their size, are equal up to rounding.
_EQUAL = 1e-12
# A stretch that begins so close, relative to the scores, begins here: solvers come no closer.
_NEAR = 1e-9
# Deviations held at a time by the search in any order: 16 MB.
_CHUNK = 2_000_000


class _Tangent(NamedTuple):
    """A point of the graph of h with a slope there."""

    where: float
    value: float
    slope: float


def _resolution_of(scores: FloatArray) -> float:
    """What rounding leaves in a deviation."""
    return 4.0 * float(np.finfo(float).eps) * max(1.0, float(np.max(np.abs(scores))))


def best_intercept(
    scores: FloatArray,
    y: FloatArray,
    costs: Costs,
    guess: float = 0.0,
    *,
    loss: RankedLoss | None = None,
) -> float:
    """Minimiser of the loss over the intercept, for fixed scores and non-decreasing costs.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Decision values without intercept.
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0, both present.
    costs : Costs
        Non-decreasing rank costs.
    guess : float, default=0.0
        Where to start; a good guess saves evaluations, the result does not depend on it.
    loss : RankedLoss or None, default=None
        The loss with these costs; the hinge by default.

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
    ranked = make_loss("hinge", costs) if loss is None else loss
    return _Search(scores, y, ranked, _FLAT * costs.total).minimiser(guess)


def global_intercept(scores: FloatArray, y: FloatArray, costs: FloatArray) -> float:
    """Minimiser over b of ``sum_k costs[k] * xi_(k)``, any order of the costs.

    The loss is piecewise linear in b and bends only where a deviation vanishes or two deviations
    of opposite labels cross, so the least value at those points is the least of all. Of a flat
    stretch the midpoint is returned. O(n^3 log n) for classes of similar size.

    Parameters
    ----------
    scores, y : ndarray of shape (n_samples,)
        Decision values without intercept; labels -1.0 and +1.0.
    costs : ndarray of shape (n_samples,)
        One cost per rank, ascending.

    Returns
    -------
    intercept : float
    """
    positive, negative = scores[y > 0], scores[y < 0]
    crossings = -0.5 * np.add.outer(positive, negative).ravel()
    bends = np.unique(np.concatenate((y - scores, crossings)))
    losses = np.concatenate(
        [
            np.sort(np.maximum(1.0 - y * (scores + part[:, None]), 0.0), axis=1) @ costs
            for part in np.array_split(bends, 1 + bends.size * y.size // _CHUNK)
        ]
    )
    best = int(np.argmin(losses))
    flat = losses <= losses[best] + _EQUAL * max(1.0, losses[best])
    first, last = best, best
    while first > 0 and flat[first - 1]:
        first -= 1
    while last < bends.size - 1 and flat[last + 1]:
        last += 1
    return float(0.5 * (bends[first] + bends[last]))


def spread_intercepts(scores: FloatArray, y: FloatArray, number: int) -> FloatArray:
    """Intercepts that put a sample on the margin, `number` at most, spread evenly over all.

    With costs that fall the loss can have several minima over b; these show where the deep ones
    are.
    """
    kinks = np.sort(y - scores)
    places = np.linspace(0, kinks.size - 1, min(kinks.size, number)).astype(np.int64)
    return np.unique(kinks[places])


def middle_of_flat(scores: FloatArray, y: FloatArray, costs: Costs, intercept: float) -> float:
    """The middle of the stretch around an intercept on which the loss is constant.

    For the hinge and costs in any order. The intercept itself where there is no such stretch, or
    where it has no end.

    Parameters
    ----------
    scores, y : ndarray of shape (n_samples,)
        Decision values without intercept; labels -1.0 and +1.0.
    costs : Costs
        Rank costs.
    intercept : float
        Where to look.

    Returns
    -------
    intercept : float
    """
    search = _Search(scores, y, make_loss("hinge", costs), _FLAT * costs.total)
    near = _NEAR * max(1.0, float(np.max(np.abs(scores))))
    ends = []
    for side in (-1.0, 1.0):
        end = where = intercept
        # Rounding leaves bends that coincide close to each other, and solvers a little off them.
        if not search.is_flat(where, side):
            where += side * near
        for _ in range(_MAX_EVALUATIONS):
            if not search.is_flat(where, side):
                break
            distance = _next_bend(1.0 - y * (scores + where), y * side < 0.0)
            if not np.isfinite(distance):
                return intercept
            end = where + side * distance
            where += side * max(distance, near)
        else:
            return intercept
        ends.append(end)
    middle = 0.5 * (ends[0] + ends[1])
    value, there = (search.look_aside(where, 1.0)[0] for where in (intercept, middle))
    same = there <= value + _EQUAL * abs(value)
    return middle if same and ends[1] - ends[0] > 4.0 * near else intercept


def _next_bend(deviations: FloatArray, growing: NDArray[np.bool_]) -> float:
    """How far the growing deviations grow before one of them, or one that falls, meets another.

    They meet 0 or each other; of those that meet each other the closest are neighbours. Of
    those that have just met, the growing one is on its way up.
    """
    order = np.lexsort((growing, np.maximum(deviations, 0.0)))
    lower, upper = order[:-1], order[1:]
    meeting = growing[lower] & ~growing[upper] & (deviations[upper] > 0.0)
    gaps = np.maximum(deviations[upper], 0.0) - np.maximum(deviations[lower], 0.0)
    reaches = [
        0.5 * gaps[meeting & (gaps > 0.0)],
        deviations[~growing & (deviations > 0.0)],
        -deviations[growing & (deviations < 0.0)],
    ]
    return float(np.min(np.concatenate(reaches), initial=np.inf))


class _Search:
    """Finds the minimisers of h from its one-sided derivatives.

    The intercepts that put a sample on the margin are the strong kinks of h; most often its
    minimiser is one of them. `flat` is the slope that counts as zero.
    """

    def __init__(self, scores: FloatArray, y: FloatArray, loss: RankedLoss, flat: float) -> None:
        self._scores = scores
        self._y = y
        self._loss = loss
        self._margins = y - scores
        self.flat = flat
        self._resolution = _resolution_of(scores)
        self._is_smooth = scores.size >= _MANY_SAMPLES
        self._last: tuple[float, tuple[float, float, float]] | None = None

    def look_aside(self, where: float, side: float) -> tuple[float, float]:
        """Value of h and its derivative towards one side of a point."""
        value, left, right = self._slopes(where)
        return value, left if side < 0.0 else right

    def _slopes(self, where: float) -> tuple[float, float, float]:
        """Value of h, its derivatives to the left and to the right."""
        if self._last is None or self._last[0] != where:
            found = self._loss.slopes(self._scores, self._y, where, self._resolution)
            self._last = where, found
        return self._last[1]

    def is_flat(self, where: float, side: float) -> bool:
        """Whether h is constant on one side of a point."""
        return abs(self.look_aside(where, side)[1]) <= self.flat

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
        value, left, right = self._slopes(where)
        if right < -self.flat:
            return 1, _Tangent(where, value, right)
        return (-1 if left > self.flat else 0), _Tangent(where, value, left)

    def _bracket(self, near: _Tangent, towards: float) -> tuple[_Tangent, _Tangent, int]:
        """Tangents on both sides of the minimisers, or a minimiser that was hit."""
        found = None
        if not (self._is_smooth or self._loss.is_curved):
            found = self._pass_kinks(near, towards)
        return self._reach_out(near, towards) if found is None else found

    def _pass_kinks(self, near: _Tangent, towards: float) -> tuple[_Tangent, _Tangent, int] | None:
        """The same, from kink to kink, None where the minimisers are beyond those nearby.

        Past as many at a time as the slope calls for, if each bends the graph as much as those
        before.
        """
        kinks = np.sort(towards * self._margins)
        start = towards * near.where
        reach = start + _NEARBY * max(1.0, abs(start))
        place = int(np.searchsorted(kinks, start, side="right"))
        n_passed = 1
        while place < kinks.size and kinks[place] <= reach:
            side, tangent = self._look(towards * float(kinks[place]))
            if side != towards:
                return self._enclose(near, tangent, side, towards)
            bend = abs(near.slope - tangent.slope) / n_passed
            near = tangent
            n_passed = min(int(abs(near.slope) / max(bend, self.flat)) + 1, 16 * n_passed)
            place += n_passed
        return None

    @staticmethod
    def _enclose(
        near: _Tangent, far: _Tangent, side: int, towards: float
    ) -> tuple[_Tangent, _Tangent, int]:
        """What :meth:`_bracket` returns where the minimisers are not beyond `far`."""
        if side == 0:
            return far, far, 0
        return (near, far, 1) if towards > 0 else (far, near, 1)

    def _reach_out(self, near: _Tangent, towards: float) -> tuple[_Tangent, _Tangent, int]:
        """The same, in steps that grow."""
        start = near.where
        reach = max(1e-6 * max(1.0, abs(start)), 16.0 * self._resolution)
        for _ in range(_MAX_EVALUATIONS):
            side, tangent = self._look(start + towards * reach)
            if side != towards:
                return self._enclose(near, tangent, side, towards)
            # Twice as far as the slopes, seen as a line, would have to go.
            bend = (tangent.slope - near.slope) / (tangent.where - near.where)
            near = tangent
            wanted = 2.0 * abs(tangent.slope) / bend if self._is_smooth and bend > 0.0 else np.inf
            furthest = 1e4 * reach if self._is_smooth else 100.0 * reach
            reach = min(max(reach + wanted, 2.0 * reach), furthest)
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
            # Between steep ends a flat stretch is no longer than the way between them.
            is_smooth = self._is_smooth or min(-low.slope, high.slope) > _STEEP * self.flat
            resolution = _SMOOTH_RESOLUTION if is_smooth else _VALUE_RESOLUTION
            if best.value - bound <= resolution * abs(best.value):
                narrow = _NARROW if is_smooth else _NARROW_WITH_FEW
                # The middle of both ends would do only where the graph is as low at both.
                return best, best, int(width <= narrow * max(1.0, abs(low.where)))
            kinks = kinks[(kinks > low.where) & (kinks < high.where)]
            where = low.where + 0.5 * width
            if self._is_smooth and evaluation % 3 < 2:
                where = self._cross_zero(low, high, beyond=evaluation % 3 == 1)
            elif (self._is_smooth or evaluation % 2 == 0) and kinks.size > 0:
                share = -low.slope / (high.slope - low.slope) if evaluation % 4 == 0 else 0.5
                place = min(int(share * kinks.size), kinks.size - 1)
                where = float(np.partition(kinks, place)[place])
            elif evaluation % 2 == 0 or (self._loss.is_curved and evaluation % 4 != 3):
                where = self._cross_zero(low, high, beyond=evaluation % 4 == 2)
            elif evaluation % 8 != 7 and low.where < crossing < high.where:
                where = crossing
            side, tangent = self._look(where)
            if side == 0:
                return tangent, tangent, 0
            if side > 0:
                low = tangent
            else:
                high = tangent
        return low, high, 1

    @staticmethod
    def _cross_zero(low: _Tangent, high: _Tangent, *, beyond: bool) -> float:
        """Where the slopes, seen as a line, vanish: exact for a parabola, which many samples make.

        Or as far `beyond` it as the nearer end is before it, to come near from both sides.
        """
        width = high.where - low.where
        share = low.slope / (low.slope - high.slope)
        if beyond:
            share = 2.0 * share if share < 0.5 else 2.0 * share - 1.0
        return low.where + width * share

    def _flat_end(self, inside: _Tangent, towards: float) -> float:
        """End of the interval of minimisers on one side of a minimiser."""
        if towards * self.look_aside(inside.where, towards)[1] > self.flat:
            return inside.where
        reach = 1e-6
        while True:
            where = inside.where + towards * reach
            value, slope = self.look_aside(where, -towards)
            if towards * slope > self.flat:
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
            value, slope = self.look_aside(where, -towards)
            if towards * slope <= self.flat:
                break
        return where
