"""Runs: resumed, refused, extended, in processes, on Dask with a worker killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info

from owasvm.experiments import chains, dask_backend, runner, tables, workers
from owasvm.experiments.plan import FitOptions
from owasvm.experiments.progress import Progress
from owasvm.experiments.runner import RunRefusedError, run_plan
from owasvm.experiments.store import FILE_NAME, Store
from tests.experiment_tools import SMALL, lasting_rows, made_up, small_plan, total_attempts


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """An undisturbed run of all models in this process: its plan and its folder."""
    folder = tmp_path_factory.mktemp("calm")
    plan = small_plan()
    summary = run_plan(plan, folder, backend="serial")
    assert summary.errors == []
    assert summary.n_computed == summary.n_cells == plan.n_cells
    return plan, folder


def test_a_finished_run_is_complete(calm):
    plan, folder = calm
    with Store(folder) as store:
        frame = store.frame()
        assert len(frame) == plan.n_cells
        assert (frame["attempts"] == 1).all()
        assert (frame["fit_time"] > 0.0).all()
        assert frame["gap"].max() < 0.05
        assert len(tables.load_orders(folder)) == 10
        (versions,) = tables.load_versions(folder).values()
        assert {"owasvm", "numpy", "scikit-learn", "platform"} <= set(versions)
        assert store.meta()["grid"] == "small"
    database = sqlite3.connect(folder / FILE_NAME)
    assert database.execute("SELECT COUNT(*) FROM states").fetchone() == (0,)
    assert database.execute("SELECT COUNT(*) FROM chains").fetchone() == (0,)
    database.close()
    # Nothing but the store and an empty lock is left, so that the file can be copied.
    assert sorted(path.name for path in folder.iterdir()) == ["cells.lock", FILE_NAME]


def test_crashes_lose_one_cell_each_and_change_nothing(calm, tmp_path, monkeypatch):
    plan, folder = calm
    computed = Counter()
    original = chains.compute
    calls_left = [0]

    class Crash(BaseException):
        """Stands for the end of the process."""

    def compute(chain, position, *rest):
        if calls_left[0] == 0:
            raise Crash
        calls_left[0] -= 1
        computed[chain.name, position] += 1
        return original(chain, position, *rest)

    monkeypatch.setattr(chains, "compute", compute)
    monkeypatch.setattr(runner, "warm_up", lambda: None)
    crashes = 0
    # Crashes in the middle of chains of all kinds, and between chains.
    for calls in (1, 3, 4, 23, 38, 29, 61, 10**9):
        calls_left[0] = calls
        try:
            run_plan(plan, tmp_path, backend="serial")
        except Crash:
            crashes += 1
    assert crashes == 7
    assert set(computed.values()) == {1}
    assert lasting_rows(tmp_path) == lasting_rows(folder)
    assert total_attempts(tmp_path) == plan.n_cells + crashes


def test_processes_give_the_same_tables(calm, tmp_path):
    plan, folder = calm
    seen = []
    progress = Progress(is_shown=False)
    progress.advance = lambda n_cells: seen.append(n_cells)
    summary = run_plan(plan, tmp_path, backend="joblib", n_jobs=2, progress=progress)
    assert summary.n_computed == plan.n_cells == sum(seen)
    assert lasting_rows(tmp_path) == lasting_rows(folder)


def test_models_folds_and_datasets_can_be_added(calm, tmp_path):
    _, folder = calm
    run_plan(small_plan(models=["ex-OWA-SVM_K"]), tmp_path, backend="serial")
    added = run_plan(small_plan(), tmp_path, backend="serial")
    assert 0 < added.n_stored < added.n_cells
    assert added.n_computed == added.n_cells - added.n_stored
    assert lasting_rows(tmp_path) == lasting_rows(folder)
    other = small_plan(made_up("other", seed=8), models=["l2-SVM"], nested=True)
    more = run_plan(other, tmp_path, backend="serial", command="second")
    assert (more.n_stored, more.n_computed) == (0, 2 * 60)


def test_another_experiment_is_refused(tmp_path):
    plan = small_plan(models=["l2-SVM"])
    run_plan(plan, tmp_path, backend="serial", command="first")
    before = lasting_rows(tmp_path)
    coarser = small_plan(models=["l2-SVM"], grid=replace(SMALL, Cs=(1.0,)))
    with pytest.raises(RunRefusedError, match=r"holds a run with Cs \[0.5, 8.0\], and this"):
        run_plan(coarser, tmp_path, backend="serial")
    with pytest.raises(RunRefusedError, match=r"sha256 of toy .*--fresh"):
        run_plan(small_plan(made_up(seed=4)), tmp_path, backend="serial")
    with pytest.raises(RunRefusedError, match="tol"):
        run_plan(
            small_plan(options=FitOptions(tol=1e-3, general="skip")), tmp_path, backend="serial"
        )
    assert lasting_rows(tmp_path) == before
    summary = run_plan(coarser, tmp_path, backend="serial", fresh=True, command="again")
    assert (summary.n_stored, summary.n_computed) == (0, 10)
    with Store(tmp_path) as store:
        assert store.meta()["command"] == "again"


def test_one_run_per_folder(tmp_path):
    with (
        runner._lock(tmp_path),
        pytest.raises(RunRefusedError, match="another run is working in"),
    ):
        run_plan(small_plan(models=["l2-SVM"]), tmp_path, backend="serial")


def test_unusable_folders_are_refused(tmp_path):
    plan = small_plan(models=["l2-SVM"])
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RunRefusedError, match="cannot write to"):
        run_plan(plan, tmp_path / "file")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / FILE_NAME).write_text("no database, but long enough to be looked at" * 99)
    with pytest.raises(RunRefusedError, match=r"cannot use .* as a store of results"):
        run_plan(plan, tmp_path / "run")


def test_a_cell_that_fails_ends_its_chain_only(tmp_path, monkeypatch):
    plan = small_plan(models=["l2-SVM"])
    original = chains.compute

    def compute(chain, position, *rest):
        if chain.fold == 3 and position == 1:
            raise ArithmeticError("too hard")
        return original(chain, position, *rest)

    monkeypatch.setattr(chains, "compute", compute)
    summary = run_plan(plan, tmp_path, backend="serial")
    assert len(summary.errors) == 1
    assert "fold=3" in summary.errors[0]
    assert "too hard" in summary.errors[0]
    assert summary.n_computed == plan.n_cells - 1
    monkeypatch.setattr(chains, "compute", original)
    assert run_plan(plan, tmp_path, backend="serial").n_computed == 1


def test_unknown_backends_are_refused(tmp_path):
    with pytest.raises(ValueError, match="backend='slurm' is unknown; use one of joblib, dask"):
        run_plan(small_plan(), tmp_path, backend="slurm")


def test_threads_are_limited():
    with workers.limit_threads():
        assert {library["num_threads"] for library in threadpool_info()} == {1}


def _threads_in_worker():
    workers.prepare_worker()
    return {library["num_threads"] for library in threadpool_info()}


def test_threads_are_limited_in_workers_for_good():
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config("loky", n_jobs=2):
        threads = joblib.Parallel()(joblib.delayed(_threads_in_worker)() for _ in range(2))
    assert threads == [{1}, {1}]


def test_orphaned_workers_end():
    """A process whose parent is another one than it was told ends itself, busy or not."""
    code = "from owasvm.experiments import workers; workers.end_with(1); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        assert process.wait(timeout=60) == 1


def test_dask_survives_the_death_of_a_worker(calm, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    _, folder = calm
    plan = small_plan(models=["l2-SVM", "app-OWA-SVM_K", "ex-OWA-SVM_K"])
    clients = []
    stored = []
    killed = []
    make_client = dask_backend._client

    def kill_one():
        """Kill the process of a worker, once enough cells are stored."""
        while len(stored) < 30:
            time.sleep(0.02)
        pids = clients[0].run(os.getpid)
        victim = next(iter(pids.values()))
        killed.append(victim)
        os.kill(victim, signal.SIGKILL)

    def client(job):
        manager = make_client(job)

        class Remembered:
            def __enter__(self):
                clients.append(manager.__enter__())
                threading.Thread(target=kill_one, daemon=True).start()
                return clients[0]

            def __exit__(self, *error):
                return manager.__exit__(*error)

        return Remembered()

    monkeypatch.setattr(dask_backend, "_client", client)
    progress = Progress(is_shown=False)
    progress.advance = lambda n_cells: stored.extend([1] * n_cells)
    summary = run_plan(plan, tmp_path, backend="dask", n_jobs=2, progress=progress)
    assert len(killed) == 1
    assert summary.errors == []
    assert summary.n_computed == plan.n_cells == len(stored)
    assert len(lasting_rows(tmp_path)) == plan.n_cells + 10
    assert set(lasting_rows(tmp_path)) < set(lasting_rows(folder))
    # The client stored every cell at its first arrival, and asked for none again.
    assert total_attempts(tmp_path) == plan.n_cells
