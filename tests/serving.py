"""A service for the tests: small models in files, and a server in a thread of this process."""

import contextlib
import socket
import threading
import time

import httpx
import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import symsvm
from symsvm.data import Scaling
from symsvm.serve import Settings, create_app
from symsvm.serve.server import create_server
from symsvm.text import classifier

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TEXTS = [
    "the orbit of the moon",
    "a rocket in orbit",
    "the goal of the match",
    "a match on ice",
    "boot the disk",
    "a disk",
]
GROUPS = ["sci.space", "sci.space", "rec.sport", "rec.sport", "comp.hardware", "comp.hardware"]

MODELS = {
    "text": lambda: classifier().fit(TEXTS * 3, GROUPS * 3),
    "plain text": lambda: classifier(calibration=None).fit(TEXTS * 3, GROUPS * 3),
    "numbers": lambda: make_pipeline(Scaling((-1, 1)), symsvm.SVC(calibration="sigmoid", random_state=0)).fit(
        X, NAMES[y]
    ),
    "pairs": lambda: symsvm.SVC(decision_function_shape="ovo").fit(X, y),
    "rest": lambda: symsvm.SVC(multi_class="ovr", kernel="laplacian").fit(X, y * 2.0),
    "dag": lambda: symsvm.SVC(multi_class="dag", kernel="poly").fit(X, NAMES[y]),
    "two": lambda: symsvm.SVC(kernel="linear").fit(X, y == 1),
    "linear": lambda: symsvm.LinearSVC().fit(X, y),
    "value": lambda: symsvm.SVR().fit(X[:, 1:], X[:, 0]),
    "linear value": lambda: symsvm.LinearSVR().fit(X[:, 1:], X[:, 0]),
    "side": lambda: symsvm.OneClassSVM(nu=0.1).fit(X[:, :3]),
}


@contextlib.contextmanager
def serving(path, *, loop="auto", **limits):
    """A running service: yields a client, with the application as `client.app`; `loop` is a setting of uvicorn."""
    settings = Settings(**limits)
    running = create_server(create_app(path, settings), settings)
    running.config.loop = loop
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.005)
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=30) as client:
            client.app, client.server = running.config.app, running
            yield client
    finally:
        running.should_exit = True
        thread.join()
        listening.close()


def wait_for(condition, seconds=20):
    """Wait until a condition holds; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def raw(client, request, *, pause=None):
    """The bytes that the service returns for raw bytes, or for a list of them sent `pause` seconds apart."""
    parts = [request] if isinstance(request, bytes) else request
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as connection:
        with contextlib.suppress(ConnectionError):  # the service may have closed it by now
            for part in parts:
                connection.sendall(part)
                if pause:
                    time.sleep(pause)
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                found += part
        return found
