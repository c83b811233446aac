r"""Interior point method over groups of ranks, for weights that the Newton method finds hard.

Steep weights, and classes that overlap so much that w is nearly 0, tie hundreds of samples: the
pieces on which the augmented Lagrangian is smooth are tiny, and Newton steps end at the first of
them. An interior point method does not see pieces. It needs few levels of cost
(:mod:`~owasvm.solvers.interior.groups`), each of them a superquantile,

.. math::

    \min_{w, b, t \ge 0}\ \tfrac12 |w|^2 + \sum_g \text{jump}_g \Bigl( \text{reach}_g\, t_g
    + \sum_i s_i (u_i - t_g)_+ \Bigr),

and takes 10 to 50 iterations most often (140 were seen, with thousands of samples and hundreds of
levels), each with one factorisation of the size of the samples or of their features. Its dual
shares ``p`` lie in ``[0, jump_g s_i]`` with ``sum_i p_ig <= jump_g reach_g``, and
``a_i = sum_g p_ig`` is a dual point of the problem itself. Groups of samples that are ranked apart
have levels of their own.

The directions are those of Mehrotra with a few centrality corrections after Gondzio [1]_.

References
----------
.. [1] J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear
   programming", Computational Optimization and Applications 6 (1996) 137-156.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.clock import Clock
from owasvm.solvers.interior._pairs import (
    aim,
    aim_centre,
    expand,
    gap_after,
    gather,
    move,
    weigh,
)
from owasvm.solvers.interior.groups import Staircase, choose_groups
from owasvm.solvers.interior.systems import FeatureSystem, KernelSystem, Move, System

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "FeatureSystem",
    "KernelSystem",
    "Point",
    "Staircase",
    "System",
    "choose_groups",
    "minimise",
]

_MAX_ITERATIONS = 200
# A correction costs a tenth of a factorisation or less.
_MAX_CORRECTIONS = 10
# Products are aimed at this share of their mean, at most: short steps to a larger one made a
# third more iterations in ten fits of steep weights.
_MOST_CENTRING = 0.15
# Where a direction reaches this far no correction is worth its price,
_LONG_STEP = 0.9
# and one is kept when it lengthens the step by this much.
_GAIN = 0.01
# Steps end at this share of the way to the boundary, nearer where they are long.
_CAUTIOUS = 0.9
_BOLD = 0.99
# Shares of the cap and of the levels at the start.
_FIRST_SHARE = 0.9


@dataclass
class Point:
    """What the method ends with.

    Parameters
    ----------
    dual : ndarray of shape (n_samples,)
        A point of the dual set, balanced up to rounding.
    coef : ndarray of shape (n_samples,)
        Coefficients of w, which is near the one of `dual` and fits the slacks better.
    intercept : float
        Of the centred samples.
    slack : ndarray of shape (n_samples,)
        At w and the intercept.
    gap : float
        Between the levelled problem and its dual; infinite where numbers broke down.
    n_iter : int
        Iterations.
    """

    dual: FloatArray
    coef: FloatArray
    intercept: float
    slack: FloatArray
    gap: float
    n_iter: int


class _State:
    """All variables of the method, and the scratch arrays of its steps."""

    def __init__(self, stairs: Staircase, mass: FloatArray, y: FloatArray) -> None:
        n_samples, n_levels = y.size, stairs.jump.size
        self.jump, self.reach, self.mass, self.y = stairs.jump, stairs.reach, mass, y
        self.spans = stairs.spans
        levels = np.arange(n_levels)
        met = (self.spans[:, :1] <= levels) & (levels < self.spans[:, 1:])
        self.n_pairs = int(np.count_nonzero(met))
        filled = _FIRST_SHARE * stairs.reach / (mass @ met)
        self.share = np.where(met, np.outer(mass, stairs.jump * filled), 0.0)
        rest = np.where(met, np.outer(mass, stairs.jump) - self.share, np.inf)
        barrier = 0.5 * float(np.sum(self.share * (1.0 - filled))) / self.n_pairs
        typical = float(mass.mean())
        pushed = barrier / (typical * stairs.jump) * (1.0 / (1.0 - filled) - 1.0 / filled)
        self.level = 1.0 - np.clip(pushed, -2.0, 0.9)
        self.slack = np.ones(n_samples)
        self.intercept = 0.0
        self.above = barrier / rest
        self.below = np.divide(barrier, self.share, out=np.zeros_like(self.share), where=met)
        lacking = (self.slack[:, np.newaxis] - self.level) - (self.above - self.below)
        self.above += np.maximum(lacking, 0.0)
        self.below += np.maximum(-lacking, 0.0)
        self.dual = self.share.sum(axis=1)
        self.used = self.share.sum(axis=0)
        self.bound = stairs.jump * stairs.reach - self.used
        shape = (n_samples, n_levels)
        self.weight, self.offset = np.zeros(shape), np.empty(shape)
        self.inverses = np.empty((4, *shape))
        self.wanted_below, self.wanted_above = np.empty(shape), np.empty(shape)
        self.steps = (np.zeros(shape), np.zeros(shape), np.zeros(shape))
        self.spare_steps = (np.empty(shape), np.empty(shape), np.empty(shape))

    @property
    def pairs(
        self,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray]:
        return self.share, self.below, self.above, self.jump, self.mass, self.spans

    @property
    def n_products(self) -> int:
        return 2 * self.n_pairs + self.level.size


def minimise(
    system: System,
    y: FloatArray,
    mass: FloatArray | None,
    stairs: Staircase,
    accuracy: float,
    clock: Clock,
) -> Point:
    """Minimise the levelled problem until its relative gap is below `accuracy`."""
    state = _State(stairs, np.ones(y.size) if mass is None else mass, y)
    by_sample, by_level = np.empty(y.size), np.empty(stairs.jump.size)
    best = Point(state.dual.copy(), system.w.copy(), 0.0, state.slack.copy(), np.inf, 0)
    with np.errstate(all="ignore"):
        for n_iter in range(_MAX_ITERATIONS):
            gap = weigh(*state.pairs, state.inverses, state.weight, by_sample, by_level)
            gap += float(state.level @ state.bound)
            distance = system.begin(state.dual)
            value = float(state.dual.sum()) - 0.5 * distance
            error = (gap + distance) / max(1.0, abs(value))
            if not np.isfinite(error):
                break
            if error < best.gap:
                best = Point(
                    state.dual.copy(),
                    system.w.copy(),
                    state.intercept,
                    state.slack.copy(),
                    error,
                    n_iter,
                )
            if error <= accuracy or clock.expired:
                break
            system.factorise(state.weight, by_sample, by_level + state.bound / state.level)
            if not _iterate(state, system, gap / state.n_products):
                break
        return replace(best, coef=system.coefficients(best.coef, best.dual))


def _iterate(state: _State, system: System, barrier: float) -> bool:
    """One predictor, one corrector, some corrections of centrality; False where all break down."""
    lacking = state.jump * state.reach - state.used - state.bound
    wanted_bound = -state.level * state.bound
    for steps in state.steps:
        steps[:] = 0.0
    aim(0.0, *state.pairs, *state.steps, state.wanted_below, state.wanted_above)
    direction, bound_step, longest = _solve(state, system, wanted_bound, lacking)
    reached = gap_after(longest, *state.pairs, *state.steps) + float(
        (state.level + longest * direction.level) @ (state.bound + longest * bound_step)
    )
    centring = (reached / (barrier * state.n_products)) ** 3
    centring = min(max(centring, 1e-6), _MOST_CENTRING)
    target = centring * barrier
    wanted_bound = target - state.level * state.bound - direction.level * bound_step
    aim(target, *state.pairs, *state.steps, state.wanted_below, state.wanted_above)
    direction, bound_step, longest = _solve(state, system, wanted_bound, lacking)
    for _ in range(_MAX_CORRECTIONS):
        if longest >= _LONG_STEP:
            break
        further = min(1.0, longest + 0.3)
        aim_centre(
            target, further, *state.pairs, *state.steps, state.wanted_below, state.wanted_above
        )
        product = (state.level + further * direction.level) * (state.bound + further * bound_step)
        corrected = wanted_bound + np.maximum(
            np.clip(product, 0.1 * target, 10.0 * target) - product, -10.0 * target
        )
        state.steps, state.spare_steps = state.spare_steps, state.steps
        attempt, attempt_bound, attempt_longest = _solve(state, system, corrected, lacking)
        if not attempt_longest > longest:
            state.steps, state.spare_steps = state.spare_steps, state.steps
            break
        enough = attempt_longest >= longest + _GAIN
        direction, bound_step, longest = attempt, attempt_bound, attempt_longest
        wanted_bound = corrected
        if not enough:
            break
    if not (np.isfinite(longest) and longest > 1e-12 and np.all(np.isfinite(direction.slack))):
        return False
    step = longest * (_BOLD if longest >= _LONG_STEP else _CAUTIOUS)
    state.level += step * direction.level
    state.bound += step * bound_step
    state.slack += step * direction.slack
    state.intercept += step * direction.intercept
    system.advance(step, direction)
    share, below, above, *_ = state.pairs
    move(step, state.spans, share, below, above, *state.steps, state.dual, state.used)
    return True


def _solve(
    state: _State, system: System, wanted_bound: FloatArray, lacking: FloatArray
) -> tuple[Move, FloatArray, float]:
    """The direction for the wanted changes, the step of the bounds, and the longest step."""
    by_sample, by_level = np.empty(state.y.size), np.empty(state.level.size)
    arguments = (state.wanted_below, state.wanted_above)
    weights = (state.inverses, state.weight, state.offset)
    gather(state.spans, *arguments, *weights, by_sample, by_level)
    by_level += wanted_bound / state.level - lacking
    found = system.solve(by_sample, by_level)
    blocking = expand(
        state.spans,
        found.slack,
        found.level,
        *arguments,
        state.below,
        state.above,
        state.inverses,
        state.weight,
        state.offset,
        *state.steps,
    )
    bound_step = (wanted_bound - state.bound * found.level) / state.level
    blocking = max(
        blocking,
        float(np.max(-found.level / state.level)),
        float(np.max(-bound_step / state.bound)),
        1.0,
    )
    return found, bound_step, 1.0 / blocking
