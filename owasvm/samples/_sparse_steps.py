"""Newton steps of sparse features by preconditioned conjugate gradients: compiled loops.

With ``B = R D X_A`` and ``e = R D 1`` of :mod:`owasvm.samples.operators`, the intercept of a
step is the best one for its h: ``db = (ridge imbalance - e'B h) / e'e``. What is left is

    (B'P B + ridge I) h = ridge r - (ridge imbalance / e'e) B'e,   P = I - e e' / e'e,

a system of feature size. Columns of text differ in their frequency by factors of thousands; the
diagonal of this system knows them, that of the system of the size of A would not.

Rows are those of a CSR matrix, given by ``data``, ``indices`` and ``indptr``.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.samples._newton_kernels import centre
from owasvm.samples._row_loops import add_row, add_rows, dot_row, multiply_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Values = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.int32] | NDArray[np.int64]

# Tied blocks from this size on are worth a vector of their own.
_LARGE_BLOCK = 4096


@njit(cache=True)
def _take_rows(
    data: Values, indices: Indices, indptr: Indices, samples: IntArray, root: FloatArray
) -> tuple[FloatArray, Indices, IntArray]:
    """``D X_A``: rows that lie side by side are read several times faster than scattered ones."""
    starts = np.zeros(samples.size + 1, dtype=np.int64)
    for a in range(samples.size):
        i = samples[a]
        starts[a + 1] = starts[a] + indptr[i + 1] - indptr[i]
    values = np.empty(starts[-1])
    columns = np.empty(starts[-1], dtype=indices.dtype)
    for a in range(samples.size):
        first, last = indptr[samples[a]], indptr[samples[a] + 1]
        values[starts[a] : starts[a + 1]] = root[a] * data[first:last]
        columns[starts[a] : starts[a + 1]] = indices[first:last]
    return values, columns, starts


@njit(cache=True)
def _add_scatter(
    data: FloatArray,
    indices: Indices,
    indptr: IntArray,
    first: int,
    last: int,
    vector: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds ``x x'vector`` of some rows, each of which is read once."""
    for i in range(first, last):
        values = data[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        add_row(dot_row(values, columns, vector), values, columns, out)


@njit(cache=True)
def _add_product(
    data: FloatArray,
    indices: Indices,
    indptr: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    tie: FloatArray,
    tied_sums: FloatArray,
    vector: FloatArray,
    image: FloatArray,
    out: FloatArray,
) -> None:
    """Changes `out` in place: adds ``B'B vector``; overwrites `image`.

    R R takes ``1 - (1 - shrink)^2`` of the component along `tie` away: from every row, or, in a
    large block, from the sum of the rows times `tie`.
    """
    _add_scatter(data, indices, indptr, 0, offsets[1], vector, out)
    n_large = 0
    for block in range(1, offsets.size - 1):
        first, last = offsets[block], offsets[block + 1]
        part = tie[first:last]
        share = shrink[block] * (2.0 - shrink[block]) / np.dot(part, part)
        if last - first >= _LARGE_BLOCK:
            _add_scatter(data, indices, indptr, first, last, vector, out)
            total = tied_sums[n_large]
            out -= (share * np.dot(total, vector)) * total
            n_large += 1
        else:
            multiply_rows(data, indices, indptr, first, last, vector, image)
            image[first:last] -= (share * np.dot(part, image[first:last])) * part
            add_rows(data, indices, indptr, first, last, image, out)


@njit(cache=True)
def _sum_large_blocks(
    data: FloatArray,
    indices: Indices,
    indptr: IntArray,
    offsets: IntArray,
    tie: FloatArray,
    n_columns: int,
) -> FloatArray:
    """The rows of each large block times `tie`, added up."""
    n_large = 0
    for block in range(1, offsets.size - 1):
        if offsets[block + 1] - offsets[block] >= _LARGE_BLOCK:
            n_large += 1
    sums = np.zeros((n_large, n_columns))
    n_large = 0
    for block in range(1, offsets.size - 1):
        first, last = offsets[block], offsets[block + 1]
        if last - first >= _LARGE_BLOCK:
            add_rows(data, indices, indptr, first, last, tie, sums[n_large])
            n_large += 1
    return sums


@njit(cache=True)
def _find_diagonal(
    data: FloatArray, indices: Indices, coupling: FloatArray, squared_ones: float, ridge: float
) -> FloatArray:
    """That of ``B'P B + ridge I``, tied rows taken as if they were on their own."""
    diagonal = np.zeros(coupling.size)
    for k in range(data.size):
        diagonal[indices[k]] += data[k] * data[k]
    for j in range(coupling.size):
        if squared_ones > 0.0:
            diagonal[j] -= coupling[j] * coupling[j] / squared_ones
        diagonal[j] = max(diagonal[j], 0.0) + ridge
    return diagonal


@njit(cache=True)
def solve_by_conjugate_gradients(
    all_data: Values,
    all_indices: Indices,
    all_indptr: Indices,
    samples: IntArray,
    offsets: IntArray,
    shrink: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    ones: FloatArray,
    ridge: float,
    residual: FloatArray,
    imbalance: float,
    free: bool,
    fixed_step: float,
    accuracy: float,
    budget: int,
) -> tuple[FloatArray, float, FloatArray, bool]:
    """h, db, ``B h + e db``, and whether h is as accurate as asked for.

    An intercept that is not `free` moves by `fixed_step`. The residual of the system is to fall to
    `accuracy` times its first value, within `budget` products.
    """
    data, indices, indptr = _take_rows(all_data, all_indices, all_indptr, samples, root)
    n_columns = residual.size
    n_active = samples.size
    image = ones.copy()
    squared_ones = np.dot(ones, ones) if free else 0.0
    coupling = np.zeros(n_columns)
    centre(image, tie, offsets, shrink)
    add_rows(data, indices, indptr, 0, n_active, image, coupling)
    sums = _sum_large_blocks(data, indices, indptr, offsets, tie, n_columns)
    demand = ridge * imbalance / squared_ones if squared_ones > 0.0 else fixed_step
    rest = ridge * residual - demand * coupling
    diagonal = _find_diagonal(data, indices, coupling, squared_ones, ridge)
    h = np.zeros(n_columns)
    scaled = rest / diagonal
    direction = scaled.copy()
    product = np.empty(n_columns)
    height = np.dot(rest, scaled)
    squared = np.dot(rest, rest)
    goal = accuracy * accuracy * squared
    for _ in range(budget):
        if squared <= goal:
            break
        product[:] = ridge * direction
        _add_product(data, indices, indptr, offsets, shrink, tie, sums, direction, image, product)
        if squared_ones > 0.0:
            product -= (np.dot(coupling, direction) / squared_ones) * coupling
        curvature = np.dot(direction, product)
        if not curvature > 0.0:
            # Rounding has eaten the ridge.
            break
        distance = height / curvature
        h += distance * direction
        rest -= distance * product
        scaled = rest / diagonal
        previous = height
        height = np.dot(rest, scaled)
        squared = np.dot(rest, rest)
        direction *= height / previous
        direction += scaled
    multiply_rows(data, indices, indptr, 0, n_active, h, image)
    centre(image, tie, offsets, shrink)
    step = fixed_step
    if squared_ones > 0.0:
        step = (ridge * imbalance - np.dot(ones, image)) / squared_ones
    return h, step, image + step * ones, squared <= goal
