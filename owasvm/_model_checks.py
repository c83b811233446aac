"""Loaded models: every number is looked at before compiled code may index with it.

A model that comes out of a file can hold anything under any name. What predictions use is checked
here: types, shapes that belong together, finite numbers, indices within their matrices.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.calibration import (
    CalibratedClassifierCV,
    _CalibratedClassifier,
    _SigmoidCalibration,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.svm._base import BaseLibSVM

from owasvm.estimators import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC
from owasvm.kernels import KERNELS, Kernel
from owasvm.rounding import is_sparse
from owasvm.solution import Solution, Status

Classifier: TypeAlias = OWASVC | LinearOWASVC | TwoStepOWASVC

# What scalers have learnt, one number per feature, and the parameter that makes them use it:
# without it, what they have learnt may be None.
_SCALERS: dict[type, dict[str, str | None]] = {
    StandardScaler: {"mean_": "with_mean", "var_": "with_std", "scale_": "with_std"},
    MinMaxScaler: dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_")),
    MaxAbsScaler: dict.fromkeys(("scale_", "max_abs_")),
    RobustScaler: {"center_": "with_centering", "scale_": "with_scaling"},
}
_PLAIN_LABELS = (str, int, float)


def check_model(model: Any, classifiers: list[Classifier], max_bytes: int) -> None:
    """Refuse a model whose parts do not fit together or hold what cannot be computed with.

    Parameters
    ----------
    model : estimator
        The classifier, or what is around it: a pipeline, a calibration, a choice of parameters.
    classifiers : list of estimator
        The classifiers that it ends in.
    max_bytes : int
        The most memory that coefficients unfolded from a sparse matrix may take.

    Raises
    ------
    ValueError
        Something is wrong; the message names it.
    """
    _check_everything_inside(model)
    for classifier in classifiers:
        _check_classifier(classifier, max_bytes)
        if classifier.classes_.tolist() != model.classes_.tolist():
            raise ValueError("the labels of its classifiers differ")


def check_matrix(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix with an index outside, or with numbers that are not finite.

    Parameters
    ----------
    matrix : sparse matrix
        In any format.
    name : str
        How an error calls it.
    """
    if matrix.format in {"csr", "csc"}:
        major, minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
        _check_compressed(matrix, name, major, minor)
    elif matrix.format == "coo":
        for axis, (indices, length) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
            _check_indices(indices, length, f"axis {axis} of {name}")
    elif matrix.format != "dia":
        raise ValueError(f"{name} is a sparse matrix of the format {matrix.format}")
    _check_finite(matrix.data, f"the data of {name}")


def _check_compressed(matrix: Any, name: str, major: int, minor: int) -> None:
    starts, indices, values = matrix.indptr, matrix.indices, matrix.data
    for part, array in (("indptr", starts), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind != "i":
            raise ValueError(f"{name}.{part} is not a row of whole numbers")
    if starts.size != major + 1 or starts[0] != 0:
        raise ValueError(
            f"{name}.indptr does not start with 0, or has not {major + 1} entries for {major} "
            "lines"
        )
    if np.any(starts[1:] < starts[:-1]):
        raise ValueError(f"{name}.indptr decreases")
    if values.ndim != 1 or not starts[-1] <= indices.size == values.size:
        raise ValueError(f"{name} has {indices.size} indices and {values.size} values")
    _check_indices(indices, minor, f"{name}.indices")


def _check_indices(indices: Any, length: int, name: str) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < length):
        outside = indices[(indices < 0) | (indices >= length)][0]
        raise ValueError(f"{name} points to {outside}, outside 0 to {length - 1}")


def _check_everything_inside(model: Any) -> None:
    """Check what can be checked without knowing what it is for."""
    rest: list[tuple[str, Any]] = [(type(model).__name__, model)]
    seen: set[int] = set()
    while rest:
        name, value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple, set, frozenset)):
            rest.extend((name, item) for item in value)
        elif isinstance(value, dict):
            rest.extend((name, item) for pair in value.items() for item in pair)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                rest.extend((name, item) for item in value.ravel().tolist())
        elif is_sparse(value):
            check_matrix(value, name)
        elif isinstance(value, (BaseEstimator, Kernel, Solution, _CalibratedClassifier)):
            _check_attribute_names(value)
            _check_by_type(value)
            owner = type(value).__name__
            rest.extend((f"{owner}.{part}", item) for part, item in vars(value).items())


