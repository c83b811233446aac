"""COPT through coptpy. The package brings a size-limited licence."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from owasvm.models.backends import BACKENDS, BackendError
from owasvm.models.backends.program import (
    MixedIntegerProgram,
    MixedIntegerResult,
    Search,
)

# Rows, reduced costs and integrality up to 1e-6.
SLACK = 1e-5


def solve(program: MixedIntegerProgram, search: Search) -> MixedIntegerResult:
    """Solve the program; `search.options` are COPT parameters. Progress is not reported."""
    copt = BACKENDS["copt"].load()
    settings = {"RelGap": search.mip_gap, "AbsGap": search.mip_gap, "Threads": search.threads}
    if search.time_limit is not None:
        settings["TimeLimit"] = max(search.time_limit, 0.01)
    try:
        configuration = copt.EnvrConfig()
        if search.verbose < 2:
            configuration.set("nobanner", "1")
        model = copt.Envr(configuration).createModel("owasvm")
        model.setParam("Logging", int(search.verbose >= 2))
        variables = _write(copt, model, program)
        for point in search.starts:
            model.setMipStart(variables, point.tolist())
            model.loadMipStart()
        for name, value in {**settings, **search.options}.items():
            model.setParam(name, value)
        model.solve()
        return _result(copt, model)
    except copt.CoptError as error:
        raise BackendError(
            f"COPT failed on {program.n_variables} variables and {program.n_rows} rows: "
            f"{error.message}; use backend='scip' if its licence is too small."
        ) from error


def _write(copt: Any, model: Any, program: MixedIntegerProgram) -> list[Any]:
    """Rows, variables and objective."""
    kinds = ["B" if binary else "C" for binary in program.binary]
    infinity = copt.COPT.INFINITY
    # COPT reads ranges as (lower, upper) of every row when no senses are given.
    model.loadMatrix(
        program.linear,
        sp.csc_matrix(program.matrix),
        np.maximum(program.row_lower, -infinity),
        np.minimum(program.row_upper, infinity),
        np.maximum(program.lower, -infinity),
        np.minimum(program.upper, infinity),
        kinds,
    )
    halves = np.full(program.squares.size, 0.5)
    model.loadQ(
        sp.coo_matrix((halves, (program.squares, program.squares)), (program.n_variables,) * 2)
    )
    model.setObjSense(copt.COPT.MINIMIZE)
    return list(model.getVars())


def _result(copt: Any, model: Any) -> MixedIntegerResult:
    codes = copt.COPT
    known = {
        codes.OPTIMAL: ("optimal", "optimal"),
        codes.TIMEOUT: ("time_limit", "time limit"),
        codes.NODELIMIT: ("limit", "node limit"),
        codes.INTERRUPTED: ("interrupted", "interrupted"),
        codes.INFEASIBLE: ("infeasible", "infeasible"),
        codes.INF_OR_UNB: ("infeasible", "infeasible or unbounded"),
        codes.UNBOUNDED: ("infeasible", "unbounded"),
    }
    if model.status not in known:
        raise BackendError(f"COPT ended with the status {model.status} and no answer.")
    status, message = known[model.status]
    found = bool(model.hasmipsol)
    bound = float(model.bestbnd)
    return MixedIntegerResult(
        point=np.array(model.getValues()) if found else None,
        objective=float(model.objval) if found else np.inf,
        bound=bound if abs(bound) < codes.INFINITY else -np.inf,
        slack=SLACK,
        status=status,
        n_nodes=int(model.nodecnt),
        message=message,
    )
