r"""The linear systems of the interior point method.

With ``D`` the weights of the pairs, level by level, ``d`` and ``h`` their sums over levels and
samples (``h`` with the curvature of the bounds on the levels), a step solves

.. math::

    \Delta a = d \Delta u - D^T \Delta t + k, \qquad
    h \Delta t = D \Delta u + g, \qquad
    \Delta u = -Y (\Phi \Delta w + \Delta b), \qquad
    \Delta w = \Phi^T Y (a + \Delta a) - w, \qquad
    y^T (a + \Delta a) = 0 .

Few features solve for w, kernels for a.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from owasvm.samples import Operator
from owasvm.samples.operators import (
    Lifted,
    factorise_definite,
    solve_factorised,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["FeatureSystem", "KernelSystem", "Move", "System", "TruncatedSystem", "Weights"]

# Rows that are held a second time, scaled: few enough to stay in the processor's memory.
_BLOCK_ROWS = 256
# Levels that are near each other meet about the same samples; all of them, most often, where more
# than this share of the pairs do.
_BLOCK_LEVELS = 16
_DENSE = 0.6
# What columns that are left out may lack, as a share of the gap: with 0.1 and 0.5 of it 32 slow
# fits took 9 % and 24 % more time, in more iterations and more second rounds.
_BEYOND = 0.02


class Move(NamedTuple):
    """Steps of w (in the system's own coordinates), slacks, levels and intercept."""

    w: FloatArray
    slack: FloatArray
    level: FloatArray
    intercept: float


class Weights(NamedTuple):
    """How shares follow ``u_i - t_g``, by level and sample; their sums, by level with the bounds.

    ``spans`` holds the samples that each level meets, first and behind the last: weights of others
    are 0.
    """

    weight: FloatArray
    by_sample: FloatArray
    by_level: FloatArray
    spans: IntArray

    def couple(self, rows: FloatArray) -> FloatArray:
        """Weights times rows of all samples, level by level."""
        n_levels, n_samples = self.weight.shape
        if int(np.sum(self.spans[:, 1] - self.spans[:, 0])) > _DENSE * n_levels * n_samples:
            return self.weight @ rows
        coupled = np.empty((n_levels, rows.shape[1]))
        for first in range(0, n_levels, _BLOCK_LEVELS):
            part = slice(first, first + _BLOCK_LEVELS)
            met = slice(int(self.spans[part, 0].min()), int(self.spans[part, 1].max()))
            np.matmul(self.weight[part, met], rows[met], out=coupled[part])
        return coupled


class System(Protocol):
    """Holds w, in coordinates of its own, and solves for steps.

    ``coef`` are balanced coefficients of w, without the signs of the labels. They are next to the
    dual point: steps take them to where it would be after a full one.
    """

    coef: FloatArray

    @property
    def w(self) -> FloatArray:
        """In coordinates of the system."""

    def reset(self) -> None:
        """Take w = 0."""

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        """Take this w, and coefficients near it."""

    def begin_near(
        self, w: FloatArray, slack: FloatArray, off: float
    ) -> tuple[FloatArray, float, FloatArray]:
        """A start at w: with an intercept for which its slacks are near given ones.

        Returns w, of which what matters less than `off`, a gap, may be left out, the intercept and
        the slacks.
        """

    def begin(self, dual: FloatArray, gap: float) -> float:
        """Take note of the current point; the squared distance of w to the one of `dual`.

        `gap` is that of the levelled problem there.
        """

    def factorise(self, weights: Weights) -> None:
        """Prepare for steps with given weights."""

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        """The step for right-hand sides k and g."""

    def advance(self, step: float, move: Move, dual: FloatArray) -> None:
        """Move w; `dual` is the point that the step leads to."""


def _find_intercept(
    slack: FloatArray, scores: FloatArray, y: FloatArray
) -> tuple[float, FloatArray]:
    """The intercept with which (signed) scores are near given slacks, and the slacks with it."""
    intercept = float(np.median(y * (1.0 - slack - scores)))
    return intercept, 1.0 - scores - intercept * y


class _ScaledFactor:
    """A positive definite matrix, scaled to a diagonal of ones and factorised.

    Parameters
    ----------
    make : callable
        Makes the matrix, of which the upper triangle is read: once more if rounding has left it
        indefinite.
    """

    def __init__(self, make: Callable[[], FloatArray]) -> None:
        matrix = make()
        self._scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        self._factor = factorise_definite(self._apply(matrix), lambda: self._apply(make()))

    def _apply(self, matrix: FloatArray) -> FloatArray:
        """Scale in place."""
        matrix *= self._scale[:, np.newaxis]
        matrix *= self._scale
        return matrix

    def solve(self, side: FloatArray) -> FloatArray:
        """The solution for a right-hand side."""
        return solve_factorised(self._factor, (self._scale * side)[None])[0] * self._scale


class FeatureSystem:
    """w by its entries, for samples with few (centred) features.

    The labels are the first column of the rows, so that the intercept is an entry like the others,
    but for the norm of w.

    Parameters
    ----------
    signed_rows : ndarray of shape (n_samples, n_features)
        The samples, each times its label.
    y : ndarray of shape (n_samples,)
        The labels.
    """

    def __init__(self, signed_rows: FloatArray, y: FloatArray) -> None:
        self._rows = np.column_stack([y, signed_rows])
        self.reset()

    def reset(self) -> None:
        self.w = np.zeros(self._rows.shape[1] - 1)
        self.coef = np.zeros(self._rows.shape[0])

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        self.w = w.copy()
        self.coef = coef.copy()

    def begin_near(
        self, w: FloatArray, slack: FloatArray, off: float
    ) -> tuple[FloatArray, float, FloatArray]:
        w = self._shorten(w, off)
        scores = self._rows[:, 1 : w.size + 1] @ w
        return w, *_find_intercept(slack, scores, self._rows[:, 0])

    def _shorten(self, w: FloatArray, off: float) -> FloatArray:
        """Without entries that may be left out."""
        del off
        return w

    def begin(self, dual: FloatArray, gap: float) -> float:
        del gap
        self._dual = dual
        self._lacking = dual @ self._rows
        self._lacking[1:] -= self.w
        return float(self._lacking[1:] @ self._lacking[1:])

    def factorise(self, weights: Weights) -> None:
        self._weights = weights
        self._factor = _ScaledFactor(self._make_matrix)

    def _make_matrix(self) -> FloatArray:
        """The upper triangle of ``I + X'MX``, bordered by the intercept."""
        rows, weights = self._rows, self._weights
        coupled = weights.couple(rows)
        coupled /= np.sqrt(weights.by_level)[:, np.newaxis]
        # Products of a matrix with itself, of which one triangle is written.
        matrix = dsyrk(-1.0, coupled.T, lower=1)
        roots = np.sqrt(weights.by_sample)[:, np.newaxis]
        for first in range(0, rows.shape[0], _BLOCK_ROWS):
            part = slice(first, first + _BLOCK_ROWS)
            scaled = rows[part] * roots[part]
            matrix = dsyrk(1.0, scaled.T, 1.0, matrix, lower=1, overwrite_c=1)
        features = np.arange(1, rows.shape[1])
        matrix[features, features] += 1.0
        return np.asarray(matrix.T)

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        weights = self._weights
        constant = by_sample - (by_level / weights.by_level) @ weights.weight
        solved = self._factor.solve(constant @ self._rows + self._lacking)
        slack = -(self._rows @ solved)
        level = (weights.weight @ slack + by_level) / weights.by_level
        return Move(solved[1:], slack, level, float(solved[0]))

    def advance(self, step: float, move: Move, dual: FloatArray) -> None:
        self.w += step * move.w
        self.coef += (dual - self._dual) + step * (self._dual - self.coef)


class TruncatedSystem(FeatureSystem):
    """w by its entries, for rows whose first columns say most: as many as the gap calls for.

    Without the columns from k on, the squared norm that belongs to a dual point a lacks
    ``sum_j (a'X)_j^2`` over them: next to nothing as long as the gap is large. They join with
    entries of w that are 0, so that no slack changes.
    """

    def __init__(self, signed_rows: FloatArray, y: FloatArray) -> None:
        self._all_rows = np.column_stack([y, signed_rows])
        self._rows = self._all_rows
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._use(0)

    def _use(self, width: int) -> None:
        self._rows = self._all_rows[:, : width + 1]
        self.w = np.concatenate([self.w, np.zeros(width)])[:width]

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        super().go_to(w, coef)
        self._use(w.size)

    def _shorten(self, w: FloatArray, off: float) -> FloatArray:
        self._rows = self._all_rows
        return w[: _count_columns(w, off)]

    def begin(self, dual: FloatArray, gap: float) -> float:
        wanted = _count_columns(dual @ self._all_rows[:, 1:], gap)
        self._use(max(self.w.size, wanted))
        return super().begin(dual, gap)


def _count_columns(w: FloatArray, gap: float) -> int:
    """How many of the first entries of w matter."""
    return int(np.count_nonzero(np.cumsum(np.square(w[::-1])) > _BEYOND * gap))


class KernelSystem:
    """w by its coefficients, for samples known by their (centred) kernel.

    Parameters
    ----------
    operator : Operator
        The samples.
    y : ndarray of shape (n_samples,)
        The labels, in the order of the system.
    order : ndarray of shape (n_samples,) or None, default=None
        Where the samples of the system stand among those of the operator: in the same order.
    """

    def __init__(self, operator: Operator, y: FloatArray, order: IntArray | None = None) -> None:
        self._operator = operator
        self._y = y
        self._order = np.arange(y.size) if order is None else order
        self.reset()

    def reset(self) -> None:
        self.coef = np.zeros(self._y.size)

    def _place(self, values: FloatArray) -> FloatArray:
        """Values of samples, along the last axis, in the order of the operator."""
        placed = np.empty_like(values)
        placed[..., self._order] = values
        return placed

    def _product(self, dual: FloatArray) -> FloatArray:
        """``Y K Y dual``."""
        return self._y * self._operator.vector(self._place(self._y * dual)).scores[self._order]

    @property
    def w(self) -> FloatArray:
        return self.coef

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        del coef
        self.coef = w.copy()

    def begin_near(
        self, w: FloatArray, slack: FloatArray, off: float
    ) -> tuple[FloatArray, float, FloatArray]:
        del off
        return w, *_find_intercept(slack, self._product(w), self._y)

    def begin(self, dual: FloatArray, gap: float) -> float:
        del gap
        self._lacking = self.coef - dual
        self._pull = self._product(self._lacking)
        self._imbalance = float(self._y @ dual)
        return max(float(self._lacking @ self._pull), 0.0)

    def factorise(self, weights: Weights) -> None:
        weight, by_sample, by_level, _ = weights
        self._inverse = 1.0 / np.maximum(by_sample, 1e-280)
        self._lifted: Lifted = self._operator.lift(self._place(self._inverse))
        self._shares = weight * self._inverse
        columns = np.ones((by_level.size + 1, self._y.size))
        columns[:-1] = self._place(self._shares * self._y)
        # In the order of LAPACK.
        self._half = self._lifted.solve_half(columns.T)
        # Small, and often indefinite by rounding where there are many levels.
        self._factor = _ScaledFactor(self._make_matrix(weight, by_level).copy)

    def _make_matrix(self, weight: FloatArray, by_level: FloatArray) -> FloatArray:
        """For the levels and the intercept."""
        matrix = self._half.T @ self._half
        size = by_level.size
        roots = weight * np.sqrt(self._inverse)
        matrix[:size, :size] -= roots @ roots.T
        matrix[np.arange(size), np.arange(size)] += by_level
        return matrix

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        side = self._place(self._y * (by_sample * self._inverse + self._pull))
        half = self._lifted.solve_half(side[:, np.newaxis])[:, 0]
        small = half @ self._half
        small[:-1] += by_level - self._shares @ by_sample
        small[-1] += self._imbalance
        solved = self._factor.solve(small)
        level, intercept = solved[:-1], float(solved[-1])
        change = self._y * self._lifted.solve_rest(half - self._half @ solved)[self._order]
        coef = change - self._lacking
        slack = -self._product(coef) - intercept * self._y
        return Move(coef, slack, level, intercept)

    def advance(self, step: float, move: Move, dual: FloatArray) -> None:
        del dual
        self.coef += step * move.w
