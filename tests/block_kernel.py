"""A third kind of samples in one file: a Gaussian kernel that is evaluated when it is asked for.

Slow, and meant to be: it shows what a kind of samples takes. ``KINDS.insert(0, BlockKernel.make)``
is the line that makes it known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.kernels import Kernel
from owasvm.rounding import UNIT
from owasvm.samples import KernelSamples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class BlockKernel(KernelSamples):
    """``exp(-gamma |x_i - x_j|^2)``, no more than a few rows at a time.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    gamma : float
        Width.
    most : int or None, default=None
        Rows handed out at a time at most; None for all.
    """

    def __init__(self, X: FloatArray, gamma: float, most: int | None = None) -> None:
        # Differences, squares, a sum and an exponential; t exp(-t) is at most 1.
        off = np.sqrt((X.shape[1] + 8) * UNIT)
        super().__init__(X.shape[0], rounding=np.full(X.shape[0], off), definite=True)
        self._X = X
        self._gamma = gamma
        self._most = most
        self.requests: list[int] = []

    @classmethod
    def make(cls, X: Any, kernel: Kernel) -> BlockKernel | None:
        """The samples of a Gaussian kernel and dense X, None for others."""
        if kernel.function != "rbf" or not isinstance(X, np.ndarray):
            return None
        return cls(X, kernel.gamma)

    def rows(self, index: IntArray) -> FloatArray:
        if self._most is not None and index.size > self._most:
            raise MemoryError(f"{index.size} rows at a time are more than {self._most}.")
        self.requests.append(index.size)
        differences = self._X[index][:, np.newaxis] - self._X
        return np.exp(-self._gamma * (differences**2).sum(axis=2))
