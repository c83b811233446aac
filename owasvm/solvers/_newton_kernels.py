"""Compiled inner loops of the Newton solver: plain functions on arrays.

Notation: ``block`` labels the samples as in :mod:`owasvm._sorting` (-2 inactive, -1
single, 0 clipped, 1, 2, ... tied blocks). The *active* samples are the clipped and the tied ones;
they are listed clipped first, then block by block, ``offsets[k]:offsets[k + 1]`` being label k.
``root`` holds the square roots of their sample weights. ``P`` is the projector that removes, from
each tied block, the component along ``root``.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(cache=True)
def list_active(block: IntArray, n_tied_blocks: int) -> tuple[IntArray, IntArray]:
    """Active samples, clipped first, then tied block by block, and the offsets of the labels."""
    offsets = np.zeros(n_tied_blocks + 2, dtype=np.int64)
    for i in range(block.size):
        if block[i] >= 0:
            offsets[block[i] + 1] += 1
    for k in range(n_tied_blocks + 1):
        offsets[k + 1] += offsets[k]
    position = offsets[:-1].copy()
    active = np.empty(offsets[n_tied_blocks + 1], dtype=np.int64)
    for i in range(block.size):
        label = block[i]
        if label >= 0:
            active[position[label]] = i
            position[label] += 1
    return active, offsets


@njit(cache=True)
def centre(vector: FloatArray, root: FloatArray, offsets: IntArray) -> None:
    """Changes `vector` in place: applies the projector P."""
    for k in range(1, offsets.size - 1):
        product = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            product += vector[i] * root[i]
            norm += root[i] * root[i]
        factor = product / norm
        for i in range(offsets[k], offsets[k + 1]):
            vector[i] -= factor * root[i]


@njit(cache=True)
def centre_rows(matrix: FloatArray, root: FloatArray, offsets: IntArray) -> None:
    """Changes `matrix` in place: applies the projector P to its columns."""
    width = matrix.shape[1]
    total = np.empty(width)
    for k in range(1, offsets.size - 1):
        total[:] = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            norm += root[i] * root[i]
            for j in range(width):
                total[j] += root[i] * matrix[i, j]
        for i in range(offsets[k], offsets[k + 1]):
            factor = root[i] / norm
            for j in range(width):
                matrix[i, j] -= factor * total[j]


@njit(cache=True)
def gram_block(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    root: FloatArray,
    active: IntArray,
    offsets: IntArray,
    ridge: float,
) -> FloatArray:
    """``P D Q_AA D P + ridge I``, ``D = diag(root)`` and ``Q_ij = y_i y_j (K_ij - m_i - m_j)``.

    `means` are the centring terms m of the kernel, zero for a kernel that is taken as it is.
    """
    size = active.size
    scale = np.empty(size)
    term = np.empty(size)
    for i in range(size):
        scale[i] = y[active[i]] * root[i]
        term[i] = means[active[i]]
    matrix = np.empty((size, size))
    for i in range(size):
        row = gram[active[i]]
        for j in range(i + 1):
            value = scale[i] * (row[active[j]] - term[i] - term[j]) * scale[j]
            matrix[i, j] = value
            matrix[j, i] = value
    if offsets.size > 2:
        for i in range(size):
            centre(matrix[i], root, offsets)
        centre_rows(matrix, root, offsets)
    for i in range(size):
        matrix[i, i] += ridge
    return matrix


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_gram_rows(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
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
        signed = y[rows[k]] * coef[k]
        total += signed
        shift += signed * means[rows[k]]
    k = 0
    while k + 3 < rows.size:
        a = y[rows[k]] * coef[k]
        b = y[rows[k + 1]] * coef[k + 1]
        c = y[rows[k + 2]] * coef[k + 2]
        d = y[rows[k + 3]] * coef[k + 3]
        row_a = gram[rows[k]]
        row_b = gram[rows[k + 1]]
        row_c = gram[rows[k + 2]]
        row_d = gram[rows[k + 3]]
        for j in range(n):
            partial[j] += a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]
        k += 4
    while k < rows.size:
        a = y[rows[k]] * coef[k]
        row_a = gram[rows[k]]
        for j in range(n):
            partial[j] += a * row_a[j]
        k += 1
    for j in range(n):
        out[j] += y[j] * (partial[j] - shift - total * means[j])


@njit(cache=True)
def gram_product(
    gram: FloatArray, means: FloatArray, y: FloatArray, coef: FloatArray
) -> FloatArray:
    """``Q coef``."""
    signed = y * coef
    product = np.dot(gram, signed)
    total = signed.sum()
    shift = np.dot(means, signed)
    for j in range(y.size):
        product[j] = y[j] * (product[j] - shift - total * means[j])
    return product


@njit(cache=True)
def shifted_point(
    margin: FloatArray,
    response: FloatArray,
    response_step: FloatArray,
    y: FloatArray,
    intercept: float,
    intercept_step: float,
    step: float,
    multiplier_shift: FloatArray,
    slack: FloatArray,
    v: FloatArray,
) -> None:
    """Overwrites `slack` and `v`: ``margin - y f`` after a step, and where the prox is due."""
    moved = intercept + step * intercept_step
    for i in range(margin.size):
        value = margin[i] - (response[i] + step * response_step[i]) - y[i] * moved
        slack[i] = value
        v[i] = value + multiplier_shift[i]


@njit(cache=True)
def change_along(
    dual: FloatArray,
    first_dual: FloatArray,
    response: FloatArray,
    y: FloatArray,
    intercept_step: float,
) -> float:
    """``(dual - first_dual)'(response + y * intercept_step)``."""
    total = 0.0
    for i in range(dual.size):
        total += (dual[i] - first_dual[i]) * (response[i] + y[i] * intercept_step)
    return total


@njit(cache=True)
def _active_product(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    root: FloatArray,
    active: IntArray,
    offsets: IntArray,
    ridge: float,
    vector: FloatArray,
) -> FloatArray:
    """What :func:`gram_block` would give times `vector`, without forming it."""
    padded = np.zeros(y.size)
    for i in range(active.size):
        padded[active[i]] = root[i] * vector[i]
    response = gram_product(gram, means, y, padded)
    product = np.empty(active.size)
    for i in range(active.size):
        product[i] = root[i] * response[active[i]]
    centre(product, root, offsets)
    product += ridge * vector
    return product


@njit(cache=True)
def projected_conjugate_gradients(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    root: FloatArray,
    active: IntArray,
    offsets: IntArray,
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
    explicit = 4 * active.size < 3 * y.size
    matrix = np.empty((0, 0))
    if explicit:
        matrix = gram_block(gram, means, y, root, active, offsets, ridge)
    normal = constraint / length
    z = (demand / length) * normal
    if explicit:
        image = np.dot(matrix, z)
    else:
        image = _active_product(gram, means, y, root, active, offsets, ridge, z)
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
            product = _active_product(gram, means, y, root, active, offsets, ridge, direction)
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
