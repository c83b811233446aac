"""What happens inside a process that computes cells."""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import sqlite3
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from owasvm.experiments.plan import ORDER, Chain, FitOptions
from owasvm.experiments.protocol import Data
from owasvm.experiments.store import Store

__all__ = [
    "Outcome",
    "Task",
    "end_with",
    "ignore_interrupts",
    "limit_threads",
    "prepare_worker",
    "run_task",
    "software_versions",
    "warm_up",
]

# Seconds between two looks at the parent process.
_GLANCE = 0.5


class Outcome(NamedTuple):
    """What became of a chain.

    Parameters
    ----------
    n_cells : int
        Cells computed and stored.
    error : str, default=""
        Why the chain stopped before its end.
    """

    n_cells: int
    error: str = ""


@dataclass(frozen=True)
class Task:
    """A chain, or the rest of one, to be computed by a process that can write to the store.

    Parameters
    ----------
    chain : Chain
        The chain.
    position : int
        The first cell that is not stored.
    data : Data
        Its dataset.
    options : FitOptions
        How to solve.
    path : Path
        The store.
    session : str
        The permission to write.
    parent : int
        The process that wants the result; a worker ends when it does.
    """

    chain: Chain
    position: int
    data: Data
    options: FitOptions
    path: Path
    session: str
    parent: int


@lru_cache(maxsize=1)
def software_versions() -> str:
    """Return the versions of the software that decides results, as JSON.

    Examples
    --------
    >>> import json
    >>> from owasvm.experiments.workers import software_versions
    >>> sorted(json.loads(software_versions()))
    ['numba', 'numpy', 'owasvm', 'platform', 'python', 'scikit-learn', 'scipy']
    """
    import numba
    import numpy
    import scipy
    import sklearn

    import owasvm

    return json.dumps(
        {
            "owasvm": owasvm.__version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "numba": numba.__version__,
            "platform": platform.platform(),
        }
    )


def limit_threads() -> Any:
    """Let the numerical libraries use one thread: the processes share the cores already.

    A context manager that takes the limit back at its end.
    """
    from threadpoolctl import threadpool_limits

    # Loaded first, or their libraries would not be found.
    from owasvm.experiments import chains  # noqa: F401

    return threadpool_limits(limits=1)


def ignore_interrupts() -> None:
    """Be deaf to Ctrl-C, which terminals send to all processes: the main one decides."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=1)
def end_with(parent: int) -> None:
    """End this process when its parent is gone; a killed parent can no longer tell it to."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        # At once, whatever the other threads do: the store takes care of itself.
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


@lru_cache(maxsize=1)
def prepare_worker() -> None:
    """Make this process a worker, once: one thread, kernels compiled."""
    # The main process has said that it compiles.
    logging.getLogger("owasvm._jit").setLevel(logging.ERROR)
    limit_threads()
    warm_up()


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Load or compile what fits need, so that no cell's time includes it."""
    import numpy as np

    from owasvm.experiments import chains

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    data = Data("", X, np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0))
    for model, width in (("ex-OWA-SVM_K", 1.0), ("app-OWA-SVM_K", 1.0), ("app-OWA-SVM", 0.0)):
        chain = Chain("", "shuffled", model, width, 0, (1.0,), (("basic", 0.6),))
        chains.compute(chain, 0, data, FitOptions(), {})


def run_task(task: Task, *, is_worker: bool = True) -> Outcome:
    """Compute a chain from a position on, storing every cell at once.

    Parameters
    ----------
    task : Task
        What to compute.
    is_worker : bool, default=True
        Whether the process exists for this purpose only.

    Returns
    -------
    outcome : Outcome
        A cell that cannot be computed ends its chain, not the run.
    """
    from owasvm.experiments import chains

    if is_worker:
        ignore_interrupts()
        end_with(task.parent)
        prepare_worker()
    chain = task.chain
    n_cells = 0
    with Store(task.path, session=task.session) as store:
        states = store.begin(
            chain.name, None if chain.model == ORDER else chain.cell(task.position)
        )
        for position in range(task.position, len(chain)):
            try:
                result = chains.compute(chain, position, task.data, task.options, states)
            except (sqlite3.Error, OSError):
                raise
            except Exception as error:
                return Outcome(n_cells, f"{chain.cell(position)}: {type(error).__name__}: {error}")
            states.update(result.states)
            row = result.row
            if chain.model != ORDER:
                row["versions"] = software_versions()
            store.finish(chain.name, row, result.states, is_last=position == len(chain) - 1)
            n_cells += chain.model != ORDER
    return Outcome(n_cells)
