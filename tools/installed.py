"""Try symsvm as it is installed: the library, the command line and the service, one line a check.

    python -I tools/installed.py 0.1.0

The interpreter is that of the environment that has the package (with the extra `serve`), the directory is not the
source tree, and the argument is the version that has to be there: `make check` does so.
"""

import contextlib
import http.client
import importlib
import importlib.metadata
import json
import pkgutil
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path

EXTRAS = {"clarabel", "jax", "matplotlib", "onnx", "onnxruntime"}  # modules of the extras that are not installed
MINUTES = 5  # after which a command is ended, and the check fails
SCRIPT = str(Path(sysconfig.get_path("scripts"), "symsvm"))
# Windows has no SIGTERM: a process is stopped by Ctrl-Break, which reaches its whole group.
WINDOWS = sys.platform == "win32"
GROUP = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if WINDOWS else {}
STOP = signal.CTRL_BREAK_EVENT if WINDOWS else signal.SIGTERM


def require(holds, sentence):
    """End with a sentence where something does not hold."""
    if not holds:
        sys.exit(f"error: {sentence}")


def points():
    """Three groups of 20 points in the plane, far from each other, and their labels."""
    import numpy as np

    y = np.arange(60) % 3
    X = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[y] + np.random.default_rng(0).normal(size=(60, 2))
    return X, np.array(["ant", "bee", "cow"])[y]


def command(*words, module=False):
    """Run the script `symsvm` of this environment, or `python -m symsvm`; what it writes to stdout."""
    program = [sys.executable, "-m", "symsvm"] if module else [SCRIPT]
    line = [*program, *map(str, words)]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60 * MINUTES)
    require(ended.returncode == 0, f"{' '.join(line)} ended with code {ended.returncode}.\n{ended.stderr}")
    return ended.stdout


def check_place(version):
    import symsvm

    where, site = Path(symsvm.__file__).resolve(), Path(sysconfig.get_path("purelib")).resolve()
    require(where.is_relative_to(site), f"symsvm is imported from {where}, not from {site}.")
    found = symsvm.__version__, importlib.metadata.version("symsvm")
    require(found == (version, version), f"the version is {found[0]}, and {found[1]} in the metadata, not {version}.")
    return f"symsvm {version} is imported from site-packages"


def check_modules():
    import symsvm

    names, without = ["symsvm", *(m.name for m in pkgutil.walk_packages(symsvm.__path__, "symsvm."))], []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing = {e.name for e in (error, error.__context__) if isinstance(e, ImportError) and e.name}
            require(missing & EXTRAS, f"{name} cannot be imported: {error}")
            without.append(name)
    return f"{len(names) - len(without)} of {len(names)} modules are imported; {len(without)} need another extra"


def check_library():
    import symsvm

    X, y = points()
    model = symsvm.SVC(C=10.0).fit(X, y)
    require(model.score(X, y) == 1.0, f"SVC is right about {model.score(X, y):.3f} of points that are easy.")
    states = {certificate.status for certificate in model.certificate_}
    require(states == {"optimal"}, f"the certificates of SVC say {sorted(states)}, not optimal.")
    symsvm.save(model, "library.symsvm")
    again = symsvm.load("library.symsvm")
    equal = (again.decision_function(X) == model.decision_function(X)).all()
    require(equal, "a model that was saved and loaded has other decision values.")
    return "SVC is fitted, certified, saved and loaded"


def check_command(version):
    for module in (False, True):
        said = command("--version", module=module)
        require(said == f"symsvm {version}\n", f"--version says {said!r}.")
        name = "python -m symsvm" if module else "symsvm"
        said = command("--help", module=module)
        require(said.startswith(f"Usage: {name} "), f"the help of {name} begins with {said[:40]!r}.")
    return "symsvm and python -m symsvm say their version and their usage"


def check_files():
    X, y = points()
    rows = [f"{u!r},{v!r},{kind}\n" for (u, v), kind in zip(X.tolist(), y, strict=True)]
    Path("points.csv").write_text("a,b,kind\n" + "".join(rows), encoding="utf-8")
    command("train", "points.csv", "--labels", "kind", "-c", 10, "-o", "points.symsvm")
    for module in (False, True):
        found = command("predict", "points.symsvm", "points.csv", "--labels", "kind", module=module).split()
        require(found == y.tolist(), f"symsvm predict prints {found[:5]} ..., not {y[:5].tolist()} ...")
    return "symsvm train reads a CSV file, symsvm predict predicts its labels"


@contextlib.contextmanager
def service(model):
    """`symsvm serve` on a free port of the loopback address: the process, and a connection to it."""
    line = [SCRIPT, "serve", model, "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, **GROUP) as process:
        end = threading.Timer(60 * MINUTES, process.kill)
        end.start()
        try:
            said = []
            for text in process.stderr:
                said.append(text)
                if found := re.search(r"at http://127\.0\.0\.1:(\d+)/", text):
                    break
            else:
                require(False, f"symsvm serve ended before it served.\n{''.join(said)}")
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            yield process, connection
            connection.close()
        finally:
            end.cancel()
            if process.poll() is None:
                process.kill()


def check_service():
    from importlib import resources

    X, y = points()
    with service("points.symsvm") as (process, connection):

        def ask(method, path, body=None):
            connection.request(method, path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            content = answer.read()
            require(answer.status == 200, f"{method} {path} is answered with {answer.status}: {content[:200]!r}.")
            return content

        answer = json.loads(ask("POST", "/v1/predict", json.dumps({"rows": X[:1].tolist()})))
        label = answer["predictions"][0]["label"]
        require(label == y[0], f"the service predicts {label!r}, not {y[0]!r}.")
        files = list((resources.files("symsvm.serve") / "page").iterdir())
        routes = {"index.html": "/", "docs.html": "/docs"}
        require({file.name for file in files} > set(routes), "the installed package has no page.")
        for file in files:
            route = routes.get(file.name, f"/assets/{file.name}")
            require(ask("GET", route) == file.read_bytes(), f"{route} is not the file {file.name} of the package.")
        page = ask("GET", "/").decode()
        for asset in re.findall(r'(?:src|href)="(/assets/[^"]+)"', page):
            ask("GET", asset)
        process.send_signal(STOP)
        rest = process.stderr.read()
        code = process.wait()
        require((code, "stopped" in rest) == (0, True), f"symsvm serve ended with code {code}.\n{rest}")
    return f"symsvm serve predicts over HTTP, serves its page of {len(files)} files, and stops"


def main():
    """Run the checks in an empty directory."""
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        print(f"ok: {check_place(version)}", flush=True)
        print(f"ok: {check_modules()}", flush=True)
        print(f"ok: {check_library()}", flush=True)
        print(f"ok: {check_command(version)}", flush=True)
        print(f"ok: {check_files()}", flush=True)
        print(f"ok: {check_service()}", flush=True)


if __name__ == "__main__":
    main()
