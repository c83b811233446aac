r"""Samples of a linear model that no single machine holds: the partitions of a Dask collection.

A *pass* sends a function to every partition and brings back a number per row, or a sum. Nothing
of the data is kept between passes but what Dask keeps: a collection that was persisted stays
where it is, any other is read or computed again. What travels is a few vectors of the length of
the samples or of the features, lists of active samples, and matrices of the size of the features.
Sums are taken along a fixed tree, so that results do not depend on who was faster.

Workers that die take nothing with them that Dask could not compute again: vectors go with the
tasks that need them.
"""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.extras import require
from owasvm.rounding import accumulated
from owasvm.samples import _partition_tasks as tasks
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.features import FeatureSamples
from owasvm.samples.operators import (
    ActiveSet,
    Operator,
    PlainOperator,
    Vector,
    solve_primal,
)
from owasvm.samples.principal import PrincipalAxes
from owasvm.samples.rows import make_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["PartitionSamples", "Partitions", "compute_vectors", "is_dask", "map_decisions"]

_COLLECTIONS = ("dask.array.", "dask.dataframe.", "dask_expr.")
# Partial sums that are added up by one task.
_BRANCHES = 8
# Sparse features with a larger share of entries are no longer sparse.
_DENSE_SHARE = 0.5
# Numbers that the sums of tied blocks, which travel with ``B'B``, may take.
_TIED_NUMBERS = 2**19
# Results of passes that are remembered: certificates ask for the same ones again.
_REMEMBERED = 3
# Vectors travel inside of the graph, which Dask would warn of at each pass.
_SILENT = {"distributed.admin.large-graph-warning-threshold": "1TB"}


def is_dask(X: Any) -> bool:
    """Whether X is an array, a DataFrame or a Series of Dask; does not import it."""
    return any(kind.__module__.startswith(_COLLECTIONS) for kind in type(X).__mro__)


def _compute(values: Sequence[Any]) -> list[Any]:
    """What lazy values are, by the cluster of the active client, or by threads without one."""
    dask = require("dask", "A Dask collection", "dask")
    # Settings of a package that is imported later would take its defaults with them.
    settings = _SILENT if "distributed" in sys.modules else {}
    with dask.config.set(settings):
        try:
            return list(dask.compute(*values))
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise MemoryError(
                "The workers of the Dask cluster died again and again on the same partition of X. "
                "Most often it does not fit into their memory: make the partitions smaller "
                "(rechunk or repartition), or give the workers more memory or fewer threads."
            ) from error


