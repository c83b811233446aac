"""The convex solver against independent solutions, its own certificates and hard cases."""

from __future__ import annotations

import itertools
import logging
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from owasvm.costs import PlainCosts
from owasvm.kernels import Kernel
from owasvm.loss import in_dual_set
from owasvm.losses import GroupedLoss, OffsetHinge, ProxPoint, RankedHinge
from owasvm.losses._sorting import CLIPPED, INACTIVE, SINGLE
from owasvm.optimality import certificate, objective
from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import FeatureSamples, GramSamples, prepare
from owasvm.solution import Status, relative_gap
from owasvm.solvers import SOLVERS, newton, solve
from owasvm.solvers.contract import Settings
from owasvm.solvers.newton import ConvexTask, cold_start, iterates
from owasvm.solvers.newton.stopping import StoppingRule
from owasvm.solvers.newton.tuning import DEFAULT
from owasvm.weights import owa_weights
from tests.oracles import cvxpy_owa_svm, dotsort_prox, owa_value, psd_factor
from tests.strategies import classification_problems, convex_weights, real_vectors

KERNELS = {
    "linear": lambda _: None,
    "rbf": lambda X: rbf_kernel(X, gamma=1.0 / max(2.0 * X.var() * X.shape[1], 1e-12)),
    "poly": lambda X: polynomial_kernel(X / max(np.abs(X).max(), 1e-12), degree=2, coef0=1.0),
}


def make_problem(X, y, weights, C, gram=None):
    features = X if gram is None else None
    return OWAProblem(y, RankCosts(y.size, weights, None, C), features=features, gram=gram)


