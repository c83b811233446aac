r"""Coefficients that prove themselves, next to an iterate of a splitting method.

A classifier w, b of splitting and its dual point are both good long before one point is: the
coefficients of w leave the dual set a little, and w of the dual point has slacks that are not
quite equal where they should be, which costs a thousand times what is left to gain. The point of
the dual set next to the coefficients of w lacks least. What it lacks is that its slacks agree with
the pieces of the loss that splitting has found: 0 on the margin, the same within a tie. With those
pieces fixed, a free sample changing its coefficient and a tie keeping its sum, this is a system

.. math::

    (Q_{AA} + \tfrac{1}{\sigma} I)\, \delta = u_A - t_A - y_A \, db, \qquad y^T \delta = 0,

one Newton step with a large penalty. The objective falls to that of the iterate, the bound stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from owasvm.losses import ProxPoint
from owasvm.samples import ActiveSet, Memory, Vector
from owasvm.solvers.newton.active import split_samples
from owasvm.solvers.newton.core import ConvexTask, Iterate, bound_of, describe_final
from owasvm.solvers.newton.stopping import ask_below, project_balanced

FloatArray = NDArray[np.float64]

__all__ = ["Repair", "bound_near"]

# Of the step, in units of the curvature. With a tenth of it steps are too short, with ten times as
# much they leave the dual set.
_PENALTY = 1e3
# It is tried from an estimated gap of so many times the tolerance on.
_FAR = 30.0
# The intercept of a certificate is exact, which may be what is lacking to this.
_WORTH_IT = 2.0
# Where w = 0 is proven to be this near to the optimum there is nothing to repair.
_NEARLY_NOTHING = 0.8


def bound_near(task: ConvexTask, guess: FloatArray) -> tuple[FloatArray, Vector, float]:
    """The balanced point of the dual set next to a guess, its w, and its bound."""
    dual = project_balanced(task, guess)
    return dual, *bound_of(task, dual)


class Repair:
    """Watches iterates of splitting, and makes a point of one that may prove itself.

    Parameters
    ----------
    task : ConvexTask
        The task.
    tol : float
        Relative gap to prove.
    nothing : float
        The objective of the best classifier with w = 0.
    """

    def __init__(self, task: ConvexTask, tol: float, nothing: float) -> None:
        self._task = task
        self._tol = tol
        self._nothing = nothing
        self._below = _FAR * tol
        is_linear = not task.loss.is_curved and task.linear is None
        self.is_at_hand = is_linear and task.fixed_intercept is None

    def attempt(self, iterate: Iterate, point: ProxPoint) -> Iterate | None:
        """A point to be judged, or None where there is none yet.

        Parameters
        ----------
        iterate : Iterate
            Of splitting; its gap is that of two points.
        point : ProxPoint
            Where the prox was taken: it tells the pieces of the loss.
        """
        scale = max(1.0, abs(iterate.objective))
        estimate = iterate.gap / scale
        if not self.is_at_hand or estimate > self._below:
            return None
        dual, w, bound = bound_near(self._task, self._task.dual_of(iterate.w))
        near_nothing = self._nothing - bound <= _NEARLY_NOTHING * self._tol * scale
        gap, found = (iterate.objective - bound) / scale, None
        if near_nothing:
            found = replace(iterate, is_final=True)
        elif gap <= self._tol and np.any(point.block >= 0):
            found = self._step(iterate, dual, w, point)
            gap = found.gap / scale
            found = found if gap <= _WORTH_IT * self._tol else None
        self._below = ask_below(estimate, gap, self._tol)
        return found

    def _step(self, iterate: Iterate, dual: FloatArray, w: Vector, point: ProxPoint) -> Iterate:
        """From a dual point and its w to slacks that agree with the pieces of the loss."""
        task, penalty = self._task, _PENALTY * self._task.unit_penalty
        partition = split_samples(task, point)
        active = ActiveSet(
            **partition._asdict(),
            ridge=1.0 / penalty,
            imbalance=0.0,
            free=True,
            accuracy=0.0,
            memory=Memory(factorises=True),
        )
        samples = partition.samples
        slack = task.margin - task.y * (w.scores + iterate.intercept)
        # What the gradient asks for, as far as these pieces react to the slacks.
        asked = np.zeros(task.y.size)
        reacting = active.apply(active.apply(partition.root * (task.y * slack)[samples]))
        asked[samples] = penalty * partition.root * reacting
        active.imbalance = float(asked.sum())
        step, shift = task.operator.newton_step(task.operator.vector(asked), active)
        _, moved, bound = bound_near(task, dual + task.y * step.coef)
        return describe_final(task, moved, iterate.intercept + shift, iterate.dual, bound, iterate)
