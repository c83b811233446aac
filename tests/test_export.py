"""Exported models: onnxruntime computes the labels and scores of the classifier."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC
from owasvm.export import OPSET, to_onnx
from owasvm.extras import MissingExtraError

pandas = pytest.importorskip("pandas")
skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCES = {np.float32: 1e-4, np.float64: 1e-9}


def make_data(n_classes, shift=0.0):
    X, y = make_classification(
        90,
        5,
        n_informative=5,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        flip_y=0.05,
        random_state=n_classes,
    )
    return X + shift, y


def run(graph, X):
    """What onnxruntime makes of samples."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    if hasattr(X, "columns"):
        samples = {name: X[[name]].to_numpy() for name in X.columns}
    else:
        samples = {"X": X}
    return session.run(None, samples)


def check(model, X, tolerance, graph=None):
    """The outputs have the names, shapes and values that they should have."""
    graph = to_onnx(model, X) if graph is None else graph
    assert [output.name for output in graph.graph.output] == ["label", "probabilities"]
    label, scores = run(graph, X)
    expected = model.decision_function(X)
    n_classes = model.classes_.size
    assert scores.shape == (len(X), 1 if n_classes == 2 else n_classes)
    np.testing.assert_array_equal(label, model.predict(X))
    error = np.abs(scores.reshape(expected.shape) - expected).max()
    assert error <= tolerance * np.abs(expected).max()
    return scores


