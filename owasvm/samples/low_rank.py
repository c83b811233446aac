"""Rows with the inner products of a kernel matrix, as few columns as they need.

Wide kernels are smooth functions of the samples, and smooth functions span few dimensions: a
Gaussian kernel of 1,000 samples in the plane may need 40 columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

FloatArray = NDArray[np.float64]

__all__ = ["factorise", "factorise_columns", "truncate"]

# What may be left of a diagonal entry, relative to the largest: a few times its rounding.
_LEFT = 1e-14
_LEAST_ENTRY = 1e-280
# Columns after which the decay of the trace is looked at, and again whenever they have doubled.
_FIRST_LOOK = 8


def _is_out_of_reach(
    look: int, last: float, trace: float, n_samples: int, goal: float, n_left: int
) -> bool:
    """Whether the trace, which fell from `last` to `trace` in half of `look` columns, falls on to
    `goal` per sample within `n_left` more."""
    rate = math.log(last / trace) / (look - look // 2)
    return rate * n_left < math.log(trace / (goal * n_samples))


def _has_few_rows(gram: FloatArray, number: int) -> bool:
    """Whether the rows of a symmetric matrix are copies of at most so many, as sums tell."""
    # There are no fewer than values in one of them, which is read sooner than all.
    if gram.shape[0] > 0 and np.unique(gram[0]).size > number:
        return False
    with np.errstate(all="ignore"):
        mixed = gram @ np.linspace(1.0, 2.0, gram.shape[0])
    return np.unique(mixed).size <= number


def factorise(gram: FloatArray, max_rank: int) -> FloatArray | None:
    """Rows F with ``F F' = gram`` up to rounding, of at most `max_rank` columns; None if more.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric positive semi-definite.
    max_rank : int
        The most columns that are of use.
    """
    # Copies of few samples leave a matrix of their number, however the trace falls until there.
    look = max_rank if _has_few_rows(gram, max_rank) else _FIRST_LOOK
    return factorise_columns(lambda pivot: gram[pivot].copy(), gram.diagonal(), max_rank, look)


def factorise_columns(
    column: Callable[[int], FloatArray],
    diagonal: FloatArray,
    max_rank: int,
    look: int = _FIRST_LOOK,
) -> FloatArray | None:
    """The same from columns of the matrix, computed when they are needed.

    Gives up as soon as the fall of the trace, taken to go on as it was, needs more columns than
    there is room for.

    Parameters
    ----------
    column : callable
        Takes the index of a sample and returns its column, which is overwritten.
    diagonal : ndarray of shape (n_samples,)
        That of the matrix.
    max_rank : int
        The most columns that are of use.
    look : int, default=8
        Columns after which the fall of the trace is looked at first.
    """
    left = diagonal.copy()
    goal = _LEFT * float(left.max(initial=0.0))
    # Of tiny entries nothing can be told from rounding.
    if not np.isfinite(goal) or 0.0 < left.max(initial=0.0) < _LEAST_ENTRY:
        return None
    columns = np.empty((max(max_rank, 0), left.size))
    last = float(left.sum())
    rank = 0
    while True:
        pivot = int(left.argmax())
        if left[pivot] <= goal:
            return np.ascontiguousarray(columns[:rank].T)
        if rank == max_rank:
            return None
        if rank == look:
            trace = float(left.sum())
            if _is_out_of_reach(look, last, trace, left.size, goal, max_rank - rank):
                return None
            last, look = trace, 2 * look
        found = column(pivot)
        found -= columns[:rank, pivot] @ columns[:rank]
        found /= np.sqrt(left[pivot])
        left -= found * found
        left[pivot] = 0.0
        columns[rank] = found
        rank += 1


def truncate(gram: FloatArray, left: float) -> FloatArray:
    """Rows F, columns that say most first, with at most `left` on the diagonal of ``gram - FF'``.

    That matrix is positive semi-definite. Takes a third of ``n_samples**3`` multiplications at
    most, in blocks: 2 ms for 65 columns of 1,000 samples, 11 ms for all.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric positive semi-definite.
    left : float
        Positive.
    """
    # LAPACK reads and overwrites a triangle.
    factor, pivots, rank, _ = dpstrf(gram.copy().T, tol=left, lower=1, overwrite_a=1)
    rows = np.empty((gram.shape[0], rank))
    rows[pivots - 1] = np.tril(factor[:, :rank])
    return rows
