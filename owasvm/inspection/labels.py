r"""Labels that look wrong: samples ranked by what classifiers trained on the others say of them.

With :math:`f_k(x_i)` the decision value of class k for sample i, from classifiers that have not
seen the sample, averaged over the repetitions (with two classes :math:`f_1 = -f_0 = f / 2`), the
score is

.. math:: \text{score}_i = \frac{\max_{k \ne y_i} f_k(x_i) - f_{y_i}(x_i)}{h} + \delta_{y_i} .

The first term is the out-of-fold deviation :math:`1 - y_i f(x_i)` less 1, in units of h, the
typical distance between the classes. The second one is the same for all samples of a class.
Labels may be wrong in one direction only, and a classifier trained on them is then biased towards
the class that received them: its own decision values hide them. So the values are centred first,

.. math:: g_k = f_k - \tfrac12 \bigl(\operatorname{med}_{y_i = k} f_k(x_i)
          + \operatorname{med}_{y_i \ne k} f_k(x_i)\bigr), \qquad
          h = \operatorname{mean}_c \operatorname{med}_{y_i = c}
          \bigl(g_c(x_i) - \max_{k \ne c} g_k(x_i)\bigr),

medians that up to half of wrong labels in a class cannot carry away, and :math:`r_c` is the share
of class c that another class claims by more than 3/4 of h. Where these shares differ by more than
chance, the class with more of them is the more suspicious one:

.. math:: \delta_c = \tfrac12\, \operatorname{soft}\bigl(\log r_c
          - \operatorname{mean}_k \log r_k,\ \text{its standard error}\bigr),
          \qquad \operatorname{soft}(d, e) = \operatorname{sign}(d) \max(0, |d| - e) .

Classes that merely overlap, or are of different size, are claimed in like shares after the
centring, and keep :math:`\delta = 0`.

Unless a classifier is given, six classical SVMs judge together: C is 1 or 3, and gamma 1/4, 1 or 4
times one over the number of features, which are standardised. Their decision values are averaged
with the weights

.. math:: v_m = \exp\Bigl(-\frac{p_m - p}{e / 2}\Bigr), \qquad p = \min_m p_m, \qquad
          e = \sqrt{\max\bigl(p (1 - p),\ 1 / n\bigr) / n},

:math:`p_m` being the share of the n labels that m does not predict out of fold, and e the standard
error of the smallest share. So an SVM that predicts clearly worse than the best has no say, and
those that chance alone could order need not be told apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["label_issues", "suspicion"]

# Claims by another class count from this share of the typical distance on.
_CONFIDENT = 0.75
_OFFSET = 0.5
# Claims added to every class, so that shares of 0 have a logarithm.
_PRIOR_CLAIMS = 0.5
# The judges unless one is given: C, and gamma in units of one over the number of features.
_JUDGES = tuple((C, width) for C in (1.0, 3.0) for width in (0.25, 1.0, 4.0))


def label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    cv: Any = 5,
    *,
    n_repeats: int = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Any:
    """Rank samples by how suspicious their labels are.

    Every sample is judged by classifiers that were not trained on it: by cross-validation, several
    times over with other folds. :mod:`owasvm.inspection.labels` has the formula of the score.

    Parameters
    ----------
    estimator : estimator or None
        A classifier of owasvm, a pipeline that ends in one, or any classifier of scikit-learn
        with ``decision_function`` or ``predict_proba``; it is not changed. None stands for the
        mean of six classical SVMs (``SVC``; with several classes one against the rest) on
        standardised features, C = 1 and 3, gamma = 1/4, 1 and 4 times ``1 / n_features``,
        weighted by how well they predict the labels.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples; with ``kernel="precomputed"`` their Gram matrix.
    y : array-like of shape (n_samples,)
        Labels as they are, two classes or more.
    cv : int or cross-validation generator, default=5
        Folds, stratified and shuffled. A generator must test every sample exactly once; it is
        used as it is, and only once.
    n_repeats : int, default=5
        How many times the folds are drawn. The score is that of the mean decision values.
    n_jobs : int, default=None
        Folds at the same time, as in :func:`sklearn.model_selection.cross_val_predict`.
    random_state : int, RandomState instance or None, default=0
        Seeds the folds.

    Returns
    -------
    issues : pandas.DataFrame, or structured array where there is no pandas
        One row per sample, the most suspicious first: ``row``, its number in X from 0; ``label``,
        as given; ``suggested``, the class that the classifiers prefer; ``score``. Positive scores
        speak against the label, ``suggested`` differs from ``label`` there and only there.

    See Also
    --------
    owasvm.OWASVC : ``outliers_`` has the rows that one fit with trimmed weights ignores.

    Notes
    -----
    A score is a rank order, not a probability: where classes overlap, many correct labels have
    positive scores. Look at the first rows before you change any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from owasvm.inspection import label_issues
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[5, 70]] = [1, 0]
    >>> issues = label_issues(None, X, y)
    >>> sorted(issues["row"][:2].tolist())
    [5, 70]
    >>> sorted(issues["suggested"][:2].tolist())
    [0, 1]
    """
    from sklearn.utils import check_consistent_length
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold at least two classes to tell apart; it holds {classes.tolist()} only."
        )
    folds = _folds(cv, n_repeats, random_state, classes, counts)
    if estimator is None:
        values = _average_judges(X, codes, folds, n_jobs)
    else:
        values = _predict_unseen(estimator, X, codes, folds, n_jobs)
    score, preferred = suspicion(values, codes)
    order = np.argsort(-score, kind="stable")
    return _record(
        {
            "row": order,
            "label": classes[codes[order]],
            "suggested": classes[preferred[order]],
            "score": score[order],
        }
    )


def suspicion(decision_values: ArrayLike, codes: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Score of the labels from decision values that are not biased by them.

    Parameters
    ----------
    decision_values : array-like of shape (n_samples,) or (n_samples, n_classes)
        Out-of-fold decision values as scikit-learn has them: for two classes positive values
        speak for the class 1, for more the largest of a row speaks for its column. With two
        columns, such as probabilities, the same.
    codes : array-like of shape (n_samples,)
        Labels 0, 1, ...; every class has a sample.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        The larger, the more suspicious; above 0 another class is preferred.
    preferred : ndarray of shape (n_samples,)
        The label itself, or where the score is positive the class that claims the sample most.
    """
    labels = np.asarray(codes)
    values = _by_class(decision_values)
    n_classes = values.shape[1]
    of_class = [labels == k for k in range(n_classes)]
    centres = np.array(
        [
            0.5 * (np.median(values[own, k]) + np.median(values[~own, k]))
            for k, own in enumerate(of_class)
        ]
    )
    claims, rivals = _claims(values, labels)
    centred, _ = _claims(values - centres, labels)
    distance = -float(np.mean([np.median(centred[own]) for own in of_class]))
    # Where no classes were found, their distance is noise of either sign.
    distance = max(distance, 1e-9 * float(np.abs(values).max()), np.finfo(float).tiny)
    claimed = centred > _CONFIDENT * distance
    offsets = _class_offsets(
        np.array([claimed[own].sum() for own in of_class]),
        np.array([own.sum() for own in of_class]),
    )
    score = claims / distance + offsets[labels]
    return score, np.where(score > 0.0, rivals, labels)