CLASSIFIERS = {
    "linear": LinearOWASVC(),
    "linear, squared hinge": LinearOWASVC(loss="squared_hinge", weights="superquantile"),
    "linear kernel": OWASVC(kernel="linear"),
    "rbf": OWASVC(),
    "rbf, large C": OWASVC(C=1000.0, gamma=0.5),
    "poly": OWASVC(kernel="poly", coef0=1),
    "poly, fifth degree": OWASVC(kernel="poly", degree=5, C=100.0),
    "two-step": TwoStepOWASVC(kernel="poly", degree=2),
}


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_and_scores(name, n_classes, in_pipeline):
    X, y = make_data(n_classes)
    model = CLASSIFIERS[name]
    if in_pipeline:
        model = make_pipeline(StandardScaler(), model)
    model.fit(X, y)
    for dtype, tolerance in TOLERANCES.items():
        assert check(model, X.astype(dtype), tolerance).dtype == dtype


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("shift", [1e2, 1e4])
def test_distances_of_data_far_from_the_origin(shift, dtype):
    X, y = make_data(2, shift)
    X = X.astype(dtype)
    check(OWASVC().fit(X, y), X, TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_powers_of_data_far_from_the_origin(dtype):
    """The scores, about 1, are sums of kernel values beyond 1e7."""
    X, y = make_data(5, 30.0)
    X = X.astype(dtype)
    model = OWASVC(kernel="poly", C=10.0, tol=1e-4).fit(X, y)
    assert (model.gamma_ * X[0] @ X[1]) ** 3 > 1e7
    check(model, X, TOLERANCES[dtype])


def test_sigmoid():
    X, y = make_data(3)
    check(TwoStepOWASVC(kernel="sigmoid", gamma=0.01, coef0=0).fit(X, y), X, 1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_classifier_without_support_vectors(kernel):
    X = np.zeros((6, 2))
    model = OWASVC(kernel=kernel).fit(X, [0, 1, 1, 1, 1, 1])
    model.dual_coef_ = model.dual_coef_[:, :0]
    model.support_vectors_ = model.support_vectors_[:0]
    label, scores = run(to_onnx(model, X), X)
    assert np.all(label == 1) and np.all(scores == model.intercept_)


def test_polynomial_of_degree_zero():
    X, y = make_data(3)
    check(OWASVC(kernel="poly", degree=0).fit(X, y), X, 1e-9)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("name", ["linear", "linear kernel", "rbf", "poly", "two-step"])
def test_sparse_training_data(name, container):
    X, y = make_data(2)
    X[np.abs(X) < 0.5] = 0.0
    model = CLASSIFIERS[name].fit(container(X), y)
    check(model, X, 1e-9, graph=to_onnx(model, container(X)))


@pytest.mark.parametrize(
    "labels",
    [["no", "yes", "ä"], [-3, 0, 7], [0.0, 1.0, 2.0], np.array(["a", "b", "c"], dtype=object)],
)
def test_labels_of_every_kind(labels):
    X, y = make_data(3)
    check(LinearOWASVC().fit(X, np.array(labels)[y]), X, 1e-9)


def test_truth_values_become_numbers():
    X, y = make_data(2)
    assert run(to_onnx(LinearOWASVC().fit(X, y == 1), X), X)[0].dtype == np.int64


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("scaler", [MaxAbsScaler(), MinMaxScaler((-1, 1)), RobustScaler()])
def test_other_scalers(scaler, dtype):
    X, y = make_data(2)
    model = make_pipeline(scaler, OWASVC()).fit(X, y)
    check(model, X.astype(dtype), TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("missing", [np.nan, -1.0])
def test_imputer(missing, dtype):
    X, y = make_data(2)
    X[::7, 1] = missing
    imputer = SimpleImputer(strategy="median", missing_values=missing)
    model = make_pipeline(imputer, StandardScaler(), OWASVC()).fit(X, y)
    check(model, X.astype(dtype), TOLERANCES[dtype])


def test_imputer_that_changes_the_columns():
    X, y = make_data(2)
    X[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(add_indicator=True), LinearOWASVC()).fit(X, y)
    with pytest.raises(ValueError, match="leave add_indicator=False"):
        to_onnx(model, X)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="Skipping features"):
        model = make_pipeline(SimpleImputer(), LinearOWASVC()).fit(X, y)
        model.predict(X)
    with pytest.raises(ValueError, match="a column that has no value at all"):
        to_onnx(model, X)


def make_table(n_classes):
    """Columns of many types, with names that graphs are full of."""
    X, y = make_data(n_classes)
    random = np.random.default_rng(0)
    table = pandas.DataFrame(X, columns=["cast", "mean radius (mm)", "model/X", "X", "half"])
    table["cast"] = (10 * table["cast"]).astype(int)
    table["half"] = table["half"].astype("float32")
    table["is large"] = table["X"] > 0.0
    return table, y, random


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [OWASVC(), make_pipeline(StandardScaler(), LinearOWASVC())])
def test_one_input_per_column(model, n_classes):
    table, y, _ = make_table(n_classes)
    model.fit(table, y)
    graph = to_onnx(model, table)
    assert [given.name for given in graph.graph.input] == list(table.columns)
    assert check(model, table, 1e-9, graph).dtype == np.float64


def test_columns_in_another_order():
    table, y, _ = make_table(2)
    model = OWASVC().fit(table, y)
    shuffled = table[list(table.columns[::-1])].assign(unused=0.0)
    names = [given.name for given in to_onnx(model, shuffled).graph.input]
    assert names == list(table.columns)


def test_columns_of_single_precision():
    X, y = make_data(2)
    table = pandas.DataFrame(X.astype(np.float32), columns=list("abcde"))
    assert check(OWASVC().fit(table, y), table, 1e-4).dtype == np.float32


@pytest.mark.parametrize("n_classes", [2, 3])
def test_text_numbers_and_missing_values(n_classes):
    table, y, random = make_table(n_classes)
    table["colour"] = random.choice(["red", "green", "blue"], len(table))
    table["size"] = random.choice(["s", "m"], len(table))
    table["grade"] = random.integers(1, 4, len(table))
    numbers = ["cast", "mean radius (mm)", "model/X", "X", "half"]
    table.loc[::9, "X"] = np.nan
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["colour", "grade"]),
            (OrdinalEncoder(), ["size"]),
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("passthrough", ["is large"]),
        ),
        OWASVC(),
    ).fit(table, y)
    graph = to_onnx(model, table)
    new = table.assign(colour="never seen")
    for samples in (table, new):
        assert check(model, samples, 1e-9, graph).dtype == np.float64
    search = GridSearchCV(model, {"owasvc__C": [0.5]}, cv=2).fit(table, y)
    check(search, table, 1e-9)


def test_text_in_an_array():
    _, y, random = make_table(2)
    X = random.choice(np.array(["a", "b", "c"], dtype=object), (len(y), 3))
    y = (X[:, 0] == "a").astype(int)
    check(make_pipeline(OneHotEncoder(), OWASVC()).fit(X, y), X, 1e-4)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("outside", [False, True])
def test_calibrated_classifier(outside, n_classes, dtype):
    X, y = make_data(n_classes)
    if outside:
        model = CalibratedClassifierCV(make_pipeline(StandardScaler(), OWASVC()), cv=2)
    else:
        model = make_pipeline(StandardScaler(), CalibratedClassifierCV(OWASVC(), cv=2))
    X = X.astype(dtype)
    label, probabilities = run(to_onnx(model.fit(X, y), X), X)
    np.testing.assert_array_equal(label, model.predict(X))
    expected = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=TOLERANCES[dtype])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("search", [OWASVCCV, LinearOWASVCCV])
