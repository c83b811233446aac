"""Are the printed values still reached where a run of the paper's whole grid reached them?

    python benchmarks/known_points.py

computes, for each of the 72 printed values of accuracy and AUC that the whole grid reproduces, the
one point of the grid at which it does, on all ten folds: seconds instead of hours. It shows that
the code of today gives the published tables at these points; that no other point does better only
the whole grid can show.
"""

import time

import numpy as np

from common import machine
from owasvm.experiments import chains, paper
from owasvm.experiments.known_points import KNOWN_POINTS
from owasvm.experiments.plan import Chain, FitOptions
from owasvm.experiments.protocol import load_data
from owasvm.experiments.report.comparison import METRICS, agrees
from owasvm.experiments.workers import limit_threads, warm_up


def score(metric: str, dataset: str, model: str) -> float:
    """Mean over the ten folds at the known point, in percent."""
    point = KNOWN_POINTS[metric, dataset, model]
    data = load_data(dataset)
    values = []
    for fold in range(paper.N_FOLDS):
        chain = Chain(
            dataset,
            paper.paper_folds(model),
            model,
            point.width,
            fold,
            (point.C,),
            ((point.quantifier, point.alpha),),
        )
        row = chains.compute(chain, 0, data, FitOptions(), {}).row
        accuracy = row["correct"] / row["n_test"]
        values.append(accuracy if metric == "acc" else row["balanced_accuracy"])
    return 100.0 * float(np.mean(values))


def main() -> None:
    print(machine())
    counts = {"to the last digit": 0, "exact models, better than printed": 0, "differ": 0}
    begun = time.process_time()
    with limit_threads():
        warm_up()
        for metric, dataset, model in KNOWN_POINTS:
            printed = METRICS[metric][dataset][model]
            ours = round(score(metric, dataset, model), 2)
            if abs(ours - printed) < 1e-6:
                counts["to the last digit"] += 1
            elif agrees(model, ours - printed):
                counts["exact models, better than printed"] += 1
            else:
                counts["differ"] += 1
                print(f"{metric} {dataset} {model}: {ours:.2f}, printed {printed:.2f}")
    seconds = time.process_time() - begun
    print(f"{len(KNOWN_POINTS)} printed values, {seconds:.0f} s of processor time")
    for name, count in counts.items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
