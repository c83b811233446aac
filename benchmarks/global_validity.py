"""General weights on small problems: are the optima right, and are the bounds bounds?

``tiny``: 200 problems of 2 to 6 samples against enumeration of all orders of the deviations
(``tests/oracles.py``). Weights of every shape: quadratic, trigonometric, trimmed, olympic, Hurwicz,
random, random falling, small integers with ties, a single rank, weights over many magnitudes,
non-decreasing ones. Data: normal, integer with ties, duplicates with other labels, a single sample
of a class; linear, Gaussian and polynomial kernels; C from 2^-5 to 2^4. Branch and bound is asked
for a gap of 1e-6, twice: as it is, which for so few samples means branching on ranks, and made to
branch on coordinates as for many samples, for a few seconds: what it proves must be right, but it
need not finish. The bounds of "dca" are checked too.

``small``: 40 problems of 15 to 20 samples (ionosphere, diabetes, synthetic; quadratic,
trigonometric, trimmed, random falling weights; linear and Gaussian kernels) against the
strengthened mixed-integer model solved by SCIP.

Every finished problem is stored at once in ``results/global_validity.jsonl``, and a rerun skips what
is there. The table ``results/global_validity.md`` is written at the end.

    OWASVM_DATA=... python benchmarks/global_validity.py [tiny] [small] [--limit N] [--share S --of T]
    python benchmarks/global_validity.py --table
"""  # noqa: E501

from common import (  # first: it limits the threads
    FloatArray,
    add_result_options,
    append_record,
    gram,
    kernel_name,
    load,
    machine,
    markdown_table,
    power_of_two,
    parse_result_options,
    read_records,
    solver_sources,
)

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from owasvm.problem import OWAProblem, RankCosts
from owasvm.solution import Solution, relative_gap
from owasvm.solvers import branch_and_bound, solve
from owasvm.weights import owa_weights

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.oracles import enumerate_owa_svm, psd_factor

