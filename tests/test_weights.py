"""Weights against the paper's formula in 60 digits, limits, copies and convexity."""

import math
import pickle
from decimal import Decimal, getcontext, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from owasvm.weights import FAMILIES, is_convex, owa_weights, share_function, weights_in_order

PAPER_QUANTIFIERS = {
    "basic": lambda r, alpha: r**alpha,
    "quadratic": lambda r, alpha: 1.0 / (1.0 - alpha * np.sqrt(r)),
    "exponential": lambda r, alpha: np.exp(-alpha * r),
    "trigonometric": lambda r, alpha: np.arcsin(alpha * r),
}
# A range of alpha inside every family's limits.
NAMED = [name for name in FAMILIES if name != "uniform"]
alphas = st.floats(0.02, 0.98)
MILLION = 1_000_000
# The first call of a jitted function compiles it.
no_deadline = settings(deadline=None)


def paper_weights(n, quantifier):
    """The two displayed formulas of the paper, literally."""
    raw = np.array([quantifier(1 - (i - 1) / n) - quantifier(1 - i / n) for i in range(1, n + 1)])
    return raw / raw.mean()


def decimal_arctan(x):
    halvings = 0
    while abs(x) > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    return 2**halvings * sum(
        (-1) ** i * x ** (2 * i + 1) / (2 * i + 1) for i in range(getcontext().prec // 2)
    )


def decimal_arcsin(x):
    return 2 * decimal_arctan(x / (1 + (1 - x * x).sqrt()))


DECIMAL_QUANTIFIERS = {
    "basic": lambda r, alpha: r**alpha if r > 0 else Decimal(0),
    "quadratic": lambda r, alpha: 1 / (1 - alpha * r.sqrt()),
    "exponential": lambda r, alpha: (-alpha * r).exp(),
    "trigonometric": lambda r, alpha: decimal_arcsin(alpha * r),
}


def decimal_weight(family, alpha, n, k):
    """Weight k (from 1) of the paper's formula in 60 digits; the mean telescopes."""

    def quantifier(r):
        return DECIMAL_QUANTIFIERS[family](r, Decimal(alpha))

    with localcontext() as context:
        context.prec = 60
        size = Decimal(n)
        rise = quantifier(1 - (k - 1) / size) - quantifier(1 - k / size)
        return rise * n / (quantifier(Decimal(1)) - quantifier(Decimal(0)))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 57])
@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("family", PAPER_QUANTIFIERS)
def test_paper_formula(family, alpha, n):
    expected = paper_weights(n, lambda r: PAPER_QUANTIFIERS[family](r, alpha))
    assert_allclose(owa_weights(n, family, alpha), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 1000, MILLION])
