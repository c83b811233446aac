r"""Splitting with a memory, for kernel matrices and weights that the Newton method finds hard.

The loss of the slacks and the norm of w are minimised in turns, as Douglas and Rachford do [1]_:

.. math::

    z = \operatorname{prox}_{\Phi / \rho}(v), \qquad
    (w, b) = \operatorname{argmin}\ \tfrac12 |w|^2 + \tfrac{\rho}{2} |u(w, b) - (2 z - v)|^2,
    \qquad v \leftarrow v + \theta (u - z),

where ``rho (v - z)`` is a point of the dual set. The second problem is a linear system with one
matrix for all iterations, so that an iteration costs a sort and a product. Pieces on which the
loss is smooth play no role, however small they are. Anderson's memory [2]_ of the last iterations
does what a second derivative would do: it takes 60 to 450 iterations where without it they are
thousands.

References
----------
.. [1] J. Eckstein, D. P. Bertsekas, "On the Douglas-Rachford splitting method and the proximal
   point algorithm for maximal monotone operators", Mathematical Programming 55 (1992) 293-318.
.. [2] H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal on
   Numerical Analysis 49 (2011) 1715-1735.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from owasvm.losses import ProximalLoss, ProxPoint
from owasvm.samples import Operator

FloatArray = NDArray[np.float64]

__all__ = ["Memory", "Splitting", "is_single"]

# Iterations go beyond what both problems ask for by this factor.
_RELAXATION = 1.7
# Iterations remembered.
_MEMORY = 10
# Differences of iterations that are nearly dependent are told apart by this share of their size.
_RIDGE = 1e-10
_LEAST = 1e-300
# From so many samples on the inverse is one in single precision: half of the time to make it, and
# a third of that of a product where it stays in the processor's cache. (Time of whole fits, most
# of which have no need of it, geometric means of 144 to 252: 0.97 with 700 and 1,000 samples, 0.93
# with 2,200, and 0.85 of the sum.)
_MANY_SAMPLES = 500
# Unless it leaves so much of a side: smooth kernels times large penalties are not for it.
_MOST_LEFT = 0.1
# Corrections that make a solution exact, if each leaves a tenth at most.
_CORRECTIONS = 12


class Memory:
    """Anderson's: a fixed point iteration ``v -> v + change`` from what its last changes tell.

    Parameters
    ----------
    mass : ndarray of shape (n_samples,) or float
        Weights of the entries in the norm of the changes.
    n_samples : int
        Length of the vectors.
    depth : int, default=10
        Iterations remembered.
    """

    def __init__(self, mass: FloatArray | float, n_samples: int, depth: int = _MEMORY) -> None:
        self._mass = mass
        self._changes = np.zeros((depth, n_samples))
        self._images = np.zeros((depth, n_samples))
        self._products = np.zeros((depth, depth))
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._n_seen = 0

    def advance(self, v: FloatArray, change: FloatArray) -> FloatArray:
        """The next point: the combination of the last ones at which the change is smallest."""
        image = v + change
        last, self._last = self._last, (change, image)
        if last is None:
            return image
        depth = self._products.shape[0]
        place = self._n_seen % depth
        self._n_seen += 1
        self._changes[place] = change - last[0]
        self._images[place] = image - last[1]
        weighted = self._mass * self._changes[place]
        self._products[place] = self._products[:, place] = self._changes @ weighted
        size = min(self._n_seen, depth)
        matrix = self._products[:size, :size].copy()
        matrix[np.arange(size), np.arange(size)] += _RIDGE * np.trace(matrix) + _LEAST
        side = self._changes[:size] @ (self._mass * change)
        try:
            return image - np.linalg.solve(matrix, side) @ self._images[:size]
        except np.linalg.LinAlgError:
            # Numbers have overflown, or nothing changes any more.
            return image


def is_single(operator: Operator, loss: ProximalLoss) -> bool:
    """Whether an inverse in single precision is enough for splitting.

    Not for squared deviations, whose penalties are ten times as large: of 830 fits 13 missed their
    gap with it, 5 without.
    """
    is_in_memory = operator.is_gram and operator.place is None
    return is_in_memory and not loss.is_curved and operator.n_samples >= _MANY_SAMPLES


class _System:
    """``(K + diag(ridge)) x = side``, for many sides that differ less and less.

    An inverse in single precision finds how solutions change. What it leaves is found now and
    then, with K itself, and added to the next change: solutions become exact as sides stand still.

    Parameters
    ----------
    operator : Operator
        K; it can be lifted.
    ridge : ndarray of shape (n_samples,)
        What is added to its diagonal.
    probe : ndarray of shape (n_samples,)
        A side, to try the inverse.
    single : bool
        Whether an inverse in single precision is tried.
    """

    def __init__(
        self, operator: Operator, ridge: FloatArray, probe: FloatArray, *, single: bool
    ) -> None:
        self._operator = operator
        self._ridge = ridge
        self._side = self._solution = np.zeros(ridge.size)
        self.is_single = single
        self._inverse = operator.lift(ridge, single=single).invert()
        if self.is_single:
            left, _ = self._find_left(probe, self._inverse(probe))
            if not float(left @ left) <= _MOST_LEFT**2 * float(probe @ probe):
                self.is_single = False
                self._inverse = operator.lift(ridge).invert()

    def _find_left(self, side: FloatArray, solution: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a solution leaves of a side, and what K makes of it."""
        image = self._operator.vector(solution.copy()).scores
        return side - image - self._ridge * solution, image

    def solve(self, side: FloatArray) -> FloatArray:
        """The solution, exact."""
        solution = self._inverse(side)
        if self.is_single:
            for _ in range(_CORRECTIONS):
                change = self._inverse(self._find_left(side, solution)[0])
                solution = solution + change
                if not np.abs(change).max() > np.finfo(float).eps * np.abs(solution).max():
                    break
        return solution

    def follow(self, side: FloatArray) -> FloatArray:
        """The solution, about, given that the last one is known."""
        if not self.is_single:
            return self._inverse(side)
        self._solution = self._solution + self._inverse(side - self._side)
        self._side = side
        return self._solution

    def correct(self) -> FloatArray:
        """Find out what the last solution has left, for the next one; what K makes of it."""
        left, image = self._find_left(self._side, self._solution)
        self._solution = self._solution + self._inverse(left)
        return image


