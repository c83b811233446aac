"""Branch and bound against the strengthened mixed-integer model, in the same run.

Ionosphere subsamples of 20, 30 and 40 rows, Gaussian kernel of width 1, C = 1, quadratic and
trigonometric weights with alpha 0.8, several random subsamples each. Both have to prove the same
gap, 1e-4. SCIP solves the strengthened NC-OWA-SVM_K on one thread and is stopped at a time limit;
the ratio of the times is then a lower bound, marked ">". Where branch and bound is stopped it is
an upper bound, "<", and where both are it says nothing, "?". Branch and bound: the best of three
calls, unless one takes more than 2 s. Compilation is excluded.

Optima agree when each objective is at most the gap above the other one; where SCIP was stopped,
its point must not be better and its bound must not contradict ours.

Every finished case is stored at once in ``results/against_miqp.jsonl``, and a rerun skips what is
there. The table ``results/against_miqp.md`` is written at the end.

    OWASVM_DATA=... python benchmarks/against_miqp.py [--seeds 3] [--scip-limit 120] [--limit N]
    python benchmarks/against_miqp.py --table
"""

from common import (  # first: it limits the threads
    add_result_options,
    append_record,
    best_time,
    gram,
    load,
    machine,
    markdown_table,
    parse_result_options,
    read_records,
    solver_sources,
)

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from owasvm.models import available
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Solution, relative_gap
from owasvm.solvers import solve

SIZES = (20, 30, 40)
FAMILIES = ("quadratic", "trigonometric")
ALPHA, C, SIGMA = 0.8, 1.0, 1.0
MIP_GAP = 1e-4
OWN_LIMIT = 60.0
KEY = ("n_samples", "family", "seed", "scip_limit")

Record = dict[str, Any]


def make_problem(n_samples: int, family: str, seed: int) -> OWAProblem:
    """One subsample."""
    X, y = load("ionosphere")
    rows = np.random.default_rng(seed).permutation(y.size)[:n_samples]
    costs = RankCosts(n_samples, family, ALPHA, C)
    return OWAProblem(y[rows], costs, gram=gram(X[rows], SIGMA))


def own_solution(problem: OWAProblem) -> Solution:
    """Branch and bound."""
    return solve(
        problem,
        "branch-and-bound",
        mip_gap=MIP_GAP,
        time_limit=OWN_LIMIT,
        options={"max_nodes": 10**9},
    )


def scip_solution(problem: OWAProblem, time_limit: float) -> Solution:
    """The mixed-integer model."""
    return solve(
        problem, "miqp", mip_gap=MIP_GAP, time_limit=time_limit, options={"backend": "scip"}
    )


def figures(solution: Solution, seconds: float) -> Record:
    """What is stored of a solution."""
    return {
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "status": str(solution.status),
        "nodes": solution.n_iter,
        "seconds": seconds,
    }


def measured(problem: OWAProblem, scip_limit: float) -> Record:
    """Both on one problem."""
    seconds, own = best_time(lambda: own_solution(problem))
    begun = time.perf_counter()
    scip = scip_solution(problem, scip_limit)
    return {
        "own": figures(own, seconds),
        "scip": figures(scip, time.perf_counter() - begun),
    }


def agree(record: Record) -> bool:
    """Whether both say the same, or at least do not contradict each other."""
    own, scip = record["own"], record["scip"]
    sane = (
        relative_gap(own["lower_bound"], scip["objective"]) <= 1e-8
        and relative_gap(scip["lower_bound"], own["objective"]) <= MIP_GAP
        and relative_gap(own["objective"], scip["objective"]) <= MIP_GAP
    )
    if scip["status"] != "optimal":
        return sane
    return sane and relative_gap(scip["objective"], own["objective"]) <= MIP_GAP


def run(cases: Sequence[tuple[int, str, int]], path: Path, scip_limit: float) -> None:
    """Measure what has not been measured yet."""
    done = {tuple(record[key] for key in KEY) for record in read_records(path)}
    missing = [case for case in cases if (*case, scip_limit) not in done]
    print(f"{len(cases)} cases, {len(missing)} to do")
    if not missing:
        return
    for family in FAMILIES:
        # Compilation is not part of anybody's time.
        own_solution(make_problem(16, family, 0))
    scip_solution(make_problem(8, "quadratic", 0), scip_limit)
    version = next(row.version for row in available() if row.name == "scip")
    where = {"machine": f"{machine()}, PySCIPOpt {version}", "sources": solver_sources()}
    for case in missing:
        record = dict(zip(KEY, (*case, scip_limit), strict=True))
        record |= measured(make_problem(*case), scip_limit)
        append_record(path, record | where)
        print(" ".join(cell.strip("*") for cell in row_of(record)), flush=True)


