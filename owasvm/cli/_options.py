"""The options of ``owasvm fit`` that make the classifier."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from typing import Any

from owasvm.cli._errors import UsageError, listing, refuse_unknown

MODELS = {"exact": "OWASVC", "linear": "LinearOWASVC", "two-step": "TwoStepOWASVC"}
SCALINGS = ("standard", "minmax", "maxabs", "none")
KERNELS = ("linear", "poly", "rbf", "sigmoid")
WEIGHTS = {
    "uniform": "the classical SVM",
    "basic": "quantifier r^A; convex for A <= 1",
    "quadratic": "quantifier 1 / (1 - A sqrt(r)); convex for A <= 1/3",
    "exponential": "quantifier exp(-A r); convex",
    "trigonometric": "quantifier arcsin(A r); not convex",
    "superquantile": "only the worst share A of the rows counts; convex",
    "trimmed": "the worst share A of the rows is ignored; not convex",
    "max-entropy": "weights of largest entropy with orness A; convex for A >= 1/2",
    "olympic": "only the middle share A of the rows counts; not convex",
}

#: For the epilog of commands that take weights.
WEIGHTS_MANUAL = "".join(
    [
        "rank weights (A is --alpha):\n",
        *(f"  {name:<14} {text}\n" for name, text in WEIGHTS.items()),
    ]
)

# Parameters of the estimators that have no meaning for a model.
_KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
_EXACT_PARAMETERS = ("loss", "solver", "mip_gap", "time_limit")
_FOREIGN = {"exact": (), "linear": _KERNEL_PARAMETERS, "two-step": _EXACT_PARAMETERS}


def positive(text: str) -> float:
    """A finite number above 0."""
    value = number(text)
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return value


def not_negative(text: str) -> float:
    """A finite number, 0 or above."""
    value = number(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f"must be 0 or above, got {text}")
    return value


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def count(text: str) -> int:
    """A whole number, 0 or above."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or above, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A seed as numpy takes them."""
    value = count(text)
    if value >= 2**32:
        raise argparse.ArgumentTypeError(f"must be below 2^32, got {text}")
    return value


