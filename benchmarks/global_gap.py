"""General weights at full size: how far from the global optimum, proven, within a minute.

Six datasets at full n; linear models on the features and Gaussian kernels of width 1/2, 2, 16 on a
Gram matrix; C = 2^-7, 2^-3, 1, 8, 2^7; quadratic weights with alpha 0.4, 0.6, 0.8 and
trigonometric ones with alpha 0.4, 0.8: 600 instances. Each is solved by "branch-and-bound" with a
time limit and by "dca". Two convex fits of the same data set the scale for the time of "dca":
"newton" with the pointwise minorant of the weights, and with basic weights, alpha 0.6. These three
are the best of three calls, unless one takes more than 2 s. Compilation is excluded.

No lower bound may exceed a feasible value. Known ones are the objectives of both solvers and what
descent finds from other starts: solutions for other weights or another C on the same data, and the
solution itself with its coefficients shaken.

Every finished instance is stored at once as a line of ``results/global_gap.jsonl``, and a rerun
skips what is there; instances that raised an error are tried again. What a shorter run has proven
is not repeated with more time, nor, with ``--above``, what it has brought below a gap. The table
``results/global_gap.md`` is written at the end of every run. The order of the instances is random
but fixed, so that any number of them is a fair sample, and several processes can share them:

    OWASVM_DATA=... python benchmarks/global_gap.py                         all
    OWASVM_DATA=... python benchmarks/global_gap.py --share 0 --of 2 &      one half ...
    OWASVM_DATA=... python benchmarks/global_gap.py --share 1 --of 2        ... and the other
    OWASVM_DATA=... python benchmarks/global_gap.py --limit 60              a sample
    OWASVM_DATA=... python benchmarks/global_gap.py --time-limit 20         all, in less time ...
    OWASVM_DATA=... python benchmarks/global_gap.py --above 0.01            ... and the worst again
    python benchmarks/global_gap.py --table                                 the table only
"""

