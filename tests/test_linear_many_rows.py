"""Linear models of many rows: read as they are, in blocks, by conjugate gradients, by a share."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm import OWASVC, LinearOWASVC
from owasvm.certificate import certificate
from owasvm.kernels import Kernel
from owasvm.preparation import TrainingSet
from owasvm.samples import (
    ActiveSet,
    FeatureSamples,
    Memory,
    feature_operator,
    features,
    prepare,
    rows,
)
from owasvm.samples.operators import MAX_INTERCEPT_STEP
from owasvm.samples.rows import make_rows
from owasvm.solvers.newton import coarse, core, stopping

FloatArray = NDArray[np.float64]
TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def draw(n_samples: int, n_features: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    w = rng.normal(size=n_features) / np.sqrt(n_features)
    return X, np.where(X @ w + 0.5 * rng.normal(size=n_samples) > 0.1, 1.0, -1.0)


def draw_sparse(n_samples: int, n_features: int, seed: int = 0) -> tuple[Any, FloatArray]:
    rng = np.random.default_rng(seed)
    X, _ = draw(n_samples, n_features, seed)
    # Columns as different in frequency as words.
    X[rng.random(X.shape) > 1.0 / np.sqrt(np.arange(1.0, n_features + 1.0))] = 0.0
    noise = 0.5 * rng.normal(size=n_samples)
    return sp.csr_matrix(X), np.where(X.sum(axis=1) + noise > 0.1, 1.0, -1.0)


def make_active(
    samples: NDArray[np.int64], sizes: list[int], *, weighted: bool = True, imbalance: float = 0.01
) -> ActiveSet:
    """Samples on their own, then blocks of given sizes."""
    rng = np.random.default_rng(5)
    size = samples.size
    root = np.sqrt(rng.uniform(0.5, 3.0, size)) if weighted else np.ones(size)
    ends = np.cumsum([size - sum(sizes), *sizes])
    return ActiveSet(
        samples=samples,
        offsets=np.concatenate(([0], ends)),
        shrink=np.concatenate(([1.0], rng.uniform(0.3, 1.0, len(sizes)))),
        root=root,
        tie=root * rng.choice([-1.0, 1.0], size),
        ridge=0.3,
        imbalance=imbalance,
        free=True,
        accuracy=1e-15,
        memory=Memory(),
    )


# Rows as they are


@TYPES
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_data_are_not_copied(dtype: Any, make: Any) -> None:
    X = make(draw(60, 4)[0].astype(dtype) * (np.arange(4) < 2))
    samples: Any = prepare(X, Kernel("linear"), primal=True)
    held = samples._rows.features
    assert held.dtype == dtype
    assert np.shares_memory(getattr(held, "data", held), getattr(X, "data", X))
    operator = samples.operator()
    assert operator._rows is samples._rows


@TYPES
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_products_are_those_of_the_moved_rows(dtype: Any, shift: float) -> None:
    X = (draw(3000, 7)[0] + shift).astype(dtype)
    samples = prepare(X, Kernel("linear"), primal=True)
    exact = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    rng = np.random.default_rng(1)
    coef = np.where(rng.random(3000) < 0.3, rng.normal(size=3000), 0.0)
    weight = samples.weight(coef)
    scale = np.abs(coef).sum() * np.abs(exact).max()
    # The mean is rounded once, which moves the samples by as much.
    moved = 1e-15 * max(shift, 1.0)
    assert weight == pytest.approx(exact.T @ coef, abs=(1e-15 + moved) * scale * 10.0)
    assert samples.scores(coef) == pytest.approx(exact @ weight, abs=1e-12 * scale * 100.0)
    np.testing.assert_allclose(samples.norms, np.linalg.norm(exact, axis=1), rtol=1e-9)


@pytest.mark.parametrize("weights", ["basic", "superquantile"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_single_precision_is_the_same_problem(weights: str, make: Any) -> None:
    X, y = draw(400, 5)
    single = make(np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32))
    double = single.astype(np.float64)
    model = LinearOWASVC(weights=weights, alpha=0.6).fit(single, y)
    same = LinearOWASVC(weights=weights, alpha=0.6).fit(double, y)
    assert model.coef_.dtype == np.float64
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-6)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-3)
    dual = np.zeros(400)
    dual[model.support_] = model.dual_coef_[0]
    found = certificate(
        double, y, weights, 1.0, dual, model.intercept_[0], alpha=0.6, coef=model.coef_
    )
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(model.objective_, rel=1e-12)
    np.testing.assert_allclose(
        model.decision_function(single), same.decision_function(double), atol=1e-2
    )


@TYPES
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sparse_rows_of_every_length(dtype: Any, kind: Any) -> None:
    rng = np.random.default_rng(3)
    X = np.where(np.arange(11) < np.arange(12)[:, np.newaxis], rng.normal(size=(12, 11)), 0.0)
    # Columns in any order, and the last one used.
    X = X[:, rng.permutation(11)].astype(dtype)
    given = sp.csr_matrix(X)
    given.indices, given.indptr = given.indices.astype(kind), given.indptr.astype(kind)
    samples = make_rows(given)
    weight, coef = rng.normal(size=11), rng.normal(size=12)
    np.testing.assert_allclose(samples.scores(weight), X.astype(np.float64) @ weight, rtol=1e-13)
    np.testing.assert_allclose(samples.combine(coef), X.astype(np.float64).T @ coef, rtol=1e-12)


def test_kernels_and_integers_are_double_precision() -> None:
    X, y = draw(80, 3)
    assert OWASVC().fit(X.astype(np.float32), y).support_vectors_.dtype == np.float64
    whole = np.round(3.0 * X).astype(np.int64)
    exact = LinearOWASVC().fit(whole.astype(np.float64), y)
    for given in (whole, sp.csr_matrix(whole), whole[:, ::-1][:, ::-1], np.asfortranarray(whole)):
        model = LinearOWASVC().fit(given, y)
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)


# Active rows, some at a time


@TYPES
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sizes", [[], [2, 3, 2], [40, 2, 90, 3], [150]])
def test_blocks_of_active_rows(
    dtype: Any, sparse: bool, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = (draw(300, 6)[0] + 2.0).astype(dtype)
    made = make_rows(sp.csr_matrix(X)) if sparse else make_rows(X, np.full(6, 1.9))
    active = make_active(np.random.default_rng(2).permutation(300)[:200], sizes)
    whole = made.gather(active)
    monkeypatch.setattr(rows, "_BLOCK_ENTRIES", 0)
    monkeypatch.setattr(rows, "_LEAST_ROWS", 5)
    again = np.full_like(whole, np.nan)
    for part, some in made.gather_in_blocks(active):
        assert some.shape[0] <= 30
        assert np.isnan(again[part]).all()
        again[part] = some
    np.testing.assert_allclose(again, whole, atol=1e-12)


# Sparse Newton steps


@pytest.mark.parametrize("sizes", [[], [3, 2], [4500], [4200, 2, 30]])
@pytest.mark.parametrize("free", [False, True])
def test_sparse_steps_are_those_of_dense_rows(
    sizes: list[int], free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_operator, "_WORTH_PRODUCTS", 0)
    X, _ = draw_sparse(6000, 20)
    active = make_active(np.random.default_rng(2).permutation(6000)[:5000], sizes)
    active.free = free
    coef = np.random.default_rng(3).normal(size=6000) / 6000
    steps = []
    for given in (X, X.toarray()):
        operator = FeatureSamples(given).operator(centred=False)
        steps.append(operator.newton_step(operator.vector(coef.copy()), active))
    (step, intercept), (expected, expected_intercept) = steps
    assert intercept == pytest.approx(expected_intercept, abs=1e-8)
    np.testing.assert_allclose(step.weight, expected.weight, atol=1e-8)
    np.testing.assert_allclose(step.scores, expected.scores, atol=1e-8)
    np.testing.assert_allclose(step.coef, expected.coef, atol=1e-8)


def test_sparse_steps_limit_the_intercept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_operator, "_WORTH_PRODUCTS", 0)
    X, _ = draw_sparse(50, 4)
    active = make_active(np.arange(40), [], imbalance=1e4)
    operator = FeatureSamples(X).operator()
    step, intercept = operator.newton_step(operator.vector(np.zeros(50)), active)
    assert intercept == MAX_INTERCEPT_STEP
    B = X.toarray()[:40] * active.root[:, None]
    system = np.eye(4) + B.T @ B / active.ridge
    h = np.linalg.solve(system, -B.T @ active.root * intercept / active.ridge)
    np.testing.assert_allclose(step.weight, h, atol=1e-9)


def test_sparse_residuals_read_rows_whose_coefficient_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feature_operator, "_MANY_ENTRIES", 0)
    X, _ = draw_sparse(400, 30)
    rng = np.random.default_rng(5)
    operator = FeatureSamples(X).operator()
    n_read: list[int] = []
    combine = rows.SparseRows.combine

    def note(self: rows.SparseRows, coef: FloatArray) -> FloatArray:
        n_read.append(np.count_nonzero(coef))
        return combine(self, coef)

    find, target = operator.residuals(), rng.normal(size=400)
    current = operator.vector(rng.normal(size=400))
    monkeypatch.setattr(rows.SparseRows, "combine", note)
    # All of them, some, those that rounding has moved, more than half, none.
    for n_changed, n_expected in ((400, 400), (50, 50), (0, 0), (300, 400), (0, 0)):
        changed = rng.permutation(400)[:n_changed]
        target[changed] = rng.normal(size=n_changed)
        target *= 1.0 + 1e-15
        n_read.clear()
        residual, squared = find(target.copy(), current)
        assert n_read == [n_expected]
        exact, exact_squared = operator.residual(target.copy(), current)
        np.testing.assert_allclose(residual.coef, exact.coef, atol=1e-11)
        np.testing.assert_allclose(residual.weight, exact.weight, atol=1e-10)
        assert squared == pytest.approx(exact_squared)


@pytest.mark.parametrize("weights", ["basic", "superquantile", "uniform"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sparse_fits_reach_their_gap(
    weights: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw_sparse(300, 40)
    mass = np.random.default_rng(4).integers(1, 4, 300).astype(float)
    for sample_weight in (None, mass):
        dense = LinearOWASVC(weights=weights, alpha=0.6, loss=loss).fit(
            X.toarray(), y, sample_weight
        )
        # By conjugate gradients, and where they are given up after a few products.
        for worth, speed, many in ((0, 1.0, 0), (0, 0.015, 10**6)):
            monkeypatch.setattr(feature_operator, "_MANY_ENTRIES", many)
            monkeypatch.setattr(feature_operator, "_WORTH_PRODUCTS", worth)
            monkeypatch.setattr(feature_operator, "_DENSE_SPEED", speed)
            model = LinearOWASVC(weights=weights, alpha=0.6, loss=loss).fit(X, y, sample_weight)
            assert model.status_ == "optimal"
            assert model.objective_ == pytest.approx(dense.objective_, rel=2e-6)


def test_sparse_classes_and_empty_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_operator, "_WORTH_PRODUCTS", 0)
    X, signs = draw_sparse(240, 30)
    X = sp.vstack([X, sp.csr_matrix((20, 30))]).tocsr()
    y = np.append(
        np.where(signs > 0, 2, np.where(X[:240, 0].toarray().ravel() > 0, 1, 0)), [0] * 20
    )
    model = LinearOWASVC().fit(X, y)
    same = OWASVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.objective_, same.objective_, rtol=2e-6)


def test_wide_dense_data_are_those_of_their_kernel() -> None:
    X, y = draw(60, 200)
    X += 50.0
    for dtype in (np.float64, np.float32):
        given = X.astype(dtype)
        model = LinearOWASVC().fit(given, y)
        same = OWASVC(kernel="linear").fit(given, y)
        assert model.status_ == same.status_ == "optimal"
        assert model.objective_ == pytest.approx(same.objective_, rel=2e-6)


# A share of the samples first


@pytest.mark.parametrize("weights", ["basic", "superquantile", "uniform"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_share_is_a_start_and_no_more(
    weights: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw(1500, 3)
    X += np.array([0.0, 3.0, -20.0])
    cold = LinearOWASVC(weights=weights, alpha=0.6, loss=loss).fit(X, y)
    monkeypatch.setattr(coarse, "_WORTH_A_SHARE", 300)
    model = LinearOWASVC(weights=weights, alpha=0.6, loss=loss).fit(X, y)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-6)


def test_a_share_of_one_class_is_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "_WORTH_A_SHARE", 300)
    X, _ = draw(1000, 2)
    X[:2] += 5.0
    y = np.where(np.arange(1000) < 2, 1.0, -1.0)
    model = LinearOWASVC(C=10.0).fit(X, y)
    same = OWASVC(C=10.0, kernel="linear").fit(X, y, np.ones(1000))
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(same.objective_, rel=2e-6)


def test_a_share_minds_limits_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "_WORTH_A_SHARE", 300)
    X, y = draw(600, 3)
    heavy = LinearOWASVC().fit(X, y, np.full(600, 2.0))
    twice = LinearOWASVC().fit(np.vstack((X, X)), np.concatenate((y, y)))
    assert heavy.objective_ == pytest.approx(twice.objective_, rel=2e-6)
    with pytest.warns(UserWarning, match="iteration_limit"):
        stopped = LinearOWASVC(max_iter=1).fit(X, y)
    assert stopped.lower_bound_ <= LinearOWASVC().fit(X, y).objective_ <= stopped.objective_


# Room


@pytest.mark.parametrize("ranks", ["all", "class"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_vectors_that_were_let_go_are_made_again(
    monkeypatch: pytest.MonkeyPatch, ranks: str, loss: str, sparse: bool
) -> None:
    X, y = draw_sparse(300, 12) if sparse else draw(300, 12)
    mass = np.random.default_rng(4).uniform(0.5, 2.0, 300)
    model = LinearOWASVC(10.0, weights="superquantile", ranks=ranks, loss=loss, tol=1e-9)
    for weights in (None, mass):
        kept = model.fit(X, y, weights)
        objective, deviations, costs = kept.objective_, kept.deviations_, kept.sample_costs_
        with monkeypatch.context() as patch:
            for module in (core, stopping):
                patch.setattr(module, "MANY_SAMPLES", 10)
            patch.setattr(features, "_KEPT_NORMS", 10)
            patch.setattr(features, "_PART", 7)
            again = model.fit(X, y, weights)
        assert again.gap_ <= 1e-9
        assert again.objective_ == pytest.approx(objective, rel=2e-9)
        np.testing.assert_allclose(again.deviations_, deviations, atol=1e-3)
        assert again.sample_costs_.sum() == pytest.approx(costs.sum())
        values = again.decision_function(X)
        np.testing.assert_allclose(again.deviations_, np.maximum(1.0 - y * values, 0.0), atol=1e-9)


def test_a_limit_leaves_deviations_too(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(300, 12)
    for module in (core, stopping):
        monkeypatch.setattr(module, "MANY_SAMPLES", 10)
    with pytest.warns(UserWarning, match="max_iter"):
        model = LinearOWASVC(max_iter=2).fit(X, y)
    values = model.decision_function(X)
    np.testing.assert_allclose(model.deviations_, np.maximum(1.0 - y * values, 0.0), atol=1e-9)


def test_vectors_of_the_length_of_the_data() -> None:
    n_samples = core.MANY_SAMPLES
    X, y = draw(n_samples, 10)
    single = X.astype(np.float32)
    del X
    LinearOWASVC().fit(single[:500], y[:500])
    tracemalloc.start()
    try:
        model = LinearOWASVC().fit(single, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.gap_ <= 1e-6
    # 12 or so, and one that nobody writes to: of 1,000,000 rows, 50 features, half of the data.
    assert peak <= 16.5 * 8 * n_samples


def test_labels_are_taken_as_they_are() -> None:
    X, y = draw(40, 3)
    before = y.copy()
    training = TrainingSet.of(X, y)
    assert next(training.signs()) is y
    mass = np.where(np.arange(40) < 10, 0.0, 1.0)
    counted = TrainingSet.of(X, y, mass).without_zero_weights(pairwise=False)
    np.testing.assert_array_equal(next(counted.signs()), y[10:])
    model = LinearOWASVC().fit(X, y)
    np.testing.assert_array_equal(y, before)
    for other in (y.astype(int), np.where(y > 0, 7.0, 3.0), np.repeat(y, 2)[::2]):
        assert LinearOWASVC().fit(X, other).objective_ == model.objective_
