"""Bring the columns of a data file into the order of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, counted, listing, note
from owasvm.cli._labels import as_labels
from owasvm.cli._notes import Notes
from owasvm.cli._pipeline import make_frame, note_gaps
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
    given : ndarray or None, default=None
        What stands where the labels should be, in rows where something does; None if in none.
    refusal : str, default=""
        Why these are no labels, where they cannot be any.
    """

    samples: Any
    truth: NDArray[Any] | None
    is_labelled: NDArray[np.bool_]
    ids: dict[str, Any]
    given: NDArray[Any] | None = None
    refusal: str = ""


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
            f"{data.name} is an svmlight file, which holds numbers only; the model has categories "
            f"in {listing(notes.categories)}"
        )
    samples = data.samples(notes.starts_with_zero, int(model.n_features_in_))
    if known is not None:
        note(f"{data.name} has no column names; its features are taken in the order of the model")
        samples = _name_columns(samples, known)
    truth, refusal = _labels_or_refusal(data.targets, data.name)
    if truth is not None and not np.isin(truth.astype(str), model.classes_.astype(str)).any():
        # Files of samples without labels carry a number in front that means nothing.
        truth = None
    is_labelled = np.ones(data.targets.size, dtype=bool)
    return Matched(samples, truth, is_labelled, {}, data.targets, refusal)


def _match_table(data: TableData, model: Any, notes: Notes, known: list[str] | None) -> Matched:
    import numpy as np

    data = replace(data, is_for_training=False)
    if known is None:
        known = _by_position(data, int(model.n_features_in_))
        samples: Any = np.column_stack([data.numbers(name) for name in known])
    else:
        _check_features(data, known)
        samples = make_frame(data, known, notes.categories, fills=notes.fills)
        note_gaps(samples)
        _look_at_categories(samples, notes)
    others = {*known, notes.target, notes.id, notes.rank_groups}
    ignored = [name for name in data.columns if name not in others]
    if ignored:
        note(f"columns the model does not know are ignored: {listing(ignored)}")
    given, is_labelled = _read_given(data, notes.target)
    truth, refusal = (None, "") if given is None else _labels_or_refusal(given, data.name)
    return Matched(samples, truth, is_labelled, _read_ids(data, notes.id), given, refusal)


def _look_at_categories(samples: Any, notes: Notes) -> None:
    """Note categories that were not in the training data."""
    for name, seen in notes.categories.items():
        is_new = ~samples[name].isin(seen)
        if is_new.any():
            new = listing(sorted(set(samples[name][is_new])))
            note(
                f"column {name!r}: {new} in {counted(int(is_new.sum()), 'row')} was not in the "
                "training data and counts as none of its categories"
            )


def _read_ids(data: TableData, name: str | None) -> dict[str, Any]:
    return {name: data.frame[name].to_numpy()} if name in data.columns else {}


def _read_given(
    data: TableData, target: str | None
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """What the column of labels holds in rows where it is not empty, and which rows these are."""
    import numpy as np

    if target is None or target not in data.columns:
        return None, np.zeros(len(data.frame), dtype=bool)
    is_labelled = ~data.frame[target].isna().to_numpy()
    if not is_labelled.any():
        return None, is_labelled
    return data.frame[target][is_labelled].to_numpy(), is_labelled


def _labels_or_refusal(values: Any, file: str) -> tuple[NDArray[Any] | None, str]:
    """Labels to compare predictions with, or why these are none."""
    try:
        return as_labels(values, f"the labels of {file}"), ""
    except UsageError as error:
        return None, str(error)


def _check_features(data: TableData, known: list[str]) -> None:
    missing = [name for name in known if name not in data.columns]
    if not missing:
        return
    if len(data.columns) == 1:
        raise UsageError(
            f"only one column found in {data.name}, {listing(data.columns)}; the model needs "
            f"{listing(known)}{data.hint_of_separator}"
        )
    no_header = all(name.isdecimal() for name in known)
    hint = " (if its first line holds data, add --no-header)" if no_header else ""
    raise UsageError(
        f"{data.name} lacks columns the model was trained on: {listing(missing)}; it has "
        f"{listing(data.columns)}{hint}"
    )


def _by_position(data: TableData, n_features: int) -> list[str]:
    """All columns, for a model that knows no names."""
    if len(data.columns) != n_features:
        raise UsageError(
            f"the model knows no column names and needs {n_features} features; {data.name} has "
            f"{counted(len(data.columns), 'column')}"
        )
    note(f"the model knows no column names; the columns of {data.name} are taken in their order")
    return data.columns


def _name_columns(samples: Any, names: list[str]) -> Any:
    """Samples under the names of the model."""
    import pandas as pd

    return samples if is_sparse(samples) else pd.DataFrame(samples, columns=names)
