"""Solutions along a grid of C (and alpha) on one Gram matrix, each started from its neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owasvm.costs import Costs
from owasvm.distinct import DistinctSet
from owasvm.grouping import assign_costs
from owasvm.kernels import Kernel, KernelFunction
from owasvm.preparation import TrainingSet
from owasvm.problem import OWAProblem
from owasvm.samples import CACHE_SIZE, prepare
from owasvm.solution import Solution
from owasvm.solvers import Callback, solve
from owasvm.weights import Quantifier, is_family

FloatArray = NDArray[np.float64]

__all__ = ["DEFAULT_CS", "OWAPath", "fit_path", "iterate_path"]

#: The grid of the paper, 2^-7 to 2^7.
DEFAULT_CS: tuple[float, ...] = tuple(2.0**exponent for exponent in range(-7, 8))


@dataclass(frozen=True, eq=False)
class OWAPath:
    """Solutions over a grid, first axis alpha, second axis C.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Shape parameters of the weights, as given; NaN where the family takes none.
    Cs : ndarray of shape (n_Cs,)
        Values of C, as given.
    solutions : tuple of tuple of Solution
        ``solutions[i][j]`` belongs to ``alphas[i]`` and ``Cs[j]``.
    classes : ndarray of shape (2,)
        The two labels; the second is the positive class of the solutions.
    """

    alphas: FloatArray
    Cs: FloatArray
    # All arrays of all solutions would fill screens.
    solutions: tuple[tuple[Solution, ...], ...] = field(repr=False)
    classes: NDArray[Any]

    def _collect(self, name: str) -> FloatArray:
        return np.array([[getattr(s, name) for s in row] for row in self.solutions])

    @property
    def objectives(self) -> FloatArray:
        """Objectives, shape (n_alphas, n_Cs)."""
        return self._collect("objective")

    @property
    def lower_bounds(self) -> FloatArray:
        """Proven lower bounds, shape (n_alphas, n_Cs)."""
        return self._collect("lower_bound")

    @property
    def gaps(self) -> FloatArray:
        """Relative gaps, shape (n_alphas, n_Cs)."""
        return self._collect("gap")

    @property
    def intercepts(self) -> FloatArray:
        """Intercepts, shape (n_alphas, n_Cs)."""
        return self._collect("intercept")

    @property
    def duals(self) -> FloatArray:
        """Dual variables ``a_i >= 0``, shape (n_alphas, n_Cs, n_samples)."""
        return np.array([[s.dual for s in row] for row in self.solutions])

    @property
    def n_iters(self) -> FloatArray:
        """Iterations, shape (n_alphas, n_Cs)."""
        return self._collect("n_iter")


def fit_path(
    X: Any,
    y: ArrayLike,
    Cs: ArrayLike = DEFAULT_CS,
    *,
    weights: str | Quantifier | ArrayLike = "basic",
    alphas: float | Sequence[float] | None = 0.6,
    kernel: str | KernelFunction = "rbf",
    degree: float = 3,
    gamma: str | float = "scale",
    coef0: float = 0.0,
    cache_size: float = CACHE_SIZE,
    loss: str = "hinge",
    ranks: str = "all",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> OWAPath:
    r"""Solve OWA-SVMs over a grid of C and alpha on one Gram matrix.

    For every pair the objective is
    :math:`\tfrac12 |w|^2 + C \sum_k \lambda_k(\alpha)\, \xi_{(k)}`. Each problem starts from the
    solution for its neighbour: C runs upwards, and the smallest C of an alpha starts from the one
    of the alpha before. The solutions are the same as those of separate fits, within `tol`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples, or the Gram matrix for ``kernel="precomputed"``. With
        ``kernel="linear"`` and more samples than features no Gram matrix is formed.
    y : array-like of shape (n_samples,)
        Two classes.
    Cs : array-like of shape (n_Cs,), default=DEFAULT_CS
        Positive values of C.
    weights : str, callable or array-like of shape (n_samples,), default="basic"
        As in :class:`owasvm.OWASVC`.
    alphas : float, sequence of float or None, default=0.6
        Shape parameters of a named family.
    kernel, degree, gamma, coef0, cache_size, loss, ranks
        As in :class:`owasvm.OWASVC`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Positive weights; a whole number equals that many copies.
    groups : array-like of shape (n_samples,) or None, default=None
        Labels of groups within which deviations are ranked, see :meth:`owasvm.OWASVC.fit`.
    tol, max_iter, time_limit, callback
        For each problem, as in :func:`owasvm.solvers.solve`.

    Returns
    -------
    path : OWAPath

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.path import fit_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    >>> path = fit_path(X, y, Cs=[0.1, 1.0, 10.0], alphas=[0.4, 0.8])
    >>> path.objectives.shape, bool(path.gaps.max() <= 1e-6)
    ((2, 3), True)
    """
    grid = np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"Cs must be a list of positive numbers, got shape {grid.shape}.")
    shapes: list[float | None] = [None]
    if alphas is not None:
        shapes = np.atleast_1d(np.asarray(alphas, dtype=np.float64)).tolist()
    training = TrainingSet.of(X, y, sample_weight, groups=groups)

    def charge(C: float, alpha: float | None) -> Costs:
        signs = training.binary_signs("fit_path")
        return assign_costs(
            signs, weights, alpha, C, training.mass, ranks=ranks, groups=training.groups
        )

    distinct = DistinctSet(training)
    pairwise = kernel == "precomputed"
    if not all(charge(float(grid[0]), alpha).convex for alpha in shapes):
        distinct = DistinctSet.of(training, pairwise=pairwise, merge=is_family(weights))
    elif is_family(weights) and kernel != "linear":
        distinct = DistinctSet.without_copies(training, pairwise=pairwise)
    training = distinct.training
    resolved = Kernel.resolve(kernel, gamma, degree, coef0, training.X, training.mass)
    samples = prepare(training.X, resolved, cache_size=cache_size)

    def problem(C: float, alpha: float | None) -> OWAProblem:
        signs = training.binary_signs("fit_path")
        return OWAProblem(signs, charge(C, alpha), samples=samples, loss=loss)

    settings = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback}
    upwards = np.argsort(grid, kind="stable")
    rows = []
    start: Solution | None = None
    for alpha in shapes:
        first = problem(float(grid[upwards[0]]), alpha)
        problems = [first]
        for C in grid[upwards[1:]].tolist():
            problems.append(first.with_C(C) if first.can_scale else problem(C, alpha))
        row = list(iterate_path(problems, start, **settings))
        start = row[0]
        given = [
            distinct.as_given(one.as_given(solution))
            for one, solution in zip(problems, row, strict=True)
        ]
        rows.append(tuple(given[k] for k in np.argsort(upwards)))
    return OWAPath(
        alphas=np.array([np.nan if alpha is None else alpha for alpha in shapes]),
        Cs=grid,
        solutions=tuple(rows),
        classes=training.classes,
    )


def iterate_path(
    problems: Iterator[OWAProblem] | Sequence[OWAProblem],
    start: Solution | None = None,
    **settings: Any,
) -> Iterator[Solution]:
    """Solve problems on the same samples one after the other, each from the solution before.

    Parameters
    ----------
    problems : iterable of OWAProblem
        With the same labels and samples.
    start : Solution or None, default=None
        Where the first one starts.
    **settings
        Of :func:`owasvm.solvers.solve`.

    Yields
    ------
    solution : Solution

    Raises
    ------
    Interrupted
        Ctrl-C: a KeyboardInterrupt whose ``solution`` is the best point of the problem at hand.
    """
    for problem in problems:
        start = solve(problem, warm_start=start, in_series=True, **settings)
        yield start
