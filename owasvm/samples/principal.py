r"""Samples in the coordinates of their leading principal directions.

Let the samples have positive *emphases* ``d_i``. They are moved so that their mean, weighted by
the emphases, is the origin of feature space, and w is split along their leading principal
directions :math:`v_1, \dots, v_k` of unit length, the eigenvectors of
:math:`\sum_i d_i \phi(x_i) \phi(x_i)^T`:

.. math:: f(x_i) = b + \sum_j t_j s_{ij} + \langle w_\perp, \phi_\perp(x_i) \rangle, \qquad
          |w|^2 = |t|^2 + |w_\perp|^2, \quad t_j = \langle w, v_j \rangle .

The *coordinates* of a classifier are ``(b, t_1, ..., t_k)``. Their score columns, ones for b and
``s_j`` for ``t_j``, are orthogonal to each other and to the values of any ``w_perp``, all weighted
by the emphases; the weighted squared lengths of the ``s_j`` are the leading eigenvalues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from owasvm.rounding import accumulated
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.kernel_operators import GramOperator
from owasvm.samples.operators import Operator
from owasvm.samples.rows import make_rows

FloatArray = NDArray[np.float64]

__all__ = ["MAX_DIRECTIONS", "FeatureAxes", "GramAxes", "PrincipalAxes"]

#: Directions prepared at most.
MAX_DIRECTIONS = 12
# How fast eigenvalues below the largest cease to count for leverages.
_SHARPNESS = 10.0
# Eigenvalues below this share of the largest are no directions any more.
_USABLE = 1e-9


class PrincipalAxes(ABC):
    """Centred samples and their leading principal directions.

    Parameters
    ----------
    matrix : ndarray of shape (size, size)
        The scatter of the samples, or its counterpart of the size of the samples.
    emphases : ndarray of shape (n_samples,)
        Positive numbers: where curvature is wanted.
    norms : ndarray of shape (n_samples,)
        Norms of the centred samples.
    given_norms : ndarray of shape (n_samples,)
        Norms before the samples were centred.
    kernel_error : float
        What rounding of the kernel values can have added to eigenvalues.
    """

    def __init__(
        self,
        matrix: FloatArray,
        emphases: FloatArray,
        norms: FloatArray,
        given_norms: FloatArray,
        kernel_error: float,
    ) -> None:
        self.emphases = emphases
        self.norms = norms
        size = matrix.shape[0]
        first = max(size - MAX_DIRECTIONS - 1, 0)
        values, vectors = _find_largest(matrix, first)
        values, vectors = values[::-1], vectors[:, ::-1]
        # What rounding can have taken from eigenvalues: of their computation, of the centred
        # kernel values, and of the kernel values themselves.
        largest_norm = max(float(given_norms.max()), float(norms.max()))
        self._eigen_error = accumulated(8 * size) * max(float(values[0]), 0.0)
        self._eigen_error += accumulated(norms.size + 8) * largest_norm**2 * float(emphases.sum())
        self._eigen_error += kernel_error
        # Samples that all coincide leave no curvature to bound: any value is valid then.
        scale = float(norms.max()) ** 2 * float(emphases.max())
        self._floor = max(1e-12 * scale, 1e-300)
        usable = values > _USABLE * max(float(values[0]), self._floor)
        self._vectors = vectors[:, usable]
        self._values = values[usable]
        # Nothing is larger than the last eigenvalue computed; if all were, the rest is rounding.
        self.n_directions = max(int(usable.sum()) - (1 if first > 0 else 0), 0)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.emphases.size

    @abstractmethod
    def direction_scores(self, n_directions: int) -> FloatArray:
        """Scores of the samples along the leading directions, a column each."""

    @abstractmethod
    def without_directions(self, n_directions: int) -> Operator:
        """The rest of the data."""

    @abstractmethod
    def _at_mean(self, coef: FloatArray) -> float:
        """``<w, mean>`` for ``w = sum_i coef_i phi(x_i)`` without centring."""

    @abstractmethod
    def _leverage(self, shares: FloatArray) -> FloatArray:
        """How much each sample takes part in the directions, these weighted by `shares`."""

    def largest_remaining(self, n_directions: int) -> float:
        """Largest eigenvalue once the leading directions are taken out, rounded up."""
        if n_directions < self._values.size:
            largest = float(self._values[n_directions])
        else:
            largest = _USABLE * float(self._values[0]) if self._values.size else 0.0
        return max(largest, self._floor) + self._eigen_error

    def score_error(self, n_directions: int) -> float:
        """How far off the scores along the leading directions can be, at most."""
        if n_directions == 0 or self._values.size == 0:
            return 0.0
        # Scores are eigenvectors times roots of eigenvalues: the smallest one is the least exact.
        last = float(self._values[min(n_directions, self._values.size) - 1])
        return self._eigen_error / np.sqrt(last * float(self.emphases.min()))

    def leverages(self, n_directions: int = 0) -> FloatArray:
        """How much each sample takes part in the largest eigenvalues beyond some directions.

        Eigenvalues count less the smaller they are. The mean over the samples is 1.
        """
        values = self._values
        if values.size <= n_directions:
            return np.ones(self.n_samples)
        shares = np.zeros(values.size)
        rest = values[n_directions:]
        shares[n_directions:] = np.exp(_SHARPNESS * (rest / rest[0] - 1.0))
        return self._leverage(shares / shares.sum()) * self.n_samples

    def coordinates(self, coef: FloatArray, intercept: float, n_directions: int) -> FloatArray:
        """Coordinates of a classifier given by the original coefficients and intercept."""
        directions = self.direction_scores(n_directions).T @ coef
        return np.concatenate(([intercept + self._at_mean(coef)], directions))

    def classifier(self, coef: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Original coefficients and intercept of a classifier given by its coordinates.

        `coef` belongs to the rest of the data. A direction is itself a combination of the samples,
        with emphasis times score over eigenvalue for coefficients.
        """
        n_directions = coordinates.size - 1
        scores = self.direction_scores(n_directions)
        change = (scores.T @ coef - coordinates[1:]) / self._values[:n_directions]
        coef = coef - self.emphases * (scores @ change)
        # The samples were centred: the same w from samples that are not.
        coef = coef - coef.sum() * (self.emphases / self.emphases.sum())
        return coef, float(coordinates[0]) - self._at_mean(coef)


