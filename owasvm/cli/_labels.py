"""Class labels as they are stored in a model and compared with predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def as_labels(values: ArrayLike, where: str) -> NDArray[Any]:
    """Labels as whole numbers or as text.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Numbers, truth values or text, nothing missing.
    where : str
        How an error calls them.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        int64 for numbers, str for everything else.
    """
    import numpy as np

    given = np.asarray(values)
    if given.dtype.kind in "iu":
        return given.astype(np.int64)
    if given.dtype.kind != "f":
        return np.array([str(value) for value in given.tolist()])
    infinite = given[~np.isfinite(given)]
    if infinite.size:
        raise UsageError(f"{where} must be classes; {infinite[0]} is none")
    fractions = given[given != np.round(given)]
    if fractions.size:
        raise UsageError(
            f"{where} must be classes; {fractions[0]:g} is a number with a fraction "
            "(regression is not what owasvm does)"
        )
    return given.astype(np.int64)
