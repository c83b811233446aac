"""Best-bound search: what to split is up to a branching rule."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from owasvm.solution import Status
from owasvm.solvers.general.search import Search


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

    def make_root(self) -> NodeT:
        """The node that holds every classifier worth finding."""

    def expand(self, node: NodeT) -> Sequence[NodeT]:
        """Parts that together hold all of a node that matters, with bounds no lower than its own.

        A single part, settled or with a bound that reaches the target, closes the node.
        """


@dataclass(frozen=True)
class _Frontier(Generic[NodeT]):
    """Open nodes, in a heap, and the least bound of all that are closed."""

    opened: list[tuple[float, int, NodeT]]
    closed: float

    @property
    def bound(self) -> float:
        """What all nodes prove together."""
        return min(self.opened[0][0], self.closed) if self.opened else self.closed


class Tree(Generic[NodeT]):
    """Proves, node by node, that nothing is better than the incumbent by more than the gap.

    Several trees may share a search: what one of them finds or proves, all know.
    """

    def __init__(self, search: Search, branching: Branching[NodeT]) -> None:
        self._search = search
        self._branching = branching
        self._ticket = itertools.count()
        self._frontier = self._extend([], np.inf, [branching.make_root()])

    @property
    def bound(self) -> float:
        """What its nodes, open and closed, prove together."""
        return self._frontier.bound

    @property
    def worst(self) -> NodeT | None:
        """The open node of the least bound; None where all are closed."""
        return self._frontier.opened[0][2] if self._frontier.opened else None

    def grow(self, max_nodes: int, n_nodes: int | None = None) -> Status | None:
        """Split nodes, the worst bound first.

        Parameters
        ----------
        max_nodes : int
            Nodes of the whole search at most.
        n_nodes : int or None, default=None
            Nodes of this turn at most; without it there is no other turn.

        Returns
        -------
        status : Status or None
            "optimal" if the gap is closed, or the limit that was met; None if the turn is over or
            nothing is left to split.
        """
        search = self._search
        search.stage = "node"
        last = max_nodes if n_nodes is None else min(max_nodes, search.n_iter + n_nodes)
        while self._frontier.opened and not search.is_proven:
            node = self._frontier.opened[0][2]
            if node.bound >= search.target:
                # The incumbent has improved since the node was opened.
                self._replace_first([node])
                continue
            if search.n_iter >= last:
                return Status.NODE_LIMIT if n_nodes is None else None
            if search.clock.expired:
                return search.clock.reason
            search.n_iter += 1
            self._replace_first(self._branching.expand(node))
            if not search.report():
                return Status.INTERRUPTED
        return Status.OPTIMAL if search.is_proven else None

    def _replace_first(self, parts: Sequence[NodeT]) -> None:
        """Put the parts of the first open node in its place.

        In one assignment: an interruption must lose neither the node nor its parts, or what is
        left would prove too much.
        """
        opened = self._frontier.opened.copy()
        heapq.heappop(opened)
        self._frontier = self._extend(opened, self._frontier.closed, parts)
        self._search.raise_floor(self._frontier.bound)

    def _extend(
        self, opened: list[tuple[float, int, NodeT]], closed: float, nodes: Sequence[NodeT]
    ) -> _Frontier[NodeT]:
        """A frontier with some nodes more; takes hold of `opened`."""
        for node in nodes:
            if node.settled or node.bound >= self._search.target:
                closed = min(closed, node.bound)
            else:
                heapq.heappush(opened, (node.bound, next(self._ticket), node))
        return _Frontier(opened, closed)
