"""``owasvm predict``: apply a saved classifier to a data file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._data import MANUAL, add_reading_options, read_data, reading_options
from owasvm.cli._errors import UsageError
from owasvm.cli._matching import match
from owasvm.cli._output import (
    add_output_options,
    check_output_options,
    escape_formulas,
    write_table,
)
from owasvm.cli._sources import in_words, size
from owasvm.cli._svmlight import is_sparse
from owasvm.persistence import MAX_BYTES as MAX_MODEL_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HELP = "apply a saved classifier to a data file"

_DESCRIPTION = """\
Apply a classifier that 'owasvm fit' saved to a data file, and write one
prediction per row.

Columns are matched by name: their order does not matter, and columns the model
does not know are ignored, with a note. If the column with the labels is there,
the accuracy is reported.
"""
_EPILOG = f"""\
{MANUAL}
the output:
  A table with the column 'prediction', and with --decision the decision values:
  one column 'decision' for two classes (positive values speak for the second),
  one column 'decision CLASS' per class for more (the largest wins). CSV, or
  Parquet if the name ends in .parquet or .pq.
  Labels are written as they were learnt. If they come from strangers and the
  CSV file is meant for a spreadsheet, add --escape-formulas: a label such as
  '=HYPERLINK(...)' would be run by it.

Loading a model file runs no code, wherever the file comes from.

examples:
  owasvm predict patients.skops new.csv --output predictions.csv
  owasvm predict patients.skops new.csv --decision --output - | head
"""
_BLOCK_ENTRIES = 2**22


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.add_argument("model", metavar="MODEL", type=Path, help="model file of 'owasvm fit'")
    parser.add_argument("data", metavar="DATA", type=Path, help="CSV, Parquet or svmlight file")
    add_output_options(parser, "the predictions")
    parser.add_argument(
        "--decision", action="store_true", help="write the decision values as well"
    )
    parser.add_argument(
        "--max-model-size",
        type=size,
        metavar="SIZE",
        default=MAX_MODEL_BYTES,
        help="most bytes that the model file may unpack to, such as 500M or 20G "
        f"(default: {in_words(MAX_MODEL_BYTES)})",
    )
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Load, read, predict, write, report."""
    options = reading_options(arguments)
    check_output_options(arguments, arguments.model, arguments.data)
    model, metadata = _load(arguments.model, arguments.max_model_size)
    matched = match(read_data(arguments.data, options), model, metadata)
    values = _apply(model, matched.samples, bool(metadata.get("is_sparse")), arguments)
    chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    predictions = model.classes_[chosen]
    shown = escape_formulas(predictions) if arguments.escape_formulas else predictions
    columns: dict[str, Any] = {"prediction": shown}
    if arguments.decision:
        columns.update(_decision_columns(values, model.classes_))
    write_table(columns, arguments.output, "predictions")
    # Where the predictions go to standard output, they are all that goes there.
    report = sys.stderr if arguments.output == "-" else sys.stdout
    if arguments.output != "-":
        report.write(f"{'predictions':<17} {arguments.output}: {predictions.size} rows\n")
    if matched.truth is not None:
        labelled = predictions[matched.is_labelled]
        report.write(f"{'accuracy':<17} {_accuracy(labelled, matched.truth, predictions.size)}\n")
    return 0


def _load(path: Path, max_bytes: int) -> tuple[Any, dict[str, Any]]:
    """The model, and what 'fit' noted about its data."""
    from owasvm import persistence

    if not path.exists():
        raise UsageError(f"there is no model file {path}")
    if not path.is_file():
        raise UsageError(f"{path} is no file, hence no model file")
    try:
        metadata = persistence.read_metadata(path, max_bytes=max_bytes).get("metadata")
        model = persistence.load(path, max_bytes=max_bytes)
    except persistence.ModelSizeError as error:
        raise UsageError(f"{error} The option is --max-model-size.") from error
    return model, metadata if isinstance(metadata, dict) else {}


def _apply(
    model: Any, samples: Any, trained_on_sparse: bool, arguments: argparse.Namespace
) -> NDArray[np.float64]:
    """Decision values, if the model has any for these samples."""
    import numpy as np

    failure = f"{arguments.model} cannot be applied to {arguments.data}"
    try:
        values = _decision_values(model, samples, trained_on_sparse)
    except MemoryError:
        raise
    except Exception as error:
        # The steps of a pipeline come out of a file, and fail as they like.
        raise UsageError(f"{failure}: {type(error).__name__}: {error}") from error
    n_classes = model.classes_.size
    if values.shape != (samples.shape[0],) + ((n_classes,) if n_classes > 2 else ()):
        raise UsageError(f"{failure}: its decision values have the shape {values.shape}")
    without_value = np.isnan(values).reshape(samples.shape[0], -1).any(axis=1)
    if without_value.any():
        raise UsageError(f"{failure}: row {int(without_value.argmax()) + 1} has no decision value")
    return values


def _decision_values(model: Any, samples: Any, trained_on_sparse: bool) -> NDArray[np.float64]:
    """Decision values; large sparse data is filled up in blocks for models of dense data."""
    import numpy as np

    if trained_on_sparse or not is_sparse(samples):
        return np.asarray(model.decision_function(samples))
    step = max(1, _BLOCK_ENTRIES // samples.shape[1])
    blocks = [
        model.decision_function(samples[start : start + step].toarray())
        for start in range(0, samples.shape[0], step)
    ]
    return np.concatenate(blocks)


def _decision_columns(values: NDArray[np.float64], classes: NDArray[Any]) -> dict[str, Any]:
    if values.ndim == 1:
        return {"decision": values}
    return {f"decision {label}": values[:, column] for column, label in enumerate(classes)}


def _accuracy(predictions: NDArray[Any], truth: NDArray[Any], n_rows: int) -> str:
    """The share of rows predicted right, of those that have a label."""
    # As text, because a column of numbers may be read as text where one value is no number.
    hits = int((truth.astype(str) == predictions.astype(str)).sum())
    rows = f"{hits} of {truth.size} rows"
    if truth.size < n_rows:
        rows += f"; {n_rows - truth.size} more have no label"
    return f"{100.0 * hits / truth.size:.2f} % ({rows})"
