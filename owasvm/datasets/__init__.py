"""The six datasets of the paper, as the paper used them.

========== ===== ==== == ========= =========================================
name       paper    n  d positives +1 stands for
========== ===== ==== == ========= =========================================
ionosphere IONO   351 34       225 good radar returns
wbc        WBC    569 30       357 benign tumours
australian AUS    690 14       307 the class coded 1 in the original
diabetes   DIA    768  8       500 tested negative
german     GC    1000 24       300 bad credit
splice     SPL   1000 60       517 the class coded +1 in the original
========== ===== ==== == ========= =========================================

Every feature is scaled to [-1, 1] on the whole set. ``wbc`` comes with scikit-learn and needs no
file. The others are files of the LIBSVM collection; :func:`load` looks for them

1. in the folder ``data_home``,
2. in the folder that the environment variable ``OWASVM_DATA`` names,
3. in the cache: the folder ``OWASVM_CACHE``, or the user's cache of the system,

and then downloads them into the cache from the first of several mirrors that has them
(``OWASVM_MIRRORS`` names other base addresses, separated by spaces). Files are used only if their
SHA-256 checksum is right.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from owasvm.datasets._registry import REGISTRY, Info
from owasvm.datasets._store import DatasetError, from_mirrors, how_to_get, in_cache, in_folders

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "REGISTRY",
    "Dataset",
    "DatasetError",
    "Info",
    "fetch",
    "info",
    "load",
    "locate",
    "names",
]


class Dataset(NamedTuple):
    """Samples and labels; unpacks as ``X, y``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features in [-1, 1].
    y : ndarray of shape (n_samples,)
        Labels -1 and +1.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]

    @property
    def data(self) -> NDArray[np.float64]:
        """The samples, under scikit-learn's name."""
        return self.X

    @property
    def target(self) -> NDArray[np.int64]:
        """The labels, under scikit-learn's name."""
        return self.y


def names() -> tuple[str, ...]:
    """Return the names of the datasets, in the order of the paper.

    Returns
    -------
    names : tuple of str

    Examples
    --------
    >>> from owasvm import datasets
    >>> datasets.names()
    ('ionosphere', 'wbc', 'australian', 'diabetes', 'german', 'splice')
    """
    return tuple(REGISTRY)


def info(name: str) -> Info:
    """Return what is known about a dataset.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    info : Info
        Shape, number of positives, file, checksum, source, and the name printed in the paper.

    Examples
    --------
    >>> from owasvm import datasets
    >>> german = datasets.info("german")
    >>> german.label, german.n_samples, german.n_features, german.n_positives
    ('GC', 1000, 24, 300)
    """
    try:
        return REGISTRY[name]
    except KeyError:
        raise ValueError(
            f"name={name!r} is no dataset; use one of {', '.join(REGISTRY)}."
        ) from None


def load(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = True
) -> Dataset:
    """Load a dataset as the paper used it.

    Parameters
    ----------
    name : {"ionosphere", "wbc", "australian", "diabetes", "german", "splice"}
        The dataset.
    data_home : path-like, default=None
        A folder that may hold the file; looked into before the folder ``OWASVM_DATA`` and the
        cache.
    download : bool, default=True
        Whether to download a file that is in none of these places.

    Returns
    -------
    dataset : Dataset
        ``X`` of shape (n_samples, n_features), dense, features scaled to [-1, 1] on the whole
        set; ``y`` with labels -1 and +1. In ``wbc`` +1 is benign, the class 1 of scikit-learn.

    Raises
    ------
    DatasetError
        There is no file and no mirror delivers it, or a file in a folder has a wrong checksum.
        The message is one line that says what to put where.

    Examples
    --------
    >>> from owasvm import datasets
    >>> X, y = datasets.load("wbc")
    >>> X.shape, y.dtype, int((y == 1).sum())
    ((569, 30), dtype('int64'), 357)
    """
    known = info(name)
    if known.file is None:
        return _from_scikit_learn()
    path = locate(name, data_home=data_home)
    if path is None and not download:
        raise DatasetError(f"{how_to_get(known)} Or allow the download (download=True).")
    return _read(path or from_mirrors(known), known)


def locate(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Return where the file of a dataset is, without downloading it.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_home : path-like, default=None
        A folder that may hold the file; looked into first.

    Returns
    -------
    path : Path or None
        The file, checksum verified; None if it is nowhere, or if the dataset needs no file.

    Raises
    ------
    DatasetError
        A file in a folder has a wrong checksum.

    Examples
    --------
    >>> from owasvm import datasets
    >>> datasets.locate("wbc") is None
    True
    """
    known = info(name)
    if known.file is None:
        return None
    return in_folders(known, data_home) or in_cache(known)


def fetch(name: str) -> Path | None:
    """Download the file of a dataset into the cache, unless it is already there.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    path : Path or None
        The file in the cache, checksum verified; None if the dataset needs no file.

    Raises
    ------
    DatasetError
        No mirror delivers the file.
    """
    known = info(name)
    if known.file is None:
        return None
    return in_cache(known) or from_mirrors(known)


def _from_scikit_learn() -> Dataset:
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import minmax_scale

    X, y = load_breast_cancer(return_X_y=True)
    return Dataset(minmax_scale(X, (-1, 1)), np.where(y == 1, 1, -1).astype(np.int64))


def _read(path: Path, known: Info) -> Dataset:
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    X: Any
    # The number of features is given because the last ones may be 0 in all rows.
    X, y = load_svmlight_file(str(path), n_features=known.n_features, zero_based=False)
    return Dataset(X.toarray(), np.where(y > 0, 1, -1).astype(np.int64))
