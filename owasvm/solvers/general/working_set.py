r"""Classical SVMs with a cost per sample, of hundreds of samples: exchanges and faces.

Exchanges (:mod:`~owasvm.solvers.general.exchange`) are taken among the samples that can matter
next, those with a coefficient between its limits or near the margin, until all is well among
them. At a large C few samples lie between limits and thousands of exchanges move along the same
face of the box. So after every few exchanges the best point of the face is looked for by
conjugate gradients, which stop where they leave the box.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.solvers.general.exchange import HUGE, climb, intercept_between, set_out

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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


@njit(cache=True, internal=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _multiply(matrix: FloatArray, vector: FloatArray, product: FloatArray) -> float:
    """Overwrites `product`; its inner product with the vector."""
    size = vector.size
    inner = 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += matrix[i, j] * vector[j]
        product[i] = total
        inner += total * vector[i]
    return inner


@njit(cache=True, internal=True)
def _square(room: FloatArray, size: int) -> FloatArray:
    """A matrix of a given size at the beginning of a larger one."""
    return room.reshape(-1)[: size * size].reshape(size, size)


@njit(cache=True, internal=True)
def _follow_face(
    gram: FloatArray,
    low: FloatArray,
    high: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    accuracy: float,
    room: FloatArray,
) -> int:
    """Overwrites `coef` and `residual`: conjugate gradients among samples between their limits.

    Returns the number of kernel values that were looked at.
    """
    inside = np.empty(coef.size, dtype=np.int64)
    size = 0
    for k in range(coef.size):
        if low[k] < coef[k] < high[k]:
            inside[size] = k
            size += 1
    if size < 3:
        return 0
    own = _square(room, size)
    left, below, above = np.empty(size), np.empty(size), np.empty(size)
    for a in range(size):
        k = inside[a]
        for b in range(size):
            own[a, b] = gram[k, inside[b]]
        left[a], below[a], above[a] = residual[k], low[k] - coef[k], high[k] - coef[k]
    moved, direction, product = np.zeros(size), np.zeros(size), np.empty(size)
    is_free = np.ones(size)
    n_free = size
    length = 0.0
    n_steps = 0
    while n_steps < _FACE_STEPS and n_free > size - _FACE_LIMITS and n_free > 1:
        # Coefficients keep their sum: only differences of residuals count.
        mean = np.sum(is_free * left) / n_free
        before, length = length, 0.0
        top, bottom = -HUGE, HUGE
        for a in range(size):
            if is_free[a] > 0.0:
                value = left[a] - mean
                length += value * value
                top, bottom = max(top, value), min(bottom, value)
        if not top - bottom > accuracy:
            break
        turn = length / before if before > 0.0 else 0.0
        for a in range(size):
            direction[a] = is_free[a] * (left[a] - mean + turn * direction[a])
        n_steps += 1
        curvature = _multiply(own, direction, product)
        if not curvature > 0.0:
            break
        step = length / curvature
        met = -1
        for a in range(size):
            limit = above[a] if direction[a] > 0.0 else below[a]
            if direction[a] != 0.0 and (limit - moved[a]) / direction[a] < step:
                step = (limit - moved[a]) / direction[a]
                met = a
        for a in range(size):
            moved[a] += step * direction[a]
            left[a] -= step * product[a]
        if met >= 0:
            # Ends of the intervals are met exactly; gradients begin anew.
            moved[met] = above[met] if direction[met] > 0.0 else below[met]
            is_free[met] = 0.0
            n_free -= 1
            length = 0.0
    for a in range(size):
        k = inside[a]
        if moved[a] == above[a]:
            coef[k] = high[k]
        elif moved[a] == below[a]:
            coef[k] = low[k]
        else:
            coef[k] = min(max(coef[k] + moved[a], low[k]), high[k])
        for other in range(coef.size):
            residual[other] -= moved[a] * gram[k, other]
    return size * (size * (n_steps + 1) + coef.size)


@njit(cache=True, internal=True)
def _gather(
    low: FloatArray,
    high: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    middle: float,
    chosen: IntArray,
) -> int:
    """Overwrites `chosen`: the samples that can matter next; their number."""
    number = 0
    for k in range(coef.size):
        rises, falls = coef[k] < high[k], coef[k] > low[k]
        is_inside = rises and falls
        is_near = (rises and residual[k] > middle - _NEAR) or (
            falls and residual[k] < middle + _NEAR
        )
        if is_inside or is_near:
            chosen[number] = k
            number += 1
    return number


@njit(cache=True)
def retrain_by_sets(
    gram: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    accuracy: float,
    max_exchanges: int,
    room: FloatArray,
) -> tuple[float, bool, int]:
    """Overwrites `coef` and `residual`: as :func:`~owasvm.solvers.general.exchange.retrain`.

    Parameters
    ----------
    gram, y, costs, coef, residual, accuracy, max_exchanges
        See :func:`~owasvm.solvers.general.exchange.retrain`.
    room : ndarray of shape (2, n_samples, n_samples)
        Memory to work in.

    Returns
    -------
    intercept : float
        The intercept b.
    is_accurate : bool
        Whether the accuracy was reached.
    n_values : int
        Kernel values that were looked at: a measure of the time it took.
    """
    n_samples = coef.size
    low, high = np.empty(n_samples), np.empty(n_samples)
    set_out(gram, y, costs, coef, residual, low, high)
    chosen = np.empty(n_samples, dtype=np.int64)
    n_left = max_exchanges
    n_values = n_samples
    while True:
        top, bottom = -HUGE, HUGE
        for k in range(n_samples):
            if coef[k] < high[k]:
                top = max(top, residual[k])
            if coef[k] > low[k]:
                bottom = min(bottom, residual[k])
        is_open = top - bottom > accuracy and top > -0.5 * HUGE and bottom < 0.5 * HUGE
        if not is_open or n_left <= 0:
            break
        size = _gather(low, high, coef, residual, 0.5 * (top + bottom), chosen)
        among = chosen[:size]
        own = _square(room[0], size)
        for a in range(size):
            row = gram[among[a]]
            for b in range(size):
                own[a, b] = row[among[b]]
        own_low, own_high = low[among], high[among]
        own_coef, own_residual = coef[among], residual[among]
        n_values += size * size
        n_before = n_left
        while n_left > 0:
            inside = 0
            for a in range(size):
                inside += own_low[a] < own_coef[a] < own_high[a]
            most = min(max(_LEAST_EXCHANGES, inside), n_left)
            number, _, _ = climb(own, own_low, own_high, own_coef, own_residual, accuracy, most)
            n_left -= number
            n_values += 4 * number * size
            if number < most:
                break
            n_values += _follow_face(
                own, own_low, own_high, own_coef, own_residual, _FACE_SHARE * accuracy, room[1]
            )
        if n_left == n_before:
            break
        for a in range(size):
            k = among[a]
            change = own_coef[a] - coef[k]
            if change != 0.0:
                coef[k] = own_coef[a]
                n_values += n_samples
                for other in range(n_samples):
                    residual[other] -= change * gram[k, other]
    return intercept_between(top, bottom), not is_open, n_values
