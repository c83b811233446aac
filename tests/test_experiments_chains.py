"""Cells against independent fits: scikit-learn, our estimators, the two steps written out."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC
from owasvm.experiments import chains
from owasvm.experiments.chains import compute, parts
from owasvm.experiments.plan import ORDER, Chain, FitOptions
from owasvm.experiments.protocol import evaluate, split
from owasvm.solution import Solution, Status
from owasvm.solvers import Solver
from owasvm.weights import owa_weights
from tests.experiment_tools import made_up

CS = (0.25, 1.0, 16.0)
SIGMA = 1.5
GAMMA = 1.0 / (2.0 * SIGMA**2)
DATA = made_up(n_samples=90)
FOLD = 4
OPTIONS = FitOptions()


def run_chain(model, weights=(("", 0.0),), options=OPTIONS, Cs=CS):
    width = SIGMA if model.endswith("_K") else 0.0
    chain = Chain("toy", "shuffled", model, width, FOLD, Cs, weights)
    states = {}
    rows = []
    for position in range(len(chain)):
        known = {part: states[part] for part in parts(chain, position) if part in states}
        result = compute(chain, position, DATA, options, known)
        states.update(result.states)
        rows.append(result.row)
    return rows


def training_and_test():
    train, test = split(DATA.y, "shuffled", FOLD)
    return DATA.X[train], DATA.y[train], DATA.X[test], DATA.y[test]


def figures_of(values):
    return evaluate(training_and_test()[3], values)


@pytest.mark.parametrize("model", ["l2-SVM", "l2-SVM_K"])
def test_classical_cells_are_those_of_svc(model):
    X, y, X_test, _ = training_and_test()
    kernel = {"kernel": "rbf", "gamma": GAMMA} if model.endswith("_K") else {"kernel": "linear"}
    for row in run_chain(model):
        svc = SVC(C=row["C"], **kernel).fit(X, y)
        assert figures_of(svc.decision_function(X_test)).items() <= row.items()
        deviations = np.maximum(0.0, 1.0 - y * svc.decision_function(X))
        norm = svc.dual_coef_ @ (svc.decision_function(X[svc.support_]) - svc.intercept_)
        assert row["objective"] == pytest.approx(
            0.5 * norm[0] + row["C"] * deviations.sum(), rel=1e-6
        )
        assert 0.0 <= row["gap"] < 1e-2
        assert row["n_support"] == pytest.approx(svc.support_.size, abs=1)
        assert (row["solver"], row["status"], row["first_time"]) == ("libsvm", "optimal", 0.0)


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("weights", [("basic", 0.4), ("exponential", 0.8), ("quadratic", 0.2)])
@pytest.mark.parametrize("model", ["ex-OWA-SVM", "ex-OWA-SVM_K"])
def test_exact_cells_are_those_of_the_estimators(model, weights):
    X, y, X_test, _ = training_and_test()
    for row in run_chain(model, (weights,)):
        settings = {"C": row["C"], "weights": weights[0], "alpha": weights[1], "tol": 1e-9}
        if model.endswith("_K"):
            classifier = OWASVC(gamma=GAMMA, **settings).fit(X, y)
        else:
            classifier = LinearOWASVC(**settings).fit(X, y)
        assert row["objective"] == pytest.approx(classifier.objective_, rel=1e-6)
        assert row["lower_bound"] <= row["objective"] * (1.0 + 1e-12)
        assert row["gap"] <= 1e-6
        assert figures_of(classifier.decision_function(X_test)).items() <= row.items()
        assert (row["convex"], row["status"], row["solver"]) == (1, "optimal", "newton")


@pytest.mark.parametrize("model", ["app-OWA-SVM", "app-OWA-SVM_K"])
def test_two_step_cells_follow_their_definition(model):
    X, y, X_test, _ = training_and_test()
    is_kernel = model.endswith("_K")
    kernel = {"kernel": "rbf", "gamma": GAMMA} if is_kernel else {"kernel": "linear"}
    pairs = (("basic", 0.4), ("trigonometric", 0.6))
    for row in run_chain(model, pairs):
        first = SVC(C=row["C"], **kernel).fit(X, y)
        order = np.argsort(-(1.0 - y * first.decision_function(X)))
        weights = owa_weights(y.size, row["quantifier"], row["alpha"])
        costs = np.empty(y.size)
        costs[order] = weights[::-1]
        # Much below 1e-5 LIBSVM can take minutes.
        second = SVC(C=row["C"], tol=1e-5, **kernel).fit(X, y, sample_weight=costs)
        assert figures_of(second.decision_function(X_test)).items() <= row.items()
        values = second.decision_function(X)
        deviations = np.sort(np.maximum(0.0, 1.0 - y * values))
        norm = second.dual_coef_[0] @ (values[second.support_] - second.intercept_)
        objective = 0.5 * norm + row["C"] * float(weights @ deviations)
        assert row["objective"] == pytest.approx(objective, rel=1e-4)
        assert row["gap"] <= 1e-6
        assert row["convex"] == (row["quantifier"] == "basic")
        assert row["first_time"] > 0.0


def test_two_steps_are_never_better_than_the_exact_optimum():
    pair = (("basic", 0.2),)
    models = ("app-OWA-SVM_K", "ex-OWA-SVM_K")
    for rough, exact in zip(*(run_chain(model, pair) for model in models), strict=True):
        assert rough["objective"] >= exact["lower_bound"]


def test_the_first_step_is_fitted_once_for_all_weights(monkeypatch):
    fits = []
    original = chains._libsvm
    monkeypatch.setattr(chains, "_libsvm", lambda *args: fits.append(1) or original(*args))
    pairs = (("basic", 0.2), ("basic", 0.6), ("quadratic", 0.8), ("exponential", 0.4))
    rows = run_chain("app-OWA-SVM_K", pairs)
    assert len(rows) == 12
    assert len(fits) == len(CS)
    for C in CS:
        assert len({row["first_time"] for row in rows if row["C"] == C}) == 1


def test_cells_do_not_depend_on_other_chains():
    pair = (("basic", 0.6),)
    before = run_chain("ex-OWA-SVM_K", pair)
    run_chain("ex-OWA-SVM_K", (("exponential", 0.2),), Cs=(128.0, 256.0))
    after = run_chain("ex-OWA-SVM_K", pair)
    for one, other in zip(before, after, strict=True):
        one.pop("fit_time"), other.pop("fit_time")
        assert one == other


def test_warm_starts_save_iterations():
    pair = (("basic", 0.4),)
    Cs = tuple(2.0**k for k in range(-3, 5))
    along = sum(row["n_iter"] for row in run_chain("ex-OWA-SVM_K", pair, Cs=Cs))
    alone = sum(run_chain("ex-OWA-SVM_K", pair, Cs=(C,))[0]["n_iter"] for C in Cs)
    assert along < alone


@pytest.mark.parametrize("model", ["ex-OWA-SVM", "ex-OWA-SVM_K"])
def test_general_weights_go_to_the_solver_asked_for(monkeypatch, model):
    calls = []

    def solve(problem, *, solver, warm_start, **settings):
        calls.append((solver, warm_start, settings))
        dual = np.full(problem.n_samples, 0.01)
        return Solution(dual, 0.1, 5.0, 4.0, Status.TIME_LIMIT, solver, details={"tree": 1.0})

    monkeypatch.setattr(chains, "solve", solve)
    options = FitOptions(general="branch-and-bound", time_limit=3.0, mip_gap=0.01)
    rows = run_chain(model, (("trigonometric", 0.6),), options)
    assert [call[0] for call in calls] == ["branch-and-bound"] * 3
    assert calls[0][1] is None
    assert calls[1][1].details == {"tree": 1.0}
    given = {"tol": 1e-6, "mip_gap": 0.01, "time_limit": 3.0, "in_series": True, "options": None}
    assert calls[0][2] == given
    assert [row["gap"] for row in rows] == [pytest.approx(0.2)] * 3
    assert {(row["convex"], row["status"], row["solver"]) for row in rows} == {
        (0, "time_limit", "branch-and-bound")
    }
    # The study makes one descent, whatever the solver makes by default.
    run_chain(model, (("trigonometric", 0.6),), FitOptions(general="dca"))
    assert calls[-1][2]["options"] == {"n_init": 1}


@pytest.mark.parametrize("model", ["ex-OWA-SVM", "ex-OWA-SVM_K"])
def test_general_weights_have_a_certified_gap(model):
    for row in run_chain(model, (("trigonometric", 0.6),)):
        assert row["solver"] == "dca"
        assert row["lower_bound"] <= row["objective"]
        assert 0.0 <= row["gap"] < 0.2


def test_ctrl_c_in_a_solver_is_no_result(monkeypatch):
    def interrupted(problem, *_):
        dual = np.zeros(problem.n_samples)
        return Solution(dual, 0.0, 1.0, 0.0, Status.INTERRUPTED, "newton")

    monkeypatch.setattr("owasvm.solvers.newton.SOLVER", Solver(interrupted))
    with pytest.raises(KeyboardInterrupt):
        run_chain("ex-OWA-SVM", (("basic", 0.6),))


def test_orders_compare_positions():
    chain = Chain("toy", "shuffled", ORDER, SIGMA, FOLD, (1.0,), (("basic", 0.6),))
    result = compute(chain, 0, DATA, FitOptions(), {})
    assert result.states == {}
    X, y, *_ = training_and_test()
    K = rbf_kernel(X, gamma=GAMMA)
    first = SVC(kernel="precomputed").fit(K, y)
    order = np.argsort(-(1.0 - y * first.decision_function(K)))
    costs = np.empty(y.size)
    costs[order] = owa_weights(y.size, "basic", 0.6)[::-1]
    second = SVC(kernel="precomputed", tol=1e-10).fit(K, y, sample_weight=costs)
    final = np.argsort(-(1.0 - y * second.decision_function(K)))
    # Samples on the margin may swap places from solver to solver.
    on_margin = np.sum(np.abs(1.0 - y * second.decision_function(K)) < 1e-6)
    share = 100.0 * np.mean(order == final)
    assert result.row["step_two"] == pytest.approx(share, abs=100.0 * on_margin / y.size)
    assert 0.0 <= result.row["exact"] <= 100.0
    assert set(result.row) == {"dataset", "fold", "step_two", "exact"}


def test_equal_weights_keep_every_position(monkeypatch):
    # With weights that are all 1 both steps and the exact model are the same SVM. Samples on the
    # margin keep no order, so look at the others.
    monkeypatch.setattr(chains, "owa_weights", lambda n, *_: np.ones(n))
    chain = Chain("toy", "shuffled", ORDER, SIGMA, FOLD, (1.0,), (("basic", 1.0),))
    row = compute(chain, 0, DATA, FitOptions(), {}).row
    assert row["exact"] > 60.0
    assert row["step_two"] > 60.0