def _split(X: Any) -> list[Any]:
    """The blocks of whole rows of an array or a DataFrame, lazy."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. X must be a Dask array or DataFrame "
            "of shape (n_samples, n_features)."
        )
    if hasattr(X, "rechunk"):
        return list(X.rechunk({1: -1}).to_delayed().ravel())
    return list(X.to_delayed())


def _fold(blocks: list[Any]) -> list[Any]:
    """Blocks as recipes, where each is made without the others; else as they are.

    A task that makes its block itself holds it for as long as it works on it, and a pass has half
    as many tasks.
    """
    cull = require("dask.optimization", "A Dask collection", "dask").cull
    graph = dict(blocks[0].__dask_graph__())
    recipes = []
    for block in blocks:
        own = cull(graph, [block.key])[0] if block.key in graph else {}
        # What is already on a cluster, and tasks of versions of Dask that do not tell.
        needed = [getattr(task, "dependencies", None) for task in own.values()]
        if not own or any(keys is None or not keys <= own.keys() for keys in needed):
            return blocks
        recipes.append(tasks.Recipe(own, block.key))
    all_keys = set().union(*(recipe.graph for recipe in recipes))
    return recipes if sum(len(recipe.graph) for recipe in recipes) == len(all_keys) else blocks


def map_decisions(
    X: Any,
    weight: FloatArray,
    intercept: FloatArray,
    name: str,
    classes: NDArray[Any] | None = None,
) -> Any:
    """Decision values of linear classifiers as a lazy Dask array, or the classes they speak for.

    Parameters
    ----------
    X : Dask array or DataFrame of shape (n_samples, n_features)
        Samples.
    weight : ndarray of shape (n_problems, n_features)
        One row for two classes, one row per class for more.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    name : str
        Name of the estimator, for error messages.
    classes : ndarray of shape (n_classes,) or None, default=None
        Labels to choose from, if labels are wanted.

    Returns
    -------
    values : dask.array.Array of shape (n_samples,) or (n_samples, n_problems)
    """
    da = require("dask.array", "A Dask collection", "dask")
    decide = _delay(tasks.decide)
    shared = _share((weight, intercept, name, classes))
    blocks = _split(X)
    lengths = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    columns = () if classes is not None or len(weight) == 1 else (len(weight),)
    dtype = np.dtype(np.float64) if classes is None else classes.dtype
    parts = [
        da.from_delayed(decide(block, shared), (length, *columns), dtype=dtype)
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)


def compute_vectors(*vectors: Any) -> list[Any]:
    """Vectors in memory, those that are lazy computed together."""
    lazy = [vector for vector in vectors if is_dask(vector)]
    known = iter(_compute(lazy) if lazy else [])
    return [next(known) if is_dask(vector) else vector for vector in vectors]


class Partitions:
    """Rows in the partitions of a Dask collection, checked: finite numbers.

    Parameters
    ----------
    blocks : list of Delayed or list of Recipe
        Blocks of whole rows.
    summaries : list of Summary
        What they hold.
    kept : list of (ndarray or None) or None, default=None
        For each block the rows that count, None for all of them.
    """

    def __init__(
        self,
        blocks: list[Any],
        summaries: list[tasks.Summary],
        kept: list[IntArray | None] | None = None,
    ) -> None:
        self._blocks = blocks
        self._summaries = summaries
        self._kept: list[IntArray | None] = [None] * len(blocks) if kept is None else kept
        lengths = [
            summary.n_rows if rows is None else rows.size
            for summary, rows in zip(summaries, self._kept, strict=True)
        ]
        self._starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        self.shape = int(self._starts[-1]), summaries[0].n_columns

    @classmethod
    def of(cls, X: Any, name: str) -> Partitions:
        """One pass: lengths, sums, and the checks of scikit-learn for the estimator `name`."""
        blocks = _fold(_split(X))
        summarise = _delay(tasks.summarise)
        return cls(blocks, _compute([summarise(block, name) for block in blocks]))

    @property
    def n_stored(self) -> int:
        """Numbers that are stored, more or less where some rows do not count."""
        return sum(summary.n_stored for summary in self._summaries)

    @property
    def longest_row(self) -> int:
        """Number of products behind an inner product with a row, at most."""
        return max(summary.longest_row for summary in self._summaries)

    def __getitem__(self, rows: IntArray) -> Partitions:
        """The rows of ascending numbers, or copies of them."""
        kept: list[IntArray | None] = []
        for old, index in zip(self._kept, self._cut(rows), strict=True):
            kept.append(index if old is None else old[index])
        return Partitions(self._blocks, self._summaries, kept)

    def mean(self) -> FloatArray:
        """Mean of the rows."""
        if all(rows is None for rows in self._kept):
            total: FloatArray = np.sum([summary.sums for summary in self._summaries], axis=0)
        else:
            total = self.combine(np.ones(self.shape[0]), None)
        return total / self.shape[0]

    def _cut(self, samples: IntArray) -> list[IntArray]:
        """Ascending sample numbers as row numbers of each partition."""
        ends = np.searchsorted(samples, self._starts)
        return [samples[ends[p] : ends[p + 1]] - self._starts[p] for p in range(len(self._blocks))]

    def _map(
        self, function: Callable[..., Any], origin: FloatArray | None, *arguments: Sequence[Any]
    ) -> list[Any]:
        """Lazy results of the partitions; those whose arguments are all None are left out."""
        delayed, moved = _delay(function), None if origin is None else _share(origin)
        each = zip(self._blocks, self._kept, *arguments, strict=True)
        return [
            delayed(block, kept, moved, *own)
            for block, kept, *own in each
            if not own or any(argument is not None for argument in own)
        ]

    def score(self, weight: FloatArray, origin: FloatArray | None) -> FloatArray:
        """``<weight, x_i>`` of all samples, one pass."""
        if not weight.any():
            return np.zeros(self.shape[0])
        shared = [_share(weight)] * len(self._blocks)
        return np.concatenate(_compute(self._map(tasks.score, origin, shared)))

    def measure(self, origin: FloatArray | None) -> FloatArray:
        """``|x_i|`` of all samples, one pass."""
        return np.concatenate(_compute(self._map(tasks.measure, origin)))

    def combine(self, coef: FloatArray, origin: FloatArray | None) -> FloatArray:
        """``sum_i coef_i x_i``, one pass over the partitions where a coefficient is not 0."""
        return self.sum_up(origin, coef)[0]

    def sum_up(
        self,
        origin: FloatArray | None,
        coef: FloatArray | None = None,
        active: ActiveSet | None = None,
        *,
        gathered: bool = False,
    ) -> tuple[FloatArray, Any]:
        """One pass over the partitions that have something to add.

        Returns
        -------
        total : ndarray of shape (n_features,)
            ``sum_i coef_i x_i``.
        found : Scatter, ndarray, CSR matrix or None
            Of active samples ``B'B`` and ``B'e``, or, if `gathered`, their rows.
        """
        nothing = [None] * len(self._blocks)
        lazy = self._map(
            tasks.sum_up,
            origin,
            nothing if coef is None else self._slices(coef),
            nothing if active is None else self._divide(active, gathered),
        )
        found = _compute([_add_up(lazy)])[0] if lazy else tasks.Sums(None)
        total = np.zeros(self.shape[1]) if found.total is None else np.array(found.total)
        if active is None or not gathered:
            return total, found.scatter
        return total, _reorder(found.rows, active.samples)

    def _slices(self, coef: FloatArray) -> list[FloatArray | None]:
        """Coefficients by partitions, None where they are all 0."""
        starts = self._starts
        parts = [coef[starts[p] : starts[p + 1]] for p in range(len(self._blocks))]
        return [part if part.any() else None for part in parts]

    def _divide(self, active: ActiveSet, gathered: bool) -> list[tasks.ActiveRows | None]:
        """Active samples by partitions, None where there are none."""
        sizes = np.diff(active.offsets)
        block = np.repeat(np.arange(sizes.size), sizes)
        coupling = active.root * active.apply(active.ones.copy())
        order = np.argsort(active.samples)
        ends = np.searchsorted(active.samples[order], self._starts)
        divided: list[tasks.ActiveRows | None] = []
        for p in range(len(self._blocks)):
            mine = order[ends[p] : ends[p + 1]]
            present = np.unique(block[mine])
            present = present[present > 0]
            rows = tasks.ActiveRows(
                index=active.samples[mine] - self._starts[p],
                block=block[mine],
                tie=active.tie[mine],
                coupling=coupling[mine],
                present=present,
                n_members=sizes[present],
                shrink=active.shrink[present],
                gathered=gathered,
            )
            divided.append(rows if mine.size else None)
        return divided


def _reorder(parts: Sequence[Any], samples: IntArray) -> Any:
    """Rows that come in ascending order of their samples, in the order of `samples`."""
    rows = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    place = np.empty(samples.size, dtype=np.int64)
    place[np.argsort(samples)] = np.arange(samples.size)
    return rows[place]


def _delay(function: Callable[..., Any]) -> Any:
    return require("dask", "A Dask collection", "dask").delayed(function, pure=False)


def _share(value: Any) -> Any:
    """A value that several tasks of a graph use and that travels once."""
    dask = require("dask", "A Dask collection", "dask")
    return dask.delayed(value, pure=False, traverse=False)


def _add_up(parts: list[Any]) -> Any:
    """The sums of many partitions, along a tree."""
    delayed = _delay(tasks.join)
    while len(parts) > 1:
        parts = [
            delayed(parts[i : i + _BRANCHES]) if i + 1 < len(parts) else parts[i]
            for i in range(0, len(parts), _BRANCHES)
        ]
    return parts[0]


class _Remembering:
    """The last results of a function of one vector."""

    def __init__(self, function: Callable[[FloatArray], FloatArray]) -> None:
        self._function = function
        self._known: OrderedDict[bytes, FloatArray] = OrderedDict()

    def __call__(self, vector: FloatArray) -> FloatArray:
        key = hashlib.blake2b(vector.tobytes()).digest()
        if key not in self._known:
            self._known[key] = self._function(vector)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key].copy()


class PartitionSamples(FeatureSamples):
    """Rows in partitions. Dense ones are moved to their mean, while they are read.

    Parameters
    ----------
    rows : Partitions
        The samples as they were given.
    """

    #: Solvers that need all samples at hand refuse them.
    is_partitioned = True

    def __init__(self, rows: Partitions) -> None:
        self._parts = rows
        n_samples, n_features = rows.shape
        is_dense = rows.n_stored > _DENSE_SHARE * n_samples * n_features
        self._origin = rows.mean() if is_dense else None
        self._combine = _Remembering(lambda coef: rows.combine(coef, self._origin))
        self._score = _Remembering(lambda weight: rows.score(weight, self._origin))

    def weight(self, coef: FloatArray) -> FloatArray:
        return self._combine(coef)

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._score(self.weight(coef))

    @property
    def n_samples(self) -> int:
        return self._parts.shape[0]

    @property
    def n_multiplications(self) -> float:
        return float(self._parts.shape[1]) ** 3

    @cached_property
    def norms(self) -> FloatArray:
        return self._parts.measure(self._origin)

    def evaluate_weight(self, weight: FloatArray) -> Evaluation:
        squared_norm = float(weight @ weight)
        # Rows are moved while they are read, which rounds them once.
        n_roundings = self._parts.longest_row + 3
        error = accumulated(n_roundings) * np.sqrt(squared_norm) * self.norms
        norm_error = accumulated(weight.size + 1) * squared_norm
        return Evaluation(self._score(weight), error.copy, squared_norm, norm_error, weight)

    def operator(self, *, centred: bool = True) -> Operator:
        return PartitionOperator(self, self._parts, self._origin)

    def take(self, index: IntArray) -> Samples:
        """Samples of ascending numbers, or copies of them."""
        return PartitionSamples(self._parts[index])

    def principal_axes(self, emphases: FloatArray) -> PrincipalAxes:
        raise self._refuse("Principal axes")

    def gram_matrix(self) -> FloatArray:
        raise self._refuse("A Gram matrix")

    def coordinates(self) -> FloatArray:
        raise self._refuse("Coordinates")

    def _refuse(self, what: str) -> ValueError:
        return ValueError(
            f"{what} need all samples in memory, and X is a Dask collection of "
            f"{self.n_samples} samples; load it with X.compute()."
        )


class PartitionOperator(PlainOperator):
    """Newton steps of a linear model from partitions.

    A step takes two passes: one adds up the residual and ``B'B`` of the active rows, the other
    computes scores. Where the active rows are fewer numbers than ``B'B`` they come here
    themselves. Where very many blocks are tied, only the largest are coupled over partitions
    (:func:`_loosen`).
    """

    foresees = True

    def __init__(
        self, samples: PartitionSamples, rows: Partitions, origin: FloatArray | None
    ) -> None:
        self._samples = samples
        self._rows = rows
        self._origin = origin
        self.n_samples, self._n_features = rows.shape
        self._foreseen: ActiveSet | None = None
        self._found: Any = None

    def mean_diagonal(self) -> float:
        norms = self._samples.norms
        return float(norms @ norms) / self.n_samples

    def intercept_shift(self, coef: FloatArray) -> float:
        return 0.0

    def vector(self, coef: FloatArray) -> Vector:
        weight = self._samples.weight(coef)
        return Vector(coef, self._rows.score(weight, self._origin), weight)

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        active = self._foreseen
        gathered = active is not None and self._is_worth_gathering(active.samples.size)
        total, self._found = self._rows.sum_up(self._origin, target, active, gathered=gathered)
        weight = total - current.weight
        return Vector(target - current.coef, np.empty(0), weight), float(weight @ weight)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.weight @ other.weight)

    def complete(self, vector: Vector) -> None:
        vector.scores = self._rows.score(vector.weight, self._origin)

    def foresee(self, active: ActiveSet) -> None:
        """Have the next residual come with what a step of these samples will need."""
        self._foreseen = self._simplify(active) if active.samples.size else None

    def _simplify(self, active: ActiveSet) -> ActiveSet:
        if self._is_worth_gathering(active.samples.size):
            return active
        return _loosen(active, max(self._n_features, _TIED_NUMBERS // self._n_features))

    def _find(self, active: ActiveSet, gathered: bool) -> Any:
        """What the last residual came with, or the result of a pass of its own."""
        found, self._found = self._found, None
        if found is not None and self._foreseen is not None and _agree(self._foreseen, active):
            return found
        return self._rows.sum_up(self._origin, None, active, gathered=gathered)[1]

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        active = self._simplify(active)
        samples, coef = active.samples, residual.coef
        if self._is_worth_gathering(samples.size):
            rows = FeatureOperator(make_rows(self._find(active, gathered=True)))
            part = Vector(coef[samples], np.empty(0), residual.weight)
            here = replace(active, samples=np.arange(samples.size))
            step, intercept = rows.newton_step(part, here)
            coef[samples] = step.coef
            scores = self._rows.score(step.weight, self._origin)
            return Vector(coef, scores, step.weight), intercept
        weight, intercept = self._solve(residual.weight, active)
        scores = self._rows.score(weight, self._origin)
        moves = active.apply(active.root * scores[samples]) + intercept * active.ones
        coef[samples] -= active.apply(moves / active.ridge) * active.root
        return Vector(coef, scores, weight), intercept

    def _is_worth_gathering(self, n_active: int) -> bool:
        per_row = self._n_features
        if self._origin is None:
            # With an index beside every number.
            per_row = 2 * self._rows.n_stored // self.n_samples
        return n_active * per_row <= self._n_features**2

    def _solve(self, residual: FloatArray, active: ActiveSet) -> tuple[FloatArray, float]:
        found = self._find(active, gathered=False)
        return solve_primal(found.matrix.copy(), found.coupling, residual, active)


def _loosen(active: ActiveSet, n_blocks: int) -> ActiveSet:
    """An active set in which only the largest blocks are tied.

    Members of the others move on their own, with what their tie leaves each of them on average:
    of ``1 - s (2 - s) t t' / |t|^2``, the square of R, the diagonal stays. A step is then not
    quite Newton's, but its direction descends all the same. Near the solution there are at most as
    many blocks as features, and all of them stay tied.
    """
    sizes = np.diff(active.offsets)
    if sizes.size - 1 <= n_blocks:
        return active
    kept = np.sort(1 + np.argsort(-sizes[1:], kind="stable")[:n_blocks])
    label = np.zeros(sizes.size, dtype=np.int64)
    label[kept] = np.arange(1, n_blocks + 1)
    block = np.repeat(np.arange(sizes.size), sizes)
    loose = (block > 0) & (label[block] == 0)
    squares = active.tie**2
    shrink = active.shrink[block]
    taken = shrink * (2.0 - shrink) * squares / np.bincount(block, squares)[block]
    factor = np.where(loose, np.sqrt(np.maximum(1.0 - taken, 0.0)), 1.0)
    order = np.argsort(label[block], kind="stable")
    counts = np.bincount(label[block], minlength=n_blocks + 1)
    return replace(
        active,
        samples=active.samples[order],
        offsets=np.concatenate(([0], np.cumsum(counts))),
        shrink=np.concatenate((active.shrink[:1], active.shrink[kept])),
        root=(factor * active.root)[order],
        tie=(factor * active.tie)[order],
    )


def _agree(one: ActiveSet, other: ActiveSet) -> bool:
    """Whether two sets hold the same samples, tied in the same way."""
    return (
        np.array_equal(one.samples, other.samples)
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.tie, other.tie)
        and np.array_equal(one.shrink, other.shrink)
    )
