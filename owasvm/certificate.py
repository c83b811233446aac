r"""Objective, lower bound and gap: computed here and nowhere else, trusting no solver.

With ``w = sum_i a_i y_i phi(x_i)`` and costs ``c = C * weights``:

primal
    :math:`F(w, b) = \tfrac12 |w|^2 + \Phi(u)`, :math:`u_i = 1 - y_i f(x_i)`, for the hinge
    :math:`\Phi(u) = \sum_k c_k \max(u, 0)_{(k)}`.
dual
    :math:`D(a) = \sum_i a_i - \tfrac12 |w|^2 - \Phi^*(a) \le F(w', b')` for every (w', b') as soon
    as ``y'a = 0`` and a is a point of the dual set, where the conjugate is finite. For the hinge
    it is 0 there, and the set is ``a >= 0``, the j largest entries of a summing to at most the
    last j costs, for every j. For costs that do not fall this is the set P(c) of
    :func:`owasvm.loss.project_dual`; for others it holds as well, and contains P(m) for every
    non-decreasing minorant m (:mod:`owasvm.solvers.general.rank_split`). Where groups are ranked
    apart it is the product of the sets of the groups.

A point handed in is first made feasible. What is left of infeasibility, and everything that
rounding can have added, of the kernel values, of products and of sums, is bounded and taken off,
so that the bound holds for the problem that was stated and not only for its image in double
precision (``docs/mathematics.md``, "Rounding").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.grouping import assign_costs
from owasvm.intercept import best_intercept, middle_of_flat
from owasvm.losses import RankedLoss, find_slack
from owasvm.preparation import TrainingSet
from owasvm.problem import OWAProblem
from owasvm.rounding import UNIT, accumulated, sum_with_error
from owasvm.samples import Evaluation, choose_given, prepare
from owasvm.solution import Solution, Status, relative_gap

FloatArray = NDArray[np.float64]

# Relative improvement for which a classifier may leave the dual feasible set.
_WORTH_INFEASIBLE = 1e-7
# Of a classifier that is w = 0 up to this share of its objective nothing but noise is left.
_NOISE = 1e-12
# What an objective can be off by and still be charged to no bound of 0.
_IMMATERIAL = 1e-10
# Deviations that are no more than the last digits of a solver.
_ON_MARGIN = 1e-6
# A dual point may exceed what it may sum to by this share, and be as unbalanced. The bound pays.
_NEARLY = 1e-12
# Rounding of the costs themselves: quantifier, normalisation, C.
_COST_ROUNDINGS = 16
# Samples looked at at a time where a vector of them would be for nothing else.
_PART = 2**17

__all__ = [
    "Certificate",
    "best_intercept",
    "certificate",
    "charged_bound",
    "dual_value",
    "feasible_dual",
    "judge",
    "judge_general",
    "objective",
    "objective_of_dual",
    "objective_of_slack",
    "proven_value",
    "with_deviations",
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

    def as_solution(
        self,
        status: Status,
        solver: str,
        *,
        n_iter: int = 0,
        build_time: float = 0.0,
        solve_time: float = 0.0,
        details: Mapping[str, Any] | None = None,
    ) -> Solution:
        """The solution that a solver returns; its figures are those of the certificate."""
        return Solution(
            dual=self.dual,
            intercept=self.intercept,
            objective=self.objective,
            lower_bound=self.lower_bound,
            status=status,
            solver=solver,
            n_iter=n_iter,
            coef=self.weight,
            deviations=self.deviations,
            build_time=build_time,
            solve_time=solve_time,
            details=details or {},
        )

    def decide_status(self, tol: float, stopped: Status) -> Status:
        """How a solve ended: "optimal" if the gap says so, and else why the solver stopped.

        A solver that believes to be done is stopped by rounding, and so is one at a limit beyond
        which rounding would still be in the way.
        """
        if self.worst_gap <= tol:
            return Status.OPTIMAL
        hopeless = self.objective_rounding > tol * max(1.0, abs(self.objective))
        at_limit = stopped in (Status.NODE_LIMIT, Status.ITERATION_LIMIT)
        if stopped is Status.OPTIMAL or (hopeless and at_limit):
            return Status.ROUNDING_LIMIT
        return stopped

    def is_limited(self, tol: float) -> bool:
        """Whether rounding is what keeps the gap above `tol`."""
        return self.worst_gap > tol and not self.computed_gap > tol


def _prove_bound(
    problem: OWAProblem, coef: FloatArray, charged: float, conjugate: float, found: Evaluation
) -> tuple[float, float]:
    """``D(a)``, and what it can be too large by: rounding, and a point not quite feasible.

    `charged` is the total of the point of the dual set behind the coefficients, `conjugate` the
    conjugate of the loss there. If its entries sum to at most ``1 + e`` times what they may,
    shrinking it by as much costs ``e`` times its total; an imbalance t of the classes is repaired
    by lowering entries of one class by t in total, which costs at most
    ``t (1 + |w| max|phi|) + t^2 max|phi|^2 / 2``.
    """
    total, total_error = sum_with_error(coef)
    signed = problem.y * coef
    squared_norm, norm_error = problem.samples.dual_norm(signed, found)
    imbalance, imbalance_error = sum_with_error(signed)
    missing = abs(imbalance) + imbalance_error
    reach = missing * problem.largest_norm
    roundings = accumulated(4 * coef.size + _COST_ROUNDINGS)
    error = (
        total_error
        + 0.5 * norm_error
        + (roundings + _NEARLY) * charged
        + 2.0 * roundings * conjugate
        + missing
        + reach * (np.sqrt(squared_norm) + 0.5 * reach)
    )
    return total - 0.5 * squared_norm - conjugate, float(error)


def proven_value(
    problem: OWAProblem, coef: FloatArray, charged: float, excess: float = 1.0
) -> float:
    """Value of the dual at a point that is nearly feasible, lowered until it is proven.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    coef : ndarray of shape (n_samples,)
        Coefficients ``a - e`` of w: a point of the dual set of a convex hinge below ours, minus
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
    found = problem.samples.evaluate(problem.y * coef)
    value, error = _prove_bound(problem, coef, charged, 0.0, found)
    return value - error - (max(excess, 1.0) - 1.0) * charged


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
    slack = 1.0 - problem.y * (scores + intercept)
    return objective_of_slack(problem, squared_norm, slack), np.maximum(slack, 0.0)


