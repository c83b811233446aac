"""Seeded problems: hostile ones, also ranked within classes, ordinary ones, shifted ones.

:func:`hostile_problem` draws problems that numerics find hard, :func:`ordinary_problem` and
:func:`shifted_problem` ones on which a fit with convex weights has to reach its gap. The kind and
the seed repeat a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.weights import is_convex, owa_weights

FloatArray = NDArray[np.float64]

# How often weights are drawn from which family.
_FAMILY_SHARES = {
    "uniform": 0.09,
    "basic": 0.2,
    "quadratic": 0.1,
    "exponential": 0.08,
    "trigonometric": 0.06,
    "superquantile": 0.12,
    "trimmed": 0.07,
    "max-entropy": 0.08,
    "olympic": 0.05,
    "array": 0.15,
}


@dataclass(frozen=True)
class HostileProblem:
    """A fit to be tried.

    Parameters
    ----------
    kind, seed : str and int
        The generator and its seed, which repeat the problem.
    X, y, sample_weight
        What ``fit`` is given; X may be sparse, or a Gram matrix.
    estimator : str
        "OWASVC" or "LinearOWASVC".
    parameters : dict
        Parameters of the estimator.
    warm_from : dict or None
        Parameters of a first fit of the same estimator, which then starts warm.
    refusable : tuple of str
        Reasons for which a ValueError would be a proper answer.
    must_reach : bool
        Whether the fit has to reach its gap.
    """

    kind: str
    seed: int
    X: Any
    y: FloatArray
    sample_weight: FloatArray | None
    estimator: str
    parameters: dict[str, Any]
    warm_from: dict[str, Any] | None = None
    refusable: tuple[str, ...] = ()
    must_reach: bool = False
    notes: tuple[str, ...] = ()

    @property
    def kernel(self) -> str:
        return str(self.parameters.get("kernel", "linear"))

    @property
    def time_limit(self) -> float | None:
        return self.parameters.get("time_limit")

    @property
    def description(self) -> str:
        """One line."""
        shown = {
            key: "array" if isinstance(value, np.ndarray) else value
            for key, value in self.parameters.items()
        }
        inside = ", ".join(
            f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value!r}"
            for key, value in shown.items()
        )
        return (
            f"{self.kind} {self.seed}: {self.estimator}({inside}), "
            f"{self.X.shape[0]} x {self.X.shape[1]}, {', '.join(self.notes) or 'plain'}"
        )


def _labels(rng: np.random.Generator, X: FloatArray, notes: list[str]) -> FloatArray:
    """Labels -1 and +1, both present."""
    n_samples = X.shape[0]
    spread = X.std(axis=0)
    scores = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, 0]
    kind = rng.choice(["noisy", "separable", "random", "single"], p=[0.5, 0.2, 0.15, 0.15])
    if kind == "random":
        y = rng.choice([-1.0, 1.0], n_samples)
    elif kind == "single":
        notes.append("one sample of a class")
        y = np.full(n_samples, rng.choice([-1.0, 1.0]))
        y[rng.integers(n_samples)] *= -1.0
    else:
        noise = 0.0 if kind == "separable" else rng.choice([0.3, 1.0, 3.0])
        y = np.where(scores + noise * rng.normal(size=n_samples) > 0, 1.0, -1.0)
    if np.all(y == y[0]):
        y[rng.integers(n_samples)] *= -1.0
    return y


def _hostile_samples(
    rng: np.random.Generator, notes: list[str], n_samples: int
) -> tuple[FloatArray, FloatArray]:
    """Features and labels."""
    n_features = int(rng.choice([1, 2, 3, 5, 10, 30], p=[0.15, 0.3, 0.2, 0.15, 0.12, 0.08]))
    if rng.random() < 0.03:
        n_features = 200
        n_samples = min(n_samples, 24)
    shape = rng.choice(["normal", "grid", "equal rows", "heavy tails"], p=[0.62, 0.2, 0.06, 0.12])
    if shape == "normal":
        X = rng.normal(size=(n_samples, n_features))
    elif shape == "grid":
        X = rng.integers(-2, 3, size=(n_samples, n_features)).astype(float)
    elif shape == "equal rows":
        X = np.tile(rng.normal(size=n_features), (n_samples, 1))
    else:
        X = rng.standard_cauchy(size=(n_samples, n_features))
    if shape != "normal":
        notes.append(str(shape))
    y = _labels(rng, X, notes)
    if rng.random() < 0.15 and n_samples >= 4:
        half = n_samples // 2
        X[half : 2 * half] = X[:half]
        y[half : 2 * half] = -y[:half]
        notes.append("duplicates with opposite labels")
    if rng.random() < 0.1:
        X[:, rng.integers(n_features)] = rng.normal()
        notes.append("constant column")
    if rng.random() < 0.25:
        reach = rng.choice([2.0, 5.0, 12.0])
        X = X * 10.0 ** rng.uniform(-reach, reach, n_features)
        notes.append(f"columns scaled by 1e-{reach:g} to 1e{reach:g}")
    elif rng.random() < 0.3:
        exponent = rng.uniform(-8, 8)
        X = X * 10.0**exponent
        notes.append(f"scaled by 1e{exponent:.1f}")
    if rng.random() < 0.4:
        exponent = rng.uniform(0, 8)
        spread = np.maximum(X.std(axis=0), np.abs(X).max() * 1e-3)
        if rng.random() < 0.5:
            X = X + 10.0**exponent * float(spread.max())
            notes.append(f"shifted by 1e{exponent:.1f} spreads")
        else:
            X = X + 10.0 ** rng.uniform(0, exponent, n_features) * spread * rng.normal(
                size=n_features
            )
            notes.append(f"columns shifted by up to 1e{exponent:.1f} spreads")
    return X, y


def _hostile_gram(
    rng: np.random.Generator, notes: list[str], refusable: list[str], n_samples: int
) -> tuple[FloatArray, FloatArray]:
    """A matrix for ``kernel="precomputed"``, and labels."""
    X = rng.normal(size=(n_samples, int(rng.integers(1, 6))))
    y = _labels(rng, X, notes)
    gram = X @ X.T
    kind = str(
        rng.choice(
            ["valid", "tiny", "indefinite", "asymmetric", "rank one", "near identity", "single"],
            p=[0.3, 0.12, 0.2, 0.08, 0.1, 0.12, 0.08],
        )
    )
    notes.append(f"{kind} matrix")
    if kind == "tiny":
        gram *= 10.0 ** rng.uniform(-300, -8)
    elif kind == "indefinite":
        refusable.append("indefinite matrix")
        change = rng.choice(["negative identity", "flipped", "slightly", "zero"])
        if change == "negative identity":
            gram = -np.eye(n_samples)
        elif change == "flipped":
            gram = rng.normal(size=(n_samples, n_samples))
            gram = gram + gram.T
        elif change == "slightly":
            gram = gram - 10.0 ** rng.uniform(-12, -1) * np.eye(n_samples)
        else:
            gram = np.zeros((n_samples, n_samples))
    elif kind == "asymmetric":
        refusable.append("asymmetric matrix")
        gram = gram + 10.0 ** rng.uniform(-12, 0) * rng.normal(size=gram.shape)
    elif kind == "rank one":
        direction = rng.normal(size=n_samples) * 10.0 ** rng.uniform(-3, 3)
        gram = np.outer(direction, direction)
    elif kind == "near identity":
        gram = np.eye(n_samples) * 10.0 ** rng.uniform(-2, 2) + 10.0 ** rng.uniform(-14, -2) * gram
    elif kind == "single":
        refusable.append("matrix in single precision")
        gram = (gram / np.abs(gram).max()).astype(np.float32).astype(np.float64)
    elif rng.random() < 0.3:
        gram *= 10.0 ** rng.uniform(3, 12)
    return gram, y


def _random_weights(rng: np.random.Generator, notes: list[str], n_samples: int) -> dict[str, Any]:
    """Parameters ``weights`` and ``alpha``."""
    family = str(rng.choice(list(_FAMILY_SHARES), p=list(_FAMILY_SHARES.values())))
    if family == "array":
        reach = rng.choice([1.0, 6.0, 12.0])
        weights = 10.0 ** rng.uniform(-reach, reach, n_samples)
        if rng.random() < 0.2:
            weights[rng.random(n_samples) < 0.4] = 0.0
            weights[rng.integers(n_samples)] = 1.0
        order = str(rng.choice(["sorted", "reversed", "shuffled"], p=[0.5, 0.25, 0.25]))
        notes.append(f"{order} weights over {2 * reach:g} magnitudes")
        if order != "shuffled":
            weights = np.sort(weights)
        if order == "reversed":
            weights = weights[::-1].copy()
        return {"weights": weights}
    if family == "uniform":
        return {"weights": family}
    small = 10.0 ** rng.uniform(-8, -1)
    middle = rng.uniform(0.05, 0.95)
    limits: dict[str, list[float]] = {
        "basic": [small, middle, middle, 1.0, 1.0 + rng.exponential(), 50.0],
        "quadratic": [small, middle, middle, 1 / 3, 1 - small],
        "exponential": [small, middle, 3.0, 50.0, 700.0],
        "trigonometric": [small, middle, middle, 1.0],
        "superquantile": [small, middle, middle, 1.0],
        "trimmed": [small, middle, middle, 1 - small],
        "max-entropy": [small, middle, middle, 0.5, 1 - small],
        "olympic": [small, middle, middle, 1.0],
    }
    return {"weights": family, "alpha": float(rng.choice(limits[family]))}


def _random_sample_weight(
    rng: np.random.Generator, notes: list[str], refusable: list[str], y: FloatArray, convex: bool
) -> FloatArray:
    """Sample weights; both classes keep some."""
    n_samples = y.size
    kind = str(rng.choice(["whole", "fractional", "tiny", "huge", "wide"]))
    factor = {"tiny": 1e-9, "huge": 1e9}.get(kind, 1.0)
    if kind == "whole" or (not convex and rng.random() < 0.8):
        mass = factor * rng.integers(0, 4, n_samples)
        for label in (-1.0, 1.0):
            # Zero means absence, but not of a whole class.
            mass[np.flatnonzero(y == label)[0]] = factor
    else:
        mass = factor * (rng.random(n_samples) + 0.01)
        if kind == "wide":
            mass = 10.0 ** rng.uniform(-6, 6, n_samples)
        if not convex:
            # Falling weights write sample weights out as copies, which these do not allow.
            refusable.append("sample weights that are no copies")
    notes.append(f"{kind} sample weights")
    return mass


def _random_kernel(rng: np.random.Generator, kernel: str, X: FloatArray) -> dict[str, Any]:
    """Parameters of a kernel."""
    spread = max(float(X.std(axis=0).max()), 1e-90)
    gamma: Any = "scale"
    draw = rng.random()
    if draw < 0.3:
        gamma = float(10.0 ** rng.uniform(-8, 8))
    elif draw < 0.6:
        gamma = float(10.0 ** rng.uniform(-2, 2) / spread**2)
        if not 1e-200 < gamma < 1e200:
            gamma = 1.0
    if kernel == "rbf":
        return {"gamma": gamma}
    if kernel == "poly":
        degree = int(rng.integers(0, 9))
        coef0 = float(rng.choice([0.0, 1.0, rng.exponential(), -rng.exponential(), 100.0]))
        return {"gamma": gamma, "degree": degree, "coef0": coef0}
    return {"gamma": gamma, "coef0": float(rng.choice([0.0, 1.0, -1.0, rng.normal()]))}


def _sometimes_enormous(
    seed: int, X: Any, parameters: dict[str, Any], notes: list[str], refusable: list[str]
) -> Any:
    """Features whose squares or powers overflow, once in a while; a clear refusal is an answer."""
    rng = np.random.default_rng([13, seed])
    if rng.random() > 0.03:
        return X
    refusable.append("overflow")
    if parameters.get("kernel") == "poly":
        parameters["degree"] = int(rng.integers(20, 60))
        notes.append("enormous power")
        return X
    exponent = rng.uniform(100, 290)
    largest = float(abs(X).max()) or 1.0
    notes.append(f"enormous, 1e{exponent:.0f}")
    return X * (10.0**exponent / largest)


def hostile_problem(seed: int) -> HostileProblem:
    """A problem that numerics find hard; the same for the same seed."""
    rng = np.random.default_rng([10, seed])
    notes: list[str] = []
    refusable: list[str] = []
    if rng.random() < 0.12:
        n_samples = int(rng.integers(2, 7))
    else:
        n_samples = int(rng.integers(10, 41)) if rng.random() < 0.85 else int(rng.integers(7, 61))
    linear = rng.random() < 0.25
    kernel = str(
        rng.choice(
            ["linear", "rbf", "poly", "sigmoid", "precomputed"], p=[0.2, 0.42, 0.14, 0.08, 0.16]
        )
    )
    parameters: dict[str, Any] = {}
    exponent = rng.uniform(-10, 10) if rng.random() < 0.4 else rng.uniform(-2, 3)
    parameters["C"] = float(10.0**exponent)
    X: Any
    if kernel == "precomputed" and not linear:
        X, y = _hostile_gram(rng, notes, refusable, n_samples)
        parameters["kernel"] = kernel
    else:
        X, y = _hostile_samples(rng, notes, n_samples)
        if not linear:
            parameters["kernel"] = kernel
            if kernel != "linear":
                parameters.update(_random_kernel(rng, kernel, X))
        if rng.random() < 0.08:
            X = sp.csr_matrix(np.where(np.abs(X) < np.quantile(np.abs(X), 0.3), 0.0, X))
            notes.append("sparse")
        X = _sometimes_enormous(seed, X, parameters, notes, refusable)
    n_samples = y.size
    parameters.update(_random_weights(rng, notes, n_samples))
    rank_weights = owa_weights(n_samples, parameters["weights"], parameters.get("alpha"))
    convex = is_convex(rank_weights)
    mass = None
    if isinstance(parameters["weights"], str):
        if rng.random() < 0.14:
            mass = _random_sample_weight(rng, notes, refusable, y, convex)
        elif rng.random() < 0.07:
            parameters["class_weight"] = "balanced"
            notes.append("balanced")
            if not convex:
                refusable.append("sample weights that are no copies")
    if convex:
        parameters["solver"] = str(rng.choice(["auto", "newton"], p=[0.8, 0.2]))
        if rng.random() < 0.7:
            parameters["time_limit"] = float(rng.choice([1.0, 5.0]))
    else:
        parameters["solver"] = str(
            rng.choice(["auto", "branch-and-bound", "dca"], p=[0.6, 0.15, 0.25])
        )
        parameters["time_limit"] = float(rng.choice([0.3, 1.0]))
    warm_from = None
    if rng.random() < 0.06:
        parameters["warm_start"] = True
        warm_from = {"C": parameters["C"] * float(10.0 ** rng.uniform(-2, 2))}
        notes.append("warm start")
    return HostileProblem(
        kind="hostile",
        seed=seed,
        X=X,
        y=y,
        sample_weight=mass,
        estimator="LinearOWASVC" if linear else "OWASVC",
        parameters=parameters,
        warm_from=warm_from,
        refusable=tuple(refusable),
        notes=tuple(notes),
    )


def _ordinary_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Weights that users would choose, mostly convex."""
    choices: list[tuple[str, tuple[float, ...]]] = [
        ("uniform", (1.0,)),
        ("basic", (0.2, 0.4, 0.6, 0.8)),
        ("exponential", (0.2, 0.8, 2.0)),
        ("superquantile", (0.1, 0.3, 0.5)),
        ("quadratic", (0.2, 0.3)),
        ("max-entropy", (0.6, 0.8)),
        ("trimmed", (0.1, 0.2)),
        ("quadratic", (0.6, 0.8)),
        ("trigonometric", (0.4, 0.8)),
    ]
    shares = np.array([1, 3, 1, 2, 1, 1, 0.5, 0.5, 0.5])
    family, alphas = choices[rng.choice(len(choices), p=shares / shares.sum())]
    return {"weights": family, "alpha": float(rng.choice(alphas))}


