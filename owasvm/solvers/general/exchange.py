r"""Classical SVMs with a cost per sample, fast and rough: exchanges between two samples at a time.

The dual problem ``max y'a - 1/2 a'Ka`` with signed coefficients a, a between 0 and
``y_i cost_i`` and summing to 0, is climbed by moving weight from one sample to another: the one
with the largest residual ``y_i - <w, phi(x_i)>`` takes, the one that gains most gives (SMO with
the second-order choice of Fan, Chen and Lin). Residuals are kept for all samples, also for those
whose cost is 0, because ranking needs them next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

# Stands for infinity, which a compiler may not compute with.
HUGE = 1e300
# Two samples in the same place have no curvature between them.
_LEAST_CURVATURE = 1e-12


@njit(cache=True, internal=True, fastmath={"nnan", "nsz"})
def _advance(
    residual: FloatArray,
    gram: FloatArray,
    taker: int,
    giver: int,
    amount: float,
    rise: FloatArray,
    fall: FloatArray,
) -> tuple[float, float]:
    """Overwrites `residual`; the largest that can rise and the smallest that can fall."""
    top = -HUGE
    bottom = HUGE
    for k in range(residual.size):
        value = residual[k] - amount * (gram[taker, k] - gram[giver, k])
        residual[k] = value
        top = max(top, value + rise[k])
        bottom = min(bottom, value + fall[k])
    return top, bottom


@njit(cache=True, internal=True, fastmath={"nnan", "nsz"})
def _measure_gains(
    residual: FloatArray,
    gram: FloatArray,
    taker: int,
    diagonal: FloatArray,
    fall: FloatArray,
    top: float,
    own: float,
    gains: FloatArray,
) -> float:
    """Overwrites `gains`; what an exchange with each sample would gain, and the largest."""
    best = 0.0
    for k in range(residual.size):
        distance = max(top - residual[k] - fall[k], 0.0)
        gain = (
            distance * distance / max(own + diagonal[k] - 2.0 * gram[taker, k], _LEAST_CURVATURE)
        )
        gains[k] = gain
        best = max(best, gain)
    return best


@njit(cache=True, internal=True)
def _place(values: FloatArray, shifts: FloatArray, value: float) -> int:
    """Where a sum of two arrays has a value; -1 if nowhere, as among numbers that overflow."""
    for k in range(values.size):
        if values[k] + shifts[k] == value:
            return k
    return -1


@njit(cache=True, internal=True)
def _balance(coef: FloatArray) -> None:
    """Overwrites `coef`: the heavier side is scaled down until all sum to 0."""
    plus = 0.0
    minus = 0.0
    for k in range(coef.size):
        value = coef[k]
        if value > 0.0:
            plus += value
        else:
            minus -= value
    if plus != minus:
        heavier = 1.0 if plus > minus else -1.0
        scale = min(plus, minus) / max(plus, minus)
        for k in range(coef.size):
            if heavier * coef[k] > 0.0:
                coef[k] *= scale


@njit(cache=True, internal=True)
def set_out(
    gram: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Overwrites `low` and `high`, the limits of `coef`, which is put between them.

    `residual` follows `coef`.
    """
    n_samples = coef.size
    before = coef.copy()
    for k in range(n_samples):
        low[k] = min(y[k] * costs[k], 0.0)
        high[k] = max(y[k] * costs[k], 0.0)
        coef[k] = min(max(coef[k], low[k]), high[k])
    _balance(coef)
    for k in range(n_samples):
        change = coef[k] - before[k]
        if change != 0.0:
            for other in range(n_samples):
                residual[other] -= change * gram[k, other]


@njit(cache=True, internal=True)
def climb(
    gram: FloatArray,
    low: FloatArray,
    high: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    accuracy: float,
    max_exchanges: int,
) -> tuple[int, float, float]:
    """Overwrites `coef` and `residual` by exchanges.

    Returns their number, the largest residual that can rise and the smallest that can fall.
    """
    n_samples = coef.size
    diagonal = np.empty(n_samples)
    rise = np.empty(n_samples)
    fall = np.empty(n_samples)
    gains = np.empty(n_samples)
    nothing = np.empty(n_samples)
    for k in range(n_samples):
        diagonal[k] = gram[k, k]
        nothing[k] = 0.0
        rise[k] = 0.0 if coef[k] < high[k] else -HUGE
        fall[k] = 0.0 if coef[k] > low[k] else HUGE
    top, bottom = _advance(residual, gram, 0, 0, 0.0, rise, fall)
    for count in range(max_exchanges):
        # Not the other way round: a comparison with what is not a number is False.
        if not (top - bottom > accuracy and top > -0.5 * HUGE and bottom < 0.5 * HUGE):
            return count, top, bottom
        i = _place(residual, rise, top)
        best = _measure_gains(residual, gram, i, diagonal, fall, top, diagonal[i], gains)
        j = _place(gains, nothing, best)
        if i < 0 or j < 0 or best <= 0.0:
            return count, top, bottom
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * gram[i, j], _LEAST_CURVATURE)
        amount = (top - residual[j]) / curvature
        to_take, to_give = high[i] - coef[i], coef[j] - low[j]
        amount = min(amount, to_take, to_give)
        # Ends of the intervals are met exactly.
        coef[i] = high[i] if amount == to_take else coef[i] + amount
        coef[j] = low[j] if amount == to_give else coef[j] - amount
        for k in (i, j):
            rise[k] = 0.0 if coef[k] < high[k] else -HUGE
            fall[k] = 0.0 if coef[k] > low[k] else HUGE
        top, bottom = _advance(residual, gram, i, j, amount, rise, fall)
    return max_exchanges, top, bottom


@njit(cache=True, internal=True)
def intercept_between(top: float, bottom: float) -> float:
    """The intercept when `top` is the largest residual that can rise, `bottom` the other end."""
    if top <= -0.5 * HUGE:
        return bottom if bottom < 0.5 * HUGE else 0.0
    return 0.5 * (top + bottom) if bottom < 0.5 * HUGE else top


@njit(cache=True)
def retrain(
    gram: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    accuracy: float,
    max_exchanges: int,
) -> float:
    """Overwrites `coef` and `residual`: the classical SVM with other costs, from where they are.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Kernel values.
    y, costs : ndarray of shape (n_samples,)
        Labels and what each sample pays; those that pay nothing are left out.
    coef, residual : ndarray of shape (n_samples,)
        Signed coefficients a to start from, and ``y - Ka``.
    accuracy : float
        Violation of the optimality conditions that is left at most, in units of the margin.
    max_exchanges : int
        Exchanges at most.

    Returns
    -------
    intercept : float
        The intercept b.
    """
    low, high = np.empty(coef.size), np.empty(coef.size)
    set_out(gram, y, costs, coef, residual, low, high)
    _, top, bottom = climb(gram, low, high, coef, residual, accuracy, max_exchanges)
    return intercept_between(top, bottom)
