"""Runs: a plan, a folder and a backend; everything stored at once, everything resumable."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from owasvm.experiments.plan import ORDER, Chain, Plan
from owasvm.experiments.progress import Progress
from owasvm.experiments.store import FILE_NAME, Store
from owasvm.experiments.workers import Task, limit_threads, run_task, warm_up

__all__ = ["BACKENDS", "RunRefusedError", "Summary", "WorkerLostError", "run_plan"]

#: Ways to compute: in this process, in processes of this machine, on a Dask cluster.
BACKENDS: tuple[str, ...] = ("joblib", "dask", "serial")

_LOCK_NAME = "cells.lock"
# Seconds between two looks at the store for the progress bar.
_GLANCE = 0.5


class RunRefusedError(Exception):
    """A run that cannot begin; the message is one line for the user."""


class WorkerLostError(Exception):
    """A process that computed cells is gone; the message is one line for the user."""


@dataclass
class Summary:
    """What a run did.

    Parameters
    ----------
    n_cells : int
        Cells of the plan.
    n_stored : int
        Those that were stored before.
    n_computed : int
        Those computed now.
    seconds : float
        Time it took.
    errors : list of str
        Chains that stopped at a cell that could not be computed.
    """

    n_cells: int
    n_stored: int
    n_computed: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """Everything a backend needs.

    Parameters
    ----------
    plan : Plan
        The plan.
    todo : list of (Chain, int)
        Chains that are not finished, with the first cell that is not stored.
    store : Store
        The store, claimed.
    session : str
        The permission to write.
    n_jobs : int
        Processes.
    scheduler : str or None
        Address of a Dask scheduler.
    on_stored : callable
        To be told how many cells were stored.
    """

    plan: Plan
    todo: Sequence[tuple[Chain, int]]
    store: Store
    session: str
    n_jobs: int
    scheduler: str | None
    on_stored: Callable[[int], None]

    def tasks(self) -> Iterator[Task]:
        """Return the tasks of processes that write to the store themselves."""
        for chain, position in self.todo:
            yield Task(
                chain,
                position,
                self.plan.data[chain.dataset],
                self.plan.options,
                self.store.path.resolve(),
                self.session,
                os.getpid(),
            )


def run_plan(
    plan: Plan,
    folder: Path,
    *,
    backend: str = "joblib",
    n_jobs: int | None = None,
    scheduler: str | None = None,
    fresh: bool = False,
    command: str = "",
    progress: Progress | None = None,
    on_start: Callable[[Summary], None] | None = None,
) -> Summary:
    """Compute what a plan asks for and the folder does not hold yet.

    Parameters
    ----------
    plan : Plan
        What to compute.
    folder : Path
        Where results are; created if missing. Datasets, models and folds can be added to a run;
        its grid and the ways to solve are fixed.
    backend : {"joblib", "dask", "serial"}, default="joblib"
        One of :data:`BACKENDS`.
    n_jobs : int or None, default=None
        Processes; None for one per core.
    scheduler : str or None, default=None
        Address of a Dask scheduler; None for a cluster of `n_jobs` processes on this machine.
    fresh : bool, default=False
        Whether to throw stored results away first.
    command : str, default=""
        Kept among the facts about the run.
    progress : Progress or None, default=None
        Where to show how far it is.
    on_start : callable or None, default=None
        Told what is stored and what is not, before the work begins.

    Returns
    -------
    summary : Summary

    Raises
    ------
    RunRefusedError
        The folder holds another experiment, is in use, or cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from owasvm.experiments.plan import make_plan
    >>> from owasvm.experiments.protocol import GRIDS, load_data
    >>> from owasvm.experiments.runner import run_plan
    >>> grid = GRIDS["paper"].narrow(Cs=[1.0])
    >>> plan = make_plan({"wbc": load_data("wbc")}, grid, models=["l2-SVM"])
    >>> with TemporaryDirectory() as folder:
    ...     first = run_plan(plan, Path(folder), backend="serial")
    ...     again = run_plan(plan, Path(folder), backend="serial")
    >>> first.n_computed, again.n_stored, again.n_computed
    (10, 10, 0)
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} is unknown; use one of {', '.join(BACKENDS)}.")
    shown = progress or Progress(is_shown=False)
    with _lock(folder), _open(folder, fresh) as store:
        _check_facts(store, plan, folder)
        session = store.claim()
        _note_facts(store, plan, command)
        todo, n_stored = _todo(store, plan)
        summary = Summary(plan.n_cells, n_stored)
        if on_start is not None:
            on_start(summary)
        job = Job(plan, todo, store, session, n_jobs or _n_cores(), scheduler, shown.advance)
        begun = time.perf_counter()
        before = store.n_cells()
        try:
            with shown:
                shown.start(plan.n_cells, n_stored)
                if todo:
                    summary.errors = _backend(backend)(job)
        finally:
            summary.n_computed = store.n_cells() - before
            summary.seconds = time.perf_counter() - begun
            store.settle()
    return summary


