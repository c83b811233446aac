"""What is done with one partition at a time: plain functions, sent to where the rows are.

A partition is a block of whole rows, dense, sparse or a DataFrame. ``kept`` lists the rows that
count, None for all of them. ``origin`` is subtracted from every row; without it sparse rows stay
sparse. Rows are taken in pieces, so that a block is never copied as a whole; sums are in double
precision whatever the block is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from owasvm.extras import require
from owasvm.rounding import is_sparse, longest_row, row_norms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Numbers in a piece of rows, and rows at least: products of matrices want some.
_PIECE = 2**19
_LEAST_ROWS = 256


class Recipe:
    """How to make a block: a graph of Dask that needs nothing else, and the key of the block."""

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph = graph
        self.key = key

    def make(self) -> Any:
        """The block."""
        return require("dask.local", "A Dask collection", "dask").get_sync(self.graph, self.key)


@dataclass(frozen=True)
class Summary:
    """A partition as it was found: rows, columns, numbers stored, most in a row, column sums."""

    n_rows: int
    n_columns: int
    n_stored: int
    longest_row: int
    sums: FloatArray


def summarise(block: Any, name: str) -> Summary:
    """Check a block as scikit-learn checks the samples of the estimator of that name."""
    rows = _as_rows(block, name=name)
    stored = rows.nnz if is_sparse(rows) else rows.size
    sums = combine(rows, None, None, np.ones(rows.shape[0]))
    return Summary(rows.shape[0], rows.shape[1], stored, longest_row(rows), sums)


def combine(
    block: Any, kept: IntArray | None, origin: FloatArray | None, coef: FloatArray
) -> FloatArray:
    """``sum_i coef_i x_i``."""
    rows = _as_rows(block)
    total = np.zeros(rows.shape[1])
    for here, piece in _pieces(rows, kept, origin):
        total += np.asarray(piece.T @ coef[here]).ravel()
    return total


def score(
    block: Any, kept: IntArray | None, origin: FloatArray | None, weight: FloatArray
) -> FloatArray:
    """``<weight, x_i>`` of the rows, a column per column of `weight`."""
    rows = _as_rows(block)
    n_rows = rows.shape[0] if kept is None else kept.size
    scores = np.empty((n_rows, *weight.shape[1:]))
    for here, piece in _pieces(rows, kept, origin):
        scores[here] = piece @ weight
    return scores


def measure(block: Any, kept: IntArray | None, origin: FloatArray | None) -> FloatArray:
    """``|x_i|`` of the rows."""
    pieces = _pieces(_as_rows(block), kept, origin)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([np.zeros(0), *(row_norms(piece) for _, piece in pieces)])


@dataclass(frozen=True, eq=False)
class Ties:
    """Samples of tied blocks that were met so far, of blocks that have not been met completely.

    Parameters
    ----------
    block : ndarray of shape (n_blocks,)
        Numbers of the blocks, ascending.
    n_met, n_members : ndarray of shape (n_blocks,)
        Samples that were met, and all there are.
    shrink : ndarray of shape (n_blocks,)
        See :class:`owasvm.samples.operators.ActiveSet`.
    norm : ndarray of shape (n_blocks,)
        Sums of ``tie_i^2`` over the samples that were met.
    mean : ndarray of shape (n_blocks, n_features)
        Sums of ``tie_i root_i x_i`` over them, divided by `norm`.
    """

    block: IntArray
    n_met: IntArray
    n_members: IntArray
    shrink: FloatArray
    norm: FloatArray
    mean: FloatArray

    def take(self, index: Any) -> Ties:
        """Some of the blocks."""
        return Ties(
            self.block[index],
            self.n_met[index],
            self.n_members[index],
            self.shrink[index],
            self.norm[index],
            self.mean[index],
        )

    def without_complete(self) -> Ties:
        """The blocks that further samples belong to."""
        return self.take(self.n_met < self.n_members)


@dataclass(frozen=True, eq=False)
class Scatter:
    """``B'B`` of the active rows that were met, as if no block went on, and ``B'e``."""

    matrix: FloatArray
    coupling: FloatArray
    ties: Ties


@dataclass(frozen=True, eq=False)
class ActiveRows:
    """Active rows of a partition, those on their own first, then block by block.

    Parameters
    ----------
    index : ndarray of shape (n_rows,)
        Which they are, among those that are kept.
    block : ndarray of shape (n_rows,)
        Their tied blocks, counted from 1; 0 for those on their own.
    tie : ndarray of shape (n_rows,)
        See :class:`owasvm.samples.operators.ActiveSet`; the roots are its absolute values.
    coupling : ndarray of shape (n_rows,)
        Coefficients of ``B'e``.
    present : ndarray of shape (n_blocks,)
        Blocks other than 0 that occur, ascending.
    n_members, shrink : ndarray of shape (n_blocks,)
        Of these blocks: samples in all partitions, and the share that is taken.
    gathered : bool
        Whether the rows themselves are asked for, and not their scatter.
    """

    index: IntArray
    block: IntArray
    tie: FloatArray
    coupling: FloatArray
    present: IntArray
    n_members: IntArray
    shrink: FloatArray
    gathered: bool


@dataclass(frozen=True, eq=False)
class Sums:
    """What one pass adds up.

    Parameters
    ----------
    total : ndarray of shape (n_features,) or None
        ``sum_i coef_i x_i``, if coefficients were given.
    scatter : Scatter or None, default=None
        Of the active rows, if there are any and they are not gathered.
    rows : list of {ndarray, CSR matrix}, default=()
        Active rows, in the order of the partitions, if they are.
    """

    total: FloatArray | None
    scatter: Scatter | None = None
    rows: tuple[Any, ...] = ()


def sum_up(
    block: Any,
    kept: IntArray | None,
    origin: FloatArray | None,
    coef: FloatArray | None,
    active: ActiveRows | None,
) -> Sums:
    """The share of a partition in the sums of a pass."""
    rows = _as_rows(block)
    total = None if coef is None else combine(rows, kept, origin, coef)
    if active is None:
        return Sums(total)
    chosen = active.index if kept is None else kept[active.index]
    if active.gathered:
        return Sums(total, rows=(_move(rows[chosen], origin),))
    return Sums(total, _scatter(rows, chosen, origin, active))


def _scatter(
    rows: Any, chosen: IntArray, origin: FloatArray | None, active: ActiveRows
) -> Scatter:
    """``B'B`` of active rows, tied ones centred by the means of their blocks in this partition."""
    n_features = rows.shape[1]
    tied = active.block > 0
    place = np.searchsorted(active.present, active.block)
    n_met = np.bincount(place[tied], minlength=active.present.size)
    squares = active.tie[tied] ** 2
    norm = np.bincount(place[tied], squares, active.present.size).astype(np.float64)
    mean = np.zeros((active.present.size, n_features))
    coupling = np.zeros(n_features)
    root = np.abs(active.tie)
    along = np.where(tied, active.tie * root, 0.0)
    for here, piece in _dense_pieces(rows, chosen, origin):
        coupling += active.coupling[here] @ piece
        if active.present.size:
            mean += _sum_by_place(place[here], along[here], mean.shape[0]) @ piece
    mean /= norm[:, None]
    taken = np.zeros(root.size)
    taken[tied] = active.shrink[place[tied]] * active.tie[tied]
    matrix = np.zeros((n_features, n_features))
    for here, piece in _dense_pieces(rows, chosen, origin):
        piece *= root[here, None]
        if active.present.size:
            piece -= _sum_by_place(place[here], taken[here], mean.shape[0]).T @ mean
        matrix += piece.T @ piece
    ties = Ties(active.present, n_met, active.n_members, active.shrink, norm, mean)
    return Scatter(matrix, coupling, ties.without_complete())


