"""How exact are exported models, and how fast in onnxruntime?

Labels and scores of 32 models (linear, rbf, poly; 2 and 5 classes; with and without a scaler) in
onnxruntime against ``predict`` and ``decision_function``, in double and in single precision; then
the time for one sample and for 2,000 of them against SVMClassifier, the operator that skl2onnx
makes of sklearn.svm.SVC, on one thread.

    python benchmarks/onnx_export.py
"""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
import onnxruntime
import skl2onnx
from common import machine
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC
from owasvm.export import to_onnx

CLASSIFIERS = {
    "linear": LinearOWASVC(),
    "linear, squared hinge": LinearOWASVC(loss="squared_hinge", weights="superquantile"),
    "linear kernel": OWASVC(kernel="linear"),
    "rbf": OWASVC(),
    "rbf, C = 1000": OWASVC(C=1000.0, gamma=0.1),
    "poly": OWASVC(kernel="poly", coef0=1.0),
    "poly, degree 5, C = 100": OWASVC(kernel="poly", degree=5, C=100.0),
    "two-step, poly": TwoStepOWASVC(kernel="poly", degree=2),
}


def start(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def compare() -> None:
    worst = {np.float64: 0.0, np.float32: 0.0}
    wrong = n_models = 0
    print(f"\n{'model':26}{'classes':>8}{'scaler':>8}{'double':>10}{'single':>10}")
    for name, classifier in CLASSIFIERS.items():
        for n_classes in (2, 5):
            X, y = make_classification(
                500, 10, n_informative=8, n_classes=n_classes, flip_y=0.05, random_state=0
            )
            for scaled in (False, True):
                model = make_pipeline(StandardScaler(), classifier) if scaled else classifier
                model.fit(X[:300], y[:300])
                n_models += 1
                errors = []
                for dtype in worst:
                    samples = X.astype(dtype)
                    label, scores = start(to_onnx(model, samples)).run(None, {"X": samples})
                    expected = model.decision_function(samples)
                    wrong += int((label != model.predict(samples)).sum())
                    error = np.abs(scores.reshape(expected.shape) - expected).max()
                    errors.append(error / np.abs(expected).max())
                    worst[dtype] = max(worst[dtype], errors[-1])
                print(
                    f"{name:26}{n_classes:8}{'yes' if scaled else 'no':>8}"
                    f"{errors[0]:10.1e}{errors[1]:10.1e}"
                )
    print(
        f"{n_models} models, {wrong} labels differ; largest error of a score, relative to the "
        f"largest score: {worst[np.float64]:.1e} double, {worst[np.float32]:.1e} single"
    )


def shortest(function, repeats: int = 30) -> float:
    times = []
    for _ in range(repeats):
        begun = perf_counter()
        function()
        times.append(perf_counter() - begun)
    return 1000.0 * min(times)


def race() -> None:
    X, y = make_classification(2000, 20, n_informative=10, flip_y=0.1, random_state=0)
    X = X.astype(np.float32)
    print(f"\n{'ms, float32':12}{'samples':>8}{'owasvm':>24}{'SVMClassifier':>24}")
    for kernel in ("linear", "rbf", "poly"):
        ours = OWASVC(kernel=kernel).fit(X[:1500], y[:1500])
        rival = SVC(kernel=kernel).fit(X[:1500], y[:1500])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            graph = skl2onnx.to_onnx(rival, X, options={"zipmap": False})
        sessions = start(to_onnx(ours, X)), start(graph)
        for n_samples in (1, 2000):
            rows = {"X": X[:n_samples]}
            times = [shortest(lambda s=session: s.run(None, rows)) for session in sessions]
            counts = ours.dual_coef_.shape[1], rival.support_.size
            cells = [
                f"{time:.3f} ({count} vectors)" for time, count in zip(times, counts, strict=True)
            ]
            print(f"{kernel:12}{n_samples:8}{cells[0]:>24}{cells[1]:>24}")


if __name__ == "__main__":
    print(machine())
    print(f"onnxruntime {onnxruntime.__version__}, skl2onnx {skl2onnx.__version__}")
    compare()
    race()
