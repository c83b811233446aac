r"""Local solutions for general weights, with a global bound from a convex minorant.

Upper bounds. Write the costs as ``c = p + r``, p the rises added up, r non-increasing. ``Phi_r``
is concave, and at any ranking of the samples it lies below the weighted sum that hands out r by
that ranking, so

.. math:: F(w', b') \le \tfrac12 |w'|^2 + \Phi_p(\xi') + \sum_i r_{\text{rank}(i)} \xi'_i

with equality at the (w, b) the ranks come from. Minimising the right-hand side, a convex OWA-SVM
with one more hinge per sample, and ranking again never raises F. Where r is negative the hinge is
replaced by its tangent. This is the convex-concave procedure (DCA) with the hinges kept whole.

Lower bounds. ``Phi_m <= Phi_c`` for every non-decreasing m whose tail sums stay below those of c
(:mod:`owasvm.rank_split`), so the optimum of each such convex problem is a bound. The best m is
one side of a saddle point: given a solution, the m that charges it the most; given m, the
solution.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import charged_bound, judge, objective
from owasvm.intercept import spread_intercepts
from owasvm.losses import OffsetHinge
from owasvm.problem import OWAProblem, PlainCosts
from owasvm.rank_split import best_minorant, pointwise_minorant, rising_part
from owasvm.rounding import accumulated
from owasvm.samples import Memory, Operator, Vector
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers import newton
from owasvm.solvers._clock import Clock
from owasvm.solvers._interrupts import note_interrupt
from owasvm.solvers.contract import Settings, Solver

FloatArray = NDArray[np.float64]

logger = logging.getLogger(__name__)

# Relative accuracy of the convex steps, and the decrease below which descent ends.
_STEP_ACCURACY = 1e-8
_WORTH_A_STEP = 1e-8
_MAX_DESCENT = 100
_MAX_NEWTON = 500
# Intercepts tried along one direction w.
_N_INTERCEPTS = 48
# Minorants tried by the local solver beyond the first, and the gain that is worth another.
_MINORANTS = 1
_WORTH_A_MINORANT = 1e-3
_LINE_POINTS = 41
# Noise on coefficients, relative to the largest.
_NOISE = (0.1, 0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A classifier and its objective."""

    coef: FloatArray
    intercept: float
    objective: float
    deviations: FloatArray


def evaluate(problem: OWAProblem, coef: FloatArray, intercept: float) -> Candidate:
    """Objective of a classifier."""
    scores = problem.scores(coef)
    squared_norm = max(float((problem.y * coef) @ scores), 0.0)
    value, deviations = objective(problem, squared_norm, scores, intercept)
    return Candidate(coef, intercept, value, deviations)


def better_intercept(problem: OWAProblem, candidate: Candidate) -> Candidate:
    """The same direction with the best of a few dozen intercepts.

    Along b the objective is piecewise linear and can have several minima. Kinks of the hinges,
    spread evenly, show where the deep ones are.
    """
    y = problem.y
    scores = problem.scores(candidate.coef)
    intercepts = spread_intercepts(scores, y, _N_INTERCEPTS)
    deviations = np.maximum(0.0, 1.0 - y[:, np.newaxis] * (scores[:, np.newaxis] + intercepts))
    ranked = np.sort(deviations, axis=0)
    losses = problem.costs.by_rank() @ ranked
    best = evaluate(problem, candidate.coef, float(intercepts[np.argmin(losses)]))
    return best if best.objective < candidate.objective else candidate


def descend(
    problem: OWAProblem, operator: Operator, start: Candidate, clock: Clock
) -> Iterator[Candidate]:
    """Classifiers of falling objective from a start on; the start itself is not among them."""
    costs = problem.costs.by_rank()
    y = problem.y
    memory = Memory()
    rising = rising_part(costs)
    falling = costs - rising
    current = start
    iterate: newton.Iterate | None = None
    for _ in range(_MAX_DESCENT):
        offsets = np.empty(y.size)
        offsets[np.argsort(current.deviations, kind="stable")] = falling
        tangents = np.where(current.deviations > 0.0, np.maximum(-offsets, 0.0), 0.0)
        task = newton.ConvexTask(
            operator,
            y,
            OffsetHinge(rising, np.maximum(offsets, 0.0)),
            np.ones(y.size),
            tangents if tangents.any() else None,
            memory=memory,
        )
        iterate = _convex_step(task, operator, current, iterate, clock)
        shift = 0.0 if task.linear is None else task.linear
        coef = newton.project_balanced(task, task.dual_of(iterate.w)) - shift
        step = evaluate(problem, coef, iterate.intercept - operator.intercept_shift(y * coef))
        if not step.objective < current.objective - _WORTH_A_STEP * abs(current.objective):
            if step.objective < current.objective:
                yield step
            return
        current = step
        yield current


