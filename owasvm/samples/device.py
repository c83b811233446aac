r"""Kernel values on another device: Gram matrix, products and Newton systems there.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from owasvm.extras import require
from owasvm.kernels import KernelShifts
from owasvm.rounding import UNIT, accumulated
from owasvm.samples.kernel import GramSamples, KernelSamples
from owasvm.samples.kernel_operators import KernelOperator
from owasvm.samples.operators import (
    MAX_INTERCEPT_STEP,
    ActiveSet,
    Lifted,
    Operator,
    Vector,
    limit_intercept,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: An array of any library that array-api-compat knows.
Array = Any

__all__ = ["DeviceSamples", "Place", "move"]

# Kernel values that are computed or copied at a time: 1 GiB.
_BLOCK_ENTRIES = 2**27
# Share of the free memory that a Gram matrix may take; Newton systems need the rest.
_GRAM_SHARE = 0.7
# Entries of a matrix that are gathered at once: the indices of all of them take twice its memory.
_GATHER_AT_ONCE = 2**27
# Share of the free memory that a Newton system may take, with the copy that is factorised.
_SYSTEM_SHARE = 0.8
# A device's exponential is off by at most one unit in the last place (CUDA) or two.
_EXP_ROUNDINGS = 8
# Distances come from products of centred samples if they are off by less than this, or by less
# than sums over all samples are: differences take a pass over all pairs for every feature.
_GOOD_PRODUCTS = 1e-13
# Up to so many active samples a factorisation costs no more than a few dozen products. On an H200:
# 4,000 of 50,000: 7 against 13 ms; 8,000: 19 against 20; 15,000: 61 against 28; 30,000: 312
# against 74.
_FACTORISE_UP_TO = 8192
# Products with the whole Gram matrix cost less than a copy of a larger part of it.
_WORTH_A_COPY = 0.8
# Samples behind the preconditioner.
_N_LANDMARKS = 1024
# Products before an iteration counts as failed, and between two looks at its residual.
_MAX_PRODUCTS = 200
_LOOK_EVERY = 4
# Slices of the numbers of a product without loss, which pays for larger matrices.
_N_SLICES = 4
_SLICED_FROM = 1024
_LEAST_NORM = 1e-140
# Rows of tied blocks that are centred at a time.
_CENTRED_ROWS = 512
_CORNER_LIFT = 1e-11
# A matrix that cannot be factorised is lifted by this share of its trace, then ten times as much.
_FIRST_LIFT = 1e-15
_LEAST_LIFT = 1e-290
_MAX_LIFTS = 16


class Place:
    """Where arrays live: their namespace and their device.

    Parameters
    ----------
    like : array
        Any array that lives there.
    """

    def __init__(self, like: Array) -> None:
        compat = require("array_api_compat", "Arrays on a device", "gpu")
        self.xp = compat.array_namespace(like)
        self.device = compat.device(like)
        self._compat = compat

    def send(self, values: NDArray[Any]) -> Array:
        """An array of numpy, moved there."""
        return self.xp.asarray(np.ascontiguousarray(values), device=self.device)

    def fetch(self, values: Array) -> FloatArray:
        """The other way round."""
        here = self._compat.to_device(values, "cpu") if self._is_elsewhere(values) else values
        return np.asarray(here, dtype=np.float64)

    def _is_elsewhere(self, values: Array) -> bool:
        compat = self._compat
        return bool(compat.is_torch_array(values) or compat.is_cupy_array(values))

    def empty(self, *shape: int) -> Array:
        """Room for numbers in double precision."""
        return self.xp.empty(shape, dtype=self.xp.float64, device=self.device)

    @property
    def free_memory(self) -> float:
        """Bytes that are left on the device, infinity where nobody says."""
        if getattr(self.device, "type", "") == "cuda":
            # What torch holds in reserve is as good as free.
            cuda = require("torch", "device='cuda'", "gpu").cuda
            reserve = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
            return float(cuda.mem_get_info(self.device)[0] + reserve)
        if type(self.device).__module__.startswith("cupy"):
            return float(self.device.mem_info[0])
        return np.inf


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
        for part in _slices(rows.size, self.n_samples):
            some = take(self._gram, place.send(rows[part]), axis=0)
            gathered[part, :] = take(some, chosen, axis=1)
        return gathered

    def blocks(self) -> Iterator[Array]:
        for part in _slices(self.n_samples, self.n_samples):
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
        largest = max(float(xp.max(xp.abs(scaled))), _LEAST_NORM)
        unit = float(np.exp2(np.ceil(np.log2(largest)) - n_bits))
        leading = _round_to(scaled, unit, xp)
        rest = scaled - leading
        # An exact sum again, and a small one.
        squares = xp.sum(leading * leading, axis=1) + xp.sum((leading + scaled) * rest, axis=1)
        halves = 0.5 * squares[:, None]
        leading_halves = _round_to(halves, unit * unit, xp)
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
        for part in _slices(self.n_samples, support.size):
            index = place.send(np.arange(part.start, part.stop))
            result[part] = self._compute(index, chosen) @ coef
        return place.fetch(result)

    def between(self, rows: IntArray, columns: IntArray) -> Array:
        place = self.place
        chosen = place.send(columns)
        values = place.empty(rows.size, columns.size)
        for part in _slices(rows.size, columns.size):
            values[part, :] = self._compute(place.send(rows[part]), chosen)
        return values

    def blocks(self) -> Iterator[Array]:
        everything = np.arange(self.n_samples)
        for part in _slices(self.n_samples, self.n_samples):
            yield self.between(everything[part], everything)

    def products_among(self, index: IntArray, *, form: bool) -> Callable[[Array], Array]:
        if form:
            return self.between(index, index).__matmul__
        place = self.place
        chosen = place.send(index)

        def multiply(vector: Array) -> Array:
            result = place.empty(index.size)
            for part in _slices(index.size, index.size):
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


def _round_to(values: Array, unit: float, xp: Any) -> Array:
    """The nearest multiples of a power of 2."""
    return xp.round(values / unit) * unit


def _slices(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Rows of a bounded number of entries: a power of two of them at a time."""
    most = max(_BLOCK_ENTRIES // max(n_columns, 1), 1)
    step = 2 ** (most.bit_length() - 1)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


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
        self._diagonal = diagonal

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
        return self._diagonal

    def rows(self, index: IntArray) -> FloatArray:
        values = self.values.between(index, np.arange(self.n_samples))
        return self.values.place.fetch(values)

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.values.product(coef)

    def _multiply(self, coef: FloatArray, careful: bool) -> FloatArray:
        if not careful:
            return self.values.product(coef)
        if self.n_samples < _SLICED_FROM:
            return super()._multiply(coef, careful)
        return _multiply_without_loss(self.values, self.norms, coef)

    def _make_operator(self, *, centred: bool) -> Operator:
        return DeviceOperator(self, centred=centred)


def _multiply_without_loss(
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
    scales = np.exp2(np.ceil(np.log2(np.maximum(norms, _LEAST_NORM))))
    scaled = vector * scales
    size = float(np.exp2(np.ceil(np.log2(max(float(np.abs(scaled).max()), _LEAST_LIFT)))))
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
        slices.append(_round_to(values, 1.0 / unit, xp))
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


class _Ties:
    """The matrix R of an active set, for vectors on the device."""

    def __init__(self, active: ActiveSet, place: Place) -> None:
        self._xp = place.xp
        self._first = first = int(active.offsets[1])
        sizes = np.diff(active.offsets[1:])
        label = np.repeat(np.arange(sizes.size), sizes)
        tie = active.tie[first:]
        squares = np.bincount(label, weights=tie * tie, minlength=sizes.size)
        self._any = sizes.size > 0
        self._tie, self._label = place.send(tie), place.send(label)
        self._last = place.send(np.cumsum(sizes) - 1)
        self._factor = place.send(active.shrink[1 : sizes.size + 1] / squares)

    def apply(self, vector: Array) -> Array:
        """``R vector``, or R times a matrix.

        Sums over blocks are differences of cumulated sums: good to the last digits of the largest
        entries, which is enough for an iteration.
        """
        if not self._any:
            return vector
        xp = self._xp
        head, tied = vector[: self._first, ...], vector[self._first :, ...]
        shape = (-1, *(1,) * (vector.ndim - 1))
        tie, factor = xp.reshape(self._tie, shape), xp.reshape(self._factor, shape)
        sums = xp.take(xp.cumulative_sum(tie * tied, axis=0), self._last, axis=0)
        along = factor * xp.concat((sums[:1, ...], sums[1:, ...] - sums[:-1, ...]))
        return xp.concat((head, tied - tie * xp.take(along, self._label, axis=0)))


@dataclass(frozen=True, eq=False)
class _System:
    """``(B B' + ridge I) z = -(B r + e db)`` of the active samples, its parts on the device.

    ``multiply`` is the matrix times a vector.
    """

    multiply: Callable[[Array], Array]
    linear: Array
    ones: Array


class _DeviceFactor:
    """A Cholesky factor on the device."""

    def __init__(self, factor: Array, place: Place) -> None:
        self._factor = factor
        self._place = place

    def solve_half(self, columns: FloatArray) -> FloatArray:
        place = self._place
        return place.fetch(_solve_lower(self._factor, place.send(columns), place))

    def solve_rest(self, vector: FloatArray) -> FloatArray:
        place = self._place
        side = place.send(vector)[:, None]
        return place.fetch(_solve_lower(self._factor, side, place, transposed=True))[:, 0]


class DeviceOperator(KernelOperator):
    """Vectors held by their coefficients; products and Newton systems on a device."""

    def __init__(self, samples: DeviceSamples, *, centred: bool = True) -> None:
        super().__init__(samples, centred=centred)
        self._values = samples.values
        self.place = self._place = samples.values.place

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        samples = active.samples
        rows_residual = active.apply(residual.scores[samples] * active.root)
        z, intercept = self._solve(rows_residual, active)
        change = np.zeros(self.n_samples)
        change[samples] = active.apply(z) * active.root
        step = self.vector(change)
        return Vector(residual.coef + change, residual.scores + step.scores), intercept

    def _solve(self, rows_residual: FloatArray, active: ActiveSet) -> tuple[FloatArray, float]:
        place, samples = self._place, active.samples
        room = 8.0 * samples.size**2 / _SYSTEM_SHARE
        can_form = room <= place.free_memory
        # A factor stands beside its matrix.
        can_factorise = 2.0 * room <= place.free_memory
        linear, ones = place.send(rows_residual), place.send(active.ones)
        is_small = samples.size <= _FACTORISE_UP_TO
        if can_factorise and (is_small or active.memory.factorises or not active.free):
            return self._factorise(linear, ones, active)
        multiply = self._values.products_among(samples, form=can_form)
        system = _System(self._make_product(multiply, active), linear, ones)
        # Tied blocks of one class each: nothing resists the intercept.
        is_held = active.free and bool(active.ones @ active.ones > 1e-16 * samples.size)
        if is_held:
            z, intercept, converged = self._iterate(system, active, bound=True)
            accepted = converged or not can_factorise
            if accepted and abs(intercept) <= MAX_INTERCEPT_STEP:
                return place.fetch(z), intercept
            active.memory.factorises = can_factorise and not converged
        else:
            intercept = active.imbalance if active.free else 0.0
        if can_factorise:
            # The matrix of the iteration leaves before another one comes.
            del multiply, system
            return self._factorise(linear, ones, active)
        intercept = float(np.sign(intercept)) * MAX_INTERCEPT_STEP
        z, _, _ = self._iterate(replace(system, linear=linear + intercept * ones), active)
        return place.fetch(z), intercept

    def can_lift(self) -> bool:
        # A factor stands beside its matrix, and the one before it may still be in use.
        return 24.0 * self.n_samples**2 / _SYSTEM_SHARE <= self._place.free_memory

    def lift(self, diagonal: FloatArray) -> Lifted:
        place, everything = self._place, np.arange(self.n_samples)
        matrix = self._values.between(everything, everything)
        means = place.send(self.means)
        for part in _slices(self.n_samples, self.n_samples):
            matrix[part, :] = matrix[part, :] - means - means[part, None]
        _lift_diagonal(matrix, place.send(diagonal), place)
        return _DeviceFactor(_factorise(matrix, place), place)

    def _make_product(
        self, multiply: Callable[[Array], Array], active: ActiveSet
    ) -> Callable[[Array], Array]:
        """Products with ``B B' + ridge I`` from those with the kernel values."""
        place, xp = self._place, self._place.xp
        ties = _Ties(active, place)
        means, root = place.send(self.means[active.samples]), place.send(active.root)
        ridge = float(active.ridge)

        def product(vector: Array) -> Array:
            scaled = root * ties.apply(vector)
            scores = multiply(scaled) - means @ scaled - xp.sum(scaled) * means
            return ties.apply(root * scores) + ridge * vector

        return product

    def _complete(self, matrix: Array, active: ActiveSet) -> Array:
        """``B B' + ridge I`` from the kernel values, which it overwrites."""
        place, samples = self._place, active.samples
        means, root = place.send(self.means[samples]), place.send(active.root)
        # In blocks, for a term of the size of the matrix may not fit beside it.
        for part in _slices(samples.size, samples.size):
            values = matrix[part, :] - means
            values -= means[part, None]
            values *= root
            values *= root[part, None]
            matrix[part, :] = values
        for rows, ties, shrink in _tied_parts(active, place):
            values = matrix[rows, :]
            matrix[rows, :] = values - ties @ (shrink[:, None] * (ties.T @ values))
            values = matrix[:, rows]
            matrix[:, rows] = values - ((values @ ties) * shrink) @ ties.T
        _lift_diagonal(matrix, float(active.ridge), place)
        return matrix

    @cached_property
    def _features(self) -> Array:
        """Features whose inner products are near the kernel: Nystroem's, of random samples."""
        place, xp = self._place, self._place.xp
        n_landmarks = min(_N_LANDMARKS, self.n_samples)
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.choice(self.n_samples, n_landmarks, replace=False))
        columns = self._values.between(np.arange(self.n_samples), chosen)
        means = place.send(self.means)
        columns -= means[:, None]
        columns -= place.send(self.means[chosen])
        corner = xp.take(columns, place.send(chosen), axis=0)
        # What rounding leaves of eigenvalues that are 0.
        _lift_diagonal(corner, _CORNER_LIFT * float(self._samples.diagonal.max()), place)
        factor = _factorise(corner, place)
        return _solve_lower(factor, columns.T, place).T

    def _precondition(self, active: ActiveSet) -> Callable[[Array], Array]:
        r"""A product with :math:`(U U^T + \rho I)^{-1}`, near the inverse of the system's matrix.

        U are the features of the active samples; :math:`\rho` is the ridge and the mean of the
        diagonal that they leave.
        """
        place, xp = self._place, self._place.xp
        size = active.samples.size
        features = xp.take(self._features, place.send(active.samples), axis=0)
        features = features * place.send(active.root)[:, None]
        diagonal = (self._diagonal_of(active.samples) * active.root**2).sum()
        left = (diagonal - float(xp.sum(features * features))) / size
        shift = float(active.ridge + max(left, 0.0))
        features = _Ties(active, place).apply(features)
        inner = features.T @ features
        _lift_diagonal(inner, shift, place)
        reduced = _solve_lower(_factorise(inner, place), features.T, place)
        back = reduced.T

        def precondition(vector: Array) -> Array:
            return (vector - back @ (reduced @ vector)) / shift

        return precondition

    def _diagonal_of(self, samples: IntArray) -> FloatArray:
        return self._samples.diagonal[samples] - 2.0 * self.means[samples]

    def _iterate(
        self, system: _System, active: ActiveSet, *, bound: bool = False
    ) -> tuple[Array, float, bool]:
        """The step by preconditioned conjugate gradients.

        Minimises ``1/2 z'Mz + linear'z``, subject to ``ones'z = -imbalance`` if `bound`. Returns
        z, the step of the intercept and whether the residual is small enough.
        """
        precondition = self._precondition(active)
        linear, ones = system.linear, system.ones
        squared_length = float(ones @ ones) if bound else 1.0
        raised = precondition(ones)
        resisting = ones @ raised if bound else 1.0

        def split(vector: Array) -> tuple[Array, Array]:
            """A residual without what a step of the intercept takes away, and that step."""
            along = (ones @ vector) / squared_length
            return (vector - along * ones, along) if bound else (vector, 0.0 * along)

        def lower(vector: Array) -> Array:
            """The preconditioned residual, along the constraint."""
            found = precondition(vector)
            return found - ((ones @ found) / resisting) * raised if bound else found

        z = float(-active.imbalance / squared_length) * ones if bound else 0.0 * ones
        residual, intercept = split(-linear - system.multiply(z))
        known, _ = split(linear)
        size = float(residual @ residual)
        goal = active.accuracy**2 * min(float(known @ known), size)
        direction = lower(residual)
        squared = residual @ direction
        for n_products in range(1, _MAX_PRODUCTS + 1):
            if size <= goal or not np.isfinite(size):
                break
            product = system.multiply(direction)
            distance = _divide(squared, direction @ product, self._place)
            z = z + distance * direction
            residual, along = split(residual - distance * product)
            intercept = intercept + along
            descent = lower(residual)
            previous, squared = squared, residual @ descent
            direction = descent + _divide(squared, previous, self._place) * direction
            if n_products % _LOOK_EVERY == 0:
                size = float(residual @ residual)
        return z, float(intercept), size <= goal

    def _factorise(
        self, linear: Array, ones: Array, active: ActiveSet
    ) -> tuple[FloatArray, float]:
        """The step by a Cholesky factorisation."""
        place, samples = self._place, active.samples
        factor = _factorise(self._complete(self._values.between(samples, samples), active), place)
        sides = place.xp.stack((linear, ones), axis=1)
        solved = place.fetch(_solve_with(factor, sides, place))
        if not active.free:
            return -solved[:, 0], 0.0
        demand = active.imbalance - float(active.ones @ solved[:, 0])
        intercept = limit_intercept(demand, float(active.ones @ solved[:, 1]))
        return -solved[:, 0] - intercept * solved[:, 1], intercept


def _tied_parts(active: ActiveSet, place: Place) -> Iterator[tuple[slice, Array, Array]]:
    """Tied blocks, a few at a time: their rows, their directions as columns, their `shrink`.

    R takes ``ties @ (shrink * (ties' v))`` away from the rows of a part.
    """
    xp, offsets = place.xp, active.offsets
    n_blocks = offsets.size - 2
    sizes = np.diff(offsets)
    label = np.repeat(np.arange(sizes.size), sizes)
    squares = np.bincount(label, weights=active.tie**2, minlength=sizes.size)
    labels = place.send(label)[:, None]
    directions = place.send(active.tie / np.sqrt(squares[label]))[:, None]
    shrink = place.send(active.shrink)
    first = 1
    while first <= n_blocks:
        last = first
        while last < n_blocks and offsets[last + 2] - offsets[first] <= _CENTRED_ROWS:
            last += 1
        rows = slice(int(offsets[first]), int(offsets[last + 1]))
        block = xp.arange(first, last + 1, device=place.device)
        ties = xp.where(labels[rows, :] == block, directions[rows, :], 0.0 * directions[:1, :])
        yield rows, ties, shrink[first : last + 1]
        first = last + 1


def _divide(one: Array, other: Array, place: Place) -> Array:
    """``one / other``; 0 where nothing is left to divide by, for nobody looks at every step."""
    return place.xp.where(other > 0.0, one / other, 0.0 * one)


def _lift_diagonal(matrix: Array, lift: float | Array, place: Place) -> None:
    """Change in place: add a number, or one for every row, to the diagonal."""
    xp, size = place.xp, int(matrix.shape[0])
    lifts = place.send(np.full((size, 1), lift)) if isinstance(lift, float) else lift[:, None]
    eye = xp.eye(min(_CENTRED_ROWS, size), dtype=xp.float64, device=place.device)
    for start in range(0, size, _CENTRED_ROWS):
        part = slice(start, min(start + _CENTRED_ROWS, size))
        n_rows = part.stop - start
        matrix[part, part] = matrix[part, part] + eye[:n_rows, :n_rows] * lifts[part, :]


def _factorise(matrix: Array, place: Place) -> Array:
    """Lower Cholesky factor of a matrix that is positive definite up to rounding."""
    xp = place.xp
    lift = max(_FIRST_LIFT * float(xp.linalg.trace(matrix)), _LEAST_LIFT)
    for _ in range(_MAX_LIFTS):
        try:
            factor = xp.linalg.cholesky(matrix)
            if bool(xp.isfinite(factor[-1, -1])):
                return factor
        except (np.linalg.LinAlgError, RuntimeError):
            # torch's error is a RuntimeError.
            pass
        _lift_diagonal(matrix, lift, place)
        lift *= 10.0
    return xp.full_like(matrix, xp.nan)


def _solve_lower(factor: Array, sides: Array, place: Place, *, transposed: bool = False) -> Array:
    """Solve with a lower triangular matrix, or with its transpose.

    The array API has no triangular systems; torch has.
    """
    linalg = place.xp.linalg
    matrix = factor.T if transposed else factor
    if hasattr(linalg, "solve_triangular"):
        return linalg.solve_triangular(matrix, sides, upper=transposed)
    return linalg.solve(matrix, sides)


def _solve_with(factor: Array, sides: Array, place: Place) -> Array:
    """Solve with the matrix of a lower Cholesky factor."""
    return _solve_lower(factor, _solve_lower(factor, sides, place), place, transposed=True)