def _two_clouds(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Standardised normal features and noisy labels."""
    n_samples, n_features = int(rng.integers(10, 81)), int(rng.integers(1, 11))
    X = rng.normal(size=(n_samples, n_features))
    noise = rng.choice([0.0, 0.3, 1.0])
    y = np.where(X @ rng.normal(size=n_features) + noise * rng.normal(size=n_samples) > 0, 1, -1)
    y = y.astype(float)
    if np.all(y == y[0]):
        y[0] = -y[0]
    return X, y


def ordinary_problem(seed: int) -> HostileProblem:
    """A problem of moderate scales; with convex weights the fit has to reach its gap."""
    rng = np.random.default_rng([11, seed])
    X, y = _two_clouds(rng)
    X = X * 10.0 ** rng.uniform(-1, 1) + rng.normal(size=X.shape[1])
    return _ordinary_fit(rng, "ordinary", seed, X, y, [])


def shifted_problem(seed: int) -> HostileProblem:
    """Ordinary samples shifted by up to 1e6 times their spread; linear or Gaussian kernel."""
    rng = np.random.default_rng([12, seed])
    X, y = _two_clouds(rng)
    exponent = rng.uniform(0, 6)
    direction = rng.normal(size=X.shape[1]) if rng.random() < 0.5 else np.ones(X.shape[1])
    X = X + 10.0**exponent * direction / np.abs(direction).max()
    return _ordinary_fit(rng, "shifted", seed, X, y, [f"shifted by 1e{exponent:.1f} spreads"])


def _ordinary_fit(
    rng: np.random.Generator, kind: str, seed: int, X: FloatArray, y: FloatArray, notes: list[str]
) -> HostileProblem:
    linear = rng.random() < 0.25
    parameters: dict[str, Any] = {"C": float(2.0 ** rng.uniform(-7, 7))}
    if not linear:
        kernels = ["linear", "rbf"] if kind == "shifted" else ["linear", "rbf", "poly"]
        kernel = str(rng.choice(kernels, p=[0.3, 0.7] if kind == "shifted" else [0.25, 0.6, 0.15]))
        parameters["kernel"] = kernel
        if kernel == "rbf":
            # Of the samples about their mean: "scale" of shifted data would be another problem.
            variance = float(((X - X.mean(axis=0)) ** 2).mean())
            parameters["gamma"] = float(2.0 ** rng.uniform(-3, 3) / (X.shape[1] * variance))
        elif kernel == "poly":
            parameters.update(degree=int(rng.integers(2, 4)), coef0=1.0)
    parameters.update(_ordinary_weights(rng))
    convex = is_convex(owa_weights(y.size, parameters["weights"], parameters["alpha"]))
    if not convex:
        parameters["time_limit"] = 1.0
    return HostileProblem(
        kind=kind,
        seed=seed,
        X=X,
        y=y,
        sample_weight=None,
        estimator="LinearOWASVC" if linear else "OWASVC",
        parameters=parameters,
        must_reach=convex,
        notes=tuple(notes),
    )


def grouped_problem(seed: int) -> HostileProblem:
    """A hostile problem whose deviations are ranked within classes."""
    problem = hostile_problem(seed)
    parameters = {**problem.parameters, "ranks": "class"}
    if not isinstance(parameters["weights"], str):
        parameters.update(weights="basic", alpha=0.3)
    if parameters["solver"] == "branch-and-bound":
        parameters["solver"] = "dca"
    if parameters["solver"] == "newton":
        # Weights that rise for all samples may fall for fewer.
        parameters["solver"] = "auto"
    return replace(problem, kind="grouped", parameters=parameters)


GENERATORS: dict[str, Callable[[int], HostileProblem]] = {
    "hostile": hostile_problem,
    "ordinary": ordinary_problem,
    "shifted": shifted_problem,
    "grouped": grouped_problem,
}
