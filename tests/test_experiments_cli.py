"""``owasvm reproduce``: its options, killed and resumed, stopped by Ctrl-C."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from owasvm.cli import main
from owasvm.experiments import protocol, runner
from owasvm.experiments import report as report_package
from owasvm.experiments.store import FILE_NAME, Store
from tests.experiment_tools import lasting_rows, made_up, total_attempts

# 200 fits of wbc in 20 chains and the table of orders.
SMALL = [
    *("--C", "2^-1", "--C", "2^2", "--sigma", "8", "--quantifier", "basic", "--no-nested"),
    *("--model", "l2-SVM", "--model", "l2-SVM_K", "--model", "app-OWA-SVM_K"),
    *("--model", "ex-OWA-SVM_K", "--no-report"),
]
N_SMALL = 10 * 2 * (1 + 2 + 2 + 2)


@pytest.fixture
def no_report(monkeypatch):
    """Reports are somebody else's business: note that one was asked for."""
    written = []

    def write_report(run_folder, output=None):
        written.append((run_folder, output))
        return run_folder / "report" / "index.html"

    monkeypatch.setattr(report_package, "write_report", write_report)
    return written


@pytest.fixture
def toy(monkeypatch):
    """Made-up data under the name of every dataset."""
    monkeypatch.setattr(protocol, "load_data", lambda name: made_up(name, n_samples=40))


def reproduce(folder, *options):
    return main(["reproduce", "--output", str(folder), "--backend", "serial", *options])


@pytest.mark.usefixtures("toy")
def test_a_run_and_its_report(tmp_path, no_report, capsys):
    options = ["--model", "l2-SVM", "--model", "l2-SVM_K", "--sigma", "2^1"]
    assert reproduce(tmp_path, *options) == 0
    output = capsys.readouterr()
    assert output.out == f"{tmp_path / 'report' / 'index.html'}\n"
    first, last = output.err.splitlines()
    # Six values of C; shuffled and inner folds for both, unshuffled ones for l2-SVM_K.
    assert first == (f"owasvm: 780 fits on wbc (coarse grid); results in {tmp_path}")
    assert last.startswith("owasvm: 780 fits in ")
    assert no_report == [(tmp_path, None)]
    with Store(tmp_path) as store:
        assert set(store.frame()["folds"]) == {"shuffled", "unshuffled", "nested"}
        assert store.meta()["command"] == (
            "owasvm reproduce --grid coarse --model l2-SVM --model l2-SVM_K --sigma 2"
        )


@pytest.mark.usefixtures("toy")
def test_resuming_is_the_default(tmp_path, no_report, capsys):
    options = ["--model", "l2-SVM", "--grid", "paper", "--C", "1", "--C", "0.5"]
    reproduce(tmp_path, *options, "--no-report")
    assert no_report == []
    before = lasting_rows(tmp_path)
    capsys.readouterr()
    assert reproduce(tmp_path, *options, "--dataset", "german", "--dataset", "wbc") == 0
    (first, second) = capsys.readouterr().err.splitlines()
    assert "40 fits on wbc, german (paper grid), 20 of them stored already" in first
    assert second.startswith("owasvm: 20 fits in")
    assert set(before) < set(lasting_rows(tmp_path))
    assert reproduce(tmp_path, *options, "--fresh") == 0
    assert "stored already" not in capsys.readouterr().err


@pytest.mark.usefixtures("toy")
def test_everything_stored_needs_no_work(tmp_path, no_report, capsys):
    options = ["--model", "l2-SVM", "--C", "4", "--no-nested"]
    reproduce(tmp_path, *options)
    capsys.readouterr()
    assert reproduce(tmp_path, *options) == 0
    assert capsys.readouterr().err.count("\n") == 1
    assert len(no_report) == 2


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "wcb"], "--dataset 'wcb' is unknown; did you mean 'wbc'?"),
        (["--model", "svm"], "--model 'svm' is unknown"),
        (["--C", "3"], "C=3 is not in the coarse grid, which has 2^-4"),
        (["--quantifier", "cubic"], "quantifier=cubic is not in the coarse grid"),
        (["--jobs", "0"], "--jobs must be 1 or more"),
        (["--scheduler", "tcp://localhost:1"], "--scheduler belongs to --backend dask"),
        (["--nested", "--folds", "unshuffled"], "--nested divides the shuffled folds"),
    ],
)
def test_bad_options_are_one_line(tmp_path, capsys, options, message):
    assert main(["reproduce", "--output", str(tmp_path / "run"), *options]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("owasvm: error: ")
    assert message in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["0", "-1", "2^x", "0^-1", "nan", "1e400", "9^999999"])
