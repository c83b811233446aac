"""Figures of a run.

Every function returns a matplotlib ``Figure`` of its own, without pyplot and its global state;
call them inside :func:`drawing`. Figures are drawn for a light page in :data:`INK` and
:data:`FAINT`, and nothing else has these colours, so that a dark page can replace them. A model
has the same colour, line and marker everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments import paper
from owasvm.experiments.statistics import PowerLaw, fit_power_law
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "INK",
    "STYLES",
    "ModelStyle",
    "drawing",
    "heat_map_figure",
    "heat_maps",
    "new_figure",
    "time_figure",
    "time_laws",
    "time_table",
]

FloatArray = NDArray[np.float64]


#: Colour of text and axes.
INK = "#1f2328"

#: Colour of grid lines.
FAINT = "#d5d9de"


@dataclass(frozen=True)
class ModelStyle:
    """How a model is drawn: one hue per family, dashes for linear kernels.

    Parameters
    ----------
    color : str
        At least three to one against both pages.
    line : str
        Line style of matplotlib.
    marker : str
        Marker of matplotlib.
    name : str
        Label with mathematical text.
    """

    color: str
    line: str
    marker: str
    name: str


#: By model.
STYLES: dict[str, ModelStyle] = {
    "l2-SVM": ModelStyle("#4390d8", "--", "o", r"$\ell_2$-SVM"),
    "app-OWA-SVM": ModelStyle("#c98300", "--", "s", "app-OWA-SVM"),
    "ex-OWA-SVM": ModelStyle("#00a37a", "--", "^", "ex-OWA-SVM"),
    "l2-SVM_K": ModelStyle("#0c6cb0", "-", "o", r"$\ell_2$-SVM$_K$"),
    "app-OWA-SVM_K": ModelStyle("#cf5200", "-", "s", r"app-OWA-SVM$_K$"),
    "ex-OWA-SVM_K": ModelStyle("#00805f", "-", "^", r"ex-OWA-SVM$_K$"),
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw and save figures in our style; matplotlib's settings are put back afterwards."""
    matplotlib = require("matplotlib", "A figure")
    settings = {
        "axes.edgecolor": INK,
        "axes.facecolor": "none",
        "axes.grid": False,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 9.5,
        "figure.facecolor": "none",
        "font.family": ["DejaVu Sans"],
        "font.size": 9.0,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "lines.linewidth": 1.4,
        "savefig.facecolor": "none",
        "svg.fonttype": "path",
        "svg.hashsalt": "owasvm",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with matplotlib.rc_context(settings):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    return require("matplotlib.figure", "A figure").Figure(
        figsize=(width, height), layout="constrained"
    )


def time_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Collect the times of the fits of each dataset and model.

    Returns
    -------
    times : DataFrame
        ``dataset``, ``model``, ``n_samples``, and the quantiles ``low`` (20 %), ``median`` and
        ``high`` (80 %) of the seconds per fit, both steps of the two-step models together.
    """
    seconds = cells["fit_time"] + cells["first_time"].fillna(0.0)
    quantiles = (
        seconds.groupby([cells["dataset"], cells["model"]])
        .quantile([0.2, 0.5, 0.8])
        .unstack()
        .set_axis(["low", "median", "high"], axis=1)
        .reset_index()
    )
    sizes = {name: dataset.n_samples for name, dataset in paper.DATASETS.items()}
    return quantiles.assign(n_samples=quantiles["dataset"].map(sizes)).sort_values(
        ["model", "n_samples", "dataset"]
    )


def time_laws(times: pd.DataFrame) -> dict[str, PowerLaw]:
    """Fit a power law to the median times of each model that has at least three sizes."""
    positive = times[times["median"] > 0]
    return {
        str(model): fit_power_law(part["n_samples"], part["median"])
        for model, part in positive.groupby("model")
        if part["n_samples"].nunique() > 2
    }


def time_figure(times: pd.DataFrame) -> Figure:
    """Draw times against the number of samples, linear and kernel models side by side."""
    laws = time_laws(times)
    figure = new_figure(8.2, 3.9)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, kernel in zip(panels, (False, True), strict=True):
        models = [name for name in paper.MODELS if paper.is_kernel(name) == kernel]
        for model, shift in zip(models, (0.985, 1.0, 1.015), strict=True):
            _draw_times(axes, model, times[times["model"] == model], laws.get(model), shift)
        exact = "ex-OWA-SVM_K" if kernel else "ex-OWA-SVM"
        _draw_printed_times(axes, exact, sorted(set(times["dataset"])))
        _label_sizes(axes, sorted(set(times["dataset"])))
        axes.set_title("Gaussian kernel" if kernel else "Linear")
        axes.set_yscale("log")
        axes.grid(True, axis="y")
        # Matplotlib lists lines before error bars; ours come first.
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            [*handles[1:], handles[0]],
            [*labels[1:], labels[0]],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            ncols=2,
            columnspacing=1.0,
        )
    panels[0].set_ylabel("seconds per fit")
    return figure


def _draw_times(
    axes: Axes, model: str, part: pd.DataFrame, law: PowerLaw | None, shift: float
) -> None:
    """Draw one model, moved sideways a little so that the ranges of others stay visible."""
    style = STYLES[model]
    if part.empty:
        return
    name = style.name if law is None else f"{style.name}: slope {law.exponent:.1f}"
    spread = [part["median"] - part["low"], part["high"] - part["median"]]
    axes.errorbar(
        shift * part["n_samples"],
        part["median"],
        yerr=np.maximum(spread, 0.0),
        fmt=style.marker,
        color=style.color,
        markersize=5,
        elinewidth=0.9,
        label=name,
    )
    if law is not None:
        ends = np.array([part["n_samples"].min(), part["n_samples"].max()], dtype=np.float64)
        axes.plot(ends, law(ends), style.line, color=style.color, linewidth=1.1)


def _draw_printed_times(axes: Axes, model: str, datasets: Sequence[str]) -> None:
    sizes = [paper.DATASETS[name].n_samples for name in datasets]
    seconds = [sum(paper.TIMES[name][model]) for name in datasets]
    axes.plot(
        sizes,
        seconds,
        "x",
        color=INK,
        markersize=5,
        markeredgewidth=1.0,
        label=f"{STYLES[model].name}, printed",
    )


def _label_sizes(axes: Axes, datasets: Sequence[str]) -> None:
    labels: dict[int, list[str]] = {}
    for name in (name for name in paper.DATASETS if name in datasets):
        labels.setdefault(paper.DATASETS[name].n_samples, []).append(paper.DATASETS[name].label)
    axes.set_xscale("log")
    axes.set_xticks(
        list(labels), [f"{size}\n{', '.join(names)}" for size, names in labels.items()], fontsize=8
    )
    axes.minorticks_off()
    axes.set_xlim(min(labels) * 0.88, max(labels) * 1.14)
    axes.set_xlabel("samples")


def heat_map_figure(points: pd.DataFrame, dataset: str) -> Figure:
    """Draw the maps of :func:`heat_maps` beside each other, on one scale."""
    maps = heat_maps(points, dataset)
    highest = max(float(table.max().max()) for table in maps.values())
    lowest = max(min(float(table.min().min()) for table in maps.values()), highest - 15.0)
    figure = new_figure(8.2, 3.1)
    panels = np.atleast_1d(figure.subplots(1, len(maps), sharey=True))
    for axes, (model, table) in zip(panels, maps.items(), strict=True):
        image = _draw_heat_map(axes, table, (lowest, highest))
        axes.set_title(STYLES[model].name)
    panels[0].set_ylabel(r"$\log_2\ \sigma$")
    bar = figure.colorbar(image, ax=list(panels), extend="min", aspect=16, pad=0.015)
    bar.set_label("mean ACC (%)")
    bar.outline.set_linewidth(0.6)
    return figure


def heat_maps(points: pd.DataFrame, dataset: str) -> dict[str, pd.DataFrame]:
    """Arrange the mean accuracies of the kernel models by sigma and C, best over the weights.

    Parameters
    ----------
    points : DataFrame
        From :func:`owasvm.experiments.tables.summarise`; shuffled folds are used.
    dataset : str
        Name of the dataset.

    Returns
    -------
    maps : dict of str to DataFrame
        By model; rows are the widths, columns the values of C, both ascending.
    """
    complete = points[
        (points["dataset"] == dataset)
        & (points["folds"] == "shuffled")
        & (points["n_folds"] >= paper.N_FOLDS)
    ]
    kernels = complete[complete["model"].isin([m for m in paper.MODELS if paper.is_kernel(m)])]
    widths, Cs = (sorted(set(kernels[name])) for name in ("width", "C"))
    return {
        model: part.pivot_table(index="width", columns="C", values="acc", aggfunc="max").reindex(
            index=widths, columns=Cs
        )
        for model in paper.MODELS
        if not (part := kernels[kernels["model"] == model]).empty
    }


def _draw_heat_map(axes: Axes, table: pd.DataFrame, limits: tuple[float, float]) -> Any:
    values = table.to_numpy()
    image = axes.imshow(
        values,
        origin="lower",
        aspect="auto",
        cmap="cividis",
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
    )
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    for color, width in (("white", 3.2), ("black", 1.4)):
        axes.plot(column, row, "o", mfc="none", mec=color, markersize=9.5, markeredgewidth=width)
    for axis, ticks in ((axes.xaxis, table.columns), (axes.yaxis, table.index)):
        step = 2 if len(ticks) > 8 else 1
        axis.set_ticks(
            range(0, len(ticks), step), [f"${np.log2(tick):g}$" for tick in ticks[::step]]
        )
    axes.set_xlabel(r"$\log_2\ C$")
    return image
