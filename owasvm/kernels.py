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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from owasvm._jit import njit

__all__ = ["KERNELS", "Kernel", "resolve_gamma"]

FloatArray = NDArray[np.float64]
Samples = Any  # an array or a sparse matrix of shape (n_samples, n_features)
KernelFunction = Callable[[Any, Any], ArrayLike]

KERNELS: tuple[str, ...] = ("linear", "poly", "rbf", "sigmoid", "precomputed")

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ENTRIES = 2**23  # kernel values held at a time: 64 MiB
_TILE = 32  # rows and columns compared at a time, so that both stay in the cache
_ROUNDING = 64 * _EPS  # what double precision leaves behind
_LARGEST_ASYMMETRY = 1e-7  # relative; what single precision leaves behind


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array (without narrowing its type)."""
    return bool(sp.issparse(X))


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
    variance = _variance(X, sample_weight)
    largest = float(abs(X).max())
    if variance <= (64.0 * _EPS * largest) ** 2:
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
    return float(share_of_entry @ (entries.data - mean) ** 2) + share_of_zeros * mean**2


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
            A callable or precomputed kernel that is not a finite, symmetric matrix.
        """
        if self.function == "precomputed":
            return _symmetric(X)
        if callable(self.function):
            return _symmetric(self.between(X, None))
        return self.between(X, None)

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
            return _checked_values(self.function(X, others), (X.shape[0], others.shape[0]))
        values = pairwise_kernels(
            X,
            Z,
            metric=self.function,
            filter_params=True,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
        )
        return np.ascontiguousarray(values, dtype=np.float64)

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
        for rows in _row_blocks(X.shape[0], n_centres):
            block = X[rows]
            values = block if self.function == "precomputed" else self.between(block, centres)
            scores[rows] = values @ coef.T
        return scores


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows that hold a bounded number of entries."""
    step = max(1, _BLOCK_ENTRIES // max(n_columns, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _checked_values(values: Any, shape: tuple[int, int]) -> FloatArray:
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
    """Largest difference of an entry and its mirror image, tile by tile."""
    n_samples = gram.shape[0]
    largest = 0.0
    for top in range(0, n_samples, _TILE):
        for left in range(top, n_samples, _TILE):
            for i in range(top, min(top + _TILE, n_samples)):
                for j in range(max(left, i + 1), min(left + _TILE, n_samples)):
                    largest = max(largest, abs(gram[i, j] - gram[j, i]))
    return largest


def _symmetric(gram: FloatArray) -> FloatArray:
    """The matrix itself, or its symmetric part where the halves differ by more than rounding."""
    asymmetry = _largest_asymmetry(np.ascontiguousarray(gram))
    if asymmetry <= _ROUNDING * float(np.max(np.abs(gram.diagonal()))):
        return gram
    largest = float(np.max(np.abs(gram)))
    if asymmetry > _LARGEST_ASYMMETRY * largest:
        raise ValueError(
            f"The kernel matrix is not symmetric: entries (i, j) and (j, i) differ by up to "
            f"{asymmetry:.3g}, the largest entry is {largest:.3g}. Pass K(x_i, x_j) of the "
            "training samples, or the mean of the matrix and its transpose."
        )
    return 0.5 * (gram + gram.T)
