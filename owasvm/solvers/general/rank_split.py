r"""Rank costs taken apart: what rises, what falls, and the convex part below them.

Costs ``c_1, ..., c_n`` are ascending: ``c_k`` meets the k-th smallest deviation. Their *tail sums*
are ``Lambda(j) = c_n + ... + c_{n-j+1}``. Non-decreasing costs have concave tail sums, and

.. math:: \Phi_m \le \Phi_c \text{ on } \xi \ge 0 \iff
          \text{the tail sums of } m \text{ never exceed those of } c,

because a sorted non-negative vector is a sum of non-negative multiples of the indicators of the
j largest entries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]


def tail_sums(costs: FloatArray) -> FloatArray:
    """``Lambda(0), ..., Lambda(n)``: sums of the last j costs.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import tail_sums
    >>> tail_sums(np.array([3.0, 1.0, 2.0])).tolist()
    [0.0, 2.0, 3.0, 6.0]
    """
    return np.concatenate(([0.0], np.cumsum(costs[::-1])))


def rising_part(costs: FloatArray) -> FloatArray:
    """The sum of all rises up to each rank: non-decreasing, and the rest of the costs falls.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import rising_part
    >>> rising_part(np.array([3.0, 1.0, 2.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    return np.concatenate(([0.0], np.cumsum(np.maximum(np.diff(costs), 0.0))))


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


def tangent_minorant(costs: FloatArray, n_kept: int) -> FloatArray:
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
    start = float(kept.sum())
    sums = tail_sums(costs)[n_kept + 1 :]
    below = np.full(costs.size - n_kept, np.inf)
    if below.size:
        slope = float(np.min((sums - start) / np.arange(1, below.size + 1)))
        below[:] = min(slope, float(kept[-1]) if n_kept else np.inf)
    return np.concatenate((kept, below))[::-1]


@njit(cache=True)
def _tangent_values(costs: FloatArray, deviations: FloatArray) -> FloatArray:
    """Ordered sums of ascending `deviations` with the tangent minorants that keep 0 to n costs."""
    n = costs.size
    values = np.empty(n + 1)
    remaining = deviations.sum()
    kept_value = 0.0
    kept_sum = 0.0
    kept = np.inf
    sums = np.cumsum(costs[::-1])
    for n_kept in range(n + 1):
        if n_kept > 0:
            kept = min(kept, costs[n - n_kept])
            kept_sum += kept
            kept_value += kept * deviations[n - n_kept]
            remaining -= deviations[n - n_kept]
        slope = kept
        for j in range(n_kept, n):
            slope = min(slope, (sums[j] - kept_sum) / (j + 1 - n_kept))
        values[n_kept] = kept_value + (slope * remaining if n_kept < n else 0.0)
    return values


def best_minorant(costs: FloatArray, deviations: FloatArray) -> FloatArray:
    """The tangent minorant with the largest ordered sum of the given deviations.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
        Ascending costs.
    deviations : ndarray of shape (n_samples,)
        Deviations, sorted ascending.

    Returns
    -------
    minorant : ndarray of shape (n_samples,)
    """
    return tangent_minorant(costs, int(np.argmax(_tangent_values(costs, deviations))))


def convex_envelope(values: FloatArray) -> FloatArray:
    """Largest convex function below the values at 0, 1, ..., taken at the same places.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.solvers.general.rank_split import convex_envelope
    >>> convex_envelope(np.array([0.0, 2.0, 2.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    corners = _lower_hull(values)
    return np.interp(np.arange(values.size), corners, values[corners])


@njit(cache=True)
def _lower_hull(values: FloatArray) -> NDArray[np.int64]:
    """Indices of the corners of the lower convex hull of the points (k, values[k])."""
    corners = np.empty(values.size, dtype=np.int64)
    size = 0
    for k in range(values.size):
        while size >= 2:
            i, j = corners[size - 2], corners[size - 1]
            if (values[j] - values[i]) * (k - i) < (values[k] - values[i]) * (j - i):
                break
            size -= 1
        corners[size] = k
        size += 1
    return corners[:size]
