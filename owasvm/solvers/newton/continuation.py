"""Solutions that follow C exactly: known ones that are proven for other costs without a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import Certificate, judge
from owasvm.losses import RankedLoss
from owasvm.problem import OWAProblem
from owasvm.solution import Solution
from owasvm.solvers.newton.tuning import Tuning

__all__ = ["carry_over", "find_trend"]


def carry_over(
    problem: OWAProblem, known: Solution, loss: RankedLoss, tol: float, tuning: Tuning
) -> Certificate | None:
    r"""Certificate of a solution for a multiple of its costs, where no step is needed.

    Where nothing deviates, the solution remains one for all larger costs; what the tolerance left
    of deviations goes when all is divided by 1 minus the largest. Where every sample deviates,
    :math:`(w, b, a)` times the growth g of the costs is a solution as long as every sample still
    does: the deviations :math:`1 - g y_i f(x_i)` keep their order and their ties, so that
    :math:`g a` is a subgradient there.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    known : Solution
        Solution of a problem with the same samples and labels.
    loss : RankedLoss
        The loss of the problem.
    tol : float
        Relative gap to prove.
    tuning : Tuning
        Where a deviation counts as none.

    Returns
    -------
    certificate : Certificate or None
        None where the gap is not proven.
    """
    factor = _find_factor(problem, known, loss.mean_cost, tuning.on_margin)
    if factor is None:
        return None
    # Where nothing deviates the middle of the best intercepts is multiplied like all else.
    moves = known.deviations is not None and known.deviations.max() > tuning.on_margin
    weight = None
    if problem.samples.keeps_weight and known.coef is not None:
        weight = factor * known.coef
    found = judge(
        problem,
        factor * known.dual,
        factor * known.intercept,
        weight=weight,
        intercept_within=tuning.worth_a_search * tol if moves else -np.inf,
        tol=tol,
        final=False,
        loss=loss,
    )
    return None if found.is_worse_than_nothing or found.worst_gap > tol else found


def find_trend(
    known: Solution | None, dual: NDArray[np.float64], mean_cost: float
) -> dict[str, NDArray[np.float64]]:
    """How the coefficients have changed since a known solution, per unit of mean cost.

    A note among the details of a solution: the next one starts from where the two point to.
    """
    before = 0.0 if known is None else known.details.get("mean_cost", 0.0)
    if known is None or not before > 0.0 or mean_cost == before:
        return {}
    return {"trend": (dual - known.dual) / (mean_cost - before)}


def _find_factor(
    problem: OWAProblem, known: Solution, mean_cost: float, on_margin: float
) -> float | None:
    """What w, b and a are to be multiplied with; None where they bend."""
    before = known.details.get("mean_cost", 0.0)
    if problem.loss != "hinge" or known.deviations is None or not before > 0.0:
        return None
    growth = mean_cost / before
    smallest, largest = known.deviations.min(), known.deviations.max()
    if largest <= on_margin and growth * (1.0 - largest) >= 1.0:
        return float(1.0 / (1.0 - largest))
    return growth if smallest > 0.0 and growth * (1.0 - smallest) <= 1.0 else None
