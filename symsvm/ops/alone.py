"""Parallel loops, one thread of Python at a time where they would not stand two."""

import functools
import threading

import numba
from numba.np.ufunc.parallel import _launch_threads

__all__ = ["alone"]

_LOCK = threading.RLock()


def alone(loop):
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
    _launch_threads()
    return numba.threading_layer() != "workqueue"
