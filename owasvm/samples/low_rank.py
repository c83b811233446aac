"""Rows with the inner products of a kernel matrix, as few columns as they need.

Wide kernels are smooth functions of the samples, and smooth functions span few dimensions: a
Gaussian kernel of 1,000 samples in the plane may need 40 columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

__all__ = ["factorise", "factorise_columns"]

# What may be left of a diagonal entry, relative to the largest: a few times its rounding.
_LEFT = 1e-14
# Columns after which the decay of the trace is looked at, and again whenever they have doubled.
_FIRST_LOOK = 8


@njit(cache=True)
def _is_out_of_reach(
    look: int, last: float, trace: float, n_samples: int, goal: float, n_left: int
) -> bool:
    """Whether the trace, which fell from `last` to `trace` in half of `look` columns, falls on to
    `goal` per sample within `n_left` more."""
    rate = np.log(last / trace) / (look - look // 2)
    return bool(rate * n_left < np.log(trace / (goal * n_samples)))


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
            if _is_out_of_reach(look, last, trace, n, goal, most - k):
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


def factorise_columns(
    column: Callable[[int], FloatArray], diagonal: FloatArray, max_rank: int
) -> FloatArray | None:
    """The same from columns of the matrix, computed when they are needed.

    Parameters
    ----------
    column : callable
        Takes the index of a sample and returns its column, which is overwritten.
    diagonal : ndarray of shape (n_samples,)
        That of the matrix.
    max_rank : int
        The most columns that are of use.
    """
    left = diagonal.copy()
    goal = _LEFT * float(left.max(initial=0.0))
    if not np.isfinite(goal):
        return None
    columns = np.empty((max(max_rank, 0), left.size))
    look, last = _FIRST_LOOK, float(left.sum())
    rank = 0
    while left.max() > goal:
        trace = float(left.sum())
        if rank == max_rank:
            return None
        if rank == look:
            if _is_out_of_reach(look, last, trace, left.size, goal, max_rank - rank):
                return None
            last, look = trace, 2 * look
        pivot = int(np.argmax(left))
        found = column(pivot)
        found -= columns[:rank, pivot] @ columns[:rank]
        found /= np.sqrt(left[pivot])
        left -= found * found
        left[pivot] = 0.0
        columns[rank] = found
        rank += 1
    return np.ascontiguousarray(columns[:rank].T)
