"""All pairs of a level and a sample, and the steps they take.

A pair (g, i) has a dual share p in ``(0, cap)``, ``cap = jump[g] * mass[i]``, and two positive
distances ``above - below = u_i - t_g``. On the central path ``below * p`` and
``above * (cap - p)`` are both equal to the barrier parameter.

They are the same few lines twice: compiled loops here, whole arrays on a device, where a million
pairs take no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.interior import _pairs

if TYPE_CHECKING:
    from owasvm.samples.device import Place

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.uint64]
# Arrays of torch and of others on a device.
Array = Any

__all__ = ["ArrayPairs", "CompiledPairs", "PairStart", "Pairs"]


class PairStart(NamedTuple):
    """Where pairs begin: arrays of shape (n_levels, n_samples), and what their caps are made of.

    ``spans`` holds the samples that each level meets, first and behind the last.
    """

    share: FloatArray
    below: FloatArray
    above: FloatArray
    jump: FloatArray
    mass: FloatArray
    spans: IndexArray


class Pairs(Protocol):
    """Shares and distances, the products that are wanted of them, and a direction."""

    def weigh(self) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The gap; how shares follow ``u_i - t_g``, and its sums by sample and by level."""

    def aim(self, target: float, *, corrects: bool) -> tuple[FloatArray, FloatArray]:
        """Want both products at `target`; `corrects` takes the direction's second order off.

        Returns what shares change by with u and t still: sums by sample and by level.
        """

    def aim_centre(self, target: float, step: float) -> tuple[FloatArray, FloatArray]:
        """Want also what brings stray products after a step near the target; such sums again."""

    def expand(self, slack_step: FloatArray, level_step: FloatArray) -> tuple[float, float]:
        """Set the direction; 1 over the longest step it allows, and the second order of the gap.

        After a step of length s along the predictor the gap is ``(1 - s) gap + s^2 second``.
        """

    def exchange(self) -> None:
        """Put the direction aside, and take the one that was."""

    def find_shares(self) -> FloatArray:
        """Shares of the caps, from 0 to 1."""

    def move(self, step: float) -> tuple[FloatArray, FloatArray]:
        """Take the step; sums of the shares by sample and by level."""


class CompiledPairs:
    """Pairs in this machine's memory.

    Parameters
    ----------
    start : PairStart
        Overwritten.
    """

    def __init__(self, start: PairStart) -> None:
        self._values = start
        self._spans = start.spans
        self._blocking = np.empty(start.mass.size)
        shape = start.share.shape
        # Inverses, weights and offsets.
        self._how = (np.empty((2, *shape)), np.zeros(shape), np.empty(shape))
        self._wanted = (np.empty(shape), np.empty(shape))
        self._steps = (np.zeros(shape), np.zeros(shape), np.zeros(shape))
        self._aside = (np.empty(shape), np.empty(shape), np.empty(shape))

    def _sums(self) -> tuple[FloatArray, FloatArray]:
        return np.empty(self._values.mass.size), np.empty(self._values.jump.size)

    def weigh(self) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        by_sample, by_level = self._sums()
        inverses, weight, _ = self._how
        gap = _pairs.weigh(*self._values, inverses, weight, by_sample, by_level)
        return gap, weight, by_sample, by_level

    def aim(self, target: float, *, corrects: bool) -> tuple[FloatArray, FloatArray]:
        sums = self._sums()
        _pairs.aim(target, corrects, *self._values, *self._steps, *self._wanted, *self._how, *sums)
        return sums

    def aim_centre(self, target: float, step: float) -> tuple[FloatArray, FloatArray]:
        sums = self._sums()
        _pairs.aim_centre(
            target, step, *self._values, *self._steps, *self._wanted, *self._how, *sums
        )
        return sums

    def expand(self, slack_step: FloatArray, level_step: FloatArray) -> tuple[float, float]:
        below, above = self._values.below, self._values.above
        steps = slack_step, level_step
        found: tuple[float, float] = _pairs.expand(
            self._spans,
            *steps,
            *self._wanted,
            below,
            above,
            *self._how,
            *self._steps,
            self._blocking,
        )
        return found

    def exchange(self) -> None:
        self._steps, self._aside = self._aside, self._steps

    def find_shares(self) -> FloatArray:
        values = self._values
        return values.share / np.outer(values.jump, values.mass)

    def move(self, step: float) -> tuple[FloatArray, FloatArray]:
        sums = self._sums()
        values = self._values
        _pairs.move(
            step, self._spans, values.share, values.below, values.above, *self._steps, *sums
        )
        return sums


