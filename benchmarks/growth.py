"""How time and memory grow with the number of samples, ours and those of the rivals.

linear
    ``LinearOWASVC`` at gap 1e-6 and ``LinearSVC(loss="hinge", max_iter=10000)``, 50 features.
memory
    ``OWASVC`` with a cache that holds the Gram matrix, gap 1e-6; ``SVC`` with the same cache; the
    paper's dual with n^2 variables through Clarabel, while it lasts.
demand
    ``OWASVC`` and ``SVC`` with a cache of 200 MB that does not hold it, gap 1e-4.
path
    Eight values of C by ``fit_path``, gap 1e-6, and eight fits of ``SVC``.

Weights are basic 0.6. Every fit runs in a fresh process, after a small one that loads the compiled
loops. Time is that of the processor, the least of three fits where they are short. Memory is the
largest resident size during the first fit less that before it; data are there by then. Exponents
are the slopes of least squares lines through the logarithms; sizes that take less than 2 MiB are
left out of those of memory.

    python benchmarks/growth.py [--full] [--part linear] [--table]

takes five minutes and writes ``results/growth.jsonl``, from which ``docs/figures/make_growth.py``
draws its figure. ``--full`` goes on to 16,000 kernel samples in memory and 50,000 on demand, which
takes ten.
Memory is read from /proc: Linux only.
"""

from common import (
    RESULTS,
    FloatArray,
    append_record,
    machine,
    markdown_table,
    read_records,
)

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from linear_speed import draw_dense
from on_demand import make
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from owasvm import OWASVC, LinearOWASVC
from owasvm.path import fit_path

# Sizes of a default run, and those that a full run adds.
SIZES: dict[str, dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "linear": {
        "ours": ((10_000, 30_000, 100_000, 300_000, 1_000_000), ()),
        "LinearSVC": ((10_000, 30_000, 100_000, 300_000, 1_000_000), ()),
    },
    "memory": {
        "ours": ((500, 1_000, 2_000, 4_000, 8_000), (16_000,)),
        "SVC": ((500, 1_000, 2_000, 4_000, 8_000), (16_000,)),
        "n^2 dual": ((50, 100, 200, 300), (400,)),
    },
    "demand": {
        "ours": ((6_000, 10_000, 16_000, 25_000), (50_000,)),
        "SVC": ((6_000, 10_000, 16_000, 25_000), (50_000,)),
    },
    "path": {
        "ours": ((500, 1_000, 2_000, 4_000), (8_000,)),
        "SVC": ((500, 1_000, 2_000, 4_000), (8_000,)),
    },
}
LINEAR_C = 0.01
PATH_CS = 2.0 ** np.arange(-7, 8, 2)
HOLDS_ALL = 3_000
SHORT = 2.0
LEAST_MEMORY = 2.0


def kernel_data(n_samples: int) -> tuple[FloatArray, Any]:
    """Clusters in 20 dimensions with 5 % wrong labels."""
    return make("clusters", n_samples)


def linear_data(n_samples: int) -> tuple[FloatArray, Any]:
    """Gaussian features and a noisy linear rule."""
    return draw_dense(n_samples, "float64")


def path_of_svc(X: FloatArray, y: Any) -> None:
    """One fit for every C."""
    for C in PATH_CS:
        SVC(C=C, cache_size=HOLDS_ALL).fit(X, y)


def path_of_ours(X: FloatArray, y: Any) -> float:
    """The largest gap of the path."""
    return float(fit_path(X, y, PATH_CS, cache_size=HOLDS_ALL).gaps.max())


def gap_of(model: Any) -> Callable[[FloatArray, Any], float]:
    """A fit that returns what it proved."""
    return lambda X, y: float(model.fit(X, y).gap_)


