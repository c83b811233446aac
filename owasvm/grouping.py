r"""Whose deviations are ranked together: all of them, or those of each class or group apart.

.. math:: \Phi(u) = \sum_g \sum_k c^g_k\, \varphi(u_g)_{(k)},

with :math:`u_g` the slacks of group g and :math:`c^g` the costs of a group of its size. A sample's
rank, and so its cost, depends on its own group alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.costs import Costs, RankCosts
from owasvm.profiles import Profile
from owasvm.weights import Quantifier, is_family

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "RANKS",
    "GroupedCosts",
    "assign_costs",
    "charge_by_rank",
    "find_ignored",
    "parts_of",
    "refuse_two_rankings",
]

#: What deviations can be ranked among.
RANKS: tuple[str, ...] = ("all", "class")

# Values closer than this share of the largest one are equal up to rounding.
_TIE = 1e-8


class GroupedCosts:
    """Costs of groups of samples that are ranked apart.

    Parameters
    ----------
    parts : sequence of tuple (ndarray, Costs)
        The samples of each group, ascending, and their costs. Together every sample exactly once;
        sample weights in all groups or in none.
    C : float
        Factor of the loss.
    """

    def __init__(self, parts: Sequence[tuple[IntArray, Costs]], C: float) -> None:
        self.parts = tuple(parts)
        self.C = C
        self.n_samples = sum(index.size for index, _ in self.parts)
        self.convex = all(part.convex for _, part in self.parts)
        self.total = sum(part.total for _, part in self.parts)
        self.sample_weight: FloatArray | None = None
        self._group = np.empty(self.n_samples, dtype=np.int64)
        self._place = np.empty(self.n_samples, dtype=np.int64)
        for number, (index, part) in enumerate(self.parts):
            self._group[index] = number
            self._place[index] = np.arange(index.size)
            if part.sample_weight is not None:
                if self.sample_weight is None:
                    self.sample_weight = np.ones(self.n_samples)
                self.sample_weight[index] = part.sample_weight

    def by_rank(self) -> FloatArray:
        raise ValueError(
            "Deviations are ranked within groups, so there is not one cost per rank of all "
            "samples: ask the parts."
        )

    def in_order(self, order: IntArray) -> FloatArray:
        charged = np.empty(order.size)
        group = self._group[order]
        for number, (_, part) in enumerate(self.parts):
            own = group == number
            charged[own] = part.in_order(self._place[order[own]])
        return charged

    def largest_first(self, order: IntArray) -> FloatArray:
        charged = np.empty(order.size)
        group = self._group[order]
        for number, (_, part) in enumerate(self.parts):
            own = group == number
            charged[own] = part.largest_first(self._place[order[own]])
        return charged

    def largest_sum(self, number: int) -> float:
        return sum(part.largest_sum(min(number, index.size)) for index, part in self.parts)

    def excess(self, dual: FloatArray) -> float:
        return max(part.excess(dual[index]) for index, part in self.parts)

    def profile(self) -> Profile:
        raise ValueError(
            "Deviations are ranked within groups, so there is not one cost per rank of all "
            "samples: ask the parts."
        )

    def rising(self) -> Costs:
        return GroupedCosts([(index, part.rising()) for index, part in self.parts], self.C)

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        paid, got = np.empty(order.size), np.empty(order.size)
        group = self._group[order]
        for number, (_, part) in enumerate(self.parts):
            own = group == number
            paid[own], got[own] = part.falling_in_order(self._place[order[own]])
        return paid, got


def refuse_two_rankings(ranks: str, groups: object, name: str = "groups") -> None:
    """Refuse groups beside classes; `name` is how the caller calls the groups."""
    if ranks == "class" and groups is not None:
        raise ValueError(
            f"ranks='class' and {name} both say among whom deviations are ranked. Use ranks='all' "
            f"with {name}; for the classes within every group give each pair of group and class a "
            "label of its own."
        )


def assign_costs(
    y: FloatArray,
    weights: str | Quantifier | ArrayLike = "basic",
    alpha: float | None = 0.6,
    C: float = 1.0,
    sample_weight: FloatArray | None = None,
    *,
    ranks: str = "all",
    groups: NDArray[Any] | None = None,
) -> Costs:
    """``C * weights`` by the rank of the deviations among all samples, within classes or groups.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    weights, alpha, C, sample_weight
        See :func:`owasvm.costs.RankCosts`. Weights given as an array have no meaning within
        classes or groups, whose sizes differ.
    ranks : {"all", "class"}, default="all"
        ``"class"``: the deviations of each class are ranked apart, with the weights that the
        family has for the size of the class, of mean 1 within each.
    groups : ndarray of shape (n_samples,) or None, default=None
        Labels of groups that are ranked apart in the same way, instead of classes.

    Returns
    -------
    costs : Costs
        With ``ranks="class"`` or `groups` a :class:`GroupedCosts`, its parts in the order of the
        labels, first that of the class -1.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.grouping import assign_costs
    >>> y = np.array([-1.0, 1.0, -1.0, -1.0, -1.0, 1.0])
    >>> costs = assign_costs(y, "superquantile", 0.5, ranks="class")
    >>> [part.ascending.tolist() for _, part in costs.parts]
    [[0.0, 0.0, 2.0, 2.0], [0.0, 2.0]]
    """
    if ranks not in RANKS:
        raise ValueError(f"ranks must be one of {', '.join(map(repr, RANKS))}; got {ranks!r}.")
    if ranks == "all" and groups is None:
        return RankCosts(y.size, weights, alpha, C, sample_weight)
    refuse_two_rankings(ranks, groups)
    if not is_family(weights):
        apart, instead = (
            ("groups", "no groups") if ranks == "all" else (f"{ranks=}", "ranks='all'")
        )
        raise ValueError(
            f"{apart} cannot be combined with weights given as an array (here of length "
            f"{np.size(weights)}): every {'group' if ranks == 'all' else 'class'} needs weights "
            f"for its own size. Use a named family or a callable quantifier, or {instead}."
        )
    parts = []
    for index in _split_by_label(y if groups is None else groups):
        mass = None if sample_weight is None else sample_weight[index]
        parts.append((index, RankCosts(index.size, weights, alpha, C, mass)))
    return GroupedCosts(parts, float(C))


def _split_by_label(labels: NDArray[Any]) -> list[IntArray]:
    """Positions of each label, ascending; the labels in their order."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])


