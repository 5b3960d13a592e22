"""The executor of a search: it runs tasks in threads, and stops them on Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from symsvm.model_selection.cached_source import SearchStopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm.model_selection.tuning_result import Scoreboard

__all__ = ["run_tasks", "stopping_on_ctrl_c"]

# Seconds between two checks for a signal, in the thread that waits for the others.
_POLL = 0.1


def run_tasks(tasks: list[Any], scores: Scoreboard, workers: int, cores: int) -> None:
    """Run the tasks: first those that need the main thread and may use all cores, then the others, in threads.

    These share `cores`: where there are more of them than threads that have work, loops use several.
    After Ctrl-C no fit begins, and fits under way stop; scores recorded before are kept. A fit that has not converged
    gets that status and does not warn.
    """
    with warnings.catch_warnings(), stopping_on_ctrl_c(scores):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for task in tasks:
                if not task.is_parallel:
                    _run(task, scores)
            _run_in_threads([task for task in tasks if task.is_parallel], scores, workers, cores)
        except (KeyboardInterrupt, SearchStopped):
            scores.stop()


@contextlib.contextmanager
def stopping_on_ctrl_c(scores: Scoreboard) -> Iterator[None]:
    """Stop the search in the signal handler itself, before the handler that was installed raises.

    The exception takes a while to reach the code that waits for the threads; they would go on until then.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # only the main thread receives signals, and an ignored signal stays ignored
        return

    def stop(number, frame):
        scores.stop()
        before(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run(task, scores):
    if not scores.is_stopped:
        task.run(scores)


def _run_in_threads(tasks, scores, workers, cores):
    """Run tasks in threads, in the order in which they share matrices."""
    from symsvm._lib.threads import SharedCores  # imports Numba, so only when it is used

    left, errors, lock, shared = deque(tasks), [], threading.Lock(), SharedCores(cores)

    def next_task():
        with lock:
            return left.popleft() if left else None

    def run():
        try:
            with shared.use():
                for task in iter(next_task, None):
                    _run(task, scores)
        except BaseException as error:  # the waiting thread raises it
            errors.append(error)
            scores.stop()

    if not tasks:
        return
    with threadpool_limits(1, user_api="blas"):
        if workers == 1:
            with shared.use():
                for task in tasks:
                    _run(task, scores)
            return
        threads = [threading.Thread(target=run, name=f"tune-{k}") for k in range(min(workers, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            _join(threads)
        except KeyboardInterrupt:
            scores.stop()
            _join(threads)
    if errors:
        raise errors[0]


def _join(threads):
    """Wait until all threads have ended. A wait without a timeout would ignore signals on some systems."""
    for thread in threads:
        while thread.is_alive():
            thread.join(_POLL)
