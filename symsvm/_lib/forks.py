"""Forks: what a process does before `os.fork`, so that its children can fit.

A child of a fork has one thread, the one that called `os.fork`, and a copy of the memory of all. Three things in it
would end or stop the child:

- the threads of OpenMP, which the child does not have: GNU OpenMP waits for them forever, and Numba ends the child
  before that happens. They are released before a fork; parent and child start new ones.
- a lock that another thread held: nobody releases it in the child. `fork_safe_lock` makes locks that are free there.
- a compilation in another thread, which is half done in the child for ever. A fork waits for its end, for at most a
  minute.

Forks outside of Python, which no hook sees, are not covered; neither is JAX, which warns itself.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from symsvm._lib.compat import numba_compiler_lock, release_openmp_threads, renew_lock, restart_openmp_threads

__all__ = ["call_after_fork", "check_threads", "fork_safe_lock", "hold_during_fork"]

# The seconds that a fork waits for another thread to finish compiling.
_PATIENCE = 60.0

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()
_HELD: list[Any] = []  # locks that a fork takes, in the order of this list, and those that it has taken
_TAKEN: list[Any] = []
_CALLS: list[Any] = []
_STATE = {"threads are lost": False}


def fork_safe_lock() -> Any:
    """Return a reentrant lock that is free in the child of a fork, unless the thread that forked holds it.

    It is an RLock, and no class around one: an interrupt may come after the line in which such a class takes its lock,
    and before the block that releases it.

    >>> lock = fork_safe_lock()
    >>> with lock, lock:
    ...     pass
    """
    lock = threading.RLock()
    _LOCKS.add(lock)
    return lock


def hold_during_fork(lock: Any) -> None:
    """Let forks wait until this lock is free: what it protects is then complete in the child.

    Parameters
    ----------
    lock : RLock or Lock
        The lock. A thread that takes several of them takes them in the order in which they were given here.
    """
    _HELD.append(lock)


def call_after_fork(function: Any) -> None:
    """Call a function in every child of a fork, after locks are renewed.

    Parameters
    ----------
    function : callable
        A function without arguments.
    """
    _CALLS.append(function)


def check_threads() -> None:
    """Raise RuntimeError in a child whose parallel loops would wait for threads that it does not have.

    Only an OpenMP without `omp_pause_resource_all`, such as GNU's before version 9, makes such children.
    """
    if _STATE["threads are lost"]:
        raise RuntimeError(
            "This process was forked after its parent had used OpenMP, which cannot release its threads here: a "
            "parallel loop would never end. Start processes with multiprocessing.get_context('spawn') or 'forkserver', "
            "or set NUMBA_THREADING_LAYER=workqueue."
        )


def _before() -> None:
    compiler_lock = numba_compiler_lock()
    for lock in [*_HELD, *([] if compiler_lock is None else [compiler_lock])]:
        if lock.acquire(timeout=_PATIENCE):
            _TAKEN.append(lock)
    _STATE["threads are lost"] = not release_openmp_threads()


def _release() -> None:
    while _TAKEN:
        _TAKEN.pop().release()


def _in_parent() -> None:
    _STATE["threads are lost"] = False
    _release()


def _in_child() -> None:
    _release()
    for lock in list(_LOCKS):
        renew_lock(lock)
    if not _STATE["threads are lost"]:
        _STATE["threads are lost"] = not restart_openmp_threads()
    for function in _CALLS:
        function()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
