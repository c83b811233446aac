"""Reliability: does every fit reach its gap, and is the answer right?

    python benchmarks/reliability.py agreement [count]   random and degenerate problems against cvxpy
    OWASVM_DATA=... python benchmarks/reliability.py grid    six datasets, linear and rbf, three weights
    OWASVM_DATA=... python benchmarks/reliability.py linear  1,350 linear fits on ionosphere folds

"agreement": n from 2 to 60; all convex families, alpha down to 0.05; C from 2^-15 to 2^15; linear,
rbf (widths 2^-7 to 2^7 of the data's scale), polynomial; duplicated rows, constant features, one
sample of a class, integer features, scales 1e-3 to 1e3. The objective has to equal an independent
solution by cvxpy and Clarabel (tests/oracles.py) within 1e-6, and the gap recomputed from the data
has to be at most 1e-6: objective of the classifier (w itself for linear models, the dual
coefficients for kernels), bound of the dual coefficients.
"""  # noqa: E501

from common import DATASETS, GRID_C, GRID_SIGMA, FloatArray, gram, load, machine

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from owasvm.optimality import certificate, objective
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import relative_gap
from owasvm.solvers import solve

FAMILIES: list[tuple[str, float | None]] = [
    ("uniform", None),
    ("basic", 0.05),
    ("basic", 0.2),
    ("basic", 0.6),
    ("exponential", 0.05),
    ("exponential", 0.8),
    ("exponential", 3.0),
    ("quadratic", 0.05),
    ("quadratic", 0.2),
    ("superquantile", 0.05),
    ("superquantile", 0.3),
    ("max-entropy", 0.8),
    ("max-entropy", 0.97),
]


def random_data(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    n_samples, n_features = rng.integers(2, 61), rng.integers(1, 6)
    X = rng.normal(size=(n_samples, n_features)) * 10.0 ** rng.integers(-3, 4)
    noise = rng.choice([0.0, 0.5, 2.0]) * np.abs(X).mean() * rng.normal(size=n_samples)
    y = np.where(X[:, 0] * rng.normal() + noise > 0, 1.0, -1.0)
    kind = rng.integers(6)
    if kind == 0:
        X[n_samples // 2 :] = X[: n_samples - n_samples // 2]
    elif kind == 1:
        X[:, -1] = 1.0
    elif kind == 2:
        y[:] = -1.0
        y[0] = 1.0
    elif kind == 3:
        X = np.round(X)
    if np.all(y == y[0]):
        y[0] = -y[0]
    return X, y


def random_gram(rng: np.random.Generator, X: FloatArray) -> FloatArray | None:
    kind = rng.integers(3)
    if kind == 0:
        return None
    if kind == 1:
        width = 2.0 ** rng.integers(-7, 8) * max(float(X.std()), 1e-9)
        return rbf_kernel(X, gamma=1.0 / (2.0 * width**2))
    return (X @ X.T / max(float(np.abs(X).max()), 1e-9) ** 2 + 1.0) ** 2


def agreement(count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.oracles import cvxpy_owa_svm, psd_factor

    rng = np.random.default_rng(2022)
    failures = 0
    worst = {"objective": 0.0, "gap": 0.0}
    steps = []
    for number in range(count):
        X, y = random_data(rng)
        K = random_gram(rng, X)
        family, alpha = FAMILIES[rng.integers(len(FAMILIES))]
        C = 2.0 ** rng.integers(-15, 16)
        costs = RankCosts(y.size, family, alpha, C)
        problem = OWAProblem(y, costs, features=X if K is None else None, gram=K)
        solution = solve(problem, tol=1e-6)
        assert costs.ascending is not None
        weights = costs.ascending / C
        proof = certificate(
            X, y, weights, C, solution.dual, solution.intercept, gram=K, alpha=None
        )
        oracle = cvxpy_owa_svm(X if K is None else psd_factor(K), y, weights, C)
        value = proof.objective
        if K is None:
            assert solution.coef is not None
            w = solution.coef
            value, _ = objective(problem, float(w @ w), X @ w, solution.intercept)
        gap = relative_gap(value, proof.lower_bound)
        error = abs(solution.objective - oracle.objective) / max(1.0, oracle.objective)
        worst["objective"] = max(worst["objective"], error)
        worst["gap"] = max(worst["gap"], gap)
        steps.append(solution.n_iter)
        if error > 1e-6 or gap > 1e-6:
            failures += 1
            print(
                f"{number}: n {y.size}, {family} {alpha}, C {C:g}, gram {K is not None}: ",
                f"error {error:.1e}, recomputed gap {gap:.1e}, own gap {solution.gap:.1e}",
            )
    print(
        f"{count} problems, {failures} failures; worst error of the objective "
        f"{worst['objective']:.1e}, worst recomputed gap {worst['gap']:.1e}; "
        f"Newton steps: median {np.median(steps):.0f}, most {max(steps)}"
    )


def report(solutions: list[Any]) -> None:
    missed = [s for s in solutions if s.gap > 1e-6]
    print(
        f"{len(solutions)} fits, {len(missed)} missed the gap of 1e-6; worst gap "
        f"{max(s.gap for s in solutions):.1e}; Newton steps: median "
        f"{np.median([s.n_iter for s in solutions]):.0f}, most "
        f"{max(s.n_iter for s in solutions)}"
    )


def grid() -> None:
    solutions = []
    for name in DATASETS:
        X, y = load(name)
        for sigma in GRID_SIGMA:
            K = gram(X, sigma)
            for C, (family, alpha) in itertools.product(
                GRID_C, [("basic", 0.2), ("basic", 0.6), ("exponential", 0.8)]
            ):
                problem = OWAProblem(y, RankCosts(y.size, family, alpha, C), gram=K)
                solutions.append(solve(problem))
    report(solutions)


def linear() -> None:
    X, y = load("ionosphere")
    folds = StratifiedKFold(10, shuffle=True, random_state=2)
    weights = [("basic", a) for a in (0.2, 0.4, 0.6, 0.8)]
    weights += [("exponential", a) for a in (0.2, 0.4, 0.6, 0.8)] + [("quadratic", 0.2)]
    solutions = []
    for train, _ in folds.split(X, y):
        for (family, alpha), exponent in itertools.product(weights, range(-7, 8)):
            costs = RankCosts(train.size, family, alpha, 2.0**exponent)
            solutions.append(solve(OWAProblem(y[train], costs, features=X[train])))
    report(solutions)


if __name__ == "__main__":
    print(machine())
    part = sys.argv[1] if len(sys.argv) > 1 else "agreement"
    if part == "agreement":
        agreement(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    else:
        {"grid": grid, "linear": linear}[part]()
