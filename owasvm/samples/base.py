r"""What the rest of the package asks of data.

Samples are vectors :math:`\phi(x_i)` of some feature space, and a classifier is
:math:`w = \sum_i \text{coef}_i \phi(x_i)` with an intercept. Labels are nobody's business here:
coefficients carry their signs. Nothing outside of this package asks what kind of data it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.samples.operators import Operator
from owasvm.samples.principal import PrincipalAxes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Evaluation", "Samples"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores ``<w, phi(x_i)>`` and squared norm of a vector w, and how far off they can be.

    ``weight`` is w itself, where it is stored as such. What scores are off by is computed when it
    is asked for: with many samples every vector counts.
    """

    scores: FloatArray
    find_error: Callable[[], FloatArray]
    squared_norm: float
    norm_error: float
    weight: FloatArray | None = None

    @property
    def score_error(self) -> FloatArray:
        """What each of the scores can be off by: an array that the caller may change."""
        return self.find_error()


class Samples(Protocol):
    """Data, immutable, with whatever was prepared of them kept for the next problem.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    norms : ndarray of shape (n_samples,)
        ``|phi(x_i)|``.
    is_definite : bool
        Whether all inner products come from a positive semi-definite kernel, up to rounding. Only
        then has a problem a lower bound at all: along a direction of negative curvature its
        objective falls without end.
    keeps_weight : bool
        Whether a classifier is stored by w itself and not by its coefficients.
    needs_balance : bool
        Whether coefficients of a classifier must sum to 0.
    n_multiplications : float
        In the largest Newton system there can be.
    """

    @property
    def n_samples(self) -> int: ...
    @property
    def norms(self) -> FloatArray: ...
    @property
    def is_definite(self) -> bool: ...
    @property
    def keeps_weight(self) -> bool: ...
    @property
    def needs_balance(self) -> bool: ...
    @property
    def n_multiplications(self) -> float: ...

    def scores(self, coef: FloatArray) -> FloatArray:
        """``<w, phi(x_j)>`` of all samples."""

    def weight(self, coef: FloatArray) -> FloatArray | None:
        """w itself; None where nothing but kernel values is known."""

    def weight_as_given(self, coef: FloatArray) -> FloatArray | None:
        """The same from the samples as they were given, whatever the coefficients sum to."""

    def evaluate(self, coef: FloatArray, *, careful: bool = False) -> Evaluation:
        """The classifier of given coefficients, as it would be stored.

        `careful` asks for products with twice the digits, where that helps.
        """

    def evaluate_weight(self, weight: FloatArray) -> Evaluation:
        """The classifier w, for samples that keep it."""

    def dual_norm(self, coef: FloatArray, found: Evaluation) -> tuple[float, float]:
        """``|w|^2`` of exact coefficients and its error, `found` being their evaluation."""

    def store_intercept(self, weight: FloatArray | None, intercept: float) -> float:
        """The intercept as the samples as they were given can hold it."""

    def intercept_as_given(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        """The intercept for the samples as they were given; here they may have been moved."""

    def intercept_as_moved(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        """The other way round."""

    def intercept_error(self, coef: FloatArray, intercept: float) -> float:
        """What the intercept as given can be off by."""

    def product_rounding(self, coef: FloatArray) -> FloatArray:
        """How far off the kernel values themselves leave the scores."""

    def eigenvalue_rounding(self, emphases: FloatArray) -> float:
        """The same for eigenvalues of the scatter with given weights."""

    def operator(self, *, centred: bool = True) -> Operator:
        """The data as the Newton solver uses them, prepared once."""

    def principal_axes(self, emphases: FloatArray) -> PrincipalAxes:
        """Their leading principal directions, samples weighted."""

    def gram_matrix(self) -> FloatArray:
        """All inner products."""

    def gram_among(self, index: IntArray) -> FloatArray:
        """Inner products of some samples with each other."""

    def coordinates(self) -> FloatArray:
        """Rows with the same inner products, as few columns as possible."""

    def take(self, index: IntArray) -> Samples:
        """Some of the samples, or copies of them."""

    def nearest_definite(self) -> Samples:
        """Samples with a positive semi-definite kernel near their own."""
