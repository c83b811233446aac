r"""Convex relaxation of a node, and the bound it proves.

A node holds intervals of the coordinates (:mod:`~owasvm.solvers.general.geometry`) and of
every slack. With the coordinates fixed the relaxation is

.. math:: \min_{w_\perp}\ \tfrac12 |w_\perp|^2 + \Phi_p(\xi) + \sum_i \tilde h_i(u_i),

where ``rho_i/2 u^2 + h~_i(u)`` is the convex envelope of ``rho_i/2 u^2 + h(u_+)`` on the interval
of ``u_i`` (:mod:`~owasvm.solvers.general.separable` has h, p and rho). It is convex although
``h~`` is not, so that linearising ``h~`` again and again leads to its minimum: each round is a
convex OWA-SVM with one more hinge per sample. The bound itself does not depend on how well that
is done.

The counts at which h touches are those of the relaxed solution: a sample in the middle of a
segment of the envelope counts as a mixture of both ends, and rounds are averaged. That makes round
after round better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.certificate import objective_of_slack
from owasvm.costs import costs_by_profile
from owasvm.losses import OffsetHinge, ProxPoint, RankedHinge
from owasvm.profiles import Profile
from owasvm.rounding import accumulated
from owasvm.samples import Memory
from owasvm.solvers import newton
from owasvm.solvers.general.convex import minimise, resume
from owasvm.solvers.general.geometry import Frame
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.separable import Layers, SampleProblems, make_layers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Costs as ``p + r``: `rising` is p, `tail` a convex function below the tail sums of r.

    With sample weights they are costs of a unit on slices of mass that end at `edges`.
    """

    rising: FloatArray
    tail: FloatArray
    edges: FloatArray | None = None

    @cached_property
    def profile(self) -> Profile:
        """The rising part."""
        edges = np.arange(self.tail.size, dtype=np.float64) if self.edges is None else self.edges
        return Profile(self.rising, edges)

    @property
    def total(self) -> float:
        """All costs together, or a little less."""
        return float(self.profile.sums[-1] + self.tail[-1])

    @property
    def has_ranks(self) -> bool:
        """Whether anything rises."""
        return bool(self.rising[-1] > 0.0)


@dataclass(frozen=True)
class Box:
    """What a node knows: intervals of the coordinates and of the slacks.

    Where slacks were cut off, objectives are at least ``ceiling``; no bound may claim more.
    """

    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    ceiling: float = np.inf

    @property
    def middle(self) -> FloatArray:
        """Where its relaxation is solved."""
        return 0.5 * (self.low + self.high)


@dataclass
class Point:
    """A relaxed solution: coefficients, slacks, and the state of the convex solver."""

    coef: FloatArray
    slack: FloatArray
    squared_norm: float
    coordinates: FloatArray
    iterate: newton.Iterate


@dataclass(frozen=True)
class BoxBound:
    """What a point proves about a box.

    ``value`` bounds the objective on the box. ``drops`` is what each coordinate loses to the width
    of its interval. ``spreads`` are the variances of the samples that the relaxation mixes.
    """

    value: float
    box: Box
    drops: FloatArray
    spreads: FloatArray = field(default_factory=lambda: np.zeros(0))


