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
_HUGE = 1e300
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
    top = -_HUGE
    bottom = _HUGE
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
    n_samples = coef.size
    before = np.empty(n_samples)
    low = np.empty(n_samples)
    high = np.empty(n_samples)
    for k in range(n_samples):
        before[k] = coef[k]
        low[k] = min(y[k] * costs[k], 0.0)
        high[k] = max(y[k] * costs[k], 0.0)
        coef[k] = min(max(coef[k], low[k]), high[k])
    _balance(coef)
    diagonal = np.empty(n_samples)
    rise = np.empty(n_samples)
    fall = np.empty(n_samples)
    gains = np.empty(n_samples)
    nothing = np.empty(n_samples)
    for k in range(n_samples):
        diagonal[k] = gram[k, k]
        nothing[k] = 0.0
        rise[k] = 0.0 if coef[k] < high[k] else -_HUGE
        fall[k] = 0.0 if coef[k] > low[k] else _HUGE
        change = coef[k] - before[k]
        if change != 0.0:
            for other in range(n_samples):
                residual[other] -= change * gram[k, other]
    top, bottom = _advance(residual, gram, 0, 0, 0.0, rise, fall)
    for _ in range(max_exchanges):
        # Not the other way round: a comparison with what is not a number is False.
        if not (top - bottom > accuracy and top > -0.5 * _HUGE and bottom < 0.5 * _HUGE):
            break
        i = _place(residual, rise, top)
        best = _measure_gains(residual, gram, i, diagonal, fall, top, diagonal[i], gains)
        j = _place(gains, nothing, best)
        if i < 0 or j < 0 or best <= 0.0:
            break
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * gram[i, j], _LEAST_CURVATURE)
        amount = (top - residual[j]) / curvature
        to_take, to_give = high[i] - coef[i], coef[j] - low[j]
        amount = min(amount, to_take, to_give)
        # Ends of the intervals are met exactly.
        coef[i] = high[i] if amount == to_take else coef[i] + amount
        coef[j] = low[j] if amount == to_give else coef[j] - amount
        for k in (i, j):
            rise[k] = 0.0 if coef[k] < high[k] else -_HUGE
            fall[k] = 0.0 if coef[k] > low[k] else _HUGE
        top, bottom = _advance(residual, gram, i, j, amount, rise, fall)
    if top <= -0.5 * _HUGE:
        return bottom if bottom < 0.5 * _HUGE else 0.0
    return 0.5 * (top + bottom) if bottom < 0.5 * _HUGE else top