def _by_class(decision_values: ArrayLike) -> FloatArray:
    """One column per class."""
    values = np.asarray(decision_values, dtype=np.float64)
    return np.column_stack([-0.5 * values, 0.5 * values]) if values.ndim == 1 else values


def _claims(values: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
    """By how much another class claims each sample, and which one."""
    rows = np.arange(labels.size)
    others = values.copy()
    others[rows, labels] = -np.inf
    rivals = others.argmax(axis=1)
    return others[rows, rivals] - values[rows, labels], rivals


def _class_offsets(n_claimed: IntArray, sizes: IntArray) -> FloatArray:
    """How much more suspicious the labels of each class are than those of the others."""
    claimed = n_claimed + _PRIOR_CLAIMS
    shares = claimed / (sizes + 2.0 * _PRIOR_CLAIMS)
    excess = np.log(shares) - np.log(shares).mean()
    variances = (1.0 - shares) / claimed
    n_classes = sizes.size
    errors = np.sqrt((1.0 - 2.0 / n_classes) * variances + variances.sum() / n_classes**2)
    return _OFFSET * np.sign(excess) * np.maximum(0.0, np.abs(excess) - errors)


def _predict_unseen(
    model: Any, X: Any, codes: IntArray, folds: list[Any], n_jobs: int | None
) -> FloatArray:
    """Out-of-fold decision values, their mean over the draws of the folds."""
    from sklearn.model_selection import cross_val_predict

    method = _method_of(model)
    draws = [
        cross_val_predict(model, X, codes, cv=fold, method=method, n_jobs=n_jobs) for fold in folds
    ]
    return np.mean(draws, axis=0)


def _average_judges(X: Any, codes: IntArray, folds: list[Any], n_jobs: int | None) -> FloatArray:
    """Out-of-fold decision values of classical SVMs, weighted by how well they predict."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from owasvm.rounding import is_sparse

    # Means would fill the zeros of a sparse matrix.
    scaled = StandardScaler(with_mean=not is_sparse(X)).fit_transform(X)
    judges = [SVC(C=C, gamma=width / scaled.shape[1]) for C, width in _JUDGES]
    if codes.max() > 1:
        judges = [OneVsRestClassifier(judge) for judge in judges]
    values = np.array([_predict_unseen(judge, scaled, codes, folds, n_jobs) for judge in judges])
    return np.average(values, axis=0, weights=_weigh_judges(values, codes))


def _weigh_judges(values: FloatArray, codes: IntArray) -> FloatArray:
    """Weights that fall with the share of labels not predicted; 1 for the smallest."""
    missed = np.array([np.mean(_claims(_by_class(own), codes)[0] > 0.0) for own in values])
    least = missed.min()
    error = np.sqrt(max(least * (1.0 - least), 1.0 / codes.size) / codes.size)
    return np.exp(-2.0 * (missed - least) / error)


def _method_of(estimator: Any) -> str:
    """The method that tells how much speaks for each class."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"estimator must be a classifier with decision_function or predict_proba; "
        f"{type(estimator).__name__} has neither."
    )


