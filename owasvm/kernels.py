r"""Kernels: the width resolved, Gram matrices, decision values in blocks.

=============== ==================================================================
name            K(x, z)
=============== ==================================================================
``linear``      :math:`\langle x, z \rangle`
``poly``        :math:`(\gamma \langle x, z \rangle + \text{coef0})^{\text{degree}}`
``rbf``         :math:`\exp(-\gamma \|x - z\|^2)`
``sigmoid``     :math:`\tanh(\gamma \langle x, z \rangle + \text{coef0})`
``precomputed`` the given numbers
=============== ==================================================================

A Gaussian kernel of width sigma, :math:`\exp(-\|x - z\|^2 / (2 \sigma^2))`, is ``rbf`` with
``gamma = 1 / (2 * sigma**2)``.

Digits are kept where they can be: distances come from differences, or from products of centred
samples where that is as good, so that data far from the origin cost nothing. What rounding is
left in the values is bounded (:meth:`Kernel.matrix`), and becomes part of every certificate.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from owasvm._jit import njit
from owasvm.rounding import (
    UNIT,
    accumulated,
    exact_dot,
    find_fingerprint,
    is_sparse,
    longest_row,
    recall,
    row_norms,
)

__all__ = [
    "KERNELS",
    "Kernel",
    "KernelBlocks",
    "KernelMatrix",
    "KernelShifts",
    "resolve_gamma",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Samples = Any  # an array or a sparse matrix of shape (n_samples, n_features)
KernelFunction = Callable[[Any, Any], ArrayLike]

KERNELS: tuple[str, ...] = ("linear", "poly", "rbf", "sigmoid", "precomputed")

_EPS = float(np.finfo(np.float64).eps)
_LARGEST_VARIANCE = 1e300
_LEAST_VARIANCE = 1e-305
_LARGEST_TOTAL = 1e280
_BLOCK_ENTRIES = 2**23  # kernel values held at a time: 64 MiB
_DISTANCE_TILE = 64
_BELOW_DIAGONAL = np.tri(_DISTANCE_TILE, k=-1, dtype=bool)
_ROUNDING = 64 * _EPS  # what double precision leaves behind
_LARGEST_ASYMMETRY = 1e-7  # relative; what single precision leaves behind
# Up to so many features, differences cost no more than products (measured: equal at 64, twice at
# 300); beyond, products of centred samples are taken if they are off by less than this.
_DIFFERENCES_UP_TO = 100
_GOOD_PRODUCTS = 1e-13
# Sparse samples are made dense for the sake of digits up to so many entries.
_MAX_DENSE_ENTRIES = 50_000_000
_EXP_ROUNDINGS = (
    4  # of the exponential, the power and the hyperbolic tangent: units in the last place
)
# Rows and columns of Gaussian kernel values computed at a time: they stay in the cache. With 128
# and 1024 a value takes 1.4 times as long (d = 20).
_BLOCK_ROWS = 64
_BLOCK_COLUMNS = 256
# Adding 1.5 * 2^52 (2^23 in single precision) rounds to a whole number, in the last bits.
_WHOLE = 6755399441055744.0
_WHOLE_SINGLE = np.float32(12582912.0)
# Powers below these are left there: smaller ones would need denormal numbers.
_LEAST_POWER = -1000.0
_LEAST_POWER_SINGLE = np.float32(-120.0)
# ln(2)^k / k!: 2^f for |f| <= 1/2 to less than 1e-17, in single precision to 1e-8.
_EXP2 = tuple(math.log(2.0) ** k / math.factorial(k) for k in range(14))
_E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = _EXP2[1:]
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = (np.float32(value) for value in _EXP2[:7])
# Single precision serves where it leaves this much in a Gaussian kernel value, or less.
_GOOD_SINGLE = 1e-4
_SINGLE_UNIT = 2.0**-24
# Sparse samples of a Gaussian kernel in blocks are made dense up to so many entries: 32 MB.
_MAX_DENSE_BLOCKS = 2**22


def resolve_gamma(
    gamma: str | float, X: Samples, sample_weight: FloatArray | None = None
) -> float:
    r"""Return gamma as a number.

    ``"scale"`` is :math:`1 / (d \operatorname{Var}(X))`, the variance over all entries of the
    matrix; ``"auto"`` is :math:`1 / d`. The variance takes the sample weights into account, so
    that a whole-number weight equals that many copies of the row. Where the entries differ by
    no more than rounding, ``"scale"`` is 1.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        A number is returned as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive sample weights.

    Returns
    -------
    gamma : float

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.kernels import resolve_gamma
    >>> resolve_gamma("scale", np.array([[0.0, 2.0], [0.0, 2.0]]))
    0.5
    >>> resolve_gamma("scale", np.full((3, 2), 0.1))
    1.0
    """
    if not isinstance(gamma, str):
        return float(gamma)
    n_features = X.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    if gamma != "scale":
        raise ValueError(f"gamma={gamma!r} is unknown; use 'scale', 'auto' or a number.")
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X, sample_weight)
    largest = float(abs(X).max())
    overflows = not variance < _LARGEST_VARIANCE
    underflows = variance < _LEAST_VARIANCE and float(X.max() - X.min()) > 64.0 * _EPS * largest
    if overflows or underflows:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features * variance of X), and with entries up to "
            f"{largest:.3g} the variance {'overflows' if overflows else 'underflows'}. Scale the "
            "features, for example with sklearn.preprocessing.StandardScaler, or give gamma as a "
            "number."
        )
    if np.sqrt(variance) <= 64.0 * _EPS * largest:
        return 1.0
    return 1.0 / (n_features * variance)


def _variance(X: Samples, sample_weight: FloatArray | None) -> float:
    """Variance of the entries of X, rows weighted."""
    n_samples, n_features = X.shape
    weights = np.ones(n_samples) if sample_weight is None else sample_weight
    shares = weights / (weights.sum() * n_features)
    if not is_sparse(X):
        centred = X - shares @ X.sum(axis=1)
        return float(shares @ np.einsum("ij,ij->i", centred, centred))
    entries = X.tocoo()
    share_of_entry = shares[entries.row]
    mean = float(share_of_entry @ entries.data)
    share_of_zeros = max(1.0 - float(share_of_entry.sum()), 0.0)
    return float(share_of_entry @ (entries.data - mean) ** 2) + share_of_zeros * mean * mean


@dataclass(frozen=True)
class Kernel:
    """A kernel with all its parameters.

    Parameters
    ----------
    function : str or callable
        One of :data:`KERNELS`, or a callable that takes two sets of samples and returns the
        matrix of kernel values, shape (n_samples_1, n_samples_2).
    gamma, degree, coef0 : float
        Parameters of ``poly``, ``rbf`` and ``sigmoid``; see the module.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5).gram(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    function: str | KernelFunction
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.gamma < np.inf:
            raise ValueError(f"gamma={self.gamma!r} must be a finite number >= 0.")
        if self.function == "poly" and not (self.degree >= 0 and float(self.degree).is_integer()):
            raise ValueError(f"degree={self.degree!r} must be a whole number >= 0.")

    @classmethod
    def resolve(
        cls,
        function: str | KernelFunction,
        gamma: str | float,
        degree: float,
        coef0: float,
        X: Samples,
        sample_weight: FloatArray | None = None,
    ) -> Kernel:
        """Return the kernel for training samples; gamma is 1 for ``precomputed``, without any."""
        precomputed = function == "precomputed"
        width = 1.0 if precomputed else resolve_gamma(gamma, X, sample_weight)
        return cls(function, gamma=width, degree=degree, coef0=coef0)

    def gram(self, X: Samples) -> FloatArray:
        """Return the Gram matrix of the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples; the Gram matrix itself for ``precomputed``.

        Returns
        -------
        gram : ndarray of shape (n_samples, n_samples)
            Symmetric up to rounding.

        Raises
        ------
        ValueError
            Kernel values that overflow; a callable or precomputed kernel that is not a symmetric
            matrix.
        """
        if callable(self.function) or self.function == "precomputed":
            return self._symmetrise(X)[0]
        if self.function == "rbf":
            return _gaussian_gram(X, self.gamma)[0]
        return self.between(X, None)

    def matrix(self, X: Samples) -> KernelMatrix:
        """Return the Gram matrix together with what rounding can have left in it.

        A polynomial of dense samples is seen from their mean m:
        ``K(x, z) - K(x, m) - K(m, z) + K(m, m)`` is the kernel of ``phi(x) - phi(m)``, and the
        intercept makes up for the difference. Computed term by term it has the digits that
        samples far from the origin would spend on the distance.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples; the Gram matrix itself for ``precomputed``.

        Returns
        -------
        matrix : KernelMatrix
            Precomputed and callable kernels are taken at their word, up to the last digit and
            what they lack of symmetry.

        Raises
        ------
        ValueError
            As :meth:`gram`.
        """
        if callable(self.function) or self.function == "precomputed":
            values, asymmetry, fingerprint = self._symmetrise(X)
            roots = np.sqrt(np.maximum(values.diagonal(), 0.0))
            rounding = np.sqrt(UNIT) * roots + np.sqrt(0.5 * asymmetry)
            return KernelMatrix(values, rounding, fingerprint=fingerprint)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.function == "rbf":
                values, error = _gaussian_gram(X, self.gamma)
                off = np.sqrt(_EXP_ROUNDINGS * UNIT + error)
                return KernelMatrix(values, np.full(values.shape[0], off))
            if self._has_anchor(X):
                return self._make_anchored(X)
            values = self.between(X, None)
            return KernelMatrix(values, self._rounding(X, values.diagonal()))

    def blocks(self, X: Samples) -> KernelBlocks | None:
        """Return the kernel values of the training samples in blocks, computed when asked for.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.

        Returns
        -------
        blocks : KernelBlocks or None
            None for kernels of which nobody knows without all values whether they are positive
            semi-definite.
        """
        if self.function == "rbf":
            return _make_gaussian_blocks(X, self.gamma)
        if self.function == "poly" and self.is_definite:
            with np.errstate(over="ignore", invalid="ignore"):
                return _PolynomialBlocks(self, X)
        return None

    def _symmetrise(self, X: Samples) -> tuple[FloatArray, float, bytes | None]:
        """Numbers that somebody else computed, symmetric, and how far from it they were."""
        return _symmetrise(X if self.function == "precomputed" else self.between(X, None))

    def _has_anchor(self, X: Samples) -> bool:
        return self.function == "poly" and self.coef0 >= 0.0 and not is_sparse(X)

    def _make_anchored(self, X: FloatArray) -> KernelMatrix:
        anchor = _Anchor(self, X.mean(axis=0))
        values = self._check_finite(anchor.between(X, X))
        shifts = KernelShifts(anchor.shifts(X), anchor.value)
        self._check_finite(np.atleast_2d(shifts.values + anchor.value))
        _mirror(values)
        return KernelMatrix(values, anchor.rounding(X), shifts)

    def _rounding(self, X: Samples, diagonal: FloatArray) -> FloatArray:
        """How far off inner products and functions of them can be."""
        lengths = row_norms(X)
        products = np.sqrt(accumulated(longest_row(X) + 2)) * lengths
        if self.function == "linear":
            return products
        if self.function == "poly":
            # (gamma |x||z| + |coef0|)^degree is at most the product of such roots.
            sizes = (self.gamma * lengths**2 + abs(self.coef0)) ** (0.5 * self.degree)
            roots = np.sqrt(np.maximum(diagonal, 0.0))
            n_operations = int(self.degree) * (longest_row(X) + 4) + _EXP_ROUNDINGS
            return np.sqrt(accumulated(n_operations)) * np.maximum(sizes, roots)
        values = np.sqrt(_EXP_ROUNDINGS * UNIT)
        return np.sqrt(self.gamma) * products + values * (1.0 + np.sqrt(abs(self.coef0)))

    @property
    def is_definite(self) -> bool | None:
        """Whether every Gram matrix is positive semi-definite; None when that depends on it."""
        if self.function in ("linear", "rbf"):
            return True
        if self.function == "poly" and self.coef0 >= 0.0:
            return True
        return None

    def _check_finite(self, values: FloatArray) -> FloatArray:
        """The values, or an error that says how to keep them finite."""
        # Sums of rows find what is not finite faster than a look at every entry.
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.max(np.abs(values @ np.ones(values.shape[1])), initial=0.0))
        if total <= _LARGEST_TOTAL:
            return values
        remedy = "Scale the features, for example with sklearn.preprocessing.StandardScaler"
        if self.function == "poly":
            remedy += ", or take a smaller degree or gamma"
        raise ValueError(
            f"The values of the kernel {self.function!r} overflow: a row sums to {total:.3g}. "
            f"{remedy}."
        )

    def between(self, X: Samples, Z: Samples | None) -> FloatArray:
        """Return the kernel values of all pairs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
            Samples.
        Z : {array-like, sparse matrix} of shape (n_samples_Z, n_features) or None
            Other samples; None for X again.

        Returns
        -------
        values : ndarray of shape (n_samples_X, n_samples_Z)
        """
        if callable(self.function):
            others = X if Z is None else Z
            return _check_values(self.function(X, others), (X.shape[0], others.shape[0]))
        if self.function == "rbf":
            return _gaussian(X, X if Z is None else Z, self.gamma)[0]
        if Z is not None and Z.shape[0] == 0:
            # Which scikit-learn refuses.
            return np.empty((X.shape[0], 0))
        with np.errstate(over="ignore", invalid="ignore"):
            values = pairwise_kernels(
                X,
                Z,
                metric=self.function,
                filter_params=True,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
            )
        return self._check_finite(np.ascontiguousarray(values, dtype=np.float64))

    def scores(self, X: Samples, centres: Samples, coef: FloatArray) -> FloatArray:
        """Return ``sum_j coef[k, j] * K(x_i, centres[j])`` for all i and k.

        The kernel values are formed in blocks of rows; the memory needed does not grow with the
        number of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``precomputed`` their kernel values with the centres.
        centres : {array-like, sparse matrix} of shape (n_centres, n_features)
            The samples that carry coefficients; not used by ``precomputed``.
        coef : ndarray of shape (n_functions, n_centres)
            Coefficients.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_functions)
        """
        n_functions, n_centres = coef.shape
        scores = np.zeros((X.shape[0], n_functions))
        if n_centres == 0:
            return scores
        if self._has_anchor(centres) and not is_sparse(X):
            return self._score_anchored(X, centres, coef)
        for rows in _row_blocks(X.shape[0], n_centres):
            block = X[rows]
            values = block if self.function == "precomputed" else self.between(block, centres)
            scores[rows] = values @ coef.T
        return scores

    def _score_anchored(self, X: FloatArray, centres: FloatArray, coef: FloatArray) -> FloatArray:
        """The scores seen from the mean of the centres, and what that leaves out."""
        with np.errstate(over="ignore", invalid="ignore"):
            anchor = _Anchor(self, centres.mean(axis=0))
        total = np.array([math.fsum(row.tolist()) for row in coef])
        shifts = anchor.shifts(centres)
        shift = np.array([exact_dot(row, shifts) for row in coef])
        scores = np.empty((X.shape[0], coef.shape[0]))
        for rows in _row_blocks(X.shape[0], centres.shape[0]):
            values = self._check_finite(anchor.between(X[rows], centres))
            scores[rows] = values @ coef.T
            # Coefficients sum to 0 but for rounding: few digits of K(x, m) are enough.
            scores[rows] += np.outer(anchor.at(X[rows]), total) + shift
        return scores


