"""Samples without copies, for searches in an order that depends on their values alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.preparation import TrainingSet
from owasvm.rounding import is_sparse
from owasvm.solution import Solution

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BitArray = NDArray[np.uint64]

__all__ = ["DistinctSet"]

# Numbers that are hashed at a time: half a megabyte, which a processor has at hand.
_BLOCK_ENTRIES = 2**16
# Of as many samples as there are, distinct ones that are worth it: sample weights take time, too.
_WORTH_MERGING = 0.8
# Columns of a Gram matrix that tell most samples apart.
_FEW_COLUMNS = 8


@dataclass(frozen=True, eq=False)
class DistinctSet:
    """Samples without copies.

    Where a search for a local solution ends depends on the order of the samples, and on which of
    them tie. The same samples in another order, written as copies or as weights, have the same
    distinct set by :meth:`of`, to the last digit, and hence the same end. For weights that never
    fall :meth:`without_copies` saves time.

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
    divides : bool, default=False
        Whether the coefficient of a distinct sample is divided among its copies, so that the
        dual point is one of the problem with all of them; else the first copy has it, and no
        digit is lost.
    """

    training: TrainingSet
    first: IntArray | None = None
    place: IntArray | None = None
    share: FloatArray | None = None
    divides: bool = False

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
            is_copy = _find_copies(X, kinds, hashes, order)
        first, place = _place_copies(order, is_copy)
        if pairwise:
            mass = _add_up(training.mass, place, first.size)
            keys = _hash_relations(X[np.ix_(first, first)], kinds[first], mass)
            first, place = _reorder(first, place, np.argsort(keys, kind="stable"))
        return cls._gather(training, first, place, pairwise=pairwise)

    @classmethod
    def without_copies(cls, training: TrainingSet, *, pairwise: bool) -> DistinctSet:
        """The distinct samples as they stood; all of them where few are copies.

        For weights that never fall. Copies deviate alike, and the solution that divides a
        coefficient among them is one of the problem with all copies. Fewer samples take less
        time.
        """
        X, kinds, n_samples = training.X, training.kinds, training.n_samples
        most = _WORTH_MERGING * n_samples
        # There are no fewer distinct samples than values in a column.
        if not is_sparse(X) and np.unique(X[:, 0]).size > most:
            return cls(training)
        hashes = _hash_rows(X[:, :_FEW_COLUMNS] if pairwise else X)
        order = np.lexsort((kinds, hashes))
        is_copy = _find_copies(X, kinds, hashes, order)
        if n_samples - np.count_nonzero(is_copy) > most:
            return cls(training)
        first, place = _place_copies(order, is_copy)
        first, place = _reorder(first, place, np.argsort(first))
        merged = cls._gather(training, first, place, pairwise=pairwise)
        return replace(merged, divides=True)

    @classmethod
    def _gather(
        cls, training: TrainingSet, first: IntArray, place: IntArray, *, pairwise: bool
    ) -> DistinctSet:
        """The distinct samples, the first copies of which stand at `first`."""
        mass = _add_up(training.mass, place, first.size)
        distinct = replace(
            training,
            X=training.X[np.ix_(first, first)] if pairwise else training.X[first],
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
        """Coefficients of distinct samples as those of all.

        Those of copies sum to what was given, without rounding: an intercept for kernel values of
        1e14 notices a sum of coefficients that is off by 1e-16.
        """
        if self.first is None or self.place is None or self.share is None:
            return values
        assigned = np.zeros(self.place.size)
        if not self.divides:
            assigned[self.first] = values
            return assigned
        # Multiples of the last digit: they add up without rounding.
        digit = np.spacing(np.abs(values))[self.place]
        assigned = np.trunc(self.divide(values) / digit) * digit
        by_share = np.argsort(self.share, kind="stable")
        heaviest = np.empty_like(self.first)
        heaviest[self.place[by_share]] = by_share
        assigned[heaviest] += values - self.collect(assigned)
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
            # Notes on distinct samples are of no use for others.
            details={
                name: note
                for name, note in solution.details.items()
                if not isinstance(note, np.ndarray)
            },
        )

    def as_distinct(self, solution: Solution) -> Solution:
        """The other way round: a solution to start from."""
        if self.place is None:
            return solution
        deviations = solution.deviations
        return replace(
            solution,
            dual=self.collect(solution.dual),
            deviations=None if deviations is None else deviations[self.first],
        )


def _find_copies(
    X: Any, kinds: NDArray[Any], hashes: BitArray, order: IntArray
) -> NDArray[np.bool_]:
    """Whether samples, put in order by their hashes, are copies of those before them."""
    is_copy = np.zeros(order.size, dtype=bool)
    ahead, behind = order[:-1], order[1:]
    near = (hashes[ahead] == hashes[behind]) & (kinds[ahead] == kinds[behind])
    near[near] = _are_equal(X, ahead[near], behind[near])
    is_copy[1:] = near
    return is_copy


def _place_copies(order: IntArray, is_copy: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Where the distinct samples stood first, and which of them every sample is."""
    place = np.empty_like(order)
    place[order] = np.cumsum(~is_copy) - 1
    return order[~is_copy], place


def _reorder(first: IntArray, place: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct samples in another order."""
    return first[order], np.argsort(order)[place]


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
