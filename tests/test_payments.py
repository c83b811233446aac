"""``sample_costs_``, ``deviations_`` and ``outliers_``: who pays what at the solution."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons

from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC, persistence
from owasvm.costs import OwnCosts, RankCosts
from owasvm.grouping import GroupedCosts, charge_by_rank, find_ignored
from owasvm.preparation import TrainingSet
from owasvm.problem import OWAProblem
from owasvm.solution import Solution, Status
from owasvm.weights import owa_weights

N_SAMPLES = 90
X, Y = make_moons(N_SAMPLES, noise=0.25, random_state=1)
FLIPPED = np.array([3, 20, 41, 67, 80])
NOISY = np.where(np.isin(np.arange(N_SAMPLES), FLIPPED), 1 - Y, Y)
SIGNS = np.where(NOISY == 1, 1.0, -1.0)
CONVEX = [("uniform", None), ("basic", 0.6), ("basic", 0.15), ("superquantile", 0.3)]


def loss_of(model, decision_values):
    """What the objective says that the deviations cost."""
    scores = decision_values - model.intercept_
    return model.objective_ - 0.5 * float(model.dual_coef_[0] @ scores[model.support_])


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("family", CONVEX)
@pytest.mark.parametrize("make", [OWASVC, LinearOWASVC])
def test_costs_of_convex_weights(make, family):
    C, (weights, alpha) = 3.0, family
    model = make(C=C, weights=weights, alpha=alpha, tol=1e-8).fit(X, NOISY)
    values = model.decision_function(X)
    np.testing.assert_allclose(model.deviations_, np.maximum(1 - SIGNS * values, 0), atol=1e-9)
    assert model.sample_costs_.sum() == pytest.approx(C * N_SAMPLES)
    paid = model.sample_costs_ @ model.deviations_
    assert paid == pytest.approx(loss_of(model, values), rel=1e-5)
    by_deviation = model.sample_costs_[np.argsort(model.deviations_)]
    assert np.diff(by_deviation).min() >= -1e-9
    np.testing.assert_array_equal(model.outliers_, [])


def test_costs_by_rank_where_nothing_ties():
    model = OWASVC(C=2.0, weights="basic", alpha=0.6, tol=1e-9).fit(X, NOISY)
    order = np.argsort(model.deviations_)
    apart = np.diff(model.deviations_[order]) > 1e-3
    alone = np.append(False, apart) & np.append(apart, True)
    assert alone.sum() > 20
    np.testing.assert_allclose(
        model.sample_costs_[order][alone], 2.0 * owa_weights(N_SAMPLES, "basic", 0.6)[alone]
    )


@pytest.mark.parametrize("tol", [1e-5, 1e-7])
def test_ties_of_the_solution_are_found_at_any_tolerance(tol):
    # Steep weights tie many deviations; a loose tolerance leaves them apart by far more than
    # rounding.
    model = OWASVC(C=10.0, weights="basic", alpha=0.2, tol=tol).fit(X, NOISY)
    exact = OWASVC(C=10.0, weights="basic", alpha=0.2, tol=1e-11).fit(X, NOISY)
    tied = np.unique(np.round(exact.sample_costs_, 9), return_counts=True)[1]
    assert np.sort(tied)[-2] >= 3
    np.testing.assert_allclose(model.sample_costs_, exact.sample_costs_, rtol=1e-9, atol=1e-9)


def test_duals_lie_below_costs():
    # Off ties and margin a dual variable is the cost itself.
    model = OWASVC(weights="basic", alpha=0.5, tol=1e-9).fit(X, NOISY)
    dual = np.zeros(N_SAMPLES)
    dual[model.support_] = np.abs(model.dual_coef_[0])
    order = np.argsort(model.deviations_)
    apart = np.diff(model.deviations_[order]) > 1e-3
    alone = order[np.append(False, apart) & np.append(apart, True)]
    np.testing.assert_allclose(dual[alone], model.sample_costs_[alone], rtol=1e-6)


def test_squared_hinge_pays_for_squares():
    model = OWASVC(loss="squared_hinge", weights="basic", alpha=0.5, tol=1e-9).fit(X, NOISY)
    values = model.decision_function(X)
    paid = model.sample_costs_ @ model.deviations_**2
    assert paid == pytest.approx(loss_of(model, values), rel=1e-6)


@pytest.mark.parametrize("make", [OWASVC, LinearOWASVC, TwoStepOWASVC])
@pytest.mark.parametrize("weights", ["trimmed", "olympic", "array"])
def test_outliers_are_the_rows_of_the_last_zeros(make, weights):
    given = np.repeat([1.0, 0.0], [80, 10]) if weights == "array" else weights
    alpha = 0.1 if weights == "trimmed" else 0.8
    options = {} if make is TwoStepOWASVC else {"solver": "dca"}
    model = make(weights=given, alpha=alpha, **options).fit(X, NOISY)
    weights = owa_weights(N_SAMPLES, given, alpha)
    n_ignored = N_SAMPLES - 1 - np.flatnonzero(weights)[-1]
    assert n_ignored == 9 + (weights[0] > 0 and alpha == 0.8)
    np.testing.assert_array_equal(model.sample_costs_[model.outliers_], 0.0)
    assert np.all(np.diff(model.outliers_) > 0)
    if make is TwoStepOWASVC:
        np.testing.assert_array_equal(model.outliers_, np.sort(model.order_[-n_ignored:]))
    else:
        worst = np.argsort(model.deviations_)[-n_ignored:]
        np.testing.assert_array_equal(model.outliers_, np.sort(worst))
    assert np.isin(model.outliers_, FLIPPED).any()


def test_deviations_of_zero_are_no_outliers():
    points = np.repeat([[-2.0], [-1.0], [1.0], [2.0]], 5, axis=0)
    model = LinearOWASVC(C=100.0, weights="trimmed", alpha=0.1).fit(points, np.arange(20) > 9)
    np.testing.assert_allclose(model.deviations_, 0.0, atol=1e-9)
    np.testing.assert_array_equal(model.outliers_, [])


def test_sample_weights():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, N_SAMPLES)
    index = np.repeat(np.arange(N_SAMPLES), counts)
    options = {"C": 2.0, "weights": "basic", "alpha": 0.4, "tol": 1e-10, "gamma": 0.7}
    weighted = OWASVC(**options).fit(X, NOISY, sample_weight=counts)
    copied = OWASVC(**options).fit(X[index], NOISY[index])
    absent = counts == 0
    np.testing.assert_array_equal(np.isnan(weighted.sample_costs_), absent)
    np.testing.assert_array_equal(np.isnan(weighted.deviations_), absent)
    totals = np.bincount(index, weights=copied.sample_costs_, minlength=N_SAMPLES)
    np.testing.assert_allclose(weighted.sample_costs_[~absent], totals[~absent], rtol=1e-6)
    np.testing.assert_allclose(weighted.deviations_[index], copied.deviations_, atol=1e-6)


@pytest.mark.parametrize("make", [OWASVC, TwoStepOWASVC])
def test_trimming_with_sample_weights_names_rows_given(make):
    counts = np.ones(N_SAMPLES)
    counts[[0, 5, 88]] = 0
    options = {} if make is TwoStepOWASVC else {"solver": "dca"}
    model = make(weights="trimmed", alpha=0.1, **options)
    model.fit(X, NOISY, sample_weight=counts)
    kept = np.flatnonzero(counts)
    without = clone(model).fit(X[kept], NOISY[kept])
    np.testing.assert_array_equal(model.outliers_, kept[without.outliers_])
    np.testing.assert_allclose(model.sample_costs_[kept], without.sample_costs_)


@pytest.mark.parametrize(
    "model",
    [
        OWASVC(weights="trimmed", alpha=0.1, solver="dca"),
        LinearOWASVC(weights="trimmed", alpha=0.1, solver="dca"),
        TwoStepOWASVC(weights="trimmed", alpha=0.1),
    ],
)
def test_several_classes_have_one_row_each(model, tmp_path):
    samples, labels = load_iris(return_X_y=True)
    model.fit(samples, labels)
    assert model.deviations_.shape == model.sample_costs_.shape == (3, 150)
    assert len(model.outliers_) == 3
    values = model.decision_function(samples)
    for k in range(3):
        signs = np.where(labels == k, 1.0, -1.0)
        expected = np.maximum(1 - signs * values[:, k], 0)
        np.testing.assert_allclose(model.deviations_[k], expected, atol=1e-8)
        np.testing.assert_array_equal(model.sample_costs_[k][model.outliers_[k]], 0.0)
    persistence.save(model, tmp_path / "model.skops")
    for again in (pickle.loads(pickle.dumps(model)), persistence.load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(again.deviations_, model.deviations_)
        np.testing.assert_array_equal(again.sample_costs_, model.sample_costs_)
        for ours, theirs in zip(again.outliers_, model.outliers_, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_rows_of_weight_zero_come_back_from_a_file(tmp_path):
    counts = np.ones(N_SAMPLES)
    counts[:3] = 0
    model = OWASVC().fit(X, NOISY, sample_weight=counts)
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.sample_costs_, model.sample_costs_)
    assert np.isnan(again.deviations_[:3]).all() and not np.isnan(again.deviations_[3:]).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sample_costs_", np.full(N_SAMPLES, np.inf)),
        ("sample_costs_", np.zeros(3)),
        ("deviations_", np.full(N_SAMPLES, np.nan)),
        ("deviations_", "none"),
        ("outliers_", np.array([N_SAMPLES])),
        ("outliers_", [1]),
    ],
)
def test_damaged_payments_are_refused(name, value, tmp_path):
    model = OWASVC().fit(X, NOISY)
    setattr(model, name, value)
    persistence.save(model, tmp_path / "model.skops")
    with pytest.raises(persistence.ModelFileError, match=f"damaged .*{name}"):
        persistence.load(tmp_path / "model.skops")


def test_models_that_tell_nothing_of_payments_are_loaded(tmp_path):
    model = OWASVC().fit(X, NOISY)
    for name in ("deviations_", "sample_costs_", "outliers_"):
        delattr(model, name)
    object.__delattr__(model.solution_, "deviations")
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    assert again.solution_.deviations is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("linear", [False, True])
def test_solvers_need_not_leave_deviations(linear):
    training = TrainingSet.of(X, NOISY)
    model = (LinearOWASVC() if linear else OWASVC(kernel="linear")).fit(X, NOISY)
    problem = OWAProblem(next(training.signs()), RankCosts(N_SAMPLES), features=X)
    dual = np.zeros(N_SAMPLES)
    dual[model.support_] = np.abs(model.dual_coef_[0])
    coef = model.coef_[0] if linear else None
    bare = Solution(dual, 0.0, 1.0, 0.0, Status.OPTIMAL, "newton", coef=coef)
    moved = problem.as_moved(Solution(**{**vars(bare), "intercept": model.intercept_[0]}))
    np.testing.assert_allclose(problem.deviations_of(moved), model.deviations_, atol=1e-6)


def test_ties_share_by_weight():
    costs = RankCosts(4, "superquantile", 0.5, 1.0, [1.0, 2.0, 3.0, 2.0])
    charged = charge_by_rank(costs, np.array([0.0, 1.0, 1.0, 2.0]))
    np.testing.assert_allclose(charged, [0.0, 1.6, 2.4, 4.0])


def test_ignored_rows_rank_above_all_that_pay():
    costs, values = RankCosts(5), np.array([0.0, 3.0, 1.0, 2.0, 2.0])
    for charged, ignored in (
        ([0.0, 0, 1, 0, 0], [1, 3, 4]),
        ([0.0, 0, 1, 1, 1], [1]),
        ([0.0, 1, 1, 1, 1], []),
    ):
        np.testing.assert_array_equal(find_ignored(costs, np.array(charged), values), ignored)


def test_groups_are_charged_apart():
    parts = [(np.array([0, 2]), RankCosts(2, [1, 3])), (np.array([1, 3, 4]), RankCosts(3))]
    costs = GroupedCosts([(index, RankCosts(index.size, "trimmed", 0.5)) for index, _ in parts], 1)
    values = np.array([5.0, 0.1, 4.0, 0.2, 0.3])
    charged = charge_by_rank(costs, values)
    np.testing.assert_allclose(charged, [0.0, 2.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(find_ignored(costs, charged, values), [0, 4])


@pytest.mark.parametrize("make", [OWASVC, LinearOWASVC, TwoStepOWASVC])
def test_ranks_within_classes(make):
    options = {} if make is TwoStepOWASVC else {"solver": "dca"}
    model = make(C=2.0, weights="trimmed", alpha=0.1, ranks="class", **options).fit(X, NOISY)
    for label in (0, 1):
        own = np.flatnonzero(NOISY == label)
        assert model.sample_costs_[own].sum() == pytest.approx(2.0 * own.size)
        n_ignored = int((owa_weights(own.size, "trimmed", 0.1) == 0).sum())
        assert np.isin(model.outliers_, own).sum() == n_ignored > 0
    convex = OWASVC(C=2.0, weights="basic", alpha=0.3, ranks="class", tol=1e-8).fit(X, NOISY)
    paid = convex.sample_costs_ @ convex.deviations_
    assert paid == pytest.approx(loss_of(convex, convex.decision_function(X)), rel=1e-6)


def test_a_cost_per_sample_is_kept():
    own = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(charge_by_rank(OwnCosts(own), np.array([3.0, 1.0, 2.0])), own)
