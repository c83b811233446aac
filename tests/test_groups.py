"""Deviations ranked within groups that the user names: ``groups`` and ``rank_groups``."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC
from owasvm.certificate import certificate
from owasvm.grouping import assign_costs
from owasvm.inspection import DeviationsDisplay, WeightsDisplay
from owasvm.path import fit_path
from owasvm.persistence import load, save
from owasvm.weights import owa_weights
from tests.oracles import cvxpy_owa_svm, psd_factor, replicated

FloatArray = NDArray[np.float64]

ESTIMATORS = [OWASVC, LinearOWASVC, TwoStepOWASVC]
FAMILIES = [("basic", 0.4), ("quadratic", 0.2), ("superquantile", 0.3), ("max-entropy", 0.8)]
POWERS = {"hinge": 1, "squared_hinge": 2}
X, Y = make_moons(60, noise=0.3, random_state=0)
GROUPS = np.random.default_rng(0).choice(["east", "north", "west"], 60, p=[0.2, 0.3, 0.5])


def gaussian(samples: FloatArray, gamma: float) -> FloatArray:
    return np.exp(-gamma * ((samples[:, None] - samples) ** 2).sum(axis=-1))


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("seed", range(24))
def test_equals_cvxpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(8, 30))
    samples = rng.normal(size=(n_samples, 3)).round(int(rng.integers(0, 3)))
    y = np.where(rng.random(n_samples) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    groups = rng.integers(0, int(rng.integers(1, 6)), n_samples)
    family, alpha = FAMILIES[seed % len(FAMILIES)]
    loss = ["hinge", "squared_hinge"][seed % 2]
    C = 10.0 ** rng.integers(-2, 3)
    counts = rng.integers(1, 4, size=y.size) if seed % 3 == 0 else np.ones(y.size, dtype=int)
    parameters = {"C": C, "weights": family, "alpha": alpha, "loss": loss}
    if seed % 4 < 2:
        features = samples
        model = LinearOWASVC(**parameters)
    else:
        features = psd_factor(gaussian(samples, 0.5))
        model = OWASVC(gamma=0.5, **parameters)
    model.fit(samples, y, sample_weight=counts, groups=groups)
    rows, signs = replicated(features, y, counts)
    of_row = np.repeat(groups, counts)
    members = [np.flatnonzero(of_row == group) for group in np.unique(groups)]
    oracle = cvxpy_owa_svm(
        rows,
        signs,
        [(index, owa_weights(index.size, family, alpha)) for index in members],
        C,
        target_gap=1e-7,
        power=POWERS[loss],
    )
    assert model.status_ == "optimal"
    scale = max(1.0, oracle.objective)
    assert model.objective_ >= oracle.lower_bound - 1e-9 * scale
    assert model.objective_ <= oracle.objective + 1e-6 * scale
    assert model.lower_bound_ <= oracle.objective + 1e-12 * scale


@pytest.mark.parametrize(("weights", "alpha"), [("superquantile", 0.6), ("trimmed", 0.2)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_groups_that_are_the_classes(estimator: type, weights: str, alpha: float) -> None:
    parameters = {"C": 2.0, "weights": weights, "alpha": alpha}
    by_group = estimator(**parameters).fit(X, Y, groups=Y)
    by_class = estimator(ranks="class", **parameters).fit(X, Y)
    assert by_group.objective_ == by_class.objective_
    np.testing.assert_array_equal(by_group.decision_function(X), by_class.decision_function(X))
    np.testing.assert_array_equal(by_group.groups_, [0, 1])
    assert not hasattr(by_class, "groups_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_group_of_all(estimator: type) -> None:
    parameters = {"C": 2.0, "weights": "basic", "alpha": 0.3}
    alone = estimator(**parameters).fit(X, Y, groups=np.full(60, "all"))
    plain = estimator(**parameters).fit(X, Y)
    assert alone.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(alone.owa_weights_[0], plain.owa_weights_)


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.permutations(range(4)))
def test_names_of_groups_mean_nothing(groups: list[int], names: list[int]) -> None:
    samples, y = X[:12], Y[:12]
    model = LinearOWASVC(weights="superquantile", alpha=0.5)
    first = model.fit(samples, y, groups=groups).objective_
    renamed = model.fit(samples, y, groups=[f"g{names[group]}" for group in groups])
    assert renamed.objective_ == pytest.approx(first, rel=1e-6, abs=1e-9)
    # Groups of their own cannot be ranked: the classical SVM.
    alone = model.fit(samples, y, groups=np.arange(12)).objective_
    uniform = LinearOWASVC(weights="uniform").fit(samples, y).objective_
    assert alone == pytest.approx(uniform, rel=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sample_weights_are_copies_and_zero_is_absence(estimator: type) -> None:
    counts = np.random.default_rng(1).integers(0, 3, size=60)
    counts[GROUPS == "east"] = 0
    rows = np.repeat(np.arange(60), counts)
    parameters: dict[str, Any] = {"weights": "basic", "alpha": 0.3}
    if estimator is not LinearOWASVC:
        parameters["gamma"] = 1.0
    weighted = estimator(**parameters).fit(X, Y, sample_weight=counts, groups=GROUPS)
    copied = estimator(**parameters).fit(X[rows], Y[rows], groups=GROUPS[rows])
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-6)
    assert weighted.groups_.tolist() == ["north", "west"] == copied.groups_.tolist()
    totals = [weights.sum() for weights in weighted.owa_weights_]
    assert totals == pytest.approx([counts[GROUPS == name].sum() for name in weighted.groups_])


def test_several_classes_share_the_groups() -> None:
    samples, y = make_blobs([20, 25, 15], centers=[[0, 0], [1, 1], [2, 0]], random_state=0)
    model = LinearOWASVC(weights="superquantile", alpha=0.8).fit(samples, y, groups=GROUPS)
    for label in range(3):
        one = LinearOWASVC(weights="superquantile", alpha=0.8)
        one.fit(samples, y == label, groups=GROUPS)
        assert model.objective_[label] == pytest.approx(one.objective_, rel=1e-6)
        assert [part.size for part in model.owa_weights_[label]] == [
            np.sum(GROUPS == name) for name in ("east", "north", "west")
        ]


def test_weights_that_fall_ignore_a_share_of_every_group() -> None:
    model = OWASVC(weights="trimmed", alpha=0.2, random_state=0).fit(X, Y, groups=GROUPS)
    for name in model.groups_:
        n_ignored = np.sum(GROUPS[model.outliers_] == name)
        assert n_ignored <= 0.2 * np.sum(GROUPS == name) + 1
    assert model.lower_bound_ <= model.objective_


def test_the_certificate_knows_groups() -> None:
    model = LinearOWASVC(C=3.0, weights="basic", alpha=0.3).fit(X, Y, groups=GROUPS)
    found = certificate(
        X,
        Y,
        "basic",
        3.0,
        model.solution_.dual,
        model.intercept_[0],
        alpha=0.3,
        coef=model.coef_,
        groups=GROUPS,
    )
    assert found.objective == pytest.approx(model.objective_, rel=1e-9)
    assert found.gap <= 1e-6


def test_saved_drawn_and_forgotten(tmp_path: Any) -> None:
    pytest.importorskip("skops")
    pytest.importorskip("matplotlib").use("Agg")
    model = OWASVC(weights="basic", alpha=0.3).fit(X, Y, groups=GROUPS)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert loaded.groups_.tolist() == model.groups_.tolist()
    display = WeightsDisplay.from_estimator(loaded)
    assert display.labels == ("group east", "group north", "group west")
    DeviationsDisplay.from_estimator(loaded, groups=GROUPS)
    with pytest.raises(ValueError, match=r"trained with groups, \['east'.*Leave X out"):
        DeviationsDisplay.from_estimator(loaded, X, Y)
    assert not hasattr(model.fit(X, Y), "groups_")


def test_groups_travel_through_pipelines_and_cross_validation() -> None:
    with config_context(enable_metadata_routing=True):
        classifier = LinearOWASVC(weights="superquantile", alpha=0.8).set_fit_request(groups=True)
        found = cross_validate(
            make_pipeline(StandardScaler(), classifier),
            X,
            Y,
            cv=3,
            params={"groups": GROUPS},
            return_estimator=True,
        )
    for pipeline in found["estimator"]:
        assert pipeline[-1].groups_.tolist() == ["east", "north", "west"]


def test_dask() -> None:
    da = pytest.importorskip("dask.array")
    model = LinearOWASVC(weights="superquantile", alpha=0.8)
    expected = model.fit(X, Y, groups=GROUPS).objective_
    parts = [da.from_array(array, chunks=(20, *array.shape[1:])) for array in (X, Y, GROUPS)]
    found = model.fit(parts[0], parts[1], groups=parts[2]).objective_
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "groups", "words"),
    [
        ({}, GROUPS[:-1], r"groups must hold one label per sample: got shape \(59,\)"),
        ({}, np.where(GROUPS == "east", np.nan, 1.0), "no missing labels"),
        ({}, np.where(GROUPS == "east", None, GROUPS), "no missing labels"),
        ({}, np.array(["a", 1] * 30, dtype=object), "either text or numbers"),
        ({"ranks": "class"}, GROUPS, "both say among whom"),
        ({"weights": np.arange(60.0)}, GROUPS, "groups cannot be combined .* length 60"),
        ({"solver": "ogryczak-tamir"}, GROUPS, "neither ranks='class' nor groups"),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], groups: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LinearOWASVC(**parameters).fit(X, Y, groups=groups)


def test_parts_are_in_the_order_of_the_labels() -> None:
    costs = assign_costs(
        np.array([-1.0, 1.0, 1.0, -1.0, 1.0]),
        "superquantile",
        0.5,
        groups=np.array(["b", "a", "b", "b", "a"]),
    )
    assert [index.tolist() for index, _ in costs.parts] == [[1, 4], [0, 2, 3]]


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_copies_in_two_groups_stay_apart(kernel: str) -> None:
    samples, y = np.repeat(X[:20], 2, axis=0), np.repeat(Y[:20], 2)
    groups = np.tile(["a", "b"], 20)
    samples = gaussian(samples, 1.0) if kernel == "precomputed" else samples
    parameters = {"weights": "trimmed", "alpha": 0.2, "kernel": kernel, "gamma": 1.0}
    model = OWASVC(C=5.0, **parameters).fit(samples, y, groups=groups)
    assert [weights.size for weights in model.owa_weights_] == [20, 20]
    assert model.sample_costs_.sum() == pytest.approx(5.0 * 40)
    loss = sum(
        weights @ np.sort(model.deviations_[groups == name])
        for weights, name in zip(model.owa_weights_, model.groups_, strict=True)
    )
    assert model.sample_costs_ @ model.deviations_ == pytest.approx(5.0 * loss)
    # Both groups hold the same samples, so that this is one group with C twice as large.
    alone = OWASVC(C=10.0, **parameters)
    half = samples[::2, ::2] if kernel == "precomputed" else samples[::2]
    assert model.objective_ == pytest.approx(alone.fit(half, y[::2]).objective_, rel=1e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("mass", [None, 1.0 + np.arange(60) % 3], ids=["plain", "weighted"])
def test_paths_equal_separate_fits(kernel: str, mass: FloatArray | None) -> None:
    alphas, Cs = [0.7, 0.9], [4.0, 0.2, 30.0]
    given = {"weights": "superquantile", "kernel": kernel, "gamma": 0.5}
    path = fit_path(X, Y, Cs, alphas=alphas, sample_weight=mass, groups=GROUPS, **given)
    for i, alpha in enumerate(alphas):
        for j, C in enumerate(Cs):
            model = OWASVC(C, alpha=alpha, **given).fit(X, Y, sample_weight=mass, groups=GROUPS)
            assert path.objectives[i, j] == pytest.approx(model.objective_, rel=2e-6)
    assert path.gaps.max() <= 1e-6


def test_paths_of_falling_weights_equal_separate_fits() -> None:
    # A copy of every sample, in its own group or in another one.
    samples, y, groups = np.tile(X, (2, 1)), np.tile(Y, 2), np.append(GROUPS, GROUPS[::-1])
    given = {"weights": "trimmed", "gamma": 0.5}
    path = fit_path(samples, y, [2.0], alphas=0.2, groups=groups, **given)
    model = OWASVC(2.0, alpha=0.2, **given).fit(samples, y, groups=groups)
    assert path.objectives[0, 0] == pytest.approx(model.objective_, rel=1e-6)
    assert path.duals.shape == (1, 1, 120)


def test_paths_refuse_groups_of_another_length() -> None:
    with pytest.raises(ValueError, match=r"groups must hold one label per sample: got .*\(3,\)"):
        fit_path(X, Y, groups=GROUPS[:3])


GRID = {"C": [0.3, 10.0], "alpha": [0.6, 0.9], "weights": ["basic"]}


def search_of(estimator: type, **parameters: Any) -> Any:
    """The search over ``GRID`` that belongs to an estimator."""
    kind = {OWASVC: OWASVCCV, LinearOWASVC: LinearOWASVCCV}[estimator]
    given = {"Cs": GRID["C"], "alphas": GRID["alpha"]}
    return kind(**given, cv=3, tol=1e-9, **parameters)


@pytest.mark.parametrize(
    ("estimator", "searched", "widths"),
    [
        (LinearOWASVC, {}, {}),
        (OWASVC, {"gammas": [0.2, 1.0]}, {"gamma": [0.2, 1.0]}),
        (OWASVC, {"gammas": "scale"}, {"gamma": ["scale"]}),
    ],
)
@pytest.mark.parametrize("mass", [None, 1.0 + np.arange(60) % 3], ids=["plain", "weighted"])
def test_searches_equal_grid_searches(
    estimator: type, searched: dict[str, Any], widths: dict[str, Any], mass: FloatArray | None
) -> None:
    search = search_of(estimator, **searched)
    given = {"sample_weight": mass}
    with config_context(enable_metadata_routing=True):
        classifier = estimator(tol=1e-9).set_fit_request(groups=True, sample_weight=True)
        classifier.set_score_request(sample_weight=False)
        reference = GridSearchCV(classifier, {**GRID, **widths}, cv=3)
        reference.fit(X, Y, groups=GROUPS, **given)
        search.fit(X, Y, rank_groups=GROUPS, **given)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == reference.best_params_
    best = search.best_estimator_
    alone = estimator(tol=1e-9, **search.best_params_)
    assert best.objective_ == alone.fit(X, Y, groups=GROUPS, **given).objective_
    assert best.objective_ < alone.fit(X, Y, **given).objective_ * (1.0 - 1e-6)
    assert best.groups_.tolist() == ["east", "north", "west"]


def test_groups_of_the_folds_are_not_those_of_the_ranks() -> None:
    hospitals = np.arange(60) % 7
    search = search_of(LinearOWASVC).set_params(cv=GroupKFold(3))
    both = clone(search).fit(X, Y, groups=hospitals, rank_groups=GROUPS)
    folds = list(GroupKFold(3).split(X, Y, hospitals))
    by_hand = clone(search).set_params(cv=folds).fit(X, Y, rank_groups=GROUPS)
    np.testing.assert_array_equal(both.scores_, by_hand.scores_)
    assert both.best_estimator_.groups_.tolist() == ["east", "north", "west"]
    assert not hasattr(search.fit(X, Y, groups=hospitals).best_estimator_, "groups_")


def test_groups_of_ranks_travel_to_searches_in_pipelines() -> None:
    alone = search_of(LinearOWASVC).fit(StandardScaler().fit_transform(X), Y, rank_groups=GROUPS)
    search = search_of(LinearOWASVC)
    named = make_pipeline(StandardScaler(), clone(search))
    named.fit(X, Y, linearowasvccv__rank_groups=GROUPS)
    np.testing.assert_array_equal(named[-1].scores_, alone.scores_)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), search.set_fit_request(rank_groups=True))
        routed.fit(X, Y, rank_groups=GROUPS)
    np.testing.assert_array_equal(routed[-1].scores_, alone.scores_)


@pytest.mark.parametrize(
    ("parameters", "groups", "words"),
    [
        ({}, GROUPS[:-1], r"rank_groups must hold one label per sample: got shape \(59,\)"),
        ({}, np.where(GROUPS == "east", None, GROUPS), "rank_groups .* no missing labels"),
        ({"ranks": "class"}, GROUPS, "ranks='class' and rank_groups both .* Use ranks='all'"),
    ],
)
def test_what_searches_refuse(parameters: dict[str, Any], groups: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        search_of(LinearOWASVC, **parameters).fit(X, Y, rank_groups=groups)
