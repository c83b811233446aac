"""What a notebook shows of a fitted classifier beside scikit-learn's box: how the fit ended.

scikit-learn asks an estimator for ``_sk_visual_block_``, has the caption escaped, and draws it
wherever the estimator stands, in pipelines too. Where a version of scikit-learn has no such block,
or for a classifier that is not fitted, there is no such attribute and the box is the usual one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["CaptionedBox", "describe_fit", "describe_search"]

# Where scikit-learn has kept it: from 1.7 on, and before.
_HOMES = ("sklearn.utils._repr_html.estimator", "sklearn.utils._estimator_html_repr")


class CaptionedBox:
    """An estimator whose box in a notebook has a caption once it is fitted."""

    def _describe_fit(self) -> str:
        """The caption."""
        return describe_fit(self)

    @property
    def _sk_visual_block_(self) -> Callable[[], Any]:
        make_block = _find_block()
        if make_block is None or not hasattr(self, "classes_"):
            raise AttributeError("_sk_visual_block_ belongs to fitted classifiers.")
        return lambda: make_block(
            "single",
            self,
            names=type(self).__name__,
            name_details=str(self),
            name_caption=self._describe_fit(),
        )


def _find_block() -> Callable[..., Any] | None:
    """The class of scikit-learn's boxes, None if this version has none."""
    for home in _HOMES:
        try:
            block: Callable[..., Any] = import_module(home)._VisualBlock
            return block
        except (ImportError, AttributeError):
            continue
    return None


def describe_fit(classifier: Any) -> str:
    """How a fit ended: status, gap, objective, support vectors, time.

    Parameters
    ----------
    classifier : estimator
        A fitted classifier.

    Returns
    -------
    text : str
        One line; of several classes the range over them, and the largest gap.
    """
    parts = _describe_proof(classifier)
    objective = f"objective {_range(classifier.objective_)}"
    bound = _range(getattr(classifier, "lower_bound_", classifier.objective_))
    # Most are equal to all digits that are shown.
    parts.append(objective if objective.endswith(bound) else f"{objective}, at least {bound}")
    number = int(classifier.n_support_.sum())
    parts.append(f"{number} support vector{'' if number == 1 else 's'}")
    parts.append(f"{classifier.fit_time_:.2g} s")
    return " · ".join(parts)


def _describe_proof(classifier: Any) -> list[str]:
    """Status and gap, of a classifier that has them."""
    if not hasattr(classifier, "status_"):
        return []
    whose = "gap" if np.size(classifier.gap_) == 1 else "largest gap"
    return [_name_statuses(classifier.status_), f"{whose} {np.max(classifier.gap_):.1e}"]


def describe_search(search: Any) -> str:
    """What a search chose, its score, and how the last fit ended.

    Parameters
    ----------
    search : estimator
        A fitted search.

    Returns
    -------
    text : str
        One line.
    """
    chosen = ", ".join(f"{name}={_value(value)}" for name, value in search.best_params_.items())
    parts = [
        f"best of {len(search.cv_results_['params'])}: {chosen}",
        f"score {search.best_score_:.4g} over {search.n_splits_} folds",
    ]
    if hasattr(search, "best_estimator_"):
        parts += _describe_proof(search.best_estimator_)
    parts.append(f"{search.fit_time_:.2g} s")
    return " · ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return getattr(value, "__name__", None) or str(value)


def _name_statuses(statuses: Any) -> str:
    names, counts = np.unique(np.atleast_1d(statuses), return_counts=True)
    if names.size == 1:
        return str(names[0])
    return ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    if np.size(values) == 1:
        return f"{low:.6g}"
    return f"{low:.4g} to {high:.4g}"
