"""What the benchmark scripts share: data, machine, statistics, one thread.

Import this module first: it limits the numerical libraries to one thread, which has to happen
before they are loaded.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import hashlib
import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DATASETS = ("ionosphere", "wbc", "australian", "diabetes", "german", "splice")
GRID_C = (2.0**-7, 2.0**-3, 1.0, 2.0**5, 2.0**7)
GRID_SIGMA = (None, 0.25, 1.0, 4.0, 32.0)
RESULTS = Path(__file__).parent / "results"


def load(name: str) -> tuple[FloatArray, FloatArray]:
    """One of the six datasets, labels as floats; nothing is downloaded for a benchmark."""
    from owasvm.datasets import DatasetError
    from owasvm.datasets import load as load_dataset

    try:
        X, y = load_dataset(name, download=False)
    except DatasetError as error:
        sys.exit(str(error))
    return X, y.astype(np.float64)


def gram(X: FloatArray, sigma: float | None) -> FloatArray:
    """Linear kernel (None) or Gaussian kernel of width sigma."""
    from sklearn.metrics.pairwise import rbf_kernel

    return X @ X.T if sigma is None else rbf_kernel(X, gamma=1.0 / (2.0 * sigma**2))


def kernel_name(sigma: float | None) -> str:
    """How tables call a kernel."""
    return "linear" if sigma is None else f"rbf {sigma:g}"


def best_time(
    function: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """Shortest time of a few calls, one if they take long, and the last result."""
    times = []
    result = None
    for _ in range(repeats):
        begun = clock()
        result = function()
        times.append(clock() - begun)
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


def peak_memory() -> int:
    """Bytes that this process has held at once.

    Where the system tells: what a parent held before it started this process counts as the
    process's own in ``ru_maxrss``.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def summary(name: str, values: Sequence[float]) -> str:
    """Median, 90 % quantile, worst and best case of a ratio."""
    ordered = np.sort(np.asarray(values))
    return (
        f"{name}: median {np.median(ordered):.2f}, 90 % {np.quantile(ordered, 0.9):.1f}, "
        f"worst {ordered[-1]:.1f}, best {ordered[0]:.2f} ({ordered.size} cases)"
    )


def solver_sources() -> str:
    """Fingerprint of the files that decide what the solvers do.

    Results are compared over several sittings; this tells whether the code was the same.
    """
    import owasvm

    package = Path(owasvm.__file__).parent
    files = [*package.glob("*.py"), *package.glob("solvers/**/*.py"), *package.glob("models/**/*")]
    digest = hashlib.sha256()
    for path in sorted(file for file in files if file.suffix == ".py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def read_records(path: Path) -> list[dict[str, Any]]:
    """Records of a JSON-lines file; none if there is no file, lines cut off by a kill left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def append_record(path: Path, record: dict[str, Any]) -> None:
    """Add one record at once; several processes may write to the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record) + "\n"
    if path.exists() and path.stat().st_size > 0:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = "\n" + line
    with path.open("a") as file:
        file.write(line)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def power_of_two(value: float) -> str:
    """1/8 rather than 0.125."""
    return f"{value:g}" if value >= 1.0 else f"1/{1.0 / value:g}"


def add_result_options(parser: argparse.ArgumentParser, name: str, *, shares: bool = True) -> None:
    """Options of scripts that keep records in ``results`` and go on where they were."""
    if shares:
        parser.add_argument("--share", type=int, default=0, help="which share, from 0")
        parser.add_argument("--of", type=int, default=1, help="number of shares")
    parser.add_argument("--limit", type=int, help="the first so many")
    parser.add_argument("--table", action="store_true", help="write the table only")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--results", type=Path, default=RESULTS / f"{name}.jsonl")


def parse_result_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; earlier results are gone if that was asked for."""
    arguments = parser.parse_args()
    if arguments.fresh:
        if getattr(arguments, "of", 1) > 1:
            parser.error("--fresh would delete the other shares: run it first with --limit 0")
        arguments.results.unlink(missing_ok=True)
    return arguments