@pytest.mark.parametrize("alpha", [1e-6, 0.05, 1 / 3, 0.8, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("family", PAPER_QUANTIFIERS)
def test_every_digit_against_decimal_arithmetic(family, alpha, n):
    if family == "quadratic" and alpha == 1.0:
        alpha = math.nextafter(1.0, 0.0)
    weights = owa_weights(n, family, alpha)
    for k in {1, 2, n // 3 + 1, n - 1, n}:
        exact = decimal_weight(family, alpha, n, k)
        assert abs(Decimal(float(weights[k - 1])) / exact - 1) < 4e-15


@pytest.mark.parametrize("n", [1, 2, 7, 1000, MILLION])
@pytest.mark.parametrize("alpha", [1e-9, 0.3, 0.9])
@pytest.mark.parametrize("family", FAMILIES)
def test_mean_is_one(family, alpha, n):
    weights = owa_weights(n, family, alpha)
    assert weights.shape == (n,)
    assert weights.dtype == np.float64
    assert abs(math.fsum(weights) / n - 1.0) < 1e-12
    assert weights.min() >= 0.0


@pytest.mark.parametrize("n", [1, 3, 49, MILLION])
def test_uniform_weights_are_exactly_one(n):
    one = np.ones(n)
    assert_array_equal(owa_weights(n, "uniform"), one)
    assert_array_equal(owa_weights(n, "uniform", alpha=None), one)
    for family in ("basic", "superquantile", "olympic"):
        assert_array_equal(owa_weights(n, family, 1.0), one)
    assert_array_equal(owa_weights(n, "max-entropy", 0.5), one)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_sample(family):
    assert_allclose(owa_weights(1, family, 0.3), [1.0])


TINY = 5e-324
JUST_BELOW_ONE = math.nextafter(1.0, 0.0)
LARGEST = [0.0, 0.0, 0.0, 0.0, 5.0]
SMALLEST = LARGEST[::-1]
EVEN = [1.0] * 5
MIDDLE = [0.0, 0.0, 5.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("family", "alpha", "limit"),
    [
        ("basic", TINY, LARGEST),
        ("basic", 1e300, SMALLEST),
        ("quadratic", JUST_BELOW_ONE, SMALLEST),
        ("exponential", TINY, EVEN),
        ("exponential", 1e300, LARGEST),
        ("trigonometric", TINY, EVEN),
        ("superquantile", TINY, LARGEST),
        ("superquantile", JUST_BELOW_ONE, EVEN),
        ("trimmed", TINY, EVEN),
        ("trimmed", JUST_BELOW_ONE, SMALLEST),
        ("max-entropy", TINY, SMALLEST),
        ("max-entropy", JUST_BELOW_ONE, LARGEST),
        ("max-entropy", math.nextafter(0.5, 1.0), EVEN),
        ("olympic", TINY, MIDDLE),
        ("olympic", JUST_BELOW_ONE, EVEN),
    ],
)
def test_limits_of_alpha(family, alpha, limit):
    assert_allclose(owa_weights(5, family, alpha), limit, atol=1e-13)


def test_quadratic_starts_from_the_square_root():
    assert_allclose(owa_weights(50, "quadratic", TINY), owa_weights(50, "basic", 0.5), rtol=1e-14)


def test_trigonometric_reaches_alpha_one():
    # arcsin(1 / 2) / arcsin(1) = 1 / 3
    assert_allclose(owa_weights(2, "trigonometric", 1.0), [4 / 3, 2 / 3], rtol=1e-15)


@pytest.mark.parametrize(
    ("family", "alpha", "expected"),
    [
        ("superquantile", 0.5, [0, 0, 2, 2]),
        ("superquantile", 0.375, [0, 0, 4 / 3, 8 / 3]),
        ("superquantile", 0.1, [0, 0, 0, 4]),
        ("trimmed", 0.25, [4 / 3, 4 / 3, 4 / 3, 0]),
        ("trimmed", 0.375, [1.6, 1.6, 0.8, 0]),
        ("trimmed", 0.9, [4, 0, 0, 0]),
        ("olympic", 0.5, [0, 2, 2, 0]),
        ("olympic", 0.75, [2 / 3, 4 / 3, 4 / 3, 2 / 3]),
        ("olympic", 0.1, [0, 2, 2, 0]),
    ],
)
def test_counted_shares(family, alpha, expected):
    assert_allclose(owa_weights(4, family, alpha), expected, atol=1e-14)


def orness(weights):
    n = weights.size
    return math.fsum(np.arange(n) / (n - 1) * weights) / math.fsum(weights)


@pytest.mark.parametrize("n", [2, 3, 40, MILLION])
@pytest.mark.parametrize(
    "alpha", [1e-300, 1e-12, 0.1, 0.249, 0.251, 0.5 - 1e-11, 0.5 + 1e-7, 0.7, 0.999, 1 - 1e-15]
)
def test_max_entropy_has_the_orness_and_is_geometric(n, alpha):
    weights = owa_weights(n, "max-entropy", alpha)
    assert orness(weights) == pytest.approx(alpha, rel=1e-11, abs=1e-15 if alpha > 0.1 else 0)
    heavy = weights[weights > 1e-200]
    if heavy.size > 2:
        ratios = heavy[1:] / heavy[:-1]
        assert_allclose(ratios, ratios[ratios.size // 2], rtol=1e-12)


def test_max_entropy_is_the_largest_entropy():
    n, alpha = 6, 0.7
    best = owa_weights(n, "max-entropy", alpha) / n
    rng = np.random.default_rng(0)
    # Directions that keep the sum and the orness.
    basis = np.linalg.svd(np.vstack([np.ones(n), np.arange(n)]))[2][2:]
    for _ in range(50):
        other = best + 1e-3 * rng.normal(size=n - 2) @ basis
        assert -np.sum(other * np.log(other)) < -np.sum(best * np.log(best))


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_max_entropy_mirrors(alpha):
    assert_allclose(
        owa_weights(9, "max-entropy", alpha), owa_weights(9, "max-entropy", 1 - alpha)[::-1]
    )


def test_max_entropy_share_is_continuous_in_the_total():
    at_one = share_function("max-entropy", 0.8, total=1.0)(0.3)
    assert at_one > 0.4
    for total in (0.999, 1.0005, 1.001, 1.002):
        assert share_function("max-entropy", 0.8, total=total)(0.3) == pytest.approx(
            at_one, abs=2e-3
        )
    assert share_function("max-entropy", 0.8, total=1.5)(0.3) != at_one


@pytest.mark.parametrize("total", [1.5, 2.5, 17.25])
@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.9])
def test_max_entropy_orness_of_a_fractional_total(total, alpha):
    # G(t) = (1 - e^(-a t)) / (1 - e^(-a)): read a off G(1/2) = 1 / (1 + e^(-a/2)).
    half = share_function("max-entropy", alpha, total=total)(0.5)
    theta = 2.0 * math.log(half / (1.0 - half)) / total
    value = (total / -math.expm1(-total * theta) + 1.0 / math.expm1(-theta)) / (total - 1.0)
    assert value == pytest.approx(alpha, rel=1e-12)


@no_deadline
@given(family=st.sampled_from(FAMILIES), alpha=alphas, n=st.integers(2, 60))
@example(family="max-entropy", alpha=0.24619924939039184, n=13)
def test_share_function_and_weights_agree(family, alpha, n):
    share = share_function(family, alpha, total=n)
    values = share(np.arange(n + 1) / n)
    assert values[0] == 0.0
    assert values[-1] == 1.0
    assert np.all(np.diff(values) >= -1e-15)
    weights = owa_weights(n, family, alpha)
    from_largest = np.concatenate(([0.0], np.cumsum(weights[::-1])))
    assert_allclose(from_largest / n, values, atol=1e-12)


sample_counts = st.lists(st.integers(0, 5), min_size=1, max_size=25).filter(any)


@no_deadline
@given(family=st.sampled_from(FAMILIES), alpha=alphas, counts=sample_counts)
def test_whole_number_weights_equal_copies(family, alpha, counts):
    counts = np.array(counts)
    n = int(counts.sum())
    copies = owa_weights(n, family, alpha)
    edges = np.concatenate(([0], np.cumsum(counts)))
    expected = [copies[a:b].sum() for a, b in pairwise(edges)]
    weights = weights_in_order(share_function(family, alpha, total=n), counts)
    assert_allclose(weights, expected, rtol=1e-12, atol=1e-13)
    assert_array_equal(weights[counts == 0], 0.0)


@no_deadline
@given(
    family=st.sampled_from(FAMILIES),
    alpha=alphas,
    amounts=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20),
    scale=st.floats(1e-3, 1e3),
)
def test_real_sample_weights(family, alpha, amounts, scale):
    amounts = np.array(amounts)
    total = float(amounts.sum())
    share = share_function(family, alpha, total=total)
    weights = weights_in_order(share, amounts)
    assert weights.sum() == pytest.approx(total, rel=1e-12)
    # G is a function of shares: a common factor of the sample weights goes straight through.
    assert_allclose(
        weights_in_order(share, scale * amounts), scale * weights, rtol=1e-9, atol=1e-9 * total
    )
    # The definition, differences taken naively.
    reached = np.concatenate((np.cumsum(amounts[::-1])[::-1], [0.0])) / total
    naive = total * -np.diff(share(np.clip(reached, 0.0, 1.0)))
    assert_allclose(weights, naive, rtol=1e-9, atol=1e-9 * total)


def test_tiny_sample_weight_before_a_large_one():
    # q^a - p^a with p = 1e-10 of the whole: both logarithms of the ratio must be right.
    weights = weights_in_order(share_function("basic", 0.05), [1.0, 1e-10])
    top = 1e-10 / (1 + 1e-10)
    assert_allclose(weights / (1 + 1e-10), [1 - top**0.05, top**0.05], rtol=1e-14)


def test_any_share_callable_can_order_weights():
    weights = weights_in_order(lambda t: t**2, [1.0, 2.0, 1.0])
    assert_allclose(weights, [4 * (1 - 9 / 16), 4 * (9 / 16 - 1 / 16), 4 / 16])


@pytest.mark.parametrize(
    ("family", "quantifier"),
    [
        ("basic", lambda r: r**0.6),
        ("basic", lambda r: math.pow(r, 0.6)),  # numbers only
        ("basic", lambda r: 0.0 if r == 0 else r**0.6),  # numbers only, by its comparison
        ("basic", lambda r: 3.0 - 2.0 * r**0.6),  # falling, and not from 0 to 1
        ("exponential", lambda r: np.exp(-0.6 * r)),
        ("uniform", lambda r: r),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 30])
def test_callable_quantifiers(family, quantifier, n):
    assert_allclose(owa_weights(n, quantifier), owa_weights(n, family, 0.6), rtol=1e-12)
    share, named = share_function(quantifier), share_function(family, 0.6)
    assert_allclose(share(np.array([[0.1, 0.9]])), named(np.array([[0.1, 0.9]])))
    assert_allclose(share(0.25), named(0.25))


def test_step_quantifier_gives_one_weight():
    assert_allclose(owa_weights(4, lambda r: np.floor(r + 0.3)), [0, 4, 0, 0])


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (lambda r: 0.0 * r + 2.0, "at r=0 and 2 at r=1"),
        (lambda r: 7.0, "must differ"),  # noqa: ARG005
        (lambda r: np.where(r > 0.5, np.nan, r), "returned nan"),
        (lambda r: np.log(np.maximum(r, 1e-320)) - np.where(r == 0, np.inf, 0), "finite"),
        (lambda r: np.sin(4.0 * r), "not monotone"),
        (lambda r: (r - 0.9) ** 2, "negative weight"),
    ],
)
def test_bad_quantifiers(quantifier, message):
    with pytest.raises(ValueError, match=message):
        owa_weights(20, quantifier)