@dataclass(frozen=True, eq=False)
class KernelShifts:
    """What a kernel lost when its feature space was moved to an anchor m.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        ``K(x_i, m) - K(m, m)``.
    constant : float, default=0.0
        ``K(m, m)``; counts only as far as the coefficients do not sum to 0 exactly.
    """

    values: FloatArray
    constant: float = 0.0

    def move(self, signed: FloatArray, intercept: float, sign: float) -> float:
        """``intercept + sign * sum_i signed_i K(x_i, m)``, rounded once."""
        factors = np.concatenate((self.values, np.full(signed.size, self.constant)))
        return exact_dot(sign * np.tile(signed, 2), factors, intercept)

    def take(self, index: NDArray[np.int64]) -> KernelShifts:
        """Those of some of the samples."""
        return KernelShifts(self.values[index], self.constant)


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """A Gram matrix, and what it is worth.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_samples)
        Kernel values, those of ``phi(x) - phi(m)`` if there are `shifts`.
    rounding : ndarray of shape (n_samples,)
        ``values[i, j]`` is off by at most ``rounding[i] * rounding[j]``.
    shifts : KernelShifts or None, default=None
        How an intercept for these values becomes one for the kernel itself.
    fingerprint : bytes or None, default=None
        That of `values`, if it is known.
    """

    values: FloatArray
    rounding: FloatArray
    shifts: KernelShifts | None = None
    fingerprint: bytes | None = None


