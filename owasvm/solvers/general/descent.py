r"""Descent by convex problems above ours.

Write the costs as ``c = p + r``, p the rises added up, r non-increasing. ``Phi_r`` is concave, and
at any ranking of the samples it lies below the weighted sum that hands out r by that ranking, so

.. math:: F(w', b') \le \tfrac12 |w'|^2 + \Phi_p(\xi') + \sum_i r_{\text{rank}(i)} \xi'_i

with equality at the (w, b) the ranks come from. Minimising the right-hand side, a convex OWA-SVM
with one more hinge per sample, and ranking again never raises F. Where r is negative the hinge is
replaced by its tangent. This is the convex-concave procedure (DCA) with the hinges kept whole.
Groups that are ranked apart are split and ranked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from owasvm.grouping import parts_of
from owasvm.losses import GroupedLoss, OffsetHinge
from owasvm.solvers import newton
from owasvm.solvers.general.candidates import Candidate, evaluate, improve_intercept
from owasvm.solvers.general.convex import minimise, resume, start_at
from owasvm.solvers.general.search import Search
from owasvm.solvers.newton import project_balanced

FloatArray = NDArray[np.float64]


def find_starts(search: Search) -> list[Candidate]:
    """Where descent can start, the most promising first."""
    problem, number = search.problem, search.tuning.descent.n_intercepts
    nothing = np.zeros(problem.n_samples)
    starts = [
        improve_intercept(problem, bound.candidate, number) for bound in search.minorants.solved
    ]
    starts += [evaluate(problem, nothing, 1.0), evaluate(problem, nothing, -1.0)]
    return sorted(starts, key=lambda start: start.objective)


def descend(search: Search, start: Candidate) -> Iterator[Candidate]:
    """Classifiers of falling objective from a start on; the start itself is not among them."""
    problem, operator, tuning = search.problem, search.operator, search.tuning.descent
    current = start
    iterate: newton.Iterate | None = None
    for _ in range(tuning.max_steps):
        task = _majorise(search, current)
        if iterate is None:
            iterate = start_at(task, current.coef, current.intercept)
        else:
            iterate = resume(search, task, iterate)
        iterate = minimise(search, task, iterate, tuning.accuracy)
        shift = 0.0 if task.linear is None else task.linear
        coef = project_balanced(task, task.dual_of(iterate.w)) - shift
        intercept = iterate.intercept - operator.intercept_shift(problem.y * coef)
        step = evaluate(problem, coef, intercept)
        if not step.objective < current.objective:
            return
        yield step
        if not step.objective < current.objective - tuning.worth * abs(current.objective):
            return
        current = step


def _majorise(search: Search, current: Candidate) -> newton.ConvexTask:
    """The convex problem above ours that touches at a classifier."""
    y = search.problem.y
    paid, got = np.empty(y.size), np.empty(y.size)
    groups, losses = [], []
    for group, part in parts_of(search.problem.costs):
        order = np.argsort(current.deviations[group], kind="stable")
        ranked = group[order]
        paid[ranked], got[ranked] = part.falling_in_order(order)
        groups.append(group)
        losses.append(OffsetHinge(part.rising(), paid[group]))
    tangents = np.where(current.deviations > 0.0, got, 0.0)
    return newton.ConvexTask(
        search.operator,
        y,
        losses[0] if len(losses) == 1 else GroupedLoss(groups, losses),
        np.ones(y.size),
        tangents if tangents.any() else None,
        memory=search.memory,
    )


def descend_to_end(search: Search, start: Candidate) -> Candidate:
    """Where descent from a start ends."""
    best = start
    for candidate in descend(search, start):
        best = candidate
        if search.clock.expired:
            break
    return best


def propose(search: Search, candidate: Candidate) -> None:
    """Take a classifier for incumbent if it is better, after descent if that is worth it."""
    upper = search.incumbent.objective
    if candidate.objective < upper - search.tuning.descent.worth * max(1.0, abs(upper)):
        candidate = descend_to_end(search, candidate)
    search.accept(candidate)


def shake(search: Search, n_trials: int) -> None:
    """Descend from the incumbent with noise on its coefficients, again and again.

    A better classifier takes its place at once.
    """
    tuning, random = search.tuning.descent, search.random
    for _ in range(n_trials):
        if search.clock.expired:
            break
        best = search.incumbent
        # Where w = 0 is best there is no scale to take.
        scale = float(random.choice(tuning.noise)) * max(float(np.abs(best.coef).max()), 1e-3)
        coef = best.coef + scale * random.normal(size=best.coef.size)
        start = evaluate(search.problem, coef, best.intercept)
        start = improve_intercept(search.problem, start, tuning.n_intercepts)
        search.accept(descend_to_end(search, start))
