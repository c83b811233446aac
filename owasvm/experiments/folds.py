"""Folds ready for fits: one kernel matrix per width, sliced once per fold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments.protocol import Data, split
from owasvm.kernels import Kernel
from owasvm.problem import Costs, OWAProblem
from owasvm.samples import FeatureSamples, GramSamples, Samples
from owasvm.solution import Solution

__all__ = ["Fold", "prepare_fold"]

FloatArray = NDArray[np.float64]

# Kernel matrices and folds a process keeps: neighbouring chains share them.
_KEPT = 3


@dataclass(frozen=True)
class Fold:
    """A fold, ready for fits.

    Parameters
    ----------
    train : ndarray of shape (n_train, n_features) or (n_train, n_train)
        Features of the training samples, or their kernel values.
    test : ndarray of shape (n_test, n_features) or (n_test, n_train)
        Features of the test samples, or their kernel values with the training samples.
    y_train, y_test : ndarray
        Labels.
    is_kernel : bool
        Whether these are kernel values.
    samples : Samples
        The training samples as problems take them.
    """

    train: FloatArray
    test: FloatArray
    y_train: FloatArray
    y_test: FloatArray
    is_kernel: bool
    samples: Samples

    def problem(self, costs: Costs) -> OWAProblem:
        """The training problem with given costs."""
        return OWAProblem(self.y_train, costs, samples=self.samples)

    def test_values(self, solution: Solution) -> FloatArray:
        """Decision values of the test samples."""
        if self.is_kernel:
            return self.test @ (self.y_train * solution.dual) + solution.intercept
        coef = solution.coef
        if coef is None:
            coef = self.train.T @ (self.y_train * solution.dual)
        return self.test @ coef + solution.intercept


@lru_cache(maxsize=_KEPT)
def _gram(data: Data, width: float) -> FloatArray:
    """Kernel values of a whole dataset."""
    return Kernel("rbf", 1.0 / (2.0 * width**2)).gram(data.X)


@lru_cache(maxsize=_KEPT)
def prepare_fold(data: Data, folds: str, fold: int, width: float) -> Fold:
    """Return a fold; the last few are kept, and with them their kernel matrices.

    `folds` and `fold` are those of :func:`owasvm.experiments.protocol.split`, `width` is the sigma
    of the Gaussian kernel, 0 for linear models.
    """
    rows, held_out = split(data.y, folds, fold)
    if width > 0.0:
        gram = _gram(data, width)
        train = np.ascontiguousarray(gram[np.ix_(rows, rows)])
        test = np.ascontiguousarray(gram[np.ix_(held_out, rows)])
    else:
        train, test = data.X[rows], data.X[held_out]
    is_kernel = width > 0.0
    samples = GramSamples(train, definite=True) if is_kernel else FeatureSamples(train)
    return Fold(train, test, data.y[rows], data.y[held_out], is_kernel, samples)
