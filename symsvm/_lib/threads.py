"""Threads of loops: compiled loops release the GIL, and the parts of one run side by side.

    the calling thread                 other threads, one for each further core
        offers the loop to them            wait for a loop
        runs parts until none is left      run parts until none is left
        waits for theirs

A caller never waits for a thread that has not begun: loops may be run by many threads at once, inside one another,
where no thread can be started, and in the child of a fork, which starts its own. `NUMBA_NUM_THREADS` limits the number
of cores, as it does for Numba's own parallel loops, which compile twice as long and cannot run after a fork.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numba

from symsvm._lib.forks import call_after_fork, fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SharedCores", "core_count", "in_parts", "side_by_side", "single_core", "waiting"]

# Parts for each core: a core that another program uses too gets fewer of them.
_PARTS = 4

_LOCAL = threading.local()


def core_count() -> int:
    """Return the number of cores that the loops of the calling thread may use."""
    cores = getattr(_LOCAL, "cores", vars(numba.config)["NUMBA_NUM_THREADS"])
    return cores.part() if isinstance(cores, SharedCores) else cores


@contextlib.contextmanager
def single_core() -> Iterator[None]:
    """Run the loops of the calling thread on its own core inside the block."""
    before = vars(_LOCAL).copy()
    _LOCAL.cores = 1
    try:
        yield
    finally:
        vars(_LOCAL).clear()
        vars(_LOCAL).update(before)


class SharedCores:
    """Cores that several threads share: each has its part of them, and those that wait or have ended have none.

    Parameters
    ----------
    total : int
        The number of cores, at most those of `core_count`.

    Examples
    --------
    >>> cores = SharedCores(1)
    >>> with cores.use():
    ...     core_count()
    1
    """

    def __init__(self, total: int) -> None:
        self._total, self._users, self._lock = min(total, core_count()), 0, threading.Lock()

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Run the loops of the calling thread on its part of the cores inside the block."""
        with single_core():  # restores what was before
            _LOCAL.cores = self
            self._count(1)
            try:
                yield
            finally:
                self._count(-1)

    @contextlib.contextmanager
    def leave(self) -> Iterator[None]:
        """Leave the part of the calling thread, which uses one, to the others inside the block."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def part(self) -> int:
        """Return the number of cores for each thread that uses some."""
        return max(1, self._total // max(1, self._users))

    def _count(self, change: int) -> None:
        with self._lock:
            self._users += change


def waiting() -> contextlib.AbstractContextManager[None]:
    """Leave shared cores to the other threads inside the block, in which the calling thread waits for one of them."""
    cores = getattr(_LOCAL, "cores", None)
    return cores.leave() if isinstance(cores, SharedCores) else contextlib.nullcontext()


def in_parts(work: Callable[[int, int], object], n: int) -> None:
    """Call `work(first, last)` for ranges that together are `range(n)`, side by side on the cores there are.

    Parameters
    ----------
    work : callable
        A compiled loop that releases the GIL. What it writes must not depend on how the range is divided.
    n : int
        The end of the range.

    Examples
    --------
    >>> found = []
    >>> in_parts(lambda first, last: found.extend(range(first, last)), 10)
    >>> sorted(found)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    cores = min(core_count(), n)
    if cores <= 1:
        work(0, n)
        return
    count = min(n, _PARTS * cores)
    loop = _Loop(work, [(n * k // count, n * (k + 1) // count) for k in range(count)])
    _POOL.offer(loop, cores - 1)
    loop.finish()


def side_by_side(work: Callable[[int], object], n: int) -> None:
    """Call `work(k)` for each k of `range(n)`, in this order, several of them at a time on the cores there are.

    The calling thread runs some of them, and returns when all have ended; what one raises ends the others that have not
    begun. Loops inside a call use the cores that no other call does.

    Parameters
    ----------
    work : callable
        A function of an index that any thread may call.
    n : int
        The number of calls.

    Examples
    --------
    >>> found = []
    >>> side_by_side(found.append, 3)
    >>> sorted(found)
    [0, 1, 2]
    """
    shared = SharedCores(core_count())

    def call(k, _):
        with shared.use():
            work(k)

    loop = _Loop(call, [(k, k + 1) for k in range(n)])
    if n > 1 and core_count() > 1:
        _POOL.offer(loop, min(core_count(), n) - 1)
    loop.finish()


class _Loop:
    """The parts of a loop that are left, and the other threads that run some of them.

    A thread says that it began before it takes a part: when none is left, `began` has all that run one. An interrupt
    may come after any line of the caller, which therefore counts nothing itself.
    """

    def __init__(self, work, parts):
        self.work, self.parts, self.error = work, deque(parts), None
        self.began, self.ended, self.news = [], [], SimpleQueue()

    def run(self):
        """Run parts until none is left."""
        while self.parts:
            try:
                part = self.parts.popleft()
            except IndexError:  # another thread took it
                return
            self.work(*part)

    def help(self):
        """Run parts in another thread than the caller's."""
        self.began.append(None)
        try:
            self.run()
        except BaseException as error:  # the caller raises it
            self.error = error
            self.parts.clear()
        self.ended.append(None)
        self.news.put(None)

    def finish(self):
        """Run parts in the caller's thread, and leave when no thread runs one: not earlier after Ctrl-C either."""
        error = None
        while True:
            try:
                self.run()
                while len(self.ended) < len(self.began):
                    self.news.get()
                break
            except BaseException as raised:
                error = raised
                self.parts.clear()
        error = error or self.error
        if error is not None:
            raise error


class _Pool:
    """Threads that wait for loops; they are started when they are first needed."""

    def __init__(self):
        self.forget()

    def forget(self):
        """Start anew, in the child of a fork: it has none of the threads."""
        self.loops, self.size, self.lock = SimpleQueue(), 0, fork_safe_lock()

    def offer(self, loop, helpers):
        """Ask up to so many threads to help with a loop."""
        if self.size < helpers:
            self._grow(helpers)
        for _ in range(helpers):
            self.loops.put(loop)

    def _grow(self, size):
        with self.lock:
            while self.size < size:
                thread = threading.Thread(target=_wait, args=(self.loops,), name=f"symsvm-{self.size}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # a limit of the system, or the end of the process: the caller runs all parts
                    return
                self.size += 1


def _wait(loops):
    while True:
        loops.get().help()


_POOL = _Pool()
call_after_fork(_POOL.forget)
