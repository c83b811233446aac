"""Bring the columns of a data file into the order of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, listing, note
from owasvm.cli._labels import as_labels
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
    """

    samples: Any
    truth: NDArray[Any] | None
    is_labelled: NDArray[np.bool_]


def match(data: TableData | SvmlightData, model: Any, metadata: Mapping[str, Any]) -> Matched:
    """Bring the features of a data file into the order of a model.

    Parameters
    ----------
    data : TableData or SvmlightData
        The data file.
    model : estimator
        The model, fitted.
    metadata : mapping
        What ``owasvm fit`` noted in the model file: the target, how features are counted.

    Returns
    -------
    matched : Matched
    """
    names = getattr(model, "feature_names_in_", None)
    known = None if names is None else [str(name) for name in names]
    if isinstance(data, SvmlightData):
        return _match_svmlight(data, model, metadata, known)
    return _match_table(data, model, metadata.get("target"), known)


def _match_svmlight(
    data: SvmlightData, model: Any, metadata: Mapping[str, Any], known: list[str] | None
) -> Matched:
    import numpy as np

    starts_with_zero = bool(metadata.get("starts_with_zero", False))
    samples = data.samples(starts_with_zero, int(model.n_features_in_))
    if known is not None:
        note(f"{data.path} has no column names; its features are taken in the order of the model")
        samples = _name_columns(samples, known)
    truth = _labels_or_none(data.targets, data.path)
    if truth is not None and not np.isin(truth.astype(str), model.classes_.astype(str)).any():
        # Files of samples without labels carry a number in front that means nothing.
        truth = None
    return Matched(samples, truth, np.ones(data.targets.size, dtype=bool))


def _match_table(data: TableData, model: Any, target: object, known: list[str] | None) -> Matched:
    if known is None:
        known = _by_position(data, int(model.n_features_in_))
        samples: Any = data.numbers(known)
    else:
        _check_features(data, known)
        samples = _name_columns(data.numbers(known), known)
    ignored = [name for name in data.columns if name not in known and name != target]
    if ignored:
        note(f"columns the model does not know are ignored: {listing(ignored)}")
    return _with_truth(data, samples, target)


def _with_truth(data: TableData, samples: Any, target: object) -> Matched:
    import numpy as np

    if not isinstance(target, str) or target not in data.columns:
        return Matched(samples, None, np.zeros(len(data.frame), dtype=bool))
    is_labelled = ~data.frame[target].isna().to_numpy()
    if not is_labelled.any():
        return Matched(samples, None, is_labelled)
    given = data.frame[target][is_labelled].to_numpy()
    return Matched(samples, _labels_or_none(given, data.path), is_labelled)


def _labels_or_none(values: Any, path: Path) -> NDArray[Any] | None:
    """Labels to compare predictions with; predictions do without them."""
    try:
        return as_labels(values, f"the labels of {path}")
    except UsageError as error:
        note(f"no accuracy: {error}")
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
    raise UsageError(
        f"{data.path} lacks columns the model was trained on: {listing(missing)}; it has "
        f"{listing(data.columns)}"
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
