"""The tables that go beyond those of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from owasvm.experiments import paper, tables
from owasvm.experiments.protocol import FOLDS, N_INNER_FOLDS
from owasvm.experiments.report import beyond, comparison
from owasvm.experiments.report.paper_tables import arrange
from owasvm.experiments.report.run import METRIC_NAMES, Run, label
from owasvm.experiments.report.symbols import ALPHA
from owasvm.experiments.report.table import Cell, Column, Table
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "gaps_table",
    "general_table",
    "nested_table",
    "paired_table",
    "progress_table",
    "versions_table",
]


# Adjusted p-values up to this one are printed in bold.
_LEVEL = 0.05


def general_table(run: Run) -> Table:
    rows = []
    for metric in comparison.METRICS:
        convex = tables.best_parameters(run.points[run.points["convex"] == 1], metric)
        for cell in run.compared[metric, "paper"].to_dict("records"):
            if not paper.is_exact(cell["model"]) or cell["ours"] != cell["ours"]:
                continue
            same = (convex["dataset"] == cell["dataset"]) & (convex["model"] == cell["model"])
            limited = convex.loc[same & (convex["folds"] == "shuffled"), metric].tolist()
            value = limited[0] if limited else None
            rows.append(
                [
                    label(cell["dataset"]),
                    cell["model"],
                    METRIC_NAMES[metric],
                    cell["ours"],
                    f"{cell['quantifier']}, {ALPHA} = {cell['alpha']:g}",
                    "non-decreasing" if cell["convex"] else "general",
                    cell["gap"],
                    value,
                    None if value is None else cell["ours"] - value,
                ]
            )
    return Table(
        slug="general-weights",
        title="Exact cells and their weights",
        caption=(
            "On which weights the best cells of the exact models rest, with the largest certified "
            "gap over the ten folds, and the best cell with non-decreasing (convex) weights alone."
        ),
        columns=[
            Column("Data"),
            Column("Model"),
            Column("Table"),
            Column("best (%)", "percent"),
            Column("Winning weights"),
            Column("Kind"),
            Column("largest gap", "gap"),
            Column("best convex (%)", "percent"),
            Column("gain", "points"),
        ],
        rows=rows,
        n_row_headers=3,
        empty="No exact model was run.",
    )


def gaps_table(run: Run) -> Table:
    frame = beyond.gap_distribution(run.cells)
    exact = [model for model in paper.MODELS if paper.is_exact(model)]
    keys = ("cells", "optimal", "below_0.1%", "below_1%", "worst")
    rows = []
    for (dataset, quantifier, alpha), part in frame.groupby(
        ["dataset", "quantifier", "alpha"], sort=False
    ):
        by_model = {row["model"]: row for row in part.to_dict("records")}
        row = [label(dataset), quantifier, float(alpha)]
        for model in exact:
            row += [by_model.get(model, {}).get(key) for key in keys]
        rows.append(row)
    kinds = {
        "fits": "integer",
        "optimal": "share",
        "≤ 0.1 %": "share",
        "≤ 1 %": "share",
        "largest": "gap",
    }
    return Table(
        slug="gaps",
        title="Certified gaps with general weights",
        caption=(
            "Exact models with weights that fall somewhere, where the problem is not convex: how "
            "far the objective can be above the global optimum, as proven by the solver. Shares "
            "of the fits solved to the target, within 0.1 % and within 1 %, and the largest gap."
        ),
        columns=[Column("Data"), Column("Quantifier"), Column(ALPHA, "number")]
        + [Column(header, kind, model) for model in exact for header, kind in kinds.items()],
        rows=rows,
        n_row_headers=3,
        empty="No exact model with general weights was run.",
    )


def nested_table(run: Run, metric: str, nested: pd.DataFrame) -> Table:
    name = METRIC_NAMES[metric]
    means = nested.groupby(["dataset", "model"])["score"].agg(["mean", "count"])
    frame = run.compared[metric, "same"]
    blocks: dict[str, list[list[Any]]] = {}
    for cell in frame.to_dict("records"):
        block = blocks.setdefault(cell["dataset"], [])
        key = (cell["dataset"], cell["model"])
        if key not in means.index:
            block.append([cell["ours"], "not run", None])
            continue
        mean, count = means.loc[key]
        marks = ("partial",) if count < paper.N_FOLDS else ()
        block.append([cell["ours"], Cell(float(mean), marks), float(mean) - cell["ours"]])
    columns, rows = arrange(blocks, {"grid": "percent", "nested": "percent", "diff.": "points"})
    return Table(
        slug=f"nested-{metric}",
        title=f"Nested cross-validation, {name}",
        caption=(
            f"{name} (%) on the shuffled folds: the best cell of the grid, chosen on the folds "
            "it is reported on, beside the nested estimate, whose parameters are chosen by five "
            "inner folds of the training part alone."
        ),
        columns=columns,
        rows=rows,
    )


def paired_table(metric: str, scores: Sequence[pd.DataFrame]) -> Table:
    rows = []
    for selection, frame in zip(beyond.SELECTIONS, scores, strict=True):
        for row in beyond.paired_comparisons(frame).to_dict("records"):
            t, wilcoxon = (
                Cell(row[key], bold=row[key] <= _LEVEL) for key in ("t_holm", "wilcoxon_holm")
            )
            rows.append(
                [
                    label(row["dataset"]),
                    row["first"],
                    row["second"],
                    selection,
                    row["mean_difference"],
                    f"{row['wins']} / {row['draws']} / {row['losses']}",
                    row["t_p_value"],
                    t,
                    row["wilcoxon_p_value"],
                    wilcoxon,
                ]
            )
    tests = ("Corrected resampled t", "Wilcoxon")
    name = METRIC_NAMES[metric]
    return Table(
        slug=f"paired-{metric}",
        title=f"Paired comparisons, {name}",
        caption=(
            f"{name} of an exact model against another model on the same shuffled folds: mean "
            "difference in points, folds won, drawn and lost, and two-sided p-values, alone and "
            "after Holm's correction over all comparisons with the same choice of parameters "
            f"(bold up to {_LEVEL})."
        ),
        columns=[
            Column("Data"),
            Column("Model"),
            Column("against"),
            Column("Parameters"),
            Column("mean diff.", "points"),
            Column("won / drawn / lost"),
            *(Column(header, "p", group) for group in tests for header in ("p", "Holm")),
        ],
        rows=rows,
        n_row_headers=4,
        empty="No pair of models has all ten folds.",
    )


def progress_table(run: Run) -> Table:
    order = {model: rank for rank, model in enumerate(paper.MODELS)}
    frame = require("pandas", "A report").concat([run.progress, _inner_progress(run)])
    frame = frame.assign(
        _dataset=frame["dataset"].map({name: i for i, name in enumerate(run.datasets)}),
        _model=frame["model"].map(order),
        _folds=frame["folds"].map({name: i for i, name in enumerate(FOLDS)}),
    ).sort_values(["_dataset", "_model", "_folds"])
    keys = ("model", "folds", "done", "expected", "share", "paper_share")
    return Table(
        slug="progress",
        title="What was run",
        caption=(
            "Fits that are stored, and the share of the run's grid and of the paper's grid. "
            "Nested folds are the inner ones of the nested cross-validation, five in each "
            "shuffled fold."
        ),
        columns=[
            Column("Data"),
            Column("Model"),
            Column("Folds"),
            Column("fits", "integer"),
            Column("of", "integer"),
            Column("run's grid", "share"),
            Column("paper's grid", "share"),
        ],
        rows=[
            [label(row["dataset"]), *(row[key] for key in keys)]
            for row in frame.to_dict("records")
        ],
        n_row_headers=3,
    )


def _inner_progress(run: Run) -> pd.DataFrame:
    """Progress of the inner folds, in the columns of the other folds."""
    counts = run.counts[run.counts["folds"] == "nested"]
    inner = counts.groupby(["dataset", "folds", "model"], as_index=False)["fits"].sum()
    outer = run.progress[run.progress["folds"] == "shuffled"]
    frame = inner.merge(outer.drop(columns="folds"), on=["dataset", "model"])
    per_inner_fold = frame["fits"] / N_INNER_FOLDS
    return frame.assign(
        done=frame["fits"],
        expected=N_INNER_FOLDS * frame["expected"],
        share=per_inner_fold / frame["expected"],
        paper_share=frame["paper_share"] * per_inner_fold / frame["done"],
    )


def versions_table(run: Run) -> Table:
    names = sorted({name for versions in run.versions.values() for name in versions})
    counts = run.counts.groupby("versions")["fits"].sum()
    numbers = [number for number in run.versions if counts.get(number, 0) > 0]
    return Table(
        slug="versions",
        title="Software",
        caption="Versions of the software that made the fits, and how many fits each set made.",
        columns=[Column("Software")] + [Column(f"set {number}") for number in numbers],
        rows=[[name, *(run.versions[number].get(name) for number in numbers)] for name in names]
        + [["fits", *(f"{counts[number]:,}" for number in numbers)]],
    )
