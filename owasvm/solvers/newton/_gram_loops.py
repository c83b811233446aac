"""Compiled loops of the steps from a kernel matrix for the hinge.

Vectors are rows of a table and numbers entries of a list, so that a call has few arguments.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.losses.hinge import Workspace, prox_blocks
from owasvm.samples import MAX_INTERCEPT_STEP
from owasvm.solvers.newton._bracket import FIRST_SLOPE, proceed, start_search
from owasvm.solvers.newton._bracket import STEP as LENGTH
from owasvm.solvers.newton._loops import change_along, shift_point

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]

# Rows of the table: w, the residual and the step, each by coefficients and scores; multiplier and
# slacks; where a prox is taken, the prox, its dual and that of a trial.
COEF, SCORES, RESIDUAL, RESIDUAL_SCORES, STEP, STEP_SCORES = range(6)
MULTIPLIER, SLACK, V, PROX, DUAL, TRIAL = range(6, 12)
N_VECTORS = 12

# Entries of the list: the intercept and its step; dual'slack, the squared distance of dual and
# multiplier, the imbalance; the squared norm of w; entries of the residual that are not 0, active
# samples, blocks.
INTERCEPT, INTERCEPT_STEP, PRODUCT, MOVED, IMBALANCE = range(5)
SQUARED_W, N_NONZERO, N_ACTIVE, N_BLOCKS = range(5, 9)
N_FIGURES = 9

# Coefficients that are this close, relative to their size, are equal.
_NOISE = 1e-15


@njit(cache=True)
def write_system(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    scores: FloatArray,
    block: Labels,
    ridge: float,
    offsets: IntArray,
    samples: IntArray,
    system: FloatArray,
    tie: FloatArray,
    spare: FloatArray,
) -> None:
    """Overwrites the arrays from `offsets` on: active samples and the system of a Newton step.

    `samples` are listed by their labels, which begin at `offsets`. The first rows of `system` are
    ``R Q_AA R + ridge I``, their upper triangle at least; then come ``R`` times the `scores` of
    the residual and ``R 1``. R takes the mean, with the signs of y, from each block.
    """
    size = samples.size
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
        if block[i] >= 0:
            # What begins here becomes what ends here, and that is where the next one begins.
            at = offsets[block[i] + 1]
            offsets[block[i] + 1] = at + 1
            samples[at] = i
            tie[at] = y[i]
            spare[at] = means[i]
            system[size, at] = scores[i]
            system[size + 1, at] = 1.0
    is_tied = offsets.size > 2
    for i in range(size):
        kernel = gram[samples[i]]
        row = system[i]
        mean = spare[i]
        for j in range(0 if is_tied else i, size):
            row[j] = kernel[samples[j]] - mean - spare[j]
    # R on the left of the matrix, then of its transpose.
    for side in range(2 if is_tied else 0):
        if side == 1:
            for i in range(size):
                for j in range(i):
                    value = system[i, j]
                    system[i, j] = system[j, i]
                    system[j, i] = value
        for k in range(1, offsets.size - 1):
            for j in range(size):
                spare[j] = 0.0
            for i in range(offsets[k], offsets[k + 1]):
                row = system[i]
                for j in range(size):
                    spare[j] += tie[i] * row[j]
            count = offsets[k + 1] - offsets[k]
            for i in range(offsets[k], offsets[k + 1]):
                row = system[i]
                for j in range(size):
                    row[j] -= tie[i] / count * spare[j]
            row = system[size + side]
            mean = 0.0
            for i in range(offsets[k], offsets[k + 1]):
                mean += tie[i] * row[i]
            for i in range(offsets[k], offsets[k + 1]):
                row[i] -= tie[i] / count * mean
    for i in range(size):
        system[i, i] += ridge


@njit(cache=True)
def advance(
    y: FloatArray,
    margin: FloatArray,
    ascending: FloatArray,
    workspace: Workspace,
    vectors: FloatArray,
    block: Labels,
    shrink: FloatArray,
    bracket: FloatArray,
    figures: FloatArray,
    penalty: float,
    slope_share: float,
    still_falling: float,
    stays: bool,
) -> bool:
    """Overwrites the arrays from `workspace` on: the place where a search along the step ends.

    Or, where it `stays`, this one. Writes the residual there, without its scores; where it is not
    0 and what it is, into ``order`` and ``keys`` of `workspace`; and the figures. False where the
    step goes nowhere.
    """
    coef, scores, residual = vectors[COEF], vectors[SCORES], vectors[RESIDUAL]
    step, step_scores = vectors[STEP], vectors[STEP_SCORES]
    slack, dual, trial = vectors[SLACK], vectors[DUAL], vectors[TRIAL]
    multiplier = vectors[MULTIPLIER]
    squared = 0.0
    if stays:
        figures[INTERCEPT_STEP] = 0.0
        bracket[LENGTH] = 0.0
        step, step_scores = coef, scores
    else:
        slope = -figures[IMBALANCE] * figures[INTERCEPT_STEP]
        for i in range(y.size):
            slope -= residual[i] * step_scores[i]
            squared += step[i] * step_scores[i]
        if not slope < 0.0:
            return False
        limited = abs(figures[INTERCEPT_STEP]) >= MAX_INTERCEPT_STEP
        start_search(bracket, slope, slope_share, limited)
    falling = True
    while falling:
        length = bracket[LENGTH]
        shift_point(
            margin,
            scores,
            step_scores,
            y,
            figures[INTERCEPT],
            figures[INTERCEPT_STEP],
            length,
            multiplier,
            1.0 / penalty,
            slack,
            vectors[V],
        )
        figures[N_BLOCKS] = prox_blocks(
            vectors[V], penalty, ascending, workspace, vectors[PROX], trial, block, shrink
        )
        if stays:
            break
        change = change_along(trial, dual, step_scores, y, figures[INTERCEPT_STEP])
        slope = bracket[FIRST_SLOPE] + length * squared - change
        falling = proceed(bracket, slope, still_falling)
    length = bracket[LENGTH]
    figures[INTERCEPT] += length * figures[INTERCEPT_STEP]
    product = 0.0
    moved = 0.0
    imbalance = 0.0
    squared = 0.0
    n_active = 0
    n_nonzero = 0
    for i in range(y.size):
        coef[i] += length * step[i]
        scores[i] += length * step_scores[i]
        dual[i] = trial[i]
        product += dual[i] * slack[i]
        moved += (dual[i] - multiplier[i]) * (dual[i] - multiplier[i])
        imbalance += y[i] * dual[i]
        squared += coef[i] * scores[i]
        if block[i] >= 0:
            n_active += 1
        missing = y[i] * dual[i] - coef[i]
        # A step of length 1 leaves its rounding where nothing else is missing.
        if abs(missing) <= _NOISE * dual[i]:
            missing = 0.0
        residual[i] = missing
        if missing != 0.0:
            workspace.order[n_nonzero] = i
            workspace.keys[n_nonzero] = missing
            n_nonzero += 1
    figures[PRODUCT] = product
    figures[MOVED] = moved
    figures[IMBALANCE] = imbalance
    figures[SQUARED_W] = squared
    figures[N_ACTIVE] = n_active
    figures[N_NONZERO] = n_nonzero
    return True