def test_fault_inside_a_quantifier_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        owa_weights(3, lambda r: r + 1 / int(0 * np.max(r)))


def test_arrays_are_scaled_copies():
    given_weights = np.array([0.0, 2.0, 6.0])
    before = given_weights.copy()
    weights = owa_weights(3, given_weights)
    assert_allclose(weights, [0.0, 0.75, 2.25])
    weights[:] = -1.0
    assert_array_equal(given_weights, before)
    unit = np.ones(3)
    assert owa_weights(3, unit) is not unit
    assert not np.shares_memory(owa_weights(3, unit), unit)
    assert_allclose(owa_weights(2, (1, 3)), [0.5, 1.5])
    assert_allclose(owa_weights(2, [1e308, 1e308]), [1.0, 1.0])
    assert_allclose(owa_weights(2, [5e-324, 5e-324]), [1.0, 1.0])


@no_deadline
@given(
    st.lists(st.just(0.0) | st.floats(1e-12, 1e12), min_size=1, max_size=30).filter(any),
)
def test_arrays_keep_their_proportions(values):
    weights = owa_weights(len(values), values)
    assert weights.mean() == pytest.approx(1.0, rel=1e-12)
    assert_allclose(weights * np.mean(values), values, rtol=1e-12)


def test_sample_weights_are_not_mutated():
    counts = np.array([1.0, 0.0, 3.0])
    for family in FAMILIES:
        weights = weights_in_order(share_function(family, 0.4, total=4), counts)
        assert not np.shares_memory(weights, counts)
    assert_array_equal(counts, [1.0, 0.0, 3.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_points_are_not_mutated_nor_shared(family):
    points = np.array([0.0, 0.2, 1.0])
    values = share_function(family, 0.4, total=7)(points)
    assert not np.shares_memory(values, points)
    assert_array_equal(points, [0.0, 0.2, 1.0])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1.0, 2.0], "2 entries for 3 samples"),
        ([[1.0, 2.0, 3.0]], "one dimension"),
        ([1.0, -1e-9, 1.0], r"weights\[1\]=-1e-09 is negative"),
        ([1.0, 1.0, np.nan], r"weights\[2\]=nan is not finite"),
        ([1.0, np.inf, 1.0], "not finite"),
        ([0.0, 0.0, 0.0], "all zero"),
        (["a", "b", "c"], "array of numbers"),
        (None, "one dimension|array of numbers"),
        (3.0, "one dimension"),
    ],
)
def test_bad_arrays(array, message):
    with pytest.raises(ValueError, match=message):
        owa_weights(3, array)


