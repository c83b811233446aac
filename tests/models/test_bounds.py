"""UB_M, UB_b, LB_b as printed, and the tighter bounds: valid for everything no worse than UB."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.models import bounds
from owasvm.models._start import evaluate, svm
from owasvm.models.bounds import _certify, _shrink_into
from owasvm.problem import OWAProblem, PlainCosts, RankCosts
from owasvm.solvers import solve
from tests.models.instances import general, general_weights, make
from tests.oracles import enumerate_owa_svm, owa_value
from tests.strategies import deviation_vectors
from tests.strategies import general_weights as any_weights

NUMBERS = range(25)


def _truth(instance):
    return enumerate_owa_svm(instance.rows, instance.problem.y, instance.weights, instance.C)


def _classifiers_no_worse(instance, upper_bound, n_wanted=200):
    """Points (w, b) near the optimum whose objective is at most `upper_bound`."""
    rng = np.random.default_rng(0)
    truth = _truth(instance)
    y, rows = instance.problem.y, instance.rows
    points = []
    for _ in range(20 * n_wanted):
        step = 10.0 ** rng.uniform(-3, 0.5)
        w = truth.coef + step * rng.normal(size=truth.coef.size)
        b = truth.intercept + step * rng.normal()
        deviations = np.maximum(0.0, 1.0 - y * (rows @ w + b))
        value = w @ w / 2 + instance.C * owa_value(deviations, instance.weights)
        if value <= upper_bound:
            points.append((w, b))
        if len(points) == n_wanted:
            break
    return [(truth.coef, truth.intercept), *points]


class TestPrinted:
    @pytest.mark.parametrize("number", [n for n in NUMBERS if n % 5 != 2])
    def test_big_m_is_upper_bound_over_last_cost(self, number):
        problem = general(number).problem
        last = problem.costs.ascending[-1]
        upper_bound = svm(problem).objective
        found = bounds.ub_m(problem, upper_bound)
        if upper_bound >= last:
            assert found == pytest.approx(upper_bound / last, rel=1e-6)
        else:
            assert found < upper_bound / last * (1 - 1e-6)

    def test_both_cases_occur(self):
        problems = [general(n).problem for n in NUMBERS if n % 5 != 2]
        above = [svm(p).objective >= p.costs.ascending[-1] for p in problems]
        assert 0 < sum(above) < len(above)

    @pytest.mark.parametrize("number", [0, 3, 4, 6, 8, 9])
    def test_intercepts_lie_between(self, number):
        # The bounds hold for the classifiers the paper restricts itself to, the optimum first.
        instance = general(number)
        upper_bound = svm(instance.problem).objective
        low = bounds.lb_b(instance.problem, upper_bound)
        high = bounds.ub_b(instance.problem, upper_bound)
        truth = _truth(instance)
        slack = 1e-4 * max(1.0, abs(truth.intercept))
        assert low - slack <= truth.intercept <= high + slack

    def test_last_weight_zero_is_refused(self):
        problem = general(2).problem
        assert problem.costs.ascending[-1] == 0.0
        for function in (bounds.ub_m, bounds.ub_b, bounds.lb_b):
            with pytest.raises(ValueError, match="unbounded when the last weight is 0"):
                function(problem, 1.0)

    def test_intercept_bounds_are_used(self):
        instance = general(0)
        upper_bound = 2.0 * svm(instance.problem).objective
        last = instance.problem.costs.ascending[-1]
        # An intercept far out costs: with b = 3 some deviation is at least 1 + 3 - |w| |x|.
        far = bounds.ub_b(instance.problem, upper_bound)
        found = bounds.ub_m(instance.problem, upper_bound, (0.999 * far, far))
        assert found <= upper_bound / last * (1 + 1e-6)


class TestIntervals:
    @pytest.mark.parametrize("number", NUMBERS)
    def test_hold_everything_no_worse_than_the_bound(self, number):
        instance = general(number)
        upper_bound = svm(instance.problem).objective
        found = bounds.deviation_bounds(instance.problem, upper_bound)
        widest = bounds.geometric_bounds(instance.problem, upper_bound)
        assert found.n_solved >= instance.problem.n_samples or number % 5 == 2
        assert np.all(found.upper <= widest.upper)
        y = instance.problem.y
        for w, b in _classifiers_no_worse(instance, upper_bound):
            scores = instance.rows @ w
            # The geometric ends hold for intercepts between the bends of the loss only.
            b = np.clip(b, np.min(-1.0 - scores), np.max(1.0 - scores))
            deviations = np.maximum(0.0, 1.0 - y * (scores + b))
            value = w @ w / 2 + instance.C * owa_value(deviations, instance.weights)
            if value > upper_bound:
                continue
            assert np.linalg.norm(w) <= found.radius * (1 + 1e-9)
            assert found.intercept[0] - 1e-7 <= b <= found.intercept[1] + 1e-7
            assert np.all(deviations <= found.upper + 1e-7)
            assert np.all(deviations >= found.lower - 1e-7)
            ranks = np.argsort(np.argsort(deviations, kind="stable"))
            assert np.all((found.first_rank <= ranks) & (ranks <= found.last_rank))
            ordered = np.sort(deviations)
            assert np.all(ordered <= found.sorted_upper + 1e-7)
            assert np.all(ordered >= found.sorted_lower - 1e-7)

    def test_shrink_with_the_upper_bound(self):
        instance = general(1)
        truth = _truth(instance).objective
        loose = bounds.deviation_bounds(instance.problem, 1.5 * truth)
        tight = bounds.deviation_bounds(instance.problem, 1.01 * truth)
        assert np.all(tight.upper <= loose.upper + 1e-6)
        assert (tight.upper - tight.lower).sum() < 0.9 * (loose.upper - loose.lower).sum()

    def test_expired_clock_leaves_the_geometric_bounds(self):
        instance = general(1)
        found = bounds.deviation_bounds(instance.problem, 2.0, expired=lambda: True)
        widest = bounds.geometric_bounds(instance.problem, 2.0)
        assert found.n_solved == 0
        np.testing.assert_array_equal(found.upper, widest.upper)

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1), st.integers(0, 24), st.floats(-6, 3))
    def test_certificate_holds_for_any_multipliers(self, seed, number, exponent):
        # Whatever a solver returns, the certified number bounds h_i over all better classifiers.
        rng = np.random.default_rng(seed)
        problem = general(number).problem
        n = problem.n_samples
        first = svm(problem)
        i = int(rng.integers(n))
        g = np.zeros(n)
        sign = rng.choice([-1.0, 1.0])
        g[i] = sign
        multipliers = rng.exponential(size=n) * 10.0**exponent
        price = 10.0 ** rng.uniform(-3, 3)
        bound = _certify(problem, first.objective, g, 0.0, multipliers, price)
        h = 1.0 - problem.y * (problem.scores(first.dual) + first.intercept)
        assert sign * h[i] <= bound + 1e-9 * max(1.0, abs(bound))


class TestRelaxation:
    @settings(max_examples=100)
    @given(st.data(), st.integers(1, 12), st.integers(0, 2**32 - 1))
    def test_rank_set_lies_below_the_ordered_sum(self, data, n_samples, seed):
        # a'xi <= sum_k c_k xi_(k) for every a in P'(c), weights in any order.
        costs = data.draw(any_weights(n_samples))
        deviations = data.draw(deviation_vectors(n_samples))
        rng = np.random.default_rng(seed)
        point = _shrink_into(PlainCosts(costs), rng.normal(0.5, 1.0, size=n_samples) * costs.max())
        value = owa_value(deviations, costs)
        assert np.all(point >= 0.0)
        assert point @ deviations <= value + 1e-9 * max(1.0, abs(value))

    def test_rank_set_is_reached(self):
        # The ordered costs themselves are inside when they do not fall.
        costs = np.array([0.2, 0.2, 1.0, 3.0])
        mixed = costs[[2, 0, 3, 1]]
        np.testing.assert_allclose(_shrink_into(PlainCosts(costs), mixed), mixed)

    @pytest.mark.parametrize("number", NUMBERS)
    def test_bound_is_below_the_optimum(self, number):
        instance = general(number)
        truth = _truth(instance).objective
        found = bounds.relaxation(instance.problem)
        assert found.lower_bound <= truth + 1e-9 * max(1.0, truth)
        assert abs(instance.problem.y @ found.dual) <= 1e-9 * max(1.0, found.dual.sum())

    def test_beats_the_monotone_minorant(self):
        # Weights that fall first and rise at the end: P'(c) is larger than P(min_{j >= k} c_j).
        gains = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(12, 2))
            y = np.where(X[:, 0] + rng.normal(size=12) > 0, 1.0, -1.0)
            instance = make(X, y, general_weights("quadratic", 12, rng), 1.0, "rbf")
            costs = instance.problem.costs.ascending
            minorant = np.minimum.accumulate(costs[::-1])[::-1]
            lower = RankCosts(12, minorant, C=float(minorant.mean()))
            below = solve(OWAProblem(y, lower, gram=instance.problem.gram), tol=1e-9)
            ours = bounds.relaxation(instance.problem)
            gains.append(ours.lower_bound / below.objective - 1.0)
        assert min(gains) > -1e-6
        assert max(gains) > 0.02


class TestSafeBigM:
    @pytest.mark.parametrize("number", NUMBERS)
    def test_covers_an_optimal_solution(self, number):
        instance = general(number)
        upper_bound = svm(instance.problem).objective
        big_m = bounds.safe_big_m(instance.problem, upper_bound)
        costs = instance.problem.costs.ascending
        assert big_m >= upper_bound / costs[np.flatnonzero(costs)[-1]] * (1 - 1e-12)
        truth = _truth(instance)
        values = truth.decision_values
        if number % 5 != 2:
            deviations = np.maximum(0.0, 1.0 - instance.problem.y * values)
            assert deviations.max() <= big_m + 1e-6


def test_svm_value_is_that_of_its_deviations():
    instance = general(3)
    first = svm(instance.problem)
    scores = instance.problem.scores(first.dual)
    deviations = np.maximum(0.0, 1.0 - instance.problem.y * (scores + first.intercept))
    expected = 0.5 * (instance.problem.y * first.dual) @ scores
    expected += instance.C * owa_value(deviations, instance.weights)
    assert first.objective == pytest.approx(expected, rel=1e-12)
    assert evaluate(instance.problem, *first[:2]).objective == first.objective
