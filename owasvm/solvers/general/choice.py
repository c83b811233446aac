"""Which relaxation suits a problem: the split of the costs, the emphases, the directions.

All are judged by what the bound lacks at some places: the coordinates of the incumbent, those of
the solution of the best convex problem below ours, which is where bounds tend to be lowest, and
those at which a tree has found them lowest. No box around them can prove more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.emphasis import emphasise_margin, refit_emphases
from owasvm.solvers.general.geometry import CentredData, Frame, slack_ranges
from owasvm.solvers.general.rank_split import (
    convex_envelope,
    rising_part,
    tail_sums,
    tangent_minorant,
)
from owasvm.solvers.general.relaxation import Box, BoxBound, Relaxer, Split
from owasvm.solvers.general.search import Search

FloatArray = NDArray[np.float64]


class Trial:
    """What splits and numbers of directions lack with the emphases of `data`.

    At the incumbent, at the solution of the best minorant, and at other `places`.
    """

    def __init__(
        self, search: Search, data: CentredData, places: Sequence[Candidate] = ()
    ) -> None:
        self.search = search
        self.data = data
        self.places = places
        self._slacks = slack_ranges(search.problem, data, search.incumbent.objective)
        self._known: dict[tuple[int, int], BoxBound] = {}

    def split(self, n_kept: int) -> Split:
        """The costs, all rises kept (-1), or a tangent minorant that keeps `n_kept` costs."""
        costs, profile = self.search.costs, self.search.profile
        width = None if self.search.problem.costs.sample_weight is None else profile.width
        rising = rising_part(costs) if n_kept < 0 else tangent_minorant(costs, n_kept, width)
        tail = tail_sums(costs - rising, width)
        return Split(rising, convex_envelope(tail, profile.edges), profile.edges)

    def bound(self, n_kept: int, n_directions: int) -> BoxBound:
        """The lowest of the bounds at the places."""
        key = n_kept, n_directions
        if key not in self._known:
            useful = self.search.tuning.relaxation.useful_curvature
            frame = Frame(self.data, n_directions, useful)
            relaxer = Relaxer(self.search, frame, self.split(n_kept))
            places = (self.search.incumbent, self.search.minorants.best.candidate, *self.places)
            bounds = (self._bound_at(place, relaxer, n_directions) for place in places)
            self._known[key] = min(bounds, key=lambda bound: bound.value)
        return self._known[key]

    def _bound_at(self, place: Candidate, relaxer: Relaxer, n_directions: int) -> BoxBound:
        at = self.data.coordinates(place.coef, place.intercept, n_directions)
        start, box = relaxer.start(place.coef, at), Box(at, at, *self._slacks)
        n_rounds = self.search.tuning.choice.n_rounds
        return relaxer.bound(box, start, self.search.incumbent.objective, n_rounds)[0]

    def lacking(self, n_kept: int, n_directions: int) -> float:
        """Distance of the lowest bound to the incumbent."""
        return self.search.incumbent.objective - self.bound(n_kept, n_directions).value


@dataclass(frozen=True)
class Choice:
    """A relaxation: emphases and split, fitted for a number of directions.

    ``remains[k]`` is the share still lacking when direction ``k + 1`` becomes a coordinate. The
    split keeps ``n_kept`` of the last costs.
    """

    data: CentredData
    split: Split
    n_kept: int
    n_directions: int
    remains: tuple[float, ...]

    def lacking(self, search: Search, places: Sequence[Candidate] = ()) -> float:
        """What its bounds lack at `places`, too, before more directions are taken in."""
        return Trial(search, self.data, places).lacking(self.n_kept, self.n_directions)


def choose_relaxation(
    search: Search, share_of_time: float, places: Sequence[Candidate] = ()
) -> Choice:
    """Emphases and split with which the bounds that matter most are best.

    They are fitted for no direction among the coordinates, for one and more. Every direction must
    make up for the boxes it multiplies: by the share that is closed of the gap to the best convex
    problem below ours or, where most of it is closed, by what is left. Boxes take in directions
    when they need them.

    Parameters
    ----------
    search : Search
        The search.
    share_of_time : float
        Share of the time limit after which the best choice so far will do.
    places : sequence of Candidate, default=()
        Where bounds matter beside the incumbent and the solution of the best minorant.
    """
    problem, clock, tuning = search.problem, search.clock, search.tuning.choice
    best = search.incumbent
    enough = tuning.closed_share * search.settings.mip_gap * max(1.0, abs(best.objective))
    gap = max(best.objective - search.minorants.bound, enough)
    trial = Trial(search, CentredData(problem), places)
    kept = _look_at_kept(trial)
    chosen, least = (trial, kept, 0), trial.lacking(kept, 0)
    closed = 1.0 - least / gap
    if least <= enough or clock.has_spent(share_of_time):
        return _describe(*chosen)
    slack = 1.0 - problem.y * (problem.scores(best.coef) + best.intercept)
    start = Trial(search, emphasise_margin(problem, slack, search.tuning.emphasis), places)
    # With these emphases fewer directions may be left of data of low rank.
    most = min(tuning.max_directions, trial.data.n_directions, start.data.n_directions)
    for n_directions in range(most + 1):
        worth, toll = tuning.direction_share**n_directions, tuning.direction_toll**n_directions
        if worth <= closed and enough * toll >= least:
            break
        for fit, fit_kept in _fit(start, kept, n_directions, enough):
            lacking = fit.lacking(fit_kept, n_directions)
            if lacking <= enough:
                return _describe(fit, fit_kept, n_directions)
            if (1.0 - lacking / gap) * worth > closed or lacking * toll < least:
                chosen = fit, fit_kept, n_directions
                closed, least = (1.0 - lacking / gap) * worth, lacking * toll
            if clock.has_spent(share_of_time):
                return _describe(*chosen)
    return _describe(*chosen)


def _describe(trial: Trial, kept: int, n_directions: int) -> Choice:
    most = min(n_directions + 2, trial.data.n_directions)
    lacking = [max(trial.lacking(kept, number), 0.0) for number in range(n_directions, most + 1)]
    remains = [1.0] * n_directions
    remains += [min(after / max(before, 1e-300), 1.0) for before, after in pairwise(lacking)]
    return Choice(trial.data, trial.split(kept), kept, n_directions, tuple(remains))


def _fit(trial: Trial, near: int, n_directions: int, enough: float) -> Iterator[tuple[Trial, int]]:
    """Trials with better and better emphases, each with its split."""
    search, tuning = trial.search, trial.search.tuning.choice
    kept = _search_kept(trial, near, n_directions, enough)
    yield trial, kept
    best, least = trial, trial.lacking(kept, n_directions)
    spreads = trial.bound(kept, n_directions).spreads
    in_vain = 0
    for _ in range(tuning.fit_steps):
        if in_vain == tuning.patience or not spreads.any():
            break
        data = refit_emphases(trial.data, spreads, n_directions, search.tuning.emphasis)
        if data.n_directions < n_directions:
            break
        trial = Trial(search, data, trial.places)
        in_vain += 1
        if trial.lacking(kept, n_directions) < least:
            best, least, in_vain = trial, trial.lacking(kept, n_directions), 0
            yield trial, kept
        seen = trial.bound(kept, n_directions).spreads
        spreads = tuning.inertia * spreads + (1.0 - tuning.inertia) * seen
    yield best, _search_kept(best, kept, n_directions, enough)


def _look_at_kept(trial: Trial) -> int:
    """Number of last costs that the rising part should keep, -1 for all rises: a coarse look."""
    largest = _most_kept(trial)
    n_looks = trial.search.tuning.choice.n_kept
    grid = {-1, *np.geomspace(1, max(largest, 1), n_looks).astype(int).tolist()}
    candidates = sorted(number for number in grid if number <= largest)
    return min(candidates, key=lambda number: trial.lacking(number, 0))


def _search_kept(trial: Trial, near: int, n_directions: int, enough: float) -> int:
    """The same, downhill from a number nearby.

    What is lacking falls and rises again with that number.
    """
    clock, largest = trial.search.clock, _most_kept(trial)
    best = min({-1, near}, key=lambda number: trial.lacking(number, n_directions))
    step = max(best // 3, 1)
    while best >= 0 and step >= 1 and trial.lacking(best, n_directions) > 0.1 * enough:
        if clock.expired:
            break
        around = [n for n in (best - step, best + step) if 0 <= n <= largest]
        better = min([best, *around], key=lambda number: trial.lacking(number, n_directions))
        if better == best:
            step //= 2
        best = better
    return best


def _most_kept(trial: Trial) -> int:
    """How many last costs never fall towards the largest deviation."""
    return int(np.argmin(trial.search.costs[::-1]))
