"""Samples of a linear model, dense or sparse: no n x n matrix is ever formed of many of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.rounding import (
    accumulated,
    exact_dot,
    is_sparse,
    sum_with_error,
)
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.operators import Operator
from owasvm.samples.principal import FeatureAxes, GramAxes, PrincipalAxes
from owasvm.samples.rows import find_mean, make_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Features = Any  # an array or a CSR matrix of shape (n_samples, n_features)

__all__ = ["FeatureSamples"]

# Norms of more samples are computed whenever they are asked for, by certificates alone: they would
# take as much memory as two to four features.
_KEPT_NORMS = 100_000
# Samples looked at at a time where a vector of them would be for nothing else.
_PART = 2**17


class FeatureSamples:
    """Rows of a matrix.

    Parameters
    ----------
    features : ndarray or CSR matrix of shape (n_samples, n_features)
        The samples as they were given, float64 or float32; they are not copied.
    origin : ndarray of shape (n_features,) or None, default=None
        Where dense samples are moved to while they are read: it is subtracted from them.
        Intercepts belong to the samples that were moved.
    """

    keeps_weight = True
    is_definite = True
    needs_balance = False

    def __init__(self, features: Features, origin: FloatArray | None = None) -> None:
        self.features = features
        self._origin = origin
        self._rows = make_rows(features, origin)

    @property
    def n_samples(self) -> int:
        return self._rows.shape[0]

    @property
    def n_multiplications(self) -> float:
        return float(self._rows.n_entries) * min(self._rows.shape)

    @property
    def norms(self) -> FloatArray:
        if self.n_samples > _KEPT_NORMS:
            return self._rows.norms()
        return self._kept_norms

    @cached_property
    def _kept_norms(self) -> FloatArray:
        return self._rows.norms()

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._rows.scores(self.weight(coef))

    def weight(self, coef: FloatArray) -> FloatArray:
        return self._rows.combine(coef)

    def weight_as_given(self, coef: FloatArray) -> FloatArray:
        weight = self.weight(coef)
        if self._origin is None:
            return weight
        return weight + self._origin * sum_with_error(coef)[0]

    def product_rounding(self, coef: FloatArray) -> FloatArray:
        return np.zeros(coef.size)

    def eigenvalue_rounding(self, emphases: FloatArray) -> float:
        return 0.0

    def evaluate(self, coef: FloatArray, *, careful: bool = False) -> Evaluation:
        return self.evaluate_weight(self.weight(coef))

    def evaluate_weight(self, weight: FloatArray) -> Evaluation:
        squared_norm = float(weight @ weight)
        # The samples were moved to their origin, which rounds them once.
        share = accumulated(self._rows.longest + 3) * np.sqrt(squared_norm)
        norm_error = accumulated(weight.size + 1) * squared_norm

        def find_error() -> FloatArray:
            norms = self._rows.norms()
            norms *= share
            return norms

        return Evaluation(self._rows.scores(weight), find_error, squared_norm, norm_error, weight)

    def dual_norm(self, coef: FloatArray, found: Evaluation) -> tuple[float, float]:
        # w was computed from the coefficients, with a sum over the samples for every feature.
        off = accumulated(coef.size + 2) * _dot_abs(coef, self.norms)
        length = np.sqrt(found.squared_norm)
        return found.squared_norm, found.norm_error + 2.0 * length * off + off * off

    def store_intercept(self, weight: FloatArray | None, intercept: float) -> float:
        """For samples far from the origin it is a large number, whose last digit is coarse."""
        if self._origin is None or weight is None:
            return intercept
        return exact_dot(weight, self._origin, exact_dot(-weight, self._origin, intercept))

    def intercept_as_given(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        return self._move_intercept(coef, weight, intercept, -1.0)

    def intercept_as_moved(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        return self._move_intercept(coef, weight, intercept, 1.0)

    def _move_intercept(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float, sign: float
    ) -> float:
        if self._origin is None:
            return intercept
        w = self.weight(coef) if weight is None else weight
        return exact_dot(sign * w, self._origin, intercept)

    def intercept_error(self, coef: FloatArray, intercept: float) -> float:
        return 0.0

    @cached_property
    def _centred(self) -> Operator:
        # Rows moved to their mean already are centred as they are, sparse ones stay sparse.
        if self._origin is not None or is_sparse(self.features):
            return FeatureOperator(self._rows)
        means = find_mean(self.features)
        return FeatureOperator(make_rows(self.features, means), means)

    def operator(self, *, centred: bool = True) -> Operator:
        return self._centred if centred else FeatureOperator(self._rows)

    def principal_axes(self, emphases: FloatArray) -> PrincipalAxes:
        if self._rows.shape[1] < self.n_samples:
            return FeatureAxes(self._rows.dense(), emphases, self.norms)
        return GramAxes(self.gram_matrix(), emphases, self.norms, 0.0)

    def gram_matrix(self) -> FloatArray:
        if is_sparse(self.features):
            return np.asarray((self.features @ self.features.T).toarray(), dtype=np.float64)
        rows = self._rows.dense()
        return rows @ rows.T

    def gram_among(self, index: IntArray) -> FloatArray:
        return self.take(index).gram_matrix()

    def coordinates(self) -> FloatArray:
        """The features themselves, turned into the span of the samples when these are fewer."""
        rows = self._rows.dense()
        if rows.shape[1] <= rows.shape[0]:
            return rows
        triangle: FloatArray = np.linalg.qr(rows.T)[1]
        return triangle.T

    def take(self, index: IntArray) -> Samples:
        return FeatureSamples(self.features[index], self._origin)

    def nearest_definite(self) -> Samples:
        return self


def _dot_abs(coef: FloatArray, norms: FloatArray) -> float:
    """``|coef|'norms``, some samples at a time."""
    parts = [slice(first, first + _PART) for first in range(0, norms.size, _PART)]
    return float(sum(np.abs(coef[part]) @ norms[part] for part in parts))
