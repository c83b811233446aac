"""From (X, y, sample_weight) to problems: what estimators, paths and certificates share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.rounding import is_sparse
from owasvm.samples import Partitions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["TrainingSet", "check_groups", "fetch_tensor", "take_samples"]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Samples with their classes and weights.

    Parameters
    ----------
    X : {ndarray, CSR matrix, Partitions} of shape (n_samples, n_features)
        Samples, or their Gram matrix.
    kept : ndarray of shape (n_samples,) or None
        Where they stood among the rows that were given; None when all of these are left.
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    codes : ndarray of shape (n_samples,)
        Position of each sample's label in `classes`.
    mass : ndarray of shape (n_samples,) or None
        Sample weights, None when all of them are exactly 1.
    n_given : int
        Number of rows that were given.
    signed : ndarray of shape (n_samples,) or None, default=None
        The labels as they were given where they are -1.0 and +1.0: no copy of them is made.
    groups : ndarray of shape (n_samples,) or None, default=None
        Labels of the groups that are ranked apart.
    """

    X: Any
    kept: IntArray | None
    classes: NDArray[Any]
    codes: NDArray[Any]
    mass: FloatArray | None
    n_given: int
    signed: FloatArray | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        keep_single: bool = False,
    ) -> TrainingSet:
        """The samples as they are given: arrays of numbers, sparse matrices, or partitions.

        Dense samples become float64, unless `keep_single` leaves float32 as it is.
        """
        samples = X
        if is_sparse(X):
            samples = X.tocsr()
        elif not isinstance(X, Partitions):
            single = keep_single and getattr(X, "dtype", None) == np.float32
            samples = np.ascontiguousarray(X, dtype=np.float32 if single else np.float64)
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.size != samples.shape[0]:
            raise ValueError(
                f"y must hold one label per sample: got shape {labels.shape} for "
                f"{samples.shape[0]} samples."
            )
        classes, codes = _sort_out(labels)
        codes = codes.astype(np.min_scalar_type(classes.size))
        mass = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if mass is not None and np.all(mass == 1.0):
            mass = None
        fits = labels.dtype == np.float64 and labels.flags.c_contiguous
        signed = labels if fits and classes.tolist() == [-1.0, 1.0] else None
        grouped = check_groups(groups, labels.size)
        return cls(samples, None, classes, codes, mass, labels.size, signed, grouped)

    def without_zero_weights(self, *, pairwise: bool) -> TrainingSet:
        """The samples that count; of a Gram matrix (`pairwise`) their rows and columns."""
        if self.mass is None or np.all(self.mass > 0.0):
            return self
        kept = np.flatnonzero(self.mass > 0.0)
        present, codes = np.unique(self.codes[kept], return_inverse=True)
        mass = self.mass[kept]
        return replace(
            self,
            X=take_samples(self.X, kept, pairwise=pairwise),
            kept=self.rows[kept],
            classes=self.classes[present],
            codes=codes,
            mass=None if np.all(mass == 1.0) else mass,
            signed=None,
            groups=None if self.groups is None else self.groups[kept],
        )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.codes.size

    @property
    def rows(self) -> IntArray:
        """Where the samples stood among the rows that were given."""
        return np.arange(self.n_samples) if self.kept is None else self.kept

    @property
    def kinds(self) -> NDArray[Any]:
        """A whole number per sample: the same for samples of one class and one group."""
        if self.groups is None:
            return self.codes
        _, groups = np.unique(self.groups, return_inverse=True)
        return groups * self.classes.size + self.codes

    def by_given_row(self, values: FloatArray) -> FloatArray:
        """One value per row that was given: NaN for the rows that were left out."""
        if self.kept is None:
            return values
        spread = np.full(self.n_given, np.nan)
        spread[self.kept] = values
        return spread

    @property
    def n_problems(self) -> int:
        """One for two classes, one per class for more."""
        return 1 if self.classes.size == 2 else self.classes.size

    def signs(self) -> Iterator[FloatArray]:
        """Labels -1.0 and +1.0 of each binary problem, the later of two classes being +1."""
        if self.signed is not None:
            yield self.signed
            return
        positives = [1] if self.n_problems == 1 else range(self.classes.size)
        for positive in positives:
            yield np.where(self.codes == positive, 1.0, -1.0)

    def binary_signs(self, whose: str) -> FloatArray:
        """Labels -1.0 and +1.0 of the two classes that `whose` takes."""
        if self.classes.size != 2:
            raise ValueError(f"{whose} needs two classes, got {self.classes.size}.")
        return next(self.signs())


def _sort_out(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different labels, sorted, and which of them each sample has; two need no sort."""
    if labels.size > 0 and labels.dtype.kind in "biuf":
        ends = np.array([labels.min(), labels.max()], dtype=labels.dtype)
        is_last = labels == ends[1]
        if ends[0] < ends[1] and np.all(is_last | (labels == ends[0])):
            return ends, is_last
    return np.unique(labels, return_inverse=True)


def check_groups(
    groups: ArrayLike | None, n_samples: int, name: str = "groups"
) -> NDArray[Any] | None:
    """Labels of groups, one per sample, that can be told apart and sorted.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        As they were given.
    n_samples : int
        Number of samples.
    name : str, default="groups"
        How errors call them.

    Returns
    -------
    labels : ndarray of shape (n_samples,) or None
    """
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"{name} must hold one label per sample: got shape {labels.shape} for {n_samples} "
            "samples."
        )
    is_uniform = labels.dtype != object or any(
        all(isinstance(label, kind) for label in labels) for kind in (str, Number)
    )
    # A missing number differs from itself.
    if not is_uniform or np.any(labels != labels):
        raise ValueError(
            f"{name} must hold either text or numbers, and no missing labels. Give samples of "
            "unknown group a label of their own, or leave them out."
        )
    return labels


def take_samples(X: Any, rows: IntArray, *, pairwise: bool) -> Any:
    """Some of the samples; of a Gram matrix (`pairwise`) their rows and columns."""
    if rows.size == X.shape[0]:
        return X
    return X[np.ix_(rows, rows)] if pairwise else X[rows]


def fetch_tensor(values: Any) -> Any:
    """A tensor of torch, wherever it lies, as an array of numpy; anything else as it is."""
    if type(values).__module__.partition(".")[0] != "torch":
        return values
    return values.detach().cpu().numpy()
