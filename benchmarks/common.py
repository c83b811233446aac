"""What the benchmark scripts share: data, machine, statistics, one thread.

Import this module first: it limits the numerical libraries to one thread, which has to happen
before they are loaded.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FILES = {
    "ionosphere": "ionosphere_scale",
    "australian": "australian_scale",
    "diabetes": "diabetes_scale",
    "german": "german.numer_scale",
    "splice": "splice_scale",
}
DATASETS = ("ionosphere", "wbc", "australian", "diabetes", "german", "splice")
GRID_C = (2.0**-7, 2.0**-3, 1.0, 2.0**5, 2.0**7)
GRID_SIGMA = (None, 0.25, 1.0, 4.0, 32.0)


def load(name: str) -> tuple[FloatArray, FloatArray]:
    """One of the six datasets; the five files are looked for in the folder ``OWASVM_DATA``."""
    from sklearn.datasets import load_breast_cancer, load_svmlight_file
    from sklearn.preprocessing import minmax_scale

    if name == "wbc":
        X, y = load_breast_cancer(return_X_y=True)
        return minmax_scale(X, (-1, 1)), np.where(y == 1, 1.0, -1.0)
    folder = os.environ.get("OWASVM_DATA")
    if folder is None:
        sys.exit("Set OWASVM_DATA to the folder that holds the LIBSVM files; wbc needs none.")
    X, y = load_svmlight_file(str(Path(folder) / FILES[name]))
    return X.toarray(), np.where(y > 0, 1.0, -1.0)


def gram(X: FloatArray, sigma: float | None) -> FloatArray:
    """Linear kernel (None) or Gaussian kernel of width sigma."""
    from sklearn.metrics.pairwise import rbf_kernel

    return X @ X.T if sigma is None else rbf_kernel(X, gamma=1.0 / (2.0 * sigma**2))


def kernel_name(sigma: float | None) -> str:
    """How tables call a kernel."""
    return "linear" if sigma is None else f"rbf {sigma:g}"


def best_time(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Shortest wall-clock time of a few calls, and the last result."""
    times = []
    result = None
    for _ in range(repeats):
        begun = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begun)
        if times[-1] > 2.0:
            break
    return min(times), result


def machine() -> str:
    """One line on where and with what this ran."""
    import numba
    import scipy
    import sklearn

    import owasvm

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    return (
        f"{model}, {os.cpu_count()} cores, one thread used; Python {platform.python_version()}, "
        f"owasvm {owasvm.__version__}, scikit-learn {sklearn.__version__}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}, numba {numba.__version__}"
    )


def summary(name: str, values: Sequence[float]) -> str:
    """Median, 90 % quantile, worst and best case of a ratio."""
    ordered = np.sort(np.asarray(values))
    return (
        f"{name}: median {np.median(ordered):.2f}, 90 % {np.quantile(ordered, 0.9):.1f}, "
        f"worst {ordered[-1]:.1f}, best {ordered[0]:.2f} ({ordered.size} cases)"
    )
