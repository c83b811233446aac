"""
=========================================
A rare group within a class, on real data
=========================================

Even against odd handwritten digits. One digit is rare in the training set: 5 samples, the others
have 60 each. Nobody tells the classifier which samples form this group. ``basic`` weights raise
the accuracy on it, most where the classical SVM fails.
"""

# %%
# Every digit is the rare one in turn, over six random splits. All ten digits are equally frequent
# in the test sets.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from owasvm import LinearOWASVC

images, digits = load_digits(return_X_y=True)
images, is_odd = images / 16, digits % 2
n_splits = 6


def accuracy_by_digit(alpha, rare, seed):
    """Test accuracy on each of the ten digits when one of them is rare in training."""
    pool, test = train_test_split(
        np.arange(digits.size), test_size=0.5, stratify=digits, random_state=seed
    )
    rng = np.random.default_rng(seed)
    train = np.concatenate(
        [rng.choice(pool[digits[pool] == k], 5 if k == rare else 60, False) for k in range(10)]
    )
    model = LinearOWASVC(C=0.1, weights="basic", alpha=alpha, tol=1e-4)
    right = model.fit(images[train], is_odd[train]).predict(images[test]) == is_odd[test]
    return [right[digits[test] == k].mean() for k in range(10)]


alphas = np.array([1.0, 0.7, 0.5, 0.3, 0.2])
accuracy = np.array(
    [
        [[accuracy_by_digit(alpha, rare, seed) for rare in range(10)] for seed in range(n_splits)]
        for alpha in alphas
    ]
)
on_rare = np.diagonal(accuracy, axis1=2, axis2=3)  # alpha, split, rare digit
overall = accuracy.mean(axis=3)

# %%
# ``alpha=1`` is the classical SVM; the smaller ``alpha``, the more the worst samples count.

for alpha, rare, everywhere in zip(alphas, on_rare, overall, strict=True):
    lowest = rare.mean(axis=0).min()
    print(
        f"alpha {alpha:.1f}: rare digit {rare.mean():.1%} (lowest of ten {lowest:.1%}), "
        f"all digits {everywhere.mean():.1%}"
    )
gain = (on_rare[2] - on_rare[0]).mean(axis=1)
error = gain.std(ddof=1) / np.sqrt(n_splits)
print(f"alpha 0.5 gains {gain.mean():.1%} on the rare digit, standard error {error:.1%}")

# %%
# First: each digit when it is the rare one, with two standard errors over the splits. The
# classical SVM loses most samples of 1, 2 and 8; with rank weights 2 and 8 gain most, and no digit
# loses more than its error bar. Second: means over the ten digits. Down to ``alpha`` 0.5 the group
# gains for free, below it the others pay.
#
# How this was chosen: of eight weights tried on these data ``basic`` ones with ``alpha`` 0.2
# to 0.5 gained most. ``superquantile`` gained nothing at 0.3 and lost 11 points on the rare digit
# at 0.1. ``basic`` with 0.1, not drawn, has 83 % over all digits: some of its fits are ``w = 0``.
# On eight splits drawn after the choice (seeds 100 to 107) ``alpha`` 0.5 gains 7.2 points on the
# rare digit, standard error 0.6. That is with ``C = 0.1`` for all; where every model has the
# ``C`` that is best for all digits, the gain is 4.6 points.
#
# When it does not help: a group that the classical SVM gets right gains nothing, and wrong labels
# are worst cases too, so they would be protected as well.

BLUE, VERMILLION, INK = "#0072B2", "#D55E00", "#222222"


def standard_error(values):
    """Standard error over the splits, the first axis."""
    return values.std(axis=0, ddof=1) / np.sqrt(n_splits)


_, by_digit = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, by_alpha = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
for which, shift, colour, marker, name in (
    (0, -0.13, VERMILLION, "s", "classical SVM"),
    (2, 0.13, BLUE, "o", "basic, alpha = 0.5"),
):
    means, errors = on_rare[which].mean(axis=0), 2 * standard_error(on_rare[which])
    places = np.arange(10) + shift
    by_digit.errorbar(places, means, errors, fmt=marker, color=colour, capsize=2, label=name)
by_digit.set(xlabel="the rare digit", ylabel="test accuracy on it", ylim=(0, 1.03))
by_digit.set(xticks=range(10))
by_digit.legend(loc="lower center")

for values, colour, marker, name in (
    (overall, INK, "D", "all digits"),
    (on_rare, BLUE, "o", "the rare digit"),
):
    splits = values.mean(axis=2)
    means = splits.mean(axis=1)
    by_alpha.errorbar(alphas, means, 2 * standard_error(splits.T), color=colour, marker=marker)
    by_alpha.annotate(name, (0.72, means[1]), xytext=(0, 9), textcoords="offset points")
by_alpha.set(xlabel="alpha (1: the classical SVM)", ylabel="mean test accuracy", ylim=(0, 1.03))
by_alpha.set(xlim=(1.05, 0.15))
plt.show()