def _folds(
    cv: Any,
    n_repeats: int,
    random_state: int | np.random.RandomState | None,
    classes: NDArray[Any],
    counts: IntArray,
) -> list[Any]:
    """Splitters, one per repetition."""
    from sklearn.model_selection import StratifiedKFold, check_cv
    from sklearn.utils import check_random_state

    if n_repeats < 1:
        raise ValueError(f"n_repeats must be 1 or more, got {n_repeats!r}.")
    if not isinstance(cv, (int, np.integer)):
        return [check_cv(cv)]
    if cv < 2:
        raise ValueError(f"cv must be 2 folds or more, or a generator of folds; got {cv!r}.")
    smallest = int(counts.argmin())
    if counts[smallest] < cv:
        raise ValueError(
            f"The class {classes.tolist()[smallest]!r} has {counts[smallest]} samples, fewer than "
            f"cv={cv} folds; lower cv, or leave the class out."
        )
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_repeats)
    return [StratifiedKFold(int(cv), shuffle=True, random_state=int(seed)) for seed in seeds]


def _record(columns: dict[str, NDArray[Any]]) -> Any:
    """A DataFrame, or without pandas a structured array: both have columns by name."""
    try:
        import pandas
    except ImportError:
        table = np.empty(
            columns["row"].size, dtype=[(name, value.dtype) for name, value in columns.items()]
        )
        for name, value in columns.items():
            table[name] = value
        return table
    return pandas.DataFrame(columns)
