r"""Bounds before the mixed-integer search: UB_M, UB_b, LB_b as printed, and tighter ones.

As printed. With an upper bound UB on the optimum of NC-OWA-SVM_K, the auxiliary problems share the
feasible set

.. math::

    & y_i \bigl(\textstyle\sum_j y_j \alpha_j K(x_i, x_j) + b\bigr) \ge 1 - \xi_i,
      \quad \xi_i \ge 0 & & \text{(nlxi), (xivar)} \\
    & \textstyle\sum_i \alpha_i y_i = 0, \quad 0 \le \alpha_i \le C \sum_k \lambda_k
      & & \text{(cdual1), (alphabounds)} \\
    & \theta \ge \xi_i, \quad \theta \ge 0 & & \text{(thetaxi), (thetabounds)} \\
    & \tfrac12 \textstyle\sum_{ij} y_i y_j \alpha_i \alpha_j K(x_i, x_j) + C \lambda_n \theta
      \le \mathrm{UB} & & \text{(objbound)}

and maximise theta (UB_M), maximise b (UB_b) or minimise b (LB_b). UB_M is ``UB / (C lambda_n)``
as soon as ``UB >= C lambda_n``, since ``alpha = 0`` is feasible; with ``lambda_n = 0`` all three
are unbounded.

Tighter. Call P'(c) the set of the ``a >= 0`` whose j largest entries sum to at most the last j
costs, for every j, whatever the order of the costs. For deviations ``xi >= 0``,

.. math:: a'\xi \le \sum_k a_{(k)} \xi_{(k)}
          = \sum_j (\xi_{(n-j+1)} - \xi_{(n-j)}) \sum_{k > n-j} a_{(k)} \le \sum_k c_k \xi_{(k)},

so every such a with ``y'a = 0`` gives the lower bound ``D(a) = sum(a) - 1/2 |w_a|^2`` on the
optimum, convex weights or not. P'(c) contains P(m) for every non-decreasing minorant m of c. In
the primal it is the continuous relaxation of the strengthened model: theta non-decreasing, and
its j largest entries sum to at least any j deviations (j a power of two, and j = n, are kept).

The same points bound any linear function over all classifiers no worse than UB. With ``h_i = 1 -
y_i f(x_i)``, a direction g over the samples, a number s for the intercept, t > 0 and a in P'(c)
with ``y'a = t (y'g - s)``,

.. math:: g'h + s b \le \frac1t \Bigl( \mathrm{UB} - \sum_i (a - t g)_i
          + \tfrac12 \bigl| w_{a - t g} \bigr|^2 \Bigr).

A conic solver proposes (a, t); the point is made feasible and the right side evaluated, so the
bound holds however inaccurate the solver was.

Notation
--------
=================  =======================================================================
``UB``             objective of a known classifier
``c``              ``C * lambda``; weights of mean 1, ``lambda_k`` for the k-th smallest
                   deviation, in any order
``M``              number that no deviation of a wanted solution exceeds
=================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import dual_value, feasible_dual, proven_value
from owasvm.models._data import coordinates, gram_matrix, rank_costs
from owasvm.models.backends import BackendError, cvxpy_
from owasvm.models.backends.cvxpy_ import import_cvxpy
from owasvm.problem import Costs, OWAProblem

__all__ = [
    "DeviationBounds",
    "Relaxation",
    "deviation_bounds",
    "geometric_bounds",
    "lb_b",
    "relaxation",
    "safe_big_m",
    "ub_b",
    "ub_m",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The budget of the auxiliary problems is widened by this share, or their interior could be empty.
_BUDGET_HAIR = 1e-5
_PAD = 1e-9


def _maximise(
    problem: OWAProblem,
    upper_bound: float,
    objective: Callable[[Any, Any], Any],
    intercept_bounds: tuple[float, float] | None,
    backend: str | None,
    tol: float,
) -> float:
    """Largest value of `objective` (b, theta) over the printed feasible set."""
    costs = rank_costs(problem)
    if costs[-1] == 0.0:
        raise ValueError(
            "UB_M, UB_b and LB_b are unbounded when the last weight is 0: no deviation costs "
            "anything at the largest rank; use safe_big_m or the strengthened model."
        )
    cp = import_cvxpy()
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    alpha = cp.Variable(n, name="alpha")
    b = cp.Variable(name="b")
    xi = cp.Variable(n, name="xi")
    theta = cp.Variable(name="theta")
    direction = rows.T @ cp.multiply(y, alpha)
    constraints = [
        cp.multiply(y, rows @ direction + b) >= 1 - xi,  # (nlxi)
        xi >= 0,  # (xivar)
        y @ alpha == 0,  # (cdual1)
        alpha >= 0,  # (alphabounds)
        alpha <= costs.sum(),
        theta >= xi,  # (thetaxi)
        theta >= 0,  # (thetabounds)
        cp.sum_squares(direction) / 2 + costs[-1] * theta <= upper_bound,  # (objbound)
    ]
    if intercept_bounds is not None:
        constraints += [b >= intercept_bounds[0], b <= intercept_bounds[1]]  # (boundsb)
    model = cp.Problem(cp.Maximize(objective(b, theta)), constraints)
    cvxpy_.solve(model, backend=backend, purpose="conic", tol=tol)
    return float(model.value)


def ub_m(
    problem: OWAProblem,
    upper_bound: float,
    intercept_bounds: tuple[float, float] | None = None,
    *,
    backend: str | None = None,
    tol: float = 1e-9,
) -> float:
    """UB_M: the largest theta, the paper's value of M.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation, the last positive.
    upper_bound : float
        UB, the objective of a known classifier.
    intercept_bounds : (float, float) or None, default=None
        l_b and u_b of (boundsb), once known.
    backend : str or None, default=None
        Keyword of a conic back-end, None for Clarabel.
    tol : float, default=1e-9
        Tolerance of the back-end.

    Returns
    -------
    big_m : float

    Examples
    --------
    ``UB >= C lambda_n``, so nothing is gained over ``UB / (C lambda_n)``:

    >>> import numpy as np
    >>> from owasvm.models.bounds import ub_m
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0])
    >>> costs = RankCosts(3, np.array([1.0, 1.5, 0.5]))
    >>> problem = OWAProblem(y, costs, features=np.array([[0.0], [1.0], [2.0]]))
    >>> round(ub_m(problem, 2.0), 6)
    4.0
    """
    return _maximise(problem, upper_bound, lambda _, theta: theta, intercept_bounds, backend, tol)


def ub_b(
    problem: OWAProblem, upper_bound: float, *, backend: str | None = None, tol: float = 1e-9
) -> float:
    """UB_b: the largest intercept; parameters as in :func:`ub_m`."""
    return _maximise(problem, upper_bound, lambda b, _: b, None, backend, tol)


def lb_b(
    problem: OWAProblem, upper_bound: float, *, backend: str | None = None, tol: float = 1e-9
) -> float:
    """LB_b: the smallest intercept; parameters as in :func:`ub_m`."""
    return -_maximise(problem, upper_bound, lambda b, _: -b, None, backend, tol)


def safe_big_m(problem: OWAProblem, upper_bound: float) -> float:
    r"""A value of M with which NC-OWA-SVM as printed is right.

    ``max(UB / c_k, 2 + sqrt(2 UB) * diameter)`` with ``c_k`` the last positive cost. The second
    number bounds the deviations of some optimal solution, see :func:`geometric_bounds`. With
    (assign1) alone a sample may hold two ranks; (the_xi) then lifts theta by M from the higher of
    them on, which costs at least ``c_k M >= UB`` unless all those ranks cost nothing.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order.
    upper_bound : float
        UB, the objective of a known classifier.

    Returns
    -------
    big_m : float
    """
    costs = rank_costs(problem)
    last_positive = costs[np.flatnonzero(costs > 0.0)[-1]]
    reach = float(geometric_bounds(problem, upper_bound).upper.max())
    return max(upper_bound / float(last_positive), reach)


@dataclass(frozen=True, eq=False)
class DeviationBounds:
    """Intervals that hold the deviations and the intercept of some optimal solution.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_samples,)
        ``lower[i] <= xi_i <= upper[i]``.
    intercept : (float, float)
        Interval of b.
    radius : float
        ``|w| <= radius``.
    n_solved : int, default=0
        How many of the ``2 n + 2`` bounding problems were solved.
    """

    lower: FloatArray
    upper: FloatArray
    intercept: tuple[float, float]
    radius: float
    n_solved: int = 0

    @property
    def sorted_lower(self) -> FloatArray:
        """Lower bounds of the sorted deviations."""
        return np.sort(self.lower)

    @property
    def sorted_upper(self) -> FloatArray:
        """Upper bounds of the sorted deviations."""
        return np.sort(self.upper)

    @property
    def first_rank(self) -> IntArray:
        """Smallest rank (from 0) a sample can hold: that many surely lie below it."""
        return np.searchsorted(self.sorted_upper, self.lower, side="left")

    @property
    def last_rank(self) -> IntArray:
        """Largest rank (from 0) a sample can hold."""
        above = self.lower.size - np.searchsorted(self.sorted_lower, self.upper, side="right")
        return self.lower.size - 1 - above


def geometric_bounds(problem: OWAProblem, upper_bound: float) -> DeviationBounds:
    r"""Bounds from distances alone, for any weights.

    A solution no worse than UB has ``|w| <= sqrt(2 UB)``. For fixed w the loss is piecewise
    linear in b, so some best b lies among its bends, hence in ``[-1 - max_j w'x_j, 1 - min_j
    w'x_j]``, and ``xi_i <= 2 + |w| max_j |x_i - x_j|``. (The paper takes the distance itself for
    M; a distance becomes a deviation only when multiplied by ``|w|``.)

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    upper_bound : float
        UB, the objective of a known classifier.

    Returns
    -------
    bounds : DeviationBounds

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models.bounds import geometric_bounds
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(2, "uniform"), features=np.array([[0.0], [3.0]]))
    >>> geometric_bounds(problem, 0.5).upper
    array([5., 5.])
    """
    gram = gram_matrix(problem)
    squared = np.diag(gram)
    radius = float(np.sqrt(2.0 * max(upper_bound, 0.0)))
    distances = np.sqrt(np.maximum(squared[:, None] + squared - 2.0 * gram, 0.0))
    reach = 1.0 + radius * float(np.sqrt(np.max(squared, initial=0.0)))
    return DeviationBounds(
        lower=np.zeros(problem.n_samples),
        upper=2.0 + radius * distances.max(axis=1) + _PAD,
        intercept=(-reach - _PAD, reach + _PAD),
        radius=radius,
    )


class Relaxation(NamedTuple):
    """Continuous relaxation of the strengthened model.

    Parameters
    ----------
    dual : ndarray of shape (n_samples,)
        A point of P'(c) with ``y'a = 0``.
    intercept : float
        The relaxation's b.
    lower_bound : float
        ``D(dual)``, rounding taken off: no classifier has a smaller objective.
    """

    dual: FloatArray
    intercept: float
    lower_bound: float


class _RelaxedModel(NamedTuple):
    w: Any
    b: Any
    slack: Any  # h = 1 - y f
    hinge: Any  # the constraint xi >= h, whose multipliers are the dual point
    value: Any  # 1/2 |w|^2 + c'theta
    constraints: list[Any]


def _relaxed_model(problem: OWAProblem, sizes: list[int]) -> _RelaxedModel:
    """The relaxation with the sums of 1, of all, and of `sizes` largest deviations."""
    cp = import_cvxpy()
    costs = rank_costs(problem)
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    w = cp.Variable(rows.shape[1], name="w")
    b = cp.Variable(name="b")
    xi = cp.Variable(n, name="xi")
    theta = cp.Variable(n, name="theta")
    slack = 1 - cp.multiply(y, rows @ w + b)
    hinge = xi >= slack
    constraints = [
        hinge,
        xi >= 0,
        theta[0] >= 0,
        theta[n - 1] >= xi,
        cp.sum(theta) >= cp.sum(xi),
    ]
    if n > 1:
        constraints.append(cp.diff(theta) >= 0)
    for size in sizes:
        constraints.append(cp.sum(theta[n - size :]) >= cp.sum_largest(xi, size))
    return _RelaxedModel(w, b, slack, hinge, cp.sum_squares(w) / 2 + costs @ theta, constraints)


def _group_sizes(n_samples: int) -> list[int]:
    """Sizes j, 1 < j < n, whose sums of the j largest enter the relaxation: powers of two."""
    return [2**k for k in range(1, n_samples.bit_length()) if 2**k < n_samples]


def _shrink_into(costs: Costs, dual: FloatArray) -> FloatArray:
    """Clip at 0 and scale into P'(costs), which is closed under shrinking."""
    point = np.maximum(dual, 0.0)
    return point / max(1.0, costs.excess(point))


