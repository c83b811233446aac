"""The OWA hinge loss, its prox and its dual set against independent oracles and identities."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression, linprog
from sklearn.svm import SVC

from owasvm import loss
from owasvm.losses import _sorting
from owasvm.weights import is_convex, owa_weights
from tests import oracles, strategies

FloatArray = NDArray[np.float64]
Function = Callable[[ArrayLike, ArrayLike], Any]

# Numba compiles inside the first example, so no example has a deadline.
many = settings(max_examples=100, deadline=None)
some = settings(max_examples=30, deadline=None)

EPS = np.finfo(float).eps


def hinge_owa(x: FloatArray, weights: FloatArray) -> float:
    """The OWA hinge of any real vector."""
    return oracles.owa_value(np.maximum(x, 0.0), weights)


def prefix_excess(a: FloatArray, weights: FloatArray) -> float:
    """Largest relative excess of a prefix sum of `a` over that of `weights`."""
    totals = np.cumsum(np.sort(a)[::-1])
    bounds = np.cumsum(np.sort(weights)[::-1])
    return float(np.max(totals / bounds)) - 1.0


def run_prox_blocks(
    v: FloatArray, weights: FloatArray, step: float = 1.0
) -> tuple[FloatArray, FloatArray, NDArray[np.int64], int]:
    """The kernel's prox, dual, block labels and number of tied blocks."""
    x, dual = np.full((2, v.size), np.nan)
    block = np.full(v.size, -99)
    n_blocks = _sorting.prox_blocks(
        v,
        1.0 / step,
        weights,
        _sorting.make_workspace(v.size),
        x,
        dual,
        block,
        np.empty(v.size + 1),
    )
    return x, dual * step, block, n_blocks


class TestValue:
    def test_hinge_deviations(self) -> None:
        deviations = loss.hinge_deviations([2.0, 1.0, 0.25, -1.0, -3.0], [1, 1, -1, 1, -1])
        np.testing.assert_array_equal(deviations, [0.0, 0.0, 1.25, 2.0, 0.0])

    def test_last_weight_meets_largest_deviation(self) -> None:
        assert loss.owa([5.0, 1.0, 3.0], [0.0, 0.0, 1.0]) == 5.0
        assert loss.owa([5.0, 1.0, 3.0], [1.0, 0.0, 0.0]) == 1.0
        assert loss.owa([5.0, -1.0, 3.0], [1.0, 1.0, 1.0]) == 7.0

    @many
    @given(strategies.weighted_vectors(convex=False))
    def test_value_of_any_weights(self, case: tuple[FloatArray, FloatArray]) -> None:
        deviations, weights = case
        tolerance = 1e-14 * np.abs(deviations).max() * weights.size
        expected = oracles.owa_value(deviations, weights)
        assert loss.owa(deviations, weights) == pytest.approx(expected, rel=0, abs=tolerance)

    @many
    @given(strategies.weighted_vectors(convex=False), st.floats(1e-3, 1e3))
    def test_positively_homogeneous(
        self, case: tuple[FloatArray, FloatArray], factor: float
    ) -> None:
        deviations, weights = case
        size = np.abs(deviations).max() * weights.sum()
        scaled = loss.owa(factor * deviations, weights)
        expected = factor * loss.owa(deviations, weights)
        assert scaled == pytest.approx(expected, rel=0, abs=1e-13 * factor * size)

    @many
    @given(st.data())
    def test_convex_if_weights_rise(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 20))
        weights = data.draw(strategies.convex_weights(n_samples))
        one, other = (data.draw(strategies.real_vectors(n_samples)) for _ in range(2))
        chord = (loss.owa(one, weights) + loss.owa(other, weights)) / 2
        size = loss.owa(np.abs(one), weights) + loss.owa(np.abs(other), weights)
        assert loss.owa((one + other) / 2, weights) <= chord + 1e-13 * size

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_not_convex_if_weights_fall(self, position: int) -> None:
        weights = np.ones(4)
        weights[position] = 1.5
        # Two samples tied at the fall: moving them apart in opposite directions lowers the value.
        base = np.array([-1.0, -0.5, 0.5, 1.0])
        base[position : position + 2] = 0.0
        apart = np.zeros(4)
        apart[position : position + 2] = [-0.1, 0.1]
        chord = (loss.owa(base + apart, weights) + loss.owa(base - apart, weights)) / 2
        assert loss.owa(base, weights) > chord + 0.01


