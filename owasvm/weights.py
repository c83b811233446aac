r"""Weights of the ordered weighted average: named families, quantifiers, arrays.

Deviations are sorted in ascending order and ``weights[k]`` meets the k-th smallest one, so
the last weight meets the largest deviation. Weights have mean 1. Non-decreasing weights make
the loss convex.

Every family is described by its *share function* :math:`G` on [0, 1], non-decreasing with
:math:`G(0) = 0` and :math:`G(1) = 1`: the worst share :math:`t` of the samples (the largest
deviations) carries the share :math:`G(t)` of the total weight. A quantifier :math:`Q` has
:math:`G(t) = (Q(t) - Q(0)) / (Q(1) - Q(0))`, and

.. math:: \lambda_k = n \left[ G\left(\tfrac{n-k+1}{n}\right)
          - G\left(\tfrac{n-k}{n}\right) \right], \qquad k = 1, \dots, n.

The loss is convex exactly when :math:`G` is concave.

Notation
--------
=============== =========================================================================
symbol          meaning
=============== =========================================================================
Q               quantifier on [0, 1], as in the paper
G               share function
alpha           shape parameter of a family
lambda          the weights in ascending order of deviation
S               total sample weight, the number of samples when they are unweighted
=============== =========================================================================
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm._jit import njit

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "FAMILIES",
    "REGISTRY",
    "Family",
    "Slices",
    "bends_of",
    "is_convex",
    "is_family",
    "owa_weights",
    "share_function",
    "weights_in_order",
]

FloatArray = NDArray[np.float64]
Quantifier = Callable[..., Any]
Share = Callable[[FloatArray], FloatArray]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Slices:
    """The samples as consecutive slices of [0, 1], the largest deviation beside 0.

    Slice k reaches from ``top[k + 1]`` to ``top[k]``. Amounts and distances to both ends are
    kept apart because they cannot be recovered from ``top`` without cancellation.

    Parameters
    ----------
    top, bottom : ndarray of shape (n + 1,)
        From 1 down to 0; ``1 - top``, from 0 up to 1.
    amount : ndarray of shape (n,)
        Sample weights.
    total : float
        Their sum S.
    """

    top: FloatArray
    bottom: FloatArray
    amount: FloatArray
    total: float

    @property
    def before(self) -> FloatArray:
        """The end of each slice that is nearer to 0."""
        return self.top[1:]

    @property
    def after(self) -> FloatArray:
        """The other end."""
        return self.top[:-1]

    @property
    def width(self) -> FloatArray:
        """Share of the total sample weight."""
        return self.amount / self.total


def _equal_slices(n: int) -> Slices:
    """One slice of weight 1 for each of n samples."""
    positions = np.arange(n + 1, dtype=np.float64) / n
    return Slices(top=positions[::-1], bottom=positions, amount=np.ones(n), total=float(n))


def _weighted_slices(amount: FloatArray) -> Slices:
    """Slices of the given sizes, ascending order of deviation."""
    from_bottom = np.concatenate(([0.0], np.cumsum(amount)))
    from_top = np.concatenate(([0.0], np.cumsum(amount[::-1])))[::-1]
    return Slices(
        top=from_top / from_top[0],
        bottom=from_bottom / from_bottom[-1],
        amount=amount,
        total=float(amount.sum()),
    )


# Each family gives G itself and the weights S * (G(after) - G(before)) of slices. The latter
# are rearranged so that nearly equal values are never subtracted: every weight then keeps a
# relative accuracy of a few units in the last place, however many samples there are.


def _uniform_share(t: FloatArray, alpha: float) -> FloatArray:  # noqa: ARG001
    return t.copy()


def _uniform_weights(slices: Slices, alpha: float) -> FloatArray:  # noqa: ARG001
    return slices.amount.copy()


def _basic_share(t: FloatArray, alpha: float) -> FloatArray:
    return np.power(t, alpha)


def _basic_weights(slices: Slices, alpha: float) -> FloatArray:
    # q^a - p^a = -q^a * expm1(a * log(p / q)), p = before, q = after
    if alpha == 1.0:
        return slices.amount.copy()
    part = np.minimum(slices.width / slices.after, 1.0)
    log_ratio = np.where(
        part < 0.5, np.log1p(-np.minimum(part, 0.5)), np.log(slices.before / slices.after)
    )
    return -slices.total * np.power(slices.after, alpha) * np.expm1(alpha * log_ratio)


def _quadratic_share(t: FloatArray, alpha: float) -> FloatArray:
    root = np.sqrt(t)
    return (1.0 - alpha) * root / (1.0 - alpha * root)


def _quadratic_weights(slices: Slices, alpha: float) -> FloatArray:
    # 1 - a sqrt(q) = (1 - a) + a (1 - q) / (1 + sqrt(q)) keeps its digits when a and q near 1
    root = np.sqrt(slices.top)
    rest = (1.0 - alpha) + alpha * slices.bottom / (1.0 + root)
    return (
        slices.amount
        / (root[:-1] + root[1:])
        * np.minimum((1.0 - alpha) / rest[:-1], 1.0)
        / rest[1:]
    )


def _exponential_share(t: FloatArray, alpha: float) -> FloatArray:
    if abs(alpha) < _EPS:
        return t.copy()
    if alpha < 0.0:
        return 1.0 - np.expm1(alpha * (1.0 - t)) / math.expm1(alpha)
    return np.expm1(-alpha * t) / math.expm1(-alpha)


def _exponential_weights(slices: Slices, alpha: float) -> FloatArray:
    # Below eps the weights equal 1 to the last digit; a negative exponent (max-entropy below
    # an orness of 1/2) is the mirror image, read from the smallest deviation.
    if abs(alpha) < _EPS:
        return slices.amount.copy()
    start = slices.before if alpha > 0.0 else slices.bottom[:-1]
    rate = abs(alpha)
    slope = np.expm1(-rate * slices.width) / math.expm1(-rate)
    return slices.total * np.exp(-rate * start) * slope


_ARCSIN_IS_LINEAR = 1e-9  # below it arcsin(x) / x - 1 < x^2 / 6 is under the last digit


def _trigonometric_share(t: FloatArray, alpha: float) -> FloatArray:
    if alpha < _ARCSIN_IS_LINEAR:
        return t.copy()
    return np.arcsin(alpha * t) / math.asin(alpha)


def _trigonometric_weights(slices: Slices, alpha: float) -> FloatArray:
    # The angle between two points of the circle, from its sine (rationalised) and cosine.
    if alpha < _ARCSIN_IS_LINEAR:
        return slices.amount.copy()
    sine = alpha * slices.top
    cosine = np.sqrt(((1.0 - alpha) + alpha * slices.bottom) * (1.0 + sine))
    sine_q, sine_p, cosine_q, cosine_p = sine[:-1], sine[1:], cosine[:-1], cosine[1:]
    angle = np.arctan2(
        alpha * slices.width * (sine_q + sine_p),
        (sine_q * cosine_p + sine_p * cosine_q) * (cosine_q * cosine_p + sine_q * sine_p),
    )
    return slices.total * angle / math.asin(alpha)


def _superquantile_share(t: FloatArray, alpha: float) -> FloatArray:
    return np.minimum(t / alpha, 1.0)


def _superquantile_weights(slices: Slices, alpha: float) -> FloatArray:
    inside = np.clip(alpha - slices.before, 0.0, slices.width)
    return np.where(slices.after <= alpha, slices.amount, slices.total * inside) / alpha


def _trimmed_share(t: FloatArray, alpha: float) -> FloatArray:
    return np.clip((t - alpha) / (1.0 - alpha), 0.0, 1.0)


def _trimmed_weights(slices: Slices, alpha: float) -> FloatArray:
    kept = 1.0 - alpha
    inside = np.clip(kept - slices.bottom[:-1], 0.0, slices.width)
    return np.where(slices.bottom[1:] <= kept, slices.amount, slices.total * inside) / kept


_SMALLEST_MIDDLE = 1e-300  # half of a subnormal share would vanish


def _olympic_share(t: FloatArray, alpha: float) -> FloatArray:
    return np.clip((t - 0.5) / max(alpha, _SMALLEST_MIDDLE) + 0.5, 0.0, 1.0)


def _olympic_weights(slices: Slices, alpha: float) -> FloatArray:
    # Distances from the centre, exact where the shares from both ends are.
    half = 0.5 * max(alpha, _SMALLEST_MIDDLE)
    centred = 0.5 * (slices.top - slices.bottom)
    low, high = centred[1:], centred[:-1]
    inside = np.clip(np.minimum(high, half) - np.maximum(low, -half), 0.0, slices.width)
    whole = (low >= -half) & (high <= half)
    return np.where(whole, slices.amount / (2.0 * half), slices.total * (inside / (2.0 * half)))


@dataclass(frozen=True)
class Family:
    """A named family.

    Parameters
    ----------
    range_text : str
        The range of alpha, in words.
    accepts : callable
        Whether an alpha lies in it.
    share : callable
        ``G(t)`` of points t and alpha.
    weights : callable
        ``S * (G(after) - G(before))`` of :class:`Slices` and alpha, without cancellation.
    bends : callable or None, default=None
        Points between which G is concave or convex, of alpha; None where nobody knows. Sample
        weights have better bounds where it is known.
    """

    range_text: str
    accepts: Callable[[float], bool]
    share: Callable[[FloatArray, float], FloatArray]
    weights: Callable[[Slices, float], FloatArray]
    bends: Callable[[float], tuple[float, ...]] | None = None


_OPEN, _HALF_OPEN, _POSITIVE = "0 < alpha < 1", "0 < alpha <= 1", "alpha > 0"


def _is_inside_unit(alpha: float) -> bool:
    return 0.0 < alpha < 1.0


def _is_in_unit_with_one(alpha: float) -> bool:
    return 0.0 < alpha <= 1.0


def _is_positive(alpha: float) -> bool:
    return alpha > 0.0


def _no_bends(alpha: float) -> tuple[float, ...]:  # noqa: ARG001
    return ()


def _quadratic_bends(alpha: float) -> tuple[float, ...]:
    # The slope is least at sqrt(t) = 1 / (3 alpha).
    return (1.0 / (9.0 * alpha**2),) if alpha > 1.0 / 3.0 else ()


def _bend_at_alpha(alpha: float) -> tuple[float, ...]:
    return (alpha,)


def _olympic_bends(alpha: float) -> tuple[float, ...]:
    return 0.5 - 0.5 * alpha, 0.5 + 0.5 * alpha


#: The families by name. One more line here makes a family known to all estimators.
REGISTRY: dict[str, Family] = {
    "uniform": Family("any alpha", math.isfinite, _uniform_share, _uniform_weights, _no_bends),
    "basic": Family(_POSITIVE, _is_positive, _basic_share, _basic_weights, _no_bends),
    "quadratic": Family(
        _OPEN, _is_inside_unit, _quadratic_share, _quadratic_weights, _quadratic_bends
    ),
    "exponential": Family(
        _POSITIVE, _is_positive, _exponential_share, _exponential_weights, _no_bends
    ),
    "trigonometric": Family(
        _HALF_OPEN,
        _is_in_unit_with_one,
        _trigonometric_share,
        _trigonometric_weights,
        _no_bends,
    ),
    "superquantile": Family(
        _HALF_OPEN,
        _is_in_unit_with_one,
        _superquantile_share,
        _superquantile_weights,
        _bend_at_alpha,
    ),
    "trimmed": Family(_OPEN, _is_inside_unit, _trimmed_share, _trimmed_weights, _bend_at_alpha),
    "max-entropy": Family(
        _OPEN, _is_inside_unit, _exponential_share, _exponential_weights, _no_bends
    ),
    "olympic": Family(
        _HALF_OPEN, _is_in_unit_with_one, _olympic_share, _olympic_weights, _olympic_bends
    ),
}

#: Names of the families that come with the package.
FAMILIES: tuple[str, ...] = tuple(REGISTRY)


@dataclass(frozen=True)
class _NamedShare:
    """Share function of a named family; ``shape`` is alpha, or the rate of max-entropy."""

    family: str
    shape: float

    def __call__(self, t: ArrayLike) -> FloatArray:
        points = _check_points(t)
        shares = REGISTRY[self.family].share(points, self.shape)
        # Scalar and array functions may round differently, which shows at G(0) = 0, G(1) = 1.
        inside = (points > 0.0) & (points < 1.0)
        return np.where(inside, np.clip(shares, 0.0, 1.0), points)

    def weights(self, slices: Slices) -> FloatArray:
        """S * (G(after) - G(before)) of every slice, without cancellation."""
        # Empty slices at the end 0 divide 0 by 0; logarithms of 0 are meant.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            weights = REGISTRY[self.family].weights(slices, self.shape)
        # So do slices whose share of the total is below the smallest number.
        return np.where((slices.amount > 0.0) & (slices.after > 0.0), weights, 0.0)


@dataclass(frozen=True)
class _QuantifierShare:
    """Share function of a callable quantifier, checked wherever it is evaluated."""

    quantifier: Quantifier

    def __call__(self, t: ArrayLike) -> FloatArray:
        points = _check_points(t)
        # The ends join every evaluation: they scale G, and two points or more make a
        # scalar-only callable fail on arrays instead of accepting an array of length 1.
        where = np.concatenate((points.ravel(), [0.0, 1.0]))
        values = _evaluate(self.quantifier, where)
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"The quantifier returned {values[bad]} at r={where[bad]:.6g}; "
                "it must be finite on [0, 1]."
            )
        at_zero, at_one = float(values[-2]), float(values[-1])
        scale = float(np.max(np.abs(values)))
        span = at_one - at_zero
        if abs(span) <= 4.0 * _EPS * scale:
            raise ValueError(
                f"The quantifier is {at_zero:.6g} at r=0 and {at_one:.6g} at r=1; "
                "the two must differ for its increments to be weights."
            )
        shares = (values - at_zero) / span
        _check_non_decreasing(where, shares, 16.0 * _EPS * scale / abs(span))
        return np.clip(shares[:-2], 0.0, 1.0).reshape(points.shape)


def _check_points(t: ArrayLike) -> FloatArray:
    """Points of [0, 1] as an array."""
    points = np.asarray(t, dtype=np.float64)
    if not np.all((points >= 0.0) & (points <= 1.0)):
        raise ValueError("A share function takes values between 0 and 1 only.")
    return points


def _evaluate(quantifier: Quantifier, where: FloatArray) -> FloatArray:
    """Values of a quantifier that may or may not accept arrays."""
    try:
        values = np.asarray(quantifier(where.copy()), dtype=np.float64)
        if values.shape == where.shape:
            return values
    except Exception:
        # A scalar-only callable may fail in any way on an array. A true fault of the callable
        # comes back from the calls below.
        pass
    return np.array([float(quantifier(r)) for r in where.tolist()], dtype=np.float64)


def _check_non_decreasing(where: FloatArray, shares: FloatArray, slack: float) -> None:
    """Refuse a share function that falls by more than the rounding of its values."""
    order = np.argsort(where, kind="stable")
    rises = np.diff(shares[order])
    if rises.size and float(rises.min()) < -slack:
        worst = int(np.argmin(rises))
        low, high = where[order[worst]], where[order[worst + 1]]
        raise ValueError(
            "The quantifier is not monotone: it turns back between "
            f"r={low:.6g} and r={high:.6g}, which would give a negative weight. "
            "Use a monotone quantifier."
        )


def _check_alpha(family: str, alpha: float | None) -> float:
    """Alpha as a float inside the range of the family."""
    if family == "uniform":
        return 1.0
    known = REGISTRY[family]
    expected = f"family {family!r} needs a number with {known.range_text}"
    if alpha is None:
        raise ValueError(f"alpha is missing: {expected}.")
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"alpha={alpha!r} is not a number: {expected}.")
    value = float(alpha)
    if not (math.isfinite(value) and known.accepts(value)):
        raise ValueError(f"alpha={alpha!r} is out of range: {expected}.")
    return value


def _check_family(family: object) -> str:
    if not isinstance(family, str) or family not in REGISTRY:
        raise ValueError(
            f"Unknown weight family {family!r}; use one of {', '.join(REGISTRY)}, "
            "a callable quantifier on [0, 1], or an array of weights."
        )
    return family


def _check_total(total: float | None) -> float:
    if total is None:
        raise ValueError(
            "total is missing: family 'max-entropy' depends on the total sample weight; "
            "pass total= the number of samples, or the sum of their weights."
        )
    if isinstance(total, bool) or not isinstance(total, Real):
        raise TypeError(f"total={total!r} is not a number; pass the sum of the sample weights.")
    value = float(total)
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"total={total!r} must be positive and finite.")
    return value


def _centred_logistic(x: float) -> float:
    """1 / (1 - exp(-x)) - 1 / x - 1 / 2 for x > 0, rising from 0 to 1/2."""
    if x < 0.2:
        y = x * x
        return x / 12.0 * (1.0 - y / 60.0 * (1.0 - y / 42.0 * (1.0 - y / 40.0)))
    return -1.0 / math.expm1(-x) - 1.0 / x - 0.5


def _odds(x: float) -> float:
    """1 / (exp(x) - 1) for x > 0, without overflow."""
    return math.exp(-x) / -math.expm1(-x)


_SMALLEST_TOTAL = 1.001  # orness divides by S - 1; the limit at S = 1 exists


def _max_entropy_rate(alpha: float, total: float) -> float:
    r"""Rate a of the share function (1 - exp(-a t)) / (1 - exp(-a)) with orness alpha.

    With :math:`\rho = e^\theta`, weights :math:`\rho^k`, k = 1..S, have the orness

    .. math:: \frac{1}{S - 1} \left[ \frac{S}{1 - e^{-S \theta}}
              - \frac{1}{1 - e^{-\theta}} \right],

    rising in :math:`\theta` and meaningful for real S. The excess over 1/2 and the shortfall
    from 1 are evaluated by expressions that keep their digits on their side.
    """
    size = max(total, _SMALLEST_TOTAL)
    excess = abs(alpha - 0.5)
    if excess == 0.0:
        return 0.0
    shortfall = min(alpha, 1.0 - alpha)

    def is_too_small(theta: float) -> bool:
        if excess < 0.25:
            gained = size * _centred_logistic(size * theta) - _centred_logistic(theta)
            return gained < excess * (size - 1.0)
        return _odds(theta) - size * _odds(size * theta) > shortfall * (size - 1.0)

    # The excess never exceeds theta (S + 1) / 12; beyond 800 the shortfall underflows.
    low, high = 6.0 * excess / (size + 1.0), 800.0
    while high > low * (1.0 + 2.0 * _EPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        if is_too_small(middle):
            low = middle
        else:
            high = middle
    return math.copysign(total * high, alpha - 0.5)


def is_family(weights: object) -> "TypeIs[str | Quantifier]":
    """Tell a family or a quantifier, good for any number of samples, from an array of weights."""
    return isinstance(weights, str) or callable(weights)


def share_function(
    family: str | Quantifier, alpha: float | None = None, total: float | None = None
) -> Share:
    r"""Return the share function G of a weight family or of a quantifier.

    :math:`G(t)` is the share of the total weight carried by the worst share :math:`t` of the
    samples, those with the largest deviations. A quantifier Q has
    :math:`G(t) = (Q(t) - Q(0)) / (Q(1) - Q(0))`.

    Parameters
    ----------
    family : str or callable
        One of ``FAMILIES``, or a monotone quantifier ``Q(r)`` on [0, 1]; it may accept arrays
        or numbers only. Its values are checked wherever the result is evaluated.
    alpha : float, default=None
        Shape of a named family, see :func:`owa_weights`; ignored for ``"uniform"`` and for
        callables.
    total : float, default=None
        Total sample weight, the number of samples when they are unweighted. Needed by
        ``"max-entropy"`` alone, whose share function depends on it; at totals up to 1, where
        orness is undefined, its limit at 1 is used.

    Returns
    -------
    share : callable
        Maps an array of points of [0, 1] to an array of the same shape. It can be handed to
        :func:`weights_in_order`.

    Raises
    ------
    TypeError, ValueError
        Unknown family, alpha missing or out of range; when called, a quantifier that is not
        finite, not monotone, or equal at both ends.

    Examples
    --------
    Half of the samples, those that deviate most, carry 84% of the weight:

    >>> from owasvm.weights import share_function
    >>> share = share_function("basic", 0.25)
    >>> share([0.0, 0.5, 1.0]).round(2)
    array([0.  , 0.84, 1.  ])
    >>> share_function(lambda r: r**0.25)([0.0, 0.5, 1.0]).round(2)
    array([0.  , 0.84, 1.  ])
    """
    if callable(family):
        return _QuantifierShare(family)
    name = _check_family(family)
    shape = _check_alpha(name, alpha)
    if name == "max-entropy":
        shape = _max_entropy_rate(shape, _check_total(total))
    return _NamedShare(name, shape)


def bends_of(share: Share) -> tuple[float, ...] | None:
    """Points between which a share function is concave or convex.

    Parameters
    ----------
    share : callable
        From :func:`share_function`.

    Returns
    -------
    bends : tuple of float or None
        Ascending; None for quantifiers, of which nothing is known but their values.
    """
    if not isinstance(share, _NamedShare):
        return None
    find = REGISTRY[share.family].bends
    return None if find is None else find(share.shape)


def owa_weights(
    n: int, family: str | Quantifier | ArrayLike = "basic", alpha: float | None = 0.6
) -> FloatArray:
    r"""Return the n weights of an ordered weighted average.

    Deviations are sorted in ascending order and ``weights[k]`` meets the k-th smallest.
    The weights have mean 1; they make the loss convex when they are non-decreasing.
    For a quantifier Q they are, as in [1]_,

    .. math:: \lambda_k \propto Q\left(1 - \tfrac{k-1}{n}\right)
              - Q\left(1 - \tfrac{k}{n}\right), \qquad k = 1, \dots, n.

    Parameters
    ----------
    n : int
        Number of samples, at least 1.
    family : str, callable or array-like of shape (n,), default="basic"
        A name from the table, a monotone quantifier ``Q(r)`` on [0, 1], or the weights
        themselves, which are copied and scaled to mean 1.

        ================= ============== ====================================== ==============
        family            alpha          meaning                                convex
        ================= ============== ====================================== ==============
        ``uniform``       ignored        all weights 1: the classical SVM       always
        ``basic``         > 0            :math:`Q = r^\alpha`                   alpha <= 1
        ``quadratic``     in (0, 1)      :math:`Q = 1/(1 - \alpha \sqrt{r})`    alpha <= 1/3
        ``exponential``   > 0            :math:`Q = e^{-\alpha r}`              always
        ``trigonometric`` in (0, 1]      :math:`Q = \arcsin(\alpha r)`          never
        ``superquantile`` in (0, 1]      only the worst share alpha counts      always
        ``trimmed``       in (0, 1)      the worst share alpha is ignored       never
        ``max-entropy``   in (0, 1)      weights of largest entropy whose       alpha >= 1/2
                                         orness is alpha
        ``olympic``       in (0, 1]      only the middle share alpha counts     alpha = 1
        ================= ============== ====================================== ==============

        The last column holds for every n, with a few more convex cases when n is small;
        :func:`is_convex` decides. The orness is
        :math:`\sum_k \frac{k-1}{n-1} \lambda_k / \sum_k \lambda_k`: 1 for the largest
        deviation alone, 1/2 for uniform weights.
    alpha : float, default=0.6
        Shape of a named family; ignored for ``"uniform"``, callables and arrays.

    Returns
    -------
    weights : ndarray of shape (n,)
        Each weight of a named family is accurate to a few units in the last place for any n.

    Raises
    ------
    TypeError, ValueError
        Unknown family, parameter out of range, or an array that is not a vector of n finite,
        non-negative numbers that are not all zero.

    See Also
    --------
    is_convex : Tell whether weights make the loss convex.
    weights_in_order : The same for weighted samples.

    References
    ----------
    .. [1] A. Marín, L. I. Martínez-Merino, J. Puerto, A. M. Rodríguez-Chía, "The soft-margin
       Support Vector Machine with ordered weighted average", Knowledge-Based Systems 237
       (2022) 107705.
    .. [2] M. O'Hagan, "Aggregating template or rule antecedents in real-time expert systems
       with fuzzy set logic", 22nd Asilomar Conference on Signals, Systems and Computers (1988).

    Examples
    --------
    >>> from owasvm.weights import owa_weights
    >>> owa_weights(4, "basic", 0.5).round(3)
    array([0.536, 0.636, 0.828, 2.   ])
    >>> owa_weights(4, "superquantile", 0.5)
    array([0., 0., 2., 2.])
    >>> owa_weights(4, lambda r: r**0.5).round(3)
    array([0.536, 0.636, 0.828, 2.   ])
    >>> owa_weights(4, [0, 1, 1, 2])
    array([0., 1., 1., 2.])
    """
    count = _check_count(n)
    if is_family(family):
        share = share_function(family, alpha, total=count)
        return _weigh_slices(share, _equal_slices(count))
    return _normalise(_check_vector(family, "weights", count))


def weights_in_order(share: Share, sample_weight: ArrayLike) -> FloatArray:
    r"""Return the cost weights of weighted samples in ascending order of deviation.

    With S the total of the sample weights and :math:`S_i` the sample weight accumulated from
    the largest deviation down to sample i, itself included, the weight of sample i is

    .. math:: S \left[ G(S_i / S) - G((S_i - s_i) / S) \right].

    So a whole-number sample weight equals that many copies of the sample, and zero equals
    absence. Sample weights of 1 give the weights of :func:`owa_weights`, with mean 1.

    Parameters
    ----------
    share : callable
        The share function G, usually from :func:`share_function`.
    sample_weight : array-like of shape (n_samples,)
        Non-negative sample weights, sorted as the deviations are: the last belongs to the
        sample with the largest deviation.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        The weights, in the same order; they sum to S. For convex families the weight per unit
        of sample weight, ``weights / sample_weight``, is non-decreasing.

    Raises
    ------
    ValueError
        Sample weights that are not a vector of finite, non-negative numbers, not all zero.

    Examples
    --------
    The sample with the largest deviation stands for two copies:

    >>> from owasvm.weights import owa_weights, share_function, weights_in_order
    >>> weights_in_order(share_function("basic", 0.5), [1.0, 0.0, 1.0, 2.0]).round(3)
    array([0.536, 0.   , 0.636, 2.828])
    >>> owa_weights(4, "basic", 0.5).round(3)
    array([0.536, 0.636, 0.828, 2.   ])
    """
    return weigh_in_order(share, _check_vector(sample_weight, "sample_weight", None))


def weigh_in_order(share: Share, amount: FloatArray) -> FloatArray:
    """:func:`weights_in_order` for positive sample weights that were checked."""
    # The unit of the sample weights does not matter; a power of two changes it without rounding,
    # and weights near the ends of the range of doubles neither vanish nor overflow on the way.
    _, exponent = math.frexp(float(amount.max()))
    scaled = np.ldexp(amount, -exponent)
    return np.ldexp(_weigh_slices(share, _weighted_slices(scaled)), exponent)


def _weigh_slices(share: Share, slices: Slices) -> FloatArray:
    """Weights of slices, scaled so that they sum to the total."""
    if isinstance(share, _NamedShare):
        weights = share.weights(slices)
    else:
        increments = -np.diff(np.asarray(share(slices.top), dtype=np.float64))
        # What rounding makes negative; a share function that falls is the caller's fault.
        weights = np.maximum(slices.total * increments, 0.0)
    return weights * (slices.total / float(weights.sum()))


def _check_count(n: int) -> int:
    if isinstance(n, bool | np.bool_):
        raise TypeError(f"n={n!r} must be a whole number of samples.")
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"n={n!r} must be a whole number of samples.") from None
    if count < 1:
        raise ValueError(f"n={n!r} must be at least 1.")
    return count


def _check_vector(values: ArrayLike, name: str, length: int | None) -> FloatArray:
    """A float vector of finite, non-negative numbers that are not all zero."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers; got {values!r}.") from None
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {vector.shape}.")
    if length is not None and vector.size != length:
        raise ValueError(
            f"{name} has {vector.size} entries for {length} samples; give one for each sample."
        )
    for is_bad, what in ((~np.isfinite(vector), "not finite"), (vector < 0.0, "negative")):
        if np.any(is_bad):
            place = int(np.flatnonzero(is_bad)[0])
            raise ValueError(
                f"{name}[{place}]={vector[place]} is {what}; use finite numbers >= 0."
            )
    if not np.any(vector):
        raise ValueError(f"{name} is all zero or empty; at least one entry must be positive.")
    return vector


