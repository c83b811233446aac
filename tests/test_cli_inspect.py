"""``owasvm inspect``: the table that ``label_issues`` gives, and bad input in one line."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from owasvm import TwoStepOWASVC
from owasvm.cli import main
from owasvm.inspection import label_issues

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
WRONG = [3, 70]


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """Versicolor and virginica with two wrong labels, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame(IRIS.data[50:], columns=NAMES)
    kinds = np.repeat(["versicolor", "virginica"], 50).astype(object)
    kinds[WRONG] = kinds[WRONG[::-1]]
    frame["kind"] = kinds
    frame.to_csv("iris.csv", index=False)
    return frame


def run(capsys, *arguments):
    status = main(["inspect", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out, err


def refused(capsys, *arguments):
    try:
        status = main(["inspect", *(str(argument) for argument in arguments)])
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    assert err.startswith("owasvm: error: ") and err.count("\n") == 1
    return err


def test_the_default_is_that_of_label_issues(capsys, table):
    out, err = run(capsys, "iris.csv", "--target", "kind", "--output", "found.csv")
    found = pandas.read_csv("found.csv")
    expected = label_issues(None, table[NAMES], table["kind"])
    # As in all messages, the first row of data is row 1.
    expected["row"] += 1
    pandas.testing.assert_frame_equal(found, expected)
    assert {row + 1 for row in WRONG} <= set(found["row"][:8])
    n_suspicious = int((expected["score"] > 0).sum())
    assert err == ""
    assert out == (
        "rows              found.csv: 100 rows\n"
        f"suspicious        {n_suspicious} of 100 rows, where another class than the label is "
        "preferred\n"
    )


def test_options_reach_classifier_and_folds(capsys, table):
    options = ["--model", "two-step", "--weights", "trimmed", "--alpha", "0.1", "--C", "3"]
    options += ["--cv", "3", "--repeats", "2", "--seed", "7", "--drop", "sepal width"]
    out, err = run(capsys, "iris.csv", "--target", "kind", *options)
    model = make_pipeline(StandardScaler(), TwoStepOWASVC(C=3, weights="trimmed", alpha=0.1))
    kept = table[[name for name in NAMES if name != "sepal width"]]
    expected = label_issues(model, kept, table["kind"], cv=3, n_repeats=2, random_state=7)
    lines = out.splitlines()
    assert lines[0] == "row,label,suggested,score"
    assert [int(line.split(",")[0]) for line in lines[1:]] == (expected["row"] + 1).tolist()
    assert "suspicious" in err


def test_svmlight_and_parquet(capsys):
    dump_svmlight_file(IRIS.data, IRIS.target, "iris.svm", zero_based=False)
    run(capsys, "iris.svm", "--repeats", 1, "--output", "found.parquet")
    found = pandas.read_parquet("found.parquet")
    assert found.shape == (150, 4) and set(found["label"]) == {0, 1, 2}


def test_formulas_are_escaped(capsys, table):
    table["kind"] = table["kind"].replace("virginica", "=1+1")
    table.to_csv("iris.csv", index=False)
    options = ["iris.csv", "--target", "kind", "--repeats", 1, "--output", "found.csv"]
    run(capsys, *options)
    assert set(pandas.read_csv("found.csv")["label"]) == {"versicolor", "=1+1"}
    run(capsys, *options, "--escape-formulas")
    assert set(pandas.read_csv("found.csv")["suggested"]) == {"versicolor", "'=1+1"}
    table.assign(who=[f"=A{k}" for k in range(100)]).to_csv("iris.csv", index=False)
    run(capsys, *options, "--escape-formulas", "--id", "who")
    assert pandas.read_csv("found.csv")["who"].str.startswith("'=A").all()


def test_help_says_what_is_true_of_it(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    out = capsys.readouterr().out
    assert "from columns to features:" in out and "kept in the model file" not in out
    assert "1 for the first row of data" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["iris.csv"], "--target is missing"),
        (["iris.csv", "--target", "kin"], "did you mean 'kind'?"),
        (["none.csv", "--target", "kind"], "none.csv"),
        (["iris.csv", "--target", "kind", "--cv", "1"], "--cv 1 leaves nothing to train on"),
        (["iris.csv", "--target", "kind", "--cv", "51"], "too few for 51 folds; lower --cv\n"),
        (["iris.csv", "--target", "kind", "--repeats", "0"], "--repeats 0"),
        (["iris.csv", "--target", "kind", "--weights", "trimed"], "did you mean 'trimmed'?"),
        (["iris.csv", "--target", "kind", "--output", "iris.csv"], "read by this command"),
        (
            ["iris.csv", "--target", "kind", "--output", "a.pq", "--escape-formulas"],
            "--escape-formulas is for CSV",
        ),
        (
            "iris.csv --target kind --model two-step --weights trimmed --alpha 0.99".split(),
            "leaves one class only",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, words, capsys):
    assert words in refused(capsys, *arguments)
