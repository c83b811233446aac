"""FICO Xpress through its own package, which brings a size-limited licence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from owasvm.models.backends import BACKENDS, BackendError
from owasvm.models.backends.program import (
    MixedIntegerProgram,
    MixedIntegerResult,
    Search,
)

# Rows and reduced costs up to 1e-6, integrality up to 5e-6.
SLACK = 1e-5


def solve(program: MixedIntegerProgram, search: Search) -> MixedIntegerResult:
    """Solve the program; `search.options` are Xpress controls. Progress is not reported."""
    xpress = BACKENDS["xpress"].load()
    settings: dict[str, Any] = {
        "miprelstop": search.mip_gap,
        "mipabsstop": search.mip_gap,
        "threads": search.threads,
        "outputlog": int(search.verbose >= 2),
    }
    if search.time_limit is not None:
        settings["timelimit"] = max(search.time_limit, 0.01)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Using the Community license")
            model = xpress.problem()
        for name, value in {**settings, **search.options}.items():
            model.setControl(name, value)
        _write(xpress, model, program)
        for number, point in enumerate(search.starts):
            model.addMipSol(point.tolist(), None, f"start {number}")
        model.optimize()
        return _result(xpress, model)
    except xpress.SolverError as error:
        raise BackendError(
            f"Xpress failed on {program.n_variables} variables and {program.n_rows} rows: "
            f"{error}; use backend='scip' if its licence is too small."
        ) from error


def _write(xpress: Any, model: Any, program: MixedIntegerProgram) -> None:
    """Rows, variables and objective."""
    lower, upper = program.row_lower, program.row_upper
    bounded, ranged = np.isfinite(upper), np.isfinite(lower) & np.isfinite(upper)
    kinds = np.where(bounded, "L", "G")
    kinds[ranged] = "R"
    kinds[lower == upper] = "E"
    columns = program.matrix.tocsc()
    binaries = np.flatnonzero(program.binary)
    model.loadMIQP(
        "owasvm",
        rowtype=kinds.tolist(),
        rhs=np.where(bounded, upper, lower).tolist(),
        rng=np.where(ranged, upper - lower, 0.0).tolist(),
        objcoef=program.linear.tolist(),
        start=columns.indptr.tolist(),
        rowind=columns.indices.tolist(),
        rowcoef=columns.data.tolist(),
        lb=np.maximum(program.lower, -xpress.infinity).tolist(),
        ub=np.minimum(program.upper, xpress.infinity).tolist(),
        # Xpress has the half in front of its quadratic.
        objqcol1=program.squares.tolist(),
        objqcol2=program.squares.tolist(),
        objqcoef=np.ones(program.squares.size).tolist(),
        coltype=["B"] * binaries.size,
        entind=binaries.tolist(),
    )
    # Declaring a variable binary resets its bounds.
    model.chgBounds(
        binaries.tolist() * 2,
        ["L"] * binaries.size + ["U"] * binaries.size,
        np.concatenate((program.lower[binaries], program.upper[binaries])).tolist(),
    )


def _result(xpress: Any, model: Any) -> MixedIntegerResult:
    attributes = model.attributes
    stopped = {
        xpress.StopType.TIMELIMIT: "time_limit",
        xpress.StopType.NODELIMIT: "limit",
        xpress.StopType.CTRLC: "interrupted",
        xpress.StopType.USER: "interrupted",
    }
    ending = {
        xpress.SolStatus.OPTIMAL: "optimal",
        xpress.SolStatus.INFEASIBLE: "infeasible",
        xpress.SolStatus.UNBOUNDED: "infeasible",
    }
    solved = xpress.SolStatus(attributes.solstatus)
    status = ending.get(solved)
    if status is None:
        status = stopped.get(xpress.StopType(attributes.stopstatus), "limit")
    found = solved in (xpress.SolStatus.OPTIMAL, xpress.SolStatus.FEASIBLE)
    bound = float(attributes.bestbound)
    return MixedIntegerResult(
        point=np.array(model.getSolution()) if found else None,
        objective=float(attributes.objval) if found else np.inf,
        bound=bound if abs(bound) < 1e30 else -np.inf,
        slack=SLACK,
        status=status,
        n_nodes=int(attributes.nodes),
        message=solved.name.lower(),
    )
