"""Problems off the beaten track: data that no constant of the solvers was tuned on.

Ten data sets made or shipped by scikit-learn (ties on integer grids, imbalance, duplicates, many
and few features), five weights, three kernel widths, four values of C: 600 fits.

And seven with much noise, where with steep weights w = 0 is nearly the best classifier: 252 fits.
Other draws of these were used to choose constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_digits,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_friedman1,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
    make_swiss_roll,
)
from sklearn.preprocessing import StandardScaler

FloatArray = NDArray[np.float64]

WEIGHTS = (
    ("basic", 0.6),
    ("basic", 0.15),
    ("superquantile", 0.3),
    ("exponential", 0.8),
    ("max-entropy", 0.8),
)
#: Multiples of 1 / n_features.
WIDTHS = (0.1, 1.0, 10.0)
CS = (0.1, 1.0, 100.0, 1000.0)


#: Of the fits with more samples, which take longer.
LARGE_WEIGHTS = WEIGHTS[:3]
LARGE_CS = CS[:3]


#: Of the fits with much noise.
NOISY_WEIGHTS = (
    ("basic", 0.5),
    ("basic", 0.1),
    ("superquantile", 0.2),
    ("max-entropy", 0.85),
)
NOISY_WIDTHS = (0.2, 1.5, 9.0)
NOISY_CS = (0.2, 5.0, 300.0)


class Fit(NamedTuple):
    """One of the fits; ``gamma`` is the width of the Gaussian kernel."""

    data: str
    gamma: float
    weights: str
    alpha: float
    C: float


def load_all() -> dict[str, tuple[FloatArray, FloatArray]]:
    """Standardised samples and labels -1.0, 1.0 by name."""
    rng = np.random.default_rng(5)
    digits, wine = load_digits(), load_wine()
    pair = np.isin(digits.target, (4, 9))
    grid = rng.integers(0, 6, size=(700, 3)).astype(float)
    roll, along = make_swiss_roll(900, noise=0.8, random_state=5)
    raw = {
        "moons": make_moons(1000, noise=0.35, random_state=5),
        "circles": make_circles(800, noise=0.15, factor=0.7, random_state=5),
        "quantiles": make_gaussian_quantiles(
            n_samples=900, n_features=5, n_classes=2, random_state=5
        ),
        "hastie": make_hastie_10_2(1000, random_state=5),
        "digits 4, 9": (digits.data[pair], digits.target[pair] == 9),
        "wine": (wine.data, wine.target == 1),
        "integer grid": (grid, grid.sum(axis=1) + rng.normal(scale=2.0, size=700) > 7.5),
        "imbalanced": make_classification(
            1200, 12, weights=[0.93], flip_y=0.03, class_sep=0.6, random_state=5
        ),
        "swiss roll": (roll, np.sin(along) + 0.4 * rng.normal(size=900) > 0.0),
        "lognormal": (
            np.exp(features := rng.normal(size=(1200, 8))),
            features[:, 0] * features[:, 1] + 0.5 * rng.normal(size=1200) > 0.0,
        ),
    }
    return _standardise(raw)


def load_large(n_samples: int) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Five of them with other numbers of samples."""
    rng = np.random.default_rng(5)
    roll, along = make_swiss_roll(n_samples, noise=0.8, random_state=5)
    features = rng.normal(size=(n_samples, 8))
    raw = {
        "circles": make_circles(n_samples, noise=0.15, factor=0.7, random_state=5),
        "quantiles": make_gaussian_quantiles(
            n_samples=n_samples, n_features=5, n_classes=2, random_state=5
        ),
        "imbalanced": make_classification(
            n_samples, 12, weights=[0.93], flip_y=0.03, class_sep=0.6, random_state=5
        ),
        "swiss roll": (roll, np.sin(along) + 0.4 * rng.normal(size=n_samples) > 0.0),
        "lognormal": (
            np.exp(features),
            features[:, 0] * features[:, 1] + 0.5 * rng.normal(size=n_samples) > 0.0,
        ),
    }
    return _standardise(raw)


def load_noisy(n_samples: int = 1100) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Seven sets with much noise in labels or features."""
    seed, n = 72, n_samples
    rng = np.random.default_rng(seed)
    informative = make_classification(
        n, 8, n_informative=5, flip_y=0.1, class_sep=0.8, random_state=seed
    )
    points, centre = make_blobs(n, 4, centers=6, cluster_std=3.0, random_state=seed)
    inputs, response = make_friedman1(n, 6, noise=2.0, random_state=seed)
    heavy = rng.standard_t(3, size=(n, 6))
    angle, arm = rng.uniform(0.0, 3.0 * np.pi, n), rng.integers(0, 2, n)
    turned = angle + np.pi * arm
    spirals = np.column_stack((angle * np.cos(turned), angle * np.sin(turned)))
    normal = rng.normal(size=(n, 3))
    counts = rng.poisson(2.0, size=(n, 5)).astype(float)
    raw = {
        "informative": informative,
        "blobs": (points, centre % 2),
        "friedman": (inputs, response > np.median(response)),
        "heavy tails": (heavy, heavy[:, 0] * heavy[:, 1] + heavy[:, 2] + rng.normal(size=n) > 0.0),
        "spirals": (spirals + rng.normal(size=(n, 2)), arm),
        "overlap": (normal, rng.random(n) < 1.0 / (1.0 + np.exp(-normal.sum(axis=1)))),
        "counts": (
            counts,
            counts[:, 0] + 0.5 * counts[:, 1] * counts[:, 2] + 2.0 * rng.normal(size=n) > 4.5,
        ),
    }
    return _standardise(raw)


def _standardise(
    raw: dict[str, tuple[FloatArray, Any]],
) -> dict[str, tuple[FloatArray, FloatArray]]:
    return {
        name: (
            StandardScaler().fit_transform(X),
            np.where(np.asarray(labels) == np.max(labels), 1.0, -1.0),
        )
        for name, (X, labels) in raw.items()
    }


def list_fits(
    data: dict[str, tuple[FloatArray, FloatArray]], *, kind: str = "wide"
) -> Iterator[Fit]:
    """All fits, "wide", "large" or "noisy", those on one kernel matrix one after the other."""
    all_weights, widths, values = {
        "wide": (WEIGHTS, WIDTHS, CS),
        "large": (LARGE_WEIGHTS, WIDTHS, LARGE_CS),
        "noisy": (NOISY_WEIGHTS, NOISY_WIDTHS, NOISY_CS),
    }[kind]
    for name, (X, _) in data.items():
        for width in widths:
            for weights, alpha in all_weights:
                for C in values:
                    yield Fit(name, width / X.shape[1], weights, alpha, C)
