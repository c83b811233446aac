"""How long a solver may go on: the time limit, and interruptions."""

from __future__ import annotations

import time
from dataclasses import dataclass

from owasvm._jit import seconds_compiling
from owasvm.solution import Status
from owasvm.solvers._interrupts import stop_is_wanted
from owasvm.solvers.contract import Settings


@dataclass
class Clock:
    """Time and interruptions of one solve; every loop looks at it."""

    settings: Settings
    begun: float
    compiled: float = 0.0

    @classmethod
    def start(cls, settings: Settings) -> Clock:
        """A clock that starts now."""
        return cls(settings, time.perf_counter(), seconds_compiling())

    @property
    def elapsed(self) -> float:
        """Seconds since the start, less those that went into compiling."""
        return time.perf_counter() - self.begun - (seconds_compiling() - self.compiled)

    @property
    def expired(self) -> bool:
        """Whether it is time to stop: the limit has passed, or somebody wants to."""
        return self.has_spent(1.0)

    @property
    def reason(self) -> Status:
        """Why it was time to stop."""
        return Status.INTERRUPTED if stop_is_wanted() else Status.TIME_LIMIT

    def has_spent(self, share: float) -> bool:
        """Whether a share of the time limit has passed."""
        limit = self.settings.time_limit
        return stop_is_wanted() or (limit is not None and self.elapsed > share * limit)

    def has_room_for(self, seconds: float) -> bool:
        """Whether something that takes so long can be begun."""
        remaining = self.remaining
        return not stop_is_wanted() and (remaining is None or seconds < remaining)

    @property
    def remaining(self) -> float | None:
        """Seconds left, at least a moment."""
        limit = self.settings.time_limit
        return None if limit is None else max(limit - self.elapsed, 1e-3)
