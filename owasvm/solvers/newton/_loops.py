"""Compiled loops of the Newton solver over all samples: plain functions on arrays."""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(cache=True)
def list_active(block: NDArray[np.int32], n_blocks: int) -> tuple[IntArray, IntArray]:
    """Active samples by their labels, and the offsets of the labels."""
    offsets = np.zeros(n_blocks + 2, dtype=np.int64)
    for i in range(block.size):
        if block[i] >= 0:
            offsets[block[i] + 1] += 1
    for k in range(n_blocks + 1):
        offsets[k + 1] += offsets[k]
    position = offsets[:-1].copy()
    active = np.empty(offsets[n_blocks + 1], dtype=np.int64)
    for i in range(block.size):
        label = block[i]
        if label >= 0:
            active[position[label]] = i
            position[label] += 1
    return active, offsets


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
    """Overwrites `slack` and `v`: ``margin - y f`` after a step, and where the prox is due."""
    moved = intercept + step * intercept_step
    for i in range(margin.size):
        value = margin[i] - y[i] * (scores[i] + step * score_step[i]) - y[i] * moved
        slack[i] = value
        v[i] = value + inverse_penalty * multiplier[i]


@njit(cache=True)
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
