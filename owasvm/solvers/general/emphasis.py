"""Where curvature is wanted, and how to get much of it.

``1/2 |w|^2`` has only so much curvature to give: the emphases are scaled until no eigenvalue of
the weighted scatter exceeds 1. Samples far beyond the margin do not need any. Samples that take
part in the largest eigenvalues more than others are expensive.

To spend it well, `refit_emphases` looks at a relaxed solution: where it mixes two far ends,
curvature would lift the bound. The bound is concave in the curvatures, with half the spread of the
mixture for its derivative; at the best ones the spreads are proportional to what curvature costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.solvers.general.geometry import CentredData
from owasvm.solvers.general.tuning import EmphasisTuning

FloatArray = NDArray[np.float64]


def emphasise_margin(
    problem: OWAProblem, slack: FloatArray, tuning: EmphasisTuning
) -> CentredData:
    """The data with equal emphases on the samples whose deviations the slacks leave in doubt."""
    return CentredData(problem, np.where(slack > tuning.near_margin, 1.0, tuning.little))


def refit_emphases(
    data: CentredData, spreads: FloatArray, n_directions: int, tuning: EmphasisTuning
) -> CentredData:
    """The data with emphases moved to where they gain more than they cost.

    Parameters
    ----------
    data : CentredData
        The data with its present emphases.
    spreads : ndarray of shape (n_samples,)
        Variances of the mixtures in a relaxed solution, not all 0.
    n_directions : int
        Directions that are coordinates: their eigenvalues do not count.
    tuning : EmphasisTuning
        How far to move.
    """
    shares = data.emphases / data.emphases.sum()
    expense = data.axes.leverages(n_directions) / data.emphases
    gain = spreads / (shares @ spreads) + tuning.floor
    ratio = gain / (expense / (shares @ expense) + tuning.floor)
    ratio = np.clip(ratio, 1.0 / tuning.max_ratio, tuning.max_ratio)
    emphases = data.emphases * ratio**tuning.fit_rate
    return CentredData(data.problem, np.maximum(emphases / emphases.mean(), tuning.floor))
