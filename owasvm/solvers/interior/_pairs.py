"""Compiled loops over all pairs of a level and a sample: plain functions on arrays.

A pair (g, i) has a dual share p in ``(0, cap)``, ``cap = jump[g] * mass[i]``, and two positive
distances ``above - below = u_i - t_g``. On the central path ``below * p`` and
``above * (cap - p)`` are both equal to the barrier parameter. A level meets the samples from
``spans[g, 0]`` up to ``spans[g, 1]``: inner loops run over samples, of which there are many.
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
# They change by this share of what is left to their ends, at most.
_MOST_CHANGE = 0.5


@njit(cache=True, fastmath=_LOOSE)
def add_mismatch(
    slack: FloatArray,
    level: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    share: FloatArray,
) -> float:
    """What shares lack: those of pairs on one side of their level that belong to the other."""
    total = 0.0
    for g in range(jump.size):
        for i in range(spans[g, 0], spans[g, 1]):
            apart = slack[i] - level[g]
            rest = jump[g] * mass[i] - share[g, i]
            total += max(apart, 0.0) * rest + max(-apart, 0.0) * share[g, i]
    return total


@njit(cache=True, fastmath=_LOOSE)
def centre(
    barrier: float,
    keeps: float,
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
    """Overwrites the distances of the pairs by those of the central path.

    Shares are moved no closer to their ends than the part `keeps` of what the central path would
    leave: with 1.0 they are those of the central path. Overwrites their sums.
    """
    by_sample[:] = 0.0
    for g in range(jump.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            cap = jump[g] * mass[i]
            apart = slack[i] - level[g]
            scaled = apart * cap / barrier
            # What the central path leaves to the end that is nearer.
            root = math.sqrt(scaled * scaled + 4.0)
            least = max(cap * (2.0 + root - abs(scaled)) / (2.0 * (2.0 + root)), _EDGE * cap)
            near = barrier / (cap - least)
            if apart >= 0.0:
                below[g, i] = near
                above[g, i] = near + apart
                value = min(max(share[g, i], keeps * (cap - least)), cap - keeps * least)
            else:
                above[g, i] = near
                below[g, i] = near - apart
                value = min(max(share[g, i], keeps * least), cap - keeps * (cap - least))
            share[g, i] = value
            total += value
            by_sample[i] += value
        by_level[g] = total


@njit(cache=True, fastmath=_LOOSE)
def restore(
    missing: FloatArray,
    jump: FloatArray,
    mass: FloatArray,
    spans: IndexArray,
    share: FloatArray,
    below: FloatArray,
    above: FloatArray,
    by_sample: FloatArray,
    by_level: FloatArray,
) -> None:
    """Changes shares in place so that samples pay what is `missing`, as far as they can.

    As they would follow a change of the slack: pairs that lie close to each other do. Overwrites
    the sums of the shares, and `missing`.
    """
    by_sample[:] = 0.0
    for g in range(jump.size):
        for i in range(spans[g, 0], spans[g, 1]):
            rest = jump[g] * mass[i] - share[g, i]
            by_sample[i] += share[g, i] * rest / (above[g, i] * share[g, i] + below[g, i] * rest)
    for i in range(missing.size):
        missing[i] = missing[i] / by_sample[i] if by_sample[i] > 0.0 else 0.0
        by_sample[i] = 0.0
    for g in range(jump.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            rest = jump[g] * mass[i] - share[g, i]
            weight = share[g, i] * rest / (above[g, i] * share[g, i] + below[g, i] * rest)
            change = max(missing[i] * weight, -_MOST_CHANGE * share[g, i])
            value = share[g, i] + min(change, _MOST_CHANGE * rest)
            share[g, i] = value
            total += value
            by_sample[i] += value
        by_level[g] = total


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
    by_sample[:] = 0.0
    gap = 0.0
    for g in range(jump.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            rest = jump[g] * mass[i] - share[g, i]
            gap += below[g, i] * share[g, i] + above[g, i] * rest
            inverses[0, g, i] = 1.0 / share[g, i]
            inverses[1, g, i] = 1.0 / rest
            value = 1.0 / (above[g, i] * inverses[1, g, i] + below[g, i] * inverses[0, g, i])
            weight[g, i] = value
            total += value
            by_sample[i] += value
        by_level[g] = total
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
    by_sample[:] = 0.0
    for g in range(jump.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            first = target - below[g, i] * share[g, i]
            second = target - above[g, i] * (jump[g] * mass[i] - share[g, i])
            if corrects:
                first -= below_step[g, i] * share_step[g, i]
                second += above_step[g, i] * share_step[g, i]
            wanted_below[g, i] = first
            wanted_above[g, i] = second
            value = weight[g, i] * (first * inverses[0, g, i] - second * inverses[1, g, i])
            offset[g, i] = value
            total += value
            by_sample[i] += value
        by_level[g] = total


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
    by_sample[:] = 0.0
    least, most = 0.1 * target, 10.0 * target
    for g in range(jump.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            change = step * share_step[g, i]
            rest = jump[g] * mass[i] - share[g, i] - change
            first = (below[g, i] + step * below_step[g, i]) * (share[g, i] + change)
            second = (above[g, i] + step * above_step[g, i]) * rest
            one = wanted_below[g, i] + max(min(max(first, least), most) - first, -most)
            two = wanted_above[g, i] + max(min(max(second, least), most) - second, -most)
            wanted_below[g, i] = one
            wanted_above[g, i] = two
            value = weight[g, i] * (one * inverses[0, g, i] - two * inverses[1, g, i])
            offset[g, i] = value
            total += value
            by_sample[i] += value
        by_level[g] = total


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
    """Overwrites the steps of the pairs, and `blocking`, 1 over the longest step of each sample.

    Returns 1 over the longest step of all, and the second order of both products in a step.
    """
    blocking[:] = 0.0
    second_order = 0.0
    for g in range(level_step.size):
        for i in range(spans[g, 0], spans[g, 1]):
            change = weight[g, i] * (slack_step[i] - level_step[g]) + offset[g, i]
            first = (wanted_below[g, i] - below[g, i] * change) * inverses[0, g, i]
            second = (wanted_above[g, i] + above[g, i] * change) * inverses[1, g, i]
            share_step[g, i] = change
            below_step[g, i] = first
            above_step[g, i] = second
            second_order += change * (first - second)
            # One maximum per sample: a single one would be a chain of waits.
            shares = max(-change * inverses[0, g, i], change * inverses[1, g, i])
            distances = max(-first / below[g, i], -second / above[g, i])
            blocking[i] = max(blocking[i], max(shares, distances))
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
    by_sample[:] = 0.0
    for g in range(by_level.size):
        total = 0.0
        for i in range(spans[g, 0], spans[g, 1]):
            share[g, i] += step * share_step[g, i]
            below[g, i] += step * below_step[g, i]
            above[g, i] += step * above_step[g, i]
            total += share[g, i]
            by_sample[i] += share[g, i]
        by_level[g] = total
