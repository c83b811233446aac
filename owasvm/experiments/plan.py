"""Which cells there are, cut into chains that start each fit from the one before.

A chain is a model on one fold at one kernel width. C runs upwards along it. Exact models have a
chain for each pair of quantifier and alpha; a two-step model has one chain for all of them,
because they share the first SVM of every C. Chains know nothing of each other, so their results do
not depend on what else is run, nor in which order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from owasvm.experiments.paper import MODELS, is_exact, is_kernel, is_two_step, paper_folds
from owasvm.experiments.protocol import Data, Grid, fold_numbers
from owasvm.experiments.store import Cell

__all__ = ["FOLD_CHOICES", "GENERAL", "ORDER", "Chain", "FitOptions", "Plan", "make_plan"]

#: The model name of chains that fill the table of orders.
ORDER = "order"
#: How weights that fall somewhere are treated.
GENERAL: tuple[str, ...] = ("dca", "branch-and-bound", "skip")
#: Kinds of folds by the name of a choice: for all models, and for l2-SVM_K besides.
FOLD_CHOICES: dict[str, str] = {
    "paper": "shuffled, and unshuffled too for l2-SVM_K, as in the paper",
    "shuffled": "shuffled",
    "unshuffled": "unshuffled",
    "both": "shuffled and unshuffled, for all models",
}

_NO_WEIGHTS: tuple[tuple[str, float], ...] = (("", 0.0),)


@dataclass(frozen=True)
class FitOptions:
    """How cells are solved.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative gap of convex problems.
    general : {"dca", "branch-and-bound", "skip"}, default="dca"
        Solver of exact models whose weights fall somewhere.
    mip_gap : float, default=1e-4
        Relative gap to stop at there.
    time_limit : float or None, default=None
        Seconds for each of those fits.
    """

    tol: float = 1e-6
    general: str = "dca"
    mip_gap: float = 1e-4
    time_limit: float | None = None


@dataclass(frozen=True)
class Chain:
    """Cells that are computed one after the other.

    Parameters
    ----------
    dataset, folds, model : str
        As in a cell.
    width : float
        As in a cell.
    fold : int
        As in a cell.
    Cs : tuple of float
        Values of C, increasing.
    weights : tuple of (str, float)
        Quantifiers and alphas, the inner loop.
    """

    dataset: str
    folds: str
    model: str
    width: float
    fold: int
    Cs: tuple[float, ...]
    weights: tuple[tuple[str, float], ...] = _NO_WEIGHTS

    @property
    def name(self) -> str:
        """What the store calls the chain."""
        parts = [self.dataset, self.folds, self.model, f"{self.width:g}", str(self.fold)]
        if is_exact(self.model):
            quantifier, alpha = self.weights[0]
            parts.append(f"{quantifier} {alpha:g}")
        return "|".join(parts)

    def __len__(self) -> int:
        return len(self.Cs) * len(self.weights)

    def cell(self, position: int) -> Cell:
        """Return the key of the cell at a position."""
        row, column = divmod(position, len(self.weights))
        quantifier, alpha = self.weights[column]
        return Cell(
            self.dataset,
            self.folds,
            self.model,
            self.width,
            self.Cs[row],
            quantifier,
            alpha,
            self.fold,
        )

    def n_stored(self, cells: set[Cell], orders: set[tuple[str, int]]) -> int:
        """Return how many cells of the chain, from its beginning, are stored."""
        if self.model == ORDER:
            return int((self.dataset, self.fold) in orders)
        stored = 0
        while stored < len(self) and self.cell(stored) in cells:
            stored += 1
        return stored


@dataclass(frozen=True)
class Plan:
    """What is to be computed, and how.

    Parameters
    ----------
    chains : tuple of Chain
        In the order in which they are best computed.
    data : mapping of str to Data
        The datasets by name.
    grid : Grid
        The grid the chains are cut from.
    options : FitOptions
        How cells are solved.
    """

    chains: tuple[Chain, ...]
    data: Mapping[str, Data]
    grid: Grid
    options: FitOptions

    @property
    def n_cells(self) -> int:
        """Number of cells, rows of the table of orders not counted."""
        return sum(len(chain) for chain in self.chains if chain.model != ORDER)

    def facts(self) -> dict[str, str]:
        """Return what two runs must share for their cells to fit together, as text by key."""
        grid = asdict(self.grid)
        facts = {
            "grid": str(grid.pop("name")),
            "tol": repr(self.options.tol),
            **{key: json.dumps(value) for key, value in grid.items()},
            **{f"sha256 of {name}": data.checksum for name, data in self.data.items()},
        }
        if self.options.general != "skip":
            facts["general"] = self.options.general
            facts["mip_gap"] = repr(self.options.mip_gap)
            facts["time_limit"] = repr(self.options.time_limit)
        return facts


def make_plan(
    data: Mapping[str, Data],
    grid: Grid,
    *,
    models: Sequence[str] = MODELS,
    folds: str = "paper",
    nested: bool = False,
    options: FitOptions | None = None,
) -> Plan:
    """List the chains of an experiment.

    Parameters
    ----------
    data : mapping of str to Data
        Datasets by name.
    grid : Grid
        Parameters to try.
    models : sequence of str, default=paper.MODELS
        Models of the paper.
    folds : {"paper", "shuffled", "unshuffled", "both"}, default="paper"
        One of :data:`FOLD_CHOICES`.
    nested : bool, default=False
        Whether to add the inner folds of a nested cross-validation.
    options : FitOptions or None, default=None
        How cells are solved.

    Returns
    -------
    plan : Plan

    Examples
    --------
    >>> from owasvm.experiments.plan import make_plan
    >>> from owasvm.experiments.protocol import GRIDS, load_data
    >>> plan = make_plan({"wbc": load_data("wbc")}, GRIDS["paper"], models=["ex-OWA-SVM"])
    >>> len(plan.chains), len(plan.chains[0]), plan.n_cells
    (160, 15, 2400)
    """
    chosen = options or FitOptions()
    chains = [
        chain
        for name in data
        for chain in _dataset_chains(data[name], grid, models, folds, nested, chosen)
    ]
    return Plan(tuple(chains), dict(data), grid, chosen)


def _dataset_chains(
    data: Data,
    grid: Grid,
    models: Sequence[str],
    folds: str,
    nested: bool,
    options: FitOptions,
) -> Iterable[Chain]:
    """Chains of a dataset, ordered so that neighbours share kernel matrix and fold."""
    kinds = {model: _kinds_of_folds(model, folds, nested) for model in models}
    for width in (0.0, *grid.widths):
        fitting = [model for model in models if is_kernel(model) == (width > 0.0)]
        for kind in ("shuffled", "unshuffled", "nested"):
            for fold in fold_numbers(kind):
                for model in fitting:
                    if kind in kinds[model]:
                        for weights in _weights_of_chains(model, grid, data, options):
                            yield Chain(data.name, kind, model, width, fold, grid.Cs, weights)
    if any(is_kernel(model) for model in models):
        for fold in fold_numbers("shuffled"):
            yield Chain(data.name, "shuffled", ORDER, 1.0, fold, (1.0,), (("basic", 0.6),))


def _kinds_of_folds(model: str, folds: str, nested: bool) -> set[str]:
    kinds = {"shuffled", paper_folds(model)} if folds == "paper" else {folds}
    if folds == "both":
        kinds = {"shuffled", "unshuffled"}
    if nested:
        kinds |= {"nested"}
    return kinds


def _weights_of_chains(
    model: str, grid: Grid, data: Data, options: FitOptions
) -> list[tuple[tuple[str, float], ...]]:
    """The weights of each chain of a model."""
    if is_two_step(model):
        return [grid.weights]
    if not is_exact(model):
        return [_NO_WEIGHTS]
    return [
        (pair,)
        for pair in grid.weights
        if options.general != "skip" or _is_convex(data.y.size, *pair)
    ]


@cache
def _is_convex(n_samples: int, quantifier: str, alpha: float) -> bool:
    from owasvm.weights import is_convex, owa_weights

    return is_convex(owa_weights(n_samples, quantifier, alpha))
