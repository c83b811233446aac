"""How much work Newton steps have done, and whether it pays."""

from __future__ import annotations

import math

import numpy as np

from owasvm.solvers.newton.core import ConvexTask, Iterate

__all__ = ["PER_STEP", "Effort", "reading"]

# Multiplications of a factorisation that take as long as reading a number in two products, from
# memory and, the smaller the matrix, the more from the processor's own.
_READING = 13.0
_FROM_MEMORY = 3000
#: As what a step costs however few samples there are.
PER_STEP = 1.5e6


def reading(n_samples: int) -> float:
    """Multiplications of a factorisation that take as long as two products with the kernel."""
    return _READING * min(n_samples / _FROM_MEMORY, 1.0) * float(n_samples) ** 2


class Effort:
    """Counts the multiplications of Newton steps; what was done with other columns is forgotten.

    Parameters
    ----------
    task : ConvexTask
        What the steps are taken for.
    tol : float
        Relative gap to prove.

    Attributes
    ----------
    spent : float
        Multiplications of a factorisation that would have taken as long.
    """

    def __init__(self, task: ConvexTask, tol: float) -> None:
        self._task = task
        self._tol = tol
        self._operator = task.operator
        # After each step: the smallest estimate of the gap, and the work of all of them.
        self._best_gaps = [np.inf]
        self._totals = [0.0]
        self._counted = self._read = 0.0
        self._scale = 1.0
        self._n_looks = 0
        self.spent = 0.0
        # Steps, and the work of them, when another method had had its turn.
        self._mark: tuple[int, float] | None = None

    def mark(self, iterate: Iterate) -> None:
        """Count the pace anew from here, where another method has led."""
        self._best_gaps[-1] = min(self._best_gaps[-1], iterate.gap)
        self._mark = len(self._best_gaps) - 1, self._totals[-1]

    @property
    def is_marked(self) -> bool:
        """Whether another method has had its turn."""
        return self._mark is not None

    @property
    def since_mark(self) -> float:
        """Work since then, or all of it."""
        return self._totals[-1] - (0.0 if self._mark is None else self._mark[1])

    def note(self, iterate: Iterate) -> None:
        """Count the steps up to an iterate."""
        operator = self._task.operator
        if operator is not self._operator:
            self._operator, self.spent = operator, 0.0
        n_steps = iterate.n_iter - (len(self._best_gaps) - 1)
        if n_steps <= 0:
            return
        size, n_samples, width = iterate.n_solved, operator.n_samples, operator.n_columns
        counted, self._counted = self._counted, self._task.memory.work
        read = self._find_share(iterate, n_steps) * reading(n_samples)
        if width is not None:
            work = size * width * min(size, width) + _READING * n_samples * width
        elif self._counted > counted:
            work = read + (self._counted - counted) / n_steps
        else:
            work = read + float(size) ** 3 / 3.0
        self._n_looks += 1
        self.spent += (PER_STEP + work) * n_steps
        self._scale = max(1.0, abs(iterate.objective))
        before, gap = self._best_gaps[-1], min(self._best_gaps[-1], iterate.gap)
        # Gaps of steps that nobody has looked at are taken to lie between.
        fall = gap / before if 0.0 < gap and before < np.inf else 1.0
        for k in range(n_steps):
            self._best_gaps.append(gap / fall ** ((n_steps - 1 - k) / n_steps))
            self._totals.append(self._totals[-1] + PER_STEP + work)

    def _find_share(self, iterate: Iterate, n_steps: int) -> float:
        """What steps have read of a kernel, as a share of two products with it.

        Each of these reads a triangle. All of it where rows are not counted.
        """
        # Those who begin anew count from 0.
        before = self._read if iterate.n_read >= self._read else 0.0
        self._read = iterate.n_read
        if iterate.n_read == before:
            return 1.0
        return min((iterate.n_read - before) / (n_steps * iterate.w.coef.size), 1.0)

    @property
    def best_gap(self) -> float:
        """The smallest estimate of the gap."""
        return self._best_gaps[-1]

    @property
    def has_pace(self) -> bool:
        """Whether gaps were looked at after different numbers of steps."""
        return self._n_looks > 1

    @property
    def rest(self) -> float:
        """Work that is left at the pace of the last third of the steps; infinite without any."""
        first = 0 if self._mark is None else self._mark[0]
        then = (first + 2 * (len(self._best_gaps) - 1)) // 3
        before, gap = self._best_gaps[then], self.best_gap
        goal = self._tol * self._scale
        if not gap > goal:
            return 0.0
        if not gap < before < np.inf:
            return np.inf
        work = self._totals[-1] - self._totals[then]
        return work * math.log(gap / goal) / math.log(before / gap)
