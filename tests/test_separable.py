"""The separable bound: layers, one-sample problems, coordinates, and all of it against F itself.

Everything that is claimed to be a lower bound is compared with the objective at many points.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import Settings, solve
from owasvm.solvers.general.candidates import evaluate
from owasvm.solvers.general.emphasis import emphasise_margin, refit_emphases
from owasvm.solvers.general.geometry import CentredData, Frame, slack_ranges
from owasvm.solvers.general.rank_split import (
    convex_envelope,
    rising_part,
    tail_sums,
    tangent_minorant,
)
from owasvm.solvers.general.relaxation import Box, CoordinateTerms, Relaxer, Split
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.separable import Layers, SampleProblems, make_layers
from owasvm.solvers.general.tuning import EmphasisTuning
from tests.oracles import primal_objective, psd_factor

seeds = st.integers(0, 2**32 - 1)


def make_relaxer(problem, frame, split, accuracy):
    """Relaxations to an accuracy, without limits."""
    search = Search(problem, Settings())
    search.accuracy = accuracy
    return Relaxer(search, frame, split)


# Layers


def falling_costs(rng, n_samples):
    """Non-increasing numbers of either sign, with ties."""
    costs = np.sort(rng.normal(size=n_samples) * 10.0 ** rng.integers(-2, 3))[::-1]
    return np.round(costs, 1) if rng.random() < 0.3 else costs


def slack_intervals(rng, n_samples):
    """Intervals of slacks, some of them wide, some on one side of 0, some single points."""
    lower = rng.normal(0.3, 1.0, size=n_samples)
    width = rng.choice([0.0, 0.1, 1.0, 4.0], size=n_samples)
    return lower, lower + width * rng.random(n_samples)


def possible_counts(levels, lower, upper):
    """Smallest and largest number of deviations above t, for t within each layer."""
    ends = np.append(levels[1:], np.inf)
    least = [np.count_nonzero(lower >= end) for end in ends]
    most = [np.count_nonzero(upper > level) for level in levels]
    return np.array(least, dtype=float), np.array(most, dtype=float)


def ranks(n_samples):
    """Counts from 0 to that of all samples."""
    return np.arange(n_samples + 1.0)


def random_levels(rng, lower, upper):
    """Levels that have nothing to do with the samples, and some that have."""
    free = rng.exponential(size=rng.integers(1, 8))
    tied = np.concatenate([lower[lower > 0.0], upper[upper > 0.0]])
    return np.unique(np.concatenate([[0.0], free, tied[: rng.integers(0, tied.size + 1)]]))


@settings(max_examples=300)
@given(seed=seeds, n_samples=st.integers(1, 12), falls=st.booleans())
def test_layers_stay_below_the_ordered_sum(seed, n_samples, falls):
    rng = np.random.default_rng(seed)
    costs = falling_costs(rng, n_samples)
    if not falls:
        costs = rng.permutation(costs)
    lower, upper = slack_intervals(rng, n_samples)
    levels = random_levels(rng, lower, upper)
    counts = rng.uniform(0.0, n_samples, size=levels.size)
    if rng.random() < 0.5:
        counts = np.round(counts)
    counts[-1] = 0.0
    tail = convex_envelope(tail_sums(costs))
    limits = possible_counts(levels, lower, upper)
    layers = Layers(levels, *make_layers(tail, ranks(n_samples), levels, counts, *limits))
    scale = np.abs(costs).sum() * max(1.0, upper.max(), levels.max())
    for _ in range(40):
        slack = lower + (upper - lower) * rng.choice([0.0, rng.random(), 1.0], size=n_samples)
        deviations = np.maximum(slack, 0.0)
        bound = layers.constant + layers.value(deviations).sum()
        assert bound <= costs @ np.sort(deviations) + 1e-12 * scale


@settings(max_examples=200)
@given(seed=seeds, n_samples=st.integers(1, 12), known=st.booleans())
def test_layers_are_exact_where_they_touch(seed, n_samples, known):
    rng = np.random.default_rng(seed)
    costs = falling_costs(rng, n_samples)
    slack = rng.normal(0.5, 1.0, size=n_samples)
    deviations = np.maximum(slack, 0.0)
    levels = np.unique(np.append(deviations, 0.0))
    counts = np.array([np.count_nonzero(deviations > level) for level in levels], dtype=float)
    # Nothing known about the slacks, or everything.
    spread = 0.0 if known else 10.0
    limits = possible_counts(levels, slack - spread, slack + spread)
    layers = Layers(
        levels, *make_layers(tail_sums(costs), ranks(n_samples), levels, counts, *limits)
    )
    bound = layers.constant + layers.value(deviations).sum()
    scale = max(1.0, np.abs(costs).sum() * deviations.max())
    assert bound == pytest.approx(costs @ np.sort(deviations), abs=1e-12 * scale)


def test_layers_of_separated_samples_are_exact_everywhere():
    # Who has which rank is certain: whatever the counts asked for, nothing is lost.
    costs = np.array([5.0, 2.0, 1.0])
    lower, upper = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    levels = np.array([0.0, 1.0, 2.0, 3.0])
    limits = possible_counts(levels, lower, upper)
    made = make_layers(tail_sums(costs), ranks(3), levels, np.zeros(4), *limits)
    layers = Layers(levels, *made)
    for share in (0.0, 0.3, 1.0):
        deviations = lower + share * (upper - lower)
        bound = layers.constant + layers.value(deviations).sum()
        assert bound == pytest.approx(costs @ deviations)


def test_heights_add_the_slopes_up():
    layers = Layers(np.array([0.0, 1.0, 3.0]), np.array([2.0, -1.0, 0.5]), 7.0)
    assert layers.heights.tolist() == [0.0, 2.0, 0.0]
    given_at = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 5.0])
    assert layers.value(given_at).tolist() == [0.0, 1.0, 2.0, 1.0, 0.0, 1.0]


# One-sample problems


class OneSampleProblems:
    """Random one-sample problems and the value of each at any slack."""

    def __init__(self, seed, n_samples=6):
        rng = np.random.default_rng(seed)
        self.coef = rng.normal(0.5, 1.0, size=n_samples)
        self.centre = rng.normal(0.5, 1.0, size=n_samples)
        self.rho = 10.0 ** rng.uniform(-2, 2, size=n_samples)
        self.rising = rng.exponential(size=n_samples) * (rng.random() < 0.7)
        self.lower, self.upper = slack_intervals(rng, n_samples)
        levels = random_levels(rng, self.lower, self.upper)
        self.layers = Layers(levels, rng.normal(0.5, 1.0, size=levels.size), 0.0)
        self.room = rng.choice([0.0, 1e-3, 0.1, 2.0])

    def make(self):
        return SampleProblems(
            self.coef,
            self.centre,
            self.rho,
            self.rising,
            self.lower,
            self.upper,
            self.layers,
        )

    def value(self, slack):
        """Of all problems at given slacks, one each."""
        deviations = np.maximum(slack, 0.0)
        curved = 0.5 * self.rho * (slack - self.centre) ** 2
        own = self.rising * deviations + self.layers.value(deviations)
        return -self.coef * slack + curved + own

    def grid(self):
        """Slacks over all intervals, the ends, 0 and the levels included, a row each."""
        span = np.linspace(0.0, 1.0, 400)[:, np.newaxis]
        spread = self.lower + (self.upper - self.lower) * span
        kinks = np.repeat(np.append(self.layers.levels, 0.0)[:, np.newaxis], self.coef.size, 1)
        return np.clip(np.vstack([spread, kinks]), self.lower, self.upper)


@settings(max_examples=150)
@given(seed=seeds)
def test_sample_minima_are_the_lowest_on_a_grid(seed):
    problems = OneSampleProblems(seed)
    minima, slacks = problems.make().minimise()
    on_grid = np.array([problems.value(slack) for slack in problems.grid()])
    scale = 1e-12 * max(1.0, np.abs(on_grid).max())
    assert np.all(minima <= on_grid.min(axis=0) + scale)
    assert np.all(slacks >= problems.lower)
    assert np.all(slacks <= problems.upper)
    np.testing.assert_allclose(problems.value(slacks), minima, atol=scale, rtol=0)


@settings(max_examples=150)
@given(seed=seeds)
def test_tightened_intervals_keep_everything_within_the_room(seed):
    problems = OneSampleProblems(seed)
    minima, _ = problems.make().minimise()
    lower, upper = problems.make().tighten(minima, problems.room)
    scale = max(1.0, np.abs(minima).max())
    assert np.all(lower >= problems.lower) and np.all(upper <= problems.upper)
    for slack in problems.grid():
        within = problems.value(slack) <= minima + problems.room - 1e-10 * scale
        assert np.all(slack[within] >= lower[within] - 1e-9)
        assert np.all(slack[within] <= upper[within] + 1e-9)
    if problems.room > 0.0:
        # Nothing more can go: the ends are within the room themselves.
        limit = minima + problems.room
        assert np.all(problems.value(lower) <= limit + 1e-9 * scale)
        assert np.all(problems.value(upper) <= limit + 1e-9 * scale)


def test_intervals_without_room_are_reversed():
    problems = OneSampleProblems(3)
    minima, _ = problems.make().minimise()
    lower, upper = problems.make().tighten(minima, -0.1)
    wide = problems.upper > problems.lower
    assert wide.any()
    assert np.all(lower[wide] > upper[wide])


# Geometry


def labelled(seed, n_samples, n_features):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] + rng.normal(size=n_samples) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def problem_of_kind(kind, X, y, costs):
    if kind == "gram":
        return OWAProblem(y, costs, gram=rbf_kernel(X, gamma=0.4))
    if kind == "sparse":
        return OWAProblem(y, costs, features=sp.csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0)))
    if kind == "far away":
        return OWAProblem(y, costs, features=X + 20.0)
    if kind == "duplicates":
        return OWAProblem(y, costs, features=np.repeat(X[: -(-y.size // 2)], 2, axis=0)[: y.size])
    if kind == "constant feature":
        return OWAProblem(y, costs, features=np.hstack([X, np.full((y.size, 1), 3.0)]))
    return OWAProblem(y, costs, features=X)


KINDS = ["features", "wide", "gram", "sparse", "far away", "duplicates", "constant feature"]


def random_problem(kind, seed, n_samples=12, weights=("quadratic", 0.8), C=1.0):
    X, y = labelled(seed, n_samples, n_samples + 3 if kind == "wide" else 4)
    family, alpha = weights
    return problem_of_kind(kind, X, y, RankCosts(n_samples, family, alpha, C))


def centred_data(problem, emphases, seed=0):
    """The data with equal emphases, with any, or with those the solver likes."""
    rng = np.random.default_rng(seed)
    if emphases == "equal":
        return CentredData(problem)
    if emphases == "any":
        return CentredData(problem, 10.0 ** rng.uniform(-1, 1, size=problem.n_samples))
    slack = rng.normal(size=problem.n_samples)
    slack[0] = 0.5
    data = emphasise_margin(problem, slack, EmphasisTuning())
    if emphases == "refitted":
        spreads = np.maximum(rng.normal(size=problem.n_samples), 0.0) + 1e-3
        return refit_emphases(data, spreads, 1, EmphasisTuning())
    return data


EMPHASES = ["equal", "any", "margin", "refitted"]


def test_emphases_without_a_sample_near_the_margin_are_equal():
    problem = random_problem("features", 0)
    slack = np.full(problem.n_samples, -5.0)
    data = emphasise_margin(problem, slack, EmphasisTuning())
    assert np.all(data.emphases == data.emphases[0])


@pytest.mark.parametrize("kind", ["features", "gram"])
def test_refitted_emphases_go_where_the_spreads_are(kind):
    problem = random_problem(kind, 3, n_samples=30)
    spreads = np.zeros(30)
    spreads[:6] = 1.0
    data = CentredData(problem)
    for _ in range(10):
        data = refit_emphases(data, spreads, 0, EmphasisTuning())
    assert data.emphases[:6].mean() > 10.0 * data.emphases[6:].max()
    # The curvature that lifts the bound grows: that is what it is for.
    before = spreads.sum() / CentredData(problem).axes.largest_remaining(0)
    assert spreads @ data.emphases / data.axes.largest_remaining(0) > 1.5 * before


def rows_of(problem):
    """Rows whose inner products are those of the samples."""
    if problem.gram is not None:
        return psd_factor(problem.gram)
    return problem.features.toarray() if sp.issparse(problem.features) else problem.features


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("emphases", EMPHASES)
def test_coordinates_and_classifiers_are_inverse(kind, emphases):
    rng = np.random.default_rng(0)
    problem = random_problem(kind, 1)
    y = problem.y
    data = centred_data(problem, emphases)
    assert data.n_directions >= 3
    for n_directions in range(4):
        frame = Frame(data, n_directions)
        for _ in range(5):
            rest = rng.normal(size=y.size)
            coordinates = rng.normal(size=1 + n_directions)
            coef, intercept = frame.classifier(rest, coordinates)
            back = data.coordinates(coef, intercept, n_directions)
            np.testing.assert_allclose(back, coordinates, atol=1e-9)
            vector = frame.operator.vector(y * rest)
            values = frame.offsets(coordinates) + vector.scores
            np.testing.assert_allclose(problem.scores(coef) + intercept, values, atol=1e-8)
            squared_norm = (y * coef) @ problem.scores(coef)
            split = coordinates[1:] @ coordinates[1:] + frame.operator.inner(vector, vector)
            assert squared_norm == pytest.approx(split, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("emphases", EMPHASES)
def test_columns_are_orthogonal_and_the_rest_has_its_curvature(kind, emphases):
    rng = np.random.default_rng(0)
    problem = random_problem(kind, 2)
    y = problem.y
    data = centred_data(problem, emphases)
    for n_directions in range(4):
        frame = Frame(data, n_directions)
        assert np.all(frame.rho > 0.0)
        products = frame.columns.T @ (frame.rho[:, np.newaxis] * frame.columns)
        np.testing.assert_allclose(
            products, np.diag(frame.stiffness), atol=1e-7 * products.max(), rtol=1e-7
        )
        # Not a hair less than the lengths: the bound subtracts it.
        assert np.all(frame.stiffness >= products.diagonal())
        for _ in range(10):
            vector = frame.operator.vector(rng.normal(size=y.size))
            curvature = frame.rho @ vector.scores**2
            across = frame.columns.T @ (frame.rho * vector.scores)
            np.testing.assert_allclose(across, 0.0, atol=1e-7 * max(1.0, curvature))
            assert frame.operator.inner(vector, vector) >= curvature * (1 - 1e-9)
            # And no sample sees more of w than its norm allows.
            reach = frame.norms * np.sqrt(frame.operator.inner(vector, vector))
            assert np.all(np.abs(vector.scores) <= reach * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("emphases", EMPHASES)
def test_curvature_inequality(kind, emphases):
    rng = np.random.default_rng(0)
    problem = random_problem(kind, 3)
    y = problem.y
    data = centred_data(problem, emphases)
    rho = data.emphases / data.axes.largest_remaining(0)
    rows = rows_of(problem)
    centred = rows - (rho / rho.sum()) @ rows
    leading = np.linalg.svd(np.sqrt(rho)[:, np.newaxis] * centred)[2][0]
    losses = []
    for trial in range(50):
        change = leading if trial == 0 else rng.normal(size=rows.shape[1])
        shift = rng.normal() * 10.0 ** rng.integers(-2, 2)
        slack_change = -y * (centred @ change + shift)
        left = 0.5 * change @ change
        right = 0.5 * rho @ slack_change**2 - 0.5 * rho.sum() * shift**2
        losses.append((left - right) / max(1.0, rho.sum() * shift**2))
    assert min(losses) >= -1e-9
    # Along the leading direction nothing is lost.
    assert losses[0] == pytest.approx(0.0, abs=1e-7)


def test_least_of_the_coordinate_terms_on_a_grid():
    rng = np.random.default_rng(0)
    for _ in range(100):
        terms = CoordinateTerms(
            pull=rng.normal(size=3),
            regularised=np.array([0.0, 1.0, 1.0]),
            stiffness=10.0 ** rng.uniform(-2, 1, size=3),
            at=rng.normal(size=3),
        )
        low = terms.at - rng.exponential(size=3)
        high = terms.at + rng.exponential(size=3)
        grid = low + (high - low) * np.linspace(0.0, 1.0, 1001)[:, np.newaxis]
        on_grid = np.array([terms.value(t) for t in grid]).min(axis=0)
        least = terms.least(low, high)
        assert np.all(least <= on_grid + 1e-12)
        np.testing.assert_allclose(least, on_grid, atol=1e-4)


# The whole bound


def weights_of_shape(shape, n_samples, rng):
    if shape == "random":
        return rng.exponential(size=n_samples)
    if shape == "falling":
        return np.sort(rng.exponential(size=n_samples))[::-1]
    if shape == "hurwicz":
        weights = np.zeros(n_samples)
        weights[[0, -1]] = 0.4, 0.6
        return weights
    if shape == "dip":
        weights = np.linspace(1.0, 2.0, n_samples)
        weights[-2] = 0.2
        return weights
    return shape


SHAPES = [
    ("quadratic", 0.8),
    ("trigonometric", 0.4),
    ("trimmed", 0.2),
    ("olympic", 0.6),
    "random",
    "falling",
    "hurwicz",
    "dip",
]


class BoxedProblem:
    """A problem, an incumbent, and a box of classifiers around it."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rng = rng
        n_samples = int(rng.integers(5, 14))
        shape = weights_of_shape(SHAPES[seed % len(SHAPES)], n_samples, rng)
        family, alpha = shape if isinstance(shape, tuple) else (shape, None)
        kind = KINDS[int(rng.integers(len(KINDS)))]
        C = 10.0 ** rng.uniform(-1.5, 1.5)
        self.problem = random_problem(kind, seed, n_samples, (family, alpha), C)
        self.incumbent = solve(self.problem, "dca")
        self.data = centred_data(self.problem, EMPHASES[int(rng.integers(3))], seed)
        self.n_directions = int(rng.integers(0, min(3, self.data.n_directions) + 1))
        self.frame = Frame(self.data, self.n_directions)
        self.own = self.data.coordinates(
            self.incumbent.dual, self.incumbent.intercept, self.n_directions
        )
        half = rng.choice([0.0, 1e-3, 0.03, 0.5]) * rng.random(1 + self.n_directions)
        self.at = self.own + half * rng.uniform(-1.0, 1.0, size=half.size)
        # Only classifiers up to this objective are claimed to be in the intervals of the slacks.
        self.within = 3.0 * max(self.incumbent.objective, 0.1)
        slacks = slack_ranges(self.problem, self.data, self.within)
        self.box = Box(self.at - half, self.at + half, *slacks)

    def relaxer(self):
        costs = self.problem.costs.ascending
        n_kept = int(self.rng.integers(-1, costs.size))
        rising = rising_part(costs) if n_kept < 0 else tangent_minorant(costs, n_kept)
        split = Split(rising, convex_envelope(tail_sums(costs - rising)))
        return make_relaxer(self.problem, self.frame, split, 1e-7)

    def rounds(self, target):
        relaxer = self.relaxer()
        start = relaxer.start(self.incumbent.dual, self.at)
        return relaxer.bound(self.box, start, target, 4)

    def classifiers(self, point, n_points=120):
        """Classifiers in the box: objective and slacks, near the incumbent and all over."""
        rng, y = self.rng, self.problem.y
        for trial in range(n_points):
            share = rng.random(self.at.size)
            if trial % 3 == 2:
                share = np.round(share)
            coordinates = self.box.low + (self.box.high - self.box.low) * share
            if trial < 2:
                coordinates = self.own if trial else self.at
            base = self.incumbent.dual if trial % 2 else point.coef
            noise = 0.0 if trial < 2 else 10.0 ** rng.uniform(-4, 0.5)
            rest = base + noise * rng.normal(size=y.size)
            classifier = evaluate(self.problem, *self.frame.classifier(rest, coordinates))
            slack = 1.0 - y * (self.problem.scores(classifier.coef) + classifier.intercept)
            if classifier.objective <= self.within:
                yield classifier.objective, slack


