"""The search for good local solutions: exchanges, trails, effort, limits, the default."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC
from owasvm.path import fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import Settings, solve
from owasvm.solvers.automatic import choose_solver
from owasvm.solvers.clock import Clock
from owasvm.solvers.general import exploration
from owasvm.solvers.general.exchange import retrain
from owasvm.solvers.general.exploration import Explorer
from owasvm.solvers.general.tuning import ExplorationTuning
from tests.oracles import enumerate_owa_svm, psd_factor
from tests.test_dca import noisy_data, noisy_problem, objective_at

FALLING = [("trimmed", 0.2), ("olympic", 0.5), ("quadratic", 0.8), ("trigonometric", 0.8)]


# Exchanges


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_exchanges_solve_classical_svms_from_anywhere(C, seed):
    rng = np.random.default_rng(seed)
    X, y = noisy_data(60, seed=seed)
    gram = rbf_kernel(X, gamma=0.5)
    costs = C * rng.random(60)
    costs[rng.permutation(60)[:20]] = 0.0
    kept = costs > 0.0
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8)
    svc.fit(gram[np.ix_(kept, kept)], y[kept], sample_weight=costs[kept])
    expected = np.zeros(60)
    expected[np.flatnonzero(kept)[svc.support_]] = svc.dual_coef_.ravel()
    for start in (np.zeros(60), rng.normal(size=60)):
        coef, residual = start.copy(), y - gram @ start
        given = gram, y, costs, coef, residual, 1e-7, 10**6
        intercept, is_accurate, n_values = retrain(*given, np.empty_like(gram))
        assert is_accurate
        assert n_values > 0
        assert coef == pytest.approx(expected, abs=1e-4 * C)
        assert intercept == pytest.approx(svc.intercept_[0], abs=1e-4)
        assert residual == pytest.approx(y - gram @ coef, abs=1e-9 * max(C, 1.0))
        assert coef.sum() == pytest.approx(0.0, abs=1e-12 * max(C, 1.0))
        assert np.all(y * coef >= 0.0) and np.all(y * coef <= costs)


@pytest.mark.parametrize("gram", [np.zeros((4, 4)), np.ones((4, 4)), np.full((4, 4), np.nan)])
def test_exchanges_end_on_degenerate_data(gram):
    y = np.array([1.0, -1.0, 1.0, -1.0])
    for costs in (np.ones(4), np.zeros(4), np.array([1.0, 0.0, 1.0, 0.0])):
        coef = np.zeros(4)
        retrain(gram, y, costs, coef, y - gram @ coef, 1e-3, 1000, np.empty_like(gram))
        assert np.all(np.abs(coef) <= 1.0)


def test_ranks_of_explored_samples_are_those_among_all():
    problem = noisy_problem(80, "trimmed", 0.2, kernel=True)
    settings = Settings()
    tuning = ExplorationTuning(max_samples=30)
    explorer = Explorer(problem, Clock.start(settings), tuning)
    place = explorer.follow_trail((1.0,), np.random.default_rng(0), [])
    found = explorer.classifier(place)
    assert np.count_nonzero(found.coef) <= 30
    assert place.objective == pytest.approx(found.objective, rel=1e-9)
    every = Explorer(problem, Clock.start(settings), ExplorationTuning())
    place = every.follow_trail((0.1, 1.0), np.random.default_rng(0), [])
    assert place.objective == pytest.approx(every.classifier(place).objective, rel=1e-9)


# Effort


@pytest.mark.parametrize(("family", "alpha"), FALLING)
@pytest.mark.parametrize("kernel", [False, True])
def test_more_descents_never_end_higher(family, alpha, kernel):
    problem = noisy_problem(60, family, alpha, C=10.0, kernel=kernel, seed=4)
    found = [solve(problem, "dca", options={"n_init": number}) for number in (1, 2, 4, 8)]
    objectives = [solution.objective for solution in found]
    assert np.all(np.diff(objectives) <= 0.0)
    for solution in found:
        expected = objective_at(problem, solution.dual, solution.intercept)
        assert solution.objective == pytest.approx(expected, rel=1e-12)
        assert solution.lower_bound <= objectives[-1]
        assert solution.status in (Status.LOCAL, Status.OPTIMAL)


def test_search_finds_what_one_descent_misses():
    n_better = 0
    for seed in range(4):
        problem = noisy_problem(80, "trimmed", 0.15, C=10.0, kernel=True, seed=seed)
        one = solve(problem, "dca", options={"n_init": 1})
        n_better += solve(problem, "dca").objective < 0.95 * one.objective
    assert n_better >= 2


@pytest.mark.parametrize("family", ["trimmed", "olympic"])
def test_search_depends_on_the_seed_alone(family):
    problem = noisy_problem(60, family, 0.4, C=10.0, kernel=True)
    default = solve(problem, "dca")
    for state in (None, 0):
        again = solve(problem, "dca", random_state=state)
        np.testing.assert_array_equal(again.dual, default.dual)
        assert again.intercept == default.intercept
    one, other = (
        solve(problem, "dca", random_state=np.random.RandomState(3)).dual for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kernel", [False, True])
def test_search_reaches_the_optimum_of_tiny_problems(seed, kernel):
    family, alpha = FALLING[seed % len(FALLING)]
    X, y = noisy_data(6, 2, seed=seed)
    C = [0.1, 1.0, 20.0][seed % 3]
    costs = RankCosts(6, family, alpha, C)
    gram = rbf_kernel(X, gamma=0.5) if kernel else None
    problem = OWAProblem(y, costs, features=None if kernel else X, gram=gram)
    best = enumerate_owa_svm(X if gram is None else psd_factor(gram), y, costs.ascending / C, C)
    found = solve(problem, "dca")
    assert found.objective == pytest.approx(best.objective, rel=1e-5, abs=1e-7)
    assert found.lower_bound <= best.objective * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("value", [0, 2.5, "many"])
def test_number_of_descents_is_a_whole_number(value):
    with pytest.raises(ValueError, match="n_init must be a whole number"):
        solve(noisy_problem(10), "dca", options={"n_init": value})


def test_solutions_of_neighbours_are_starts():
    problem = noisy_problem(70, "trimmed", 0.2, C=10.0, kernel=True)
    good = solve(problem, "dca", options={"n_init": 20})
    warm = solve(problem, "dca", warm_start=good, options={"n_init": 2})
    assert warm.objective <= good.objective * (1 + 1e-9)
    path = fit_path(
        *noisy_data(70), Cs=[1.0, 10.0], weights="trimmed", alphas=0.2, gamma=0.3, kernel="rbf"
    )
    assert np.all(path.lower_bounds <= path.objectives)


def test_samples_may_be_many_more_than_are_explored(monkeypatch):
    monkeypatch.setattr(
        exploration, "Explorer", lambda *given: Explorer(*given[:2], ExplorationTuning(40))
    )
    for family, alpha in FALLING:
        problem = noisy_problem(120, family, alpha, C=5.0)
        one = solve(problem, "dca", options={"n_init": 1})
        more = solve(problem, "dca", options={"n_init": 5})
        assert more.objective <= one.objective
        expected = objective_at(problem, more.dual, more.intercept)
        assert more.objective == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_copies", [0, 3])
def test_labels_that_are_signs_follow_their_samples(n_copies):
    X, y = noisy_data(70)
    X, y = np.concatenate((X, X[:n_copies])), np.concatenate((y, y[:n_copies]))
    given = {"weights": "trimmed", "alpha": 0.2, "C": 5.0, "gamma": 0.5}
    signs = OWASVC(**given).fit(X, y)
    names = OWASVC(**given).fit(X, np.where(y > 0.0, "yes", "no"))
    assert y.dtype == np.float64 and set(y) == {-1.0, 1.0}
    assert signs.objective_ == names.objective_
    np.testing.assert_array_equal(signs.decision_function(X), names.decision_function(X))


# Limits


@pytest.fixture
def searched_problem():
    return noisy_problem(120, "trimmed", 0.2, C=10.0, kernel=True)


def test_time_limit_during_the_search_keeps_the_incumbent(searched_problem):
    one = solve(searched_problem, "dca", options={"n_init": 1})
    stopped = solve(
        searched_problem, "dca", time_limit=max(3 * one.solve_time, 0.1), options={"n_init": 10**6}
    )
    assert stopped.status is Status.TIME_LIMIT
    assert stopped.objective <= one.objective
    assert stopped.lower_bound <= stopped.objective


def test_interrupt_during_the_search_keeps_the_incumbent(searched_problem, monkeypatch):
    one = solve(searched_problem, "dca", options={"n_init": 1})
    shake = Explorer.shake
    seen = []

    def press(self, place, n_trials, random):
        seen.append(place)
        if len(seen) == 5:
            raise KeyboardInterrupt
        return shake(self, place, n_trials, random)

    monkeypatch.setattr(Explorer, "shake", press)
    with pytest.raises(KeyboardInterrupt) as stop:
        solve(searched_problem, "dca")
    solution = stop.value.solution
    assert solution.status is Status.INTERRUPTED
    assert solution.objective <= one.objective
    expected = objective_at(searched_problem, solution.dual, solution.intercept)
    assert solution.objective == pytest.approx(expected, rel=1e-12)


def test_callback_sees_the_search_and_can_stop_it(searched_problem):
    seen = []
    solve(searched_problem, "dca", callback=seen.append)
    objectives = [info["objective"] for info in seen]
    assert np.all(np.diff(objectives) <= 0.0)
    one = solve(searched_problem, "dca", options={"n_init": 1})
    halted = solve(searched_problem, "dca", callback=lambda info: info["n_iter"] < one.n_iter)
    assert halted.status is Status.INTERRUPTED


# The default


def test_default_tries_a_proof_where_one_is_in_reach():
    def choose(n_samples, family, alpha, options=None, sample_weight=None):
        X, y = noisy_data(n_samples)
        costs = RankCosts(n_samples, family, alpha, sample_weight=sample_weight)
        return choose_solver(OWAProblem(y, costs, features=X), options)

    assert choose(900, "basic", 0.6)[0] == "newton"
    assert choose(20, "trimmed", 0.2) == ("branch-and-bound", {"max_nodes": 1000})
    assert choose(60, "trimmed", 0.2)[0] == "dca"
    assert choose(10, "olympic", 0.5) == ("branch-and-bound", {"max_nodes": 1000})
    # Nodes take longer, and prove less.
    assert choose(10, "olympic", 0.5, sample_weight=np.arange(1.0, 11.0))[0] == "dca"
    assert choose(60, "quadratic", 0.8) == ("branch-and-bound", {"max_nodes": 1000})
    assert choose(200, "quadratic", 0.8) == ("branch-and-bound", {"max_nodes": 100})
    assert choose(900, "quadratic", 0.8)[0] == "dca"
    assert choose(60, "trimmed", 0.2, {"max_nodes": 7}) == ("branch-and-bound", {"max_nodes": 7})
    assert choose(20, "trimmed", 0.2, {"n_init": 3}) == ("dca", {"n_init": 3})


def test_a_tree_that_is_given_up_is_no_worse_than_descent(monkeypatch):
    """Weights with zeros among them, few samples, a large C: 1 % and 7 % were lost once."""
    monkeypatch.setattr("owasvm.solvers.automatic._NODES_FEW", 20)
    rng = np.random.default_rng([11, 1106])
    rng.integers(3, 9), rng.integers(1, 4), rng.random()
    X = rng.normal(size=(8, 3))
    y = np.array([1, -1, -1, -1, 1, -1, 1, -1])
    weights = np.array([0.0, 0.1884, 1.0, 0.8276, 0.397, 0.0, 0.7155, 0.6233])
    found, descent = (
        OWASVC(C=256.0, kernel="linear", weights=weights, solver=solver).fit(X, y)
        for solver in ("auto", "dca")
    )
    assert found.status_ == "local"
    assert found.solution_.solver == "branch-and-bound"
    assert found.objective_ <= descent.objective_
    assert found.lower_bound_ >= descent.lower_bound_


@pytest.mark.parametrize("model", [OWASVC, LinearOWASVC])
def test_local_is_no_reason_to_warn(model, monkeypatch):
    X, y = noisy_data(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trimmed = model(weights="trimmed", alpha=0.2, C=5.0).fit(X, y)
        # A proof that does not succeed in the nodes it is given.
        monkeypatch.setattr("owasvm.solvers.automatic._NODES", 2)
        falling = model(weights="quadratic", alpha=0.8).fit(X, y)
    assert trimmed.status_ == falling.status_ == "local"
    assert trimmed.solution_.solver == "dca"
    assert falling.solution_.solver == "branch-and-bound"
    assert 0.0 <= trimmed.lower_bound_ <= trimmed.objective_
    assert 0.0 < falling.lower_bound_ <= falling.objective_
    assert trimmed.gap_ > 1e-4 and falling.gap_ > 1e-4
