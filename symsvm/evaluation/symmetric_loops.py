"""Compiled loops over a symmetric matrix in memory: mirror it, gather blocks, multiply."""

import numpy as np
from numba import prange

from symsvm._lib.code_cache import njit
from symsvm._lib.threads import exclusive

__all__ = ["add_rows", "gather", "gathered_product", "mirror", "mirror_columns", "sum_rows"]


@njit(cache=True, nogil=True)
def mirror_columns(K, low, high, first, last):
    """K_ji = K_ij for the rows i from low to high and the columns j from first to last, a square at a time."""
    for i in range(low, high, 64):
        for c in range(first, last):
            row = K[c]
            for r in range(i, min(i + 64, high)):
                row[r] = K[r, c]


@exclusive
@njit(cache=True, parallel=True, nogil=True)
def mirror(K, low, high):
    """K_ji = K_ij for the rows i from low to high and the columns j before low."""
    if (high - low) * low < 2**20:  # too little work for threads
        mirror_columns(K, low, high, 0, low)
    else:
        for t in prange((low + 63) // 64):
            mirror_columns(K, low, high, t * 64, min(t * 64 + 64, low))


@njit(cache=True, nogil=True)
def _gather_row(K, r, columns, target):
    source = K[r]
    for j in range(len(columns)):
        c = columns[j]
        target[j] = source[c] if c <= r else K[c, r]


@exclusive
@njit(cache=True, parallel=True, nogil=True)
def gather(K, rows, columns, out):
    """out_ij = K of the chosen rows and columns, of a symmetric K of which only the lower triangle is there."""
    if len(rows) * len(columns) < 2**18:  # too little work for threads
        for i in range(len(rows)):
            _gather_row(K, rows[i], columns, out[i])
    else:
        for i in prange(len(rows)):
            _gather_row(K, rows[i], columns, out[i])


@njit(cache=True, nogil=True)
def _gathered_dot(K, r, columns, q):
    source, total = K[r], 0.0
    for j in range(len(columns)):
        c = columns[j]
        total += (source[c] if c <= r else K[c, r]) * q[j]
    return total


@exclusive
@njit(cache=True, parallel=True, nogil=True)
def gathered_product(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns, of such a K, summed in float64."""
    if len(rows) * len(columns) < 2**18:
        for i in range(len(rows)):
            out[i] += _gathered_dot(K, rows[i], columns, q)
    else:
        for i in prange(len(rows)):
            out[i] += _gathered_dot(K, rows[i], columns, q)


@njit(cache=True, nogil=True)
def sum_rows(K, rows, q, out, low):
    """out += sum_k q_k K[rows_k, low : low + len(out)], summed in float64.

    The sum is in an array of its own: the compiler then knows that it is not a part of K.
    """
    width = len(out)
    total = np.zeros(width)
    for k in range(len(rows)):
        row, weight = K[rows[k], low : low + width], q[k]
        for j in range(width):
            total[j] += weight * row[j]
    out += total


@exclusive
@njit(cache=True, parallel=True, nogil=True)
def add_rows(K, rows, q, out):
    """out += sum_k q_k K[rows_k], the first entries of each row, summed in float64."""
    parts = 1 if len(rows) * len(out) < 2**21 else (len(out) + 511) // 512
    width = (len(out) + parts - 1) // parts
    if parts == 1:
        sum_rows(K, rows, q, out, 0)
    else:
        for t in prange(parts):
            sum_rows(K, rows, q, out[t * width : (t + 1) * width], t * width)
