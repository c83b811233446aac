"""One augmented Lagrangian of the hinge on a kernel matrix in memory, in compiled loops.

Small problems spend their time between numpy's calls rather than in them. Here a step is two
compiled calls and a factorisation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf, dpotrs

from owasvm.losses import ProxPoint, RankedHinge
from owasvm.losses.hinge import Workspace
from owasvm.samples import MAX_INTERCEPT_STEP, Vector
from owasvm.samples.kernel_operators import ITERATE_SIZE, GramOperator
from owasvm.solvers.newton import _gram_loops as loops
from owasvm.solvers.newton._bracket import SIZE
from owasvm.solvers.newton.active import make_active_set

if TYPE_CHECKING:
    from owasvm.solvers.newton.core import ConvexTask, Iterate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Active samples, their labels, where blocks begin, R 1, and the solutions of a Newton system.
System = tuple[IntArray, FloatArray, IntArray, FloatArray, FloatArray]

__all__ = ["GramInner", "make_gram_inner"]

# From this many samples on a product in which most coefficients count is left to BLAS, which reads
# one triangle only.
_WORTH_BLAS = 256
_NO_SYSTEM: System = (
    np.empty(0, dtype=np.int64),
    np.empty(0),
    np.zeros(2, dtype=np.int64),
    np.empty(0),
    np.empty((2, 0)),
)


def make_gram_inner(task: ConvexTask) -> GramInner | None:
    """For the plain problem, one cost per rank, on a kernel matrix; None for other tasks."""
    operator, loss = task.operator, task.loss
    if task.linear is not None or task.fixed_intercept is not None:
        return None
    if not isinstance(operator, GramOperator) or not isinstance(loss, RankedHinge):
        return None
    return None if loss.arrays is None else GramInner(task, operator, *loss.arrays)


class GramInner:
    """What :class:`owasvm.solvers.newton.core.Inner` does, of which it has all methods.

    Parameters
    ----------
    task : ConvexTask
        The problem.
    operator : GramOperator
        Its data.
    ascending : ndarray of shape (n_samples,)
        Costs by rank.
    workspace : Workspace
        Of the loss.
    """

    def __init__(
        self,
        task: ConvexTask,
        operator: GramOperator,
        ascending: FloatArray,
        workspace: Workspace,
    ) -> None:
        n_samples = task.y.size
        self._task, self._operator = task, operator
        self._vectors = np.empty((loops.N_VECTORS, n_samples))
        self._figures = np.zeros(loops.N_FIGURES)
        # No loss is negative: it is not known yet.
        self._figures[loops.LOSS] = -1.0
        self._point = ProxPoint(n_samples)
        self._most = n_samples // 2 if n_samples >= _WORTH_BLAS else n_samples
        self._room = np.empty(0)
        self._w: Vector | None = None
        self._arguments = (
            operator.gram,
            operator.means,
            task.y,
            task.margin,
            ascending,
            workspace,
            np.stack([np.arange(n_samples)] * 2),
            self._vectors,
            self._point.block,
            self._point.shrink,
            np.empty(SIZE),
            self._figures,
        )

    def begin(self, iterate: Iterate) -> None:
        vectors = self._vectors
        if iterate.w is not self._w:
            vectors[loops.COEF], vectors[loops.SCORES] = iterate.w.coef, iterate.w.scores
            self._w = iterate.w = Vector(vectors[loops.COEF], vectors[loops.SCORES])
            self._figures[loops.INTERCEPT] = iterate.intercept
        vectors[loops.MULTIPLIER] = iterate.dual
        self._advance(iterate, loops.STAY)

    def look(self, iterate: Iterate, *, foresees: bool) -> tuple[float, float, float]:
        del foresees
        figures = self._figures.tolist()
        squared, loss = figures[loops.SQUARED], figures[loops.LOSS]
        iterate.objective = 0.5 * figures[loops.SQUARED_W] + loss
        iterate.gap = 0.5 * squared + loss - figures[loops.PRODUCT]
        iterate.slack, iterate.dual = self._vectors[loops.SLACK], self._vectors[loops.DUAL]
        movement = math.sqrt(figures[loops.MOVED] / iterate.penalty)
        return squared, figures[loops.IMBALANCE], movement

    def copy_dual(self) -> FloatArray:
        return self._vectors[loops.DUAL].copy()

    def go_along(self, iterate: Iterate, w: Vector, intercept: float) -> bool:
        self._vectors[loops.STEP], self._vectors[loops.STEP_SCORES] = w.coef, w.scores
        self._figures[loops.INTERCEPT_STEP] = intercept
        return self._advance(iterate, loops.ALONG)

    def step(self, iterate: Iterate) -> bool:
        vectors = self._vectors
        size = iterate.n_active = int(self._figures[loops.N_ACTIVE])
        if size == 0:
            # The augmented Lagrangian is linear in b here: move, the line search knows how far.
            intercept = float(np.sign(self._figures[loops.IMBALANCE])) * MAX_INTERCEPT_STEP
            residual = Vector(vectors[loops.RESIDUAL], vectors[loops.RESIDUAL_SCORES])
            return self.go_along(iterate, residual, intercept)
        if size >= ITERATE_SIZE and not self._task.memory.factorises:
            return self._step_by_any_means(iterate)
        n_blocks = int(self._figures[loops.N_BLOCKS])
        samples, offsets = np.empty(size, dtype=np.int64), np.empty(n_blocks + 2, dtype=np.int64)
        tie, labels, sides = np.empty(size), np.empty_like(samples), np.empty((2, size))
        matrix, pulls = self._take_room(size, n_blocks + 1)
        loops.write_system(
            self._operator.gram,
            self._operator.means,
            self._task.y,
            vectors,
            self._point.block,
            self._point.shrink,
            1.0 / iterate.penalty,
            offsets,
            samples,
            tie,
            labels,
            sides,
            matrix,
            pulls,
        )
        # Only the lower triangle of the Fortran view, our upper one, is read.
        factor, failed = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return self._step_by_any_means(iterate)
        solved = np.asarray(dpotrs(factor, sides.T, lower=1)[0]).T
        system = samples, tie, offsets, sides[1], solved
        return self._advance(iterate, loops.SOLVED, system)

    def _take_room(self, size: int, n_labels: int) -> tuple[FloatArray, FloatArray]:
        """A square matrix and one with a column for each label, in memory that was used before.

        Fresh memory of that size costs as much as what is written into it.
        """
        needed = size * (size + n_labels)
        if self._room.size < needed:
            self._room = np.empty(2 * needed)
        square, rest = self._room[: size * size], self._room[size * size : needed]
        return square.reshape(size, size), rest.reshape(size, n_labels)

    def _step_by_any_means(self, iterate: Iterate) -> bool:
        """A step by conjugate gradients, or from a matrix that has to be lifted."""
        vectors = self._vectors
        residual = Vector(vectors[loops.RESIDUAL], vectors[loops.RESIDUAL_SCORES])
        self._point.n_blocks = int(self._figures[loops.N_BLOCKS])
        imbalance = float(self._figures[loops.IMBALANCE])
        active = make_active_set(self._task, iterate, self._point, imbalance)
        return self.go_along(iterate, *self._operator.newton_step(residual, active))

    def _advance(self, iterate: Iterate, how: int, system: System = _NO_SYSTEM) -> bool:
        """Run the compiled loops; False where the step goes nowhere."""
        vectors, figures, tuning = self._vectors, self._figures, self._task.tuning
        rest = iterate.penalty, tuning.slope_share, tuning.still_falling, self._most
        outcome = loops.advance(*self._arguments, *system, *rest, how)
        if outcome == loops.INCOMPLETE:
            self._multiply(loops.STEP, loops.STEP_SCORES)
            outcome = loops.advance(*self._arguments, *system, *rest, loops.ALONG)
        if outcome == loops.STUCK:
            return False
        if figures[loops.N_NONZERO] > self._most:
            self._multiply(loops.RESIDUAL, loops.RESIDUAL_SCORES)
            squared = float(vectors[loops.RESIDUAL] @ vectors[loops.RESIDUAL_SCORES])
            figures[loops.SQUARED] = max(squared, 0.0)
        if how != loops.STAY:
            iterate.intercept = float(figures[loops.INTERCEPT])
            iterate.n_iter += 1
        return True

    def _multiply(self, row: int, out: int) -> None:
        """Overwrite a row of the table: the scores of the coefficients in another."""
        coef, means = self._vectors[row], self._operator.means
        scores = dsymv(1.0, self._operator.gram.T, coef, lower=1)
        scores -= float(means @ coef)
        scores -= float(coef.sum()) * means
        self._vectors[out] = scores
