"""Kernels against their formulas, gamma against scikit-learn and against copies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

from owasvm.kernels import KERNELS, Kernel, resolve_gamma
from tests.strategies import sample_counts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Z = RNG.normal(size=(7, 3))

FORMULAS = {
    "linear": lambda x, z: x @ z,
    "poly": lambda x, z: (0.3 * (x @ z) + 0.5) ** 2,
    "rbf": lambda x, z: np.exp(-0.3 * ((x - z) ** 2).sum()),
    "sigmoid": lambda x, z: np.tanh(0.3 * (x @ z) + 0.5),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_values_are_those_of_the_formula(name, container):
    kernel = Kernel(name, gamma=0.3, degree=2, coef0=0.5)
    expected = np.array([[FORMULAS[name](x, z) for z in Z] for x in X])
    np.testing.assert_allclose(kernel.between(container(X), container(Z)), expected, atol=1e-12)
    gram = kernel.gram(container(X))
    expected = np.array([[FORMULAS[name](x, z) for z in X] for x in X])
    np.testing.assert_allclose(gram, expected, atol=1e-12)
    assert gram.flags.c_contiguous
    assert gram.dtype == np.float64


def test_all_names_are_covered():
    assert set(KERNELS) == {*FORMULAS, "precomputed"}


def test_gaussian_width():
    sigma = 0.7
    values = Kernel("rbf", gamma=1 / (2 * sigma**2)).between(X, Z)
    squared = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(values, np.exp(-squared / (2 * sigma**2)))


@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_scores_in_blocks(monkeypatch, block):
    monkeypatch.setattr("owasvm.kernels._BLOCK_ENTRIES", block)
    kernel = Kernel("rbf", gamma=0.3)
    coef = RNG.normal(size=(2, 7))
    expected = kernel.between(X, Z) @ coef.T
    np.testing.assert_allclose(kernel.scores(X, Z, coef), expected, atol=1e-13)
    precomputed = Kernel("precomputed").scores(kernel.between(X, Z), None, coef)
    np.testing.assert_allclose(precomputed, expected, atol=1e-13)


def test_scores_without_support_vectors():
    np.testing.assert_array_equal(
        Kernel("rbf").scores(X, Z[:0], np.empty((1, 0))), np.zeros((20, 1))
    )


def test_callable_kernel_may_return_a_sparse_matrix():
    kernel = Kernel(lambda A, B: sp.csr_matrix(A @ B.T))
    np.testing.assert_allclose(kernel.gram(X), X @ X.T)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A @ B.T[:, :-1], r"shape \(20, 19\); expected \(20, 20\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
        (lambda A, B: np.triu(A @ B.T), "not symmetric"),
    ],
)
def test_bad_callables(function, message):
    with pytest.raises(ValueError, match=message):
        Kernel(function).gram(X)


@pytest.mark.parametrize("n_samples", [20, 300])
def test_precomputed_symmetry(n_samples):
    features = np.random.default_rng(1).normal(size=(n_samples, 3))
    gram = features @ features.T
    assert Kernel("precomputed").gram(gram) is gram
    rounded = gram.copy()
    rounded[0, -1] *= 1 + 1e-12
    repaired = Kernel("precomputed").gram(rounded)
    np.testing.assert_array_equal(repaired, repaired.T)
    np.testing.assert_allclose(repaired, gram)
    assert rounded[0, -1] != rounded[-1, 0]
    rounded[0, -1] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric: .* differ by up to 1"):
        Kernel("precomputed").gram(rounded)


@pytest.mark.parametrize("n_samples", range(2, 11))
def test_every_pair_of_entries_is_compared(n_samples):
    kernel = Kernel("precomputed")
    for i, j in np.argwhere(~np.eye(n_samples, dtype=bool)):
        gram = np.ones((n_samples, n_samples))
        gram[i, j] += 0.125
        with pytest.raises(ValueError, match=r"not symmetric: .* differ by up to 0.125"):
            kernel.gram(gram)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_gamma_is_that_of_scikit_learn(container):
    features = np.where(X > 0.3, X, 0.0)
    y = X[:, 0] > 0
    for gamma in ("scale", "auto"):
        expected = SVC(gamma=gamma).fit(container(features), y)._gamma
        assert resolve_gamma(gamma, container(features)) == pytest.approx(expected, rel=1e-13)
    assert resolve_gamma(0.25, container(features)) == 0.25


@given(counts=sample_counts(20), is_sparse=st.booleans())
def test_gamma_of_weights_is_that_of_copies(counts, is_sparse):
    container = sp.csr_matrix if is_sparse else np.asarray
    features = np.where(X > 0.3, X + 5.0, 0.0)
    weighted = resolve_gamma("scale", container(features), counts.astype(float))
    repeated = resolve_gamma("scale", container(np.repeat(features, counts, axis=0)))
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3, -1e-8 / 7])
def test_gamma_of_constant_entries_is_one(container, value):
    # Most of these have a computed variance of about 1e-33 times their square, not 0.
    weights = np.random.default_rng(0).uniform(0.5, 2, size=37)
    assert resolve_gamma("scale", container(np.full((37, 3), value)), weights) == 1.0


def test_gamma_of_a_tiny_but_real_variance():
    features = 1e-9 * X
    assert resolve_gamma("scale", features) == pytest.approx(1e18 * resolve_gamma("scale", X))


def test_unknown_gamma():
    with pytest.raises(ValueError, match="gamma='wide' is unknown; use 'scale', 'auto'"):
        resolve_gamma("wide", X)
