"""What the tuning constants of the Newton solver are worth: each halved and doubled.

Prints, for every field of :class:`owasvm.solvers.newton.tuning.Tuning`, the Newton steps of a
fixed set of fits relative to those with the default, and how many fits missed their gap. Steps do
not depend on the machine or on what else runs on it; they are chaotic by some percent, so smaller
differences mean nothing.

    python benchmarks/sensitivity.py            # all fields
    python benchmarks/sensitivity.py --warm restart_share on_margin
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_hastie_10_2, make_moons
from sklearn.preprocessing import StandardScaler

from owasvm.kernels import Kernel
from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import Samples, prepare
from owasvm.solution import Solution
from owasvm.solvers import newton
from owasvm.solvers.contract import Settings
from owasvm.solvers.newton import tuning

WEIGHTS = (("basic", 0.3), ("basic", 0.8), ("exponential", 2.0), ("superquantile", 0.2))
CS = (0.03, 1.0, 30.0)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Samples and labels by name."""
    digits = load_digits(return_X_y=True)
    pair = np.isin(digits[1], (3, 8))
    cancer = load_breast_cancer(return_X_y=True)
    return {
        "moons": make_moons(300, noise=0.3, random_state=1),
        "hastie": make_hastie_10_2(300, random_state=1),
        "digits 3, 8": (digits[0][pair], digits[1][pair]),
        "breast cancer": (cancer[0][::2], cancer[1][::2]),
    }


def problems() -> list[OWAProblem]:
    """The fits: every data set with a wide and a narrow kernel, and linear."""
    found = []
    for X, labels in data_sets().values():
        X = StandardScaler().fit_transform(X)
        y = np.where(labels == labels.max(), 1.0, -1.0)
        width = 1.0 / X.shape[1]
        kernels = (Kernel("rbf", 0.1 * width), Kernel("rbf", 3.0 * width), Kernel("linear"))
        samples: list[Samples] = [prepare(X, kernel) for kernel in kernels]
        found += [
            OWAProblem(y, RankCosts(y.size, family, alpha, C), samples=one)
            for one in samples
            for family, alpha in WEIGHTS
            for C in CS
        ]
    return found


def run(fits: list[OWAProblem], chosen: tuning.Tuning, warm: bool) -> tuple[int, int]:
    """Newton steps of all fits, and how many missed their gap.

    Warm, each fit but those with the smallest C starts from the one before.
    """
    solutions: list[Solution] = []
    for number, problem in enumerate(fits):
        start = solutions[-1] if warm and number % len(CS) else None
        solutions.append(newton.solve(problem, Settings(warm_start=start), chosen))
    missed = sum(solution.gap > 1e-6 for solution in solutions)
    return sum(solution.n_iter for solution in solutions), missed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fields", nargs="*", help="fields to vary, all by default")
    parser.add_argument("--warm", action="store_true", help="along C, each from the fit before")
    arguments = parser.parse_args()
    wanted, warm = arguments.fields, arguments.warm
    fits = problems()
    steps, missed = run(fits, tuning.DEFAULT, warm)
    print(f"{len(fits)} fits, {steps} steps, {missed} missed")
    for field in fields(tuning.Tuning):
        value = getattr(tuning.DEFAULT, field.name)
        if isinstance(value, tuple) or (wanted and field.name not in wanted):
            continue
        cells = []
        for factor in (0.5, 2.0):
            changed = type(value)(factor * value)
            other, lost = run(fits, replace(tuning.DEFAULT, **{field.name: changed}), warm)
            cells.append(f"{100.0 * (other / steps - 1.0):+6.1f} % {lost - missed:+d}")
        print(f"{field.name:24} {value!s:>8}   half {cells[0]}   double {cells[1]}", flush=True)


if __name__ == "__main__":
    main()
