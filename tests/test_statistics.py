"""Paired tests, Holm's correction and power laws of the experiments."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owasvm.experiments.statistics import (
    compare_folds,
    corrected_resampled_t_test,
    fit_power_law,
    holm,
    wilcoxon_signed_rank,
)

p_value_lists = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def by_enumeration(differences):
    """Two-sided p-value of the signed-rank test: all signs of the non-zero differences."""
    values = np.array([value for value in differences if value != 0.0])
    ranks = stats.rankdata(np.abs(values))
    observed = abs(ranks[values > 0].sum() - ranks.sum() / 2)
    extreme = [
        abs(sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign) - ranks.sum() / 2)
        >= observed - 1e-9
        for signs in itertools.product((False, True), repeat=values.size)
    ]
    return sum(extreme) / len(extreme)


def test_without_overlap_the_t_test_is_the_plain_one():
    differences = np.random.default_rng(0).normal(0.3, 1.0, size=10)
    expected = stats.ttest_1samp(differences, 0.0)
    t, p_value = corrected_resampled_t_test(differences, 0.0)
    assert t == pytest.approx(expected.statistic)
    assert p_value == pytest.approx(expected.pvalue)


def test_corrected_t_by_hand():
    # Mean 2, variance 2/3, 1/4 + 1/3 = 7/12: t = 2 / sqrt(7/18).
    t, p_value = corrected_resampled_t_test([1.0, 2.0, 3.0, 2.0], 1 / 3)
    assert t == pytest.approx(2 / math.sqrt(7 / 18))
    assert p_value == pytest.approx(2 * stats.t.sf(2 / math.sqrt(7 / 18), 3))


def test_correction_rejects_less_often_on_resampled_data():
    """Two equally good rules on overlapping training sets: the plain test finds too much."""
    rng = np.random.default_rng(1)
    plain = corrected = 0
    n_repetitions = 400
    for _ in range(n_repetitions):
        sample = rng.normal(size=60)
        differences = []
        for _ in range(15):
            order = rng.permutation(60)
            train, test = sample[order[:54]], sample[order[54:]]
            differences.append(train.mean() + 0.1 * test.mean())
        plain += corrected_resampled_t_test(differences, 0.0)[1] < 0.05
        corrected += corrected_resampled_t_test(differences, 1 / 9)[1] < 0.05
    assert plain > 0.5 * n_repetitions
    assert corrected < plain


def test_equal_differences():
    assert corrected_resampled_t_test(np.zeros(10), 1 / 9) == (0.0, 1.0)
    assert corrected_resampled_t_test(np.full(10, -0.5), 1 / 9) == (-math.inf, 0.0)
    assert wilcoxon_signed_rank(np.zeros(10)) == 1.0


@pytest.mark.parametrize("wrong", [[1.0], [[1.0, 2.0]], [1.0, np.nan], []])
def test_differences_are_checked(wrong):
    with pytest.raises(ValueError, match="at least two finite numbers"):
        corrected_resampled_t_test(wrong, 1 / 9)
    with pytest.raises(ValueError, match="at least two finite numbers"):
        wilcoxon_signed_rank(wrong)


def test_ratio_is_checked():
    with pytest.raises(ValueError, match="test_to_train_ratio must be non-negative, got -1"):
        corrected_resampled_t_test([1.0, 2.0], -1)


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_is_that_of_scipy_without_ties(seed):
    differences = np.random.default_rng(seed).normal(0.4, 1.0, size=10)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon_signed_rank(differences) == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_wilcoxon_with_ties_and_zeros_is_exact(differences):
    if not any(differences):
        assert wilcoxon_signed_rank(differences) == 1.0
        return
    assert wilcoxon_signed_rank(differences) == pytest.approx(by_enumeration(differences))


def test_rounding_noise_does_not_break_ties():
    shares = np.array([50, 51, 52, 53, 54, 55, 56, 56, 55, 54]) / 57
    more = np.array([51, 52, 53, 54, 55, 56, 57, 55, 54, 54]) / 57
    noisy = 100 * more - 100 * shares
    assert np.unique(np.abs(noisy)).size > 2
    assert wilcoxon_signed_rank(noisy) == wilcoxon_signed_rank([1] * 7 + [-1, -1, 0])


def test_holm_by_hand():
    # Sorted: 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.5 * 1, and never falling.
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([]) == []


@given(p_value_lists)
def test_holm_lies_between_nothing_and_bonferroni(p_values):
    adjusted = holm(p_values)
    for p_value, result in zip(p_values, adjusted, strict=True):
        assert p_value <= result <= min(1.0, len(p_values) * p_value) + 1e-15
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)


@given(p_value_lists, st.floats(0.001, 0.2))
def test_holm_rejects_as_the_step_down_rule(p_values, level):
    ordered = sorted(p_values)
    rejected = 0
    while rejected < len(ordered) and (len(ordered) - rejected) * ordered[rejected] <= level:
        rejected += 1
    assert sum(result <= level for result in holm(p_values)) == rejected


def test_compare_folds_counts():
    test = compare_folds([0.9, 0.8, 0.7, 0.6], [0.8, 0.8, 0.8, 0.5], 1 / 3)
    assert (test.wins, test.draws, test.losses) == (2, 1, 1)
    assert test.mean_difference == pytest.approx(0.025)
    reverse = compare_folds([0.8, 0.8, 0.8, 0.5], [0.9, 0.8, 0.7, 0.6], 1 / 3)
    assert reverse.t == pytest.approx(-test.t)
    assert reverse.t_p_value == pytest.approx(test.t_p_value)
    assert reverse.wilcoxon_p_value == test.wilcoxon_p_value


def test_compare_folds_wants_the_same_folds():
    with pytest.raises(ValueError, match=r"same folds, got shapes \(3,\) and \(2,\)"):
        compare_folds([1, 2, 3], [1, 2])


def test_power_law_is_recovered():
    law = fit_power_law([100, 200, 400, 800], 3e-6 * np.array([100, 200, 400, 800]) ** 1.5)
    assert law.exponent == pytest.approx(1.5)
    assert law(1000.0) == pytest.approx(3e-6 * 1000**1.5)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [([1, 1], [1, 2], "two different sizes"), ([1, 2], [0, 1], "positive"), ([1, 2], [1], "same")],
)
def test_power_law_is_checked(x, y, message):
    with pytest.raises(ValueError, match=message):
        fit_power_law(x, y)
