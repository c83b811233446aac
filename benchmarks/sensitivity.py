"""How much the numbers of the tunings matter: each halved and doubled on a fixed set of problems.

General weights: twelve problems of 30 to 80 samples, quadratic, trigonometric, trimmed and falling
weights, linear models and Gaussian kernels, each with a limit on nodes. For every number of
:class:`owasvm.solvers.general.tuning.Tuning` a line says how nodes, processor time and gap change:
geometric means over the problems, 1 for no change, and the largest rise of an objective.
Compilation is excluded.

    python benchmarks/sensitivity.py                        all numbers
    python benchmarks/sensitivity.py descent choice.n_kept  some parts or numbers only
"""

from common import FloatArray, gram, machine, markdown_table  # first: it limits the threads

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import branch_and_bound, solve
from owasvm.solvers.general.tuning import Tuning

MIP_GAP = 1e-4
FACTORS = (0.5, 2.0)
SHAPES: tuple[tuple[str, float | None], ...] = (
    ("quadratic", 0.8),
    ("trigonometric", 0.8),
    ("trimmed", 0.1),
    ("falling", None),
)


@dataclass(frozen=True)
class Outcome:
    """What a solve cost and found."""

    nodes: int
    seconds: float
    gap: float
    objective: float


def noisy_data(n_samples: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Three features, the first of which says something about the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    return X, np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)


def make_problems() -> Iterator[OWAProblem]:
    """The fixed set: every shape of weights at three sizes."""
    for k, (family, alpha) in enumerate(SHAPES):
        for n_samples, sigma, C in ((30, 1.0, 0.3), (50, None, 0.1), (80, 2.0, 2.0)):
            X, y = noisy_data(n_samples, seed=k)
            weights: Any = family
            if family == "falling":
                weights = np.sort(np.random.default_rng(k).exponential(size=n_samples))[::-1]
            costs = RankCosts(n_samples, weights, alpha, C)
            if sigma is None:
                yield OWAProblem(y, costs, features=X)
            else:
                yield OWAProblem(y, costs, gram=gram(X, sigma))


def measure(problem: OWAProblem, tuning: Tuning, max_nodes: int) -> Outcome:
    """Solve a problem with a tuning."""
    with patch.object(branch_and_bound, "TUNING", tuning):
        begun = time.process_time()
        options = {"max_nodes": max_nodes}
        found = solve(problem, "branch-and-bound", mip_gap=MIP_GAP, options=options)
        seconds = time.process_time() - begun
    # Gaps below the one asked for are all the same.
    return Outcome(found.n_iter, seconds, max(found.gap, MIP_GAP), found.objective)


def scale(value: Any, factor: float) -> Any:
    """A number, or all of a tuple, times a factor; whole numbers stay whole and positive."""
    if isinstance(value, tuple):
        return tuple(scale(entry, factor) for entry in value)
    return max(round(value * factor), 1) if isinstance(value, int) else value * factor


def vary(tuning: Tuning, wanted: list[str]) -> Iterator[tuple[str, Any, Tuning]]:
    """Tunings that differ in one number: its name, its new value."""
    for part in fields(tuning):
        numbers = getattr(tuning, part.name)
        inner = [field.name for field in fields(numbers)] if is_dataclass(numbers) else [""]
        for name in inner:
            full = f"{part.name}.{name}".rstrip(".")
            if wanted and not {part.name, full} & set(wanted):
                continue
            for factor in FACTORS:
                value = scale(getattr(numbers, name) if name else numbers, factor)
                changed = replace(numbers, **{name: value}) if name else value
                yield full, value, replace(tuning, **{part.name: changed})


def compare(before: list[Outcome], after: list[Outcome]) -> list[str]:
    """Ratios of geometric means, and the largest relative rise of an objective."""

    def ratio(name: str) -> str:
        logs = [
            np.log(max(getattr(b, name), 1e-9) / max(getattr(a, name), 1e-9))
            for a, b in zip(before, after, strict=True)
        ]
        return f"{np.exp(np.mean(logs)):.2f}"

    rises = [
        (b.objective - a.objective) / max(1.0, a.objective)
        for a, b in zip(before, after, strict=True)
    ]
    return [ratio("nodes"), ratio("seconds"), ratio("gap"), f"{max(rises):+.1e}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wanted", nargs="*", help="parts, or numbers as part.number; all if none")
    parser.add_argument("--max-nodes", type=int, default=120, help="nodes per problem at most")
    arguments = parser.parse_args()
    problems = list(make_problems())
    tuning = Tuning()
    print(machine())
    for _ in ("compilation", "measured"):
        before = [measure(problem, tuning, arguments.max_nodes) for problem in problems]
    for outcome in before:
        print(outcome)
    print(markdown_table(["number", "value", "nodes", "time", "gap", "objective"], []))
    for name, value, changed in vary(tuning, arguments.wanted):
        after = [measure(problem, changed, arguments.max_nodes) for problem in problems]
        text = f"{value:.3g}" if isinstance(value, (int, float)) else str(value)
        print("| " + " | ".join([name, text, *compare(before, after)]) + " |", flush=True)


if __name__ == "__main__":
    main()