class TestSubgradient:
    def test_ties_go_by_index(self) -> None:
        subgradient = loss.owa_subgradient([2.0, 2.0, 0.0, 2.0, -1.0, 1.0], [1, 2, 3, 4, 5, 6])
        np.testing.assert_array_equal(subgradient, [6.0, 5.0, 0.0, 4.0, 0.0, 3.0])

    @many
    @given(strategies.weighted_vectors(max_samples=80))
    def test_fenchel_young_holds_with_equality(self, case: tuple[FloatArray, FloatArray]) -> None:
        x, weights = case
        a = loss.owa_subgradient(x, weights)
        value = hinge_owa(x, weights)
        assert a @ x == pytest.approx(value + loss.conjugate(a, weights), rel=1e-13)

    @many
    @given(st.data())
    def test_subgradient_inequality(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 20))
        weights = data.draw(strategies.convex_weights(n_samples))
        x, z = (data.draw(strategies.real_vectors(n_samples)) for _ in range(2))
        linear = hinge_owa(x, weights) + loss.owa_subgradient(x, weights) @ (z - x)
        size = loss.owa(np.abs(x), weights) + loss.owa(np.abs(z), weights)
        assert hinge_owa(z, weights) >= linear - 1e-13 * size

    @many
    @given(strategies.weighted_vectors(convex=False))
    def test_value_recovered_for_any_weights(self, case: tuple[FloatArray, FloatArray]) -> None:
        x, weights = case
        product = loss.owa_subgradient(x, weights) @ x
        assert product == pytest.approx(hinge_owa(x, weights), rel=1e-13)


class TestProx:
    @settings(max_examples=25, deadline=None)
    @given(
        strategies.weighted_vectors(max_samples=10, extreme=False),
        st.sampled_from([0.3, 1.0, 2.5]),
    )
    def test_against_dotsort(self, case: tuple[FloatArray, FloatArray], step: float) -> None:
        v, weights = case
        found = loss.prox(v, weights, step)
        expected = oracles.dotsort_prox(v, weights, step)
        size = max(1.0, np.abs(v).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * size)

        def objective(x: FloatArray) -> float:
            return ((x - v) ** 2).sum() / 2 + step * hinge_owa(x, weights)

        # Strong convexity: every other point is worse by half its squared distance at least.
        growth = ((expected - found) ** 2).sum() / 2
        assert objective(expected) >= objective(found) + growth - 1e-14 * size**2 * v.size

    @many
    @given(strategies.weighted_vectors(max_samples=80), st.floats(1e-3, 1e3))
    def test_against_scipy_isotonic_regression(
        self, case: tuple[FloatArray, FloatArray], step: float
    ) -> None:
        v, weights = case
        order = np.argsort(v, kind="stable")
        n_low = int((v <= 0).sum())
        shifted = (v[order] - step * weights)[n_low:]
        fit = isotonic_regression(shifted).x if shifted.size else shifted
        expected = v.copy()
        expected[order[n_low:]] = np.maximum(fit, 0.0)
        size = np.abs(v).max() + step * weights.max()
        np.testing.assert_allclose(
            loss.prox(v, weights, step), expected, rtol=0, atol=1e-13 * size
        )

    @many
    @given(strategies.weighted_vectors(max_samples=12))
    def test_against_rational_arithmetic(self, case: tuple[FloatArray, FloatArray]) -> None:
        v, weights = case
        expected, expected_dual = oracles.exact_prox(v, weights)
        size = np.abs(v).max() + weights.max()
        np.testing.assert_allclose(loss.prox(v, weights), expected, rtol=0, atol=8 * EPS * size)
        np.testing.assert_allclose(
            loss.project_dual(v, weights), expected_dual, rtol=0, atol=20 * EPS * size
        )

    @many
    @given(strategies.weighted_vectors())
    def test_keeps_order_and_ties(self, case: tuple[FloatArray, FloatArray]) -> None:
        v, weights = case
        order = np.argsort(v, kind="stable")
        x = loss.prox(v, weights)[order]
        assert np.all(np.diff(x) >= 0.0)
        size = np.abs(v).max() + weights.max()
        assert np.all(np.abs(np.diff(x))[np.diff(v[order]) == 0.0] <= 4 * EPS * size)

    @many
    @given(strategies.weighted_vectors(), st.floats(0.01, 100.0))
    def test_positively_homogeneous(
        self, case: tuple[FloatArray, FloatArray], factor: float
    ) -> None:
        v, weights = case
        size = factor * (np.abs(v).max() + weights.max())
        np.testing.assert_allclose(
            loss.prox(factor * v, weights, factor),
            factor * loss.prox(v, weights),
            rtol=0,
            atol=1e-13 * size,
        )

    @many
    @given(st.data())
    def test_firmly_nonexpansive(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 20))
        weights = data.draw(strategies.convex_weights(n_samples))
        v, u = (data.draw(strategies.real_vectors(n_samples)) for _ in range(2))
        moved = loss.prox(v, weights) - loss.prox(u, weights)
        size = np.abs(v).max() + np.abs(u).max() + weights.max()
        assert moved @ moved <= moved @ (v - u) + 1e-12 * size**2

    def test_one_sample(self) -> None:
        assert loss.prox([3.0], [2.0]) == [1.0]
        assert loss.prox([1.5], [2.0]) == [0.0]
        assert loss.prox([-1.5], [2.0]) == [-1.5]
        assert loss.project_dual([1.5], [2.0]) == [1.5]

    def test_uniform_weights_are_soft_thresholding(self) -> None:
        v = np.array([3.0, 3.0, 0.5, 1.0, -2.0])
        np.testing.assert_array_equal(loss.prox(v, np.ones(5)), [2.0, 2.0, 0.0, 0.0, -2.0])

    def test_zero_weights_change_nothing(self) -> None:
        v = np.array([3.0, -1.0, 0.0])
        np.testing.assert_array_equal(loss.prox(v, np.zeros(3)), v)
        np.testing.assert_array_equal(loss.project_dual(v, np.zeros(3)), np.zeros(3))

    def test_many_samples_satisfy_optimality(self) -> None:
        n_samples = 100_000
        rng = np.random.default_rng(0)
        v = rng.normal(0.5, 2.0, size=n_samples)
        v[::7] = 1.0
        weights = owa_weights(n_samples, "basic", 0.6)
        x = loss.prox(v, weights)
        a = loss.project_dual(v, weights)
        np.testing.assert_allclose(x + a, v, atol=1e-12)
        assert loss.in_dual_set(a, weights, tol=1e-11)
        assert a @ x == pytest.approx(float(np.maximum(np.sort(x), 0.0) @ weights), rel=1e-11)


