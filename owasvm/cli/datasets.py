"""``owasvm datasets``: the six datasets of the paper, and where they are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "list the paper's datasets, or download them"

_DESCRIPTION = """\
List the six datasets of the paper: samples, features, labels +1, and where
each was found.

wbc comes with scikit-learn. The others are files of the LIBSVM collection,
looked for in the folder --data-home, in the folder of the environment variable
OWASVM_DATA, and in the cache (the folder OWASVM_CACHE, or the user's cache of
the system). --fetch downloads into the cache, from the mirrors named in
OWASVM_MIRRORS (base addresses, separated by spaces) or from the built-in list.
A file is used only if its SHA-256 checksum is right.
"""
_EPILOG = """\
examples:
  owasvm datasets
  owasvm datasets --fetch german
  owasvm datasets --fetch all
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.add_argument(
        "--fetch",
        metavar="NAME",
        help="download this dataset into the cache, or 'all' of them, and say where it is",
    )
    parser.add_argument(
        "--data-home", metavar="FOLDER", type=Path, help="a folder to look into first"
    )


def run(arguments: argparse.Namespace) -> int:
    """Fetch, or write the table."""
    if arguments.fetch is None:
        _list(arguments.data_home)
    else:
        _fetch(arguments.fetch)
    return 0


def _fetch(wanted: str) -> None:
    from owasvm import datasets
    from owasvm.cli._errors import refuse_unknown

    if wanted not in (*datasets.names(), "all"):
        refuse_unknown("dataset", wanted, (*datasets.names(), "all"))
    for name in datasets.names() if wanted == "all" else (wanted,):
        path = datasets.fetch(name)
        where = "part of scikit-learn, nothing to fetch" if path is None else path
        sys.stdout.write(f"{name}: {where}\n")


def _list(data_home: Path | None) -> None:
    from owasvm import datasets

    rows: list[tuple[str, ...]] = [("name", "paper", "n", "d", "positives", "where")]
    for name in datasets.names():
        known = datasets.info(name)
        counts = (known.n_samples, known.n_features, known.n_positives)
        rows.append((name, known.label, *map(str, counts), _where(name, data_home)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        words = [f"{cell:<{width}}" for cell, width in zip(row[:2], widths[:2], strict=True)]
        numbers = [f"{cell:>{width}}" for cell, width in zip(row[2:5], widths[2:], strict=True)]
        sys.stdout.write("  ".join([*words, *numbers, row[5]]) + "\n")


def _where(name: str, data_home: Path | None) -> str:
    """Where a dataset is, or how to get it."""
    from owasvm import datasets

    if datasets.info(name).file is None:
        return "part of scikit-learn"
    path = datasets.locate(name, data_home=data_home)
    return f"not here; owasvm datasets --fetch {name}" if path is None else str(path)
