"""Cells on a Dask cluster, whose workers need no disk in common.

A cell is a task that takes the state of its predecessor along the chain and returns its row and
the next state. This process stores both and then sends the next task of the chain. So a worker
that dies takes with it the cell it was computing, which Dask gives to another one, and nothing
else. The datasets travel to every worker once, also to those that join later.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from owasvm.experiments.plan import ORDER, Chain, FitOptions
from owasvm.experiments.protocol import Data
from owasvm.experiments.workers import (
    ignore_interrupts,
    limit_threads,
    prepare_worker,
    software_versions,
    warm_up,
)
from owasvm.extras import require

if TYPE_CHECKING:
    from owasvm.experiments.chains import CellResult
    from owasvm.experiments.runner import Job

__all__ = ["run_on_dask"]

# Chains under way for each thread of the cluster, so that none waits for the network.
_CHAINS_PER_THREAD = 2
_SECONDS_BETWEEN_QUESTIONS = 2.0
_PLUGIN = "owasvm-data"
# The datasets of this process, where it is a worker.
_DATA: dict[str, Data] = {}


def run_on_dask(job: Job) -> list[str]:
    """Compute the chains of a job on a cluster; reasons of chains that stopped before their end.

    ``job.scheduler`` is the address of the cluster, None for processes of this machine.
    """
    if job.scheduler is None:
        # Compiled once and announced once, for all processes.
        with limit_threads():
            warm_up()
    with _client(job) as client:
        plugin = _plugin(dict(job.plan.data), is_ours=job.scheduler is None)
        client.register_plugin(plugin, name=_PLUGIN)
        try:
            return _Dispatcher(job, client).run()
        except OSError as error:
            raise _lost() from error
        finally:
            if job.scheduler is not None:
                # The workers are not ours: leave them as they were, if they still are there.
                with suppress(Exception):
                    client.unregister_worker_plugin(_PLUGIN)


def _lost() -> Exception:
    from owasvm.experiments.runner import WorkerLostError

    return WorkerLostError(
        "the Dask cluster is gone; what was finished is stored, the same command goes on from it"
    )


class _Dispatcher:
    """Sends cells, stores what comes back, sends their successors."""

    def __init__(self, job: Job, client: Any) -> None:
        self._job = job
        self._client = client
        self._waiting = iter(job.todo)
        self._under_way: dict[str, tuple[Chain, int, dict[str, bytes]]] = {}
        self._results = _distributed().as_completed(raise_errors=False)
        self._size = _ClusterSize(client)

    def run(self) -> list[str]:
        """Reasons of chains that stopped before their end."""
        errors = []
        self._begin_chains()
        for future in self._results:
            chain, position, states = self._under_way.pop(future.key)
            if future.status == "finished":
                self._store(chain, position, states, future.result())
            elif future.status == "error":
                error = future.exception()
                errors.append(f"{chain.cell(position)}: {type(error).__name__}: {error}")
            else:
                raise _lost()
            future.release()
            self._begin_chains()
        return errors

    def _begin_chains(self) -> None:
        """Begin chains until there is enough work under way."""
        while len(self._under_way) < _CHAINS_PER_THREAD * self._size.n_threads():
            chain, position = next(self._waiting, (None, 0))
            if chain is None:
                return
            cell = None if chain.model == ORDER else chain.cell(position)
            self._send(chain, position, self._job.store.begin(chain.name, cell))

    def _send(self, chain: Chain, position: int, states: dict[str, bytes]) -> None:
        from owasvm.experiments.chains import parts

        plan = self._job.plan
        needed = {part: states[part] for part in parts(chain, position) if part in states}
        future = self._client.submit(
            _compute,
            chain,
            position,
            plan.data[chain.dataset].checksum,
            plan.options,
            needed,
            pure=False,
        )
        self._under_way[future.key] = (chain, position, states)
        self._results.add(future)

    def _store(
        self,
        chain: Chain,
        position: int,
        states: dict[str, bytes],
        answer: tuple[CellResult, str],
    ) -> None:
        """Store a cell and send the next one."""
        result, versions = answer
        is_last = position == len(chain) - 1
        if chain.model != ORDER:
            result.row["versions"] = versions
        self._job.store.finish(chain.name, result.row, result.states, is_last=is_last)
        states.update(result.states)
        self._job.on_stored(int(chain.model != ORDER))
        if not is_last:
            self._send(chain, position + 1, states)


def _distributed() -> Any:
    return require("distributed", "The Dask backend")


class _ClusterSize:
    """Threads of a cluster that may grow and shrink; asked for now and then."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._known = 1
        self._asked_at = -math.inf

    def n_threads(self) -> int:
        """At least 1: tasks wait for workers that are still to come."""
        now = time.monotonic()
        if now - self._asked_at > _SECONDS_BETWEEN_QUESTIONS:
            self._asked_at = now
            self._known = max(sum(self._client.ncores().values()), 1)
        return self._known


@contextmanager
def _client(job: Job) -> Iterator[Any]:
    """A client of the given cluster, or of one that lives as long as the run."""
    distributed = _distributed()
    if job.scheduler is not None:
        with distributed.Client(job.scheduler) as client:
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=job.n_jobs,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            # What matters comes back as an error of a task.
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _plugin(data: dict[str, Data], is_ours: bool) -> Any:
    """What every worker does when it joins a cluster, of ours or of somebody else."""
    base = _distributed().WorkerPlugin

    class Setup(base):  # type: ignore[misc, valid-type]
        """Keep the datasets at hand."""

        def setup(self, worker: Any) -> None:  # noqa: ARG002
            _receive(data)
            if is_ours:
                ignore_interrupts()

    return Setup()


def _receive(data: Mapping[str, Data]) -> None:
    for one in data.values():
        _DATA[one.checksum] = one


def _compute(
    chain: Chain, position: int, checksum: str, options: FitOptions, states: dict[str, bytes]
) -> tuple[CellResult, str]:
    """The task: a cell and the software that computed it."""
    from owasvm.experiments.chains import compute

    prepare_worker()
    return compute(chain, position, _DATA[checksum], options, states), software_versions()
