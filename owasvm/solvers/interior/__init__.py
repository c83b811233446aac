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
from owasvm.solvers.interior._pairs import add_mismatch, centre, restore
from owasvm.solvers.interior.groups import Meeting, Staircase, choose_groups, expect_levels
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
    "Meeting",
    "Point",
    "Staircase",
    "Start",
    "System",
    "TruncatedSystem",
    "choose_groups",
    "expect_levels",
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
# After so many steps below this, of which very short ones count twice, a start is given up; the
# next one has so many times its gap.
_MOST_SHORT_STEPS = 3
_SHORT_STEP = 0.03
_VERY_SHORT_STEP = 0.005
_FURTHER = (1.0, 10.0, 100.0)
# It ends where rounding leaves nothing to gain: after so many iterations that leave so much of a
# gap that is small. Far from the optimum gaps may rise before they fall.
_LOOK_BACK = 12
_PROGRESS = 0.9
_SMALL = 1e-3
# And where all that is left but so much is how far apart w and the dual point are, and that grows.
_HARDLY = 0.01
# A start that ends this close, in multiples of the accuracy, is as good as there; where it ends
# below this share of its gap, rounding was in the way, and would be again.
_NEARLY = 2.0
_MUCH_LESS = 0.01
# Shares of the cap and of the levels at the start.
_FIRST_SHARE = 0.9
# Given shares may be so much closer to their ends than on the central path.
_KEEP = 0.1
_NO_SHARES = np.empty((0, 0))


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
    shares : ndarray of shape (n_levels, n_samples)
        How far samples lie above the levels they meet, from 0 to 1.
    meeting : Meeting
        Which those are.
    first_gap : float, default=inf
        The gap where the method began.
    """

    dual: FloatArray
    w: FloatArray
    coef: FloatArray
    intercept: float
    slack: FloatArray
    gap: float
    n_iter: int
    shares: FloatArray
    meeting: Meeting
    first_gap: float = np.inf


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
    shares : ndarray of shape (n_levels, n_samples) or None, default=None
        How far samples lie above levels, from 0 to 1. Without them the slacks tell.
    dual : ndarray of shape (n_samples,) or None, default=None
        A dual point to begin near. Without it the shares tell.
    """

    w: FloatArray
    coef: FloatArray
    intercept: float
    slack: FloatArray
    gap: float
    shares: FloatArray | None = None
    dual: FloatArray | None = None


class _State:
    """All variables of the method."""

    def __init__(
        self,
        meeting: Meeting,
        mass: FloatArray,
        place: Place | None,
        start: Start | None,
        further: float = 1.0,
    ) -> None:
        stairs = meeting.stairs
        self._meeting = meeting
        self.spans = meeting.spans
        self.n_products = 2 * meeting.n_pairs + stairs.jump.size
        self.limit = stairs.jump * stairs.reach
        # Shares of pairs that stay as they are, by sample and by level.
        self._settled_dual, self._settled_use = meeting.settle(mass)
        # What levels that do not meet their limits yet cost, about; steps leave a share of it.
        self.beyond = 0.0
        shape = stairs.jump.size, mass.size
        pairs = PairStart(
            np.zeros(shape),
            np.ones(shape),
            np.ones(shape),
            stairs.jump,
            mass,
            meeting.spans.astype(np.uint64),
        )
        if start is None:
            self._begin(stairs, pairs)
        else:
            self._go_on(stairs, pairs, start, further)
        self.pairs: Pairs
        if place is not None and meeting.is_whole:
            self.pairs = ArrayPairs(pairs, place)
        else:
            self.pairs = CompiledPairs(pairs)

    def describe(self, system: System, gap: float, n_iter: int) -> Point:
        """The point where the method stands, without its shares."""
        return Point(
            self.dual.copy(),
            system.w.copy(),
            system.coef.copy(),
            self.intercept,
            self.slack.copy(),
            gap,
            n_iter,
            _NO_SHARES,
            self._meeting,
        )

    def move(self, step: float) -> None:
        """Take a step of the pairs along their direction."""
        dual, used = self.pairs.move(step)
        self.dual, self.used = dual + self._settled_dual, used + self._settled_use

    def _begin(self, stairs: Staircase, pairs: PairStart) -> None:
        """At w = 0."""
        jump, mass = stairs.jump, pairs.mass
        self.dual, self.used = np.zeros(mass.size), np.zeros(jump.size)
        self.level, self.slack, self.intercept = np.ones(jump.size), np.ones(mass.size), 0.0
        spans = [slice(*span) for span in pairs.spans.astype(np.int64).tolist()]
        # Where samples are left out, levels may reach further than those that are there.
        filled = np.array(
            [
                _FIRST_SHARE * min(reach / mass[span].sum(), 1.0)
                for reach, span in zip(stairs.reach, spans, strict=True)
            ]
        )
        shares = [
            mass[span] * (height * part)
            for height, part, span in zip(jump, filled, spans, strict=True)
        ]
        totals = np.array([share.sum() for share in shares])
        barrier = float(totals @ (1.0 - filled)) / self.n_products
        pushed = barrier / (float(mass.mean()) * jump) * (1.0 / (1.0 - filled) - 1.0 / filled)
        self.level -= np.clip(pushed, -2.0, 0.9)
        for g, (share, span) in enumerate(zip(shares, spans, strict=True)):
            above = barrier / (jump[g] * mass[span] - share)
            below = barrier / share
            lacking = (self.slack[span] - self.level[g]) - (above - below)
            pairs.share[g, span] = share
            pairs.above[g, span] = above + np.maximum(lacking, 0.0)
            pairs.below[g, span] = below + np.maximum(-lacking, 0.0)
            self.dual[span] += share
        self.used = totals
        self.bound = self.limit - self.used

    def _go_on(self, stairs: Staircase, pairs: PairStart, start: Start, further: float) -> None:
        """Next to the central path of the pairs, at given slacks and levels."""
        gap, keeps = start.gap, 1.0
        where = start.slack, stairs.height, *pairs[3:]
        if start.shares is not None:
            np.multiply(start.shares, np.outer(stairs.jump, pairs.mass), out=pairs.share)
            gap, keeps = max(gap, add_mismatch(*where, pairs.share)), _KEEP
        barrier = further * gap / self.n_products
        self.slack, self.intercept = start.slack.copy(), start.intercept
        # No level leaves more of its limit than all of it.
        self.level = np.maximum(stairs.height, barrier / self.limit)
        self.dual, self.used = np.empty(self.slack.size), np.empty(self.level.size)
        centre(
            barrier,
            keeps,
            self.slack,
            self.level,
            *pairs[3:],
            *pairs[:3],
            self.dual,
            self.used,
        )
        if start.dual is not None:
            missing = start.dual - self._settled_dual - self.dual
            restore(missing, *pairs[3:], *pairs[:3], self.dual, self.used)
        self.dual += self._settled_dual
        self.used += self._settled_use
        self.bound = barrier / self.level
        if start.shares is not None:
            self.bound = np.maximum(self.limit - self.used, _KEEP * self.bound)
        self.beyond = float(self.level @ np.abs(self.limit - self.used - self.bound))


