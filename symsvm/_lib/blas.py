"""BLAS: one thread, since others compete with our loops and stall on small matrices; products row by row."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from symsvm._lib.forks import call_after_fork, fork_safe_lock

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["SingleThreadedBlas", "row_products"]


class SingleThreadedBlas:
    """One thread for BLAS while any run is under way; the last run to end restores what the first one found."""

    lock, limits = fork_safe_lock(), None
    runs: ClassVar[list[int]] = []  # the threads of the runs under way

    def __enter__(self):
        with self.lock:
            if not self.runs:
                SingleThreadedBlas.limits = _controller().limit(limits=1, user_api="blas")
            self.runs.append(threading.get_ident())

    def __exit__(self, *error: object):
        with self.lock:
            self.runs.remove(threading.get_ident())
            self._restore()

    @classmethod
    def end_other_runs(cls) -> None:
        """Forget the runs of other threads, in the child of a fork, which does not have these threads."""
        cls.runs[:] = [thread for thread in cls.runs if thread == threading.get_ident()]
        cls._restore()

    @classmethod
    def _restore(cls) -> None:
        if not cls.runs and cls.limits is not None:
            limits, cls.limits = cls.limits, None
            limits.restore_original_limits()


call_after_fork(SingleThreadedBlas.end_other_runs)


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@np.errstate(over="ignore", invalid="ignore")  # values beyond the type's range are infinite
def row_products(A: Any, B: Array) -> Array:
    """Return A B, of matrices or of a matrix and a vector, with one call of BLAS for each row of A.

    BLAS sums in an order that depends on the shapes. This way a row of the product does not depend on the other rows,
    bit for bit. The rows of a CSR matrix are summed one by one anyway.
    """
    if hasattr(A, "tocsr"):
        return np.asarray(A @ B)
    return (np.ascontiguousarray(A)[:, None, :] @ B)[:, 0]
