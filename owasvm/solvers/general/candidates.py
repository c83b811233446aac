"""A classifier with its objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owasvm.certificate import objective_of_dual
from owasvm.grouping import parts_of
from owasvm.intercept import spread_intercepts
from owasvm.problem import OWAProblem
from owasvm.solvers.general.tuning import DescentTuning

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A classifier and its objective."""

    coef: FloatArray
    intercept: float
    objective: float
    deviations: FloatArray


def evaluate(problem: OWAProblem, coef: FloatArray, intercept: float) -> Candidate:
    """Objective of a classifier."""
    return Candidate(coef, intercept, *objective_of_dual(problem, coef, intercept))


def improve_intercept(
    problem: OWAProblem, candidate: Candidate, n_intercepts: int = DescentTuning.n_intercepts
) -> Candidate:
    """The same direction with the best of a few dozen intercepts.

    Along b the objective is piecewise linear and can have several minima. Kinks of the hinges,
    spread evenly, show where the deep ones are.
    """
    y = problem.y
    scores = problem.scores(candidate.coef)
    intercepts = spread_intercepts(scores, y, n_intercepts)
    slacks = 1.0 - y[:, np.newaxis] * (scores[:, np.newaxis] + intercepts)
    losses = np.zeros(intercepts.size)
    if problem.costs.sample_weight is None:
        deviations = np.maximum(slacks, 0.0)
        for group, part in parts_of(problem.costs):
            losses += part.by_rank() @ np.sort(deviations[group], axis=0)
    else:
        loss = problem.ranked_loss()
        losses[:] = [loss.value(slack) for slack in np.ascontiguousarray(slacks.T)]
    best = evaluate(problem, candidate.coef, float(intercepts[np.argmin(losses)]))
    return best if best.objective < candidate.objective else candidate