def _convex_step(
    task: newton.ConvexTask,
    operator: Operator,
    current: Candidate,
    known: newton.Iterate | None,
    clock: Clock,
) -> newton.Iterate:
    """Minimise a majorant, from where the last one ended."""
    if known is None:
        iterate = newton.Iterate(
            w=operator.vector(task.y * current.coef),
            intercept=current.intercept + operator.intercept_shift(task.y * current.coef),
            dual=np.maximum(current.coef, 0.0),
            penalty=task.first_penalty,
        )
    else:
        penalty = min(max(0.1 * known.penalty, task.first_penalty), task.max_penalty)
        iterate = newton.Iterate(
            w=Vector(known.w.coef, known.w.scores, known.w.weight),
            intercept=known.intercept,
            dual=known.dual,
            penalty=penalty,
        )
    return newton.minimise(task, iterate, _STEP_ACCURACY, _MAX_NEWTON, clock)


def descended(
    problem: OWAProblem, operator: Operator, start: Candidate, clock: Clock
) -> Candidate:
    """Where descent from a start ends."""
    best = start
    for candidate in descend(problem, operator, start, clock):
        best = candidate
        if clock.expired:
            break
    return best


def shaken(
    problem: OWAProblem, operator: Operator, best: Candidate, n_trials: int, clock: Clock
) -> Candidate:
    """The best end of descents from a classifier with noise on its coefficients.

    A better one takes its place at once. The noise is the same at every call.
    """
    rng = np.random.default_rng(0)
    for _ in range(n_trials):
        if clock.expired:
            break
        scale = float(rng.choice(_NOISE)) * max(float(np.abs(best.coef).max()), 1e-3)
        coef = best.coef + scale * rng.normal(size=best.coef.size)
        start = better_intercept(problem, evaluate(problem, coef, best.intercept))
        found = descended(problem, operator, start, clock)
        if found.objective < best.objective:
            best = found
    return best


@dataclass(frozen=True, eq=False)
class ConvexBound:
    """A convex problem below ours, solved."""

    minorant: FloatArray
    solution: Solution
    candidate: Candidate


class MinorantSearch:
    """Convex problems below a general one, each better than the last.

    Parameters
    ----------
    problem : OWAProblem
        A problem without sample weights.
    operator : Operator
        Its data, prepared.
    settings : Settings
        Tolerance and limits.
    """

    def __init__(self, problem: OWAProblem, operator: Operator, clock: Clock) -> None:
        self._problem = problem
        self.operator = operator
        self._clock = clock
        self._costs = problem.costs.by_rank()
        self._cuts: list[tuple[float, FloatArray]] = []
        self.n_iter = 0
        self.bounds = [self._solve(pointwise_minorant(self._costs), clock.settings.warm_start)]

    @property
    def bound(self) -> float:
        """The largest lower bound so far."""
        return self.best.solution.lower_bound

    @property
    def best(self) -> ConvexBound:
        """The problem with the largest optimum so far."""
        return max(self.bounds, key=lambda bound: bound.solution.lower_bound)

    def _solve(self, minorant: FloatArray, known: Solution | None) -> ConvexBound:
        problem, settings = self._problem, self._clock.settings
        # The sums below which a minorant has to stay are rounded.
        minorant = (1.0 - accumulated(4 * minorant.size)) * minorant
        if minorant[-1] <= 0.0:
            # Nothing is left below the costs: a classical SVM for a start, and no bound.
            mean = float(self._costs.mean())
            replaced = self._below(np.full(self._costs.size, mean))
        else:
            replaced = self._below(minorant)
        solution = newton.solve(
            replaced,
            replace(
                settings,
                time_limit=self._clock.remaining,
                warm_start=known,
                callback=None,
            ),
        )
        self.n_iter += solution.n_iter
        candidate = evaluate(problem, solution.dual, solution.intercept)
        if minorant[-1] <= 0.0:
            # What was solved does not lie below ours: nothing of it but the start may be used.
            solution = replace(solution, dual=np.zeros(problem.n_samples), lower_bound=0.0)
        half_norm = candidate.objective - float(self._costs @ np.sort(candidate.deviations))
        self._cuts.append((half_norm, np.sort(candidate.deviations)))
        return ConvexBound(minorant, solution, candidate)

    def _below(self, costs: FloatArray) -> OWAProblem:
        problem = self._problem
        return problem.with_costs(PlainCosts(costs))

    def improve(self) -> bool:
        """Solve one more convex problem; False when there is none worth it."""
        last = self.bounds[-1]
        deviations = np.sort(last.candidate.deviations)
        current = self.best.minorant
        response = best_minorant(self._costs, deviations)
        gain = float((response - current) @ deviations)
        if gain <= 0.1 * self._clock.settings.tol * max(1.0, last.solution.objective):
            return False
        shares = np.linspace(0.0, 1.0, _LINE_POINTS)[1:]
        # Every solution so far bounds, for all minorants at once, how much can be gained.
        models = [
            half_norm + current @ cut + shares * float((response - current) @ cut)
            for half_norm, cut in self._cuts
        ]
        model = np.min(models, axis=0)
        share = float(shares[int(np.argmax(model))])
        bound = self._solve((1.0 - share) * current + share * response, last.solution)
        before = self.best.solution.lower_bound
        self.bounds.append(bound)
        after = bound.solution.lower_bound
        return after > before + _WORTH_A_MINORANT * max(last.candidate.objective - before, 0.0)