def is_inside(slack, box, tolerance=1e-9):
    return bool(np.all(slack >= box.lower - tolerance) and np.all(slack <= box.upper + tolerance))


@pytest.mark.parametrize("seed", range(48))
def test_bound_of_a_box_is_below_every_objective_in_it(seed):
    boxed = BoxedProblem(seed)
    proof, point = boxed.rounds(np.inf)
    scale = max(1.0, boxed.incumbent.objective)
    seen = 0
    for value, slack in boxed.classifiers(point):
        assert is_inside(slack, boxed.box)
        assert proof.value <= value + 1e-9 * scale
        seen += 1
    assert seen > 0
    assert np.all(proof.drops >= -1e-12 * scale)


@pytest.mark.parametrize("seed", range(100, 148))
def test_bound_and_intervals_with_a_target(seed):
    boxed = BoxedProblem(seed)
    scale = max(1.0, boxed.incumbent.objective)
    share = boxed.rng.choice([-0.1, -0.01, 0.0, 0.01])
    target = boxed.incumbent.objective + share * scale
    proof, point = boxed.rounds(target)
    for value, slack in boxed.classifiers(point):
        # Whatever was cut off on the way, the bound is one for the whole box ...
        assert proof.value <= value + 1e-9 * scale
        # ... and everything below the target is still in the intervals.
        if value < target - 1e-9 * scale:
            assert is_inside(slack, proof.box, 1e-7)