def noisy_data(n_samples, n_features, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + noise * rng.normal(size=n_samples) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


@settings(max_examples=60)
@given(
    data=classification_problems(),
    exponent=st.integers(-15, 15),
    kernel=st.sampled_from(sorted(KERNELS)),
    draw=st.data(),
)
def test_agrees_with_an_independent_solution(data, exponent, kernel, draw):
    X, y = data
    weights = draw.draw(convex_weights(y.size))
    C = 2.0**exponent
    gram = KERNELS[kernel](X)
    problem = make_problem(X, y, weights, C, gram)
    solution = solve(problem, tol=1e-6)
    oracle = cvxpy_owa_svm(X if gram is None else psd_factor(gram), y, weights, C)
    scale = max(1.0, abs(oracle.objective))
    assert solution.status is Status.OPTIMAL
    assert solution.objective <= oracle.objective + 1e-6 * scale
    assert solution.lower_bound <= oracle.objective + 1e-9 * scale
    # Recomputed from the data alone. A linear model is judged by its w: the sum over the dual
    # variables can lose digits that a large C turns into deviations.
    proof = certificate(X, y, weights, C, solution.dual, solution.intercept, gram=gram, alpha=None)
    value = proof.objective
    if gram is None:
        w = solution.coef
        value, _ = objective(problem, float(w @ w), X @ w, solution.intercept)
    assert relative_gap(value, proof.lower_bound) <= 1e-6
    assert value == pytest.approx(solution.objective, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("sizes", "seeds"),
    [((40, 120), (90, 1178, 4509, 5438)), ((260, 500), (17, 29, 296, 436))],
    ids=["few samples", "many samples"],
)
def test_solutions_prove_themselves_by_their_own_coefficients(sizes, seeds):
    # Noise with unequal classes, where the optimum is next to w = 0: the gap had been proven with
    # the bound of another point, and these coefficients proved gaps of 4e-5 to 1.
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n_samples = int(rng.integers(*sizes))
        X = rng.normal(size=(n_samples, 4))
        y = np.where(rng.random(n_samples) < 0.7, 1.0, -1.0)
        y[:2] = [1.0, -1.0]
        weights = np.sort(np.exp(rng.normal(size=n_samples)))
        C = 2.0 ** rng.integers(-10, 6)
        gram = KERNELS["poly"](X)
        solution = solve(make_problem(X, y, weights, C, gram), tol=1e-6)
        assert solution.status is Status.OPTIMAL
        found = certificate(
            X, y, weights, C, solution.dual, solution.intercept, gram=gram, alpha=None
        )
        assert found.gap <= 1e-6
        assert found.objective == pytest.approx(solution.objective, rel=1e-9)


FAMILIES = [
    ("uniform", None),
    ("basic", 0.05),
    ("basic", 0.2),
    ("basic", 0.6),
    ("quadratic", 0.05),
    ("quadratic", 0.2),
    ("exponential", 0.05),
    ("exponential", 3.0),
    ("superquantile", 0.05),
    ("superquantile", 0.5),
    ("max-entropy", 0.55),
    ("max-entropy", 0.95),
]


@pytest.mark.parametrize(("family", "alpha"), FAMILIES)
@pytest.mark.parametrize("C", [2.0**-15, 1.0, 2.0**15])
def test_cold_start_converges(family, alpha, C):
    X, y = noisy_data(80, 3)
    costs = RankCosts(80, family, alpha, C)
    assert solve(OWAProblem(y, costs, features=X)).status is Status.OPTIMAL
    for width in (2.0**-7, 1.0, 2.0**7):
        gram = rbf_kernel(X, gamma=1.0 / (2.0 * width**2))
        solution = solve(OWAProblem(y, costs, gram=gram))
        assert solution.status is Status.OPTIMAL, (width, solution.summary())


def _degenerate(name):
    X, y = noisy_data(120, 4, seed=3)
    if name == "duplicated rows":
        X[60:], y[60:] = X[:60], y[:60]
    elif name == "rows with both labels":
        X[60:], y[60:] = X[:60], -y[:60]
    elif name == "constant features":
        X[:, 1:] = 7.0
    elif name == "all rows equal":
        X[:] = 1.0
    elif name == "separable":
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
        X[:, 0] += y
    elif name == "one sample of a class":
        y[:] = -1.0
        y[5] = 1.0
    elif name == "far from the origin":
        X += 1e2
    elif name == "huge scale":
        X *= 1e2
    elif name == "tiny scale":
        X *= 1e-6
    return X, y


DEGENERATE = [
    "duplicated rows",
    "rows with both labels",
    "constant features",
    "all rows equal",
    "separable",
    "one sample of a class",
    "far from the origin",
    "huge scale",
    "tiny scale",
]


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("C", [2.0**-7, 1.0, 2.0**7])
def test_degenerate_data(name, C):
    X, y = _degenerate(name)
    costs = RankCosts(y.size, "basic", 0.3, C)
    features = solve(OWAProblem(y, costs, features=X))
    gram = solve(OWAProblem(y, costs, gram=X @ X.T))
    assert features.status is Status.OPTIMAL
    assert gram.status is Status.OPTIMAL
    assert features.objective == pytest.approx(gram.objective, rel=2e-6, abs=2e-6)


def test_one_percent_minority():
    X, y = noisy_data(400, 3)
    y[:] = -1.0
    y[:4] = 1.0
    for family, alpha in FAMILIES:
        solution = solve(OWAProblem(y, RankCosts(400, family, alpha, 1.0), features=X))
        assert solution.status is Status.OPTIMAL, family


def test_two_samples_by_hand():
    # Points -1 and +1: w = 1, b = 0 separates with margin 1 and objective 1/2, if C allows.
    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    solution = solve(OWAProblem(y, RankCosts(2, "uniform", None, 10.0), features=X))
    assert solution.objective == pytest.approx(0.5, abs=1e-9)
    assert solution.coef == pytest.approx([1.0], abs=1e-9)
    assert solution.intercept == pytest.approx(0.0, abs=1e-9)
    # The maximum of the deviations alone: w minimises w^2/2 + 2 C max(0, 1 - w).
    costs = RankCosts(2, np.array([0.0, 1.0]), None, 0.1)
    assert solve(OWAProblem(y, costs, features=X)).coef == pytest.approx([0.2], abs=1e-9)


def test_dual_point_is_feasible_and_optimal():
    X, y = noisy_data(150, 3)
    weights = owa_weights(150, "exponential", 2.0)
    solution = solve(make_problem(X, y, weights, 3.0), tol=1e-11)
    assert in_dual_set(solution.dual, 3.0 * weights)
    assert y @ solution.dual == pytest.approx(0.0, abs=1e-10 * solution.dual.sum())
    assert solution.coef == pytest.approx(X.T @ (y * solution.dual))
    # Complementarity: the dual point is a subgradient of the loss at the deviations.
    deviations = np.maximum(0.0, 1.0 - y * (X @ solution.coef + solution.intercept))
    loss = 3.0 * weights @ np.sort(deviations)
    assert solution.dual @ deviations == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_samples", [40, 200])
def test_small_problems_are_polished_within_few_more_steps(n_samples, loss):
    X, y = noisy_data(n_samples, 3)
    gaps = []
    for family, alpha in FAMILIES:
        costs = RankCosts(n_samples, family, alpha, 1.0)
        problem = OWAProblem(y, costs, features=X, loss=loss)
        polished = newton.solve(problem, Settings())
        plain = newton.solve(problem, Settings(), replace(DEFAULT, polish_samples=0))
        assert polished.n_iter <= plain.n_iter + max(0.25 * plain.n_iter, 5), family
        assert polished.gap <= plain.gap, family
        gaps.append(polished.gap)
    assert np.median(gaps) < 1e-10


def test_dense_sparse_and_gram_agree():
    X, y = noisy_data(90, 6)
    X[np.abs(X) < 0.7] = 0.0
    costs = RankCosts(90, "basic", 0.4, 2.0)
    dense = solve(OWAProblem(y, costs, features=X))
    sparse = solve(OWAProblem(y, costs, features=sp.csr_matrix(X)))
    gram = solve(OWAProblem(y, costs, gram=X @ X.T))
    for other in (sparse, gram):
        assert other.objective == pytest.approx(dense.objective, rel=1e-9)
        assert other.intercept == pytest.approx(dense.intercept, abs=1e-6)
    assert sparse.coef == pytest.approx(dense.coef, abs=1e-6)


def test_wide_sparse_data_by_conjugate_gradients(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random(150, 400, density=0.05, random_state=0, format="csr")
    y = np.where(rng.normal(size=150) > 0, 1.0, -1.0)
    problem = OWAProblem(y, RankCosts(150, "basic", 0.6, 1.0), features=X)
    direct = solve(problem)
    monkeypatch.setattr("owasvm.samples.feature_operator._MAX_DENSE_ENTRIES", 0)
    iterated = solve(problem)
    assert iterated.status is Status.OPTIMAL
    assert iterated.objective == pytest.approx(direct.objective, rel=1e-6)


def test_iterated_and_factorised_steps_agree(monkeypatch):
    X, y = noisy_data(300, 5)
    problem = OWAProblem(y, RankCosts(300, "basic", 0.6, 1.0), gram=rbf_kernel(X, gamma=2.0))
    iterated = solve(problem)
    monkeypatch.setattr("owasvm.samples.kernel_operators._ITERATE_SIZE", 10**9)
    factorised = solve(problem)
    assert iterated.objective == pytest.approx(factorised.objective, rel=2e-6)


@settings(max_examples=25)
@given(data=classification_problems(max_samples=25), draw=st.data())
def test_sample_weights_are_copies(data, draw):
    X, y = data
    counts = np.array(draw.draw(st.lists(st.integers(1, 4), min_size=y.size, max_size=y.size)))
    family, alpha = draw.draw(st.sampled_from(FAMILIES))
    C = 2.0 ** draw.draw(st.integers(-6, 6))
    weighted = RankCosts(y.size, family, alpha, C, sample_weight=counts.astype(float))
    repeated = RankCosts(int(counts.sum()), family, alpha, C)
    one = solve(OWAProblem(y, weighted, features=X), tol=1e-9)
    other = solve(
        OWAProblem(np.repeat(y, counts), repeated, features=np.repeat(X, counts, axis=0)),
        tol=1e-9,
    )
    assert one.objective == pytest.approx(other.objective, rel=1e-8, abs=1e-9)


def test_warm_start_saves_steps_and_changes_nothing():
    X, y = noisy_data(300, 4)
    gram = rbf_kernel(X, gamma=0.3)
    near = solve(OWAProblem(y, RankCosts(300, "basic", 0.6, 1.0), gram=gram))
    problem = OWAProblem(y, RankCosts(300, "basic", 0.6, 1.3), gram=gram)
    cold = solve(problem)
    warm = solve(problem, warm_start=near)
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    assert warm.n_iter < cold.n_iter
    again = solve(problem, warm_start=cold)
    assert again.n_iter <= 3


def test_any_warm_start_converges():
    X, y = noisy_data(200, 4)
    problem = OWAProblem(y, RankCosts(200, "basic", 0.3, 30.0), gram=rbf_kernel(X, gamma=0.2))
    cold = solve(problem)
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 1e3):
        start = replace(cold, dual=scale * rng.random(200), intercept=5.0)
        warm = solve(problem, warm_start=start)
        assert warm.status is Status.OPTIMAL
        assert warm.objective == pytest.approx(cold.objective, rel=2e-6)


def test_limits_keep_a_valid_point():
    X, y = noisy_data(400, 5)
    problem = OWAProblem(y, RankCosts(400, "basic", 0.4, 10.0), gram=rbf_kernel(X, gamma=0.1))
    best = solve(problem)
    stopped = solve(problem, max_iter=3)
    assert stopped.status is Status.ITERATION_LIMIT
    assert stopped.n_iter == 3
    assert stopped.lower_bound <= best.objective <= stopped.objective
    timed = solve(problem, time_limit=1e-9)
    assert timed.status is Status.TIME_LIMIT
    assert timed.lower_bound <= best.objective <= timed.objective
    seen = []
    halted = solve(problem, callback=lambda info: seen.append(info) or len(seen) < 5)
    assert halted.status is Status.INTERRUPTED
    assert len(seen) == 5
    assert {"n_iter", "objective", "gap", "time"} <= set(seen[0])


def test_interrupt_keeps_the_incumbent():
    X, y = noisy_data(400, 5)
    problem = OWAProblem(y, RankCosts(400, "basic", 0.4, 10.0), gram=rbf_kernel(X, gamma=0.1))

    def press(info):
        if info["n_iter"] == 4:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt) as stop:
        solve(problem, callback=press)
    solution = stop.value.solution
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter in (4, 5)
    assert 0.0 < solution.lower_bound <= solution.objective


