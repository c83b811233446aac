"""How much work Newton steps have done, and whether it pays."""

from __future__ import annotations

import numpy as np

from owasvm.solvers.newton.core import ConvexTask, Iterate

__all__ = ["Effort", "reading"]

# Multiplications of a factorisation that take as long as reading a number in two products, from
# memory and, the smaller the matrix, the more from the processor's own.
_READING = 60.0
_FROM_MEMORY = 3000
# As what a step costs however few samples there are.
_PER_STEP = 4e6
# Newton steps pay as long as the last third of them has brought the gap down to this share.
_PROGRESS = 0.1


def reading(n_samples: int) -> float:
    """Multiplications of a factorisation that take as long as two products with the kernel."""
    return _READING * min(n_samples / _FROM_MEMORY, 1.0) * float(n_samples) ** 2


class Effort:
    """Counts the multiplications of Newton steps; what was done with other columns is forgotten.

    Parameters
    ----------
    task : ConvexTask
        What the steps are taken for.

    Attributes
    ----------
    spent : float
        Multiplications of a factorisation that would have taken as long.
    best_gap : float
        The smallest estimate of the gap.
    """

    def __init__(self, task: ConvexTask) -> None:
        self._task = task
        self._operator = task.operator
        self._best_gaps = [np.inf]
        self.spent = 0.0

    def note(self, iterate: Iterate) -> None:
        """Count the steps up to an iterate."""
        operator = self._task.operator
        if operator is not self._operator:
            self._operator, self.spent = operator, 0.0
        n_steps = iterate.n_iter - (len(self._best_gaps) - 1)
        if n_steps <= 0:
            return
        size, n_samples, width = iterate.n_active, operator.n_samples, operator.n_columns
        if width is None:
            work = self._work_of_system(size) + reading(n_samples)
        else:
            work = size * width * min(size, width) + _READING * n_samples * width
        self.spent += (_PER_STEP + work) * n_steps
        self._best_gaps += [min(self._best_gaps[-1], iterate.gap)] * n_steps

    def _work_of_system(self, size: int) -> float:
        """Of a Newton system, factorised or solved by products that read a triangle."""
        work = float(size) ** 3 / 3.0
        memory = self._task.memory
        if memory.n_products == 0 or memory.factorises:
            return work
        return min(work, memory.n_products * reading(size) / 8.0)

    @property
    def best_gap(self) -> float:
        return self._best_gaps[-1]

    @property
    def pays(self) -> bool:
        """Whether the last third of the steps has brought the gap down."""
        n_steps = len(self._best_gaps) - 1
        return self.best_gap < _PROGRESS * self._best_gaps[2 * n_steps // 3]
