"""Local solutions for general weights, with a global bound from a convex minorant."""

from __future__ import annotations

from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.solvers.contract import Settings, Solver
from owasvm.solvers.general.descent import descend, find_starts
from owasvm.solvers.general.search import Search, run_search
from owasvm.solvers.general.tuning import Tuning

TUNING = Tuning()


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Find a local solution for any weights, with a bound on the global optimum.

    ``status`` is "optimal" when the bound proves the solution to ``settings.mip_gap``, "local"
    when descent ended by itself, and else says who stopped it: "time_limit" or "interrupted".
    ``max_iter`` limits the Newton steps of every convex problem on the way, and nothing else;
    descents from problems solved less exactly end earlier. The callback receives ``n_iter``
    (descent steps), ``objective``, ``lower_bound``, ``gap`` and ``time``.
    """
    return run_search("dca", _run, problem, settings, TUNING)


def _run(search: Search) -> Status:
    """Descend from the best of the classifiers that convex problems below ours suggest."""
    search.minorants.improve()
    for _ in range(search.tuning.minorants.n_local - 1):
        if search.clock.expired or not search.minorants.improve():
            break
    start = find_starts(search)[0]
    search.accept(start)
    for step in descend(search, start):
        search.accept(step)
        search.n_iter += 1
        if search.clock.expired:
            break
        if not search.report():
            return Status.INTERRUPTED
    return search.clock.reason if search.clock.expired else Status.LOCAL


SOLVER = Solver(
    solve, compiles=True, convex_losses=("*",), takes_partitions=True, takes_groups=True
)
