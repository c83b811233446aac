"""Global solutions for general weights, against enumeration and other exact methods."""

from __future__ import annotations

import itertools
import logging
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC
from owasvm.optimality import certificate
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import Settings, branch_and_bound, solve
from owasvm.solvers.general import relay as relay_module
from owasvm.solvers.general.assignments import log_assignments
from owasvm.solvers.general.candidates import evaluate
from owasvm.solvers.general.choice import Choice, Trial, choose_relaxation
from owasvm.solvers.general.coordinates import CoordinateBranching
from owasvm.solvers.general.geometry import CentredData, intercept_range, safe_ball, slack_ranges
from owasvm.solvers.general.rank_split import rising_part, tail_sums
from owasvm.solvers.general.ranks import RankBranching, RankNode
from owasvm.solvers.general.relaxation import Box, Split
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.shares import ShareBranching
from owasvm.solvers.general.tree import Node, Tree
from tests.oracles import enumerate_owa_svm, owa_value, psd_factor

FAMILIES = [("quadratic", 0.8), ("trigonometric", 0.8), ("trimmed", 0.2), ("olympic", 0.6)]


def noisy_data(n_samples, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def noisy_problem(n_samples, weights, alpha=None, C=1.0, gamma=None, seed=0):
    X, y = noisy_data(n_samples, seed=seed)
    costs = RankCosts(n_samples, weights, alpha, C)
    if gamma is None:
        return OWAProblem(y, costs, features=X)
    return OWAProblem(y, costs, gram=rbf_kernel(X, gamma=gamma))


def tune_tree(monkeypatch, **changes):
    """Branch and bound with other numbers."""
    tuning = branch_and_bound.TUNING
    tuning = replace(tuning, tree=replace(tuning.tree, **changes))
    monkeypatch.setattr(branch_and_bound, "TUNING", tuning)


def by_coordinates(monkeypatch):
    """Split coordinates, however few ways to hand out costs there are."""
    tune_tree(monkeypatch, max_log_assignments=-np.inf)


# Tiny problems, all orders enumerated


def weights_of_shape(shape, n_samples, rng):
    weights = np.zeros(n_samples)
    if shape == "random":
        weights = rng.exponential(size=n_samples)
    elif shape == "falling":
        weights = np.sort(rng.exponential(size=n_samples))[::-1]
    elif shape == "trimmed":
        weights[: rng.integers(1, n_samples)] = 1.0
    elif shape == "hurwicz":
        weights[0] = rng.random()
        weights[-1] = 1.0 - weights[0]
    elif shape == "olympic":
        weights[1:-1] = 1.0
    elif shape == "integer":
        weights = rng.integers(0, 3, size=n_samples).astype(float)
        weights[rng.integers(n_samples)] += 1.0
    elif shape == "one rank":
        weights[rng.integers(n_samples)] = 1.0
    else:
        raise ValueError(shape)
    return weights / weights.mean()


def data_of_kind(kind, n_samples, rng):
    X = rng.normal(size=(n_samples, int(rng.integers(1, 4))))
    y = np.where(rng.random(n_samples) < 0.5, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    if kind == "grid":
        X = np.round(X)
    elif kind == "duplicates":
        X[2:4], y[2:4] = X[:2], y[:2]
    elif kind == "both labels":
        X[-1], y[-1] = X[0], -y[0]
    elif kind == "constant feature":
        X[:, 0] = 2.0
    elif kind == "one against all":
        y[:] = -1.0
        y[rng.integers(n_samples)] = 1.0
    return X, y


SHAPES = ["random", "falling", "trimmed", "hurwicz", "olympic", "integer", "one rank"]
DATA_KINDS = [
    "plain",
    "grid",
    "duplicates",
    "both labels",
    "constant feature",
    "one against all",
]


@dataclass
class TinyProblem:
    """A problem of at most 6 samples and its global optimum."""

    problem: OWAProblem
    weights: np.ndarray
    optimum: float

    @property
    def scale(self):
        return max(1.0, self.optimum)


def tiny_problem(seed, n_samples):
    rng = np.random.default_rng(seed)
    weights = weights_of_shape(SHAPES[seed % len(SHAPES)], n_samples, rng)
    X, y = data_of_kind(DATA_KINDS[seed % len(DATA_KINDS)], n_samples, rng)
    C = 10.0 ** rng.uniform(-2, 2)
    costs = RankCosts(n_samples, weights, None, C)
    if rng.random() < 0.4:
        gram = rbf_kernel(X, gamma=10.0 ** rng.uniform(-1, 0.5))
        problem, rows = OWAProblem(y, costs, gram=gram), psd_factor(gram)
    else:
        problem, rows = OWAProblem(y, costs, features=X), X
    optimum = enumerate_owa_svm(rows, y, weights, C).objective
    return TinyProblem(problem, weights, optimum)


def recomputed(problem, solution):
    """Certificate of a solution from the data; its coefficients may have any sign."""
    costs = problem.costs
    signed = problem.y * solution.dual
    return certificate(
        problem.features,
        problem.y,
        costs.weights,
        costs.C,
        signed,
        solution.intercept,
        gram=problem.gram,
        alpha=costs.alpha,
    )


@pytest.mark.parametrize("seed", range(48))
def test_equals_enumeration(seed):
    tiny = tiny_problem(seed, 6 if seed % 6 == 0 else 5)
    solution = solve(tiny.problem, "branch-and-bound", mip_gap=1e-6, options={"max_nodes": 10**6})
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-6
    assert solution.objective == pytest.approx(tiny.optimum, abs=1e-6 * tiny.scale)
    assert solution.lower_bound <= tiny.optimum + 1e-9 * tiny.scale
    proof = recomputed(tiny.problem, solution)
    assert proof.objective == pytest.approx(solution.objective, rel=1e-9, abs=1e-12)
    assert proof.lower_bound <= tiny.optimum + 1e-9 * tiny.scale


@pytest.mark.parametrize("mip_gap", [0.05, 1e-4])
@pytest.mark.parametrize("seed", range(100, 121))
def test_boxes_never_claim_too_much(monkeypatch, seed, mip_gap):
    tiny = tiny_problem(seed, 5)
    by_coordinates(monkeypatch)
    solution = solve(tiny.problem, "branch-and-bound", mip_gap=mip_gap, options={"max_nodes": 40})
    assert solution.lower_bound <= tiny.optimum + 1e-9 * tiny.scale
    assert solution.objective >= tiny.optimum - 1e-9 * tiny.scale
    # Whatever the status, the gap bounds the distance to the optimum.
    off = solution.objective - tiny.optimum
    assert off <= (solution.gap + 1e-9) * max(1.0, abs(solution.objective))
    assert (solution.status is Status.OPTIMAL) == (solution.gap <= mip_gap)


def test_falling_weights_are_solved_by_default():
    tiny = tiny_problem(1, 5)
    solution = solve(tiny.problem)
    assert solution.solver == "branch-and-bound"
    assert solution.objective == pytest.approx(tiny.optimum, abs=1e-4 * tiny.scale)


def test_smallest_gaps():
    for seed in (0, 2, 3, 5):
        tiny = tiny_problem(seed, 5)
        solution = solve(tiny.problem, mip_gap=1e-8, options={"max_nodes": 10**6})
        assert solution.status is Status.OPTIMAL
        assert solution.gap <= 1e-8
        assert solution.objective == pytest.approx(tiny.optimum, abs=1e-8 * tiny.scale)


# Larger problems, other exact methods


def best_after_dropping(rows, y, C, n_dropped):
    """Trimmed weights by definition: the best SVM once the worst samples are left out."""
    n_samples = y.size
    best = np.inf
    for dropped in itertools.combinations(range(n_samples), n_dropped):
        kept = np.setdiff1d(np.arange(n_samples), dropped)
        cost = C * n_samples / (n_samples - n_dropped)
        if np.ptp(y[kept]) == 0.0:
            return 0.0
        model = SVC(C=cost, kernel="linear", tol=1e-9).fit(rows[kept], y[kept])
        w = model.coef_[0]
        deviations = np.maximum(0.0, 1.0 - y[kept] * model.decision_function(rows[kept]))
        best = min(best, 0.5 * w @ w + cost * deviations.sum())
    return best


@pytest.mark.parametrize("gamma", [None, 0.4])
@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize(("n_samples", "n_dropped"), [(15, 2), (30, 1)])
def test_trimmed_weights_drop_the_best_samples(n_samples, n_dropped, C, gamma):
    weights = np.ones(n_samples)
    weights[n_samples - n_dropped :] = 0.0
    problem = noisy_problem(n_samples, weights, C=C, gamma=gamma)
    rows = problem.features if gamma is None else psd_factor(problem.gram)
    optimum = best_after_dropping(rows, problem.y, C, n_dropped)
    solution = solve(problem, mip_gap=1e-6, options={"max_nodes": 10**5})
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(optimum, rel=1e-5)
    assert solution.lower_bound <= optimum * (1 + 1e-7)


@pytest.mark.parametrize(
    ("n_samples", "rank", "C", "gamma"),
    [(15, 1, 0.05, 0.3), (15, 1, 1.0, 0.3), (15, 3, 0.05, 0.3), (20, 1, 0.05, 0.3)],
)
def test_both_branchings_agree(monkeypatch, n_samples, rank, C, gamma):
    # One of the large ranks is cheaper than the others.
    weights = np.ones(n_samples)
    weights[-rank] = 0.5
    problem = noisy_problem(n_samples, weights, C=C, gamma=gamma, seed=n_samples)
    ranks = solve(problem, options={"max_nodes": 10**5})
    by_coordinates(monkeypatch)
    coordinates = solve(problem, options={"max_nodes": 10**5})
    assert ranks.status is Status.OPTIMAL
    assert coordinates.status is Status.OPTIMAL
    scale = max(1.0, ranks.objective)
    assert coordinates.objective == pytest.approx(ranks.objective, abs=1.1e-4 * scale)
    assert coordinates.lower_bound <= ranks.objective + 1e-9 * scale
    assert ranks.lower_bound <= coordinates.objective + 1e-9 * scale
    assert ranks.n_iter != coordinates.n_iter


@pytest.mark.parametrize("n_samples", [15, 30])
def test_hurwicz_weights(n_samples):
    # a times the smallest plus 1 - a times the largest deviation: only who is smallest is open.
    weights = np.zeros(n_samples)
    weights[[0, -1]] = 0.9, 0.1
    problem = noisy_problem(n_samples, weights, C=1.0, seed=n_samples)
    solution = solve(problem, options={"max_nodes": 10**5})
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("family", "C", "gamma"),
    [
        ("quadratic", 0.05, 0.3),
        ("quadratic", 20.0, 0.3),
        ("trigonometric", 0.05, None),
        ("trigonometric", 1.0, 0.3),
    ],
)
def test_equals_the_mixed_integer_model(family, C, gamma):
    pytest.importorskip("pyscipopt")
    problem = noisy_problem(10, family, 0.8, C, gamma, seed=10)
    assert log_assignments(problem.costs.ascending) > math.log(1e5)
    model = solve(problem, "miqp", mip_gap=1e-6, time_limit=30.0)
    solution = solve(problem, options={"max_nodes": 10**5})
    assert model.status is Status.OPTIMAL
    assert solution.status is Status.OPTIMAL
    scale = max(1.0, model.objective)
    assert solution.objective == pytest.approx(model.objective, abs=1e-4 * scale)
    assert solution.lower_bound <= model.objective + 1e-7 * scale
    assert model.lower_bound <= solution.objective + 1e-6 * scale


# Where better classifiers can be


@pytest.mark.parametrize("family", [*FAMILIES, ("random", None)])
@pytest.mark.parametrize("gamma", [None, 0.5])
def test_ranges_hold_every_better_classifier(family, gamma):
    rng = np.random.default_rng(0)
    for seed in range(6):
        weights, alpha = family if family[1] else (rng.exponential(size=15), None)
        problem = noisy_problem(15, weights, alpha, 10.0 ** rng.uniform(-1.5, 2), gamma, seed)
        y = problem.y
        data = CentredData(problem)
        search = Search(problem, Settings(mip_gap=1e-6))
        search.minorants.improve()
        search.minorants.improve()
        incumbent = solve(problem, "dca")
        rising = rising_part(problem.costs.ascending)
        split = Split(rising, tail_sums(problem.costs.ascending - rising))
        for trial in range(50):
            noise = 0.0 if trial == 0 else 10.0 ** rng.uniform(-3, 0.5)
            coef = rng.choice([0.3, 1.0, 2.0]) * incumbent.dual + noise * rng.normal(size=15)
            # Coordinates are those of coefficients that balance.
            coef = y * (y * coef - (y * coef).mean())
            classifier = evaluate(problem, coef, incumbent.intercept + 0.5 * rng.normal())
            upper = classifier.objective * (1 + 1e-9)
            at = data.coordinates(coef, classifier.intercept, data.n_directions)
            slack = 1.0 - y * (problem.scores(coef) + classifier.intercept)
            low, high = intercept_range(problem, data, upper)
            assert low <= at[0] <= high
            lower, upper_ends = slack_ranges(problem, data, upper)
            assert np.all(slack >= lower - 1e-9) and np.all(slack <= upper_ends + 1e-9)
            ball = safe_ball(problem, search.minorants.best.solution, upper)
            centre = data.coordinates(ball.coef, 0.0, data.n_directions)[1:]
            assert np.linalg.norm(at[1:] - centre) <= ball.radius * (1 + 1e-9) + 1e-6
            if trial % 5 == 0:
                choice = Choice(data, split, -1, n_directions=0, remains=(0.5,))
                search.incumbent = replace(classifier, objective=upper)
                branching = CoordinateBranching(search, choice)
                n_directions = trial % 3
                around = at[: 1 + n_directions] + 0.1 * rng.uniform(-1, 1, size=1 + n_directions)
                box = Box(around - 0.1, around + 0.1, lower, upper_ends)
                box = branching._cut_to_ball(box)
                assert np.all(slack >= box.lower - 1e-9) and np.all(slack <= box.upper + 1e-9)


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_chosen_relaxations_prove_nothing_wrong_and_more_than_equal_emphases(gamma):
    problem = noisy_problem(60, "quadratic", 0.8, C=2.0, gamma=gamma)
    search = Search(problem, Settings())
    search.accuracy = 1e-7
    search.minorants.improve()
    incumbent = solve(problem, "branch-and-bound", options={"max_nodes": 20})
    best = evaluate(problem, incumbent.dual, incumbent.intercept)
    search.accept(best)
    choice = choose_relaxation(search, 1.0)
    assert all(0.0 <= share <= 1.0 for share in choice.remains)
    plain, chosen = Trial(search, CentredData(problem)), Trial(search, choice.data)
    for kept in (-1, 3, 8):
        for n_directions in range(3):
            # At the incumbent's own coordinates no valid bound exceeds its objective.
            assert chosen.lacking(kept, n_directions) >= -1e-9 * best.objective
    if gamma is not None:
        # With three features and three directions nothing would be left to emphasise.
        least = min(chosen.lacking(kept, choice.n_directions) for kept in range(-1, 20))
        assert least < min(plain.lacking(kept, choice.n_directions) for kept in range(-1, 20))


def test_optimum_on_the_other_side_of_the_classical_svm():
    # Trimming leaves a choice: drop the samples that want w_1 = 1, or those that want the
    # opposite. The classical SVM and descent from it take the second, the optimum is the first.
    signs = np.tile([1.0, -1.0], 3)
    others = np.array([1.5, 1.5, 1.5, 1.5, 0.95, 0.95]) * signs
    second = np.tile([1.0, -1.0], 6)
    first_column = np.concatenate([signs, others, np.zeros(12)])
    second_column = np.concatenate([np.zeros(12), second])
    X = np.column_stack([first_column, second_column])
    y = np.concatenate([signs, -signs, second])
    problem = OWAProblem(y, RankCosts(24, "trimmed", 0.25, 0.3), features=X)
    # w = (1, 1), b = 0 leaves no deviation but those of the six samples that are dropped.
    assert np.count_nonzero(y * (X @ [1.0, 1.0]) < 1.0) == 6
    solution = solve(problem, mip_gap=5e-3, options={"max_nodes": 20_000})
    assert solution.lower_bound <= 1.0
    assert solution.status is Status.OPTIMAL
    assert solution.objective <= 1.0 * (1 + 5e-3)


# Handing out ranks


def test_ways_to_hand_out_costs_are_counted():
    rng = np.random.default_rng(0)
    for _ in range(20):
        costs = rng.integers(0, 4, size=6).astype(float)
        falling = np.round(costs - rising_part(costs), 12)
        ways = len(set(itertools.permutations(falling)))
        negative = np.count_nonzero(falling < 0.0)
        expected = math.log(ways) + negative * math.log(2.0)
        assert log_assignments(costs) == pytest.approx(expected, abs=1e-9)


def price(node, rising, falling, w, slack):
    """Value of a node's problem at a classifier, the rest handed out in the cheapest way."""
    deviations = np.maximum(slack, 0.0)
    value = 0.5 * w @ w + owa_value(deviations, rising)
    for sample, entry, counts in zip(node.samples, falling, node.counted, strict=False):
        # A negative entry is its line, or nothing.
        line = slack[sample] if entry < 0.0 else deviations[sample]
        value += entry * line if counts else 0.0
    others = np.setdiff1d(np.arange(slack.size), node.samples)
    return value + np.sort(deviations[others])[::-1] @ np.sort(falling[len(node.samples) :])


@settings(max_examples=120)
@given(seed=st.integers(0, 10**6), n_samples=st.integers(4, 7))
def test_bound_of_handed_out_ranks(seed, n_samples):
    rng = np.random.default_rng(seed)
    weights = weights_of_shape(SHAPES[seed % len(SHAPES)], n_samples, rng)
    X, y = data_of_kind(DATA_KINDS[seed % len(DATA_KINDS)], n_samples, rng)
    costs = RankCosts(n_samples, weights, None, 10.0 ** rng.uniform(-1.5, 1.5))
    problem = OWAProblem(y, costs, features=X)
    branching = RankBranching(Search(problem, Settings(mip_gap=1e-6)))
    rising = rising_part(costs.ascending)
    falling = branching._falling
    assert np.allclose(np.sort(falling), np.sort(costs.ascending - rising), atol=1e-13)
    n_taken = int(rng.integers(0, n_samples + 1))
    samples = tuple(rng.permutation(n_samples)[:n_taken].tolist())
    counted = tuple(bool(falling[k] >= 0.0 or rng.random() < 0.6) for k in range(n_taken))
    node = RankNode(0.0, samples, counted, None)
    bound, candidate, _ = branching._bound(node, exact=False)
    again = evaluate(problem, candidate.coef, candidate.intercept)
    assert candidate.objective == pytest.approx(again.objective, rel=1e-12)
    best = np.inf
    for _ in range(60):
        w = rng.normal(size=X.shape[1]) * 10.0 ** rng.uniform(-3, 1)
        b = rng.normal() * 10.0 ** rng.uniform(-1, 3)
        best = min(best, price(node, rising, falling, w, 1.0 - y * (X @ w + b)))
    assert bound <= max(best, 0.0) + 1e-7 * max(1.0, abs(best))


@pytest.mark.parametrize("seed", range(28))
def test_children_hold_all_that_their_parent_holds(seed):
    rng = np.random.default_rng(seed)
    weights = weights_of_shape(SHAPES[seed % len(SHAPES)], 4, rng)
    X, y = data_of_kind("plain", 4, rng)
    costs = RankCosts(4, weights, None, 2.0)
    problem = OWAProblem(y, costs, features=X)
    branching = RankBranching(Search(problem, Settings(mip_gap=1e-6)))
    rising = rising_part(costs.ascending)
    falling = branching._falling
    level = [branching.make_root()]
    while level and len(level[0].samples) < 4:
        parents = level
        level = [child for node in parents for child in branching._split(node, 0.0, None)]
        assert len({(node.samples, node.counted) for node in level}) == len(level)
    for _ in range(30):
        w, b = rng.normal(size=X.shape[1]), 2.0 * rng.normal()
        slack = 1.0 - y * (X @ w + b)
        cheapest = min(price(node, rising, falling, w, slack) for node in level)
        objective = 0.5 * w @ w + owa_value(np.maximum(slack, 0.0), costs.ascending)
        assert cheapest == pytest.approx(objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", [3325, 3339, 3829, 16513])
def test_ranks_whose_problem_has_no_minimum(seed):
    # Handing negative entries to the wrong samples can leave less than nothing to pay along b.
    tiny = tiny_problem(seed, 4)
    solution = solve(tiny.problem, mip_gap=1e-6, options={"max_nodes": 10**5})
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(tiny.optimum, abs=1e-6 * tiny.scale)
    assert solution.lower_bound <= tiny.optimum + 1e-9 * tiny.scale


# The tree


class IntervalNode(Node):
    """An interval of the line."""

    def __init__(self, bound, low, high):
        super().__init__(bound)
        self.low, self.high = low, high


class Valleys:
    """Splits intervals to minimise a function of slope at most 3 with many valleys."""

    def __init__(self):
        self.expanded = []

    def make_root(self):
        return IntervalNode(0.0, -5.0, 5.0)

    @staticmethod
    def value(x):
        return 2.0 + math.sin(3.0 * x) * 0.5 + 0.1 * abs(x - 1.0)

    def bound(self, low, high):
        return self.value(0.5 * (low + high)) - 0.8 * (high - low)

    def expand(self, node):
        self.expanded.append(node.bound)
        middle = 0.5 * (node.low + node.high)
        halves = [(node.low, middle), (middle, node.high)]
        return [IntervalNode(max(node.bound, self.bound(*ends)), *ends) for ends in halves]


@pytest.fixture
def valleys():
    """A tree over [-5, 5] whose incumbent is the best value on a fine grid."""
    problem = noisy_problem(5, [1.0, 2.0, 0.5, 1.0, 1.0])
    grid = np.linspace(-5.0, 5.0, 100_001)
    best = min(Valleys.value(x) for x in grid)

    def make(**limits):
        search = Search(problem, Settings(**limits))
        search.incumbent = replace(search.incumbent, objective=best)
        branching = Valleys()
        return search, Tree(search, branching), branching

    return make, best


def test_tree_proves_what_its_nodes_prove(valleys):
    make, best = valleys
    search, tree, branching = make(mip_gap=1e-3)
    assert tree.grow(10**6) is Status.OPTIMAL
    assert best - 1e-3 * best <= search.bound == min(tree.bound, best) <= best
    assert search.n_iter == len(branching.expanded)
    # Best bound first: the bounds of the nodes taken up never fall.
    assert np.all(np.diff(branching.expanded) >= 0.0)


def test_tree_stops_at_its_limits_with_a_bound(valleys):
    make, best = valleys
    search, tree, branching = make(mip_gap=1e-9)
    assert tree.grow(30) is Status.NODE_LIMIT
    assert search.n_iter == 30
    assert branching.expanded[-1] <= search.bound == tree.bound < best
    search, tree, branching = make(time_limit=1e-9)
    assert tree.grow(30) is Status.TIME_LIMIT
    assert search.bound == 0.0
    search, tree, branching = make(callback=lambda _: False)
    assert tree.grow(30) is Status.INTERRUPTED
    assert search.n_iter == 1


def test_trees_take_turns_over_one_search(valleys):
    make, best = valleys
    search, tree, _ = make(mip_gap=1e-3)
    other = Tree(search, Valleys())
    # A turn that is over is no status.
    assert tree.grow(10**6, 5) is None
    assert other.grow(10**6, 9) is None
    assert search.n_iter == 14
    assert search.bound == max(tree.bound, other.bound) == other.bound
    assert tree.grow(16, 5) is None
    assert search.n_iter == 16
    assert tree.grow(16) is Status.NODE_LIMIT
    assert tree.grow(10**6) is Status.OPTIMAL
    assert best - 1e-3 * best <= search.bound <= best


def test_an_interrupted_node_is_not_lost(valleys):
    make, best = valleys
    search, tree, branching = make(mip_gap=1e-3)
    expand = branching.expand

    def interrupt(node):
        if search.n_iter == 12:
            raise KeyboardInterrupt
        return expand(node)

    branching.expand = interrupt
    with pytest.raises(KeyboardInterrupt):
        tree.grow(1000)
    assert branching.expanded[-1] <= tree.bound < best
    # Going on from here still finds a proof of the whole interval.
    branching.expand = expand
    assert tree.grow(10**6) is Status.OPTIMAL
    assert best - 1e-3 * best <= search.bound <= best


def test_settled_nodes_are_what_is_left_to_prove(valleys):
    make, best = valleys
    search, tree, branching = make(mip_gap=1e-3)
    branching.expand = lambda node: [
        Node(best - 0.5, settled=True),
        IntervalNode(best + 1.0, node.low, node.high),
    ]
    # Nothing is left to split, and nothing is proven.
    assert tree.grow(1000) is None
    assert not search.is_proven
    assert search.bound == best - 0.5


def test_convex_problems_that_are_not_solved_are_an_iteration_limit():
    # All is branched out after a handful of nodes; one Newton step is not enough for the leaves.
    problem = noisy_problem(10, [2.0, 0.5, *[1.0] * 8], C=1.0)
    rough = solve(problem, "branch-and-bound", max_iter=1, options={"max_nodes": 10**5})
    assert rough.status is Status.ITERATION_LIMIT
    exact = solve(problem, "branch-and-bound", options={"max_nodes": 10**5})
    assert exact.status is Status.OPTIMAL
    assert rough.lower_bound <= exact.objective <= rough.objective * (1 + 1e-4)


# Progress, limits, interruptions


@pytest.fixture(scope="module")
def long_problem():
    """A problem that takes hundreds of nodes."""
    return noisy_problem(20, "quadratic", 0.8, C=1.0, gamma=0.5)


@pytest.fixture(scope="module")
def reference(long_problem):
    """The best that is known about it."""
    return solve(long_problem, options={"max_nodes": 100})


def test_callback_sees_valid_progress(long_problem, reference):
    seen = []
    solution = solve(long_problem, options={"max_nodes": 60}, callback=seen.append)
    assert solution.status is Status.NODE_LIMIT
    assert len(seen) >= 20
    assert all({"n_iter", "objective", "lower_bound", "gap", "time"} <= set(info) for info in seen)
    objectives = np.array([info["objective"] for info in seen])
    bounds = np.array([info["lower_bound"] for info in seen])
    assert np.all(np.diff(objectives) <= 0.0)
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] > bounds[0]
    assert bounds.max() <= min(objectives.min(), reference.objective)
    assert np.all(np.diff([info["n_iter"] for info in seen]) >= 0)
    assert np.all(np.diff([info["time"] for info in seen]) >= 0.0)
    assert solution.lower_bound >= bounds[-1] * (1 - 1e-10)
    assert solution.objective == pytest.approx(objectives[-1])


def test_node_limit(long_problem, reference):
    solution = solve(long_problem, options={"max_nodes": 7})
    assert solution.status is Status.NODE_LIMIT
    assert solution.n_iter == 7
    assert solution.gap > 1e-4
    assert 0.0 < solution.lower_bound <= reference.objective
    assert solution.objective >= reference.lower_bound
    assert reference.lower_bound >= solution.lower_bound


@pytest.mark.parametrize("time_limit", [1e-9, 0.7])
def test_time_limit_is_honoured(time_limit):
    problem = noisy_problem(80, "quadratic", 0.8, C=2.0, gamma=0.3)
    solution = solve(problem, options={"max_nodes": 10**9}, time_limit=time_limit)
    # A moment for the node that was being bounded, on a busy machine. Compilation does not count.
    assert solution.solve_time < time_limit + 2.0
    assert solution.status is Status.TIME_LIMIT
    assert 0.0 <= solution.lower_bound < solution.objective
    assert solution.gap > 1e-4
    proof = recomputed(problem, solution)
    assert proof.objective == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("n_calls", [1, 2, 10])
def test_callback_can_stop(long_problem, reference, n_calls):
    seen = []
    solution = solve(long_problem, callback=lambda info: seen.append(info) or len(seen) < n_calls)
    assert solution.status is Status.INTERRUPTED
    assert len(seen) == n_calls
    assert solution.objective == pytest.approx(seen[-1]["objective"])
    assert 0.0 < solution.lower_bound <= reference.objective


@pytest.mark.parametrize("n_calls", [1, 8])
def test_interrupt_keeps_the_incumbent(long_problem, reference, n_calls):
    seen = []

    def press(info):
        seen.append(info)
        if len(seen) == n_calls:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        solve(long_problem, callback=press)
    solution = stop.value.solution
    assert solution.status is Status.INTERRUPTED
    assert solution.objective == pytest.approx(seen[-1]["objective"])
    assert solution.lower_bound >= seen[-1]["lower_bound"] * (1 - 1e-12)
    assert solution.lower_bound <= reference.objective
    proof = recomputed(long_problem, solution)
    assert proof.objective == pytest.approx(solution.objective, rel=1e-9)


def test_verbose_speaks_through_the_logger(long_problem, caplog):
    with caplog.at_level(logging.DEBUG, logger="owasvm"):
        solve(long_problem, options={"max_nodes": 3}, verbose=2)
    assert sum("lower bound" in message for message in caplog.messages) >= 3
    assert any(message.startswith("branch-and-bound: node_limit") for message in caplog.messages)


@pytest.mark.parametrize(
    ("weights", "alpha", "gamma"),
    [
        ("quadratic", 0.8, 0.5),
        ("trigonometric", 0.8, None),
        ([2.0] * 2 + [0.5] + [1.0] * 17, None, None),
    ],
)
def test_nothing_depends_on_chance(weights, alpha, gamma):
    problem = noisy_problem(20, weights, alpha, gamma=gamma)
    one, other = (solve(problem, options={"max_nodes": 50}) for _ in range(2))
    np.testing.assert_array_equal(one.dual, other.dual)
    assert (one.intercept, one.n_iter, one.status) == (other.intercept, other.n_iter, other.status)
    assert (one.objective, one.lower_bound) == (other.objective, other.lower_bound)


def test_warm_start_changes_nothing_but_the_way(long_problem, reference):
    warm = solve(long_problem, warm_start=reference, options={"max_nodes": 30})
    assert warm.objective == pytest.approx(reference.objective, rel=1e-6)
    assert warm.lower_bound <= reference.objective


# Special cases


@pytest.mark.parametrize(
    ("family", "alpha"), [("basic", 0.4), ("uniform", None), ("quadratic", 0.2)]
)
def test_convex_weights_are_left_to_newton(family, alpha):
    problem = noisy_problem(60, family, alpha)
    exact, solution = solve(problem, "newton"), solve(problem, "branch-and-bound")
    assert solution.status is Status.OPTIMAL
    assert solution.solver == "branch-and-bound"
    assert solution.objective == pytest.approx(exact.objective, rel=1e-12)
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("shape", ["random", "trimmed", "olympic"])
def test_scale_of_the_features_is_a_scale_of_C(scale, shape):
    # With s X for X, w / s takes the place of w: F(s X, C) = F(X, s^2 C) / s^2.
    rng = np.random.default_rng(4)
    weights = weights_of_shape(shape, 5, rng)
    X, y = data_of_kind("plain", 5, rng)
    C = 0.5
    scaled = OWAProblem(y, RankCosts(5, weights, None, C), features=scale * X)
    plain = OWAProblem(y, RankCosts(5, weights, None, scale**2 * C), features=X)
    one = solve(scaled, mip_gap=1e-7, options={"max_nodes": 10**5})
    other = solve(plain, mip_gap=1e-7 * min(1.0, scale**2), options={"max_nodes": 10**5})
    assert one.status is Status.OPTIMAL
    tolerance = 1e-6 * max(1.0, one.objective)
    assert one.objective == pytest.approx(other.objective / scale**2, abs=tolerance)
    optimum = enumerate_owa_svm(X, y, weights, scale**2 * C).objective / scale**2
    assert one.objective == pytest.approx(optimum, abs=tolerance)


@pytest.mark.parametrize(
    "X",
    [np.zeros((20, 2)), np.full((20, 1), 0.1), 1e-6 * noisy_data(20, 2)[0]],
    ids=["zeros", "one point", "tiny"],
)
@pytest.mark.parametrize(("family", "alpha"), [*FAMILIES[:2], ("olympic", 0.5)])
def test_intercept_alone(X, family, alpha):
    # Nothing (or next to nothing) to gain from w: F is a function of b, with kinks at -1 and 1.
    y = np.where(np.arange(20) % 3 > 0, 1.0, -1.0)
    costs = RankCosts(20, family, alpha)
    at_kinks = [owa_value(np.maximum(0.0, 1.0 - y * b), costs.ascending) for b in (-1.0, 0.0, 1.0)]
    solution = solve(OWAProblem(y, costs, features=X), "branch-and-bound")
    assert solution.objective == pytest.approx(min(at_kinks), rel=1e-4)
    assert solution.lower_bound <= min(at_kinks) * (1 + 1e-9)
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_optimum_zero(gamma):
    # Three samples of a class, five that do not count: b = -1 costs nothing.
    X, y = noisy_data(20)
    y[:] = -1.0
    y[[3, 8, 12]] = 1.0
    costs = RankCosts(20, "trimmed", 0.25, 10.0)
    gram = None if gamma is None else rbf_kernel(X, gamma=gamma)
    problem = OWAProblem(y, costs, features=X if gram is None else None, gram=gram)
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(0.0, abs=1e-12)
    assert solution.lower_bound == 0.0


def test_two_samples():
    # Only the smaller deviation counts: b = 1 leaves none.
    problem = OWAProblem(
        np.array([-1.0, 1.0]), RankCosts(2, [1.0, 0.0], None), features=np.array([[0.0], [1.0]])
    )
    assert solve(problem).objective == pytest.approx(0.0, abs=1e-12)


# Estimators


@pytest.mark.parametrize(("family", "alpha"), [("quadratic", 0.6), ("trigonometric", 0.8)])
@pytest.mark.parametrize(
    "estimator",
    [OWASVC(gamma=1.0), LinearOWASVC(), OWASVC(kernel="linear")],
    ids=repr,
)
def test_estimators_solve_general_weights_by_default(estimator, family, alpha):
    X, y = make_moons(60, noise=0.3, random_state=0)
    model = type(estimator)(**estimator.get_params())
    model.set_params(weights=family, alpha=alpha, mip_gap=1e-3).fit(X, y)
    assert not model.convex_
    assert model.status_ == "optimal"
    assert model.gap_ <= 1e-3
    assert model.lower_bound_ <= model.objective_
    signs = np.where(y == 1, 1.0, -1.0)
    deviations = np.sort(np.maximum(0.0, 1.0 - signs * model.decision_function(X)))
    dual = np.zeros(60)
    dual[model.support_] = model.dual_coef_[0]
    gram = rbf_kernel(X, gamma=1.0) if getattr(model, "kernel", None) == "rbf" else X @ X.T
    expected = 0.5 * dual @ gram @ dual + model.owa_weights_ @ deviations
    assert model.objective_ == pytest.approx(expected, rel=1e-9)


def test_real_data(ionosphere):
    X, y = ionosphere
    for family, alpha, C in [("quadratic", 0.4, 1.0), ("trigonometric", 0.8, 2.0**-7)]:
        model = OWASVC(C, weights=family, alpha=alpha, gamma=2.0).fit(X[:120], y[:120])
        assert model.status_ == "optimal"
        assert model.gap_ <= 1e-4


# Keep or trim


@pytest.mark.parametrize("kind", ["trimmed", "falling", "quadratic"])
@pytest.mark.parametrize("seed", range(4))
def test_shares_find_the_optimum_of_all_orders(kind, seed):
    rng = np.random.default_rng(seed)
    X, y = noisy_data(6, 2, seed=seed)
    weights = {
        "trimmed": np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]),
        "falling": np.sort(rng.exponential(size=6))[::-1].copy(),
        "quadratic": np.array([1.0, 0.7, 0.4, 0.3, 0.5, 0.9]),
    }[kind]
    problem = OWAProblem(y, RankCosts(6, weights, None, 2.0), features=X)
    expected = enumerate_owa_svm(X, y, problem.costs.ascending, 1.0).objective
    search = Search(problem, Settings(mip_gap=1e-7))
    tree = Tree(search, ShareBranching(search))
    assert tree.grow(10_000) is Status.OPTIMAL
    assert search.incumbent.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert search.bound <= expected * (1 + 1e-7)


