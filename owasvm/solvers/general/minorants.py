r"""Convex problems below a general one.

``Phi_m <= Phi_c`` for every non-decreasing m whose tail sums stay below those of c
(:mod:`~owasvm.solvers.general.rank_split`), so the optimum of each such problem is a lower bound.
The best m is one side of a saddle point: given a solution, the m that charges it the most; given
m, the solution. Where groups are ranked apart every group has a minorant, and their sum is a lower
bound; vectors by rank then hold the groups one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import costs_by_profile
from owasvm.grouping import GroupedCosts, parts_of
from owasvm.problem import Costs, OWAProblem
from owasvm.rounding import accumulated
from owasvm.solution import Solution
from owasvm.solvers import newton
from owasvm.solvers.clock import Clock
from owasvm.solvers.general.candidates import Candidate, evaluate
from owasvm.solvers.general.rank_split import best_minorant, pointwise_minorant
from owasvm.solvers.general.tuning import MinorantTuning

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConvexBound:
    """A convex problem below ours, solved."""

    minorant: FloatArray
    solution: Solution
    candidate: Candidate


class Minorants:
    """Convex problems below one, each better than the last."""

    def __init__(self, problem: OWAProblem, clock: Clock, tuning: MinorantTuning) -> None:
        self._problem = problem
        self._clock = clock
        self._tuning = tuning
        self._parts = parts_of(problem.costs)
        self._profiles = [part.profile() for _, part in self._parts]
        self._costs = np.concatenate([profile.density for profile in self._profiles])
        self._starts = np.cumsum([profile.density.size for profile in self._profiles])[:-1]
        self._cuts: list[tuple[float, FloatArray]] = []
        self.solved: list[ConvexBound] = []
        self.n_newton_steps = 0

    @property
    def bound(self) -> float:
        """The largest lower bound so far; no objective is negative."""
        return self.best.solution.lower_bound if self.solved else 0.0

    @property
    def best(self) -> ConvexBound:
        """The problem with the largest optimum so far."""
        return max(self.solved, key=lambda bound: bound.solution.lower_bound)

    def improve(self) -> bool:
        """Solve one more convex problem; False when there is none worth it, or no more."""
        if not self.solved:
            below = [pointwise_minorant(profile.density) for profile in self._profiles]
            self._solve(np.concatenate(below), self._clock.settings.warm_start)
            return True
        last, current = self.solved[-1], self.best.minorant
        deviations = self._rank(last.candidate.deviations)
        parts = zip(self._parts, self._profiles, np.split(deviations, self._starts), strict=True)
        responses = []
        for (_, part), profile, own in parts:
            width = None if part.sample_weight is None else profile.width
            responses.append(best_minorant(profile.density, own, width))
        response = np.concatenate(responses)
        gain = float((response - current) @ deviations)
        if gain <= 0.1 * self._clock.settings.tol * max(1.0, last.solution.objective):
            return False
        shares = np.linspace(0.0, 1.0, self._tuning.line_points)[1:]
        # Every solution so far bounds, for all minorants at once, how much can be gained.
        models = [
            half_norm + current @ cut + shares * float((response - current) @ cut)
            for half_norm, cut in self._cuts
        ]
        share = float(shares[int(np.argmax(np.min(models, axis=0)))])
        before = self.bound
        self._solve((1.0 - share) * current + share * response, last.solution)
        missing = max(last.candidate.objective - before, 0.0)
        return self.solved[-1].solution.lower_bound > before + self._tuning.worth * missing

    def _rank(self, deviations: FloatArray) -> FloatArray:
        """Deviations sorted ascending, or by slices of mass, group by group."""
        return np.concatenate(
            [
                profile.spread(deviations[group], part.sample_weight)
                for profile, (group, part) in zip(self._profiles, self._parts, strict=True)
            ]
        )

    def _assign(self, densities: FloatArray) -> Costs:
        """Costs of the groups, one after the other, as such."""
        charged = [
            costs_by_profile(part.sample_weight, profile.with_density(own))
            for (_, part), profile, own in zip(
                self._parts, self._profiles, np.split(densities, self._starts), strict=True
            )
        ]
        if len(charged) == 1:
            return charged[0]
        groups = [group for group, _ in self._parts]
        return GroupedCosts(list(zip(groups, charged, strict=True)), self._problem.costs.C)

    def _solve(self, minorant: FloatArray, known: Solution | None) -> None:
        problem = self._problem
        # The sums below which a minorant has to stay are rounded.
        minorant = (1.0 - accumulated(4 * minorant.size)) * minorant
        # Where nothing is left below the costs: a classical SVM for a start, and no bound.
        is_below = all(own[-1] > 0.0 for own in np.split(minorant, self._starts))
        charged = minorant
        if not is_below:
            mass = sum(float(profile.edges[-1]) for profile in self._profiles)
            charged = np.full(minorant.size, problem.costs.total / mass)
        settings = replace(
            self._clock.settings,
            time_limit=self._clock.remaining,
            warm_start=known,
            callback=None,
        )
        solution = newton.solve(problem.with_costs(self._assign(charged)), settings)
        self.n_newton_steps += solution.n_iter
        candidate = evaluate(problem, solution.dual, solution.intercept)
        if not is_below:
            solution = replace(solution, dual=np.zeros(problem.n_samples), lower_bound=0.0)
        ranked = self._rank(candidate.deviations)
        self._cuts.append((candidate.objective - float(self._costs @ ranked), ranked))
        self.solved.append(ConvexBound(minorant, solution, candidate))