class TestDualSet:
    @many
    @given(strategies.weighted_vectors(), st.floats(1e-3, 1e3))
    def test_moreau_identity(self, case: tuple[FloatArray, FloatArray], step: float) -> None:
        v, weights = case
        taken = step * loss.project_dual(v / step, weights)
        size = np.abs(v).max() + step * weights.max()
        np.testing.assert_allclose(
            loss.prox(v, weights, step) + taken, v, rtol=0, atol=1e-13 * size
        )

    @many
    @given(strategies.weighted_vectors(max_samples=80))
    def test_projection_is_feasible_at_any_scale(
        self, case: tuple[FloatArray, FloatArray]
    ) -> None:
        v, weights = case
        a = loss.project_dual(v, weights)
        assert a.min() >= 0.0
        assert prefix_excess(a, weights) <= 1e-14
        assert np.all(a[v <= 0] == 0.0)

    @many
    @given(strategies.weighted_vectors(max_samples=80))
    def test_projection_satisfies_its_variational_inequality(
        self, case: tuple[FloatArray, FloatArray]
    ) -> None:
        v, weights = case
        a = loss.project_dual(v, weights)
        # The largest (v - a)'b over b in P is the OWA hinge of v - a: no b beats b = a.
        size = (np.abs(v).max() + weights.max()) * weights.sum()
        assert hinge_owa(v - a, weights) - (v - a) @ a <= 1e-13 * size

    @some
    @given(strategies.weighted_vectors(max_samples=30))
    def test_projection_is_idempotent(self, case: tuple[FloatArray, FloatArray]) -> None:
        v, weights = case
        a = loss.project_dual(v, weights)
        np.testing.assert_allclose(
            loss.project_dual(a, weights), a, rtol=0, atol=1e-13 * weights.max()
        )

    def test_projection_keeps_its_digits_far_outside(self) -> None:
        # Subtracting the prox from v would leave errors of 1e-16 * 1e9 = 1e-7.
        v = 1e9 + np.array([0.0, 0.25, 0.5, -0.125])
        weights = np.array([0.5, 0.75, 1.0, 1.75])
        _, expected = oracles.exact_prox(v, weights)
        np.testing.assert_allclose(loss.project_dual(v, weights), expected, rtol=1e-15)
        assert len(set(expected)) == 4

    def test_projection_stays_inside_where_rounding_pools_too_much(self) -> None:
        # Entries near 1e15 are spaced by 1/8: pooling blocks by mistake is common there, and
        # leaves prefix sums up to 3% too large unless the result is shrunk.
        rng = np.random.default_rng(0)
        for _ in range(200):
            n_samples = int(rng.integers(2, 12))
            weights = np.sort(rng.exponential(size=n_samples))
            a = loss.project_dual(1e15 + rng.normal(size=n_samples), weights)
            assert prefix_excess(a, weights) <= 1e-14

    @some
    @given(st.data())
    def test_membership_against_linear_program(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 5))
        weights = data.draw(strategies.convex_weights(n_samples))
        direction = data.draw(strategies.real_vectors(n_samples, extreme=False))
        a = loss.project_dual(5.0 * direction, weights) * data.draw(
            st.sampled_from([0.7, 0.99, 1.01, 1.5])
        )
        # a is in P exactly when a <= D weights for a doubly stochastic D.
        cells = np.arange(n_samples**2).reshape(n_samples, n_samples)
        row_and_column_sums = np.zeros((2 * n_samples, n_samples**2))
        covered = np.zeros((n_samples, n_samples**2))
        for i in range(n_samples):
            row_and_column_sums[i, cells[i]] = 1.0
            row_and_column_sums[n_samples + i, cells[:, i]] = 1.0
            covered[i, cells[i]] = -weights
        program = linprog(
            np.zeros(n_samples**2),
            A_ub=covered,
            b_ub=-a,
            A_eq=row_and_column_sums,
            b_eq=np.ones(2 * n_samples),
        )
        inside = program.status == 0
        assert loss.in_dual_set(a, weights, tol=1e-6) == inside
        assert (loss.dual_slack(a, weights) >= -1e-6) == inside
        assert loss.conjugate(a, weights, tol=1e-6) == (0.0 if inside else np.inf)

    def test_negative_entries_are_outside(self) -> None:
        weights = np.array([0.5, 1.5])
        assert loss.dual_slack([-0.1, 1.0], weights) == 0.5
        assert not loss.in_dual_set([-0.1, 1.0], weights)
        assert loss.in_dual_set([-1e-10, 1.0], weights)
        assert loss.conjugate([-0.1, 1.0], weights) == np.inf

    def test_tolerance_is_relative(self) -> None:
        weights = np.array([0.0, 0.0, 3.0])
        outside = np.array([0.0, 0.0, 3.0 * (1 + 1e-8)])
        for scale in (1.0, 1e-6, 1e6):
            assert not loss.in_dual_set(scale * outside, scale * weights)
            assert loss.in_dual_set(scale * outside, scale * weights, tol=1e-7)

    @many
    @given(st.data())
    def test_fenchel_young_inequality(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 20))
        weights = data.draw(strategies.convex_weights(n_samples))
        x, v = (data.draw(strategies.real_vectors(n_samples)) for _ in range(2))
        a = loss.project_dual(v, weights)
        size = loss.owa(np.abs(x), weights)
        assert hinge_owa(x, weights) + loss.conjugate(a, weights) >= a @ x - 1e-13 * size


