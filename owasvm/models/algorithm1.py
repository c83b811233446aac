r"""Algorithm 1: bounds first, then the mixed-integer model, with every intermediate value kept.

1. Solve the l2-SVM with the same kernel and C: ``(alpha', b')``.
2. Sort its deviations: ``theta'``.
3. Its OWA objective is the upper bound ``UB* = 1/2 |w'|^2 + C sum_k lambda_k theta'_k``. (The
   paper calls it a bound on the convex model C-OWA-SVM_K; it must bound, and does,
   NC-OWA-SVM_K.)
4. LB_b and UB_b give ``l_b <= b <= u_b``.
5. UB_M with these bounds gives ``M = ub_M``.
6. Solve NC-OWA-SVM_K with (boundsb) and this M.

Strengthened, step 3 goes on to lower UB by convex-concave steps from the SVM and from the
continuous relaxation, steps 4 and 5 bound every deviation and b over that relaxation, and step 6
solves the strengthened model. Either way the SVM and what was found next to it are the first
incumbents, the back-end's answer is solved once more at its order of deviations, and objective
and lower bound are ours: the lower bound is the larger of the relaxation's and of the
back-end's, the latter lowered by the back-end's tolerances, and never above the objective.

When ``lambda_n = 0`` the printed steps 4 and 5 have no solution; the record then says so, and M
comes from :func:`owasvm.models.bounds.safe_big_m`. When ``UB* < C lambda_n``, ub_M is smaller
than ``UB* / (C lambda_n)`` and the model as printed can be wrong: see the page of errata.

Notation
--------
=================  =======================================================================
``UB``             objective of the best classifier known before step 6
``l_b, u_b``       bounds of the intercept
``M``              bound of the deviations
=================  =======================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.models import bounds as bounding
from owasvm.models._data import coefficients, coordinates, explicit_coef, rank_costs
from owasvm.models._start import (
    Classifier,
    descend,
    polished,
    svm,
    value_of,
    with_best_intercept,
)
from owasvm.models.backends import BackendError, chosen
from owasvm.models.backends.program import MixedIntegerProgram, MixedIntegerResult
from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers.contract import Settings, Solver

__all__ = ["Record", "run"]

FloatArray = NDArray[np.float64]
Callback = Callable[[dict[str, float]], bool | None]

logger = logging.getLogger("owasvm")

DEFAULT_MAX_BINARIES = 22_500
# The back-end may use this part of the gap; the rest is for its tolerances.
_GAP_SHARE = 0.5
# Shares of the time limit after which the search for a good start, and the bounding, give way.
_START_SHARE, _BOUND_SHARE = 0.2, 0.4


@dataclass(eq=False)
class Record:
    """Intermediate values of Algorithm 1.

    Parameters
    ----------
    svm_dual, svm_intercept : ndarray of shape (n_samples,), float
        alpha' and b' of step 1.
    svm_deviations : ndarray of shape (n_samples,)
        theta' of step 2, ascending.
    svm_upper_bound : float
        UB* of step 3.
    upper_bound : float
        UB used from step 4 on: UB* as printed, the improved one when strengthened.
    relaxation_bound : float
        Lower bound of the continuous relaxation.
    intercept_lower, intercept_upper : float
        l_b and u_b of step 4.
    big_m : float
        M of step 5; when strengthened, the largest upper bound of a deviation.
    big_m_source : str
        Where M comes from.
    deviation_bounds : DeviationBounds or None
        The intervals of the strengthened model.
    n_binaries : int
        Binary variables of step 6 that are not fixed.
    backend_objective, backend_bound : float
        What the back-end said at the end of step 6.
    times : dict of str to float
        Seconds of every step.
    """

    svm_dual: FloatArray
    svm_intercept: float
    svm_deviations: FloatArray
    svm_upper_bound: float
    upper_bound: float
    relaxation_bound: float = 0.0
    intercept_lower: float = -np.inf
    intercept_upper: float = np.inf
    big_m: float = np.inf
    big_m_source: str = ""
    deviation_bounds: bounding.DeviationBounds | None = None
    n_binaries: int = 0
    backend_objective: float = np.nan
    backend_bound: float = -np.inf
    times: dict[str, float] = field(default_factory=dict)


class _Clock:
    """Seconds since the start, step by step, and what is left of the limit."""

    def __init__(self, time_limit: float | None) -> None:
        self.start = perf_counter()
        self.last = self.start
        self.time_limit = time_limit
        self.times: dict[str, float] = {}

    def lap(self, step: str) -> None:
        now = perf_counter()
        self.times[step] = now - self.last
        self.last = now
        logger.debug("Algorithm 1, %s: %.3g s", step, self.times[step])

    @property
    def elapsed(self) -> float:
        return perf_counter() - self.start

    @property
    def left(self) -> float | None:
        return None if self.time_limit is None else max(self.time_limit - self.elapsed, 0.01)

    def expired(self, share: float) -> Callable[[], bool]:
        if self.time_limit is None:
            return lambda: False
        limit = share * self.time_limit
        return lambda: self.elapsed > limit


def run(
    problem: OWAProblem,
    *,
    formulation: str | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    mip_gap: float = 1e-4,
    tol: float = 1e-8,
    strengthened: bool = True,
    warm_start: Solution | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Run Algorithm 1.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    formulation : {'primal', 'kernel'} or None, default=None
        NC-OWA-SVM or NC-OWA-SVM_K in step 6; None takes the first for features and the second
        for a Gram matrix.
    backend, time_limit, mip_gap, tol, strengthened, warm_start, verbose, callback, options
        As in :func:`owasvm.models.nc_owa_svm.solve`.

    Returns
    -------
    solution : Solution
        With the :class:`Record` in ``details["algorithm1"]``.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import algorithm1
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = OWAProblem(y, RankCosts(4, np.array([1.0, 2.0, 0.5, 0.5])), features=X)
    >>> solution = algorithm1.run(problem, strengthened=False)
    >>> record = solution.details["algorithm1"]
    >>> ratio = record.upper_bound / problem.costs.ascending[-1]
    >>> bool(abs(record.big_m - ratio) < 1e-5)
    True
    """
    settings = dict(options or {})
    continuous = settings.pop("continuous_backend", None)
    threads = int(settings.pop("threads", 1))
    _check_size(problem, int(settings.pop("max_binaries", DEFAULT_MAX_BINARIES)))
    engine = chosen(backend, "mixed_integer").name
    clock = _Clock(time_limit)

    # Steps 1 to 3
    first = svm(problem)
    record = _recorded(problem, first, clock.times)
    clock.lap("svm")
    relaxed = bounding.relaxation(problem, backend=continuous, tol=tol)
    record.relaxation_bound = relaxed.lower_bound
    clock.lap("relaxation")
    starts = [first]
    if warm_start is not None:
        starts.append(_given(problem, warm_start))
    if strengthened:
        known = [*starts, _from(problem, relaxed)]
        starts += [with_best_intercept(problem, classifier.dual) for classifier in known]
        best = descend(problem, starts, backend=continuous, expired=clock.expired(_START_SHARE))
        best = polished(problem, best, backend=continuous)
        record.upper_bound = best.objective
    else:
        best = min(starts, key=lambda classifier: classifier.objective)
    clock.lap("start")

    # Steps 4 and 5
    if strengthened:
        _bound_strengthened(problem, record, continuous, clock)
    else:
        _bound_printed(problem, record, continuous, clock)

    # Step 6
    model = _formulation(problem, formulation)
    program: MixedIntegerProgram = model.build(
        problem,
        None if strengthened else record.big_m,
        intercept_bounds=(record.intercept_lower, record.intercept_upper),
        bounds=record.deviation_bounds,
    )
    record.n_binaries = int(np.sum(program.upper[program.binary] > 0.5))
    suggestions = [model.point(problem, program, best.dual, best.intercept)]
    clock.lap("build")
    result = _search(
        engine,
        program,
        mip_gap=_GAP_SHARE * mip_gap,
        time_limit=clock.left,
        starts=[p for p in suggestions if program.violation(p) < 1e-6],
        threads=threads,
        verbose=verbose,
        progress=_progress(callback, clock),
        options=settings,
    )
    clock.lap("search")
    record.backend_objective, record.backend_bound = result.objective, result.bound
    if result.point is not None:
        found = _classifier(problem, *model.direction(problem, program, result.point))
        best = min(best, polished(problem, found, backend=continuous), key=lambda c: c.objective)
    clock.lap("polish")
    return _solution(problem, best, record, result, engine, mip_gap, clock)


