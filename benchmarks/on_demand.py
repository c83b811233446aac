"""Kernels without the Gram matrix: time and memory against SVC, each fit in a fresh process.

``python benchmarks/on_demand.py`` runs all cases, ``--case NAME`` one of them. Memory is the
largest resident size of the process minus that before the fit: data, libraries and compiled loops
are there by then. Seconds are those of the processor, beside them those of the clock: on a machine
that others use, too, the former are worth more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import FloatArray, machine, markdown_table, peak_memory

# Name: samples, tolerance, what is asked for: times SVC, MiB.
CASES: dict[str, tuple[str, int, float, float, float]] = {
    "clusters 16,000": ("clusters", 16_000, 1e-6, 4.0, 700.0),
    "clusters 50,000": ("clusters", 50_000, 1e-4, 5.0, 1024.0),
    "checkerboard 50,000": ("checkerboard", 50_000, 1e-4, 5.0, 1024.0),
    "overlap 50,000": ("overlap", 50_000, 1e-4, 8.0, 1024.0),
}


def make(name: str, n_samples: int) -> tuple[FloatArray, Any]:
    """Twenty features: clusters or a checkerboard with 5 % wrong labels, or 25 % of them."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    if name == "checkerboard":
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, size=(n_samples, 20))
        X[:, :2] *= 2.0
        X[:, 2:] *= 0.3
        y = (np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2
        return X, np.where(rng.random(n_samples) < 0.05, 1.0 - y, y)
    flipped, separation = (0.1, 1.0) if name == "clusters" else (0.5, 0.5)
    X, y = make_classification(
        n_samples,
        20,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=4,
        flip_y=flipped,
        class_sep=separation,
        random_state=0,
    )
    return StandardScaler().fit_transform(X), y


def fit(case: str, who: str) -> dict[str, Any]:
    """One fit in this process."""
    from sklearn.svm import SVC

    from owasvm import OWASVC

    name, n_samples, tol, _, _ = CASES[case]
    X, y = make(name, n_samples)
    model: Any = SVC(cache_size=200)
    if who == "ours":
        # Compiled loops are kept on disk after the first run; here they are loaded.
        OWASVC(cache_size=0.01).fit(X[:200], y[:200])
        model = OWASVC(tol=tol)
    before = peak_memory()
    clock, processor = time.perf_counter(), time.process_time()
    model.fit(X, y)
    record = {
        "seconds": time.process_time() - processor,
        "clock": time.perf_counter() - clock,
        "memory": (peak_memory() - before) / 2**20,
        "support": int(model.n_support_.sum()),
    }
    if who == "ours":
        record |= {"gap": model.gap_, "steps": model.n_iter_, "status": model.status_}
    return record


def main() -> None:
    """Fit every case twice, in processes of their own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--who", choices=("ours", "svc"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.who:
        print(json.dumps(fit(arguments.case[0], arguments.who)))
        return
    print(machine(), flush=True)
    rows = []
    for case in arguments.case or CASES:
        found = {}
        for who in ("svc", "ours"):
            command = [sys.executable, __file__, "--case", case, "--who", who]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[who] = json.loads(done.stdout.splitlines()[-1])
            print(case, who, found[who], flush=True)
        ours, svc = found["ours"], found["svc"]
        _, _, tol, times, memory = CASES[case]
        rows.append(
            (
                case,
                f"{tol:g}",
                f"{ours['gap']:.1e}",
                str(ours["steps"]),
                f"{ours['seconds']:.1f} ({ours['clock']:.1f})",
                f"{svc['seconds']:.1f} ({svc['clock']:.1f})",
                f"{ours['seconds'] / svc['seconds']:.1f} (at most {times:g})",
                f"{ours['memory']:.0f} (at most {memory:g})",
                f"{ours['support']} / {svc['support']}",
            )
        )
    header = ("case", "tol", "gap", "steps", "ours s (clock)", "SVC s (clock)", "ratio")
    print(markdown_table((*header, "MiB", "support vectors ours / SVC"), rows))


if __name__ == "__main__":
    main()
