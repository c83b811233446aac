r"""A mixed-integer quadratic program in memory, written block by block as on paper.

.. math:: \min_x\ q'x + \tfrac12 \sum_{j \in S} x_j^2
          \quad\text{s.t.}\quad l \le A x \le u,\ \ell \le x \le \upsilon,\ x_B \in \{0, 1\}.

Every quadratic of the paper has this form once the classifier is written in coordinates whose
squared length is ``|w|^2``. One square per coordinate is also what a branch-and-cut solver with
outer approximation wants: each square gets its own cuts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A coefficient matrix, a vector of one coefficient per row, or a number for all rows; then the
# variables: one per column of a matrix, one per row otherwise.
Term = tuple[Any, IntArray]


class MixedIntegerProgram:
    """Variables, rows and objective of a model.

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.models.backends.program import MixedIntegerProgram
    >>> program = MixedIntegerProgram()
    >>> x = program.variables("x", 2)
    >>> z = program.variables("z", 2, binary=True)
    >>> program.rows("link", (1.0, x), (-5.0, z), upper=0.0)
    >>> program.minimise((np.array([[1.0, 1.0]]), x), squares=x)
    >>> program.n_variables, program.n_rows, program.n_binaries
    (4, 2, 2)
    """

    def __init__(self) -> None:
        self.blocks: dict[str, IntArray] = {}
        self.labels: dict[str, slice] = {}
        self._lower: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._binary: list[NDArray[np.bool_]] = []
        self._matrices: list[sp.coo_matrix] = []
        self._row_lower: list[FloatArray] = []
        self._row_upper: list[FloatArray] = []
        self.n_variables = 0
        self.n_rows = 0
        self.squares: IntArray = np.empty(0, dtype=np.int64)
        self._linear: list[tuple[FloatArray, IntArray]] = []

    def variables(
        self,
        name: str,
        *shape: int,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        binary: bool = False,
    ) -> IntArray:
        """Add a block of variables; returns their indices, in the shape of the block."""
        size = int(np.prod(shape, dtype=np.int64))
        indices = np.arange(self.n_variables, self.n_variables + size).reshape(shape)
        if binary:
            lower = np.maximum(lower, 0.0)
            upper = np.minimum(upper, 1.0)
        self._lower.append(np.broadcast_to(np.asarray(lower, float), shape).ravel())
        self._upper.append(np.broadcast_to(np.asarray(upper, float), shape).ravel())
        self._binary.append(np.full(size, binary))
        self.blocks[name] = indices
        self.n_variables += size
        return indices

    def rows(
        self, label: str, *terms: Term, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf
    ) -> None:
        """Add the rows ``lower <= sum of terms <= upper``; a label may be used repeatedly."""
        parts = [_entries(coefficients, indices) for coefficients, indices in terms]
        n_rows = max(part.shape[0] for part in parts)
        data, row, column = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("data", "row", "col")
        )
        width = max(part.shape[1] for part in parts)
        self._matrices.append(sp.coo_matrix((data, (row, column)), shape=(n_rows, width)))
        self._row_lower.append(np.broadcast_to(np.asarray(lower, float), n_rows))
        self._row_upper.append(np.broadcast_to(np.asarray(upper, float), n_rows))
        start = self.labels[label].start if label in self.labels else self.n_rows
        self.n_rows += n_rows
        self.labels[label] = slice(start, self.n_rows)

    def minimise(self, *terms: Term, squares: IntArray) -> None:
        """Set the objective: linear terms of one row, and half the squares of `squares`."""
        self.squares = np.asarray(squares, dtype=np.int64).ravel()
        self._linear = [
            (np.asarray(coefficients, float).ravel(), np.asarray(indices).ravel())
            for coefficients, indices in terms
        ]

    @property
    def lower(self) -> FloatArray:
        """Lower bounds of the variables."""
        return np.concatenate(self._lower)

    @property
    def upper(self) -> FloatArray:
        """Upper bounds of the variables."""
        return np.concatenate(self._upper)

    @property
    def binary(self) -> NDArray[np.bool_]:
        """Which variables are 0 or 1."""
        return np.concatenate(self._binary)

    @property
    def n_binaries(self) -> int:
        """Number of variables that are 0 or 1."""
        return int(self.binary.sum())

    @property
    def linear(self) -> FloatArray:
        """Linear part of the objective."""
        linear = np.zeros(self.n_variables)
        for coefficients, indices in self._linear:
            np.add.at(linear, indices, coefficients)
        return linear

    @property
    def matrix(self) -> sp.csr_matrix:
        """Coefficients of the rows."""
        padded = [
            sp.coo_matrix((part.data, (part.row, part.col)), (part.shape[0], self.n_variables))
            for part in self._matrices
        ]
        return sp.csr_matrix(sp.vstack(padded))

    @property
    def row_lower(self) -> FloatArray:
        """Lower sides of the rows."""
        return np.concatenate(self._row_lower)

    @property
    def row_upper(self) -> FloatArray:
        """Upper sides of the rows."""
        return np.concatenate(self._row_upper)

    def value(self, point: FloatArray) -> float:
        """Objective at a point."""
        return float(self.linear @ point + 0.5 * np.sum(point[self.squares] ** 2))

    def violation(self, point: FloatArray) -> float:
        """Largest violation of a bound, a row or integrality."""
        activity = self.matrix @ point
        fractional = np.abs(point - np.round(point))[self.binary]
        return float(
            max(
                np.max(self.lower - point, initial=0.0),
                np.max(point - self.upper, initial=0.0),
                np.max(self.row_lower - activity, initial=0.0),
                np.max(activity - self.row_upper, initial=0.0),
                np.max(fractional, initial=0.0),
            )
        )


def _entries(coefficients: Any, indices: IntArray) -> sp.coo_matrix:
    """The term as a matrix over all variables up to its largest index."""
    columns = np.asarray(indices, dtype=np.int64).ravel()
    width = int(columns.max()) + 1
    if sp.issparse(coefficients) or np.ndim(coefficients) == 2:
        local = sp.coo_matrix(coefficients)
        if local.shape[1] != columns.size:
            raise ValueError(
                f"a matrix with {local.shape[1]} columns was given {columns.size} variables."
            )
        return sp.coo_matrix(
            (local.data, (local.row, columns[local.col])), shape=(local.shape[0], width)
        )
    diagonal = np.broadcast_to(np.asarray(coefficients, float), columns.shape)
    return sp.coo_matrix(
        (diagonal, (np.arange(columns.size), columns)), shape=(columns.size, width)
    )


@dataclass(frozen=True, eq=False)
class MixedIntegerResult:
    """What a mixed-integer back-end hands back.

    Parameters
    ----------
    point : ndarray or None
        Values of all variables in the best solution, None without one.
    objective : float
        The back-end's own figure; nothing of ours relies on it.
    bound : float
        Its proven lower bound, -inf without one.
    slack : float
        Relative amount by which its tolerances can have moved `bound`.
    status : {'optimal', 'time_limit', 'limit', 'interrupted', 'infeasible'}
        How it ended; 'limit' stands for limits of its own: nodes, memory, accuracy.
    n_nodes : int
        Nodes of its search tree.
    message : str
        Its own name for the status.
    """

    point: FloatArray | None
    objective: float
    bound: float
    slack: float
    status: str
    n_nodes: int = 0
    message: str = ""

    @property
    def safe_bound(self) -> float:
        """`bound`, lowered by what the tolerances of the back-end can be worth."""
        return self.bound - self.slack * max(1.0, abs(self.bound))


class Progress(Protocol):
    """Receives (incumbent, bound, nodes); False asks the back-end to stop."""

    def __call__(self, incumbent: float, bound: float, nodes: int) -> bool: ...


@dataclass(frozen=True, eq=False)
class Search:
    """What a back-end is asked for.

    Parameters
    ----------
    mip_gap : float
        Relative gap to reach.
    time_limit : float or None, default=None
        Seconds at most.
    starts : sequence of ndarray, default=()
        Feasible points to start from.
    threads : int, default=1
        Threads of the back-end.
    verbose : int, default=0
        From 2 on the back-end writes its log.
    progress : Progress or None, default=None
        Is told how far the search is, by back-ends that can.
    options : mapping, default={}
        Settings of the back-end in its own words; they win over the others.
    """

    mip_gap: float
    time_limit: float | None = None
    starts: Sequence[FloatArray] = ()
    threads: int = 1
    verbose: int = 0
    progress: Progress | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def search(backend: str, program: MixedIntegerProgram, wanted: Search) -> MixedIntegerResult:
    """Hand a program to a back-end, the module of its name with an underscore behind."""
    module = import_module(f"owasvm.models.backends.{backend}_")
    result: MixedIntegerResult = module.solve(program, wanted)
    return result