class KernelBlocks(ABC):
    """Kernel values of training samples, computed when they are asked for and then forgotten.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    diagonal : ndarray of shape (n_samples,)
        ``K(x_i, x_i)``.
    rounding : ndarray of shape (n_samples,)
        Values in double precision are off by at most ``rounding[i] * rounding[j]``.
    shifts : KernelShifts or None
        How an intercept for these values becomes one for the kernel itself.
    """

    n_samples: int
    diagonal: FloatArray
    rounding: FloatArray
    shifts: KernelShifts | None = None

    @abstractmethod
    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Values of some samples with some, in double precision."""

    @abstractmethod
    def take(self, index: IntArray) -> KernelBlocks:
        """Those of some of the samples, or copies of them."""

    def multiply(
        self, coef: FloatArray, rows: IntArray | None = None, *, single: bool = False
    ) -> FloatArray:
        """``sum_j coef[j] K(x_i, x_j)`` for all i, or for `rows`.

        Columns whose coefficient is 0 are not computed. `single` allows for values in single
        precision, where the kernel has such; sums are in double precision always.
        """
        del single  # Only those kernels have it whose values take longer than their products.
        chosen = np.arange(self.n_samples) if rows is None else rows
        columns = np.flatnonzero(coef)
        product = np.zeros(chosen.size)
        for part in _row_blocks(chosen.size, columns.size):
            product[part] = self.between(chosen[part], columns) @ coef[columns]
        return product


class _PolynomialBlocks(KernelBlocks):
    """A positive semi-definite polynomial; of dense samples seen from their mean."""

    def __init__(self, kernel: Kernel, X: Samples) -> None:
        self._kernel = kernel
        self._X = X
        self.n_samples = X.shape[0]
        self._anchor: _Anchor | None = None
        if kernel._has_anchor(X):
            anchor = self._anchor = _Anchor(kernel, X.mean(axis=0))
            self.rounding = anchor.rounding(X)
            self.shifts = KernelShifts(anchor.shifts(X), anchor.value)
            kernel._check_finite(np.atleast_2d(self.shifts.values + anchor.value))
            single = (anchor.between(X[i : i + 1], X[i : i + 1]) for i in range(self.n_samples))
            self.diagonal = np.array([value[0, 0] for value in single])
        else:
            powers = kernel.gamma * row_norms(X) ** 2 + kernel.coef0
            self.diagonal = powers ** int(kernel.degree)
            self.rounding = kernel._rounding(X, self.diagonal)
        kernel._check_finite(self.diagonal[:, np.newaxis])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        one, other = self._X[rows], self._X[columns]
        if self._anchor is None:
            return self._kernel.between(one, other)
        return self._kernel._check_finite(self._anchor.between(one, other))

    def take(self, index: IntArray) -> KernelBlocks:
        return _PolynomialBlocks(self._kernel, self._X[index])


def _make_gaussian_blocks(X: Samples, gamma: float) -> KernelBlocks:
    if not is_sparse(X):
        return _GaussianBlocks(np.ascontiguousarray(X, dtype=np.float64), gamma)
    if X.shape[0] * X.shape[1] <= _MAX_DENSE_BLOCKS:
        return _GaussianBlocks(X.toarray(), gamma)
    return _SparseGaussianBlocks(X, gamma)


class _SparseGaussianBlocks(KernelBlocks):
    """A Gaussian kernel of sparse samples: distances from their products."""

    def __init__(self, X: Any, gamma: float) -> None:
        self._X = X
        self._gamma = gamma
        self.n_samples = X.shape[0]
        self._squares = row_norms(X) ** 2
        error = gamma * accumulated(longest_row(X) + 6) * 4.0 * float(self._squares.max())
        self.diagonal = np.ones(self.n_samples)
        self.rounding = np.full(self.n_samples, np.sqrt(_EXP_ROUNDINGS * UNIT + error))

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        values = np.asarray((self._X[rows] @ self._X[columns].T).toarray())
        values *= -2.0
        values += self._squares[rows][:, np.newaxis]
        values += self._squares[columns]
        np.maximum(values, 0.0, out=values)
        values *= -self._gamma / math.log(2.0)
        _raise_two(values)
        return values

    def take(self, index: IntArray) -> KernelBlocks:
        return _SparseGaussianBlocks(self._X[index], self._gamma)


class _GaussianBlocks(KernelBlocks):
    r"""A Gaussian kernel of dense samples: one product of matrices and one power for each block.

    With :math:`g = \gamma / \ln 2` and rows :math:`(\sqrt{2g}\, x, -g |x|^2, 1)` and
    :math:`(\sqrt{2g}\, z, 1, -g |z|^2)` of centred samples, the kernel is 2 to the inner product.
    Where that would cost digits the exponents come from differences.
    """

    def __init__(self, X: FloatArray, gamma: float) -> None:
        self._X = X
        self._gamma = gamma
        self.n_samples, n_features = X.shape
        self._exponent = gamma / math.log(2.0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            moved = X - X.mean(axis=0)
            squares = np.einsum("ij,ij->i", moved, moved)
            reach = 4.0 * gamma * float(squares.max(initial=0.0))
            error = accumulated(n_features + 16) * reach
            self._by_products = error <= _GOOD_PRODUCTS
            self._is_good_single = (n_features + 16) * _SINGLE_UNIT * reach <= _GOOD_SINGLE
        if self._by_products:
            self._rows = np.empty((self.n_samples, n_features + 2))
            self._rows[:, :-2] = math.sqrt(2.0 * self._exponent) * moved
            self._rows[:, -2] = -self._exponent * squares
            self._rows[:, -1] = 1.0
        else:
            self._rows = X
            error = _error_of_differences(n_features)
        self._single: Any = self._rows.astype(np.float32) if self._by_products else None
        self.diagonal = np.ones(self.n_samples)
        self.rounding = np.full(self.n_samples, np.sqrt(_EXP_ROUNDINGS * UNIT + error))

    def _pair(self, rows: Any, columns: IntArray) -> Any:
        """The rows of some samples as the second of a pair."""
        turned = rows[columns]
        if self._by_products:
            turned[:, [-2, -1]] = turned[:, [-1, -2]]
        return turned

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        if self._by_products:
            values: FloatArray = self._rows[rows] @ self._pair(self._rows, columns).T
        else:
            values = np.empty((rows.size, columns.size))
            _squared_distances(self._rows[rows], self._rows[columns], 0, values)
            values *= -self._exponent
        _raise_two(values)
        return values

    def multiply(
        self, coef: FloatArray, rows: IntArray | None = None, *, single: bool = False
    ) -> FloatArray:
        columns = np.flatnonzero(coef)
        use_single = single and self._by_products and self._is_good_single
        values = self._single if use_single else self._rows
        chosen = values if rows is None else values[rows]
        others = self._pair(values, columns)
        product = np.zeros(chosen.shape[0])
        if not self._by_products:
            _add_from_differences(chosen, others, coef[columns], self._exponent, product)
        elif use_single:
            _add_products_single(chosen, others.T, coef[columns], product)
        else:
            _add_products(chosen, others.T, coef[columns], product)
        return product

    def take(self, index: IntArray) -> KernelBlocks:
        return _GaussianBlocks(self._X[index], self._gamma)


@njit(cache=True, fastmath={"contract"})
def _power_of_two(power: float) -> float:
    """``2**power`` for `power` below 1000, relatively exact to three roundings.

    With ``power = k + f``, k whole, ``2**f`` is a polynomial; k goes into the exponent bits.
    """
    power = max(power, _LEAST_POWER)
    shifted = power + _WHOLE
    f = power - (shifted - _WHOLE)
    tail = _E7 + f * (_E8 + f * (_E9 + f * (_E10 + f * (_E11 + f * (_E12 + f * _E13)))))
    series = 1.0 + f * (_E1 + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * (_E6 + f * tail))))))
    bits = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
    return series * np.int64(bits).view(np.float64)


@njit(cache=True, fastmath={"contract"})
def _power_of_two_single(power: Any) -> Any:
    """The same in single precision."""
    power = max(power, _LEAST_POWER_SINGLE)
    shifted = power + _WHOLE_SINGLE
    f = power - (shifted - _WHOLE_SINGLE)
    series = _S0 + f * (_S1 + f * (_S2 + f * (_S3 + f * (_S4 + f * (_S5 + f * _S6)))))
    bits = (np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)
    return series * np.int32(bits).view(np.float32)


@njit(cache=True)
def _raise_two(values: FloatArray) -> None:
    """Changes `values` in place: to two to the power of each."""
    for i in range(values.shape[0]):
        row = values[i]
        for j in range(row.size):
            row[j] = _power_of_two(row[j])


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_powers(powers: FloatArray, coef: FloatArray, out: FloatArray) -> None:
    """Adds ``sum_j coef[j] 2**powers[i, j]`` to `out`."""
    for i in range(powers.shape[0]):
        row = powers[i]
        total = 0.0
        for j in range(row.size):
            total += coef[j] * _power_of_two(row[j])
        out[i] += total


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_powers_single(powers: Any, coef: FloatArray, out: FloatArray) -> None:
    """The same from single precision; sums are in double precision."""
    for i in range(powers.shape[0]):
        row = powers[i]
        total = 0.0
        for j in range(row.size):
            total += coef[j] * np.float64(_power_of_two_single(row[j]))
        out[i] += total


@njit(cache=True)
def _add_products(
    rows: FloatArray, columns: FloatArray, coef: FloatArray, out: FloatArray
) -> None:
    """Adds to `out` from exponents that are inner products of `rows` and `columns`."""
    for left in range(0, coef.size, _BLOCK_COLUMNS):
        right = min(left + _BLOCK_COLUMNS, coef.size)
        part = np.ascontiguousarray(columns[:, left:right])
        block = np.empty((_BLOCK_ROWS, right - left), rows.dtype)
        for top in range(0, rows.shape[0], _BLOCK_ROWS):
            bottom = min(top + _BLOCK_ROWS, rows.shape[0])
            powers = block[: bottom - top]
            np.dot(rows[top:bottom], part, powers)
            _add_powers(powers, coef[left:right], out[top:bottom])


@njit(cache=True)
def _add_products_single(rows: Any, columns: Any, coef: FloatArray, out: FloatArray) -> None:
    """The same in single precision."""
    for left in range(0, coef.size, _BLOCK_COLUMNS):
        right = min(left + _BLOCK_COLUMNS, coef.size)
        part = np.ascontiguousarray(columns[:, left:right])
        block = np.empty((_BLOCK_ROWS, right - left), rows.dtype)
        for top in range(0, rows.shape[0], _BLOCK_ROWS):
            bottom = min(top + _BLOCK_ROWS, rows.shape[0])
            powers = block[: bottom - top]
            np.dot(rows[top:bottom], part, powers)
            _add_powers_single(powers, coef[left:right], out[top:bottom])


@njit(cache=True)
def _add_from_differences(
    rows: FloatArray, others: FloatArray, coef: FloatArray, exponent: float, out: FloatArray
) -> None:
    """Adds to `out` from exponents that come from differences of samples."""
    powers = np.empty((_BLOCK_ROWS, _BLOCK_ROWS))
    for left in range(0, coef.size, _BLOCK_ROWS):
        right = min(left + _BLOCK_ROWS, coef.size)
        for top in range(0, rows.shape[0], _BLOCK_ROWS):
            bottom = min(top + _BLOCK_ROWS, rows.shape[0])
            part = powers[: bottom - top, : right - left]
            _squared_distances(rows[top:bottom], others[left:right], 0, part)
            part *= -exponent
            _add_powers(part, coef[left:right], out[top:bottom])


class _Anchor:
    """A point m from which a polynomial kernel ``(gamma <x, z> + coef0)^degree`` is seen.

    With ``x = m + s``, ``z = m + t``: ``gamma <x, z> + coef0 = A + B_x + B_z + D``, where
    ``A = gamma |m|^2 + coef0``, ``B_x = gamma <s, m>`` and ``D = gamma <s, t>``.
    """

    def __init__(self, kernel: Kernel, point: FloatArray) -> None:
        self._point = point
        self._gamma = kernel.gamma
        self._coef0 = kernel.coef0
        self._degree = int(kernel.degree)
        self._base = kernel.gamma * exact_dot(point, point) + kernel.coef0
        self.value = float(np.float64(self._base) ** self._degree)

    def _pulls(self, X: FloatArray) -> FloatArray:
        return self._gamma * ((X - self._point) @ self._point)

    def between(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Kernel values of all pairs, seen from m."""
        values = np.ascontiguousarray((X - self._point) @ (Z - self._point).T)
        values *= self._gamma
        _anchor_powers(values, self._pulls(X), self._pulls(Z), self._base, self._degree)
        return values

    def at(self, X: FloatArray) -> FloatArray:
        """``K(x, m)``."""
        return (self._base + self._pulls(X)) ** self._degree

    def shifts(self, X: FloatArray) -> FloatArray:
        """``K(x, m) - K(m, m)``, with the digits of the widest floating-point type there is."""
        point = self._point.astype(np.longdouble)
        gamma = np.longdouble(self._gamma)
        pulls = gamma * ((X.astype(np.longdouble) - point) @ point)
        base = gamma * (point @ point) + np.longdouble(self._coef0)
        return np.asarray(pulls * _power_quotient(base + pulls, base, self._degree), np.float64)

    def rounding(self, X: FloatArray) -> FloatArray:
        """``|between - exact| <= rounding[i] * rounding[j]``.

        With ``r = sqrt(gamma) |s|`` no ``|B_x|`` exceeds ``sqrt(A) r_x``, and no ``|D|`` exceeds
        ``r_x r_z``. So all terms together are at most the part of
        ``(sqrt(A) + r_x)^p (sqrt(A) + r_z)^p`` in which both samples occur, which is a product.
        Each of the p factors of a term is an inner product, rounded as such, and takes part in
        two multiplications and an addition.
        """
        root = np.sqrt(max(self._base, 0.0))
        reach = np.sqrt(self._gamma) * row_norms(X - self._point)
        sizes = reach * _power_quotient(root + reach, np.full_like(reach, root), self._degree)
        return np.sqrt(accumulated(self._degree * (X.shape[1] + 6) + 4)) * sizes


