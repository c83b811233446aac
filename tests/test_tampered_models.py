"""Model files that were damaged or made up: one clear line, never a crash."""

import copy
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from owasvm import (
    OWASVC,
    OWASVCCV,
    LinearOWASVC,
    LinearOWASVCCV,
    TwoStepOWASVC,
    _archive,
    persistence,
)
from owasvm.cli import main
from owasvm.persistence import ModelFileError

pandas = pytest.importorskip("pandas")
skops_io = pytest.importorskip("skops.io")

X, y = make_moons(60, noise=0.2, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
NAMED = pandas.DataFrame(X, columns=["height", "weight"])

MIXED = NAMED.assign(colour=np.where(X[:, 0] > 0, "red", "blue"), size=y * 10 + X[:, 0] // 1)


def columns():
    """What ``owasvm fit`` puts before a classifier."""
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["height", "weight"]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["colour", "size"]),
        ]
    )


def rare_columns():
    encoder = OneHotEncoder(drop="if_binary", min_frequency=5, handle_unknown="ignore")
    return ColumnTransformer([("categories", encoder, ["colour", "size"])])


FITTED = {
    "exact": OWASVC(C=2.0).fit(X, y),
    "kinds": OWASVC().fit(IRIS, KINDS),
    "within classes": OWASVC(ranks="class").fit(X, y),
    "within kinds": LinearOWASVC(alpha=0.9, ranks="class").fit(IRIS, KINDS),
    "sparse": OWASVC().fit(sp.csr_matrix(X), y),
    "sparse linear kernel": OWASVC(kernel="linear").fit(sp.csr_matrix(X), y),
    "precomputed": OWASVC(kernel="precomputed").fit(X @ X.T, y),
    "linear": LinearOWASVC().fit(X, y),
    "two-step": TwoStepOWASVC().fit(X, y),
    "two-step, kinds": TwoStepOWASVC().fit(IRIS, KINDS),
    "two-step, sparse": TwoStepOWASVC().fit(sp.csr_matrix(X), y),
    "standard": make_pipeline(StandardScaler(), OWASVC()).fit(NAMED, y),
    "unscaled": make_pipeline(StandardScaler(with_std=False), OWASVC()).fit(X, y),
    "minmax": make_pipeline(MinMaxScaler(), LinearOWASVC()).fit(X, y),
    "maxabs": make_pipeline(MaxAbsScaler(), OWASVC()).fit(sp.csr_matrix(X), y),
    "robust": make_pipeline(RobustScaler(), TwoStepOWASVC()).fit(X, y),
    "nested": make_pipeline(make_pipeline(MinMaxScaler()), OWASVC()).fit(X, y),
    "chosen": OWASVCCV(Cs=[1.0, 2.0], weights=["basic", "uniform"]).fit(X, y),
    "chosen kinds": make_pipeline(StandardScaler(), LinearOWASVCCV(Cs=2)).fit(IRIS, KINDS),
    "calibrated": CalibratedClassifierCV(OWASVC(), ensemble=False).fit(X, y),
    "calibrated kinds": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), OWASVC()), cv=2, method="isotonic"
    ).fit(IRIS, KINDS),
    "columns": make_pipeline(columns(), CalibratedClassifierCV(OWASVC(), ensemble=False)).fit(
        MIXED, y
    ),
    "rare": make_pipeline(rare_columns(), OWASVC()).fit(MIXED, y),
}
FITTED = {
    name: persistence._change_classifiers(model, persistence._strip_details)
    for name, model in FITTED.items()
}


def put(name, value):
    """A change that sets an attribute, or an attribute of an attribute."""
    *owners, last = name.split(".")

    def change(model):
        for owner in owners:
            if owner == "encoder":
                model = model.named_transformers_["categories"]
            else:
                model = model[int(owner)] if owner.isdigit() else getattr(model, owner)
        model.__dict__[last] = value(model.__dict__.get(last)) if callable(value) else value

    return change


def item(name, index, value):
    """A change that sets an entry of an array."""

    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return put(name, change)


