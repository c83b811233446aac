"""Threads of the linear algebra: one for small work, the user's number otherwise."""

import threading
import time

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - loads the library whose threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

import owasvm._threads as threads
from owasvm import OWASVC, LinearOWASVC
from owasvm._threads import WORTH_THREADS, blas_threads
from owasvm.path import fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import solve


def counts() -> set[int]:
    """Threads of the libraries that have any; other packages bring some that have none."""
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and library.get("threading_layer") != "disabled"
    }


@pytest.fixture(autouse=True)
def two_threads():
    """Also where the tests run with one."""
    with threadpool_limits(2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("the linear algebra has no threads to count")
        yield


def test_small_work_gets_one_thread_and_large_work_all():
    with blas_threads(1e6):
        assert counts() == {1}
    assert counts() == {2}
    with blas_threads(WORTH_THREADS):
        assert counts() == {2}


def test_nested_limits_end_with_the_outermost():
    with blas_threads(1.0):
        with blas_threads(1.0), blas_threads(1e30):
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


def test_a_limit_of_the_user_is_kept():
    with threadpool_limits(1, user_api="blas"):
        with blas_threads(1e30):
            assert counts() == {1}
        with blas_threads(1.0):
            assert counts() == {1}
        assert counts() == {1}


def test_errors_restore_the_threads():
    with pytest.raises(KeyError), blas_threads(1.0):
        raise KeyError
    assert counts() == {2}


def test_overlapping_fits_restore_the_threads():
    # One enters, the other enters, the first leaves, the other leaves.
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def other():
        with blas_threads(1.0):
            seen.append(counts())
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with blas_threads(1.0):
        thread.start()
        inside.wait()
    leave.set()
    thread.join()
    assert seen == [{1}]
    assert counts() == {2}


def test_entering_is_cheap():
    def seconds():
        begun = time.perf_counter()
        with blas_threads(1.0):
            pass
        return time.perf_counter() - begun

    seconds()
    assert min(seconds() for _ in range(100)) < 1e-4


def test_work_is_counted_by_the_smaller_side():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(30) > 0.5, 1.0, -1.0)
    costs = RankCosts(30, "uniform", None)
    X = rng.normal(size=(30, 4))
    assert OWAProblem(y, costs, features=X).samples.n_multiplications == 30 * 4 * 4
    assert OWAProblem(y, costs, gram=X @ X.T).samples.n_multiplications == 30**3


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    return OWAProblem(y, RankCosts(40), features=X)


@pytest.mark.parametrize("large", [False, True])
def test_solvers_run_with_the_threads_of_their_size(problem, monkeypatch, large):
    monkeypatch.setattr(threads, "WORTH_THREADS", 1.0 if large else WORTH_THREADS)
    seen = []

    def note(_):
        seen.append(counts())

    solve(problem, callback=note)
    fit_path(problem.features, problem.y, Cs=[1.0], callback=note)
    assert len(seen) > 2
    assert all(entry == ({2} if large else {1}) for entry in seen)
    assert counts() == {2}


def test_fits_restore_the_threads_and_leave_kernel_functions_theirs(problem):
    seen = []

    def kernel(one, other):
        seen.append(counts())
        return one @ other.T

    OWASVC(kernel=kernel).fit(problem.features, problem.y)
    LinearOWASVC().fit(problem.features, problem.y)
    assert seen[0] == {2}
    assert counts() == {2}
