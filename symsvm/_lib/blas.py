"""BLAS: one thread, since its threads compete with Numba's and stall on small matrices; products row by row."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["SingleThreadedBlas", "row_products"]


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


def row_products(A: Any, B: Array) -> Array:
    """Return A B, of matrices or of a matrix and a vector, with one call of BLAS for each row of A.

    BLAS sums in an order that depends on the shapes. This way a row of the product does not depend on the other rows,
    bit for bit. The rows of a CSR matrix are summed one by one anyway.
    """
    if hasattr(A, "tocsr"):
        return np.asarray(A @ B)
    return (np.ascontiguousarray(A)[:, None, :] @ B)[:, 0]
