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
from owasvm.samples import Operator
from owasvm.solution import Status
from owasvm.solvers._clock import Clock
from owasvm.solvers._interrupts import note_interrupt
from owasvm.solvers.dca import Candidate, descended, report

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


@dataclass(frozen=True)
class _Frontier:
    """Open nodes, in a heap, and the least bound of all that are closed."""

    opened: list[tuple[float, int, Any]]
    closed: float

    @property
    def bound(self) -> float:
        """What all nodes prove together."""
        return min(self.opened[0][0], self.closed) if self.opened else self.closed


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
    max_nodes : int, default=1000
        Nodes at most.
    """

    def __init__(
        self,
        problem: OWAProblem,
        operator: Operator,
        incumbent: Candidate,
        clock: Clock,
        max_nodes: int = 1000,
    ) -> None:
        self.max_nodes = max_nodes
        self.incumbent = incumbent
        self.n_nodes = 0
        self.floor = 0.0
        self._begun = False
        self._problem = problem
        self._operator = operator
        self.clock = clock
        self._frontier = _Frontier([], np.inf)
        self._ticket = itertools.count()

    @property
    def target(self) -> float:
        """Bound at which a node needs no more attention."""
        upper = self.incumbent.objective
        return upper - _GAP_SHARE * self.clock.settings.mip_gap * max(1.0, abs(upper))

    @property
    def bound(self) -> float:
        """What all nodes, open and closed, prove together, or what is known otherwise."""
        if not self._begun:
            return self.floor
        proven = max(self._frontier.bound, self.floor)
        return min(proven, self.incumbent.objective)

    def propose(self, candidate: Candidate) -> None:
        """Take a classifier for incumbent, after descent, if it is better."""
        upper = self.incumbent.objective
        if candidate.objective < upper - _WORTH_A_DESCENT * max(1.0, abs(upper)):
            self.incumbent = descended(self._problem, self._operator, candidate, self.clock)
            logger.debug("incumbent %.10g at node %d", self.incumbent.objective, self.n_nodes)

    def _replace_first(self, parts: Sequence[Node]) -> None:
        """Put the parts of the first open node in its place.

        In one assignment: an interruption must lose neither the node nor its parts, or what is
        left would prove too much.
        """
        opened = self._frontier.opened.copy()
        heapq.heappop(opened)
        self._frontier = self._extended(opened, parts)

    def _extended(self, opened: list[tuple[float, int, Any]], nodes: Sequence[Node]) -> _Frontier:
        """The frontier with some nodes more; takes hold of `opened`."""
        closed = self._frontier.closed
        for node in nodes:
            if node.settled or node.bound >= self.target:
                closed = min(closed, node.bound)
            else:
                heapq.heappush(opened, (node.bound, next(self._ticket), node))
        return _Frontier(opened, closed)

    def search(
        self,
        root: NodeT,
        branching: Branching[NodeT],
        floor: float,
        max_nodes: int | None = None,
    ) -> Status:
        """Split nodes, the worst bound first, until the gap is closed or a limit is met.

        `floor` is a lower bound known otherwise. `max_nodes` limits this search beside
        the limit of the tree; :meth:`resume` goes on with it.
        """
        self.floor = max(self.floor, floor)
        self._frontier = self._extended(self._frontier.opened.copy(), [root])
        self._begun = True
        return self.resume(branching, max_nodes)

    def resume(self, branching: Branching[NodeT], max_nodes: int | None = None) -> Status:
        """Go on with the nodes that are open."""
        settings = self.clock.settings
        most = self.max_nodes if max_nodes is None else min(max_nodes, self.max_nodes)
        try:
            while self._frontier.opened:
                node = self._frontier.opened[0][2]
                if node.bound >= self.target:
                    # The incumbent has improved since the node was opened.
                    self._replace_first([node])
                    continue
                if self.n_nodes >= most:
                    return Status.NODE_LIMIT
                if self.clock.expired:
                    return self.clock.reason
                parts = branching.expand(node, self)
                self._replace_first(parts)
                upper = self.incumbent.objective
                if not report(settings, self.n_nodes, upper, self.bound, self.clock):
                    return Status.INTERRUPTED
        except (KeyboardInterrupt, SystemError) as error:
            note_interrupt(error)
            return Status.INTERRUPTED
        return Status.OPTIMAL if self.bound >= self.target else Status.NODE_LIMIT
