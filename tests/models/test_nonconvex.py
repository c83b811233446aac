"""The general models against exhaustive enumeration, and Algorithm 1 step by step."""

from itertools import permutations
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.intercept import global_intercept as best_intercept
from owasvm.models import (
    algorithm1,
    bounds,
    nc_owa_svm,
    nc_owa_svm_fixed,
    nc_owa_svm_kernel,
)
from owasvm.models._data import coefficients, coordinates
from owasvm.models._start import evaluate, polish, svm, with_best_intercept
from owasvm.models.backends import scip_
from owasvm.models.backends.program import Search
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import solve
from tests.models.instances import convex, gaussian, general, general_weights, make
from tests.oracles import enumerate_owa_svm, owa_value

FORMULATIONS = {"primal": nc_owa_svm, "kernel": nc_owa_svm_kernel}


def _truth(instance):
    return enumerate_owa_svm(
        instance.rows, instance.problem.y, instance.weights, instance.C
    ).objective


def _cold_optimum(instance, formulation, program):
    """Optimum of the program itself, without a start, and the classifier behind it."""
    result = scip_.solve(program, Search(mip_gap=1e-8, time_limit=60.0))
    assert result.status == "optimal"
    w, b = formulation.direction(instance.problem, program, result.point)
    dual = coefficients(instance.problem, coordinates(instance.problem), w)
    return result, polish(instance.problem, evaluate(instance.problem, dual, b))


class TestTruth:
    """60 instances: quadratic, trigonometric, trimmed, Hurwicz, random; linear and Gaussian."""

    @pytest.mark.parametrize("number", range(60))
    def test_strengthened_models(self, number):
        instance = general(number)
        truth = _truth(instance)
        scale = max(1.0, truth)
        # Through Algorithm 1, in the form the problem is given in.
        solution = solve(instance.problem, "miqp", mip_gap=1e-5)
        assert solution.status is Status.OPTIMAL
        assert abs(solution.objective - truth) <= 1e-6 * scale
        assert solution.lower_bound <= truth + 1e-9 * scale
        # The other formulation on its own: no start, intervals from the SVM alone. A cut too
        # many would show here, where no heuristic can hide it.
        name = "primal" if instance.problem.gram is not None else "kernel"
        intervals = bounds.deviation_bounds(instance.problem, svm(instance.problem).objective)
        program = FORMULATIONS[name].build(
            instance.problem, bounds=intervals, intercept_bounds=intervals.intercept
        )
        result, found = _cold_optimum(instance, FORMULATIONS[name], program)
        assert abs(found.objective - truth) <= 1e-6 * scale
        assert result.safe_bound <= truth
        assert result.bound >= truth - 1e-5 * scale

    @pytest.mark.parametrize("number", range(30))
    def test_printed_models_with_a_safe_big_m(self, number):
        instance = general(number, max_samples=5)
        truth = _truth(instance)
        scale = max(1.0, truth)
        name = ("kernel", "primal")[number % 2]
        big_m = bounds.safe_big_m(instance.problem, svm(instance.problem).objective)
        program = FORMULATIONS[name].build(instance.problem, big_m)
        result, found = _cold_optimum(instance, FORMULATIONS[name], program)
        assert abs(found.objective - truth) <= 1e-6 * scale
        assert abs(result.objective - truth) <= 1e-5 * scale

    @pytest.mark.parametrize("number", [0, 1, 3, 4, 6, 11])
    def test_algorithm_1_as_printed(self, number):
        instance = general(number, max_samples=5)
        truth = _truth(instance)
        solution = algorithm1.run(instance.problem, strengthened=False, mip_gap=1e-5)
        record = solution.details["algorithm1"]
        assert record.upper_bound >= instance.problem.costs.ascending[-1]
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(truth, rel=1e-6, abs=1e-6)
        assert solution.lower_bound <= truth + 1e-9 * max(1.0, truth)

    @pytest.mark.parametrize("number", [0, 7, 14])
    def test_convex_weights_too(self, number):
        instance = convex(number, max_samples=8)
        solution = solve(instance.problem, "miqp")
        reference = solve(instance.problem, "assignment-dual")
        assert solution.objective == pytest.approx(reference.objective, rel=1e-6)