def _lower_to(surplus: float, point: FloatArray, y: FloatArray) -> FloatArray | None:
    """Shrink one class until ``y'a = surplus``; None when its own class is too light."""
    positive, negative = float(point[y > 0].sum()), float(point[y < 0].sum())
    held = positive if surplus >= 0.0 else negative
    if held < abs(surplus):
        return None
    balanced = point.copy()
    excess = positive - negative - surplus
    if excess > 0.0:
        balanced[y > 0] *= max(positive - excess, 0.0) / positive
    elif excess < 0.0:
        balanced[y < 0] *= max(negative + excess, 0.0) / negative
    return balanced


def relaxation(
    problem: OWAProblem, *, backend: str | None = None, tol: float = 1e-9
) -> Relaxation:
    """Solve the continuous relaxation; a proven lower bound for weights in any order.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation. For non-decreasing
        ones the bound need not be tight, since not all sums of largest deviations are kept.
    backend : str or None, default=None
        Keyword of a continuous back-end, None for Clarabel.
    tol : float, default=1e-9
        Tolerance of the back-end; the bound is valid at any.

    Returns
    -------
    relaxation : Relaxation

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models.bounds import relaxation
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0])
    >>> costs = RankCosts(3, np.array([1.0, 1.5, 0.5]))
    >>> problem = OWAProblem(y, costs, features=np.array([[0.0], [1.0], [2.0]]))
    >>> round(relaxation(problem).lower_bound, 6)
    1.0
    """
    cp = import_cvxpy()
    model = _relaxed_model(problem, _group_sizes(problem.n_samples))
    nothing = Relaxation(np.zeros(problem.n_samples), 0.0, 0.0)
    try:
        relaxed = cp.Problem(cp.Minimize(model.value), model.constraints)
        cvxpy_.solve(relaxed, backend=backend, tol=tol)
    except BackendError:
        return nothing
    if model.hinge.dual_value is None or model.b.value is None:
        return nothing
    dual = feasible_dual(problem, np.asarray(model.hinge.dual_value))
    value = proven_value(problem, dual, float(dual.sum()))
    return Relaxation(dual, float(model.b.value), max(value, 0.0))


