"""Kernels without the Gram matrix: blocks of kernel values, working sets, the memory promise."""

import os
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

from owasvm import OWASVC
from owasvm import kernels as kernel_module
from owasvm.kernels import Kernel
from owasvm.path import fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.rounding import UNIT
from owasvm.samples import (
    ActiveSet,
    FeatureSamples,
    GramSamples,
    Memory,
    OnDemandSamples,
    on_demand,
    prepare,
)
from owasvm.samples.operators import MAX_INTERCEPT_STEP
from owasvm.solvers import Settings, solve
from owasvm.solvers.clock import Clock
from owasvm.solvers.newton import coarse
from owasvm.solvers.newton.core import ConvexTask, cold_start, iterates

TINY = 0.02  # MB: Gram matrices of up to 50 samples
SMALL = 0.5  # 250 samples


@pytest.fixture(scope="module")
def moons():
    return make_moons(400, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def digits_like():
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=3, class_sep=0.8, flip_y=0.1, random_state=1
    )
    return X, y


def exact_gaussian(X, gamma):
    wide = X.astype(np.longdouble)
    return np.array([np.exp(-gamma * ((x - wide) ** 2).sum(axis=1)) for x in wide])


# -- values ------------------------------------------------------------------------------------


def test_powers_of_two_are_exact_to_their_stated_rounding():
    rng = np.random.default_rng(0)
    powers = np.concatenate(
        (rng.uniform(-990.0, 0.0, 40_000), rng.uniform(-2.0, 1e-12, 40_000), np.arange(-999.0, 1))
    )
    values = powers[np.newaxis].copy()
    kernel_module._raise_two(values)
    exact = np.exp2(powers.astype(np.longdouble))
    worst = float(np.max(np.abs(values[0] - exact) / exact))
    assert worst <= kernel_module._EXP_ROUNDINGS * UNIT
    deep = np.array([[-1e4, -np.inf]])
    kernel_module._raise_two(deep)
    assert np.all((deep >= 0.0) & (deep < 1e-300))


@pytest.mark.parametrize(
    ("shift", "scale", "by_products"), [(0.0, 1.0, True), (1e5, 1.0, True), (0.0, 200.0, False)]
)
def test_gaussian_blocks_keep_their_stated_rounding(shift, scale, by_products):
    rng = np.random.default_rng(1)
    X = scale * rng.normal(size=(330, 5)) + shift
    X[7] = X[3]
    gamma = 0.3
    blocks = Kernel("rbf", gamma=gamma).blocks(X)
    assert blocks._by_products == by_products
    exact = exact_gaussian(X, gamma)
    everyone = np.arange(330)
    off = np.abs(blocks.between(everyone, everyone) - exact)
    assert np.all(off <= np.outer(blocks.rounding, blocks.rounding))
    coef = rng.normal(size=330) * (rng.random(330) < 0.5)
    limit = blocks.rounding * (blocks.rounding @ np.abs(coef)) + 400 * UNIT * np.abs(coef).sum()
    assert np.all(np.abs(blocks.multiply(coef) - exact @ coef) <= limit)
    rows = np.array([5, 300, 17])
    assert_allclose(blocks.multiply(coef, rows), blocks.multiply(coef)[rows], atol=1e-12)
    assert_allclose(blocks.multiply(coef, single=True), exact @ coef, atol=1e-4)
    assert np.array_equal(blocks.multiply(np.zeros(330)), np.zeros(330))


@pytest.mark.parametrize("dense_entries", [0, 10**6])
def test_sparse_gaussian_blocks(monkeypatch, dense_entries):
    monkeypatch.setattr(kernel_module, "_MAX_DENSE_BLOCKS", dense_entries)
    X = sp.random(90, 40, density=0.1, format="csr", random_state=0)
    blocks = Kernel("rbf", gamma=0.7).blocks(X)
    exact = exact_gaussian(X.toarray(), 0.7)
    off = np.abs(blocks.between(np.arange(90), np.arange(90)) - exact)
    assert np.all(off <= np.outer(blocks.rounding, blocks.rounding))
    coef = np.random.default_rng(0).normal(size=90)
    assert_allclose(blocks.multiply(coef), exact @ coef, rtol=1e-12)
    assert_allclose(blocks.take(np.arange(5)).multiply(coef[:5]), exact[:5, :5] @ coef[:5])


