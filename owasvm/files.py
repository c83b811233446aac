"""Files that are there completely or not at all, and models too old to be read from them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class OutdatedModelError(ValueError):
    """A saved classifier lacks what this version of owasvm needs for predictions."""


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its place when the block ends without an error.

    Until then the bytes go to a temporary file in the same folder. After an error, or when the
    process is killed, whatever was at `path` before is still there, whole.

    Parameters
    ----------
    path : path-like
        Where the file goes. A symbolic link is followed.

    Yields
    ------
    stream : binary file object
        Where to write.
    """
    target = Path(path).resolve()
    check_replaceable(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_usual_permissions())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if :func:`replace_file` could not write `path`.

    Parameters
    ----------
    path : path-like
        Where a file is to go.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written, or something that is no file is there.
    """
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a file that could be replaced")
    try:
        # Trying is the only reliable test: permissions, read-only and full file systems.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"the folder {target.parent} cannot be written: {reason}") from error


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal digits.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    checksum : str
    """
    digest = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _usual_permissions() -> int:
    """Those that ``open`` gives a new file; a temporary file is for its owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
