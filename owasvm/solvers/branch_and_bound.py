"""Global solutions for general weights by branch and bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers.contract import Settings, Solver
from owasvm.solvers.general.assignments import has_few_assignments, has_shares
from owasvm.solvers.general.descent import descend_to_end, find_starts, shake
from owasvm.solvers.general.enumeration import Enumeration, can_enumerate
from owasvm.solvers.general.exploration import explore
from owasvm.solvers.general.orders import OrderBranching
from owasvm.solvers.general.positions import PositionBranching
from owasvm.solvers.general.ranks import RankBranching
from owasvm.solvers.general.relay import relay_trees
from owasvm.solvers.general.search import Search, run_search
from owasvm.solvers.general.shares import ShareBranching
from owasvm.solvers.general.tree import Tree
from owasvm.solvers.general.tuning import Tuning

TUNING = Tuning()


@dataclass(frozen=True)
class Options:
    """Options of branch and bound.

    Parameters
    ----------
    max_nodes : int, default=1000
        Nodes of the search trees at most. Where up to 64 samples pay costs that never rise, as
        with trimmed weights, a thousand nodes are counted as one.
    """

    max_nodes: int = 1000

    def __post_init__(self) -> None:
        if not isinstance(self.max_nodes, Integral) or self.max_nodes < 1:
            raise ValueError(f"max_nodes must be a whole number >= 1, got {self.max_nodes!r}.")


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Solve an OWA-SVM with any weights to a proven global gap ``settings.mip_gap``.

    Stops early, with the best classifier and the best bound, at ``max_nodes`` nodes
    ("node_limit"), at ``time_limit``, or on Ctrl-C or when the callback says so ("interrupted").
    ``max_iter`` limits the Newton steps of every convex problem on the way; "iteration_limit" says
    that all is branched out, and the last convex problems were not solved exactly enough to prove
    the gap. ``random_state`` seeds the search for better classifiers. The
    callback receives ``n_iter`` (nodes), ``objective``, ``lower_bound``, ``gap`` and ``time``.
    """
    return run_search("branch-and-bound", _run, problem, settings, TUNING)


def _run(search: Search) -> Status:
    """Bound without branching, then grow the trees that suit the problem."""
    for _ in _bound_root(search):
        if search.is_proven:
            return Status.OPTIMAL
        if not search.report():
            return Status.INTERRUPTED
    if not search.report():
        return Status.INTERRUPTED
    if search.clock.expired:
        return search.clock.reason
    strategy = next(strategy for strategy in STRATEGIES if strategy.suits(search))
    for tree, n_nodes in strategy.take_turns(search):
        status = tree.grow(search.settings.options.max_nodes, n_nodes)
        if status is not None:
            return status
    return Status.ITERATION_LIMIT


def _bound_root(search: Search) -> Iterator[None]:
    """Descents, while the minorants get better; a search where much can be gained.

    There is a pause after each.
    """
    search.minorants.improve()
    search.accept(descend_to_end(search, find_starts(search)[0]))
    yield
    for _ in range(search.tuning.minorants.n_global - 1):
        if search.clock.expired or not search.minorants.improve():
            break
        yield
    search.stage = "descent"
    for start in find_starts(search)[: search.tuning.tree.n_descents]:
        if search.clock.expired:
            break
        search.accept(descend_to_end(search, start))
        yield
    gap = relative_gap(search.incumbent.objective, search.bound)
    if gap > search.tuning.tree.worth_trails:
        search.stage = "trail"
        yield from explore(search, search.tuning.tree.effort)


#: A tree, and how many nodes it may take before the next one has its turn.
Turn = tuple[Tree[Any] | Enumeration, int | None]


@dataclass(frozen=True)
class Strategy:
    """Which trees to grow, in turns, and for which problems."""

    suits: Callable[[Search], bool]
    take_turns: Callable[[Search], Iterator[Turn]]


def _has_few_samples(search: Search) -> bool:
    return search.problem.n_samples <= search.tuning.few_samples


def _share_tree(search: Search) -> Tree[Any]:
    mass = search.problem.costs.sample_weight
    if mass is None:
        return Tree(search, ShareBranching(search))
    return Tree(search, PositionBranching(search, mass))


def _split_shares(search: Search) -> Iterator[Turn]:
    if can_enumerate(search):
        # Half of all nodes: where they do not suffice, best bounds first prove more.
        yield Enumeration(search), max(search.settings.options.max_nodes // 2, 1)
    yield _share_tree(search), None


def _hand_out_ranks(search: Search) -> Iterator[Turn]:
    mass = search.problem.costs.sample_weight
    if mass is None:
        yield Tree(search, RankBranching(search)), None
    else:
        yield Tree(search, OrderBranching(search, mass)), None


def _alternate(search: Search) -> Iterator[Turn]:
    """Few samples: either tree can be the one that ends soon, and descents are cheap."""
    tuning = search.tuning.tree
    coordinates = relay_trees(search)
    for tree, n_nodes in coordinates:
        yield tree, n_nodes or tuning.coordinates_first
        if n_nodes is None or search.n_iter >= tuning.coordinates_first:
            break
    shake(search, tuning.n_shakes)
    yield _share_tree(search), tuning.then_shares
    yield from coordinates
    yield tree, None


#: The first that suits a problem is taken.
STRATEGIES = (
    Strategy(
        # Where the largest deviations cost nothing, keep or trim is what is asked.
        lambda search: (
            has_shares(search) and (has_few_assignments(search) or search.costs[-1] <= 0.0)
        ),
        _split_shares,
    ),
    Strategy(has_few_assignments, _hand_out_ranks),
    Strategy(lambda search: has_shares(search) and _has_few_samples(search), _alternate),
    Strategy(lambda _: True, relay_trees),
)


SOLVER = Solver(
    solve,
    Options,
    convex_losses=("*",),
    needs_gram=True,
    is_search=True,
)
