"""Compiled functions where their cache is missing, full or damaged; each in a fresh process."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import owasvm
from owasvm._jit import njit, seconds_compiling

PACKAGE = Path(owasvm.__file__).parent

MODULE = """
from owasvm._jit import njit

@njit(cache=True, fastmath={"reassoc"})
def total(count):
    result = 0.0
    for value in range(count):
        result += value
    return result
"""

# Prints the result, the hits of the cache and the warnings.
CALL = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from compiled import total
    value = total(5)
print(value, sum(total.stats.cache_hits.values()), len(caught))
for warning in caught:
    print(warning.category.__name__, warning.message)
"""


def run(code: str, folder: Path, **variables: str) -> list[str]:
    """Lines printed by a fresh process that finds the package and the modules of a folder."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": "",
        **variables,
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(PACKAGE.parent)])
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert not process.stderr
    return process.stdout.splitlines()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "compiled.py").write_text(MODULE)
    return tmp_path


def block_cache(folder: Path) -> None:
    """Make the cache folder impossible, for root too: a file has its name."""
    cache = folder / "__pycache__"
    shutil.rmtree(cache, ignore_errors=True)
    cache.touch()


def test_the_cache_is_used_where_it_can_be(folder):
    assert run(CALL, folder) == ["10.0 0 0"]
    assert run(CALL, folder) == ["10.0 1 0"]


@pytest.mark.parametrize("decorator", ["register_jitable", "njit(cache=True, internal=True)"])
def test_what_is_compiled_into_a_function_is_compiled_anew_with_it(folder, decorator):
    """In another file, two calls away: with old loops in new memory a process may end."""
    inner = f"from owasvm._jit import *\n@{decorator}\ndef inner(count):\n    return count"
    middle = "from owasvm._jit import *\nfrom inner import inner\n"
    middle += "@register_jitable\ndef middle(count):\n    return inner(count)"
    outer = "from owasvm._jit import *\nfrom middle import middle\n"
    outer += "@njit(cache=True)\ndef total(count):\n    return middle(count)"
    for name, text in (("inner", inner), ("middle", middle), ("compiled", outer)):
        (folder / f"{name}.py").write_text(text)
    assert run(CALL, folder) == ["5 0 0"]
    assert run(CALL, folder) == ["5 1 0"]
    (folder / "inner.py").write_text(inner + " + 100")
    assert run(CALL, folder) == ["105 0 0"]
    assert run(CALL, folder) == ["105 1 0"]


def test_compiled_functions_are_known_without_a_call(folder):
    look = "from compiled import total\nfrom owasvm._jit import is_compiled\n"
    ask = look + "print(is_compiled(total))"
    assert run(ask, folder) == ["False"]
    assert run(look + "total(5)\nprint(is_compiled(total))", folder) == ["True"]
    # By another process, and not called in this one.
    assert run(ask, folder) == ["True"]
    for index in folder.rglob("*.nbi"):
        index.write_bytes(b"garbage")
    assert run(ask, folder) == ["False"]
    assert run(look + "print(is_compiled(len))", folder) == ["False"]


def test_read_only_installations_compile_in_memory_with_one_warning(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "owasvm", ignore=shutil.ignore_patterns("__pycache__"))
    for module in (tmp_path / "owasvm").rglob("*.py"):
        block_cache(module.parent)
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import owasvm\n"
        "    from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC\n"
        "    import owasvm.solvers.newton, owasvm.solvers.branch_and_bound, owasvm.solvers.dca\n"
        "    from owasvm.weights import owa_weights\n"
        "    print(owa_weights(3, 'max-entropy', alpha=0.5))\n"
        "print(owasvm.__file__)\n"
        "for warning in caught:\n"
        "    print(warning.category.__name__, warning.message)\n"
    )
    blocked = "/dev/null/nowhere"
    lines = run(code, tmp_path, HOME=blocked, XDG_CACHE_HOME=blocked, NUMBA_CACHE_DIR=blocked)
    assert lines[0] == "[1. 1. 1.]"
    assert lines[1] == str(tmp_path / "owasvm" / "__init__.py")
    assert len(lines) == 3
    assert lines[2].startswith("UserWarning Compiled functions cannot be kept on disk")
    assert "every process compiles them anew" in lines[2]
    assert "NUMBA_CACHE_DIR" in lines[2]


def test_a_cache_that_vanishes_before_it_is_written_costs_a_warning(folder):
    # Called with two types: the second failure is silent.
    code = CALL.replace(
        "    value = total(5)\n",
        "    import shutil, pathlib\n"
        "    shutil.rmtree('__pycache__')\n"
        "    pathlib.Path('__pycache__').touch()\n"
        "    value = total(5)\n"
        "    assert total(5.0) == 10.0\n",
    )
    (folder / "compiled.py").write_text(MODULE.replace("range(count)", "range(int(count))"))
    lines = run(code, folder)
    assert lines[0] == "10.0 0 1"
    assert "NUMBA_CACHE_DIR" in lines[1]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"garbage", id="garbage"),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda content: content[: len(content) // 2], id="truncated"),
    ],
)
def test_damaged_caches_are_replaced(folder, suffix, damage):
    run(CALL, folder)
    files = list((folder / "__pycache__").glob(f"*{suffix}"))
    assert files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    assert run(CALL, folder) == ["10.0 0 0"]
    assert run(CALL, folder) == ["10.0 1 0"]


def test_a_damaged_cache_that_cannot_be_replaced_costs_a_warning(folder):
    run(CALL, folder)
    index = next((folder / "__pycache__").glob("*.nbi"))
    index.write_bytes(b"garbage")
    # The disk is full from the first byte of the cache on.
    code = (
        "import numba.core.caching as caching\n"
        "def refuse(*arguments):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile._open_for_write = refuse\n"
    )
    lines = run(code + CALL, folder)
    assert lines[0] == "10.0 0 1"
    assert "No space left on device" in lines[1]


def test_compilation_can_be_switched_off(folder):
    code = "from compiled import total; print(total(5), type(total).__name__)"
    assert run(code, folder, NUMBA_DISABLE_JIT="1") == ["10.0 function"]


def test_internal_functions_are_for_compiled_functions(folder):
    (folder / "compiled.py").write_text(
        MODULE.replace("cache=True", "cache=True, internal=True")
        + "\n\n@njit(cache=True)\ndef twice(count):\n    return 2.0 * total(count)\n"
    )
    code = (
        "from compiled import total, twice\n"
        "print(twice(5))\n"
        "try:\n"
        "    total(5)\n"
        "except TypeError as error:\n"
        "    print(error, total.py_func(5))\n"
    )
    answers = ["20.0", "total is for compiled functions; call its py_func. 10.0"]
    assert run(code, folder) == answers
    assert run(code, folder) == answers


def test_functions_of_others_are_compiled_as_ever(folder):
    code = (
        "import compiled, numba\n"
        "names = {}\n"
        "exec('def add(value): return value + 1', names)\n"
        "print(names['add'].__module__, numba.njit(names['add'])(1))\n"
    )
    assert run(code, folder) == ["None 2"]


def test_compilations_count_in_their_own_thread():
    before = seconds_compiling()
    thread = threading.Thread(target=lambda: njit()(lambda value: value + 1)(1))
    thread.start()
    thread.join()
    assert seconds_compiling() == before
    njit()(lambda value: value + 2)(1)
    assert seconds_compiling() > before
