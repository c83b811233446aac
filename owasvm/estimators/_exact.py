"""Classifiers whose problems are solved exactly, with a certificate."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from owasvm import solvers
from owasvm.certificate import judge
from owasvm.distinct import DistinctSet
from owasvm.estimators._base import (
    BaseOWAClassifier,
    BinaryFit,
    Payments,
    for_user,
    weights_at,
)
from owasvm.estimators._constant import is_no_better, warn_if_constant
from owasvm.grouping import assign_costs, find_ignored
from owasvm.losses import LOSSES
from owasvm.preparation import TrainingSet
from owasvm.problem import Costs, OWAProblem
from owasvm.progress import Watcher, show_life, speaking
from owasvm.samples import Partitions, Samples
from owasvm.solution import Solution, Status
from owasvm.weights import is_family

FloatArray = NDArray[np.float64]

_ADVICE = {
    Status.TIME_LIMIT: "Raise time_limit, or loosen tol (convex weights) or mip_gap (others).",
    Status.ITERATION_LIMIT: "Raise max_iter, scale the features, or take a smaller C.",
    Status.NODE_LIMIT: "Raise max_nodes in solver_options, loosen mip_gap, or be content with the "
    "gap that is proven; solver='dca' ends at a local solution much sooner.",
    Status.ROUNDING_LIMIT: "Double precision cannot prove a smaller gap for these data: centre "
    "and scale the features, take a smaller C, or be content with a larger tol or mip_gap.",
    Status.INDEFINITE: "The kernel matrix is not positive semi-definite, so that the problem has "
    "no minimum and no bound: take 'rbf' or 'linear', 'poly' with coef0 >= 0, or a precomputed "
    "matrix with its negative eigenvalues raised to 0.",
    Status.BACKEND_LIMIT: "The outside solver ended with less; name another one in "
    "solver_options={'backend': ...}, loosen tol or mip_gap, or take solver='auto'.",
    Status.INTERRUPTED: "It was interrupted or the callback stopped it; fit again to reach the "
    "target.",
}


class ExactOWAClassifier(BaseOWAClassifier):
    """Problems handed to :func:`owasvm.solvers.solve`, certificates kept."""

    loss: str
    solver: str
    solver_options: Mapping[str, Any] | None
    mip_gap: float
    time_limit: float | None
    max_iter: int
    warm_start: bool
    n_jobs: int | None
    verbose: int
    callback: Watcher | None
    random_state: int | np.random.RandomState | None
    # Whether time grows so fast with the number of samples that looking for copies pays.
    _merges_copies: ClassVar[bool] = False
    # A search says so, see `owasvm.solvers.contract.Settings`.
    _in_series = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOWAClassifier._parameter_constraints,
        "loss": [StrOptions(LOSSES.keys())],
        "solver": [str],
        "solver_options": [dict, None],
        "mip_gap": [Interval(Real, 0.0, None, closed="left")],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callback": [callable, StrOptions({"record"}), None],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _prepare(self, X: Any) -> Samples:
        """What all problems share."""

    def _make_problems(
        self, training: TrainingSet, charges: list[Costs], samples: Samples
    ) -> list[OWAProblem]:
        """One problem for two classes, one per class for more."""
        return [
            OWAProblem(signs, costs, samples=samples, loss=self.loss)
            for signs, costs in zip(training.signs(), charges, strict=True)
        ]

    def _fit_all(self, training: TrainingSet) -> tuple[list[BinaryFit], KeyboardInterrupt | None]:
        # Weights that cannot be are refused before kernel values are computed.
        given_charges = charges = self._charge(training)
        convex = all(costs.convex for costs in charges)
        distinct = self._find_distinct(training, convex=convex)
        if distinct.training is not training:
            charges = self._charge(distinct.training)
        samples = self._prepare_watched(distinct.training.X)
        problems = self._make_problems(distinct.training, charges, samples)
        starts = [
            None if known is None else problem.as_moved(distinct.as_distinct(known))
            for problem, known in zip(problems, self._starting_points(training), strict=True)
        ]
        labels = [""] if len(problems) == 1 else [f"class {name!s}" for name in training.classes]
        solutions, interrupt = self._solve_all(problems, starts, labels)
        # What an interrupt leaves of several classes is a classifier all the same.
        unsolved = problems[len(solutions) :]
        solutions += [_stop_before_a_step(problem, self.solver) for problem in unsolved]
        self.convex_ = convex
        self._store_certificates(solutions)
        if interrupt is None:
            target = max(self._target(problem) for problem in problems)
            name = type(self).__name__
            warn_if_constant(name, problems, solutions, training.classes, target)
        solved = list(zip(problems, solutions, strict=True))
        payments = [_payments(distinct, *pair) for pair in solved]
        self._store_payments(training, payments)
        self.owa_weights_ = for_user(
            [
                weights_at(costs, one.deviations)
                for costs, one in zip(given_charges, payments, strict=True)
            ]
        )
        given = [problem.as_given(solution) for problem, solution in solved]
        fits = [_describe(*pair) for pair in zip(problems, given, strict=True)]
        fits = [replace(fit, signed_dual=distinct.assign(fit.signed_dual)) for fit in fits]
        given = [distinct.as_given(solution) for solution in given]
        self.solution_ = given[0] if len(given) == 1 else given
        return fits, interrupt

    def _charge(self, training: TrainingSet) -> list[Costs]:
        """The costs of all problems."""
        return [self._assign_costs(signs, training) for signs in training.signs()]

    def _target(self, problem: OWAProblem) -> float:
        """Relative gap at which a solution will do."""
        return self.tol if problem.costs.convex else max(self.tol, self.mip_gap)

    def _find_distinct(self, training: TrainingSet, *, convex: bool) -> DistinctSet:
        """What the solver is handed: the samples as they are, unless it searches or it pays."""
        pairwise, has_families = self._is_precomputed, is_family(self.weights)
        if isinstance(training.X, Partitions):
            return DistinctSet(training)
        if convex and has_families and self._merges_copies and self.solver in ("auto", "newton"):
            return DistinctSet.without_copies(training, pairwise=pairwise)
        if convex or not solvers.is_search(self.solver):
            return DistinctSet(training)
        distinct = DistinctSet.of(training, pairwise=pairwise, merge=has_families)
        self._resolve_kernel(distinct.training.X, distinct.training.mass)
        return distinct

    def _decide(
        self, training: TrainingSet, solved: list[tuple[OWAProblem, Solution]], X: Any
    ) -> FloatArray:
        """Decision values of samples by solutions, one column per problem."""
        fits = [_describe(problem, problem.as_given(solution)) for problem, solution in solved]
        self._store(training, fits)
        return self._scores(X) + self.intercept_

    def _assign_costs(self, signs: FloatArray, training: TrainingSet) -> Costs:
        return assign_costs(
            signs,
            self.weights,
            self.alpha,
            float(self.C),
            training.mass,
            ranks=self.ranks,
            groups=training.groups,
        )

    def _starting_points(self, training: TrainingSet) -> list[Solution | None]:
        """Previous solutions to start from, where they fit the new problems."""
        cold: list[Solution | None] = [None] * training.n_problems
        if not self.warm_start or not hasattr(self, "solution_"):
            return cold
        previous = self.solution_ if isinstance(self.solution_, list) else [self.solution_]
        dual, coef = previous[0].dual, previous[0].coef
        fits = len(previous) == len(cold) and dual.size == training.n_samples
        fits = fits and (coef is None or coef.size == training.X.shape[1])
        return list(previous) if fits else cold

    def _prepare_watched(self, X: Any) -> Samples:
        """The samples; where their kernel values take long, lines say so."""
        shape = " x ".join(map(str, getattr(X, "shape", ())))
        with (
            speaking(self.verbose),
            show_life(self.verbose, lambda elapsed: f"preparing {shape} samples, {elapsed:.0f} s"),
        ):
            return self._prepare(X)

    def _solve_all(
        self, problems: list[OWAProblem], starts: list[Solution | None], labels: list[str]
    ) -> tuple[list[Solution], KeyboardInterrupt | None]:
        """Solutions of the problems, of the first ones only after an interrupt."""
        tasks = list(zip(problems, starts, labels, strict=True))
        solutions: list[Solution] = []
        if self._is_parallel(problems):
            parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
            try:
                solutions.extend(parallel(delayed(self._run_solver)(*task) for task in tasks))
            except KeyboardInterrupt as stop:
                return solutions, stop
            # A warning in another process would be nobody's.
            for problem, solution in zip(problems, solutions, strict=True):
                self._warn_if_stopped(problem, solution)
            return solutions, None
        for task in tasks:
            try:
                solutions.append(self._solve(*task))
            except solvers.Interrupted as stop:
                return [*solutions, stop.solution], stop
        return solutions, None

    def _is_parallel(self, problems: list[OWAProblem]) -> bool:
        """Whether several classes are solved for at the same time."""
        # A callback is called in this process.
        if len(problems) == 1 or callable(self.callback) or effective_n_jobs(self.n_jobs) == 1:
            return False
        # What one class draws from a generator changes what the next one draws.
        if isinstance(self.random_state, np.random.RandomState):
            return False
        # Samples on a device, or spread over machines, cannot be handed to other processes.
        is_elsewhere = getattr(problems[0].samples, "is_partitioned", False)
        return not is_elsewhere and getattr(self, "device", "cpu") == "cpu"

    def _solve(self, problem: OWAProblem, start: Solution | None, label: str = "") -> Solution:
        """The solution of one problem; a warning where it missed its target."""
        solution = self._run_solver(problem, start, label)
        self._warn_if_stopped(problem, solution)
        return solution

    def _run_solver(self, problem: OWAProblem, start: Solution | None, label: str) -> Solution:
        return solvers.solve(
            problem,
            self.solver,
            tol=self.tol,
            mip_gap=self.mip_gap,
            time_limit=self.time_limit,
            max_iter=self.max_iter,
            warm_start=start,
            in_series=self._in_series,
            verbose=self.verbose,
            watcher=self.callback,
            label=label,
            random_state=self.random_state,
            options=self.solver_options,
        )

    def _warn_if_stopped(self, problem: OWAProblem, solution: Solution) -> None:
        # A local solver that ended by itself did what it was asked for; its gap says the rest.
        if solution.status not in (Status.OPTIMAL, Status.LOCAL):
            target = f"tol={self.tol:g}" if problem.costs.convex else f"mip_gap={self.mip_gap:g}"
            nothing = (
                ", w = 0, which treats all samples alike"
                if is_no_better(problem, solution)
                else ""
            )
            warnings.warn(
                f"{type(self).__name__} stopped before its target {target}: status "
                f"{solution.status}, relative gap {solution.gap:.2g}. The best point found is "
                f"kept{nothing}. {_ADVICE[solution.status]}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _store_certificates(self, solutions: list[Solution]) -> None:
        """Keep objective, bound and the like: numbers for two classes, arrays for more."""
        self.objective_ = for_user([solution.objective for solution in solutions])
        self.lower_bound_ = for_user([solution.lower_bound for solution in solutions])
        self.gap_ = for_user([solution.gap for solution in solutions])
        self.n_iter_ = for_user([solution.n_iter for solution in solutions])
        self.status_ = for_user([str(solution.status) for solution in solutions])


def _describe(problem: OWAProblem, given: Solution) -> BinaryFit:
    """What prediction needs of a solution with the intercept for the samples as given."""
    return BinaryFit(problem.y * given.dual, given.intercept, problem.weight_of(given))


def _stop_before_a_step(problem: OWAProblem, solver: str) -> Solution:
    """The solution w = 0 of a problem that nobody had time for."""
    nothing = judge(problem, np.zeros(problem.n_samples))
    return nothing.as_solution(Status.INTERRUPTED, solver)


def _payments(distinct: DistinctSet, problem: OWAProblem, solution: Solution) -> Payments:
    """Who pays what at a solution, for the samples as given."""
    deviations = problem.deviations_of(solution)
    sample_costs = problem.sample_costs(solution)
    ignored = np.zeros(problem.n_samples, dtype=bool)
    ignored[find_ignored(problem.costs, sample_costs, deviations)] = True
    return Payments(
        distinct.spread(deviations),
        distinct.divide(sample_costs),
        np.flatnonzero(distinct.spread(ignored)),
    )
