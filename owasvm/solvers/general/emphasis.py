"""Where curvature is wanted, and how to get much of it.

``1/2 |w|^2`` has only so much curvature to give: the emphases are scaled until no eigenvalue of
the weighted scatter exceeds 1. Samples far beyond the margin do not need any. Samples that take
part in the largest eigenvalues more than others are expensive.

Two ways to spend it. `level_emphases` treats all samples near the margin alike and lowers the
expensive ones until many eigenvalues share the largest value. `refit_emphases` looks at a relaxed
solution: where it mixes two far ends, curvature would lift the bound. The bound is concave in the
curvatures, with half the spread of the mixture for its derivative; at the best ones the spreads
are proportional to what curvature costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem
from owasvm.solvers.general.geometry import CentredData
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tuning import EmphasisTuning

FloatArray = NDArray[np.float64]


def emphasise_margin(
    problem: OWAProblem, slack: FloatArray, tuning: EmphasisTuning
) -> CentredData:
    """The data with equal emphases on the samples whose deviations the slacks leave in doubt."""
    return CentredData(problem, np.where(slack > tuning.near_margin, 1.0, tuning.little))


def level_emphases(search: Search, slack: FloatArray) -> CentredData:
    """The data with emphases near the margin that make the leading eigenvalues alike."""
    problem, tuning = search.problem, search.tuning.emphasis
    best = data = emphasise_margin(problem, slack, tuning)
    needed = slack > tuning.near_margin
    if not needed.any():
        return data
    emphases = data.emphases
    most = _measure_curvature(data)
    for _ in range(tuning.n_rounds):
        if search.clock.has_spent(search.tuning.choice.share_of_time):
            break
        leverages = np.minimum(data.axes.leverages(), tuning.max_leverage)
        emphases = emphases * np.exp(tuning.level_rate * (1.0 - leverages))
        emphases = np.where(needed, emphases / emphases[needed].mean(), tuning.little)
        data = CentredData(problem, emphases)
        if _measure_curvature(data) > most:
            best, most = data, _measure_curvature(data)
    return best


def _measure_curvature(data: CentredData) -> float:
    """Geometric mean of the curvatures, up to a constant, as a logarithm."""
    return float(np.log(data.emphases).mean() - np.log(data.axes.largest_remaining(0)))


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
