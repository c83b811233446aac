"""
=====================================================
A small class: class weights first, then rank weights
=====================================================

One digit against the nine others: one sample in ten is positive. Rank weights do not know the
classes, yet they help the small one, because its samples are among the worst. ``class_weight``
says directly what is wanted and does it better; the two together are as good, not better.
"""

# %%
# Each of the ten digits against the rest, five random splits each, linear models with ``C=0.1``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from owasvm import LinearOWASVC

images, digits = load_digits(return_X_y=True)
images = images / 16
models = {
    "classical": LinearOWASVC(C=0.1, weights="uniform", tol=1e-4),
    "basic 0.5": LinearOWASVC(C=0.1, alpha=0.5, tol=1e-4),
    "classical,\nbalanced": LinearOWASVC(
        C=0.1, weights="uniform", class_weight="balanced", tol=1e-4
    ),
    "basic 0.5,\nbalanced": LinearOWASVC(C=0.1, alpha=0.5, class_weight="balanced", tol=1e-4),
}
n_splits = 5
found = np.empty((len(models), n_splits, 10, 2))  # the last axis: the digit, the rest
for seed in range(n_splits):
    for digit in range(10):
        X_train, X_test, y_train, y_test = train_test_split(
            images, digits == digit, train_size=0.3, stratify=digits, random_state=seed
        )
        for k, model in enumerate(models.values()):
            right = model.fit(X_train, y_train).predict(X_test) == y_test
            found[k, seed, digit] = right[y_test].mean(), right[~y_test].mean()

for name, (small, rest) in zip(models, found.mean(axis=(1, 2)), strict=True):
    name = name.replace("\n", " ")
    print(f"{name:20s}: digit {small:.1%}, rest {rest:.1%}, balanced {(small + rest) / 2:.1%}")

# %%
# Points are the ten digits, means over five splits; the line is their mean. A class of weight 9
# counts as nine copies of every sample, in the ranks too.
#
# When rank weights do not help: where the classes are all that differs in size, take
# ``class_weight``. Rank weights are for groups that nobody has named.

BLUE, VERMILLION = "#0072B2", "#D55E00"
_, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
for column, shift, colour, marker, name in (
    (0, -0.12, BLUE, "o", "the digit (10 % of the samples)"),
    (1, 0.12, VERMILLION, "s", "all others"),
):
    means = found[..., column].mean(axis=1)
    for k, values in enumerate(means):
        places = np.full(10, k + shift)
        axes.scatter(places, values, c=colour, marker=marker, alpha=0.6, label=None if k else name)
        axes.hlines(values.mean(), k + shift - 0.1, k + shift + 0.1, colour, linewidth=2.5)
axes.set(xticks=range(4), xticklabels=models, ylabel="test accuracy", ylim=(0.4, 1.02))
axes.legend(loc="lower right")
plt.show()