@pytest.mark.parametrize("sparse", [False, True])
def test_polynomial_blocks_are_the_matrix_in_parts(sparse):
    X = np.random.default_rng(2).normal(size=(60, 4))
    given = sp.csr_matrix(X) if sparse else X
    kernel = Kernel("poly", gamma=0.4, degree=3, coef0=1.0)
    matrix, blocks = kernel.matrix(given), kernel.blocks(given)
    everyone = np.arange(60)
    assert_allclose(blocks.between(everyone, everyone), matrix.values, rtol=1e-12, atol=1e-13)
    assert_allclose(blocks.diagonal, matrix.values.diagonal(), rtol=1e-12)
    assert_allclose(blocks.rounding, matrix.rounding)
    assert (blocks.shifts is None) == (matrix.shifts is None)


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed", lambda X, Z: X @ Z.T])
def test_kernels_that_need_all_values_have_no_blocks(kernel):
    assert Kernel(kernel).blocks(np.eye(3)) is None


# -- which samples -----------------------------------------------------------------------------


def test_cache_size_decides():
    X = np.random.default_rng(0).normal(size=(100, 3))
    rbf = Kernel("rbf")
    assert isinstance(prepare(X, rbf, cache_size=0.08), GramSamples)
    assert isinstance(prepare(X, rbf, cache_size=0.0799), OnDemandSamples)
    assert isinstance(prepare(X, Kernel("linear"), cache_size=1e-6), FeatureSamples)
    assert isinstance(prepare(X[:, :].T @ X, rbf, cache_size=200.0), GramSamples)
    wide = np.random.default_rng(0).normal(size=(20, 50))
    assert isinstance(prepare(wide, Kernel("linear"), cache_size=200.0), GramSamples)
    assert isinstance(prepare(wide, Kernel("linear"), cache_size=1e-6), FeatureSamples)
    for kernel in (Kernel("sigmoid"), Kernel(lambda one, other: one @ other.T)):
        assert isinstance(prepare(X, kernel, cache_size=1e-6), GramSamples)
    gram = rbf.gram(X)
    assert prepare(gram, Kernel("precomputed"), cache_size=1e-6).gram is gram


def test_some_of_the_samples():
    X = np.random.default_rng(0).normal(size=(120, 3))
    samples = prepare(X, Kernel("rbf"), cache_size=TINY)
    gram = Kernel("rbf").gram(X)
    few, many = np.array([3, 3, 70]), np.arange(20, 90)
    assert isinstance(samples.take(few), GramSamples)
    assert_allclose(samples.take(few).gram, gram[np.ix_(few, few)], rtol=1e-13)
    assert isinstance(samples.take(many), OnDemandSamples)
    assert_allclose(samples.take(many).rows(np.array([4])), gram[[24], 20:90], rtol=1e-13)


# -- the same solutions ------------------------------------------------------------------------


@pytest.fixture
def no_room(monkeypatch):
    """No working block beside the cache: systems larger than it are solved by iteration."""
    monkeypatch.setattr(on_demand, "_WORKING_ENTRIES", 0)


