"""A progress bar on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

__all__ = ["Progress"]


class Progress:
    """Cells done, rate and remaining time.

    Parameters
    ----------
    is_shown : bool or None, default=None
        Whether to draw; None draws if standard error is a terminal and rich is installed.

    Examples
    --------
    >>> from owasvm.experiments.progress import Progress
    >>> with Progress(is_shown=False) as progress:
    ...     progress.start(total=10, done=4)
    ...     progress.advance(2)
    ...     progress.done
    6
    """

    def __init__(self, is_shown: bool | None = None) -> None:
        self.done = 0
        self.total = 0
        self._first = 0
        self._begun = 0.0
        self._bar: Any = None
        self._task: Any = None
        self.is_shown = sys.stderr.isatty() if is_shown is None else is_shown

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Show the bar: `done` of `total` cells were stored before."""
        self.total = total
        self.done = self._first = done
        self._begun = time.monotonic()
        if self.is_shown:
            self._bar = _rich_bar()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("fits", total=total, completed=done, rate=0.0)

    def advance(self, n_cells: int) -> None:
        """Count cells that were just stored."""
        self.done += n_cells
        if self._bar is not None:
            seconds = max(time.monotonic() - self._begun, 1e-9)
            rate = (self.done - self._first) / seconds
            self._bar.update(self._task, completed=self.done, rate=rate)


def _rich_bar() -> Any:
    """A bar with our columns, None if rich is not installed: nobody fails for want of a bar."""
    try:
        rich = import_module("rich.progress")
        console = import_module("rich.console").Console(stderr=True)
    except ModuleNotFoundError:
        return None
    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]:.1f} per second,"),
        rich.TimeRemainingColumn(),
        rich.TextColumn("left"),
        console=console,
        # Chains differ in speed: estimate from the last minutes, not the last seconds.
        speed_estimate_period=300.0,
    )
