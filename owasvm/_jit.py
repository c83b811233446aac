"""Compiled inner loops, with a cache on disk where there is one.

numba keeps compiled functions beside the package, in ``NUMBA_CACHE_DIR`` or in the user's cache
folder. It refuses to define a function when none of them can be written, and it stops in the
middle of a computation when the cache turns out to be damaged or full. A cache saves time and
decides nothing, so here its absence costs a compilation in memory and one warning.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba import extending
from numba.core import event

__all__ = ["cache_folder", "is_compiled", "njit", "register_jitable", "seconds_compiling"]

Function = TypeVar("Function", bound=Callable[..., Any])

_warned = False

# Functions of Python that compiled ones may call.
_jitable: set[Callable[..., Any]] = set()

logger = logging.getLogger(__name__)

# Functions of ours that are compiled before somebody is told: a single one takes no time to
# speak of, as for another type of data.
_SILENT = 2


class _Compilations(event.Listener):
    """Adds up how long each thread compiles and loads, and says so when the first one compiles.

    Numba reports what everybody in the process compiles: nothing in here may fail.
    """

    def __init__(self) -> None:
        self._n_ours = 0
        self._spent = threading.local()

    @property
    def seconds(self) -> float:
        """Seconds that this thread has compiled and loaded."""
        return getattr(self._spent, "seconds", 0.0)

    def begin(self) -> None:
        """A function is about to be compiled or loaded; others may follow before it ends."""
        depth = getattr(self._spent, "depth", 0)
        if depth == 0:
            self._spent.begun = time.perf_counter()
        self._spent.depth = depth + 1

    def end(self) -> None:
        """It was compiled or loaded."""
        self._spent.depth -= 1
        if self._spent.depth == 0:
            self._spent.seconds = self.seconds + time.perf_counter() - self._spent.begun

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        self.begin()
        # Functions made of text have no module.
        if str(event.data["dispatcher"].py_func.__module__).startswith("owasvm."):
            self._n_ours += 1
            if self._n_ours == _SILENT + 1:
                # A warning, to be seen where nobody has set up logging.
                logger.warning(
                    "owasvm: compiling its inner loops, once per installation, a few seconds ..."
                )

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """It was compiled."""
        self.end()


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


def seconds_compiling() -> float:
    """Seconds that numba has compiled, or loaded what is compiled, in this thread."""
    return _compilations.seconds


def cache_folder(function: Any) -> str | None:
    """Where a compiled function is kept; None where none is."""
    stats = getattr(function, "stats", None)
    return None if stats is None or stats.cache_path is None else str(stats.cache_path)


def is_compiled(function: Any) -> bool:
    """Whether a function was compiled before, in this process or by another one for its cache.

    The cache is looked at once per process. It may hold the function for other arguments than
    those it is called with next, which are compiled then.
    """
    return bool(getattr(function, "overloads", ())) or _is_kept(function)


@functools.cache
def _is_kept(function: Any) -> bool:
    """Whether the cache on disk holds a function for this machine."""
    try:
        target = function.targetctx.codegen().magic_tuple()
        kept = function._cache._cache_file._load_index()
        return any(key[1] == target for key in kept)
    except Exception:
        # No cache, a damaged one, or one of another kind: compiling finds out.
        return False


def njit(
    *,
    cache: bool = False,
    fastmath: bool | set[str] = False,
    internal: bool = False,
) -> Callable[[Function], Function]:
    """Compile a function as :func:`numba.njit` does, whatever happens to the cache.

    Parameters
    ----------
    cache : bool, default=False
        Keep the compiled function on disk, if possible.
    fastmath : bool or set of str, default=False
        What the compiler may do to sums, see numba.
    internal : bool, default=False
        Only compiled functions call it: what calls from Python need is left out, and such a call
        is an error.

    Returns
    -------
    decorator : callable
        Takes a function, returns its compiled version.

    Examples
    --------
    >>> from owasvm._jit import njit
    >>> @njit()
    ... def double(value):
    ...     return 2 * value
    >>> double(21)
    42
    """

    def compiled(function: Function) -> Function:
        # What is left out would be compiled and never used: entrances for C, and from Python
        # where nobody enters, and the error that a division by zero is in Python.
        options: Any = {
            "fastmath": fastmath,
            "error_model": "numpy",
            "no_cfunc_wrapper": True,
            "no_cpython_wrapper": internal,
        }
        in_memory: Any = numba.njit(**options)
        dispatcher = _make_cached(function, options) if cache else None
        if dispatcher is None:
            dispatcher = in_memory(function)
        # With NUMBA_DISABLE_JIT the function comes back as it is.
        is_function = dispatcher is function
        return dispatcher if is_function or not internal else cast(Any, _Internal(dispatcher))

    return compiled


def _make_cached(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """The function compiled and kept on disk; None where no folder can be written."""
    cached: Any = numba.njit(cache=True, **options)
    try:
        dispatcher = cached(function)
    except (RuntimeError, OSError) as error:
        # "no locator available".
        _warn_once(error)
        return None
    if hasattr(dispatcher, "_cache"):
        file = dispatcher._cache._cache_file
        file._source_stamp = file._source_stamp, _stamp_callees(function)
        dispatcher._cache = _ForgivingCache(dispatcher._cache)
    return dispatcher


def _stamp_callees(function: Callable[..., Any]) -> tuple[tuple[str, float, int], ...]:
    """Stamps of the files that a compiled function has parts from.

    Numba looks at the file of the function alone, and would go on with old versions of all that
    was compiled into it.
    """
    found: set[Any] = set()
    left = [function]
    while left:
        caller = left.pop()
        for name in caller.__code__.co_names:
            value = caller.__globals__.get(name)
            is_plain = isinstance(value, FunctionType) and value in _jitable
            callee = value if is_plain else getattr(value, "py_func", None)
            if callee is not None and callee not in found:
                found.add(callee)
                left.append(callee)
    return tuple(sorted({_stamp(callee.__code__.co_filename) for callee in found}))


@functools.cache
def _stamp(path: str) -> tuple[str, float, int]:
    """Name, time and size of a file, which may be a part of an archive."""
    file = Path(path)
    try:
        stat = file.stat()
    except OSError:
        return file.name, 0.0, 0
    return file.name, stat.st_mtime, stat.st_size


class _Internal:
    """A compiled function without an entrance from Python, where a call would end the process."""

    def __init__(self, dispatcher: Any) -> None:
        # The type, which is what compiled functions see, holds no more than a weak reference.
        self._dispatcher = dispatcher
        self._numba_type_ = dispatcher._numba_type_
        self.py_func = dispatcher.py_func

    def __call__(self, *args: Any) -> None:  # noqa: ARG002
        """Say why not."""
        raise TypeError(f"{self.py_func.__name__} is for compiled functions; call its py_func.")


def register_jitable(function: Function) -> Function:
    """A function that stays one of Python, and that compiled functions may call as well."""
    _jitable.add(function)
    return extending.register_jitable(function)


class _ForgivingCache:
    """A cache of numba whose failures mean: compile, and keep the result in memory."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What the cache holds for a signature, None where it holds nothing that can be read."""
        _compilations.begin()
        try:
            return self._cache.load_overload(sig, target_context)
        except OSError:
            # Not ours to read; saving will tell whether it is ours to write.
            return None
        except Exception:
            # Garbage in a pickle can raise anything. An empty index heals the cache: what is
            # compiled now is saved in the place of the damaged files.
            try:
                self._cache.flush()
            except OSError as error:
                _warn_once(error)
            return None
        finally:
            _compilations.end()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if the cache takes it."""
        try:
            self._cache.save_overload(sig, data)
        except Exception as error:
            _warn_once(error)


def _warn_once(error: Exception) -> None:
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        f"Compiled functions cannot be kept on disk ({error}), so every process compiles them "
        "anew, which takes many seconds. Set the environment variable NUMBA_CACHE_DIR to a folder "
        "that can be written.",
        UserWarning,
        stacklevel=3,
    )