def test_share_intervals_allow_the_same_assignments_after_propagation():
    rng = np.random.default_rng(0)
    n_samples = 5
    X, y = noisy_data(n_samples)
    costs = RankCosts(n_samples, np.array([3.0, 2.0, 2.0, 1.0, 1.0]), None, 1.0)
    problem = OWAProblem(y, costs, features=X)
    shares = ShareBranching(Search(problem, Settings()))
    classes = [0, 0, 1, 1, 2]

    def assignments(lowest, highest):
        return {
            order
            for order in itertools.permutations(classes)
            if np.all(lowest <= order) and np.all(highest >= order)
        }

    n_impossible = n_tighter = 0
    for _ in range(300):
        lowest = rng.integers(0, 3, n_samples)
        highest = np.maximum(lowest, rng.integers(0, 3, n_samples))
        before = assignments(lowest, highest)
        new_lowest, new_highest = lowest.copy(), highest.copy()
        if shares._propagate(new_lowest, new_highest):
            assert assignments(new_lowest, new_highest) == before
            n_tighter += bool(np.any(new_lowest > lowest) or np.any(new_highest < highest))
        else:
            assert not before
            n_impossible += 1
    assert n_impossible > 10 and n_tighter > 10


def test_trimming_is_proven_for_more_samples_than_assignments_can_be_listed():
    problem = noisy_problem(40, "trimmed", 0.1, C=1.0, seed=2)
    assert log_assignments(problem.costs.ascending) > math.log(9e4)
    solution = solve(problem, "branch-and-bound", options={"max_nodes": 20_000})
    assert solution.status is Status.OPTIMAL
    # No choice of trimmed samples beats it: the best of many is not better.
    rng = np.random.default_rng(0)
    X, y = problem.features, problem.y
    C = float(problem.costs.ascending[0])
    for _ in range(50):
        kept = rng.permutation(40)[:36]
        svc = SVC(kernel="linear", C=C, tol=1e-6).fit(X[kept], y[kept])
        coef = svc.coef_.ravel()
        slack = np.sort(np.maximum(0.0, 1.0 - y * (X @ coef + svc.intercept_)))
        value = 0.5 * coef @ coef + float(problem.costs.ascending @ slack)
        assert value >= solution.lower_bound


