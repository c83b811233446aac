"""
=====================================================
A small group that an ordinary SVM leaves on one side
=====================================================

One class has a small group far from its other samples. The classical SVM minimises the sum of
all deviations, and six samples of 126 weigh little in it. With superquantile weights only the
worst share ``alpha`` of the deviations counts, so the classifier cannot pass over them.
"""

# %%
# The data: two clouds, and a group of the positive class above the negative one. The test set has
# the same shape with 200 times as many samples.

import matplotlib.pyplot as plt
import numpy as np

from owasvm import LinearOWASVC


def sample(n_main, n_group, seed):
    """Two clouds of n_main samples, and a group of n_group positive ones."""
    rng = np.random.default_rng(seed)
    negative = rng.normal([-1.7, -0.2], [0.6, 0.9], (n_main, 2))
    positive = rng.normal([1.7, -0.2], [0.6, 0.9], (n_main, 2))
    group = rng.normal([-1.6, 3.2], [0.28, 0.28], (n_group, 2))
    labels = np.repeat([-1, 1, 1], [n_main, n_main, n_group])
    is_group = np.repeat([False, False, True], [n_main, n_main, n_group])
    return np.vstack([negative, positive, group]), labels, is_group


X, y, _ = sample(60, 6, seed=3)
X_test, y_test, is_group = sample(12_000, 1_200, seed=4)

# %%
# One model per share. ``alpha=1`` counts all deviations: the classical SVM. Every fit is exact, so
# the differences come from the weights and not from the solver.

shares = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0])
models = [LinearOWASVC(C=0.05, weights="superquantile", alpha=share).fit(X, y) for share in shares]
wrong = [model.predict(X_test) != y_test for model in models]
group_error = np.array([np.mean(mistakes[is_group]) for mistakes in wrong])
main_error = np.array([np.mean(mistakes[~is_group]) for mistakes in wrong])

for share, group, main in zip(shares, group_error, main_error, strict=True):
    print(f"alpha {share:4.2f}: wrong in the group {group:5.1%}, elsewhere {main:5.2%}")

largest_gap = max(model.gap_ for model in models)
print(f"largest relative gap {largest_gap:.0e}")

# %%
# First: the decision lines of the classical SVM and of the worst 20 %. Second: what the group
# gains and what the others pay.
#
# When it does not help: these data are made for it. Were the six samples wrong labels, the
# classifier would follow them just as well; :doc:`/robust` is about that case.

BLUE, VERMILLION, INK = "#0072B2", "#D55E00", "#222222"

_, plane = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, errors = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
for label, colour, marker in ((-1, VERMILLION, "s"), (1, BLUE, "o")):
    plane.scatter(*X[y == label].T, s=20, c=colour, marker=marker, edgecolors="white")
heights = np.array([-3.0, 4.2])
for share, style in ((1.0, "--"), (0.2, "-")):
    model = models[int(np.flatnonzero(shares == share)[0])]
    w, b = model.coef_[0], model.intercept_[0]
    plane.plot(-(b + w[1] * heights) / w[0], heights, style, color=INK, label=f"alpha = {share:g}")
plane.set(xlim=(-3.7, 3.7), ylim=(-3.0, 4.2), xticks=[], yticks=[])
plane.legend(loc="upper right")

errors.plot(shares, group_error, "o-", color=BLUE, label="small group")
errors.plot(shares, main_error, "s--", color=VERMILLION, label="all others")
errors.set(xlabel="share of the deviations that counts (alpha)", ylabel="test error")
errors.set(xlim=(0, 1.02), ylim=(0, None))
errors.legend()
plt.show()
