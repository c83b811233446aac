"""
=========================
From a data frame to ONNX
=========================

A pipeline that imputes, encodes, scales and classifies, written as one ONNX file: whoever deploys
it needs onnxruntime, and neither owasvm nor scikit-learn. Scores agree to rounding. You need
``pip install '.[onnx]' onnxruntime pandas``.
"""

# %%
# The wine data as a data frame, with missing values and a column of text.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from owasvm import OWASVC

wine = load_wine()
numbers = ["alcohol", "malic_acid", "flavanoids", "color_intensity", "proline"]
frame = pd.DataFrame(wine.data, columns=wine.feature_names)[numbers]
frame["strength"] = np.where(frame["alcohol"] > 13, "strong", "light")
rng = np.random.default_rng(0)
frame.loc[rng.choice(len(frame), 20, replace=False), "proline"] = np.nan
labels = wine.target_names[wine.target]

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    (OneHotEncoder(handle_unknown="ignore"), ["strength"]),
)
X_train, X_test, y_train, y_test = train_test_split(frame, labels, stratify=labels, random_state=0)
model = make_pipeline(columns, OWASVC(weights="basic", alpha=0.6)).fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.1%} of {len(X_test)} wines")

# %%
# Export it, load it with onnxruntime, compare.

try:
    import onnxruntime

    from owasvm.export import to_onnx

    graph = to_onnx(model, X_train).SerializeToString()
    session = onnxruntime.InferenceSession(graph)
    rows = {name: X_test[[name]].to_numpy() for name in X_test.columns}
    predicted, scores = session.run(["label", "probabilities"], rows)
    print(f"{len(graph) / 1024:.0f} KB, inputs:", ", ".join(i.name for i in session.get_inputs()))
    print("labels equal:", np.array_equal(predicted, model.predict(X_test)))
    difference = np.abs(scores - model.decision_function(X_test)).max()
    print(f"largest difference of scores {difference:.0e}")
except ImportError as missing:  # the page is built without these packages
    print(f"skipped, {missing}")
    scores = None

# %%
# Scores of the three classes, in Python and from the file. When it does not help: models with a
# kernel of your own (a function, or ``"precomputed"``) have no formula to export and are refused.

expected = model.decision_function(X_test)

_, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
for k, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))):
    shown = expected if scores is None else scores
    axes.scatter(expected[:, k], shown[:, k], c=colour, marker=marker, label=model.classes_[k])
limits = expected.min() - 0.2, expected.max() + 0.2
axes.plot(limits, limits, color="#888888", linewidth=1, zorder=0)
axes.set(xlabel="decision_function in Python", ylabel="score from the ONNX file")
axes.legend(title="score for")
plt.show()