def _check_size(problem: OWAProblem, max_binaries: int) -> None:
    rank_costs(problem)
    n_binaries = problem.n_samples**2
    if n_binaries > max_binaries:
        raise ValueError(
            f"The mixed-integer models need {n_binaries:,} binary variables for "
            f"{problem.n_samples} samples, more than max_binaries={max_binaries:,}; use "
            "solver='branch-and-bound', which needs none, or raise max_binaries in "
            "solver_options."
        )


def _recorded(problem: OWAProblem, first: Classifier, times: dict[str, float]) -> Record:
    values = problem.scores(first.dual) + first.intercept
    return Record(
        svm_dual=first.dual,
        svm_intercept=first.intercept,
        svm_deviations=np.sort(np.maximum(1.0 - problem.y * values, 0.0)),
        svm_upper_bound=first.objective,
        upper_bound=first.objective,
        times=times,
    )


def _given(problem: OWAProblem, solution: Solution) -> Classifier:
    dual = np.asarray(solution.dual, dtype=np.float64)
    if dual.shape != (problem.n_samples,):
        raise ValueError(
            f"warm_start has coefficients of shape {dual.shape}, the problem has "
            f"{problem.n_samples} samples."
        )
    return Classifier(dual, solution.intercept, value_of(problem, dual, solution.intercept))


