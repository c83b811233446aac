"""
===========================================
General weights: watching the proof advance
===========================================

Weights that fall somewhere make the problem non-convex. Branch and bound keeps two numbers: the
best objective found, and a bound that no classifier can go below. The fit is proven when they
meet. How soon that is depends on the weights: gently falling ones are proven in a moment, those
that end in zeros hardly ever beyond a few dozen samples.
"""

# %%
# Iris, versicolor against virginica, 100 samples. ``callback="record"`` keeps both numbers at
# every node. A search that ends without a proof warns; here that is what we want to see.

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from owasvm import LinearOWASVC
from owasvm.inspection import ConvergenceDisplay

X, y = load_iris(return_X_y=True)
X, y = StandardScaler().fit_transform(X[y > 0]), y[y > 0]

models = {}
for family, alpha in {"trigonometric": 0.8, "basic": 1.5, "trimmed": 0.04}.items():
    search = LinearOWASVC(weights=family, alpha=alpha, solver="dca").fit(X, y)
    model = LinearOWASVC(
        weights=family,
        alpha=alpha,
        solver="branch-and-bound",
        solver_options={"max_nodes": 600},
        callback="record",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    models[f"{family} {alpha}"] = model
    print(
        f"{family:13s} {alpha:4.2f}: {model.status_}, {model.n_iter_} nodes, "
        f"{model.lower_bound_:.3f} <= optimum <= {model.objective_:.3f}, "
        f"gap {model.gap_:.1e}; dca {search.objective_:.3f}"
    )

# %%
# The optimum lies between the two lines. First: they meet within the 0.01 % that were asked for;
# mind the scale. Second: most of the gap closes soon, the rest slowly. Third: the bound starts at
# 0, and a gap of 30 % remains: the classifier may be optimal, but nobody knows.
#
# When it does not help: the best objective is there before the first node, and the search
# alone, ``solver="dca"``, finds the same one. Without a need for a proof, take that.

for name, model in models.items():
    _, axes = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
    ConvergenceDisplay.from_estimator(model, ax=axes)
    axes.set(title=name)
plt.show()

# sphinx_gallery_thumbnail_number = 3
