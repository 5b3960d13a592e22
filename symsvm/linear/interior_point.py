"""The interior-point method, for the hinge and epsilon-insensitive losses with the l2 penalty and any intercept.

With one variable a_k >= 0 for each side that z can be on, z = sum_k sigma_k a_k, sigma = y for a label and +1, -1 for a
target, c = epsilon - sigma t, the dual is

    minimise 1/2 R(v) + c.a    subject to    0 <= a <= C,    v = [X s]'z      (a free intercept: s sum z = 0),

and optimal are u, a and slacks lam, nu >= 0 of the two bounds with

    R''u = [X s]'z,     sigma [X s]u + c - lam + nu = 0,     a lam = 0,     (C - a) nu = 0.

Newton's method on these equations with mu instead of 0, mu to 0 (Mehrotra's predictor and corrector). Eliminating a,
lam and nu, with Theta = lam / a + nu / (C - a), leaves d + 1 equations

    (R'' + [X s]' Psi [X s]) du = rhs,     Psi = sum_k 1 / Theta_k,

whatever n and C are, in some 20 to 40 steps (Ferris and Munson, Interior-point methods for massive support vector
machines, 2002). With fewer points than features, X is replaced by a square root of XX'. A point that is read off has
each a set to a bound that it is nearer to, as a share of C, than the slack of that bound is to 0.
"""

import numpy as np
from numba import njit

from symsvm.linear.newton import factored
from symsvm.linear.rows import FAST, Rows

__all__ = ["INTERIOR", "interior_point"]

INTERIOR = 1000  # features, or points, up to which a system of equations is formed


def _root(rows):
    """Points of at most n features with the same inner products."""
    X = rows.X.astype("float64")
    K = (X @ X.T).toarray() if rows.sparse else X @ X.T
    values, vectors = np.linalg.eigh(K)
    keep = values > max(values[-1], 0.0) * 1e-15
    if not keep.any():
        keep[-1] = True
    return Rows(vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0)), rows.s)


@njit(cache=True, nogil=True, **FAST)
def _survey(f, sides, c, a, h, lam, nu, residual, inverse, psi, z):
    """residual = sigma f + c - lam + nu, inverse = 1 / Theta, psi and z of the points; return sum a lam + h nu."""
    m, total = len(f), 0.0
    psi[:] = 0.0
    z[:] = 0.0
    for k in range(len(a)):
        i = k % m
        total += a[k] * lam[k] + h[k] * nu[k]
        residual[k] = sides[k] * f[i] + c[k] - lam[k] + nu[k]
        inverse[k] = a[k] * h[k] / (lam[k] * h[k] + nu[k] * a[k])
        psi[i] += inverse[k]
        z[i] += sides[k] * a[k]
    return total


@njit(cache=True, nogil=True, **FAST)
def _sides(sides, a, h, lam, nu, residual, inverse, da, dlam, dnu, centre, e, out):
    """The right-hand side: e of the variables, and sum_k sigma e / Theta of the points; da, ... correct it."""
    m = len(out)
    out[:] = 0.0
    for k in range(len(a)):
        up, down = centre - da[k] * dlam[k], centre + da[k] * dnu[k]
        e[k] = -residual[k] + up / a[k] - lam[k] - down / h[k] + nu[k]
        out[k % m] += sides[k] * e[k] * inverse[k]


@njit(cache=True, nogil=True, **FAST)
def _direction(df, sides, a, h, lam, nu, inverse, e, da, dlam, dnu, centre):
    """da, dlam and dnu from df = [X s] du; return the longest step that keeps all of them positive."""
    m, length = len(df), np.inf
    for k in range(len(a)):
        up, down = centre - da[k] * dlam[k], centre + da[k] * dnu[k]
        x = (e[k] - sides[k] * df[k % m]) * inverse[k]
        y, w = (up - lam[k] * x) / a[k] - lam[k], (down + nu[k] * x) / h[k] - nu[k]
        da[k], dlam[k], dnu[k] = x, y, w
        if x < 0:
            length = min(length, -a[k] / x)
        elif x > 0:
            length = min(length, h[k] / x)
        if y < 0:
            length = min(length, -lam[k] / y)
        if w < 0:
            length = min(length, -nu[k] / w)
    return length