FITS: dict[tuple[str, str], Callable[[FloatArray, Any], Any]] = {
    ("linear", "ours"): gap_of(LinearOWASVC(LINEAR_C)),
    ("linear", "LinearSVC"): LinearSVC(loss="hinge", C=LINEAR_C, max_iter=10_000).fit,
    ("memory", "ours"): gap_of(OWASVC(cache_size=HOLDS_ALL)),
    ("memory", "SVC"): SVC(cache_size=HOLDS_ALL).fit,
    ("memory", "n^2 dual"): gap_of(OWASVC(solver="assignment-dual")),
    ("demand", "ours"): gap_of(OWASVC(tol=1e-4, cache_size=200)),
    ("demand", "SVC"): SVC(cache_size=200).fit,
    ("path", "ours"): path_of_ours,
    ("path", "SVC"): path_of_svc,
}


def resident(entry: str) -> float:
    """MiB that this process holds (``VmRSS``) or has held at once (``VmHWM``)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith(entry))


def measure(part: str, who: str, n_samples: int) -> dict[str, Any]:
    """One fit in this process; more, if it is short, for a better time."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    draw = linear_data if part == "linear" else kernel_data
    fit = FITS[part, who]
    X, y = draw(n_samples)
    small = draw(300 if who != "n^2 dual" else 20)
    fit(*small)
    if (part, who) == ("demand", "ours"):
        OWASVC(tol=1e-4, cache_size=0.01).fit(*small)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    seconds: list[float] = []
    memory, found = 0.0, None
    while len(seconds) < 3 and sum(seconds) < SHORT:
        begun = time.process_time()
        found = fit(X, y)
        seconds.append(time.process_time() - begun)
        memory = memory or resident("VmHWM") - before
    record = {"part": part, "who": who, "n": n_samples, "seconds": min(seconds), "MiB": memory}
    if isinstance(found, float):
        record["gap"] = found
    return record


def exponent(records: list[dict[str, Any]], what: str) -> float:
    """Slope of log `what` against log n; NaN for fewer than three sizes."""
    least = LEAST_MEMORY if what == "MiB" else 0.0
    points = [(r["n"], r[what]) for r in records if r[what] > least]
    if len(points) < 3:
        return float("nan")
    sizes, values = np.log(np.array(points)).T
    return float(np.polyfit(sizes, values, 1)[0])


def table(records: list[dict[str, Any]]) -> str:
    """One line for each part and each who."""
    rows = []
    for part, rivals in SIZES.items():
        for who in rivals:
            own = sorted(
                (r for r in records if (r["part"], r["who"]) == (part, who)), key=lambda r: r["n"]
            )
            if own:
                last = own[-1]
                rows.append(
                    (
                        f"{part}, {who}",
                        f"{own[0]['n']:,} to {last['n']:,}",
                        f"{exponent(own, 'seconds'):.2f}",
                        f"{exponent(own, 'MiB'):.2f}",
                        f"{last['seconds']:.2f}",
                        f"{last['MiB']:.0f}",
                        f"{max(r['gap'] for r in own):.1e}" if "gap" in last else "",
                    )
                )
    header = ("fit", "samples", "time exponent", "memory exponent")
    return markdown_table((*header, "s at the end", "MiB at the end", "largest gap"), rows)


def main() -> None:
    """Fit all sizes, smallest first, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the largest sizes, too")
    parser.add_argument("--part", choices=SIZES, action="append")
    parser.add_argument("--table", action="store_true", help="print the table only")
    parser.add_argument("--results", type=Path, default=RESULTS / "growth.jsonl")
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        part, who, n_samples = arguments.fit
        print(json.dumps(measure(part, who, int(n_samples))))
        return
    parts = arguments.part or list(SIZES)
    if not arguments.table:
        print(machine(), flush=True)
        kept = [r for r in read_records(arguments.results) if r["part"] not in parts]
        arguments.results.unlink(missing_ok=True)
        for record in kept:
            append_record(arguments.results, record)
        for part in parts:
            for who, (usual, more) in SIZES[part].items():
                for n_samples in (*usual, *more) if arguments.full else usual:
                    command = [sys.executable, __file__, "--fit", part, who, str(n_samples)]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    record = json.loads(done.stdout.splitlines()[-1])
                    append_record(arguments.results, record | {"machine": machine()})
                    print(record, flush=True)
    print(table(read_records(arguments.results)))


if __name__ == "__main__":
    main()
