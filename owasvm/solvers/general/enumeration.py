r"""Keep or trim, counted out: all assignments of falling costs to few samples, compiled.

For costs that never rise the objective is the smallest of the classical SVMs over all ways to
hand the costs out (:mod:`~owasvm.solvers.general.assignments`), and a node of
:mod:`~owasvm.solvers.general.shares` is a classical SVM as well. With few samples that takes some
ten microseconds by exchanges (:mod:`~owasvm.solvers.general.exchange`) from the node above. Nodes
are looked at depth first; there are so many that nothing but compiled code is worth it.

What a node proves is the dual value

.. math:: \sum_i |a_i| - \tfrac12 a^\top K a, \qquad 0 \le y_i a_i \le c_i, \quad \sum_i a_i = 0,

of signed coefficients a, less what rounding can have added to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.rounding import UNIT
from owasvm.solution import Status
from owasvm.solvers.general.assignments import SAME, falling_values
from owasvm.solvers.general.candidates import evaluate, improve_intercept
from owasvm.solvers.general.descent import propose
from owasvm.solvers.general.exchange import retrain
from owasvm.solvers.general.rank_split import rising_part
from owasvm.solvers.general.search import Search

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Nodes between two looks at the clock: some hundredths of a second.
_NODES_AT_A_TIME = 2000
# Exchanges of a node at most, per sample.
_EXCHANGES = 200
# Share of the gap that a node may lose to the accuracy of its SVM.
_ACCURACY_SHARE = 0.02
_LEAST_ACCURACY = 1e-10
# Kernel values here and those of the evaluation may each be off, both ways.
_ROUNDINGS = 4.0
#: Nodes that count as one: some milliseconds, as a node that is solved by Newton steps may take.
NODES_PER_NODE = 1000


class _Data(NamedTuple):
    """What all nodes share: kernel values, labels, costs by level and how many get at most these.

    ``rounding`` is what kernel values and products can be off by in a dual value, ``reach`` the
    largest norm of a sample.
    """

    gram: FloatArray
    y: FloatArray
    charges: FloatArray
    at_most: IntArray
    rounding: float
    reach: float


class _Stack(NamedTuple):
    """Open nodes, the last comes next: levels that samples may get, a start, what is proven."""

    lowest: IntArray
    highest: IntArray
    coef: FloatArray
    residual: FloatArray
    bound: FloatArray


@njit(cache=True)
def _prove(data: _Data, costs: FloatArray, coef: FloatArray, upper: float) -> float:
    """What coefficients prove about the SVM with these costs, rounding taken off."""
    n_samples = coef.size
    size = 0.0
    total = 0.0
    for i in range(n_samples):
        size += abs(coef[i])
        total += coef[i]
    if size == 0.0:
        return 0.0
    least = np.inf
    value = size
    sizes = size
    for i in range(n_samples):
        if coef[i] != 0.0:
            least = min(least, costs[i])
            score = 0.0
            score_size = 0.0
            for j in range(n_samples):
                score += data.gram[i, j] * coef[j]
                score_size += abs(data.gram[i, j] * coef[j])
            value -= 0.5 * coef[i] * score
            sizes += abs(coef[i]) * score_size
    # A classifier worth finding has an intercept no larger than this, and what the coefficients
    # lack of balance is multiplied by it.
    intercept = 1.0 + np.sqrt(2.0 * upper) * data.reach + upper / least
    imbalance = abs(total) + n_samples * UNIT * size
    sums = 4.0 * (n_samples + 4) * UNIT * sizes
    return value - sums - data.rounding - imbalance * intercept


@njit(cache=True)
def _propagate(lowest: IntArray, highest: IntArray, at_most: IntArray) -> bool:
    """Overwrites both: intervals tightened by how often levels occur; False if impossible."""
    n_samples = lowest.size
    for level in range(at_most.size - 1):
        n_low = 0
        n_high = 0
        for i in range(n_samples):
            n_low += highest[i] <= level
            n_high += lowest[i] > level
        places = at_most[level]
        if n_low > places or n_high > n_samples - places:
            return False
        for i in range(n_samples):
            if n_low == places and highest[i] > level:
                lowest[i] = max(lowest[i], level + 1)
            if n_high == n_samples - places and lowest[i] <= level:
                highest[i] = min(highest[i], level)
    return True


@njit(cache=True)
def _push(
    data: _Data,
    stack: _Stack,
    depth: int,
    lowest: IntArray,
    highest: IntArray,
    sample: int,
    level: int,
    much: bool,
    bound: float,
) -> int:
    """Overwrites the stack: the half of a node in which a sample gets much or little.

    Start and residuals are there already. Returns the new depth.
    """
    stack.lowest[depth] = lowest
    stack.highest[depth] = highest
    if much:
        stack.lowest[depth, sample] = level + 1
    else:
        stack.highest[depth, sample] = level
    stack.bound[depth] = bound
    possible = _propagate(stack.lowest[depth], stack.highest[depth], data.at_most)
    return depth + 1 if possible else depth


@njit(cache=True)
def _count_out(
    data: _Data, stack: _Stack, depth: int, target: float, accuracy: float, n_nodes: int
) -> tuple[int, int, float, bool]:
    """Overwrites the stack: looks at nodes until a number is reached or one needs a judge.

    Returns the depth, the number of nodes, the least bound of all that were closed, and whether
    the node on top of the stack, whose coefficients are solved for, is closed for good although
    its bound misses the target: nothing is left to decide there.
    """
    n_samples = data.y.size
    closed = np.inf
    costs = np.empty(n_samples)
    coef = np.empty(n_samples)
    residual = np.empty(n_samples)
    lowest = np.empty(n_samples, dtype=np.int64)
    highest = np.empty(n_samples, dtype=np.int64)
    room = np.empty((n_samples, n_samples))
    for count in range(n_nodes):
        if depth == 0:
            return depth, count, closed, False
        top = depth - 1
        lowest[:] = stack.lowest[top]
        highest[:] = stack.highest[top]
        coef[:] = stack.coef[top]
        residual[:] = stack.residual[top]
        for i in range(n_samples):
            costs[i] = data.charges[lowest[i]]
        intercept, _, _ = retrain(
            data.gram, data.y, costs, coef, residual, accuracy, _EXCHANGES * n_samples, room
        )
        bound = max(_prove(data, costs, coef, target), stack.bound[top])
        if bound >= target:
            closed = min(closed, bound)
            depth = top
            continue
        best = 0.0
        sample = -1
        for i in range(n_samples):
            width = data.charges[highest[i]] - data.charges[lowest[i]]
            stake = width * data.y[i] * (residual[i] - intercept)
            if stake > best:
                best = stake
                sample = i
        stack.coef[top] = coef
        stack.residual[top] = residual
        if sample < 0:
            # Whatever is open pays for deviations that are 0: this is the optimum of the node.
            stack.bound[top] = bound
            return depth, count + 1, closed, True
        level = (lowest[sample] + highest[sample]) // 2
        stack.coef[depth] = coef
        stack.residual[depth] = residual
        after = _push(data, stack, top, lowest, highest, sample, level, False, bound)
        if after == top + 1:
            depth = _push(data, stack, after, lowest, highest, sample, level, True, bound)
        else:
            depth = _push(data, stack, top, lowest, highest, sample, level, True, bound)
    return depth, n_nodes, closed, False


def can_enumerate(search: Search) -> bool:
    """Whether costs never rise and there are few samples."""
    problem = search.problem
    few = problem.n_samples <= search.tuning.few_samples
    plain = few and problem.costs.sample_weight is None and problem.is_definite
    return plain and not rising_part(search.costs).any()


class Enumeration:
    """All assignments of falling costs, as a tree that takes its turn.

    Parameters
    ----------
    search : Search
        Costs that :func:`can_enumerate` accepts.
    """

    def __init__(self, search: Search) -> None:
        problem = search.problem
        n_samples = problem.n_samples
        values, counts = falling_values(search.costs)
        # Rounded values are charged only where they do not exceed any that they stand for.
        charges = np.maximum(values - SAME * float(search.costs.max()), 0.0)
        # Rounding grows with the sizes of the coefficients; none is larger than these.
        dearest = problem.y * charges[-1]
        _, rounding = problem.samples.dual_norm(dearest, problem.samples.evaluate(dearest))
        self._search = search
        self._data = _Data(
            gram=np.ascontiguousarray(problem.samples.gram_among(np.arange(n_samples))),
            y=problem.y,
            charges=charges,
            at_most=np.cumsum(counts),
            rounding=_ROUNDINGS * rounding,
            reach=problem.largest_norm,
        )
        # Every node on a path settles a level of a sample, and leaves one sibling behind.
        n_places = n_samples * (values.size - 1) + 2
        self._stack = _Stack(
            lowest=np.zeros((n_places, n_samples), dtype=np.int64),
            highest=np.full((n_places, n_samples), values.size - 1, dtype=np.int64),
            coef=np.zeros((n_places, n_samples)),
            residual=np.tile(problem.y, (n_places, 1)),
            bound=np.zeros(n_places),
        )
        self._depth = 1
        self._closed = np.inf

    def grow(self, max_nodes: int, n_nodes: int | None = None) -> Status | None:
        """Look at nodes; as :meth:`~owasvm.solvers.general.tree.Tree.grow`.

        A thousand of them count as one node of another tree.
        """
        search = self._search
        last = max_nodes if n_nodes is None else min(max_nodes, search.n_iter + n_nodes)
        while self._depth > 0 and search.n_iter < last and not search.is_proven:
            if search.clock.expired:
                return search.clock.reason
            n_left = NODES_PER_NODE * (last - search.n_iter)
            n_seen = self._look(min(_NODES_AT_A_TIME, n_left))
            search.n_iter += -(-n_seen // NODES_PER_NODE)
            if not search.report():
                return Status.INTERRUPTED
        return Status.OPTIMAL if search.is_proven else None

    def _look(self, n_nodes: int) -> int:
        """Look at some nodes, and take note of what they prove; the number of nodes."""
        search, stack = self._search, self._stack
        problem = search.problem
        allowed = search.incumbent.objective - search.target
        accuracy = max(_ACCURACY_SHARE * allowed / problem.costs.total, _LEAST_ACCURACY)
        depth, n_seen, closed, settled = _count_out(
            self._data, stack, self._depth, search.target, accuracy, n_nodes
        )
        closed = min(self._closed, closed)
        if settled:
            depth -= 1
            closed = min(closed, float(stack.bound[depth]))
            coef = np.maximum(problem.y * stack.coef[depth], 0.0)
            found = evaluate(problem, coef, search.incumbent.intercept)
            propose(search, improve_intercept(problem, found))
        self._depth, self._closed = depth, closed
        search.raise_floor(min(closed, float(stack.bound[:depth].min(initial=np.inf))))
        return n_seen
