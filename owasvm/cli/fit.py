"""``owasvm fit``: train a classifier on a data file."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from owasvm.cli._data import MANUAL, add_reading_options, read_data, reading_options
from owasvm.cli._errors import UsageError, check_output, warn
from owasvm.cli._options import (
    WEIGHTS_MANUAL,
    add_model_options,
    add_seed_option,
    check_model_options,
    count,
    estimator,
)
from owasvm.cli._training import (
    Training,
    add_training_options,
    check_classes,
    explain_refusals,
    keep_early_stops,
    read_training,
    scaling_of,
    with_scaling,
)

HELP = "train a classifier on a data file and save it"

_DESCRIPTION = """\
Train an OWA-SVM on a data file, measure its accuracy by cross-validation, and
save it.

The classifier minimises 1/2 |w|^2 + C * sum_k weights[k] * (k-th smallest
deviation). With weights that never fall the problem is convex and solved to a
proven gap: the summary shows the objective reached, and a lower bound that no
classifier can go below.
"""
_EPILOG = f"""\
{WEIGHTS_MANUAL}
{MANUAL}
the model file:
  A skops archive (no pickle): loading it runs no code. It keeps the scaling,
  the names of the features and the labels. It is written in one piece: a run
  that fails leaves no file behind.

examples:
  owasvm fit patients.csv --target diagnosis --output patients.skops
  owasvm fit patients.csv --target diagnosis --drop id --C 10 \\
      --weights superquantile --alpha 0.2 --output patients.skops
  owasvm fit ionosphere_scale --sigma 2 --cv 10 --output ionosphere.skops
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_training_options(parser)
    parser.add_argument(
        "--output", metavar="MODEL", type=Path, required=True, help="model file to write (*.skops)"
    )
    parser.add_argument(
        "--cv",
        type=count,
        default=5,
        metavar="FOLDS",
        help="folds of the cross-validation, stratified and shuffled; 0 for none (default: 5)",
    )
    add_seed_option(parser)
    add_model_options(parser)
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, check, cross-validate, train, save, report."""
    from owasvm import persistence
    from owasvm.cli._summary import summary

    if arguments.cv == 1:
        raise UsageError("--cv 1 leaves nothing to train on; use 2 or more folds, or 0 for none")
    check_model_options(arguments)
    options = reading_options(arguments)
    check_output(arguments.output, arguments.data)
    training = read_training(read_data(arguments.data, options), arguments)
    check_classes(training, arguments, ", or skip the cross-validation with --cv 0")
    model = with_scaling(estimator(arguments, training.labels), training, arguments)
    scores = _cross_validate(model, training, arguments)
    _fit(model, training)
    metadata = {
        "target": training.target,
        "is_sparse": training.is_sparse,
        "starts_with_zero": training.starts_with_zero,
        "n_rows": int(training.labels.size),
        "cross_validation": scores,
    }
    persistence.save(model, arguments.output, metadata=metadata)
    scaling = scaling_of(arguments, training.is_table)
    sys.stdout.write(summary(arguments, model, training.labels, scores, scaling))
    return 0


def _cross_validate(
    model: Any, training: Training, arguments: argparse.Namespace
) -> dict[str, list[float]]:
    """Accuracy and balanced accuracy of the folds; empty without cross-validation."""
    if arguments.cv == 0:
        return {}
    from sklearn.model_selection import StratifiedKFold, cross_validate

    folds = StratifiedKFold(arguments.cv, shuffle=True, random_state=arguments.seed)
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        result = cross_validate(
            model,
            training.samples,
            training.labels,
            cv=folds,
            scoring=("accuracy", "balanced_accuracy"),
            error_score="raise",
        )
    if caught:
        warn(f"{len(caught)} warnings in the cross-validation; the first: {caught[0].message}")
    return {
        "accuracy": result["test_accuracy"].tolist(),
        "balanced_accuracy": result["test_balanced_accuracy"].tolist(),
        "seconds": (result["fit_time"] + result["score_time"]).tolist(),
    }


def _fit(model: Any, training: Training) -> None:
    """Train on all rows."""
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        model.fit(training.samples, training.labels)
    for one in caught:
        warn(one.message)