def _sum_by_place(place: IntArray, values: FloatArray, n_places: int) -> sp.csc_matrix:
    """A sparse matrix that adds up rows with given factors, by their places."""
    counted = values != 0.0
    # Samples on their own have a factor of 0, and a place that may not exist.
    inside = np.where(counted, place, 0)
    starts = np.concatenate(([0], np.cumsum(counted)))
    return sp.csc_matrix((values[counted], inside[counted], starts), (n_places, place.size))


def join(parts: list[Sums]) -> Sums:
    """The sums of several sets of partitions."""
    totals = [part.total for part in parts if part.total is not None]
    scatters = [part.scatter for part in parts if part.scatter is not None]
    return Sums(
        np.sum(totals, axis=0) if totals else None,
        _join_scatters(scatters) if scatters else None,
        tuple(rows for part in parts for rows in part.rows),
    )


def _join_scatters(parts: list[Scatter]) -> Scatter:
    r"""The scatter of several sets of partitions.

    Two parts of a block with means :math:`m_1, m_2` and norms :math:`q_1, q_2` add
    :math:`(2 s - s^2) \frac{q_1 q_2}{q_1 + q_2} (m_1 - m_2)(m_1 - m_2)^T`, s being the share that
    R takes. No digits cancel, and a block that is complete is forgotten.
    """
    matrix, coupling = parts[0].matrix.copy(), parts[0].coupling.copy()
    ties = parts[0].ties
    for part in parts[1:]:
        matrix += part.matrix
        coupling += part.coupling
        ties = _join_ties(ties, part.ties, matrix)
    return Scatter(matrix, coupling, ties)


