"""The paper's models through the estimators: same answers, limits honoured, refusals in time."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC, LinearOWASVC
from owasvm.models import c_owa_svm, nc_owa_svm
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Status
from owasvm.solvers import SOLVERS, solve

pytest.importorskip("cvxpy")
pytest.importorskip("pyscipopt")


def data(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 2))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1, -1)
    y[:2] = [1, -1]
    return X, y


@pytest.mark.parametrize("solver", ["assignment", "ogryczak-tamir", "assignment-dual"])
@pytest.mark.parametrize("estimator", [OWASVC(gamma=0.5), LinearOWASVC()])
def test_convex_models_agree_with_newton(estimator, solver):
    X, y = data(25)
    assert solver in SOLVERS
    fast = type(estimator)(**estimator.get_params()).fit(X, y)
    slow = estimator.set_params(solver=solver).fit(X, y)
    assert slow.status_ == "optimal"
    assert slow.objective_ == pytest.approx(fast.objective_, rel=1e-6)
    assert slow.decision_function(X) == pytest.approx(fast.decision_function(X), abs=1e-3)


@pytest.mark.parametrize("weights", ["quadratic", "trigonometric"])
def test_miqp_solves_general_weights(weights):
    X, y = data(12)
    model = OWASVC(weights=weights, alpha=0.8, gamma=0.5, solver="miqp").fit(X, y)
    assert not model.convex_
    assert model.status_ == "optimal"
    assert model.gap_ <= 1e-4
    assert model.lower_bound_ <= model.objective_
    assert set(model.predict(X)) <= {-1, 1}


def test_miqp_honours_the_time_limit():
    X, y = data(60)
    model = OWASVC(weights="quadratic", alpha=0.8, gamma=0.5, solver="miqp", time_limit=2.0)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    # Generous: what matters is that it stops, not when exactly on a busy machine.
    assert time.perf_counter() - begun < 30.0
    assert model.status_ == "time_limit"
    assert 0.0 <= model.lower_bound_ <= model.objective_


def test_large_miqp_is_refused_before_it_is_built():
    X, y = data(400)
    with pytest.raises(ValueError, match="branch-and-bound"):
        OWASVC(weights="quadratic", alpha=0.8, solver="miqp").fit(X, y)


def test_falling_weights_need_a_solver_for_them():
    X, y = data(10)
    for solver in ("newton", "assignment", "ogryczak-tamir", "assignment-dual"):
        with pytest.raises(ValueError, match=r"non-decreasing|convex"):
            OWASVC(weights="trimmed", alpha=0.2, solver=solver).fit(X, y)
    model = OWASVC(weights="trimmed", alpha=0.2, gamma=0.5).fit(X, y)
    assert model.solution_.solver == "branch-and-bound"
    assert model.status_ == "optimal"


MODELS = ("assignment", "ogryczak-tamir", "assignment-dual", "miqp")


def problem(loss="hinge", weights="basic", **data):
    data = data or {"features": np.array([[-0.5], [0.5]])}
    return OWAProblem(np.array([-1.0, 1.0]), RankCosts(2, weights, 0.6), loss=loss, **data)


class TestRefusals:
    """Before anything is built, and naming what exists."""

    @pytest.fixture(autouse=True)
    def nothing_is_built(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cvxpy", None)

    @pytest.mark.parametrize("solver", MODELS)
    def test_unknown_options(self, solver):
        with pytest.raises(ValueError, match=r"no option 'bakend'. It takes backend, backend_opt"):
            solve(problem(), solver, options={"bakend": "scs"})

    @pytest.mark.parametrize("solver", MODELS)
    def test_back_ends_in_their_own_words_have_a_place_of_their_own(self, solver):
        with pytest.raises(ValueError, match="no option 'limits/nodes'"):
            solve(problem(), solver, options={"limits/nodes": 1})

    @pytest.mark.parametrize("solver", MODELS)
    def test_squared_hinge(self, solver):
        with pytest.raises(ValueError, match="takes loss='hinge', not 'squared_hinge'"):
            solve(problem("squared_hinge"), solver)

    @pytest.mark.parametrize(
        ("solver", "options", "words"),
        [
            ("assignment", {"backend": "simplex"}, r"use one of \['clarabel'"),
            ("assignment", {"backend": "scip"}, r"'scip' does not solve convex models"),
            ("miqp", {"backend": "simplex"}, r"use one of \['scip', 'gurobi'"),
            ("miqp", {"continuous_backend": "osqp"}, "quadratic constraint; use one of"),
            ("miqp", {"formulation": "dual"}, r"use one of \['kernel', 'primal'\]"),
            ("miqp", {"threads": 0}, "threads must be a whole number above 0, got 0"),
            ("miqp", {"max_binaries": 1.5}, "max_binaries must be a whole number above 0"),
        ],
    )
    def test_values_of_options(self, solver, options, words):
        with pytest.raises(ValueError, match=words):
            solve(problem(), solver, options=options)


@pytest.mark.parametrize("model", [c_owa_svm, nc_owa_svm])
def test_models_that_are_called_directly_refuse_other_losses(model):
    with pytest.raises(ValueError, match="take loss='hinge', not 'squared_hinge'"):
        model.solve(problem("squared_hinge"))


@pytest.mark.parametrize("solver", MODELS)
def test_midpoint_of_the_best_intercepts(solver):
    # w = 1 leaves both deviations at 1/2; any b between -1/2 and 1/2 costs the same.
    X = np.array([[-0.5], [0.5]])
    for data in ({"features": X}, {"gram": X @ X.T}):
        solution = solve(problem(weights="uniform", **data), solver)
        assert solution.objective == pytest.approx(1.5, rel=1e-7)
        assert solution.intercept == pytest.approx(0.0, abs=1e-6)


def test_a_back_end_that_ends_by_itself():
    X, y = data(25)
    model = OWASVC(
        gamma=0.5,
        solver="assignment",
        solver_options={"backend_options": {"max_iter": 2}},
        time_limit=1000.0,
    )
    with pytest.warns(ConvergenceWarning, match="name another one in solver_options"):
        model.fit(X, y)
    assert model.status_ == "backend_limit"
    assert model.lower_bound_ <= model.objective_


def test_a_mixed_integer_back_end_that_ends_by_itself():
    X, y = data(14, seed=3)
    y = y.astype(float)
    hard = OWAProblem(y, RankCosts(14, "trimmed", 0.3, C=8.0), features=X)
    options = {"strengthened": False, "backend_options": {"limits/nodes": 1}}
    solution = solve(hard, "miqp", mip_gap=1e-6, options=options)
    assert solution.details["message"] == "nodelimit"
    assert solution.status is Status.BACKEND_LIMIT
