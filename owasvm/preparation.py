"""From samples as they are given to the numbers a problem is made of.

Estimators and paths prepare their samples here, and nowhere else: moved to their mean where that
changes nothing but the intercept, or turned into a Gram matrix together with what rounding can
have left in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm._threads import blas_threads
from owasvm.kernels import Kernel, KernelShifts, is_sparse
from owasvm.problem import OWAProblem, RankCosts
from owasvm.rounding import exact_dot, is_proven_definite, lacking_definiteness
from owasvm.solution import Solution

FloatArray = NDArray[np.float64]
Samples = Any  # an array or a sparse matrix of shape (n_samples, n_features)

__all__ = ["PreparedSamples", "kernel_samples", "linear_samples"]

# Sparse features with a larger share of entries are no longer sparse.
_DENSE_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class PreparedSamples:
    """What problems on the same samples share; the fields are those of OWAProblem.

    ``rows`` are the samples behind the Gram matrix of a linear kernel.
    """

    features: FloatArray | sp.csr_matrix | None = None
    gram: FloatArray | None = None
    gram_rounding: FloatArray | None = None
    origin: FloatArray | None = None
    shifts: KernelShifts | None = None
    known_definite: bool | None = None
    rows: FloatArray | sp.csr_matrix | None = None

    def problem(self, y: FloatArray, costs: RankCosts) -> OWAProblem:
        """The problem with given labels and costs."""
        return OWAProblem(
            y,
            costs,
            self.features,
            self.gram,
            self.gram_rounding,
            self.origin,
            self.shifts,
            self.known_definite,
        )

    def weight(self, y: FloatArray, solution: Solution) -> FloatArray | None:
        """w of a linear model; None where nothing but kernel values is known."""
        rows = self.rows if self.features is None else self.features
        if solution.coef is not None or rows is None:
            return solution.coef
        return np.asarray(rows.T @ (y * solution.dual)).ravel()

    def as_given(self, y: FloatArray, solution: Solution) -> Solution:
        """The solution with the intercept for the samples as they were given."""
        return self._with_intercept(y, solution, -1.0)

    def as_moved(self, y: FloatArray, solution: Solution) -> Solution:
        """The other way round: a solution to start from."""
        return self._with_intercept(y, solution, 1.0)

    def _with_intercept(self, y: FloatArray, solution: Solution, sign: float) -> Solution:
        b = solution.intercept
        if self.shifts is not None:
            b = self.shifts.moved(y * solution.dual, b, sign)
        weight = self.weight(y, solution)
        if self.origin is not None and weight is not None:
            b = exact_dot(sign * weight, self.origin, b)
        return replace(solution, intercept=b)


def linear_samples(X: Samples) -> PreparedSamples:
    """Features of a linear model: dense ones are moved to their mean.

    Moving the samples changes the intercept and nothing else, and leaves the digits that samples
    far from the origin would spend on the distance.
    """
    if is_sparse(X):
        if X.nnz <= _DENSE_SHARE * X.shape[0] * X.shape[1]:
            return PreparedSamples(features=X, known_definite=True)
        X = X.toarray()
    features, origin = _moved(X)
    return PreparedSamples(features=features, origin=origin, known_definite=True)


def _moved(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Dense samples minus their mean, and the mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        origin = X.mean(axis=0)
        return np.ascontiguousarray(X - origin), origin


def kernel_samples(kernel: Kernel, X: Samples) -> PreparedSamples:
    """The samples of a kernel model; without a Gram matrix where a linear kernel needs none."""
    # How much work a kernel given as a function is, only its author knows.
    work = np.inf if callable(kernel.function) else float(X.shape[0]) ** 2 * max(X.shape)
    with blas_threads(work):
        return _kernel_samples(kernel, X)


def _kernel_samples(kernel: Kernel, X: Samples) -> PreparedSamples:
    rows = shifts = None
    if kernel.function == "linear":
        if X.shape[0] >= X.shape[1]:
            return linear_samples(X)
        rows = X
        if not is_sparse(X):
            rows, origin = _moved(X)
            wide = origin.astype(np.longdouble)
            products = [float(row.astype(np.longdouble) @ wide) for row in rows]
            X, shifts = rows, KernelShifts(np.array(products))
    matrix = kernel.matrix(X)
    rounding = matrix.rounding
    definite = kernel.is_definite
    if definite is None and isinstance(kernel.function, str) and kernel.function != "precomputed":
        definite = is_proven_definite(matrix.values, rounding)
    elif definite is None:
        # Numbers that somebody else computed are what they are.
        lacking = lacking_definiteness(matrix.values)
        definite = bool(np.isfinite(lacking))
        rounding = rounding + np.sqrt(lacking if definite else 0.0)
    return PreparedSamples(
        gram=matrix.values,
        gram_rounding=rounding,
        shifts=shifts if matrix.shifts is None else matrix.shifts,
        known_definite=definite,
        rows=rows,
    )
