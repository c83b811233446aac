"""A fit whose best classifier is w = 0 says so, once, and only then."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC, ConstantClassifierWarning, LinearOWASVC, LinearOWASVCCV

RNG = np.random.default_rng(0)
OVERLAPPING = RNG.normal(size=(120, 3))
CHANCE = RNG.integers(0, 2, 120)
STEEP = {"weights": "superquantile", "alpha": 0.1}


def messages_of(fit: Callable[[], object]) -> list[str]:
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert all(one.category is ConstantClassifierWarning for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize(
    "classifier", [LinearOWASVC(**STEEP), OWASVC(kernel="linear", **STEEP)], ids=["linear", "gram"]
)
def test_overlapping_classes(classifier, C):
    (message,) = messages_of(lambda: classifier.set_params(C=C).fit(OVERLAPPING, CHANCE))
    assert "w = 0 is the optimum" in message
    assert "'superquantile'" in message
    np.testing.assert_allclose(classifier.coef_, 0.0, atol=1e-12)


def test_remedies_help():
    """Every remedy that the message names leads to a classifier that is not constant."""
    ahead = OVERLAPPING + 0.8 * CHANCE[:, None]
    rare = np.r_[np.zeros(12), np.ones(108)]
    assert messages_of(lambda: LinearOWASVC(**STEEP).fit(OVERLAPPING, CHANCE))
    assert not messages_of(lambda: LinearOWASVC(weights="superquantile").fit(ahead, CHANCE))
    assert not messages_of(lambda: OWASVC(gamma=10.0, **STEEP).fit(OVERLAPPING, CHANCE))
    assert messages_of(lambda: LinearOWASVC(weights="uniform").fit(OVERLAPPING, rare))
    balanced = LinearOWASVC(weights="uniform", class_weight="balanced")
    assert not messages_of(lambda: balanced.fit(OVERLAPPING, rare))


def test_small_C_is_named():
    """The kernel tells the samples apart, and C is what hides it."""
    (message,) = messages_of(lambda: OWASVC(C=1e-9, **STEEP).fit(OVERLAPPING, CHANCE))
    assert "larger C than 1e-09" in message
    assert not messages_of(lambda: OWASVC(C=10.0, **STEEP).fit(OVERLAPPING, CHANCE))


def test_weights_that_ignore_a_class():
    rare = np.r_[np.zeros(6), np.ones(54)]
    classifier = OWASVC(kernel="linear", weights="trimmed", alpha=0.2)
    (message,) = messages_of(lambda: classifier.fit(OVERLAPPING[:60], rare))
    assert "Ignore fewer samples" in message
    apart = OWASVC(kernel="linear", weights="trimmed", alpha=0.05, ranks="class")
    shifted = OVERLAPPING[:60] + 4.0 * rare[:, None]
    assert not messages_of(lambda: apart.fit(shifted, rare))


def test_equal_weights_cannot_be_less_steep():
    rare = np.r_[np.zeros(12), np.ones(108)]
    for classifier in (
        LinearOWASVC(weights="uniform"),
        OWASVC(weights="uniform", kernel="linear"),
        LinearOWASVC(weights="superquantile", alpha=1.0),
    ):
        (message,) = messages_of(lambda classifier=classifier: classifier.fit(OVERLAPPING, rare))
        assert "less steep" not in message
        assert "Take features or a kernel" in message
        assert "class_weight='balanced'" in message


def test_classes_are_named_in_one_message():
    X, y = make_blobs([30, 30, 30], centers=[[-5, 0], [0, 0], [5, 0]], random_state=0)
    labels = np.array(["left", "middle", "right"])[y]
    (message,) = messages_of(lambda: LinearOWASVC(**STEEP).fit(X, labels))
    assert "for class 'middle' against the rest" in message
    (message,) = messages_of(
        lambda: LinearOWASVC(**STEEP).fit(OVERLAPPING, labels.repeat(2)[:120])
    )
    assert "for classes 'left', 'middle', 'right' against the rest" in message


@pytest.mark.parametrize("value", [0.0, 1.0, 1e3])
def test_samples_that_are_all_the_same(value):
    """No weights and no kernel would help."""
    X, y = np.full((20, 2), value), np.arange(20) % 2
    assert not messages_of(lambda: LinearOWASVC(**STEEP).fit(X, y))
    assert not messages_of(lambda: OWASVC(gamma=1.0, **STEEP).fit(X, y))


def test_fits_that_were_stopped_before_they_found_anything():
    X = np.random.default_rng(1).normal(size=(600, 2))
    y = X[:, 0] * X[:, 1] > 0.0
    stopped = OWASVC(callback=lambda _: False)
    with pytest.warns(ConvergenceWarning, match="is kept, w = 0, which treats all samples alike"):
        stopped.fit(X, y)
    assert np.unique(stopped.predict(X)).size == 1


def test_ordinary_fits_are_silent():
    X, y = make_blobs(80, centers=[[-1, 0], [1, 0]], random_state=0)
    for C in (1e-3, 1.0, 1e3):
        assert not messages_of(lambda C=C: OWASVC(C=C).fit(X, y))
        assert not messages_of(lambda C=C: LinearOWASVC(C=C).fit(X, y))


def test_searches_warn_once_and_count():
    """Steep weights leave w = 0 in every fit, the others in none. Only the chosen one matters."""
    search = LinearOWASVCCV([0.1, 1.0], alphas=0.1, weights="superquantile", cv=3)
    (message,) = messages_of(lambda: search.fit(OVERLAPPING, CHANCE))
    assert "in 6 of 6 fits, for 2 of 2 candidates, the chosen one among them" in message
    ahead = OVERLAPPING + 0.5 * CHANCE[:, None]
    search = LinearOWASVCCV([0.1, 1.0], alphas=[0.02, 1.0], weights="superquantile", cv=3)
    assert not messages_of(lambda: search.fit(ahead, CHANCE))
    assert search.alpha_ == 1.0
    assert not messages_of(lambda: search.set_params(n_jobs=2).fit(ahead, CHANCE))
    search = LinearOWASVCCV([0.1, 1.0], alphas=1.0, cv=3)
    assert not messages_of(lambda: search.fit(ahead, CHANCE))
