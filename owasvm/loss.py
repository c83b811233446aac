r"""The OWA hinge loss: value, subgradient, prox, conjugate and dual set.

Notation
--------
===================  ===================================================================
``xi``               hinge deviations ``max(0, 1 - y f)``, sorted ascending
                     ``xi_(1) <= ... <= xi_(n)``
``weights``          ascending positions: ``weights[k]`` meets the k-th smallest deviation;
                     the named families have mean 1. Non-decreasing weights make the loss
                     convex
``Phi(x)``           the OWA hinge ``sum_k weights[k] * max(x, 0)_(k)``
``P(weights)``       the dual set ``{a >= 0 : for every m, the sum of the m largest a_i is at
                     most the sum of the m largest weights}``
===================  ===================================================================

For non-decreasing weights ``Phi(x) = max {a'x : a in P(weights)}``, so the conjugate of ``Phi`` is
0 on ``P(weights)`` and infinite elsewhere, and prox and projection add up to the identity
(Moreau). Where a function needs this it refuses other weights.

Everything costs O(n log n) at most; no input is changed.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.costs import PlainCosts, prefix_excess
from owasvm.losses import ProxPoint, RankedHinge
from owasvm.weights import is_convex

FloatArray = NDArray[np.float64]

__all__ = [
    "conjugate",
    "dual_slack",
    "hinge_deviations",
    "in_dual_set",
    "owa",
    "owa_subgradient",
    "project_dual",
    "prox",
]


def _as_vector(name: str, values: ArrayLike) -> FloatArray:
    """Return a float64 copy of `values`, or say what is wrong with it."""
    given = np.asarray(values)
    if np.iscomplexobj(given):
        raise ValueError(f"{name} must hold real numbers, got dtype {given.dtype}.")
    try:
        # A copy of its own: numba would compile anew for read-only or strided arrays.
        vector = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, got dtype {given.dtype}.") from error
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got an array of shape {given.shape}.")
    if vector.size == 0:
        raise ValueError(f"{name} is empty; give at least one entry.")
    finite = np.isfinite(vector)
    if not finite.all():
        position = int(np.argmin(finite))
        raise ValueError(
            f"{name} must be finite, got {vector[position]} at position {position}; "
            "remove or repair such entries first."
        )
    return vector


def _check_lengths(name: str, vector: FloatArray, other_name: str, other: FloatArray) -> None:
    """Refuse two vectors of different lengths."""
    if vector.size != other.size:
        raise ValueError(
            f"{name} and {other_name} must have the same length, one entry per sample: "
            f"got {vector.size} and {other.size}."
        )


def _as_rank_weights(weights: ArrayLike, *, convex: bool = False) -> FloatArray:
    """Return checked rank weights: non-negative, and non-decreasing if `convex`."""
    vector = _as_vector("weights", weights)
    if vector.min() < 0.0:
        position = int(np.argmin(vector))
        raise ValueError(
            f"weights must be non-negative, got {vector[position]} at position {position}."
        )
    if convex and not is_convex(vector):
        position = int(np.argmin(np.diff(vector)))
        raise ValueError(
            "weights must be non-decreasing (the convex case), got "
            f"{vector[position]} followed by {vector[position + 1]} at position {position}; "
            "weights[k] meets the k-th smallest deviation, so check the order, or use a convex "
            "family."
        )
    return vector


def _check_step(step: float) -> float:
    """Return `step` as a float, positive and finite."""
    checked = float(step)
    if not 0.0 < checked < np.inf:
        raise ValueError(f"step must be positive and finite, got {step}.")
    return checked


def hinge_deviations(decision_values: ArrayLike, y: ArrayLike) -> FloatArray:
    """Hinge deviations ``max(0, 1 - y_i f_i)`` of each sample.

    Parameters
    ----------
    decision_values : array-like of shape (n_samples,)
        The values ``f_i`` of the decision function.
    y : array-like of shape (n_samples,)
        Labels, each -1 or +1.

    Returns
    -------
    deviations : ndarray of shape (n_samples,)
        Non-negative; 0 for samples on or behind the right side of the margin.

    Examples
    --------
    >>> from owasvm.loss import hinge_deviations
    >>> hinge_deviations([2.0, 0.5, -1.0], [1, 1, 1])
    array([0. , 0.5, 2. ])
    """
    values = _as_vector("decision_values", decision_values)
    labels = _as_vector("y", y)
    _check_lengths("decision_values", values, "y", labels)
    if not np.all(np.abs(labels) == 1.0):
        stranger = labels[np.abs(labels) != 1.0][0]
        raise ValueError(f"y must hold the labels -1 and +1 only, got {stranger}.")
    return np.maximum(1.0 - labels * values, 0.0)


def owa(deviations: ArrayLike, weights: ArrayLike) -> float:
    """Ordered weighted average ``sum_k weights[k] * sorted(deviations)[k]``.

    With weights of mean 1 this is a sum over the samples, not a mean: equal weights give
    ``sum(deviations)``.

    Parameters
    ----------
    deviations : array-like of shape (n_samples,)
        Any real numbers.
    weights : array-like of shape (n_samples,)
        Non-negative, ascending positions: ``weights[k]`` meets the k-th smallest deviation. The
        function is convex in `deviations` if and only if the weights are non-decreasing; any
        order is accepted.

    Returns
    -------
    value : float

    See Also
    --------
    owasvm.weights.owa_weights : Weight vectors of mean 1 by name.

    Examples
    --------
    >>> from owasvm.loss import owa
    >>> owa([3.0, 0.0, 1.0], [0.0, 1.0, 2.0])
    7.0
    """
    values = _as_vector("deviations", deviations)
    rank_weights = _as_rank_weights(weights)
    _check_lengths("deviations", values, "weights", rank_weights)
    return float(rank_weights @ np.sort(values))


def owa_subgradient(deviations: ArrayLike, weights: ArrayLike) -> FloatArray:
    """Rank weights handed to the samples: a subgradient of the OWA hinge.

    Sample i receives ``weights[k]`` when its deviation is the k-th smallest and positive, and 0
    when its deviation is 0 or negative. For non-decreasing weights the result ``a`` is a
    subgradient of ``Phi(x) = sum_k weights[k] * max(x, 0)_(k)`` at `deviations`: it lies in
    ``P(weights)`` and ``a'x = Phi(x)``. For other weights it is a limit of gradients.

    Parameters
    ----------
    deviations : array-like of shape (n_samples,)
        Deviations, or the real numbers ``1 - y f`` before they are cut at 0.
    weights : array-like of shape (n_samples,)
        Non-negative, ascending positions: ``weights[k]`` meets the k-th smallest deviation;
        non-decreasing weights are the convex case.

    Returns
    -------
    subgradient : ndarray of shape (n_samples,)
        Among equal deviations the earlier sample takes the later weight. At 0 every value from 0
        to the sample's rank weight would do; 0 is given.

    Examples
    --------
    >>> from owasvm.loss import owa_subgradient
    >>> owa_subgradient([3.0, 0.0, 1.0, 3.0], [0.4, 0.8, 1.2, 1.6])
    array([1.6, 0. , 0.8, 1.2])
    """
    values = _as_vector("deviations", deviations)
    rank_weights = _as_rank_weights(weights)
    _check_lengths("deviations", values, "weights", rank_weights)
    return RankedHinge(PlainCosts(rank_weights)).subgradient(values)


def _prox_and_dual(
    v: ArrayLike, weights: ArrayLike, step: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check the inputs; return the prox, its dual ``v - prox`` and the checked weights."""
    values = _as_vector("v", v)
    rank_weights = _as_rank_weights(weights, convex=True)
    _check_lengths("v", values, "weights", rank_weights)
    point = ProxPoint(values.size)
    RankedHinge(PlainCosts(_check_step(step) * rank_weights)).prox(values, 1.0, point)
    return point.prox, point.dual, rank_weights


