"""Dask collections at the door of an estimator: checked as scikit-learn checks arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from owasvm.samples import Partitions, partitions

if TYPE_CHECKING:
    from owasvm.estimators.linear_owa_svc import LinearOWASVC


def validate_partitions(
    model: LinearOWASVC, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Partitions, ArrayLike, ArrayLike | None]:
    """Samples in partitions, and in memory their labels and weights, checked."""
    y, sample_weight = partitions.compute_vectors(y, sample_weight)
    y = validate_data(model, y=y)
    name = type(model).__name__
    _check_columns(model, X, reset=True)
    rows = Partitions.of(X, name)
    if 0 in rows.shape:
        check_array(np.empty(rows.shape), estimator=name)
    check_consistent_length(rows, y)
    return rows, y, sample_weight


def map_decisions(model: LinearOWASVC, X: Any, classes: NDArray[Any] | None = None) -> Any:
    """Decision values, or classes, as a lazy Dask array."""
    check_is_fitted(model)
    _check_columns(model, X, reset=False)
    return partitions.map_decisions(
        X, model.coef_, model.intercept_, type(model).__name__, classes
    )


def _check_columns(model: LinearOWASVC, X: Any, *, reset: bool) -> None:
    """Number and names of the features, which are known without reading a row."""
    # An empty DataFrame of pandas, where X is one of Dask.
    known = X._meta if hasattr(X, "columns") else np.empty((1, X.shape[1])) if X.ndim == 2 else X
    validate_data(model, known, reset=reset, skip_check_array=True)
