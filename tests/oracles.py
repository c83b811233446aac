"""Independent solutions of OWA-SVMs: simple, slow, and importing nothing of the package.

Each oracle minimises ``1/2 |w|^2 + C * sum_k weights[k] * xi_(k)`` over ``(w, b)``, where ``xi``
are the hinge deviations ``max(0, 1 - y f)``, sorted ascending, so that ``weights[k]`` meets the
k-th smallest one; non-decreasing weights are the convex case.

A kernel problem is the linear one on the rows of a factor ``L`` of the Gram matrix ``L L'``:
pass ``features=psd_factor(gram)``. The result's ``decision_values`` and ``alpha`` are those of the
kernel machine.

The convex oracles judge themselves: ``objective`` is evaluated at the returned point, hence an
upper bound, and ``lower_bound`` is the dual value of a point made feasible by scaling. Their
distance is what the oracle can be off.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations, product

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

FloatArray = NDArray[np.float64]
# Samples that are ranked apart, with weights for as many.
Groups = list[tuple[NDArray[np.int64], FloatArray]]
ByOrder = Callable[[NDArray[np.int64]], FloatArray]

# What two solutions by these oracles may differ by, relative to the objective.
TARGET_GAP = 1e-9


@dataclass(frozen=True)
class OracleSolution:
    """A point, its objective and, for convex problems, a lower bound."""

    objective: float
    lower_bound: float
    coef: FloatArray
    intercept: float
    decision_values: FloatArray
    alpha: FloatArray | None = None

    @property
    def gap(self) -> float:
        """Relative distance of objective and lower bound."""
        return (self.objective - self.lower_bound) / max(1.0, abs(self.objective))


def psd_factor(gram: ArrayLike) -> FloatArray:
    """Rows ``L`` with ``L L' = gram``, negative eigenvalues clipped at 0."""
    symmetric = np.asarray(gram, dtype=float)
    eigenvalues, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    keep = eigenvalues > 1e-15 * max(eigenvalues[-1], 0.0)
    return vectors[:, keep] * np.sqrt(eigenvalues[keep])


def owa_value(deviations: ArrayLike, weights: ArrayLike) -> float:
    """``sum_k weights[k] * sorted(deviations)[k]``, term by term."""
    return float(sum(w * d for w, d in zip(np.asarray(weights), np.sort(deviations), strict=True)))


