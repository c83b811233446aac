"""Figures of the winning models, trained once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments.figures import INK, STYLES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from owasvm.experiments.report.refits import Plane, Refit

__all__ = ["boundary_figure", "weight_figure"]

FloatArray = NDArray[np.float64]

# The two classes, told apart by their markers as well.
_NEGATIVE, _POSITIVE = "#8c6bb1", "#a58a00"

# More samples would only cover each other.
_MAX_SAMPLES = 400


def weight_figure(refits: Sequence[Refit]) -> Figure:
    """Draw rank weights and sorted deviations of the winning models."""
    figure = new_figure(8.2, 3.6)
    left, right = figure.subplots(1, 2)
    for refit in refits:
        style = STYLES[refit.model]
        position = (np.arange(refit.weights.size) + 0.5) / refit.weights.size
        # Dashes over solid lines, so that equal curves are both seen.
        look = {"color": style.color, "linestyle": style.line, "zorder": 2 + (style.line == "--")}
        left.plot(position, refit.weights, **look)
        right.plot(position, refit.deviations, label=style.name, **look)
    left.set_title("rank weights")
    left.set_ylabel(r"$\lambda_k$")
    left.set_yscale("log")
    right.set_title("sorted deviations")
    right.set_ylabel(r"$\xi_{(k)}$")
    for axes in (left, right):
        axes.set_xlabel("position from the smallest deviation, k / n")
        axes.set_xlim(0, 1)
        axes.grid(True, axis="y")
    figure.legend(loc="outside lower center", ncols=min(len(refits), 6), columnspacing=1.2)
    return figure


def boundary_figure(components: FloatArray, y: FloatArray, planes: Sequence[Plane]) -> Figure:
    """Draw the decision boundaries of the winning models in the plane of two components."""
    columns = min(3, len(planes))
    rows = -(-len(planes) // columns)
    figure = new_figure(8.2, 2.55 * rows + 0.35)
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    shown = slice(None, None, -(-y.size // _MAX_SAMPLES))
    for axes, plane in zip(panels, planes, strict=False):
        _draw_plane(axes, components[shown], y[shown], plane)
    for axes in panels[len(planes) :]:
        axes.set_visible(False)
    for axes in panels[-columns:]:
        axes.set_xlabel("first component")
    for axes in panels[::columns]:
        axes.set_ylabel("second component")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_plane(axes: Axes, components: FloatArray, y: FloatArray, plane: Plane) -> None:
    style = STYLES[plane.model]
    samples: Mapping[str, Any] = {"linestyle": "none", "rasterized": True, "alpha": 0.8}
    axes.contourf(
        *plane.axes,
        plane.decision_values,
        levels=[-np.inf, 0.0, np.inf],
        colors=[_NEGATIVE, _POSITIVE],
        alpha=0.16,
        rasterized=True,
    )
    axes.plot(
        *components[y < 0].T,
        marker="x",
        color=_NEGATIVE,
        markersize=3.2,
        markeredgewidth=0.8,
        label="class -1",
        **samples,
    )
    axes.plot(
        *components[y > 0].T,
        marker="o",
        mfc="none",
        mec=_POSITIVE,
        markersize=3.0,
        markeredgewidth=0.8,
        label="class +1",
        **samples,
    )
    axes.contour(*plane.axes, plane.decision_values, levels=[0.0], colors=[INK], linewidths=1.5)
    values = plane.decision_values
    looks = [(0.0, INK, 1.5, "-"), (-1.0, style.color, 1.0, "--"), (1.0, style.color, 1.0, "--")]
    for level, color, width, line in looks:
        if values.min() < level < values.max():
            axes.contour(
                *plane.axes,
                values,
                levels=[level],
                colors=[color],
                linewidths=width,
                linestyles=line,
            )
    axes.set_title(f"{style.name}: {100 * plane.accuracy:.1f} % right")
    axes.tick_params(labelsize=7.5)
