r"""OT-C-OWA-SVM: the convex model by sums of the k largest deviations.

A non-decreasing weight vector is a sum of steps: the k largest ranks share a step of height
``lambda_{n-k+1} - lambda_{n-k}``, with ``lambda_0 = 0`` (the paper leaves that to the reader).
So the ordered sum is a sum of "k largest" functions, each of which is a small linear program in
a threshold ``t_k`` and excesses ``d_ik`` (Ogryczak and Tamir):

.. math::

    \min_{w, b, \xi, t, d}\ & \tfrac12 \|w\|_2^2
      + \sum_k (\lambda_{n-k+1} - \lambda_{n-k}) \Bigl(k t_k + \sum_i d_{ik}\Bigr) \\
    \text{s.t. } & y_i (w'x_i + b) \ge 1 - \xi_i,\quad \xi_i \ge 0 & i \in N
      & \quad\text{(clasconst), (xivar)} \\
    & d_{ik} \ge C \xi_i - t_k, \quad d_{ik} \ge 0 & i, k \in N &

Notation
--------
=================  =======================================================================
``w, b, xi``       as in :mod:`owasvm.models.c_owa_svm`
``lambda``         weights of mean 1, ``lambda_k`` for the k-th smallest deviation,
                   non-decreasing
``t_k``            the k-th largest of the ``C xi_i``
``d_ik``           what ``C xi_i`` exceeds ``t_k`` by
=================  =======================================================================

n^2 variables, fewer when steps are zero: they carry no cost and their rows are left out.
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
    """Write OT-C-OWA-SVM down; the weights must be non-decreasing."""
    cp = import_cvxpy()
    costs = require_convex(problem, "OT-C-OWA-SVM")
    rows, y, n, C = coordinates(problem), problem.y, problem.n_samples, problem.costs.C
    # steps[k - 1] = lambda_{n-k+1} - lambda_{n-k} with lambda_0 = 0
    steps = np.diff(costs / C, prepend=0.0)[::-1]
    levels = np.flatnonzero(steps > 0.0)
    sizes = levels + 1.0

    w = cp.Variable(rows.shape[1], name="w")
    b = cp.Variable(name="b")
    xi = cp.Variable(n, name="xi")
    t = cp.Variable((1, levels.size), name="t")
    d = cp.Variable((n, levels.size), name="d")

    constraints = {
        "clasconst": cp.multiply(y, rows @ w + b) >= 1 - xi,
        "excess": d
        >= C * cp.reshape(xi, (n, 1), order="C") @ np.ones((1, levels.size)) - np.ones((n, 1)) @ t,
        "dvar": d >= 0,
        "xivar": xi >= 0,
    }
    ordered_sum = (t @ (sizes * steps[levels]))[0] + cp.sum(d @ steps[levels])
    model = cp.Problem(
        cp.Minimize(cp.sum_squares(w) / 2 + ordered_sum), list(constraints.values())
    )
    return Formulation(
        model,
        {"w": w, "b": b, "xi": xi, "t": t, "d": d},
        constraints,
        dual=lambda: np.asarray(constraints["clasconst"].dual_value),
        intercept=lambda: float(b.value),
    )


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve OT-C-OWA-SVM; settings as in :func:`owasvm.models.convex.solve_model`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import ot_c_owa_svm
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(4, "superquantile", 0.5, C=0.25), features=X)
    >>> solution = ot_c_owa_svm.solve(problem)
    >>> round(solution.objective, 6), str(solution.status)
    (0.875, 'optimal')
    """
    return solve_model(problem, "ogryczak-tamir", build, **settings)


SOLVER = as_solver("ogryczak-tamir", build)
