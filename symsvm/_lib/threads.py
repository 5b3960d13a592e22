"""Threads of parallel loops: one caller at a time where Numba's thread pool requires it, one core for short work."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

import numba

from symsvm._lib.forks import check_threads, fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["exclusive", "single_core"]

_LOCK = fork_safe_lock()


def exclusive(loop: Callable) -> Callable:
    """Decorate a parallel loop so that only one Python thread runs it at a time, if Numba's thread pool requires it.

    Without OpenMP and TBB, as in many containers, Numba uses its own pool, "workqueue", which ends the process if two
    threads call it at once.
    """

    @functools.wraps(loop)
    def run(*args):
        check_threads()
        if _pool_is_threadsafe():
            return loop(*args)
        with _LOCK:
            return loop(*args)

    return run


@functools.cache
def _pool_is_threadsafe() -> bool:
    numba.get_num_threads()  # starts the threads
    return numba.threading_layer() != "workqueue"


@contextlib.contextmanager
def single_core() -> Iterator[None]:
    """Run parallel loops inside the block on the caller's core.

    Other cores take longer to wake up than short work takes, most of all if another program uses them: a loop of half a
    millisecond may then wait ten milliseconds.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)