def test_verbose_speaks_through_the_logger(caplog):
    X, y = noisy_data(30, 2)
    problem = OWAProblem(y, RankCosts(30, "basic", 0.6, 1.0), features=X)
    with caplog.at_level(logging.DEBUG, logger="owasvm"):
        solve(problem, verbose=2)
    assert any("optimal" in message for message in caplog.messages)
    assert any("newton 3: objective" in message for message in caplog.messages)


def test_refusals():
    X, y = noisy_data(30, 2)
    falling = OWAProblem(y, RankCosts(30, "trimmed", 0.2, 1.0), features=X)
    assert solve(falling, max_iter=1).solver == "branch-and-bound"
    many = OWAProblem(
        np.tile(y, 2), RankCosts(60, "trimmed", 0.2, 1.0), features=np.tile(X, (2, 1))
    )
    assert solve(many, max_iter=1).solver == "dca"
    with pytest.raises(ValueError, match="non-decreasing"):
        solve(falling, "newton")
    convex = OWAProblem(y, RankCosts(30, "basic", 0.6, 1.0), features=X)
    with pytest.raises(ValueError, match="solver must be one of"):
        solve(convex, "simplex")
    with pytest.raises(ValueError, match="time_limit"):
        solve(convex, time_limit=-1.0)
    other = solve(OWAProblem(y[:20], RankCosts(20, "basic", 0.6, 1.0), features=X[:20]))
    with pytest.raises(ValueError, match="20 samples"):
        solve(convex, warm_start=other)
    assert SOLVERS[0] == "auto"


