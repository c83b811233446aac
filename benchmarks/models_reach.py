"""Mixed-integer models: how long NC-OWA-SVM_K takes on ionosphere subsamples of 20 rows.

Gaussian kernel of width 1, C = 1, quadratic and trigonometric weights with alpha 0.8, the
strengthened model through Algorithm 1, ``mip_gap`` 1e-4, at most 120 s per case. Subsample 0 holds
the first rows of the file, the others are random with seeds 0, 1, ... Times vary a lot between
subsamples. Prints objective, proven gap, nodes and seconds of every case, then how many were
solved and the slowest.

    OWASVM_DATA=... python benchmarks/models_reach.py [--samples 20] [--subsamples 7]
        [--time-limit 120] [--backend scip] [--printed]
"""

from common import gram, load, machine  # first: it limits the threads

# isort: split
import argparse
import time

import numpy as np

from owasvm.models import available, nc_owa_svm_kernel
from owasvm.problem import OWAProblem, RankCosts


def rows_of(subsample: int, n_samples: int, n_rows: int) -> np.ndarray:
    """Rows of a subsample: the first ones, then random ones."""
    if subsample == 0:
        return np.arange(n_samples)
    return np.random.default_rng(subsample - 1).permutation(n_rows)[:n_samples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--subsamples", type=int, default=7)
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--backend", default="scip")
    parser.add_argument("--printed", action="store_true", help="the model as the paper prints it")
    arguments = parser.parse_args()

    version = next(row.version for row in available() if row.name == arguments.backend)
    print(machine())
    variant = "as printed" if arguments.printed else "strengthened"
    print(f"{arguments.backend} {version}, {variant}")
    X, y = load("ionosphere")
    seconds, solved = [], 0
    print(f"{'rows':>4s} {'weights':14s} {'objective':>10s} {'gap':>8s} {'nodes':>7s} {'s':>6s}")
    for subsample in range(arguments.subsamples):
        rows = rows_of(subsample, arguments.samples, y.size)
        K = gram(X[rows], 1.0)
        for family in ("quadratic", "trigonometric"):
            costs = RankCosts(rows.size, family, 0.8, C=1.0)
            begun = time.perf_counter()
            solution = nc_owa_svm_kernel.solve(
                OWAProblem(y[rows], costs, gram=K),
                backend=arguments.backend,
                time_limit=arguments.time_limit,
                mip_gap=1e-4,
                strengthened=not arguments.printed,
            )
            seconds.append(time.perf_counter() - begun)
            solved += solution.gap <= 1e-4
            print(
                f"{subsample:4d} {family:14s} {solution.objective:10.6f} {solution.gap:8.1e} "
                f"{solution.n_iter:7d} {seconds[-1]:6.1f}",
                flush=True,
            )
    print(
        f"solved to 1e-4: {solved} of {len(seconds)}; median {np.median(seconds):.1f} s, "
        f"slowest {max(seconds):.1f} s"
    )


if __name__ == "__main__":
    main()
