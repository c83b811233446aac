"""Where data comes from: files and pipes, read up to a limit; nothing that has no end."""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import math
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from owasvm.cli._errors import UsageError

#: Most bytes of data that are read, packed and unpacked, unless the user allows more.
MAX_DATA_BYTES = 4 * 2**30

OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_BLOCK = 1 << 20
_STANDARD_INPUT = Path("/dev/stdin")


@dataclass(frozen=True)
class Source:
    """Data that can be read from its start as often as needed.

    Parameters
    ----------
    path : Path
        Where it is.
    max_bytes : int
        How much may be read, packed and unpacked.
    piped : bytes or None, default=None
        What came out of a pipe, which can be read only once; None for a file.
    """

    path: Path
    max_bytes: int
    piped: bytes | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return name_of(self.path)

    def raw(self) -> IO[bytes]:
        """The bytes as they are."""
        return self.path.open("rb") if self.piped is None else io.BytesIO(self.piped)

    def unpack(self) -> IO[bytes]:
        """The bytes, decompressed; reading more of them than allowed is an error."""
        opener = OPENERS.get(self.path.suffix.lower())
        if opener is None:
            stream = self.raw()
        else:
            stream = opener(self.path if self.piped is None else self.raw(), "rb")
        limited = _Limited(stream, self)
        return cast("IO[bytes]", io.BufferedReader(limited, buffer_size=_BLOCK))

    def too_large(self, found: str) -> UsageError:
        """The error that says so."""
        return UsageError(
            f"{self.name} has {found}the {in_words(self.max_bytes)} that are read at most; "
            "raise the limit with --max-size if the memory is there"
        )


class _Limited(io.RawIOBase):
    """A stream that fails when more is read from it than its source may have."""

    def __init__(self, stream: IO[bytes], source: Source) -> None:
        super().__init__()
        self._stream = stream
        self._source = source
        self._left = source.max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            raise self._source.too_large("more than ")
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._stream.close()
        super().close()


def data_path(text: str) -> Path:
    """The name of a data file out of the command line; '-' is standard input."""
    return _STANDARD_INPUT if text == "-" else Path(text)


def name_of(path: Path) -> str:
    """What a message calls a data file."""
    return "standard input" if path == _STANDARD_INPUT else str(path)


def source_of(path: Path, max_bytes: int) -> Source:
    """What a data file is read from.

    Parameters
    ----------
    path : Path
        A file, or a pipe, which is read to its end here.
    max_bytes : int
        How much may be read.

    Returns
    -------
    source : Source

    Raises
    ------
    UsageError
        There is nothing, a folder, a device, or more than may be read.
    """
    if not path.exists():
        raise UsageError(f"there is no file {name_of(path)}")
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{name_of(path)} is a folder, not a data file")
    if stat.S_ISFIFO(status.st_mode):
        return _from_pipe(path, max_bytes)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{name_of(path)} is a device, not a data file; it may have no end")
    source = Source(path, max_bytes)
    if status.st_size > max_bytes:
        raise source.too_large(f"{in_words(status.st_size)}, more than ")
    return source


def _from_pipe(path: Path, max_bytes: int) -> Source:
    content = bytearray()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            content += block
            if len(content) > max_bytes:
                raise Source(path, max_bytes).too_large("more than ")
    return Source(path, max_bytes, bytes(content))


def size(text: str) -> int:
    """A number of bytes out of an option, such as 500M or 20G."""
    match = re.fullmatch(r"([-+]?[\d.]+)([kmgt]?)(i?b)?", text.strip().lower())
    try:
        value = float(match[1]) * _UNITS[match[2]] if match else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a size such as 500M or 20G, got {text!r}")
    if value < 1.0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return int(value)


def in_words(n_bytes: int) -> str:
    """A size for people."""
    unit = max(
        (unit for unit in _UNITS if _UNITS[unit] <= max(n_bytes, 1)), key=_UNITS.__getitem__
    )
    number = f"{n_bytes / _UNITS[unit]:.1f}".removesuffix(".0")
    return f"{number} {unit.upper()}iB" if unit else f"{n_bytes} bytes"