def _backend(name: str) -> Callable[[Job], list[str]]:
    if name == "dask":
        from owasvm.experiments.dask_backend import run_on_dask

        return run_on_dask
    return _run_serially if name == "serial" else _run_in_processes


def _n_cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


# -- the folder -------------------------------------------------------------------------------


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the folder; the lock ends with this process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = sqlite3.connect(folder / _LOCK_NAME, timeout=0.0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise RunRefusedError(f"cannot write to {folder}: {error}") from error
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise RunRefusedError(
                    f"another run is working in {folder}; wait for it, or choose another folder"
                ) from error
            raise RunRefusedError(f"cannot write to {folder}: {error}") from error
        yield
    finally:
        lock.close()


@contextmanager
def _open(folder: Path, fresh: bool) -> Iterator[Store]:
    path = folder / FILE_NAME
    try:
        if fresh:
            for suffix in ("", "-wal", "-shm", "-journal"):
                path.with_name(FILE_NAME + suffix).unlink(missing_ok=True)
        store = Store(path)
    except (OSError, sqlite3.Error) as error:
        raise RunRefusedError(f"cannot use {path} as a store of results: {error}") from error
    with store:
        yield store


def _check_facts(store: Store, plan: Plan, folder: Path) -> None:
    """Refuse to mix cells that do not belong together."""
    known = store.meta()
    for key, here in plan.facts().items():
        there = known.get(key, here)
        if there != here:
            raise RunRefusedError(
                f"{folder} holds a run with {key} {_short(there)}, and this one has "
                f"{_short(here)}; choose another folder (--output), or start over (--fresh)"
            )


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:57]}..."


def _note_facts(store: Store, plan: Plan, command: str) -> None:
    known = store.meta().get("command", "")
    commands = [*filter(None, known.split(" && "))]
    if command and command not in commands:
        commands.append(command)
    store.set_meta(**plan.facts(), command=" && ".join(commands))


def _todo(store: Store, plan: Plan) -> tuple[list[tuple[Chain, int]], int]:
    """Chains to work on, each with its first cell that is not stored; number of stored cells."""
    cells, orders = store.cells(), store.order_keys()
    todo = []
    n_stored = 0
    for chain in plan.chains:
        position = chain.n_stored(cells, orders)
        n_stored += position if chain.model != ORDER else 0
        if position < len(chain):
            todo.append((chain, position))
    return todo, n_stored


# -- backends ---------------------------------------------------------------------------------


def _run_serially(job: Job) -> list[str]:
    errors = []
    with limit_threads():
        warm_up()
        for task in job.tasks():
            outcome = run_task(task, is_worker=False)
            job.on_stored(outcome.n_cells)
            if outcome.error:
                errors.append(outcome.error)
    return errors


def _run_in_processes(job: Job) -> list[str]:
    """Processes of this machine, each writing its cells itself."""
    if job.n_jobs == 1:
        return _run_serially(job)
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # Compiled once and announced once, for all processes.
    with limit_threads():
        warm_up()
    errors = []
    with (
        _watch(job.store, job.on_stored),
        parallel_config("loky", n_jobs=job.n_jobs, inner_max_num_threads=1),
    ):
        parallel = Parallel(return_as="generator_unordered")
        try:
            for outcome in parallel(delayed(run_task)(task) for task in job.tasks()):
                if outcome.error:
                    errors.append(outcome.error)
        except TerminatedWorkerError as error:
            raise WorkerLostError(
                "a worker process was killed, perhaps for want of memory (--jobs sets their "
                "number); what was finished is stored, the same command goes on from there"
            ) from error
    return errors


@contextmanager
def _watch(store: Store, on_stored: Callable[[int], None]) -> Iterator[None]:
    """Tell about cells that other processes store, while the body runs."""
    finished = threading.Event()
    known = store.n_cells()

    def watch() -> None:
        seen = known
        with Store(store.path) as view:
            is_over = False
            while not is_over:
                is_over = finished.wait(_GLANCE)
                now = view.n_cells()
                if now > seen:
                    on_stored(now - seen)
                    seen = now

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