def first_candidates(problem: OWAProblem, bounds: list[ConvexBound]) -> list[Candidate]:
    """Starts for descent, the most promising first."""
    nothing = np.zeros(problem.n_samples)
    starts = [better_intercept(problem, bound.candidate) for bound in bounds]
    starts += [evaluate(problem, nothing, 1.0), evaluate(problem, nothing, -1.0)]
    return sorted(starts, key=lambda start: start.objective)


def finished(
    problem: OWAProblem,
    best: Candidate,
    lower_bound: float,
    stopped: Status,
    solver: str,
    n_iter: int,
    clock: Clock,
    details: dict[str, float],
) -> Solution:
    """The solution of a candidate, its objective and bound taken from the judge.

    `lower_bound` is what the solver proved about the optimum, rounding accounted for; what the
    objective itself can be off by comes off it, too.
    """
    target = clock.settings.mip_gap
    verdict = judge(problem, best.coef, best.intercept, tol=target)
    lower_bound = charged_bound(lower_bound, verdict.objective_rounding, verdict.objective)
    if not problem.is_definite:
        lower_bound = -np.inf
    elif np.isfinite(lower_bound):
        lower_bound = max(lower_bound, verdict.lower_bound)
    status = stopped
    rounded = verdict.objective_rounding > target * max(1.0, abs(verdict.objective))
    # Also if the objective is off by all that rounding allows.
    if relative_gap(verdict.objective + verdict.objective_rounding, lower_bound) <= target:
        status = Status.OPTIMAL
    elif stopped is Status.OPTIMAL or (stopped is Status.NODE_LIMIT and rounded):
        # The search was done, but for what rounding takes from its proof.
        status = Status.ROUNDING_LIMIT
    return Solution(
        dual=verdict.dual,
        intercept=verdict.intercept,
        objective=verdict.objective,
        lower_bound=lower_bound,
        status=status,
        solver=solver,
        n_iter=n_iter,
        coef=verdict.weight,
        solve_time=clock.elapsed,
        details=details,
    )


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Find a local solution for any weights, with a bound on the global optimum.

    ``status`` is "optimal" when the bound proves the solution to ``settings.mip_gap``, and else
    "local". The callback receives ``n_iter`` (descent steps), ``objective``, ``lower_bound``,
    ``gap`` and ``time``.
    """
    if problem.costs.convex:
        return replace(newton.solve(problem, settings), solver="dca")
    if problem.costs.sample_weight is not None:
        return solve_with_copies(problem, settings, solve)
    clock = Clock.start(settings)
    operator = problem.samples.operator()
    search = MinorantSearch(problem, operator, clock)
    best = search.best.candidate
    stopped = Status.LOCAL
    n_steps = 0
    try:
        for _ in range(_MINORANTS):
            if clock.expired or not search.improve():
                break
        best = first_candidates(problem, search.bounds)[0]
        for step in descend(problem, operator, best, clock):
            best = step
            n_steps += 1
            if clock.expired:
                break
            if not report(settings, n_steps, best.objective, search.bound, clock):
                stopped = Status.INTERRUPTED
                break
    except (KeyboardInterrupt, SystemError) as error:
        note_interrupt(error)
    if stopped is Status.LOCAL and clock.expired:
        stopped = clock.reason
    return finished(
        problem,
        best,
        search.bound,
        stopped,
        "dca",
        n_steps,
        clock,
        {"newton_steps": search.n_iter},
    )


def report(settings: Settings, n_iter: int, upper: float, lower: float, clock: Clock) -> bool:
    """Tell the log and the callback; False when the callback wants to stop."""
    gap = relative_gap(upper, lower)
    logger.debug(
        "%6d  objective %.10g  lower bound %.10g  gap %.2e  %.2f s",
        n_iter,
        upper,
        lower,
        gap,
        clock.elapsed,
    )
    if settings.callback is None:
        return True
    info = {
        "n_iter": n_iter,
        "objective": upper,
        "lower_bound": lower,
        "gap": gap,
        "time": clock.elapsed,
    }
    return settings.callback(info) is not False


def solve_with_copies(
    problem: OWAProblem,
    settings: Settings,
    solver: Callable[[OWAProblem, Settings], Solution],
) -> Solution:
    """Solve a problem with sample weights by writing the copies out."""
    copied, index = problem.with_copies()
    solution = solver(copied, replace(settings, warm_start=None))
    dual = np.zeros(problem.n_samples)
    np.add.at(dual, index, solution.dual)
    return replace(solution, dual=dual)


SOLVER = Solver(solve, compiles=True, convex_losses=("*",))
