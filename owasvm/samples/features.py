"""Samples of a linear model, dense or sparse: no n x n matrix is ever formed of many of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm.rounding import (
    accumulated,
    exact_dot,
    is_sparse,
    longest_row,
    row_norms,
    sum_with_error,
)
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.operators import Operator
from owasvm.samples.principal import FeatureAxes, GramAxes, PrincipalAxes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Features = Any  # an array or a CSR matrix of shape (n_samples, n_features)

__all__ = ["FeatureSamples"]


class FeatureSamples:
    """Rows of a matrix.

    Parameters
    ----------
    features : ndarray or CSR matrix of shape (n_samples, n_features)
        The samples, maybe moved.
    origin : ndarray of shape (n_features,) or None, default=None
        What was subtracted from the samples as they were given. Intercepts belong to the samples
        that were moved.
    """

    keeps_weight = True
    is_definite = True
    needs_balance = False

    def __init__(self, features: Features, origin: FloatArray | None = None) -> None:
        self.features = features
        self._origin = origin

    @property
    def n_samples(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_multiplications(self) -> float:
        # Of sparse features `size` counts the entries that are stored.
        return float(self.features.size) * min(self.features.shape)

    @property
    def layout(self) -> str:
        return "sparse" if is_sparse(self.features) else "dense"

    @cached_property
    def norms(self) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return row_norms(self.features)

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._scores_of(self.weight(coef))

    def _scores_of(self, weight: FloatArray) -> FloatArray:
        return np.asarray(self.features @ weight).ravel()

    def weight(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.features.T @ coef).ravel()

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
        n_roundings = longest_row(self.features) + 3
        error = accumulated(n_roundings) * np.sqrt(squared_norm) * self.norms
        norm_error = accumulated(weight.size + 1) * squared_norm
        return Evaluation(self._scores_of(weight), error, squared_norm, norm_error, weight)

    def dual_norm(self, coef: FloatArray, found: Evaluation) -> tuple[float, float]:
        # w was computed from the coefficients, with a sum over the samples for every feature.
        off = accumulated(coef.size + 2) * float(np.abs(coef) @ self.norms)
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
        # Features moved to their mean already are centred as they are.
        return FeatureOperator(self.features, centred=self._origin is None)

    def operator(self, *, centred: bool = True) -> Operator:
        return self._centred if centred else FeatureOperator(self.features, centred=False)

    def _dense(self) -> FloatArray:
        dense = self.features.toarray() if is_sparse(self.features) else self.features
        return np.asarray(dense, dtype=np.float64)

    def principal_axes(self, emphases: FloatArray) -> PrincipalAxes:
        if self.features.shape[1] < self.n_samples:
            return FeatureAxes(self._dense(), emphases, self.norms)
        return GramAxes(self.gram_matrix(), emphases, self.norms, 0.0)

    def gram_matrix(self) -> FloatArray:
        gram = self.features @ self.features.T
        return np.asarray(gram.toarray() if is_sparse(gram) else gram)

    def coordinates(self) -> FloatArray:
        """The features themselves, turned into the span of the samples when these are fewer."""
        rows = self._dense()
        if rows.shape[1] <= rows.shape[0]:
            return rows
        triangle: FloatArray = np.linalg.qr(rows.T)[1]
        return triangle.T

    def take(self, index: IntArray) -> Samples:
        return FeatureSamples(self.features[index], self._origin)

    def nearest_definite(self) -> Samples:
        return self

    def make_tiny(self, X: FloatArray) -> Samples:
        return FeatureSamples(sp.csr_matrix(X) if is_sparse(self.features) else X)
