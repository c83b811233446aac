"""The fits: one cell from the state its predecessor left.

======== =======================================================================================
l2       LIBSVM through scikit-learn at its own tolerance, as the paper did it
two-step that SVM ranks the samples by ``1 - y f(x)``, not clipped, largest first; the SVM with
         the weights of these ranks is then solved to the gap of exact models
exact    :mod:`owasvm.solvers`, started from the solution for the C before
======== =======================================================================================

Samples on the margin of the first SVM are ranked by what the tolerance of LIBSVM leaves of their
deviations. That is noise, and :class:`owasvm.TwoStepOWASVC` lets such samples tie instead, but the
printed results come about this way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import SVC

from owasvm.certificate import certificate, objective_of_dual
from owasvm.experiments.folds import Fold, prepare_fold
from owasvm.experiments.paper import is_two_step
from owasvm.experiments.plan import ORDER, Chain, FitOptions
from owasvm.experiments.protocol import Data, evaluate
from owasvm.experiments.states import pack, pack_solution, unpack, unpack_solution
from owasvm.problem import OwnCosts, RankCosts
from owasvm.solution import Solution, Status
from owasvm.solvers import solve
from owasvm.weights import owa_weights

__all__ = ["CellResult", "compute", "parts"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Orders are compared at high accuracy: positions change when deviations hardly do.
_ORDER_TOL = 1e-9
# The second step: at 1e-6 a test sample of australian changes sides, which 1e-7 to 1e-10 agree on.
_SECOND_STEP_TOL = 1e-8
_FIRST = "first"


class CellResult(NamedTuple):
    """A computed cell.

    Parameters
    ----------
    row : dict
        The row of the store, without versions.
    states : dict of str to bytes
        The parts of the chain's state that changed.
    """

    row: dict[str, Any]
    states: dict[str, bytes]


def parts(chain: Chain, position: int) -> tuple[str, ...]:
    """Return the parts of the chain's state that the cell at a position reads."""
    cell = chain.cell(position)
    if cell.quantifier == "":
        return ()
    return (_FIRST, _part(cell.quantifier, cell.alpha))


def _part(quantifier: str, alpha: float) -> str:
    return f"{quantifier} {alpha:g}"


def compute(
    chain: Chain,
    position: int,
    data: Data,
    options: FitOptions,
    states: Mapping[str, bytes],
) -> CellResult:
    """Compute a cell.

    Parameters
    ----------
    chain : Chain
        The chain.
    position : int
        Position of the cell along it.
    data : Data
        The dataset of the chain.
    options : FitOptions
        How to solve.
    states : mapping of str to bytes
        The state the cell before left; at least the :func:`parts` of the cell that exist.

    Returns
    -------
    result : CellResult

    Examples
    --------
    >>> from owasvm.experiments.chains import compute
    >>> from owasvm.experiments.plan import Chain, FitOptions
    >>> from owasvm.experiments.protocol import load_data
    >>> chain = Chain("wbc", "shuffled", "ex-OWA-SVM", 0.0, 0, (0.5, 1.0), (("basic", 0.6),))
    >>> first = compute(chain, 0, load_data("wbc"), FitOptions(), {})
    >>> second = compute(chain, 1, load_data("wbc"), FitOptions(), first.states)
    >>> second.row["C"], second.row["status"], second.row["correct"]
    (1.0, 'optimal', 55)
    """
    fold = prepare_fold(data, chain.folds, chain.fold, chain.width)
    if chain.model == ORDER:
        return CellResult(_order_row(chain, fold), {})
    cell = chain.cell(position)
    changed: dict[str, bytes] = {}
    if cell.quantifier == "":
        figures = _classical(fold, cell.C)
    elif is_two_step(cell.model):
        is_first = position % len(chain.weights) == 0
        figures, changed = _two_step(fold, cell.C, cell.quantifier, cell.alpha, states, is_first)
    else:
        figures, changed = _exact(fold, cell.C, cell.quantifier, cell.alpha, options, states)
    return CellResult({**cell._asdict(), **figures}, changed)


# -- classical --------------------------------------------------------------------------------


class _Svm(NamedTuple):
    """A classical SVM: what is left of an SVC, signed coefficients of all training samples."""

    signed_dual: FloatArray
    intercept: float
    coef: FloatArray | None
    status: Status
    n_iter: int
    n_support: int
    seconds: float

    def values(self, samples: FloatArray) -> FloatArray:
        """Decision values from kernel values with the training samples, or from features."""
        return samples @ (self.signed_dual if self.coef is None else self.coef) + self.intercept


def _libsvm(fold: Fold, C: float) -> _Svm:
    begun = time.process_time()
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svc = SVC(C=C, kernel="precomputed" if fold.is_kernel else "linear")
        svc.fit(fold.train, fold.y_train)
    seconds = time.process_time() - begun
    signed_dual = np.zeros(fold.y_train.size)
    signed_dual[svc.support_] = svc.dual_coef_[0]
    return _Svm(
        signed_dual,
        float(svc.intercept_[0]),
        None if fold.is_kernel else svc.coef_[0],
        Status.OPTIMAL if svc.fit_status_ == 0 else Status.ITERATION_LIMIT,
        int(svc.n_iter_.sum()),
        int(svc.support_.size),
        seconds,
    )


