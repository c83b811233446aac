"""The ranked losses against cvxpy, isotonic regression, rational arithmetic and each other."""

from dataclasses import dataclass
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from owasvm.costs import OwnCosts, PlainCosts, RankCosts
from owasvm.losses import (
    LOSSES,
    GroupedLoss,
    OffsetHinge,
    ProximalLoss,
    ProxPoint,
    RankedHinge,
    RankedLoss,
    RankedSquaredHinge,
)
from tests import oracles, strategies

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

many = settings(max_examples=80)
some = settings(max_examples=30)
few = settings(max_examples=10)

POWERS = {RankedHinge: 1, RankedSquaredHinge: 2}
both = pytest.mark.parametrize("kind", POWERS)


@dataclass
class Case:
    """Costs with or without sample weights, and the same written out as copies."""

    costs: RankCosts
    copies: FloatArray
    counts: IntArray

    @property
    def n_samples(self) -> int:
        return self.counts.size

    def write_out(self, vector: FloatArray) -> FloatArray:
        return np.repeat(vector, self.counts)

    def value(self, slack: FloatArray, power: int) -> float:
        """The loss by its definition."""
        return oracles.owa_value(np.maximum(self.write_out(slack), 0.0) ** power, self.copies)

    def __repr__(self) -> str:
        return f"Case(counts={self.counts.tolist()}, copies={self.copies.tolist()})"


@st.composite
def cases(draw: st.DrawFn, max_samples: int = 12, *, extreme: bool = True) -> Case:
    n_samples = draw(st.integers(1, max_samples))
    family = draw(st.sampled_from(sorted(strategies.CONVEX_FAMILIES)))
    alpha = draw(strategies.CONVEX_FAMILIES[family])
    C = draw(strategies.scales() if extreme else st.sampled_from([0.2, 1.0, 3.0]))
    if draw(st.booleans()):
        costs = RankCosts(n_samples, family, alpha, C)
        return Case(costs, costs.by_rank(), np.ones(n_samples, dtype=np.int64))
    counts = draw(strategies.sample_counts(n_samples))
    copies = RankCosts(int(counts.sum()), family, alpha, C).by_rank()
    return Case(RankCosts(n_samples, family, alpha, C, counts), copies, counts)


def take_prox(loss: ProximalLoss, v: FloatArray, penalty: float) -> ProxPoint:
    point = ProxPoint(v.size)
    loss.prox(v, penalty, point)
    return point


def draw_vector(data: st.DataObject, case: Case, *, extreme: bool = True) -> FloatArray:
    return data.draw(strategies.real_vectors(case.n_samples, extreme=extreme))


def isotonic_prox(
    v: FloatArray, copies: FloatArray, counts: IntArray, penalty: float
) -> FloatArray:
    """Prox of the squared hinge on the copies: an isotonic regression of the positive ones."""
    order = np.argsort(v, kind="stable")
    point = np.repeat(v[order], counts[order])
    positive = point > 0.0
    fitted = point.copy()
    if positive.any():
        masses = penalty + 2.0 * copies[positive]
        targets = penalty * point[positive] / masses
        fitted[positive] = isotonic_regression(targets, weights=masses).x
    x = np.empty(v.size)
    x[order] = fitted[np.cumsum(counts[order]) - 1]
    return x


def jacobian_of(loss: ProximalLoss, point: ProxPoint, penalty: float) -> FloatArray:
    """The Jacobian of the dual that `block` and `shrink` describe."""
    n_samples = point.block.size
    mass = np.ones(n_samples) if loss.mass is None else loss.mass
    jacobian = np.diag(np.where(point.block == 0, penalty * mass, 0.0))
    for label in range(1, point.n_blocks + 1):
        q = np.where(point.block == label, np.sqrt(mass), 0.0)
        t = 1.0 - (1.0 - point.shrink[label]) ** 2
        jacobian += (
            penalty
            * np.diag(q)
            @ (np.eye(n_samples) - t * np.outer(q, q) / (q @ q))
            @ (np.diag(q))
        )
    return jacobian


def test_losses_by_name() -> None:
    assert LOSSES == {"hinge": RankedHinge, "squared_hinge": RankedSquaredHinge}
    assert not RankedHinge.is_curved and RankedSquaredHinge.is_curved