def drop(name):
    return lambda model: model.__dict__.pop(name)


def swap(first, second):
    def change(model):
        attributes = model.__dict__
        attributes[first], attributes[second] = attributes[second], attributes[first]

    return change


def outside():
    """A matrix of coordinates that has one outside."""
    matrix = sp.coo_matrix(([1.0], ([0], [0])), shape=(1, 1))
    matrix.coords[1][0] = 10**8
    return matrix


def kernel(**fields):
    """A change of the kernel."""
    return lambda model: model._kernel.__dict__.update(fields)


DAMAGES = {
    "indices too large": (
        "sparse",
        item("support_vectors_.indices", slice(None, None, 2), 2**31 - 5),
    ),
    "indices one too large": ("sparse", item("support_vectors_.indices", -1, 2)),
    "indices negative": ("sparse", item("support_vectors_.indices", 0, -1)),
    "indptr decreases": ("sparse", item("support_vectors_.indptr", 3, 10)),
    "indptr too short": ("sparse", put("support_vectors_.indptr", lambda a: a[:-1])),
    "indptr too far": ("sparse", item("support_vectors_.indptr", -1, 10**6)),
    "data not finite": ("sparse", item("support_vectors_.data", 0, np.inf)),
    "linear indices": ("sparse linear kernel", item("support_vectors_.indices", 0, 10**9)),
    "matrix of another shape": ("sparse", put("support_vectors_", lambda m: m[:-1])),
    "matrix of another format": ("sparse", put("support_vectors_", lambda m: m.tocsc())),
    "matrix for an array": ("exact", put("dual_coef_", sp.csr_matrix)),
    "coordinates outside": ("exact", put("extra_", outside())),
    "intercept nan": ("exact", item("intercept_", 0, np.nan)),
    "intercept inf": ("kinds", item("intercept_", 1, -np.inf)),
    "intercept too short": ("kinds", put("intercept_", lambda a: a[:2])),
    "intercept a number": ("exact", put("intercept_", 0.5)),
    "dual nan": ("exact", item("dual_coef_", (0, 3), np.nan)),
    "dual too short": ("exact", put("dual_coef_", lambda a: a[:, 1:])),
    "dual transposed": ("kinds", put("dual_coef_", lambda a: a.T)),
    "dual of objects": ("exact", put("dual_coef_", lambda a: a.astype(object))),
    "dual of text": ("exact", put("dual_coef_", lambda a: a.astype(str))),
    "dual in single precision": ("exact", put("dual_coef_", lambda a: a.astype(np.float32))),
    "dual complex": ("exact", put("dual_coef_", lambda a: a.astype(complex))),
    "dual missing": ("exact", drop("dual_coef_")),
    "vectors nan": ("exact", item("support_vectors_", (2, 1), np.nan)),
    "vectors wider": ("exact", put("support_vectors_", lambda a: np.hstack([a, a]))),
    "vectors and duals swapped": ("exact", swap("support_vectors_", "dual_coef_")),
    "support of numbers": ("exact", put("support_", lambda a: a.astype(float))),
    "support repeated": ("exact", item("support_", 1, 0)),
    "support outside the Gram matrix": ("precomputed", item("support_", -1, 10**9)),
    "support negative": ("precomputed", item("support_", 0, -5)),
    "counts do not add up": ("exact", item("n_support_", 0, 2)),
    "counts negative": ("exact", put("n_support_", lambda a: np.array([-1, a.sum() + 1]))),
    "one class": ("exact", put("classes_", lambda a: a[:1])),
    "equal classes": ("exact", put("classes_", lambda a: a * 0)),
    "too many classes": ("exact", put("classes_", np.arange(5))),
    "classes of lists": ("exact", put("classes_", np.array([[1], None, 2], dtype=object)[:2])),
    "no classes": ("exact", put("classes_", None)),
    "features negative": ("exact", put("n_features_in_", -2)),
    "features text": ("exact", put("n_features_in_", "2")),
    "features many": ("exact", put("n_features_in_", 3)),
    "features true": ("exact", put("n_features_in_", True)),
    "kernel unknown": ("exact", kernel(function="rbff")),
    "another kernel": ("exact", kernel(function="precomputed")),
    "kernel a number": ("exact", put("kernel", 7)),
    "no kernel": ("exact", put("_kernel", {"gamma": 1.0})),
    "gamma nan": ("exact", kernel(gamma=float("nan"))),
    "gamma text": ("exact", kernel(gamma="wide")),
    "C negative": ("exact", put("C", -1.0)),
    "loss unknown": ("exact", put("loss", "cubic")),
    "loss a list": ("linear", put("loss", ["hinge"])),
    "objective nan": ("exact", put("objective_", float("nan"))),
    "objective text": ("kinds", put("objective_", lambda a: a.astype(str))),
    "objective missing": ("kinds", put("objective_", 1.0)),
    "convexity in words": ("exact", put("convex_", "yes")),
    "status unknown": ("exact", put("status_", "splendid")),
    "statuses unknown": ("kinds", item("status_", 1, "best")),
    "bound text": ("exact", put("lower_bound_", "low")),
    "weights nan": ("exact", item("owa_weights_", 4, np.nan)),
    "weights of one class": ("within classes", put("owa_weights_", lambda pair: pair[:1])),
    "weights of a class nan": (
        "within classes",
        put("owa_weights_", lambda pair: [pair[0], np.nan * pair[1]]),
    ),
    "weights by class without classes": ("exact", put("ranks", "class")),
    "weights without classes": ("within kinds", put("owa_weights_", lambda all_: all_[0])),
    "ranks unknown": ("exact", put("ranks", "classes")),
    "ranks missing": ("within classes", drop("ranks")),
    "dual of the solution nan": ("exact", item("solution_.dual", 0, np.nan)),
    "coef of the solution": ("linear", put("solution_.coef", lambda a: a[:1])),
    "solution a number": ("kinds", put("solution_", 3)),
    "solutions too few": ("kinds", put("solution_", lambda a: a[:2])),
    "method overwritten": ("exact", put("predict", "yes")),
    "property overwritten": ("exact", put("_is_precomputed", True)),
    "coef nan": ("linear", item("coef_", (0, 0), np.nan)),
    "coef too wide": ("linear", put("coef_", lambda a: np.hstack([a, a]))),
    "coef missing": ("linear", drop("coef_")),
    "second step lost": ("two-step", put("second_step_", None)),
    "second steps lost": ("two-step, kinds", put("second_step_", lambda a: a[:1])),
    "svm support vectors": ("two-step", put("second_step_.support_vectors_", lambda a: a[:3])),
    "svm counts": ("two-step", item("second_step_._n_support", 0, 10**9)),
    "svm coefficients": ("two-step", put("first_step_._dual_coef_", lambda a: a[:, :3])),
    "svm sparse indices": (
        "two-step, sparse",
        item("second_step_.support_vectors_.indices", 0, 10**8),
    ),
    "svm intercept nan": ("two-step, kinds", item("second_step_.0._intercept_", 0, np.nan)),
    "rank weights": ("two-step", put("rank_weights_", lambda a: a.reshape(2, -1))),
    "scale nan": ("standard", item("0.scale_", 0, np.nan)),
    "scale 0": ("standard", item("0.scale_", 0, 0.0)),
    "mean too long": ("standard", put("0.mean_", np.zeros(5))),
    "mean missing": ("standard", lambda model: model[0].__dict__.pop("mean_")),
    "scaler of another width": ("standard", put("0.n_features_in_", 3)),
    "names too few": ("standard", put("0.feature_names_in_", lambda a: a[:1])),
    "names of numbers": ("standard", put("0.feature_names_in_", np.array([1, "b"], dtype=object))),
    "minimum inf": ("minmax", item("0.min_", 1, np.inf)),
    "range upside down": ("minmax", put("0.feature_range", "wide")),
    "largest nan": ("maxabs", item("0.scale_", 1, np.nan)),
    "centre of text": ("robust", put("0.center_", lambda a: a.astype(str))),
    "step of another width": ("nested", put("1.n_features_in_", 3)),
    "scaler in a pipeline in a pipeline": ("nested", item("0.0.scale_", 0, np.nan)),
    "mean lost": ("standard", put("0.mean_", None)),
    "scale lost": ("standard", put("0.scale_", None)),
    "no transformer": ("standard", lambda model: model.steps.insert(0, ("first", OWASVC()))),
    "two steps of one name": ("standard", lambda model: model.steps.insert(0, model.steps[0])),
    "chosen classifier": ("chosen", item("best_estimator_.intercept_", 0, np.nan)),
    "chosen classes": ("chosen", put("classes_", lambda a: a + 1)),
    "chosen from nothing": ("chosen", put("Cs", "many")),
    "chosen method overwritten": ("chosen kinds", put("1.predict", "yes")),
    "calibrated classifier": (
        "calibrated",
        item("calibrated_classifiers_.0.estimator.intercept_", 0, np.nan),
    ),
    "calibrated vectors": (
        "columns",
        item("1.calibrated_classifiers_.0.estimator.support_vectors_", (0, 0), np.inf),
    ),
    "calibration nan": (
        "calibrated",
        put("calibrated_classifiers_.0.calibrators.0.a_", float("nan")),
    ),
    "calibration text": ("calibrated", put("calibrated_classifiers_.0.calibrators.0.b_", "b")),
    "calibrators too few": (
        "calibrated kinds",
        put("calibrated_classifiers_.1.calibrators", lambda a: a[:2]),
    ),
    "calibrated labels": ("calibrated", put("calibrated_classifiers_.0.classes", lambda a: a + 1)),
    "calibrated kinds differ": ("calibrated kinds", put("classes_", lambda a: a + 1)),
    "calibration overwritten": (
        "calibrated",
        put("calibrated_classifiers_.0.predict_proba", "yes"),
    ),
    "calibrated labels differ": (
        "calibrated kinds",
        put("calibrated_classifiers_.0.estimator.1.classes_", lambda a: a + 1),
    ),
    "method of calibration": ("calibrated", put("method", "magic")),
    "fewer columns than categories": ("columns", put("0.encoder._n_features_outs", [1, 1])),
    "categories a number": ("columns", put("0.encoder.categories_", 3)),
    "categories of one column": ("columns", put("0.encoder.categories_", lambda a: a[:1])),
    "categories of lists": (
        "columns",
        put("0.encoder.categories_", lambda a: [a[0], a[1].reshape(1, -1)]),
    ),
    "dropped category outside": (
        "rare",
        put("0.encoder._drop_idx_after_grouping", np.array([-5, None], dtype=object)),
    ),
    "rare categories outside": (
        "rare",
        put(
            "0.encoder._default_to_infrequent_mappings",
            lambda a: [None if one is None else one + 10**7 for one in a],
        ),
    ),
    "step a number": ("standard", lambda model: model.steps.insert(0, ("first", 3))),
}