class TestGeneralConvexForm:
    """Margins, linear term, groups and a fixed intercept: what global optimisation needs."""

    @staticmethod
    def _run(task):
        for iterate in itertools.islice(iterates(task, cold_start(task)), 400):
            if iterate.gap <= 1e-10 * max(1.0, abs(iterate.objective)):
                if task.fixed_intercept is not None:
                    return iterate
                if abs(task.target(iterate.dual).sum()) <= 1e-8:
                    return iterate
        raise AssertionError("no convergence")

    @staticmethod
    def _by_cvxpy(X, y, groups, costs, margin, linear, intercept, offsets=0.0):
        cp = pytest.importorskip("cvxpy")
        w, b = cp.Variable(X.shape[1]), cp.Variable()
        f = X @ w + b
        slack = cp.pos(margin - cp.multiply(y, f))
        loss = sum(cp.dotsort(slack[g], c) for g, c in zip(groups, costs, strict=True))
        loss = loss + cp.sum(cp.multiply(offsets, slack))
        objective = 0.5 * cp.sum_squares(w) + loss + (linear * y) @ f
        constraints = [] if intercept is None else [b == intercept]
        problem = cp.Problem(cp.Minimize(objective), constraints)
        return problem.solve(solver="CLARABEL")

    @pytest.mark.parametrize("intercept", [None, 0.3])
    @pytest.mark.parametrize("as_gram", [False, True])
    def test_against_cvxpy(self, intercept, as_gram):
        rng = np.random.default_rng(5)
        X, y = noisy_data(40, 3)
        groups = [np.arange(0, 40, 2), np.arange(1, 40, 2)]
        costs = [0.5 * owa_weights(20, "basic", 0.5), 0.8 * owa_weights(20, "exponential", 2.0)]
        margin = 1.0 - 0.5 * rng.random(40)
        linear = 0.05 * rng.random(40)
        centred = intercept is None and not np.any(linear)
        operator = (
            GramSamples(X @ X.T).operator(centred=centred)
            if as_gram
            else FeatureSamples(X).operator(centred=centred)
        )
        loss = GroupedLoss(groups, [RankedHinge(PlainCosts(part)) for part in costs])
        task = ConvexTask(operator, y, loss, margin, linear, intercept)
        iterate = self._run(task)
        f = X @ (X.T @ iterate.w.coef) + iterate.intercept
        objective = iterate.objective + (linear * y) @ f
        expected = self._by_cvxpy(X, y, groups, costs, margin, linear, intercept)
        assert objective == pytest.approx(expected, rel=1e-6)

    def test_one_group_is_the_plain_loss(self):
        X, y = noisy_data(50, 3)
        costs = owa_weights(50, "basic", 0.5)
        plain = ConvexTask(
            FeatureSamples(X).operator(), y, RankedHinge(PlainCosts(costs)), np.ones(50)
        )
        grouped = ConvexTask(
            FeatureSamples(X).operator(),
            y,
            GroupedLoss([np.arange(50)], [RankedHinge(PlainCosts(costs))]),
            np.ones(50),
        )
        assert self._run(plain).objective == pytest.approx(self._run(grouped).objective, rel=1e-9)

    @pytest.mark.parametrize("intercept", [None, -0.2])
    @pytest.mark.parametrize("as_gram", [False, True])
    @pytest.mark.parametrize("grouped", [False, True])
    def test_own_hinges_against_cvxpy(self, intercept, as_gram, grouped):
        rng = np.random.default_rng(7)
        X, y = noisy_data(40, 3)
        groups = [np.arange(0, 40, 2), np.arange(1, 40, 2)] if grouped else [np.arange(40)]
        costs = [0.4 * owa_weights(group.size, "superquantile", 0.4) for group in groups]
        offsets = rng.exponential(size=40) * (rng.random(40) < 0.6)
        margin = 1.0 + 0.3 * rng.normal(size=40)
        linear = 0.05 * rng.random(40)
        loss = GroupedLoss(
            groups,
            [
                OffsetHinge(PlainCosts(part), offsets[group])
                for part, group in zip(costs, groups, strict=True)
            ],
        )
        if not grouped:
            loss = OffsetHinge(PlainCosts(costs[0]), offsets)
        operator = (
            GramSamples(X @ X.T).operator(centred=False)
            if as_gram
            else FeatureSamples(X).operator(centred=False)
        )
        task = ConvexTask(operator, y, loss, margin, linear, intercept)
        iterate = self._run(task)
        f = X @ (X.T @ iterate.w.coef) + iterate.intercept
        objective = iterate.objective + (linear * y) @ f
        expected = self._by_cvxpy(X, y, groups, costs, margin, linear, intercept, offsets)
        assert objective == pytest.approx(expected, rel=1e-6)


