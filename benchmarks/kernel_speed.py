"""Kernel models: time of an exact OWA-SVM against scikit-learn's SVC on the same Gram matrix.

In one run and one thread: ``SVC(kernel="precomputed")`` at its default tolerance, and
``OWASVC(kernel="precomputed", tol=1e-6)`` from a cold start. Both times are the shortest of three.
Prints the ratio of every case, then median, 90 % quantile and worst case, and how many fits missed
their gap; everything is compiled before the first measurement, as ``owasvm warmup`` does.

    OWASVM_DATA=... python benchmarks/kernel_speed.py [dataset ...]   # the six of the paper
    python benchmarks/kernel_speed.py --wide [dataset ...]   # data that nothing was tuned on
    python benchmarks/kernel_speed.py --samples 2500         # five of them with so many samples
    python benchmarks/kernel_speed.py --noisy      # seven others, with much noise
"""

from common import (
    DATASETS,
    GRID_C,
    GRID_SIGMA,
    best_time,
    gram,
    kernel_name,
    load,
    machine,
    summary,
)

import argparse
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm import OWASVC, ConstantClassifierWarning
from owasvm.warmup import warm_up

import wide_set


class Case(NamedTuple):
    """A fit, and how the table calls it."""

    data: str
    kernel: str
    K: np.ndarray
    y: np.ndarray
    weights: str
    alpha: float
    C: float


def list_paper(names: list[str]) -> Iterator[Case]:
    """The six datasets."""
    for name in names or DATASETS:
        X, y = load(name)
        for sigma in GRID_SIGMA:
            K = gram(X, sigma)
            for C in GRID_C:
                yield Case(name, kernel_name(sigma), K, y, "basic", 0.6, C)


def list_wide(names: list[str], kind: str, n_samples: int | None) -> Iterator[Case]:
    """Data of :mod:`wide_set`, with another number of samples if one is given."""
    if kind == "noisy":
        data = wide_set.load_noisy()
    else:
        data = wide_set.load_all() if n_samples is None else wide_set.load_large(n_samples)
    chosen = {name: data[name] for name in names or data}
    known, K = None, np.empty((0, 0))
    for fit in wide_set.list_fits(chosen, kind=kind):
        X, y = data[fit.data]
        if known != (fit.data, fit.gamma):
            known, K = (fit.data, fit.gamma), rbf_kernel(X, gamma=fit.gamma)
        yield Case(fit.data, f"rbf {fit.gamma:.3g}", K, y, fit.weights, fit.alpha, fit.C)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="datasets, all by default")
    parser.add_argument("--wide", action="store_true", help="data that nothing was tuned on")
    parser.add_argument("--samples", type=int, help="of that data with so many samples")
    parser.add_argument("--noisy", action="store_true", help="data with much noise")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ConstantClassifierWarning)
    for _ in warm_up():
        pass
    print(machine())
    print(
        "dataset      kernel     weights                 C   SVC ms    OWA ms  ratio steps     gap"
    )
    groups: dict[str, list[float]] = {}
    missed = 0
    largest = 0.0
    kind = "noisy" if arguments.noisy else "wide" if arguments.samples is None else "large"
    if arguments.wide or arguments.noisy or arguments.samples is not None:
        cases = list_wide(arguments.names, kind, arguments.samples)
    else:
        cases = list_paper(arguments.names)
    for case in cases:
        ours = OWASVC(
            case.C, kernel="precomputed", weights=case.weights, alpha=case.alpha, tol=1e-6
        )
        rival = SVC(C=case.C, kernel="precomputed")
        rival_time, _ = best_time(lambda: rival.fit(case.K, case.y))
        our_time, _ = best_time(lambda: ours.fit(case.K, case.y))
        ratio = our_time / rival_time
        for group in (case.data, f"{case.weights} {case.alpha:g}", f"C = {case.C:g}", "all"):
            groups.setdefault(group, []).append(ratio)
        missed += ours.gap_ > 1e-6
        largest = max(largest, ours.gap_)
        print(
            f"{case.data:12s} {case.kernel:10s} {case.weights:13s} {case.alpha:4g} {case.C:8.4g} "
            f"{1e3 * rival_time:8.2f} {1e3 * our_time:9.2f} {ratio:6.2f} {ours.n_iter_:5d} "
            f"{ours.gap_:8.1e}",
            flush=True,
        )
    for group, ratios in groups.items():
        print(summary(f"OWASVC / SVC, {group}", ratios))
    print(f"missed their gap: {missed}; largest gap {largest:.1e}")


if __name__ == "__main__":
    main()
