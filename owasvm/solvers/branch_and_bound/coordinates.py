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

from owasvm.problem import OWAProblem
from owasvm.solvers.branch_and_bound.geometry import CentredData, Frame
from owasvm.solvers.branch_and_bound.ranges import Ball
from owasvm.solvers.branch_and_bound.relaxation import Box, Point, Relaxer, Split
from owasvm.solvers.branch_and_bound.tree import Node, Tree
from owasvm.solvers.dca import evaluate

FloatArray = NDArray[np.float64]

_ROUNDS = 4
# Coordinates are split as long as their widths explain this share of what a box lacks.
_WIDTH_SHARE = 0.4
# Slacks may be off by rounding.
_ROUNDING = 1e-9
# Boxes that are certain to lack this share of the objective are split unseen.
_HOPELESS = 0.5


@dataclass
class BoxNode(Node):
    """A box, its bound, and where its relaxation starts."""

    box: Box
    start: Point


class CoordinateBranching:
    """Splits boxes of coordinates.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    data : CentredData
        Its samples.
    split : Split
        Its costs.
    ball : Ball
        Holds every w worth finding.
    accuracy : float
        Relative accuracy of the convex problems.
    """

    def __init__(
        self,
        problem: OWAProblem,
        data: CentredData,
        split: Split,
        ball: Ball,
        accuracy: float,
    ) -> None:
        self._problem = problem
        self._data = data
        self._split = split
        self._ball = ball
        self._accuracy = accuracy
        self._centre = data.coordinates(ball.coef, 0.0, data.n_directions)[1:]
        self._relaxers: dict[int, Relaxer] = {}
        self._responses: dict[int, FloatArray] = {}

    def relaxer(self, n_directions: int) -> Relaxer:
        """The relaxations with a number of directions among the coordinates."""
        if n_directions not in self._relaxers:
            frame = Frame(self._data, n_directions)
            self._relaxers[n_directions] = Relaxer(frame, self._split, self._accuracy)
            self._responses[n_directions] = frame.operator.vector(self._ball.coef.copy()).response
        return self._relaxers[n_directions]

    def deepened(self, node: BoxNode) -> BoxNode:
        """The same box with one more direction among the coordinates."""
        index = node.box.low.size - 1
        centre, radius = self._centre[index], self._ball.radius
        low = np.append(node.box.low, centre - radius)
        high = np.append(node.box.high, centre + radius)
        relaxer = self.relaxer(index + 1)
        at = np.append(node.start.coordinates, 0.0)
        scores = relaxer.frame.columns[:, -1]
        at[-1] = float(scores @ (relaxer.frame.y * node.start.coef))
        start = relaxer.start(node.start.coef, at)
        return BoxNode(node.bound, replace(node.box, low=low, high=high), start)

    def expand(self, node: BoxNode, tree: Tree) -> Sequence[BoxNode]:
        """Bound a box; close it, split it, or take in one more coordinate."""
        relaxer = self.relaxer(node.box.low.size - 1)
        frame = relaxer.frame
        half = 0.5 * (node.box.high - node.box.low)
        certain = 0.5 * np.maximum(frame.stiffness - frame.regularised, 0.0) * half**2
        if certain.sum() > _HOPELESS * max(1.0, tree.incumbent.objective):
            tree.n_nodes += 1
            return self._halves(node, int(np.argmax(certain)))
        tree.n_nodes += 1
        box = self._within_ball(node.box)
        if np.any(box.lower > box.upper):
            # No w of the ball has these coordinates.
            return [replace(node, bound=max(node.bound, tree.target))]
        proof, point = relaxer.rounds(box, node.start, tree.target, _ROUNDS)
        if relaxer.objective(self._problem, point) < tree.incumbent.objective:
            tree.propose(evaluate(self._problem, *frame.classifier(point.coef, point.coordinates)))
        node = BoxNode(max(node.bound, proof.value), proof.box, point)
        lacking = tree.target - node.bound
        if lacking <= 0.0:
            return [node]
        wide = proof.drops.sum() >= _WIDTH_SHARE * lacking
        if wide or frame.stiffness.size > self._data.n_directions:
            return self._halves(node, int(np.argmax(proof.drops)))
        return [self.deepened(node)]

    def _within_ball(self, box: Box) -> Box:
        """The box with the slacks that its coordinates and the ball allow."""
        n_directions = box.low.size - 1
        frame = self.relaxer(n_directions).frame
        half = np.abs(frame.columns) @ (0.5 * (box.high - box.low))
        reach = half + self._ball.radius * frame.norms + _ROUNDING
        middle = 1.0 - frame.y * frame.offsets(box.middle) - self._responses[n_directions]
        return replace(
            box,
            lower=np.maximum(box.lower, middle - reach),
            upper=np.minimum(box.upper, middle + reach),
        )

    @staticmethod
    def _halves(node: BoxNode, index: int) -> list[BoxNode]:
        box = node.box
        low, high = box.low.copy(), box.high.copy()
        low[index] = high[index] = box.middle[index]
        return [
            replace(node, box=replace(box, high=high)),
            replace(node, box=replace(box, low=low)),
        ]
