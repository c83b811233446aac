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
:mod:`owasvm.models.convex`               from a convex model to a judged solution
:mod:`owasvm.models.backends`             the solvers behind them
========================================  =====================================================

Deviations are sorted in ascending order and ``weights[k]`` meets the k-th smallest; non-decreasing
weights are the convex case. These models are for study and for checking: the convex ones have n^2
rows, the others n^2 binary variables. The solvers of :mod:`owasvm.solvers` are orders of
magnitude faster.

Importing this package imports none of the solvers.
"""

from owasvm.models.backends import BackendError, BackendInfo, MissingBackendError, available

__all__ = ["BackendError", "BackendInfo", "MissingBackendError", "available"]
