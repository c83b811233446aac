"""Zeros of functions of one variable, closed in on by regula falsi; line searches.

A bracket is an array: two points, the values there, of opposite sign, and which end moved last.
"""

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit

FloatArray = NDArray[np.float64]

LOW = 0
VALUE_LOW = 1
HIGH = 2
VALUE_HIGH = 3
_LAST_SIDE = 4
# A line search has more to remember: the next step, the slope at 0, the slope that will do, what
# it is waiting for and how many evaluations are left.
STEP = 5
FIRST_SLOPE = 6
_GOAL = 7
_PHASE = 8
_LEFT = 9
SIZE = 10

# Each evaluation of a line search halves its interval, or better.
_MAX_EVALUATIONS = 40
_MAX_STEP = 1e6
_LONGER, _FIRST, _BETWEEN = 2.0, 1.0, 0.0


def make_bracket(low: float, value_low: float, high: float, value_high: float) -> FloatArray:
    """Two points and the values there."""
    return np.array([low, value_low, high, value_high, 0.0])


def crossing(bracket: FloatArray) -> float:
    """Where the line through both ends is zero."""
    width = bracket[HIGH] - bracket[LOW]
    return bracket[LOW] - bracket[VALUE_LOW] * width / (bracket[VALUE_HIGH] - bracket[VALUE_LOW])


def narrow(bracket: FloatArray, where: float, value: float) -> None:
    """Changes `bracket` in place: replaces the end on the side of `where`, by the Illinois rule.

    An end that stays twice in a row loses half of its weight, so that both ends move.
    """
    side = 1.0 if value > 0 else -1.0
    if side > 0:
        bracket[HIGH] = where
        bracket[VALUE_HIGH] = value
    else:
        bracket[LOW] = where
        bracket[VALUE_LOW] = value
    if side == bracket[_LAST_SIDE]:
        if side > 0:
            bracket[VALUE_LOW] *= 0.5
        else:
            bracket[VALUE_HIGH] *= 0.5
    bracket[_LAST_SIDE] = side


_crossing = njit(cache=True, internal=True)(crossing)
_narrow = njit(cache=True, internal=True)(narrow)


def begin_search(slope: float, slope_share: float, limited: bool) -> FloatArray:
    """A line search that ends when the slope has fallen to a share of its first value.

    `limited`: the first step may be too short.
    """
    search = np.zeros(SIZE)
    _start(search, slope, slope_share, limited)
    return search


def _start(search: FloatArray, slope: float, slope_share: float, limited: bool) -> None:
    """Overwrites `search`: see :func:`begin_search`."""
    for k in range(SIZE):
        search[k] = 0.0
    search[STEP] = 1.0
    search[VALUE_LOW] = slope
    search[FIRST_SLOPE] = slope
    search[_GOAL] = slope_share * abs(slope)
    search[_PHASE] = _LONGER if limited else _FIRST
    search[_LEFT] = _MAX_EVALUATIONS


start_search = njit(cache=True, internal=True)(_start)


@njit(cache=True, internal=True)
def proceed(search: FloatArray, slope: float, still_falling: float) -> bool:
    """Changes `search` in place: the step to look at after this slope; False if none is needed."""
    step = search[STEP]
    if search[_PHASE] == _LONGER:
        if slope < still_falling * search[FIRST_SLOPE] and step < _MAX_STEP:
            search[LOW] = step
            search[VALUE_LOW] = slope
            search[STEP] = 4.0 * step
            return True
        search[_PHASE] = _FIRST
    if search[_PHASE] == _FIRST:
        if slope <= search[_GOAL]:
            return False
        search[HIGH] = step
        search[VALUE_HIGH] = slope
        search[_PHASE] = _BETWEEN
    else:
        search[_LEFT] -= 1.0
        # A slope that is not a number would never end it.
        if search[_LEFT] <= 0.0 or abs(slope) <= search[_GOAL]:
            return False
        _narrow(search, step, slope)
    inset = 0.02 * (search[HIGH] - search[LOW])
    # Comparisons: min and max would be two functions more to compile.
    step = _crossing(search)
    if step < search[LOW] + inset:
        step = search[LOW] + inset
    if step > search[HIGH] - inset:
        step = search[HIGH] - inset
    search[STEP] = step
    return True


@njit(cache=True)
def go_on(search: FloatArray, slope: float, still_falling: float) -> bool:
    """:func:`proceed` for calls from Python."""
    return proceed(search, slope, still_falling)
