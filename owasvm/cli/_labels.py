"""Class labels as they are stored in a model and compared with predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_LARGEST = 2**63 - 1


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
        int64 for numbers, str for everything else, whole numbers beyond 64 bits included.
    """
    import numpy as np

    given = np.asarray(values)
    # Unsigned numbers above all of int64 would come back as other, negative ones.
    is_whole = given.dtype.kind == "i" or (
        given.dtype.kind == "u" and int(given.max(initial=0)) <= _LARGEST
    )
    if is_whole:
        return given.astype(np.int64)
    if given.dtype.kind != "f":
        return np.array([str(value) for value in given.tolist()])
    infinite = given[~np.isfinite(given)]
    if infinite.size:
        raise UsageError(f"{where} must be classes; {infinite[0]} is none")
    large = given[np.abs(given) >= _LARGEST]
    if large.size:
        raise UsageError(f"{where} must be classes; {large[0]:g} is too large for one")
    fractions = given[given != np.round(given)]
    if fractions.size:
        raise UsageError(
            f"{where} must be classes; {fractions[0]:g} is a number with a fraction "
            "(regression is not what owasvm does)"
        )
    return given.astype(np.int64)
