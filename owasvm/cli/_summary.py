"""What ``owasvm fit`` tells about a trained classifier."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import counted
from owasvm.cli._fitting import Trained
from owasvm.cli._sources import name_of
from owasvm.cli._training import Training

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_CLASSES = 6


def summary(arguments: argparse.Namespace, training: Training, trained: Trained) -> str:
    """The summary, one figure per line.

    Parameters
    ----------
    arguments : argparse.Namespace
        Arguments of the command.
    training : Training
        The training data.
    trained : Trained
        The model.

    Returns
    -------
    text : str
    """
    classifier, labels = trained.classifier, training.labels
    lines = [
        ("data", _data_line(arguments, training, trained)),
        ("model", _model_line(classifier, training.scaling)),
        *_group_lines(training),
        *_score_lines(trained),
        *_certificate_lines(classifier),
        ("support vectors", _support_line(classifier, labels.size)),
        ("time", _time_line(classifier, trained.scores)),
        ("model file", str(arguments.output)),
    ]
    return "".join(f"{name:<17} {text}\n" for name, text in lines)


def record(arguments: argparse.Namespace, training: Training, trained: Trained) -> dict[str, Any]:
    """The figures of the summary, for programs.

    Parameters
    ----------
    arguments : argparse.Namespace
        Arguments of the command.
    training : Training
        The training data.
    trained : Trained
        The model.

    Returns
    -------
    record : dict
        What JSON can hold.
    """
    import numpy as np

    classifier = trained.classifier
    classes, counts = np.unique(training.labels, return_counts=True)
    parameters = ("C", "weights", "alpha", "kernel", "gamma_")
    figures = ("objective_", "lower_bound_", "gap_", "status_", "n_iter_", "n_support_")
    return {
        "model_file": str(arguments.output),
        "data": name_of(arguments.data),
        "n_rows": int(training.labels.size),
        "n_features": int(classifier.n_features_in_),
        "columns": list(getattr(trained.model, "feature_names_in_", [])),
        "categories": training.notes.categories,
        "target": training.notes.target,
        "id": training.notes.id,
        "rank_groups": training.notes.rank_groups,
        "classes": {str(label): int(n) for label, n in zip(classes, counts, strict=True)},
        "model": type(classifier).__name__,
        "parameters": {
            name.removesuffix("_"): as_json(getattr(classifier, name))
            for name in parameters
            if hasattr(classifier, name)
        },
        "scaling": training.scaling,
        "probabilities": hasattr(trained.model, "predict_proba"),
        "candidates": trained.choice.n_candidates if trained.choice else 1,
        "cross_validation": trained.scores or None,
        "seconds": classifier.fit_time_,
        **{
            name.removesuffix("_"): as_json(getattr(classifier, name))
            for name in figures
            if hasattr(classifier, name)
        },
    }


def as_json(value: Any) -> Any:
    """A figure as JSON holds it; what is not finite is null."""
    import math

    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _data_line(arguments: argparse.Namespace, training: Training, trained: Trained) -> str:
    import numpy as np

    classes, counts = np.unique(training.labels, return_counts=True)
    n_features = trained.classifier.n_features_in_
    features = counted(n_features, "feature")
    if training.notes.categories:
        features = f"{counted(trained.model.n_features_in_, 'column')}, {features}"
    return (
        f"{name_of(arguments.data)}: {training.labels.size} rows, {features}, "
        f"{classes.size} classes{_by_class(classes, counts, ' ({})')}"
    )


def _model_line(classifier: Any, scaling: str) -> str:
    parts = [type(classifier).__name__, f"C {classifier.C:g}", f"weights {classifier.weights}"]
    if classifier.weights != "uniform":
        parts.append(f"alpha {classifier.alpha:g}")
    if getattr(classifier, "loss", "hinge") != "hinge":
        parts.append(f"loss {classifier.loss}")
    kernel = getattr(classifier, "kernel", None)
    if kernel is not None:
        parts.append(f"kernel {kernel}")
    if kernel not in {None, "linear"}:
        parts.append(f"gamma {classifier.gamma_:.6g}")
    return ", ".join([*parts, f"scaling {scaling}"])


def _group_lines(training: Training) -> list[tuple[str, str]]:
    import numpy as np

    if training.groups is None:
        return []
    groups, counts = np.unique(training.groups, return_counts=True)
    number = counted(groups.size, "group")
    sizes = _by_class(groups, counts, " ({})")
    return [("ranked", f"within {number} of {training.notes.rank_groups!r}{sizes}")]


def _score_lines(trained: Trained) -> list[tuple[str, str]]:
    import numpy as np

    lines = []
    if trained.choice is not None:
        lines.append(("chosen", f"out of {trained.choice.n_candidates} candidates"))
    for key in ("accuracy", "balanced_accuracy"):
        if key in trained.scores:
            folds = 100.0 * np.asarray(trained.scores[key])
            text = (
                f"{folds.mean():.2f} % (std {folds.std():.2f}, {folds.size}-fold cross-validation)"
            )
            lines.append((key.replace("_", " "), text))
    if trained.choice is not None:
        lines.append(("", "the best of all candidates looks better than it is on new data"))
    return lines or [("accuracy", "not measured (--cv 0)")]


def _certificate_lines(classifier: Any) -> list[tuple[str, str]]:
    lines = [("objective", _figures(classifier, "objective_", "{:.8g}"))]
    if not hasattr(classifier, "lower_bound_"):
        return [*lines, ("lower bound", "none: the two-step method proves nothing")]
    return [
        *lines,
        ("lower bound", _figures(classifier, "lower_bound_", "{:.8g}")),
        ("gap", _figures(classifier, "gap_", "{:.1e}")),
        ("status", _figures(classifier, "status_", "{}")),
    ]


def _figures(classifier: Any, attribute: str, form: str) -> str:
    """A figure, or with more than two classes the figure of each class against the rest."""
    value = getattr(classifier, attribute)
    if classifier.classes_.size == 2:
        return form.format(value)
    texts = [form.format(one) for one in value]
    if len(set(texts)) == 1:
        return f"{texts[0]} (each class against the rest)"
    if len(texts) <= _MANY_CLASSES:
        return _by_class(classifier.classes_, texts, "{}")
    if isinstance(value[0], str):
        return ", ".join(f"{text} {texts.count(text)} times" for text in sorted(set(texts)))
    return f"{form.format(min(value))} to {form.format(max(value))} ({len(texts)} classes)"


def _support_line(classifier: Any, n_rows: int) -> str:
    counts = classifier.n_support_
    return f"{int(counts.sum())} of {n_rows}{_by_class(classifier.classes_, counts, ' ({})')}"


def _by_class(classes: NDArray[Any], figures: Iterable[Any], form: str) -> str:
    """Figures by class or group, nothing where they would fill the screen."""
    if len(classes) > _MANY_CLASSES:
        return ""
    pairs = (f"{label}: {figure}" for label, figure in zip(classes, figures, strict=True))
    return form.format(", ".join(pairs))


def _time_line(classifier: Any, scores: Mapping[str, Sequence[float]]) -> str:
    text = f"{classifier.fit_time_:.3g} s"
    return f"{text}, cross-validation {sum(scores['seconds']):.3g} s" if scores else text
