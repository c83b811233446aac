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
IntArray = NDArray[np.int64]

__all__ = ["Layers", "SampleMinima", "make_layers", "sample_minima", "tighten"]


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


@dataclass(frozen=True)
class SampleMinima:
    """Minima of the one-sample problems and where they lie."""

    values: FloatArray
    slacks: FloatArray

    @property
    def total(self) -> float:
        """Sum of the minima."""
        return float(self.values.sum())


@njit(cache=True)
def make_layers(
    tail: FloatArray, levels: FloatArray, counts: FloatArray, least: IntArray, most: IntArray
) -> tuple[FloatArray, float]:
    """Slopes and constant of the tangents to `tail` at `counts`.

    Parameters
    ----------
    tail : ndarray of shape (n_samples + 1,)
        A convex function of the count 0, 1, ..., n_samples, 0 at 0.
    levels : ndarray of shape (n_layers,)
        Where the layers begin.
    counts : ndarray of shape (n_layers,)
        Where to touch, possibly between two counts; the last one is 0.
    least, most : ndarray of shape (n_layers,)
        Smallest and largest count possible in each layer.
    """
    n_samples = tail.size - 1
    slopes = np.empty(levels.size)
    constant = 0.0
    for k in range(levels.size):
        low, high = least[k], most[k]
        count = min(max(counts[k], float(low)), float(high))
        whole = int(np.floor(count))
        if count >= high:
            # Beyond the largest count nothing is possible: the tangent may be the chord below.
            slope = tail[high] - tail[high - 1] if high > 0 else tail[1] - tail[0]
        elif count <= low:
            slope = tail[low + 1] - tail[low]
        elif whole < count:
            slope = tail[whole + 1] - tail[whole]
        else:
            slope = 0.5 * (tail[whole + 1] - tail[whole - 1])
        slopes[k] = slope
        if k + 1 < levels.size:
            top = min(whole + 1, n_samples)
            value = tail[whole] + (count - whole) * (tail[top] - tail[whole])
            constant += (levels[k + 1] - levels[k]) * (value - slope * count)
    return slopes, constant


@njit(cache=True)
def _minimise(
    coef: float,
    centre: float,
    rho: float,
    rising: float,
    lower: float,
    upper: float,
    levels: FloatArray,
    slopes: FloatArray,
) -> tuple[float, float]:
    """Minimum over [lower, upper] of ``-a v + rho/2 (v - u)^2 + q v_+ + h(v_+)``."""
    best = np.inf
    where = lower
    if lower <= 0.0:
        v = min(max(centre + coef / rho, lower), min(upper, 0.0))
        best = -coef * v + 0.5 * rho * (v - centre) ** 2
        where = v
    value = 0.0
    for k in range(levels.size):
        start = levels[k]
        if start > upper:
            break
        slope = slopes[k]
        stop = levels[k + 1] if k + 1 < levels.size else np.inf
        if stop >= lower:
            v = centre + (coef - rising - slope) / rho
            v = min(max(v, max(start, lower)), min(stop, upper))
            height = (
                -coef * v
                + 0.5 * rho * (v - centre) ** 2
                + rising * v
                + value
                + slope * (v - start)
            )
            if height < best:
                best = height
                where = v
        value += slope * (stop - start)
    return best, where


@njit(cache=True)
def _sample_minima(
    coef: FloatArray,
    centre: FloatArray,
    rho: FloatArray,
    rising: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    values = np.empty(coef.size)
    slacks = np.empty(coef.size)
    for i in range(coef.size):
        values[i], slacks[i] = _minimise(
            coef[i], centre[i], rho[i], rising[i], lower[i], upper[i], levels, slopes
        )
    return values, slacks


def sample_minima(
    coef: FloatArray,
    centre: FloatArray,
    rho: FloatArray,
    rising: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    layers: Layers,
) -> SampleMinima:
    """Solve the one-sample problems exactly, piece by piece.

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

    Returns
    -------
    minima : SampleMinima
    """
    return SampleMinima(
        *_sample_minima(coef, centre, rho, rising, lower, upper, layers.levels, layers.slopes)
    )


@njit(cache=True)
def _tighten(
    coef: FloatArray,
    centre: FloatArray,
    rho: FloatArray,
    rising: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
    limits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    new_lower = upper.copy()
    new_upper = lower.copy()
    for i in range(coef.size):
        value = 0.0
        curvature = rho[i]
        for k in range(-1, levels.size):
            if k < 0:
                start, stop, slope = -np.inf, 0.0, 0.0
                rise = 0.0
            else:
                start = levels[k]
                stop = levels[k + 1] if k + 1 < levels.size else np.inf
                slope = slopes[k]
                rise = rising[i]
            if start > upper[i]:
                break
            left, right = max(start, lower[i]), min(stop, upper[i])
            if left <= right:
                # The piece is  height + curvature/2 (v - vertex)^2.
                vertex = centre[i] + (coef[i] - rise - slope) / curvature
                base = start if k >= 0 else 0.0
                height = (
                    -coef[i] * vertex
                    + 0.5 * curvature * (vertex - centre[i]) ** 2
                    + rise * vertex
                    + value
                    + slope * (vertex - base)
                )
                room = limits[i] - height
                if room >= 0.0:
                    reach = np.sqrt(2.0 * room / curvature)
                    left, right = max(left, vertex - reach), min(right, vertex + reach)
                    if left <= right:
                        new_lower[i] = min(new_lower[i], left)
                        new_upper[i] = max(new_upper[i], right)
            if k >= 0:
                value += slope * (stop - start)
    return new_lower, new_upper


def tighten(
    coef: FloatArray,
    centre: FloatArray,
    rho: FloatArray,
    rising: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    layers: Layers,
    minima: SampleMinima,
    room: float,
) -> tuple[FloatArray, FloatArray]:
    """Intervals outside of which one sample alone would lift the bound by more than `room`.

    The other samples contribute at least their minima, so no point within `room` of the bound has
    a slack outside. An empty interval comes back reversed, lower above upper.
    """
    limits = minima.values + room
    return _tighten(coef, centre, rho, rising, lower, upper, layers.levels, layers.slopes, limits)