class TestKernels:
    @many
    @given(st.integers(1, 400), st.data())
    def test_sort_positive_is_stable(self, n_samples: int, data: st.DataObject) -> None:
        v = data.draw(strategies.real_vectors(n_samples))
        workspace = _sorting.make_workspace(n_samples)
        n_positive = _sorting.sort_positive(v, workspace)
        expected = np.argsort(-v, kind="stable")[: int((v > 0).sum())]
        np.testing.assert_array_equal(workspace.order[:n_positive], expected)
        np.testing.assert_array_equal(workspace.keys[:n_positive], v[expected])

    @pytest.mark.parametrize("n_samples", [30, 49, 300, 3000, 20_000])
    @pytest.mark.parametrize("spread", [1e-15, 1e-12, 1e-5, 1e-3])
    def test_sort_positive_tells_near_ties_apart(self, n_samples: int, spread: float) -> None:
        """Leading digits that many share, that few share, and copies, in one vector."""
        rng = np.random.default_rng(n_samples)
        v = rng.uniform(0.0, 2.0, size=n_samples)
        tied = rng.random(n_samples) < 0.5
        v[tied] = 1.0 + spread * rng.uniform(size=int(tied.sum()))
        v[rng.random(n_samples) < 0.1] = v[0]
        workspace = _sorting.make_workspace(n_samples)
        assert _sorting.sort_positive(v, workspace) == n_samples
        expected = np.argsort(-v, kind="stable")
        np.testing.assert_array_equal(workspace.order, expected)
        np.testing.assert_array_equal(workspace.keys, v[expected])

    def test_sort_positive_takes_every_magnitude(self) -> None:
        exponents = np.random.default_rng(0).permutation(np.arange(-1074, 1024))
        v = np.concatenate([np.ldexp(1.0, exponents), [0.0, -0.0, -1.0]])
        workspace = _sorting.make_workspace(v.size)
        assert _sorting.sort_positive(v, workspace) == exponents.size
        np.testing.assert_array_equal(
            workspace.order[: exponents.size], np.argsort(-exponents, kind="stable")
        )

    @many
    @given(st.integers(1, 60), st.data())
    def test_pool_adjacent_against_scipy(self, n_samples: int, data: st.DataObject) -> None:
        values = data.draw(strategies.real_vectors(n_samples))
        masses = data.draw(strategies.sample_counts(n_samples)).astype(float)
        levels, block_masses = np.empty((2, n_samples))
        starts = np.empty(n_samples + 1, dtype=np.int64)
        before = values.copy(), masses.copy()
        n_blocks = _sorting.pool_adjacent(values, masses, levels, block_masses, starts, n_samples)
        np.testing.assert_array_equal(values, before[0])
        np.testing.assert_array_equal(masses, before[1])
        expected = isotonic_regression(values, weights=masses, increasing=False).x
        lengths = np.diff(starts[: n_blocks + 1])
        assert starts[0] == 0 and starts[n_blocks] == n_samples and lengths.min() >= 1
        assert np.all(np.diff(levels[:n_blocks]) <= 0.0)
        np.testing.assert_allclose(
            np.repeat(levels[:n_blocks], lengths),
            expected,
            rtol=0,
            atol=1e-13 * np.abs(values).max(),
        )
        np.testing.assert_array_equal(
            block_masses[:n_blocks], np.add.reduceat(masses, starts[:n_blocks])
        )

    def test_equal_neighbours_are_not_pooled(self) -> None:
        levels, block_masses = np.empty((2, 3))
        starts = np.empty(4, dtype=np.int64)
        values = np.array([2.0, 2.0, 1.0])
        assert _sorting.pool_adjacent(values, np.ones(3), levels, block_masses, starts, 3) == 3

    def test_block_labels(self) -> None:
        v = np.array([-1.0, 9.0, 5.0, 4.5, 0.0, 2.0, 1.9, 0.1, 1.95])
        weights = np.array([0.0, 0.0, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0, 2.5])
        x, dual, block, n_blocks = run_prox_blocks(v, weights)
        np.testing.assert_array_equal(block, [-2, -1, 1, 1, -2, 2, 2, 0, 2])
        assert n_blocks == 2
        np.testing.assert_allclose(x, [-1, 6.5, 3.25, 3.25, 0, 1.55, 1.55, 0, 1.55])
        np.testing.assert_allclose(dual, [0, 2.5, 1.75, 1.25, 0, 0.45, 0.35, 0.1, 0.4])

    def test_uniform_weights_tie_nothing(self) -> None:
        # The prox is separable here: equal entries still move one by one.
        _, _, block, n_blocks = run_prox_blocks(np.array([2.0, 2.0, 0.5, 2.0]), np.ones(4))
        np.testing.assert_array_equal(block, [-1, -1, 0, -1])
        assert n_blocks == 0

    @many
    @given(strategies.weighted_vectors(max_samples=80))
    def test_blocks_describe_the_prox(self, case: tuple[FloatArray, FloatArray]) -> None:
        v, weights = case
        x, dual, block, n_blocks = run_prox_blocks(v, weights)
        np.testing.assert_array_equal(x, loss.prox(v, weights))
        np.testing.assert_array_equal(block == _sorting.INACTIVE, v <= 0)
        np.testing.assert_array_equal(block == _sorting.CLIPPED, (v > 0) & (x == 0))
        assert np.all(dual[block == _sorting.INACTIVE] == 0.0)
        np.testing.assert_array_equal(
            dual[block == _sorting.CLIPPED], v[block == _sorting.CLIPPED]
        )
        assert set(block[block > 0]) == set(range(1, n_blocks + 1))
        for label in range(1, n_blocks + 1):
            members = block == label
            assert members.sum() >= 2
            assert np.ptp(x[members]) == 0.0 and x[members][0] > 0.0
        tied_levels = [x[block == label][0] for label in range(1, n_blocks + 1)]
        assert tied_levels == sorted(tied_levels, reverse=True)

    @some
    @given(st.integers(0, 2**32 - 1), st.integers(2, 25))
    def test_blocks_give_the_jacobian(self, seed: int, n_samples: int) -> None:
        rng = np.random.default_rng(seed)
        v = rng.normal(0.7, 1.0, size=n_samples)
        weights = np.sort(rng.exponential(0.4, size=n_samples))
        _, _, block, n_blocks = run_prox_blocks(v, weights)
        jacobian = np.diag(np.isin(block, [_sorting.INACTIVE, _sorting.SINGLE]).astype(float))
        for label in range(1, n_blocks + 1):
            members = (block == label).astype(float)
            jacobian += np.outer(members, members) / members.sum()
        direction = 1e-7 * rng.normal(size=n_samples)
        ahead, _, block_ahead, _ = run_prox_blocks(v + direction, weights)
        behind, _, block_behind, _ = run_prox_blocks(v - direction, weights)
        # Random points lie 1e-7 away from a kink with a probability of about 1e-6.
        np.testing.assert_array_equal(block_ahead > 0, block_behind > 0)
        np.testing.assert_allclose((ahead - behind) / 2, jacobian @ direction, atol=1e-14)

    @many
    @given(st.data())
    def test_sample_weights_are_copies(self, data: st.DataObject) -> None:
        n_samples = data.draw(st.integers(1, 12))
        counts = data.draw(strategies.sample_counts(n_samples))
        weights = data.draw(strategies.convex_weights(int(counts.sum())))
        # Pooled blocks of unlike samples need entries of the size of the weights.
        v = data.draw(strategies.real_vectors(n_samples, extreme=data.draw(st.booleans())))
        step = data.draw(st.sampled_from([0.5, 1.0, 2.0]))
        workspace = _sorting.make_workspace(n_samples)
        space = workspace, _sorting.make_pooling(n_samples)
        n_positive = _sorting.sort_positive(v, workspace)
        first_positions = np.cumsum(counts[workspace.order[:n_positive]])
        totals = np.array(
            [part.sum() for part in np.split(weights[::-1], first_positions)[:n_positive]]
        )
        x, dual = np.full((2, n_samples), np.nan)
        block = np.empty(n_samples, dtype=np.int64)
        _sorting.prox_blocks_weighted(
            v, counts.astype(float), totals, step, n_positive, x, dual, block, *space
        )
        copies = np.repeat(np.arange(n_samples), counts)
        size = np.abs(v).max() + step * weights.max()
        np.testing.assert_allclose(
            x[copies], loss.prox(v[copies], weights, step), rtol=0, atol=1e-13 * size
        )
        expected, expected_dual = oracles.exact_prox(v, step * weights, list(counts))
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-14 * size)
        np.testing.assert_allclose(dual, expected_dual, rtol=0, atol=4e-14 * size)

    def test_pooled_block_of_unequal_masses(self) -> None:
        v = np.array([3.0, 2.0])
        masses = np.array([1.0, 3.0])
        workspace = _sorting.make_workspace(2)
        space = workspace, _sorting.make_pooling(2)
        n_positive = _sorting.sort_positive(v, workspace)
        x, dual = np.empty((2, 2))
        block = np.empty(2, dtype=np.int64)
        # Level (1 * 3 + 3 * 2 - 2 - 1.5) / 4 = 1.375; the dual is s (v - x).
        totals = np.array([2.0, 1.5])
        n_blocks = _sorting.prox_blocks_weighted(
            v, masses, totals, 1.0, n_positive, x, dual, block, *space
        )
        assert n_blocks == 1
        np.testing.assert_array_equal(block, [1, 1])
        np.testing.assert_array_equal(x, [1.375, 1.375])
        np.testing.assert_array_equal(dual, [1.625, 1.875])

    @some
    @given(st.integers(1, 5), st.data())
    def test_kernel_minimises_for_any_weights(self, n_samples: int, data: st.DataObject) -> None:
        """Sort, pool and clip needs no monotone weights to reach the global minimum."""
        weights = data.draw(strategies.general_weights(n_samples))
        v = data.draw(strategies.real_vectors(n_samples, extreme=False))
        x, _, _, _ = run_prox_blocks(v, weights)
        value = ((x - v) ** 2).sum() / 2 + hinge_owa(x, weights)
        # Inside the cone of one order, cut at the sign changes, the problem is isotonic.
        smallest = np.inf
        for order in permutations(range(n_samples)):
            ordered = v[list(order)]
            for n_low in range(n_samples + 1):
                low = np.minimum(isotonic_regression(ordered[:n_low]).x, 0.0) if n_low else []
                shifted = ordered[n_low:] - weights[n_low:]
                high = np.maximum(isotonic_regression(shifted).x, 0.0) if shifted.size else []
                candidate = np.concatenate([low, high])
                distance = ((candidate - ordered) ** 2).sum() / 2
                smallest = min(smallest, distance + hinge_owa(candidate, weights))
        assert value == pytest.approx(smallest, rel=1e-12, abs=1e-14)