def _from(problem: OWAProblem, relaxed: bounding.Relaxation) -> Classifier:
    return Classifier(
        relaxed.dual, relaxed.intercept, value_of(problem, relaxed.dual, relaxed.intercept)
    )


def _bound_strengthened(
    problem: OWAProblem, record: Record, continuous: str | None, clock: _Clock
) -> None:
    intervals = bounding.deviation_bounds(
        problem, record.upper_bound, backend=continuous, expired=clock.expired(_BOUND_SHARE)
    )
    record.deviation_bounds = intervals
    record.intercept_lower, record.intercept_upper = intervals.intercept
    record.big_m = float(intervals.upper.max())
    record.big_m_source = "intervals of the deviations"
    clock.lap("bounds")


def _bound_printed(
    problem: OWAProblem, record: Record, continuous: str | None, clock: _Clock
) -> None:
    """Steps 4 and 5 as printed."""
    upper_bound = record.upper_bound
    if rank_costs(problem)[-1] == 0.0:
        record.big_m = bounding.safe_big_m(problem, upper_bound)
        record.big_m_source = "safe_big_m, since the last weight is 0"
        clock.lap("M")
        return
    record.intercept_lower = bounding.lb_b(problem, upper_bound, backend=continuous)
    record.intercept_upper = bounding.ub_b(problem, upper_bound, backend=continuous)
    clock.lap("intercept bounds")
    # A hair wider, so that an interval of length 0 keeps an interior.
    pad = 1e-6 * max(1.0, abs(record.intercept_lower), abs(record.intercept_upper))
    record.intercept_lower -= pad
    record.intercept_upper += pad
    record.big_m = bounding.ub_m(
        problem,
        upper_bound,
        (record.intercept_lower, record.intercept_upper),
        backend=continuous,
    )
    record.big_m_source = "UB_M"
    clock.lap("M")


def _formulation(problem: OWAProblem, name: str | None) -> Any:
    if name is None:
        name = "primal" if problem.samples.keeps_weight else "kernel"
    modules = {"primal": "nc_owa_svm", "kernel": "nc_owa_svm_kernel"}
    if name not in modules:
        raise ValueError(f"formulation={name!r} is unknown; use one of {sorted(modules)}.")
    # The models import this module for their own solve functions.
    return import_module(f"owasvm.models.{modules[name]}")


