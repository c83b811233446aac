"""The exact linear OWA-SVM, from features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import safe_sparse_dot

from owasvm.estimators._base import BinaryFit, IntArray
from owasvm.estimators._dask import map_decisions, validate_partitions
from owasvm.estimators._exact import ExactOWAClassifier
from owasvm.kernels import Kernel
from owasvm.preparation import TrainingSet
from owasvm.progress import Watcher
from owasvm.samples import Samples, prepare
from owasvm.samples.partitions import is_dask
from owasvm.weights import Quantifier

FloatArray = NDArray[np.float64]


class LinearOWASVC(ExactOWAClassifier):
    r"""Exact linear support vector machine with rank-weighted hinge deviations.

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + C \sum_{k=1}^n \lambda_k\, \xi_{(k)}, \qquad
        \xi_i = \max\bigl(0,\ 1 - y_i (\langle w, x_i \rangle + b)\bigr),

    where :math:`\xi_{(1)} \le \dots \le \xi_{(n)}` are the deviations in ascending order and
    :math:`\lambda_k`, ``weights[k]``, meets the k-th smallest one. Non-decreasing weights make
    the problem convex; it is then solved to a proven relative gap `tol`.

    It is the problem of ``OWASVC(kernel="linear")``, solved from the features without a Gram
    matrix: for many samples, dense or sparse.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the loss. The loss is a sum over the samples with weights of mean 1, so
        ``weights="uniform"`` is ``SVC(kernel="linear")`` with the same `C`.
    weights : str, callable or array-like of shape (n_samples,), default="basic"
        Rank weights in ascending order of deviation, scaled to mean 1: ``"uniform"``,
        ``"basic"``, ``"quadratic"``, ``"exponential"``, ``"trigonometric"``,
        ``"superquantile"``, ``"trimmed"``, ``"max-entropy"`` or ``"olympic"`` with shape `alpha`
        (see :func:`owasvm.weights.owa_weights`); a callable quantifier ``Q(r)`` on [0, 1]; or an
        array, ``weights[k]`` for the k-th smallest deviation.
    alpha : float, default=0.6
        Shape of a named family.
    ranks : {"all", "class"}, default="all"
        Among whom a deviation is ranked: all samples, or those of its own class, each class with
        the weights of the family for its own size, of mean 1 (see Notes). Weights given as an
        array need ``"all"``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a deviation :math:`\xi` costs before it is weighted by its rank: :math:`\xi` itself,
        or :math:`\xi^2`, for weights that never fall.
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
        all cores. Two classes are one problem.
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
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when X has names that are all strings.
    coef_ : ndarray of shape (1, n_features)
        w.
    intercept_ : ndarray of shape (1,)
        b; the midpoint where the optimal intercepts form an interval.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients :math:`y_i a_i` of the support vectors, :math:`w = \sum_i y_i a_i x_i`.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors among those given to ``fit``, ascending.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
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
    OWASVC : Any kernel.
    TwoStepOWASVC : The heuristic that ranks the deviations of a classical SVM.
    sklearn.svm.LinearSVC : Equal weights, but a penalised intercept.

    Notes
    -----
    The intercept is never penalised. ``sklearn.svm.LinearSVC`` does penalise it, so with uniform
    weights this class agrees with ``SVC(kernel="linear")`` and not with ``LinearSVC``.

    More than two classes are handled one against the rest. The first axis of ``coef_``,
    ``intercept_``, ``dual_coef_``, ``owa_weights_``, ``deviations_`` and ``sample_costs_`` then
    has one row per class, ``objective_``, ``lower_bound_``, ``gap_``, ``status_`` and ``n_iter_``
    are arrays, and ``solution_`` and ``outliers_`` are lists with one entry per class.
    ``support_`` holds every sample that supports any of the classes; ``dual_coef_`` is 0 where it
    does not support the class of that row, and ``n_support_`` counts the support vectors by their
    own class.

    With ``ranks="class"`` the loss is the sum over the two classes of
    :math:`C \sum_k \lambda^g_k\, \xi^g_{(k)}`, the deviations of class g sorted apart; of several
    classes each is ranked apart from the rest, see :class:`OWASVC`.

    With weights that fall neither the order of the rows nor a writing as copies or as sample
    weights matters: a search is handed distinct samples in an order of their own. Of equal rows
    with equal labels the first then has the coefficients of all.

    An iteration costs a sort, O(n_samples log n_samples), and products with X.

    ``fit`` also takes Dask arrays (of dense or sparse blocks) and DataFrames, for data larger than
    memory; labels and sample weights may be lazy as well. The data stay where they are: a step
    makes two passes over the partitions and brings back vectors of length n_samples and systems
    of the size of the features; ``deviations_`` and ``sample_costs_`` are such vectors, arrays of
    numpy in the order of the rows. Weights that fall are left to ``"dca"`` then. ``predict`` and
    ``decision_function`` of Dask collections are lazy Dask arrays.

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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from owasvm import LinearOWASVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LinearOWASVC(weights="basic", alpha=0.6))
    >>> clf = model.fit(X, y)[-1]
    >>> clf.status_, clf.coef_.shape, bool(clf.gap_ <= 1e-6)
    ('optimal', (1, 30), True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        weights: str | Quantifier | ArrayLike = "basic",
        alpha: float | None = 0.6,
        ranks: str = "all",
        loss: str = "hinge",
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
        self.loss = loss
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

    _needed: ClassVar[tuple[str, ...]] = (*ExactOWAClassifier._needed, "coef_")
    # The solver reads single precision as it is, and computes in double precision.
    _dtypes: ClassVar[list[type]] = [np.float64, np.float32]

    def decision_function(self, X: Any) -> Any:
        """Decision values of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Samples; of Dask an array or a DataFrame.

        Returns
        -------
        values : ndarray or dask.array.Array of shape (n_samples,) or (n_samples, n_classes)
            With two classes positive values speak for ``classes_[1]``; with more, the column of
            the largest value is the predicted class. Lazy, partition by partition, for samples
            of Dask.
        """
        return map_decisions(self, X) if is_dask(X) else super().decision_function(X)

    def predict(self, X: Any) -> Any:
        """Predict the class of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Samples; of Dask an array or a DataFrame.

        Returns
        -------
        labels : ndarray or dask.array.Array of shape (n_samples,)
            Labels out of ``classes_``; with two classes a decision value of exactly 0 gives
            ``classes_[0]``. Lazy, partition by partition, for samples of Dask.
        """
        return map_decisions(self, X, self.classes_) if is_dask(X) else super().predict(X)

    def _validate_training(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, ArrayLike, ArrayLike | None]:
        if is_dask(X):
            return validate_partitions(self, X, y, sample_weight)
        return super()._validate_training(X, y, sample_weight)

    def _prepare(self, X: Any) -> Samples:
        return prepare(X, Kernel("linear"), primal=True)

    def _store(self, training: TrainingSet, fits: list[BinaryFit]) -> None:
        super()._store(training, fits)
        self.coef_ = np.stack([fit.weight for fit in fits if fit.weight is not None])

    def _store_support(self, training: TrainingSet, support: IntArray) -> None:
        """Nothing: the coefficients suffice."""

    def _scores(self, X: Any) -> FloatArray:
        return safe_sparse_dot(X, self.coef_.T, dense_output=True)
