"""What the convex models share: from a cvxpy formulation to a judged solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import Certificate, judge
from owasvm.models.backends import BackendError, choose_backend, cvxpy_
from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.solvers.contract import Settings, Solver

__all__ = ["Formulation", "Options", "as_solver", "solve_model"]

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


Build = Callable[[OWAProblem], Formulation]


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

    def __post_init__(self) -> None:
        choose_backend(self.backend, "continuous")


def as_solver(name: str, build: Build) -> Solver:
    """A convex model as a solver.

    The back-ends keep their own iteration limits, take no start and report no progress, so
    `max_iter`, `warm_start` and `callback` have no effect.
    """

    def solve(problem: OWAProblem, settings: Settings) -> Solution:
        return _solve(problem, name, build, settings)

    return Solver(solve, Options, needs_convex=True, takes_sample_weight=False, needs_gram=True)


def solve_model(
    problem: OWAProblem,
    name: str,
    build: Build,
    *,
    tol: float = 1e-8,
    time_limit: float | None = None,
    verbose: int = 0,
    **options: Any,
) -> Solution:
    """Solve a convex model; the answer is judged by its own dual point.

    Parameters
    ----------
    problem : OWAProblem
        With non-decreasing weights, ``weights[k]`` for the k-th smallest deviation.
    name : str
        What the solution calls the model.
    build : callable
        Writes the model down: ``build(problem) -> Formulation``.
    tol : float, default=1e-8
        Relative duality gap to reach.
    time_limit : float or None, default=None
        Seconds; at the limit the best point so far is returned with ``Status.TIME_LIMIT``.
    verbose : int, default=0
        From 2 on the back-end writes its log.
    **options
        Fields of :class:`Options`: ``backend`` and ``backend_options``.

    Returns
    -------
    solution : Solution
        Its ``status`` is ``Status.BACKEND_LIMIT`` when the back-end ended by itself with a larger
        gap; what it said is in ``details["attempts"]``.
    """
    settings = Settings(
        tol=tol, time_limit=time_limit, verbose=verbose, options=Options(**options)
    )
    return _solve(problem, name, build, settings)


def _solve(problem: OWAProblem, name: str, build: Build, settings: Settings) -> Solution:
    """Build, solve, judge; solve again with other tolerances while the gap is too large."""
    start = perf_counter()
    formulation = build(problem)
    build_time = perf_counter() - start
    options: Options = settings.options
    best = judge(problem, np.zeros(problem.n_samples))
    attempts: list[str] = []
    details: dict[str, Any] = {"backend": options.backend or "clarabel", "attempts": attempts}
    n_iter, n_failed = 0, 0
    status = Status.BACKEND_LIMIT
    for share, again in _ATTEMPTS:
        left = None
        if settings.time_limit is not None:
            left = settings.time_limit - (perf_counter() - start)
            if left <= 0.0:
                status = Status.TIME_LIMIT
                break
        try:
            result = cvxpy_.solve(
                formulation.model,
                backend=options.backend,
                tol=max(share * settings.tol, 1e-13),
                again=again,
                time_limit=left,
                verbose=settings.verbose,
                options=options.backend_options,
            )
        except BackendError as error:
            attempts.append(str(error))
            n_failed += 1
            continue
        n_iter += result.n_iter
        attempts.append(result.message)
        if result.has_point:
            found = judge(problem, formulation.dual(), formulation.intercept(), tol=settings.tol)
            if found.gap <= best.gap:
                best = found
                details.update(formulation.details(found))
        if best.worst_gap <= settings.tol:
            status = Status.OPTIMAL
            break
    if n_failed == len(_ATTEMPTS):
        raise BackendError(f"{name}: {attempts[0]}")
    if status is Status.BACKEND_LIMIT and best.is_limited(settings.tol):
        status = Status.ROUNDING_LIMIT
    return best.as_solution(
        status,
        name,
        n_iter=n_iter,
        build_time=build_time,
        solve_time=perf_counter() - start - build_time,
        details=details,
    )