def assert_same_fit(parameters, X, y, sample_weight=None, cache_size=TINY):
    known = OWASVC(tol=1e-8, **parameters).fit(X, y, sample_weight)
    model = OWASVC(cache_size=cache_size, **parameters).fit(X, y, sample_weight)
    assert np.all(np.asarray(model.status_) == "optimal")
    assert np.all(np.asarray(model.gap_) <= 1e-6)
    assert_allclose(model.objective_, known.objective_, rtol=2e-6)
    assert np.all(model.lower_bound_ <= known.objective_ * (1.0 + 1e-9))
    scores, expected = model.decision_function(X), known.decision_function(X)
    assert np.max(np.abs(scores - expected)) <= 0.02 * max(1.0, np.max(np.abs(expected)))
    return model


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("cache_size", [TINY, SMALL])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 100.0},
        {"C": 0.01, "weights": "uniform"},
        {"alpha": 0.2},
        {"weights": "superquantile", "alpha": 0.3},
        {"loss": "squared_hinge"},
        {"kernel": "poly", "coef0": 1.0, "degree": 2},
    ],
)
def test_same_solution_as_in_memory(moons, parameters, cache_size):
    assert_same_fit(parameters, *moons, cache_size=cache_size)


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("C", [15.0, 1500.0])
@pytest.mark.parametrize(
    ("weights", "alpha"), [("basic", 0.07), ("superquantile", 0.11), ("basic", 0.33)]
)
def test_steep_weights_reach_their_gap(weights, alpha, C):
    """Each of these once stopped at its limit of steps, with gaps up to 1 %."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.3, size=(60, 2))
    y = X[:, 0] + 3.0 * X.std() * rng.normal(size=60) > np.median(X[:, 0])
    parameters = {"C": C, "weights": weights, "alpha": alpha, "gamma": 0.5}
    known = OWASVC(tol=1e-8, **parameters).fit(X, y)
    model = OWASVC(cache_size=0.002, **parameters).fit(X, y)
    assert model.status_ == "optimal"
    assert_allclose(model.objective_, known.objective_, rtol=2e-6)
    assert model.lower_bound_ <= known.objective_ * (1.0 + 1e-9)


def test_wide_kernels_have_a_factor_within_the_promise(moons):
    X, _ = moons
    wide = prepare(X, Kernel("rbf", gamma=0.05), cache_size=TINY)
    operator = wide.operator()
    assert operator.n_columns is not None
    coef = np.random.default_rng(0).normal(size=400)
    coef -= coef.mean()
    scores = operator.vector(coef).scores
    shift = operator.intercept_shift(coef)
    assert_allclose(scores + shift, wide.scores(coef), atol=1e-10)
    narrow = prepare(X, Kernel("rbf", gamma=50.0), cache_size=TINY).operator()
    assert narrow.n_columns is None
    assert narrow.can_lift()


@pytest.mark.usefixtures("no_room")
def test_matrices_with_another_diagonal(moons):
    X, _ = moons
    samples = prepare(X, Kernel("rbf", gamma=50.0), cache_size=SMALL)
    assert not samples.operator().can_lift()
    few = on_demand.OnDemandSamples(Kernel("rbf", gamma=50.0).blocks(X[:100]), SMALL)
    operator, diagonal = few.operator(), np.linspace(0.1, 2.0, 100)
    side = np.random.default_rng(0).normal(size=100)
    lifted = operator.lift(diagonal)
    solved = lifted.solve_rest(lifted.solve_half(side[:, np.newaxis])[:, 0])
    assert_allclose(operator.vector(solved).scores + diagonal * solved, side, atol=1e-10)


def test_uniform_weights_are_svc(moons):
    X, y = moons
    model = OWASVC(2.0, weights="uniform", cache_size=TINY, tol=1e-7).fit(X, y)
    known = SVC(C=2.0, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), known.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("cache_size", [TINY, 200.0])
def test_samples_beyond_the_margin_are_no_support_vectors(cache_size):
    X, y = make_classification(
        600,
        20,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )
    model = OWASVC(gamma=0.02, cache_size=cache_size).fit(X, y)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    beyond = np.flatnonzero(margins > 1.02)
    assert beyond.size > 50
    assert not np.isin(beyond, model.support_).any()


def test_sample_weights_and_class_weights(moons):
    X, y = moons
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], size=y.size)
    assert_same_fit({"class_weight": "balanced"}, X, y, weight)
    assert_same_fit({"loss": "squared_hinge", "class_weight": {0: 2.0}}, X, y, weight)


def test_several_classes_and_sparse_samples(digits_like):
    X, y = digits_like
    model = assert_same_fit({"C": 3.0}, X, y)
    assert model.gap_.shape == (3,)
    sparse = np.where(np.abs(X) < 0.5, 0.0, X)
    assert_same_fit({}, sp.csr_matrix(sparse), y)


def test_polynomial_of_sparse_samples(digits_like):
    """On the way from w = 0 sums over no samples at all are asked for."""
    X, y = digits_like
    sparse = sp.csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X))
    assert_same_fit({"kernel": "poly", "degree": 2, "coef0": 1.0}, sparse, y)


def test_data_far_from_the_origin_and_copies():
    X, y = make_moons(150, noise=0.3, random_state=3)
    assert_same_fit({"gamma": 1.0}, X + 1e4, y)
    assert_same_fit({}, np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert_same_fit({}, np.zeros((60, 2)), np.arange(60) % 3 == 0)


def test_warm_start_and_path(moons):
    X, y = moons
    model = OWASVC(cache_size=TINY, warm_start=True).fit(X, y)
    steps = model.n_iter_
    assert model.fit(X, y).n_iter_ < max(steps, 2)
    Cs = [0.1, 1.0, 10.0]
    path = fit_path(X, y, Cs, cache_size=TINY)
    known = fit_path(X, y, Cs)
    assert_allclose(path.objectives, known.objectives, rtol=2e-6)
    assert path.gaps.max() <= 1e-6


# -- how it works ------------------------------------------------------------------------------


def test_scores_that_have_drifted_are_computed_anew(moons):
    X, y = moons
    samples = prepare(X, Kernel("rbf"), cache_size=SMALL)
    operator = samples.operator()
    coef = np.random.default_rng(0).normal(size=y.size)
    current = operator.vector(coef)
    exact = current.scores.copy()
    current.scores += 1e-3
    current.drift = 1e-3
    operator.residual(coef + 1e-9, current)
    assert_allclose(current.scores, exact, atol=1e-12)
    assert current.drift == 0.0
    current.drift = 1e-9
    current.scores += 1e-9
    operator.residual(2.0 * coef, current)
    assert current.drift == 1e-9


@pytest.mark.usefixtures("no_room")
def test_scores_computed_anew_are_about_those_before(moons):
    # What was left of coefficients on their way to 0 had been taken for nothing.
    X, labels = moons
    operator = prepare(X, Kernel("rbf", gamma=0.5), cache_size=TINY).operator()
    y = np.where(labels == 1, 1.0, -1.0)
    rng = np.random.default_rng(0)
    stays = X[:, 0] > np.median(X[:, 0])
    coef = y * rng.uniform(0.5, 1.0, y.size)
    target = np.where(stays, coef * rng.uniform(0.95, 1.05, y.size), 0.0)
    left = np.where(stays, coef, 3e-4 * coef)
    left[~stays & (rng.random(y.size) < 0.1)] = 1e-12
    current = operator.vector(left)
    before, current.drift = current.scores.copy(), 1.0
    operator.residual(target, current)
    assert current.drift == 0.0
    away = operator.vector(target).scores - before
    assert np.abs(current.scores - before).max() <= 1e-3 * np.abs(away).max()
    # Those of which next to nothing was left are gone.
    assert 0 < np.count_nonzero(current.coef) < y.size


@pytest.mark.parametrize("cache_size", [0.001, 0.2])
@pytest.mark.parametrize(("weights", "alpha"), [("uniform", 0.5), ("superquantile", 0.3)])
def test_a_share_whose_systems_fit_is_the_start(cache_size, weights, alpha, monkeypatch):
    monkeypatch.setattr(coarse, "_WORTH_A_SHARE_OF_GRAM", 300)
    # Not a wide kernel: that has a factor of few columns.
    X, y = make_classification(900, 8, class_sep=2.0, random_state=0)
    given = {"weights": weights, "alpha": alpha, "gamma": 0.05}
    samples = prepare(X, Kernel("rbf", gamma=0.05), cache_size=cache_size)
    signs = np.where(y > 0, 1.0, -1.0)
    costs = RankCosts(900, weights, alpha, 1.0)
    problem = OWAProblem(signs, costs, samples=samples)
    task = ConvexTask(samples.operator(), signs, problem.ranked_loss(), np.ones(1))
    start = coarse.start_on_share(problem, task, task.loss, 100, Clock.start(Settings()))
    assert np.count_nonzero(start.w.coef) <= 90
    slack = 1.0 - signs * (start.w.scores + start.intercept)
    at_start = 0.5 * start.w.coef @ start.w.scores + task.loss.value(slack)
    in_memory = OWASVC(**given).fit(X, y)
    assert at_start < 3.0 * in_memory.objective_ < 0.5 * task.loss.value(np.ones(900))
    model = OWASVC(cache_size=cache_size, **given).fit(X, y)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(in_memory.objective_, rel=2e-6)


def test_the_share_becomes_smaller_where_the_cache_does():
    X = np.zeros((50_000, 2))
    kernel = Kernel("rbf")
    sizes = [prepare(X, kernel, cache_size=size).n_in_cache for size in (0.1, 200.0, 800.0)]
    assert sizes == [1182, 2886, 5773]


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("cache_size", [TINY, SMALL])
def test_newton_steps_are_those_of_the_gram_matrix(moons, cache_size, monkeypatch):
    """In the scores of the step; the origin of feature space is another one."""
    monkeypatch.setattr(on_demand, "_LEFT_TO_LATER", 0.0)
    X, labels = moons
    y = np.where(labels == 1, 1.0, -1.0)
    costs = RankCosts(y.size, "basic", 0.6, 5.0)

    def objectives(samples):
        problem = OWAProblem(y, costs, samples=samples)
        operator = samples.operator().condense(y.size)
        task = ConvexTask(operator, y, problem.ranked_loss(), np.ones(y.size))
        task.memory.factorises = True
        start = cold_start(task)
        start.penalty = 2.0
        steps = iterates(task, start)
        return [next(steps).objective for _ in range(7)]

    kernel = Kernel("rbf", gamma=0.5)
    ours = objectives(prepare(X, kernel, cache_size=cache_size))
    assert_allclose(ours, objectives(prepare(X, kernel)), rtol=5e-3)


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("case", ["free", "far", "fixed", "tied"])
def test_large_systems_are_solved_as_small_ones(moons, case, monkeypatch):
    """By conjugate gradients that keep the balance: one system in place of two."""
    monkeypatch.setattr(on_demand, "_ITERATED_ACCURACY", 1e-7)
    X, labels = moons
    y = np.where(labels == 1, 1.0, -1.0)
    rng = np.random.default_rng(3)
    operator = prepare(X, Kernel("rbf", gamma=0.5), cache_size=TINY).operator()
    root = rng.uniform(0.5, 2.0, 90)
    chosen = rng.permutation(y.size)[:90]
    offsets = np.array([0, 50, 70, 90])
    if case == "tied":
        # One class, one block: the intercept moves none of them.
        chosen = np.flatnonzero(y > 0)[:90]
        offsets = np.array([0, 0, 90])
    active = ActiveSet(
        samples=chosen,
        offsets=offsets,
        shrink=np.ones(4),
        root=root,
        tie=root * y[chosen],
        ridge=0.1,
        imbalance=1e4 if case == "far" else 3.0,
        free=case != "fixed",
        accuracy=1e-4,
        memory=Memory(),
    )
    residual = operator.vector(y * rng.uniform(size=y.size))
    found = []
    for largest in (90, 89):
        operator._largest_block = largest
        found.append(operator.newton_step(residual, active))
    (dense, intercept), (iterated, other) = found
    assert_allclose(iterated.coef, dense.coef, atol=1e-4 * np.abs(dense.coef).max())
    assert other == pytest.approx(intercept, rel=1e-4)
    limits = {"far": MAX_INTERCEPT_STEP, "tied": MAX_INTERCEPT_STEP, "fixed": 0.0}
    assert abs(other) == limits.get(case, abs(other))
    assert (abs(other) < MAX_INTERCEPT_STEP) is (case in ("free", "fixed"))


def test_memory_stays_at_what_was_promised():
    X, y = make_classification(3000, 5, flip_y=0.2, random_state=0)
    parameters = {"cache_size": 2.0, "tol": 1e-2, "gamma": 0.2}
    OWASVC(**parameters).fit(X[:600], y[:600])
    tracemalloc.start()
    try:
        OWASVC(**parameters).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The cache, some 150 vectors of length n and a working block; the Gram matrix takes 72 MB.
    assert peak <= 2e6 + 150 * 8 * 3000 + 33.6e6


def test_limits_and_interruptions(moons):
    X, labels = moons
    y = np.where(labels == 1, 1.0, -1.0)
    samples = prepare(X, Kernel("rbf"), cache_size=TINY)
    problem = OWAProblem(y, RankCosts(y.size, "basic", 0.6, 10.0), samples=samples)
    seen = []

    def stop_after_two(info):
        seen.append(info["n_iter"])
        return len(seen) < 2

    assert solve(problem, callback=stop_after_two).status == "interrupted"
    assert len(seen) == 2
    assert solve(problem, max_iter=1).status == "iteration_limit"
    found = solve(problem, time_limit=1e-6)
    assert found.status == "time_limit"
    assert found.lower_bound <= found.objective < np.inf


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["branch-and-bound", "miqp"])
def test_general_weights_beyond_the_cache_are_refused(moons, solver):
    model = OWASVC(weights="trimmed", alpha=0.1, solver=solver, cache_size=TINY)
    expected = r"400 samples.*cache_size is 0\.02 MB.*Raise cache_size.*solver='dca'"
    with pytest.raises(ValueError, match=expected):
        model.fit(*moons)


def test_general_weights_beyond_the_cache_by_descent(moons):
    parameters = {"weights": "quadratic", "alpha": 0.8}
    model = OWASVC(cache_size=TINY, **parameters).fit(*moons)
    assert model.solution_.solver == "dca"
    known = OWASVC(solver="dca", **parameters).fit(*moons)
    assert model.status_ in ("local", "optimal")
    assert_allclose(model.objective_, known.objective_, rtol=1e-3)
    assert model.lower_bound_ <= min(model.objective_, known.objective_)


def test_a_matrix_that_the_machine_cannot_hold_is_refused_before_it_is_computed(monkeypatch):
    X, y = make_moons(200, random_state=0)
    monkeypatch.setattr(os, "sysconf", lambda name: 100 if name == "SC_PHYS_PAGES" else 1000)

    def never_called(*samples):
        raise AssertionError(f"The kernel was called with {samples}.")

    with pytest.raises(ValueError, match=r"200 samples takes 0 MB, and the machine has 0 MB"):
        OWASVC(kernel=never_called).fit(X, y)
    # Nothing is formed beyond the cache.
    assert OWASVC(cache_size=TINY).fit(X, y).status_ == "optimal"


@pytest.mark.parametrize("cache_size", [0, -5.0, "large"])
def test_cache_size_must_be_a_positive_number(moons, cache_size):
    with pytest.raises(ValueError, match="cache_size"):
        OWASVC(cache_size=cache_size).fit(*moons)
