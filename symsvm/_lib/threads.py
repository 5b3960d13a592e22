"""Parallel loops: one thread of Python at a time where they would not stand two, one core where work is short."""

import contextlib
import functools
import threading

import numba

__all__ = ["exclusive", "single_core"]

_LOCK = threading.RLock()


def exclusive(loop):
    """Let no two threads run parallel loops at once where Numba has its own pool of threads only.

    That pool is its last resort, without OpenMP and TBB, as in many a container; it ends the process then.
    """

    @functools.wraps(loop)
    def run(*args):
        if _may_meet():
            return loop(*args)
        with _LOCK:
            return loop(*args)

    return run


@functools.cache
def _may_meet():
    numba.get_num_threads()  # launches them
    return numba.threading_layer() != "workqueue"


@contextlib.contextmanager
def single_core():
    """Run loops on the caller's core: others take longer to wake than short work does, most of all where they are busy.

    Where another program has a core, a loop waits for its turn there: ten milliseconds for what takes half of one.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)
