"""``owasvm reproduce``: the paper's experiments, from the data to the report."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from owasvm.cli._errors import UsageError, complain, refuse_unknown, warn
from owasvm.cli._options import count, positive
from owasvm.cli._packages import REPORT_PACKAGES, check_packages
from owasvm.experiments.paper import ALPHAS, DATASETS, MODELS, QUANTIFIERS

if TYPE_CHECKING:
    from owasvm.experiments.plan import Plan
    from owasvm.experiments.runner import Summary

HELP = "repeat the paper's experiments and write their report"

_DESCRIPTION = """\
Repeat the experiments of the paper: fit its six models over a grid of parameters by
cross-validation, then write the report with our tables beside the printed ones.

Every fit is on disk as soon as it is finished. A run that was stopped, or killed, goes on where it
was with the same command; datasets, models and folds can be added to it later.
"""
_EPILOG = f"""\
datasets:
  {", ".join(DATASETS)}
  wbc comes with scikit-learn; 'owasvm datasets' tells where the others are looked for.

models:
  {", ".join(MODELS)}
  l2: classical; app: two-step heuristic; ex: exact; _K: with Gaussian kernel.

grids:
  paper   C and sigma in 2^-7 ... 2^7; the quantifiers {", ".join(QUANTIFIERS[:2])},
          {", ".join(QUANTIFIERS[2:])} with alpha {", ".join(f"{alpha:g}" for alpha in ALPHAS)}
  coarse  a small part of it, a minute or two for wbc, whose printed values are all within it
  --C, --sigma, --quantifier and --alpha narrow either of them.

examples:
  owasvm reproduce
  owasvm reproduce --grid paper --dataset wbc --output runs/paper
  owasvm reproduce --grid paper --dataset all --output runs/paper --jobs 8
  owasvm reproduce --grid paper --model ex-OWA-SVM_K --C 1 --C 2^5 --quantifier basic
  owasvm reproduce --backend dask --scheduler tcp://10.0.0.1:8786

Exit status: 0; 1 if some fits failed; 2 on bad usage; 130 after Ctrl-C.
"""
_FAILED = 1
_INTERRUPTED = 130


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    _add_experiment_options(parser)
    _add_solver_options(parser)
    _add_run_options(parser)


def _add_experiment_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the experiment (options can be given several times)")
    group.add_argument(
        "--dataset",
        action="append",
        metavar="NAME",
        help="a dataset, or 'all' (default: wbc)",
    )
    group.add_argument(
        "--model", action="append", metavar="NAME", help="a model (default: all six)"
    )
    group.add_argument(
        "--grid", choices=("coarse", "paper"), default="coarse", help="(default: %(default)s)"
    )
    group.add_argument("--C", action="append", type=_power, metavar="NUMBER", help="such as 2^-3")
    group.add_argument(
        "--sigma", action="append", type=_power, metavar="NUMBER", help="width of the kernel"
    )
    group.add_argument("--quantifier", action="append", metavar="NAME")
    group.add_argument("--alpha", action="append", type=positive, metavar="NUMBER")
    group.add_argument(
        "--folds",
        choices=("paper", "shuffled", "unshuffled", "both"),
        default="paper",
        help="ten stratified folds: shuffled; unshuffled; both; or as in the paper, shuffled, and "
        "for l2-SVM_K unshuffled as well (default: %(default)s)",
    )
    group.add_argument(
        "--nested",
        action=argparse.BooleanOptionalAction,
        help="add five inner folds to each shuffled fold, which tell what the choice of the best "
        "parameters is worth on new data (default: with the coarse grid)",
    )


def _add_solver_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("exact models whose weights fall somewhere")
    group.add_argument(
        "--general",
        choices=("dca", "branch-and-bound", "skip"),
        default="dca",
        help="how they are solved: dca, fast, a local optimum with a proven gap; "
        "branch-and-bound, to a gap of 1e-4 unless time runs out; or not at all "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="for each of these fits (default: none)",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--output",
        type=Path,
        default=Path("owasvm-results"),
        metavar="DIR",
        help="folder of the run (default: %(default)s)",
    )
    start = group.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        dest="fresh",
        action="store_const",
        const=False,
        default=False,
        help="go on with what is in the folder (default)",
    )
    start.add_argument(
        "--fresh", action="store_true", help="throw stored results in the folder away first"
    )
    group.add_argument(
        "--backend",
        choices=("joblib", "dask", "serial"),
        default="joblib",
        help="processes of this machine (joblib), a Dask cluster, or this process alone "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster; without it --backend dask starts processes of this machine",
    )
    group.add_argument(
        "--jobs", type=count, metavar="NUMBER", help="processes (default: one per core)"
    )
    group.add_argument(
        "--no-report", dest="report", action="store_false", help="do not write the report"
    )


def _power(text: str) -> float:
    """A positive number, powers such as 2^-3 allowed."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(?:\^|\*\*)\s*([+-]?[0-9]+)\s*", text)
    if match is None:
        return positive(text)
    try:
        return positive(repr(float(match[1]) ** int(match[2])))
    except (ValueError, ArithmeticError) as error:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}") from error


