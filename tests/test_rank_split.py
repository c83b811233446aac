"""Rank costs taken apart: sums, rises and falls, convex minorants, envelopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owasvm.solvers.general.rank_split import (
    best_minorant,
    convex_envelope,
    pointwise_minorant,
    rising_part,
    tail_sums,
    tangent_minorant,
)
from owasvm.weights import owa_weights
from tests.oracles import owa_value
from tests.strategies import deviation_vectors, general_weights

SHAPES = [
    ("quadratic", 0.8),
    ("trigonometric", 0.4),
    ("trigonometric", 0.8),
    ("trimmed", 0.3),
    ("olympic", 0.5),
    ("basic", 0.4),
    ("uniform", None),
]


@st.composite
def rank_costs(draw, max_samples=20):
    """Non-negative costs of any shape, at any scale."""
    n_samples = draw(st.integers(1, max_samples))
    if draw(st.booleans()):
        family, alpha = draw(st.sampled_from(SHAPES))
        costs = owa_weights(n_samples, family, alpha)
    else:
        costs = draw(general_weights(n_samples))
    return draw(st.sampled_from([1.0, 1e-3, 1e4])) * costs


def minorants(costs):
    """All the library offers for given costs."""
    return [pointwise_minorant(costs)] + [
        tangent_minorant(costs, n_kept) for n_kept in range(costs.size + 1)
    ]


@given(costs=rank_costs())
def test_tail_sums_price_the_indicators_of_the_largest(costs):
    sums = tail_sums(costs)
    assert sums.shape == (costs.size + 1,)
    for j in range(costs.size + 1):
        indicator = np.zeros(costs.size)
        indicator[:j] = 1.0
        assert sums[j] == pytest.approx(owa_value(indicator, costs), rel=1e-12, abs=0.0)


@given(costs=rank_costs())
def test_what_is_left_of_the_rises_falls(costs):
    before = costs.copy()
    rising = rising_part(costs)
    falling = costs - rising
    rounding = 1e-14 * costs.size * costs.max()
    assert rising[0] == 0.0
    assert np.all(np.diff(rising) >= 0.0)
    assert np.all(np.diff(falling) <= rounding)
    # No smaller split: at every rank only one of both parts moves.
    steps = np.minimum(np.diff(rising), -np.diff(falling))
    assert np.all(steps <= rounding)
    np.testing.assert_array_equal(costs, before)


@settings(max_examples=200)
@given(costs=rank_costs())
def test_minorants_rise_and_stay_below(costs):
    rounding = 1e-13 * costs.size * costs.max()
    sums = tail_sums(costs)
    for minorant in minorants(costs):
        assert minorant.shape == costs.shape
        assert np.all(minorant >= 0.0)
        assert np.all(np.diff(minorant) >= 0.0)
        assert np.all(tail_sums(minorant) <= sums + rounding)


@settings(max_examples=200)
@given(costs=rank_costs(), data=st.data())
def test_ordered_sums_of_minorants_never_exceed(costs, data):
    deviations = data.draw(deviation_vectors(costs.size))
    value = owa_value(deviations, costs)
    scale = 1e-12 * costs.size * costs.max() * deviations.max(initial=0.0)
    for minorant in minorants(costs):
        assert owa_value(deviations, minorant) <= value + scale


@given(costs=rank_costs())
def test_pointwise_minorant_is_the_largest_below_the_costs(costs):
    expected = [min(costs[k:]) for k in range(costs.size)]
    np.testing.assert_array_equal(pointwise_minorant(costs), expected)


@given(costs=rank_costs(max_samples=12), data=st.data())
def test_no_larger_constant_below_the_kept_costs(costs, data):
    n_kept = data.draw(st.integers(0, costs.size - 1))
    minorant = tangent_minorant(costs, n_kept)
    n_free = costs.size - n_kept
    kept = minorant[n_free:]
    np.testing.assert_array_equal(kept, pointwise_minorant(costs[n_free:]))
    assert np.ptp(minorant[:n_free]) == 0.0
    raised = minorant.copy()
    raised[:n_free] += 1e-9 * costs.max()
    falls = n_kept > 0 and raised[0] > kept[0]
    exceeds = np.any(tail_sums(raised) > tail_sums(costs) + 1e-12 * costs.max())
    assert falls or exceeds


@settings(max_examples=200)
@given(costs=rank_costs(), data=st.data())
def test_best_minorant_charges_the_most(costs, data):
    deviations = np.sort(data.draw(deviation_vectors(costs.size)))
    tangents = [tangent_minorant(costs, n_kept) for n_kept in range(costs.size + 1)]
    best = best_minorant(costs, deviations)
    assert any(np.array_equal(best, tangent) for tangent in tangents)
    largest = max(owa_value(deviations, tangent) for tangent in tangents)
    scale = costs.size * costs.max() * deviations.max(initial=0.0)
    assert owa_value(deviations, best) >= largest - 1e-12 * scale


def test_rising_costs_are_their_own_minorant():
    costs = owa_weights(15, "basic", 0.4)
    np.testing.assert_array_equal(pointwise_minorant(costs), costs)
    np.testing.assert_allclose(tangent_minorant(costs, 15), costs)
    deviations = np.sort(np.random.default_rng(0).random(15))
    best = best_minorant(costs, deviations)
    assert best @ deviations == pytest.approx(costs @ deviations)


def test_best_minorant_beats_the_pointwise_one():
    costs = np.array([3.0, 1.0, 2.0])
    deviations = np.array([1.0, 1.0, 1.0])
    assert pointwise_minorant(costs) @ deviations == 4.0
    # The line to (2, 3) is below the tail sums 2, 3, 6 everywhere.
    assert best_minorant(costs, deviations).tolist() == [1.5, 1.5, 1.5]
    # With one large deviation alone the last cost is what counts.
    assert best_minorant(costs, np.array([0.0, 0.0, 1.0]))[-1] == 2.0


def chords_below(values):
    """The convex envelope by definition: at every place the lowest chord over it."""
    size = values.size
    envelope = values.copy()
    for k in range(size):
        for i in range(k):
            for j in range(k + 1, size):
                chord = values[i] + (values[j] - values[i]) * (k - i) / (j - i)
                envelope[k] = min(envelope[k], chord)
    return envelope


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 16), ties=st.booleans())
def test_convex_envelope_is_the_lowest_chord(seed, size, ties):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=size) * 10.0 ** rng.integers(-3, 4)
    if ties:
        values = np.round(values)
    envelope = convex_envelope(values)
    tolerance = 1e-12 * np.abs(values).max(initial=1.0)
    np.testing.assert_allclose(envelope, chords_below(values), rtol=0, atol=tolerance)
    assert np.all(np.diff(envelope, 2) >= -4.0 * tolerance)


def test_envelope_of_a_convex_function_is_the_function():
    values = tail_sums(np.array([4.0, 3.0, 3.0, 0.5, -1.0]))
    np.testing.assert_allclose(convex_envelope(values), values, atol=1e-15)
