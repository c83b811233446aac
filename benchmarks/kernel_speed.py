"""Kernel models: time of an exact OWA-SVM against scikit-learn's SVC on the same Gram matrix.

For every dataset, kernel and C of the grid, in one run and one thread:
``SVC(kernel="precomputed")`` at its default tolerance, and ``OWASVC(kernel="precomputed",
tol=1e-6)`` with the basic quantifier, alpha 0.6, from a cold start. Both times are the shortest of
three. Prints the ratio of every case, then median and worst case; compilation happens before the
first measurement.

    OWASVM_DATA=... python benchmarks/kernel_speed.py [dataset ...]
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

import sys

from sklearn.svm import SVC

from owasvm import OWASVC


def main(names: list[str]) -> None:
    print(machine())
    print("dataset     kernel           C   SVC ms   OWA ms  ratio steps      gap")
    ratios: dict[str, list[float]] = {name: [] for name in names}
    gaps: list[float] = []
    for name in names:
        X, y = load(name)
        for sigma in GRID_SIGMA:
            K = gram(X, sigma)
            for C in GRID_C:
                ours = OWASVC(C, kernel="precomputed", weights="basic", alpha=0.6, tol=1e-6)
                rival = SVC(C=C, kernel="precomputed")
                if not gaps:
                    ours.fit(K, y)
                rival_time, _ = best_time(lambda: rival.fit(K, y))
                our_time, _ = best_time(lambda: ours.fit(K, y))
                ratio = our_time / rival_time
                ratios[name].append(ratio)
                gaps.append(ours.gap_)
                print(
                    f"{name:11s} {kernel_name(sigma):9s} {C:8.4g} {1e3 * rival_time:8.2f} "
                    f"{1e3 * our_time:8.2f} {ratio:6.2f} {ours.n_iter_:5d} {ours.gap_:8.1e}",
                    flush=True,
                )
    for name in names:
        print(summary(f"OWASVC / SVC, {name}", ratios[name]))
    print(summary("OWASVC / SVC", [ratio for name in names for ratio in ratios[name]]))
    print(f"largest gap {max(gaps):.1e}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(DATASETS))
