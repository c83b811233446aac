"""What a solver returns: a point, its objective, a proven lower bound and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from owasvm.progress import ProgressRecord

FloatArray = NDArray[np.float64]


class Status(str, Enum):
    """How a solve ended.

    ``optimal`` means that the gap reached the requested tolerance, ``local`` that a search ended
    by itself before it did, or that a proof was not in reach, ``rounding_limit`` that double
    precision cannot prove that gap for these data, ``indefinite`` that the kernel is not positive
    semi-definite, so that there is no bound, ``backend_limit`` that an outside solver ended by
    itself before it did; the others were stopped. All keep the best point found, with a gap that
    is just as valid.
    """

    OPTIMAL = "optimal"
    LOCAL = "local"
    ROUNDING_LIMIT = "rounding_limit"
    INDEFINITE = "indefinite"
    BACKEND_LIMIT = "backend_limit"
    TIME_LIMIT = "time_limit"
    ITERATION_LIMIT = "iteration_limit"
    NODE_LIMIT = "node_limit"
    INTERRUPTED = "interrupted"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Solution:
    """A classifier with its proof.

    Parameters
    ----------
    dual : ndarray of shape (n_samples,)
        Coefficients ``a_i`` of ``w = sum_i a_i y_i phi(x_i)``. For convex weights a feasible
        point of the dual problem.
    intercept : float
        The intercept b.
    objective : float
        ``1/2 |w|^2 + C * sum_k weights[k] * xi_(k)`` at (w, b).
    lower_bound : float
        No (w, b) has a smaller objective, rounding accounted for; ``-inf`` if there is no bound.
    status : Status
        How the solve ended.
    solver : str
        Keyword of the solver.
    n_iter : int, default=0
        Iterations of the solver: Newton steps, nodes, or what the solver counts.
    coef : ndarray of shape (n_features,) or None, default=None
        w itself, for problems given by features.
    deviations : ndarray of shape (n_samples,) or None, default=None
        Hinge deviations at (w, b), where the solver left them.
    build_time, solve_time : float, default=0.0
        Seconds for setting up and for solving.
    details : mapping, default={}
        What a particular solver has to add.
    """

    dual: FloatArray
    intercept: float
    objective: float
    lower_bound: float
    status: Status
    solver: str
    n_iter: int = 0
    coef: FloatArray | None = None
    deviations: FloatArray | None = None
    build_time: float = 0.0
    solve_time: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Relative gap ``(objective - lower_bound) / max(1, |objective|)``."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def history(self) -> tuple[ProgressRecord, ...]:
        """Records of the solve, if somebody watched it: a callback, or ``verbose``."""
        return tuple(self.details.get("history", ()))

    def summary(self) -> str:
        """One line for logs and warnings."""
        return (
            f"{self.solver}: {self.status}, objective {self.objective:.8g}, "
            f"lower bound {self.lower_bound:.8g}, gap {self.gap:.1e}, "
            f"{self.n_iter} iterations, {self.build_time + self.solve_time:.3g} s"
        )


def relative_gap(objective: float, lower_bound: float) -> float:
    """Distance of `objective` to `lower_bound`, relative to ``max(1, |objective|)``.

    Infinite without a bound, and for an objective that overflows. A negative gap would be a
    contradiction, which is never "optimal".
    """
    if objective == np.inf:
        return np.inf
    return (objective - lower_bound) / max(1.0, abs(objective))
