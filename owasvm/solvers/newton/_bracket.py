"""Zeros of functions of one variable, closed in on by regula falsi; line searches."""

from dataclasses import dataclass

__all__ = ["Bracket", "SearchState", "begin_search", "next_step"]

# Each evaluation of a line search halves its interval, or better.
_MAX_EVALUATIONS = 40.0
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


#: A line search: the step to look at, the ends of an interval with the slopes there, which of
#: them moved last, whether the first step may be too short, whether the interval has two ends,
#: and how many evaluations are left. Numbers all of them, for compiled loops.
SearchState = tuple[float, float, float, float, float, float, float, float, float]


def begin_search(slope: float, limited: bool) -> SearchState:
    """The search for a step at which a slope has fallen to a share of its first value.

    Parameters
    ----------
    slope : float
        At the beginning, negative.
    limited : bool
        The first step may be too short.
    """
    return 1.0, 0.0, slope, 0.0, 0.0, 0.0, 1.0 if limited else 0.0, 0.0, _MAX_EVALUATIONS


def next_step(
    state: SearchState, slope: float, goal: float, longer: float
) -> tuple[bool, SearchState]:
    """Whether to look at another step, and where the search stands then.

    Parameters
    ----------
    state : tuple
        Where it stood.
    slope : float
        At the step that was looked at.
    goal : float
        The size of a slope that will do.
    longer : float
        The slope that asks for a longer step where the first one was limited.
    """
    step, low, slope_low, high, slope_high, last_side, limited, bracketed, left = state
    if limited > 0.0 and slope < longer and step < _MAX_STEP:
        return True, (4.0 * step, step, slope, high, slope_high, last_side, limited, 0.0, left)
    limited = 0.0
    if bracketed == 0.0:
        if slope <= goal:
            return False, state
        bracketed = 1.0
        high, slope_high = step, slope
    else:
        left -= 1.0
        # A slope that is not a number would never end it.
        if left <= 0.0 or abs(slope) <= goal:
            return False, state
        # The Illinois rule, as in `Bracket`.
        side = 1.0 if slope > 0.0 else -1.0
        if side > 0.0:
            high, slope_high = step, slope
            slope_low *= 0.5 if side == last_side else 1.0
        else:
            low, slope_low = step, slope
            slope_high *= 0.5 if side == last_side else 1.0
        last_side = side
    crossing = low - slope_low * (high - low) / (slope_high - slope_low)
    inset = _INSET * (high - low)
    step = min(max(crossing, low + inset), high - inset)
    return True, (step, low, slope_low, high, slope_high, last_side, limited, bracketed, left)
