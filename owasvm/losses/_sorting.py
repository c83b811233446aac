"""Sort-and-pool kernels: the prox of the OWA hinge and the projection on its dual set.

Notation
--------
===================  ===================================================================
``v``                the point whose prox is taken, one entry per sample
``weights``          ascending positions: ``weights[k]`` meets the k-th smallest deviation;
                     non-decreasing weights make the loss convex
``x``                ``argmin_x 1/2 sum_i s_i (x_i - v_i)^2 + step * Phi(x)``
``Phi(x)``           ``sum_k weights[k] * max(x, 0)_(k)``
``dual``             ``s_i (v_i - x_i)``, a point of ``step * P(weights)``
===================  ===================================================================

Why sort, pool and clip is exact (equal masses ``s_i = 1``):

1. ``Phi`` grows with every entry and does not change while an entry stays at or below 0. So
   ``x_i = v_i`` wherever ``v_i <= 0``, and ``x_i >= 0`` wherever ``v_i > 0``. The entries of the
   first kind occupy the lowest ranks with deviation 0, hence the ``p`` others meet the last
   ``p`` weights.
2. ``Phi`` is symmetric. If ``v_i > v_j`` and ``x_i < x_j``, exchanging ``x_i`` and ``x_j`` keeps
   ``Phi`` and lowers the distance by ``(v_i - v_j)(x_j - x_i)``. So ``x`` is ordered like ``v``.
3. On the cone of vectors ordered like ``v`` the function ``Phi`` is linear, the k-th largest
   entry paying the k-th last weight. What is left is the projection of ``v - step * weight`` on
   the non-increasing non-negative vectors: isotonic regression, then clipping at 0.

No step asks for monotone weights: for any weights >= 0 the kernels return a global minimiser.
Non-decreasing weights add that it is the only one (tied entries of ``v`` stay tied) and that
``dual`` is the projection of ``v`` on the dual set. That is why the public functions insist on
them.

With masses ``s_i`` the same holds for totals that come from merging ``s_i`` equal copies of
sample i: the copies are tied in ``v``, hence in ``x``, and pooling runs over the merged copies.
Merging needs non-decreasing weights.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# int32 where that is enough: sorting is reading and writing.
Places = NDArray[Any]
Labels = NDArray[np.int32]

INACTIVE = -2
SINGLE = -1
CLIPPED = 0

# Up to here insertion sort beats radix passes, whose cost has a floor of 256 counters each.
_INSERTION_LIMIT = 48
# The lowest of the leading digits: sign, exponent and 12 bits of the mantissa, or 20 with so many
# keys that too many would share them.
_LEADING_DIGIT = 5
_MANY_KEYS = 2**14
_RADIX_BITS = 8
_RADIX_BUCKETS = 256
_RADIX_MASK = 255
_RADIX_PASSES = 8
_NO_SIGNS = np.empty(0)


class Workspace(NamedTuple):
    """Arrays the kernels write into, allocated once by :func:`make_workspace`.

    After a call of :func:`prox_blocks` with ``p`` positive entries, ``order[:p]`` holds their
    samples from the largest entry down, ``keys[:p]`` their values, ``levels[b]`` and
    ``starts[b]:starts[b + 1]`` the fitted value and the sorted positions of pooled block b. Until
    blocks are pooled a sort uses ``levels`` and ``starts``.
    """

    order: Places
    keys: FloatArray
    starts: Places
    levels: FloatArray
    counts: IntArray


class Pooling(NamedTuple):
    """What pooling needs beside a :class:`Workspace` where masses are not all 1."""

    losses: FloatArray
    masses: FloatArray
    block_masses: FloatArray


class RankTable(NamedTuple):
    """The ranked hinge as compiled loops have it.

    Parameters
    ----------
    weights : ndarray of shape (n_ranks,)
        Costs by rank, ascending; by rank of a copy where samples stand for several.
    sums : ndarray of shape (n_ranks + 1,) or (0,)
        Those of the largest costs, where samples stand for copies.
    mass : ndarray of shape (n_samples,) or (0,)
        How many copies samples stand for, empty where that is 1.
    workspace, pooling
        Where to sort, and to pool.
    """

    weights: FloatArray
    sums: FloatArray
    mass: FloatArray
    workspace: Workspace
    pooling: Pooling


def make_workspace(n_samples: int) -> Workspace:
    """Allocate the arrays for problems of at most `n_samples` entries."""
    fits: type = np.int32 if n_samples < np.iinfo(np.int32).max else np.int64
    return Workspace(
        order=np.empty(n_samples, dtype=fits),
        keys=np.empty(n_samples),
        starts=np.empty(n_samples + 1, dtype=fits),
        levels=np.empty(n_samples),
        counts=np.empty(_RADIX_BUCKETS, dtype=np.int64),
    )


def make_pooling(n_samples: int) -> Pooling:
    """Allocate the arrays for problems of at most `n_samples` entries."""
    return Pooling(np.empty(n_samples), np.empty(n_samples), np.empty(n_samples))


@njit(cache=True, internal=True)
def _sort_by_digits(
    keys: FloatArray,
    order: Places,
    spare_keys: FloatArray,
    spare_order: Places,
    counts: IntArray,
    lowest: int,
    behind: int,
) -> None:
    """Reorders `keys` and `order` in place by the digits from `lowest` to `behind`, largest first.

    Stable. Overwrites the other arrays. Digits that all keys share are skipped.
    """
    size = keys.size
    source_keys, target_keys = keys, spare_keys
    source_order, target_order = order, spare_order
    is_swapped = False
    for digit in range(lowest, behind):
        shift = digit * _RADIX_BITS
        for slot in range(_RADIX_BUCKETS):
            counts[slot] = 0
        for k in range(size):
            counts[(np.float64(source_keys[k]).view(np.int64) >> shift) & _RADIX_MASK] += 1
        if counts[(np.float64(keys[0]).view(np.int64) >> shift) & _RADIX_MASK] == size:
            continue
        filled = 0
        for slot in range(_RADIX_BUCKETS - 1, -1, -1):
            count = counts[slot]
            counts[slot] = filled
            filled += count
        for k in range(size):
            key = source_keys[k]
            place = (np.float64(key).view(np.int64) >> shift) & _RADIX_MASK
            target = counts[place]
            counts[place] = target + 1
            target_keys[target] = key
            target_order[target] = source_order[k]
        source_keys, target_keys = target_keys, source_keys
        source_order, target_order = target_order, source_order
        is_swapped = not is_swapped
    if is_swapped:
        for k in range(size):
            keys[k] = spare_keys[k]
            order[k] = spare_order[k]


@njit(cache=True, internal=True)
def sort_descending(
    keys: FloatArray,
    order: Places,
    spare_keys: FloatArray,
    spare_order: Places,
    counts: IntArray,
    size: int,
) -> None:
    """Reorders ``keys[:size]`` and ``order[:size]`` in place, overwrites the other arrays.

    Stable and descending, for finite keys >= 0: their bit patterns, read as integers, are ordered
    like the numbers. The leading digits tell most keys apart. The others are looked at where many
    keys share the leading ones; few are inserted where they belong, as are few keys in all.
    """
    if size > _INSERTION_LIMIT:
        lowest = _LEADING_DIGIT if size < _MANY_KEYS else _LEADING_DIGIT - 1
        _sort_by_digits(keys[:size], order, spare_keys, spare_order, counts, lowest, _RADIX_PASSES)
        shift = lowest * _RADIX_BITS
        begin = 0
        for k in range(1, size + 1):
            if k < size:
                both = np.float64(keys[k]).view(np.int64) ^ np.float64(keys[begin]).view(np.int64)
                if both >> shift == 0:
                    continue
            if k - begin > _INSERTION_LIMIT:
                _sort_by_digits(
                    keys[begin:k], order[begin:k], spare_keys, spare_order, counts, 0, lowest
                )
            begin = k
    for position in range(1, size):
        key = keys[position]
        if keys[position - 1] >= key:
            continue
        sample = order[position]
        gap = position
        while gap > 0 and keys[gap - 1] < key:
            keys[gap] = keys[gap - 1]
            order[gap] = order[gap - 1]
            gap -= 1
        keys[gap] = key
        order[gap] = sample


def sort_positive(v: FloatArray, workspace: Workspace) -> int:
    """Writes ``order`` and ``keys`` of `workspace`: the positive entries of `v`, largest first.

    Equal entries keep the order of their indices. O(n).

    Returns how many entries are positive; ``order`` and ``keys`` are filled up to there.
    """
    return sort_beside(v, _NO_SIGNS, 0.0, 0.0, workspace)


@njit(cache=True)
def sort_beside(
    v: FloatArray, y: FloatArray, side: float, resolution: float, workspace: Workspace
) -> int:
    """Writes ``order`` and ``keys`` of `workspace`: what is positive beside `v`, largest first.

    That is where the entries have moved a little against ``side * y``. Those that grow stand in
    front of those they tie with, since they are written first and the sort is stable. Entries
    that are 0 up to `resolution` are positive if they grow. With a `side` of 0 nothing moves.

    Returns their number.
    """
    # No literal, for which the sort would be compiled once more.
    size = 0 * v.size
    for attempt in range(0 if side != 0.0 else 1, 2):
        growing = attempt == 0
        for i in range(v.size):
            if side == 0.0 or (y[i] * side < 0.0) == growing:
                if v[i] > resolution or (growing and v[i] >= -resolution):
                    workspace.keys[size] = v[i] if v[i] > 0.0 else 0.0
                    workspace.order[size] = i
                    size += 1
    sort_descending(
        workspace.keys,
        workspace.order,
        workspace.levels,
        workspace.starts,
        workspace.counts,
        size,
    )
    return size


@njit(cache=True)
def pool_adjacent(
    values: FloatArray,
    masses: FloatArray,
    levels: FloatArray,
    block_masses: FloatArray,
    starts: Places,
    size: int,
) -> int:
    """Overwrites `levels`, `block_masses`, `starts`: the non-increasing fit by pooled blocks.

    Minimises ``sum_k masses[k] (fit_k - values[k])^2`` over ``fit_0 >= fit_1 >= ...`` by pooling
    adjacent violators, O(size). Neighbours are pooled only when strictly out of order, so equal
    neighbours stay separate blocks: there the fit is smooth, and moves with each entry alone.

    `values` may be passed as `levels` and `masses` as `block_masses`. Block b has the value
    ``levels[b]``, the mass ``block_masses[b]`` and the positions ``starts[b]:starts[b + 1]``.
    Returns the number of blocks.
    """
    n_blocks = 0
    for k in range(size):
        level = values[k]
        mass = masses[k]
        start = k
        while n_blocks > 0 and levels[n_blocks - 1] < level:
            n_blocks -= 1
            total = block_masses[n_blocks] + mass
            level = (levels[n_blocks] * block_masses[n_blocks] + level * mass) / total
            mass = total
            start = starts[n_blocks]
        levels[n_blocks] = level
        block_masses[n_blocks] = mass
        starts[n_blocks] = start
        n_blocks += 1
    starts[n_blocks] = size
    return n_blocks


@njit(cache=True, internal=True)
def _spread_pooled_dual(
    workspace: Workspace,
    pooling: Pooling,
    start: int,
    stop: int,
    block_mass: float,
    dual: FloatArray,
) -> None:
    """Writes ``dual`` on one pooled block: ``s_i ((v_i - mean v) + mean loss)``.

    The means are taken relative to the block's first entry. Subtracting x from v instead would
    lose the digits of the dual whenever v is much larger than the weights.
    """
    anchor = workspace.keys[start]
    excess = 0.0
    loss = 0.0
    for k in range(start, stop):
        excess += pooling.masses[k] * (workspace.keys[k] - anchor)
        loss += pooling.losses[k]
    offset = (loss - excess) / block_mass
    for k in range(start, stop):
        share = (workspace.keys[k] - anchor) + offset
        dual[workspace.order[k]] = pooling.masses[k] * share


@njit(cache=True)
def _pool_and_clip(
    n_positive: int,
    workspace: Workspace,
    pooling: Pooling,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
) -> int:
    """Writes `x`, unless it is empty, `dual` and `block` at the positive samples.

    ``losses`` and ``masses`` of `pooling` are set.
    """
    keys = workspace.keys
    masses = pooling.masses
    losses = pooling.losses
    levels = workspace.levels
    starts = workspace.starts
    order = workspace.order
    for k in range(n_positive):
        levels[k] = keys[k] - losses[k] / masses[k]
    n_pooled = pool_adjacent(levels, masses, levels, pooling.block_masses, starts, n_positive)
    n_tied_blocks = 0
    for pooled in range(n_pooled):
        start = starts[pooled]
        stop = starts[pooled + 1]
        level = levels[pooled]
        if level <= 0.0:
            # Levels fall from here on: everything behind is clipped too.
            for k in range(start, n_positive):
                sample = order[k]
                if x.size > 0:
                    x[sample] = 0.0
                dual[sample] = masses[k] * keys[k]
                block[sample] = CLIPPED
            break
        if stop - start == 1:
            sample = order[start]
            if x.size > 0:
                x[sample] = level
            dual[sample] = losses[start]
            block[sample] = SINGLE
            continue
        n_tied_blocks += 1
        for k in range(start, stop):
            sample = order[k]
            if x.size > 0:
                x[sample] = level
            block[sample] = n_tied_blocks
        block_mass = pooling.block_masses[pooled]
        _spread_pooled_dual(workspace, pooling, start, stop, block_mass, dual)
    return n_tied_blocks


def keep_inactive(v: FloatArray, x: FloatArray, dual: FloatArray, block: Labels) -> None:
    """Writes `x`, unless it is empty, `dual` and `block` as if no entry of `v` were positive.

    The loss does not act on such entries, nor on those that are no numbers. The others are
    overwritten next.
    """
    if x.size > 0:
        x[:] = v
    dual.fill(0.0)
    block.fill(INACTIVE)


def prox_blocks(
    v: FloatArray,
    penalty: float,
    weights: FloatArray,
    workspace: Workspace,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
    shrink: FloatArray,
) -> int:
    """Overwrites all arrays from `workspace` on: prox of the OWA hinge, with structure.

    ``x = argmin penalty/2 |x - v|^2 + sum_k weights[k] * max(x, 0)_(k)`` and
    ``dual = penalty * (v - x)``, the latter computed without cancellation. O(n), nothing is
    allocated.

    The Jacobian of the prox at `v` follows from `block`: the identity on inactive and single
    samples, 0 on clipped ones, averaging over each tied block. Where several generalised
    Jacobians exist (an entry exactly at a kink) it is one of them.

    Parameters
    ----------
    v : ndarray of shape (n_samples,)
        Finite values; not changed, unless it is ``levels`` of the workspace.
    penalty : float
        Positive factor of the squared distance.
    weights : ndarray of shape (n_samples,)
        Non-negative, non-decreasing: ``weights[k]`` meets the k-th smallest deviation.
        Not checked here.
    workspace : Workspace
        From :func:`make_workspace`, at least of size n_samples.
    x : ndarray of shape (n_samples,) or (0,)
        Receives the prox, unless it is empty; the entries of a tied block are equal to the last
        bit.
    dual : ndarray of shape (n_samples,)
        Receives the projection of ``penalty * v`` on ``P(weights)``.
    block : int32 ndarray of shape (n_samples,)
        Receives -2 (``INACTIVE``: ``v_i <= 0``), -1 (``SINGLE``: ``x_i > 0``, pooled with no
        other), 0 (``CLIPPED``: ``v_i > 0`` and ``x_i == 0``) or the number 1, 2, ... of the tied
        block of size >= 2 and ``x_i > 0``, counted from the largest `x` down.
    shrink : ndarray of shape (n_samples + 1,)
        Receives 1 for each tied block: its members stay equal.

    Returns
    -------
    n_tied_blocks : int
        The largest number in `block`, or 0.
    """
    keep_inactive(v, x, dual, block)
    n_positive = sort_positive(v, workspace)
    return pool_and_clip_equal(n_positive, penalty, weights, workspace, x, dual, block, shrink)


@njit(cache=True)
def pool_and_clip_equal(
    n_positive: int,
    penalty: float,
    weights: FloatArray,
    workspace: Workspace,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
    shrink: FloatArray,
) -> int:
    """:func:`_pool_and_clip` where all masses are 1: losses are read where they stand."""
    keys, order = workspace.keys, workspace.order
    levels, starts = workspace.levels, workspace.starts
    step = 1.0 / penalty
    last = weights.size - 1
    # `pool_adjacent` for masses that are all 1.
    n_pooled = 0
    for k in range(n_positive):
        level = keys[k] - step * weights[last - k]
        start = k
        while n_pooled > 0 and levels[n_pooled - 1] < level:
            n_pooled -= 1
            before = start - starts[n_pooled]
            own = k + 1 - start
            level = (levels[n_pooled] * before + level * own) / (before + own)
            start = starts[n_pooled]
        levels[n_pooled] = level
        starts[n_pooled] = start
        n_pooled += 1
    starts[n_pooled] = n_positive
    n_tied_blocks = 0
    for pooled in range(n_pooled):
        start = starts[pooled]
        stop = starts[pooled + 1]
        level = levels[pooled]
        if level <= 0.0:
            # Levels fall from here on: everything behind is clipped too.
            for k in range(start, n_positive):
                sample = order[k]
                if x.size > 0:
                    x[sample] = 0.0
                dual[sample] = keys[k] * penalty
                block[sample] = CLIPPED
            break
        if stop - start == 1:
            sample = order[start]
            if x.size > 0:
                x[sample] = level
            dual[sample] = step * weights[last - start] * penalty
            block[sample] = SINGLE
            continue
        n_tied_blocks += 1
        shrink[n_tied_blocks] = 1.0
        # As in `_spread_pooled_dual`.
        anchor = keys[start]
        excess = 0.0
        loss = 0.0
        for k in range(start, stop):
            excess += keys[k] - anchor
            loss += step * weights[last - k]
        offset = (loss - excess) / (stop - start)
        for k in range(start, stop):
            sample = order[k]
            if x.size > 0:
                x[sample] = level
            block[sample] = n_tied_blocks
            dual[sample] = ((keys[k] - anchor) + offset) * penalty
    return n_tied_blocks


@njit(cache=True, internal=True)
def charge_copies(
    size: int,
    weights: FloatArray,
    sums: FloatArray,
    mass: FloatArray,
    workspace: Workspace,
    costs: FloatArray,
) -> None:
    """Writes what the first `size` samples in ``order`` pay for all of their copies.

    `sums` are those of the largest 0, 1, 2, ... of the `weights`.
    """
    last = weights.size - 1
    reached = 0
    for k in range(size):
        number = int(mass[workspace.order[k]])
        # A single cost without a difference.
        costs[k] = (
            weights[last - reached] if number == 1 else sums[reached + number] - sums[reached]
        )
        reached += number


@njit(cache=True, internal=True)
def pool_and_clip_copies(
    n_positive: int,
    penalty: float,
    weights: FloatArray,
    sums: FloatArray,
    mass: FloatArray,
    workspace: Workspace,
    pooling: Pooling,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
    shrink: FloatArray,
) -> int:
    """:func:`pool_and_clip_equal` for samples that stand for a whole number of copies each."""
    charge_copies(n_positive, weights, sums, mass, workspace, pooling.losses)
    step = 1.0 / penalty
    for k in range(n_positive):
        pooling.losses[k] *= step
        pooling.masses[k] = mass[workspace.order[k]]
    n_tied_blocks = _pool_and_clip(n_positive, workspace, pooling, x, dual, block)
    for k in range(n_positive):
        dual[workspace.order[k]] *= penalty
    for k in range(1, n_tied_blocks + 1):
        shrink[k] = 1.0
    return n_tied_blocks


def prox_blocks_weighted(
    v: FloatArray,
    sample_weight: FloatArray,
    totals: FloatArray,
    step: float,
    n_positive: int,
    x: FloatArray,
    dual: FloatArray,
    block: Labels,
    workspace: Workspace,
    pooling: Pooling,
) -> int:
    """Overwrites the arrays from `x` on: :func:`prox_blocks` with sample weights.

    ``x = argmin 1/2 sum_i s_i (x_i - v_i)^2 + step * sum_k totals[k] * max(x_order[k], 0)`` over
    the vectors ordered like `v`, and ``dual = s * (v - x)``. The totals depend on the order of
    `v`, so the caller first runs ``n_positive = sort_positive(v, workspace)``, hands the weights
    out along ``workspace.order[:n_positive]`` and then calls this with the same workspace.

    Parameters
    ----------
    v : ndarray of shape (n_samples,)
        The values given to :func:`sort_positive`; not changed.
    sample_weight : ndarray of shape (n_samples,)
        Positive, in the order of the samples.
    totals : ndarray of shape (>= n_positive,)
        ``totals[k]`` is the sum of the rank weights that sample ``workspace.order[k]`` and its
        copies occupy: descending positions, the largest deviation first. ``totals / sample
        weight`` is non-increasing when the weights are non-decreasing; not checked here.
    step : float
        Positive factor of the loss.
    n_positive : int
        What :func:`sort_positive` returned.
    x, dual, block, workspace
        As in :func:`prox_blocks` with ``penalty = 1 / step``, but for a dual that is not
        multiplied by it; and so is what is returned.
    pooling : Pooling
        From :func:`make_pooling`.
    """
    np.multiply(totals[:n_positive], step, out=pooling.losses[:n_positive])
    np.take(sample_weight, workspace.order[:n_positive], out=pooling.masses[:n_positive])
    keep_inactive(v, x, dual, block)
    return _pool_and_clip(n_positive, workspace, pooling, x, dual, block)
