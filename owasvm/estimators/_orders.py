r"""Rankings of samples that hand out rank weights before training.

Every order gives each sample a score, the larger the more it deviates from the others, and the
sample with the k-th smallest score receives ``weights[k]``. ``"deviation"`` takes the deviations
of a first SVM; the others, induced orders, look at the samples alone, whatever their labels:

================ ========================================================================
order            score
================ ========================================================================
``lof``          local outlier factor: density of the neighbours over the own density
``knn``          mean distance to the nearest neighbours
``parzen``       minus the logarithm of a Gaussian Parzen window density
``spread``       sum over the features of the absolute distance to their mean
``fuzzy-dbscan`` one minus the membership in a fuzzy DBSCAN cluster
================ ========================================================================

All of them count a sample of weight s as s copies, the distance between copies being 0. So
whole-number weights equal copies here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from owasvm.rounding import is_sparse

__all__ = ["INDUCED_ORDERS", "OrderOptions", "induced_scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Samples = Any

_BLOCK_ENTRIES = 2**22
_CANCELLED = 1e-13  # squared distances below this share of the squared norms are rounding
_SMALLEST_REACH = 1e-10  # keeps the density of copies finite


@dataclass(frozen=True)
class OrderOptions:
    """Parameters of the induced orders; see :class:`owasvm.TwoStepOWASVC`."""

    n_neighbors: int = 10
    bandwidth: float | None = None
    eps: float | None = None
    min_samples: tuple[float, float] = (5, 20)


class _Geometry:
    """Distances between samples, in blocks of rows, and the copies they stand for.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Samples; their Gram matrix if `is_gram`. The distances of a Gram matrix are those in
        the space of its kernel.
    mass : ndarray of shape (n_samples,)
        Sample weights.
    is_gram : bool
        What X is.
    """

    def __init__(self, X: Samples, mass: FloatArray, is_gram: bool) -> None:
        self.X = X
        self.mass = mass
        self.is_gram = is_gram
        if is_gram:
            self._squared_norms = np.diagonal(X)
        elif is_sparse(X):
            self._squared_norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Rows and their distances to all samples."""
        n_samples = self.mass.size
        step = max(1, _BLOCK_ENTRIES // n_samples)
        for start in range(0, n_samples, step):
            rows = slice(start, min(start + step, n_samples))
            yield rows, self._distances(rows)

    def _distances(self, rows: slice) -> FloatArray:
        if not self.is_gram and not is_sparse(self.X):
            # Differences are formed before they are squared: copies are at distance 0.
            return cdist(self.X[rows], self.X)
        products = self.X[rows] if self.is_gram else (self.X[rows] @ self.X.T).toarray()
        norms = self._squared_norms[rows, None] + self._squared_norms[None, :]
        squared = norms - 2.0 * products
        squared[squared <= _CANCELLED * norms] = 0.0
        return np.sqrt(squared)

    def others(self, distances: FloatArray) -> FloatArray:
        """Copies that samples with these distances have as neighbours.

        All but one of those at the same place, which is the sample itself. Counting by place
        makes it all the same how the weight there is split among samples.
        """
        is_here = distances == 0.0
        here = is_here @ self.mass
        return np.where(is_here, np.maximum(1.0 - 1.0 / here, 0.0)[:, None], 1.0) * self.mass


def _nearest(
    distances: FloatArray, others: FloatArray, wanted: int
) -> tuple[FloatArray, FloatArray]:
    """Distance to the `wanted`-th neighbour, or the last, and mean distance up to there."""
    order = np.argsort(distances, axis=1, kind="stable")
    sorted_distances = np.take_along_axis(distances, order, axis=1)
    copies = np.take_along_axis(others, order, axis=1)
    reached = np.cumsum(copies, axis=1)
    count = np.minimum(wanted, reached[:, -1:])
    # Sums of weights that are not whole numbers are rounded.
    last = np.argmax(reached >= count * (1.0 - 1e-12), axis=1)
    used = np.clip(count - (reached - copies), 0.0, copies)
    farthest = np.take_along_axis(sorted_distances, last[:, None], axis=1).ravel()
    total = np.einsum("ij,ij->i", used, sorted_distances)
    return farthest, total / np.where(count > 0.0, count, 1.0).ravel()


def _neighbour_distances(geometry: _Geometry, wanted: int) -> tuple[FloatArray, FloatArray]:
    """For all samples what :func:`_nearest` gives."""
    farthest, mean = np.empty(geometry.mass.size), np.empty(geometry.mass.size)
    for rows, distances in geometry.blocks():
        others = geometry.others(distances)
        farthest[rows], mean[rows] = _nearest(distances, others, wanted)
    return farthest, mean


def _typical_distance(geometry: _Geometry, wanted: int) -> float:
    """Median, over the copies, of the positive distances to the `wanted`-th neighbour."""
    farthest, _ = _neighbour_distances(geometry, wanted)
    order = np.argsort(farthest, kind="stable")
    order = order[farthest[order] > 0.0]
    if order.size == 0:
        return 1.0
    reached = np.cumsum(geometry.mass[order])
    return float(farthest[order[np.argmax(reached >= 0.5 * reached[-1] * (1.0 - 1e-12))]])


def _knn_scores(geometry: _Geometry, options: OrderOptions) -> FloatArray:
    return _neighbour_distances(geometry, options.n_neighbors)[1]


def _lof_scores(geometry: _Geometry, options: OrderOptions) -> FloatArray:
    """Local outlier factor; neighbours are all that are as near as the k-th one."""
    farthest, _ = _neighbour_distances(geometry, options.n_neighbors)
    n_samples = farthest.size

    def neighbourhoods() -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        for rows, distances in geometry.blocks():
            # The k-th distance again, from the same numbers, up to their rounding.
            is_near = distances <= farthest[rows, None] * (1.0 + 1e-12)
            copies = np.where(is_near, geometry.others(distances), 0.0)
            total = copies.sum(axis=1, keepdims=True)
            yield rows, distances, copies / np.where(total > 0.0, total, 1.0)

    density = np.empty(n_samples)
    for rows, distances, share in neighbourhoods():
        reach = np.maximum(distances, farthest[None, :])
        density[rows] = 1.0 / (np.einsum("ij,ij->i", share, reach) + _SMALLEST_REACH)
    factor = np.empty(n_samples)
    for rows, _, share in neighbourhoods():
        factor[rows] = (share @ density) / density[rows]
    return factor


def _parzen_scores(geometry: _Geometry, options: OrderOptions) -> FloatArray:
    """Minus the logarithm of the density, up to a constant."""
    width = options.bandwidth or _typical_distance(geometry, options.n_neighbors)
    scores = np.empty(geometry.mass.size)
    for rows, distances in geometry.blocks():
        scores[rows] = -logsumexp(-0.5 * (distances / width) ** 2, b=geometry.mass, axis=1)
    return scores


def _fuzzy_dbscan_scores(geometry: _Geometry, options: OrderOptions) -> FloatArray:
    """One minus the membership.

    With m the number of copies within `eps` of a sample, itself included, and
    ``(low, high) = min_samples`` its degree as a core point is (m - low) / (high - low), clipped
    to [0, 1]. A sample of degree 0 within `eps` of core points is on their border; its membership
    is the smallest degree among them. The rest is noise, with membership 0.
    """
    low, high = options.min_samples
    radius = options.eps or _typical_distance(geometry, options.n_neighbors)
    n_samples = geometry.mass.size
    core = np.empty(n_samples)
    for rows, distances in geometry.blocks():
        near = (distances <= radius * (1.0 + 1e-12)) @ geometry.mass
        core[rows] = np.clip((near - low) / (high - low), 0.0, 1.0) if high > low else near >= low
    membership = core.copy()
    for rows, distances in geometry.blocks():
        reachable = (distances <= radius * (1.0 + 1e-12)) & (core > 0.0)[None, :]
        smallest = np.min(np.where(reachable, core[None, :], np.inf), axis=1)
        is_border = (core[rows] == 0.0) & np.isfinite(smallest)
        membership[rows] = np.where(is_border, smallest, membership[rows])
    return 1.0 - membership


def _spread_scores(geometry: _Geometry, options: OrderOptions) -> FloatArray:  # noqa: ARG001
    if geometry.is_gram:
        raise ValueError(
            "order='spread' needs the features; it is not possible with kernel='precomputed'. "
            "Use another order."
        )
    X, share = geometry.X, geometry.mass / geometry.mass.sum()
    if not is_sparse(X):
        # Seen from one of them samples that are all alike spread by nothing, not by rounding.
        seen = X - X[0]
        return np.abs(seen - seen.T @ share).sum(axis=1)
    mean = np.asarray(X.T @ share).ravel()
    stored = X.tocoo()
    change = np.abs(stored.data - mean[stored.col]) - np.abs(mean[stored.col])
    return np.abs(mean).sum() + np.bincount(stored.row, weights=change, minlength=X.shape[0])


_SCORES: dict[str, Callable[[_Geometry, OrderOptions], FloatArray]] = {
    "lof": _lof_scores,
    "knn": _knn_scores,
    "parzen": _parzen_scores,
    "spread": _spread_scores,
    "fuzzy-dbscan": _fuzzy_dbscan_scores,
}

INDUCED_ORDERS: tuple[str, ...] = tuple(_SCORES)


def induced_scores(
    order: str, X: Samples, mass: FloatArray | None, options: OrderOptions, is_gram: bool = False
) -> FloatArray:
    """Scores of an induced order, the larger the farther from the other samples.

    Parameters
    ----------
    order : str
        One of :data:`INDUCED_ORDERS`.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Samples; their Gram matrix if `is_gram`.
    mass : ndarray of shape (n_samples,) or None
        Positive sample weights, None for all 1.
    options : OrderOptions
        Parameters of the orders.
    is_gram : bool, default=False
        Whether X is a Gram matrix; distances are then those in the space of the kernel.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
    """
    copies = np.ones(X.shape[0]) if mass is None else mass
    return _SCORES[order](_Geometry(X, copies, is_gram), options)