@pytest.mark.parametrize("amounts", [[], [0.0, 0.0], [1.0, -1.0], [np.nan], [[1.0]]])
def test_bad_sample_weights(amounts):
    with pytest.raises(ValueError, match="sample_weight"):
        weights_in_order(share_function("uniform"), amounts)


@pytest.mark.parametrize("family", NAMED)
@pytest.mark.parametrize("alpha", [0.0, -0.1, -0.0, np.nan, np.inf, -np.inf])
def test_alpha_out_of_every_range(family, alpha):
    with pytest.raises(ValueError, match=rf"alpha=.*{family}.*alpha"):
        owa_weights(5, family, alpha)


@pytest.mark.parametrize(
    ("family", "alpha"),
    [
        ("quadratic", 1.0),
        ("trigonometric", math.nextafter(1.0, 2.0)),
        ("superquantile", 1.5),
        ("trimmed", 1.0),
        ("max-entropy", 1.0),
        ("olympic", 1.01),
    ],
)
def test_alpha_above_the_range(family, alpha):
    with pytest.raises(ValueError, match="out of range"):
        owa_weights(5, family, alpha)


@pytest.mark.parametrize("alpha", [True, np.True_, "0.6", [0.6], 1j])
def test_alpha_must_be_a_number(alpha):
    with pytest.raises(TypeError, match="not a number"):
        owa_weights(5, "basic", alpha)