def store(model, path, announced):
    """Write a model as it is, under the card of another."""
    skops_io.dump(model, path, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("owasvm.json", json.dumps(persistence._card(announced, None)))


def store_damaged(name, path):
    """Write a model with one thing wrong; it without the fault."""
    fitted, change = DAMAGES[name]
    model = copy.deepcopy(FITTED[fitted])
    change(model)
    store(model, path, FITTED[fitted])
    return FITTED[fitted]


def check_one_line(error, path):
    assert "\n" not in str(error) and str(path) in str(error)


@pytest.mark.parametrize("name", FITTED)
def test_good_models_pass(name, tmp_path):
    for write in (persistence.save, lambda model, path: store(model, path, model)):
        write(FITTED[name], tmp_path / "model.skops")
        again = persistence.load(tmp_path / "model.skops")
        assert repr(again) == repr(FITTED[name])


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_model_is_refused(name, tmp_path):
    path = tmp_path / "model.skops"
    store_damaged(name, path)
    with pytest.raises(ModelFileError) as caught:
        persistence.load(path)
    check_one_line(caught.value, path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("indices too large", "support_vectors_.indices points to 2147483643, outside 0 to 1"),
        ("indptr decreases", "support_vectors_.indptr decreases"),
        ("intercept nan", "intercept_ holds nan, not a finite number"),
        ("dual too short", r"dual_coef_ has the shape \(1, 19\), not \(1, 20\)"),
        ("dual of text", "dual_coef_ holds <U32"),
        ("dual missing", "This OWASVC .* has no dual_coef_"),
        ("C negative", "'C' parameter of OWASVC"),
        ("loss unknown", "'loss' parameter of OWASVC"),
        ("mean too long", r"mean_ has the shape \(5,\), not \(2,\)"),
        ("scaler of another width", "has 3 features, the next 2"),
        ("method overwritten", "OWASVC has its method predict overwritten"),
    ],
)
def test_the_line_names_the_fault(name, words, tmp_path):
    store_damaged(name, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=words):
        persistence.load(tmp_path / "model.skops")


