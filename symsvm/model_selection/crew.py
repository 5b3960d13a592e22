"""Crew: the threads that work on the tasks of a search, and what ends them."""

import contextlib
import signal
import threading
import warnings
from collections import deque

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from symsvm.model_selection.shared import Stopped

__all__ = ["work"]

# Seconds after which a thread that waits looks whether a signal has come.
_HEED = 0.1


def work(tasks, board, workers):
    """Run the tasks: first those that need the main thread and may use all cores, then the others, in threads.

    From the moment when Ctrl-C is heard, no fit begins and those under way end; what is on the board by then stays. A
    fit that has not converged says so there, and does not warn.
    """
    with warnings.catch_warnings(), _stopped_by_ctrl_c(board):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for task in tasks:
                if not task.is_parallel:
                    _run(task, board)
            _in_threads([task for task in tasks if task.is_parallel], board, workers)
        except (KeyboardInterrupt, Stopped):
            board.stop()


@contextlib.contextmanager
def _stopped_by_ctrl_c(board):
    """Stop the board in the handler of the signal, before the one that is there now raises.

    The exception needs time to reach the code that waits for the threads, and they would go on until then.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # only the main thread hears signals, and an ignored one stays ignored
        return

    def stop(number, frame):
        board.stop()
        before(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run(task, board):
    if not board.is_stopped:
        task.run(board)


def _in_threads(tasks, board, workers):
    """Run tasks that need a core each, in the order in which they share matrices."""
    from symsvm._lib.threads import single_core  # Numba is loaded when it is first needed

    left, errors, lock = deque(tasks), [], threading.Lock()

    def following():
        with lock:
            return left.popleft() if left else None

    def run():
        try:
            with single_core():  # each thread has a core of its own
                for task in iter(following, None):
                    _run(task, board)
        except BaseException as error:  # for the thread that waits
            errors.append(error)
            board.stop()

    if not tasks:
        return
    with threadpool_limits(1, user_api="blas"):
        if workers == 1:
            with single_core():
                for task in tasks:
                    _run(task, board)
            return
        threads = [threading.Thread(target=run, name=f"tune-{k}") for k in range(min(workers, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            _wait_for(threads)
        except KeyboardInterrupt:
            board.stop()
            _wait_for(threads)
    if errors:
        raise errors[0]


def _wait_for(threads):
    """Wait until all threads have ended, and hear signals on the way: not every system wakes a thread that waits."""
    for thread in threads:
        while thread.is_alive():
            thread.join(_HEED)