def _gamma(text: str) -> float | str:
    return text if text in {"scale", "auto"} else not_negative(text)


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """Where random numbers begin."""
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="NUMBER",
        help="seed of the folds, and of solvers that draw random numbers (default: 0)",
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that make the classifier; those not given are None."""
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model",
        choices=tuple(MODELS),
        default="exact",
        help="exact: the OWA-SVM with any kernel (default); linear: the same with a linear "
        "kernel, for many rows; two-step: the heuristic that ranks the deviations of a first SVM",
    )
    model.add_argument(
        "--C", type=positive, metavar="NUMBER", help="factor of the loss (default: 1)"
    )
    model.add_argument(
        "--weights",
        metavar="NAME",
        help="rank weights, see below (default: basic)",
    )
    model.add_argument(
        "--alpha", type=number, metavar="NUMBER", help="shape of the weights (default: 0.6)"
    )
    model.add_argument(
        "--ranks",
        metavar="NAME",
        help="rank deviations among all rows (all, default) or within each class (class)",
    )
    model.add_argument(
        "--loss",
        metavar="NAME",
        help="hinge (default), or squared_hinge, for weights that never fall",
    )
    model.add_argument(
        "--kernel", metavar="NAME", help=f"kernel: {', '.join(KERNELS)} (default: rbf)"
    )
    width = model.add_mutually_exclusive_group()
    width.add_argument(
        "--gamma",
        type=_gamma,
        metavar="NUMBER",
        help="coefficient of the kernels rbf, poly and sigmoid, or 'scale' (default) or 'auto'",
    )
    width.add_argument(
        "--sigma",
        type=positive,
        metavar="NUMBER",
        help="width of the rbf kernel instead: gamma = 1 / (2 sigma^2)",
    )
    model.add_argument(
        "--degree", type=count, metavar="NUMBER", help="degree of the poly kernel (default: 3)"
    )
    model.add_argument(
        "--coef0",
        type=number,
        metavar="NUMBER",
        help="constant of the poly and sigmoid kernels (default: 0)",
    )
    model.add_argument(
        "--class-weight",
        metavar="WEIGHTS",
        help="'balanced' gives every class the same total weight; or factors by class, such as "
        "yes=2,no=1",
    )
    model.add_argument(
        "--scale",
        choices=SCALINGS,
        help="scaling of the features, learnt from the training rows and kept in the model file: "
        "standard (mean 0, variance 1), minmax (to [-1, 1]), maxabs (zero stays zero) or none "
        "(default: standard; none for svmlight files, which usually come scaled)",
    )
    _add_solver_options(parser)


def _add_solver_options(parser: argparse.ArgumentParser) -> None:
    solver = parser.add_argument_group("the solver")
    solver.add_argument(
        "--solver",
        metavar="NAME",
        help="auto (default), newton (convex weights), branch-and-bound or dca (any weights, "
        "globally or locally), or a model of the paper: assignment, ogryczak-tamir, "
        "assignment-dual, miqp (see 'owasvm solvers')",
    )
    solver.add_argument(
        "--tol",
        type=positive,
        metavar="NUMBER",
        help="relative gap to reach with convex weights (default: 1e-6); with --model two-step "
        "the tolerance of LIBSVM (default: 1e-10)",
    )
    solver.add_argument(
        "--mip-gap",
        type=not_negative,
        metavar="NUMBER",
        help="relative gap to reach with other weights (default: 1e-4)",
    )
    solver.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="for each fit of a class; the best point found is kept (default: none)",
    )


def estimator(arguments: argparse.Namespace, labels: Any) -> Any:
    """The classifier that the options describe.

    Parameters
    ----------
    arguments : argparse.Namespace
        Parsed options of :func:`add_model_options`.
    labels : ndarray of shape (n_samples,)
        Labels of the data, for class weights by label.

    Returns
    -------
    estimator : estimator
        Not fitted.
    """
    import numpy as np

    import owasvm

    parameters = _parameters(arguments)
    if arguments.class_weight is not None:
        parameters["class_weight"] = class_weights(
            arguments.class_weight, np.unique(labels).tolist()
        )
    if arguments.model != "two-step":
        parameters["random_state"] = arguments.seed
    return getattr(owasvm, MODELS[arguments.model])(**parameters)


def names_a_model(arguments: argparse.Namespace) -> bool:
    """Whether any option of :func:`add_model_options` was given."""
    others = (arguments.class_weight, arguments.scale)
    return bool(_parameters(arguments)) or arguments.model != "exact" or any(others)


def check_model_options(arguments: argparse.Namespace) -> None:
    """Refuse unknown names and options that have no meaning together."""
    parameters = _parameters(arguments)
    for name in _FOREIGN[arguments.model]:
        if name in parameters:
            option = "sigma" if name == "gamma" and arguments.sigma else name.replace("_", "-")
            raise UsageError(f"--{option} does not apply to --model {arguments.model}")
    _check_name("--weights", arguments.weights, WEIGHTS)
    _check_name("--kernel", arguments.kernel, KERNELS)
    if arguments.sigma is not None and arguments.kernel not in {None, "rbf"}:
        raise UsageError(f"--sigma is the width of --kernel rbf; the kernel is {arguments.kernel}")
    if arguments.solver is not None:
        from owasvm.solvers import SOLVERS

        _check_name("--solver", arguments.solver, SOLVERS)
    if arguments.ranks is not None:
        from owasvm.grouping import RANKS

        _check_name("--ranks", arguments.ranks, RANKS)
    if arguments.loss is not None:
        from owasvm.losses import LOSSES

        _check_name("--loss", arguments.loss, LOSSES)
    _check_weights(arguments.weights or "basic", arguments.alpha)


def class_weights(text: str, classes: Sequence[Any]) -> str | dict[Any, float]:
    """What an option ``--class-weight`` means."""
    if text == "balanced":
        return text
    by_text = {str(label): label for label in classes}
    factors = {}
    for part in text.split(","):
        label, _, factor = part.rpartition("=")
        try:
            value = not_negative(factor)
        except argparse.ArgumentTypeError as error:
            raise UsageError(
                f"--class-weight {text!r} must be 'balanced' or look like yes=2,no=1; "
                f"the part {part!r} {error}"
            ) from error
        if label not in by_text:
            raise UsageError(
                f"--class-weight names the class {label!r}; there is {listing(by_text)}"
            )
        factors[by_text[label]] = value
    return {label: factors.get(label, 1.0) for label in classes}


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Parameters of the estimator out of the options that were given."""
    gamma = arguments.gamma
    if arguments.sigma is not None:
        gamma = 1.0 / (2.0 * arguments.sigma**2)
    parameters = {
        "C": arguments.C,
        "weights": arguments.weights,
        "alpha": arguments.alpha,
        "ranks": arguments.ranks,
        "loss": arguments.loss,
        "kernel": arguments.kernel,
        "gamma": gamma,
        "degree": arguments.degree,
        "coef0": arguments.coef0,
        "solver": arguments.solver,
        "tol": arguments.tol,
        "mip_gap": arguments.mip_gap,
        "time_limit": arguments.time_limit,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def _check_name(option: str, value: str | None, known: Iterable[str]) -> None:
    if value is not None and value not in known:
        refuse_unknown(option, value, known)


def _check_weights(family: str, alpha: float | None) -> None:
    """Refuse a shape outside the range of the family, in the family's words."""
    if alpha is None:
        return
    from owasvm.weights import owa_weights

    try:
        owa_weights(2, family, alpha)
    except ValueError as error:
        raise UsageError(f"--alpha {alpha:g} and --weights {family}: {error}") from error