@pytest.mark.parametrize("seed", [0, 3])
def test_two_trees_take_turns_on_few_samples(monkeypatch, seed):
    by_coordinates(monkeypatch)
    tune_tree(monkeypatch, coordinates_first=3, then_shares=4)
    problem = noisy_problem(12, "quadratic", 0.8, C=2.0, seed=seed)
    seen = []
    turns = solve(
        problem,
        "branch-and-bound",
        callback=lambda info: seen.append(info),
        options={"max_nodes": 40},
    )
    assert turns.n_iter == 40
    tune_tree(monkeypatch, then_shares=5000)
    alone = solve(problem, "branch-and-bound", options={"max_nodes": 5000})
    assert alone.status is Status.OPTIMAL
    assert turns.lower_bound <= alone.objective * (1 + 1e-9)
    assert turns.objective >= alone.lower_bound * (1 - 1e-9)
    assert [info["n_iter"] for info in seen] == sorted(info["n_iter"] for info in seen)
    bounds = np.array([info["lower_bound"] for info in seen])
    assert np.all(np.diff(bounds) >= -1e-9 * abs(turns.objective))


def relay(monkeypatch, **changes):
    """Branch and bound whose trees take over at other times; the relaxations that were chosen."""
    tuning = branch_and_bound.TUNING
    tuning = replace(tuning, relay=replace(tuning.relay, **changes))
    monkeypatch.setattr(branch_and_bound, "TUNING", tuning)
    choices = []
    choose = relay_module.choose_relaxation

    def note(*arguments):
        choices.append(choose(*arguments))
        return choices[-1]

    monkeypatch.setattr(relay_module, "choose_relaxation", note)
    return choices


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_trees_that_take_over_prove_nothing_wrong(monkeypatch, gamma):
    problem = noisy_problem(66, "quadratic", 0.8, C=2.0, gamma=gamma)
    alone = solve(problem, "dca", options={"n_init": 3})
    choices = relay(monkeypatch, first_turn=8, near_limit=np.inf, worth=np.inf)
    seen = []
    limits = {"mip_gap": 1e-6, "options": {"max_nodes": 24}}
    relayed = solve(problem, "branch-and-bound", callback=seen.append, **limits)
    assert len(choices) == 3
    assert relayed.status is Status.NODE_LIMIT and relayed.n_iter == 24
    assert relayed.lower_bound <= alone.objective * (1 + 1e-9)
    bounds = np.array([info["lower_bound"] for info in seen])
    assert np.all(np.diff(bounds) >= 0.0)


