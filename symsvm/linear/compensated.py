"""Products of points with weights, computed as if in twice the precision, for certificates of badly scaled data.

Each product is split into its float64 value and its error, x y = p + e, and so is each sum; the errors are summed
beside the values (Ogita, Rump and Oishi, Accurate sum and dot product, 2005). The error of a result is eps times the
result, plus eps^2 d times the sum of the absolute values: columns of 1e8 beside columns of 1 lose no digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.linear.rows import Rows

__all__ = ["compensated_combination", "compensated_margins"]

# Not the options of other loops: fast mathematics would reorder the sums whose rounding is computed here.
_EXACT: Any = {"cache": True, "nogil": True}
_SPLIT = 134217729.0  # 2^27 + 1 splits a number into two halves of 26 bits


@njit(**_EXACT)
def _add_product(high, low, x, y):
    """Return high + low + x y as a new pair."""
    p = x * y
    a, b = _SPLIT * x, _SPLIT * y
    a, b = a - (a - x), b - (b - y)
    error = ((a * b - p) + a * (y - b) + (x - a) * b) + (x - a) * (y - b)
    if not np.isfinite(error):  # beyond 1e300, where the halves overflow
        error = 0.0
    total = high + p
    part = total - high
    return total, low + (((high - (total - part)) + (p - part)) + error)


@njit(**_EXACT)
def _margins(flat, dense, s, U, y, F):
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    high, low = np.empty(k), np.empty(k)
    for i in range(F.shape[0]):
        high[:], low[:] = 0.0, 0.0
        row = slice(begins[i], begins[i + 1])
        x, p = values[row], points if dense else points[row]
        for l in range(len(x)):
            v, at = float(x[l]), U[p[l]]
            for m in range(k):
                high[m], low[m] = _add_product(high[m], low[m], v, at[m])
        for m in range(k):
            high[m], low[m] = _add_product(high[m], low[m], s, U[last, m])
        for m in range(k):  # rounded once, after the difference: large scores may be close to each other
            total, part = _add_product(high[m], low[m] - low[y[i]], -1.0, high[y[i]])
            total, part = _add_product(total, part, 0.0 if m == y[i] else 1.0, 1.0)
            F[i, m] = total + part


@njit(**_EXACT)
def _combination(flat, dense, s, Z, high, low):
    values, points, begins = flat
    last, k = high.shape[0] - 1, high.shape[1]
    for i in range(Z.shape[0]):
        z, some = Z[i], False
        for m in range(k):
            some |= z[m] != 0
        if some:
            row = slice(begins[i], begins[i + 1])
            x, p = values[row], points if dense else points[row]
            for l in range(len(x)):
                v, at = float(x[l]), p[l]
                for m in range(k):
                    high[at, m], low[at, m] = _add_product(high[at, m], low[at, m], v, z[m])
            for m in range(k):
                high[last, m], low[last, m] = _add_product(high[last, m], low[last, m], s, z[m])


def compensated_margins(rows: Rows, u: Array, y: Array) -> Array:
    """Return e_im + f_im - f_i,y_i (n, k), e_im = 1 for m != y_i, f = [X s]u, for weights u (d + 1, k) and classes y.

    >>> from symsvm.linear.rows import Rows
    >>> u = np.array([[1.0, 1.0], [1.0, 3.0], [1.0, 1.0]])
    >>> compensated_margins(Rows(np.array([[1e16, 1.0]]), 1.0), u, np.array([0])).tolist()
    [[0.0, 3.0]]
    """
    F = np.empty((rows.n, u.shape[1]))
    _margins(rows.flat, not rows.sparse, float(rows.s), np.ascontiguousarray(u), y, F)
    return F


def compensated_combination(rows: Rows, z: Array) -> Array:
    """Return [X s]'z, (d + 1, k), for z (n, k).

    >>> from symsvm.linear.rows import Rows
    >>> X, z = np.array([[1e16], [1.0], [-1e16]]), np.ones((3, 1))
    >>> compensated_combination(Rows(X, 1.0), z).tolist()
    [[1.0], [3.0]]
    """
    high, low = np.zeros((rows.d + 1, z.shape[1])), np.zeros((rows.d + 1, z.shape[1]))
    _combination(rows.flat, not rows.sparse, float(rows.s), np.ascontiguousarray(z), high, low)
    return high + low
