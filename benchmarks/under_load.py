"""Fits beside busy processes, with the default number of threads, against one thread alone.

Three cases: 900 and all 1,797 digits (even against odd) by ``OWASVC()``, and 400 x 1,000 sparse
features by ``LinearOWASVC()``. Every row is measured in fresh processes, because the number of
threads is read when numpy is loaded; each makes one fit to warm up and several that count. The
last column divides the median beside one busy process by the median of one thread alone.

    python benchmarks/under_load.py [--processes 3] [--fits 5]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Not `common`, which limits this process and its children to one thread.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

DIGITS = """
from sklearn.datasets import load_digits
from owasvm import OWASVC
X, y = load_digits(return_X_y=True)
X, y = X[:{n_samples}], y[:{n_samples}] % 2
model = OWASVC()
"""

SPARSE = """
import numpy as np, scipy.sparse as sp
from owasvm import LinearOWASVC
rng = np.random.default_rng(0)
X = sp.random(400, 1000, density=0.05, random_state=0, format="csr")
y = np.where(X @ rng.normal(size=1000) + 0.1 * rng.normal(size=400) > 0, 1, -1)
model = LinearOWASVC()
"""

FITS = """
import time
model.fit(X, y)
for _ in range({n_fits}):
    begun = time.perf_counter()
    model.fit(X, y)
    print(time.perf_counter() - begun)
"""

CASES = {
    "900 digits": DIGITS.format(n_samples=900),
    "1,797 digits": DIGITS.format(n_samples=1797),
    "sparse 400 x 1,000": SPARSE,
}

# Name, whether the children may use all threads, busy processes beside them.
CONDITIONS = (
    ("one thread, alone", False, 0),
    ("default, alone", True, 0),
    ("one thread, 1 busy", False, 1),
    ("default, 1 busy", True, 1),
    ("default, 2 busy", True, 2),
)


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """Keep so many processes computing."""
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def seconds(code: str, all_threads: bool, n_processes: int) -> list[float]:
    """Times of the fits of several fresh processes."""
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    if not all_threads:
        environment |= dict.fromkeys(THREADS, "1")
    times: list[float] = []
    for _ in range(n_processes):
        child = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        times += [float(line) for line in child.stdout.splitlines()]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=3, help="fresh processes for each figure")
    parser.add_argument("--fits", type=int, default=5, help="fits in each of them")
    arguments = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load before the start {load:.1f}"
    )
    print("seconds per fit, median (worst)")
    for case, setup in CASES.items():
        code = setup + FITS.format(n_fits=arguments.fits)
        medians = {}
        for condition, all_threads, n_busy in CONDITIONS:
            with busy(n_busy):
                times = seconds(code, all_threads, arguments.processes)
            medians[condition] = statistics.median(times)
            print(
                f"{case:20} {condition:20} {medians[condition]:8.3f} ({max(times):.3f})",
                flush=True,
            )
        ratio = medians["default, 1 busy"] / medians["one thread, alone"]
        print(f"{case:20} beside one busy process, against one thread alone: {ratio:.2f}")


if __name__ == "__main__":
    main()
