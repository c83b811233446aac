"""``owasvm inspect``: rank the rows of a data file by how suspicious their labels are."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from owasvm.cli._data import MANUAL, add_reading_options, reading_options
from owasvm.cli._errors import UsageError, counted, warn
from owasvm.cli._options import (
    WEIGHTS_MANUAL,
    add_model_options,
    add_seed_option,
    check_model_options,
    check_single,
    count,
    estimator,
    names_a_model,
)
from owasvm.cli._output import (
    add_output_options,
    check_output_options,
    escape_formulas,
    write_table,
)
from owasvm.cli._packages import check_packages
from owasvm.cli._pipeline import add_pipeline_options, make_model, transform
from owasvm.cli._progress import check_size
from owasvm.cli._training import (
    add_training_options,
    check_classes,
    explain_refusals,
    keep_early_stops,
    read_training,
)

HELP = "rank the rows of a data file by how suspicious their labels are"

_DESCRIPTION = """\
Find labels that look wrong. Every row is judged by classifiers that were
trained on other rows: by cross-validation, several times over with other folds.

The judges are six classical SVMs on standardised features, of two C and three
widths, averaged by how well they predict; or, with any option of the model, the
one that 'owasvm fit' would train with these options.
"""
_EPILOG = f"""\
the output:
  A table with one line per row of the data, the most suspicious first: 'row',
  its number, 1 for the first row of data; 'label', as it is in the file;
  'suggested', the class that the classifiers prefer; 'score', positive where
  that is another class. A score ranks rows and is no probability: look at the
  first ones before you change any. CSV, or Parquet if the name ends in .parquet
  or .pq. Labels from strangers: see --escape-formulas.

{WEIGHTS_MANUAL}
{MANUAL}
examples:
  owasvm inspect patients.csv --target diagnosis --output suspicious.csv
  owasvm inspect patients.csv --target diagnosis --drop id | head
  owasvm inspect patients.csv --target diagnosis --C 10 \\
      --weights trimmed --alpha 0.1 --model two-step --output suspicious.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_training_options(parser)
    add_output_options(parser, "the rows")
    parser.add_argument(
        "--cv",
        type=count,
        default=5,
        metavar="FOLDS",
        help="folds of the cross-validation, stratified and shuffled (default: 5)",
    )
    parser.add_argument(
        "--repeats",
        type=count,
        default=5,
        metavar="NUMBER",
        help="how many times the folds are drawn (default: 5)",
    )
    add_seed_option(parser)
    add_pipeline_options(parser, is_saved=False)
    add_model_options(parser)
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, check, cross-validate, write, report."""
    import numpy as np

    from owasvm.inspection import label_issues

    check_packages("inspect", "pandas", files=(arguments.data, arguments.output))
    if arguments.cv < 2:
        raise UsageError(f"--cv {arguments.cv} leaves nothing to train on; use 2 or more folds")
    if arguments.repeats < 1:
        raise UsageError("--repeats 0 leaves nothing to judge by; use 1 or more")
    check_single(arguments, "inspect")
    check_model_options(arguments)
    options = reading_options(arguments)
    check_output_options(arguments, arguments.data)
    training = read_training(arguments, options)
    check_size(training, arguments)
    check_classes(training, arguments)
    model, samples = None, training.samples
    if names_a_model(arguments) or arguments.scale is not None:
        model = make_model(training.features, estimator(arguments, training.labels))
    elif training.notes.target is not None:
        samples = transform(training.features, samples)
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        issues = label_issues(
            model,
            samples,
            training.labels,
            arguments.cv,
            n_repeats=arguments.repeats,
            random_state=arguments.seed,
        )
    if caught:
        how_many = counted(len(caught), "warning")
        warn(f"{how_many} in the cross-validation; the first: {caught[0].message}")
    names = ("row", "label", "suggested", "score")
    columns: dict[str, Any] = {name: np.asarray(issues[name]) for name in names}
    rows = columns["row"]
    # As in all messages, the first row of data is row 1.
    columns["row"] = rows + 1
    n_suspicious = int((columns["score"] > 0.0).sum())
    if arguments.escape_formulas:
        columns |= {name: escape_formulas(columns[name]) for name in ("label", "suggested")}
    if training.ids is not None:
        ids = training.ids[rows]
        shown = escape_formulas(ids) if arguments.escape_formulas else ids
        columns = {arguments.id: shown, **columns}
    write_table(columns, arguments.output, "suspicious rows")
    # Where the rows go to standard output, they are all that goes there.
    report = sys.stderr if arguments.output == "-" else sys.stdout
    if arguments.output != "-":
        report.write(f"{'rows':<17} {arguments.output}: {counted(len(issues), 'row')}\n")
    report.write(
        f"{'suspicious':<17} {n_suspicious} of {len(issues)} rows, where another class than the "
        "label is preferred\n"
    )
    return 0
