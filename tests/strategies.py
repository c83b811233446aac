"""Hypothesis strategies: weights, deviations and small classification problems.

Weights have mean 1 and ascending positions: ``weights[k]`` meets the k-th smallest deviation, and
non-decreasing weights are the convex case. Bulk random numbers come from a drawn seed, so that
examples are cheap; everything that shapes an example is drawn by itself, so that it shrinks.
"""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from owasvm.weights import owa_weights

FloatArray = NDArray[np.float64]
Problem = tuple[FloatArray, FloatArray]

CONVEX_FAMILIES: dict[str, st.SearchStrategy[float]] = {
    "uniform": st.just(1.0),
    "basic": st.sampled_from([0.05, 0.2, 0.4, 0.6, 0.8, 1.0]),
    "quadratic": st.sampled_from([0.05, 0.2, 1 / 3]),
    "exponential": st.sampled_from([0.05, 0.8, 4.0]),
    "superquantile": st.sampled_from([0.05, 0.3, 0.5, 1.0]),
    "max-entropy": st.sampled_from([0.5, 0.6, 0.8, 0.95]),
}


def _generators() -> st.SearchStrategy[np.random.Generator]:
    """NumPy generators with a drawn seed."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def _mean_one(weights: FloatArray) -> FloatArray:
    return weights / weights.mean()


@st.composite
def general_weights(draw: st.DrawFn, n_samples: int) -> FloatArray:
    """Non-negative weights of mean 1 in any order, with zeros, repeats and wide ranges."""
    rng = draw(_generators())
    shape = draw(st.sampled_from(["spread", "few values", "one position", "wide"]))
    if shape == "spread":
        weights = rng.exponential(size=n_samples)
    elif shape == "few values":
        weights = rng.choice([0.0, 1.0, 2.0], size=n_samples)
    elif shape == "one position":
        weights = np.zeros(n_samples)
    else:
        weights = 10.0 ** rng.uniform(-8, 2, size=n_samples)
    # At least one weight is positive, at any position.
    weights[rng.integers(n_samples)] = max(1.0, weights.max())
    return _mean_one(weights)


@st.composite
def convex_weights(draw: st.DrawFn, n_samples: int) -> FloatArray:
    """Non-decreasing weights of mean 1: a named family or any sorted array."""
    family = draw(st.sampled_from([*CONVEX_FAMILIES, "array"]))
    if family == "array":
        return np.sort(draw(general_weights(n_samples)))
    return owa_weights(n_samples, family, draw(CONVEX_FAMILIES[family]))


def scales() -> st.SearchStrategy[float]:
    """Powers of ten, moderate and extreme."""
    return st.sampled_from([1.0, 1e-3, 1e3, 1e-9, 1e9])


@st.composite
def real_vectors(draw: st.DrawFn, n_samples: int, *, extreme: bool = True) -> FloatArray:
    """Vectors of either sign with ties and zeros; if `extreme`, at any scale and mixed ones."""
    rng = draw(_generators())
    shapes = ["normal", "ties", "constant", "sorted", *(["mixed"] if extreme else [])]
    shape = draw(st.sampled_from(shapes))
    if shape == "normal":
        vector = rng.normal(0.5, 1.0, size=n_samples)
    elif shape == "ties":
        vector = rng.integers(-2, 4, size=n_samples).astype(float)
    elif shape == "constant":
        vector = np.full(n_samples, rng.normal())
    elif shape == "sorted":
        vector = np.sort(rng.normal(size=n_samples))[:: rng.choice([-1, 1])].copy()
    else:
        vector = rng.normal(size=n_samples) * 10.0 ** rng.uniform(-6, 6, size=n_samples)
    return vector * draw(scales()) if extreme else vector


def deviation_vectors(n_samples: int) -> st.SearchStrategy[FloatArray]:
    """Non-negative vectors, shaped as those of :func:`real_vectors`."""
    return real_vectors(n_samples).map(lambda vector: np.maximum(vector, 0.0))


@st.composite
def weighted_vectors(
    draw: st.DrawFn, max_samples: int = 30, *, convex: bool = True, extreme: bool = True
) -> tuple[FloatArray, FloatArray]:
    """A real vector and weights of the same length."""
    n_samples = draw(st.integers(1, max_samples))
    weights = convex_weights(n_samples) if convex else general_weights(n_samples)
    return draw(real_vectors(n_samples, extreme=extreme)), draw(weights)


def sample_counts(n_samples: int, max_count: int = 4) -> st.SearchStrategy[NDArray[np.int64]]:
    """Whole-number sample weights, at least 1."""
    return st.lists(st.integers(1, max_count), min_size=n_samples, max_size=n_samples).map(
        lambda counts: np.array(counts, dtype=np.int64)
    )


def penalties(smallest: int = -15, largest: int = 15) -> st.SearchStrategy[float]:
    """Values of C: powers of two."""
    return st.integers(smallest, largest).map(lambda exponent: 2.0**exponent)


def _labels(draw: st.DrawFn, rng: np.random.Generator, scores: FloatArray) -> FloatArray:
    """Labels -1 and +1, both present: separable, noisy, random, or one sample against all."""
    n_samples = scores.size
    kind = draw(st.sampled_from(["noisy", "separable", "random", "one against all"]))
    if kind == "one against all":
        y = np.ones(n_samples)
        y[rng.integers(n_samples)] = -1.0
        return y * draw(st.sampled_from([-1.0, 1.0]))
    if kind == "random":
        ranks = rng.permutation(n_samples)
    else:
        noise = rng.normal(size=n_samples) if kind == "noisy" else 0.0
        ranks = np.argsort(np.argsort(scores + noise, kind="stable"))
    n_negative = int(rng.integers(1, n_samples))
    return np.where(ranks < n_negative, -1.0, 1.0)


def _duplicate(draw: st.DrawFn, rng: np.random.Generator, X: FloatArray, y: FloatArray) -> None:
    """Overwrites rows of `X` by copies of others; the labels decide whether copies agree."""
    n_samples = y.size
    targets = rng.integers(n_samples, size=max(1, n_samples // 3))
    kind = draw(st.sampled_from(["equal labels", "opposite labels", "all rows equal"]))
    if kind == "all rows equal":
        X[:] = X[0]
        return
    agree = kind == "equal labels"
    for target in targets:
        sources = np.flatnonzero((y == y[target]) == agree)
        X[target] = X[rng.choice(sources)]


@st.composite
def classification_problems(
    draw: st.DrawFn, min_samples: int = 2, max_samples: int = 60, max_features: int = 6
) -> Problem:
    """Small problems ``(X, y)`` with labels -1.0 and +1.0, both present, often degenerate.

    Duplicated rows with equal and with opposite labels, identical rows, constant and zero
    features, integer grids (many ties), separable and random labels, one sample of a class, more
    features than samples, scales from 1e-3 to 1e3 for all features or for each by itself.
    """
    n_samples = draw(st.integers(min_samples, max_samples))
    n_features = draw(st.integers(1, max_features))
    rng = draw(_generators())
    X = rng.normal(size=(n_samples, n_features))
    if draw(st.booleans()):
        X = np.round(X)
    y = _labels(draw, rng, X @ rng.normal(size=n_features))
    if draw(st.integers(0, 2)) == 0:
        _duplicate(draw, rng, X, y)
    if draw(st.integers(0, 3)) == 0:
        X[:, rng.integers(n_features)] = draw(st.sampled_from([0.0, 1.0, -3.0]))
    if draw(st.integers(0, 4)) == 0:
        return X * 10.0 ** rng.uniform(-3, 3, size=n_features), y
    return X * draw(st.sampled_from([1.0, 1e-3, 0.1, 10.0, 1e3])), y
