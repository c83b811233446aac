"""Weights that fall: neither the order of rows nor a writing as copies or weights matters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm import OWASVC, OWASVCCV, LinearOWASVC
from owasvm.distinct import DistinctSet
from owasvm.path import fit_path
from owasvm.preparation import TrainingSet

FALLING = [("trimmed", 0.2), ("olympic", 0.5), ("trigonometric", 0.8), ("quadratic", 0.8)]
# Proofs take long, and where a search ends is the question here.
QUICK = {"solver": "dca", "solver_options": {"n_init": 2}}


@st.composite
def weighted_data(draw, n_classes=2):
    """Rows, labels and whole weights; rows may be copies of each other, weights zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_samples = draw(st.integers(4, 24))
    X = rng.normal(size=(n_samples, draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = np.rint(X)
    y = rng.integers(n_classes, size=n_samples)
    mass = rng.integers(0, 4, size=n_samples).astype(float)
    y[:n_classes], mass[:n_classes] = np.arange(n_classes), 1.0
    return X, y, mass, rng


def write_copies(mass, rng):
    """Positions of the rows, as often as their weights say, in any order."""
    return rng.permutation(np.repeat(np.arange(mass.size), mass.astype(int)))


def make(kind, **parameters):
    if kind in ("linear", "sparse"):
        return LinearOWASVC(**QUICK, **parameters)
    return OWASVC(kernel="precomputed" if kind == "precomputed" else "rbf", **QUICK, **parameters)


def rows_of(kind, X, index):
    if kind == "precomputed":
        gram = np.exp(-((X[:, np.newaxis] - X) ** 2).sum(axis=2))
        return gram[np.ix_(index, index)]
    return sp.csr_matrix(X[index]) if kind in ("sparse", "sparse kernel") else X[index]


KINDS = ["kernel", "linear", "sparse", "sparse kernel", "precomputed"]


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize(("family", "alpha"), FALLING)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(data=weighted_data(), ranks=st.sampled_from(["all", "class"]), C=st.sampled_from([0.1, 20]))
def test_copies_in_any_order_end_where_weights_do(kind, family, alpha, data, ranks, C):
    X, y, mass, rng = data
    index = write_copies(mass, rng)
    model = make(kind, weights=family, alpha=alpha, ranks=ranks, C=C)
    every = np.arange(y.size)
    model.fit(rows_of(kind, X, every), y, sample_weight=mass)
    kept = mass > 0
    figures = model.objective_, model.lower_bound_, model.n_iter_
    deviations, costs = model.deviations_, model.sample_costs_
    ignored = np.isin(every, model.outliers_)
    model.fit(rows_of(kind, X, index), y[index])
    if model.convex_:
        # Weights of one or two samples do not fall; the order of rows costs the last digits.
        np.testing.assert_allclose(model.objective_, figures[0], rtol=1e-6, atol=1e-6)
        return
    # Much more than the last digit would be another local solution.
    assert (model.objective_, model.lower_bound_, model.n_iter_) == figures
    np.testing.assert_array_equal(model.deviations_, deviations[index])
    sums = np.bincount(index, model.sample_costs_, y.size)
    # Rows with equal values share what they pay together.
    same = [np.all(X == row, axis=1) & (y == label) for row, label in zip(X, y, strict=True)]
    totals = [(costs[one & kept].sum(), sums[one & kept].sum()) for one in same]
    np.testing.assert_allclose(*np.array(totals).T, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(np.isin(index, index[model.outliers_]), ignored[index])
    if ranks == "all":
        assert model.owa_weights_.size == index.size


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fractions_and_balanced_classes(n_classes):
    rng = np.random.default_rng(0)
    X, y = np.rint(2.0 * rng.normal(size=(60, 2))), rng.integers(n_classes, size=60)
    mass = rng.uniform(0.1, 2.0, size=60)
    model = make("kernel", weights="trimmed", alpha=0.2, class_weight="balanced")
    expected = model.fit(X, y, sample_weight=mass).objective_
    for seed in range(3):
        index = np.random.default_rng(seed).permutation(60)
        model.fit(X[index], y[index], sample_weight=mass[index])
        np.testing.assert_array_equal(model.objective_, expected)
    index = np.repeat(np.arange(60), 3)
    tripled = model.fit(X[index], y[index], sample_weight=mass[index]).objective_
    expected = model.fit(X, y, sample_weight=3.0 * mass).objective_
    # Three times a number is not always the sum of three of it.
    np.testing.assert_allclose(tripled, expected, rtol=1e-7)


@pytest.mark.parametrize("kind", ["kernel", "linear", "precomputed"])
def test_the_classifier_is_the_one_that_was_judged(kind):
    """Coefficients of copies lie with the first of them, and no digit is lost."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.integers(2, size=40)
    index = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 4, size=40)))
    rows = rows_of(kind, X, index)
    model = make(kind, weights="trigonometric", alpha=0.8).fit(rows, y[index])
    values = model.decision_function(rows)
    deviations = np.maximum(1.0 - np.where(y[index] > 0, 1.0, -1.0) * values, 0.0)
    np.testing.assert_allclose(deviations, model.deviations_, atol=1e-12)
    costs = np.sort(deviations) @ model.owa_weights_
    assert model.solution_.dual.size == model.owa_weights_.size == index.size
    dual = model.solution_.dual
    signed = np.where(y[index] > 0, 1.0, -1.0) * dual
    np.testing.assert_array_equal(np.flatnonzero(dual), model.support_)
    np.testing.assert_array_equal(signed[model.support_], model.dual_coef_[0])
    half_norm = 0.5 * signed @ (values - model.intercept_)
    assert model.objective_ == pytest.approx(half_norm + costs, rel=1e-9)
    assert np.sum(model.sample_costs_) == pytest.approx(index.size)


def test_warm_starts_find_their_samples_again():
    rng = np.random.default_rng(2)
    X, y = np.rint(2.0 * rng.normal(size=(60, 2))), rng.integers(2, size=60)
    model = make("kernel", weights="trimmed", alpha=0.2, warm_start=True)
    first = model.set_params(solver_options={"n_init": 8}).fit(X, y).objective_
    model.set_params(solver_options={"n_init": 2})
    assert model.fit(X, y).objective_ <= first * (1.0 + 1e-12)


def test_arrays_of_weights_are_not_merged():
    rng = np.random.default_rng(3)
    X, y = np.rint(rng.normal(size=(30, 2))), rng.integers(2, size=30)
    weights = np.repeat([1.0, 0.0], [24, 6])
    model = make("kernel", weights=weights)
    expected = model.fit(X, y).objective_
    index = rng.permutation(30)
    assert model.fit(X[index], y[index]).objective_ == expected


def test_paths_do_not_depend_on_the_order():
    rng = np.random.default_rng(4)
    X, y = np.rint(2.0 * rng.normal(size=(40, 2))), rng.integers(2, size=40)
    path = fit_path(X, y, [0.5, 5.0], weights="trimmed", alphas=[0.1, 0.2])
    index = rng.permutation(40)
    other = fit_path(X[index], y[index], [0.5, 5.0], weights="trimmed", alphas=[0.1, 0.2])
    np.testing.assert_array_equal(path.objectives, other.objectives)
    assert path.duals.shape == (2, 2, 40)
    deviations = path.solutions[1][1].deviations
    np.testing.assert_array_equal(deviations[index], other.solutions[1][1].deviations)


def test_searches_merge_within_folds():
    """Copies within a fold, and candidates of which some fall."""
    rng = np.random.default_rng(5)
    X, y = np.rint(2.0 * rng.normal(size=(60, 2))), rng.integers(2, size=60)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    search = OWASVCCV(
        [0.5, 5.0], weights=["trimmed", "basic"], alphas=[0.1, 0.2], cv=folds, gammas=0.5, **QUICK
    ).fit(X, y)
    k = next(
        k
        for k, one in enumerate(search.cv_results_["params"])
        if one == {"C": 0.5, "alpha": 0.1, "weights": "trimmed", "gamma": 0.5}
    )
    alone = OWASVC(0.5, weights="trimmed", alpha=0.1, gamma=0.5, **QUICK)
    for number, (train, test) in enumerate(folds):
        score = alone.fit(X[train], y[train]).score(X[test], y[test])
        assert search.cv_results_[f"split{number}_test_score"][k] == pytest.approx(score)


def test_dense_sparse_and_single_precision_have_one_order():
    rng = np.random.default_rng(6)
    X = np.rint(2.0 * rng.normal(size=(80, 4)))
    X[:3] = 0.0
    X[3] = -0.0
    y = rng.integers(2, size=80)
    sets = [
        DistinctSet.of(TrainingSet.of(rows, y, keep_single=True), pairwise=False)
        for rows in (X, sp.csr_matrix(X), X.astype(np.float32), _with_zeros(X))
    ]
    for one in sets:
        np.testing.assert_array_equal(one.first, sets[0].first)
        np.testing.assert_array_equal(one.place, sets[0].place)
    distinct = sets[0].training
    assert distinct.n_samples == len(np.unique(np.column_stack([X, y]), axis=0))
    assert distinct.mass.sum() == 80
    np.testing.assert_array_equal(X[sets[0].first][sets[0].place], X)


def _with_zeros(X):
    """A sparse matrix that stores its zeros."""
    n_rows, n_columns = X.shape
    indices = np.tile(np.arange(n_columns), n_rows)
    return sp.csr_matrix((X.ravel(), indices, n_columns * np.arange(n_rows + 1)), X.shape)


@pytest.mark.parametrize(
    "labels",
    [
        [2, 1, 2, 1],
        [0.5, -1.0, 0.5],
        [1.0, 1.0],
        [True, False, True],
        [3, 1, 2, 1],
        np.array([7, 9, 9], dtype=np.uint8),
        np.array([1.0, 2.0, 1.0], dtype=">f4"),
        ["b", "a", "b"],
    ],
)
def test_classes_are_the_sorted_labels(labels):
    expected, codes = np.unique(labels, return_inverse=True)
    training = TrainingSet.of(np.zeros((len(labels), 1)), labels)
    assert training.classes.dtype == expected.dtype
    assert training.classes.tolist() == expected.tolist()
    assert training.codes.tolist() == codes.tolist()
