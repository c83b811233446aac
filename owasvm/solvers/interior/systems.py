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

__all__ = ["FeatureSystem", "KernelSystem", "Move", "System", "Weights"]

# Rows that are held a second time, scaled.
_BLOCK_ROWS = 4096


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
    """Holds w, in coordinates of its own, and solves for steps."""

    w: FloatArray

    def coefficients(self, w: FloatArray, dual: FloatArray) -> FloatArray:
        """Balanced coefficients, without the signs of the labels, of a `w` near that of `dual`."""

    def go_to(self, w: FloatArray) -> None:
        """Take this w."""

    def begin(self, dual: FloatArray) -> float:
        """Take note of the current point; the squared distance of w to the one of `dual`."""

    def factorise(self, weights: Weights) -> None:
        """Prepare for steps with given weights."""

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        """The step for right-hand sides k and g."""

    def advance(self, step: float, move: Move) -> None:
        """Move w."""


class _ScaledFactor:
    """A positive definite matrix, scaled to a diagonal of ones and factorised."""

    def __init__(self, matrix: FloatArray) -> None:
        self._scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        self._factor = factorise_definite(matrix * self._scale[:, np.newaxis] * self._scale)

    def solve(self, side: FloatArray) -> FloatArray:
        """The solution for a right-hand side."""
        return solve_factorised(self._factor, (self._scale * side)[None])[0] * self._scale


def _factorise_rows(rows: FloatArray, y: FloatArray, weights: Weights) -> _ScaledFactor:
    """``I + X'MX``, bordered by the intercept."""
    size = rows.shape[1]
    coupled = rows.T @ weights.weight
    matrix = np.empty((size + 1, size + 1))
    matrix[:size, :size] = -(coupled / weights.by_level) @ coupled.T
    for first in range(0, y.size, _BLOCK_ROWS):
        part = slice(first, first + _BLOCK_ROWS)
        scaled = rows[part] * np.sqrt(weights.by_sample[part])[:, np.newaxis]
        matrix[:size, :size] += scaled.T @ scaled
    matrix[np.arange(size), np.arange(size)] += 1.0
    border = weights.curve(y)
    matrix[:size, size] = matrix[size, :size] = border @ rows
    matrix[size, size] = float(y @ border)
    return _ScaledFactor(matrix)


class FeatureSystem:
    """w by its entries, for samples with few (centred) features.

    Parameters
    ----------
    signed_rows : ndarray of shape (n_samples, n_features)
        The samples, each times its label.
    y : ndarray of shape (n_samples,)
        The labels.
    """

    def __init__(self, signed_rows: FloatArray, y: FloatArray) -> None:
        self._rows = signed_rows
        self._y = y
        self.w = np.zeros(signed_rows.shape[1])

    def coefficients(self, w: FloatArray, dual: FloatArray) -> FloatArray:
        columns = np.column_stack([self._rows, self._y])
        factor = factorise_definite(columns.T @ columns)
        coef = dual
        for _ in range(2):
            lacking = np.append(w, 0.0) - coef @ columns
            coef = coef + columns @ solve_factorised(factor, lacking[None])[0]
        return coef

    def go_to(self, w: FloatArray) -> None:
        self.w = w.copy()

    def begin(self, dual: FloatArray) -> float:
        self._residual = self.w - dual @ self._rows
        self._imbalance = float(self._y @ dual)
        return float(self._residual @ self._residual)

    def factorise(self, weights: Weights) -> None:
        self._weights = weights
        self._factor = _factorise_rows(self._rows, self._y, weights)

    def solve(self, by_sample: FloatArray, by_level: FloatArray) -> Move:
        weights = self._weights
        constant = by_sample - weights.weight @ (by_level / weights.by_level)
        side = np.append(
            constant @ self._rows - self._residual,
            float(self._y @ constant) + self._imbalance,
        )
        solved = self._factor.solve(side)
        w, intercept = solved[:-1], float(solved[-1])
        slack = -(self._rows @ w + intercept * self._y)
        level = (slack @ weights.weight + by_level) / weights.by_level
        return Move(w, slack, level, intercept)

    def advance(self, step: float, move: Move) -> None:
        self.w += step * move.w


class KernelSystem:
    """w by its coefficients, for samples known by their (centred) kernel."""

    def __init__(self, operator: Operator, y: FloatArray) -> None:
        self._operator = operator
        self._y = y
        self.w = np.zeros(y.size)

    def coefficients(self, w: FloatArray, dual: FloatArray) -> FloatArray:
        del dual
        return w

    def _product(self, dual: FloatArray) -> FloatArray:
        """``Y K Y dual``."""
        return self._y * self._operator.vector(self._y * dual).scores

    def go_to(self, w: FloatArray) -> None:
        self.w = w.copy()

    def begin(self, dual: FloatArray) -> float:
        self._lacking = self.w - dual
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

    def advance(self, step: float, move: Move) -> None:
        self.w += step * move.w
