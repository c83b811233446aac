"""Records, callbacks, lines and displays of a fit."""

import logging
import pickle
import re
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, LinearOWASVC, progress
from owasvm._jit import njit, seconds_compiling
from owasvm.progress import ProgressRecord, Watch, show_life
from owasvm.solvers.clock import Clock
from owasvm.solvers.contract import Settings

X, Y = make_moons(120, noise=0.3, random_state=0)
X3, Y3 = make_classification(90, n_classes=3, n_informative=5, random_state=0)


def record(**changes) -> ProgressRecord:
    values = {
        "solver": "newton",
        "stage": "newton",
        "label": "",
        "n_iter": 3,
        "objective": 10.0,
        "lower_bound": 9.0,
        "gap": 0.1,
        "time": 0.5,
        "is_proven": False,
    }
    return ProgressRecord(**{**values, **changes})


@pytest.mark.parametrize("estimator", [OWASVC(), LinearOWASVC()])
def test_a_callback_sees_every_step_and_changes_nothing(estimator):
    seen = []
    plain = clone(estimator).fit(X, Y)
    watched = clone(estimator).set_params(callback=seen.append).fit(X, Y)
    assert watched.objective_ == plain.objective_
    assert watched.n_iter_ == plain.n_iter_
    assert {one.solver for one in seen} == {"newton"}
    assert [one.n_iter for one in seen] == sorted(one.n_iter for one in seen)
    assert seen[0].gap > seen[-1].gap
    assert all(not one.is_proven for one in seen)
    with pytest.raises(FrozenInstanceError):
        seen[0].gap = 0.0


def test_the_history_ends_with_the_certificate():
    clf = OWASVC(callback="record").fit(X, Y)
    last = clf.solution_.history[-1]
    assert (last.stage, last.is_proven) == ("end", True)
    assert last.objective == clf.objective_
    assert last.lower_bound == clf.lower_bound_
    assert last.gap == clf.gap_
    assert len(clf.solution_.history) > 3


def test_nothing_is_recorded_unless_asked_for():
    assert OWASVC().fit(X, Y).solution_.history == ()


def test_a_solution_that_needs_no_step_has_no_history_of_another():
    model = LinearOWASVC(C=1e-5, warm_start=True, callback="record").fit(X, Y)
    steps = len(model.solution_.history)
    model.set_params(C=2e-5).fit(X, Y)
    assert (model.n_iter_, len(model.solution_.history)) == (0, 1) < (0, steps)
    model.set_params(C=3e-5, callback=None).fit(X, Y)
    assert (model.n_iter_, model.solution_.history) == (0, ())


def test_a_callback_may_answer_with_numpys_false():
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = OWASVC(callback=lambda one: np.float64(one.gap) > 1.0).fit(X, Y)
    assert model.status_ == "interrupted"


def test_general_weights_report_proven_bounds():
    clf = OWASVC(weights="quadratic", alpha=0.9, callback="record").fit(X[:14], Y[:14])
    history = clf.solution_.history
    assert {one.stage for one in history} <= {"bound", "descent", "trail", "node", "end"}
    bounds = [one.lower_bound for one in history]
    assert all(one.is_proven for one in history)
    assert bounds[:-1] == sorted(bounds[:-1])
    # Rounding is taken off at the end.
    assert max(bounds) <= clf.objective_
    objectives = [one.objective for one in history[:-1]]
    assert objectives == sorted(objectives, reverse=True)


def test_returning_false_keeps_the_incumbent_with_its_gap():
    full = OWASVC().fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="callback stopped it"):
        stopped = OWASVC(callback=lambda one: one.n_iter < 3).fit(X, Y)
    assert stopped.status_ == "interrupted"
    assert stopped.lower_bound_ <= full.objective_ <= stopped.objective_ * (1 + 1e-9)
    assert stopped.gap_ > full.gap_
    assert stopped.predict(X).shape == Y.shape


def test_each_class_has_its_own_record():
    clf = OWASVC(callback="record").fit(X3, Y3)
    assert [one.history[-1].label for one in clf.solution_] == ["class 0", "class 1", "class 2"]
    assert [one.history[-1].objective for one in clf.solution_] == list(clf.objective_)


def test_estimators_with_a_callback_are_cloned_and_pickled():
    clf = OWASVC(callback="record").fit(X, Y)
    assert clone(clf).callback == "record"
    again = pickle.loads(pickle.dumps(clf))
    assert again.solution_.history == clf.solution_.history
    assert clone(OWASVC(callback=print)).callback is print


