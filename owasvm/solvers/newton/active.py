"""The samples that a Newton step can move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from owasvm.losses import ProxPoint
from owasvm.samples import ActiveSet
from owasvm.solvers.newton._loops import list_active

if TYPE_CHECKING:
    from owasvm.solvers.newton.core import ConvexTask, Iterate

__all__ = ["NO_MASS", "make_active_set"]

#: In compiled loops, masses that are all 1.
NO_MASS = np.empty(0)


def make_active_set(
    task: ConvexTask, iterate: Iterate, point: ProxPoint, imbalance: float
) -> ActiveSet:
    """The active samples at a point, and what a step from the iterate is after."""
    mass = task.loss.mass
    samples, offsets, root, tie = list_active(
        point.block, point.n_blocks, task.y, NO_MASS if mass is None else mass
    )
    tuning = task.tuning
    relative_gap = iterate.gap / max(abs(iterate.objective), 1e-300)
    return ActiveSet(
        samples=samples,
        offsets=offsets,
        shrink=point.shrink,
        root=root,
        tie=tie,
        ridge=1.0 / iterate.penalty,
        imbalance=imbalance,
        free=task.fixed_intercept is None,
        accuracy=min(max(relative_gap, tuning.tightest_system), tuning.loosest_system),
        memory=task.memory,
    )
