"""Best-bound search: what to split is up to a branching rule."""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from owasvm.problem import OWAProblem
from owasvm.solution import Status
from owasvm.solvers._operators import Operator
from owasvm.solvers.dca import Candidate, Clock, descended, report

logger = logging.getLogger(__name__)

# Share of the gap that a proof may use up; the rest is for rounding.
_GAP_SHARE = 0.999
# A candidate must beat the incumbent by this much, relatively, to be worth a descent.
_WORTH_A_DESCENT = 1e-9


@dataclass
class Node:
    """A set of classifiers with a lower bound on their objectives.

    A settled node cannot be split any further.
    """

    bound: float
    settled: bool = field(default=False, kw_only=True)


NodeT = TypeVar("NodeT", bound=Node)


class Branching(Protocol[NodeT]):
    """How nodes are bounded and split."""

    def expand(self, node: NodeT, tree: Tree) -> Sequence[NodeT]:
        """Parts that together hold all of a node that matters, with bounds no lower than its own.

        A single part, settled or with a bound that reaches ``tree.target``, closes the node.
        """


class Tree:
    """Search for a proof that nothing is better than the incumbent by more than the gap.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    operator : Operator
        Its data, for descents to better incumbents.
    incumbent : Candidate
        The best classifier known.
    clock : Clock
        Limits.
    """

    def __init__(
        self, problem: OWAProblem, operator: Operator, incumbent: Candidate, clock: Clock
    ) -> None:
        self.incumbent = incumbent
        self.n_nodes = 0
        self.floor = 0.0
        self._begun = False
        self._problem = problem
        self._operator = operator
        self._clock = clock
        self._closed = np.inf
        self._open: list[tuple[float, int, Any]] = []
        self._ticket = itertools.count()

    @property
    def target(self) -> float:
        """Bound at which a node needs no more attention."""
        upper = self.incumbent.objective
        return upper - _GAP_SHARE * self._clock.settings.mip_gap * max(1.0, abs(upper))

    @property
    def bound(self) -> float:
        """What all nodes, open and closed, prove together, or what is known otherwise."""
        if not self._begun:
            return self.floor
        lowest = self._open[0][0] if self._open else np.inf
        return min(max(min(lowest, self._closed), self.floor), self.incumbent.objective)

    def propose(self, candidate: Candidate) -> None:
        """Take a classifier for incumbent, after descent, if it is better."""
        upper = self.incumbent.objective
        if candidate.objective < upper - _WORTH_A_DESCENT * max(1.0, abs(upper)):
            self.incumbent = descended(self._problem, self._operator, candidate, self._clock)
            logger.debug("incumbent %.10g at node %d", self.incumbent.objective, self.n_nodes)

    def _add(self, node: Node) -> None:
        if node.settled or node.bound >= self.target:
            self._closed = min(self._closed, node.bound)
        else:
            heapq.heappush(self._open, (node.bound, next(self._ticket), node))

    def search(
        self,
        root: NodeT,
        branching: Branching[NodeT],
        floor: float,
        max_nodes: int | None = None,
    ) -> Status:
        """Split nodes, the worst bound first, until the gap is closed or a limit is met.

        `floor` is a lower bound known otherwise. `max_nodes` limits this search beside
        ``max_iter``; :meth:`resume` goes on with it.
        """
        self.floor = max(self.floor, floor)
        self._add(root)
        self._begun = True
        return self.resume(branching, max_nodes)

    def resume(self, branching: Branching[NodeT], max_nodes: int | None = None) -> Status:
        """Go on with the nodes that are open."""
        settings = self._clock.settings
        most = settings.max_iter if max_nodes is None else min(max_nodes, settings.max_iter)
        try:
            while self._open:
                node = self._open[0][2]
                if node.bound >= self.target:
                    # The incumbent has improved since the node was opened.
                    self._add(heapq.heappop(self._open)[2])
                    continue
                if self.n_nodes >= most:
                    return Status.ITERATION_LIMIT
                if self._clock.expired:
                    return Status.TIME_LIMIT
                # The node stays open until its parts are there: an interruption must not lose it.
                parts = branching.expand(node, self)
                heapq.heappop(self._open)
                for part in parts:
                    self._add(part)
                upper = self.incumbent.objective
                if not report(settings, self.n_nodes, upper, self.bound, self._clock):
                    return Status.INTERRUPTED
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return Status.OPTIMAL if self.bound >= self.target else Status.ITERATION_LIMIT
