"""The run in a few plain sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from owasvm.experiments import paper
from owasvm.experiments.report import comparison
from owasvm.experiments.report.run import Run
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
    warning : str
        Why the numbers cannot be compared with the paper's; empty when they can.
    """

    facts: list[Fact]
    sentences: list[str]
    warning: str


def summarise_run(run: Run) -> Summary:
    """Describe a run in words."""
    frames = [run.compared[metric, "paper"] for metric in comparison.METRICS]
    others, exact = (
        [frame[frame["model"].map(paper.is_exact) == wanted] for frame in frames]
        for wanted in (False, True)
    )
    n_printed = 2 * len(paper.DATASETS) * len(paper.MODELS)
    n_computed = sum(int(frame["ours"].notna().sum()) for frame in frames)
    n_agreeing = _count_agreeing(frames)
    ratio = _speed_ratio(run)
    facts = [
        Fact(f"{len(run.cells):,}", "fits stored"),
        Fact(f"{n_agreeing} of {n_computed}", "computed cells agree with the printed ones"),
    ]
    if ratio is not None:
        facts.append(Fact(plain(ratio, "ratio"), "faster than the printed times, exact models"))
    sentences = [
        _what_was_run(run),
        f"Of the {n_printed} printed accuracy and AUC cells {n_computed} were computed. Among the "
        f"classical and two-step cells {_count_agreeing(others)} of {_count_computed(others)} are "
        f"within {comparison.TOLERANCE} points of the printed value; among the exact cells "
        f"{_count_agreeing(exact)} of {_count_computed(exact)} are not more than "
        f"{comparison.TOLERANCE} points below it.",
    ]
    if ratio is not None:
        sentences.append(
            "At the parameters of the best AUC a fit of an exact model takes "
            f"{_times_less(ratio)} the printed CPLEX time (geometric mean over datasets and both "
            "kernels; the machines differ)."
        )
    if _count_computed(exact):
        sentences.append(_kinds_of_weights(exact))
    return Summary(facts, sentences, _warning(run))


def _what_was_run(run: Run) -> str:
    models = run.points["model"].nunique()
    missing = int((run.progress["share"] < 1.0).sum())
    state = (
        "Every grid that was started is complete."
        if missing == 0
        else f"{missing} of {len(run.progress)} grids are not complete."
    )
    return (
        f"The {run.grid} grid was run on {len(run.datasets)} of the paper's {len(paper.DATASETS)} "
        f"datasets with {models} of its {len(paper.MODELS)} models: {len(run.cells):,} fits. "
        f"{state}"
    )


def _count_agreeing(frames: list[pd.DataFrame]) -> int:
    return sum(int((frame["agrees"].map(lambda value: value is True)).sum()) for frame in frames)


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


def _warning(run: Run) -> str:
    shares = run.progress["paper_share"]
    if (shares >= 1.0).all():
        return ""
    return (
        f"Not all of the paper's grid is there (between {plain(shares.min(), 'share')} and "
        f"{plain(shares.max(), 'share')} of it, by model). The best of a smaller grid is usually "
        "lower, so differences from the printed values are to be expected."
    )
