r"""Samples whose kernel values are computed when they are needed, and forgotten.

A Newton step needs two products with columns of the kernel matrix, those of the coefficients that
change and those of the active samples, and the values among the active samples: the working set.
Nothing of size n x n is held, unless it fits into the working block. Wide kernels have a factor of
few columns, which makes linear models of them.

The coefficients that a step asks for differ little from those that the last step foresaw. Products
are taken with that difference, and its smallest entries wait.

Products on the way are in single precision where the kernel allows for it, with sums in double
precision. How far that leaves the scores of the current w is measured at a few samples; before it
matters beside the residual, the scores are computed anew. Certificates use double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from owasvm._jit import njit
from owasvm.kernels import Kernel, KernelBlocks
from owasvm.rounding import product_without_loss
from owasvm.samples._newton_kernels import centre, centre_columns, centre_rows
from owasvm.samples.base import Samples
from owasvm.samples.feature_operator import FeatureOperator
from owasvm.samples.kernel import GramSamples, KernelSamples
from owasvm.samples.kernel_operators import LiftedFactor
from owasvm.samples.low_rank import factorise_columns
from owasvm.samples.operators import (
    MAX_INTERCEPT_STEP,
    ActiveSet,
    Lifted,
    Operator,
    PlainOperator,
    Vector,
    limit_intercept,
    solve_dual,
)
from owasvm.samples.rows import make_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["OnDemandSamples", "gram_size", "make_on_demand"]

# The working block: numbers that may be held whatever the cache, 32 MB.
_WORKING_ENTRIES = 2**22
# Share of cache or working block, whichever is larger, that a factor of the kernel matrix may take
# and of the number of samples that its columns may reach: more of them save nothing.
_FACTOR_SHARE = 0.5
_RANK_DIVISOR = 3
# What the Newton steps of a Gram matrix in memory hold, in units of it: the matrix, rows near it
# and a system.
_MATRICES_OF_A_STEP = 3
# Samples whose mean is taken for the origin of feature space.
_ORIGIN_SAMPLES = 1000
# Samples at which the error of single precision is measured, and the share of the residual that it
# may reach.
_PROBES = 16
_TOLERATED_DRIFT = 0.01
# Share of the changes of all coefficients that may wait: most of them are tiny, where thousands of
# ranked samples move by a few ranks, and each costs a column of kernel values.
_LEFT_TO_LATER = 0.03
# And of what is left of coefficients that are to vanish, all of one sign: with 0.03 of all changes
# a gap of 2e-5 rose to 1.1, which took ten steps and half of the time.
_ARRIVED = 1e-5
# Landmarks of the preconditioner; it may take this share of the cache.
_MAX_LANDMARKS = 500
_PRECONDITIONER_SHARE = 0.5
# Conjugate gradients end at this relative residual, or after so many products: the direction need
# not be better, and products in single precision are not.
_ITERATED_ACCURACY = 1e-4
_MAX_PRODUCTS = 60
# Active samples are balanced among themselves where their signs leave less than this of each.
_NO_ONES = 1e-16
_MEGABYTE = 1e6


@dataclass
class _Drifting(Vector):
    """A vector whose scores may be off by about ``drift``.

    ``guess`` is a vector near the next target: the next residual takes columns only where the
    target differs from it. Along a direction it moves by ``turn``, as Newton's method foresees.
    """

    drift: float = 0.0
    guess: _Drifting | None = None
    turn: _Drifting | None = None

    def move(self, step: float, direction: Vector) -> None:
        super().move(step, direction)
        if not isinstance(direction, _Drifting):
            return
        self.guess = direction.guess
        if self.guess is None:
            self.drift += abs(step) * direction.drift
            return
        # A part of the way to the guess and its turn leaves a part of what was wrong here.
        self.drift = abs(1.0 - step) * self.drift + abs(step) * direction.drift
        if direction.turn is not None:
            self.guess.coef += step * direction.turn.coef
            self.guess.scores += step * direction.turn.scores
            self.guess.drift += abs(step) * direction.turn.drift

    def copy(self) -> Vector:
        return _Drifting(self.coef.copy(), self.scores.copy(), drift=self.drift)


class OnDemandSamples(KernelSamples):
    """Samples of a positive semi-definite kernel, its values computed in blocks.

    Parameters
    ----------
    blocks : KernelBlocks
        Where kernel values come from.
    cache_size : float
        Megabytes that kernel values may take, beside a working block of 32 MB.
    """

    def __init__(self, blocks: KernelBlocks, cache_size: float) -> None:
        super().__init__(
            blocks.n_samples, rounding=blocks.rounding, definite=True, shifts=blocks.shifts
        )
        self._kernel_values = blocks
        self._cache_size = cache_size

    @property
    def diagonal(self) -> FloatArray:
        return self._kernel_values.diagonal

    @property
    def n_multiplications(self) -> float:
        # Products come in thousands of small blocks, each not worth a second thread; they take
        # far more time than systems of the size of the working set.
        return float(self.n_samples)

    @property
    def n_in_cache(self) -> int:
        """Samples whose kernel values fit into cache or working block with a Newton system."""
        return max(int(np.sqrt(self._room / _MATRICES_OF_A_STEP)), 1)

    @property
    def _room(self) -> float:
        """Numbers that may be held."""
        return max(self._cache_size * _MEGABYTE / 8.0, float(_WORKING_ENTRIES))

    def rows(self, index: IntArray) -> FloatArray:
        return self._kernel_values.between(index, np.arange(self.n_samples))

    def _multiply(self, coef: FloatArray, careful: bool) -> FloatArray:
        if not careful:
            return self._kernel_values.multiply(coef)
        columns = np.flatnonzero(coef)
        n_blocks = max(self.n_samples * columns.size // _WORKING_ENTRIES, 1)
        parts = np.array_split(np.arange(self.n_samples), min(n_blocks, self.n_samples))
        values = (self._kernel_values.between(part, columns) for part in parts)
        return np.concatenate([product_without_loss(part, coef[columns]) for part in values])

    def _make_operator(self, *, centred: bool) -> Operator:
        blocks, n_samples = self._kernel_values, self.n_samples
        most = min(int(_FACTOR_SHARE * self._room / n_samples), n_samples // _RANK_DIVISOR)
        everyone = np.arange(n_samples)

        def column(sample: int) -> FloatArray:
            return blocks.between(everyone, np.array([sample]))[:, 0]

        rows = factorise_columns(column, blocks.diagonal, most)
        if rows is not None and rows.shape[1] > 0:
            means = rows.mean(axis=0) if centred else None
            return FeatureOperator(make_rows(rows, means), means)
        return _OnDemandOperator(blocks, self._room, centred=centred)

    def gram_matrix(self) -> FloatArray:
        self.refuse_gram("This")

    def refuse_gram(self, who: str) -> NoReturn:
        """Say that `who` needs more than the cache, and what helps."""
        needed = gram_size(self.n_samples)
        raise ValueError(
            f"{who} needs all kernel values of {self.n_samples} samples at once, {needed:.0f} MB, "
            f"and cache_size is {self._cache_size:g} MB. Raise cache_size to "
            f"{np.ceil(needed):.0f} if there is as much memory, or take fewer samples; weights "
            "that never fall (owasvm.weights.is_convex tells) do without, and solver='dca' finds "
            "local solutions for others."
        )

    def gram_among(self, index: IntArray) -> FloatArray:
        return self._kernel_values.between(index, index)

    def take(self, index: IntArray) -> Samples:
        if gram_size(index.size) > self._cache_size:
            return OnDemandSamples(self._kernel_values.take(index), self._cache_size)
        return GramSamples(
            self._kernel_values.between(index, index),
            rounding=self.rounding[index],
            definite=True,
            shifts=None if self._shifts is None else self._shifts.take(index),
        )

    def nearest_definite(self) -> Samples:
        return self


def make_on_demand(X: Any, kernel: Kernel, cache_size: float) -> Samples | None:
    """Samples on demand; None for kernels that need all values at once."""
    blocks = kernel.blocks(X)
    return None if blocks is None else OnDemandSamples(blocks, cache_size)


def gram_size(n_samples: int) -> float:
    """Megabytes of a Gram matrix in double precision."""
    return 8.0 * n_samples**2 / _MEGABYTE


class _OnDemandOperator(PlainOperator):
    """Vectors held by their coefficients, products through blocks of kernel values."""

    def __init__(self, blocks: KernelBlocks, room: float, *, centred: bool) -> None:
        self._blocks = blocks
        self._room = room
        self._largest_block = int(np.sqrt(room))
        self.n_samples = n_samples = blocks.n_samples
        self._probes = np.unique(np.linspace(0, n_samples - 1, _PROBES).astype(np.int64))
        # K_ij - m_i - m_j with these m is the kernel of the samples minus the mean of some.
        self.means = np.zeros(n_samples)
        if centred:
            n_chosen = min(_ORIGIN_SAMPLES, n_samples)
            chosen = np.unique(np.linspace(0, n_samples - 1, n_chosen).astype(np.int64))
            shares = np.zeros(n_samples)
            shares[chosen] = 1.0 / chosen.size
            self.means = blocks.multiply(shares)
            self.means -= 0.5 * float(shares @ self.means)

    def mean_diagonal(self) -> float:
        return max(float(np.mean(self._blocks.diagonal - 2.0 * self.means)), 0.0)

    def intercept_shift(self, coef: FloatArray) -> float:
        return float(self.means @ coef)

    def _score(self, coef: FloatArray, *, single: bool) -> FloatArray:
        scores = self._blocks.multiply(coef, single=single)
        return scores - float(self.means @ coef) - coef.sum() * self.means

    def vector(self, coef: FloatArray) -> Vector:
        return _Drifting(coef, self._score(coef, single=False))

    def _roughly(self, coef: FloatArray) -> tuple[FloatArray, float]:
        """Scores of coefficients, and about how far off single precision left them."""
        scores = self._score(coef, single=True)
        probes = self._probes
        exact = self._blocks.multiply(coef, probes)
        exact = exact - float(self.means @ coef) - coef.sum() * self.means[probes]
        return scores, float(np.abs(exact - scores[probes]).max())

    def residual(self, target: FloatArray, current: Vector) -> tuple[Vector, float]:
        if not isinstance(current, _Drifting):
            current = _Drifting(current.coef, current.scores)
        reached = self._reach(target, current.guess or current, current)
        if current.guess is not None and not _is_good(reached, current):
            current.guess = None
            reached = self._reach(target, current, current)
        if not _is_good(current, reached):
            # Coefficients on their way to 0 have arrived where next to nothing is left of them:
            # steps that are not full never end that way, and each costs a column.
            leaving = target == 0.0
            allowed = _ARRIVED * float(np.abs(target - current.coef).sum())
            current.coef[leaving] = _without_smallest(current.coef[leaving], allowed)
            current.scores[:] = self._score(current.coef, single=False)
            current.drift = 0.0
            reached = self._reach(target, current, current)
        coef, scores = reached.coef - current.coef, reached.scores - current.scores
        residual = _Drifting(coef, scores, drift=reached.drift, guess=reached)
        return residual, max(float(coef @ scores), 0.0)

    def _reach(self, target: FloatArray, base: _Drifting, current: Vector) -> _Drifting:
        """A vector nearly at the target, from one that is near it."""
        allowed = _LEFT_TO_LATER * float(np.abs(target - current.coef).sum())
        coef = _without_smallest(target - base.coef, allowed)
        scores, drift = self._roughly(coef)
        return _Drifting(base.coef + coef, base.scores + scores, drift=base.drift + drift)

    def inner(self, one: Vector, other: Vector) -> float:
        return float(one.coef @ other.scores)

    def complete(self, vector: Vector) -> None:
        """Nothing to do: scores are never left empty here."""

    def can_lift(self) -> bool:
        return self.n_samples <= self._largest_block

    def lift(self, diagonal: FloatArray, *, single: bool = False) -> Lifted:
        # Nobody asks for it here.
        del single
        everyone = np.arange(self.n_samples)
        matrix = self.centred_block(everyone, everyone)
        matrix[np.diag_indices(self.n_samples)] += diagonal
        return LiftedFactor(matrix)

    def newton_step(self, residual: Vector, active: ActiveSet) -> tuple[Vector, float]:
        samples = active.samples
        rows_residual = active.apply(residual.scores[samples] * active.root)
        if samples.size <= self._largest_block:
            matrix = self._blocks.between(samples, samples)
            _reduce(
                matrix,
                self.means[samples],
                active.root,
                active.tie,
                active.offsets,
                active.shrink,
                active.ridge,
            )
            z, intercept = solve_dual(matrix, rows_residual, active)
        else:
            z, intercept = self._iterate(rows_residual, active)
        change = np.zeros(self.n_samples)
        change[samples] = active.apply(z) * active.root
        scores, drift = self._roughly(change)
        step = _Drifting(residual.coef + change, residual.scores + scores, drift=drift)
        if isinstance(residual, _Drifting):
            step.drift += residual.drift
            step.guess, step.turn = residual.guess, _Drifting(change, scores, drift=drift)
        return step, intercept

    def _iterate(self, rows_residual: FloatArray, active: ActiveSet) -> tuple[FloatArray, float]:
        """The step by conjugate gradients, for working sets that do not fit into the cache."""
        system = _WorkingSystem(self, active, self._choose_landmarks(active.samples))
        if not active.free:
            return -system.solve(rows_residual), 0.0
        if active.ones @ active.ones <= _NO_ONES * active.samples.size:
            return -system.solve(rows_residual), limit_intercept(active.imbalance, 0.0)
        z, intercept = system.solve_balanced(rows_residual)
        if abs(intercept) <= MAX_INTERCEPT_STEP:
            return z, intercept
        intercept = math.copysign(MAX_INTERCEPT_STEP, intercept)
        return -system.solve(rows_residual + intercept * active.ones), intercept

    def _choose_landmarks(self, samples: IntArray) -> IntArray:
        most = int(_PRECONDITIONER_SHARE * self._room / samples.size)
        number = max(min(most, _MAX_LANDMARKS, samples.size), 1)
        return samples[np.unique(np.linspace(0, samples.size - 1, number).astype(np.int64))]

    def centred_block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values of centred samples."""
        block = self._blocks.between(rows, columns)
        block -= self.means[rows][:, np.newaxis]
        block -= self.means[columns]
        return block

    def score_among(self, samples: IntArray, coef: FloatArray) -> FloatArray:
        """Scores at some samples of coefficients of the same samples."""
        everywhere = np.zeros(self.n_samples)
        everywhere[samples] = coef
        scores = self._blocks.multiply(everywhere, samples, single=True)
        means = self.means[samples]
        return scores - float(means @ coef) - coef.sum() * means

    def diagonal_of(self, samples: IntArray) -> FloatArray:
        """``K(x_i, x_i)`` of centred samples."""
        return self._blocks.diagonal[samples] - 2.0 * self.means[samples]


