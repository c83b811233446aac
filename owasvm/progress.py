"""Watching a fit: records of its progress, lines about them, and a way to stop it.

A solver reports numbers to a :class:`Watch` and knows nothing of lines, terminals or callbacks.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ProgressRecord", "Watch", "Watcher", "show_life", "speaking"]

logger = logging.getLogger(__name__)

Watcher = Callable[["ProgressRecord"], bool | None] | str

# Seconds between two lines.
_INTERVAL = 3.0
# A live line moves faster.
_LIVE_INTERVAL = 0.5
# Records kept at most; beyond that every second one is dropped.
_MOST_RECORDS = 4096


@dataclass(frozen=True)
class ProgressRecord:
    """Where a solve stands.

    Parameters
    ----------
    solver : str
        Keyword of the solver.
    stage : str
        What it is doing: "newton", "rescue" (interior point steps that help Newton steps out),
        "bound", "descent", "trail", "node", "end".
    label : str
        Whose problem it is: the class that is told from the rest; empty for two classes.
    n_iter : int
        Newton steps, nodes, or what the solver counts.
    objective : float
        Of the best classifier found; for Newton steps that of the current one.
    lower_bound : float
        No classifier is better, if ``is_proven``; else an estimate.
    gap : float
        Relative gap of the two.
    time : float
        Seconds since the solve began.
    is_proven : bool
        Whether bound and gap are proven. Newton steps estimate them; the last record of every
        solve has the figures of its certificate.
    fold : int or None, default=None
        In a search for parameters the number of the fold, from 0; None in its last fit.
    params : mapping or None, default=None
        In a search for parameters those of the candidate, as in ``cv_results_["params"]``.
    """

    solver: str
    stage: str
    label: str
    n_iter: int
    objective: float
    lower_bound: float
    gap: float
    time: float
    is_proven: bool
    fold: int | None = None
    params: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        whose = f"{self.label}, " if self.label else ""
        step = self.stage if self.stage == self.solver else f"{self.solver}, {self.stage}"
        about = "" if self.is_proven else "about "
        return (
            f"{whose}{step} {self.n_iter}: objective {self.objective:.8g}, "
            f"lower bound {about}{self.lower_bound:.8g}, gap {self.gap:.1e}, {self.time:.1f} s"
        )


class Watch:
    """Takes the reports of one solve to whoever wants them.

    Parameters
    ----------
    solver : str
        Keyword of the solver.
    verbose : int, default=0
        1 for a line every few seconds, 2 for a line per report.
    callback : callable, "record" or None, default=None
        ``callback(record)`` with a :class:`ProgressRecord`; returning False stops the solve.
        "record" keeps the records and calls nobody.
    label : str, default=""
        Whose problem it is.
    target : float or None, default=None
        The relative gap at which the solve ends, for estimates of the time left.
    time_limit : float or None, default=None
        Seconds after which it ends in any case.

    Attributes
    ----------
    records : list of ProgressRecord
        All records, or every second, fourth ... of very many.
    """

    def __init__(
        self,
        solver: str,
        *,
        verbose: int = 0,
        callback: Watcher | None = None,
        label: str = "",
        target: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.records: list[ProgressRecord] = []
        self._solver = solver
        self._label = label
        self._target = target
        self._time_limit = math.inf if time_limit is None else time_limit
        self._verbose = verbose
        self._callback = callback if callable(callback) else None
        self._stride = 1
        self._n_reports = 0
        self._reported = time.perf_counter()

    def report(self, info: Mapping[str, Any]) -> bool:
        """What a solver calls with its numbers; False when somebody wants it to stop.

        Parameters
        ----------
        info : mapping
            ``n_iter``, ``objective``, ``gap`` and ``time``; ``lower_bound`` if it is proven;
            ``stage`` if there are several.
        """
        objective, gap = float(info["objective"]), float(info["gap"])
        proven = "lower_bound" in info
        bound = info["lower_bound"] if proven else objective - gap * max(1.0, abs(objective))
        record = ProgressRecord(
            solver=self._solver,
            stage=str(info.get("stage", "step")),
            label=self._label,
            n_iter=int(info["n_iter"]),
            objective=objective,
            lower_bound=float(bound),
            gap=gap,
            time=float(info["time"]),
            is_proven=proven,
        )
        self._keep(record)
        self._reported = time.perf_counter()
        if self._verbose > 1:
            logger.debug("%s", record)
        answer = None if self._callback is None else self._callback(record)
        # Comparisons of numpy's numbers are not Python's.
        return not (isinstance(answer, bool | np.bool_) and not answer)

    def conclude(self, info: Mapping[str, Any]) -> None:
        """Keep the figures of the certificate as the last record."""
        self._stride = 1
        callback, self._callback = self._callback, None
        self.report({**info, "stage": "end"})
        self._callback = callback

    @contextmanager
    def show(self) -> Iterator[None]:
        """While this lasts, a line every few seconds says where the solve stands."""
        whose = f"{self._label}, " if self._label else ""
        with show_life(self._verbose, self._describe_last(f"{whose}{self._solver}: starting")):
            yield

    def _describe_last(self, before: str) -> Callable[[float], str]:
        def describe(elapsed: float) -> str:
            if not self.records:
                return f"{before}, {elapsed:.0f} s"
            text = str(self.records[-1])
            since = time.perf_counter() - self._reported
            if since > 2.0 * _INTERVAL:
                text += f", {since:.0f} s ago"
            left = self._estimate(since)
            return text if left is None else f"{text}, about {_round(left)} left"

        return describe

    def _estimate(self, since: float) -> float | None:
        """Seconds left, so long after the last report: if the gap goes on to fall as it did in
        the second half of the time."""
        # The solver goes on to report while this thread looks.
        records = self.records.copy()
        if self._target is None or len(records) < 3 or self._target <= 0.0:
            return None
        last = records[-1]
        half = next(r for r in records if r.time >= 0.5 * last.time)
        if not (self._target < last.gap < half.gap < math.inf and last.time > half.time):
            return None
        rate = math.log(half.gap / last.gap) / (last.time - half.time)
        left = math.log(last.gap / self._target) / rate - since
        # Far away it is a guess of nothing.
        if not 0.0 < left < 20.0 * last.time:
            return None
        return min(left, max(self._time_limit - last.time - since, 0.0))

    def _keep(self, record: ProgressRecord) -> None:
        self._n_reports += 1
        if self._n_reports % self._stride:
            return
        self.records.append(record)
        if len(self.records) > _MOST_RECORDS:
            del self.records[1:-1:2]
            self._stride *= 2


def _round(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def show_life(verbose: int, describe: Callable[[float], str]) -> Iterator[None]:
    """While this lasts, say every few seconds what is going on.

    One live line where standard output is a terminal and rich is installed, lines of the logger
    elsewhere. A thread writes them, so that long products, too, show life.

    Parameters
    ----------
    verbose : int
        0 for silence.
    describe : callable
        Takes the seconds since the beginning, returns the line.
    """
    if not verbose:
        yield
        return
    begun = time.perf_counter()
    done = threading.Event()
    with _live_line(verbose) as (write, interval):

        def tick() -> None:
            while not done.wait(interval):
                write(describe(time.perf_counter() - begun))

        thread = threading.Thread(target=tick, name="owasvm-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def _live_line(verbose: int) -> Iterator[tuple[Callable[[str], None], float]]:
    """A function that writes a line, and the seconds between two.

    Over the last line on a terminal with rich, else below it.
    """
    status = _make_status() if verbose == 1 else None
    if status is None:
        yield logger.info, _INTERVAL
        return
    with status:
        from rich.text import Text

        # Labels may look like markup.
        yield lambda line: status.update(Text(line)), _LIVE_INTERVAL


def _make_status() -> Any:
    """A live line of rich; None without rich or without a terminal."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console().status("owasvm", spinner="dots")


@contextmanager
def speaking(verbose: int) -> Iterator[None]:
    """Let the logger ``owasvm`` speak, on standard output if nobody listens.

    Parameters
    ----------
    verbose : int
        0 leaves it as it is, 1 is for progress, 2 for every step.
    """
    if not verbose:
        yield
        return
    package = logging.getLogger("owasvm")
    level = package.level
    handler = None if package.hasHandlers() else logging.StreamHandler(sys.stdout)
    if handler is not None:
        package.addHandler(handler)
    package.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    try:
        yield
    finally:
        package.setLevel(level)
        if handler is not None:
            package.removeHandler(handler)
