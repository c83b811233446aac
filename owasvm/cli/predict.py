"""``owasvm predict``: apply a saved classifier to a data file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from owasvm.cli._application import (
    Application,
    add_application_arguments,
    apply_model,
    load_model,
    note_unseen_labels,
)
from owasvm.cli._data import MANUAL, add_reading_options, reading_options
from owasvm.cli._errors import UsageError, counted, note
from owasvm.cli._output import (
    add_output_options,
    check_output_options,
    escape_formulas,
    write_table,
)
from owasvm.cli._packages import check_packages
from owasvm.cli._sources import name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

HELP = "apply a saved classifier to a data file"

_DESCRIPTION = """\
Apply a classifier that 'owasvm fit' saved to a data file, and write one
prediction per row.

Columns are matched by name: their order does not matter, and columns the model
does not know are ignored, with a note. If the column with the labels is there,
the accuracy is reported; 'owasvm evaluate' tells more.
"""
_EPILOG = f"""\
{MANUAL}
the output:
  A table with the column of ids, if 'owasvm fit' was told one, and the column
  'prediction'. --scores adds the decision values: one column 'decision' for two
  classes (positive values speak for the second), one column 'decision CLASS'
  per class for more. --proba adds one column 'probability CLASS' per class.
  CSV, or Parquet if the name ends in .parquet or .pq.
  Labels are written as they were learnt. If they come from strangers and the
  CSV file is meant for a spreadsheet, add --escape-formulas: a label such as
  '=HYPERLINK(...)' would be run by it.

Loading a model file runs no code, wherever the file comes from.

examples:
  owasvm predict patients.skops new.csv --output predictions.csv
  owasvm predict patients.skops new.csv --proba --output - | head
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_application_arguments(parser)
    add_output_options(parser, "the predictions")
    parser.add_argument(
        "--scores", "--decision", action="store_true", help="write the decision values as well"
    )
    parser.add_argument(
        "--proba",
        action="store_true",
        help="write probabilities as well, for models of 'owasvm fit --proba'",
    )
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        help="column to carry into the output (default: that of 'owasvm fit')",
    )
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Load, read, predict, write, report."""
    check_packages("predict", "pandas", "skops", files=(arguments.data, arguments.output))
    options = reading_options(arguments)
    check_output_options(arguments, arguments.model, arguments.data)
    model, notes = load_model(arguments.model, arguments.max_model_size)
    if arguments.proba and not hasattr(model, "predict_proba"):
        raise UsageError(
            f"{arguments.model} has no probabilities: train it again with 'owasvm fit --proba', "
            "or take decision values with --scores"
        )
    if arguments.id is not None:
        notes = replace(notes, id=arguments.id)
    applied = apply_model(arguments, model, notes, options)
    note_unseen_labels(applied)
    if notes.id is not None and not applied.matched.ids:
        if arguments.id is not None:
            raise UsageError(f"{name_of(arguments.data)} has no column {arguments.id!r} (--id)")
        note(f"{name_of(arguments.data)} has no column {notes.id!r}; predictions are without ids")
    if applied.matched.refusal:
        note(f"labels are not used: {applied.matched.refusal}")
    write_table(_columns(applied, arguments), arguments.output, "predictions")
    # Where the predictions go to standard output, they are all that goes there.
    report = sys.stderr if arguments.output == "-" else sys.stdout
    n_rows = applied.predictions.size
    if arguments.output != "-":
        report.write(f"{'predictions':<17} {arguments.output}: {counted(n_rows, 'row')}\n")
    if applied.matched.truth is not None:
        labelled = applied.predictions[applied.matched.is_labelled]
        report.write(f"{'accuracy':<17} {_accuracy(labelled, applied.matched.truth, n_rows)}\n")
    return 0


def _columns(applied: Application, arguments: argparse.Namespace) -> dict[str, Any]:
    """The table of predictions."""
    shown: Any = applied.predictions
    ids = applied.matched.ids
    if arguments.escape_formulas:
        shown = escape_formulas(shown)
        ids = {name: escape_formulas(values) for name, values in ids.items()}
    columns = {"prediction": shown}
    if arguments.scores and applied.values.ndim == 1:
        columns["decision"] = applied.values
    elif arguments.scores:
        columns |= _by_class("decision", applied.values, applied.classes)
    if arguments.proba:
        columns |= _by_class("probability", applied.probabilities, applied.classes)
    for name in ids:
        if name in columns:
            raise UsageError(f"the column {name!r} of ids is called like one of the output")
    return ids | columns


def _by_class(what: str, values: Any, classes: NDArray[Any]) -> dict[str, Any]:
    return {f"{what} {label}": values[:, column] for column, label in enumerate(classes)}


def _accuracy(predictions: NDArray[Any], truth: NDArray[Any], n_rows: int) -> str:
    """The share of rows predicted right, of those that have a label."""
    # As text, because a column of numbers may be read as text where one value is no number.
    hits = int((truth.astype(str) == predictions.astype(str)).sum())
    rows = f"{hits} of {counted(truth.size, 'row')}"
    if truth.size < n_rows:
        n_more = n_rows - truth.size
        rows += f"; {n_more} more {'has' if n_more == 1 else 'have'} no label"
    return f"{100.0 * hits / truth.size:.2f} % ({rows})"
