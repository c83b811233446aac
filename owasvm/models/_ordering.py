r"""Deviations, ranks and sorted deviations: the part all mixed-integer models share.

.. math::

    & \sum_i z_{ij} = 1 & j \in N \quad & \text{(assign1)} \\
    & \theta_k \ge \xi_i - M \bigl(1 - \textstyle\sum_{j \le k} z_{ij}\bigr) & i, k \in N
      \quad & \text{(the\_xi)} \\
    & z_{ik} \in \{0, 1\}, \quad \theta_k \ge 0, \quad \xi_i \ge 0 & i, k \in N
      \quad & \text{(zbin), (thetavar), (xivar)}

Strengthened, with intervals ``l_i <= xi_i <= u_i`` that hold at some optimal solution and their
sorted ends ``L_k <= theta_k <= U_k``:

.. math::

    & \sum_j z_{ij} = 1 & i \in N \quad & \text{(assign2)} \\
    & \theta_k \le \theta_{k+1}, \qquad \textstyle\sum_k \theta_k = \sum_i \xi_i
      & & \text{(ordered theta), (sum cut)} \\
    & \theta_k \ge \xi_i - (u_i - L_k) \bigl(1 - \textstyle\sum_{j \le k} z_{ij}\bigr)
      & i, k \in N \quad & \text{(the\_xi), tighter M} \\
    & \theta_k \le \xi_i + (U_k - l_i) \bigl(1 - \textstyle\sum_{j \ge k} z_{ij}\bigr)
      & i, k \in N \quad & \text{(reverse link)} \\
    & z_{ik} = 0 \text{ where the intervals forbid rank } k \text{ to sample } i

The reverse link is the mirror image of (the_xi): the k-th smallest deviation is no larger than
that of a sample at rank k or above. It and the intervals are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from owasvm.models._data import coordinates
from owasvm.models.backends.program import FloatArray, IntArray, MixedIntegerProgram
from owasvm.models.bounds import DeviationBounds
from owasvm.problem import OWAProblem

__all__ = ["Ordering", "add_ordering", "direction", "point"]


class Ordering(NamedTuple):
    """Indices of the variables in the program."""

    xi: IntArray
    theta: IntArray
    z: IntArray


def add_ordering(
    program: MixedIntegerProgram,
    n_samples: int,
    *,
    big_m: float | None,
    assign2: bool,
    bounds: DeviationBounds | None,
) -> Ordering:
    """Add xi, theta and z with their rows: as printed, or strengthened when `bounds` are given."""
    if bounds is None:
        if big_m is None:
            raise ValueError("big_m is missing: the model as printed needs a value of M.")
        return _add_printed(program, n_samples, float(big_m), assign2)
    return _add_strengthened(program, n_samples, bounds)


def _add_assignment(program: MixedIntegerProgram, z: IntArray, assign2: bool) -> None:
    ones = np.ones((1, z.shape[0]))
    for rank in z.T:
        program.rows("assign1", (ones, rank), lower=1.0, upper=1.0)
    if assign2:
        for sample in z:
            program.rows("assign2", (ones, sample), lower=1.0, upper=1.0)


def _add_printed(program: MixedIntegerProgram, n: int, big_m: float, assign2: bool) -> Ordering:
    xi = program.variables("xi", n, lower=0.0)  # (xivar)
    theta = program.variables("theta", n, lower=0.0)  # (thetavar)
    z = program.variables("z", n, n, binary=True)  # (zbin), z[i, k]
    _add_assignment(program, z, assign2)
    up_to_rank = np.tri(n)  # row k sums z[i, 0..k]
    for i in range(n):
        program.rows(
            "the_xi",
            (1.0, theta),
            (np.full((n, 1), -1.0), xi[[i]]),
            (-big_m * up_to_rank, z[i]),
            lower=-big_m,
        )
    return Ordering(xi, theta, z)


def _add_strengthened(program: MixedIntegerProgram, n: int, bounds: DeviationBounds) -> Ordering:
    smallest, largest = bounds.sorted_lower, bounds.sorted_upper
    ranks = np.arange(n)
    allowed = (ranks >= bounds.first_rank[:, None]) & (ranks <= bounds.last_rank[:, None])

    xi = program.variables("xi", n, lower=bounds.lower, upper=bounds.upper)
    theta = program.variables("theta", n, lower=smallest, upper=largest)
    z = program.variables("z", n, n, upper=allowed.astype(float), binary=True)
    _add_assignment(program, z, assign2=True)
    if n > 1:
        program.rows("ordered theta", (1.0, theta[1:]), (-1.0, theta[:-1]), lower=0.0)
    program.rows(
        "sum cut", (np.ones((1, n)), theta), (np.full((1, n), -1.0), xi), lower=0.0, upper=0.0
    )
    up_to_rank, below_rank = np.tri(n), np.tri(n, k=-1)
    for i in range(n):
        own = np.full((n, 1), -1.0)
        # theta_k >= xi_i holds by the bounds alone where u_i <= L_k.
        reach = bounds.upper[i] - smallest
        linked = reach > 0.0
        if linked.any():
            program.rows(
                "the_xi",
                (1.0, theta[linked]),
                (own[linked], xi[[i]]),
                (-reach[linked, None] * up_to_rank[linked], z[i]),
                lower=-reach[linked],
            )
        # By (assign2), 1 - sum_{j >= k} z_ij = sum_{j < k} z_ij.
        reach = largest - bounds.lower[i]
        linked = reach > 0.0
        if linked.any():
            program.rows(
                "reverse link",
                (1.0, theta[linked]),
                (own[linked], xi[[i]]),
                (-reach[linked, None] * below_rank[linked], z[i]),
                upper=0.0,
            )
    return Ordering(xi, theta, z)


def point(
    problem: OWAProblem, program: MixedIntegerProgram, dual: FloatArray, intercept: float
) -> FloatArray:
    """The classifier as a feasible point of the program."""
    values = np.zeros(program.n_variables)
    rows, blocks = coordinates(problem), program.blocks
    w = rows.T @ (problem.y * dual)
    deviations = np.maximum(1.0 - problem.y * (rows @ w + intercept), 0.0)
    order = np.argsort(deviations, kind="stable")
    values[program.squares] = w
    values[blocks["b"]] = intercept
    if "alpha" in blocks:
        values[blocks["alpha"]] = dual
    values[blocks["xi"]] = deviations
    values[blocks["theta"]] = deviations[order]
    values[blocks["z"][order, np.arange(order.size)]] = 1.0
    return values


def direction(
    problem: OWAProblem, program: MixedIntegerProgram, values: FloatArray
) -> tuple[FloatArray, float]:
    """w, in the coordinates of the problem, and b of a solution of the program."""
    b = float(values[program.blocks["b"]][0])
    if "alpha" not in program.blocks:
        return values[program.squares], b
    return coordinates(problem).T @ (problem.y * values[program.blocks["alpha"]]), b