from common import (  # first: it limits the threads
    DATASETS,
    FloatArray,
    add_result_options,
    append_record,
    best_time,
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
import itertools
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from owasvm.problem import Costs, OWAProblem, RankCosts
from owasvm.solution import Solution, relative_gap
from owasvm.solvers import Settings, solve
from owasvm.solvers.general.candidates import evaluate, improve_intercept
from owasvm.solvers.general.descent import descend_to_end
from owasvm.solvers.general.rank_split import pointwise_minorant
from owasvm.solvers.general.search import Search

SIGMAS = (None, 0.5, 2.0, 16.0)
CS = (2.0**-7, 2.0**-3, 1.0, 8.0, 2.0**7)
WEIGHTS = (
    ("quadratic", 0.4),
    ("quadratic", 0.6),
    ("quadratic", 0.8),
    ("trigonometric", 0.4),
    ("trigonometric", 0.8),
)
MIP_GAP = 1e-4
GAP_LEVELS = (1e-2, 1e-3, MIP_GAP)
# Rivals are only looked for, not proven; they must not cost more than the solve itself.
N_DESCENTS = 2
DESCENT_LIMIT = 10.0
# Bounds are proven up to rounding.
ROUNDING = 1e-9

Record = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """One problem of the set."""

    dataset: str
    sigma: float | None
    C: float
    family: str
    alpha: float

    @property
    def weights(self) -> str:
        """How tables call the weights."""
        return f"{self.family} {self.alpha:g}"

    def __str__(self) -> str:
        kernel = kernel_name(self.sigma)
        return f"{self.dataset}, {kernel}, C = {power_of_two(self.C)}, {self.weights}"


def all_instances() -> list[Instance]:
    """The whole set in its fixed random order."""
    combinations = itertools.product(DATASETS, SIGMAS, CS, WEIGHTS)
    instances = [Instance(name, sigma, C, *weights) for name, sigma, C, weights in combinations]
    random.Random(0).shuffle(instances)
    return instances


def instance_of(record: Record) -> Instance:
    """The instance a record belongs to."""
    return Instance(*(record[key] for key in Instance.__dataclass_fields__))


@cache
def cached_data(name: str) -> tuple[FloatArray, FloatArray]:
    """A dataset, read once."""
    return load(name)


@cache
def cached_gram(name: str, sigma: float) -> FloatArray:
    """A Gram matrix, computed once."""
    return gram(cached_data(name)[0], sigma)


def make_problem(instance: Instance, costs: Costs) -> OWAProblem:
    """The data of an instance with any costs."""
    X, y = cached_data(instance.dataset)
    if instance.sigma is None:
        return OWAProblem(y, costs, features=X)
    return OWAProblem(y, costs, gram=cached_gram(instance.dataset, instance.sigma))


def instance_costs(instance: Instance) -> Costs:
    """The costs of an instance."""
    y = cached_data(instance.dataset)[1]
    return RankCosts(y.size, instance.family, instance.alpha, instance.C)


def minorant_costs(costs: Costs) -> Costs:
    """The largest non-decreasing costs below the given ones."""
    minorant = pointwise_minorant(costs.by_rank())
    return RankCosts(minorant.size, minorant, None, float(minorant.mean()))


class Rivals:
    """Classifiers found so far, by data; each is a feasible point of every problem on its data."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, float | None], list[Solution]] = defaultdict(list)

    def add(self, instance: Instance, *solutions: Solution) -> None:
        """Remember solutions."""
        self._known[instance.dataset, instance.sigma].extend(solutions)

    def best_value(self, instance: Instance, problem: OWAProblem, found: Solution) -> float:
        """The smallest objective that descent finds from starts the solvers did not use."""
        known = self._known[instance.dataset, instance.sigma]
        starts = [evaluate(problem, other.dual, other.intercept) for other in known]
        starts = sorted(
            (improve_intercept(problem, start) for start in starts),
            key=lambda start: start.objective,
        )[:N_DESCENTS]
        shake = np.random.default_rng(len(known)).uniform(0.0, 2.0, problem.n_samples)
        shaken = evaluate(problem, found.dual * shake, found.intercept)
        starts.append(improve_intercept(problem, shaken))
        search = Search(problem, Settings(time_limit=DESCENT_LIMIT))
        return min(descend_to_end(search, start).objective for start in starts)


def measured(instance: Instance, time_limit: float, rivals: Rivals) -> Record:
    """Solve one instance in all ways."""
    costs = instance_costs(instance)
    problem = make_problem(instance, costs)
    below = make_problem(instance, minorant_costs(costs))
    basic = make_problem(instance, RankCosts(problem.n_samples, "basic", 0.6, instance.C))
    minorant_seconds, minorant = best_time(lambda: solve(below, "newton"))
    dca_seconds, local = best_time(lambda: solve(problem, "dca", mip_gap=MIP_GAP))
    basic_seconds, standard = best_time(lambda: solve(basic, "newton"))
    begun = time.perf_counter()
    found = solve(
        problem,
        "branch-and-bound",
        mip_gap=MIP_GAP,
        time_limit=time_limit,
        options={"max_nodes": 10**9},
    )
    seconds = time.perf_counter() - begun
    rivals.add(instance, standard)
    rival = rivals.best_value(instance, problem, found)
    rivals.add(instance, found, local)
    return {
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "status": str(found.status),
        "nodes": found.n_iter,
        "seconds": seconds,
        "minorant_bound": found.details.get("minorant_bound", found.lower_bound),
        "dca_objective": local.objective,
        "dca_lower_bound": local.lower_bound,
        "dca_status": str(local.status),
        "dca_steps": local.n_iter,
        "dca_seconds": dca_seconds,
        "pointwise_bound": minorant.lower_bound,
        "minorant_seconds": minorant_seconds,
        "basic_seconds": basic_seconds,
        "rival_objective": rival,
    }


def warm_up() -> None:
    """Solve small problems of every kind, so that nothing is compiled while the clock runs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 1.0, -1.0)
    rivals = Rivals()
    for sigma, C, (family, alpha) in itertools.product((None, 2.0), (2.0**-3, 8.0), WEIGHTS):
        instance = Instance("warm-up", sigma, C, family, alpha)
        data = {"features": X} if sigma is None else {"gram": gram(X, sigma)}
        problem = OWAProblem(y, RankCosts(y.size, family, alpha, C), **data)
        below = OWAProblem(y, minorant_costs(problem.costs), **data)
        solve(below, "newton")
        solve(problem, "branch-and-bound", time_limit=1.0, options={"max_nodes": 10**9})
        local = solve(problem, "dca")
        rivals.add(instance, local)
        rivals.best_value(instance, problem, local)


