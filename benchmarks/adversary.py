"""Hostile problems: does any fit claim what is not true, hang, or crash?

Every problem is fitted in a process of its own kind, which is replaced when it hangs or dies, and
judged by ``tests/adversary.py``: objectives in extended precision on the data as given, feasible
values from other solvers. A violation names the seed that repeats it.

    python benchmarks/adversary.py [--count 10000] [--seed 0]     hostile problems
    python benchmarks/adversary.py --kind ordinary --count 1000   moderate ones: all must reach their gap
    python benchmarks/adversary.py --kind shifted --count 1000    shifted by up to 1e6 times their spread
    python benchmarks/adversary.py --seeds 12,34 --verbose        repeat some

``--record`` adds the counts to ``results/adversary.md``.
"""  # noqa: E501

from common import RESULTS, machine, markdown_table, solver_sources

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.adversary import GENERATORS, Record, Worker

SECONDS_BETWEEN_LINES = 10.0
SHOWN_PER_KIND = 12


def run(kind: str, seeds: Sequence[int], *, verbose: bool, thorough: bool) -> list[Record]:
    """Judge all problems, with a line of progress now and then."""
    records: list[Record] = []
    begun = spoken = time.perf_counter()
    with Worker() as worker:
        for seed in seeds:
            record = worker.judge(kind, seed, thorough=thorough)
            records.append(record)
            if verbose:
                gap = "" if record.gap is None else f", gap {record.gap:.1e}"
                print(f"{record.description}\n    {record.outcome}{gap}, {record.elapsed:.2f} s")
            for violation in record.violations:
                print(f"    {violation}", flush=True)
            if time.perf_counter() - spoken > SECONDS_BETWEEN_LINES:
                spoken = time.perf_counter()
                broken = sum(bool(record.violations) for record in records)
                print(
                    f"{len(records)} of {len(seeds)}, {broken} with violations, "
                    f"{spoken - begun:.0f} s",
                    flush=True,
                )
    return records


def share(part: int, whole: int) -> str:
    """As a percentage."""
    return f"{100.0 * part / whole:.1f}%" if whole else "-"


def tables(kind: str, records: Sequence[Record]) -> str:
    """What happened, in Markdown."""
    fitted = [record for record in records if record.gap is not None]
    broken = Counter(v.kind for record in records for v in record.violations)
    counts = [
        ("fits", len(records)),
        ("with a result", len(fitted)),
        ("with a violation", sum(bool(record.violations) for record in records)),
        *((f"violation: {name}", number) for name, number in sorted(broken.items())),
        *((f"outcome: {name}", n) for name, n in Counter(r.outcome for r in records).items()),
    ]
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        shape = {True: "convex", False: "general", None: "no result"}[record.convex]
        groups[record.estimator, record.kernel, shape].append(record)
    rows = []
    for (estimator, kernel, shape), members in sorted(groups.items()):
        reached = sum(record.outcome == "optimal" for record in members)
        seconds = sorted(record.elapsed for record in members)
        rows.append(
            (
                f"{estimator}, {kernel}, {shape}",
                str(len(members)),
                share(reached, len(members)),
                str(sum(bool(record.violations) for record in members)),
                f"{seconds[len(seconds) // 2]:.2f}",
                f"{seconds[-1]:.2f}",
            )
        )
    header = ("fits of", "number", "reached the gap", "violations", "median s", "most s")
    return "\n\n".join(
        [
            f"## {kind}",
            markdown_table(("", "number"), [(name, str(number)) for name, number in counts]),
            markdown_table(header, rows),
        ]
    )


def violations(records: Iterable[Record]) -> str:
    """Some of each kind, the same number of lines for all."""
    by_kind = defaultdict(list)
    for record in records:
        for violation in record.violations:
            by_kind[violation.kind].append(str(violation))
    lines = []
    for _, texts in sorted(by_kind.items()):
        lines += texts[:SHOWN_PER_KIND]
        if len(texts) > SHOWN_PER_KIND:
            lines.append(f"    ... and {len(texts) - SHOWN_PER_KIND} more")
    return "\n".join(lines)


def seeds_by_kind(records: Iterable[Record]) -> str:
    """Which seeds to give to ``--seeds``."""
    seeds = defaultdict(list)
    for record in records:
        for violation in record.violations:
            seeds[violation.kind].append(str(record.seed))
    return "\n".join(f"{kind}: {','.join(found)}" for kind, found in sorted(seeds.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=sorted(GENERATORS), default="hostile")
    parser.add_argument("--count", type=int, default=10_000, help="number of problems")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", help="these seeds only, separated by commas")
    parser.add_argument("--verbose", action="store_true", help="a line for every problem")
    parser.add_argument(
        "--quick", action="store_true", help="no rivals from other solvers, only polishing"
    )
    parser.add_argument("--record", action="store_true", help="add to results/adversary.md")
    arguments = parser.parse_args()
    seeds: Sequence[int] = range(arguments.seed, arguments.seed + arguments.count)
    if arguments.seeds:
        seeds = [int(seed) for seed in arguments.seeds.split(",")]
    print(machine())
    records = run(arguments.kind, seeds, verbose=arguments.verbose, thorough=not arguments.quick)
    report = tables(arguments.kind, records)
    print(f"\n{violations(records)}\n\n{seeds_by_kind(records)}\n\n{report}")
    if arguments.record:
        path = RESULTS / "adversary.md"
        with path.open("a") as file:
            first, last = seeds[0], seeds[-1]
            heading = f"Seeds {first} to {last}, solver sources {solver_sources()}. {machine()}"
            file.write(f"{report}\n\n{heading}\n\n")
    if any(record.violations for record in records):
        sys.exit(1)


if __name__ == "__main__":
    main()
