"""Rows with the inner products of a kernel matrix, as few columns as they need.

Wide kernels are smooth functions of the samples, and smooth functions span few dimensions: a
Gaussian kernel of 1,000 samples in the plane may need 40 columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

__all__ = ["factorise"]

# What may be left of a diagonal entry, relative to the largest: a few times its rounding.
_LEFT = 1e-14
# Columns after which the decay of the trace is looked at, and again whenever they have doubled.
_FIRST_LOOK = 8


@njit(cache=True)
def _pivoted_cholesky(
    gram: FloatArray, columns: FloatArray, left: FloatArray, goal: float, first_look: int
) -> int:
    """Overwrites `columns`, one factor per row, and `left`; their number, or -1 when too many.

    Gives up as soon as the fall of the trace, taken to go on as it was, needs more columns than
    there is room for.
    """
    most = columns.shape[0]
    n = left.size
    look, last = first_look, left.sum()
    for k in range(most):
        pivot = np.argmax(left)
        if left[pivot] <= goal:
            return k
        if k == look:
            trace = left.sum()
            rate = np.log(last / trace) / (look - look // 2)
            if rate * (most - k) < np.log(trace / (goal * n)):
                return -1
            last, look = trace, 2 * look
        column = columns[k]
        column[:] = gram[pivot]
        for j in range(k):
            factor = columns[j, pivot]
            other = columns[j]
            for i in range(n):
                column[i] -= factor * other[i]
        scale = 1.0 / np.sqrt(left[pivot])
        for i in range(n):
            column[i] *= scale
            left[i] -= column[i] * column[i]
        left[pivot] = 0.0
    return most if left.max() <= goal else -1


def factorise(gram: FloatArray, max_rank: int) -> FloatArray | None:
    """Rows F with ``F F' = gram`` up to rounding, of at most `max_rank` columns; None if more.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric positive semi-definite.
    max_rank : int
        The most columns that are of use.
    """
    left = gram.diagonal().copy()
    columns = np.empty((max(max_rank, 0), left.size))
    goal = _LEFT * float(left.max(initial=0.0))
    if not np.isfinite(goal):
        return None
    # Copies of few samples leave a matrix of their number, however the trace falls until there.
    mixed = gram @ np.linspace(1.0, 2.0, left.size)
    has_copies = np.unique(mixed).size <= max_rank
    look = max_rank if has_copies else _FIRST_LOOK
    rank = _pivoted_cholesky(gram, columns, left, goal, look)
    return None if rank < 0 else np.ascontiguousarray(columns[:rank].T)
