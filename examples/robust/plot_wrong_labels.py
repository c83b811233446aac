"""
==========================
Wrong labels: who to trust
==========================

One label in eight is wrong. Trimmed weights ignore the samples with the largest deviations, and
say which; ``label_issues`` ranks all samples by what classifiers trained on the others say.
"""

# %%
# Two moons, 200 samples, 25 labels flipped. The classifiers see the noisy labels ``y`` only.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from owasvm import OWASVC
from owasvm.inspection import label_issues

X, truth = make_moons(200, noise=0.2, random_state=5)
X_test, y_test = make_moons(5_000, noise=0.2, random_state=6)
flipped = np.random.default_rng(3).choice(200, 25, replace=False)
y = truth.copy()
y[flipped] = 1 - y[flipped]

# %%
# A small and a large ``C``. With the large one the classical SVM follows the wrong labels, and
# trimming helps; with the small one it does not need help. The trimmed one may ignore 30 samples,
# 15 % of them.

for C in (1, 1000):
    classical = OWASVC(C=C, gamma=2.0, weights="uniform").fit(X, y)
    trimmed = OWASVC(C=C, gamma=2.0, weights="trimmed", alpha=0.15).fit(X, y)
    for name, model in (("classical", classical), ("trimmed", trimmed)):
        print(f"C = {C:4d}, {name:9s}: {model.score(X_test, y_test):.1%} of clean labels right")

hits = np.isin(trimmed.outliers_, flipped)
print(f"ignored {hits.size} samples, {hits.sum()} of them among the {flipped.size} flipped")

# %%
# ``sample_costs_`` says what each sample pays per unit of its deviation: nothing for those that
# are ignored, ``C`` times 200 / 170 for all others.

print("costs:", np.unique(trimmed.sample_costs_.round(6)))

# %%
# Without a choice of weights: the most suspicious labels by cross-validation.

issues = label_issues(None, X, y)
found = np.isin(issues["row"][: flipped.size], flipped)
print(f"of the {flipped.size} most suspicious labels {found.sum()} are flipped")
print(issues[:5])

# %%
# With the large ``C``. First: the classical boundary (dashed) and the trimmed one, with the
# ignored samples circled. Second: deviations from the trimmed one; flipped labels in orange,
# ignored samples beyond the line.

BLUE, VERMILLION, ORANGE, INK = "#0072B2", "#D55E00", "#E69F00", "#222222"

_, plane = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, bars = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.3, 1.9, 200)))
for model, style in ((classical, "--"), (trimmed, "-")):
    values = model.decision_function(grid.reshape(2, -1).T).reshape(200, 200)
    plane.contour(*grid, values, levels=[0.0], colors=INK, linestyles=style)
for label, colour, marker in ((0, VERMILLION, "s"), (1, BLUE, "o")):
    plane.scatter(*X[y == label].T, s=20, c=colour, marker=marker, edgecolors="white")
rings = {"s": 90, "facecolors": "none", "edgecolors": INK, "linewidths": 1.2}
plane.scatter(*X[trimmed.outliers_].T, **rings)
plane.set(xticks=[], yticks=[])

order = np.argsort(trimmed.deviations_)[-40:]
colours = np.where(np.isin(order, flipped), ORANGE, "#AAAAAA")
bars.bar(np.arange(40), trimmed.deviations_[order], color=colours, width=0.9)
bars.axvline(40 - trimmed.outliers_.size - 0.5, color=INK, linewidth=1)
bars.set(xlabel="the 40 largest deviations, ascending", ylabel="deviation", xlim=(-1, 40))
plt.show()