def run(arguments: argparse.Namespace) -> int:
    """Compute what is missing, then write the report."""
    if arguments.report:
        check_packages("reproduce", *REPORT_PACKAGES, extra="experiments")
    _check(arguments)
    plan = _plan(arguments)
    status = _compute(plan, arguments)
    if status == _INTERRUPTED or not arguments.report:
        return status
    return max(status, _report(arguments.output))


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot work, before anything is loaded."""
    for name in arguments.dataset or ():
        if name not in DATASETS and name != "all":
            refuse_unknown("--dataset", name, (*DATASETS, "all"))
    for name in arguments.model or ():
        if name not in MODELS:
            refuse_unknown("--model", name, MODELS)
    if arguments.jobs == 0:
        raise UsageError("--jobs must be 1 or more")
    if arguments.scheduler is not None and arguments.backend != "dask":
        raise UsageError("--scheduler belongs to --backend dask")
    if arguments.nested and arguments.folds == "unshuffled":
        raise UsageError(
            "--nested divides the shuffled folds; it does not go with unshuffled ones"
        )


def _plan(arguments: argparse.Namespace) -> Plan:
    from owasvm.experiments.plan import FitOptions, make_plan
    from owasvm.experiments.protocol import GRIDS, load_data

    try:
        grid = GRIDS[arguments.grid].narrow(
            arguments.C or (),
            arguments.sigma or (),
            arguments.quantifier or (),
            arguments.alpha or (),
        )
    except ValueError as error:
        raise UsageError(error) from error
    wanted = arguments.dataset or ["wbc"]
    nested = arguments.nested
    if nested is None:
        nested = arguments.grid == "coarse" and arguments.folds != "unshuffled"
    return make_plan(
        {name: load_data(name) for name in DATASETS if name in wanted or "all" in wanted},
        grid,
        models=[name for name in MODELS if arguments.model is None or name in arguments.model],
        folds=arguments.folds,
        nested=nested,
        options=FitOptions(general=arguments.general, time_limit=arguments.time_limit),
    )


def _compute(plan: Plan, arguments: argparse.Namespace) -> int:
    from owasvm.experiments.progress import Progress
    from owasvm.experiments.runner import RunRefusedError, WorkerLostError, run_plan

    begun: list[Summary] = []

    def on_start(summary: Summary) -> None:
        begun.append(summary)
        stored = f", {summary.n_stored:,} of them stored already" if summary.n_stored else ""
        _tell(
            f"{summary.n_cells:,} fits on {', '.join(plan.data)} ({arguments.grid} grid){stored}; "
            f"results in {arguments.output}"
        )

    try:
        summary = run_plan(
            plan,
            arguments.output,
            backend=arguments.backend,
            n_jobs=arguments.jobs,
            scheduler=arguments.scheduler,
            fresh=arguments.fresh,
            command=_command(arguments),
            progress=Progress(),
            on_start=on_start,
        )
    except RunRefusedError as error:
        raise UsageError(error) from error
    except WorkerLostError as error:
        complain(error)
        return _FAILED
    except KeyboardInterrupt:
        if not begun:
            raise
        done = begun[0].n_stored + begun[0].n_computed
        _tell(
            f"stopped; {done:,} of {begun[0].n_cells:,} fits are stored in {arguments.output}, "
            "the same command goes on from there"
        )
        return _INTERRUPTED
    if summary.n_computed:
        rate = summary.n_computed / summary.seconds
        _tell(f"{summary.n_computed:,} fits in {summary.seconds:.0f} s ({rate:.0f} per second)")
    for reason in summary.errors:
        warn(f"failed and skipped with the rest of its chain: {reason}")
    return _FAILED if summary.errors else 0


def _report(folder: Path) -> int:
    from owasvm.experiments.report import RunError, write_report

    try:
        page = write_report(folder)
    except RunError as error:
        complain(f"no report: {error}")
        return _FAILED
    sys.stdout.write(f"{page}\n")
    return 0


def _tell(message: str) -> None:
    sys.stderr.write(f"owasvm: {message}\n")
    sys.stderr.flush()


def _command(arguments: argparse.Namespace) -> str:
    """The command that leads to the same results, for the record."""
    words = ["owasvm", "reproduce", "--grid", arguments.grid]
    for option in ("dataset", "model", "C", "sigma", "quantifier", "alpha"):
        for value in getattr(arguments, option) or ():
            words += [f"--{option}", f"{value:g}" if isinstance(value, float) else value]
    if arguments.folds != "paper":
        words += ["--folds", arguments.folds]
    if arguments.nested is not None:
        words.append("--nested" if arguments.nested else "--no-nested")
    if arguments.general != "dca":
        words += ["--general", arguments.general]
    if arguments.time_limit is not None:
        words += ["--time-limit", f"{arguments.time_limit:g}"]
    return shlex.join(words)
