"""Training data of a command that fits classifiers, and classifiers behind their scaling."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, listing, one_line
from owasvm.cli._svmlight import SvmlightData, is_sparse
from owasvm.cli._tables import TableData

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Training:
    """The training data, and what predictions must know about it."""

    samples: Any
    labels: NDArray[Any]
    target: str | None
    is_table: bool
    starts_with_zero: bool = False

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self.samples)


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the data are."""
    parser.add_argument("data", metavar="DATA", type=Path, help="CSV, Parquet or svmlight file")
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column with the class labels; not for svmlight files, which have them in front",
    )
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave a column out; may be given several times",
    )


def read_training(data: TableData | SvmlightData, arguments: argparse.Namespace) -> Training:
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
        return Training(data.samples(first), data.labels(), None, False, first)
    import pandas as pd

    names = _feature_names(data, arguments)
    labels = data.labels(arguments.target)
    samples = pd.DataFrame(data.numbers(names), columns=names)
    return Training(samples, labels, arguments.target, True)


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


def check_classes(training: Training, arguments: argparse.Namespace, otherwise: str = "") -> None:
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
            f"{training.labels.size} rows, too few for {arguments.cv} folds; lower --cv{otherwise}"
        )


def scaling_of(arguments: argparse.Namespace, is_table: bool) -> str:
    return arguments.scale or ("standard" if is_table else "none")


def with_scaling(classifier: Any, training: Training, arguments: argparse.Namespace) -> Any:
    """The classifier behind its scaling."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scaling = scaling_of(arguments, training.is_table)
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


def keep_early_stops() -> None:
    """Record every solve that stops before its target, not the first of a place only."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("always", ConvergenceWarning)


@contextmanager
def explain_refusals() -> Iterator[None]:
    """Turn what an estimator refuses into what the user can put right."""
    from owasvm.models.backends import BackendError, MissingBackendError

    try:
        yield
    except (ValueError, BackendError, MissingBackendError) as error:
        raise UsageError(one_line(error)) from error
