"""Compiled loops of the steps from a kernel matrix for the hinge: two calls make a step.

Vectors are rows of a table and numbers entries of a list, so that a call has few arguments.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.losses.hinge import Workspace, pool_sorted, sort_again
from owasvm.samples import MAX_INTERCEPT_STEP
from owasvm.samples.kernel_operators import add_rows, centre, write_upper_block
from owasvm.solvers.newton._bracket import STEP as LENGTH
from owasvm.solvers.newton._bracket import start_search
from owasvm.solvers.newton._loops import search_along, shift_point

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]

# Rows of the table: w, the residual and the step, each by coefficients and scores; multiplier and
# slacks; where a prox is taken, the prox, its dual, that of a trial, and one to work with.
COEF, SCORES, RESIDUAL, RESIDUAL_SCORES, STEP, STEP_SCORES = range(6)
MULTIPLIER, SLACK, V, PROX, DUAL, TRIAL, SPARE = range(6, 13)
N_VECTORS = 13

# Entries of the list: the intercept and its step; the loss, dual'slack, the squared distance of
# dual and multiplier, the imbalance; squared norms of w and of the residual; entries of the
# residual that are not 0, active samples, blocks.
INTERCEPT, INTERCEPT_STEP, LOSS, PRODUCT, MOVED, IMBALANCE = range(6)
SQUARED_W, SQUARED, N_NONZERO, N_ACTIVE, N_BLOCKS = range(6, 11)
N_FIGURES = 11

# Coefficients that are this close, relative to their size, are equal.
_NOISE = 1e-15

# What a call of :func:`advance` does before it looks around: take the prox where it stands, search
# along the step that is in the table, or along one that it makes of a solved system first.
STAY, ALONG, SOLVED = 0, 1, 2
# What becomes of it: rounding has eaten the descent; a new place; scores of the step are missing.
STUCK, MOVED_ON, INCOMPLETE = 0, 1, 2


@njit(cache=True, internal=True)
def _list_active(block: Labels, offsets: IntArray, samples: IntArray) -> None:
    """Overwrites `offsets` and `samples`: active samples by their labels."""
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
    for i in range(block.size):
        label = block[i]
        if label >= 0:
            # What begins here becomes what ends here, and that is where the next one begins.
            samples[offsets[label + 1]] = i
            offsets[label + 1] += 1


@njit(cache=True)
def write_system(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    vectors: FloatArray,
    block: Labels,
    shrink: FloatArray,
    ridge: float,
    offsets: IntArray,
    samples: IntArray,
    tie: FloatArray,
    labels: IntArray,
    sides: FloatArray,
    matrix: FloatArray,
    pulls: FloatArray,
) -> None:
    """Overwrites the arrays from `offsets` on: active samples and the system of a Newton step.

    The upper triangle of `matrix` is that of ``R Q_AA R + ridge I``; `sides` are ``R`` times the
    scores of the residual and ``R 1``.
    """
    _list_active(block, offsets, samples)
    for i in range(samples.size):
        p = samples[i]
        tie[i] = y[p]
        sides[0, i] = vectors[RESIDUAL_SCORES, p]
        sides[1, i] = 1.0
    centre(sides[0], tie, offsets, shrink)
    centre(sides[1], tie, offsets, shrink)
    write_upper_block(
        gram,
        means,
        vectors[SPARE, :0],
        tie,
        samples,
        offsets,
        shrink,
        ridge,
        matrix,
        pulls,
        vectors[SPARE],
        labels,
    )


@njit(cache=True, internal=True)
def _write_step(
    gram: FloatArray,
    means: FloatArray,
    samples: IntArray,
    tie: FloatArray,
    offsets: IntArray,
    shrink: FloatArray,
    ones: FloatArray,
    solved: FloatArray,
    vectors: FloatArray,
    figures: FloatArray,
    most: int,
) -> bool:
    """Overwrites the step, and `solved`, solutions for both sides of a Newton system.

    Returns whether its scores are there: with more than `most` samples they are left out.
    """
    demand = figures[IMBALANCE]
    curvature = 0.0
    for k in range(samples.size):
        demand -= solved[0, k] * ones[k]
        curvature += solved[1, k] * ones[k]
    intercept = demand / max(curvature, max(abs(demand) / MAX_INTERCEPT_STEP, 1e-300))
    figures[INTERCEPT_STEP] = intercept
    change = solved[0]
    for k in range(samples.size):
        change[k] = -change[k] - intercept * solved[1, k]
    centre(change, tie, offsets, shrink)
    for i in range(means.size):
        vectors[STEP, i] = vectors[RESIDUAL, i]
        vectors[STEP_SCORES, i] = vectors[RESIDUAL_SCORES, i]
        vectors[SPARE, i] = 0.0
    for k in range(samples.size):
        vectors[STEP, samples[k]] += change[k]
    if samples.size > most:
        return False
    add_rows(gram, means, samples, change, vectors[SPARE], vectors[STEP_SCORES])
    return True


@njit(cache=True, internal=True)
def _look_around(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    ascending: FloatArray,
    workspace: Workspace,
    last: IntArray,
    vectors: FloatArray,
    block: Labels,
    figures: FloatArray,
    most: int,
    stays: bool,
) -> None:
    """Overwrites the residual and the figures; the loss only where w moved or it is negative.

    Scores of the residual are left out where more than `most` of its entries are not 0.
    """
    if not stays or figures[LOSS] < 0.0:
        loss = 0.0
        for k in range(sort_again(vectors[SLACK], last, workspace)):
            loss += ascending[ascending.size - 1 - k] * workspace.keys[k]
        figures[LOSS] = loss
    index, values = workspace.order, workspace.keys
    product = 0.0
    moved = 0.0
    imbalance = 0.0
    squared = 0.0
    n_active = 0
    n_nonzero = 0
    for i in range(y.size):
        dual = vectors[DUAL, i]
        product += dual * vectors[SLACK, i]
        change = dual - vectors[MULTIPLIER, i]
        moved += change * change
        imbalance += y[i] * dual
        squared += vectors[COEF, i] * vectors[SCORES, i]
        if block[i] >= 0:
            n_active += 1
        missing = y[i] * dual - vectors[COEF, i]
        # A step of length 1 leaves its rounding where nothing else is missing.
        if abs(missing) <= _NOISE * abs(dual):
            missing = 0.0
        vectors[RESIDUAL, i] = missing
        vectors[RESIDUAL_SCORES, i] = 0.0
        vectors[SPARE, i] = 0.0
        if missing != 0.0:
            index[n_nonzero] = i
            values[n_nonzero] = missing
            n_nonzero += 1
    figures[PRODUCT] = product
    figures[MOVED] = moved
    figures[IMBALANCE] = imbalance
    figures[SQUARED_W] = squared
    figures[N_ACTIVE] = n_active
    figures[N_NONZERO] = n_nonzero
    if n_nonzero > most:
        return
    scores = vectors[RESIDUAL_SCORES]
    add_rows(gram, means, index[:n_nonzero], values[:n_nonzero], vectors[SPARE], scores)
    squared = 0.0
    for k in range(n_nonzero):
        squared += values[k] * scores[index[k]]
    figures[SQUARED] = max(squared, 0.0)


@njit(cache=True)
def advance(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    margin: FloatArray,
    ascending: FloatArray,
    workspace: Workspace,
    orders: IntArray,
    vectors: FloatArray,
    block: Labels,
    shrink: FloatArray,
    bracket: FloatArray,
    figures: FloatArray,
    samples: IntArray,
    tie: FloatArray,
    offsets: IntArray,
    ones: FloatArray,
    solved: FloatArray,
    penalty: float,
    slope_share: float,
    still_falling: float,
    most: int,
    how: int,
) -> int:
    """Overwrites the arrays from `workspace` to `figures`, and `solved`; see the constants.

    Moves to where a line search ends, then writes all that judging the place and the next step
    ask for. `samples` to `solved` belong to a solved system and are else not looked at.
    """
    if how == SOLVED and not _write_step(
        gram, means, samples, tie, offsets, shrink, ones, solved, vectors, figures, most
    ):
        return INCOMPLETE
    if how == STAY:
        shift_point(
            margin,
            vectors[SCORES],
            vectors[SCORES],
            y,
            figures[INTERCEPT],
            0.0,
            0.0,
            vectors[MULTIPLIER],
            1.0 / penalty,
            vectors[SLACK],
            vectors[V],
        )
        figures[N_BLOCKS] = pool_sorted(
            vectors[V],
            sort_again(vectors[V], orders[0], workspace),
            penalty,
            ascending,
            workspace,
            vectors[PROX],
            vectors[TRIAL],
            block,
            shrink,
        )
    else:
        slope = -figures[IMBALANCE] * figures[INTERCEPT_STEP]
        squared = 0.0
        for i in range(y.size):
            slope -= vectors[RESIDUAL, i] * vectors[STEP_SCORES, i]
            squared += vectors[STEP, i] * vectors[STEP_SCORES, i]
        if not slope < 0.0:
            return STUCK
        limited = abs(figures[INTERCEPT_STEP]) >= MAX_INTERCEPT_STEP
        start_search(bracket, slope, slope_share, limited)
        figures[N_BLOCKS] = search_along(
            bracket,
            still_falling,
            squared,
            margin,
            vectors[SCORES],
            vectors[STEP_SCORES],
            y,
            figures[INTERCEPT],
            figures[INTERCEPT_STEP],
            vectors[MULTIPLIER],
            penalty,
            vectors[DUAL],
            ascending,
            workspace,
            orders[0],
            vectors[SLACK],
            vectors[V],
            vectors[PROX],
            vectors[TRIAL],
            block,
            shrink,
        )
        step = bracket[LENGTH]
        for i in range(y.size):
            vectors[COEF, i] += step * vectors[STEP, i]
            vectors[SCORES, i] += step * vectors[STEP_SCORES, i]
        figures[INTERCEPT] += step * figures[INTERCEPT_STEP]
    for i in range(y.size):
        vectors[DUAL, i] = vectors[TRIAL, i]
    _look_around(
        gram,
        means,
        y,
        ascending,
        workspace,
        orders[1],
        vectors,
        block,
        figures,
        most,
        how == STAY,
    )
    return MOVED_ON
