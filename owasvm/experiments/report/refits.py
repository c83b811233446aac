"""The winning models, trained once more for the figures.

These fits are for pictures: the two-step models get a looser tolerance and a limit of iterations,
never of time, so that two reports of the same store are equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments import paper

if TYPE_CHECKING:
    from owasvm.experiments.report.run import Run

__all__ = ["Plane", "Refit", "load_samples", "make_classifier", "refit_in_plane", "refit_winners"]

FloatArray = NDArray[np.float64]

_TWO_STEP_LIMITS = {"tol": 1e-4, "max_iter": 300_000}
_N_GRID = 81


@dataclass(frozen=True)
class Refit:
    """A winning model trained on all samples of its dataset.

    Parameters
    ----------
    model : str
        One of the paper's models.
    description : str
        Its parameters in words.
    weights : ndarray of shape (n_samples,)
        Rank weights, ascending order of deviation.
    deviations : ndarray of shape (n_samples,)
        Deviations of the samples, ascending.
    """

    model: str
    description: str
    weights: FloatArray
    deviations: FloatArray


@dataclass(frozen=True)
class Plane:
    """A winning model trained on two principal components.

    Parameters
    ----------
    model : str
        One of the paper's models.
    axes : tuple of ndarray
        Values of the two components that span the grid.
    decision_values : ndarray
        Values of the decision function on the grid, second component along the first axis.
    accuracy : float
        Share of the training samples on the right side.
    """

    model: str
    axes: tuple[FloatArray, FloatArray]
    decision_values: FloatArray
    accuracy: float


def load_samples(dataset: str) -> tuple[FloatArray, FloatArray] | None:
    """Load X and y of a dataset without the network; None when its file is not there."""
    from owasvm.datasets import DatasetError, load

    try:
        X, y = load(dataset, download=False)
    except DatasetError:
        return None
    return X, y.astype(np.float64)


def make_classifier(
    model: str, parameters: Mapping[str, Any], n_samples: int, n_features: int
) -> Any:
    """Make the estimator of a model at a point of the grid.

    `parameters` holds ``C``, ``width``, ``quantifier`` and ``alpha``, as in the store; `n_samples`
    and `n_features` are the size of the training set.
    """
    from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC
    from owasvm.weights import is_convex, owa_weights

    width = float(parameters["width"])
    weights = parameters["quantifier"] or "uniform"
    settings: dict[str, Any] = {"C": float(parameters["C"]), "weights": weights}
    settings["alpha"] = float(parameters["alpha"]) or None
    if paper.is_kernel(model):
        settings |= {"kernel": "rbf", "gamma": 1.0 / (2.0 * width**2)}
    if paper.is_two_step(model):
        return TwoStepOWASVC(**{"kernel": "linear"} | settings | _TWO_STEP_LIMITS)
    if not is_convex(owa_weights(n_samples, weights, settings["alpha"])):
        settings["solver"] = "dca"
        settings["solver_options"] = {"n_init": 1}
    if not paper.is_kernel(model) and n_samples > n_features:
        return LinearOWASVC(**settings)
    return OWASVC(**{"kernel": "linear"} | settings)


def refit_winners(run: Run, dataset: str, X: FloatArray, y: FloatArray) -> list[Refit]:
    """Train the models with the best accuracy on all samples.

    They come in the order of the paper; models without a result are left out.
    """
    from owasvm.loss import hinge_deviations
    from owasvm.weights import owa_weights

    refits = []
    for cell in _winners(run, dataset):
        classifier = _fit(cell, X, y)
        deviations = np.sort(hinge_deviations(classifier.decision_function(X), y))
        family = cell["quantifier"] or "uniform"
        refits.append(
            Refit(
                model=cell["model"],
                description=_describe(cell),
                weights=owa_weights(y.size, family, cell["alpha"] or None),
                deviations=_round(deviations),
            )
        )
    return refits


def refit_in_plane(
    run: Run, dataset: str, X: FloatArray, y: FloatArray
) -> tuple[FloatArray, list[Plane]]:
    """Train the models with the best accuracy on two principal components.

    Returns
    -------
    components : ndarray of shape (n_samples, 2)
        The samples in the plane.
    planes : list of Plane
        In the order of the paper; models without a result are left out.
    """
    from sklearn.decomposition import PCA

    components = PCA(n_components=2, svd_solver="full").fit_transform(X)
    low, high = components.min(axis=0), components.max(axis=0)
    margin = 0.05 * (high - low)
    first, second = np.linspace(low - margin, high + margin, _N_GRID).T
    where = np.column_stack([part.ravel() for part in np.meshgrid(first, second)])
    planes = []
    for cell in _winners(run, dataset):
        classifier = _fit(cell, components, y)
        values = classifier.decision_function(where).reshape(_N_GRID, _N_GRID)
        right = np.sign(classifier.decision_function(components)) == y
        planes.append(Plane(cell["model"], (first, second), _round(values), right.mean()))
    return components, planes


def _round(values: FloatArray) -> FloatArray:
    """Keep six digits of the largest value, so that noise of the solver leaves no trace."""
    largest = float(np.abs(values).max())
    return values.round(5 - int(np.floor(np.log10(largest)))) if largest > 0.0 else values


def _winners(run: Run, dataset: str) -> list[dict[str, Any]]:
    frame = run.compared["acc", "paper"]
    found = frame[(frame["dataset"] == dataset) & frame["ours"].notna()]
    return found.to_dict("records")


def _fit(cell: Mapping[str, Any], X: FloatArray, y: FloatArray) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    from owasvm import ConstantClassifierWarning

    classifier = make_classifier(cell["model"], cell, *X.shape)
    # With several threads the last digits of a product depend on how the work was divided.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        # In the plane of two components the best weights of the whole data may be too steep.
        warnings.simplefilter("ignore", ConstantClassifierWarning)
        return classifier.fit(X, y)


def _describe(cell: Mapping[str, Any]) -> str:
    parts = [f"C = {cell['C']:g}"]
    if cell["width"] > 0:
        parts.append(f"sigma = {cell['width']:g}")
    if cell["quantifier"]:
        parts.append(f"{cell['quantifier']} weights with alpha = {cell['alpha']:g}")
    return ", ".join(parts)
