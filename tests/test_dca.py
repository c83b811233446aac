"""Local solutions for general weights: descent, minorants, limits, copies."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from owasvm.optimality import objective
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import Settings, newton, solve
from owasvm.solvers.general import descent
from owasvm.solvers.general.candidates import evaluate, improve_intercept
from owasvm.solvers.general.descent import descend, find_starts, shake
from owasvm.solvers.general.rank_split import tail_sums
from owasvm.solvers.general.search import Search
from tests.oracles import enumerate_owa_svm, primal_objective, psd_factor
from tests.strategies import classification_problems, general_weights, penalties

FAMILIES = [
    ("quadratic", 0.8),
    ("trigonometric", 0.4),
    ("trigonometric", 0.8),
    ("trimmed", 0.2),
    ("olympic", 0.5),
]


def noisy_data(n_samples, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def noisy_problem(n_samples, family="quadratic", alpha=0.8, C=1.0, seed=0, kernel=False):
    X, y = noisy_data(n_samples, seed=seed)
    costs = RankCosts(n_samples, family, alpha, C)
    if kernel:
        return OWAProblem(y, costs, gram=rbf_kernel(X, gamma=0.3))
    return OWAProblem(y, costs, features=X)


def objective_at(problem, dual, intercept):
    """The objective of a classifier, from the data alone."""
    scores = problem.scores(dual)
    # Coefficients that cancel leave rounding of either sign; a squared norm has one only.
    squared_norm = max(float((problem.y * dual) @ scores), 0.0)
    return objective(problem, squared_norm, scores, intercept)[0]


def majorant_at(problem, task, coef, intercept):
    """What a convex step minimises, with its constant: the tangents touch at slack 0."""
    scores = problem.scores(coef)
    margins = problem.y * (scores + intercept)
    value = 0.5 * float((problem.y * coef) @ scores) + task.loss.value(1.0 - margins)
    return value if task.linear is None else value - float(task.linear @ (1.0 - margins))


@pytest.fixture
def convex_steps(monkeypatch):
    """Every convex step of a descent: its task and the classifier it starts from."""
    steps = []
    majorise = descent._majorise

    def watched(search, current):
        steps.append((majorise(search, current), current))
        return steps[-1][0]

    monkeypatch.setattr(descent, "_majorise", watched)
    return steps


@pytest.mark.parametrize(("family", "alpha"), FAMILIES)
@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("start", ["nothing", "few deviations"])
def test_every_step_minimises_a_majorant(convex_steps, family, alpha, kernel, start):
    rng = np.random.default_rng(0)
    problem = noisy_problem(30, family, alpha, kernel=kernel)
    if start == "nothing":
        first = evaluate(problem, np.zeros(30), 0.3)
    else:
        # More ranks whose entries may be negative than samples that deviate.
        easy = replace(problem, y=np.where(problem.scores(problem.y) > 0, 1.0, -1.0))
        problem = replace(easy, costs=RankCosts(30, family, alpha, 0.01))
        longer = (evaluate(problem, np.full(30, size), 0.0) for size in np.geomspace(0.01, 10, 60))
        first = next(one for one in longer if np.count_nonzero(one.deviations) <= 5)
        assert first.deviations.any()
    reached = list(descend(Search(problem, Settings()), first))
    assert len(reached) >= 1
    # Olympic weights rise by more than they keep: what falls is negative.
    assert any(task.linear is not None for task, _ in convex_steps) == (family == "olympic")
    for task, current in convex_steps:
        touching = majorant_at(problem, task, current.coef, current.intercept)
        assert touching == pytest.approx(current.objective, rel=1e-10)
        for _ in range(20):
            coef = current.coef + 10.0 ** rng.uniform(-3, 0) * rng.normal(size=30)
            intercept = current.intercept + rng.normal()
            value = objective_at(problem, coef, intercept)
            assert majorant_at(problem, task, coef, intercept) >= value - 1e-9 * max(1.0, value)
    for (task, current), found in zip(convex_steps, reached, strict=False):
        new = majorant_at(problem, task, found.coef, found.intercept)
        assert found.objective <= new + 1e-9 * max(1.0, new)
        assert new <= current.objective + 1e-9 * max(1.0, new)


@settings(max_examples=60)
@given(
    data=classification_problems(max_samples=25, max_features=4),
    C=penalties(-6, 6),
    kernel=st.booleans(),
    seed=st.integers(0, 99),
    draw=st.data(),
)
def test_objective_never_rises_along_descent(data, C, kernel, seed, draw):
    X, y = data
    rng = np.random.default_rng(seed)
    family = draw.draw(st.sampled_from([*FAMILIES, None]))
    weights, alpha = (draw.draw(general_weights(y.size)), None) if family is None else family
    costs = RankCosts(y.size, weights, alpha, C)
    if kernel:
        scale = max(np.abs(X).max(), 1e-12)
        problem = OWAProblem(y, costs, gram=rbf_kernel(X / scale, gamma=2.0))
    else:
        problem = OWAProblem(y, costs, features=X)
    size = C * rng.random() / max(1.0, float(np.mean(np.square(X))))
    start = evaluate(problem, size * rng.random(y.size), rng.normal())
    last = start.objective
    for candidate in descend(Search(problem, Settings()), start):
        assert candidate.objective < last
        expected = objective_at(problem, candidate.coef, candidate.intercept)
        assert candidate.objective == pytest.approx(expected, rel=1e-9, abs=1e-12)
        last = candidate.objective


@pytest.mark.parametrize(("family", "alpha"), FAMILIES)
def test_descent_ends_where_it_would_end_again(family, alpha):
    problem = noisy_problem(40, family, alpha, C=0.5)
    search = Search(problem, Settings())
    start = evaluate(problem, np.zeros(40), 0.2)
    end = [start, *descend(search, start)][-1]
    assert end.objective < start.objective
    again = [end, *descend(search, end)][-1]
    assert again.objective == pytest.approx(end.objective, rel=1e-6)


@pytest.mark.parametrize(("family", "alpha"), [*FAMILIES, ("random", None)])
@pytest.mark.parametrize("C", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("kernel", [False, True])
def test_bound_is_below_everything_known(family, alpha, C, kernel):
    rng = np.random.default_rng(1)
    X, y = noisy_data(5, 2, seed=5)
    weights = rng.exponential(size=5) if family == "random" else family
    costs = RankCosts(5, weights, alpha, C)
    gram = rbf_kernel(X, gamma=0.5) if kernel else None
    problem = OWAProblem(y, costs, features=None if kernel else X, gram=gram)
    solution = solve(problem, "dca")
    scale = max(1.0, solution.objective)
    best = enumerate_owa_svm(X if gram is None else psd_factor(gram), y, costs.ascending / C, C)
    assert solution.lower_bound <= best.objective + 1e-8 * scale
    assert solution.objective >= best.objective - 1e-8 * scale
    assert solution.status is (Status.OPTIMAL if solution.gap <= 1e-4 else Status.LOCAL)
    expected = objective_at(problem, solution.dual, solution.intercept)
    assert solution.objective == pytest.approx(expected, rel=1e-12)


@settings(max_examples=40)
@given(data=classification_problems(max_samples=15), seed=st.integers(0, 999), draw=st.data())
def test_bound_is_below_random_classifiers(data, seed, draw):
    X, y = data
    weights = draw.draw(general_weights(y.size))
    rng = np.random.default_rng(seed)
    solution = solve(OWAProblem(y, RankCosts(y.size, weights, None, 2.0), features=X), "dca")
    assert solution.lower_bound <= solution.objective * (1 + 1e-12)
    for _ in range(20):
        coef = solution.coef * rng.choice([0.0, 0.5, 1.0, -1.0])
        coef = coef + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=coef.size)
        value = primal_objective(X, y, weights, 2.0, coef, solution.intercept + rng.normal())
        assert solution.lower_bound <= value + 1e-9 * max(1.0, value)


@pytest.mark.parametrize(("family", "alpha"), FAMILIES)
def test_minorants_only_improve_the_bound(family, alpha):
    problem = noisy_problem(30, family, alpha, C=3.0)
    costs = problem.costs.ascending
    local = solve(problem, "dca")
    minorants = Search(problem, Settings()).minorants
    bounds = [minorants.bound]
    for _ in range(7):
        more = minorants.improve()
        bounds.append(minorants.bound)
        if not more:
            break
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] <= local.objective * (1 + 1e-9)
    assert len(minorants.solved) >= 1
    for bound in minorants.solved:
        assert np.all(np.diff(bound.minorant) >= -1e-12)
        assert np.all(tail_sums(bound.minorant) <= tail_sums(costs) + 1e-10 * costs.sum())


def test_better_minorants_exist():
    # Pointwise, the cheapest rank prices all below it.
    problem = noisy_problem(40, "quadratic", 0.8)
    minorants = Search(problem, Settings()).minorants
    minorants.improve()
    first = minorants.bound
    while minorants.improve():
        pass
    assert minorants.bound > first + 1e-3


def test_intercepts_and_starts_are_sorted_out():
    problem = noisy_problem(40, "trigonometric", 0.8)
    rng = np.random.default_rng(0)
    for _ in range(20):
        candidate = evaluate(problem, 0.1 * rng.random(40), 3.0 * rng.normal())
        better = improve_intercept(problem, candidate)
        assert better.objective <= candidate.objective
        expected = objective_at(problem, better.coef, better.intercept)
        assert better.objective == pytest.approx(expected)
    search = Search(problem, Settings())
    search.minorants.improve()
    starts = find_starts(search)
    assert len(starts) == 3
    assert np.all(np.diff([start.objective for start in starts]) >= 0.0)
    # Samples all on one side are among the starts: for some weights that is the optimum.
    assert any(not start.coef.any() for start in starts)


def test_convex_weights_are_solved_exactly():
    X, y = noisy_data(60)
    problem = OWAProblem(y, RankCosts(60, "basic", 0.4, 2.0), features=X)
    local, exact = solve(problem, "dca"), solve(problem, "newton")
    assert local.status is Status.OPTIMAL
    assert local.solver == "dca"
    assert local.objective == pytest.approx(exact.objective, rel=1e-9)
    assert local.gap <= 1e-6


def test_nothing_depends_on_chance():
    problem = noisy_problem(50, "quadratic", 0.8, C=4.0, kernel=True)
    one, other = solve(problem, "dca"), solve(problem, "dca")
    np.testing.assert_array_equal(one.dual, other.dual)
    assert one.intercept == other.intercept
    assert (one.objective, one.lower_bound) == (other.objective, other.lower_bound)


# Limits


@pytest.fixture
def slow_problem():
    """A problem whose descent takes several steps and ends with a gap."""
    problem = noisy_problem(80, "quadratic", 0.8, C=8.0, seed=3, kernel=True)
    solution = solve(problem, "dca")
    assert solution.status is Status.LOCAL
    assert solution.n_iter >= 3
    assert solution.gap > 1e-4
    return problem


def test_limits_keep_a_valid_point(slow_problem):
    full = solve(slow_problem, "dca")
    stopped = solve(slow_problem, "dca", max_iter=1)
    assert stopped.status is Status.LOCAL
    assert stopped.lower_bound <= full.objective
    timed = solve(slow_problem, "dca", time_limit=1e-9)
    assert timed.solve_time < 2.0
    assert timed.status is Status.TIME_LIMIT
    assert 0.0 <= timed.lower_bound <= full.objective <= timed.objective * (1 + 1e-9)
    wide = solve(slow_problem, "dca", mip_gap=0.5)
    assert wide.status is Status.OPTIMAL


def test_callback_sees_progress_and_can_stop(slow_problem):
    seen = []
    full = solve(slow_problem, "dca", callback=seen.append)
    assert len(seen) >= 2
    assert all({"n_iter", "objective", "lower_bound", "gap", "time"} <= set(info) for info in seen)
    objectives = [info["objective"] for info in seen]
    assert np.all(np.diff(objectives) <= 0.0)
    assert full.objective <= objectives[-1] * (1 + 1e-12)
    assert all(info["lower_bound"] <= full.objective for info in seen)
    halted = solve(slow_problem, "dca", callback=lambda _: False)
    assert halted.status is Status.INTERRUPTED
    assert halted.n_iter == 1
    assert halted.objective == pytest.approx(objectives[0])


def test_interrupt_keeps_the_incumbent(slow_problem):
    seen = []

    def press(info):
        seen.append(info)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        solve(slow_problem, "dca", callback=press)
    solution = stop.value.solution
    assert solution.status is Status.INTERRUPTED
    assert solution.objective == pytest.approx(seen[-1]["objective"])
    expected = objective_at(slow_problem, solution.dual, solution.intercept)
    assert solution.objective == pytest.approx(expected, rel=1e-12)
    assert 0.0 < solution.lower_bound <= solution.objective


def test_verbose_speaks_through_the_logger(slow_problem, caplog):
    with caplog.at_level(logging.DEBUG, logger="owasvm"):
        solve(slow_problem, "dca", verbose=2)
    assert any("lower bound" in message for message in caplog.messages)
    assert any(message.startswith("dca: local") for message in caplog.messages)


def test_warm_start_changes_nothing_but_the_way(slow_problem):
    cold = solve(slow_problem, "dca")
    warm = solve(slow_problem, "dca", warm_start=cold)
    assert warm.lower_bound == pytest.approx(cold.lower_bound, rel=1e-5)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-2)


# Sample weights


@pytest.mark.parametrize(
    ("solver", "family", "alpha"),
    [("dca", *family) for family in FAMILIES]
    + [("branch-and-bound", *family) for family in FAMILIES[:3]],
)
def test_whole_numbers_are_copies(solver, family, alpha):
    X, y = noisy_data(12, 2)
    counts = np.random.default_rng(0).integers(1, 4, size=12)
    weighted = RankCosts(12, family, alpha, 0.1, sample_weight=counts.astype(float))
    repeated = RankCosts(int(counts.sum()), family, alpha, 0.1)
    limits = {"mip_gap": 1e-3, "options": None if solver == "dca" else {"max_nodes": 150}}
    one = solve(OWAProblem(y, weighted, features=X), solver, **limits)
    copies = OWAProblem(np.repeat(y, counts), repeated, features=np.repeat(X, counts, axis=0))
    other = solve(copies, solver, **limits)
    assert one.dual.shape == (12,)
    assert one.objective == pytest.approx(other.objective, rel=1e-6)
    # The classifier costs what it is said to cost, by the costs of the weighted samples.
    problem = OWAProblem(y, weighted, features=X)
    expected = objective_at(problem, one.dual, one.intercept)
    assert one.objective == pytest.approx(expected, rel=1e-9)
    assert one.coef == pytest.approx(X.T @ (y * one.dual), abs=1e-9)
    assert one.lower_bound <= other.objective * (1 + 1e-9)


@pytest.mark.parametrize("kernel", [False, True])
def test_proportions_count(kernel):
    X, y = noisy_data(20, 2)
    mass = np.where(np.arange(20) % 3 == 0, 1.5, 1.0)
    gram = rbf_kernel(X, gamma=0.5) if kernel else None
    features = None if kernel else X
    halves = RankCosts(20, "quadratic", 0.8, 2.0, sample_weight=mass)
    wholes = RankCosts(20, "quadratic", 0.8, 1.0, sample_weight=2.0 * mass)
    one = solve(OWAProblem(y, halves, features, gram), "dca")
    other = solve(OWAProblem(y, wholes, features, gram), "dca")
    assert one.objective == pytest.approx(other.objective, rel=1e-7)
    equal = RankCosts(20, "quadratic", 0.8, 2.0, sample_weight=np.full(20, 0.3))
    plain = RankCosts(20, "quadratic", 0.8, 0.6)
    one = solve(OWAProblem(y, equal, features, gram), "dca")
    other = solve(OWAProblem(y, plain, features, gram), "dca")
    assert one.objective == pytest.approx(other.objective, rel=1e-7)
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-6)


def hard_to_descend(seed):
    """A problem with many local solutions, and one of them."""
    rng = np.random.default_rng([39, seed])
    X = rng.normal(size=(18, 5))
    y = np.where(X[:, 0] + rng.normal(size=18) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    weights = np.sort(rng.exponential(size=18))[::-1].copy()
    problem = OWAProblem(y, RankCosts(18, weights, None, 1.0), features=X)
    return problem, solve(problem, "dca", options={"n_init": 1})


def shake_from(problem, local, random_state=None, n_trials=10):
    """The best of some shaken descents from a local solution."""
    search = Search(problem, Settings(random_state=random_state))
    search.accept(evaluate(problem, local.dual, local.intercept))
    shake(search, n_trials)
    return search.incumbent


def test_shaken_descents_never_lose_and_can_win():
    n_won = 0
    for seed in range(6):
        problem, local = hard_to_descend(seed)
        best = shake_from(problem, local, n_trials=30)
        assert best.objective <= local.objective * (1 + 1e-12)
        assert best.objective >= local.lower_bound - 1e-9
        n_won += best.objective < local.objective * (1 - 1e-4)
    assert n_won >= 2


def test_noise_follows_random_state():
    differ = 0
    for seed in range(2):
        problem, local = hard_to_descend(seed)
        default = shake_from(problem, local)
        assert shake_from(problem, local).objective == default.objective
        for state in (1, 2):
            one, other = (shake_from(problem, local, state) for _ in range(2))
            np.testing.assert_array_equal(one.coef, other.coef)
            again = shake_from(problem, local, np.random.RandomState(state))
            assert again.objective >= local.lower_bound - 1e-9
            expected = objective_at(problem, one.coef, one.intercept)
            assert one.objective == pytest.approx(expected, rel=1e-9)
            differ += not np.array_equal(one.coef, default.coef)
    assert differ >= 2


def test_max_iter_limits_the_newton_steps_of_every_convex_problem(slow_problem, monkeypatch):
    limits = []
    minimise = newton.minimise

    def watched(task, start, accuracy, max_iter, clock):
        limits.append(max_iter)
        return minimise(task, start, accuracy, max_iter, clock)

    monkeypatch.setattr(newton, "minimise", watched)
    solve(slow_problem, "dca", max_iter=7)
    assert set(limits) == {7}