def test_another_callback_is_refused():
    with pytest.raises(ValueError, match="callback"):
        OWASVC(callback="print").fit(X, Y)


def test_verbose_writes_the_outcome_and_every_step(caplog):
    OWASVC(verbose=1).fit(X3, Y3)
    lines = caplog.messages.copy()
    assert len(lines) == 3
    assert lines[0].startswith("class 0, newton: optimal, objective ")
    caplog.clear()
    OWASVC(verbose=2).fit(X3, Y3)
    assert sum(line.startswith("class 1, newton ") for line in caplog.messages) > 3
    caplog.clear()
    OWASVC().fit(X, Y)
    assert not caplog.messages


def test_long_steps_show_life(monkeypatch, caplog):
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    with caplog.at_level(logging.INFO, "owasvm"), show_life(1, lambda _: "working"):
        time.sleep(0.2)
    assert caplog.messages.count("working") >= 3
    assert not any(thread.name == "owasvm-progress" for thread in _threads())


def _threads():
    import threading

    return threading.enumerate()


def test_terminals_get_a_live_line(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(progress, "_LIVE_INTERVAL", 0.01)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_life(1, lambda _: "working"):
        time.sleep(0.3)
    written = capsys.readouterr().out
    assert "working" in written
    assert "\x1b[" in written


def test_lines_estimate_the_time_left():
    watch = Watch("newton", target=1e-6)
    describe = watch._describe_last("starting")
    assert describe(2.0) == "starting, 2 s"
    for k in range(8):
        watch.report({"n_iter": k, "objective": 1.0, "gap": 10.0**-k * 0.5, "time": float(k)})
    for _ in range(3):
        watch.records.pop()
    assert describe(4.0).endswith("about 2 s left")


def test_lines_name_solver_and_stage_once():
    watch = Watch("newton", callback="record", label="class 0")
    watch.report({"n_iter": 3, "objective": 1.0, "gap": 0.5, "time": 1.0, "stage": "newton"})
    watch.report({"n_iter": 4, "objective": 1.0, "gap": 0.5, "time": 1.0, "stage": "rescue"})
    assert str(watch.records[0]).startswith("class 0, newton 3: objective")
    assert str(watch.records[1]).startswith("class 0, newton, rescue 4: objective")


def test_time_left_is_within_the_limit():
    watch = Watch("branch-and-bound", target=1e-6, time_limit=5.0)
    for k in range(5):
        watch.report({"n_iter": k, "objective": 1.0, "gap": 0.5**k, "time": float(k)})
    assert watch._describe_last("starting")(4.0).endswith("about 1 s left")


def _screen(written):
    """The lines that a terminal shows in the end."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[\??[0-9;]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.startswith("\x1b"):
            row -= part == "\x1b[1A"
            lines[row] = "" if part == "\x1b[2K" else lines[row]
        elif part != "\r":
            lines[row] += part
    return [line for line in lines if line]


def test_live_line_leaves_the_last_word(monkeypatch, capsys):
    """The live line goes, the line about the result stays, by itself."""
    pytest.importorskip("rich")
    monkeypatch.setattr(progress, "_LIVE_INTERVAL", 0.01)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(logging.getLogger("owasvm"), "propagate", False)

    def dawdle(_):
        time.sleep(0.02)

    OWASVC(verbose=1, callback=dawdle).fit(X, Y)
    (line,) = _screen(capsys.readouterr().out)
    assert line.startswith("newton: optimal, objective ")


def test_very_long_histories_are_thinned():
    watch = Watch("branch-and-bound", callback="record")
    for k in range(20_000):
        watch.report({"n_iter": k, "objective": 1.0, "gap": 0.1, "time": 1e-3 * k})
    watch.conclude({"n_iter": k, "objective": 1.0, "gap": 0.1, "time": 21.0})
    numbers = [one.n_iter for one in watch.records]
    assert 1000 < len(numbers) <= 4097
    assert numbers == sorted(numbers)
    assert watch.records[-1].stage == "end"


def test_compilation_is_not_charged_to_the_time_limit():
    clock = Clock.start(Settings(time_limit=1.0))
    before = seconds_compiling()

    @njit()
    def total(values):
        return values + 1.0

    begun = time.perf_counter()
    total(3.0)
    passed = time.perf_counter() - begun
    compiling = seconds_compiling() - before
    assert 0.0 < compiling <= passed
    assert clock.elapsed <= time.perf_counter() - clock.begun - compiling


COLD = """
import logging, sys
from owasvm._jit import njit
functions = []
source = "@njit()\\ndef f{0}(x):\\n    return x + {0}\\n"
for k in range(4):
    space = {"njit": njit, "__name__": "owasvm.example"}
    exec(source.format(k), space)
    functions.append(space[f"f{k}"])
for function in functions[:int(sys.argv[1])]:
    function(1.0)
"""


@pytest.mark.parametrize(("n_functions", "n_lines"), [(2, 0), (4, 1)])
def test_compilation_is_announced_once(n_functions, n_lines):
    process = subprocess.run(
        [sys.executable, "-c", COLD, str(n_functions)], capture_output=True, text=True, check=True
    )
    lines = process.stderr.splitlines()
    assert len(lines) == n_lines
    assert all(line.startswith("owasvm: compiling its inner loops, once per") for line in lines)


class TestConvergenceDisplay:
    @pytest.fixture(autouse=True)
    def close_figures(self):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.switch_backend("agg")
        yield
        pyplot.close("all")

    def test_draws_newton_steps(self):
        from owasvm.inspection import ConvergenceDisplay

        clf = OWASVC(callback="record").fit(X, Y)
        display = ConvergenceDisplay.from_estimator(clf)
        history = clf.solution_.history
        np.testing.assert_array_equal(display.time, [one.time for one in history])
        objective, estimated, proven = display.ax_.lines
        assert objective.get_ydata()[-1] == clf.objective_
        assert estimated.get_linestyle() == ":"
        assert np.isfinite(proven.get_ydata()).sum() == 1
        low, high = display.ax_.get_ylim()
        assert low <= clf.lower_bound_ <= clf.objective_ <= high
        assert display.ax_gap_.get_yscale() == "log"
        assert display.ax_.get_title() == "newton"

    def test_looks_into_pipelines(self):
        from owasvm.inspection import ConvergenceDisplay

        model = make_pipeline(StandardScaler(), LinearOWASVC(callback="record")).fit(X, Y)
        display = ConvergenceDisplay.from_estimator(model)
        assert display.objective[-1] == model[-1].objective_
        with pytest.raises(TypeError, match="SVC has no solution_"):
            ConvergenceDisplay.from_estimator(SVC().fit(X, Y))

    def test_draws_branch_and_bound_into_given_axes(self):
        from matplotlib import pyplot

        from owasvm.inspection import ConvergenceDisplay

        clf = OWASVC(weights="quadratic", alpha=0.9, callback="record").fit(X[:14], Y[:14])
        _, ax = pyplot.subplots()
        display = ConvergenceDisplay.from_estimator(clf, ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert len(ax.lines) == 2
        assert np.isfinite(ax.lines[1].get_ydata()).all()
        assert display.plot() is display
        free = pyplot.figure().add_axes([0.2, 0.2, 0.6, 0.6])
        display.plot(ax=free)
        assert display.ax_gap_.get_position().y1 < free.get_position().y0

    def test_takes_the_class_asked_for(self):
        from owasvm.inspection import ConvergenceDisplay

        clf = OWASVC(callback="record").fit(X3, Y3)
        display = ConvergenceDisplay.from_estimator(clf, class_index=1)
        assert display.objective[-1] == clf.objective_[1]
        assert display.name == "class 1, newton"

    def test_bounds_that_are_not_there_are_left_out(self):
        from owasvm.inspection import ConvergenceDisplay

        display = ConvergenceDisplay.from_records(
            [record(lower_bound=-np.inf, gap=np.inf), record(time=1.0, is_proven=True, gap=0.0)]
        )
        assert np.isnan(display.ax_.lines[1].get_ydata()[0])

    def test_errors_say_what_to_do(self):
        from owasvm.inspection import ConvergenceDisplay

        with pytest.raises(ValueError, match="callback='record'"):
            ConvergenceDisplay.from_estimator(OWASVC().fit(X, Y))
        with pytest.raises(ValueError, match="records is empty"):
            ConvergenceDisplay.from_records([])


def test_warmup_says_what_it_did_and_where(capsys, monkeypatch):
    from owasvm import warmup
    from owasvm.cli import main

    first = dict(list(warmup._STEPS.items())[:2])
    monkeypatch.setattr(warmup, "_STEPS", first)
    assert main(["warmup"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(" 1/2  kernels, weights that never fall: ")
    assert "the compiled functions are in " in lines[-1]
    # Nothing is left to do.
    assert main(["warmup"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith(": ready") for line in lines[:-1])
    assert lines[-1].startswith("All was compiled before; ")