VECTOR_FUNCTIONS = [
    loss.owa,
    loss.owa_subgradient,
    loss.prox,
    loss.project_dual,
    loss.dual_slack,
    loss.in_dual_set,
    loss.conjugate,
]
CONVEX_ONLY = [
    loss.prox,
    loss.project_dual,
    loss.dual_slack,
    loss.in_dual_set,
    loss.conjugate,
]


class TestInputs:
    @pytest.mark.parametrize("function", VECTOR_FUNCTIONS)
    def test_inputs_are_not_changed_and_lists_and_views_accepted(self, function: Function) -> None:
        rng = np.random.default_rng(0)
        vector = np.maximum(rng.normal(size=200), -0.5)
        weights = np.sort(rng.exponential(size=200))
        before = vector.copy(), weights.copy()
        vector.flags.writeable = weights.flags.writeable = False
        expected = function(vector, weights)
        np.testing.assert_array_equal(vector, before[0])
        np.testing.assert_array_equal(weights, before[1])
        assert not isinstance(expected, np.ndarray) or expected.flags.writeable
        np.testing.assert_array_equal(function(vector.tolist(), weights.tolist()), expected)
        wide_vector, wide_weights = np.repeat(vector, 3), np.repeat(weights[::-1], 2)
        strided = function(wide_vector[::3], wide_weights[::-2])
        np.testing.assert_array_equal(strided, expected)
        np.testing.assert_array_equal(function([1, 2], [1, 1]), function([1.0, 2.0], [1.0, 1.0]))

    @pytest.mark.parametrize("function", VECTOR_FUNCTIONS)
    @pytest.mark.parametrize(
        ("vector", "weights", "message"),
        [
            ([1.0, 2.0], [1.0, 1.0, 1.0], "same length.*got 2 and 3"),
            ([1.0, np.nan], [1.0, 1.0], "must be finite, got nan at position 1"),
            ([1.0, np.inf], [1.0, 1.0], "must be finite, got inf at position 1"),
            ([1.0, 2.0], [1.0, np.nan], "weights must be finite, got nan at position 1"),
            ([1.0, 2.0], [-0.5, 1.0], "weights must be non-negative, got -0.5 at position 0"),
            ([[1.0, 2.0]], [1.0, 1.0], r"one-dimensional, got an array of shape \(1, 2\)"),
            ([], [], "is empty"),
            (["a", "b"], [1.0, 1.0], "must hold real numbers"),
            ([1j, 2.0], [1.0, 1.0], "must hold real numbers, got dtype complex128"),
        ],
    )
    def test_bad_vectors_are_refused(
        self, function: Function, vector: ArrayLike, weights: ArrayLike, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            function(vector, weights)

    @pytest.mark.parametrize("function", CONVEX_ONLY)
    def test_falling_weights_are_refused_where_convexity_is_needed(
        self, function: Function
    ) -> None:
        message = "non-decreasing.*got 1.5 followed by 0.5 at position 1"
        with pytest.raises(ValueError, match=message):
            function([1.0, 2.0, 3.0], [1.0, 1.5, 0.5])

    @pytest.mark.parametrize("step", [0.0, -1.0, np.inf, np.nan])
    def test_bad_steps_are_refused(self, step: float) -> None:
        with pytest.raises(ValueError, match="step must be positive and finite"):
            loss.prox([1.0], [1.0], step)

    def test_bad_labels_and_tolerances_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"y must hold the labels -1 and \+1 only, got 0.0"):
            loss.hinge_deviations([1.0, 2.0], [1, 0])
        with pytest.raises(ValueError, match="decision_values and y must have the same length"):
            loss.hinge_deviations([1.0, 2.0], [1])
        with pytest.raises(ValueError, match="tol must be non-negative, got -1"):
            loss.in_dual_set([1.0], [1.0], tol=-1.0)


