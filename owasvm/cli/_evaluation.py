"""How good predictions are: figures for people and programs, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from owasvm.cli._application import Application
from owasvm.cli._errors import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_LABEL = 20


@dataclass(frozen=True)
class Evaluation:
    """Figures of the rows that have a label.

    Parameters
    ----------
    labels : list of str
        Classes of the model, then labels of the file that it has never seen.
    n_known : int
        How many of them are classes of the model.
    counts : ndarray of shape (n_labels, n_labels)
        Rows by label and prediction.
    accuracy, balanced_accuracy : float
        Share of rows predicted right; its mean over the labels of the file.
    precision, recall : ndarray of shape (n_labels,)
        By class; NaN where nothing was predicted, or no row has the label.
    aucs : ndarray of shape (n_known,)
        Area under the curve of each class against the rest, NaN where there is none.
    auc : float
        Of the second class of two; else their mean over the classes of the file.
    log_loss : float or None
        Mean of minus the logarithm of the probability of the true label; None without
        probabilities or with labels that the model has never seen.
    curves : list
        Per class of the model false and true positive rates, empty where there is no curve.
    """

    labels: list[str]
    n_known: int
    counts: NDArray[Any]
    accuracy: float
    balanced_accuracy: float
    precision: NDArray[Any]
    recall: NDArray[Any]
    aucs: NDArray[Any]
    auc: float
    log_loss: float | None
    curves: list[Any]


def evaluate(applied: Application) -> Evaluation:
    """Compare predictions with the labels of the file.

    Parameters
    ----------
    applied : Application
        Predictions for rows, some of which have labels.

    Returns
    -------
    evaluation : Evaluation
    """
    import numpy as np
    from sklearn.metrics import confusion_matrix

    rows = applied.matched.is_labelled
    # As text, because a column of numbers may be read as text where one value is no number.
    truth = np.asarray(applied.matched.truth).astype(str)
    predictions = applied.predictions[rows].astype(str)
    known = applied.classes.astype(str).tolist()
    labels = known + sorted(set(truth) - set(known))
    counts = confusion_matrix(truth, predictions, labels=labels)
    hits = np.diag(counts).astype(float)
    with np.errstate(invalid="ignore"):
        recall = hits / counts.sum(axis=1)
        precision = hits / counts.sum(axis=0)
    speaking = applied.values if applied.probabilities is None else applied.probabilities
    curves, aucs = _curves(truth, speaking[rows], known)
    is_there = counts.sum(axis=1)[: len(known)] > 0
    ours = aucs[1] if len(known) == 2 else _mean(aucs[is_there])
    return Evaluation(
        labels=labels,
        n_known=len(known),
        counts=counts,
        accuracy=float(hits.sum() / truth.size),
        balanced_accuracy=_mean(recall),
        precision=precision,
        recall=recall,
        aucs=aucs,
        auc=float(ours),
        log_loss=_log_loss(truth, applied, known),
        curves=curves,
    )


def _curves(
    truth: NDArray[Any], speaking: NDArray[Any], known: list[str]
) -> tuple[list[Any], NDArray[Any]]:
    """Curve and area of each class against the rest."""
    import numpy as np
    from sklearn.metrics import auc, roc_curve

    if speaking.ndim == 1:
        speaking = np.column_stack([-speaking, speaking])
    curves: list[tuple[Any, ...]] = []
    areas = np.full(len(known), np.nan)
    for column, label in enumerate(known):
        is_this = truth == label
        if is_this.all() or not is_this.any():
            curves.append(())
            continue
        false_rate, true_rate, _ = roc_curve(is_this, speaking[:, column])
        curves.append((false_rate, true_rate))
        areas[column] = auc(false_rate, true_rate)
    return curves, areas


def _log_loss(truth: NDArray[Any], applied: Application, known: list[str]) -> float | None:
    import numpy as np

    if applied.probabilities is None or not set(truth) <= set(known):
        return None
    column = {label: k for k, label in enumerate(known)}
    given = applied.probabilities[applied.matched.is_labelled]
    of_truth = given[np.arange(truth.size), [column[label] for label in truth]]
    return float(-np.log(np.maximum(of_truth, np.finfo(float).tiny)).mean())


def _mean(values: NDArray[Any]) -> float:
    """The mean of the values that exist."""
    import numpy as np

    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else float("nan")


def as_text(evaluation: Evaluation, data: str, n_rows: int) -> str:
    """The figures for people."""
    n_labelled = int(evaluation.counts.sum())
    n_more = n_rows - n_labelled
    rest = f"; {n_more} more {'has' if n_more == 1 else 'have'} no label" if n_more else ""
    hits = int(evaluation.counts.trace())
    kind = "" if evaluation.n_known == 2 else " (mean of each class against the rest)"
    lines = [
        ("data", f"{data}: {counted(n_labelled, 'row')}{rest}"),
        (
            "accuracy",
            f"{100.0 * evaluation.accuracy:.2f} % ({hits} of {counted(n_labelled, 'row')})",
        ),
        ("balanced accuracy", f"{100.0 * evaluation.balanced_accuracy:.2f} %"),
        ("AUC", f"{_figure(evaluation.auc)}{kind if evaluation.auc == evaluation.auc else ''}"),
    ]
    if evaluation.log_loss is not None:
        lines.append(("log loss", f"{evaluation.log_loss:.4f}"))
    head = "".join(f"{name:<17} {text}\n" for name, text in lines)
    return f"{head}\n{_class_table(evaluation)}\n{_confusion_table(evaluation)}"


def as_record(evaluation: Evaluation) -> dict[str, Any]:
    """The figures for programs, as JSON holds them."""
    return {
        "n_rows": int(evaluation.counts.sum()),
        "accuracy": evaluation.accuracy,
        "balanced_accuracy": evaluation.balanced_accuracy,
        "auc": _or_none(evaluation.auc),
        "log_loss": evaluation.log_loss,
        "classes": {
            label: {
                "n_rows": int(evaluation.counts[k].sum()),
                "precision": _or_none(evaluation.precision[k]),
                "recall": _or_none(evaluation.recall[k]),
                "auc": _or_none(evaluation.aucs[k]) if k < evaluation.n_known else None,
            }
            for k, label in enumerate(evaluation.labels)
        },
        "confusion_matrix": {
            "labels": evaluation.labels,
            "counts": evaluation.counts.tolist(),
        },
    }


def _class_table(evaluation: Evaluation) -> str:
    rows: list[tuple[str, ...]] = [("class", "rows", "precision", "recall", "AUC")]
    for k, label in enumerate(evaluation.labels):
        figures = [evaluation.precision[k], evaluation.recall[k]]
        figures.append(evaluation.aucs[k] if k < evaluation.n_known else float("nan"))
        rows.append((_short(label), str(int(evaluation.counts[k].sum())), *map(_figure, figures)))
    return _table(rows)


def _confusion_table(evaluation: Evaluation) -> str:
    predicted = evaluation.labels[: evaluation.n_known]
    rows = [("label \\ prediction", *map(_short, predicted))]
    for k, label in enumerate(evaluation.labels):
        counts = evaluation.counts[k, : evaluation.n_known]
        rows.append((_short(label), *(str(int(count)) for count in counts)))
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]) + "\n")
    return "".join(lines)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 3]}..."


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:.4f}"


def _or_none(value: float) -> float | None:
    return None if value != value else float(value)