def _search(engine: str, program: MixedIntegerProgram, **arguments: Any) -> MixedIntegerResult:
    solve = import_module(f"owasvm.models.backends.{engine}_").solve
    result: MixedIntegerResult = solve(program, **arguments)
    return result


def _progress(
    callback: Callback | None, clock: _Clock
) -> Callable[[float, float, int], bool] | None:
    if callback is None:
        return None

    def report(incumbent: float, bound: float, nodes: int) -> bool:
        info = {
            "n_iter": float(nodes),
            "objective": incumbent,
            "lower_bound": bound,
            "gap": relative_gap(incumbent, bound) if np.isfinite(incumbent) else np.inf,
            "time": clock.elapsed,
        }
        return callback(info) is not False

    return report


def _classifier(problem: OWAProblem, w: FloatArray, intercept: float) -> Classifier:
    dual = coefficients(problem, coordinates(problem), w)
    return Classifier(dual, intercept, value_of(problem, dual, intercept))


def _solution(
    problem: OWAProblem,
    best: Classifier,
    record: Record,
    result: MixedIntegerResult,
    engine: str,
    mip_gap: float,
    clock: _Clock,
) -> Solution:
    if result.status == "infeasible" and record.deviation_bounds is None:
        raise BackendError(
            f"{engine} calls the model {result.message}; M={record.big_m:.6g} may be too small."
        )
    # The strengthened model holds the start, so this verdict comes from tolerances: no bound.
    proven = -np.inf if result.status == "infeasible" else result.safe_bound
    lower_bound = min(max(record.relaxation_bound, proven, 0.0), best.objective)
    # What a back-end can prove at all, with its own tolerances.
    target = max(mip_gap, 5.0 * result.slack)
    status = {
        "time_limit": Status.TIME_LIMIT,
        "interrupted": Status.INTERRUPTED,
    }.get(result.status, Status.ITERATION_LIMIT)
    if relative_gap(best.objective, lower_bound) <= target:
        status = Status.OPTIMAL
    search = clock.times["search"]
    return Solution(
        dual=best.dual,
        intercept=best.intercept,
        objective=best.objective,
        lower_bound=lower_bound,
        status=status,
        solver="miqp",
        n_iter=result.n_nodes,
        coef=explicit_coef(problem, best.dual),
        build_time=clock.elapsed - search,
        solve_time=search,
        details={"algorithm1": record, "backend": engine, "message": result.message},
    )


@dataclass(frozen=True)
class Options:
    """Options of the mixed-integer models.

    Parameters
    ----------
    backend, continuous_backend : str or None, default=None
        Back-ends of the model itself and of the convex problems on the way.
    strengthened : bool, default=True
        Whether to add what strengthens the printed model.
    formulation : {'primal', 'kernel'} or None, default=None
        NC-OWA-SVM or NC-OWA-SVM_K; by the samples if None.
    max_binaries : int, default=DEFAULT_MAX_BINARIES
        Binary variables beyond which a problem is refused.
    threads : int, default=1
        Threads of the back-end.
    backend_options : mapping or None, default=None
        Settings of the back-end in its own words.
    """

    backend: str | None = None
    continuous_backend: str | None = None
    strengthened: bool = True
    formulation: str | None = None
    max_binaries: int = DEFAULT_MAX_BINARIES
    threads: int = 1
    backend_options: Mapping[str, Any] | None = None


def _solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Solve NC-OWA-SVM (features) or NC-OWA-SVM_K (kernels); `max_iter` has no effect."""
    given: Options = settings.options
    return run(
        problem,
        formulation=given.formulation,
        backend=given.backend,
        strengthened=given.strengthened,
        time_limit=settings.time_limit,
        mip_gap=settings.mip_gap,
        # The estimators' tol is a gap; the continuous problems inside need a residual.
        tol=min(settings.tol, 1e-8),
        warm_start=settings.warm_start,
        verbose=settings.verbose,
        callback=settings.callback,
        options={
            "continuous_backend": given.continuous_backend,
            "threads": given.threads,
            "max_binaries": given.max_binaries,
            **(given.backend_options or {}),
        },
    )


SOLVER = Solver(_solve, Options, takes_sample_weight=False)