def _classical(fold: Fold, C: float) -> dict[str, Any]:
    svm = _libsvm(fold, C)
    found = certificate(
        None if fold.is_kernel else fold.train,
        fold.y_train,
        "uniform",
        C,
        fold.y_train * svm.signed_dual,
        svm.intercept,
        gram=fold.train if fold.is_kernel else None,
        alpha=None,
    )
    return {
        **evaluate(fold.y_test, svm.values(fold.test)),
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "status": str(svm.status),
        "solver": "libsvm",
        "convex": 1,
        "n_iter": svm.n_iter,
        "n_support": svm.n_support,
        "fit_time": svm.seconds,
        "first_time": 0.0,
    }


# -- exact ------------------------------------------------------------------------------------


def _figures(solution: Solution) -> dict[str, Any]:
    """The part of a row that describes a solution."""
    return {
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "status": str(solution.status),
        "solver": solution.solver,
        "n_iter": solution.n_iter,
        "n_support": int(np.count_nonzero(solution.dual)),
    }


def _exact(
    fold: Fold,
    C: float,
    quantifier: str,
    alpha: float,
    options: FitOptions,
    states: Mapping[str, bytes],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    part = _part(quantifier, alpha)
    start = unpack_solution(states.get(part))
    begun = time.process_time()
    costs = RankCosts(fold.y_train.size, quantifier, alpha, C)
    solution = solve(
        fold.problem(costs),
        solver="newton" if costs.convex else options.general,
        tol=options.tol,
        mip_gap=options.mip_gap,
        time_limit=None if costs.convex else options.time_limit,
        warm_start=start,
        in_series=True,
        # One descent, as the study was planned.
        options={"n_init": 1} if not costs.convex and options.general == "dca" else None,
    )
    seconds = time.process_time() - begun
    figures = {
        **evaluate(fold.y_test, fold.test_values(solution)),
        **_figures(solution),
        "convex": int(costs.convex),
        "fit_time": seconds,
        "first_time": 0.0,
    }
    return figures, {part: pack_solution(solution)}


# -- two-step ---------------------------------------------------------------------------------


def _first_step(fold: Fold, C: float) -> tuple[IntArray, float]:
    """Samples by ``1 - y f(x)``, largest first, and the seconds of the fit."""
    svm = _libsvm(fold, C)
    return _sort_descending(1.0 - fold.y_train * svm.values(fold.train)), svm.seconds


def _sort_descending(values: FloatArray) -> IntArray:
    return np.argsort(-values, kind="stable")


def _second_step(
    fold: Fold, C: float, weights: FloatArray, order: IntArray, tol: float, start: Solution | None
) -> Solution:
    """The SVM in which every sample has the weight of its rank, for good."""
    rank_weights = np.empty(order.size)
    rank_weights[order] = weights[::-1]
    return solve(fold.problem(OwnCosts(rank_weights, C)), tol=tol, warm_start=start)


def _two_step(
    fold: Fold,
    C: float,
    quantifier: str,
    alpha: float,
    states: Mapping[str, bytes],
    is_first: bool,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    changed = {}
    if is_first:
        order, first_seconds = _first_step(fold, C)
        changed[_FIRST] = pack({"order": order.astype(np.int32), "seconds": first_seconds})
    else:
        first = unpack(states[_FIRST])
        order, first_seconds = first["order"].astype(np.int64), first["seconds"]
    part = _part(quantifier, alpha)
    start = unpack_solution(states.get(part))
    begun = time.process_time()
    weights = owa_weights(order.size, quantifier, alpha)
    solution = _second_step(fold, C, weights, order, _SECOND_STEP_TOL, start)
    seconds = time.process_time() - begun
    owa_problem = fold.problem(RankCosts(order.size, quantifier, alpha, C))
    value, _ = objective_of_dual(owa_problem, solution.dual, solution.intercept)
    figures = {
        **evaluate(fold.y_test, fold.test_values(solution)),
        **_figures(solution),
        "objective": value,
        "lower_bound": None,
        "convex": int(owa_problem.costs.convex),
        "fit_time": seconds,
        "first_time": first_seconds,
    }
    changed[part] = pack_solution(solution)
    return figures, changed


# -- orders -----------------------------------------------------------------------------------


def _order_row(chain: Chain, fold: Fold) -> dict[str, Any]:
    """How many samples keep their position in the sorted deviations, in percent."""
    ((quantifier, alpha),) = chain.weights
    C = chain.Cs[0]
    n_samples = fold.y_train.size
    weights = owa_weights(n_samples, quantifier, alpha)
    first, _ = _first_step(fold, C)
    second = _second_step(fold, C, weights, first, _ORDER_TOL, None)
    costs = RankCosts(n_samples, quantifier, alpha, C)
    exact = solve(fold.problem(costs), tol=_ORDER_TOL)
    positions = [np.argsort(first)]
    for solution in (second, exact):
        values = fold.train @ (fold.y_train * solution.dual) + solution.intercept
        positions.append(np.argsort(_sort_descending(1.0 - fold.y_train * values)))
    return {
        "dataset": chain.dataset,
        "fold": chain.fold,
        "step_two": 100.0 * float(np.mean(positions[0] == positions[1])),
        "exact": 100.0 * float(np.mean(positions[1] == positions[2])),
    }
