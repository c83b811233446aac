"""Rank weights as a picture: how much the sample of each rank counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.inspection._style import (
    GREY,
    colour,
    dash,
    find_classifier,
    open_axes,
    place_legend,
)
from owasvm.weights import Quantifier, is_family, owa_weights

FloatArray = NDArray[np.float64]

__all__ = ["WeightsDisplay"]

# Weights beyond this would flatten all others on a linear axis.
_STEEP = 10.0
_TICKS = (0, 0.5, 1, 1.5, 2, *(digit * 10**power for power in range(7) for digit in (5, 10, 20)))


class WeightsDisplay:
    r"""Rank weights :math:`\lambda_k` against the share of samples with smaller deviations.

    Make one with :meth:`from_estimator` or :meth:`from_weights`. The data are attributes, and
    :meth:`plot` draws them again.

    Parameters
    ----------
    weights : sequence of ndarray
        One array of rank weights per line, ascending order of deviation.
    labels : sequence of str or None, default=None
        Their names.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last drawing.
    figure_ : matplotlib.figure.Figure
        Their figure.
    lines_ : list of matplotlib.lines.Line2D
        One per array of weights.
    reference_ : matplotlib.lines.Line2D
        The weight 1 that all samples have in a classical SVM.

    See Also
    --------
    owasvm.weights.owa_weights : The weights of a family.

    Examples
    --------
    >>> from owasvm.inspection import WeightsDisplay
    >>> display = WeightsDisplay.from_weights("trimmed", alphas=[0.1, 0.3], n_samples=10)
    >>> display.labels
    ('trimmed, alpha = 0.1', 'trimmed, alpha = 0.3')
    >>> display.weights[1].round(2).tolist()
    [1.43, 1.43, 1.43, 1.43, 1.43, 1.43, 1.43, 0.0, 0.0, 0.0]
    """

    def __init__(self, weights: Sequence[FloatArray], labels: Sequence[str] | None = None) -> None:
        self.weights = tuple(np.asarray(one, dtype=np.float64) for one in weights)
        self.labels = None if labels is None else tuple(labels)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> WeightsDisplay:
        """Draw the weights of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier of owasvm, a pipeline that ends in one, or a search over one.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : WeightsDisplay
            One line; with ``ranks="class"`` one per class, with `groups` one per group, and of
            several classes one for each of their problems where these have other weights. Sample
            weights are included.
        """
        classifier = find_classifier(estimator, "owa_weights_")
        found, classes = classifier.owa_weights_, classifier.classes_
        several = len(classes) > 2
        if hasattr(classifier, "groups_"):
            # Sample weights apart, all problems have the same weights; the first one is shown.
            weights = found[0] if several else found
            labels = [f"group {label}" for label in classifier.groups_]
        elif classifier.ranks == "class":
            pairs = found if several else [found]
            weights = [part for pair in pairs for part in pair]
            labels = [f"class {label}" for label in classes]
            if several:
                labels = [f"{who} {label}" for label in classes for who in ("not class", "class")]
        elif several and not all(np.array_equal(found[0], one) for one in found):
            weights, labels = list(found), [f"class {label}" for label in classes]
        else:
            weights, labels = [found[0] if several else found], [_name(classifier)]
        return cls(weights, labels).plot(ax)

    @classmethod
    def from_weights(
        cls,
        weights: str | Quantifier | ArrayLike | Sequence[str | Quantifier],
        *,
        alphas: float | Sequence[float] | None = 0.6,
        n_samples: int = 100,
        ax: Any = None,
    ) -> WeightsDisplay:
        """Draw the weights of families.

        Parameters
        ----------
        weights : str, callable, array-like of shape (n_samples,), or a sequence of str or callable
            Families, quantifiers, or the weights themselves, as in :class:`owasvm.OWASVC`.
        alphas : float, sequence of float or None, default=0.6
            Shapes of the families; every family is drawn with each.
        n_samples : int, default=100
            Number of ranks.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : WeightsDisplay
        """
        if is_family(weights):
            families: Sequence[Any] = [weights]
        elif all(map(is_family, weights)):  # type: ignore[arg-type]
            families = list(weights)  # type: ignore[arg-type]
        else:
            given = np.asarray(weights, dtype=np.float64)
            return cls([owa_weights(given.size, given)]).plot(ax)
        lines: dict[str, FloatArray] = {}
        for family in families:
            for alpha in np.atleast_1d(np.asarray(alphas, dtype=object)).tolist():
                name = _label(family, alpha)
                lines.setdefault(name, owa_weights(n_samples, family, alpha))
        return cls(list(lines.values()), list(lines)).plot(ax)

    def plot(self, ax: Any = None, **line_settings: Any) -> WeightsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.
        **line_settings
            Handed on to ``ax.plot``, for all lines.

        Returns
        -------
        display : WeightsDisplay
            Itself.
        """
        self.ax_, self.figure_ = open_axes(ax, type(self).__name__)
        self.reference_ = self.ax_.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
        self.lines_ = []
        for number, weights in enumerate(self.weights):
            settings = {
                "color": colour(number),
                "linestyle": dash(number),
                "label": None if self.labels is None else self.labels[number],
                **line_settings,
            }
            share = np.linspace(0.0, 1.0, weights.size + 1)
            heights = np.append(weights, weights[-1])
            self.lines_ += self.ax_.plot(share, heights, drawstyle="steps-post", **settings)
        self.ax_.set(
            xlabel="rank of the deviation, as a share (0 smallest, 1 largest)",
            ylabel="weight (1 in a classical SVM)",
            xlim=(0.0, 1.0),
        )
        largest = max(float(weights.max()) for weights in self.weights)
        if largest > _STEEP:
            # Weights that are 0 have no logarithm.
            self.ax_.set_yscale("symlog", linthresh=2.0)
            self.ax_.set_yticks(
                [tick for tick in _TICKS if tick <= largest],
                [f"{tick:g}" for tick in _TICKS if tick <= largest],
            )
            self.ax_.set_yticks([], minor=True)
        self.ax_.set_ylim(bottom=-0.05)
        place_legend(self.ax_)
        return self


def _label(family: Any, alpha: float | None) -> str:
    name = family if isinstance(family, str) else getattr(family, "__name__", str(family))
    if family == "uniform" or callable(family) or alpha is None:
        return name
    return f"{name}, alpha = {alpha:g}"


def _name(classifier: Any) -> str:
    weights = classifier.weights
    if is_family(weights):
        return _label(weights, classifier.alpha)
    return "weights as given"