@st.composite
def offset_losses(draw, max_samples=15):
    """Rank costs that do not fall, own costs of the samples, a point and a penalty."""
    n_samples = draw(st.integers(1, max_samples))
    costs = draw(convex_weights(n_samples)) * draw(st.sampled_from([1.0, 0.0, 1e-3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    offsets = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.7)
    if draw(st.booleans()):
        offsets = np.round(offsets)
    point = draw(real_vectors(n_samples, extreme=False))
    return costs, offsets, point, 10.0 ** draw(st.integers(-2, 2))


class TestOffsetHinge:
    """A hinge of its own for every sample beside the ordered loss."""

    @staticmethod
    def _value(costs, offsets, slack):
        deviations = np.maximum(slack, 0.0)
        return owa_value(deviations, costs) + float(offsets @ deviations)

    @settings(max_examples=100)
    @given(case=offset_losses())
    def test_value(self, case):
        costs, offsets, slack, _ = case
        expected = self._value(costs, offsets, slack)
        value = OffsetHinge(PlainCosts(costs), offsets).value(slack)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)

    @settings(max_examples=300)
    @given(case=offset_losses())
    def test_prox_proves_itself(self, case):
        costs, offsets, v, penalty = case
        out = ProxPoint(v.size)
        before = v.copy()
        loss = OffsetHinge(PlainCosts(costs), offsets)
        loss.prox(v, penalty, out)
        np.testing.assert_array_equal(v, before)
        scale = max(1.0, costs.max(), offsets.max(), penalty * np.abs(v).max())
        np.testing.assert_allclose(out.prox + out.dual / penalty, v, atol=1e-12 * scale / penalty)
        # The dual set: beyond its own cost, what any j samples pay together is bounded by the
        # j largest rank costs. The loss is its support function.
        assert np.all(out.dual >= 0.0)
        beyond = np.cumsum(np.sort(out.dual - offsets)[::-1])
        assert np.all(beyond <= np.cumsum(costs[::-1]) + 1e-12 * v.size * scale)
        value = self._value(costs, offsets, out.prox)
        size = scale * max(1.0, np.abs(v).max()) * v.size
        assert out.dual @ out.prox == pytest.approx(value, abs=1e-12 * size)

    @settings(max_examples=150)
    @given(case=offset_losses())
    def test_labels_tell_how_the_prox_moves(self, case):
        costs, offsets, v, penalty = case
        out = ProxPoint(v.size)
        OffsetHinge(PlainCosts(costs), offsets).prox(v, penalty, out)
        assert np.all(v[out.block == INACTIVE] <= 0.0)
        assert np.all(v[out.block != INACTIVE] > 0.0)
        np.testing.assert_array_equal(out.prox[out.block == CLIPPED], 0.0)
        assert np.all(out.prox[(out.block == SINGLE) | (out.block > 0)] >= 0.0)
        assert out.block.max() <= max(out.n_blocks, 0)
        for tied in range(1, out.n_blocks + 1):
            assert np.ptp(out.prox[out.block == tied]) <= 1e-12 * max(1.0, np.abs(v).max())

    @settings(max_examples=25)
    @given(case=offset_losses(max_samples=8))
    def test_prox_by_cvxpy(self, case):
        costs, offsets, v, penalty = case
        out = ProxPoint(v.size)
        OffsetHinge(PlainCosts(costs), offsets).prox(v, penalty, out)
        expected = dotsort_prox(v, costs, 1.0 / penalty, offsets)

        def value(x):
            return 0.5 * penalty * (x - v) @ (x - v) + self._value(costs, offsets, x)

        assert value(out.prox) <= value(expected) + 1e-12 * max(1.0, value(expected))
        np.testing.assert_allclose(out.prox, expected, atol=1e-4 * max(1.0, np.abs(v).max()))

    def test_without_own_hinges_it_is_the_plain_loss(self):
        rng = np.random.default_rng(0)
        costs = owa_weights(20, "basic", 0.4)
        v = rng.normal(size=20)
        one, other = ProxPoint(20), ProxPoint(20)
        OffsetHinge(PlainCosts(costs), np.zeros(20)).prox(v, 3.0, one)
        RankedHinge(PlainCosts(costs)).prox(v, 3.0, other)
        np.testing.assert_allclose(one.prox, other.prox, atol=1e-15)
        np.testing.assert_array_equal(one.block, other.block)


@pytest.mark.parametrize("value", [0, 2.5, "many"])
def test_node_limits_are_whole_numbers(value):
    X, y = noisy_data(10, 2)
    problem = OWAProblem(y, RankCosts(10, "trimmed", 0.3), features=X)
    with pytest.raises(ValueError, match="max_nodes must be a whole number"):
        solve(problem, options={"max_nodes": value})


@pytest.mark.parametrize("solver", ["auto", "newton", "dca", "branch-and-bound"])
def test_unknown_options_are_refused(solver):
    X, y = noisy_data(10, 2)
    problem = OWAProblem(y, RankCosts(10, "basic", 0.6), features=X)
    with pytest.raises(
        ValueError, match=r"has no option 'typo'. It takes (none|max_nodes|n_init)"
    ):
        solve(problem, solver, options={"typo": 1})


@pytest.mark.parametrize("seed", [125, 616, 857, 995, 1302, 1427, 2137])
def test_no_classifier_can_be_best_and_is_proven_so(seed):
    """Steep weights and wide kernels: w = 0, whose own coefficients prove nothing."""
    rng = np.random.default_rng(seed)
    n_samples, n_features = int(rng.integers(20, 300)), int(rng.integers(1, 8))
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] * 0.2 + rng.normal(size=n_samples) > 0.0, 1.0, -1.0)
    gamma, C = 10.0 ** rng.uniform(-4, -1), 10.0 ** rng.uniform(0, 4)
    costs = RankCosts(n_samples, "basic", float(rng.choice([0.05, 0.1, 0.2])), C)
    solution = solve(OWAProblem(y, costs, samples=prepare(X, Kernel("rbf", gamma))))
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-6


