"""Compilation before the clock starts: nobody's time limit pays for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import scipy.sparse as sp

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Solution
from owasvm.solvers import Settings

Solver = Callable[[OWAProblem, Settings], Solution]


def compile_for(problem: OWAProblem, solver: Solver) -> None:
    """Let a solver meet a tiny problem of the same kind, once a process."""
    kind = "gram" if problem.gram is not None else "dense"
    if sp.issparse(problem.features):
        kind = "sparse"
    _meet_a_tiny_problem(
        solver, kind, problem.costs.convex, problem.costs.sample_weight is not None
    )


@cache
def _meet_a_tiny_problem(solver: Solver, kind: str, convex: bool, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = np.where(X[:, 0] + rng.normal(size=12) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    mass = np.full(12, 2.0) if weighted else None
    costs = RankCosts(12, "quadratic", 0.2 if convex else 0.8, 1.0, mass)
    settings = Settings(max_iter=1000 if convex else 2)
    if kind == "gram":
        solver(OWAProblem(y, costs, gram=X @ X.T, known_definite=True), settings)
    else:
        solver(OWAProblem(y, costs, sp.csr_matrix(X) if kind == "sparse" else X), settings)
