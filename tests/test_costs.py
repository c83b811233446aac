"""Costs of all kinds behind one protocol: handed out consistently, and what they allow for."""

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm.costs import Costs, OwnCosts, PlainCosts, RankCosts, WeightedCosts
from owasvm.problem import OWAProblem
from owasvm.solution import Status
from owasvm.solvers import solve
from owasvm.weights import owa_weights

FloatArray = NDArray[np.float64]

CONVEX = [("basic", 0.4), ("superquantile", 0.4), ("uniform", 1.0), ("exponential", 2.0)]
FALLING = [("trimmed", 0.3), ("olympic", 0.5), ("trigonometric", 0.8)]


def make(kind: str, n_samples: int, rng: np.random.Generator, family=("basic", 0.4)) -> Costs:
    C = float(rng.choice([0.25, 1.0, 8.0]))
    if kind == "own":
        return OwnCosts(rng.exponential(size=n_samples) + 0.01, C)
    mass = rng.uniform(0.2, 3.0, size=n_samples) if kind == "weighted" else None
    return RankCosts(n_samples, *family, C, mass)


def handed_out(costs: Costs, order: NDArray[np.int64]) -> FloatArray:
    """Cost of each sample when `order` lists them ascending."""
    out = np.empty(order.size)
    out[order] = costs.in_order(order)
    return out


@pytest.mark.parametrize("kind", ["plain", "weighted", "own"])
@pytest.mark.parametrize("family", [*CONVEX, *FALLING])
def test_orders_are_handed_out_consistently(kind, family):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n_samples = int(rng.integers(1, 12))
        costs = make(kind, n_samples, rng, family)
        assert costs.n_samples == n_samples
        ascending = rng.permutation(n_samples)
        charged = costs.in_order(ascending)
        assert charged.shape == (n_samples,) and charged.min() >= 0.0
        assert charged.sum() == pytest.approx(costs.total, rel=1e-12)
        # From the largest on, all or only some of them.
        for number in range(n_samples + 1):
            largest = ascending[::-1][:number]
            np.testing.assert_allclose(
                costs.largest_first(largest),
                charged[::-1][:number],
                rtol=1e-10,
                atol=1e-13 * costs.total,
            )
            assert costs.largest_sum(number) >= charged[n_samples - number :].sum() * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["plain", "weighted", "own"])
def test_largest_sum_holds_for_every_set(kind):
    rng = np.random.default_rng(1)
    for family in [*CONVEX, *FALLING]:
        costs = make(kind, 5, rng, family)
        for number in range(6):
            dearest = max(
                np.sort(handed_out(costs, np.array(order)))[5 - number :].sum()
                for order in permutations(range(5))
            )
            assert costs.largest_sum(number) >= dearest * (1 - 1e-12)
    assert make("plain", 5, rng, ("trimmed", 0.3)).largest_sum(0) == 0.0


@pytest.mark.parametrize("kind", ["plain", "weighted", "own"])
@pytest.mark.parametrize("family", CONVEX)
def test_excess_against_enumeration(kind, family):
    # The dual set is the convex hull of what all orders hand out, and everything below: its
    # largest products with a direction are those of one of the orders.
    rng = np.random.default_rng(2)
    for _ in range(15):
        n_samples = int(rng.integers(1, 6))
        costs = make(kind, n_samples, rng, family)
        dual = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.8)
        vertices = [handed_out(costs, np.array(p)) for p in permutations(range(n_samples))]
        tightest = 0.0
        for members in range(1, 2**n_samples):
            inside = np.array([members >> i & 1 for i in range(n_samples)], dtype=bool)
            allowed = max(vertex[inside].sum() for vertex in vertices)
            tightest = max(tightest, dual[inside].sum() / allowed if allowed > 0 else np.inf)
        assert costs.excess(dual) == pytest.approx(tightest, rel=1e-12)
        for vertex in vertices:
            assert costs.excess(vertex) <= 1.0 + 1e-12
        assert costs.excess(np.zeros(n_samples)) == 0.0


