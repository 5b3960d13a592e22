"""Threads for the folds of a search by gradient: a few short tasks, again and again, that Ctrl-C stops."""

from __future__ import annotations

import concurrent.futures
import contextlib
import math
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from symsvm._lib.blas import SingleThreadedBlas

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

__all__ = ["FoldThreads"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Seconds between two checks for a signal, in the thread that waits for the others.
_POLL = 0.05


class FoldThreads:
    """Runs a function on several items, in threads of one core each; the results have the order of the items.

    Parameters
    ----------
    workers : int
        The number of threads; with one, everything runs in the caller's thread.

    Attributes
    ----------
    deadline : float
        A time of `time.perf_counter`, from which on tasks under way should stop.
    """

    def __init__(self, workers: int) -> None:
        self.workers, self.deadline, self._cancel = workers, math.inf, threading.Event()
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(SingleThreadedBlas())
        if self.workers > 1:
            self._pool = self._open.enter_context(
                concurrent.futures.ThreadPoolExecutor(self.workers, "fold", initializer=_use_one_core)
            )
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
        self._pool = None

    def is_stopped(self) -> bool:
        """Whether tasks under way should stop."""
        return self._cancel.is_set() or time.perf_counter() >= self.deadline

    def map(self, work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the results of a function of each item; an error of one stops the others."""
        self._cancel.clear()
        if self._pool is None or len(items) == 1:
            return [work(item) for item in items]
        futures: list[Any] = [self._pool.submit(work, item) for item in items]
        try:
            while any(not future.done() for future in futures):  # a wait without a timeout would ignore signals
                done, _ = concurrent.futures.wait(futures, _POLL, concurrent.futures.FIRST_EXCEPTION)
                if any(future.exception() is not None for future in done):
                    break
            return [future.result() for future in futures]
        except BaseException:
            self._cancel.set()
            for future in futures:
                future.cancel()
            concurrent.futures.wait(futures)
            raise


def _use_one_core() -> None:
    """Let the loops of a thread use its own core only, as long as it lives."""
    from symsvm._lib.threads import single_core  # imports Numba, so only when it is used

    single_core().__enter__()
