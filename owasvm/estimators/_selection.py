"""Choosing parameters by cross-validation: what the ``...CV`` classifiers share.

All folds of a kernel width take their values from one Gram matrix. In a fold C runs upwards, each
problem starting from the solution before; the smallest C of an alpha starts from that of the alpha
before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from owasvm._threads import blas_threads
from owasvm.costs import Costs
from owasvm.estimators._constant import (
    ConstantClassifierWarning,
    are_all_the_same,
    is_constant,
    warn_of_constant_fits,
)
from owasvm.estimators._exact import ExactOWAClassifier
from owasvm.estimators._html import CaptionedBox, describe_search
from owasvm.estimators._state import SavedState
from owasvm.grouping import refuse_two_rankings
from owasvm.preparation import TrainingSet, check_groups, take_samples
from owasvm.problem import OWAProblem
from owasvm.progress import ProgressRecord, Watcher, show_life, speaking
from owasvm.samples import GramSamples, Samples
from owasvm.solution import Solution
from owasvm.weights import is_family

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["OWAClassifierCV"]

# The first and the last of a number of C, for samples of variance 1 in the space of the kernel.
_FIRST_C, _LAST_C = 1e-2, 1e3

_KERNELS_OF_A_WIDTH = ("rbf", "poly", "sigmoid")


class _Fold(NamedTuple):
    """Rows to train on and rows to test on."""

    train: IntArray
    test: IntArray


class _Split(NamedTuple):
    """What one fold says about the candidates of one kernel width.

    Arrays of shape (n_weights, n_alphas, n_Cs); of the last those entries are 1 where w = 0 is
    the solution.
    """

    scores: FloatArray
    fit_times: FloatArray
    score_times: FloatArray
    gaps: FloatArray
    constants: FloatArray


class _Data(NamedTuple):
    """Rows as they were given, checked, and what the scorer gets beside them."""

    X: Any
    y: NDArray[Any]
    sample_weight: FloatArray | None
    rank_groups: NDArray[Any] | None
    score_params: dict[str, Any]


@dataclass(frozen=True)
class _Grid:
    """Candidates: all combinations of these."""

    weights: tuple[Any, ...]
    alphas: tuple[float | None, ...]
    Cs: FloatArray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of weights, alphas and Cs."""
        return len(self.weights), len(self.alphas), self.Cs.size

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.weights) * len(self.alphas) * self.Cs.size


class _Turn(NamedTuple):
    """A fold with one kernel width: which of all fits are done there, and who watches them."""

    fold: int
    gamma: Any
    n_before: int
    n_fits: int
    verbose: int
    callback: Watcher | None


class _Observer:
    """Tells those who watch which candidate and fold the fits belong to.

    Parameters
    ----------
    classifier : ExactOWAClassifier
        Solves the problems; its own lines and calls are taken over.
    turn : _Turn
        The fold.
    """

    def __init__(self, classifier: ExactOWAClassifier, turn: _Turn) -> None:
        self._classifier = classifier
        self._turn = turn
        self._n_fits = turn.n_before
        self._params: dict[str, Any] = {}
        self._label = ""
        self._record: ProgressRecord | None = None
        self._callback = turn.callback if callable(turn.callback) else None
        classifier._in_series = True
        # A line per fit is for those who want all; others get one every few seconds.
        classifier.verbose = turn.verbose if turn.verbose > 1 else 0
        is_watched = self._callback is not None or turn.verbose > 0
        classifier.callback = self._observe if is_watched else None

    @contextmanager
    def show(self) -> Iterator[None]:
        """While this lasts, a line every few seconds says where the search stands."""
        verbose = self._turn.verbose
        with speaking(verbose), show_life(1 if verbose == 1 else 0, self._describe):
            yield

    def solve(
        self,
        problems: list[OWAProblem],
        starts: list[Solution | None],
        params: dict[str, Any],
        classes: NDArray[Any],
    ) -> list[Solution]:
        """Solutions of the problems of a candidate."""
        turn = self._turn
        self._n_fits += 1
        if self._classifier.callback is not None:
            self._params = params if turn.gamma is None else {**params, "gamma": turn.gamma}
            values = ", ".join(
                f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in self._params.items()
            )
            self._label = f"fit {self._n_fits} of {turn.n_fits}, fold {turn.fold}, {values}"
        self._record = None
        labels = [self._label]
        if len(problems) > 1:
            labels = [f"{self._label}, class {name!s}" for name in classes]
        return [
            self._classifier._solve(*task) for task in zip(problems, starts, labels, strict=True)
        ]

    def _observe(self, record: ProgressRecord) -> bool | None:
        self._record = replace(record, fold=self._turn.fold, params=self._params)
        return None if self._callback is None else self._callback(self._record)

    def _describe(self, elapsed: float) -> str:
        record = self._record
        return f"{self._label}, {elapsed:.0f} s" if record is None else str(record)


