"""How a solve went: objective and bound over time, and the gap between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.extras import require
from owasvm.inspection._style import colour, find_classifier
from owasvm.progress import ProgressRecord

__all__ = ["ConvergenceDisplay"]

FloatArray = NDArray[np.float64]

_OBJECTIVE, _BOUND, _GAP = (colour(number) for number in range(3))
# Where a gap of 0 is drawn.
_LEAST_GAP = 1e-16


class ConvergenceDisplay:
    """Objective and bound against time, and the relative gap on a logarithmic axis.

    Newton steps estimate bound and gap (drawn dotted); branch and bound proves them at every
    node. The last point has the figures of the certificate.

    Parameters
    ----------
    time, objective, lower_bound, gap : ndarray of shape (n_records,)
        Seconds, the objective, the bound and their relative gap.
    is_proven : ndarray of shape (n_records,)
        Where bound and gap are proven.
    name : str, default=""
        Title: solver, and class if there are several.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Objective and bound.
    ax_gap_ : matplotlib Axes
        The gap.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC
    >>> from owasvm.inspection import ConvergenceDisplay
    >>> X, y = make_moons(100, noise=0.3, random_state=0)
    >>> clf = OWASVC(callback="record").fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        time: FloatArray,
        objective: FloatArray,
        lower_bound: FloatArray,
        gap: FloatArray,
        is_proven: NDArray[np.bool_],
        name: str = "",
    ) -> None:
        self.time = time
        self.objective = objective
        self.lower_bound = lower_bound
        self.gap = gap
        self.is_proven = is_proven
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, class_index: int | None = None, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the record of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            An OWASVC or LinearOWASVC, a pipeline that ends in one or a search over one, fitted
            with ``callback="record"``, a callback of your own, or ``verbose=1``.
        class_index : int or None, default=None
            Which class, where there are more than two; None takes the one that took longest.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        classifier = find_classifier(estimator, "solution_")
        solutions = classifier.solution_
        if not isinstance(solutions, list):
            solutions = [solutions]
        histories = [solution.history for solution in solutions]
        if not all(histories):
            raise ValueError(
                f"{type(classifier).__name__} kept no record of its fit: fit it with "
                "callback='record'."
            )
        if class_index is None:
            class_index = int(np.argmax([history[-1].time for history in histories]))
        return cls.from_records(histories[class_index], ax=ax)

    @classmethod
    def from_records(
        cls, records: Sequence[ProgressRecord], *, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw records, such as a callback receives.

        Parameters
        ----------
        records : sequence of ProgressRecord
            In the order of time, at least one.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        if not len(records):
            raise ValueError("records is empty; a callback collects at least one per fit.")
        first = records[0]
        display = cls(
            time=np.array([record.time for record in records]),
            objective=np.array([record.objective for record in records]),
            lower_bound=np.array([record.lower_bound for record in records]),
            gap=np.array([record.gap for record in records]),
            is_proven=np.array([record.is_proven for record in records]),
            name=", ".join(part for part in (first.label, first.solver) if part),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw objective and bound, and the gap below them.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; its lower third becomes the axes of the gap. None makes a figure.

        Returns
        -------
        self : ConvergenceDisplay
        """
        pyplot = require("matplotlib.pyplot", "ConvergenceDisplay", "plot")
        if ax is None:
            _, ax = pyplot.subplots(figsize=(6.4, 4.8), layout="constrained")
        ax_gap = _split(ax)
        best = np.minimum.accumulate(self.objective)
        ax.step(self.time, best, where="post", color=_OBJECTIVE, label="objective")
        bound = np.where(np.isfinite(self.lower_bound), self.lower_bound, np.nan)
        proven = np.where(self.is_proven, bound, np.nan)
        if not self.is_proven.all():
            ax.plot(self.time, bound, color=_BOUND, linestyle=":", label="bound, estimated")
        ax.step(
            self.time,
            proven,
            where="post",
            color=_BOUND,
            marker="o",
            markersize=3,
            label="bound, proven",
        )
        # Early bounds are far below: they would leave nothing to see of the rest.
        last = float(best[-1])
        shown = bound[np.isfinite(bound) & (bound >= last - max(1.0, abs(last)))]
        low = float(shown.min()) if shown.size else last
        finite = best[np.isfinite(best)]
        high = min(float(finite.max()), last + 3.0 * max(last - low, 0.05 * abs(last), 1e-3))
        margin = 0.05 * max(high - low, 1e-12)
        ax.set_ylim(low - margin, high + margin)
        ax.set(ylabel="objective and bound", title=self.name)
        ax.tick_params(labelbottom=False)
        ax.legend(loc="best", fontsize="small")
        gap = np.maximum(self.gap, _LEAST_GAP)
        ax_gap.plot(self.time, gap, color=_GAP, linestyle=":")
        ax_gap.plot(
            self.time,
            np.where(self.is_proven, gap, np.nan),
            color=_GAP,
            marker="o",
            markersize=3,
        )
        ax_gap.set(yscale="log", ylabel="relative gap", xlabel="seconds")
        self.ax_, self.ax_gap_, self.figure_ = ax, ax_gap, ax.figure
        return self


def _split(ax: Any) -> Any:
    """Axes in the lower third of others, which give it up."""
    place = ax.get_subplotspec()
    if place is None:
        box = ax.get_position()
        ax.set_position([box.x0, box.y0 + 0.4 * box.height, box.width, 0.6 * box.height])
        return ax.figure.add_axes([box.x0, box.y0, box.width, 0.32 * box.height], sharex=ax)
    upper, lower = place.subgridspec(2, 1, height_ratios=[2, 1])
    ax.set_subplotspec(upper)
    return ax.figure.add_subplot(lower, sharex=ax)
