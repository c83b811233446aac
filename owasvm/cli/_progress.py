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

# From here on a trial on a part of the rows costs little beside the whole.
_ROWS_FOR_A_TRIAL = 4_000
_TRIAL_ROWS = 1_000
# Time grows like n^1.95 with a kernel and n^0.86 without (benchmarks/growth.py).
_KERNEL_POWER, _LINEAR_POWER = 2.0, 1.0
_WORTH_A_NOTE = 5.0
_LONG = 10.0


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
    """Seconds that a training will take, extrapolated from one on a part of the rows.

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
    is_predictable = arguments.solver in {None, "auto", "newton"}
    if n_rows < _ROWS_FOR_A_TRIAL or not is_predictable or arguments.time_limit is not None:
        return None
    # The first trial compiles.
    first, part = (_some_rows(training, n) for n in (_TRIAL_ROWS // 5, _TRIAL_ROWS))
    if first is None or part is None:
        return None
    train(first)
    started = perf_counter()
    train(part)
    seconds = perf_counter() - started
    power = _LINEAR_POWER if arguments.model == "linear" else _KERNEL_POWER
    total = seconds * (n_rows / part.labels.size) ** power
    if total >= _WORTH_A_NOTE:
        note(
            f"{n_rows:,} rows will take about {in_words(total)}, extrapolated from "
            f"{part.labels.size:,} rows in {seconds:.2g} s"
        )
    return total


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
    may_be_long = n_rows >= _TRIAL_ROWS and sys.stderr.isatty()
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


def in_words(seconds: float) -> str:
    """A duration as people say it, no more precise than it is known."""
    if seconds < 90.0:
        return f"{seconds:.0f} seconds" if seconds < 10.0 else f"{round(seconds, -1):.0f} seconds"
    if seconds < 5400.0:
        return f"{seconds / 60.0:.0f} minutes"
    return f"{seconds / 3600.0:.1f} hours".replace(".0 ", " ")
