r"""Groups of ranks: a staircase of few levels below the costs.

Costs that are averaged over groups of neighbouring ranks define a smaller dual set, so that a dual
point of the coarse problem is one of the fine problem, too. What is lost at a classifier with
sorted slacks u is the sum of the covariances of costs and slacks within the groups,

.. math:: \Phi(u) - \bar\Phi(u) = \sum_g \sum_{k \in g} (c_k - \bar c_g) (u_{(k)} - \bar u_g),

which falls with the square of the number of groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.grouping import parts_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.uint64]

__all__ = ["Staircase", "choose_groups"]

_FEWEST = 24
_FACTOR = 1.4
# Slacks that tie now need not tie in the end: their slope counts at least this share of the mean.
_LEAST_SLOPE = 0.05
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
        Ascending.
    loss : float
        What the averaging loses at the slacks the groups were chosen for.
    height : ndarray of shape (n_levels,)
        Where the levels lie among the slacks the groups were chosen for.
    spans : ndarray of shape (n_samples, 2)
        The first level that each sample meets, and the one behind its last: those of the samples
        it is ranked among.
    """

    jump: FloatArray
    reach: FloatArray
    loss: float
    height: FloatArray
    spans: IndexArray


def choose_groups(costs: Costs, slack: FloatArray, allowed: float, most: int) -> Staircase:
    """As few groups as lose no more than `allowed` at the slacks, but not very few, nor `most`."""
    spans = np.empty((slack.size, 2), dtype=np.uint64)
    jumps, reaches, heights, lost, n_levels = [], [], [], 0.0, 0
    for ranked, part in parts_of(costs):
        share = ranked.size / slack.size
        own_most = math.ceil(most * ranked.size / slack.size)
        jump, reach, height, loss = _choose_levels(part, slack[ranked], share * allowed, own_most)
        spans[ranked] = n_levels, n_levels + jump.size
        jumps.append(jump)
        reaches.append(reach)
        heights.append(height)
        lost += loss
        n_levels += jump.size
    return Staircase(
        np.concatenate(jumps), np.concatenate(reaches), lost, np.concatenate(heights), spans
    )


def _choose_levels(
    costs: Costs, slack: FloatArray, allowed: float, most: int
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Jumps, reaches and heights of samples that are ranked together, and what they lose."""
    order = np.argsort(-slack, kind="stable")
    mass = np.ones(slack.size) if costs.sample_weight is None else costs.sample_weight[order]
    price = costs.largest_first(order) / mass
    sorted_slack = np.maximum(slack[order], 0.0)
    position = _spread(price, sorted_slack)
    number = float(_FEWEST)
    while True:
        edges = _split(position, int(number))
        lost = _covariance(edges, mass, price, sorted_slack)
        if lost <= allowed or number >= most:
            break
        number = min(_FACTOR * number, float(most))
    totals = np.add.reduceat(mass, edges[:-1])
    means = np.add.reduceat(mass * price, edges[:-1]) / totals
    jump = means - np.append(means[1:], 0.0)
    kept = jump > 1e-14 * means[0]
    reach = np.cumsum(totals)[kept]
    middle = np.cumsum(mass) - 0.5 * mass
    return jump[kept], reach, np.interp(reach, middle, sorted_slack, right=0.0), lost


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


def _covariance(
    edges: IntArray, mass: FloatArray, price: FloatArray, sorted_slack: FloatArray
) -> float:
    starts = edges[:-1]
    totals = np.add.reduceat(mass, starts)
    paid = np.add.reduceat(mass * price, starts)
    slacks = np.add.reduceat(mass * sorted_slack, starts)
    return float(mass * price @ sorted_slack - np.sum(paid * slacks / totals))