def test_alpha_missing():
    with pytest.raises(ValueError, match="alpha is missing"):
        share_function("basic")


@pytest.mark.parametrize("alpha", [np.float32(0.5), np.float64(0.5), 0.5])
def test_alpha_of_any_real_type(alpha):
    assert_array_equal(owa_weights(5, "basic", alpha), owa_weights(5, "basic", 0.5))


@pytest.mark.parametrize("n", [0, -3])
def test_n_below_one(n):
    with pytest.raises(ValueError, match=f"n={n}"):
        owa_weights(n)


@pytest.mark.parametrize("n", [2.0, "3", None, True])
def test_n_must_be_whole(n):
    with pytest.raises(TypeError, match="whole number"):
        owa_weights(n)


def test_unknown_family_lists_the_known():
    with pytest.raises(ValueError, match=r"'cubic'.*uniform, basic, quadratic.*olympic"):
        owa_weights(4, "cubic")


@pytest.mark.parametrize(
    ("total", "error"), [(None, ValueError), (0.0, ValueError), ("4", TypeError)]
)
def test_max_entropy_needs_a_total(total, error):
    with pytest.raises(error, match="total"):
        share_function("max-entropy", 0.7, total=total)


@pytest.mark.parametrize("point", [-0.1, 1.1, np.nan])
def test_share_functions_stay_in_the_unit_interval(point):
    for share in (share_function("basic", 0.5), share_function(lambda r: r)):
        with pytest.raises(ValueError, match="between 0 and 1"):
            share([0.5, point])


