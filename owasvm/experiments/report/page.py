"""What stands where on the page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from owasvm.experiments import paper
from owasvm.experiments.report.formats import FORMATS
from owasvm.experiments.report.illustrations import Gallery
from owasvm.experiments.report.run import Run
from owasvm.experiments.report.summary import summarise_run
from owasvm.experiments.report.table import Table

__all__ = ["Section", "page_content"]


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading.

    Parameters
    ----------
    slug : str
        Its place in the page.
    title : str
        The heading.
    text : str
        What a reader has to know.
    tables : list of Table
        Its tables.
    galleries : list of Gallery
        Its figures.
    """

    slug: str
    title: str
    text: str = ""
    tables: list[Table] = field(default_factory=list)
    galleries: list[Gallery] = field(default_factory=list)


_SECTIONS = (
    (
        "paper",
        "The paper's tables",
        "Ours beside the printed values. A cell is the mean over ten folds at the best parameters "
        "of the grid, ACC and AUC each with its own. What the paper calls AUC is the balanced "
        "accuracy. The paper computed l2-SVM_K on other folds than all other models; the tables "
        "with the same folds for all put that right.",
        (
            "acc-paper-folds",
            "auc-paper-folds",
            "acc-same-folds",
            "auc-same-folds",
            "order",
            "times",
        ),
    ),
    (
        "differences",
        "What still differs",
        "",
        ("differences",),
    ),
    (
        "gaps",
        "General weights and certified gaps",
        "Non-decreasing weights make the problem convex. Others do not, and the solver proves how "
        "far its result can be from the best one: the gap.",
        ("general-weights", "gaps"),
    ),
    (
        "tests",
        "Are the differences real?",
        "The training sets of the folds overlap, so a plain t-test would find too much. The "
        "corrected resampled t-test of Nadeau and Bengio allows for that; the Wilcoxon "
        "signed-rank test looks at ranks alone and is exact here. Parameters that are the best of "
        "the grid were chosen on the same folds, which favours every model; nested ones were not.",
        ("paired-acc", "paired-auc", "nested-acc", "nested-auc"),
    ),
)


def page_content(run: Run, tables: dict[str, Table], galleries: list[Gallery]) -> dict[str, Any]:
    """Put the parts of the page in order, for its template."""
    sections = [
        Section(slug, title, text, [tables[name] for name in names])
        for slug, title, text, names in _SECTIONS
    ]
    sections.append(Section("figures", "Figures", galleries=galleries))
    sections.append(Section("winners", "Winning parameters", tables=[tables["parameters"]]))
    made_of = [tables["progress"], tables["versions"]]
    sections.append(Section("about", "How this was made", tables=made_of))
    return {
        "title": "OWA-SVM: the paper's experiments, run again",
        "citation": paper.CITATION,
        "doi": paper.DOI,
        "summary": summarise_run(run),
        "sections": sections,
        "meta": {key: _readable(value) for key, value in run.meta.items() if key != "command"},
        "command": run.meta.get("command", ""),
        "formats": FORMATS,
        "datasets": [paper.DATASETS[name] for name in run.datasets],
    }


def _readable(value: str) -> str:
    """Lists and objects of JSON in one line each, other text as it is."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return value
    if isinstance(decoded, list):
        return ", ".join(_words(item) for item in decoded)
    if isinstance(decoded, dict):
        return ", ".join(f"{key}: {_words(item)}" for key, item in decoded.items())
    return value


def _words(item: Any) -> str:
    return " ".join(map(str, item)) if isinstance(item, list) else str(item)
