"""The box of a fitted classifier in a notebook says how the fit ended."""

import re

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC
from owasvm.estimators import _html

X, Y = make_moons(60, noise=0.3, random_state=0)
IRIS = load_iris(return_X_y=True)


def captions(estimator):
    """What stands below the names of the boxes."""
    return re.findall(r'<div class="caption">(.*?)</div>', estimator._repr_html_())


@pytest.mark.parametrize("classifier", [OWASVC(), LinearOWASVC()])
def test_two_classes(classifier):
    (caption,) = captions(classifier.fit(X, Y))
    status, gap, objective, support, seconds = caption.split(" · ")
    assert status == "optimal"
    assert float(gap.removeprefix("gap ")) == pytest.approx(classifier.gap_, rel=0.1)
    assert objective == f"objective {classifier.objective_:.6g}"
    assert support == f"{classifier.support_.size} support vectors"
    assert seconds.endswith(" s")


def test_several_classes():
    classifier = OWASVC(kernel="linear").fit(*IRIS)
    (caption,) = captions(classifier)
    low, high = classifier.objective_.min(), classifier.objective_.max()
    assert caption.startswith(f"optimal · largest gap {classifier.gap_.max():.1e} · ")
    assert f"objective {low:.4g} to {high:.4g}" in caption


def test_bound_is_shown_where_it_differs():
    with pytest.warns(ConvergenceWarning):
        classifier = OWASVC(max_iter=1).fit(X, Y)
    (caption,) = captions(classifier)
    assert caption.startswith("iteration_limit · gap ")
    assert f"at least {classifier.lower_bound_:.6g}" in caption
    classifier.status_ = np.array(["optimal", "time_limit", "optimal"])
    assert captions(classifier)[0].startswith("2 optimal, 1 time_limit · ")


def test_two_steps_have_no_proof():
    (caption,) = captions(TwoStepOWASVC().fit(X, Y))
    assert caption.startswith("objective ")


@pytest.mark.parametrize("search", [OWASVCCV(Cs=[0.1, 1.0], cv=3), LinearOWASVCCV(Cs=2, cv=3)])
def test_searches(search):
    (caption,) = captions(search.fit(X, Y))
    assert caption.startswith("best of 2: C=")
    assert f"score {search.best_score_:.4g} over 3 folds · optimal · gap " in caption
    (caption,) = captions(clone(search).set_params(refit=False).fit(X, Y))
    assert "optimal" not in caption


def test_inside_others():
    pipeline = make_pipeline(StandardScaler(), OWASVC())
    assert captions(pipeline) == []
    assert captions(pipeline.fit(X, Y))[0].startswith("optimal · gap")
    search = GridSearchCV(pipeline, {"owasvc__C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert captions(search)[0].startswith("optimal · gap")


def test_unfitted_boxes_are_scikit_learns():
    html = OWASVC()._repr_html_()
    assert "Not fitted" in html
    assert captions(OWASVC()) == captions(SVC()) == []


def test_text_is_escaped():
    def quantifier(share):
        return share**0.5

    quantifier.__name__ = "<script>"
    search = OWASVCCV(Cs=[1.0], weights=quantifier, cv=2).fit(X, Y)
    assert "weights=&lt;script&gt;" in captions(search)[0]


def test_text_display_stays():
    classifier = OWASVC().fit(X, Y)
    with sklearn.config_context(display="text"):
        assert not hasattr(classifier, "_repr_html_")
        assert classifier._repr_mimebundle_() == {"text/plain": repr(classifier)}


def test_scikit_learn_without_such_boxes(monkeypatch):
    monkeypatch.setattr(_html, "_HOMES", ("sklearn.no_such_module", "sklearn.utils"))
    classifier = OWASVC().fit(X, Y)
    assert not hasattr(classifier, "_sk_visual_block_")
    assert "OWASVC" in classifier._repr_html_()
    assert captions(classifier) == []