class _Answers(ClassifierMixin, BaseEstimator):
    """A classifier that was asked already: whoever scores it gets the stored decision values."""

    def __init__(self, classes: NDArray[Any], values: FloatArray) -> None:
        self.classes_ = classes
        self.values = values

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ARG002
        """The decision values, whatever the samples."""
        return self.values

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        """The labels, whatever the samples."""
        values = self.values
        chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _is_refitted(search: OWAClassifierCV) -> bool:
    """Whether there is a classifier to ask."""
    if not search.refit:
        raise AttributeError(
            f"This {type(search).__name__} has refit=False: it has chosen parameters and has no "
            "classifier; best_params_ are the parameters to train one with."
        )
    return True


class OWAClassifierCV(CaptionedBox, ClassifierMixin, SavedState):
    """Cross-validation over C, alpha, weights and, for kernels, gamma."""

    Cs: int | ArrayLike
    alphas: float | Sequence[float] | None
    weights: Any
    ranks: str
    cv: Any
    scoring: Any
    n_jobs: int | None
    refit: bool
    selection: str
    verbose: int
    callback: Watcher | None

    _searched: ClassVar[dict[str, list[Any]]] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "alphas": [Interval(Real, None, None, closed="neither"), "array-like", None],
        "weights": [str, callable, "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "n_jobs": [Integral, None],
        "refit": ["boolean"],
        "selection": [StrOptions({"best", "one-se"})],
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _searched
    #: The classifier whose parameters are chosen.
    _classifier: ClassVar[type[ExactOWAClassifier]]

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        rank_groups: ArrayLike | None = None,
        **params: Any,
    ) -> OWAClassifierCV:
        """Choose parameters by cross-validation and train the classifier with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples; with ``kernel="precomputed"`` their Gram matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights for the fits, and for the scores as far as ``GridSearchCV`` of the
            installed scikit-learn hands them on.
        rank_groups : array-like of shape (n_samples,), default=None
            Labels of groups whose deviations are ranked apart in all fits, as `groups` in
            :meth:`owasvm.OWASVC.fit`. They do not change the folds.
        **params : dict
            ``groups``, for a splitter that asks for them, as in ``GridSearchCV``. They do not
            change the ranks. With metadata routing enabled whatever splitter and scorer request.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C stops the script, whatever `n_jobs`. Before the parameters are chosen it leaves
            everything as it was before ``fit``. In the last fit they are chosen, and
            ``best_estimator_`` is the best point found, with status "interrupted".
        """
        started = perf_counter()
        classifier = self._make_classifier()
        whole = classifier._training_set(X, y, sample_weight)
        rows = classifier._validate_samples(X)
        labels = np.asarray(y).ravel()
        ranked = self._check_rank_groups(rank_groups, labels.size)
        routed = self._route(labels.size, sample_weight, params)
        splitter = check_cv(self.cv, labels, classifier=True)
        folds = [_Fold(*fold) for fold in splitter.split(rows, labels, **routed.splitter.split)]
        mass = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        data = _Data(rows, labels, mass, ranked, routed.scorer.score)
        alphas = (None,) if self.alphas is None else tuple(np.atleast_1d(self.alphas).tolist())
        gammas = self._gammas()
        grid = _Grid(self._families(), alphas, self._choose_Cs(classifier, whole, gammas))
        scorer = self._check_scorer(classifier)
        # Several widths share what was checked; one has no use for a copy of the samples per fold.
        several = len(gammas) > 1
        trainings = [_check_fold(classifier, data, fold) if several else None for fold in folds]
        # A callback is called in this process.
        callback = self.callback if callable(self.callback) else None
        n_fits = max(len(gammas), 1) * len(folds) * grid.size
        turns = (
            _Turn(fold, gamma, number * grid.size, n_fits, int(self.verbose), callback)
            for number, (gamma, fold) in enumerate(product(gammas or (None,), range(len(folds))))
        )
        splits = Parallel(n_jobs=self.n_jobs if callback is None else 1)(
            delayed(_run_fold)(narrowed, samples, data, fold, training, grid, scorer, next(turns))
            for narrowed, samples in _share_kernels(classifier, rows, gammas, whole.mass)
            for fold, training in zip(folds, trainings, strict=True)
        )
        self._take_over(classifier, whole)
        n_constant = self._keep_results(splits, grid, gammas, len(folds))
        if self.refit:
            with warnings.catch_warnings():
                if n_constant:
                    # The search has said so.
                    warnings.simplefilter("ignore", ConstantClassifierWarning)
                self._refit(X, y, sample_weight, ranked)
        self.fit_time_ = perf_counter() - started
        return self

    def _refit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        rank_groups: NDArray[Any] | None,
    ) -> None:
        """Train the classifier with the chosen parameters."""
        started = perf_counter()
        self.best_estimator_ = self._make_classifier().set_params(**self.best_params_)
        try:
            self.best_estimator_.fit(X, y, sample_weight, rank_groups)
        finally:
            # An interrupt leaves a classifier as well.
            self.n_iter_ = getattr(self.best_estimator_, "n_iter_", 0)
            self.refit_time_ = perf_counter() - started

    @available_if(_is_refitted)
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of samples with the best classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_is_refitted)
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of samples from the best classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of the best classifier, by `scoring` or else its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the score.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        known = {} if sample_weight is None else {"sample_weight": sample_weight}
        if self.scoring is None:
            return super().score(X, y, **known)
        return float(check_scoring(self, self.scoring)(self, X, y, **known))

    def get_metadata_routing(self) -> MetadataRouter:
        """Who takes which metadata: the classifier itself, the splitter and the scorer.

        Returns
        -------
        routing : MetadataRouter
        """
        scorer = check_scoring(self._make_classifier(), self.scoring)
        if self.scoring is None and get_config()["enable_metadata_routing"]:
            # Nobody could be asked: an accuracy that takes no weights.
            scorer = get_scorer("accuracy").set_score_request(sample_weight=False)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(self.cv, classifier=True),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
            .add(
                scorer=scorer,
                method_mapping=MethodMapping()
                .add(caller="fit", callee="score")
                .add(caller="score", callee="score"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        chosen = self._make_classifier().__sklearn_tags__()
        tags.input_tags.sparse = chosen.input_tags.sparse
        tags.input_tags.pairwise = chosen.input_tags.pairwise
        return tags

    def _make_classifier(self) -> ExactOWAClassifier:
        """A classifier with the parameters that are not searched."""
        names = self._classifier._get_param_names()
        mine = self.get_params(deep=False)
        shared = {name: mine[name] for name in names if name in mine and name != "weights"}
        return self._classifier(weights=self._families()[0], **shared)

    def _describe_fit(self) -> str:
        return describe_search(self)

    def _families(self) -> tuple[Any, ...]:
        """The kinds of rank weights that are candidates."""
        several = not is_family(self.weights)
        families = tuple(self.weights) if several else (self.weights,)
        if not families or not all(map(is_family, families)):
            raise ValueError(
                f"weights must be a family, a quantifier or a sequence of them; got "
                f"{self.weights!r}. Rank weights given one by one belong to one number of "
                "samples, and folds leave samples out."
            )
        return families

    def _gammas(self) -> tuple[Any, ...]:
        """Kernel coefficients that are candidates; none for linear models."""
        return ()

    def _choose_Cs(
        self, classifier: ExactOWAClassifier, whole: TrainingSet, gammas: tuple[Any, ...]
    ) -> FloatArray:
        """The values of C as given, or so many around what the scale of the samples suggests."""
        if not isinstance(self.Cs, Integral):
            given = np.atleast_1d(np.asarray(self.Cs, dtype=np.float64))
            if given.size == 0:
                raise ValueError(
                    "Cs is empty; give values of C, or how many are to be made from the data."
                )
            return given
        if gammas:
            classifier.set_params(gamma=gammas[len(gammas) // 2])
        classifier._resolve_kernel(whole.X, whole.mass)
        samples = classifier._prepare(whole.X)
        even = np.full(samples.n_samples, 1.0 / samples.n_samples)
        spread = float(np.mean(samples.norms**2) - samples.scores(even) @ even)
        scale = spread if spread > 0.0 else 1.0
        return np.geomspace(_FIRST_C, _LAST_C, int(self.Cs)) / scale

    def _check_scorer(self, classifier: ExactOWAClassifier) -> Any:
        """Who scores; None for accuracy."""
        if self.scoring is None:
            return None
        scorer = check_scoring(classifier, self.scoring)
        if getattr(scorer, "_response_method", None) == "predict_proba":
            raise ValueError(
                f"scoring={self.scoring!r} needs probabilities, and {type(classifier).__name__} "
                "has decision values. Choose by another score, such as 'roc_auc', and calibrate "
                "the outcome with sklearn.calibration.CalibratedClassifierCV."
            )
        return scorer

    def _take_over(self, classifier: ExactOWAClassifier, whole: TrainingSet) -> None:
        """What is known of the samples before anything is chosen."""
        self.classes_ = whole.classes
        self.n_features_in_ = classifier.n_features_in_
        if hasattr(classifier, "feature_names_in_"):
            self.feature_names_in_ = classifier.feature_names_in_

    def _check_rank_groups(
        self, rank_groups: ArrayLike | None, n_samples: int
    ) -> NDArray[Any] | None:
        """Labels of the groups that are ranked apart, where they can be."""
        refuse_two_rankings(self.ranks, rank_groups, "rank_groups")
        return check_groups(rank_groups, n_samples, "rank_groups")

    def _route(
        self, n_samples: int, sample_weight: ArrayLike | None, params: dict[str, Any]
    ) -> Bunch:
        """Who gets which metadata."""
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", sample_weight=sample_weight, **params)
        groups = params.pop("groups", None)
        if params:
            raise TypeError(
                f"{type(self).__name__}.fit got unexpected arguments {sorted(params)}; without "
                "metadata routing it takes sample_weight, rank_groups and groups."
            )
        if groups is not None and len(np.asarray(groups)) != n_samples:
            raise ValueError(
                f"groups must hold one entry per sample: got {len(np.asarray(groups))} for "
                f"{n_samples} samples."
            )
        score: dict[str, Any] = {}
        accepts = getattr(
            check_scoring(self._make_classifier(), self.scoring), "_accept_sample_weight", None
        )
        if sample_weight is not None and accepts is not None and accepts():
            score = {"sample_weight": sample_weight}
        return Bunch(splitter=Bunch(split={"groups": groups}), scorer=Bunch(score=score))

    def _keep_results(
        self, splits: list[_Split], grid: _Grid, gammas: tuple[Any, ...], n_folds: int
    ) -> int:
        """Scores in the order of scikit-learn's grids, and the best of them.

        Returns for how many fits of the chosen one w = 0 was the best, after a warning.
        """
        axes = {"weights": grid.weights, "alpha": grid.alphas, "C": grid.Cs.tolist()}
        if gammas:
            axes = {"gamma": gammas, **axes}
        names = list(axes)
        candidates = list(ParameterGrid({name: list(axes[name]) for name in names}))
        # Where each candidate lies in arrays with one axis per parameter.
        places = np.unravel_index(
            np.arange(len(candidates)), [len(axes[name]) for name in sorted(names)]
        )
        place_of = dict(zip(sorted(names), places, strict=True))
        index = tuple(place_of[name] for name in names)

        def arrange(what: str) -> FloatArray:
            """Numbers of all folds, one row per candidate."""
            values = np.array([getattr(split, what) for split in splits])
            shape = (max(len(gammas), 1), n_folds, *grid.shape)
            by_place = np.moveaxis(values.reshape(shape), 1, -1)
            return (by_place if gammas else by_place[0])[index]

        scores = arrange("scores")
        means = scores.mean(axis=1)
        self.cv_results_ = {
            **_summarise("fit_time", arrange("fit_times")),
            **_summarise("score_time", arrange("score_times")),
            **{
                f"param_{name}": _masked([candidate[name] for candidate in candidates])
                for name in sorted(names)
            },
            "params": candidates,
            **{f"split{k}_test_score": scores[:, k] for k in range(n_folds)},
            **_summarise("test_score", scores),
            "rank_test_score": rankdata(-means, method="min").astype(np.int32),
            "max_gap": arrange("gaps").max(axis=1),
        }
        self.n_splits_ = n_folds
        self.Cs_ = grid.Cs
        self.best_index_ = self._choose(scores, candidates)
        self.best_params_ = candidates[self.best_index_]
        self.best_score_ = float(means[self.best_index_])
        self.C_ = self.best_params_["C"]
        self.alpha_ = self.best_params_["alpha"]
        ordered = tuple(len(axes[name]) for name in names)
        self.scores_ = np.empty((*ordered, n_folds))
        self.scores_[index] = scores
        constant = arrange("constants") > 0.0
        warn_of_constant_fits(type(self).__name__, constant, self.best_index_)
        return int(constant[self.best_index_].sum())

    def _choose(self, scores: FloatArray, candidates: list[dict[str, Any]]) -> int:
        """The best mean score, or the smallest C within a standard error of it."""
        means = scores.mean(axis=1)
        best = int(np.argmax(means))
        if self.selection == "best" or scores.shape[1] < 2:
            return best
        error = float(scores[best].std(ddof=1) / np.sqrt(scores.shape[1]))
        near = np.flatnonzero(means >= means[best] - error)
        return int(min(near, key=lambda k: (candidates[k]["C"], -means[k], k)))


def _summarise(name: str, values: FloatArray) -> dict[str, FloatArray]:
    """Mean and standard deviation over the folds."""
    return {f"mean_{name}": values.mean(axis=1), f"std_{name}": values.std(axis=1)}


def _masked(values: list[Any]) -> Any:
    """Values of a parameter as scikit-learn stores them."""
    array = np.array(values) if all(isinstance(value, Real) for value in values) else None
    if array is None:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return np.ma.MaskedArray(array, mask=np.zeros(len(values), dtype=bool))


def _share_kernels(
    classifier: ExactOWAClassifier, rows: Any, gammas: tuple[Any, ...], mass: FloatArray | None
) -> Iterator[tuple[ExactOWAClassifier, Samples | None]]:
    """Per width the classifier, and all rows as samples where all folds can share them."""
    for gamma in gammas or (None,):
        narrowed = clone(classifier)
        if gamma is not None:
            narrowed.set_params(gamma=gamma)
        # "scale" stands for another width in every fold.
        differs = gamma == "scale" and narrowed.get_params()["kernel"] in _KERNELS_OF_A_WIDTH
        yield narrowed, None if differs else _prepare_all(narrowed, rows, mass)


def _prepare_all(
    classifier: ExactOWAClassifier, rows: Any, mass: FloatArray | None
) -> Samples | None:
    """All rows as samples; None where a fold has to look at its own."""
    if getattr(classifier, "device", "cpu") != "cpu":
        return None
    classifier._resolve_kernel(rows, mass)
    samples = classifier._prepare(rows)
    # Part of an indefinite kernel matrix may be definite.
    return samples if samples.is_definite else None


def _check_fold(classifier: ExactOWAClassifier, data: _Data, fold: _Fold) -> TrainingSet:
    """What a fold trains on, checked."""
    mass, groups = data.sample_weight, data.rank_groups
    return clone(classifier)._training_set(
        take_samples(data.X, fold.train, pairwise=classifier._is_precomputed),
        data.y[fold.train],
        None if mass is None else mass[fold.train],
        None if groups is None else groups[fold.train],
    )


class _Fitter:
    """The problems of one fold, and what their solutions say about its test samples."""

    def __init__(
        self,
        classifier: ExactOWAClassifier,
        shared: Samples | None,
        data: _Data,
        fold: _Fold,
        training: TrainingSet,
        grid: _Grid,
    ) -> None:
        pairwise = classifier._is_precomputed
        classifier._resolve_kernel(training.X, training.mass)
        self.classifier = classifier
        self.training = training
        # Equal to the samples as they are for weights that never fall, too.
        convex = not self._has_falling(grid)
        self.training = classifier._find_distinct(training, convex=convex).training
        self._kept = fold.train[self.training.rows]
        self._test = fold.test
        self._shared = shared
        if shared is None and getattr(classifier, "device", "cpu") == "cpu":
            samples = classifier._prepare(data.X)
            self._shared = samples if samples.is_definite else None
        self._test_rows = data.X[fold.test]
        if pairwise:
            self._test_rows = self._test_rows[:, fold.train]
        if self._shared is None:
            self._samples = classifier._prepare(self.training.X)
        else:
            self._samples = self._shared.take(self._kept)
        self.n_multiplications = self._samples.n_multiplications

    def _has_falling(self, grid: _Grid) -> bool:
        """Whether rank weights of some candidates fall."""
        C = float(grid.Cs[0])
        charged = (
            self._charge(weights, alpha, C) for weights in grid.weights for alpha in grid.alphas
        )
        return not all(costs.convex for charges in charged for costs in charges)

    def _charge(self, weights: Any, alpha: float | None, C: float) -> list[Costs]:
        # Thousands of times: set_params would take as long as some fits.
        classifier = self.classifier
        classifier.weights, classifier.alpha, classifier.C = weights, alpha, C
        return classifier._charge(self.training)

    def problems(self, weights: Any, alpha: float | None, C: float) -> list[OWAProblem]:
        """The problems of a candidate, one per class or one of two classes."""
        charges = self._charge(weights, alpha, C)
        return self.classifier._make_problems(self.training, charges, self._samples)

    def along(
        self, weights: Any, alpha: float | None, Cs: FloatArray
    ) -> Iterator[list[OWAProblem]]:
        """The problems of candidates that differ in C only."""
        first = self.problems(weights, alpha, float(Cs[0]))
        yield first
        scalable = all(problem.can_scale for problem in first)
        for C in Cs[1:].tolist():
            if scalable:
                yield [problem.with_C(C) for problem in first]
            else:
                yield self.problems(weights, alpha, C)

    def has_constant(self, solved: list[tuple[OWAProblem, Solution]]) -> bool:
        """Whether w = 0 is the solution for a candidate, where another could be."""
        constant = (
            is_constant(problem, solution, self.classifier._target(problem))
            for problem, solution in solved
        )
        return any(constant) and not self._is_hopeless

    @cached_property
    def _is_hopeless(self) -> bool:
        return are_all_the_same(self._samples)

    def decide(self, solved: list[list[tuple[OWAProblem, Solution]]]) -> FloatArray:
        """Decision values of the test samples, shape (n_candidates, n_problems, n_test)."""
        if self._shared is None:
            return np.stack(
                [
                    self.classifier._decide(self.training, pairs, self._test_rows).T
                    for pairs in solved
                ]
            )
        flat = [pair for pairs in solved for pair in pairs]
        if flat[0][1].coef is not None:
            weights = np.stack([np.asarray(solution.coef) for _, solution in flat], axis=1)
            products = safe_sparse_dot(self._test_rows, weights, dense_output=True)
            intercepts = [problem.as_given(solution).intercept for problem, solution in flat]
        else:
            coefs = np.stack([problem.y * solution.dual for problem, solution in flat], axis=1)
            products = self._multiply(self._shared, coefs)
            intercepts = [solution.intercept for _, solution in flat]
        return (products + intercepts).T.reshape(len(solved), -1, self._test.size)

    def _multiply(self, shared: Samples, coefs: FloatArray) -> FloatArray:
        """Kernel values of the test samples times coefficients of the training samples."""
        if isinstance(shared, GramSamples):
            return shared.gram[np.ix_(self._test, self._kept)] @ coefs
        columns = np.zeros((shared.n_samples, coefs.shape[1]))
        columns[self._kept] = coefs
        return np.stack([shared.scores(column)[self._test] for column in columns.T], axis=1)


def _run_fold(
    classifier: ExactOWAClassifier,
    shared: Samples | None,
    data: _Data,
    fold: _Fold,
    training: TrainingSet | None,
    grid: _Grid,
    scorer: Any,
    turn: _Turn,
) -> _Split:
    """Solve and score all candidates of a width on one fold."""
    if training is None:
        training = _check_fold(classifier, data, fold)
    fitter = _Fitter(clone(classifier), shared, data, fold, training, grid)
    observer = _Observer(fitter.classifier, turn)
    split = _Split(*(np.zeros(grid.shape) for _ in _Split._fields))
    upwards = np.argsort(grid.Cs, kind="stable")
    classes = fitter.training.classes
    with blas_threads(fitter.n_multiplications), observer.show():
        for i, weights in enumerate(grid.weights):
            starts: list[Solution | None] = [None] * fitter.training.n_problems
            for j, alpha in enumerate(grid.alphas):
                solved = []
                known = starts
                for k, problems in zip(
                    upwards, fitter.along(weights, alpha, grid.Cs[upwards]), strict=True
                ):
                    begun = perf_counter()
                    params = {"C": float(grid.Cs[k]), "alpha": alpha, "weights": weights}
                    solutions = observer.solve(problems, known, params, classes)
                    solved.append(list(zip(problems, solutions, strict=True)))
                    split.fit_times[i, j, k] = perf_counter() - begun
                    split.gaps[i, j, k] = max(solution.gap for solution in solutions)
                    split.constants[i, j, k] = fitter.has_constant(solved[-1])
                    known = list(solutions)
                starts = [solution for _, solution in solved[0]]
                begun = perf_counter()
                values = fitter.decide(solved)
                split.scores[i, j, upwards] = _score_all(classes, values, data, fold.test, scorer)
                split.score_times[i, j] = (perf_counter() - begun) / upwards.size
    return split


def _score_all(
    classes: NDArray[Any], values: FloatArray, data: _Data, test: IntArray, scorer: Any
) -> FloatArray:
    """Scores of decision values of shape (n_candidates, n_problems, n_test)."""
    if scorer is not None or data.score_params:
        return np.array(
            [
                _score(classes, of_one[0] if len(of_one) == 1 else of_one.T, data, test, scorer)
                for of_one in values
            ]
        )
    chosen = values[:, 0] > 0.0 if values.shape[1] == 1 else values.argmax(axis=1)
    return np.mean(classes[chosen.astype(int)] == data.y[test], axis=1)


def _score(
    classes: NDArray[Any], values: FloatArray, data: _Data, test: IntArray, scorer: Any
) -> float:
    """Score of decision values of the test samples by the scorer; accuracy by default."""
    answers = _Answers(classes, values)
    params = {name: np.asarray(given)[test] for name, given in data.score_params.items()}
    if scorer is None:
        return float(answers.score(None, data.y[test], **params))
    return float(scorer(answers, data.X[test], data.y[test], **params))
