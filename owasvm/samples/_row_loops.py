"""Compiled loops over the rows of a feature matrix: plain functions on arrays.

Dense `features` may hold float32 or float64; every product and every sum is formed in float64.
``origin`` is subtracted from each row on the fly, so that no moved copy is ever held. Sparse
features come as ``data``, ``indices`` and ``indptr`` of a CSR matrix and have no origin.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Dense = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.int32] | NDArray[np.int64]

# Rows added up before their sum joins the rest: short sums keep more digits.
_BLOCK_ROWS = 1024


def column_means(features: Dense) -> FloatArray:
    """The mean row."""
    n_rows, n_columns = features.shape
    total = dense_combination(features, np.zeros(n_columns), np.ones(n_rows))
    return np.asarray(total / n_rows)


def dense_norms(features: Dense, origin: FloatArray) -> FloatArray:
    """``|x_i - origin|``."""
    norms = np.empty(features.shape[0])
    _write_norms(features, origin, norms)
    return norms


@njit(cache=True, fastmath={"reassoc", "contract"})
def _write_norms(features: Dense, origin: FloatArray, norms: FloatArray) -> None:
    for i in range(features.shape[0]):
        total = 0.0
        for j in range(features.shape[1]):
            value = features[i, j] - origin[j]
            total += value * value
        norms[i] = np.sqrt(total)


def dense_scores(features: Dense, origin: FloatArray, weight: FloatArray) -> FloatArray:
    """``(x_i - origin)'weight``."""
    scores = np.empty(features.shape[0])
    _write_scores(features, origin, weight, scores)
    return scores


@njit(cache=True, fastmath={"reassoc", "contract"})
def _write_scores(
    features: Dense, origin: FloatArray, weight: FloatArray, scores: FloatArray
) -> None:
    for i in range(features.shape[0]):
        total = 0.0
        for j in range(features.shape[1]):
            total += (features[i, j] - origin[j]) * weight[j]
        scores[i] = total


def dense_combination(features: Dense, origin: FloatArray, coef: FloatArray) -> FloatArray:
    """``sum_i coef_i (x_i - origin)``."""
    total, part = np.zeros((2, features.shape[1]))
    _combine(features, origin, coef, part, total)
    return total


@njit(cache=True)
def _combine(
    features: Dense, origin: FloatArray, coef: FloatArray, part: FloatArray, total: FloatArray
) -> None:
    """Changes `total` in place, by way of `part`, which is zero and is overwritten."""
    n_rows, n_columns = features.shape
    for i in range(n_rows):
        factor = coef[i]
        if factor != 0.0:
            for j in range(n_columns):
                part[j] += factor * (features[i, j] - origin[j])
        if i % _BLOCK_ROWS == _BLOCK_ROWS - 1:
            for j in range(n_columns):
                total[j] += part[j]
                part[j] = 0.0
    for j in range(n_columns):
        total[j] += part[j]


@njit(cache=True)
def gather_dense(
    features: Dense, origin: FloatArray, samples: IntArray, root: FloatArray, out: FloatArray
) -> None:
    """Overwrites `out`: ``root_i (x_i - origin)`` of some samples."""
    for i in range(samples.size):
        sample = samples[i]
        for j in range(origin.size):
            out[i, j] = root[i] * (features[sample, j] - origin[j])


def sparse_norms(data: Dense, indptr: Indices) -> FloatArray:
    """``|x_i|``."""
    norms = np.empty(indptr.size - 1)
    _write_sparse_norms(data, indptr, norms)
    return norms


@njit(cache=True)
def _write_sparse_norms(data: Dense, indptr: Indices, norms: FloatArray) -> None:
    for i in range(norms.size):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[k])
            total += value * value
        norms[i] = np.sqrt(total)


@njit(cache=True, internal=True)
def dot_row(values: Dense, columns: Indices, vector: FloatArray) -> float:
    """A sparse row times `vector`.

    Four sums at a time, and columns that cannot count from the end: twice as fast as the plain
    loop, which waits for its sum, and as one that the compiler makes vectors of, which it gathers.
    """
    a = b = c = d = 0.0
    whole = values.size - values.size % 4
    for k in range(0, whole, 4):
        a += values[k] * vector[np.uint64(columns[k])]
        b += values[k + 1] * vector[np.uint64(columns[k + 1])]
        c += values[k + 2] * vector[np.uint64(columns[k + 2])]
        d += values[k + 3] * vector[np.uint64(columns[k + 3])]
    for k in range(whole, values.size):
        a += values[k] * vector[np.uint64(columns[k])]
    return (a + b) + (c + d)


@njit(cache=True, internal=True)
def add_row(factor: float, values: Dense, columns: Indices, out: FloatArray) -> None:
    """Changes `out` in place: adds a sparse row times `factor`."""
    for k in range(values.size):
        out[np.uint64(columns[k])] += factor * values[k]


@njit(cache=True)
def multiply_rows(
    data: Dense,
    indices: Indices,
    indptr: Indices,
    first: int,
    last: int,
    vector: FloatArray,
    out: FloatArray,
) -> None:
    """Overwrites a part of `out`: products of some rows with `vector`."""
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        out[i] = dot_row(data[begin:end], indices[begin:end], vector)


@njit(cache=True)
def add_rows(
    data: Dense,
    indices: Indices,
    indptr: Indices,
    first: int,
    last: int,
    coef: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds some rows times `coef`."""
    for i in range(first, last):
        if coef[i] != 0.0:
            begin, end = indptr[i], indptr[i + 1]
            add_row(coef[i], data[begin:end], indices[begin:end], out)


def sparse_scores(
    data: Dense, indices: Indices, indptr: Indices, weight: FloatArray
) -> FloatArray:
    """``x_i'weight``."""
    scores = np.empty(indptr.size - 1)
    multiply_rows(data, indices, indptr, 0, scores.size, weight, scores)
    return scores


def sparse_combination(
    data: Dense, indices: Indices, indptr: Indices, coef: FloatArray, n_columns: int
) -> FloatArray:
    """``sum_i coef_i x_i``."""
    total = np.zeros(n_columns)
    add_rows(data, indices, indptr, 0, coef.size, coef, total)
    return total


@njit(cache=True)
def gather_sparse(
    data: Dense,
    indices: Indices,
    indptr: Indices,
    samples: IntArray,
    root: FloatArray,
    out: FloatArray,
) -> None:
    """Overwrites `out`: ``root_i x_i`` of some samples, zeros written out."""
    for a in range(samples.size):
        i = samples[a]
        for j in range(out.shape[1]):
            out[a, j] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            out[a, indices[k]] += root[a] * data[k]
