"""When Newton steps take long on a kernel matrix, a splitting method has a turn."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator

import numpy as np

from owasvm.samples import Vector
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate
from owasvm.solvers.newton.effort import PER_STEP, Effort, reading
from owasvm.solvers.newton.penalty import Lags, choose_penalty
from owasvm.solvers.newton.repair import Repair, bound_near
from owasvm.solvers.splitting import Splitting, is_single

__all__ = ["SplittingTurn", "gives_up"]

logger = logging.getLogger(__name__)

# Newton steps behind it go on with so many times the penalty.
_PENALTY_BEHIND = 3.0
# It ends at this share of the tolerance, and one Newton step more proves it, most often. Where
# Newton systems are so large that a step costs as much as so many iterations, it goes on to the
# second share, and is not given up as long as it gets to the third one in time. Where they are so
# small that steps cost next to nothing, it ends at the fourth.
_GOAL = 0.3
_LARGE_STEP = 2.5
_GOAL_ALONE = 3e-3
_GOAL_IN_SIGHT = 0.03
_SMALL_STEP = 0.5
_GOAL_OF_SMALL_STEPS = 10.0
# Where Newton steps behind it have done so much of the work of its inverse, and as much of what it
# would take itself, and do not get on, it goes on from where it was, to this share of that goal,
# and they have twice as much of the former the next time. (Without the latter small fits with
# steep weights take a tenth more time: 16 steps are nothing there, and 40 are enough.)
_FIRST_SLICE = 0.5
_SLICE_OF_REST = 0.5
_NEXT_GOAL = 0.03
# Iterations at most, and between two looks; looks in which gaps may rise, over which progress is
# measured after that, a share of all of them at least, and between records of what lags behind.
_MAX_ITERATIONS = 1500
_PACE = 10
_FIRST_LOOKS = 10
_LOOK_BACK = 5
_LOOK_BACK_SHARE = 3
_RECORD = 10
# Where it would be given up the penalty changes instead, so often, if that says how and it would
# pay for another inverse before the gap is this share of the tolerance; so many looks are free
# after that.
_MAX_CHANGES = 2
_INVERSES = 1.5
_LOOKS_AFTER = 25
_ENOUGH = 0.1
# Where interior points would take over it goes on instead, by its progress over half of the looks,
# as long as so much of their work will do and all of it was not done yet: while the gap is more
# than so many times the tolerance, and behind the first goal. In between Newton steps end sooner.
# (72 slow fits of a development set take 10 % less time; 7 and 5 % with 100 and 300 times; at any
# gap as many take longer as take less.) Steps on squared deviations end nothing sooner.
_SHARE_OF_OTHER = 0.7
_FAR = 50.0
# Interior points begin at once behind it where so many Newton steps would do more work.
_NEWTON_STEPS = 40.0
# Squared deviations are not for them, and so many Newton steps may follow.
_STEPS_INSTEAD = 500.0
# Iterations to expect, and what each costs beside a product, as multiplications of a factor.
_EXPECTED = 100
_PER_ITERATION = 2.5e6
# Multiplications of the inverse per second, at least.
_PER_SECOND = 1e10
# Single precision takes this share of the time. Where splitting is a gamble, with steep weights
# and few columns, it goes before others as late as it would in double precision: some fits took
# twice the time else, and those of 1,000 and 2,200 samples 1 % more on average.
_SINGLE = 0.5
# It begins when Newton steps have done so many times the work that it is expected to do, less of
# it where more than so many samples are in their systems at a relative gap as small as this, and
# with steep weights, and so many times are left at their pace.
_SHARE = 3.0
_SHARE_OF_LARGE_STEPS = 0.7
_LARGE_SYSTEM = 0.5
_SMALL_GAP = 1e-3
_SHARE_WITH_STEEP_WEIGHTS = 0.3
_REST = 1.0


class SplittingTurn:
    """Watches Newton steps and takes over, or where it is asked to.

    It goes on until it is done or does not get on, and once more where steps behind it do not;
    ``is_at_work`` tells when.

    Parameters
    ----------
    task : ConvexTask
        The task.
    effort : Effort
        What Newton steps have cost.
    tol : float
        Relative gap to prove.
    nothing : float, default=inf
        The objective of the best classifier with w = 0.
    is_steep : bool, default=False
        Whether few samples pay much of all costs.
    """

    def __init__(
        self,
        task: ConvexTask,
        effort: Effort,
        tol: float,
        nothing: float = math.inf,
        *,
        is_steep: bool = False,
    ) -> None:
        self._task = task
        self._effort = effort
        self._tol = tol
        self._nothing = nothing
        self._is_steep = is_steep
        n_samples = task.operator.n_samples
        self._far = _GOAL if task.loss.is_curved else _FAR
        share = _SINGLE if is_single(task.operator, task.loss) else 1.0
        self._inversion = share * float(n_samples) ** 3
        self._iteration = share * 0.5 * reading(n_samples) + _PER_ITERATION
        # A factor, its inverse, and products that read a triangle.
        self.expected = self._inversion + _EXPECTED * self._iteration
        self.expected_in_double = self.expected / share
        self._is_over = False
        self._method: Splitting | None = None
        self._run: _Run | None = None
        self.is_at_work = False

    @property
    def is_open(self) -> bool:
        """Whether the turn is still to come."""
        return not self._is_over and self._task.operator.is_gram

    def is_due(self, iterate: Iterate) -> bool:
        """Whether Newton steps have cost more than a try, and will go on to."""
        if not self.is_open:
            return False
        share, expected = _SHARE, self.expected
        # Far from the optimum most samples may be in the systems of any fit.
        is_near = self._effort.best_gap <= _SMALL_GAP * max(1.0, abs(iterate.objective))
        if self._is_steep:
            share, expected = _SHARE_WITH_STEEP_WEIGHTS, self.expected_in_double
        elif is_near and iterate.n_active > _LARGE_SYSTEM * self._task.operator.n_samples:
            share = _SHARE_OF_LARGE_STEPS
        is_dear = self._effort.spent > share * expected
        return is_dear and self._effort.rest > _REST * expected

    def iterates(
        self, iterate: Iterate, clock: Clock, other: float | None = None
    ) -> Iterator[Iterate]:
        """Iterates from slacks and dual point of the given one; they count as no Newton steps.

        None where there is no time for the inverse. `other` is the work of the method that would
        take over, if there is one.
        """
        self._is_over = True
        if self._method is None and not self._has_room_for_inverse(clock):
            return
        method = self._method or self._invert(self._choose_penalty(iterate))
        repair = Repair(self._task, self._tol, self._nothing)
        self._run = _Run(method, repair, iterate)
        yield from self._watch(clock, other)

    @property
    def may_resume(self) -> bool:
        """Whether it could go on, and Newton steps behind it have had their chance."""
        run = self._run
        if run is None or run.is_closed:
            return False
        return self._effort.since_mark >= run.slice * self._inversion

    def is_to_resume(self, other: float | None) -> bool:
        """Whether it would be there before Newton steps, where it may be resumed.

        And before the method that would take over, if there is one, whose work is `other`.
        """
        if self._run is None:
            return False
        rest, other = self._run.foresee(_GOAL_IN_SIGHT) * self._iteration, self._complete(other)
        had_their_chance = self._effort.since_mark >= _SLICE_OF_REST * rest
        return had_their_chance and rest < min(
            self._effort.rest, math.inf if other is None else other
        )

    def resume(
        self, iterate: Iterate, clock: Clock, other: float | None = None
    ) -> Iterator[Iterate]:
        """Iterates from where it was; those that count steps know of the given one's."""
        run = self._run
        if run is None:
            return
        run.start = iterate
        run.n_resumed += 1
        run.slice *= 2.0
        yield from self._watch(clock, other)

    def close(self) -> None:
        """It led nowhere, and is not to be resumed."""
        if self._run is not None:
            self._run.is_closed = True

    def leaves_it_to(self, other: float | None) -> bool:
        """Whether it was given up, and Newton steps would take longer than another method."""
        run = self._run
        if run is None or not run.was_given_up or other is None:
            return False
        return _NEWTON_STEPS * run.newton_step > other

    def _complete(self, other: float | None) -> float | None:
        """The work of what would take over: with squared deviations that of many Newton steps."""
        if other is not None or not self._task.loss.is_curved:
            return other
        return _STEPS_INSTEAD * (PER_STEP + self._inversion / 3.0)

    def _has_room_for_inverse(self, clock: Clock) -> bool:
        return clock.has_room_for(self._inversion / _PER_SECOND)

    def _choose_penalty(self, iterate: Iterate) -> float:
        # Numbers that overflow end it, and no warning is needed.
        with np.errstate(all="ignore"):
            return choose_penalty(self._task, iterate, is_steep=self._is_steep)

    def _invert(self, penalty: float) -> Splitting:
        task = self._task
        with np.errstate(all="ignore"):
            self._method = Splitting(task.operator, task.y, task.loss, task.margin, penalty)
        return self._method

    def _watch(self, clock: Clock, other: float | None) -> Iterator[Iterate]:
        self.is_at_work = True
        try:
            yield from self._iterates(clock, other)
        finally:
            self.is_at_work = False

    def _iterates(self, clock: Clock, other: float | None) -> Iterator[Iterate]:
        run = self._run
        assert run is not None
        other = self._complete(other)
        worth = None if other is None else int(other / (_PACE * self._iteration))
        while not run.is_closed:
            with np.errstate(all="ignore"):
                for _ in range(_PACE):
                    next(run.steps)
                run.method.correct()
                found = self._describe(run.method, run.start.n_iter)
            if not math.isfinite(found.gap + found.objective):
                run.is_closed = True
                return
            run.note(found, self._tol)
            yield found
            with np.errstate(all="ignore"):
                repaired = run.repair.attempt(found, run.method.point)
                if run.repair.is_at_hand and len(run.gaps) % _RECORD == 0:
                    run.lags.note(found.objective, self._find_bound(found))
            if repaired is not None:
                yield repaired
            share = self._choose_goal(run)
            is_there = run.gaps[-1] <= share * run.scale
            stalls = not is_there and run.is_given_up(share, worth, self._far)
            if stalls and self._changes_penalty(run, clock):
                penalty = run.factor * run.method.penalty
                # Two inverses may be too much for the memory.
                run.end()
                self._method = None
                run.begin_again(self._invert(penalty), found)
            elif is_there or stalls or clock.expired:
                run.was_given_up = stalls
                run.is_closed = not is_there or share < _GOAL
                n_done = _PACE * len(run.gaps)
                logger.debug("splitting: %d iterations, gap %.1e", n_done, found.gap)
                return

    def _choose_goal(self, run: _Run) -> float:
        """The share of the tolerance to end at, by what a Newton step would cost."""
        if run.newton_step > _LARGE_STEP * self._iteration:
            return _GOAL_ALONE
        is_small = run.newton_step < _SMALL_STEP * self._iteration
        first = _GOAL_OF_SMALL_STEPS if is_small else _GOAL
        return max(first * _NEXT_GOAL**run.n_resumed, _GOAL_ALONE)

    def _changes_penalty(self, run: _Run, clock: Clock) -> bool:
        """Whether another penalty is the better way to go on, and which."""
        if run.n_changes == _MAX_CHANGES or clock.expired:
            return False
        factor = run.lags.find_factor()
        is_back = (factor > 1.0) != (run.factor > 1.0) and run.n_changes > 0
        pays = run.foresee(_ENOUGH) * self._iteration > _INVERSES * self._inversion
        if factor == 1.0 or is_back or not pays or not self._has_room_for_inverse(clock):
            return False
        logger.debug("splitting: %d iterations, penalty x %g", _PACE * len(run.gaps), factor)
        run.factor = factor
        run.n_changes += 1
        return True

    def _find_bound(self, found: Iterate) -> float:
        """The better bound of the dual points next to an iterate, but for rounding."""
        guesses = found.dual, self._task.dual_of(found.w)
        return max(bound_near(self._task, guess)[2] for guess in guesses)

    def _describe(self, method: Splitting, n_iter: int) -> Iterate:
        task, point = self._task, method.point
        w = Vector(method.coef, method.scores)
        loss = task.loss.value(method.slack)
        _, squared = task.operator.residual(task.target(point.dual), w)
        product = float(point.dual @ method.slack)
        return Iterate(
            w=w,
            intercept=method.intercept,
            dual=point.dual.copy(),
            penalty=_PENALTY_BEHIND * method.penalty,
            slack=method.slack,
            objective=0.5 * task.operator.inner(w, w) + loss,
            gap=0.5 * squared + loss + task.loss.conjugate_at(point) - product,
            n_iter=n_iter,
        )


