"""Saved classifiers: those of older versions are completed, or refused with the reason."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from owasvm import __version__
from owasvm.files import OutdatedModelError

__all__ = ["SavedState"]

_VERSION = "_owasvm_version"


class SavedState(BaseEstimator):
    """An estimator whose state, however it was saved, may come from an older version.

    The default of a parameter that came later must be what estimators without it were trained
    with.
    """

    # What predictions need to have been learnt.
    _needed: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _VERSION: __version__}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        parameters = inspect.signature(type(self)).parameters
        known = {name: one.default for name, one in parameters.items()} | dict(state)
        version = known.pop(_VERSION, None)
        missing = [name for name in self._needed if "classes_" in known and name not in known]
        if missing:
            writer = "an older version" if version is None else f"version {version}"
            raise OutdatedModelError(
                f"This {type(self).__name__} was saved by {writer} of owasvm and has no "
                f"{', '.join(missing)}, which version {__version__} needs for predictions. Train "
                "it again, or load it with the version that saved it."
            )
        super().__setstate__(known)