def objective_of_dual(
    problem: OWAProblem, dual: FloatArray, intercept: float
) -> tuple[float, FloatArray]:
    """The same of the classifier ``w = sum_i a_i y_i phi(x_i)``, as products give it."""
    scores = problem.scores(dual)
    squared_norm = max(float((problem.y * dual) @ scores), 0.0)
    return objective(problem, squared_norm, scores, intercept)


def objective_of_slack(problem: OWAProblem, squared_norm: float, slack: FloatArray) -> float:
    """``1/2 |w|^2 + Phi(slack)``, the slacks being ``1 - y_i f(x_i)``."""
    return _add_up(problem.ranked_loss(), squared_norm, slack)


def _add_up(loss: RankedLoss, squared_norm: float, slack: FloatArray) -> float:
    # What is not a number is no slack that is met.
    if not np.isfinite(squared_norm + slack.sum(where=~(slack <= 0.0))):
        # A classifier that overflows is as bad as any.
        return np.inf
    return 0.5 * squared_norm + loss.value(slack)


def dual_value(problem: OWAProblem, dual: FloatArray) -> float:
    """``D(a)`` as computed; a lower bound only if `dual` is feasible."""
    half_norm = 0.5 * float((problem.y * dual) @ problem.scores(dual))
    return float(dual.sum()) - half_norm - problem.ranked_loss().conjugate(dual)


