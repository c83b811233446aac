r"""Rank costs taken apart: what rises, what falls, and the convex part below them.

Costs ``c_1, ..., c_n`` are ascending: ``c_k`` meets the k-th smallest deviation. Their *tail sums*
are ``Lambda(j) = c_n + ... + c_{n-j+1}``. Non-decreasing costs have concave tail sums, and

.. math:: \Phi_m \le \Phi_c \text{ on } \xi \ge 0 \iff
          \text{the tail sums of } m \text{ never exceed those of } c,

because a sorted non-negative vector is a sum of non-negative multiples of the indicators of the
j largest entries.

With sample weights the costs are those of a unit on slices of mass
(:class:`owasvm.profiles.Profile`) of given widths; ranks are slices of width 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.profiles import rising_part

__all__ = [
    "best_minorant",
    "convex_envelope",
    "pointwise_minorant",
    "rising_part",
    "tail_sums",
    "tangent_minorant",
]

FloatArray = NDArray[np.float64]

# Slices of mass up to which all tangent minorants are compared: of more, neighbours hardly differ.
_MAX_TANGENTS = 5000
_FEW_TANGENTS = 256


def tail_sums(costs: FloatArray, width: FloatArray | None = None) -> FloatArray:
    """``Lambda(0), ..., Lambda(n)``: sums of the last j costs.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import tail_sums
    >>> tail_sums(np.array([3.0, 1.0, 2.0])).tolist()
    [0.0, 2.0, 3.0, 6.0]
    """
    paid = costs if width is None else costs * width
    return np.concatenate(([0.0], np.cumsum(paid[::-1])))


def pointwise_minorant(costs: FloatArray) -> FloatArray:
    """``m_k = min(c_k, c_{k+1}, ...)``, the largest non-decreasing vector below the costs.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import pointwise_minorant
    >>> pointwise_minorant(np.array([3.0, 1.0, 2.0])).tolist()
    [1.0, 1.0, 2.0]
    """
    return np.minimum.accumulate(costs[::-1])[::-1]


def tangent_minorant(
    costs: FloatArray, n_kept: int, width: FloatArray | None = None
) -> FloatArray:
    """Non-decreasing minorant that keeps the `n_kept` last costs and is constant below.

    The constant is the largest one possible: a line that starts at the tail sum of the kept costs
    and touches the tail sums from below. Keeping fewer costs starts the line lower, where it can
    be steeper: the large deviations pay less, the small ones more. Of the kept costs the smallest
    one so far counts, counted from the largest deviation down, as in :func:`pointwise_minorant`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import tangent_minorant
    >>> tangent_minorant(np.array([3.0, 1.0, 2.0]), 0).tolist()
    [1.5, 1.5, 1.5]
    """
    kept = np.minimum.accumulate(costs[::-1][:n_kept])
    from_top = np.ones(costs.size) if width is None else width[::-1]
    start = float(kept @ from_top[:n_kept])
    sums = tail_sums(costs, width)[n_kept + 1 :]
    below = np.full(costs.size - n_kept, np.inf)
    if below.size:
        slope = float(np.min((sums - start) / np.cumsum(from_top[n_kept:])))
        below[:] = min(slope, float(kept[-1]) if n_kept else np.inf)
    return np.concatenate((kept, np.maximum(below, 0.0)))[::-1]


@njit(cache=True)
def _tangent_values(
    costs: FloatArray,
    width: FloatArray,
    deviations: FloatArray,
    sums: FloatArray,
    edges: FloatArray,
    every: int,
    values: FloatArray,
) -> None:
    """Changes `values` in place: ordered sums of ascending `deviations` with tangent minorants.

    Those that keep 0 to n costs; only those of every so many are compared. `sums` and `edges` are
    the sums of costs times widths and of widths, from the largest down.
    """
    n = costs.size
    remaining = 0.0
    for k in range(n):
        remaining += deviations[k]
    kept_value = 0.0
    kept_sum = 0.0
    kept = np.inf
    for n_kept in range(n + 1):
        edge = 0.0
        if n_kept > 0:
            edge = edges[n_kept - 1]
            kept = min(kept, costs[n - n_kept])
            kept_sum += kept * width[n - n_kept]
            kept_value += kept * deviations[n - n_kept]
            remaining -= deviations[n - n_kept]
        if n_kept % every != 0 and n_kept < n:
            continue
        slope = kept
        for j in range(n_kept, n):
            slope = min(slope, (sums[j] - kept_sum) / (edges[j] - edge))
        values[n_kept] = kept_value + (slope * remaining if n_kept < n else 0.0)


def best_minorant(
    costs: FloatArray, deviations: FloatArray, width: FloatArray | None = None
) -> FloatArray:
    """The tangent minorant with the largest ordered sum of the given deviations.

    Parameters
    ----------
    costs : ndarray of shape (n_slices,)
        Ascending costs.
    deviations : ndarray of shape (n_slices,)
        Deviations, sorted ascending; times their masses in each slice, if there are any.
    width : ndarray of shape (n_slices,) or None, default=None
        Masses of the slices; None where they are ranks.

    Returns
    -------
    minorant : ndarray of shape (n_slices,)
    """
    widths = np.ones(costs.size) if width is None else width
    few = width is None or costs.size <= _MAX_TANGENTS
    every = 1 if few else costs.size // _FEW_TANGENTS
    sums, edges = np.cumsum((costs * widths)[::-1]), np.cumsum(widths[::-1])
    values = np.full(costs.size + 1, -np.inf)
    _tangent_values(costs, widths, deviations, sums, edges, every, values)
    return tangent_minorant(costs, int(np.argmax(values)), width)


def convex_envelope(values: FloatArray, places: FloatArray | None = None) -> FloatArray:
    """Largest convex function below values at 0, 1, ... or given places, taken there.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import convex_envelope
    >>> convex_envelope(np.array([0.0, 2.0, 2.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    at = np.arange(values.size, dtype=np.float64) if places is None else places
    corners = _lower_hull(at, values)
    return np.interp(at, at[corners], values[corners])


@njit(cache=True)
def _lower_hull(places: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """Indices of the corners of the lower convex hull of the points (places[k], values[k])."""
    corners = np.empty(values.size, dtype=np.int64)
    size = 0
    for k in range(values.size):
        while size >= 2:
            i, j = corners[size - 2], corners[size - 1]
            rise, further = values[j] - values[i], values[k] - values[i]
            if rise * (places[k] - places[i]) < further * (places[j] - places[i]):
                break
            size -= 1
        corners[size] = k
        size += 1
    return corners[:size]