def exact_prox(
    v: ArrayLike, weights: ArrayLike, masses: Sequence[int] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Prox of the OWA hinge and ``mass * (v - prox)`` in rational arithmetic, rounded at the end.

    The non-increasing fit is the min-max formula
    ``fit_k = min_{i <= k} max_{j >= k} mean(values[i..j])``, O(n^3). `masses` are whole numbers; a
    sample of mass s occupies s positions of `weights`, which then has ``sum(masses)`` entries.
    """
    points = [Fraction(float(entry)) for entry in np.asarray(v)]
    losses = [Fraction(float(weight)) for weight in np.asarray(weights)][::-1]
    copies = [1] * len(points) if masses is None else [int(mass) for mass in masses]
    order = sorted(
        (i for i in range(len(points)) if points[i] > 0), key=lambda i: points[i], reverse=True
    )
    # Prefix sums of what is fitted, s_i v_i minus the weights the copies meet, and of the masses.
    totals, counts = [Fraction(0)], [0]
    for i in order:
        met = sum(losses[counts[-1] : counts[-1] + copies[i]])
        totals.append(totals[-1] + copies[i] * points[i] - met)
        counts.append(counts[-1] + copies[i])
    fitted = list(points)
    for k, i in enumerate(order):
        level = min(
            max(
                (totals[stop] - totals[start]) / (counts[stop] - counts[start])
                for stop in range(k + 1, len(order) + 1)
            )
            for start in range(k + 1)
        )
        fitted[i] = max(level, Fraction(0))
    dual = [s * (point - fit) for s, point, fit in zip(copies, points, fitted, strict=True)]
    return np.array(fitted, dtype=float), np.array(dual, dtype=float)


def primal_objective(
    features: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    C: float,
    coef: FloatArray,
    intercept: float,
    power: int = 1,
) -> float:
    """``1/2 |w|^2 + C * OWA`` of the hinge deviations, or of their squares, at a classifier."""
    deviations = np.maximum(0.0, 1.0 - y * (features @ coef + intercept))
    return float(coef @ coef / 2 + C * owa_value(deviations**power, weights))


def feasible_dual(
    alpha: FloatArray, y: FloatArray, bounds: FloatArray | Groups, power: int = 1
) -> FloatArray:
    """Clip at 0, scale into ``P(bounds)``, scale the heavier class down until ``y'alpha = 0``.

    With groups every group is scaled into its own set.

    Squared deviations allow for every point that is not negative.
    """
    repaired = np.maximum(alpha, 0.0)
    groups = bounds if isinstance(bounds, list) else [(np.arange(alpha.size), bounds)]
    for index, own in groups if power == 1 else []:
        totals = np.cumsum(np.sort(repaired[index])[::-1])
        capacities = np.cumsum(np.sort(own)[::-1])
        repaired[index] /= max(1.0, float(np.max(totals / capacities)))
    positive = repaired[y > 0].sum()
    negative = repaired[y < 0].sum()
    if min(positive, negative) == 0.0:
        return np.zeros_like(repaired)
    repaired[y > 0] *= min(1.0, negative / positive)
    repaired[y < 0] *= min(1.0, positive / negative)
    return repaired


def dual_objective(features: FloatArray, y: FloatArray, alpha: FloatArray) -> float:
    """``1'alpha - 1/2 |sum_i alpha_i y_i x_i|^2``."""
    direction = features.T @ (y * alpha)
    return float(alpha.sum() - direction @ direction / 2)


def squared_conjugate(alpha: FloatArray, costs: FloatArray) -> float:
    """The largest ``alpha'u - sum_k costs[k] * max(u, 0)_(k)^2``, for ``alpha >= 0``.

    The best u is ordered like alpha, so it is an isotonic regression of ``alpha / 2 costs``.
    Entries that meet a cost of 0, the smallest ones, join the last one that pays.
    """
    pulls, paid = np.sort(alpha)[::-1].copy(), np.sort(costs)[::-1]
    last = int(np.count_nonzero(paid)) - 1
    pulls[last] = pulls[last:].sum()
    pulls, paid = pulls[: last + 1], paid[: last + 1]
    u = isotonic_regression(pulls / (2.0 * paid), weights=paid, increasing=False).x
    return float(pulls @ u - paid @ u**2)


def _judged(
    features: FloatArray,
    y: FloatArray,
    groups: Groups,
    C: float,
    coef: FloatArray,
    intercept: float,
    alpha: FloatArray,
    power: int,
) -> OracleSolution:
    """The solution with objective and lower bound recomputed from the point alone."""
    dual = feasible_dual(alpha, y, [(index, C * weights) for index, weights in groups], power)
    conjugate = 0.0
    if power == 2:
        conjugate = sum(squared_conjugate(dual[index], C * weights) for index, weights in groups)
    deviations = np.maximum(0.0, 1.0 - y * (features @ coef + intercept)) ** power
    loss = C * sum(owa_value(deviations[index], weights) for index, weights in groups)
    return OracleSolution(
        objective=float(coef @ coef / 2 + loss),
        lower_bound=dual_objective(features, y, dual) - conjugate,
        coef=coef,
        intercept=intercept,
        decision_values=features @ coef + intercept,
        alpha=dual,
    )


def _solve_by_clarabel(problem: cp.Problem, tolerance: float) -> None:
    """Fills the variables of `problem` in place."""
    with warnings.catch_warnings():
        # Whether the point is accurate is judged by its gap, not by the solver's own status.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(
            solver=cp.CLARABEL,
            tol_gap_abs=tolerance,
            tol_gap_rel=tolerance,
            tol_feas=tolerance,
            max_iter=500,
            # The default, 1e-8, lets some Gaussian-kernel problems stall at a gap of 1e-6.
            static_regularization_constant=1e-7,
        )


def _cost_of(deviations: cp.Expression, power: int) -> cp.Expression:
    return cp.square(deviations) if power == 2 else deviations


def dotsort_prox(
    v: ArrayLike,
    weights: ArrayLike,
    step: float,
    offsets: ArrayLike | None = None,
    power: int = 1,
) -> FloatArray:
    """Prox of the OWA hinge, or of its squares, through cvxpy's ``dotsort`` and Clarabel.

    With `offsets` every sample has a hinge of its own beside: ``sum_i offsets[i] max(x_i, 0)``.

    At kinks (an entry of `v` at 0) the solver stalls at tight tolerances, visibly off. Several are
    tried and the point of the smallest objective, evaluated here, is returned.
    """
    point = np.asarray(v, dtype=float)
    losses = step * np.asarray(weights, dtype=float)
    own = step * (np.zeros(point.size) if offsets is None else np.asarray(offsets, dtype=float))
    x = cp.Variable(point.size)
    loss = cp.dotsort(_cost_of(cp.pos(x), power), losses) + own @ cp.pos(x)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - point) / 2 + loss))
    found: list[tuple[float, FloatArray]] = []
    for tolerance in (1e-12, 1e-10, 1e-8):
        try:
            _solve_by_clarabel(problem, tolerance)
        except cp.SolverError:
            continue
        candidate = np.asarray(x.value)
        distance = float(((candidate - point) ** 2).sum())
        deviations = np.maximum(candidate, 0.0)
        value = owa_value(deviations**power, losses) + float(own @ deviations)
        found.append((distance / 2 + value, candidate))
    if not found:
        raise RuntimeError("Clarabel failed at every tolerance")
    return min(found, key=lambda pair: pair[0])[1]


