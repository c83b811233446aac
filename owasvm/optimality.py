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

A point handed in is first made feasible. What is left of infeasibility, and everything that
rounding can have added, of the kernel values, of products and of sums, is bounded and taken off,
so that the bound holds for the problem that was stated and not only for its image in double
precision (``docs/mathematics.md``, "Rounding").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.intercept import best_intercept
from owasvm.loss import dual_excess
from owasvm.problem import OWAProblem, RankCosts
from owasvm.rounding import (
    UNIT,
    accumulated,
    exact_dot,
    longest_row,
    product_without_loss,
    sum_with_error,
)
from owasvm.solution import relative_gap

FloatArray = NDArray[np.float64]

# Relative improvement for which a classifier may leave the dual feasible set.
_WORTH_INFEASIBLE = 1e-7
# Of a classifier that is w = 0 up to this share of its objective nothing but noise is left.
_NOISE = 1e-12
# What an objective can be off by and still be charged to no bound of 0.
_IMMATERIAL = 1e-10
# A dual point may exceed what it may sum to by this share, and be as unbalanced. The bound pays.
_NEARLY = 1e-12
# Rounding of the costs themselves: quantifier, normalisation, C.
_COST_ROUNDINGS = 16
# Rounding of the shifts of an anchored kernel, which are computed with more digits and rounded.
_SHIFT_ROUNDINGS = 4 if np.finfo(np.longdouble).eps < 1e-18 else 1000
_CONSTANT_ROUNDINGS = 100

__all__ = [
    "Certificate",
    "best_intercept",
    "certificate",
    "charged_bound",
    "dual_value",
    "feasible_dual",
    "judge",
    "objective",
    "proven_value",
]


@dataclass(frozen=True, eq=False)
class Certificate:
    """A classifier, its objective, and how far from optimal it can be at most.

    Parameters
    ----------
    objective : float
        Value of the primal problem at the classifier.
    lower_bound : float
        Proven bound on the primal optimum; ``-inf`` where there is none.
    dual : ndarray of shape (n_samples,)
        The coefficients a of the classifier; the feasible dual point behind `lower_bound`, unless
        a solver handed over coefficients of its own.
    intercept : float
        The intercept b of the classifier.
    deviations : ndarray of shape (n_samples,)
        Its hinge deviations.
    weight : ndarray of shape (n_features,) or None, default=None
        w of the classifier, for problems given by features.
    rounding : float, default=0.0
        What was taken off the bound: what rounding can have added to it, and to the objective.
    objective_rounding : float, default=0.0
        The latter alone.
    floor : float, default=-inf
        The bound before what the objective can be off by was taken off.
    is_worse_than_nothing : bool, default=False
        Whether w = 0 has a smaller objective, which only a solver that goes on may accept.
    """

    objective: float
    lower_bound: float
    dual: FloatArray
    intercept: float
    deviations: FloatArray
    weight: FloatArray | None = None
    rounding: float = 0.0
    objective_rounding: float = 0.0
    floor: float = -np.inf
    is_worse_than_nothing: bool = False

    @property
    def gap(self) -> float:
        """Relative gap ``(objective - lower_bound) / max(1, |objective|)``."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def worst_gap(self) -> float:
        """The gap if the objective is off by all that rounding allows: what "optimal" rests on."""
        return self.gap + self.objective_rounding / max(1.0, abs(self.objective))

    @property
    def computed_gap(self) -> float:
        """The gap as if there were no rounding."""
        return self.gap - self.rounding / max(1.0, abs(self.objective))

    def is_limited(self, tol: float) -> bool:
        """Whether rounding is what keeps the gap above `tol`."""
        return self.worst_gap > tol and not self.computed_gap > tol


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Scores and squared norm of a vector w, and how far off rounding can have left them."""

    scores: FloatArray
    score_error: FloatArray
    squared_norm: float
    norm_error: float
    weight: FloatArray | None = None


