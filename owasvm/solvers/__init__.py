"""Solvers: a problem goes in, a solution with its proof comes out.

:func:`solve` is the one entrance. A solver is a module with a
:class:`~owasvm.solvers.contract.Solver`, listed in ``REGISTRY`` under its keyword and imported
when it is first asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from owasvm._threads import blas_threads
from owasvm.certificate import judge, judge_general
from owasvm.problem import OWAProblem
from owasvm.progress import Watch, Watcher, speaking
from owasvm.solution import Solution, Status
from owasvm.solvers._interrupts import Interrupted, Notes, noted_interrupts
from owasvm.solvers.automatic import choose_solver
from owasvm.solvers.contract import Callback, Settings, Solver

__all__ = [
    "REGISTRY",
    "SOLVERS",
    "Callback",
    "Interrupted",
    "Settings",
    "Solver",
    "is_search",
    "solve",
]

#: Modules of the solvers by keyword. The last four are the paper's models.
REGISTRY: dict[str, str] = {
    "newton": "owasvm.solvers.newton",
    "branch-and-bound": "owasvm.solvers.branch_and_bound",
    "dca": "owasvm.solvers.dca",
    "assignment": "owasvm.models.c_owa_svm",
    "ogryczak-tamir": "owasvm.models.ot_c_owa_svm",
    "assignment-dual": "owasvm.models.c_owa_svm_dual",
    "miqp": "owasvm.models.algorithm1",
}

#: Keywords of the solvers; "auto" chooses by the weights.
SOLVERS: tuple[str, ...] = ("auto", *REGISTRY)


def _load(name: str) -> Solver:
    solver: Solver = import_module(REGISTRY[name]).SOLVER
    return solver


def is_search(name: str) -> bool:
    """Whether a solver searches among local solutions where weights fall."""
    return name == "auto" or (name in REGISTRY and _load(name).is_search)


logger = logging.getLogger(__name__)


def solve(
    problem: OWAProblem,
    solver: str = "auto",
    *,
    tol: float = 1e-6,
    mip_gap: float = 1e-4,
    time_limit: float | None = None,
    max_iter: int = 1000,
    warm_start: Solution | None = None,
    in_series: bool = False,
    verbose: int = 0,
    callback: Callback | None = None,
    watcher: Watcher | None = None,
    label: str = "",
    random_state: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve an OWA-SVM.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    solver : str, default="auto"
        One of :data:`SOLVERS`. "auto" is "newton" for non-decreasing weights. For all others it is
        "branch-and-bound", to global optimality, where a proof is in reach, and else "dca", which
        searches for a good local solution and has a bound on the global optimum, too; without a
        proof the status is "local". "assignment", "ogryczak-tamir",
        "assignment-dual" (non-decreasing weights) and "miqp" (any weights, a few dozen samples)
        are the paper's models, solved by the back-end ``options["backend"]``.
    tol, mip_gap, time_limit, max_iter, warm_start, in_series, callback, random_state, options
        See :class:`Settings`.
    verbose : int, default=0
        1 logs a line every few seconds and the outcome, 2 every step, through the logger
        ``owasvm``; without a handler of your own the lines go to standard output, on a terminal
        with rich as one live line.
    watcher : callable, "record" or None, default=None
        ``watcher(record)`` with a :class:`owasvm.progress.ProgressRecord`; returning False stops.
        Keeps all records in ``solution.history``, and so does "record", which calls nobody.
    label : str, default=""
        Whose problem it is, for records and lines.

    Returns
    -------
    solution : Solution
        The best point found, its objective, a proven lower bound and the status. With a kernel
        that is not positive semi-definite there is no bound: the solution is that of the nearest
        kernel that is, judged by the one given.

    Raises
    ------
    Interrupted
        Ctrl-C: a KeyboardInterrupt whose ``solution`` is the best point found. A second Ctrl-C
        does not wait for it.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> from owasvm.solvers import solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> solution = solve(OWAProblem(y, RankCosts(4, "uniform", None), features=X))
    >>> round(solution.objective, 6), str(solution.status)
    (1.5, 'optimal')
    """
    if solver != "auto" and solver not in REGISTRY:
        known = ", ".join(("auto", *REGISTRY))
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive or None, got {time_limit!r}.")
    name = solver
    # Where nobody asked for a number of nodes, more of them would not help.
    gives_up = solver == "auto" and not options
    if solver == "auto":
        name, options = choose_solver(problem, options)
    chosen = _load(name)
    chosen.check(name, problem)
    watch = None
    if verbose or watcher is not None:
        target = tol if problem.costs.convex else mip_gap
        watch = Watch(
            name,
            verbose=verbose,
            callback=watcher,
            label=label,
            target=target,
            time_limit=time_limit,
        )
    settings = Settings(
        tol=tol,
        mip_gap=mip_gap,
        time_limit=time_limit,
        max_iter=max_iter,
        warm_start=_check_warm_start(problem, warm_start),
        in_series=in_series,
        verbose=verbose,
        callback=callback if watch is None else _tell_both(watch.report, callback),
        random_state=random_state,
        options=chosen.read_options(name, options),
    )
    shown = nullcontext() if watch is None else watch.show()
    with speaking(verbose), _work_on(problem) as notes:
        # A live line ends before the next line is written, or it would be written over.
        with shown:
            if problem.is_definite:
                solution = chosen.solve(problem, settings)
            else:
                nearest = chosen.solve(problem.nearest_definite(), settings)
                solution = _judge_anew(problem, nearest)
        if gives_up and solution.status is Status.NODE_LIMIT:
            solution = _add_descent(problem, settings, solution)
        if watch is not None:
            solution = _conclude(watch, solution)
        if verbose:
            logger.info("%s%s", f"{label}, " if label else "", solution.summary())
        # Outside solvers catch Ctrl-C themselves; nothing else but a callback can interrupt them.
        asked = callback is None and not callable(watcher)
        notes.wanted |= solution.status is Status.INTERRUPTED and asked
        notes.raise_if_wanted(solution)
    return solution