def test_excess_of_falling_costs_is_never_too_small():
    rng = np.random.default_rng(3)
    for family in FALLING:
        plain = make("plain", 5, rng, family)
        # Never larger than 1 for what belongs to a non-decreasing minorant.
        minorant = PlainCosts(np.full(5, plain.by_rank().min()))
        assert plain.excess(minorant.by_rank()) <= 1.0


def test_excess_where_nothing_may_be_charged():
    assert PlainCosts(np.zeros(3)).excess(np.array([0.0, 1.0, 0.0])) == np.inf
    assert PlainCosts(np.zeros(3)).excess(np.zeros(3)) == 0.0


def test_plain_costs_are_those_of_the_weights():
    costs = RankCosts(4, "basic", 0.5, 3.0)
    assert isinstance(costs, PlainCosts)
    np.testing.assert_allclose(costs.by_rank(), 3.0 * owa_weights(4, "basic", 0.5))
    assert costs.convex and costs.C == 3.0 and costs.sample_weight is None
    assert costs.total == pytest.approx(12.0)
    assert not RankCosts(4, "trimmed", 0.5).convex
    # Falls of one unit in the last place are rounding.
    fallen = PlainCosts(np.array([1.0, 2.0, np.nextafter(2.0, 0.0)]))
    assert fallen.convex and np.all(np.diff(fallen.by_rank()) >= 0.0)
    assert PlainCosts(np.array([1.0, 3.0])).C == 2.0
    # An array is what it is, whatever its scale.
    array = RankCosts(2, [1.0, 3.0], C=2.0)
    np.testing.assert_allclose(array.by_rank(), [1.0, 3.0])


def test_weighted_costs_are_those_of_the_shares():
    costs = RankCosts(3, "superquantile", 0.5, 2.0, [1.0, 2.0, 1.0])
    assert isinstance(costs, WeightedCosts)
    assert costs.total == pytest.approx(8.0)
    # The worst half of a weight of 4, each unit of it for 2 * 2.
    np.testing.assert_allclose(costs.in_order(np.array([0, 1, 2])), [0.0, 4.0, 4.0])
    np.testing.assert_allclose(costs.in_order(np.array([0, 2, 1])), [0.0, 0.0, 8.0])


MASSES = np.array([0.7, 0.8, 0.9, 1.1, 0.75, 0.75, 5e-4])


@pytest.mark.parametrize("unit", [1.0, 1e7], ids=["fractions", "many copies"])
def test_callables_that_bend_where_no_slice_ends(unit):
    """A quantifier that spares the first masses is not concave, however few they are."""
    spares = WeightedCosts(unit * MASSES, lambda r: np.where(r < 2e-4, 0.0, r), None, 1.0)
    assert not spares.convex
    for concave in (np.sqrt, lambda r: np.minimum(r / 0.3, 1.0), lambda r: 1.0 * r):
        assert WeightedCosts(unit * MASSES, concave, None, 1.0).convex


def test_callables_of_masses_that_are_all_different():
    masses = np.random.default_rng(0).lognormal(sigma=3.0, size=300)
    for power in (0.2, 0.9, 1.0):
        assert WeightedCosts(masses, lambda r, p=power: r**p, None, 1.0).convex
    assert not WeightedCosts(masses, lambda r: np.where(r < 1e-6, 0.0, r), None, 1.0).convex


