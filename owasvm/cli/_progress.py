"""How long a training will take, and that it is alive."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from owasvm.cli._errors import UsageError, note
from owasvm.cli._training import Training

#: Beyond so many rows a kernel model is refused: days, and nothing that a linear one would not do.
MOST_KERNEL_ROWS = 100_000

# Rows of a small and a large trial. Without a kernel most of the time of a small one goes into
# what does not grow with the rows.
_KERNEL_TRIALS = (200, 1_000)
_LINEAR_TRIALS = (1_000, 5_000)
# From so many times the rows of the large one on, trials cost little beside the whole.
_WORTH_A_TRIAL = 4
_WORTH_A_NOTE = 5.0
_LONG = 10.0
# Seconds without a word, at the beginning and between lines that may be many.
_SILENCE = 5.0


def check_size(training: Training, arguments: argparse.Namespace) -> None:
    """Refuse more rows than a kernel model can take, before anything is computed."""
    n_rows = training.labels.size
    if arguments.model == "linear" or n_rows <= MOST_KERNEL_ROWS:
        return
    raise UsageError(
        f"{n_rows:,} rows are too many for a kernel, whose time grows with their square: take "
        f"--model linear, or at most {MOST_KERNEL_ROWS:,} of the rows"
    )


def estimate(
    training: Training, arguments: argparse.Namespace, train: Callable[[Training], Any]
) -> float | None:
    """Seconds that a training will take, extrapolated from some on a part of the rows.

    Parameters
    ----------
    training : Training
        All rows.
    arguments : argparse.Namespace
        Options of the command.
    train : callable
        What will be done with all rows.

    Returns
    -------
    seconds : float or None
        None where nothing was measured: few rows, or a solver whose time does not follow from
        the number of rows.
    """
    n_rows = training.labels.size
    is_linear = arguments.model == "linear"
    few, many = _LINEAR_TRIALS if is_linear else _KERNEL_TRIALS
    is_predictable = arguments.solver in {None, "auto", "newton"}
    if n_rows < _WORTH_A_TRIAL * many or not is_predictable or arguments.time_limit is not None:
        return None
    small, large = _some_rows(training, few), _some_rows(training, many)
    if small is None or large is None:
        return None
    # The first trial compiles.
    train(small)
    before = _measure(train, small) if is_linear else 0.0
    seconds = _measure(train, large)
    # Time grows like n^1.95 with a kernel and n^0.86 without (benchmarks/growth.py).
    if is_linear:
        total = seconds + max(seconds - before, 0.0) * (n_rows - many) / (many - few)
    else:
        total = seconds * (n_rows / many) ** 2
    if total >= _WORTH_A_NOTE:
        note(
            f"{n_rows:,} rows will take about {in_words(total)}, extrapolated from "
            f"{many:,} rows in {seconds:.2g} s"
        )
    return total


def _measure(train: Callable[[Training], Any], part: Training) -> float:
    """Seconds that a training takes."""
    started = perf_counter()
    train(part)
    return perf_counter() - started


def _some_rows(training: Training, n_rows: int) -> Training | None:
    """Rows with the classes in proportion; None where a class would get lost."""
    import numpy as np
    from sklearn.model_selection import StratifiedShuffleSplit

    counts = np.unique(training.labels, return_counts=True)[1]
    if counts.min() * n_rows < 20 * training.labels.size:
        return None
    split = StratifiedShuffleSplit(1, train_size=n_rows, random_state=0)
    rows, _ = next(split.split(np.zeros(training.labels.size), training.labels))
    return training.take(np.sort(rows))


@contextmanager
def show_life(seconds: float | None, n_rows: int, solver: str | None) -> Iterator[int]:
    """Let long fits tell how far they are, on standard error.

    Parameters
    ----------
    seconds : float or None
        What was estimated.
    n_rows : int
        Without an estimate, on a terminal, fits of so many rows may turn out to be long.
    solver : str or None
        "miqp" may take long with any number of rows.

    Yields
    ------
    verbose : int
        For the estimators.
    """
    may_be_long = n_rows >= _KERNEL_TRIALS[1] and sys.stderr.isatty()
    if solver == "miqp":
        may_be_long = True
        note(
            "--solver miqp hands a problem with a binary variable per pair of rows to an outside "
            "solver, which can take long beyond two dozen rows; --time-limit ends each fit, and "
            "every fold of --cv is one"
        )
    if not (may_be_long if seconds is None else seconds >= _LONG):
        yield 0
        return
    logger = logging.getLogger("owasvm")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    try:
        yield 1
    finally:
        logger.removeHandler(handler)


def speak_late() -> Callable[[str], None]:
    """A function that notes a line, but none before some seconds have passed."""
    quiet_until = perf_counter() + _SILENCE

    def speak(line: str) -> None:
        if perf_counter() >= quiet_until:
            note(line)

    return speak


def speak_seldom(report: Callable[[str], None]) -> Callable[[object], None]:
    """A function that reports what it gets, as text, if the last time was some seconds ago."""
    quiet_until = perf_counter() + _SILENCE

    def speak(state: object) -> None:
        nonlocal quiet_until
        if perf_counter() >= quiet_until:
            report(str(state))
            quiet_until = perf_counter() + _SILENCE

    return speak


def in_words(seconds: float) -> str:
    """A duration as people say it, no more precise than it is known."""
    if seconds < 90.0:
        return f"{seconds:.0f} seconds" if seconds < 10.0 else f"{round(seconds, -1):.0f} seconds"
    if seconds < 5400.0:
        return f"{seconds / 60.0:.0f} minutes"
    return f"{seconds / 3600.0:.1f} hours".replace(".0 ", " ")