def feasible_dual(
    problem: OWAProblem, dual: FloatArray, slack: FloatArray | None = None
) -> FloatArray:
    """Nearby point of the dual feasible set: ``a`` in the dual set of the loss, ``y'a = 0``.

    Negative entries are raised to 0, a point outside is scaled into the set, and the heavier class
    is lowered until the classes balance, which keeps it inside. Lowering starts with the
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
    return _Judging(problem).make_feasible(dual, slack)


@dataclass(frozen=True, eq=False)
class _Choice:
    """A classifier under consideration."""

    found: Evaluation
    coef: FloatArray
    intercept: float
    value: float


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
    loss: RankedLoss | None = None,
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
    loss : RankedLoss or None, default=None
        The loss of the problem, of a solver that shares its memory to work in.

    Returns
    -------
    certificate : Certificate
    """
    judging = _Judging(problem, loss)
    request = (dual, intercept, weight, coef, intercept_within, final)
    found = judging.judge(*request, careful=False)
    if tol is None:
        return found
    if not problem.samples.keeps_weight and found.is_limited(tol):
        found = judging.judge(*request, careful=True)
    if problem.costs.convex and not found.worst_gap <= tol:
        return judging.stretch(found)
    return found


def judge_general(
    problem: OWAProblem, coef: FloatArray, intercept: float, proven_bound: float, tol: float
) -> Certificate:
    """Certificate of a classifier for weights that may fall, with the bound of a search.

    `proven_bound` holds for the optimum, the rounding of the search accounted for; what the
    objective can be off by comes off it here. Else as :func:`judge`.
    """
    found = judge(problem, coef, intercept, tol=tol)
    bound = charged_bound(proven_bound, found.objective_rounding, found.objective)
    if not problem.is_definite or -np.inf < bound < found.lower_bound:
        return found
    rounding = found.objective_rounding
    return replace(found, lower_bound=bound, rounding=rounding, floor=proven_bound)


def with_deviations(problem: OWAProblem, found: Certificate) -> Certificate:
    """A certificate that was kept without them, with the deviations of its classifier."""
    judging, weight = _Judging(problem), found.weight
    if weight is None:
        at = problem.samples.evaluate(problem.y * found.dual)
    else:
        at = problem.samples.evaluate_weight(weight)
    slack = judging.slack_of(at, found.intercept)
    return replace(found, deviations=np.maximum(slack, 0.0, out=slack))


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


