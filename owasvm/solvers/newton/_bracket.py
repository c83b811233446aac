"""Zeros of functions of one variable, closed in on by regula falsi; line searches."""

from dataclasses import dataclass

from owasvm._jit import register_jitable

__all__ = ["Bracket", "SearchState", "begin_search", "next_step"]

# Each evaluation of a line search halves its interval, or better.
_MAX_EVALUATIONS = 40.0
_MAX_STEP = 1e6
# Of the interval: trial steps keep this distance from its ends.
_INSET = 0.02


@register_jitable
def cross_zero(low: float, value_low: float, high: float, value_high: float) -> float:
    """Where the line through two points is zero."""
    return low - value_low * (high - low) / (value_high - value_low)


@register_jitable
def narrow(
    low: float,
    value_low: float,
    high: float,
    value_high: float,
    last_side: float,
    where: float,
    value: float,
) -> tuple[float, float, float, float, float]:
    """The interval with the end on the side of `where` replaced, by the Illinois rule.

    An end that stays twice in a row loses half of its weight, so that both ends move.
    """
    side = 1.0 if value > 0.0 else -1.0
    share = 0.5 if side == last_side else 1.0
    if side > 0.0:
        return low, share * value_low, where, value, side
    return where, value, high, share * value_high, side


@dataclass
class Bracket:
    """Two points and the values there, of opposite sign."""

    low: float
    value_low: float
    high: float
    value_high: float
    _last_side: float = 0.0

    def crossing(self) -> float:
        """Where the line through both ends is zero."""
        return cross_zero(self.low, self.value_low, self.high, self.value_high)

    def narrow(self, where: float, value: float) -> None:
        """Replace the end on the side of `where`."""
        ends = self.low, self.value_low, self.high, self.value_high
        found = narrow(*ends, self._last_side, where, value)
        self.low, self.value_low, self.high, self.value_high, self._last_side = found


#: A line search: the step to look at, the ends of an interval with the slopes there, which of
#: them moved last, whether the first step may be too short, whether the interval has two ends,
#: and how many evaluations are left. Numbers all of them, for compiled loops.
SearchState = tuple[float, float, float, float, float, float, float, float, float]


@register_jitable
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


@register_jitable
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
        low, slope_low, high, slope_high, last_side = narrow(
            low, slope_low, high, slope_high, last_side, step, slope
        )
    crossing = cross_zero(low, slope_low, high, slope_high)
    inset = _INSET * (high - low)
    step = min(max(crossing, low + inset), high - inset)
    return True, (step, low, slope_low, high, slope_high, last_side, limited, bracketed, left)
