"""Compiling ahead what first fits would compile."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from owasvm._jit import cache_folder, seconds_compiling
from owasvm.estimators import OWASVC, OWASVCCV, LinearOWASVC
from owasvm.losses import parts

__all__ = ["WarmupStep", "count_steps", "find_cache", "warm_up"]


@dataclass(frozen=True)
class WarmupStep:
    """One kind of fits whose loops are compiled.

    Parameters
    ----------
    name : str
        Which fits.
    seconds : float
        How long it took.
    compiling : float
        How much of that went into compiling; 0 where nothing was left to do.
    """

    name: str
    seconds: float
    compiling: float


def _draw(n_samples: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 3))
    return X, np.where(X[:, 0] + rng.normal(size=n_samples) > 0.0, 1, -1)


def _fit(estimator: Any, n_samples: int, *, weighted: bool = False) -> None:
    X, y = _draw(n_samples)
    estimator.fit(X, y, sample_weight=1.0 + (y > 0) if weighted else None).predict(X)


def _fit_sparse() -> None:
    X, y = _draw(200)
    LinearOWASVC().fit(csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0)), y)
    LinearOWASVC().fit(X.astype(np.float32), y)


def _search() -> None:
    X, y = _draw(100)
    OWASVCCV([0.1, 1.0, 10.0], cv=2, refit=False).fit(X, y)


_STEPS: dict[str, Callable[[], None]] = {
    "kernels, weights that never fall": lambda: _fit(OWASVC(C=100.0), 400),
    "kernels, searches and paths": _search,
    "linear models": lambda: _fit(LinearOWASVC(), 400),
    "linear models, sparse and float32": _fit_sparse,
    "sample weights": lambda: _fit(OWASVC(), 200, weighted=True),
    "squared hinge": lambda: _fit(OWASVC(loss="squared_hinge"), 200),
    "steep weights": lambda: _fit(OWASVC(C=1e4, weights="superquantile", alpha=0.02), 300),
    "weights that fall, descent": lambda: _fit(
        OWASVC(weights="trimmed", alpha=0.1, solver="dca"), 100
    ),
    "weights that fall, proof": lambda: _fit(OWASVC(weights="trimmed", alpha=0.1), 20),
    "weights that fall, ranks": lambda: _fit(OWASVC(weights="quadratic", alpha=0.8), 20),
    "kernel values on demand": lambda: _fit(OWASVC(cache_size=0.05), 300),
}


def count_steps() -> int:
    """How many steps :func:`warm_up` takes."""
    return len(_STEPS)


def warm_up() -> Iterator[WarmupStep]:
    """Compile the loops behind the estimators, with small fits of every kind.

    Yields
    ------
    step : WarmupStep
        What was done, after each kind.

    Examples
    --------
    >>> from owasvm.warmup import warm_up
    >>> for step in warm_up():  # doctest: +SKIP
    ...     print(step.name, step.seconds)
    """
    # Who asks for it need not be told that it happens.
    announcer = logging.getLogger("owasvm._jit")
    level = announcer.level
    announcer.setLevel(logging.ERROR)
    try:
        for name, fit in _STEPS.items():
            begun, compiled = time.perf_counter(), seconds_compiling()
            with warnings.catch_warnings():
                # Fits for their loops' sake may end before their target.
                warnings.simplefilter("ignore")
                fit()
            yield WarmupStep(name, time.perf_counter() - begun, seconds_compiling() - compiled)
    finally:
        announcer.setLevel(level)


def find_cache() -> str | None:
    """The folder above those where compiled functions are kept; None where none can be."""
    return cache_folder(parts.sort_beside)
