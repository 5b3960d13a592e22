"""Forks: what a process does before `os.fork`, so that its children can fit.

A child of a fork has one thread, the one that called `os.fork`, and a copy of the memory of all. Two things in it
would stop the child:

- a lock that another thread held: nobody releases it in the child. `fork_safe_lock` makes locks that are free there.
- a compilation in another thread, which is half done in the child for ever. A fork waits for its end, for at most a
  minute.

The child starts threads of its own for loops, see `threads`. JAX is not covered; it warns itself.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from symsvm._lib.compat import numba_compiler_lock, renew_lock

__all__ = ["call_after_fork", "fork_safe_lock", "hold_during_fork"]

# The seconds that a fork waits for another thread to finish compiling.
_PATIENCE = 60.0

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()
_HELD: list[Any] = []  # locks that a fork takes, in the order of this list, and those that it has taken
_TAKEN: list[Any] = []
_CALLS: list[Any] = []


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


def _before() -> None:
    compiler_lock = numba_compiler_lock()
    for lock in [*_HELD, *([] if compiler_lock is None else [compiler_lock])]:
        if lock.acquire(timeout=_PATIENCE):
            _TAKEN.append(lock)


def _release() -> None:
    while _TAKEN:
        _TAKEN.pop().release()


def _in_child() -> None:
    _release()
    for lock in list(_LOCKS):
        renew_lock(lock)
    for function in _CALLS:
        function()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
