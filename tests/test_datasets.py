"""The datasets: folders, cache, downloads from a server on this machine."""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from owasvm import datasets
from owasvm.cli import main

pytest.importorskip("pooch")

CONTENT = b"+1 1:0.5 3:-1\n-1 2:1\n-1 1:-0.25 2:0.125\n"
FEATURES = np.array([[0.5, 0, -1, 0], [0, 1, 0, 0], [-0.25, 0.125, 0, 0]])
FILE = "german.numer_scale"
# A fixture hides the variable from the tests.
REAL_FOLDER = os.environ.get("OWASVM_DATA")

Answer = Callable[[BaseHTTPRequestHandler], None]


def good(request: BaseHTTPRequestHandler) -> None:
    _send(request, CONTENT, len(CONTENT))


def other_file(request: BaseHTTPRequestHandler) -> None:
    _send(request, CONTENT[::-1], len(CONTENT))


def cut_short(request: BaseHTTPRequestHandler) -> None:
    _send(request, CONTENT[:20], len(CONTENT))
    request.close_connection = True


def cut_short_without_length(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    request.wfile.write(CONTENT[:20])
    request.close_connection = True


def broken(request: BaseHTTPRequestHandler) -> None:
    request.send_error(500)


def absent(request: BaseHTTPRequestHandler) -> None:
    request.send_error(404)


def _send(request: BaseHTTPRequestHandler, body: bytes, length: int) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(length))
    request.end_headers()
    request.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Answers every request in the same way, and remembers what was asked for."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        self.paths: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.paths.append(self.path)
                answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/binary"


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Server]]:
    servers = []

    def start(answer: Answer) -> Server:
        server = Server(answer)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def unused_address() -> str:
    server = Server(good)
    address = server.address
    server.server_close()
    return address


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """No file of the user, no network, an empty cache."""
    monkeypatch.delenv("OWASVM_DATA", raising=False)
    monkeypatch.setenv("OWASVM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OWASVM_MIRRORS", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def tiny(monkeypatch):
    """A made-up dataset in the place of ``german``."""
    info = replace(
        datasets.info("german"),
        n_samples=3,
        n_features=4,
        n_positives=1,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(datasets.REGISTRY, "german", info)
    return info


def cached(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_names_are_in_the_order_of_the_paper():
    assert [datasets.info(name).label for name in datasets.names()] == [
        "IONO",
        "WBC",
        "AUS",
        "DIA",
        "GC",
        "SPL",
    ]


def test_module_table_tells_what_the_registry_holds():
    for info in datasets.REGISTRY.values():
        row = next(line for line in datasets.__doc__.splitlines() if line.startswith(info.name))
        figures = [info.label, info.n_samples, info.n_features, info.n_positives]
        assert row.split()[1:5] == [str(figure) for figure in figures]
        assert row.endswith(info.positive)


def test_wbc_needs_no_file():
    dataset = datasets.load("wbc", download=False)
    X, y = dataset
    assert X.shape == (569, 30) and X.dtype == np.float64
    assert y.dtype == np.int64 and sorted(set(y.tolist())) == [-1, 1]
    # 62.7 % of the paper are the benign ones.
    assert (y == 1).sum() == datasets.info("wbc").n_positives == 357
    np.testing.assert_allclose(X.min(axis=0), -1.0)
    np.testing.assert_allclose(X.max(axis=0), 1.0)
    assert dataset.data is X and dataset.target is y


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'iris' is no dataset; use one of ionosphere, wbc"):
        datasets.load("iris")


@pytest.mark.parametrize("by_argument", [True, False])
@pytest.mark.usefixtures("tiny")
def test_file_in_a_folder(tmp_path, monkeypatch, by_argument):
    (tmp_path / FILE).write_bytes(CONTENT)
    if not by_argument:
        monkeypatch.setenv("OWASVM_DATA", str(tmp_path))
    X, y = datasets.load("german", data_home=tmp_path if by_argument else None, download=False)
    np.testing.assert_array_equal(X, FEATURES)
    np.testing.assert_array_equal(y, [1, -1, -1])
    assert cached(tmp_path) == []


@pytest.mark.usefixtures("tiny")
def test_data_home_comes_before_the_environment(tmp_path, monkeypatch):
    for folder, content in (("first", CONTENT), ("second", b"something else")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / FILE).write_bytes(content)
    monkeypatch.setenv("OWASVM_DATA", str(tmp_path / "second"))
    assert datasets.locate("german", data_home=tmp_path / "first") == tmp_path / "first" / FILE
    with pytest.raises(datasets.DatasetError):
        datasets.locate("german")


@pytest.mark.usefixtures("tiny")
def test_wrong_file_in_a_folder_is_named_with_both_sums(tmp_path):
    (tmp_path / FILE).write_bytes(CONTENT + b"\n")
    with pytest.raises(datasets.DatasetError) as caught:
        datasets.load("german", data_home=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / FILE) in message
    assert hashlib.sha256(CONTENT + b"\n").hexdigest() in message
    assert hashlib.sha256(CONTENT).hexdigest() in message
    assert "\n" not in message


@pytest.mark.usefixtures("tiny")
def test_data_home_must_be_a_folder(tmp_path):
    with pytest.raises(datasets.DatasetError, match=r"data_home='.*nowhere' is not a folder"):
        datasets.load("german", data_home=tmp_path / "nowhere")


@pytest.mark.usefixtures("tiny")
def test_download_is_kept_and_not_repeated(tmp_path, monkeypatch, serve, capfd):
    server = serve(good)
    monkeypatch.setenv("OWASVM_MIRRORS", server.address)
    X, y = datasets.load("german")
    np.testing.assert_array_equal(X, FEATURES)
    np.testing.assert_array_equal(y, [1, -1, -1])
    assert server.paths == [f"/binary/{FILE}"]
    assert cached(tmp_path) == [FILE]
    again = datasets.load("german", download=False)
    np.testing.assert_array_equal(again.X, X)
    assert datasets.fetch("german") == tmp_path / "cache" / FILE
    assert server.paths == [f"/binary/{FILE}"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (other_file, "wrong checksum"),
        (cut_short, "broke off|wrong checksum"),
        (cut_short_without_length, "wrong checksum"),
        (broken, "answered 500"),
        (absent, "answered 404"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_bad_mirror_leaves_nothing_and_the_next_is_tried(
    tmp_path, monkeypatch, serve, answer, reason
):
    bad = serve(answer)
    monkeypatch.setenv("OWASVM_MIRRORS", bad.address)
    with pytest.raises(datasets.DatasetError, match=reason) as caught:
        datasets.load("german")
    assert "\n" not in str(caught.value)
    assert cached(tmp_path) == []
    fine = serve(good)
    monkeypatch.setenv("OWASVM_MIRRORS", f"{bad.address}/ {fine.address}")
    np.testing.assert_array_equal(datasets.load("german").X, FEATURES)
    assert len(bad.paths) == 2 and len(fine.paths) == 1
    assert cached(tmp_path) == [FILE]


@pytest.mark.usefixtures("tiny")
def test_first_mirror_down(tmp_path, monkeypatch, serve, unused_address):
    fine = serve(good)
    monkeypatch.setenv("OWASVM_MIRRORS", f"{unused_address} {fine.address}")
    np.testing.assert_array_equal(datasets.load("german").X, FEATURES)
    assert cached(tmp_path) == [FILE]


@pytest.mark.usefixtures("tiny")
def test_damaged_file_in_the_cache_is_replaced(tmp_path, monkeypatch, serve):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FILE).write_bytes(CONTENT[:-5])
    assert datasets.locate("german") is None
    monkeypatch.setenv("OWASVM_MIRRORS", serve(good).address)
    np.testing.assert_array_equal(datasets.load("german").X, FEATURES)
    assert (tmp_path / "cache" / FILE).read_bytes() == CONTENT


@pytest.mark.usefixtures("tiny")
def test_a_failing_mirror_does_not_touch_the_cache(tmp_path, monkeypatch, serve):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FILE).write_bytes(b"damaged")
    monkeypatch.setenv("OWASVM_MIRRORS", serve(other_file).address)
    with pytest.raises(datasets.DatasetError):
        datasets.load("german")
    assert cached(tmp_path) == [FILE]
    assert (tmp_path / "cache" / FILE).read_bytes() == b"damaged"


def test_no_network_and_no_file_says_what_to_put_where(monkeypatch, unused_address):
    monkeypatch.setenv("OWASVM_MIRRORS", unused_address)
    for download in (True, False):
        with pytest.raises(datasets.DatasetError) as caught:
            datasets.load("diabetes", download=download)
        message = str(caught.value)
        assert "diabetes_scale" in message and "OWASVM_DATA" in message
        assert "https://www.csie.ntu.edu.tw/" in message
        assert ("no connection" in message) == download
        assert "\n" not in message


@pytest.mark.usefixtures("tiny")
def test_cache_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("OWASVM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(datasets.DatasetError, match="OWASVM_CACHE"):
        datasets.load("german")


@pytest.mark.usefixtures("tiny")
def test_without_pooch_the_message_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.delenv("OWASVM_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs pooch.*owasvm\[experiments\]"):
        datasets.load("german")
    (tmp_path / FILE).write_bytes(CONTENT)
    assert datasets.load("german", data_home=tmp_path).y.sum() == -1


@pytest.mark.parametrize("name", [name for name in datasets.names() if name != "wbc"])
def test_real_files(name):
    if not REAL_FOLDER or not (Path(REAL_FOLDER) / datasets.info(name).file).is_file():
        pytest.skip(f"OWASVM_DATA names no folder with the file of {name}")
    info = datasets.info(name)
    X, y = datasets.load(name, data_home=REAL_FOLDER, download=False)
    assert X.shape == (info.n_samples, info.n_features)
    assert (y == 1).sum() == info.n_positives and set(y.tolist()) == {-1, 1}
    assert X.dtype == np.float64 and np.abs(X).max() == 1.0


@pytest.mark.usefixtures("tiny")
def test_command_lists_where_the_files_are(tmp_path, capsys):
    (tmp_path / FILE).write_bytes(CONTENT)
    assert main(["datasets", "--data-home", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == "" and len(lines) == 7
    rows = {line.split()[0]: line.split(maxsplit=5) for line in lines[1:]}
    assert tuple(rows) == datasets.names()
    assert rows["german"] == ["german", "GC", "3", "4", "1", str(tmp_path / FILE)]
    assert rows["wbc"][2:] == ["569", "30", "357", "part of scikit-learn"]
    assert rows["splice"][5] == "not here; owasvm datasets --fetch splice"


@pytest.mark.usefixtures("tiny")
def test_command_fetches(tmp_path, monkeypatch, serve, capsys):
    monkeypatch.setenv("OWASVM_MIRRORS", serve(good).address)
    assert main(["datasets", "--fetch", "german"]) == 0
    assert main(["datasets", "--fetch", "wbc"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"german: {tmp_path / 'cache' / FILE}",
        "wbc: part of scikit-learn, nothing to fetch",
    ]
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fetch", "germn"], "did you mean 'german'"),
        (["--fetch", "german"], "No mirror delivered it"),
        (["--data-home", "/no/such/folder"], "is not a folder"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_command_fails_with_one_line(arguments, words, capsys):
    assert main(["datasets", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err
    assert err.startswith("owasvm: error: ")