@njit(cache=True, nogil=True, **FAST)
def _after(a, h, lam, nu, da, dlam, dnu, length):
    """sum a lam + h nu after a step."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] + length * da[k]) * (lam[k] + length * dlam[k])
        total += (h[k] - length * da[k]) * (nu[k] + length * dnu[k])
    return total


@njit(cache=True, nogil=True, **FAST)
def _take(sides, C, unit, a, h, lam, nu, da, dlam, dnu, length, z):
    """Take a step, and read off z: each a at the bound that is nearer, as a share of C, than its slack is to 0."""
    m = len(z)
    z[:] = 0.0
    for k in range(len(a)):
        i = k % m
        a[k] += length * da[k]
        h[k] -= length * da[k]
        lam[k] += length * dlam[k]
        nu[k] += length * dnu[k]
        if a[k] * unit >= lam[k] * C[i]:
            z[i] += sides[k] * (C[i] if h[k] * unit < nu[k] * C[i] else min(a[k], C[i]))


def interior_point(problem):
    """Yield (steps so far, u, z) from the middle of the bounds, until rounding stops the progress."""
    rows, unit, used = problem.rows, problem.unit, np.flatnonzero(problem.used)
    inner = _root(rows) if rows.d > rows.n else rows
    reg = np.append(np.ones(inner.d), problem.reg[-1])
    t, C, m, n = problem.t[used], problem.C[used], len(used), rows.n
    labels = problem.classifies
    sides = np.sign(t) if labels else np.repeat([1.0, -1.0], m)
    copies = len(sides) // m
    c = problem.epsilon - sides * np.tile(t, copies)
    whole = m == n

    def product(u):
        f = inner.product(u)
        return f if whole else f[used]

    def transposed(x):
        return inner.transposed(x if whole else spread(x))

    def spread(x):
        full = np.zeros(n)
        full[used] = x
        return full

    a = 0.5 * np.tile(C, copies)
    h, u, f = a.copy(), np.zeros(inner.d + 1), np.zeros(m)
    lam, nu = np.maximum(c, 0.0) + unit, np.maximum(-c, 0.0) + unit
    residual, inverse, e = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    da, dlam, dnu = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    psi, sums, read = np.empty(m), np.empty(m), np.empty(m)
    best, idle, done = np.inf, 0, 0
    while True:
        mu = _survey(f, sides, c, a, h, lam, nu, residual, inverse, psi, sums) / (2 * len(a))
        residual_u = reg * u - transposed(sums)
        M = inner.normal(psi if whole else spread(psi))
        M[np.diag_indices_from(M)] += reg
        solve = factored(M)

        def direction(centre, residual_u=residual_u, solve=solve):
            _sides(sides, a, h, lam, nu, residual, inverse, da, dlam, dnu, centre, e, sums)
            du = solve(residual_u - transposed(sums))
            return du, _direction(product(du), sides, a, h, lam, nu, inverse, e, da, dlam, dnu, centre)

        da[:] = dlam[:] = dnu[:] = 0.0
        _, length = direction(0.0)
        after = _after(a, h, lam, nu, da, dlam, dnu, min(length, 1.0)) / (2 * len(a))
        du, length = direction((after / mu) ** 3 * mu)
        length = min(1.0, length * min(max(0.9, 1 - mu / (unit * C.max())), 1 - 1e-5))
        _take(sides, C, unit, a, h, lam, nu, da, dlam, dnu, length, read)
        u = u + length * du
        f = product(u)
        done += 1
        if not (np.isfinite(f).all() and np.isfinite(read).all()):
            return
        z = read.copy() if whole else spread(read)
        point = rows.transposed(problem.balanced(z))
        if problem.free:
            point[-1] = u[-1]
        yield done, point, z
        idle = idle + 1 if not mu < 0.9 * best else 0
        best = min(best, mu)
        if idle >= 10 or not mu > 1e-22 * unit * C.max():
            return
