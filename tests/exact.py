"""Objectives in extended precision on the data as given, and feasible values to compare them with.

:class:`ExactProblem` evaluates classifiers with twice the digits (``tests/extended.py``);
:class:`Rivals` looks for good ones by means other than the library: LIBSVM with weights by rank,
Clarabel, enumeration, solving for the pattern of margins and ties. Their values count, never what
a solver says about itself, so a rival found by a careless method is as good a witness as any.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import SVC

from owasvm.weights import is_convex, owa_weights, share_function, weights_in_order
from tests.extended import Wide, as_wide, dot, inner, inner_products, squared_distances
from tests.hostile import HostileProblem

FloatArray = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
CARELESS = 1e-12
# Precomputed matrices may differ from their transposes by this much, relative: what single
# precision leaves behind. Beyond it they have no bound.
LARGEST_ASYMMETRY = 1e-7
# Kernel values beyond this may be refused: their squares overflow.
LARGEST_KERNEL_VALUE = 1e150


class ExactProblem:
    """The problem a user stated, evaluated with twice the digits on the data as given.

    A classifier is ``(coefficients, intercept)``: w itself for linear kernels, the signed
    coefficients of the samples for others. Both may be doubles or wide numbers.

    Parameters
    ----------
    problem : HostileProblem
        The problem.
    gamma : float or None, default=None
        The number that the kernel parameter gamma stands for; needed for ``"scale"``.
    """

    def __init__(self, problem: HostileProblem, gamma: float | None = None) -> None:
        self.problem = problem
        dense = problem.X.toarray() if sp.issparse(problem.X) else np.asarray(problem.X)
        mass = np.ones(problem.y.size)
        if problem.sample_weight is not None:
            mass = mass * problem.sample_weight
        if problem.parameters.get("class_weight") == "balanced":
            totals = {label: mass[problem.y == label].sum() for label in (-1.0, 1.0)}
            mass = mass * np.array(
                [mass.sum() / (2.0 * totals[float(label)]) for label in problem.y]
            )
        self.rows = np.flatnonzero(mass > 0.0)
        self.y = problem.y[self.rows]
        self.C = float(problem.parameters["C"])
        self.power = 2 if problem.parameters.get("loss") == "squared_hinge" else 1
        self.is_linear = problem.kernel == "linear"
        self.gram = Wide(0.0)
        # Centred features, or the exact kernel rounded once: what other solvers are given.
        self.near_gram: FloatArray
        if self.is_linear:
            self.X = dense[self.rows]
            mean = Wide(self.X.T).sum(axis=1) / float(self.rows.size)
            self.centred = (Wide(self.X) - mean).doubles()
            self.near_gram = self.centred @ self.centred.T
        else:
            self.gram = self._exact_gram(dense, gamma)
            self.near_gram = self.gram.doubles()
        self._set_costs(mass[self.rows])
        self._set_definiteness(dense)

    def _exact_gram(self, dense: FloatArray, gamma: float | None) -> Wide:
        parameters, kernel = self.problem.parameters, self.problem.kernel
        if kernel == "precomputed":
            given = Wide(dense[np.ix_(self.rows, self.rows)])
            return (given + given.T) * 0.5
        X = dense[self.rows]
        if gamma is None:
            gamma = parameters.get("gamma", "scale")
        if isinstance(gamma, str):
            entries = Wide(X.ravel())
            variance = (entries - entries.sum(axis=0) / float(X.size)).power(2).sum(axis=0)
            gamma = 1.0 if float(variance) == 0.0 else X.shape[0] / float(variance)
        if kernel == "rbf":
            return (squared_distances(X) * -gamma).exp()
        argument = inner_products(X) * gamma + parameters.get("coef0", 0.0)
        if kernel == "poly":
            return argument.power(int(parameters.get("degree", 3)))
        return argument.tanh()

    def _set_costs(self, mass: FloatArray) -> None:
        parameters = self.problem.parameters
        family, alpha = parameters.get("weights", "basic"), parameters.get("alpha", 0.6)
        self.mass = None if np.all(mass == 1.0) else mass
        self.is_grouped = parameters.get("ranks") == "class"
        if self.is_grouped:
            self.shares = {
                sign: share_function(family, alpha, total=float(mass[self.y == sign].sum()))
                for sign in (-1.0, 1.0)
            }
            alone = [weights_in_order(share, np.ones(1024)) for share in self.shares.values()]
            self.convex = all(map(is_convex, alone))
            return
        if self.mass is None:
            self.weights = owa_weights(mass.size, family, alpha)
            self.costs = Wide(self.weights) * self.C
            self.convex = is_convex(self.weights)
            return
        self.share = share_function(family, alpha, total=float(mass.sum()))
        slices = np.full(4096, float(mass.sum()) / 4096)
        self.convex = is_convex(weights_in_order(self.share, slices))

    def _set_definiteness(self, dense: FloatArray) -> None:
        """Whether the kernel has any bound, and what its rounding is worth."""
        kernel = self.problem.kernel
        self.largest = float(np.max(np.abs(self.near_gram)))
        self.is_overflowing = not self.largest <= LARGEST_KERNEL_VALUE
        self.is_asymmetric = False
        self.lowest_direction: FloatArray | None = None
        # Allowance: rounding of the given numbers can hide a negative eigenvalue of this size.
        self.allowance = 0.0
        exactly_definite = kernel in ("linear", "rbf") or (
            kernel == "poly" and self.problem.parameters.get("coef0", 0.0) >= 0.0
        )
        if exactly_definite or self.is_overflowing:
            return
        # What arithmetic behind the given numbers leaves, were it careless (distances of samples
        # far from the origin from products, say).
        rounding = max(self.rows.size * EPS, CARELESS) * self.largest
        if kernel == "precomputed":
            asymmetry = float(np.max(np.abs(dense - dense.T)))
            self.is_asymmetric = asymmetry > LARGEST_ASYMMETRY * float(np.max(np.abs(dense)))
        scale = self.largest or 1.0
        eigenvalues, vectors = np.linalg.eigh(self.near_gram / scale)
        direction = vectors[:, 0]
        # Evaluated exactly, the curvature is no artefact of the eigenvalue routine.
        curvature = inner(direction, dot(self.gram, direction)) / inner(direction, direction)
        if float(curvature) < -rounding:
            self.lowest_direction = direction
        elif eigenvalues[0] * scale < rounding:
            self.allowance = rounding

    @property
    def is_unbounded(self) -> bool:
        """Whether objectives reach minus infinity: the kernel has a negative direction."""
        return self.lowest_direction is not None

    def scores(self, coefficients: Any) -> Wide:
        """Decision values without intercept."""
        return dot(self.X if self.is_linear else self.gram, coefficients)

    def half_squared_norm(self, coefficients: Any, scores: Wide, *, allowing: bool) -> Wide:
        """``1/2 |w|^2``, larger by what rounding of a given matrix can have taken away."""
        if self.is_linear:
            return inner(coefficients, coefficients) * 0.5
        norm = inner(coefficients, scores) * 0.5
        if self.allowance and allowing:
            norm = norm + inner(coefficients, coefficients) * (0.5 * self.allowance)
        return norm

    def loss(self, scores: Wide, intercept: Any) -> Wide:
        """``C`` times the ordered weighted sum of the deviations, or of their squares."""
        margins = Wide(self.y) * (scores + as_wide(intercept))
        deviations = (1.0 - margins).at_least_zero()
        order = deviations.argsort()
        return inner(self.costs_in_order(order), deviations[order].power(self.power))

    def costs_in_order(self, order: NDArray[np.intp]) -> Wide:
        """Costs of the samples in ascending order of deviation."""
        if self.is_grouped:
            mass = np.ones(order.size) if self.mass is None else self.mass
            costs = np.empty(order.size)
            for sign, share in self.shares.items():
                own = self.y[order] == sign
                costs[own] = weights_in_order(share, mass[order][own])
            return Wide(costs) * self.C
        if self.mass is None:
            return self.costs
        return Wide(weights_in_order(self.share, self.mass[order])) * self.C

    def value(self, coefficients: Any, intercept: Any, *, allowing: bool = True) -> float:
        """The objective of a classifier.

        `allowing` for the rounding of a given kernel matrix is fair to a bound that a rival's
        value is held against; the objective of a fitted classifier is what it is.
        """
        scores = self.scores(coefficients)
        norm = self.half_squared_norm(coefficients, scores, allowing=allowing)
        return float(norm + self.loss(scores, intercept))

    def value_of_kernel_form(self, signed: FloatArray, intercept: Any) -> float:
        """The objective of ``w = sum_i signed_i phi(x_i)``, for linear kernels too."""
        if not self.is_linear:
            return self.value(signed, intercept)
        return self.value(dot(self.X.T, signed), intercept)

    def null_value(self) -> float:
        """The best objective with w = 0 and an intercept of -1, 0 or 1."""
        scores = Wide(np.zeros(self.y.size))
        return min(float(self.loss(scores, b)) for b in (-1.0, 0.0, 1.0))

    def with_best_intercept(
        self, coefficients: Any, intercept: float | None = None
    ) -> tuple[float, Wide, Wide]:
        """Objective, intercept and scores; an intercept may be given to compete.

        The loss of the hinge is piecewise linear in the intercept, with its smallest value where a
        deviation becomes 0 or two deviations cross. The search is in doubles, about the score of
        the first sample; the best few places are evaluated exactly.
        """
        scores = self.scores(coefficients)
        offset = scores[0]
        near = (scores - offset).doubles()
        if not np.all(np.isfinite(near)):
            return np.inf, Wide(0.0), scores
        places = np.unique(self.y - near)
        losses = self._near_losses(near, places)
        for best in np.argsort(losses)[:2]:
            low, high = places[max(best - 1, 0)], places[min(best + 1, places.size - 1)]
            crossings = (-0.5 * np.add.outer(near[self.y > 0], near[self.y < 0])).ravel()
            crossings = np.unique(crossings[(crossings > low) & (crossings < high)])
            # Too many to try them all: evenly spread ones will do.
            crossings = crossings[:: crossings.size // 60 + 1]
            places = np.concatenate((places, crossings))
            losses = np.concatenate((losses, self._near_losses(near, crossings)))
        found = [Wide(place) - offset for place in places[np.argsort(losses)[:2]]]
        if intercept is not None:
            found.append(Wide(intercept))
        norm = self.half_squared_norm(coefficients, scores, allowing=True)
        values = [float(norm + self.loss(scores, candidate)) for candidate in found]
        best = int(np.argmin(values))
        return values[best], found[best], scores

    def _near_losses(self, scores: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Losses in doubles, one for each intercept."""
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = np.maximum(0.0, 1.0 - self.y * (scores + intercepts[:, None]))
            if self.mass is None and not self.is_grouped:
                return np.sort(deviations, axis=1) ** self.power @ self.costs.doubles()
            return np.array([self._near_loss(row) for row in deviations])

    def _near_loss(self, deviations: FloatArray) -> float:
        order = np.argsort(deviations)
        costs = self.costs_in_order(order).doubles()
        return float(costs @ deviations[order] ** self.power)


