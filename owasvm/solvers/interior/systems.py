r"""The linear systems of the interior point method.

With ``D`` the weights of the pairs, ``d`` and ``h`` their sums over levels and samples (``h`` with
the curvature of the bounds on the levels), a step solves

.. math::

    \Delta a = d \Delta u - D \Delta t + k, \qquad
    h \Delta t = D^T \Delta u + g, \qquad
    \Delta u = -Y (\Phi \Delta w + \Delta b), \qquad
    \Delta w = \Phi^T Y (a + \Delta a) - w, \qquad
    y^T (a + \Delta a) = 0 .

Few features solve for w, kernels for a.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.samples import Operator
from owasvm.samples.operators import (
    Lifted,
    factorise_definite,
    solve_factorised,
)

FloatArray = NDArray[np.float64]

__all__ = ["FeatureSystem", "KernelSystem", "Move", "System", "TruncatedSystem", "Weights"]

# Rows that are held a second time, scaled.
_BLOCK_ROWS = 4096
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
    """How shares follow ``u_i - t_g``; their sums by sample, and by level with the bounds."""

    weight: FloatArray
    by_sample: FloatArray
    by_level: FloatArray

    def curve(self, vector: FloatArray) -> FloatArray:
        """The change of the dual point that changes of the slacks make, levels let loose."""
        pulled = (vector @ self.weight) / self.by_level
        return self.by_sample * vector - self.weight @ pulled


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

    def locate(self, coef: FloatArray) -> FloatArray:
        """The w of balanced coefficients."""

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        """Take this w, of these coefficients."""

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


class _ScaledFactor:
    """A positive definite matrix, scaled to a diagonal of ones and factorised in place."""

    def __init__(self, matrix: FloatArray) -> None:
        self._scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        matrix *= self._scale[:, np.newaxis]
        matrix *= self._scale
        self._factor = factorise_definite(matrix)

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

    def locate(self, coef: FloatArray) -> FloatArray:
        return coef @ self._rows[:, 1:]

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        self.w = w.copy()
        self.coef = coef.copy()

    def begin(self, dual: FloatArray, gap: float) -> float:
        del gap
        self._dual = dual
        self._lacking = dual @ self._rows
        self._lacking[1:] -= self.w
        return float(self._lacking[1:] @ self._lacking[1:])

    def factorise(self, weights: Weights) -> None:
        """``I + X'MX``, bordered by the intercept."""
        rows = self._rows
        # Products of a matrix with itself take half the time of others.
        coupled = rows.T @ weights.weight
        coupled /= np.sqrt(weights.by_level)
        matrix = coupled @ coupled.T
        np.negative(matrix, out=matrix)
        for first in range(0, rows.shape[0], _BLOCK_ROWS):
            part = slice(first, first + _BLOCK_ROWS)
            scaled = rows[part] * np.sqrt(weights.by_sample[part])[:, np.newaxis]
            matrix += scaled.T @ scaled
        features = np.arange(1, rows.shape[1])
        matrix[features, features] += 1.0
        self._weights = weights
        self._factor = _ScaledFactor(matrix)

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        weights = self._weights
        constant = by_sample - weights.weight @ (by_level / weights.by_level)
        solved = self._factor.solve(constant @ self._rows + self._lacking)
        slack = -(self._rows @ solved)
        level = (slack @ weights.weight + by_level) / weights.by_level
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

    def begin(self, dual: FloatArray, gap: float) -> float:
        beyond = np.cumsum(np.square(dual @ self._all_rows)[:0:-1])
        wanted = int(np.count_nonzero(beyond > _BEYOND * gap))
        self._use(max(self.w.size, wanted))
        return super().begin(dual, gap)


class KernelSystem:
    """w by its coefficients, for samples known by their (centred) kernel."""

    def __init__(self, operator: Operator, y: FloatArray) -> None:
        self._operator = operator
        self._y = y
        self.reset()

    def reset(self) -> None:
        self.coef = np.zeros(self._y.size)

    def _product(self, dual: FloatArray) -> FloatArray:
        """``Y K Y dual``."""
        return self._y * self._operator.vector(self._y * dual).scores

    @property
    def w(self) -> FloatArray:
        return self.coef

    def locate(self, coef: FloatArray) -> FloatArray:
        return coef

    def go_to(self, w: FloatArray, coef: FloatArray) -> None:
        del w
        self.coef = coef.copy()

    def begin(self, dual: FloatArray, gap: float) -> float:
        del gap
        self._lacking = self.coef - dual
        self._pull = self._product(self._lacking)
        self._imbalance = float(self._y @ dual)
        return max(float(self._lacking @ self._pull), 0.0)

    def factorise(self, weights: Weights) -> None:
        y = self._y
        weight, by_sample, by_level = weights
        self._inverse = 1.0 / np.maximum(by_sample, 1e-280)
        self._lifted: Lifted = self._operator.lift(self._inverse)
        self._shares = weight * self._inverse[:, np.newaxis]
        # In the order of LAPACK.
        columns = np.empty((by_level.size + 1, y.size)).T
        columns[:, :-1] = self._shares * y[:, np.newaxis]
        columns[:, -1] = 1.0
        self._half = self._lifted.solve_half(columns)
        matrix = self._half.T @ self._half
        size = by_level.size
        roots = weight * np.sqrt(self._inverse)[:, np.newaxis]
        matrix[:size, :size] -= roots.T @ roots
        matrix[np.arange(size), np.arange(size)] += by_level
        self._factor = _ScaledFactor(matrix)

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        side = by_sample * self._inverse + self._pull
        half = self._lifted.solve_half((self._y * side)[:, np.newaxis])[:, 0]
        small = half @ self._half
        small[:-1] += by_level - by_sample @ self._shares
        small[-1] += self._imbalance
        solved = self._factor.solve(small)
        level, intercept = solved[:-1], float(solved[-1])
        change = self._y * self._lifted.solve_rest(half - self._half @ solved)
        coef = change - self._lacking
        slack = -self._product(coef) - intercept * self._y
        return Move(coef, slack, level, intercept)

    def advance(self, step: float, move: Move, dual: FloatArray) -> None:
        del dual
        self.coef += step * move.w
