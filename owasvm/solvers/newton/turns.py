"""When Newton steps take long on a kernel matrix, a splitting method has a turn."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from owasvm.samples import Vector
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton.core import ConvexTask, Iterate
from owasvm.solvers.newton.effort import Effort, reading
from owasvm.solvers.splitting import Splitting

FloatArray = NDArray[np.float64]

__all__ = ["SplittingTurn", "extrapolate_pivots", "gives_up"]

logger = logging.getLogger(__name__)

# The penalty: the mean cost, within these multiples of the inverse of the geometric mean of the
# kernel's eigenvalues. Of these this share of their arithmetic mean counts at least.
_LEAST_PENALTY = 8.0
_MOST_PENALTY = 25.0
_LEAST_EIGENVALUE = 0.01
# With so many samples every other one tells the eigenvalues, within a quarter and in an eighth of
# the time. That of all of them is as long as a quarter of what else is done before iterations.
_MANY_SAMPLES = 200
# Newton steps behind it go on with so many times the penalty.
_PENALTY_BEHIND = 3.0
# It ends at this share of the tolerance: one Newton step more then proves it, most often. Where
# Newton systems are so large that a step costs as much as so many iterations, it goes on to this.
_GOAL = 0.3
_LARGE_STEP = 1.0
_GOAL_ALONE = 3e-3
# Iterations at most, to the first goal and to the second one, and between two looks; looks in
# which gaps may rise, and over which progress is measured after that.
_MAX_ITERATIONS = 700
_MAX_ITERATIONS_ALONE = 1000
_PACE = 10
_FIRST_LOOKS = 10
_LOOK_BACK = 5
# Where interior points would take over it goes on instead, by its progress over half of the looks,
# as long as so much of their work will do and all of it was not done yet: while the gap is more
# than so many times the tolerance, and behind the first goal. In between Newton steps end sooner.
# (72 slow fits of a development set take 10 % less time; 7 and 5 % with 100 and 300 times; at any
# gap as many take longer as take less.)
_SHARE_OF_OTHER = 0.7
_FAR = 50.0
# Iterations to expect, and what each costs beside a product, as multiplications of a factor.
_EXPECTED = 100
_PER_ITERATION = 2.5e6
# Multiplications of the inverse per second, at least.
_PER_SECOND = 1e10
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
    """Watches Newton steps and takes over once, or where it is asked to.

    It goes on until it is done or does not get on; ``is_at_work`` tells when.

    Parameters
    ----------
    task : ConvexTask
        The task.
    effort : Effort
        What Newton steps have cost.
    tol : float
        Relative gap to prove.
    """

    def __init__(self, task: ConvexTask, effort: Effort, tol: float) -> None:
        self._task = task
        self._effort = effort
        self._tol = tol
        n_samples = task.operator.n_samples
        # A factor, its inverse, and products that read a triangle.
        self._iteration = 0.5 * reading(n_samples) + _PER_ITERATION
        self.expected = float(n_samples) ** 3 + _EXPECTED * self._iteration
        self._is_over = False
        self.is_at_work = False

    @property
    def is_open(self) -> bool:
        """Whether the turn is still to come."""
        return not self._is_over and self._task.operator.is_gram

    def is_due(self, iterate: Iterate, *, is_steep: bool) -> bool:
        """Whether Newton steps have cost more than a try, and will go on to."""
        if not self.is_open:
            return False
        share = _SHARE
        # Far from the optimum most samples may be in the systems of any fit.
        is_near = self._effort.best_gap <= _SMALL_GAP * max(1.0, abs(iterate.objective))
        if is_steep:
            share = _SHARE_WITH_STEEP_WEIGHTS
        elif is_near and iterate.n_active > _LARGE_SYSTEM * self._task.operator.n_samples:
            share = _SHARE_OF_LARGE_STEPS
        is_dear = self._effort.spent > share * self.expected
        return is_dear and self._effort.rest > _REST * self.expected

    def iterates(
        self, iterate: Iterate, clock: Clock, other: float | None = None
    ) -> Iterator[Iterate]:
        """Iterates from slacks and dual point of the given one; they count as no Newton steps.

        None where there is no time for the inverse. `other` is the work of the method that would
        take over, if there is one.
        """
        self._is_over = True
        if not clock.has_room_for(self._task.operator.n_samples**3 / _PER_SECOND):
            return
        self.is_at_work = True
        try:
            yield from self._iterates(iterate, clock, other)
        finally:
            self.is_at_work = False

    def _iterates(self, iterate: Iterate, clock: Clock, other: float | None) -> Iterator[Iterate]:
        task = self._task
        worth = None if other is None else int(other / (_PACE * self._iteration))
        is_large = iterate.n_active**3 / 3.0 > _LARGE_STEP * self._iteration
        share = _GOAL_ALONE if is_large else _GOAL
        gaps: list[float] = []
        # Numbers that overflow end it, and no warning is needed.
        with np.errstate(all="ignore"):
            penalty = self._choose_penalty()
            method = Splitting(task.operator, task.y, task.loss, task.margin, penalty)
        steps = method.iterate(iterate.slack, iterate.dual)
        while True:
            with np.errstate(all="ignore"):
                for _ in range(_PACE):
                    next(steps)
                found = self._describe(method, iterate.n_iter, _PENALTY_BEHIND * penalty)
            if not math.isfinite(found.gap + found.objective):
                return
            gaps.append(found.gap)
            yield found
            scale = self._tol * max(1.0, found.objective)
            is_there = found.gap <= share * scale
            if is_there or clock.expired or gives_up(gaps, scale, share, worth):
                n_done = _PACE * len(gaps)
                logger.debug("splitting: %d iterations, gap %.1e", n_done, found.gap)
                return

    def _choose_penalty(self) -> float:
        """One that suits most directions of the feature space.

        Alone, each iteration leaves most of the error where eigenvalues of the kernel are far from
        the inverse of the penalty. Those of a wide kernel are small, all but a few.
        """
        task = self._task
        mass = task.loss.mass
        lift = _LEAST_EIGENVALUE / task.unit_penalty
        lifts = np.broadcast_to(lift if mass is None else lift / mass, task.y.shape)
        operator, n_samples = task.operator, task.y.size
        if n_samples >= _MANY_SAMPLES:
            index = np.arange(0, n_samples, 2)
            operator, lifts = operator.take(index), lifts[index]
        logs = operator.lift(lifts).log_pivots()
        unit = math.exp(-extrapolate_pivots(logs, n_samples, math.log(lift)))
        if mass is not None:
            unit *= float(np.exp(-np.log(mass).mean()))
        return min(max(task.loss.mean_cost, _LEAST_PENALTY * unit), _MOST_PENALTY * unit)

    def _describe(self, method: Splitting, n_iter: int, penalty: float) -> Iterate:
        task, point = self._task, method.point
        w = Vector(method.coef, method.scores)
        loss = task.loss.value(method.slack)
        _, squared = task.operator.residual(task.target(point.dual), w)
        product = float(point.dual @ method.slack)
        return Iterate(
            w=w,
            intercept=method.intercept,
            dual=point.dual.copy(),
            penalty=penalty,
            slack=method.slack,
            objective=0.5 * task.operator.inner(w, w) + loss,
            gap=0.5 * squared + loss + task.loss.conjugate_at(point) - product,
            n_iter=n_iter,
        )


def extrapolate_pivots(logs: FloatArray, n_samples: int, least: float) -> float:
    """The mean logarithm of the pivots of all samples, from those of the first ones.

    A pivot is what the samples before it leave of a sample's variance. It falls with their number
    k, about as a power of k, to what was added to the diagonal.

    Parameters
    ----------
    logs : ndarray of shape (n_known,)
        Logarithms of the first pivots.
    n_samples : int
        Number of samples.
    least : float
        The smallest logarithm that there can be.
    """
    n_known = logs.size
    if n_known == n_samples:
        return float(logs.mean())
    quarter, half = n_known // 4, n_known // 2
    late = float(logs[half:].mean())
    power = (late - float(logs[quarter:half].mean())) / math.log(2.0)
    # The second half of the pivots has its mean at about this number.
    centre = math.exp(np.log(np.arange(half, n_known) + 1.0).mean())
    numbers = np.arange(n_known, n_samples) + 1.0
    rest = np.maximum(late + power * np.log(numbers / centre), least)
    return float((logs.sum() + rest.sum()) / n_samples)


def gives_up(gaps: list[float], scale: float, last_share: float, worth: int | None) -> bool:
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
    """
    best, n_looks = min(gaps), len(gaps)
    is_behind = best <= _GOAL * scale
    goal = (last_share if is_behind else _GOAL) * scale
    # Newton steps would take long from there.
    is_patient = best > _FAR * scale or (is_behind and last_share < _GOAL)
    if worth is not None and is_patient:
        n_left = min(int(_SHARE_OF_OTHER * worth), worth - n_looks)
        return _stalls(gaps, goal, n_left, n_looks // 2)
    # From the first goal on it goes on to the second one, if there are two.
    most = _MAX_ITERATIONS_ALONE if is_behind else _MAX_ITERATIONS
    return _stalls(gaps, goal, most // _PACE - n_looks, _LOOK_BACK)


def _stalls(gaps: list[float], goal: float, n_left: int, n_back: int) -> bool:
    """Whether gaps that go on to fall as in the last looks miss the goal in the looks left."""
    if len(gaps) <= _FIRST_LOOKS:
        return n_left <= 0
    # Rounding may leave less than nothing.
    best = max(min(gaps), goal)
    rate = math.log(max(min(gaps[:-n_back]), goal) / best) / n_back
    return not rate * n_left > math.log(best / goal)
