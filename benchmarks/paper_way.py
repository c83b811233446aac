"""The paper's way: the dual with n^2 variables through Clarabel, against the Newton solver.

Ten stratified folds of ionosphere (the paper's: shuffled, random state 2), 315 or 316 training
samples, Gaussian kernel of width 1, C = 1, basic quantifier, alpha 0.6. The dual C-OWA-SVM_K runs
on the first two folds (it takes seconds), the Newton solver on all; one thread, one run.

    OWASVM_DATA=... python benchmarks/paper_way.py
"""

from common import best_time, gram, load, machine

import numpy as np
from sklearn.model_selection import StratifiedKFold

from owasvm import OWASVC


def main() -> None:
    print(machine())
    X, y = load("ionosphere")
    folds = StratifiedKFold(10, shuffle=True, random_state=2).split(X, y)
    ratios = []
    for fold, (train, _) in enumerate(folds):
        K, labels = gram(X[train], 1.0), y[train]
        fast = OWASVC(kernel="precomputed")
        fast.fit(K, labels)
        fast_time, _ = best_time(lambda: fast.fit(K, labels))
        line = f"fold {fold}, n = {labels.size}: newton {1e3 * fast_time:.1f} ms"
        if fold < 2:
            slow = OWASVC(kernel="precomputed", solver="assignment-dual")
            slow_time, _ = best_time(lambda: slow.fit(K, labels), 1)
            ratios.append(slow_time / fast_time)
            difference = abs(slow.objective_ - fast.objective_) / fast.objective_
            line += (
                f", n^2 dual through Clarabel {slow_time:.1f} s, {ratios[-1]:.0f} times faster, "
                f"objectives differ by {difference:.1e} (gaps {fast.gap_:.1e}, {slow.gap_:.1e})"
            )
        print(line, flush=True)
    print(f"newton is {np.median(ratios):.0f} times faster (median), {min(ratios):.0f} at least")


if __name__ == "__main__":
    main()
