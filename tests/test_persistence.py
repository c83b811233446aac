"""Model files: the same model comes back, and nothing else ever runs."""

import copy
import io
import json
import os
import pickle
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import owasvm
from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC, persistence
from owasvm.persistence import ModelFileError
from owasvm.solution import Status

pandas = pytest.importorskip("pandas")
skops_io = pytest.importorskip("skops.io")

X, y = make_moons(60, noise=0.2, random_state=0)
WORDS = np.array(["no", "yes"])[y]
IRIS, KINDS = load_iris(return_X_y=True)
NAMED = pandas.DataFrame(X, columns=["height", "weight"])

MODELS = {
    "exact": (OWASVC(C=2.0), X, y),
    "squared hinge": (OWASVC(loss="squared_hinge"), X, y),
    "array of weights": (OWASVC(weights=np.linspace(0, 1, 60)), X, y),
    "linear, words": (LinearOWASVC(weights="exponential"), X, WORDS),
    "linear, sparse": (LinearOWASVC(), sp.csr_matrix(X), y),
    "sparse array": (OWASVC(), sp.csr_array(X), y),
    "two-step": (TwoStepOWASVC(weights="trimmed", alpha=0.1), X, y),
    "three classes": (OWASVC(class_weight={0: 1.0, 1: 2.0, 2: 0.5}), IRIS, KINDS),
    "two-step, three classes": (TwoStepOWASVC(order="lof"), IRIS, KINDS),
    "pipeline": (make_pipeline(StandardScaler(), OWASVC()), NAMED, WORDS),
    "pipeline, min-max": (make_pipeline(MinMaxScaler((-1, 1)), TwoStepOWASVC()), IRIS, KINDS),
    "model of the paper": (OWASVC(solver="assignment-dual"), X[:12], y[:12]),
}


