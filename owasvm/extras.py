"""Packages beyond the core installation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["MissingExtraError", "open_device", "require"]


class MissingExtraError(ImportError):
    """A package of an extra is not installed; the message says how to get it."""


def require(module: str, purpose: str, extra: str = "experiments") -> Any:
    """Import a package of an extra.

    Parameters
    ----------
    module : str
        Name to import.
    purpose : str
        What it is needed for: the beginning of the error's sentence.
    extra : str, default="experiments"
        The extra of owasvm that installs it.

    Returns
    -------
    module : module
        The imported package.

    Raises
    ------
    MissingExtraError
        The package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'owasvm[{extra}]'",
            name=error.name,
        ) from error


def open_device(device: str) -> Any:
    """A first tensor of torch, in double precision, on a device.

    Parameters
    ----------
    device : str
        Name of a device as torch spells it: "cuda", "cuda:1".

    Returns
    -------
    tensor : torch.Tensor
        A zero.

    Raises
    ------
    MissingExtraError
        torch is not installed.
    ValueError
        There is no such device, or it has no double precision.
    """
    torch = require("torch", f"device={device!r}", "gpu")
    try:
        first = torch.zeros(1, dtype=torch.float64, device=device)
        # Devices that compute nothing ("meta") give nothing back.
        first.cpu()
        return first
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={device!r} cannot be used: {reason}. torch {torch.__version__} finds "
            f"{torch.cuda.device_count()} CUDA devices here. Take device='cpu', or 'cuda' on a "
            "machine with an NVIDIA GPU and a torch that was built for it."
        ) from error
