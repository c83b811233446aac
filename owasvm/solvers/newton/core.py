r"""Semismooth Newton augmented Lagrangian method for non-decreasing weights.

The problem, in its general convex form (the plain OWA-SVM has ``margin = 1``, ``linear = 0``, one
rank group and a free intercept), is

.. math::

    \min_{w, b}\ \tfrac12 |w|^2 + \Phi(u) + \sum_i e_i y_i f(x_i),
    \qquad u_i = \text{margin}_i - y_i f(x_i), \quad f(x) = \langle w, \phi(x) \rangle + b .

:math:`\Phi` is an ordered weighted sum of the positive parts of u. Its dual set is the polymatroid
P of :func:`owasvm.loss.project_dual`. With a multiplier a and a penalty sigma,

.. math::

    \alpha(w, b) = \operatorname{proj}_P (a + \sigma u), \qquad
    \nabla_w = w - \sum_i (\alpha_i - e_i) y_i \phi(x_i), \qquad
    \nabla_b = -\sum_i y_i (\alpha_i - e_i)

is the gradient of the augmented Lagrangian, a smooth convex function of (w, b).

Outer loop: minimise it roughly, put ``a = alpha``, raise sigma.
Inner loop: Newton steps. The generalised Jacobian of the projection is sigma on the clipped
samples (those on the margin), sigma times "subtract the mean" on each block of tied samples, and 0
elsewhere, so a step solves a system of the size of the clipped and tied samples, or of the
features. The line search finds a zero of the derivative: at high accuracy the values of the
function no longer tell points apart, their derivatives still do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from owasvm.losses import ProximalLoss, ProxPoint, RankedHinge
from owasvm.samples import MAX_INTERCEPT_STEP, ActiveSet, Memory, Operator, Vector
from owasvm.solution import Solution
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton._bracket import begin_search, next_step
from owasvm.solvers.newton._loops import add_up, change_along, shift_point
from owasvm.solvers.newton._rules import (
    NEAR_ENOUGH,
    ROUNDING,
    choose_growth,
    choose_share,
    ends_inner_loop,
)
from owasvm.solvers.newton.active import NO_MASS, Partition, make_active_set, split_samples
from owasvm.solvers.newton.tuning import DEFAULT, Tuning

FloatArray = NDArray[np.float64]

# Costs that are all 0 leave nothing to do; a penalty needs a scale all the same.
_LEAST_COST = 1e-100
# An iterate whose gap fell to this share of the best one's is worth keeping a copy of.
_WORTH_A_COPY = 0.5
# A vector that is not there.
_NOTHING = np.empty(0)
# With so many samples vectors that are not needed while an iterate is looked at are let go: they
# are made again in less time than a step takes.
MANY_SAMPLES = 200_000
# Intercepts and objectives beyond this are on their way to infinity.
_ESCAPED = 1e15


@dataclass
class ConvexTask:
    """The convex problem the core minimises.

    Parameters
    ----------
    operator : Operator
        The data.
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    loss : ProximalLoss
        The ordered loss of the slacks u.
    margin : ndarray of shape (n_samples,) or (1,)
        Required functional margins, or the one of all samples, 1 in the plain problem.
    linear : ndarray of shape (n_samples,) or None, default=None
        Coefficients e of the extra term ``sum_i e_i y_i f(x_i)``.
    fixed_intercept : float or None, default=None
        The value of b when it is not a variable.
    memory : Memory, optional
        What earlier tasks on the same data have learned.
    tuning : Tuning, default=DEFAULT
        Numbers left to measurement.
    """

    operator: Operator
    y: FloatArray
    loss: ProximalLoss
    margin: FloatArray
    linear: FloatArray | None = None
    fixed_intercept: float | None = None
    memory: Memory = field(default_factory=Memory)
    tuning: Tuning = DEFAULT

    def condense(self, size: int) -> bool:
        """Take the data by few columns from now on; False where none are for such systems."""
        before, self.operator = self.operator, self.operator.condense(size)
        return self.operator is not before

    def target(self, dual: FloatArray) -> FloatArray:
        """Coefficients of the w that the gradient asks for at `dual`."""
        return self.y * (dual if self.linear is None else dual - self.linear)

    def imbalance(self, dual: FloatArray) -> float:
        """Sum of the coefficients that the gradient asks for at `dual`."""
        return float(self.y @ (dual if self.linear is None else dual - self.linear))

    def dual_of(self, w: Vector) -> FloatArray:
        """The dual point that asks for w, as far as its coefficients tell."""
        dual = self.y * w.coef
        return dual if self.linear is None else dual + self.linear

    @cached_property
    def _curvature(self) -> float:
        """Of a sample of mean weight: the unit of sample weights does not matter."""
        mass = self.loss.mass
        unit = 1.0 if mass is None else float(mass.mean())
        return self.operator.mean_diagonal() * unit

    @property
    def unit_penalty(self) -> float:
        """What the curvature of ``1/2 |w|^2`` calls for."""
        return 1.0 / max(self._curvature, _LEAST_COST)

    @cached_property
    def first_penalty(self) -> float:
        """Where the penalty starts."""
        mean_cost = max(self.loss.mean_cost, _LEAST_COST)
        tuning = self.tuning
        curvature = max(self._curvature, _LEAST_COST)
        wanted = max(tuning.first_penalty / (curvature * mean_cost), tuning.least_first_penalty)
        return mean_cost * min(wanted, tuning.most_first_penalty)

    @cached_property
    def max_penalty(self) -> float:
        """Where the penalty ends."""
        curvature = max(self._curvature, 1e-300)
        tuning = self.tuning
        return max(tuning.max_penalty / curvature, tuning.max_cost_penalty * self.loss.mean_cost)


@dataclass
class Iterate:
    """A state of the method: what it takes to judge it and to go on from it.

    ``dual`` is the point alpha(w, b) of P, ``slack`` is ``margin - y f``. ``gap`` is
    ``P(w, b) - L(alpha; b)``: the Fenchel gap of the loss plus half the squared distance of w to
    ``w_alpha``; it bounds the error up to what ``y'alpha != 0`` hides. ``n_active`` samples were
    in the last Newton system, or are in one that is left to others, ``n_solved`` in that of the
    last step. ``n_read`` rows of a kernel matrix were read since the start, where they are
    counted. ``is_final`` marks a point that no step will improve on, ``is_whole_step`` one beside
    the way, to be judged once: where a step would lead that is likely to be shortened. Its gap is
    what its own coefficients let expect.
    """

    w: Vector
    intercept: float
    dual: FloatArray
    penalty: float
    slack: FloatArray = field(default_factory=lambda: np.empty(0))
    objective: float = np.inf
    gap: float = np.inf
    n_iter: int = 0
    n_active: int = 0
    n_solved: int = 0
    n_read: float = 0.0
    is_final: bool = False
    is_whole_step: bool = False


def bound_of(task: ConvexTask, dual: FloatArray) -> tuple[Vector, float]:
    """w of a balanced point of the dual set, and the bound, but for rounding.

    For losses that are piecewise linear, without a linear term.
    """
    w = task.operator.vector(task.target(dual))
    return w, float(np.sum(task.margin * dual)) - 0.5 * task.operator.inner(w, w)


def describe_final(
    task: ConvexTask, w: Vector, intercept: float, dual: FloatArray, bound: float, near: Iterate
) -> Iterate:
    """An iterate of given w and what a dual point proves, to be judged before others follow.

    `near` knows the steps and the penalty.
    """
    slack = task.margin - task.y * (w.scores + intercept)
    objective = 0.5 * task.operator.inner(w, w) + task.loss.value(slack)
    return Iterate(
        w=w,
        intercept=intercept,
        dual=dual,
        penalty=near.penalty,
        slack=slack,
        objective=objective,
        gap=objective - bound,
        n_iter=near.n_iter,
        is_final=True,
    )


@dataclass
class _Direction:
    """A step (h, db) of w and of the intercept, and the slope at its beginning."""

    w: Vector
    intercept: float
    slope: float
    squared_norm: float


def cold_start(task: ConvexTask) -> Iterate:
    """Start at w = 0 (plus what the linear term contributes), with multiplier 0."""
    dual = np.zeros(task.y.size)
    return Iterate(
        w=task.operator.vector(task.target(dual)),
        intercept=task.fixed_intercept or 0.0,
        dual=dual,
        penalty=task.first_penalty,
    )


def start_from(task: ConvexTask, known: Solution) -> Iterate:
    """Start at the classifier of a known solution, possibly for other costs."""
    w = task.operator.vector(task.target(known.dual))
    intercept = task.fixed_intercept
    if intercept is None:
        intercept = known.intercept + task.operator.intercept_shift(w.coef)
    growth = task.loss.mean_cost / known.details.get("mean_cost", task.loss.mean_cost)
    slack = task.margin - task.y * w.scores - task.y * intercept
    nothing = np.broadcast_to(task.margin, slack.shape).copy()
    if 0.5 * task.operator.inner(w, w) + task.loss.value(slack) > task.loss.value(nothing):
        # Worse than w = 0, b = 0: from there a large penalty would take forever.
        return cold_start(task)
    task.memory.factorises = bool(known.details.get("factorises", False))
    penalty = task.tuning.restart_share * known.details.get("penalty", 0.0)
    dual = _follow_trend(task, w, known, growth)
    if dual is not None:
        penalty = task.tuning.steady_share * growth * known.details["penalty"]
    else:
        beyond = slack > task.tuning.on_margin
        dual = np.where(beyond, growth, _margin_growth(task, w, beyond, growth)) * known.dual
    return Iterate(
        w=w,
        intercept=intercept,
        dual=dual,
        penalty=min(max(penalty, task.first_penalty), task.max_penalty),
    )


def _follow_trend(
    task: ConvexTask, w: Vector, known: Solution, growth: float
) -> FloatArray | None:
    """The coefficients, gone on as they have come; None where the classifier bends too much.

    Between two kinks of the path they are linear in C.
    """
    trend = known.details.get("trend")
    if trend is None or growth == 1.0:
        return None
    change = (growth - 1.0) * known.details["mean_cost"] * trend
    squared = task.operator.inner(w, w)
    # By Cauchy's inequality it moves at least as far as it moves along w, which no product tells.
    if float((task.y * change) @ w.scores) ** 2 > task.tuning.steady * squared**2:
        return None
    moved = task.operator.vector(task.y * change)
    steady = task.operator.inner(moved, moved) <= task.tuning.steady * squared
    return np.maximum(known.dual + change, 0.0) if steady else None


def _margin_growth(task: ConvexTask, w: Vector, beyond: NDArray[np.bool_], growth: float) -> float:
    """Factor for the coefficients of samples on the margin when costs grow.

    Samples beyond the margin pay their rank's cost, which grows with C; those on the margin hold
    the classifier, which moves much less: the factor with which it moves least.
    """
    if growth == 1.0:
        return 1.0
    pushing = task.operator.vector(np.where(beyond, w.coef, 0.0))
    squared = task.operator.inner(pushing, pushing)
    across = task.operator.inner(pushing, w) - squared
    holding = task.operator.inner(w, w) - squared - 2.0 * across
    if not holding > 0.0:
        return 1.0
    factor = 1.0 - (growth - 1.0) * across / holding
    return min(max(factor, min(growth, 1.0)), max(growth, 1.0))


class Inner:
    """One augmented Lagrangian, multiplier and penalty fixed: evaluation and steps."""

    def __init__(self, task: ConvexTask) -> None:
        n_samples = task.y.size
        self.task = task
        self._known_at = -1
        self._last_partition: Partition | None = None
        self._loss = 0.0
        self._imbalance = 0.0
        self._find_residual = task.operator.residuals()
        self.slack = np.empty(n_samples)
        self.multiplier = _NOTHING
        self.point = ProxPoint(n_samples)
        self._trial = ProxPoint(n_samples)
        mass = task.loss.mass
        self._mass = NO_MASS if mass is None else mass
        loss = task.loss
        plain = loss.plain if isinstance(loss, RankedHinge) else None
        self._keeps_slack = plain is None
        # The prox that was taken last belongs to whatever is looked at next. Blocks are read
        # before the next trial.
        if plain is None:
            self._v = np.empty(n_samples)
        else:
            # Nobody asks for the prox, and v is read before the sort needs room.
            self.point.prox = _NOTHING
            self._v = plain[1].levels
        self._trial.prox = self.point.prox
        self._trial.block = self.point.block
        self._trial.shrink = self.point.shrink

    def begin(self, iterate: Iterate) -> None:
        """Fix multiplier and penalty, evaluate at the iterate."""
        iterate.slack = _NOTHING
        if iterate.dual is not self.multiplier:
            # Somebody else's, and to be overwritten some time.
            self.multiplier = iterate.dual.copy()
            iterate.dual = self.multiplier
        mass = self.task.loss.mass
        self._density = self.multiplier if mass is None else self.multiplier / mass
        self._evaluate(0.0, iterate, _Direction(iterate.w, 0.0, 0.0, 0.0))
        self.point, self._trial = self._trial, self.point

    def _find_slack(self, iterate: Iterate) -> None:
        """Where `v` has taken their place: slacks at the iterate."""
        if self._keeps_slack:
            return
        if self.slack.size == 0:
            self.slack = np.empty(self.task.y.size)
        scores, slack = iterate.w.scores, self.slack
        where = (self.task.margin, scores, scores, self.task.y, iterate.intercept, 0.0, 0.0)
        shift_point(*where, self._density, 0.0, slack, slack)

    def _make_room(self) -> None:
        """For what :meth:`look` has let go."""
        size = self.task.y.size
        if self._trial.dual.size < size:
            self._trial.dual = np.empty(size)
        if self._keeps_slack and self.slack.size < size:
            self.slack = np.empty(size)

    def look(self, iterate: Iterate, *, foresees: bool) -> tuple[float, float, float]:
        """Write objective, gap, slacks and dual of the iterate.

        Returns the squared norm of the residual, the imbalance, and how far the multiplier would
        move in units of the residual. `foresees`: a Newton step is next.
        """
        task, operator, dual = self.task, self.task.operator, self.point.dual
        self._find_slack(iterate)
        self._imbalance = task.imbalance(dual) if task.fixed_intercept is None else 0.0
        if operator.foresees and foresees:
            operator.foresee(self._make_active_set(iterate))
        self._residual, squared = self._find_residual(task.target(dual), iterate.w)
        if self._known_at != iterate.n_iter:
            # Else the multiplier has moved, and nothing but that.
            self._loss = task.loss.value(self.slack)
            iterate.objective = 0.5 * operator.inner(iterate.w, iterate.w) + self._loss
            self._known_at = iterate.n_iter
        conjugate = task.loss.conjugate_at(self.point)
        product, moved = add_up(dual, self.slack, self.multiplier, self._mass)
        iterate.gap = 0.5 * squared + self._loss + conjugate - product
        iterate.slack, iterate.dual = self.slack, dual
        if dual.size >= MANY_SAMPLES:
            self.slack = self._trial.dual = _NOTHING
            if self._residual.weight.size > 0:
                self._residual.coef = _NOTHING
        return squared, self._imbalance, math.sqrt(moved / iterate.penalty)

    def take_dual(self) -> FloatArray:
        """The dual point, which is to be the next multiplier; :meth:`begin` follows.

        With the new multiplier the dual point at the same w overshoots by as much as it has moved,
        and many samples seem to come and go. With a kernel matrix the first step goes by the
        partition at hand: 225 fits of 300 samples took 4 % fewer steps from a cold start, 6 %
        from a known solution. Linear models with more samples than features took more.
        """
        if self.task.operator.is_gram and not self.task.loss.is_curved:
            found = split_samples(self.task, self.point)
            if found.samples.size > 0:
                self._last_partition = found._replace(shrink=found.shrink.copy())
        self.multiplier, self.point.dual = self.point.dual, self.multiplier
        return self.multiplier

    def go_along(self, iterate: Iterate, w: Vector, intercept: float) -> bool:
        """Move along a given direction; False where it does not descend."""
        iterate.slack = _NOTHING
        direction = _direction(self.task, self._residual, self._imbalance, w, intercept)
        return self.advance(iterate, direction)

    def find_direction(self, iterate: Iterate) -> _Direction:
        """The Newton step, not taken yet."""
        residual = self._residual
        # With many samples the memory of a step counts afterwards.
        del self._residual
        iterate.slack = _NOTHING
        if residual.coef.size == 0:
            residual.coef = self.task.target(self.point.dual)
            residual.coef -= iterate.w.coef
        active = self._make_active_set(iterate)
        self._last_partition = None
        return _newton_direction(self.task, iterate, active, residual)

    def foresee_whole_step(
        self, iterate: Iterate, direction: _Direction, squared: float, below: float
    ) -> Iterate | None:
        """Where the whole step leads, if its coefficients may prove a relative gap of `below`.

        The system is solved for pieces of the loss that a step may leave, and the line search
        shortens it then. If they are those of the optimum all the same, the whole step leads there
        at once. `squared` is the squared norm of the residual.
        """
        task, w, step = self.task, iterate.w, direction.w
        allowed = below * max(1.0, abs(iterate.objective))
        is_near = direction.slope < 0.0 and 0.5 * squared <= NEAR_ENOUGH * allowed
        is_plain = task.linear is None and task.fixed_intercept is None and not task.loss.is_curved
        # Of many samples, and of those elsewhere, not all of that is at hand.
        is_whole = step.coef.size == step.scores.size == task.y.size < MANY_SAMPLES
        if not (is_near and is_plain and is_whole):
            return None
        whole = w.copy()
        whole.move(1.0, step)
        intercept = iterate.intercept + direction.intercept
        slack = task.margin - task.y * whole.scores - task.y * intercept
        half = 0.5 * task.operator.inner(whole, whole)
        objective = half + task.loss.value(slack)
        coef = task.dual_of(whole)
        gap = objective + half - float(np.sum(task.margin * coef))
        if not gap <= allowed:
            return None
        # The dual is concave: its tangent is above it where the coefficients are feasible.
        task.loss.project(coef if self._mass is NO_MASS else coef / self._mass, self._trial)
        gap -= float(slack @ (self._trial.dual - coef))
        if not gap <= allowed:
            return None
        return replace(
            iterate,
            w=whole,
            intercept=intercept,
            dual=self._trial.dual.copy(),
            slack=slack,
            objective=objective,
            gap=gap,
            n_iter=iterate.n_iter + 1,
            is_whole_step=True,
        )

    def _make_active_set(self, iterate: Iterate) -> ActiveSet:
        """For the next step."""
        partition = self._last_partition or split_samples(self.task, self.point)
        return make_active_set(self.task, iterate, partition, self._imbalance)

    def _evaluate(self, step: float, iterate: Iterate, direction: _Direction) -> None:
        """Leave the trial point at a step along a direction."""
        task = self.task
        self._make_room()
        shift_point(
            task.margin,
            iterate.w.scores,
            direction.w.scores,
            task.y,
            iterate.intercept,
            direction.intercept,
            step,
            self._density,
            1.0 / iterate.penalty,
            self.slack if self._keeps_slack else self._v,
            self._v,
        )
        task.loss.prox(self._v, iterate.penalty, self._trial)

    def _slope(self, step: float, iterate: Iterate, direction: _Direction) -> float:
        """Derivative at a step; as its change from the beginning, which rounding spares."""
        self._evaluate(step, iterate, direction)
        change = change_along(
            self._trial.dual,
            self.point.dual,
            direction.w.scores,
            self.task.y,
            direction.intercept,
        )
        return direction.slope + step * direction.squared_norm - change

    def advance(self, iterate: Iterate, direction: _Direction) -> bool:
        """Move along a direction to where its slope has nearly vanished.

        False where it does not descend.
        """
        if not direction.slope < 0.0:
            return False
        step = self._line_search(iterate, direction)
        iterate.w.move(step, direction.w)
        iterate.intercept += step * direction.intercept
        iterate.n_iter += 1
        self.point, self._trial = self._trial, self.point
        return True

    def _line_search(self, iterate: Iterate, direction: _Direction) -> float:
        tuning = self.task.tuning
        limited = abs(direction.intercept) >= MAX_INTERCEPT_STEP
        goal = tuning.slope_share * abs(direction.slope)
        longer = tuning.still_falling * direction.slope
        goes_on, state = True, begin_search(direction.slope, limited)
        while goes_on:
            slope = self._slope(state[0], iterate, direction)
            goes_on, state = next_step(state, slope, goal, longer)
        return state[0]


def _direction(
    task: ConvexTask, residual: Vector, imbalance: float, w: Vector, intercept: float
) -> _Direction:
    """The slope along (w, intercept) is ``-<residual, w> - imbalance * intercept``."""
    slope = -task.operator.inner(residual, w) - imbalance * intercept
    return _Direction(w, intercept, slope, task.operator.inner(w, w))


def is_first(iterate: Iterate) -> bool:
    """Whether nothing has been done yet: w = 0, which every sample ties at."""
    return iterate.n_iter == 0 and not iterate.w.scores.any()


def class_means(task: ConvexTask) -> Vector:
    """The difference of the class means: a cheap first step, and it breaks the ties of w = 0."""
    mass = np.ones(task.y.size) if task.loss.mass is None else task.loss.mass
    positive = task.y > 0
    totals = np.where(positive, mass[positive].sum(), mass[~positive].sum())
    return task.operator.vector(task.y * task.loss.mean_cost * mass * (totals.min() / totals))


def _newton_direction(
    task: ConvexTask, iterate: Iterate, active: ActiveSet, residual: Vector
) -> _Direction:
    """The Newton step of the augmented Lagrangian at the iterate."""
    imbalance = active.imbalance
    iterate.n_active = iterate.n_solved = active.samples.size
    if iterate.n_active == 0:
        task.operator.complete(residual)
        # The augmented Lagrangian is linear in b here: move, the line search knows how far.
        intercept = float(np.sign(imbalance)) * MAX_INTERCEPT_STEP if active.free else 0.0
        return _direction(task, residual, imbalance, residual, intercept)
    step, intercept = task.operator.newton_step(residual, active)
    return _direction(task, residual, imbalance, step, intercept)


def iterates(
    task: ConvexTask, iterate: Iterate, whole_below: Callable[[], float] | None = None
) -> Iterator[Iterate]:
    """The method, step by step, without end: the caller decides when an iterate will do.

    Yields the same object, updated, before every Newton step; its ``dual`` is valid until the next
    one. The first iterate yielded is the start. Where `whole_below` is given, yields whole steps
    in between that may prove that relative gap; their arrays are their own.
    """
    tuning = task.tuning
    shares = tuning.inner_share, tuning.last_share, tuning.patience
    inner = Inner(task)
    last_gap = np.inf
    first = is_first(iterate)
    while True:
        inner.begin(iterate)
        steps = 0
        stuck = False
        while True:
            squared, imbalance, movement = inner.look(iterate, foresees=not first)
            yield iterate
            where = squared, imbalance, movement, iterate.penalty, iterate.gap
            share = choose_share(iterate.n_iter, *shares)
            ends = ends_inner_loop(steps, *where, share, tuning.solved_share)
            if ends or steps >= tuning.max_inner_steps:
                break
            if first:
                first = False
                if inner.go_along(iterate, class_means(task), 0.0):
                    continue
            direction = inner.find_direction(iterate)
            if whole_below is not None:
                whole = inner.foresee_whole_step(iterate, direction, squared, whole_below())
                if whole is not None:
                    yield whole
            stuck = not inner.advance(iterate, direction)
            # With many samples every vector counts while somebody looks.
            del direction
            if stuck:
                # Rounding has eaten the descent; a smaller penalty gives digits back.
                break
            steps += 1
        if steps == 0:
            # A move of the multiplier alone counts too, or a caller's limit might never be met.
            iterate.n_iter += 1
        iterate.dual = inner.take_dual()
        gap_ratio = iterate.gap / max(last_gap, 1e-300)
        # alpha = a + penalty * u carries the rounding of u times the penalty.
        stuck = stuck or iterate.gap <= ROUNDING * max(1.0, iterate.objective)
        growth = choose_growth(
            steps >= tuning.max_inner_steps or stuck,
            steps,
            gap_ratio,
            tuning.growths,
            tuning.fast_round,
            tuning.shrink,
            tuning.late_growth if iterate.n_iter > tuning.patience else np.inf,
        )
        iterate.penalty = max(min(iterate.penalty * growth, task.max_penalty), task.first_penalty)
        last_gap = iterate.gap


def minimise(
    task: ConvexTask, start: Iterate, accuracy: float, max_iter: int, clock: Clock
) -> Iterate:
    """The iterate whose estimated gap is below `accuracy`, relative to its objective.

    What the gap hides, an imbalance of the multiplier, has to be as small.

    For callers that judge the outcome in their own way. The iterate owns its arrays. When the
    limit is met first it is the best of those seen, up to a factor in the gap.
    """
    best: Iterate | None = None
    # A problem with a linear term can have its minimum at infinity, where numbers overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        for current in iterates(task, start):
            small = accuracy * max(1.0, abs(current.objective))
            if current.gap <= small and _bound_hidden_gain(task, current) <= small:
                return _snapshot(current)
            if best is None or current.gap <= _WORTH_A_COPY * best.gap:
                best = _snapshot(current)
            escaped = not abs(current.intercept) + current.objective < _ESCAPED
            if current.n_iter >= max_iter or escaped or clock.expired:
                break
    return start if best is None else best


def _bound_hidden_gain(task: ConvexTask, iterate: Iterate) -> float:
    """What a free intercept could still gain, within a unit or its own size."""
    if task.fixed_intercept is not None:
        return 0.0
    return abs(task.imbalance(iterate.dual)) * max(1.0, abs(iterate.intercept))


def _snapshot(iterate: Iterate) -> Iterate:
    """A copy that further steps leave alone."""
    return replace(
        iterate, w=iterate.w.copy(), dual=iterate.dual.copy(), slack=iterate.slack.copy()
    )
