"""Displays draw what the classifiers say: checked by their artists."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, TwoStepOWASVC
from owasvm.extras import MissingExtraError
from owasvm.inspection import DeviationsDisplay, PathDisplay, WeightsDisplay
from owasvm.path import fit_path
from owasvm.weights import owa_weights

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")

X, Y = make_moons(60, noise=0.3, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
KINDS = np.array(["setosa", "versicolor", "virginica"])[KINDS]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def texts(legend):
    """What a legend says."""
    return [text.get_text() for text in legend.get_texts()]


def heights(bars):
    """Where bars end."""
    return np.array([segment[1, 1] for segment in bars.get_segments()])


class TestWeights:
    """Lines of rank weights."""

    def test_families_and_alphas(self):
        display = WeightsDisplay.from_weights(
            ["uniform", "superquantile"], alphas=[0.25, 0.5], n_samples=8
        )
        expected = ["uniform", "superquantile, alpha = 0.25", "superquantile, alpha = 0.5"]
        assert texts(display.ax_.get_legend()) == list(display.labels) == expected
        line = display.lines_[1]
        assert line.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(line.get_xdata(), np.linspace(0, 1, 9))
        np.testing.assert_array_equal(line.get_ydata(), [0, 0, 0, 0, 0, 0, 4, 4, 4])
        assert display.reference_.get_ydata() == [1.0, 1.0]
        looks = {(one.get_color(), str(one.get_linestyle())) for one in display.lines_}
        assert len(looks) == 3

    def test_array_and_quantifier(self):
        display = WeightsDisplay.from_weights([1.0, 2.0, 3.0])
        np.testing.assert_allclose(display.weights[0], [0.5, 1.0, 1.5])
        assert display.ax_.get_legend() is None

        def square(share):
            return share**2

        display = WeightsDisplay.from_weights([square, "basic"], n_samples=5)
        assert display.labels == ("square", "basic, alpha = 0.6")
        np.testing.assert_allclose(display.weights[0], owa_weights(5, square))

    def test_steep_weights_do_not_flatten_the_others(self):
        display = WeightsDisplay.from_weights("basic", alphas=0.2)
        assert display.ax_.get_yscale() == "symlog"
        assert WeightsDisplay.from_weights("uniform").ax_.get_yscale() == "linear"

    def test_two_classes(self):
        classifier = make_pipeline(StandardScaler(), OWASVC(weights="quadratic")).fit(X, Y)
        display = WeightsDisplay.from_estimator(classifier)
        np.testing.assert_array_equal(
            display.lines_[0].get_ydata()[:-1], classifier[-1].owa_weights_
        )
        assert display.labels == ("quadratic, alpha = 0.6",)

    def test_sample_weights_with_zeros(self):
        mass = np.r_[np.zeros(5), np.full(55, 2.0)]
        classifier = LinearOWASVC().fit(X, Y, mass)
        display = WeightsDisplay.from_estimator(classifier)
        assert display.weights[0].size == 55
        assert display.weights[0].sum() == pytest.approx(110.0)

    @pytest.mark.parametrize("several", [False, True])
    def test_ranks_within_classes(self, several):
        data = (IRIS, KINDS) if several else (X, Y)
        classifier = LinearOWASVC(weights="superquantile", alpha=0.9, ranks="class").fit(*data)
        display = WeightsDisplay.from_estimator(classifier)
        names = texts(display.ax_.get_legend())
        if several:
            assert len(display.lines_) == 6
            assert names[:2] == ["not class setosa", "class setosa"]
            assert display.weights[0].size == 100
        else:
            assert names == ["class 0", "class 1"]

    def test_several_classes_with_the_same_weights_are_one_line(self):
        assert len(WeightsDisplay.from_estimator(OWASVC().fit(IRIS, KINDS)).lines_) == 1
        mass = np.linspace(0.5, 2.0, 150)
        classifier = OWASVC().fit(IRIS, KINDS, mass)
        assert len(WeightsDisplay.from_estimator(classifier).lines_) == 3


class TestDeviations:
    """Markers, bars and crosses."""

    def test_payments_sum_to_the_loss(self):
        classifier = OWASVC(C=3.0, weights="superquantile", alpha=0.3).fit(X, Y)
        display = DeviationsDisplay.from_estimator(classifier, groups=Y)
        assert np.all(np.diff(display.deviations) >= 0)
        np.testing.assert_array_equal(display.deviations, np.sort(classifier.deviations_))
        loss = classifier.sample_costs_ @ classifier.deviations_
        assert 3.0 * display.payments.sum() == pytest.approx(loss)
        drawn = np.concatenate([heights(bars) for bars in display.bars_])
        assert 3.0 * drawn.sum() == pytest.approx(loss, rel=1e-4)
        assert sum(display.shares.values()) == pytest.approx(1.0)
        own = classifier.sample_costs_ * classifier.deviations_ * (Y == 1)
        assert display.shares[1] == pytest.approx(own.sum() / loss)
        expected = [f"{name}: {share:.0%} of the loss" for name, share in display.shares.items()]
        assert texts(display.ax_.get_legend()) == expected
        points = display.points_
        assert points[0].get_marker() != points[1].get_marker()
        for bars, line in zip(display.bars_, points, strict=True):
            assert len(bars.get_segments()) == line.get_xdata().size

    def test_squared_hinge(self):
        classifier = OWASVC(C=2.0, loss="squared_hinge").fit(X, Y)
        display = DeviationsDisplay.from_estimator(classifier)
        loss = classifier.sample_costs_ @ classifier.deviations_**2
        assert 2.0 * display.payments.sum() == pytest.approx(loss)
        assert texts(display.ax_.get_legend()) == ["samples that pay"]

    @pytest.mark.parametrize("make", [OWASVC, TwoStepOWASVC])
    def test_ignored_samples(self, make):
        labels = Y.copy()
        labels[:4] = 1 - labels[:4]
        classifier = make(weights="trimmed", alpha=0.1).fit(X, labels)
        display = DeviationsDisplay.from_estimator(classifier)
        assert sorted(display.rows[display.ignored]) == sorted(classifier.outliers_)
        (crosses,) = display.ignored_
        assert crosses.get_xdata().size == classifier.outliers_.size
        assert crosses.get_label() == f"{classifier.outliers_.size} ignored"
        groups = np.arange(60) < 4
        display = DeviationsDisplay.from_estimator(classifier, groups=groups)
        n_ignored = sum(line.get_xdata().size for line in display.ignored_)
        assert n_ignored == classifier.outliers_.size

    def test_rows_of_weight_zero_are_left_out(self):
        mass = np.ones(60)
        mass[[3, 40]] = 0.0
        classifier = OWASVC().fit(X, Y, mass)
        display = DeviationsDisplay.from_estimator(classifier, groups=Y)
        assert display.rows.size == 58
        assert not {3, 40} & set(display.rows.tolist())
        np.testing.assert_array_equal(display.groups, Y[display.rows])

    def test_several_classes(self):
        pipeline = make_pipeline(StandardScaler(), LinearOWASVC()).fit(IRIS, KINDS)
        display = DeviationsDisplay.from_estimator(
            pipeline, groups=KINDS, class_of_interest="virginica"
        )
        np.testing.assert_array_equal(display.deviations, np.sort(pipeline[-1].deviations_[2]))
        assert len(display.points_) == 3
        with pytest.raises(ValueError, match=r"class_of_interest=None must be one of .*setosa"):
            DeviationsDisplay.from_estimator(pipeline)

    @pytest.mark.parametrize("data", [(X, Y), (IRIS, KINDS)], ids=["two", "three"])
    def test_training_samples_as_other_samples(self, data):
        classifier = OWASVC(weights="superquantile", alpha=0.4).fit(*data)
        wanted = classifier.classes_[1]
        seen = DeviationsDisplay.from_estimator(
            classifier, groups=data[1], class_of_interest=wanted
        )
        other = DeviationsDisplay.from_estimator(classifier, *data, class_of_interest=wanted)
        np.testing.assert_allclose(other.deviations, seen.deviations, atol=1e-7)
        for name, share in seen.shares.items():
            assert other.shares[name] == pytest.approx(share, abs=0.02)

    def test_predictions_of_others(self):
        svc = SVC().fit(X, Y)
        display = DeviationsDisplay.from_predictions(
            np.where(Y, "yes", "no"), svc.decision_function(X), weights="superquantile", alpha=0.1
        )
        slack = 1 - np.where(Y, 1, -1) * svc.decision_function(X)
        np.testing.assert_allclose(display.deviations, np.sort(np.maximum(slack, 0.0)))
        np.testing.assert_allclose(display.payments[-6:], 10.0 * display.deviations[-6:])
        np.testing.assert_array_equal(display.payments[:-6], 0.0)
        with pytest.raises(ValueError, match="pos_label=None is for two classes"):
            DeviationsDisplay.from_predictions([0, 1, 2], [0.0, 1.0, 2.0])

    def test_no_deviations_at_all(self):
        display = DeviationsDisplay(np.zeros(4), np.ones(4), groups=[0, 0, 1, 1]).plot()
        assert display.shares == {0: 0.0, 1: 0.0}
        assert sum(line.get_xdata().size for line in display.points_) == 4

    def test_bad_input(self):
        with pytest.raises(ValueError, match="same length"):
            DeviationsDisplay([1.0], [1.0, 2.0])
        with pytest.raises(ValueError, match="groups must hold one entry per sample, 2"):
            DeviationsDisplay([1.0, 2.0], [1.0, 2.0], groups=[1])
        classifier = OWASVC().fit(X, Y)
        with pytest.raises(ValueError, match="y=None"):
            DeviationsDisplay.from_estimator(classifier, X)
        with pytest.raises(NotFittedError):
            DeviationsDisplay.from_estimator(OWASVC())
        with pytest.raises(TypeError, match="SVC has no deviations_"):
            DeviationsDisplay.from_estimator(SVC().fit(X, Y))


class TestPath:
    """Lines along C or alpha, and marks."""

    def test_search(self):
        search = OWASVCCV(Cs=[10.0, 0.1, 1.0], alphas=[0.3, 0.6], cv=4).fit(X, Y)
        display = PathDisplay.from_search(search)
        assert display.labels == ("alpha = 0.3", "alpha = 0.6")
        np.testing.assert_array_equal(display.lines_[0].get_xdata(), [0.1, 1.0, 10.0])
        scores = search.scores_[0, 0][:, [1, 2, 0]]
        np.testing.assert_allclose(display.values, scores.mean(axis=-1))
        np.testing.assert_allclose(display.errors, scores.std(axis=-1, ddof=1) / 2.0)
        assert len(display.errorbars_) == 2
        assert display.chosen_.get_xdata()[0] == search.C_
        assert display.chosen_.get_ydata()[0] == pytest.approx(search.best_score_)
        assert display.ax_.get_xscale() == "log"
        assert display.ax_.get_xlabel() == "C"
        assert display.ax_.get_ylabel() == "mean score over 4 folds"

    def test_one_standard_error_is_that_of_the_search(self):
        search = OWASVCCV(Cs=[0.01, 0.1, 1.0, 10.0, 100.0], cv=5).fit(X, Y)
        careful = OWASVCCV(Cs=search.Cs, cv=5, selection="one-se").fit(X, Y)
        display = PathDisplay.from_search(search)
        line, point = display.one_standard_error
        assert display.x[point] == careful.C_
        assert display.values[line, point] >= display.threshold
        assert display.threshold_.get_ydata()[0] == display.threshold
        assert PathDisplay.from_search(careful).chosen == (line, point)
        assert display.labels is None

    def test_grid_search_over_a_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), OWASVC())
        grid = {"owasvc__C": [0.1, 1.0], "owasvc__alpha": [0.2, 0.5, 0.8], "owasvc__gamma": [1, 2]}
        search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
        display = PathDisplay.from_search(search, param="alpha", by="C")
        assert display.values.shape == (2, 3)
        assert display.ax_.get_xscale() == "linear"
        assert display.one_standard_error_ is None
        best = search.best_params_
        for k, one in enumerate(search.cv_results_["params"]):
            if one["owasvc__gamma"] == best["owasvc__gamma"]:
                where = (
                    grid["owasvc__C"].index(one["owasvc__C"]),
                    grid["owasvc__alpha"].index(one["owasvc__alpha"]),
                )
                assert display.values[where] == search.cv_results_["mean_test_score"][k]
        assert PathDisplay.from_search(search).values.shape == (1, 2)
        with pytest.raises(ValueError, match=r"param='nu' must be one of those that vary"):
            PathDisplay.from_search(search, param="nu")
        with pytest.raises(ValueError, match=r"metric='auc' is not in cv_results; .*'score'"):
            PathDisplay.from_search(search, metric="auc")

    def test_values_that_are_no_numbers(self):
        search = OWASVCCV(Cs=[1.0, 10.0], weights=["basic", "quadratic"], cv=2).fit(X, Y)
        assert PathDisplay.from_search(search).labels == ("weights = basic", "weights = quadratic")
        with pytest.raises(ValueError, match="not numbers"):
            PathDisplay.from_search(search, param="weights")
        with pytest.raises(TypeError, match="OWASVC has no cv_results_"):
            PathDisplay.from_search(OWASVC())

    def test_paths(self):
        path = fit_path(X, Y, Cs=[10.0, 0.1, 1.0], alphas=[0.3, 0.9], kernel="linear")
        display = PathDisplay.from_path(path)
        np.testing.assert_array_equal(display.x, [0.1, 1.0, 10.0])
        np.testing.assert_array_equal(display.values, path.objectives[:, [1, 2, 0]])
        display = PathDisplay.from_path(path, "n_support", param="alpha")
        assert display.labels == ("C = 10", "C = 0.1", "C = 1")
        np.testing.assert_array_equal(display.values, (path.duals > 0).sum(axis=2).T)
        assert display.chosen_ is display.threshold_ is None
        assert display.errorbars_ == []
        display = PathDisplay.from_path(path, "coef", alpha=0.9, feature_names=["a", "b"])
        np.testing.assert_array_equal(display.values[:, 0], path.solutions[1][1].coef)
        assert texts(display.ax_.get_legend()) == ["a", "b"]

    def test_many_coefficients(self):
        wide = np.random.default_rng(0).normal(size=(60, 12))
        path = fit_path(wide, Y, Cs=[0.1, 1.0], kernel="linear")
        display = PathDisplay.from_path(path, "coef")
        assert len(display.lines_) == 12
        assert len(texts(display.ax_.get_legend())) == 7

    def test_bad_input(self):
        path = fit_path(X, Y, Cs=[1.0])
        with pytest.raises(ValueError, match="quantity='coef' needs coefficients"):
            PathDisplay.from_path(path, "coef")
        with pytest.raises(ValueError, match="quantity='loss' must be one of"):
            PathDisplay.from_path(path, "loss")
        with pytest.raises(ValueError, match="param='gamma' must be"):
            PathDisplay.from_path(path, param="gamma")
        linear = fit_path(X, Y, Cs=[1.0], kernel="linear")
        with pytest.raises(ValueError, match=r"alpha=0.1 is not among \[0.6\]"):
            PathDisplay.from_path(linear, "coef", alpha=0.1)
        with pytest.raises(ValueError, match="feature_names must name 2 features"):
            PathDisplay.from_path(linear, "coef", feature_names=["a"])


def test_given_axes_and_drawing_again():
    figure, ax = pyplot.subplots()
    display = WeightsDisplay.from_weights("basic", ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    again = display.plot(color="black")
    assert again is display
    assert display.figure_ is not figure
    assert display.lines_[0].get_color() == "black"


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"WeightsDisplay.plot needs matplotlib.*\[plot\]"):
        WeightsDisplay.from_weights("basic")
