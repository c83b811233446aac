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
# Iris, versicolor against virginica, 100 samples. The callback gets both numbers at every node.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import solve

X, y = load_iris(return_X_y=True)
X, y = X[y > 0], y[y > 0]
X, signs = StandardScaler().fit_transform(X), np.where(y == 1, -1.0, 1.0)

families = {"trigonometric": 0.8, "basic": 1.5, "trimmed": 0.04}
traces = {}
for family, alpha in families.items():
    steps = []
    problem = OWAProblem(signs, RankCosts(y.size, family, alpha), features=X)
    solution = solve(
        problem, "branch-and-bound", callback=steps.append, options={"max_nodes": 600}
    )
    search = solve(problem, "dca")
    traces[family] = np.array(
        [(step["n_iter"], step["objective"], step["lower_bound"]) for step in steps]
    )
    print(
        f"{family:13s} {alpha:4.2f}: {solution.status}, {solution.n_iter} nodes, "
        f"{solution.lower_bound:.3f} <= optimum <= {solution.objective:.3f}, "
        f"gap {solution.gap:.1e}; dca {search.objective:.3f}"
    )

# %%
# The optimum lies in the shaded band. First: it closes after a few dozen nodes; mind the
# scale. Second: most of it closes soon, the rest slowly. Third: the bound starts at 0, and a third
# of the band remains: the classifier may be optimal, but nobody knows.
#
# When it does not help: the best objective is there before the first node, and the search
# alone, ``solver="dca"``, finds the same one. Without a need for a proof, take that.

BLUE, VERMILLION = "#0072B2", "#D55E00"
for family, trace in traces.items():
    _, axes = plt.subplots(figsize=(4.4, 3.8), layout="constrained")
    nodes, objective, bound = trace.T
    axes.fill_between(nodes, bound, objective, step="post", color="#BBBBBB", alpha=0.5)
    axes.step(nodes, objective, where="post", color=BLUE, linewidth=2, label="best objective")
    axes.step(nodes, bound, where="post", color=VERMILLION, linewidth=2, label="proven bound")
    axes.set(title=f"{family} {families[family]}", xlabel="nodes", ylabel="objective")
    if family == "trigonometric":
        axes.ticklabel_format(axis="y", useOffset=False)
    else:
        axes.set(ylim=(0, None))
    axes.legend(loc="lower right")
plt.show()

# sphinx_gallery_thumbnail_number = 3
