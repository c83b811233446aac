"""Sorted deviations and what they cost: who pays how much of the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.inspection._style import (
    colour,
    find_classifier,
    marker,
    open_axes,
)
from owasvm.weights import Quantifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["DeviationsDisplay"]

# How many ranks without a deviation are shown before the first one with it, as a share.
_LEAD = 0.05
# Deviations below this share of the largest are those of samples on the margin.
_ROUNDING = 1e-6
_CROSSES = ("x", "+", "1", "2", "3", "4", "|")


class DeviationsDisplay:
    r"""Hinge deviations in ascending order, and what each sample pays for its own.

    A marker is a deviation :math:`\xi_i`; the bar below or around it is
    :math:`\lambda_i \xi_i`, what the sample pays in units of C (:math:`\lambda_i \xi_i^2` for the
    squared hinge). With weights that rise, the bars of the worst samples stand above their
    markers. Samples that weights ending in zeros ignore have no bar and are marked by crosses.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`. The data are attributes, and
    :meth:`plot` draws them again.

    Parameters
    ----------
    deviations : array-like of shape (n_samples,)
        Hinge deviations; samples where they are NaN are left out.
    sample_costs : array-like of shape (n_samples,)
        What each sample pays per unit of deviation.
    ignored : array-like of int, default=()
        Rows that are ignored.
    groups : array-like of shape (n_samples,) or None, default=None
        Whom a sample belongs to, for example its class.
    C : float, default=1.0
        Unit of the payments.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Whether deviations are paid as they are, or squared.

    Attributes
    ----------
    rows : ndarray of shape (n_kept,)
        Rows with a deviation that is a number, from the smallest deviation to the largest. The
        arrays below have the same order.
    deviations, payments : ndarray of shape (n_kept,)
        Deviations, and what is paid for them in units of C.
    ignored : ndarray of bool of shape (n_kept,)
        Whether the sample is ignored.
    groups : ndarray of shape (n_kept,) or None
        Groups of the samples.
    shares : dict
        The share of the loss that each group pays.
    ax_ : matplotlib.axes.Axes
        Axes of the last drawing.
    figure_ : matplotlib.figure.Figure
        Their figure.
    bars_ : list of matplotlib.collections.LineCollection
        Payments, one collection per group.
    points_ : list of matplotlib.lines.Line2D
        Deviations, one line of markers per group.
    ignored_ : list of matplotlib.lines.Line2D
        Deviations that are ignored, one line of crosses per group that has any.

    See Also
    --------
    owasvm.OWASVC : ``deviations_``, ``sample_costs_`` and ``outliers_`` are what is drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC
    >>> from owasvm.inspection import DeviationsDisplay
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> clf = OWASVC(weights="superquantile", alpha=0.2).fit(X, y)
    >>> display = DeviationsDisplay.from_estimator(clf, groups=y)
    >>> display.points_[0].get_label()
    '0: ... of the loss'
    """

    def __init__(
        self,
        deviations: ArrayLike,
        sample_costs: ArrayLike,
        *,
        ignored: ArrayLike = (),
        groups: ArrayLike | None = None,
        C: float = 1.0,
        loss: str = "hinge",
    ) -> None:
        given = np.asarray(deviations, dtype=np.float64)
        costs = np.asarray(sample_costs, dtype=np.float64)
        if given.ndim != 1 or costs.shape != given.shape:
            raise ValueError(
                "deviations and sample_costs must be vectors of the same length; got shapes "
                f"{given.shape} and {costs.shape}."
            )
        order = np.argsort(given, kind="stable")
        self.rows = order[np.isfinite(given[order])]
        self.deviations = given[self.rows]
        power = 2 if loss == "squared_hinge" else 1
        self.payments = costs[self.rows] / C * self.deviations**power
        marked = np.zeros(given.size, dtype=bool)
        marked[np.asarray(ignored, dtype=np.int64)] = True
        self.ignored = marked[self.rows]
        self.groups = None
        if groups is not None:
            members = np.asarray(groups)
            if members.shape != given.shape:
                raise ValueError(
                    f"groups must hold one entry per sample, {given.size}; got shape "
                    f"{members.shape}."
                )
            self.groups = members[self.rows]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        class_of_interest: Any = None,
        ax: Any = None,
    ) -> DeviationsDisplay:
        """Draw the deviations from a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier of owasvm, a pipeline that ends in one, or a search over one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            Other samples. None stands for those that the classifier was trained on.
        y : array-like of shape (n_samples,) or None, default=None
            Labels of `X`.
        groups : array-like of shape (n_samples,) or None, default=None
            Whom a sample belongs to; None stands for `y` where it is given.
        class_of_interest : label or None, default=None
            With more than two classes the one whose problem, against the rest, is drawn.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : DeviationsDisplay
            Other samples are ranked among themselves, with the weights that the family has for
            their number.
        """
        classifier = find_classifier(estimator, "deviations_")
        number = _number_of(classifier.classes_, class_of_interest)
        if X is None:
            fields = ("deviations_", "sample_costs_", "outliers_")
            found = [getattr(classifier, name) for name in fields]
            if len(classifier.classes_) > 2:
                found = [values[number] for values in found]
            return cls(
                found[0],
                found[1],
                ignored=found[2],
                groups=y if groups is None else groups,
                C=classifier.C,
                loss=getattr(classifier, "loss", "hinge"),
            ).plot(ax)
        if y is None:
            raise ValueError("y=None: the deviations of other samples X need their labels y.")
        if hasattr(classifier, "groups_"):
            raise ValueError(
                f"The classifier was trained with groups, {classifier.groups_.tolist()}, and "
                "deviations of other samples cannot be ranked within them. Leave X out to draw "
                "those of the training samples."
            )
        values = np.asarray(estimator.decision_function(X))
        return cls.from_predictions(
            np.asarray(y),
            values if values.ndim == 1 else values[:, number],
            pos_label=classifier.classes_[number],
            weights=classifier.weights,
            alpha=classifier.alpha,
            ranks=classifier.ranks,
            loss=getattr(classifier, "loss", "hinge"),
            groups=groups,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        decision_values: ArrayLike,
        *,
        pos_label: Any = None,
        weights: str | Quantifier | ArrayLike = "uniform",
        alpha: float | None = 0.6,
        ranks: str = "all",
        loss: str = "hinge",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        ax: Any = None,
    ) -> DeviationsDisplay:
        """Draw the deviations of decision values of any classifier.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels.
        decision_values : array-like of shape (n_samples,)
            Decision values; positive ones speak for `pos_label`.
        pos_label : label or None, default=None
            The class +1; all others are -1. None stands for the larger of two labels.
        weights, alpha, ranks, loss
            What deviations cost, as in :class:`owasvm.OWASVC`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Positive sample weights.
        groups : array-like of shape (n_samples,) or None, default=None
            Whom a sample belongs to; None stands for `y`.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : DeviationsDisplay
        """
        from owasvm.grouping import assign_costs, charge_by_rank, find_ignored
        from owasvm.loss import hinge_deviations

        labels = np.asarray(y)
        if pos_label is None:
            classes = np.unique(labels)
            if classes.size > 2:
                raise ValueError(
                    f"pos_label=None is for two classes; y holds {classes.size}: "
                    f"{classes.tolist()}. Name one of them."
                )
            pos_label = classes[-1]
        signs = np.where(labels == pos_label, 1.0, -1.0)
        deviations = hinge_deviations(decision_values, signs)
        mass = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        costs = assign_costs(signs, weights, alpha, 1.0, mass, ranks=ranks)
        charged = charge_by_rank(costs, deviations)
        return cls(
            deviations,
            charged,
            ignored=find_ignored(costs, charged, deviations),
            groups=labels if groups is None else groups,
            loss=loss,
        ).plot(ax)

    @property
    def shares(self) -> dict[Any, float]:
        """The share of the loss that each group pays."""
        total = float(self.payments.sum())
        if self.groups is None:
            return {}
        return {
            name: float(self.payments[self.groups == name].sum()) / total if total else 0.0
            for name in np.unique(self.groups).tolist()
        }

    def plot(self, ax: Any = None) -> DeviationsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : DeviationsDisplay
            Itself.
        """
        self.ax_, self.figure_ = open_axes(ax, type(self).__name__)
        ranks = np.arange(1, self.rows.size + 1)
        nothing = _ROUNDING * max(1.0, float(self.deviations.max(initial=0.0)))
        first = int(np.searchsorted(self.deviations, nothing, side="right"))
        if first == self.rows.size:
            first = 0
        shown = ranks > first
        width = float(np.clip(260.0 / max(self.rows.size - first, 1), 0.6, 6.0))
        size = float(np.clip(2.0 + width, 3.5, 5.5))
        self.bars_, self.points_, self.ignored_ = [], [], []
        for number, (label, members) in enumerate(self._members()):
            paying, ignored = members & shown & ~self.ignored, members & self.ignored
            look = {"linestyle": "none", "markersize": size, "color": colour(number)}
            self.bars_.append(
                self.ax_.vlines(
                    ranks[paying],
                    0.0,
                    self.payments[paying],
                    color=colour(number),
                    linewidth=width,
                    alpha=0.4,
                    zorder=1,
                )
            )
            self.points_ += self.ax_.plot(
                ranks[paying],
                self.deviations[paying],
                marker=marker(number),
                markeredgecolor="white",
                markeredgewidth=0.4,
                label=label,
                **look,
            )
            if ignored.any():
                whom = "" if self.groups is None else f"{label.rpartition(':')[0]}: "
                self.ignored_ += self.ax_.plot(
                    ranks[ignored],
                    self.deviations[ignored],
                    marker=_CROSSES[number % len(_CROSSES)],
                    label=f"{whom}{ignored.sum()} ignored",
                    **look,
                )
        hidden = f", {first} without a deviation left out" if first else ""
        self.ax_.set(
            xlabel=f"samples by deviation{hidden}",
            ylabel="deviation (marker), payment / C (bar)",
        )
        lead = max(0.5, _LEAD * (self.rows.size - first))
        self.ax_.set_xlim(first + 1 - lead, self.rows.size + lead)
        self.ax_.set_ylim(bottom=0.0)
        # Deviations rise to the right.
        self.ax_.legend(frameon=False, fontsize="small", loc="upper left")
        return self

    def _members(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """Labels of the groups and who belongs to them."""
        if self.groups is None:
            return [("samples that pay", np.ones(self.rows.size, dtype=bool))]
        return [
            (f"{name}: {share:.0%} of the loss", self.groups == name)
            for name, share in self.shares.items()
        ]


def _number_of(classes: NDArray[Any], wanted: Any) -> int:
    """Which column of decision values is the problem of a class."""
    if classes.size == 2:
        if wanted is not None and wanted != classes[1]:
            raise ValueError(
                f"class_of_interest={wanted!r}: two classes have one problem, that of "
                f"{classes.tolist()[1]!r}; leave class_of_interest out."
            )
        return 1
    found = np.flatnonzero(classes == wanted)
    if found.size != 1:
        raise ValueError(
            f"class_of_interest={wanted!r} must be one of the classes {classes.tolist()}: each of "
            "them has a problem of its own, against the rest."
        )
    return int(found[0])
