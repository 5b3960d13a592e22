"""Downloads from a local server that interrupts, corrupts, refuses and resumes."""

import hashlib
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from symsvm.data import DataError, DownloadError, data_home, load
from symsvm.io.data import datasets
from symsvm.io.data.datasets import FILES, SETS, download

BODY = b"".join(b"%d 1:%d.5 4:2\n" % (i % 2, i) for i in range(20000))
SHA = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serve BODY by the server's `plan`: one word for each request, the last one for all later ones."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        plan = self.server.plan
        word = plan.pop(0) if len(plan) > 1 else plan[0]
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and word != "no ranges" else 0
        self.server.asked.append(start)
        body = BODY[start:]
        if word == "corrupt":
            body = body[:-3] + b"9" + body[-2:]
        if word == "missing":
            return self.send_error(404)
        if asked and start >= len(BODY):
            return self.send_error(416)
        self.send_response(206 if asked and word != "no ranges" else 200)
        if asked and word != "no ranges":
            self.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if word == "cut" else b"" if word == "nothing" else body)

    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.plan, server.asked = ["whole"], []
        server.url = f"http://127.0.0.1:{server.server_port}/svmguide1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "svmguide1"


def test_a_complete_download(server, target):
    assert download(server.url, SHA, target) == target
    assert target.read_bytes() == BODY
    assert [file.name for file in target.parent.iterdir()] == ["svmguide1"]
    download(server.url, SHA, target)
    assert server.asked == [0], "a file that exists is not requested again"


@pytest.mark.parametrize("then", ["whole", "no ranges"])
def test_an_interrupted_download_resumes(then, server, target):
    server.plan = ["cut", then]
    download(server.url, SHA, target)
    assert target.read_bytes() == BODY
    assert server.asked[0] == 0
    assert (server.asked[1] > 0) == (then == "whole")


def test_a_download_resumes_in_another_run(server, target):
    server.plan = ["cut", "nothing"]
    with pytest.raises(
        DownloadError, match=r"could not be downloaded \(the server sent fewer bytes than announced\): try again"
    ):
        download(server.url, SHA, target)
    assert not target.exists()
    half = (target.parent / "svmguide1.part").read_bytes()
    assert 0 < len(half) < len(BODY)
    assert BODY.startswith(half)
    server.plan = ["whole"]
    download(server.url, SHA, target)
    assert server.asked[-1] == len(half)
    assert target.read_bytes() == BODY


def test_a_complete_part_is_used(server, target):
    target.parent.mkdir()
    (target.parent / "svmguide1.part").write_bytes(BODY)
    download(server.url, SHA, target)
    assert target.read_bytes() == BODY


def test_a_corrupted_download_is_discarded(server, target):
    server.plan = ["corrupt"]
    with pytest.raises(DataError, match=f"the download is damaged, its SHA-256 is not {SHA}: try again") as caught:
        download(server.url, SHA, target)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert not list(target.parent.iterdir())
    server.plan = ["whole"]
    download(server.url, SHA, target)
    assert target.read_bytes() == BODY


def test_a_wrong_part_costs_one_attempt(server, target):
    target.parent.mkdir()
    (target.parent / "svmguide1.part").write_bytes(b"of another file")
    with pytest.raises(DataError, match="damaged"):
        download(server.url, SHA, target)
    download(server.url, SHA, target)
    assert target.read_bytes() == BODY


def test_errors_are_one_sentence(server, target, monkeypatch):
    server.plan = ["missing"]
    with pytest.raises(DownloadError, match="answered '404 Not Found': download it by hand to .*svmguide1, or set"):
        download(server.url, SHA, target)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}/svmguide1"
    with pytest.raises(DownloadError, match=r"could not be downloaded \(no connection\): try again, or download it"):
        download(nowhere, SHA, target)
    target.parent.rmdir()
    target.parent.write_text("a file where the directory should be")
    with pytest.raises(DownloadError, match="cannot be written"):
        download(server.url, SHA, target)


def test_tests_do_not_use_the_network(monkeypatch, tmp_path):
    """`tests/conftest.py` fails them before a packet is sent, also where the tested code catches exceptions."""
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="asked the network for .*: tests use no network but loopback"):
        load("svmguide1")
    with socket.socket() as free, pytest.raises(pytest.fail.Exception, match="asked the network for '192.0.2.1'"):
        free.connect(("192.0.2.1", 80))
    with (
        socket.socket(type=socket.SOCK_DGRAM) as free,
        pytest.raises(pytest.fail.Exception, match="asked the network for '192.0.2.1'"),
    ):
        free.sendto(b"", ("192.0.2.1", 53))
    assert not (tmp_path / "svmguide1").exists()


def test_load_downloads_missing_files(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path / "home"))
    files = {name: (f"{server.url}{name}", SHA) for name in ("svmguide1", "svmguide1.t")}
    monkeypatch.setattr(datasets, "FILES", FILES | files)
    data = load("svmguide1")
    assert data.X.shape == data.X_test.shape == (20000, 4)
    np.testing.assert_array_equal(data.X[3], [3.5, 0, 0, 2])
    assert sorted(file.name for file in (tmp_path / "home").iterdir()) == ["svmguide1", "svmguide1.t"]
    with pytest.raises(
        DownloadError, match="cadata_scale does not exist, and cannot be downloaded as it is: get cadata from https:"
    ):
        load("cadata_scale")


def test_the_progress_bar_is_shown_on_a_terminal(server, target, monkeypatch, capsys):
    monkeypatch.setattr(datasets.sys.stderr, "isatty", lambda: True, raising=False)
    download(server.url, SHA, target)
    assert "svmguide1: 100%" in capsys.readouterr().err


def test_the_registry_is_complete(monkeypatch, tmp_path):
    assert {file for entry in SETS.values() for file in (*entry.train, *entry.test)} == set(FILES)
    for url, sha in FILES.values():
        assert url is None or url.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", sha)
    monkeypatch.delenv("SYMSVM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_home().name == "symsvm"
