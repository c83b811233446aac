"""The exact OWA-SVM with any kernel."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from owasvm.estimators._base import KernelOWAClassifier
from owasvm.estimators._exact import ExactOWAClassifier
from owasvm.kernels import KernelFunction
from owasvm.progress import Watcher
from owasvm.samples import Samples, prepare
from owasvm.weights import Quantifier

FloatArray = NDArray[np.float64]


class OWASVC(KernelOWAClassifier, ExactOWAClassifier):
    r"""Exact support vector machine with rank-weighted hinge deviations.

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + C \sum_{k=1}^n \lambda_k\, \xi_{(k)}, \qquad
        \xi_i = \max\bigl(0,\ 1 - y_i (\langle w, \phi(x_i) \rangle + b)\bigr),

    where :math:`\xi_{(1)} \le \dots \le \xi_{(n)}` are the deviations in ascending order and
    :math:`\lambda_k`, ``weights[k]``, meets the k-th smallest one. The ranks are those of the
    deviations at the solution itself: this is the ordered weighted average (OWA) of the
    deviations, not a reweighting by the order of another classifier.

    Non-decreasing weights make the problem convex. It is then solved to a proven relative gap
    `tol`. Every fit reports its objective and a lower bound that no classifier can beat.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the loss. The loss is a sum over the samples with weights of mean 1, so
        ``weights="uniform"`` is the classical SVM with the same `C`.
    weights : str, callable or array-like of shape (n_samples,), default="basic"
        Rank weights in ascending order of deviation, scaled to mean 1:

        * ``"uniform"``, ``"basic"``, ``"quadratic"``, ``"exponential"``, ``"trigonometric"``:
          the quantifiers of [1]_ with shape `alpha`; ``"superquantile"``: only the worst share
          `alpha` of the samples counts; ``"trimmed"``: the worst share `alpha` is ignored;
          ``"max-entropy"``: orness `alpha`; ``"olympic"``: only the middle share `alpha` counts
          (see :func:`owasvm.weights.owa_weights`);
        * a callable quantifier ``Q(r)`` on [0, 1];
        * an array, ``weights[k]`` for the k-th smallest deviation.
    alpha : float, default=0.6
        Shape of a named family.
    ranks : {"all", "class"}, default="all"
        Among whom a deviation is ranked: all samples, or those of its own class, each class with
        the weights of the family for its own size, of mean 1 (see Notes). Weights given as an
        array need ``"all"``.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel, see :mod:`owasvm.kernels`. It must be positive semi-definite, which
        ``"sigmoid"`` is for some parameters only. A callable takes two sets of samples and
        returns the matrix of kernel values. With ``"precomputed"`` ``fit`` takes the Gram
        matrix of the training samples.
    degree : int, default=3
        Degree of ``"poly"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of ``"rbf"``, ``"poly"`` and ``"sigmoid"``: ``"scale"`` is
        ``1 / (n_features * X.var())``, with sample weights the weighted variance; ``"auto"`` is
        ``1 / n_features``.
    coef0 : float, default=0.0
        Constant of ``"poly"`` and ``"sigmoid"``.
    cache_size : float, default=200
        Megabytes (10^6 bytes) that kernel values may take. The Gram matrix is formed within it,
        with 200 MB up to n_samples = 5,000; beyond it kernel values are computed in blocks when
        they are needed. The solution is the same within `tol`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a deviation :math:`\xi` costs before it is weighted by its rank: :math:`\xi` itself,
        or :math:`\xi^2`, for weights that never fall.
    device : str, default="cpu"
        Where kernel values are held and Newton systems are solved: ``"cuda"`` or another device
        of torch with double precision (extra ``gpu``). What is learned is stored as arrays of
        numpy, so prediction needs neither torch nor the device. ``kernel="linear"`` with no more
        features than samples does not need it and stays on the CPU.
    solver : str, default="auto"
        ``"auto"``, or a solver of :func:`owasvm.solvers.solve`. ``"newton"``, the choice of
        ``"auto"`` for weights that never fall, is the fast one for convex problems.
        ``"branch-and-bound"``, its choice for other weights where a proof is in reach, proves
        global optimality to `mip_gap`; ``"dca"``, its choice elsewhere, searches for a good local
        solution, and still reports a bound on the global optimum.
    solver_options : dict, default=None
        Options of the solver: ``max_nodes`` of ``"branch-and-bound"`` (default 1000), ``n_init``
        of ``"dca"`` (default 13): its descents, which never end higher if there are more of them;
        ``backend`` and others of the paper's models. Unknown ones are refused.
    tol : float, default=1e-6
        Relative duality gap of the convex problem at which to stop,
        ``(objective - lower bound) / max(1, |objective|)``.
    mip_gap : float, default=1e-4
        The same figure for general weights, where it bounds the distance to the global optimum.
    time_limit : float, default=None
        Seconds for each binary problem; afterwards the best point found is kept, with a
        warning.
    max_iter : int, default=1000
        Newton steps at most, in every convex problem that is solved on the way.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights by class. ``"balanced"`` gives every class the same total
        weight.
    warm_start : bool, default=False
        Start from the previous solution when the number of samples is the same.
    n_jobs : int or None, default=None
        Classes that are solved for at the same time, as in scikit-learn: None stands for 1, -1 for
        all cores. Two classes are one problem. All share one Gram matrix.
    verbose : int, default=0
        1 writes a line every few seconds, 2 one for every step, through :mod:`logging`; on a
        terminal with rich installed 1 keeps one live line.
    callback : callable, "record" or None, default=None
        ``callback(record)`` is called with a :class:`owasvm.progress.ProgressRecord` at every
        step; returning False stops the fit, which keeps the best point found and its gap, with
        status "interrupted". All records are kept in ``solution_.history``; "record" keeps them
        and calls nobody.
    random_state : int, RandomState instance or None, default=None
        Seeds the starts of descents for weights that fall; None takes the same ones every time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of the samples of positive weight. Of two classes the second is +1.
    n_features_in_ : int
        Number of features, or of training samples with ``kernel="precomputed"``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when X has names that are all strings.
    coef_ : ndarray of shape (1, n_features)
        w, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (1,)
        b; the midpoint where the optimal intercepts form an interval.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients :math:`y_i a_i` of the support vectors.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors among those given to ``fit``, ascending.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty with ``kernel="precomputed"``.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    gamma_ : float
        The number `gamma` stands for; 1 with ``kernel="precomputed"``, which has none.
    owa_weights_ : ndarray of shape (n_samples,), or list of ndarray
        The weights :math:`\lambda`, ascending order of deviation. Samples of weight zero do
        not count; with sample weights the weights at the solution, which sum to the total
        sample weight. With ``ranks="class"`` a list, the weights of ``classes_[0]`` and those
        of ``classes_[1]``; with `groups` in ``fit`` one array per group.
    groups_ : ndarray of shape (n_groups,)
        Sorted labels of the groups. Only after a ``fit`` with `groups`.
    deviations_ : ndarray of shape (n_rows,)
        Hinge deviations of the rows given to ``fit``; NaN for rows of weight zero.
    sample_costs_ : ndarray of shape (n_rows,)
        What each row given to ``fit`` pays per unit of its deviation (of its squared deviation
        with ``loss="squared_hinge"``): `C` times the rank weight that it meets at the solution,
        times its sample weight. Rows whose deviations tie share the mean, in proportion to their
        sample weights. The costs sum to `C` times the total sample weight, and with the
        deviations to the loss. NaN for rows of weight zero.
    outliers_ : ndarray of shape (n_outliers,)
        Rows that weights ending in zeros (``"trimmed"``, ``"olympic"``, arrays) ignore: those of
        cost 0 with larger deviations than all that pay. Empty for other weights. A row that ties
        with one that pays is not among them.
    convex_ : bool
        Whether the weights are non-decreasing.
    objective_, lower_bound_, gap_ : float
        Objective of the classifier, proven lower bound of the optimum, their relative distance.
    status_ : str
        ``"optimal"`` when the target was reached; ``"local"`` when a search ended by itself
        before, and where a proof is not in reach; ``"rounding_limit"`` when double precision
        cannot prove it for these data; ``"indefinite"`` when the kernel has no bound at all; else
        what stopped the solver: ``"time_limit"``, ``"iteration_limit"``, ``"node_limit"``,
        ``"backend_limit"`` or ``"interrupted"``.
    n_iter_ : int
        Newton steps of ``"newton"``, descent steps of ``"dca"``, nodes of ``"branch-and-bound"``,
        iterations of a back-end.
    fit_time_ : float
        Seconds spent in ``fit``.
    solution_ : owasvm.solution.Solution
        What the solver returned.

    See Also
    --------
    LinearOWASVC : Linear models from features, for many samples.
    TwoStepOWASVC : The heuristic that ranks the deviations of a classical SVM.
    sklearn.svm.SVC : Uniform weights.

    Notes
    -----
    More than two classes are handled one against the rest. The first axis of ``coef_``,
    ``intercept_``, ``dual_coef_``, ``owa_weights_``, ``deviations_`` and ``sample_costs_`` then
    has one row per class, ``objective_``, ``lower_bound_``, ``gap_``, ``status_`` and ``n_iter_``
    are arrays, and ``solution_`` and ``outliers_`` are lists with one entry per class.
    ``support_`` holds every sample that supports any of the classes; ``dual_coef_`` is 0 where it
    does not support the class of that row, and ``n_support_`` counts the support vectors by their
    own class.

    The Gram matrix, 8 n_samples^2 bytes, is formed within `cache_size` and not beyond it: memory
    then stays at `cache_size`, a few vectors of length n_samples and a working block, and the time
    grows at least with n_samples^2. Kernels of which only all values tell whether they are
    positive semi-definite (a callable, ``"sigmoid"``, ``"poly"`` with a negative `coef0`) have
    their Gram matrix formed all the same, as long as the machine can hold it. Weights that fall
    somewhere are left to ``"dca"`` beyond `cache_size`. For linear models with many samples use
    :class:`LinearOWASVC`. On a `device` too small for the Gram matrix the values of a Gaussian
    kernel are computed anew for every product; `cache_size` does not count there.

    With ``ranks="class"`` the loss is the sum over the two classes of
    :math:`C \sum_k \lambda^g_k\, \xi^g_{(k)}`, where :math:`\xi^g_{(1)} \le \xi^g_{(2)} \le
    \dots` are the deviations of class g alone and :math:`\lambda^g` are the weights for its
    number of samples. No class can be trimmed away, and a superquantile looks at the worst
    share of each class. Of several classes each is ranked apart from the rest, and
    ``owa_weights_`` is a list with one list per class: the weights of the rest, those of the
    class.

    With weights that fall neither the order of the rows nor a writing as copies or as sample
    weights matters: a search is handed distinct samples in an order of their own. Of equal rows
    with equal labels the first then has the coefficients of all.

    With weights that never fall equal rows with equal labels are solved for as one sample, where
    more than a fifth of the rows are copies of others, and share its coefficient.

    The intercept is not penalised.

    References
    ----------
    .. [1] A. Marín, L. I. Martínez-Merino, J. Puerto, A. M. Rodríguez-Chía, "The soft-margin
       Support Vector Machine with ordered weighted average", Knowledge-Based Systems 237
       (2022) 107705. doi:10.1016/j.knosys.2021.107705
    .. [2] S. Maldonado, J. Merigó, J. Miranda, "Redefining support vector machines with the
       ordered weighted average", Knowledge-Based Systems 148 (2018) 41-46.
       doi:10.1016/j.knosys.2018.02.025

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC
    >>> X, y = make_moons(100, noise=0.25, random_state=0)
    >>> clf = OWASVC(C=1.0, weights="superquantile", alpha=0.3).fit(X, y)
    >>> clf.status_, clf.convex_, bool(clf.gap_ <= 1e-6)
    ('optimal', True, True)
    >>> clf.score(X, y)
    0.9...

    No classifier has a smaller objective than this one:

    >>> bool(clf.objective_ - clf.lower_bound_ <= 1e-6 * clf.objective_)
    True
    """

    _merges_copies: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ExactOWAClassifier._parameter_constraints,
        **KernelOWAClassifier._parameter_constraints,
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "device": [str],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        weights: str | Quantifier | ArrayLike = "basic",
        alpha: float | None = 0.6,
        ranks: str = "all",
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        cache_size: float = 200,
        loss: str = "hinge",
        device: str = "cpu",
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-6,
        mip_gap: float = 1e-4,
        time_limit: float | None = None,
        max_iter: int = 1000,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Watcher | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.weights = weights
        self.alpha = alpha
        self.ranks = ranks
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.cache_size = cache_size
        self.loss = loss
        self.device = device
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.mip_gap = mip_gap
        self.time_limit = time_limit
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def _prepare(self, X: Any) -> Samples:
        return prepare(X, self._kernel, cache_size=float(self.cache_size), device=self.device)
