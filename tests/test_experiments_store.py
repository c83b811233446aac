"""The store: rows, chains, two processes at once, and states as bytes."""

import sqlite3
import threading

import numpy as np
import pytest

from owasvm.experiments.states import pack, pack_solution, unpack, unpack_solution
from owasvm.experiments.store import COLUMNS, FILE_NAME, KEY, Cell, Store, TakenOverError
from owasvm.experiments.tables import load_orders, load_versions
from owasvm.solution import Solution, Status

KEY_0 = Cell("wbc", "shuffled", "ex-OWA-SVM_K", 0.5, 2.0, "basic", 0.2, 3)


def row(**values):
    return {**KEY_0._asdict(), "n_test": 57, "correct": 50, "gap": 1e-7, **values}


def test_cells_come_back_as_they_were(tmp_path):
    values = row(objective=0.1 + 0.2, lower_bound=None, status="optimal", versions='{"a": "1"}')
    with Store(tmp_path) as store:
        store.add(values)
        store.add(row(fold=4, dataset="german"))
    with Store(tmp_path / FILE_NAME) as store:
        assert store.has(KEY_0)
        assert store.has(values)
        assert not store.has(KEY_0._replace(C=4.0))
        assert store.n_cells() == 2
        assert KEY_0 in store.cells()
        frame = store.frame(dataset="wbc")
        assert tuple(frame.columns) == COLUMNS
        assert frame.loc[0, "objective"] == 0.1 + 0.2
        assert np.isnan(frame.loc[0, "lower_bound"])
        assert load_versions(tmp_path)[int(frame.loc[0, "versions"])] == {"a": "1"}
        assert len(store.frame()) == 2
        assert store.frame(model="l2-SVM").empty
        assert store.frame(folds="shuffled", dataset="german").loc[0, "fold"] == 4


def test_the_table_has_the_agreed_columns(tmp_path):
    with Store(tmp_path):
        pass
    database = sqlite3.connect(tmp_path / FILE_NAME)
    described = database.execute("PRAGMA table_info(cells)").fetchall()
    database.close()
    assert [column[1] for column in described if column[5]] == list(KEY)
    assert {"dataset": "TEXT", "C": "REAL", "fold": "INTEGER", "fit_time": "REAL"}.items() <= {
        column[1]: column[2] for column in described
    }.items()


def test_wrong_rows_are_refused(tmp_path):
    with Store(tmp_path) as store:
        store.add(row())
        with pytest.raises(ValueError, match="is stored already"):
            store.add(row(correct=51))
        with pytest.raises(ValueError, match="unknown column 'accuracy'"):
            store.add(row(accuracy=0.9))
        with pytest.raises(ValueError, match="no 'alpha'"):
            store.add({name: value for name, value in row(fold=9).items() if name != "alpha"})
        assert store.frame()["correct"].tolist() == [50]


def test_orders_and_meta(tmp_path):
    with Store(tmp_path) as store:
        store.add_order({"dataset": "wbc", "fold": 1, "step_two": 1.5, "exact": 0.25})
        store.set_meta(grid="coarse")
        store.set_meta(grid="paper", command="x")
        assert load_orders(tmp_path).to_numpy().tolist() == [["wbc", 1, 1.5, 0.25]]
        assert store.order_keys() == {("wbc", 1)}
        assert store.meta() == {"command": "x", "grid": "paper"}


def test_a_chain_keeps_its_state_until_its_end(tmp_path):
    with Store(tmp_path) as store:
        session = store.claim()
        assert store.begin("chain", KEY_0) == {}
        store.finish("chain", row(), {"first": b"1", "last": b"2"}, is_last=False)
        store.finish("chain", row(C=4.0), {"last": b"3"}, is_last=False)
    with Store(tmp_path, session=session) as worker:
        assert worker.begin("chain", KEY_0._replace(C=8.0)) == {"first": b"1", "last": b"3"}
        worker.finish("chain", row(C=8.0), {"last": b"4"}, is_last=True)
        assert worker.begin("chain") == {}
        assert worker.frame()["attempts"].tolist() == [1, 1, 2]


def test_a_stored_cell_is_not_started_again(tmp_path):
    with Store(tmp_path) as store:
        store.add(row())
        with pytest.raises(ValueError, match="is stored already"):
            store.begin("chain", KEY_0)


def test_a_failed_transaction_leaves_nothing(tmp_path):
    with Store(tmp_path) as store:
        store.claim()
        store.begin("chain")
        store.finish("chain", row(), {"last": b"1"}, is_last=False)
        with pytest.raises(ValueError, match="is stored already"):
            store.finish("chain", row(), {"last": b"2"}, is_last=False)
        assert store.begin("chain") == {"last": b"1"}


def test_the_latest_session_wins(tmp_path):
    with Store(tmp_path) as store:
        old = store.claim()
        with Store(tmp_path, session=old) as orphan:
            orphan.begin("chain", KEY_0)
            with Store(tmp_path) as other:
                other.claim()
            with pytest.raises(TakenOverError, match="this one stops"):
                orphan.finish("chain", row(), {}, is_last=True)
            with pytest.raises(TakenOverError):
                orphan.begin("another")
            assert orphan.n_cells() == 0


def test_many_writers_lose_nothing(tmp_path):
    with Store(tmp_path) as store:
        session = store.claim()

    def write(fold):
        with Store(tmp_path, session=session) as mine:
            mine.begin(f"chain {fold}")
            for step in range(40):
                values = row(fold=fold, C=float(step + 1))
                mine.finish(f"chain {fold}", values, {"state": bytes(3000)}, is_last=step == 39)

    writers = [threading.Thread(target=write, args=(fold,)) for fold in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with Store(tmp_path) as store:
        assert store.n_cells() == 240
        store.settle()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_states_keep_every_bit():
    values = {
        "plain": 0.1 + 0.2,
        "tiny": 5e-324,
        "infinite": np.inf,
        "negative zero": -0.0,
        "count": 2**60,
        "text": "größer",
        "nothing": None,
        "numpy": np.float64(1.0) / 3.0,
        "array": np.array([1.0 / 3.0, np.nan, -0.0]),
        "whole": np.arange(6, dtype=np.int32).reshape(2, 3),
        "empty": np.empty(0),
    }
    back = unpack(pack(values))
    assert list(back) == list(values)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype
            assert back[name].tobytes() == value.tobytes()
            assert back[name].shape == value.shape
            assert back[name].flags.writeable
        else:
            assert back[name] == value
    assert np.signbit(back["negative zero"])


def test_solutions_survive_packing():
    solution = Solution(
        dual=np.array([0.1, 0.0, 0.3]),
        intercept=-0.7,
        objective=1.5,
        lower_bound=1.4,
        status=Status.TIME_LIMIT,
        solver="newton",
        n_iter=12,
        coef=np.array([1.0, 2.0]),
        details={"penalty": 0.3, "array": np.arange(3), "dropped": object()},
    )
    back = unpack_solution(pack_solution(solution))
    assert back.dual.tobytes() == solution.dual.tobytes()
    assert back.coef.tobytes() == solution.coef.tobytes()
    assert (back.status, back.gap, back.intercept) == (Status.TIME_LIMIT, solution.gap, -0.7)
    assert back.details["penalty"] == 0.3
    assert set(back.details) == {"penalty", "array"}
    assert unpack_solution(None) is None