def parts_of(costs: Costs) -> Sequence[tuple[IntArray, Costs]]:
    """The groups of samples that are ranked apart, with their costs: one of all, or several."""
    if isinstance(costs, GroupedCosts):
        return costs.parts
    return [(np.arange(costs.n_samples), costs)]


def charge_by_rank(costs: Costs, values: FloatArray) -> FloatArray:
    """Hand the costs to the samples by the rank of their values.

    The k-th smallest value of all, or of its group, receives the k-th cost; samples of sample
    weight s occupy s ranks. Equal values (up to rounding) share the sum of their costs in
    proportion to their sample weights, so that neither the order of the rows nor a split into
    copies matters.

    Parameters
    ----------
    costs : Costs
        The costs.
    values : ndarray of shape (n_samples,)
        Finite numbers: deviations, or whatever else the samples are ranked by.

    Returns
    -------
    charged : ndarray of shape (n_samples,)
        The cost of each sample; they sum to ``costs.total``.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.costs import RankCosts
    >>> from owasvm.grouping import charge_by_rank
    >>> charge_by_rank(RankCosts(4, [0, 1, 3, 4], C=2.0), np.array([0.5, 0.1, 0.7, 0.5])).tolist()
    [2.0, 0.0, 4.0, 2.0]
    """
    if not isinstance(costs, GroupedCosts):
        return _share_ranks(costs, values)
    charged = np.empty(values.size)
    for group, part in parts_of(costs):
        charged[group] = _share_ranks(part, values[group])
    return charged


def _share_ranks(costs: Costs, values: FloatArray) -> FloatArray:
    order = np.argsort(values, kind="stable")
    in_order = costs.in_order(order)
    charged = np.empty(order.size)
    charged[order] = in_order
    follows = np.zeros(order.size + 1, dtype=bool)
    follows[1:-1] = np.diff(values[order]) <= _TIE * np.max(np.abs(values))
    # Those that tie with a neighbour, block by block.
    tied = np.flatnonzero(follows[:-1] | follows[1:])
    if tied.size == 0:
        return charged
    starts = np.flatnonzero(~follows[tied])
    members = order[tied]
    del order
    mass = costs.sample_weight
    amount = np.ones(tied.size) if mass is None else mass[members]
    per_unit = np.add.reduceat(in_order[tied], starts) / np.add.reduceat(amount, starts)
    sizes = np.diff(np.append(starts, tied.size))
    charged[members] = np.repeat(per_unit, sizes) * amount
    return charged


def find_ignored(costs: Costs, charged: FloatArray, values: FloatArray) -> IntArray:
    """Samples that costs ending in zeros ignore.

    Parameters
    ----------
    costs : Costs
        Among whom the samples were ranked.
    charged : ndarray of shape (n_samples,)
        The cost of each sample, see :func:`charge_by_rank`.
    values : ndarray of shape (n_samples,)
        What they were ranked by.

    Returns
    -------
    ignored : ndarray of shape (n_ignored,)
        Positions of the samples of cost 0 with larger values than all of their group that are
        charged, ascending.
    """
    ignored = np.zeros(values.size, dtype=bool)
    for group, _ in parts_of(costs):
        own, paid = values[group], charged[group]
        largest_charged = own[paid > 0.0].max(initial=-np.inf)
        ignored[group] = (paid == 0.0) & (own > largest_charged)
    return np.flatnonzero(ignored)