def prox(v: ArrayLike, weights: ArrayLike, step: float = 1.0) -> FloatArray:
    r"""Proximal point of the OWA hinge.

    .. math::

        \operatorname{argmin}_x \tfrac12 \|x - v\|^2
        + \text{step} \sum_k \text{weights}_k \max(x, 0)_{(k)}

    Entries at or below 0 stay. The others, sorted, lose ``step * weights``, the largest entry the
    last weight; pooling adjacent violators restores the order; the result is clipped at 0.

    Parameters
    ----------
    v : array-like of shape (n_samples,)
        Any real numbers.
    weights : array-like of shape (n_samples,)
        Non-negative and non-decreasing, ascending positions: ``weights[k]`` meets the k-th
        smallest deviation. Other weights make the loss non-convex and raise a ValueError.
    step : float, default=1.0
        Positive factor of the loss.

    Returns
    -------
    x : ndarray of shape (n_samples,)
        Ordered like `v`; entries pooled together are equal to the last bit.

    See Also
    --------
    project_dual : What the prox takes away.

    Examples
    --------
    >>> from owasvm.loss import prox
    >>> prox([3.0, 2.5, 0.5, -1.0], [0.25, 0.75, 1.0, 2.0])
    array([ 1.25,  1.25,  0.  , -1.  ])
    """
    minimiser, _, _ = _prox_and_dual(v, weights, step)
    return minimiser


