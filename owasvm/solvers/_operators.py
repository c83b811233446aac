r"""The data as the Newton solver sees it: vectors w, their responses, and Newton steps.

A vector ``w = sum_i coef_i y_i phi(x_i)`` is held by its coefficients, by its *response*
``y_j <w, phi(x_j)>`` at all samples and, for features, by w itself.

Centring the data in feature space changes nothing as long as the intercept is free: it shifts the
intercept alone. It takes away the one large eigenvalue of kernels that are nearly constant and of
features far from the origin, so the operators do it unless told otherwise.

Notation of a Newton step (:mod:`owasvm.solvers.newton`): A are the active samples, D the square
roots of their sample weights, P the projector of :mod:`owasvm.solvers._newton_kernels`,
``B = P D Y X_A`` the active rows in feature space, ``z_y = P D y_A``. Given a residual vector r,
the step h and the step db of the intercept solve

.. math::

    h + \tfrac1\rho B^T (B h + z_y\, db) = r, \qquad
    \tfrac1\rho z_y^T (B h + z_y\, db) = \text{imbalance},

where the ridge :math:`\rho` is 1 / penalty. With :math:`h = r + B^T z` this is the system
:math:`(B B^T + \rho I) z = -(B r + z_y\, db)` of the size of A.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from owasvm.solvers._newton_kernels import (
    add_gram_rows,
    centre,
    centre_rows,
    gram_block,
    gram_product,
    projected_conjugate_gradients,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The intercept moves by at most this much in a step, however little the active samples resist.
MAX_INTERCEPT_STEP = 2.0
# Below this many active samples a Cholesky factorisation costs less than a few products.
_ITERATE_SIZE = 100
# Products with Q that cost about one factorisation, per active sample.
_PRODUCTS_PER_SIZE = 1 / 12
# A matrix that cannot be factorised is lifted by this share of its largest diagonal entry, then by
# ten times as much, and so on: 20 times lead beyond the largest entry of any finite matrix.
_FIRST_LIFT = 1e-14
_LEAST_LIFT = 1e-290
_MAX_LIFTS = 20
# Sparse data: larger blocks of active rows are not made dense.
_MAX_DENSE_ENTRIES = 40_000_000


@dataclass
class Vector:
    """A vector ``w = sum_i coef_i y_i phi(x_i)`` and its responses ``y_j <w, phi(x_j)>``.

    ``weight`` is w for features and empty for a Gram matrix. For features the coefficients follow
    w up to the rounding of the steps; whoever needs them exactly computes w from them.
    """

    coef: FloatArray
    response: FloatArray
    weight: FloatArray = field(default_factory=lambda: np.empty(0))

    def move(self, step: float, direction: Vector) -> None:
        """Change in place: add ``step * direction``."""
        self.coef += step * direction.coef
        self.response += step * direction.response
        self.weight += step * direction.weight


@dataclass
class ActiveSet:
    """The samples a Newton step can move, with their projector, and what the step is after.

    ``free`` tells whether the intercept moves, ``imbalance`` is ``y'(alpha - e)``, ``accuracy``
    the relative accuracy that is good enough.
    """

    samples: IntArray
    offsets: IntArray
    root: FloatArray
    labels: FloatArray
    ridge: float
    imbalance: float
    free: bool
    accuracy: float

    def __post_init__(self) -> None:
        self.label_row = self.labels * self.root
        centre(self.label_row, self.root, self.offsets)


class Operator(Protocol):
    """What the Newton solver asks of the data."""

    n_samples: int

    def mean_diagonal(self) -> float:
        """Mean of ``|phi(x_i)|^2``, the scale of the curvature of ``1/2 |w|^2``."""

    def vector(self, coef: FloatArray) -> Vector:
        """The vector of given coefficients; takes hold of `coef`."""

    def intercept_shift(self, coef: FloatArray) -> float:
        """Intercept of the centred problem minus that of the original one."""

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        """``w_target - w_current`` and its squared norm; its response may be left empty."""

    def inner(self, one: Vector, other: Vector) -> float:
        """``<one, other>``."""

    def complete(self, vector: Vector) -> None:
        """Fill in a response that was left empty."""

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        """The step (h, db); may reuse the arrays of `residual`."""


def _cholesky_solve(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve for the rows of `rhs`; overwrites `matrix`, symmetric positive definite.

    Rounding can make a nearly singular matrix indefinite. It is then lifted until it can be
    factorised; a matrix for which that does not help has entries that are not finite, and so will
    the solution.
    """
    size = matrix.shape[0]
    diagonal = matrix.diagonal().copy()
    jitter = 0.0
    for _ in range(_MAX_LIFTS):
        # Only the lower triangle of the Fortran view, our upper one, is overwritten.
        factor, info = dpotrf(matrix.T, lower=1, overwrite_a=1)
        if info == 0:
            solution, _ = dpotrs(factor, rhs.T, lower=1)
            return solution.T
        jitter = max(10.0 * jitter, _FIRST_LIFT * float(np.abs(diagonal).max()), _LEAST_LIFT)
        lower = np.tril(matrix, -1)
        matrix = lower + lower.T
        matrix[np.arange(size), np.arange(size)] = diagonal + jitter
    return np.full_like(rhs, np.nan)