def _dotsort_attempt(
    features: FloatArray,
    y: FloatArray,
    groups: Groups,
    C: float,
    feature_scale: float,
    objective_scale: float,
    tolerance: float,
    power: int,
) -> OracleSolution:
    """One solve of `objective_scale` times the problem, in ``u = w / feature_scale``."""
    scaled_coef = cp.Variable(features.shape[1])
    intercept = cp.Variable()
    deviations = cp.Variable(y.size, nonneg=True)
    scores = (feature_scale * features) @ scaled_coef + intercept
    margin = deviations >= 1 - cp.multiply(y, scores)
    curvature = objective_scale * feature_scale**2
    loss = sum(
        cp.dotsort(_cost_of(deviations[index], power), objective_scale * C * weights)
        for index, weights in groups
    )
    objective = curvature / 2 * cp.sum_squares(scaled_coef) + loss
    _solve_by_clarabel(cp.Problem(cp.Minimize(objective), [margin]), tolerance)
    return _judged(
        features,
        y,
        groups,
        C,
        feature_scale * scaled_coef.value,
        float(intercept.value),
        margin.dual_value / objective_scale,
        power,
    )


def cvxpy_owa_svm(
    features: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike | Groups,
    C: float,
    target_gap: float = TARGET_GAP,
    power: int = 1,
) -> OracleSolution:
    """Convex OWA-SVM through cvxpy's ``dotsort`` and Clarabel.

    With ``power=2`` the deviations are squared before they are weighted. A list of pairs, indices
    and weights, in place of `weights` ranks groups of samples apart.

    An interior-point solver stalls on a few degenerate problems. Other scalings and tolerances
    are tried until the gap is at most `target_gap`; the best point and the best bound are kept.
    """
    features = np.asarray(features, dtype=float)
    y = np.asarray(y, dtype=float)
    groups = weights
    if not (isinstance(groups, list) and isinstance(groups[0], tuple)):
        groups = [(np.arange(y.size), np.asarray(weights, dtype=float))]
    # Divided by C the problem depends on sqrt(C) * features alone; that is the scaling for large
    # deviations. On separable data with a large C nothing but 1/2 |w|^2 is left: the last ones.
    unit_rows = 1.0 / max(float(np.linalg.norm(features, axis=1).max(initial=0.0)), 1e-100)
    attempts = [
        (np.sqrt(C), 1.0 / C, 1e-11),
        (np.sqrt(C), 1.0 / C, 1e-9),
        (unit_rows, 1.0 / C, 1e-10),
        (unit_rows, 1.0 / C, 1e-12),
        (1.0, 1.0, 1e-12),
        (1.0, 1.0, 1e-10),
        (unit_rows, 1.0 / unit_rows**2, 1e-12),
    ]
    best: OracleSolution | None = None
    for feature_scale, objective_scale, tolerance in attempts:
        try:
            found = _dotsort_attempt(
                features, y, groups, C, feature_scale, objective_scale, tolerance, power
            )
        except cp.SolverError:
            continue
        best = found if best is None else _better_of_both(best, found)
        if best.gap <= target_gap:
            break
    if best is None:
        raise RuntimeError("Clarabel failed in every scaling")
    return best


def _better_of_both(one: OracleSolution, other: OracleSolution) -> OracleSolution:
    """The better point with the better bound."""
    point = min(one, other, key=lambda solution: solution.objective)
    bound = max(one, other, key=lambda solution: solution.lower_bound)
    return replace(point, lower_bound=bound.lower_bound, alpha=bound.alpha)