def test_another_card(tmp_path):
    path = tmp_path / "model.skops"
    store(FITTED["exact"], path, FITTED["linear"])
    with pytest.raises(ModelFileError, match="is a OWASVC, not a LinearOWASVC"):
        persistence.load(path)
    store(FITTED["exact"], path, OWASVC().fit(X, y + 1))
    with pytest.raises(ModelFileError, match="labels are not those"):
        persistence.load(path)


def test_trees_are_built_on_request_only(tmp_path):
    """Compiled code follows the indices of a tree wherever they lead."""
    model = make_pipeline(RandomTreesEmbedding(2, max_depth=2, random_state=0), OWASVC()).fit(X, y)
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree"):
        persistence.save(model, tmp_path / "model.skops")
    store(model, tmp_path / "model.skops", model)
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree"):
        persistence.load(tmp_path / "model.skops")


def test_wide_matrix_is_not_unfolded(tmp_path):
    """Twenty numbers in a matrix with 10^12 columns would become coefficients of 8 TB."""
    model = copy.deepcopy(FITTED["sparse linear kernel"])
    vectors = model.support_vectors_
    model.support_vectors_ = sp.csr_matrix(
        (vectors.data, vectors.indices.astype(np.int64), vectors.indptr.astype(np.int64)),
        shape=(vectors.shape[0], 10**12),
    )
    model.n_features_in_ = 10**12
    store(model, tmp_path / "model.skops", FITTED["sparse linear kernel"])
    with pytest.raises(ModelFileError, match="larger than allowed"):
        persistence.load(tmp_path / "model.skops")