def test_a_tree_makes_way_only_for_a_better_relaxation_and_only_near_its_limit(monkeypatch):
    problem = noisy_problem(80, "quadratic", 0.8, C=2.0)
    limits = {"mip_gap": 1e-6, "options": {"max_nodes": 40}}
    hopeful = relay(monkeypatch, first_turn=8, near_limit=0.0)
    from_one_tree = solve(problem, "branch-and-bound", **limits)
    assert len(hopeful) == 1
    particular = relay(monkeypatch, first_turn=8, near_limit=np.inf, worth=0.0)
    again = solve(problem, "branch-and-bound", **limits)
    assert len(particular) == 2
    assert again.lower_bound == from_one_tree.lower_bound


def test_relaxations_lack_no_less_at_more_places():
    problem = noisy_problem(60, "quadratic", 0.8, C=2.0, gamma=0.5)
    search = Search(problem, Settings())
    search.minorants.improve()
    search.accept(search.minorants.best.candidate)
    choice = choose_relaxation(search, 1.0)
    rng = np.random.default_rng(0)
    coefs = rng.uniform(0.0, 0.1, size=(3, 60))
    places = [evaluate(problem, coef, rng.normal()) for coef in coefs]
    lacking = [choice.lacking(search, places[:number]) for number in range(4)]
    assert np.all(np.diff(lacking) >= 0.0)
    fitted = choose_relaxation(search, 1.0, places)
    assert fitted.lacking(search, places) <= lacking[-1]