def _from_coefficients(problem: OWAProblem, coef: FloatArray, careful: bool) -> _Evaluated:
    """``w = sum_i a_i y_i phi(x_i)`` through the Gram matrix."""
    signed = problem.y * coef
    assert problem.gram is not None
    sizes = np.abs(signed)
    norms = problem.norms
    reach = float(norms @ sizes)
    if careful:
        scores = product_without_loss(np.ascontiguousarray(problem.gram), signed)
        error = (accumulated(signed.size + 1) ** 2 * reach) * norms + 2.0 * UNIT * np.abs(scores)
    else:
        scores = problem.gram @ signed
        error = accumulated(signed.size + 1) * reach * norms
    error = error + problem.entry_rounding * float(problem.entry_rounding @ sizes)
    terms = signed * scores
    squared_norm, sum_error = sum_with_error(terms)
    norm_error = float(sizes @ error) + sum_error + UNIT * float(np.abs(terms).sum())
    if problem.is_definite:
        squared_norm = max(squared_norm, 0.0)
    return _Evaluated(scores, error, squared_norm, norm_error)


def _from_weight(problem: OWAProblem, weight: FloatArray) -> _Evaluated:
    """w itself, through the features."""
    assert problem.features is not None
    scores = np.asarray(problem.features @ weight).ravel()
    squared_norm = float(weight @ weight)
    # The samples were moved to their origin, which rounds them once.
    error = accumulated(longest_row(problem.features) + 3) * np.sqrt(squared_norm) * problem.norms
    norm_error = accumulated(weight.size + 1) * squared_norm
    return _Evaluated(scores, error, squared_norm, norm_error, weight)


def _evaluate(problem: OWAProblem, coef: FloatArray, careful: bool = False) -> _Evaluated:
    """The classifier of given coefficients, as it would be stored."""
    if problem.gram is not None:
        return _from_coefficients(problem, coef, careful)
    assert problem.features is not None
    return _from_weight(problem, np.asarray(problem.features.T @ (problem.y * coef)).ravel())


def _dual_norm(problem: OWAProblem, coef: FloatArray, found: _Evaluated) -> tuple[float, float]:
    """``|w_a|^2`` of exact coefficients and its error."""
    if problem.gram is not None:
        return found.squared_norm, found.norm_error
    # w was computed from the coefficients, with a sum over the samples for every feature.
    off = accumulated(coef.size + 2) * float(np.abs(coef) @ problem.norms)
    length = np.sqrt(found.squared_norm)
    return found.squared_norm, found.norm_error + 2.0 * length * off + off * off


def _proven_bound(
    problem: OWAProblem, coef: FloatArray, charged: float, found: _Evaluated
) -> tuple[float, float]:
    """``D(a)``, and what it can be too large by: rounding, and a point not quite feasible.

    `charged` is the total of the point of the dual set behind the coefficients. If its entries sum
    to at most ``1 + e`` times what they may, shrinking it by as much costs ``e`` times its total;
    an imbalance t of the classes is repaired by lowering entries of one class by t in total, which
    costs at most ``t (1 + |w| max|phi|) + t^2 max|phi|^2 / 2``.
    """
    total, total_error = sum_with_error(coef)
    squared_norm, norm_error = _dual_norm(problem, coef, found)
    imbalance, imbalance_error = sum_with_error(problem.y * coef)
    missing = abs(imbalance) + imbalance_error
    reach = missing * problem.largest_norm
    error = (
        total_error
        + 0.5 * norm_error
        + (accumulated(4 * coef.size + _COST_ROUNDINGS) + _NEARLY) * charged
        + missing
        + reach * (np.sqrt(squared_norm) + 0.5 * reach)
    )
    return total - 0.5 * squared_norm, float(error)


