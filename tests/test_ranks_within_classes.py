"""Deviations ranked within each class: ``ranks="class"``."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons

from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC
from owasvm.certificate import certificate
from owasvm.costs import OwnCosts, RankCosts
from owasvm.grouping import GroupedCosts, assign_costs, parts_of
from owasvm.intercept import best_intercept
from owasvm.kernels import Kernel
from owasvm.losses import LOSSES, GroupedRankedLoss, ProxPoint, RankedLoss, make_loss
from owasvm.path import fit_path
from owasvm.persistence import load, save
from owasvm.problem import OWAProblem
from owasvm.samples import OnDemandSamples, Samples, prepare
from owasvm.samples.device import DeviceSamples
from owasvm.solvers import interior, newton, solve
from owasvm.solvers.contract import Settings
from owasvm.solvers.interior import choose_groups, minimise
from owasvm.solvers.newton.tuning import Tuning
from owasvm.weights import owa_weights
from tests.oracles import (
    Groups,
    cvxpy_owa_svm,
    dotsort_prox,
    enumerate_owa_svm,
    psd_factor,
    replicated,
)

# Small random problems often leave nothing better than w = 0.
pytestmark = pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FAMILIES = [
    ("uniform", None),
    ("basic", 0.6),
    ("basic", 0.2),
    ("quadratic", 0.2),
    ("exponential", 0.8),
    ("superquantile", 0.3),
    ("max-entropy", 0.8),
]
POWERS = {"hinge": 1, "squared_hinge": 2}


def by_class(y: FloatArray, family: str, alpha: float | None) -> Groups:
    """The samples of each class and their weights, as an oracle takes them."""
    indices = [np.flatnonzero(y < 0), np.flatnonzero(y > 0)]
    return [(index, owa_weights(index.size, family, alpha)) for index in indices]


def draw_samples(seed: int) -> tuple[FloatArray, FloatArray]:
    """Few samples, with ties; balanced, imbalanced, or one sample in a class."""
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(6, 30))
    X = rng.normal(size=(n_samples, int(rng.integers(1, 5)))).round(int(rng.integers(0, 3)))
    y = np.where(rng.random(n_samples) < rng.choice([0.5, 0.2, 0.0]), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def gaussian(X: FloatArray, gamma: float) -> FloatArray:
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=-1))


@pytest.mark.parametrize("seed", range(56))
def test_equals_cvxpy(seed: int) -> None:
    X, y = draw_samples(seed)
    rng = np.random.default_rng(seed)
    family, alpha = FAMILIES[seed % len(FAMILIES)]
    loss = ["hinge", "squared_hinge"][seed % 2]
    C = 10.0 ** rng.integers(-2, 3)
    counts = rng.integers(1, 4, size=y.size) if seed % 3 == 0 else np.ones(y.size, dtype=int)
    parameters = {"C": C, "weights": family, "alpha": alpha, "loss": loss, "ranks": "class"}
    if seed % 4 < 2:
        features = X
        model = LinearOWASVC(**parameters).fit(X, y, sample_weight=counts)
    else:
        features = psd_factor(gaussian(X, 0.5))
        model = OWASVC(gamma=0.5, **parameters).fit(X, y, sample_weight=counts)
    rows, signs = replicated(features, y, counts)
    oracle = cvxpy_owa_svm(
        rows, signs, by_class(signs, family, alpha), C, target_gap=1e-7, power=POWERS[loss]
    )
    assert model.status_ == "optimal"
    scale = max(1.0, oracle.objective)
    assert model.objective_ >= oracle.lower_bound - 1e-9 * scale
    assert model.objective_ <= oracle.objective + 1e-6 * scale
    assert model.lower_bound_ <= oracle.objective + 1e-12 * scale


@pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC, TwoStepOWASVC])
def test_uniform_weights_know_no_ranks(estimator: type) -> None:
    X, y = make_moons(80, noise=0.3, random_state=0)
    y[:20] = 0
    one, other = (
        estimator(C=2.0, weights="uniform", ranks=ranks).fit(X, y) for ranks in ("all", "class")
    )
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-3)


def test_weights_by_class() -> None:
    X, y = make_moons(50, noise=0.3, random_state=0)
    X, y = X[y.argsort()][:37], np.sort(y)[:37]
    model = OWASVC(C=3.0, weights="superquantile", alpha=0.5, ranks="class").fit(X, y)
    assert [weights.size for weights in model.owa_weights_] == [25, 12]
    assert [weights.mean() for weights in model.owa_weights_] == pytest.approx([1.0, 1.0])
    deviations = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * model.decision_function(X))
    squared = float(
        model.dual_coef_[0] @ gaussian(model.support_vectors_, model.gamma_) @ model.dual_coef_[0]
    )
    loss = sum(
        weights @ np.sort(deviations[y == label])
        for weights, label in zip(model.owa_weights_, model.classes_, strict=True)
    )
    assert model.objective_ == pytest.approx(0.5 * squared + 3.0 * loss, rel=1e-9)


@pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC])
def test_several_classes_one_against_the_rest(estimator: type) -> None:
    X, y = make_blobs([20, 40, 15], centers=[[0, 0], [1, 1], [2, 0]], random_state=0)
    parameters = {"weights": "basic", "alpha": 0.4, "ranks": "class"}
    model = estimator(**parameters).fit(X, y)
    assert len(model.owa_weights_) == 3
    for label in range(3):
        one = estimator(**parameters).fit(X, y == label)
        assert model.objective_[label] == pytest.approx(one.objective_, rel=1e-6)
        sizes = [weights.size for weights in model.owa_weights_[label]]
        assert sizes == [np.sum(y != label), np.sum(y == label)]
    two_step = TwoStepOWASVC(**parameters).fit(X, y)
    one = TwoStepOWASVC(**parameters).fit(X, y == 2)
    assert two_step.objective_[2] == pytest.approx(one.objective_, rel=1e-9)


def test_several_classes_with_convex_and_other_problems() -> None:
    """Of a lonely sample every weight is convex, of the rest it is not."""
    X, y = make_blobs([12, 1, 11], centers=[[0, 0], [1, 1], [2, 0]], random_state=0)
    model = TwoStepOWASVC(weights="trimmed", alpha=0.2, ranks="class").fit(X, y)
    assert not model.convex_


@pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC, TwoStepOWASVC])
def test_sample_weights_are_copies(estimator: type) -> None:
    X, y = make_moons(40, noise=0.3, random_state=1)
    counts = np.random.default_rng(0).integers(0, 4, size=40)
    rows = np.repeat(np.arange(40), counts)
    parameters = {"weights": "basic", "alpha": 0.3, "ranks": "class"}
    if estimator is not LinearOWASVC:
        parameters["gamma"] = 1.0
    weighted = estimator(**parameters).fit(X, y, sample_weight=counts)
    copied = estimator(**parameters).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-6)
    totals = [weights.sum() for weights in weighted.owa_weights_]
    assert totals == pytest.approx([counts[y == label].sum() for label in (0, 1)])


def test_balanced_classes() -> None:
    X, y = make_moons(60, noise=0.3, random_state=1)
    X, y = X[y.argsort()][:40], np.sort(y)[:40]
    parameters = {"weights": "superquantile", "alpha": 0.3, "ranks": "class"}
    model = LinearOWASVC(class_weight="balanced", **parameters).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    groups = [
        (index, weights * 20.0 / index.size)
        for index, weights in by_class(signs, "superquantile", 0.3)
    ]
    oracle = cvxpy_owa_svm(X, signs, groups, 1.0)
    assert model.objective_ == pytest.approx(oracle.objective, rel=1e-6)


class TestTwoStep:
    def test_ranks_of_each_class(self) -> None:
        X, y = make_moons(50, noise=0.3, random_state=0)
        X, y = X[y.argsort()][:40], np.sort(y)[:40]
        model = TwoStepOWASVC(weights="exponential", alpha=2.0, ranks="class").fit(X, y)
        values = 1.0 - np.where(y == 1, 1, -1) * model.first_step_.decision_function(X)
        for label in (0, 1):
            own = y == label
            expected = owa_weights(own.sum(), "exponential", 2.0)
            ranked = model.rank_weights_[own][np.argsort(values[own], kind="stable")]
            assert ranked.sum() == pytest.approx(own.sum())
            assert ranked[-1] == pytest.approx(expected[-1])
        exact = OWASVC(weights="exponential", alpha=2.0, ranks="class").fit(X, y)
        assert model.objective_ >= exact.lower_bound_

    @pytest.mark.parametrize("order", ["lof", "spread"])
    def test_induced_orders(self, order: str) -> None:
        X, y = make_moons(40, noise=0.3, random_state=0)
        model = TwoStepOWASVC(weights="trimmed", alpha=0.25, ranks="class", order=order).fit(X, y)
        assert [np.sum(model.rank_weights_[y == label] == 0) for label in (0, 1)] == [5, 5]


class TestErrors:
    @pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC, TwoStepOWASVC])
    def test_weights_as_an_array(self, estimator: type) -> None:
        X, y = make_moons(20, noise=0.3, random_state=0)
        with pytest.raises(ValueError, match=r"ranks='class' cannot .* length 20.*named family"):
            estimator(weights=np.ones(20), ranks="class").fit(X, y)

    @pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC, TwoStepOWASVC])
    def test_unknown_ranks(self, estimator: type) -> None:
        X, y = make_moons(20, noise=0.3, random_state=0)
        with pytest.raises(ValueError, match=r"'ranks' parameter .*'all'"):
            estimator(ranks="classes").fit(X, y)
        with pytest.raises(ValueError, match="ranks must be one of 'all', 'class'; got 'groups'"):
            assign_costs(np.array([1.0, -1.0]), ranks="groups")

    @pytest.mark.parametrize("solver", ["assignment", "ogryczak-tamir", "assignment-dual", "miqp"])
    def test_models_of_the_paper(self, solver: str) -> None:
        X, y = make_moons(20, noise=0.3, random_state=0)
        with pytest.raises(ValueError, match=r"ranks='class'.*'auto' or 'newton'.*ranks='all'"):
            OWASVC(solver=solver, ranks="class").fit(X, y)


@pytest.mark.parametrize("estimator", [OWASVC, LinearOWASVC, TwoStepOWASVC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_save_clone_pickle(estimator: type, n_classes: int, tmp_path) -> None:
    X, y = make_blobs(40, centers=n_classes, cluster_std=3.0, random_state=0)
    model = estimator(weights="superquantile", alpha=0.4, ranks="class").fit(X, y)
    assert clone(model).ranks == "class"
    save(model, tmp_path / "model.skops")
    for other in (load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.ranks == "class"
        one, two = model.owa_weights_[-1], other.owa_weights_[-1]
        np.testing.assert_array_equal(np.hstack(one), np.hstack(two))


def test_path() -> None:
    X, y = make_moons(60, noise=0.3, random_state=2)
    X, y = X[y.argsort()][:45], np.sort(y)[:45]
    path = fit_path(X, y, Cs=[0.1, 1.0, 10.0], alphas=[0.3, 0.8], gamma=1.0, ranks="class")
    assert path.gaps.max() <= 1e-6
    for i, alpha in enumerate([0.3, 0.8]):
        for j, C in enumerate([0.1, 1.0, 10.0]):
            model = OWASVC(C=C, alpha=alpha, gamma=1.0, ranks="class").fit(X, y)
            assert path.objectives[i, j] == pytest.approx(model.objective_, rel=2e-6)


def test_warm_start() -> None:
    X, y = make_moons(60, noise=0.3, random_state=2)
    model = OWASVC(ranks="class", warm_start=True).fit(X, y)
    model.set_params(C=2.0).fit(X, y)
    assert model.objective_ == pytest.approx(
        OWASVC(C=2.0, ranks="class").fit(X, y).objective_, rel=2e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_never_above_the_optimum(loss: str) -> None:
    X, y = draw_samples(3)
    rng = np.random.default_rng(0)
    oracle = cvxpy_owa_svm(X, y, by_class(y, "basic", 0.5), 2.0, power=POWERS[loss])
    request = {"alpha": 0.5, "loss": loss, "ranks": "class"}
    for _ in range(50):
        dual = rng.exponential(size=y.size) * rng.integers(0, 2, size=y.size) * 5.0
        found = certificate(X, y, "basic", 2.0, dual, rng.normal(), **request)
        assert found.lower_bound <= oracle.objective <= found.objective + 1e-9
    found = certificate(X, y, "basic", 2.0, oracle.alpha, oracle.intercept, **request)
    assert found.gap <= 1e-6
    model = LinearOWASVC(C=2.0, weights="basic", alpha=0.5, loss=loss, ranks="class").fit(X, y)
    dual = np.zeros(y.size)
    dual[model.support_] = model.dual_coef_[0]
    found = certificate(X, y, "basic", 2.0, dual, model.intercept_[0], **request)
    assert found.gap <= 2e-6
    assert found.objective == pytest.approx(model.objective_, rel=1e-6)


class TestGroupedLoss:
    """What the loss of groups does, against the definition and the groups one by one."""

    def draw(self, seed: int, kind: str) -> tuple[GroupedCosts, RankedLoss, FloatArray, Groups]:
        rng = np.random.default_rng(seed)
        n_samples = int(rng.integers(2, 14))
        y = np.where(rng.random(n_samples) < 0.4, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        family, alpha = FAMILIES[int(rng.integers(len(FAMILIES)))]
        costs = assign_costs(y, family, alpha, 2.0, ranks="class")
        assert isinstance(costs, GroupedCosts)
        slack = rng.normal(0.5, 1.0, size=n_samples).round(int(rng.integers(1, 4)))
        return costs, make_loss(kind, costs), slack, by_class(y, family, alpha)

    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(list(LOSSES)))
    def test_prox_against_cvxpy(self, seed: int, kind: str) -> None:
        _, loss, v, groups = self.draw(seed, kind)
        point = ProxPoint(v.size)
        loss.prox(v, 1.5, point)
        for index, weights in groups:
            expected = dotsort_prox(v[index], 2.0 * weights, 1.0 / 1.5, power=POWERS[kind])
            np.testing.assert_allclose(point.prox[index], expected, atol=2e-5)
        np.testing.assert_allclose(point.dual, 1.5 * (v - point.prox), atol=1e-12)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(list(LOSSES)))
    def test_duality(self, seed: int, kind: str) -> None:
        _, loss, slack, groups = self.draw(seed, kind)
        power = POWERS[kind]
        expected = sum(
            2.0 * weights @ np.sort(np.maximum(slack[index], 0.0)) ** power
            for index, weights in groups
        )
        assert loss.value(slack) == pytest.approx(expected, rel=1e-12)
        point = ProxPoint(slack.size)
        loss.prox(slack, 0.7, point)
        for dual, where in ((loss.subgradient(slack), slack), (point.dual, point.prox)):
            # In the dual set of every group, and Fenchel-Young holds with equality.
            for index, weights in groups if power == 1 else []:
                totals = np.cumsum(np.sort(dual[index])[::-1])
                bounds = np.cumsum(2.0 * weights[::-1])
                assert np.all(totals <= bounds * (1.0 + 1e-12) + 1e-12)
            assert loss.excess(np.maximum(dual, 0.0)) <= 1.0 + 1e-12
            young = loss.value(where) + loss.conjugate(dual)
            assert dual @ where == pytest.approx(young, rel=1e-9, abs=1e-9)
        loss.prox(slack, 0.7, point)
        assert loss.conjugate_at(point) == pytest.approx(loss.conjugate(point.dual), abs=1e-9)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_excess_is_the_worst_of_the_groups(self, seed: int) -> None:
        costs, loss, slack, groups = self.draw(seed, "hinge")
        dual = np.abs(slack)
        worst = max(RankCosts(i.size, w, None, 2.0).excess(dual[i]) for i, w in groups)
        assert loss.excess(dual) == costs.excess(dual) == pytest.approx(worst, rel=1e-12)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(list(LOSSES)))
    def test_rounding_covers_errors_of_the_slacks(self, seed: int, kind: str) -> None:
        _, loss, slack, _ = self.draw(seed, kind)
        rng = np.random.default_rng(seed)
        error = 0.1 * rng.random(slack.size)
        value = loss.value(slack)
        allowed = loss.rounding(slack, error, value)
        for _ in range(5):
            moved = slack + rng.uniform(-1.0, 1.0, size=slack.size) * error
            assert abs(loss.value(moved) - value) <= allowed

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(list(LOSSES)))
    def test_best_constant(self, seed: int, kind: str) -> None:
        X, y = draw_samples(seed)
        family, alpha = FAMILIES[seed % len(FAMILIES)]
        costs = assign_costs(y, family, alpha, 1.0, ranks="class")
        problem = OWAProblem(y, costs, features=X, loss=kind)
        _, value = problem.constant_classifier
        loss = problem.ranked_loss()
        trials = [loss.value(1.0 - y * b) for b in np.linspace(-1.5, 1.5, 301)]
        best = best_intercept(np.zeros(y.size), y, costs, loss=loss)
        assert value == pytest.approx(loss.value(1.0 - y * best), rel=1e-9)
        assert value <= min(trials) + 1e-12

    def test_any_groups(self) -> None:
        """Groups that both classes share have parabolas of their own."""
        rng = np.random.default_rng(0)
        y = np.where(rng.random(30) < 0.3, 1.0, -1.0)
        groups = np.split(rng.permutation(30), [4, 17])
        parts = [
            (np.sort(g), RankCosts(g.size, "basic", 0.3, 1.0 + k)) for k, g in enumerate(groups)
        ]
        costs = GroupedCosts(parts, 1.0)
        X = rng.normal(size=(30, 2))
        for kind, power in POWERS.items():
            problem = OWAProblem(y, costs, features=X, loss=kind)
            _, value = problem.constant_classifier
            loss = problem.ranked_loss()
            best = best_intercept(np.zeros(30), y, costs, loss=loss)
            assert value == pytest.approx(loss.value(1.0 - y * best), rel=1e-9)
            oracle = cvxpy_owa_svm(X, y, [(i, p.ascending) for i, p in parts], 1.0, power=power)
            assert solve(problem).objective == pytest.approx(oracle.objective, rel=1e-6)


class TestGroupedCosts:
    def costs(self) -> GroupedCosts:
        y = np.array([-1.0, 1.0, -1.0, -1.0, -1.0, 1.0])
        found = assign_costs(y, "superquantile", 0.5, 3.0, ranks="class")
        assert isinstance(found, GroupedCosts)
        return found

    def test_orders(self) -> None:
        costs = self.costs()
        assert (costs.n_samples, costs.C, costs.total, costs.convex) == (6, 3.0, 18.0, True)
        order = np.array([5, 0, 3, 1, 2, 4])
        np.testing.assert_allclose(costs.in_order(order), [0, 0, 0, 6, 6, 6])
        np.testing.assert_allclose(costs.largest_first(order[::-1]), [6, 6, 6, 0, 0, 0])
        np.testing.assert_allclose(costs.largest_first(np.array([3, 5])), [6, 6])
        assert costs.largest_sum(1) >= 6.0
        assert costs.largest_sum(6) == pytest.approx(18.0)
        with pytest.raises(ValueError, match="within groups"):
            costs.by_rank()

    def test_parts(self) -> None:
        assert [index.tolist() for index, _ in parts_of(self.costs())] == [[0, 2, 3, 4], [1, 5]]
        own = OwnCosts(np.array([1.0, 2.0]))
        [(index, part)] = parts_of(own)
        assert index.tolist() == [0, 1]
        assert part is own

    def test_splits(self) -> None:
        """The rises and the rest of each group, whatever the order of the groups."""
        y = np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
        mass = np.array([2.0, 3.0, 1.0, 0.5, 1.5])
        for own in (None, mass):
            costs = assign_costs(y, "olympic", 0.4, 1.0, own, ranks="class")
            order = np.array([4, 2, 1, 0, 3])
            paid, got = costs.falling_in_order(order)
            assert paid.min() >= 0.0 and got.min() >= 0.0
            rising = costs.rising()
            assert isinstance(rising, GroupedCosts) and rising.convex
            np.testing.assert_allclose(
                rising.in_order(order) + paid - got, costs.in_order(order), atol=1e-12
            )
            with pytest.raises(ValueError, match="within groups"):
                costs.profile()
        assert isinstance(make_loss("hinge", costs), GroupedRankedLoss)


class TestInteriorPoints:
    """Where Newton steps are slow: every group has levels of its own."""

    @settings(deadline=None, max_examples=40)
    @given(st.integers(0, 10**6), st.booleans(), st.sampled_from([1e-1, 1e-3, 1e-6]))
    def test_levels_stay_below_the_costs(self, seed: int, weighted: bool, share: float) -> None:
        rng = np.random.default_rng(seed)
        n_samples = int(rng.integers(2, 150))
        y = np.where(rng.random(n_samples) < 0.3, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        mass = rng.uniform(0.2, 4.0, n_samples) if weighted else None
        costs = assign_costs(y, "basic", 0.2, 2.0, mass, ranks="class")
        slack = rng.normal(size=n_samples)
        value = make_loss("hinge", costs).value(slack)
        stairs = choose_groups(costs, slack, share * value, n_samples)
        lost = 0.0
        for (group, part), (ranked, first, last) in zip(
            parts_of(costs), stairs.parts, strict=True
        ):
            np.testing.assert_array_equal(ranked, group)
            order = np.argsort(-slack[group])
            totals = np.cumsum(np.ones(group.size) if mass is None else mass[group][order])
            levels = stairs.reach[first:last], stairs.jump[first:last]
            reached = np.minimum(totals[:, None], levels[0]) @ levels[1]
            allowed = np.cumsum(part.largest_first(order))
            assert np.all(reached <= allowed * (1 + 1e-12) + 1e-12)
            ranked = np.maximum(slack[group][order], 0.0)
            lost += np.diff(allowed - reached, prepend=0.0) @ ranked
        assert lost == pytest.approx(stairs.loss, rel=1e-6, abs=1e-10 * (1 + value))
        assert stairs.loss <= share * value + 1e-12 * (1 + value)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("n_positive", [1, 20])
    @pytest.mark.parametrize("kernel", [False, True])
    def test_rescue(
        self, weighted: bool, n_positive: int, kernel: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(0)
        y = np.repeat([1.0, -1.0], [n_positive, 60])
        X = rng.standard_t(3, size=(y.size, 3)) + 0.5 * y[:, None]
        mass = rng.uniform(0.5, 2.0, size=y.size) if weighted else None
        costs = assign_costs(y, "basic", 0.2, 10.0, mass, ranks="class")
        data = {"gram": gaussian(X, 0.3)} if kernel else {"features": X}
        problem = OWAProblem(y, costs, **data)
        expected = newton.solve(problem, Settings(), Tuning(rescue_steps=10**9))
        called = []

        def note(*arguments: Any) -> Any:
            called.append(minimise(*arguments))
            return called[-1]

        monkeypatch.setattr(interior, "minimise", note)
        at_once = Tuning(rescue_share=0.0, more_patience=0.0)
        found = newton.solve(problem, Settings(), at_once)
        # Few levels come first, and need not be solved as well as the others, which begin there
        # and meet the limits of their levels as well as their gap.
        assert called and called[-1].gap <= 1e-6
        for point, error in ((called[0], 1e-4), (called[-1], 1e-6)):
            dual = np.zeros(y.size)
            dual[point.meeting.order] = np.maximum(point.dual, 0.0)
            assert problem.ranked_loss().excess(dual) <= 1 + error
        assert found.status == "optimal"
        assert found.objective == pytest.approx(expected.objective, rel=2e-6)


class TestWeightsThatFall:
    """Local solutions, and bounds that hold for the global optimum."""

    @pytest.mark.parametrize("seed", range(12))
    def test_between_bound_and_objective_of_enumeration(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 2))
        y = np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0 if seed % 3 else 1.0])
        family, alpha = [("quadratic", 0.8), ("trimmed", 0.4), ("trigonometric", 0.9)][seed % 3]
        C = 10.0 ** rng.uniform(-1, 1)
        oracle = enumerate_owa_svm(X, y, by_class(y, family, alpha), C)
        parameters = {"C": C, "weights": family, "alpha": alpha, "ranks": "class"}
        for model in (LinearOWASVC(**parameters), OWASVC(kernel="linear", **parameters)):
            model.fit(X, y)
            assert model.status_ in ("local", "optimal")
            assert model.lower_bound_ <= oracle.objective + 1e-9
            assert model.objective_ >= oracle.lower_bound - 1e-7

    @pytest.mark.parametrize("weights", ["quadratic", "trimmed"])
    def test_descent_ends_where_ranks_repeat(self, weights: str) -> None:
        """The classifier minimises the weighted sum that its own ranks ask for."""
        X, y = make_moons(60, noise=0.3, random_state=0)
        X, y = X[y.argsort()][:45], np.sort(y)[:45]
        alpha = {"quadratic": 0.8, "trimmed": 0.2}[weights]
        model = LinearOWASVC(weights=weights, alpha=alpha, ranks="class").fit(X, y)
        signs = np.where(y == 1, 1.0, -1.0)
        deviations = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
        loss = sum(
            own @ np.sort(deviations[y == label])
            for own, label in zip(model.owa_weights_, (0, 1), strict=True)
        )
        assert model.objective_ == pytest.approx(0.5 * (model.coef_**2).sum() + loss, rel=1e-9)
        two_step = TwoStepOWASVC(kernel="linear", weights=weights, alpha=alpha, ranks="class").fit(
            X, y
        )
        assert model.objective_ <= two_step.objective_ * (1.0 + 1e-6)

    def test_sample_weights_are_copies(self) -> None:
        X, y = make_moons(30, noise=0.3, random_state=1)
        counts = np.random.default_rng(0).integers(1, 4, size=30)
        rows = np.repeat(np.arange(30), counts)
        parameters = {"weights": "quadratic", "alpha": 0.8, "ranks": "class"}
        weighted = LinearOWASVC(**parameters).fit(X, y, sample_weight=counts)
        copied = LinearOWASVC(**parameters).fit(X[rows], y[rows])
        assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-4)
        assert weighted.lower_bound_ == pytest.approx(copied.lower_bound_, rel=1e-4)

    def test_branch_and_bound_is_refused(self) -> None:
        X, y = make_moons(20, noise=0.3, random_state=0)
        with pytest.raises(ValueError, match=r"'branch-and-bound'.*ranks='class'.*'dca'"):
            OWASVC(weights="trimmed", ranks="class", solver="branch-and-bound").fit(X, y)

    def test_no_class_is_trimmed_away(self) -> None:
        """Ten of fifty samples are a class: 20 % of all, or of each class."""
        rng = np.random.default_rng(0)
        X = np.vstack([rng.normal(size=(40, 2)), rng.normal(3.0, 0.5, size=(10, 2))])
        y = np.repeat([0, 1], [40, 10])
        within = OWASVC(weights="trimmed", alpha=0.2, ranks="class").fit(X, y)
        assert np.mean(within.predict(X[40:]) == 1) >= 0.8
        kept = [np.count_nonzero(weights) for weights in within.owa_weights_]
        assert kept == [32, 8]


def draw_overlapping(n_samples: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 4))
    noise = 0.5 * rng.normal(size=n_samples)
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + noise > 2.0, 1.0, -1.0)


@pytest.mark.parametrize("kind", ["on demand", "device"])
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_values_elsewhere(kind: str, loss: str) -> None:
    X, y = draw_overlapping(300)
    costs = assign_costs(y, "basic", 0.4, 5.0, ranks="class")
    kernel = Kernel("rbf", gamma=0.25)
    if kind == "device":
        samples: Samples = DeviceSamples.of_gaussian(X, 0.25)
    else:
        samples = prepare(X, kernel, cache_size=0.2)
        assert isinstance(samples, OnDemandSamples)
    found = solve(OWAProblem(y, costs, samples=samples, loss=loss), tol=1e-7)
    whole = OWAProblem(y, costs, samples=prepare(X, kernel), loss=loss)
    expected = solve(whole, tol=1e-7)
    assert found.status == expected.status == "optimal"
    assert found.objective == pytest.approx(expected.objective, rel=2e-7)


def test_partitions_of_a_cluster() -> None:
    da = pytest.importorskip("dask.array")
    X, y = draw_overlapping(400)
    parameters = {"weights": "superquantile", "alpha": 0.8, "ranks": "class"}
    model = LinearOWASVC(**parameters).fit(
        da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=100)
    )
    expected = LinearOWASVC(**parameters).fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    assert [own.size for own in model.owa_weights_] == [np.sum(y < 0), np.sum(y > 0)]


def test_coarse_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of each group, for as many rows as make it pay."""
    from owasvm.solvers.newton import coarse

    monkeypatch.setattr(coarse, "_WORTH_A_SHARE", 500)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=1000) > 0.5, 1.0, -1.0)
    model = LinearOWASVC(weights="basic", alpha=0.5, ranks="class").fit(X, y)
    assert model.status_ == "optimal"
    kernel = OWASVC(kernel="linear", weights="basic", alpha=0.5, ranks="class").fit(X, y)
    assert model.objective_ == pytest.approx(kernel.objective_, rel=2e-6)
