"""Newton's step for few free variables, without LAPACK, whose calls would cost more than the step.

    d = -A^-1 (F + mu 1),    sum d = 0,    A = K between the free variables

up to the first bound: the objective never rises.
"""

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.compiler.ops.scratch import indices, matrix, vector

__all__ = ["CUT", "NONE", "RIDGE", "WHOLE", "small_newton"]

# The outcomes of a step: none is possible, it ended at a bound, or it was taken in full.
NONE, CUT, WHOLE = 0, 1, 2
# The ridge on the diagonal, as a part of its mean.
RIDGE = 1e-10


# Explicit loops: expressions of arrays and assignments to slices take seconds to compile.
_INNER = {"cache": True, "error_model": "numpy", "no_cpython_wrapper": True}


@njit(fastmath={"contract", "reassoc", "nsz"}, **_INNER)
def _factor(A):
    """Overwrite the lower half of A with its Cholesky factor; return whether there is one."""
    for j in range(len(A)):
        row, total = A[j], A[j, j]
        for k in range(j):
            total -= row[k] * row[k]
        if not total > 0:
            return False
        A[j, j] = np.sqrt(total)
        for i in range(j + 1, len(A)):
            other, total = A[i], A[i, j]
            for k in range(j):
                total -= row[k] * other[k]
            A[i, j] = total / A[j, j]
    return True


@njit(**_INNER)
def _solve(L, x):
    """Overwrite x with that of L L' x = x, from the lower half of L."""
    n = len(x)
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


@njit(**_INNER)
def _centre(x):
    """Subtract the mean."""
    mean = 0.0
    for a in range(len(x)):
        mean += x[a] / len(x)
    for a in range(len(x)):
        x[a] -= mean


@njit(**_INNER)
def _direction(K, free, f, d, is_tied):
    """Compute d; return whether A has a factor.

    Where d sums to 0, a constant added to all of K changes no step, but the condition of A, and one added to f would
    cost digits.
    """
    n = len(free)
    A, ones, mean = matrix(n, n, f), vector(n, f), 0.0
    for a in range(n):
        mean += K[free[a], free[a]] / n
    shift = mean if is_tied else 0.0
    for a in range(n):
        row = K[free[a]]
        for c in range(a + 1):
            A[a, c] = row[free[c]] + shift
        A[a, a] += RIDGE * mean
    if not _factor(A):
        return False
    if is_tied:
        _centre(f)
    for a in range(n):
        d[a], ones[a] = -f[a], 1.0
    _solve(A, d)
    if is_tied:
        _solve(A, ones)
        total, of_ones = 0.0, 0.0
        for a in range(n):
            total += d[a]
            of_ones += ones[a]
        for a in range(n):
            d[a] -= ones[a] * (total / of_ones)
        _centre(d)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def small_newton(K, F, z, lower, upper, up, low, is_tied):
    """Take the step, in F and z; return its outcome.

    Parameters
    ----------
    K, F, z, lower, upper : the matrix, the gradient, the variables and their bounds, (n, n) and (n,).
    up, low : 0 where a variable may rise (may fall), else inf (-inf); it is free if it may do both.
    is_tied : whether the free variables have a given sum.
    """
    free, n = indices(len(F)), 0
    for i in range(len(F)):
        if up[i] == 0 and low[i] == 0 and K[i, i] > 0:
            free[n] = i
            n += 1
    free = free[:n]
    if n < 1 + is_tied:
        return NONE
    f, d, change = vector(n, z), vector(n, z), vector(len(F), z)
    for j in range(len(F)):
        change[j] = 0.0
    for a in range(n):
        f[a] = F[free[a]]
    if not _direction(K, free, f, d, is_tied):
        return NONE
    for a in range(n):
        row, by = K[free[a]], d[a]
        for j in range(len(F)):
            change[j] += by * row[j]
    slope, curvature = 0.0, 0.0
    for a in range(n):
        slope += f[a] * d[a]
        curvature += change[free[a]] * d[a]
    if not slope < 0 or not np.isfinite(curvature):
        return NONE
    t, first = (1.0 if curvature <= -slope else -slope / curvature), -1
    for a in range(n):
        if d[a] != 0:
            i = free[a]
            room = ((upper[i] if d[a] > 0 else lower[i]) - z[i]) / d[a]
            if room <= t:
                t, first = room, a
    for a in range(n):
        i = free[a]
        z[i] = min(max(z[i] + t * d[a], lower[i]), upper[i])
        if a == first:  # exactly at its bound: rounding must not leave it free
            z[i] = upper[i] if d[a] > 0 else lower[i]
        up[i], low[i] = (0 if z[i] < upper[i] else np.inf), (0 if z[i] > lower[i] else -np.inf)
    for j in range(len(F)):
        F[j] += t * change[j]
    return WHOLE if first < 0 else CUT
