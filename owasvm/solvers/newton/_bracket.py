"""A zero of a non-decreasing function between two points, closed in on by regula falsi."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Bracket:
    """Two points with function values of opposite sign, and the Illinois rule.

    An end that stays twice in a row loses half of its weight, so that both ends move.
    """

    low: float
    value_low: float
    high: float
    value_high: float
    _last_side: int = 0

    def crossing(self) -> float:
        """Where the line through both ends is zero."""
        width = self.high - self.low
        return self.low - self.value_low * width / (self.value_high - self.value_low)

    def narrow(self, where: float, value: float) -> None:
        """Replace the end on the side of `where`."""
        side = 1 if value > 0 else -1
        if side > 0:
            self.high, self.value_high = where, value
        else:
            self.low, self.value_low = where, value
        if side == self._last_side:
            if side > 0:
                self.value_low *= 0.5
            else:
                self.value_high *= 0.5
        self._last_side = side