def _intercept_step(demand: float, curvature: float) -> float:
    """``demand / curvature``, limited."""
    return demand / max(curvature, abs(demand) / MAX_INTERCEPT_STEP, 1e-300)


def _dual_step(
    matrix: FloatArray, rows_residual: FloatArray, active: ActiveSet
) -> tuple[FloatArray, float]:
    """``z`` and db from ``matrix = B B' + ridge I`` and ``rows_residual = B r``."""
    if not active.free:
        return -_cholesky_solve(matrix, rows_residual[None])[0], 0.0
    sides = np.empty((2, rows_residual.size))
    sides[0], sides[1] = rows_residual, active.label_row
    solved = _cholesky_solve(matrix, sides)
    demand = active.imbalance - float(active.label_row @ solved[0])
    intercept = _intercept_step(demand, float(active.label_row @ solved[1]))
    return -solved[0] - intercept * solved[1], intercept


class GramOperator:
    """Vectors held by their coefficients, products through a dense kernel matrix."""

    def __init__(self, gram: FloatArray, y: FloatArray, *, centred: bool = True) -> None:
        self.gram = gram
        self.y = y
        self.n_samples = y.size
        # K_ij - m_i - m_j with these m is the kernel of the samples minus their mean.
        self.means = np.zeros(y.size)
        if centred:
            self.means = gram @ np.full(y.size, 1.0 / y.size)
            self.means -= 0.5 * self.means.mean()
        self._iterate = True

    def mean_diagonal(self) -> float:
        return max(float(np.mean(self.gram.diagonal() - 2.0 * self.means)), 0.0)

    def intercept_shift(self, coef: FloatArray) -> float:
        return float(self.means @ (self.y * coef))

    def vector(self, coef: FloatArray) -> Vector:
        return Vector(coef, gram_product(self.gram, self.means, self.y, coef))

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        vector = self.vector(target - current.coef)
        return vector, max(self.inner(vector, vector), 0.0)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.coef @ other.response)

    def complete(self, vector: Vector) -> None:
        """Nothing to do: responses are never left empty here."""

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        samples = active.samples
        rows_residual = residual.response[samples] * active.root
        centre(rows_residual, active.root, active.offsets)
        step = self._iterated(rows_residual, active)
        if step is None:
            matrix: FloatArray = gram_block(*self._block(active))
            step = _dual_step(matrix, rows_residual, active)
        z, intercept = step
        z *= active.root
        coef = residual.coef.copy()
        coef[samples] += z
        if 2 * samples.size > self.n_samples:
            return self.vector(coef), intercept
        response = residual.response.copy()
        add_gram_rows(self.gram, self.means, self.y, samples, z, response)
        return Vector(coef, response), intercept

    def _block(self, active: ActiveSet) -> tuple[Any, ...]:
        """Arguments that describe the matrix ``B B' + ridge I`` to the kernels."""
        return (
            self.gram,
            self.means,
            self.y,
            active.root,
            active.samples,
            active.offsets,
            active.ridge,
        )

    def _iterated(
        self, rows_residual: FloatArray, active: ActiveSet
    ) -> tuple[FloatArray, float] | None:
        """The step by conjugate gradients, or None when a factorisation is the better choice."""
        size = active.samples.size
        if size < _ITERATE_SIZE or not self._iterate or not active.free:
            return None
        if active.label_row @ active.label_row <= 1e-16 * size:
            return None
        arguments = (
            *self._block(active),
            rows_residual,
            active.label_row,
            -active.imbalance,
            active.accuracy,
            int(_PRODUCTS_PER_SIZE * size),
        )
        z, intercept, converged = projected_conjugate_gradients(*arguments)
        # An ill-conditioned kernel stays so: factorise from now on.
        self._iterate = converged
        if not converged or abs(intercept) > MAX_INTERCEPT_STEP:
            return None
        return z, intercept


