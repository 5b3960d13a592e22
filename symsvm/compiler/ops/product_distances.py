"""Compiled squared distances from products, of CSR rows and of long dense ones; see `squared_distances` for the rule.

|a|^2 stands for sum_k (a_k w_k)^2 everywhere; without weights of the features, w is 1.
"""

# pyright: reportCallIssue=false
# Numba calls intrinsics without their first parameter.

import numba
import numpy as np

from symsvm.compiler.ops.sparse_sums import STRIP
from symsvm.compiler.ops.vector_math import where

__all__ = ["distances", "repair", "repair_dense"]

# Those of `tiles`.
_OPTIONS = {
    "fastmath": {"contract"},
    "error_model": "numpy",
    "boundscheck": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


@numba.njit(**_OPTIONS)
def _by_differences(A, i, row, B, j, strips, c, w, seen):
    """|a_i - b_j|^2 over the features of either row; `seen` has the number of the last pair that met a feature."""
    total, pair, strip, c = row.dtype.type(0), seen[-1] + 1, strips[c // STRIP], c % STRIP
    seen[-1] = pair
    for side in range(2):
        k, start, r = (A[1], A[2], i) if side == 0 else (B[1], B[2], j)
        for e in range(start[r], start[r + 1]):
            f = k[e]
            if seen[f] != pair:
                seen[f] = pair
                difference = (row[f] - strip[f, c]) * w[f]
                total += difference * difference
    return total


@numba.njit(**_OPTIONS)
def distances(norm, norms, s, n, cancellation):
    """s_j = a.b_j -> |a - b_j|^2 for n columns, from |a|^2 and |b_j|^2; return whether digits cancelled in one."""
    two, is_cancelled, yes = s.dtype.type(2), np.int32(0), np.int32(1)
    for j in range(n):
        size = norm + norms[j]
        distance = size - two * s[j]
        s[j] = distance
        is_cancelled = where(distance >= cancellation * size, is_cancelled, yes)
    return is_cancelled


@numba.njit(**_OPTIONS)
def repair(A, i, B, ids, first, strips, w, norm, norms, s, n, cancellation, row, seen):
    """Compute the distances whose digits cancelled again; A and B are (data, indices, starts) of CSR matrices.

    `row` is an array of zeros for a dense row, and is one again afterwards.
    """
    x, k, start = A
    for e in range(start[i], start[i + 1]):
        row[k[e]] += x[e]
    for j in range(n):
        if not (s[j] >= cancellation * (norm + norms[j])):
            s[j] = _by_differences(A, i, row, B, ids[first + j], strips, j, w, seen)
    for e in range(start[i], start[i + 1]):
        row[k[e]] = 0


@numba.njit(**_OPTIONS)
def repair_dense(a, B, ids, first, norm, norms, s, n, cancellation):
    """The same for a dense row a and the rows of a dense matrix B, without weights."""
    for j in range(n):
        if not (s[j] >= cancellation * (norm + norms[j])):
            b, total = B[ids[first + j]], s.dtype.type(0)
            for k in range(len(a)):
                difference = a[k] - b[k]
                total += difference * difference
            s[j] = total
