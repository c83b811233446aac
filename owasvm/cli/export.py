"""``owasvm export``: a saved classifier as a graph for prediction elsewhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from owasvm.cli._application import add_model_argument, load_model
from owasvm.cli._errors import UsageError, check_output, check_suffix, listing, note
from owasvm.cli._notes import Notes
from owasvm.cli._packages import check_packages

HELP = "write a saved classifier as an ONNX graph"

_DESCRIPTION = """\
Write a classifier that 'owasvm fit' saved as an ONNX graph, which runtimes for
many languages execute without Python and without owasvm. Categories, medians
and scaling are part of the graph.
"""
_EPILOG = """\
the graph:
  inputs   one per column, of shape (rows, 1), with the name of the column:
           numbers in double precision, or text; missing numbers are NaN.
           Columns of 'owasvm fit --no-header' are called '1', '2', '3' ... A
           model of an svmlight file has one input X of shape (rows, features)
  outputs  label: the predictions; probabilities: the probabilities of models
           of 'owasvm fit --proba', and the decision values of others, which
           ONNX calls so as well

examples:
  owasvm export patients.skops --onnx patients.onnx
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_model_argument(parser)
    parser.add_argument(
        "--onnx", metavar="OUT", type=Path, required=True, help="file to write (*.onnx)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Load, convert, write."""
    check_packages("export", "pandas", "skops")
    check_packages("export", "onnx", "skl2onnx", extra="onnx")
    check_output(arguments.onnx, arguments.model)
    check_suffix("--onnx", arguments.onnx, "an ONNX graph", ".onnx")
    model, notes = load_model(arguments.model, arguments.max_model_size, with_data=False)

    from owasvm.export import to_onnx
    from owasvm.files import replace_file

    try:
        graph = to_onnx(model, _make_example(model, notes))
    except ValueError as error:
        raise UsageError(f"{arguments.model} cannot be exported: {error}") from error
    with replace_file(arguments.onnx) as stream:
        stream.write(graph.SerializeToString())
    if notes.is_sparse:
        note("the model was trained on sparse data; the graph takes full rows")
    inputs = listing(declared.name for declared in graph.graph.input)
    sys.stdout.write(
        f"inputs            {inputs}\n"
        "outputs           'label', 'probabilities'\n"
        f"graph             {arguments.onnx}\n"
    )
    return 0


def _make_example(model: Any, notes: Notes) -> Any:
    """A row of the types that the model takes."""
    import numpy as np
    import pandas as pd

    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return np.zeros((1, int(model.n_features_in_)))
    return pd.DataFrame(
        {
            str(name): pd.Series([""], dtype=object) if name in notes.categories else [0.0]
            for name in names
        }
    )
