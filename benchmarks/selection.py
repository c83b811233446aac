"""Choosing parameters: ``OWASVCCV`` and ``LinearOWASVCCV`` against ``GridSearchCV``.

The same candidates on the same folds, one process, one thread, basic quantifier, alpha 0.6;
processor time, after a small search that loads what is compiled.

kernel
    The paper's grid, 15 values of C by 15 widths, ten folds, on one of the six datasets.
linear
    15 values of C, five folds, n = 20,000 samples of 50 features.

    OWASVM_DATA=... python benchmarks/selection.py kernel [dataset ...]
    python benchmarks/selection.py linear
"""

from common import load, machine

import sys
import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV

CS = (2.0 ** np.arange(-7, 8)).tolist()
GAMMAS = (1.0 / (2.0 * (2.0 ** np.arange(-7, 8)) ** 2)).tolist()
FIXED = {"alpha": [0.6], "weights": ["basic"]}


def compare(name: str, ours: Any, theirs: Any, X: Any, y: Any) -> None:
    """Time both and say where their scores differ."""
    begun = time.process_time()
    ours.fit(X, y)
    middle = time.process_time()
    theirs.fit(X, y)
    ended = time.process_time()
    scores = [
        np.array([s.cv_results_[f"split{k}_test_score"] for k in range(s.n_splits_)])
        for s in (ours, theirs)
    ]
    differ = np.abs(scores[0] - scores[1]) > 1e-12
    votes = np.abs(scores[0] - scores[1]).max() * y.size / ours.n_splits_
    print(
        f"{name}: {middle - begun:.1f} s against {ended - middle:.1f} s, "
        f"{(ended - middle) / (middle - begun):.1f} times faster; {differ.sum()} of {differ.size} "
        f"scores differ, by {votes:.1f} votes at most; best {ours.best_params_} and "
        f"{theirs.best_params_}, {ours.best_score_:.6f} and {theirs.best_score_:.6f}",
        flush=True,
    )


def main(kind: str, names: list[str]) -> None:
    print(machine())
    if kind == "kernel":
        for name in names or ["ionosphere"]:
            X, y = load(name)
            OWASVCCV([0.1, 1.0], cv=2, refit=False).fit(X, y)
            cv = StratifiedKFold(10)
            compare(
                name,
                OWASVCCV(CS, gammas=GAMMAS, cv=cv, refit=False),
                GridSearchCV(OWASVC(), {"C": CS, "gamma": GAMMAS, **FIXED}, cv=cv, refit=False),
                X,
                y,
            )
        return
    X, y = make_classification(
        20_000, 50, n_informative=20, flip_y=0.05, class_sep=0.7, random_state=0
    )
    LinearOWASVCCV([0.1, 1.0], cv=2, refit=False).fit(X[:1000], y[:1000])
    compare(
        "linear 20,000 x 50",
        LinearOWASVCCV(CS, cv=5, refit=False),
        GridSearchCV(LinearOWASVC(), {"C": CS, **FIXED}, cv=5, refit=False),
        X,
        y,
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "kernel", sys.argv[2:])
