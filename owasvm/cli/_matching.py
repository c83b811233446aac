"""Bring the columns of a data file into the order of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, listing, note
from owasvm.cli._labels import as_labels
from owasvm.cli._notes import Notes
from owasvm.cli._pipeline import make_frame
from owasvm.cli._svmlight import SvmlightData, is_sparse
from owasvm.cli._tables import TableData

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Matched:
    """Samples for a model.

    Parameters
    ----------
    samples : {DataFrame, ndarray, CSR matrix} of shape (n_samples, n_features)
        Features in the order of the model.
    truth : ndarray or None
        True labels of the rows that have one; None if no row has.
    is_labelled : ndarray of shape (n_samples,)
        Which rows have one.
    ids : dict
        The column that tells rows apart, under its name; empty if there is none.
    """

    samples: Any
    truth: NDArray[Any] | None
    is_labelled: NDArray[np.bool_]
    ids: dict[str, Any]


def match(data: TableData | SvmlightData, model: Any, notes: Notes) -> Matched:
    """Bring the features of a data file into the order of a model.

    Parameters
    ----------
    data : TableData or SvmlightData
        The data file.
    model : estimator
        The model, fitted.
    notes : Notes
        What ``owasvm fit`` noted in the model file.

    Returns
    -------
    matched : Matched
    """
    names = getattr(model, "feature_names_in_", None)
    known = None if names is None else [str(name) for name in names]
    if isinstance(data, SvmlightData):
        return _match_svmlight(data, model, notes, known)
    return _match_table(data, model, notes, known)


def _match_svmlight(
    data: SvmlightData, model: Any, notes: Notes, known: list[str] | None
) -> Matched:
    import numpy as np

    if notes.categories:
        raise UsageError(
            f"{data.path} is an svmlight file, which holds numbers only; the model has categories "
            f"in {listing(notes.categories)}"
        )
    samples = data.samples(notes.starts_with_zero, int(model.n_features_in_))
    if known is not None:
        note(f"{data.path} has no column names; its features are taken in the order of the model")
        samples = _name_columns(samples, known)
    truth = _labels_or_none(data.targets, data.path)
    if truth is not None and not np.isin(truth.astype(str), model.classes_.astype(str)).any():
        # Files of samples without labels carry a number in front that means nothing.
        truth = None
    return Matched(samples, truth, np.ones(data.targets.size, dtype=bool), {})


def _match_table(data: TableData, model: Any, notes: Notes, known: list[str] | None) -> Matched:
    import numpy as np

    if known is None:
        known = _by_position(data, int(model.n_features_in_))
        samples: Any = np.column_stack([data.numbers(name) for name in known])
    else:
        _check_features(data, known)
        samples = make_frame(data, known, notes.categories, fills=notes.fills)
        _look_at_categories(samples, notes)
    others = {*known, notes.target, notes.id, notes.rank_groups}
    ignored = [name for name in data.columns if name not in others]
    if ignored:
        note(f"columns the model does not know are ignored: {listing(ignored)}")
    truth, is_labelled = _read_truth(data, notes.target)
    return Matched(samples, truth, is_labelled, _read_ids(data, notes.id))


def _look_at_categories(samples: Any, notes: Notes) -> None:
    """Note categories that were not in the training data."""
    for name, seen in notes.categories.items():
        is_new = ~samples[name].isin(seen)
        if is_new.any():
            note(
                f"column {name!r}: {listing(sorted(set(samples[name][is_new])))} in "
                f"{int(is_new.sum())} rows was not in the training data and counts as none of its "
                "categories"
            )


def _read_ids(data: TableData, name: str | None) -> dict[str, Any]:
    return {name: data.frame[name].to_numpy()} if name in data.columns else {}


def _read_truth(
    data: TableData, target: str | None
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """Labels of the rows that have one, and which rows these are."""
    import numpy as np

    if target is None or target not in data.columns:
        return None, np.zeros(len(data.frame), dtype=bool)
    is_labelled = ~data.frame[target].isna().to_numpy()
    if not is_labelled.any():
        return None, is_labelled
    given = data.frame[target][is_labelled].to_numpy()
    return _labels_or_none(given, data.path), is_labelled


def _labels_or_none(values: Any, path: Path) -> NDArray[Any] | None:
    """Labels to compare predictions with; predictions do without them."""
    try:
        return as_labels(values, f"the labels of {path}")
    except UsageError as error:
        note(f"labels are not used: {error}")
        return None


def _check_features(data: TableData, known: list[str]) -> None:
    missing = [name for name in known if name not in data.columns]
    if not missing:
        return
    if len(data.columns) == 1:
        raise UsageError(
            f"only one column found in {data.path}, {listing(data.columns)}; the model needs "
            f"{listing(known)} (if the columns were not told apart, give --separator)"
        )
    no_header = all(name.isdecimal() for name in known)
    hint = " (if its first line holds data, add --no-header)" if no_header else ""
    raise UsageError(
        f"{data.path} lacks columns the model was trained on: {listing(missing)}; it has "
        f"{listing(data.columns)}{hint}"
    )


def _by_position(data: TableData, n_features: int) -> list[str]:
    """All columns, for a model that knows no names."""
    if len(data.columns) != n_features:
        raise UsageError(
            f"the model knows no column names and needs {n_features} features; {data.path} has "
            f"{len(data.columns)} columns"
        )
    note(f"the model knows no column names; the columns of {data.path} are taken in their order")
    return data.columns


def _name_columns(samples: Any, names: list[str]) -> Any:
    """Samples under the names of the model."""
    import pandas as pd

    return samples if is_sparse(samples) else pd.DataFrame(samples, columns=names)
