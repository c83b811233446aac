"""When Newton steps take too long, an interior point method over groups of ranks takes over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.problem import OWAProblem
from owasvm.solvers import interior
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate
from owasvm.solvers.newton.effort import Effort

FloatArray = NDArray[np.float64]

__all__ = ["Rescue"]

logger = logging.getLogger(__name__)

# Iterations to expect of the interior point method.
_EXPECTED_ITERATIONS = 40
# From a factor of kernel values it pays to hand over earlier. From rows it does not: fits of
# 16,000 samples that take 0.2 s spent many seconds there.
_EXPECTED_WITH_FACTOR = 20
# Of kernel matrices a factor is looked for once Newton steps have done what one of this many
# columns, as a share of the samples, would be worth: 157 fits of seven data sets took 0.99, 1.00,
# 1.01 of the time with 0.4, 0.2, 0.1 that they took without (geometric mean), and slow fits of
# few columns half to two thirds.
_HOPED_FOR = 0.4
# Share of the work of all columns that is done on average, as most iterations use fewer.
_GROWING = 0.5
# A kernel of fewer columns than this share of the samples is one for this method.
_FEW_COLUMNS = 0.55
# Multiplications of a factorisation that take as long as an iteration of the other method does
# however few samples there are.
_PER_ITERATION = 6e7
# It keeps a dozen numbers per pair of a sample and a level, and passes over all of them about
# fifteen times per iteration: this many take half a second.
_MAX_PAIRS = 3_000_000
# Share of the tolerance that the levels may cost, and that is left to the iterations.
_LEVEL_SHARE = 0.5
_ITERATION_SHARE = 0.4
_MAX_ROUNDS = 2
# Columns of a kernel leave so much of its diagonal that sum_i a_i^2 of them is this share of the
# tolerance. At most half of that was lost in bounds, and about twenty times as much in gaps. With
# 0.03 and 0.3 32 slow fits took as much time, but one of them four times as much with 0.3.
_LEFT_SHARE = 0.1
# Levels that turn out to be too coarse are chosen anew for this share of the loss.
_FINER = 0.3
# Where more levels than these would be needed Newton steps finish what few levels have begun.
_MOST_LEVELS = 64
_MOST_LEVELS_SHARE = 0.15
# Levels that lose more than the tolerance allows are still worth it after many steps when they
# lose this share of the gap there is; on a device, where iterations are cheap, a smaller one is
# enough at any time (in memory that made as many fits slower as faster).
_MUCH = 0.1
_LITTLE = 0.02
# Levels to expect, at least.
_FIRST_LEVELS = 24
# More levels than these begin where the first ones ended, at this accuracy.
_FEW_LEVELS = 32
_FIRST_ACCURACY = 1e-4
# Rounds behind them begin at a gap of about that size,
_LATER_ACCURACY = 5e-6
# this many times: a start too close to the boundary stalls.
_BEGIN = 10.0


class Rescue:
    """Watches how much work Newton steps do, and offers another way when it is too much.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    task : ConvexTask
        As the Newton method sees it.
    effort : Effort
        What Newton steps have cost.
    tol : float
        Relative gap to prove.
    """

    def __init__(self, problem: OWAProblem, task: ConvexTask, effort: Effort, tol: float) -> None:
        self._effort = effort
        self._costs: Costs = problem.costs
        self._task = task
        self._tol = tol
        self._is_coarse = False
        self.is_at_work = False
        self._latest = task.tuning.rescue_steps
        self._problem = problem
        self._operator = task.operator
        self._limit_work()

    def _limit_work(self) -> None:
        """How much work of Newton steps is as much as that of the other way."""
        problem, operator = self._problem, self._task.operator
        n_samples = problem.n_samples
        self._limit = np.inf
        self._width = operator.n_columns
        self._is_kernel = problem.features is None
        # Rows with nearly the kernel of the problem, once they were looked for.
        self._near: FloatArray | None = None
        self._may_be_near = False
        if problem.loss != "hinge" or n_samples * _FIRST_LEVELS > _MAX_PAIRS:
            return
        if self._width is not None and self._width <= n_samples:
            width = self._width + 2.0 * _FIRST_LEVELS
            expected = _EXPECTED_WITH_FACTOR if self._is_kernel else _EXPECTED_ITERATIONS
            self._limit = expected * (_PER_ITERATION + n_samples * width**2)
        elif operator.can_lift():
            self._may_be_near = operator.place is None
            share = _HOPED_FOR if self._may_be_near else 1.0
            self._limit = self._work_of_kernel(share * n_samples)

    def _work_of_kernel(self, width: float) -> float:
        """What the other method is expected to take, with so many columns of a kernel matrix."""
        n_samples = self._task.operator.n_samples
        whole = n_samples**3 / 3.0
        each = min(_GROWING * n_samples * (width + 2.0 * _FIRST_LEVELS) ** 2, whole)
        return _EXPECTED_ITERATIONS * (_PER_ITERATION + each)

    def _look_for_rows(self, iterate: Iterate) -> None:
        """Find rows with nearly the kernel of the problem, and say what they cost; once."""
        self._may_be_near = False
        operator = self._task.operator
        allowed = _LEFT_SHARE * self._tol * max(1.0, abs(iterate.objective))
        squares = float(iterate.dual @ iterate.dual)
        if squares > 0.0:
            self._near = operator.rows_near(allowed / squares)
        width = operator.n_samples if self._near is None else self._near.shape[1]
        self._limit = self._work_of_kernel(width)

    def _is_nearly_done(self, iterate: Iterate) -> bool:
        """Whether it would be a pity to leave an iterate behind."""
        share = self._task.tuning.nearly_done * self._tol
        return iterate.gap <= share * max(1.0, abs(iterate.objective))

    def is_preferred(self, iterate: Iterate) -> bool:
        """Whether this is a better way than one that goes on from the iterate.

        That is where the kernel matrix has few columns, up to what the gap would notice.
        """
        if self._is_nearly_done(iterate) or self._is_coarse:
            return False
        if self._may_be_near:
            self._look_for_rows(iterate)
        n_samples = self._task.operator.n_samples
        return self._near is not None and self._near.shape[1] <= _FEW_COLUMNS * n_samples

    def is_due(self, iterate: Iterate) -> bool:
        """Whether Newton steps have cost as much as the other way would."""
        if self._operator is not self._task.operator:
            self._operator = self._task.operator
            self._limit_work()
        tuning = self._task.tuning
        patience, latest = tuning.rescue_share, self._latest
        nearly = self._is_nearly_done(iterate)
        if nearly or self._is_coarse:
            patience *= tuning.more_patience
        if nearly:
            latest *= 2
        late = iterate.n_iter >= latest and np.isfinite(self._limit)
        if not late and (self._effort.spent <= patience * self._limit or self._effort.pays):
            return False
        if self._may_be_near:
            self._look_for_rows(iterate)
            if not late and self._effort.spent <= patience * self._limit:
                return False
        if late or not (nearly or self._is_coarse):
            stairs, allowed = self._choose_levels(iterate.slack, iterate.objective, _LEVEL_SHARE)
            on_device = self._task.operator.place is not None
            share = _MUCH if late else _LITTLE * on_device
            if stairs.loss > max(allowed, share * self._effort.best_gap):
                self._is_coarse = True
                if late:
                    self._latest *= 2
                return False
        self._limit = np.inf
        return True

    def _choose_levels(
        self, slack: FloatArray, objective: float, share: float
    ) -> tuple[interior.Staircase, float]:
        """Levels of cost, and what they were allowed to lose."""
        allowed = share * self._tol * max(1.0, abs(objective))
        most = max(_MOST_LEVELS, int(_MOST_LEVELS_SHARE * slack.size))
        most = min(most, _MAX_PAIRS // slack.size)
        return interior.choose_groups(self._costs, slack, allowed, most), allowed

    def iterates(
        self, iterate: Iterate, clock: Clock, go_on: Callable[[Iterate], Iterator[Iterate]]
    ) -> Iterator[Iterate]:
        """Points of the dual set, of finer and finer levels; they count as no Newton steps.

        `go_on` is another method, which may find what few columns have left out sooner than this
        one does with all of them.
        """
        task = self._task
        system = self._make_system()
        slack, objective, share = iterate.slack, iterate.objective, _LEVEL_SHARE
        accuracy = max(_ITERATION_SHARE * self._tol, 1e-12)
        self.is_at_work = True
        start = None
        stairs, allowed = self._choose_levels(slack, objective, share)
        if stairs.jump.size > _FEW_LEVELS:
            # Few levels say where many begin.
            stairs = interior.choose_groups(self._costs, slack, np.inf, _FIRST_LEVELS)
            point = self._minimise(system, stairs, max(accuracy, _FIRST_ACCURACY), clock, None)
            if not np.isfinite(point.gap):
                return
            slack, objective = point.slack, self._guess_objective(point)
            start = self._start_from(point, _FIRST_ACCURACY)
            stairs, allowed = self._choose_levels(slack, objective, share)
        for _ in range(_MAX_ROUNDS):
            point = self._minimise(system, stairs, accuracy, clock, start)
            if not np.isfinite(point.gap):
                return
            w = task.operator.vector(task.target(point.coef))
            slack = task.margin - task.y * (w.scores + point.intercept)
            objective = 0.5 * task.operator.inner(w, w) + task.loss.value(slack)
            found = Iterate(
                w=w,
                intercept=point.intercept,
                dual=np.maximum(point.dual, 0.0),
                penalty=iterate.penalty,
                slack=slack,
                objective=objective,
                gap=point.gap * max(1.0, abs(objective)),
                n_iter=iterate.n_iter,
                is_final=True,
            )
            yield found
            if clock.expired or stairs.loss > allowed or point.gap > 2.0 * accuracy:
                return
            if isinstance(system, interior.TruncatedSystem):
                yield from go_on(found)
            share *= _FINER
            stairs, allowed = self._choose_levels(slack, objective, share)
            if isinstance(system, interior.TruncatedSystem):
                # What was left out may be what the proof lacks.
                system = self._make_whole_system()
                point = replace(point, w=system.locate(point.coef), slack=slack)
            start = self._start_from(point, _LATER_ACCURACY)

    def _make_system(self) -> interior.System:
        """With as few columns of a kernel as will do."""
        task = self._task
        rows = self._near if self._width is None else task.operator.rows_in_memory()
        if rows is None or not self._is_kernel:
            return self._make_whole_system()
        self._near = None
        rows *= task.y[:, np.newaxis]
        return interior.TruncatedSystem(rows, task.y)

    def _make_whole_system(self) -> interior.System:
        task = self._task
        if self._width is None:
            return interior.KernelSystem(task.operator, task.y)
        rows = task.operator.rows_in_memory()
        rows *= task.y[:, np.newaxis]
        return interior.FeatureSystem(rows, task.y)

    def _guess_objective(self, point: interior.Point) -> float:
        """At an optimum the sum of the dual point exceeds it by as much as the loss lacks."""
        return 0.5 * (float(point.dual.sum()) + self._task.loss.value(point.slack))

    def _start_from(self, point: interior.Point, accuracy: float) -> interior.Start:
        """A start next to a point of about that accuracy."""
        scale = max(1.0, abs(self._guess_objective(point)))
        gap = _BEGIN * accuracy * scale
        return interior.Start(point.w, point.coef, point.intercept, point.slack, gap)

    def _minimise(
        self,
        system: interior.System,
        stairs: interior.Staircase,
        accuracy: float,
        clock: Clock,
        start: interior.Start | None,
    ) -> interior.Point:
        task = self._task
        point = interior.minimise(
            system,
            task.y,
            self._costs.sample_weight,
            stairs,
            accuracy,
            clock,
            task.operator.place,
            start,
        )
        logger.debug(
            "%d levels, %d iterations, gap %.1e", stairs.jump.size, point.n_iter, point.gap
        )
        return point