def _check_by_type(value: Any) -> None:
    """Check what is known about an object of its type."""
    if isinstance(value, BaseLibSVM):
        _check_svm(value)
    elif type(value) in _SCALERS:
        _check_scaler(value)
    elif isinstance(value, OneHotEncoder):
        _check_encoder(value)
    elif isinstance(value, Pipeline):
        _check_pipeline(value)
    elif isinstance(value, (CalibratedClassifierCV, OWASVCCV, LinearOWASVCCV)):
        value._validate_params()
    elif isinstance(value, _CalibratedClassifier):
        _check_calibration(value)


def _check_attribute_names(owner: Any) -> None:
    """Refuse attributes that would stand in the way of a method."""
    for name in vars(owner):
        there = getattr(type(owner), name, None)
        if callable(there) or isinstance(there, property):
            raise ValueError(f"{type(owner).__name__} has its method {name} overwritten")


def _check_classifier(classifier: Classifier, max_bytes: int) -> None:
    classifier._validate_params()
    n_features = _n_features(classifier)
    n_classes = _check_classes(classifier)
    n_problems = 1 if n_classes == 2 else n_classes
    _check_feature_names(classifier, n_features)
    n_support = _check_support(classifier, n_classes)
    _floats(classifier, "intercept_", (n_problems,))
    _floats(classifier, "dual_coef_", (n_problems, n_support))
    if isinstance(classifier, LinearOWASVC):
        _floats(classifier, "coef_", (n_problems, n_features))
    if isinstance(classifier, (OWASVC, TwoStepOWASVC)):
        _check_kernel(classifier)
        _check_support_vectors(classifier, n_support, n_features)
        is_unfolded = classifier.kernel == "linear" and is_sparse(classifier.support_vectors_)
        if is_unfolded and 8 * n_problems * n_features > max_bytes:
            raise ValueError(f"coef_ for {n_features} features is larger than allowed")
        if hasattr(classifier, "_weight"):
            _floats(classifier, "_weight", (n_problems, n_features))
    _check_certificates(classifier, n_problems, n_features)


def _check_support(classifier: Classifier, n_classes: int) -> int:
    """Check the rows of the support vectors; their number."""
    support = _integers(classifier, "support_", None)
    if support.size and (support[0] < 0 or np.any(support[1:] <= support[:-1])):
        raise ValueError("support_ is not ascending from 0 or above")
    counts = _integers(classifier, "n_support_", (n_classes,))
    if np.any(counts < 0) or int(counts.sum(dtype=np.float64)) != support.size:
        raise ValueError(f"n_support_ does not add up to the {support.size} rows of support_")
    return int(support.size)


def _check_kernel(classifier: OWASVC | TwoStepOWASVC) -> None:
    kernel = _attribute(classifier, "_kernel")
    if not isinstance(kernel, Kernel):
        raise ValueError(f"_kernel is a {type(kernel).__name__}, not a kernel")
    function = _attribute(kernel, "function")
    if not callable(function) and function not in KERNELS:
        raise ValueError(f"the kernel {function!r} is unknown")
    if function != classifier.kernel:
        raise ValueError(f"the kernel is {function!r}, but the parameter {classifier.kernel!r}")
    for name in ("gamma", "degree", "coef0"):
        _check_number(_attribute(kernel, name), f"{name} of the kernel")
    _check_number(_attribute(classifier, "gamma_"), "gamma_")


def _check_support_vectors(
    classifier: OWASVC | TwoStepOWASVC, n_support: int, n_features: int
) -> None:
    vectors = _attribute(classifier, "support_vectors_")
    if classifier.kernel == "precomputed":
        _floats(classifier, "support_vectors_", (0, 0))
        # Predictions pick columns by these rows.
        _check_indices(classifier.support_, n_features, "support_")
    elif is_sparse(vectors):
        if vectors.format != "csr":
            raise ValueError(f"support_vectors_ has the sparse format {vectors.format}, not csr")
        _check_array(vectors, "support_vectors_", "f", (n_support, n_features))
    else:
        _floats(classifier, "support_vectors_", (n_support, n_features))


