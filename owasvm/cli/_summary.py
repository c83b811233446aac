"""What ``owasvm fit`` tells about a trained classifier."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_CLASSES = 6


def summary(
    arguments: argparse.Namespace,
    model: Any,
    labels: NDArray[Any],
    scores: Mapping[str, Sequence[float]],
    scaling: str,
) -> str:
    """The summary, one figure per line.

    Parameters
    ----------
    arguments : argparse.Namespace
        Arguments of the command.
    model : estimator
        The fitted classifier or pipeline.
    labels : ndarray of shape (n_samples,)
        Labels of the training data.
    scores : mapping
        Figures of the folds, empty without cross-validation.
    scaling : str
        How the features were scaled.

    Returns
    -------
    text : str
    """
    classifier = model[-1] if hasattr(model, "steps") else model
    lines = [
        ("data", _data_line(arguments, model, labels)),
        ("model", _model_line(classifier, scaling)),
        *_score_lines(scores),
        *_certificate_lines(classifier),
        ("support vectors", _support_line(classifier, labels.size)),
        ("time", _time_line(classifier, scores)),
        ("model file", str(arguments.output)),
    ]
    return "".join(f"{name:<17} {text}\n" for name, text in lines)


def _data_line(arguments: argparse.Namespace, model: Any, labels: NDArray[Any]) -> str:
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    return (
        f"{arguments.data}: {labels.size} rows, {model.n_features_in_} features, "
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


def _score_lines(scores: Mapping[str, Sequence[float]]) -> list[tuple[str, str]]:
    import numpy as np

    lines = []
    for key in ("accuracy", "balanced_accuracy"):
        if key in scores:
            folds = 100.0 * np.asarray(scores[key])
            text = (
                f"{folds.mean():.2f} % (std {folds.std():.2f}, {folds.size}-fold cross-validation)"
            )
            lines.append((key.replace("_", " "), text))
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
    """Figures by class, nothing where they would fill the screen."""
    if len(classes) > _MANY_CLASSES:
        return ""
    pairs = (f"{label}: {figure}" for label, figure in zip(classes, figures, strict=True))
    return form.format(", ".join(pairs))


def _time_line(classifier: Any, scores: Mapping[str, Sequence[float]]) -> str:
    text = f"{classifier.fit_time_:.3g} s"
    return f"{text}, cross-validation {sum(scores['seconds']):.3g} s" if scores else text
