"""The two-step heuristic: rank the samples, then train an SVM with rank weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval, StrOptions

from owasvm.costs import Costs
from owasvm.estimators._base import (
    BinaryFit,
    KernelOWAClassifier,
    Payments,
    Samples,
    for_user,
    weights_at,
)
from owasvm.estimators._orders import INDUCED_ORDERS, OrderOptions, induced_scores
from owasvm.grouping import assign_costs, charge_by_rank, find_ignored
from owasvm.kernels import KernelFunction
from owasvm.loss import hinge_deviations
from owasvm.losses import make_loss
from owasvm.preparation import TrainingSet, take_samples
from owasvm.rounding import is_sparse
from owasvm.weights import Quantifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LARGEST_MARGIN_NOISE = 1e-2
_FALLBACK_TOLERANCES = (1e-6, 1e-3)


@dataclass(frozen=True)
class _TwoSteps:
    """What the steps of one binary problem left."""

    first: SVC | None
    second: SVC
    scores: FloatArray
    sample_weight: FloatArray
    fit: BinaryFit
    decision_values: FloatArray
    payments: Payments


class TwoStepOWASVC(KernelOWAClassifier):
    r"""Two-step OWA-SVM: rank the samples once, then train an SVM with rank weights.

    Step 1 trains a classical SVM and ranks the samples by :math:`1 - y_i f(x_i)`, not clipped
    at 0. Step 2 trains

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + C \sum_{i=1}^n c_i\, \xi_i, \qquad
              c_i = \text{mix} \cdot \lambda_{\text{rank}(i)} + (1 - \text{mix}),

    where the sample with the k-th smallest value has rank k and :math:`\lambda_k`,
    ``weights[k]``, has mean 1. This is the app-OWA-SVM of [1]_ and [2]_. The ranks are those of
    the first classifier, so the result is not the minimum of the OWA objective that
    :class:`OWASVC` computes; ``objective_`` tells how far it is. Any weights are allowed,
    non-decreasing (the convex case) or not.

    With an induced order [3]_ step 1 ranks the samples by how far they lie from the others
    instead, and no first SVM is trained.

    Both steps are solved by LIBSVM through :class:`sklearn.svm.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the loss, the same in both steps. Weights have mean 1.
    weights : str, callable or array-like of shape (n_samples,), default="basic"
        Rank weights in ascending order, scaled to mean 1: ``"uniform"``, ``"basic"``,
        ``"quadratic"``, ``"exponential"``, ``"trigonometric"``, ``"superquantile"``,
        ``"trimmed"``, ``"max-entropy"`` or ``"olympic"`` with shape `alpha` (see
        :func:`owasvm.weights.owa_weights`); a callable quantifier ``Q(r)`` on [0, 1]; or an
        array, ``weights[k]`` for the k-th smallest value.
    alpha : float, default=0.6
        Shape of a named family.
    ranks : {"all", "class"}, default="all"
        Among whom a deviation is ranked: all samples, or those of its own class, each class with
        the weights of the family for its own size, of mean 1 (see Notes). Weights given as an
        array need ``"all"``.
    order : {"deviation", "lof", "knn", "parzen", "spread", "fuzzy-dbscan"}, default="deviation"
        What the samples are ranked by; the largest value meets the last weight.

        * ``"deviation"``: :math:`1 - y_i f(x_i)` of the first SVM.
        * ``"lof"``: local outlier factor with `n_neighbors` neighbours.
        * ``"knn"``: mean distance to the `n_neighbors` nearest neighbours.
        * ``"parzen"``: minus the density of a Gaussian Parzen window of width `bandwidth`.
        * ``"spread"``: sum over the features of the absolute distance to their mean.
        * ``"fuzzy-dbscan"``: one minus the membership in a fuzzy DBSCAN cluster with `eps` and
          `min_samples`.

        The last five look at the samples alone, all classes together, with Euclidean distances
        (with ``kernel="precomputed"`` those in the space of the kernel, ``"spread"`` excepted).
        The farthest outlier comes last, so that increasing weights stress outliers and
        decreasing ones (``"trimmed"``, or ``"basic"`` with `alpha` above 1) play them down.
    mix : float, default=1.0
        Share of the rank weights in [0, 1] (OWAWA): 1 uses them alone, 0 gives every sample the
        weight 1, which is the classical SVM.
    n_neighbors : int, default=10
        Neighbours of ``"lof"`` and ``"knn"``, and of the default `bandwidth` and `eps`.
    bandwidth : float, default=None
        Standard deviation of the window of ``"parzen"``. None takes the median distance of the
        samples to their `n_neighbors`-th neighbour.
    eps : float, default=None
        Radius of the neighbourhoods of ``"fuzzy-dbscan"``. None takes the median distance of the
        samples to their `n_neighbors`-th neighbour.
    min_samples : tuple of two int, default=(5, 20)
        With ``"fuzzy-dbscan"`` the membership of a core point rises from 0 to 1 while the number
        of samples in its neighbourhood, itself included, rises from the first to the second.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel of both steps, see :mod:`owasvm.kernels`. A callable takes two sets of samples
        and returns the matrix of kernel values. With ``"precomputed"`` ``fit`` takes the Gram
        matrix of the training samples.
    degree : int, default=3
        Degree of ``"poly"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of ``"rbf"``, ``"poly"`` and ``"sigmoid"``: ``"scale"`` is
        ``1 / (n_features * X.var())``, with sample weights the weighted variance; ``"auto"`` is
        ``1 / n_features``.
    coef0 : float, default=0.0
        Constant of ``"poly"`` and ``"sigmoid"``.
    tol : float, default=1e-10
        LIBSVM's tolerance, far below that of ``SVC``: the ranks depend on the first step's
        decision values. LIBSVM holds kernel values in single precision and can stall above it;
        after 200_000 + 100 n_samples iterations 1e-6 is tried, and at last the 1e-3 of ``SVC``.
        ``second_step_.tol`` tells which one was reached.
    max_iter : int, default=-1
        LIBSVM's limit of iterations for each step; -1 for none.
    cache_size : float, default=200
        LIBSVM's kernel cache in MB.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights by class. ``"balanced"`` gives every class the same total
        weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of the samples of positive weight. Of two classes the second is +1.
    n_features_in_ : int
        Number of features, or of training samples with ``kernel="precomputed"``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when X has names that are all strings.
    first_step_ : sklearn.svm.SVC or None
        The SVM of step 1; None for induced orders.
    second_step_ : sklearn.svm.SVC
        The SVM of step 2, trained on the samples whose rank weight is positive.
    order_ : ndarray of shape (n_samples,)
        Rows given to ``fit``, from the smallest value to the largest; without the rows of
        weight zero.
    rank_weights_ : ndarray of shape (n_samples,)
        The weight :math:`c_i` of every row given to ``fit``, times its sample weight. Samples
        that tie share the mean of their weights.
    deviations_ : ndarray of shape (n_rows,)
        Hinge deviations of the rows given to ``fit`` from the final classifier; NaN for rows of
        weight zero.
    sample_costs_ : ndarray of shape (n_rows,)
        What each row given to ``fit`` pays per unit of its deviation in the second step: `C`
        times ``rank_weights_``; NaN for rows of weight zero.
    outliers_ : ndarray of shape (n_outliers,)
        Rows that weights ending in zeros (``"trimmed"``, ``"olympic"``, arrays) keep out of the
        second step: those of cost 0 ranked above all that pay. Empty for other weights.
    coef_ : ndarray of shape (1, n_features)
        w, with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (1,)
        b.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors, signed.
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors among those given to ``fit``, ascending.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty with ``kernel="precomputed"``.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    gamma_ : float
        The number `gamma` stands for; 1 with ``kernel="precomputed"``, which has none.
    owa_weights_ : ndarray of shape (n_samples,), or list of ndarray
        The weights :math:`\lambda`, ascending order of the final deviations. With
        ``ranks="class"`` a list, the weights of ``classes_[0]`` and those of ``classes_[1]``;
        with `groups` in ``fit`` one array per group.
    groups_ : ndarray of shape (n_groups,)
        Sorted labels of the groups. Only after a ``fit`` with `groups`.
    convex_ : bool
        Whether the weights are non-decreasing.
    objective_ : float
        The OWA objective :math:`\frac12 \|w\|^2 + C \sum_k \lambda_k \xi_{(k)}` of the final
        classifier, ranked by its own deviations whatever `order` and `mix` are (with
        ``ranks="class"`` a sum over the classes): never below that of :class:`OWASVC`.
    n_iter_ : int
        LIBSVM's iterations in both steps.
    fit_time_ : float
        Seconds spent in ``fit``.

    See Also
    --------
    OWASVC : The exact minimum of the OWA objective.
    LinearOWASVC : The same for linear models with many samples.

    Notes
    -----
    Samples on the margin of the first SVM have the value 0, up to the noise of the solver; they
    tie, and tied samples share the mean of their weights. The result therefore does not depend
    on the order of the rows, and a whole-number sample weight equals that many copies, for all
    orders.

    More than two classes are handled one against the rest: ``first_step_``, ``second_step_``
    and ``outliers_`` are lists then, ``objective_`` and ``n_iter_`` arrays, and ``order_``,
    ``rank_weights_``, ``deviations_`` and ``sample_costs_`` have one row per class.

    With ``ranks="class"`` the samples of each class are ranked apart, by the same values; of
    several classes each is ranked apart from the rest.

    Time and memory are those of two ``SVC`` fits at a tight tolerance; the induced orders other
    than ``"spread"`` add n_samples^2 distances, computed in blocks.

    The local outlier factor follows [4]_, fuzzy DBSCAN the memberships of [5]_.

    References
    ----------
    .. [1] S. Maldonado, J. Merigó, J. Miranda, "Redefining support vector machines with the
       ordered weighted average", Knowledge-Based Systems 148 (2018) 41-46.
       doi:10.1016/j.knosys.2018.02.025
    .. [2] A. Marín, L. I. Martínez-Merino, J. Puerto, A. M. Rodríguez-Chía, "The soft-margin
       Support Vector Machine with ordered weighted average", Knowledge-Based Systems 237
       (2022) 107705. doi:10.1016/j.knosys.2021.107705
    .. [3] S. Maldonado, J. Merigó, J. Miranda, "IOWA-SVM: A density-based weighting strategy
       for SVM classification via OWA operators", IEEE Transactions on Fuzzy Systems 28 (2020)
       2143-2150. doi:10.1109/TFUZZ.2019.2930942
    .. [4] M. M. Breunig, H.-P. Kriegel, R. T. Ng, J. Sander, "LOF: identifying density-based
       local outliers", ACM SIGMOD Record 29 (2000) 93-104. doi:10.1145/335191.335388
    .. [5] D. Ienco, G. Bordogna, "Fuzzy extensions of the DBScan clustering algorithm", Soft
       Computing 22 (2018) 1719-1730. doi:10.1007/s00500-016-2435-0

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC, TwoStepOWASVC
    >>> X, y = make_moons(100, noise=0.25, random_state=0)
    >>> two_step = TwoStepOWASVC(weights="basic", alpha=0.6).fit(X, y)
    >>> two_step.score(X, y)
    0.9...
    >>> exact = OWASVC(weights="basic", alpha=0.6).fit(X, y)
    >>> bool(two_step.objective_ >= exact.lower_bound_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelOWAClassifier._parameter_constraints,
        "order": [StrOptions({"deviation", *INDUCED_ORDERS})],
        "mix": [Interval(Real, 0.0, 1.0, closed="both")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "bandwidth": [Interval(Real, 0.0, None, closed="neither"), None],
        "eps": [Interval(Real, 0.0, None, closed="neither"), None],
        "min_samples": ["array-like"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        weights: str | Quantifier | ArrayLike = "basic",
        alpha: float | None = 0.6,
        ranks: str = "all",
        order: str = "deviation",
        mix: float = 1.0,
        n_neighbors: int = 10,
        bandwidth: float | None = None,
        eps: float | None = None,
        min_samples: tuple[int, int] = (5, 20),
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-10,
        max_iter: int = -1,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        self.C = C
        self.weights = weights
        self.alpha = alpha
        self.ranks = ranks
        self.order = order
        self.mix = mix
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.eps = eps
        self.min_samples = min_samples
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight

    def _fit_all(self, training: TrainingSet) -> tuple[list[BinaryFit], KeyboardInterrupt | None]:
        signs = list(training.signs())
        costs = [
            assign_costs(
                sign,
                self.weights,
                self.alpha,
                1.0,
                training.mass,
                ranks=self.ranks,
                groups=training.groups,
            )
            for sign in signs
        ]
        X = _with_short_indices(training.X)
        scores = self._induced_scores(X, training.mass)
        labels = [
            training.classes[training.codes] if training.n_problems == 1 else sign
            for sign in signs
        ]
        steps = [
            self._two_steps(X, sign, label, scores, unit_costs)
            for sign, label, unit_costs in zip(signs, labels, costs, strict=True)
        ]
        self._store_steps(training, costs, signs, steps)
        self._store_payments(training, [step.payments for step in steps])
        return [step.fit for step in steps], None

    def _induced_scores(self, X: Samples, mass: FloatArray | None) -> FloatArray | None:
        """Scores that do not depend on the labels, None if the first SVM ranks."""
        if self.order == "deviation":
            return None
        options = OrderOptions(
            n_neighbors=self.n_neighbors,
            bandwidth=self.bandwidth,
            eps=self.eps,
            min_samples=_check_range(self.min_samples),
        )
        return induced_scores(self.order, X, mass, options, self._is_precomputed)

    def _two_steps(
        self,
        X: Samples,
        signs: FloatArray,
        labels: NDArray[Any],
        scores: FloatArray | None,
        costs: Costs,
    ) -> _TwoSteps:
        """Rank, weigh and train one binary problem."""
        mass = np.ones(signs.size) if costs.sample_weight is None else costs.sample_weight
        first = None
        if scores is None:
            first = self._svm(X, labels, mass)
            scores = _margin_values(first, X, signs, self.C * mass)
        sample_weight = self.mix * charge_by_rank(costs, scores) + (1.0 - self.mix) * mass
        self._check_both_classes(sample_weight, signs, labels)
        # LIBSVM would drop samples of weight 0 itself, and then number the others anew.
        counted = np.flatnonzero(sample_weight > 0.0)
        second = self._svm(
            take_samples(X, counted, pairwise=self._is_precomputed),
            labels[counted],
            sample_weight[counted],
        )
        signed_dual = np.zeros(signs.size)
        signed_dual[counted[second.support_]] = _coefficients(second)
        values = second.decision_function(X[:, counted] if self._is_precomputed else X)
        payments = Payments(
            deviations=hinge_deviations(values, signs),
            sample_costs=self.C * sample_weight,
            ignored=find_ignored(costs, sample_weight, scores),
        )
        return _TwoSteps(
            first=first,
            second=second,
            scores=scores,
            sample_weight=sample_weight,
            fit=BinaryFit(signed_dual, float(second.intercept_[0])),
            decision_values=values,
            payments=payments,
        )

    def _svm(self, X: Samples, labels: NDArray[Any], sample_weight: FloatArray) -> SVC:
        """Train an SVM at the tightest tolerance that LIBSVM reaches."""
        tolerances = [self.tol, *(tol for tol in _FALLBACK_TOLERANCES if tol > self.tol)]
        patience = 200_000 + 100 * labels.size
        if self.max_iter >= 0:
            patience = min(patience, self.max_iter)
        for tol in tolerances[:-1]:
            svc = self._svc(tol, patience)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                svc.fit(X, labels, sample_weight=sample_weight)
            if svc.fit_status_ == 0:
                return svc
        return self._svc(tolerances[-1], self.max_iter).fit(X, labels, sample_weight=sample_weight)

    def _svc(self, tol: float, max_iter: int) -> SVC:
        return SVC(
            C=self.C,
            kernel=self.kernel,
            degree=self.degree,
            gamma=self.gamma_,
            coef0=self.coef0,
            tol=tol,
            max_iter=max_iter,
            cache_size=self.cache_size,
        )

    def _check_both_classes(
        self, sample_weight: FloatArray, signs: FloatArray, labels: NDArray[Any]
    ) -> None:
        """Refuse a second step in which a class has no weight left."""
        for sign in (-1.0, 1.0):
            if not np.any(sample_weight[signs == sign] > 0.0):
                raise ValueError(
                    f"All samples of class {labels[signs == sign][0]!r} have rank weight 0 in "
                    "the second step, which leaves one class only. Take weights that are "
                    "positive at more ranks, or mix < 1."
                )

    def _store_steps(
        self,
        training: TrainingSet,
        costs: list[Costs],
        signs: list[FloatArray],
        steps: list[_TwoSteps],
    ) -> None:
        """Keep the steps, the ranking and the OWA objective of the result."""
        given_weights = np.zeros((len(steps), training.n_given))
        given_weights[:, training.rows] = [step.sample_weight for step in steps]
        self.rank_weights_ = for_user(list(given_weights))
        self.order_ = for_user(
            [training.rows[np.argsort(step.scores, kind="stable")] for step in steps]
        )
        one = len(steps) == 1
        self.first_step_ = steps[0].first if one else [step.first for step in steps]
        self.second_step_ = steps[0].second if one else [step.second for step in steps]
        self.n_iter_ = for_user(
            [
                int(step.second.n_iter_.sum())
                + (0 if step.first is None else int(step.first.n_iter_.sum()))
                for step in steps
            ]
        )
        self.convex_ = all(unit_costs.convex for unit_costs in costs)
        self.owa_weights_ = for_user(
            [
                weights_at(unit_costs, hinge_deviations(step.decision_values, sign))
                for unit_costs, sign, step in zip(costs, signs, steps, strict=True)
            ]
        )
        self.objective_ = for_user(
            [
                _objective(self.C, unit_costs, sign, step)
                for unit_costs, sign, step in zip(costs, signs, steps, strict=True)
            ]
        )


def _objective(C: float, unit_costs: Costs, signs: FloatArray, step: _TwoSteps) -> float:
    """``1/2 |w|^2 + C * sum_k weights[k] * xi_(k)`` of the final classifier."""
    squared_norm = step.fit.signed_dual @ (step.decision_values - step.fit.intercept)
    loss = make_loss("hinge", unit_costs).value(1.0 - signs * step.decision_values)
    return float(0.5 * squared_norm + C * loss)


def _margin_values(svc: SVC, X: Samples, signs: FloatArray, bounds: FloatArray) -> FloatArray:
    """``1 - y f(x)`` of all samples, exactly 0 on the margin.

    Support vectors with a coefficient inside its bounds lie on the margin. How far LIBSVM, which
    holds kernel values in single precision, leaves them from it is the noise; whatever lies
    within twice that is on the margin as well.
    """
    values = 1.0 - signs * svc.decision_function(X)
    is_free = np.abs(_coefficients(svc)) < (1.0 - 1e-10) * bounds[svc.support_]
    noise = float(np.max(np.abs(values[svc.support_[is_free]]), initial=0.0))
    values[np.abs(values) <= 2.0 * min(noise, _LARGEST_MARGIN_NOISE)] = 0.0
    return values


def _coefficients(svc: SVC) -> FloatArray:
    """Signed coefficients of the support vectors; sparse input makes them sparse."""
    coefficients = svc.dual_coef_
    return (coefficients.toarray() if is_sparse(coefficients) else coefficients).ravel()


def _check_range(min_samples: ArrayLike) -> tuple[float, float]:
    """The two ends of the fuzzy density of a core point."""
    ends = np.asarray(min_samples, dtype=np.float64)
    if ends.shape != (2,) or not 0.0 < ends[0] <= ends[1] < np.inf:
        raise ValueError(
            f"min_samples={min_samples!r} must be two numbers, 0 < first <= second: where the "
            "membership of a core point leaves 0 and where it reaches 1."
        )
    return float(ends[0]), float(ends[1])


def _with_short_indices(X: Samples) -> Samples:
    """CSR matrices with the 32-bit indices that LIBSVM's wrapper asks for."""
    if not is_sparse(X) or X.indices.dtype == np.int32:
        return X
    if X.nnz > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {X.nnz} stored entries, more than LIBSVM can index; use LinearOWASVC."
        )
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)
