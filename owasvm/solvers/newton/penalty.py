"""The penalty of splitting: one to begin with, and another one where either side lags behind."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.newton.core import ConvexTask, Iterate

FloatArray = NDArray[np.float64]

__all__ = ["Lags", "choose_penalty", "extrapolate_pivots"]

# The mean cost, within these multiples of the inverse of the geometric mean of the kernel's
# eigenvalues. Of these this share of their arithmetic mean counts at least.
_LEAST_PENALTY = 8.0
_MOST_PENALTY = 25.0
_LEAST_EIGENVALUE = 0.01
# With so many samples every other one tells the eigenvalues, within a quarter and in an eighth of
# the time. That of all of them is as long as a quarter of what else is done before iterations.
_MANY_SAMPLES = 200
# Weights that are not steep: what dual points vary by per unit of slack, within these multiples of
# that. (With steep weights few samples carry most of the dual point, and it says little.)
_LEAST_SHARE = 0.15
_MOST_SHARE = 3.0
# Squared deviations of heavy tails: 4 of 250 fits missed their gap without this factor, 3 with
# half of it, none with it and with twice as much.
_CURVED = 10.0
# One side lags behind when the other one has changed so many times less, over so many records.
_LAGS = 3.0
_RECORDS_BACK = 2
_LEAST_RECORDS = 4
_FACTOR = 8.0


def choose_penalty(task: ConvexTask, iterate: Iterate, *, is_steep: bool) -> float:
    """One that suits most directions of the feature space.

    Alone, each iteration leaves most of the error where eigenvalues of the kernel are far from
    the inverse of the penalty. Those of a wide kernel are small, all but a few.
    """
    mass = task.loss.mass
    lift = _LEAST_EIGENVALUE / task.unit_penalty
    lifts = np.broadcast_to(lift if mass is None else lift / mass, task.y.shape)
    operator, n_samples = task.operator, task.y.size
    if n_samples >= _MANY_SAMPLES:
        index = np.arange(0, n_samples, 2)
        operator, lifts = operator.take(index), lifts[index]
    logs = operator.lift(lifts).log_pivots()
    unit = math.exp(-extrapolate_pivots(logs, n_samples, math.log(lift)))
    if mass is not None:
        unit *= float(np.exp(-np.log(mass).mean()))
    usual = min(max(task.loss.mean_cost, _LEAST_PENALTY * unit), _MOST_PENALTY * unit)
    if task.loss.is_curved:
        return _CURVED * usual
    density = iterate.dual if mass is None else iterate.dual / mass
    spread = float(iterate.slack.std())
    if is_steep or not 0.0 < spread < math.inf:
        return usual
    return min(max(float(density.std()) / spread, _LEAST_SHARE * usual), _MOST_SHARE * usual)


def extrapolate_pivots(logs: FloatArray, n_samples: int, least: float) -> float:
    """The mean logarithm of the pivots of all samples, from those of the first ones.

    A pivot is what the samples before it leave of a sample's variance. It falls with their number
    k, about as a power of k, to what was added to the diagonal.

    Parameters
    ----------
    logs : ndarray of shape (n_known,)
        Logarithms of the first pivots.
    n_samples : int
        Number of samples.
    least : float
        The smallest logarithm that there can be.
    """
    n_known = logs.size
    if n_known == n_samples:
        return float(logs.mean())
    quarter, half = n_known // 4, n_known // 2
    late = float(logs[half:].mean())
    power = (late - float(logs[quarter:half].mean())) / math.log(2.0)
    # The second half of the pivots has its mean at about this number.
    centre = math.exp(np.log(np.arange(half, n_known) + 1.0).mean())
    numbers = np.arange(n_known, n_samples) + 1.0
    rest = np.maximum(late + power * np.log(numbers / centre), least)
    return float((logs.sum() + rest.sum()) / n_samples)


class Lags:
    """What objective and bound have gained, and which of them lags behind.

    Where the classifier still improves and the bound does not any more, the penalty is too small,
    and the other way round. 19 slow fits missed their goal at one penalty for 500 iterations, and
    for another 500: at ten times it, or a tenth of it, 6 of them got there instead, and 8 came at
    least five times closer.
    """

    def __init__(self) -> None:
        self._objectives: list[float] = []
        self._bounds: list[float] = []

    def note(self, objective: float, bound: float) -> None:
        """Keep the best ones until now."""
        self._objectives.append(min([objective, *self._objectives[-1:]]))
        self._bounds.append(max([bound, *self._bounds[-1:]]))

    def find_factor(self) -> float:
        """By how much the penalty is to change; 1 where nothing says so."""
        if len(self._bounds) < _LEAST_RECORDS:
            return 1.0
        fall = self._objectives[-1 - _RECORDS_BACK] - self._objectives[-1]
        rise = self._bounds[-1] - self._bounds[-1 - _RECORDS_BACK]
        if fall > _LAGS * rise:
            return _FACTOR
        return 1.0 / _FACTOR if rise > _LAGS * fall else 1.0
