r"""What double precision can have added: rigorous bounds, and products that lose no digits.

With the unit roundoff :math:`u = 2^{-53}`, the computed sum of n products, added up in any order,
is off by at most :math:`n u / (1 - n u)` times the sum of their absolute values. Everything that a
certificate subtracts follows from this one fact and from the rounding of the kernel values
themselves, which :mod:`owasvm.kernels` states.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

__all__ = [
    "UNIT",
    "accumulated",
    "exact_dot",
    "find_fingerprint",
    "is_proven_definite",
    "is_sparse",
    "lacking_definiteness",
    "longest_row",
    "partial_sums",
    "product_without_loss",
    "recall",
    "row_norms",
    "sum_with_error",
]

#: Relative error of one rounded operation.
UNIT = 2.0**-53

# Splits a number of 53 bits into two of 26.
_SPLITTER = 134217729.0
# Up to this many terms sums have twice the digits; one by numpy's pairwise scheme is off by fewer
# roundings than these.
_CAREFUL_TERMS = 10_000
_PAIRWISE_ROUNDINGS = 64


def accumulated(n_operations: int) -> float:
    """Relative error of `n_operations` roundings in a row, ``n u / (1 - n u)``."""
    return n_operations * UNIT / (1.0 - n_operations * UNIT)


def is_sparse(X: Any) -> bool:
    """Without narrowing the type of X, of which the stubs know too little."""
    return bool(sp.issparse(X))


def row_norms(X: Any) -> FloatArray:
    """Euclidean norms of the rows of an array or a sparse matrix."""
    if is_sparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    return np.sqrt(np.einsum("ij,ij->i", X, X))


def longest_row(X: Any) -> int:
    """Number of products behind an inner product with a row, at most."""
    return int(np.diff(X.indptr).max(initial=0)) if is_sparse(X) else int(X.shape[1])


def sum_with_error(values: FloatArray) -> tuple[float, float]:
    """Sum of many numbers and a bound on its error.

    What additions lose is added up beside them: the error is that of sums with twice the digits
    [1]_, and of rounding the result.

    References
    ----------
    .. [1] T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM Journal on
       Scientific Computing 26 (2005) 1955-1988.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.rounding import sum_with_error
    >>> total, error = sum_with_error(np.array([1e16, 1.0, -1e16]))
    >>> total, error < 1e-14
    (1.0, True)
    """
    if values.size <= _CAREFUL_TERMS:
        total, sizes = _add_with_lost(np.ascontiguousarray(values))
        # Numbers that overflow on the way say nothing.
        if math.isfinite(total) and math.isfinite(sizes):
            # Rounding of the sizes is a share of a bound that is too large by more than it.
            return total, UNIT * abs(total) + accumulated(2 * values.size) ** 2 * sizes
    return float(values.sum()), accumulated(_PAIRWISE_ROUNDINGS) * float(np.abs(values).sum())


@njit(cache=True)
def _add_with_lost(values: FloatArray) -> tuple[float, float]:
    """The sum of numbers with twice the digits, and that of their absolute values."""
    total = lost = sizes = 0.0
    for value in values:
        grown = total + value
        part = grown - total
        lost += (total - (grown - part)) + (value - part)
        total = grown
        sizes += abs(value)
    return total + lost, sizes


def partial_sums(values: FloatArray) -> FloatArray:
    """Sums of the first entries, each off by a few roundings however many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.rounding import partial_sums
    >>> float(partial_sums(np.full(1_000_000, 0.1))[-1])
    100000.0
    """
    after = np.cumsum(values)
    before = np.concatenate(([0.0], after[:-1]))
    # What every addition lost, exactly.
    added = after - before
    return after + np.cumsum((before - (after - added)) + (values - added))


def _product_and_error(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``a * b`` rounded, and what the rounding took away, exactly."""
    product = a * b
    high_a, high_b = _SPLITTER * a, _SPLITTER * b
    high_a -= high_a - a
    high_b -= high_b - b
    low_a, low_b = a - high_a, b - high_b
    return product, low_a * low_b - (
        ((product - high_a * high_b) - low_a * high_b) - high_a * low_b
    )


