"""Global solutions for general weights by branch and bound over a handful of coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers import newton
from owasvm.solvers._clock import Clock
from owasvm.solvers._interrupts import note_interrupt
from owasvm.solvers.branch_and_bound.choice import chosen_relaxation
from owasvm.solvers.branch_and_bound.coordinates import FEW_SAMPLES, BoxNode, CoordinateBranching
from owasvm.solvers.branch_and_bound.ranges import intercept_range, safe_ball, slack_ranges
from owasvm.solvers.branch_and_bound.ranks import RankBranching, falling_values, log_assignments
from owasvm.solvers.branch_and_bound.relaxation import Box
from owasvm.solvers.branch_and_bound.shares import ShareBranching
from owasvm.solvers.branch_and_bound.tree import Tree
from owasvm.solvers.contract import Settings, Solver
from owasvm.solvers.dca import (
    Candidate,
    MinorantSearch,
    descended,
    finished,
    first_candidates,
    report,
    shaken,
    solve_with_copies,
)

FloatArray = NDArray[np.float64]

# Convex problems below ours that are tried at the root.
_MINORANTS = 8
_DESCENTS = 4
# Ways to hand out costs, as a logarithm, up to which they are enumerated implicitly.
_MAX_LOG_ASSIGNMENTS = math.log(1e5)
# With few samples two trees take turns, with so many nodes.
_COORDINATES_FIRST = 200
_THEN_SHARES = 1500
# Descents from shaken classifiers before a long search.
_SHAKES = 60


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Solve an OWA-SVM with any weights to a proven global gap ``settings.mip_gap``.

    Stops early at ``max_nodes`` nodes, at ``time_limit``, on Ctrl-C or when the callback says so,
    with the best classifier and the best bound. The callback receives ``n_iter`` (nodes),
    ``objective``, ``lower_bound``, ``gap`` and ``time``.
    """
    if problem.costs.convex:
        return replace(newton.solve(problem, settings), solver="branch-and-bound")
    if problem.costs.sample_weight is not None:
        return solve_with_copies(problem, settings, solve)
    clock = Clock.start(settings)
    operator = problem.samples.operator()
    search = MinorantSearch(problem, operator, clock)
    best = search.best.candidate
    tree: Tree | None = None
    status: Status | None = None
    try:
        best, status = _root(problem, search, clock)
        if status is None and not clock.expired:
            tree = Tree(problem, operator, best, clock, settings.options.max_nodes)
            status = _searched(tree, problem, search, clock)
    except (KeyboardInterrupt, SystemError) as error:
        note_interrupt(error)
    lower_bound = search.bound
    if tree is not None:
        best = tree.incumbent
        lower_bound = max(lower_bound, tree.bound)
    return finished(
        problem,
        best,
        lower_bound,
        clock.reason if status is None else status,
        "branch-and-bound",
        0 if tree is None else tree.n_nodes,
        clock,
        {"minorant_bound": search.bound, "newton_steps": search.n_iter},
    )


def _root(
    problem: OWAProblem, search: MinorantSearch, clock: Clock
) -> tuple[Candidate, Status | None]:
    """Bounds before any branching: an incumbent, and the status if that settles it."""
    best = search.best.candidate
    try:
        for found in _candidates(problem, search, clock):
            if found.objective < best.objective:
                best = found
            if relative_gap(best.objective, search.bound) <= clock.settings.mip_gap:
                return best, Status.OPTIMAL
        if not report(clock.settings, 0, best.objective, search.bound, clock):
            return best, Status.INTERRUPTED
    except (KeyboardInterrupt, SystemError) as error:
        note_interrupt(error)
        return best, Status.INTERRUPTED
    return best, None


def _candidates(problem: OWAProblem, search: MinorantSearch, clock: Clock) -> Iterator[Candidate]:
    """Where descents end, while the minorants get better."""
    first = first_candidates(problem, search.bounds)[0]
    first = descended(problem, search.operator, first, clock)
    yield first
    for _ in range(_MINORANTS):
        if clock.expired or not search.improve():
            break
        yield first
    for start in first_candidates(problem, search.bounds)[:_DESCENTS]:
        if clock.expired:
            break
        yield descended(problem, search.operator, start, clock)


def _searched(tree: Tree, problem: OWAProblem, search: MinorantSearch, clock: Clock) -> Status:
    """Search with the branching that suits the problem."""
    costs = problem.costs.by_rank()
    accuracy = min(0.1 * clock.settings.mip_gap, 1e-6)
    shares: ShareBranching | None = None
    if falling_values(costs)[0][0] >= 0.0:
        shares = ShareBranching(problem, search.operator, tree.incumbent, accuracy)
    few_assignments = log_assignments(costs) <= _MAX_LOG_ASSIGNMENTS
    if shares is not None and (few_assignments or costs[-1] <= 0.0):
        n_shakes = _SHAKES if problem.n_samples <= FEW_SAMPLES else _SHAKES // 6
        tree.incumbent = shaken(problem, search.operator, tree.incumbent, n_shakes, clock)
        return tree.search(shares.root(), shares, search.bound)
    if few_assignments:
        ranks = RankBranching(problem, problem.samples.operator(centred=False), accuracy)
        return tree.search(ranks.root(), ranks, search.bound)
    root, coordinates = _coordinates(problem, tree.incumbent, search, clock, accuracy)
    if shares is None or problem.n_samples > FEW_SAMPLES:
        return tree.search(root, coordinates, search.bound)
    status = tree.search(root, coordinates, search.bound, _COORDINATES_FIRST)
    if status is not Status.NODE_LIMIT:
        return status
    # Few samples: either tree can be the one that ends soon, and descents are cheap.
    tree.incumbent = shaken(problem, search.operator, tree.incumbent, _SHAKES, clock)
    other = Tree(problem, search.operator, tree.incumbent, clock, tree.max_nodes)
    other.n_nodes = tree.n_nodes
    status = other.search(shares.root(), shares, tree.bound, tree.n_nodes + _THEN_SHARES)
    tree.n_nodes = other.n_nodes
    tree.incumbent = other.incumbent
    tree.floor = other.bound
    return tree.resume(coordinates) if status is Status.NODE_LIMIT else status


def _coordinates(
    problem: OWAProblem, best: Candidate, search: MinorantSearch, clock: Clock, accuracy: float
) -> tuple[BoxNode, CoordinateBranching]:
    """The tree over coordinates: its root, and how to split."""
    choice = chosen_relaxation(problem, best, search.best, clock, accuracy)
    data = choice.data
    ball = safe_ball(problem, search.best.solution, best.objective)
    coordinates = CoordinateBranching(problem, choice, ball, accuracy, clock)
    low, high = (np.array([end]) for end in intercept_range(problem, data, best.objective))
    box = Box(low, high, *slack_ranges(problem, data, best.objective))
    start = coordinates.relaxer(0).start(best.coef, data.coordinates(best.coef, best.intercept, 0))
    return BoxNode(0.0, box, start), coordinates


@dataclass(frozen=True)
class Options:
    """Options of branch and bound.

    Parameters
    ----------
    max_nodes : int, default=1000
        Nodes of the search trees at most.
    """

    max_nodes: int = 1000


SOLVER = Solver(
    solve,
    Options,
    compiles=True,
    tiny_options=lambda: Options(max_nodes=2),
    convex_losses=("*",),
)
