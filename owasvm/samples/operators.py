r"""The data as the Newton solver sees them: vectors w, their scores, and Newton steps.

A vector ``w = sum_i coef_i phi(x_i)`` is held by its coefficients, by its scores
``<w, phi(x_j)>`` at all samples and, for features, by w itself.

Centring the data in feature space changes nothing as long as the intercept is free: it shifts the
intercept alone. It takes away the one large eigenvalue of kernels that are nearly constant and of
features far from the origin, so the operators do it unless told otherwise.

Notation of a Newton step (:mod:`owasvm.solvers.newton`): A are the active samples, D the square
roots of their sample weights, R the root of the Jacobian (:class:`ActiveSet`), ``B = R D X_A`` the
active rows in feature space, ``e = R D 1``. Given a residual vector r, the step h and the step db
of the intercept solve

.. math::

    h + \tfrac1\rho B^T (B h + e\, db) = r, \qquad
    \tfrac1\rho e^T (B h + e\, db) = \text{imbalance},

where the ridge :math:`\rho` is 1 / penalty. With :math:`h = r + B^T z` this is the system
:math:`(B B^T + \rho I) z = -(B r + e\, db)` of the size of A.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from owasvm._jit import register_jitable
from owasvm.samples._newton_kernels import centre_rows

if TYPE_CHECKING:
    from owasvm.samples.device import Place
    from owasvm.samples.low_rank import FewColumns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "DIGITS",
    "MAX_INTERCEPT_STEP",
    "SAME",
    "ActiveSet",
    "Memory",
    "Operator",
    "Vector",
]

#: The intercept moves by at most this much in a step, however little the active samples resist.
MAX_INTERCEPT_STEP = 2.0
#: Coefficients that have changed by less than this share of their mean are what they were.
SAME = 1e-12
#: A difference of products with a kernel that is smaller than this share of them is noise.
DIGITS = 1e-11
# A matrix that cannot be factorised is lifted by this share of its largest diagonal entry, then by
# ten times as much, and so on: 20 times lead beyond the largest entry of any finite matrix.
_FIRST_LIFT = 1e-14
_LEAST_LIFT = 1e-290
_MAX_LIFTS = 20
# Samples moved at a time.
_PART = 2**17
# Products that a system is expected to take, per product that did not suffice.
_MORE_THAN_TRIED = 1.5


@dataclass
class Vector:
    """A vector ``w = sum_i coef_i phi(x_i)`` and its scores ``<w, phi(x_j)>``.

    ``weight`` is w for features and empty for kernels. For features the coefficients follow w up
    to the rounding of the steps; whoever needs them exactly computes w from them.
    """

    coef: FloatArray
    scores: FloatArray
    weight: FloatArray = field(default_factory=lambda: np.empty(0))

    def move(self, step: float, direction: Vector) -> None:
        """Change in place: add ``step * direction``."""
        # Some at a time: a vector in between would be for nothing else.
        for first in range(0, self.coef.size, _PART):
            part = slice(first, first + _PART)
            self.coef[part] += step * direction.coef[part]
            self.scores[part] += step * direction.scores[part]
        if self.weight.size > 0:
            self.weight += step * direction.weight

    def copy(self) -> Vector:
        """One that shares no arrays with this one."""
        return Vector(self.coef.copy(), self.scores.copy(), self.weight.copy())


@dataclass
class Memory:
    """What one solve learns about the data on its way.

    Parameters
    ----------
    factorises : bool, default=False
        Conjugate gradients have failed: an ill-conditioned kernel stays so.
    n_products : int, default=0
        What the last system took of them, 0 where it was factorised.
    work : float, default=0.0
        Multiplications of a factorisation that would have taken as long as all systems did, where
        they are counted.
    known_products, known_ridge : float, default=0.0
        What systems took when they were last tried, and the ridge of that system.
    """

    factorises: bool = False
    n_products: int = 0
    work: float = 0.0
    known_products: float = 0.0
    known_ridge: float = 0.0

    def expect_products(self, ridge: float) -> float:
        """How many products a system with such a ridge will take; 0 where nothing is known."""
        return self.known_products * max(math.sqrt(self.known_ridge / ridge), 1.0)

    def note_products(self, ridge: float, *, converged: bool) -> None:
        """Take note of what the last system took."""
        self.known_products = self.n_products * (1.0 if converged else _MORE_THAN_TRIED)
        self.known_ridge = ridge


@dataclass
class ActiveSet:
    """The samples a Newton step can move, how, and what the step is after.

    Parameters
    ----------
    samples : ndarray of shape (n_active,)
        Those that move on their own first, then block by block.
    offsets : ndarray of shape (n_blocks + 2,)
        Where they begin: ``offsets[k]:offsets[k + 1]`` is block k, 0 for those on their own.
    shrink : ndarray of shape (> n_blocks,)
        ``1 - sqrt(1 - t)`` of each block: R takes this share of the component along `tie` away,
        all of it in a block whose members stay equal.
    root : ndarray of shape (n_active,)
        Square roots of the sample weights.
    tie : ndarray of shape (n_active,)
        The same with the signs of the labels: along it all members of a block move alike.
    ridge : float
        1 / penalty.
    imbalance : float
        Sum of the coefficients that are asked for.
    free : bool
        Whether the intercept moves.
    accuracy : float
        Relative accuracy that is good enough.
    memory : Memory
        Of the solve.
    """

    samples: IntArray
    offsets: IntArray
    shrink: FloatArray
    root: FloatArray
    tie: FloatArray
    ridge: float
    imbalance: float
    free: bool
    accuracy: float
    memory: Memory

    def __post_init__(self) -> None:
        self.ones = self.apply(self.root.copy())

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray, float]:
        """What describes ``B B' + ridge I`` to the compiled loops, beside the data."""
        return self.root, self.tie, self.samples, self.offsets, self.shrink, self.ridge

    def apply(self, vector: FloatArray) -> FloatArray:
        """Change `vector` in place: multiply by R."""
        if self.offsets.size > 2:
            centre_rows(vector.reshape(-1, 1), self.tie, self.offsets, self.shrink)
        return vector


