"""Compilation before the clock starts: nobody's time limit pays for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import Samples
from owasvm.solution import Solution
from owasvm.solvers import Settings

FloatArray = NDArray[np.float64]
Solver = Callable[[OWAProblem, Settings], Solution]


def compile_for(problem: OWAProblem, solver: Solver) -> None:
    """Let a solver meet a tiny problem of the same kind, once per process."""
    weighted = problem.costs.sample_weight is not None
    tiny = problem.samples.make_tiny(_draw_tiny())
    case = (solver, tiny.layout, problem.costs.convex, problem.loss)
    if (*case, weighted) not in _met:
        _met.add((*case, weighted))
        _meet(solver, tiny, problem.costs.convex, weighted, problem.loss)


_met: set[tuple[Any, ...]] = set()


def _draw_tiny() -> FloatArray:
    return np.random.default_rng(0).normal(size=(12, 2))


def _meet(solver: Solver, samples: Samples, convex: bool, weighted: bool, loss: str) -> None:
    X = _draw_tiny()
    noise = np.random.default_rng(1).normal(size=12)
    y = np.where(X[:, 0] + noise > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    mass = np.full(12, 2.0) if weighted else None
    costs = RankCosts(12, "quadratic", 0.2 if convex else 0.8, 1.0, mass)
    settings = Settings(max_iter=1000 if convex else 2)
    solver(OWAProblem(y, costs, samples=samples, loss=loss), settings)
