"""CPLEX through its own package, which brings a licence for 1000 variables: some 29 samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from owasvm.models.backends import BACKENDS, BackendError
from owasvm.models.backends.program import (
    MixedIntegerProgram,
    MixedIntegerResult,
    Progress,
    Search,
)

# Rows and reduced costs up to 1e-6, integrality up to 1e-5.
SLACK = 1e-5

_SIZE_LIMIT = 1016


def solve(program: MixedIntegerProgram, search: Search) -> MixedIntegerResult:
    """Solve the program; `search.options` are CPLEX parameters: ``"mip.strategy.search"``."""
    cplex = BACKENDS["cplex"].load()
    with cplex.Cplex() as model:
        if search.verbose < 2:
            for set_stream in (
                model.set_log_stream,
                model.set_results_stream,
                model.set_warning_stream,
                model.set_error_stream,
            ):
                set_stream(None)
        _write(cplex, model, program)
        _set_parameters(model, search)
        for point in search.starts:
            model.MIP_starts.add(
                cplex.SparsePair(list(range(program.n_variables)), point.tolist()),
                model.MIP_starts.effort_level.check_feasibility,
            )
        if search.progress is not None:
            _report_progress(cplex, model, search.progress)
        try:
            model.solve()
        except cplex.exceptions.CplexSolverError as error:
            if error.args[2:] == (_SIZE_LIMIT,):
                raise BackendError(
                    f"CPLEX's licence is too small for {program.n_variables} variables and "
                    f"{program.n_rows} rows; use backend='scip', or a full licence."
                ) from error
            raise BackendError(f"CPLEX failed: {error}") from error
        return _result(model)


def _write(cplex: Any, model: Any, program: MixedIntegerProgram) -> None:
    """Variables, rows and objective."""
    infinity = cplex.infinity
    model.variables.add(
        obj=program.linear.tolist(),
        lb=np.maximum(program.lower, -infinity).tolist(),
        ub=np.minimum(program.upper, infinity).tolist(),
        types="".join("B" if binary else "C" for binary in program.binary),
    )
    matrix, lower, upper = program.matrix, program.row_lower, program.row_upper
    rows, senses, sides = [], [], []
    for r in range(program.n_rows):
        entries = slice(matrix.indptr[r], matrix.indptr[r + 1])
        pair = cplex.SparsePair(matrix.indices[entries].tolist(), matrix.data[entries].tolist())
        if lower[r] == upper[r]:
            parts = [("E", lower[r])]
        else:
            parts = [("G", lower[r])] if np.isfinite(lower[r]) else []
            parts += [("L", upper[r])] if np.isfinite(upper[r]) else []
        for sense, side in parts:
            rows.append(pair)
            senses.append(sense)
            sides.append(float(side))
    model.linear_constraints.add(lin_expr=rows, senses="".join(senses), rhs=sides)
    diagonal = np.zeros(program.n_variables)
    # CPLEX has the half in front of its quadratic.
    diagonal[program.squares] = 1.0
    model.objective.set_quadratic(diagonal.tolist())
    model.objective.set_sense(model.objective.sense.minimize)


def _set_parameters(model: Any, search: Search) -> None:
    parameters = model.parameters
    parameters.threads.set(search.threads)
    parameters.mip.tolerances.mipgap.set(search.mip_gap)
    parameters.mip.tolerances.absmipgap.set(search.mip_gap)
    if search.time_limit is not None:
        parameters.timelimit.set(max(search.time_limit, 0.01))
    for name, value in search.options.items():
        target = parameters
        for part in name.split("."):
            target = getattr(target, part)
        target.set(value)


def _report_progress(cplex: Any, model: Any, progress: Progress) -> None:
    class _Report(cplex.callbacks.MIPInfoCallback):  # type: ignore[misc]
        def __call__(self) -> None:
            incumbent = self.get_incumbent_objective_value() if self.has_incumbent() else np.inf
            if not progress(incumbent, self.get_best_objective_value(), self.get_num_nodes()):
                self.abort()

    model.register_callback(_Report)


def _result(model: Any) -> MixedIntegerResult:
    codes = model.solution.status
    code = model.solution.get_status()
    known = {
        codes.MIP_optimal: "optimal",
        codes.optimal_tolerance: "optimal",
        codes.MIP_time_limit_feasible: "time_limit",
        codes.MIP_time_limit_infeasible: "time_limit",
        codes.MIP_abort_feasible: "interrupted",
        codes.MIP_abort_infeasible: "interrupted",
        codes.node_limit_feasible: "limit",
        codes.node_limit_infeasible: "limit",
        codes.MIP_infeasible: "infeasible",
        codes.MIP_infeasible_or_unbounded: "infeasible",
        codes.MIP_unbounded: "infeasible",
    }
    message = model.solution.get_status_string()
    if code not in known:
        raise BackendError(f"CPLEX ended with the status {message!r} and no answer.")
    found = model.solution.is_primal_feasible()
    bound = -np.inf
    if known[code] != "infeasible":
        bound = float(model.solution.MIP.get_best_objective())
    return MixedIntegerResult(
        point=np.array(model.solution.get_values()) if found else None,
        objective=float(model.solution.get_objective_value()) if found else np.inf,
        bound=bound if bound > -1e19 else -np.inf,
        slack=SLACK,
        status=known[code],
        n_nodes=int(model.solution.progress.get_num_nodes_processed()),
        message=message,
    )
