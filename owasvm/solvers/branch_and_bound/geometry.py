r"""The data of a problem in coordinates that can be branched on.

Let the samples have positive *emphases* ``d_i``. They are moved so that their mean, weighted by
the emphases, is the origin of feature space, and w is split along their leading principal
directions :math:`v_1, \dots, v_k` of unit length, the eigenvectors of
:math:`\sum_i d_i \phi(x_i) \phi(x_i)^T`:

.. math:: f(x_i) = b + \sum_j t_j s_{ij} + \langle w_\perp, \phi_\perp(x_i) \rangle, \qquad
          |w|^2 = |t|^2 + |w_\perp|^2, \quad t_j = \langle w, v_j \rangle .

The *coordinates* of a classifier are ``(b, t_1, ..., t_k)``. Their score columns, ones for b and
``s_j`` for ``t_j``, are orthogonal to each other and to the values of any ``w_perp``, all weighted
by the emphases; the weighted squared lengths of the ``s_j`` are the leading eigenvalues. The rest
of the data has the curvatures ``rho_i = d_i`` over the next eigenvalue.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

from owasvm.problem import OWAProblem
from owasvm.rounding import accumulated
from owasvm.solvers._operators import FeatureOperator, GramOperator, Operator

FloatArray = NDArray[np.float64]

# Share of the curvature left to the rounding of the eigenvalues.
_ROUNDING = 1e-9
# Curvatures are divided by; below this any other would prove as little.
_LEAST_CURVATURE = 1e-290
# Largest curvature worth having, in multiples of the largest cost.
_USEFUL = 10.0
# How fast eigenvalues below the largest cease to count for leverages.
_SHARPNESS = 10.0
#: Directions prepared at most.
MAX_DIRECTIONS = 12


class CentredData:
    """Centred samples and their leading principal directions.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    emphases : ndarray of shape (n_samples,) or None, default=None
        Positive numbers: where curvature is wanted. Equal by default.
    """

    def __init__(self, problem: OWAProblem, emphases: FloatArray | None = None) -> None:
        self.problem = problem
        self.y = problem.y
        n_samples = problem.n_samples
        self.emphases = np.ones(n_samples) if emphases is None else emphases
        self._shares = self.emphases / self.emphases.sum()
        roots = np.sqrt(self.emphases)
        self.gram: FloatArray | None = None
        self.features: FloatArray | None = None
        given = problem.features
        if given is not None and given.shape[1] < n_samples:
            dense = given.toarray() if sp.issparse(given) else np.asarray(given)
            self._mean = self._shares @ dense
            self.features = dense - self._mean
            weighted = self.features * roots[:, np.newaxis]
            matrix = weighted.T @ weighted
            squares = np.einsum("ij,ij->i", self.features, self.features)
        else:
            if given is not None:
                gram = given @ given.T
                gram = gram.toarray() if sp.issparse(gram) else np.asarray(gram)
            else:
                assert problem.gram is not None
                gram = problem.gram
            self._row_means = gram @ self._shares
            overall = float(self._shares @ self._row_means)
            centred = gram - self._row_means - self._row_means[:, np.newaxis] + overall
            self.gram = np.ascontiguousarray(0.5 * (centred + centred.T))
            matrix = self.gram * np.outer(roots, roots)
            squares = np.maximum(self.gram.diagonal(), 0.0)
        self.norms = np.sqrt(squares)
        assert problem.costs.ascending is not None
        self.useful_curvature = _USEFUL * float(problem.costs.ascending.max())
        self._take_directions(matrix)

    def _take_directions(self, matrix: FloatArray) -> None:
        size = matrix.shape[0]
        first = max(size - MAX_DIRECTIONS - 1, 0)
        values, vectors = _largest_eigenpairs(matrix, first)
        values, vectors = values[::-1], vectors[:, ::-1]
        # What rounding can have taken from eigenvalues: of their computation, of the centred
        # kernel values, and of the kernel values themselves.
        largest_norm = max(self.problem.largest_norm, float(self.norms.max()))
        self._eigen_error = accumulated(8 * size) * max(float(values[0]), 0.0)
        self._eigen_error += (
            accumulated(self.y.size + 8) * largest_norm**2 * float(self.emphases.sum())
        )
        if self.problem.gram is not None:
            self._eigen_error += float(self.emphases @ self.problem.entry_rounding**2)
        # Samples that all coincide leave no curvature to bound: any value is valid then.
        scale = float(self.norms.max()) ** 2 * float(self.emphases.max())
        self._floor = max(1e-12 * scale, 1e-300)
        usable = values > 1e-9 * max(float(values[0]), self._floor)
        self._vectors = vectors[:, usable]
        self._values = values[usable]
        # Nothing is larger than the last eigenvalue computed; if all were, the rest is rounding.
        self.n_directions = max(int(usable.sum()) - (1 if first > 0 else 0), 0)

    def largest_remaining(self, n_directions: int) -> float:
        """Largest eigenvalue once the leading directions are taken out, rounded up."""
        if n_directions < self._values.size:
            largest = float(self._values[n_directions])
        else:
            largest = 1e-9 * float(self._values[0]) if self._values.size else 0.0
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
            return np.ones(self.y.size)
        shares = np.zeros(values.size)
        rest = values[n_directions:]
        shares[n_directions:] = np.exp(_SHARPNESS * (rest / rest[0] - 1.0))
        shares /= shares.sum()
        if self.gram is not None:
            return (self._vectors**2 @ shares) * self.y.size
        scores = self.direction_scores(values.size) ** 2 / values
        return self.emphases * (scores @ shares) * self.y.size

    def direction_scores(self, n_directions: int) -> FloatArray:
        """Scores of the samples along the leading directions, a column each."""
        vectors = self._vectors[:, :n_directions]
        if self.gram is not None:
            roots = np.sqrt(self.emphases)[:, np.newaxis]
            return vectors * np.sqrt(self._values[:n_directions]) / roots
        assert self.features is not None
        return self.features @ vectors

    def without_directions(self, n_directions: int) -> Operator:
        """The rest of the data."""
        scores = self.direction_scores(n_directions)
        if self.gram is not None:
            rest = self.gram - scores @ scores.T if n_directions else self.gram
            return GramOperator(np.ascontiguousarray(rest), self.y, centred=False)
        assert self.features is not None
        vectors = self._vectors[:, :n_directions]
        rest = self.features - scores @ vectors.T if n_directions else self.features
        return FeatureOperator(rest, self.y, centred=False)

    def coordinates(self, coef: FloatArray, intercept: float, n_directions: int) -> FloatArray:
        """Coordinates of a classifier given by the original coefficients and intercept."""
        signed = self.y * coef
        directions = self.direction_scores(n_directions).T @ signed
        return np.concatenate(([intercept + self._at_mean(signed)], directions))

    def _at_mean(self, signed: FloatArray) -> float:
        """``<w, mean>`` for ``w = sum_i signed_i phi(x_i)`` without centring."""
        if self.gram is not None:
            return float(self._row_means @ signed)
        assert self.features is not None
        return float(self._mean @ (self.features.T @ signed + self._mean * signed.sum()))

    def classifier(self, coef: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Original coefficients and intercept of a classifier given by its coordinates.

        `coef` belongs to the rest of the data. A direction is itself a combination of the samples,
        with emphasis times score over eigenvalue for coefficients.
        """
        signed = self.y * coef
        n_directions = coordinates.size - 1
        scores = self.direction_scores(n_directions)
        change = (scores.T @ signed - coordinates[1:]) / self._values[:n_directions]
        signed = signed - self.emphases * (scores @ change)
        # The samples were centred: the same w from samples that are not.
        signed = signed - signed.sum() * self._shares
        return self.y * signed, float(coordinates[0]) - self._at_mean(signed)


