"""``owasvm fit`` and ``owasvm predict``: good runs, and bad input in one line."""

import argparse
import bz2
import gzip
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import owasvm
from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC, cli, persistence
from owasvm.cli import _options, main
from owasvm.cli._tables import guess_separator
from owasvm.kernels import KERNELS
from owasvm.solvers import SOLVERS
from owasvm.weights import FAMILIES
from tests.commands import refused, run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skops")

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def frame(n_classes=2):
    """Versicolor and virginica, or all three."""
    table = pandas.DataFrame(IRIS.data, columns=NAMES)
    table["kind"] = [str(IRIS.target_names[kind]) for kind in IRIS.target]
    return table if n_classes == 3 else table[50:].reset_index(drop=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with the data of two and three classes."""
    monkeypatch.chdir(tmp_path)
    frame().to_csv("two.csv", index=False)
    frame(3).to_csv("three.csv", index=False)
    return tmp_path


def figures(out):
    """The lines of a summary by their names."""
    return {line[:17].strip(): line[18:] for line in out.splitlines()}


# ---------------------------------------------------------------------------------------- fit


def test_summary_tells_what_the_estimator_says(capsys):
    out, err = run(capsys, "fit", "two.csv", "--target", "kind", "--output", "m.skops", "--C", 3)
    model = make_pipeline(StandardScaler(), OWASVC(C=3, random_state=0))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy = 100 * cross_val_score(model, frame()[NAMES], frame()["kind"], cv=folds)
    clf = model.fit(frame()[NAMES], frame()["kind"])[-1]
    lines = figures(out)
    assert err == ""
    assert lines["data"] == (
        "two.csv: 100 rows, 4 features, 2 classes (versicolor: 50, virginica: 50)"
    )
    assert lines["model"] == (
        f"OWASVC, C 3, weights basic, alpha 0.6, kernel rbf, gamma {clf.gamma_:.6g}, "
        "scaling standard"
    )
    assert lines["accuracy"] == (
        f"{accuracy.mean():.2f} % (std {accuracy.std():.2f}, 5-fold cross-validation)"
    )
    assert lines["objective"] == f"{clf.objective_:.8g}"
    assert lines["lower bound"] == f"{clf.lower_bound_:.8g}"
    assert float(lines["gap"]) <= 1e-6
    assert lines["status"] == "optimal"
    assert lines["support vectors"].startswith(f"{clf.support_.size} of 100 (versicolor: ")
    assert lines["model file"] == "m.skops"
    saved = persistence.load("m.skops")
    np.testing.assert_array_equal(
        saved.decision_function(frame()[NAMES]), model.decision_function(frame()[NAMES])
    )
    card = persistence.read_metadata("m.skops")
    assert card["feature_names"] == NAMES and card["metadata"]["target"] == "kind"
    np.testing.assert_allclose(
        np.mean(card["metadata"]["cross_validation"]["accuracy"]), accuracy.mean() / 100
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--sigma", "2", "--scale", "none"], OWASVC(gamma=0.125)),
        (
            ["--weights", "superquantile", "--alpha", "0.7", "--kernel", "poly", "--degree", "2"],
            make_pipeline(
                StandardScaler(),
                OWASVC(weights="superquantile", alpha=0.7, kernel="poly", degree=2),
            ),
        ),
        (
            ["--model", "linear", "--tol", "1e-8", "--class-weight", "balanced"],
            make_pipeline(StandardScaler(), LinearOWASVC(tol=1e-8, class_weight="balanced")),
        ),
        (
            ["--model", "two-step", "--weights", "trimmed", "--alpha", "0.1", "--gamma", "auto"],
            make_pipeline(
                StandardScaler(), TwoStepOWASVC(weights="trimmed", alpha=0.1, gamma="auto")
            ),
        ),
        (
            ["--class-weight", "virginica=3", "--kernel", "poly", "--coef0", "1"],
            make_pipeline(
                StandardScaler(),
                OWASVC(
                    class_weight={"versicolor": 1.0, "virginica": 3.0},
                    kernel="poly",
                    coef0=1.0,
                ),
            ),
        ),
        (["--solver", "newton", "--scale", "none", "--mip-gap", "0.1"], OWASVC(solver="newton")),
        (["--loss", "squared_hinge", "--scale", "none"], OWASVC(loss="squared_hinge")),
        (["--ranks", "class", "--scale", "none"], OWASVC(ranks="class")),
    ],
)
def test_options_reach_the_estimator(options, expected, capsys):
    out, err = run(
        capsys, "fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", 0, *options
    )
    assert err == ""
    assert figures(out)["accuracy"] == "not measured (--cv 0)"
    expected.fit(frame()[NAMES], frame()["kind"].to_numpy().astype(str))
    np.testing.assert_allclose(
        persistence.load("m.skops").decision_function(frame()[NAMES]),
        expected.decision_function(frame()[NAMES]),
        rtol=1e-9,
        atol=1e-9,
    )


def test_three_classes(capsys):
    out, _ = run(capsys, "fit", "three.csv", "--target", "kind", "--output", "m.skops")
    lines = figures(out)
    assert lines["objective"].startswith("setosa: ") and "virginica: " in lines["gap"]
    assert lines["status"] == "optimal (each class against the rest)"
    out, _ = run(
        capsys,
        "fit",
        "three.csv",
        "--target",
        "kind",
        "--output",
        "m.skops",
        "--model",
        "two-step",
    )
    assert figures(out)["lower bound"].startswith("none")
    assert "gap" not in figures(out)


def test_many_classes_stay_on_one_line(capsys):
    table = pandas.DataFrame({"x": np.arange(90.0), "y": np.arange(90) // 10})
    table.to_csv("many.csv", index=False)
    out, _ = run(capsys, "fit", "many.csv", "--target", "y", "--output", "m.skops", "--cv", 0)
    lines = figures(out)
    assert lines["data"].endswith("9 classes")
    assert " to " in lines["objective"] and lines["objective"].endswith("(9 classes)")


def test_early_stop_is_one_plain_line(capsys):
    arguments = ["fit", "two.csv", "--target", "kind", "--output", "m.skops"]
    out, err = run(capsys, *arguments, "--time-limit", "1e-9")
    first, second = err.splitlines()
    assert first.startswith("owasvm: warning: 5 warnings in the cross-validation; the first: ")
    assert second.startswith("owasvm: warning: OWASVC stopped before its target")
    assert "ConvergenceWarning" not in err
    assert figures(out)["status"] == "time_limit"


def test_same_seed_same_figures(capsys):
    arguments = ["fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", 3]
    first = figures(run(capsys, *arguments, "--seed", 4)[0])["accuracy"]
    assert first == figures(run(capsys, *arguments, "--seed", 4)[0])["accuracy"]
    assert "3-fold" in first


# -------------------------------------------------------------------------------- data formats


def write_formats():
    """The same two classes in all formats, file names with the options they need."""
    table = frame()
    table.to_csv("semicolon.csv", sep=";", index=False)
    table.to_csv("tab.tsv", sep="\t", index=False)
    table.to_csv("bar", sep="|", index=False)
    table.to_csv("german.csv", sep=";", decimal=",", index=False)
    table.to_csv("zip.csv.gz", index=False)
    table.to_csv("mark.csv", index=False, encoding="utf-8-sig")
    table.to_parquet("table.parquet")
    table.to_parquet("table")
    table.astype({name: "Float64" for name in NAMES}).to_parquet("nullable.parquet")
    spaced = table.rename(columns=lambda name: name.replace(" ", "_"))
    Path("spaces.txt").write_text(spaced.to_string(index=False))
    return {
        "semicolon.csv": [],
        "tab.tsv": [],
        "bar": [],
        "german.csv": ["--decimal", ","],
        "zip.csv.gz": [],
        "mark.csv": [],
        "table.parquet": [],
        "table": [],
        "nullable.parquet": [],
        "spaces.txt": [],
    }


def test_all_table_formats_give_the_same_model(capsys):
    arguments = ["--target", "kind", "--output", "m.skops", "--cv", "0"]
    run(capsys, "fit", "two.csv", *arguments)
    expected = persistence.load("m.skops")[-1]
    for name, options in write_formats().items():
        run(capsys, "fit", name, *arguments, *options)
        found = persistence.load("m.skops")[-1]
        np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_, err_msg=name)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("suffix", ["", ".svm", ".gz", ".svmlight.bz2"])
def test_svmlight(zero_based, suffix, capsys):
    X, y = IRIS.data[50:], np.where(IRIS.target[50:] == 1, -1, 1)
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=zero_based)
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(f"x{suffix}").suffix, bytes)
    Path(f"data{suffix}").write_bytes(compress(stream.getvalue()))
    out, err = run(capsys, "fit", f"data{suffix}", "--output", "m.skops", "--sigma", 1)
    assert err == "" and "100 rows, 4 features" in out and "scaling none" in out
    expected = OWASVC(gamma=0.5).fit(X, y)
    np.testing.assert_allclose(
        persistence.load("m.skops").decision_function(X), expected.decision_function(X), rtol=1e-6
    )
    out, err = run(capsys, "predict", "m.skops", f"data{suffix}", "--output", "p.csv")
    assert err == "" and figures(out)["accuracy"].startswith(f"{100 * expected.score(X, y):.2f} %")


def test_svmlight_indices_mean_the_same_at_prediction(capsys):
    """Whether the first feature is 0 or 1 is decided by the training data alone."""
    Path("train").write_text("1 0:1 1:2\n-1 0:-1 1:-2\n" * 5)
    Path("test").write_text("1 1:2\n-1 1:-2\n")
    run(capsys, "fit", "train", "--output", "m.skops")
    run(capsys, "predict", "m.skops", "test", "--decision", "--output", "p.csv")
    model = persistence.load("m.skops")
    np.testing.assert_allclose(
        pandas.read_csv("p.csv")["decision"], model.decision_function([[0.0, 2.0], [0.0, -2.0]])
    )
    Path("zero").write_text("1 0:1\n")
    Path("one").write_text("1 1:1 2:1\n-1 1:-1 2:-1\n" * 5)
    run(capsys, "fit", "one", "--output", "m.skops")
    assert "counts them from 1" in refused(capsys, "predict", "m.skops", "zero")


def test_large_sparse_file_stays_sparse(capsys, monkeypatch):
    monkeypatch.setattr("owasvm.cli._svmlight._DENSE_ENTRIES", 100)
    monkeypatch.setattr("owasvm.cli._application._BLOCK_ENTRIES", 100)
    dump_svmlight_file(IRIS.data[50:], IRIS.target[50:], "data", zero_based=False)
    arguments = ["fit", "data", "--output", "m.skops", "--model", "linear", "--cv", 2]
    assert "--scale maxabs" in refused(capsys, *arguments, "--scale", "standard")
    run(capsys, *arguments, "--scale", "maxabs")
    sparse_out, _ = run(capsys, "predict", "m.skops", "data", "--output", "sparse.csv")
    monkeypatch.setattr("owasvm.cli._svmlight._DENSE_ENTRIES", 10**6)
    run(capsys, *arguments, "--scale", "standard")
    monkeypatch.setattr("owasvm.cli._svmlight._DENSE_ENTRIES", 100)
    dense_out, err = run(capsys, "predict", "m.skops", "data", "--output", "dense.csv")
    assert err == ""
    for out in (sparse_out, dense_out):
        assert float(figures(out)["accuracy"].split()[0]) > 90.0


def test_columns_without_names(capsys):
    table = frame()
    table.to_csv("bare.csv", index=False, header=False)
    arguments = ["--output", "m.skops", "--cv", 0]
    err = refused(capsys, "fit", "bare.csv", "--target", "5", *arguments)
    assert "has no column '5'" in err
    table[NAMES].assign(kind=np.arange(100) % 2).to_csv("numbers.csv", index=False, header=False)
    assert "--no-header" in refused(capsys, "fit", "numbers.csv", "--target", "5", *arguments)
    run(capsys, "fit", "bare.csv", "--no-header", "--target", "5", *arguments)
    out, _ = run(capsys, "predict", "m.skops", "bare.csv", "--no-header", "--output", "p.csv")
    assert "accuracy" in out


def test_labels_keep_their_kind(capsys):
    table = frame()
    for labels, expected in (
        (np.arange(100) % 2 + 7, [7, 8]),
        (np.where(np.arange(100) % 2, 2.0, 1.0), [1, 2]),
        (np.arange(100) % 2 == 0, ["False", "True"]),
        (np.where(np.arange(100) % 2, "NA", "None"), ["NA", "None"]),
    ):
        table["kind"] = labels
        for name, write in (("t.csv", table.to_csv), ("t.parquet", table.to_parquet)):
            write(name, index=False)
            run(capsys, "fit", name, "--target", "kind", "--output", "m.skops", "--cv", 0)
            assert persistence.load("m.skops").classes_.tolist() == expected


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2", ","),
        ("a;b\n1,5;2,5", ";"),
        ("a\tb\n1\t2", "\t"),
        ("a|b|c\n1|2|3", "|"),
        ("a b\n1 2", r"\s+"),
        ("first name,b c\n1,2", ","),
        ('"a;x",b\n1,2', ","),
        ("a,b\n1,2\n1,2,3", ","),
        ("one\n1\n2", None),
        ("", None),
    ],
)
def test_guess_separator(text, separator):
    assert guess_separator(text) == separator


# ------------------------------------------------------------------------------------- predict


@pytest.fixture
def model(capsys):
    run(capsys, "fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", 0)
    return persistence.load("m.skops")


def test_predictions_are_those_of_the_model(model, capsys):
    out, err = run(capsys, "predict", "m.skops", "two.csv", "--decision", "--output", "p.csv")
    written = pandas.read_csv("p.csv")
    assert list(written.columns) == ["prediction", "decision"]
    assert written["prediction"].tolist() == model.predict(frame()[NAMES]).tolist()
    np.testing.assert_array_equal(written["decision"], model.decision_function(frame()[NAMES]))
    hits = int((written["prediction"] == frame()["kind"]).sum())
    assert figures(out) == {
        "predictions": "p.csv: 100 rows",
        "accuracy": f"{hits:.2f} % ({hits} of 100 rows)",
    }
    assert err == ""


def test_standard_output_holds_predictions_only(model, capsys):
    out, err = run(capsys, "predict", "m.skops", "two.csv")
    assert out.splitlines() == ["prediction", *model.predict(frame()[NAMES])]
    assert err.startswith("accuracy ") and err.count("\n") == 1


def test_parquet_output_of_three_classes(capsys):
    run(capsys, "fit", "three.csv", "--target", "kind", "--output", "m.skops", "--cv", 0)
    run(capsys, "predict", "m.skops", "three.csv", "--decision", "--output", "p.parquet")
    written = pandas.read_parquet("p.parquet")
    kinds = ["setosa", "versicolor", "virginica"]
    assert list(written.columns) == ["prediction", *(f"decision {kind}" for kind in kinds)]
    best = written[written.columns[1:]].to_numpy().argmax(axis=1)
    assert written["prediction"].tolist() == [kinds[column] for column in best]


def test_columns_are_matched_by_name(model, capsys):
    table = frame()[["kind", *NAMES[::-1]]]
    table.insert(2, "comment", "text")
    table.to_csv("other.csv", index=False)
    out, err = run(capsys, "predict", "m.skops", "other.csv", "--output", "p.csv")
    assert err == "owasvm: note: columns the model does not know are ignored: 'comment'\n"
    assert (
        pandas.read_csv("p.csv")["prediction"].tolist() == model.predict(frame()[NAMES]).tolist()
    )
    assert "accuracy" in out


@pytest.mark.usefixtures("model")
def test_without_labels(capsys):
    frame()[NAMES].to_csv("new.csv", index=False)
    out, err = run(capsys, "predict", "m.skops", "new.csv", "--output", "p.csv")
    assert figures(out) == {"predictions": "p.csv: 100 rows"} and err == ""
    table = frame()
    table.loc[10:, "kind"] = ""
    table.to_csv("new.csv", index=False)
    out, _ = run(capsys, "predict", "m.skops", "new.csv", "--output", "p.csv")
    assert figures(out)["accuracy"].endswith(" of 10 rows; 90 more have no label)")


@pytest.mark.usefixtures("model")
def test_from_columns_with_names_to_columns_without(capsys):
    dump_svmlight_file(IRIS.data[50:], np.zeros(100), "data", zero_based=False)
    out, err = run(capsys, "predict", "m.skops", "data", "--output", "p.csv")
    assert "has no column names" in err and err.count("\n") == 1
    assert "accuracy" not in out
    run(capsys, "predict", "m.skops", "two.csv", "--output", "q.csv")
    assert Path("p.csv").read_text() == Path("q.csv").read_text()
    dump_svmlight_file(IRIS.data[50:], IRIS.target[50:], "data", zero_based=False)
    run(capsys, "fit", "data", "--output", "n.skops", "--cv", 0)
    frame()[NAMES].to_csv("plain.csv", index=False)
    _, err = run(capsys, "predict", "n.skops", "plain.csv", "--output", "p.csv")
    assert "taken in their order" in err
    assert "needs 4 features" in refused(capsys, "predict", "n.skops", "two.csv")


def test_model_saved_by_hand(capsys):
    model = OWASVC().fit(frame()[NAMES], frame()["kind"].to_numpy().astype(str))
    persistence.save(model, "m.skops")
    out, err = run(capsys, "predict", "m.skops", "two.csv", "--output", "p.csv")
    assert "'kind'" in err and "accuracy" not in out
    assert (
        pandas.read_csv("p.csv")["prediction"].tolist() == model.predict(frame()[NAMES]).tolist()
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop(columns="petal width"), "lacks columns .* 'petal width'"),
        (lambda table: table.rename(columns=str.upper), "lacks columns"),
        (lambda table: table[["kind"]], "only one column found"),
        (
            lambda table: table.astype({"petal width": object}).replace(1.4, "wide"),
            "'wide', not a num",
        ),
        (lambda table: table.replace(1.4, np.inf), "row 1 is .*inf"),
        (lambda table: table[:0], "no rows"),
    ],
)
@pytest.mark.usefixtures("model")
def test_data_that_does_not_fit_the_model(change, words, capsys):
    change(frame()).to_csv("new.csv", index=False)
    err = refused(capsys, "predict", "m.skops", "new.csv", "--output", "p.csv")
    assert re.search(words, err)


@pytest.mark.usefixtures("model")
def test_what_predict_refuses(capsys):
    Path("text.skops").write_text("I am no model")
    Path("empty.skops").touch()
    for name in ("text.skops", "empty.skops", "two.csv"):
        assert "no model file" in refused(capsys, "predict", name, "two.csv", "--output", "p.csv")
    assert "there is no model file" in refused(capsys, "predict", "no.skops", "two.csv")
    assert "there is no file" in refused(capsys, "predict", "m.skops", "no.csv")
    err = refused(capsys, "predict", "m.skops", "two.csv", "--output", "no/p.csv")
    assert "does not exist" in err
    assert "not a file" in refused(capsys, "predict", "m.skops", "two.csv", "--output", ".")
    for name in ("two.csv", "m.skops"):
        assert "read by this" in refused(capsys, "predict", "m.skops", "two.csv", "--output", name)
    Path("wide").write_text("1 1:1 9:1\n")
    assert "has 9 features" in refused(capsys, "predict", "m.skops", "wide")


# ----------------------------------------------------------------------------------- bad input


def write_bad_files():
    """Files with one fault each, and what the line says about it."""
    lines = Path("two.csv").read_text().splitlines()
    header, rows = lines[0], lines[1:]

    def put(name, *content):
        Path(name).write_text("\n".join(content) + "\n")

    put("text.csv", header, *rows[:2], "a little,3.2,4.7,1.4,virginica", *rows[3:])
    put("nan.csv", header, *rows[:4], "7.0,nan,4.7,1.4,virginica", *rows[5:])
    put("inf.csv", header, "7.0,3.2,-inf,1.4,virginica", *rows[1:])
    put("gap.csv", header, *rows[:3], "7.0,3.2,4.7,,virginica", *rows[4:])
    put("no_label.csv", header, *rows[:5], "7.0,3.2,4.7,1.4,", *rows[6:])
    put("one_class.csv", header, *(row for row in rows if "virginica" in row))
    put("ragged.csv", header, *rows[:3], "7.0,3.2", *rows[4:])
    put("longer.csv", header, *rows[:3], "7.0,3.2,1,2,virginica,4", *rows[4:])
    put("all_longer.csv", header, *(f"{row},1" for row in rows))
    put("header.csv", header)
    put("single.csv", "kind", *(row.split(",")[-1] for row in rows))
    put("semicolon.csv", *(line.replace(",", ";") for line in lines))
    put("comma_decimal.csv", "a;kind", *(f"{k},5;{k % 2}" for k in range(20)))
    put("twice.csv", header.replace("sepal width", "sepal length"), *rows)
    put("index.csv", f",{header}", *(f"{k},{row}" for k, row in enumerate(rows)))
    put("few.csv", header, *rows[:50], *rows[-3:])
    put("real.csv", header, *(row.rpartition(",")[0] + f",{k}.5" for k, row in enumerate(rows)))
    put("bad.svm", "1 1:1", "-1 1:x")
    put("nan.svm", "1 1:1", "-1 1:2 3:nan")
    put("labels.svm", "1", "-1")
    put("disguised.csv", "1 1:1", "-1 1:2")
    Path("empty.csv").touch()
    Path("blank.csv").write_text("\n \n\n")
    Path("latin.csv").write_bytes("größe,kind\n1,a\n".encode("latin-1"))
    Path("text.parquet").write_text("no parquet")
    Path("broken.csv.gz").write_bytes(b"no gzip")
    Path("cut.csv.gz").write_bytes(gzip.compress(Path("two.csv").read_bytes())[:300])
    table = frame()
    table["when"] = pandas.Timestamp("2020-01-01")
    table.to_parquet("date.parquet")


BAD_FILES = [
    ("nowhere.csv", "there is no file nowhere.csv"),
    (".", ". is a folder, not a data file"),
    ("text.csv", "column 'sepal length', row 3 is 'a little', not a number"),
    ("inf.csv", "column 'petal length', row 1 is -inf, not a finite number"),
    ("no_label.csv", "column 'kind', row 6 is empty; every row needs a label"),
    ("one_class.csv", "has one class only, 'virginica'"),
    ("ragged.csv", "column 'kind', row 4 is empty"),
    ("longer.csv", "longer.csv: line 5 has 6 fields instead of 5 (separator comma)"),
    ("all_longer.csv", "more values than the first line has names"),
    ("header.csv", "names columns, but has no rows"),
    ("single.csv", "only one column found in single.csv, 'kind'"),
    ("comma_decimal.csv", "column 'a', row 1 is '0,5', not a number; if the comma"),
    ("twice.csv", "several columns called 'sepal length'"),
    ("index.csv", "has no name (a row index?); name it, or leave it out: --drop 'Unnamed: 0'"),
    ("few.csv", "class 'virginica' of column 'kind' has 3 of 53 rows, too few for 5 folds"),
    ("real.csv", "0.5 is a number with a fraction"),
    ("disguised.csv", "--format svmlight"),
    ("empty.csv", "empty.csv is empty"),
    ("blank.csv", "blank.csv is empty"),
    ("latin.csv", "is not UTF-8 text"),
    ("text.parquet", "is no Parquet file"),
    ("broken.csv.gz", "cannot read broken.csv.gz"),
    ("cut.csv.gz", "cannot read cut.csv.gz"),
    ("date.parquet", "column 'when' holds datetime64"),
]


@pytest.mark.parametrize(("name", "words"), BAD_FILES)
def test_bad_file(name, words, capsys):
    write_bad_files()
    err = refused(capsys, "fit", name, "--target", "kind", "--output", "m.skops")
    assert words in err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nan.csv", "column 'sepal width', row 5 is 'nan', not a number; have it filled in"),
        ("gap.csv", "column 'petal width', row 4 is empty"),
    ],
)
def test_missing_values_are_an_error_on_request(name, words, capsys):
    write_bad_files()
    arguments = ["fit", name, "--target", "kind", "--output", "m.skops", "--cv", 0]
    err = refused(capsys, *arguments, "--missing", "error")
    assert words in err and "--missing impute" in err
    run(capsys, *arguments, "--missing", "impute")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bad.svm", "is no svmlight file"),
        ("nan.svm", "feature 3 in row 2 is nan"),
        ("labels.svm", "has no features"),
        ("text.csv", "--target is missing"),
    ],
)
def test_bad_file_without_target(name, words, capsys):
    write_bad_files()
    assert words in refused(capsys, "fit", name, "--output", "m.skops")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "knd"], "has no column 'knd' (--target); did you mean 'kind'?"),
        (["--drop", "id"], "has no column 'id' (--drop)"),
        ([option for name in NAMES for option in ("--drop", name)], "no features beside"),
        (["--separator", ";"], "--separator comma"),
        (["--separator", "xy"], "must be one character"),
        (["--kernel", "rfb"], "--kernel 'rfb' is unknown; did you mean 'rbf'?"),
        (["--kernel", "precomputed"], "'precomputed' is unknown"),
        (["--weights", "basics"], "--weights 'basics' is unknown; did you mean 'basic'?"),
        (["--solver", "newtn"], "did you mean 'newton'?"),
        (["--loss", "squared"], "did you mean 'squared_hinge'?"),
        (["--ranks", "classes"], "did you mean 'class'?"),
        (["--alpha", "-1"], "alpha=-1.0 is out of range"),
        (["--weights", "superquantile", "--alpha", "1.5"], "0 < alpha <= 1"),
        (["--C", "0"], "argument --C: must be above 0, got 0"),
        (["--C", "-2"], "argument --C: must be above 0, got -2"),
        (["--C", "nan"], "argument --C: must be a finite number, got 'nan'"),
        (["--C", "much"], "argument --C: must be a finite number, got 'much'"),
        (["--gamma", "1", "--sigma", "1"], "not allowed with argument"),
        (["--gamma", "-1"], "must be 0 or above"),
        (["--sigma", "1", "--kernel", "poly"], "--sigma is the width of --kernel rbf"),
        (["--kernel", "linear", "--gamma", "0.1,1"], "--gamma has no effect on --kernel linear"),
        (["--kernel", "linear", "--sigma", "1"], "the kernel is linear"),
        (["--degree", "2"], "--degree has no effect on --kernel rbf; leave it out, or take"),
        (["--coef0", "1"], "--coef0 has no effect on --kernel rbf; leave it out, or take"),
        (["--kernel", "sigmoid", "--degree", "2"], "take --kernel poly"),
        (
            ["--model", "two-step", "--kernel", "linear", "--gamma", "1"],
            "--gamma has no effect on --kernel linear",
        ),
        (["--drop", "kind"], "--drop 'kind' is the column of --target"),
        (["--id", "sepal width", "--drop", "sepal width"], "is the column of --id, which is no"),
        (["--output", "m.pkl"], "--output m.pkl: a model file is written, no .pkl; end it in"),
        (["--output", "m.onnx"], "end it in .skops"),
        (["--model", "linear", "--kernel", "rbf"], "--kernel does not apply to --model linear"),
        (["--model", "linear", "--sigma", "1"], "--sigma does not apply to --model linear"),
        (["--model", "two-step", "--time-limit", "1"], "--time-limit does not apply"),
        (["--model", "two-step", "--loss", "hinge"], "--loss does not apply"),
        (["--weights", "trimmed", "--alpha", "0.2", "--loss", "squared_hinge"], "never fall"),
        (["--class-weight", "virginica:2"], "must be 'balanced' or look like yes=2,no=1"),
        (["--class-weight", "rose=2"], "names the class 'rose'; there is 'versicolor'"),
        (["--class-weight", "virginica=0,versicolor=0"], "at least 2 classes"),
        (["--cv", "1"], "--cv 1 leaves nothing to train on"),
        (["--cv", "-3"], "must be a whole number"),
        (["--cv", "60"], "too few for 60 folds"),
        (["--seed", "4294967296"], "argument --seed: must be below 2^32"),
        (["--scale", "robust"], "invalid choice: 'robust'"),
        (["--weights", "trigonometric", "--solver", "newton"], "weights"),
        (["--output", "no/such/folder/m.skops"], "does not exist; create it first"),
        (["--output", "/dev/null"], "not a file"),
        (["--output", "two.csv"], "it is read by this command as well"),
        (
            ["--outptu", "m"],
            "no option --outptu; did you mean --output? (see 'owasvm fit --help')",
        ),
    ],
)
def test_bad_option(options, words, capsys):
    arguments = ["--target", "kind", "--output", "m.skops"]
    assert words in refused(capsys, "fit", "two.csv", *arguments, *options)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc")
def test_folder_that_takes_no_files(capsys):
    err = refused(capsys, "fit", "two.csv", "--target", "kind", "--output", "/proc/m.skops")
    assert "the folder /proc cannot be written" in err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_folder_without_permission(capsys):
    Path("locked").mkdir(mode=0o500)
    err = refused(
        capsys, "fit", "two.csv", "--target", "kind", "--output", "locked/m.skops", "--cv", 0
    )
    assert "cannot be written" in err


def test_svmlight_has_no_columns_to_name(capsys):
    Path("data").write_text("1 1:1\n-1 1:2\n" * 5)
    assert "--target" in refused(capsys, "fit", "data", "--target", "a", "--output", "m.skops")
    assert "--drop" in refused(capsys, "fit", "data", "--drop", "a", "--output", "m.skops")


def test_failed_fit_keeps_the_old_model(capsys):
    run(capsys, "fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", 0)
    write_bad_files()
    refused(capsys, "fit", "text.csv", "--target", "kind", "--output", "m.skops")


def test_full_disk_leaves_nothing(capsys, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    err = refused(capsys, "fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", 0)
    assert "No space left on device" in err


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_missing_package_names_the_extra(missing, capsys, monkeypatch):
    frame().to_parquet("two.parquet")
    monkeypatch.setitem(sys.modules, missing, None)
    err = refused(capsys, "fit", "two.parquet", "--target", "kind", "--output", "m.skops")
    assert f"'owasvm fit' needs {missing}" in err and "pip install 'owasvm[cli]'" in err


# ----------------------------------------------------------------------------- the command itself


def test_help_lists_know_every_name_of_the_library():
    assert set(_options.WEIGHTS) == set(FAMILIES)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    _options.add_model_options(parser)
    # Lines may break after a hyphen.
    described = " ".join(parser.format_help().split()).replace("- ", "-")
    assert all(re.search(rf"\b{solver}\b", described) for solver in SOLVERS)
    assert set(_options.KERNELS) == set(KERNELS) - {"precomputed"}
    assert [getattr(owasvm, name) for name in _options.MODELS.values()] == [
        OWASVC,
        LinearOWASVC,
        TwoStepOWASVC,
    ]


@pytest.mark.parametrize("command", ["fit", "predict", "datasets", "solvers"])
def test_help_of_a_command(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: owasvm {command}")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert command == "solvers" or f"\n  owasvm {command}" in out.partition("examples:")[2]


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "owasvm: interrupted\n"),
        (cli.UsageError("two\n lines"), 2, "owasvm: error: two lines\n"),
        (MemoryError("Unable to allocate"), 2, "owasvm: error: not enough memory. Unable to"),
        (PermissionError(13, "Permission denied", "x"), 2, "owasvm: error: [Errno 13] Permission"),
    ],
)
def test_how_a_command_ends(error, status, line, capsys, monkeypatch):
    def fail(_):
        raise error

    monkeypatch.setattr("owasvm.cli.solvers.run", fail)
    assert main(["solvers"]) == status
    err = capsys.readouterr().err
    assert err.startswith(line) and err.count("\n") == 1


def test_own_mistakes_are_not_hidden(monkeypatch):
    def fail(_: argparse.Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("owasvm.cli.solvers.run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["solvers"])


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "owasvm.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_from_a_shell():
    """Real processes: fit, predict, bad input."""
    done = command("fit", "two.csv", "--target", "kind", "--output", "m.skops", "--cv", "2")
    assert done.returncode == 0 and done.stderr == "" and "optimal" in done.stdout
    done = command("predict", "m.skops", "two.csv", "--output", "p.csv")
    assert done.returncode == 0 and done.stderr == "" and "accuracy" in done.stdout
    assert len(Path("p.csv").read_text().splitlines()) == 101
    done = command("fit", "two.csv", "--target", "no", "--output", "n.skops")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert not Path("n.skops").exists()


def test_help_is_quick_and_light():
    """No heavy import stands between the user and the manual."""
    code = (
        "import sys\nfrom owasvm.cli import main\n"
        "try:\n    main(['fit', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'sklearn', 'pandas', 'numba', 'pooch', 'skops'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("model")
def test_reader_that_leaves_early():
    """``owasvm predict ... | head -1`` ends without a complaint."""
    pandas.concat([frame()] * 300).to_csv("long.csv", index=False)
    process = subprocess.Popen(
        [sys.executable, "-m", "owasvm.cli", "predict", "m.skops", "long.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "prediction\n"
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert "Traceback" not in err and "Broken" not in err