@pytest.mark.parametrize("seed", range(200, 232))
def test_bound_is_the_inequality_minimised(monkeypatch, seed):
    calls = []
    minimise = SampleProblems.minimise

    def watched(problems):
        calls.append((problems, minimise(problems)))
        return calls[-1][1]

    monkeypatch.setattr(SampleProblems, "minimise", watched)
    boxed = BoxedProblem(seed)
    relaxer, frame, y = boxed.relaxer(), boxed.frame, boxed.problem.y
    start = relaxer.start(boxed.incumbent.dual, boxed.at)
    proof, point = relaxer.bound(boxed.box, start, np.inf, 1)
    problems, (minima, _) = calls[-1]
    coef, slack, rho = problems.coef, problems.centre, problems.rho
    rising, layers = problems.rising, problems.layers
    # The two sides of the inequality at other classifiers, with every slack where it is.
    base = float(coef.sum()) - 0.5 * point.squared_norm + layers.constant
    pull = frame.columns.T @ (y * coef)
    at = CoordinateTerms(pull, frame.regularised, frame.stiffness, point.coordinates)
    scale = max(1.0, boxed.incumbent.objective)
    others = [
        (coef, point.coordinates + shift) for shift in boxed.rng.normal(size=(20, boxed.at.size))
    ]
    others += [
        (coef + boxed.rng.normal(size=y.size), point.coordinates + 0.1 * boxed.rng.normal())
        for _ in range(20)
    ]
    for rest, coordinates in others:
        classifier = evaluate(boxed.problem, *frame.classifier(rest, coordinates))
        other = 1.0 - y * (boxed.problem.scores(classifier.coef) + classifier.intercept)
        if not is_inside(other, boxed.box):
            continue
        deviations = np.maximum(other, 0.0)
        own = -coef * other + 0.5 * rho * (other - slack) ** 2
        own += rising * deviations + layers.value(deviations)
        terms = at.value(coordinates)
        assert base + own.sum() + terms.sum() <= classifier.objective + 1e-9 * scale
        assert np.all(own >= minima - 1e-9 * scale)
    least = at.least(boxed.box.low, boxed.box.high)
    assert proof.value == pytest.approx(base + minima.sum() + least.sum(), rel=1e-7)


