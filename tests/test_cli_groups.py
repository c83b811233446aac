"""``owasvm fit --rank-groups``: the estimators' groups from a column of the file."""

import json

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from owasvm import OWASVC, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC, persistence
from tests.commands import refused, run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skops")

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length"]
SAMPLES = IRIS.data[50:, :3]
KINDS = IRIS.target_names[IRIS.target[50:]]
# Two of them are the same number.
FARMS = np.random.default_rng(0).choice(["1", "01", "NA"], 100, p=[0.2, 0.3, 0.5])
FIT = ["fit", "data.csv", "--target", "kind", "--rank-groups", "farm", "--output", "m.skops"]


def frame():
    return pandas.DataFrame(SAMPLES, columns=NAMES).assign(farm=FARMS, kind=KINDS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with data whose rows belong to farms."""
    monkeypatch.chdir(tmp_path)
    frame().to_csv("data.csv", index=False)
    frame().to_parquet("data.parquet")


def figures(out):
    """The lines of a summary by their names."""
    return {line[:17].strip(): line[18:] for line in out.splitlines()}


@pytest.mark.parametrize(
    ("options", "classifier"),
    [
        ([], OWASVC()),
        (
            ["--model", "linear", "--weights", "superquantile"],
            LinearOWASVC(weights="superquantile"),
        ),
        (["--model", "two-step", "--alpha", "0.3"], TwoStepOWASVC(alpha=0.3)),
        (["--scale", "none", "--missing", "error", "--C", "10"], OWASVC(C=10.0)),
    ],
)
def test_equals_a_fit_with_groups(options, classifier, capsys):
    run(capsys, *FIT, "--cv", 0, *options)
    scales = "--scale" not in options
    samples = StandardScaler().fit_transform(SAMPLES) if scales else SAMPLES
    classifier.fit(samples, KINDS, groups=FARMS)
    model = persistence.load("m.skops")
    saved = model[-1] if scales else model
    assert saved.groups_.tolist() == ["01", "1", "NA"]
    assert saved.objective_ == pytest.approx(classifier.objective_, rel=1e-9)
    table = frame()[NAMES]
    np.testing.assert_allclose(
        model.decision_function(table), classifier.decision_function(samples), atol=1e-9
    )


def test_folds_know_their_groups(capsys):
    out, _ = run(capsys, *FIT, "--cv", 3, "--C", 100, "--alpha", 0.2)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = []
    for rows, others in folds.split(SAMPLES, KINDS):
        scaler = StandardScaler().fit(SAMPLES[rows])
        model = OWASVC(100.0, alpha=0.2)
        model.fit(scaler.transform(SAMPLES[rows]), KINDS[rows], groups=FARMS[rows])
        scores.append(model.score(scaler.transform(SAMPLES[others]), KINDS[others]))
    assert figures(out)["accuracy"].startswith(f"{100 * np.mean(scores):.2f} %")
    sizes = ", ".join(f"{name}: {np.sum(FARMS == name)}" for name in ("01", "1", "NA"))
    assert figures(out)["ranked"] == f"within 3 groups of 'farm' ({sizes})"


def test_searches_know_their_groups(capsys):
    grid = ["--C", "0.1,10", "--alpha", "0.2,0.8", "--model", "linear", "--cv", 3]
    out, _ = run(capsys, *FIT, *grid, "--json")
    figures = json.loads(out)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = LinearOWASVCCV([0.1, 10.0], alphas=[0.2, 0.8], cv=folds)
    search.fit(StandardScaler().fit_transform(SAMPLES), KINDS, rank_groups=FARMS)
    assert np.mean(figures["cross_validation"]["accuracy"]) == pytest.approx(search.best_score_)
    assert figures["parameters"]["C"] == search.C_
    assert figures["objective"] == pytest.approx(search.best_estimator_.objective_, rel=1e-6)
    assert figures["rank_groups"] == "farm"


def test_probabilities_know_their_groups(capsys):
    run(capsys, *FIT, "--cv", 0, "--proba")
    calibrated = CalibratedClassifierCV(OWASVC(), cv=5, ensemble=False)
    model = make_pipeline(StandardScaler(), calibrated)
    model.fit(SAMPLES, KINDS, calibratedclassifiercv__groups=FARMS)
    assert calibrated.calibrated_classifiers_[0].estimator.groups_.size == 3
    np.testing.assert_allclose(
        persistence.load("m.skops").predict_proba(frame()[NAMES]),
        model.predict_proba(SAMPLES),
        atol=1e-9,
    )


def test_groups_are_no_feature_and_predictions_need_none(capsys):
    run(capsys, *FIT, "--cv", 0)
    assert persistence.load("m.skops").feature_names_in_.tolist() == NAMES
    frame()[NAMES].to_csv("bare.csv", index=False)
    for name in ("data.csv", "bare.csv"):
        _, err = run(capsys, "predict", "m.skops", name, "--output", f"of_{name}")
        assert err == ""
    pandas.testing.assert_frame_equal(
        pandas.read_csv("of_data.csv"), pandas.read_csv("of_bare.csv")
    )


def test_numbers_name_groups_in_all_formats(capsys):
    table = frame().assign(farm=np.arange(100) % 3)
    table.to_csv("numbers.csv", index=False)
    table.astype({"farm": "Int64"}).to_parquet("numbers.parquet")
    found = []
    for name in ("numbers.csv", "numbers.parquet"):
        run(capsys, "fit", name, *FIT[2:], "--cv", 0)
        found.append(persistence.load("m.skops")[-1])
    assert found[0].groups_.tolist() == found[1].groups_.tolist() == ["0", "1", "2"]
    assert found[0].objective_ == found[1].objective_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rank-groups", "form"], "has no column 'form' (--rank-groups); did you mean 'farm'?"),
        (["--rank-groups", "kind"], "same column, 'kind'; to rank within each class use --ranks"),
        (["--rank-groups", "row"], "--drop 'row' is the column of --rank-groups, which is no"),
        (["--rank-groups", "number"], "--rank-groups 'number' has another value in every row"),
        (["--rank-groups", "holes"], "column 'holes', row 2 is empty, as is 1 more; every row"),
        (["--ranks", "class"], "--ranks class and --rank-groups both say among whom"),
        (["--categorical", "farm"], "--categorical 'farm' is the target, the id or dropped, or"),
        (["--solver", "ogryczak-tamir"], "neither ranks='class' nor groups"),
    ],
)
def test_what_is_refused(options, words, capsys):
    holes = np.where(np.isin(np.arange(100), [1, 7]), None, FARMS)
    table = frame().assign(row=np.arange(100), number=np.arange(100), holes=holes)
    table.to_csv("data.csv", index=False)
    arguments = [*FIT, "--drop", "row", "--cv", 0]
    # Those that are not dropped bring notes.
    assert words in refused(capsys, *arguments, *options, with_notes=True)


def test_svmlight_files_have_no_column_of_groups(capsys, tmp_path):
    (tmp_path / "data").write_text("1 0:1 1:2\n-1 0:-1 1:-2\n" * 5)
    line = refused(capsys, "fit", "data", "--rank-groups", "farm", "--output", "m.skops")
    assert "--rank-groups does not apply to svmlight files" in line
