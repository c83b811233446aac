"""Zeros of functions of one variable, closed in on by regula falsi; line searches."""

from dataclasses import dataclass

__all__ = ["Bracket", "LineSearch"]

# Each evaluation of a line search halves its interval, or better.
_MAX_EVALUATIONS = 40
_MAX_STEP = 1e6
# Of the interval: trial steps keep this distance from its ends.
_INSET = 0.02


@dataclass
class Bracket:
    """Two points and the values there, of opposite sign."""

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
        """Replace the end on the side of `where`, by the Illinois rule.

        An end that stays twice in a row loses half of its weight, so that both ends move.
        """
        side = 1 if value > 0.0 else -1
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


class LineSearch:
    """The search for a step at which a slope has fallen to a share of its first value.

    Parameters
    ----------
    slope : float
        At the beginning, negative.
    slope_share : float
        The slope that will do, as a share of it.
    still_falling : float
        The slope that asks for a longer step, as a share of it.
    limited : bool
        The first step may be too short.
    """

    def __init__(
        self, slope: float, slope_share: float, still_falling: float, limited: bool
    ) -> None:
        #: The step to look at.
        self.step = 1.0
        self._low, self._slope_low = 0.0, slope
        self._goal = slope_share * abs(slope)
        self._longer = still_falling * slope
        self._limited = limited
        self._bracket: Bracket | None = None
        self._left = _MAX_EVALUATIONS

    def goes_on(self, slope: float) -> bool:
        """Whether another step is to be looked at, after the slope at this one."""
        step = self.step
        if self._limited and slope < self._longer and step < _MAX_STEP:
            self._low, self._slope_low = step, slope
            self.step = 4.0 * step
            return True
        self._limited = False
        bracket = self._bracket
        if bracket is None:
            if slope <= self._goal:
                return False
            bracket = self._bracket = Bracket(self._low, self._slope_low, step, slope)
        else:
            self._left -= 1
            # A slope that is not a number would never end it.
            if self._left <= 0 or abs(slope) <= self._goal:
                return False
            bracket.narrow(step, slope)
        inset = _INSET * (bracket.high - bracket.low)
        self.step = min(max(bracket.crossing(), bracket.low + inset), bracket.high - inset)
        return True