class ArrayPairs:
    """Pairs on a device, of samples that all meet all levels.

    Parameters
    ----------
    start : PairStart
        Where they begin.
    place : Place
        The device.
    """

    def __init__(self, start: PairStart, place: Place) -> None:
        self._place = place
        self._share = place.send(start.share)
        self._below = place.send(start.below)
        self._above = place.send(start.above)
        self._cap = place.send(start.jump)[:, None] * place.send(start.mass)[None, :]
        self._steps: tuple[Array, Array, Array] = (0.0, 0.0, 0.0)
        self._aside = self._steps

    def _sums(self, values: Array) -> tuple[FloatArray, FloatArray]:
        place, xp = self._place, self._place.xp
        return place.fetch(xp.sum(values, axis=0)), place.fetch(xp.sum(values, axis=1))

    def weigh(self) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        share, below, above = self._share, self._below, self._above
        self._rest = self._cap - share
        self._gaps = (below * share, above * self._rest)
        self._weight = 1.0 / (above / self._rest + below / share)
        gap = float(self._place.xp.sum(self._gaps[0] + self._gaps[1]))
        by_sample, by_level = self._sums(self._weight)
        return gap, self._place.fetch(self._weight), by_sample, by_level

    def aim(self, target: float, *, corrects: bool) -> tuple[FloatArray, FloatArray]:
        first, second = target - self._gaps[0], target - self._gaps[1]
        if corrects:
            share_step, below_step, above_step = self._steps
            first = first - below_step * share_step
            second = second + above_step * share_step
        self._wanted = (first, second)
        return self._gather()

    def _products(self, step: float) -> tuple[Array, Array]:
        share_step, below_step, above_step = self._steps
        change = step * share_step
        first = (self._below + step * below_step) * (self._share + change)
        return first, (self._above + step * above_step) * (self._rest - change)

    def aim_centre(self, target: float, step: float) -> tuple[FloatArray, FloatArray]:
        xp = self._place.xp
        lacking = []
        for product in self._products(step):
            near = xp.clip(product, 0.1 * target, 10.0 * target)
            lacking.append(xp.clip(near - product, min=-10.0 * target))
        self._wanted = (self._wanted[0] + lacking[0], self._wanted[1] + lacking[1])
        return self._gather()

    def _gather(self) -> tuple[FloatArray, FloatArray]:
        below, above = self._wanted
        self._offset = self._weight * (below / self._share - above / self._rest)
        return self._sums(self._offset)

    def expand(self, slack_step: FloatArray, level_step: FloatArray) -> tuple[float, float]:
        place, xp = self._place, self._place.xp
        apart = place.send(slack_step)[None, :] - place.send(level_step)[:, None]
        change = self._weight * apart + self._offset
        first = (self._wanted[0] - self._below * change) / self._share
        second = (self._wanted[1] + self._above * change) / self._rest
        self._steps = (change, first, second)
        quotients = (
            -change / self._share,
            change / self._rest,
            -first / self._below,
            -second / self._above,
        )
        blocking = max(0.0, *(float(xp.max(quotient)) for quotient in quotients))
        return blocking, float(xp.sum(change * (first - second)))

    def exchange(self) -> None:
        self._steps, self._aside = self._aside, self._steps

    def find_shares(self) -> FloatArray:
        return self._place.fetch(self._share / self._cap)

    def move(self, step: float) -> tuple[FloatArray, FloatArray]:
        share_step, below_step, above_step = self._steps
        self._share = self._share + step * share_step
        self._below = self._below + step * below_step
        self._above = self._above + step * above_step
        return self._sums(self._share)