class TestFixedRanks:
    @pytest.mark.parametrize("number", range(8))
    def test_strong_duality(self, number):
        # Any assignment with one sample per rank, also those where a sample holds two.
        instance = general(number, max_samples=5)
        n_samples = instance.problem.n_samples
        rng = np.random.default_rng(number)
        z = np.zeros((n_samples, n_samples))
        z[rng.integers(n_samples, size=n_samples), np.arange(n_samples)] = 1.0
        primal = nc_owa_svm_fixed.solve_primal(instance.problem, z, 3.0)
        dual = nc_owa_svm_fixed.solve_dual(instance.problem, z, 3.0)
        assert primal.value == pytest.approx(dual.value, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(
            instance.problem.scores(primal.dual), instance.problem.scores(dual.dual), atol=1e-3
        )

    @pytest.mark.parametrize("number", range(5))
    def test_best_over_all_orders_is_the_truth(self, number):
        instance = general(number, max_samples=4)
        n_samples = instance.problem.n_samples
        big_m = bounds.safe_big_m(instance.problem, svm(instance.problem).objective)
        values = [
            nc_owa_svm_fixed.solve_primal(
                instance.problem, nc_owa_svm_fixed.assignment_matrix(order), big_m
            ).value
            for order in permutations(range(n_samples))
        ]
        truth = _truth(instance)
        assert min(values) == pytest.approx(truth, rel=1e-5, abs=1e-6)

    def test_polishing_never_loses(self):
        for number in range(10):
            instance = general(number)
            first = with_best_intercept(instance.problem, svm(instance.problem).dual)
            after = polish(instance.problem, first)
            assert after.objective <= first.objective * (1 + 1e-9) + 1e-9
            assert evaluate(instance.problem, *after[:2]).objective == after.objective


class TestIntercept:
    @settings(max_examples=100)
    @given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
    def test_no_intercept_is_better(self, n_samples, seed, rounded):
        rng = np.random.default_rng(seed)
        scores = rng.normal(scale=2.0, size=n_samples)
        scores = np.round(scores) if rounded else scores
        y = rng.choice([-1.0, 1.0], size=n_samples)
        costs = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.7)

        def loss(b):
            return owa_value(np.maximum(0.0, 1.0 - y * (scores + b)), costs)

        best = loss(best_intercept(scores, y, costs))
        grid = np.concatenate((np.linspace(-8, 8, 400), y - scores))
        assert best <= min(loss(b) for b in grid) + 1e-9

    def test_midpoint_of_a_flat_stretch(self):
        # One sample of each class, far apart: every b between -1 and 1 costs nothing.
        found = best_intercept(np.array([-2.0, 2.0]), np.array([-1.0, 1.0]), np.array([2.0, 1.0]))
        assert found == pytest.approx(0.0)


