"""Threads of loops: parts that run side by side, errors and interrupts in them, and where there are no threads."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from symsvm._lib import threads
from symsvm._lib.threads import SharedCores, core_count, in_parts, side_by_side, single_core, waiting


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.setattr(threads._LOCAL, "cores", 3, raising=False)


def parts_of(n):
    """The parts of a range, and the threads that ran them."""
    found = []
    in_parts(lambda first, last: found.append((first, last, threading.current_thread())), n)
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 11, 12, 13, 1000])
def test_parts_are_the_whole_range_once(n):
    ranges = sorted(part[:2] for part in parts_of(n))
    assert [i for first, last in ranges for i in range(first, last)] == list(range(n))


def test_parts_run_side_by_side():
    """Each of three threads waits until all three have begun."""
    together = threading.Barrier(3)
    in_parts(lambda first, last: together.wait(60), 3)
    assert not together.broken


def test_one_core_runs_one_part_in_the_callers_thread():
    with single_core():
        assert core_count() == 1
        assert parts_of(100) == [(0, 100, threading.current_thread())]
    assert core_count() == 3


def test_threads_share_cores_with_those_that_have_work():
    cores, counts = SharedCores(3), []
    with cores.use():
        counts.append(core_count())
        with cores.use():
            counts.append(core_count())
            with waiting():
                counts.append(core_count())
    assert counts == [3, 1, 3]
    assert core_count() == 3
    with waiting():  # of one thread there is nothing to share
        assert core_count() == 3


def test_a_limit_is_of_one_thread(monkeypatch):
    monkeypatch.delattr(threads._LOCAL, "cores")
    counts = []
    with single_core():
        other = threading.Thread(target=lambda: counts.append(core_count()))
        other.start()
        other.join()
        assert core_count() == 1
    assert counts == [core_count()]


def test_the_environment_limits_cores():
    code = "from symsvm._lib.threads import core_count; print(core_count())"
    for cores in ("1", "5"):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={"NUMBA_NUM_THREADS": cores}
        )
        assert run.stdout == f"{cores}\n", run.stderr


def test_loops_inside_loops_of_many_callers():
    totals = []

    def call():
        found = []
        in_parts(lambda first, last: in_parts(lambda a, b: found.append(b - a), last - first), 100)
        totals.append(sum(found))

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert totals == [100] * 8


@pytest.mark.parametrize("in_caller", [True, False])
def test_an_error_of_a_part_reaches_the_caller(in_caller):
    caller, together = threading.current_thread(), threading.Barrier(3)

    def work(first, last):
        together.wait(60)
        if (threading.current_thread() is caller) == in_caller:
            raise ZeroDivisionError(f"part {first}")

    with pytest.raises(ZeroDivisionError, match="part"):
        in_parts(work, 3)
    assert sorted(part[:2] for part in parts_of(3)) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system has no signals for a thread")
def test_an_interrupt_waits_for_the_parts_that_run():
    """The caller is interrupted while it waits, twice, and leaves when the other threads have ended."""
    caller, ended, together = threading.current_thread(), [], threading.Barrier(3)

    def work(first, last):
        together.wait(60)
        if threading.current_thread() is not caller:
            for _ in range(2):
                time.sleep(0.05)
                signal.pthread_kill(caller.ident, signal.SIGINT)
            time.sleep(0.05)
            ended.append(first)

    with pytest.raises(KeyboardInterrupt):
        in_parts(work, 3)
    assert len(ended) == 2


def test_the_caller_runs_all_parts_where_no_thread_can_be_started(monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_POOL", threads._Pool())
    monkeypatch.setattr(threading.Thread, "start", fail)
    assert {part[2] for part in parts_of(100)} == {threading.current_thread()}


def test_calls_side_by_side_run_once_each_and_at_a_time():
    together, found = threading.Barrier(3), []

    def call(k):
        together.wait(60)
        found.append(k)

    side_by_side(call, 3)
    assert sorted(found) == [0, 1, 2]
    side_by_side(found.append, 0)
    assert len(found) == 3


def test_a_loop_inside_a_call_uses_the_cores_that_no_other_call_does():
    counts, together = [], threading.Barrier(3)

    def call(k):
        together.wait(60)
        counts.append(core_count())
        together.wait(60)

    side_by_side(call, 3)
    assert counts == [1, 1, 1]
    side_by_side(lambda k: counts.append(core_count()), 1)
    assert counts[3:] == [3]


def test_an_error_of_a_call_ends_those_that_have_not_begun():
    ran = []

    def call(k):
        ran.append(k)
        if k == 1:
            raise ValueError("the second")

    with single_core(), pytest.raises(ValueError, match="the second"):
        side_by_side(call, 10)
    assert ran == [0, 1]
