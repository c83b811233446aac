"""Steps of problems with some hundred samples, in one compiled loop.

With so few samples most of the time of a Newton step goes into the calls between its parts. One
compiled function has none of them, and takes seconds to compile, once per installation: too much
for a single fit, little for hundreds. It is compiled for fits that come in series, as along a path
or in a search, or from a known solution, and when single fits have taken as long together as would
have paid for a part of it. Once it is there, every fit that it suits uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import is_compiled
from owasvm.losses import RankedHinge
from owasvm.losses.parts import RankTable
from owasvm.samples import Vector
from owasvm.samples.kernel_operators import GramOperator
from owasvm.solvers.newton import _compiled_steps as compiled
from owasvm.solvers.newton._loops import list_active
from owasvm.solvers.newton.active import Partition, make_active_set
from owasvm.solvers.newton.core import ConvexTask, Iterate, class_means, is_first

FloatArray = NDArray[np.float64]

__all__ = ["LARGE_SYSTEM", "Look", "Series"]

# At 320, 620 and 900 samples a search takes 0.77, 0.89 and 0.9 of the time, single fits of 1,000
# and 1,100 samples take 0.9, of 2,500 samples 0.9, and half of it where rows are most of a step.
_MOST_SAMPLES = 5000
#: Newton systems from this size on are left to the operator, which has other ways to solve them
#: (nine paths of 600 to 900 samples with 60, 100, 150, 200, 400: 109, 104, 97, 101, 95 ms; a
#: search of 320 samples: 2.16, 2.15, 2.13, 2.12 s, and 2.25 s with 300).
LARGE_SYSTEM = 200
# Steps until somebody looks, at the clock for one.
_PACE = 16
# Seconds that single fits of a process spend without the loop before it is compiled for them.
_WORTH_COMPILING = 2.0


class Look(NamedTuple):
    """What is worth a look.

    Parameters
    ----------
    below : float
        An estimated relative gap.
    at : int or None, default=None
        A step, if there is one.
    whole_below : float, default=-inf
        A relative gap that the whole of a step may prove.
    """

    below: float
    at: int | None = None
    whole_below: float = -math.inf


class _Demand:
    """How long fits have gone without the loop."""

    seconds = 0.0


class Series:
    """A task with a kernel matrix, the hinge and costs by rank, as the compiled loop has it.

    Parameters
    ----------
    task : ConvexTask
        The task.
    operator : GramOperator
        Its data.
    losses : RankTable
        Its loss.
    """

    def __init__(self, task: ConvexTask, operator: GramOperator, losses: RankTable) -> None:
        size = task.y.size
        self._task = task
        self._operator = operator
        self._losses = losses
        self._vectors = np.zeros((compiled.N_VECTORS, size))
        self._numbers = np.zeros(compiled.N_NUMBERS)
        self._stage = np.zeros(compiled.N_STAGES, dtype=np.int64)
        self._blocks = np.empty((2, size), dtype=np.int32)
        self._shrink = np.ones(size + 1)
        self._rows = np.empty(size, dtype=np.int64)

    @classmethod
    def of(cls, task: ConvexTask) -> Series | None:
        """The task as the compiled loop has it; None where it is not for that loop."""
        operator, loss = task.operator, task.loss
        losses = loss.table if isinstance(loss, RankedHinge) else None
        # A kind of kernel operator of its own may solve its systems in another way.
        if losses is None or type(operator) is not GramOperator:
            return None
        is_plain = task.linear is None and task.fixed_intercept is None and task.margin.size == 1
        if not is_plain or operator.n_samples > _MOST_SAMPLES:
            return None
        return cls(task, operator, losses)

    @staticmethod
    def is_at_hand() -> bool:
        """Whether the loop is compiled, or single fits have shown that it is worth it."""
        return is_compiled(compiled.run_steps) or _Demand.seconds >= _WORTH_COMPILING

    @staticmethod
    def was_missing(seconds: float) -> None:
        """Take note of a fit that took so long without the loop."""
        _Demand.seconds += seconds

    def iterates(
        self,
        start: Iterate,
        next_look: Callable[[], Look],
        max_iter: int,
        *,
        is_watched: bool,
    ) -> Iterator[Iterate]:
        """As :func:`owasvm.solvers.newton.core.iterates`, but less often: also at large systems.

        Parameters
        ----------
        start : Iterate
            Where to begin.
        next_look : callable
            What is worth a look, at present.
        max_iter : int
            A step at which to look in any case.
        is_watched : bool
            Yield every iterate.
        """
        vectors, numbers, stage = self._vectors, self._numbers, self._stage
        vectors[compiled.COEF], vectors[compiled.SCORES] = start.w.coef, start.w.scores
        vectors[compiled.MULTIPLIER] = start.dual
        numbers[compiled.INTERCEPT], numbers[compiled.PENALTY] = start.intercept, start.penalty
        numbers[compiled.N_ITER], numbers[compiled.KNOWN_AT] = start.n_iter, -1.0
        numbers[compiled.LAST_GAP] = np.inf
        stage[compiled.STAGE], stage[compiled.N_KEPT] = compiled.BEGIN, -1
        iterate = replace(
            start,
            w=Vector(vectors[compiled.COEF], vectors[compiled.SCORES]),
            dual=vectors[compiled.DUAL],
            slack=vectors[compiled.SLACK],
        )
        pace = 0 if is_watched else _PACE
        first = is_first(start)
        last_step = 0 if first else min(iterate.n_iter + pace, max_iter)
        while True:
            look = next_look()
            self._run(look, last_step if look.at is None else min(last_step, look.at))
            iterate.intercept = float(numbers[compiled.INTERCEPT])
            iterate.penalty = float(numbers[compiled.PENALTY])
            iterate.objective = float(numbers[compiled.OBJECTIVE])
            iterate.gap = float(numbers[compiled.GAP])
            iterate.n_iter = int(numbers[compiled.N_ITER])
            iterate.n_active = int(numbers[compiled.N_ACTIVE])
            iterate.n_solved = int(numbers[compiled.N_SOLVED])
            iterate.n_read = float(numbers[compiled.N_READ])
            if stage[compiled.STAGE] == compiled.LOOK:
                yield iterate
                last_step = min(iterate.n_iter + pace, max_iter)
                if first:
                    first = False
                    # Behind this one the first step of the inner loop is still to come.
                    self._go_along(class_means(self._task), 0.0)
                    numbers[compiled.STEPS] = -1.0
            elif stage[compiled.STAGE] == compiled.WHOLE_STEP:
                yield self._describe_whole_step(iterate)
                stage[compiled.STAGE] = compiled.BEHIND_WHOLE_STEP
            else:
                if not is_watched:
                    # Others may know a better way to solve such systems.
                    yield iterate
                self._solve_large_system(iterate)

    def _describe_whole_step(self, iterate: Iterate) -> Iterate:
        """Where the loop stands before a line search, and what it has found out about its end."""
        vectors, numbers = self._vectors, self._numbers
        whole = iterate.w.copy()
        whole.move(1.0, Vector(vectors[compiled.DIRECTION], vectors[compiled.DIRECTION_SCORES]))
        return replace(
            iterate,
            w=whole,
            intercept=iterate.intercept + float(numbers[compiled.INTERCEPT_STEP]),
            dual=vectors[compiled.TRIAL].copy(),
            slack=vectors[compiled.VALUES].copy(),
            objective=float(numbers[compiled.WHOLE_OBJECTIVE]),
            gap=float(numbers[compiled.WHOLE_GAP]),
            n_iter=iterate.n_iter + 1,
            is_whole_step=True,
        )

    def _run(self, look: Look, last_step: int) -> None:
        """Let the loop go on."""
        task, tuning = self._task, self._task.tuning
        rules = (
            tuning.inner_share,
            tuning.solved_share,
            tuning.slope_share,
            tuning.still_falling,
            tuning.fast_round,
            tuning.shrink,
            tuning.last_share,
            tuning.patience,
            tuning.late_growth,
        )
        compiled.run_steps(
            self._operator.gram,
            self._operator.means,
            task.y,
            self._losses,
            task.margin,
            LARGE_SYSTEM,
            rules,
            tuning.growths,
            (task.first_penalty, task.max_penalty),
            tuning.max_inner_steps,
            look.below,
            look.whole_below,
            last_step,
            self._rows,
            self._blocks[0],
            self._blocks[1],
            self._shrink,
            self._vectors,
            self._numbers,
            self._stage,
        )

    def _solve_large_system(self, iterate: Iterate) -> None:
        """Write the Newton step, by way of the operator."""
        task, vectors, stage = self._task, self._vectors, self._stage
        is_kept = stage[compiled.N_KEPT] >= 0
        n_blocks = int(stage[compiled.N_KEPT if is_kept else compiled.N_BLOCKS])
        active = list_active(self._blocks[int(is_kept)], n_blocks, task.y, self._losses.mass)
        imbalance = float(self._numbers[compiled.IMBALANCE])
        # Of a product one triangle is read.
        self._numbers[compiled.N_READ] += min(active[0].size, 0.5 * self._operator.n_samples)
        step, intercept = self._operator.newton_step(
            Vector(vectors[compiled.RESIDUAL], vectors[compiled.RESIDUAL_SCORES]),
            make_active_set(task, iterate, Partition(*active, self._shrink), imbalance),
        )
        self._go_along(step, intercept)

    def _go_along(self, step: Vector, intercept: float) -> None:
        """Let the loop go on with a line search along a given step."""
        vectors = self._vectors
        vectors[compiled.DIRECTION], vectors[compiled.DIRECTION_SCORES] = step.coef, step.scores
        self._numbers[compiled.INTERCEPT_STEP] = intercept
        self._stage[compiled.STAGE] = compiled.BEHIND_SYSTEM
