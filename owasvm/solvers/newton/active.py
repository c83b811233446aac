"""The samples that a Newton step can move."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.losses import ProxPoint
from owasvm.samples import ActiveSet
from owasvm.solvers.newton._loops import list_active

if TYPE_CHECKING:
    from owasvm.solvers.newton.core import ConvexTask, Iterate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["NO_MASS", "Partition", "make_active_set", "split_samples"]

#: In compiled loops, masses that are all 1.
NO_MASS = np.empty(0)


class Partition(NamedTuple):
    """Which samples are active and which of them are tied, as :class:`ActiveSet` has them."""

    samples: IntArray
    offsets: IntArray
    root: FloatArray
    tie: FloatArray
    shrink: FloatArray


def split_samples(task: ConvexTask, point: ProxPoint) -> Partition:
    """The partition at a point; it shares `shrink` with it."""
    mass = NO_MASS if task.loss.mass is None else task.loss.mass
    return Partition(*list_active(point.block, point.n_blocks, task.y, mass), point.shrink)


def make_active_set(
    task: ConvexTask, iterate: Iterate, partition: Partition, imbalance: float
) -> ActiveSet:
    """The active samples, and what a step from the iterate is after."""
    tuning = task.tuning
    relative_gap = iterate.gap / max(abs(iterate.objective), 1e-300)
    return ActiveSet(
        **partition._asdict(),
        ridge=1.0 / iterate.penalty,
        imbalance=imbalance,
        free=task.fixed_intercept is None,
        accuracy=min(max(relative_gap, tuning.tightest_system), tuning.loosest_system),
        memory=task.memory,
    )
