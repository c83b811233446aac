"""The paper's models through the estimators: same answers, limits honoured, refusals in time."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC, LinearOWASVC
from owasvm.solvers import SOLVERS

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
