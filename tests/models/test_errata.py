"""Every erratum of the page docs/errata.md, pinned by its smallest example."""

from time import perf_counter

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from owasvm.models import (
    algorithm1,
    bounds,
    c_owa_svm,
    c_owa_svm_dual,
    nc_owa_svm,
    ot_c_owa_svm,
)
from owasvm.models._start import svm
from owasvm.models.backends import BackendError, cvxpy_, scip_
from owasvm.models.backends.program import Search
from owasvm.problem import OWAProblem, RankCosts
from owasvm.weights import owa_weights
from tests.models.instances import general
from tests.oracles import enumerate_owa_svm


def _line(points, labels, weights, C=1.0):
    """Samples on a line; weights are scaled to mean 1."""
    y = np.array(labels, dtype=float)
    lam = np.array(weights, dtype=float)
    lam /= lam.mean()
    features = np.array(points, dtype=float).reshape(y.size, -1)
    return OWAProblem(y, RankCosts(y.size, lam, C=C), features=features), lam


def _optimum(program):
    result = scip_.solve(program, Search(mip_gap=1e-9, time_limit=60.0))
    assert result.status == "optimal"
    return result.objective


def _truth(problem, lam):
    return enumerate_owa_svm(problem.features, problem.y, lam, problem.costs.C).objective


def test_gaussian_kernel_needs_the_square():
    x, sigma = np.array([[0.0], [2.0]]), 1.0
    printed = np.exp(-np.linalg.norm(x[0] - x[1]) / (2 * sigma**2))
    meant = rbf_kernel(x, gamma=1 / (2 * sigma**2))[0, 1]
    assert printed == pytest.approx(0.367879, abs=1e-6)
    assert meant == pytest.approx(0.135335, abs=1e-6)


class TestDistanceIsNotBigM:
    def test_three_points_on_a_line(self):
        problem, lam = _line([0.0, 0.5, 1.0], [-1, 1, -1], [3, 2, 1])
        largest_distance = 1.0
        truth = _truth(problem, lam)
        assert truth == pytest.approx(1.0, abs=1e-6)
        for assign2 in (False, True):
            program = nc_owa_svm.build(problem, largest_distance, assign2=assign2)
            assert _optimum(program) == pytest.approx(2.0, abs=1e-5)
        safe = bounds.safe_big_m(problem, svm(problem).objective)
        assert _optimum(nc_owa_svm.build(problem, safe)) == pytest.approx(truth, abs=1e-5)


class TestAssign1Alone:
    """Ionosphere rows 217, 168, 151, 32, 115, columns 4 and 6, times 0.2."""

    points = 0.2 * np.array(
        [[0.89266, 0.86098], [0.0, 0.0], [0.63333, 0.7], [0.93408, 0.921], [0.33333, 0.19048]]
    )

    def test_too_low_with_a_small_big_m(self):
        problem, lam = _line(self.points, [1, -1, 1, 1, 1], [0.02, 0.02, 0.02, 0.02, 1.0])
        distance = max(np.linalg.norm(p - q) for p in self.points for q in self.points)
        assert distance == pytest.approx(0.262, abs=1e-3)
        truth = _truth(problem, lam)
        assert truth == pytest.approx(4.972709, abs=1e-6)
        alone = _optimum(nc_owa_svm.build(problem, distance))
        assert alone == pytest.approx(4.784906, abs=2e-5)
        both = _optimum(nc_owa_svm.build(problem, distance, assign2=True))
        assert both == pytest.approx(truth, abs=2e-5)
        large = _optimum(nc_owa_svm.build(problem, 20.0))
        assert large == pytest.approx(truth, abs=2e-5)

    def test_last_weight_zero_leaves_the_formula_undefined(self):
        problem, _ = _line([0.0, 1.0, 2.0], [-1, 1, -1], [1, 1, 0])
        with pytest.raises(ValueError, match="last weight is 0"):
            bounds.ub_m(problem, 1.0)


class TestAuxiliaryProblemGainsNothing:
    def test_equals_the_ratio(self):
        problem, _ = _line([0.0, 0.5, 1.0], [-1, 1, -1], [3, 2, 1])
        upper_bound = svm(problem).objective
        last = problem.costs.ascending[-1]
        assert upper_bound >= last
        assert bounds.ub_m(problem, upper_bound) == pytest.approx(upper_bound / last, rel=1e-6)

    def test_is_smaller_for_a_small_upper_bound(self):
        problem, _ = _line([0.0, 1.0, 2.0], [-1, -1, 1], [3, 2, 100])
        upper_bound = svm(problem).objective
        last = problem.costs.ascending[-1]
        assert upper_bound < last
        assert bounds.ub_m(problem, upper_bound) < 0.8 * upper_bound / last