def exact_dot(a: FloatArray, b: FloatArray, start: float = 0.0) -> float:
    """``start + a'b``, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.rounding import exact_dot
    >>> exact_dot(np.array([1e8, 1.0]), np.array([1e8, 1.0]), -1e16)
    1.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product, error = _product_and_error(a, b)
        simple = float(a @ b) + start
    if not np.all(np.isfinite(error)) or not np.isfinite(simple):
        return simple
    return math.fsum([start, *product.tolist(), *error.tolist()])


@njit(cache=True)
def product_without_loss(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """``matrix @ vector`` as if in twice the precision, then rounded.

    Each entry is off by at most ``2 u`` of itself plus ``n^2 u^2`` of the sum of the absolute
    products: the dot product of Ogita, Rump and Oishi.
    """
    n_rows, n_columns = matrix.shape
    result = np.empty(n_rows)
    high = np.empty(n_columns)
    low = np.empty(n_columns)
    for j in range(n_columns):
        big = _SPLITTER * vector[j]
        high[j] = big - (big - vector[j])
        low[j] = vector[j] - high[j]
    for i in range(n_rows):
        total = 0.0
        lost = 0.0
        for j in range(n_columns):
            entry = matrix[i, j]
            big = _SPLITTER * entry
            entry_high = big - (big - entry)
            entry_low = entry - entry_high
            product = entry * vector[j]
            error = entry_low * low[j] - (
                ((product - entry_high * high[j]) - entry_low * high[j]) - entry_high * low[j]
            )
            grown = total + product
            part = grown - total
            lost += ((total - (grown - part)) + (product - part)) + error
            total = grown
        result[i] = total + lost
    return result


def lacking_definiteness(gram: FloatArray, fingerprint: bytes | None = None) -> float:
    """What a given symmetric matrix lacks to be positive semi-definite: a share of its diagonal.

    A Cholesky factorisation tells: of the matrix scaled to a diagonal of ones and lifted by what
    rounding of its entries can take from its smallest eigenvalue, and, if that fails, by what
    careless arithmetic behind them can (distances from products of samples far from the origin,
    say). O(n_samples^3 / 3), a fraction of what a fit costs; once for each matrix, since searches
    over C fit the same one again and again.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric.
    fingerprint : bytes or None, default=None
        That of the matrix, if it is known.

    Returns
    -------
    lacking : float
        0, a small share by which larger diagonal entries would do, or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.rounding import lacking_definiteness
    >>> lacking_definiteness(np.ones((3, 3)))
    0.0
    >>> lacking_definiteness(np.array([[1.0, 2.0], [2.0, 1.0]]))
    inf
    """
    return recall(gram, _lacking, find_fingerprint(gram) if fingerprint is None else fingerprint)


_known: dict[tuple[Callable[[FloatArray], float], bytes], float] = {}
_MAX_KNOWN = 128


def recall(gram: FloatArray, examine: Callable[[FloatArray], float], fingerprint: bytes) -> float:
    """What an examination of a matrix has found, or finds now.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        The matrix.
    examine : callable
        Finds out something about it.
    fingerprint : bytes
        That of the matrix.

    Returns
    -------
    found : float
    """
    key = examine, fingerprint
    found = _known.get(key)
    if found is None:
        while len(_known) >= _MAX_KNOWN:
            _known.pop(next(iter(_known)), None)
        found = _known[key] = examine(gram)
    return found


# Share of an entry that arithmetic in double precision leaves if nobody takes care.
_CARELESS = 1e-12


@lru_cache(maxsize=4)
def _random_factors(size: int) -> NDArray[np.uint64]:
    """Random odd numbers, always the same."""
    drawn = np.random.default_rng(size).integers(2**63, size=size, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)


@njit(cache=True)
def _mix_rows(bits: NDArray[np.uint64], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Products with the factors, modulo 2^64."""
    mixed = np.zeros(bits.shape[0], dtype=np.uint64)
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            total += bits[i, j] * factors[j]
        mixed[i] = total
    return mixed


def find_fingerprint(gram: FloatArray) -> bytes:
    """A few bytes that are equal for equal matrices, bit by bit, and for no others one meets.

    One entry that differs changes its row's sum for certain, as factors are odd; several with a
    probability next to 1.
    """
    bits = np.ascontiguousarray(gram, dtype=np.float64).view(np.uint64)
    mixed = _mix_rows(bits, _random_factors(gram.shape[1]))
    return hashlib.sha256(mixed.tobytes()).digest()


def _lacking(gram: FloatArray) -> float:
    if not np.all(np.isfinite(gram @ np.ones(gram.shape[0]))):
        raise ValueError(
            "The kernel matrix must hold finite numbers whose sums do not overflow; repair it, or "
            "divide it by its largest entry and multiply C by that."
        )
    diagonal = gram.diagonal()
    nothing = diagonal == 0.0
    # Next to a 0 on the diagonal of a semi-definite matrix there is nothing else.
    if np.any(diagonal < 0.0) or np.any(gram[nothing]):
        return np.inf
    # A large entry must not hide what small ones lack.
    length = np.sqrt(np.where(nothing, 1.0, diagonal))
    scaled = gram / length
    scaled /= length[:, np.newaxis]
    if _has_factor(scaled, 5.0 * gram.shape[0] * UNIT):
        return 0.0
    return _CARELESS if _has_factor(scaled, _CARELESS) else np.inf


def is_proven_definite(gram: FloatArray, rounding: FloatArray) -> bool:
    """Whether a matrix known up to rounding is positive definite, whatever rounding hides.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric, finite.
    rounding : ndarray of shape (n_samples,)
        ``gram[i, j]`` is off by at most ``rounding[i] * rounding[j]``.

    Returns
    -------
    proven : bool
    """
    diagonal = gram.diagonal()
    if np.any(diagonal <= 0.0):
        return False
    with np.errstate(over="ignore"):
        hidden = float(rounding @ rounding)
    computed = 2.0 * gram.shape[0] * UNIT * float(diagonal.sum())
    return _has_factor(gram, -computed - hidden)


def _has_factor(gram: FloatArray, lift: float) -> bool:
    """Whether the matrix plus a multiple of the identity has a Cholesky factor."""
    lifted = np.array(gram, order="C")
    lifted[np.diag_indices_from(lifted)] += lift
    # The transpose is the same matrix, and in the order that LAPACK overwrites in place.
    _, info = dpotrf(lifted.T, lower=1, overwrite_a=1, clean=0)
    return bool(info == 0)
