"""The options that make the classifier, one value or several to choose from."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from owasvm.cli._errors import UsageError, listing, note, refuse_unknown

T = TypeVar("T")

MODELS = {"exact": "OWASVC", "linear": "LinearOWASVC", "two-step": "TwoStepOWASVC"}
SEARCHES = {"exact": "OWASVCCV", "linear": "LinearOWASVCCV"}
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

DEFAULT_WEIGHTS = "basic"
DEFAULT_ALPHA = 0.6
DEFAULT_KERNEL = "rbf"

_GRIDS = ("C", "weights", "alpha", "gamma", "sigma")
# Parameters of the estimators that have no meaning for a model.
_KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
# The kernels that a parameter is for.
_KERNELS_WITH = {
    "gamma": ("rbf", "poly", "sigmoid"),
    "degree": ("poly",),
    "coef0": ("poly", "sigmoid"),
}
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


def _several(one: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Several values with commas between them."""

    def read(text: str) -> tuple[T, ...]:
        values = [part.strip() for part in text.split(",")]
        if "" in values:
            raise argparse.ArgumentTypeError(f"must be values with commas between, got {text!r}")
        return tuple(dict.fromkeys(one(value) for value in values))

    return read


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
        "--C",
        type=_several(positive),
        metavar="NUMBERS",
        help="factor of the loss (default: 1)",
    )
    model.add_argument(
        "--weights",
        type=_several(str),
        metavar="NAMES",
        help="rank weights, see below (default: basic)",
    )
    model.add_argument(
        "--alpha",
        type=_several(number),
        metavar="NUMBERS",
        help="shape of the weights (default: 0.6)",
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
        type=_several(_gamma),
        metavar="NUMBERS",
        help="coefficient of the kernels rbf, poly and sigmoid, or 'scale' (default) or 'auto'",
    )
    width.add_argument(
        "--sigma",
        type=_several(positive),
        metavar="NUMBERS",
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
    solver.add_argument(
        "--max-iter",
        type=count,
        metavar="NUMBER",
        help="most iterations of a fit of a class (default: 1000; with --model two-step no limit)",
    )


def estimator(arguments: argparse.Namespace, labels: Any) -> Any:
    """The classifier that the options describe.

    Parameters
    ----------
    arguments : argparse.Namespace
        Parsed options of :func:`add_model_options`, one value each.
    labels : ndarray of shape (n_samples,)
        Labels of the data, for class weights by label.

    Returns
    -------
    estimator : estimator
        Not fitted.
    """
    import owasvm

    parameters = _shared_parameters(arguments, labels)
    parameters |= {name: values[0] for name, values in _choices(arguments).items()}
    return getattr(owasvm, MODELS[arguments.model])(**parameters)


def searches(arguments: argparse.Namespace, labels: Any, folds: Any) -> list[Any]:
    """The choices among the values that the options give, by cross-validation.

    Parameters
    ----------
    arguments : argparse.Namespace
        Parsed options of :func:`add_model_options`, several values for some.
    labels : ndarray of shape (n_samples,)
        Labels of the data, for class weights by label.
    folds : splitter
        Folds of the cross-validation.

    Returns
    -------
    searches : list of estimators
        Not fitted, one for each family of weights, because each has shapes of its own.
    """
    import owasvm

    shared = _shared_parameters(arguments, labels)
    choices = _choices(arguments)
    families = choices.pop("weights", (DEFAULT_WEIGHTS,))
    alphas = choices.pop("alpha", (DEFAULT_ALPHA,))
    # With the one value that an estimator has by itself, where none was given.
    grids = {f"{name}s": list(values) for name, values in choices.items()}
    grids = {"Cs": [1.0], **grids}
    name = SEARCHES[arguments.model]
    return [
        getattr(owasvm, name)(
            weights=family, alphas=_shapes(family, alphas), cv=folds, **grids, **shared
        )
        for family in families
    ]


def chooses(arguments: argparse.Namespace) -> bool:
    """Whether there is anything to choose: several values may make one candidate."""
    choices = _choices(arguments)
    families = choices.pop("weights", (DEFAULT_WEIGHTS,))
    alphas = choices.pop("alpha", (DEFAULT_ALPHA,))
    n_weights = sum(len(_shapes(family, alphas)) for family in families)
    return n_weights > 1 or any(len(values) > 1 for values in choices.values())


def check_single(arguments: argparse.Namespace, command: str) -> None:
    """Refuse several values where nothing chooses among them."""
    for name in _GRIDS:
        if len(getattr(arguments, name) or ()) > 1:
            raise UsageError(
                f"--{name}: {command} takes one value; 'owasvm fit' chooses among several"
            )


def names_a_model(arguments: argparse.Namespace) -> bool:
    """Whether any option of :func:`add_model_options` was given."""
    return (
        bool(_parameters(arguments) or _choices(arguments))
        or arguments.model != "exact"
        or arguments.class_weight is not None
    )


def check_model_options(arguments: argparse.Namespace) -> None:
    """Refuse unknown names and options that have no meaning together."""
    parameters = _parameters(arguments) | _choices(arguments)
    for name in _FOREIGN[arguments.model]:
        if name in parameters:
            option = "sigma" if name == "gamma" and arguments.sigma else name.replace("_", "-")
            raise UsageError(f"--{option} does not apply to --model {arguments.model}")
    if chooses(arguments) and arguments.model not in SEARCHES:
        raise UsageError(
            f"--model {arguments.model} takes one value of each option; --model exact and linear "
            "choose among several"
        )
    for family in arguments.weights or ():
        _check_name("--weights", family, WEIGHTS)
    _check_name("--kernel", arguments.kernel, KERNELS)
    if arguments.model != "linear":
        _check_kernel_options(arguments)
    if arguments.solver is not None:
        from owasvm.solvers import SOLVERS

        _check_name("--solver", arguments.solver, SOLVERS)
    if arguments.ranks is not None:
        from owasvm.grouping import RANKS

        _check_name("--ranks", arguments.ranks, RANKS)
    if arguments.loss is not None:
        from owasvm.losses import LOSSES

        _check_name("--loss", arguments.loss, LOSSES)
    if arguments.alpha is not None:
        _check_shapes(arguments.weights or (DEFAULT_WEIGHTS,), arguments.alpha)


def _check_kernel_options(arguments: argparse.Namespace) -> None:
    """Refuse options of another kernel, which would change nothing."""
    kernel = arguments.kernel or DEFAULT_KERNEL
    if arguments.sigma is not None and kernel != "rbf":
        raise UsageError(f"--sigma is the width of --kernel rbf; the kernel is {kernel}")
    for option, kernels in _KERNELS_WITH.items():
        if getattr(arguments, option) is not None and kernel not in kernels:
            raise UsageError(
                f"--{option} has no effect on --kernel {kernel}; leave it out, or take --kernel "
                f"{' or '.join(kernels)}"
            )


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


def _choices(arguments: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    """Parameters of the estimator that may have several values, out of the options given."""
    choices = {name: getattr(arguments, name) for name in ("C", "weights", "alpha", "gamma")}
    if arguments.sigma is not None:
        choices["gamma"] = tuple(1.0 / (2.0 * sigma**2) for sigma in arguments.sigma)
    return {name: values for name, values in choices.items() if values is not None}


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The other parameters of the estimator out of the options that were given."""
    names = (
        "ranks",
        "loss",
        "kernel",
        "degree",
        "coef0",
        "solver",
        "tol",
        "mip_gap",
        "time_limit",
        "max_iter",
    )
    given = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _shared_parameters(arguments: argparse.Namespace, labels: Any) -> dict[str, Any]:
    """Parameters that are the same for all candidates."""
    import numpy as np

    parameters = _parameters(arguments)
    if arguments.class_weight is not None:
        parameters["class_weight"] = class_weights(
            arguments.class_weight, np.unique(labels).tolist()
        )
    if arguments.model != "two-step":
        parameters["random_state"] = arguments.seed
    return parameters


def _check_name(option: str, value: str | None, known: Iterable[str]) -> None:
    if value is not None and value not in known:
        refuse_unknown(option, value, known)


def _check_shapes(families: Sequence[str], alphas: Sequence[float]) -> None:
    """Refuse families without a shape, and shapes that no family has; note what does not pair."""
    for family in families:
        if not _shapes(family, alphas):
            raise UsageError(f"--weights {family}: {_refusal(family, alphas[0])}")
    for alpha in alphas:
        refusals = {family: _refusal(family, alpha) for family in families}
        left_out = [family for family, refusal in refusals.items() if refusal]
        if len(left_out) == len(families):
            raise UsageError(
                f"--alpha {alpha:g} and --weights {left_out[0]}: {refusals[left_out[0]]}"
            )
        if left_out:
            note(f"--alpha {alpha:g} is left out for the weights {', '.join(left_out)}")


def _shapes(family: str, alphas: Sequence[float]) -> list[float]:
    """The shapes that a family of weights has, out of those given."""
    # Uniform weights have no shape: one value is as good as all.
    given = alphas[:1] if family == "uniform" else alphas
    return [alpha for alpha in given if _refusal(family, alpha) is None]


def _refusal(family: str, alpha: float) -> str | None:
    """Why a family of weights does not have a shape, in its own words; None if it has."""
    from owasvm.weights import owa_weights

    try:
        owa_weights(2, family, alpha)
    except ValueError as error:
        return str(error)
    return None
