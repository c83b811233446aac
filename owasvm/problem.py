"""The problem itself: samples, labels, costs and loss, checked once.

``minimise 1/2 |w|^2 + Phi(1 - y f)`` over (w, b), ``f(x) = <w, phi(x)> + b``. For the hinge
``Phi`` is ``C * sum_k weights[k] * xi_(k)``, ``xi_i = max(0, 1 - y_i f(x_i))`` sorted ascending.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.costs import Costs, OwnCosts, PlainCosts, RankCosts, WeightedCosts
from owasvm.grouping import charge_by_rank
from owasvm.losses import LOSSES, ProxPoint, RankedLoss, make_loss
from owasvm.samples import Samples, samples_of
from owasvm.solution import Solution

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["Costs", "OWAProblem", "OwnCosts", "PlainCosts", "RankCosts", "WeightedCosts"]

# Norms of samples beyond this leave no room for their products.
_LARGEST_NORM = 1e140


@dataclass(frozen=True, eq=False, init=False)
class OWAProblem:
    """An OWA-SVM, ready for a solver.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    costs : Costs
        The rank weights times C.
    features : ndarray or CSR matrix of shape (n_samples, n_features) or None, default=None
        The samples of a linear model.
    gram : ndarray of shape (n_samples, n_samples) or None, default=None
        Kernel values ``K(x_i, x_j)``, symmetric.
    samples : Samples or None, default=None
        The samples, prepared. Exactly one of `features`, `gram` and `samples` is given.
    loss : str, default="hinge"
        One of :data:`owasvm.losses.LOSSES`.

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
    costs: Costs
    samples: Samples
    loss: str

    def __init__(
        self,
        y: FloatArray,
        costs: Costs,
        features: Any = None,
        gram: FloatArray | None = None,
        *,
        samples: Samples | None = None,
        loss: str = "hinge",
    ) -> None:
        given = samples_of(features, gram, samples)
        values = {"y": y, "costs": costs, "samples": given, "loss": loss}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        n_samples = self.y.shape[0]
        if not np.all(np.abs(self.y) == 1.0):
            raise ValueError("y must hold the labels -1.0 and +1.0 only.")
        if self.samples.n_samples != n_samples:
            raise ValueError(
                f"The samples have {self.samples.n_samples} rows, y has shape {self.y.shape}."
            )
        if self.costs.n_samples != n_samples:
            raise ValueError(f"costs are for {self.costs.n_samples} samples, y has {n_samples}.")
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {self.loss!r}.")
        if not self.largest_norm < _LARGEST_NORM:
            raise ValueError(
                f"The samples are too large: their norms reach {self.largest_norm:.3g}, and "
                "products of them overflow. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler."
            )

    @property
    def features(self) -> Any:
        """The features it was given by, None for other samples."""
        return getattr(self.samples, "features", None)

    @property
    def gram(self) -> FloatArray | None:
        """The Gram matrix it was given by, None for other samples."""
        return getattr(self.samples, "gram", None)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.y.shape[0]

    @property
    def is_definite(self) -> bool:
        """Whether the kernel is positive semi-definite, so that there is a lower bound."""
        return self.samples.is_definite

    @cached_property
    def largest_norm(self) -> float:
        """The largest of the norms of the samples."""
        return float(self.samples.norms.max(initial=0.0))

    def ranked_loss(self) -> RankedLoss:
        """The loss bound to the costs, with memory of its own to work in."""
        return make_loss(self.loss, self.costs)

    @cached_property
    def constant_classifier(self) -> tuple[float, float]:
        """The best intercept for w = 0, and its loss: no classifier that is kept may be worse."""
        loss = self.ranked_loss()
        losses = {b: loss.value(1.0 - self.y * b) for b in loss.constant_intercepts(self.y)}
        best = min(losses, key=lambda b: losses[b])
        return best, losses[best]

    def scores(self, dual: FloatArray) -> FloatArray:
        """``<w, phi(x_j)>`` of all samples, with ``w = sum_i a_i y_i phi(x_i)``."""
        return self.samples.scores(self.y * dual)

    def weight_of(self, solution: Solution) -> FloatArray | None:
        """w of a linear model; None where nothing but kernel values is known."""
        if solution.coef is not None:
            return solution.coef
        return self.samples.weight(self.y * solution.dual)

    def deviations_of(self, solution: Solution) -> FloatArray:
        """Hinge deviations at a solution, its intercept being that for the samples as moved."""
        if solution.deviations is not None:
            return solution.deviations
        if solution.coef is not None:
            scores = self.samples.evaluate_weight(solution.coef).scores
        else:
            scores = self.scores(solution.dual)
        return np.maximum(1.0 - self.y * (scores + solution.intercept), 0.0)

    def sample_costs(self, solution: Solution) -> FloatArray:
        r"""What each sample pays at a solution per unit of deviation, squared for that loss.

        The k-th smallest deviation pays the k-th cost, and samples that tie share their costs in
        proportion to their sample weights.

        At a solution of a convex problem many tie, as far as the solver's tolerance lets them.
        The dual variables a tell which: with a solution ``(deviations, a)`` the prox at
        ``deviations + a / (penalty s)`` gives the deviations back, and near a solution it returns
        exactly equal ones for those that tie.

        Parameters
        ----------
        solution : Solution
            A solution of the problem.

        Returns
        -------
        charged : ndarray of shape (n_samples,)
            They sum to ``costs.total``.
        """
        deviations = self.deviations_of(solution)
        if not self.costs.convex:
            return charge_by_rank(self.costs, deviations)
        loss = self.ranked_loss()
        penalty = loss.mean_cost
        scale = penalty if loss.mass is None else penalty * loss.mass
        point = ProxPoint(self.n_samples)
        loss.prox(deviations + solution.dual / scale, penalty, point)
        equal = np.maximum(point.prox, 0.0)
        # With many samples there is no room for numbers that are not needed any more.
        del loss, point, scale
        return charge_by_rank(self.costs, equal)

    def as_given(self, solution: Solution) -> Solution:
        """A solution with the intercept for the samples as they were given."""
        move, signed = self.samples.intercept_as_given, self.y * solution.dual
        return replace(solution, intercept=move(signed, solution.coef, solution.intercept))

    def as_moved(self, solution: Solution) -> Solution:
        """The other way round: a solution to start from."""
        move, signed = self.samples.intercept_as_moved, self.y * solution.dual
        return replace(solution, intercept=move(signed, solution.coef, solution.intercept))

    def with_costs(self, costs: Costs) -> OWAProblem:
        """The same samples and labels with other costs."""
        return replace(self, costs=costs)

    @property
    def can_scale(self) -> bool:
        """Whether there is the same problem with another C."""
        return isinstance(self.costs, PlainCosts)

    def with_C(self, C: float) -> OWAProblem:
        """The same problem with another C; it keeps what is known of samples and weights."""
        if not isinstance(self.costs, PlainCosts):
            raise TypeError(f"{type(self.costs).__name__} cannot be scaled; make a new problem.")
        b, loss = self.constant_classifier
        scaled = copy(self)
        changes = {
            "costs": self.costs.scaled_to(C),
            "constant_classifier": (b, loss * (C / self.costs.C)),
        }
        for name, value in changes.items():
            object.__setattr__(scaled, name, value)
        return scaled

    def nearest_definite(self) -> OWAProblem:
        """The same problem with a positive semi-definite kernel near its own."""
        return replace(self, samples=self.samples.nearest_definite())
