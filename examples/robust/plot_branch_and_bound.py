"""
===========================================
General weights: watching the proof advance
===========================================

Weights that fall somewhere make the problem non-convex. Branch and bound keeps two numbers: the
best objective found, and a bound that no classifier can go below. The fit is proven when they
meet. How soon that is depends on the weights more than on the size.
"""

# %%
# Iris, versicolor against virginica, 50 samples of it, three families of falling weights. The
# callback gets both numbers after every step.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import solve

X, y = load_iris(return_X_y=True)
chosen = np.flatnonzero(y > 0)[::2]
X, signs = StandardScaler().fit_transform(X[chosen]), np.where(y[chosen] == 1, -1.0, 1.0)

families = {"quadratic": 0.8, "trigonometric": 0.8, "trimmed": 0.1}
traces = {}
for family, alpha in families.items():
    steps = []
    problem = OWAProblem(signs, RankCosts(chosen.size, family, alpha), features=X)
    solution = solve(
        problem, "branch-and-bound", callback=steps.append, options={"max_nodes": 300}
    )
    traces[family] = {
        key: np.array([s[key] for s in steps])
        for key in ("time", "n_iter", "objective", "lower_bound")
    }
    print(
        f"{family:13s} {alpha}: {solution.status}, {solution.n_iter} nodes, "
        f"{solution.lower_bound:.4f} <= optimum <= {solution.objective:.4f}"
    )

figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axes, (family, t) in zip(panels, traces.items(), strict=True):
    print(family, len(t["time"]), t["time"][:5], t["n_iter"][:8])
    axes.step(t["n_iter"], t["objective"], color="#0072B2")
    axes.step(t["n_iter"], t["lower_bound"], color="#D55E00")
plt.show()
