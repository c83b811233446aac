"""Export to ONNX, for prediction without Python or without owasvm.

ONNX is a file format for graphs of numerical operations, which runtimes for many languages and
machines execute, onnxruntime among them. :func:`to_onnx` makes such a graph of a fitted classifier
or of a pipeline around it; it needs the extra ``onnx``.

Importing this module makes skl2onnx know the classifiers of owasvm: ``skl2onnx.convert_sklearn``
and ``skl2onnx.to_onnx`` then convert them, alone and inside the estimators that skl2onnx converts.
The outputs are named ``label`` and ``probabilities``, as those of ``sklearn.svm.LinearSVC``. The
second holds decision values, of shape (n_samples, 1) for two classes; with the option
``raw_scores=True`` two columns, of which the second speaks for ``classes_[1]``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from owasvm.export._converters import EXTRA, PURPOSE, convert_imputer, register_converters
from owasvm.export._inputs import Inputs
from owasvm.extras import MissingExtraError, require

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["OPSET", "to_onnx"]

#: Version of ONNX's set of operators that exported models are written in. Every onnxruntime since
#: 1.12 of 2022 executes it; newer ones add nothing that the graphs need.
OPSET = 17

with suppress(MissingExtraError):
    register_converters()


def to_onnx(model: Any, X: Any, *, opset: int = OPSET) -> ModelProto:
    """Turn a fitted model into an ONNX graph.

    Parameters
    ----------
    model : estimator
        A fitted classifier of owasvm, or an estimator of scikit-learn that holds one and that
        skl2onnx converts: a pipeline with scalers, imputers and encoders, a calibrated
        classifier, a search.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Samples such as the graph will be given. Only their types count, and the names of the
        columns of a DataFrame; a few rows are enough.
    opset : int, default=17
        Version of ONNX's set of operators.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Its inputs: a matrix named ``X``, of the type of `X`; for a DataFrame one matrix of a
        single column per feature, named and typed as the columns. Its outputs: ``label``, of
        shape (n_samples,), integers or text; ``probabilities``, which is the name that skl2onnx
        gives to scores as well: the values of ``decision_function``, of shape (n_samples, 1) for
        two classes and (n_samples, n_classes) for more, in single precision if all numbers of `X`
        are.

    Raises
    ------
    MissingExtraError
        skl2onnx or onnx is not installed.
    ValueError
        ``kernel="precomputed"``, a kernel given as a function, isotonic calibration, or samples
        that do not fit the model.

    Notes
    -----
    The classifier computes in double precision, also where the samples come in single precision;
    the steps before it compute in the type of `X`. With doubles scores agree with
    ``decision_function`` to about 1e-12 of the largest one.

    Graphs check nothing: where scikit-learn refuses a NaN or an infinite number, they return a
    label that means nothing.

    Steps whose converters do not know double precision (``PowerTransformer``,
    ``PolynomialFeatures``) need an `X` in single precision.

    Examples
    --------
    >>> from onnxruntime import InferenceSession
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC, export
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = OWASVC(C=10).fit(X, y)
    >>> session = InferenceSession(export.to_onnx(model, X).SerializeToString())
    >>> label, scores = session.run(None, {"X": X})
    >>> bool((label == model.predict(X)).all()), scores.shape
    (True, (60, 1))
    >>> bool(abs(scores[:, 0] - model.decision_function(X)).max() < 1e-12)
    True
    """
    onnx = require("onnx", PURPOSE, EXTRA)
    skl2onnx = require("skl2onnx", PURPOSE, EXTRA)
    check_is_fitted(model)
    inputs = Inputs.of(model, X)
    converted = skl2onnx.convert_sklearn(
        model,
        name=type(model).__name__,
        initial_types=inputs.declared(),
        target_opset=opset,
        options=_options(model),
        custom_conversion_functions={SimpleImputer: convert_imputer},
    )
    inputs.open(converted.graph)
    _state_opset(onnx, converted, opset)
    onnx.checker.check_model(converted)
    return converted


def _options(model: Any) -> dict[int, dict[str, bool]]:
    """What skl2onnx is asked for, by the identity of estimators."""
    # Maps from labels to scores exist in single precision only.
    options = {id(model): {"zipmap": False}}
    for calibrated in getattr(_last_step(model), "calibrated_classifiers_", ()):
        if calibrated.method == "isotonic":
            raise ValueError(
                "CalibratedClassifierCV(method='isotonic') cannot be exported to ONNX: skl2onnx "
                "does not interpolate between its steps. Take method='sigmoid'."
            )
        # Of two classes skl2onnx reads the second column.
        options[id(_last_step(calibrated.estimator))] = {"zipmap": False, "raw_scores": True}
    return options


def _last_step(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def _state_opset(onnx: Any, model: Any, opset: int) -> None:
    """Changes `model` in place: it names each set of operators once."""
    versions: dict[str, int] = {}
    for stated in model.opset_import:
        versions[stated.domain] = max(stated.version, versions.get(stated.domain, 0))
    versions[""] = opset
    model.ClearField("opset_import")
    model.opset_import.extend(
        onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()
    )
