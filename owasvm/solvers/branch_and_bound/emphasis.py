"""Where curvature is wanted, and how to get much of it.

``1/2 |w|^2`` has only so much curvature to give: the emphases are scaled until no eigenvalue of
the weighted scatter exceeds 1. Samples far beyond the margin do not need any. Samples that take
part in the largest eigenvalues more than others are expensive.

Two ways to spend it. `levelled` treats all samples near the margin alike and lowers the expensive
ones until many eigenvalues share the largest value. `refitted` looks at a relaxed solution: where
it mixes two far ends, curvature would lift the bound. The bound is concave in the curvatures, with
half the spread of the mixture for its derivative; at the best ones the spreads are proportional to
what curvature costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.solvers._clock import Clock
from owasvm.solvers.branch_and_bound.geometry import CentredData

FloatArray = NDArray[np.float64]

# Slacks below this need little curvature, and how little.
_NEAR_MARGIN = -0.2
_LITTLE = 0.05
_ROUNDS = 16
# Share of the time limit that may pass before no more rounds are begun.
_SHARE_OF_TIME = 0.25
_LEVEL_RATE = 0.2
_FIT_RATE = 0.3
# Ratios of gain to cost are softened by this share of the mean and cut off here.
_FLOOR = 1e-3
_MAX_RATIO = 100.0


def near_margin(problem: OWAProblem, slack: FloatArray) -> CentredData:
    """The data with equal emphases on the samples whose deviations the slacks leave in doubt."""
    return CentredData(problem, np.where(slack > _NEAR_MARGIN, 1.0, _LITTLE))


def levelled(problem: OWAProblem, slack: FloatArray, clock: Clock) -> CentredData:
    """The data with emphases near the margin that make the leading eigenvalues alike."""
    best = data = near_margin(problem, slack)
    needed = slack > _NEAR_MARGIN
    if not needed.any():
        return data
    emphases = data.emphases
    most = _given(data)
    for _ in range(_ROUNDS):
        if clock.has_spent(_SHARE_OF_TIME):
            break
        factors = np.exp(_LEVEL_RATE * (1.0 - np.minimum(data.axes.leverages(), 10.0)))
        emphases = np.where(needed, emphases * factors, emphases)
        emphases = np.where(needed, emphases / emphases[needed].mean(), _LITTLE)
        data = CentredData(problem, emphases)
        if _given(data) > most:
            best, most = data, _given(data)
    return best


def _given(data: CentredData) -> float:
    """Geometric mean of the curvatures, up to a constant."""
    return float(np.log(data.emphases).mean() - np.log(data.axes.largest_remaining(0)))


def refitted(data: CentredData, spreads: FloatArray, n_directions: int) -> CentredData:
    """The data with emphases moved to where they gain more than they cost.

    Parameters
    ----------
    data : CentredData
        The data with its present emphases.
    spreads : ndarray of shape (n_samples,)
        Variances of the mixtures in a relaxed solution, not all 0.
    n_directions : int
        Directions that are coordinates: their eigenvalues do not count.
    """
    shares = data.emphases / data.emphases.sum()
    expense = data.axes.leverages(n_directions) / data.emphases
    gain = spreads / (shares @ spreads) + _FLOOR
    ratio = gain / (expense / (shares @ expense) + _FLOOR)
    emphases = data.emphases * np.clip(ratio, 1.0 / _MAX_RATIO, _MAX_RATIO) ** _FIT_RATE
    return CentredData(data.problem, np.maximum(emphases / emphases.mean(), _FLOOR))