def _join_ties(one: Ties, other: Ties, matrix: FloatArray) -> Ties:
    """Blocks of either, and in `matrix`, changed in place, what both have of the same block."""
    shared, mine, yours = np.intersect1d(
        one.block, other.block, assume_unique=True, return_indices=True
    )
    first, second = one.take(mine), other.take(yours)
    norm = first.norm + second.norm
    share = first.shrink * (2.0 - first.shrink)
    scale = np.sqrt(share * first.norm * second.norm / norm)
    between = (first.mean - second.mean) * scale[:, None]
    matrix += between.T @ between
    mean = first.mean + (second.mean - first.mean) * (second.norm / norm)[:, None]
    met = Ties(shared, first.n_met + second.n_met, first.n_members, first.shrink, norm, mean)
    groups = [
        met.without_complete(),
        one.take(~np.isin(one.block, shared, assume_unique=True)),
        other.take(~np.isin(other.block, shared, assume_unique=True)),
    ]
    names = ("block", "n_met", "n_members", "shrink", "norm", "mean")
    columns = [np.concatenate([getattr(group, name) for group in groups]) for name in names]
    return Ties(*columns).take(np.argsort(columns[0], kind="stable"))


def decide(
    block: Any, model: tuple[FloatArray, FloatArray, str, NDArray[Any] | None]
) -> NDArray[Any]:
    """Decision values of the rows of a block, or their classes."""
    weight, intercept, name, classes = model
    rows = _as_rows(block, name=name)
    values = score(rows, None, None, weight.T) + intercept
    if values.shape[1] == 1:
        values = values.ravel()
    if classes is None:
        return values
    return classes[(values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]


def _as_rows(block: Any, name: str | None = None) -> Any:
    """A block as an array or a CSR matrix; with the name of an estimator it is checked."""
    if isinstance(block, Recipe):
        block = block.make()
    return check_array(
        block.tocsr() if hasattr(block, "tocsr") else block,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        ensure_all_finite=name is not None,
        ensure_min_samples=0,
        ensure_min_features=0,
        estimator=name,
        input_name="X",
    )


def _move(rows: Any, origin: FloatArray | None) -> Any:
    """Rows in double precision, moved."""
    if is_sparse(rows):
        if origin is None:
            return rows.astype(np.float64)
        rows = rows.toarray()
    return rows.astype(np.float64) if origin is None else rows - origin


def _pieces(
    rows: Any, kept: IntArray | None, origin: FloatArray | None
) -> Iterator[tuple[slice, Any]]:
    """Where rows stand among those that are kept, and the rows, moved."""
    n_rows = rows.shape[0] if kept is None else kept.size
    size = max(_LEAST_ROWS, _PIECE // max(rows.shape[1], 1))
    if is_sparse(rows) and origin is None:
        size = max(n_rows, 1)
    for start in range(0, n_rows, size):
        here = slice(start, min(start + size, n_rows))
        yield here, _move(rows[here] if kept is None else rows[kept[here]], origin)


def _dense_pieces(
    rows: Any, chosen: IntArray, origin: FloatArray | None
) -> Iterator[tuple[slice, FloatArray]]:
    """The same as arrays that may be changed."""
    zeros = np.zeros(rows.shape[1]) if origin is None else origin
    return _pieces(rows, chosen, zeros)
