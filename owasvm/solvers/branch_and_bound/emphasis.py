"""Where curvature is wanted, and how to get much of it.

``1/2 |w|^2`` has only so much curvature to give: the emphases are scaled until no eigenvalue of
the weighted scatter exceeds 1. Samples far beyond the margin do not need any. Samples that take
part in the largest eigenvalue more than others are expensive, and get less, until several
eigenvalues share the largest value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.solvers.branch_and_bound.geometry import CentredData

FloatArray = NDArray[np.float64]

# Slacks below this need little curvature, and how little.
_NEAR_MARGIN = -0.2
_LITTLE = 0.05
_ROUNDS = 16
_RATE = 0.2
_LEADING = 0.75


def emphasised(problem: OWAProblem, slack: FloatArray) -> CentredData:
    """The data with emphasis on the samples whose deviations the slacks leave in doubt."""
    needed = slack > _NEAR_MARGIN
    emphases = np.where(needed, 1.0, _LITTLE)
    best = data = CentredData(problem, emphases)
    most = _given(data)
    for _ in range(_ROUNDS):
        factors = np.exp(_RATE * (1.0 - np.minimum(data.leverages(_LEADING), 10.0)))
        emphases = np.where(needed, emphases * factors, emphases)
        emphases = np.where(needed, emphases / emphases[needed].mean(), _LITTLE)
        data = CentredData(problem, emphases)
        if _given(data) > most:
            best, most = data, _given(data)
    return best


def _given(data: CentredData) -> float:
    """Geometric mean of the curvatures, up to a constant."""
    return float(np.log(data.emphases).mean() - np.log(data.largest_remaining(0)))
