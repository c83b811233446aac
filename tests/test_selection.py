"""Cross-validated classifiers against GridSearchCV on the same folds."""

import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, progress

CS = [0.02, 0.3, 5.0]


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.15, class_sep=0.8, random_state=3)
    return X, np.where(y == 1, "yes", "no")


def agree(search, reference):
    """Same candidates in the same order, same scores, same choice."""
    ours, theirs = search.cv_results_, reference.cv_results_
    assert ours["params"] == theirs["params"]
    assert set(theirs) <= set(ours)
    for name in theirs:
        if "score" in name and "time" not in name:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-12)
        elif name.startswith("param_"):
            assert list(ours[name]) == list(theirs[name])
    assert search.best_params_ == reference.best_params_
    assert search.best_index_ == reference.best_index_
    assert search.best_score_ == pytest.approx(reference.best_score_, abs=1e-12)
    assert search.n_splits_ == reference.n_splits_


@pytest.mark.parametrize("gammas", [[0.05, 0.5], ["scale"], ["auto", 0.3]])
def test_equals_grid_search(binary, gammas):
    X, y = binary
    grid = {"C": CS, "alpha": [0.3, 0.8], "gamma": gammas, "weights": ["basic", "uniform"]}
    reference = GridSearchCV(OWASVC(tol=1e-9), grid, cv=4).fit(X, y)
    search = OWASVCCV(
        CS, alphas=[0.3, 0.8], gammas=gammas, weights=["basic", "uniform"], cv=4, tol=1e-9
    ).fit(X, y)
    agree(search, reference)
    assert np.all(search.predict(X) == reference.predict(X))
    np.testing.assert_allclose(
        search.decision_function(X), reference.decision_function(X), atol=1e-4
    )
    assert np.all(search.cv_results_["max_gap"] <= 1e-9)


@pytest.mark.parametrize("kernel", ["poly", "linear", "precomputed"])
def test_equals_grid_search_with_other_kernels(binary, kernel):
    X, y = binary
    if kernel == "precomputed":
        X = rbf_kernel(X, gamma=0.2)
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.1], "weights": ["basic"]}
    settings = {"kernel": kernel, "coef0": 1.0, "tol": 1e-9}
    reference = GridSearchCV(OWASVC(**settings), grid, cv=3).fit(X, y)
    agree(OWASVCCV(CS, gammas=0.1, cv=3, **settings).fit(X, y), reference)


def test_equals_grid_search_with_an_indefinite_kernel(binary):
    X, y = binary
    grid = {"C": [0.3], "alpha": [0.6], "gamma": [0.2], "weights": ["basic"]}
    settings = {"kernel": "sigmoid", "coef0": -1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = GridSearchCV(OWASVC(**settings), grid, cv=3, refit=False).fit(X, y)
        search = OWASVCCV([0.3], gammas=0.2, cv=3, refit=False, **settings).fit(X, y)
    agree(search, reference)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_linear_equals_grid_search(binary, form):
    X, y = binary
    grid = {"C": CS, "alpha": [0.6, 1.0], "weights": ["basic"]}
    reference = GridSearchCV(LinearOWASVC(tol=1e-9), grid, cv=4).fit(form(X), y)
    agree(LinearOWASVCCV(CS, alphas=[0.6, 1.0], cv=4, tol=1e-9).fit(form(X), y), reference)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.2], "weights": ["basic"]}
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    reference = GridSearchCV(OWASVC(tol=1e-9), grid, cv=cv).fit(X, y)
    agree(OWASVCCV(CS, gammas=0.2, cv=cv, tol=1e-9).fit(X, y), reference)


def test_folds_that_lack_a_class():
    X, y = load_iris(return_X_y=True)
    cv = KFold(3)
    grid = {"C": [1.0], "alpha": [0.6], "gamma": [0.2], "weights": ["basic"]}
    reference = GridSearchCV(OWASVC(tol=1e-9), grid, cv=cv, refit=False).fit(X, y)
    agree(OWASVCCV([1.0], gammas=0.2, cv=cv, tol=1e-9, refit=False).fit(X, y), reference)


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy"])
def test_scoring(binary, scoring):
    X, y = binary
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.1], "weights": ["basic"]}
    reference = GridSearchCV(OWASVC(tol=1e-10), grid, cv=3, scoring=scoring).fit(X, y)
    search = OWASVCCV(CS, gammas=0.1, cv=3, scoring=scoring, tol=1e-10).fit(X, y)
    agree(search, reference)
    assert search.score(X, y) == pytest.approx(reference.score(X, y))


@pytest.mark.parametrize("search", [OWASVCCV([]), LinearOWASVCCV(Cs=())])
def test_no_candidates(binary, search):
    with pytest.raises(ValueError, match="Cs is empty"):
        search.fit(*binary)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_scores_of_probabilities(binary, scoring):
    with pytest.raises(ValueError, match=r"needs probabilities.*CalibratedClassifierCV"):
        OWASVCCV(CS, scoring=scoring).fit(*binary)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_sample_weights(binary, class_weight):
    X, y = binary
    mass = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.1, "scale"], "weights": ["basic"]}
    settings = {"tol": 1e-9, "class_weight": class_weight}
    reference = GridSearchCV(OWASVC(**settings), grid, cv=3).fit(X, y, sample_weight=mass)
    search = OWASVCCV(CS, gammas=[0.1, "scale"], cv=3, **settings)
    agree(search.fit(X, y, sample_weight=mass), reference)


