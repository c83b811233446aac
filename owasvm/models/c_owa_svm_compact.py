r"""The dual model without its n^2 variables: P(c) through a sorting network.

Rows (cdual2)-(cdual6) of C-OWA-SVM_K say that alpha lies below some x in the permutahedron of
``c = C lambda``, the convex hull of all rearrangements of c. A sorting network describes that hull
with O(n log^2 n) rows. Let the wires carry x at its entrance and c, sorted, at its exit, and
let a comparator with entries p, q and exits ``low``, ``high`` satisfy

.. math:: low + high = p + q, \qquad high \ge p, \qquad high \ge q .

Then (p, q) is a mixture of (low, high) and (high, low), so x is a mixture of rearrangements of c;
and every such x can be sent through, because majorisation survives an exact comparison. The model

.. math::

    \max_{\alpha, x}\ \sum_i \alpha_i - \tfrac12 \alpha'Q\alpha
    \quad\text{s.t.}\quad y'\alpha = 0,\ 0 \le \alpha \le x,\ x \text{ enters},\ c
    \text{ leaves the network}

is ours, not the paper's. Batcher's odd-even merge sort is the network.

Notation
--------
=================  =======================================================================
``c``              ``C * lambda``, non-decreasing; weights of mean 1, ``lambda_k`` for the
                   k-th smallest deviation
``Q``              ``Q_ij = y_i y_j K(x_i, x_j)``
``x``              entrance of the network, a point of the permutahedron of c
=================  =======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.models._data import coordinates, require_convex
from owasvm.models.backends import cvxpy_
from owasvm.models.convex import Formulation, solve_model
from owasvm.problem import OWAProblem
from owasvm.solution import Solution

__all__ = ["build", "comparators", "permutahedron", "solve"]

FloatArray = NDArray[np.float64]


def comparators(n_wires: int) -> list[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs (i, j), i < j, the larger value goes to wire j.

    Parameters
    ----------
    n_wires : int
        Number of values to sort.

    Returns
    -------
    pairs : list of (int, int)
        In order of application; O(n log^2 n) of them.

    Examples
    --------
    >>> from owasvm.models.c_owa_svm_compact import comparators
    >>> comparators(4)
    [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]
    """
    pairs = []
    size = 1
    while size < n_wires:
        distance = size
        while distance >= 1:
            for start in range(distance % size, n_wires - distance, 2 * distance):
                for i in range(start, min(start + distance, n_wires - distance)):
                    if i // (2 * size) == (i + distance) // (2 * size):
                        pairs.append((i, i + distance))
            distance //= 2
        size *= 2
    return pairs


def permutahedron(n_wires: int) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
    """Rows of the network, over the variables ``(x, exits of the comparators)``.

    Parameters
    ----------
    n_wires : int
        Number of values.

    Returns
    -------
    equalities : csr_matrix
        ``equalities @ v == 0``: a comparator keeps the sum.
    inequalities : csr_matrix
        ``inequalities @ v >= 0``: its upper exit is at least both entries.
    exits : ndarray of shape (n_wires,)
        Which variables leave the network, smallest first. The entrance is the first `n_wires`.

    Examples
    --------
    >>> from owasvm.models.c_owa_svm_compact import permutahedron
    >>> equalities, inequalities, exits = permutahedron(3)
    >>> equalities.shape, inequalities.shape, exits.tolist()
    ((3, 9), (6, 9), [5, 7, 8])
    """
    wires = np.arange(n_wires)
    pairs = comparators(n_wires)
    kept: list[tuple[int, int, float]] = []
    raised: list[tuple[int, int, float]] = []
    n_variables = n_wires
    for number, (i, j) in enumerate(pairs):
        low, high = n_variables, n_variables + 1
        n_variables += 2
        for column, sign in ((low, 1.0), (high, 1.0), (wires[i], -1.0), (wires[j], -1.0)):
            kept.append((number, column, sign))
        for row, entry in ((2 * number, wires[i]), (2 * number + 1, wires[j])):
            raised.append((row, high, 1.0))
            raised.append((row, entry, -1.0))
        wires[i], wires[j] = low, high
    return (
        _sparse(kept, (len(pairs), n_variables)),
        _sparse(raised, (2 * len(pairs), n_variables)),
        wires,
    )


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> sp.csr_matrix:
    if not entries:
        return sp.csr_matrix(shape)
    row, column, value = zip(*entries, strict=True)
    return sp.csr_matrix((value, (row, column)), shape=shape)


def network_formulation(problem: OWAProblem, costs: FloatArray, shift: Any = 0.0) -> Formulation:
    """The compact dual for any non-decreasing `costs`, with ``alpha <= x - shift``.

    A `shift` (a vector or a cvxpy parameter) is the dual of a linear term ``-shift'xi`` in the
    objective: a step of the convex-concave procedure.
    """
    cp = cvxpy_.import_cvxpy()
    rows, y, n = coordinates(problem), problem.y, problem.n_samples
    equalities, inequalities, exits = permutahedron(n)

    alpha = cp.Variable(n, name="alpha")
    network = cp.Variable(equalities.shape[1], name="x")

    balance = y @ alpha == 0
    constraints = {
        "cdual1": balance,
        "cdual5": alpha >= 0,
        "below": alpha <= network[:n] - shift,
        "exits": network[exits] == costs,
    }
    if n > 1:
        constraints["sums"] = equalities @ network == 0
        constraints["maxima"] = inequalities @ network >= 0
    squared_norm = cp.sum_squares(rows.T @ cp.multiply(y, alpha))
    model = cp.Problem(cp.Maximize(cp.sum(alpha) - squared_norm / 2), list(constraints.values()))

    return Formulation(
        model,
        {"alpha": alpha, "x": network},
        constraints,
        dual=lambda: np.asarray(alpha.value),
        intercept=lambda: cvxpy_.multiplier(balance),
    )


def build(problem: OWAProblem) -> Formulation:
    """Write the compact dual down; the weights must be non-decreasing."""
    return network_formulation(problem, require_convex(problem, "The compact dual"))


def solve(problem: OWAProblem, **settings: Any) -> Solution:
    """Solve the compact dual; settings as in :func:`owasvm.models.convex.solve_model`.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models import c_owa_svm_compact
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(4, "superquantile", 0.5, C=0.25), gram=X @ X.T)
    >>> solution = c_owa_svm_compact.solve(problem)
    >>> round(solution.objective, 6), str(solution.status)
    (0.875, 'optimal')
    """
    return solve_model(problem, "compact-dual", build, **settings)
