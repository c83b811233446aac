"""What the displays share: axes, colours that everybody can tell apart, the classifier inside."""

from __future__ import annotations

from typing import Any

from owasvm.extras import require

__all__ = ["INK", "colour", "dash", "find_classifier", "marker", "open_axes", "place_legend"]

INK = "#333333"
GREY = "#999999"

# Okabe and Ito's colours; yellow is left out, it is too light for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# In grey the dashes and the markers tell lines and groups apart.
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (3, 1.5)),
    (0, (8, 2, 1.5, 2, 1.5, 2)),
    (0, (1, 3)),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def colour(number: int) -> str:
    """Colour of the line or group of this number."""
    return _COLOURS[number % len(_COLOURS)]


def dash(number: int) -> Any:
    """Dashes of the line of this number; beyond the colours every colour meets other dashes."""
    return _DASHES[(number + number // len(_COLOURS)) % len(_DASHES)]


def marker(number: int) -> str:
    """Marker of the group of this number."""
    return _MARKERS[number % len(_MARKERS)]


def open_axes(ax: Any, name: str) -> tuple[Any, Any]:
    """The axes to draw on, and their figure; new ones where none are given."""
    pyplot = require("matplotlib.pyplot", f"{name}.plot", "plot")
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    return ax, ax.figure


def place_legend(ax: Any, **settings: Any) -> Any:
    """A legend without a frame; to the right of the axes where it would cover data."""
    _, labels = ax.get_legend_handles_labels()
    if not labels:
        return None
    if len(labels) <= 4:
        return ax.legend(frameon=False, fontsize="small", **settings)
    return ax.legend(
        frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), **settings
    )


def find_classifier(estimator: Any, needed: str) -> Any:
    """The fitted classifier of owasvm inside a pipeline, a search, or itself.

    Parameters
    ----------
    estimator : estimator
        A classifier, a pipeline that ends in one, or a search with ``best_estimator_``.
    needed : str
        Fitted attribute that it must have.

    Returns
    -------
    classifier : estimator
    """
    inner = estimator
    while True:
        if hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        elif hasattr(inner, "steps"):
            inner = inner.steps[-1][1]
        else:
            break
    if hasattr(inner, needed):
        return inner
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    raise TypeError(
        f"estimator must be a classifier of owasvm with the attribute {needed}, a pipeline that "
        f"ends in one or a search over one; {type(inner).__name__} has no {needed}."
    )