def _normalise(vector: FloatArray) -> FloatArray:
    """Scale to mean 1; the division by the largest entry keeps the sum from overflowing."""
    scaled = vector / vector.max()
    return scaled * (scaled.size / float(scaled.sum()))


def is_convex(weights: ArrayLike, tol: float = 1e-13) -> bool:
    r"""Tell whether weights make the ordered weighted average convex.

    Deviations are sorted in ascending order, ``weights[k]`` meets the k-th smallest, and the
    average is convex exactly when the weights are non-decreasing, that is, when their partial
    sums are convex in k. The answer is True when no partial sum lies more than ``tol`` times
    the sum of all weights above the greatest convex function below them.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weights in ascending order of deviation.
    tol : float, default=1e-13
        Largest violation, as a share of the total weight. Zero asks for exactly
        non-decreasing numbers.

    Returns
    -------
    convex : bool
        True when the weights are non-decreasing up to ``tol``.

    Raises
    ------
    ValueError
        Weights that are not a non-empty vector of finite numbers, or a negative ``tol``.

    Notes
    -----
    Why partial sums: weights made as differences of a quantifier carry errors of about
    n times the machine precision relative to their mean, yet these errors cancel in the sums,
    which stay accurate to the machine precision whatever n is. A true fall of the weights
    adds up over its whole length instead. So one fixed tolerance keeps rounding and truth
    apart for n = 10^6, where neighbouring weights differ by less than their rounding errors.

    What the tolerance means: weights accepted as convex differ from truly non-decreasing ones
    (their isotonic regression) by a change of the loss of at most ``tol`` times the total
    weight times the largest deviation. With the default, a fall at one single position of
    n = 10^6 is found from 2e-7 of the mean weight on, and the quadratic family from
    alpha = 1/3 + 5e-5 on.

    The cost is O(n).

    Examples
    --------
    >>> from owasvm.weights import is_convex, owa_weights
    >>> is_convex(owa_weights(1_000_000, "quadratic", 0.2))
    True
    >>> is_convex(owa_weights(1_000_000, "quadratic", 0.34))
    False
    """
    vector = np.ascontiguousarray(weights, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0 or not np.all(np.isfinite(vector)):
        raise ValueError(
            f"weights must be a non-empty vector of finite numbers; got shape {vector.shape}"
            f"{'' if np.all(np.isfinite(vector)) else ' with values that are not finite'}."
        )
    if not tol >= 0.0:
        raise ValueError(f"tol={tol!r} must be a number >= 0.")
    if np.all(vector[1:] >= vector[:-1]):
        return True
    scaled = vector / np.max(np.abs(vector))
    allowed = tol * np.sum(np.abs(scaled))
    # Where weights fall at once, the minorant is below by half as much.
    if 0.5 * np.max(scaled[:-1] - scaled[1:]) > 2.0 * allowed:
        return False
    return bool(_convexity_gap(scaled) <= allowed)


@njit(cache=True)
def _convexity_gap(weights: FloatArray) -> float:
    """Largest excess of the partial sums over their greatest convex minorant.

    The minorant is linear on the blocks of the isotonic regression of the weights.
    """
    n = weights.size
    ends = np.empty(n, dtype=np.int64)
    means = np.empty(n, dtype=np.float64)
    n_blocks = 0
    for i in range(n):
        mean, end = weights[i], i + 1
        start = i
        while n_blocks > 0 and means[n_blocks - 1] >= mean:
            n_blocks -= 1
            previous_start = ends[n_blocks - 1] if n_blocks > 0 else 0
            share = (start - previous_start) / (end - previous_start)
            mean += (means[n_blocks] - mean) * share
            start = previous_start
        means[n_blocks] = mean
        ends[n_blocks] = end
        n_blocks += 1

    gap = 0.0
    start = 0
    for block in range(n_blocks):
        end = ends[block]
        # The mean is taken anew from the differences to one entry: in a block made by
        # rounding they are tiny, so their sum keeps the digits that decide.
        anchor = weights[start]
        drift = 0.0
        for i in range(start, end):
            drift += weights[i] - anchor
        drift /= end - start
        excess = 0.0
        for i in range(start, end):
            excess += (weights[i] - anchor) - drift
            gap = max(gap, excess)
        start = end
    return gap
