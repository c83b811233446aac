"""When Newton steps take too long, an interior point method over groups of ranks takes over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.problem import OWAProblem
from owasvm.samples.low_rank import LOOKED_AT, FewColumns
from owasvm.solvers import interior
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate, bound_of, describe_final
from owasvm.solvers.newton.effort import Effort
from owasvm.solvers.newton.tuning import Tuning

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Rescue"]

logger = logging.getLogger(__name__)

# Iterations to expect of the interior point method: with one level, with few of them, and more
# with many, which begin where few ended.
_WITH_ONE_LEVEL = 10
_WITH_FEW_LEVELS = 20
_WITH_MANY_LEVELS = 10
# What takes as long as so many multiplications of a factorisation: all that is done once, an
# iteration however few samples there are, a pair of a level and a sample, and an entry of the
# rows, or of the kernel matrix, which solutions of a system read.
_PER_RESCUE = 1e8
_PER_ITERATION = 1.5e7
_PER_PAIR = 600.0
_PER_ENTRY = 150.0
_PER_KERNEL_ENTRY = 60.0
# With many levels it takes longer than that beside a splitting method, which reads what stays near
# the processor: 24 fits took 2.4 times as long as expected in the median, 1.5 decides best.
_AS_SPLITTING_COUNTS = 1.5
# Columns that few columns stand for are found in so many multiplications each, per column and
# sample squared.
_PER_COLUMN = 1.5
# Where rows of features are at hand, and no kernel, it pays to wait: fits of 16,000 samples that
# take 0.2 s spent many seconds there.
_PATIENCE_WITH_ROWS = 2.0
# The other way has a turn when Newton steps have done so much of its work: where few columns of a
# kernel and steep weights, or one level, let expect that they will not get there soon, where there
# are somewhat more columns, and in general. And in any case, even if they seem to pay. With few
# samples the other way takes longer however hard they are.
_SHARE_OF_OVERHEAD = 0.2
_LITTLE_PATIENCE = 0.05
_SOME_PATIENCE = 0.3
_PATIENCE = 1.0
_NO_MORE_PATIENCE = 2.0
_VERY_FEW_COLUMNS = 0.3
# But not where Newton steps at their pace have less left than this share of that work, all of it
# where columns are not few. (720 fits of a development set with none, 0.1, a half, all of it:
# 1.02, 1.04, 1 and 1.04 times the time; of 144 fits of 2,500 samples 1.08, 1.04, 1 and 0.98. The
# slowest fits take longer with a half.)
_REST_OF_FEW = 0.15
# Behind splitting, so much of the work of the other way is waited for, more where columns are not
# few, and so much may be left.
_SHARE_BEHIND = 0.1
_SHARE_BEHIND_NARROW = 0.5
_FAR_BEHIND = 100.0
_REST_BEHIND = 0.5
# Weights are steep where this share of the samples pays that share of all costs.
_FEW = 0.01
_MUCH_OF_ALL = 0.15
# What is to be expected is found out anew when so many times as much work was done.
_ASK_AGAIN = 1.5
# This share of the columns is looked at before they are made: those of a dozen features may be
# twice as many as the first ones promise (a fit of 2,500 samples took 6.5 s there instead of 0.3).
_LOOK_CLOSER = 0.5
# Columns are few up to this share of the samples. The other way is better than splitting then,
# unless it is expected to do so many times the work.
_FEW_COLUMNS = 0.5
_MUCH_MORE = 2.0
# It keeps a dozen numbers per pair of a level and a sample, and passes over all of them about
# fifteen times per iteration: this many take a quarter of a second.
_MAX_PAIRS = 3_000_000
# Share of the tolerance that the levels may cost, and that is left to the iterations.
_LEVEL_SHARE = 0.5
_ITERATION_SHARE = 0.2
_MAX_ROUNDS = 2
# Samples that were left out and deviate join so often; after that all do.
_MAX_ADMISSIONS = 3
# Columns of a kernel leave so much of it that sum_i a_i^2 R_ii is about this share of the
# tolerance. Where the dual point has changed, they are chosen anew if they leave so many times
# that; in a second round they leave that share of it.
_LEFT_SHARE = 0.1
_MOST_LEFT = 3.0
_LEFT_AGAIN = 0.01
# What samples count at least, as shares of the mean coefficient; far from the optimum any of them
# may grow.
_LEAST_WEIGHT = 0.1
_FAR_WEIGHT = 0.3
# Where more levels than these would be needed Newton steps finish what few levels have begun.
_MOST_LEVELS = 64
_MOST_LEVELS_SHARE = 0.6
# Levels lose less at an optimum than at iterates, where slacks are spread more.
_LESS_LATER = 10.0
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
# Newton iterates are taken to be this many times further from the optimum than they seem, a
# relative gap within these: a start too close to the boundary stalls. 12 slow fits took 9 to 19
# iterations from there, 12 to 33 from w = 0.
_BEGIN = 30.0
_LEAST_BEGIN = 0.3
_MOST_BEGIN = 3.0
# Columns that say less than a relative gap of this size join later.
_LEAST_OFF = 1e-3
# Samples and levels that are further apart than groups of the levels before, and this share of
# what 90 % of the deviations lie within, stay on their sides; so many times that in a second
# round. 12 slow fits took 197, 167, 151 and 148 ms (geometric mean) with 0.1, 0.05, 0.02 and 0.01.
_WITHIN = 0.02
_WIDER = 5.0
# Samples beyond the margin by so much are left out, by so much where the relative gap is larger
# than the third number; none where few would be.
_MARGIN = 0.5
_MARGIN_FAR = 1.5
_FAR = 0.03
# Coefficients below this share of their mean hold nothing.
_HELD = 0.01
_MOST_KEPT = 0.9


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

    Attributes
    ----------
    is_asked_for : bool
        Whether it is due whatever Newton steps have done.
    """

    def __init__(self, problem: OWAProblem, task: ConvexTask, effort: Effort, tol: float) -> None:
        self._effort = effort
        self._costs: Costs = problem.costs
        self._task = task
        self._tol = tol
        self._is_coarse = False
        self.is_asked_for = False
        self.is_at_work = False
        self._latest = task.tuning.rescue_steps
        self._problem = problem
        self._kept = np.arange(problem.n_samples)
        self._keeps_all = False
        self.has_many_columns = False
        self._look_at_data()

    def _look_at_data(self) -> None:
        """Find out what the other way works with, and whether there is one."""
        problem, operator = self._problem, self._task.operator
        self._operator = operator
        self._width = operator.n_columns
        self._is_kernel = problem.features is None
        # Columns and work to expect, and the work that had been done when that was found out.
        self._columns, self._work, self._asked_at = np.inf, np.inf, 0.0
        self._looked_at = 0.0
        has_few = problem.n_samples * _FIRST_LEVELS <= _MAX_PAIRS
        has_rows = self._width is not None and self._width <= problem.n_samples
        self._is_at_hand = (
            problem.loss == "hinge" and has_few and (has_rows or operator.can_lift())
        )

    # -- when ---------------------------------------------------------------------------------

    def _has_spent(self, tuning: Tuning, nearly: bool, iterate: Iterate) -> bool:
        """Whether Newton steps have done so much work that the other way is to have a turn."""
        patience = tuning.rescue_share
        if self._is_hard and self._is_slow_behind_splitting(iterate):
            return True
        if nearly or self._is_coarse:
            patience *= tuning.more_patience
        spent = self._effort.spent - patience * self._overhead
        if spent < 0.0:
            return False
        self._look_ahead(iterate)
        if not self._is_enough(spent, patience):
            return False
        # A few more columns are looked at before all of them are made.
        return not self._look_closer(iterate) or self._is_enough(spent, patience)

    def _is_enough(self, spent: float, patience: float) -> bool:
        """Whether so much work calls for the other way, as far as its work is known."""
        share = self._find_patience()
        if spent < patience * share * self._work:
            return False
        # At their pace they may be there before.
        is_late = spent >= patience * _NO_MORE_PATIENCE * self._work
        least = _REST_OF_FEW if share == _LITTLE_PATIENCE else 1.0
        is_slow = self._effort.rest > patience * least * self._work
        # Many levels are dear: not at the first look, from which no pace can be told.
        return is_late or (is_slow and (self._has_one_level or self._effort.has_pace))

    def _is_slow_behind_splitting(self, iterate: Iterate) -> bool:
        """Whether Newton steps do not get on where splitting did not."""
        if not self._effort.is_marked:
            return False
        self._look_ahead(iterate)
        has_few = self._columns < _FEW_COLUMNS * self._problem.n_samples
        is_far = self._effort.best_gap > _FAR_BEHIND * self._tol * max(1.0, abs(iterate.objective))
        share = _SHARE_BEHIND if has_few or is_far else _SHARE_BEHIND_NARROW
        is_slow = self._effort.rest > _REST_BEHIND * self._work
        return is_slow and self._effort.since_mark >= share * self._work

    @property
    def _overhead(self) -> float:
        """Work that Newton steps do at least: what the other way takes however few samples."""
        n_iter = _WITH_ONE_LEVEL if self._has_one_level else _WITH_FEW_LEVELS
        share = _SHARE_OF_OVERHEAD if self._is_hard else _PATIENCE
        return share * (_PER_RESCUE + n_iter * _PER_ITERATION)

    def _look_ahead(self, iterate: Iterate) -> None:
        """Find out how much work the other way would be from here; again when more was done."""
        if self._asked_at > 0.0 and self._effort.spent < _ASK_AGAIN * self._asked_at:
            return
        self._asked_at, self._looked_at = self._effort.spent, float(LOOKED_AT)
        if self._width is not None:
            self._columns = float(self._width) if self._is_kernel else np.inf
        elif self._operator.is_gram:
            self._columns = self._operator.expect_columns(*self._weigh_samples(iterate))
        self._count_work(iterate)

    def forget(self) -> None:
        """Find out anew: another method has led elsewhere."""
        self._asked_at = 0.0

    def _look_closer(self, iterate: Iterate) -> bool:
        """Find out more about few columns, of which fewer still have been looked at.

        Whether there was more to find out.
        """
        look = _LOOK_CLOSER * self._columns
        has_few = self._columns < _FEW_COLUMNS * self._problem.n_samples
        if self._width is not None or not has_few or look <= self._looked_at:
            return False
        self._columns = self._operator.expect_columns(*self._weigh_samples(iterate), look)
        self._looked_at = look
        self._count_work(iterate)
        return True

    def _count_work(self, iterate: Iterate) -> None:
        """The work of the other way with so many columns."""
        size = self._problem.n_samples
        width = float(size)
        if self._width is not None:
            width = float(self._width)
        elif self._operator.is_gram:
            size = self._find_near_margin(iterate).size
            width = min(self._columns, size)
        n_levels = 1.0
        if not self._has_one_level:
            allowed = _LESS_LATER * _LEVEL_SHARE * self._tol * max(1.0, abs(iterate.objective))
            n_levels = interior.expect_levels(self._costs, iterate.slack, allowed)
        self._work = _expect_work(size, width, n_levels)
        if not self._is_kernel:
            self._work *= _PATIENCE_WITH_ROWS

    def _weigh_samples(
        self, iterate: Iterate, least: float = _LEAST_WEIGHT, left: float = _LEFT_SHARE
    ) -> tuple[FloatArray, float]:
        """How much samples matter in few columns, and what may be left of them.

        No sample counts less than if it had the share `least` of the mean coefficient, since it
        may grow. `left` is a share of the tolerance.

        With ``weight_i^2 = a_i mean(a)`` a remainder R of the kernel for which
        ``weight_i^2 R_ii <= left`` has ``sum_i a_i^2 R_ii <= n_samples * left``, and much less
        most often.
        """
        dual = np.maximum(self._task.dual_of(iterate.w), iterate.dual)
        mean = max(float(dual.mean()), 1e-100)
        weight = np.sqrt(np.maximum(dual, least * mean) * mean)
        allowed = left * self._tol * max(1.0, abs(iterate.objective))
        return weight, allowed / dual.size

    def _is_nearly_done(self, iterate: Iterate) -> bool:
        """Whether it would be a pity to leave an iterate behind."""
        share = self._task.tuning.nearly_done * self._tol
        return iterate.gap <= share * max(1.0, abs(iterate.objective))

    @cached_property
    def _has_one_level(self) -> bool:
        """Whether all samples that pay pay the same, but for one that pays a share of it.

        The average of the worst quarter of 1,250 deviations has half of one of them.
        """
        paid = self._costs.largest_first(np.arange(self._problem.n_samples))
        mass = self._costs.sample_weight
        price = paid if mass is None else paid / mass
        return int(np.count_nonzero((price > 0.0) & (price < 0.999 * price.max()))) <= 1

    @cached_property
    def is_steep(self) -> bool:
        """Whether few samples pay much of all costs."""
        few = np.arange(max(int(_FEW * self._problem.n_samples), 1))
        return float(self._costs.largest_first(few).sum()) > _MUCH_OF_ALL * self._costs.total

    @property
    def _is_hard(self) -> bool:
        """Whether Newton steps with a kernel take long, most often."""
        return self._is_kernel and (self.is_steep or self._has_one_level)

    def is_preferred(self, iterate: Iterate, other: float) -> bool:
        """Whether few columns make this a better way than one that goes on from the iterate.

        `other` is the work that one is expected to do.
        """
        if self._is_nearly_done(iterate) or not self._is_at_hand:
            return False
        self._look_ahead(iterate)
        few = self._columns < _FEW_COLUMNS * self._problem.n_samples
        return few and self._work < _MUCH_MORE * other

    def expect_work(self, iterate: Iterate) -> float | None:
        """Work of this way; None where it is not at hand, or its weights are not for it."""
        if not (self._is_at_hand and self._is_hard):
            return None
        self._look_ahead(iterate)
        return self._work * (1.0 if self._has_one_level else _AS_SPLITTING_COUNTS)

    def _find_patience(self) -> float:
        """Work of Newton steps to wait for, as a share of that of the other way.

        With steep weights and with one level of cost few columns are the better way nearly always:
        of 44 such fits of a development set 24 of 25 and 12 of 19 took less time, with other
        weights 5 of 95.
        """
        if not self._is_hard:
            return _PATIENCE
        share = self._columns / self._problem.n_samples
        return _LITTLE_PATIENCE if share < _VERY_FEW_COLUMNS else _SOME_PATIENCE

    def _is_far_behind(self, iterate: Iterate) -> bool:
        """Whether Newton steps would take longer than the other way at their pace."""
        self._look_ahead(iterate)
        return self._effort.rest > self._work

    def is_due(self, iterate: Iterate) -> bool:
        """Whether Newton steps have cost as much as the other way would."""
        if self._operator is not self._task.operator:
            self._look_at_data()
        if not self._is_at_hand or self.is_asked_for:
            return self._is_at_hand
        tuning = self._task.tuning
        nearly = self._is_nearly_done(iterate)
        latest = 2 * self._latest if nearly else self._latest
        late = iterate.n_iter >= latest and self._is_far_behind(iterate)
        if not late and not self._has_spent(tuning, nearly, iterate):
            return False
        if late or not (nearly or self._is_coarse):
            stairs, allowed = self._choose_levels(iterate.slack, iterate.objective, _LEVEL_SHARE)
            on_device = self._task.operator.place is not None
            share = _MUCH if late else _LITTLE * on_device
            if stairs.loss > max(_LESS_LATER * allowed, share * self._effort.best_gap):
                self._is_coarse = True
                if late:
                    self._latest *= 2
                return False
        return True

    # -- how ----------------------------------------------------------------------------------

    def _choose_levels(
        self,
        slack: FloatArray,
        objective: float,
        share: float,
        coarser: interior.Staircase | None = None,
    ) -> tuple[interior.Staircase, float]:
        """Levels of cost, and what they were allowed to lose."""
        allowed = share * self._tol * max(1.0, abs(objective))
        most = max(_MOST_LEVELS, int(_MOST_LEVELS_SHARE * slack.size))
        most = min(most, _MAX_PAIRS // slack.size)
        return interior.choose_groups(self._costs, slack, allowed, most, coarser), allowed

    def iterates(self, iterate: Iterate, clock: Clock) -> Iterator[Iterate]:
        """Points of the dual set, of finer and finer levels; they count as no Newton steps."""
        accuracy = max(_ITERATION_SHARE * self._tol, 1e-12)
        share, left, within = _LEVEL_SHARE, _LEFT_SHARE, _WITHIN
        self.is_at_work, self._is_at_hand = True, False
        last, found = iterate, None
        stairs, allowed = self._choose_levels(iterate.slack, iterate.objective, share)
        is_far = iterate.gap > _FAR * max(1.0, abs(iterate.objective))
        columns = self._find_columns(iterate, _FAR_WEIGHT if is_far else _LEAST_WEIGHT, left)
        if stairs.jump.size > _FEW_LEVELS or is_far:
            # Few levels say where many begin, and which samples matter.
            stairs = interior.choose_groups(self._costs, last.slack, np.inf, _FIRST_LEVELS)
            rough = _Round(columns, stairs, max(accuracy, _FIRST_ACCURACY))
            found = self._minimise(last, rough, clock)
            if not np.isfinite(found.point.gap) or clock.expired:
                return
            last = found.iterate
            stairs, allowed = self._choose_levels(found.slack, last.objective, share, stairs)
            if columns is not None and self._lacks_columns(columns, last):
                columns = self._find_columns(last, _LEAST_WEIGHT, left)
        for _ in range(_MAX_ROUNDS):
            fine = _Round(columns, stairs, accuracy, within)
            found = self._minimise(last, fine, clock, found)
            if not np.isfinite(found.point.gap):
                return
            last = found.iterate
            yield last
            if clock.expired or stairs.loss > allowed:
                return
            # What was left out may be what the proof lacks: columns, levels, pairs.
            within *= _WIDER
            left *= _LEFT_AGAIN
            columns = self._find_columns(last, _LEAST_WEIGHT, left)
            stairs, allowed = self._choose_levels(found.slack, last.objective, share, stairs)
        # Where columns are few, rounding leaves nothing of the kernel as it is.
        if self.has_many_columns and not self._is_nearly_done(last):
            whole = _Round(None, stairs, accuracy, within)
            yield self._minimise(last, whole, clock, found).iterate

    def _find_columns(self, iterate: Iterate, least: float, left: float) -> FewColumns | None:
        """Those of the samples, or few with nearly the kernel of the problem; None for that."""
        if self._width is not None:
            return self._own_columns
        found = self._operator.find_columns(*self._weigh_samples(iterate, least, left))
        n_columns = 0 if found is None else found.pivots.size
        self.has_many_columns = n_columns > _FEW_COLUMNS * self._problem.n_samples
        return found

    def _lacks_columns(self, columns: FewColumns, iterate: Iterate) -> bool:
        """Whether columns that were chosen for another dual point leave too much of this one."""
        task = self._task
        coef = task.target(iterate.dual)
        w, located = task.operator.vector(coef), columns.locate(coef)
        lost = task.operator.inner(w, w) - float(located @ located)
        scale = self._tol * max(1.0, abs(iterate.objective))
        return lost > _MOST_LEFT * _LEFT_SHARE * scale

    @cached_property
    def _own_columns(self) -> FewColumns:
        """Of samples that have few of them."""
        rows = self._operator.rows_in_memory()
        return FewColumns(rows, np.empty(0, dtype=np.int64), np.zeros(rows.shape[1]))

    def _minimise(
        self, near: Iterate, parts: _Round, clock: Clock, known: _Found | None = None
    ) -> _Found:
        """The optimum of some levels, from next to an iterate or a point of coarser levels.

        Samples that were left out and deviate join.
        """
        for n_more in range(_MAX_ADMISSIONS, -1, -1):
            self._keeps_all |= n_more == 0
            found = self._minimise_kept(near, parts, clock, known)
            if not found.lacks_samples or not np.isfinite(found.point.gap) or clock.expired:
                break
            near, known = found.iterate, found
        return found

    def _minimise_kept(
        self, near: Iterate, parts: _Round, clock: Clock, known: _Found | None
    ) -> _Found:
        """The same for samples near the margin alone."""
        columns, stairs, accuracy, within = parts
        task, mass = self._task, self._costs.sample_weight
        kept = self._keep_near_margin(near)
        if known is not None and columns is None:
            # And those that w is made of.
            kept = np.union1d(kept, np.flatnonzero(known.coef))
        slack = near.slack if known is None else known.slack
        meeting, shares, dual = stairs.meet(kept, slack), None, None
        if known is not None:
            shares, dual = known.find_shares(stairs), known.iterate.dual
            if task.operator.place is None and np.isfinite(within):
                coarser = known.point.meeting.stairs
                reach = coarser.find_near(stairs, within * _measure_spread(slack))
                meeting = stairs.meet(kept, slack, reach)
                meeting = meeting.widen(shares[:, meeting.order])
            shares, dual = shares[:, meeting.order], dual[meeting.order]
        order = meeting.order
        system = self._make_system(columns, order)
        start = self._start(system, columns, order, near, known)
        point = interior.minimise(
            system,
            task.y[order],
            None if mass is None else mass[order],
            meeting,
            accuracy,
            clock,
            task.operator.place,
            replace(start, shares=shares, dual=dual),
        )
        logger.debug(
            "%d levels, %d samples, %s columns, %d iterations, gap %.1e",
            stairs.jump.size,
            order.size,
            "all" if columns is None else point.w.size,
            point.n_iter,
            point.gap,
        )
        return _Found(point, columns, self._describe(point, order, near, columns))

    def _start(
        self,
        system: interior.System,
        columns: FewColumns | None,
        order: IntArray,
        near: Iterate,
        known: _Found | None,
    ) -> interior.Start:
        """A start next to an iterate, or at a point that is known."""
        scale = max(1.0, abs(near.objective))
        if known is None:
            slack = near.slack
            gap = min(max(_BEGIN * near.gap, _LEAST_BEGIN * scale), _MOST_BEGIN * scale)
            w, off = self._locate(near.w.coef, columns, order), max(near.gap, _LEAST_OFF * scale)
        else:
            slack = known.slack
            gap = off = known.point.gap * scale
            if columns is not None and columns is known.columns:
                w = known.point.w
            else:
                w = self._locate(known.coef, columns, order)
        w, intercept, slack = system.begin_near(w, slack[order], off)
        return interior.Start(w, self._task.dual_of(near.w)[order], intercept, slack, gap)

    def _locate(self, coef: FloatArray, columns: FewColumns | None, order: IntArray) -> FloatArray:
        """The vector of given coefficients in the coordinates of a system."""
        return (self._task.y * coef)[order] if columns is None else columns.locate(coef)

    def _find_near_margin(self, iterate: Iterate) -> IntArray:
        """Samples that may deviate, and those that are held where they are by their own weight."""
        far = iterate.gap > _FAR * max(1.0, abs(iterate.objective))
        near = iterate.slack > (-_MARGIN_FAR if far else -_MARGIN)
        coef = np.abs(iterate.w.coef)
        return np.flatnonzero(near | (coef > _HELD * coef.mean()))

    def _keep_near_margin(self, iterate: Iterate) -> IntArray:
        """Choose the samples that may deviate.

        All of them where few would be left out, or none can be.
        """
        everyone = np.arange(iterate.slack.size)
        before, self._kept = self._kept, everyone
        if self._task.operator.is_gram and not self._keeps_all:
            kept = self._find_near_margin(iterate)
            if before.size < everyone.size:
                # Those that were among them stay, so that rounds do not go to and fro.
                kept = np.union1d(before, kept)
            if kept.size < _MOST_KEPT * everyone.size:
                self._kept = kept
        return self._kept

    def _make_system(self, columns: FewColumns | None, order: IntArray) -> interior.System:
        task = self._task
        y = task.y[order]
        if columns is not None:
            kind = interior.TruncatedSystem if self._is_kernel else interior.FeatureSystem
            return kind(columns.rows[order] * y[:, np.newaxis], y)
        operator = task.operator
        if order.size == operator.n_samples:
            return interior.KernelSystem(operator, y, order)
        kept = np.sort(order)
        return interior.KernelSystem(operator.take(kept), y, np.searchsorted(kept, order))

    def _describe(
        self,
        point: interior.Point,
        order: IntArray,
        near: Iterate,
        columns: FewColumns | None,
    ) -> Iterate:
        """A point as the Newton method has it, for all samples."""
        task = self._task
        coef, dual = np.zeros(task.y.size), np.zeros(task.y.size)
        coef[order], dual[order] = point.coef, np.maximum(point.dual, 0.0)
        _, bound = bound_of(task, dual)

        def describe(signed: FloatArray) -> Iterate:
            w = task.operator.vector(signed)
            return describe_final(task, w, point.intercept, dual, bound, near)

        found = describe(task.target(coef))
        enough = _LEVEL_SHARE * self._tol * max(1.0, abs(found.objective))
        if columns is None or columns.pivots.size == 0 or found.gap <= enough:
            return found
        # Coefficients next to the dual point make a vector next to w. Where w is short and costs
        # are large that may cost more than all that is left to gain.
        signed = columns.mend(task.target(coef), point.w)
        mended = describe(signed)
        return mended if mended.objective < found.objective else found


class _Round(NamedTuple):
    """What a round of interior points is made of.

    Parameters
    ----------
    columns : FewColumns or None
        What stands for the kernel, None for the kernel matrix.
    stairs : Staircase
        The levels.
    accuracy : float
        The relative gap to reach.
    within : float, default=inf
        Samples and levels further apart than groups of coarser levels and this share of all
        deviations stay on their sides.
    """

    columns: FewColumns | None
    stairs: interior.Staircase
    accuracy: float
    within: float = np.inf


@dataclass(frozen=True, eq=False)
class _Found:
    """A point of the interior point method.

    Parameters
    ----------
    point : interior.Point
        In the order of its meeting.
    columns : FewColumns or None
        What it was found with, None for the kernel matrix.
    iterate : Iterate
        The same as the Newton method has it: coefficients next to the dual point, and what they
        make of the problem as it is.
    """

    point: interior.Point
    columns: FewColumns | None
    iterate: Iterate

    @property
    def slack(self) -> FloatArray:
        """Of all samples; others than those of the meeting are where the iterate has them."""
        slack = self.iterate.slack.copy()
        slack[self.point.meeting.order] = self.point.slack
        return slack

    @property
    def lacks_samples(self) -> bool:
        """Whether samples that were left out deviate."""
        left_out = np.ones(self.iterate.slack.size, dtype=bool)
        left_out[self.point.meeting.order] = False
        return bool(np.any(self.iterate.slack[left_out] > 0.0))

    @property
    def coef(self) -> FloatArray:
        """Coefficients of w, seen from zero, or from the mean where they are balanced."""
        if self.columns is None or self.columns.pivots.size == 0:
            return self.iterate.w.coef
        return self.columns.represent(self.point.w)

    def find_shares(self, finer: interior.Staircase) -> FloatArray:
        """How far all samples lie above finer levels, from 0 to 1."""
        meeting = self.point.meeting
        shares = meeting.spread(self.point.shares, self.iterate.slack.size)
        return meeting.stairs.interpolate(finer, shares)


def _measure_spread(slack: FloatArray) -> float:
    """What most of the deviations lie within."""
    deviations = slack[slack > 0.0]
    return float(np.ptp(np.quantile(deviations, (0.05, 0.95)))) if deviations.size > 0 else 0.0


def _expect_work(size: int, width: float, n_levels: float) -> float:
    """Multiplications of a factorisation that take as long as interior points, for some samples.

    As many columns as samples mean the kernel matrix.
    """

    def iteration(number: float) -> float:
        work = _PER_ITERATION + _PER_PAIR * number * size
        if width < size:
            return work + 0.5 * size * width**2 + (_PER_ENTRY + number) * size * width
        return work + size**3 / 3.0 + (_PER_KERNEL_ENTRY + number) * size**2

    work = _PER_RESCUE + (0.0 if width >= size else _PER_COLUMN * width * size**2)
    if n_levels == 1:
        return work + _WITH_ONE_LEVEL * iteration(1)
    work += _WITH_FEW_LEVELS * iteration(min(n_levels, _FIRST_LEVELS))
    if n_levels > _FEW_LEVELS:
        # Levels meet a part of the samples.
        work += _WITH_MANY_LEVELS * iteration(0.5 * n_levels)
    return work
