"""Intercepts: the best one for both losses, and the midpoint that every solver returns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from owasvm import OWASVC, LinearOWASVC
from owasvm.costs import Costs, OwnCosts, PlainCosts, RankCosts
from owasvm.intercept import (
    best_intercept,
    global_intercept,
    middle_of_flat,
    spread_intercepts,
)
from owasvm.losses import LOSSES, RankedSquaredHinge
from owasvm.problem import OWAProblem
from owasvm.solvers import REGISTRY, solve
from tests.strategies import CONVEX_FAMILIES

FloatArray = NDArray[np.float64]

FALLING = [("trimmed", 0.3), ("olympic", 0.5), ("trigonometric", 0.8)]


def loss_at(intercepts, scores: FloatArray, y: FloatArray, costs: Costs, loss: str = "hinge"):
    """The loss at one or several intercepts, by its definition."""
    power = 2 if loss == "squared_hinge" else 1
    values = []
    for intercept in np.atleast_1d(intercepts):
        deviations = np.maximum(1.0 - y * (scores + intercept), 0.0)
        order = np.argsort(deviations, kind="stable")
        values.append(costs.in_order(order) @ deviations[order] ** power)
    return np.array(values) if np.ndim(intercepts) else values[0]


def bends_of(scores: FloatArray, y: FloatArray) -> FloatArray:
    """Where the loss of the hinge bends: a deviation vanishes, or two of them cross."""
    crossings = -0.5 * np.add.outer(scores[y > 0], scores[y < 0]).ravel()
    return np.unique(np.concatenate((y - scores, crossings)))


@st.composite
def scored(draw: st.DrawFn, max_samples: int = 12) -> tuple[FloatArray, FloatArray]:
    """Scores and labels of both classes, often with ties."""
    rng = draw(st.integers(0, 2**31).map(np.random.default_rng))
    n_samples = draw(st.integers(2, max_samples))
    scores = draw(st.sampled_from([0.3, 1.0, 5.0])) * rng.normal(size=n_samples)
    if draw(st.booleans()):
        scores = np.round(2.0 * scores) / 2.0
    y = rng.choice([-1.0, 1.0], size=n_samples)
    y[rng.permutation(n_samples)[:2]] = -1.0, 1.0
    return scores + draw(st.sampled_from([0.0, 0.25, -40.0])), y


@st.composite
def convex_costs(draw: st.DrawFn, n_samples: int) -> Costs:
    rng = draw(st.integers(0, 2**31).map(np.random.default_rng))
    kind = draw(st.sampled_from(["plain", "weighted", "own"]))
    C = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    mass = rng.uniform(0.3, 3.0, size=n_samples)
    if kind == "own":
        return OwnCosts(mass, C)
    family = draw(st.sampled_from(sorted(CONVEX_FAMILIES)))
    alpha = draw(CONVEX_FAMILIES[family])
    return RankCosts(n_samples, family, alpha, C, mass if kind == "weighted" else None)


# The best intercept


@given(scored(), st.data())
@settings(max_examples=60)
def test_hinge_takes_the_middle_of_all_minimisers(case, data):
    scores, y = case
    costs = data.draw(convex_costs(y.size))
    bends = bends_of(scores, y)
    losses = loss_at(bends, scores, y, costs)
    best = bends[losses <= losses.min() + 1e-12 * costs.total]
    found = best_intercept(scores, y, costs, data.draw(st.sampled_from([0.0, 3.0, -1e3])))
    reach = 1e-10 * max(1.0, np.abs(scores).max())
    assert found == pytest.approx(0.5 * (best[0] + best[-1]), abs=reach)
    assert loss_at(found, scores, y, costs) <= losses.min() + 1e-12 * costs.total


@given(scored(), st.data())
@settings(max_examples=60)
def test_squared_hinge_against_scipy(case, data):
    scores, y = case
    costs = data.draw(convex_costs(y.size))
    found = best_intercept(scores, y, costs, loss=RankedSquaredHinge(costs))
    value = loss_at(found, scores, y, costs, "squared_hinge")
    kinks = np.sort(y - scores)
    theirs = minimize_scalar(
        lambda b: loss_at(b, scores, y, costs, "squared_hinge"),
        bounds=(kinks[0] - 1e-6, kinks[-1] + 1e-6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert value <= theirs.fun * (1 + 1e-9) + 1e-14 * costs.total
    scan = np.linspace(kinks[0], kinks[-1], 201)
    scanned = loss_at(scan, scores, y, costs, "squared_hinge").min()
    assert value <= scanned * (1 + 1e-12) + 1e-20 * costs.total
    lowest, highest = (1.0 - scores)[y > 0].max(), (-1.0 - scores)[y < 0].min()
    if lowest < highest:
        # All deviations vanish between the classes: the middle, as for the hinge.
        assert value <= 1e-20 * costs.total
        assert found == pytest.approx(0.5 * (lowest + highest), abs=1e-8)
    guesses = [
        best_intercept(scores, y, costs, g, loss=RankedSquaredHinge(costs)) for g in (-1e4, 7.0)
    ]
    assert guesses == pytest.approx([found, found], abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shift", [0.0, 1e6, -1e9])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_far_and_wide_scores(loss, shift, spread):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(30) < 0.4, 1.0, -1.0)
    scores = spread * (rng.normal(size=30) + y) + shift
    costs = RankCosts(30, "basic", 0.4)
    found = best_intercept(scores, y, costs, loss=LOSSES[loss](costs))
    value = loss_at(found, scores, y, costs, loss)
    resolution = 1e-15 * max(1.0, np.abs(scores).max())
    slope = 30.0 * (1.0 if loss == "hinge" else 2.0 * max(1.0, 4.0 * spread))
    middle = float(np.median(-scores))
    around = np.concatenate(
        (found + np.geomspace(1e-9, 10.0, 40), found - np.geomspace(1e-9, 10.0, 40), [middle])
    )
    values = loss_at(around, scores, y, costs, loss)
    assert value <= values.min() * (1 + 1e-12) + 100.0 * slope * resolution


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("family", ["basic", "superquantile"])
@pytest.mark.parametrize("n_samples", [1100, 5500])
def test_many_samples_against_halving(loss, family, n_samples):
    rng = np.random.default_rng(3)
    for scale in (1e-9, 1.0, 1e6):
        scores = scale * rng.normal(size=n_samples)
        y = np.where(rng.random(n_samples) < 0.3, 1.0, -1.0)
        costs = RankCosts(n_samples, family, 0.6)
        ranked = LOSSES[loss](costs)

        def value(b, scores=scores, y=y, ranked=ranked):
            return ranked.value(1.0 - y * (scores + b))

        low, high = -2.0 - 5.0 * scale, 2.0 + 5.0 * scale
        for _ in range(200):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if value(left) <= value(right) else (left, high)
        found = value(best_intercept(scores, y, costs, 0.0, loss=ranked))
        assert found <= value(low) * (1.0 + 2e-13)


@pytest.mark.parametrize("family", [("basic", 0.6), ("superquantile", 0.2), ("uniform", None)])
@pytest.mark.parametrize("noise", [1e-12, 1e-8, 1e-5])
def test_samples_that_crowd_on_the_margin(family, noise):
    """As at the end of a fit: the minimiser is one of hundreds of kinks close to the guess."""
    rng = np.random.default_rng(8)
    n_samples = 400
    y = np.where(np.arange(n_samples) % 3 == 0, 1.0, -1.0)
    scores = y * rng.normal(1.0, 1.0, size=n_samples)
    crowded = rng.random(n_samples) < 0.6
    scores[crowded] = y[crowded] + noise * rng.normal(size=int(crowded.sum()))
    costs = RankCosts(n_samples, *family, 3.0)
    nearby = bends_of(scores, y)
    nearby = nearby[np.abs(nearby) <= 20.0 * noise]
    best = loss_at(nearby, scores, y, costs).min()
    for guess in (0.0, 3.0 * noise, -0.5 * noise, 0.3):
        found = best_intercept(scores, y, costs, guess)
        assert loss_at(found, scores, y, costs) <= best * (1.0 + 1e-14)


def test_two_clouds_by_hand():
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    scores = np.array([-3.0, -2.0, 2.0, 4.0])
    costs = RankCosts(4)
    for kind in LOSSES.values():
        # Both classes keep their margin of 1 from -1 to 1.
        assert best_intercept(scores, y, costs, 0.7, loss=kind(costs)) == pytest.approx(0.0)
    # Scores of 0 and three samples against one: 3 (1 - b)^2 + (1 + b)^2 is least at 1/2.
    y = np.array([-1.0, 1.0, 1.0, 1.0])
    costs = RankCosts(4, "uniform", None)
    found = best_intercept(np.zeros(4), y, costs, loss=RankedSquaredHinge(costs))
    assert found == pytest.approx(0.5, abs=1e-9)
    assert best_intercept(np.zeros(4), y, costs) == pytest.approx(1.0)


# Costs in any order


@given(scored(), st.sampled_from([*FALLING, ("random", None)]), st.data())
@settings(max_examples=60)
def test_global_intercept_is_the_best_of_all(case, family, data):
    scores, y = case
    rng = data.draw(st.integers(0, 2**31).map(np.random.default_rng))
    costs = (
        PlainCosts(rng.exponential(size=y.size))
        if family[0] == "random"
        else RankCosts(y.size, *family)
    )
    found = global_intercept(scores, y, costs.by_rank())
    value = loss_at(found, scores, y, costs)
    bends = bends_of(scores, y)
    scan = np.concatenate((bends, np.linspace(bends[0] - 3.0, bends[-1] + 3.0, 100)))
    assert value <= loss_at(scan, scores, y, costs).min() + 1e-11 * costs.total


def stretch_around(where, scores, y, costs):
    """Ends of the stretch around a point on which the loss is constant, infinite if it has none.

    Between two bends the loss is linear, so it is constant if it is at both and in the middle.
    """
    value = loss_at(where, scores, y, costs)
    bends = bends_of(scores, y)

    def is_flat(point):
        return abs(loss_at(point, scores, y, costs) - value) <= 1e-11 * costs.total

    ends = []
    for side in (-1.0, 1.0):
        beyond = side * np.sort(side * bends[side * (bends - where) > 1e-9])
        outside = side + (beyond[-1] if beyond.size else where)
        end = where
        for bend in (*beyond, outside):
            if not (is_flat(bend) and is_flat(0.5 * (end + bend))):
                break
            end = bend
        ends.append(side * np.inf if end == outside else end)
    return ends


@given(scored(max_samples=8), st.sampled_from(FALLING), st.data())
@settings(max_examples=80)
def test_middle_of_flat(case, family, data):
    scores, y = case
    costs = RankCosts(y.size, *family)
    bends = bends_of(scores, y)
    places = np.concatenate((bends, 0.5 * (bends[1:] + bends[:-1])))
    where = float(data.draw(st.sampled_from(places.tolist())))
    low, high = stretch_around(where, scores, y, costs)
    found = middle_of_flat(scores, y, costs, where)
    expected = 0.5 * (low + high) if np.isfinite(high - low) else where
    assert found == pytest.approx(expected, abs=1e-8)
    assert loss_at(found, scores, y, costs) <= loss_at(where, scores, y, costs) + 1e-10


def test_middle_of_flat_from_its_ends():
    # Costs 0, 2, 2, 0: one deviation that grows and one that falls pay, beyond a crossing that
    # once hid the next bend. Solvers find the ends up to rounding only.
    scores, y = np.array([0.0377, -0.0396, 0.1921, 0.0315]), np.array([-1.0, -1.0, 1.0, 1.0])
    costs = RankCosts(4, "olympic", 0.5)
    low, high = stretch_around(-0.5, scores, y, costs)
    np.testing.assert_allclose([low, high], [-1.0377, -0.07625])
    for where in (low, high, low - 1e-11, high + 1e-11, low + 1e-11, 0.3 * low + 0.7 * high):
        found = middle_of_flat(scores, y, costs, where)
        assert found == pytest.approx(0.5 * (low + high), abs=1e-8)


def test_middle_of_flat_where_there_is_none():
    scores, y = np.array([-1.0, 0.5, 0.2]), np.array([-1.0, 1.0, -1.0])
    costs = RankCosts(3, "basic", 0.5)
    best = best_intercept(scores, y, costs)
    assert middle_of_flat(scores, y, costs, best) == best
    # The worst half is ignored: for b <= -1 nothing is charged, without end.
    costs = RankCosts(2, "trimmed", 0.5)
    assert middle_of_flat(np.zeros(2), np.array([-1.0, 1.0]), costs, -2.0) == -2.0


@given(scored(), st.integers(1, 20))
@settings(max_examples=40)
def test_spread_intercepts(case, number):
    scores, y = case
    found = spread_intercepts(scores, y, number)
    kinks = y - scores
    assert 1 <= found.size <= number
    assert np.all(np.diff(found) > 0.0)
    assert set(found) <= set(kinks)
    assert found[0] == kinks.min()
    if number > 1:
        assert found[-1] == kinks.max()
    if number >= y.size:
        np.testing.assert_array_equal(found, np.unique(kinks))


# Every solver returns the midpoint

SEPARABLE = np.array([[0.0], [1.0], [2.0], [5.0]])
SIGNS = np.array([-1.0, -1.0, 1.0, 1.0])
# The intercepts that are as good, by hand. Uniform: w = 0.06, and all four samples deviate for b
# from -1 to 0.7. Trimmed: w = 0.16 / 3; the worst deviation is ignored, one sample of each class
# pays while b is between -1 - w, where x = 1 keeps its margin, and -1, where x = 0 loses it.
INTERVALS = {"uniform": (-1.0, 0.7), "trimmed": (-1.0 - 0.16 / 3, -1.0)}
CASES = [("uniform", solver) for solver in REGISTRY] + [
    ("trimmed", solver) for solver in ("dca", "branch-and-bound", "miqp")
]


@pytest.mark.parametrize(("family", "solver"), CASES)
@pytest.mark.parametrize("kind", ["features", "gram"])
def test_every_solver_returns_the_midpoint(family, solver, kind):
    samples = SEPARABLE if kind == "features" else SEPARABLE @ SEPARABLE.T
    costs = RankCosts(4, family, 0.25, C=0.01)
    solution = solve(OWAProblem(SIGNS, costs, **{kind: samples}), solver)
    low, high = INTERVALS[family]
    assert solution.intercept == pytest.approx(0.5 * (low + high), abs=1e-6)


@pytest.mark.parametrize("family", INTERVALS)
def test_estimators_return_the_midpoint(family):
    low, high = INTERVALS[family]
    for shift in (0.0, 100.0):
        for clf in (
            OWASVC(0.01, weights=family, alpha=0.25, kernel="linear"),
            LinearOWASVC(0.01, weights=family, alpha=0.25),
        ):
            clf.fit(SEPARABLE + shift, SIGNS)
            moved = clf.intercept_[0] + shift * clf.coef_[0, 0]
            assert moved == pytest.approx(0.5 * (low + high), abs=1e-6)


def test_intervals_are_those_of_the_scan():
    # The oracle of the tests above: the loss along b for the optimal w.
    for family, (low, high) in INTERVALS.items():
        costs = RankCosts(4, family, 0.25, C=0.01)
        w = solve(OWAProblem(SIGNS, costs, features=SEPARABLE)).coef[0]
        scores = w * SEPARABLE.ravel()
        inside = loss_at(np.linspace(low + 1e-6, high - 1e-6, 9), scores, SIGNS, costs)
        assert np.ptp(inside) <= 1e-12
        outside = loss_at(np.array([low - 1e-2, high + 1e-2]), scores, SIGNS, costs)
        assert outside.min() >= inside.max() + 1e-5
