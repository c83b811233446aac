"""Compiled loops over all pairs of a sample and a level: plain functions on arrays.

A pair (i, g) has a dual share p in ``(0, cap)``, ``cap = jump[g] * mass[i]``, and two positive
distances ``above - below = u_i - t_g``. On the central path ``below * p`` and
``above * (cap - p)`` are both equal to the barrier parameter. A sample meets the levels of the
samples it is ranked among, those from ``spans[i, 0]`` up to ``spans[i, 1]``.
"""

import math

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
# Indices that cannot be negative: others may count from the end, and no loop over them is
# vectorised, which takes twice the time.
IndexArray = NDArray[np.uint64]

# Sums and maxima in any order; numbers that are not finite show in the steps of the slacks.
_LOOSE = {"reassoc", "contract", "nnan", "nsz"}
# Shares start at least this far, relative to their cap, from both ends.
_EDGE = 1e-12


@njit(cache=True, fastmath=_LOOSE)
def centre(
    barrier: float,
    slack: FloatArray,
    level: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Overwrites the pairs by those of the central path, and the sums of their shares."""
    by_level[:] = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(spans[i, 0], spans[i, 1]):
            cap = jump[g] * mass[i]
            apart = slack[i] - level[g]
            scaled = apart * cap / barrier
            value = cap * (0.5 + 0.5 * scaled / (2.0 + math.sqrt(scaled * scaled + 4.0)))
            value = min(max(value, _EDGE * cap), (1.0 - _EDGE) * cap)
            if apart >= 0.0:
                below[i, g] = barrier / value
                above[i, g] = below[i, g] + apart
            else:
                above[i, g] = barrier / (cap - value)
                below[i, g] = above[i, g] - apart
            share[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total


@njit(cache=True, fastmath=_LOOSE)
def weigh(
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    inverses: FloatArray,
    weight: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> float:
    """Overwrites `weight`, how shares follow ``u_i - t_g``, and its sums; the gap of the pairs.

    Also `inverses`: those of share and of what is left of the cap.
    """
    by_level[:] = 0.0
    gap = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(spans[i, 0], spans[i, 1]):
            rest = jump[g] * mass[i] - share[i, g]
            gap += below[i, g] * share[i, g] + above[i, g] * rest
            inverses[0, i, g] = 1.0 / share[i, g]
            inverses[1, i, g] = 1.0 / rest
            value = 1.0 / (above[i, g] * inverses[1, i, g] + below[i, g] * inverses[0, i, g])
            weight[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total
    return gap


@njit(cache=True, fastmath=_LOOSE)
def aim(
    target: float,
    corrects: bool,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
    inverses: FloatArray,
    weight: FloatArray,
    offset: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Overwrites the wanted changes of both products: to `target`, second orders taken off.

    Also `offset`, what shares change by with u and t still, and its sums.
    """
    by_level[:] = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(spans[i, 0], spans[i, 1]):
            first = target - below[i, g] * share[i, g]
            second = target - above[i, g] * (jump[g] * mass[i] - share[i, g])
            if corrects:
                first -= below_step[i, g] * share_step[i, g]
                second += above_step[i, g] * share_step[i, g]
            wanted_below[i, g] = first
            wanted_above[i, g] = second
            value = weight[i, g] * (first * inverses[0, i, g] - second * inverses[1, i, g])
            offset[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total


@njit(cache=True, fastmath=_LOOSE)
def aim_centre(
    target: float,
    step: float,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
    inverses: FloatArray,
    weight: FloatArray,
    offset: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Adds to the wanted changes what brings stray products after a step near the target.

    Overwrites `offset` and its sums.
    """
    by_level[:] = 0.0
    for i in range(share.shape[0]):
        total = 0.0
        for g in range(spans[i, 0], spans[i, 1]):
            change = step * share_step[i, g]
            rest = jump[g] * mass[i] - share[i, g] - change
            first = (below[i, g] + step * below_step[i, g]) * (share[i, g] + change)
            second = (above[i, g] + step * above_step[i, g]) * rest
            wanted_below[i, g] += max(
                min(max(first, 0.1 * target), 10.0 * target) - first, -10.0 * target
            )
            wanted_above[i, g] += max(
                min(max(second, 0.1 * target), 10.0 * target) - second, -10.0 * target
            )
            value = weight[i, g] * (
                wanted_below[i, g] * inverses[0, i, g] - wanted_above[i, g] * inverses[1, i, g]
            )
            offset[i, g] = value
            total += value
            by_level[g] += value
        by_sample[i] = total


@njit(cache=True, fastmath=_LOOSE)
def expand(
    spans: IndexArray,
    slack_step: FloatArray,
    level_step: FloatArray,
    wanted_below: FloatArray,
    wanted_above: FloatArray,
    below: FloatArray,
    above: FloatArray,
    inverses: FloatArray,
    weight: FloatArray,
    offset: FloatArray,
    share_step: FloatArray,
    below_step: FloatArray,
    above_step: FloatArray,
    blocking: FloatArray,
) -> tuple[float, float]:
    """Overwrites the steps of the pairs, and `blocking`, 1 over the longest step of each level.

    Returns 1 over the longest step of all, and the second order of both products in a step.
    """
    blocking[:] = 0.0
    second_order = 0.0
    for i in range(weight.shape[0]):
        for g in range(spans[i, 0], spans[i, 1]):
            change = weight[i, g] * (slack_step[i] - level_step[g]) + offset[i, g]
            first = (wanted_below[i, g] - below[i, g] * change) * inverses[0, i, g]
            second = (wanted_above[i, g] + above[i, g] * change) * inverses[1, i, g]
            share_step[i, g] = change
            below_step[i, g] = first
            above_step[i, g] = second
            second_order += change * (first - second)
            # One maximum per level: a single one would be a chain of waits.
            shares = max(-change * inverses[0, i, g], change * inverses[1, i, g])
            distances = max(-first / below[i, g], -second / above[i, g])
            blocking[g] = max(blocking[g], max(shares, distances))
    return blocking.max(), second_order


@njit(cache=True, fastmath=_LOOSE)
def move(
    step: float,
    spans: IndexArray,
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
        for g in range(spans[i, 0], spans[i, 1]):
            share[i, g] += step * share_step[i, g]
            below[i, g] += step * below_step[i, g]
            above[i, g] += step * above_step[i, g]
            total += share[i, g]
            by_level[g] += share[i, g]
        by_sample[i] = total
