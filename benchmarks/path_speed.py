"""Paths: fifteen values of C by ``fit_path`` against fifteen cold fits.

For every dataset and kernel, C in 2^-7 ... 2^7, basic quantifier, alpha 0.6, tol 1e-6, one thread,
in one run: the same fifteen problems as separate ``OWASVC(kernel="precomputed")`` fits, and by one
call of ``fit_path``. A second column compares with ``OWASVC(kernel=...)`` fits on the features,
which is what a grid search without the path would do.

    OWASVM_DATA=... python benchmarks/path_speed.py [dataset ...]   # the six of the paper
    python benchmarks/path_speed.py --wide   # ten sets, three widths, nothing was tuned on them

The second one counts processor time, the shorter of two runs up to 2 s, and Newton steps.
"""

from common import DATASETS, GRID_SIGMA, best_time, gram, kernel_name, load, machine, summary

import sys
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from owasvm import OWASVC
from owasvm.path import fit_path

import wide_set

CS = 2.0 ** np.arange(-7, 8)


def main(names: list[str]) -> None:
    print(machine())
    on_gram: list[float] = []
    on_features: list[float] = []
    for name in names:
        X, y = load(name)
        for sigma in GRID_SIGMA:
            K = gram(X, sigma)
            kernel = (
                {"kernel": "linear"}
                if sigma is None
                else {"kernel": "rbf", "gamma": 1.0 / (2.0 * sigma**2)}
            )

            def cold_gram(K=K, y=y):
                return [OWASVC(C, kernel="precomputed").fit(K, y).objective_ for C in CS]

            def cold_features(X=X, y=y, kernel=kernel):
                return [OWASVC(C, **kernel).fit(X, y).objective_ for C in CS]

            if not on_gram:
                cold_gram()
                fit_path(K, y, CS, kernel="precomputed")
            path_time, path = best_time(lambda: fit_path(K, y, CS, kernel="precomputed"), 2)
            cold_time, objectives = best_time(cold_gram, 2)
            whole_time, _ = best_time(lambda: fit_path(X, y, CS, **kernel), 2)
            search_time, _ = best_time(cold_features, 2)
            worst = np.max(np.abs(path.objectives[0] - objectives) / np.maximum(1, objectives))
            on_gram.append(path_time / cold_time)
            on_features.append(whole_time / search_time)
            print(
                f"{name:11s} {kernel_name(sigma):9s} path {1e3 * path_time:7.1f} ms, "
                f"cold {1e3 * cold_time:7.1f} ms, ratio {on_gram[-1]:.2f}; from features "
                f"{on_features[-1]:.2f}; largest gap {path.gaps.max():.1e}, "
                f"objectives differ by {worst:.1e}",
                flush=True,
            )
    print(summary("path / cold fits on the same Gram matrix", on_gram))
    print(summary("path / cold fits on the features", on_features))


def main_wide() -> None:
    """Basic 0.6 on the Gram matrices of the wide set."""
    print(machine())
    ratios: list[float] = []
    for name, (X, y) in wide_set.load_all().items():
        for width in wide_set.WIDTHS:
            K = rbf_kernel(X, gamma=width / X.shape[1])

            def cold(K=K, y=y):
                return [OWASVC(C, kernel="precomputed").fit(K, y).n_iter_ for C in CS]

            if not ratios:
                cold()
            path_time, path = best_time(
                lambda: fit_path(K, y, CS, kernel="precomputed"), 2, time.process_time
            )
            cold_time, n_cold = best_time(cold, 2, time.process_time)
            ratios.append(path_time / cold_time)
            print(
                f"{name:12s} width {width:4g} path {1e3 * path_time:8.1f} ms, cold "
                f"{1e3 * cold_time:8.1f} ms, ratio {ratios[-1]:.2f}; {path.n_iters.sum():.0f} and "
                f"{sum(n_cold)} steps; largest gap {path.gaps.max():.1e}",
                flush=True,
            )
    print(summary("path / cold fits on the same Gram matrix", ratios))
    print("quartiles", *np.quantile(ratios, [0.25, 0.5, 0.75]).round(3))


if __name__ == "__main__":
    if "--wide" in sys.argv:
        main_wide()
    else:
        main(sys.argv[1:] or list(DATASETS))
