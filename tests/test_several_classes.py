"""More than two classes: one against the rest, at the same time, and one against one."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC
from owasvm.solvers import Interrupted


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize(
    "model", [OWASVC(), LinearOWASVC(weights="superquantile", alpha=0.7)], ids=["rbf", "linear"]
)
def test_classes_at_the_same_time_give_the_same_model(model, iris):
    X, y = iris
    one = model.set_params(n_jobs=None).fit(X, y)
    values, gaps = one.decision_function(X), one.gap_
    two = model.set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two.decision_function(X), values)
    np.testing.assert_array_equal(two.gap_, gaps)
    assert two.status_.tolist() == ["optimal"] * 3


def test_draws_do_not_depend_on_the_number_of_jobs(iris):
    X, y = iris
    values = [
        OWASVC(weights="trimmed", alpha=0.1, random_state=np.random.RandomState(0), n_jobs=n_jobs)
        .fit(X[::2], y[::2])
        .decision_function(X)
        for n_jobs in (None, 2)
    ]
    np.testing.assert_array_equal(*values)


def test_warm_starts_at_the_same_time(iris):
    X, y = iris
    model = OWASVC(n_jobs=2, warm_start=True).fit(X, y)
    steps = model.n_iter_.sum()
    assert model.set_params(C=1.01).fit(X, y).n_iter_.sum() < steps
    assert max(model.gap_) <= 1e-6


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_class_that_misses_its_target_warns(iris, n_jobs):
    with pytest.warns(ConvergenceWarning, match="iteration_limit") as caught:
        model = OWASVC(max_iter=2, n_jobs=n_jobs).fit(*iris)
    assert len(caught) == np.count_nonzero(model.status_ == "iteration_limit") >= 1


def test_two_classes_are_one_problem(iris):
    X, y = iris
    model = OWASVC(n_jobs=2).fit(X[y != "c"], y[y != "c"])
    assert model.status_ == "optimal"


def test_one_against_one_agrees_with_pairs_and_with_svc(iris):
    X, y = iris
    pairs = OneVsOneClassifier(OWASVC(weights="uniform", tol=1e-10)).fit(X, y)
    classical = OneVsOneClassifier(SVC(tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(
        pairs.decision_function(X), classical.decision_function(X), atol=1e-4
    )
    assert all(one.status_ == "optimal" for one in pairs.estimators_)
    some = OneVsOneClassifier(OWASVC(alpha=0.4), n_jobs=2).fit(X, y)
    kept = y != "b"
    alone = OWASVC(alpha=0.4).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        some.estimators_[1].decision_function(X), alone.decision_function(X), atol=1e-9
    )


def test_kernel_fits_that_start_on_a_share_are_as_exact(monkeypatch):
    import owasvm.solvers.newton as newton

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=1200) > 1.0, 1, 0)
    settings = [{}, {"C": 20.0, "ranks": "class"}, {"loss": "squared_hinge"}]
    begun = [OWASVC(tol=1e-8, **given).fit(X, y) for given in settings]
    monkeypatch.setattr(newton, "start_on_share", lambda *_: None)
    for given, model in zip(settings, begun, strict=True):
        cold = OWASVC(tol=1e-8, **given).fit(X, y)
        assert model.status_ == cold.status_ == "optimal"
        assert model.objective_ == pytest.approx(cold.objective_, rel=2e-8)


def test_nothing_warns_without_a_reason(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OWASVC(n_jobs=2).fit(*iris)


class _Pressed:
    """Parallel fits that Ctrl-C stops after the first of them."""

    def __init__(self, **_settings):
        pass

    def __call__(self, tasks):
        function, arguments, keywords = next(iter(tasks))
        yield function.function(*arguments, **keywords)
        raise KeyboardInterrupt


def test_ctrl_c_keeps_the_classes_that_are_finished(iris, monkeypatch):
    X, y = iris
    full = OWASVC().fit(X, y)
    monkeypatch.setattr("owasvm.estimators._exact.Parallel", _Pressed)
    model = OWASVC(n_jobs=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_.tolist() == ["optimal", "interrupted", "interrupted"]
    assert model.objective_[0] == full.objective_[0]
    assert np.all(model.lower_bound_ <= full.objective_)
    assert np.all(model.dual_coef_[1:] == 0.0)
    assert set(model.predict(X)) <= set("abc")


def test_interrupts_pass_from_process_to_process(iris):
    X, y = iris
    solution = OWASVC().fit(X[y != "c"], y[y != "c"]).solution_
    again = pickle.loads(pickle.dumps(Interrupted(solution)))
    assert again.solution.objective == solution.objective
