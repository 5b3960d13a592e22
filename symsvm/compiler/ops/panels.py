"""Panels: the columns of a tile side by side, (d, columns), so that loops over columns read consecutive entries.

Panels are filled from `low` to `high`: panel t has the points `ids` from `first` + t columns on.
"""

import numpy as np

from symsvm._lib.code_cache import njit

__all__ = ["pack", "pack_csr", "row_norms"]

_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


@njit(**_OPTIONS)
def pack(B, ids, first, low, high, panels):
    """Copy rows of a dense matrix."""
    d, columns = B.shape[1], panels.shape[2]
    for t in range(low, high):
        panel, start = panels[t], first + t * columns
        n = min(columns, len(ids) - start)
        for j0 in range(0, n, 16):  # blocks of whole cache lines
            for k0 in range(0, d, 16):
                for j in range(j0, min(j0 + 16, n)):
                    row = B[ids[start + j]]
                    for k in range(k0, min(k0 + 16, d)):
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
