"""The paper's models as printed, readable next to their equations, solved by outside solvers.

========================================  =====================================================
module                                    model
========================================  =====================================================
:mod:`owasvm.models.c_owa_svm`            C-OWA-SVM, convex, primal (``solver="assignment"``)
:mod:`owasvm.models.ot_c_owa_svm`         OT-C-OWA-SVM, convex (``solver="ogryczak-tamir"``)
:mod:`owasvm.models.c_owa_svm_dual`       C-OWA-SVM_K, convex, dual (``"assignment-dual"``)
:mod:`owasvm.models.c_owa_svm_compact`    the same without n^2 variables (ours)
:mod:`owasvm.models.nc_owa_svm`           NC-OWA-SVM, weights in any order (``solver="miqp"``)
:mod:`owasvm.models.nc_owa_svm_kernel`    NC-OWA-SVM_D and NC-OWA-SVM_K (``solver="miqp"``)
:mod:`owasvm.models.nc_owa_svm_fixed`     NC-OWA-SVM(z) and its dual NC-OWA-SVM_D(z)
:mod:`owasvm.models.bounds`               UB_M, UB_b, LB_b, and tighter bounds (ours)
:mod:`owasvm.models.algorithm1`           Algorithm 1, step by step
:mod:`owasvm.models.backends`             the solvers behind them
========================================  =====================================================

Deviations are sorted in ascending order and ``weights[k]`` meets the k-th smallest; non-decreasing
weights are the convex case. These models are for study and for checking: the convex ones have n^2
rows, the others n^2 binary variables. The solvers of :mod:`owasvm.solvers` are orders of
magnitude faster.

Importing this package imports none of the solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from owasvm.models.backends import BackendError, BackendInfo, MissingBackendError, available

if TYPE_CHECKING:
    from owasvm.problem import OWAProblem
    from owasvm.solution import Solution

__all__ = [
    "SOLVERS",
    "BackendError",
    "BackendInfo",
    "MissingBackendError",
    "available",
]

Solver = Callable[..., "Solution"]


def _convex(module: str) -> Solver:
    def solve(
        problem: OWAProblem,
        *,
        tol: float = 1e-8,
        mip_gap: float = 1e-4,  # noqa: ARG001
        time_limit: float | None = None,
        max_iter: int | None = None,  # noqa: ARG001
        warm_start: Solution | None = None,  # noqa: ARG001
        verbose: int = 0,
        callback: Callable[[dict[str, float]], bool | None] | None = None,  # noqa: ARG001
        random_state: Any = None,  # noqa: ARG001
        options: Mapping[str, Any] | None = None,
    ) -> Solution:
        """Solve a convex model.

        `options` are ``backend`` and settings of the back-end. The back-ends keep their own
        iteration limits, take no start and report no progress, so `max_iter`, `warm_start` and
        `callback` have no effect.
        """
        settings = dict(options or {})
        backend = settings.pop("backend", None)
        return import_module(f"owasvm.models.{module}").solve(
            problem,
            backend=backend,
            time_limit=time_limit,
            tol=tol,
            verbose=verbose,
            options=settings,
        )

    return solve


def _mixed_integer(
    problem: OWAProblem,
    *,
    tol: float = 1e-8,
    mip_gap: float = 1e-4,
    time_limit: float | None = None,
    max_iter: int | None = None,  # noqa: ARG001
    warm_start: Solution | None = None,
    verbose: int = 0,
    callback: Callable[[dict[str, float]], bool | None] | None = None,
    random_state: Any = None,  # noqa: ARG001
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve NC-OWA-SVM (features) or NC-OWA-SVM_K (Gram matrix) by Algorithm 1.

    `options` are ``backend``, ``strengthened``, ``formulation``, ``max_binaries``,
    ``continuous_backend``, ``threads`` and settings of the back-end. `max_iter` has no effect: a
    search tree is limited by `time_limit`.
    """
    settings = dict(options or {})
    return import_module("owasvm.models.algorithm1").run(
        problem,
        formulation=settings.pop("formulation", None),
        backend=settings.pop("backend", None),
        strengthened=bool(settings.pop("strengthened", True)),
        time_limit=time_limit,
        mip_gap=mip_gap,
        # The estimators' tol is a gap; the continuous problems inside need a residual.
        tol=min(tol, 1e-8),
        warm_start=warm_start,
        verbose=verbose,
        callback=callback,
        options=settings,
    )


SOLVERS: dict[str, Solver] = {
    "assignment": _convex("c_owa_svm"),
    "ogryczak-tamir": _convex("ot_c_owa_svm"),
    "assignment-dual": _convex("c_owa_svm_dual"),
    "miqp": _mixed_integer,
}
"""Solver keywords of the estimators: name to function."""
