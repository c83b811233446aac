"""The run in a few plain sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from owasvm.experiments import paper
from owasvm.experiments.report import comparison
from owasvm.experiments.report.run import Run, label
from owasvm.experiments.report.table import plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Fact", "Summary", "summarise_run"]


@dataclass(frozen=True)
class Fact:
    """A number that stands out.

    Parameters
    ----------
    value : str
        The number.
    name : str
        What it counts.
    """

    value: str
    name: str


@dataclass(frozen=True)
class Summary:
    """The top of the report.

    Parameters
    ----------
    facts : list of Fact
        Numbers that stand out.
    sentences : list of str
        What was run and what came out.
    note : str
        What a part of the paper's grid cannot show; empty when all of it is there.
    """

    facts: list[Fact]
    sentences: list[str]
    note: str


def summarise_run(run: Run) -> Summary:
    """Describe a run in words."""
    frames = [run.compared[metric, "paper"] for metric in comparison.METRICS]
    exact = [frame[frame["model"].map(paper.is_exact)] for frame in frames]
    n_in_reach, n_agreeing = (_count(frames, column) for column in ("in_reach", "agrees"))
    ratio = _speed_ratio(run)
    limits = "" if n_in_reach == _n_printed(run) else " within reach of this grid"
    facts = [
        Fact(f"{n_agreeing} of {n_in_reach}", f"printed values{limits} reproduced, or better"),
        Fact(f"{run.n_fits:,}", "fits"),
    ]
    if ratio is not None:
        facts.append(Fact(plain(ratio, "ratio"), "faster than the printed times, exact models"))
    sentences = [_what_was_run(run), _what_came_out(run, frames)]
    if ratio is not None:
        sentences.append(
            "At the parameters of the best AUC a fit of an exact model takes "
            f"{_times_less(ratio)} the printed CPLEX time (geometric mean over datasets and both "
            "kernels; the machines differ)."
        )
    if _count_computed(exact):
        sentences.append(_kinds_of_weights(exact))
    return Summary(facts, sentences, _note(run, frames))


def _what_was_run(run: Run) -> str:
    models = run.points["model"].nunique()
    missing = int((run.progress["share"] < 1.0).sum())
    state = (
        "Every grid that was started is complete."
        if missing == 0
        else f"{missing} of {len(run.progress)} grids are not complete."
    )
    n_inner = run.n_inner_fits
    inner = (
        f", {n_inner:,} of them on inner folds of the nested cross-validation" if n_inner else ""
    )
    return (
        f"The {run.grid} grid was run on {len(run.datasets)} of the paper's {len(paper.DATASETS)} "
        f"datasets with {models} of its {len(paper.MODELS)} models: {run.n_fits:,} fits{inner}. "
        f"{state}"
    )


def _what_came_out(run: Run, frames: list[pd.DataFrame]) -> str:
    names = ", ".join(label(dataset) for dataset in run.datasets)
    n_printed = _n_printed(run)
    n_in_reach = _count(frames, "in_reach")
    part = "all" if n_in_reach == n_printed else str(n_in_reach)
    shown = (
        f"The paper prints {n_printed} values of accuracy and AUC for {names}; this grid can show "
        f"{part} of them"
    )
    if not n_in_reach:
        return f"{shown}."
    agreeing = [frame[frame["agrees"].map(lambda value: value is True)] for frame in frames]
    n_agreeing = sum(map(len, agreeing))
    n_equal = sum(
        int((frame["ours"].round(2) - frame["paper"]).abs().lt(1e-6).sum()) for frame in agreeing
    )
    n_better = sum(int((frame["difference"] > comparison.TOLERANCE).sum()) for frame in agreeing)
    words = [f"{n_equal} to the last digit"]
    if n_better:
        words.append(f"{n_better} of exact models better than printed")
    if n_agreeing > n_equal + n_better:
        close = n_agreeing - n_equal - n_better
        words.append(f"{close} within {comparison.TOLERANCE} points")
    return f"{shown}, and {n_agreeing} come out: {', '.join(words)}."


def _n_printed(run: Run) -> int:
    """Values of ACC and AUC that the paper prints for the datasets of the run."""
    return 2 * len(run.datasets) * len(paper.MODELS)


def _count(frames: list[pd.DataFrame], column: str) -> int:
    return sum(int(frame[column].map(lambda value: value is True).sum()) for frame in frames)


def _count_computed(frames: list[pd.DataFrame]) -> int:
    return sum(int(frame["ours"].notna().sum()) for frame in frames)


def _kinds_of_weights(exact: list[pd.DataFrame]) -> str:
    general = [frame[frame["convex"] == 0] for frame in exact]
    count = sum(map(len, general))
    gap = max((frame["gap"].max() for frame in general if len(frame)), default=0.0)
    certified = f" (largest certified gap {plain(gap, 'gap')})" if count else ""
    return (
        f"{count} of the {_count_computed(exact)} exact cells rest on general weights{certified}, "
        "the others on non-decreasing ones, which make the problem convex."
    )


def _speed_ratio(run: Run) -> float | None:
    """Geometric mean of printed over our times, exact models."""
    times = comparison.compare_times(run.compared["auc", "paper"])
    ratios = times.loc[times["model"].map(paper.is_exact), "ratio"].dropna()
    if ratios.empty:
        return None
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def _times_less(ratio: float) -> str:
    if ratio < 1.0:
        return f"{1.0 / ratio:.2g} times"
    return f"1/{float(f'{ratio:.3g}'):,.0f} of" if ratio >= 10 else f"1/{ratio:.1f} of"


def _has_whole_grid(run: Run) -> bool:
    return bool((run.progress["paper_share"] >= 1.0).all())


def _note(run: Run, frames: list[pd.DataFrame]) -> str:
    if _has_whole_grid(run):
        return ""
    shares = run.progress["paper_share"]
    size = (
        f"Between {plain(shares.min(), 'share')} and {plain(shares.max(), 'share')} of the "
        "paper's grid was run, by model."
    )
    n_outside = _count_computed(frames) - _count(frames, "in_reach")
    if n_outside:
        return (
            f"{size} {n_outside} printed values are out of its reach, because the parameters that "
            "lead to them are not in it; these cells are marked with °."
        )
    return (
        f"{size} It holds, for each printed value, a point at which a run of the whole grid "
        "reached it. That no other point of the paper's grid does better, only the whole grid can "
        "show: owasvm reproduce --grid paper."
    )
