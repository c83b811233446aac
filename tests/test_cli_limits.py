"""Data files without end, without measure or without sense: one line, exit status 2."""

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from owasvm import OWASVC, persistence
from owasvm.cli import _data, main
from owasvm.cli._sources import MAX_DATA_BYTES

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytest.importorskip("skops")

IRIS = load_iris()


def frame():
    table = pandas.DataFrame(IRIS.data[50:], columns=["a", "b", "c", "d"])
    table["kind"] = np.where(IRIS.target[50:] == 1, "one", "two")
    return table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with data and a model of it."""
    monkeypatch.chdir(tmp_path)
    frame().to_csv("good.csv", index=False)
    model = OWASVC().fit(frame()[["a", "b", "c", "d"]], frame()["kind"].to_numpy().astype(str))
    persistence.save(model, "good.skops", metadata={"target": "kind"})


def arguments_of(command, data):
    if command == "fit":
        return ["fit", str(data), "--target", "kind", "--output", "m.skops", "--cv", "0"]
    return ["predict", "good.skops", str(data), "--output", "p.csv"]


def refused(capsys, *arguments):
    """Run a command that is refused; its one line."""
    before = sorted(Path().iterdir())
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        status = exit_.code
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    assert err.startswith("owasvm: error: ") and err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    return err


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out, err


COMMANDS = pytest.mark.parametrize("command", ["fit", "predict"])


# -------------------------------------------------------------------------------------- endless


@COMMANDS
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_devices_are_not_read(command, device, capsys):
    if not Path(device).is_char_device():
        pytest.skip(f"needs {device}")
    assert f"{device} is a device" in refused(capsys, *arguments_of(command, device))
    Path("link.csv").symlink_to(device)
    assert "link.csv is a device" in refused(capsys, *arguments_of(command, "link.csv"))


@COMMANDS
@pytest.mark.parametrize("name", ["huge.csv", "huge", "huge.parquet", "huge.svm", "huge.csv.gz"])
def test_huge_file_is_not_opened(command, name, capsys):
    """100 GB that take no room on the disk."""
    with Path(name).open("wb") as stream:
        stream.truncate(10**11)
    err = refused(capsys, *arguments_of(command, name))
    assert f"{name} has 93.1 GiB, more than the 4 GiB" in err and "--max-size" in err


@COMMANDS
def test_file_of_zeros(command, capsys):
    Path("zeros.csv").write_bytes(bytes(10**6))
    assert "zeros.csv is no text" in refused(capsys, *arguments_of(command, "zeros.csv"))


@pytest.fixture
def pipe():
    """Starts writing blocks to a pipe, until nobody reads it any more."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo("pipe")
    threads = []

    def write(blocks):
        try:
            with Path("pipe").open("wb", buffering=0) as stream:
                for block in blocks:
                    stream.write(block)
        except BrokenPipeError:
            pass

    def start(blocks):
        threads.append(threading.Thread(target=write, args=(blocks,), daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def without_end():
    yield b"a,b,kind\n"
    while True:
        yield b"1,2,3\n" * 1000


@COMMANDS
def test_pipe_without_end(command, pipe, capsys):
    pipe(without_end())
    err = refused(capsys, *arguments_of(command, "pipe"), "--max-size", "2M")
    assert "pipe has more than the 2 MiB" in err


@COMMANDS
def test_pipe_with_an_end(command, pipe, capsys):
    """``owasvm fit <(...)`` and ``... | owasvm predict model /dev/stdin``."""
    pipe([Path("good.csv").read_bytes()])
    run(capsys, *arguments_of(command, "pipe"))


def test_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "owasvm.cli", *arguments_of("predict", "/dev/stdin")],
        input=Path("good.csv").read_bytes(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == b"" and b"100 rows" in done.stdout


@COMMANDS
@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.svm.gz"])
def test_compressed_bomb(command, name, capsys):
    line = b"1 1:1 2:2\n" if name == "bomb.svm.gz" else b"1,2,3,4,x\n"
    header = b"" if name == "bomb.svm.gz" else b"a,b,c,d,kind\n"
    Path(name).write_bytes(gzip.compress(header + line * 10**6))
    assert Path(name).stat().st_size < 10**5
    arguments = arguments_of(command, name)
    if name == "bomb.svm.gz" and command == "fit":
        arguments = ["fit", name, "--output", "m.skops"]
    err = refused(capsys, *arguments, "--max-size", "3M")
    assert f"{name} has more than the 3 MiB" in err


def test_parquet_bomb(capsys):
    """A billion zeros take a few kilobytes where runs are counted."""
    writer = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({name: np.zeros(10**6) for name in ("a", "kind")})
    writer.write_table(table, "bomb.parquet")
    assert Path("bomb.parquet").stat().st_size < 10**5
    err = refused(capsys, *arguments_of("fit", "bomb.parquet"), "--max-size", "10M")
    assert "bomb.parquet has 1000000 rows and 2 columns, more than the 10 MiB" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [("0", "above 0"), ("-3", "above 0"), ("much", "such as 500M or 20G"), ("nanG", "such as")],
)
def test_sizes_that_are_none(text, words, capsys):
    assert words in refused(capsys, *arguments_of("fit", "good.csv"), "--max-size", text)


def test_limit_can_be_moved(capsys):
    size = Path("good.csv").stat().st_size
    arguments = arguments_of("fit", "good.csv")
    assert "more than the" in refused(capsys, *arguments, "--max-size", size - 1)
    for enough in (size, "1k", "1.5K", "20G"):
        if enough in ("1k", "1.5K"):
            refused(capsys, *arguments, "--max-size", enough)
        else:
            run(capsys, *arguments, "--max-size", enough)
    assert MAX_DATA_BYTES == 4 * 2**30


@pytest.mark.parametrize("device", ["/dev/zero", "pipe", "."])
def test_models_are_files(device, capsys):
    if device == "pipe":
        os.mkfifo("pipe")
    assert "no file" in refused(capsys, "predict", device, "good.csv")


def test_size_of_the_model_file(capsys):
    arguments = ["predict", "good.skops", "good.csv"]
    err = refused(capsys, *arguments, "--max-model-size", "1K")
    assert "good.skops was not loaded" in err and "--max-model-size" in err
    run(capsys, *arguments, "--max-model-size", "2G")


# --------------------------------------------------------------------------------------- headers


def wide(n_columns):
    names = [f"column-{position:09d}" for position in range(n_columns)]
    rows = [",".join(["1"] * n_columns), ",".join(["2"] * n_columns)]
    lines = [",".join([*names, "kind"])] + [f"{rows[k % 2]},{k % 2}" for k in range(4)]
    return "\n".join(lines) + "\n"


def test_header_longer_than_the_sample(monkeypatch, capsys):
    """Names are compared whole: cut in the middle, the last one would be there twice."""
    monkeypatch.setattr(_data, "_SAMPLE_CHARACTERS", 100)
    text = wide(12)
    cut = text[:100].rpartition(",")[2]
    assert cut.startswith("column-") and len(cut) < len("column-000000000")
    Path("wide.csv").write_text(text.replace("column-000000000", cut, 1))
    out, err = run(capsys, *arguments_of("fit", "wide.csv"))
    assert err == "" and "12 features" in out
    Path("twice.csv").write_text(text.replace("column-000000011", "column-000000000", 1))
    err = refused(capsys, *arguments_of("fit", "twice.csv"))
    assert "several columns called 'column-000000000'" in err


def test_header_of_more_than_a_mebibyte(capsys):
    Path("wide.csv").write_text(wide(70_000))
    assert len(Path("wide.csv").read_text().partition("\n")[0]) > 2**20
    out, err = run(capsys, *arguments_of("fit", "wide.csv"), "--model", "linear")
    assert err == "" and "70000 features" in out
    assert persistence.read_metadata("m.skops")["feature_names"][-1] == "column-000069999"


def test_first_line_without_end(monkeypatch, capsys):
    monkeypatch.setattr(_data, "_LONGEST_FIRST_LINE", 10**5)
    Path("line.csv").write_text("a," * 10**6)
    assert "first line of line.csv" in refused(capsys, *arguments_of("fit", "line.csv"))


def test_blank_lines_before_the_header(monkeypatch, capsys):
    monkeypatch.setattr(_data, "_SAMPLE_CHARACTERS", 100)
    Path("late.csv").write_text("\n" * 500 + Path("good.csv").read_text())
    run(capsys, *arguments_of("fit", "late.csv"))


# -------------------------------------------------------------------------- odd, but plausible


def test_labels_beyond_64_bits(capsys):
    """They are text then, the same text at prediction, instead of other numbers."""
    table = frame()
    for first in (2**63, 2**70):
        table["kind"] = [str(first + k % 2) for k in range(100)]
        table.to_csv("large.csv", index=False)
        run(capsys, *arguments_of("fit", "large.csv"))
        assert persistence.load("m.skops").classes_.tolist() == [str(first), str(first + 1)]
        out, _ = run(capsys, "predict", "m.skops", "large.csv", "--output", "p.csv")
        assert "accuracy" in out
    table["kind"] = [1e300 * (k % 2) for k in range(100)]
    table.to_csv("large.csv", index=False)
    err = refused(capsys, *arguments_of("fit", "large.csv"))
    assert "1e+300 is too large for one" in err
    Path("large.svm").write_text("1e300 1:1\n-1 1:2\n" * 5)
    err = refused(capsys, "fit", "large.svm", "--output", "m.skops")
    assert "1e+300 is too large for one" in err


@COMMANDS
@pytest.mark.parametrize("value", [1e308, -1e160])
def test_numbers_whose_squares_overflow(command, value, capsys):
    table = frame()
    table.loc[3, "b"] = value
    table.to_csv("large.csv", index=False)
    err = refused(capsys, *arguments_of(command, "large.csv"))
    assert f"column 'b', row 4 is {value}, too large a number to compute with" in err
    Path("large.svm").write_text(f"1 1:1 2:{value}\n-1 1:2\n" * 5)
    arguments = arguments_of(command, "large.svm")
    if command == "fit":
        arguments = ["fit", "large.svm", "--output", "m.skops"]
    assert "feature 2 in row 1 is" in refused(capsys, *arguments)


def test_cells_that_hold_lists(capsys):
    columns = {"kind": [k % 2 for k in range(20)]}
    for value in ([1.0], [1.0, 2.0], [], {"x": 1.0}):
        table = arrow.table({"a": [value] * 20, **columns})
        arrow.parquet.write_table(table, "lists.parquet")
        err = refused(capsys, *arguments_of("fit", "lists.parquet"))
        assert "column 'a', row 1 holds a" in err and "not a number" in err


def test_parquet_columns_of_one_name(capsys):
    values = arrow.array([k % 2 for k in range(20)])
    table = arrow.Table.from_arrays([values, values], names=["kind", "kind"])
    arrow.parquet.write_table(table, "twice.parquet")
    err = refused(capsys, *arguments_of("fit", "twice.parquet"))
    assert "several columns called 'kind'" in err


def test_feature_with_a_large_index(capsys):
    """An index that was mistyped is no reason to fill the memory."""
    Path("typo.svm").write_text("1 1:1 2147483000:1\n-1 1:2\n" * 5)
    err = refused(capsys, "fit", "typo.svm", "--output", "m.skops")
    assert "typo.svm has 2147483000 features, more numbers than fit into the 4 GiB" in err
    Path("wide.svm").write_text("1 1:1 90000000:1\n-1 1:2\n" * 5)
    run(capsys, "fit", "wide.svm", "--output", "m.skops", "--cv", 0)
    run(capsys, "predict", "m.skops", "wide.svm", "--output", "p.csv")


def failing(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize("error", [TypeError("no way"), AttributeError("gone"), KeyError(3)])
def test_model_that_cannot_be_applied(error, monkeypatch, capsys):
    """A step of scikit-learn that was damaged fails in its own way."""
    monkeypatch.setattr(OWASVC, "decision_function", failing(error))
    err = refused(capsys, *arguments_of("predict", "good.csv"))
    assert f"good.skops cannot be applied to good.csv: {type(error).__name__}" in err


@pytest.mark.parametrize("values", [np.full(100, np.nan), np.zeros(7), np.zeros((100, 2))])
def test_model_without_sensible_values(values, monkeypatch, capsys):
    monkeypatch.setattr(OWASVC, "decision_function", lambda *_: values)
    assert "good.skops" in refused(capsys, *arguments_of("predict", "good.csv"))


# -------------------------------------------------------------------------------------- formulas


def model_of_formulas(labels):
    table = frame()
    table["kind"] = np.where(table["kind"] == "one", *labels)
    table.to_csv("formulas.csv", index=False)
    return [*arguments_of("fit", "formulas.csv")], ["predict", "m.skops", "formulas.csv"]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t"])
def test_formulas_can_be_escaped(mark, capsys):
    label = f"{mark}cmd|' /C calc'!A0"
    fit, predict = model_of_formulas([label, "safe"])
    if mark == "\t":
        table = pandas.read_csv("formulas.csv")
        table.to_parquet("formulas.parquet")
        fit[1] = predict[2] = "formulas.parquet"
    run(capsys, *fit)
    run(capsys, *predict, "--output", "plain.csv", "--decision")
    out, _ = run(capsys, *predict, "--output", "p.csv", "--decision", "--escape-formulas")
    assert "accuracy" in out
    plain, escaped = pandas.read_csv("plain.csv"), pandas.read_csv("p.csv")
    assert set(plain["prediction"]) == {label, "safe"}
    assert set(escaped["prediction"]) == {f"'{label}", "safe"}
    np.testing.assert_array_equal(plain["decision"], escaped["decision"])
    assert run(capsys, *predict, "--escape-formulas")[0].startswith("prediction\n")


def test_numbers_are_no_formulas(capsys):
    fit, predict = model_of_formulas([-1, 1])
    run(capsys, *fit)
    out, _ = run(capsys, *predict, "--escape-formulas")
    assert set(out.splitlines()) == {"prediction", "-1", "1"}


def test_parquet_has_no_formulas(capsys):
    err = refused(
        capsys, "predict", "good.skops", "good.csv", "--output", "p.pq", "--escape-formulas"
    )
    assert "--escape-formulas" in err and "CSV" in err
