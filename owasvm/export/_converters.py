"""What skl2onnx calls to turn classifiers of owasvm into nodes of a graph.

All arithmetic is in double precision, whatever the type of the input: decision values are
differences of large sums, and single precision loses them. Scores are rounded to the type of the
input at the very end.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.estimators import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC
from owasvm.extras import require
from owasvm.kernels import Kernel
from owasvm.rounding import exact_dot, is_sparse

FloatArray = NDArray[np.float64]

PURPOSE = "Export to ONNX"
EXTRA = "onnx"
# A message of protobuf, hence a model in one file, has at most so many bytes.
_LARGEST_MODEL = 2**31
# Scores are no probabilities, so nothing is zipped; pipelines hand the option on all the same.
_OPTIONS = {"zipmap": [True, False, "columns"], "raw_scores": [True, False]}


def register_converters() -> None:
    """Make skl2onnx know the classifiers of owasvm.

    Raises
    ------
    MissingExtraError
        skl2onnx is not installed.
    """
    skl2onnx = require("skl2onnx", PURPOSE, EXTRA)
    for classifier in (OWASVC, LinearOWASVC, TwoStepOWASVC, OWASVCCV, LinearOWASVCCV):
        skl2onnx.update_registered_converter(
            classifier,
            f"Owasvm{classifier.__name__}",
            _set_output_types,
            _convert_classifier,
            parser=_declare_outputs,
            options=_OPTIONS,
        )


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Convert a ``SimpleImputer`` to nodes that exist in double precision.

    The operator that skl2onnx takes has no implementation for it in onnxruntime.

    Parameters
    ----------
    scope, operator, container
        As skl2onnx hands them to a converter.
    """
    types = require("skl2onnx.common.data_types", PURPOSE, EXTRA)
    converters = require("skl2onnx.operator_converters.imputer_op", PURPOSE, EXTRA)
    imputer = operator.raw_operator
    if not isinstance(operator.inputs[0].type, (types.FloatTensorType, types.DoubleTensorType)):
        converters.convert_sklearn_imputer(scope, operator, container)
        return
    statistics = np.asarray(imputer.statistics_, dtype=np.float64)
    if imputer.add_indicator or np.isnan(statistics).any():
        raise ValueError(
            "A SimpleImputer with add_indicator=True, or with a column that has no value at all, "
            "cannot be exported to ONNX. Drop such columns before, and leave add_indicator=False."
        )
    graph = _Graph(scope, container)
    dtype = types.guess_numpy_type(operator.outputs[0].type)
    samples = graph.merge(operator.inputs, dtype)
    if np.isnan(imputer.missing_values):
        missing = graph.add("IsNaN", samples)
    else:
        missing = graph.add("Equal", samples, graph.hold(dtype(imputer.missing_values)))
    fill = graph.hold(statistics.astype(dtype))
    graph.add("Where", missing, fill, samples, output=operator.outputs[0].full_name)


