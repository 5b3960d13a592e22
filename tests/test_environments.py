"""Environments: a fit in each of them gives the same bits, or one sentence. docs/environments.md has the table."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits, mounts and signals are those of Linux")

# A fit of each kind of code: compiled loops, PyTensor's graphs, linear machines. It prints a digest of all numbers.
MODELS = """
import hashlib, sys, warnings
import numpy as np
X = np.random.default_rng(0).normal(size=(1200, 3))
y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1, -1)

def fit(seed=0):
    from symsvm import SVC, SVR, LinearSVC
    models = SVC(C=2.0).fit(X, y), SVR(C=0.5).fit(X[:300], X[:300, 0]), LinearSVC().fit(X, y)
    found = [models[0].dual_coef_, models[0].decision_function(X[:100]), models[1].predict(X[:100]), models[2].coef_]
    assert all(model.certificate_.status == "optimal" for model in models)
    return hashlib.sha256(b"".join(values.tobytes() for values in found)).hexdigest()
"""
FIT = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("digest", fit())
print("warnings", [str(warning.message)[:60] for warning in caught])
"""


def run(code=FIT, *, prefix=(), timeout=600, **settings):
    """What a new process prints; a setting of None removes a variable."""
    env = {**os.environ, **{name: value for name, value in settings.items() if value is not None}}
    for name in [name for name, value in settings.items() if value is None]:
        env.pop(name, None)
    command = [*prefix, sys.executable, "-c", MODELS + code]
    found = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
    return dict(line.partition(" ")[::2] for line in found.stdout.splitlines())


@pytest.fixture(scope="module")
def expected():
    found = run()
    assert found["warnings"] == "[]"
    return found["digest"]


# Settings that must change nothing, not even a bit.
SETTINGS = {
    "no compiler": {"PATH": "/nowhere", "PYTENSOR_FLAGS": "cxx="},
    "one thread of Numba": {"NUMBA_NUM_THREADS": "1"},
    "four threads of Numba": {"NUMBA_NUM_THREADS": "4"},
    "one thread of BLAS": {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    "floatX=float32": {"PYTENSOR_FLAGS": "floatX=float32"},
    "optimised Python": {"PYTHONOPTIMIZE": "2"},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("no compiler",))) for name in SETTINGS]
)
def test_a_setting_changes_no_bit(name, expected):
    assert run(**SETTINGS[name]) == {"digest": expected, "warnings": "[]"}


@pytest.mark.slow
@pytest.mark.parametrize("home", ["a file", "missing", None, "/dev/null"])
def test_a_home_that_cannot_be_written(home, tmp_path, expected):
    (tmp_path / "a file").write_text("")
    path = None if home is None else str(tmp_path / home) if "/" not in home else home
    found = run(HOME=path, XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None)
    assert found["digest"] == expected
    if home in ("a file", "/dev/null"):
        assert found["warnings"].startswith("['The cache of compiled code is of no use")


def mounted(tmp_path, options, then="true"):
    """The prefix of a command that sees a file system of its own in tmp_path; None if that is not allowed."""
    script = f'mount -t tmpfs -o {options} tmpfs {tmp_path} && {then} && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    usable = shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    return prefix if usable == 0 else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "then"), [("size=16k", "true"), ("size=1m", "mount -o remount,ro {}")], ids=["full", "read-only"]
)
def test_a_disk_that_takes_nothing(options, then, tmp_path, expected):
    prefix = mounted(tmp_path, options, then.format(tmp_path))
    if prefix is None:
        pytest.skip("no mounts are allowed here")
    flags = f"base_compiledir={tmp_path}/pytensor"
    found = run(prefix=prefix, HOME=str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path), PYTENSOR_FLAGS=flags)
    assert found["digest"] == expected
    assert found["warnings"].count("The cache of compiled code is of no use") == 1


@pytest.mark.slow
def test_processes_that_compile_at_once(tmp_path, expected):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}/pytensor"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", MODELS + FIT], stdout=subprocess.PIPE, env=env, text=True
        )
        for _ in range(3)
    ]
    for process in runs:
        assert process.communicate()[0].splitlines() == [f"digest {expected}", "warnings []"]
    assert run(NUMBA_CACHE_DIR=str(tmp_path), PYTENSOR_FLAGS=env["PYTENSOR_FLAGS"])["digest"] == expected
    assert not list(Path(tmp_path).rglob("*.tmp*"))


