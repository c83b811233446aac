"""Training data of a command that fits classifiers, and the models that it makes of them."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from owasvm.cli._data import ReadingOptions, read_data
from owasvm.cli._errors import UsageError, listing, note, one_line
from owasvm.cli._notes import Notes
from owasvm.cli._pipeline import (
    choose_categories,
    make_features,
    make_frame,
    make_scaler,
    note_gaps,
)
from owasvm.cli._sources import data_path, name_of
from owasvm.cli._svmlight import SvmlightData, is_sparse
from owasvm.cli._tables import TableData

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Fewer rows are unique by chance.
_FEWEST_IDS = 10
_LIKE_AN_ID = re.compile(r"(?i:(^|[^a-z])(id|key|uuid|guid|index)$)|[a-z](Id|ID)$")


@dataclass(frozen=True)
class Training:
    """The training data, the steps that make features of them, and what predictions must know."""

    samples: Any
    labels: NDArray[Any]
    features: list[Any]
    scaling: str
    notes: Notes
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None

    def take(self, rows: NDArray[Any]) -> Training:
        """Some of the rows."""
        samples = self.samples.iloc[rows] if hasattr(self.samples, "iloc") else self.samples[rows]
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, samples=samples, labels=self.labels[rows], groups=groups)


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the data are."""
    parser.add_argument(
        "data",
        metavar="DATA",
        type=data_path,
        help="CSV, Parquet or svmlight file, '-' for standard input",
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column with the class labels; not for svmlight files, which have them in front",
    )
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        help="column that tells rows apart: no feature, but carried along",
    )
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave a column out; several with commas, or the option several times",
    )


def read_training(
    arguments: argparse.Namespace, options: ReadingOptions, rank_groups: str | None = None
) -> Training:
    """Features and labels of the data file, and the groups that a column of it names."""
    texts = [name for text in arguments.categorical for name in (text, *text.split(","))]
    # Ids are carried along as they are written: 007 is not 7.
    texts += [name for name in (arguments.id, rank_groups) if name is not None]
    data = read_data(arguments.data, options, texts)
    if isinstance(data, SvmlightData):
        return _from_svmlight(data, arguments, rank_groups)
    names = _feature_names(data, arguments, rank_groups)
    labels = data.labels(arguments.target)
    _check_two_classes(labels, f"column {arguments.target!r}")
    groups = None if rank_groups is None else data.groups(rank_groups)
    categories = choose_categories(data, names, arguments)
    fills = arguments.missing == "impute"
    samples = make_frame(data, names, categories, fills=fills)
    _refuse_empty(data.name, samples)
    note_gaps(samples)
    _note_ids(samples, categories)
    scaling = arguments.scale or "standard"
    notes = Notes(
        target=arguments.target,
        id=arguments.id,
        rank_groups=rank_groups,
        categories={name: sorted(set(samples[name])) for name in categories},
        fills=fills,
    )
    features = make_features(samples, categories, scaling, fills=fills)
    ids = None if arguments.id is None else data.frame[arguments.id].to_numpy()
    return Training(samples, labels, features, scaling, notes, ids, groups)


def _from_svmlight(
    data: SvmlightData, arguments: argparse.Namespace, rank_groups: str | None
) -> Training:
    if arguments.target is not None:
        raise UsageError("--target does not apply to svmlight files, whose labels stand in front")
    given = {name: getattr(arguments, name) for name in ("id", "drop", "categorical")}
    for option, value in {**given, "rank-groups": rank_groups}.items():
        if value:
            raise UsageError(
                f"--{option} does not apply to svmlight files, whose columns have no names"
            )
    first = data.starts_with_zero
    samples = data.samples(first)
    scaling = arguments.scale or "none"
    if is_sparse(samples) and scaling in {"standard", "minmax"}:
        raise UsageError(
            f"--scale {scaling} would fill the zeros of a large sparse file; use --scale maxabs"
        )
    notes = Notes(is_sparse=is_sparse(samples), starts_with_zero=first)
    labels = data.labels()
    _check_two_classes(labels, data.name)
    return Training(samples, labels, make_scaler(scaling), scaling, notes)