def minimise(
    system: System,
    y: FloatArray,
    mass: FloatArray | None,
    meeting: Meeting,
    accuracy: float,
    clock: Clock,
    place: Place | None = None,
    start: Start | None = None,
) -> Point:
    """Minimise the levelled problem until its relative gap is below `accuracy`.

    All samples are in the order of the `meeting`. `place` is the device to keep the pairs on.
    Without a `start` the method begins at w = 0; one that leads nowhere is tried again further
    from the boundary, and given up then.
    """
    mass = np.ones(y.size) if mass is None else mass
    if start is not None:
        point, is_useful = _descend_from(start, system, mass, meeting, accuracy, clock, place)
        if is_useful or clock.expired:
            return point
    system.reset()
    return _descend(system, _State(meeting.whole(), mass, place, None), accuracy, clock)


def _descend_from(
    start: Start,
    system: System,
    mass: FloatArray,
    meeting: Meeting,
    accuracy: float,
    clock: Clock,
    place: Place | None,
) -> tuple[Point, bool]:
    """From a start, or further and further from the boundary where that leads nowhere.

    Also whether one of them has led somewhere.
    """
    if start.dual is not None:
        # Next to the boundary no step is long enough to bring w and the dual point together.
        system.go_to(start.w, start.coef)
        start = replace(start, gap=max(start.gap, system.begin(start.dual, start.gap)))
    for further in _FURTHER:
        system.go_to(start.w, start.coef)
        state = _State(meeting, mass, place, start, further)
        point = _descend(system, state, accuracy, clock, may_give_up=True)
        is_useful = point.gap <= max(_NEARLY * accuracy, _MUCH_LESS * point.first_gap)
        if is_useful or clock.expired:
            break
    return point, is_useful


def _descend(
    system: System,
    state: _State,
    accuracy: float,
    clock: Clock,
    *,
    may_give_up: bool = False,
) -> Point:
    """Iterate until the accuracy is reached, numbers break down, or short steps lead nowhere."""
    best = state.describe(system, np.inf, 0)
    n_short = 0
    bests: list[float] = []
    with np.errstate(all="ignore"):
        for n_iter in range(_MAX_ITERATIONS):
            gap, weight, by_sample, by_level = state.pairs.weigh()
            gap += float(state.level @ state.bound)
            by_level = by_level + state.bound / state.level
            weights = Weights(weight, by_sample, by_level, state.spans)
            distance = system.begin(state.dual, gap)
            value = float(state.dual.sum()) - 0.5 * distance
            error = (gap + state.beyond + distance) / max(1.0, abs(value))
            if not np.isfinite(error):
                break
            if error < best.gap:
                best = state.describe(system, error, n_iter)
            bests.append(best.gap)
            if error <= accuracy or _is_idle(bests) or clock.expired:
                break
            # The barrier goes on to fall where rounding keeps w and the dual point apart.
            is_apart = gap + state.beyond < _HARDLY * distance
            if is_apart and best.gap < min(error, _SMALL):
                break
            system.factorise(weights)
            step = _iterate(state, system, gap / state.n_products)
            n_short += int(step < _SHORT_STEP) + int(step < _VERY_SHORT_STEP)
            if step <= 0.0 or (may_give_up and n_short >= _MOST_SHORT_STEPS):
                break
    first_gap = bests[0] if bests else np.inf
    return replace(best, first_gap=first_gap, shares=state.pairs.find_shares())


def _is_idle(bests: list[float]) -> bool:
    """Whether the last iterations have left the smallest gap about where it was."""
    before = bests[max(len(bests) - 1 - _LOOK_BACK, 0)]
    return len(bests) > _LOOK_BACK and _PROGRESS * before < bests[-1] <= _SMALL


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
    state.move(step)
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
