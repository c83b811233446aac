"""Global solutions for general weights by branch and bound over a handful of coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.rank_split import convex_envelope, rising_part, tail_sums, tangent_minorant
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers import Settings, newton
from owasvm.solvers.branch_and_bound.coordinates import BoxNode, CoordinateBranching
from owasvm.solvers.branch_and_bound.emphasis import emphasised
from owasvm.solvers.branch_and_bound.geometry import CentredData, Frame
from owasvm.solvers.branch_and_bound.ranges import intercept_range, safe_ball, slack_ranges
from owasvm.solvers.branch_and_bound.ranks import RankBranching, log_assignments
from owasvm.solvers.branch_and_bound.relaxation import Box, Relaxer, Split
from owasvm.solvers.branch_and_bound.tree import Tree
from owasvm.solvers.dca import (
    Candidate,
    Clock,
    MinorantSearch,
    descended,
    finished,
    first_candidates,
    report,
    solve_with_copies,
)

FloatArray = NDArray[np.float64]

# Convex problems below ours that are tried at the root.
_MINORANTS = 8
_DESCENTS = 4
_ROOT_ROUNDS = 4
# Ways to hand out costs, as a logarithm, up to which they are enumerated implicitly.
_MAX_LOG_ASSIGNMENTS = math.log(1e5)
# Directions that are tried as coordinates to choose a split.
_MAX_DIRECTIONS = 4
# The share of the gap that the bound at the incumbent may use up.
_CLOSED_SHARE = 0.6


def solve(problem: OWAProblem, settings: Settings) -> Solution:
    """Solve an OWA-SVM with any weights to a proven global gap ``settings.mip_gap``.

    Stops early at ``max_iter`` nodes, at ``time_limit``, on Ctrl-C or when the callback says so,
    with the best classifier and the best bound. The callback receives ``n_iter`` (nodes),
    ``objective``, ``lower_bound``, ``gap`` and ``time``.
    """
    if problem.costs.convex:
        return replace(newton.solve(problem, settings), solver="branch-and-bound")
    if problem.costs.sample_weight is not None:
        return solve_with_copies(problem, settings, solve)
    clock = Clock.start(settings)
    operator = newton.make_operator(problem)
    search = MinorantSearch(problem, operator, clock)
    best = search.best.candidate
    tree: Tree | None = None
    status = Status.TIME_LIMIT
    try:
        best, status = _root(problem, search, clock)
        if status is Status.TIME_LIMIT and not clock.expired:
            tree = Tree(problem, operator, best, clock)
            status = _searched(tree, problem, search, clock)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    lower_bound = search.bound
    if tree is not None:
        best = tree.incumbent
        lower_bound = max(lower_bound, tree.bound)
    return finished(
        problem,
        best,
        lower_bound,
        status,
        "branch-and-bound",
        0 if tree is None else tree.n_nodes,
        clock,
        {"minorant_bound": search.bound, "newton_steps": search.n_iter},
    )


def _root(problem: OWAProblem, search: MinorantSearch, clock: Clock) -> tuple[Candidate, Status]:
    """Bounds before any branching: an incumbent, and whether that settles it."""
    best = search.best.candidate
    try:
        for found in _candidates(problem, search, clock):
            if found.objective < best.objective:
                best = found
            if relative_gap(best.objective, search.bound) <= clock.settings.mip_gap:
                return best, Status.OPTIMAL
        if not report(clock.settings, 0, best.objective, search.bound, clock):
            return best, Status.INTERRUPTED
    except KeyboardInterrupt:
        return best, Status.INTERRUPTED
    return best, Status.TIME_LIMIT


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
    costs = problem.costs.ascending
    assert costs is not None
    accuracy = min(0.1 * clock.settings.mip_gap, 1e-6)
    if log_assignments(costs) <= _MAX_LOG_ASSIGNMENTS:
        ranks = RankBranching(problem, newton.make_operator(problem, centred=False), accuracy)
        return tree.search(ranks.root(), ranks, search.bound)
    best = tree.incumbent
    data, split = _chosen_split(problem, best, clock, accuracy)
    ball = safe_ball(problem, search.best.solution, best.objective)
    coordinates = CoordinateBranching(problem, data, split, ball, accuracy)
    low, high = (np.array([end]) for end in intercept_range(problem, data, best.objective))
    box = Box(low, high, *slack_ranges(problem, data, best.objective))
    start = coordinates.relaxer(0).start(best.coef, data.coordinates(best.coef, best.intercept, 0))
    return tree.search(BoxNode(0.0, box, start), coordinates, search.bound)


class _Trial:
    """What a split and a number of directions lack at the incumbent's own coordinates.

    No box around them can prove more.
    """

    def __init__(
        self, problem: OWAProblem, data: CentredData, best: Candidate, accuracy: float
    ) -> None:
        assert problem.costs.ascending is not None
        self.costs = problem.costs.ascending
        self.data = data
        self._best = best
        self._accuracy = accuracy
        self._slacks = slack_ranges(problem, data, best.objective)
        self._known: dict[tuple[int, int], float] = {}

    def split(self, n_kept: int) -> Split:
        """The costs, all rises kept (-1), or a tangent minorant that keeps `n_kept` costs."""
        costs = self.costs
        rising = rising_part(costs) if n_kept < 0 else tangent_minorant(costs, n_kept)
        return Split(rising, convex_envelope(tail_sums(costs - rising)))

    def lacking(self, n_kept: int, n_directions: int) -> float:
        """Distance of the bound to the incumbent."""
        key = n_kept, n_directions
        if key not in self._known:
            at = self.data.coordinates(self._best.coef, self._best.intercept, n_directions)
            relaxer = Relaxer(Frame(self.data, n_directions), self.split(n_kept), self._accuracy)
            start = relaxer.start(self._best.coef, at)
            box = Box(at, at, *self._slacks)
            proof, _ = relaxer.rounds(box, start, self._best.objective, _ROOT_ROUNDS)
            self._known[key] = self._best.objective - proof.value
        return self._known[key]


def _chosen_split(
    problem: OWAProblem, best: Candidate, clock: Clock, accuracy: float
) -> tuple[CentredData, Split]:
    """Emphases and split with which the bound at the incumbent is best.

    Boxes take in directions when they need them, so their number is not decided here.
    """
    trial = _Trial(problem, CentredData(problem), best, accuracy)
    room = clock.settings.mip_gap * max(1.0, abs(best.objective))
    kept = _search_kept(trial, 0, room)
    if trial.lacking(kept, 0) <= _CLOSED_SHARE * room or clock.expired:
        return trial.data, trial.split(kept)
    slack = 1.0 - problem.y * (problem.scores(best.coef) + best.intercept)
    other = _Trial(problem, emphasised(problem, slack), best, accuracy)
    other_kept = _search_kept(other, 0, room)
    if other.lacking(other_kept, 0) < trial.lacking(kept, 0):
        trial, kept = other, other_kept
    for n_directions in range(1, min(_MAX_DIRECTIONS, trial.data.n_directions) + 1):
        if trial.lacking(kept, n_directions - 1) <= _CLOSED_SHARE * room or clock.expired:
            break
        kept = _search_kept(trial, n_directions, room, near=kept)
    return trial.data, trial.split(kept)


def _search_kept(trial: _Trial, n_directions: int, room: float, near: int | None = None) -> int:
    """Number of last costs that the rising part should keep, -1 for all rises.

    What is lacking falls and rises again with that number, so a coarse look and steps downhill
    from there will do.
    """
    largest = int(np.argmin(trial.costs[::-1]))
    if near is None:
        grid = {-1, *np.unique(np.geomspace(1, max(largest, 1), 8).astype(int)).tolist()}
    else:
        grid = {-1, near}
    candidates = sorted(number for number in grid if number <= largest)
    best = min(candidates, key=lambda number: trial.lacking(number, n_directions))
    step = max(best // 3, 1)
    while best >= 0 and step >= 1 and trial.lacking(best, n_directions) > 0.1 * room:
        around = [n for n in (best - step, best + step) if 0 <= n <= largest]
        better = min([best, *around], key=lambda number: trial.lacking(number, n_directions))
        if better == best:
            step //= 2
        best = better
    return best
