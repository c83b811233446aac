"""What the classifiers share: validation, labels, sample weights, support vectors, prediction.

The mathematics is elsewhere. A classifier turns its input into binary problems (one, or one per
class against the rest), has each of them solved, and keeps the results under scikit-learn's names.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from owasvm.costs import Costs
from owasvm.estimators._html import CaptionedBox
from owasvm.estimators._state import SavedState
from owasvm.grouping import RANKS, GroupedCosts, parts_of
from owasvm.kernels import KERNELS, Kernel, KernelFunction
from owasvm.preparation import TrainingSet, fetch_tensor
from owasvm.rounding import is_sparse
from owasvm.weights import REGISTRY, Quantifier, is_family

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Samples = Any  # an array or a CSR matrix of shape (n_samples, n_features)


@dataclass(frozen=True)
class BinaryFit:
    """A solved binary problem.

    Parameters
    ----------
    signed_dual : ndarray of shape (n_samples,)
        ``y_i a_i``, the coefficients of ``w = sum_i y_i a_i phi(x_i)``.
    intercept : float
        The intercept.
    weight : ndarray of shape (n_features,) or None, default=None
        w itself, where the model is linear.
    """

    signed_dual: FloatArray
    intercept: float
    weight: FloatArray | None = None


@dataclass(frozen=True)
class Payments:
    """Who pays what in a solved binary problem.

    Parameters
    ----------
    deviations : ndarray of shape (n_samples,)
        Hinge deviations.
    sample_costs : ndarray of shape (n_samples,)
        What each sample pays per unit of deviation.
    ignored : ndarray of shape (n_ignored,)
        Samples that weights ending in zeros ignore.
    """

    deviations: FloatArray
    sample_costs: FloatArray
    ignored: IntArray


def _are_two_numbers(labels: NDArray[Any]) -> bool:
    """Whether labels are at most two whole numbers, classes without a doubt."""
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iuf":
        return False
    least, largest = labels.min(), labels.max()
    are_whole = float(least).is_integer() and float(largest).is_integer()
    return are_whole and bool(np.all((labels == least) | (labels == largest)))


def _class_factors(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: IntArray,
    sample_weight: FloatArray,
) -> FloatArray:
    """What `class_weight` multiplies the sample weights of each class by."""
    if class_weight == "balanced":
        # Weighted counts, so that a whole-number weight equals copies and zero equals absence.
        # In ascending order, so that the order of the rows does not matter.
        by_size = np.argsort(sample_weight)
        totals = np.bincount(codes[by_size], sample_weight[by_size], classes.size)
        present = totals > 0.0
        balanced = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
        return np.where(present, balanced, 1.0)
    factors = np.asarray(
        compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64
    )
    if not np.all(np.isfinite(factors)) or np.any(factors < 0.0):
        raise ValueError(f"class_weight={class_weight!r} must hold finite numbers >= 0.")
    return factors


class BaseOWAClassifier(CaptionedBox, ClassifierMixin, SavedState, metaclass=ABCMeta):
    """Validation, one-vs-rest and prediction."""

    C: float
    weights: str | Quantifier | ArrayLike
    alpha: float | None
    ranks: str
    tol: float
    class_weight: Mapping[Any, float] | str | None

    _needed: ClassVar[tuple[str, ...]] = ("n_features_in_", "intercept_")
    # Numbers that samples may consist of; all others become the first.
    _dtypes: ClassVar[list[type]] = [np.float64]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        # The keys are those at the time of the fit.
        "weights": [StrOptions(REGISTRY.keys()), callable, "array-like"],
        "alpha": [Interval(Real, None, None, closed="neither"), None],
        "ranks": [StrOptions(set(RANKS))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Samples,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> BaseOWAClassifier:
        r"""Train the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
            Training samples; with ``kernel="precomputed"`` their Gram matrix, of shape
            (n_samples, n_samples). Tensors of torch may lie on any device.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, fractions included. A whole number equals that many copies of the
            sample, zero equals its absence. Not possible with `weights` given as an array, which
            fixes the number of ranks.
        groups : array-like of shape (n_samples,), default=None
            Labels of groups, text or numbers, whose deviations are ranked apart: the loss becomes

            .. math:: C \sum_g \sum_{k=1}^{n_g} \lambda^g_k\, \xi^g_{(k)}

            with :math:`\xi^g` the deviations of group g and :math:`\lambda^g` the weights of the
            family for its :math:`n_g` samples, of mean 1. The worst samples of every group
            count, not only those of all. Not possible with ``ranks="class"`` or with `weights`
            given as an array.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C stops the script. The best point found until then is kept: the classifier is
            fitted, its status "interrupted", its gap valid. Of several classes those that were
            not reached are left at w = 0, with `n_jobs` those that were not finished.
        """
        started = perf_counter()
        training = self._training_set(X, y, sample_weight, groups)
        fits, interrupt = self._fit_all(training)
        self.classes_ = training.classes
        if training.groups is not None:
            self.groups_ = np.unique(training.groups)
        elif hasattr(self, "groups_"):
            del self.groups_
        self._store(training, fits)
        self.fit_time_ = perf_counter() - started
        if interrupt is not None:
            raise interrupt
        return self

    def decision_function(self, X: Samples) -> FloatArray:
        """Decision values of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; with ``kernel="precomputed"`` their kernel values with the training
            samples, of shape (n_samples, n_training_samples).

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes positive values speak for ``classes_[1]``; with more, the column of
            the largest value is the predicted class.
        """
        check_is_fitted(self)
        values = self._scores(self._validate_samples(X)) + self.intercept_
        return values.ravel() if self.classes_.size == 2 else values

    def predict(self, X: Samples) -> NDArray[Any]:
        """Predict the class of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; with ``kernel="precomputed"`` their kernel values with the training
            samples, of shape (n_samples, n_training_samples).

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels out of ``classes_``; with two classes a decision value of exactly 0 gives
            ``classes_[0]``.
        """
        values = self.decision_function(X)
        chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _fit_all(self, training: TrainingSet) -> tuple[list[BinaryFit], KeyboardInterrupt | None]:
        """Solve the binary problems and keep what is particular to the class.

        An interrupt comes back beside what was found until then.
        """

    @abstractmethod
    def _scores(self, X: Samples) -> FloatArray:
        """Decision values without intercept, one column per binary problem."""

    def _validate_samples(self, X: Samples) -> Samples:
        """Samples to predict."""
        return _make_canonical(
            validate_data(
                self,
                fetch_tensor(X),
                accept_sparse=self._accepted_formats(),
                dtype=self._dtypes,
                reset=False,
            )
        )

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read off once for each class: every fit and copy asks."""
        return list(cls._read_param_names())

    @classmethod
    @cache
    def _read_param_names(cls) -> tuple[str, ...]:
        return tuple(super()._get_param_names())

    def _accepted_formats(self) -> str | bool:
        """Sparse format that samples are turned into, or False."""
        return "csr"

    def _training_set(
        self,
        X: Samples,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> TrainingSet:
        """Validate the input of fit and drop the samples of weight zero."""
        X, y, sample_weight = self._validate_training(X, y, sample_weight)
        labels = np.asarray(y)
        if not _are_two_numbers(labels):
            check_classification_targets(y)
        mass = self._effective_weights(X, labels, sample_weight)
        keep_single = np.float32 in self._dtypes
        given = TrainingSet.of(
            _make_canonical(X),
            labels,
            mass,
            groups=fetch_tensor(groups),
            keep_single=keep_single,
        )
        self._check_samples(given)
        training = given.without_zero_weights(pairwise=self._is_precomputed)
        classes = training.classes
        if classes.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes of positive weight; "
                f"got {classes.size} class{'' if classes.size == 1 else 'es'}: "
                f"{classes.tolist()}."
            )
        if not is_family(self.weights) and given.mass is not None:
            raise ValueError(
                "sample_weight and class_weight cannot be combined with weights given as an "
                "array: an array fixes the number of ranks, while a sample weight stands for "
                "copies, which change it. Use a named family or a callable quantifier."
            )
        return training

    def _validate_training(
        self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Samples, ArrayLike, ArrayLike | None]:
        """Samples and labels as scikit-learn checks them; sample weights are checked later."""
        X, y, sample_weight = (fetch_tensor(given) for given in (X, y, sample_weight))
        X, y = validate_data(
            self, X, y, accept_sparse=self._accepted_formats(), dtype=self._dtypes, order="C"
        )
        return X, y, sample_weight

    def _check_samples(self, training: TrainingSet) -> None:
        """Refuse samples that are not what the classifier takes them for."""

    def _resolve_kernel(self, X: Samples, mass: FloatArray | None) -> None:
        """Find the numbers that parameters of a kernel stand for."""

    @property
    def _is_precomputed(self) -> bool:
        return False

    def _effective_weights(
        self, X: Samples, labels: NDArray[Any], sample_weight: ArrayLike | None
    ) -> FloatArray | None:
        """Sample weights times class weights; None where there are neither."""
        if sample_weight is None and self.class_weight is None:
            return None
        mass = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        classes, codes = np.unique(labels, return_inverse=True)
        return mass * _class_factors(self.class_weight, classes, codes, mass)[codes]

    def _store(self, training: TrainingSet, fits: list[BinaryFit]) -> None:
        """Keep support vectors and intercepts."""
        signed = np.stack([fit.signed_dual for fit in fits])
        support = np.flatnonzero(np.any(signed != 0.0, axis=0))
        self._store_support(training, support)
        self.dual_coef_ = np.ascontiguousarray(signed[:, support])
        self.support_ = training.rows[support]
        self.n_support_ = np.bincount(
            training.codes[support], minlength=training.classes.size
        ).astype(np.int32)
        self.intercept_ = np.array([fit.intercept for fit in fits])

    def _store_payments(self, training: TrainingSet, payments: list[Payments]) -> None:
        """Keep who pays what, by the rows that were given."""
        by_row = training.by_given_row
        self.deviations_ = for_user([by_row(one.deviations) for one in payments])
        self.sample_costs_ = for_user([by_row(one.sample_costs) for one in payments])
        outliers = [training.rows[one.ignored] for one in payments]
        self.outliers_ = outliers[0] if len(outliers) == 1 else outliers

    @abstractmethod
    def _store_support(self, training: TrainingSet, support: IntArray) -> None:
        """Keep the support vectors themselves, if prediction needs them."""