class TestAlgorithm1:
    @pytest.mark.parametrize("number", [0, 1, 3, 5, 6, 9])
    def test_record_as_printed(self, number):
        instance = general(number, max_samples=5)
        problem = instance.problem
        solution = algorithm1.run(problem, strengthened=False)
        record = solution.details["algorithm1"]
        # Steps 1 to 3
        scores = problem.scores(record.svm_dual)
        deviations = np.maximum(0.0, 1.0 - problem.y * (scores + record.svm_intercept))
        np.testing.assert_allclose(record.svm_deviations, np.sort(deviations))
        squared_norm = (problem.y * record.svm_dual) @ scores
        expected = squared_norm / 2 + problem.costs.ascending @ np.sort(deviations)
        assert record.svm_upper_bound == record.upper_bound == pytest.approx(expected)
        # Steps 4 and 5
        assert record.intercept_lower <= solution.intercept + 1e-3
        assert record.intercept_upper >= solution.intercept - 1e-3
        last = problem.costs.ascending[-1]
        if record.upper_bound >= last:
            assert record.big_m == pytest.approx(record.upper_bound / last, rel=1e-6)
        else:
            assert record.big_m < record.upper_bound / last
        assert record.big_m_source == "UB_M"
        # Step 6
        assert record.n_binaries == problem.n_samples**2
        assert {"svm", "intercept bounds", "M", "search", "polish"} <= set(record.times)
        assert record.backend_bound <= record.backend_objective + 1e-9

    def test_record_strengthened(self):
        instance = general(0)
        solution = algorithm1.run(instance.problem)
        record = solution.details["algorithm1"]
        assert record.upper_bound <= record.svm_upper_bound
        assert record.relaxation_bound <= solution.lower_bound * (1.0 + 1e-9)
        assert solution.lower_bound <= solution.objective
        assert record.deviation_bounds is not None
        assert record.big_m == record.deviation_bounds.upper.max()
        assert record.n_binaries <= instance.problem.n_samples**2

    def test_last_weight_zero(self):
        instance = general(7)
        assert instance.problem.costs.ascending[-1] == 0.0
        solution = algorithm1.run(instance.problem, strengthened=False)
        assert "last weight is 0" in solution.details["algorithm1"].big_m_source
        assert solution.objective == pytest.approx(_truth(instance), rel=1e-6, abs=1e-6)

    def test_objective_is_recomputed(self):
        instance = general(11)
        solution = algorithm1.run(instance.problem)
        scores = instance.problem.scores(solution.dual)
        deviations = np.maximum(0.0, 1.0 - instance.problem.y * (scores + solution.intercept))
        value = 0.5 * (instance.problem.y * solution.dual) @ scores
        value += instance.C * owa_value(deviations, instance.weights)
        assert solution.objective == pytest.approx(value, rel=1e-12)

    def test_warm_start(self):
        instance = general(13)
        first = algorithm1.run(instance.problem)
        again = algorithm1.run(instance.problem, warm_start=first, strengthened=False)
        assert again.objective <= first.objective * (1 + 1e-9)
        other = general(5)
        assert other.problem.n_samples != instance.problem.n_samples
        with pytest.raises(ValueError, match="warm_start has coefficients"):
            algorithm1.run(other.problem, warm_start=first)

    def test_one_class(self):
        y = np.ones(4)
        problem = OWAProblem(
            y, RankCosts(4, np.array([2.0, 1.0, 0.5, 0.5])), features=np.eye(4)[:, :2]
        )
        solution = algorithm1.run(problem)
        assert solution.objective == pytest.approx(0.0, abs=1e-8)
        assert solution.intercept >= 1.0 - 1e-6

    def test_unknown_formulation(self):
        with pytest.raises(ValueError, match="formulation='dual' is unknown"):
            algorithm1.run(general(0).problem, formulation="dual")

    def test_sample_weights_are_refused(self):
        y = np.array([-1.0, 1.0, 1.0])
        costs = RankCosts(3, "trimmed", 0.5, sample_weight=[1.0, 2.0, 1.0])
        with pytest.raises(ValueError, match="no sample_weight"):
            algorithm1.run(OWAProblem(y, costs, features=np.eye(3)))


class TestLimits:
    def _instance(self, n_samples):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(n_samples, 4))
        y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)
        weights = general_weights("quadratic", n_samples, rng)
        return make(X, y, weights, 1.0, "rbf")

    def test_time_limit_keeps_the_incumbent(self):
        instance = self._instance(60)
        start = perf_counter()
        solution = solve(instance.problem, "miqp", time_limit=5.0, mip_gap=1e-6)
        assert perf_counter() - start < 10.0
        assert solution.status is Status.TIME_LIMIT
        record = solution.details["algorithm1"]
        assert solution.objective <= record.svm_upper_bound
        # What rounding can have done to the objective is charged to the bound.
        assert 0.0 < record.relaxation_bound <= solution.lower_bound * (1.0 + 1e-9)
        assert solution.lower_bound < solution.objective
        assert solution.gap < 0.1

    def test_four_hundred_samples_are_refused_before_anything_is_built(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 2))
        y = np.where(rng.random(400) < 0.5, -1.0, 1.0)
        costs = RankCosts(400, "trigonometric", 0.8)
        problem = OWAProblem(y, costs, gram=gaussian(X))
        start = perf_counter()
        with pytest.raises(ValueError, match=r"160,000 binary variables.*branch-and-bound"):
            solve(problem, "miqp")
        assert perf_counter() - start < 0.5

    def test_limit_can_be_moved(self):
        instance = general(0)
        n_binaries = instance.problem.n_samples**2
        with pytest.raises(ValueError, match="max_binaries"):
            solve(instance.problem, "miqp", options={"max_binaries": n_binaries - 1})
        solution = solve(instance.problem, "miqp", options={"max_binaries": n_binaries})
        assert solution.status is Status.OPTIMAL


def test_ionosphere_twenty_samples(ionosphere):
    """A share of the reach benchmark: one subsample, the easier weights."""
    X, y = ionosphere
    rows = np.random.default_rng(1).permutation(y.size)[:20]
    weights = general_weights("trigonometric", 20, np.random.default_rng(0))
    instance = make(X[rows], y[rows], weights, 1.0, "rbf")
    solution = nc_owa_svm_kernel.solve(instance.problem, time_limit=120.0)
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-4
