"""Trees of coordinates one after the other, each with a relaxation that suits better.

A relaxation is chosen before anything is known about where its bounds will be lowest. A tree that
has come near to all that its relaxation can prove knows one such place more. If another
relaxation, fitted there as well, can prove much more, a tree of it takes over.
"""

from __future__ import annotations

from collections.abc import Iterator

from owasvm.solvers.general.candidates import Candidate
from owasvm.solvers.general.choice import Choice, choose_relaxation
from owasvm.solvers.general.coordinates import BoxNode, CoordinateBranching
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tree import Tree


def relay_trees(search: Search) -> Iterator[tuple[Tree[BoxNode], int | None]]:
    """Trees, and how many nodes each may take before other relaxations are thought of."""
    places: list[Candidate] = []
    choice = choose_relaxation(search, search.tuning.choice.share_of_time)
    while True:
        branching = CoordinateBranching(search, choice)
        tree = Tree(search, branching)
        n_nodes = search.tuning.relay.first_turn
        yield tree, n_nodes
        limit = None
        while (node := tree.worst) is not None and not _is_late(search):
            limit = _find_limit(branching, node, tree.bound, places)
            if limit is not None:
                break
            n_nodes *= 2
            yield tree, n_nodes
        better = None if limit is None else _find_better(search, limit, places)
        if better is None:
            yield tree, None
            return
        choice = better


def _is_late(search: Search) -> bool:
    """Whether the tree at hand had better go on to the end."""
    all_nodes = search.settings.options.max_nodes
    return search.n_iter >= all_nodes or search.clock.has_spent(search.tuning.relay.latest)


def _find_limit(
    branching: CoordinateBranching, node: BoxNode, bound: float, places: list[Candidate]
) -> float | None:
    """What a relaxation lacks where its bounds are lowest; None where cuts are what a tree lacks.

    A tree whose `bound` has come near to that gives the place of its worst node to the `places`.
    """
    search, place = branching.search, branching.classifier(node)
    limit = branching.choice.lacking(search, [*places, place])
    if search.incumbent.objective - bound > search.tuning.relay.near_limit * limit:
        return None
    places.append(place)
    return limit


def _find_better(search: Search, limit: float, places: list[Candidate]) -> Choice | None:
    """A relaxation that lacks much less than the limit at the places; None where none is found."""
    tuning = search.tuning.relay
    again = choose_relaxation(search, tuning.share_of_time, places)
    return again if again.lacking(search, places) <= tuning.worth * limit else None
