"""The cache of compiled code: whatever happens to its files, functions compile, with one warning and equal values."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytensor.tensor as pt
import pytest

from symsvm._lib import code_cache
from symsvm._lib.compat import find_private
from symsvm.compiler.functions import function

SOURCE = """
from symsvm._lib.code_cache import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""


@pytest.fixture
def fresh(monkeypatch):
    """Let the next report warn, and no earlier one count."""
    monkeypatch.setattr(code_cache, "_REPORTED", [])


@pytest.fixture
def directory(tmp_path, monkeypatch, fresh):
    """Let Numba cache in a directory of this test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "module.py").write_text(SOURCE)
    return tmp_path


def load(directory):
    """The function of a module, as another process would define it."""
    spec = importlib.util.spec_from_file_location("module", directory / "module.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def hits(double):
    return sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values())


def files(directory, suffix=""):
    return sorted(path for path in (directory / "cache").rglob("*") if path.is_file() and path.name.endswith(suffix))


def test_compiled_code_is_found_again(directory):
    assert load(directory)(3) == 6
    again = load(directory)
    assert again(3) == 6
    assert hits(again) == (1, 0)
    assert [path.suffix for path in files(directory)] == [".nbc", ".nbi"]


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "one bit": flip,
    "the end is missing": lambda content: content[:-5],
    "empty": lambda content: b"",
    "another file": lambda content: b"not a cache" * 100,
    "a pickle that raises": lambda content: b"cbuiltins\nexit\n(I0\ntR.",
    "more at the end": lambda content: content + b"\0",
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_compiled_again_and_replaced(directory, damage, suffix):
    load(directory)(3)
    (path,) = files(directory, suffix)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(RuntimeWarning, match=f"The cache of compiled code is of no use .*{suffix} is damaged"):
        assert load(directory)(3) == 6
    again = load(directory)
    assert again(3) == 6  # without a warning, which would be an error here
    assert hits(again) == (1, 0)


def test_a_missing_file_is_compiled_again(directory):
    load(directory)(3)
    files(directory, ".nbc")[0].unlink()
    again = load(directory)
    assert again(3) == 6
    assert hits(again) == (0, 1)


def test_files_of_another_version_of_numba_are_not_read(directory, monkeypatch):
    load(directory)(3)
    monkeypatch.setattr(numba, "__version__", "0.0.0")
    again = load(directory)
    assert again(3) == 6
    assert hits(again) == (0, 1)


def test_code_for_another_cpu_is_not_run(directory, monkeypatch):
    load(directory)(3)
    codegen = type(load(directory).targetctx.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda self: ("another", "cpu", "+and +its +features"))
    again = load(directory)
    assert again(3) == 6
    assert hits(again) == (0, 1)
    monkeypatch.undo()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(directory / "cache"))
    first = load(directory)  # both are kept
    assert first(3) == 6
    assert hits(first) == (1, 0)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), OSError(27, "File too large"), MemoryError()]
)
def test_a_file_that_cannot_be_written_is_reported_once(directory, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr(code_cache, "_Summed", fail)
    with pytest.warns(RuntimeWarning, match="Make room on the disk, or set NUMBA_CACHE_DIR") as caught:
        assert [load(directory)(3), load(directory)(3), load(directory)(3.0)] == [6, 6, 6.0]
    assert len(caught) == 1
    assert files(directory) == []  # and nothing half written


def test_a_file_size_limit_does_not_stop_a_function(directory):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.warns(RuntimeWarning, match="OSError: .*File too large"):
            assert load(directory)(3) == 6
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert files(directory) == []


def test_no_directory_for_the_cache(directory, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    (directory / "cache").write_text("a file where the directory should be")
    with pytest.warns(RuntimeWarning, match="RuntimeError: cannot cache function 'double'"):
        assert load(directory)(3) == 6


def test_a_graph_that_pytensor_compiles_has_the_same_cache(tmp_path, monkeypatch, fresh):
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    monkeypatch.setattr("pytensor.link.numba.cache.NUMBA_CACHE_PATH", tmp_path / "missing")
    x = pt.dvector("x")
    with pytest.warns(RuntimeWarning, match="FileNotFoundError") as caught:
        assert function([x], pt.exp(x) + 7.25 * x, mode="NUMBA")(np.zeros(2)).tolist() == [1.0, 1.0]
    assert len(caught) == 1
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    monkeypatch.setattr("pytensor.link.numba.cache.NUMBA_CACHE_PATH", tmp_path)
    assert function([x], pt.exp(x) + 7.25 * x, mode="NUMBA")(np.zeros(2)).tolist() == [1.0, 1.0]
    written = list(tmp_path.rglob("*.nb?"))
    assert written
    assert all(".checked." in path.name for path in written)
    for path in written:
        path.write_bytes(flip(path.read_bytes()))
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    monkeypatch.setattr(code_cache, "_REPORTED", [])
    with pytest.warns(RuntimeWarning, match="is damaged") as caught:
        assert function([x], pt.exp(x) + 7.25 * x, mode="NUMBA")(np.zeros(2)).tolist() == [1.0, 1.0]
    assert len(caught) == 1


def test_functions_of_others_keep_numbas_cache():
    @numba.njit(cache=True)
    def plain(x):
        return x

    @code_cache.njit(cache=True)
    def own(x):
        return x

    stock = find_private("FunctionCache")
    assert [type(f._cache) is stock for f in (plain, own)] == [True, False]


def test_two_processes_that_write_at_once_do_not_mix_their_files(directory):
    """Each reads the index before the other has written it: one entry is lost, none has the code of the other."""
    double = load(directory)
    double(3)
    (index,) = files(directory, ".nbi")
    empty = index.read_bytes()
    for path in files(directory):
        path.unlink()
    first, second = load(directory), load(directory)
    assert first(3.5) == 7.0
    index.unlink()  # what the second process reads
    assert second(3j) == 6j
    index.write_bytes(empty)  # an index that names a file that is not there any more
    third = load(directory)
    assert (third(3.5), third(3j), third(3)) == (7.0, 6j, 6)
    fourth = load(directory)
    assert (fourth(3.5), fourth(3j), fourth(3)) == (7.0, 6j, 6)
    assert hits(fourth) == (3, 0)
    assert len({path.name for path in files(directory, ".nbc")}) == 3


FIT = """
import resource, sys, warnings
import numpy as np
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from symsvm import SVC
X = np.random.default_rng(0).normal(size=(600, 3))
y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1, -1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = SVC(C=1.0, shrinking=False).fit(X, y)
    values = model.decision_function(X)
print(len(caught), model.certificate_.status, values.tobytes().hex()[:64], sep="\\n")
"""


def fit(directory, limit=0):
    """What a fit in a new process prints, with caches in a directory."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(directory), "PYTENSOR_FLAGS": f"base_compiledir={directory}"}
    run = subprocess.run([sys.executable, "-c", FIT, str(limit)], capture_output=True, text=True, env=env, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.slow
def test_a_fit_whatever_happens_to_its_files(tmp_path):
    expected = fit(tmp_path / "good")
    assert expected[:2] == ["0", "optimal"]
    warned = ["1", *expected[1:]]
    assert fit(tmp_path / "limited", limit=4096) == warned
    (tmp_path / "file").write_text("")
    assert fit(tmp_path / "file") == warned
    for damage in DAMAGES.values():
        for path in Path(tmp_path / "good").rglob("*.nb?"):
            path.write_bytes(damage(path.read_bytes()))
        assert fit(tmp_path / "good") == warned
        assert fit(tmp_path / "good") == expected