class TestValue:
    @both
    @many
    @given(data=st.data())
    def test_definition(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases())
        slack = draw_vector(data, case)
        before = slack.copy()
        found = kind(case.costs).value(slack)
        assert found == pytest.approx(case.value(slack, POWERS[kind]), rel=1e-12)
        np.testing.assert_array_equal(slack, before)

    @both
    def test_mean_cost_is_that_of_a_unit_of_weight(self, kind: type[RankedLoss]) -> None:
        assert kind(RankCosts(4, "basic", 0.5, 3.0)).mean_cost == pytest.approx(3.0)
        weighted = kind(RankCosts(2, "basic", 0.5, 3.0, [1.5, 4.0]))
        assert weighted.mean_cost == pytest.approx(3.0)
        np.testing.assert_array_equal(weighted.mass, [1.5, 4.0])

    @both
    def test_no_positive_slack_costs_nothing(self, kind: type[RankedLoss]) -> None:
        loss = kind(RankCosts(3))
        assert loss.value(np.array([0.0, -1.0, -0.0])) == 0.0


class TestProx:
    @both
    @few
    @given(data=st.data())
    def test_against_dotsort(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases(max_samples=6, extreme=False))
        v = draw_vector(data, case, extreme=False)
        penalty = data.draw(st.sampled_from([0.5, 1.0, 4.0]))
        found = take_prox(kind(case.costs), v, penalty).prox
        wide = case.write_out(v)
        power = POWERS[kind]
        theirs = oracles.dotsort_prox(wide, case.copies, 1.0 / penalty, power=power)
        np.testing.assert_allclose(case.write_out(found), theirs, rtol=0, atol=1e-4)

        def objective(x: FloatArray) -> float:
            loss = oracles.owa_value(np.maximum(x, 0.0) ** power, case.copies)
            return penalty * float((x - wide) @ (x - wide)) / 2 + loss

        assert objective(case.write_out(found)) <= objective(theirs) + 1e-13

    @many
    @given(cases(), st.data(), st.floats(1e-3, 1e3))
    def test_squared_against_isotonic_regression(
        self, case: Case, data: st.DataObject, penalty: float
    ) -> None:
        v = draw_vector(data, case)
        expected = isotonic_prox(v, case.copies, case.counts, penalty)
        found = take_prox(RankedSquaredHinge(case.costs), v, penalty).prox
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * np.abs(v).max())

    @many
    @given(cases(), st.data(), st.floats(1e-3, 1e3))
    def test_hinge_against_rational_arithmetic(
        self, case: Case, data: st.DataObject, penalty: float
    ) -> None:
        v = draw_vector(data, case)
        expected, dual = oracles.exact_prox(v, case.copies / penalty, case.counts.tolist())
        point = take_prox(RankedHinge(case.costs), v, penalty)
        size = np.abs(v).max() + case.copies.max() / penalty
        np.testing.assert_allclose(point.prox, expected, rtol=0, atol=1e-14 * size)
        np.testing.assert_allclose(point.dual, penalty * dual, rtol=0, atol=1e-13 * penalty * size)

    @both
    @many
    @given(data=st.data())
    def test_dual_is_a_subgradient_at_the_prox(
        self, kind: type[RankedLoss], data: st.DataObject
    ) -> None:
        case = data.draw(cases())
        v = draw_vector(data, case)
        penalty = data.draw(st.floats(1e-3, 1e3))
        loss = kind(case.costs)
        before = v.copy()
        point = take_prox(loss, v, penalty)
        np.testing.assert_array_equal(v, before)
        x, dual = point.prox, point.dual
        # What is optimal: the pull of the squares is a subgradient of the loss.
        pull = penalty * case.counts * (v - x)
        size = penalty * np.abs(v).max() * case.counts.max()
        np.testing.assert_allclose(dual, pull, rtol=0, atol=1e-12 * size)
        assert dual.min() >= 0.0
        scale = loss.value(np.abs(v)) + np.abs(dual) @ np.abs(v)
        z = v * data.draw(st.sampled_from([0.0, 0.5, 1.5])) + draw_vector(data, case)
        wide = scale + loss.value(np.abs(z)) + np.abs(dual) @ np.abs(z)
        assert loss.value(z) >= loss.value(x) + dual @ (z - x) - 1e-12 * wide
        # The same as an equation, for which the conjugate must be right, too.
        assert abs(loss.value(x) + loss.conjugate(dual) - dual @ x) <= 1e-12 * scale
        assert loss.excess(dual) <= 1.0 + 1e-12

    @both
    @many
    @given(data=st.data())
    def test_blocks_share_one_value(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases(max_samples=60))
        v = draw_vector(data, case)
        point = take_prox(kind(case.costs), v, data.draw(st.floats(1e-3, 1e3)))
        assert np.all(point.block[v <= 0.0] < 0)
        assert np.all(point.dual[v <= 0.0] == 0.0)
        np.testing.assert_array_equal(point.prox[v <= 0.0], v[v <= 0.0])
        numbers = set(point.block[point.block > 0].tolist())
        assert numbers == set(range(1, point.n_blocks + 1))
        for label in numbers:
            assert np.ptp(point.prox[point.block == label]) == 0.0
        shares = point.shrink[1 : point.n_blocks + 1]
        assert np.all((shares >= 0.0) & (shares <= 1.0))

    @both
    @some
    @given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.1, 1.0, 20.0]))
    def test_jacobian_against_differences(
        self, kind: type[RankedLoss], seed: int, weighted: bool, penalty: float
    ) -> None:
        rng = np.random.default_rng(seed)
        n_samples = int(rng.integers(2, 20))
        mass = rng.uniform(0.2, 3.0, size=n_samples) if weighted else None
        family, alpha = [("basic", 0.4), ("superquantile", 0.4), ("uniform", 1.0)][seed % 3]
        loss = kind(RankCosts(n_samples, family, alpha, 1.0, mass))
        v = rng.normal(0.7, 1.0, size=n_samples)
        point = take_prox(loss, v, penalty)
        direction = 1e-6 * rng.normal(size=n_samples)
        ahead, behind = (take_prox(loss, v + way * direction, penalty) for way in (1.0, -1.0))
        # Random points lie 1e-6 away from a kink with a probability of about 1e-5.
        np.testing.assert_array_equal(ahead.block, behind.block)
        expected = jacobian_of(loss, point, penalty) @ direction
        differences = (ahead.dual - behind.dual) / 2
        np.testing.assert_allclose(differences, expected, rtol=0, atol=1e-13 * max(1.0, penalty))

    def test_ranks_without_cost_stay_where_they_are(self) -> None:
        loss = RankedSquaredHinge(RankCosts(4, "superquantile", 0.5, C=0.5))
        point = take_prox(loss, np.array([0.5, 4.0, 3.0, -1.0]), 1.0)
        # Targets v / (1 + 2) of the two that pay: 4/3 and 1, no tie with 0.5.
        np.testing.assert_allclose(point.prox, [0.5, 4 / 3, 1.0, -1.0])
        np.testing.assert_array_equal(point.dual[[0, 3]], 0.0)
        np.testing.assert_array_equal(point.block, [-1, 1, 2, -2])
        # One that pays nothing is met from above by one that pays: the two are pooled.
        point = take_prox(loss, np.array([2.0, 4.0, 3.0, -1.0]), 1.0)
        np.testing.assert_array_equal(point.block, [2, 1, 2, -2])
        np.testing.assert_allclose(point.prox, [5 / 4, 4 / 3, 5 / 4, -1.0])
        np.testing.assert_allclose(point.dual, [3 / 4, 8 / 3, 7 / 4, 0.0])

    @pytest.mark.parametrize("exponent", [-400, -30, 30, 400])
    def test_scales_of_the_point_and_of_the_costs(self, exponent: int) -> None:
        rng = np.random.default_rng(0)
        v = rng.normal(0.5, 1.0, size=80)
        scale = 2.0**exponent
        for sample_weight in (None, rng.integers(1, 4, size=80)):
            costs, scaled = (
                RankCosts(80, "exponential", 2.0, C, sample_weight) for C in (1.0, scale)
            )
            plain = take_prox(RankedSquaredHinge(costs), v, 2.0)
            # Of degree 2, so its prox is homogeneous: powers of two change no digit.
            wide = take_prox(RankedSquaredHinge(costs), scale * v, 2.0)
            np.testing.assert_array_equal(wide.prox, scale * plain.prox)
            np.testing.assert_array_equal(wide.dual, scale * plain.dual)
            for kind in POWERS:
                plain = take_prox(kind(costs), v, 2.0)
                dear = take_prox(kind(scaled), v, 2.0 * scale)
                np.testing.assert_allclose(dear.prox, plain.prox, rtol=0, atol=1e-14)
                np.testing.assert_allclose(dear.dual, scale * plain.dual, rtol=1e-12)

    def test_dual_keeps_its_digits_where_little_is_charged(self) -> None:
        # v - x would be 1e-12 with an error of 1e-16 * 1e6: 2 costs x instead.
        loss = RankedSquaredHinge(PlainCosts(np.array([1e-18, 2e-18])))
        point = take_prox(loss, np.array([1e6, 2e6]), 1.0)
        np.testing.assert_allclose(point.dual, [2e-12, 8e-12], rtol=1e-15)

    def test_many_samples(self) -> None:
        rng = np.random.default_rng(1)
        n_samples = 100_000
        v = rng.normal(0.5, 2.0, size=n_samples)
        v[::7] = 1.0
        loss = RankedSquaredHinge(RankCosts(n_samples, "basic", 0.6))
        point = take_prox(loss, v, 1.0)
        np.testing.assert_allclose(point.prox + point.dual, v, atol=1e-12)
        young = loss.value(point.prox) + loss.conjugate(point.dual)
        assert point.dual @ point.prox == pytest.approx(young, rel=1e-11)


