r"""Groups of ranks: a staircase of few levels below the costs.

Costs that are averaged over groups of neighbouring ranks define a smaller dual set, so that a dual
point of the coarse problem is one of the fine problem, too. What is lost at a classifier with
sorted slacks u is the sum of the covariances of costs and slacks within the groups,

.. math:: \Phi(u) - \bar\Phi(u) = \sum_g \sum_{k \in g} (c_k - \bar c_g) (u_{(k)} - \bar u_g),

which falls with the square of the number of groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.grouping import parts_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Meeting", "Near", "Staircase", "choose_groups", "expect_levels"]

_FEWEST = 24
_FACTOR = 1.4
# Slacks that tie now need not tie in the end: their slope counts at least this share of the mean.
_LEAST_SLOPE = 0.05
# Sums of the same masses in another order are the same.
_HARDLY_LESS = 1.0 - 1e-9
# Shares of less than this are none.
_HARDLY = 1e-3
# Slopes are averaged over this share of the ranks.
_WINDOW = 0.02


@dataclass(frozen=True, eq=False)
class Staircase:
    """Levels of cost: ``jump[g]`` per unit of mass for the ``reach[g]`` units ranked highest.

    Parameters
    ----------
    jump : ndarray of shape (n_levels,)
        Positive.
    reach : ndarray of shape (n_levels,)
        Ascending among the levels of samples that are ranked together.
    loss : float
        What the averaging loses at the slacks the groups were chosen for.
    height : ndarray of shape (n_levels,)
        Where the levels lie among the slacks the groups were chosen for.
    parts : list of tuple (ndarray, int, int)
        Samples that are ranked together, the first of their levels, and the one behind the last.
    """

    jump: FloatArray
    reach: FloatArray
    loss: float
    height: FloatArray
    parts: list[tuple[IntArray, int, int]]

    def meet(self, kept: IntArray, slack: FloatArray, near: Near | None = None) -> Meeting:
        """The levels and some of the samples.

        Parameters
        ----------
        kept : ndarray
            The samples; the others lie below all levels.
        slack : ndarray of shape (n_samples,)
            Where all samples lie.
        near : Near or None, default=None
            Slacks that levels meet, all of them by default.
        """
        is_kept = np.zeros(slack.size, dtype=bool)
        is_kept[kept] = True
        spans = np.empty((self.jump.size, 2), dtype=np.int64)
        bounds = np.empty_like(spans)
        orders, begin = [], 0
        for ranked, first, last in self.parts:
            own = ranked[is_kept[ranked]]
            own = own[np.argsort(-slack[own], kind="stable")]
            bounds[first:last] = spans[first:last] = begin, begin + own.size
            if near is not None:
                high, low = near.high[first:last], near.low[first:last]
                spans[first:last, 0] = begin + np.searchsorted(-slack[own], -high, side="left")
                spans[first:last, 1] = begin + np.searchsorted(-slack[own], -low, side="right")
            orders.append(own)
            begin += own.size
        return Meeting(self, np.concatenate(orders), spans, bounds)

    def _find_upper(self, finer: Staircase) -> tuple[IntArray, IntArray]:
        """The first level that reaches as far as each of the finer ones, and the first of all."""
        upper = np.empty(finer.jump.size, dtype=np.int64)
        firsts = np.empty_like(upper)
        for (_, begin, end), (_, first, last) in zip(self.parts, finer.parts, strict=True):
            found = np.searchsorted(self.reach[begin:end], _HARDLY_LESS * finer.reach[first:last])
            upper[first:last] = begin + np.minimum(found, end - begin - 1)
            firsts[first:last] = begin
        return upper, firsts

    def find_near(self, finer: Staircase, within: float) -> Near:
        """Slacks that finer levels meet: those of their own group.

        Parameters
        ----------
        finer : Staircase
            Levels that these are some of.
        within : float
            What slacks may move by beyond that.
        """
        upper, _ = self._find_upper(finer)
        low, high = np.empty(upper.size), np.empty(upper.size)
        for (_, begin, end), (_, first, last) in zip(self.parts, finer.parts, strict=True):
            own = slice(first, last)
            height = np.interp(self.reach[begin:end], finer.reach[own], finer.height[own])
            padded = np.concatenate([[np.inf], height])
            padded[-1] = -np.inf
            high[own], low[own] = padded[upper[own] - begin], padded[upper[own] - begin + 1]
        return Near(low - within, high + within)

    def interpolate(self, finer: Staircase, shares: FloatArray) -> FloatArray:
        """Shares of finer levels with which every sample pays what it does.

        A sample that lies between two levels takes all ranks between them alike.

        Parameters
        ----------
        finer : Staircase
            Levels that these are some of.
        shares : ndarray of shape (n_levels, n_samples)
            How far samples lie above these levels, from 0 to 1.
        """
        upper, firsts = self._find_upper(finer)
        is_first = upper == firsts
        lower = np.where(is_first, upper, upper - 1)
        begin = np.where(is_first, 0.0, self.reach[lower])
        part = np.clip((finer.reach - begin) / (self.reach[upper] - begin), 0.0, 1.0)
        between = part[:, np.newaxis] * shares[upper]
        between += np.where(is_first, 0.0, 1.0 - part)[:, np.newaxis] * shares[lower]
        return between


class Near(NamedTuple):
    """Slacks that each level meets, from the lowest to the highest."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Meeting:
    """Which samples meet which levels.

    Parameters
    ----------
    stairs : Staircase
        The levels.
    order : ndarray
        The samples, those that are ranked together side by side, the largest slacks first.
    spans : ndarray of shape (n_levels, 2)
        The first place in `order` that each level meets, and the one behind the last. Samples of
        its own before that lie above the level, those behind it below, whatever happens.
    bounds : ndarray of shape (n_levels, 2)
        The same for all samples that the level is for.
    """

    stairs: Staircase
    order: IntArray
    spans: IntArray
    bounds: IntArray

    @property
    def n_pairs(self) -> int:
        """Of a sample and a level that it meets."""
        return int(np.sum(self.spans[:, 1] - self.spans[:, 0]))

    @property
    def is_whole(self) -> bool:
        """Whether all samples meet all levels."""
        return self.n_pairs == self.order.size * self.spans.shape[0]

    def whole(self) -> Meeting:
        """All pairs of samples and the levels they are ranked among."""
        return replace(self, spans=self.bounds)

    def widen(self, shares: FloatArray) -> Meeting:
        """Levels meet also samples that they share, as ties do however close they lie.

        Parameters
        ----------
        shares : ndarray of shape (n_levels, n_places)
            How far samples lie above all levels, from 0 to 1.
        """
        places = np.arange(self.order.size)
        begin, end = self.bounds[:, :1], self.bounds[:, 1:]
        own = (begin <= places) & (places < end)
        is_shared = own & (shares > _HARDLY) & (shares < 1.0 - _HARDLY)
        first = np.where(is_shared, places, places.size).min(axis=1, initial=places.size)
        last = np.where(is_shared, places + 1, 0).max(axis=1, initial=0)
        spans = np.column_stack(
            [np.minimum(self.spans[:, 0], first), np.maximum(self.spans[:, 1], last)]
        )
        return replace(self, spans=spans)

    def spread(self, shares: FloatArray, n_samples: int) -> FloatArray:
        """Shares of all pairs, of all samples in their own order.

        Parameters
        ----------
        shares : ndarray of shape (n_levels, n_places)
            How far samples lie above the levels they meet, from 0 to 1.
        n_samples : int
            Number of all samples.
        """
        places = np.arange(self.order.size)
        met = (self.spans[:, :1] <= places) & (places < self.spans[:, 1:])
        spread = np.zeros((self.spans.shape[0], n_samples))
        spread[:, self.order] = np.where(met, shares, self._find_above())
        return spread

    def settle(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of pairs that stay on their sides: by sample, and by level."""
        jump, is_above = self.stairs.jump, self._find_above()
        return mass * (jump @ is_above), jump * (is_above @ mass)

    def _find_above(self) -> NDArray[np.bool_]:
        """Pairs of a sample and a level that it does not meet, since it lies above."""
        places = np.arange(self.order.size)
        return (self.bounds[:, :1] <= places) & (places < self.spans[:, :1])


def choose_groups(
    costs: Costs,
    slack: FloatArray,
    allowed: float,
    most: int,
    coarser: Staircase | None = None,
) -> Staircase:
    """As few groups as lose no more than `allowed` at the slacks, but not very few, nor `most`.

    Parameters
    ----------
    costs : Costs
        The costs.
    slack : ndarray of shape (n_samples,)
        The slacks.
    allowed : float
        What may be lost.
    most : int
        Number of groups at most, about.
    coarser : Staircase or None, default=None
        Levels that are to be among those chosen.
    """
    parts, jumps, reaches, heights, lost, n_levels = [], [], [], [], 0.0, 0
    for number, (ranked, part) in enumerate(parts_of(costs)):
        share = ranked.size / slack.size
        own_most = math.ceil(most * ranked.size / slack.size)
        known = None
        if coarser is not None:
            _, first, last = coarser.parts[number]
            known = coarser.jump[first:last], coarser.reach[first:last]
        jump, reach, height, loss = _choose_levels(
            part, slack[ranked], share * allowed, own_most, known
        )
        parts.append((ranked, n_levels, n_levels + jump.size))
        jumps.append(jump)
        reaches.append(reach)
        heights.append(height)
        lost += loss
        n_levels += jump.size
    return Staircase(
        np.concatenate(jumps), np.concatenate(reaches), lost, np.concatenate(heights), parts
    )


def expect_levels(costs: Costs, slack: FloatArray, allowed: float) -> float:
    """About how many levels it takes to lose no more than `allowed` at the slacks."""
    lost = choose_groups(costs, slack, np.inf, slack.size).loss
    return _FEWEST * math.sqrt(max(lost / max(allowed, 1e-300), 1.0))


def _choose_levels(
    costs: Costs,
    slack: FloatArray,
    allowed: float,
    most: int,
    known: tuple[FloatArray, FloatArray] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Jumps, reaches and heights of samples that are ranked together, and what they lose."""
    order = np.argsort(-slack, kind="stable")
    mass = np.ones(slack.size) if costs.sample_weight is None else costs.sample_weight[order]
    paid = costs.largest_first(order)
    reached, totals = np.cumsum(mass), np.cumsum(paid)
    sorted_slack = np.maximum(slack[order], 0.0)
    position = _spread(paid / mass, sorted_slack)
    number = float(_FEWEST) if known is None else 1.0
    while True:
        ends = _split(position, int(number))[1:] - 1
        reach, total = reached[ends], totals[ends]
        if known is not None:
            # Which may be enough.
            reach, total = _add_known(reach, total, *known)
        charged = np.interp(reached, np.append(0.0, reach), np.append(0.0, total))
        lost = float((paid - np.diff(charged, prepend=0.0)) @ sorted_slack)
        if lost <= allowed or number >= most:
            break
        number = min(max(_FACTOR * number, float(_FEWEST)), float(most))
    means = np.diff(total, prepend=0.0) / np.diff(reach, prepend=0.0)
    jump = means - np.append(means[1:], 0.0)
    kept = jump > 1e-14 * means[0]
    middle = reached - 0.5 * mass
    height = np.interp(reach[kept], middle, sorted_slack, right=0.0)
    return jump[kept], reach[kept], height, lost


def _add_known(
    reach: FloatArray, total: FloatArray, known_jump: FloatArray, known_reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of groups and the costs up to there, with the ends of known groups among them.

    Those of known groups may lie within the mass of one sample: another one may take its rank.
    """
    known_total = np.minimum.outer(known_reach, known_reach) @ known_jump
    every = np.concatenate([reach, known_reach])
    order = np.argsort(every, kind="stable")
    every, totals = every[order], np.concatenate([total, known_total])[order]
    # Sums of the same masses in another order are the same; of two the end is kept.
    apart = np.append(every[:-1] < _HARDLY_LESS * every[1:], True)
    return every[apart], totals[apart]


def _spread(price: FloatArray, sorted_slack: FloatArray) -> FloatArray:
    """Where the ranks lie on a scale on which groups of equal length lose the least."""
    if price.size == 1:
        return np.zeros(1)
    falls = np.maximum(price[:-1] - price[1:], 0.0)
    width = max(int(_WINDOW * price.size), 1)
    padded = np.pad(sorted_slack, width, mode="edge")
    slope = (padded[: -2 * width] - padded[2 * width :])[:-1] / (2 * width)
    slope = np.maximum(slope, _LEAST_SLOPE * max(float(slope.mean()), 1e-300))
    # A group of m ranks loses about m^3 times the slopes of costs and slacks.
    scale = np.cumsum(np.cbrt(falls * slope))
    return np.concatenate([[0.0], scale])


def _split(position: FloatArray, number: int) -> IntArray:
    """First ranks of `number` groups of equal length, and the end."""
    length = position[-1]
    if number >= position.size:
        return np.arange(position.size + 1)
    if length <= 0.0:
        return np.array([0, position.size])
    group = np.minimum((position / length * number).astype(np.int64), number - 1)
    return np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [position.size]])
