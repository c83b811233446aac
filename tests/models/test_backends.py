"""Back-ends: what is there, what is refused, and the same answer from each."""

import subprocess
import sys

import numpy as np
import pytest

from owasvm.models import BackendError, MissingBackendError, available, bounds, nc_owa_svm
from owasvm.models.backends import BACKENDS, choose_backend
from owasvm.models.backends.program import MixedIntegerProgram, Search, search
from tests.models.instances import general, general_weights, make
from tests.oracles import enumerate_owa_svm

CONTINUOUS = [b.name for b in BACKENDS.values() if b.continuous]
MIXED_INTEGER = [b.name for b in BACKENDS.values() if b.mixed_integer]


def _skip_unless_installed(name: str) -> None:
    if not BACKENDS[name].installed:
        pytest.skip(f"{name} is not installed")


class TestAvailability:
    def test_table_names_every_backend_once(self):
        table = available()
        assert [row.name for row in table] == list(BACKENDS)
        for row in table:
            assert row.installed == (row.version is not None)
        kinds = {row.name: row.kind for row in table}
        assert kinds["clarabel"] == "conic"
        assert kinds["scip"] == "miqp"
        assert kinds["gurobi"] == "conic+miqp"

    def test_looking_up_imports_no_solver(self):
        heavy = sorted({b.module for b in BACKENDS.values()} | {"cvxpy", "sklearn"})
        code = (
            "import sys; from owasvm.models import available; available(); "
            f"print([m for m in {heavy!r} if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"

    @pytest.mark.parametrize("name", ["scip", "gurobi"])
    def test_missing_backend_is_one_line_with_the_command(self, name, monkeypatch):
        monkeypatch.setattr("owasvm.models.backends.util.find_spec", lambda _: None)
        with pytest.raises(MissingBackendError) as caught:
            choose_backend(name, "mixed_integer")
        text = str(caught.value)
        assert "\n" not in text
        assert ("owasvm[models]" if name == "scip" else "pip install gurobipy") in text
        with pytest.raises(MissingBackendError):
            BACKENDS[name].load()

    def test_missing_cvxpy_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cvxpy", None)
        with pytest.raises(MissingBackendError, match=r"owasvm\[models\]"):
            bounds.relaxation(general(0).problem)

    def test_backend_of_another_kind_is_refused(self):
        with pytest.raises(ValueError, match="'clarabel' does not solve mixed-integer"):
            nc_owa_svm.solve(general(0).problem, backend="clarabel")
        with pytest.raises(ValueError, match="does not solve problems with a quadratic constr"):
            bounds.ub_b(general(0).problem, 1.0, backend="osqp")


class TestProgram:
    def test_rows_objective_and_violation(self):
        program = MixedIntegerProgram()
        x = program.variables("x", 2, lower=-1.0, upper=[2.0, 3.0])
        z = program.variables("z", 2, 2, binary=True)
        program.rows("first", (np.array([[1.0, 2.0]]), x), (1.0, z[0, :1]), lower=1.0, upper=4.0)
        program.rows("second", (np.array([1.0, -1.0]), x), (5.0, z[:, 1]), upper=0.0)
        program.minimise((np.array([3.0, 4.0]), x), squares=x[:1])
        point = np.array([1.0, 2.0, 1.0, 0.0, 0.0, 0.5])
        assert program.value(point) == 3.0 + 8.0 + 0.5
        np.testing.assert_array_equal(
            program.matrix.toarray(),
            [[1, 2, 1, 0, 0, 0], [1, 0, 0, 5, 0, 0], [0, -1, 0, 0, 0, 5]],
        )
        # First row 6 > 4 by 2, second 1 > 0 by 1, z[1, 1] half a unit off.
        assert program.violation(point) == 2.0
        assert program.n_binaries == 4

    def test_wrong_width_is_refused(self):
        program = MixedIntegerProgram()
        x = program.variables("x", 3)
        with pytest.raises(ValueError, match="2 columns was given 3 variables"):
            program.rows("bad", (np.ones((1, 2)), x), lower=0.0)


@pytest.mark.parametrize("name", MIXED_INTEGER)
class TestMixedInteger:
    def test_same_optimum_as_enumeration(self, name):
        _skip_unless_installed(name)
        instance = general(4, max_samples=5)
        truth = enumerate_owa_svm(
            instance.rows, instance.problem.y, instance.weights, instance.C
        ).objective
        big_m = bounds.safe_big_m(instance.problem, instance.C * instance.problem.n_samples)
        program = nc_owa_svm.build(instance.problem, big_m)
        result = search(name, program, Search(mip_gap=1e-8, time_limit=60.0))
        assert result.status == "optimal"
        assert result.objective == pytest.approx(truth, rel=1e-5)
        assert program.violation(result.point) < 1e-5
        assert result.safe_bound <= truth
        assert result.safe_bound >= truth - 1e-4 * max(1.0, truth)

    def test_start_and_options_and_limit(self, name):
        _skip_unless_installed(name)
        instance = general(9)
        first = nc_owa_svm.solve(instance.problem, backend=name)
        again = nc_owa_svm.solve(instance.problem, backend=name, warm_start=first, time_limit=30.0)
        assert again.objective == pytest.approx(first.objective, rel=1e-9)
        assert again.details["backend"] == name

    def test_infeasible(self, name):
        _skip_unless_installed(name)
        program = MixedIntegerProgram()
        x = program.variables("x", 1, lower=0.0, upper=1.0)
        z = program.variables("z", 1, binary=True)
        program.rows("no", (1.0, x), (1.0, z), lower=3.0)
        program.minimise((np.ones(1), x), squares=x)
        result = search(name, program, Search(mip_gap=1e-4, time_limit=10.0))
        assert result.status == "infeasible"
        assert result.point is None


@pytest.mark.parametrize("name", ["gurobi", "cplex"])
def test_licence_too_small_is_said(name):
    _skip_unless_installed(name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 2))
    y = np.where(rng.random(32) < 0.5, -1.0, 1.0)
    instance = make(X, y, general_weights("trigonometric", 32, rng), 1.0, "linear")
    with pytest.raises(BackendError, match=r"licence is too small.*scip"):
        nc_owa_svm.solve(instance.problem, backend=name, strengthened=False)


def test_progress_can_stop_scip():
    seen = []

    def stop(info):
        seen.append(info)
        return False

    instance = general(18)
    solution = nc_owa_svm.solve(instance.problem, callback=stop, mip_gap=1e-7)
    assert len(seen) >= 1
    assert set(seen[0]) == {"n_iter", "objective", "lower_bound", "gap", "time"}
    assert solution.lower_bound <= solution.objective
