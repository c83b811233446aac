"""How a command speaks to the user: errors, warnings and notes, one line each."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TextIO

# Programs that go by the name of a file would not read what is in it.
_SUFFIXES_OF_FORMATS = frozenset(
    ".csv .h5 .hdf5 .html .joblib .json .md .npy .npz .onnx .parquet .pdf .pickle .pkl .pmml .png "
    ".pq .pt .pth .py .safetensors .skops .svm .tsv .txt .xls .xlsx .xml .yaml .yml".split()
)


class UsageError(Exception):
    """Something the user can put right; shown as one line, exit status 2."""


def one_line(message: object) -> str:
    """A message without line breaks and repeated spaces."""
    return " ".join(str(message).split())


def complain(message: object) -> None:
    """Write an error to standard error."""
    sys.stderr.write(f"owasvm: error: {one_line(message)}\n")


def show_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Write a Python warning as one plain line; stands in for ``warnings.showwarning``."""
    warn(message, file)


def warn(message: object, file: TextIO | None = None) -> None:
    """Write a warning to standard error."""
    (file or sys.stderr).write(f"owasvm: warning: {one_line(message)}\n")


def note(message: object) -> None:
    """Write something worth knowing to standard error."""
    sys.stderr.write(f"owasvm: note: {one_line(message)}\n")


@contextmanager
def silence() -> Iterator[None]:
    """Keep standard error empty for a while."""
    with redirect_stderr(io.StringIO()):
        yield


def listing(names: Iterable[object], limit: int = 8) -> str:
    """Some names in quotes, no more than fit on a line."""
    every = [repr(str(name)) for name in names]
    rest = len(every) - limit
    return ", ".join(every[:limit]) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, noun: str) -> str:
    """A number of things: 1 row, 2 rows, 3 classes."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"


def counting(counts: Mapping[str, int], limit: int = 8) -> str:
    """Some names in quotes, each with how often, those of 0 left out."""
    every = [f"{name!r} ({count})" for name, count in counts.items() if count]
    rest = len(every) - limit
    return ", ".join(every[:limit]) + (f" and {rest} more" if rest > 0 else "")


def refuse_unknown(what: str, value: str, known: Iterable[str]) -> NoReturn:
    """Refuse a name, offering the known ones."""
    raise UsageError(f"{what} {value!r} is unknown; {what_there_is(value, known)}")


def what_there_is(value: str, known: Iterable[str]) -> str:
    """The known names, the one nearest to a mistaken one first."""
    choices = list(known)
    near = get_close_matches(value, choices, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}there is {listing(choices, 12)}"


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse an output file that cannot or must not be written, before any work is done for it."""
    from owasvm.files import check_replaceable

    for source in inputs:
        if source.resolve() == path.resolve():
            raise UsageError(f"cannot write {path}: it is read by this command as well")
    try:
        check_replaceable(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error}") from error


def check_suffix(option: str, path: Path, what: str, suffix: str) -> None:
    """Refuse a name that promises another format than the one that is written."""
    found = path.suffix.lower()
    if found != suffix and found in _SUFFIXES_OF_FORMATS:
        raise UsageError(f"{option} {path}: {what} is written, no {found}; end it in {suffix}")