class Operator(Protocol):
    """What the Newton solver asks of the data.

    Where reading the data is dear, an operator likes to know early what it will be asked: it then
    has ``foresees = True``. ``place`` is the device that it computes on, None for this machine.
    ``is_iterative`` says that Newton steps come from conjugate gradients, roughly, ``is_gram``
    that they come from a kernel matrix in memory.
    """

    n_samples: int
    foresees: bool
    is_iterative: bool
    is_gram: bool
    place: Place | None

    def mean_diagonal(self) -> float:
        """Mean of ``|phi(x_i)|^2``, the scale of the curvature of ``1/2 |w|^2``."""

    def vector(self, coef: FloatArray) -> Vector:
        """The vector of given coefficients; takes hold of `coef`."""

    def intercept_shift(self, coef: FloatArray) -> float:
        """Intercept of the centred problem minus that of the original one."""

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        """``w_target - w_current`` and its squared norm; its scores may be left empty.

        May overwrite `target`.
        """

    def residuals(self) -> Callable[[FloatArray, Vector], tuple[Vector, float]]:
        """:meth:`residual` for one solve, whose targets differ little from one to the next."""

    def inner(self, one: Vector, other: Vector) -> float:
        """``<one, other>``."""

    def complete(self, vector: Vector) -> None:
        """Fill in scores that were left empty."""

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        """The step (h, db); may reuse the arrays of `residual`."""

    def foresee(self, active: ActiveSet) -> None:
        """Take note of the active set of the step that follows the next residual."""

    def condense(self, size: int) -> Operator:
        """The same data by few columns, for systems of that size; itself where there are none."""

    def take(self, index: IntArray) -> Operator:
        """Some of the samples, seen from the same origin."""

    @property
    def n_columns(self) -> int | None:
        """Features of :meth:`rows_in_memory`; None where there are no such rows."""

    def rows_in_memory(self) -> FloatArray:
        """The (centred) samples themselves, dense: a copy."""

    def expect_columns(self, weight: FloatArray, left: float, look: float = 0.0) -> float:
        """About how many :meth:`find_columns` will find; infinite where there are none.

        So many are looked at where that is more than usual.
        """

    def find_columns(self, weight: FloatArray, left: float) -> FewColumns | None:
        """Few columns X with nearly the kernel of the samples; None where there are none.

        The kernel matrix minus ``XX'`` is positive semi-definite, and no entry of its diagonal,
        seen from zero, is larger than `left` over the square of the sample's `weight`.
        """

    def can_lift(self) -> bool:
        """Whether :meth:`lift` is at hand."""

    def lift(self, diagonal: FloatArray, *, single: bool = False) -> Lifted:
        """The (centred) kernel matrix with something added to its diagonal, factorised.

        In single precision where that will do and takes less time.
        """


class PlainOperator:
    """What operators have in common that offer no more than they must."""

    foresees = False
    is_iterative = False
    is_gram = False
    place: Place | None = None

    def residuals(self) -> Callable[[FloatArray, Vector], tuple[Vector, float]]:
        """Nothing to gain from the target before."""
        return cast(Operator, self).residual

    def foresee(self, active: ActiveSet) -> None:
        """Nothing to prepare."""

    def condense(self, size: int) -> Operator:
        """Nothing to gain."""
        # This class is a part of an operator, all of its heirs are whole ones.
        return cast(Operator, self)

    def take(self, index: IntArray) -> Operator:
        del index
        raise NotImplementedError(f"{type(self).__name__} has no part of its samples at hand.")

    @property
    def n_columns(self) -> int | None:
        return None

    def rows_in_memory(self) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} has no dense rows of features.")

    def expect_columns(self, weight: FloatArray, left: float, look: float = 0.0) -> float:
        del weight, left, look
        return math.inf

    def find_columns(self, weight: FloatArray, left: float) -> FewColumns | None:
        del weight, left
        return None

    def can_lift(self) -> bool:
        return False

    def lift(self, diagonal: FloatArray, *, single: bool = False) -> Lifted:
        del diagonal, single
        raise NotImplementedError(f"{type(self).__name__} has no matrix to add a diagonal to.")


