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

    Only the upper triangle is of use. `means` are the centring terms m of the kernel, zero for a
    kernel that is taken as it is.
    """
    size = active.size
    matrix, total = np.empty((size, size)), np.empty(size)
    write_gram_block(gram, means, root, tie, active, offsets, shrink, ridge, matrix, total)
    return matrix


@njit(cache=True, fastmath={"reassoc", "contract"})
def write_gram_block(
    gram: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    active: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
    matrix: FloatArray,
    total: FloatArray,
) -> None:
    """Overwrites the upper triangle of `matrix`, and `total`, as long as a row."""
    n_blocks = offsets.size - 2
    shares = np.empty(n_blocks + 1)
    for k in range(1, n_blocks + 1):
        norm = 0.0
        for j in range(offsets[k], offsets[k + 1]):
            norm += tie[j] * tie[j]
        shares[k] = shrink[k] / norm
    for j in range(active.size):
        total[j] = means[active[j]]
    block = 0
    for i in range(active.size):
        while offsets[block + 1] <= i:
            block += 1
        # All members of a block have the same columns: sums over them are taken below.
        begin = i if block == 0 else offsets[block]
        row, mean, factor = gram[active[i]], total[i], root[i]
        out, columns = matrix[i, begin:], active[begin:]
        others, roots = total[begin:], root[begin:]
        for j in range(out.size):
            # An index that cannot be negative needs no look at where it counts from.
            value = row[np.uint64(columns[j])]
            out[j] = factor * (value - mean - others[j]) * roots[j]
        whole = matrix[i]
        for k in range(max(block, 1), n_blocks + 1):
            first, last = np.uint64(offsets[k]), np.uint64(offsets[k + 1])
            product = 0.0
            for j in range(first, last):
                product += whole[j] * tie[j]
            product *= shares[k]
            for j in range(first, last):
                whole[j] -= product * tie[j]
    for k in range(1, n_blocks + 1):
        first = offsets[k]
        sums = total[first:]
        for j in range(sums.size):
            sums[j] = 0.0
        for i in range(first, offsets[k + 1]):
            out, factor = matrix[i, first:], tie[i]
            for j in range(sums.size):
                sums[j] += factor * out[j]
        for i in range(first, offsets[k + 1]):
            out, factor = matrix[i, first:], shares[k] * tie[i]
            for j in range(sums.size):
                out[j] -= factor * sums[j]
    for i in range(active.size):
        matrix[i, i] += ridge


def add_gram_rows(
    gram: FloatArray,
    means: FloatArray,
    rows: IntArray,
    coef: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds ``Q[:, rows] @ coef``, reading the rows of `gram` only."""
    add_gram_rows_to(gram, means, rows, coef, np.zeros(out.size), out)


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_gram_rows_to(
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
def lift_gram(
    gram: FloatArray,
    means: FloatArray,
    diagonal: FloatArray,
    matrix: FloatArray | NDArray[np.float32],
) -> None:
    """Overwrites the upper triangle of `matrix`: ``Q + diag(diagonal)``."""
    for i in range(diagonal.size):
        for j in range(i, diagonal.size):
            matrix[i, j] = gram[i, j] - means[i] - means[j]
        matrix[i, i] += diagonal[i]
