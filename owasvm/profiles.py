r"""What a unit of sample weight pays by its rank, and what that leaves for weighted samples.

A sample of mass ``s_i`` stands for as many copies with equal deviations. ``Lambda(t)``, the *tail
sum* at t, is what the mass t of largest deviations pays together per unit of deviation. A sample
with mass t ranked above it pays ``Lambda(t + s_i) - Lambda(t)``, and with ``N(v)`` the mass of the
samples that deviate by more than v,

.. math:: \Phi(\xi) = \int_0^\infty \Lambda(N(v)) \, dv .

So only the values of Lambda at sums of masses matter, and any function that is nowhere larger at
them gives a smaller loss. A :class:`Profile` is a piecewise linear Lambda; without sample weights
its slices are the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.rounding import UNIT, accumulated, partial_sums
from owasvm.weights import Share, bends_of, weights_in_order

FloatArray = NDArray[np.float64]

__all__ = ["Profile", "charge_by_profile", "profile_below", "rising_part"]

# Sums of masses that are worth to be listed: where the shape between them is known a grid says
# nearly as much.
_MAX_SUMS_SHAPED = 4096
_MAX_SUMS = 100_000
# Sums looked at while listing them.
_MAX_LISTED = 4_000_000
# Sums closer than this share of the total are equal up to rounding.
_EQUAL_SUMS = 1e-12
# Share of the total that rounding can have left in a tail sum.
_ROUNDED_SUMS = 1e-12
# Slices of a grid are at most this share of the total, and of the distance to both ends. What a
# convex or concave function and its chords differ by falls with the square of it.
_SHAPED_SHARE, _SHAPED_RATIO = 1 / 4096, 1 / 128
_SHARE, _RATIO = 1 / 32768, 1 / 512


def rising_part(density: FloatArray) -> FloatArray:
    """The sum of all rises up to each rank: non-decreasing, and the rest of the costs falls.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.profiles import rising_part
    >>> rising_part(np.array([3.0, 1.0, 2.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    return np.concatenate(([0.0], np.cumsum(np.maximum(np.diff(density), 0.0))))


@dataclass(frozen=True, eq=False)
class Profile:
    """Costs of a unit of mass on consecutive slices of mass.

    Parameters
    ----------
    density : ndarray of shape (n_slices,)
        Cost of a unit of mass, the slice of the smallest deviations first.
    edges : ndarray of shape (n_slices + 1,)
        Where slices begin and end, from the largest deviation down: 0 to the total mass.
    has_all_sums : bool, default=True
        Whether slices begin and end at all sums of masses that there are, up to rounding.
    """

    density: FloatArray
    edges: FloatArray
    has_all_sums: bool = True

    @cached_property
    def width(self) -> FloatArray:
        """Mass of each slice, the smallest deviations first."""
        return np.diff(self.edges)[::-1]

    @cached_property
    def largest_first(self) -> FloatArray:
        """The density, the slice of the largest deviations first."""
        return np.ascontiguousarray(self.density[::-1])

    @cached_property
    def sums(self) -> FloatArray:
        """Tail sums at the edges."""
        return np.concatenate(([0.0], partial_sums(self.largest_first * np.diff(self.edges))))

    @property
    def total(self) -> float:
        """What all pay together."""
        return float(self.sums[-1])

    @property
    def never_falls(self) -> bool:
        """Whether the density falls nowhere with the rank, up to rounding of the tail sums."""
        rounded = _ROUNDED_SUMS * self.total / np.minimum(self.width[1:], self.width[:-1])
        return bool(np.all(np.diff(self.density) >= -rounded))

    def with_density(self, density: FloatArray) -> Profile:
        """Other costs on the same slices."""
        return replace(self, density=density)

    def merged(self) -> Profile:
        """The same costs with neighbouring slices of equal density as one."""
        changes = np.concatenate(([True], np.diff(self.density) != 0.0))
        ends = np.concatenate(([True], changes[::-1]))
        return Profile(self.density[changes], self.edges[ends], has_all_sums=False)

    def spread(self, deviations: FloatArray, mass: FloatArray | None) -> FloatArray:
        """Deviations times mass in each slice: its product with a density is what they cost.

        Parameters
        ----------
        deviations : ndarray of shape (n_samples,)
            Deviations in any order.
        mass : ndarray of shape (n_samples,) or None
            Sample weights; None where slices are ranks.
        """
        if mass is None:
            return np.sort(deviations)
        order = np.argsort(-deviations, kind="stable")
        reached = np.concatenate(([0.0], np.cumsum(mass[order])))
        sums = np.concatenate(([0.0], np.cumsum((mass * deviations)[order])))
        return np.diff(np.interp(self.edges, reached, sums))[::-1]


@njit(cache=True)
def _charge(
    mass: FloatArray, edges: FloatArray, sums: FloatArray, density: FloatArray
) -> FloatArray:
    """Costs of samples ranked from the largest down; so are `edges`, `sums` and `density`."""
    costs = np.empty(mass.size)
    last = density.size - 1
    start, k = 0.0, 0
    for i in range(mass.size):
        while k < last and start >= edges[k + 1]:
            k += 1
        stop = start + mass[i]
        if k == last or stop <= edges[k + 1]:
            # Without a difference, however small the mass.
            costs[i] = density[k] * mass[i]
        else:
            j = min(np.searchsorted(edges, stop) - 1, last)
            costs[i] = density[k] * (edges[k + 1] - start)
            costs[i] += (sums[j] - sums[k + 1]) + density[j] * (stop - edges[j])
            k = j
        start = stop
    return costs


def charge_by_profile(profile: Profile, mass: FloatArray) -> FloatArray:
    """Costs of weighted samples.

    Parameters
    ----------
    profile : Profile
        What a unit pays.
    mass : ndarray of shape (n_samples,)
        Sample weights, the largest deviation first; all of them or the first few.
    """
    mass = np.ascontiguousarray(mass)
    return _charge(mass, profile.edges, profile.sums, profile.largest_first)


def profile_below(share: Share, mass: FloatArray) -> tuple[Profile, Profile]:
    """A share function as profiles: one near it, and one nowhere larger at sums of masses.

    Parameters
    ----------
    share : callable
        From :func:`owasvm.weights.share_function`.
    mass : ndarray of shape (n_samples,)
        Positive sample weights.

    Returns
    -------
    near, below : Profile
        On the same slices, in units of one per unit of mass in the mean. Equal up to rounding
        where all sums of masses are edges.
    """
    bends = bends_of(share)
    smallest, total = float(mass.min()), float(mass.sum())
    listed = _list_sums(mass, _MAX_SUMS if bends is None else _MAX_SUMS_SHAPED)
    if listed is not None:
        lows, edges = listed
    else:
        edges = _make_grid(smallest, total, bends)
        lows = edges
    width = np.diff(edges)[::-1]
    near = Profile(weights_in_order(share, width) / width, edges, listed is not None)
    sums = near.sums.copy()
    # What the sums, and those of masses, can be off by.
    roundings = accumulated(4 * mass.size + 4 * width.size + 256)
    sums *= 1.0 - roundings
    # The arc sine of 1 has no slope: what a mass is off by may count many times.
    slopes = np.concatenate(([0.0], near.largest_first, [0.0]))
    sums -= roundings * edges * np.maximum(np.maximum(slopes[:-1], slopes[1:]), 1.0)
    if bends is None:
        sums[1:] -= roundings * total
    if listed is None and bends is not None:
        sums -= _sagitta(near, total * np.asarray(bends), smallest)
    elif listed is None:
        # A share function never falls: on a slice it is at least what it is where the slice
        # begins. Nothing lies within the first slice, nor within the last.
        sums[2:-1] = sums[1:-2].copy()
        sums[1] *= edges[1] / edges[2]
    else:
        merged = np.flatnonzero(lows < edges)
        at = np.asarray(share(lows[merged] / edges[-1]), dtype=np.float64)
        sums[merged] = np.minimum(sums[merged], total * at)
    # Lower where a sum is larger than one further on: a point that is lowered stays below.
    sums = np.maximum(np.minimum.accumulate(sums[::-1])[::-1], 0.0)
    sums[0] = 0.0
    # A slice is as wide as the rounding of its edges allows.
    return near, near.with_density(np.diff(sums)[::-1] / (width + 4.0 * UNIT * total))


def _list_sums(mass: FloatArray, most: int) -> tuple[FloatArray, FloatArray] | None:
    """All sums of masses, ascending; None where there are more than `most`.

    Sums that are equal up to rounding are one: the smallest and the largest of each are returned.
    """
    total, unit = float(mass.sum()), float(mass.min())
    if total <= most and np.all(mass == np.round(mass)):
        unit = float(np.gcd.reduce(mass.astype(np.int64)))
    if total <= most * unit and np.all(np.round(mass / unit) * unit == mass):
        multiples = unit * np.arange(round(total / unit) + 1, dtype=np.float64)
        return multiples, multiples
    sums: FloatArray = np.zeros(1)
    for value, count in zip(*np.unique(mass, return_counts=True), strict=True):
        if sums.size * (int(count) + 1) > _MAX_LISTED:
            return None
        sums = np.unique(np.add.outer(sums, value * np.arange(count + 1.0)))
        sums = sums[_begins_anew(sums, 1e-3 * _EQUAL_SUMS * total)]
        if sums.size > 16 * most:
            return None
    starts = np.flatnonzero(_begins_anew(sums, _EQUAL_SUMS * total))
    if starts.size > most:
        return None
    return sums[starts], sums[np.append(starts[1:], sums.size) - 1]


def _begins_anew(sums: FloatArray, distance: float) -> NDArray[np.bool_]:
    """Which of the sums are further than a distance from the one before; 0 is like no other."""
    anew = np.concatenate(([True], np.diff(sums) > distance))
    anew[1:2] = True
    return anew


def _make_grid(smallest: float, total: float, bends: tuple[float, ...] | None) -> FloatArray:
    """Edges of slices: fine at both ends, beyond the smallest mass; bends among them."""
    share, ratio = (_SHARE, _RATIO) if bends is None else (_SHAPED_SHARE, _SHAPED_RATIO)
    even = min(max(share * total / ratio, smallest), 0.5 * total)
    n_growing = int(np.ceil((np.log(even) - np.log(smallest)) / np.log1p(ratio)))
    growing = np.geomspace(smallest, even, max(n_growing, 1) + 1)
    n_even = int(np.ceil((0.5 * total - even) / (share * total)))
    half = np.concatenate((growing, np.linspace(even, 0.5 * total, n_even + 1)))
    inner = np.concatenate((half, total - half))
    fixed = total * np.asarray(() if bends is None else bends)
    fixed = np.unique(np.concatenate(([0.0, smallest, total], fixed)))
    fixed = fixed[(fixed == 0.0) | ((fixed >= smallest) & (fixed <= total))]
    after = np.searchsorted(fixed, inner)
    distance = np.minimum(
        inner - fixed[np.maximum(after - 1, 0)], fixed[np.minimum(after, fixed.size - 1)] - inner
    )
    inner = np.unique(inner[distance > _EQUAL_SUMS * inner])
    apart = np.diff(inner, prepend=0.0) > _EQUAL_SUMS * inner
    return np.unique(np.concatenate((fixed, inner[apart])))


def _sagitta(near: Profile, bends: FloatArray, smallest: float) -> FloatArray:
    """By how much to lower the tail sums at the edges so that the chords lie below the curve.

    Where the curve is concave they do already. Where it is convex it lies above the chords of the
    slices before and behind, extended; it never falls, whatever comes before.
    """
    edges, slopes = near.edges, near.density[::-1]
    first = np.searchsorted(bends, edges[:-1] * (1.0 + _EQUAL_SUMS), side="right")
    last = np.searchsorted(bends, edges[1:] * (1.0 - _EQUAL_SUMS), side="left")
    before = np.zeros(slopes.size)
    behind = np.full(slopes.size, np.inf)
    same = last[:-1] == first[1:]
    before[1:][same] = slopes[:-1][same]
    behind[:-1][same] = slopes[1:][same]
    # Pieces of the curve, each concave or convex.
    convex = np.zeros(slopes.size, dtype=bool)
    for piece in range(bends.size + 1):
        inside = np.flatnonzero((first == piece) & (last == piece))
        if inside.size:
            convex[inside] = slopes[inside[-1]] >= slopes[inside[0]]
    left, right = np.maximum(slopes - before, 0.0), np.maximum(behind - slopes, 0.0)
    # left * right / (left + right), which is `left` where `right` is infinite
    depth = np.where(
        left > 0.0, 1.0 / (1.0 / np.maximum(left, 1e-300) + 1.0 / np.maximum(right, 1e-300)), 0.0
    )
    depth = np.where(convex & (right > 0.0), depth, 0.0) * np.diff(edges)
    mixed = first != last
    depth[mixed] = (slopes * np.diff(edges))[mixed]
    # No sum of masses lies within these.
    empty = np.diff(edges) <= smallest * (1.0 + 1e-9)
    depth[0] = 0.0
    if empty[-1]:
        depth[-1] = 0.0
    lowered = np.zeros(edges.size)
    lowered[1:] = depth
    lowered[:-1] = np.maximum(lowered[:-1], depth)
    lowered[0] = 0.0
    return lowered
