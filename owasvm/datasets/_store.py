"""Where the files of the datasets are: a folder of the user, the cache, or a mirror."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from owasvm.datasets._registry import Info
from owasvm.extras import MissingExtraError, require
from owasvm.files import sha256

#: Where the LIBSVM collection keeps the files, in the order in which they are tried.
MIRRORS: tuple[str, ...] = (
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
    "http://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
    "https://web.archive.org/web/2022id_/"
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
)

_SECONDS_WITHOUT_AN_ANSWER = 30


class DatasetError(RuntimeError):
    """A dataset cannot be had; the message is one line that says what to do."""


def in_folders(info: Info, data_home: str | os.PathLike[str] | None) -> Path | None:
    """The file in the folder of the call or in that of ``OWASVM_DATA``, checksum verified."""
    if data_home is not None and not Path(data_home).is_dir():
        raise DatasetError(f"data_home={str(data_home)!r} is not a folder.")
    for folder in (data_home, os.environ.get("OWASVM_DATA")):
        path = _path_in(folder, info)
        if path is not None and path.is_file():
            _check_sum(path, info)
            return path
    return None


def in_cache(info: Info) -> Path | None:
    """The file in the cache; a damaged one does not count, the next download replaces it."""
    try:
        path = _path_in(cache_folder(), info)
    except MissingExtraError:
        return None
    if path is None or not path.is_file() or sha256(path) != info.sha256:
        return None
    return path


def cache_folder() -> Path:
    """Where downloads are kept: ``OWASVM_CACHE``, or the user's cache of the system."""
    chosen = os.environ.get("OWASVM_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(require("pooch", "Finding the cache of the datasets").os_cache("owasvm"))


def mirrors() -> tuple[str, ...]:
    """Base addresses to try: those of ``OWASVM_MIRRORS``, separated by spaces, or our own."""
    chosen = os.environ.get("OWASVM_MIRRORS", "").split()
    return tuple(address.rstrip("/") for address in chosen or MIRRORS)


def from_mirrors(info: Info) -> Path:
    """Download the file into the cache from the first mirror that has it."""
    pooch = require("pooch", "Downloading datasets")
    folder = cache_folder()
    _make_folder(folder)
    failures = []
    for address in mirrors():
        try:
            # pooch writes to a temporary file in the cache and gives it its name only after the
            # checksum was found right.
            with _quiet(pooch.get_logger()):
                path = pooch.retrieve(
                    f"{address}/{info.file}",
                    known_hash=f"sha256:{info.sha256}",
                    fname=info.file,
                    path=folder,
                    downloader=pooch.HTTPDownloader(timeout=_SECONDS_WITHOUT_AN_ANSWER),
                )
        except (OSError, ValueError) as error:
            failures.append(f"{_host(address)}: {_reason(error)}")
        else:
            return Path(path)
    raise DatasetError(f"{how_to_get(info)} No mirror delivered it ({'; '.join(failures)}).")


def how_to_get(info: Info) -> str:
    """What to put where, for whoever has no network."""
    return (
        f"Dataset {info.name!r} needs the file {info.file}: get {MIRRORS[0]}/{info.file}, put it "
        f"into a folder and name the folder in the environment variable OWASVM_DATA "
        f"(now {os.environ.get('OWASVM_DATA') or 'not set'}) or in data_home."
    )


def _path_in(folder: str | os.PathLike[str] | None, info: Info) -> Path | None:
    return Path(folder).expanduser() / info.file if folder and info.file else None


def _check_sum(path: Path, info: Info) -> None:
    found = sha256(path)
    if found != info.sha256:
        raise DatasetError(
            f"The file {path} is not the dataset {info.name!r}: its sha256 is {found}, expected "
            f"{info.sha256}. Replace it by {MIRRORS[0]}/{info.file}, byte for byte."
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(
            f"The cache folder {folder} cannot be made ({error.strerror}); name another one in "
            "the environment variable OWASVM_CACHE."
        ) from error


def _host(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _reason(error: Exception) -> str:
    """Why a mirror failed, in a few words."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"answered {response.status_code}"
    if isinstance(error, ValueError):
        return "sent a file with a wrong checksum"
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "no answer in time"
    if type(error).__name__ in {"ChunkedEncodingError", "ContentDecodingError"}:
        return "broke off in the middle"
    if type(error).__name__ in {"ConnectionError", "ProxyError", "SSLError"}:
        return "no connection"
    return " ".join(str(error).split())


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep a logger from speaking about its ordinary work."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
