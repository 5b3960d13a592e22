"""Compilation ahead and the notice of it: what is said, where, how often, and that nothing is left to compile."""

import json
import os
import subprocess
import sys

import pytest
from cli_runs import run

from symsvm.cli import warm_command

LOOPS = """
from symsvm._lib.code_cache import njit

@njit(cache=True)
def inner(x):
    return x + 1

@njit(cache=True)
def once(x):
    return 2 * inner(x)

@njit(cache=True)
def again(x):
    return once(x) - 1

@njit(cache=True)
def assign(x, y):
    x[1:] = y

@njit(cache=True)
def unknown(x, y):
    x[1:] = y
    return x.no_such_attribute
"""

SHAPES = r"""
import numba, numpy as np, pytest, loops_of_test as loops
from numba.np import arrayobj
from symsvm._lib.code_cache import COMPILATION

whole, x, y = arrayobj.raise_with_shape_context, np.ones(3), np.ones(4)
with pytest.raises(numba.TypingError):
    loops.unknown(x, y)
assert arrayobj.raise_with_shape_context is whole and COMPILATION.functions == 1

@numba.njit
def theirs(x, y):
    if x[0] > 1:
        loops.assign(x, y)
    x[1:] = y

with pytest.raises(ValueError, match=r"cannot assign slice of shape \(\d,\) from input of shape"):
    theirs(x, y)
with pytest.raises(ValueError, match="cannot assign slice from input of different size"):
    loops.assign(x, y)
assert COMPILATION.functions == 2 and COMPILATION._depth == 0

try:  # an end that does not come
    COMPILATION.watch(theirs.py_func, "")
    COMPILATION.begin(theirs)
    assert arrayobj.raise_with_shape_context is not whole
    numba.njit(lambda x: x + 1)(1)
    assert arrayobj.raise_with_shape_context is whole and COMPILATION._depth == 0
finally:
    COMPILATION.end()
"""


@pytest.fixture
def compile_loops(tmp_path):
    """Compile functions in a process of its own, into one cache; return what it wrote to stderr."""
    (tmp_path / "loops_of_test.py").write_text(LOOPS, encoding="utf-8")
    compiled = "import loops_of_test as loops; assert loops.once(1) == 4; assert loops.again(2.0) == 5"
    paths = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def call(code=compiled, **options):
        env = {**os.environ, "SYMSVM_QUIET": "0", **paths, **options.pop("env", {})}
        return subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=300, **options)

    return call


def test_one_line_says_that_it_compiles_and_where_the_code_is_kept(compile_loops, tmp_path):
    first = compile_loops(capture_output=True, text=True).stderr
    assert first.startswith("symsvm: compiling for the first use on this machine")
    assert first.count("\n") == 1
    assert f"{tmp_path / 'cache'}; `symsvm warm` compiles all of it ahead." in first
    assert compile_loops(capture_output=True, text=True).stderr == ""


def test_a_quiet_process_says_nothing(compile_loops):
    assert compile_loops(capture_output=True, text=True, env={"SYMSVM_QUIET": "1"}).stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_terminal_shows_what_is_under_way(compile_loops):
    ours, theirs = os.openpty()
    compile_loops(stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert shown.count("symsvm: compiling") == 1
    assert "function 1, 0 s" in shown
    assert "function 2," in shown
    assert "function 4," not in shown  # functions inside others are parts of them
    assert shown.endswith("\r\x1b[K")


def test_a_closed_stderr_is_no_failure(compile_loops):
    compile_loops(stderr=None, preexec_fn=lambda: os.close(2))


def test_errors_of_shapes_are_short_in_own_functions_only(compile_loops):
    compile_loops(SHAPES, env={"SYMSVM_QUIET": "1"})


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([("rbf", 3, ["/a", "/b"]), ("files", 2, ["/a"])], "5 functions compiled in 0 s; they are kept in /a and /b."),
        ([("rbf", 0, ["/a"])], "Nothing to compile: everything is in the cache."),
    ],
)
def test_the_command_sums_up(monkeypatch, found, text):
    monkeypatch.setattr(warm_command, "_run_all", lambda jobs: iter(found))
    assert run("warm").out.strip() == text
    document = run("warm", "--json").json
    assert (document["functions"], document["directories"][0]) == (sum(count for _, count, _ in found), "/a")


@pytest.mark.parametrize("name", warm_command.TASKS)
def test_a_task_runs(name):
    count, directories = warm_command.run_task(name)
    assert count >= 0
    assert directories


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path):
    """After `symsvm warm`, a fresh process fits and predicts without compiling anything."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    program = [sys.executable, "-m", "symsvm", "warm", "--json"]
    document = json.loads(subprocess.run(program, capture_output=True, text=True, env=env, check=True).stdout)
    assert document["functions"] > 20
    assert document["directories"] == [str(tmp_path)]
    code = (
        "from symsvm._lib.code_cache import COMPILATION; from symsvm.cli.warm_command import TASKS, run_task\n"
        "import numpy as np; from symsvm import SVC, SVR, LinearSVC, NuSVR, OneClassSVM\n"
        "X = np.random.default_rng(1).normal(size=(2000, 20)); y = X[:, 0] ** 2 + X[:, 1] > 0.5\n"
        "for model in (SVC(), SVC(C=100.0), SVR(), LinearSVC(), NuSVR(), OneClassSVM()):\n"
        "    model.fit(X, y).predict(X)\n"
        "print(COMPILATION.functions, [run_task(name)[0] for name in TASKS])\n"
    )
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env)
    assert out.stdout == f"0 {[0] * len(warm_command.TASKS)}\n", out.stderr