class GramAxes(PrincipalAxes):
    """Axes of samples given by their Gram matrix.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Kernel values.
    emphases, norms : ndarray of shape (n_samples,)
        Emphases, and norms of the samples as they are.
    kernel_error : float
        What rounding of the kernel values can have added to eigenvalues.
    """

    def __init__(
        self, gram: FloatArray, emphases: FloatArray, norms: FloatArray, kernel_error: float
    ) -> None:
        shares = emphases / emphases.sum()
        roots = np.sqrt(emphases)
        self._row_means = gram @ shares
        overall = float(shares @ self._row_means)
        centred = gram - self._row_means - self._row_means[:, np.newaxis] + overall
        self._gram = np.ascontiguousarray(0.5 * (centred + centred.T))
        own_norms = np.sqrt(np.maximum(self._gram.diagonal(), 0.0))
        matrix = self._gram * np.outer(roots, roots)
        super().__init__(matrix, emphases, own_norms, norms, kernel_error)

    def direction_scores(self, n_directions: int) -> FloatArray:
        roots = np.sqrt(self.emphases)[:, np.newaxis]
        return self._vectors[:, :n_directions] * np.sqrt(self._values[:n_directions]) / roots

    def without_directions(self, n_directions: int) -> Operator:
        rest = self._gram
        if n_directions:
            scores = self.direction_scores(n_directions)
            rest = rest - scores @ scores.T
        return GramOperator(rest, centred=False)

    def _at_mean(self, coef: FloatArray) -> float:
        return float(self._row_means @ coef)

    def _leverage(self, shares: FloatArray) -> FloatArray:
        return self._vectors**2 @ shares


class FeatureAxes(PrincipalAxes):
    """Axes of samples given by fewer features than samples.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        The samples.
    emphases, norms : ndarray of shape (n_samples,)
        Emphases, and norms of the samples as they are.
    """

    def __init__(self, features: FloatArray, emphases: FloatArray, norms: FloatArray) -> None:
        self._mean = (emphases / emphases.sum()) @ features
        self._features = features - self._mean
        weighted = self._features * np.sqrt(emphases)[:, np.newaxis]
        own_norms = np.sqrt(np.einsum("ij,ij->i", self._features, self._features))
        super().__init__(weighted.T @ weighted, emphases, own_norms, norms, 0.0)

    def direction_scores(self, n_directions: int) -> FloatArray:
        return self._features @ self._vectors[:, :n_directions]

    def without_directions(self, n_directions: int) -> Operator:
        rest = self._features
        if n_directions:
            vectors = self._vectors[:, :n_directions]
            rest = rest - self.direction_scores(n_directions) @ vectors.T
        return FeatureOperator(make_rows(rest))

    def _at_mean(self, coef: FloatArray) -> float:
        return float(self._mean @ (self._features.T @ coef + self._mean * coef.sum()))

    def _leverage(self, shares: FloatArray) -> FloatArray:
        scores = self.direction_scores(self._values.size) ** 2 / self._values
        return self.emphases * (scores @ shares)


def _find_largest(matrix: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues from number `first` on, ascending, and their eigenvectors."""
    size = matrix.shape[0]
    try:
        return eigh(matrix, subset_by_index=(first, size - 1))
    except np.linalg.LinAlgError:
        # Eigenvalues that nearly coincide can be too much for the method that takes a few only.
        values, vectors = np.linalg.eigh(matrix)
        return values[first:], vectors[:, first:]