class TestProjection:
    @both
    @many
    @given(data=st.data())
    def test_no_point_of_the_dual_set_is_nearer(
        self, kind: type[RankedLoss], data: st.DataObject
    ) -> None:
        case = data.draw(cases())
        loss = kind(case.costs)
        v = draw_vector(data, case)
        point = ProxPoint(v.size)
        loss.project(v, point)
        assert point.dual.min() >= 0.0
        assert loss.excess(point.dual) <= 1.0 + 1e-12
        rest = v - point.dual / case.counts
        size = np.abs(v).max() + case.copies.max()
        if kind is RankedSquaredHinge:
            np.testing.assert_array_equal(point.dual, case.counts * np.maximum(v, 0.0))
        else:
            # The largest rest'b over the dual set is the loss at the rest: no b beats the dual.
            reach = size * case.copies.sum()
            assert loss.value(rest) <= rest @ point.dual + 1e-12 * reach
        assert np.all(point.dual[v <= 0.0] == 0.0)


class TestConjugate:
    @few
    @given(st.data())
    def test_squared_against_cvxpy(self, data: st.DataObject) -> None:
        case = data.draw(cases(max_samples=5, extreme=False))
        dual = np.maximum(draw_vector(data, case, extreme=False), 0.0)
        u = cp.Variable(int(case.counts.sum()))
        parts = case.write_out(dual / case.counts)
        supremum = cp.Maximize(parts @ u - cp.dotsort(cp.square(cp.pos(u)), case.copies))
        cp.Problem(supremum).solve(solver=cp.CLARABEL)
        found = RankedSquaredHinge(case.costs).conjugate(dual)
        assert found == pytest.approx(supremum.value, rel=1e-6, abs=1e-7)

    @many
    @given(cases(), st.data())
    def test_squared_against_isotonic_regression(self, case: Case, data: st.DataObject) -> None:
        dual = np.maximum(draw_vector(data, case), 0.0)
        expected = oracles.squared_conjugate(case.write_out(dual / case.counts), case.copies)
        found = RankedSquaredHinge(case.costs).conjugate(dual)
        assert found == pytest.approx(expected, rel=1e-11)

    @both
    @many
    @given(data=st.data())
    def test_fenchel_young(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases())
        loss = kind(case.costs)
        slack = draw_vector(data, case)
        dual = np.maximum(draw_vector(data, case), 0.0)
        dual = dual / max(1.0, loss.excess(dual))
        value, conjugate, product = loss.value(slack), loss.conjugate(dual), float(dual @ slack)
        size = value + conjugate + float(dual @ np.abs(slack))
        assert value + conjugate >= product - 1e-12 * size
        dual = loss.subgradient(slack)
        conjugate = loss.conjugate(dual)
        assert value + conjugate == pytest.approx(float(dual @ slack), rel=1e-11)
        assert loss.excess(dual) <= 1.0 + 1e-12

    @both
    @many
    @given(data=st.data())
    def test_never_grows_when_entries_are_lowered(
        self, kind: type[RankedLoss], data: st.DataObject
    ) -> None:
        case = data.draw(cases())
        loss = kind(case.costs)
        dual = np.maximum(draw_vector(data, case), 0.0)
        shares = np.clip(data.draw(strategies.real_vectors(dual.size, extreme=False)), 0.0, 1.0)
        conjugate = loss.conjugate(dual)
        assert loss.conjugate(shares * dual) <= conjugate * (1.0 + 1e-13)
        lowered = dual.copy()
        lowered[np.argmax(dual)] = 0.0
        assert loss.conjugate(lowered) <= conjugate * (1.0 + 1e-13)

    @both
    @many
    @given(data=st.data())
    def test_at_a_prox_point(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases())
        loss = kind(case.costs)
        v, penalty = draw_vector(data, case), data.draw(st.floats(1e-3, 1e3))
        point = take_prox(loss, v, penalty)
        scale = loss.value(np.abs(v)) + point.dual @ np.abs(v)
        expected = loss.conjugate(point.dual)
        assert loss.conjugate_at(point) == pytest.approx(expected, rel=1e-11, abs=1e-12 * scale)

    def test_ranks_without_cost(self) -> None:
        loss = RankedSquaredHinge(RankCosts(4, "superquantile", 0.5, C=1.0))
        # Costs 0, 0, 2, 2: all four share the costs of two.
        assert loss.conjugate(np.ones(4)) == pytest.approx(4.0**2 / (4 * 4.0))
        assert loss.conjugate(np.array([0.0, 0.0, 3.0, 0.0])) == pytest.approx(9.0 / 8.0)
        assert loss.conjugate(np.zeros(4)) == 0.0
        assert RankedHinge(RankCosts(4)).conjugate(np.ones(4)) == 0.0

    def test_no_cost_at_all_allows_no_dual(self) -> None:
        loss = RankedSquaredHinge(PlainCosts(np.zeros(3)))
        assert loss.conjugate(np.zeros(3)) == 0.0
        assert loss.conjugate(np.array([0.0, 1.0, 0.0])) == np.inf

    @pytest.mark.parametrize("exponent", [-400, 400])
    def test_scales(self, exponent: int) -> None:
        dual = np.random.default_rng(2).exponential(size=30)
        scale = 2.0**exponent
        plain = RankedSquaredHinge(RankCosts(30, "basic", 0.5))
        dear = RankedSquaredHinge(RankCosts(30, "basic", 0.5, C=scale))
        assert plain.conjugate(scale * dual) == scale**2 * plain.conjugate(dual)
        assert dear.conjugate(scale * dual) == pytest.approx(scale * plain.conjugate(dual))


