"""Back-ends of the models: which are there, what each can do, and how they are called.

Continuous models go through cvxpy (:mod:`owasvm.models.backends.cvxpy_`), mixed-integer models
to a solver's own Python package, one file each, named after the keyword with a trailing
underscore. Nothing is imported before it is used: :func:`available` looks packages up without
loading them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata, util
from typing import Any, NamedTuple

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendError",
    "BackendInfo",
    "MissingBackendError",
    "available",
    "choose_backend",
]


class BackendError(RuntimeError):
    """A back-end ended without an answer."""


class MissingBackendError(ImportError):
    """A back-end is not installed."""


@dataclass(frozen=True)
class Backend:
    """A solver that a model can be handed to.

    Parameters
    ----------
    name : str
        Keyword of the option ``backend``.
    module : str
        Module to import.
    distribution : str
        Name on the package index.
    continuous : bool
        Solves the convex models and the auxiliary problems with linear constraints, through
        cvxpy.
    conic : bool
        Also takes the quadratic constraint of the auxiliary problems.
    mixed_integer : bool
        Solves the models with binary variables.
    licence : str
        "open", or what a user of the package has to know.
    extra : str or None, default=None
        The extra of this package that installs it.
    """

    name: str
    module: str
    distribution: str
    continuous: bool
    conic: bool
    mixed_integer: bool
    licence: str
    extra: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the package can be imported; it is not."""
        return util.find_spec(self.module) is not None

    @property
    def version(self) -> str | None:
        """Version of the installed package."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None

    @property
    def install_command(self) -> str:
        """What to type when it is missing."""
        if self.extra is None:
            return f"pip install {self.distribution}"
        return f"pip install 'owasvm[{self.extra}]'"

    def check_installed(self) -> None:
        """Say in one line what to install, if it is not."""
        if not self.installed:
            raise MissingBackendError(
                f"Back-end {self.name!r} is not installed: {self.install_command}"
            )

    def load(self) -> Any:
        """Import the package."""
        self.check_installed()
        return import_module(self.module)


_LIMITED = "commercial, size-limited licence in the package"
_LICENSED = "commercial, needs a licence"

BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("clarabel", "clarabel", "clarabel", True, True, False, "open", "models"),
        Backend("piqp", "piqp", "piqp", True, False, False, "open", "models"),
        Backend("scs", "scs", "scs", True, True, False, "open", "models"),
        Backend("osqp", "osqp", "osqp", True, False, False, "open", "models"),
        Backend("highs", "highspy", "highspy", True, False, False, "open", "models"),
        Backend("proxqp", "proxsuite", "proxsuite", True, False, False, "open"),
        Backend("scip", "pyscipopt", "pyscipopt", False, False, True, "open", "models"),
        Backend("gurobi", "gurobipy", "gurobipy", True, True, True, _LIMITED),
        Backend("cplex", "cplex", "cplex", True, True, True, _LIMITED),
        Backend("mosek", "mosek", "mosek", True, True, False, _LICENSED),
        Backend("copt", "coptpy", "coptpy", True, True, True, _LIMITED),
        Backend("xpress", "xpress", "xpress", True, True, True, _LIMITED),
    )
}

DEFAULT_CONTINUOUS = "clarabel"
DEFAULT_MIXED_INTEGER = "scip"


class BackendInfo(NamedTuple):
    """One line of :func:`available`."""

    name: str
    kind: str
    installed: bool
    version: str | None
    capabilities: str


def _describe(backend: Backend) -> tuple[str, str]:
    """Kind and capabilities."""
    kinds, able = [], []
    if backend.continuous:
        kinds.append("conic" if backend.conic else "qp")
        able.append("convex models")
    if backend.conic:
        able.append("auxiliary problems of Algorithm 1")
    if backend.mixed_integer:
        kinds.append("miqp")
        able.append("mixed-integer models")
    return "+".join(kinds), f"{', '.join(able)} ({backend.licence})"


def available() -> list[BackendInfo]:
    """Table of the back-ends: name, kind, installed, version, capabilities.

    Kinds are ``"qp"`` (convex models), ``"conic"`` (these and the auxiliary problems) and
    ``"miqp"`` (mixed-integer models). Nothing is imported.

    Returns
    -------
    table : list of BackendInfo

    Examples
    --------
    >>> from owasvm.models import available
    >>> [row.name for row in available() if "miqp" in row.kind]
    ['scip', 'gurobi', 'cplex', 'copt', 'xpress']
    """
    table = []
    for backend in BACKENDS.values():
        kind, capabilities = _describe(backend)
        version = backend.version if backend.installed else None
        table.append(BackendInfo(backend.name, kind, backend.installed, version, capabilities))
    return table


def choose_backend(name: str | None, purpose: str) -> Backend:
    """The back-end of this name (None: the default), able to serve `purpose` and installed.

    Parameters
    ----------
    name : str or None
        Keyword, or None for the default of the purpose.
    purpose : {'continuous', 'conic', 'mixed_integer'}
        What is asked of it.
    """
    default = DEFAULT_MIXED_INTEGER if purpose == "mixed_integer" else DEFAULT_CONTINUOUS
    keyword = default if name is None else name
    able = [backend.name for backend in BACKENDS.values() if getattr(backend, purpose)]
    if keyword not in able:
        what = {
            "continuous": "convex models",
            "conic": "problems with a quadratic constraint",
            "mixed_integer": "mixed-integer models",
        }[purpose]
        raise ValueError(f"backend={keyword!r} does not solve {what}; use one of {able}.")
    BACKENDS[keyword].check_installed()
    return BACKENDS[keyword]
