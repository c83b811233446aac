"""A whole job on the command line: text, gaps, ids, three classes; choosing; probabilities."""

import argparse
import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from owasvm import OWASVC, LinearOWASVC, persistence
from owasvm.cli import _progress
from owasvm.cli._notes import Notes
from owasvm.cli._training import Training
from tests import commands
from tests.commands import run

pandas = pytest.importorskip("pandas")
pytest.importorskip("skops")

IRIS = load_iris()
NUMBERS = ["sepal length", "sepal width", "petal length", "petal width"]


def frame():
    """Three kinds, with ids, a column of text and gaps in both."""
    table = pandas.DataFrame(IRIS.data, columns=NUMBERS)
    table.insert(0, "plant", [f"p{k:03d}" for k in range(150)])
    shades = np.random.default_rng(0).choice(["pale", "dark", "mixed"], size=150)
    table["shade"] = np.where(IRIS.target == 2, "violet", shades).astype(object)
    table["kind"] = [str(IRIS.target_names[kind]) for kind in IRIS.target]
    table.loc[::7, "sepal width"] = np.nan
    table.loc[::25, "shade"] = None
    return table


# These data bring notes about what is encoded and filled in.
refused = partial(commands.refused, with_notes=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with rows to train on and other rows."""
    monkeypatch.chdir(tmp_path)
    table = frame()
    table[::2].to_csv("train.csv", index=False)
    table[1::2].to_csv("test.csv", index=False)


FIT = ["fit", "train.csv", "--target", "kind", "--id", "plant", "--output", "m.skops"]


def by_hand():
    """The pipeline that the command should build, and its data."""
    table = pandas.read_csv("train.csv")
    table["shade"] = table["shade"].fillna("").astype(object)
    columns = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
                NUMBERS,
            ),
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["shade"]),
        ]
    )
    return columns, table[[*NUMBERS, "shade"]], table["kind"].to_numpy().astype(str)


def test_whole_job(capsys):
    """From a file with text, gaps, ids and three classes to probabilities and a figure."""
    pytest.importorskip("matplotlib")
    out, err = run(capsys, *FIT, "--proba", "--cv", 0)
    assert err.splitlines() == [
        "owasvm: note: missing values are filled in with the median of the training rows: "
        "'sepal width' (11)"
    ]
    assert "5 columns, 9 features, 3 classes" in out
    columns, samples, labels = by_hand()
    expected = make_pipeline(
        columns, CalibratedClassifierCV(OWASVC(random_state=0), cv=5, ensemble=False)
    ).fit(samples, labels)

    out, err = run(capsys, "evaluate", "m.skops", "test.csv", "--plot", "figure.png")
    assert Path("figure.png").read_bytes().startswith(b"\x89PNG")
    assert "accuracy" in out and "log loss" in out and "label \\ prediction" in out

    run(capsys, "predict", "m.skops", "test.csv", "--proba", "--scores", "--output", "p.csv")
    written = pandas.read_csv("p.csv")
    test = pandas.read_csv("test.csv")
    test["shade"] = test["shade"].fillna("").astype(object)
    kinds = [str(kind) for kind in IRIS.target_names]
    assert list(written.columns) == [
        "plant",
        "prediction",
        *(f"decision {kind}" for kind in kinds),
        *(f"probability {kind}" for kind in kinds),
    ]
    assert written["plant"].tolist() == test["plant"].tolist()
    probabilities = expected.predict_proba(test[[*NUMBERS, "shade"]])
    np.testing.assert_allclose(
        written[[f"probability {kind}" for kind in kinds]], probabilities, atol=1e-9
    )
    assert written["prediction"].tolist() == [kinds[k] for k in probabilities.argmax(axis=1)]
    inner = expected[-1].calibrated_classifiers_[0].estimator
    np.testing.assert_allclose(
        written[[f"decision {kind}" for kind in kinds]],
        inner.decision_function(expected[:-1].transform(test[[*NUMBERS, "shade"]])),
        atol=1e-6,
    )


def test_evaluation_tells_what_scikit_learn_says(capsys):
    run(capsys, *FIT, "--proba", "--cv", 0, "--C", 0.05)
    out, _ = run(capsys, "evaluate", "m.skops", "test.csv", "--json")
    figures = json.loads(out)
    run(capsys, "predict", "m.skops", "test.csv", "--proba", "--output", "p.csv")
    written = pandas.read_csv("p.csv")
    truth = pandas.read_csv("test.csv")["kind"]
    kinds = [str(kind) for kind in IRIS.target_names]
    probabilities = written[[f"probability {kind}" for kind in kinds]].to_numpy()
    counts = confusion_matrix(truth, written["prediction"], labels=kinds)
    assert figures["confusion_matrix"] == {"labels": kinds, "counts": counts.tolist()}
    assert figures["accuracy"] == pytest.approx((truth == written["prediction"]).mean())
    assert figures["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(truth, written["prediction"])
    )
    assert figures["auc"] == pytest.approx(
        roc_auc_score(truth, probabilities, multi_class="ovr", average="macro")
    )
    assert figures["log_loss"] == pytest.approx(log_loss(truth, probabilities))
    for k, kind in enumerate(kinds):
        of_kind = figures["classes"][kind]
        assert of_kind["recall"] == pytest.approx(counts[k, k] / counts[k].sum())
        assert of_kind["precision"] == pytest.approx(counts[k, k] / counts[:, k].sum())
        assert of_kind["auc"] == pytest.approx(roc_auc_score(truth == kind, probabilities[:, k]))


def test_evaluation_of_two_classes(capsys):
    table = frame()[50:]
    table.to_csv("two.csv", index=False)
    arguments = ["two.csv", "--target", "kind", "--id", "plant", "--output", "m.skops", "--cv", 0]
    run(capsys, "fit", *arguments, "--C", 0.05)
    out, _ = run(capsys, "evaluate", "m.skops", "two.csv", "--json")
    figures = json.loads(out)
    run(capsys, "predict", "m.skops", "two.csv", "--scores", "--output", "p.csv")
    values = pandas.read_csv("p.csv")["decision"]
    assert figures["auc"] == pytest.approx(roc_auc_score(table["kind"] == "virginica", values))
    assert figures["log_loss"] is None
    pytest.importorskip("matplotlib")
    out, _ = run(capsys, "evaluate", "m.skops", "two.csv", "--plot", "f.svg")
    assert "each class against the rest" not in out and "<svg" in Path("f.svg").read_text()


def test_labels_and_categories_never_seen(capsys):
    run(capsys, *FIT, "--cv", 0, "--proba")
    table = frame()[1::2].reset_index(drop=True)
    table.loc[:4, "kind"] = "rose"
    table.loc[5:9, "kind"] = ""
    table.loc[:2, "shade"] = "golden"
    table.to_csv("odd.csv", index=False)
    out, err = run(capsys, "evaluate", "m.skops", "odd.csv")
    assert "labels the model has never seen: 'rose' in 5 rows" in err
    assert "column 'shade': 'golden' in 3 rows was not in the training data" in err
    assert "70 rows; 5 more have no label" in out
    assert out.count("\nrose ") == 2
    _, err = run(capsys, "predict", "m.skops", "odd.csv", "--output", "p.csv")
    assert "never seen: 'rose'" in err and "'golden'" in err
    figures = json.loads(run(capsys, "evaluate", "m.skops", "odd.csv", "--json")[0])
    assert figures["classes"]["rose"]["recall"] == 0.0 and figures["log_loss"] is None
    table["kind"] = "setosa"
    table.to_csv("one.csv", index=False)
    figures = json.loads(run(capsys, "evaluate", "m.skops", "one.csv", "--json")[0])
    assert figures["auc"] is None and figures["classes"]["setosa"]["auc"] is None


def test_what_evaluate_refuses(capsys):
    run(capsys, *FIT, "--cv", 0)
    frame()[[*NUMBERS, "shade"]].to_csv("new.csv", index=False)
    assert "no labels in a column 'kind'" in refused(capsys, "evaluate", "m.skops", "new.csv")
    err = refused(capsys, "evaluate", "m.skops", "test.csv", "--plot", "figure.docx")
    assert ".png" in err
    err = refused(capsys, "evaluate", "m.skops", "test.csv", "--plot", "no/figure.png")
    assert "does not exist" in err
    err = refused(capsys, "predict", "m.skops", "test.csv", "--proba", "--output", "p.csv")
    assert "owasvm fit --proba" in err and "--scores" in err
    err = refused(capsys, "predict", "m.skops", "test.csv", "--id", "plan", "--output", "p.csv")
    assert "has no column 'plan' (--id)" in err


def test_column_of_labels_by_another_name(capsys):
    run(capsys, *FIT, "--cv", 0)
    frame()[1::2].rename(columns={"kind": "species"}).to_csv("other.csv", index=False)
    expected, _ = run(capsys, "evaluate", "m.skops", "test.csv", "--json")
    out, _ = run(capsys, "evaluate", "m.skops", "other.csv", "--target", "species", "--json")
    assert out == expected


# ------------------------------------------------------------------------------------- choosing


def test_chooses_as_a_grid_search_does(capsys):
    grid = {"C": [0.1, 1.0, 10.0], "alpha": [0.3, 0.8], "gamma": [0.1, 1.0]}
    options = ["--C", "0.1,1,10", "--alpha", "0.3,0.8", "--gamma", "0.1,1", "--cv", 3]
    out, _ = run(capsys, *FIT, *options, "--json")
    figures = json.loads(out)
    columns, samples, labels = by_hand()
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(OWASVC(random_state=0), grid, cv=folds, refit=False)
    search.fit(columns.fit_transform(samples), labels)
    assert figures["candidates"] == 12
    assert np.mean(figures["cross_validation"]["accuracy"]) == pytest.approx(search.best_score_)
    chosen = {name: figures["parameters"][name] for name in grid}
    index = search.cv_results_["params"].index(chosen)
    assert search.cv_results_["mean_test_score"][index] == search.best_score_
    assert persistence.load("m.skops")[-1].C == chosen["C"]


def test_families_with_shapes_of_their_own(capsys):
    options = ["--weights", "basic,trimmed,uniform", "--alpha", "0.3,1", "--model", "linear"]
    out, err = run(capsys, *FIT, *options, "--C", "0.1,1", "--cv", 2, "--tol", "1e-3")
    assert "--alpha 1 is left out for the weights trimmed" in err
    # Two shapes of the first, one of the second, none of the third, by two values of C.
    assert "out of 8 candidates" in out and "better than it is" in out
    assert isinstance(persistence.load("m.skops")[-1], LinearOWASVC)


def test_one_candidate_is_no_choice(capsys):
    """Uniform weights have no shape, whatever its values."""
    options = ["--weights", "uniform", "--alpha", "0.3,0.6", "--cv", 2]
    out, _ = run(capsys, *FIT, *options)
    assert "balanced accuracy" in out
    assert "candidate" not in out
    assert json.loads(run(capsys, *FIT, *options, "--json")[0])["candidates"] == 1
    run(capsys, *FIT, *options[:-1], 0)
    run(capsys, *FIT, *options, "--model", "two-step")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", "1,10", "--cv", "0"], "--cv 0 leaves nothing to choose by"),
        (["--C", "1,,10"], "values with commas between"),
        (["--C", "1,-10"], "must be above 0"),
        (["--C", "1,10", "--model", "two-step"], "takes one value of each option"),
        (["--weights", "basic,trimed"], "did you mean 'trimmed'?"),
        (["--alpha", "0.5,7", "--weights", "trimmed,olympic"], "--alpha 7 and --weights trimmed"),
        (["--alpha", "1,2", "--weights", "basic,trimmed"], "--weights trimmed: alpha=1.0 is out"),
        (["--model", "linear", "--gamma", "1,2"], "--gamma does not apply to --model linear"),
        (["--id", "kind"], "--id and --target are the same"),
        (["--id", "plnt"], "did you mean 'plant'?"),
        (["--categorical", "kind"], "is the target, the id or dropped"),
        (["--categorical", "shades"], "did you mean 'shade'?"),
        (["--categorical", "none"], "column 'shade', row 2 is"),
        (["--encoding", "latin-42"], "must be an encoding such as"),
    ],
)
def test_bad_options(options, words, capsys):
    assert words in refused(capsys, *FIT, *options)


def test_inspect_takes_one_value(capsys):
    arguments = ["inspect", "train.csv", "--target", "kind", "--id", "plant"]
    assert "takes one value" in refused(capsys, *arguments, "--C", "1,10")
    out, _ = run(capsys, *arguments, "--repeats", 1, "--cv", 2)
    assert out.startswith("plant,row,label,suggested,score\np")


# -------------------------------------------------------------------------- columns and features


def test_categories_by_name(capsys):
    """Numbers that are names; what they look like in another file does not matter."""
    table = frame()
    table["plot"] = ["0" + str(k % 3) for k in range(150)]
    table.to_csv("plots.csv", index=False)
    arguments = ["plots.csv", "--target", "kind", "--id", "plant", "--output", "m.skops"]
    run(capsys, "fit", *arguments, "--cv", 0)
    assert persistence.read_metadata("m.skops")["metadata"]["categories"].keys() == {"shade"}
    run(capsys, "fit", *arguments, "--cv", 0, "--categorical", "plot,shade")
    categories = persistence.read_metadata("m.skops")["metadata"]["categories"]
    assert categories["plot"] == ["00", "01", "02"]
    _, err = run(capsys, "predict", "m.skops", "plots.csv", "--output", "p.csv")
    assert "not in the training data" not in err


def test_whole_numbers_with_gaps_are_the_same_categories(capsys):
    pytest.importorskip("pyarrow")
    table = frame()
    table["plot"] = np.arange(150) % 3
    table.to_parquet("whole.parquet")
    table["plot"] = table["plot"].astype(float)
    table.loc[0, "plot"] = np.nan
    table.to_parquet("gaps.parquet")
    arguments = ["--target", "kind", "--drop", "plant", "--categorical", "plot", "--cv", 0]
    run(capsys, "fit", "whole.parquet", *arguments, "--output", "m.skops")
    _, err = run(capsys, "predict", "m.skops", "gaps.parquet", "--output", "p.csv")
    assert "column 'plot': '' in 1 row was not in the training data" in err


def test_filled_values_are_medians_of_the_training_rows(capsys):
    run(capsys, *FIT, "--cv", 0, "--drop", "shade")
    table = pandas.read_csv("test.csv")
    filled = table.fillna({"sepal width": pandas.read_csv("train.csv")["sepal width"].median()})
    filled.to_csv("filled.csv", index=False)
    run(capsys, "predict", "m.skops", "filled.csv", "--scores", "--output", "f.csv")
    for mark in ("", "NA", "nan", "?"):
        table["sepal width"] = (
            table["sepal width"].astype(object).where(table["sepal width"].notna(), mark)
        )
        table.to_csv("marks.csv", index=False)
        table["sepal width"] = pandas.read_csv("test.csv")["sepal width"]
        run(capsys, "predict", "m.skops", "marks.csv", "--scores", "--output", "p.csv")
        assert Path("p.csv").read_text() == Path("f.csv").read_text()


def test_gaps_are_refused_where_the_model_fills_none(capsys):
    full = frame().dropna()
    full.to_csv("full.csv", index=False)
    run(capsys, "fit", "full.csv", *FIT[2:], "--missing", "error", "--cv", 0)
    assert "is empty" in refused(capsys, "predict", "m.skops", "test.csv", "--output", "p.csv")


def test_columns_that_teach_nothing(capsys):
    arguments = ["--target", "kind", "--output", "m.skops", "--cv", 0]
    err = refused(capsys, "fit", "train.csv", *arguments)
    assert "another text in every row" in err and "--id 'plant'" in err
    table = frame()
    table["PlantId"] = np.arange(150)
    table["nothing"] = np.nan
    table["name"] = [f"n{k % 100}" for k in range(150)]
    table.to_csv("ids.csv", index=False)
    arguments += ["--drop", "plant"]
    assert "column 'nothing' of ids.csv is empty" in refused(capsys, "fit", "ids.csv", *arguments)
    _, err = run(capsys, "fit", "ids.csv", *arguments, "--drop", "nothing")
    assert "column 'PlantId' looks like an id" in err and "--id 'PlantId'" in err
    assert "column 'name' has 100 categories in 150 rows" in err
    _, err = run(capsys, "fit", "ids.csv", *arguments, "--drop", "nothing,name", "--id", "PlantId")
    assert "looks like" not in err


def test_many_categories_stay_sparse(capsys, monkeypatch):
    run(capsys, *FIT, "--cv", 0)
    run(capsys, "predict", "m.skops", "test.csv", "--scores", "--output", "dense.csv")
    monkeypatch.setattr("owasvm.cli._pipeline._DENSE_ENTRIES", 10)
    run(capsys, *FIT, "--cv", 0)
    run(capsys, "predict", "m.skops", "test.csv", "--scores", "--output", "sparse.csv")
    dense, sparse = (pandas.read_csv(f"{name}.csv") for name in ("dense", "sparse"))
    np.testing.assert_allclose(sparse.iloc[:, 2:], dense.iloc[:, 2:], atol=1e-5)


def test_probabilities_need_two_rows_of_each_class(capsys):
    table = frame()
    table.loc[0, "kind"] = "rose"
    table.to_csv("rare.csv", index=False)
    arguments = ["fit", "rare.csv", *FIT[2:], "--cv", 0]
    assert "two rows or more" in refused(capsys, *arguments, "--proba")


# ----------------------------------------------------------------------------- remedies that work


def make_plain(path, **options):
    """A small table of numbers with two classes."""
    table = pandas.DataFrame({"size": np.arange(20.0), "kind": ["no", "yes"] * 10})
    table.to_csv(path, index=False, **options)
    return table


PLAIN = ["--target", "kind", "--output", "m.skops", "--cv", 0]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings(encoding, capsys):
    table = pandas.DataFrame({"größe": np.arange(20.0), "kind": ["süß", "herb"] * 10})
    table.to_csv("other.csv", index=False, encoding=encoding)
    err = refused(capsys, "fit", "other.csv", *PLAIN)
    remedy = "utf-16" if encoding == "utf-16" else "latin-1"
    assert f"--encoding {remedy}" in err
    run(capsys, "fit", "other.csv", *PLAIN, "--encoding", remedy)
    assert persistence.load("m.skops").classes_.tolist() == ["herb", "süß"]
    run(capsys, "predict", "m.skops", "other.csv", "--encoding", remedy, "--output", "p.csv")


@pytest.mark.parametrize("lines", [False, True])
def test_json_for_a_table(lines, capsys):
    table = make_plain("plain.csv")
    table.to_json("data.json", orient="records", lines=lines)
    err = refused(capsys, "fit", "data.json", *PLAIN)
    assert "holds JSON" in err
    code = err.partition('python -c "')[2].rpartition('"')[0]
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    run(capsys, "fit", "data.csv", *PLAIN)


def test_workbooks_and_archives(capsys):
    Path("book.xlsx").write_bytes(b"PK\x03\x04rest")
    assert "save its sheet as CSV" in refused(capsys, "fit", "book.xlsx", *PLAIN)
    Path("data.csv").write_bytes(b"PK\x03\x04rest")
    assert "zip archive" in refused(capsys, "fit", "data.csv", *PLAIN)


def test_first_line_of_data(capsys):
    """The remedy of each error works."""
    frame()[[*NUMBERS, "kind"]].dropna().to_csv("bare.csv", index=False, header=False)
    for target in ("5", "kind"):
        err = refused(
            capsys, "fit", "bare.csv", "--target", target, "--output", "m.skops", "--cv", 0
        )
        assert "--no-header calls the columns 1, 2, 3" in err
    run(capsys, "fit", "bare.csv", "--target", 5, "--no-header", "--output", "m.skops", "--cv", 0)
    err = refused(capsys, "predict", "m.skops", "bare.csv", "--output", "p.csv")
    assert "add --no-header" in err
    run(capsys, "predict", "m.skops", "bare.csv", "--no-header", "--output", "p.csv")


def test_number_too_large(capsys):
    table = make_plain("plain.csv").astype({"size": object})
    table["width"] = np.arange(20.0)[::-1]
    table.loc[3, "size"] = "1e300"
    table.to_csv("large.csv", index=False)
    err = refused(capsys, "fit", "large.csv", *PLAIN)
    assert "1e+300" in err and "empty the cell, or leave the column out: --drop size" in err
    run(capsys, "fit", "large.csv", *PLAIN, "--drop", "size")
    table.loc[3, "size"] = ""
    table.to_csv("large.csv", index=False)
    run(capsys, "fit", "large.csv", *PLAIN)


def test_one_word_in_a_column_of_numbers(capsys):
    table = make_plain("plain.csv").astype({"size": object})
    table.loc[3, "size"] = "3+"
    table["size"] = [str(value)[0] if value != "3+" else value for value in table["size"]]
    table.to_csv("word.csv", index=False)
    err = refused(capsys, "fit", "word.csv", *PLAIN)
    assert "row 4 is '3+', not a number" in err and "--categorical size" in err
    run(capsys, "fit", "word.csv", *PLAIN, "--categorical", "size")


# ------------------------------------------------------------------------- what takes long


def test_too_many_rows_for_a_kernel(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "MOST_KERNEL_ROWS", 70)
    err = refused(capsys, *FIT)
    assert "75 rows are too many for a kernel" in err and "--model linear" in err
    err = refused(capsys, "inspect", "train.csv", "--target", "kind", "--id", "plant")
    assert "--model linear" in err
    run(capsys, *FIT, "--model", "linear", "--cv", 0)


def test_long_fits_show_life(capsys, monkeypatch):
    for name, value in {
        "_KERNEL_TRIALS": (60, 150),
        "_WORTH_A_TRIAL": 1,
        "_WORTH_A_NOTE": 0.0,
        "_LONG": 0.0,
    }.items():
        monkeypatch.setattr(_progress, name, value)
    frame().to_csv("train.csv", index=False)
    monkeypatch.setattr(_progress, "_some_rows", lambda training, _: training)
    out, err = run(capsys, *FIT, "--cv", 2, "--tol", "1e-3")
    lines = err.splitlines()
    assert any("150 rows will take about" in line and "extrapolated" in line for line in lines)
    assert any("fold 2 of 2: accuracy" in line for line in lines)
    assert out.startswith("data ") and "fold 2" not in out
    assert persistence.load("m.skops")[-1].verbose == 0


@pytest.mark.parametrize(
    ("model", "n_rows", "seconds"),
    [
        # A fixed cost of half a second, and a microsecond for each row or each pair of rows.
        ("linear", 1_000_000, (0.5 + 1e-6 * 1_000_000)),
        ("exact", 20_000, (0.5 + 1e-6 * 20_000**2)),
    ],
)
def test_estimates(model, n_rows, seconds, monkeypatch):
    clock = 0.0

    def train(part):
        nonlocal clock
        clock += 0.5 + 1e-6 * part.labels.size ** (1 if model == "linear" else 2)

    labels = np.arange(n_rows) % 2
    training = Training(labels, labels, [], "none", Notes())
    monkeypatch.setattr(_progress, "perf_counter", lambda: clock)
    arguments = argparse.Namespace(model=model, solver=None, time_limit=None)
    estimated = _progress.estimate(training, arguments, train)
    assert seconds / 2 < estimated < 2 * seconds


def test_trainings_of_few_rows_speak_after_a_while(capsys, monkeypatch):
    short, long = [*FIT, "--cv", 2], [*FIT, "--cv", 2, "--C", "0.1,1"]
    for arguments in (short, long):
        _, err = run(capsys, *arguments)
        assert "fold " not in err
    monkeypatch.setattr(_progress, "_SILENCE", 0.0)
    _, err = run(capsys, *short)
    assert "owasvm: note: fold 1 of 2: accuracy" in err and "fold 2 of 2: accuracy" in err
    _, err = run(capsys, *long)
    assert "owasvm: note: fit 1 of 4, fold 0, C 0.1, " in err
    assert "chosen out of 2 candidates" in err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(7.2, "7 seconds"), (48.0, "50 seconds"), (130.0, "2 minutes"), (9000.0, "2.5 hours")],
)
def test_durations(seconds, words):
    assert _progress.in_words(seconds) == words


@pytest.mark.parametrize(
    ("command", "missing", "options"),
    [
        ("fit", "skops", []),
        ("evaluate", "matplotlib", ["--plot", "f.png"]),
        ("predict", "pyarrow", ["--output", "p.parquet"]),
    ],
)
def test_packages_are_looked_for_first(command, missing, options, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    files = FIT[1:] if command == "fit" else ["no.skops", "no.csv"]
    err = refused(capsys, command, *files, *options)
    assert f"'owasvm {command}' needs {missing}, which is not installed" in err
    assert "pip install 'owasvm[cli]'" in err


@pytest.mark.parametrize("arguments", [["reproduce"], ["report", "runs"]])
def test_packages_of_a_report(arguments, capsys, monkeypatch):
    for name in ("pandas", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    err = refused(capsys, *arguments)
    assert "needs pandas and jinja2, which are not installed" in err
    assert "pip install 'owasvm[experiments]'" in err


def test_max_iter(capsys):
    _, err = run(capsys, *FIT, "--cv", 0, "--max-iter", 1)
    assert "stopped before its target" in err


# ------------------------------------------------------------------------------- mistaken places


def test_model_and_data_in_each_others_place(capsys):
    run(capsys, *FIT, "--cv", 0)
    for command in ("predict", "evaluate"):
        assert "the model comes first" in refused(capsys, command, "test.csv", "m.skops")
        err = refused(capsys, command, "m.skops", "m.skops")
        assert "m.skops is a model file of owasvm, not data" in err
    assert "is a model file of owasvm" in refused(capsys, "fit", "m.skops", *FIT[2:-1], "n.skops")


def test_standard_input_and_output_as_a_dash(capsys):
    run(capsys, *FIT, "--cv", 0)
    by_name, _ = run(capsys, "predict", "m.skops", "test.csv", "--scores")
    for output in ("-", "/dev/stdout"):
        arguments = ["predict", "m.skops", "-", "--scores", "--output", output]
        piped = subprocess.run(
            [sys.executable, "-m", "owasvm.cli", *arguments],
            input=Path("test.csv").read_bytes(),
            capture_output=True,
            check=True,
            timeout=120,
        )
        assert piped.stdout.decode() == by_name


@pytest.mark.parametrize("name", ["p.xlsx", "p.json"])
def test_predictions_are_no_workbook(name, capsys):
    run(capsys, *FIT, "--cv", 0)
    err = refused(capsys, "predict", "m.skops", "test.csv", "--output", name)
    assert "end the name in .csv or .parquet" in err


@pytest.mark.parametrize("command", ["fit", "inspect"])
def test_a_class_of_a_single_row(command, capsys):
    """Fewer folds do not help: the remedy does not say so."""
    table = frame()
    table.loc[0, "kind"] = "rose"
    table.to_csv("rare.csv", index=False)
    output = "n.skops" if command == "fit" else "n.csv"
    err = refused(capsys, command, "rare.csv", *FIT[2:-1], output)
    assert "has 1 of 150 rows" in err and "add rows of it, or leave it out" in err
    assert "lower --cv" not in err


def test_rows_without_label_are_counted(capsys):
    table = frame()
    table.loc[[3, 5, 9], "kind"] = None
    table.to_csv("gaps.csv", index=False)
    err = refused(capsys, "fit", "gaps.csv", *FIT[2:])
    assert "column 'kind', row 4 is empty, as are 2 more; every row needs a label" in err


def test_too_many_arguments(capsys):
    err = refused(capsys, *FIT, "test.csv")
    assert "there is no use for 'test.csv' (see 'owasvm fit --help')" in err


def test_a_name_that_is_there_twice(capsys):
    Path("twice.csv").write_text("a,a,kind\n1,2,x\n2,1,y\n")
    err = refused(capsys, "fit", "twice.csv", "--target", "kind", "--output", "n.skops")
    assert "several columns called 'a'; give each its own name" in err


@pytest.mark.parametrize("more", [[], ["--proba"]], ids=["scores", "probabilities"])
def test_exported_models_predict_the_same(more, capsys):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    run(capsys, *FIT, "--cv", "0", *more)
    out, _ = run(capsys, "export", "m.skops", "--onnx", "m.onnx")
    names = [*NUMBERS, "shade"]
    assert out.splitlines()[0].split(maxsplit=1)[1] == ", ".join(map(repr, names))
    rows = frame()[1::2]
    rows["shade"] = rows["shade"].fillna("")
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    inputs = {name: rows[[name]].to_numpy(object if name == "shade" else float) for name in names}
    labels, scores = session.run(["label", "probabilities"], inputs)
    run(capsys, "predict", "m.skops", "test.csv", "--output", "p.csv", "--scores", *more)
    expected = pandas.read_csv("p.csv")
    np.testing.assert_array_equal(labels, expected["prediction"])
    np.testing.assert_allclose(scores, expected[expected.columns[-3:]], atol=1e-9)


def test_exports_of_svmlight_models_take_a_matrix(capsys):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("skl2onnx")
    lines = [f"{int(k > 3)} 1:{k} 3:{k % 3}" for k in range(8)]
    Path("data.svm").write_text("\n".join(lines) + "\n")
    run(capsys, "fit", "data.svm", "--model", "linear", "--cv", "0", "--output", "s.skops")
    out, _ = run(capsys, "export", "s.skops", "--onnx", "s.onnx")
    assert out.startswith("inputs            'X'\n")
    (given,) = onnx.load("s.onnx").graph.input
    assert given.type.tensor_type.shape.dim[1].dim_value == 3


def test_exports_need_their_extra_before_anything_is_loaded(capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "owasvm.cli._packages.find_spec",
        lambda name: None if name in ("onnx", "skl2onnx") else found(name),
    )
    line = refused(capsys, "export", "nothing.skops", "--onnx", "m.onnx")
    assert "onnx and skl2onnx" in line and "pip install 'owasvm[onnx]'" in line


def test_exports_refuse_what_is_no_model_and_no_place(capsys):
    pytest.importorskip("skl2onnx")
    assert "no model file nothing.skops" in refused(
        capsys, "export", "nothing.skops", "--onnx", "m.onnx"
    )
    assert "does not exist" in refused(capsys, "export", "m.skops", "--onnx", "no/m.onnx")
    line = refused(capsys, "export", "train.csv", "--onnx", "m.onnx")
    assert "train.csv is no model file" in line and "DATA" not in line
    line = refused(capsys, "export", "m.skops", "--onnx", "m.txt")
    assert "--onnx m.txt: an ONNX graph is written, no .txt; end it in .onnx" in line


def test_exports_of_files_without_names_count_their_inputs(capsys):
    pytest.importorskip("skl2onnx")
    Path("bare.csv").write_text("".join(f"{k},{k % 3},{k // 4}\n" for k in range(8)))
    options = ["--no-header", "--target", "3", "--cv", "0", "--output", "b.skops"]
    run(capsys, "fit", "bare.csv", *options)
    out, _ = run(capsys, "export", "b.skops", "--onnx", "b.onnx")
    assert out.startswith("inputs            '1', '2'\n")


def test_mixed_integer_models_say_what_is_going_on(capsys):
    pytest.importorskip("pyscipopt")
    pandas.read_csv("train.csv")[21:29].drop(columns="shade").to_csv("few.csv", index=False)
    given = ["fit", "few.csv", "--target", "kind", "--id", "plant", "--output", "m.skops"]
    solver = ["--solver", "miqp", "--weights", "trimmed", "--alpha", "0.2", "--cv", "0"]
    _, err = run(capsys, *given, *solver)
    assert "--solver miqp hands a problem with a binary variable per pair of rows" in err
    assert "--time-limit" in err
    assert "miqp: " in err