def test_cross_validated_classifiers(search, n_classes):
    X, y = make_data(n_classes)
    model = search(Cs=[0.1, 1.0], alphas=[0.6], cv=2)
    check(model.fit(X, y), X, 1e-9)
    check(make_pipeline(StandardScaler(), model).fit(X, y), X, 1e-9)
    with pytest.raises(ValueError, match="Train it with refit=True"):
        to_onnx(model.set_params(refit=False).fit(X, y), X)


def test_ranks_within_classes():
    X, y = make_data(3)
    check(OWASVC(ranks="class").fit(X, y), X, 1e-9)


def test_isotonic_calibration_is_refused():
    X, y = make_data(2)
    model = CalibratedClassifierCV(LinearOWASVC(), method="isotonic", cv=2).fit(X, y)
    with pytest.raises(ValueError, match="method='sigmoid'"):
        to_onnx(model, X)


def test_converters_serve_users_of_skl2onnx():
    X, y = make_data(2)
    model = make_pipeline(StandardScaler(), OWASVC()).fit(X, y)
    for options in (None, {"zipmap": False}, {id(model): {"zipmap": False}}):
        check(model, X, 1e-9, skl2onnx.to_onnx(model, X, options=options))
    alone = OWASVC().fit(X, y)
    graph = skl2onnx.to_onnx(alone, X, options={"raw_scores": True})
    _, both = run(graph, X)
    expected = alone.decision_function(X)
    np.testing.assert_allclose(both, np.stack([-expected, expected], axis=1), rtol=1e-9)


def test_converters_join_columns():
    table, y, _ = make_table(2)
    model = OWASVC().fit(table, y)
    renamed = table.set_axis(list("abcdef"), axis=1)
    renamed["f"] = renamed["f"].astype(int)
    _, scores = run(skl2onnx.to_onnx(model, renamed), renamed)
    np.testing.assert_allclose(scores.ravel(), model.decision_function(table), atol=1e-5)


@pytest.mark.parametrize("opset", [13, OPSET, 21])
def test_opset(opset):
    X, y = make_data(3)
    model = make_pipeline(SimpleImputer(), StandardScaler(), OWASVC(kernel="poly")).fit(X, y)
    graph = to_onnx(model, X, opset=opset)
    assert {stated.domain: stated.version for stated in graph.opset_import}[""] == opset
    assert len(graph.opset_import) == len({stated.domain for stated in graph.opset_import})
    check(model, X, 1e-9, graph)


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T])
def test_kernels_without_a_formula(kernel):
    X, y = make_data(2)
    X = X @ X.T if kernel == "precomputed" else X
    with pytest.raises(ValueError, match=r"kernel=.* cannot be exported .* Take kernel='linear'"):
        to_onnx(OWASVC(kernel=kernel).fit(X, y), X)


def test_what_does_not_fit():
    X, y = make_data(2)
    model = OWASVC().fit(X, y)
    with pytest.raises(NotFittedError):
        to_onnx(OWASVC(), X)
    with pytest.raises(ValueError, match="X has 2 columns, but the model was trained on 5"):
        to_onnx(model, X[:, :2])
    with pytest.raises(ValueError, match="must be a matrix"):
        to_onnx(model, X[0])
    with pytest.raises(ValueError, match="complex128"):
        to_onnx(model, X + 1j)
    table = pandas.DataFrame(X, columns=["label", "b", "c", "d", "e"])
    with pytest.raises(ValueError, match=r"Rename the columns \['label'\]"):
        to_onnx(OWASVC().fit(table, y), table)
    with pytest.raises(ValueError, match=r"lacks columns .* \['b', 'd'\]"):
        to_onnx(OWASVC().fit(table, y), table.drop(columns=["b", "d"]))


def test_model_of_more_than_two_gigabytes(monkeypatch):
    X, y = make_data(2)
    model = OWASVC().fit(sp.csr_matrix(X), y)
    monkeypatch.setattr("owasvm.export._converters._LARGEST_MODEL", 100)
    with pytest.raises(ValueError, match=r"more than 2 GB.*Take LinearOWASVC"):
        to_onnx(model, X)


@pytest.mark.parametrize("package", ["onnx", "skl2onnx"])
def test_missing_extra(package, monkeypatch):
    X, y = make_data(2)
    model = LinearOWASVC().fit(X, y)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}.*'owasvm\[onnx\]'"):
        to_onnx(model, X)
