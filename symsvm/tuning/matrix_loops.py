"""Loops over a symmetric matrix that is held whole, without Python's lock: threads run them side by side."""

from numba import njit

__all__ = ["gather", "product"]


@njit(cache=True, nogil=True)
def gather(K, rows, columns, out):
    """out_ij = K of the chosen rows and columns, in the first columns of `out`."""
    for i in range(len(rows)):
        source, target = K[rows[i]], out[i]
        for j in range(len(columns)):
            target[j] = source[columns[j]]


@njit(cache=True, nogil=True)
def product(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns of a symmetric K.

    The fewer of both are gone through in the outer loop: what is far apart in memory is then read least often.
    """
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