def _largest_eigenpairs(matrix: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues from number `first` on, ascending, and their eigenvectors."""
    size = matrix.shape[0]
    try:
        return eigh(matrix, subset_by_index=(first, size - 1))
    except np.linalg.LinAlgError:
        # Eigenvalues that nearly coincide can be too much for the method that takes a few only.
        values, vectors = np.linalg.eigh(matrix)
        return values[first:], vectors[:, first:]


class Frame:
    """The data with a number of leading directions taken out as coordinates.

    Parameters
    ----------
    data : CentredData
        The samples.
    n_directions : int
        How many principal directions are coordinates beside the intercept.

    Attributes
    ----------
    columns : ndarray of shape (n_samples, 1 + n_directions)
        Score columns of the coordinates.
    regularised : ndarray of shape (1 + n_directions,)
        1 for coordinates whose square counts in ``|w|^2``, 0 for the intercept.
    rho : ndarray of shape (n_samples,)
        Curvatures of the rest.
    stiffness : ndarray of shape (1 + n_directions,)
        ``sum_i rho_i columns_ij^2``, rounded up: what the square of a coordinate's change takes
        from the bound.
    operator : Operator
        The rest of the data.
    norms : ndarray of shape (n_samples,)
        Norms of the samples in the rest of the data, rounded up.
    """

    def __init__(self, data: CentredData, n_directions: int) -> None:
        self.y = data.y
        self.data = data
        ones = np.ones((self.y.size, 1))
        self.columns = np.hstack([ones, data.direction_scores(n_directions)])
        self.regularised = np.ones(1 + n_directions)
        self.regularised[0] = 0.0
        largest = data.largest_remaining(n_directions)
        # More curvature than the costs can bend only makes the coordinates stiff.
        largest = max(largest, float(data.emphases.max()) / data.useful_curvature)
        self.rho = np.maximum((1.0 - _ROUNDING) * data.emphases / largest, _LEAST_CURVATURE)
        self.stiffness = (1.0 + 2.0 * _ROUNDING) * (self.rho @ self.columns**2)
        self.operator = data.without_directions(n_directions)
        lengths = data.norms**2 - np.einsum("ij,ij->i", self.columns[:, 1:], self.columns[:, 1:])
        # Rounded up, by what the subtraction can lose.
        self.norms = np.sqrt(np.maximum(lengths, 0.0) + 1e-12 * data.norms**2)
        self._score_error = data.score_error(n_directions)

    def slack_errors(self, coef: FloatArray, coordinates: FloatArray) -> FloatArray:
        """How far off rounding can have left the slacks of a classifier of this frame."""
        problem = self.data.problem
        sizes = np.abs(coef)
        errors = accumulated(2 * coef.size + 8) * problem.norms * float(problem.norms @ sizes)
        if problem.gram is not None:
            errors = errors + problem.entry_rounding * float(problem.entry_rounding @ sizes)
        return errors + self._score_error * float(np.abs(coordinates[1:]).sum())

    def offsets(self, coordinates: FloatArray) -> FloatArray:
        """What the coordinates contribute to the decision values."""
        return self.columns @ coordinates

    def classifier(self, coef: FloatArray, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Original coefficients and intercept of a classifier of this frame."""
        return self.data.classifier(coef, coordinates)
