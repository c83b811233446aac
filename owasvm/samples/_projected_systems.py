"""Newton systems of a kernel matrix by conjugate gradients.

The notation is that of :mod:`owasvm.samples.operators`. Products with the matrix come from BLAS,
which reads one triangle of it; what lies between two of them is compiled.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv

from owasvm._jit import njit
from owasvm.samples._newton_kernels import centre
from owasvm.samples.operators import ActiveSet

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["multiply_symmetric", "solve_projected"]


def multiply_symmetric(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """``matrix @ vector``, reading one triangle only, which takes half the time or less."""
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
    squared: float,
    z: FloatArray,
    image: FloatArray,
    residual: FloatArray,
    direction: FloatArray,
) -> float:
    """Changes the arrays from `z` on in place: a step of conjugate gradients across `normal`.

    `product` is what the system makes of `direction`, `squared` belongs to `residual`. Returns
    that of the next one; -1 where no step was taken, since rounding has eaten the ridge.
    """
    curvature = 0.0
    along = 0.0
    for i in range(product.size):
        curvature += direction[i] * product[i]
        along += normal[i] * product[i]
    if not curvature > 0.0:
        return -1.0
    distance = squared / curvature
    total = 0.0
    for i in range(product.size):
        z[i] += distance * direction[i]
        image[i] += distance * product[i]
        residual[i] -= distance * (product[i] - along * normal[i])
        total += residual[i] * residual[i]
    share = total / squared
    for i in range(product.size):
        direction[i] = residual[i] + share * direction[i]
    return total


def solve_projected(
    gram: FloatArray,
    means: FloatArray,
    active: ActiveSet,
    linear: FloatArray,
    budget: int,
    matrix: FloatArray | None = None,
) -> tuple[FloatArray, float, bool]:
    """Minimise ``1/2 z'Mz + linear'z`` subject to ``e'z = -imbalance``, M of `gram_block`.

    Every iterate meets the constraint. Returns z, the multiplier db of
    ``M z + linear + e db = 0`` and whether the residual fell to ``accuracy`` times the smaller of
    its first norm and that of `linear`, within `budget` products. `matrix` is M; without it
    products are formed from `gram` and its centring terms `means`. Their number is remembered.
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
    z = (-active.imbalance / length) * normal
    image = multiply(z).copy()
    residual = -linear - image
    residual -= (normal @ residual) * normal
    direction = residual.copy()
    squared = float(residual @ residual)
    along = float(normal @ linear)
    goal = active.accuracy**2 * min(float(linear @ linear) - along**2, squared)
    for n_products in range(1, budget + 1):
        if squared <= goal:
            break
        active.memory.n_products = n_products
        following = _advance(multiply(direction), normal, squared, z, image, residual, direction)
        if following < 0.0:
            break
        squared = following
    image += linear
    return z, -float(normal @ image) / length, squared <= goal
