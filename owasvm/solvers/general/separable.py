r"""A lower bound for general weights that splits into one small problem per sample.

Write the costs as ``c = p + r`` with p non-decreasing, and ``R(j)`` for the sum of the last j
entries of r. Let the data be centred, ``f(x_i) = <w, phi(x_i)> + b``, ``u_i = 1 - y_i f(x_i)``.

Three inequalities, each tight where the bound is meant to be:

curvature
    Let ``rho_i > 0`` be such that no eigenvalue of ``sum_i rho_i phi(x_i) phi(x_i)'`` exceeds 1,
    the data being centred with these weights, ``sum_i rho_i phi(x_i) = 0``. Then for all (w, b),
    (w', b')

    .. math:: \tfrac12 |w' - w|^2 \ge \tfrac12 \sum_i \rho_i (u'_i - u_i)^2
              - \tfrac12 \sum_i \rho_i \, (b' - b)^2 .

ranks that rise
    ``Phi_p(xi') >= sum_i q_i xi'_i`` for every q in P(p).
ranks that fall
    With ``N'(t)`` the number of deviations above t, ``Phi_r(xi')`` is the integral of
    ``R(N'(t))``. A convex function below R has a tangent at any count N(t), and so

    .. math:: \Phi_r(\xi') \ge \text{constant} + \sum_i h(\xi'_i), \qquad
              h' (t) = \text{slope at } N(t) .

Together, for ``w = sum_i a_i y_i phi(x_i)``,

.. math::

    F(w', b') \ge -\tfrac12 |w|^2 + \sum_i a_i + \text{constant} - b' \sum_i a_i y_i
        - \tfrac12 \sum_i \rho_i \, (b' - b)^2
        + \sum_i \min_{v} \left[ -a_i v + \tfrac{\rho_i}{2} (v - u_i)^2 + q_i v_+ + h(v_+) \right],

where v runs over an interval that is known to hold ``u'_i``, if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layers:
    """The separable minorant ``constant + sum_i h(xi_i)`` of the falling part.

    Parameters
    ----------
    levels : ndarray of shape (n_layers,)
        Where the layers begin, ascending, the first at 0.
    slopes : ndarray of shape (n_layers,)
        Slope of h on each layer; the last one has no end.
    constant : float
        What the tangents leave at count 0.
    """

    levels: FloatArray
    slopes: FloatArray
    constant: float

    @cached_property
    def heights(self) -> FloatArray:
        """``h`` at the levels."""
        return np.concatenate(([0.0], np.cumsum(self.slopes[:-1] * np.diff(self.levels))))

    def value(self, deviations: FloatArray) -> FloatArray:
        """``h`` at given deviations."""
        k = np.searchsorted(self.levels, deviations, side="right") - 1
        return self.heights[k] + self.slopes[k] * (deviations - self.levels[k])


@njit(cache=True)
def make_layers(
    tail: FloatArray,
    places: FloatArray,
    levels: FloatArray,
    counts: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> tuple[FloatArray, float]:
    """Slopes and constant of the tangents to `tail` at `counts`.

    Counts are masses where samples have weights. Every tangent is one of the function on all of
    its places, whatever rounding does to a count.

    Parameters
    ----------
    tail : ndarray of shape (n_places,)
        A convex function at the places, linear between them, 0 at 0.
    places : ndarray of shape (n_places,)
        Counts from 0 to that of all samples, ascending: 0, 1, ..., n_samples without masses.
    levels : ndarray of shape (n_layers,)
        Where the layers begin.
    counts : ndarray of shape (n_layers,)
        Where to touch, possibly between two counts; the last one is 0.
    least, most : ndarray of shape (n_layers,)
        Smallest and largest count possible in each layer.
    """
    last = places.size - 1
    close = 1e-12 * places[last]
    slopes = np.empty(levels.size)
    constant = 0.0
    for k in range(levels.size):
        low, high = least[k], most[k]
        count = min(max(min(max(counts[k], low), high), 0.0), places[last])
        above = min(np.searchsorted(places, count), last)
        if above > 0 and count - places[above - 1] <= close:
            above -= 1
        is_place = places[above] - count <= close
        if is_place:
            count = places[above]
        # The segments on both sides, the same one inside of a segment and at both ends.
        right = above if is_place and above < last else above - 1
        left = max(above - 1, 0)
        slope_left = (tail[left + 1] - tail[left]) / (places[left + 1] - places[left])
        slope_right = (tail[right + 1] - tail[right]) / (places[right + 1] - places[right])
        if count >= high - close:
            # Beyond the largest count nothing is possible: the tangent may be the chord below.
            slope = slope_left
        elif count <= low + close:
            slope = slope_right
        else:
            slope = 0.5 * (slope_left + slope_right)
        slopes[k] = slope
        if k + 1 < levels.size:
            value = tail[left] + (count - places[left]) * slope_left
            constant += (levels[k + 1] - levels[k]) * (value - slope * count)
    return slopes, constant


# The arrays of a SampleProblems, in the order of its fields, levels and slopes last.
_Arrays = tuple[FloatArray, ...]


@njit(cache=True)
def _minimise(arrays: _Arrays) -> tuple[FloatArray, FloatArray]:
    """The problems solved piece by piece."""
    coef, centre, rho, rising, lower, upper, levels, slopes = arrays
    values = np.empty(coef.size)
    slacks = np.empty(coef.size)
    for i in range(coef.size):
        a, u, curvature, rise = coef[i], centre[i], rho[i], rising[i]
        low, high = lower[i], upper[i]
        best, where = np.inf, low
        if low <= 0.0:
            where = min(max(u + a / curvature, low), min(high, 0.0))
            best = -a * where + 0.5 * curvature * (where - u) ** 2
        height = 0.0
        for k in range(levels.size):
            start, slope = levels[k], slopes[k]
            if start > high:
                break
            stop = levels[k + 1] if k + 1 < levels.size else np.inf
            if stop >= low:
                v = u + (a - rise - slope) / curvature
                v = min(max(v, max(start, low)), min(stop, high))
                own = -a * v + 0.5 * curvature * (v - u) ** 2 + rise * v
                value = own + height + slope * (v - start)
                if value < best:
                    best, where = value, v
            height += slope * (stop - start)
        values[i], slacks[i] = best, where
    return values, slacks


@njit(cache=True)
def _tighten(arrays: _Arrays, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the smallest intervals that hold all slacks whose values are within the limits."""
    coef, centre, rho, rising, lower, upper, levels, slopes = arrays
    new_lower = upper.copy()
    new_upper = lower.copy()
    for i in range(coef.size):
        a, u, curvature, low, high = coef[i], centre[i], rho[i], lower[i], upper[i]
        value = 0.0
        # Piece -1 lies below all levels.
        start, stop, slope, rise = -np.inf, 0.0, 0.0, 0.0
        for k in range(-1, levels.size):
            if k >= 0:
                start, slope, rise = levels[k], slopes[k], rising[i]
                stop = levels[k + 1] if k + 1 < levels.size else np.inf
            if start > high:
                break
            left, right = max(start, low), min(stop, high)
            if left <= right:
                # The piece is  least + curvature/2 (v - vertex)^2.
                vertex = u + (a - rise - slope) / curvature
                own = -a * vertex + 0.5 * curvature * (vertex - u) ** 2 + rise * vertex
                least = own + value + slope * (vertex - max(start, 0.0))
                if limits[i] >= least:
                    reach = np.sqrt(2.0 * (limits[i] - least) / curvature)
                    left, right = max(left, vertex - reach), min(right, vertex + reach)
                    if left <= right:
                        new_lower[i] = min(new_lower[i], left)
                        new_upper[i] = max(new_upper[i], right)
            if k >= 0:
                value += slope * (stop - start)
    return new_lower, new_upper


