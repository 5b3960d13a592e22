"""Loops over a symmetric matrix that is held whole, without Python's lock: threads run them side by side."""

import numpy as np
from numba import njit

__all__ = ["add_products", "add_rows", "copy", "gather", "mirror"]


@njit(cache=True, nogil=True)
def gather(K, rows, columns, out):
    """out_ij = K of the chosen rows and columns, in the first columns of `out`."""
    for i in range(len(rows)):
        source, target = K[rows[i]], out[i]
        for j in range(len(columns)):
            target[j] = source[columns[j]]


@njit(cache=True, nogil=True)
def mirror(K, low, high):
    """K_ji = K_ij for the rows i from low to high and the columns j before high, a square at a time."""
    for first in range(0, high, 64):
        for c in range(first, min(first + 64, high)):
            target = K[c]
            for r in range(max(low, c + 1), high):
                target[r] = K[r, c]


@njit(cache=True, nogil=True)
def copy(K, rows, starts, stops, out):
    """The same for columns in runs [start, stop), one run after another."""
    for i in range(len(rows)):
        low = 0
        for r in range(len(starts)):
            source, target = K[rows[i], starts[r] : stops[r]], out[i, low : low + stops[r] - starts[r]]
            for j in range(len(source)):
                target[j] = source[j]
            low += len(source)


@njit(cache=True, nogil=True)
def add_rows(K, starts, stops, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen columns, for the i in runs [start, stop), one run after another.

    K is symmetric: row j is read for column j. Sums of a run are in an array of their own, for the compiler to know
    that it is not a part of K.
    """
    low = 0
    for r in range(len(starts)):
        total = np.zeros(stops[r] - starts[r])
        for k in range(len(columns)):
            source, factor = K[columns[k], starts[r] : stops[r]], q[k]
            for i in range(len(total)):
                total[i] += factor * source[i]
        for i in range(len(total)):
            out[low + i] += total[i]
        low += len(total)


@njit(cache=True, nogil=True)
def add_products(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns; the fewer of both are in the outer loop."""
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
