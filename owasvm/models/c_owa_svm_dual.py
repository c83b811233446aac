r"""C-OWA-SVM_K: the convex model in the dual, with the variables eta, for any kernel.

.. math::

    \max_{\alpha, \eta}\ & \sum_i \alpha_i
      - \tfrac12 \sum_i \sum_j \alpha_i \alpha_j y_i y_j K(x_i, x_j) \\
    \text{s.t. } & \sum_i \alpha_i y_i = 0 & & \text{(cdual1)} \\
    & \alpha_i \le \sum_j \eta_{ij} C \lambda_j & i \in N \quad & \text{(cdual2)} \\
    & \sum_i \eta_{ij} = 1 & j \in N \quad & \text{(cdual3)} \\
    & \sum_j \eta_{ij} = 1 & i \in N \quad & \text{(cdual4)} \\
    & 0 \le \alpha_i, \quad 0 \le \eta_{ij} & i, j \in N \quad & \text{(cdual5), (cdual6)}

Rows (cdual2)-(cdual6) say that alpha lies below a mixture of permutations of ``C lambda``; the
form without the n^2 variables is :mod:`owasvm.models.c_owa_svm_compact`.

The intercept (Proposition 3.2). A sample k with ``0 < alpha_k < C sum_j eta_kj lambda_j`` lies on
its margin, so ``b = y_k - sum_i alpha_i y_i K(x_i, x_k)``. There may be no such sample, see
:func:`proposition_intercept`. The solution's intercept is the exact minimiser of the objective for
the w found, which always exists and is the proposition's where that applies.

Notation
--------
=================  =======================================================================
``K``              kernel values; with features, their scalar products
``alpha``          ``w = sum_i alpha_i y_i phi(x_i)``
``eta_ij``         share of rank j that sample i holds
``lambda``         weights of mean 1, ``lambda_j`` for the j-th smallest deviation,
                   non-decreasing
=================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import Certificate
from owasvm.models._data import coordinates, require_convex
from owasvm.models.backends import cvxpy_
from owasvm.models.convex import Formulation, as_solver, solve_model
from owasvm.problem import OWAProblem
from owasvm.solution import Solution

__all__ = ["PropositionIntercept", "build", "proposition_intercept", "solve"]

FloatArray = NDArray[np.float64]


class PropositionIntercept(NamedTuple):
    """What Proposition 3.2 gives.

    Parameters
    ----------
    intercept : float or None
        The intercept from the most interior eligible sample, None without one.
    eligible : ndarray of int
        The samples with ``0 < alpha_k < C sum_j eta_kj lambda_j``.
    """

    intercept: float | None
    eligible: NDArray[np.int64]


def build(problem: OWAProblem) -> Formulation:
    """Write C-OWA-SVM_K down; the weights must be non-decreasing."""
    cp = cvxpy_.import_cvxpy()
    costs = require_convex(problem, "C-OWA-SVM_K")
    rows, y, n = coordinates(problem), problem.y, problem.n_samples

    alpha = cp.Variable(n, name="alpha")
    eta = cp.Variable((n, n), name="eta")

    balance = y @ alpha == 0
    constraints = {
        "cdual1": balance,
        "cdual2": alpha <= eta @ costs,
        "cdual3": cp.sum(eta, axis=0) == 1,
        "cdual4": cp.sum(eta, axis=1) == 1,
        "cdual5": alpha >= 0,
        "cdual6": eta >= 0,
    }
    # K = rows rows', so the double sum is a squared length.
    squared_norm = cp.sum_squares(rows.T @ cp.multiply(y, alpha))
    model = cp.Problem(cp.Maximize(cp.sum(alpha) - squared_norm / 2), list(constraints.values()))

    def details(found: Certificate) -> Mapping[str, Any]:
        rule = proposition_intercept(problem, np.asarray(alpha.value), np.asarray(eta.value))
        return {"proposition_intercept": rule, "intercept": found.intercept}

    return Formulation(
        model,
        {"alpha": alpha, "eta": eta},
        constraints,
        dual=lambda: np.asarray(alpha.value),
        intercept=lambda: cvxpy_.multiplier(balance),
        details=details,
    )


def proposition_intercept(
    problem: OWAProblem, alpha: FloatArray, eta: FloatArray, tolerance: float = 1e-5
) -> PropositionIntercept:
    """Intercept of Proposition 3.2.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    alpha : ndarray of shape (n_samples,)
        Optimal alpha.
    eta : ndarray of shape (n_samples, n_samples)
        Optimal eta. It is not unique, and the rule may hold for one and not for another.
    tolerance : float, default=1e-5
        Distance from both bounds, relative to the mean cost of a rank, from which a sample counts
        as eligible.

    Returns
    -------
    rule : PropositionIntercept
        Without an eligible sample the intercept is None. That happens: with n = 2 and
        ``alpha_i`` at its bound for both samples, for instance.

    Examples
    --------
    Two samples at -1/2 and 1/2 want ``alpha = 2``; with C = 1 both stop at the bound.

    >>> import numpy as np
    >>> from owasvm.models.c_owa_svm_dual import proposition_intercept
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(2, "uniform"), features=np.array([[-0.5], [0.5]]))
    >>> proposition_intercept(problem, np.ones(2), np.full((2, 2), 0.5)).intercept is None
    True
    """
    costs = require_convex(problem, "Proposition 3.2")
    ceiling = eta @ costs
    room = np.minimum(alpha, ceiling - alpha)
    eligible = np.flatnonzero(room > tolerance * costs.mean())
    if eligible.size == 0:
        return PropositionIntercept(None, eligible)
    k = int(eligible[np.argmax(room[eligible])])
    return PropositionIntercept(float(problem.y[k] - problem.scores(alpha)[k]), eligible)


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve C-OWA-SVM_K; settings as in :func:`owasvm.models.convex.solve_model`.

    ``details["proposition_intercept"]`` of the result holds what Proposition 3.2 gives.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import c_owa_svm_dual
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(4, "superquantile", 0.5, C=0.25), gram=X @ X.T)
    >>> solution = c_owa_svm_dual.solve(problem)
    >>> round(solution.objective, 6), str(solution.status)
    (0.875, 'optimal')
    """
    return solve_model(problem, "assignment-dual", build, **settings)


SOLVER = as_solver("assignment-dual", build)
