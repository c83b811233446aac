"""Branching on the coordinates of a classifier: the intercept and leading principal directions.

A box is bounded at its middle. What it lacks is due to the width of the box, which splitting
cures, or to too little curvature. Then one more direction becomes a coordinate, which leaves more
curvature in the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from owasvm.solvers.general.candidates import Candidate, evaluate
from owasvm.solvers.general.choice import Choice
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.geometry import Frame, intercept_range, safe_ball, slack_ranges
from owasvm.solvers.general.relaxation import Box, Point, Relaxer
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Node

FloatArray = NDArray[np.float64]

# Slacks may be off by rounding.
_ROUNDING = 1e-9


@dataclass
class BoxNode(Node):
    """A box, its bound, and where its relaxation starts."""

    box: Box
    start: Point


class CoordinateBranching:
    """Splits boxes of coordinates, within the ball around the best minorant of the search."""

    def __init__(self, search: Search, choice: Choice) -> None:
        self.search = search
        self.choice = choice
        self._tuning = tuning = search.tuning.coordinates
        few = search.problem.n_samples <= search.tuning.few_samples
        self._n_rounds = tuning.n_rounds_few if few else tuning.n_rounds
        best = search.minorants.best.solution
        self._ball = ball = safe_ball(search.problem, best, search.incumbent.objective)
        self._centre = choice.data.coordinates(ball.coef, 0.0, choice.data.n_directions)[1:]
        self._relaxers: dict[int, Relaxer] = {}
        self._responses: dict[int, FloatArray] = {}

    def make_root(self) -> BoxNode:
        """All intercepts worth a look, and no direction."""
        problem, best, data = self.search.problem, self.search.incumbent, self.choice.data
        low, high = (np.array([end]) for end in intercept_range(problem, data, best.objective))
        box = Box(low, high, *slack_ranges(problem, data, best.objective))
        at = data.coordinates(best.coef, best.intercept, 0)
        return BoxNode(0.0, box, self._relaxer(0).start(best.coef, at))

    def _relaxer(self, n_directions: int) -> Relaxer:
        """The relaxations with a number of directions among the coordinates."""
        if n_directions not in self._relaxers:
            useful = self.search.tuning.relaxation.useful_curvature
            frame = Frame(self.choice.data, n_directions, useful)
            self._relaxers[n_directions] = Relaxer(self.search, frame, self.choice.split)
            centre = frame.operator.vector(frame.y * self._ball.coef)
            self._responses[n_directions] = frame.y * centre.scores
        return self._relaxers[n_directions]

    def classifier(self, node: BoxNode) -> Candidate:
        """The relaxed solution of a node as a classifier."""
        frame = self._relaxer(node.start.coordinates.size - 1).frame
        found = frame.classifier(node.start.coef, node.start.coordinates)
        return evaluate(self.search.problem, *found)

    def _deepen(self, node: BoxNode) -> BoxNode:
        """The same box with one more direction among the coordinates."""
        index = node.box.low.size - 1
        centre, radius = self._centre[index], self._ball.radius
        low = np.append(node.box.low, centre - radius)
        high = np.append(node.box.high, centre + radius)
        relaxer = self._relaxer(index + 1)
        along = float(relaxer.frame.columns[:, -1] @ (relaxer.frame.y * node.start.coef))
        start = relaxer.start(node.start.coef, np.append(node.start.coordinates, along))
        return replace(node, box=replace(node.box, low=low, high=high), start=start)

    def expand(self, node: BoxNode) -> Sequence[BoxNode]:
        """Bound a box; close it, split it, or take in one more coordinate."""
        search = self.search
        relaxer = self._relaxer(node.box.low.size - 1)
        frame = relaxer.frame
        half = 0.5 * (node.box.high - node.box.low)
        certain = 0.5 * np.maximum(frame.stiffness - frame.regularised, 0.0) * half**2
        if certain.sum() > self._tuning.hopeless * max(1.0, search.incumbent.objective):
            return self._halve(node, int(np.argmax(certain)))
        box = self._cut_to_ball(node.box)
        if np.any(box.lower > box.upper):
            # No w of the ball has these coordinates.
            return [replace(node, bound=max(node.bound, search.target))]
        found, point = relaxer.bound(box, node.start, search.target, self._n_rounds)
        if relaxer.objective(point) < search.incumbent.objective:
            classifier = frame.classifier(point.coef, point.coordinates)
            propose(search, evaluate(search.problem, *classifier))
        node = BoxNode(max(node.bound, found.value), found.box, point)
        lacking = search.target - node.bound
        if lacking <= 0.0:
            return [node]
        if self._is_worth_deepening(node, lacking, found.drops):
            return [self._deepen(node)]
        return self._halve(node, int(np.argmax(found.drops)))

    def _is_worth_deepening(self, node: BoxNode, lacking: float, drops: FloatArray) -> bool:
        """Whether one more coordinate promises more than one more cut.

        Emphases fitted for some directions prove little before these are coordinates, and a box
        about to be closed needs what cuts cannot give. Else the bound as a whole is to be lifted:
        a cut takes three quarters of a coordinate's drop away; one more coordinate takes its share
        of what is not due to the widths, after as many cuts as its range needs.
        """
        index = node.box.low.size - 1
        choice, tuning, search = self.choice, self._tuning, self.search
        room = search.incumbent.objective - search.target
        if index >= choice.data.n_directions:
            return False
        if index < choice.n_directions or lacking <= tuning.within_reach * room:
            return bool(drops.sum() < tuning.width_share * lacking)
        gain = (1.0 - choice.remains[min(index, len(choice.remains) - 1)]) * (
            lacking - float(drops.sum())
        )
        if gain <= 0.0:
            return False
        stiffness = self._relaxer(index + 1).frame.stiffness[-1] - 1.0
        narrow = np.sqrt(4.0 * gain / max(stiffness, 1e-3))
        n_cuts = max(np.log2(2.0 * self._ball.radius / narrow), 1.0)
        return bool(gain / n_cuts > 0.75 * drops.max())

    def _cut_to_ball(self, box: Box) -> Box:
        """The box with the slacks that its coordinates and the ball allow."""
        n_directions = box.low.size - 1
        frame = self._relaxer(n_directions).frame
        half = np.abs(frame.columns) @ (0.5 * (box.high - box.low))
        reach = half + self._ball.radius * frame.norms + _ROUNDING
        middle = 1.0 - frame.y * frame.offsets(box.middle) - self._responses[n_directions]
        return replace(
            box,
            lower=np.maximum(box.lower, middle - reach),
            upper=np.minimum(box.upper, middle + reach),
        )

    @staticmethod
    def _halve(node: BoxNode, index: int) -> list[BoxNode]:
        box = node.box
        low, high = box.low.copy(), box.high.copy()
        low[index] = high[index] = box.middle[index]
        return [
            replace(node, box=replace(box, high=high)),
            replace(node, box=replace(box, low=low)),
        ]
