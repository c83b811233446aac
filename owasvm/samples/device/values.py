"""Kernel values on a device: a Gram matrix that is held, or values computed when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.rounding import UNIT, accumulated
from owasvm.samples.device.place import Array, Place

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "LEAST_NORM",
    "GaussianValues",
    "HeldValues",
    "KernelTable",
    "KernelValues",
    "round_to",
    "slices_of_rows",
]

# Kernel values that are computed or copied at a time: 1 GiB.
_BLOCK_ENTRIES = 2**27
# Entries of a matrix that are gathered at once: the indices of all of them take twice its memory.
_GATHER_AT_ONCE = 2**27
# Products with the whole Gram matrix cost less than a copy of a larger part of it.
_WORTH_A_COPY = 0.8
# A device's exponential is off by at most one unit in the last place (CUDA) or two.
_EXP_ROUNDINGS = 8
# Distances come from products of centred samples if they are off by less than this, or by less
# than sums over all samples are: differences take a pass over all pairs for every feature.
_GOOD_PRODUCTS = 1e-13
#: Numbers below it count as this large where they are divided by.
LEAST_NORM = 1e-140


class KernelValues(Protocol):
    """Kernel values on a device."""

    place: Place
    n_samples: int

    def product(self, vector: FloatArray) -> FloatArray:
        """``K vector``, vectors here."""

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        """``K(x_i, x_j)`` of some samples, on the device."""

    def blocks(self) -> Iterator[Array]:
        """The rows of all samples, some at a time, on the device."""

    def products_among(self, index: IntArray, *, form: bool) -> Callable[[Array], Array]:
        """Products with the matrix of some samples, vectors there; `form`: it has room."""


class HeldValues:
    """A Gram matrix on the device."""

    def __init__(self, gram: Array) -> None:
        self.place = Place(gram)
        self.n_samples = int(gram.shape[0])
        self._gram = gram

    def product(self, vector: FloatArray) -> FloatArray:
        place = self.place
        return place.fetch(self._gram @ place.send(vector))

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        place, take = self.place, self.place.xp.take
        if rows.size * columns.size <= _GATHER_AT_ONCE:
            return self._gram[place.send(rows)[:, None], place.send(columns)[None, :]]
        gathered, chosen = place.empty(rows.size, columns.size), place.send(columns)
        for part in slices_of_rows(rows.size, self.n_samples):
            some = take(self._gram, place.send(rows[part]), axis=0)
            gathered[part, :] = take(some, chosen, axis=1)
        return gathered

    def blocks(self) -> Iterator[Array]:
        for part in slices_of_rows(self.n_samples, self.n_samples):
            yield self._gram[part, :]

    def products_among(self, index: IntArray, *, form: bool) -> Callable[[Array], Array]:
        place = self.place
        if form and index.size <= _WORTH_A_COPY * self.n_samples:
            return self.between(index, index).__matmul__
        position = np.full(self.n_samples, index.size)
        position[index] = np.arange(index.size)
        chosen, source, nothing = place.send(index), place.send(position), place.send(np.zeros(1))
        take, concat = place.xp.take, place.xp.concat

        def multiply(vector: Array) -> Array:
            padded = take(concat((vector, nothing)), source, axis=0)
            return take(self._gram @ padded, chosen, axis=0)

        return multiply


class GaussianValues:
    r"""Values of a Gaussian kernel that are computed whenever they are asked for.

    With :math:`s = \sqrt{2\gamma}\,(x - \text{mean})`, and t the same of z,

    .. math::

        -\gamma |x - z|^2 = \langle (s, -\tfrac12 |s|^2, 1), (t, 1, -\tfrac12 |t|^2) \rangle .

    All numbers are split into leading bits, so few that their products and sums are exact, and the
    rest, whose products are small: two products of matrices, one addition, and that is all
    that rounds.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The samples, on the device.
    gamma : float
        Width.
    """

    def __init__(self, X: Array, gamma: float) -> None:
        self.place = Place(X)
        self.n_samples, n_features = int(X.shape[0]), int(X.shape[1])
        xp = self.place.xp
        # A number of numpy would take the arrays of others for its own.
        self._gamma = float(gamma)
        scaled = (2.0 * self._gamma) ** 0.5 * (X - xp.mean(X, axis=0))
        # Exact: n_features products of two such integers, and twice half of that.
        n_bits = (53 - int(np.ceil(np.log2(2.0 * n_features + 2.0)))) // 2
        largest = max(float(xp.max(xp.abs(scaled))), LEAST_NORM)
        unit = float(np.exp2(np.ceil(np.log2(largest)) - n_bits))
        leading = round_to(scaled, unit, xp)
        rest = scaled - leading
        # An exact sum again, and a small one.
        squares = xp.sum(leading * leading, axis=1) + xp.sum((leading + scaled) * rest, axis=1)
        halves = 0.5 * squares[:, None]
        leading_halves = round_to(halves, unit * unit, xp)
        small_halves = halves - leading_halves
        ones = xp.ones_like(halves)
        self._pairs = (
            (
                xp.concat((leading, -leading_halves, ones), axis=1),
                xp.concat((leading, ones, -leading_halves), axis=1),
            ),
            (
                xp.concat((leading, rest, -small_halves, ones), axis=1),
                xp.concat((rest, scaled, ones, -small_halves), axis=1),
            ),
        )
        # In units of the largest half: entries that are off by 2 roundings change the exponent by
        # 16 of them, halves are rounded twice, the last addition makes 4. The root is common to
        # all, as if gamma were another: K gamma |x - z|^2 never exceeds 1/e.
        small = accumulated(2 * n_features + 2) * n_features**0.5 * 2.0**-n_bits
        error = (24.0 * UNIT + 8.0 * small) * float(xp.max(halves)) + 2.0 * UNIT
        self._by_differences = not error <= max(_GOOD_PRODUCTS, accumulated(self.n_samples))
        if self._by_differences:
            # Such a distance is relatively exact.
            error = accumulated(n_features + 6)
            self._X = X
        self.error = error + _EXP_ROUNDINGS * UNIT

    def product(self, vector: FloatArray) -> FloatArray:
        place = self.place
        support = np.flatnonzero(vector)
        coef, chosen = place.send(vector[support]), place.send(support)
        result = place.empty(self.n_samples)
        for part in slices_of_rows(self.n_samples, support.size):
            index = place.send(np.arange(part.start, part.stop))
            result[part] = self._compute(index, chosen) @ coef
        return place.fetch(result)

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        place = self.place
        chosen = place.send(columns)
        values = place.empty(rows.size, columns.size)
        for part in slices_of_rows(rows.size, columns.size):
            values[part, :] = self._compute(place.send(rows[part]), chosen)
        return values

    def blocks(self) -> Iterator[Array]:
        everything = np.arange(self.n_samples)
        for part in slices_of_rows(self.n_samples, self.n_samples):
            yield self.between(everything[part], everything)

    def products_among(self, index: IntArray, *, form: bool) -> Callable[[Array], Array]:
        if form:
            return self.between(index, index).__matmul__
        place = self.place
        chosen = place.send(index)

        def multiply(vector: Array) -> Array:
            result = place.empty(index.size)
            for part in slices_of_rows(index.size, index.size):
                result[part] = self._compute(chosen[part], chosen) @ vector
            return result

        return multiply

    def _compute(self, rows: Array, columns: Array) -> Array:
        xp = self.place.xp
        if self._by_differences:
            left, right = xp.take(self._X, rows, axis=0), xp.take(self._X, columns, axis=0)
            distance = xp.zeros_like(left[:, :1] + right[:, 0])
            for k in range(int(left.shape[1])):
                difference = left[:, k : k + 1] - right[:, k]
                distance += difference * difference
            return xp.exp(-self._gamma * distance)
        exponent, rest = (
            xp.take(left, rows, axis=0) @ xp.take(right, columns, axis=0).T
            for left, right in self._pairs
        )
        exponent += rest
        return xp.exp(exponent)

    def hold(self) -> HeldValues:
        """All of them, computed once."""
        everything = np.arange(self.n_samples)
        return HeldValues(self.between(everything, everything))


class KernelTable:
    """Kernel values on a device for those who ask here.

    Samples and their operator share it: if they held each other, the memory of the device would
    stay taken until Python's collector of cycles comes by.

    Parameters
    ----------
    values : KernelValues
        The kernel values.
    diagonal : ndarray of shape (n_samples,)
        ``K(x_i, x_i)``.
    """

    def __init__(self, values: KernelValues, diagonal: FloatArray) -> None:
        self.values = values
        self.diagonal = diagonal
        self.n_samples = values.n_samples

    def rows(self, index: IntArray) -> FloatArray:
        """Kernel values of some samples with all, here."""
        return self.values.place.fetch(self.values.between(index, np.arange(self.n_samples)))

    def scores(self, coef: FloatArray) -> FloatArray:
        """Products with the kernel matrix, here."""
        return self.values.product(coef)


def round_to(values: Array, unit: float, xp: Any) -> Array:
    """The nearest multiples of a power of 2."""
    return xp.round(values / unit) * unit


def slices_of_rows(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Rows of a bounded number of entries: a power of two of them at a time."""
    most = max(_BLOCK_ENTRIES // max(n_columns, 1), 1)
    step = 2 ** (most.bit_length() - 1)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
