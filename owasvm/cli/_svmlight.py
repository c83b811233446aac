"""Svmlight files: lines ``label index:value ...``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, one_line
from owasvm.cli._labels import as_labels
from owasvm.cli._numbers import LARGEST_NUMBER, TOO_LARGE
from owasvm.cli._sources import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Up to here a dense matrix, 128 MiB, is no burden, and faster.
_DENSE_ENTRIES = 2**24


@dataclass(frozen=True)
class SvmlightData:
    """The content of an svmlight file.

    Parameters
    ----------
    name : str
        What messages call the file.
    matrix : CSR matrix
        Values by index as written, so that column 0 is empty where indices start with 1.
    targets : ndarray of shape (n_samples,)
        The numbers in front of the lines.
    """

    name: str
    matrix: Any
    targets: NDArray[np.float64]

    @property
    def starts_with_zero(self) -> bool:
        """Whether the index 0 occurs; else features are counted from 1, as LIBSVM does."""
        return bool(self.matrix.nnz) and int(self.matrix.indices.min()) == 0

    def labels(self) -> NDArray[Any]:
        """The labels, whole numbers."""
        return as_labels(self.targets, f"the labels of {self.name}")

    def samples(self, starts_with_zero: bool, n_features: int | None = None) -> Any:
        """The samples: an array, or a CSR matrix where an array would be large.

        Parameters
        ----------
        starts_with_zero : bool
            Whether the first feature has index 0.
        n_features : int or None, default=None
            Number of features the model expects; None takes what the file has.
        """
        if self.starts_with_zero and not starts_with_zero:
            raise UsageError(f"{self.name} has a feature 0, but the model counts them from 1")
        matrix = self.matrix if starts_with_zero else self._count_from_one()
        if n_features is not None:
            matrix = self._fit_to(matrix, n_features)
        if matrix.shape[1] == 0:
            raise UsageError(f"{self.name} has no features, labels only")
        is_small = matrix.shape[0] * matrix.shape[1] <= _DENSE_ENTRIES
        return matrix.toarray() if is_small else matrix

    def _count_from_one(self) -> Any:
        """The matrix without its column 0, which is empty.

        A slice would take memory for every column up to the largest index.
        """
        indices = self.matrix.indices - 1
        shape = (self.matrix.shape[0], self.matrix.shape[1] - 1)
        return type(self.matrix)((self.matrix.data, indices, self.matrix.indptr), shape=shape)

    def _fit_to(self, matrix: Any, n_features: int) -> Any:
        """The matrix with as many columns as the model expects; missing ones are zero."""
        found = matrix.shape[1]
        if found > n_features:
            raise UsageError(
                f"{self.name} has {found} features, the model was trained on {n_features}"
            )
        wider = matrix.copy()
        wider.resize(matrix.shape[0], n_features)
        return wider


def is_sparse(samples: Any) -> bool:
    """Whether samples are a CSR matrix; asks no heavy library."""
    return hasattr(samples, "indptr")


def read_svmlight(source: Source) -> SvmlightData:
    """Read an svmlight file."""
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    name = source.name
    try:
        with source.unpack() as stream:
            matrix, targets = load_svmlight_file(stream, zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise UsageError(
            f"{name} is no svmlight file, lines of 'label index:value ...': {one_line(error)}"
        ) from error
    if targets.size == 0:
        raise UsageError(f"{name} has no samples")
    largest = matrix.shape[1] - 1
    if 8 * largest > source.max_bytes:
        raise source.too_large(f"{largest} features, more numbers than fit into ")
    # Not a number compares as false.
    bad = np.flatnonzero(~(np.abs(matrix.data) <= LARGEST_NUMBER))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right"))
        number = matrix.data[bad[0]]
        fault = TOO_LARGE if np.isfinite(number) else "which is not a finite number"
        fault += "; correct it or leave the pair out, which stands for 0"
        raise UsageError(
            f"{name}: feature {matrix.indices[bad[0]]} in row {row} is {number}, {fault}"
        )
    return SvmlightData(name, matrix, targets)
