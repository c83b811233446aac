"""One augmented Lagrangian of the hinge on a kernel matrix in memory, in compiled loops.

Small problems spend their time between numpy's calls rather than in them. Here a step is a handful
of compiled calls and a factorisation.
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
from owasvm.samples.kernel_operators import (
    ITERATE_SIZE,
    GramOperator,
    add_gram_rows,
    limit_intercept,
)
from owasvm.solvers.newton import _gram_loops as loops
from owasvm.solvers.newton._bracket import SIZE
from owasvm.solvers.newton.active import make_active_set

if TYPE_CHECKING:
    from owasvm.solvers.newton.core import ConvexTask, Iterate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["GramInner", "make_gram_inner"]

# From this many samples on a product in which most coefficients count is left to BLAS, which reads
# one triangle only.
_WORTH_BLAS = 256


def make_gram_inner(task: ConvexTask) -> GramInner | None:
    """For the plain problem, one cost per rank, on a kernel matrix; None for other tasks."""
    operator, loss = task.operator, task.loss
    if task.linear is not None or task.fixed_intercept is not None:
        return None
    if not isinstance(operator, GramOperator) or not isinstance(loss, RankedHinge):
        return None
    return None if loss.arrays is None else GramInner(task, operator, *loss.arrays)


def _centre(change: FloatArray, tie: FloatArray, starts: IntArray) -> None:
    """Change in place: take the mean, with the signs `tie`, from each block.

    Solutions have none but for rounding; along it nothing resists but the ridge.
    """
    first = starts[0]
    means = np.add.reduceat(tie * change, starts[:-1]) / np.diff(starts)
    change[first:] -= tie[first:] * np.repeat(means, np.diff(starts))


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
        self._vectors = np.zeros((loops.N_VECTORS, n_samples))
        self._figures = np.zeros(loops.N_FIGURES)
        self._point = ProxPoint(n_samples)
        self._most = n_samples // 2 if n_samples >= _WORTH_BLAS else n_samples
        self._room = np.empty(0)
        self._w: Vector | None = None
        self._squared = 0.0
        self._loss = 0.0
        self._workspace = workspace
        self._arguments = (
            task.y,
            task.margin,
            ascending,
            workspace,
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
            self._loss = -1.0
        vectors[loops.MULTIPLIER] = iterate.dual
        self._advance(iterate, stays=True)

    def look(self, iterate: Iterate, *, foresees: bool) -> tuple[float, float, float]:
        del foresees
        figures = self._figures.tolist()
        squared, loss = self._squared, self._loss
        iterate.objective = 0.5 * figures[loops.SQUARED_W] + loss
        iterate.gap = 0.5 * squared + loss - figures[loops.PRODUCT]
        iterate.slack, iterate.dual = self._vectors[loops.SLACK], self._vectors[loops.DUAL]
        movement = math.sqrt(figures[loops.MOVED] / iterate.penalty)
        return squared, figures[loops.IMBALANCE], movement

    def take_dual(self) -> FloatArray:
        return self._vectors[loops.DUAL].copy()

    def go_along(self, iterate: Iterate, w: Vector, intercept: float) -> bool:
        self._vectors[loops.STEP], self._vectors[loops.STEP_SCORES] = w.coef, w.scores
        self._figures[loops.INTERCEPT_STEP] = intercept
        return self._advance(iterate)

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
        system = self._take_room(size)
        loops.write_system(
            self._operator.gram,
            self._operator.means,
            self._task.y,
            vectors[loops.RESIDUAL_SCORES],
            self._point.block,
            1.0 / iterate.penalty,
            offsets,
            samples,
            system,
            vectors[loops.PROX],
            vectors[loops.V],
        )
        sides = system[size:]
        # Only the lower triangle of the Fortran view, our upper one, is read.
        factor, failed = dpotrf(system[:size].T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return self._step_by_any_means(iterate)
        solved = np.asarray(dpotrs(factor, sides.T, lower=1)[0]).T
        pulled, curvature = (solved @ sides[1]).tolist()
        intercept = limit_intercept(float(self._figures[loops.IMBALANCE]) - pulled, curvature)
        change = -solved[0] - intercept * solved[1]
        if n_blocks > 0:
            _centre(change, self._task.y[samples], offsets[1:])
        step = vectors[loops.STEP]
        step[:] = vectors[loops.RESIDUAL]
        step[samples] += change
        if size > self._most:
            self._multiply(loops.STEP, loops.STEP_SCORES)
        else:
            vectors[loops.STEP_SCORES] = vectors[loops.RESIDUAL_SCORES]
            self._add_rows(samples, change, loops.STEP_SCORES)
        self._figures[loops.INTERCEPT_STEP] = intercept
        return self._advance(iterate)

    def _take_room(self, size: int) -> FloatArray:
        """Room for a system, in memory that was used before: fresh memory takes time."""
        needed = size * (size + 2)
        if self._room.size < needed:
            self._room = np.empty(2 * needed)
        return self._room[:needed].reshape(size + 2, size)

    def _step_by_any_means(self, iterate: Iterate) -> bool:
        """A step by conjugate gradients, or from a matrix that has to be lifted."""
        vectors = self._vectors
        residual = Vector(vectors[loops.RESIDUAL], vectors[loops.RESIDUAL_SCORES])
        self._point.n_blocks = int(self._figures[loops.N_BLOCKS])
        imbalance = float(self._figures[loops.IMBALANCE])
        active = make_active_set(self._task, iterate, self._point, imbalance)
        return self.go_along(iterate, *self._operator.newton_step(residual, active))

    def _advance(self, iterate: Iterate, *, stays: bool = False) -> bool:
        """Go along the step that is in the table; False where it goes nowhere."""
        vectors, tuning = self._vectors, self._task.tuning
        moved = loops.advance(
            *self._arguments, iterate.penalty, tuning.slope_share, tuning.still_falling, stays
        )
        if not moved:
            return False
        n_nonzero = int(self._figures[loops.N_NONZERO])
        scores = vectors[loops.RESIDUAL_SCORES]
        if n_nonzero > self._most:
            self._multiply(loops.RESIDUAL, loops.RESIDUAL_SCORES)
        else:
            scores.fill(0.0)
            workspace = self._workspace
            # As wide as those of a step, for which the loop is compiled.
            rows = workspace.order[:n_nonzero].astype(np.int64)
            values = workspace.keys[:n_nonzero]
            self._add_rows(rows, values, loops.RESIDUAL_SCORES)
        self._squared = max(float(vectors[loops.RESIDUAL] @ scores), 0.0)
        if not stays or self._loss < 0.0:
            self._loss = self._task.loss.value(vectors[loops.SLACK])
        if not stays:
            iterate.intercept = float(self._figures[loops.INTERCEPT])
            iterate.n_iter += 1
        return True

    def _add_rows(self, rows: IntArray, values: FloatArray, out: int) -> None:
        """Add what some coefficients contribute to a row of scores."""
        operator = self._operator
        add_gram_rows(operator.gram, operator.means, rows, values, self._vectors[out])

    def _multiply(self, row: int, out: int) -> None:
        """Overwrite a row of the table: the scores of the coefficients in another."""
        coef, means = self._vectors[row], self._operator.means
        scores = dsymv(1.0, self._operator.gram.T, coef, lower=1)
        scores -= float(means @ coef)
        scores -= float(coef.sum()) * means
        self._vectors[out] = scores