def _feature_names(
    data: TableData, arguments: argparse.Namespace, rank_groups: str | None
) -> list[str]:
    """The columns that are features."""
    if len(data.columns) == 1:
        raise UsageError(
            f"only one column found in {data.name}, {listing(data.columns)}; it needs the target "
            f"and at least one feature{data.hint_of_separator}"
        )
    if arguments.target is None:
        raise UsageError(
            f"--target is missing: which column of {data.name} holds the class labels? "
            f"There is {listing(data.columns)}"
        )
    data.check_columns([arguments.target], "--target")
    if arguments.id is not None:
        data.check_columns([arguments.id], "--id")
        if arguments.id == arguments.target:
            raise UsageError(f"--id and --target are the same column, {arguments.id!r}")
    if rank_groups is not None:
        data.check_columns([rank_groups], "--rank-groups")
        if rank_groups == arguments.target:
            raise UsageError(
                f"--rank-groups and --target are the same column, {rank_groups!r}; to rank within "
                "each class use --ranks class"
            )
    dropped = data.names_in(arguments.drop, "--drop")
    used = {"--target": arguments.target, "--id": arguments.id, "--rank-groups": rank_groups}
    for option, name in used.items():
        if name in dropped:
            raise UsageError(
                f"--drop {name!r} is the column of {option}, which is no feature in any case; "
                "leave it out of --drop"
            )
    others = {arguments.target, arguments.id, rank_groups, *dropped}
    names = [name for name in data.columns if name not in others]
    if not names:
        raise UsageError(f"{data.name} has no features beside the target {arguments.target!r}")
    for name in names:
        if re.fullmatch(r"Unnamed: \d+", name):
            raise UsageError(
                f"a column of {data.name} has no name (a row index?); name it, or leave it out: "
                f"--drop '{name}'"
            )
    return names


def _refuse_empty(file: str, samples: Any) -> None:
    """Refuse columns without a single number."""
    is_empty = samples.isna().all()
    if is_empty.any():
        name = is_empty.idxmax()
        raise UsageError(f"column {name!r} of {file} is empty; leave it out: --drop {name!r}")


def _note_ids(samples: Any, categories: list[str]) -> None:
    """Note columns of numbers that look like an id."""
    for name in samples.columns:
        is_number = name not in categories and _LIKE_AN_ID.search(name)
        if is_number and len(samples) >= _FEWEST_IDS and samples[name].is_unique:
            note(
                f"column {name!r} looks like an id, and is a feature here; --id {name!r} keeps it "
                "out and carries it into the predictions"
            )


def _check_two_classes(labels: NDArray[Any], where: str) -> None:
    """Refuse labels that leave nothing to learn, before anything is said about features."""
    classes = set(labels.tolist())
    if len(classes) == 1:
        raise UsageError(
            f"{where} has one class only, {str(classes.pop())!r}; two or more are needed"
        )


def check_classes(training: Training, arguments: argparse.Namespace, otherwise: str = "") -> None:
    """Refuse classes that leave nothing to validate."""
    import numpy as np

    target = training.notes.target
    where = name_of(arguments.data) if target is None else f"column {target!r}"
    classes, counts = np.unique(training.labels, return_counts=True)
    smallest = int(counts.argmin())
    if counts[smallest] < arguments.cv:
        # No number of folds fits a single row.
        remedy = "lower --cv" if counts[smallest] > 1 else "add rows of it, or leave it out"
        raise UsageError(
            f"class {str(classes[smallest])!r} of {where} has {counts[smallest]} of "
            f"{training.labels.size} rows, too few for {arguments.cv} folds; {remedy}{otherwise}"
        )


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