def proven_value(
    problem: OWAProblem, coef: FloatArray, charged: float, excess: float = 1.0
) -> float:
    """Value of the dual at a point that is nearly feasible, lowered until it is proven.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    coef : ndarray of shape (n_samples,)
        Coefficients ``a - e`` of w: a point of the dual set of a convex loss below ours, minus
        the coefficients of a linear term, if there is one.
    charged : float
        Sum of the point a.
    excess : float, default=1.0
        Factor by which the point leaves the dual set.

    Returns
    -------
    value : float
        A lower bound of the primal optimum, ``-inf`` if the kernel is not positive semi-definite.
    """
    if not problem.is_definite:
        return -np.inf
    value, error = _proven_bound(problem, coef, charged, _evaluate(problem, coef))
    return value - error - (max(excess, 1.0) - 1.0) * charged


def _loss_error(
    problem: OWAProblem, found: _Evaluated, intercept: float, deviations: FloatArray, loss: float
) -> float:
    """How far off rounding can have left the ordered sum of the deviations."""
    error = found.score_error + 3.0 * UNIT * (1.0 + np.abs(found.scores) + abs(intercept))
    near = (deviations > 0.0) | (1.0 - problem.y * (found.scores + intercept) > -error)
    if not near.any():
        return 0.0
    charge = problem.costs.total
    if problem.costs.ascending is not None:
        costs = problem.costs.ascending
        dearest = costs if problem.costs.convex else np.sort(costs)
        charge = float(dearest[-int(near.sum()) :].sum())
    return charge * float(error[near].max()) + accumulated(deviations.size + 2) * loss


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
    deviations = np.maximum(1.0 - problem.y * (scores + intercept), 0.0)
    if not np.isfinite(squared_norm + deviations.sum()):
        # A classifier that overflows is as bad as any.
        return np.inf, deviations
    order = np.argsort(deviations, kind="stable")
    loss = float(problem.costs.in_order(order) @ deviations[order])
    return 0.5 * squared_norm + loss, deviations


def dual_value(problem: OWAProblem, dual: FloatArray) -> float:
    """``D(a) = sum(a) - 1/2 |w|^2``; a lower bound only if `dual` is feasible."""
    return float(dual.sum()) - 0.5 * float((problem.y * dual) @ problem.scores(dual))


def _polymatroid_excess(costs: RankCosts, dual: FloatArray) -> float:
    """Factor by which a non-negative `dual` exceeds the prefix sums that define P."""
    if costs.ascending is not None:
        return dual_excess(dual, costs.ascending)
    if costs.sample_weight is not None and not costs.convex:
        # Where the share function is not concave, sets between the prefixes are tighter still.
        return np.inf if np.any(dual > 0.0) else 0.0
    density = dual if costs.sample_weight is None else dual / costs.sample_weight
    order = np.argsort(-density, kind="stable")
    bounds = np.cumsum(costs.largest_first(order))
    totals = np.cumsum(dual[order])
    counted = bounds > 0.0
    if np.any(totals[~counted] > 0.0):
        return np.inf
    return float(np.max(totals[counted] / bounds[counted], initial=0.0))


def _is_nearly_feasible(problem: OWAProblem, dual: FloatArray) -> bool:
    """Whether a point is as good as feasible: what it lacks is charged to its bound."""
    total = float(dual.sum())
    if not dual.min(initial=0.0) >= 0.0 or abs(float(problem.y @ dual)) > _NEARLY * total:
        return False
    return _polymatroid_excess(problem.costs, dual) <= 1.0 + _NEARLY


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


@dataclass(frozen=True, eq=False)
class _Choice:
    """A classifier under consideration."""

    found: _Evaluated
    coef: FloatArray
    intercept: float
    value: float
    deviations: FloatArray


def _choose(problem: OWAProblem, found: _Evaluated, coef: FloatArray, intercept: float) -> _Choice:
    value, deviations = objective(problem, found.squared_norm, found.scores, intercept)
    return _Choice(found, coef, intercept, value, deviations)


