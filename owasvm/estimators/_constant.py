"""Saying so when the best classifier is a constant one, w = 0."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs
from owasvm.problem import OWAProblem
from owasvm.samples import Samples
from owasvm.solution import Solution, Status

__all__ = [
    "ConstantClassifierWarning",
    "are_all_the_same",
    "is_constant",
    "is_no_better",
    "warn_if_constant",
    "warn_of_constant_fits",
]

# A classifier that is better than w = 0 by less than this share of the objective is noise.
_NOISE = 1e-9
# Samples whose variance is below this share of their mean square are all the same.
_SAME = 1e-12


class ConstantClassifierWarning(UserWarning):
    """The best classifier is w = 0, which treats all samples alike."""


def warn_if_constant(
    name: str,
    problems: list[OWAProblem],
    solutions: list[Solution],
    classes: NDArray[Any],
    target: float,
) -> None:
    r"""Warn once where w = 0 is the solution.

    The best constant classifier has the objective :math:`F_0`. w = 0 is proven to be optimal
    within the target when :math:`F_0` minus the lower bound is within it. It is the solution when
    moreover the classifier that was found is not better than :math:`F_0`; of a local search the
    latter suffices. C does not matter: if 0 is a subgradient of the loss at w = 0, then it is one
    of C times the loss.

    Parameters
    ----------
    name : str
        Of the classifier.
    problems, solutions : list
        One for two classes, one per class for more.
    classes : ndarray of shape (n_classes,)
        Labels.
    target : float
        Relative gap that was asked for.
    """
    pairs = list(zip(problems, solutions, strict=True))
    constant = [k for k, pair in enumerate(pairs) if is_constant(*pair, target)]
    if not constant or are_all_the_same(problems[0].samples):
        return
    whose = ""
    if len(pairs) > 1:
        labels = ", ".join(repr(label) for label in classes[constant].tolist())
        whose = f" for {'class' if len(constant) == 1 else 'classes'} {labels} against the rest"
    proven = all(_is_proven(*pairs[k], target) for k in constant)
    what = "the optimum" if proven else "the best that was found"
    convex = all(problems[k].costs.convex for k in constant)
    level = all(_are_equal(problems[k].costs) for k in constant)
    remedy = f"Take {_ANY}" if level else f"{_RISING if convex else _FALLING}, {_ANY}"
    if not all(_is_proven(*pairs[k], _NOISE) for k in constant):
        C = problems[0].costs.C
        remedy = f"Take a larger C than {C:g}, or a smaller target. If that is not it: {remedy}"
    warnings.warn(
        f"{name}: w = 0 is {what}{whose}, up to a relative gap of {target:g}: all samples get "
        f"the same decision value. {remedy}",
        ConstantClassifierWarning,
        stacklevel=2,
    )


_RISING = "Take less steep weights (a larger alpha of 'basic' or 'superquantile')"
_FALLING = "Ignore fewer samples (a smaller alpha of 'trimmed', a larger one of 'olympic')"
_ANY = (
    "features or a kernel that tell the classes apart (a larger gamma of 'rbf'), or, where "
    "classes differ in size, class_weight='balanced' or ranks='class'."
)


def _are_equal(costs: Costs) -> bool:
    """Whether no weight is larger than their mean: they cannot be less steep."""
    return costs.largest_sum(1) * costs.n_samples <= costs.total * (1.0 + _NOISE)


def warn_of_constant_fits(name: str, constant: NDArray[np.bool_], chosen: int) -> None:
    """Warn once where w = 0 was the solution for the chosen candidate of a search.

    Parameters
    ----------
    name : str
        Of the search.
    constant : ndarray of shape (n_candidates, n_folds)
        Whether w = 0 was the solution.
    chosen : int
        The candidate that was chosen.
    """
    concerned = constant.sum(axis=1) > 0
    if not concerned[chosen]:
        # Large grids have such candidates, and scores tell that they are no good.
        return
    number = f"{np.count_nonzero(concerned)} of {concerned.size} candidates"
    warnings.warn(
        f"{name}: w = 0 is the best that was found in {constant.sum()} of {constant.size} fits, "
        f"for {number}, the chosen one among them: there all samples get the same decision value. "
        "Try less steep weights (a larger alpha of 'basic' or 'superquantile'), weights that "
        "ignore fewer samples (a smaller alpha of 'trimmed', a larger one of 'olympic'), larger "
        f"Cs, {_ANY}",
        ConstantClassifierWarning,
        stacklevel=3,
    )


def is_constant(problem: OWAProblem, solution: Solution, target: float) -> bool:
    """Whether nothing better than w = 0 was found, and nothing better is to be had."""
    if not is_no_better(problem, solution):
        return False
    return solution.status is Status.LOCAL or _is_proven(problem, solution, target)


def is_no_better(problem: OWAProblem, solution: Solution) -> bool:
    """Whether the classifier that was found is not better than w = 0."""
    _, alone = problem.constant_classifier
    return bool(solution.objective >= alone * (1.0 - _NOISE))


def _is_proven(problem: OWAProblem, solution: Solution, target: float) -> bool:
    """Whether w = 0 is optimal within the target."""
    _, alone = problem.constant_classifier
    return alone - solution.lower_bound <= target * max(1.0, alone)


def are_all_the_same(samples: Samples) -> bool:
    """Whether no classifier could tell the samples apart."""
    even = np.full(samples.n_samples, 1.0 / samples.n_samples)
    mean_square = float(np.mean(samples.norms**2))
    return mean_square - float(samples.scores(even) @ even) <= _SAME * mean_square
