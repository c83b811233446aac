"""How many threads the linear algebra may use.

Libraries such as OpenBLAS split even small products over all cores, and their threads wait for
each other in busy loops. A solver calls them thousands of times on systems of a few hundred
unknowns: there the waiting costs more than the second core brings, and when the core is taken by
another process every call waits for the scheduler.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads"]

# Multiplications in one product or one system that are worth more than one thread; n = 2,700 for
# a Gram matrix. Time of whole fits with two threads over that with one, on two quiet Intel cores:
# Gram matrix n = 1,000: 1.40, 2,000: 0.65, 3,000: 0.62, 4,000: 0.55; features 1,000 x 500: 1.88,
# 10,000 x 400: 1.89, 3,000 x 1,500: 1.18, 4,000 x 4,000: 0.76. On two AMD cores of a virtual
# machine, not all quiet, Gram matrix n = 1,000: 1.5, 2,000: 1.9, 3,000: 1.1, 4,000: 0.8, 6,000:
# 0.65. Beside other processes two threads were 5 to 45 times slower on features up to 2,000 x
# 1,000: a wrong "one thread" costs a factor below two, a wrong "two threads" far more.
WORTH_THREADS = 2e10


# The number of threads belongs to the whole process. Fits that overlap in several Python threads
# must not each restore what they found, or the limit of one would outlive all: the first sets it
# and takes it back, the others run with what there is.
_limited = threading.Lock()


@contextmanager
def blas_threads(n_multiplications: float) -> Iterator[None]:
    """One thread for the linear algebra inside, unless its parts are large.

    Large work is left to the threads that the user has allowed, as is everything afterwards. May
    be nested and used from several Python threads; entering costs a few microseconds.

    Parameters
    ----------
    n_multiplications : float
        Of the largest single product or system inside.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from owasvm._threads import blas_threads
    >>> with blas_threads(1e6):
    ...     libraries = threadpool_info()
    >>> {library["num_threads"] for library in libraries if library["user_api"] == "blas"}
    {1}
    """
    if n_multiplications >= WORTH_THREADS or not _limited.acquire(blocking=False):
        yield
        return
    # Library by library, which takes less time than a limit of threadpoolctl for all of them.
    limited: list[tuple[Any, int]] = []
    try:
        for library in _libraries():
            number = library.num_threads
            if number != 1:
                limited.append((library, number))
                library.set_num_threads(1)
        yield
    finally:
        for library, number in limited:
            library.set_num_threads(number)
        _limited.release()


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    """The libraries behind numpy and scipy; looking for them takes some milliseconds, once."""
    # scipy brings a library of its own, which is found only after it was loaded.
    import scipy.linalg  # noqa: F401

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
