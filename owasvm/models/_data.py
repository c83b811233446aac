"""What every model reads off an :class:`owasvm.problem.OWAProblem`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.problem import OWAProblem

FloatArray = NDArray[np.float64]

# Eigenvalues of a Gram matrix below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-14


def rank_costs(problem: OWAProblem) -> FloatArray:
    """``C * lambda``, ascending; the models know samples of weight 1 only."""
    costs = problem.costs.ascending
    if costs is None:
        raise ValueError(
            "The paper's models take no sample_weight or class_weight: their rank weights are "
            "one number a rank. Use solver='auto', or repeat the rows."
        )
    return costs


def require_convex(problem: OWAProblem, model: str) -> FloatArray:
    """``C * lambda``, which must be non-decreasing for the convex models."""
    costs = rank_costs(problem)
    if not problem.costs.convex:
        position = int(np.argmin(np.diff(costs)))
        raise ValueError(
            f"{model} needs non-decreasing weights, but weights[{position}] > "
            f"weights[{position + 1}]; use solver='miqp', 'branch-and-bound' or 'dca'."
        )
    return costs


def gram_matrix(problem: OWAProblem) -> FloatArray:
    """``K(x_i, x_j)``, symmetric."""
    if problem.gram is not None:
        return 0.5 * (problem.gram + problem.gram.T)
    rows = dense_features(problem)
    return rows @ rows.T


def dense_features(problem: OWAProblem) -> FloatArray:
    """The features as a dense array."""
    features = problem.features
    return np.asarray(features.toarray() if sp.issparse(features) else features, dtype=np.float64)


def coordinates(problem: OWAProblem) -> FloatArray:
    """Rows ``r_i`` with ``r_i'r_j = K(x_i, x_j)``, one a sample.

    The classifier is searched in these coordinates: ``w'phi(x_i)`` is ``u'r_i`` and ``|w|`` is
    ``|u|``. They are the features themselves, turned into the span of the samples when there are
    fewer samples than features, or the eigen-coordinates of a Gram matrix, negative eigenvalues
    clipped at 0.
    """
    if problem.gram is None:
        rows = dense_features(problem)
        if rows.shape[1] <= rows.shape[0]:
            return rows
        triangle: FloatArray = np.linalg.qr(rows.T)[1]
        return triangle.T
    eigenvalues, vectors = np.linalg.eigh(gram_matrix(problem))
    kept = eigenvalues > _RANK_TOLERANCE * max(float(eigenvalues[-1]), 0.0)
    if not kept.any():
        return np.zeros((problem.n_samples, 1))
    return vectors[:, kept] * np.sqrt(eigenvalues[kept])


def coefficients(problem: OWAProblem, rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Some ``a`` with ``sum_i a_i y_i r_i = direction``, of least norm."""
    solution = np.linalg.lstsq(rows.T, direction, rcond=1e-12)[0]
    return problem.y * solution


def explicit_coef(problem: OWAProblem, dual: FloatArray) -> FloatArray | None:
    """w itself, for problems given by features."""
    if problem.features is None:
        return None
    return np.asarray(problem.features.T @ (problem.y * dual)).ravel()
