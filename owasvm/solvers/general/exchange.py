r"""Classical SVMs with a cost per sample, fast and rough: exchanges and faces.

The dual problem ``max y'a - 1/2 a'Ka`` with signed coefficients a, a between 0 and
``y_i cost_i`` and summing to 0, is climbed by moving weight from one sample to another: the one
with the largest residual ``y_i - <w, phi(x_i)>`` takes, the one that gains most gives (SMO with
the second-order choice of Fan, Chen and Lin). Exchanges are taken among the samples that can
matter next, those with a coefficient between its limits or near the margin, until all is well
among them.

At a large C few samples lie between limits and thousands of exchanges move along the same face of
the box. So after every few exchanges the best point of the face is looked for by conjugate
gradients, which stop where they leave the box.

Residuals are kept for all samples, also for those whose cost is 0, because ranking needs them
next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

# Stands for infinity, which a compiler may not compute with.
_HUGE = 1e300
# Two samples in the same place have no curvature between them.
_LEAST_CURVATURE = 1e-12
# Samples this near the margin are worked on, in units of the margin [half and twice: 5 % slower].
_NEAR = 0.2
# Exchanges before each look along a face, at least; else one for each sample of the face.
_LEAST_EXCHANGES = 20
# Steps of conjugate gradients on one face, and limits met until exchanges go on: with one limit
# training takes a fifth longer, with twenty as long.
_FACE_STEPS = 30
_FACE_LIMITS = 5
# What is left on a face, as a share of the accuracy.
_FACE_SHARE = 0.5

# The first fit waits until all of this is compiled. So functions are few, since what they call is
# compiled with them once more, and loops stand where numpy has functions.

# Where a count begins that is passed on: for a plain 0 functions would be compiled twice.
_ZERO: Any = np.int64(0)


@njit(cache=True, internal=True, fastmath={"nnan", "nsz"})
def _climb(
    gram: FloatArray,
    low: FloatArray,
    high: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    size: int,
    accuracy: float,
    max_exchanges: int,
) -> int:
    """Overwrites `coef` and `residual` of the first `size` samples by exchanges; their number."""
    rise, fall, diagonal, gains = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for k in range(size):
        diagonal[k] = gram[k, k]
        rise[k] = 0.0 if coef[k] < high[k] else -_HUGE
        fall[k] = 0.0 if coef[k] > low[k] else _HUGE
    taker, giver, amount = 0, 0, 0.0
    count = 0
    while True:
        top, bottom = -_HUGE, _HUGE
        for k in range(size):
            value = residual[k] - amount * (gram[taker, k] - gram[giver, k])
            residual[k] = value
            top = max(top, value + rise[k])
            bottom = min(bottom, value + fall[k])
        is_open = top - bottom > accuracy and top > -0.5 * _HUGE and bottom < 0.5 * _HUGE
        if not is_open or count == max_exchanges:
            return count
        # Among numbers that overflow the value may be nowhere.
        taker = 0
        while taker < size - 1 and residual[taker] + rise[taker] != top:
            taker += 1
        own = diagonal[taker]
        best = 0.0
        for k in range(size):
            distance = max(top - residual[k] - fall[k], 0.0)
            curvature = own + diagonal[k] - 2.0 * gram[taker, k]
            gain = distance * distance / max(curvature, _LEAST_CURVATURE)
            gains[k] = gain
            best = max(best, gain)
        giver = 0
        while giver < size - 1 and gains[giver] != best:
            giver += 1
        if not best > 0.0:
            return count
        curvature = own + diagonal[giver] - 2.0 * gram[taker, giver]
        to_take, to_give = high[taker] - coef[taker], coef[giver] - low[giver]
        amount = (top - residual[giver]) / max(curvature, _LEAST_CURVATURE)
        amount = min(amount, min(to_take, to_give))
        # Ends of the intervals are met exactly.
        coef[taker] = high[taker] if amount == to_take else coef[taker] + amount
        coef[giver] = low[giver] if amount == to_give else coef[giver] - amount
        rise[taker] = 0.0 if coef[taker] < high[taker] else -_HUGE
        fall[giver] = 0.0 if coef[giver] > low[giver] else _HUGE
        rise[giver] = fall[taker] = 0.0
        count += 1


@njit(cache=True, internal=True)
def _follow_face(
    gram: FloatArray,
    low: FloatArray,
    high: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    size: int,
    accuracy: float,
) -> int:
    """Overwrites both as exchanges do, by conjugate gradients among samples between limits.

    Returns the number of kernel values that were looked at.
    """
    direction, product = np.empty(size), np.empty(size)
    for k in range(size):
        direction[k] = 0.0
    before = 0.0
    n_met = 0
    n_values = 0
    for _ in range(_FACE_STEPS):
        # Coefficients keep their sum: only differences of residuals count.
        n_free = 0
        mean = 0.0
        for k in range(size):
            if low[k] < coef[k] < high[k]:
                n_free += 1
                mean += residual[k]
        if n_free < 3 or n_met == _FACE_LIMITS:
            break
        mean /= n_free
        length = 0.0
        for k in range(size):
            if low[k] < coef[k] < high[k]:
                length += (residual[k] - mean) ** 2
        if not length > accuracy * accuracy * n_free:
            break
        turn = length / before if before > 0.0 else 0.0
        for k in range(size):
            product[k] = 0.0
            if low[k] < coef[k] < high[k]:
                direction[k] = residual[k] - mean + turn * direction[k]
            else:
                direction[k] = 0.0
        for k in range(size):
            own = direction[k]
            if own != 0.0:
                n_values += size
                for other in range(size):
                    product[other] += own * gram[k, other]
        curvature = 0.0
        for k in range(size):
            curvature += direction[k] * product[k]
        if not curvature > 0.0:
            break
        step = length / curvature
        met = -1
        for k in range(size):
            if direction[k] != 0.0:
                reach = ((high[k] if direction[k] > 0.0 else low[k]) - coef[k]) / direction[k]
                if reach < step:
                    step = reach
                    met = k
        for k in range(size):
            coef[k] = min(max(coef[k] + step * direction[k], low[k]), high[k])
            residual[k] -= step * product[k]
        before = length
        if met >= 0:
            # Ends of the intervals are met exactly; gradients begin anew.
            coef[met] = high[met] if direction[met] > 0.0 else low[met]
            before = 0.0
            n_met += 1
    return n_values


@njit(cache=True)
def retrain(
    gram: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    accuracy: float,
    max_exchanges: int,
    room: FloatArray,
) -> tuple[float, bool, int]:
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
    room : ndarray of shape (n_samples, n_samples)
        Memory to work in.

    Returns
    -------
    intercept : float
        The intercept b.
    is_accurate : bool
        Whether the accuracy was reached.
    n_values : int
        Kernel values that were looked at, those that took longer counted several times: a measure
        of the time it took.
    """
    n_samples = coef.size
    low, high, known = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    plus, minus = 0.0, 0.0
    for k in range(n_samples):
        low[k] = min(y[k] * costs[k], 0.0)
        high[k] = max(y[k] * costs[k], 0.0)
        known[k] = coef[k]
        coef[k] = min(max(coef[k], low[k]), high[k])
        plus += max(coef[k], 0.0)
        minus -= min(coef[k], 0.0)
    # The heavier side is scaled down until all sum to 0.
    for k in range(n_samples):
        if coef[k] > 0.0 and plus > minus:
            coef[k] *= minus / plus
        elif coef[k] < 0.0 and minus > plus:
            coef[k] *= plus / minus
    chosen = np.empty(n_samples, dtype=np.int64)
    own_low, own_high = np.empty(n_samples), np.empty(n_samples)
    own_coef, own_residual = np.empty(n_samples), np.empty(n_samples)
    n_left = max_exchanges
    n_values = n_samples
    while True:
        for k in range(n_samples):
            change = coef[k] - known[k]
            if change != 0.0:
                known[k] = coef[k]
                n_values += 2 * n_samples
                for other in range(n_samples):
                    residual[other] -= change * gram[k, other]
        top, bottom = -_HUGE, _HUGE
        for k in range(n_samples):
            if coef[k] < high[k]:
                top = max(top, residual[k])
            if coef[k] > low[k]:
                bottom = min(bottom, residual[k])
        is_open = top - bottom > accuracy and top > -0.5 * _HUGE and bottom < 0.5 * _HUGE
        if not is_open or n_left <= 0:
            break
        middle = 0.5 * (top + bottom)
        size = _ZERO
        for k in range(n_samples):
            rises, falls = coef[k] < high[k], coef[k] > low[k]
            if (rises and (falls or residual[k] > middle - _NEAR)) or (
                falls and residual[k] < middle + _NEAR
            ):
                chosen[size] = k
                own_low[size], own_high[size] = low[k], high[k]
                own_coef[size], own_residual[size] = coef[k], residual[k]
                size += 1
        for a in range(size):
            k = chosen[a]
            for b in range(size):
                room[a, b] = gram[k, chosen[b]]
        n_values += 3 * size * size
        n_before = n_left
        while n_left > 0:
            n_inside = 0
            for a in range(size):
                n_inside += own_low[a] < own_coef[a] < own_high[a]
            most = min(max(_LEAST_EXCHANGES, n_inside), n_left)
            number = _climb(room, own_low, own_high, own_coef, own_residual, size, accuracy, most)
            n_left -= number
            n_values += 5 * number * size
            if number < most:
                break
            n_values += _follow_face(
                room, own_low, own_high, own_coef, own_residual, size, _FACE_SHARE * accuracy
            )
        if n_left == n_before:
            break
        for a in range(size):
            coef[chosen[a]] = own_coef[a]
    if top <= -0.5 * _HUGE:
        intercept = bottom if bottom < 0.5 * _HUGE else 0.0
    else:
        intercept = 0.5 * (top + bottom) if bottom < 0.5 * _HUGE else top
    return intercept, not is_open, n_values
