"""The data: samples of one kind or another behind one protocol.

:class:`Samples` is what problems, solvers and certificates ask. :func:`prepare` makes samples from
what users give; :data:`KINDS` lists who is asked to, the first that does wins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm._threads import blas_threads
from owasvm.extras import open_device
from owasvm.kernels import Kernel, KernelShifts
from owasvm.rounding import is_proven_definite, is_sparse, lacking_definiteness
from owasvm.samples.base import Evaluation, Samples
from owasvm.samples.features import FeatureSamples
from owasvm.samples.kernel import GramSamples, KernelSamples
from owasvm.samples.on_demand import OnDemandSamples, gram_size, make_on_demand
from owasvm.samples.operators import MAX_INTERCEPT_STEP, ActiveSet, Memory, Operator, Vector
from owasvm.samples.partitions import Partitions, PartitionSamples
from owasvm.samples.rows import find_mean

__all__ = [
    "CACHE_SIZE",
    "KINDS",
    "MAX_INTERCEPT_STEP",
    "ActiveSet",
    "Evaluation",
    "FeatureSamples",
    "GramSamples",
    "KernelSamples",
    "Memory",
    "OnDemandSamples",
    "Operator",
    "PartitionSamples",
    "Partitions",
    "Samples",
    "Vector",
    "choose_given",
    "prepare",
    "samples_of",
]

FloatArray = NDArray[np.float64]
#: Makes samples from X and a kernel, or returns None where it does not apply.
Kind = Callable[[Any, Kernel], Samples | None]

#: Megabytes that kernel values may take, as in scikit-learn's SVC.
CACHE_SIZE = 200.0

# Sparse features with a larger share of entries are no longer sparse.
_DENSE_SHARE = 0.5


def prepare(
    X: Any,
    kernel: Kernel,
    *,
    primal: bool = False,
    cache_size: float = CACHE_SIZE,
    device: str = "cpu",
) -> Samples:
    """Samples from X and a kernel, the one way to make them.

    Parameters
    ----------
    X : {ndarray, CSR matrix, Partitions} of shape (n_samples, n_features)
        Samples, or the Gram matrix of a precomputed kernel.
    kernel : Kernel
        The kernel, resolved.
    primal : bool, default=False
        Whether a linear kernel works on the features, however many there are.
    cache_size : float, default=200
        Megabytes that kernel values may take. Where the Gram matrix would take more, kernel values
        are computed in blocks when they are needed, a linear kernel works on the features, and
        kernels that can do neither have their Gram matrix formed if the machine can hold it.
    device : str, default="cpu"
        Where kernel values are held: a device of torch, such as "cuda". Linear models that work on
        the features stay here.

    Returns
    -------
    samples : Samples

    Raises
    ------
    ValueError
        A Gram matrix larger than the memory of the machine.

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
        if device != "cpu":
            return _make_on_device(X, kernel, device)
        kinds = KINDS if _fits(X.shape[0], kernel, cache_size) else _without_gram(cache_size)
        return _make(X, kernel, kinds)


def _make(X: Any, kernel: Kernel, kinds: list[Kind]) -> Samples:
    """Samples of the first kind that takes X and the kernel."""
    made = (make(X, kernel) for make in kinds)
    return next(samples for samples in made if samples is not None)


def _make_on_device(X: Any, kernel: Kernel, device: str) -> Samples:
    """Samples on a device of torch: Gaussian kernels computed there, others moved there."""
    there = open_device(device)
    from owasvm.samples.device import DeviceSamples, Place, move

    place = Place(there)
    if kernel.function == "rbf" and not is_sparse(X):
        return DeviceSamples.of_gaussian(place.send(X), kernel.gamma)
    known = _make(X, kernel, KINDS)
    return move(known, place) if isinstance(known, GramSamples) else known


def _fits(n_samples: int, kernel: Kernel, cache_size: float) -> bool:
    """Whether the Gram matrix may be formed; one that was given is there already."""
    return kernel.function == "precomputed" or gram_size(n_samples) <= cache_size


def _without_gram(cache_size: float) -> list[Kind]:
    """Who makes samples without a Gram matrix, and at last who makes them with one."""

    def make_blocks(X: Any, kernel: Kernel) -> Samples | None:
        return make_on_demand(X, kernel, cache_size)

    def make_linear(X: Any, kernel: Kernel) -> Samples | None:
        return _make_features(X) if kernel.function == "linear" else None

    replaced: dict[Kind, Kind] = {_make_wide_linear: make_linear, _make_gram: make_blocks}
    return [*(replaced.get(make, make) for make in KINDS), _make_gram]


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
    if isinstance(X, Partitions):
        return PartitionSamples(X)
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
    _check_memory(X.shape[0], kernel)
    matrix = kernel.matrix(X)
    rounding = matrix.rounding
    definite = kernel.is_definite
    if definite is None and isinstance(kernel.function, str) and kernel.function != "precomputed":
        definite = is_proven_definite(matrix.values, rounding)
    elif definite is None:
        # Numbers that somebody else computed are what they are.
        lacking = lacking_definiteness(matrix.values, matrix.fingerprint)
        definite = bool(np.isfinite(lacking))
        norms = np.sqrt(np.maximum(matrix.values.diagonal(), 0.0))
        rounding = rounding + np.sqrt(lacking if definite else 0.0) * norms
    return GramSamples(matrix.values, rounding=rounding, definite=definite, shifts=matrix.shifts)


def _check_memory(n_samples: int, kernel: Kernel) -> None:
    """Refuse a Gram matrix that the machine cannot hold, before anything is allocated."""
    if kernel.function == "precomputed" or not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    needed = gram_size(n_samples)
    if needed > memory:
        raise ValueError(
            f"The Gram matrix of {n_samples} samples takes {needed:.0f} MB, and the machine has "
            f"{memory:.0f} MB. Beyond cache_size kernel='rbf' and kernel='poly' with coef0 >= 0 "
            "do without it, and kernel='linear' works on the features; a kernel given as a "
            "function, 'sigmoid' and 'poly' with coef0 < 0 need all values to tell whether the "
            "kernel is positive semi-definite. Take one of the former, a smaller cache_size, or "
            "fewer samples."
        )


#: Who makes samples, in the order in which they are asked.
KINDS: list[Kind] = [_make_linear, _make_wide_linear, _make_gram]
