"""Weights that never fall: rows that are copies of others are solved for as one sample."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from owasvm import OWASVC, OWASVCCV, LinearOWASVC
from owasvm.distinct import DistinctSet
from owasvm.optimality import certificate
from owasvm.path import fit_path
from owasvm.preparation import TrainingSet

pytestmark = pytest.mark.filterwarnings("ignore:.*w = 0 is the:UserWarning")

CONVEX = [("uniform", None), ("basic", 0.15), ("superquantile", 0.3), ("max-entropy", 0.8)]


def draw_copies(seed, n_samples=60, n_classes=2, n_values=3):
    """Rows on a grid of two features: at least three fifths of them are copies."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, size=(n_samples, 2)).astype(float)
    y = (X.sum(axis=1) + rng.normal(scale=1.5, size=n_samples) > n_values - 1).astype(int)
    if n_classes > 2:
        y = rng.integers(n_classes, size=n_samples)
    y[:n_classes] = np.arange(n_classes)
    return X, y, rng


def gaussian(X):
    return np.exp(-((X[:, np.newaxis] - X) ** 2).sum(axis=2))


def fit_unmerged(monkeypatch, model, *arguments, **parameters):
    with monkeypatch.context() as patch:
        patch.setattr(OWASVC, "_merges_copies", False)
        return model.fit(*arguments, **parameters)


def dual_of(model, n_samples):
    dual = np.zeros(n_samples)
    dual[model.support_] = model.dual_coef_[0]
    return dual


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), is_weighted=st.booleans())
def test_coefficients_of_copies_sum_to_the_whole_exactly(seed, is_weighted):
    X, y, rng = draw_copies(seed)
    mass = 10.0 ** rng.uniform(-12, 12, size=y.size) if is_weighted else None
    distinct = DistinctSet.without_copies(TrainingSet.of(X, y, mass), pairwise=False)
    whole = rng.normal(size=distinct.training.n_samples) * 10.0 ** rng.uniform(-9, 9)
    parts = distinct.assign(whole)
    for k, value in enumerate(whole.tolist()):
        own = distinct.place == k
        assert sum(map(Fraction, parts[own].tolist())) == Fraction(value)
        np.testing.assert_allclose(
            parts[own], value * distinct.share[own], rtol=1e-12, atol=1e-14 * abs(value)
        )


