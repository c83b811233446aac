"""Model archives from anywhere: what they hold is measured before anything is built from it.

A few kilobytes of a zip file can unpack to gigabytes, an array file can claim any shape, and a
structure can refer to the same array again and again. All of it is found here, from the bytes
alone.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SCHEMA = "schema.json"
CARD = "owasvm.json"

#: Most files an archive may have.
MAX_MEMBERS = 100_000

# Text takes up to about thirty times its size as Python objects.
_JSON_SHARE = 32
_MAX_NODES = 10_000_000
_LONGEST_ARRAY_HEADER = 2048
_BLOCK = 1 << 20
_DIRECTORY_ENTRY = b"PK\x01\x02"
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ARRAY_START = b"\x93NUMPY"
# The unpackers of the other methods cannot be told to stop.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class TooLargeError(ValueError):
    """An archive would take more memory than it may."""


def read_card(data: bytes, max_bytes: int) -> Any:
    """What an archive says about its model.

    Parameters
    ----------
    data : bytes
        The archive.
    max_bytes : int
        How much it may unpack to.

    Returns
    -------
    card : object
        Whatever the JSON text is.
    """
    with _open(data, max_bytes) as (archive, sizes):
        return _json(archive, CARD, sizes)


def check_archive(data: bytes, max_bytes: int) -> None:
    """Refuse an archive that holds more than it may, or arrays that are not what they claim.

    Parameters
    ----------
    data : bytes
        The archive.
    max_bytes : int
        How much it may unpack to, archives inside included.

    Raises
    ------
    TooLargeError
        It holds more.
    ValueError
        It is damaged.
    """
    with _open(data, max_bytes) as (archive, sizes):
        room = max_bytes - sum(sizes.values())
        expanded = dict(sizes)
        for name in sizes:
            content = _unpack(archive, name, sizes)
            if content.startswith(_ZIP_STARTS):
                inside = _check_arrays_inside(content, name, room)
                room -= inside
                expanded[name] += inside
            elif content.startswith(_ARRAY_START):
                check_array_file(content, name)
        _check_references(_json(archive, SCHEMA, sizes), expanded, max_bytes)


def check_array_file(content: bytes, name: str) -> None:
    """Refuse a file in numpy's format whose header does not fit its size.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        How an error calls it.
    """
    import numpy as np

    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"the array {name} has the unknown format {version}")
    shape, _, dtype = readers[version](stream, max_header_size=_LONGEST_ARRAY_HEADER)
    if dtype.hasobject:
        raise ValueError(f"the array {name} holds Python objects")
    count = 1
    for length in shape:
        if length < 0:
            raise ValueError(f"the array {name} has the shape {shape}")
        count *= length
    found = len(content) - stream.tell()
    # Items of no size would make any number of them out of nothing.
    if count * dtype.itemsize != found or (count > 0 and dtype.itemsize == 0):
        raise ValueError(
            f"the array {name} claims the shape {shape} of {dtype}, which does not fit its "
            f"{found} bytes"
        )


def _check_arrays_inside(data: bytes, name: str, max_bytes: int) -> int:
    """Check an archive of arrays inside the archive; how much it unpacks to."""
    with _open(data, max_bytes) as (archive, sizes):
        for inside in sizes:
            content = _unpack(archive, inside, sizes)
            if content.startswith(_ZIP_STARTS):
                raise ValueError(f"{name} holds an archive inside an archive")
            if content.startswith(_ARRAY_START):
                check_array_file(content, f"{name}/{inside}")
    return sum(sizes.values())


@contextmanager
def _open(data: bytes, max_bytes: int) -> Iterator[tuple[zipfile.ZipFile, dict[str, int]]]:
    """The archive and the sizes it declares; its members are counted before they are read."""
    if data.count(_DIRECTORY_ENTRY) > MAX_MEMBERS:
        raise TooLargeError(f"it has more than {MAX_MEMBERS} members")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield archive, _read_sizes(archive, max_bytes)


def _read_sizes(archive: zipfile.ZipFile, max_bytes: int) -> dict[str, int]:
    """The sizes that the directory declares, by name, if they are in order."""
    sizes: dict[str, int] = {}
    for info in archive.infolist():
        if info.filename in sizes:
            raise ValueError(f"it has two members {info.filename}")
        if info.compress_type not in _METHODS:
            raise ValueError(f"{info.filename} is compressed by a method that is not used")
        sizes[info.filename] = info.file_size
    total = sum(sizes.values())
    if total > max_bytes:
        raise TooLargeError(f"it would unpack to {total} bytes, {max_bytes} are allowed")
    for name in (SCHEMA, CARD):
        if sizes.get(name, 0) > max_bytes // _JSON_SHARE:
            raise TooLargeError(
                f"its {name} has {sizes[name]} bytes, {max_bytes // _JSON_SHARE} are allowed"
            )
    return sizes


def _unpack(archive: zipfile.ZipFile, name: str, sizes: dict[str, int]) -> bytes:
    """A member, read no further than its declared size."""
    if name not in sizes:
        raise ValueError(f"it has no {name}")
    content = bytearray()
    with archive.open(name) as stream:
        # A block at a time, because a declared size may lie in both directions.
        while block := stream.read(_BLOCK):
            content += block
            if len(content) > sizes[name]:
                break
    if len(content) != sizes[name]:
        raise ValueError(f"{name} does not have the size that the directory declares")
    return bytes(content)


def _json(archive: zipfile.ZipFile, name: str, sizes: dict[str, int]) -> Any:
    return json.loads(_unpack(archive, name, sizes))


def _check_references(schema: Any, sizes: dict[str, int], max_bytes: int) -> None:
    """Refuse a structure that refers to its parts so often that they outgrow the limits."""
    nodes: dict[Any, int] = {}
    total = _count_nodes(schema, nodes)
    # A part that is named before it is described, or contains itself, grows at the second look.
    if _count_nodes(schema, nodes) != total:
        raise ValueError("its structure refers to parts in the wrong order")
    if total > _MAX_NODES:
        raise TooLargeError("its structure repeats its parts too often")
    if sum(_loaded_sizes(schema, sizes)) > max_bytes:
        raise TooLargeError("its structure refers to its arrays too often")


def _count_nodes(node: Any, known: dict[Any, int]) -> int:
    """Nodes of a structure, those of repeated parts counted every time.

    Parameters
    ----------
    node : object
        Out of JSON.
    known : dict
        Nodes of the parts met so far, by identity; updated.
    """
    if isinstance(node, list):
        return sum(_count_nodes(child, known) for child in node)
    if not isinstance(node, dict):
        return 0
    total = 1 + sum(_count_nodes(child, known) for child in node.values())
    identity = node.get("__id__")
    if not identity:
        return total
    known[identity] = max(total, known.get(identity, 0))
    return known[identity]


def _loaded_sizes(schema: Any, sizes: dict[str, int]) -> Iterator[int]:
    """Sizes of the files that are loaded, as often as they are."""
    seen = set()
    rest = [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, list):
            rest.extend(node)
        elif isinstance(node, dict):
            rest.extend(node.values())
            file, identity = node.get("file"), node.get("__id__")
            # A part with an identity is loaded once, one without it every time.
            if isinstance(file, str) and (not identity or (identity, file) not in seen):
                seen.add((identity, file))
                yield sizes.get(file, 0)
