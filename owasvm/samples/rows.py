"""Rows of features as they were given: products with them, and no copy of them.

Dense rows are moved to an origin while they are read, so that samples far from 0 lose no digits
and nothing of their size is stored. float32 stays float32 in memory: such numbers are float64
numbers, too, and all arithmetic is done in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.rounding import is_sparse
from owasvm.samples._newton_kernels import centre_rows
from owasvm.samples._row_loops import (
    column_means,
    dense_combination,
    dense_norms,
    dense_scores,
    gather_dense,
    gather_sparse,
    sparse_combination,
    sparse_norms,
    sparse_scores,
)
from owasvm.samples.operators import ActiveSet

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["DenseRows", "SparseRows", "find_mean", "make_rows"]

# Active rows held at a time: so many that they fit into the cache of a core, or, of many features,
# this many times their number, so that products of rows and not their sums take the time.
_BLOCK_ENTRIES = 2**17
_LEAST_ROWS = 4
_MOST_ROWS = 4096
# Columns held at a time for all inner products: 32 MB.
_GRAM_ENTRIES = 2**22


class _Rows(ABC):
    """What dense and sparse rows share: the active rows of a Newton step, written out."""

    shape: tuple[int, int]

    @abstractmethod
    def _read(self, samples: IntArray, root: FloatArray, out: FloatArray) -> None:
        """Overwrite `out`: ``root_i x_i`` of some samples."""

    def gather(self, active: ActiveSet) -> FloatArray:
        """``B = R D X_A``, the active rows of a Newton step."""
        rows = np.empty((active.samples.size, self.shape[1]))
        self._read(active.samples, active.root, rows)
        if active.offsets.size > 2:
            centre_rows(rows, active.tie, active.offsets, active.shrink)
        return rows

    def gather_in_blocks(self, active: ActiveSet) -> Iterator[tuple[slice, FloatArray]]:
        """The same rows, some at a time: where they stand among the active ones, and they.

        The array is overwritten by the next one.
        """
        offsets, tie = active.offsets, active.tie
        n_features = max(self.shape[1], 1)
        most = max(_BLOCK_ENTRIES // n_features, min(_LEAST_ROWS * n_features, _MOST_ROWS))
        if active.samples.size <= most:
            yield slice(0, active.samples.size), self.gather(active)
            return
        buffer = np.empty((most, self.shape[1]))

        def read(first: int, last: int) -> FloatArray:
            rows = buffer[: last - first]
            self._read(active.samples[first:last], active.root[first:last], rows)
            return rows

        for first, last in _cut(0, int(offsets[1]), most):
            yield slice(first, last), read(first, last)
        block = 1
        while block < offsets.size - 1:
            first = int(offsets[block])
            # As many blocks as there is room for; one that is larger comes in parts.
            behind = int(np.searchsorted(offsets, first + most, side="right")) - 1
            if behind > block:
                last = int(offsets[behind])
                rows = read(first, last)
                own = np.concatenate(([0], offsets[block : behind + 1] - first))
                centre_rows(rows, tie[first:last], own, active.shrink[block - 1 : behind])
                yield slice(first, last), rows
                block = behind
                continue
            parts = _cut(first, int(offsets[block + 1]), most)
            total = sum(tie[at:to] @ read(at, to) for at, to in parts)
            whole = tie[first : offsets[block + 1]]
            share = active.shrink[block] / float(whole @ whole)
            for at, to in parts:
                rows = read(at, to)
                rows -= np.outer(share * tie[at:to], total)
                yield slice(at, to), rows
            block += 1


def _cut(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """A range in parts of at most so many."""
    return [(at, min(at + most, last)) for at in range(first, last, most)]


class DenseRows(_Rows):
    """Dense rows minus an origin.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        float32 or float64, in C order; neither changed nor copied.
    origin : ndarray of shape (n_features,) or None, default=None
        What is subtracted from every row; None for 0.
    """

    def __init__(self, features: Any, origin: FloatArray | None = None) -> None:
        self.features = features
        self.shape: tuple[int, int] = features.shape
        self._origin = np.zeros(self.shape[1]) if origin is None else origin

    @property
    def longest(self) -> int:
        """Products behind an inner product with a row, at most."""
        return self.shape[1]

    @property
    def n_entries(self) -> int:
        """Numbers stored."""
        return int(self.features.size)

    def norms(self) -> FloatArray:
        """Lengths of the rows."""
        return dense_norms(self.features, self._origin)

    def scores(self, weight: FloatArray) -> FloatArray:
        """Products of all rows with a vector."""
        return dense_scores(self.features, self._origin, weight)

    def combine(self, coef: FloatArray) -> FloatArray:
        """The sum of the rows times coefficients."""
        return dense_combination(self.features, self._origin, coef)

    def dense(self) -> FloatArray:
        """All rows, moved: a copy."""
        return np.asarray(self.features, dtype=np.float64) - self._origin

    def gram(self) -> FloatArray:
        """All inner products, from some columns at a time."""
        n_samples, n_features = self.shape
        gram = np.zeros((n_samples, n_samples))
        most = max(_GRAM_ENTRIES // n_samples, 1)
        for first, last in _cut(0, n_features, most):
            part = self.features[:, first:last] - self._origin[first:last]
            gram += part @ part.T
        return gram

    def _read(self, samples: IntArray, root: FloatArray, out: FloatArray) -> None:
        gather_dense(self.features, self._origin, samples, root, out)


class SparseRows(_Rows):
    """Rows of a CSR matrix; an origin would make them dense.

    Parameters
    ----------
    features : CSR matrix of shape (n_samples, n_features)
        float32 or float64; neither changed nor copied.
    """

    def __init__(self, features: Any) -> None:
        self.features = features
        self.shape: tuple[int, int] = features.shape
        self.arrays = (features.data, features.indices, features.indptr)

    @property
    def longest(self) -> int:
        """Products behind an inner product with a row, at most."""
        return int(np.diff(self.features.indptr).max(initial=0))

    @property
    def n_entries(self) -> int:
        """Numbers stored."""
        return int(self.features.data.size)

    def norms(self) -> FloatArray:
        """Lengths of the rows."""
        return sparse_norms(self.features.data, self.features.indptr)

    def scores(self, weight: FloatArray) -> FloatArray:
        """Products of all rows with a vector."""
        return sparse_scores(*self.arrays, weight)

    def combine(self, coef: FloatArray) -> FloatArray:
        """The sum of the rows times coefficients."""
        return sparse_combination(*self.arrays, coef, self.shape[1])

    def dense(self) -> FloatArray:
        """All rows, zeros written out."""
        return np.asarray(self.features.toarray(), dtype=np.float64)

    def _read(self, samples: IntArray, root: FloatArray, out: FloatArray) -> None:
        gather_sparse(*self.arrays, samples, root, out)


Rows = DenseRows | SparseRows


def make_rows(features: Any, origin: FloatArray | None = None) -> Rows:
    """Rows of an array, moved to an origin, or of a CSR matrix."""
    dtype = np.float32 if features.dtype == np.float32 else np.float64
    if is_sparse(features):
        return SparseRows(features.astype(dtype, copy=False))
    return DenseRows(np.ascontiguousarray(features, dtype=dtype), origin)


def find_mean(features: Any) -> FloatArray:
    """The mean of dense rows."""
    return column_means(features)
