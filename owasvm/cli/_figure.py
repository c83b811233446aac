"""The picture of an evaluation: confusion matrix and ROC curves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from owasvm.cli._evaluation import Evaluation
from owasvm.extras import require
from owasvm.files import replace_file

# Okabe and Ito: told apart by colour-blind readers.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MOST_CURVES = len(_COLOURS)
_MOST_NUMBERS = 20


def draw(evaluation: Evaluation, path: Path, *, title: str) -> None:
    """Write the picture to a file, in one piece.

    Parameters
    ----------
    evaluation : Evaluation
        The figures.
    path : Path
        Where it goes; the suffix says in which format.
    title : str
        What stands above.
    """
    require("matplotlib", "Drawing", "cli")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.0), layout="constrained")
    matrix, curves = figure.subplots(1, 2)
    figure.suptitle(title)
    _draw_matrix(matrix, evaluation)
    _draw_curves(curves, evaluation)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    with replace_file(path) as stream:
        stream.write(buffer.getbuffer())


def _draw_matrix(axes: Any, evaluation: Evaluation) -> None:
    """Counts, the shade by their share of the row."""
    import numpy as np

    counts = evaluation.counts[:, : evaluation.n_known]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set(xlabel="prediction", ylabel="label")
    axes.set_title(f"accuracy {100.0 * evaluation.accuracy:.1f} %")
    axes.set_xticks(range(counts.shape[1]), evaluation.labels[: evaluation.n_known])
    axes.set_yticks(range(counts.shape[0]), evaluation.labels)
    if counts.shape[1] > 4:
        axes.tick_params(axis="x", labelrotation=90)
    if max(counts.shape) > _MOST_NUMBERS:
        return
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(int(count)), ha="center", va="center", color=colour)


def _draw_curves(axes: Any, evaluation: Evaluation) -> None:
    """One curve per class against the rest, of two classes that of the second."""
    wanted = [k for k, curve in enumerate(evaluation.curves) if curve]
    if evaluation.n_known == 2:
        wanted = [k for k in wanted if k == 1]
    axes.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linestyle=":", label="chance")
    for colour, k in zip(_COLOURS, wanted, strict=False):
        name = f"{evaluation.labels[k]}, AUC {evaluation.aucs[k]:.3f}"
        axes.plot(*evaluation.curves[k], color=colour, label=name)
    hidden = len(wanted) - _MOST_CURVES
    if hidden > 0:
        axes.plot([], [], linestyle="none", label=f"and {hidden} more")
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.set_title("ROC curve" if evaluation.n_known == 2 else "each class against the rest")
    axes.set_aspect("equal")
    axes.legend(loc="lower right")
