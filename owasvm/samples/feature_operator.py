"""Newton steps of a linear model, from dense or sparse features."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from owasvm.samples._newton_kernels import gram_block
from owasvm.samples._sparse_steps import solve_by_conjugate_gradients
from owasvm.samples.operators import (
    MAX_INTERCEPT_STEP,
    ActiveSet,
    PlainOperator,
    Vector,
    find_changed,
    solve_dual,
    solve_primal,
)
from owasvm.samples.rows import DenseRows, Rows, SparseRows

FloatArray = NDArray[np.float64]

__all__ = ["FeatureOperator"]

# Larger matrices are not formed: active rows of sparse data, systems, inner products.
_MAX_DENSE_ENTRIES = 40_000_000
# A multiplication of a factorisation takes this share of the time that an entry of a sparse matrix
# takes in a product with it, which reads it twice.
_DENSE_SPEED = 0.015
# Where a factorisation costs less than so many products it is the better choice: most systems take
# 10 to 30.
_WORTH_PRODUCTS = 20
# And so many at most where there is no room for it: any of them gives a descent.
_MAX_PRODUCTS = 1000
# Accuracy of a step relative to its right-hand side. 20 fits of texts: 0.1 takes 1.1 times the
# time of 0.2, 0.3 takes 1.04 times; six fits took as many steps with 0.1 as with 0.001, and half
# the time. Only gaps near rounding ask for more.
_LOOSEST_SYSTEM = 0.2
_LOOSENING = 1e5
# With so many entries rows take longer to read than coefficients to compare.
_MANY_ENTRIES = 1_000_000


class FeatureOperator(PlainOperator):
    """Vectors w of a linear model.

    Parameters
    ----------
    rows : DenseRows or SparseRows
        The samples.
    shift : ndarray of shape (n_features,) or None, default=None
        What the rows were moved by from the samples that intercepts belong to.
    """

    def __init__(self, rows: Rows, shift: FloatArray | None = None) -> None:
        self._rows = rows
        self._shift = shift
        self.n_samples = rows.shape[0]
        self.is_iterative = not isinstance(rows, DenseRows)

    def mean_diagonal(self) -> float:
        norms = self._rows.norms()
        return float(norms @ norms) / self.n_samples

    def intercept_shift(self, coef: FloatArray) -> float:
        return 0.0 if self._shift is None else float(self._shift @ self._rows.combine(coef))

    def vector(self, coef: FloatArray) -> Vector:
        weight = self._rows.combine(coef)
        return Vector(coef, self._rows.scores(weight), weight)

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        weight = self._rows.combine(target) - current.weight
        target -= current.coef
        return Vector(target, np.empty(0), weight), float(weight @ weight)

    def residuals(self) -> Callable[[FloatArray, Vector], tuple[Vector, float]]:
        # Dense rows of many samples leave no room for another copy of the coefficients.
        rows = self._rows
        if isinstance(rows, DenseRows) or rows.n_entries < _MANY_ENTRIES:
            return self.residual
        return _SparseResiduals(rows)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.weight @ other.weight)

    def complete(self, vector: Vector) -> None:
        vector.scores = self._rows.scores(vector.weight)

    @property
    def n_columns(self) -> int | None:
        n_samples, n_features = self._rows.shape
        fits = n_samples * n_features <= _MAX_DENSE_ENTRIES
        return n_features if fits and isinstance(self._rows, DenseRows) else None

    def rows_in_memory(self) -> FloatArray:
        return self._rows.dense()

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        n_active, n_features = active.samples.size, self._rows.shape[1]
        step = self._iterate(residual.weight, active)
        if step is not None:
            weight, scores, intercept, image = step
            z = -image / active.ridge
        elif n_active <= n_features:
            z, weight, intercept = self._solve_dual(residual, active)
            scores = self._rows.scores(weight)
        else:
            weight, intercept = self._solve_primal(residual.weight, active)
            scores = self._rows.scores(weight)
            image = active.apply(scores[active.samples] * active.root)
            z = -(image + intercept * active.ones) / active.ridge
        coef = residual.coef
        coef[active.samples] += active.apply(z) * active.root
        return Vector(coef, scores, weight), intercept

    @cached_property
    def _gram(self) -> FloatArray | None:
        """Inner products of dense rows that are fewer than their features, if there is room."""
        n_samples, n_features = self._rows.shape
        few = n_samples <= n_features and n_samples**2 <= _MAX_DENSE_ENTRIES
        return self._rows.gram() if few and isinstance(self._rows, DenseRows) else None

    def _solve_dual(
        self, residual: Vector, active: ActiveSet
    ) -> tuple[FloatArray, FloatArray, float]:
        """The step from the system ``(B B' + ridge I) z = -(B r + e db)`` of the size of A."""
        if self._gram is not None:
            make = partial(gram_block, self._gram, np.zeros(self.n_samples), *active.arrays)
            scores = self._rows.scores(residual.weight)
            rows_residual = active.apply(scores[active.samples] * active.root)
            z, intercept = solve_dual(make(), rows_residual, active, make)
            coef = np.zeros(self.n_samples)
            coef[active.samples] = active.apply(z.copy()) * active.root
            return z, residual.weight + self._rows.combine(coef), intercept
        rows = self._rows.gather(active)
        matrix = rows @ rows.T
        matrix[np.diag_indices(active.samples.size)] += active.ridge
        z, intercept = solve_dual(matrix, rows @ residual.weight, active)
        return z, residual.weight + z @ rows, intercept

    def _solve_primal(self, residual: FloatArray, active: ActiveSet) -> tuple[FloatArray, float]:
        n_features = residual.size
        matrix, coupling = np.zeros((n_features, n_features)), np.zeros(n_features)
        for part, rows in self._rows.gather_in_blocks(active):
            matrix += rows.T @ rows
            coupling += active.ones[part] @ rows
        return solve_primal(matrix, coupling, residual, active)

    def _iterate(
        self, residual: FloatArray, active: ActiveSet
    ) -> tuple[FloatArray, FloatArray, float, FloatArray] | None:
        """h, its scores, db and ``B h + e db`` by conjugate gradients.

        None where to factorise is better.
        """
        rows = self._rows
        if isinstance(rows, DenseRows):
            return None
        n_active, n_features = active.samples.size, rows.shape[1]
        small, large = sorted((n_active, n_features))
        fits = (large if small == n_active else small) * small <= _MAX_DENSE_ENTRIES
        product = rows.n_entries * n_active / self.n_samples
        n_products = int(_DENSE_SPEED * small**2 * large / max(product, 1.0)) if fits else 0
        if fits and (active.memory.factorises or n_products < _WORTH_PRODUCTS):
            return None
        how = min(_LOOSEST_SYSTEM, _LOOSENING * active.accuracy), n_products or _MAX_PRODUCTS
        system = rows.arrays, active, residual
        h, scores, intercept, image, converged = solve_by_conjugate_gradients(
            *system, active.free, 0.0, *how
        )
        if abs(intercept) > MAX_INTERCEPT_STEP:
            most = float(np.copysign(MAX_INTERCEPT_STEP, intercept))
            h, scores, intercept, image, converged = solve_by_conjugate_gradients(
                *system, False, most, *how
            )
        if fits and not converged:
            active.memory.factorises = True
            return None
        return h, scores, intercept, image


class _SparseResiduals:
    """Residuals one after the other: rows are read again where their coefficient has changed.

    With costs that many ranks share, most samples keep theirs from step to step.

    Parameters
    ----------
    rows : SparseRows
        The samples.
    """

    def __init__(self, rows: SparseRows) -> None:
        n_samples, n_features = rows.shape
        self._rows = rows
        self._coef, self._weight = np.zeros(n_samples), np.zeros(n_features)

    def __call__(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        changed = find_changed(target, self._coef)
        if 2 * changed.size > np.count_nonzero(target):
            self._coef[:] = target
            self._weight = self._rows.combine(target)
        else:
            change = np.zeros(target.size)
            change[changed] = target[changed] - self._coef[changed]
            self._coef[changed] = target[changed]
            self._weight += self._rows.combine(change)
        np.subtract(self._coef, current.coef, out=target)
        weight = self._weight - current.weight
        return Vector(target, np.empty(0), weight), float(weight @ weight)