def _add_descent(problem: OWAProblem, settings: Settings, solution: Solution) -> Solution:
    """The better of a tree that was given up and of descent, judged with the better bound.

    Descent takes a fraction of the time that the tree took.
    """
    left = None if settings.time_limit is None else settings.time_limit - solution.solve_time
    if not problem.is_definite or (left is not None and not left > 0.0):
        return replace(solution, status=Status.LOCAL)
    chosen = _load("dca")
    options = chosen.read_options("dca", None)
    other = chosen.solve(problem, replace(settings, time_limit=left, options=options))
    better = other if other.objective < solution.objective else solution
    bound = max(solution.lower_bound, other.lower_bound)
    found = judge_general(problem, better.dual, better.intercept, bound, settings.mip_gap)
    return found.as_solution(
        found.decide_status(settings.mip_gap, Status.LOCAL),
        solution.solver,
        n_iter=solution.n_iter,
        build_time=solution.build_time + other.build_time,
        solve_time=solution.solve_time + other.solve_time,
        details=solution.details,
    )


def _tell_both(report: Callback, callback: Callback | None) -> Callback:
    """A callback that stops when either wants to."""
    if callback is None:
        return report
    return lambda info: report(info) is not False and callback(info) is not False


def _conclude(watch: Watch, solution: Solution) -> Solution:
    """The solution with the records of its solve, the last of them its own figures."""
    watch.conclude(
        {
            "n_iter": solution.n_iter,
            "objective": solution.objective,
            "lower_bound": solution.lower_bound,
            "gap": solution.gap,
            "time": solution.build_time + solution.solve_time,
        }
    )
    return replace(solution, details={**solution.details, "history": tuple(watch.records)})


@contextmanager
def _work_on(problem: OWAProblem) -> Iterator[Notes]:
    """What every solver works under: as many threads as pay, Ctrl-C noted, no warnings of numpy.

    Numbers of extreme size overflow on the way; what comes of it is judged like anything else.

    Parameters
    ----------
    problem : OWAProblem
        The problem.

    Yields
    ------
    notes : Notes
        Whether Ctrl-C was pressed; ``notes.raise_if_wanted(solution)`` hands over what was found.
    """
    with (
        np.errstate(all="ignore"),
        blas_threads(problem.samples.n_multiplications),
        noted_interrupts() as notes,
    ):
        yield notes


def _judge_anew(problem: OWAProblem, solution: Solution) -> Solution:
    """The solution of a similar problem as one of a problem that has no lower bound."""
    found = judge(problem, solution.dual, solution.intercept)
    stopped = solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    return replace(
        solution,
        dual=found.dual,
        intercept=found.intercept,
        objective=found.objective,
        deviations=found.deviations,
        lower_bound=-np.inf,
        status=solution.status if stopped else Status.INDEFINITE,
    )


def _check_warm_start(problem: OWAProblem, warm_start: Solution | None) -> Solution | None:
    if warm_start is not None and warm_start.dual.shape != (problem.n_samples,):
        raise ValueError(
            f"warm_start is a solution for {warm_start.dual.size} samples, the problem has "
            f"{problem.n_samples}."
        )
    return warm_start