class TestAlgorithm1Printed:
    """Where UB_M is smaller than the ratio, it is too small for (assign1) alone."""

    def test_too_low_on_three_points(self):
        problem, lam = _line([0.0, 1.0, 2.0], [-1, -1, 1], [3, 2, 100])
        upper_bound = svm(problem).objective
        assert upper_bound == pytest.approx(1.957143, abs=1e-5)
        big_m = bounds.ub_m(problem, upper_bound)
        assert big_m == pytest.approx(0.531079, abs=1e-4)
        truth = _truth(problem, lam)
        assert truth == pytest.approx(1.852653, abs=1e-6)
        assert _optimum(nc_owa_svm.build(problem, big_m)) == pytest.approx(1.703182, abs=1e-4)
        fixed = _optimum(nc_owa_svm.build(problem, big_m, assign2=True))
        assert fixed == pytest.approx(truth, abs=2e-5)
        ratio = upper_bound / problem.costs.ascending[-1]
        assert _optimum(nc_owa_svm.build(problem, ratio)) == pytest.approx(truth, abs=2e-5)

    def test_strengthened_is_right(self):
        problem, lam = _line([0.0, 1.0, 2.0], [-1, -1, 1], [3, 2, 100])
        solution = algorithm1.run(problem, mip_gap=1e-5)
        assert solution.objective == pytest.approx(_truth(problem, lam), rel=1e-6)

    def test_upper_bound_is_not_one_of_the_convex_model(self):
        # The text calls UB* a bound on C-OWA-SVM_K, whose rows do not depend on the order of the
        # weights: with these weights its optimum is 3, and UB* is 1.
        problem, lam = _line([0.0, 0.5, 1.0], [-1, 1, -1], [3, 2, 1])
        record = algorithm1.run(problem, strengthened=False).details["algorithm1"]
        assert record.svm_upper_bound == pytest.approx(1.0, abs=1e-4)
        sorted_problem = OWAProblem(
            problem.y, RankCosts(3, np.sort(lam)), features=problem.features
        )
        assert c_owa_svm_dual.solve(sorted_problem).objective == pytest.approx(3.0, abs=1e-5)
        assert _truth(problem, lam) <= record.svm_upper_bound + 1e-6


class TestPropositionIntercept:
    def test_two_samples_at_their_bounds(self):
        problem, _ = _line([-0.5, 0.5], [-1, 1], [1, 1])
        solution = c_owa_svm_dual.solve(problem)
        np.testing.assert_allclose(solution.dual, [1.0, 1.0], atol=1e-6)
        rule = solution.details["proposition_intercept"]
        assert rule.intercept is None
        assert rule.eligible.size == 0
        # The exact intercept exists all the same: any b in [-1/2, 1/2], the midpoint is taken.
        assert solution.intercept == pytest.approx(0.0, abs=1e-6)
        assert solution.objective == pytest.approx(1.5, abs=1e-7)


def test_tables_compare_different_folds(ionosphere):
    """l2-SVM_K, C = 2, sigma = 1: the printed AUC is that of folds without shuffling."""
    X, y = ionosphere
    gram = rbf_kernel(X, gamma=0.5)
    found = {}
    for name, folds in (
        ("plain", StratifiedKFold(10)),
        ("shuffled", StratifiedKFold(10, shuffle=True, random_state=2)),
    ):
        scores = []
        for train, test in folds.split(X, y):
            machine = SVC(kernel="precomputed", C=2.0).fit(gram[np.ix_(train, train)], y[train])
            predicted = machine.predict(gram[np.ix_(test, train)])
            scores.append(balanced_accuracy_score(y[test], predicted))
        found[name] = 100 * float(np.mean(scores))
    assert found["plain"] == pytest.approx(94.55, abs=0.005)
    assert found["shuffled"] == pytest.approx(94.94, abs=0.005)


def test_assignment_does_not_outperform_ogryczak_tamir():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] + rng.normal(size=150) > 0, 1.0, -1.0)
    problem = OWAProblem(y, RankCosts(150, "basic", 0.6), features=X)
    seconds = {}
    for model in (c_owa_svm, ot_c_owa_svm):
        start = perf_counter()
        model.solve(problem, tol=1e-6)
        seconds[model] = perf_counter() - start
    assert seconds[ot_c_owa_svm] < seconds[c_owa_svm]


class TestSmallSlips:
    def test_prices_are_needed_for_all_samples(self):
        # "u_i + v_j >= C lambda_j xi_i, j in N" for one i alone would leave the others free.
        problem, lam = _line([0.0, 1.0, 2.0, 3.0], [-1, 1, -1, 1], [1, 1, 2, 4])
        formulation = c_owa_svm.build(problem)
        full = formulation.model.solve(solver="CLARABEL")
        u, v, xi = (formulation.variables[name] for name in ("u", "v", "xi"))
        first_only = u[0, 0] + v >= xi[0] * problem.costs.ascending[None, :]
        rows = [c for name, c in formulation.constraints.items() if name != "prices"]
        loose = cp.Problem(formulation.model.objective, [*rows, first_only])
        assert full == pytest.approx(
            enumerate_owa_svm(problem.features, problem.y, lam, 1.0).objective, rel=1e-5
        )
        with pytest.raises(BackendError, match="unbounded"):
            cvxpy_.solve(loose)

    def test_ranges_of_the_quantifiers(self):
        # The paper allows every alpha >= 0; at these the formulas give no weights.
        for family, alpha in (("basic", 0.0), ("quadratic", 1.0), ("trigonometric", 1.5)):
            with pytest.raises(ValueError, match="alpha"):
                owa_weights(5, family, alpha)

    def test_area_under_the_curve_is_balanced_accuracy(self):
        truth, predicted = np.array([1, 1, 1, -1]), np.array([1, 1, -1, -1])
        recall, specificity = 2 / 3, 1.0
        found = balanced_accuracy_score(truth, predicted)
        assert found == pytest.approx((recall + specificity) / 2)


def test_back_end_objective_is_below_that_of_its_own_point():
    """SCIP's figure carries its tolerances; the reported one does not."""
    differences = []
    for number in range(12):
        solution = algorithm1.run(general(number).problem)
        claimed = solution.details["algorithm1"].backend_objective
        differences.append((solution.objective - claimed) / max(1.0, solution.objective))
    assert max(differences) > 1e-8
    assert max(differences) < 1e-4