class TestOracles:
    """The oracles themselves, against known optima and each other."""

    def test_two_samples_by_hand(self) -> None:
        # X = (-1, 1): 1/2 w^2 + 2 C (1 - w) below w = 1, so w = min(1, 2 C); b = 0 by symmetry.
        for C, coef in ((0.25, 0.5), (2.0, 1.0)):
            solution = oracles.cvxpy_owa_svm([[-1.0], [1.0]], [-1.0, 1.0], [1.0, 1.0], C)
            assert solution.objective == pytest.approx(coef**2 / 2 + 2 * C * (1 - coef))
            assert solution.coef == pytest.approx([coef], abs=1e-4)

    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def test_certified_accuracy(self, data: st.DataObject) -> None:
        X, y = data.draw(strategies.classification_problems())
        assert set(y) == {-1.0, 1.0}
        weights = data.draw(strategies.convex_weights(y.size))
        assert is_convex(weights)
        assert weights.mean() == pytest.approx(1.0)
        solution = oracles.cvxpy_owa_svm(X, y, weights, data.draw(strategies.penalties()))
        assert -1e-12 <= solution.gap <= 1e-7

    def test_uniform_weights_give_the_kernel_svm(self) -> None:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(40, 3))
        y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
        squared_distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        gram = np.exp(-0.5 * squared_distances)
        svc = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(gram, y)
        solution = oracles.cvxpy_owa_svm(oracles.psd_factor(gram), y, np.ones(40), 2.0)
        np.testing.assert_allclose(
            solution.decision_values, svc.decision_function(gram), atol=1e-5
        )
        assert solution.alpha is not None
        np.testing.assert_allclose(
            gram @ (y * solution.alpha) + solution.intercept,
            solution.decision_values,
            atol=1e-5,
        )

    def test_enumeration_agrees_on_convex_weights(self) -> None:
        rng = np.random.default_rng(5)
        for n_samples in (2, 4, 5):
            X = rng.normal(size=(n_samples, 2))
            y = np.where(np.arange(n_samples) % 2 == 0, 1.0, -1.0)
            weights = owa_weights(n_samples, "basic", 0.4)
            convex = oracles.cvxpy_owa_svm(X, y, weights, 3.0)
            enumerated = oracles.enumerate_owa_svm(X, y, weights, 3.0)
            assert enumerated.objective == pytest.approx(convex.objective, rel=1e-8)
            assert enumerated.gap == pytest.approx(0.0, abs=1e-8)

    def test_enumeration_beats_the_best_of_many_points(self) -> None:
        rng = np.random.default_rng(6)
        X = rng.normal(size=(5, 1))
        y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        weights = np.array([1.0, 2.0, 1.5, 0.5, 0.0])
        solution = oracles.enumerate_owa_svm(X, y, weights, 3.0)
        grid = [
            oracles.primal_objective(X, y, weights, 3.0, np.array([w]), b)
            for w in np.linspace(-4, 4, 161)
            for b in np.linspace(-4, 4, 161)
        ]
        assert solution.objective <= min(grid) <= solution.objective + 0.15
        assert solution.gap == pytest.approx(0.0, abs=1e-8)

    def test_copies_with_uniform_weights_are_sample_weights(self) -> None:
        rng = np.random.default_rng(7)
        X = rng.normal(size=(12, 2))
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        counts = rng.integers(1, 4, size=12)
        solution = oracles.cvxpy_owa_svm_replicated(X, y, counts, np.ones(counts.sum()), 0.7)
        svc = SVC(kernel="linear", C=0.7, tol=1e-10).fit(X, y, sample_weight=counts)
        np.testing.assert_allclose(solution.coef, svc.coef_[0], atol=1e-5)
