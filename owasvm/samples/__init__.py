"""The data: samples of one kind or another behind one protocol.

:class:`Samples` is what problems, solvers and certificates ask. :func:`prepare` makes samples from
what users give; :data:`KINDS` lists who is asked to, the first that does wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm._threads import blas_threads
from owasvm.kernels import Kernel, KernelShifts
from owasvm.rounding import is_proven_definite, is_sparse, lacking_definiteness
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.features import FeatureSamples
from owasvm.samples.kernel import GramSamples, KernelSamples
from owasvm.samples.operators import MAX_INTERCEPT_STEP, ActiveSet, Memory, Operator, Vector
from owasvm.samples.rows import find_mean

__all__ = [
    "KINDS",
    "MAX_INTERCEPT_STEP",
    "ActiveSet",
    "Evaluation",
    "FeatureSamples",
    "GramSamples",
    "KernelSamples",
    "Memory",
    "Operator",
    "Samples",
    "Vector",
    "choose_given",
    "prepare",
    "samples_of",
]

FloatArray = NDArray[np.float64]
#: Makes samples from X and a kernel, or returns None where it does not apply.
Kind = Callable[[Any, Kernel], Samples | None]

# Sparse features with a larger share of entries are no longer sparse.
_DENSE_SHARE = 0.5


def prepare(X: Any, kernel: Kernel, *, primal: bool = False) -> Samples:
    """Samples from X and a kernel, the one way to make them.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Samples, or the Gram matrix of a precomputed kernel.
    kernel : Kernel
        The kernel, resolved.
    primal : bool, default=False
        Whether a linear kernel works on the features, however many there are.

    Returns
    -------
    samples : Samples

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.kernels import Kernel
    >>> from owasvm.samples import prepare
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> type(prepare(X, Kernel("linear"))).__name__, type(prepare(X, Kernel("rbf"))).__name__
    ('FeatureSamples', 'GramSamples')
    """
    # How much work a kernel given as a function is, only its author knows.
    work = np.inf if callable(kernel.function) else float(X.shape[0]) ** 2 * max(X.shape)
    with blas_threads(work):
        if primal and kernel.function == "linear":
            return _make_features(X)
        made = (make(X, kernel) for make in KINDS)
        return next(samples for samples in made if samples is not None)


def choose_given(X: Any, gram: Any) -> tuple[Any, Kernel]:
    """What a caller means who gives samples of a linear model, or a Gram matrix, which wins."""
    if X is None and gram is None:
        raise ValueError("Give X, the samples of a linear model, or gram, a kernel matrix.")
    return (X, Kernel("linear")) if gram is None else (gram, Kernel("precomputed"))


def samples_of(
    features: Any = None, gram: FloatArray | None = None, samples: Samples | None = None
) -> Samples:
    """Samples from exactly one of features, a Gram matrix and samples, taken as they are."""
    if sum(given is not None for given in (features, gram, samples)) != 1:
        raise ValueError("Give either features or gram or samples, one and only one of them.")
    if samples is not None:
        return samples
    return FeatureSamples(features) if gram is None else GramSamples(gram)


def _make_features(X: Any) -> Samples:
    """Features of a linear model: dense ones are moved to their mean.

    Moving the samples changes the intercept and nothing else, and leaves the digits that samples
    far from the origin would spend on the distance.
    """
    if is_sparse(X):
        if X.nnz <= _DENSE_SHARE * X.shape[0] * X.shape[1]:
            return FeatureSamples(X)
        X = X.toarray()
    return FeatureSamples(X, find_mean(X))


def _move(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Dense samples minus their mean, and the mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        origin = X.mean(axis=0)
        return np.ascontiguousarray(X - origin), origin


def _make_linear(X: Any, kernel: Kernel) -> Samples | None:
    """A linear kernel of no more features than samples needs no Gram matrix."""
    if kernel.function != "linear" or X.shape[0] < X.shape[1]:
        return None
    return _make_features(X)


def _make_wide_linear(X: Any, kernel: Kernel) -> Samples | None:
    """A linear kernel of many features; dense samples are moved to their mean."""
    if kernel.function != "linear":
        return None
    rows, shifts = X, None
    if not is_sparse(X):
        rows, origin = _move(X)
        wide = origin.astype(np.longdouble)
        products = [float(row.astype(np.longdouble) @ wide) for row in rows]
        shifts = KernelShifts(np.array(products))
    matrix = kernel.matrix(rows)
    return GramSamples(
        matrix.values, rounding=matrix.rounding, definite=True, shifts=shifts, linear_rows=rows
    )


def _make_gram(X: Any, kernel: Kernel) -> Samples:
    """Any kernel, all its values in memory, with what rounding can have left in them."""
    matrix = kernel.matrix(X)
    rounding = matrix.rounding
    definite = kernel.is_definite
    if definite is None and isinstance(kernel.function, str) and kernel.function != "precomputed":
        definite = is_proven_definite(matrix.values, rounding)
    elif definite is None:
        # Numbers that somebody else computed are what they are.
        lacking = lacking_definiteness(matrix.values)
        definite = bool(np.isfinite(lacking))
        rounding = rounding + np.sqrt(lacking if definite else 0.0)
    return GramSamples(matrix.values, rounding=rounding, definite=definite, shifts=matrix.shifts)


#: Who makes samples, in the order in which they are asked.
KINDS: list[Kind] = [_make_linear, _make_wide_linear, _make_gram]
