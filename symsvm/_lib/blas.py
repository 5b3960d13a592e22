"""One thread for BLAS: its threads compete with Numba's, and stall on small matrices."""

from __future__ import annotations

import functools
import threading

from threadpoolctl import ThreadpoolController

__all__ = ["SingleThreadedBlas"]


class SingleThreadedBlas:
    """One thread for BLAS while any run is under way; the last run to end restores what the first one found."""

    lock, runs, limits = threading.Lock(), 0, None

    def __enter__(self):
        with self.lock:
            if not SingleThreadedBlas.runs:
                SingleThreadedBlas.limits = _controller().limit(limits=1, user_api="blas")
            SingleThreadedBlas.runs += 1

    def __exit__(self, *error: object):
        with self.lock:
            SingleThreadedBlas.runs -= 1
            if not SingleThreadedBlas.runs and SingleThreadedBlas.limits is not None:
                SingleThreadedBlas.limits.restore_original_limits()


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
