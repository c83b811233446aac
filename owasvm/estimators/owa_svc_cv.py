"""The exact OWA-SVMs with parameters chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from owasvm.estimators._exact import ExactOWAClassifier
from owasvm.estimators._selection import OWAClassifierCV
from owasvm.estimators.linear_owa_svc import LinearOWASVC
from owasvm.estimators.owa_svc import OWASVC
from owasvm.kernels import KernelFunction
from owasvm.progress import Watcher
from owasvm.weights import Quantifier

__all__ = ["OWASVCCV", "LinearOWASVCCV"]

_CHOSEN = ("C", "alpha", "weights", "gamma", "warm_start")


def _shared(classifier: type[ExactOWAClassifier]) -> dict[str, list[Any]]:
    """Constraints of the parameters that are not searched."""
    constraints = classifier._parameter_constraints
    return {name: given for name, given in constraints.items() if name not in _CHOSEN}


class OWASVCCV(OWAClassifierCV):
    """:class:`OWASVC` with C, alpha, gamma and weights chosen by cross-validation.

    The scores of ``GridSearchCV(OWASVC(...), ...)`` on the same folds, up to samples so close to
    the boundary that `tol` leaves their side open, in about a quarter of the time: all folds take
    their kernel values from one Gram matrix per width, and every problem starts from the solution
    for the C before.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C, or how many of them: from 0.01 to 1000 on a logarithmic scale, divided by the
        variance of the samples in the space of the kernel (with the middle one of `gammas`).
    alphas : float, array-like of shape (n_alphas,) or None, default=0.6
        Shapes of the named families.
    gammas : {"scale", "auto"}, float or a sequence of these, default="scale"
        Kernel coefficients. ``"scale"`` depends on the samples a fold trains on, so that each fold
        has a Gram matrix of its own then.
    weights : str, callable or a sequence of these, default="basic"
        Families of rank weights, or quantifiers.
    ranks, kernel, degree, coef0, cache_size, loss, device
        As in :class:`OWASVC`.
    solver, solver_options, tol, mip_gap, time_limit, max_iter, class_weight, random_state
        As in :class:`OWASVC`, for every fit.
    cv : int, cross-validation generator or iterable, default=None
        As in ``GridSearchCV``: None stands for five stratified folds.
    scoring : str or callable, default=None
        As in ``GridSearchCV``, one score; None for the accuracy.
    n_jobs : int, default=None
        Folds computed at the same time, as in ``GridSearchCV``; classes in the last fit.
    refit : bool, default=True
        Whether to train the classifier with the chosen parameters on all samples.
    selection : {"best", "one-se"}, default="best"
        ``"best"`` takes the best mean score, the first of equal ones. ``"one-se"`` takes the
        smallest C whose mean score lies within one standard error of the best, the better score
        where candidates share it.
    verbose : int, default=0
        1 writes a line every few seconds that tells fold, candidate and where its fit stands, 2
        one for every step.
    callback : callable, "record" or None, default=None
        As in :class:`OWASVC`, for every fit; the record holds ``fold`` and ``params``. Returning
        False ends the fit at hand, which is scored as it is. With a function folds are computed
        one after the other. "record" is for the last fit.

    Attributes
    ----------
    best_params_ : dict
        Chosen ``C``, ``alpha``, ``gamma`` and ``weights``.
    best_score_ : float
        Mean score of the chosen parameters over the folds.
    best_index_ : int
        Where they are in ``cv_results_``.
    best_estimator_ : OWASVC
        The classifier with these parameters, trained on all samples; with ``refit=True`` only.
    cv_results_ : dict of ndarray
        As in ``GridSearchCV``: ``params``, ``param_C`` and the like, ``split0_test_score``, ...,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``, times; and ``max_gap``, the
        largest relative gap of the fits of a candidate.
    scores_ : ndarray of shape (n_gammas, n_weights, n_alphas, n_Cs, n_splits)
        Scores of all fits.
    C_, alpha_, gamma_ : float
        The chosen ones; what ``gamma_`` stands for, with ``refit=True`` only.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when X has names that are all strings.
    n_splits_ : int
        Number of folds.
    n_iter_ : int
        Iterations of the last fit, that of ``best_estimator_``.
    fit_time_, refit_time_ : float
        Seconds spent in ``fit``, and in the last fit of it.

    See Also
    --------
    OWASVC : One choice of parameters.
    LinearOWASVCCV : Linear models from features, for many samples.
    owasvm.path.fit_path : Solutions along C and alpha without cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVCCV
    >>> X, y = make_moons(120, noise=0.3, random_state=0)
    >>> search = OWASVCCV(Cs=[0.1, 1.0, 10.0], alphas=[0.3, 0.6], gammas=[0.5, 2.0]).fit(X, y)
    >>> sorted(search.best_params_)
    ['C', 'alpha', 'gamma', 'weights']
    >>> len(search.cv_results_["params"]), search.scores_.shape
    (12, (2, 1, 2, 3, 5))
    >>> search.best_estimator_.status_
    'optimal'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_shared(OWASVC),
        **OWAClassifierCV._parameter_constraints,
        "gammas": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="left"),
            "array-like",
        ],
    }
    _classifier = OWASVC

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        *,
        alphas: float | Sequence[float] | None = 0.6,
        gammas: str | float | Sequence[str | float] = "scale",
        weights: str | Quantifier | Sequence[str | Quantifier] = "basic",
        ranks: str = "all",
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
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
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        n_jobs: int | None = None,
        refit: bool = True,
        selection: str = "best",
        verbose: int = 0,
        callback: Watcher | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.Cs = Cs
        self.alphas = alphas
        self.gammas = gammas
        self.weights = weights
        self.ranks = ranks
        self.kernel = kernel
        self.degree = degree
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
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.selection = selection
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    @property
    def gamma_(self) -> float:
        """The number that the chosen gamma stands for."""
        return self.best_estimator_.gamma_

    def _gammas(self) -> tuple[Any, ...]:
        given: Any = self.gammas
        gammas = (given,) if isinstance(given, (str, Real)) else tuple(given)
        if not gammas:
            raise ValueError("gammas must hold at least one kernel coefficient, got none.")
        return gammas


