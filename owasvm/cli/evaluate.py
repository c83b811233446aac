"""``owasvm evaluate``: how good a saved classifier is on rows with labels."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from owasvm.cli._application import (
    Application,
    add_application_arguments,
    apply_model,
    load_model,
    note_unseen_labels,
)
from owasvm.cli._data import MANUAL, add_reading_options, reading_options
from owasvm.cli._errors import UsageError, check_output, listing, note
from owasvm.cli._packages import check_packages
from owasvm.cli._sources import name_of

HELP = "measure a saved classifier on rows with labels"

_DESCRIPTION = """\
Measure a classifier that 'owasvm fit' saved on a data file with labels:
accuracy, balanced accuracy, area under the ROC curve (AUC), precision and
recall by class, and the confusion matrix. The rows should not be those it was
trained on.
"""
_EPILOG = f"""\
the figures:
  balanced accuracy  mean of the recalls, so that rare classes count as much
  AUC                how well scores rank: the chance that a row of the class
                     scores higher than one of the rest; with more than two
                     classes each against the rest, and their mean
  precision, recall  share of the rows predicted as a class that belong to it,
                     and of those that belong to it that are predicted so
  log loss           with probabilities: mean of -log(probability of the label)
  Rows without a label are left out. Labels that the model has never seen count
  as predicted wrong.

{MANUAL}
examples:
  owasvm evaluate patients.skops test.csv
  owasvm evaluate patients.skops test.csv --plot test.png
  owasvm evaluate patients.skops test.csv --json | jq .accuracy
"""
_FIGURES = {".png", ".pdf", ".svg"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_application_arguments(parser)
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column with the labels (default: that of 'owasvm fit')",
    )
    parser.add_argument("--json", action="store_true", help="write the figures as JSON")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        type=Path,
        help="draw the confusion matrix and the ROC curves (.png, .pdf or .svg)",
    )
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Load, read, predict, compare, report."""
    from owasvm.cli._evaluation import as_record, as_text, evaluate

    plots, data = arguments.plot is not None, name_of(arguments.data)
    check_packages("evaluate", "pandas", "skops", files=(arguments.data,), plots=plots)
    if plots:
        _check_plot(arguments)
    options = reading_options(arguments)
    model, notes = load_model(arguments.model, arguments.max_model_size)
    if arguments.target is not None:
        notes = replace(notes, target=arguments.target)
    applied = apply_model(arguments, model, notes, options)
    if not applied.knows_a_label:
        raise UsageError(_no_labels(arguments, notes.target, applied))
    note_unseen_labels(applied)
    evaluation = evaluate(applied)
    if applied.probabilities is not None and evaluation.log_loss is None:
        note("there is no log loss: labels the model has never seen have no probability")
    if plots:
        from owasvm.cli._figure import draw

        draw(evaluation, arguments.plot, title=f"{arguments.model} on {data}")
    if arguments.json:
        figures = as_record(evaluation) | {"figure": str(arguments.plot) if plots else None}
        sys.stdout.write(json.dumps(figures, indent=2, allow_nan=False) + "\n")
        return 0
    sys.stdout.write(as_text(evaluation, data, applied.predictions.size))
    if plots:
        sys.stdout.write(f"\n{'figure':<17} {arguments.plot}\n")
    return 0


def _check_plot(arguments: argparse.Namespace) -> None:
    if arguments.plot.suffix.lower() not in _FIGURES:
        raise UsageError(f"--plot {arguments.plot} must end in {', '.join(sorted(_FIGURES))}")
    check_output(arguments.plot, arguments.model, arguments.data)


def _no_labels(arguments: argparse.Namespace, target: str | None, applied: Application) -> str:
    """Why there is nothing to compare predictions with, and what helps."""
    data, given = name_of(arguments.data), applied.matched.given
    if given is not None:
        found = listing(dict.fromkeys(given.tolist()), 3)
        where = f"in front of the rows of {data}" if target is None else f"in column {target!r}"
        other = "" if target is None else "--target names another column, and "
        return (
            f"the labels of the model, {listing(applied.classes)}, are not what stands {where}: "
            f"{found}; {other}'owasvm predict' does without labels"
        )
    if target is None:
        return (
            f"{arguments.model} does not say which column of {data} holds the labels: "
            "--target COLUMN"
        )
    return (
        f"{data} has no labels in a column {target!r}; --target names another column, and "
        "'owasvm predict' does without"
    )
