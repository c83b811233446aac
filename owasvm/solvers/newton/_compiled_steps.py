"""Newton steps of small kernel problems in one compiled loop.

The method is that of :mod:`owasvm.solvers.newton.core`, and so are its parts; what is compiled
here is what lies between them. One function of this size takes seconds to compile, so that it
serves series of fits and nothing else (:mod:`owasvm.solvers.newton.series`). What belongs to
the loss comes as a :class:`owasvm.losses.parts.RankTable`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.losses.parts import (
    INACTIVE,
    RankTable,
    charge_copies,
    pool_and_clip_copies,
    pool_and_clip_equal,
    sort_beside,
)
from owasvm.samples.operators import DIGITS, MAX_INTERCEPT_STEP, SAME, limit_intercept
from owasvm.samples.parts import add_gram_rows_to, centre, write_gram_block
from owasvm.solvers.newton._bracket import begin_search, next_step
from owasvm.solvers.newton._loops import (
    add_up,
    change_along,
    count_active,
    shift_point,
    write_active,
)
from owasvm.solvers.newton._rules import (
    NEAR_ENOUGH,
    ROUNDING,
    choose_growth,
    choose_share,
    ends_inner_loop,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int32]

# Rows of `vectors`. The residual and the direction are held by their coefficients and scores, as
# w is. Where a whole step is to be looked at, `TRIAL` and `VALUES` are its dual point and slacks.
N_VECTORS = 15
COEF, SCORES, MULTIPLIER, DUAL, SLACK = range(5)
RESIDUAL, RESIDUAL_SCORES, DIRECTION, DIRECTION_SCORES = range(5, 9)
# The density is the multiplier over the masses. Wanted are the coefficients that the dual point of
# the last look asks for, and their scores.
TRIAL, _PARTIAL, VALUES, _DENSITY, _WANTED, _WANTED_SCORES = range(9, 15)
# Entries of `numbers`.
N_NUMBERS = 19
INTERCEPT, PENALTY, OBJECTIVE, GAP, N_ITER, N_ACTIVE = range(6)
STEPS, LAST_GAP, _LOSS, KNOWN_AT, _SQUARED, _MOVEMENT, IMBALANCE, INTERCEPT_STEP = range(6, 14)
N_SOLVED, _PRODUCT, N_READ, WHOLE_OBJECTIVE, WHOLE_GAP = range(14, 19)
# Where the loop stands, entries of `stage`: what is next, the blocks of ties at the point and at
# the one before the multiplier moved, -1 where that is of no use.
N_STAGES = 3
STAGE, N_BLOCKS, N_KEPT = range(3)
# The estimated gap is at least what the residual contributes. Where that is so many times the gap
# that somebody waits for, the loss, for which slacks are sorted, is left out.
_FAR = 2.0
# What is next.
BEGIN, LOOK, STEP, LARGE_SYSTEM, BEHIND_SYSTEM, WHOLE_STEP, BEHIND_WHOLE_STEP = range(7)


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def _dot(one: FloatArray, other: FloatArray) -> float:
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def _factorise(matrix: FloatArray) -> bool:
    """Overwrites the upper triangle of `matrix` with its Cholesky factor; False without one.

    Four rows at a time are taken off those behind them: reading and writing these is what takes
    time.
    """
    size = matrix.shape[0]
    for first in range(0, size, 4):
        behind = min(first + 4, size)
        for i in range(first, behind):
            row = matrix[i, i:]
            for k in range(first, i):
                factor = matrix[k, i]
                other = matrix[k, i:]
                for j in range(row.size):
                    row[j] -= factor * other[j]
            if not row[0] > 0.0:
                return False
            scale = 1.0 / math.sqrt(row[0])
            for j in range(row.size):
                row[j] *= scale
        # None is behind them where they are fewer than four.
        for i in range(behind, size):
            row = matrix[i, i:]
            one, two = matrix[first, i:], matrix[first + 1, i:]
            three, four = matrix[first + 2, i:], matrix[first + 3, i:]
            a, b, c, d = one[0], two[0], three[0], four[0]
            for j in range(row.size):
                row[j] -= a * one[j] + b * two[j] + c * three[j] + d * four[j]
    return True


@njit(cache=True, internal=True, fastmath={"reassoc", "contract"})
def _solve_both(factor: FloatArray, one: FloatArray, other: FloatArray) -> None:
    """Changes both sides in place to their solutions, given the upper Cholesky factor."""
    size = one.size
    for i in range(size):
        scale = 1.0 / factor[i, i]
        a, b = one[i] * scale, other[i] * scale
        one[i], other[i] = a, b
        for k in range(i + 1, size):
            one[k] -= factor[i, k] * a
            other[k] -= factor[i, k] * b
    for i in range(size - 1, -1, -1):
        first, second = one[i], other[i]
        for k in range(i + 1, size):
            first -= factor[i, k] * one[k]
            second -= factor[i, k] * other[k]
        scale = 1.0 / factor[i, i]
        one[i], other[i] = first * scale, second * scale


@njit(cache=True, internal=True)
def _take_prox(
    vectors: FloatArray,
    step: float,
    numbers: FloatArray,
    y: FloatArray,
    losses: RankTable,
    block: Labels,
    shrink: FloatArray,
    margin: FloatArray,
) -> int:
    """Overwrites the trial point and `block`: those at a step along the direction."""
    v = losses.workspace.levels
    shift_point(
        margin,
        vectors[SCORES],
        vectors[DIRECTION_SCORES],
        y,
        numbers[INTERCEPT],
        numbers[INTERCEPT_STEP],
        step,
        vectors[_DENSITY],
        1.0 / numbers[PENALTY],
        v,
        v,
    )
    return _pool(v, numbers[PENALTY], y, losses, block, shrink, vectors[TRIAL])


@njit(cache=True, internal=True)
def _pool(
    v: FloatArray,
    penalty: float,
    y: FloatArray,
    losses: RankTable,
    block: Labels,
    shrink: FloatArray,
    dual: FloatArray,
) -> int:
    """Overwrites `block`, `shrink` and `dual`: the prox at v."""
    weights, sums, mass, workspace, pooling = losses
    for i in range(y.size):
        dual[i] = 0.0
        block[i] = INACTIVE
    size = sort_beside(v, y, 0.0, 0.0, workspace)
    # Nobody asks for the prox itself.
    prox = dual[:0]
    if mass.size == 0:
        return pool_and_clip_equal(size, penalty, weights, workspace, prox, dual, block, shrink)
    return pool_and_clip_copies(
        size, penalty, weights, sums, mass, workspace, pooling, prox, dual, block, shrink
    )


@njit(cache=True, internal=True)
def _find_loss(slack: FloatArray, y: FloatArray, losses: RankTable) -> float:
    """What the slacks cost."""
    weights, sums, mass, workspace, pooling = losses
    size = sort_beside(slack, y, 0.0, 0.0, workspace)
    loss = 0.0
    if mass.size == 0:
        for k in range(size):
            loss += weights[weights.size - 1 - k] * workspace.keys[k]
        return loss
    charge_copies(size, weights, sums, mass, workspace, pooling.losses)
    for k in range(size):
        loss += pooling.losses[k] * workspace.keys[k]
    return loss


@njit(cache=True, internal=True)
def _find_residual(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    rows: IntArray,
    vectors: FloatArray,
    numbers: FloatArray,
) -> None:
    """Writes the residual, its squared norm and the imbalance at the point."""
    coef, scores, dual = vectors[COEF], vectors[SCORES], vectors[DUAL]
    residual, residual_scores = vectors[RESIDUAL], vectors[RESIDUAL_SCORES]
    values, partial = vectors[VALUES], vectors[_PARTIAL]
    wanted, wanted_scores = vectors[_WANTED], vectors[_WANTED_SCORES]
    same = 0.0
    for i in range(y.size):
        same += dual[i]
    same *= SAME / y.size
    imbalance = 0.0
    size = 0
    for i in range(y.size):
        value = y[i] * dual[i]
        imbalance += value
        partial[i] = 0.0
        # Samples that keep their rank keep their coefficient, or move as the step has foreseen.
        if not abs(value - wanted[i]) <= same:
            rows[size] = i
            values[size] = value - wanted[i]
            wanted[i] = value
            size += 1
        residual[i] = wanted[i] - coef[i]
    add_gram_rows_to(gram, means, rows[:size], values[:size], partial, wanted_scores)
    numbers[N_READ] += size
    largest = 0.0
    total = 0.0
    for i in range(y.size):
        residual_scores[i] = wanted_scores[i] - scores[i]
        largest = max(largest, abs(wanted_scores[i]))
        total += abs(residual[i])
    squared = max(_dot(residual, residual_scores), 0.0)
    if not squared > DIGITS * largest * total:
        # Most digits of the difference are lost.
        size = 0
        for i in range(y.size):
            partial[i] = 0.0
            residual[i] = y[i] * dual[i] - coef[i]
            residual_scores[i] = 0.0
            if residual[i] != 0.0:
                rows[size] = i
                values[size] = residual[i]
                size += 1
        add_gram_rows_to(gram, means, rows[:size], values[:size], partial, residual_scores)
        numbers[N_READ] += size
        squared = max(_dot(residual, residual_scores), 0.0)
    numbers[_SQUARED] = squared
    numbers[IMBALANCE] = imbalance


@njit(cache=True, internal=True)
def _estimate_gap(
    y: FloatArray, losses: RankTable, vectors: FloatArray, numbers: FloatArray
) -> None:
    """Writes objective and gap at the point."""
    if numbers[KNOWN_AT] != numbers[N_ITER]:
        # Else the multiplier has moved, and nothing but that.
        numbers[_LOSS] = _find_loss(vectors[SLACK], y, losses)
        numbers[OBJECTIVE] = 0.5 * _dot(vectors[COEF], vectors[SCORES]) + numbers[_LOSS]
        numbers[KNOWN_AT] = numbers[N_ITER]
    numbers[GAP] = 0.5 * numbers[_SQUARED] + numbers[_LOSS] - numbers[_PRODUCT]


@njit(cache=True, internal=True)
def _look(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    losses: RankTable,
    margin: FloatArray,
    rows: IntArray,
    vectors: FloatArray,
    numbers: FloatArray,
) -> None:
    """Writes slacks, residual and what a gap is estimated by at the point."""
    scores, slack, multiplier = vectors[SCORES], vectors[SLACK], vectors[MULTIPLIER]
    shift_point(
        margin, scores, scores, y, numbers[INTERCEPT], 0.0, 0.0, multiplier, 0.0, slack, slack
    )
    _find_residual(gram, means, y, rows, vectors, numbers)
    product, moved = add_up(vectors[DUAL], slack, multiplier, losses.mass)
    numbers[_PRODUCT] = product
    numbers[_MOVEMENT] = math.sqrt(moved / numbers[PENALTY])
    numbers[GAP] = np.inf


@njit(cache=True, internal=True)
def _find_direction(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    shrink: FloatArray,
    block: Labels,
    n_blocks: int,
    largest: int,
    mass: FloatArray,
    vectors: FloatArray,
    numbers: FloatArray,
) -> bool:
    """Writes the Newton step; False where it is not for this loop."""
    offsets = np.empty(n_blocks + 2, dtype=np.int64)
    size = count_active(block, offsets)
    numbers[N_ACTIVE] = size
    if size >= largest:
        return False
    direction, scores = vectors[DIRECTION], vectors[DIRECTION_SCORES]
    residual, residual_scores = vectors[RESIDUAL], vectors[RESIDUAL_SCORES]
    partial = vectors[_PARTIAL]
    imbalance = numbers[IMBALANCE]
    for i in range(y.size):
        direction[i] = residual[i]
        scores[i] = residual_scores[i]
        partial[i] = 0.0
    if size == 0:
        numbers[INTERCEPT_STEP] = np.sign(imbalance) * MAX_INTERCEPT_STEP
        return True
    active = np.empty(size, dtype=np.int64)
    root, tie = np.empty(size), np.empty(size)
    write_active(block, y, mass, offsets, active, root, tie)
    matrix, z, ones = np.empty((size, size)), np.empty(size), np.empty(size)
    ridge = 1.0 / numbers[PENALTY]
    write_gram_block(gram, means, root, tie, active, offsets, shrink, ridge, matrix, z)
    if not _factorise(matrix):
        return False
    for i in range(size):
        z[i] = root[i] * residual_scores[active[i]]
        ones[i] = root[i]
    centre(z, tie, offsets, shrink)
    centre(ones, tie, offsets, shrink)
    rest = ones.copy()
    _solve_both(matrix, z, rest)
    pulled, curvature = _dot(z, ones), _dot(rest, ones)
    intercept = limit_intercept(imbalance - pulled, curvature)
    numbers[INTERCEPT_STEP] = intercept
    for i in range(size):
        z[i] = -z[i] - intercept * rest[i]
    centre(z, tie, offsets, shrink)
    for i in range(size):
        z[i] *= root[i]
        direction[active[i]] += z[i]
    add_gram_rows_to(gram, means, active, z, partial, scores)
    numbers[N_READ] += size
    return True


@njit(cache=True, internal=True)
def _foresee_whole_step(
    y: FloatArray,
    losses: RankTable,
    margin: FloatArray,
    block: Labels,
    shrink: FloatArray,
    allowed: float,
    vectors: FloatArray,
    numbers: FloatArray,
) -> bool:
    """Whether the coefficients behind the whole step may prove the gap that is allowed.

    Writes its objective and gap, and overwrites its slacks and dual point; `block` and `shrink`
    belong to nothing any more. As :meth:`owasvm.solvers.newton.core.Inner.foresee_whole_step`.
    """
    coef, direction = vectors[COEF], vectors[DIRECTION]
    scores, steps = vectors[SCORES], vectors[DIRECTION_SCORES]
    slack, guess, dual = vectors[VALUES], vectors[_PARTIAL], vectors[TRIAL]
    moved = numbers[INTERCEPT_STEP]
    multiplier, intercept = vectors[MULTIPLIER], numbers[INTERCEPT]
    shift_point(margin, scores, steps, y, intercept, moved, 1.0, multiplier, 0.0, slack, slack)
    squared, linear = 0.0, 0.0
    for i in range(y.size):
        whole = coef[i] + direction[i]
        guess[i] = y[i] * whole
        squared += whole * (scores[i] + steps[i])
        linear += (margin[i] if margin.size > 1 else margin[0]) * guess[i]
    objective = 0.5 * squared + _find_loss(slack, y, losses)
    gap = objective + 0.5 * squared - linear
    if not gap <= allowed:
        return False
    for i in range(y.size):
        gap += slack[i] * guess[i]
        if losses.mass.size > 0:
            guess[i] /= losses.mass[i]
    _pool(guess, 1.0, y, losses, block, shrink, dual)
    gap -= _dot(slack, dual)
    numbers[WHOLE_OBJECTIVE], numbers[WHOLE_GAP] = objective, gap
    return gap <= allowed


@njit(cache=True)
def run_steps(
    gram: FloatArray,
    means: FloatArray,
    y: FloatArray,
    losses: RankTable,
    margin: FloatArray,
    largest: int,
    rules: tuple[float, float, float, float, float, float, float, float, float],
    growths: tuple[tuple[int, float], ...],
    penalties: tuple[float, float],
    max_inner_steps: int,
    look_below: float,
    whole_below: float,
    last_step: int,
    rows: IntArray,
    block: Labels,
    kept: Labels,
    shrink: FloatArray,
    vectors: FloatArray,
    numbers: FloatArray,
    stage: IntArray,
) -> None:
    """Changes the arrays from `rows` on in place: goes on until somebody is to look.

    That is at an estimated gap of `look_below`, relative to the objective, at step `last_step`,
    where numbers overflow, at a Newton system of the size `largest` or without a factor, and at a
    whole step that may prove a gap of `whole_below`: ``stage[STAGE]`` tells which, LOOK,
    LARGE_SYSTEM or WHOLE_STEP. After a look the loop goes on from there; after the step of a large
    system was written, it goes on BEHIND_SYSTEM, and BEHIND_WHOLE_STEP after a whole step.
    """
    inner_share, solved_share, slope_share, still_falling, fast_round, lowers = rules[:6]
    last_share, patience, late_growth = rules[6:]
    direction, direction_scores = vectors[DIRECTION], vectors[DIRECTION_SCORES]
    residual, residual_scores = vectors[RESIDUAL], vectors[RESIDUAL_SCORES]
    wanted, wanted_scores = vectors[_WANTED], vectors[_WANTED_SCORES]
    dual, trial = vectors[DUAL], vectors[TRIAL]
    coef, scores, multiplier = vectors[COEF], vectors[SCORES], vectors[MULTIPLIER]
    density, mass = vectors[_DENSITY], losses.mass
    looks = False
    while True:
        if stage[STAGE] == BEGIN:
            numbers[INTERCEPT_STEP] = 0.0
            for i in range(y.size):
                density[i] = multiplier[i] if mass.size == 0 else multiplier[i] / mass[i]
            stage[N_BLOCKS] = _take_prox(vectors, 0.0, numbers, y, losses, block, shrink, margin)
            for i in range(y.size):
                dual[i] = trial[i]
            numbers[STEPS] = 0.0
            looks = True
        if looks:
            _look(gram, means, y, losses, margin, rows, vectors, numbers)
            stage[STAGE] = LOOK
            is_last = numbers[N_ITER] >= last_step
            # Of the last objective that is known.
            enough = look_below * max(1.0, abs(numbers[OBJECTIVE]))
            if is_last or not 0.5 * numbers[_SQUARED] > _FAR * enough:
                _estimate_gap(y, losses, vectors, numbers)
                relative = numbers[GAP] / max(1.0, abs(numbers[OBJECTIVE]))
                if is_last or not relative > look_below:
                    return
        stuck = False
        has_direction = stage[STAGE] == BEHIND_SYSTEM or stage[STAGE] == BEHIND_WHOLE_STEP
        ends = not has_direction and (
            ends_inner_loop(
                int(numbers[STEPS]),
                numbers[_SQUARED],
                numbers[IMBALANCE],
                numbers[_MOVEMENT],
                numbers[PENALTY],
                # A residual that is that large is not all but solved for.
                numbers[GAP] if numbers[GAP] < np.inf else 0.0,
                choose_share(numbers[N_ITER], inner_share, last_share, patience),
                solved_share,
            )
            or numbers[STEPS] >= max_inner_steps
        )
        if not ends:
            if not has_direction:
                has_kept = stage[N_KEPT] >= 0
                if not _find_direction(
                    gram,
                    means,
                    y,
                    shrink,
                    kept if has_kept else block,
                    stage[N_KEPT] if has_kept else stage[N_BLOCKS],
                    largest,
                    mass,
                    vectors,
                    numbers,
                ):
                    stage[STAGE] = LARGE_SYSTEM
                    _estimate_gap(y, losses, vectors, numbers)
                    return
            stage[N_KEPT] = -1
            intercept_step = numbers[INTERCEPT_STEP]
            slope = -_dot(residual, direction_scores)
            slope -= numbers[IMBALANCE] * intercept_step
            allowed = whole_below * max(1.0, abs(numbers[OBJECTIVE]))
            if (
                slope < 0.0
                and stage[STAGE] != BEHIND_WHOLE_STEP
                and 0.5 * numbers[_SQUARED] <= NEAR_ENOUGH * allowed
                and _foresee_whole_step(
                    y, losses, margin, block, shrink, allowed, vectors, numbers
                )
            ):
                stage[STAGE] = WHOLE_STEP
                return
            stage[STAGE] = STEP
            if slope < 0.0:
                squared_norm = _dot(direction, direction_scores)
                goal, longer = slope_share * abs(slope), still_falling * slope
                state = begin_search(slope, abs(intercept_step) >= MAX_INTERCEPT_STEP)
                goes_on = True
                step = 1.0
                while goes_on:
                    step = state[0]
                    stage[N_BLOCKS] = _take_prox(
                        vectors, step, numbers, y, losses, block, shrink, margin
                    )
                    change = change_along(trial, dual, direction_scores, y, intercept_step)
                    there = slope + step * squared_norm - change
                    goes_on, state = next_step(state, there, goal, longer)
                for i in range(y.size):
                    # All but the residual is how the dual point moves while ranks stay.
                    wanted[i] += step * (direction[i] - residual[i])
                    wanted_scores[i] += step * (direction_scores[i] - residual_scores[i])
                    coef[i] += step * direction[i]
                    scores[i] += step * direction_scores[i]
                    dual[i] = trial[i]
                numbers[INTERCEPT] += step * intercept_step
                numbers[N_ITER] += 1.0
                numbers[N_SOLVED] = numbers[N_ACTIVE]
                numbers[STEPS] += 1.0
                looks = True
                continue
            stuck = True
        n_steps = int(numbers[STEPS])
        if numbers[GAP] == np.inf:
            _estimate_gap(y, losses, vectors, numbers)
        if n_steps == 0:
            # A move of the multiplier alone counts too, or the limit might never be met.
            numbers[N_ITER] += 1.0
        # The first step with the new multiplier goes by the partition at hand.
        any_active = False
        for i in range(y.size):
            kept[i] = block[i]
            any_active |= block[i] >= 0
            multiplier[i] = dual[i]
        stage[N_KEPT] = stage[N_BLOCKS] if any_active else -1
        gap, objective = numbers[GAP], numbers[OBJECTIVE]
        gap_ratio = gap / max(numbers[LAST_GAP], 1e-300)
        stuck = stuck or gap <= ROUNDING * max(1.0, objective)
        growth = choose_growth(
            stuck or n_steps >= max_inner_steps,
            n_steps,
            gap_ratio,
            growths,
            fast_round,
            lowers,
            late_growth if numbers[N_ITER] > patience else np.inf,
        )
        numbers[PENALTY] = max(min(numbers[PENALTY] * growth, penalties[1]), penalties[0])
        numbers[LAST_GAP] = gap
        stage[STAGE] = BEGIN