def _power_quotient(a: Any, b: Any, degree: int) -> Any:
    """``(a^degree - b^degree) / (a - b)``, as a sum."""
    total = np.zeros_like(a)
    power = np.ones_like(a)
    for _ in range(degree):
        total = b * total + power
        power = power * a
    return total


@njit(cache=True)
def _anchor_powers(
    values: FloatArray, pulls: FloatArray, other_pulls: FloatArray, base: float, degree: int
) -> None:
    """Changes `values` in place: from D to the polynomial kernel seen from its anchor.

    With ``P = A + B_x``, ``Q = A + B_z``, ``S = A + B_x + B_z`` and the quotients
    ``d(p; a, b) = (a^p - b^p) / (a - b)``, ``d(p) = a^(p-1) + b d(p-1)``, it is

        (S + D)^p - P^p - Q^p + A^p = D d(p; S + D, S) + B_x B_z h(p),
        h(p) = d(p-1; S, P) + d(p-1; S, Q) + A h(p-1),  h(1) = 0:

    sums of terms of the size of the result instead of differences of large powers.
    """
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            product = values[i, j]
            p = base + pulls[i]
            q = base + other_pulls[j]
            s = p + other_pulls[j]
            moved = s + product
            whole = 0.0
            with_p = 0.0
            with_q = 0.0
            mixed = 0.0
            power = 1.0
            power_moved = 1.0
            for _ in range(degree):
                mixed = with_p + with_q + base * mixed
                whole = s * whole + power_moved
                with_p = p * with_p + power
                with_q = q * with_q + power
                power *= s
                power_moved *= moved
            values[i, j] = product * whole + pulls[i] * other_pulls[j] * mixed