@pytest.mark.parametrize(("seed", "n_samples"), [(3, 300), (0, 600)])
def test_a_shorter_classifier_is_proven_where_none_is_nearly_best(seed, n_samples):
    """Labels that are noise: more than 800 steps went by before there was a proof."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n_samples, 2))
    y = np.where(rng.random(n_samples) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    gram = rbf_kernel(X, gamma=0.5)
    costs = RankCosts(n_samples, "basic", 0.12, 600.0)
    solution = newton.solve(OWAProblem(y, costs, gram=gram), Settings())
    assert solution.status is Status.OPTIMAL
    assert solution.n_iter < 300


@pytest.mark.parametrize(
    ("family", "alpha"), [("basic", 0.6), ("basic", 0.1), ("superquantile", 0.3)]
)
def test_certificates_lack_at_least_what_is_foreseen(family, alpha, monkeypatch):
    """So that none is skipped that would have ended a fit."""
    foreseen, lacking = [], []
    foresee, consider = StoppingRule._foresee_gap, StoppingRule._consider

    def record_foreseen(rule, dual, iterate):
        foreseen.append(foresee(rule, dual, iterate))
        return 0.0

    def record_lacking(rule, *args, **options):
        found = consider(rule, *args, **options)
        if len(lacking) < len(foreseen):
            lacking.append(found[0])
        return found

    monkeypatch.setattr(StoppingRule, "_try_whole_step", lambda *_: False)
    monkeypatch.setattr(StoppingRule, "_foresee_gap", record_foreseen)
    monkeypatch.setattr(StoppingRule, "_consider", record_lacking)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0.0, 1.0, -1.0)
    for gamma in (0.003, 0.1, 2.0):
        for C in (0.1, 10.0):
            costs = RankCosts(300, family, alpha, C)
            newton.solve(OWAProblem(y, costs, gram=rbf_kernel(X, gamma=gamma)), Settings())
    assert len(lacking) == len(foreseen) > 3
    assert np.all(np.array(foreseen) <= np.array(lacking) + 1e-9)
