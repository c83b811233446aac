r"""NC-OWA-SVM: the general model, weights in any order, with binary variables for the ranks.

.. math::

    \min_{w, b, \xi, z, \theta}\ & \tfrac12 \|w\|_2^2 + C \sum_k \lambda_k \theta_k \\
    \text{s.t. } & y_i (w'x_i + b) \ge 1 - \xi_i & i \in N \quad & \text{(clasconst)} \\
    & \sum_i z_{ij} = 1 & j \in N \quad & \text{(assign1)} \\
    & \theta_k \ge \xi_i - M \bigl(1 - \textstyle\sum_{j \le k} z_{ij}\bigr)
      & i, k \in N \quad & \text{(the\_xi)} \\
    & z_{ik} \in \{0, 1\}, \quad \theta_k \ge 0, \quad \xi_i \ge 0
      & i, k \in N \quad & \text{(zbin), (thetavar), (xivar)}

As printed it is right when M is large enough (:func:`owasvm.models.bounds.safe_big_m`) and can be
wrong, in both directions, when it is not: see the page of errata. Strengthened it has the rows
of :mod:`owasvm.models._ordering` in addition and needs no M.

Notation
--------
=================  =======================================================================
``w, b``           the classifier ``f(x) = w'x + b``; with a Gram matrix, w lives in the
                   eigen-coordinates of the matrix
``xi``             deviations
``z_ik``           1 when sample i holds rank k
``theta_k``        the k-th smallest deviation
``lambda``         weights of mean 1, ``lambda_k`` for the k-th smallest deviation; the
                   model is needed when they are not non-decreasing
=================  =======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from owasvm.models._data import coordinates, rank_costs
from owasvm.models._ordering import add_ordering, direction, point
from owasvm.models.backends.program import MixedIntegerProgram
from owasvm.models.bounds import DeviationBounds
from owasvm.problem import OWAProblem
from owasvm.solution import Solution

__all__ = ["build", "direction", "point", "solve"]


def build(
    problem: OWAProblem,
    big_m: float | None = None,
    *,
    intercept_bounds: tuple[float, float] | None = None,
    assign2: bool = False,
    bounds: DeviationBounds | None = None,
) -> MixedIntegerProgram:
    """Write NC-OWA-SVM down.

    Parameters
    ----------
    problem : OWAProblem
        Weights in any order, ``weights[k]`` for the k-th smallest deviation.
    big_m : float or None, default=None
        M of the model as printed.
    intercept_bounds : (float, float) or None, default=None
        Bounds of b, (boundsb).
    assign2 : bool, default=False
        Add (assign2) to the model as printed.
    bounds : DeviationBounds or None, default=None
        Given, the model is the strengthened one.

    Returns
    -------
    program : MixedIntegerProgram

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import nc_owa_svm
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0])
    >>> problem = OWAProblem(y, RankCosts(3, "trimmed", 0.5), features=np.eye(3))
    >>> program = nc_owa_svm.build(problem, 5.0)
    >>> program.n_binaries, list(program.labels)
    (9, ['assign1', 'the_xi', 'clasconst'])
    """
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    program = MixedIntegerProgram()
    radius = np.inf if bounds is None else bounds.radius
    w = program.variables("w", rows.shape[1], lower=-radius, upper=radius)
    low, high = (-np.inf, np.inf) if intercept_bounds is None else intercept_bounds
    b = program.variables("b", 1, lower=low, upper=high)
    xi, theta, _ = add_ordering(program, n, big_m=big_m, assign2=assign2, bounds=bounds)
    program.rows("clasconst", (y[:, None] * rows, w), (y[:, None], b), (1.0, xi), lower=1.0)
    program.minimise((rank_costs(problem), theta), squares=w)
    return program


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve NC-OWA-SVM by Algorithm 1; settings as in :func:`owasvm.models.algorithm1.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import nc_owa_svm
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = OWAProblem(y, RankCosts(4, np.array([1.0, 2.0, 0.5, 0.5])), features=X)
    >>> round(nc_owa_svm.solve(problem).objective, 5)
    1.55556
    """
    # Algorithm 1 builds this model.
    from owasvm.models import algorithm1

    return algorithm1.run(problem, formulation="primal", **settings)