def exact_objective(problem: HostileProblem, coefficients: Any, intercept: Any) -> float:
    """Objective of a classifier on the data as given; see :class:`ExactProblem`."""
    return ExactProblem(problem).value(coefficients, intercept)


class Rivals:
    """Feasible values from elsewhere: upper bounds of the optimum, found without the library.

    Parameters
    ----------
    exact : ExactProblem
        The problem.
    """

    def __init__(self, exact: ExactProblem) -> None:
        self.exact = exact
        self.best = exact.null_value()
        self.name = "w = 0"
        self._coefficients: Any = np.zeros(exact.X.shape[1] if exact.is_linear else exact.y.size)
        self._intercept = Wide(0.0)
        self._scores = Wide(np.zeros(exact.y.size))
        self._rng = np.random.default_rng(exact.problem.seed)

    def search(
        self, start: tuple[FloatArray, float] | None = None, *, thorough: bool = True
    ) -> float:
        """The smallest value found, beginning with a classifier if one is given."""
        if start is not None:
            self.consider(start[0], "the classifier itself", start[1])
        if self.exact.is_unbounded:
            self._fall()
            return self.best
        self._polish()
        if not thorough:
            return self.best
        self._reweighted(np.arange(self.exact.y.size), "classical SVM")
        if self.exact.convex:
            self._interior_point()
        else:
            self._from_other_orders()
        self._polish()
        self._perturb()
        return self.best

    def consider(
        self, coefficients: Any, name: str, intercept: float | None = None
    ) -> FloatArray | None:
        """Evaluate a classifier with its best intercept; its deviations, if they are finite."""
        near = coefficients.doubles() if isinstance(coefficients, Wide) else coefficients
        if not np.all(np.isfinite(near)):
            return None
        value, intercept_found, scores = self.exact.with_best_intercept(coefficients, intercept)
        if not np.isfinite(value):
            return None
        if value < self.best:
            self.best, self.name = value, name
            self._coefficients, self._intercept = coefficients, intercept_found
            self._scores = scores
        return (1.0 - Wide(self.exact.y) * (scores + intercept_found)).doubles()

    def _from_samples(self, signed: FloatArray) -> FloatArray:
        """Coefficients of ``w = sum_i signed_i phi(x_i)``."""
        return self.exact.centred.T @ signed if self.exact.is_linear else signed

    def _fall(self) -> None:
        """Follow a direction of negative curvature."""
        direction = self.exact.lowest_direction
        assert direction is not None
        for exponent in range(-4, 40, 4):
            self.consider(10.0**exponent * direction, "direction of negative curvature")

    def _near_costs(self, order: NDArray[np.intp]) -> FloatArray:
        """Costs of the samples, given their order by deviation."""
        costs = np.empty(order.size)
        costs[order] = self.exact.costs_in_order(order).doubles()
        return costs

    def _reweighted(self, order: NDArray[np.intp], name: str, rounds: int = 5) -> None:
        """Weighted SVMs, the weights by the ranks of the deviations of the one before."""
        costs = self._near_costs(order)
        if name == "classical SVM":
            costs = np.full(order.size, float(costs.mean()))
        seen = set()
        for _ in range(rounds):
            signed = _weighted_svm(self.exact.near_gram, self.exact.y, costs)
            if signed is None:
                return
            deviations = self.consider(self._from_samples(signed), name)
            if deviations is None:
                return
            order = np.argsort(deviations, kind="stable")
            if order.tobytes() in seen:
                return
            seen.add(order.tobytes())
            costs = self._near_costs(order)

    def _from_other_orders(self) -> None:
        """For weights that fall: few samples in every order, more in a few random ones."""
        n_samples = self.exact.y.size
        if n_samples <= 5:
            for order in itertools.permutations(range(n_samples)):
                self._reweighted(np.array(order), "enumeration", rounds=1)
            return
        for _ in range(6):
            self._reweighted(self._rng.permutation(n_samples), "random order", rounds=4)

    def _interior_point(self) -> None:
        """The convex problem through Clarabel, on centred features or the exact kernel."""
        exact = self.exact
        if exact.mass is not None or exact.y.size > 80 or exact.is_overflowing:
            return
        if exact.is_grouped:
            return
        for unit_rows in (False, True):
            for signed in _interior_point(
                exact.near_gram, exact.y, exact.weights, exact.C, unit_rows
            ):
                self.consider(self._from_samples(signed), "interior point")

    def _polish(self) -> None:
        """Solve for the pattern of margins and ties at the best point, while that helps."""
        for _ in range(4):
            before = self.best
            for tolerance in (1e-2, 1e-4, 1e-6, 1e-8):
                signed = self._pattern_solution(tolerance)
                if signed is not None:
                    self.consider(self._from_samples(signed), "pattern")
            if not self.best < before - 1e-12 * abs(before):
                return

    def _pattern_solution(self, tolerance: float) -> FloatArray | None:
        """Signed coefficients that are optimal for the present margins, ties and ranks.

        Samples on the margin keep a deviation of 0; samples of one deviation keep it in common
        and share their costs; the costs of all others are those of their ranks.
        """
        exact = self.exact
        y, gram = exact.y, exact.near_gram
        deviations = (1.0 - Wide(y) * (self._scores + self._intercept)).doubles()
        if not np.all(np.isfinite(deviations)):
            return None
        width = tolerance * max(1.0, float(np.abs(deviations).max()))
        order = np.argsort(deviations, kind="stable")
        costs = exact.costs_in_order(order).doubles()
        multipliers = np.zeros(y.size)
        groups: list[tuple[list[int], float | None]] = []  # samples, their cost in common
        margin = [int(i) for i in order if abs(deviations[i]) <= width]
        position = int(np.sum(deviations <= width))
        groups += [([i], None) for i in margin]
        while position < y.size:
            end = position + 1
            while end < y.size and deviations[order[end]] - deviations[order[end - 1]] <= width:
                end += 1
            members = [int(i) for i in order[position:end]]
            cost = float(costs[position:end].sum())
            if len(members) == 1:
                multipliers[members[0]] = cost
            else:
                groups.append((members, cost))
            position = end
        free = [i for members, _ in groups for i in members]
        levels = [k for k, (_, cost) in enumerate(groups) if cost is not None]
        size = len(free) + len(levels) + 1
        if not free or size > 130:
            return None
        matrix, right = np.zeros((size, size)), np.zeros(size)
        signs = y[free]
        count = len(free)
        matrix[:count, :count] = signs[:, None] * gram[np.ix_(free, free)] * signs
        matrix[:count, -1] = matrix[-1, :count] = signs
        right[:count] = 1.0 - signs * (gram[free] @ (y * multipliers))
        right[-1] = -float(y @ multipliers)
        where = {i: place for place, i in enumerate(free)}
        for place, k in enumerate(levels):
            members, cost = groups[k]
            row = count + place
            for i in members:
                matrix[row, where[i]] = matrix[where[i], row] = 1.0
            right[row] = cost or 0.0
        scale = np.ones(size)
        diagonal = np.sqrt(np.abs(np.diag(matrix)[:count]))
        scale[:count] = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        scaled = scale[:, None] * matrix * scale
        if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite(right))):
            return None
        try:
            found = scale * np.linalg.lstsq(scaled, scale * right, rcond=1e-14)[0]
        except np.linalg.LinAlgError:
            return None
        multipliers[free] = found[:count]
        return y * multipliers

    def _perturb(self) -> None:
        """Small changes of the best coefficients."""
        for size in (1e-1, 1e-3, 1e-5, 1e-7):
            best = as_wide(self._coefficients)
            self.consider(best * (1.0 - size), "scaled down")
            self.consider(best * (1.0 + size), "scaled up")
            noise = 1.0 + size * self._rng.normal(size=best.shape)
            self.consider(best * noise, "perturbed")