def project_dual(v: ArrayLike, weights: ArrayLike) -> FloatArray:
    """Projection on the dual set ``P(weights)``.

    ``P(weights)`` holds the ``a >= 0`` for which, for every m, the sum of the m largest ``a_i`` is
    at most the sum of the m largest weights. Mathematically the projection is ``v - prox(v)``
    (Moreau); it is computed without that subtraction, which would lose digits when `v` is much
    larger than the weights.

    Parameters
    ----------
    v : array-like of shape (n_samples,)
        Any real numbers.
    weights : array-like of shape (n_samples,)
        Non-negative and non-decreasing, ascending positions: ``weights[k]`` meets the k-th
        smallest deviation. Other weights raise a ValueError.

    Returns
    -------
    a : ndarray of shape (n_samples,)
        Ordered like `v`, and inside ``P(weights)`` up to the rounding of the sums, however large
        `v` is.

    See Also
    --------
    in_dual_set : Membership of ``P(weights)``.

    Examples
    --------
    >>> from owasvm.loss import project_dual
    >>> project_dual([3.0, 2.5, 0.5, -1.0], [0.25, 0.75, 1.0, 2.0])
    array([1.75, 1.25, 0.5 , 0.  ])
    """
    _, dual, rank_weights = _prox_and_dual(v, weights, 1.0)
    # The pooling works at the precision of v. Where v is far larger than the weights its rounding
    # could leave the sums too large; shrinking is safe since P is closed under it.
    excess = prefix_excess(np.sort(dual)[::-1], rank_weights[::-1])
    return dual / max(excess, 1.0)


def _prefix_sums(a: FloatArray, rank_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums of the m largest entries of `a` and of the m last weights, m = 1..n."""
    return np.cumsum(np.sort(a)[::-1]), np.cumsum(rank_weights[::-1])


def dual_slack(a: ArrayLike, weights: ArrayLike) -> float:
    """Smallest slack of the prefix sums that define ``P(weights)``.

    ``min_m (sum of the m largest weights - sum of the m largest a_i)``. The condition ``a >= 0``
    is not part of it; :func:`in_dual_set` checks both.

    Parameters
    ----------
    a : array-like of shape (n_samples,)
        Dual variables.
    weights : array-like of shape (n_samples,)
        Non-negative and non-decreasing, ascending positions: ``weights[k]`` meets the k-th
        smallest deviation. Other weights raise a ValueError.

    Returns
    -------
    slack : float
        Negative when a prefix sum is too large.

    Examples
    --------
    >>> from owasvm.loss import dual_slack
    >>> dual_slack([1.0, 0.0, 1.25], [0.5, 0.5, 2.0])
    0.25
    """
    values = _as_vector("a", a)
    rank_weights = _as_rank_weights(weights, convex=True)
    _check_lengths("a", values, "weights", rank_weights)
    totals, bounds = _prefix_sums(values, rank_weights)
    return float(np.min(bounds - totals))


def in_dual_set(a: ArrayLike, weights: ArrayLike, tol: float = 1e-9) -> bool:
    """Whether `a` lies in ``P(weights)``, up to a relative tolerance.

    True when every ``a_i >= -tol * max(weights)`` and, for every m, the sum of the m largest
    ``a_i`` is at most ``1 + tol`` times the sum of the m largest weights. Scaling `a` and
    `weights` together changes nothing.

    Parameters
    ----------
    a : array-like of shape (n_samples,)
        Dual variables.
    weights : array-like of shape (n_samples,)
        Non-negative and non-decreasing, ascending positions: ``weights[k]`` meets the k-th
        smallest deviation. Other weights raise a ValueError.
    tol : float, default=1e-9
        Relative tolerance, non-negative; the rounding of sums over a million samples stays below
        the default.

    Returns
    -------
    inside : bool

    Examples
    --------
    >>> from owasvm.loss import in_dual_set
    >>> in_dual_set([1.0, 0.0, 1.25], [0.5, 0.5, 2.0])
    True
    >>> in_dual_set([1.0, 0.0, 2.25], [0.5, 0.5, 2.0])
    False
    """
    values = _as_vector("a", a)
    rank_weights = _as_rank_weights(weights, convex=True)
    _check_lengths("a", values, "weights", rank_weights)
    tolerance = float(tol)
    if not tolerance >= 0.0:
        raise ValueError(f"tol must be non-negative, got {tol}.")
    if values.min() < -tolerance * rank_weights.max():
        return False
    totals, bounds = _prefix_sums(values, rank_weights)
    return bool(np.all(totals <= (1.0 + tolerance) * bounds))


def conjugate(a: ArrayLike, weights: ArrayLike, tol: float = 1e-9) -> float:
    """Convex conjugate of the OWA hinge: the indicator of ``P(weights)``.

    ``sup_x a'x - sum_k weights[k] * max(x, 0)_(k)`` is 0 on ``P(weights)`` and infinite elsewhere.

    Parameters
    ----------
    a : array-like of shape (n_samples,)
        Dual variables.
    weights : array-like of shape (n_samples,)
        Non-negative and non-decreasing, ascending positions: ``weights[k]`` meets the k-th
        smallest deviation. Other weights raise a ValueError.
    tol : float, default=1e-9
        Relative tolerance of the membership, as in :func:`in_dual_set`.

    Returns
    -------
    value : float
        0.0 or ``inf``.

    Examples
    --------
    >>> from owasvm.loss import conjugate
    >>> conjugate([1.0, 0.0, 1.25], [0.5, 0.5, 2.0])
    0.0
    >>> conjugate([-1.0, 0.0, 1.25], [0.5, 0.5, 2.0])
    inf
    """
    return 0.0 if in_dual_set(a, weights, tol) else np.inf
