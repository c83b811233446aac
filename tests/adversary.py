"""A judge of fits that shares neither code nor rounding with the solvers.

A problem of ``tests/hostile.py`` is fitted by :func:`fit`, or in a process of its own by
:class:`Worker`, which survives hangs and crashes. :func:`verdict` lists the promises that the fit
broke. What it relies on is evaluated on the data as given, with twice the digits
(``tests/exact.py``): the objective of the stored classifier, and values of other classifiers.
"""

from __future__ import annotations

import multiprocessing
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from owasvm import OWASVC, LinearOWASVC
from tests.exact import EPS, ExactProblem, Rivals, exact_objective
from tests.hostile import (
    GENERATORS,
    HostileProblem,
    hostile_problem,
    ordinary_problem,
    shifted_problem,
)

__all__ = [
    "GENERATORS",
    "ExactProblem",
    "Fit",
    "HostileProblem",
    "Record",
    "Rivals",
    "Violation",
    "Worker",
    "exact_objective",
    "fit",
    "hostile_problem",
    "judge",
    "ordinary_problem",
    "shifted_problem",
    "stored_classifier",
    "verdict",
]

FloatArray = NDArray[np.float64]

# What a bound may exceed a feasible value by, relative to max(1, |value|).
BOUND_SLACK = 1e-9
# Seconds beyond its time limit that a fit may take.
GRACE = 2.0
# Seconds for a fit without a time limit, and beyond GRACE for one that is to be given up.
PATIENCE = 30.0
GIVE_UP = 6.0

# What a user can change: a message that names none of it has no remedy.
_USER_TERMS = re.compile(
    r"\b(X|C|alpha|gamma|degree|coef0|kernel|weights?|sample_weight|class|classes|features?|matrix)\b"
)

CLASSES = {"OWASVC": OWASVC, "LinearOWASVC": LinearOWASVC}


@dataclass
class Fit:
    """What came of a fit."""

    estimator: Any = None
    elapsed: float = 0.0
    caught: list[warnings.WarningMessage] = field(default_factory=list)
    error: BaseException | None = None


