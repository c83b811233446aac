"""Newton steps on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from owasvm.samples.device.dense import (
    Ties,
    factorise,
    lift_diagonal,
    solve_lower,
    solve_with,
    tied_parts,
)
from owasvm.samples.device.place import Array, Place
from owasvm.samples.device.values import KernelTable, slices_of_rows
from owasvm.samples.kernel_operators import KernelOperator
from owasvm.samples.operators import (
    MAX_INTERCEPT_STEP,
    ActiveSet,
    Lifted,
    Vector,
    limit_intercept,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["DeviceOperator"]

# Share of the free memory that a Newton system may take, with the copy that is factorised.
_SYSTEM_SHARE = 0.8
# Up to so many active samples a factorisation costs no more than a few dozen products. On an H200:
# 4,000 of 50,000: 7 against 13 ms; 8,000: 19 against 20; 15,000: 61 against 28; 30,000: 312
# against 74.
_FACTORISE_UP_TO = 8192
# Up to twice as many where the last iteration took more products than this.
_MANY_PRODUCTS = 32
# Samples behind the preconditioner.
_N_LANDMARKS = 1024
# Systems are solved to this accuracy, or better, where products with their matrix are cheap. With
# 1e-4 steep weights stall (basic 0.15, 30,000 samples: over 600 Newton steps, and 155 with 1e-6).
_LOOSEST_SYSTEM = 1e-7
# Products before an iteration counts as failed, and between two looks at its residual.
_MAX_PRODUCTS = 200
_LOOK_EVERY = 4
_CORNER_LIFT = 1e-11


@dataclass(frozen=True, eq=False)
class _System:
    """``(B B' + ridge I) z = -(B r + e db)`` of the active samples, its parts on the device.

    ``multiply`` is the matrix times a vector, ``accuracy`` how well an iteration solves it.
    """

    multiply: Callable[[Array], Array]
    linear: Array
    ones: Array
    accuracy: float


class _DeviceFactor:
    """A Cholesky factor on the device."""

    def __init__(self, factor: Array, place: Place) -> None:
        self._factor = factor
        self._place = place

    def solve_half(self, columns: FloatArray) -> FloatArray:
        place = self._place
        return place.fetch(solve_lower(self._factor, place.send(columns), place))

    def solve_rest(self, vector: FloatArray) -> FloatArray:
        place = self._place
        side = place.send(vector)[:, None]
        return place.fetch(solve_lower(self._factor, side, place, transposed=True))[:, 0]

    def log_pivots(self) -> FloatArray:
        xp = self._place.xp
        return 2.0 * self._place.fetch(xp.log(xp.linalg.diagonal(self._factor)))

    def invert(self) -> Callable[[FloatArray], FloatArray]:
        return lambda vector: self.solve_rest(self.solve_half(vector[:, np.newaxis])[:, 0])


class DeviceOperator(KernelOperator):
    """Vectors held by their coefficients; products and Newton systems on a device."""

    def __init__(self, table: KernelTable, *, centred: bool = True) -> None:
        super().__init__(table, centred=centred)
        self._values = table.values
        self.place = self._place = table.values.place

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
        room, free = 8.0 * samples.size**2 / _SYSTEM_SHARE, place.free_memory
        can_form = room <= free
        # A factor stands beside its matrix.
        can_factorise = 2.0 * room <= free
        linear, ones = place.send(rows_residual), place.send(active.ones)
        is_hard = active.memory.n_products > _MANY_PRODUCTS
        is_small = samples.size <= (2 if is_hard else 1) * _FACTORISE_UP_TO
        if can_factorise and (is_small or active.memory.factorises or not active.free):
            return self._factorise(linear, ones, active)
        multiply = self._values.products_among(samples, form=can_form)
        accuracy = min(active.accuracy, _LOOSEST_SYSTEM) if can_form else active.accuracy
        system = _System(self._make_product(multiply, active), linear, ones, accuracy)
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

    def lift(self, diagonal: FloatArray, *, single: bool = False) -> Lifted:
        # Nobody asks for it here.
        del single
        place, everything = self._place, np.arange(self.n_samples)
        matrix = self._values.between(everything, everything)
        means = place.send(self.means)
        for part in slices_of_rows(self.n_samples, self.n_samples):
            matrix[part, :] = matrix[part, :] - means - means[part, None]
        lift_diagonal(matrix, place.send(diagonal), place)
        return _DeviceFactor(factorise(matrix, place), place)

    def _make_product(
        self, multiply: Callable[[Array], Array], active: ActiveSet
    ) -> Callable[[Array], Array]:
        """Products with ``B B' + ridge I`` from those with the kernel values."""
        place, xp = self._place, self._place.xp
        ties = Ties(active, place)
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
        for part in slices_of_rows(samples.size, samples.size):
            values = matrix[part, :] - means
            values -= means[part, None]
            values *= root
            values *= root[part, None]
            matrix[part, :] = values
        for rows, ties, shrink in tied_parts(active, place):
            values = matrix[rows, :]
            matrix[rows, :] = values - ties @ (shrink[:, None] * (ties.T @ values))
            values = matrix[:, rows]
            matrix[:, rows] = values - ((values @ ties) * shrink) @ ties.T
        lift_diagonal(matrix, float(active.ridge), place)
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
        lift_diagonal(corner, _CORNER_LIFT * float(self._samples.diagonal.max()), place)
        factor = factorise(corner, place)
        return solve_lower(factor, columns.T, place).T

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
        features = Ties(active, place).apply(features)
        inner = features.T @ features
        lift_diagonal(inner, shift, place)
        reduced = solve_lower(factorise(inner, place), features.T, place)
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
        goal = system.accuracy**2 * min(float(known @ known), size)
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
            active.memory.n_products = n_products
        return z, float(intercept), size <= goal

    def _factorise(
        self, linear: Array, ones: Array, active: ActiveSet
    ) -> tuple[FloatArray, float]:
        """The step by a Cholesky factorisation."""
        place, samples = self._place, active.samples
        factor = factorise(self._complete(self._values.between(samples, samples), active), place)
        sides = place.xp.stack((linear, ones), axis=1)
        solved = place.fetch(solve_with(factor, sides, place))
        if not active.free:
            return -solved[:, 0], 0.0
        demand = active.imbalance - float(active.ones @ solved[:, 0])
        intercept = limit_intercept(demand, float(active.ones @ solved[:, 1]))
        return -solved[:, 0] - intercept * solved[:, 1], intercept


def _divide(one: Array, other: Array, place: Place) -> Array:
    """``one / other``; 0 where nothing is left to divide by, for nobody looks at every step."""
    return place.xp.where(other > 0.0, one / other, 0.0 * one)
