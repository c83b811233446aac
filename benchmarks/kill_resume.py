"""Kill and resume: a run that is killed again and again against one that nobody disturbs.

``owasvm reproduce`` runs a grid once undisturbed. Then it runs it again, killed with SIGKILL at
random moments (now the main process alone, now all processes at once) and started again each time.
At the end the tables must be equal byte by byte, times apart, and the cells must have been started
no more often than there are cells, plus those that were being computed at a kill.

    python benchmarks/kill_resume.py [--kills 10] [--seed 0] [option of owasvm reproduce ...]
"""

from common import machine

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from owasvm.experiments.store import COLUMNS, FILE_NAME, HISTORY, KEY


def start(folder: Path, options: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "owasvm.cli", "reproduce", "--no-report", "--no-nested"]
    return subprocess.Popen(
        [*command, "--output", str(folder), *options],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def rows(folder: Path, columns: str, table: str = "cells") -> list[tuple[object, ...]]:
    path = folder / FILE_NAME
    if not path.exists():
        return []
    database = sqlite3.connect(path)
    try:
        order = ", ".join(KEY) if table == "cells" else "dataset, fold"
        return database.execute(f"SELECT {columns} FROM {table} ORDER BY {order}").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        database.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments, options = parser.parse_known_args()
    draw = random.Random(arguments.seed)
    print(machine())
    lasting = ", ".join(name for name in COLUMNS if name not in HISTORY)
    with tempfile.TemporaryDirectory() as place:
        calm, shaken = Path(place, "calm"), Path(place, "shaken")
        begun = time.perf_counter()
        assert start(calm, options).wait() == 0
        seconds = time.perf_counter() - begun
        expected = rows(calm, lasting)
        print(f"undisturbed: {len(expected)} cells in {seconds:.1f} s")
        kept: dict[tuple[object, ...], tuple[object, ...]] = {}
        kills = 0
        while True:
            process = start(shaken, options)
            if kills == arguments.kills:
                assert process.wait() == 0
                break
            # Now and then a run is killed before it has stored anything.
            if draw.random() < 0.8:
                while len(rows(shaken, "1")) <= len(kept) and process.poll() is None:
                    time.sleep(0.05)
            try:
                process.wait(draw.uniform(0.0, seconds / arguments.kills))
                print("finished before it was killed", flush=True)
                break
            except subprocess.TimeoutExpired:
                kills += 1
            whole = draw.random() < 0.5
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
            stored = {row[: len(KEY)]: row for row in rows(shaken, "*")}
            changed = sum(stored.get(key) != row for key, row in kept.items())
            print(
                f"kill {kills:2d} ({'all processes' if whole else 'main process'}): "
                f"{len(stored)} cells stored, {changed} of those before changed or gone",
                flush=True,
            )
            kept = stored
        found = rows(shaken, lasting)
        starts = [row[0] for row in rows(shaken, "attempts")]
        orders = rows(calm, "*", "orders") == rows(shaken, "*", "orders")
        equal = repr(found).encode() == repr(expected).encode() and orders
        repeated = sum(starts) - len(starts)
        print(f"{kills} kills; tables byte-identical: {equal}")
        print(f"{sum(starts)} starts for {len(starts)} cells: {repeated} were cut off by a kill")
        return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
