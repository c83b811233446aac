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

# Blocks of more samples than these on average are worth a loop of their own.
_FEW = 8
# Rows and columns mirrored at a time, so that both stay in the cache.
_TILE = 32


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


def centre_rows(
    matrix: FloatArray, tie: FloatArray, offsets: IntArray, shrink: FloatArray
) -> None:
    """Changes `matrix` in place: multiplies its columns by R."""
    centre_columns(matrix, tie, offsets, shrink, np.empty(matrix.shape[1]))


@njit(cache=True)
def centre_columns(
    matrix: FloatArray, tie: FloatArray, offsets: IntArray, shrink: FloatArray, total: FloatArray
) -> None:
    """The same, overwriting `total`, as long as a row."""
    width = matrix.shape[1]
    for k in range(1, offsets.size - 1):
        for j in range(width):
            total[j] = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            norm += tie[i] * tie[i]
            for j in range(width):
                total[j] += tie[i] * matrix[i, j]
        for i in range(offsets[k], offsets[k + 1]):
            factor = shrink[k] * tie[i] / norm
            for j in range(width):
                matrix[i, j] -= factor * total[j]


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
    size, n_labels = active.size, offsets.size - 1
    matrix, pulls = np.empty((size, size)), np.empty((size, n_labels))
    spare, labels = np.empty(size), np.empty(size, dtype=np.int64)
    _write_gram_block(
        gram, means, root, tie, active, offsets, shrink, ridge, matrix, pulls, spare, labels
    )
    return matrix


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def _gather(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    active: IntArray,
    n_alone: int,
    matrix: FloatArray,
    own: FloatArray,
) -> None:
    """Overwrites `matrix`: ``D Q_AA D``; of samples on their own, the first, the upper triangle.

    Overwrites `own`, one entry per active sample. An empty `root` stands for ones.
    """
    for i in range(active.size):
        own[i] = means[active[i]]
    for i in range(active.size):
        kernel = gram[active[i]]
        row = matrix[i]
        mean = own[i]
        for j in range(i if i < n_alone else 0, active.size):
            row[j] = kernel[active[j]] - mean - own[j]
        if root.size > 0:
            factor = root[i]
            for j in range(active.size):
                row[j] *= factor * root[j]


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def _write_pulls(
    matrix: FloatArray,
    tie: FloatArray,
    offsets: IntArray,
    shrink: FloatArray,
    pulls: FloatArray,
    spare: FloatArray,
) -> None:
    """Overwrites `pulls`, one column g_k per block, with which R on both sides is a difference.

    ``(R M R)_ij = M_ij - t_i g_k(i)_j - t_j g_k(j)_i``, t being `tie` and M `matrix`, of which the
    rows of blocks are read. Samples on their own, label 0, have no such term. `spare` has an entry
    per sample.
    """
    size = tie.size
    for i in range(size):
        pulls[i, 0] = 0.0
    for k in range(1, offsets.size - 1):
        for j in range(size):
            spare[j] = 0.0
        norm = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            factor = tie[i]
            norm += factor * factor
            row = matrix[i]
            for j in range(size):
                spare[j] += factor * row[j]
        for j in range(size):
            pulls[j, k] = shrink[k] / norm * spare[j]
    # Between two blocks both of them pull: each takes half of what they have in common.
    for label in range(1, offsets.size - 1):
        for k in range(offsets.size - 1):
            spare[k] = 0.0
        norm = 0.0
        for j in range(offsets[label], offsets[label + 1]):
            factor = tie[j]
            norm += factor * factor
            pull = pulls[j]
            for k in range(offsets.size - 1):
                spare[k] += factor * pull[k]
        for j in range(offsets[label], offsets[label + 1]):
            factor = 0.5 * shrink[label] / norm * tie[j]
            pull = pulls[j]
            for k in range(offsets.size - 1):
                pull[k] -= factor * spare[k]


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def write_upper_block(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    matrix: FloatArray,
    pulls: FloatArray,
    spare: FloatArray,
    labels: IntArray,
) -> None:
    """Overwrites the arrays from `matrix` on: the upper triangle of what :func:`gram_block` says.

    `pulls` has a row for each active sample and a column for each label, `spare` and `labels` an
    entry for each active sample. An empty `root` stands for ones.
    """
    size = active.size
    _gather(gram, means, root, active, offsets[1], matrix, spare)
    if offsets.size > 2:
        _write_pulls(matrix, tie, offsets, shrink, pulls, spare)
        for k in range(offsets.size - 1):
            for j in range(offsets[k], offsets[k + 1]):
                labels[j] = k
        few = _FEW * offsets.size < size
        for i in range(size):
            row = matrix[i]
            pull = pulls[i]
            if few:
                for k in range(max(labels[i], 1), offsets.size - 1):
                    factor = pull[k]
                    for j in range(max(i, offsets[k]), offsets[k + 1]):
                        row[j] -= factor * tie[j]
            else:
                for j in range(max(i, offsets[1]), size):
                    row[j] -= tie[j] * pull[labels[j]]
        for k in range(1, offsets.size - 1):
            for j in range(offsets[k], size):
                spare[j] = pulls[j, k]
            for i in range(offsets[k], offsets[k + 1]):
                row = matrix[i]
                factor = tie[i]
                for j in range(i, size):
                    row[j] -= factor * spare[j]
    for i in range(size):
        matrix[i, i] += ridge


