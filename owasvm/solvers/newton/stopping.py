"""When a Newton iterate will do: dual points next to it, certificates, polishing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import Certificate, charged_bound, judge, with_deviations
from owasvm.losses import ProxPoint, RankedHinge, RankedLoss
from owasvm.problem import OWAProblem
from owasvm.solvers.newton._bracket import Bracket
from owasvm.solvers.newton._rules import ROUNDING
from owasvm.solvers.newton.core import MANY_SAMPLES, ConvexTask, Iterate
from owasvm.solvers.newton.series import LARGE_SYSTEM, Look

FloatArray = NDArray[np.float64]

# Regula falsi gains a digit or more per evaluation.
_MAX_BALANCE_EVALUATIONS = 20
# Imbalance of a dual point, relative to its sum, that is left to the final repair.
_BALANCED = 1e-13
# A polished gap; nor is there more to gain below a share of what rounding is charged with, a worst
# case that exceeds what it does by about that factor.
_POLISHED_GAP = 1e-13
_ROUNDING_SHARE = 1e-3
# The next certificate is asked for when the estimated gap has fallen to what is lacking, within
# these shares: where one was foreseen, which costs little, and steps are dear, and elsewhere.
_SHORTEST_WAIT = 0.7
_CHEAP_WAIT = 0.3
_LONGEST_WAIT = 0.1
# And after so many steps in any case.
_MAX_WAIT = 8
# A certificate is better when its gap is this share of the best one's.
_BETTER = 0.9
# w = 0 is nearly best where it may be this many times the tolerance above the optimum. Where the
# nearest dual point does not prove it, coefficients are raised so many times what that is off by
# on average, per unit of deviation.
_NEARLY_NOTHING = 3.0
# After so many steps this many times, and the classifier may have the bound of another point.
_LATE = 400
_NEARLY_NOTHING_LATE = 30.0
_FILL_UP = 100.0
# Steps that a point gets to prove itself where a classifier has the bound of another one: a share
# of those so far and so many beyond, at most the last number. With few samples, where they cost
# next to nothing, and else.
_PATIENCE_OF_FEW = (1.0, 50, math.inf)
_PATIENCE = (0.25, 5, 20)
# A shorter classifier has to prove this share of the tolerance, and is looked for so many times.
_SHORTER = 0.9
_MAX_HALVINGS = 12


def project_balanced(task: ConvexTask, guess: FloatArray) -> FloatArray:
    """The point of the dual set nearest to `guess` along ``guess - t s y`` with ``y'a = 0``.

    With a linear term e it is ``y'(a - e)`` that has to vanish. Without one, samples that `guess`
    leaves out stay out: hundreds of them would become support vectors by a rounding error.

    Near the end the coefficients of w are a far better dual point than alpha(w, b): the Newton
    steps keep them balanced, and they leave the set by very little.
    """
    y, mass = task.y, task.loss.mass
    density = guess if mass is None else guess / mass
    point = ProxPoint(y.size)
    if isinstance(task.loss, RankedHinge) and task.loss.plain is not None:
        # Nobody asks for the prox.
        point.prox = np.empty(0)
    left_out = guess <= 0.0 if task.linear is None else np.zeros(y.size, dtype=bool)
    shifted = np.empty(y.size)
    taken = 0.0

    def surplus(shift: float) -> float:
        """``-y'(a - e)`` at a shift, which never falls with it; leaves the point there."""
        nonlocal taken
        taken = shift
        np.multiply(y, -shift, out=shifted)
        np.add(shifted, density, out=shifted)
        shifted[left_out] = 0.0
        task.loss.project(shifted, point)
        return -task.imbalance(point.dual)

    first = surplus(0.0)
    bracket = Bracket(0.0, first, 0.0, first)
    goal = _BALANCED * float(point.dual.sum())
    n_free = max(int(np.count_nonzero(point.block >= 0)), 1)
    reach = -2.0 * first / n_free
    for _ in range(_MAX_BALANCE_EVALUATIONS):
        if bracket.value_low <= goal and bracket.value_high >= -goal:
            break
        if reach > 0:
            bracket.low, bracket.value_low = bracket.high, bracket.value_high
            bracket.high += reach
            bracket.value_high = surplus(bracket.high)
        else:
            bracket.high, bracket.value_high = bracket.low, bracket.value_low
            bracket.low += reach
            bracket.value_low = surplus(bracket.low)
        reach *= 4.0
    for _ in range(_MAX_BALANCE_EVALUATIONS):
        nearest = min(abs(bracket.value_low), abs(bracket.value_high))
        if nearest <= goal or not bracket.value_low < bracket.value_high:
            break
        middle = bracket.crossing()
        value = surplus(middle)
        if abs(value) <= goal:
            return point.dual
        bracket.narrow(middle, value)
    closer_low = abs(bracket.value_low) <= abs(bracket.value_high)
    best = bracket.low if closer_low else bracket.high
    if best != taken:
        surplus(best)
    return point.dual


