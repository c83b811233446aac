"""Reliability: does every fit reach its gap, and is the answer right?

    python benchmarks/reliability.py agreement [count] [all|class]   random and degenerate problems against cvxpy
    python benchmarks/reliability.py steep [count] [seed]    random problems, alpha down to 0.05
    OWASVM_DATA=... python benchmarks/reliability.py grid    six datasets, linear and rbf, three weights
    OWASVM_DATA=... python benchmarks/reliability.py linear  1,350 linear fits on ionosphere folds

"agreement": n from 2 to 60; all convex families, alpha down to 0.05; C from 2^-15 to 2^15; linear,
rbf (widths 2^-7 to 2^7 of the data's scale), polynomial; duplicated rows, constant features, one
sample of a class, integer features, scales 1e-3 to 1e3. The objective has to equal an independent
solution by cvxpy and Clarabel (tests/oracles.py) within 1e-6, and the gap recomputed from the data
has to be at most 1e-6: objective of the classifier (w itself for linear models, the dual
coefficients for kernels), bound of the dual coefficients. With "class" deviations are ranked within
classes, for both losses, half of the problems with sample weights 1 to 3.

"steep": n from 2 to 600, nine kinds of data, all convex families with alpha down to 0.05, Gaussian
kernels of every width, C from 2^-15 to 2^15. Counts who misses the gap of 1e-6 after 1,000 steps.
"""  # noqa: E501

from common import DATASETS, GRID_C, GRID_SIGMA, FloatArray, gram, load, machine

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from owasvm.grouping import assign_costs
from owasvm.optimality import certificate, objective
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import relative_gap
from owasvm.solvers import solve
from owasvm.weights import owa_weights

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


