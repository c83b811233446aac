"""Kernel values on another device: Gram matrix, products and Newton systems there.

Written against the array API (``array-api-compat``), so that arrays of torch, CuPy, numpy and
others serve alike. The device holds the samples and, where it fits, the Gram matrix in double
precision; vectors of one number per sample stay with numpy, where sorting and pooling are, and
travel.

A Gaussian kernel is computed on the device, once, or block by block at every product where all
values together would not fit. Values of any other kernel are computed here and moved there.

Rounding: the bounds of :mod:`owasvm.rounding` hold for sums in any order and for fused
multiplications, so they hold on a device as they do here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from owasvm.kernels import KernelShifts
from owasvm.samples.device.exact_product import multiply_without_loss
from owasvm.samples.device.operator import DeviceOperator
from owasvm.samples.device.place import Array, Place
from owasvm.samples.device.values import GaussianValues, HeldValues, KernelTable, KernelValues
from owasvm.samples.kernel import GramSamples, KernelSamples
from owasvm.samples.operators import Operator

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["DeviceSamples", "Place", "move"]

# Share of the free memory that a Gram matrix may take; Newton systems need the rest.
_GRAM_SHARE = 0.7
# Products without loss pay for larger matrices.
_SLICED_FROM = 1024


class DeviceSamples(KernelSamples):
    """Samples whose kernel values live on a device.

    Parameters
    ----------
    values : KernelValues
        The kernel values, all of them or computed when asked for.
    diagonal : ndarray of shape (n_samples,)
        ``K(x_i, x_i)``.
    rounding, definite, shifts
        As in :class:`~owasvm.samples.KernelSamples`.
    """

    def __init__(
        self,
        values: KernelValues,
        diagonal: FloatArray,
        *,
        rounding: FloatArray | None = None,
        definite: bool | None = None,
        shifts: KernelShifts | None = None,
    ) -> None:
        super().__init__(values.n_samples, rounding=rounding, definite=definite, shifts=shifts)
        self.values = values
        self._table = KernelTable(values, diagonal)

    @classmethod
    def of_gaussian(cls, X: Array, gamma: float, *, hold: bool | None = None) -> DeviceSamples:
        """Samples of a Gaussian kernel, from X on the device.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            In double precision.
        gamma : float
            Width.
        hold : bool or None, default=None
            Whether to hold the Gram matrix; None: if it fits.
        """
        # Distances that overflow belong to kernel values of 0.
        with np.errstate(over="ignore", invalid="ignore"):
            computed = GaussianValues(X, gamma)
            n_samples = computed.n_samples
            if hold is None:
                hold = 8.0 * n_samples**2 <= _GRAM_SHARE * computed.place.free_memory
            values: KernelValues = computed.hold() if hold else computed
        rounding = np.full(n_samples, np.sqrt(computed.error))
        return cls(values, np.ones(n_samples), rounding=rounding, definite=True)

    @property
    def diagonal(self) -> FloatArray:
        return self._table.diagonal

    def rows(self, index: IntArray) -> FloatArray:
        return self._table.rows(index)

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._table.scores(coef)

    def _multiply(self, coef: FloatArray, careful: bool) -> FloatArray:
        if not careful:
            return self.values.product(coef)
        if self.n_samples < _SLICED_FROM:
            return super()._multiply(coef, careful)
        return multiply_without_loss(self.values, self.norms, coef)

    def _make_operator(self, *, centred: bool) -> Operator:
        return DeviceOperator(self._table, centred=centred)


def move(known: GramSamples, place: Place) -> DeviceSamples:
    """Samples whose Gram matrix was computed here, on a device.

    Raises
    ------
    MemoryError
        It does not fit there.
    """
    taken, free = known.gram.nbytes, place.free_memory
    if taken > free:
        raise MemoryError(
            f"The Gram matrix of {known.n_samples} samples takes {taken / 1e9:.3g} GB, and the "
            f"device {place.device} has {free / 1e9:.3g} GB left. Take device='cpu', or "
            "kernel='rbf' with dense samples, whose values need not be held."
        )
    return DeviceSamples(
        HeldValues(place.send(known.gram)),
        known.diagonal,
        rounding=known.rounding,
        definite=known.is_definite,
        shifts=known._shifts,
    )