@njit(cache=True, fastmath={"reassoc", "contract"})
def _squared_distances(X: FloatArray, Z: FloatArray, first: int, out: FloatArray) -> None:
    """Overwrites `out` from a column on: squared distances from differences."""
    for top in range(0, X.shape[0], _DISTANCE_TILE):
        bottom = top + _DISTANCE_TILE if top + _DISTANCE_TILE < X.shape[0] else X.shape[0]
        for left in range(first, Z.shape[0], _DISTANCE_TILE):
            right = left + _DISTANCE_TILE if left + _DISTANCE_TILE < Z.shape[0] else Z.shape[0]
            for i in range(top, bottom):
                for j in range(left, right):
                    total = 0.0
                    for k in range(X.shape[1]):
                        difference = X[i, k] - Z[j, k]
                        total += difference * difference
                    out[i, j] = total


def _mirror(matrix: FloatArray) -> None:
    """Changes `matrix` in place: copies what is above the diagonal below it."""
    for top in range(0, matrix.shape[0], _DISTANCE_TILE):
        bottom = top + _DISTANCE_TILE
        matrix[bottom:, top:bottom] = matrix[top:bottom, bottom:].T
        corner = matrix[top:bottom, top:bottom]
        below = _BELOW_DIAGONAL[: corner.shape[0], : corner.shape[0]]
        np.copyto(corner, corner.T, where=below)


