"""Compilation before the clock starts: nobody's time limit pays for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.grouping import GroupedCosts, assign_costs
from owasvm.problem import OWAProblem
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
    ranks = "class" if isinstance(costs, GroupedCosts) else "all"
    case = (costs.convex, weighted, problem.loss, ranks)
    if (solver, problem.samples.layout, *case) not in _met:
        _met.add((solver, problem.samples.layout, *case))
        _meet(solver, problem.samples.make_tiny(_draw()), *case)


def _draw() -> FloatArray:
    return np.random.default_rng(0).normal(size=(12, 2))


def _meet(
    solver: Solver, samples: Samples, convex: bool, weighted: bool, loss: str, ranks: str
) -> None:
    noise = np.random.default_rng(1).normal(size=12)
    y = np.where(_draw()[:, 0] + noise > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    mass = np.full(12, 2.0) if weighted else None
    costs = assign_costs(y, "quadratic", 0.2 if convex else 0.8, 1.0, mass, ranks=ranks)
    problem = OWAProblem(y, costs, samples=samples, loss=loss)
    solver.solve(problem, Settings(options=solver.tiny_options()))