def _check_certificates(classifier: Classifier, n_problems: int, n_features: int) -> None:
    """Check what predictions do not use: weights, objective, solutions, steps."""
    _check_figure(classifier, "objective_", n_problems)
    _check_figure(classifier, "n_iter_", n_problems)
    _check_weights(classifier, n_problems)
    _check_payments(classifier, n_problems)
    _check_number(_attribute(classifier, "fit_time_"), "fit_time_")
    if not isinstance(_attribute(classifier, "convex_"), (bool, np.bool_)):
        raise ValueError("convex_ is neither true nor false")
    if isinstance(classifier, (OWASVC, LinearOWASVC)):
        # A bound may be minus infinity, where a solve was stopped before it had one.
        for name in ("lower_bound_", "gap_"):
            _check_figure(classifier, name, n_problems, finite=False)
        for status in np.atleast_1d(_attribute(classifier, "status_")).tolist():
            Status(status)
        for solution in _parts(classifier, "solution_", n_problems, (Solution,)):
            _check_solution(solution, n_features)
    if isinstance(classifier, TwoStepOWASVC):
        for name in ("rank_weights_", "order_"):
            _check_array(_attribute(classifier, name), name, "fiu", _rows(n_problems))
        _parts(classifier, "second_step_", n_problems, (SVC,))
        _parts(classifier, "first_step_", n_problems, (SVC, type(None)))


def _check_weights(classifier: Classifier, n_problems: int) -> None:
    """Check ``owa_weights_``: arrays, or with ranks within groups a list of them per problem."""
    n_groups = 2
    if hasattr(classifier, "groups_"):
        if type(classifier.groups_) is not np.ndarray or classifier.groups_.ndim != 1:
            raise ValueError("groups_ is not a row of labels")
        n_groups = classifier.groups_.size
    elif _attribute(classifier, "ranks") == "all":
        _floats(classifier, "owa_weights_", _rows(n_problems))
        return
    for parts in _parts(classifier, "owa_weights_", n_problems, (list,)):
        if len(parts) != n_groups:
            raise ValueError(f"owa_weights_ is not a list of {n_groups} arrays")
        for weights in parts:
            _check_array(weights, "owa_weights_", "f", (None,))


def _check_payments(classifier: Classifier, n_problems: int) -> None:
    """Check what each row pays, which models of earlier versions do not tell."""
    if not hasattr(classifier, "deviations_"):
        return
    deviations = _attribute(classifier, "deviations_")
    costs = _attribute(classifier, "sample_costs_")
    for name, values in (("deviations_", deviations), ("sample_costs_", costs)):
        if type(values) is not np.ndarray or values.dtype != np.float64:
            raise ValueError(f"{name} is not an array of numbers")
        # Rows of weight zero have neither.
        known = np.where(np.isnan(values), 0.0, values)
        _check_array(known, name, "f", _rows(n_problems))
    if deviations.shape != costs.shape or np.any(np.isnan(deviations) != np.isnan(costs)):
        raise ValueError("deviations_ and sample_costs_ are not of the same rows")
    for outliers in _parts(classifier, "outliers_", n_problems, (np.ndarray,)):
        _check_array(outliers, "outliers_", "iu", (None,))
        _check_indices(outliers, deviations.shape[-1], "outliers_")


def _check_solution(solution: Solution, n_features: int) -> None:
    _floats(solution, "dual", (None,))
    for name in ("intercept", "objective", "n_iter", "build_time", "solve_time"):
        _check_number(_attribute(solution, name), f"{name} of solution_")
    _check_number(_attribute(solution, "lower_bound"), "lower_bound of solution_", finite=False)
    if _attribute(solution, "coef") is not None:
        _floats(solution, "coef", (n_features,))
    if solution.deviations is not None:
        _floats(solution, "deviations", solution.dual.shape)


