"""Where arrays live."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owasvm.extras import require

FloatArray = NDArray[np.float64]
#: An array of any library that array-api-compat knows.
Array = Any

__all__ = ["Array", "Place"]


class Place:
    """Where arrays live: their namespace and their device.

    Parameters
    ----------
    like : array
        Any array that lives there.
    """

    def __init__(self, like: Array) -> None:
        compat = require("array_api_compat", "Arrays on a device", "gpu")
        self.xp = compat.array_namespace(like)
        self.device = compat.device(like)
        self._compat = compat

    def send(self, values: NDArray[Any]) -> Array:
        """An array of numpy, moved there."""
        return self.xp.asarray(np.ascontiguousarray(values), device=self.device)

    def fetch(self, values: Array) -> FloatArray:
        """The other way round."""
        here = self._compat.to_device(values, "cpu") if self._is_elsewhere(values) else values
        return np.asarray(here, dtype=np.float64)

    def _is_elsewhere(self, values: Array) -> bool:
        compat = self._compat
        return bool(compat.is_torch_array(values) or compat.is_cupy_array(values))

    def empty(self, *shape: int) -> Array:
        """Room for numbers in double precision."""
        return self.xp.empty(shape, dtype=self.xp.float64, device=self.device)

    @property
    def free_memory(self) -> float:
        """Bytes that are left on the device, infinity where nobody says."""
        if getattr(self.device, "type", "") == "cuda":
            # What torch holds in reserve is as good as free.
            cuda = require("torch", "device='cuda'", "gpu").cuda
            reserve = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
            return float(cuda.mem_get_info(self.device)[0] + reserve)
        if type(self.device).__module__.startswith("cupy"):
            return float(self.device.mem_info[0])
        return np.inf