@pytest.mark.parametrize("family", FAMILIES)
def test_named_share_functions_can_be_pickled(family):
    share = share_function(family, 0.4, total=5)
    assert pickle.loads(pickle.dumps(share)) == share


# The sign of G'' decides: basic alpha - 1; quadratic 3 alpha sqrt(r) - 1; exponential
# -alpha^2; trigonometric +; the piecewise linear ones by their kinks.
CONVEX = {
    "uniform": [0.1, 0.9],
    "basic": [1e-6, 0.05, 0.2, 0.6, 0.9999, 1.0],
    "quadratic": [1e-6, 0.05, 0.2, 0.3, 0.33, 1 / 3],
    "exponential": [1e-6, 1e-3, 0.05, 0.2, 0.8, 5.0, 1e3],
    "superquantile": [1e-7, 0.05, 1 / 3, 0.5, 0.999, 1.0],
    "max-entropy": [0.5, 0.5 + 1e-7, 0.6, 0.95, 0.999999],
    "olympic": [1.0],
}
NOT_CONVEX = {
    "basic": [1.0001, 1.5, 4.0],
    "quadratic": [1 / 3 + 1e-3, 0.34, 0.4, 0.6, 0.8, 0.99],
    "trigonometric": [1e-3, 0.05, 0.4, 0.8, 1.0],
    "trimmed": [1e-3, 0.05, 0.5, 0.9],
    "max-entropy": [1e-4, 0.3, 0.499],
    "olympic": [0.01, 0.5, 0.99],
}


@pytest.mark.parametrize("n", [1, 2, 5, 100, 30_000, MILLION])
@pytest.mark.parametrize("family", CONVEX)
def test_convex_families(family, n):
    for alpha in CONVEX[family]:
        assert is_convex(owa_weights(n, family, alpha)), (family, alpha)


@pytest.mark.parametrize("n", [1_000, 30_000, MILLION])
@pytest.mark.parametrize("family", NOT_CONVEX)
def test_families_that_are_not_convex(family, n):
    for alpha in NOT_CONVEX[family]:
        assert not is_convex(owa_weights(n, family, alpha)), (family, alpha)


@pytest.mark.parametrize("n", [3, 5, 12, 40])
@pytest.mark.parametrize("alpha", [0.32, 0.3334, 0.34, 0.36, 0.4, 0.45, 0.6])
def test_quadratic_convexity_of_few_samples_in_decimal_arithmetic(n, alpha):
    exact = [decimal_weight("quadratic", alpha, n, k) for k in range(1, n + 1)]
    truth = all(a <= b for a, b in pairwise(exact))
    assert is_convex(owa_weights(n, "quadratic", alpha)) is truth


