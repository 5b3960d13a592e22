"""Forks: the children of a process that has fitted can fit, with the same bits, and no lock stays taken in them."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytensor.tensor as pt
import pytest

from symsvm._lib import forks
from symsvm.compiler.functions import function

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

# A fit, a process forked after it, one forked by that one, and a pool; each prints what it found.
AFTER_A_FIT = """
import multiprocessing, os, threading
import numpy as np
from symsvm import SVC, LinearSVC
X = np.random.default_rng(0).normal(size=(1500, 3))
y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1, -1)
fork = multiprocessing.get_context("fork")

def fit(C):
    model = SVC(C=C).fit(X, y)
    found = model.dual_coef_, model.decision_function(X[:700]), LinearSVC().fit(X, y).coef_
    return b"".join(values.tobytes() for values in found)

def check(name, expected):
    print(name, fit(1.0) == expected, flush=True)
    if name != "grandchild":
        process = fork.Process(target=check, args=("child" if name == "parent" else "grandchild", expected))
        process.start()
        process.join()
        assert process.exitcode == 0, process.exitcode

found = fit(1.0)
check("parent", found)
with fork.Pool(2) as pool:
    print("pool", set(pool.map(fit, [1.0] * 4)) == {found})
thread = threading.Thread(target=check, args=("child", found))
thread.start()
thread.join()
print("parent", fit(1.0) == found)
"""


def test_processes_forked_after_a_fit_find_the_same():
    env = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", AFTER_A_FIT], capture_output=True, text=True, env=env, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = ["parent", "child", "grandchild", "pool", "child", "grandchild", "parent"]
    assert run.stdout.splitlines() == [f"{name} True" for name in lines], run.stderr


def in_child(function):
    """What a function returns in a forked child."""
    receive, send = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: send.send(function()))
    process.start()
    found = receive.recv() if receive.poll(120) else "nothing"
    process.join(10)
    return found


@pytest.fixture
def busy():
    """Run the body of a context manager in another thread until the test is over."""
    threads, over = [], threading.Event()

    def start(context):
        began = threading.Event()

        def run():
            with context:
                began.set()
                over.wait()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        began.wait()

    yield start
    over.set()
    for thread in threads:
        thread.join()


def test_a_lock_that_another_thread_holds_is_free_in_the_child(busy):
    lock = forks.fork_safe_lock()
    busy(lock)
    assert not lock.acquire(blocking=False)
    assert in_child(lambda: lock.acquire(timeout=60))


def test_a_lock_that_the_forking_thread_holds_stays_its_own():
    lock = forks.fork_safe_lock()

    def release():
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()
        return "released"

    with lock:
        assert in_child(release) == "released"


def test_a_fork_waits_for_the_end_of_a_compilation(monkeypatch):
    """A graph that another thread compiles would be half compiled in the child."""
    lock, state, began = forks.fork_safe_lock(), ["before"], threading.Event()
    monkeypatch.setattr(forks, "_HELD", [lock])

    def compile_slowly():
        with lock:
            state[0] = "half"
            began.set()
            threading.Event().wait(0.2)
            state[0] = "done"

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    began.wait()
    assert in_child(lambda: (state[0], lock.acquire(blocking=False))) == ("done", True)
    thread.join()
    assert lock.acquire(blocking=False)  # released in the parent


def test_a_fork_does_not_wait_for_ever(monkeypatch, busy):
    lock = forks.fork_safe_lock()
    monkeypatch.setattr(forks, "_HELD", [lock])
    monkeypatch.setattr(forks, "_PATIENCE", 0.1)
    busy(lock)
    assert in_child(lambda: lock.acquire(timeout=60))


BLAS = """
import os, threading
import numpy as np
from symsvm._lib.blas import SingleThreadedBlas, _controller

def threads():
    return {pool["filepath"]: pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"}

def in_child(check):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def restricted():
    with SingleThreadedBlas():
        return set(threads().values()) == {1}

def run():
    with SingleThreadedBlas():
        began.set()
        over.wait()

before, began, over = threads(), threading.Event(), threading.Event()
threading.Thread(target=run).start()
began.wait()
assert set(threads().values()) == {1}
assert in_child(lambda: threads() == before)
assert in_child(restricted)
over.set()
"""


def test_the_child_is_not_left_with_one_thread_for_blas():
    """In a process of its own, where nothing else changes the threads of BLAS."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", BLAS], check=True)


def test_jax_after_a_fork_raises_a_sentence_instead_of_a_hang():
    pytest.importorskip("jax")
    x = pt.dvector("x")
    double = function([x], 2.0 * x, mode="JAX")
    assert double(np.ones(2)).tolist() == [2.0, 2.0]

    def messages():
        for use in (lambda: double(np.ones(2)), lambda: function([x], 3.0 * x, mode="JAX")):
            with pytest.raises(RuntimeError, match="Use mode='NUMBA', or start processes with .*'spawn'"):
                use()
        return function([x], 4.0 * x, mode="FAST_COMPILE")(np.ones(2)).tolist()

    assert in_child(messages) == [4.0, 4.0]
    assert double(np.ones(2)).tolist() == [2.0, 2.0]