def run(instances: Sequence[Instance], path: Path, time_limit: float, above: float) -> None:
    """Measure what has not been measured yet, or in less time with a gap above a number."""
    done = {
        instance_of(record)
        for record in usable(read_records(path), time_limit)
        if record["time_limit"] == time_limit or record["gap"] <= above
    }
    missing = [instance for instance in instances if instance not in done]
    print(f"{len(instances)} instances, {len(missing)} to do")
    if not missing:
        return
    warm_up()
    rivals = Rivals()
    where = {"machine": machine(), "sources": solver_sources()}
    for number, instance in enumerate(missing, 1):
        head = asdict(instance) | {"time_limit": time_limit}
        try:
            record = measured(instance, time_limit, rivals)
        except Exception as error:
            append_record(path, head | {"error": repr(error)} | where)
            print(f"{number}/{len(missing)} {instance}: {error!r}", flush=True)
            continue
        append_record(path, head | record | where)
        excess = bound_excess(record)
        print(
            f"{number}/{len(missing)} {instance}: {record['status']}, gap {record['gap']:.1e}, "
            f"{record['nodes']} nodes, {record['seconds']:.1f} s; dca {record['dca_seconds']:.3f} "
            f"s, minorant {record['minorant_seconds']:.3f} s, basic "
            f"{record['basic_seconds']:.3f} s" + (" INVALID BOUND" if excess > ROUNDING else ""),
            flush=True,
        )


def usable(records: Sequence[Record], time_limit: float) -> list[Record]:
    """Finished records up to a time limit, of every instance the last one with most time."""
    latest: dict[Instance, Record] = {}
    for record in records:
        known = latest.get(instance_of(record))
        if "error" in record or record["time_limit"] > time_limit:
            continue
        if known is None or record["time_limit"] >= known["time_limit"]:
            latest[instance_of(record)] = record
    return list(latest.values())


def feasible_values(record: Record) -> list[float]:
    """Objectives known for an instance."""
    return [record["objective"], record["dca_objective"], record["rival_objective"]]


def bound_excess(record: Record) -> float:
    """How far the largest lower bound lies above the smallest known feasible value, relatively."""
    bounds = ("lower_bound", "minorant_bound", "dca_lower_bound", "pointwise_bound")
    value = min(feasible_values(record))
    return float(max(record[key] for key in bounds) - value) / max(1.0, abs(value))


def percent(share: float) -> str:
    """A share of instances."""
    return f"{100 * share:.1f} %"


def gap_percent(gap: float) -> str:
    """A gap in percent; what is far below the target need not be read."""
    return f"{100 * gap:.2g}" if gap >= 1e-6 else "< 0.0001"


def gap_shares(gaps: Sequence[float]) -> list[str]:
    """Number, shares of gaps up to each level, and the worst gap."""
    values = np.asarray(gaps)
    shares = [percent(float(np.mean(values <= level))) for level in GAP_LEVELS]
    return [str(values.size), *shares, gap_percent(float(values.max())) + " %"]


GAP_HEADER = ("instances", *(f"<= {100 * level:g} %" for level in GAP_LEVELS), "worst gap")


