"""What every solver, ours or one behind the paper's models, agrees to.

A solver is a module with a :class:`Solver` named ``SOLVER``: a function
``(problem, settings) -> Solution``, the options it takes, and what it needs of a problem.
:func:`owasvm.solvers.solve` checks both before the first iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from owasvm.grouping import GroupedCosts
from owasvm.problem import OWAProblem
from owasvm.samples import OnDemandSamples
from owasvm.solution import Solution

__all__ = ["Callback", "NoOptions", "Settings", "Solver"]

Callback = Callable[[dict[str, Any]], bool | None]


@dataclass(frozen=True)
class NoOptions:
    """A solver without options."""


@dataclass(frozen=True)
class Settings:
    """What a solver is asked for; each takes what applies to it.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap of the convex problem to reach.
    mip_gap : float, default=1e-4
        Relative gap to the global optimum to reach, for general weights.
    time_limit : float or None, default=None
        Seconds at most.
    max_iter : int, default=1000
        Newton steps at most, in every convex problem that is solved on the way.
    warm_start : Solution or None, default=None
        Solution of a similar problem with the same samples.
    in_series : bool, default=False
        The problem is one of many: what takes seconds to compile for it is worth it. A warm start
        says so, too.
    verbose : int, default=0
        2 lets outside solvers write what they do.
    callback : callable or None, default=None
        ``callback(info)`` with progress: ``n_iter``, ``objective``, ``gap`` and ``time``,
        ``lower_bound`` if it is proven, ``stage`` if there are several. Returning False stops.
    random_state : int, RandomState instance or None, default=None
        Where the random starts of descents come from; None stands for the same ones every time.
    options : object, default=NoOptions()
        What a particular solver takes beyond that, an instance of its options class.
    """

    tol: float = 1e-6
    mip_gap: float = 1e-4
    time_limit: float | None = None
    max_iter: int = 1000
    warm_start: Solution | None = None
    in_series: bool = False
    verbose: int = 0
    callback: Callback | None = None
    random_state: Any = None
    options: Any = field(default_factory=NoOptions)


@dataclass(frozen=True)
class Solver:
    """A solver and what it declares.

    Parameters
    ----------
    solve : callable
        ``(problem, settings) -> Solution``; returns the best point also when it stops early.
    options : type, default=NoOptions
        A dataclass; its fields are the options that users may give, with their defaults.
    needs_convex : bool, default=False
        Takes weights that never fall, and no others.
    takes_sample_weight : bool, default=True
        Takes sample weights.
    losses : tuple of str, default=("hinge",)
        Losses that it takes whatever the weights.
    convex_losses : tuple of str, default=()
        Losses that it takes beside them with weights that never fall; ``("*",)`` for all.
    takes_partitions : bool, default=False
        Takes samples that are not in memory.
    needs_gram : bool, default=False
        Needs all kernel values at once: takes no samples that compute them on demand.
    takes_groups : bool, default=False
        Takes costs of groups that are ranked apart (``ranks="class"``, `groups`).
    is_search : bool, default=False
        With weights that fall it searches among local solutions. Estimators then hand over
        distinct samples in an order of their own, see :class:`owasvm.distinct.DistinctSet`.
    """

    solve: Callable[[OWAProblem, Settings], Solution]
    options: type = NoOptions
    needs_convex: bool = False
    takes_sample_weight: bool = True
    losses: tuple[str, ...] = ("hinge",)
    convex_losses: tuple[str, ...] = ()
    takes_partitions: bool = False
    needs_gram: bool = False
    takes_groups: bool = False
    is_search: bool = False

    def read_options(self, name: str, given: Mapping[str, Any] | None) -> Any:
        """The options as an object; an error that names what exists for one that does not."""
        known = {option.name for option in fields(self.options)}
        for option in given or {}:
            if option not in known:
                exist = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
                raise ValueError(f"solver={name!r} has no option {option!r}. {exist}")
        return self.options(**(given or {}))

    def check(self, name: str, problem: OWAProblem) -> None:
        """Refuse a problem that the solver cannot solve, and say who can."""
        convex = problem.costs.convex
        if self.needs_convex and not convex:
            raise ValueError(
                f"solver={name!r} needs non-decreasing weights, and these fall somewhere "
                "(owasvm.weights.is_convex tells); use 'branch-and-bound', 'dca' or 'miqp'."
            )
        if not self.takes_partitions and getattr(problem.samples, "is_partitioned", False):
            able = "'auto' or 'newton'" if convex else "'dca', whose bound is global"
            raise ValueError(
                f"solver={name!r} needs all samples in memory, and X is a Dask collection. For "
                f"weights that {'never fall' if convex else 'fall somewhere'} use solver={able}, "
                "or load the samples with X.compute()."
            )
        if self.needs_gram and isinstance(problem.samples, OnDemandSamples):
            problem.samples.refuse_gram(f"solver={name!r}")
        if not self.takes_sample_weight and problem.costs.sample_weight is not None:
            raise ValueError(
                f"solver={name!r} takes no sample_weight or class_weight: its rank weights are "
                "one number per rank. Use solver='auto', or repeat the rows."
            )
        if not self.takes_groups and isinstance(problem.costs, GroupedCosts):
            able = "'auto' or 'newton'" if convex else "'auto' or 'dca', whose bound is global"
            raise ValueError(
                f"solver={name!r} ranks all samples together and takes neither ranks='class' nor "
                f"groups. Use solver={able}, or ranks='all' without groups."
            )
        accepted = problem.loss in self.losses or (
            convex and (problem.loss in self.convex_losses or "*" in self.convex_losses)
        )
        if not accepted:
            raise ValueError(_refuse_loss(name, problem.loss, convex, self))


def _refuse_loss(name: str, loss: str, convex: bool, solver: Solver) -> str:
    if not convex:
        return (
            f"loss={loss!r} needs weights that never fall, and these fall somewhere; take "
            "loss='hinge' or other weights."
        )
    return f"solver={name!r} takes loss={' or '.join(map(repr, solver.losses))}, not {loss!r}."
