"""Packages beyond the core installation."""

from __future__ import annotations

from importlib import import_module
from typing import Any


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