def _declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:  # noqa: ARG001
    """Labels and scores, named as skl2onnx names them for classifiers of scikit-learn."""
    types = require("skl2onnx.common.data_types", PURPOSE, EXTRA)
    operator = scope.declare_local_operator(f"Owasvm{type(model).__name__}", model)
    operator.inputs = inputs
    scores = types.guess_tensor_type(inputs[0].type)
    operator.outputs.append(scope.declare_local_variable("label", types.Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("probabilities", scores))
    return operator.outputs


def _set_output_types(operator: Any) -> None:
    """Types and shapes of labels and scores."""
    types = require("skl2onnx.common.data_types", PURPOSE, EXTRA)
    model = operator.raw_operator
    n_samples = operator.inputs[0].get_first_dimension()
    has_text = _labels(model).dtype.kind == "U"
    label_type = types.StringTensorType if has_text else types.Int64TensorType
    is_double = any(isinstance(given.type, types.DoubleTensorType) for given in operator.inputs)
    score_type = types.DoubleTensorType if is_double else types.FloatTensorType
    n_columns = model.classes_.size
    if n_columns == 2 and not _wants_both_columns(operator.scope_inst, model):
        n_columns = 1
    operator.outputs[0].set_type(label_type([n_samples]))
    operator.outputs[1].set_type(score_type([n_samples, n_columns]))


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    types = require("skl2onnx.common.data_types", PURPOSE, EXTRA)
    model = operator.raw_operator
    graph = _Graph(scope, container)
    samples = graph.merge(operator.inputs, np.float64)
    scores = _add_scores(graph, samples, _best(model))
    label, probabilities = (output.full_name for output in operator.outputs)
    if model.classes_.size == 2:
        flat = graph.add("Reshape", scores, graph.hold(np.array([-1])))
        chosen = graph.cast(graph.add("Greater", flat, graph.hold(0.0)), np.int64)
    else:
        chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", graph.hold(_labels(model)), chosen, output=label)
    if model.classes_.size == 2 and _wants_both_columns(scope, model):
        scores = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
    graph.cast(scores, types.guess_numpy_type(operator.outputs[1].type), output=probabilities)


def _wants_both_columns(scope: Any, model: Any) -> bool:
    return bool(scope.get_options(model, {"raw_scores": False})["raw_scores"])


def _labels(model: Any) -> NDArray[Any]:
    """The labels as text or whole numbers, all that labels are in ONNX."""
    labels = model.classes_.tolist()
    if isinstance(labels[0], str):
        return np.array(labels)
    # True, 1.0 and 1 are the same label, and no classifier has labels between whole numbers.
    return np.array([int(label) for label in labels], dtype=np.int64)


def _best(model: Any) -> Any:
    """The classifier that predicts: the model itself, or the best that it has found."""
    if not isinstance(model, (OWASVCCV, LinearOWASVCCV)):
        return model
    if not model.refit:
        raise ValueError(
            f"This {type(model).__name__} has refit=False, hence no classifier that could be "
            "exported. Train it with refit=True."
        )
    return model.best_estimator_


def _add_scores(graph: _Graph, samples: str, model: Any) -> str:
    """Nodes for decision values, one column per binary problem."""
    if isinstance(model, LinearOWASVC) or model.kernel == "linear":
        return _add_linear(graph, samples, model.coef_, model.intercept_)
    if callable(model.kernel) or model.kernel == "precomputed":
        raise ValueError(
            f"kernel={model.kernel!r} cannot be exported to ONNX, because a graph needs a formula "
            "for the kernel. Take kernel='linear', 'poly', 'rbf' or 'sigmoid'."
        )
    kernel, dual = model._kernel, model.dual_coef_
    if dual.shape[1] == 0:
        nothing = np.zeros((model.intercept_.size, model.n_features_in_))
        return _add_linear(graph, samples, nothing, model.intercept_)
    vectors = _dense(model.support_vectors_)
    if kernel.function == "poly":
        polynomial = _Polynomial(kernel, vectors, dual, model.intercept_)
        return _add_polynomial(graph, samples, polynomial)
    if kernel.function == "rbf":
        values = graph.add("Exp", _add_exponents(graph, samples, vectors, kernel.gamma))
    else:
        products = graph.add("MatMul", samples, graph.hold(kernel.gamma * vectors.T))
        values = graph.add("Tanh", graph.add("Add", products, graph.hold(float(kernel.coef0))))
    return _add_linear(graph, values, dual, model.intercept_)


def _add_linear(graph: _Graph, samples: str, coef: FloatArray, intercept: FloatArray) -> str:
    """Nodes for ``<coef, x> + intercept``."""
    products = graph.add("MatMul", samples, graph.hold(coef.T))
    return graph.add("Add", products, graph.hold(intercept))


def _add_polynomial(graph: _Graph, samples: str, polynomial: _Polynomial) -> str:
    """Nodes for the decision values of a polynomial kernel, by Horner's rule in B."""
    moved = graph.add("Sub", samples, graph.hold(polynomial.centre))
    pulls = graph.add("MatMul", moved, graph.hold(polynomial.pull))
    # Of D_j itself, which is linear in s, sums are linear as well: it stands for s.
    powers = [moved]
    if polynomial.degree > 1:
        products = graph.add("MatMul", moved, graph.hold(polynomial.products))
        powers.append(graph.add("Mul", products, products))
        while len(powers) < polynomial.degree:
            powers.append(graph.add("Mul", powers[-1], products))
    # A zero for every sample, so that there are as many scores even without any power of x.
    scores = graph.add("Mul", pulls, graph.hold(0.0))
    for r in reversed(range(polynomial.degree + 1)):
        term = graph.hold(polynomial.constant(r))
        for k in range(1, polynomial.degree - r + 1):
            part = graph.add("MatMul", powers[k - 1], graph.hold(polynomial.factors(k, r)))
            term = graph.add("Add", part, term)
        scores = graph.add("Add", graph.add("Mul", scores, pulls), term)
    return scores


def _add_exponents(graph: _Graph, samples: str, vectors: FloatArray, gamma: float) -> str:
    """Nodes for ``-gamma |x - z|^2``, seen from the centre of the support vectors.

    Without it data far from the origin would lose the digits of their distances.
    """
    centre = vectors.mean(axis=0)
    others = vectors - centre
    moved = graph.add("Sub", samples, graph.hold(centre))
    squares = graph.add("Mul", moved, moved)
    own = graph.add("MatMul", squares, graph.hold(np.full((centre.size, 1), -gamma)))
    products = graph.add("MatMul", moved, graph.hold(2.0 * gamma * others.T))
    theirs = graph.hold(-gamma * np.einsum("ij,ij->i", others, others))
    return graph.add("Add", graph.add("Add", products, own), theirs)


def _dense(vectors: Any) -> FloatArray:
    """Support vectors as an array: graphs hold no sparse ones."""
    if 8 * vectors.shape[0] * vectors.shape[1] >= _LARGEST_MODEL:
        raise ValueError(
            f"{vectors.shape[0]} support vectors of {vectors.shape[1]} features make a model of "
            "more than 2 GB, which ONNX cannot hold in one file. Take LinearOWASVC, fewer "
            "features (sklearn.decomposition.TruncatedSVD) or fewer samples."
        )
    return np.asarray(vectors.toarray() if is_sparse(vectors) else vectors, dtype=np.float64)


class _Polynomial:
    r"""Decision values of a polynomial kernel, seen from the centre m of the support vectors.

    With ``x = m + s``, ``z_j = m + t_j``: ``gamma <x, z_j> + coef0 = B + Q_j + D_j``, where
    ``B = gamma <s, m>``, ``Q_j = gamma <m, z_j> + coef0`` and ``D_j = gamma <s, t_j>``. So

    .. math::

        \sum_j c_j (B + Q_j + D_j)^p
            = \sum_{r,k} \binom{p}{k} \binom{p-k}{r} B^r \sum_j c_j Q_j^{p-k-r} D_j^k.

    The terms without D_j are numbers, in which large powers cancel; they are added up exactly.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray of shape (n_vectors, n_features)
        The support vectors.
    dual : ndarray of shape (n_problems, n_vectors)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        The intercepts.
    """

    def __init__(
        self, kernel: Kernel, vectors: FloatArray, dual: FloatArray, intercept: FloatArray
    ) -> None:
        self.degree = int(kernel.degree)
        self.centre = vectors.mean(axis=0)
        others = vectors - self.centre
        self.products = kernel.gamma * others.T
        self.pull = kernel.gamma * self.centre[:, np.newaxis]
        self._dual = dual
        self._intercept = intercept
        base = Fraction(kernel.gamma * exact_dot(self.centre, self.centre) + kernel.coef0)
        self._bases = [base + Fraction(one) for one in (others @ self.pull).ravel().tolist()]

    def constant(self, r: int) -> FloatArray:
        """What belongs to ``B^r`` without any ``D_j``; to r = 0 the intercept as well."""
        powers = [base ** (self.degree - r) for base in self._bases]
        sums = [
            sum(map(mul, map(Fraction, row), powers), Fraction(0.0 if r else start))
            for row, start in zip(self._dual.tolist(), self._intercept.tolist(), strict=True)
        ]
        return np.array([float(comb(self.degree, r) * total) for total in sums])

    def factors(self, k: int, r: int) -> FloatArray:
        """What ``D_j^k`` is multiplied by in what belongs to ``B^r``; for k = 1 what s is."""
        bases = np.array([float(one) for one in self._bases])
        ways = comb(self.degree, k) * comb(self.degree - k, r)
        factors = (ways * self._dual * bases ** (self.degree - k - r)).T
        return self.products @ factors if k == 1 else factors


class _Graph:
    """Nodes and constants of a graph under construction, without a thought for names."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope = scope
        self._container = container
        self._onnx = require("onnx", PURPOSE, EXTRA)

    def hold(self, values: Any) -> str:
        """A constant; its name."""
        array = np.asarray(values)
        name = self._scope.get_unique_variable_name("constant")
        if array.dtype.kind == "U":
            kind = self._onnx.TensorProto.STRING
            content = [text.encode() for text in array.ravel().tolist()]
            self._container.add_initializer(name, kind, list(array.shape), content)
        else:
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array))
            # Of an array of no dimension numpy makes one of one.
            tensor.ClearField("dims")
            tensor.dims.extend(array.shape)
            self._container.add_initializer(name, None, None, tensor)
        return str(name)

    def add(self, operation: str, *inputs: str, output: str | None = None, **options: Any) -> str:
        """A node; the name of its output."""
        result = output or str(self._scope.get_unique_variable_name(operation.lower()))
        name = self._scope.get_unique_operator_name(operation)
        self._container.add_node(operation, list(inputs), result, name=name, **options)
        return result

    def cast(self, value: str, dtype: Any, output: str | None = None) -> str:
        """A conversion to a type of numpy."""
        to = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, output=output, to=to)

    def merge(self, variables: Any, dtype: Any) -> str:
        """Variables side by side, as numbers of one type."""
        parts = [self.cast(variable.full_name, dtype) for variable in variables]
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)
