"""Gurobi through gurobipy, which brings a licence for small problems: about ten samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from owasvm.models.backends import BACKENDS, BackendError
from owasvm.models.backends.program import (
    MixedIntegerProgram,
    MixedIntegerResult,
    Progress,
    Search,
)

# Rows and reduced costs up to 1e-6, integrality up to 1e-5.
SLACK = 1e-5

_SIZE_LIMIT = 10010
_STATUS = {
    2: ("optimal", "optimal"),
    3: ("infeasible", "infeasible"),
    4: ("infeasible", "infeasible or unbounded"),
    5: ("infeasible", "unbounded"),
    7: ("limit", "iteration limit"),
    8: ("limit", "node limit"),
    9: ("time_limit", "time limit"),
    10: ("limit", "solution limit"),
    11: ("interrupted", "interrupted"),
    13: ("limit", "suboptimal"),
    17: ("limit", "memory limit"),
}


def solve(program: MixedIntegerProgram, search: Search) -> MixedIntegerResult:
    """Solve the program; `search.options` are Gurobi parameters."""
    gurobi = BACKENDS["gurobi"].load()
    settings = {
        "OutputFlag": int(search.verbose >= 2),
        "Threads": search.threads,
        "MIPGap": search.mip_gap,
        "MIPGapAbs": search.mip_gap,
    }
    if search.time_limit is not None:
        settings["TimeLimit"] = max(search.time_limit, 0.01)
    try:
        with (
            gurobi.Env(params={"OutputFlag": int(search.verbose >= 2)}) as environment,
            gurobi.Model("owasvm", env=environment) as model,
        ):
            variables = _write(gurobi, model, program)
            if search.starts:
                model.NumStart = len(search.starts)
                for number, point in enumerate(search.starts):
                    model.Params.StartNumber = number
                    variables.Start = point
            for name, value in {**settings, **search.options}.items():
                model.setParam(name, value)
            model.optimize(_callback(gurobi, search.progress))
            return _result(model, variables)
    except gurobi.GurobiError as error:
        if error.errno == _SIZE_LIMIT:
            raise BackendError(
                f"Gurobi's licence is too small for {program.n_variables} variables and "
                f"{program.n_rows} rows; use backend='scip', or a full licence."
            ) from error
        raise BackendError(f"Gurobi failed: {error}") from error


def _write(gurobi: Any, model: Any, program: MixedIntegerProgram) -> Any:
    """Variables, rows and objective."""
    kinds = np.where(program.binary, gurobi.GRB.BINARY, gurobi.GRB.CONTINUOUS)
    variables = model.addMVar(
        program.n_variables, lb=program.lower, ub=program.upper, vtype=kinds.tolist()
    )
    matrix, lower, upper = program.matrix, program.row_lower, program.row_upper
    equal = lower == upper
    for chosen, sense, sides in (
        (equal, "=", lower),
        (~equal & np.isfinite(lower), ">", lower),
        (~equal & np.isfinite(upper), "<", upper),
    ):
        if chosen.any():
            model.addMConstr(matrix[chosen], variables, sense, sides[chosen])
    ones = np.full(program.squares.size, 0.5)
    quadratic = sp.csr_matrix(
        (ones, (program.squares, program.squares)), shape=(program.n_variables,) * 2
    )
    model.setMObjective(quadratic, program.linear, 0.0, sense=gurobi.GRB.MINIMIZE)
    return variables


def _callback(gurobi: Any, progress: Progress | None) -> Any:
    if progress is None:
        return None

    def report(model: Any, where: int) -> None:
        codes = gurobi.GRB.Callback
        if where == codes.MIP:
            going_on = progress(
                model.cbGet(codes.MIP_OBJBST),
                model.cbGet(codes.MIP_OBJBND),
                int(model.cbGet(codes.MIP_NODCNT)),
            )
            if not going_on:
                model.terminate()

    return report


def _result(model: Any, variables: Any) -> MixedIntegerResult:
    if model.Status not in _STATUS:
        raise BackendError(f"Gurobi ended with the status {model.Status} and no answer.")
    status, message = _STATUS[model.Status]
    found = model.SolCount > 0
    bound = float(model.ObjBound)
    return MixedIntegerResult(
        point=np.array(variables.X) if found else None,
        objective=float(model.ObjVal) if found else np.inf,
        bound=bound if bound > -1e99 else -np.inf,
        slack=SLACK,
        status=status,
        n_nodes=int(model.NodeCount),
        message=message,
    )
