r"""NC-OWA-SVM_D and NC-OWA-SVM_K: the general model in the coefficients alpha, for any kernel.

.. math::

    \min_{\alpha, b, \xi, \theta, z}\ & \tfrac12 \sum_{ij} y_i y_j \alpha_i \alpha_j K(x_i, x_j)
      + C \sum_k \lambda_k \theta_k \\
    \text{s.t. } & y_i \bigl(\textstyle\sum_j y_j \alpha_j K(x_i, x_j) + b\bigr) \ge 1 - \xi_i
      & i \in N \quad & \text{(nlxi)} \\
    & \text{(assign1), (the\_xi), (zbin), (thetavar), (xivar)}

NC-OWA-SVM_D is the case ``K(x_i, x_j) = x_i'x_j``, and Propositions 4.1 and 4.2 of the paper say
that it has the same optimum as NC-OWA-SVM. Since the optimal w is a combination of the samples,
so has every kernel.

As printed, alpha are variables. The double sum is the squared length of ``s = sum_j y_j alpha_j
r_j``, where ``r_j`` are the eigen-coordinates of the Gram matrix, and is written as the squares
of s. Strengthened, alpha is left out: on the range of K it and s determine each other, (nlxi)
reads ``y_i (r_i's + b) >= 1 - xi_i``, and alpha is recovered at the end.

Notation
--------
=================  =======================================================================
``K``              kernel values
``alpha``          ``w = sum_i alpha_i y_i phi(x_i)``, of any sign in this model
``s``              w in eigen-coordinates of the Gram matrix
``xi, z, theta``   as in :mod:`owasvm.models.nc_owa_svm`
``lambda``         weights of mean 1, ``lambda_k`` for the k-th smallest deviation
=================  =======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from owasvm.models._data import coordinates, gram_matrix, rank_costs
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
    """Write NC-OWA-SVM_K down; parameters as in :func:`owasvm.models.nc_owa_svm.build`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import nc_owa_svm_kernel
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0])
    >>> problem = OWAProblem(y, RankCosts(3, "trimmed", 0.5), gram=np.eye(3))
    >>> program = nc_owa_svm_kernel.build(problem, 5.0)
    >>> sorted(program.blocks)
    ['alpha', 'b', 's', 'theta', 'xi', 'z']
    """
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    program = MixedIntegerProgram()
    radius = np.inf if bounds is None else bounds.radius
    s = program.variables("s", rows.shape[1], lower=-radius, upper=radius)
    low, high = (-np.inf, np.inf) if intercept_bounds is None else intercept_bounds
    b = program.variables("b", 1, lower=low, upper=high)
    xi, theta, _ = add_ordering(program, n, big_m=big_m, assign2=assign2, bounds=bounds)
    if bounds is None:
        alpha = program.variables("alpha", n)
        signed_gram = y[:, None] * gram_matrix(problem) * y
        program.rows("nlxi", (signed_gram, alpha), (y[:, None], b), (1.0, xi), lower=1.0)
        program.rows("length", (rows.T * y, alpha), (-1.0, s), lower=0.0, upper=0.0)
    else:
        program.rows("nlxi", (y[:, None] * rows, s), (y[:, None], b), (1.0, xi), lower=1.0)
    program.minimise((rank_costs(problem), theta), squares=s)
    return program


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve NC-OWA-SVM_K by Algorithm 1; settings as in :func:`owasvm.models.algorithm1.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import nc_owa_svm_kernel
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> y = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = OWAProblem(y, RankCosts(4, np.array([1.0, 2.0, 0.5, 0.5])), gram=X @ X.T)
    >>> round(nc_owa_svm_kernel.solve(problem).objective, 5)
    1.55556
    """
    # Algorithm 1 builds this model.
    from owasvm.models import algorithm1

    return algorithm1.run(problem, formulation="kernel", **settings)
