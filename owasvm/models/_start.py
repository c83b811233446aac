"""Good classifiers before the search: the SVM of Algorithm 1, and descent from a given one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import objective_of_dual
from owasvm.intercept import global_intercept
from owasvm.models import nc_owa_svm_fixed
from owasvm.models._data import gram_matrix, rank_costs
from owasvm.models.backends import BackendError, cvxpy_
from owasvm.models.c_owa_svm_compact import network_formulation
from owasvm.problem import OWAProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MAX_STEPS = 20
_WORTHWHILE = 1e-7
_ROUNDING = 1e-9


class Classifier(NamedTuple):
    """Coefficients, intercept, objective and deviations."""

    dual: FloatArray
    intercept: float
    objective: float
    deviations: FloatArray

    @property
    def order(self) -> IntArray:
        """The samples, smallest deviation first."""
        return np.argsort(self.deviations, kind="stable")


def evaluate(problem: OWAProblem, dual: FloatArray, intercept: float) -> Classifier:
    """The classifier of these coefficients and this intercept."""
    return Classifier(dual, intercept, *objective_of_dual(problem, dual, intercept))


def with_best_intercept(problem: OWAProblem, dual: FloatArray) -> Classifier:
    """The classifier of these coefficients with the best intercept, the midpoint of several."""
    scores = problem.scores(dual)
    return evaluate(problem, dual, global_intercept(scores, problem.y, rank_costs(problem)))


def svm(problem: OWAProblem) -> Classifier:
    """The l2-SVM with the same kernel and C, its own intercept, and its OWA objective."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    y = problem.y
    dual = np.zeros(y.size)
    if np.all(y == y[0]):
        return evaluate(problem, dual, float(y[0]))
    machine = SVC(kernel="precomputed", C=problem.costs.C, tol=1e-6, max_iter=10**7)
    with warnings.catch_warnings():
        # Any classifier gives a valid upper bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(gram_matrix(problem), y)
    dual[machine.support_] = np.abs(machine.dual_coef_[0])
    return evaluate(problem, dual, float(machine.intercept_[0]))


def split(costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Non-decreasing p and q with ``costs = p - q``: the rises and the falls."""
    steps = np.diff(costs)
    rises = costs[0] + np.concatenate(([0.0], np.cumsum(np.maximum(steps, 0.0))))
    return rises, rises - costs


def descend(
    problem: OWAProblem,
    starts: list[Classifier],
    *,
    backend: str | None = None,
    expired: Callable[[], bool] = lambda: False,
) -> Classifier:
    """Convex-concave steps from every start; the best classifier found.

    With ``costs = p - q`` the falling part is replaced by its tangent at the current order; each
    step solves a convex OWA-SVM with weights p and a linear term, and the objective never rises.
    """
    rising, falling = split(rank_costs(problem))
    shift = cvxpy_.import_cvxpy().Parameter(problem.n_samples)
    step = network_formulation(problem, rising, shift)
    best = min(starts, key=lambda classifier: classifier.objective)
    for current in starts:
        for _ in range(_MAX_STEPS):
            if expired():
                return best
            tangent = np.zeros(problem.n_samples)
            tangent[current.order] = falling
            shift.value = tangent
            try:
                result = cvxpy_.solve(step.model, backend=backend, tol=1e-9)
            except BackendError:
                break
            if not result.has_point:
                break
            found = with_best_intercept(problem, np.maximum(step.dual(), 0.0))
            gained = current.objective - found.objective
            if found.objective < best.objective:
                best = found
            if gained <= _WORTHWHILE * max(1.0, abs(current.objective)):
                break
            current = found
    return best


def polish(
    problem: OWAProblem, classifier: Classifier, *, backend: str | None = None
) -> Classifier:
    """The best classifier with the order of deviations of a given one; never a worse one."""
    try:
        candidates = nc_owa_svm_fixed.best_at_order(problem, classifier.order, backend=backend)
    except BackendError:
        return classifier
    by_multipliers, by_coordinates = (with_best_intercept(problem, dual) for dual in candidates)
    # Multipliers are non-negative and vanish off the margin: preferred unless they are inexact.
    # With convex weights they are a dual point as well, which is all that the judge takes there.
    allowed = _ROUNDING * max(1.0, abs(by_coordinates.objective))
    found = by_coordinates
    if problem.costs.convex or by_multipliers.objective <= by_coordinates.objective + allowed:
        found = by_multipliers
    return found if found.objective <= classifier.objective + allowed else classifier