def grouped_table(
    records: Sequence[Record],
    title: str,
    key: Callable[[Instance], Any],
    name: Callable[[Any], str],
    order: Sequence[Any],
) -> str:
    """Gaps and times, one row per group."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(instance_of(record))].append(record)
    rows = [(name(value), groups[value]) for value in order if value in groups]
    rows.append(("**all**", list(records)))
    lines = []
    for label, group in rows:
        proven = [record["seconds"] for record in group if record["status"] == "optimal"]
        times = [f"{np.median(proven):.2f}", f"{max(proven):.1f}"] if proven else ["", ""]
        lines.append([label, *gap_shares([record["gap"] for record in group]), *times])
    header = (title, *GAP_HEADER, "median s, proven", "worst s, proven")
    return markdown_table(header, lines)


def methods_table(records: Sequence[Record]) -> str:
    """What each method proves."""

    def gaps(objective: str, bound: str) -> list[float]:
        return [relative_gap(record[objective], record[bound]) for record in records]

    rows = [
        ["one convex fit: pointwise minorant, dca solution", "dca_objective", "pointwise_bound"],
        ["dca: its own bound and solution", "dca_objective", "dca_lower_bound"],
        ["best minorants, dca solution", "dca_objective", "minorant_bound"],
        ["branch and bound", "objective", "lower_bound"],
    ]
    lines = [[label, *gap_shares(gaps(*keys))] for label, *keys in rows]
    return markdown_table(("method", *GAP_HEADER), lines)


def ratio_table(records: Sequence[Record]) -> str:
    """Time of dca in convex fits of the same data."""
    dca, minorant, basic = (
        np.array([record[key] for record in records])
        for key in ("dca_seconds", "minorant_seconds", "basic_seconds")
    )
    ratios = {
        "pointwise minorant of the weights": dca / minorant,
        "basic weights, alpha 0.6": dca / basic,
        "mean of both": dca / (0.5 * (minorant + basic)),
    }
    lines = [
        [label, f"{np.median(r):.2f}", f"{np.quantile(r, 0.9):.2f}", f"{r.max():.1f}"]
        for label, r in ratios.items()
    ]
    return markdown_table(("one convex fit with", "median", "90 %", "worst"), lines)


def resisting_table(records: Sequence[Record]) -> str:
    """Gaps of the instances that were not proven, one row for all values of C."""
    gaps: dict[tuple[str, float | None, str, float], dict[float, str]] = defaultdict(dict)
    for record in records:
        instance = instance_of(record)
        row = gaps[instance.dataset, instance.sigma, instance.family, instance.alpha]
        closed = record["status"] == "optimal"
        row[instance.C] = "." if closed else gap_percent(record["gap"])
    lines = []
    for name, sigma, (family, alpha) in itertools.product(DATASETS, SIGMAS, WEIGHTS):
        row = gaps.get((name, sigma, family, alpha), {})
        if any(cell != "." for cell in row.values()):
            cells = [row.get(C, "") for C in CS]
            lines.append([f"{name}, {kernel_name(sigma)}, {family} {alpha:g}", *cells])
    if not lines:
        return "None."
    return markdown_table(("gap in %", *(f"C = {power_of_two(C)}" for C in CS)), lines)


def checks(records: Sequence[Record]) -> str:
    """What was found about bounds, incumbents and times."""
    excess = [bound_excess(record) for record in records]
    wrong = sum(value > ROUNDING for value in excess)
    beaten = [
        relative_gap(record["objective"], min(feasible_values(record))) for record in records
    ]
    lines = [
        f"- Lower bounds above a known feasible value: {wrong} of {len(records)} instances "
        f"(highest bound minus lowest value, relative: at most {max(excess):.1e}). Feasible "
        "values are those of both solvers and of descent from solutions for other weights or C "
        "on the same data and from shaken solutions.",
        f"- Branch and bound returned the smallest of these values up to {MIP_GAP:g} on "
        f"{sum(value <= MIP_GAP for value in beaten)} instances; the largest excess is "
        f"{max(beaten):.1e}.",
        f"- Longest time of branch and bound: {max(r['seconds'] for r in records):.1f} s; "
        f"proven without branching: {sum(r['nodes'] == 0 for r in records)} instances.",
    ]
    states = Counter(record["status"] for record in records)
    lines.append("- Status: " + ", ".join(f"{name} {n}" for name, n in states.most_common()) + ".")
    return "\n".join(lines)


def report(records: Sequence[Record], n_errors: int) -> str:
    """The whole page."""
    limits = Counter(record["time_limit"] for record in records)
    given = ", ".join(f"{limits[limit]} with {limit:g} s" for limit in sorted(limits))
    total = len(all_instances())
    machines = sorted({record["machine"] for record in records})
    parts = [
        f"{len(records)} of {total} instances ({given}), target gap {MIP_GAP:g}. "
        "Gap: (objective - lower bound) / max(1, objective).",
        *machines,
    ]
    sources = len({record["sources"] for record in records})
    if sources > 1:
        parts.append(f"Measured with {sources} states of the source files.")
    if n_errors:
        parts.append(f"**{n_errors} instances raised an error.**")
    kernels = ("kernel", lambda one: one.sigma, kernel_name, SIGMAS)
    parts += [
        "## Certified gap",
        grouped_table(
            records,
            "weights",
            lambda one: (one.family, one.alpha),
            lambda pair: f"{pair[0]} {pair[1]:g}",
            WEIGHTS,
        ),
        grouped_table(records, "C", lambda one: one.C, power_of_two, CS),
        grouped_table(records, *kernels),
        grouped_table(records, "dataset", lambda one: one.dataset, str, DATASETS),
        "## What each method proves",
        methods_table(records),
        "## Time of dca in convex fits",
        ratio_table(records),
        "## Checks",
        checks(records),
        "## Instances that resist",
        "A dot is an instance proven optimal; rows of dots are left out.",
        resisting_table(records),
    ]
    return "\n\n".join(parts) + "\n"


def write_table(path: Path, time_limit: float) -> None:
    """Write the page beside the records and print it."""
    everything = read_records(path)
    records = usable(everything, time_limit)
    if not records:
        print("no results yet")
        return
    finished = {instance_of(record) for record in records}
    failed = {instance_of(record) for record in everything} - finished
    page = report(records, len(failed))
    path.with_suffix(".md").write_text(page)
    print(page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument(
        "--above", type=float, default=MIP_GAP, help="repeat shorter runs whose gap is larger"
    )
    add_result_options(parser, "global_gap")
    arguments = parse_result_options(parser)
    if not arguments.table:
        print(machine())
        mine = all_instances()[arguments.share :: arguments.of][: arguments.limit]
        run(mine, arguments.results, arguments.time_limit, arguments.above)
    write_table(arguments.results, arguments.time_limit)


if __name__ == "__main__":
    main()