COUNTS = {"tiny": 200, "small": 40}
TINY_GAP = 1e-6
TINY_LIMIT = 60.0
COORDINATES_LIMIT = 2.0
SMALL_GAP = 1e-5
SMALL_LIMIT = 20.0
SCIP_LIMIT = 60.0
# Optimum and bounds of the oracles and of our solvers hold up to this much.
ROUNDING = 1e-8
# Branch and bound as users meet it: it must finish and find the optimum.
SHIPPED = ("ranks", "branch and bound")

Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A problem and how tables call it."""

    problem: OWAProblem
    data: str
    weights: str
    kernel: str

    @property
    def name(self) -> str:
        """One line."""
        C = power_of_two(self.problem.costs.C)
        n_samples = self.problem.n_samples
        return f"{self.data}, n = {n_samples}, {self.kernel}, C = {C}, {self.weights}"


def hurwicz(rng: np.random.Generator, n_samples: int) -> FloatArray:
    """Only the smallest and the largest deviation count."""
    weights = np.zeros(n_samples)
    share = rng.uniform(0.05, 0.95)
    weights[0] = share
    weights[-1] += 1.0 - share
    return weights


def single_rank(rng: np.random.Generator, n_samples: int) -> FloatArray:
    """Only one rank counts, often the median."""
    weights = np.zeros(n_samples)
    weights[rng.integers(n_samples) if rng.random() < 0.5 else n_samples // 2] = 1.0
    return weights


def integers_with_ties(rng: np.random.Generator, n_samples: int) -> FloatArray:
    """0, 1, 2 or 3 per rank, not all 0."""
    weights = rng.integers(0, 4, n_samples).astype(np.float64)
    weights[rng.integers(n_samples)] = 3.0
    return weights


def family(name: str, *alphas: float) -> Callable[[np.random.Generator, int], FloatArray]:
    """A named family with one of a few shapes."""
    return lambda rng, n_samples: owa_weights(n_samples, name, float(rng.choice(alphas)))


SHAPES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "quadratic": family("quadratic", 0.4, 0.6, 0.8),
    "trigonometric": family("trigonometric", 0.4, 0.8),
    "trimmed": family("trimmed", 0.2, 0.35, 0.5),
    "olympic": family("olympic", 0.3, 0.6),
    "Hurwicz": hurwicz,
    "random": lambda rng, n: rng.exponential(size=n),
    "random falling": lambda rng, n: np.sort(rng.exponential(size=n))[::-1].copy(),
    "integers": integers_with_ties,
    "single rank": single_rank,
    "many magnitudes": lambda rng, n: 10.0 ** rng.uniform(-6, 1, n),
    "non-decreasing": lambda rng, n: np.sort(rng.exponential(size=n)),
}
SMALL_SHAPES = ("quadratic", "trigonometric", "trimmed", "random falling")


def tiny_data(rng: np.random.Generator, kind: str) -> tuple[FloatArray, FloatArray]:
    """2 to 6 samples, both classes present; mostly as many as enumeration can do."""
    n_samples = int(rng.choice([2, 3, 4, 5, 6], p=[0.05, 0.1, 0.15, 0.3, 0.4]))
    X = rng.normal(size=(n_samples, rng.integers(1, 4)))
    y = np.where(X[:, 0] + rng.choice([0.5, 1.0, 3.0]) * rng.normal(size=n_samples) > 0, 1.0, -1.0)
    if kind == "integer":
        X = np.round(1.5 * X)
    elif kind == "duplicates":
        X[n_samples // 2 :] = X[: n_samples - n_samples // 2]
        y[n_samples // 2 :] = -y[: n_samples - n_samples // 2]
    elif kind == "one of a class":
        y[:] = -1.0
        y[0] = 1.0
    if np.all(y == y[0]):
        y[0] = -y[0]
    return X, y


def tiny_case(number: int) -> Case:
    """One of the tiny problems; shapes and kinds of data take turns."""
    rng = np.random.default_rng([1, number])
    data = ("normal", "integer", "duplicates", "one of a class")[number % 4]
    shape = list(SHAPES)[number % len(SHAPES)]
    X, y = tiny_data(rng, data)
    kernel = ("linear", "rbf", "polynomial")[number % 3]
    costs = RankCosts(y.size, SHAPES[shape](rng, y.size), None, 2.0 ** int(rng.integers(-5, 5)))
    if kernel == "linear":
        return Case(OWAProblem(y, costs, features=X), data, shape, kernel)
    K = gram(X, 2.0 ** int(rng.integers(-2, 3))) if kernel == "rbf" else (X @ X.T + 1.0) ** 2
    return Case(OWAProblem(y, costs, gram=K), data, shape, kernel)


@cache
def cached_data(name: str) -> tuple[FloatArray, FloatArray]:
    """A dataset, read once."""
    return load(name)


def small_data(rng: np.random.Generator, name: str) -> tuple[FloatArray, FloatArray]:
    """15 to 20 rows of a dataset, both classes present, or two overlapping clouds."""
    n_samples = int(rng.integers(15, 21))
    if name == "synthetic":
        y = np.where(np.arange(n_samples) % 2 == 0, 1.0, -1.0)
        return rng.normal(size=(n_samples, 3)) + 0.6 * y[:, np.newaxis], y
    X, y = cached_data(name)
    while True:
        rows = rng.permutation(y.size)[:n_samples]
        if 3 <= np.count_nonzero(y[rows] > 0) <= n_samples - 3:
            return X[rows], y[rows]


def small_case(number: int) -> Case:
    """One of the small problems; data, weights and kernels take turns."""
    rng = np.random.default_rng([2, number])
    data = ("ionosphere", "diabetes", "synthetic")[number % 3]
    shape = SMALL_SHAPES[number % 4]
    X, y = small_data(rng, data)
    C = 2.0 ** float(rng.choice([-3, 0, 3]))
    costs = RankCosts(y.size, SHAPES[shape](rng, y.size), None, C)
    sigma = (None, 1.0, None, 0.5)[number // 4 % 4]
    if sigma is None:
        return Case(OWAProblem(y, costs, features=X), data, shape, kernel_name(sigma))
    return Case(OWAProblem(y, costs, gram=gram(X, sigma)), data, shape, kernel_name(sigma))


def timed(problem: OWAProblem, solver: str, **settings: Any) -> tuple[Solution, float]:
    """A solution and its seconds."""
    begun = time.perf_counter()
    solution = solve(problem, solver, **settings)
    return solution, time.perf_counter() - begun


def figures(solution: Solution, seconds: float) -> Record:
    """What is stored of a solution."""
    return {
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "status": str(solution.status),
        "nodes": solution.n_iter,
        "seconds": seconds,
    }


def branching_on_coordinates() -> Any:
    """Context in which branch and bound treats few samples as it does many."""
    tuning = branch_and_bound.TUNING
    tuning = replace(tuning, tree=replace(tuning.tree, max_log_assignments=-math.inf))
    return patch.object(branch_and_bound, "TUNING", tuning)


def tiny_record(case: Case) -> Record:
    """Solve a tiny problem in all ways."""
    problem = case.problem
    X: Any = problem.features if problem.gram is None else psd_factor(problem.gram)
    begun = time.perf_counter()
    oracle = enumerate_owa_svm(
        X, problem.y, problem.costs.by_rank() / problem.costs.C, problem.costs.C
    )
    reference = {
        "objective": oracle.objective,
        "lower_bound": oracle.lower_bound,
        "seconds": time.perf_counter() - begun,
    }
    limits = {"mip_gap": TINY_GAP, "time_limit": TINY_LIMIT, "options": {"max_nodes": 10**9}}
    solvers = {"ranks": figures(*timed(problem, "branch-and-bound", **limits))}
    with branching_on_coordinates():
        limits["time_limit"] = COORDINATES_LIMIT
        solvers["coordinates"] = figures(*timed(problem, "branch-and-bound", **limits))
    solvers["dca"] = figures(*timed(problem, "dca", mip_gap=TINY_GAP))
    return {"reference": reference, "solvers": solvers}


def small_record(case: Case) -> Record:
    """Solve a small problem by SCIP and by our solvers."""
    problem = case.problem
    limits = {"mip_gap": SMALL_GAP, "time_limit": SMALL_LIMIT, "options": {"max_nodes": 10**9}}
    solvers = {
        "branch and bound": figures(*timed(problem, "branch-and-bound", **limits)),
        "dca": figures(*timed(problem, "dca", mip_gap=SMALL_GAP)),
    }
    scip = timed(
        problem, "miqp", mip_gap=SMALL_GAP, time_limit=SCIP_LIMIT, options={"backend": "scip"}
    )
    return {"reference": figures(*scip), "solvers": solvers}


PARTS: dict[str, tuple[Callable[[int], Case], Callable[[Case], Record]]] = {
    "tiny": (tiny_case, tiny_record),
    "small": (small_case, small_record),
}


def relative(difference: float, value: float) -> float:
    """A difference of objectives as gaps count it."""
    return difference / max(1.0, abs(value))


def optimum_error(record: Record, solver: str) -> float:
    """Distance of a solver's objective to the reference."""
    value = record["reference"]["objective"]
    return relative(abs(record["solvers"][solver]["objective"] - value), value)


