"""Who pays what: costs handed to the samples by the rank of their deviations.

:class:`Costs` is what the rest of the package asks for; there is a class for each case: one cost
per rank, sample weights, one cost per sample. :func:`RankCosts` makes the first two from weights.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.profiles import Profile, charge_by_profile, profile_below, rising_part
from owasvm.weights import (
    Quantifier,
    bends_of,
    is_convex,
    is_family,
    owa_weights,
    share_function,
    weigh_in_order,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "Costs",
    "OwnCosts",
    "PlainCosts",
    "ProfileCosts",
    "RankCosts",
    "WeightedCosts",
    "costs_by_profile",
]

# Fine enough to see where a share function bends, when sample weights are not whole numbers.
_CONVEXITY_GRID = 4096
_MAX_COPIES = 10**6
# What costs may sum to: coefficients are as large, and squared. Smaller costs lose digits.
_LARGEST_TOTAL = 1e150
_LEAST_TOTAL = 1e-300
_NO_RANKS = (
    "With sample weights there is not one cost per rank: what a sample pays depends on "
    "how much weight is ranked above it."
)


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

    def profile(self) -> Profile:
        """What a unit of mass pays by rank, or less: nothing below it is above the costs."""

    def rising(self) -> Costs:
        """The rises of the costs added up: a convex part that leaves a concave rest."""

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        """The rest for the samples ``order[0], ...`` sorted ascending: what they pay, and get.

        Neither is negative. Handed out by one order, ``paid - got`` of each sample times its
        deviation sums to no less than the rest, whatever the deviations.
        """


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

    def scaled_to(self, C: float) -> PlainCosts:
        """The same weights times another C."""
        _check_factor(C)
        _check_total(C, self.n_samples)
        scaled = copy(self)
        scaled.ascending = (float(C) / self.C) * self.ascending
        scaled.total = float(scaled.ascending.sum())
        scaled.C = float(C)
        return scaled

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
        sums = np.sort(dual)[::-1]
        np.cumsum(sums, out=sums)
        return _excess_of_sums(sums, np.cumsum(self.ascending[::-1]))

    def profile(self) -> Profile:
        return Profile(self.ascending, np.arange(self.n_samples + 1.0))

    def rising(self) -> Costs:
        return PlainCosts(rising_part(self.ascending))

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        falling = self.ascending - rising_part(self.ascending)
        return np.maximum(falling, 0.0), np.maximum(-falling, 0.0)


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
        slices = owa_weights(_n_slices(self.sample_weight), weights, alpha)
        whole = slices.size == mass and np.all(self.sample_weight == np.rint(self.sample_weight))
        self.convex = is_convex(slices)
        if self.convex and not whole and bends_of(self._share) is None:
            # Of a callable nothing is known but its values, and slices are no sums of masses.
            self.convex = self._profiles[0].never_falls
        self._copies: Profile | None = None
        if whole:
            # Rounding can leave falls of one unit in the last place.
            by_copy = np.maximum.accumulate(slices) if self.convex else slices
            self._copies = Profile(C * by_copy, np.arange(slices.size + 1.0))

    @property
    def by_copy(self) -> Profile | None:
        """One cost per rank of a copy; None where sample weights are no whole numbers."""
        return self._copies

    def by_rank(self) -> FloatArray:
        raise ValueError(_NO_RANKS)

    def in_order(self, order: IntArray) -> FloatArray:
        if self._copies is not None:
            return self.largest_first(order[::-1])[::-1]
        return self.C * weigh_in_order(self._share, self.sample_weight[order])

    def largest_first(self, order: IntArray) -> FloatArray:
        mass = self.sample_weight
        counted = mass[order]
        if self._copies is not None:
            return charge_by_profile(self._copies, counted)
        rest = mass.sum() - counted.sum()
        if rest > 1e-12 * mass.sum():
            costs = weigh_in_order(self._share, np.append(counted, rest)[::-1])[::-1][:-1]
        else:
            costs = weigh_in_order(self._share, counted[::-1])[::-1]
        return self.C * np.ascontiguousarray(costs)

    def largest_sum(self, number: int) -> float:
        return self.total if number else 0.0

    @cached_property
    def _profiles(self) -> tuple[Profile, Profile]:
        """The costs as profiles, one near them and one below."""
        near, below = profile_below(self._share, self.sample_weight)
        return near.with_density(self.C * near.density), below.with_density(self.C * below.density)

    def profile(self) -> Profile:
        return self._profiles[1]

    @cached_property
    def _split(self) -> tuple[ProfileCosts, Profile]:
        """The rises, and what is got back: the negative part of the rest."""
        near = self._profiles[0]
        rising = rising_part(near.density)
        got = near.with_density(np.maximum(rising - near.density, 0.0))
        return ProfileCosts(self.sample_weight, near.with_density(rising)), got.merged()

    def rising(self) -> Costs:
        return self._split[0]

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        rising, back = self._split
        got = charge_by_profile(back, self.sample_weight[order[::-1]])[::-1]
        paid = self.in_order(order) - rising.in_order(order) + got
        # Between the edges of the profile the costs may differ from it.
        return np.maximum(paid, 0.0), got + np.maximum(-paid, 0.0)

    def excess(self, dual: FloatArray) -> float:
        order = np.argsort(-dual / self.sample_weight, kind="stable")
        if self.convex:
            return prefix_excess(dual[order], self.largest_first(order))
        # No set of a mass t sums to more than the densest mass t, in parts; that must not exceed
        # the profile at any edge of both.
        below = self.profile()
        reached = np.concatenate(([0.0], np.cumsum(self.sample_weight[order])))
        sums = np.concatenate(([0.0], np.cumsum(dual[order])))
        at = np.unique(np.concatenate((below.edges, reached)))[1:]
        bounds = np.interp(at, below.edges, below.sums)
        return _excess_of_sums(np.interp(at, reached, sums), bounds)


class ProfileCosts:
    """Costs of weighted samples by a profile that never falls with the rank.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,)
        Positive.
    profile : Profile
        What a unit of sample weight pays, non-decreasing.
    """

    convex = True
    sample_weight: FloatArray

    def __init__(self, sample_weight: FloatArray, profile: Profile) -> None:
        self.sample_weight = sample_weight
        self.n_samples = sample_weight.size
        self.total = profile.total
        self.C = self.total / float(sample_weight.sum())
        self._profile = profile
        self._merged = profile.merged()

    def by_rank(self) -> FloatArray:
        raise ValueError(_NO_RANKS)

    def in_order(self, order: IntArray) -> FloatArray:
        return self.largest_first(order[::-1])[::-1]

    def largest_first(self, order: IntArray) -> FloatArray:
        return charge_by_profile(self._merged, self.sample_weight[order])

    def largest_sum(self, number: int) -> float:
        return self.total if number else 0.0

    def excess(self, dual: FloatArray) -> float:
        order = np.argsort(-dual / self.sample_weight, kind="stable")
        return prefix_excess(dual[order], self.largest_first(order))

    def profile(self) -> Profile:
        return self._profile

    def rising(self) -> Costs:
        return self

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(order.size), np.zeros(order.size)


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

    def profile(self) -> Profile:
        raise ValueError("Every sample has a cost of its own, so there is none per rank.")

    def rising(self) -> Costs:
        return self

    def falling_in_order(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(order.size), np.zeros(order.size)


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
    _check_factor(C)
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
    if not is_family(weights):
        raise ValueError(
            "sample_weight cannot be combined with weights given as an array: an array fixes "
            "the number of ranks, while a sample weight stands for copies, which change it. "
            "Use a named family or a callable quantifier."
        )
    _check_total(C, n_samples * float(mass.max()))
    return WeightedCosts(mass, weights, alpha, float(C))


def costs_by_profile(sample_weight: FloatArray | None, profile: Profile) -> Costs:
    """Costs that never fall with the rank, given by a profile on the slices of other costs.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,) or None
        Sample weights; None where the slices are ranks.
    profile : Profile
        What a unit pays, non-decreasing.
    """
    if sample_weight is None:
        return PlainCosts(profile.density)
    return ProfileCosts(sample_weight, profile)


def _check_factor(C: float) -> None:
    if not np.isfinite(C) or C <= 0:
        raise ValueError(f"C must be a positive finite number, got {C!r}.")


def _check_total(C: float, weight: float) -> None:
    """Weights have mean 1, so that C times the weight of all samples is what costs sum to."""
    total = float(C) * weight
    if not total <= _LARGEST_TOTAL:
        raise ValueError(f"C={C!r} times the weights overflows when squared; take a smaller C.")
    if total < _LEAST_TOTAL:
        raise ValueError(f"C={C!r} times the weights underflows; take a larger C.")


def prefix_excess(dual: FloatArray, costs: FloatArray) -> float:
    """Largest ratio of the sums of the first m entries; infinite where shrinking does not help."""
    return _excess_of_sums(np.cumsum(dual), np.cumsum(costs))


def _excess_of_sums(totals: FloatArray, bounds: FloatArray) -> float:
    """Overwrites `totals`: the largest ratio of sums, neither of which falls."""
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