def slope(
    loss: RankedLoss, slack: FloatArray, growing: NDArray[np.bool_], resolution: float = 0.0
) -> tuple[float, float]:
    """Value and derivative when some slacks grow and the others fall."""
    y = np.where(growing, -1.0, 1.0)
    value, _, right = loss.slopes(y * (1.0 - slack), y, 0.0, resolution)
    # Seen from the other side the same slacks grow to the left.
    mirrored, left, _ = loss.slopes(-y * (1.0 - slack), -y, 0.0, resolution)
    assert mirrored == pytest.approx(value, abs=10.0 * resolution + 1e-12)
    assert -left == pytest.approx(right)
    return value, right


class TestSlope:
    @both
    @many
    @given(data=st.data())
    def test_one_sided_derivative(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases(extreme=False))
        rng = data.draw(st.integers(0, 2**31).map(np.random.default_rng))
        # Whole numbers tie often, and are often 0.
        slack = rng.integers(-2, 3, size=case.n_samples).astype(float)
        growing = rng.random(case.n_samples) < 0.5
        loss = kind(case.costs)
        value, derivative = slope(loss, slack, growing)
        assert value == pytest.approx(loss.value(slack), rel=1e-14)
        step = 1e-5
        towards = np.where(growing, 1.0, -1.0)
        difference = (loss.value(slack + step * towards) - value) / step
        curvature = case.copies.sum() * step if loss.is_curved else 0.0
        assert difference == pytest.approx(derivative, abs=1e-8 * max(1.0, value) + curvature)

    @both
    def test_slacks_within_the_resolution_count_as_zero(self, kind: type[RankedLoss]) -> None:
        loss = kind(PlainCosts(np.array([1.0, 2.0, 3.0])))
        slack = np.array([-1e-9, 1e-9, -1e-7])
        growing = np.array([True, False, True])
        # The hinge rises from there with the largest cost; the squared hinge is flat at 0.
        assert slope(loss, slack, growing, 1e-8)[1] == (3.0 if kind is RankedHinge else 0.0)

    def test_growing_slacks_rank_above_those_they_tie_with(self) -> None:
        costs = PlainCosts(np.array([1.0, 2.0, 4.0]))
        slack, growing = np.full(3, 2.0), np.array([False, True, False])
        assert slope(RankedHinge(costs), slack, growing)[1] == 4.0 - 2.0 - 1.0
        assert slope(RankedSquaredHinge(costs), slack, growing)[1] == 16.0 - 8.0 - 4.0