def ratio(record: Record) -> float:
    """How many times faster branch and bound is."""
    return float(record["scip"]["seconds"] / record["own"]["seconds"])


def ratio_mark(records: Sequence[Record]) -> str:
    """What stopped solves make of their ratios."""
    own = any(record["own"]["status"] != "optimal" for record in records)
    scip = any(record["scip"]["status"] != "optimal" for record in records)
    return {(False, False): "", (False, True): "> ", (True, False): "< ", (True, True): "? "}[
        own, scip
    ]


def row_of(record: Record) -> list[str]:
    """A case in the table."""
    own, scip = record["own"], record["scip"]
    gaps = [f"{relative_gap(one['objective'], one['lower_bound']):.1e}" for one in (own, scip)]
    return [
        f"{record['n_samples']}",
        record["family"],
        str(record["seed"]),
        f"{own['objective']:.6f}",
        f"{scip['objective']:.6f}",
        gaps[0],
        gaps[1],
        "yes" if agree(record) else "**no**",
        f"{own['nodes']}",
        f"{scip['nodes']}",
        f"{own['seconds']:.3f}",
        f"{scip['seconds']:.2f}",
        f"{ratio_mark([record])}{ratio(record):.1f}",
    ]


HEADER = (
    "n",
    "weights",
    "seed",
    "objective",
    "SCIP's",
    "gap",
    "SCIP's",
    "agree",
    "nodes",
    "SCIP's",
    "s",
    "SCIP's",
    "times faster",
)


def report(records: Sequence[Record]) -> str:
    """The whole page."""
    parts = sorted({record["machine"] for record in records})
    sources = len({record["sources"] for record in records})
    if sources > 1:
        parts.append(f"Measured with {sources} states of the source files.")
    parts.append(
        f"Ionosphere subsamples, rbf {SIGMA:g}, C = {C:g}, alpha {ALPHA:g}, target gap "
        f"{MIP_GAP:g}. SCIP is stopped at {records[0]['scip_limit']:g} s, and a ratio marked > "
        f"is then a lower bound; branch and bound at {OWN_LIMIT:g} s, and a ratio marked < is "
        "then an upper bound."
    )
    summaries = []
    for n_samples, family in itertools.product(SIZES, FAMILIES):
        group = [r for r in records if (r["n_samples"], r["family"]) == (n_samples, family)]
        if not group:
            continue
        ratios = [ratio(record) for record in group]
        stopped = sum(record["scip"]["status"] != "optimal" for record in group)
        proven = sum(record["own"]["status"] == "optimal" for record in group)
        mark = ratio_mark(group)
        summaries.append(
            [
                f"n = {n_samples}, {family}",
                str(len(group)),
                str(proven),
                str(len(group) - stopped),
                str(sum(agree(record) for record in group)),
                f"{mark}{min(ratios):.1f}",
                f"{mark}{np.median(ratios):.1f}",
            ]
        )
    header = ("subsamples", "cases", "proven", "by SCIP", "agree", "times faster, least", "median")
    parts += [markdown_table(header, summaries), markdown_table(HEADER, map(row_of, records))]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scip-limit", type=float, default=120.0)
    add_result_options(parser, "against_miqp", shares=False)
    arguments = parse_result_options(parser)
    if not arguments.table:
        print(machine())
        cases = [
            (n_samples, family, seed)
            for n_samples, seed, family in itertools.product(
                SIZES, range(arguments.seeds), FAMILIES
            )
        ]
        run(cases[: arguments.limit], arguments.results, arguments.scip_limit)
    records = [
        record
        for record in read_records(arguments.results)
        if record["scip_limit"] == arguments.scip_limit
    ]
    if not records:
        print("no results yet")
        return
    records.sort(key=lambda record: tuple(record[key] for key in KEY))
    page = report(records)
    arguments.results.with_suffix(".md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