def ranked_groups(
    y: FloatArray, ranks: str, family: str, alpha: float | None
) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Samples that are ranked together, with their weights, as the oracle takes them."""
    groups = [np.arange(y.size)] if ranks == "all" else [np.flatnonzero(y == s) for s in (-1, 1)]
    return [(group, owa_weights(group.size, family, alpha)) for group in groups]


def agreement(count: int, ranks: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.oracles import cvxpy_owa_svm, psd_factor, replicated

    rng = np.random.default_rng(2022)
    failures = 0
    worst = {"objective": 0.0, "gap": 0.0}
    steps = []
    for number in range(count):
        X, y = random_data(rng)
        K = random_gram(rng, X)
        family, alpha = FAMILIES[rng.integers(len(FAMILIES))]
        C = 2.0 ** rng.integers(-15, 16)
        loss, counts = "hinge", None
        if ranks == "class":
            loss = str(rng.choice(["hinge", "squared_hinge"]))
            counts = rng.integers(1, 4, size=y.size).astype(float) if rng.random() < 0.5 else None
        costs = assign_costs(y, family, alpha, C, counts, ranks=ranks)
        problem = OWAProblem(y, costs, features=X if K is None else None, gram=K, loss=loss)
        solution = solve(problem, tol=1e-6)
        proof = certificate(
            X,
            y,
            family,
            C,
            solution.dual,
            solution.intercept,
            gram=K,
            alpha=alpha,
            sample_weight=counts,
            loss=loss,
            ranks=ranks,
        )
        copies = np.ones(y.size, dtype=int) if counts is None else counts.astype(int)
        rows, signs = replicated(X if K is None else psd_factor(K), y, copies)
        groups = ranked_groups(signs, ranks, family, alpha)
        oracle = cvxpy_owa_svm(rows, signs, groups, C, power=1 if loss == "hinge" else 2)
        value = proof.objective
        if K is None:
            assert solution.coef is not None
            w = solution.coef
            value, _ = objective(problem, float(w @ w), X @ w, solution.intercept)
        gap = relative_gap(value, proof.lower_bound)
        # The oracle is off by up to its own gap.
        error = max(
            solution.objective - oracle.objective, oracle.lower_bound - solution.objective, 0.0
        ) / max(1.0, oracle.objective)
        worst["objective"] = max(worst["objective"], error)
        worst["gap"] = max(worst["gap"], gap)
        steps.append(solution.n_iter)
        if error > 1e-6 or gap > 1e-6:
            failures += 1
            print(
                f"{number}: n {y.size}, {family} {alpha}, C {C:g}, gram {K is not None}, {loss}, "
                f"sample weights {counts is not None}: ",
                f"error {error:.1e}, recomputed gap {gap:.1e}, own gap {solution.gap:.1e}",
            )
    print(
        f"{count} problems, {failures} failures; worst error of the objective "
        f"{worst['objective']:.1e}, worst recomputed gap {worst['gap']:.1e}; "
        f"Newton steps: median {np.median(steps):.0f}, most {max(steps)}"
    )


def steep_data(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Samples of nine shapes, standardised; labels with more or less noise."""
    n = int(np.exp(rng.uniform(np.log(2.0), np.log(600.0))))
    d = int(rng.integers(1, 12))
    normal = rng.normal(size=(n, d))
    X = [
        lambda: normal,
        lambda: rng.standard_t(2, size=(n, d)),
        lambda: np.exp(rng.uniform(0.5, 2.0) * normal),
        lambda: rng.uniform(0.0, 4.0, size=(n, d)),
        lambda: rng.integers(0, 5, size=(n, d)).astype(float),
        lambda: normal[rng.integers(0, max(n // 3, 1), size=n)],
        lambda: normal + 4.0 * rng.integers(0, 3, size=(n, 1)),
        lambda: rng.gamma(0.3, size=(n, d)),
        lambda: np.column_stack([normal, normal[:, 0] + 1e-3 * rng.normal(size=n)]),
    ][rng.integers(9)]()
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    shapes = (X[:, 0], X[:, 0] * X[:, -1], np.sin(3.0 * X[:, 0]), X.sum(axis=1) ** 2 - d)
    signal = shapes[rng.integers(len(shapes))]
    noise = rng.choice([0.0, 0.5, 2.0, 50.0]) * (signal.std() + 1e-12) * rng.normal(size=n)
    y = np.where(signal + noise > rng.choice([-1.0, 0.0, 1.0]) * signal.std(), 1.0, -1.0)
    y[0] = -y[-1]
    return X, y


def steep(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    solutions = []
    for number in range(count):
        X, y = steep_data(rng)
        family = ("basic", "superquantile", "exponential", "max-entropy", "quadratic")[
            rng.integers(5)
        ]
        alpha = {
            "basic": lambda: rng.uniform(0.05, 1.0),
            "superquantile": lambda: rng.uniform(0.05, 1.0),
            "exponential": lambda: 10.0 ** rng.uniform(-1.3, 0.7),
            "max-entropy": lambda: rng.uniform(0.5, 0.99),
            "quadratic": lambda: rng.uniform(0.05, 0.5),
        }[family]()
        gamma = 10.0 ** rng.uniform(-3.0, 1.5) / X.shape[1]
        C = 2.0 ** rng.uniform(-15.0, 15.0)
        costs = RankCosts(y.size, family, alpha, C)
        if not costs.convex:
            continue
        problem = OWAProblem(y, costs, gram=rbf_kernel(X, gamma=gamma))
        solutions.append(solve(problem))
        if solutions[-1].gap > 1e-6:
            print(
                f"{number}: n {y.size}, gamma {gamma:.3g}, {family} {alpha:.3g}, C {C:.3g}: "
                f"{solutions[-1].status}, gap {solutions[-1].gap:.1e}, "
                f"{solutions[-1].n_iter} steps",
                flush=True,
            )
    report(solutions)


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
        count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
        agreement(count, sys.argv[3] if len(sys.argv) > 3 else "all")
    elif part == "steep":
        numbers = [int(text) for text in sys.argv[2:]]
        steep(numbers[0] if numbers else 2000, numbers[1] if len(numbers) > 1 else 12)
    else:
        {"grid": grid, "linear": linear}[part]()