# ------------------------------------------------------------------------------------- archives


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_zip(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def schema_of(members):
    return json.loads(members["schema.json"])


def array_file(members, attribute):
    """The name of the file with an attribute of the classifier."""
    return schema_of(members)["content"]["content"][attribute]["file"]


def npy(array, shape=None, descr=None):
    """An array file, on request with a header that lies."""
    stream = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    header["shape"] = array.shape if shape is None else shape
    header["descr"] = header["descr"] if descr is None else descr
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.skops"
    persistence.save(FITTED["exact"], path)
    return path


def test_bomb_is_refused_before_it_goes_off(saved, monkeypatch):
    """3 GiB in 3 MB."""
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        for part in range(3):
            with archive.open(f"zeros-{part}", "w", force_zip64=True) as stream:
                for _ in range(64):
                    stream.write(bytes(2**24))
    assert saved.stat().st_size < 4_000_000
    monkeypatch.setattr(_archive, "_unpack", None)
    for read in (persistence.load, persistence.read_metadata):
        with pytest.raises(ModelFileError, match=r"would unpack to 32\d{8} bytes, 1073741824 are"):
            read(saved)


def test_bomb_inside_an_array_file(saved):
    """Sparse matrices are archives in the archive."""
    inner = io.BytesIO()
    write_zip(inner, {f"{part}.npy": bytes(2**20) for part in range(64)})
    outer = io.BytesIO()
    write_zip(outer, {"again.npy": inner.getvalue()})
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("matrix.npz", inner.getvalue())
    with pytest.raises(ModelFileError, match="would unpack to 67108864 bytes"):
        persistence.load(saved, max_bytes=2**25)
    assert isinstance(persistence.load(saved), OWASVC)
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("nested.npz", outer.getvalue())
    with pytest.raises(ModelFileError, match="an archive inside an archive"):
        persistence.load(saved)


def test_limit_can_be_moved(saved):
    size = saved.stat().st_size
    with pytest.raises(ModelFileError, match=f"larger than the {size - 1} bytes allowed"):
        persistence.load(saved, max_bytes=size - 1)
    with pytest.raises(ModelFileError, match="max_bytes; raise it only for files you trust"):
        persistence.load(saved, max_bytes=size)
    assert isinstance(persistence.load(saved, max_bytes=2**24), OWASVC)


def test_endless_file_is_not_read_to_its_end():
    if not Path("/dev/zero").is_char_device():
        pytest.skip("needs /dev/zero")
    with pytest.raises(ModelFileError, match="larger than the 1000 bytes"):
        persistence.load("/dev/zero", max_bytes=1000)


def test_too_many_members(saved, monkeypatch):
    monkeypatch.setattr(_archive, "MAX_MEMBERS", 5)
    with pytest.raises(ModelFileError, match="more than 5 members"):
        persistence.load(saved)


def test_declared_sizes_that_lie(saved):
    """The directory says 10 bytes, the member has a million."""
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10**6))
    data = saved.read_bytes()
    assert data.count(struct.pack("<L", 10**6)) == 2
    for declared in (10, 10**5, 2 * 10**6):
        lying = data.replace(struct.pack("<L", 10**6), struct.pack("<L", declared))
        saved.write_bytes(lying)
        with pytest.raises(ModelFileError, match="no model file"):
            persistence.load(saved)


