"""Products with kernel values of which rounding takes nothing but the last digit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.samples.device.place import Array
from owasvm.samples.device.values import LEAST_NORM, KernelValues, round_to

FloatArray = NDArray[np.float64]

__all__ = ["multiply_without_loss"]

# Slices of the numbers.
_N_SLICES = 4
# The largest entry of a vector counts as at least this.
_LEAST_SIZE = 1e-290


def multiply_without_loss(
    values: KernelValues, norms: FloatArray, vector: FloatArray
) -> FloatArray:
    """``K vector`` as :func:`owasvm.rounding.product_without_loss` has it, on the device.

    Matrix and vector are cut into slices of so few bits that products of slices, and sums of n of
    them, are whole multiples of a unit below 2^53 of it: exact, in whatever order a device adds
    them. What is left beyond the fourth slice is below the rounding of the result.
    """
    place, xp = values.place, values.place.xp
    n_bits = (53 - int(np.ceil(np.log2(values.n_samples)))) // 2
    # Scaled by powers of 2, so that no entry of the matrix of a definite kernel exceeds 1.
    scales = np.exp2(np.ceil(np.log2(np.maximum(norms, LEAST_NORM))))
    scaled = vector * scales
    size = float(np.exp2(np.ceil(np.log2(max(float(np.abs(scaled).max()), _LEAST_SIZE)))))
    columns = xp.stack(_cut(place.send(scaled / size), n_bits, xp), axis=1)
    inverse = place.send(1.0 / scales)
    results = []
    start = 0
    for block in values.blocks():
        stop = start + int(block.shape[0])
        slices = _cut(block * inverse * inverse[start:stop, None], n_bits, xp)
        # Slice k of the matrix with slice j of the vector: the last product takes what is left.
        parts = [
            place.fetch(one @ columns[:, : _N_SLICES - k]) for k, one in enumerate(slices[:-1])
        ]
        rests = [
            place.fetch(one @ xp.sum(columns[:, _N_SLICES - k :], axis=1))
            for k, one in enumerate(slices)
        ]
        terms = [column for part in parts for column in part.T]
        results.append(_add_exactly([*terms, *rests]))
        start = stop
    return np.concatenate(results) * scales * size


def _cut(values: Array, n_bits: int, xp: Any) -> list[Array]:
    """Slices of `n_bits` bits each of numbers up to 1, and what is left of them."""
    slices = []
    for k in range(1, _N_SLICES + 1):
        unit = 2.0 ** (k * n_bits)
        slices.append(round_to(values, 1.0 / unit, xp))
        values = values - slices[-1]
    return [*slices, values]


def _add_exactly(terms: list[FloatArray]) -> FloatArray:
    """The sum of a few arrays, with the rounding errors of the sums added at the end."""
    total, lost = np.zeros_like(terms[0]), np.zeros_like(terms[0])
    for term in terms:
        moved = total + term
        rounded = moved - total
        lost += (total - (moved - rounded)) + (term - rounded)
        total = moved
    return total + lost