def test_bad_numbers_are_one_line(text, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["reproduce", f"--C={text}"])
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.usefixtures("toy", "no_report")
def test_another_experiment_in_the_folder_is_refused(tmp_path, capsys):
    reproduce(tmp_path, "--model", "l2-SVM", "--C", "4", "--no-nested")
    capsys.readouterr()
    assert reproduce(tmp_path, "--model", "l2-SVM", "--C", "2^5", "--no-nested") == 2
    assert "holds a run with Cs [4.0], and this one has [32.0]" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert reproduce(tmp_path / "file", "--model", "l2-SVM") == 2
    assert "cannot write to" in capsys.readouterr().err


@pytest.mark.usefixtures("toy", "no_report")
def test_failures_and_interrupts_have_their_exit_status(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runner, "_run_serially", lambda _: ["Cell(fold=3): too hard"])
    options = ["--model", "l2-SVM"]
    assert reproduce(tmp_path, *options) == 1
    assert "owasvm: warning: failed and skipped" in capsys.readouterr().err

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_run_serially", interrupted)
    assert reproduce(tmp_path, *options) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert "0 of 360 fits are stored" in last
    assert "the same command goes on" in last

    def lost(_):
        raise runner.WorkerLostError("a worker process was killed")

    monkeypatch.setattr(runner, "_run_serially", lost)
    assert reproduce(tmp_path, *options) == 1
    assert "owasvm: error: a worker process was killed" in capsys.readouterr().err


def start(folder: Path, jobs: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "owasvm.cli", "reproduce", "--output", str(folder)]
    return subprocess.Popen(
        [*command, "--jobs", str(jobs), *SMALL],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stored_rows(folder: Path) -> set[tuple[object, ...]]:
    """Whole rows, read without touching anything."""
    path = folder / FILE_NAME
    if not path.exists():
        return set()
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return set(database.execute("SELECT * FROM cells"))
    except sqlite3.OperationalError:
        # The table is still to be made.
        return set()
    finally:
        database.close()


def wait_for_cells(process: "subprocess.Popen[str]", folder: Path, at_least: int) -> None:
    while len(stored_rows(folder)) < at_least and process.poll() is None:
        time.sleep(0.01)


def test_killed_and_resumed_runs_end_with_the_same_tables(tmp_path):
    calm, shaken = tmp_path / "calm", tmp_path / "shaken"
    with start(calm, 1) as process:
        errors = process.communicate()[1]
    assert process.returncode == 0, errors
    # Not a terminal: a line at the start, one at the end.
    assert len(errors.splitlines()) == 2
    draw = random.Random(7)
    kept: set[tuple[object, ...]] = set()
    for n_jobs, at_least, kill in ((2, 20, os.kill), (1, 60, os.killpg)):
        with start(shaken, n_jobs) as process:
            wait_for_cells(process, shaken, at_least)
            time.sleep(draw.uniform(0.0, 0.02))
            kill(process.pid, signal.SIGKILL)
            # Its workers end as well, or they would hold on to the pipe.
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        stored = stored_rows(shaken)
        assert kept <= stored, "a stored cell changed"
        assert at_least <= len(stored) < N_SMALL
        kept = stored
    # Ctrl-C, which a terminal sends to all processes, is followed by an explanation.
    with start(shaken, 2) as process:
        wait_for_cells(process, shaken, len(kept) + 5)
        os.killpg(process.pid, signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode == 130
    assert "the same command goes on from there" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    with start(shaken, 1) as process:
        errors = process.communicate()[1]
    assert process.returncode == 0, errors
    assert lasting_rows(shaken) == lasting_rows(calm)
    assert len(stored_rows(shaken)) == N_SMALL
    # Only cells that were being computed when a process ended were started again.
    assert N_SMALL <= total_attempts(shaken) <= N_SMALL + 5
