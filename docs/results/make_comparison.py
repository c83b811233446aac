"""Write the tables of ``docs/comparison.md`` from a run with nested cross-validation.

    owasvm reproduce --grid coarse --dataset all --output RUN
    python docs/results/make_comparison.py RUN

writes ``nested.md`` and ``nested-pairs.md`` beside this script.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

from owasvm.experiments import paper
from owasvm.experiments.report import beyond
from owasvm.experiments.report.run import METRIC_NAMES, Run, label, load_run

FOLDER = Path(__file__).resolve().parent
LEVEL = 0.05


def nested_scores(run: Run, metric: str) -> pd.DataFrame:
    """Scores of complete nested cross-validations, fold by fold."""
    scores = beyond.nested_fold_scores(run.cells, run.inner, metric)
    sizes = scores.groupby(["dataset", "model"])["fold"].transform("nunique")
    return scores[sizes == paper.N_FOLDS]


def write_means(run: Run, scores: dict[str, pd.DataFrame]) -> str:
    """Nested estimates, and how much the best of the grid promises beyond them."""
    lines = [
        "| Data | | " + " | ".join(paper.MODELS) + " | best of the grid promises |",
        "|:--|:--|" + "--:|" * (len(paper.MODELS) + 1),
    ]
    for dataset in run.datasets:
        for metric, name in METRIC_NAMES.items():
            part = scores[metric][scores[metric]["dataset"] == dataset]
            means = part.groupby("model")["score"].mean()
            if len(means) < len(paper.MODELS):
                continue
            best = run.compared[metric, "same"].set_index(["dataset", "model"])["ours"][dataset]
            excess = float((best - means).mean())
            cells = [f"{means[model]:.2f}" for model in paper.MODELS]
            lines.append(f"| {label(dataset)} | {name} | {' | '.join(cells)} | +{excess:.2f} |")
    return "\n".join(lines) + "\n"


def detectable(scores: pd.DataFrame, row: dict[str, object]) -> float:
    """Smallest mean difference that the corrected t test would call significant on its own."""
    of_dataset = scores[scores["dataset"] == row["dataset"]].pivot(
        index="fold", columns="model", values="score"
    )
    differences = of_dataset[row["first"]] - of_dataset[row["second"]]
    correction = 1 / paper.N_FOLDS + 1 / (paper.N_FOLDS - 1)
    quantile = student.ppf(1 - LEVEL / 2, paper.N_FOLDS - 1)
    return float(quantile * np.sqrt(correction * differences.var(ddof=1)))


def write_pairs(scores: dict[str, pd.DataFrame]) -> str:
    """Paired tests of the nested estimates."""
    compared = {metric: beyond.paired_comparisons(frame) for metric, frame in scores.items()}
    lines = [
        "| Data | model | against | "
        + " | ".join(f"{name}: difference | p (t) | p (W)" for name in METRIC_NAMES.values())
        + " |",
        "|:--|:--|:--|" + "--:|" * (3 * len(METRIC_NAMES)),
    ]
    keys = ["dataset", "first", "second"]
    both = compared["acc"].merge(compared["auc"], on=keys, suffixes=("_acc", "_auc"))
    for row in both.to_dict("records"):
        cells = [label(row["dataset"]), row["first"], row["second"]]
        for metric in METRIC_NAMES:
            cells.append(f"{row[f'mean_difference_{metric}']:+.2f}")
            cells += [f"{row[f'{test}_p_value_{metric}']:.3f}" for test in ("t", "wilcoxon")]
        lines.append(f"| {' | '.join(cells)} |")
    frames = list(compared.values())
    n_pairs = sum(map(len, frames))
    columns = ["t_holm", "wilcoxon_holm"]
    n_clear = sum(int((frame[columns] <= LEVEL).any(axis=1).sum()) for frame in frames)
    smallest = min(float(frame[["t_p_value", "wilcoxon_p_value"]].min().min()) for frame in frames)
    limits = [
        detectable(scores[metric], row)
        for metric, frame in compared.items()
        for row in frame.to_dict("records")
    ]
    summary = (
        f"Of {n_pairs} comparisons {n_clear or 'none'} "
        f"{'has' if n_clear < 2 else 'have'} p ≤ {LEVEL} in either test after Holm's correction "
        f"(within ACC and within AUC); the smallest p-value before correction is {smallest:.3f}. "
        f"Ten folds are a blunt instrument: in half of the comparisons a difference below "
        f"{np.median(limits):.1f} points could not have been found even without correction."
    )
    return f"{summary}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    run = load_run(Path(sys.argv[1]))
    scores = {metric: nested_scores(run, metric) for metric in METRIC_NAMES}
    (FOLDER / "nested.md").write_text(write_means(run, scores), encoding="utf-8")
    (FOLDER / "nested-pairs.md").write_text(write_pairs(scores), encoding="utf-8")


if __name__ == "__main__":
    main()