def _gaussian_gram(X: Samples, gamma: float) -> tuple[FloatArray, float]:
    """Gaussian kernel of all pairs of rows, symmetric to the last bit; see :func:`_gaussian`."""
    if is_sparse(X) or X.shape[1] > _DIFFERENCES_UP_TO:
        gram, error = _gaussian(X, X, gamma)
        _mirror(gram)
        np.fill_diagonal(gram, 1.0)
        return gram, error
    rows = np.ascontiguousarray(X, dtype=np.float64)
    gram = np.empty((X.shape[0], X.shape[0]))
    for start in range(0, X.shape[0], _DISTANCE_TILE):
        stop = start + _DISTANCE_TILE
        _squared_distances(rows[start:stop], rows, start, gram[start:stop])
        block = gram[start:stop, start:]
        with np.errstate(all="ignore"):
            np.exp(np.multiply(block, -gamma, out=block), out=block)
    np.fill_diagonal(gram, 1.0)
    _mirror(gram)
    return gram, _error_of_differences(X.shape[1])


def _error_of_differences(n_features: int) -> float:
    """Error of a Gaussian kernel value whose distance comes from differences, at most.

    ``K gamma |x - z|^2`` never exceeds 1/e, and such a distance is relatively exact.
    """
    return accumulated(n_features + 4) / np.e