@dataclass(frozen=True, eq=False)
class SampleProblems:
    """One problem per sample: ``min_v -a v + rho/2 (v - u)^2 + q v_+ + h(v_+)`` on an interval.

    Parameters
    ----------
    coef : ndarray of shape (n_samples,)
        Coefficients a of w.
    centre : ndarray of shape (n_samples,)
        Slacks u of (w, b).
    rho : ndarray of shape (n_samples,)
        Curvatures, positive.
    rising : ndarray of shape (n_samples,)
        The point q of P(p).
    lower, upper : ndarray of shape (n_samples,)
        Intervals of the slacks.
    layers : Layers
        The function h.
    mass : ndarray of shape (n_samples,) or None, default=None
        Sample weights, by which h counts; None when all are 1.
    """

    coef: FloatArray
    centre: FloatArray
    rho: FloatArray
    rising: FloatArray
    lower: FloatArray
    upper: FloatArray
    layers: Layers
    mass: FloatArray | None = None

    @property
    def _arrays(self) -> _Arrays:
        """The problems per unit of mass."""
        coef, rho, rising = self.coef, self.rho, self.rising
        if self.mass is not None:
            coef, rho, rising = coef / self.mass, rho / self.mass, rising / self.mass
        own = (coef, self.centre, rho, rising, self.lower, self.upper)
        return (*own, self.layers.levels, self.layers.slopes)

    def minimise(self) -> tuple[FloatArray, FloatArray]:
        """Minima of all of them, exactly, and the slacks where they lie."""
        minima, slacks = _minimise(self._arrays)
        return (minima if self.mass is None else self.mass * minima), slacks

    def tighten(self, minima: FloatArray, room: float) -> tuple[FloatArray, FloatArray]:
        """Intervals outside of which one sample alone would lift the bound by more than `room`.

        The other samples contribute at least their minima, so no point within `room` of the bound
        has a slack outside. An empty interval comes back reversed, lower above upper.
        """
        limits = minima + room
        return _tighten(self._arrays, limits if self.mass is None else limits / self.mass)