CHOSEN = {
    "kernel": (OWASVCCV(Cs=[1.0, 2.0], gammas=[0.5, "scale"]), X, WORDS),
    "linear": (make_pipeline(StandardScaler(), LinearOWASVCCV(Cs=3)), IRIS, KINDS),
}
CALIBRATED = {
    "alone": (CalibratedClassifierCV(OWASVC(), ensemble=False), X, WORDS),
    "ensemble": (CalibratedClassifierCV(LinearOWASVC(), cv=3), IRIS, KINDS),
    "in a pipeline": (
        make_pipeline(StandardScaler(), CalibratedClassifierCV(OWASVC(), ensemble=False)),
        NAMED,
        y,
    ),
    "a pipeline": (CalibratedClassifierCV(make_pipeline(StandardScaler(), OWASVC())), IRIS, KINDS),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen_parameters_come_back(name, tmp_path):
    template, samples, labels = CHOSEN[name]
    model = copy.deepcopy(template).fit(samples, labels)
    again = through_skops(model, tmp_path)
    np.testing.assert_array_equal(
        again.decision_function(samples), model.decision_function(samples)
    )
    search, found = (one[-1] if hasattr(one, "steps") else one for one in (model, again))
    assert found.best_params_ == search.best_params_
    assert found.best_score_ == search.best_score_
    np.testing.assert_array_equal(found.best_estimator_.status_, search.best_estimator_.status_)
    assert found.cv_results_["params"] == search.cv_results_["params"]


@pytest.mark.parametrize("name", CALIBRATED)
def test_probabilities_come_back(name, tmp_path):
    template, samples, labels = CALIBRATED[name]
    model = copy.deepcopy(template).fit(samples, labels)
    again = through_skops(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(samples), model.predict_proba(samples))
    np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
    card = persistence.read_metadata(tmp_path / "model.skops")
    assert card["classes"] == model.classes_.tolist() and card["model"].endswith("OWASVC")


@pytest.mark.parametrize(
    "model", [OWASVCCV(), OWASVCCV(refit=False, Cs=2).fit(X, y), CalibratedClassifierCV(OWASVC())]
)
def test_nothing_to_predict_with(model, tmp_path):
    with pytest.raises(ModelFileError, match="Only fitted classifiers"):
        persistence.save(model, tmp_path / "model.skops")


@pytest.fixture
def saved(tmp_path):
    """A good file."""
    path = tmp_path / "model.skops"
    persistence.save(OWASVC().fit(X, y), path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    template, samples, labels = MODELS[name]
    model = copy.deepcopy(template).fit(samples, labels)
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
    np.testing.assert_array_equal(
        again.decision_function(samples), model.decision_function(samples)
    )
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert again.n_features_in_ == model.n_features_in_
    assert repr(again) == repr(model)


def through_skops(model, folder):
    persistence.save(model, folder / "model.skops")
    return persistence.load(folder / "model.skops")


def through_pickle(model, _):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


WAYS = [through_skops, through_pickle, through_joblib]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("template", "added"),
    [
        (OWASVC(), {"loss": "hinge", "device": "cpu", "cache_size": 200, "ranks": "all"}),
        (LinearOWASVC(), {"loss": "hinge", "ranks": "all"}),
        (TwoStepOWASVC(), {"mix": 1.0, "order": "deviation"}),
    ],
)
def test_models_saved_before_a_parameter_was_added(template, added, way, tmp_path):
    model = copy.deepcopy(template).fit(X, y)
    expected = model.decision_function(X)
    for name in added:
        delattr(model, name)
    again = way(model, tmp_path)
    assert added.items() <= again.get_params().items()
    np.testing.assert_array_equal(again.decision_function(X), expected)
    np.testing.assert_array_equal(again.fit(X, y).decision_function(X), expected)


def test_file_of_an_older_version():
    """Written before `loss`, `device` and `cache_size`, and before models noted their version."""
    model = persistence.load(Path(__file__).parent / "files" / "moons-2026-11.skops")
    assert model.get_params() == OWASVC(C=2.0).get_params()
    expected = OWASVC(C=2.0).fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("template", [OWASVC(), LinearOWASVC(), TwoStepOWASVC()])
def test_models_keep_to_themselves_which_version_saved_them(template):
    model = copy.deepcopy(template).fit(X, y)
    assert vars(through_pickle(model, None)).keys() == vars(model).keys()
    assert vars(through_pickle(template, None)).keys() == vars(template).keys()


@pytest.mark.parametrize(
    ("template", "lost"),
    [(OWASVC(), "_kernel"), (LinearOWASVC(), "coef_"), (OWASVC(), "support_")],
)
def test_models_too_old_to_predict_say_so(template, lost):
    model = copy.deepcopy(template).fit(X, y)
    state = {name: value for name, value in vars(model).items() if name != lost}
    words = f"saved by an older version of owasvm and has no {lost}.*Train it again"
    with pytest.raises(ValueError, match=words):
        type(template)().__setstate__(state)
    words = f"saved by version 0.0.3 of owasvm and has no {lost}, which version"
    with pytest.raises(ValueError, match=words):
        type(template)().__setstate__({**state, "_owasvm_version": "0.0.3"})


def test_model_files_too_old_to_predict_say_so(saved):
    def change(schema):
        del schema["content"]["content"]["_kernel"]
        return schema

    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=r"was not loaded\. This OWASVC .* no _kernel"):
        persistence.load(saved)


def test_saving_does_not_change_the_model(tmp_path):
    model = make_pipeline(StandardScaler(), OWASVC()).fit(X, y)
    details = model[-1].solution_.details
    assert details
    persistence.save(model, tmp_path / "model.skops")
    assert model[-1].solution_.details is details


