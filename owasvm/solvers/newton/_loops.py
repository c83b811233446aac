"""Compiled loops of the Newton solver over all samples: plain functions on arrays."""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.losses.hinge import Workspace, prox_of_hinge
from owasvm.solvers.newton._bracket import FIRST_SLOPE, STEP, go_on

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]


@njit(cache=True)
def list_active(
    block: Labels, n_blocks: int, y: FloatArray, mass: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Active samples by their labels, the offsets of the labels, `root` and `tie`.

    These are the roots of the masses, 1 where there are none, and the same with the signs of y.
    """
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
    root = np.ones(active.size)
    tie = np.empty(active.size)
    for i in range(active.size):
        if mass.size > 0:
            root[i] = np.sqrt(mass[active[i]])
        tie[i] = y[active[i]] * root[i]
    return active, offsets, root, tie


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


@njit(cache=True)
def search_hinge(
    search: FloatArray,
    still_falling: float,
    squared_norm: float,
    margin: FloatArray,
    scores: FloatArray,
    score_step: FloatArray,
    y: FloatArray,
    intercept: float,
    intercept_step: float,
    multiplier: FloatArray,
    penalty: float,
    first_dual: FloatArray,
    ascending: FloatArray,
    workspace: Workspace,
    slack: FloatArray,
    v: FloatArray,
    prox: FloatArray,
    dual: FloatArray,
    block: Labels,
    shrink: FloatArray,
) -> int:
    """Overwrites the arrays from `slack` on and ends `search`; the number of blocks at its end.

    The whole line search for the hinge with one cost per rank.
    """
    n_blocks = 0
    falling = True
    while falling:
        step = search[STEP]
        shift_point(
            margin,
            scores,
            score_step,
            y,
            intercept,
            intercept_step,
            step,
            multiplier,
            1.0 / penalty,
            slack,
            v,
        )
        n_blocks = prox_of_hinge(v, penalty, ascending, workspace, prox, dual, block, shrink)
        change = change_along(dual, first_dual, score_step, y, intercept_step)
        falling = go_on(search, search[FIRST_SLOPE] + step * squared_norm - change, still_falling)
    return n_blocks


@njit(cache=True)
def add_up(
    dual: FloatArray, slack: FloatArray, multiplier: FloatArray, mass: FloatArray
) -> tuple[float, float]:
    """``dual'slack`` and the squared distance of dual and multiplier over the masses, if any."""
    product = 0.0
    moved = 0.0
    for i in range(dual.size):
        product += dual[i] * slack[i]
        change = dual[i] - multiplier[i]
        moved += change * change if mass.size == 0 else change * change / mass[i]
    return product, moved
