"""Newton systems of a kernel matrix by conjugate gradients.

The notation is that of :mod:`owasvm.samples.operators`. Products with the matrix come from BLAS,
which reads one triangle of it; what lies between two of them is compiled.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv, ssymv
from scipy.linalg.lapack import dpotrf, dpotri

from owasvm._jit import njit
from owasvm.samples._newton_kernels import centre
from owasvm.samples.operators import ActiveSet

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Preconditioner", "multiply_symmetric", "solve_projected"]


def multiply_symmetric(matrix: FloatArray | NDArray[np.float32], vector: FloatArray) -> FloatArray:
    """``matrix @ vector``, reading one triangle only, which takes half the time or less.

    A matrix in single precision makes a product in single precision.
    """
    if matrix.dtype == np.float32:
        return np.asarray(ssymv(1.0, matrix.T, vector, lower=1), dtype=np.float64)
    return np.asarray(dsymv(1.0, matrix.T, vector, lower=1))


@njit(cache=True)
def _spread(
    vector: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    scratch: FloatArray,
    padded: FloatArray,
) -> None:
    """Overwrites the active entries of `padded`: ``D R vector``, and `scratch`, as long."""
    for i in range(active.size):
        scratch[i] = vector[i]
    centre(scratch, tie, offsets, shrink)
    for i in range(active.size):
        padded[active[i]] = root[i] * scratch[i]


@njit(cache=True)
def _collect(
    scores: FloatArray,
    padded: FloatArray,
    vector: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    product: FloatArray,
) -> None:
    """Overwrites `product`: ``R D Q padded + ridge vector``, from `scores`, the kernel's share."""
    total = 0.0
    shift = 0.0
    for i in range(active.size):
        total += padded[active[i]]
        shift += means[active[i]] * padded[active[i]]
    for i in range(active.size):
        p = active[i]
        product[i] = root[i] * (scores[p] - shift - total * means[p])
    centre(product, tie, offsets, shrink)
    for i in range(active.size):
        product[i] += ridge * vector[i]


@njit(cache=True, fastmath={"reassoc", "contract"})
def _advance(
    product: FloatArray,
    normal: FloatArray,
    inner: float,
    direction: FloatArray,
    z: FloatArray,
    image: FloatArray,
    residual: FloatArray,
) -> float:
    """Changes the arrays from `z` on in place: a step of conjugate gradients across `normal`.

    `product` is what the system makes of `direction`, `inner` the product of the residual and what
    was found for it. Returns the squared norm of the next residual; -1 where no step was taken,
    since rounding has eaten the ridge.
    """
    curvature = 0.0
    along = 0.0
    for i in range(product.size):
        curvature += direction[i] * product[i]
        along += normal[i] * product[i]
    if not curvature > 0.0:
        return -1.0
    distance = inner / curvature
    total = 0.0
    for i in range(product.size):
        z[i] += distance * direction[i]
        image[i] += distance * product[i]
        residual[i] -= distance * (product[i] - along * normal[i])
        total += residual[i] * residual[i]
    return total


@njit(cache=True, fastmath={"reassoc", "contract"})
def _turn(
    found: FloatArray,
    normal: FloatArray,
    straight: FloatArray,
    residual: FloatArray,
    last: float,
    direction: FloatArray,
) -> float:
    """Changes `direction` in place: the next one, along `found` but for its share of `straight`.

    Returns the product of `residual` and what was found for it; `last` is the one before.
    """
    along = 0.0
    for i in range(found.size):
        along += normal[i] * found[i]
    inner = 0.0
    for i in range(found.size):
        inner += residual[i] * (found[i] - along * straight[i])
    share = inner / last if last > 0.0 else 0.0
    for i in range(found.size):
        direction[i] = found[i] - along * straight[i] + share * direction[i]
    return inner


class Preconditioner:
    """Solves ``(B B' + lift I) x = r`` for few columns B, up to a factor.

    Parameters
    ----------
    columns : ndarray of shape (n_active, n_columns)
        B.
    lift : float
        What is added to the diagonal.
    """

    def __init__(self, columns: FloatArray, lift: float) -> None:
        self._columns = columns
        matrix = columns.T @ columns
        matrix[np.diag_indices_from(matrix)] += lift
        factor, info = dpotrf(matrix.T, lower=1, overwrite_a=1)
        # ``I - B (B'B + lift I)^-1 B'`` is what (B B' + lift I)^-1 is, times `lift`.
        self._inverse = None if info else dpotri(factor, lower=1, overwrite_c=1)[0].T

    def __call__(self, residual: FloatArray) -> FloatArray:
        """The solution, times `lift`; the residual itself where there is no factor."""
        if self._inverse is None:
            return residual
        along = multiply_symmetric(self._inverse, residual @ self._columns)
        return residual - self._columns @ along


def solve_projected(
    gram: FloatArray,
    means: FloatArray,
    active: ActiveSet,
    linear: FloatArray,
    accuracy: float,
    budget: int,
    matrix: FloatArray | None = None,
    near: Callable[[FloatArray], FloatArray] | None = None,
) -> tuple[FloatArray, float, bool]:
    """Minimise ``1/2 z'Mz + linear'z`` subject to ``e'z = -imbalance``, M of `gram_block`.

    Every iterate meets the constraint. Returns z, the multiplier db of
    ``M z + linear + e db = 0`` and whether the residual fell to `accuracy` times the smaller of
    its first norm and that of `linear`, within `budget` products. `matrix` is M; without it
    products are formed from `gram` and its centring terms `means`. `near` solves systems with a
    matrix near M, up to a factor. The number of products is remembered.
    """
    length = math.sqrt(active.ones @ active.ones)
    if length == 0.0:
        # Tied blocks of one class each: nothing resists the intercept.
        return np.zeros(linear.size), 0.0, False
    padded, product = np.zeros(means.size), np.empty(linear.size)

    def multiply(vector: FloatArray) -> FloatArray:
        """``M vector``; overwritten by the next."""
        if matrix is not None:
            return multiply_symmetric(matrix, vector)
        system = active.root, active.tie, active.samples, active.offsets, active.shrink
        _spread(vector, *system, product, padded)
        scores = multiply_symmetric(gram, padded)
        _collect(scores, padded, vector, means, *system, active.ridge, product)
        return product

    normal = active.ones / length
    straight = normal
    if near is not None:
        # Of all vectors with this component along the constraint the one of least curvature.
        straight = near(normal)
        straight = straight / float(normal @ straight)
    z = (-active.imbalance / length) * straight
    image = multiply(z).copy()
    residual = -linear - image
    residual -= (normal @ residual) * normal
    squared = float(residual @ residual)
    along = float(normal @ linear)
    goal = accuracy**2 * min(float(linear @ linear) - along**2, squared)
    direction, inner = np.zeros(linear.size), 0.0
    for n_products in range(1, budget + 1):
        if squared <= goal:
            break
        active.memory.n_products = n_products
        found = residual if near is None else near(residual)
        inner = _turn(found, normal, straight, residual, inner, direction)
        following = _advance(multiply(direction), normal, inner, direction, z, image, residual)
        if following < 0.0:
            break
        squared = following
    image += linear
    return z, -float(normal @ image) / length, squared <= goal
