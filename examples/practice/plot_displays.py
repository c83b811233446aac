"""
=======================================
What a classifier did, in five pictures
=======================================

``owasvm.inspection`` draws the weights of a classifier, who pays its loss, and what changes along
C. The data are those of 569 breast tumours, with one label in twenty turned on purpose.
"""

# %%
# 29 labels are wrong. Nothing below is told which.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from owasvm import OWASVC, LinearOWASVCCV
from owasvm.inspection import DeviationsDisplay, PathDisplay, WeightsDisplay
from owasvm.path import fit_path

data = load_breast_cancer()
X, y = data.data, data.target.copy()
turned = np.random.default_rng(0).choice(y.size, 29, replace=False)
y[turned] = 1 - y[turned]

# %%
# **Weights.** A line says how much a sample counts by the rank of its deviation: 1 is what it
# counts in a classical SVM. Superquantiles count the worst samples only, trimmed weights all but
# the worst.

WeightsDisplay.from_weights(["superquantile", "basic", "trimmed"], alphas=0.2)
plt.show()

# %%
# **Who pays.** Markers are deviations, bars what is paid for them. Trimmed weights ignore the
# worst 7 %: the crosses, which pay nothing. Most of them are labels that were turned.

model = make_pipeline(StandardScaler(), OWASVC(weights="trimmed", alpha=0.07)).fit(X, y)
is_turned = np.isin(np.arange(y.size), turned)
groups = np.where(is_turned, "label turned", "label kept")
DeviationsDisplay.from_estimator(model, groups=groups)
plt.show()

# %%
# The same samples under a superquantile: the worst fifth pays everything, so that turned labels
# rule the classifier. These are weights for data that can be trusted.

steep = make_pipeline(StandardScaler(), OWASVC(weights="superquantile", alpha=0.2)).fit(X, y)
DeviationsDisplay.from_estimator(steep, groups=groups)
plt.show()

# %%
# **Scores along C.** Error bars are one standard error over the folds. The star is the best mean;
# the diamond the smallest C that is not worse than that by more than its standard error.

search = LinearOWASVCCV(Cs=np.logspace(-4, 0, 7), alphas=[0.3, 0.9], cv=5).fit(scale(X), y)
PathDisplay.from_search(search)
plt.show()

# %%
# **Coefficients along C**, from solutions that start from each other.
#
# When it does not help: deviations and costs are those of training samples. They say who shaped
# the classifier, not how well it does on new ones.

path = fit_path(scale(X), y, Cs=np.logspace(-4, 0, 9), alphas=0.9, kernel="linear")
PathDisplay.from_path(path, "coef", feature_names=data.feature_names)
plt.show()
