"""Data larger than the workers' memory: a linear fit on a Dask cluster against one in memory.

Gaussian features, labels from a noisy linear rule, alpha 0.6, C = 1; chunks of
1/48 of the rows in npy files. A ``LocalCluster`` of two worker processes with one thread each,
allowed what an idle worker takes (after a small fit) plus an eighth of the data, so that the data
are four times what both can hold; beyond its limit a worker is killed by its nanny. One fit
undisturbed, one in the middle of which a worker is killed, one in memory by the same solver. Peak
memory is that of the worker processes, sampled every 50 ms.

    python benchmarks/dask_fit.py [n_samples] [n_features] [weights] [loss]
"""

from common import FloatArray, machine

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from owasvm import LinearOWASVC
from owasvm.samples import partitions

N_CHUNKS = 48
MB = 1e6
# The pass in which a worker dies.
KILL_AFTER = 10


def write(folder: Path, n_samples: int, n_features: int) -> tuple[list[Path], FloatArray]:
    """Chunks of rows in files, and all labels."""
    rng = np.random.default_rng(0)
    rule = rng.normal(size=n_features) / np.sqrt(n_features)
    paths, labels = [], []
    for number in range(N_CHUNKS):
        X = rng.normal(size=(n_samples // N_CHUNKS, n_features))
        labels.append(np.where(X @ rule + 0.5 * rng.normal(size=len(X)) > 0, 1.0, -1.0))
        paths.append(folder / f"{number:03d}.npy")
        np.save(paths[-1], X)
    return paths, np.concatenate(labels)


def read_lazily(paths: list[Path], n_features: int, n_rows: int) -> Any:
    """The chunks as a Dask array, read anew whenever they are needed."""
    load = dask.delayed(np.load, pure=True)
    shape = (n_rows, n_features)
    return da.concatenate([da.from_delayed(load(str(p)), shape, dtype=float) for p in paths])


@contextmanager
def cluster(memory_limit: int) -> Iterator[Client]:
    """Two worker processes; 0 for no limit."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local) as client,
    ):
        yield client


def resident(client: Client) -> dict[int, int]:
    """Bytes of memory by process of the workers."""
    return {pid: psutil.Process(pid).memory_info().rss for pid in client.run(os.getpid).values()}


class Watch:
    """Largest memory of the worker processes while it lasts, and passes over the data."""

    def __init__(self, client: Client) -> None:
        self._pids = set(client.run(os.getpid).values())
        self._parent = psutil.Process()
        self._done = threading.Event()
        self.peak, self.n_passes = 0, 0

    def __enter__(self) -> "Watch":
        self._compute = partitions._compute
        partitions._compute = self._count
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        partitions._compute = self._compute

    def _count(self, values: Any) -> Any:
        self.n_passes += 1
        return self._compute(values)

    def _sample(self) -> None:
        while not self._done.wait(0.05):
            for process in self._parent.children(recursive=True):
                try:
                    self.peak = max(self.peak, process.memory_info().rss)
                except psutil.Error:
                    continue


def kill_one(client: Client, watch: Watch, after: int) -> list[int]:
    """Kill the process of a worker in the middle of a pass, from another thread."""
    killed: list[int] = []

    def wait_and_kill() -> None:
        while watch.n_passes < after:
            time.sleep(0.01)
        time.sleep(0.2)
        killed.append(next(iter(client.run(os.getpid).values())))
        os.kill(killed[0], signal.SIGKILL)

    threading.Thread(target=wait_and_kill, daemon=True).start()
    return killed


def report(name: str, model: LinearOWASVC, seconds: float, more: str = "") -> None:
    print(
        f"{name:22s} {seconds:6.1f} s  {model.n_iter_} steps  {model.status_}  "
        f"gap {model.gap_:.1e}  objective {model.objective_:.10f}  {more}",
        flush=True,
    )


def fit(X: Any, y: FloatArray, weights: str, loss: str) -> tuple[LinearOWASVC, float]:
    begun = time.perf_counter()
    model = LinearOWASVC(weights=weights, loss=loss).fit(X, y)
    return model, time.perf_counter() - begun


def main(
    n_samples: int = 1_500_000,
    n_features: int = 100,
    weights: str = "basic",
    loss: str = "hinge",
) -> None:
    print(machine())
    print(f"dask {dask.__version__}; weights {weights}, loss {loss}")
    n_rows = n_samples // N_CHUNKS
    size = n_rows * N_CHUNKS * n_features * 8
    with cluster(0) as client:
        small = da.random.default_rng(0).normal(size=(4000, n_features), chunks=(500, -1))
        LinearOWASVC().fit(small, np.arange(4000) % 2)
        idle = max(resident(client).values())
    limit = idle + size // 8
    print(
        f"{n_rows * N_CHUNKS} x {n_features}: {size / MB:.0f} MB in {N_CHUNKS} files; two "
        f"workers, idle {idle / MB:.0f} MB, limit {limit / MB:.0f} MB each: room for "
        f"{2 * (limit - idle) / MB:.0f} MB, the data take "
        f"{size / 2 / (limit - idle):.1f} times that",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        paths, y = write(Path(name), n_rows * N_CHUNKS, n_features)
        X = read_lazily(paths, n_features, n_rows)
        with cluster(limit) as client:
            with Watch(client) as watch:
                model, seconds = fit(X, y, weights, loss)
            more = f"{watch.n_passes} passes, {watch.peak / MB:.0f} MB at most in a worker"
            report("Dask", model, seconds, more)
            with Watch(client) as watch:
                killed = kill_one(client, watch, after=KILL_AFTER)
                survivor, seconds = fit(X, y, weights, loss)
            more = f"{watch.n_passes} passes, {len(killed)} worker killed in pass {KILL_AFTER}"
            report("Dask, a worker killed", survivor, seconds, more)
            same = np.array_equal(survivor.coef_, model.coef_)
            print(f"w is the same, bit by bit: {same}", flush=True)
            labels = model.predict(X).compute()
        rows = np.concatenate([np.load(path) for path in paths])
        rival, seconds = fit(rows, y, weights, loss)
        report("in memory", rival, seconds)
        difference = abs(model.objective_ - rival.objective_) / rival.objective_
        agree = np.mean(labels == rival.predict(rows))
        print(f"objectives differ by {difference:.1e} (relative), labels agree on {agree:.6%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