def _intercept_alone(problem: OWAProblem) -> tuple[float, float]:
    """The best intercept for w = 0, and its loss: no classifier that is kept may be worse."""
    costs, y = problem.costs, problem.y
    zeros = np.zeros(problem.n_samples)
    if costs.ascending is None:
        losses = {b: objective(problem, 0.0, zeros, b)[0] for b in (0.0, -1.0, 1.0)}
    else:
        # With b = 1 the samples of class -1 deviate by 2, and the others not at all.
        losses = {0.0: float(costs.ascending.sum())}
        for b in (-1.0, 1.0):
            n_wrong = int(np.count_nonzero(y == -b))
            losses[b] = 2.0 * float(costs.ascending[problem.n_samples - n_wrong :].sum())
    # The loss bends at these intercepts only.
    best = min(losses, key=lambda b: losses[b])
    return best, losses[best]


def _nothing(problem: OWAProblem, coef: FloatArray, intercept: float) -> _Choice:
    """w = 0 with the best intercept, of which one is given.

    Where w is stored itself, the coefficients that it was given may stay for what they prove.
    """
    zeros = np.zeros(problem.n_samples)
    weight = None if problem.features is None else np.zeros(problem.features.shape[1])
    if problem.costs.convex:
        intercept = best_intercept(zeros, problem.y, problem.costs, intercept)
    found = _Evaluated(zeros, zeros, 0.0, 0.0, weight)
    return _choose(problem, found, zeros if weight is None else coef, intercept)


def _as_stored(problem: OWAProblem, choice: _Choice) -> _Choice:
    """The classifier with the intercept that the samples as they were given allow for.

    For samples far from the origin the intercept is a large number, whose last digit is coarse.
    """
    weight = choice.found.weight
    if problem.origin is None or weight is None:
        return choice
    given = exact_dot(-weight, problem.origin, choice.intercept)
    intercept = exact_dot(weight, problem.origin, given)
    return _choose(problem, choice.found, choice.coef, intercept)


def _balanced(problem: OWAProblem, coef: FloatArray) -> FloatArray:
    """Coefficients that sum to 0 over the classes, as those of the kernel as given must.

    Seen from an anchor m, ``sum_i a_i y_i`` times phi(m) would belong to w otherwise, and no
    sample has it.
    """
    signed = problem.y * coef
    for _ in range(2):
        signed = signed - sum_with_error(signed)[0] / signed.size
    return problem.y * signed


def _intercept_error(problem: OWAProblem, chosen: _Choice) -> float:
    """What the intercept for the kernel as given can be off by, and a sum that is not quite 0."""
    assert problem.shifts is not None
    shifts, signed = problem.shifts, problem.y * chosen.coef
    given = shifts.moved(signed, chosen.intercept, -1.0)
    total, error = sum_with_error(signed)
    sizes = np.abs(shifts.values)
    return float(
        UNIT * (abs(given) + abs(chosen.intercept))
        + _SHIFT_ROUNDINGS * UNIT * (np.abs(signed) @ sizes)
        + (abs(total) + error) * (sizes.max() + _CONSTANT_ROUNDINGS * UNIT * shifts.constant)
    )


def judge(
    problem: OWAProblem,
    dual: FloatArray,
    intercept: float | None = None,
    *,
    weight: FloatArray | None = None,
    coef: FloatArray | None = None,
    intercept_within: float = np.inf,
    tol: float | None = None,
    final: bool = True,
) -> Certificate:
    """Certificate of the classifier ``w = sum_i a_i y_i phi(x_i)``.

    For convex weights the coefficients are first made dual feasible, the classifier is that of the
    feasible point, and the intercept is replaced by the exact minimiser for w (the midpoint, when
    it is an interval). Other weights keep both as they are. A classifier worse than w = 0 is
    replaced by w = 0.

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
    tol : float or None, default=None
        The gap asked for. Where only the rounding of plain products stands in its way, products
        are computed with twice the digits.
    final : bool, default=True
        Whether a classifier worse than w = 0 is to be replaced by w = 0. Its coefficients then
        prove nothing any more, so a solver that goes on is better off without that.

    Returns
    -------
    certificate : Certificate
    """
    request = (problem, dual, intercept, weight, coef, intercept_within, final)
    found = _judge(*request, careful=False)
    if tol is None or problem.gram is None or not found.is_limited(tol):
        return found
    return _judge(*request, careful=True)