class Lifted(Protocol):
    """``diag(lift) + K = R'R`` of the (centred) kernel matrix K, factorised."""

    def solve_half(self, columns: FloatArray) -> FloatArray:
        """``R'^-1 columns``."""

    def solve_rest(self, vector: FloatArray) -> FloatArray:
        """``R^-1 vector``."""

    def log_pivots(self) -> FloatArray:
        """Logarithms of the squared diagonal of R; their mean is that of the eigenvalues."""

    def invert(self) -> Callable[[FloatArray], FloatArray]:
        """Products with the inverse, for many of them; the factor is of no use afterwards."""


def factorise_definite(
    matrix: FloatArray, remake: Callable[[], FloatArray] | None = None
) -> FloatArray | None:
    """The lower Cholesky factor; overwrites `matrix`, symmetric positive definite.

    Rounding can make a nearly singular matrix indefinite. It is then lifted until it can be
    factorised; a matrix for which that does not help has entries that are not finite, and no
    factor. Of a matrix that has its upper triangle alone `remake` makes another one.
    """
    size = matrix.shape[0]
    diagonal = matrix.diagonal().copy()
    jitter = 0.0
    for _ in range(_MAX_LIFTS):
        # Only the lower triangle of the Fortran view, our upper one, is overwritten.
        factor, info = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return np.asarray(factor)
        jitter = max(10.0 * jitter, _FIRST_LIFT * float(np.abs(diagonal).max()), _LEAST_LIFT)
        if remake is None:
            lower = np.tril(matrix, -1)
            matrix = lower + lower.T
        else:
            matrix = remake()
        matrix[np.arange(size), np.arange(size)] = diagonal + jitter
    return None


def solve_factorised(factor: FloatArray | None, rhs: FloatArray) -> FloatArray:
    """Solve for the rows of `rhs`; without a factor nothing of the solution is finite."""
    if factor is None:
        return np.full_like(rhs, np.nan)
    return np.asarray(dpotrs(factor, rhs.T, lower=1)[0]).T


def solve_definite(
    matrix: FloatArray, rhs: FloatArray, remake: Callable[[], FloatArray] | None = None
) -> FloatArray:
    """Solve for the rows of `rhs`, as :func:`factorise_definite` takes the matrix."""
    return solve_factorised(factorise_definite(matrix, remake), rhs)


def find_changed(target: FloatArray, before: FloatArray) -> IntArray:
    """Samples whose coefficient has changed; what is no number has."""
    is_same = np.abs(target - before) <= SAME * np.abs(target).mean()
    return np.flatnonzero(~is_same)


@register_jitable
def limit_intercept(demand: float, curvature: float) -> float:
    """``demand / curvature``, limited."""
    return demand / max(curvature, abs(demand) / MAX_INTERCEPT_STEP, 1e-300)


def solve_dual(
    matrix: FloatArray,
    rows_residual: FloatArray,
    active: ActiveSet,
    remake: Callable[[], FloatArray] | None = None,
) -> tuple[FloatArray, float]:
    """``z`` and db from ``matrix = B B' + ridge I`` and ``rows_residual = B r``.

    As :func:`factorise_definite` takes the matrix.
    """
    if not active.free:
        return -solve_definite(matrix, rows_residual[None], remake)[0], 0.0
    sides = np.empty((2, rows_residual.size))
    sides[0], sides[1] = rows_residual, active.ones
    solved = solve_definite(matrix, sides, remake)
    pulled, curvature = (solved @ active.ones).tolist()
    intercept = limit_intercept(active.imbalance - pulled, curvature)
    return -solved[0] - intercept * solved[1], intercept


def solve_primal(
    matrix: FloatArray, coupling: FloatArray, residual: FloatArray, active: ActiveSet
) -> tuple[FloatArray, float]:
    """h and db from ``matrix = B'B``, which is overwritten, and ``coupling = B'e``.

    They solve ``(B'B + ridge I) h + B'e db = ridge r``, a system of the size of the features.
    """
    ridge = active.ridge
    matrix[np.diag_indices(residual.size)] += ridge
    if not active.free:
        return solve_definite(matrix, ridge * residual[None])[0], 0.0
    solved = solve_definite(matrix, np.stack([ridge * residual, coupling]))
    curvature = float(active.ones @ active.ones) - float(coupling @ solved[1])
    demand = ridge * active.imbalance - float(coupling @ solved[0])
    intercept = limit_intercept(demand, curvature)
    return solved[0] - intercept * solved[1], intercept