def _make_canonical(X: Samples) -> Samples:
    """CSR matrices without repeated entries; the caller's matrix is not changed."""
    if not is_sparse(X) or X.has_canonical_format:
        return X
    tidy = X.copy()
    tidy.sum_duplicates()
    return tidy


class KernelOWAClassifier(BaseOWAClassifier):
    """Kernel parameters, and decision values from the support vectors alone."""

    kernel: str | KernelFunction
    degree: int
    gamma: str | float
    coef0: float

    _needed: ClassVar[tuple[str, ...]] = (
        *BaseOWAClassifier._needed,
        "dual_coef_",
        "support_",
        "support_vectors_",
        "_kernel",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOWAClassifier._parameter_constraints,
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the features, shape (1, n_features) or (n_classes, n_features).

        Only with ``kernel="linear"``.
        """
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists for kernel='linear' only; the kernel is {self.kernel!r}."
            )
        if hasattr(self, "_weight"):
            return self._weight
        return safe_sparse_dot(self.dual_coef_, self.support_vectors_, dense_output=True)

    @property
    def _is_precomputed(self) -> bool:
        return bool(self.kernel == "precomputed")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    def _accepted_formats(self) -> str | bool:
        return False if self._is_precomputed else "csr"

    def _training_set(
        self,
        X: Samples,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> TrainingSet:
        training = super()._training_set(X, y, sample_weight, groups)
        self._resolve_kernel(training.X, training.mass)
        return training

    def _resolve_kernel(self, X: Samples, mass: FloatArray | None) -> None:
        self._kernel = Kernel.resolve(self.kernel, self.gamma, self.degree, self.coef0, X, mass)
        self.gamma_ = self._kernel.gamma

    def _check_samples(self, training: TrainingSet) -> None:
        shape = training.X.shape
        if self._is_precomputed and shape[0] != shape[1]:
            raise ValueError(
                "With kernel='precomputed' X must be a square matrix, K(x_i, x_j) of the "
                f"training samples; got shape {shape}."
            )

    def _store(self, training: TrainingSet, fits: list[BinaryFit]) -> None:
        super()._store(training, fits)
        # Added up from the support vectors w would lose digits where large terms cancel.
        weights = [fit.weight for fit in fits if fit.weight is not None]
        if len(weights) == len(fits):
            self._weight = np.stack(weights)
        elif hasattr(self, "_weight"):
            del self._weight

    def _store_support(self, training: TrainingSet, support: IntArray) -> None:
        self.support_vectors_ = np.empty((0, 0)) if self._is_precomputed else training.X[support]

    def _scores(self, X: Samples) -> FloatArray:
        if self.kernel == "linear":
            return safe_sparse_dot(X, self.coef_.T, dense_output=True)
        if self._is_precomputed:
            X = X[:, self.support_]
        return self._kernel.scores(X, self.support_vectors_, self.dual_coef_)


def weights_at(costs: Costs, deviations: FloatArray) -> FloatArray | list[FloatArray]:
    """Rank weights in ascending order of the deviations at a point; a list by group."""
    weights = []
    for group, part in parts_of(costs):
        if part.sample_weight is None:
            # One cost per rank, whoever has it.
            charged = part.by_rank()
        else:
            charged = part.in_order(np.argsort(deviations[group], kind="stable"))
        weights.append(charged / costs.C)
    return weights if isinstance(costs, GroupedCosts) else weights[0]


def for_user(values: list[Any]) -> Any:
    """The value itself for two classes; for more an array or, of lists, a list by class."""
    if len(values) == 1:
        return values[0]
    return values if isinstance(values[0], list) else np.array(values)
