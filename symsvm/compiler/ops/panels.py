"""Panels: the columns of a tile side by side, (d, columns), so that loops over columns read consecutive entries.

Panels are filled from `low` to `high`: panel t has the points `ids` from `first` + t columns on.
"""

# pyright: reportCallIssue=false
# Numba calls intrinsics without their first parameter.

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm._lib.heap import LINE
from symsvm.compiler.ops.transposition import transpose_rows

__all__ = ["dense_norms", "pack", "pack_csr", "row_norms"]

_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


@njit(**_OPTIONS)
def pack(B, ids, first, low, high, panels):
    """Copy rows of a dense matrix."""
    d, columns, square = B.shape[1], panels.shape[2], LINE // B.itemsize
    for t in range(low, high):
        panel, start = panels[t], first + t * columns
        n = max(0, min(columns, len(ids) - start))
        whole = n - n % square, d - d % square
        for j in range(0, whole[0], square):
            some = ids[start + j : start + j + square]
            for k in range(0, whole[1], square):
                transpose_rows(B, some, k, panel, j)
        for j in range(n):
            row = B[ids[start + j]]
            for k in range(whole[1] if j < whole[0] else 0, d):
                panel[k, j] = row[k]


@njit(**_OPTIONS)
def pack_csr(x, k, start, ids, first, low, high, panels):
    """Copy rows of a CSR matrix."""
    d, columns = panels.shape[1], panels.shape[2]
    for t in range(low, high):
        panel, at = panels[t], first + t * columns
        for f in range(d):
            for j in range(columns):
                panel[f, j] = 0
        for j in range(min(columns, len(ids) - at)):
            i = ids[at + j]
            for e in range(start[i], start[i + 1]):
                panel[k[e], j] += x[e]


@njit(**_OPTIONS)
def row_norms(x, k, start, low, high, w, norms):
    """norms_i = sum_k (a_ik w_k)^2 for the rows of a CSR matrix, from low to high."""
    row = np.zeros(len(w), norms.dtype)
    for i in range(low, high):
        total = row.dtype.type(0)
        for e in range(start[i], start[i + 1]):  # an entry there twice counts as their sum
            row[k[e]] += x[e]
        for e in range(start[i], start[i + 1]):
            total += x[e] * row[k[e]] * (w[k[e]] * w[k[e]])
        for e in range(start[i], start[i + 1]):
            row[k[e]] = 0
        norms[i] = total


@njit(**_OPTIONS)
def dense_norms(A, low, high, norms):
    """norms_i = sum_k a_ik^2 for the rows of a dense matrix, from low to high."""
    for i in range(low, high):
        row, total = A[i], A.dtype.type(0)
        for k in range(len(row)):
            total += row[k] * row[k]
        norms[i] = total
