"""The inputs of an exported model: what its users will hand over, and what skl2onnx is told.

skl2onnx takes columns of one numeric type only, and some of its converters join columns in single
precision. So it is told of numbers of one type, and the graph converts and joins what it is given
before anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from owasvm.export._converters import EXTRA, PURPOSE
from owasvm.extras import require

#: Name of the input for samples that are a matrix.
MATRIX = "X"

_TEXT = "OUT"  # kinds of data types of numpy


@dataclass(frozen=True)
class Inputs:
    """Inputs of a graph.

    Parameters
    ----------
    given : dict of str to tuple
        Name, and data type of numpy and number of columns, of each input.
    number : type
        ``numpy.float32`` or ``numpy.float64``: what numbers become.
    is_matrix : bool
        Whether the model takes one matrix of numbers.
    """

    given: dict[str, tuple[np.dtype[Any], int]]
    number: type
    is_matrix: bool

    @classmethod
    def of(cls, model: Any, X: Any) -> Inputs:
        """Inputs for samples such as `X`: one of the columns each of a frame, else a matrix."""
        if hasattr(X, "columns"):
            given = _columns(model, X)
        else:
            matrix = X if hasattr(X, "dtype") else np.asarray(X)
            given = {MATRIX: (matrix.dtype, _check_width(model, matrix))}
        for name, (dtype, _) in given.items():
            if dtype.kind not in f"biuf{_TEXT}":
                raise ValueError(f"{name} holds {dtype}; graphs take numbers and text only.")
        types = [dtype for dtype, _ in given.values()]
        has_text = any(_is_text(dtype) for dtype in types)
        single = all(_is_text(dtype) or dtype == np.float32 for dtype in types)
        return cls(
            given=given,
            number=np.float32 if single else np.float64,
            is_matrix=not (has_text or _takes_columns(model)),
        )

    def declared(self) -> list[tuple[str, Any]]:
        """What skl2onnx is told: names and types."""
        types = require("skl2onnx.common.data_types", PURPOSE, EXTRA)
        number = types.DoubleTensorType if self.number is np.float64 else types.FloatTensorType
        if self.is_matrix:
            return [(MATRIX, number([None, sum(width for _, width in self.given.values())]))]
        return [
            (name, (types.StringTensorType if _is_text(dtype) else number)([None, width]))
            for name, (dtype, width) in self.given.items()
        ]

    def open(self, graph: Any) -> None:
        """Changes `graph` in place: it takes the inputs as they are given."""
        onnx = require("onnx", PURPOSE, EXTRA)
        helper = onnx.helper
        taken = [output.name for output in graph.output if output.name in self.given]
        if taken:
            raise ValueError(
                f"Rename the columns {taken} of X: outputs of the graph are so named."
            )
        inside = "model/"
        while any(name.startswith(inside) for name in self.given):
            inside = f"_{inside}"
        onnx.compose.add_prefix_graph(
            graph, inside, rename_nodes=False, rename_outputs=False, inplace=True
        )
        targets = [declared.name for declared in graph.input]
        parts = targets
        if self.is_matrix:
            parts = [f"{inside}column {k}" for k in range(len(self.given))]
        number = helper.np_dtype_to_tensor_dtype(np.dtype(self.number))
        inputs, nodes = [], []
        for part, (name, (dtype, width)) in zip(parts, self.given.items(), strict=True):
            if _is_text(dtype):
                kind = onnx.TensorProto.STRING
                nodes.append(helper.make_node("Identity", [name], [part]))
            else:
                kind = helper.np_dtype_to_tensor_dtype(dtype)
                nodes.append(helper.make_node("Cast", [name], [part], to=number))
            inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))
        if self.is_matrix:
            nodes.append(helper.make_node("Concat", parts, targets, axis=1))
        nodes.extend(graph.node)
        for field, values in (("node", nodes), ("input", inputs)):
            graph.ClearField(field)
            getattr(graph, field).extend(values)


def _columns(model: Any, frame: Any) -> dict[str, tuple[np.dtype[Any], int]]:
    """The columns of a frame that a model was trained on, with their types."""
    names = list(getattr(model, "feature_names_in_", frame.columns))
    missing = [name for name in names if name not in list(frame.columns)]
    if missing:
        raise ValueError(f"X lacks columns that the model was trained on: {missing}.")
    if not hasattr(model, "feature_names_in_"):
        _check_width(model, frame)
    return {str(name): (frame[name].to_numpy().dtype, 1) for name in names}


def _check_width(model: Any, X: Any) -> int:
    """The number of columns, which is that of the features."""
    if len(X.shape) != 2:
        raise ValueError(f"X must be a matrix, one row a sample; got the shape {X.shape}.")
    n_features = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} columns, but the model was trained on {n_features} features."
        )
    return int(X.shape[1])


def _is_text(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _TEXT


def _takes_columns(model: Any) -> bool:
    """Whether a model picks columns by their names."""
    while not isinstance(model, ColumnTransformer):
        if isinstance(model, Pipeline):
            model = model.steps[0][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "calibrated_classifiers_"):
            model = model.calibrated_classifiers_[0].estimator
        else:
            return False
    return True