def _weighted_svm(gram: FloatArray, y: FloatArray, costs: FloatArray) -> FloatArray | None:
    """Signed coefficients of a weighted SVM by LIBSVM, or None where it refuses."""
    # LIBSVM drops samples of weight 0; such a small one is as good.
    largest = float(costs.max())
    if not (np.isfinite(largest) and largest > 0.0 and np.all(np.isfinite(gram))):
        return None
    shares = np.maximum(costs / largest, 1e-30)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = SVC(C=largest, kernel="precomputed", tol=1e-9, max_iter=20_000)
            machine.fit(gram, y, sample_weight=shares)
    except ValueError:
        return None
    signed = np.zeros(y.size)
    signed[machine.support_] = machine.dual_coef_[0]
    return signed


def _interior_point(
    gram: FloatArray, y: FloatArray, weights: FloatArray, C: float, unit_rows: bool
) -> Iterator[FloatArray]:
    """Signed coefficients from the multipliers of the primal problem, as Clarabel has them.

    The ordered sum of deviations d with rising weights c is the smallest ``sum q + sum t`` with
    ``q_i + t_j >= c_j d_i``. Divided by its scale the problem has features of unit size, or those
    of C = 1.
    """
    n_samples = y.size
    largest = float(np.max(np.abs(np.diag(gram))))
    if largest == 0.0 or not np.isfinite(largest):
        return
    values, vectors = np.linalg.eigh(gram / largest)
    keep = values > 1e-15 * values[-1]
    factor = vectors[:, keep] * np.sqrt(values[keep])
    # In u = w / stretch, with the rows of `factor` times stretch * sqrt(largest) as features.
    stretch = 1.0 if unit_rows else np.sqrt(C * largest)
    curvature = 1.0 if not unit_rows else 1.0 / (C * largest)
    if not 1e-12 < curvature * 1.0 < 1e12:
        return
    levels, counts = np.unique(weights, return_counts=True)
    rank, n_levels = factor.shape[1], levels.size
    size = rank + 1 + 2 * n_samples + n_levels
    deviation = rank + 1
    q, t = deviation + n_samples, deviation + 2 * n_samples
    quadratic = sp.csc_matrix(
        (np.full(rank, curvature), (np.arange(rank), np.arange(rank))), shape=(size, size)
    )
    linear = np.zeros(size)
    linear[q : q + n_samples] = 1.0
    linear[t:] = counts
    # Rows A z <= b: margins, deviations >= 0, the ordered sum.
    margins = sp.hstack(
        [
            sp.csc_matrix(-y[:, None] * factor * stretch),
            sp.csc_matrix(-y[:, None]),
            -sp.identity(n_samples),
            sp.csc_matrix((n_samples, n_samples + n_levels)),
        ]
    )
    positive = sp.hstack(
        [
            sp.csc_matrix((n_samples, deviation)),
            -sp.identity(n_samples),
            sp.csc_matrix((n_samples, n_samples + n_levels)),
        ]
    )
    i, j = np.divmod(np.arange(n_samples * n_levels), n_levels)
    pairs = np.arange(n_samples * n_levels)
    ordered = sp.csc_matrix(
        (
            np.concatenate((levels[j], -np.ones(pairs.size), -np.ones(pairs.size))),
            (np.tile(pairs, 3), np.concatenate((deviation + i, q + i, t + j))),
        ),
        shape=(pairs.size, size),
    )
    A = sp.vstack([margins, positive, ordered], format="csc")
    b = np.concatenate((-np.ones(n_samples), np.zeros(n_samples + pairs.size)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 100
    settings.time_limit = 1.0
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(A.shape[0])]
    solution = clarabel.DefaultSolver(quadratic, linear, A, b, cones, settings).solve()
    multipliers = np.asarray(solution.z[:n_samples])
    direction = np.asarray(solution.x[:rank])
    if np.all(np.isfinite(multipliers)):
        yield y * multipliers * C
    if np.all(np.isfinite(direction)):
        # w itself, through the factor: exact where the kernel is well conditioned.
        for floor in (1e-13, 1e-8):
            inverse = np.where(values[keep] > floor, 1.0 / np.sqrt(values[keep]), 0.0)
            yield vectors[:, keep] @ (inverse * direction) * stretch / largest
