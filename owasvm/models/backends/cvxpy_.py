"""Continuous models through cvxpy: Clarabel by default, any other solver it knows by name.

A model states its problem in cvxpy; this file picks the solver, translates tolerance and time
limit into its words, and turns its endings into two: a point (good or not so good, the caller
judges), or an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from owasvm.models.backends import BackendError, MissingBackendError, choose_backend

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


@dataclass(frozen=True)
class _Words:
    """What a solver calls its settings.

    `tolerances` are the settings that take our tolerance, each with the smallest value that it
    takes; `fixed` are those that do not depend on it. Some want all of them in a dictionary of
    its own, `inside`.
    """

    tolerances: Settings
    time_limit: str | None = None
    fixed: Settings = field(default_factory=dict)
    inside: str | None = None

    def settings(self, tol: float, time_limit: float | None) -> Settings:
        own = {name: max(tol, least) for name, least in self.tolerances.items()}
        own |= self.fixed
        if time_limit is not None and self.time_limit is not None:
            own[self.time_limit] = time_limit
        return own if self.inside is None else {self.inside: own}


def _no_floor(*names: str) -> Settings:
    return dict.fromkeys(names, 0.0)


_WORDS = {
    "clarabel": _Words(
        _no_floor("tol_gap_abs", "tol_gap_rel", "tol_feas"),
        "time_limit",
        # A point that stalled just above the tolerance is judged like any other.
        {"max_iter": _MAX_ITERATIONS, "accept_unknown": True},
    ),
    "piqp": _Words(
        _no_floor("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"),
        fixed={"max_iter": _MAX_ITERATIONS},
    ),
    "scs": _Words(
        _no_floor("eps_abs", "eps_rel"),
        "time_limit_secs",
        {"max_iters": _MAX_FIRST_ORDER_ITERATIONS},
    ),
    "osqp": _Words(
        _no_floor("eps_abs", "eps_rel"), "time_limit", {"max_iter": _MAX_FIRST_ORDER_ITERATIONS}
    ),
    "highs": _Words(
        {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        "time_limit",
    ),
    "proxqp": _Words(_no_floor("eps_abs", "eps_rel")),
    "gurobi": _Words(
        {"FeasibilityTol": 1e-9, "OptimalityTol": 1e-9, "BarConvTol": 0.0, "BarQCPConvTol": 0.0},
        "TimeLimit",
        {"Threads": 1},
    ),
    "cplex": _Words(
        {"barrier.convergetol": 1e-12, "barrier.qcpconvergetol": 1e-12},
        "timelimit",
        {"threads": 1},
        inside="cplex_params",
    ),
    "mosek": _Words(
        _no_floor(
            *(
                f"MSK_DPAR_INTPNT_{kind}_TOL_{quantity}"
                for kind in ("CO", "QO")
                for quantity in ("REL_GAP", "PFEAS", "DFEAS")
            )
        ),
        "MSK_DPAR_OPTIMIZER_MAX_TIME",
        inside="mosek_params",
    ),
    "copt": _Words({}),
    "xpress": _Words({}),
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
    n_iter : int
        Iterations of the solver, 0 when it does not tell.
    message : str
        cvxpy's name for the ending.
    """

    has_point: bool
    n_iter: int
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
    options: Mapping[str, Any] | None = None,
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
    options : mapping or None, default=None
        Settings of the solver in its own words; they win over ours.

    Raises
    ------
    BackendError
        When the problem is infeasible or unbounded, or the solver failed.
    """
    cvxpy = import_cvxpy()
    name = choose_backend(backend, purpose).name
    retry = _AGAIN.get(name, {}) if again else {}
    settings = {**_WORDS[name].settings(tol, time_limit), **retry, **(options or {})}
    with warnings.catch_warnings():
        # Whether a point is accurate is decided by its recomputed gap.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        warnings.filterwarnings("ignore", message=".*[Cc]onverted.*|.*problem is either infeas.*")
        try:
            problem.solve(solver=name.upper(), verbose=verbose >= 2, **settings)
        except cvxpy.SolverError as error:
            raise BackendError(f"Back-end {name!r} failed: {error}") from error
    status = problem.status
    if status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE, cvxpy.USER_LIMIT):
        raise BackendError(f"Back-end {name!r} calls the model {status}.")
    stats = problem.solver_stats
    return ContinuousResult(
        has_point=all(variable.value is not None for variable in problem.variables()),
        n_iter=int(getattr(stats, "num_iters", None) or 0),
        message=str(status),
    )


def multiplier(constraint: Any) -> float | None:
    """The multiplier of a single row, None where the solver gave none."""
    found = constraint.dual_value
    return None if found is None else float(np.asarray(found).item())