def test_groups(binary):
    X, y = binary
    groups = np.arange(y.size) % 7
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.1], "weights": ["basic"]}
    cv = GroupKFold(3)
    reference = GridSearchCV(OWASVC(tol=1e-9), grid, cv=cv).fit(X, y, groups=groups)
    agree(OWASVCCV(CS, gammas=0.1, cv=cv, tol=1e-9).fit(X, y, groups=groups), reference)
    with pytest.raises(ValueError, match=r"groups must hold one entry per sample: got 3"):
        OWASVCCV(CS, cv=cv).fit(X, y, groups=groups[:3])
    with pytest.raises(TypeError, match=r"unexpected arguments \['banana'\]"):
        OWASVCCV(CS).fit(X, y, banana=1)


def test_metadata_routing(binary):
    X, y = binary
    groups = np.arange(y.size) % 7
    mass = 1.0 + (np.arange(y.size) % 3)
    with config_context(enable_metadata_routing=True):
        search = LinearOWASVCCV(CS, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, search)
        model.fit(X, y, sample_weight=mass, groups=groups)
    rows = StandardScaler().fit_transform(X)
    alone = LinearOWASVCCV(CS, cv=GroupKFold(3), scoring=make_scorer(lambda a, b: np.mean(a == b)))
    alone.fit(rows, y, sample_weight=mass, groups=groups)
    np.testing.assert_allclose(model[-1].scores_, alone.scores_, atol=1e-12)


def test_jobs_do_not_matter(binary):
    X, y = binary
    one = OWASVCCV(CS, gammas=[0.1, 1.0], cv=3).fit(X, y)
    two = OWASVCCV(CS, gammas=[0.1, 1.0], cv=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_without_the_gram_matrix(binary):
    X, y = binary
    inside = OWASVCCV(CS, gammas=0.1, cv=3, tol=1e-8).fit(X, y)
    beyond = OWASVCCV(CS, gammas=0.1, cv=3, tol=1e-8, cache_size=0.01).fit(X, y)
    np.testing.assert_allclose(beyond.scores_, inside.scores_, atol=1e-12)


def test_one_standard_error(binary):
    X, y = binary
    best = OWASVCCV(np.geomspace(0.01, 100, 9), gammas=0.1, cv=5).fit(X, y)
    small = OWASVCCV(np.geomspace(0.01, 100, 9), gammas=0.1, cv=5, selection="one-se").fit(X, y)
    scores = best.scores_.reshape(9, 5)
    means = scores.mean(axis=1)
    limit = means.max() - scores[means.argmax()].std(ddof=1) / np.sqrt(5)
    assert small.C_ == best.Cs_[np.flatnonzero(means >= limit)[0]]
    assert small.C_ <= best.C_ and small.best_score_ >= limit


def test_scores_by_parameter(binary):
    X, y = binary
    search = OWASVCCV([5.0, 0.02], alphas=[0.3, 0.8], gammas=[0.05, 0.5], cv=3).fit(X, y)
    assert search.scores_.shape == (2, 1, 2, 2, 3)
    for k, params in enumerate(search.cv_results_["params"]):
        place = (
            [0.05, 0.5].index(params["gamma"]),
            0,
            [0.3, 0.8].index(params["alpha"]),
            [5.0, 0.02].index(params["C"]),
        )
        assert search.scores_[place].mean() == search.cv_results_["mean_test_score"][k]


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_default_grid_follows_the_scale(binary, factor):
    X, y = binary
    reference = LinearOWASVCCV(4, cv=3).fit(X, y)
    search = LinearOWASVCCV(4, cv=3).fit(factor * X, y)
    np.testing.assert_allclose(search.Cs_ * factor**2, reference.Cs_, rtol=1e-9)
    assert search.best_score_ == pytest.approx(reference.best_score_, abs=0.02)


def test_in_a_pipeline_with_names():
    pandas = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), LinearOWASVCCV(CS, cv=3)
    ).fit(X, y)
    assert list(model[-1].feature_names_in_) == list(X.columns)
    assert list(model[-1].best_estimator_.feature_names_in_) == list(X.columns)
    assert isinstance(X, pandas.DataFrame) and model.score(X, y) > 0.95


