"""Compiled loops over rows of a cached symmetric matrix; they release the GIL, so that threads run in parallel."""

from symsvm._lib.code_cache import njit
from symsvm.evaluation.symmetric_loops import sum_rows

__all__ = ["add_products", "add_run_products", "copy_runs", "gather"]


@njit(cache=True, nogil=True)
def gather(K, rows, columns, out):
    """out_ij = K of the chosen rows and columns, in the first columns of `out`."""
    for i in range(len(rows)):
        source, target = K[rows[i]], out[i]
        for j in range(len(columns)):
            target[j] = source[columns[j]]


@njit(cache=True, nogil=True)
def copy_runs(K, rows, starts, stops, out):
    """out_ij = K of the chosen rows, and of the columns in runs [start, stop), one run after another."""
    for i in range(len(rows)):
        low = 0
        for r in range(len(starts)):
            source, target = K[rows[i], starts[r] : stops[r]], out[i, low : low + stops[r] - starts[r]]
            for j in range(len(source)):
                target[j] = source[j]
            low += len(source)


@njit(cache=True, nogil=True)
def add_run_products(K, starts, stops, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen columns, for the i in runs [start, stop), one run after another.

    K is symmetric: row j is read in place of column j.
    """
    low = 0
    for r in range(len(starts)):
        width = stops[r] - starts[r]
        sum_rows(K, columns, q, out[low : low + width], starts[r])
        low += width


@njit(cache=True, nogil=True)
def add_products(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns; the outer loop runs over the fewer of both."""
    if len(columns) <= len(rows):
        for j in range(len(columns)):
            source, factor = K[columns[j]], q[j]
            for i in range(len(rows)):
                out[i] += factor * source[rows[i]]
    else:
        for i in range(len(rows)):
            source, total = K[rows[i]], 0.0
            for j in range(len(columns)):
                total += source[columns[j]] * q[j]
            out[i] += total
