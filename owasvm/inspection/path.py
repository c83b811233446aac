"""What changes along C or alpha: scores of a cross-validation, or solutions of a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.inspection._style import GREY, INK, colour, dash, marker, open_axes, place_legend
from owasvm.path import OWAPath

FloatArray = NDArray[np.float64]

__all__ = ["PathDisplay"]

# More lines than this are drawn in grey, all but the largest.
_NAMED_LINES = 7
_QUANTITIES = ("objective", "n_support", "coef")


class PathDisplay:
    """Lines along a parameter, with error bars and the chosen point where there are any.

    Make one with :meth:`from_search`, :meth:`from_cv_results` or :meth:`from_path`. The data are
    attributes, and :meth:`plot` draws them again.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Values of the parameter, ascending.
    values : array-like of shape (n_lines, n_points)
        What is drawn.
    labels : sequence of str or None, default=None
        Names of the lines.
    errors : array-like of shape (n_lines, n_points) or None, default=None
        Half lengths of the error bars.
    x_name, y_name : str
        Labels of the axes.
    chosen : tuple (line, point) or None, default=None
        The point that was chosen.
    one_standard_error : tuple (line, point) or None, default=None
        The smallest C within one standard error of the best score.
    threshold : float or None, default=None
        The best score less its standard error.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last drawing.
    figure_ : matplotlib.figure.Figure
        Their figure.
    lines_ : list of matplotlib.lines.Line2D
        One per row of `values`.
    errorbars_ : list of matplotlib.container.ErrorbarContainer
        Error bars, none without errors.
    chosen_, one_standard_error_, threshold_ : matplotlib.lines.Line2D or None
        Marks of the points and of the threshold.

    See Also
    --------
    owasvm.OWASVCCV : Searches with warm starts along C.
    owasvm.path.fit_path : Solutions along C and alpha.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVCCV
    >>> from owasvm.inspection import PathDisplay
    >>> X, y = make_moons(80, noise=0.3, random_state=0)
    >>> search = OWASVCCV(Cs=[0.1, 1.0, 10.0], alphas=[0.3, 0.6]).fit(X, y)
    >>> display = PathDisplay.from_search(search)
    >>> display.labels, display.values.shape
    (('alpha = 0.3', 'alpha = 0.6'), (2, 3))
    """

    def __init__(
        self,
        x: ArrayLike,
        values: ArrayLike,
        *,
        labels: Sequence[str] | None = None,
        errors: ArrayLike | None = None,
        x_name: str = "C",
        y_name: str = "score",
        chosen: tuple[int, int] | None = None,
        one_standard_error: tuple[int, int] | None = None,
        threshold: float | None = None,
    ) -> None:
        self.x = np.asarray(x, dtype=np.float64)
        self.values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        self.labels = None if labels is None else tuple(labels)
        self.errors = None if errors is None else np.atleast_2d(np.asarray(errors))
        self.x_name = x_name
        self.y_name = y_name
        self.chosen = chosen
        self.one_standard_error = one_standard_error
        self.threshold = threshold

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        param: str = "C",
        by: str | None = None,
        metric: str = "score",
        ax: Any = None,
    ) -> PathDisplay:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : OWASVCCV, LinearOWASVCCV, GridSearchCV or the like
            Fitted, with ``cv_results_``; or a pipeline that ends in one.
        param, by, metric
            See :meth:`from_cv_results`.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : PathDisplay
        """
        inner = search.steps[-1][1] if hasattr(search, "steps") else search
        if not hasattr(inner, "cv_results_"):
            raise TypeError(
                f"search must be a fitted search; {type(inner).__name__} has no cv_results_."
            )
        best = getattr(inner, "best_index_", None)
        return cls.from_cv_results(
            inner.cv_results_, param=param, by=by, metric=metric, best_index=best, ax=ax
        )

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        param: str = "C",
        by: str | None = None,
        metric: str = "score",
        best_index: int | None = None,
        ax: Any = None,
    ) -> PathDisplay:
        """Draw the scores in a ``cv_results_``.

        Error bars are one standard error of the mean over the folds. Parameters that are neither
        `param` nor `by` are those of the chosen candidate.

        Parameters
        ----------
        cv_results : mapping
            As of ``GridSearchCV``.
        param : str, default="C"
            Parameter of the horizontal axis; ``"C"`` finds ``"svc__C"`` as well.
        by : str or None, default=None
            Parameter with one line per value. None takes the only other one that varies, and if
            there are several of them none.
        metric : str, default="score"
            Which score, where there are several.
        best_index : int or None, default=None
            The candidate that was chosen; None stands for the first of the best mean scores.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : PathDisplay
        """
        scores = _scores(cv_results, metric)
        means = scores.mean(axis=1)
        best = int(np.argmax(means)) if best_index is None else int(best_index)
        candidates = cv_results["params"]
        varying = _varying(candidates)
        along = _find(varying, param, "param")
        others = [name for name in varying if name != along]
        if by is not None:
            lines_by: str | None = _find(others, by, "by")
        else:
            lines_by = others[0] if len(others) == 1 else None
        # Where each candidate that is drawn lies.
        fixed = [name for name in others if name != lines_by]
        kept = [
            k
            for k, one in enumerate(candidates)
            if all(one.get(name) == candidates[best].get(name) for name in fixed)
        ]
        x = _numbers([candidates[k][along] for k in kept], along)
        kinds = list(dict.fromkeys(_text(candidates[k].get(lines_by)) for k in kept))
        points = np.unique(x)
        place = {
            k: (
                kinds.index(_text(candidates[k].get(lines_by))),
                int(np.searchsorted(points, value)),
            )
            for k, value in zip(kept, x.tolist(), strict=True)
        }
        values = np.full((len(kinds), points.size), np.nan)
        errors = np.full(values.shape, np.nan)
        for k, where in place.items():
            values[where], errors[where] = means[k], _standard_error(scores[k])
        top = int(np.argmax(means))
        threshold = (
            float(means[top] - _standard_error(scores[top])) if scores.shape[1] > 1 else None
        )
        rule = None
        if threshold is not None and _last(along) == "C":
            near = np.flatnonzero(means >= threshold)
            simplest = int(min(near, key=lambda k: (candidates[k][along], -means[k], k)))
            rule = place.get(simplest)
        labels = None if lines_by is None else [f"{_last(lines_by)} = {kind}" for kind in kinds]
        return cls(
            points,
            values,
            labels=labels,
            errors=None if scores.shape[1] < 2 else errors,
            x_name=_last(along),
            y_name=f"mean {metric} over {scores.shape[1]} folds",
            chosen=place[best],
            one_standard_error=rule,
            threshold=threshold if rule is not None else None,
        ).plot(ax)

    @classmethod
    def from_path(
        cls,
        path: OWAPath,
        quantity: str = "objective",
        *,
        param: str = "C",
        alpha: float | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> PathDisplay:
        """Draw the solutions of :func:`owasvm.path.fit_path`.

        Parameters
        ----------
        path : OWAPath
            Solutions over a grid.
        quantity : {"objective", "n_support", "coef"}, default="objective"
            Objectives, numbers of support vectors, or coefficients of a linear model.
        param : {"C", "alpha"}, default="C"
            Parameter of the horizontal axis; one line per value of the other one.
        alpha : float or None, default=None
            Whose coefficients; None stands for the first alpha of the path.
        feature_names : sequence of str or None, default=None
            Names of the coefficients.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : PathDisplay
        """
        if quantity not in _QUANTITIES:
            raise ValueError(
                f"quantity={quantity!r} must be one of {', '.join(map(repr, _QUANTITIES))}."
            )
        if param not in ("C", "alpha"):
            raise ValueError(f"param={param!r} must be 'C' or 'alpha'.")
        if quantity == "coef":
            return cls._from_coefficients(path, alpha, feature_names).plot(ax)
        values = path.objectives
        if quantity == "n_support":
            values = np.sum(path.duals > 0.0, axis=2)
        x, others, name = path.Cs, path.alphas, "alpha"
        if param == "alpha":
            x, others, values, name = path.alphas, path.Cs, values.T, "C"
        order = np.argsort(x, kind="stable")
        single = len(others) == 1
        return cls(
            x[order],
            values[:, order],
            labels=None if single else [f"{name} = {other:g}" for other in others],
            x_name=param,
            y_name="support vectors" if quantity == "n_support" else "objective",
        ).plot(ax)

    @classmethod
    def _from_coefficients(
        cls, path: OWAPath, alpha: float | None, feature_names: Sequence[str] | None
    ) -> PathDisplay:
        row = 0
        if alpha is not None:
            found = np.flatnonzero(np.isclose(path.alphas, alpha))
            if found.size == 0:
                raise ValueError(f"alpha={alpha!r} is not among {path.alphas.tolist()}.")
            row = int(found[0])
        coefs = [solution.coef for solution in path.solutions[row]]
        known = [coef for coef in coefs if coef is not None]
        if len(known) < len(coefs):
            raise ValueError(
                "quantity='coef' needs coefficients of features: fit_path with kernel='linear' "
                "and no more features than samples."
            )
        order = np.argsort(path.Cs, kind="stable")
        values = np.stack(known, axis=1)[:, order]
        names = feature_names
        if names is None:
            names = [f"feature {k}" for k in range(len(values))]
        if len(names) != len(values):
            raise ValueError(
                f"feature_names must name {len(values)} features; got {len(names)} names."
            )
        return cls(path.Cs[order], values, labels=names, y_name="coefficient")

    def plot(self, ax: Any = None, **line_settings: Any) -> PathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a new figure.
        **line_settings
            Handed on to ``ax.plot``, for all lines.

        Returns
        -------
        display : PathDisplay
            Itself.
        """
        self.ax_, self.figure_ = open_axes(ax, type(self).__name__)
        self.lines_, self.errorbars_ = [], []
        named = self._named_lines()
        for number, values in enumerate(self.values):
            settings = {**self._look(number, named), **line_settings}
            (line,) = self.ax_.plot(self.x, values, **settings)
            self.lines_.append(line)
            if self.errors is not None:
                self.errorbars_.append(
                    self.ax_.errorbar(
                        self.x,
                        values,
                        self.errors[number],
                        fmt="none",
                        ecolor=line.get_color(),
                        elinewidth=0.9,
                        capsize=2.5,
                        alpha=0.6,
                    )
                )
        self.threshold_ = None
        if self.threshold is not None:
            self.threshold_ = self.ax_.axhline(
                self.threshold,
                color=GREY,
                linewidth=0.8,
                zorder=0,
                label="best less one standard error",
            )
        self.one_standard_error_ = None
        if self.one_standard_error is not None:
            self.one_standard_error_ = self._mark(
                self.one_standard_error, "D", 14.0, "smallest C above it"
            )
        self.chosen_ = None
        if self.chosen is not None:
            self.chosen_ = self._mark(self.chosen, "*", 13.0, "chosen")
        if self.x.min(initial=np.inf) > 0.0 and self.x_name != "alpha":
            self.ax_.set_xscale("log")
        self.ax_.set(xlabel=self.x_name, ylabel=self.y_name)
        place_legend(self.ax_)
        return self

    def _named_lines(self) -> list[int]:
        """Lines with a colour and a place in the legend: all, or those that end farthest out."""
        if len(self.values) <= _NAMED_LINES:
            return list(range(len(self.values)))
        reach = np.abs(np.nan_to_num(self.values[:, -1]))
        return np.argsort(-reach, kind="stable")[:_NAMED_LINES].tolist()

    def _look(self, number: int, named: list[int]) -> dict[str, Any]:
        if number not in named:
            return {"color": GREY, "linewidth": 0.7, "alpha": 0.6, "zorder": 1}
        place = named.index(number)
        return {
            "color": colour(place),
            "linestyle": dash(place),
            "marker": marker(place) if self.x.size <= 40 else None,
            "markersize": 4.0,
            "label": None if self.labels is None else self.labels[number],
        }

    def _mark(self, where: tuple[int, int], shape: str, size: float, label: str) -> Any:
        (mark,) = self.ax_.plot(
            self.x[where[1]],
            self.values[where],
            linestyle="none",
            marker=shape,
            markersize=size,
            markerfacecolor="none" if shape == "D" else "#F0E442",
            markeredgecolor=INK,
            zorder=4,
            label=label,
        )
        return mark


def _scores(cv_results: Mapping[str, Any], metric: str) -> FloatArray:
    """Scores of the folds, one row per candidate."""
    columns: list[Any] = []
    while f"split{len(columns)}_test_{metric}" in cv_results:
        columns.append(cv_results[f"split{len(columns)}_test_{metric}"])
    if not columns:
        known = [name[len("mean_test_") :] for name in cv_results if name.startswith("mean_test_")]
        raise ValueError(f"metric={metric!r} is not in cv_results; it holds {known}.")
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _standard_error(scores: FloatArray) -> float:
    return float(scores.std(ddof=1) / np.sqrt(scores.size)) if scores.size > 1 else 0.0


def _varying(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Parameters that have more than one value."""
    names = dict.fromkeys(name for one in candidates for name in one)
    several = [n for n in names if len({_text(one.get(n)) for one in candidates}) > 1]
    return several or list(names)


def _last(name: str) -> str:
    return name.rpartition("__")[2]


def _find(names: Sequence[str], wanted: str, argument: str) -> str:
    """The parameter of this name, steps of a pipeline left out."""
    found = [name for name in names if wanted in (name, _last(name))]
    if len(found) != 1:
        raise ValueError(f"{argument}={wanted!r} must be one of those that vary: {list(names)}.")
    return found[0]


def _text(value: Any) -> str:
    if isinstance(value, Real):
        return f"{float(value):.4g}"
    return getattr(value, "__name__", None) or str(value)


def _numbers(values: Sequence[Any], name: str) -> FloatArray:
    if not all(isinstance(value, Real) for value in values):
        raise ValueError(
            f"param={name!r} has values that are not numbers: {sorted(map(str, values))}. Take it "
            "for by, and another one for param."
        )
    return np.array(values, dtype=np.float64)