def _check_svm(svm: BaseLibSVM) -> None:
    """LIBSVM believes its arrays; a size that is wrong makes it read anywhere."""
    if not hasattr(svm, "support_"):
        return
    n_classes = _check_classes(svm) if isinstance(svm, SVC) else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    support = _integers(svm, "support_", None)
    counts = _integers(svm, "_n_support", (n_classes,))
    if np.any(counts < 0) or int(counts.sum(dtype=np.float64)) != support.size:
        raise ValueError(f"{type(svm).__name__} has another number of support vectors")
    _check_indices(support, np.iinfo(np.int32).max, f"{type(svm).__name__}.support_")
    n_features = _n_features(svm)
    vectors = (0, 0) if svm.kernel == "precomputed" else (support.size, n_features)
    _check_array(_attribute(svm, "support_vectors_"), "SVC.support_vectors_", "f", vectors)
    for name in ("dual_coef_", "_dual_coef_"):
        _check_array(_attribute(svm, name), f"SVC.{name}", "f", (n_classes - 1, support.size))
    for name in ("intercept_", "_intercept_"):
        _floats(svm, name, (n_pairs,))
    for name in ("_probA", "_probB"):
        size = getattr(_attribute(svm, name), "size", 0)
        _floats(svm, name, (n_pairs if size else 0,))
    for name in ("_gamma", "coef0", "degree"):
        _check_number(_attribute(svm, name), f"SVC.{name}")


def _check_pipeline(pipeline: Pipeline) -> None:
    steps = _attribute(pipeline, "steps")
    is_list = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    if not is_list or len({name for name, _ in steps}) != len(steps):
        raise ValueError("steps is not a list of names and estimators")
    pipeline._validate_params()
    for position, (name, step) in enumerate(steps[:-1]):
        if step is None or step == "passthrough":
            continue
        if not isinstance(step, BaseEstimator) or not callable(getattr(step, "transform", None)):
            raise ValueError(f"the step {name!r} does not transform")
        if type(step) in _SCALERS and hasattr(step, "n_features_in_"):
            follower = steps[position + 1][1]
            expected = getattr(follower, "n_features_in_", step.n_features_in_)
            if expected != step.n_features_in_:
                raise ValueError(
                    f"the step {name!r} has {step.n_features_in_} features, the next {expected}"
                )


def _check_scaler(scaler: Any) -> None:
    if not hasattr(scaler, "scale_"):
        return  # Not fitted: it fails by itself, in words.
    scaler._validate_params()
    n_features = _n_features(scaler)
    _check_feature_names(scaler, n_features)
    for name, parameter in _SCALERS[type(scaler)].items():
        values = _attribute(scaler, name)
        if values is None and parameter is not None and not getattr(scaler, parameter):
            continue
        _floats(scaler, name, (n_features,))
        if name == "scale_" and not np.all(values):
            raise ValueError(f"{type(scaler).__name__}.scale_ holds 0")


def _check_encoder(encoder: OneHotEncoder) -> None:
    """Places of ones come out of these numbers, and compiled code believes them."""
    if not hasattr(encoder, "categories_"):
        return
    encoder._validate_params()
    counts = encoder._compute_n_features_outs()
    if encoder._n_features_outs != counts or len(counts) != _n_features(encoder):
        raise ValueError("OneHotEncoder has another number of categories than of columns")
    for categories in encoder.categories_:
        _check_array(categories, "OneHotEncoder.categories_", "biufUO", (None,))
    dropped = encoder._drop_idx_after_grouping
    if dropped is None:
        dropped = [None] * len(encoder.categories_)
    for index, categories in zip(dropped, encoder.categories_, strict=True):
        if index is not None and not (_is_whole(index) and 0 <= index < len(categories)):
            raise ValueError(f"OneHotEncoder drops a category {index!r} that is not there")
    if encoder._infrequent_enabled:
        for mapping, count in zip(encoder._default_to_infrequent_mappings, counts, strict=True):
            if mapping is not None:
                _check_array(mapping, "OneHotEncoder's infrequent categories", "iu", (None,))
                _check_indices(mapping, count, "OneHotEncoder's infrequent categories")


def _check_calibration(calibrated: _CalibratedClassifier) -> None:
    n_classes = len(calibrated.estimator.classes_)
    if calibrated.classes.tolist() != calibrated.estimator.classes_.tolist():
        raise ValueError("the labels of the calibration are not those of the classifier")
    calibrators = _attribute(calibrated, "calibrators")
    if len(calibrators) != (1 if n_classes == 2 else n_classes):
        raise ValueError("the calibration has not one calibrator per class")
    for calibrator in calibrators:
        for name in ("a_", "b_") if isinstance(calibrator, _SigmoidCalibration) else ():
            _check_number(_attribute(calibrator, name), f"{name} of the calibration")