@pytest.mark.parametrize(("family", "alpha"), CONVEX)
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.sampled_from([0.05, 1.0, 100.0]),
    ranks=st.sampled_from(["all", "class"]),
    is_weighted=st.booleans(),
)
def test_the_dual_point_proves_the_gap_with_all_copies(family, alpha, seed, C, ranks, is_weighted):
    X, y, rng = draw_copies(seed)
    mass = rng.integers(1, 4, size=y.size) if is_weighted else None
    model = OWASVC(C, weights=family, alpha=alpha, ranks=ranks, gamma=1.0)
    model.fit(X, y, sample_weight=mass)
    assert model.status_ == "optimal"
    found = certificate(
        gram=gaussian(X),
        y=y,
        weights=family,
        alpha=alpha,
        C=C,
        dual=dual_of(model, y.size),
        intercept=model.intercept_[0],
        sample_weight=mass,
        ranks=ranks,
    )
    assert found.gap <= 1.1e-6
    assert found.objective == pytest.approx(model.objective_, rel=1e-9)
    np.testing.assert_allclose(found.deviations, model.deviations_, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed", "weighted", "groups"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_merged_and_unmerged_fits_agree(monkeypatch, kind, loss, n_classes):
    X, y, rng = draw_copies(3, n_classes=n_classes)
    rows = {"sparse": sp.csr_matrix(X), "precomputed": gaussian(X)}.get(kind, X)
    kernel = "precomputed" if kind == "precomputed" else "rbf"
    parameters = {}
    if kind == "weighted":
        parameters["sample_weight"] = rng.random(y.size) * (rng.random(y.size) < 0.9)
    if kind == "groups":
        parameters["groups"] = rng.integers(2, size=y.size)
    model = OWASVC(2.0, kernel=kernel, gamma=1.0, loss=loss, tol=1e-10)
    merged = model.fit(rows, y, **parameters)
    decided, paid = merged.decision_function(rows), merged.sample_costs_
    objective, n_support = merged.objective_, merged.n_support_
    other = fit_unmerged(monkeypatch, model, rows, y, **parameters)
    np.testing.assert_allclose(objective, other.objective_, rtol=1e-8)
    np.testing.assert_allclose(decided, other.decision_function(rows), atol=1e-4)
    assert n_support.shape == other.n_support_.shape
    assert paid.shape == other.sample_costs_.shape
    np.testing.assert_array_equal(np.isnan(paid), np.isnan(other.sample_costs_))


def test_only_many_copies_are_merged():
    X, y, rng = draw_copies(0)
    for pairwise, rows in [(False, X), (True, gaussian(X))]:
        merged = DistinctSet.without_copies(TrainingSet.of(rows, y), pairwise=pairwise)
        assert merged.training.n_samples == np.unique(np.column_stack([X, y]), axis=0).shape[0]
        assert np.all(np.diff(merged.first) > 0)
        np.testing.assert_array_equal(merged.collect(np.ones(y.size)), merged.training.mass)
        np.testing.assert_allclose(merged.assign(merged.training.mass), 1.0)
    # Nine of ten rows differ, in a column or in all of them together.
    for column in (rng.normal(size=y.size), np.zeros(y.size)):
        several = np.column_stack([column, rng.permutation(y.size)])
        several[-6:] = several[:6]
        training = TrainingSet.of(several, np.arange(y.size) % 2)
        assert DistinctSet.without_copies(training, pairwise=False).training is training


def test_other_solvers_and_arrays_see_all_copies():
    X, y, _ = draw_copies(1, n_samples=20)
    weights = np.linspace(1.0, 2.0, y.size)
    array = OWASVC(1.0, weights=weights, gamma=1.0).fit(X, y)
    model = OWASVC(1.0, solver="ogryczak-tamir", gamma=1.0).fit(X, y)
    exact = OWASVC(1.0, gamma=1.0).fit(X, y)
    assert array.status_ == "optimal"
    np.testing.assert_allclose(model.objective_, exact.objective_, rtol=1e-5)
    linear = LinearOWASVC(1.0).fit(X, y)
    kernel = OWASVC(1.0, kernel="linear").fit(X, y)
    np.testing.assert_allclose(linear.objective_, kernel.objective_, rtol=2e-6)


def test_warm_starts_with_other_labels():
    X, y, rng = draw_copies(2)
    model = OWASVC(1.0, gamma=1.0, warm_start=True).fit(X, y)
    for C in (1.1, 1.2, 5.0):
        model.set_params(C=C).fit(X, y)
        cold = OWASVC(C, gamma=1.0).fit(X, y)
        assert model.status_ == "optimal"
        np.testing.assert_allclose(model.objective_, cold.objective_, rtol=2e-6)
    # Other copies are merged now.
    others = rng.permutation(y)
    model.fit(X, others)
    np.testing.assert_allclose(
        model.objective_, OWASVC(5.0, gamma=1.0).fit(X, others).objective_, rtol=2e-6
    )


def test_paths_and_searches_merge_copies():
    X, y, _ = draw_copies(5, n_samples=90)
    Cs = [0.1, 1.0, 10.0]
    path = fit_path(X, y, Cs=Cs, kernel="rbf", gamma=1.0)
    for C, solution in zip(Cs, path.solutions[0], strict=True):
        assert solution.dual.shape == y.shape
        alone = OWASVC(C, gamma=1.0).fit(X, y)
        np.testing.assert_allclose(solution.objective, alone.objective_, rtol=2e-6)
    # Copies with both labels are often decided by 0, up to rounding.
    rng = np.random.default_rng(0)
    copied = rng.integers(40, size=120)
    points = rng.normal(size=(40, 2))
    X, y = points[copied], (points[copied, 0] + points[copied, 1] ** 2 > 0.7).astype(int)
    cv = StratifiedKFold(3)
    search = OWASVCCV(Cs=Cs, alphas=[0.6], gammas=[1.0], cv=cv).fit(X, y)
    grid = GridSearchCV(OWASVC(gamma=1.0), {"C": Cs}, cv=cv).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"]
    )
