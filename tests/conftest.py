"""Settings and data for all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

# Before anything imports pyplot: no test needs a screen.
os.environ.setdefault("MPLBACKEND", "Agg")

# Compilation, loaded machines: a single example may take any time.
# In continuous integration the examples are the same in every run.
settings.register_profile("owasvm", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("owasvm")

FILES = {
    "ionosphere": "ionosphere_scale",
    "australian": "australian_scale",
    "diabetes": "diabetes_scale",
    "german": "german.numer_scale",
    "splice": "splice_scale",
}

Dataset = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture(scope="session")
def load_dataset() -> Callable[[str], Dataset]:
    """A function that reads one of the paper's datasets as (X, y), labels -1.0 and +1.0.

    The files are not part of the package: OWASVM_DATA names a folder that holds them. Without it
    the test is skipped.
    """

    def load(name: str) -> Dataset:
        folder = os.environ.get("OWASVM_DATA")
        if not folder:
            pytest.skip("OWASVM_DATA does not name a folder with the LIBSVM datasets")
        path = Path(folder) / FILES[name]
        if not path.is_file():
            pytest.skip(f"OWASVM_DATA={folder} has no file {FILES[name]}")
        X, y = load_svmlight_file(str(path))
        return X.toarray(), np.where(y > 0, 1.0, -1.0)

    return load


@pytest.fixture
def ionosphere(load_dataset: Callable[[str], Dataset]) -> Dataset:
    """351 samples, 34 features."""
    return load_dataset("ionosphere")
