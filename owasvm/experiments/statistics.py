"""Paired tests over the folds of a cross-validation, and the slope of times against size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "PairedTest",
    "PowerLaw",
    "compare_folds",
    "corrected_resampled_t_test",
    "fit_power_law",
    "holm",
    "wilcoxon_signed_rank",
]

FloatArray = NDArray[np.float64]

# Scores are fractions of at most some thousand samples, or percentages: closer ones are equal.
_NOISE = 1e-10


@dataclass(frozen=True)
class PairedTest:
    """Two classifiers compared over the same folds.

    Parameters
    ----------
    mean_difference : float
        Mean of the first minus the second.
    t : float
        Statistic of the corrected resampled t-test.
    t_p_value : float
        Its two-sided p-value.
    wilcoxon_p_value : float
        Two-sided p-value of the Wilcoxon signed-rank test.
    wins, draws, losses : int
        Folds on which the first is better, as good, worse.
    """

    mean_difference: float
    t: float
    t_p_value: float
    wilcoxon_p_value: float
    wins: int
    draws: int
    losses: int


@dataclass(frozen=True)
class PowerLaw:
    """Least squares line through the logarithms, ``y = factor * x**exponent``.

    Parameters
    ----------
    exponent : float
        Slope in the log-log plane.
    factor : float
        Value at ``x = 1``.
    """

    exponent: float
    factor: float

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Evaluate the law."""
        return self.factor * np.asarray(x, dtype=np.float64) ** self.exponent


def _differences(values: ArrayLike) -> FloatArray:
    """Check a vector of paired differences; rounding noise of equal scores becomes 0."""
    differences = np.asarray(values, dtype=np.float64)
    if differences.ndim != 1 or differences.size < 2 or not np.isfinite(differences).all():
        raise ValueError(
            "differences must be a vector of at least two finite numbers, got an array of shape "
            f"{differences.shape}."
        )
    return np.where(np.abs(differences) < _NOISE, 0.0, differences)


def corrected_resampled_t_test(
    differences: ArrayLike, test_to_train_ratio: float
) -> tuple[float, float]:
    r"""Test whether the mean of paired differences over resampled training sets is 0.

    The training sets of a cross-validation overlap, so the differences are not independent and
    the plain t-test rejects too often. The correction of Nadeau and Bengio [1]_ enlarges the
    variance of the mean,

    .. math:: t = \frac{\bar d}{\sqrt{\bigl(\tfrac1k + \tfrac{n_2}{n_1}\bigr)\, s^2}},

    with k differences of sample variance :math:`s^2`, :math:`n_1` training and :math:`n_2` test
    samples, and k - 1 degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (k,)
        Score of the first classifier minus that of the second, fold by fold.
    test_to_train_ratio : float
        :math:`n_2 / n_1`; 1/9 for ten folds.

    Returns
    -------
    t : float
        The statistic; 0 when all differences are 0, infinite when they are equal otherwise.
    p_value : float
        Two-sided.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52
       (2003) 239-281. doi:10.1023/A:1024068626366

    Examples
    --------
    >>> from owasvm.experiments.statistics import corrected_resampled_t_test
    >>> t, p_value = corrected_resampled_t_test([1.0, 2.0, 3.0, 2.0], 1 / 3)
    >>> round(t, 3), round(p_value, 3)
    (3.207, 0.049)
    """
    from scipy.stats import t as student

    if not test_to_train_ratio >= 0:
        raise ValueError(
            f"test_to_train_ratio must be non-negative, got {test_to_train_ratio!r}: it is the "
            "number of test samples over the number of training samples."
        )
    values = _differences(differences)
    mean = float(values.mean())
    deviation = float(values.std(ddof=1))
    if deviation <= _NOISE:
        return (0.0, 1.0) if mean == 0.0 else (float(np.copysign(np.inf, mean)), 0.0)
    statistic = mean / (deviation * np.sqrt(1.0 / values.size + test_to_train_ratio))
    return float(statistic), float(2.0 * student.sf(abs(statistic), values.size - 1))