def replicated(
    features: ArrayLike, y: ArrayLike, counts: Sequence[int] | NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The problem in which row i stands ``counts[i]`` times, copies next to each other."""
    rows = np.repeat(np.arange(len(counts)), counts)
    return np.asarray(features, dtype=float)[rows], np.asarray(y, dtype=float)[rows]


def cvxpy_owa_svm_replicated(
    features: ArrayLike,
    y: ArrayLike,
    counts: Sequence[int] | NDArray[np.int64],
    weights: ArrayLike,
    C: float,
    target_gap: float = TARGET_GAP,
) -> OracleSolution:
    """Convex OWA-SVM with whole-number sample weights, as copies.

    `weights` has one entry a copy (length ``sum(counts)``). ``decision_values`` and ``alpha`` of
    the result have one entry a copy too.
    """
    return cvxpy_owa_svm(*replicated(features, y, counts), weights, C, target_gap)


def _settings(tolerance: float) -> clarabel.DefaultSettings:
    """Clarabel's settings at tight tolerances."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = tolerance
    settings.tol_gap_rel = tolerance
    settings.tol_feas = tolerance
    return settings


def _order_constraints(orders: Sequence[Sequence[int]], n_samples: int) -> FloatArray:
    """Rows ``G`` with ``G xi <= 0`` for ``0 <= xi[order[0]] <= xi[order[1]] <= ...``."""
    rows = np.zeros((n_samples, n_samples))
    for order in orders:
        rows[order[0], order[0]] = -1.0
        for low, high in pairwise(order):
            rows[high, low] = 1.0
            rows[high, high] = -1.0
    return rows


def enumerate_owa_svm(
    features: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike | Groups | ByOrder,
    C: float,
    tolerance: float = 1e-11,
) -> OracleSolution:
    """Global optimum for any non-negative weights, by all n! orders of the deviations (n <= 6).

    A list of pairs, indices and weights, in place of `weights` ranks groups of samples apart.
    Weighted samples have no weights by rank but by order: a function of the samples, ascending.

    For each order a QP in ``(w, b, xi)`` with ``xi >= 1 - y f`` and
    ``0 <= xi[order[0]] <= xi[order[1]] <= ...``. Its ``xi`` may exceed the hinge deviations, which
    with non-negative weights only costs, so no QP falls below the optimum, and the one with the
    optimal order attains it. Without the order constraints this would fail for rising weights.
    ``lower_bound`` is the smallest dual value over all orders.
    """
    features = np.asarray(features, dtype=float)
    y = np.asarray(y, dtype=float)
    n_samples, n_features = features.shape
    by_order = weights if callable(weights) else None
    groups = [(np.arange(n_samples), np.empty(n_samples))] if by_order else weights
    if not (isinstance(groups, list) and isinstance(groups[0], tuple)):
        groups = [(np.arange(n_samples), np.asarray(weights, dtype=float))]
    if n_samples > 6:
        raise ValueError(f"enumeration is for at most 6 samples, got {n_samples}")
    n_variables = n_features + 1 + n_samples
    quadratic = sp.csc_matrix(
        (np.ones(n_features), (np.arange(n_features), np.arange(n_features))),
        shape=(n_variables, n_variables),
    )
    hinge_rows = np.hstack([-y[:, None] * features, -y[:, None], -np.eye(n_samples)])
    order_padding = np.zeros((n_samples, n_features + 1))
    right_side = np.concatenate([-np.ones(n_samples), np.zeros(n_samples)])
    cones = [clarabel.NonnegativeConeT(2 * n_samples)]
    settings = _settings(tolerance)
    best: tuple[float, FloatArray] = (np.inf, np.zeros(n_features + 1))
    lower_bound = np.inf
    for orders in product(*(permutations(index.tolist()) for index, _ in groups)):
        linear = np.zeros(n_variables)
        for order, (_, own) in zip(orders, groups, strict=True):
            handed = by_order(np.array(order)) if by_order else own
            linear[n_features + 1 + np.array(order)] = C * handed
        rows = np.vstack(
            [hinge_rows, np.hstack([order_padding, _order_constraints(orders, n_samples)])]
        )
        solver = clarabel.DefaultSolver(
            quadratic, linear, sp.csc_matrix(rows), right_side, cones, settings
        )
        solution = solver.solve()
        point = np.array(solution.x)[: n_features + 1]
        deviations = np.maximum(0.0, 1.0 - y * (features @ point[:-1] + point[-1]))
        if by_order:
            groups = [(groups[0][0], by_order(np.argsort(deviations, kind="stable")))]
        loss = C * sum(owa_value(deviations[index], own) for index, own in groups)
        value = float(point[:-1] @ point[:-1] / 2 + loss)
        lower_bound = min(lower_bound, solution.obj_val_dual)
        if value < best[0]:
            best = (value, point)
    value, point = best
    return OracleSolution(
        objective=value,
        lower_bound=lower_bound,
        coef=point[:-1],
        intercept=float(point[-1]),
        decision_values=features @ point[:-1] + point[-1],
    )
