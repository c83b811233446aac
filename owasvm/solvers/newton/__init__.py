"""Convex weights: the semismooth Newton augmented Lagrangian method and its front end.

``core`` minimises any convex ordered loss, ``coarse`` finds a start for many samples,
``continuation`` tells where a known solution needs no step, ``series`` takes the steps of few
samples in one compiled loop,
``stopping`` decides by certificates when an iterate will do, ``tuning`` holds what is left to
measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.solvers._interrupts import note_interrupt
from owasvm.solvers.clock import Clock
from owasvm.solvers.contract import Settings, Solver
from owasvm.solvers.newton.coarse import start_on_share
from owasvm.solvers.newton.continuation import carry_over, find_trend
from owasvm.solvers.newton.core import (
    ConvexTask,
    Iterate,
    cold_start,
    iterates,
    minimise,
    start_from,
)
from owasvm.solvers.newton.effort import Effort
from owasvm.solvers.newton.rescue import Rescue
from owasvm.solvers.newton.series import LARGE_SYSTEM, Series
from owasvm.solvers.newton.stopping import StoppingRule, project_balanced
from owasvm.solvers.newton.tuning import DEFAULT, ITERATIVE, Tuning
from owasvm.solvers.newton.turns import SplittingTurn

__all__ = [
    "SOLVER",
    "ConvexTask",
    "Iterate",
    "cold_start",
    "iterates",
    "minimise",
    "project_balanced",
    "solve",
    "start_from",
]

# The first steps of most fits meet large systems, and few of the others do.
_MANY_LARGE_SYSTEMS = 4
# Conjugate gradients solve them sooner than few columns do where these are more than half of so
# many times the root of the number of samples.
_SIZE_OF_ROOT = 10.0
# Newton steps between two rounds of interior points.
_STEPS_BETWEEN = 20


def solve(problem: OWAProblem, settings: Settings, tuning: Tuning = DEFAULT) -> Solution:
    """Solve an OWA-SVM with non-decreasing weights to a proven relative gap ``settings.tol``.

    Stops early at ``max_iter`` Newton steps, at ``time_limit``, on Ctrl-C or when the callback
    says so, with the best certificate seen. The callback receives ``stage`` ("newton" or
    "rescue"), ``n_iter``, ``objective`` and ``gap`` of the current iterate and the ``time`` in
    seconds.
    """
    clock = Clock.start(settings)
    # Every certificate will ask for it; now there is room for the sort that it takes.
    _ = problem.constant_classifier
    loss = problem.ranked_loss()
    known = settings.warm_start
    if known is not None:
        carried = carry_over(problem, known, loss, settings.tol, tuning)
        if carried is not None:
            return carried.as_solution(
                Status.OPTIMAL,
                "newton",
                solve_time=clock.elapsed,
                details={
                    # The record of another solve is not that of this one.
                    **{name: known.details[name] for name in known.details if name != "history"},
                    "mean_cost": loss.mean_cost,
                    "rounding": carried.rounding,
                    **find_trend(known, carried.dual, loss.mean_cost),
                },
            )
    operator, margin = problem.samples.operator(), np.ones(1)
    if operator.is_iterative and tuning is DEFAULT:
        tuning = ITERATIVE
    task = ConvexTask(operator, problem.y, loss, margin, tuning=tuning)
    if known is not None:
        start = start_from(task, known)
    else:
        guess = start_on_share(problem, task, loss, settings.max_iter, clock)
        start = cold_start(task) if guess is None else guess
    iterate = start
    build_time = clock.elapsed
    rule = StoppingRule(problem, task, settings.tol, loss)
    status = Status.ITERATION_LIMIT
    is_for_series = Series.of(task) is not None
    is_compiled = settings.in_series or known is not None or Series.is_at_hand()

    def take_steps(first: Iterate) -> Iterator[Iterate]:
        # Few columns may have taken the place of the data.
        series = Series.of(task) if is_compiled else None
        if series is None:
            return iterates(task, first, lambda: rule.next_look.whole_below)
        is_watched = settings.callback is not None
        return series.iterates(
            first, lambda: rule.next_look, settings.max_iter, is_watched=is_watched
        )

    course = _Course(problem, task, settings.tol, clock, take_steps)
    try:
        for iterate in course.run(start):
            if rule.is_satisfied(iterate):
                break
            if iterate.is_whole_step:
                continue
            if rule.is_hopeless or not math.isfinite(iterate.objective):
                status = Status.ROUNDING_LIMIT
                break
            if iterate.n_iter >= settings.max_iter:
                break
            if clock.expired:
                status = clock.reason
                break
            if (
                settings.callback is not None
                and settings.callback(_describe(iterate, course, clock)) is False
            ):
                status = Status.INTERRUPTED
                break
    except (KeyboardInterrupt, SystemError) as error:
        note_interrupt(error)
        status = Status.INTERRUPTED
    found = rule.best_certificate(iterate)
    if is_for_series and not is_compiled:
        Series.was_missing(clock.elapsed - build_time)
    if found.worst_gap <= settings.tol:
        status = Status.OPTIMAL
    elif status is Status.ITERATION_LIMIT and rule.is_limited:
        status = Status.ROUNDING_LIMIT
    return found.as_solution(
        status,
        "newton",
        n_iter=iterate.n_iter,
        build_time=build_time,
        solve_time=clock.elapsed - build_time,
        details={
            "penalty": iterate.penalty,
            "mean_cost": task.loss.mean_cost,
            "rounding": found.rounding,
            "factorises": task.memory.factorises,
            **find_trend(known, found.dual, task.loss.mean_cost),
        },
    )


class _Course:
    """Newton iterates, and those of the methods that take over where steps are too slow.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    task : ConvexTask
        As the Newton method sees it.
    tol : float
        Relative gap to prove.
    clock : Clock
        How long it may take.
    take_steps : callable
        Newton iterates without end, from a given one on.
    """

    def __init__(
        self,
        problem: OWAProblem,
        task: ConvexTask,
        tol: float,
        clock: Clock,
        take_steps: Callable[[Iterate], Iterator[Iterate]],
    ) -> None:
        self._task = task
        self._clock = clock
        self._take_steps = take_steps
        self._effort = Effort(task, tol)
        self._rescue = Rescue(problem, task, self._effort, tol)
        _, nothing = problem.constant_classifier
        is_steep = self._rescue.is_steep
        self._turn = SplittingTurn(task, self._effort, tol, nothing, is_steep=is_steep)

    @property
    def stage(self) -> str:
        """What the last iterate came from."""
        is_helped = self._rescue.is_at_work or self._turn.is_at_work
        return "rescue" if is_helped else "newton"

    def run(self, start: Iterate) -> Iterator[Iterate]:
        """From a given start on; without end."""
        last = start
        for last in self._steps(start):
            yield last
            if last.is_whole_step:
                continue
            if self._rescue.is_due(last) and not self._may_split(last):
                # Judged before it is left behind: nothing better may come.
                yield replace(last, is_final=True)
                break
        is_split = False
        for rescued in self._rescue.iterates(last, self._clock):
            yield rescued
            # Gaps of levels that are too coarse do not tell which one is better.
            if rescued.objective <= last.objective:
                last = replace(rescued, is_final=False)
            # A round with more columns takes longer than that.
            if self._rescue.has_many_columns and not is_split:
                is_split = True
                for found in self._finish(last):
                    yield found
                    if found.is_whole_step:
                        continue
                    last = found
                    if found.n_iter >= rescued.n_iter + _STEPS_BETWEEN:
                        break
        yield from self._finish(last, splits=not is_split)

    def _finish(self, last: Iterate, *, splits: bool = True) -> Iterator[Iterate]:
        """Another turn, for what levels or columns have left out, before Newton steps go on.

        Without it they take hundreds.
        """
        if splits and self._task.operator.is_gram and not self._clock.expired:
            for split in self._turn.iterates(last, self._clock):
                yield split
                last = last if split.is_final else split
        yield from self._take_steps(last)

    def _steps(self, start: Iterate) -> Iterator[Iterate]:
        """Newton steps, a turn of splitting in between, and few columns for large systems."""
        task = self._task
        n_large = 0
        for last in self._take_steps(start):
            if last.is_whole_step:
                yield last
                continue
            self._effort.note(last)
            yield last
            n_large += int(last.n_active >= LARGE_SYSTEM)
            if n_large >= _MANY_LARGE_SYSTEMS and task.condense(self._limit_size(last.n_active)):
                w = task.operator.vector(last.w.coef.copy())
                yield from self._steps(replace(last, w=w, dual=last.dual.copy()))
            is_due = self._turn.is_due(last) or self._rescue.is_due(last)
            if is_due and self._may_split(last):
                yield from self._split(last, self._turn.iterates)
            elif self._turn.may_resume and self._turn.is_to_resume(self._rescue.expect_work(last)):
                yield from self._split(last, self._turn.resume)

    def _split(
        self, last: Iterate, take_turn: Callable[[Iterate, Clock, float | None], Iterator[Iterate]]
    ) -> Iterator[Iterate]:
        """A turn of splitting, and Newton steps from there if it leads anywhere."""
        # The steps own their arrays, and go on from there if nothing better comes.
        found, other = last, self._rescue.expect_work(last)
        for split in take_turn(last, self._clock, other):
            yield split
            found = found if split.is_final else split
        # Far out the intercept costs much, and the gap of a point that is out of balance hides it.
        is_better = found.gap < last.gap and found.objective <= last.objective + last.gap
        reached = found if is_better else last
        self._effort.mark(reached)
        # From where it has led other samples may matter, and the other way be much longer.
        self._rescue.forget()
        if other is not None:
            other = max(other, self._rescue.expect_work(reached) or 0.0)
        self._rescue.is_asked_for |= self._turn.leaves_it_to(other)
        if is_better:
            yield from self._steps(found)
        else:
            self._turn.close()

    def _may_split(self, last: Iterate) -> bool:
        """Whether splitting has its turn, or is to have it before interior points have theirs."""
        if self._turn.is_at_work:
            return True
        expected = self._turn.expected_in_double
        return self._turn.is_open and not self._rescue.is_preferred(last, expected)

    def _limit_size(self, size: int) -> int:
        """Size of systems for which few columns are looked for."""
        return min(size, int(_SIZE_OF_ROOT * math.sqrt(self._task.operator.n_samples)))


def _describe(iterate: Iterate, course: _Course, clock: Clock) -> dict[str, Any]:
    """What the callback receives; the gap of an iterate is an estimate."""
    return {
        "stage": course.stage,
        "n_iter": iterate.n_iter,
        "objective": iterate.objective,
        "gap": iterate.gap / max(1.0, abs(iterate.objective)),
        "time": clock.elapsed,
    }


SOLVER = Solver(
    solve,
    needs_convex=True,
    convex_losses=("*",),
    takes_partitions=True,
    takes_groups=True,
)
