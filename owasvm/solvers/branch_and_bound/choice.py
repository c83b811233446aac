"""Which relaxation suits a problem: the split of the costs, the emphases, the directions.

All are judged by what the bound lacks at two places: the coordinates of the incumbent, and those
of the solution of the best convex problem below ours, which is where bounds tend to be lowest. No
box around them can prove more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.rank_split import convex_envelope, rising_part, tail_sums, tangent_minorant
from owasvm.solvers._clock import Clock
from owasvm.solvers.branch_and_bound.emphasis import levelled, near_margin, refitted
from owasvm.solvers.branch_and_bound.geometry import CentredData, Frame
from owasvm.solvers.branch_and_bound.ranges import slack_ranges
from owasvm.solvers.branch_and_bound.relaxation import Box, Proof, Relaxer, Split
from owasvm.solvers.dca import Candidate, ConvexBound

FloatArray = NDArray[np.float64]

_ROUNDS = 3
# Emphases are fitted for up to so many directions, each worth this share of the one before.
_MAX_DIRECTIONS = 3
_DIRECTION_SHARE = 0.9
# The share of the gap that the bound at the incumbent may use up.
_CLOSED_SHARE = 0.6
# Share of the time limit that may pass before the choice is made.
_SHARE_OF_TIME = 0.25
# Steps of a fit, and how many in a row may be in vain.
_FIT_STEPS = 10
_PATIENCE = 3
# Weight of the past in the running mean of the spreads.
_INERTIA = 0.7


class Trial:
    """What splits and numbers of directions lack with given emphases.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    data : CentredData
        Its samples with their emphases.
    places : sequence of Candidate
        Classifiers at whose coordinates bounds are looked at, the incumbent first.
    accuracy : float
        Relative accuracy of the convex problems.
    clock : Clock
        Limits.
    """

    def __init__(
        self,
        problem: OWAProblem,
        data: CentredData,
        places: Sequence[Candidate],
        accuracy: float,
        clock: Clock,
    ) -> None:
        self.costs = problem.costs.by_rank()
        self.data = data
        self._problem = problem
        self._places = places
        self._accuracy = accuracy
        self._clock = clock
        self._objective = places[0].objective
        self._slacks = slack_ranges(problem, data, self._objective)
        self._known: dict[tuple[int, int], Proof] = {}

    @property
    def is_late(self) -> bool:
        """Whether it is time to stop."""
        return self._clock.expired

    def with_data(self, data: CentredData) -> Trial:
        """The same with other emphases."""
        return Trial(self._problem, data, self._places, self._accuracy, self._clock)

    def split(self, n_kept: int) -> Split:
        """The costs, all rises kept (-1), or a tangent minorant that keeps `n_kept` costs."""
        costs = self.costs
        rising = rising_part(costs) if n_kept < 0 else tangent_minorant(costs, n_kept)
        return Split(rising, convex_envelope(tail_sums(costs - rising)))

    def proof(self, n_kept: int, n_directions: int) -> Proof:
        """The lowest of the bounds at the places."""
        key = n_kept, n_directions
        if key not in self._known:
            frame, split = Frame(self.data, n_directions), self.split(n_kept)
            relaxer = Relaxer(frame, split, self._accuracy, self._clock)
            proofs = (self._proof_at(place, relaxer, n_directions) for place in self._places)
            self._known[key] = min(proofs, key=lambda proof: proof.value)
        return self._known[key]

    def _proof_at(self, place: Candidate, relaxer: Relaxer, n_directions: int) -> Proof:
        at = self.data.coordinates(place.coef, place.intercept, n_directions)
        start = relaxer.start(place.coef, at)
        return relaxer.rounds(Box(at, at, *self._slacks), start, self._objective, _ROUNDS)[0]

    def lacking(self, n_kept: int, n_directions: int) -> float:
        """Distance of the lowest bound to the incumbent."""
        return self._objective - self.proof(n_kept, n_directions).value


@dataclass(frozen=True)
class Choice:
    """A relaxation: emphases and split, fitted for a number of directions.

    ``remains[k]`` is the share still lacking when direction ``k + 1`` becomes a coordinate.
    """

    data: CentredData
    split: Split
    n_directions: int
    remains: tuple[float, ...]


def chosen_relaxation(
    problem: OWAProblem, best: Candidate, below: ConvexBound, clock: Clock, accuracy: float
) -> Choice:
    """Emphases and split with which the bounds that matter most are best.

    They are fitted for no direction among the coordinates, for one and more. What counts is the
    share that is closed of the gap to `below`, the best convex problem below ours; every direction
    must make up for the boxes it multiplies. Boxes take in directions when they need them.
    """
    enough = _CLOSED_SHARE * clock.settings.mip_gap * max(1.0, abs(best.objective))
    gap = max(best.objective - below.solution.lower_bound, enough)
    trial = Trial(problem, CentredData(problem), (best, below.candidate), accuracy, clock)
    kept = _search_kept(trial, 0, enough)
    if trial.lacking(kept, 0) <= enough or clock.has_spent(_SHARE_OF_TIME):
        return _choice(trial, kept, 0)
    slack = 1.0 - problem.y * (problem.scores(best.coef) + best.intercept)
    chosen = trial, kept, 0
    merit = 1.0 - trial.lacking(kept, 0) / gap
    for n_directions in range(min(_MAX_DIRECTIONS, trial.data.n_directions) + 1):
        discount = _DIRECTION_SHARE**n_directions
        if discount <= merit:
            break
        # Levelling blurs the leading directions, which is good when none is a coordinate.
        data = near_margin(problem, slack) if n_directions else levelled(problem, slack, clock)
        if data.n_directions < n_directions:
            # With these emphases fewer directions are left of data of low rank.
            break
        start = trial.with_data(data)
        for fit, fit_kept in _fits(start, kept, n_directions, enough):
            lacking = fit.lacking(fit_kept, n_directions)
            if lacking <= enough:
                return _choice(fit, fit_kept, n_directions)
            if (1.0 - lacking / gap) * discount > merit:
                chosen = fit, fit_kept, n_directions
                merit = (1.0 - lacking / gap) * discount
            if clock.has_spent(_SHARE_OF_TIME):
                return _choice(*chosen)
    return _choice(*chosen)


def _choice(trial: Trial, kept: int, n_directions: int) -> Choice:
    most = min(n_directions + 2, trial.data.n_directions)
    lacking = [max(trial.lacking(kept, number), 0.0) for number in range(n_directions, most + 1)]
    remains = [1.0] * n_directions
    remains += [min(after / max(before, 1e-300), 1.0) for before, after in pairwise(lacking)]
    return Choice(trial.data, trial.split(kept), n_directions, tuple(remains))


def _fits(
    trial: Trial, near: int, n_directions: int, enough: float
) -> Iterator[tuple[Trial, int]]:
    """Trials with better and better emphases, each with its split."""
    kept = _search_kept(trial, n_directions, enough, near)
    yield trial, kept
    best, least = trial, trial.lacking(kept, n_directions)
    spreads: FloatArray | None = None
    in_vain = 0
    for _ in range(_FIT_STEPS):
        seen = trial.proof(kept, n_directions).spreads
        spreads = seen if spreads is None else _INERTIA * spreads + (1.0 - _INERTIA) * seen
        if in_vain == _PATIENCE or not spreads.any():
            break
        data = refitted(trial.data, spreads, n_directions)
        if data.n_directions < n_directions:
            break
        trial = trial.with_data(data)
        in_vain += 1
        if trial.lacking(kept, n_directions) < least:
            best, least, in_vain = trial, trial.lacking(kept, n_directions), 0
            yield trial, kept
    yield best, _search_kept(best, n_directions, enough, kept)


def _search_kept(trial: Trial, n_directions: int, enough: float, near: int | None = None) -> int:
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
    while (
        not trial.is_late
        and best >= 0
        and step >= 1
        and trial.lacking(best, n_directions) > 0.1 * enough
    ):
        around = [n for n in (best - step, best + step) if 0 <= n <= largest]
        better = min([best, *around], key=lambda number: trial.lacking(number, n_directions))
        if better == best:
            step //= 2
        best = better
    return best
