"""Rows with the inner products of a kernel matrix, as few columns as they need.

Wide kernels are smooth functions of the samples, and smooth functions span few dimensions: a
Gaussian kernel of 1,000 samples in the plane may need 40 columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv, dpstrf, dtrtrs

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "LOOKED_AT",
    "FewColumns",
    "approximate",
    "expect_columns",
    "factorise",
    "factorise_columns",
    "truncate",
]

# What may be left of a diagonal entry, relative to the largest: a few times its rounding.
_LEFT = 1e-14
_LEAST_ENTRY = 1e-280
# Columns after which the decay of the trace is looked at, and again whenever they have doubled.
_FIRST_LOOK = 8
#: Columns of an approximation at most.
MOST_COLUMNS = 96
# After so many columns of an approximation so much of the trace may be left at most.
_LOOKS = ((24, 0.8), (48, 0.5), (MOST_COLUMNS, 0.25))
# Columns that tell how many there are, what is left on average as a share of the largest, and how
# fast it may seem to fall. 39 kernels needed 0.9 to 1.2 of what was expected, or up to three times
# less, where many samples were copies. With a dozen features it may be twice as many, or half:
# what is left falls in steps, a degree of polynomials each.
_PROBES = (24, 48, 96)
#: So many are looked at in any case.
LOOKED_AT = _PROBES[-1]
_SPREAD = 0.3
_MOST_GROWTH = 1.6
# Coefficients are mended where that changes them little: with 1e-9 to 1e-7 of the largest square
# they left the dual set, with 1e-5 and more they lacked what they were mended for.
_RIDGE = 1e-6
# Kernels of which the first columns leave more than this are narrow.
_NARROW = 0.7


def _is_out_of_reach(
    look: int, last: float, trace: float, n_samples: int, goal: float, n_left: int
) -> bool:
    """Whether the trace, which fell from `last` to `trace` in half of `look` columns, falls on to
    `goal` per sample within `n_left` more."""
    if not 0.0 < trace < np.inf:
        # Rounding leaves less than nothing on the whole, and more than the goal somewhere.
        return True
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


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_columns(
    gram: FloatArray,
    squares: FloatArray,
    first: int,
    last: int,
    goal: float,
    left: FloatArray,
    columns: FloatArray,
) -> int:
    """Writes the columns from `first` up to `last`, pivot by pivot; how many there are then.

    `left` is what they leave of the diagonal, in place. Pivots are where that, times `squares`, is
    largest. Ends early at nothing more than `goal`.
    """
    n = left.size
    for rank in range(first, last):
        pivot = 0
        for i in range(n):
            if left[i] * squares[i] > left[pivot] * squares[pivot]:
                pivot = i
        if not left[pivot] * squares[pivot] > goal:
            return rank
        found, row = columns[rank], gram[pivot]
        for i in range(n):
            found[i] = row[i]
        for k in range(rank):
            factor, other = columns[k, pivot], columns[k]
            for i in range(n):
                found[i] -= factor * other[i]
        scale = 1.0 / math.sqrt(left[pivot])
        for i in range(n):
            found[i] *= scale
            left[i] = max(left[i] - found[i] * found[i], 0.0)
        left[pivot] = 0.0
    return last


def approximate(gram: FloatArray, goal: float) -> FloatArray | None:
    """Rows F with ``F F'`` near `gram`, columns that say most first; None if much is left.

    As many columns as it takes to leave `goal` at most, up to :data:`MOST_COLUMNS`; narrow kernels
    are given up after fewer.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric positive semi-definite.
    goal : float
        What may be left of each diagonal entry.
    """
    left = gram.diagonal().copy()
    whole = float(left.sum())
    columns = np.empty((MOST_COLUMNS, left.size))
    squares = np.ones(left.size)
    rank = 0
    for look, share in _LOOKS:
        rank = _add_columns(gram, squares, rank, look, goal, left, columns)
        if rank < look:
            break
        if not float(left.sum()) <= share * whole:
            return None
    return np.ascontiguousarray(columns[:rank].T) if rank > 0 else None


def expect_columns(gram: FloatArray, weight: FloatArray, left: float, look: float = 0.0) -> float:
    """About how many columns :func:`truncate` will find.

    The logarithm of what is left falls by so much whenever columns double, and by a certain
    multiple of that when they double again: twice as much where it falls by as much with every
    column, as much where it falls by a power of their number.

    Parameters
    ----------
    gram, weight, left
        As :func:`truncate` has them.
    look : float, default=0.0
        Columns to look at, about, where that is more than usual.
    """
    squares = np.square(weight)
    rest = gram.diagonal().copy()
    probes = list(_PROBES)
    while probes[-1] < min(look, 0.5 * rest.size):
        probes.append(2 * probes[-1])
    columns = np.empty((probes[-1], rest.size))
    logs = []
    rank = 0
    goal = max(left * _SPREAD * rest.size, _LEAST_ENTRY)
    whole = float(rest @ squares)
    for number in probes:
        rank = _add_columns(gram, squares, rank, number, left, rest, columns)
        total = float(rest @ squares)
        if rank < number or not total > goal:
            return float(rank)
        if not total < _NARROW * whole:
            return float(rest.size)
        logs.append(math.log(total / goal))
    falls = [max(logs[-3] - logs[-2], 1e-9), max(logs[-2] - logs[-1], 1e-9)]
    growth = min(max(falls[1] / falls[0], 1.0), _MOST_GROWTH)
    lacking, fall, expected = logs[-1], growth * falls[1], float(probes[-1])
    while lacking > fall and expected < rest.size:
        lacking, fall, expected = lacking - fall, growth * fall, 2.0 * expected
    return min(expected * 2.0 ** min(lacking / fall, 1.0), float(rest.size))


@njit(cache=True)
def _scale(gram: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Overwrites the upper triangle of `out`: `gram` with rows and columns times `weight`."""
    for i in range(weight.size):
        for j in range(i, weight.size):
            out[i, j] = weight[i] * gram[i, j] * weight[j]


