"""The two-step classifier: orders against scikit-learn, steps against SVC, weights as copies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KernelDensity, LocalOutlierFactor, NearestNeighbors
from sklearn.svm import SVC

from owasvm import OWASVC, TwoStepOWASVC
from owasvm.costs import RankCosts
from owasvm.estimators._orders import INDUCED_ORDERS, OrderOptions, induced_scores
from owasvm.grouping import charge_by_rank
from owasvm.weights import owa_weights
from tests.strategies import classification_problems, sample_counts

X, y = make_moons(80, noise=0.3, random_state=0)
OPTIONS = OrderOptions(n_neighbors=6, bandwidth=0.4, eps=0.3, min_samples=(3, 9))


# Orders against scikit-learn


def test_lof_is_that_of_scikit_learn():
    oracle = -LocalOutlierFactor(n_neighbors=6).fit(X).negative_outlier_factor_
    np.testing.assert_allclose(induced_scores("lof", X, None, OPTIONS), oracle, rtol=1e-8)


def test_knn_is_the_mean_distance():
    distances, _ = NearestNeighbors(n_neighbors=6).fit(X).kneighbors()
    scores = induced_scores("knn", X, None, OPTIONS)
    np.testing.assert_allclose(scores, distances.mean(axis=1), rtol=1e-12)


def test_parzen_is_kernel_density():
    log_density = KernelDensity(bandwidth=0.4).fit(X).score_samples(X)
    scores = induced_scores("parzen", X, None, OPTIONS)
    np.testing.assert_allclose(scores - scores[0], log_density[0] - log_density, atol=1e-9)


def test_parzen_keeps_far_outliers_apart():
    # Their densities underflow, the logarithms do not.
    points = np.array([[0.0], [0.1], [50.0], [60.0], [60.1]])
    scores = induced_scores("parzen", points, None, OrderOptions(bandwidth=0.01))
    assert scores[0] < scores[2]
    assert np.all(np.isfinite(scores))


def test_spread_is_the_sum_of_absolute_distances_to_the_mean():
    scores = induced_scores("spread", X, None, OPTIONS)
    np.testing.assert_allclose(scores, np.abs(X - X.mean(axis=0)).sum(axis=1))


def test_crisp_fuzzy_dbscan_is_dbscan():
    labels = DBSCAN(eps=0.3, min_samples=6).fit(X).labels_
    assert 0 < (labels == -1).sum() < 40
    options = OrderOptions(eps=0.3, min_samples=(6, 6))
    np.testing.assert_array_equal(
        induced_scores("fuzzy-dbscan", X, None, options), (labels == -1).astype(float)
    )


def test_fuzzy_dbscan_by_hand():
    # Samples within 1.0, themselves included: 3, 4, 5, 4, 3, 1; degrees 0, 1/2, 1, 1/2, 0, 0. The
    # first and the fifth are on the border of core points of degrees 1/2 and 1; the last is noise.
    points = np.array([0.0, 0.5, 1.0, 1.4, 2.0, 9.0])[:, None]
    options = OrderOptions(eps=1.0, min_samples=(3, 5))
    scores = induced_scores("fuzzy-dbscan", points, None, options)
    np.testing.assert_allclose(scores, [0.5, 0.5, 0.0, 0.5, 0.5, 1.0])


def test_default_widths_follow_the_scale_of_the_data():
    for order in ("parzen", "fuzzy-dbscan"):
        scores = induced_scores(order, X, None, OrderOptions())
        np.testing.assert_allclose(
            induced_scores(order, 1e4 * X, None, OrderOptions()), scores, atol=1e-9
        )
        assert np.unique(scores).size > 5


@pytest.mark.parametrize("order", INDUCED_ORDERS)
@pytest.mark.parametrize("block", [1, 1000])
def test_blocks_do_not_matter(monkeypatch, order, block):
    expected = induced_scores(order, X, None, OPTIONS)
    monkeypatch.setattr("owasvm.estimators._orders._BLOCK_ENTRIES", block)
    np.testing.assert_allclose(induced_scores(order, X, None, OPTIONS), expected, rtol=1e-12)


@pytest.mark.parametrize("order", INDUCED_ORDERS)
def test_sparse_samples(order):
    points = np.where(np.abs(X) > 0.3, X, 0.0)
    expected = induced_scores(order, points, None, OPTIONS)
    for container in (sp.csr_matrix, sp.csr_array):
        scores = induced_scores(order, container(points), None, OPTIONS)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("order", sorted(set(INDUCED_ORDERS) - {"spread"}))
def test_distances_of_a_gram_matrix(order):
    expected = induced_scores(order, X, None, OPTIONS)
    scores = induced_scores(order, X @ X.T, None, OPTIONS, is_gram=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("order", INDUCED_ORDERS)
@given(problem=classification_problems(max_samples=25), data=st.data())
@settings(max_examples=25)
def test_scores_of_weights_are_those_of_copies(order, problem, data):
    points, _ = problem
    counts = data.draw(sample_counts(len(points)))
    options = OrderOptions(n_neighbors=4, min_samples=(2, 6))
    weighted = induced_scores(order, points, counts.astype(float), options)
    repeated = induced_scores(order, np.repeat(points, counts, axis=0), None, options)
    np.testing.assert_allclose(np.repeat(weighted, counts), repeated, rtol=1e-9, atol=1e-12)
    assert np.all(np.isfinite(weighted))


def test_samples_that_are_all_alike_spread_by_nothing():
    # The mean of copies is off by rounding, differently for weights than for copies.
    points = np.tile([-391.706874, -0.0043130, 2.712629, 1381.86778], (18, 1))
    for mass in (None, np.arange(1.0, 19.0)):
        assert not induced_scores("spread", points, mass, OrderOptions()).any()


def test_more_neighbours_than_samples():
    few = X[:5]
    expected = induced_scores("lof", few, None, OrderOptions(n_neighbors=4))
    scores = induced_scores("lof", few, None, OrderOptions(n_neighbors=50))
    np.testing.assert_array_equal(scores, expected)
    small = np.full(5, 0.1)
    assert np.all(np.isfinite(induced_scores("knn", few, small, OrderOptions())))


# Rank weights


def test_rank_weights_of_distinct_scores():
    scores = np.array([3.0, -1.0, 2.0, 7.0])
    weights = charge_by_rank(RankCosts(4, "basic", 0.5), scores)
    np.testing.assert_allclose(weights, owa_weights(4, "basic", 0.5)[[2, 0, 1, 3]])


def test_equal_scores_share_their_weights():
    scores = np.array([3.0, 1.0, 3.0 * (1 + 1e-15), 7.0])
    weights = charge_by_rank(RankCosts(4, [1.0, 2.0, 4.0, 9.0]), scores)
    np.testing.assert_allclose(weights, np.array([3.0, 1.0, 3.0, 9.0]) / 4)


@given(
    scores=st.lists(st.integers(0, 4), min_size=2, max_size=12),
    family=st.sampled_from([("basic", 0.4), ("trimmed", 0.3), ("max-entropy", 0.7)]),
    data=st.data(),
)
def test_rank_weights_of_weights_are_those_of_copies(scores, family, data):
    values = np.array(scores, dtype=float)
    counts = data.draw(sample_counts(values.size))
    weighted = charge_by_rank(RankCosts(values.size, *family, 1.0, counts), values)
    repeated = charge_by_rank(RankCosts(counts.sum(), *family), np.repeat(values, counts))
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    np.testing.assert_allclose(weighted, np.add.reduceat(repeated, starts), atol=1e-12)
    assert weighted.sum() == pytest.approx(counts.sum())


# The steps


def expected_weights(values, weights):
    """Rank weights by counting: ties, up to 1e-6, share the mean of their positions."""
    rounded = np.round(values, 5)
    low, high = (rankdata(rounded, method=method).astype(int) for method in ("min", "max"))
    return np.array([weights[a - 1 : b].mean() for a, b in zip(low, high, strict=True)])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("family", "alpha"), [("basic", 0.4), ("trimmed", 0.2)])
def test_both_steps_are_those_of_svc(kernel, family, alpha):
    clf = TwoStepOWASVC(C=2.0, weights=family, alpha=alpha, kernel=kernel).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    first = SVC(C=2.0, kernel=kernel, tol=1e-6).fit(X, y)
    # Raw values: those inside their half-space are ranked too, not clipped at 0.
    values = 1.0 - signs * first.decision_function(X)
    assert values.min() < -0.1
    weights = expected_weights(values, owa_weights(80, family, alpha))
    np.testing.assert_allclose(clf.rank_weights_, weights, rtol=1e-9, atol=1e-15)
    second = SVC(C=2.0, kernel=kernel, tol=1e-6).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(clf.decision_function(X), second.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(
        clf.decision_function(X), clf.second_step_.decision_function(X), atol=1e-9
    )
    np.testing.assert_allclose(
        clf.first_step_.decision_function(X), first.decision_function(X), atol=1e-5
    )
    assert np.all(np.diff(values[clf.order_]) > -1e-5)


def test_the_largest_value_meets_the_last_weight():
    clf = TwoStepOWASVC(kernel="linear", weights="basic", alpha=0.3).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    worst = np.argmax(1.0 - signs * clf.first_step_.decision_function(X))
    assert clf.order_[-1] == worst
    assert clf.rank_weights_[worst] == owa_weights(80, "basic", 0.3)[-1]


@pytest.mark.parametrize("order", INDUCED_ORDERS)
def test_outliers_come_last(order):
    points, labels = make_blobs(60, centers=2, random_state=3)
    points[7] = [40.0, -40.0]
    clf = TwoStepOWASVC(order=order, weights=[*[0.1] * 59, 1.0]).fit(points, labels)
    assert clf.first_step_ is None
    assert clf.rank_weights_[7] == clf.rank_weights_.max() > clf.rank_weights_.min()


def test_mix_zero_and_uniform_weights_are_svc():
    expected = SVC(tol=1e-6).fit(X, y).decision_function(X)
    for clf in (TwoStepOWASVC(mix=0.0), TwoStepOWASVC(weights="uniform")):
        np.testing.assert_allclose(clf.fit(X, y).decision_function(X), expected, atol=1e-5)


def test_mix_is_linear_in_the_weights():
    pure = TwoStepOWASVC(mix=1.0).fit(X, y).rank_weights_
    mixed = TwoStepOWASVC(mix=0.3).fit(X, y).rank_weights_
    np.testing.assert_allclose(mixed, 0.3 * pure + 0.7)


@pytest.mark.parametrize("family", ["basic", "trimmed", "superquantile"])
def test_objective_is_that_of_the_final_deviations(family):
    clf = TwoStepOWASVC(C=3.0, weights=family, alpha=0.4, kernel="linear", mix=0.9).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    deviations = np.sort(np.maximum(0.0, 1.0 - signs * clf.decision_function(X)))
    loss = 3.0 * owa_weights(80, family, 0.4) @ deviations
    assert clf.objective_ == pytest.approx(0.5 * (clf.coef_**2).sum() + loss, rel=1e-9)
    np.testing.assert_allclose(clf.owa_weights_, owa_weights(80, family, 0.4))


def test_never_better_than_the_exact_classifier():
    exact = OWASVC(weights="basic", alpha=0.4).fit(X, y)
    for order in ("deviation", *INDUCED_ORDERS):
        clf = TwoStepOWASVC(weights="basic", alpha=0.4, order=order).fit(X, y)
        assert clf.objective_ >= exact.objective_ * (1 - 1e-6)


def test_the_order_of_the_rows_does_not_matter():
    shuffled = np.random.default_rng(0).permutation(80)
    for order in ("deviation", *INDUCED_ORDERS):
        clf = TwoStepOWASVC(order=order).fit(X, y)
        other = TwoStepOWASVC(order=order).fit(X[shuffled], y[shuffled])
        np.testing.assert_allclose(other.rank_weights_, clf.rank_weights_[shuffled], rtol=1e-9)
        np.testing.assert_allclose(other.decision_function(X), clf.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("order", ["deviation", *INDUCED_ORDERS])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_copies(order, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=80)
    clf = TwoStepOWASVC(order=order, C=5.0, class_weight="balanced")
    weighted = clf.fit(X, y, sample_weight=counts)
    decision_values, objective = weighted.decision_function(X), weighted.objective_
    rank_weights_ = weighted.rank_weights_
    repeated = clf.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(decision_values, repeated.decision_function(X), atol=1e-6)
    assert objective == pytest.approx(repeated.objective_, rel=1e-7)
    owner = np.repeat(np.arange(80), counts)
    totals = np.bincount(owner, weights=repeated.rank_weights_, minlength=80)
    np.testing.assert_allclose(rank_weights_, totals, rtol=1e-7)


def test_ranks_of_weight_zero():
    clf = TwoStepOWASVC(weights="trimmed", alpha=0.3).fit(X, y)
    assert set(clf.support_) <= set(np.flatnonzero(clf.rank_weights_))
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    gram = rbf_kernel(X, X, clf.gamma_)
    precomputed = TwoStepOWASVC(weights="trimmed", alpha=0.3, kernel="precomputed").fit(gram, y)
    np.testing.assert_array_equal(precomputed.support_, clf.support_)
    assert precomputed.objective_ == pytest.approx(clf.objective_, rel=1e-7)


def test_rows_of_weight_zero_keep_their_place():
    weights = np.ones(80)
    weights[::3] = 0.0
    clf = TwoStepOWASVC().fit(X, y, sample_weight=weights)
    kept = np.flatnonzero(weights)
    assert np.all(clf.rank_weights_[::3] == 0.0)
    assert clf.rank_weights_[kept].sum() == pytest.approx(kept.size)
    assert np.array_equal(np.sort(clf.order_), kept)
    assert set(clf.support_) <= set(kept)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])


def test_more_than_two_classes():
    points, labels = make_blobs(60, centers=3, cluster_std=1.2, random_state=0)
    names = np.array(["a", "b", "c"])[labels]
    clf = TwoStepOWASVC().fit(points, names)
    assert clf.decision_function(points).shape == (60, 3)
    assert clf.rank_weights_.shape == clf.order_.shape == (3, 60)
    assert len(clf.first_step_) == len(clf.second_step_) == 3
    for k, name in enumerate(clf.classes_):
        binary = TwoStepOWASVC().fit(points, names == name)
        np.testing.assert_allclose(
            clf.decision_function(points)[:, k], binary.decision_function(points), atol=1e-9
        )
        assert clf.objective_[k] == pytest.approx(binary.objective_)
    assert clf.score(points, names) > 0.8


def test_precomputed_and_callable_kernels():
    expected = TwoStepOWASVC(gamma=0.7, order="knn").fit(X, y)
    values = expected.decision_function(X)
    from_callable = TwoStepOWASVC(kernel=lambda a, b: rbf_kernel(a, b, 0.7), order="knn")
    np.testing.assert_allclose(from_callable.fit(X, y).decision_function(X), values, atol=1e-6)
    deviation = TwoStepOWASVC(gamma=0.7).fit(X, y)
    gram = rbf_kernel(X, X, 0.7)
    precomputed = TwoStepOWASVC(kernel="precomputed").fit(gram, y)
    np.testing.assert_allclose(
        precomputed.decision_function(gram), deviation.decision_function(X), atol=1e-6
    )
    with pytest.raises(ValueError, match="order='spread' needs the features"):
        TwoStepOWASVC(kernel="precomputed", order="spread").fit(gram, y)


def test_first_and_second_step_speak_the_labels_of_the_user():
    names = np.array(["no", "yes"])[y]
    clf = TwoStepOWASVC().fit(X, names)
    assert set(clf.first_step_.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(clf.second_step_.predict(X), clf.predict(X))


def test_long_indices():
    matrix = sp.csr_matrix(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    expected = TwoStepOWASVC().fit(sp.csr_matrix(X), y).decision_function(X)
    np.testing.assert_allclose(TwoStepOWASVC().fit(matrix, y).decision_function(X), expected)


def test_stalled_tolerance_falls_back():
    # The kernel matrix has rank 2; rounded to single precision it is not semi-definite, and
    # LIBSVM crawls once its tolerance is below that rounding.
    clf = TwoStepOWASVC(kernel="linear", C=2.0, alpha=0.4).fit(X, y)
    assert {clf.first_step_.tol, clf.second_step_.tol} - {1e-10} == {1e-6}
    assert TwoStepOWASVC(kernel="linear", tol=1e-3).fit(X, y).second_step_.tol == 1e-3


def test_iteration_limit():
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=2\)"):
        clf = TwoStepOWASVC(max_iter=2).fit(X, y)
    # Three tolerances are tried, two iterations each, in both steps.
    assert clf.second_step_.tol == 1e-3
    assert clf.n_iter_ == 4


def test_in_a_grid_search():
    search = GridSearchCV(
        TwoStepOWASVC(), {"order": ["deviation", "lof"], "mix": [0.5, 1.0]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.75


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": "size"}, "The 'order' parameter of TwoStepOWASVC must be a str among"),
        ({"mix": 1.5}, r"The 'mix' parameter .* range \[0.0, 1.0\]. Got 1.5"),
        ({"order": "fuzzy-dbscan", "min_samples": (5, 2)}, r"min_samples=\(5, 2\) must be two"),
        ({"order": "fuzzy-dbscan", "min_samples": (1, 2, 3)}, "must be two numbers"),
        (
            {"weights": "superquantile", "alpha": 0.001},
            "All samples of class .* have rank weight 0 in the second step",
        ),
    ],
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        TwoStepOWASVC(**parameters).fit(X, y)


def test_the_papers_best_cell_on_ionosphere(ionosphere):
    # Table 2 and 3, app-OWA-SVM: accuracy 90.89, balanced accuracy 88.89.
    features, labels = ionosphere
    clf = TwoStepOWASVC(C=2.0**5, weights="exponential", alpha=0.6, kernel="linear")
    folds = StratifiedKFold(10, shuffle=True, random_state=2)
    for scoring, printed in (("accuracy", 90.89), ("balanced_accuracy", 88.89)):
        scores = cross_val_score(clf, features, labels, cv=folds, scoring=scoring)
        assert round(100 * scores.mean(), 2) == printed