@njit(cache=True)
def _write_gram_block(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    matrix: FloatArray,
    pulls: FloatArray,
    spare: FloatArray,
    labels: IntArray,
) -> None:
    """Overwrites the arrays from `matrix` on: all of it."""
    write_upper_block(
        gram, means, root, tie, active, offsets, shrink, ridge, matrix, pulls, spare, labels
    )
    for top in range(0, active.size, _TILE):
        for left in range(0, top + _TILE, _TILE):
            for i in range(top, min(top + _TILE, active.size)):
                for j in range(left, min(left + _TILE, i)):
                    matrix[i, j] = matrix[j, i]


def add_gram_rows(
    gram: FloatArray,
    means: FloatArray,
    rows: IntArray,
    coef: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds ``Q[:, rows] @ coef``, reading the rows of `gram` only."""
    _add_gram_rows(gram, means, rows, coef, np.zeros(out.size), out)


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def add_rows(
    gram: FloatArray,
    means: FloatArray,
    rows: IntArray,
    coef: FloatArray,
    partial: FloatArray,
    out: FloatArray,
) -> None:
    """The same; `partial` is zero and is overwritten."""
    n = out.size
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
        p = rows[k]
        q = rows[k + 1]
        r = rows[k + 2]
        s = rows[k + 3]
        for j in range(n):
            partial[j] += a * gram[p, j] + b * gram[q, j] + c * gram[r, j] + d * gram[s, j]
        k += 4
    while k < rows.size:
        a = coef[k]
        p = rows[k]
        for j in range(n):
            partial[j] += a * gram[p, j]
        k += 1
    for j in range(n):
        out[j] += partial[j] - shift - total * means[j]


@njit(cache=True)
def _add_gram_rows(
    gram: FloatArray,
    means: FloatArray,
    rows: IntArray,
    coef: FloatArray,
    partial: FloatArray,
    out: FloatArray,
) -> None:
    """:func:`add_rows` for calls from Python."""
    add_rows(gram, means, rows, coef, partial, out)


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
    scores = np.dot(gram, padded)
    total = padded.sum()
    shift = np.dot(means, padded)
    product = np.empty(active.size)
    for i in range(active.size):
        p = active[i]
        product[i] = root[i] * (scores[p] - shift - total * means[p])
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
    matrix: FloatArray,
) -> tuple[FloatArray, float, bool]:
    """Minimise ``1/2 z'Mz + linear'z`` subject to ``constraint'z = demand``, M of `gram_block`.

    Every iterate meets the constraint. Returns z, the multiplier t of
    ``M z + linear + t constraint = 0`` and whether the residual fell to `accuracy` times the
    smaller of its first norm and that of `linear`, within `budget` products. `matrix` is M, or
    empty where products are to be formed without it.
    """
    length = np.sqrt(np.dot(constraint, constraint))
    if length == 0.0:
        # Tied blocks of one class each: nothing resists the intercept.
        return np.zeros(active.size), 0.0, False
    explicit = matrix.size > 0
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
