"""Ranked losses: what the deviations of all samples cost together.

A ranked loss is a class that takes costs (:mod:`owasvm.costs`) and has the methods of
:class:`RankedLoss`. :data:`LOSSES` lists them by the names that the estimators take.
"""

from owasvm.costs import Costs
from owasvm.grouping import GroupedCosts
from owasvm.losses.base import ProximalLoss, ProxPoint, RankedLoss, find_slack
from owasvm.losses.grouped import GroupedLoss, GroupedRankedLoss
from owasvm.losses.hinge import OffsetHinge, RankedHinge
from owasvm.losses.squared_hinge import RankedSquaredHinge

__all__ = [
    "LOSSES",
    "GroupedLoss",
    "GroupedRankedLoss",
    "OffsetHinge",
    "ProxPoint",
    "ProximalLoss",
    "RankedHinge",
    "RankedLoss",
    "RankedSquaredHinge",
    "find_slack",
    "make_loss",
]

#: The losses by name.
LOSSES: dict[str, type[RankedLoss]] = {
    "hinge": RankedHinge,
    "squared_hinge": RankedSquaredHinge,
}


def make_loss(name: str, costs: Costs) -> RankedLoss:
    """The loss of this name bound to costs; a sum over the groups of those that have groups."""
    kind = LOSSES[name]
    return GroupedRankedLoss(kind, costs) if isinstance(costs, GroupedCosts) else kind(costs)
