"""Small problems for the models: weights of all kinds, linear and Gaussian kernels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.problem import OWAProblem, RankCosts
from owasvm.weights import owa_weights
from tests.oracles import psd_factor

FloatArray = NDArray[np.float64]

GENERAL_KINDS = ("quadratic", "trigonometric", "trimmed", "hurwicz", "random")
CONVEX_KINDS = (
    ("basic", 0.6),
    ("basic", 0.2),
    ("exponential", 0.8),
    ("superquantile", 0.3),
    ("quadratic", 0.2),
    ("max-entropy", 0.9),
    ("uniform", 1.0),
)


@dataclass(frozen=True)
class Instance:
    """A problem next to what an oracle needs: rows whose products are the kernel, weights, C."""

    problem: OWAProblem
    rows: FloatArray
    weights: FloatArray
    C: float
    name: str

    def __repr__(self) -> str:
        return self.name


def gaussian(X: FloatArray, sigma: float = 1.0) -> FloatArray:
    """``exp(-|x - x'|^2 / (2 sigma^2))``."""
    squared = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2.0 * sigma**2))


def make(X: FloatArray, y: FloatArray, weights: FloatArray, C: float, kernel: str, name: str = ""):
    """The instance of these data."""
    costs = RankCosts(y.size, weights, C=C)
    if kernel == "linear":
        return Instance(OWAProblem(y, costs, features=X), X, weights, C, name)
    gram = gaussian(X)
    return Instance(OWAProblem(y, costs, gram=gram), psd_factor(gram), weights, C, name)


def general_weights(kind: str, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Weights of mean 1 that fall somewhere, ``weights[k]`` for the k-th smallest deviation."""
    if kind in ("quadratic", "trigonometric"):
        return owa_weights(n_samples, kind, 0.8)
    if kind == "trimmed":
        return owa_weights(n_samples, kind, 0.3)
    if kind == "hurwicz":
        weights = np.zeros(n_samples)
        weights[0], weights[-1] = 0.6, 0.4
    else:
        weights = rng.exponential(size=n_samples)
        weights[0] = weights.max() + 0.1
    return weights / weights.mean()


def _sample(rng: np.random.Generator, n_samples: int, n_features: int):
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def general(number: int, max_samples: int = 6) -> Instance:
    """The `number`-th problem with weights that are not non-decreasing."""
    rng = np.random.default_rng([1, number])
    kind = GENERAL_KINDS[number % len(GENERAL_KINDS)]
    kernel = ("linear", "rbf")[number // len(GENERAL_KINDS) % 2]
    n_samples = int(rng.integers(3, max_samples + 1))
    X, y = _sample(rng, n_samples, 2)
    C = float(2.0 ** rng.integers(-3, 6))
    weights = general_weights(kind, n_samples, rng)
    name = f"{number}-{kind}-{kernel}-n{n_samples}-C{C:g}"
    return make(X, y, weights, C, kernel, name)


def convex(number: int, max_samples: int = 80) -> Instance:
    """The `number`-th problem with non-decreasing weights; every third one is degenerate."""
    rng = np.random.default_rng([2, number])
    family, alpha = CONVEX_KINDS[number % len(CONVEX_KINDS)]
    kernel = ("linear", "rbf")[number % 2]
    n_samples = int(rng.integers(4, max_samples + 1))
    X, y = _sample(rng, n_samples, int(rng.integers(1, 6)))
    if number % 3 == 0:
        X = np.round(X)
        X[: n_samples // 3] = X[0]
    C = float(2.0 ** rng.integers(-6, 8))
    name = f"{number}-{family}{alpha}-{kernel}-n{n_samples}-C{C:g}"
    return make(X, y, owa_weights(n_samples, family, alpha), C, kernel, name)