class _Judging:
    """A problem with what it takes to judge its classifiers."""

    def __init__(self, problem: OWAProblem, loss: RankedLoss | None = None) -> None:
        self.problem = problem
        self.y, self.samples = problem.y, problem.samples
        self.loss = problem.ranked_loss() if loss is None else loss

    def judge(
        self,
        dual: FloatArray,
        intercept: float | None,
        weight: FloatArray | None,
        coef: FloatArray | None,
        intercept_within: float,
        final: bool,
        careful: bool,
    ) -> Certificate:
        """See :func:`judge`; `careful` asks for products with twice the digits."""
        y, samples, convex = self.y, self.samples, self.problem.costs.convex
        guess = 0.0 if intercept is None else float(intercept)
        given = np.asarray(dual, dtype=np.float64)
        if samples.needs_balance and not convex:
            given = self._balance(given)
        if convex:
            chosen, bound = self._judge_convex(given, guess, weight, coef, careful)
            if relative_gap(chosen.value, bound[0]) <= intercept_within:
                best = self._best_intercept(chosen.found.scores, chosen.intercept)
                if best != chosen.intercept:
                    chosen = self.choose(chosen.found, chosen.coef, best)
            return self._certify(chosen, bound, final)
        at_given = self._evaluate(given, careful)
        bound = self._bound_near(given, at_given, guess, careful)[1]
        chosen = self.choose(at_given, given, guess)
        if final:
            middle = middle_of_flat(at_given.scores, y, self.problem.costs, guess)
            chosen = chosen if middle == guess else self.choose(at_given, given, middle)
        return self._certify(chosen, bound, final)

    def _evaluate(self, dual: FloatArray, careful: bool) -> Evaluation:
        """The classifier of a dual point."""
        weight = self.samples.weight(self.y * dual) if self.samples.keeps_weight else None
        if weight is not None:
            return self.samples.evaluate_weight(weight)
        return self.samples.evaluate(self.y * dual, careful=careful)

    def _bound_near(
        self, given: FloatArray, at_given: Evaluation, guess: float, careful: bool
    ) -> tuple[tuple[FloatArray, Evaluation], tuple[float, float]]:
        """A feasible point next to a given one with its evaluation, and what it proves."""
        feasible, at_feasible = given, at_given
        if not self._is_nearly_feasible(given):
            feasible = self.make_feasible(given, self.slack_of(at_given, guess))
            if not np.array_equal(feasible, given):
                at_feasible = self._evaluate(feasible, careful)
        return (feasible, at_feasible), self.bound_of(feasible, at_feasible)

    def _judge_convex(
        self,
        given: FloatArray,
        guess: float,
        weight: FloatArray | None,
        coef: FloatArray | None,
        careful: bool,
    ) -> tuple[_Choice, tuple[float, float]]:
        """The better of the classifiers at hand, and what the feasible point proves."""
        y, samples = self.y, self.samples
        at_given = self._evaluate(given, careful)
        (feasible, at_feasible), bound = self._bound_near(given, at_given, guess, careful)
        del at_given
        if weight is not None and samples.keeps_weight:
            # With many samples scores are better computed twice than kept.
            value = self.choose(at_feasible, feasible, guess).value
            del at_feasible
            direct = self.choose(samples.evaluate_weight(weight.copy()), feasible, guess)
            if direct.value < value:
                return direct, bound
            del direct
            at_feasible = self._evaluate(feasible, careful)
        chosen = self.choose(at_feasible, feasible, guess)
        if coef is not None and not samples.keeps_weight:
            own = np.maximum(coef, 0.0)
            other = self.choose(samples.evaluate(y * own, careful=careful), own, guess)
            # Coefficients that prove their own bound are worth more than a last digit.
            if other.value < chosen.value - _WORTH_INFEASIBLE * max(1.0, abs(chosen.value)):
                chosen = other
        return chosen, bound

    def stretch(self, found: Certificate) -> Certificate:
        """The classifier grown until samples that are on the margin but for rounding are past it.

        With a large C the last digits of their slacks cost more than |w|^2, or may do so. Past
        the margin they certainly cost nothing. The bound stays that of the point as it was.
        """
        shortest = 1.0 - float(found.deviations.max(initial=0.0))
        if not shortest >= 1.0 - _ON_MARGIN or found.is_worse_than_nothing:
            return found
        past = 2.0 * float(self._slack_error(self._grow(found, 1.0)).max())
        grown = self._grow(found, (1.0 + past) / shortest)
        other = self._certify(grown, (found.floor, 0.0), final=False)
        return other if other.worst_gap < found.worst_gap else found

    def _grow(self, found: Certificate, factor: float) -> _Choice:
        """A classifier times a factor."""
        coef = factor * found.dual
        if found.weight is None:
            at = self.samples.evaluate(self.y * coef, careful=True)
        else:
            at = self.samples.evaluate_weight(factor * found.weight)
        return self.choose(at, coef, factor * found.intercept)

    def _is_nearly_feasible(self, dual: FloatArray) -> bool:
        """Whether a point is as good as feasible: what it lacks is charged to its bound."""
        total = float(dual.sum())
        if not dual.min(initial=0.0) >= 0.0 or abs(float(self.y @ dual)) > _NEARLY * total:
            return False
        return self.loss.excess(dual) <= 1.0 + _NEARLY

    def make_feasible(self, dual: FloatArray, slack: FloatArray | None) -> FloatArray:
        """See :func:`feasible_dual`."""
        point = np.maximum(dual, 0.0)
        excess = self.loss.excess(point)
        if excess > 1.0:
            point = point / excess
        surplus = float(self.y @ point)
        heavier = self.y * surplus > 0
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

    def _balance(self, coef: FloatArray) -> FloatArray:
        """Coefficients that sum to 0 over the classes, as those of the kernel as given must.

        Seen from an anchor m, ``sum_i a_i y_i`` times phi(m) would belong to w otherwise, and no
        sample has it.
        """
        signed = self.y * coef
        for _ in range(2):
            signed = signed - sum_with_error(signed)[0] / signed.size
        return self.y * signed

    def bound_of(self, feasible: FloatArray, found: Evaluation) -> tuple[float, float]:
        """What a feasible point proves, and what that can be too large by."""
        conjugate = self.loss.conjugate(feasible)
        return _prove_bound(self.problem, feasible, float(feasible.sum()), conjugate, found)

    def choose(self, found: Evaluation, coef: FloatArray, intercept: float) -> _Choice:
        """A classifier with its objective."""
        value = _add_up(self.loss, found.squared_norm, self.slack_of(found, intercept))
        return _Choice(found, coef, intercept, value)

    def slack_of(self, found: Evaluation, intercept: float) -> FloatArray:
        """``1 - y f``: computed whenever it is asked for, and not kept."""
        return find_slack(found.scores, self.y, intercept)

    def _choose_nothing(self, coef: FloatArray) -> _Choice:
        """w = 0 with the best intercept.

        Where w is stored itself, the coefficients that it was given may stay for what they prove.
        """
        zeros = np.zeros(self.y.size)
        intercept, _ = self.problem.constant_classifier
        if self.problem.costs.convex:
            intercept = self._best_intercept(zeros, intercept)
        found = self.samples.evaluate(zeros)
        return self.choose(found, coef if self.samples.keeps_weight else zeros, intercept)

    def _best_intercept(self, scores: FloatArray, guess: float) -> float:
        return best_intercept(scores, self.y, self.problem.costs, guess, loss=self.loss)

    def _store(self, choice: _Choice) -> _Choice:
        """The classifier with the intercept that the samples as they were given allow for."""
        intercept = self.samples.store_intercept(choice.found.weight, choice.intercept)
        if intercept == choice.intercept:
            return choice
        return self.choose(choice.found, choice.coef, intercept)

    def _certify(self, chosen: _Choice, bound: tuple[float, float], final: bool) -> Certificate:
        """The certificate of a classifier as it is stored, or of w = 0 where that is better."""
        chosen = self._store(chosen)
        error = self._objective_error(chosen)
        worse = self._is_worse_than_nothing(chosen, error)
        if worse and (final or chosen.found.weight is not None):
            chosen = self._store(self._choose_nothing(chosen.coef))
            return self.certificate_of(chosen, bound)
        return replace(self.certificate_of(chosen, bound, error), is_worse_than_nothing=worse)

    def _objective_error(self, chosen: _Choice) -> float:
        """How far off rounding can have left the objective of a classifier as it is stored."""
        found = chosen.found
        error = self._slack_error(chosen)
        value = abs(chosen.value - 0.5 * found.squared_norm)
        slack = self.slack_of(found, chosen.intercept)
        return 0.5 * found.norm_error + self.loss.rounding(slack, error, value)

    def _slack_error(self, chosen: _Choice) -> FloatArray:
        """How far off rounding can have left the slacks of a classifier as it is stored."""
        found, intercept = chosen.found, chosen.intercept
        error = found.score_error
        for first in range(0, error.size, _PART):
            part = slice(first, first + _PART)
            error[part] += 3.0 * UNIT * (np.abs(found.scores[part]) + 1.0 + abs(intercept))
        error += self.samples.intercept_error(self.y * chosen.coef, intercept)
        return error

    def _is_worse_than_nothing(self, chosen: _Choice, objective_error: float) -> bool:
        """Whether w = 0 is the better choice.

        A classifier that rounding leaves in doubt whether it is better is not worth more.
        """
        _, enough = self.problem.constant_classifier
        convex = self.problem.costs.convex and self.problem.is_definite
        if chosen.found.weight is None and convex:
            # Coefficients that prove their own bound are worth more than a last digit.
            negligible = _WORTH_INFEASIBLE * max(1.0, enough)
            in_doubt = 0.0 if objective_error <= negligible else objective_error
            return not chosen.value + in_doubt <= enough * (1.0 + _WORTH_INFEASIBLE)
        # w = 0 costs no proof, and says better than noise that it is 0.
        return not chosen.value + objective_error <= enough * (1.0 - _NOISE)

    def certificate_of(
        self, chosen: _Choice, bound: tuple[float, float], objective_error: float | None = None
    ) -> Certificate:
        """The certificate of a classifier and a bound that can be too large by so much."""
        error = self._objective_error(chosen) if objective_error is None else objective_error
        value, bound_error = bound
        floor = proven = -np.inf
        if self.problem.is_definite and np.isfinite(value - bound_error):
            floor = value - bound_error
            proven = charged_bound(floor, error, chosen.value)
        slack = self.slack_of(chosen.found, chosen.intercept)
        return Certificate(
            objective=chosen.value,
            lower_bound=proven,
            dual=chosen.coef,
            intercept=chosen.intercept,
            deviations=np.maximum(slack, 0.0, out=slack),
            weight=chosen.found.weight,
            rounding=bound_error + error,
            objective_rounding=error,
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
    loss: str = "hinge",
    ranks: str = "all",
    groups: ArrayLike | None = None,
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
    loss : str, default="hinge"
        One of :data:`owasvm.losses.LOSSES`.
    ranks : {"all", "class"}, default="all"
        Whether deviations are ranked among all samples or within each class, see
        :class:`owasvm.OWASVC`.
    groups : array-like of shape (n_samples,) or None, default=None
        Labels of groups within which deviations are ranked, see :meth:`owasvm.OWASVC.fit`.

    Returns
    -------
    certificate : Certificate
        ``objective`` is that of the classifier handed in, ``lower_bound`` that of the nearest
        feasible dual point, lowered by what rounding can have added; ``gap`` follows from both.

    Notes
    -----
    Where w = 0 is best up to the tolerance, a fit may have proven its gap with dual variables that
    are not those of its classifier. Those of the classifier then give a smaller bound, and those
    of w = 0, which are all zero, give none.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm import OWASVC
    >>> from owasvm.certificate import certificate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    >>> model = OWASVC(kernel="linear").fit(X, y)
    >>> dual = np.zeros(40)
    >>> dual[model.support_] = model.dual_coef_[0]
    >>> found = certificate(X, y, "basic", 1.0, dual, model.intercept_[0], alpha=0.6)
    >>> bool(found.gap < 1e-6), bool(abs(found.objective - model.objective_) < 1e-9)
    (True, True)
    """
    if y is None or dual is None:
        raise ValueError("certificate needs y and dual.")
    given, kernel = choose_given(X, gram)
    training = TrainingSet.of(given, y, sample_weight, groups=groups)
    signs = training.binary_signs("certificate")
    coefficients = np.asarray(dual, dtype=np.float64).ravel()
    if coefficients.size != signs.size:
        raise ValueError(
            f"dual must hold one entry per sample ({signs.size}), got {coefficients.size}; "
            "fill the entries outside support_ with zeros."
        )
    # Coefficients of general weights may be negative here and there; read as the other kind, about
    # half of them would be.
    if np.minimum(signs * coefficients, 0.0).sum() > np.minimum(coefficients, 0.0).sum():
        coefficients = signs * coefficients
    costs = assign_costs(
        signs, weights, alpha, C, training.mass, ranks=ranks, groups=training.groups
    )
    samples = prepare(training.X, kernel, primal=True)
    problem = OWAProblem(signs, costs, samples=samples, loss=loss)
    signed = signs * coefficients
    w = None if coef is None else np.array(coef, dtype=np.float64).ravel()
    if w is None:
        w = samples.weight_as_given(signed)
    found = samples.evaluate(signed, careful=True) if w is None else samples.evaluate_weight(w)
    b = samples.intercept_as_moved(signed, w, float(intercept))
    judging = _Judging(problem)
    chosen = judging.choose(found, coefficients, b)
    feasible = judging.make_feasible(coefficients, judging.slack_of(found, b))
    bound = judging.bound_of(feasible, samples.evaluate(signs * feasible, careful=True))
    return replace(
        judging.certificate_of(chosen, bound), dual=feasible, intercept=float(intercept)
    )