@pytest.mark.parametrize("emphases", EMPHASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bound_along_the_intercept_alone(shape, emphases):
    # Samples that coincide: F is known exactly, and where weights fall it is not convex in b.
    rng = np.random.default_rng(0)
    y = np.where(np.arange(12) % 3 > 0, 1.0, -1.0)
    weights = weights_of_shape(shape, 12, rng)
    family, alpha = weights if isinstance(weights, tuple) else (weights, None)
    costs = RankCosts(12, family, alpha, 1.0)
    problem = OWAProblem(y, costs, gram=np.zeros((12, 12)))
    data = centred_data(problem, emphases)
    wide = np.full(12, -10.0), np.full(12, 10.0)
    for _ in range(20):
        centre, half = rng.uniform(-2.0, 2.0), 10.0 ** rng.uniform(-3, 0.3)
        box = Box(np.array([centre - half]), np.array([centre + half]), *wide)
        grid = np.linspace(centre - half, centre + half, 201)
        values = [costs.ascending @ np.sort(np.maximum(0.0, 1.0 - y * b)) for b in grid]
        rising = tangent_minorant(costs.ascending, int(rng.integers(0, 12)))
        split = Split(rising, convex_envelope(tail_sums(costs.ascending - rising)))
        relaxer = make_relaxer(problem, Frame(data, 0), split, 1e-7)
        start = relaxer.start(np.zeros(12), box.middle)
        proof, _ = relaxer.bound(box, start, np.inf, 4)
        assert proof.value <= min(values) + 1e-9 * max(1.0, min(values))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bound_is_exact_where_everything_is_known(shape):
    # Samples that coincide, a single intercept: nothing is open.
    rng = np.random.default_rng(1)
    y = np.where(np.arange(12) % 3 > 0, 1.0, -1.0)
    weights = weights_of_shape(shape, 12, rng)
    family, alpha = weights if isinstance(weights, tuple) else (weights, None)
    costs = RankCosts(12, family, alpha, 1.0)
    problem = OWAProblem(y, costs, gram=np.zeros((12, 12)))
    rising = rising_part(costs.ascending)
    split = Split(rising, convex_envelope(tail_sums(costs.ascending - rising)))
    relaxer = make_relaxer(problem, Frame(CentredData(problem), 0), split, 1e-9)
    for b in rng.uniform(-2.0, 2.0, size=10):
        slack = 1.0 - y * b
        box = Box(np.array([b]), np.array([b]), slack - 1e-9, slack + 1e-9)
        start = relaxer.start(np.zeros(12), np.array([b]))
        proof, _ = relaxer.bound(box, start, np.inf, 4)
        value = costs.ascending @ np.sort(np.maximum(0.0, slack))
        assert proof.value == pytest.approx(value, abs=1e-5)


def test_bound_closes_at_the_incumbent_where_curvature_suffices():
    for family, alpha in [("trigonometric", 0.8), ("quadratic", 0.6)]:
        X, y = labelled(0, 40, 3)
        costs = RankCosts(40, family, alpha, 0.02)
        problem = OWAProblem(y, costs, gram=rbf_kernel(X, gamma=1.0))
        best = solve(problem)
        assert best.gap <= 1e-4
        data = CentredData(problem)
        at = data.coordinates(best.dual, best.intercept, 2)
        rising = rising_part(costs.ascending)
        split = Split(rising, convex_envelope(tail_sums(costs.ascending - rising)))
        relaxer = make_relaxer(problem, Frame(data, 2), split, 1e-9)
        box = Box(at, at, *slack_ranges(problem, data, best.objective))
        proof, point = relaxer.bound(box, relaxer.start(best.dual, at), np.inf, 10)
        assert best.objective - 1e-4 <= proof.value <= best.objective + 1e-9
        assert relaxer.objective(point) == pytest.approx(best.objective, abs=1e-3)


def test_objective_of_a_point_is_that_of_its_classifier():
    X, y = labelled(4, 15, 3)
    costs = RankCosts(15, "quadratic", 0.8, 2.0)
    problem = OWAProblem(y, costs, features=X)
    data = CentredData(problem)
    rng = np.random.default_rng(0)
    for n_directions in range(3):
        frame = Frame(data, n_directions)
        rising = rising_part(costs.ascending)
        split = Split(rising, tail_sums(costs.ascending - rising))
        relaxer = make_relaxer(problem, frame, split, 1e-7)
        point = relaxer.start(rng.random(15), rng.normal(size=1 + n_directions))
        coef, intercept = frame.classifier(point.coef, point.coordinates)
        expected = primal_objective(X, y, costs.ascending / 2.0, 2.0, X.T @ (y * coef), intercept)
        assert relaxer.objective(point) == pytest.approx(expected, rel=1e-10)