def deviation_bounds(
    problem: OWAProblem,
    upper_bound: float,
    *,
    backend: str | None = None,
    tol: float = 1e-7,
    expired: Callable[[], bool] = lambda: False,
) -> DeviationBounds:
    """Intervals of every deviation and of the intercept, over the continuous relaxation.

    Each end is the solution of one conic problem, certified by a feasible point of its dual; where
    that is not available, the end is that of :func:`geometric_bounds`.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    upper_bound : float
        UB, the objective of a known classifier. The better it is, the tighter the intervals.
    backend : str or None, default=None
        Keyword of a conic back-end, None for Clarabel.
    tol : float, default=1e-7
        Tolerance of the back-end; the intervals are valid at any.
    expired : callable, default=never
        Asked before each problem; once it says True, the other ends stay geometric.

    Returns
    -------
    bounds : DeviationBounds
    """
    cp = import_cvxpy()
    n = problem.n_samples
    widest = geometric_bounds(problem, upper_bound)
    # Solved 2 n + 2 times: the sums of 1 and of all deviations do most of the work.
    model = _relaxed_model(problem, [])
    budget = model.value <= upper_bound + _BUDGET_HAIR * max(1.0, upper_bound)
    direction, tilt = cp.Parameter(n), cp.Parameter()
    task = cp.Problem(
        cp.Maximize(direction @ model.slack + tilt * model.b), [*model.constraints, budget]
    )
    target = upper_bound + _PAD * max(1.0, upper_bound)
    n_solved = 0

    def largest(g: FloatArray, s: float) -> float:
        nonlocal n_solved
        if expired():
            return np.inf
        direction.value, tilt.value = g, s
        try:
            cvxpy_.solve(task, backend=backend, purpose="conic", tol=tol)
        except BackendError:
            return np.inf
        price = cvxpy_.multiplier(budget)
        if model.hinge.dual_value is None or price is None:
            return np.inf
        n_solved += 1
        return _certify(problem, target, g, s, np.asarray(model.hinge.dual_value), price)

    upper_b = largest(np.zeros(n), 1.0)
    lower_b = -largest(np.zeros(n), -1.0)
    lower, upper = widest.lower.copy(), widest.upper.copy()
    for i in range(n):
        unit = np.zeros(n)
        unit[i] = 1.0
        upper[i] = min(upper[i], max(largest(unit, 0.0), 0.0) + _PAD)
        lower[i] = max(lower[i], -largest(-unit, 0.0) - _PAD)
    return DeviationBounds(
        lower=np.minimum(lower, upper),
        upper=upper,
        intercept=(max(widest.intercept[0], lower_b), min(widest.intercept[1], upper_b)),
        radius=widest.radius,
        n_solved=n_solved,
    )


def _certify(
    problem: OWAProblem,
    upper_bound: float,
    g: FloatArray,
    s: float,
    multipliers: FloatArray,
    price: float,
) -> float:
    """The bound of the module's last formula, at the feasible point next to the multipliers."""
    if not price > 0.0 or not np.all(np.isfinite(multipliers)):
        return np.inf
    t = 1.0 / price
    point = _shrink_into(problem.costs, multipliers * t)
    side = float(problem.y @ g) - s  # +1 or -1 for the directions used here
    held = float(point[problem.y * side > 0].sum())
    t = min(t, held / abs(side))
    if t <= 0.0:
        return np.inf
    dual = _lower_to(t * side, point, problem.y)
    if dual is None:
        return np.inf
    return (upper_bound - dual_value(problem, dual - t * g)) / t
