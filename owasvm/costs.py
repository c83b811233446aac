"""Who pays what: costs handed to the samples by the rank of their deviations.

:class:`Costs` is what the rest of the package asks for; there is a class for each case: one cost
per rank, sample weights, one cost per sample. :func:`RankCosts` makes the first two from weights.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.weights import Quantifier, is_convex, owa_weights, share_function, weights_in_order

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Costs", "OwnCosts", "PlainCosts", "RankCosts", "WeightedCosts"]

# Fine enough to see where a share function bends, when sample weights are not whole numbers.
_CONVEXITY_GRID = 4096
_MAX_COPIES = 10**6
# Copies written out at most, and the largest denominator of a proportion.
_MAX_WRITTEN = 5000
_MAX_RATIO = 10_000


class Costs(Protocol):
    """``C * weights``, and who gets which of them.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    C : float
        Factor of the loss.
    convex : bool
        Whether the costs rise with the deviations.
    sample_weight : ndarray of shape (n_samples,) or None
        Sample weights; None when all of them are 1.
    total : float
        Sum of all costs.
    """

    @property
    def n_samples(self) -> int: ...
    @property
    def C(self) -> float: ...
    @property
    def convex(self) -> bool: ...
    @property
    def sample_weight(self) -> FloatArray | None: ...
    @property
    def total(self) -> float: ...

    def by_rank(self) -> FloatArray:
        """One cost per rank, ascending; an error where a cost depends on who is ranked above."""

    def in_order(self, order: IntArray) -> FloatArray:
        """Costs of the samples ``order[0], order[1], ...`` when they are sorted ascending."""

    def largest_first(self, order: IntArray) -> FloatArray:
        """Costs of the ``order.size`` largest deviations, ``order[0]`` the largest of all."""

    def largest_sum(self, number: int) -> float:
        """What `number` samples pay at most, or more."""

    def excess(self, dual: FloatArray) -> float:
        """Factor by which a non-negative point exceeds the sums that define the dual set."""

    def without_weights(self) -> tuple[Costs, IntArray]:
        """The same costs with sample weights written out as copies, and whose copy each is."""


class PlainCosts:
    """One cost per rank.

    Parameters
    ----------
    ascending : ndarray of shape (n_samples,)
        ``ascending[k]`` is the cost of the k-th smallest deviation.
    C : float or None, default=None
        Which part of the costs is the factor C; their mean by default.
    weights, alpha
        What the costs were made of, see :func:`RankCosts`; the costs themselves by default.
    """

    sample_weight: FloatArray | None = None

    def __init__(
        self,
        ascending: FloatArray,
        C: float | None = None,
        *,
        weights: str | Quantifier | ArrayLike | None = None,
        alpha: float | None = None,
    ) -> None:
        self.weights = ascending if weights is None else weights
        self.alpha = alpha
        self.convex = is_convex(ascending)
        # Rounding can leave falls of one unit in the last place.
        self.ascending = np.maximum.accumulate(ascending) if self.convex else ascending
        self.n_samples = ascending.size
        self.total = float(self.ascending.sum())
        self.C = self.total / self.n_samples if C is None else C

    def by_rank(self) -> FloatArray:
        return self.ascending

    def in_order(self, order: IntArray) -> FloatArray:
        return self.ascending

    def largest_first(self, order: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.ascending[::-1][: order.size])

    def largest_sum(self, number: int) -> float:
        dearest = self.ascending if self.convex else np.sort(self.ascending)
        return float(dearest[self.n_samples - number :].sum())

    def excess(self, dual: FloatArray) -> float:
        return prefix_excess(np.sort(dual)[::-1], self.ascending[::-1])

    def without_weights(self) -> tuple[Costs, IntArray]:
        return self, np.arange(self.n_samples)


class WeightedCosts:
    """Costs of samples that stand for ``sample_weight`` copies each.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,)
        Positive.
    weights : str or callable
        A named family or a quantifier.
    alpha : float or None
        Shape of a named family.
    C : float
        Factor of the loss.
    """

    sample_weight: FloatArray

    def __init__(
        self, sample_weight: ArrayLike, weights: str | Quantifier, alpha: float | None, C: float
    ) -> None:
        self.sample_weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
        self.n_samples = self.sample_weight.size
        self.weights = weights
        self.alpha = alpha
        self.C = C
        mass = float(self.sample_weight.sum())
        self._share = share_function(weights, alpha, total=mass)
        self.total = C * mass
        self.convex = is_convex(owa_weights(_n_slices(self.sample_weight), weights, alpha))

    def by_rank(self) -> FloatArray:
        raise ValueError(
            "With sample weights there is not one cost per rank: what a sample pays depends on "
            "how much weight is ranked above it."
        )

    def in_order(self, order: IntArray) -> FloatArray:
        return self.C * weights_in_order(self._share, self.sample_weight[order])

    def largest_first(self, order: IntArray) -> FloatArray:
        mass = self.sample_weight
        counted = mass[order]
        rest = mass.sum() - counted.sum()
        if rest > 1e-12 * mass.sum():
            costs = weights_in_order(self._share, np.append(counted, rest)[::-1])[::-1][:-1]
        else:
            costs = weights_in_order(self._share, counted[::-1])[::-1]
        return self.C * np.ascontiguousarray(costs)

    def largest_sum(self, number: int) -> float:
        return self.total if number else 0.0

    def excess(self, dual: FloatArray) -> float:
        if not self.convex:
            # Where the share function is not concave, sets between the prefixes are tighter still.
            return np.inf if np.any(dual > 0.0) else 0.0
        order = np.argsort(-dual / self.sample_weight, kind="stable")
        return prefix_excess(dual[order], self.largest_first(order))

    def without_weights(self) -> tuple[Costs, IntArray]:
        """Sample weights in whole-number proportions become as many copies.

        The share function is that of the sample weights, not the family for as many copies:
        families that depend on the number of samples would give other weights.
        """
        counts, unit = _whole_numbers(self.sample_weight)
        index = np.repeat(np.arange(self.n_samples), counts)
        charged = self.C * weights_in_order(self._share, np.full(index.size, unit))
        return PlainCosts(charged), index


class OwnCosts:
    """Every sample has a cost of its own, whatever its rank: a classical SVM with sample weights.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
        Positive.
    C : float, default=1.0
        Factor of the costs.
    """

    convex = True

    def __init__(self, costs: FloatArray, C: float = 1.0) -> None:
        self.sample_weight: FloatArray | None = costs
        self.C = C
        self.n_samples = costs.size
        self._own = C * costs
        self.total = float(self._own.sum())

    def by_rank(self) -> FloatArray:
        raise ValueError("Every sample has a cost of its own, so there is none per rank.")

    def in_order(self, order: IntArray) -> FloatArray:
        return self._own[order]

    def largest_first(self, order: IntArray) -> FloatArray:
        return self._own[order]

    def largest_sum(self, number: int) -> float:
        return float(np.sort(self._own)[self.n_samples - number :].sum())

    def excess(self, dual: FloatArray) -> float:
        return float(np.max(dual / self._own, initial=0.0))

    def without_weights(self) -> tuple[Costs, IntArray]:
        raise ValueError("A cost per sample cannot be written out as copies of the sample.")


def RankCosts(
    n_samples: int,
    weights: str | Quantifier | ArrayLike = "basic",
    alpha: float | None = 0.6,
    C: float = 1.0,
    sample_weight: ArrayLike | None = None,
) -> PlainCosts | WeightedCosts:
    """``C * weights`` by the rank of the deviations, with or without sample weights.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    weights : str, callable or array-like of shape (n_samples,)
        A family of :data:`owasvm.weights.FAMILIES`, a quantifier on [0, 1], or the weights
        themselves, ``weights[k]`` for the k-th smallest deviation. Normalised to mean 1.
    alpha : float, default=0.6
        Shape of a named family.
    C : float, default=1.0
        Factor of the loss.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Positive sample weights; a whole number counts as that many copies. Not possible with
        weights given as an array, whose length is the number of samples.

    Returns
    -------
    costs : PlainCosts or WeightedCosts

    Examples
    --------
    >>> from owasvm.costs import RankCosts
    >>> RankCosts(4, "superquantile", 0.5, C=3.0).ascending.tolist()
    [0.0, 0.0, 6.0, 6.0]
    """
    if not np.isfinite(C) or C <= 0:
        raise ValueError(f"C must be a positive finite number, got {C!r}.")
    if sample_weight is None:
        _check_total(C, n_samples)
        ascending = float(C) * owa_weights(n_samples, weights, alpha)
        return PlainCosts(ascending, float(C), weights=weights, alpha=alpha)
    mass = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if mass.shape != (n_samples,) or not np.all(np.isfinite(mass)) or np.any(mass <= 0):
        raise ValueError(
            f"sample_weight must hold {n_samples} positive finite numbers; drop the samples "
            "of weight zero first."
        )
    if not (isinstance(weights, str) or callable(weights)):
        raise ValueError(
            "sample_weight cannot be combined with weights given as an array: an array fixes "
            "the number of ranks, while a sample weight stands for copies, which change it. "
            "Use a named family or a callable quantifier."
        )
    _check_total(C, n_samples * float(mass.max()))
    return WeightedCosts(mass, weights, alpha, float(C))


def _check_total(C: float, weight: float) -> None:
    """Weights have mean 1, so that C times the weight of all samples is what costs sum to."""
    if not np.isfinite(float(C) * weight):
        raise ValueError(f"C={C!r} times the weights overflows; take a smaller C.")


def prefix_excess(dual: FloatArray, costs: FloatArray) -> float:
    """Largest ratio of the sums of the first m entries; infinite where shrinking does not help."""
    totals, bounds = np.cumsum(dual), np.cumsum(costs)
    counted = bounds > 0.0
    # Sums do not fall: where nothing may be spent yet, the last one tells.
    n_free = int(np.count_nonzero(~counted))
    if n_free and totals[n_free - 1] > 0.0:
        return np.inf
    ratios = np.divide(totals, bounds, out=totals, where=counted)
    return float(np.max(ratios, initial=0.0, where=counted))


def _n_slices(mass: FloatArray) -> int:
    """How finely to look at a share function for falling weights."""
    total = mass.sum()
    if np.all(mass == np.round(mass)) and total <= _MAX_COPIES:
        return int(total)
    return max(_CONVEXITY_GRID, mass.size)


def _whole_numbers(mass: FloatArray) -> tuple[IntArray, float]:
    """Whole numbers in the proportions of the masses, and what one of them weighs."""
    # Also keeps the ratios finite.
    if float(mass.max()) > _MAX_WRITTEN * float(mass.min()):
        raise ValueError(_too_many_copies("too many"))
    ratios = [Fraction(value).limit_denominator(_MAX_RATIO) for value in mass / mass.min()]
    common = math.lcm(*{ratio.denominator for ratio in ratios})
    numbers = [int(ratio * common) for ratio in ratios]
    if sum(numbers) > _MAX_WRITTEN:
        # The common denominator of many fractions has thousands of digits: no float holds it.
        known = sum(numbers) < _MAX_COPIES
        raise ValueError(_too_many_copies(str(sum(numbers)) if known else "over a million"))
    counts = np.array(numbers, dtype=np.int64)
    unit = float(mass.sum() / counts.sum())
    if not np.allclose(counts * unit, mass, rtol=1e-12, atol=0):
        raise ValueError(_too_many_copies("too many"))
    return counts, unit


def _too_many_copies(number: str) -> str:
    return (
        "With weights that fall somewhere, sample weights are written out as copies, and these "
        f"would need {number} of them, more than {_MAX_WRITTEN}. Use sample weights in small "
        "whole-number proportions, weights that do not fall, or TwoStepOWASVC."
    )
