"""What the convex models share: from a cvxpy formulation to a judged solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import Certificate, judge
from owasvm.models.backends import BackendError, cvxpy_
from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.solvers.contract import Settings, Solver

FloatArray = NDArray[np.float64]

# The gap of the repaired point is larger than the solver's own residuals, so it gets tighter ones
# than asked for. Where it stalls, other settings or a looser try can end closer: share of the
# tolerance, and whether to use the settings for a second try.
_ATTEMPTS = ((0.01, False), (0.01, True), (1.0, True), (1.0, False))


@dataclass(frozen=True, eq=False)
class Formulation:
    """A model written down in cvxpy.

    Parameters
    ----------
    model : cvxpy.Problem
        The problem itself.
    variables : mapping of str to cvxpy.Variable
        The variables, by the paper's names.
    constraints : mapping of str to cvxpy constraint
        The constraints, by the paper's labels.
    dual : callable
        Reads the coefficients alpha off a solved model.
    intercept : callable
        Reads a first guess of b off a solved model, None when it has none.
    details : callable
        What the model wants to add to the solution.
    """

    model: Any
    variables: Mapping[str, Any]
    constraints: Mapping[str, Any]
    dual: Callable[[], FloatArray]
    intercept: Callable[[], float | None]
    details: Callable[[Certificate], Mapping[str, Any]] = field(default=lambda _: {})


@dataclass(frozen=True)
class Options:
    """Options of the convex models.

    Parameters
    ----------
    backend : str or None, default=None
        Keyword of a continuous back-end, None for Clarabel.
    backend_options : mapping or None, default=None
        Settings of the back-end in its own words.
    """

    backend: str | None = None
    backend_options: Mapping[str, Any] | None = None


def as_solver(name: str, build: Callable[[OWAProblem], Formulation]) -> Solver:
    """A convex model as a solver.

    The back-ends keep their own iteration limits, take no start and report no progress, so
    `max_iter`, `warm_start` and `callback` have no effect.
    """

    def solve(problem: OWAProblem, settings: Settings) -> Solution:
        options: Options = settings.options
        return solve_formulation(
            problem,
            build,
            name,
            backend=options.backend,
            time_limit=settings.time_limit,
            tol=settings.tol,
            verbose=settings.verbose,
            options=options.backend_options,
        )

    return Solver(solve, Options, needs_convex=True, takes_sample_weight=False)


def solve_formulation(
    problem: OWAProblem,
    build: Callable[[OWAProblem], Formulation],
    name: str,
    *,
    backend: str | None,
    time_limit: float | None,
    tol: float,
    verbose: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Build, solve, judge; solve again with other tolerances while the gap is above `tol`."""
    start = perf_counter()
    formulation = build(problem)
    build_time = perf_counter() - start
    best = judge(problem, np.zeros(problem.n_samples))
    details: dict[str, Any] = {"backend": backend or "clarabel", "attempts": []}
    n_iter, n_failed = 0, 0
    limited = False
    for share, again in _ATTEMPTS:
        left = None if time_limit is None else time_limit - (perf_counter() - start)
        if left is not None and left <= 0.0:
            limited = True
            break
        try:
            result = cvxpy_.solve(
                formulation.model,
                backend=backend,
                tol=max(share * tol, 1e-13),
                again=again,
                time_limit=left,
                verbose=verbose,
                options=dict(options or {}),
            )
        except BackendError as error:
            details["attempts"].append(str(error))
            n_failed += 1
            continue
        n_iter += result.n_iter
        details["attempts"].append(result.message)
        if result.has_point:
            found = judge(problem, formulation.dual(), formulation.intercept())
            if found.gap <= best.gap:
                best = found
                details.update(formulation.details(found))
        if best.gap <= tol:
            break
        if result.limited and time_limit is not None:
            limited = True
            break
    if n_failed == len(_ATTEMPTS):
        raise BackendError(f"{name}: {details['attempts'][0]}")
    reached = best.gap <= tol
    status = Status.TIME_LIMIT if limited else Status.ITERATION_LIMIT
    return Solution(
        dual=best.dual,
        intercept=best.intercept,
        objective=best.objective,
        lower_bound=best.lower_bound,
        status=Status.OPTIMAL if reached else status,
        solver=name,
        n_iter=n_iter,
        coef=best.weight,
        build_time=build_time,
        solve_time=perf_counter() - start - build_time,
        details=details,
    )
