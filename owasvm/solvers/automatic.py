"""Which solver "auto" stands for, and how long a proof is tried before the answer is "local"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from owasvm.grouping import GroupedCosts
from owasvm.problem import OWAProblem
from owasvm.samples import OnDemandSamples
from owasvm.solvers.general.rank_split import rising_part

__all__ = ["choose_solver"]

# Weights that leave something to pay for the largest deviation: most proofs that succeed at all
# take less than 100 nodes (443 of 479 of ``benchmarks/global_gap.py``), a second or two with 300
# samples and ten with 1,000.
_MOST_SAMPLES = 300
_NODES = 100
# With few samples nodes cost milliseconds.
_FEW_SAMPLES = 64
_NODES_FEW = 1000
# Weights that end in zeros, beyond which most proofs fail and take more than a few seconds. Those
# that never rise are counted out; with sample weights they have a tree, as those that rise have.
_MOST_TRIMMED = 50
_MOST_TRIMMED_WEIGHTED = 20
_MOST_OTHERS = 10
# With sample weights none of these was proven within 1,000 nodes, which take 4 to 16 seconds.
_MOST_OTHERS_WEIGHTED = 0


def choose_solver(
    problem: OWAProblem, given: Mapping[str, Any] | None
) -> tuple[str, Mapping[str, Any]]:
    """A solver and its options.

    Weights that never fall are Newton's. Others are left to branch and bound where a proof is in
    reach, for as many nodes as most proofs take, and to descent elsewhere. An option that only one
    of the two has decides for it.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    given : mapping or None
        Options that the user gave.

    Returns
    -------
    name : str
        Keyword of the solver.
    options : mapping
        The options given, or those that were chosen.
    """
    options = {} if given is None else given
    if problem.costs.convex:
        return "newton", options
    if "n_init" in options:
        return "dca", options
    if options:
        return "branch-and-bound", options
    n_nodes = _count_nodes(problem)
    return ("branch-and-bound", {"max_nodes": n_nodes}) if n_nodes else ("dca", options)


def _count_nodes(problem: OWAProblem) -> int:
    """Nodes within which a proof can be expected; 0 where none can."""
    n_samples = problem.n_samples
    is_elsewhere = getattr(problem.samples, "is_partitioned", False)
    # No tree for these.
    if is_elsewhere or isinstance(problem.samples, OnDemandSamples):
        return 0
    if isinstance(problem.costs, GroupedCosts):
        return 0
    costs = problem.costs.in_order(np.arange(n_samples))
    if costs[-1] <= 0.0:
        return _NODES_FEW if n_samples <= _count_samples(problem) else 0
    if n_samples <= _FEW_SAMPLES:
        return _NODES_FEW
    return _NODES if n_samples <= _MOST_SAMPLES else 0


def _count_samples(problem: OWAProblem) -> int:
    """Samples up to which a proof can be expected, for weights that end in zeros."""
    weighted = problem.costs.sample_weight is not None
    if rising_part(problem.costs.profile().density).any():
        return _MOST_OTHERS_WEIGHTED if weighted else _MOST_OTHERS
    return _MOST_TRIMMED_WEIGHTED if weighted else _MOST_TRIMMED
