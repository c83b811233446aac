"""Ranked losses: what the deviations of all samples cost together.

A ranked loss is a class that takes costs (:mod:`owasvm.costs`) and has the methods of
:class:`RankedLoss`. :data:`LOSSES` lists them by the names that the estimators take.
"""

from owasvm.losses.base import ProximalLoss, ProxPoint, RankedLoss
from owasvm.losses.hinge import GroupedLoss, OffsetHinge, RankedHinge
from owasvm.losses.squared_hinge import RankedSquaredHinge

__all__ = [
    "LOSSES",
    "GroupedLoss",
    "OffsetHinge",
    "ProxPoint",
    "ProximalLoss",
    "RankedHinge",
    "RankedLoss",
    "RankedSquaredHinge",
]

#: The losses by name.
LOSSES: dict[str, type[RankedLoss]] = {
    "hinge": RankedHinge,
    "squared_hinge": RankedSquaredHinge,
}