class Splitting:
    """One problem, its matrix inverted.

    Parameters
    ----------
    operator : Operator
        The data; they can be lifted.
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    loss : ProximalLoss
        The ordered loss of the slacks.
    margin : ndarray of shape (n_samples,) or (1,)
        Required functional margins.
    penalty : float
        The factor rho.
    """

    def __init__(
        self,
        operator: Operator,
        y: FloatArray,
        loss: ProximalLoss,
        margin: FloatArray,
        penalty: float,
    ) -> None:
        self._y = y
        self._loss = loss
        self._margin = margin
        self.penalty = penalty
        mass = loss.mass
        self._mass: FloatArray | float = 1.0 if mass is None else mass
        self._ridge = np.broadcast_to(1.0 / (penalty * self._mass), y.shape)
        single = is_single(operator, loss)
        self._system = _System(operator, self._ridge, y, single=single)
        self._ones = self._system.solve(np.ones(y.size))
        self.coef = self.scores = self.slack = np.empty(0)
        self.intercept = 0.0
        self.point = ProxPoint(y.size)

    def iterate(self, slack: FloatArray, dual: FloatArray) -> Iterator[None]:
        """Iterations without end, from given slacks and a dual point.

        After each of them `coef`, `scores` and `intercept` are those of a classifier, balanced and
        centred, `slack` are its slacks, and `point` has a dual point. Scores and slacks are those
        of the coefficients up to what the inverse leaves, and exact after :meth:`correct`.
        """
        v = slack + dual * self._ridge
        memory = Memory(self._mass, v.size)
        while True:
            self._loss.prox(v, self.penalty, self.point)
            prox = self.point.prox
            wanted = self._y * (self._margin - (2.0 * prox - v))
            solved = self._system.follow(wanted)
            self.intercept = float(solved.sum() / self._ones.sum())
            self.coef = solved - self.intercept * self._ones
            decisions = wanted - self.coef * self._ridge
            self.scores = decisions - self.intercept
            self.slack = self._margin - self._y * decisions
            yield
            v = memory.advance(v, _RELAXATION * (self.slack - prox))

    def correct(self) -> None:
        """Make scores and slacks those of the coefficients."""
        if not self._system.is_single:
            return
        scores = self._system.correct()
        self.scores = scores - self.intercept * (1.0 - self._ridge * self._ones)
        self.slack = self._margin - self._y * (self.scores + self.intercept)