def _n_features(estimator: Any) -> int:
    n_features = _attribute(estimator, "n_features_in_")
    if not _is_whole(n_features) or n_features <= 0:
        raise ValueError(f"n_features_in_ is {n_features!r}, not a number of features")
    return int(n_features)


def _check_classes(classifier: Any) -> int:
    """Check the labels; their number."""
    classes = _attribute(classifier, "classes_")
    _check_array(classes, "classes_", "biufUO", (None,))
    labels = classes.tolist()
    if classes.dtype.kind == "O" and not all(isinstance(one, _PLAIN_LABELS) for one in labels):
        raise ValueError("classes_ holds something that is no label")
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise ValueError("classes_ does not hold two or more distinct labels")
    return len(labels)


def _check_feature_names(estimator: Any, n_features: int) -> None:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return
    _check_array(names, "feature_names_in_", "OU", (n_features,))
    if not all(isinstance(name, str) for name in names.tolist()):
        raise ValueError("feature_names_in_ holds something that is no name")


def _parts(owner: Any, name: str, n_problems: int, types: tuple[type, ...]) -> list[Any]:
    """The one object of two classes, or the list with one per class."""
    value = _attribute(owner, name)
    parts = [value] if n_problems == 1 else value
    if not isinstance(parts, list) or len(parts) != n_problems:
        raise ValueError(f"{name} is not a list with one entry per class")
    for part in parts:
        if not isinstance(part, types):
            raise ValueError(f"{name} holds a {type(part).__name__}")
    return parts


def _rows(n_problems: int) -> tuple[int | None, ...]:
    """The shape of an array with one number per sample, one row per problem."""
    return (None,) if n_problems == 1 else (n_problems, None)


def _attribute(owner: Any, name: str) -> Any:
    try:
        return vars(owner)[name]
    except KeyError:
        raise ValueError(f"{type(owner).__name__} has no {name}") from None


def _floats(owner: Any, name: str, shape: tuple[int | None, ...]) -> None:
    """Check an array of finite numbers in double precision."""
    array = _attribute(owner, name)
    if is_sparse(array):
        raise ValueError(f"{name} is a sparse matrix")
    _check_array(array, name, "f", shape)


def _integers(owner: Any, name: str, shape: tuple[int, ...] | None) -> NDArray[np.int64]:
    array = _attribute(owner, name)
    if is_sparse(array):
        raise ValueError(f"{name} is a sparse matrix")
    _check_array(array, name, "iu", (None,) if shape is None else shape)
    return array


def _check_array(array: Any, name: str, kinds: str, shape: tuple[int | None, ...]) -> None:
    """Check type, shape and numbers; None in a shape stands for any length."""
    if type(array) is not np.ndarray and not is_sparse(array):
        raise ValueError(f"{name} is a {type(array).__name__}, not an array")
    if array.dtype.kind not in kinds or (array.dtype.kind == "f" and array.dtype.itemsize != 8):
        raise ValueError(f"{name} holds {array.dtype}")
    is_fitting = len(array.shape) == len(shape) and all(
        wanted is None or found == wanted for found, wanted in zip(array.shape, shape, strict=True)
    )
    if not is_fitting:
        wanted = str(shape).replace("None", "any")
        raise ValueError(f"{name} has the shape {array.shape}, not {wanted}")
    _check_finite(array.data if is_sparse(array) else array, name)


def _check_finite(array: Any, name: str) -> None:
    if array.dtype.kind in "fc" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds {array[~np.isfinite(array)][0]}, not a finite number")


def _check_figure(owner: Any, name: str, n_problems: int, *, finite: bool = True) -> None:
    """Check a number, or an array of them where there are several problems."""
    value = _attribute(owner, name)
    if n_problems == 1:
        _check_number(value, name, finite=finite)
        return
    if not isinstance(value, np.ndarray) or value.shape != (n_problems,):
        raise ValueError(f"{name} is not an array with one number per class")
    if value.dtype.kind not in "fiu":
        raise ValueError(f"{name} holds {value.dtype}")
    for number in value:
        _check_number(number, name, finite=finite)


def _check_number(value: Any, name: str, *, finite: bool = True) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} is a {type(value).__name__}, not a number")
    if np.isnan(float(value)) or (finite and not np.isfinite(float(value))):
        raise ValueError(f"{name} is {value}, not a finite number")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
