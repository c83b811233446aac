"""``owasvm fit``: train a classifier on a data file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from owasvm.cli._data import MANUAL, add_reading_options, reading_options
from owasvm.cli._errors import UsageError, check_output, check_suffix, note, silence
from owasvm.cli._fitting import Trained, train
from owasvm.cli._options import (
    WEIGHTS_MANUAL,
    add_model_options,
    add_seed_option,
    check_model_options,
    chooses,
    count,
)
from owasvm.cli._packages import check_packages
from owasvm.cli._pipeline import add_pipeline_options
from owasvm.cli._progress import check_size, estimate, show_life, speak_late
from owasvm.cli._summary import record, summary
from owasvm.cli._training import (
    Training,
    add_training_options,
    check_classes,
    read_training,
)

HELP = "train a classifier on a data file and save it"

_DESCRIPTION = """\
Train an OWA-SVM on a data file, measure its accuracy by cross-validation, and
save it.

The classifier minimises 1/2 |w|^2 + C * sum_k weights[k] * (k-th smallest
deviation). With weights that never fall the problem is convex and solved to a
proven gap: the summary shows the objective reached, and a lower bound that no
classifier can go below.

--C, --weights, --alpha, --gamma and --sigma take several values with commas
between them. All combinations are tried then, by cross-validation on shared
folds, and the one of the best accuracy is trained on all rows.
"""
_EPILOG = f"""\
{WEIGHTS_MANUAL}
{MANUAL}
the model file:
  A skops archive (no pickle): loading it runs no code. It keeps categories,
  medians, scaling, the names of the columns and the labels. It is written in
  one piece: a run that fails leaves no file behind.

examples:
  owasvm fit patients.csv --target diagnosis --output patients.skops
  owasvm fit patients.csv --target diagnosis --id patient --proba \\
      --C 0.1,1,10 --weights basic,superquantile --alpha 0.3,0.6 \\
      --output patients.skops
  owasvm fit ionosphere_scale --sigma 2 --cv 10 --output ionosphere.skops
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    add_training_options(parser)
    parser.add_argument(
        "--rank-groups",
        metavar="COLUMN",
        help="column that names a group for each row, such as a hospital: no feature, but "
        "deviations are ranked within each group, so that the worst rows of every group count",
    )
    parser.add_argument(
        "--output", metavar="MODEL", type=Path, required=True, help="model file to write (*.skops)"
    )
    parser.add_argument(
        "--cv",
        type=count,
        default=5,
        metavar="FOLDS",
        help="folds of the cross-validation, stratified and shuffled (default: 5): they measure "
        "the accuracy, and choose where options have several values; 0 for none",
    )
    parser.add_argument(
        "--proba",
        action="store_true",
        help="learn probabilities as well, from the decision values of five more fits; the "
        "predictions are the most probable classes then",
    )
    parser.add_argument(
        "--json", action="store_true", help="write the summary as JSON on standard output"
    )
    add_seed_option(parser)
    add_pipeline_options(parser)
    add_model_options(parser)
    add_reading_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, check, estimate, train, save, report."""
    check_packages("fit", "pandas", "skops", files=(arguments.data,))
    check_model_options(arguments)
    _check_folds(arguments)
    _check_ranks(arguments)
    options = reading_options(arguments)
    check_output(arguments.output, arguments.data)
    check_suffix("--output", arguments.output, "a model file", ".skops")
    training = read_training(arguments, options, arguments.rank_groups)
    check_size(training, arguments)
    check_classes(training, arguments, ", or skip the cross-validation with --cv 0")
    trained = _train(training, arguments)
    _save(training, trained, arguments.output)
    if arguments.json:
        text = json.dumps(record(arguments, training, trained), indent=2, allow_nan=False) + "\n"
    else:
        text = summary(arguments, training, trained)
    sys.stdout.write(text)
    return 0


def _check_folds(arguments: argparse.Namespace) -> None:
    if arguments.cv == 1:
        raise UsageError("--cv 1 leaves nothing to train on; use 2 or more folds, or 0 for none")
    if arguments.cv == 0 and chooses(arguments):
        raise UsageError("--cv 0 leaves nothing to choose by; use 2 or more folds, or one value")


def _check_ranks(arguments: argparse.Namespace) -> None:
    if arguments.rank_groups is not None and arguments.ranks == "class":
        raise UsageError(
            "--ranks class and --rank-groups both say among whom deviations are ranked; leave one "
            "out, or name a column that holds pairs of group and class"
        )


def _train(training: Training, arguments: argparse.Namespace) -> Trained:
    """Train, and show life where that takes long."""

    def try_out(part: Training) -> None:
        with silence():
            train(part, arguments)

    seconds = estimate(training, arguments, try_out)
    with show_life(seconds, training.labels.size, arguments.solver) as verbose:
        report = note if verbose else speak_late()
        return train(training, arguments, verbose=verbose, report=report)


def _save(training: Training, trained: Trained, output: Path) -> None:
    from owasvm import persistence

    metadata = {
        **training.notes.as_metadata(),
        "n_rows": int(training.labels.size),
        "cross_validation": trained.scores,
    }
    persistence.save(trained.model, output, metadata=metadata)
