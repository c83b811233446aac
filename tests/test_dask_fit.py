"""LinearOWASVC on Dask collections: the same problem as in memory, wherever the rows are."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from owasvm import LinearOWASVC
from owasvm.samples import ActiveSet, Memory, PartitionSamples, partitions
from owasvm.samples._newton_kernels import centre_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


def make_data(n_samples=600, n_features=8, **parameters):
    defaults = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.02, "class_sep": 2.0}
    defaults |= {"n_clusters_per_class": 1, "random_state": 0}
    parameters = defaults | parameters
    return make_classification(n_samples, n_features, **parameters)


def split_sparse(X, size, kind=sp.csr_matrix):
    """A Dask array of sparse blocks."""
    parts = [
        da.from_delayed(
            dask.delayed(kind(X[i : i + size])), (min(size, X.shape[0] - i), X.shape[1]), float
        )
        for i in range(0, X.shape[0], size)
    ]
    return da.concatenate(parts)


def assert_same(found, expected, rtol=1e-8):
    """Two models of the same problem, the second fitted in memory."""
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=rtol)
    np.testing.assert_array_equal(found.status_, expected.status_)
    assert np.all(np.asarray(found.lower_bound_) <= np.asarray(expected.objective_))
    assert found.coef_.shape == expected.coef_.shape
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    arrays = ("coef_", "intercept_", "owa_weights_", "dual_coef_", "support_")
    for name in (*arrays, "deviations_", "sample_costs_"):
        assert type(getattr(found, name)) is np.ndarray
    assert found.n_features_in_ == expected.n_features_in_


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"weights": "basic", "alpha": 0.2, "C": 0.01},
        {"weights": "superquantile", "alpha": 0.3, "C": 10.0},
        {"weights": "uniform", "loss": "squared_hinge"},
        {"weights": "exponential", "loss": "squared_hinge"},
    ],
)
def test_objective_is_that_of_the_fit_in_memory(parameters):
    X, y = make_data()
    model = LinearOWASVC(tol=1e-9, **parameters)
    expected = LinearOWASVC(tol=1e-9, **parameters).fit(X, y)
    # Chunks of columns, and rows that do not fill the last chunk.
    lazy = da.from_array(X, chunks=(170, 3))
    assert_same(model.fit(lazy, da.from_array(y, chunks=50)), expected)
    values = model.decision_function(lazy)
    assert isinstance(values, da.Array) and values.shape == (600,)
    np.testing.assert_allclose(values.compute(), expected.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))


def test_samples_far_from_the_origin_lose_no_digits():
    X, y = make_data()
    X = X + 1e7
    expected = LinearOWASVC(C=10.0).fit(X, y)
    found = LinearOWASVC(C=10.0).fit(da.from_array(X, chunks=(100, -1)), y)
    assert_same(found, expected, rtol=1e-6)


def test_float32_blocks():
    X, y = make_data()
    X = X.astype(np.float32)
    expected = LinearOWASVC(tol=1e-9).fit(X.astype(np.float64), y)
    assert_same(LinearOWASVC(tol=1e-9).fit(da.from_array(X, chunks=(250, -1)), y), expected)


@pytest.mark.parametrize("n_features", [30, 900])
def test_sparse_blocks(n_features):
    rng = np.random.default_rng(0)
    X = sp.random(400, n_features, density=0.05, format="csr", random_state=0)
    y = X @ rng.normal(size=n_features) + 0.1 * rng.normal(size=400) > 0
    expected = LinearOWASVC(tol=1e-9, C=0.3).fit(X, y)
    found = LinearOWASVC(tol=1e-9, C=0.3).fit(split_sparse(X, 90), y)
    assert_same(found, expected)
    assert found.predict(split_sparse(X, 90)).compute().dtype == bool


def test_dense_and_sparse_blocks_side_by_side():
    X, y = make_data()
    lazy = da.concatenate([split_sparse(X[:200], 100), da.from_array(X[200:], chunks=(150, -1))])
    assert_same(LinearOWASVC(tol=1e-9).fit(lazy, y), LinearOWASVC(tol=1e-9).fit(X, y))


def test_data_frames_keep_names_and_may_have_unknown_or_empty_partitions():
    X, y = make_data(300)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]).assign(label=y, row=range(300))
    lazy = dd.from_pandas(frame, npartitions=4)
    # Nobody knows how many rows are left, of the second partition none.
    lazy = lazy[(lazy["row"] < 70) | (lazy["row"] >= 160)].drop(columns="row")
    frame = lazy.compute()
    features, labels = lazy.drop(columns="label"), lazy["label"]
    model = LinearOWASVC(tol=1e-9).fit(features, labels)
    expected = LinearOWASVC(tol=1e-9).fit(frame.drop(columns="label"), frame["label"])
    assert_same(model, expected)
    np.testing.assert_array_equal(model.feature_names_in_, expected.feature_names_in_)
    np.testing.assert_array_equal(
        model.predict(features).compute(), model.predict(frame.drop(columns="label"))
    )
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        model.predict(features.rename(columns={"x0": "z"}))


def test_files_of_parquet_are_read_again_for_every_pass(tmp_path):
    X, y = make_data(300)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]).assign(label=y)
    for part in range(3):
        frame[100 * part : 100 * (part + 1)].to_parquet(tmp_path / f"{part}.parquet")
    lazy = dd.read_parquet(tmp_path)
    found = LinearOWASVC(tol=1e-9).fit(lazy.drop(columns="label"), lazy["label"])
    assert_same(found, LinearOWASVC(tol=1e-9).fit(X, y))


def test_sample_weights_and_classes():
    X, y = make_data(n_classes=3, n_informative=6)
    labels = np.array(["left", "middle", "right"])[y]
    weights = np.random.default_rng(0).integers(0, 3, size=y.size).astype(float)
    parameters = {"class_weight": "balanced", "tol": 1e-9}
    expected = LinearOWASVC(**parameters).fit(X, labels, sample_weight=weights)
    model = LinearOWASVC(**parameters).fit(
        da.from_array(X, chunks=(130, -1)),
        da.from_array(labels, chunks=200),
        sample_weight=da.from_array(weights, chunks=77),
    )
    assert_same(model, expected)
    np.testing.assert_allclose(model.owa_weights_.sum(axis=1), expected.owa_weights_.sum(axis=1))
    assert model.decision_function(da.from_array(X, chunks=(130, -1))).shape == (600, 3)


def test_persisted_data_and_shared_graphs():
    X, y = make_data(300)
    expected = LinearOWASVC(tol=1e-9).fit(X, y)
    whole = dask.delayed(np.asarray)(X)
    shared = da.from_delayed(whole, X.shape, X.dtype).rechunk((100, -1))
    for lazy in (da.from_array(X, chunks=(100, -1)).persist(), shared):
        assert_same(LinearOWASVC(tol=1e-9).fit(lazy, y), expected)


def test_warm_start():
    X, y = make_data()
    lazy = da.from_array(X, chunks=(170, -1))
    found, expected = LinearOWASVC(warm_start=True), LinearOWASVC(warm_start=True)
    for C in (1.0, 1.1):
        found.set_params(C=C).fit(lazy, y)
        assert_same(found, expected.set_params(C=C).fit(X, y))
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.parametrize("gathered", [False, True])
def test_scatter_of_tied_rows_across_partitions(gathered):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    samples = PartitionSamples(partitions.Partitions.of(da.from_array(X, chunks=(30, -1)), "test"))
    rows = samples._parts
    origin = X.mean(axis=0)
    np.testing.assert_allclose(samples._origin, origin, atol=1e-14)
    chosen = rng.permutation(200)[:120]
    # Blocks of 40 on their own, then of 1, 30, 4 and 45 samples, one of them shrunk in part.
    offsets = np.array([0, 40, 41, 71, 75, 120])
    root = np.sqrt(rng.integers(1, 4, size=120).astype(float))
    active = ActiveSet(
        samples=chosen,
        offsets=offsets,
        shrink=np.array([0.0, 1.0, 0.3, 1.0, 1.0]),
        root=root,
        tie=root * rng.choice([-1.0, 1.0], size=120),
        ridge=1.0,
        imbalance=0.0,
        free=True,
        accuracy=1e-9,
        memory=Memory(),
    )
    coef = rng.normal(size=200) * (np.arange(200) > 70)
    total, found = rows.sum_up(origin, coef, active, gathered=gathered)
    np.testing.assert_allclose(total, (X - origin).T @ coef, atol=1e-12)
    if gathered:
        np.testing.assert_array_equal(found, (X - origin)[chosen])
        return
    B = (X - origin)[chosen] * root[:, None]
    centre_rows(B, active.tie, offsets, active.shrink)
    np.testing.assert_allclose(found.matrix, B.T @ B, atol=1e-11)
    np.testing.assert_allclose(found.coupling, B.T @ active.ones, atol=1e-11)
    assert found.ties.block.size == 0


def test_many_tied_blocks_are_not_all_coupled(monkeypatch):
    """Steps that tie the largest blocks only are others, and lead to the same solution."""
    X, y = make_data(2000, n_informative=8, class_sep=0.5)
    expected = LinearOWASVC(tol=1e-9).fit(X, y)
    monkeypatch.setattr(partitions, "_TIED_NUMBERS", 0)
    n_tied = []
    loosen = partitions._loosen

    def watch(active, n_blocks):
        n_tied.append(active.offsets.size - 2)
        return loosen(active, n_blocks)

    monkeypatch.setattr(partitions, "_loosen", watch)
    found = LinearOWASVC(tol=1e-9).fit(da.from_array(X, chunks=(500, -1)), y)
    assert max(n_tied) > 10 * X.shape[1]
    assert_same(found, expected)


def test_falling_weights_by_dca_and_refused_elsewhere():
    # With classes that can be separated rounding decides where a descent ends.
    X, y = make_data(120, 4, class_sep=0.7)
    lazy = da.from_array(X, chunks=(50, -1))
    parameters = {"weights": "trimmed", "alpha": 0.1, "C": 1.0}
    one_descent = {"solver": "dca", "solver_options": {"n_init": 1}}
    weights = np.random.default_rng(0).integers(1, 3, size=y.size).astype(float)
    for mass in (None, weights):
        expected = LinearOWASVC(**one_descent, **parameters).fit(X, y, sample_weight=mass)
        found = LinearOWASVC(**parameters).fit(lazy, y, sample_weight=mass)
        assert found.status_ == "local"
        np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
        np.testing.assert_allclose(found.lower_bound_, expected.lower_bound_, rtol=1e-6)
    with pytest.raises(ValueError, match=r"solver='branch-and-bound' needs all samples in memory"):
        LinearOWASVC(solver="branch-and-bound", **parameters).fit(lazy, y)
    with pytest.raises(ValueError, match=r"use solver='auto' or 'newton', or load the samples"):
        LinearOWASVC(solver="ogryczak-tamir").fit(lazy, y)


def spoil(X, value):
    X = X.copy()
    X[450, 2] = value
    return X


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (spoil(X, np.nan), y),
        lambda X, y: (spoil(X, np.inf), y),
        lambda X, y: (X, y[:-1]),
        lambda X, _: (X, np.zeros(600)),
        lambda X, _: (X, np.linspace(0.0, 1.0, 600)),
        lambda X, _: (X, None),
        lambda X, y: (X[:0], y[:0]),
        lambda X, y: (X[:, :0], y),
        lambda X, y: (X.astype(complex), y),
        lambda _, y: (np.full((600, 2), "text", dtype=object), y),
    ],
)
def test_bad_input_is_refused_as_in_memory(change):
    X, y = change(*make_data())
    with pytest.raises(ValueError) as expected:
        LinearOWASVC().fit(X, y)
    with pytest.raises(ValueError) as found:
        LinearOWASVC().fit(da.from_array(X, chunks=(100, 4)), y)
    assert str(found.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_other_shapes_and_bad_weights_are_refused():
    X, y = make_data()
    lazy = da.from_array(X, chunks=(100, 4))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        LinearOWASVC().fit(lazy[:, 0], y)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(5,\)"):
        LinearOWASVC().fit(lazy, y, sample_weight=da.ones(5))
    model = LinearOWASVC().fit(lazy, y)
    with pytest.raises(ValueError, match="X has 7 features, but LinearOWASVC is expecting 8"):
        model.predict(lazy[:, :7])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(da.from_array(spoil(X, np.nan), chunks=(100, 4))).compute()


def test_predictions_are_lazy():
    X, y = make_data()
    model = LinearOWASVC().fit(X, y)

    def fail(_):
        raise RuntimeError("read")

    lazy = da.from_array(X, chunks=(100, -1)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    labels, values = model.predict(lazy), model.decision_function(lazy)
    assert labels.dtype == model.classes_.dtype and labels.chunks == ((100,) * 6,)
    with pytest.raises(RuntimeError, match="read"):
        values.compute()


class Source:
    """A Dask array whose blocks note that they are read, and do something at some reading."""

    def __init__(self, X, at, action):
        self.n_read, self.at, self.action = 0, at, action
        self.array = da.from_array(X, chunks=(200, -1)).map_blocks(
            self.read, dtype=float, meta=np.empty((0, 0))
        )

    def read(self, block):
        self.n_read += 1
        if self.n_read == self.at:
            self.action()
        return block


def test_ctrl_c_keeps_the_best_point():
    X, y = make_data()
    source = Source(X, 40, lambda: os.kill(os.getpid(), signal.SIGINT))
    model = LinearOWASVC()
    with pytest.raises(KeyboardInterrupt):
        model.fit(source.array, y)
    assert model.status_ == "interrupted"
    assert model.objective_ >= LinearOWASVC().fit(X, y).lower_bound_ >= model.lower_bound_


def test_time_limit_keeps_the_best_point():
    X, y = make_data()
    source = Source(X, 40, lambda: time.sleep(0.6))
    model = LinearOWASVC(time_limit=0.5)
    with pytest.warns(ConvergenceWarning, match="status time_limit"):
        model.fit(source.array, y)
    assert model.objective_ >= LinearOWASVC().fit(X, y).lower_bound_ >= model.lower_bound_


def test_a_partition_that_kills_workers_is_an_error_that_says_so(monkeypatch):
    class KilledWorker(Exception):
        """As distributed names it."""

    def compute(*_):
        raise KilledWorker

    monkeypatch.setattr(dask, "compute", compute)
    with pytest.raises(MemoryError, match="make the partitions smaller"):
        LinearOWASVC().fit(da.ones((4, 2), chunks=(2, -1)), [0, 1, 0, 1])


def test_dask_is_imported_by_its_own_collections_only():
    code = "import sys; from owasvm import LinearOWASVC; sys.exit('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- a cluster ---------------------------------------------------------------------------------

MEMORY_LIMIT = 450_000_000


@pytest.fixture(scope="module")
def client():
    """Two worker processes that may hold 450 MB each, most of which is their own code."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=MEMORY_LIMIT,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_data_beyond_the_memory_of_the_workers(client, tmp_path):
    """Copies of rows are rows with a whole-number weight, and these fit into memory."""
    n_copies, n_rows, n_features = 72, 8_000, 100
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = np.where(X @ rng.normal(size=n_features) + 5.0 * rng.normal(size=n_rows) > 0, 1, -1)
    np.save(tmp_path / "rows.npy", X)
    # Each of them is read on its own.
    copies = [
        da.from_delayed(dask.delayed(np.load, pure=False)(tmp_path / "rows.npy"), X.shape, float)
        for _ in range(n_copies)
    ]
    lazy = da.concatenate(copies)
    assert lazy.nbytes > MEMORY_LIMIT
    parameters = {"C": 1e-3, "loss": "squared_hinge", "weights": "uniform", "tol": 1e-8}
    expected = LinearOWASVC(**parameters).fit(X, y, sample_weight=np.full(n_rows, n_copies))
    found = LinearOWASVC(**parameters).fit(lazy, np.tile(y, n_copies))
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    labels = found.predict(lazy)
    np.testing.assert_array_equal(labels[:n_rows].compute(), found.predict(X))
    assert len(client.scheduler_info()["workers"]) == 2


def test_a_fit_survives_the_death_of_a_worker(client, monkeypatch):
    X, y = make_data()
    parameters = {"weights": "uniform", "loss": "squared_hinge", "tol": 1e-9}
    expected = LinearOWASVC(**parameters).fit(X, y)
    n_passes, killed = [], []
    compute = partitions._compute

    def kill_one():
        time.sleep(0.1)
        killed.append(next(iter(client.run(os.getpid).values())))
        os.kill(killed[0], signal.SIGKILL)

    def count(values):
        n_passes.append(len(values))
        if len(n_passes) == 10:
            threading.Thread(target=kill_one, daemon=True).start()
        return compute(values)

    monkeypatch.setattr(partitions, "_compute", count)
    # Blocks that live on the workers die with them, and are made again.
    lazy = da.from_array(X, chunks=(100, -1)).persist()
    found = LinearOWASVC(**parameters).fit(lazy, y)
    assert len(killed) == 1
    assert_same(found, expected)