def test_without_refit(binary):
    X, y = binary
    search = OWASVCCV(CS, refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_") and not hasattr(search, "predict")
    with pytest.raises(AttributeError) as refused:
        search.decision_function(X)
    assert "refit=False" in str(refused.value.__cause__)


def test_falling_weights(binary):
    X, y = binary
    search = OWASVCCV(
        [0.1, 1.0], weights=["trimmed", "basic"], alphas=[0.1, 0.2], solver="dca", cv=3
    ).fit(X, y)
    assert {params["weights"] for params in search.cv_results_["params"]} == {"trimmed", "basic"}
    assert np.all(np.isfinite(search.scores_))


def test_weights_one_by_one_are_refused(binary):
    X, y = binary
    with pytest.raises(ValueError, match="folds leave samples out"):
        OWASVCCV(CS, weights=np.ones(y.size)).fit(X, y)
    with pytest.raises(ValueError, match="gammas must hold at least one"):
        OWASVCCV(CS, gammas=[]).fit(X, y)


def test_clone_keeps_parameters():
    search = OWASVCCV(Cs=3, alphas=[0.2], gammas=[1.0], selection="one-se")
    assert clone(search).get_params() == search.get_params()


def test_ranks_within_classes(binary):
    X, y = binary
    grid = {"C": CS, "alpha": [0.6], "gamma": [0.1], "weights": ["basic"]}
    reference = GridSearchCV(OWASVC(tol=1e-9, ranks="class"), grid, cv=3).fit(X, y)
    agree(OWASVCCV(CS, gammas=0.1, cv=3, tol=1e-9, ranks="class").fit(X, y), reference)


class _Counter:
    """A callback with a memory, which copies of it would not share."""

    def __init__(self):
        self.records = []

    def note(self, record):
        self.records.append(record)


def test_callbacks_know_candidate_and_fold(binary):
    X, y = binary
    counter = _Counter()
    search = OWASVCCV([0.3, 5.0], gammas=[0.1, "scale"], cv=3, n_jobs=2, callback=counter.note)
    search.fit(X, y)
    plain = OWASVCCV([0.3, 5.0], gammas=[0.1, "scale"], cv=3).fit(X, y)
    np.testing.assert_array_equal(search.scores_, plain.scores_)
    folds = [record for record in counter.records if record.fold is not None]
    last = [record for record in counter.records if record.fold is None]
    assert {record.fold for record in folds} == {0, 1, 2}
    params = [record.params for record in folds]
    assert all(one in params for one in search.cv_results_["params"])
    assert all(one in search.cv_results_["params"] for one in params)
    assert last and all(record.params is None for record in last)
    assert folds[0].label == "fit 1 of 12, fold 0, C 0.3, alpha 0.6, weights basic, gamma 0.1"
    assert folds[-1].label.startswith("fit 12 of 12, fold 2, C 5, ")


def test_callbacks_name_classes_too():
    X, y = load_iris(return_X_y=True)
    records = []
    LinearOWASVCCV([1.0], cv=2, callback=records.append).fit(X, y)
    assert {record.label for record in records if record.fold == 1} == {
        f"fit 2 of 2, fold 1, C 1, alpha 0.6, weights basic, class {k}" for k in range(3)
    }


def test_a_candidate_that_is_stopped_is_scored_as_it_is(binary):
    with pytest.warns(ConvergenceWarning, match="callback stopped it"):
        search = OWASVCCV([0.3, 5.0], cv=2, callback=lambda one: one.n_iter < 2).fit(*binary)
    assert np.all(np.isfinite(search.scores_))
    assert search.best_estimator_.status_ == "interrupted"


def test_lines_tell_candidate_and_fold(binary, monkeypatch, caplog):
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    search = OWASVCCV([0.3, 5.0], cv=2, verbose=1, callback=lambda _: time.sleep(0.01))
    search.fit(*binary)
    assert any(line.startswith("fit 1 of 4, fold 0, C 0.3, ") for line in caplog.messages)
    # Outcomes of all fits would be too many lines.
    assert sum("optimal" in line for line in caplog.messages) == 1
    caplog.clear()
    OWASVCCV([0.3, 5.0], cv=2, verbose=2).fit(*binary)
    outcomes = [line for line in caplog.messages if "newton: optimal" in line]
    assert len(outcomes) == 5 and outcomes[3].startswith("fit 4 of 4, fold 1, C 5, ")


def test_ctrl_c_before_the_choice_leaves_everything_as_it_was(binary):
    X, y = binary

    def press(record):
        if record.fold == 1:
            raise KeyboardInterrupt

    search = OWASVCCV([0.3, 5.0], cv=2, callback=press)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    with pytest.raises(NotFittedError):
        search.predict(X)
    assert not any(name.endswith("_") for name in vars(search))
    search.set_params(callback=None).fit(X, y)
    chosen, values = search.best_params_, search.decision_function(X)
    with pytest.raises(KeyboardInterrupt):
        search.set_params(Cs=[0.1], callback=press).fit(X[:, :3], y)
    assert (search.best_params_, search.n_features_in_) == (chosen, 6)
    np.testing.assert_array_equal(search.decision_function(X), values)


def test_ctrl_c_in_the_last_fit_leaves_what_was_chosen(binary):
    X, y = binary

    def press(record):
        if record.fold is None and record.n_iter == 3:
            raise KeyboardInterrupt

    search = OWASVCCV([0.3, 5.0], cv=2, callback=press)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert search.best_params_["C"] in (0.3, 5.0)
    assert search.best_estimator_.status_ == "interrupted"
    assert search.predict(X).shape == y.shape
