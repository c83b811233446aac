"""Newton steps of a linear model, from dense or sparse features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.rounding import is_sparse
from owasvm.samples._newton_kernels import centre_rows
from owasvm.samples.operators import (
    ActiveSet,
    PlainOperator,
    Vector,
    limit_intercept,
    solve_definite,
    solve_dual,
)

FloatArray = NDArray[np.float64]

__all__ = ["FeatureOperator"]

# Sparse data: larger blocks of active rows are not made dense.
_MAX_DENSE_ENTRIES = 40_000_000


class FeatureOperator(PlainOperator):
    """Vectors w of a linear model, from dense or CSR features.

    Sparse features are not centred: that would make them dense.
    """

    def __init__(self, features: Any, *, centred: bool = True) -> None:
        self._means: FloatArray | None = None
        if centred and not is_sparse(features):
            self._means = features.mean(axis=0)
            features = features - self._means
        self.features = features
        self.transposed = features.T.tocsr() if is_sparse(features) else features.T
        self.n_samples = int(features.shape[0])

    def mean_diagonal(self) -> float:
        entries = self.features.data if is_sparse(self.features) else self.features.ravel()
        return float(entries @ entries) / self.n_samples

    def intercept_shift(self, coef: FloatArray) -> float:
        return 0.0 if self._means is None else float(self._means @ self._weight(coef))

    def _weight(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.transposed @ coef)

    def _scores(self, weight: FloatArray) -> FloatArray:
        return np.asarray(self.features @ weight)

    def vector(self, coef: FloatArray) -> Vector:
        weight = self._weight(coef)
        return Vector(coef, self._scores(weight), weight)

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        weight = self._weight(target) - current.weight
        return Vector(target - current.coef, np.empty(0), weight), float(weight @ weight)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.weight @ other.weight)

    def complete(self, vector: Vector) -> None:
        vector.scores = self._scores(vector.weight)

    def rows_in_memory(self) -> FloatArray | None:
        if is_sparse(self.features):
            return None
        return np.asarray(self.features, dtype=np.float64)

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        rows = self.features[active.samples]
        n_active, n_features = rows.shape
        if is_sparse(rows) and n_active * n_features <= _MAX_DENSE_ENTRIES:
            rows = rows.toarray()
        if is_sparse(rows):
            z, weight, intercept = _solve_sparse(rows, residual.weight, active)
        else:
            rows = np.ascontiguousarray(rows * active.root[:, None])
            if active.offsets.size > 2:
                centre_rows(rows, active.tie, active.offsets, active.shrink)
            if n_active <= n_features:
                matrix = rows @ rows.T
                matrix[np.diag_indices(n_active)] += active.ridge
                z, intercept = solve_dual(matrix, rows @ residual.weight, active)
                weight = residual.weight + z @ rows
            else:
                weight, intercept = _solve_primal(rows, residual.weight, active)
                z = -(rows @ weight + intercept * active.ones) / active.ridge
        coef = residual.coef
        coef[active.samples] += active.apply(z) * active.root
        return Vector(coef, self._scores(weight), weight), intercept


def _solve_primal(
    rows: FloatArray, residual: FloatArray, active: ActiveSet
) -> tuple[FloatArray, float]:
    """The step from the system ``(B'B + ridge I) h + B'e db = ridge r`` of feature size."""
    ridge = active.ridge
    matrix = rows.T @ rows
    matrix[np.diag_indices(rows.shape[1])] += ridge
    if not active.free:
        return solve_definite(matrix, ridge * residual[None])[0], 0.0
    coupling = active.ones @ rows
    solved = solve_definite(matrix, np.stack([ridge * residual, coupling]))
    curvature = float(active.ones @ active.ones) - float(coupling @ solved[1])
    demand = ridge * active.imbalance - float(coupling @ solved[0])
    intercept = limit_intercept(demand, curvature)
    return solved[0] - intercept * solved[1], intercept


def _solve_sparse(
    rows: sp.csr_matrix, residual: FloatArray, active: ActiveSet
) -> tuple[FloatArray, FloatArray, float]:
    """Wide sparse data: conjugate gradients with products by the active rows only."""
    columns = rows.T.tocsr()

    def combine(vector: FloatArray) -> FloatArray:
        """``B'vector``."""
        return columns @ (active.root * active.apply(vector.copy()))

    def project(vector: FloatArray) -> FloatArray:
        """``B`` times a vector w, given its scores."""
        return active.apply(active.root * vector)

    def solve(target: FloatArray) -> FloatArray:
        solution = np.zeros_like(target)
        remainder = target.copy()
        direction = remainder.copy()
        squared = float(remainder @ remainder)
        goal = 1e-20 * squared
        for _ in range(10 * target.size):
            if squared <= goal:
                break
            product = project(rows @ combine(direction)) + active.ridge * direction
            distance = squared / float(direction @ product)
            solution += distance * direction
            remainder -= distance * product
            previous, squared = squared, float(remainder @ remainder)
            direction = remainder + (squared / previous) * direction
        return solution

    first = solve(project(rows @ residual))
    intercept = 0.0
    if active.free:
        second = solve(active.ones)
        demand = active.imbalance - float(active.ones @ first)
        intercept = limit_intercept(demand, float(active.ones @ second))
        first = first + intercept * second
    return -first, residual - combine(first), intercept
