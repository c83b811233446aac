"""From (X, y, sample_weight) to problems: what estimators, paths and certificates share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import fsum
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.rounding import is_sparse
from owasvm.samples import Partitions
from owasvm.solution import Solution

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BitArray = NDArray[np.uint64]

__all__ = ["DistinctSet", "TrainingSet", "fetch_tensor", "take_samples"]

# Numbers that are hashed at a time: half a megabyte, which a processor has at hand.
_BLOCK_ENTRIES = 2**16


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
        classes, codes = np.unique(labels, return_inverse=True)
        codes = codes.astype(np.min_scalar_type(classes.size))
        mass = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if mass is not None and np.all(mass == 1.0):
            mass = None
        fits = labels.dtype == np.float64 and labels.flags.c_contiguous
        signed = labels if fits and classes.tolist() == [-1.0, 1.0] else None
        grouped = _check_groups(groups, labels.size)
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


@dataclass(frozen=True, eq=False)
class DistinctSet:
    """Samples without copies, in an order that depends on their values alone.

    Where a search for a local solution ends depends on the order of the samples, and on which of
    them tie. The same samples in another order, written as copies or as weights, have the same
    distinct set to the last digit, and hence the same end.

    Parameters
    ----------
    training : TrainingSet
        The distinct samples, each with the sum of the weights of its copies.
    first : ndarray of shape (n_distinct,) or None
        Where the first copy of each stood; None when they are the samples as they stood.
    place : ndarray of shape (n_samples,) or None
        Which of the distinct samples each sample is.
    share : ndarray of shape (n_samples,) or None
        Share of a sample in the weight of its copies.
    """

    training: TrainingSet
    first: IntArray | None = None
    place: IntArray | None = None
    share: FloatArray | None = None

    @classmethod
    def of(cls, training: TrainingSet, *, pairwise: bool, merge: bool = True) -> DistinctSet:
        """The distinct samples of a training set.

        Parameters
        ----------
        training : TrainingSet
            Samples of positive weight, in memory.
        pairwise : bool
            Whether they are given by their Gram matrix. Copies have equal rows there.
        merge : bool, default=True
            Whether copies become one sample; if not, they are put in order and nothing else.
        """
        X, kinds = training.X, training.kinds
        hashes = _hash_rows(X)
        order = np.lexsort((kinds, hashes))
        is_copy = np.zeros(order.size, dtype=bool)
        if merge:
            ahead, behind = order[:-1], order[1:]
            near = (hashes[ahead] == hashes[behind]) & (kinds[ahead] == kinds[behind])
            near[near] = _are_equal(X, ahead[near], behind[near])
            is_copy[1:] = near
        first, place = order[~is_copy], np.empty_like(order)
        place[order] = np.cumsum(~is_copy) - 1
        mass = _add_up(training.mass, place, first.size)
        if pairwise:
            keys = _hash_relations(X[np.ix_(first, first)], kinds[first], mass)
            again = np.argsort(keys, kind="stable")
            first, mass = first[again], mass[again]
            place = np.argsort(again)[place]
        distinct = replace(
            training,
            X=X[np.ix_(first, first)] if pairwise else X[first],
            kept=training.rows[first],
            codes=training.codes[first],
            mass=None if np.all(mass == 1.0) else mass,
            signed=None,
            groups=None if training.groups is None else training.groups[first],
        )
        own = np.ones(place.size) if training.mass is None else training.mass
        return cls(distinct, first, place, own / mass[place])

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """What distinct samples are, for every sample."""
        return values if self.place is None else values[self.place]

    def divide(self, values: FloatArray) -> FloatArray:
        """What distinct samples have, divided among their copies by weight."""
        return values if self.share is None else values[self.place] * self.share

    def assign(self, values: FloatArray) -> FloatArray:
        """The same, all of it given to the first copy, so that no digit is lost."""
        if self.first is None or self.place is None:
            return values
        assigned = np.zeros(self.place.size)
        assigned[self.first] = values
        return assigned

    def collect(self, values: FloatArray) -> FloatArray:
        """What the copies of distinct samples have together."""
        if self.place is None:
            return values
        return _sum_by(self.place, values, self.training.n_samples)

    def as_given(self, solution: Solution) -> Solution:
        """A solution for the distinct samples as one for the samples as they stood."""
        if self.place is None:
            return solution
        deviations = solution.deviations
        return replace(
            solution,
            dual=self.assign(solution.dual),
            deviations=None if deviations is None else self.spread(deviations),
        )

    def as_distinct(self, solution: Solution) -> Solution:
        """The other way round: a solution to start from."""
        if self.place is None:
            return solution
        return replace(solution, dual=self.collect(solution.dual), deviations=None)


def _sum_by(place: IntArray, values: FloatArray, n_distinct: int) -> FloatArray:
    sums = np.zeros(n_distinct)
    np.add.at(sums, place, values)
    return sums


def _add_up(mass: FloatArray | None, place: IntArray, n_distinct: int) -> FloatArray:
    """Weights of distinct samples, whatever the order of the copies."""
    counts = np.bincount(place, minlength=n_distinct)
    if mass is None:
        return counts.astype(np.float64)
    sums = _sum_by(place, mass, n_distinct)
    if np.array_equal(mass, np.rint(mass)):
        return sums
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(counts)
    # Sums of fractions depend on the order of the terms, unless they are exact before rounding.
    for k in np.flatnonzero(counts > 1):
        sums[k] = fsum(mass[order[ends[k] - counts[k] : ends[k]]])
    return sums


def _mix(bits: BitArray) -> BitArray:
    """Scramble in place, one to one; 0 stays 0. The last step of splitmix64."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def _bits_of(values: Any) -> BitArray:
    """Numbers in double precision as bits, a copy; -0 is 0."""
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _blocks_of(X: Any) -> Iterator[slice]:
    height = max(_BLOCK_ENTRIES // max(X.shape[1], 1), 1)
    return (slice(start, start + height) for start in range(0, X.shape[0], height))


def _hash_rows(X: Any) -> BitArray:
    """A number per row that depends on its entries alone; the same for dense and sparse rows."""
    n_rows, n_columns = X.shape
    factors = _mix(np.arange(1, n_columns + 1, dtype=np.uint64)) | np.uint64(1)
    if is_sparse(X):
        terms = np.append(_mix(_bits_of(X.data)) * factors[X.indices], np.uint64(0))
        sums = np.add.reduceat(terms, X.indptr[:-1])
        return np.where(np.diff(X.indptr) > 0, sums, np.uint64(0))
    hashes = np.empty(n_rows, dtype=np.uint64)
    for block in _blocks_of(X):
        hashes[block] = _mix(_bits_of(X[block])) @ factors
    return hashes


def _are_equal(X: Any, rows: IntArray, others: IntArray) -> NDArray[np.bool_]:
    """Whether pairs of rows are equal."""
    if is_sparse(X):
        return np.diff((X[rows] != X[others]).indptr) == 0
    return np.all(X[rows] == X[others], axis=1)


def _hash_relations(gram: FloatArray, codes: IntArray, mass: FloatArray) -> BitArray:
    """A number per sample of a Gram matrix that does not depend on the order of the samples.

    First what a sample is by itself, then twice that and how it relates to all others. Samples
    that are still alike are exchangeable, for all we know.
    """
    keys = _mix(_bits_of(gram.diagonal()) + _mix(_bits_of(mass)) + codes.astype(np.uint64))
    for _ in range(2):
        related = np.empty_like(keys)
        for block in _blocks_of(gram):
            related[block] = _mix(_mix(_bits_of(gram[block])) + keys).sum(axis=1)
        keys = _mix(keys + related)
    return keys


def _check_groups(groups: ArrayLike | None, n_samples: int) -> NDArray[Any] | None:
    """Labels of groups, one per sample, that can be told apart and sorted."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups must hold one label per sample: got shape {labels.shape} for {n_samples} "
            "samples."
        )
    is_uniform = labels.dtype != object or any(
        all(isinstance(label, kind) for label in labels) for kind in (str, Number)
    )
    # A missing number differs from itself.
    if not is_uniform or np.any(labels != labels):
        raise ValueError(
            "groups must hold either text or numbers, and no missing labels. Give samples of "
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