def _judge(
    problem: OWAProblem,
    dual: FloatArray,
    intercept: float | None,
    weight: FloatArray | None,
    coef: FloatArray | None,
    intercept_within: float,
    final: bool,
    careful: bool,
) -> Certificate:
    y = problem.y
    guess = 0.0 if intercept is None else float(intercept)
    given = np.asarray(dual, dtype=np.float64)
    if problem.shifts is not None and not problem.costs.convex:
        given = _balanced(problem, given)
    at_given = _evaluate(problem, given, careful)
    feasible, at_feasible = given, at_given
    if not _is_nearly_feasible(problem, given):
        feasible = feasible_dual(problem, given, 1.0 - y * (at_given.scores + guess))
        if not np.array_equal(feasible, given):
            at_feasible = _evaluate(problem, feasible, careful)
    bound, bound_error = _proven_bound(problem, feasible, float(feasible.sum()), at_feasible)
    if not problem.costs.convex:
        chosen = _choose(problem, at_given, given, guess)
    else:
        chosen = _choose(problem, at_feasible, feasible, guess)
        if weight is not None and problem.features is not None:
            direct = _choose(problem, _from_weight(problem, weight.copy()), feasible, guess)
            chosen = direct if direct.value < chosen.value else chosen
        if coef is not None and problem.gram is not None:
            own = np.maximum(coef, 0.0)
            other = _choose(problem, _evaluate(problem, own, careful), own, guess)
            # Coefficients that prove their own bound are worth more than a last digit.
            if other.value < chosen.value - _WORTH_INFEASIBLE * max(1.0, abs(chosen.value)):
                chosen = other
        if relative_gap(chosen.value, bound) <= intercept_within:
            best = best_intercept(chosen.found.scores, y, problem.costs, chosen.intercept)
            chosen = _choose(problem, chosen.found, chosen.coef, best)
    return _certify(problem, chosen, bound, bound_error, final)


def charged_bound(bound: float, objective_error: float, objective: float) -> float:
    """A lower bound, lowered by what the objective can be off by: that belongs to the gap.

    No objective is negative, so 0 is a bound, too; below it only what matters is charged. A bound
    that is above the objective all the same contradicts it, which proves nothing but that
    something is not what it should be: no bound is claimed then.
    """
    charged = max(bound, 0.0) - objective_error
    if charged < 0.0 and objective_error <= _IMMATERIAL * max(1.0, abs(objective)):
        charged = 0.0
    return charged if charged <= objective else -np.inf


def _objective_error(problem: OWAProblem, chosen: _Choice) -> float:
    """How far off rounding can have left the objective of a classifier as it is stored."""
    loss = chosen.value - 0.5 * chosen.found.squared_norm
    error = 0.5 * chosen.found.norm_error + _loss_error(
        problem, chosen.found, chosen.intercept, chosen.deviations, abs(loss)
    )
    if problem.shifts is not None:
        error += problem.costs.total * _intercept_error(problem, chosen)
    return error


def _is_worse_than_nothing(
    problem: OWAProblem, chosen: _Choice, objective_error: float, enough: float
) -> bool:
    """Whether w = 0, whose objective is `enough`, is the better choice.

    A classifier that rounding leaves in doubt whether it is better is not worth more than w = 0.
    """
    convex = problem.costs.convex and problem.is_definite
    if chosen.found.weight is None and convex:
        # Coefficients that prove their own bound are worth more than a last digit.
        negligible = _WORTH_INFEASIBLE * max(1.0, enough)
        in_doubt = 0.0 if objective_error <= negligible else objective_error
        return not chosen.value + in_doubt <= enough * (1.0 + _WORTH_INFEASIBLE)
    # w = 0 costs no proof, and says better than noise that it is 0.
    return not chosen.value + objective_error <= enough * (1.0 - _NOISE)


