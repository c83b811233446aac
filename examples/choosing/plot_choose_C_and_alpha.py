"""
===============================================
Choosing C and alpha, and how far to trust them
===============================================

``OWASVCCV`` searches over ``C`` and ``alpha`` by cross-validation. Many cells of the grid are
equal within their standard error, so the best one is a matter of luck, and its score is
optimistic.
"""

# %%
# Diabetes: progression above the median or not, a noisy problem. ``alpha=1``, the classical SVM,
# is in the grid to compare.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from owasvm import OWASVCCV

X, progression = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
y = (progression > np.median(progression)).astype(int)

Cs, alphas = [0.001, 0.01, 0.1, 1.0], [0.4, 0.6, 0.8, 1.0]


def search(selection, X, y):
    """Five-fold search over the grid."""
    model = OWASVCCV(Cs, alphas=alphas, kernel="linear", cv=5, selection=selection, tol=1e-4)
    return model.fit(X, y)


found = search("best", X, y)
scores = np.asarray(found.cv_results_["mean_test_score"])
errors = np.asarray(found.cv_results_["std_test_score"]) / np.sqrt(5)
print(found.best_params_, f"{found.best_score_:.1%}")
n_equal = np.sum(scores >= scores.max() - errors[scores.argmax()])
print(f"{n_equal} of {scores.size} cells lie within one standard error of the best")

# %%
# Is the score to be believed? Six times: search on one half, test on the other. ``"one-se"`` takes
# the smallest ``C`` within one standard error of the best.

names = ("best", "one-se")
halves = np.empty((2, 6, 2))
for seed in range(6):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    for k, name in enumerate(names):
        model = search(name, X_train, y_train)
        halves[k, seed] = model.best_score_, model.score(X_test, y_test)
for name, (promised, kept) in zip(names, halves.mean(axis=1), strict=True):
    print(f"{name}: promised by cross-validation {promised:.1%}, new samples {kept:.1%}")

# %%
# First: the grid, with the choice framed. With ``alpha=0.4`` the worst samples count so much that
# classifying nobody, ``w = 0``, is best for them: the classes overlap too much for it. Second: the
# promise of the chosen cell against the accuracy on new samples; points below the line were
# promised too much.
#
# When it does not help: with a few hundred samples a finer grid finds nothing but luck.

BLUE, VERMILLION = "#0072B2", "#D55E00"
table = np.empty((len(alphas), len(Cs)))
for parameters, score in zip(found.cv_results_["params"], scores, strict=True):
    table[alphas.index(parameters["alpha"]), Cs.index(parameters["C"])] = 100 * score

_, grid = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, promise = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
picture = grid.imshow(table, cmap="cividis", origin="lower", aspect="auto")
for (row, column), value in np.ndenumerate(table):
    colour = "white" if value < table.min() + 0.6 * np.ptp(table) else "black"
    grid.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
place = Cs.index(found.best_params_["C"]), alphas.index(found.best_params_["alpha"])
grid.add_patch(
    plt.Rectangle(
        (place[0] - 0.5, place[1] - 0.5), 1, 1, fill=False, edgecolor=VERMILLION, linewidth=3
    )
)
grid.set(xticks=range(len(Cs)), xticklabels=[f"{C:g}" for C in Cs], xlabel="C")
grid.set(yticks=range(len(alphas)), yticklabels=alphas, ylabel="alpha")
grid.set_title("accuracy in %, five folds")
for k, (name, colour, marker) in enumerate(zip(names, (VERMILLION, BLUE), "so", strict=True)):
    promise.scatter(*(100 * halves[k]).T, c=colour, marker=marker, label=f'selection="{name}"')
limits = 100 * halves.min() - 1, 100 * halves.max() + 1
promise.plot(limits, limits, color="#888888", linewidth=1)
promise.set(xlim=limits, ylim=limits, aspect="equal")
promise.set(xlabel="promised by cross-validation, %", ylabel="on new samples, %")
promise.legend(loc="upper left")
plt.show()
