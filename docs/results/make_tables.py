"""Write tables of the documentation from a run, in fewer columns than the report has.

    python docs/results/make_tables.py nested RUN
    python docs/results/make_tables.py nested-paper RUN

write the tables of ``docs/comparison.md``, ``nested.md`` and ``nested-pairs.md``, or
``nested-paper.md`` and ``nested-paper-pairs.md``, beside this script, from a run with nested
cross-validation of the coarse grid, or of the paper's, and

    python docs/results/make_tables.py scores RUN

those of accuracy and AUC in ``docs/reproduce.md``, from a run of the paper's whole grid.
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


def write_scores(frame: pd.DataFrame, metric: str, protocol: str) -> str:
    """Best values of the grid; printed ones in brackets where they differ."""
    folds = {"paper": "folds of the paper", "same": "same folds for all"}[protocol]
    lines = [
        f"### {METRIC_NAMES[metric]}, {folds}",
        "",
        f"Table {paper.TABLES[metric].number} of the paper: best {METRIC_NAMES[metric]} (%) over "
        "the grid; the printed value in brackets where ours is another; the best of a row in "
        "bold.",
        "",
        "| Data | " + " | ".join(paper.MODELS) + " |",
        "|:--|" + "--:|" * len(paper.MODELS),
    ]
    for dataset in paper.DATASETS:
        rows = frame[frame["dataset"] == dataset].to_dict("records")
        best = max((round(row["ours"], 2) for row in rows), default=0.0)
        cells = []
        for row in rows:
            ours = f"{row['ours']:.2f}"
            bold = "**" if float(ours) == best else ""
            printed = "" if ours == f"{row['paper']:.2f}" else f" ({row['paper']:.2f})"
            cells.append(f"{bold}{ours}{bold}{printed}")
        lines.append(f"| {label(dataset)} | {' | '.join(cells)} |")
    if protocol == "same":
        lines += ["", "The printed values of l2-SVM_K come from other, unshuffled folds."]
    return "\n".join(lines) + "\n"


def write(name: str, text: str) -> None:
    (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")


def main() -> None:
    name, run = sys.argv[1], load_run(Path(sys.argv[2]))
    if name.startswith("nested"):
        scores = {metric: nested_scores(run, metric) for metric in METRIC_NAMES}
        write(name, write_means(run, scores))
        write(f"{name}-pairs", write_pairs(scores))
    else:
        for (metric, protocol), frame in run.compared.items():
            write(f"{metric}-{protocol}-folds", write_scores(frame, metric, protocol))


if __name__ == "__main__":
    main()