class FeatureOperator:
    """Vectors w of a linear model, from dense or CSR features; never forms an n x n matrix.

    Sparse features are not centred: that would make them dense.
    """

    def __init__(
        self, features: FloatArray | sp.csr_matrix, y: FloatArray, *, centred: bool = True
    ) -> None:
        self._means: FloatArray | None = None
        if centred and not sp.issparse(features):
            self._means = features.mean(axis=0)
            features = features - self._means
        self.features = features
        self.transposed = features.T.tocsr() if sp.issparse(features) else features.T
        self.y = y
        self.n_samples = y.size

    def mean_diagonal(self) -> float:
        entries = self.features.data if sp.issparse(self.features) else self.features.ravel()
        return float(entries @ entries) / self.n_samples

    def intercept_shift(self, coef: FloatArray) -> float:
        return 0.0 if self._means is None else float(self._means @ self._weight(coef))

    def _weight(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.transposed @ (self.y * coef))

    def _respond(self, weight: FloatArray) -> FloatArray:
        return self.y * np.asarray(self.features @ weight)

    def vector(self, coef: FloatArray) -> Vector:
        weight = self._weight(coef)
        return Vector(coef, self._respond(weight), weight)

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        weight = self._weight(target) - current.weight
        return Vector(target - current.coef, np.empty(0), weight), float(weight @ weight)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.weight @ other.weight)

    def complete(self, vector: Vector) -> None:
        """Fill in a response that was left empty."""
        vector.response = self._respond(vector.weight)

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        rows = self.features[active.samples]
        n_active, n_features = rows.shape
        if sp.issparse(rows) and n_active * n_features <= _MAX_DENSE_ENTRIES:
            rows = rows.toarray()
        if sp.issparse(rows):
            z, weight, intercept = self._sparse_step(rows, residual.weight, active)
        else:
            rows = np.ascontiguousarray(rows * (active.labels * active.root)[:, None])
            if active.offsets.size > 2:
                centre_rows(rows, active.root, active.offsets)
            if n_active <= n_features:
                matrix = rows @ rows.T
                matrix[np.diag_indices(n_active)] += active.ridge
                z, intercept = _dual_step(matrix, rows @ residual.weight, active)
                weight = residual.weight + z @ rows
            else:
                weight, intercept = self._primal_step(rows, residual.weight, active)
                z = -(rows @ weight + intercept * active.label_row) / active.ridge
        coef = residual.coef
        coef[active.samples] += z * active.root
        return Vector(coef, self._respond(weight), weight), intercept

    @staticmethod
    def _primal_step(
        rows: FloatArray, residual: FloatArray, active: ActiveSet
    ) -> tuple[FloatArray, float]:
        """The step from the system ``(B'B + ridge I) h + B'z_y db = ridge r`` of feature size."""
        ridge = active.ridge
        matrix = rows.T @ rows
        matrix[np.diag_indices(rows.shape[1])] += ridge
        if not active.free:
            return _cholesky_solve(matrix, ridge * residual[None])[0], 0.0
        coupling = active.label_row @ rows
        solved = _cholesky_solve(matrix, np.stack([ridge * residual, coupling]))
        curvature = float(active.label_row @ active.label_row) - float(coupling @ solved[1])
        demand = ridge * active.imbalance - float(coupling @ solved[0])
        intercept = _intercept_step(demand, curvature)
        return solved[0] - intercept * solved[1], intercept

    @staticmethod
    def _sparse_step(
        rows: sp.csr_matrix, residual: FloatArray, active: ActiveSet
    ) -> tuple[FloatArray, FloatArray, float]:
        """Wide sparse data: conjugate gradients with products by the active rows only."""
        columns = rows.T.tocsr()
        scale = active.labels * active.root

        def project(vector: FloatArray) -> FloatArray:
            out = scale * vector
            centre(out, active.root, active.offsets)
            return out

        def multiply(vector: FloatArray) -> FloatArray:
            product = columns @ (scale * vector)
            return project(rows @ product) + active.ridge * vector

        def solve(target: FloatArray) -> FloatArray:
            solution = np.zeros_like(target)
            remainder = target.copy()
            direction = remainder.copy()
            squared = float(remainder @ remainder)
            goal = 1e-20 * squared
            for _ in range(10 * target.size):
                if squared <= goal:
                    break
                product = multiply(direction)
                distance = squared / float(direction @ product)
                solution += distance * direction
                remainder -= distance * product
                previous, squared = squared, float(remainder @ remainder)
                direction = remainder + (squared / previous) * direction
            return solution

        first = solve(project(rows @ residual))
        intercept = 0.0
        if active.free:
            second = solve(active.label_row)
            demand = active.imbalance - float(active.label_row @ first)
            intercept = _intercept_step(demand, float(active.label_row @ second))
            first = first + intercept * second
        return -first, residual - columns @ (scale * first), intercept