def test_other_compressions(saved):
    """Their unpackers cannot be stopped."""
    write_zip(saved, contents(saved), zipfile.ZIP_BZIP2)
    with pytest.raises(ModelFileError, match="method that is not used"):
        persistence.load(saved)


def test_structure_that_doubles_itself(saved):
    """Forty lists, each of them twice the one before, are 10^12 nodes."""
    members = contents(saved)
    schema = schema_of(members)
    fields = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    part = {**fields, "content": [], "__id__": 1}
    for identity in range(2, 42):
        reference = {**fields, "__loader__": "CachedNode", "__id__": identity - 1}
        part = {**fields, "content": [part, reference], "__id__": identity}
    schema["content"]["content"]["extra_"] = part
    members["schema.json"] = json.dumps(schema)
    write_zip(saved, members)
    with pytest.raises(ModelFileError, match="repeats its parts too often"):
        persistence.load(saved)


def test_structure_that_contains_itself(saved):
    members = contents(saved)
    schema = schema_of(members)
    fields = {"__class__": "list", "__module__": "builtins", "__id__": 1}
    reference = {**fields, "__loader__": "CachedNode"}
    schema["content"]["content"]["extra_"] = {
        **fields,
        "__loader__": "ListNode",
        "content": [reference],
    }
    members["schema.json"] = json.dumps(schema)
    write_zip(saved, members)
    with pytest.raises(ModelFileError, match="wrong order"):
        persistence.load(saved)


def test_one_array_loaded_a_thousand_times(saved):
    members = contents(saved)
    members["large.npy"] = npy(np.zeros(10**6))
    schema = schema_of(members)
    attributes = schema["content"]["content"]
    node = {key: value for key, value in attributes["dual_coef_"].items() if key != "__id__"}
    for part in range(1000):
        attributes[f"extra_{part}_"] = {**node, "file": "large.npy"}
    members["schema.json"] = json.dumps(schema)
    write_zip(saved, members)
    with pytest.raises(ModelFileError, match="refers to its arrays too often"):
        persistence.load(saved)