class _WorkingSystem:
    r"""``B B' + ridge I`` of a large working set, and a preconditioner for it.

    The preconditioner replaces the kernel by that of its projection on some landmarks, a Nystroem
    factor F, and adds what that leaves out of the diagonal: ``F F' + D`` is inverted through a
    system of the size of the landmarks.
    """

    def __init__(self, operator: _OnDemandOperator, active: ActiveSet, landmarks: IntArray):
        self._operator, self._active = operator, active
        samples = active.samples
        core = operator.centred_block(landmarks, landmarks)
        core[np.diag_indices(landmarks.size)] += 1e-8 * max(float(np.trace(core)), 1e-300)
        factor = np.linalg.cholesky(core)
        rows = operator.centred_block(samples, landmarks)
        rows = solve_triangular(factor, rows.T, lower=True, overwrite_b=True).T
        rest = operator.diagonal_of(samples) - np.einsum("ij,ij->i", rows, rows)
        self._diagonal = active.ridge + active.root**2 * np.maximum(rest, 0.0)
        rows = np.ascontiguousarray(rows * active.root[:, np.newaxis])
        if active.offsets.size > 2:
            centre_rows(rows, active.tie, active.offsets, active.shrink)
        self._rows = rows
        inner = rows.T @ (rows / self._diagonal[:, np.newaxis])
        inner[np.diag_indices(landmarks.size)] += 1.0
        self._inner = cho_factor(inner, overwrite_a=True)

    def _multiply(self, vector: FloatArray) -> FloatArray:
        active = self._active
        coef = active.apply(vector.copy()) * active.root
        scores = self._operator.score_among(active.samples, coef)
        return active.apply(scores * active.root) + active.ridge * vector

    def _precondition(self, vector: FloatArray) -> FloatArray:
        scaled = vector / self._diagonal
        return scaled - self._rows @ cho_solve(self._inner, self._rows.T @ scaled) / self._diagonal

    def solve(self, target: FloatArray) -> FloatArray:
        """The solution for a right-hand side."""
        goal = _ITERATED_ACCURACY * float(np.linalg.norm(target))
        return self._descend(self._precondition(target), -target, goal, None)[0]

    def solve_balanced(self, linear: FloatArray) -> tuple[FloatArray, float]:
        """z and e with ``M z + linear + e ones = 0`` and ``ones'z = -imbalance``.

        Every iterate is balanced, so that there is one system to solve and not one for e, too.
        """
        ones, imbalance = self._active.ones, self._active.imbalance
        # What the preconditioner makes of the ones, with one of it along them.
        across = self._precondition(ones)
        across /= float(ones @ across)
        z = -self._precondition(linear)
        z -= (imbalance + float(ones @ z)) * across
        goal = _ITERATED_ACCURACY * float(np.linalg.norm(self._off_ones(linear)))
        z, remainder = self._descend(z, linear, goal, across)
        return z, float(ones @ remainder) / float(ones @ ones)

    def _off_ones(self, vector: FloatArray) -> FloatArray:
        """What a vector has beside a multiple of the ones."""
        ones = self._active.ones
        return vector - ones * (float(ones @ vector) / float(ones @ ones))

    def _descend(
        self, z: FloatArray, linear: FloatArray, goal: float, across: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Preconditioned conjugate gradients for the minimum of ``z'Mz / 2 + linear'z``.

        Changes z in place; returns it and the negative gradient. With `across` steps are taken
        along vectors without a sum over the ones, and what the gradient has along them is left.
        """

        def turn(remainder: FloatArray) -> FloatArray:
            found = self._precondition(remainder)
            return found if across is None else found - float(self._active.ones @ found) * across

        remainder = -linear - self._multiply(z)
        image = turn(remainder)
        direction = image.copy()
        progress = float(remainder @ image)
        for _ in range(_MAX_PRODUCTS):
            left = remainder if across is None else self._off_ones(remainder)
            if float(np.linalg.norm(left)) <= goal:
                break
            product = self._multiply(direction)
            curvature = float(direction @ product)
            if not curvature > 0.0:
                # Rounding has eaten the ridge.
                break
            distance = progress / curvature
            z += distance * direction
            remainder -= distance * product
            image = turn(remainder)
            previous, progress = progress, float(remainder @ image)
            direction = image + (progress / previous) * direction
        return z, remainder


def _is_good(one: _Drifting, other: _Drifting) -> bool:
    """Whether the drift of one vector does not matter beside its distance to the other."""
    distance = np.linalg.norm(one.scores - other.scores) / np.sqrt(one.scores.size)
    return one.drift <= _TOLERATED_DRIFT * float(distance)


def _without_smallest(coef: FloatArray, allowed: float) -> FloatArray:
    """Coefficients without the smallest ones of this total: those are left to later steps."""
    sizes = np.abs(coef)
    ascending = np.argsort(sizes)
    totals = np.cumsum(sizes[ascending])
    n_left = int(np.searchsorted(totals, allowed, side="right"))
    coef[ascending[:n_left]] = 0.0
    return coef


@njit(cache=True)
def _reduce(
    matrix: FloatArray,
    means: FloatArray,
    root: FloatArray,
    tie: FloatArray,
    offsets: IntArray,
    shrink: FloatArray,
    ridge: float,
) -> None:
    """Changes `matrix` in place: kernel values among active samples to ``B B' + ridge I``."""
    size = root.size
    for i in range(size):
        for j in range(size):
            matrix[i, j] = root[i] * (matrix[i, j] - means[i] - means[j]) * root[j]
        if offsets.size > 2:
            centre(matrix[i], tie, offsets, shrink)
    if offsets.size > 2:
        centre_columns(matrix, tie, offsets, shrink, np.empty(size))
    for i in range(size):
        matrix[i, i] += ridge
