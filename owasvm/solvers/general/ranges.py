r"""Where a better classifier can be at all.

Any (w, b) with an objective below U has :math:`|w| \le \sqrt{2U}`, lies in the ball around the
solution of a convex problem below ours, :math:`|w - w_a|^2 \le 2 (U - D(a))`, and an intercept
that does not send a whole class beyond what U allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import feasible_dual, proven_value
from owasvm.problem import OWAProblem
from owasvm.solution import Solution
from owasvm.solvers.general.geometry import CentredData
from owasvm.solvers.general.rank_split import tail_sums

FloatArray = NDArray[np.float64]

# Intervals may be a little too wide, never too narrow.
_ROUNDED_UP = 1.0 + 1e-9


def intercept_range(problem: OWAProblem, data: CentredData, upper: float) -> tuple[float, float]:
    """Centred intercepts at which an objective below `upper` is possible.

    If b is large, every negative sample deviates by at least ``1 + b - |w| |phi(x_i)|``, and these
    deviations cost the sum of as many last costs per unit.
    """
    costs = problem.costs.by_rank()
    sums = tail_sums(costs)
    reach = _ROUNDED_UP * float(np.sqrt(2.0 * upper) * data.norms.max())
    ends = []
    for sign in (-1.0, 1.0):
        charge = float(sums[int(np.count_nonzero(problem.y == -sign))])
        # Without a charge w = 0, b = sign costs nothing, and `upper` is 0 already.
        ends.append(sign * (upper / max(charge, 1e-300) - 1.0 + reach))
    return min(ends[0], ends[1]), max(ends[0], ends[1])


def slack_ranges(
    problem: OWAProblem, data: CentredData, upper: float
) -> tuple[FloatArray, FloatArray]:
    """Slacks ``1 - y_i f(x_i)`` at which an objective below `upper` is possible."""
    low, high = intercept_range(problem, data, upper)
    reach = _ROUNDED_UP * np.sqrt(2.0 * upper) * data.norms
    ends = problem.y * low, problem.y * high
    return 1.0 - np.maximum(*ends) - reach, 1.0 - np.minimum(*ends) + reach


@dataclass(frozen=True)
class Ball:
    """Holds every w with an objective below a value: the centre by its coefficients."""

    coef: FloatArray
    radius: float


def safe_ball(problem: OWAProblem, bound: Solution, upper: float) -> Ball:
    """The ball around a point of the dual set, ``|w - w_a|^2 <= 2 (upper - D(a))``."""
    coef = feasible_dual(problem, bound.dual)
    room = max(upper - proven_value(problem, coef, float(coef.sum())), 0.0)
    return Ball(coef, _ROUNDED_UP * float(np.sqrt(2.0 * room)))