def _certify(
    problem: OWAProblem, chosen: _Choice, bound: float, bound_error: float, final: bool
) -> Certificate:
    """The certificate of a classifier as it is stored, or of w = 0 where that is better."""
    chosen = _as_stored(problem, chosen)
    objective_error = _objective_error(problem, chosen)
    alone, enough = _intercept_alone(problem)
    worse = _is_worse_than_nothing(problem, chosen, objective_error, enough)
    if worse and (final or chosen.found.weight is not None):
        chosen = _as_stored(problem, _nothing(problem, chosen.coef, alone))
        objective_error = _objective_error(problem, chosen)
        worse = False
    found = _certificate_of(problem, chosen, objective_error, bound, bound_error)
    return replace(found, is_worse_than_nothing=worse)


def _certificate_of(
    problem: OWAProblem, chosen: _Choice, objective_error: float, bound: float, bound_error: float
) -> Certificate:
    """The certificate of a classifier, given a lower bound and how much too large it can be."""
    floor = proven = -np.inf
    if problem.is_definite and np.isfinite(bound - bound_error):
        floor = bound - bound_error
        proven = charged_bound(floor, objective_error, chosen.value)
    return Certificate(
        objective=chosen.value,
        lower_bound=proven,
        dual=chosen.coef,
        intercept=chosen.intercept,
        deviations=chosen.deviations,
        weight=chosen.found.weight,
        rounding=bound_error + objective_error,
        objective_rounding=objective_error,
        floor=floor,
    )


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
    coef: ArrayLike | None = None,
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
    coef : array-like of shape (n_features,) or None, default=None
        w of a linear model, the ``coef_`` of an estimator. Without it w is computed from `dual`,
        which costs digits where large terms cancel.

    Returns
    -------
    certificate : Certificate
        ``objective`` is that of the classifier handed in, ``lower_bound`` that of the nearest
        feasible dual point, lowered by what rounding can have added; ``gap`` follows from both.

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
    costs = RankCosts(signs.size, weights, alpha, C, sample_weight)
    problem = _problem_of(X, gram, signs, costs)
    b = float(intercept)
    if problem.features is None:
        found = _evaluate(problem, coefficients)
    else:
        w = np.asarray(problem.features.T @ (signs * coefficients)).ravel()
        if coef is not None:
            w = np.array(coef, dtype=np.float64).ravel()
        elif problem.origin is not None:
            w = w + problem.origin * sum_with_error(signs * coefficients)[0]
        found = _from_weight(problem, w)
        if problem.origin is not None:
            b = exact_dot(w, problem.origin, b)
    chosen = _choose(problem, found, coefficients, b)
    feasible = feasible_dual(problem, coefficients, 1.0 - signs * (found.scores + b))
    at_feasible = _evaluate(problem, feasible)
    bound, bound_error = _proven_bound(problem, feasible, float(feasible.sum()), at_feasible)
    objective_error = _objective_error(problem, chosen)
    proof = _certificate_of(problem, chosen, objective_error, bound, bound_error)
    return replace(proof, dual=feasible, intercept=float(intercept))


def _problem_of(X: Any, gram: ArrayLike | None, y: FloatArray, costs: RankCosts) -> OWAProblem:
    """The problem that X or a Gram matrix states; dense samples are moved to their mean."""
    if gram is not None:
        return OWAProblem(y, costs, gram=np.asarray(gram, dtype=np.float64))
    if X is None:
        return OWAProblem(y, costs)
    if hasattr(X, "tocsr"):
        return OWAProblem(y, costs, features=X.tocsr())
    features = np.asarray(X, dtype=np.float64)
    origin = features.mean(axis=0)
    return OWAProblem(y, costs, features=features - origin, origin=origin)
