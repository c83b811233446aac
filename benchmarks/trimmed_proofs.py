"""Proofs for trimmed weights with few samples: how many, and how long they take.

Noisy labels in two dimensions or with a Gaussian kernel, alpha 0.1 and 0.2, C = 0.1, 1, 10, two
seeds per case, branch and bound with its default number of nodes and 20 s. ``--tree`` grows the
tree of Newton nodes alone, without counting assignments out.

    python benchmarks/trimmed_proofs.py [--tree] [n ...]
"""

from common import machine

import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC
from owasvm.solvers import branch_and_bound

SIZES = (20, 30, 40, 50, 60)


def noisy(n_samples: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A linear rule with noise and 15% of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n_samples) > 0, 1, -1)
    y[rng.random(n_samples) < 0.15] *= -1
    y[:2] = [1, -1]
    return X, y


def main(sizes: list[int]) -> None:
    print(machine())
    warnings.simplefilter("ignore", ConvergenceWarning)
    OWASVC(weights="trimmed", alpha=0.2, solver="branch-and-bound").fit(*noisy(20, 2, 0))
    for n_samples in sizes:
        for kernel, n_features in (("linear", 1), ("linear", 2), ("linear", 3), ("rbf", 2)):
            times, gaps = [], []
            for alpha in (0.1, 0.2):
                for C in (0.1, 1.0, 10.0):
                    for seed in (100, 101):
                        X, y = noisy(n_samples, n_features, seed)
                        clf = OWASVC(
                            C,
                            weights="trimmed",
                            alpha=alpha,
                            kernel=kernel,
                            solver="branch-and-bound",
                            time_limit=20.0,
                        )
                        begun = time.process_time()
                        clf.fit(X, y)
                        times.append(time.process_time() - begun)
                        gaps.append(clf.gap_)
            proven = np.sum(np.array(gaps) <= 1e-4)
            print(
                f"n = {n_samples}, {kernel}, {n_features} features: {proven} of {len(gaps)} "
                f"proven, median {np.median(times):.2f} s, worst {max(times):.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    if "--tree" in sys.argv:
        branch_and_bound.can_enumerate = lambda _: False
    given = [int(size) for size in sys.argv[1:] if not size.startswith("--")]
    main(given or list(SIZES))
