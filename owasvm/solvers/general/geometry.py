r"""The data of a problem in coordinates that can be branched on, and where to look.

The coordinates are those of :mod:`owasvm.samples.principal`: the intercept and leading principal
directions. The rest of the data has the curvatures ``rho_i``, the emphases over the largest
eigenvalue that is left.

Any (w, b) with an objective below U has :math:`|w| \le \sqrt{2U}`, lies in the ball around the
solution of a convex problem below ours, :math:`|w - w_a|^2 \le 2 (U - D(a))`, and has an intercept
that does not send a whole class beyond what U allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import feasible_dual, proven_value
from owasvm.problem import OWAProblem
from owasvm.rounding import accumulated
from owasvm.samples.principal import PrincipalAxes
from owasvm.solution import Solution
from owasvm.solvers.general.tuning import RelaxationTuning

FloatArray = NDArray[np.float64]

# Share of the curvature left to the rounding of the eigenvalues.
_ROUNDING = 1e-9
# Intervals may be a little too wide, never too narrow.
_ROUNDED_UP = 1.0 + 1e-9
# Curvatures are divided by; below this any other would prove as little.
_LEAST_CURVATURE = 1e-290


class CentredData:
    """A problem seen along the principal axes of its samples.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    emphases : ndarray of shape (n_samples,) or None, default=None
        Positive numbers: where curvature is wanted. Equal by default.

    Attributes
    ----------
    axes : PrincipalAxes
        The axes.
    """

    def __init__(self, problem: OWAProblem, emphases: FloatArray | None = None) -> None:
        self.problem = problem
        self.y = problem.y
        self.emphases = np.ones(problem.n_samples) if emphases is None else emphases
        self.axes: PrincipalAxes = problem.samples.principal_axes(self.emphases)
        self.norms = self.axes.norms
        self.n_directions = self.axes.n_directions

    def coordinates(self, coef: FloatArray, intercept: float, n_directions: int) -> FloatArray:
        """Coordinates of a classifier given by the original coefficients and intercept."""
        return self.axes.coordinates(self.y * coef, intercept, n_directions)

    def classifier(self, coef: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Original coefficients and intercept of a classifier given by its coordinates."""
        signed, intercept = self.axes.classifier(self.y * coef, coordinates)
        return self.y * signed, intercept


class Frame:
    """The data with a number of leading directions taken out as coordinates.

    Parameters
    ----------
    data : CentredData
        The samples.
    n_directions : int
        How many principal directions are coordinates beside the intercept.
    useful_curvature : float, default=10.0
        Largest curvature worth having, in multiples of the largest cost.

    Attributes
    ----------
    columns : ndarray of shape (n_samples, 1 + n_directions)
        Score columns of the coordinates.
    regularised : ndarray of shape (1 + n_directions,)
        1 for coordinates whose square counts in ``|w|^2``, 0 for the intercept.
    rho : ndarray of shape (n_samples,)
        Curvatures of the rest.
    stiffness : ndarray of shape (1 + n_directions,)
        ``sum_i rho_i columns_ij^2``, rounded up: what the square of a coordinate's change takes
        from the bound.
    operator : Operator
        The rest of the data.
    norms : ndarray of shape (n_samples,)
        Norms of the samples in the rest of the data, rounded up.
    """

    def __init__(
        self,
        data: CentredData,
        n_directions: int,
        useful_curvature: float = RelaxationTuning.useful_curvature,
    ) -> None:
        self.y = data.y
        self.data = data
        ones = np.ones((self.y.size, 1))
        self.columns = np.hstack([ones, data.axes.direction_scores(n_directions)])
        self.regularised = np.ones(1 + n_directions)
        self.regularised[0] = 0.0
        largest = data.axes.largest_remaining(n_directions)
        # More curvature than the costs can bend only makes the coordinates stiff.
        dearest = float(data.problem.costs.profile().density.max())
        mass = data.problem.costs.sample_weight
        emphases = data.emphases if mass is None else data.emphases / mass
        largest = max(largest, float(emphases.max()) / (useful_curvature * dearest))
        self.rho = np.maximum((1.0 - _ROUNDING) * data.emphases / largest, _LEAST_CURVATURE)
        self.stiffness = (1.0 + 2.0 * _ROUNDING) * (self.rho @ self.columns**2)
        self.operator = data.axes.without_directions(n_directions)
        lengths = data.norms**2 - np.einsum("ij,ij->i", self.columns[:, 1:], self.columns[:, 1:])
        # Rounded up, by what the subtraction can lose.
        self.norms = np.sqrt(np.maximum(lengths, 0.0) + 1e-12 * data.norms**2)
        self._score_error = data.axes.score_error(n_directions)

    def slack_errors(self, coef: FloatArray, coordinates: FloatArray) -> FloatArray:
        """How far off rounding can have left the slacks of a classifier of this frame."""
        problem = self.data.problem
        norms = problem.samples.norms
        errors = accumulated(2 * coef.size + 8) * norms * float(norms @ np.abs(coef))
        errors = errors + problem.samples.product_rounding(coef)
        return errors + self._score_error * float(np.abs(coordinates[1:]).sum())

    def offsets(self, coordinates: FloatArray) -> FloatArray:
        """What the coordinates contribute to the decision values."""
        return self.columns @ coordinates

    def classifier(self, coef: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Original coefficients and intercept of a classifier of this frame."""
        return self.data.classifier(coef, coordinates)


def intercept_range(problem: OWAProblem, data: CentredData, upper: float) -> tuple[float, float]:
    """Centred intercepts at which an objective below `upper` is possible.

    If b is large, every negative sample deviates by at least ``1 + b - |w| |phi(x_i)|``, and these
    deviations cost the sum of as many last costs per unit.
    """
    reach = _ROUNDED_UP * float(np.sqrt(2.0 * upper) * data.norms.max())
    ends = []
    for sign in (-1.0, 1.0):
        charge = float(problem.costs.largest_first(np.flatnonzero(problem.y == -sign)).sum())
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
