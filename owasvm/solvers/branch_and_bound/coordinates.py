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
from owasvm.solvers._clock import Clock
from owasvm.solvers.branch_and_bound.choice import Choice
from owasvm.solvers.branch_and_bound.geometry import Frame
from owasvm.solvers.branch_and_bound.ranges import Ball
from owasvm.solvers.branch_and_bound.relaxation import Box, Point, Relaxer
from owasvm.solvers.branch_and_bound.tree import Node, Tree
from owasvm.solvers.dca import evaluate

FloatArray = NDArray[np.float64]

# Rounds a box; few samples have strong kinks and cheap rounds.
_ROUNDS = 4
_ROUNDS_FEW_SAMPLES = 10
#: Up to here samples are few.
FEW_SAMPLES = 64
# Boxes are cut before directions are taken in while widths explain this share of what they lack.
_WIDTH_SHARE = 0.4
# A box is about to be closed when it lacks at most so many times the gap that is allowed.
_WITHIN_REACH = 10.0
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
    choice : Choice
        Its samples and costs.
    ball : Ball
        Holds every w worth finding.
    accuracy : float
        Relative accuracy of the convex problems.
    clock : Clock
        Limits.
    """

    def __init__(
        self,
        problem: OWAProblem,
        choice: Choice,
        ball: Ball,
        accuracy: float,
        clock: Clock,
    ) -> None:
        self._problem = problem
        self._clock = clock
        self._choice = choice
        few = problem.n_samples <= FEW_SAMPLES
        self._n_rounds = _ROUNDS_FEW_SAMPLES if few else _ROUNDS
        self._ball = ball
        self._accuracy = accuracy
        self._centre = choice.data.coordinates(ball.coef, 0.0, choice.data.n_directions)[1:]
        self._relaxers: dict[int, Relaxer] = {}
        self._responses: dict[int, FloatArray] = {}

    def relaxer(self, n_directions: int) -> Relaxer:
        """The relaxations with a number of directions among the coordinates."""
        if n_directions not in self._relaxers:
            frame = Frame(self._choice.data, n_directions)
            self._relaxers[n_directions] = Relaxer(
                frame, self._choice.split, self._accuracy, self._clock
            )
            centre = frame.operator.vector(frame.y * self._ball.coef)
            self._responses[n_directions] = frame.y * centre.scores
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
        proof, point = relaxer.rounds(box, node.start, tree.target, self._n_rounds)
        if relaxer.objective(self._problem, point) < tree.incumbent.objective:
            tree.propose(evaluate(self._problem, *frame.classifier(point.coef, point.coordinates)))
        node = BoxNode(max(node.bound, proof.value), proof.box, point)
        lacking = tree.target - node.bound
        if lacking <= 0.0:
            return [node]
        room = tree.incumbent.objective - tree.target
        if self._worth_deepening(node, lacking, room, proof.drops):
            return [self.deepened(node)]
        return self._halves(node, int(np.argmax(proof.drops)))

    def _worth_deepening(
        self, node: BoxNode, lacking: float, room: float, drops: FloatArray
    ) -> bool:
        """Whether one more coordinate promises more than one more cut.

        Emphases fitted for some directions prove little before these are coordinates, and a box
        about to be closed needs what cuts cannot give. Else the bound as a whole is to be lifted:
        a cut takes three quarters of a coordinate's drop away; one more coordinate takes its share
        of what is not due to the widths, after as many cuts as its range needs.
        """
        index = node.box.low.size - 1
        choice = self._choice
        if index >= choice.data.n_directions:
            return False
        if index < choice.n_directions or lacking <= _WITHIN_REACH * room:
            return bool(drops.sum() < _WIDTH_SHARE * lacking)
        gain = (1.0 - choice.remains[min(index, len(choice.remains) - 1)]) * (
            lacking - float(drops.sum())
        )
        if gain <= 0.0:
            return False
        stiffness = self.relaxer(index + 1).frame.stiffness[-1] - 1.0
        narrow = np.sqrt(4.0 * gain / max(stiffness, 1e-3))
        n_cuts = max(np.log2(2.0 * self._ball.radius / narrow), 1.0)
        return bool(gain / n_cuts > 0.75 * drops.max())

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