@pytest.mark.parametrize(
    ("weights", "alpha", "where"),
    [
        ("quadratic", 0.8, (relay_module, "choose_relaxation")),
        ("trimmed", 0.3, (branch_and_bound, "explore")),
    ],
)
def test_ctrl_c_before_the_first_node_claims_no_more_than_the_minorant(
    monkeypatch, weights, alpha, where
):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(*where, interrupted)
    problem = noisy_problem(20, weights, alpha, C=2.0, seed=1)
    with pytest.raises(KeyboardInterrupt) as stop:
        solve(problem, "branch-and-bound")
    solution = stop.value.solution
    assert solution.status is Status.INTERRUPTED
    assert solution.lower_bound == pytest.approx(solution.details["minorant_bound"])
    assert solution.gap > 1e-4


@pytest.mark.parametrize(
    ("weights", "alpha", "n_searches"), [("quadratic", 0.4, 0), ("trimmed", 0.3, 1)]
)
def test_a_search_comes_before_the_tree_only_where_much_can_be_gained(
    monkeypatch, weights, alpha, n_searches
):
    searches = []
    monkeypatch.setattr(
        branch_and_bound, "explore", lambda search, _: iter(searches.append(search) or ())
    )
    problem = noisy_problem(100, weights, alpha, C=2.0, seed=1)
    solution = solve(problem, "branch-and-bound", mip_gap=1e-9, options={"max_nodes": 2})
    assert len(searches) == n_searches
    assert solution.gap > 1e-9


def test_random_state_moves_the_noise_and_nothing_else():
    # Trimming many samples: shaken descents come before the tree.
    problem = noisy_problem(30, "trimmed", 0.3, C=2.0, seed=1)
    options = {"max_nodes": 40}
    default = solve(problem, options=options)
    for state in (0, 1, 7):
        one, other = (solve(problem, options=options, random_state=state) for _ in range(2))
        np.testing.assert_array_equal(one.dual, other.dual)
        assert (one.objective, one.lower_bound) == (other.objective, other.lower_bound)
        drawn = solve(problem, options=options, random_state=np.random.RandomState(state))
        for solution in (one, drawn):
            assert solution.lower_bound <= default.objective * (1 + 1e-9)
            assert default.lower_bound <= solution.objective * (1 + 1e-9)
            proof = recomputed(problem, solution)
            assert proof.objective == pytest.approx(solution.objective, rel=1e-9)
    same = solve(problem, options=options, random_state=0)
    np.testing.assert_array_equal(same.dual, default.dual)
