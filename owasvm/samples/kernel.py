"""Samples known by kernel values alone.

:class:`KernelSamples` needs nothing but rows of the kernel matrix, when it asks for them.
:class:`GramSamples` has the whole matrix at hand, and does with it what it can do faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from owasvm.kernels import KernelShifts
from owasvm.rounding import (
    UNIT,
    accumulated,
    lacking_definiteness,
    product_without_loss,
    sum_with_error,
)
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.kernel_operators import GramOperator, KernelOperator, multiply_symmetric
from owasvm.samples.operators import Operator
from owasvm.samples.principal import GramAxes, PrincipalAxes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["GramSamples", "KernelSamples"]

# Kernel values held at a time: 32 MB.
_BLOCK_ENTRIES = 2**22
# Indefinite kernel matrices are decomposed up to so many samples, which takes about two seconds.
_MAX_DECOMPOSED = 1500
# Eigenvalues of a Gram matrix below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-14
# Rounding of the shifts of an anchored kernel, which are computed with more digits and rounded.
_SHIFT_ROUNDINGS = 4 if np.finfo(np.longdouble).eps < 1e-18 else 1000
_CONSTANT_ROUNDINGS = 100
# With more samples than these steps from few columns cost less in any case. With fewer they do
# where there are very few columns, as for Newton systems of this share of the samples and of this
# size, or as soon as systems get large: whoever meets such systems asks the operator to condense.
_FEW_SAMPLES = 1500
_SMALL_SYSTEM = 1 / 6
_LEAST_SYSTEM = 16


class KernelSamples(ABC):
    """Samples whose kernel values ``K(x_i, x_j)`` can be had row by row.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    rounding : ndarray of shape (n_samples,) or None, default=None
        ``K(x_i, x_j)`` is off by at most ``rounding[i] * rounding[j]``; None for kernel values
        that are exact but for their last digit.
    definite : bool or None, default=None
        Whether the kernel is positive semi-definite. None: looked at when it is first asked for.
    shifts : KernelShifts or None, default=None
        How an intercept becomes one for the kernel as it was given.
    """

    keeps_weight = False

    def __init__(
        self,
        n_samples: int,
        *,
        rounding: FloatArray | None = None,
        definite: bool | None = None,
        shifts: KernelShifts | None = None,
    ) -> None:
        self.n_samples = n_samples
        self._given_rounding = rounding
        self._definite = definite
        self._shifts = shifts

    @abstractmethod
    def rows(self, index: IntArray) -> FloatArray:
        """Kernel values of some samples with all, shape (index.size, n_samples)."""

    @cached_property
    def diagonal(self) -> FloatArray:
        """``K(x_i, x_i)``."""
        parts = [self.rows(index)[np.arange(index.size), index] for index in self._blocks()]
        return np.concatenate(parts)

    def _blocks(self) -> list[IntArray]:
        """All samples, so many at a time as their rows may take."""
        n_blocks = max(self.n_samples**2 // _BLOCK_ENTRIES, 1)
        return np.array_split(np.arange(self.n_samples), min(n_blocks, self.n_samples))

    def gram_matrix(self) -> FloatArray:
        return self.rows(np.arange(self.n_samples))

    def gram_among(self, index: IntArray) -> FloatArray:
        return self.rows(index)[:, index]

    @property
    def needs_balance(self) -> bool:
        return self._shifts is not None

    @property
    def n_multiplications(self) -> float:
        return float(self.n_samples) ** 3

    @cached_property
    def norms(self) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.sqrt(np.maximum(self.diagonal, 0.0))

    @cached_property
    def _lacking(self) -> float:
        """What the kernel lacks to be positive semi-definite, as a share of its diagonal."""
        if self._definite is not None:
            return 0.0 if self._definite else np.inf
        return lacking_definiteness(self.gram_matrix())

    @cached_property
    def is_definite(self) -> bool:
        return bool(np.isfinite(self._lacking))

    @cached_property
    def rounding(self) -> FloatArray:
        """What each sample contributes to the rounding of the kernel values."""
        if self._given_rounding is not None:
            return self._given_rounding
        lacking = self._lacking if self.is_definite else 0.0
        return (np.sqrt(UNIT) + np.sqrt(lacking)) * self.norms

    def _multiply(self, coef: FloatArray, careful: bool) -> FloatArray:
        multiply = product_without_loss if careful else np.matmul
        parts = (np.ascontiguousarray(self.rows(index)) for index in self._blocks())
        return np.concatenate([multiply(part, coef) for part in parts])

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._multiply(coef, careful=False)

    def weight(self, coef: FloatArray) -> FloatArray | None:
        return None

    def weight_as_given(self, coef: FloatArray) -> FloatArray | None:
        return None

    def product_rounding(self, coef: FloatArray) -> FloatArray:
        return self.rounding * float(self.rounding @ np.abs(coef))

    def eigenvalue_rounding(self, emphases: FloatArray) -> float:
        return float(emphases @ self.rounding**2)

    def evaluate(self, coef: FloatArray, *, careful: bool = False) -> Evaluation:
        sizes = np.abs(coef)
        reach = float(self.norms @ sizes)
        scores = self._multiply(coef, careful)
        error = accumulated(coef.size + 1) * reach * self.norms
        if careful:
            error = accumulated(coef.size + 1) * error + 2.0 * UNIT * np.abs(scores)
        error = error + self.product_rounding(coef)
        terms = coef * scores
        squared_norm, sum_error = sum_with_error(terms)
        norm_error = float(sizes @ error) + sum_error + UNIT * float(np.abs(terms).sum())
        if self.is_definite:
            squared_norm = max(squared_norm, 0.0)
        return Evaluation(scores, error.copy, squared_norm, norm_error)

    def evaluate_weight(self, weight: FloatArray) -> Evaluation:
        raise TypeError(f"{type(self).__name__} keeps no w of {weight.size} features.")

    def dual_norm(self, coef: FloatArray, found: Evaluation) -> tuple[float, float]:
        return found.squared_norm, found.norm_error

    def store_intercept(self, weight: FloatArray | None, intercept: float) -> float:
        return intercept

    def intercept_as_given(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        return self._shift_intercept(coef, intercept, -1.0)

    def intercept_as_moved(
        self, coef: FloatArray, weight: FloatArray | None, intercept: float
    ) -> float:
        return self._shift_intercept(coef, intercept, 1.0)

    def _shift_intercept(self, coef: FloatArray, intercept: float, sign: float) -> float:
        return intercept if self._shifts is None else self._shifts.move(coef, intercept, sign)

    def intercept_error(self, coef: FloatArray, intercept: float) -> float:
        """That of the shift, and of a sum of coefficients that is not quite 0."""
        if self._shifts is None:
            return 0.0
        given = self._shifts.move(coef, intercept, -1.0)
        total, error = sum_with_error(coef)
        sizes = np.abs(self._shifts.values)
        return float(
            UNIT * (abs(given) + abs(intercept))
            + _SHIFT_ROUNDINGS * UNIT * (np.abs(coef) @ sizes)
            + (abs(total) + error)
            * (sizes.max() + _CONSTANT_ROUNDINGS * UNIT * self._shifts.constant)
        )

    @cached_property
    def _centred(self) -> Operator:
        return self._make_operator(centred=True)

    def operator(self, *, centred: bool = True) -> Operator:
        return self._centred if centred else self._make_operator(centred=False)

    def _make_operator(self, *, centred: bool) -> Operator:
        return KernelOperator(self, centred=centred)

    def principal_axes(self, emphases: FloatArray) -> PrincipalAxes:
        return GramAxes(
            self.gram_matrix(), emphases, self.norms, self.eigenvalue_rounding(emphases)
        )

    def coordinates(self) -> FloatArray:
        """The eigen-coordinates of the Gram matrix, negative eigenvalues clipped at 0."""
        gram = self.gram_matrix()
        eigenvalues, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        kept = eigenvalues > _RANK_TOLERANCE * max(float(eigenvalues[-1]), 0.0)
        if not kept.any():
            return np.zeros((self.n_samples, 1))
        return vectors[:, kept] * np.sqrt(eigenvalues[kept])

    def take(self, index: IntArray) -> Samples:
        return GramSamples(
            self.gram_matrix()[np.ix_(index, index)],
            rounding=None if self._given_rounding is None else self._given_rounding[index],
            definite=self._definite,
            shifts=None if self._shifts is None else self._shifts.take(index),
        )

    def nearest_definite(self) -> Samples:
        """The nearest one, its negative eigenvalues raised to 0.

        With many samples the one that is lifted by the most negative eigenvalue, which costs much
        less.
        """
        gram = self.gram_matrix()
        if self.n_samples <= _MAX_DECOMPOSED:
            values, vectors = np.linalg.eigh(gram)
            nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
        else:
            start = np.ones(self.n_samples)
            lowest = eigsh(gram, k=1, which="SA", v0=start, tol=1e-2, return_eigenvectors=False)
            nearest = gram + 1.1 * abs(float(lowest[0])) * np.eye(self.n_samples)
        return GramSamples(
            0.5 * (nearest + nearest.T),
            rounding=self._given_rounding,
            definite=True,
            shifts=self._shifts,
        )


class GramSamples(KernelSamples):
    """Kernel values ``K(x_i, x_j)`` of all pairs.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Symmetric.
    rounding, definite, shifts
        As in :class:`KernelSamples`.
    linear_rows : ndarray or CSR matrix of shape (n_samples, n_features) or None, default=None
        The samples behind a linear kernel.
    """

    def __init__(
        self,
        gram: FloatArray,
        *,
        rounding: FloatArray | None = None,
        definite: bool | None = None,
        shifts: KernelShifts | None = None,
        linear_rows: Any = None,
    ) -> None:
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"gram must be a square matrix, got shape {gram.shape}.")
        super().__init__(gram.shape[0], rounding=rounding, definite=definite, shifts=shifts)
        self.gram = gram
        self._linear_rows = linear_rows

    @property
    def diagonal(self) -> FloatArray:
        return self.gram.diagonal()

    def rows(self, index: IntArray) -> FloatArray:
        return self.gram[index]

    def gram_matrix(self) -> FloatArray:
        return self.gram

    def _multiply(self, coef: FloatArray, careful: bool) -> FloatArray:
        if careful:
            return product_without_loss(np.ascontiguousarray(self.gram), coef)
        return multiply_symmetric(self.gram, coef)

    def weight(self, coef: FloatArray) -> FloatArray | None:
        if self._linear_rows is None:
            return None
        return np.asarray(self._linear_rows.T @ coef).ravel()

    def _make_operator(self, *, centred: bool) -> Operator:
        operator = GramOperator(self.gram, centred=centred, is_definite=self.is_definite)
        share = 1.0 if self.n_samples > _FEW_SAMPLES else _SMALL_SYSTEM
        return operator.condense(max(int(share * self.n_samples), _LEAST_SYSTEM))
