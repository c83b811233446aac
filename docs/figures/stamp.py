"""A stamp in every figure that says which script drew it, and from what.

A test compares the stamps with the scripts as they are: it fails when a script, or what it reads,
has changed and the figure has not been drawn again.
"""

import hashlib
from pathlib import Path

KEY = "Source"


def source(script: str | Path, *inputs: Path) -> str:
    """Name of a script and a checksum of its text and of the files that it reads."""
    path = Path(script)
    digest = hashlib.sha256(path.read_bytes())
    for file in inputs:
        digest.update(file.read_bytes())
    return " ".join([path.name, digest.hexdigest()[:16], *(file.name for file in inputs)])


def stamp(script: str | Path, *inputs: Path) -> dict[str, str | None]:
    """The same as metadata for ``Figure.savefig``."""
    return {KEY: source(script, *inputs), "Software": None}
