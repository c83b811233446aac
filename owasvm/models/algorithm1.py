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
from dataclasses import dataclass, field, replace
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import charged_bound, judge
from owasvm.models import bounds as bounding
from owasvm.models import nc_owa_svm, nc_owa_svm_kernel
from owasvm.models._data import coefficients, coordinates, rank_costs
from owasvm.models._ordering import direction, point
from owasvm.models._start import Classifier, descend, evaluate, polish, svm, with_best_intercept
from owasvm.models.backends import BackendError, choose_backend
from owasvm.models.backends.program import MixedIntegerResult, Progress, Search, search
from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers.contract import Callback, Settings, Solver

__all__ = ["Options", "Record", "run"]

FloatArray = NDArray[np.float64]

logger = logging.getLogger("owasvm")

DEFAULT_MAX_BINARIES = 22_500
_BUILD = {"primal": nc_owa_svm.build, "kernel": nc_owa_svm_kernel.build}
# The back-end may use this part of the gap; the rest is for its tolerances.
_GAP_SHARE = 0.5
# Shares of the time limit after which the search for a good start, and the bounding, give way.
_START_SHARE, _BOUND_SHARE = 0.2, 0.4


@dataclass(frozen=True)
class Options:
    """Options of the mixed-integer models.

    Parameters
    ----------
    backend : str or None, default=None
        Keyword of a mixed-integer back-end, None for SCIP.
    continuous_backend : str or None, default=None
        Keyword of a conic back-end for the convex problems on the way, None for Clarabel.
    strengthened : bool, default=True
        The strengthened model, or the one the paper prints.
    formulation : {'primal', 'kernel'} or None, default=None
        NC-OWA-SVM or NC-OWA-SVM_K; None takes the first for features and the second for a Gram
        matrix.
    max_binaries : int, default=22500
        Binary variables beyond which a problem is refused.
    threads : int, default=1
        Threads of the back-end.
    backend_options : mapping or None, default=None
        Settings of the mixed-integer back-end in its own words.
    """

    backend: str | None = None
    continuous_backend: str | None = None
    strengthened: bool = True
    formulation: str | None = None
    max_binaries: int = DEFAULT_MAX_BINARIES
    threads: int = 1
    backend_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        choose_backend(self.backend, "mixed_integer")
        choose_backend(self.continuous_backend, "conic")
        if self.formulation not in (None, *_BUILD):
            raise ValueError(
                f"formulation={self.formulation!r} is unknown; use one of {sorted(_BUILD)}."
            )
        for name in ("max_binaries", "threads"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a whole number above 0, got {value!r}.")


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
    time_limit: float | None = None,
    mip_gap: float = 1e-4,
    tol: float = 1e-8,
    warm_start: Solution | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Solution:
    """Run Algorithm 1.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    time_limit : float or None, default=None
        Seconds; at the limit the best classifier so far is returned with ``Status.TIME_LIMIT``.
    mip_gap : float, default=1e-4
        Relative gap to the global optimum to reach. Back-ends compute with tolerances of about
        1e-6, so nothing below 1e-5 can be proven.
    tol : float, default=1e-8
        Tolerance of the continuous problems on the way.
    warm_start : Solution or None, default=None
        A classifier to start from.
    verbose : int, default=0
        From 2 on the back-end writes its log.
    callback : callable or None, default=None
        ``callback(info) -> bool``, False stops the search.
    **options
        Fields of :class:`Options`.

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
    settings = Settings(
        tol=tol,
        mip_gap=mip_gap,
        time_limit=time_limit,
        warm_start=warm_start,
        verbose=verbose,
        callback=callback,
        options=Options(**options),
    )
    return _run(problem, settings)


def _run(problem: OWAProblem, settings: Settings) -> Solution:
    options: Options = settings.options
    continuous, strengthened = options.continuous_backend, options.strengthened
    _check_size(problem, options.max_binaries)
    clock = _Clock(settings.time_limit)

    # Steps 1 to 3
    first = svm(problem)
    record = Record(
        svm_dual=first.dual,
        svm_intercept=first.intercept,
        svm_deviations=np.sort(first.deviations),
        svm_upper_bound=first.objective,
        upper_bound=first.objective,
        times=clock.times,
    )
    clock.lap("svm")
    relaxed = bounding.relaxation(problem, backend=continuous, tol=settings.tol)
    record.relaxation_bound = relaxed.lower_bound
    clock.lap("relaxation")
    starts = [first]
    if settings.warm_start is not None:
        starts.append(_read_warm_start(problem, settings.warm_start))
    if strengthened:
        duals = [*(classifier.dual for classifier in starts), relaxed.dual]
        starts += [with_best_intercept(problem, dual) for dual in duals]
        best = descend(problem, starts, backend=continuous, expired=clock.expired(_START_SHARE))
        best = polish(problem, best, backend=continuous)
        record.upper_bound = best.objective
    else:
        best = min(starts, key=lambda classifier: classifier.objective)
    clock.lap("start")

    # Steps 4 and 5
    bound = _bound_strengthened if strengthened else _bound_printed
    bound(problem, record, continuous, clock)

    # Step 6
    formulation = options.formulation or ("primal" if problem.samples.keeps_weight else "kernel")
    program = _BUILD[formulation](
        problem,
        None if strengthened else record.big_m,
        intercept_bounds=(record.intercept_lower, record.intercept_upper),
        bounds=record.deviation_bounds,
    )
    record.n_binaries = int(np.sum(program.upper[program.binary] > 0.5))
    start = point(problem, program, best.dual, best.intercept)
    clock.lap("build")
    wanted = Search(
        mip_gap=_GAP_SHARE * settings.mip_gap,
        time_limit=clock.left,
        starts=[start] if program.violation(start) < 1e-6 else [],
        threads=options.threads,
        verbose=settings.verbose,
        progress=_progress(settings.callback, clock),
        options=options.backend_options or {},
    )
    engine = choose_backend(options.backend, "mixed_integer").name
    result = search(engine, program, wanted)
    clock.lap("search")
    record.backend_objective, record.backend_bound = result.objective, result.bound
    if result.point is not None:
        w, b = direction(problem, program, result.point)
        found = evaluate(problem, coefficients(problem, coordinates(problem), w), b)
        best = min(best, polish(problem, found, backend=continuous), key=lambda c: c.objective)
    clock.lap("polish")
    return _conclude(problem, best, record, result, engine, settings.mip_gap, clock)


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


def _read_warm_start(problem: OWAProblem, solution: Solution) -> Classifier:
    dual = np.asarray(solution.dual, dtype=np.float64)
    if dual.shape != (problem.n_samples,):
        raise ValueError(
            f"warm_start has coefficients of shape {dual.shape}, the problem has "
            f"{problem.n_samples} samples."
        )
    return evaluate(problem, dual, solution.intercept)


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
    low = bounding.lb_b(problem, upper_bound, backend=continuous)
    high = bounding.ub_b(problem, upper_bound, backend=continuous)
    clock.lap("intercept bounds")
    # A hair wider, so that an interval of length 0 keeps an interior.
    pad = 1e-6 * max(1.0, abs(low), abs(high))
    record.intercept_lower, record.intercept_upper = low - pad, high + pad
    interval = (record.intercept_lower, record.intercept_upper)
    record.big_m = bounding.ub_m(problem, upper_bound, interval, backend=continuous)
    record.big_m_source = "UB_M"
    clock.lap("M")


def _progress(callback: Callback | None, clock: _Clock) -> Progress | None:
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


def _conclude(
    problem: OWAProblem,
    best: Classifier,
    record: Record,
    result: MixedIntegerResult,
    engine: str,
    mip_gap: float,
    clock: _Clock,
) -> Solution:
    """The best classifier, judged, with the larger of the two bounds."""
    if result.status == "infeasible" and record.deviation_bounds is None:
        raise BackendError(
            f"{engine} calls the model {result.message}; M={record.big_m:.6g} may be too small."
        )
    best = with_best_intercept(problem, best.dual)
    weight = problem.samples.weight(problem.y * best.dual)
    found = judge(problem, best.dual, best.intercept, weight=weight, coef=best.dual, tol=mip_gap)
    if problem.is_definite:
        # The strengthened model holds the start: it is infeasible by tolerances only.
        proven = -np.inf if result.status == "infeasible" else result.safe_bound
        charged = (
            charged_bound(bound, found.objective_rounding, found.objective)
            for bound in (record.relaxation_bound, proven)
        )
        found = replace(found, lower_bound=max(found.lower_bound, *charged))
    status = {
        "time_limit": Status.TIME_LIMIT,
        "interrupted": Status.INTERRUPTED,
    }.get(result.status, Status.BACKEND_LIMIT)
    # What a back-end can prove at all, with its own tolerances.
    if found.worst_gap <= max(mip_gap, 5.0 * result.slack):
        status = Status.OPTIMAL
    search_time = clock.times["search"]
    return found.as_solution(
        status,
        "miqp",
        n_iter=result.n_nodes,
        build_time=clock.elapsed - search_time,
        solve_time=search_time,
        details={"algorithm1": record, "backend": engine, "message": result.message},
    )


def _solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Solve NC-OWA-SVM (features) or NC-OWA-SVM_K (kernels).

    The back-ends keep their own limits of iterations and nodes, so `max_iter` has no effect.
    """
    # The estimators' tol is a gap; the continuous problems inside need a residual.
    return _run(problem, replace(settings, tol=min(settings.tol, 1e-8)))


SOLVER = Solver(_solve, Options, takes_sample_weight=False, needs_gram=True)
