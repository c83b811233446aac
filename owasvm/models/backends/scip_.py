"""SCIP through PySCIPOpt: warm start, time limit, incumbent and bound.

SCIP takes linear objectives only. Each square ``1/2 x_j^2`` is replaced by a variable ``t_j`` with
``1/2 x_j^2 <= t_j``: one epigraph per coordinate, which is several times faster than one
constraint for their sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from owasvm.models.backends import BACKENDS, BackendError
from owasvm.models.backends.program import (
    FloatArray,
    MixedIntegerProgram,
    MixedIntegerResult,
    Progress,
    Search,
)

# SCIP satisfies rows, squares and integrality up to 1e-6 and LP duals up to 1e-7.
SLACK = 2e-6

_STATUS = {
    "optimal": "optimal",
    "gaplimit": "optimal",
    "timelimit": "time_limit",
    "memlimit": "limit",
    "nodelimit": "limit",
    "totalnodelimit": "limit",
    "stallnodelimit": "limit",
    "sollimit": "limit",
    "bestsollimit": "limit",
    "userinterrupt": "interrupted",
    "terminate": "interrupted",
    "infeasible": "infeasible",
    "inforunbd": "infeasible",
    "unbounded": "infeasible",
}


def solve(program: MixedIntegerProgram, search: Search) -> MixedIntegerResult:
    """Solve the program; `search.options` are SCIP parameters by their full names."""
    scip = BACKENDS["scip"].load()
    model = scip.Model("owasvm")
    if search.verbose < 2:
        model.hideOutput()
    variables, epigraphs = _write(scip, model, program)
    for point in search.starts:
        _suggest(model, program, variables, epigraphs, point)
    model.setParam("limits/gap", search.mip_gap)
    model.setParam("limits/absgap", search.mip_gap)
    if search.time_limit is not None:
        model.setParam("limits/time", max(search.time_limit, 0.01))
    for name, value in search.options.items():
        model.setParam(name, value)
    if search.progress is not None:
        _report_progress(scip, model, search.progress)
    model.optimize()
    return _result(model, variables)


def _write(
    scip: Any, model: Any, program: MixedIntegerProgram
) -> tuple[list[Any], dict[int, Any]]:
    """Variables, epigraphs, rows and objective."""
    linear = program.linear
    variables = [
        model.addVar(
            lb=None if np.isneginf(low) else float(low),
            ub=None if np.isposinf(high) else float(high),
            vtype="B" if binary else "C",
            obj=float(cost),
        )
        for low, high, binary, cost in zip(
            program.lower, program.upper, program.binary, linear, strict=True
        )
    ]
    epigraphs = {}
    for j in program.squares.tolist():
        epigraphs[j] = model.addVar(lb=0.0, obj=1.0)
        model.addCons(0.5 * variables[j] * variables[j] - epigraphs[j] <= 0.0)
    matrix, lower, upper = program.matrix, program.row_lower, program.row_upper
    for r in range(program.n_rows):
        entries = slice(matrix.indptr[r], matrix.indptr[r + 1])
        row = scip.quicksum(
            float(value) * variables[column]
            for value, column in zip(matrix.data[entries], matrix.indices[entries], strict=True)
        )
        if lower[r] == upper[r]:
            model.addCons(row == float(lower[r]))
            continue
        if np.isfinite(lower[r]):
            model.addCons(row >= float(lower[r]))
        if np.isfinite(upper[r]):
            model.addCons(row <= float(upper[r]))
    model.setMinimize()
    return variables, epigraphs


def _suggest(
    model: Any,
    program: MixedIntegerProgram,
    variables: list[Any],
    epigraphs: dict[int, Any],
    point: FloatArray,
) -> None:
    """Hand a feasible point to SCIP as its first incumbent."""
    solution = model.createSol()
    for variable, value in zip(variables, point, strict=True):
        model.setSolVal(solution, variable, float(value))
    for j in program.squares.tolist():
        model.setSolVal(solution, epigraphs[j], 0.5 * float(point[j]) ** 2)
    model.addSol(solution)


def _report_progress(scip: Any, model: Any, progress: Progress) -> None:
    """Call `progress` at every solved node and every new incumbent."""
    events = (scip.SCIP_EVENTTYPE.NODESOLVED, scip.SCIP_EVENTTYPE.BESTSOLFOUND)

    class _Handler(scip.Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:  # noqa: ARG002
            going_on = progress(
                self.model.getPrimalbound(), self.model.getDualbound(), self.model.getNNodes()
            )
            if not going_on:
                self.model.interruptSolve()

    model.includeEventhdlr(_Handler(), "owasvm progress", "reports incumbent and bound")


def _result(model: Any, variables: list[Any]) -> MixedIntegerResult:
    name = model.getStatus()
    if name not in _STATUS:
        raise BackendError(f"SCIP ended with the status {name!r} and no answer.")
    infinity = model.infinity()
    bound = model.getDualbound()
    point = None
    value = np.inf
    if model.getNSols() > 0:
        best = model.getBestSol()
        point = np.array([best[variable] for variable in variables])
        value = model.getSolObjVal(best)
    return MixedIntegerResult(
        point=point,
        objective=float(value),
        bound=-np.inf if abs(bound) >= infinity else float(bound),
        slack=SLACK,
        status=_STATUS[name],
        n_nodes=int(model.getNTotalNodes()),
        message=name,
    )
