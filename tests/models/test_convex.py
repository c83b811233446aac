"""The convex models: same optimum, proven, from each of them and from the fast solver."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.loss import in_dual_set
from owasvm.models import (
    c_owa_svm,
    c_owa_svm_compact,
    c_owa_svm_dual,
    ot_c_owa_svm,
)
from owasvm.models.backends import BACKENDS, cvxpy_
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import solve as solve_fast
from tests.models.instances import convex, general
from tests.oracles import cvxpy_owa_svm

MODELS = (c_owa_svm, ot_c_owa_svm, c_owa_svm_dual, c_owa_svm_compact)


def _name(module):
    return module.__name__.rsplit(".", 1)[-1]


@pytest.mark.parametrize("number", range(60))
def test_all_models_and_the_fast_solver_agree(number):
    instance = convex(number)
    reference = solve_fast(instance.problem, tol=1e-8)
    for model in MODELS:
        solution = model.solve(instance.problem)
        assert solution.status is Status.OPTIMAL
        assert solution.gap <= 1e-8
        assert solution.objective == pytest.approx(reference.objective, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("number", [0, 3, 5, 8, 13])
@pytest.mark.parametrize("model", MODELS, ids=_name)
def test_the_model_itself_has_the_optimum_of_the_oracle(model, number):
    # Not the judged classifier but the value of the formulation: its rows are the right ones.
    instance = convex(number, max_samples=30)
    truth = cvxpy_owa_svm(instance.rows, instance.problem.y, instance.weights, instance.C)
    formulation = model.build(instance.problem)
    cvxpy_.solve(formulation.model, tol=1e-10)
    assert formulation.model.value == pytest.approx(truth.objective, rel=1e-6, abs=1e-7)
    costs = instance.problem.costs.ascending
    assert in_dual_set(formulation.dual(), costs, tol=1e-5)


@pytest.mark.parametrize("backend", [b.name for b in BACKENDS.values() if b.continuous])
@pytest.mark.parametrize("model", MODELS, ids=_name)
def test_every_continuous_backend(model, backend):
    if not BACKENDS[backend].installed:
        pytest.skip(f"{backend} is not installed")
    instance = convex(1, max_samples=14)
    solution = model.solve(instance.problem, backend=backend, tol=1e-6)
    reference = solve_fast(instance.problem, tol=1e-9)
    assert solution.lower_bound <= reference.objective * (1 + 1e-9)
    if backend == "highs" and solution.status is not Status.OPTIMAL:
        # HiGHS calls points optimal that are not; the recomputed gap says so.
        assert solution.gap > 1e-6
        assert solution.objective == pytest.approx(reference.objective, rel=1e-3)
        return
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(reference.objective, rel=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=_name)
class TestRefusals:
    def test_falling_weights(self, model):
        with pytest.raises(ValueError, match=r"non-decreasing weights.*miqp"):
            model.solve(general(0).problem)

    def test_sample_weights(self, model):
        y = np.array([-1.0, 1.0, 1.0])
        costs = RankCosts(3, "basic", 0.6, sample_weight=[1.0, 2.0, 1.0])
        with pytest.raises(ValueError, match="no sample_weight"):
            model.solve(OWAProblem(y, costs, features=np.eye(3)))

    def test_arguments_without_a_meaning(self, model):
        for name in ("mip_gap", "strengthened", "warm_start", "max_iter"):
            with pytest.raises(TypeError, match=name):
                model.solve(convex(1).problem, **{name: 1})

    def test_unknown_backend(self, model):
        with pytest.raises(ValueError, match="'scip' does not solve convex models"):
            model.solve(convex(1).problem, backend="scip")


@pytest.mark.parametrize("model", MODELS, ids=_name)
def test_no_time_leaves_a_valid_answer(model):
    instance = convex(7)
    solution = model.solve(instance.problem, time_limit=1e-6)
    truth = solve_fast(instance.problem, tol=1e-8).objective
    assert solution.status is Status.TIME_LIMIT
    assert solution.lower_bound <= truth * (1 + 1e-9)
    assert solution.objective >= truth * (1 - 1e-9)


@pytest.mark.parametrize("keyword", ["assignment", "ogryczak-tamir", "assignment-dual"])
def test_solver_keywords(keyword):
    instance = convex(2)
    solution = solve_fast(
        instance.problem,
        keyword,
        tol=1e-6,
        mip_gap=1e-4,
        time_limit=None,
        max_iter=1000,
        warm_start=None,
        verbose=0,
        callback=None,
        random_state=None,
        options={"backend": "scs"},
    )
    assert solution.solver == keyword
    assert solution.details["backend"] == "scs"
    reference = solve_fast(instance.problem, tol=1e-9).objective
    assert solution.objective == pytest.approx(reference, rel=1e-6)


def test_coefficients_are_those_of_the_features():
    instance = convex(4)
    assert instance.problem.features is not None
    solution = c_owa_svm.solve(instance.problem)
    expected = instance.problem.features.T @ (instance.problem.y * solution.dual)
    np.testing.assert_allclose(solution.coef, expected)
    assert c_owa_svm_dual.solve(convex(1).problem).coef is None


class TestPropositionIntercept:
    """Proposition 3.2 where it applies, and the exact intercept where it does not."""

    def test_equals_the_exact_intercept(self):
        n_eligible = 0
        for number in range(14):
            instance = convex(number, max_samples=40)
            solution = c_owa_svm_dual.solve(instance.problem)
            rule = solution.details["proposition_intercept"]
            if rule.intercept is None:
                assert rule.eligible.size == 0
                continue
            n_eligible += 1
            # Any optimal intercept will do: what counts is the objective.
            scores = instance.problem.scores(solution.dual)
            deviations = np.maximum(0.0, 1.0 - instance.problem.y * (scores + rule.intercept))
            value = 0.5 * (instance.problem.y * solution.dual) @ scores
            value += instance.problem.costs.ascending @ np.sort(deviations)
            assert value == pytest.approx(solution.objective, rel=1e-5, abs=1e-5)
        assert n_eligible >= 7


class TestSortingNetwork:
    @pytest.mark.parametrize("n_wires", range(1, 13))
    def test_sorts_all_zero_one_inputs(self, n_wires):
        pairs = c_owa_svm_compact.comparators(n_wires)
        wires = np.array(list(product([0, 1], repeat=n_wires)))
        for i, j in pairs:
            assert i < j
            wires[:, i], wires[:, j] = (
                np.minimum(wires[:, i], wires[:, j]),
                np.maximum(wires[:, i], wires[:, j]),
            )
        assert np.all(np.diff(wires, axis=1) >= 0)

    def test_size_is_n_log_squared_n(self):
        for n_wires in (16, 64, 256, 1024):
            bound = n_wires * np.log2(n_wires) ** 2 / 4
            assert len(c_owa_svm_compact.comparators(n_wires)) <= bound

    @settings(max_examples=25)
    @given(st.integers(2, 7), st.integers(0, 2**32 - 1))
    def test_entrance_is_the_permutahedron(self, n_wires, seed):
        # A random mixture of rearrangements goes in; a point outside does not.
        rng = np.random.default_rng(seed)
        costs = np.sort(rng.exponential(size=n_wires))
        shares = rng.dirichlet(np.ones(4))
        inside = sum(share * rng.permutation(costs) for share in shares)
        assert _enters(inside, costs)
        spread = costs.mean() + 1.2 * (rng.permutation(costs) - costs.mean())
        assert not _enters(spread, costs)


def _enters(x, costs):
    """Whether the rows of the network accept x at the entrance and the costs at the exit."""
    from scipy.optimize import linprog

    equalities, inequalities, exits = c_owa_svm_compact.permutahedron(costs.size)
    n_variables = equalities.shape[1]
    fixed = np.full((n_variables, 2), [-np.inf, np.inf])
    fixed[: costs.size] = x[:, None]
    pinned = np.zeros((costs.size, n_variables))
    pinned[np.arange(costs.size), exits] = 1.0
    done = linprog(
        np.zeros(n_variables),
        A_ub=-inequalities.toarray(),
        b_ub=np.full(inequalities.shape[0], 1e-9),
        A_eq=np.vstack([equalities.toarray(), pinned]),
        b_eq=np.concatenate([np.zeros(equalities.shape[0]), costs]),
        bounds=fixed,
    )
    return done.status == 0
