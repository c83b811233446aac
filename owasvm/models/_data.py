"""What every model reads off an :class:`owasvm.problem.OWAProblem`, and what none of them takes.

The solvers' contract refuses the same before a model is built; the checks here are for those who
call a model directly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem

FloatArray = NDArray[np.float64]


def rank_costs(problem: OWAProblem) -> FloatArray:
    """``C * lambda``, ascending; the models know the hinge and samples of weight 1 only."""
    if problem.costs.sample_weight is not None:
        raise ValueError(
            "The paper's models take no sample_weight or class_weight: their rank weights are "
            "one number per rank. Use solver='auto', or repeat the rows."
        )
    if problem.loss != "hinge":
        raise ValueError(f"The paper's models take loss='hinge', not {problem.loss!r}.")
    return problem.costs.by_rank()


def require_convex(problem: OWAProblem, model: str) -> FloatArray:
    """``C * lambda``, which must be non-decreasing for the convex models."""
    costs = rank_costs(problem)
    if not problem.costs.convex:
        position = int(np.argmin(np.diff(costs)))
        raise ValueError(
            f"{model} needs non-decreasing weights, but weights[{position}] > "
            f"weights[{position + 1}]; use solver='miqp', 'branch-and-bound' or 'dca'."
        )
    return costs


def gram_matrix(problem: OWAProblem) -> FloatArray:
    """``K(x_i, x_j)``, symmetric."""
    gram = problem.samples.gram_matrix()
    return 0.5 * (gram + gram.T)


def coordinates(problem: OWAProblem) -> FloatArray:
    """Rows ``r_i`` with ``r_i'r_j = K(x_i, x_j)``, one per sample.

    The classifier is searched in these coordinates: ``w'phi(x_i)`` is ``u'r_i`` and ``|w|`` is
    ``|u|``.
    """
    return problem.samples.coordinates()


def coefficients(problem: OWAProblem, rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Some ``a`` with ``sum_i a_i y_i r_i = direction``, of least norm."""
    solution = np.linalg.lstsq(rows.T, direction, rcond=1e-12)[0]
    return problem.y * solution