@dataclass(frozen=True)
class Violation:
    """A broken promise."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"[{self.kind}] {self.text}"


def fit(problem: HostileProblem) -> Fit:
    """Fit as a user would, warnings and errors kept."""
    estimator = CLASSES[problem.estimator](**problem.parameters)
    outcome = Fit(estimator)
    arguments = {} if problem.sample_weight is None else {"sample_weight": problem.sample_weight}
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if problem.warm_from is not None:
                estimator.set_params(**problem.warm_from).fit(problem.X, problem.y, **arguments)
                estimator.set_params(C=problem.parameters["C"])
                started = time.perf_counter()
            estimator.fit(problem.X, problem.y, **arguments)
        except Exception as error:
            outcome.error = error
        outcome.elapsed = time.perf_counter() - started
    outcome.caught = list(caught)
    return outcome


def stored_classifier(
    problem: HostileProblem, estimator: Any, exact: ExactProblem
) -> tuple[FloatArray, float]:
    """Coefficients and intercept as :class:`ExactProblem` takes them.

    ``coef_`` for linear kernels, ``dual_coef_`` of the samples of positive weight for others.
    """
    intercept = float(np.ravel(estimator.intercept_)[0])
    if problem.kernel == "linear":
        return np.ravel(estimator.coef_), intercept
    signed = np.zeros(problem.y.size)
    signed[estimator.support_] = np.ravel(estimator.dual_coef_)
    return signed[exact.rows], intercept


def verdict(
    problem: HostileProblem,
    estimator: Any,
    caught: list[warnings.WarningMessage] | None = None,
    elapsed: float = 0.0,
    error: BaseException | None = None,
    *,
    thorough: bool = True,
) -> list[Violation]:
    """The promises that a fit broke.

    Parameters
    ----------
    problem : HostileProblem
        What was fitted.
    estimator : OWASVC or LinearOWASVC
        The fitted estimator.
    caught : list of warnings
        What was warned about.
    elapsed : float
        Seconds.
    error : exception or None
        What was raised instead.
    thorough : bool, default=True
        Whether to look for rivals by other solvers too.
    """
    texts: list[tuple[str, str]] = []
    for kind, text in _about_warnings(caught or []):
        texts.append((kind, text))
    limit = problem.time_limit
    if limit is not None and elapsed > limit + GRACE:
        texts.append(("late", f"{elapsed:.1f} s with time_limit={limit:g}"))
    if error is not None:
        texts += _about_error(problem, error)
    else:
        texts += _about_numbers(problem, estimator, thorough)
    return [Violation(kind, f"{text}; {problem.description}") for kind, text in texts]


def _about_warnings(caught: list[warnings.WarningMessage]) -> Iterator[tuple[str, str]]:
    """Warnings other than those a user can act upon; each kind once."""
    seen = set()
    for message in caught:
        category = message.category
        own = category.__module__.split(".")[0] in ("builtins", "sklearn", "owasvm")
        if issubclass(category, UserWarning) and own:
            continue
        if category not in seen:
            seen.add(category)
            yield "warning", f"{category.__name__}: {message.message}"


def _about_error(problem: HostileProblem, error: BaseException) -> Iterator[tuple[str, str]]:
    """ValueErrors raised on purpose, for a reason the problem gives, are answers; others not."""
    line = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    frames = traceback.extract_tb(error.__traceback__)
    origin = frames[-1].filename.replace("\\", "/") if frames else ""
    on_purpose = "/owasvm/" in origin or "/sklearn/utils/" in origin
    if not (isinstance(error, ValueError) and on_purpose and _USER_TERMS.search(str(error))):
        yield "exception", f"{line} (from {origin.rsplit('/', 1)[-1]})"
        return
    exact = ExactProblem(problem)
    if problem.refusable or exact.is_overflowing:
        return
    if exact.mass is not None and not exact.convex:
        # Sample weights can make weights fall that do not fall over the samples themselves; and
        # falling weights take sample weights in simple proportions only.
        return
    yield "refused", line


def _about_numbers(
    problem: HostileProblem, estimator: Any, thorough: bool
) -> Iterator[tuple[str, str]]:
    nonsense = list(_not_numbers(estimator, problem.sample_weight))
    if nonsense:
        yield "nan", f"{', '.join(nonsense)} not finite"
        return
    exact = ExactProblem(problem, gamma=getattr(estimator, "gamma_", None))
    objective, bound = float(estimator.objective_), float(estimator.lower_bound_)
    status = str(estimator.status_)
    if bound > objective:
        yield "bound above objective", f"bound {bound!r}, objective {objective!r} ({status})"
    coefficients, intercept = stored_classifier(problem, estimator, exact)
    stored = exact.value(coefficients, intercept, allowing=False)
    if not np.isfinite(stored):
        # Beyond the range of the wide numbers: nothing can be said.
        return
    gap, target = float(estimator.gap_), _target(problem, estimator)
    true_gap = (stored - bound) / max(1.0, abs(stored))
    if status == "optimal" and not true_gap <= target * (1.0 + 1e-3) + 1e-9:
        yield "not optimal", f"optimal, but the exact gap is {true_gap:.3g} (said {gap:.3g})"
    difference = abs(stored - objective) / max(1.0, abs(stored))
    if np.isfinite(gap) and not difference <= max(gap, 1e-8):
        yield (
            "objective",
            f"objective_ {objective!r}, exactly {stored!r} (gap {gap:.3g}, {status})",
        )
    null = exact.null_value()
    # Where w = 0 is optimal, a proven gap is all that any classifier can be worse by.
    allowed = 1e-9 + (gap if status == "optimal" else 0.0)
    if max(objective, stored) > null + allowed * max(1.0, abs(null)):
        yield "worse than nothing", f"objective {objective!r}, exactly {stored!r}, w = 0 {null!r}"
    if problem.must_reach and status != "optimal":
        yield "missed", f"{status}, gap {gap:.3g}, exactly {true_gap:.3g}"
    yield from _about_predictions(problem, estimator, exact)
    if bound == -np.inf:
        return
    if exact.is_asymmetric:
        yield "bound of an asymmetric kernel", f"bound {bound!r} ({status})"
        return
    rivals = Rivals(exact)
    best = rivals.search((coefficients, intercept), thorough=thorough)
    if bound > best + BOUND_SLACK * max(1.0, abs(best)):
        excess = (bound - best) / max(1.0, abs(best))
        yield (
            "bound of an indefinite kernel" if exact.is_unbounded else "false bound",
            f"bound {bound!r} ({status}), but {rivals.name} has {best!r}: {excess:.2g} too high",
        )


def _target(problem: HostileProblem, estimator: Any) -> float:
    """The gap asked for."""
    if estimator.convex_:
        return float(problem.parameters.get("tol", 1e-6))
    return float(problem.parameters.get("mip_gap", 1e-4))


def _about_predictions(
    problem: HostileProblem, estimator: Any, exact: ExactProblem
) -> Iterator[tuple[str, str]]:
    """Decision values of the training samples, for kernels that shifts need not harm.

    They may be off by what a careful evaluation in doubles costs: the terms of the sums, each
    rounded, and for Gaussian kernels differences of centred features.
    """
    if problem.kernel not in ("linear", "rbf"):
        return
    coefficients, intercept = stored_classifier(problem, estimator, exact)
    scores = (exact.scores(coefficients) + intercept).doubles()
    dense = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    X = dense[exact.rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of fit are judged
        given = np.ravel(estimator.decision_function(problem.X))[exact.rows]
    size, terms = np.abs(scores).max(), sum(X.shape) + 8
    if problem.kernel == "linear":
        reach = np.abs(X) @ np.abs(coefficients) + abs(intercept)
    else:
        radius = float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
        width = 1.0 + float(np.sqrt(estimator.gamma_)) * radius
        # Of features so large that a distance overflows, no kernel value is left but 0 and 1.
        width = min(width, 1.0 / EPS)
        reach = np.abs(coefficients).sum() * width + abs(intercept)
    slack = 1e-7 * max(1.0, float(size)) + 8.0 * EPS * terms * reach
    excess = np.abs(given - scores) - slack
    if np.any(~(excess <= 0.0)):
        worst = int(np.argmax(excess))
        yield (
            "prediction",
            f"decision value {float(given[worst])!r}, exactly {float(scores[worst])!r}",
        )


def _not_numbers(estimator: Any, sample_weight: FloatArray | None) -> Iterator[str]:
    """Fitted attributes that hold NaN, or infinities where none belong.

    Rows of weight zero deviate by NaN.
    """
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    if getattr(estimator, "kernel", "linear") == "linear":
        names.append("coef_")
    for name in dict.fromkeys(names):
        value = getattr(estimator, name)
        if sp.issparse(value):
            value = value.data
        try:
            numbers = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            continue
        if name in ("deviations_", "sample_costs_") and sample_weight is not None:
            numbers = numbers[..., sample_weight > 0.0]
        may_be_infinite = name in ("lower_bound_", "gap_")
        bad = np.isnan(numbers) if may_be_infinite else ~np.isfinite(numbers)
        if np.any(bad):
            yield name


@dataclass
class Record:
    """What a worker reports of one problem."""

    kind: str
    seed: int
    description: str
    estimator: str
    kernel: str
    outcome: str  # status, "ValueError" and the like, "hang" or "crash"
    convex: bool | None = None
    gap: float | None = None
    elapsed: float = 0.0
    judged_in: float = 0.0
    violations: list[Violation] = field(default_factory=list)


def judge(kind: str, seed: int, *, thorough: bool = True) -> Iterator[Record]:
    """Two records: after the fit, and after the verdict."""
    problem = GENERATORS[kind](seed)
    outcome = fit(problem)
    estimator, error = outcome.estimator, outcome.error
    record = Record(
        kind=kind,
        seed=seed,
        description=problem.description,
        estimator=problem.estimator,
        kernel=problem.kernel,
        outcome=str(estimator.status_) if error is None else type(error).__name__,
        convex=bool(estimator.convex_) if error is None else None,
        gap=float(estimator.gap_) if error is None else None,
        elapsed=outcome.elapsed,
    )
    yield record
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflows on the way to a value that is not finite
            record.violations = verdict(
                problem, estimator, outcome.caught, outcome.elapsed, error, thorough=thorough
            )
    except Exception as fault:
        # The judge's own; it must not pass unseen.
        where = traceback.extract_tb(fault.__traceback__)[-1]
        text = f"{type(fault).__name__}: {fault} (line {where.lineno}); {problem.description}"
        record.violations = [Violation("unjudged", text)]
    record.judged_in = time.perf_counter() - started
    yield record


def _warm_up() -> None:
    """Compile what is compiled at its first use: that belongs to no fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=24) > 0.5, 1.0, -1.0)
    mass = np.tile([1.0, 2.0], 12)
    general = {"weights": "trigonometric", "alpha": 0.8, "time_limit": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in ({}, general, {**general, "solver": "dca"}):
            OWASVC(**options).fit(X, y)
            OWASVC(**options).fit(X, y, sample_weight=mass)
            LinearOWASVC(**options).fit(X, y)
            LinearOWASVC(**options).fit(X, y, sample_weight=mass)
            LinearOWASVC(**options).fit(sp.csr_matrix(X), y)


def _work(channel: Connection) -> None:
    """Judge what comes through the channel until it closes."""
    _warm_up()
    channel.send("ready")
    while True:
        try:
            kind, seed, thorough = channel.recv()
        except EOFError:
            return
        for record in judge(kind, seed, thorough=thorough):
            channel.send(record)


class Worker:
    """Judges problems in another process, which is replaced when it hangs or dies.

    Use it as a context manager, or call :meth:`stop`.

    Parameters
    ----------
    work : callable
        What the process runs, a function of a module, given its end of the channel.
    """

    def __init__(self, work: Callable[[Connection], None] = _work) -> None:
        self._work = work
        self._process: Any = None
        self._channel: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def judge(self, kind: str, seed: int, *, thorough: bool = True) -> Record:
        """The verdict on one problem."""
        self._start()
        problem = GENERATORS[kind](seed)
        limit = problem.time_limit
        patience = PATIENCE if limit is None else limit + GRACE + GIVE_UP
        if problem.warm_from is not None and limit is not None:
            patience += limit
        record = Record(
            kind=kind,
            seed=seed,
            description=problem.description,
            estimator=problem.estimator,
            kernel=problem.kernel,
            outcome="hang",
        )
        self._channel.send((kind, seed, thorough))
        try:
            if not self._channel.poll(patience):
                text = f"no answer after {patience:g} s; {problem.description}"
                record.violations = [Violation("hang", text)]
                self.stop()
                return record
            self._channel.recv()
            if not self._channel.poll(PATIENCE):
                # The judge's fault, not the library's; it must not pass unseen either.
                record.outcome = "unjudged"
                record.violations = [Violation("unjudged", problem.description)]
                self.stop()
                return record
            return self._channel.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            record.outcome = "crash"
            text = f"the process died ({self._process.exitcode}); {problem.description}"
            record.violations = [Violation("crash", text)]
            self.stop()
            return record

    def stop(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._channel.close()
        self._process.kill()
        self._process.join()
        self._process = None

    def _start(self) -> None:
        if self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._channel, other_end = context.Pipe()
        self._process = context.Process(target=self._work, args=(other_end,), daemon=True)
        self._process.start()
        other_end.close()
        self._channel.recv()