def ask_below(estimate: float, gap: float, tol: float, least: float = _CHEAP_WAIT) -> float:
    """The estimate to wait for where a gap was not proven: it is to fall by what was lacking.

    To a share of at least `least` and at most a fixed one.
    """
    return estimate * min(max(tol / max(gap, tol), least), _SHORTEST_WAIT)


def _polished_gap(found: Certificate) -> float:
    """Relative gap below which there is nothing to gain."""
    charged = found.rounding / max(1.0, abs(found.objective))
    return max(_POLISHED_GAP, _ROUNDING_SHARE * charged)


class StoppingRule:
    """Decides when an iterate will do, by certificates from :mod:`owasvm.certificate` alone.

    A certificate costs about as much as a step, so it is asked for when the estimated gap is low
    enough, and again only when it has fallen as much as the last certificate lacked.
    """

    def __init__(
        self, problem: OWAProblem, task: ConvexTask, tol: float, loss: RankedLoss | None = None
    ) -> None:
        self._problem = problem
        self._loss = loss
        self._task = task
        self._tol = tol
        self._best: Certificate | None = None
        self._self_proven = True
        self._judge_below = tol
        self._whole_below = tol
        self._judge_at = 0
        self._judged_at = np.nan
        # The step at which a proof by another point will do.
        self._redeemed_at: int | None = None
        self._satisfied_at: int | None = None
        self._is_polished = False
        self._polished_below = 0.0
        self._last_step = 0
        self._polish = problem.n_samples <= task.tuning.polish_samples
        self._is_large = problem.n_samples >= MANY_SAMPLES
        self._cheapest: Certificate | None = None
        # The best bound of all, and the dual point behind it.
        self._floor = -np.inf
        self._proving: FloatArray | None = None
        self.is_limited = False
        self._rounding = 0.0
        self._n_limited = 0
        self._n_idle = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether rounding forbids the tolerance: no further step can prove it."""
        if self._satisfied_at is not None:
            return False
        return (
            self._n_limited >= self._task.tuning.hopeless_certificates
            or self._n_idle >= self._task.tuning.idle_certificates
        )

    @property
    def next_look(self) -> Look:
        """What is worth a look."""
        if self._satisfied_at is None:
            return Look(max(self._judge_below, ROUNDING), self._redeemed_at, self._whole_below)
        return Look(self._polished_below, self._last_step)

    def is_satisfied(self, iterate: Iterate) -> bool:
        """Whether to stop here."""
        if iterate.is_whole_step:
            return self._try_whole_step(iterate)
        estimate = iterate.gap / max(1.0, abs(iterate.objective))
        # At rounding level a smaller penalty may still help where a smaller estimate cannot.
        cooled = estimate <= ROUNDING and iterate.penalty != self._judged_at
        if self._satisfied_at is None:
            if self._redeemed_at is not None and iterate.n_iter >= self._redeemed_at:
                self._satisfied_at = iterate.n_iter
                self._ask(iterate, estimate)
                return True
            is_late = estimate <= self._tol and iterate.n_iter >= self._judge_at
            if estimate <= self._judge_below or cooled or is_late or iterate.is_final:
                self._ask(iterate, estimate)
            return self._is_polished
        if estimate > self._polished_below and iterate.n_iter < self._last_step:
            return False
        self._ask(iterate, estimate)
        return True

    def _try_whole_step(self, iterate: Iterate) -> bool:
        """Judge where a whole step leads; nothing but a proof changes what iterates are asked."""
        dual = project_balanced(self._task, self._task.dual_of(iterate.w))
        scale = max(1.0, abs(iterate.objective))
        lacking = (iterate.objective - self._find_tangent(dual, iterate)) / scale
        if lacking <= self._tol:
            lacking, best = self._consider(dual, iterate)
            if lacking <= self._tol and self._self_proven:
                self._accept(best, iterate.n_iter)
                return self._is_polished
        below = ask_below(iterate.gap / scale, lacking, self._tol, _LONGEST_WAIT)
        self._whole_below = min(below, self._whole_below)
        return False

    def _ask(self, iterate: Iterate, estimate: float) -> None:
        """Judge an iterate; of many samples without what can be made again."""
        if not (self._is_large and self._problem.samples.keeps_weight):
            self._judge(iterate, estimate)
            return
        iterate.w.scores = iterate.slack = np.empty(0)
        try:
            self._judge(iterate, estimate)
        finally:
            self._task.operator.complete(iterate.w)

    def _judge(self, iterate: Iterate, estimate: float) -> None:
        """Ask for certificates, and decide when to ask again."""
        self._judged_at = iterate.penalty
        self.is_limited = False
        known_gap = np.inf if self._best is None else self._best.gap
        polishing = self._satisfied_at is not None
        share = self._task.tuning.converged_share
        converged = estimate <= share * self._tol or iterate.is_final
        nearest = project_balanced(self._task, self._task.dual_of(iterate.w))
        foreseen = 0.0 if polishing or converged else self._foresee_gap(nearest, iterate)
        is_raised = self._is_raising_worth_it(iterate)
        if foreseen > self._tol and not is_raised:
            # Iterates of other methods have no system.
            is_dear = iterate.n_active >= LARGE_SYSTEM or iterate.n_active == 0
            wait = _CHEAP_WAIT if is_dear else _LONGEST_WAIT
            self._put_off(iterate, estimate, foreseen, wait)
            return
        if foreseen > self._tol:
            gap, best = self._consider(self._raise(nearest, iterate), iterate)
        else:
            gap, best = self._consider(nearest, iterate)
            if gap > self._tol and is_raised:
                raised, best = self._consider(self._raise(nearest, iterate), iterate)
                gap = min(gap, raised)
        # With many samples there is no room for numbers that are not needed any more.
        del nearest
        if converged and (gap > self._tol or (polishing and not self._is_exact(best))):
            # alpha(w, b) is the better point where w says little about it, as when w = 0, and
            # where the coefficients have gathered the rounding of many steps.
            dual = project_balanced(self._task, iterate.dual)
            other, best = self._consider(dual, iterate)
            gap = min(gap, other)
            if gap > self._tol and self._redeemed_at is None:
                # No single point proves itself: w as it is, and the bound of alpha.
                classifier = self._task.dual_of(iterate.w)
                other, best = self._consider(dual, iterate, classifier)
                gap = min(gap, other)
        if gap > self._tol and self._redeemed_at is None:
            gap, best = self._consider_nothing(iterate, gap, best)
        if gap <= self._tol and (self._self_proven or iterate.is_final):
            self._accept(best, iterate.n_iter)
        else:
            if gap <= self._tol and self._redeemed_at is None:
                # The classifier may be known to all digits before its coefficients are, which
                # often takes one or two steps more.
                share, steps, most = _PATIENCE_OF_FEW if self._polish else _PATIENCE
                self._redeemed_at = iterate.n_iter + int(min(share * iterate.n_iter + steps, most))
            self._put_off(iterate, estimate, gap, _LONGEST_WAIT)
            self._n_limited += int(self.is_limited)
            idle = estimate <= ROUNDING and not best.gap < _BETTER * known_gap
            self._n_idle = self._n_idle + 1 if idle else 0

    def _consider_nothing(
        self, iterate: Iterate, gap: float, best: Certificate
    ) -> tuple[float, Certificate]:
        """Where w = 0 may be nearly best, with the best bound of all."""
        if not self._polish:
            gap, best = self._consider_shorter(iterate, gap, best)
        proving = self._proving if iterate.n_iter >= _LATE else None
        if gap > self._tol and proving is not None and self._is_nearly_nothing(iterate):
            other, best = self._consider(proving, iterate, self._task.dual_of(iterate.w))
            gap = min(gap, other)
        return gap, best

    def _put_off(self, iterate: Iterate, estimate: float, gap: float, least: float) -> None:
        """Ask again when the estimate has fallen by what was lacking, or to the share `least`."""
        # A point that was judged whatever its estimate says nothing about when to ask again, nor
        # does a warm start, whose coefficients belong to other costs.
        below = ask_below(estimate, gap, self._tol, least)
        if iterate.n_iter > 0:
            self._judge_below = min(below, self._judge_below)
        self._judge_at = iterate.n_iter + _MAX_WAIT

    def _foresee_gap(self, dual: FloatArray, iterate: Iterate) -> float:
        """What a certificate with a dual point lacks at least, if the estimated gap holds.

        The dual is concave, so its tangent at the coefficients of w is above it. Without a product
        with the data, which half of a certificate is made of.
        """
        task = self._task
        if self._problem.loss != "hinge" or task.linear is not None or iterate.w.scores.size == 0:
            return 0.0
        reached = min(iterate.objective, self._problem.constant_classifier[1]) - iterate.gap
        above = self._find_tangent(dual, iterate)
        return (reached - above) / max(1.0, abs(iterate.objective))

    def _find_tangent(self, dual: FloatArray, iterate: Iterate) -> float:
        """The tangent of the dual at the coefficients of w, which is above it, at a point."""
        task, w = self._task, iterate.w
        above = float(np.sum(task.margin * dual)) - 0.5 * task.operator.inner(w, w)
        return above - float((task.y * w.scores) @ (dual - task.dual_of(w)))

    def _is_raising_worth_it(self, iterate: Iterate) -> bool:
        """Whether w = 0 is nearly best, or steps on a kernel take longer than a certificate."""
        if self._polish or self._problem.loss != "hinge" or iterate.slack.size == 0:
            return False
        is_dear = self._task.operator.is_gram and iterate.n_active >= LARGE_SYSTEM
        return is_dear or self._is_nearly_nothing(iterate)

    def _is_nearly_nothing(self, iterate: Iterate) -> bool:
        """Whether w = 0 is nearly best, as far as the estimated gap tells."""
        times = _NEARLY_NOTHING if iterate.n_iter < _LATE else _NEARLY_NOTHING_LATE
        near = times * self._tol * max(1.0, abs(iterate.objective))
        return self._problem.constant_classifier[1] <= iterate.objective - iterate.gap + near

    def _raise(self, nearest: FloatArray, iterate: Iterate) -> FloatArray:
        """A dual point of a larger bound next to the coefficients of a short w.

        They leave the dual set here and there; the nearest point of it then lacks as much
        elsewhere, and the bound with it. Coefficients that are first raised in proportion to the
        deviations fill up what the costs allow: a step of the multiplier, as short as will do.
        """
        task = self._task
        coef = task.dual_of(iterate.w)
        missing = float(np.abs(nearest - coef).mean())
        raised = _FILL_UP * missing * np.maximum(iterate.slack, 0.0)
        if task.loss.mass is not None:
            raised *= task.loss.mass / task.loss.mass.mean()
        raised += coef
        raised[coef <= 0.0] = 0.0
        return project_balanced(task, raised)

    def _consider_shorter(
        self, iterate: Iterate, gap: float, best: Certificate
    ) -> tuple[float, Certificate]:
        """Where w = 0 is proven to be nearly best: the classifier, as far as that is proven, too.

        As long as its last digits are wrong w may be worse by more than the tolerance, however
        short it is. The objective is convex between w = 0 and w: the longest vector that will do.
        """
        task, problem = self._task, self._problem
        intercept, nothing = problem.constant_classifier
        limit = self._floor + _SHORTER * self._tol * max(1.0, abs(nothing))
        dual = self._proving
        if dual is None or nothing > limit or problem.samples.keeps_weight:
            return gap, best
        # Balanced and not negative, as the classifier has them that is judged.
        coef = project_balanced(task, task.dual_of(iterate.w))
        w = task.operator.vector(task.target(coef))
        start = 1.0 - task.y * intercept
        change = task.margin - task.y * (w.scores + iterate.intercept) - start
        half = 0.5 * task.operator.inner(w, w)
        low, high = 0.0, 1.0
        for _ in range(_MAX_HALVINGS):
            middle = 0.5 * (low + high)
            value = middle**2 * half + task.loss.value(start + middle * change)
            low, high = (middle, high) if value <= limit else (low, middle)
        intercept += low * (iterate.intercept - task.operator.intercept_shift(w.coef) - intercept)
        intercept += task.operator.intercept_shift(low * w.coef)
        shorter = replace(iterate, intercept=intercept)
        other, best = self._consider(dual, shorter, low * coef)
        return min(gap, other), best

    def _accept(self, best: Certificate, n_iter: int) -> None:
        """The gap is proven: decide how much further to go."""
        self._satisfied_at, self._redeemed_at = n_iter, None
        self._polished_below = _polished_gap(best)
        # Where w = 0 is best, coefficients that are no worse take some steps more.
        is_exact = self._is_exact(best) and not best.is_worse_than_nothing
        self._is_polished = is_exact or not self._polish
        tuning = self._task.tuning
        self._last_step = n_iter + max(int(tuning.polish_share * n_iter), tuning.polish_steps)

    def _is_exact(self, best: Certificate) -> bool:
        """Whether a certificate leaves nothing but rounding to a point that proves itself."""
        return self._self_proven and best.computed_gap <= _polished_gap(best)

    def _consider(
        self,
        dual: FloatArray,
        iterate: Iterate,
        classifier: FloatArray | None = None,
        *,
        final: bool = False,
    ) -> tuple[float, Certificate]:
        """Gap proven by a dual point, and the best certificate until now."""
        task, keeps_weight = self._task, self._problem.samples.keeps_weight
        held_by = dual if classifier is None else classifier
        certificate = judge(
            self._problem,
            dual,
            iterate.intercept - task.operator.intercept_shift(task.y * held_by),
            weight=iterate.w.weight if keeps_weight else None,
            coef=classifier,
            intercept_within=task.tuning.worth_a_search * self._tol,
            tol=self._tol,
            final=final,
            loss=self._loss,
        )
        if self._is_large and keeps_weight:
            # Until it is clear which one is kept.
            certificate = replace(certificate, deviations=np.empty(0))
        self.is_limited |= certificate.is_limited(self._tol)
        self._rounding = certificate.rounding
        if certificate.floor > self._floor:
            self._floor = certificate.floor
            self._proving = None if self._is_large else dual
        kept = not certificate.is_worse_than_nothing
        if kept and (self._cheapest is None or certificate.objective < self._cheapest.objective):
            self._cheapest = certificate
        best = self._best
        if best is None or self._is_preferred(certificate, best, proves_itself=classifier is None):
            best = self._best = certificate
            self._self_proven = classifier is None
        return certificate.worst_gap, best

    def _is_preferred(self, found: Certificate, best: Certificate, *, proves_itself: bool) -> bool:
        """Whether a certificate takes the place of the best one.

        Among proven ones a point that proves itself comes before a classifier with the bound of
        another point, however much smaller the gap of that one is.
        """
        own = found if proves_itself else best
        if proves_itself != self._self_proven and own.worst_gap <= self._tol:
            return proves_itself
        return found.gap < best.gap

    def best_certificate(self, iterate: Iterate) -> Certificate:
        """The best certificate seen, after a look at the last iterate."""
        best = self._choose_best(iterate)
        if best.deviations.size == 0:
            return with_deviations(self._problem, best)
        return best

    def _choose_best(self, iterate: Iterate) -> Certificate:
        best = self._best
        if best is None or self._satisfied_at is None:
            best = self._consider_all(iterate, final=False)
        # A proof by one's own coefficients is worth more than the last digit of w = 0.
        if best.is_worse_than_nothing and not best.worst_gap <= self._tol:
            self._best = None
            best = self._consider_all(iterate, final=True)
        return best if best.worst_gap <= self._tol else self._take_cheapest(best)

    def _take_cheapest(self, best: Certificate) -> Certificate:
        """The classifier of the smallest objective, with the best bound of all that were seen.

        Where no gap is small, the smallest may belong to a classifier that is merely known better,
        and w = 0 may be best where none of its own coefficients has proven it.
        """
        if self._cheapest is not None and self._cheapest.objective < best.objective:
            best = self._cheapest
        if not self._problem.is_definite:
            return best
        bound = charged_bound(self._floor, best.objective_rounding, best.objective)
        return replace(best, lower_bound=bound)

    def _consider_all(self, iterate: Iterate, *, final: bool) -> Certificate:
        """All that an iterate can be judged by."""
        classifier = self._task.dual_of(iterate.w)
        self._consider(project_balanced(self._task, classifier), iterate, final=final)
        dual = project_balanced(self._task, iterate.dual)
        self._consider(dual, iterate, final=final)
        best = self._consider(dual, iterate, classifier, final=final)[1]
        # Or no digit of the last one says anything.
        self.is_limited |= self._rounding > self._tol * max(1.0, abs(best.objective))
        return best