@njit(cache=True)
def _envelope(
    slack: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    curve: tuple[FloatArray, FloatArray, FloatArray],
    coarse: IntArray,
    curvatures: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slope of ``h~`` at every slack, and the segment of the envelope that holds it.

    `curve` is h: levels, slopes, heights. A segment of length 0 says that the envelope touches.
    """
    levels, slopes, heights = curve
    n_samples = slack.size
    result = np.empty(n_samples)
    left = np.empty(n_samples)
    right = np.empty(n_samples)
    points = np.empty(coarse.size + 3)
    values = np.empty(coarse.size + 3)
    hull = np.empty(coarse.size + 3, dtype=np.int64)
    for i in range(n_samples):
        rho = curvatures[i]
        u = max(slack[i], 0.0)
        high = max(min(upper[i], 4.0 * levels[-1] + 1.0), 0.0)
        low = min(max(lower[i], 0.0), high)
        u = min(max(u, low), high)
        size = 0
        for c in range(coarse.size + 2):
            if c == 0:
                at = low
            elif c <= coarse.size:
                at = levels[coarse[c - 1]]
            else:
                at = high
            if at < low or at > high or (size > 0 and at <= points[size - 1]):
                continue
            k = np.searchsorted(levels, at, side="right") - 1
            points[size] = at
            values[size] = 0.5 * rho * at * at + heights[k] + slopes[k] * (at - levels[k])
            size += 1
        corners = 0
        for c in range(size):
            while corners >= 2:
                a, b = hull[corners - 2], hull[corners - 1]
                if (values[b] - values[a]) * (points[c] - points[a]) < (values[c] - values[a]) * (
                    points[b] - points[a]
                ):
                    break
                corners -= 1
            hull[corners] = c
            corners += 1
        k = min(max(np.searchsorted(levels, u, side="left") - 1, 0), levels.size - 1)
        above = min(k + 1, levels.size - 1)
        at_level = levels[above] == u
        result[i] = 0.5 * (slopes[k] + slopes[above]) if at_level and u < high else slopes[k]
        left[i] = right[i] = u
        for c in range(corners - 1):
            a, b = hull[c], hull[c + 1]
            if points[a] <= u and (u < points[b] or c == corners - 2):
                if b > a + 1:
                    chord = (values[b] - values[a]) / (points[b] - points[a])
                    result[i] = chord - rho * u
                    left[i], right[i] = points[a], points[b]
                break
    return result, left, right


@njit(cache=True)
def _mixture_counts(
    slack: FloatArray,
    left: FloatArray,
    right: FloatArray,
    levels: FloatArray,
    mass: FloatArray,
) -> FloatArray:
    """Mass of deviations above each layer, samples inside a segment shared between its ends."""
    changes = np.zeros(levels.size + 1)
    for i in range(slack.size):
        if slack[i] <= 0.0 and right[i] <= 0.0:
            continue
        u = min(max(slack[i], left[i]), right[i])
        start = np.searchsorted(levels, left[i], side="left")
        stop = np.searchsorted(levels, right[i], side="left")
        changes[0] += mass[i]
        if right[i] > left[i]:
            share = (u - left[i]) / (right[i] - left[i])
            changes[start] -= mass[i] * (1.0 - share)
            changes[stop] -= mass[i] * share
        else:
            changes[stop] -= mass[i]
    counts = np.cumsum(changes[:-1])
    counts[-1] = 0.0
    return np.maximum(counts, 0.0)


def _average_counts(
    states: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    levels: FloatArray,
    mass: FloatArray,
    damping: float,
) -> FloatArray:
    """Counts of several rounds, the newest weighted most.

    Counts of the last round alone would swing between two extremes.
    """
    counts = _mixture_counts(*states[0], levels, mass)
    for state in states[1:]:
        counts += damping * (_mixture_counts(*state, levels, mass) - counts)
    return counts


class Relaxer:
    """Solves relaxations of boxes: samples in a `frame`, costs in a `split`."""

    def __init__(self, search: Search, frame: Frame, split: Split) -> None:
        self.frame = frame
        self.split = split
        self._search = search
        self._tuning = search.tuning.relaxation
        self._memory = Memory()
        self._mass = search.problem.costs.sample_weight
        self._masses = np.ones(frame.y.size) if self._mass is None else self._mass
        self._rising = costs_by_profile(self._mass, split.profile)
        self._ranked = RankedHinge(self._rising)
        self._mean_cost = split.total / frame.y.size

    def start(self, coef: FloatArray, coordinates: FloatArray) -> Point:
        """A point to start from: coefficients of the part of w outside the coordinates."""
        operator = self.frame.operator
        iterate = newton.Iterate(
            w=operator.vector(self.frame.y * coef),
            intercept=0.0,
            dual=coef.copy(),
            penalty=1.0 / max(operator.mean_diagonal(), 1e-300),
        )
        return self._point(coef, coordinates, iterate)

    def _point(self, coef: FloatArray, coordinates: FloatArray, iterate: newton.Iterate) -> Point:
        operator = self.frame.operator
        vector = operator.vector(self.frame.y * coef)
        slack = self._margin(coordinates) - self.frame.y * vector.scores
        squared_norm = max(operator.inner(vector, vector), 0.0)
        return Point(coef, slack, squared_norm, coordinates, iterate)

    def _margin(self, coordinates: FloatArray) -> FloatArray:
        """The margin that is left to the part of w outside the coordinates."""
        return 1.0 - self.frame.y * self.frame.offsets(coordinates)

    def objective(self, point: Point) -> float:
        """Objective of the classifier a point stands for."""
        stretch = float(self.frame.regularised @ point.coordinates**2)
        return objective_of_slack(self._search.problem, point.squared_norm + stretch, point.slack)

    def _levels(self, box: Box, slack: FloatArray) -> FloatArray:
        tuning = self._tuning
        positive = slack[slack > 0.0]
        top = float(positive.max(initial=0.5))
        reach = min(max(float(box.upper.max()), top), tuning.tail_reach * top + 1.0)
        parts = [np.zeros(1), positive, np.linspace(top, reach, tuning.n_tail + 1)]
        if slack.size <= self._search.tuning.few_samples:
            # So that samples that are separated are exact.
            parts += [box.lower[box.lower > 0.0], box.upper[box.upper > 0.0]]
        return np.unique(np.concatenate(parts))

    def _layers(self, box: Box, levels: FloatArray, counts: FloatArray) -> Layers:
        ends = np.append(levels[1:], np.inf)
        most = self._mass_above(box.upper, levels, "right")
        least = self._mass_above(box.lower, ends, "left")
        places = self.split.profile.edges
        slopes, constant = make_layers(self.split.tail, places, levels, counts, least, most)
        return Layers(levels, slopes, constant)

    def _mass_above(
        self, ends: FloatArray, levels: FloatArray, side: Literal["left", "right"]
    ) -> FloatArray:
        """Mass of the samples whose ends of intervals lie above levels."""
        if self._mass is None:
            return ends.size - np.searchsorted(np.sort(ends), levels, side=side).astype(np.float64)
        order = np.argsort(-ends, kind="stable")
        sums = np.concatenate(([0.0], np.cumsum(self._mass[order])))
        # Reversed, so that sums are those from the largest on.
        return sums[ends.size - np.searchsorted(ends[order][::-1], levels, side=side)]

    def bound(
        self, box: Box, start: Point, target: float, n_rounds: int
    ) -> tuple[BoxBound, Point]:
        """The best bound of a few rounds from a start; ends early once `target` is reached."""
        tuning = self._tuning
        best_point = point = self._move(start, box.middle)
        best = BoxBound(-np.inf, box, np.zeros(box.low.size))
        segments = (np.maximum(point.slack, 0.0),) * 2
        earlier = spreads = np.zeros(point.slack.size)
        states: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for _ in range(n_rounds):
            levels = self._levels(box, point.slack)
            states.append((point.slack, *segments))
            counts = _average_counts(states, levels, self._masses, tuning.damping)
            layers = self._layers(box, levels, counts)
            coarse = np.unique(np.linspace(0, levels.size - 1, tuning.n_coarse).astype(np.int64))
            curve = (levels, layers.slopes, layers.heights)
            rho = self.frame.rho if self._mass is None else self.frame.rho / self._mass
            slopes, left, right = _envelope(point.slack, box.lower, box.upper, curve, coarse, rho)
            slopes *= self._masses
            segments = (left, right)
            point = self._solve(point, slopes)
            inside = np.clip(point.slack, left, right)
            # Rounds tend to alternate between two states: the mean of both is what matters.
            earlier, spreads = spreads, (inside - left) * (right - inside)
            found = self._bound_at(box, point, slopes, layers, target)
            box = found.box
            if found.value > best.value:
                best, best_point = found, point
            if best.value >= target or self._search.clock.expired:
                break
        return replace(best, box=box, spreads=0.5 * (earlier + spreads)), best_point

    def _move(self, point: Point, coordinates: FloatArray) -> Point:
        change = self.frame.offsets(point.coordinates - coordinates)
        return replace(point, slack=point.slack + self.frame.y * change, coordinates=coordinates)

    def _solve(self, point: Point, slopes: FloatArray) -> Point:
        """Solve the convex problem with the envelopes linearised."""
        frame, search = self.frame, self._search
        # A falling hinge is not convex; where the sample violates, its line takes its place.
        falling = np.where(point.slack > 0.0, np.maximum(-slopes, 0.0), 0.0)
        task = newton.ConvexTask(
            frame.operator,
            frame.y,
            OffsetHinge(self._rising, np.maximum(slopes, 0.0)),
            self._margin(point.coordinates),
            falling if falling.any() else None,
            0.0,
            self._memory,
        )
        start = resume(search, task, point.iterate)
        iterate = minimise(search, task, start, search.accuracy)
        # Not the coefficients of w: those of violated samples must match their slopes exactly.
        return self._point(frame.y * task.target(iterate.dual), point.coordinates, iterate)

    def _bound_at(
        self, box: Box, point: Point, slopes: FloatArray, layers: Layers, target: float
    ) -> BoxBound:
        """The separable bound for a point, and the intervals it leaves."""
        frame = self.frame
        rising = np.zeros(frame.y.size)
        if self.split.has_ranks:
            # A negative slope acts on violated samples only, by its line.
            acting = np.where(point.slack > 0.0, slopes, np.maximum(slopes, 0.0))
            share = np.maximum(point.coef - acting, 0.0)
            projected = ProxPoint(share.size)
            self._ranked.project(share / self._masses, projected)
            rising = projected.dual / max(self._ranked.excess(projected.dual), 1.0)
        intervals = box.lower, box.upper
        problems = SampleProblems(
            point.coef, point.slack, frame.rho, rising, *intervals, layers, self._mass
        )
        minima, _ = problems.minimise()
        base = -0.5 * point.squared_norm + float(point.coef.sum()) + layers.constant
        pull = frame.columns.T @ (frame.y * point.coef)
        at = CoordinateTerms(pull, frame.regularised, frame.stiffness, point.coordinates)
        least = at.least(box.low, box.high)
        value = base + float(minima.sum()) + float(least.sum())
        value -= self._rounding(box, point, rising, layers, minima)
        drops = at.value(point.coordinates) - least
        room = target - value
        if 0.0 < room <= self._tuning.worth_tightening * self._mean_cost:
            lower, upper = problems.tighten(minima, room)
            if np.any(lower > upper):
                value = target
            else:
                ceiling = min(box.ceiling, target)
                box = replace(box, lower=lower, upper=upper, ceiling=ceiling)
        return BoxBound(min(value, box.ceiling), box, drops)

    def _rounding(
        self, box: Box, point: Point, rising: FloatArray, layers: Layers, minima: FloatArray
    ) -> float:
        """What rounding can have added to a bound.

        A slack that is off by t changes the problem of its sample by at most t times the largest
        slope in it; sums are off by their number of terms.
        """
        frame = self.frame
        reach = np.maximum(np.abs(box.low), np.abs(box.high))
        errors = frame.slack_errors(point.coef, reach)
        steepest = float(np.abs(layers.slopes).max(initial=0.0))
        slopes = np.abs(point.coef) + rising + steepest * self._masses
        pull = np.abs(frame.columns).T @ np.abs(point.coef)
        sizes = (
            0.5 * point.squared_norm
            + float(np.abs(point.coef).sum())
            + abs(layers.constant)
            + float(np.abs(minima).sum())
            + float(np.sum(pull * reach + 0.5 * (frame.regularised + frame.stiffness) * reach**2))
        )
        return float(slopes @ errors) + accumulated(4 * point.coef.size + 16) * sizes


@dataclass(frozen=True)
class CoordinateTerms:
    """What the coordinates contribute to the bound, each on its own.

    ``-pull t + regularised/2 t^2 - stiffness/2 (t - at)^2``.
    """

    pull: FloatArray
    regularised: FloatArray
    stiffness: FloatArray
    at: FloatArray

    def value(self, t: FloatArray) -> FloatArray:
        """The terms at given coordinates."""
        return (
            -self.pull * t
            + 0.5 * self.regularised * t**2
            - 0.5 * self.stiffness * (t - self.at) ** 2
        )

    def least(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Their minima over intervals; at an end unless a term is convex."""
        ends = np.minimum(self.value(low), self.value(high))
        curvature = self.regularised - self.stiffness
        bent = curvature > 0.0
        if not bent.any():
            return ends
        vertex = (self.pull - self.stiffness * self.at) / np.where(bent, curvature, 1.0)
        inside = np.where(bent, np.clip(vertex, low, high), low)
        return np.minimum(ends, self.value(inside))
