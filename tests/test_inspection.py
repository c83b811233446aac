"""``label_issues``: wrong labels come first, whatever the classifier and the labels are."""

import builtins
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_circles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC
from owasvm.inspection import label_issues, suspicion

N_SAMPLES = 120
X, TRUTH = make_moons(N_SAMPLES, noise=0.15, random_state=0)
FLIPPED = np.random.default_rng(0).choice(N_SAMPLES, 12, replace=False)
Y = np.where(np.isin(np.arange(N_SAMPLES), FLIPPED), 1 - TRUTH, TRUTH)


def precision(issues, flipped):
    return average_precision_score(np.isin(issues["row"], flipped), issues["score"])


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        OWASVC(C=10, weights="uniform"),
        OWASVC(weights="trimmed", alpha=0.1, solver="dca"),
        TwoStepOWASVC(C=10, weights="trimmed", alpha=0.1),
        make_pipeline(StandardScaler(), LinearOWASVC()),
        SVC(C=10),
        GaussianNB(),
    ],
    ids=["default", "exact", "trimmed", "two-step", "pipeline", "SVC", "probabilities"],
)
def test_flipped_labels_come_first(estimator):
    issues = label_issues(estimator, X, Y, n_repeats=2)
    assert list(issues.columns) == ["row", "label", "suggested", "score"]
    np.testing.assert_array_equal(np.sort(issues["row"]), np.arange(N_SAMPLES))
    np.testing.assert_array_equal(issues["label"], Y[issues["row"]])
    assert np.all(np.diff(issues["score"]) <= 0)
    positive = issues["score"] > 0
    np.testing.assert_array_equal(issues["suggested"], np.where(positive, 1, 0) ^ issues["label"])
    assert precision(issues, FLIPPED) > 0.7


def test_same_folds_same_scores_and_the_estimator_is_left_alone():
    estimator = OWASVC(weights="uniform")
    first = label_issues(estimator, X, Y, cv=3, n_repeats=1, random_state=5)
    second = label_issues(estimator, X, Y, cv=3, n_repeats=1, random_state=5)
    np.testing.assert_array_equal(first["score"], second["score"])
    other = label_issues(estimator, X, Y, cv=3, n_repeats=1, random_state=6)
    assert not np.array_equal(first["score"], other["score"])
    assert not hasattr(estimator, "classes_")


def test_a_generator_of_folds_is_used_as_it_is():
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    issues = label_issues(SVC(), X, Y, cv=folds)
    values = cross_val_predict(SVC(), X, Y, cv=folds, method="decision_function")
    score, preferred = suspicion(values, Y)
    np.testing.assert_array_equal(issues["score"], np.sort(score)[::-1])
    np.testing.assert_array_equal(issues["suggested"], preferred[issues["row"]])


def test_folds_from_an_iterator_serve_all_judges():
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = label_issues(None, X, Y, cv=folds)
    issues = label_issues(None, X, Y, cv=folds.split(X, Y))
    np.testing.assert_array_equal(issues["score"], expected["score"])


def test_several_classes_of_text():
    samples, codes = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    labels = names[codes].astype(object)
    labels[[3, 60, 110]] = ["virginica", "setosa", "setosa"]
    issues = label_issues(None, samples, labels, n_repeats=2)
    top = issues[:3]
    assert sorted(top["row"]) == [3, 60, 110]
    suggested = dict(zip(top["row"], top["suggested"], strict=True))
    assert suggested == {3: "setosa", 60: "versicolor", 110: "virginica"}


def test_sparse_samples_and_gram_matrices():
    dense = label_issues(OWASVC(gamma=1.0), X, Y, n_repeats=1)
    gram = label_issues(OWASVC(kernel="precomputed"), rbf_kernel(X, gamma=1.0), Y, n_repeats=1)
    np.testing.assert_array_equal(dense["row"][:20], gram["row"][:20])
    sparse = label_issues(None, sp.csr_matrix(X), Y, n_repeats=1)
    assert precision(sparse, FLIPPED) > 0.7


def test_labels_wrong_in_one_direction():
    # 40 % of one class carry the other label: the classifier is biased towards it.
    samples, truth = make_circles(300, noise=0.15, factor=0.4, random_state=0)
    rng = np.random.default_rng(1)
    flipped = rng.choice(np.flatnonzero(truth == 1), int(0.4 * truth.sum()), replace=False)
    labels = truth.copy()
    labels[flipped] = 0
    is_flipped = np.isin(np.arange(truth.size), flipped)
    classical = SVC().fit(samples, labels).decision_function(samples)
    deviations = 1 - np.where(labels == 1, 1, -1) * classical
    issues = label_issues(SVC(), samples, labels, n_repeats=3)
    found = precision(issues, flipped)
    assert found > average_precision_score(is_flipped, deviations) + 0.05


