"""Compiled loops over rows of a cached symmetric matrix; they release the GIL, so that threads run in parallel."""

import numpy as np

from symsvm._lib.code_cache import njit

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

    K is symmetric: row j is read in place of column j, four rows at a time, so that sums are read and written less.
    """
    low, fours = 0, len(columns) // 4 * 4
    for r in range(len(starts)):
        first, last = starts[r], stops[r]
        total = np.zeros(last - first)  # the compiler knows that it is not a part of K
        for j in range(0, fours, 4):
            a, b, c, d = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            A, B, C, D = K[a, first:last], K[b, first:last], K[c, first:last], K[d, first:last]
            for i in range(len(total)):
                total[i] += q[j] * A[i] + q[j + 1] * B[i] + q[j + 2] * C[i] + q[j + 3] * D[i]
        for j in range(fours, len(columns)):
            source, factor = K[columns[j], first:last], q[j]
            for i in range(len(total)):
                total[i] += factor * source[i]
        out[low : low + len(total)] += total
        low += len(total)


@njit(cache=True, nogil=True)
def add_products(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns; the outer loop runs over the fewer of both."""
    total, fours = np.zeros(len(rows)), len(columns) // 4 * 4
    if len(columns) <= len(rows):
        for j in range(0, fours, 4):
            A, B, C, D = K[columns[j]], K[columns[j + 1]], K[columns[j + 2]], K[columns[j + 3]]
            a, b, c, d = q[j], q[j + 1], q[j + 2], q[j + 3]
            for i in range(len(rows)):
                r = rows[i]
                total[i] += a * A[r] + b * B[r] + c * C[r] + d * D[r]
        for j in range(fours, len(columns)):
            source, factor = K[columns[j]], q[j]
            for i in range(len(rows)):
                total[i] += factor * source[rows[i]]
    else:
        for i in range(len(rows)):
            source = K[rows[i]]
            for j in range(len(columns)):
                total[i] += source[columns[j]] * q[j]
    out += total
