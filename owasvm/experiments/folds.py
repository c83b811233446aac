"""Folds ready for fits: one kernel matrix a width, sliced once a fold."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments.protocol import Data, split
from owasvm.kernels import Kernel
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Solution
from owasvm.solvers import newton

if TYPE_CHECKING:
    from owasvm.solvers._operators import Operator

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
    operator : Operator
        The training samples as the solver prepares them.
    """

    train: FloatArray
    test: FloatArray
    y_train: FloatArray
    y_test: FloatArray
    is_kernel: bool
    operator: Operator

    def problem(self, costs: RankCosts) -> OWAProblem:
        """The training problem with given costs."""
        if self.is_kernel:
            return OWAProblem(self.y_train, costs, gram=self.train, known_definite=True)
        return OWAProblem(self.y_train, costs, features=self.train)

    def fresh_operator(self) -> Operator:
        """The prepared data, without the memory of fits before: results depend on no history."""
        return copy.copy(self.operator)

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

    Parameters
    ----------
    data : Data
        The dataset.
    folds : str
        Kind of folds, see :func:`owasvm.experiments.protocol.split`.
    fold : int
        Number of the fold.
    width : float
        Width sigma of the Gaussian kernel, 0 for linear models.

    Returns
    -------
    fold : Fold
    """
    rows, held_out = split(data.y, folds, fold)
    if width > 0.0:
        gram = _gram(data, width)
        train = np.ascontiguousarray(gram[np.ix_(rows, rows)])
        test = np.ascontiguousarray(gram[np.ix_(held_out, rows)])
    else:
        train, test = data.X[rows], data.X[held_out]
    y_train = data.y[rows]
    costs = RankCosts(y_train.size, "uniform", None)
    if width > 0.0:
        problem = OWAProblem(y_train, costs, gram=train, known_definite=True)
    else:
        problem = OWAProblem(y_train, costs, features=train)
    operator = newton.make_operator(problem)
    return Fold(train, test, y_train, data.y[held_out], width > 0.0, operator)