def test_score_of_two_classes_by_hand():
    values = np.array([-2.0, -1.0, -1.0, 3.0, 2.0, 1.0, 1.0, -3.0])
    codes = np.repeat([0, 1], 4)
    score, preferred = suspicion(values, codes)
    # Medians -1 and 1: centre 0, distance 1; one of four is claimed in either class.
    np.testing.assert_allclose(score, [-2, -1, -1, 3, -2, -1, -1, 3])
    np.testing.assert_array_equal(preferred, [0, 0, 0, 1, 1, 1, 1, 0])
    both = np.column_stack([-values / 2, values / 2])
    np.testing.assert_allclose(suspicion(both, codes)[0], score)
    np.testing.assert_allclose(suspicion(10 * values, codes)[0], score)


def test_the_class_with_more_claims_is_more_suspicious():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    values = np.where(codes == 1, 1.0, -1.0) + 0.1 * rng.normal(size=200)
    values[:30] += 2.0
    score, _ = suspicion(values, codes)
    raised = score - np.where(codes == 1, -values, values)
    assert raised[codes == 0].min() > 0.2 and raised[codes == 1].max() < -0.2
    # Few claims by chance move nothing.
    values = np.where(codes == 1, 1.0, -1.0)
    values[[0, 100]] *= -1
    values[1] *= -1
    np.testing.assert_allclose(suspicion(values, codes)[0], np.where(codes == 1, -values, values))


def test_the_default_learns_what_a_wide_kernel_cannot():
    rng = np.random.default_rng(0)
    samples = rng.uniform(0, 3, (200, 2))
    truth = np.floor(samples).astype(int).sum(axis=1) % 2
    flipped = rng.choice(200, 20, replace=False)
    labels = truth.copy()
    labels[flipped] = 1 - labels[flipped]
    wide = make_pipeline(StandardScaler(), OWASVC(weights="uniform"))
    fixed = precision(label_issues(wide, samples, labels, n_repeats=2), flipped)
    chosen = precision(label_issues(None, samples, labels, n_repeats=2), flipped)
    assert chosen > fixed + 0.1


def average_svms(samples, codes, draws):
    """The default's decision values, and the weights of the six SVMs."""
    scaled = StandardScaler().fit_transform(samples)
    values, missed = [], []
    for C, width in product((1, 3), (0.25, 1, 4)):
        model = OneVsRestClassifier(SVC(C=C, gamma=width / samples.shape[1]))
        scores = np.mean(
            [
                cross_val_predict(model, scaled, codes, cv=folds, method="decision_function")
                for folds in draws
            ],
            axis=0,
        )
        predicted = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        values.append(scores)
        missed.append(np.mean(predicted != codes))
    least = np.min(missed)
    error = np.sqrt(least * (1 - least) / codes.size)
    weights = np.exp(-(np.array(missed) - least) / (error / 2))
    return np.average(values, axis=0, weights=weights), weights


@pytest.mark.parametrize("n_repeats", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_default_averages_svms_by_what_they_miss(n_classes, n_repeats):
    samples, codes = (X, Y) if n_classes == 2 else load_iris(return_X_y=True)
    seeds = np.random.RandomState(1).randint(np.iinfo(np.int32).max, size=n_repeats)
    draws = [StratifiedKFold(5, shuffle=True, random_state=seed) for seed in seeds]
    values, weights = average_svms(samples, codes, draws)
    assert weights.max() == 1 and weights.min() < 0.9
    expected, _ = suspicion(values, codes)
    issues = label_issues(None, samples, codes, n_repeats=n_repeats, random_state=1)
    np.testing.assert_allclose(issues["score"], expected[issues["row"]])


def test_the_default_separates_what_can_be_separated():
    samples = np.repeat([[-1.0, 0.0], [1.0, 0.0]], 30, axis=0)
    samples[:, 1] = np.tile(np.linspace(-0.1, 0.1, 30), 2)
    issues = label_issues(None, samples, np.repeat([0, 1], 30), n_repeats=2)
    assert np.all(issues["score"] < 0)


def test_values_that_say_nothing():
    score, preferred = suspicion(np.zeros(6), [0, 0, 0, 1, 1, 1])
    assert np.all(np.isfinite(score))
    np.testing.assert_array_equal(preferred, [0, 0, 0, 1, 1, 1])


def test_without_pandas_a_structured_array(monkeypatch):
    expected = label_issues(SVC(), X, Y, n_repeats=1)
    original = builtins.__import__

    def refuse_pandas(name, *arguments):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse_pandas)
    issues = label_issues(SVC(), X, Y, n_repeats=1)
    assert issues.dtype.names == ("row", "label", "suggested", "score")
    for name in issues.dtype.names:
        np.testing.assert_array_equal(issues[name], expected[name])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.zeros(N_SAMPLES)}, "at least two classes"),
        ({"y": Y[:-1]}, "inconsistent numbers of samples"),
        ({"y": np.linspace(0, 1, N_SAMPLES)}, "continuous"),
        ({"cv": 1}, "cv must be 2 folds or more"),
        ({"cv": 61}, r"class .*0.* has \d+ samples, fewer than cv=61"),
        ({"n_repeats": 0}, "n_repeats must be 1 or more, got 0"),
        ({"estimator": NearestNeighbors()}, "NearestNeighbors has neither"),
    ],
)
def test_what_is_refused(changes, words):
    given = {"estimator": LogisticRegression(), "X": X, "y": Y} | changes
    with pytest.raises(ValueError, match=words):
        label_issues(**given)
