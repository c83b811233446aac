"""First call: what importing owasvm adds to scikit-learn, and the first fit in a fresh process.

Fresh processes, caches warm (numba's compiled functions on disk), shortest and longest of five;
and the first fit ever, with an empty cache, processor time, shorter of two: other load on the
machine does not count.

    python benchmarks/first_call.py
"""

from common import machine

import os
import subprocess
import sys
import tempfile

IMPORT = """
import time, sklearn.svm
begun = time.perf_counter()
import owasvm
from owasvm import OWASVC, LinearOWASVC
print(time.perf_counter() - begun)
"""

FIT = """
import time, numpy as np
from owasvm import {name}
rng = np.random.default_rng(0)
X = rng.normal(size=(351, 34))
y = np.where(X[:, 0] + rng.normal(size=351) > 0, 1, -1)
begun = time.perf_counter()
{name}().fit(X, y)
print(time.perf_counter() - begun)
"""

FIRST_EVER = """
import time, numpy as np
from scipy.sparse import csr_matrix
from owasvm import OWASVC, LinearOWASVC
rng = np.random.default_rng(0)
X = rng.normal(size=({n_samples}, {n_features}))
y = np.where(X[:, 0] + rng.normal(size={n_samples}) > 0, 1, -1)
begun = time.process_time()
{estimator}.fit({X}, y)
print(time.process_time() - begun)
"""
# Larger problems need functions that smaller ones do not.
FIRST_EVER_CASES = (
    ("OWASVC()", 200, 5, "X"),
    ("OWASVC()", 600, 20, "X"),
    ("OWASVC(class_weight='balanced')", 1500, 20, "X"),
    ("LinearOWASVC()", 200, 5, "X"),
    ("LinearOWASVC()", 2000, 1000, "csr_matrix(np.where(X > 2.0, X, 0.0))"),
    ("OWASVC(weights='trimmed', alpha=0.2)", 200, 5, "X"),
    ("OWASVC(weights='trimmed', alpha=0.2)", 600, 20, "X"),
)


def seconds_first_ever(code: str) -> float:
    times = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
            )
            times.append(float(run.stdout))
    return min(times)


def seconds(code: str) -> list[float]:
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, capture_output=True)
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(5)]
    return sorted(float(run.stdout) for run in runs)


def main() -> None:
    print(machine())
    cases = {"import owasvm, after scikit-learn": IMPORT}
    for name in ("OWASVC", "LinearOWASVC"):
        cases[f"first fit, {name}, n = 351"] = FIT.format(name=name)
    for label, code in cases.items():
        times = seconds(code)
        print(f"{label}: {times[0]:.2f} to {times[-1]:.2f} s")
    for estimator, n_samples, n_features, X in FIRST_EVER_CASES:
        code = FIRST_EVER.format(
            estimator=estimator, n_samples=n_samples, n_features=n_features, X=X
        )
        kind = "" if X == "X" else ", sparse"
        time = seconds_first_ever(code)
        print(f"first fit ever, {estimator}, {n_samples} x {n_features}{kind}: {time:.1f} s")


if __name__ == "__main__":
    main()
