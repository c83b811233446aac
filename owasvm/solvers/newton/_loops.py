"""Compiled loops of the Newton solver over all samples: plain functions on arrays."""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]


def list_active(
    block: Labels, n_blocks: int, y: FloatArray, mass: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Active samples by their labels, the offsets of the labels, `root` and `tie`.

    These are the roots of the masses, 1 where there are none, and the same with the signs of y.
    """
    offsets = np.empty(n_blocks + 2, dtype=np.int64)
    size = count_active(block, offsets)
    active = np.empty(size, dtype=np.int64)
    root, tie = np.empty(size), np.empty(size)
    write_active(block, y, mass, offsets, active, root, tie)
    return active, offsets, root, tie


@njit(cache=True)
def count_active(block: Labels, offsets: IntArray) -> int:
    """Overwrites `offsets`: where each label begins, one place late; the number of samples."""
    for k in range(offsets.size):
        offsets[k] = 0
    for i in range(block.size):
        if block[i] >= 0:
            offsets[block[i] + 1] += 1
    total = 0
    for k in range(1, offsets.size):
        count = offsets[k]
        offsets[k] = total
        total += count
    return total


@njit(cache=True)
def write_active(
    block: Labels,
    y: FloatArray,
    mass: FloatArray,
    offsets: IntArray,
    active: IntArray,
    root: FloatArray,
    tie: FloatArray,
) -> None:
    """Overwrites the arrays from `offsets` on, after :func:`count_active`."""
    for i in range(block.size):
        label = block[i]
        if label >= 0:
            # What begins here becomes what ends here, and that is where the next one begins.
            at = offsets[label + 1]
            offsets[label + 1] = at + 1
            active[at] = i
            root[at] = np.sqrt(mass[i]) if mass.size > 0 else 1.0
            tie[at] = y[i] * root[at]


@njit(cache=True)
def shift_point(
    margin: FloatArray,
    scores: FloatArray,
    score_step: FloatArray,
    y: FloatArray,
    intercept: float,
    intercept_step: float,
    step: float,
    multiplier: FloatArray,
    inverse_penalty: float,
    slack: FloatArray,
    v: FloatArray,
) -> None:
    """Overwrites `slack` and `v`: ``margin - y f`` after a step, and where the prox is due.

    Both may be one array, which is `v` then.
    """
    moved = intercept + step * intercept_step
    for i in range(y.size):
        wanted = margin[i] if margin.size > 1 else margin[0]
        value = wanted - y[i] * (scores[i] + step * score_step[i]) - y[i] * moved
        slack[i] = value
        v[i] = value + inverse_penalty * multiplier[i]


@njit(cache=True, fastmath={"reassoc", "contract"})
def change_along(
    dual: FloatArray,
    first_dual: FloatArray,
    scores: FloatArray,
    y: FloatArray,
    intercept_step: float,
) -> float:
    """``(dual - first_dual)'y(scores + intercept_step)``."""
    total = 0.0
    for i in range(dual.size):
        total += (dual[i] - first_dual[i]) * y[i] * (scores[i] + intercept_step)
    return total


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_up(
    dual: FloatArray, slack: FloatArray, multiplier: FloatArray, mass: FloatArray
) -> tuple[float, float]:
    """``dual'slack`` and the squared distance of dual and multiplier over the masses, if any."""
    product = 0.0
    moved = 0.0
    if mass.size == 0:
        for i in range(dual.size):
            product += dual[i] * slack[i]
            change = dual[i] - multiplier[i]
            moved += change * change
        return product, moved
    for i in range(dual.size):
        product += dual[i] * slack[i]
        change = dual[i] - multiplier[i]
        moved += change * change / mass[i]
    return product, moved
