"""How the paper evaluates a model: data, folds, grids and figures of merit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.experiments.paper import ALPHAS, C_GRID, N_FOLDS, QUANTIFIERS, SIGMA_GRID

__all__ = [
    "FOLDS",
    "GRIDS",
    "N_INNER_FOLDS",
    "Data",
    "Grid",
    "evaluate",
    "fold_numbers",
    "load_data",
    "split",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SEED = 2
#: Folds of an inner cross-validation.
N_INNER_FOLDS = 5
#: Kinds of folds, see :func:`split`.
FOLDS: tuple[str, ...] = ("shuffled", "unshuffled", "nested")
# Fold numbers of nested rows are this times the outer fold plus the inner fold.
_OUTER = 100


@dataclass(frozen=True)
class Data:
    """A dataset as the engine passes it around; equal when the contents are.

    Parameters
    ----------
    name : str
        Its name.
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.

    Attributes
    ----------
    checksum : str
        SHA-256 of the contents.
    """

    name: str
    X: FloatArray = field(repr=False, compare=False)
    y: FloatArray = field(repr=False, compare=False)
    checksum: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(repr(self.X.shape).encode())
        digest.update(np.ascontiguousarray(self.X, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(self.y, dtype="<f8").tobytes())
        object.__setattr__(self, "checksum", digest.hexdigest())


def load_data(name: str) -> Data:
    """Load a dataset of the paper, one of :func:`owasvm.datasets.names`.

    Examples
    --------
    >>> from owasvm.experiments.protocol import load_data
    >>> data = load_data("wbc")
    >>> data.X.shape, data == load_data("wbc")
    ((569, 30), True)
    """
    from owasvm.datasets import load

    X, y = load(name)
    return Data(name, np.ascontiguousarray(X, dtype=np.float64), y.astype(np.float64))


@dataclass(frozen=True)
class Grid:
    """The parameters that are tried.

    Parameters
    ----------
    name : str
        What users call it.
    Cs : tuple of float
        Values of C, increasing.
    widths : tuple of float
        Widths sigma of the Gaussian kernel ``exp(-|x - x'|^2 / (2 sigma^2))``.
    weights : tuple of (str, float)
        Quantifiers, each with its alpha.
    """

    name: str
    Cs: tuple[float, ...]
    widths: tuple[float, ...]
    weights: tuple[tuple[str, float], ...]

    def narrow(
        self,
        Cs: Iterable[float] = (),
        widths: Iterable[float] = (),
        quantifiers: Iterable[str] = (),
        alphas: Iterable[float] = (),
    ) -> Grid:
        """Keep a part of the grid.

        Parameters
        ----------
        Cs, widths, quantifiers, alphas : iterable, default=()
            Values to keep; nothing keeps all.

        Returns
        -------
        grid : Grid

        Raises
        ------
        ValueError
            A value is not in the grid, or nothing is left.

        Examples
        --------
        >>> from owasvm.experiments.protocol import GRIDS
        >>> small = GRIDS["paper"].narrow(Cs=[1.0], quantifiers=["basic"], alphas=[0.6])
        >>> small.Cs, small.weights, len(small.widths)
        ((1.0,), (('basic', 0.6),), 15)
        """
        kept_Cs = self._keep("C", self.Cs, Cs)
        kept_widths = self._keep("sigma", self.widths, widths)
        named = self._keep("quantifier", _distinct(q for q, _ in self.weights), quantifiers)
        shaped = self._keep("alpha", _distinct(alpha for _, alpha in self.weights), alphas)
        weights = tuple(pair for pair in self.weights if pair[0] in named and pair[1] in shaped)
        if not weights:
            raise ValueError(
                f"The {self.name} grid has no pair of these quantifiers and alphas; it has "
                + ", ".join(f"{quantifier} {alpha:g}" for quantifier, alpha in self.weights)
                + "."
            )
        return replace(self, Cs=kept_Cs, widths=kept_widths, weights=weights)

    def _keep(self, what: str, values: tuple[Any, ...], wanted: Iterable[Any]) -> tuple[Any, ...]:
        chosen = set(wanted)
        unknown = sorted(chosen - set(values))
        if unknown:
            raise ValueError(
                f"{what}={_plain(unknown[0])} is not in the {self.name} grid, which has "
                f"{', '.join(_plain(value) for value in values)}."
            )
        return tuple(value for value in values if not chosen or value in chosen)


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _plain(value: Any) -> str:
    """A value as users write it, powers of two as such."""
    if isinstance(value, str):
        return value
    mantissa, exponent = math.frexp(value) if value > 0 else (0.0, 0)
    is_power = mantissa == 0.5 and not 1.0 <= value <= 8.0
    return f"2^{exponent - 1}" if is_power else f"{value:g}"


#: The paper's grid, and a small part of it that a laptop runs in a minute or two, with points at
#: which all printed values of wbc are reached.
GRIDS: dict[str, Grid] = {
    "paper": Grid(
        "paper",
        tuple(C_GRID),
        tuple(SIGMA_GRID),
        tuple((quantifier, alpha) for quantifier in QUANTIFIERS for alpha in ALPHAS),
    ),
    "coarse": Grid(
        "coarse",
        tuple(2.0**exponent for exponent in (-4, -1, 0, 1, 2, 5)),
        tuple(2.0**exponent for exponent in (-1, 1, 3, 5)),
        (
            ("basic", 0.2),
            ("basic", 0.6),
            ("quadratic", 0.2),
            ("quadratic", 0.6),
            ("exponential", 0.6),
            ("trigonometric", 0.6),
        ),
    ),
}


def fold_numbers(folds: str) -> tuple[int, ...]:
    """Return the numbers of the folds of a kind, one of :data:`FOLDS`.

    They are 0 to 9; for "nested" 100 times the outer fold plus the inner one.

    Examples
    --------
    >>> from owasvm.experiments.protocol import fold_numbers
    >>> fold_numbers("nested")[:7]
    (0, 1, 2, 3, 4, 100, 101)
    """
    if folds == "nested":
        return tuple(
            _OUTER * outer + inner for outer in range(N_FOLDS) for inner in range(N_INNER_FOLDS)
        )
    return tuple(range(N_FOLDS))


def split(y: FloatArray, folds: str, fold: int) -> tuple[IntArray, IntArray]:
    """Return the rows of a fold.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels.
    folds : {"shuffled", "unshuffled", "nested"}
        ``"shuffled"`` are ten stratified folds, shuffled with seed 2; ``"unshuffled"`` the ten of
        the same splitter without shuffling; ``"nested"`` splits the training part of a shuffled
        fold into five shuffled folds once more.
    fold : int
        One of :func:`fold_numbers`.

    Returns
    -------
    train, test : ndarray of int
        Rows.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.experiments.protocol import split
    >>> y = np.repeat([-1.0, 1.0], 50)
    >>> [part.size for part in split(y, "shuffled", 3)]
    [90, 10]
    >>> [part.size for part in split(y, "nested", 302)]
    [72, 18]
    """
    from sklearn.model_selection import StratifiedKFold

    if folds == "nested":
        outer, inner = divmod(fold, _OUTER)
        rows, _ = split(y, "shuffled", outer)
        splitter = StratifiedKFold(N_INNER_FOLDS, shuffle=True, random_state=_SEED)
        train, test = list(splitter.split(rows, y[rows]))[inner]
        return rows[train], rows[test]
    if folds == "unshuffled":
        splitter = StratifiedKFold(N_FOLDS)
    elif folds == "shuffled":
        splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=_SEED)
    else:
        raise ValueError(f"folds={folds!r} is unknown; use one of {', '.join(FOLDS)}.")
    train, test = list(splitter.split(y, y))[fold]
    return train, test


def evaluate(y: FloatArray, values: FloatArray) -> dict[str, Any]:
    """Return the figures of merit of decision values.

    A sample is right when its value has the sign of its label; the value 0 counts as an error.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels -1.0 and +1.0.
    values : ndarray of shape (n_samples,)
        Decision values.

    Returns
    -------
    figures : dict
        ``n_test``, ``correct``, ``balanced_accuracy``, ``true_positive``, ``true_negative`` and
        ``n_test_positive``.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.experiments.protocol import evaluate
    >>> figures = evaluate(np.array([1.0, 1.0, -1.0]), np.array([2.0, 0.0, -1.0]))
    >>> figures["correct"], figures["balanced_accuracy"]
    (2, 0.75)
    """
    positive = y > 0
    is_right = y * values > 0
    n_positive = int(np.count_nonzero(positive))
    n_negative = y.size - n_positive
    true_positive = int(np.count_nonzero(is_right & positive))
    true_negative = int(np.count_nonzero(is_right & ~positive))
    shares = [
        right / total
        for right, total in ((true_positive, n_positive), (true_negative, n_negative))
        if total > 0
    ]
    return {
        "n_test": int(y.size),
        "correct": true_positive + true_negative,
        "balanced_accuracy": sum(shares) / len(shares),
        "true_positive": true_positive,
        "true_negative": true_negative,
        "n_test_positive": n_positive,
    }
