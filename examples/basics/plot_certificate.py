"""
=================================================
The certificate: how far from the optimum at most
=================================================

Every fit reports ``objective_``, ``lower_bound_`` and ``gap_``: no classifier has an objective
below the bound. The bound also limits how far the fitted ``w`` is from the best one: with
``d = objective_ - lower_bound_`` the distance is at most ``sqrt(2 d)``.
"""

# %%
# The breast cancer data, the worst 20 % count. We ask for less and less of a gap.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from owasvm import LinearOWASVC

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)


def fit(tol):
    """The classifier whose gap is at most tol."""
    return LinearOWASVC(weights="superquantile", alpha=0.2, tol=tol).fit(X_train, y_train)


best = fit(1e-11)
tols = 10.0 ** -np.arange(1, 9)
models = [fit(tol) for tol in tols]

print("asked    gap reached  bound <= optimum <= objective  steps  test accuracy")
for tol, model in zip(tols, models, strict=True):
    print(
        f"{tol:.0e}  {model.gap_:11.1e}  {model.lower_bound_:.7f} .. {model.objective_:.7f}"
        f"{model.n_iter_:13d}{model.score(X_test, y_test):14.1%}"
    )

# %%
# What the gap guarantees, and what is true. The true error of the objective and of ``w`` is
# measured against a fit with a gap of 1e-11; users do not have that one, but they have the bound.

guaranteed = np.array([np.sqrt(2 * (m.objective_ - m.lower_bound_)) for m in models])
distance = np.array([np.linalg.norm(m.coef_ - best.coef_) for m in models])
print("the guarantee holds:", bool(np.all(distance <= guaranteed)))

# %%
# A tolerance of 1e-2 or 1e-3 may already give the accuracy of the optimum: the certificate tells
# how well the problem is solved, not how good the classifier is on new samples. It helps to know
# that a difference between two models comes from the models.

BLUE, VERMILLION, GREY = "#0072B2", "#D55E00", "#888888"
_, gaps = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, distances = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
gaps.loglog(tols, tols, ":", color=GREY, label="gap asked for")
gaps.loglog(tols, [m.gap_ for m in models], "o-", color=BLUE, label="gap proven")
errors = [(m.objective_ - best.lower_bound_) / m.objective_ for m in models]
gaps.loglog(tols, np.maximum(errors, 1e-12), "s--", color=VERMILLION, label="true error")
gaps.set(xlabel="tol", ylabel="relative to the objective")
gaps.legend(loc="upper left")
distances.loglog(tols, guaranteed, "o-", color=BLUE, label="guaranteed: sqrt(2 d)")
distances.loglog(tols, np.maximum(distance, 1e-12), "s--", color=VERMILLION, label="true distance")
distances.set(xlabel="tol", ylabel="distance of w from the best one")
distances.legend(loc="upper left")
plt.show()