def test_smallest_falls_that_are_found_among_a_million():
    # As documented: the quadratic family just above 1/3, and one single position.
    assert not is_convex(owa_weights(MILLION, "quadratic", 1 / 3 + 5e-5))
    for place in (0, MILLION // 2, MILLION - 2):
        weights = np.ones(MILLION)
        weights[place] += 2.1e-7
        assert not is_convex(weights), place


@pytest.mark.parametrize(
    ("family", "alpha"),
    [("basic", 0.2), ("basic", 1.0), ("quadratic", 0.2), ("exponential", 0.01)],
)
def test_rounding_of_naive_differences_is_not_a_fall(family, alpha):
    values = PAPER_QUANTIFIERS[family](1.0 - np.arange(MILLION + 1) / MILLION, alpha)
    naive = values[:-1] - values[1:]
    assert is_convex(naive / naive.mean())
    if (family, alpha) in {("basic", 1.0), ("exponential", 0.01)}:
        assert np.any(np.diff(naive) < 0), "the case no longer shows rounding"


def test_is_convex_on_hand_made_vectors():
    assert is_convex([3.0])
    assert is_convex([0.0, 0.0])
    assert is_convex([1, 1, 2])
    assert not is_convex([1, 2, 1])
    assert not is_convex([2.0, 1.0, 3.0])
    assert is_convex([1.0, 1.0 - 1e-15])
    assert not is_convex([1.0, 1.0 - 1e-15], tol=0.0)
    assert not is_convex([1.0, 1.0 - 1e-9])
    assert is_convex([1.0, 1.0 - 1e-9], tol=1e-9)
    assert not is_convex(np.array([1e300, 1e299]))
    assert not is_convex(np.array([1e-300, 1e-301]))
    assert isinstance(is_convex([2.0, 1.0]), bool)


@pytest.mark.parametrize("weights", [[], [[1.0, 2.0]], [1.0, np.nan], [np.inf]])
def test_is_convex_refuses(weights):
    with pytest.raises(ValueError, match="weights must be"):
        is_convex(weights)


@pytest.mark.parametrize("tol", [-1.0, np.nan])
def test_is_convex_refuses_a_tolerance(tol):
    with pytest.raises(ValueError, match="tol="):
        is_convex([1.0, 2.0], tol=tol)


def gap_by_enumeration(weights):
    """Largest height of the partial sums over their lower convex hull, from all chords."""
    sums = np.concatenate(([0.0], np.cumsum(weights)))
    gap = 0.0
    for k in range(len(sums)):
        for i in range(k):
            for j in range(k + 1, len(sums)):
                chord = sums[i] + (sums[j] - sums[i]) * (k - i) / (j - i)
                gap = max(gap, sums[k] - chord)
    return gap


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(0, 6), min_size=1, max_size=9).filter(any),
    tol=st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.2]),
)
def test_is_convex_measures_the_distance_to_the_convex_hull(weights, tol):
    gap = gap_by_enumeration(weights) / sum(weights)
    if abs(gap - tol) > 1e-12:
        assert is_convex(weights, tol=tol) is bool(gap <= tol)
    elif tol == 0.0:
        assert is_convex(weights, tol=0.0)


@no_deadline
@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40).filter(any))
def test_sorted_weights_are_convex(values):
    assert is_convex(sorted(values), tol=0.0)


@pytest.mark.parametrize("family, alpha", [("basic", 0.6), ("quadratic", 0.2), ("trimmed", 0.4)])
def test_sample_weights_at_the_ends_of_the_range_of_doubles(family, alpha):
    share = share_function(family, alpha)
    ordinary = weights_in_order(share, [1.0, 3.0, 2.0])
    for unit in (2.0**-1060, 2.0**1015):
        scaled = weights_in_order(share, np.array([1.0, 3.0, 2.0]) * unit)
        assert_allclose(scaled / unit, ordinary, rtol=1e-3)
    # Samples that weigh nothing beside the others; warnings are errors here.
    mixed = weights_in_order(share, [1e300, 1e-300, 1e300, 1e-300])
    assert_allclose(mixed[::2], weights_in_order(share, [1e300, 1e300]))
    assert np.all(np.abs(mixed[1::2]) <= 1e-100)
