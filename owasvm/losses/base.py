r"""What the rest of the package asks of a loss.

.. math:: \Phi(u) = \sum_k c_k\, \varphi(u)_{(k)}, \qquad u_i = 1 - y_i f(x_i),

the values of a function :math:`\varphi`, zero for :math:`u \le 0` and growing from there, sorted
ascending and weighted by costs c that do not fall. Solvers and the certificate use nothing of a
loss but the methods below. Only the hinge takes costs in any order, and no more than its value,
its excess and its subgradient then. Groups of samples may be ranked apart; their losses add up
(:mod:`owasvm.losses.grouped`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["ProxPoint", "ProximalLoss", "RankedLoss", "find_slack"]


def find_slack(scores: FloatArray, y: FloatArray, intercept: float) -> FloatArray:
    """``u = 1 - y (scores + intercept)``, with no other array beside it."""
    slack = scores + intercept
    slack *= y
    return np.subtract(1.0, slack, out=slack)


class ProxPoint:
    """Where a prox was taken, and how it reacts to changes there.

    Attributes
    ----------
    prox, dual : ndarray of shape (n_samples,)
        The minimiser x, and ``penalty * s * (v - x)``, a subgradient of the loss at x. Where
        nobody asks for the minimiser of a hinge with one cost per rank it may be empty.
    block : ndarray of shape (n_samples,)
        Negative where `dual` does not react to changes of v. 0 where it follows v, each sample on
        its own. 1, 2, ... for blocks of samples that share one value of x.
    n_blocks : int
        The largest number in `block`, or 0.
    shrink : ndarray of shape (n_samples + 1,)
        ``1 - sqrt(1 - t)`` for each block from number 1 on: the Jacobian of `dual` in the block
        is ``penalty * D (I - t q q' / q'q) D``, ``D = diag(q)``, q the roots of the sample
        weights.
    """

    def __init__(self, n_samples: int) -> None:
        self.prox = np.empty(n_samples)
        self.dual = np.empty(n_samples)
        self.block = np.empty(n_samples, dtype=np.int32)
        self.n_blocks = 0
        self.shrink = np.empty(n_samples + 1)


class ProximalLoss(Protocol):
    """What the convex solver asks of a loss ``Phi`` of the slacks u."""

    @property
    def mass(self) -> FloatArray | None:
        """Sample weights s, None when all are 1."""

    @property
    def mean_cost(self) -> float:
        """Mean cost of a unit of sample weight."""

    @property
    def is_curved(self) -> bool:
        """Whether the loss is not piecewise linear."""

    def value(self, slack: FloatArray) -> float:
        """``Phi(slack)``."""

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        """Fill `out`: ``argmin_x penalty/2 sum_i s_i (x_i - v_i)^2 + Phi(x)``."""

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        """Fill ``out.dual``: s times the point nearest to v of the dual set, per unit of weight.

        The dual set holds the points at which the conjugate is finite. ``out.block`` is negative
        where the projection does not follow v.
        """

    def conjugate_at(self, point: ProxPoint) -> float:
        """``Phi*(dual)`` at a point where a prox was taken."""


class RankedLoss(ProximalLoss, Protocol):
    """A loss of a problem, bound to its costs: all that solvers and the certificate ask for.

    Parameters
    ----------
    costs : Costs
        Who pays what.
    """

    def __init__(self, costs: Costs) -> None: ...

    def conjugate(self, dual: FloatArray) -> float:
        """``Phi*`` at a point of the dual set, or a little more; rounding is left to the caller.

        It must not grow when entries of the point are lowered.
        """

    def excess(self, dual: FloatArray) -> float:
        """Factor by which a non-negative point exceeds the dual set, at most 1 inside."""

    def subgradient(self, slack: FloatArray) -> FloatArray:
        """A point of the dual set with ``Phi(slack) + Phi*(point) = point'slack``."""

    def slopes(
        self, scores: FloatArray, y: FloatArray, intercept: float, resolution: float
    ) -> tuple[float, float, float]:
        """``Phi`` at an intercept, and its derivatives to the left and to the right.

        Just to the right of b the deviations of the class -1 grow and those of the class +1 fall,
        to the left the other way round. The growing ones rank above those they tie with, and count
        even at deviation 0, up to `resolution`. Derivatives are always with respect to b.
        """

    def rounding(self, slack: FloatArray, error: FloatArray, value: float) -> float:
        """What `value`, computed as ``Phi(slack)``, is off by when slacks are off by `error`."""

    def constant_intercepts(self, y: FloatArray) -> tuple[float, ...]:
        """Intercepts of which one is best for w = 0."""
