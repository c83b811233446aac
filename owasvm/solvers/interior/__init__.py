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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.clock import Clock
from owasvm.solvers.interior._pairs import centre
from owasvm.solvers.interior.groups import Staircase, choose_groups
from owasvm.solvers.interior.pairs import ArrayPairs, CompiledPairs, Pairs, PairStart
from owasvm.solvers.interior.systems import (
    FeatureSystem,
    KernelSystem,
    Move,
    System,
    TruncatedSystem,
    Weights,
)

if TYPE_CHECKING:
    from owasvm.samples.device import Place

FloatArray = NDArray[np.float64]

__all__ = [
    "FeatureSystem",
    "KernelSystem",
    "Point",
    "Staircase",
    "Start",
    "System",
    "TruncatedSystem",
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
# After so many steps below this a start is given up; the next one has so many times its gap.
_MOST_SHORT_STEPS = 3
_SHORT_STEP = 0.03
_FURTHER = 10.0
# A start that ends this close, in multiples of the accuracy, is as good as there.
_NEARLY = 2.0
# Shares of the cap and of the levels at the start.
_FIRST_SHARE = 0.9


@dataclass
class Point:
    """What the method ends with.

    Parameters
    ----------
    dual : ndarray of shape (n_samples,)
        A point of the dual set, balanced up to rounding.
    w : ndarray
        In the coordinates of the system: near the one of `dual`, and fits the slacks better.
    coef : ndarray of shape (n_samples,)
        Balanced coefficients of w, near `dual`.
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
    w: FloatArray
    coef: FloatArray
    intercept: float
    slack: FloatArray
    gap: float
    n_iter: int


@dataclass
class Start:
    """A point to begin at.

    Parameters
    ----------
    w, coef, intercept, slack
        As in :class:`Point`.
    gap : float
        Between the levelled problem and its dual, to begin with: a multiple of what the point is
        off by.
    """

    w: FloatArray
    coef: FloatArray
    intercept: float
    slack: FloatArray
    gap: float


class _State:
    """All variables of the method."""

    def __init__(
        self,
        stairs: Staircase,
        mass: FloatArray,
        place: Place | None,
        start: Start | None,
    ) -> None:
        n_levels = stairs.jump.size
        n_pairs = int(np.sum(stairs.spans[:, 1] - stairs.spans[:, 0]))
        self.n_products = 2 * n_pairs + n_levels
        self.limit = stairs.jump * stairs.reach
        # What levels that do not meet their limits yet cost, about; steps leave a share of it.
        self.beyond = 0.0
        pairs = self._begin(stairs, mass) if start is None else self._go_on(stairs, mass, start)
        self.pairs: Pairs
        if place is not None and n_pairs == mass.size * n_levels:
            self.pairs = ArrayPairs(pairs, place)
        else:
            self.pairs = CompiledPairs(pairs)

    def _begin(self, stairs: Staircase, mass: FloatArray) -> PairStart:
        """At w = 0."""
        levels = np.arange(stairs.jump.size)
        met = (stairs.spans[:, :1] <= levels) & (levels < stairs.spans[:, 1:])
        n_pairs = int(np.count_nonzero(met))
        filled = _FIRST_SHARE * stairs.reach / (mass @ met)
        share = np.where(met, np.outer(mass, stairs.jump * filled), 0.0)
        rest = np.where(met, np.outer(mass, stairs.jump) - share, np.inf)
        barrier = 0.5 * float(np.sum(share * (1.0 - filled))) / n_pairs
        typical = float(mass.mean())
        pushed = barrier / (typical * stairs.jump) * (1.0 / (1.0 - filled) - 1.0 / filled)
        self.level = 1.0 - np.clip(pushed, -2.0, 0.9)
        self.slack = np.ones(mass.size)
        self.intercept = 0.0
        above = barrier / rest
        below = np.divide(barrier, share, out=np.zeros_like(share), where=met)
        lacking = (self.slack[:, np.newaxis] - self.level) - (above - below)
        above += np.maximum(lacking, 0.0)
        below += np.maximum(-lacking, 0.0)
        self.dual = share.sum(axis=1)
        self.used = share.sum(axis=0)
        self.bound = self.limit - self.used
        return PairStart(share, below, above, stairs.jump, mass, stairs.spans)

    def _go_on(self, stairs: Staircase, mass: FloatArray, start: Start) -> PairStart:
        """On the central path of the pairs, at given slacks and levels."""
        shape = mass.size, stairs.jump.size
        barrier = start.gap / self.n_products
        self.slack, self.intercept = start.slack.copy(), start.intercept
        # No level leaves more of its limit than all of it.
        self.level = np.maximum(stairs.height, barrier / self.limit)
        self.bound = barrier / self.level
        pairs = PairStart(
            np.zeros(shape), np.ones(shape), np.ones(shape), stairs.jump, mass, stairs.spans
        )
        self.dual, self.used = np.empty(shape[0]), np.empty(shape[1])
        centre(
            barrier,
            self.slack,
            self.level,
            stairs.jump,
            mass,
            stairs.spans,
            pairs.share,
            pairs.below,
            pairs.above,
            self.dual,
            self.used,
        )
        self.beyond = float(self.level @ np.abs(self.limit - self.used - self.bound))
        return pairs


def minimise(
    system: System,
    y: FloatArray,
    mass: FloatArray | None,
    stairs: Staircase,
    accuracy: float,
    clock: Clock,
    place: Place | None = None,
    start: Start | None = None,
) -> Point:
    """Minimise the levelled problem until its relative gap is below `accuracy`.

    `place` is the device to keep the pairs on. Without a `start` the method begins at w = 0; one
    that leads nowhere is tried again further from the boundary, and given up then.
    """
    mass = np.ones(y.size) if mass is None else mass
    starts: list[Start | None] = [None]
    if start is not None:
        starts = [replace(start, gap=_FURTHER**k * start.gap) for k in range(3)] + [None]
    for begin in starts:
        if begin is None:
            system.reset()
        else:
            system.go_to(begin.w, begin.coef)
        state = _State(stairs, mass, place, begin)
        point = _descend(system, state, accuracy, clock, may_give_up=begin is not None)
        if point.gap <= _NEARLY * accuracy or clock.expired:
            break
    return point


def _descend(
    system: System, state: _State, accuracy: float, clock: Clock, *, may_give_up: bool
) -> Point:
    """Iterate until the accuracy is reached, numbers break down, or short steps lead nowhere."""
    best = Point(
        state.dual.copy(), system.w.copy(), system.coef.copy(), 0.0, state.slack.copy(), np.inf, 0
    )
    n_short = 0
    with np.errstate(all="ignore"):
        for n_iter in range(_MAX_ITERATIONS):
            gap, weight, by_sample, by_level = state.pairs.weigh()
            gap += float(state.level @ state.bound)
            weights = Weights(weight, by_sample, by_level + state.bound / state.level)
            distance = system.begin(state.dual, gap)
            value = float(state.dual.sum()) - 0.5 * distance
            error = (gap + state.beyond + distance) / max(1.0, abs(value))
            if not np.isfinite(error):
                break
            if error < best.gap:
                best = Point(
                    state.dual.copy(),
                    system.w.copy(),
                    system.coef.copy(),
                    state.intercept,
                    state.slack.copy(),
                    error,
                    n_iter,
                )
            if error <= accuracy or clock.expired:
                break
            system.factorise(weights)
            step = _iterate(state, system, gap / state.n_products)
            n_short += int(step < _SHORT_STEP)
            if step <= 0.0 or (may_give_up and n_short == _MOST_SHORT_STEPS):
                break
    return best


def _iterate(state: _State, system: System, barrier: float) -> float:
    """A predictor, a corrector, some corrections of centrality; the step, 0 in a breakdown."""
    pairs = state.pairs
    lacking = state.limit - state.used - state.bound
    wanted_bound = -state.level * state.bound
    sums = pairs.aim(0.0, corrects=False)
    direction, bound_step, longest, second = _solve(state, system, sums, wanted_bound, lacking)
    gap = barrier * state.n_products
    second += float(direction.level @ bound_step)
    centring = (1.0 - longest + longest**2 * second / gap) ** 3
    centring = min(max(centring, 1e-6), _MOST_CENTRING)
    target = centring * barrier
    wanted_bound = target - state.level * state.bound - direction.level * bound_step
    sums = pairs.aim(target, corrects=True)
    direction, bound_step, longest, _ = _solve(state, system, sums, wanted_bound, lacking)
    for _ in range(_MAX_CORRECTIONS):
        if longest >= _LONG_STEP:
            break
        further = min(1.0, longest + 0.3)
        sums = pairs.aim_centre(target, further)
        product = (state.level + further * direction.level) * (state.bound + further * bound_step)
        corrected = wanted_bound + np.maximum(
            np.clip(product, 0.1 * target, 10.0 * target) - product, -10.0 * target
        )
        pairs.exchange()
        attempt, attempt_bound, attempt_longest, _ = _solve(
            state, system, sums, corrected, lacking
        )
        if not attempt_longest > longest:
            pairs.exchange()
            break
        enough = attempt_longest >= longest + _GAIN
        direction, bound_step, longest = attempt, attempt_bound, attempt_longest
        wanted_bound = corrected
        if not enough:
            break
    if not (np.isfinite(longest) and longest > 1e-12 and np.all(np.isfinite(direction.slack))):
        return 0.0
    step = longest * (_BOLD if longest >= _LONG_STEP else _CAUTIOUS)
    state.level += step * direction.level
    state.bound += step * bound_step
    state.slack += step * direction.slack
    state.intercept += step * direction.intercept
    state.beyond *= 1.0 - step
    state.dual, state.used = pairs.move(step)
    system.advance(step, direction, state.dual)
    return step


def _solve(
    state: _State,
    system: System,
    sums: tuple[FloatArray, FloatArray],
    wanted_bound: FloatArray,
    lacking: FloatArray,
) -> tuple[Move, FloatArray, float, float]:
    """The direction for the wanted changes, with the step of the bounds.

    Also the longest step, and the second order of the pairs' gap in it.
    """
    by_sample, by_level = sums
    by_level = by_level + wanted_bound / state.level - lacking
    found = system.solve(by_sample, by_level)
    blocking, second = state.pairs.expand(found.slack, found.level)
    bound_step = (wanted_bound - state.bound * found.level) / state.level
    blocking = max(
        blocking,
        float(np.max(-found.level / state.level)),
        float(np.max(-bound_step / state.bound)),
        1.0,
    )
    return found, bound_step, 1.0 / blocking, second
