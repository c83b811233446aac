"""``owasvm fit``: train a classifier on a data file."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._data import MANUAL, add_reading_options, read_data, reading_options
from owasvm.cli._errors import UsageError, check_output, listing, one_line, warn
from owasvm.cli._options import (
    WEIGHTS_MANUAL,
    add_model_options,
    check_model_options,
    count,
    estimator,
    seed,
)
from owasvm.cli._svmlight import SvmlightData, is_sparse
from owasvm.cli._tables import TableData

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


@dataclass(frozen=True)
class _Training:
    """The training data, and what predictions must know about it."""

    samples: Any
    labels: NDArray[Any]
    target: str | None
    is_table: bool
    starts_with_zero: bool = False

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self.samples)


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.add_argument("data", metavar="DATA", type=Path, help="CSV, Parquet or svmlight file")
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column with the class labels; not for svmlight files, which have them in front",
    )
    parser.add_argument(
        "--output", metavar="MODEL", type=Path, required=True, help="model file to write (*.skops)"
    )
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave a column out; may be given several times",
    )
    parser.add_argument(
        "--cv",
        type=count,
        default=5,
        metavar="FOLDS",
        help="folds of the cross-validation, stratified and shuffled; 0 for none (default: 5)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="NUMBER",
        help="seed of the folds, and of solvers that draw random numbers (default: 0)",
    )
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
    training = _training(read_data(arguments.data, options), arguments)
    _check_classes(training, arguments)
    model = _pipeline(estimator(arguments, training.labels), training, arguments)
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
    scaling = _scaling(arguments, training.is_table)
    sys.stdout.write(summary(arguments, model, training.labels, scores, scaling))
    return 0


def _training(data: TableData | SvmlightData, arguments: argparse.Namespace) -> _Training:
    """Features and labels of the data file."""
    if isinstance(data, SvmlightData):
        if arguments.target is not None:
            raise UsageError(
                "--target does not apply to svmlight files, whose labels stand in front"
            )
        if arguments.drop:
            raise UsageError(
                "--drop does not apply to svmlight files, whose columns have no names"
            )
        first = data.starts_with_zero
        return _Training(data.samples(first), data.labels(), None, False, first)
    import pandas as pd

    names = _feature_names(data, arguments)
    labels = data.labels(arguments.target)
    samples = pd.DataFrame(data.numbers(names), columns=names)
    return _Training(samples, labels, arguments.target, True)


def _feature_names(data: TableData, arguments: argparse.Namespace) -> list[str]:
    """The columns that are features."""
    if len(data.columns) == 1:
        raise UsageError(
            f"only one column found in {data.path}, {listing(data.columns)}; it needs the target "
            "and at least one feature (if the columns were not told apart, give --separator)"
        )
    if arguments.target is None:
        raise UsageError(
            f"--target is missing: which column of {data.path} holds the class labels? "
            f"There is {listing(data.columns)}"
        )
    data.check_columns([arguments.target], "--target")
    data.check_columns(arguments.drop, "--drop")
    names = [
        name for name in data.columns if name != arguments.target and name not in arguments.drop
    ]
    if not names:
        raise UsageError(f"{data.path} has no features beside the target {arguments.target!r}")
    for name in names:
        if re.fullmatch(r"Unnamed: \d+", name):
            raise UsageError(
                f"a column of {data.path} has no name (a row index?); name it, or leave it out: "
                f"--drop '{name}'"
            )
    return names


def _check_classes(training: _Training, arguments: argparse.Namespace) -> None:
    """Refuse labels that leave nothing to learn or to validate."""
    import numpy as np

    where = arguments.data if training.target is None else f"column {training.target!r}"
    classes, counts = np.unique(training.labels, return_counts=True)
    if classes.size == 1:
        raise UsageError(
            f"{where} has one class only, {str(classes[0])!r}; two or more are needed"
        )
    smallest = int(counts.argmin())
    if counts[smallest] < arguments.cv:
        raise UsageError(
            f"class {str(classes[smallest])!r} of {where} has {counts[smallest]} of "
            f"{training.labels.size} rows, too few for {arguments.cv} folds; lower --cv, or skip "
            "the cross-validation with --cv 0"
        )


def _scaling(arguments: argparse.Namespace, is_table: bool) -> str:
    return arguments.scale or ("standard" if is_table else "none")


def _pipeline(classifier: Any, training: _Training, arguments: argparse.Namespace) -> Any:
    """The classifier behind its scaling."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scaling = _scaling(arguments, training.is_table)
    if scaling == "none":
        return classifier
    if training.is_sparse and scaling != "maxabs":
        raise UsageError(
            f"--scale {scaling} would fill the zeros of a large sparse file; use --scale maxabs"
        )
    scalers = {
        "standard": StandardScaler(),
        "minmax": MinMaxScaler(feature_range=(-1.0, 1.0)),
        "maxabs": MaxAbsScaler(),
    }
    return make_pipeline(scalers[scaling], classifier)


def _cross_validate(
    model: Any, training: _Training, arguments: argparse.Namespace
) -> dict[str, list[float]]:
    """Accuracy and balanced accuracy of the folds; empty without cross-validation."""
    if arguments.cv == 0:
        return {}
    from sklearn.model_selection import StratifiedKFold, cross_validate

    folds = StratifiedKFold(arguments.cv, shuffle=True, random_state=arguments.seed)
    with _explain_refusals(), warnings.catch_warnings(record=True) as caught:
        _keep_early_stops()
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


def _fit(model: Any, training: _Training) -> None:
    """Train on all rows."""
    with _explain_refusals(), warnings.catch_warnings(record=True) as caught:
        _keep_early_stops()
        model.fit(training.samples, training.labels)
    for one in caught:
        warn(one.message)


def _keep_early_stops() -> None:
    """Record every solve that stops before its target, not the first of a place only."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("always", ConvergenceWarning)


@contextmanager
def _explain_refusals() -> Iterator[None]:
    """Turn what an estimator refuses into what the user can put right."""
    from owasvm.models.backends import BackendError, MissingBackendError

    try:
        yield
    except (ValueError, BackendError, MissingBackendError) as error:
        raise UsageError(one_line(error)) from error
