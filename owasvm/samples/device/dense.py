"""Matrices on a device: factorised, solved with, centred within tied blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from owasvm.samples.device.place import Array, Place
from owasvm.samples.operators import ActiveSet

__all__ = ["Ties", "factorise", "lift_diagonal", "solve_lower", "solve_with", "tied_parts"]

# Rows of tied blocks that are centred at a time.
_CENTRED_ROWS = 512
# A matrix that cannot be factorised is lifted by this share of its trace, then ten times as much.
_FIRST_LIFT = 1e-15
_LEAST_LIFT = 1e-290
_MAX_LIFTS = 16


class Ties:
    """The matrix R of an active set, for vectors on the device."""

    def __init__(self, active: ActiveSet, place: Place) -> None:
        self._xp = place.xp
        self._first = first = int(active.offsets[1])
        sizes = np.diff(active.offsets[1:])
        label = np.repeat(np.arange(sizes.size), sizes)
        tie = active.tie[first:]
        squares = np.bincount(label, weights=tie * tie, minlength=sizes.size)
        self._any = sizes.size > 0
        self._tie, self._label = place.send(tie), place.send(label)
        self._last = place.send(np.cumsum(sizes) - 1)
        self._factor = place.send(active.shrink[1 : sizes.size + 1] / squares)

    def apply(self, vector: Array) -> Array:
        """``R vector``, or R times a matrix.

        Sums over blocks are differences of cumulated sums: good to the last digits of the largest
        entries, which is enough for an iteration.
        """
        if not self._any:
            return vector
        xp = self._xp
        head, tied = vector[: self._first, ...], vector[self._first :, ...]
        shape = (-1, *(1,) * (vector.ndim - 1))
        tie, factor = xp.reshape(self._tie, shape), xp.reshape(self._factor, shape)
        sums = xp.take(xp.cumulative_sum(tie * tied, axis=0), self._last, axis=0)
        along = factor * xp.concat((sums[:1, ...], sums[1:, ...] - sums[:-1, ...]))
        return xp.concat((head, tied - tie * xp.take(along, self._label, axis=0)))


def tied_parts(active: ActiveSet, place: Place) -> Iterator[tuple[slice, Array, Array]]:
    """Tied blocks, a few at a time: their rows, their directions as columns, their `shrink`.

    R takes ``ties @ (shrink * (ties' v))`` away from the rows of a part.
    """
    xp, offsets = place.xp, active.offsets
    n_blocks = offsets.size - 2
    sizes = np.diff(offsets)
    label = np.repeat(np.arange(sizes.size), sizes)
    squares = np.bincount(label, weights=active.tie**2, minlength=sizes.size)
    labels = place.send(label)[:, None]
    directions = place.send(active.tie / np.sqrt(squares[label]))[:, None]
    shrink = place.send(active.shrink)
    first = 1
    while first <= n_blocks:
        last = first
        while last < n_blocks and offsets[last + 2] - offsets[first] <= _CENTRED_ROWS:
            last += 1
        rows = slice(int(offsets[first]), int(offsets[last + 1]))
        block = xp.arange(first, last + 1, device=place.device)
        ties = xp.where(labels[rows, :] == block, directions[rows, :], 0.0 * directions[:1, :])
        yield rows, ties, shrink[first : last + 1]
        first = last + 1


def lift_diagonal(matrix: Array, lift: float | Array, place: Place) -> None:
    """Change in place: add a number, or one for every row, to the diagonal."""
    xp, size = place.xp, int(matrix.shape[0])
    lifts = place.send(np.full((size, 1), lift)) if isinstance(lift, float) else lift[:, None]
    eye = xp.eye(min(_CENTRED_ROWS, size), dtype=xp.float64, device=place.device)
    for start in range(0, size, _CENTRED_ROWS):
        part = slice(start, min(start + _CENTRED_ROWS, size))
        n_rows = part.stop - start
        matrix[part, part] = matrix[part, part] + eye[:n_rows, :n_rows] * lifts[part, :]


def factorise(matrix: Array, place: Place) -> Array:
    """Lower Cholesky factor of a matrix that is positive definite up to rounding."""
    xp = place.xp
    lift = max(_FIRST_LIFT * float(xp.linalg.trace(matrix)), _LEAST_LIFT)
    for _ in range(_MAX_LIFTS):
        try:
            factor = xp.linalg.cholesky(matrix)
            if bool(xp.isfinite(factor[-1, -1])):
                return factor
        except (np.linalg.LinAlgError, RuntimeError):
            # torch's error is a RuntimeError.
            pass
        lift_diagonal(matrix, lift, place)
        lift *= 10.0
    return xp.full_like(matrix, xp.nan)


def solve_lower(factor: Array, sides: Array, place: Place, *, transposed: bool = False) -> Array:
    """Solve with a lower triangular matrix, or with its transpose.

    The array API has no triangular systems; torch has.
    """
    linalg = place.xp.linalg
    matrix = factor.T if transposed else factor
    if hasattr(linalg, "solve_triangular"):
        return linalg.solve_triangular(matrix, sides, upper=transposed)
    return linalg.solve(matrix, sides)


def solve_with(factor: Array, sides: Array, place: Place) -> Array:
    """Solve with the matrix of a lower Cholesky factor."""
    return solve_lower(factor, solve_lower(factor, sides, place), place, transposed=True)
