"""The tables that stand beside those of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from owasvm.experiments import paper
from owasvm.experiments.report import comparison
from owasvm.experiments.report.run import METRIC_NAMES, Run, label
from owasvm.experiments.report.symbols import ALPHA, DASH, SIGMA
from owasvm.experiments.report.table import Cell, Column, Table, plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "arrange",
    "differences_table",
    "metric_table",
    "order_table",
    "parameters_table",
    "times_table",
]

_OTHER_FOLDS = (
    "The printed values of l2-SVM_K come from unshuffled folds: its differences show what other "
    "folds do."
)

_TIES = (
    "Among parameters with the same mean the winner is, in this order: non-decreasing weights, "
    f"the smallest C, the largest {SIGMA}, the first quantifier in the order of the paper, the "
    f"smallest {ALPHA}."
)


def _best(values: Iterable[Any]) -> float | None:
    """The largest number as printed, with two decimals."""
    numbers = [round(value, 2) for value in values if value is not None and value == value]
    return max(numbers) if numbers else None


def order_table(run: Run) -> Table:
    headers = {"step_two": f"Step 1 {DASH} step 2 (%)", "exact": f"Step 2 {DASH} exact (%)"}
    kinds = {
        "": ("ours", "percent"),
        "_paper": ("paper", "percent"),
        "_difference": ("diff.", "points"),
    }
    rows = [
        [label(row["dataset"])]
        + [row[f"{column}{suffix}"] for column in headers for suffix in kinds]
        for row in comparison.compare_orders(run.orders).to_dict("records")
    ]
    return Table(
        slug="order",
        title="Coincidence of the orders",
        caption=(
            f"Table {paper.TABLES['order'].number} of the paper: samples (%) with the same "
            "position among the sorted deviations after step 1 and step 2 of app-OWA-SVM_K, and "
            f"after step 2 and in ex-OWA-SVM_K. C = 1, {SIGMA} = 1, basic weights, "
            f"{ALPHA} = 0.6; means over the folds."
        ),
        columns=[Column("Data")]
        + [
            Column(header, kind, group)
            for group in headers.values()
            for header, kind in kinds.values()
        ],
        rows=rows,
        empty="The orders were not computed in this run.",
    )


def metric_table(run: Run, metric: str, protocol: str) -> Table:
    name = METRIC_NAMES[metric]
    folds = {
        "paper": "the paper's folds (unshuffled for l2-SVM_K, shuffled for the others)",
        "same": "the same shuffled folds for all models",
    }[protocol]
    frame = run.compared[metric, protocol]
    blocks = {}
    for dataset in run.datasets:
        cells = frame[frame["dataset"] == dataset].to_dict("records")
        tops = {column: _best(cell[column] for cell in cells) for column in ("ours", "paper")}
        blocks[dataset] = [
            [
                *(_compared_cell(cell, column, tops[column]) for column in ("ours", "paper")),
                cell["difference"],
            ]
            for cell in cells
        ]
    columns, rows = arrange(blocks, {"ours": "percent", "paper": "percent", "diff.": "points"})
    best = "row" if len(blocks) > 1 else "column"
    return Table(
        slug=f"{metric}-{protocol}-folds",
        title=f"{name}, {'folds of the paper' if protocol == 'paper' else 'same folds for all'}",
        caption=(
            f"Table {paper.TABLES[metric].number} of the paper, best {name} (%) over the grid, "
            f"with {folds}. Differences in points; the best of a {best} in bold."
        ),
        columns=columns,
        rows=rows,
        notes=_partial_notes(frame) + ([] if protocol == "paper" else [_OTHER_FOLDS]),
    )


def arrange(
    blocks: dict[str, list[list[Any]]], kinds: dict[str, str]
) -> tuple[list[Column], list[list[Any]]]:
    """Columns and rows of a table with a few numbers for each dataset and model.

    `blocks` holds for each dataset the numbers of each model, `kinds` what they are. Datasets are
    rows, as in the paper; a single dataset makes a row for each model instead.
    """
    if len(blocks) == 1:
        ((dataset, block),) = blocks.items()
        columns = [Column(label(dataset))]
        columns += [Column(header, kind) for header, kind in kinds.items()]
        pairs = zip(paper.MODELS, block, strict=True)
        return columns, [[model, *numbers] for model, numbers in pairs]
    columns = [Column("Data")]
    columns += [
        Column(header, kind, model) for model in paper.MODELS for header, kind in kinds.items()
    ]
    rows = [
        [label(dataset), *(number for numbers in block for number in numbers)]
        for dataset, block in blocks.items()
    ]
    return columns, rows


def _partial_notes(frame: pd.DataFrame) -> list[str]:
    """Say how much of the grid is there behind the cells that are marked as partial."""
    partial = frame[(frame["share"] < 1.0) & frame["ours"].notna()]
    parts = [
        f"{label(cell.dataset)} {cell.model} {plain(cell.share, 'share')}"
        for cell in partial.itertuples()
    ]
    return [f"Done of the incomplete grids: {', '.join(parts)}."] if parts else []


def _compared_cell(cell: dict[str, Any], column: str, best: float | None) -> Cell:
    value = cell[column]
    marks = []
    if column == "ours":
        if cell["agrees"] is False:
            marks.append("differs" if cell["in_reach"] else "outside")
        if cell["share"] < 1.0 and value == value:
            marks.append("partial")
    return Cell(value, tuple(marks), bold=value == value and round(value, 2) == best)


def times_table(run: Run) -> Table:
    rows = []
    for row in comparison.compare_times(run.compared["auc", "paper"]).to_dict("records"):
        ours = Cell(row["ours"], ("partial",) if row["share"] < 1 and row["ours"] > 0 else ())
        steps = [row[key] for key in ("ours_1", "ours_2")]
        printed = [row[key] for key in ("paper_1", "paper_2", "paper")]
        rows.append([label(row["dataset"]), row["model"], *steps, ours, *printed, row["ratio"]])
    return Table(
        slug="times",
        title="Times per fold",
        caption=(
            f"Table {paper.TABLES['times'].number} of the paper: seconds of processor time per "
            "fold at the parameters of the best AUC, with the paper's folds; both steps of the "
            "two-step models. The printed times of the OWA models are those of CPLEX on the "
            "authors' machine."
        ),
        columns=[
            Column("Data"),
            Column("Model"),
            *(
                Column(header, kind, group)
                for group, kind in (("Ours (s)", "seconds"), ("Paper (s)", "printed seconds"))
                for header in ("step 1", "step 2", "total")
            ),
            Column("paper / ours", "ratio"),
        ],
        rows=rows,
        n_row_headers=2,
    )


def differences_table(run: Run) -> Table:
    rows = []
    for metric in comparison.METRICS:
        for cell in run.compared[metric, "paper"].to_dict("records"):
            if cell["agrees"] is False and cell["in_reach"]:
                rows.append(
                    [
                        label(cell["dataset"]),
                        cell["model"],
                        METRIC_NAMES[metric],
                        *(cell[key] for key in ("ours", "paper", "difference")),
                        _reason(metric, cell),
                    ]
                )
    return Table(
        slug="differences",
        title="Cells that differ",
        caption=(
            "Cells that differ from the printed value by more than 0.05 points; for the exact "
            "models, cells more than 0.05 points below it. The paper's folds."
        ),
        columns=[
            Column("Data"),
            Column("Model"),
            Column("Table"),
            Column("ours", "percent"),
            Column("paper", "percent"),
            Column("diff.", "points"),
            Column("Explanation"),
        ],
        rows=rows,
        n_row_headers=3,
        empty="No accuracy or AUC differs that this grid can show.",
    )


def _reason(metric: str, cell: dict[str, Any]) -> str:
    key = (metric, cell["dataset"], cell["model"])
    return paper.EXPLANATIONS.get(key, "not explained")


def parameters_table(run: Run) -> Table:
    rows = []
    shown = [("paper", model) for model in paper.MODELS] + [("same", "l2-SVM_K")]
    for dataset in run.datasets:
        for protocol, model in shown:
            row: list[Any] = [label(dataset), model, comparison.PROTOCOLS[protocol][model]]
            for metric in comparison.METRICS:
                frame = run.compared[metric, protocol]
                cell = frame[(frame["dataset"] == dataset) & (frame["model"] == model)].iloc[0]
                row += _parameter_cells(cell.to_dict())
            rows.append(row)
    kinds = {
        "C": "power",
        SIGMA: "power",
        "quantifier": "text",
        ALPHA: "number",
        "ties": "integer",
    }
    return Table(
        slug="parameters",
        title="Parameters of the best means",
        caption=(
            "Parameters of the best mean over the folds, for ACC and AUC each its own, and how "
            "many points of the grid reach that mean."
        ),
        columns=[Column("Data"), Column("Model"), Column("Folds")]
        + [
            Column(header, kind, f"best {METRIC_NAMES[metric]}")
            for metric in comparison.METRICS
            for header, kind in kinds.items()
        ],
        rows=rows,
        n_row_headers=3,
        notes=[_TIES],
    )


def _parameter_cells(cell: dict[str, Any]) -> list[Any]:
    if cell["ours"] != cell["ours"]:
        return [None] * 5
    weighted = bool(cell["quantifier"])
    return [
        float(cell["C"]),
        float(cell["width"]) if cell["width"] > 0 else None,
        cell["quantifier"] if weighted else None,
        float(cell["alpha"]) if weighted else None,
        int(cell["n_ties"]),
    ]
