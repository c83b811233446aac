"""Ctrl-C while a solver works: noted at once, acted on between two steps.

An exception raised at an arbitrary moment can cut a step in two, or surface from compiled code as
something else. While a solver works, the first SIGINT therefore only leaves a note, which all
loops look at through their :class:`~owasvm.solvers.clock.Clock`; a second one raises
KeyboardInterrupt there and then. Where a program has a handler of its own, an interrupt still
arrives as an exception; it leaves the same note. Signals reach the main thread alone, and so do
notes: solvers in other threads neither leave nor read any.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from owasvm.solution import Solution


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the best point found until then.

    Attributes
    ----------
    solution : Solution
        What the solver had; its gap is as valid as any other.
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__(f"Interrupted; the best point found is kept: {solution.summary()}")
        self.solution = solution

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Solution]]:
        return type(self), (self.solution,)


class Notes:
    """Whether somebody wants the solver of this process to stop."""

    def __init__(self) -> None:
        self.wanted = False
        self.depth = 0

    def raise_if_wanted(self, solution: Solution) -> None:
        """Stop the script if it was asked to stop, and hand over what was found."""
        if self.wanted:
            raise Interrupted(solution)


_notes = Notes()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def stop_is_wanted() -> bool:
    """Whether an interrupt has been noted."""
    return _notes.wanted and _notes.depth > 0 and _is_main_thread()


def note_interrupt(error: BaseException) -> None:
    """Leave a note for an interrupt that arrived as an exception; raise anything else again.

    Compiled code turns it into a SystemError with the interrupt for its cause.
    """
    causes: list[BaseException | None] = [error, error.__cause__, error.__context__]
    if not any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        raise error
    if _notes.depth == 0 or not _is_main_thread():
        # Nobody would read the note.
        raise KeyboardInterrupt from error
    _notes.wanted = True


def _note(signal_number: int, frame: FrameType | None) -> None:
    if _notes.wanted:
        signal.default_int_handler(signal_number, frame)
    _notes.wanted = True


@contextmanager
def noted_interrupts() -> Iterator[Notes]:
    """While this lasts, the first SIGINT leaves a note instead of raising an exception."""
    if not _is_main_thread():
        yield Notes()
        return
    if _notes.depth == 0:
        _notes.wanted = False
    _notes.depth += 1
    installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if installed:
        signal.signal(signal.SIGINT, _note)
    try:
        yield _notes
    finally:
        _notes.depth -= 1
        if installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
