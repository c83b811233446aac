"""Newton steps of sparse features by preconditioned conjugate gradients.

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
from owasvm.samples._row_loops import (
    add_row,
    add_rows,
    dot_row,
    multiply_rows,
    sparse_scores,
)
from owasvm.samples.operators import ActiveSet

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Values = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.int32] | NDArray[np.int64]

# The rows as CSR, `offsets`, `shrink` and `tie` of the active set, and sums of its large blocks.
System = tuple[FloatArray, Indices, Indices, IntArray, FloatArray, FloatArray, FloatArray]

# Tied blocks from this size on are worth a vector of their own.
_LARGE_BLOCK = 4096


def _take_rows(
    data: Values, indices: Indices, indptr: Indices, active: ActiveSet, n_columns: int
) -> tuple[tuple[FloatArray, Indices, Indices], FloatArray, FloatArray]:
    """``D X_A``, ``B'e`` and the squared norms of the columns of ``D X_A``.

    Rows that lie side by side are read several times faster than scattered ones.
    """
    samples = active.samples
    starts = np.zeros(samples.size + 1, dtype=indptr.dtype)
    np.cumsum(indptr[samples + 1] - indptr[samples], out=starts[1:])
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=indices.dtype)
    coupling, squares = np.zeros(n_columns), np.zeros(n_columns)
    ones = active.apply(active.ones.copy())
    _copy_rows(
        data, indices, indptr, samples, active.root, ones, values, columns, coupling, squares
    )
    return (values, columns, starts), coupling, squares


@njit(cache=True)
def _copy_rows(
    data: Values,
    indices: Indices,
    indptr: Indices,
    samples: IntArray,
    root: FloatArray,
    ones: FloatArray,
    values: FloatArray,
    columns: Indices,
    coupling: FloatArray,
    squares: FloatArray,
) -> None:
    """Overwrites `values` and `columns`: rows one after the other, times `root`.

    Adds to the others, of which there is one per column: the rows times `ones`, and their squares.
    """
    at = 0
    for a in range(samples.size):
        for k in range(indptr[samples[a]], indptr[samples[a] + 1]):
            column, value = np.uint64(indices[k]), root[a] * data[k]
            values[at] = value
            columns[at] = indices[k]
            coupling[column] += ones[a] * value
            squares[column] += value * value
            at += 1


@njit(cache=True, internal=True)
def _add_scatter(
    data: FloatArray,
    indices: Indices,
    indptr: Indices,
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


@njit(cache=True, internal=True)
def _add_product(
    data: FloatArray,
    indices: Indices,
    indptr: Indices,
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
    _add_scatter(data, indices, indptr, offsets[0], offsets[1], vector, out)
    n_large = 0
    for block in range(1, offsets.size - 1):
        first, last = offsets[block], offsets[block + 1]
        norm = 0.0
        for i in range(first, last):
            norm += tie[i] * tie[i]
        share = shrink[block] * (2.0 - shrink[block]) / norm
        along = 0.0
        if last - first >= _LARGE_BLOCK:
            _add_scatter(data, indices, indptr, first, last, vector, out)
            for j in range(out.size):
                along += tied_sums[n_large, j] * vector[j]
            for j in range(out.size):
                out[j] -= share * along * tied_sums[n_large, j]
            n_large += 1
        else:
            multiply_rows(data, indices, indptr, first, last, vector, image)
            for i in range(first, last):
                along += tie[i] * image[i]
            for i in range(first, last):
                image[i] -= share * along * tie[i]
            add_rows(data, indices, indptr, first, last, image, out)


@njit(cache=True, fastmath={"reassoc", "contract"})
def _descend(
    system: System,
    coupling: FloatArray,
    squared_ones: float,
    diagonal: FloatArray,
    ridge: float,
    accuracy: float,
    budget: int,
    rest: FloatArray,
    image: FloatArray,
    h: FloatArray,
) -> bool:
    """Changes `h` in place, 0 at first, and `rest`, the right-hand side; overwrites `image`.

    Conjugate gradients with `diagonal` as preconditioner; `system` is what :func:`_add_product`
    begins with. Whether what is left of the side has
    fallen to `accuracy` times its first value.
    """
    direction, product = np.empty(rest.size), np.empty(rest.size)
    height, squared = 0.0, 0.0
    for j in range(rest.size):
        # Of arrays this would take longer to compile.
        direction[j] = rest[j] / diagonal[j]
        height += rest[j] * direction[j]
        squared += rest[j] * rest[j]
    goal = accuracy * accuracy * squared
    for _ in range(budget):
        if squared <= goal:
            break
        along = 0.0
        for j in range(rest.size):
            product[j] = ridge * direction[j]
            along += coupling[j] * direction[j]
        _add_product(*system, direction, image, product)
        share = along / squared_ones if squared_ones > 0.0 else 0.0
        curvature = 0.0
        for j in range(rest.size):
            product[j] -= share * coupling[j]
            curvature += direction[j] * product[j]
        if not curvature > 0.0:
            # Rounding has eaten the ridge.
            break
        distance = height / curvature
        previous, height, squared = height, 0.0, 0.0
        for j in range(rest.size):
            h[j] += distance * direction[j]
            rest[j] -= distance * product[j]
            height += rest[j] * rest[j] / diagonal[j]
            squared += rest[j] * rest[j]
        growth = height / previous
        for j in range(rest.size):
            direction[j] = growth * direction[j] + rest[j] / diagonal[j]
    return squared <= goal


def _sum_large_blocks(
    data: FloatArray, indices: Indices, indptr: Indices, active: ActiveSet, n_columns: int
) -> FloatArray:
    """The rows of each large block times `tie`, added up."""
    offsets = active.offsets
    (large,) = (np.diff(offsets[1:]) >= _LARGE_BLOCK).nonzero()
    sums = np.zeros((large.size, n_columns))
    for total, block in zip(sums, large + 1, strict=True):
        add_rows(data, indices, indptr, offsets[block], offsets[block + 1], active.tie, total)
    return sums


def solve_by_conjugate_gradients(
    all_rows: tuple[Values, Indices, Indices],
    active: ActiveSet,
    residual: FloatArray,
    free: bool,
    fixed_step: float,
    accuracy: float,
    budget: int,
) -> tuple[FloatArray, FloatArray, float, FloatArray, bool]:
    """h, its scores, db, ``B h + e db``, and whether h is as accurate as asked for.

    An intercept that is not `free` moves by `fixed_step`. The residual of the system is to fall to
    `accuracy` times its first value, within `budget` products.
    """
    ones, ridge = active.ones, active.ridge
    rows, coupling, diagonal = _take_rows(*all_rows, active, residual.size)
    squared_ones = float(ones @ ones) if free else 0.0
    image = np.empty(ones.size)
    sums = _sum_large_blocks(*rows, active, residual.size)
    demand = ridge * active.imbalance / squared_ones if squared_ones > 0.0 else fixed_step
    rest = ridge * residual - demand * coupling
    # That of ``B'P B + ridge I``, tied rows taken as if they were on their own.
    if squared_ones > 0.0:
        diagonal -= coupling * coupling / squared_ones
    np.maximum(diagonal, 0.0, out=diagonal)
    diagonal += ridge
    h = np.zeros(residual.size)
    system = (*rows, active.offsets, active.shrink, active.tie, sums)
    how = diagonal, ridge, accuracy, budget
    converged = _descend(system, coupling, squared_ones, *how, rest, image, h)
    scores = sparse_scores(*all_rows, h)
    image = active.apply(scores[active.samples] * active.root)
    step = fixed_step
    if squared_ones > 0.0:
        step = (ridge * active.imbalance - float(ones @ image)) / squared_ones
    return h, scores, step, image + step * ones, converged
