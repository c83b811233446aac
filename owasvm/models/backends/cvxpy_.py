"""Continuous models through cvxpy: Clarabel by default, any other solver it knows by name.

A model states its problem in cvxpy; this file picks the solver, translates tolerance and time
limit into its words, and turns its endings into three: solved (well or not so well, the caller
judges), stopped by a limit, or failed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from owasvm.models.backends import BackendError, MissingBackendError, chosen

Settings = dict[str, Any]

_MAX_ITERATIONS = 500
_MAX_FIRST_ORDER_ITERATIONS = 200_000


def import_cvxpy() -> Any:
    """cvxpy, or one line that says what to install."""
    try:
        import cvxpy
    except ImportError as error:
        raise MissingBackendError(
            "The paper's models need cvxpy, which is not installed: pip install 'owasvm[models]'"
        ) from error
    return cvxpy


def _clarabel(tol: float, time_limit: float | None) -> Settings:
    settings: Settings = {
        "tol_gap_abs": tol,
        "tol_gap_rel": tol,
        "tol_feas": tol,
        "max_iter": _MAX_ITERATIONS,
        # A point that stalled just above the tolerance is judged like any other.
        "accept_unknown": True,
    }
    return settings if time_limit is None else {**settings, "time_limit": time_limit}


def _piqp(tol: float, time_limit: float | None) -> Settings:  # noqa: ARG001
    return {
        "eps_abs": tol,
        "eps_rel": tol,
        "eps_duality_gap_abs": tol,
        "eps_duality_gap_rel": tol,
        "max_iter": _MAX_ITERATIONS,
    }


def _scs(tol: float, time_limit: float | None) -> Settings:
    settings: Settings = {
        "eps_abs": tol,
        "eps_rel": tol,
        "max_iters": _MAX_FIRST_ORDER_ITERATIONS,
    }
    return settings if time_limit is None else {**settings, "time_limit_secs": time_limit}


def _osqp(tol: float, time_limit: float | None) -> Settings:
    settings: Settings = {
        "eps_abs": tol,
        "eps_rel": tol,
        "max_iter": _MAX_FIRST_ORDER_ITERATIONS,
    }
    return settings if time_limit is None else {**settings, "time_limit": time_limit}


def _highs(tol: float, time_limit: float | None) -> Settings:
    allowed = max(tol, 1e-10)
    settings: Settings = {
        "primal_feasibility_tolerance": allowed,
        "dual_feasibility_tolerance": allowed,
    }
    return settings if time_limit is None else {**settings, "time_limit": time_limit}


def _proxqp(tol: float, time_limit: float | None) -> Settings:  # noqa: ARG001
    return {"eps_abs": tol, "eps_rel": tol}


def _gurobi(tol: float, time_limit: float | None) -> Settings:
    allowed = max(tol, 1e-9)
    settings: Settings = {
        "FeasibilityTol": allowed,
        "OptimalityTol": allowed,
        "BarConvTol": tol,
        "BarQCPConvTol": tol,
        "Threads": 1,
    }
    return settings if time_limit is None else {**settings, "TimeLimit": time_limit}


def _cplex(tol: float, time_limit: float | None) -> Settings:
    allowed = max(tol, 1e-12)
    parameters: Settings = {
        "barrier.convergetol": allowed,
        "barrier.qcpconvergetol": allowed,
        "threads": 1,
    }
    if time_limit is not None:
        parameters["timelimit"] = time_limit
    return {"cplex_params": parameters}


def _mosek(tol: float, time_limit: float | None) -> Settings:
    parameters: Settings = {}
    for kind in ("CO", "QO"):
        for quantity in ("REL_GAP", "PFEAS", "DFEAS"):
            parameters[f"MSK_DPAR_INTPNT_{kind}_TOL_{quantity}"] = tol
    if time_limit is not None:
        parameters["MSK_DPAR_OPTIMIZER_MAX_TIME"] = time_limit
    return {"mosek_params": parameters}


def _untranslated(tol: float, time_limit: float | None) -> Settings:  # noqa: ARG001
    return {}


_SETTINGS: dict[str, Callable[[float, float | None], Settings]] = {
    "clarabel": _clarabel,
    "piqp": _piqp,
    "scs": _scs,
    "osqp": _osqp,
    "highs": _highs,
    "proxqp": _proxqp,
    "gurobi": _gurobi,
    "cplex": _cplex,
    "mosek": _mosek,
    "copt": _untranslated,
    "xpress": _untranslated,
}


# For a second try after a stall: Clarabel's own value, 1e-8, is too small for some Gram matrices.
_AGAIN: dict[str, Settings] = {"clarabel": {"static_regularization_constant": 1e-7}}


@dataclass(frozen=True)
class ContinuousResult:
    """How a continuous solve ended; the point is in the variables of the cvxpy problem.

    Parameters
    ----------
    has_point : bool
        Whether the variables hold a point.
    limited : bool
        Whether a time or iteration limit stopped the solver.
    n_iter : int
        Iterations of the solver, 0 when it does not tell.
    solve_time : float
        Seconds in cvxpy and the solver together.
    message : str
        cvxpy's name for the ending.
    """

    has_point: bool
    limited: bool
    n_iter: int
    solve_time: float
    message: str


def solve(
    problem: Any,
    *,
    backend: str | None = None,
    purpose: str = "continuous",
    tol: float = 1e-9,
    time_limit: float | None = None,
    again: bool = False,
    verbose: int = 0,
    options: Settings | None = None,
) -> ContinuousResult:
    """Solve a cvxpy problem in place.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem; its variables and constraints receive primal and dual values.
    backend : str or None, default=None
        Keyword of :data:`owasvm.models.backends.BACKENDS`.
    purpose : {'continuous', 'conic'}, default='continuous'
        What the back-end must be able to solve.
    tol : float, default=1e-9
        Tolerance handed to the solver for residuals and gap.
    time_limit : float or None, default=None
        Seconds, where the solver has such a limit.
    again : bool, default=False
        Use the settings for a second try after a stall.
    verbose : int, default=0
        From 2 on the solver writes its log.
    options : dict or None, default=None
        Settings of the solver in its own words; they win over ours.

    Raises
    ------
    BackendError
        When the problem is infeasible or unbounded, or the solver failed.
    """
    cvxpy = import_cvxpy()
    name = chosen(backend, purpose).name
    retry = _AGAIN.get(name, {}) if again else {}
    settings = {**_SETTINGS[name](tol, time_limit), **retry, **(options or {})}
    start = perf_counter()
    with warnings.catch_warnings():
        # Whether a point is accurate is decided by its recomputed gap.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        warnings.filterwarnings("ignore", message=".*[Cc]onverted.*|.*problem is either infeas.*")
        try:
            problem.solve(solver=name.upper(), verbose=verbose >= 2, **settings)
        except cvxpy.SolverError as error:
            raise BackendError(f"Back-end {name!r} failed: {error}") from error
    seconds = perf_counter() - start
    status = problem.status
    if status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE, cvxpy.USER_LIMIT):
        raise BackendError(f"Back-end {name!r} calls the model {status}.")
    stats = problem.solver_stats
    return ContinuousResult(
        has_point=all(variable.value is not None for variable in problem.variables()),
        limited=status == cvxpy.USER_LIMIT,
        n_iter=int(getattr(stats, "num_iters", None) or 0),
        solve_time=seconds,
        message=str(status),
    )
