r"""C-OWA-SVM: the convex model in the primal, with the variables u and v.

For non-decreasing weights the ordered sum is the value of an assignment problem, (assign1),
(assign2), (zvar): give the ranks to the samples so that the weighted sum is largest. Its linear
programming dual has a number ``u_i`` for each sample and ``v_j`` for each rank, and replacing the
inner maximum by that dual leaves one convex quadratic program:

.. math::

    \min_{w, b, \xi, u, v}\ & \tfrac12 \|w\|_2^2 + \sum_i u_i + \sum_j v_j \\
    \text{s.t. } & y_i (w'x_i + b) \ge 1 - \xi_i & i \in N & \quad\text{(clasconst)} \\
    & u_i + v_j \ge C \lambda_j \xi_i & i, j \in N & \\
    & \xi_i \ge 0 & i \in N & \quad\text{(xivar)}

The paper prints the second line "for j in N"; it is meant, and needed, for all i and j.

Notation
--------
=================  =======================================================================
``N``              the samples 1..n, and the ranks 1..n
``w, b``           the classifier ``f(x) = w'x + b``; with a Gram matrix, w lives in the
                   eigen-coordinates of the matrix
``xi``             deviations, at least the hinge ``max(0, 1 - y f)``
``lambda``         weights of mean 1, ``lambda_j`` for the j-th smallest deviation,
                   non-decreasing
``u, v``           prices of samples and ranks, the dual variables of (assign2), (assign1)
``alpha``          multipliers of (clasconst): ``w = sum_i alpha_i y_i x_i``
=================  =======================================================================

n^2 rows: meant for reading and checking, up to a few hundred samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from owasvm.models._data import coordinates, require_convex
from owasvm.models.backends.cvxpy_ import import_cvxpy
from owasvm.models.convex import Formulation, as_solver, solve_model
from owasvm.problem import OWAProblem
from owasvm.solution import Solution

__all__ = ["build", "solve"]


def build(problem: OWAProblem) -> Formulation:
    """Write C-OWA-SVM down; the weights must be non-decreasing."""
    cp = import_cvxpy()
    costs = require_convex(problem, "C-OWA-SVM")  # C * lambda
    rows, y, n = coordinates(problem), problem.y, problem.n_samples

    w = cp.Variable(rows.shape[1], name="w")
    b = cp.Variable(name="b")
    xi = cp.Variable(n, name="xi")
    u = cp.Variable((n, 1), name="u")
    v = cp.Variable((1, n), name="v")

    constraints = {
        "clasconst": cp.multiply(y, rows @ w + b) >= 1 - xi,
        "prices": u @ np.ones((1, n)) + np.ones((n, 1)) @ v
        >= cp.reshape(xi, (n, 1), order="C") @ costs[None, :],
        "xivar": xi >= 0,
    }
    objective = cp.sum_squares(w) / 2 + cp.sum(u) + cp.sum(v)
    model = cp.Problem(cp.Minimize(objective), list(constraints.values()))
    return Formulation(
        model,
        {"w": w, "b": b, "xi": xi, "u": u, "v": v},
        constraints,
        dual=lambda: np.asarray(constraints["clasconst"].dual_value),
        intercept=lambda: float(b.value),
    )


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve C-OWA-SVM; settings as in :func:`owasvm.models.convex.solve_model`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import c_owa_svm
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(4, "superquantile", 0.5, C=0.25), features=X)
    >>> solution = c_owa_svm.solve(problem)
    >>> round(solution.objective, 6), str(solution.status)
    (0.875, 'optimal')
    """
    return solve_model(problem, "assignment", build, **settings)


SOLVER = as_solver("assignment", build)
