"""The first product of a run, K z at its start, within a time limit.

The start of nu-SVC and of the one-class machine has m nu variables other than 0, so that K z takes as long as many
iterations. Where time is limited it is computed some rows at a time. The rows that are left at the deadline are
estimated from a sample of the columns: the run then ends at its start, with a multiplier b that is good to the
sampling error, and no iteration depends on the estimate.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix

__all__ = ["add_product_until"]

# Entries of K between two looks at the clock: a tenth of a second. Columns of each sign in the sample.
_ENTRIES, _SAMPLE = 2**26, 128


def add_product_until(matrix: KernelMatrix, d: Array, columns: Array, out: Array, deadline: float) -> bool:
    """Add K[:, columns] d to an array, in float64, and return whether that was done before the deadline.

    Parameters
    ----------
    matrix : KernelMatrix
        The matrix K.
    d : array of shape (len(columns),)
        The factors.
    columns : array of int
        The columns.
    out : array of shape (m,)
        Where to add. Each row has the same bits as in one product of all rows; those that there was no time for have
        an estimate.
    deadline : float
        A time of `time.perf_counter`.

    Returns
    -------
    bool
        Whether all rows were computed.
    """
    if np.isinf(deadline) or matrix.m * len(columns) <= _ENTRIES:
        matrix.product(d, None, columns, out, exact=True)
        return True
    step = max(1, _ENTRIES // len(columns))
    for low in range(0, matrix.m, step):
        if time.perf_counter() >= deadline:
            rows = np.arange(low, matrix.m)
            out[rows] += _estimate(matrix, d, columns, rows)
            return False
        rows = np.arange(low, min(matrix.m, low + step))
        part = out[rows]
        matrix.product(d, rows, columns, part, exact=True)
        out[rows] = part
    return True


def _estimate(matrix: KernelMatrix, d: Array, columns: Array, rows: Array) -> Array:
    """K[rows, columns] d from evenly spaced columns of each sign, with the sum of all d: exact for a constant K."""
    total = np.zeros(len(rows))
    for sign in (1, -1):
        same = np.flatnonzero(sign * d > 0)
        if len(same):
            some = same[np.linspace(0, len(same) - 1, min(len(same), _SAMPLE)).astype("int64")]
            part = np.zeros(len(rows))
            matrix.product(d[some], rows, columns[some], part, exact=False)
            total += d[same].sum() / d[some].sum() * part
    return total
