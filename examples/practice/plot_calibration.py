"""
===================================
Probabilities from decision values
===================================

Decision values are no probabilities, and rank weights move them further away: they pull the
worst samples towards the margin. Calibration on held-out folds mends that, for any weights.
"""

# %%
# Diabetes: progression above the median or not. Scores are squeezed into [0, 1] by the logistic
# function, or calibrated by five folds. Ten splits in halves.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

from owasvm import LinearOWASVC

X, progression = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
y = (progression > np.median(progression)).astype(int)

weights = {"uniform": ("uniform", None), "basic 0.5": ("basic", 0.5)}
methods = [*(f"{name}, {how}" for name in weights for how in ("raw", "calibrated")), "logistic"]
forecasts = {method: [] for method in methods}
outcomes = []
for seed in range(10):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    outcomes.append(y_test)
    for name, (family, alpha) in weights.items():
        model = LinearOWASVC(C=0.1, weights=family, alpha=alpha)
        calibrated = CalibratedClassifierCV(model, ensemble=False, cv=5).fit(X_train, y_train)
        raw = model.fit(X_train, y_train).decision_function(X_test)
        forecasts[f"{name}, raw"].append(expit(raw))
        forecasts[f"{name}, calibrated"].append(calibrated.predict_proba(X_test)[:, 1])
    logistic = LogisticRegression(C=0.1).fit(X_train, y_train)
    forecasts["logistic"].append(logistic.predict_proba(X_test)[:, 1])

for method, parts in forecasts.items():
    losses = np.array([brier_score_loss(t, p) for t, p in zip(outcomes, parts, strict=True)])
    error = losses.std(ddof=1) / np.sqrt(losses.size)
    print(f"{method:21s} Brier score {losses.mean():.3f} +- {error:.3f}")

# %%
# Forecast against what happened, all test halves together, in bins of equal size. On the diagonal
# forecasts come true.
#
# When it does not help: calibration mends the numbers, not the order of the samples. A logistic
# regression has probabilities from the start and is as good here.

GREY, BLUE, VERMILLION = "#888888", "#0072B2", "#D55E00"
looks = {
    "uniform, raw": (VERMILLION, "s:"),
    "uniform, calibrated": (VERMILLION, "s-"),
    "basic 0.5, raw": (BLUE, "o:"),
    "basic 0.5, calibrated": (BLUE, "o-"),
}
happened = np.concatenate(outcomes)
_, axes = plt.subplots(figsize=(6, 5.2), layout="constrained")
axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
for method, (colour, style) in looks.items():
    forecast = np.concatenate(forecasts[method])
    bins = np.array_split(np.argsort(forecast), 8)
    points = np.array([(forecast[rows].mean(), happened[rows].mean()) for rows in bins])
    axes.plot(*points.T, style, color=colour, label=method)
axes.set(xlabel="forecast", ylabel="share that came true", xlim=(0, 1), ylim=(0, 1))
axes.legend(loc="upper left")
plt.show()
