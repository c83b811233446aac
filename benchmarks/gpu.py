"""Kernel fits on a GPU: a checkerboard with label noise and noise features.

    python benchmarks/gpu.py --output benchmarks/results/gpu.jsonl
    python benchmarks/gpu.py 50k 50k-steep --landmarks 2048

Every case runs in a process of its own, after a small fit that compiles the loops and wakes the
device. Times include the way of X to the device (build) and of the result back (solve). One line
of JSON per case is added to ``--output``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import append_record, machine, read_records

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

N_NOISE_FEATURES = 20
LABEL_NOISE = 0.05


@dataclass(frozen=True)
class Case:
    """A problem: size, C, alpha of the family "basic", gap, whether to hold the Gram matrix.

    `noise` is the size of the noise features. The cells of the board have side 1: beside 0.1 they
    can be learned, beside 1 hardly, and all samples become support vectors.
    """

    n_samples: int
    C: float = 1.0
    alpha: float = 0.6
    tol: float = 1e-6
    hold: bool | None = None
    noise: float = 0.1


CASES = {
    "4k": Case(4_000),
    "16k": Case(16_000),
    "50k": Case(50_000),
    "16k-steep": Case(16_000, alpha=0.2),
    "50k-C100": Case(50_000, C=100.0),
    "50k-steep": Case(50_000, alpha=0.2),
    "100k": Case(100_000),
    "200k": Case(200_000, tol=1e-4, hold=False),
    "16k-hard": Case(16_000, noise=1.0),
    "50k-hard": Case(50_000, noise=1.0),
    "100k-hard": Case(100_000, noise=1.0),
}
BARS = ("16k", "50k", "100k", "50k-C100", "50k-steep", "200k", "50k-hard")


def make_board(n_samples: int, noise: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """A checkerboard of 4 x 4 cells of side 1, labels flipped here and there, noise features."""
    rng = np.random.default_rng(seed)
    board = rng.uniform(-2.0, 2.0, size=(n_samples, 2))
    y = np.where(np.floor(board).sum(axis=1) % 2 == 0, 1.0, -1.0)
    y[rng.random(n_samples) < LABEL_NOISE] *= -1.0
    return np.hstack([board, noise * rng.normal(size=(n_samples, N_NOISE_FEATURES))]), y


class Stopwatch:
    """Seconds and calls by part: what is measured is replaced by what measures it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def watch(self, owner: Any, name: str) -> None:
        """Measure a method from now on; all that are watched wait for the device."""
        method: Callable[..., Any] = getattr(owner, name)

        def measured(*arguments: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                self.seconds[name] += time.perf_counter() - begun
                self.calls[name] += 1

        setattr(owner, name, measured)


def run(case: Case, arguments: argparse.Namespace, *, quiet: bool = False) -> dict[str, Any]:
    """Solve one case and say how it went."""
    from owasvm.kernels import Kernel, resolve_gamma
    from owasvm.problem import OWAProblem, RankCosts
    from owasvm.samples.device import DeviceSamples, Place
    from owasvm.solvers import solve

    X, y = make_board(case.n_samples, case.noise)
    kernel = Kernel("rbf", gamma=resolve_gamma("scale", X))
    place = Place(open_array(arguments))
    wait, peak = _cuda(arguments.device)
    last = [0.0]

    def report(info: dict[str, Any]) -> None:
        if not quiet and info["time"] - last[0] > arguments.every:
            last[0] = info["time"]
            print(
                f"    step {info['n_iter']:4d}  gap {info['gap']:.2e}  {info['time']:.1f} s",
                flush=True,
            )

    wait()
    begun = time.perf_counter()
    samples = DeviceSamples.of_gaussian(place.send(X), kernel.gamma, hold=case.hold)
    wait()
    built = time.perf_counter()
    costs = RankCosts(case.n_samples, "basic", case.alpha, case.C)
    solution = solve(
        OWAProblem(y, costs, samples=samples),
        tol=case.tol,
        max_iter=arguments.max_iter,
        time_limit=arguments.time_limit,
        callback=report,
    )
    ended = time.perf_counter()
    return {
        "build": built - begun,
        "solve": ended - built,
        "total": ended - begun,
        "n_iter": solution.n_iter,
        "status": str(solution.status),
        "gap": solution.gap,
        "objective": solution.objective,
        "n_support": int(np.count_nonzero(solution.dual)),
        "rounding": solution.details["rounding"] / solution.objective,
        "factorises": solution.details["factorises"],
        "peak_gib": peak() / 2**30,
    }


def open_array(arguments: argparse.Namespace) -> Any:
    """A first array on the device, of torch or of CuPy."""
    if arguments.library == "cupy":
        import cupy

        return cupy.zeros(1)
    from owasvm.extras import open_device

    return open_device(arguments.device)


def _cuda(device: str) -> tuple[Callable[[], None], Callable[[], float]]:
    """How to wait for a device, and its peak memory."""
    import torch

    if not device.startswith("cuda"):
        return lambda: None, lambda: 0.0
    torch.cuda.reset_peak_memory_stats(device)
    return lambda: torch.cuda.synchronize(device), lambda: torch.cuda.max_memory_allocated(device)


def run_alone(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Warm up, solve one case, add where and with what."""
    import torch

    from owasvm.samples.device import operator as module

    module._FACTORISE_UP_TO = arguments.factorise_up_to
    module._N_LANDMARKS = arguments.landmarks
    case = CASES[name]
    n_first = min(case.n_samples, arguments.factorise_up_to + 1_000, 15_000)
    first = Case(n_first, tol=1e-3, hold=case.hold, noise=case.noise)
    run(first, arguments, quiet=True)
    stopwatch = Stopwatch()
    stopwatch.watch(module.DeviceOperator, "newton_step")
    stopwatch.watch(module.DeviceOperator, "_iterate")
    stopwatch.watch(module.DeviceOperator, "vector")
    stopwatch.watch(module.DeviceOperator, "lift")
    stopwatch.watch(module._DeviceFactor, "solve_half")
    stopwatch.watch(module._DeviceFactor, "solve_rest")
    found = run(case, arguments)
    cuda = arguments.device.startswith("cuda")
    gpu = torch.cuda.get_device_name(arguments.device) if cuda else "none"
    return {
        "case": name,
        **asdict(case),
        "library": arguments.library,
        "landmarks": arguments.landmarks,
        "factorise_up_to": arguments.factorise_up_to,
        **found,
        "seconds": dict(stopwatch.seconds),
        "calls": dict(stopwatch.calls),
        "gpu": gpu,
        "torch": torch.__version__,
        "machine": machine(),
    }


def describe(record: dict[str, Any]) -> str:
    """A case in two lines."""
    seconds, calls = record["seconds"], record["calls"]
    parts = ", ".join(f"{name} {seconds[name]:.2f} s ({calls[name]})" for name in seconds)
    return (
        f"{record['case']}: build {record['build']:.2f} s, solve {record['solve']:.2f} s, total "
        f"{record['total']:.2f} s, {record['n_iter']} steps, gap {record['gap']:.2e} "
        f"({record['status']}), rounding {record['rounding']:.1e}, peak "
        f"{record['peak_gib']:.1f} GiB, {record['n_support']} support vectors\n    {parts}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help=", ".join(CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--library", default="torch", choices=["torch", "cupy"])
    parser.add_argument("--landmarks", type=int, default=1024)
    parser.add_argument("--factorise-up-to", type=int, default=8192)
    parser.add_argument("--max-iter", type=int, default=5000)
    parser.add_argument("--time-limit", type=float, default=200.0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two reports")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        record = run_alone(arguments.alone, arguments)
        print(describe(record), flush=True)
        if arguments.output:
            append_record(arguments.output, record)
        return
    for name in arguments.cases or BARS:
        begun = time.perf_counter()
        options = sys.argv[1:]
        options = [option for option in options if option not in CASES]
        command = [sys.executable, __file__, "--alone", name, *options]
        ended = subprocess.run(command, check=False)
        wall = time.perf_counter() - begun
        print(f"    exit status {ended.returncode}, {wall:.0f} s with start\n", flush=True)
    if arguments.output:
        for record in read_records(arguments.output)[-1:]:
            print(json.dumps({key: record[key] for key in ("gpu", "torch", "machine")}))


if __name__ == "__main__":
    main()
