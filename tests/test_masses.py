"""Sample weights with rank weights that fall: profiles, descent, bounds, trees, against copies."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.costs import RankCosts, WeightedCosts
from owasvm.profiles import charge_by_profile
from owasvm.weights import FAMILIES, share_function

seeds = st.integers(0, 2**32 - 1)

SHAPES = [
    ("quadratic", 0.8),
    ("trigonometric", 0.4),
    ("trigonometric", 1.0),
    ("trimmed", 0.2),
    ("olympic", 0.5),
    ("max-entropy", 0.3),
    ("basic", 2.0),
    (lambda r: r**2, None),
    (lambda r: np.minimum(r, 0.4) + np.maximum(r - 0.7, 0.0), None),
    (lambda r: np.floor(4.0 * r + 0.3217), None),
]


def draw_mass(rng, n_samples):
    """Masses of every kind: whole, in classes, any, extreme."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.integers(1, 5, size=n_samples).astype(float)
    if kind == 1:
        return rng.choice([0.7, 1.9], size=n_samples)
    if kind == 2:
        return rng.uniform(0.1, 3.0, size=n_samples)
    if kind == 3:
        return 10.0 ** rng.uniform(-6, 6, size=n_samples)
    mass = rng.uniform(0.5, 1.0, size=n_samples)
    mass[0] = 1e4 * mass.sum()
    return mass


def tail_at(costs, mass):
    """``C S G(t / S)``."""
    total = costs.sample_weight.sum()
    share = share_function(costs.weights, costs.alpha, total=total)
    return costs.C * total * share(np.clip(np.asarray(mass) / total, 0.0, 1.0))


# Profiles


@pytest.mark.parametrize("number", range(len(SHAPES)))
@settings(max_examples=25, deadline=None)
@given(seed=seeds, n_samples=st.integers(1, 40))
def test_profile_is_nowhere_above(number, seed, n_samples):
    rng = np.random.default_rng(seed)
    costs = RankCosts(n_samples, *SHAPES[number], 2.0, draw_mass(rng, n_samples))
    profile = costs.profile()
    assert profile.density.min() >= 0.0
    assert profile.edges[-1] == pytest.approx(costs.sample_weight.sum(), rel=1e-12)
    rounding = 1e-15 * (n_samples + 4) * costs.total
    for _ in range(20):
        order = rng.permutation(n_samples)
        exact = np.cumsum(costs.largest_first(order))
        below = np.cumsum(charge_by_profile(profile, costs.sample_weight[order]))
        assert np.all(below <= exact + rounding)
        # Nor far below: a share function that jumps is known at listed sums only.
        if profile.has_all_sums:
            assert np.all(below >= exact - 1e-7 * costs.total)
        elif not callable(SHAPES[number][0]):
            assert np.all(below >= exact - 1e-5 * costs.total)


def name_of(shape):
    family, alpha = shape
    return f"{family} {alpha}" if isinstance(family, str) else "quantifier"


@pytest.mark.parametrize("shape", SHAPES[:8], ids=name_of)
def test_a_grid_says_nearly_the_same(shape):
    rng = np.random.default_rng(0)
    mass = rng.uniform(0.5, 2.0, size=60)
    costs = RankCosts(60, *shape, 1.0, mass)
    profile = costs.profile()
    assert not profile.has_all_sums
    lost = tail_at(costs, profile.edges) - profile.sums
    assert lost.max() <= (1e-4 if callable(shape[0]) else 3e-6) * costs.total


def test_sums_are_listed_where_they_are_few():
    def n_slices(mass, weights="trimmed"):
        return RankCosts(len(mass), weights, 0.3, 1.0, mass).profile().density.size

    assert n_slices(np.ones(30)) == 30
    assert n_slices(np.full(30, 0.1)) == 30
    assert n_slices([2.0, 3.0, 4.0]) == 9
    assert n_slices([1.0, np.pi]) == 3
    balanced = np.repeat([569 / (2 * 357), 569 / (2 * 212)], [357, 212])
    assert RankCosts(569, lambda r: r**2, None, 1.0, balanced).profile().has_all_sums
    # Whole numbers far apart have a common measure.
    assert n_slices([6.0, 10.0, 15.0]) == 31


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_split_is_exact_and_an_upper_bound(shape):
    rng = np.random.default_rng(1)
    for _ in range(5):
        mass = draw_mass(rng, 5)
        costs = RankCosts(5, *shape, 2.0, mass)
        if costs.convex:
            continue
        rising = costs.rising()
        assert rising.convex
        deviations = rng.exponential(size=5)
        order = np.argsort(deviations)
        value = costs.in_order(order) @ deviations[order]
        rest = value - rising.in_order(order) @ deviations[order]
        for other in permutations(range(5)):
            handed = np.array(other)
            paid, got = costs.falling_in_order(handed)
            assert paid.min() >= 0.0 and got.min() >= 0.0
            total = (paid - got) @ deviations[handed]
            assert total >= rest - 1e-9 * costs.total
        paid, got = costs.falling_in_order(order)
        assert (paid - got) @ deviations[order] == pytest.approx(rest, abs=1e-11 * costs.total)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "uniform"])
def test_whole_numbers_split_as_copies(family):
    counts = np.array([2.0, 1.0, 3.0, 1.0, 2.0])
    index = np.repeat(np.arange(5), counts.astype(int))
    costs = RankCosts(5, family, 0.4, 2.0, counts)
    copies = RankCosts(9, family, 0.4, 2.0)
    assert costs.convex == copies.convex
    if costs.convex:
        return
    np.testing.assert_allclose(costs.profile().density, copies.by_rank(), atol=1e-11)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(5)
        wide = np.concatenate([np.flatnonzero(index == i) for i in order])
        for one, other in zip(
            costs.falling_in_order(order), copies.falling_in_order(wide), strict=True
        ):
            sums = np.bincount(index[wide], weights=other)
            np.testing.assert_allclose(one, sums[order], atol=1e-10)
        sums = np.bincount(index[wide], weights=copies.rising().in_order(wide))
        np.testing.assert_allclose(costs.rising().in_order(order), sums[order], atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_excess_is_never_too_small(shape):
    rng = np.random.default_rng(3)
    for _ in range(10):
        mass = draw_mass(rng, 6)
        costs = RankCosts(6, *shape, 2.0, mass)
        assert isinstance(costs, WeightedCosts)
        dual = rng.exponential(size=6) * mass * (rng.random(6) < 0.7)
        tightest = 0.0
        for size in range(1, 7):
            for members in combinations(range(6), size):
                inside = list(members)
                bound = costs.largest_first(np.array(inside)).sum()
                paid = dual[inside].sum()
                tightest = max(
                    tightest, paid / bound if bound > 0 else np.inf * paid if paid else 0
                )
        assert costs.excess(dual) >= tightest * (1 - 1e-9)
        assert costs.excess(np.zeros(6)) == 0.0
