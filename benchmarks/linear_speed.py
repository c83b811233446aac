"""Linear models: time of an exact OWA-SVM against LinearSVC on many rows.

Dense Gaussian features, d = 50, labels from a noisy linear rule; basic quantifier, alpha 0.6. In
one run and one thread: ``LinearSVC(loss="hinge", max_iter=10000)`` at its default tolerance, and
``LinearOWASVC(tol=1e-6)`` from a cold start, for several C at n = 300,000 and for growing n at
C = 1. LinearSVC often stops at its iteration limit, without the accuracy it was asked for; its
warning is counted.

    python benchmarks/linear_speed.py [n_samples]
"""

from common import FloatArray, best_time, machine, summary

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from owasvm import LinearOWASVC


def data(n_samples: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 50))
    scores = X @ rng.normal(size=50) / np.sqrt(50)
    return X, np.where(scores + 0.5 * rng.normal(size=n_samples) > 0, 1.0, -1.0)


def compare(n_samples: int, C: float) -> float:
    X, y = data(n_samples)
    ours = LinearOWASVC(C, weights="basic", alpha=0.6, tol=1e-6)
    our_time, _ = best_time(lambda: ours.fit(X, y), 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        rival = LinearSVC(loss="hinge", C=C, max_iter=10000)
        rival_time, _ = best_time(lambda: rival.fit(X, y), 1)
    note = "stopped at its limit" if caught else "converged"
    ratio = our_time / rival_time
    print(
        f"n {n_samples:7d}  C {C:7.4g}  LinearSVC {rival_time:6.2f} s ({note})  "
        f"LinearOWASVC {our_time:6.2f} s  ratio {ratio:.2f}  steps {ours.n_iter_}  "
        f"gap {ours.gap_:.1e}",
        flush=True,
    )
    return ratio


def main(n_samples: int) -> None:
    print(machine())
    LinearOWASVC().fit(*data(500))
    ratios = [compare(n_samples, C) for C in (0.001, 0.01, 0.1, 1.0)]
    print(summary(f"LinearOWASVC / LinearSVC, n = {n_samples}", ratios))
    print("growth with n, C = 1:")
    for size in (3_000, 10_000, 30_000, 100_000):
        compare(size, 1.0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
