"""Compilation before the clock starts: nobody's time limit pays for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import Samples
from owasvm.solvers.contract import Settings, Solver

FloatArray = NDArray[np.float64]

_met: set[tuple[Any, ...]] = set()


def compile_for(problem: OWAProblem, solver: Solver) -> None:
    """Let a solver meet a tiny problem of the same kind, once per process, if it compiles."""
    if not solver.compiles:
        return
    costs = problem.costs
    weighted = costs.sample_weight is not None
    case = (solver, problem.samples.layout, costs.convex, weighted, problem.loss)
    if case not in _met:
        _met.add(case)
        _meet(solver, problem.samples.make_tiny(_draw()), costs.convex, weighted, problem.loss)


def _draw() -> FloatArray:
    return np.random.default_rng(0).normal(size=(12, 2))


def _meet(solver: Solver, samples: Samples, convex: bool, weighted: bool, loss: str) -> None:
    noise = np.random.default_rng(1).normal(size=12)
    y = np.where(_draw()[:, 0] + noise > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    mass = np.full(12, 2.0) if weighted else None
    costs = RankCosts(12, "quadratic", 0.2 if convex else 0.8, 1.0, mass)
    problem = OWAProblem(y, costs, samples=samples, loss=loss)
    solver.solve(problem, Settings(options=solver.tiny_options()))
