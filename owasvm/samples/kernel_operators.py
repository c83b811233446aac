"""Newton steps from kernel values: row by row, or from a whole matrix in compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs, spotrf, spotri

from owasvm.samples._newton_kernels import (
    add_gram_rows,
    centre_rows,
    gram_block,
    lift_gram,
)
from owasvm.samples._projected_systems import (
    Preconditioner,
    multiply_symmetric,
    solve_projected,
)
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.low_rank import (
    FewColumns,
    approximate,
    expect_columns,
    factorise,
    truncate,
)
from owasvm.samples.operators import (
    MAX_INTERCEPT_STEP,
    ActiveSet,
    Lifted,
    Operator,
    PlainOperator,
    Vector,
    solve_dual,
)
from owasvm.samples.rows import make_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Matrix = NDArray[np.float64] | NDArray[np.float32]

__all__ = ["GramOperator", "KernelOperator", "LiftedFactor", "multiply_symmetric"]

# Steps from a factor of the kernel matrix may cost less as long as it has fewer columns than the
# samples over this,
_RANK_DIVISOR = 3
# and than the samples of a Newton system over this. A factor that was not found is looked for
# again where it may have so many times the columns.
_SIZE_DIVISOR = 2
_GROWTH = 1.5
# Below this many active samples a Cholesky factorisation costs less than a few products.
_ITERATE_SIZE = 100
# A factor of more columns than this share of the samples saves nothing.
_MOST_COLUMNS = 0.7
# What takes as long as so many multiplications of a factorisation, per entry of a system: its two
# solutions, copying it, a product with one triangle of it. And what a system by way of a factor,
# and a product, take beside that.
_SOLVING = 55.0
_READING = 25.0
_PRODUCT = 2.2
_PER_FACTOR = 1e6
_PER_PRODUCT = 4e5
# Products to expect of the first system.
_LIKELY_PRODUCTS = 20
# Rows near the kernel may lack this share of the ridge, and of its diagonal.
_LACKING = 0.1
_NEAR = 1e-6
# Looser systems take more Newton steps: 17 fits took 71, 49, 51 and 56 ms (geometric mean) with
# 1e-4, 1e-5, 1e-6 and 1e-7.
_LOOSEST_SYSTEM = 1e-5


def _work_of_factor(size: int) -> float:
    """Multiplications of a factorisation that take as long as a system by way of one."""
    return size**3 / 3.0 + (_SOLVING + _READING) * size**2 + _PER_FACTOR


class KernelRows(Protocol):
    """Where kernel values come from."""

    @property
    def n_samples(self) -> int: ...
    @property
    def diagonal(self) -> FloatArray: ...

    def rows(self, index: IntArray) -> FloatArray:
        """Kernel values of some samples with all."""

    def scores(self, coef: FloatArray) -> FloatArray:
        """Products with the kernel matrix."""


class _Matrix:
    """A kernel matrix in memory."""

    def __init__(self, gram: FloatArray) -> None:
        self._gram = gram
        self.n_samples = gram.shape[0]
        self.diagonal = gram.diagonal()

    def rows(self, index: IntArray) -> FloatArray:
        return self._gram[index]

    def scores(self, coef: FloatArray) -> FloatArray:
        return multiply_symmetric(self._gram, coef)


class KernelOperator(PlainOperator):
    """Vectors held by their coefficients, products through rows of the kernel matrix."""

    def __init__(self, samples: KernelRows, *, centred: bool = True) -> None:
        self._samples = samples
        self.n_samples = samples.n_samples
        # K_ij - m_i - m_j with these m is the kernel of the samples minus their mean.
        self.means = np.zeros(self.n_samples)
        if centred:
            self.means = samples.scores(np.full(self.n_samples, 1.0 / self.n_samples))
            self.means -= 0.5 * self.means.mean()

    def mean_diagonal(self) -> float:
        return max(float(np.mean(self._samples.diagonal - 2.0 * self.means)), 0.0)

    def intercept_shift(self, coef: FloatArray) -> float:
        return float(self.means @ coef)

    def vector(self, coef: FloatArray) -> Vector:
        scores = self._samples.scores(coef)
        return Vector(coef, scores - float(self.means @ coef) - coef.sum() * self.means)

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        vector = self.vector(target - current.coef)
        return vector, max(self.inner(vector, vector), 0.0)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.coef @ other.scores)

    def complete(self, vector: Vector) -> None:
        """Nothing to do: scores are never left empty here."""

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        samples = active.samples
        rows = self._samples.rows(samples) - self.means - self.means[samples][:, np.newaxis]
        matrix = rows[:, samples] * np.outer(active.root, active.root)
        for _ in range(2):
            matrix = np.ascontiguousarray(matrix.T)
            centre_rows(matrix, active.tie, active.offsets, active.shrink)
        matrix[np.diag_indices(samples.size)] += active.ridge
        rows_residual = active.apply(residual.scores[samples] * active.root)
        z, intercept = solve_dual(matrix, rows_residual, active)
        change = active.apply(z) * active.root
        coef = residual.coef.copy()
        coef[samples] += change
        return Vector(coef, residual.scores + change @ rows), intercept


class LiftedFactor:
    """A Cholesky factor in memory, of a matrix whose upper triangle is read and overwritten.

    As precise as the matrix.
    """

    def __init__(self, matrix: Matrix) -> None:
        factorise = spotrf if matrix.dtype == np.float32 else dpotrf
        factor, info = factorise(matrix.T, lower=1, overwrite_a=1, clean=0)
        self._factor = factor if info == 0 else np.full_like(factor, np.nan)

    def solve_half(self, columns: FloatArray) -> FloatArray:
        return np.asarray(dtrtrs(self._factor, columns, lower=1)[0])

    def solve_rest(self, vector: FloatArray) -> FloatArray:
        return np.asarray(dtrtrs(self._factor, vector, lower=1, trans=1)[0])

    def log_pivots(self) -> FloatArray:
        return 2.0 * np.log(self._factor.diagonal())

    def invert(self) -> Callable[[FloatArray], FloatArray]:
        invert = spotri if self._factor.dtype == np.float32 else dpotri
        inverse, info = invert(self._factor, lower=1, overwrite_c=1)
        if info != 0:
            inverse = np.full_like(inverse, np.nan)
        return lambda vector: multiply_symmetric(inverse.T, vector)


class GramOperator(KernelOperator):
    """Vectors held by their coefficients, products through a dense kernel matrix.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        The kernel matrix.
    centred : bool, default=True
        Whether to move the origin of the feature space to the mean of the samples.
    is_definite : bool, default=False
        Whether the matrix is known to be positive semi-definite: then it has a factor.
    """

    is_gram = True

    def __init__(
        self, gram: FloatArray, *, centred: bool = True, is_definite: bool = False
    ) -> None:
        self.gram = np.ascontiguousarray(gram)
        super().__init__(_Matrix(self.gram), centred=centred)
        self._is_centred = centred
        self._is_definite = is_definite
        self._condensed: Operator | None = None
        self._rank_tried = 0

    def condense(self, size: int) -> Operator:
        max_rank = min(self.n_samples // _RANK_DIVISOR, size // _SIZE_DIVISOR)
        if self._condensed is not None or max_rank < _GROWTH * self._rank_tried:
            return self._condensed or self
        self._rank_tried = max_rank
        rows = factorise(self.gram, max_rank) if self._is_definite else None
        if rows is not None and rows.shape[1] > 0:
            means = rows.mean(axis=0) if self._is_centred else None
            self._condensed = FeatureOperator(make_rows(rows, means), means)
        return self._condensed or self

    def vector(self, coef: FloatArray) -> Vector:
        (support,) = coef.nonzero()
        if 2 * support.size > self.n_samples:
            scores = multiply_symmetric(self.gram, coef)
            scores -= float(self.means @ coef)
            scores -= float(coef.sum()) * self.means
            return Vector(coef, scores)
        scores = np.zeros(self.n_samples)
        if support.size == 0:
            return Vector(coef, scores)
        add_gram_rows(self.gram, self.means, support, coef[support], scores)
        return Vector(coef, scores)

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        samples = active.samples
        rows_residual = active.apply(active.root * residual.scores.take(samples))
        make = partial(gram_block, self.gram, self.means, *active.arrays)
        step = self._iterate(rows_residual, active, make)
        if step is None:
            active.memory.work += _work_of_factor(samples.size)
            step = solve_dual(make(), rows_residual, active, make)
        z, intercept = step
        coef = residual.coef.copy()
        change = active.root * active.apply(z)
        coef[samples] += change
        if 2 * samples.size > self.n_samples:
            return self.vector(coef), intercept
        scores = residual.scores.copy()
        add_gram_rows(self.gram, self.means, samples, change, scores)
        return Vector(coef, scores), intercept

    def take(self, index: IntArray) -> GramOperator:
        taken = copy(self)
        taken.__dict__.pop("_near", None)
        taken.gram = np.ascontiguousarray(self.gram[np.ix_(index, index)])
        taken._samples, taken.n_samples = _Matrix(taken.gram), index.size
        # From the origin of all samples, so that intercepts remain what they are.
        taken.means = self.means[index]
        taken._condensed, taken._rank_tried = None, 0
        return taken

    def expect_columns(self, weight: FloatArray, left: float, look: float = 0.0) -> float:
        if not self._is_definite:
            return math.inf
        return expect_columns(self.gram, weight, left, look)

    def find_columns(self, weight: FloatArray, left: float) -> FewColumns | None:
        if not self._is_definite:
            return None
        rows, pivots = truncate(self.gram, weight, left)
        if pivots.size > _MOST_COLUMNS * self.n_samples:
            return None
        return FewColumns.of(rows, pivots, centred=self._is_centred)

    def can_lift(self) -> bool:
        return True

    def lift(self, diagonal: FloatArray, *, single: bool = False) -> Lifted:
        matrix: Matrix = np.empty(self.gram.shape, dtype=np.float32 if single else np.float64)
        lift_gram(self.gram, self.means, diagonal, matrix)
        return LiftedFactor(matrix)

    def _iterate(
        self, rows_residual: FloatArray, active: ActiveSet, make: Callable[[], FloatArray]
    ) -> tuple[FloatArray, float] | None:
        """The step by conjugate gradients, or None when a factorisation is the better choice."""
        memory, size, n_samples = active.memory, active.samples.size, self.n_samples
        memory.n_products = 0
        if size < _ITERATE_SIZE or not active.free:
            return None
        if active.ones @ active.ones <= 1e-16 * size:
            return None
        near = self._choose_near(active.ridge)
        width = 0 if near is None else near[0].shape[1]
        # What a product takes, in multiplications of a factorisation.
        small = _PRODUCT * size**2 + 2.0 * _PRODUCT * size * width + _PER_PRODUCT
        budget = int((_work_of_factor(size) - 4.0 * size * width**2) / small)
        expected = memory.expect_products(active.ridge)
        if expected > budget:
            return None
        # Few products are worth no copy of the part of Q.
        likely = expected or min(_LIKELY_PRODUCTS, budget)
        explicit = likely * _PRODUCT * (n_samples**2 - size**2) > _READING * size**2
        matrix = make() if explicit else None
        z, intercept, converged = solve_projected(
            self.gram,
            self.means,
            active,
            rows_residual,
            min(active.accuracy, _LOOSEST_SYSTEM),
            budget,
            matrix,
            None if near is None else self._make_preconditioner(*near, active),
        )
        memory.note_products(active.ridge, converged=converged)
        each = small if explicit else small + _PRODUCT * (n_samples**2 - size**2)
        memory.work += memory.n_products * each + 4.0 * size * width**2
        if not converged or abs(intercept) > MAX_INTERCEPT_STEP:
            return None
        return z, intercept

    @cached_property
    def _near(self) -> tuple[FloatArray, FloatArray] | None:
        """Centred rows with nearly the same kernel.

        And what is lacking of its diagonal, on average, with the first of their columns, the first
        two, and so on.
        """
        if not self._is_definite:
            return None
        diagonal = float(np.mean(self.gram.diagonal()))
        rows = approximate(self.gram, _NEAR * diagonal)
        if rows is None:
            return None
        lacking = diagonal - np.cumsum(np.mean(np.square(rows), axis=0))
        return (rows - rows.mean(axis=0) if self._is_centred else rows), np.maximum(lacking, 0.0)

    def _choose_near(self, ridge: float) -> tuple[FloatArray, float] | None:
        """As many columns of the rows as a system with that ridge can do with."""
        if self._near is None:
            return None
        rows, lacking = self._near
        width = min(int(np.count_nonzero(lacking > _LACKING * ridge)) + 1, lacking.size)
        return rows[:, :width], float(lacking[width - 1])

    def _make_preconditioner(
        self, rows: FloatArray, lacking: float, active: ActiveSet
    ) -> Preconditioner:
        """For the system of an active set."""
        columns = rows.take(active.samples, axis=0)
        columns *= active.root[:, np.newaxis]
        if active.offsets.size > 2:
            centre_rows(columns, active.tie, active.offsets, active.shrink)
        unit = float(np.mean(np.square(active.root)))
        return Preconditioner(columns, active.ridge + unit * lacking)
