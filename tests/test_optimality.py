"""Certificates, feasible dual points and the exact intercept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.intercept import best_intercept
from owasvm.loss import in_dual_set
from owasvm.optimality import certificate, dual_value, feasible_dual, judge, objective
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Solution, Status, relative_gap
from owasvm.solvers import solve
from owasvm.solvers.general.rank_split import pointwise_minorant
from owasvm.weights import owa_weights
from tests.oracles import cvxpy_owa_svm, owa_value
from tests.strategies import classification_problems, convex_weights, general_weights


def loss_at(intercept, scores, y, ascending):
    return owa_value(np.maximum(0.0, 1.0 - y * (scores + intercept)), ascending)


@settings(max_examples=60)
@given(data=classification_problems(max_samples=20), seed=st.integers(0, 99), draw=st.data())
def test_any_dual_point_gives_a_valid_bound(data, seed, draw):
    X, y = data
    weights = draw.draw(convex_weights(y.size))
    rng = np.random.default_rng(seed)
    problem = OWAProblem(y, RankCosts(y.size, weights, None, 2.0), features=X)
    wild = rng.normal(size=y.size) * 10.0 ** rng.integers(-3, 3)
    point = feasible_dual(problem, wild, rng.normal(size=y.size))
    assert in_dual_set(point, 2.0 * weights)
    assert abs(y @ point) <= 1e-12 * max(1.0, point.sum())
    optimum = cvxpy_owa_svm(X, y, weights, 2.0).objective
    assert dual_value(problem, point) <= optimum + 1e-8 * max(1.0, optimum)
    proof = judge(problem, wild, 0.0)
    assert proof.lower_bound <= optimum + 1e-8 * max(1.0, optimum)
    assert proof.objective >= optimum - 1e-8 * max(1.0, optimum)


def is_in_general_dual_set(point, costs):
    """Whether the j largest entries sum to at most the last j costs, for every j."""
    largest = np.cumsum(np.sort(point)[::-1])
    rounding = 1e-9 * max(1.0, costs.sum())
    return bool(
        np.all(point >= -1e-6 * rounding) and np.all(largest <= np.cumsum(costs[::-1]) + rounding)
    )


@settings(max_examples=60)
@given(data=classification_problems(max_samples=15), seed=st.integers(0, 99), draw=st.data())
def test_dual_set_of_general_weights(data, seed, draw):
    X, y = data
    costs = RankCosts(y.size, draw.draw(general_weights(y.size)), None, 3.0)
    problem = OWAProblem(y, costs, features=X)
    rng = np.random.default_rng(seed)
    wild = rng.normal(size=y.size) * 10.0 ** rng.integers(-3, 3)
    for slack in (None, rng.normal(size=y.size)):
        point = feasible_dual(problem, wild, slack)
        assert is_in_general_dual_set(point, costs.ascending)
        assert abs(y @ point) <= 1e-12 * max(1.0, point.sum())
        # What makes D(a) a bound: the ordered sum of any deviations is at least a'xi.
        for _ in range(10):
            deviations = rng.exponential(size=y.size) * (rng.random(y.size) < 0.7)
            assert point @ deviations <= owa_value(deviations, costs.ascending) * (1 + 1e-9) + 1e-9
        # A point of the set stays what it is.
        again = feasible_dual(problem, point, slack)
        np.testing.assert_allclose(again, point, rtol=1e-9, atol=1e-12 * max(1.0, point.max()))


def test_dual_set_of_general_weights_is_more_than_that_of_a_minorant():
    # Costs 3, 1, 2: the minorant 1, 1, 2 would allow a total of 4 only.
    y = np.array([1.0, -1.0, 1.0, -1.0])
    costs = RankCosts(4, [3.0, 1.0, 2.0, 2.0], None, 2.0)
    np.testing.assert_allclose(costs.ascending, [3.0, 1.0, 2.0, 2.0])
    problem = OWAProblem(y, costs, features=np.eye(4))
    inside = np.array([1.6, 1.7, 1.7, 1.6])
    assert is_in_general_dual_set(inside, costs.ascending)
    np.testing.assert_array_equal(feasible_dual(problem, inside), inside)
    assert inside.sum() > pointwise_minorant(costs.ascending).sum()
    outside = np.array([2.1, 2.1, 0.0, 0.0])
    np.testing.assert_allclose(feasible_dual(problem, outside), outside / 1.05)


@settings(max_examples=60)
@given(data=classification_problems(max_samples=15), seed=st.integers(0, 99), draw=st.data())
def test_bound_of_general_weights_is_below_every_objective(data, seed, draw):
    X, y = data
    weights = draw.draw(general_weights(y.size))
    rng = np.random.default_rng(seed)
    problem = OWAProblem(y, RankCosts(y.size, weights, None, 1.0), features=X)
    guess, intercept = 10.0 ** rng.uniform(-3, 1) * rng.random(y.size), rng.normal()
    proof = certificate(X, y, weights, 1.0, guess, intercept, alpha=None)
    verdict = judge(problem, guess, intercept)
    best = max(proof.lower_bound, verdict.lower_bound)
    assert min(verdict.objective, proof.objective) >= best
    for trial in range(20):
        w = rng.normal(size=X.shape[1]) * 10.0 ** rng.integers(-4, 2)
        value, _ = objective(problem, w @ w, X @ w, rng.normal() * (trial % 4))
        assert best <= value * (1 + 1e-12) + 1e-12


def test_classifier_of_general_weights_stays_what_it_is():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), np.tile([1.0, -1.0], 4)
    costs = RankCosts(8, "quadratic", 0.8, 2.0)
    problem = OWAProblem(y, costs, features=X)
    X[:, 0] += 2.0 * y
    # Neither balanced nor dual feasible, of either sign.
    coef = 0.05 + 0.1 * rng.normal(size=8)
    assert coef.min() < 0.0
    proof = judge(problem, coef, 0.1)
    np.testing.assert_array_equal(proof.dual, coef)
    assert proof.intercept == 0.1
    w = X.T @ (y * coef)
    deviations = np.maximum(0.0, 1.0 - y * (X @ w + 0.1))
    assert proof.objective == pytest.approx(0.5 * w @ w + owa_value(deviations, costs.ascending))


def test_bounds_for_general_weights_with_sample_weights():
    # Sets between the prefixes can be tighter than the prefixes: no more than these is claimed.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), np.tile([1.0, -1.0], 4)
    mass = 1.0 + rng.random(8)
    costs = RankCosts(8, "quadratic", 0.8, 1.0, mass)
    best = solve(OWAProblem(y, costs, features=X), mip_gap=1e-6)
    assert best.status == "optimal"
    for _ in range(200):
        dual = rng.exponential(size=8) * rng.choice([0.1, 1.0, 3.0])
        proof = certificate(X, y, "quadratic", 1.0, dual, 0.0, alpha=0.8, sample_weight=mass)
        assert 0.0 <= proof.lower_bound <= best.objective
    own = certificate(
        X, y, "quadratic", 1.0, best.dual, best.intercept, alpha=0.8, sample_weight=mass
    )
    assert own.lower_bound > 0.5 * best.objective


@settings(max_examples=80)
@given(seed=st.integers(0, 10_000), n_samples=st.integers(2, 30), ties=st.booleans(), d=st.data())
def test_intercept_is_a_minimiser(seed, n_samples, ties, d):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_samples)
    if ties:
        scores = np.round(scores)
    y = np.where(rng.random(n_samples) < 0.4, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    costs = RankCosts(n_samples, d.draw(convex_weights(n_samples)), None, 1.0)
    best = best_intercept(scores, y, costs, guess=rng.normal())
    value = loss_at(best, scores, y, costs.ascending)
    # h is convex and piecewise linear; its kinks are margins and ties of opposite labels.
    kinks = np.concatenate([y - scores, -0.5 * np.add.outer(scores, scores).ravel()])
    lowest = min(loss_at(b, scores, y, costs.ascending) for b in kinks)
    assert value <= lowest + 1e-12 * max(1.0, lowest)


def test_intercept_does_not_depend_on_the_guess():
    rng = np.random.default_rng(3)
    for trial in range(40):
        scores = rng.normal(size=25) * 10.0 ** rng.integers(-2, 3)
        y = np.where(rng.random(25) < 0.5, 1.0, -1.0)
        y[:2] = [1.0, -1.0]
        family = ("uniform", "basic", "superquantile")[trial % 3]
        costs = RankCosts(25, family, 0.4)
        answers = [best_intercept(scores, y, costs, guess) for guess in (-50.0, 0.0, 1e-3, 7.0)]
        assert np.ptp(answers) <= 1e-9 * max(1.0, np.abs(scores).max())


def test_midpoint_of_an_interval():
    # Uniform costs, perfectly separated scores: all b in [-1, 1] leave no deviation.
    scores, y = np.array([-2.0, 2.0]), np.array([-1.0, 1.0])
    assert best_intercept(scores, y, RankCosts(2, "uniform", None), 0.9) == pytest.approx(0.0)
    # One deviation of each class: the sum is constant on [-1, 1].
    scores = np.array([0.0, 0.0])
    assert best_intercept(scores, y, RankCosts(2, "uniform", None), -0.4) == pytest.approx(0.0)


def test_weighted_intercept_is_that_of_copies():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.normal(size=12)
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        y[:2] = [1.0, -1.0]
        counts = rng.integers(1, 4, size=12)
        weighted = RankCosts(12, "basic", 0.5, 1.0, sample_weight=counts.astype(float))
        copies = RankCosts(int(counts.sum()), "basic", 0.5, 1.0)
        one = best_intercept(scores, y, weighted)
        other = best_intercept(np.repeat(scores, counts), np.repeat(y, counts), copies)
        assert one == pytest.approx(other, abs=1e-9)


def test_certificate_takes_signed_and_unsigned_coefficients():
    X = np.array([[-1.0], [1.0], [0.5]])
    y = np.array([0, 1, 1])
    dual = np.array([0.4, 0.3, 0.1])
    signs = np.array([-1.0, 1.0, 1.0])
    one = certificate(X, y, "basic", 2.0, dual, 0.1)
    other = certificate(None, y, "basic", 2.0, signs * dual, 0.1, gram=X @ X.T)
    assert one.objective == pytest.approx(other.objective)
    assert one.lower_bound == pytest.approx(other.lower_bound)
    w = X.T @ (signs * dual)
    deviations = np.maximum(0.0, 1.0 - signs * (X @ w + 0.1))
    expected = 0.5 * w @ w + 2.0 * owa_weights(3, "basic", 0.6) @ np.sort(deviations)
    assert one.objective == pytest.approx(expected)


def test_certificate_errors():
    X, y = np.zeros((3, 1)), np.array([0, 1, 1])
    with pytest.raises(ValueError, match="needs y and dual"):
        certificate(X)
    with pytest.raises(ValueError, match="one entry per sample"):
        certificate(X, y, "basic", 1.0, [1.0])
    with pytest.raises(ValueError, match="two classes"):
        certificate(X, [1, 1, 1], "basic", 1.0, [1.0, 1.0, 1.0])


def test_problem_checks_itself():
    y = np.array([-1.0, 1.0])
    costs = RankCosts(2)
    with pytest.raises(ValueError, match="either features or gram"):
        OWAProblem(y, costs)
    with pytest.raises(ValueError, match="labels"):
        OWAProblem(np.array([0.0, 1.0]), costs, gram=np.eye(2))
    with pytest.raises(ValueError, match="3 rows"):
        OWAProblem(y, costs, features=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="shape"):
        OWAProblem(y, costs, gram=np.eye(3))
    with pytest.raises(ValueError, match="C must be"):
        RankCosts(2, C=-1.0)
    with pytest.raises(ValueError, match="array fixes"):
        RankCosts(2, [1.0, 1.0], sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="positive finite"):
        RankCosts(2, sample_weight=[1.0, 0.0])


def test_a_contradiction_is_not_hidden():
    assert relative_gap(1.0, 1.0 + 1e-12) < 0.0
    assert relative_gap(1.0, -np.inf) == np.inf


def test_a_classifier_worse_than_none_is_not_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), np.tile([1.0, -1.0], 4)
    for family, alpha in (("quadratic", 0.8), ("basic", 0.6)):
        problem = OWAProblem(y, RankCosts(8, family, alpha, 2.0), features=X)
        proof = judge(problem, 1e3 * rng.random(8), 40.0, weight=1e3 * rng.normal(size=2))
        assert proof.objective <= 16.0
    solution = Solution(np.zeros(1), 0.0, 2.0, 1.0, Status.TIME_LIMIT, "newton")
    assert solution.gap == 0.5
    assert "time_limit" in solution.summary()


@pytest.mark.parametrize("seed", range(4))
def test_certificate_reads_both_kinds_of_coefficients(seed):
    """``y_i a_i`` and ``a_i`` are told apart also where some ``a_i`` are negative."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0.0, 1.0, -1.0)
    dual = rng.exponential(size=30)
    dual[:3] *= -0.2
    one, other = (
        certificate(X, y, "trimmed", 1.0, given, 0.3, alpha=0.2) for given in (dual, y * dual)
    )
    w = X.T @ (y * dual)
    deviations = np.maximum(1.0 - y * (X @ w + 0.3), 0.0)
    costs = RankCosts(30, "trimmed", 0.2)
    expected = 0.5 * w @ w + owa_value(deviations, costs.ascending)
    assert one.objective == pytest.approx(expected)
    assert other.objective == pytest.approx(expected)
