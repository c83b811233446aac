"""
===========================================
Flipped labels: when ignoring samples helps
===========================================

Trimmed weights ignore the share ``alpha`` of the samples with the largest deviations. Labels of
real training data are flipped, and accuracy is measured on clean ones. Trimming saves a classifier
whose ``C`` is too large; one with a good ``C`` gains little, and without wrong labels it harms.
"""

# %%
# 200 training rows of the digits 3 and 8, and of the breast cancer data; six random splits. The
# classifiers see flipped labels only.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, TwoStepOWASVC

images, digits = load_digits(return_X_y=True)
chosen = np.isin(digits, [3, 8])
data = {
    "digits 3 and 8": (images[chosen], (digits[chosen] == 8).astype(int)),
    "breast cancer": load_breast_cancer(return_X_y=True),
}
n_splits = 6


def clean_accuracies(make_model, name, flipped_share):
    """Accuracy on clean test labels after training on flipped ones, one number per split."""
    X, y = data[name]
    scores = []
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=200, stratify=y, random_state=seed
        )
        scaler = StandardScaler().fit(X_train)
        rng = np.random.default_rng(seed)
        flipped = rng.choice(200, round(200 * flipped_share), replace=False)
        y_train[flipped] = 1 - y_train[flipped]
        model = make_model().fit(scaler.transform(X_train), y_train)
        scores.append(model.score(scaler.transform(X_test), y_test))
    return np.array(scores)


def trimmed(C, alpha):
    """Exact trimming: a search with three descents."""
    return OWASVC(C, weights="trimmed", alpha=alpha, solver="dca", solver_options={"n_init": 3})


# %%
# First with 20 % of the labels flipped, and as many samples ignored, against ``C``.

Cs = [0.1, 1.0, 10.0, 100.0]
by_C = {
    "SVC": [clean_accuracies(lambda C=C: SVC(C=C), "digits 3 and 8", 0.2) for C in Cs],
    "two-step trimmed": [
        clean_accuracies(
            lambda C=C: TwoStepOWASVC(C, weights="trimmed", alpha=0.2), "digits 3 and 8", 0.2
        )
        for C in Cs
    ],
    "exact trimmed": [
        clean_accuracies(lambda C=C: trimmed(C, 0.2), "digits 3 and 8", 0.2) for C in Cs
    ],
}
for name, scores in by_C.items():
    row = ", ".join(f"C={C:g} {s.mean():.1%}" for C, s in zip(Cs, scores, strict=True))
    print(f"{name:16s}: {row}")

# %%
# Then at ``C=1``, a good choice for the classical SVM here, against the share of flipped labels.
# Trimming ignores that share, and 5 % where no label is wrong.

shares = [0.0, 0.1, 0.2, 0.3]
differences = {
    name: np.array(
        [
            clean_accuracies(lambda p=p: trimmed(1.0, max(p, 0.05)), name, p)
            - clean_accuracies(lambda: SVC(C=1.0), name, p)
            for p in shares
        ]
    )
    for name in data
}
for name, values in differences.items():
    row = ", ".join(f"{p:.0%} {v.mean():+.1%}" for p, v in zip(shares, values, strict=True))
    print(f"{name}, trimmed less SVC: {row}")

# %%
# Means with two standard errors. First: the digits with 20 % flipped. Second: what exact trimming
# gains at ``C=1``, negative without noise.
#
# Mind two favours. Trimming is told the true share of wrong labels, which nobody knows in
# practice. And the Gaussian kernel was picked after a trial that also had linear ones: with
# ``C=0.01`` and 20 % flipped these gain 1.2 points on the digits and 0.4 on the cancer data.
#
# On average over seven datasets, with ``C`` chosen by cross-validation on noisy labels, gains are
# much smaller than here, and mostly none: :doc:`/robust` has the figures.

BLUE, VERMILLION, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#222222"


def draw(axes, places, scores, colour, style, name):
    """Mean over the splits with two standard errors."""
    scores = 100 * np.asarray(scores)
    errors = 2 * scores.std(axis=1, ddof=1) / np.sqrt(n_splits)
    axes.errorbar(
        places, scores.mean(axis=1), errors, fmt=style, color=colour, capsize=2, label=name
    )


_, accuracy = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, gain = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
for (name, scores), colour, style in zip(
    by_C.items(), (VERMILLION, GREEN, BLUE), ("s--", "^:", "o-"), strict=True
):
    draw(accuracy, Cs, scores, colour, style, name)
accuracy.set(xscale="log", xlabel="C", ylabel="accuracy on clean labels in %", ylim=(60, 100))
accuracy.legend(loc="lower right")

for (name, values), colour, style in zip(
    differences.items(), (BLUE, INK), ("o-", "D--"), strict=True
):
    draw(gain, 100 * np.array(shares), values, colour, style, name)
gain.axhline(0, color="#888888", linewidth=1)
gain.set(xlabel="flipped labels in %", ylabel="trimmed less SVC, points")
gain.legend(loc="upper left")
plt.show()