@dataclass(frozen=True, eq=False)
class FewColumns:
    """Rows with nearly the inner products of a kernel matrix, columns that say most first.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Seen from `origin`.
    pivots : ndarray of shape (n_columns,)
        Samples that the columns were made of: rows of the first k of them have k columns.
    origin : ndarray of shape (n_columns,)
        Zero, or the mean of the samples.
    """

    rows: FloatArray
    pivots: IntArray
    origin: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, pivots: IntArray, *, centred: bool) -> FewColumns:
        """From rows that are seen from zero."""
        origin = rows.mean(axis=0) if centred else np.zeros(rows.shape[1])
        return cls(rows - origin, pivots, origin)

    def locate(self, coef: FloatArray) -> FloatArray:
        """The vector with these coefficients of the samples, which are seen from zero."""
        return coef @ self.rows + coef.sum() * self.origin

    def represent(self, w: FloatArray) -> FloatArray:
        """Coefficients of the samples, seen from zero, that make a vector.

        For the kernel matrix itself they make a vector of the same norm and the same inner
        products with all samples: what was left out of it is orthogonal to the pivots.
        """
        pivots = self.pivots[: w.size]
        corner = self.rows[pivots, : w.size] + self.origin[: w.size]
        coef = np.zeros(self.rows.shape[0])
        if w.size > 0:
            coef[pivots] = dtrtrs(corner, w, lower=1, trans=1)[0]
        return coef

    def mend(self, coef: FloatArray, w: FloatArray) -> FloatArray:
        """Coefficients that make a vector, next to some that nearly do, and sum to 0.

        Changes are seen in units of the roots of the given ones, and those that would be large for
        what they mend are left out: of the vector next to nothing is lacking then. None changes
        its sign.

        Parameters
        ----------
        coef : ndarray of shape (n_samples,)
            Coefficients, seen from `origin`.
        w : ndarray of shape (n_known,)
            The vector, by the first columns.
        """
        root = np.sqrt(np.abs(coef))
        rows = np.column_stack([np.ones(coef.size), self.rows[:, : w.size]])
        lacking = np.concatenate([[0.0], w]) - coef @ rows
        rows *= root[:, np.newaxis]
        # The upper triangle, as LAPACK has it in the lower one of the transpose.
        matrix = np.asarray(dsyrk(1.0, rows.T, lower=1)).T
        matrix[np.diag_indices(lacking.size)] += _RIDGE * float(matrix.diagonal().max())
        mended = coef + root * (rows @ dposv(matrix.T, lacking, lower=1)[1])
        return np.where(mended * coef > 0.0, mended, 0.0)


def truncate(gram: FloatArray, weight: FloatArray, left: float) -> tuple[FloatArray, IntArray]:
    """Rows F, columns that say most first, with little on the diagonal of ``gram - FF'``.

    That matrix R is positive semi-definite, and ``weight_i^2 R_ii <= left``. Takes less than
    ``n_samples**2`` multiplications per column, in blocks: 2 ms for 65 columns of 1,000 samples,
    11 ms for all. Returns also the pivots.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric positive semi-definite.
    weight : ndarray of shape (n_samples,)
        How much each sample matters, positive: where few samples matter much, half of the columns
        may do.
    left : float
        Positive.
    """
    scaled = np.empty_like(gram)
    _scale(gram, weight, scaled)
    # LAPACK reads and overwrites a triangle.
    factor, places, rank, _ = dpstrf(scaled.T, tol=left, lower=1, overwrite_a=1)
    pivots = np.asarray(places, dtype=np.int64) - 1
    rows = np.empty((gram.shape[0], rank))
    rows[pivots] = np.tril(factor[:, :rank])
    rows /= weight[:, np.newaxis]
    return rows, pivots[:rank]