def bound_excess(record: Record, solver: str) -> float:
    """How far a solver's lower bound lies above the smallest known feasible value."""
    values = [one["objective"] for one in record["solvers"].values()]
    value = min(record["reference"]["objective"], *values)
    return relative(record["solvers"][solver]["lower_bound"] - value, value)


def below_reference(record: Record, solver: str) -> float:
    """How far a solver's objective lies below what the reference proves possible."""
    proven = record["reference"]["lower_bound"]
    return relative(proven - record["solvers"][solver]["objective"], proven)


def comparable(record: Record, solver: str) -> bool:
    """Whether a solver's objective should be the optimum, and the optimum is known."""
    known = record["reference"].get("status", "optimal") == "optimal"
    return known and (solver in SHIPPED or record["solvers"][solver]["status"] == "optimal")


def verdict(record: Record, tolerance: float) -> str:
    """What is wrong with a record, in words; empty when nothing is."""
    wrong = []
    for solver, one in record["solvers"].items():
        excess = bound_excess(record, solver)
        if excess > ROUNDING:
            wrong.append(f"{solver}: bound {excess:.1e} too high")
        if below_reference(record, solver) > tolerance:
            wrong.append(f"{solver}: better than the reference thinks possible")
        if solver in SHIPPED and one["status"] != "optimal":
            gap = relative_gap(one["objective"], one["lower_bound"])
            wrong.append(f"{solver}: {one['status']}, gap {gap:.1e}")
        if comparable(record, solver) and optimum_error(record, solver) > tolerance:
            wrong.append(f"{solver}: optimum off by {optimum_error(record, solver):.1e}")
    return "; ".join(wrong)


TOLERANCES = {"tiny": TINY_GAP, "small": SMALL_GAP}


def run(part: str, numbers: Sequence[int], path: Path) -> None:
    """Measure what has not been measured yet."""
    done = {record["number"] for record in usable(read_records(path), part)}
    missing = [number for number in numbers if number not in done]
    print(f"{part}: {len(numbers)} problems, {len(missing)} to do")
    make, measure = PARTS[part]
    where = {"machine": machine(), "sources": solver_sources()}
    for position, number in enumerate(missing):
        case = make(number)
        head: Record = {"part": part, "number": number, "case": case.name, "weights": case.weights}
        try:
            if position == 0:
                # Compilation is not part of anybody's time.
                measure(case)
            record: Record = head | measure(case)
        except Exception as error:
            append_record(path, head | {"error": repr(error)} | where)
            print(f"{number:3d} {case.name}: {error!r}", flush=True)
            continue
        append_record(path, record | where)
        times = ", ".join(
            f"{name} {one['seconds']:.2f} s ({one['nodes']} nodes)"
            for name, one in record["solvers"].items()
        )
        print(
            f"{number:3d} {case.name}: {times}, reference {record['reference']['seconds']:.2f} s. "
            + (verdict(record, TOLERANCES[part]) or "ok"),
            flush=True,
        )


