"""Local solutions for general weights, with a global bound from a convex minorant."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.solvers.contract import Settings, Solver
from owasvm.solvers.general.descent import descend, find_starts
from owasvm.solvers.general.exploration import explore
from owasvm.solvers.general.search import Search, run_search
from owasvm.solvers.general.tuning import Tuning

TUNING = Tuning()


@dataclass(frozen=True)
class Options:
    """Options of descent.

    Parameters
    ----------
    n_init : int, default=13
        Effort: 1 for one descent that starts from the convex problems below ours, more for a
        search that also starts from random samples. Every further unit pays for about as much
        work as one or two convex fits, counted and not timed. More never end higher.
    """

    n_init: int = 13

    def __post_init__(self) -> None:
        if not isinstance(self.n_init, Integral) or self.n_init < 1:
            raise ValueError(f"n_init must be a whole number >= 1, got {self.n_init!r}.")


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Find a local solution for any weights, with a bound on the global optimum.

    ``status`` is "optimal" when the bound proves the solution to ``settings.mip_gap``, "local"
    when descents ended by themselves, and else says who stopped it: "time_limit" or "interrupted".
    ``max_iter`` limits the Newton steps of every convex problem on the way, and nothing else;
    descents from problems solved less exactly end earlier. ``random_state`` seeds the starts of
    all descents but the first. The callback receives ``n_iter``
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
    search.stage = "descent"
    for step in descend(search, start):
        search.accept(step)
        search.n_iter += 1
        if search.clock.expired:
            break
        if not search.report():
            return Status.INTERRUPTED
    if search.is_proven:
        return Status.OPTIMAL
    search.stage = "trail"
    for _ in explore(search, search.settings.options.n_init - 1):
        if not search.report():
            return Status.INTERRUPTED
    return search.clock.reason if search.clock.expired else Status.LOCAL


SOLVER = Solver(
    solve,
    Options,
    convex_losses=("*",),
    takes_partitions=True,
    takes_groups=True,
    is_search=True,
)