def test_certificate_comes_back(tmp_path):
    model = OWASVC().fit(X, y)
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    for name in ("objective_", "lower_bound_", "gap_", "status_", "n_iter_", "convex_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.solution_.status is Status.OPTIMAL
    assert again.solution_.gap == model.solution_.gap
    np.testing.assert_array_equal(again.solution_.dual, model.solution_.dual)


def test_loaded_model_can_go_on(tmp_path):
    persistence.save(OWASVC(warm_start=True).fit(X, y), tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    assert again.fit(X, y).status_ == "optimal"


def test_metadata(tmp_path):
    path = tmp_path / "model.skops"
    model = make_pipeline(StandardScaler(), OWASVC()).fit(NAMED, WORDS)
    persistence.save(model, path, metadata={"target": "kind", "n": 3})
    card = persistence.read_metadata(path)
    assert card["metadata"] == {"target": "kind", "n": 3}
    assert card["model"] == "OWASVC"
    assert card["classes"] == ["no", "yes"]
    assert card["feature_names"] == ["height", "weight"] and card["n_features"] == 2
    assert card["versions"]["owasvm"] == owasvm.__version__
    assert list(persistence.load(path).feature_names_in_) == ["height", "weight"]


def test_plain_skops_reads_the_file_as_well(saved):
    names = skops_io.get_untrusted_types(file=saved)
    assert all(name.startswith("owasvm.") for name in names)
    assert isinstance(skops_io.load(saved, trusted=names), OWASVC)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (OWASVC(), "not fitted"),
        (SVC().fit(X, y), "Only fitted classifiers of owasvm.* got SVC"),
        (make_pipeline(StandardScaler(), SVC()).fit(X, y), "got Pipeline"),
        (OWASVC(weights=lambda r: r**0.5).fit(X, y), "foreign code.*<lambda>"),
        (OWASVC(kernel=lambda a, b: a @ b.T).fit(X, y), "foreign code.*<lambda>"),
        (make_pipeline(FunctionTransformer(os.path.isdir), OWASVC()), "not fitted"),
    ],
)
def test_what_cannot_be_saved(model, words, tmp_path):
    with pytest.raises(ModelFileError, match=words):
        persistence.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_metadata_must_be_json(tmp_path):
    with pytest.raises(ModelFileError, match="metadata must be what JSON can hold"):
        persistence.save(OWASVC().fit(X, y), tmp_path / "m.skops", metadata={"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        persistence.save(OWASVC(C=7.0).fit(X, y), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_file_has_the_usual_permissions(saved):
    (saved.parent / "plain").touch()
    assert saved.stat().st_mode == (saved.parent / "plain").stat().st_mode


def test_symbolic_link_is_followed(tmp_path):
    (tmp_path / "link.skops").symlink_to(tmp_path / "real.skops")
    persistence.save(OWASVC().fit(X, y), tmp_path / "link.skops")
    assert (tmp_path / "link.skops").is_symlink()
    assert isinstance(persistence.load(tmp_path / "real.skops"), OWASVC)


@pytest.mark.parametrize("target", ["/dev/null", ".", "no/such/folder/model.skops"])
def test_where_no_file_can_go(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r"not a file|does not exist"):
        persistence.save(OWASVC().fit(X, y), target)
    assert Path("/dev/null").is_char_device()
    assert list(tmp_path.iterdir()) == []


class Trap:
    """Leaves a trace when it is unpickled."""

    trace: Path

    def __reduce__(self):
        return (os.mkdir, (str(Trap.trace),))


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A path that exists as soon as foreign code has run."""
    path = tmp_path / "code-has-run"
    monkeypatch.setattr(Trap, "trace", path, raising=False)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "trap_module.py").write_text(
        f"import pathlib\npathlib.Path({str(path)!r}).touch()\n"
        "class Thing(list):\n    pass\ndef function(*arguments):\n    return []\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield path
    sys.modules.pop("trap_module", None)


def rewrite(path, change):
    """Change the schema of a model file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    members["schema.json"] = json.dumps(change(schema)).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def node(loader, module="trap_module", name="Thing", **fields):
    return {"__class__": name, "__module__": module, "__loader__": loader, **fields}


EMPTY_LIST = node("ListNode", "builtins", "list", content=[])
EMPTY_DICT = node("DictNode", "builtins", "dict", content={}, key_types=EMPTY_LIST)
PATH = node("JsonNode", "builtins", "str", content='"/tmp"', is_json=True)
OUTSIDERS = {
    "object": node("ObjectNode", content=EMPTY_DICT),
    "constructor": node("ConstructorFromReduceNode", content=EMPTY_LIST),
    "function": node("FunctionNode", name="function"),
    "type": node("TypeNode"),
    "list": node("ListNode", content=[]),
    "set": node("SetNode", content=[]),
    "tuple": node("TupleNode", content=[]),
    "dict": node("DictNode", content={}, key_types=EMPTY_LIST),
    "array": node("NdArrayNode", type="json", content=[], shape=EMPTY_LIST),
    "method": node("MethodNode", content={"func": "x", "obj": node("ObjectNode")}),
    "partial": node(
        "PartialNode",
        "functools",
        "partial",
        content={
            "func": node("FunctionNode", name="function"),
            "args": EMPTY_LIST,
            "kwds": EMPTY_DICT,
            "namespace": EMPTY_DICT,
        },
    ),
    "system call": node("FunctionNode", "os", "system"),
    "method caller": node(
        "OperatorFuncNode",
        "operator",
        "methodcaller",
        attrs=node("TupleNode", "builtins", "tuple", content=[PATH]),
    ),
    "call at loading": node(
        "ConstructorFromReduceNode",
        "os",
        "system",
        content=node("TupleNode", "builtins", "tuple", content=[PATH]),
    ),
}


@pytest.mark.parametrize("kind", OUTSIDERS)
@pytest.mark.parametrize("hidden", [False, True])
def test_foreign_types_are_refused_before_their_module_is_imported(kind, hidden, saved, trace):
    def change(schema):
        if not hidden:
            kept = {key: schema[key] for key in ("protocol", "_skops_version")}
            return {**OUTSIDERS[kind], **kept}
        schema["content"]["content"]["gamma_"] = OUTSIDERS[kind]
        return schema

    rewrite(saved, change)
    with pytest.raises(ModelFileError) as caught:
        persistence.load(saved)
    assert "\n" not in str(caught.value) and str(saved) in str(caught.value)
    assert "trap_module" not in sys.modules
    assert not trace.exists()


def test_the_traps_would_close(saved, trace):
    """Who trusts the type of the file runs its code: the refusals above are not vacuous."""

    def change(schema):
        schema["content"]["content"]["extra_"] = OUTSIDERS["object"]
        return schema

    model = OWASVC().fit(X, y)
    model.extra_ = 1.0
    persistence.save(model, saved)
    rewrite(saved, change)
    model = persistence.load(saved, trusted=["trap_module.Thing"])
    assert trace.exists() and type(model.extra_).__name__ == "Thing"


def test_dumped_foreign_object_is_refused(tmp_path, trace):
    model = OWASVC().fit(X, y)
    persistence.save(model, tmp_path / "model.skops")
    model.extra_ = np.array([1.0]).view(type("Strange", (np.ndarray,), {}))
    with pytest.raises(ModelFileError, match="Strange"):
        persistence.save(model, tmp_path / "model.skops")
    assert not trace.exists()


def test_pickle_is_no_model_file(tmp_path, trace):
    payload = pickle.dumps(Trap())
    (tmp_path / "model.skops").write_bytes(payload)
    with pytest.raises(ModelFileError, match="no model file"):
        persistence.load(tmp_path / "model.skops")
    assert not trace.exists()
    pickle.loads(payload)
    assert trace.exists()


def test_pickled_array_inside_is_not_unpickled(saved, trace):
    payload = io.BytesIO()
    np.save(payload, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    assert arrays
    with zipfile.ZipFile(saved, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, payload.getvalue() if name in arrays else data)
    with pytest.raises(ModelFileError, match="no model file"):
        persistence.load(saved)
    assert not trace.exists()


def test_other_estimators_are_no_classifiers(saved):
    skops_io.dump(SVC().fit(X, y), saved.parent / "svc.skops")
    with pytest.raises(ModelFileError, match="no model file"):
        persistence.load(saved.parent / "svc.skops")
    with zipfile.ZipFile(saved) as archive:
        card = archive.read("owasvm.json")
    with zipfile.ZipFile(saved.parent / "svc.skops", "a") as archive:
        archive.writestr("owasvm.json", card)
    with pytest.raises(ModelFileError, match="holds a SVC, not a classifier of owasvm"):
        persistence.load(saved.parent / "svc.skops")


@pytest.mark.parametrize("size", [0, 1, 100, 1000, -1, -100])
def test_truncated_file(size, saved):
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(ModelFileError, match="no model file"):
        persistence.load(saved)


def test_flipped_bytes_never_escape(saved):
    """Damage anywhere is refused, or harmless; no other exception gets out."""
    data = saved.read_bytes()
    refused = 0
    random = np.random.default_rng(0)
    for position in random.integers(0, len(data), size=60):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        saved.write_bytes(bytes(damaged))
        try:
            persistence.load(saved)
        except ModelFileError:
            refused += 1
    assert refused > 30


def test_future_format(saved):
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["owasvm.json"] = members["owasvm.json"].replace(b'"format": 1', b'"format": 2')
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="model format 2, this version of owasvm reads 1"):
        persistence.load(saved)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        persistence.load(tmp_path / "nothing.skops")


def test_without_skops_the_message_names_the_extra(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"needs skops.*owasvm\[cli\]"):
        persistence.load(saved)
