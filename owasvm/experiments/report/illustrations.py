"""Figures with their captions and words for those who cannot see them."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from owasvm.experiments import figures, paper
from owasvm.experiments.figures import FAINT, INK, drawing
from owasvm.experiments.report.refit_figures import boundary_figure, weight_figure
from owasvm.experiments.report.refits import load_samples, refit_in_plane, refit_winners
from owasvm.experiments.report.run import Run
from owasvm.experiments.report.symbols import SIGMA
from owasvm.experiments.report.table import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Gallery", "Illustration", "make_galleries"]

# Pixels of the embedded raster parts for each inch.
_RASTER_DPI = 130
_PIXELS_PER_INCH = 96

# What replaces the colours of text and grid lines on a dark page.
_DARK = {INK: "#e4e7eb", FAINT: "#3b424b"}


@dataclass(frozen=True)
class Illustration:
    """A figure on the page.

    Parameters
    ----------
    slug : str
        Its place in the page.
    caption : str
        What it shows.
    alt : str
        What is to be seen, in words.
    light, dark : str
        Data addresses for the two kinds of page.
    width, height : int
        Size in pixels of the page.
    """

    slug: str
    caption: str
    alt: str
    light: str
    dark: str
    width: int
    height: int


@dataclass(frozen=True)
class Gallery:
    """Figures under one heading.

    Parameters
    ----------
    slug : str
        Its place in the page.
    title : str
        The heading.
    text : str
        What all of them have in common.
    illustrations : list of Illustration
        The figures.
    missing : str, default=""
        What could not be drawn, and why.
    """

    slug: str
    title: str
    text: str
    illustrations: list[Illustration]
    missing: str = ""


def make_galleries(run: Run) -> list[Gallery]:
    """Draw all figures of the report; times need datasets of two sizes."""
    several = [_time_gallery(run)] if len(run.datasets) > 1 else []
    return [*several, _heat_map_gallery(run), *_refit_galleries(run)]


def _illustration(slug: str, caption: str, alt: str, draw: Callable[[], Figure]) -> Illustration:
    with drawing():
        figure = draw()
        stream = io.BytesIO()
        # Without a date two drawings of the same figure are the same bytes.
        figure.savefig(stream, format="svg", dpi=_RASTER_DPI, metadata={"Date": None})
    light = stream.getvalue().decode()
    dark = light
    for color, replacement in _DARK.items():
        dark = dark.replace(color, replacement)
    width, height = (round(_PIXELS_PER_INCH * size) for size in figure.get_size_inches())
    return Illustration(
        slug, caption, alt, _data_address(light), _data_address(dark), width, height
    )


def _data_address(image: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(image.encode()).decode()


def _time_gallery(run: Run) -> Gallery:
    times = figures.time_table(run.cells)
    laws = figures.time_laws(times)
    parts = []
    for model in paper.MODELS:
        medians = times[times["model"] == model].sort_values("n_samples")["median"].tolist()
        if medians:
            slope = f", slope {laws[model].exponent:.1f}" if model in laws else ""
            low, high = (plain(value, "seconds") for value in (min(medians), max(medians)))
            parts.append(f"{model} {low} to {high} s{slope}")
    slopes = (
        "Lines are power laws fitted to the medians; their exponents are the slopes. The datasets "
        "differ in more than their size, so a slope is a rough guide."
        if laws
        else "Slopes need datasets of at least three sizes."
    )
    illustration = _illustration(
        "figure-times",
        "Seconds per fit by the number of samples, all fits of the grid: median and the "
        f"range from 20 to 80 %. {slopes} Crosses are the printed CPLEX times of the exact model.",
        "Two log-log charts of seconds per fit against samples, for linear models and for the "
        f"Gaussian kernel. Median times: {'; '.join(parts)}.",
        partial(figures.time_figure, times),
    )
    return Gallery("time-against-size", "Time against size", "", [illustration])


def _heat_map_gallery(run: Run) -> Gallery:
    drawn = []
    for dataset in run.datasets:
        maps = figures.heat_maps(run.points, dataset)
        if not maps:
            continue
        parts = []
        for model, table in maps.items():
            values = table.to_numpy()
            row, column = np.unravel_index(np.nanargmax(values), values.shape)
            parts.append(
                f"{model} reaches {values[row, column]:.2f} % at C = {table.columns[column]:g} "
                f"and sigma = {table.index[row]:g}"
            )
        title = paper.DATASETS[dataset].title
        drawn.append(
            _illustration(
                f"figure-heat-map-{dataset}",
                f"{title}: mean ACC of the kernel models over C and {SIGMA}.",
                f"Heat maps of mean accuracy over C and sigma for {title}. {'; '.join(parts)}.",
                partial(figures.heat_map_figure, run.points, dataset),
            )
        )
    return Gallery(
        "heat-maps",
        "Accuracy over the grid",
        "Mean accuracy over the ten shuffled folds for every pair of C and kernel width, the best "
        "over the weights for the OWA models. The ring marks the best pair; one scale per "
        "dataset, cut 15 points below the best.",
        drawn,
        "" if drawn else "No kernel model has all ten shuffled folds.",
    )


def _refit_galleries(run: Run) -> list[Gallery]:
    weights, planes, absent = [], [], []
    for dataset in run.datasets:
        samples = load_samples(dataset)
        if samples is None:
            absent.append(paper.DATASETS[dataset].title)
            continue
        weights += _weight_illustrations(run, dataset, *samples)
        planes += _plane_illustrations(run, dataset, *samples)
    missing = ""
    if absent:
        missing = (
            f"Not drawn, because the data files are not here: {', '.join(absent)}. 'owasvm "
            "datasets' says how to get them."
        )
    return [
        Gallery(
            "weights-and-deviations",
            "Weights and deviations of the winners",
            "The models with the best accuracy, trained once more on all samples. A weight "
            "multiplies the deviation at the same position; the classical models weigh all alike.",
            weights,
            missing,
        ),
        Gallery(
            "decision-boundaries",
            "Decision boundaries",
            "The winning parameters, trained on the first two principal components alone: a "
            "picture of how the models bend, not of their accuracy. Solid line: boundary. Dashed "
            "lines: margins.",
            planes,
            missing,
        ),
    ]


def _weight_illustrations(
    run: Run, dataset: str, X: np.ndarray, y: np.ndarray
) -> list[Illustration]:
    refits = refit_winners(run, dataset, X, y)
    if not refits:
        return []
    title = paper.DATASETS[dataset].title
    parts = [
        f"{refit.model} ({refit.description}): {np.mean(refit.deviations > 0):.0%} of the samples "
        f"deviate, the largest deviation is {refit.deviations[-1]:.2f}, its weight "
        f"{refit.weights[-1]:.2f}"
        for refit in refits
    ]
    return [
        _illustration(
            f"figure-weights-{dataset}",
            f"{title}: rank weights (left, logarithmic) and sorted deviations (right).",
            f"Line charts of rank weights and sorted deviations for {title}. {'; '.join(parts)}.",
            partial(weight_figure, refits),
        )
    ]


def _plane_illustrations(
    run: Run, dataset: str, X: np.ndarray, y: np.ndarray
) -> list[Illustration]:
    components, planes = refit_in_plane(run, dataset, X, y)
    if not planes:
        return []
    title = paper.DATASETS[dataset].title
    parts = [f"{plane.model} {plane.accuracy:.1%}" for plane in planes]
    return [
        _illustration(
            f"figure-boundaries-{dataset}",
            f"{title}: decision boundaries on two principal components.",
            f"Scatter plots of the two classes of {title} on two principal components with the "
            "decision boundary of each model. Training samples on the right side: "
            f"{', '.join(parts)}.",
            partial(boundary_figure, components, y, planes),
        )
    ]
