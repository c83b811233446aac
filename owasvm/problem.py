"""The problem itself: data, labels, rank weights and C, checked once.

``minimise 1/2 |w|^2 + C * sum_k weights[k] * xi_(k)`` over (w, b), where
``xi_i = max(0, 1 - y_i (<w, phi(x_i)> + b))`` and ``xi_(1) <= ... <= xi_(n)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import eigsh

from owasvm.rounding import UNIT, lacking_definiteness, row_norms
from owasvm.weights import Quantifier, is_convex, owa_weights, share_function, weights_in_order

if TYPE_CHECKING:
    from owasvm.kernels import KernelShifts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Fine enough to see where a share function bends, when sample weights are not whole numbers.
_CONVEXITY_GRID = 4096
_MAX_COPIES = 10**6
# Copies written out at most, and the largest denominator of a proportion.
_MAX_WRITTEN = 5000
_MAX_RATIO = 10_000
# Norms of samples beyond this leave no room for their products.
_LARGEST_NORM = 1e140
# Indefinite kernel matrices are decomposed up to so many samples, which takes about two seconds.
_MAX_DECOMPOSED = 1500


class RankCosts:
    """Who pays what: ``C * weights`` handed to the samples by the rank of their deviations.

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

    Attributes
    ----------
    convex : bool
        Whether the costs rise with the deviations.
    ascending : ndarray of shape (n_samples,) or None
        ``C * weights``; None with sample weights, where a cost depends on who is ranked above.
    """

    def __init__(
        self,
        n_samples: int,
        weights: str | Quantifier | ArrayLike = "basic",
        alpha: float | None = 0.6,
        C: float = 1.0,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.weights = weights
        self.alpha = alpha
        self.C = _checked_C(C)
        self.sample_weight: FloatArray | None = None
        self.ascending: FloatArray | None = None
        if sample_weight is None:
            lam = owa_weights(n_samples, weights, alpha)
            self.convex = is_convex(lam)
            if self.convex:
                # Rounding can leave falls of one unit in the last place.
                lam = np.maximum.accumulate(lam)
            self.ascending = self.C * lam
            self.total = float(self.ascending.sum())
            return
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
        self.sample_weight = mass
        self._share = share_function(weights, alpha, total=float(mass.sum()))
        self.total = self.C * float(mass.sum())
        self.convex = is_convex(owa_weights(_n_slices(mass), weights, alpha))

    def in_order(self, order: IntArray) -> FloatArray:
        """Costs of the samples ``order[0], order[1], ...`` when they are sorted ascending."""
        if self.ascending is not None:
            return self.ascending
        assert self.sample_weight is not None
        return self.C * weights_in_order(self._share, self.sample_weight[order])

    def of_equal_masses(self, number: int, mass: float) -> FloatArray:
        """Ascending costs when the total sample weight is spread over equal masses."""
        return self.C * weights_in_order(self._share, np.full(number, mass))

    def largest_first(self, order: IntArray) -> FloatArray:
        """Costs of the ``order.size`` largest deviations, ``order[0]`` the largest of all."""
        if self.ascending is not None:
            return self.ascending[::-1][: order.size]
        assert self.sample_weight is not None
        mass = self.sample_weight
        counted = mass[order]
        rest = mass.sum() - counted.sum()
        if rest > 1e-12 * mass.sum():
            costs = weights_in_order(self._share, np.append(counted, rest)[::-1])[::-1][:-1]
        else:
            costs = weights_in_order(self._share, counted[::-1])[::-1]
        return self.C * np.ascontiguousarray(costs)


def _checked_C(C: float) -> float:
    if not np.isfinite(C) or C <= 0:
        raise ValueError(f"C must be a positive finite number, got {C!r}.")
    return float(C)


def _n_slices(mass: FloatArray) -> int:
    """How finely to look at a share function for falling weights."""
    total = mass.sum()
    if np.all(mass == np.round(mass)) and total <= _MAX_COPIES:
        return int(total)
    return max(_CONVEXITY_GRID, mass.size)


@dataclass(frozen=True, eq=False)
class OWAProblem:
    """An OWA-SVM, ready for a solver.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    costs : RankCosts
        The rank weights times C.
    features : ndarray or CSR matrix of shape (n_samples, n_features) or None
        The samples of a linear model.
    gram : ndarray of shape (n_samples, n_samples) or None
        Kernel values ``K(x_i, x_j)``, symmetric. Exactly one of `features` and `gram` is given.
    gram_rounding : ndarray of shape (n_samples,) or None, default=None
        ``gram[i, j]`` is off by at most ``gram_rounding[i] * gram_rounding[j]``; None for kernel
        values that are exact but for their last digit.
    origin : ndarray of shape (n_features,) or None, default=None
        What was subtracted from the samples as they were given to make `features`. The intercept
        of a solution belongs to the samples that were moved.
    shifts : KernelShifts or None, default=None
        The same for a Gram matrix.
    known_definite : bool or None, default=None
        Whether the kernel is positive semi-definite. None: looked at when it is first asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.problem import OWAProblem, RankCosts
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OWAProblem(y, RankCosts(4, "superquantile", 0.5), features=X)
    >>> problem.n_samples, problem.costs.convex
    (4, True)
    """

    y: FloatArray
    costs: RankCosts
    features: FloatArray | sp.csr_matrix | None = None
    gram: FloatArray | None = None
    gram_rounding: FloatArray | None = None
    origin: FloatArray | None = None
    shifts: KernelShifts | None = None
    known_definite: bool | None = None

    def __post_init__(self) -> None:
        n_samples = self.y.shape[0]
        if not np.all(np.abs(self.y) == 1.0):
            raise ValueError("y must hold the labels -1.0 and +1.0 only.")
        if (self.features is None) == (self.gram is None):
            raise ValueError("Give either features or gram, not both and not neither.")
        if self.features is not None and self.features.shape[0] != n_samples:
            raise ValueError(f"features has {self.features.shape[0]} rows, y has {n_samples}.")
        if self.gram is not None and self.gram.shape != (n_samples, n_samples):
            raise ValueError(
                f"gram must have shape ({n_samples}, {n_samples}), got {self.gram.shape}."
            )
        if self.costs.n_samples != n_samples:
            raise ValueError(f"costs are for {self.costs.n_samples} samples, y has {n_samples}.")
        if not self.largest_norm < _LARGEST_NORM:
            raise ValueError(
                f"The samples are too large: their norms reach {self.largest_norm:.3g}, and "
                "products of them overflow. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler."
            )

    @cached_property
    def norms(self) -> FloatArray:
        """``|phi(x_i)|`` of all samples."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.gram is not None:
                return np.sqrt(np.maximum(self.gram.diagonal(), 0.0))
            return row_norms(self.features)

    @cached_property
    def _lacking(self) -> float:
        """What the kernel lacks to be positive semi-definite."""
        if self.known_definite is not None or self.gram is None:
            return np.inf if self.known_definite is False else 0.0
        return lacking_definiteness(self.gram)

    @cached_property
    def entry_rounding(self) -> FloatArray:
        """What each sample contributes to the rounding of a Gram matrix, see `gram_rounding`."""
        if self.gram_rounding is not None:
            return self.gram_rounding
        return np.sqrt(UNIT) * self.norms + np.sqrt(self._lacking if self.is_definite else 0.0)

    @cached_property
    def largest_norm(self) -> float:
        """The largest of the norms."""
        return float(self.norms.max(initial=0.0))

    @cached_property
    def is_definite(self) -> bool:
        """Whether the kernel is positive semi-definite, up to rounding.

        Only then has the problem a lower bound at all: along a direction of negative curvature
        its objective falls without end.
        """
        return bool(np.isfinite(self._lacking))

    def nearest_definite(self) -> OWAProblem:
        """The same problem with a positive semi-definite kernel matrix near its own.

        The nearest one, its negative eigenvalues raised to 0; with many samples the one that is
        lifted by the most negative eigenvalue, which costs much less.
        """
        gram = self.gram
        assert gram is not None
        if self.n_samples <= _MAX_DECOMPOSED:
            values, vectors = np.linalg.eigh(gram)
            nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
        else:
            start = np.ones(self.n_samples)
            lowest = eigsh(gram, k=1, which="SA", v0=start, tol=1e-2, return_eigenvectors=False)
            nearest = gram + 1.1 * abs(float(lowest[0])) * np.eye(self.n_samples)
        return replace(self, gram=0.5 * (nearest + nearest.T), known_definite=True)

    def with_costs(self, costs: RankCosts) -> OWAProblem:
        """The same samples and labels with other costs."""
        return replace(self, costs=costs)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.y.shape[0]

    def scores(self, dual: FloatArray) -> FloatArray:
        """``<w, phi(x_j)>`` of all samples, with ``w = sum_i a_i y_i phi(x_i)``."""
        signed = self.y * dual
        if self.gram is not None:
            return self.gram @ signed
        assert self.features is not None
        return np.asarray(self.features @ (self.features.T @ signed)).ravel()

    def with_copies(self) -> tuple[OWAProblem, IntArray]:
        """The same problem with its sample weights written out as copies of the samples.

        Sample weights in whole-number proportions become that many copies, C taking up the common
        factor.

        Returns
        -------
        problem : OWAProblem
            A problem without sample weights.
        index : ndarray of shape (n_copies,)
            The sample every copy stands for.
        """
        mass = self.costs.sample_weight
        if mass is None:
            return self, np.arange(self.n_samples)
        counts, unit = _whole_numbers(mass)
        index = np.repeat(np.arange(self.n_samples), counts)
        # The share function of the sample weights, not the family for as many copies: families
        # that depend on the number of samples would give other weights.
        charged = self.costs.of_equal_masses(index.size, unit)
        costs = RankCosts(index.size, charged, None, float(charged.mean()))
        copied = replace(
            self,
            y=self.y[index],
            costs=costs,
            features=None if self.features is None else self.features[index],
            gram=None if self.gram is None else self.gram[np.ix_(index, index)],
            gram_rounding=None if self.gram_rounding is None else self.gram_rounding[index],
            shifts=None if self.shifts is None else self.shifts.take(index),
        )
        return copied, index


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
