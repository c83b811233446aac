"""Several classes: ``OWASVC``, one against the rest, beside ``OneVsRestClassifier(SVC)``.

Ten classes of digits (n = 1,797, 64 features), Gaussian kernel with ``gamma="scale"``, basic
quantifier, alpha 0.6, pixels divided by 16 and standardised; processor time, one thread.

    python benchmarks/multiclass.py [n_repeats]
"""

from common import best_time, machine

import sys
import time
from typing import Any

from sklearn.datasets import load_digits
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC


def measure(classifier: Any, X: Any, y: Any, n_repeats: int) -> float:
    """Least processor time of some fits."""
    return best_time(lambda: classifier.fit(X, y), n_repeats, time.process_time)[0]


def main(n_repeats: int) -> None:
    print(machine())
    pixels, y = load_digits(return_X_y=True)
    scaled = {"/ 16": pixels / 16.0, "standardised": StandardScaler().fit_transform(pixels)}
    OWASVC().fit(pixels[:200], y[:200])
    for name, X in scaled.items():
        for C in (1.0, 10.0):
            ours = OWASVC(C=C)
            taken = measure(ours, X, y, n_repeats)
            rival = measure(OneVsRestClassifier(SVC(C=C)), X, y, n_repeats)
            print(
                f"digits {name}, C = {C:g}: {taken:.2f} s against {rival:.2f} s, "
                f"{taken / rival:.1f} times; largest gap {max(ours.gap_):.1e}, steps "
                f"{ours.n_iter_.tolist()}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