@pytest.mark.parametrize("family", ["basic", "superquantile", "quadratic", "trimmed"])
def test_whole_numbers_cost_what_as_many_copies_do(family):
    rng = np.random.default_rng(4)
    mass = rng.integers(1, 6, size=40).astype(float)
    costs = RankCosts(40, family, 0.3, 2.0, mass)
    by_copy = RankCosts(int(mass.sum()), family, 0.3, 2.0).by_rank()
    order = rng.permutation(40)
    begin = np.concatenate(([0], np.cumsum(mass[order])[:-1])).astype(int)
    expected = np.add.reduceat(by_copy, begin)
    np.testing.assert_allclose(costs.in_order(order), expected, rtol=1e-13, atol=1e-13)
    largest = order[::-1][:7]
    np.testing.assert_allclose(costs.largest_first(largest), expected[::-1][:7], atol=1e-13)
    # A single copy loses no digit to the sum of the others.
    alone = np.flatnonzero(mass[order] == 1.0)
    np.testing.assert_array_equal(costs.in_order(order)[alone], by_copy[begin[alone]])


def test_what_there_is_not():
    weighted = RankCosts(2, "basic", 0.6, 1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="not one cost per rank"):
        weighted.by_rank()
    own = OwnCosts(np.array([1.0, 2.0]), 3.0)
    with pytest.raises(ValueError, match="none per rank"):
        own.by_rank()
    with pytest.raises(ValueError, match="none per rank"):
        own.profile()
    np.testing.assert_array_equal(own.in_order(np.array([1, 0])), [6.0, 3.0])
    assert own.total == 9.0 and own.convex


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "C must be a positive finite number, got 0.0"),
        ({"C": np.nan}, "C must be a positive finite number, got nan"),
        ({"C": 1e308}, "C=1e.308 times the weights overflows when squared; take"),
        ({"C": 1e150}, "C=1e.150 times the weights overflows when squared; take a smaller C"),
        ({"C": 1e-301}, "C=1e-301 times the weights underflows; take a larger C"),
        ({"C": 1e-250, "sample_weight": [1e-60] * 3}, "underflows; take a larger C"),
        ({"C": 1e307, "sample_weight": [9.0, 9.0, 9.0]}, "overflows when squared"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight must hold 3 positive finite numbers"),
        ({"sample_weight": [1.0, 0.0, 1.0]}, "drop the samples of weight zero first"),
        ({"sample_weight": [1.0, np.inf, 1.0]}, "positive finite"),
        ({"weights": [1.0, 1.0, 2.0], "sample_weight": np.ones(3)}, "cannot be combined"),
        ({"weights": "bsaic"}, "Unknown weight family 'bsaic'; use one of uniform, basic"),
        ({"alpha": -1.0}, "alpha=-1.0 is out of range"),
    ],
)
def test_errors_name_the_parameter(arguments, message):
    with pytest.raises(ValueError, match=message):
        RankCosts(3, **arguments)


def test_a_cost_per_sample_is_the_weighted_svm():
    X, labels = make_moons(70, noise=0.35, random_state=0)
    y = np.where(labels == 1, 1.0, -1.0)
    rng = np.random.default_rng(4)
    mass = rng.uniform(0.1, 4.0, size=70)
    gram = rbf_kernel(X, gamma=0.7)
    for samples, theirs in (
        ({"gram": gram}, SVC(C=2.0, gamma=0.7, tol=1e-10)),
        ({"features": X}, SVC(C=2.0, kernel="linear", tol=1e-10)),
    ):
        problem = OWAProblem(y, OwnCosts(mass, 2.0), **samples)
        solution = solve(problem, tol=1e-10)
        assert solution.status is Status.OPTIMAL
        values = problem.scores(solution.dual) + solution.intercept
        expected = theirs.fit(X, y, sample_weight=mass).decision_function(X)
        np.testing.assert_allclose(values, expected, atol=1e-5)
        assert np.all(solution.dual <= 2.0 * mass * (1 + 1e-9))


def test_equal_costs_per_sample_are_uniform_weights():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    for loss in ("hinge", "squared_hinge"):
        own = OWAProblem(y, OwnCosts(np.ones(30), 1.5), features=X, loss=loss)
        uniform = OWAProblem(y, RankCosts(30, "uniform", None, 1.5), features=X, loss=loss)
        assert solve(own).objective == pytest.approx(solve(uniform).objective, rel=1e-6)
