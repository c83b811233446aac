"""The tool of ``make lint`` that keeps private names inside their package."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
find_violations = runpy.run_path(str(ROOT / "tools" / "check_private_names.py"))["find_violations"]


@pytest.fixture
def package(tmp_path):
    """A package: ``a`` with a private module and names, ``a.inner``, a client, its neighbour."""
    for name, text in {
        "__init__": "",
        "_common": "_hidden = shown = 1",
        "a/__init__": "",
        "a/_own": "x = 1",
        "a/b": "_name = 1\nclass Thing:\n    _part = 1",
        "a/inner/__init__": "",
        "client/__init__": "",
        "client/_tools": "x = 1",
    }.items():
        path = tmp_path / "pkg" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "pkg"


def check(package, module, code):
    (package / f"{module}.py").write_text(code)
    return [(found.name, found.owner) for found in find_violations(package, ("pkg.client",))]


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("a/c", "from pkg.a._own import x"),
        ("a/inner/c", "from pkg.a import b\nb._name"),
        ("a/inner/c", "from pkg._common import shown"),
        ("other", "from pkg.a.b import Thing\nThing().size"),
        ("other", "import pkg.a.b\npkg.a.b.__name__"),
        ("other", "class Thing:\n    def f(self):\n        return self._x"),
        ("client/c", "from pkg.client._tools import x"),
        ("client/c", "from somewhere._else import x"),
    ],
)
def test_allowed(package, module, code):
    assert check(package, module, code) == []


@pytest.mark.parametrize(
    ("module", "code", "name", "owner"),
    [
        ("other", "from pkg.a._own import x", "pkg.a._own.x", "pkg.a"),
        ("other", "from pkg.a import _own", "pkg.a._own", "pkg.a"),
        ("other", "import pkg.a._own", "pkg.a._own", "pkg.a"),
        ("other", "from pkg.a.b import _name", "pkg.a.b._name", "pkg.a"),
        ("other", "from pkg.a import b\nb._name", "pkg.a.b._name", "pkg.a"),
        ("other", "import pkg.a.b as c\nc._name()", "pkg.a.b._name", "pkg.a"),
        ("other", "import pkg.a.b\npkg.a.b._name", "pkg.a.b._name", "pkg.a"),
        ("other", "def f():\n    from pkg.a.b import Thing\n    Thing._part", None, "pkg.a"),
        ("client/c", "from pkg._common import shown", "pkg._common.shown", "pkg"),
    ],
)
def test_refused(package, module, code, name, owner):
    assert check(package, module, code) == [(name or "pkg.a.b.Thing._part", owner)]


def test_the_package_itself():
    assert [str(found) for found in find_violations(ROOT / "owasvm")] == []