def usable(records: Sequence[Record], part: str) -> list[Record]:
    """Finished records of a part, the last one of every problem, in order."""
    latest = {record["number"]: record for record in records if record["part"] == part}
    return [latest[number] for number in sorted(latest) if "error" not in latest[number]]


def failures(records: Sequence[Record], part: str) -> list[Record]:
    """Problems whose last attempt raised an error."""
    latest = {record["number"]: record for record in records if record["part"] == part}
    return [record for record in latest.values() if "error" in record]


def solver_table(records: Sequence[Record], tolerance: float) -> str:
    """Counts and worst differences, one row per solver."""
    rows = []
    for solver in records[0]["solvers"]:
        proven = [r for r in records if r["solvers"][solver]["status"] == "optimal"]
        errors = [optimum_error(r, solver) for r in records if comparable(r, solver)]
        seconds = [record["solvers"][solver]["seconds"] for record in records]
        rows.append(
            [
                solver,
                f"{len(proven)} of {len(records)}",
                f"{sum(error <= tolerance for error in errors)} of {len(errors)}",
                f"{max(errors, default=math.nan):.1e}",
                f"{max(below_reference(record, solver) for record in records):.1e}",
                str(sum(bound_excess(record, solver) > ROUNDING for record in records)),
                f"{max(bound_excess(record, solver) for record in records):.1e}",
                f"{np.median(seconds):.2g}",
                f"{max(seconds):.2g}",
            ]
        )
    header = (
        "solver",
        "proven",
        f"equal to {tolerance:g}",
        "largest difference",
        "most below reference's bound",
        "invalid bounds",
        "bound minus best value, at most",
        "median s",
        "worst s",
    )
    return markdown_table(header, rows)


def weights_table(records: Sequence[Record], tolerance: float) -> str:
    """Counts by shape of the weights."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record["weights"]].append(record)
    rows = [
        [shape, str(len(group)), str(sum(not verdict(record, tolerance) for record in group))]
        for shape, group in groups.items()
    ]
    return markdown_table(("weights", "problems", "all right"), rows)


TITLES = {
    "tiny": "## Against enumeration, 2 to 6 samples",
    "small": "## Against SCIP's strengthened mixed-integer model, 15 to 20 samples",
}
EXPLAINED = {
    "tiny": f"Target gap {TINY_GAP:g}, at most {TINY_LIMIT:g} s. Rows: branch and bound as it is "
    f"(ranks), made to branch on coordinates for {COORDINATES_LIMIT:g} s at most, and dca. "
    "The last two are compared where they are proven; bounds are checked everywhere.",
    "small": f"Target gap {SMALL_GAP:g}, at most {SMALL_LIMIT:g} s for ours and {SCIP_LIMIT:g} s "
    "for SCIP. Compared where SCIP, and dca, were proven; bounds are checked everywhere.",
}


def report(everything: Sequence[Record]) -> str:
    """The whole page."""
    parts = sorted({record["machine"] for record in everything})
    sources = len({record["sources"] for record in everything})
    if sources > 1:
        parts.append(f"Measured with {sources} states of the source files.")
    for part, tolerance in TOLERANCES.items():
        records = usable(everything, part)
        if not records:
            continue
        times = [record["reference"]["seconds"] for record in records]
        stopped = sum(r["reference"].get("status", "optimal") != "optimal" for r in records)
        parts += [
            TITLES[part],
            f"{len(records)} of {COUNTS[part]} problems. {EXPLAINED[part]}",
            solver_table(records, tolerance),
            f"Reference: median {np.median(times):.2g} s, worst {max(times):.3g} s, "
            f"{stopped} stopped by the time limit.",
            weights_table(records, tolerance),
        ]
        wrong = [(r["number"], r["case"], verdict(r, tolerance)) for r in records]
        wrong += [(r["number"], r["case"], r["error"]) for r in failures(everything, part)]
        lines = [f"- {number}: {name}: {text}" for number, name, text in wrong if text]
        parts.append("\n".join(["To look at:", "", *lines]) if lines else "Nothing to look at.")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="tiny, small; both if none")
    add_result_options(parser, "global_validity")
    arguments = parse_result_options(parser)
    if not arguments.table:
        print(machine())
        for part in arguments.parts or PARTS:
            numbers = range(arguments.share, COUNTS[part], arguments.of)[: arguments.limit]
            run(part, numbers, arguments.results)
    records = read_records(arguments.results)
    if not records:
        print("no results yet")
        return
    page = report(records)
    arguments.results.with_suffix(".md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