THREADS = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    print("digests", *set(pool.map(fit, range(8))))
"""
PROCESSES = """
import multiprocessing, os, sys, pathlib, tempfile
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "models_of_test.py").write_text(MODELS)
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    import models_of_test
    fit()
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print("digests", *set(pool.map(models_of_test.fit, range(4))))
"""
JOBLIB = PROCESSES.replace(
    """with multiprocessing.get_context("{method}").Pool(2) as pool:
        print("digests", *set(pool.map(models_of_test.fit, range(4))))""",
    """import joblib
    print("digests", *set(joblib.Parallel(n_jobs=2, backend="{method}")(
        joblib.delayed(models_of_test.fit)(i) for i in range(4))))""",
)


def test_threads(expected):
    assert run(THREADS) == {"digests": expected}


@pytest.mark.parametrize("method", [pytest.param(m, marks=pytest.mark.slow) for m in ("fork", "spawn", "forkserver")])
def test_processes(method, expected):
    code = f"MODELS = {MODELS!r}\n" + PROCESSES.replace("{method}", method)
    assert run(code) == {"digests": expected}


@pytest.mark.parametrize("backend", [pytest.param(m, marks=pytest.mark.slow) for m in ("loky", "threading")])
def test_joblib(backend, expected):
    pytest.importorskip("joblib")
    code = f"MODELS = {MODELS!r}\n" + JOBLIB.replace("{method}", backend)
    assert run(code) == {"digests": expected}


LIMITED = """
import resource
from symsvm import SVC
fit()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
big = np.random.default_rng(1).normal(size=(100_000, 60))
model = SVC(max_iter=2)
resource.setrlimit(resource.RLIMIT_AS, (used + big.nbytes + 2**24, hard))
try:
    model.fit(big, np.where(big[:, 0] > 0, 1, -1))
    print("result fitted")
except MemoryError:
    print("result MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print("digest", fit())
"""


@pytest.mark.slow
def test_a_limit_of_memory_raises_and_leaves_the_process_usable(expected):
    assert run(LIMITED) == {"result": "MemoryError", "digest": expected}


# Fits without end, each interrupted at some point. What is fitted must always be one machine: its decision values are
# those of its own attributes.
STORM = """
import signal, time
from symsvm import SVC, LinearSVC
warnings.simplefilter("ignore")

def is_whole(model):
    if isinstance(model, LinearSVC):
        return np.allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])
    V, q = model.support_vectors_, model.dual_coef_[0]
    K = np.exp(-((X[:50, None] - V[None]) ** 2).sum(axis=2) / (2 * model.kernel_.sigma ** 2))
    return np.allclose(model.decision_function(X[:50]), K @ q + model.intercept_[0], atol=1e-9)

from symsvm import RBF
models = [SVC(C=2.0, kernel=RBF(0.8)).fit(X, y), LinearSVC().fit(X, y)]
for model in models:
    model.kernel_ = getattr(model, "kernel", None)
interrupted = fits = broken = 0
armed = [False]

def interrupt(number, frame):
    if armed[0]:
        armed[0] = False  # no second one while the first is handled
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    try:
        armed[0] = True
        for model in models:
            model.C = 0.1 + (fits % 7)
            model.fit(X, y if fits % 2 else -y)
            fits += 1
        armed[0] = False
    except KeyboardInterrupt:
        interrupted += 1
    broken += sum(not is_whole(model) for model in models)
print("fits", fits, "interrupted", interrupted, "broken", broken, flush=True)
print("digest", fit())
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_interrupts(seed, expected):
    rng = random.Random(seed)
    command = [sys.executable, "-c", MODELS + STORM, "20"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    end = time.monotonic() + 18
    while time.monotonic() < end and process.poll() is None:
        time.sleep(rng.expovariate(1 / rng.choice((0.002, 0.02, 0.1))))
        process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-3000:]
    counts, digest = out.splitlines()
    words = counts.split()
    assert int(words[3]) > 10
    assert words[4:] == ["broken", "0"], counts
    assert digest == f"digest {expected}"


def test_the_digest_is_of_all_values(expected):
    assert len(bytes.fromhex(expected)) == hashlib.sha256().digest_size