def wilcoxon_signed_rank(differences: ArrayLike) -> float:
    r"""Return the two-sided p-value of the Wilcoxon signed-rank test.

    Zero differences are dropped and tied ones share their mean rank. The distribution of the
    rank sum is the exact one for these ranks, every sign equally likely, so that ties need no
    approximation.

    Parameters
    ----------
    differences : array-like of shape (k,)
        Score of the first classifier minus that of the second, fold by fold.

    Returns
    -------
    p_value : float
        1 when all differences are 0.

    Examples
    --------
    >>> from owasvm.experiments.statistics import wilcoxon_signed_rank
    >>> wilcoxon_signed_rank([1.0, 2.0, 3.0, 4.0, 5.0])
    0.0625
    """
    from scipy.stats import rankdata

    values = _differences(differences)
    values = values[values != 0.0]
    if values.size == 0:
        return 1.0
    # Equal fractions of different folds may differ by rounding noise; they tie all the same.
    sizes = np.round(np.abs(values) / _NOISE)
    doubled_ranks = np.rint(2.0 * rankdata(sizes)).astype(int)
    total = int(doubled_ranks.sum())
    # ways[s] counts the signs whose positive doubled ranks sum to s; whole numbers, so exact.
    ways = [1] + [0] * total
    for rank in doubled_ranks:
        ways = [
            count + (ways[position - rank] if position >= rank else 0)
            for position, count in enumerate(ways)
        ]
    positive = int(doubled_ranks[values > 0].sum())
    tail = sum(ways[: min(positive, total - positive) + 1])
    return min(1.0, 2.0 * tail / 2**values.size)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests by Holm's step-down method.

    Rejecting where the adjusted value is at most a level keeps the chance of any false rejection
    in the whole family below that level.

    Parameters
    ----------
    p_values : sequence of float
        One family of tests.

    Returns
    -------
    adjusted : list of float
        In the order given.

    Examples
    --------
    >>> from owasvm.experiments.statistics import holm
    >>> [round(p_value, 3) for p_value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for step, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[position]))
        adjusted[position] = largest
    return adjusted


def compare_folds(
    first: ArrayLike, second: ArrayLike, test_to_train_ratio: float = 1.0 / 9.0
) -> PairedTest:
    """Compare two classifiers by their scores on the same folds.

    Parameters
    ----------
    first, second : array-like of shape (k,)
        Scores, fold by fold.
    test_to_train_ratio : float, default=1/9
        Test over training samples of a fold.

    Returns
    -------
    test : PairedTest

    Examples
    --------
    >>> from owasvm.experiments.statistics import compare_folds
    >>> test = compare_folds([0.9, 0.8, 0.9, 0.7], [0.8, 0.8, 0.7, 0.8], 1 / 3)
    >>> test.wins, test.draws, test.losses, round(test.mean_difference, 3)
    (2, 1, 1, 0.05)
    """
    scores = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    if scores[0].shape != scores[1].shape:
        raise ValueError(
            "first and second must hold the scores of the same folds, got shapes "
            f"{scores[0].shape} and {scores[1].shape}."
        )
    differences = _differences(scores[0] - scores[1])
    t, t_p_value = corrected_resampled_t_test(differences, test_to_train_ratio)
    return PairedTest(
        mean_difference=float(differences.mean()),
        t=t,
        t_p_value=t_p_value,
        wilcoxon_p_value=wilcoxon_signed_rank(differences),
        wins=int((differences > 0).sum()),
        draws=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
    )


def fit_power_law(x: ArrayLike, y: ArrayLike) -> PowerLaw:
    """Fit ``y = factor * x**exponent`` by least squares on the logarithms.

    Parameters
    ----------
    x, y : array-like of shape (k,)
        Positive numbers with at least two different x.

    Returns
    -------
    law : PowerLaw

    Examples
    --------
    >>> from owasvm.experiments.statistics import fit_power_law
    >>> law = fit_power_law([1, 10, 100], [2, 200, 20000])
    >>> round(law.exponent, 6), round(law.factor, 6)
    (2.0, 2.0)
    """
    sizes = np.asarray(x, dtype=np.float64)
    values = np.asarray(y, dtype=np.float64)
    if sizes.shape != values.shape or not ((sizes > 0).all() and (values > 0).all()):
        raise ValueError("x and y must be positive and of the same length.")
    if np.unique(sizes).size < 2:
        raise ValueError("x must hold at least two different sizes.")
    exponent, intercept = np.polyfit(np.log(sizes), np.log(values), 1)
    return PowerLaw(exponent=float(exponent), factor=float(np.exp(intercept)))
