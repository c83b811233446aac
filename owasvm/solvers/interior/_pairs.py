"""Compiled loops over all pairs of a sample and a level: plain functions on arrays.

A pair (i, g) has a dual share p in ``(0, cap)``, ``cap = jump[g] * mass[i]``, and two positive
distances ``above - below = u_i - t_g``. On the central path ``below * p`` and
``above * (cap - p)`` are both equal to the barrier parameter.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]


@njit(cache=True)
def weigh(
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    weight: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> float:
    """Overwrites `weight`, how shares follow ``u_i - t_g``, and its sums; the gap of the pairs."""
    by_level[:] = 0.0
    gap = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(share.shape[1]):
            rest = jump[g] * mass[i] - share[i, g]
            first = below[i, g] * share[i, g]
            second = above[i, g] * rest
            gap += first + second
            value = share[i, g] * rest / (above[i, g] * share[i, g] + below[i, g] * rest)
            weight[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total
    return gap


@njit(cache=True)
def aim(
    target: float,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
) -> None:
    """Overwrites the wanted changes of both products: to `target`, seconds orders taken off."""
    for i in range(share.shape[0]):
        for g in range(share.shape[1]):
            rest = jump[g] * mass[i] - share[i, g]
            change = share_step[i, g]
            wanted_below[i, g] = target - below[i, g] * share[i, g] - below_step[i, g] * change
            wanted_above[i, g] = target - above[i, g] * rest + above_step[i, g] * change


@njit(cache=True)
def aim_centre(
    target: float,
    step: float,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
) -> None:
    """Adds to the wanted changes what brings stray products after a step near the target."""
    for i in range(share.shape[0]):
        for g in range(share.shape[1]):
            rest = jump[g] * mass[i] - share[i, g]
            change = step * share_step[i, g]
            first = (below[i, g] + step * below_step[i, g]) * (share[i, g] + change)
            second = (above[i, g] + step * above_step[i, g]) * (rest - change)
            wanted_below[i, g] += max(
                min(max(first, 0.1 * target), 10.0 * target) - first, -10.0 * target
            )
            wanted_above[i, g] += max(
                min(max(second, 0.1 * target), 10.0 * target) - second, -10.0 * target
            )


@njit(cache=True)
def gather(
    wanted_below: FloatArray,
    wanted_above: FloatArray,
    share: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    weight: FloatArray,
    offset: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Overwrites `offset`, what shares change by with u and t still, and its weighted sums."""
    by_level[:] = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(share.shape[1]):
            rest = jump[g] * mass[i] - share[i, g]
            value = weight[i, g] * (wanted_below[i, g] / share[i, g] - wanted_above[i, g] / rest)
            offset[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total


@njit(cache=True)
def expand(
    slack_step: FloatArray,
    level_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    weight: FloatArray,
    offset: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
) -> float:
    """Overwrites the steps of the pairs; returns 1 over the longest step they allow."""
    blocking = 0.0
    for i in range(share.shape[0]):
        for g in range(share.shape[1]):
            p = share[i, g]
            rest = jump[g] * mass[i] - p
            change = weight[i, g] * (slack_step[i] - level_step[g]) + offset[i, g]
            first = (wanted_below[i, g] - below[i, g] * change) / p
            second = (wanted_above[i, g] + above[i, g] * change) / rest
            share_step[i, g] = change
            below_step[i, g] = first
            above_step[i, g] = second
            blocking = max(
                blocking, -change / p, change / rest, -first / below[i, g], -second / above[i, g]
            )
    return blocking


@njit(cache=True)
def gap_after(
    step: float,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
) -> float:
    """The gap of the pairs after a step."""
    gap = 0.0
    for i in range(share.shape[0]):
        for g in range(share.shape[1]):
            rest = jump[g] * mass[i] - share[i, g]
            change = step * share_step[i, g]
            gap += (below[i, g] + step * below_step[i, g]) * (share[i, g] + change)
            gap += (above[i, g] + step * above_step[i, g]) * (rest - change)
    return gap


@njit(cache=True)
def move(
    step: float,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Changes the pairs in place; overwrites the sums of the shares."""
    by_level[:] = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(share.shape[1]):
            share[i, g] += step * share_step[i, g]
            below[i, g] += step * below_step[i, g]
            above[i, g] += step * above_step[i, g]
            total += share[i, g]
            by_level[g] += share[i, g]
        by_sample[i] = total