def _gaussian(X: Samples, Z: Samples, gamma: float) -> tuple[FloatArray, float]:
    """Gaussian kernel, and what distances can have left in its values.

    From products of centred samples where that costs no digits, else from differences.
    """
    if gamma == 0.0:
        return np.ones((X.shape[0], Z.shape[0])), 0.0
    dense = not (is_sparse(X) or is_sparse(Z))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        origin = Z.mean(axis=0) if dense else 0.0
        moved = X - origin
        others = moved if Z is X else Z - origin
        lengths = row_norms(moved)
        other_lengths = lengths if Z is X else row_norms(others)
        largest = max(float(lengths.max(initial=0.0)), float(other_lengths.max(initial=0.0)))
        n_operations = max(longest_row(X), longest_row(Z)) + 6
        error = gamma * accumulated(n_operations) * (4.0 * largest * largest)
        few = X.shape[0] * X.shape[1] + Z.shape[0] * Z.shape[1] <= _MAX_DENSE_ENTRIES
        if error <= _GOOD_PRODUCTS or not (dense or few):
            distances = moved @ others.T
            distances = np.asarray(distances.toarray() if is_sparse(distances) else distances)
            distances *= -2.0
            distances += (lengths**2)[:, np.newaxis]
            distances += other_lengths**2
            np.maximum(distances, 0.0, out=distances)
        else:
            rows, columns = (
                np.ascontiguousarray(part.toarray() if is_sparse(part) else part, dtype=np.float64)
                for part in (X, Z)
            )
            distances = np.empty((X.shape[0], Z.shape[0]))
            _squared_distances(rows, columns, 0, distances)
            error = _error_of_differences(X.shape[1])
        distances *= -gamma
        return np.exp(distances, out=distances), error


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows that hold a bounded number of entries."""
    step = max(1, _BLOCK_ENTRIES // max(n_columns, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _check_values(values: Any, shape: tuple[int, int]) -> FloatArray:
    """What a callable returned, as a finite matrix of the right shape."""
    matrix = np.ascontiguousarray(
        values.toarray() if is_sparse(values) else values, dtype=np.float64
    )
    if matrix.shape != shape:
        raise ValueError(
            f"The kernel function returned an array of shape {matrix.shape}; expected {shape}: "
            "it takes two sets of samples and returns the values of all pairs."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError("The kernel function returned values that are not finite.")
    return matrix


@njit(cache=True)
def _largest_asymmetry(gram: FloatArray) -> float:
    """Largest difference of an entry and its mirror image.

    Four rows at a time, each with a maximum of its own: four entries of a line of memory are used
    when it is there, and no maximum waits for another.
    """
    n_samples = gram.shape[0]
    largest = second = third = fourth = 0.0
    for i in range(0, n_samples - 3, 4):
        for j in range(i, n_samples):
            largest = max(largest, abs(gram[i, j] - gram[j, i]))
            second = max(second, abs(gram[i + 1, j] - gram[j, i + 1]))
            third = max(third, abs(gram[i + 2, j] - gram[j, i + 2]))
            fourth = max(fourth, abs(gram[i + 3, j] - gram[j, i + 3]))
    for i in range(n_samples - n_samples % 4, n_samples):
        for j in range(i, n_samples):
            largest = max(largest, abs(gram[i, j] - gram[j, i]))
    return max(max(largest, second), max(third, fourth))


def _symmetrise(gram: FloatArray) -> tuple[FloatArray, float, bytes | None]:
    """The matrix itself, or its symmetric part where the halves differ by more than rounding.

    Beside it stand by how much they differ, and the fingerprint of the matrix itself.
    """
    gram = np.ascontiguousarray(gram)
    fingerprint = find_fingerprint(gram)
    asymmetry = recall(gram, _largest_asymmetry, fingerprint)
    if asymmetry <= _ROUNDING * float(np.max(np.abs(gram.diagonal()))):
        return gram, asymmetry, fingerprint
    largest = float(np.max(np.abs(gram)))
    if asymmetry > _LARGEST_ASYMMETRY * largest:
        raise ValueError(
            f"The kernel matrix is not symmetric: entries (i, j) and (j, i) differ by up to "
            f"{asymmetry:.3g}, the largest entry is {largest:.3g}. Pass K(x_i, x_j) of the "
            "training samples, or the mean of the matrix and its transpose."
        )
    return 0.5 * (gram + gram.T), asymmetry, None