class LinearOWASVCCV(OWAClassifierCV):
    """:class:`LinearOWASVC` with C, alpha and weights chosen by cross-validation.

    The scores of ``GridSearchCV(LinearOWASVC(...), ...)`` on the same folds, up to samples so
    close to the boundary that `tol` leaves their side open, in about a third of the time: every
    problem starts from the solution for the C before.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C, or how many of them: from 0.01 to 1000 on a logarithmic scale, divided by the
        variance of the samples, all features together.
    alphas : float, array-like of shape (n_alphas,) or None, default=0.6
        Shapes of the named families.
    weights : str, callable or a sequence of these, default="basic"
        Families of rank weights, or quantifiers.
    ranks, loss, solver, solver_options, tol, mip_gap, time_limit, max_iter, class_weight
        As in :class:`LinearOWASVC`, for every fit.
    cv, scoring, n_jobs, refit, selection, verbose, callback, random_state
        As in :class:`OWASVCCV`.

    Attributes
    ----------
    best_params_ : dict
        Chosen ``C``, ``alpha`` and ``weights``.
    best_score_ : float
        Mean score of the chosen parameters over the folds.
    best_index_ : int
        Where they are in ``cv_results_``.
    best_estimator_ : LinearOWASVC
        The classifier with these parameters, trained on all samples; with ``refit=True`` only.
    cv_results_ : dict of ndarray
        As in :class:`OWASVCCV`.
    scores_ : ndarray of shape (n_weights, n_alphas, n_Cs, n_splits)
        Scores of all fits.
    C_, alpha_ : float
        The chosen ones.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried.
    classes_, n_features_in_, feature_names_in_, n_splits_, n_iter_, fit_time_, refit_time_
        As in :class:`OWASVCCV`.

    See Also
    --------
    LinearOWASVC : One choice of parameters.
    OWASVCCV : Any kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from owasvm import LinearOWASVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = LinearOWASVCCV(Cs=5, alphas=[0.4, 0.8], selection="one-se")
    >>> model = make_pipeline(StandardScaler(), search).fit(X, y)
    >>> bool(search.best_score_ > 0.95), search.best_estimator_.coef_.shape
    (True, (1, 30))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_shared(LinearOWASVC),
        **OWAClassifierCV._parameter_constraints,
    }
    _classifier = LinearOWASVC

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        *,
        alphas: float | Sequence[float] | None = 0.6,
        weights: str | Quantifier | Sequence[str | Quantifier] = "basic",
        ranks: str = "all",
        loss: str = "hinge",
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-6,
        mip_gap: float = 1e-4,
        time_limit: float | None = None,
        max_iter: int = 1000,
        class_weight: Mapping[Any, float] | str | None = None,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        n_jobs: int | None = None,
        refit: bool = True,
        selection: str = "best",
        verbose: int = 0,
        callback: Watcher | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.Cs = Cs
        self.alphas = alphas
        self.weights = weights
        self.ranks = ranks
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.mip_gap = mip_gap
        self.time_limit = time_limit
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.selection = selection
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state
