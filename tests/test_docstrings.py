"""Public names have a page of their own, and docstrings that say what their parameters are."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpydoc", reason="needs the extra docs")
pytest.importorskip("sphinx", reason="needs the extra docs")

from numpydoc.validate import validate
from sphinx.ext.autosummary.generate import find_autosummary_in_files

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("source distributions have no docs", allow_module_level=True)

FOR_USERS = [entry.name for entry in find_autosummary_in_files([str(DOCS / "api.md")])]
PARTS = [entry.name for entry in find_autosummary_in_files([str(DOCS / "api-parts.md")])]

# No docstring, no summary or one without a full stop, parameters that are missing or made up.
CHECKS = {"GL08", "SS01", "SS03", "PR01", "PR02"}


def resolve(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


@pytest.mark.parametrize("module", sorted({name.rpartition(".")[0] for name in FOR_USERS}))
def test_public_names_have_a_page(module: str) -> None:
    shown = [resolve(name) for name in FOR_USERS + PARTS]
    for name in getattr(import_module(module), "__all__", []):
        value = resolve(f"{module}.{name}")
        is_constant = not callable(value)
        assert is_constant or any(value is other for other in shown), f"{module}.{name}"


@pytest.mark.parametrize("name", FOR_USERS)
def test_docstrings_are_complete(name: str) -> None:
    value = resolve(name)
    if not callable(value):
        pytest.skip("a constant")
    checks = {name: CHECKS}
    if isinstance(value, type):
        for key, member in vars(value).items():
            if callable(member) and not key.startswith("_"):
                # The summary of a small method may say all that there is to say.
                checks[f"{name}.{key}"] = CHECKS - {"PR01"}
    for each, wanted in checks.items():
        assert not [error for error in validate(each)["errors"] if error[0] in wanted], each