class TestRounding:
    @both
    @many
    @given(data=st.data())
    def test_bounds_every_change(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases())
        loss = kind(case.costs)
        slack = draw_vector(data, case)
        size = np.abs(slack).max() * data.draw(st.sampled_from([1e-12, 1e-3, 1.0]))
        rng = data.draw(st.integers(0, 2**31).map(np.random.default_rng))
        error = size * rng.random(slack.size)
        value = loss.value(slack)
        bound = loss.rounding(slack, error, value)
        for change in (error, -error, error * rng.uniform(-1, 1, size=slack.size)):
            moved = loss.value(slack + change)
            assert abs(moved - value) <= bound * (1 + 1e-9) + 1e-14 * max(moved, value)

    @pytest.mark.parametrize("family", ["trimmed", "olympic", "trigonometric"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_bounds_every_change_of_falling_costs(self, family: str, weighted: bool) -> None:
        rng = np.random.default_rng(3)
        for _ in range(50):
            slack = rng.normal(0.3, 1.0, size=10)
            mass = rng.uniform(0.5, 2.0, size=10) if weighted else None
            loss = RankedHinge(RankCosts(10, family, 0.4, 2.0, mass))
            error = 10.0 ** rng.uniform(-8, 0) * rng.random(10)
            bound = loss.rounding(slack, error, loss.value(slack))
            changed = loss.value(slack + error * rng.choice([-1.0, 1.0], size=10))
            assert abs(changed - loss.value(slack)) <= bound + 1e-15

    @both
    @some
    @given(data=st.data())
    def test_covers_the_evaluation_itself(
        self, kind: type[RankedLoss], data: st.DataObject
    ) -> None:
        weights = data.draw(strategies.convex_weights(data.draw(st.integers(1, 40))))
        slack = data.draw(strategies.real_vectors(weights.size))
        loss = kind(PlainCosts(weights))
        ranked = sorted(Fraction(float(value)) for value in np.maximum(slack, 0.0))
        # The costs are those of the object: falls by a unit in the last place are gone.
        costs = PlainCosts(weights).by_rank()
        exact = sum(
            Fraction(float(c)) * u ** POWERS[kind] for c, u in zip(costs, ranked, strict=True)
        )
        value = loss.value(slack)
        off = abs(Fraction(value) - exact)
        assert off <= Fraction(loss.rounding(slack, np.zeros(slack.size), value))

    @both
    def test_nothing_near_costs_nothing(self, kind: type[RankedLoss]) -> None:
        loss = kind(RankCosts(2))
        assert loss.rounding(np.array([-1.0, -2.0]), np.full(2, 0.5), 0.0) == 0.0


class TestConstantClassifier:
    @both
    @many
    @given(data=st.data())
    def test_one_of_the_intercepts_is_best(
        self, kind: type[RankedLoss], data: st.DataObject
    ) -> None:
        case = data.draw(cases(extreme=False))
        rng = data.draw(st.integers(0, 2**31).map(np.random.default_rng))
        y = rng.choice([-1.0, 1.0], size=case.n_samples)
        loss = kind(case.costs)
        best = min(loss.value(1.0 - y * b) for b in loss.constant_intercepts(y))
        scanned = [loss.value(1.0 - y * b) for b in np.linspace(-1.2, 1.2, 241)]
        assert best <= min(scanned) * (1.0 + 1e-13)

    def test_costs_of_the_samples_themselves(self) -> None:
        rng = np.random.default_rng(4)
        for kind in POWERS:
            for _ in range(20):
                costs = OwnCosts(rng.exponential(size=6), 2.0)
                y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
                loss = kind(costs)
                best = min(loss.value(1.0 - y * b) for b in loss.constant_intercepts(y))
                scanned = [loss.value(1.0 - y * b) for b in np.linspace(-1.2, 1.2, 481)]
                assert best <= min(scanned) * (1.0 + 1e-13)


class TestSampleWeights:
    @both
    @many
    @given(data=st.data())
    def test_masses_are_copies(self, kind: type[RankedLoss], data: st.DataObject) -> None:
        case = data.draw(cases())
        weighted, copied = kind(case.costs), kind(PlainCosts(case.copies))
        slack, penalty = draw_vector(data, case), data.draw(st.floats(1e-3, 1e3))
        wide = case.write_out(slack)
        assert weighted.value(slack) == pytest.approx(copied.value(wide), rel=1e-12)
        one, other = take_prox(weighted, slack, penalty), take_prox(copied, wide, penalty)
        size = np.abs(slack).max() + case.copies.max() / penalty
        np.testing.assert_allclose(
            case.write_out(one.prox), other.prox, rtol=1e-11, atol=1e-13 * size
        )
        dual = np.maximum(slack, 0.0)
        parts = case.write_out(dual / case.counts)
        assert weighted.conjugate(dual) == pytest.approx(copied.conjugate(parts), rel=1e-11)
        if kind is RankedHinge:
            assert weighted.excess(dual) == pytest.approx(copied.excess(parts), rel=1e-11)


class TestGroups:
    def squared_groups(
        self, rng: np.random.Generator
    ) -> tuple[GroupedLoss, list[IntArray], list[ProximalLoss]]:
        groups = [np.sort(part) for part in np.split(rng.permutation(12), [3, 4, 9])]
        losses: list[ProximalLoss] = [
            RankedSquaredHinge(RankCosts(group.size, "basic", 0.4, 0.5 + k))
            for k, group in enumerate(groups[:3])
        ]
        costs = PlainCosts(np.sort(rng.exponential(size=3)))
        hinge = OffsetHinge(costs, rng.exponential(0.2, size=3))
        losses.append(hinge)
        return GroupedLoss(groups, losses), groups, losses

    @some
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 2.0]))
    def test_each_group_by_itself(self, seed: int, penalty: float) -> None:
        rng = np.random.default_rng(seed)
        loss, groups, parts = self.squared_groups(rng)
        v = rng.normal(0.7, 1.0, size=12)
        point = take_prox(loss, v, penalty)
        assert loss.value(v) == pytest.approx(
            sum(part.value(v[group]) for group, part in zip(groups, parts, strict=True))
        )
        conjugate = 0.0
        for group, part in zip(groups, parts, strict=True):
            own = take_prox(part, v[group], penalty)
            np.testing.assert_array_equal(point.prox[group], own.prox)
            np.testing.assert_array_equal(point.dual[group], own.dual)
            conjugate += part.conjugate_at(own)
        assert loss.conjugate_at(point) == pytest.approx(conjugate)
        young = loss.value(point.prox) + loss.conjugate_at(point)
        assert point.dual @ point.prox == pytest.approx(young, rel=1e-10, abs=1e-12)
        numbers = set(point.block[point.block > 0].tolist())
        assert numbers == set(range(1, point.n_blocks + 1))
        projected = ProxPoint(12)
        loss.project(v, projected)
        for group in groups[:3]:
            np.testing.assert_array_equal(projected.dual[group], np.maximum(v[group], 0.0))

    @some
    @given(st.integers(0, 2**32 - 1))
    def test_jacobian_against_differences(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        loss, _, _ = self.squared_groups(rng)
        v = rng.normal(0.7, 1.0, size=12)
        point = take_prox(loss, v, 2.0)
        direction = 1e-6 * rng.normal(size=12)
        ahead, behind = (take_prox(loss, v + way * direction, 2.0) for way in (1.0, -1.0))
        np.testing.assert_array_equal(ahead.block, behind.block)
        expected = jacobian_of(loss, point, 2.0) @ direction
        np.testing.assert_allclose((ahead.dual - behind.dual) / 2, expected, rtol=0, atol=1e-13)
