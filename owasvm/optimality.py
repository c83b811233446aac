r"""Objective, lower bound and gap: computed here and nowhere else, trusting no solver.

With ``w = sum_i a_i y_i phi(x_i)`` and costs ``c = C * weights``:

primal
    :math:`F(w, b) = \tfrac12 |w|^2 + \sum_k c_k \xi_{(k)}`,
    :math:`\xi_i = \max(0, 1 - y_i f(x_i))`.
dual
    :math:`D(a) = \sum_i a_i - \tfrac12 |w|^2 \le F(w', b')` for every (w', b') as soon as
    ``y'a = 0``, ``a >= 0``, and the j largest entries of a sum to at most the last j costs, for
    every j. Then ``a'xi`` never exceeds the ordered sum of ``xi``. For costs that do not fall this
    is the set P(c) of :func:`owasvm.loss.project_dual`; for others it holds as well, and contains
    P(m) for every non-decreasing minorant m (:mod:`owasvm.rank_split`).

A point handed in is first made feasible, so the bound holds up to rounding whatever it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.intercept import best_intercept
from owasvm.loss import hinge_deviations
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import relative_gap

FloatArray = NDArray[np.float64]

# Relative improvement for which a classifier may leave the dual feasible set.
_WORTH_INFEASIBLE = 1e-7

__all__ = [
    "Certificate",
    "best_intercept",
    "certificate",
    "dual_value",
    "feasible_dual",
    "judge",
    "objective",
]


@dataclass(frozen=True, eq=False)
class Certificate:
    """A classifier, its objective, and how far from optimal it can be at most.

    Parameters
    ----------
    objective : float
        Value of the primal problem at the classifier.
    lower_bound : float
        Proven bound on the primal optimum.
    dual : ndarray of shape (n_samples,)
        The coefficients a of the classifier; the feasible dual point behind `lower_bound`, unless
        a solver handed over coefficients of its own.
    intercept : float
        The intercept b of the classifier.
    deviations : ndarray of shape (n_samples,)
        Its hinge deviations.
    weight : ndarray of shape (n_features,) or None, default=None
        w of the classifier, for problems given by features.
    """

    objective: float
    lower_bound: float
    dual: FloatArray
    intercept: float
    deviations: FloatArray
    weight: FloatArray | None = None

    @property
    def gap(self) -> float:
        """Relative gap ``(objective - lower_bound) / max(1, |objective|)``."""
        return relative_gap(self.objective, self.lower_bound)


def objective(
    problem: OWAProblem, squared_norm: float, scores: FloatArray, intercept: float
) -> tuple[float, FloatArray]:
    """Objective of a classifier and its hinge deviations.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    squared_norm : float
        ``|w|^2``.
    scores : ndarray of shape (n_samples,)
        ``<w, phi(x_i)>`` of the training samples.
    intercept : float
        b.

    Returns
    -------
    objective : float
    deviations : ndarray of shape (n_samples,)
    """
    deviations = hinge_deviations(scores + intercept, problem.y)
    order = np.argsort(deviations, kind="stable")
    loss = float(problem.costs.in_order(order) @ deviations[order])
    return 0.5 * squared_norm + loss, deviations


def dual_value(problem: OWAProblem, dual: FloatArray) -> float:
    """``D(a) = sum(a) - 1/2 |w|^2``; a lower bound only if `dual` is feasible."""
    return float(dual.sum()) - 0.5 * float((problem.y * dual) @ problem.scores(dual))


def _polymatroid_excess(costs: RankCosts, dual: FloatArray) -> float:
    """Factor by which a non-negative `dual` exceeds the prefix sums that define P."""
    density = dual if costs.sample_weight is None else dual / costs.sample_weight
    order = np.argsort(-density, kind="stable")
    if costs.sample_weight is not None and not costs.convex:
        # Where the share function is not concave, sets between the prefixes are tighter still.
        return np.inf if np.any(dual > 0.0) else 0.0
    bounds = np.cumsum(costs.largest_first(order))
    totals = np.cumsum(dual[order])
    counted = bounds > 0.0
    if np.any(totals[~counted] > 0.0):
        return np.inf
    return float(np.max(totals[counted] / bounds[counted], initial=0.0))


def feasible_dual(
    problem: OWAProblem, dual: FloatArray, slack: FloatArray | None = None
) -> FloatArray:
    """Nearby point of the dual feasible set: ``a`` in P, ``y'a = 0``.

    Negative entries are raised to 0, a point outside P is scaled into it, and the heavier class
    is lowered until the classes balance, which keeps the point in P. Lowering starts with the
    samples of the smallest `slack`, where it costs the least.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    dual : ndarray of shape (n_samples,)
        Any numbers.
    slack : ndarray of shape (n_samples,) or None, default=None
        ``1 - y_i f(x_i)`` of the classifier that belongs to `dual`; without it the heavier class
        is scaled down as a whole.

    Returns
    -------
    dual : ndarray of shape (n_samples,)
    """
    point = np.maximum(dual, 0.0)
    excess = _polymatroid_excess(problem.costs, point)
    if excess > 1.0:
        point = point / excess
    surplus = float(problem.y @ point)
    heavier = problem.y * surplus > 0
    if surplus == 0.0:
        return point
    if slack is None:
        point[heavier] *= 1.0 - abs(surplus) / float(point[heavier].sum())
        return point
    candidates = np.flatnonzero(heavier & (point > 0))
    candidates = candidates[np.argsort(slack[candidates], kind="stable")]
    removed = np.minimum(np.cumsum(point[candidates]), abs(surplus))
    point[candidates] -= np.diff(removed, prepend=0.0)
    return np.maximum(point, 0.0)


def judge(
    problem: OWAProblem,
    dual: FloatArray,
    intercept: float | None = None,
    *,
    weight: FloatArray | None = None,
    coef: FloatArray | None = None,
    intercept_within: float = np.inf,
) -> Certificate:
    """Certificate of the classifier ``w = sum_i a_i y_i phi(x_i)``.

    For convex weights the coefficients are first made dual feasible, the classifier is that of the
    feasible point, and the intercept is replaced by the exact minimiser for w (the midpoint, when
    it is an interval). Other weights keep both as they are.

    The sum that gives w loses digits when large terms cancel, as they do for features far from
    unit scale or a large C, and small errors of w cost much when C is large. A solver may
    therefore hand over its own w, or coefficients that need not be dual feasible: the classifier
    is then the better of both, while the bound stays that of the feasible point.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    dual : ndarray of shape (n_samples,)
        Coefficients a.
    intercept : float or None, default=None
        The intercept, or a guess of the best one.
    weight : ndarray of shape (n_features,) or None, default=None
        w itself, for problems given by features and convex weights.
    coef : ndarray of shape (n_samples,) or None, default=None
        Other coefficients for the classifier, for problems given by a Gram matrix and convex
        weights. Negative ones count as 0.
    intercept_within : float, default=inf
        Leave the intercept as it is when the gap with it is larger than this: solvers ask for a
        certificate more often than they need the last digit of it.

    Returns
    -------
    certificate : Certificate
    """
    y = problem.y
    guess = 0.0 if intercept is None else float(intercept)
    given = np.asarray(dual, dtype=np.float64)
    scores = problem.scores(given)
    feasible = feasible_dual(problem, given, 1.0 - y * (scores + guess))
    if np.array_equal(feasible, given):
        feasible_scores = scores
    else:
        feasible_scores = problem.scores(feasible)
    feasible_norm = max(float((y * feasible) @ feasible_scores), 0.0)
    bound = max(float(feasible.sum()) - 0.5 * feasible_norm, 0.0)
    if not problem.costs.convex:
        squared_norm = max(float((y * given) @ scores), 0.0)
        value, deviations = objective(problem, squared_norm, scores, guess)
        return Certificate(value, bound, given, guess, deviations)
    value, deviations = objective(problem, feasible_norm, feasible_scores, guess)
    scores, squared_norm = feasible_scores, feasible_norm
    chosen = None
    if problem.features is not None:
        chosen = np.asarray(problem.features.T @ (y * feasible)).ravel()
    if weight is not None and problem.features is not None:
        direct_scores = np.asarray(problem.features @ weight).ravel()
        direct_norm = float(weight @ weight)
        direct, direct_deviations = objective(problem, direct_norm, direct_scores, guess)
        if direct < value:
            value, deviations, chosen = direct, direct_deviations, weight.copy()
            scores, squared_norm = direct_scores, direct_norm
    point = feasible
    if coef is not None and problem.gram is not None:
        own = np.maximum(coef, 0.0)
        own_scores = problem.scores(own)
        own_norm = max(float((y * own) @ own_scores), 0.0)
        own_value, own_deviations = objective(problem, own_norm, own_scores, guess)
        # Coefficients that prove their own bound are worth more than a last digit.
        if own_value < value - _WORTH_INFEASIBLE * max(1.0, abs(value)):
            value, deviations, point = own_value, own_deviations, own
            scores, squared_norm = own_scores, own_norm
    if relative_gap(value, bound) <= intercept_within:
        guess = best_intercept(scores, y, problem.costs, guess)
        value, deviations = objective(problem, squared_norm, scores, guess)
    return Certificate(value, bound, point, guess, deviations, chosen)


def certificate(
    X: Any = None,
    y: ArrayLike | None = None,
    weights: str | ArrayLike = "basic",
    C: float = 1.0,
    dual: ArrayLike | None = None,
    intercept: float = 0.0,
    *,
    gram: ArrayLike | None = None,
    alpha: float | None = 0.6,
    sample_weight: ArrayLike | None = None,
) -> Certificate:
    """Recompute objective, lower bound and gap of a classifier from the data alone.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
        Samples of a linear model. Give `gram` instead for a kernel.
    y : array-like of shape (n_samples,)
        Two classes; the larger label is the positive one.
    weights : str, callable or array-like of shape (n_samples,), default="basic"
        OWA weights, ``weights[k]`` for the k-th smallest deviation; normalised to mean 1.
    C : float, default=1.0
        Factor of the loss.
    dual : array-like of shape (n_samples,)
        The ``a_i`` of ``w = sum_i a_i y_i phi(x_i)`` with ``y_i`` in {-1, +1}; the signed
        ``y_i a_i`` of ``dual_coef_`` work as well.
    intercept : float, default=0.0
        b.
    gram : array-like of shape (n_samples, n_samples) or None, default=None
        Kernel matrix.
    alpha : float or None, default=0.6
        Shape of a named family.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Positive sample weights.

    Returns
    -------
    certificate : Certificate
        ``objective`` is that of the classifier handed in, ``lower_bound`` that of the nearest
        feasible dual point; ``gap`` follows from both.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm import OWASVC
    >>> from owasvm.optimality import certificate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    >>> model = OWASVC(kernel="linear").fit(X, y)
    >>> dual = np.zeros(40)
    >>> dual[model.support_] = model.dual_coef_[0]
    >>> proof = certificate(X, y, "basic", 1.0, dual, model.intercept_[0], alpha=0.6)
    >>> bool(proof.gap < 1e-6), bool(abs(proof.objective - model.objective_) < 1e-9)
    (True, True)
    """
    if y is None or dual is None:
        raise ValueError("certificate needs y and dual.")
    labels = np.asarray(y)
    classes = np.unique(labels)
    if classes.size != 2:
        raise ValueError(f"y must hold two classes, got {classes.size}.")
    signs = np.where(labels == classes[1], 1.0, -1.0)
    coefficients = np.asarray(dual, dtype=np.float64).ravel()
    if coefficients.size != signs.size:
        raise ValueError(
            f"dual must hold one entry a sample ({signs.size}), got {coefficients.size}; "
            "fill the entries outside support_ with zeros."
        )
    if np.any(coefficients < 0):
        coefficients = signs * coefficients
    features = None
    kernel = None
    if gram is not None:
        kernel = np.asarray(gram, dtype=np.float64)
    elif X is not None:
        features = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    costs = RankCosts(signs.size, weights, alpha, C, sample_weight)
    problem = OWAProblem(signs, costs, features, kernel)
    scores = problem.scores(coefficients)
    squared_norm = max(float((signs * coefficients) @ scores), 0.0)
    value, deviations = objective(problem, squared_norm, scores, float(intercept))
    feasible = feasible_dual(problem, coefficients, 1.0 - signs * (scores + intercept))
    bound = max(dual_value(problem, feasible), 0.0)
    return Certificate(value, bound, feasible, float(intercept), deviations)
