r"""NC-OWA-SVM(z) and NC-OWA-SVM_D(z): the general model once the ranks are given.

With the ranks fixed at an assignment z what is left of NC-OWA-SVM is a convex quadratic program,

.. math::

    \min_{w, b, \xi, \theta}\ & \tfrac12 \|w\|_2^2 + C \sum_k \lambda_k \theta_k \\
    \text{s.t. } & y_i (w'x_i + b) \ge 1 - \xi_i, \quad \xi_i \ge 0, \quad \theta_k \ge 0
      & & \text{(clasconst), (xivar), (thetavar)} \\
    & \theta_k \ge \xi_i - M \bigl(1 - \textstyle\sum_{j \le k} \hat z_{ij}\bigr)
      & & i, k \in N

whose dual is

.. math::

    \max_{\alpha, \mu}\ & \sum_i \alpha_i
      - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j K(x_i, x_j)
      - M \sum_{ik} \mu_{ik} \bigl(1 - \textstyle\sum_{j \le k} \hat z_{ij}\bigr) \\
    \text{s.t. } & \sum_i \alpha_i y_i = 0, \quad \alpha_i \ge 0 & & \text{(cdual1), (cdual5)} \\
    & \alpha_i \le \sum_k \mu_{ik} & i \in N \quad & \text{(alpha1)} \\
    & \sum_i \mu_{ik} \le C \lambda_k & k \in N \quad & \text{(alpha2)} \\
    & \mu_{ik} \ge 0 & i, k \in N \quad &

(the paper prints (alpha2) "for i, k in N"; i is summed over).

For a permutation and a large M the primal is the best classifier whose deviations are in the
given order: theta are the deviations, lifted where the order asks for it. :func:`best_at_order`
writes that with O(n) rows. A mixed-integer solver's answer is solved once more in this form,
because its own objective carries the tolerances of the search.

Notation
--------
=================  =======================================================================
``z[i, k]``        1 when sample i holds rank k, the (k + 1)-th smallest deviation
``theta_k``        the sorted deviations
``mu_ik``          multipliers of the last rows of the primal
``lambda``         weights of mean 1, ``lambda_k`` for the k-th smallest deviation
=================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.models._data import coefficients, coordinates, rank_costs
from owasvm.models.backends import BackendError, cvxpy_
from owasvm.models.backends.cvxpy_ import import_cvxpy
from owasvm.problem import OWAProblem

__all__ = ["FixedRanks", "assignment_matrix", "best_at_order", "solve_dual", "solve_primal"]

FloatArray = NDArray[np.float64]


class FixedRanks(NamedTuple):
    """Solution of the model with fixed ranks.

    Parameters
    ----------
    value : float
        Optimal value of the model, not the objective of the classifier.
    dual : ndarray of shape (n_samples,)
        The coefficients alpha.
    intercept : float
        b: a variable of the primal, the multiplier of (cdual1) in the dual.
    """

    value: float
    dual: FloatArray
    intercept: float


def assignment_matrix(order: Sequence[int] | NDArray[np.int64]) -> FloatArray:
    """The assignment that gives rank k to sample ``order[k]``.

    Parameters
    ----------
    order : sequence of int
        The samples, smallest deviation first.

    Returns
    -------
    z : ndarray of shape (n_samples, n_samples)

    Examples
    --------
    >>> from owasvm.models.nc_owa_svm_fixed import assignment_matrix
    >>> assignment_matrix([2, 0, 1])
    array([[0., 1., 0.],
           [0., 0., 1.],
           [1., 0., 0.]])
    """
    samples = np.asarray(order)
    z = np.zeros((samples.size, samples.size))
    z[samples, np.arange(samples.size)] = 1.0
    return z


def _not_yet(z: FloatArray) -> FloatArray:
    """``1 - sum_{j <= k} z_ij``."""
    return 1.0 - np.cumsum(z, axis=1)


def solve_primal(
    problem: OWAProblem,
    z: FloatArray,
    big_m: float,
    *,
    backend: str | None = None,
    tol: float = 1e-9,
) -> FixedRanks:
    """Solve NC-OWA-SVM(z).

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    z : ndarray of shape (n_samples, n_samples)
        The assignment, ``z[i, k] = 1`` when sample i holds rank k; its columns sum to 1.
    big_m : float
        M.
    backend : str or None, default=None
        Keyword of a continuous back-end, None for Clarabel.
    tol : float, default=1e-9
        Tolerance of the back-end.

    Returns
    -------
    solution : FixedRanks

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models.nc_owa_svm_fixed import assignment_matrix, solve_dual, solve_primal
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0])
    >>> costs = RankCosts(3, np.array([1.0, 1.5, 0.5]))
    >>> problem = OWAProblem(y, costs, features=np.array([[0.0], [1.0], [2.0]]))
    >>> z = assignment_matrix([0, 1, 2])
    >>> primal, dual = solve_primal(problem, z, 10.0), solve_dual(problem, z, 10.0)
    >>> round(primal.value, 5), round(dual.value, 5)
    (2.875, 2.875)
    """
    cp = import_cvxpy()
    costs = rank_costs(problem)
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    w = cp.Variable(rows.shape[1])
    b = cp.Variable()
    xi = cp.Variable(n)
    theta = cp.Variable((1, n))
    margins = cp.multiply(y, rows @ w + b) >= 1 - xi  # (clasconst)
    column = cp.reshape(xi, (n, 1), order="C") @ np.ones((1, n))
    model = cp.Problem(
        cp.Minimize(cp.sum_squares(w) / 2 + cp.sum(theta @ costs)),
        [
            margins,
            xi >= 0,
            theta >= 0,
            np.ones((n, 1)) @ theta >= column - big_m * _not_yet(z),
        ],
    )
    cvxpy_.solve(model, backend=backend, tol=tol)
    return FixedRanks(float(model.value), np.asarray(margins.dual_value), float(b.value))


def solve_dual(
    problem: OWAProblem,
    z: FloatArray,
    big_m: float,
    *,
    backend: str | None = None,
    tol: float = 1e-9,
) -> FixedRanks:
    """Solve NC-OWA-SVM_D(z); parameters and result as in :func:`solve_primal`."""
    cp = import_cvxpy()
    costs = rank_costs(problem)
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    alpha = cp.Variable(n)
    mu = cp.Variable((n, n))
    balance = y @ alpha == 0  # (cdual1)
    squared_norm = cp.sum_squares(rows.T @ cp.multiply(y, alpha))
    penalty = big_m * cp.sum(cp.multiply(mu, _not_yet(z)))
    model = cp.Problem(
        cp.Maximize(cp.sum(alpha) - squared_norm / 2 - penalty),
        [
            balance,
            alpha >= 0,  # (cdual5)
            alpha <= cp.sum(mu, axis=1),  # (alpha1)
            cp.sum(mu, axis=0) <= costs,  # (alpha2)
            mu >= 0,
        ],
    )
    cvxpy_.solve(model, backend=backend, tol=tol)
    b = float(np.asarray(balance.dual_value).item())
    return FixedRanks(float(model.value), np.asarray(alpha.value), b)


def best_at_order(
    problem: OWAProblem,
    order: NDArray[np.int64],
    *,
    backend: str | None = None,
    tol: float = 1e-10,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the best classifier whose deviations rise along `order`.

    NC-OWA-SVM(z) for a permutation and M beyond all deviations, in O(n) rows: ``theta_k >=
    theta_{k-1}`` and ``theta_k >= xi_{order[k]}``.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    order : ndarray of shape (n_samples,)
        The samples, smallest deviation first.
    backend : str or None, default=None
        Keyword of a continuous back-end, None for Clarabel.
    tol : float, default=1e-10
        Tolerance of the back-end.

    Returns
    -------
    multipliers : ndarray of shape (n_samples,)
        The multipliers alpha >= 0 of (clasconst), ``w = sum_i alpha_i y_i x_i`` up to the
        tolerance of the back-end.
    coefficients : ndarray of shape (n_samples,)
        Coefficients of least norm that reproduce w up to rounding, of any sign.
    """
    cp = import_cvxpy()
    costs = rank_costs(problem)
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    w = cp.Variable(rows.shape[1])
    b = cp.Variable()
    theta = cp.Variable(n)
    hinge = theta >= 1 - cp.multiply(y[order], rows[order] @ w + b)
    constraints = [hinge, theta[0] >= 0]
    if n > 1:
        constraints.append(cp.diff(theta) >= 0)
    model = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + costs @ theta), constraints)
    result = cvxpy_.solve(model, backend=backend, tol=tol)
    if not result.has_point:
        raise BackendError("no point at the given order")
    multipliers = np.zeros(n)
    multipliers[order] = np.maximum(np.asarray(hinge.dual_value), 0.0)
    return multipliers, coefficients(problem, rows, np.asarray(w.value))
