"""Files as people have them: ids, blanks, decimal commas, dates, ragged lines; what helps."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import owasvm
from owasvm import persistence
from owasvm.cli._tables import are_dates, guess_separator
from tests.commands import refused, run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skops")

RNG = np.random.default_rng(0)
SIZES = RNG.normal(size=(20, 2)).round(3)
KINDS = np.where(SIZES[:, 0] > 0, "yes", "no")
FIT = ["--target", "kind", "--output", "m.skops", "--cv", 0]


def frame(**columns):
    return pandas.DataFrame(SIZES, columns=["a", "b"]).assign(**{"kind": KINDS, **columns})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a small table of two classes."""
    monkeypatch.chdir(tmp_path)
    frame().to_csv("plain.csv", index=False)


@pytest.fixture
def model(capsys):
    run(capsys, "fit", "plain.csv", *FIT)


# ---------------------------------------------------------------------------------------- ids

IDS = {
    "zeros": [f"{k:05d}" for k in range(20)],
    "gap": ["", *(str(9007199254740993 + k) for k in range(19))],
    "exponents": [f"{k + 1}e5" for k in range(20)],
    "truth": ["TRUE", "false"] * 10,
    "words": ["NA", "null", *(str(k) for k in range(18))],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_stay_as_they_are_written(ids, capsys):
    frame(id=ids).to_csv("ids.csv", index=False)
    run(capsys, "fit", "ids.csv", *FIT, "--id", "id")
    out, _ = run(capsys, "predict", "m.skops", "ids.csv")
    assert [line.split(",")[0] for line in out.splitlines()] == ["id", *ids]
    out, _ = run(capsys, "inspect", "ids.csv", "--target", "kind", "--id", "id", "--repeats", 1)
    written = [line.split(",")[:2] for line in out.splitlines()[1:]]
    assert all(text == ids[int(row) - 1] for text, row in written)


def test_another_column_of_ids_stays_as_it_is_written(capsys):
    """Also one that is a feature, which is a number to the model."""
    table = frame(id=IDS["zeros"]).assign(
        a=[f"{value:.5f}".replace(".", ",") for value, _ in SIZES]
    )
    table["b"] = [str(value).replace(".", ",") for _, value in SIZES]
    table.to_csv("german.csv", index=False, sep=";")
    run(capsys, "fit", "german.csv", *FIT, "--drop", "id", "--decimal", ",")
    plain, _ = run(capsys, "predict", "m.skops", "german.csv", "--decimal", ",", "--scores")
    for name in ("id", "a"):
        arguments = ["--decimal", ",", "--scores", "--id", name, "--output", "p.csv"]
        run(capsys, "predict", "m.skops", "german.csv", *arguments)
        written = pandas.read_csv("p.csv", dtype=str)
        assert written[name].tolist() == table[name].tolist()
        expected = [line.split(",")[1] for line in plain.splitlines()[1:]]
        np.testing.assert_allclose(written["decision"].astype(float), np.array(expected, float))


def test_ids_of_parquet_files_stay_whole_numbers(capsys):
    large = 9007199254740993
    ids = pandas.array([None, *range(large, large + 19)], dtype="Int64")
    frame(id=ids).to_parquet("ids.parquet")
    arrow = pytest.importorskip("pyarrow.parquet")
    # Without the notes of pandas, as other programs write it.
    table = arrow.read_table("ids.parquet").replace_schema_metadata()
    arrow.write_table(table, "ids.parquet")
    run(capsys, "fit", "ids.parquet", *FIT, "--id", "id")
    out, _ = run(capsys, "predict", "m.skops", "ids.parquet")
    lines = out.splitlines()
    assert lines[1].startswith(",") and lines[2].startswith(f"{large},")


# ----------------------------------------------------------------------------- decimal commas


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_are_no_separators(separator, capsys):
    table = frame()
    table.to_csv("bare.csv", index=False, header=False, sep=separator, decimal=",")
    arguments = ["fit", "bare.csv", "--no-header", "--target", "3", *FIT[2:]]
    assert "if the comma is a decimal mark, add --decimal ," in refused(capsys, *arguments)
    out, _ = run(capsys, *arguments, "--decimal", ",")
    assert "20 rows, 2 features, 2 classes" in out


@pytest.mark.parametrize(
    ("text", "decimal", "separator"),
    [
        ("0,1;0,2;yes\n0,3;0,4;no", ".", ";"),
        ("0,1;0,2\n0,3;0,4", ".", ";"),
        ("0,1\t0,2\n0,3\t0,4", ".", "\t"),
        ("a,b\n1,2", ",", None),
        ("x;y,z\nu;v,w", ".", ";"),
        ("a,b;c,d\n1,2;3,4", ".", ","),
    ],
)
def test_what_separates(text, decimal, separator):
    assert guess_separator(text, decimal) == separator


def test_words_for_gaps_among_decimal_commas(capsys):
    text = [str(value).replace(".", ",") for value, _ in SIZES]
    frame(a=["NA", *text[1:]], b=range(20)).to_csv("gaps.csv", index=False, sep=";")
    _, err = run(capsys, "fit", "gaps.csv", *FIT, "--decimal", ",")
    assert "filled in with the median of the training rows: 'a' (1)" in err
    frame(a=["oops", *text[1:]], b=range(20)).to_csv("word.csv", index=False, sep=";")
    assert "row 1 is 'oops'" in refused(capsys, "fit", "word.csv", *FIT, "--decimal", ",")


# ------------------------------------------------------------------------------------- blanks


def test_blanks_around_names_and_values(capsys):
    lines = [' a ,"b ", c , kind ']
    blanks = ["", " ", "  "]
    for k, (a, b) in enumerate(SIZES):
        kind = f'" {KINDS[k]} "' if k % 5 == 0 else f"{KINDS[k]}{blanks[k % 3]}"
        colour = f"{['red', 'blue'][k % 2]}{blanks[k % 3]}"
        lines.append(f"{a}{blanks[k % 2]}, {b} ,{colour},{kind}")
    Path("blanks.csv").write_text("\n".join(lines) + "\n")
    out, err = run(capsys, "fit", "blanks.csv", *FIT)
    assert err == "" and "2 classes (no: " in out
    saved = persistence.read_metadata("m.skops")
    assert saved["feature_names"] == ["a", "b", "c"]
    assert saved["metadata"]["categories"] == {"c": ["blue", "red"]}


def test_columns_of_text_are_found_without_the_blanks(capsys):
    rows = [f"{a},0{k % 3} ,{KINDS[k]}" for k, (a, _) in enumerate(SIZES)]
    Path("blanks.csv").write_text("\n".join(["a, plot ,kind", *rows]) + "\n")
    run(capsys, "fit", "blanks.csv", *FIT, "--categorical", "plot")
    categories = persistence.read_metadata("m.skops")["metadata"]["categories"]
    assert categories == {"plot": ["00", "01", "02"]}


def test_blanks_in_quotes_are_an_empty_cell(capsys):
    table = frame(c=[["red", "blue"][k % 2] for k in range(20)])
    table.loc[2, "kind"] = "  "
    table.to_csv("blank.csv", index=False, quoting=1)
    assert "column 'kind', row 3 is empty" in refused(capsys, "fit", "blank.csv", *FIT)


# --------------------------------------------------------------------------------- bad cells


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("oops", "correct it, empty the cell, which the model fills in, or train the model on"),
        ("1e300", "correct it, or empty the cell, which the model fills in"),
        ("inf", "correct it, or empty the cell"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.usefixtures("model")
def test_remedies_for_a_model(command, value, words, capsys):
    """Those that the command has, not those of the training."""
    frame(a=[value, *SIZES[1:, 0]]).to_csv("bad.csv", index=False)
    line = refused(capsys, command, "m.skops", "bad.csv")
    assert words in line and "leave the column out" not in line
    frame(a=[None, *SIZES[1:, 0]]).to_csv("bad.csv", index=False)
    run(capsys, command, "m.skops", "bad.csv")


@pytest.mark.parametrize("value", ["", "NA"])
def test_remedies_for_a_model_that_fills_nothing(value, capsys):
    run(capsys, "fit", "plain.csv", *FIT, "--missing", "error")
    frame(a=[value, *SIZES[1:, 0]]).to_csv("bad.csv", index=False)
    line = refused(capsys, "predict", "m.skops", "bad.csv")
    assert "put a number there, or train the model so that it fills gaps: 'owasvm fit" in line


@pytest.mark.usefixtures("model")
def test_columns_of_dates_for_a_model(capsys):
    table = frame()
    table["a"] = pandas.Timestamp("2020-01-01")
    table.to_parquet("dates.parquet")
    line = refused(capsys, "predict", "m.skops", "dates.parquet")
    assert "train the model without the column: 'owasvm fit --drop a'" in line


def test_wholly_empty_columns_are_refused_before_gaps_are_noted(capsys):
    frame(b=[None] * 20).to_csv("empty.csv", index=False)
    # Nothing but the error.
    assert "column 'b' of empty.csv is empty" in refused(capsys, "fit", "empty.csv", *FIT)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_one_class_is_what_matters(n_rows, capsys):
    """Not that every text is another one in so few rows."""
    table = frame(c=[f"c{k}" for k in range(20)], kind="yes")
    table[:n_rows].to_csv("few.csv", index=False)
    assert "has one class only, 'yes'" in refused(capsys, "fit", "few.csv", *FIT)
    Path("one.svm").write_text("1 1:1\n" * n_rows)
    line = refused(capsys, "fit", "one.svm", "--output", "m.skops")
    assert "one.svm has one class only, '1'" in line


def test_a_line_with_too_many_fields(capsys):
    text = Path("plain.csv").read_text().splitlines()
    text[3] += ",more"
    Path("ragged.csv").write_text("\n".join(text) + "\n")
    line = refused(capsys, "fit", "ragged.csv", *FIT)
    assert "ragged.csv: line 4 has 4 fields instead of 3 (separator comma)" in line
    assert "C error" not in line
    Path("open.csv").write_text('a,b,kind\n1,2,"x\n')
    assert "C error" not in refused(capsys, "fit", "open.csv", *FIT)


@pytest.mark.usefixtures("model")
def test_separators_are_for_text_files(capsys):
    frame()[["a"]].to_parquet("one.parquet")
    for arguments in (["predict", "m.skops", "one.parquet"], ["fit", "one.parquet", *FIT]):
        line = refused(capsys, *arguments)
        assert "only one column found" in line and "--separator" not in line
    frame()[["a"]].to_csv("one.csv", index=False)
    assert "--separator" in refused(capsys, "predict", "m.skops", "one.csv")


# -------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%Y-%m-%dT%H:%M:%S", "%m/%d/%y"])
def test_dates_are_noted(form, capsys):
    days = pandas.date_range("2026-01-28", periods=10).strftime(form).tolist()
    frame(day=[*days, *days]).to_csv("dates.csv", index=False)
    _, err = run(capsys, "fit", "dates.csv", *FIT)
    assert "column 'day' holds dates, 10 categories here; turn dates into numbers" in err
    assert "--drop 'day'" in err and err.count("\n") == 1
    frame(day=pandas.date_range("2026-01-28", periods=20).strftime(form)).to_csv("dates.csv")
    line = refused(capsys, "fit", "dates.csv", *FIT, "--drop", "Unnamed: 0")
    assert "has another date in every row; turn dates into numbers" in line


def test_dates_with_dots(capsys):
    days = pandas.date_range("2026-01-28", periods=20).strftime("%d.%m.%Y")
    frame(day=days).to_csv("dates.csv", index=False)
    line = refused(capsys, "fit", "dates.csv", *FIT)
    assert "is '28.01.2026', not a number; turn dates into numbers beforehand" in line


@pytest.mark.parametrize("text", ["2026-13-01", "1-2-3", "12/2026", "red", "10.0.0.1", "2026-01"])
def test_what_is_no_date(text):
    assert not are_dates([text])


# ------------------------------------------------------------------------------ labels of a file


@pytest.mark.usefixtures("model")
def test_columns_that_hold_other_things_than_labels(capsys):
    frame(n=np.arange(20) + 7).to_csv("numbers.csv", index=False)
    for name, found in (("a", f"'{SIZES[0, 0]}', '{SIZES[1, 0]}'"), ("n", "'7', '8', '9' and 17")):
        line = refused(
            capsys, "evaluate", "m.skops", "numbers.csv", "--target", name, with_notes=True
        )
        assert (
            f"the labels of the model, 'no', 'yes', are not what stands in column {name!r}" in line
        )
        assert found in line and "has no labels" not in line
    frame(kind=SIZES[:, 0]).to_csv("real.csv", index=False)
    _, err = run(capsys, "predict", "m.skops", "real.csv")
    assert "labels are not used: the labels of real.csv must be classes" in err


def test_labels_without_probability_are_named(capsys):
    run(capsys, "fit", "plain.csv", *FIT, "--proba")
    frame(kind=["maybe", *KINDS[1:]]).to_csv("new.csv", index=False)
    for options in ([], ["--json"]):
        _, err = run(capsys, "evaluate", "m.skops", "new.csv", *options)
        assert "there is no log loss: labels the model has never seen" in err
        assert "'maybe' in 1 row; " in err
    _, err = run(capsys, "evaluate", "m.skops", "plain.csv")
    assert err == ""


@pytest.mark.usefixtures("model")
def test_figures_are_named_for_programs(capsys):
    pytest.importorskip("matplotlib")
    arguments = ["evaluate", "m.skops", "plain.csv", "--json"]
    assert json.loads(run(capsys, *arguments)[0])["figure"] is None
    assert json.loads(run(capsys, *arguments, "--plot", "f.svg")[0])["figure"] == "f.svg"


@pytest.mark.usefixtures("model")
def test_standard_input_has_a_name():
    def pipe(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "owasvm.cli", *arguments],
            input=Path("plain.csv").read_text(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert pipe("evaluate", "m.skops", "-").stdout.startswith("data              standard input: ")
    done = pipe("fit", "-", "--target", "kinds", "--output", "n.skops")
    assert done.stderr.startswith("owasvm: error: standard input has no column 'kinds'")


def test_tables_are_not_made_beside_standard_input():
    """JSON that is redirected from a file looks like a file called /dev/stdin."""
    Path("rows.json").write_text('[{"a": 1}]')
    with Path("rows.json").open() as stream:
        done = subprocess.run(
            [sys.executable, "-m", "owasvm.cli", "fit", "-", *map(str, FIT)],
            stdin=stream,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 2 and "to_csv('table.csv', index=False)" in done.stderr


def test_numbers_of_things_are_grammatical(capsys):
    run(capsys, "fit", "plain.csv", *FIT)
    frame()[:1].to_csv("one.csv", index=False)
    out, _ = run(capsys, "predict", "m.skops", "one.csv", "--output", "p.csv")
    assert "p.csv: 1 row\n" in out and " of 1 row)" in out
    out, _ = run(capsys, "evaluate", "m.skops", "one.csv")
    assert "one.csv: 1 row\n" in out and " of 1 row)" in out
    out, _ = run(capsys, "fit", "plain.csv", *FIT, "--drop", "b")
    assert "20 rows, 1 feature, 2 classes" in out


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_where_compiled_functions_are(is_elsewhere, capsys, monkeypatch, tmp_path):
    """Every package has a folder of its own: the one above them is named."""
    package = Path(owasvm.__file__).parent
    folder = tmp_path / "losses_a1b2" if is_elsewhere else package / "losses" / "__pycache__"
    monkeypatch.setattr("owasvm.warmup.warm_up", lambda: iter(()))
    monkeypatch.setattr("owasvm.warmup.find_cache", lambda: str(folder))
    out, _ = run(capsys, "warmup")
    above = tmp_path if is_elsewhere else package
    assert out.endswith(f"the compiled functions are in folders below {above}\n")
