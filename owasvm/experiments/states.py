"""Warm starts as bytes: what a chain keeps between two cells.

Every fit starts from the unpacked bytes, also in a run that nobody disturbs. A resumed run can
therefore not start from anything else.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.solution import Solution, Status

__all__ = ["pack", "pack_solution", "unpack", "unpack_solution"]

_LENGTH = struct.Struct("<I")
_SCALARS = (bool, int, float, str)
_DETAIL = "details."


def pack(values: Mapping[str, Any]) -> bytes:
    """Write numbers, texts and arrays as bytes, without losing a bit.

    Parameters
    ----------
    values : mapping of str
        Numbers, texts, None and arrays of numbers.

    Returns
    -------
    packed : bytes

    Examples
    --------
    >>> import numpy as np
    >>> from owasvm.experiments.states import pack, unpack
    >>> unpack(pack({"C": 0.1, "order": np.array([2, 0, 1])}))
    {'C': 0.1, 'order': array([2, 0, 1])}
    """
    header: dict[str, Any] = {}
    blocks = []
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            header[name] = {"dtype": array.dtype.str, "shape": array.shape}
            blocks.append(array.tobytes())
        else:
            header[name] = value.item() if isinstance(value, np.generic) else value
    text = json.dumps(header).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *blocks])


def unpack(packed: bytes) -> dict[str, Any]:
    """Read what :func:`pack` wrote."""
    (length,) = _LENGTH.unpack_from(packed)
    at = _LENGTH.size + length
    values: dict[str, Any] = json.loads(packed[_LENGTH.size : at])
    for name, value in values.items():
        if isinstance(value, dict):
            array: NDArray[Any] = np.frombuffer(
                packed, value["dtype"], int(np.prod(value["shape"])), at
            )
            at += array.nbytes
            # A copy: arrays on top of bytes may be aligned differently in every run.
            values[name] = array.reshape(value["shape"]).copy()
    return values


def pack_solution(solution: Solution) -> bytes:
    """Write what a warm start needs: of its details numbers, texts and arrays are kept."""
    values = {
        "dual": solution.dual,
        "intercept": float(solution.intercept),
        "objective": float(solution.objective),
        "lower_bound": float(solution.lower_bound),
        "status": str(solution.status),
        "solver": solution.solver,
        "n_iter": int(solution.n_iter),
        "coef": solution.coef,
    }
    for name, value in solution.details.items():
        if isinstance(value, (*_SCALARS, np.generic, np.ndarray)):
            values[_DETAIL + name] = value
    return pack(values)


def unpack_solution(packed: bytes | None) -> Solution | None:
    """Read what :func:`pack_solution` wrote; None stands for no solution."""
    if packed is None:
        return None
    values = unpack(packed)
    details = {
        name[len(_DETAIL) :]: values.pop(name) for name in list(values) if name.startswith(_DETAIL)
    }
    values["status"] = Status(values["status"])
    return Solution(**values, details=details)
