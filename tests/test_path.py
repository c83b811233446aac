"""Paths: the solutions of separate fits, from warm starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from owasvm import OWASVC, LinearOWASVC
from owasvm.path import DEFAULT_CS, fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import solve


def data(n_samples=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equals_separate_fits(kernel):
    X, y = data()
    alphas = [0.3, 0.9]
    Cs = [4.0, 0.25, 32.0]
    path = fit_path(X, y, Cs, alphas=alphas, kernel=kernel)
    assert path.objectives.shape == (2, 3)
    assert path.gaps.max() <= 1e-6
    for i, alpha in enumerate(alphas):
        for j, C in enumerate(Cs):
            model = OWASVC(C, alpha=alpha, kernel=kernel).fit(X, y)
            assert path.objectives[i, j] == pytest.approx(model.objective_, rel=2e-6)
            assert path.intercepts[i, j] == pytest.approx(model.intercept_[0], abs=1e-4)
    assert np.all(path.lower_bounds <= path.objectives * (1 + 1e-12))
    assert path.duals.shape == (2, 3, 80)


def test_warm_starts_save_steps():
    X, y = data(300)
    path = fit_path(X, y, gamma=0.5)
    cold = [OWASVC(C, gamma=0.5).fit(X, y).n_iter_ for C in DEFAULT_CS]
    assert path.n_iters.sum() < sum(cold)


def test_precomputed_sparse_and_features_agree():
    X, y = data()
    from_features = fit_path(X, y, [0.5, 2.0], kernel="linear")
    for other in (
        fit_path(X @ X.T, y, [0.5, 2.0], kernel="precomputed"),
        fit_path(sp.csr_matrix(X), y, [0.5, 2.0], kernel="linear"),
    ):
        assert other.objectives == pytest.approx(from_features.objectives, rel=2e-6)


def test_sample_weights_are_copies():
    X, y = data(40)
    counts = np.arange(40) % 3 + 1
    weighted = fit_path(X, y, [1.0, 8.0], gamma=0.3, sample_weight=counts)
    repeated = fit_path(np.repeat(X, counts, axis=0), np.repeat(y, counts), [1.0, 8.0], gamma=0.3)
    assert weighted.objectives == pytest.approx(repeated.objectives, rel=1e-8)


def test_labels_and_families():
    X, y = data(40)
    path = fit_path(X, np.where(y > 0, "yes", "no"), [1.0], weights="uniform", alphas=None)
    assert path.classes.tolist() == ["no", "yes"]
    assert np.isnan(path.alphas).all()


def test_three_classes_are_refused():
    X, _ = data(30)
    with pytest.raises(ValueError, match="two classes, got 3"):
        fit_path(X, np.arange(30) % 3, [1.0])


@pytest.mark.parametrize("options", [{}, {"ranks": "class"}, {"sample_weight": True}], ids=str)
def test_solutions_that_follow_C_need_no_step(options):
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(25, 2)), rng.normal(size=(25, 2)) + 7.0])
    y = np.repeat([0, 1], 25)
    settings = {"kernel": "rbf", "gamma": 0.1, **options}
    if "sample_weight" in options:
        settings["sample_weight"] = rng.uniform(0.5, 2.0, 50)
    # All samples deviate for the first values, none for the last.
    grid = [0.002, 0.004, 0.008, 1.0, 1e3, 3e3, 1e4]
    path = fit_path(X, y, grid, **settings)
    assert path.solutions[0][0].deviations.min() > 0.0
    assert path.solutions[0][4].deviations.max() < 1e-4
    assert path.n_iters[0, [1, 5, 6]].tolist() == [0, 0, 0]
    assert path.n_iters[0, [0, 3]].min() > 0
    assert path.gaps.max() <= 1e-6
    for C, carried in zip(grid, path.solutions[0], strict=True):
        alone = fit_path(X, y, [C], **settings).solutions[0][0]
        assert carried.objective == pytest.approx(alone.objective, rel=1e-6, abs=1e-6)
        assert carried.lower_bound <= alone.objective * (1.0 + 1e-12)
        np.testing.assert_allclose(carried.deviations, alone.deviations, atol=2e-3)


@pytest.mark.parametrize("weights", ["basic", "uniform"])
def test_linear_paths_go_on_as_they_have_come(weights):
    X, y = make_classification(4000, 20, n_informative=10, flip_y=0.05, random_state=2)
    y = np.where(y == 1, 1.0, -1.0)
    alpha = 0.6 if weights == "basic" else None
    problem = OWAProblem(y, RankCosts(y.size, weights, alpha), features=X)
    known = solve(problem.with_C(1.0))
    known = solve(problem.with_C(2.0), warm_start=known)
    steps = np.zeros(2, dtype=int)
    for C in (4.0, 8.0, 16.0, 32.0):
        # The same start without the direction that two solutions show.
        blind = replace(known, details={**known.details, "trend": None})
        alone = solve(problem.with_C(C), warm_start=blind)
        known = solve(problem.with_C(C), warm_start=known)
        steps += known.n_iter, alone.n_iter
        assert known.gap <= 1e-6
        assert known.objective == pytest.approx(alone.objective, rel=2e-6)
        assert known.lower_bound <= alone.objective * (1.0 + 1e-12)
    assert steps[0] < 0.6 * steps[1]


def test_directions_of_other_data_mislead_nobody():
    X, y = make_classification(300, 4, class_sep=1.0, flip_y=0.1, random_state=2)
    model = LinearOWASVC(1.0, warm_start=True).fit(X, y)
    model.set_params(C=2.0).fit(X, y)
    others = 1.0 - X[::-1], y[::-1]
    model.set_params(C=2.001, alpha=0.9).fit(*others)
    model.set_params(C=4.0).fit(*others)
    alone = LinearOWASVC(4.0, alpha=0.9).fit(*others)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-6)


def test_nothing_is_carried_over_to_other_weights():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, 0)
    path = fit_path(X, y, [1e-5], alphas=[0.9, 0.2], gamma=0.5)
    alone = fit_path(X, y, [1e-5], alphas=0.2, gamma=0.5)
    assert path.gaps.max() <= 1e-6
    np.testing.assert_allclose(
        path.solutions[1][0].deviations, alone.solutions[0][0].deviations, atol=1e-3
    )


def test_representation_is_short():
    X = np.random.default_rng(0).normal(size=(20, 2))
    path = fit_path(X, np.arange(20) % 2, Cs=[1.0, 10.0])
    assert (
        repr(path) == "OWAPath(alphas=array([0.6]), Cs=array([ 1., 10.]), classes=array([0, 1]))"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gamma": -0.1}, "gamma=-0.1 must be"),
        ({"gamma": np.nan}, "gamma=nan must be"),
        ({"kernel": "poly", "degree": 2.5, "coef0": 20.0}, "degree=2.5 must be a whole number"),
        ({"kernel": "poly", "degree": -1}, "degree=-1 must be"),
        ({"Cs": []}, "Cs must be a list"),
    ],
)
def test_kernels_that_are_none_are_refused(given, message):
    """Such matrices have negative eigenvalues, and the bounds of their problems would be false."""
    X, y = data(30)
    with pytest.raises(ValueError, match=message):
        fit_path(X, y, **{"Cs": [1.0], **given})
