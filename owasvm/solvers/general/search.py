"""All that a search for the optimum knows, in one object that goes from part to part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import judge_general
from owasvm.problem import OWAProblem
from owasvm.profiles import Profile
from owasvm.samples import Memory
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers import newton
from owasvm.solvers._interrupts import note_interrupt
from owasvm.solvers.clock import Clock
from owasvm.solvers.contract import Settings
from owasvm.solvers.general.candidates import Candidate, evaluate
from owasvm.solvers.general.minorants import Minorants
from owasvm.solvers.general.tuning import Tuning

FloatArray = NDArray[np.float64]

# Share of the gap that a proof may use up; the rest is for rounding.
_GAP_SHARE = 0.999


class Search:
    """The state of a search: a problem, what is known about its optimum, and limits.

    Parameters
    ----------
    problem : OWAProblem
        A problem.
    settings : Settings
        Tolerances and limits.
    tuning : Tuning, default=Tuning()
        The numbers that were chosen.

    Attributes
    ----------
    clock : Clock
        Time and interruptions.
    operator, memory : Operator, Memory
        The data, and what solving with them has taught.
    random : numpy.random.Generator
        Where noise comes from.
    accuracy : float
        Relative accuracy of convex problems that bound.
    minorants : Minorants
        Convex problems below ours.
    incumbent : Candidate
        The best classifier known.
    floor : float
        What trees have proven.
    n_iter : int
        Nodes, or what the solver counts.
    stage : str
        What it is doing: "bound", "descent", "trail" or "node".
    """

    def __init__(
        self, problem: OWAProblem, settings: Settings, tuning: Tuning | None = None
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.tuning = Tuning() if tuning is None else tuning
        self.clock = Clock.start(settings)
        self.operator = problem.samples.operator().condense(problem.n_samples)
        self.memory = Memory()
        self.random = _make_generator(settings.random_state)
        self.accuracy = min(0.1 * settings.mip_gap, 1e-6)
        self.minorants = Minorants(problem, self.clock, self.tuning.minorants)
        nothing = np.zeros(problem.n_samples)
        self.incumbent = evaluate(problem, nothing, problem.constant_classifier[0])
        self.floor = 0.0
        self.n_iter = 0
        self.stage = "bound"

    @cached_property
    def profile(self) -> Profile:
        """Costs by rank, with sample weights by slices of mass; an error where groups differ."""
        return self.problem.costs.profile()

    @property
    def costs(self) -> FloatArray:
        """The costs of a unit in the profile, ascending."""
        return self.profile.density

    @property
    def bound(self) -> float:
        """The largest lower bound known."""
        return max(self.floor, self.minorants.bound)

    @property
    def target(self) -> float:
        """Bound at which nothing is left to prove."""
        upper = self.incumbent.objective
        return upper - _GAP_SHARE * self.settings.mip_gap * max(1.0, abs(upper))

    @property
    def is_proven(self) -> bool:
        """Whether the gap is closed."""
        return self.bound >= self.target

    def raise_floor(self, bound: float) -> None:
        """Take note of what a tree has proven: nothing is better than that or the incumbent."""
        self.floor = max(self.floor, min(bound, self.incumbent.objective))

    def accept(self, candidate: Candidate) -> None:
        """Take a classifier for incumbent if it is better."""
        if candidate.objective < self.incumbent.objective:
            self.incumbent = candidate

    def report(self) -> bool:
        """Tell the callback; False when it wants to stop."""
        callback = self.settings.callback
        if callback is None:
            return True
        info = {
            "stage": self.stage,
            "n_iter": self.n_iter,
            "objective": self.incumbent.objective,
            "lower_bound": self.bound,
            "gap": relative_gap(self.incumbent.objective, self.bound),
            "time": self.clock.elapsed,
        }
        return callback(info) is not False

    def finish(self, solver: str, ended: Status) -> Solution:
        """The solution, all figures of it from the judge; `ended` is what the solver believes."""
        best, target = self.incumbent, self.settings.mip_gap
        found = judge_general(self.problem, best.coef, best.intercept, self.bound, target)
        return found.as_solution(
            found.decide_status(target, ended),
            solver,
            # What is proven at the root took the root.
            n_iter=max(self.n_iter, 1),
            solve_time=self.clock.elapsed,
            details={
                "minorant_bound": self.minorants.bound,
                "newton_steps": self.minorants.n_newton_steps,
            },
        )


def _make_generator(random_state: Any) -> np.random.Generator:
    """Noise that is the same every time unless somebody asks for other noise."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(0 if random_state is None else random_state)


def run_search(
    solver: str,
    steps: Callable[[Search], Status],
    problem: OWAProblem,
    settings: Settings,
    tuning: Tuning,
) -> Solution:
    """Solve a problem with any weights by `steps`, which take a search and say how it ended.

    Convex weights are left to Newton's method.
    """
    if problem.costs.convex:
        return replace(newton.solve(problem, settings), solver=solver)
    search = Search(problem, settings, tuning)
    ended = Status.INTERRUPTED
    try:
        ended = steps(search)
    except (KeyboardInterrupt, SystemError) as error:
        note_interrupt(error)
    return search.finish(solver, ended)