class _Run:
    """Splitting from one start on, and how it gets on.

    Parameters
    ----------
    method : Splitting
        The method.
    repair : Repair
        What makes points of its iterates that may prove themselves.
    start : Iterate
        Where it begins.

    Attributes
    ----------
    steps : iterator
        Iterations without end.
    gaps : list of float
        Estimated ones at the looks since the last change of the penalty.
    lags : Lags
        What objective and bound have gained since then.
    scale : float
        The gap to prove.
    newton_step : float
        Work of a Newton step there: the factor of a system of all samples that move.
    factor : float
        The last change of the penalty.
    slice : float
        Work of Newton steps to wait for before it is resumed, in inversions.
    was_given_up, is_closed : bool
        Whether it did not get on, and whether it is not to be resumed.
    """

    def __init__(self, method: Splitting, repair: Repair, start: Iterate) -> None:
        self.repair = repair
        self.start = start
        self.begin_again(method, start)
        self.scale = 1.0
        self.newton_step = 0.0
        self.factor = 1.0
        self.n_changes = 0
        self.n_resumed = 0
        self.slice = _FIRST_SLICE
        self.was_given_up = False
        self.is_closed = False

    def begin_again(self, method: Splitting, near: Iterate) -> None:
        """From the slacks and the dual point of an iterate."""
        self.method = method
        self.steps = method.iterate(near.slack, near.dual)
        self.gaps: list[float] = []
        self.lags = Lags()

    def end(self) -> None:
        """Let go of the inverse."""
        del self.method, self.steps

    def note(self, found: Iterate, tol: float) -> None:
        """Take note of an iterate."""
        self.gaps.append(found.gap)
        self.scale = tol * max(1.0, found.objective)
        self.newton_step = float(np.count_nonzero(self.method.point.block >= 0)) ** 3 / 3.0

    def is_given_up(self, share: float, worth: int | None, far: float) -> bool:
        """See :func:`gives_up`; a new penalty has some looks free."""
        if self.n_changes > 0 and len(self.gaps) < _LOOKS_AFTER:
            return False
        return gives_up(self.gaps, self.scale, share, worth, far)

    def foresee(self, share: float) -> float:
        """Iterations left to a share of the goal, at the pace of half of the looks."""
        n_back = max(len(self.gaps) // 2, 1)
        if len(self.gaps) <= n_back:
            return math.inf
        rate, left = _find_pace(self.gaps, share * self.scale, n_back)
        return 0.0 if left == 0.0 else math.inf if rate == 0.0 else _PACE * left / rate


def gives_up(
    gaps: list[float], scale: float, last_share: float, worth: int | None, far: float = _FAR
) -> bool:
    """Whether splitting does not get on, by the gaps of its looks.

    Parameters
    ----------
    gaps : list of float
        At the looks until now.
    scale : float
        The gap to prove.
    last_share : float
        What it goes on to, as a share of that.
    worth : int or None
        Looks that cost as much as what would take over; None where that is Newton steps alone.
    far : float
        So many times the gap to prove Newton steps would take long from there.
    """
    best, n_looks = min(gaps), len(gaps)
    is_behind = best <= _GOAL * scale
    goal = (max(last_share, _GOAL_IN_SIGHT) if is_behind else _GOAL) * scale
    is_patient = best > far * scale or (is_behind and last_share < _GOAL)
    if worth is not None and is_patient:
        n_left = min(int(_SHARE_OF_OTHER * worth), worth - n_looks)
        return _stalls(gaps, goal, n_left, n_looks // 2)
    n_back = max(_LOOK_BACK, n_looks // _LOOK_BACK_SHARE)
    return _stalls(gaps, goal, _MAX_ITERATIONS // _PACE - n_looks, n_back)


def _stalls(gaps: list[float], goal: float, n_left: int, n_back: int) -> bool:
    """Whether gaps that go on to fall as in the last looks miss the goal in the looks left."""
    if len(gaps) <= _FIRST_LOOKS:
        return n_left <= 0
    rate, left = _find_pace(gaps, goal, n_back)
    return not rate * n_left > left


def _find_pace(gaps: list[float], goal: float, n_back: int) -> tuple[float, float]:
    """By how much the logarithm of the gap fell per look, in the last looks, and has to fall."""
    # Rounding may leave less than nothing.
    best = max(min(gaps), goal)
    return math.log(max(min(gaps[:-n_back]), goal) / best) / n_back, math.log(best / goal)
