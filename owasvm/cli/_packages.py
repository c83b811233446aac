"""Whether the packages that a command needs are installed, told before it starts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from owasvm.extras import MissingExtraError

#: What a report of a run of the paper's experiments is made with.
REPORT_PACKAGES = ("pandas", "jinja2", "matplotlib")

_PARQUET_SUFFIXES = {".parquet", ".pq"}


def check_packages(
    command: str,
    *packages: str,
    files: tuple[str | Path | None, ...] = (),
    plots: bool = False,
    extra: str = "cli",
) -> None:
    """Refuse to start a command without the packages that it will need.

    Parameters
    ----------
    command : str
        Its name.
    *packages : str
        What it needs in any case.
    files : tuple of path-like
        Files that it reads and writes: Parquet needs a package of its own.
    plots : bool, default=False
        Whether it draws a figure.
    extra : str, default="cli"
        The extra of owasvm that installs them.

    Raises
    ------
    MissingExtraError
        Packages are missing; the message names them all and the line that installs them.
    """
    needed = [*packages]
    needed += ["pyarrow"] if any(is_parquet(name) for name in files) else []
    needed += ["matplotlib"] if plots else []
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"'owasvm {command}' needs {' and '.join(missing)}, which "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'owasvm[{extra}]'"
        )


def is_parquet(name: str | Path | None) -> bool:
    """Whether a file is a Parquet file by its name."""
    return name is not None and Path(name).suffix.lower() in _PARQUET_SUFFIXES