# ---------------------------------------------------------------------------- the command line


def flipped(position):
    def change(path):
        data = bytearray(path.read_bytes())
        data[int(position * len(data))] ^= 0xFF
        path.write_bytes(bytes(data))

    return change


def flipped_inside(path):
    """A change in the middle of the largest member; some bytes of headers mean nothing."""
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    first = largest.header_offset + 30 + len(largest.filename)
    data = bytearray(path.read_bytes())
    data[first + largest.compress_size // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def in_archive(change):
    """A mutation of the members."""

    def mutate(path):
        members = contents(path)
        change(members)
        write_zip(path, members)

    return mutate


def in_array(attribute, change):
    """A mutation of the file with an array."""

    def mutate(members):
        name = array_file(members, attribute)
        members[name] = change(np.load(io.BytesIO(members[name])))

    return in_archive(mutate)


def in_schema(change):
    """A mutation of the structure."""

    def mutate(members):
        schema = schema_of(members)
        change(schema)
        members["schema.json"] = json.dumps(schema)

    return in_archive(mutate)


def swap_files(members):
    first, second = array_file(members, "dual_coef_"), array_file(members, "support_vectors_")
    members[first], members[second] = members[second], members[first]


def write_twice(path):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("schema.json", contents(path)["schema.json"])


def make_folder(path):
    path.unlink()
    path.mkdir()


def wrong_objects(array):
    stream = io.BytesIO()
    np.save(stream, array.astype(object), allow_pickle=True)
    return stream.getvalue()


MUTATIONS = {
    "truncated to half": lambda path: path.write_bytes(path.read_bytes()[:3000]),
    "last byte missing": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "first byte missing": lambda path: path.write_bytes(path.read_bytes()[1:]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("I am no model"),
    "folder": make_folder,
    "no file": Path.unlink,
    "flipped at the start": flipped(0.0),
    "flipped in an array": flipped(0.1),
    "flipped in the middle": flipped_inside,
    "flipped in the directory": flipped(0.95),
    "zip of nothing": lambda path: write_zip(path, {}),
    "card missing": in_archive(lambda members: members.pop("owasvm.json")),
    "card no JSON": in_archive(lambda members: members.update({"owasvm.json": b"{"})),
    "card a list": in_archive(lambda members: members.update({"owasvm.json": b"[]"})),
    "card without classes": in_archive(
        lambda members: members.update({"owasvm.json": b'{"format": 1}'})
    ),
    "schema missing": in_archive(lambda members: members.pop("schema.json")),
    "schema no JSON": in_archive(lambda members: members.update({"schema.json": b"\xff{"})),
    "schema a list": in_archive(lambda members: members.update({"schema.json": b"[]"})),
    "schema very deep": in_archive(
        lambda members: members.update({"schema.json": b"[" * 10**5 + b"]" * 10**5})
    ),
    "array missing": in_archive(lambda members: members.pop(array_file(members, "dual_coef_"))),
    "arrays swapped": in_archive(swap_files),
    "two schemas": write_twice,
    "protocol text": in_schema(lambda schema: schema.update(protocol="2")),
    "protocol of the future": in_schema(lambda schema: schema.update(protocol=99)),
    "content a number": in_schema(lambda schema: schema.update(content=3)),
    "another loader": in_schema(lambda schema: schema.update(__loader__="ListNode")),
    "another class": in_schema(lambda schema: schema.update(__class__="LinearOWASVC")),
    "abstract class": in_schema(
        lambda schema: schema.update(
            __class__="BaseOWAClassifier", __module__="owasvm.estimators._base"
        )
    ),
    "file a number": in_schema(
        lambda schema: schema["content"]["content"]["dual_coef_"].update(file=7)
    ),
    "kernel a list": in_schema(
        lambda schema: schema["content"]["content"]["kernel"].update(content="[1]")
    ),
    "status unknown": in_schema(
        lambda schema: schema["content"]["content"]["solution_"]["content"]["content"][
            "status"
        ].update(content='"done"')
    ),
    "array cut": in_array("dual_coef_", lambda a: npy(a)[:-8]),
    "array of another shape": in_array("dual_coef_", lambda a: npy(a[:, :-1])),
    "array of other numbers": in_array("dual_coef_", lambda a: npy(a.astype(np.int64))),
    "array not finite": in_array("intercept_", lambda a: npy(a * np.inf)),
    "array of nan": in_array("support_vectors_", lambda a: npy(a * np.nan)),
    "array of objects": in_array("dual_coef_", wrong_objects),
    "array with a huge shape": in_array("dual_coef_", lambda a: npy(a, shape=(10**6, 10**6))),
    "array with a negative shape": in_array("dual_coef_", lambda a: npy(a, shape=(-1, -20))),
    "array out of nothing": in_array(
        "classes_", lambda a: npy(a[:0], shape=(10**12,), descr="|S0")
    ),
    "array that is an archive": in_array("dual_coef_", lambda _: b"PK\x05\x06" + bytes(18)),
    "array that is text": in_array("dual_coef_", lambda _: b"no array"),
    "array with a strange header": in_array(
        "dual_coef_", lambda a: npy(a).replace(b"'descr'", b"'dsecr'")
    ),
}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    pandas.DataFrame(X, columns=["a", "b"]).to_csv(path, index=False)
    return path


def check_refused(path, data, capsys):
    """The command says one line, and nothing else."""
    status = main(["predict", str(path), str(data)])
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    assert err.startswith("owasvm: error: ") and err.count("\n") == 1
    assert str(path) in err


@pytest.mark.parametrize("name", MUTATIONS)
def test_predict_with_a_tampered_file(name, saved, data, capsys):
    MUTATIONS[name](saved)
    check_refused(saved, data, capsys)


@pytest.mark.parametrize("name", DAMAGES)
def test_predict_with_a_damaged_model(name, saved, data, capsys):
    store_damaged(name, saved)
    check_refused(saved, data, capsys)


@pytest.mark.parametrize("fitted", ["standard", "two-step, sparse"])
def test_flipped_bytes_end_in_one_line_or_in_predictions(fitted, saved, data, capsys):
    """Checksums catch nearly all of them; what is left changes nothing that counts."""
    if fitted == "standard":
        data.write_text(data.read_text().replace("a,b", "height,weight", 1))
    persistence.save(FITTED[fitted], saved)
    good = saved.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for position in random.integers(0, len(good), 100):
        flip = bytearray(good)
        flip[position] ^= 1 << random.integers(8)
        saved.write_bytes(bytes(flip))
        status = main(["predict", str(saved), str(data)])
        out, err = capsys.readouterr()
        if status == 2:
            assert out == "" and err.startswith("owasvm: error: ") and err.count("\n") == 1
            refused += 1
        else:
            assert status == 0 and out.count("\n") == 61
    assert refused > 50


def test_flipped_bytes_behind_right_checksums(saved, data, capsys):
    """The same for faults that no checksum betrays: bytes of the arrays and of the structure."""
    persistence.save(FITTED["sparse"], saved)
    good = contents(saved)
    random = np.random.default_rng(1)
    names = sorted(good, key=lambda name: (len(good[name]), good[name]))
    refused = 0
    for _ in range(200):
        name = names[random.integers(len(names))]
        flip = bytearray(good[name])
        flip[random.integers(len(flip))] ^= 1 << random.integers(8)
        write_zip(saved, {**good, name: bytes(flip)}, zipfile.ZIP_STORED)
        status = main(["predict", str(saved), str(data)])
        out, err = capsys.readouterr()
        if status == 2:
            assert out == "" and err.startswith("owasvm: error: ") and err.count("\n") == 1
            refused += 1
        else:
            assert status == 0 and out.count("\n") == 61
    assert refused > 50
