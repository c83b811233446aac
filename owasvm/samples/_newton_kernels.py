"""Compiled inner loops of the Newton solver: plain functions on arrays.

Notation: ``block`` labels the samples as in :class:`owasvm.losses.ProxPoint`. The *active* samples
are those with a label of 0 or more, listed by their labels, ``offsets[k]:offsets[k + 1]`` being
label k. ``root`` holds the square roots of their sample weights, ``tie`` the same with the signs
of their classes. R takes the share ``shrink`` of the component along ``tie`` from each block.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(cache=True)
def centre(vector: FloatArray, tie: FloatArray, offsets: IntArray, shrink: FloatArray) -> None:
    """Changes `vector` in place: multiplies by R."""
    for k in range(1, offsets.size - 1):
        product = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            product += vector[i] * tie[i]
            norm += tie[i] * tie[i]
        factor = shrink[k] * product / norm
        for i in range(offsets[k], offsets[k + 1]):
            vector[i] -= factor * tie[i]


@njit(cache=True)
def centre_rows(
    matrix: FloatArray, tie: FloatArray, offsets: IntArray, shrink: FloatArray
) -> None:
    """Changes `matrix` in place: multiplies its columns by R."""
    width = matrix.shape[1]
    total = np.empty(width)
    for k in range(1, offsets.size - 1):
        total[:] = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            norm += tie[i] * tie[i]
            for j in range(width):
                total[j] += tie[i] * matrix[i, j]
        for i in range(offsets[k], offsets[k + 1]):
            factor = shrink[k] * tie[i] / norm
            for j in range(width):
                matrix[i, j] -= factor * total[j]


@njit(cache=True)
def gram_block(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
) -> FloatArray:
    """``R D Q_AA D R + ridge I``, ``D = diag(root)`` and ``Q_ij = K_ij - m_i - m_j``.

    `means` are the centring terms m of the kernel, zero for a kernel that is taken as it is.
    """
    size = active.size
    term = np.empty(size)
    for i in range(size):
        term[i] = means[active[i]]
    matrix = np.empty((size, size))
    for i in range(size):
        row = gram[active[i]]
        for j in range(i + 1):
            value = root[i] * (row[active[j]] - term[i] - term[j]) * root[j]
            matrix[i, j] = value
            matrix[j, i] = value
    if offsets.size > 2:
        for i in range(size):
            centre(matrix[i], tie, offsets, shrink)
        centre_rows(matrix, tie, offsets, shrink)
    for i in range(size):
        matrix[i, i] += ridge
    return matrix


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_gram_rows(
    gram: FloatArray,
    means: FloatArray,
    rows: IntArray,
    coef: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds ``Q[:, rows] @ coef``, reading the rows of `gram` only."""
    n = out.size
    partial = np.zeros(n)
    total = 0.0
    shift = 0.0
    for k in range(rows.size):
        total += coef[k]
        shift += coef[k] * means[rows[k]]
    k = 0
    while k + 3 < rows.size:
        a = coef[k]
        b = coef[k + 1]
        c = coef[k + 2]
        d = coef[k + 3]
        row_a = gram[rows[k]]
        row_b = gram[rows[k + 1]]
        row_c = gram[rows[k + 2]]
        row_d = gram[rows[k + 3]]
        for j in range(n):
            partial[j] += a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]
        k += 4
    while k < rows.size:
        a = coef[k]
        row_a = gram[rows[k]]
        for j in range(n):
            partial[j] += a * row_a[j]
        k += 1
    for j in range(n):
        out[j] += partial[j] - shift - total * means[j]


@njit(cache=True)
def centre_product(product: FloatArray, means: FloatArray, coef: FloatArray) -> None:
    """Changes `product` in place: from ``K coef`` to ``Q coef``."""
    total = coef.sum()
    shift = np.dot(means, coef)
    for j in range(coef.size):
        product[j] = product[j] - shift - total * means[j]


@njit(cache=True)
def gram_product(gram: FloatArray, means: FloatArray, coef: FloatArray) -> FloatArray:
    """``Q coef``."""
    product = np.dot(gram, coef)
    centre_product(product, means, coef)
    return product


