"""Compiled squared distances between rows of CSR matrices; see `squared_distances` for the rule.

|a|^2 stands for sum_k (a_k w_k)^2 everywhere; without weights of the features, w is 1.
"""

import numba

__all__ = ["distances"]

# Those of `tiles`.
_OPTIONS = {
    "fastmath": {"contract"},
    "error_model": "numpy",
    "boundscheck": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


@numba.njit(**_OPTIONS)
def _by_differences(A, i, row, B, j, panel, c, w, seen):
    """|a_i - b_j|^2 over the features of either row; `seen` has the number of the last pair that met a feature."""
    total, pair = row.dtype.type(0), seen[-1] + 1
    seen[-1] = pair
    for side in range(2):
        k, start, r = (A[1], A[2], i) if side == 0 else (B[1], B[2], j)
        for e in range(start[r], start[r + 1]):
            f = k[e]
            if seen[f] != pair:
                seen[f] = pair
                difference = (row[f] - panel[f, c]) * w[f]
                total += difference * difference
    return total


@numba.njit(**_OPTIONS)
def distances(A, i, B, ids, first, panel, w, norms, s, n, cancellation, row, seen):
    """s_j = a_i.b_j -> |a_i - b_j|^2 for n columns of a panel; A and B are (data, indices, starts) of CSR matrices.

    `row` is an array of zeros for a dense row, and is one again afterwards.
    """
    x, k, start = A
    norm, cancelled = row.dtype.type(0), 0
    for e in range(start[i], start[i + 1]):
        row[k[e]] += x[e]
    for e in range(start[i], start[i + 1]):
        norm += x[e] * row[k[e]] * (w[k[e]] * w[k[e]])
    for j in range(n):
        size = norm + norms[j]
        s[j] = size - 2 * s[j]
        cancelled += not (s[j] >= cancellation * size)
    if cancelled:
        for j in range(n):
            if not (s[j] >= cancellation * (norm + norms[j])):
                s[j] = _by_differences(A, i, row, B, ids[first + j], panel, j, w, seen)
    for e in range(start[i], start[i + 1]):
        row[k[e]] = 0