@njit(cache=True)
def gather_step(
    scores: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
) -> FloatArray:
    """``R D scores`` at the active samples."""
    gathered = np.empty(active.size)
    for i in range(active.size):
        gathered[i] = root[i] * scores[active[i]]
    centre(gathered, tie, offsets, shrink)
    return gathered


@njit(cache=True)
def spread_step(
    z: FloatArray,
    coef: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
) -> FloatArray:
    """Changes `z` and `coef` in place; ``D R z``, added to `coef` at the active samples."""
    centre(z, tie, offsets, shrink)
    for i in range(active.size):
        z[i] *= root[i]
        coef[active[i]] += z[i]
    return z


@njit(cache=True)
def lift_gram(
    gram: FloatArray, means: FloatArray, diagonal: FloatArray, matrix: FloatArray
) -> None:
    """Overwrites the upper triangle of `matrix`: ``Q + diag(diagonal)``."""
    for i in range(diagonal.size):
        for j in range(i, diagonal.size):
            matrix[i, j] = gram[i, j] - means[i] - means[j]
        matrix[i, i] += diagonal[i]


@njit(cache=True)
def _active_product(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    vector: FloatArray,
) -> FloatArray:
    """What :func:`gram_block` would give times `vector`, without forming it."""
    padded = np.zeros(gram.shape[0])
    scaled = vector.copy()
    centre(scaled, tie, offsets, shrink)
    for i in range(active.size):
        padded[active[i]] = root[i] * scaled[i]
    scores = gram_product(gram, means, padded)
    product = np.empty(active.size)
    for i in range(active.size):
        product[i] = root[i] * scores[active[i]]
    centre(product, tie, offsets, shrink)
    product += ridge * vector
    return product


@njit(cache=True)
def projected_conjugate_gradients(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    linear: FloatArray,
    constraint: FloatArray,
    demand: float,
    accuracy: float,
    budget: int,
) -> tuple[FloatArray, float, bool]:
    """Minimise ``1/2 z'Mz + linear'z`` subject to ``constraint'z = demand``, M of `gram_block`.

    Every iterate meets the constraint. Returns z, the multiplier t of
    ``M z + linear + t constraint = 0`` and whether the residual fell to `accuracy` times the
    smaller of its first norm and that of `linear`, within `budget` products.
    """
    # Where most samples are active, products with all of it cost less than a copy of a part.
    length = np.sqrt(np.dot(constraint, constraint))
    if length == 0.0:
        # Tied blocks of one class each: nothing resists the intercept.
        return np.zeros(active.size), 0.0, False
    explicit = 4 * active.size < 3 * gram.shape[0]
    matrix = np.empty((0, 0))
    if explicit:
        matrix = gram_block(gram, means, root, tie, active, offsets, shrink, ridge)
    normal = constraint / length
    z = (demand / length) * normal
    if explicit:
        image = np.dot(matrix, z)
    else:
        image = _active_product(gram, means, root, tie, active, offsets, shrink, ridge, z)
    residual = -linear - image
    residual -= np.dot(normal, residual) * normal
    direction = residual.copy()
    squared = np.dot(residual, residual)
    along = np.dot(normal, linear)
    goal = accuracy**2 * min(np.dot(linear, linear) - along * along, squared)
    for _ in range(budget):
        if squared <= goal:
            break
        if explicit:
            product = np.dot(matrix, direction)
        else:
            product = _active_product(
                gram, means, root, tie, active, offsets, shrink, ridge, direction
            )
        curvature = np.dot(direction, product)
        if curvature <= 0.0:
            # Rounding has eaten the ridge.
            break
        distance = squared / curvature
        z += distance * direction
        image += distance * product
        residual -= distance * (product - np.dot(normal, product) * normal)
        previous = squared
        squared = np.dot(residual, residual)
        direction *= squared / previous
        direction += residual
    return z, -np.dot(normal, image + linear) / length, squared <= goal
