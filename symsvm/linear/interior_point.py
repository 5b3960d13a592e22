"""The interior-point method and the active-set refinement, for the hinge and epsilon-insensitive losses with l2.

**Interior point.** With one variable a_k >= 0 for each side that z can be on, z = sum_k sigma_k a_k, sigma = y for a
label and +1, -1 for a target, c = epsilon - sigma t, the dual is ::

    minimise 1/2 R(v) + c.a    subject to    0 <= a <= C,    v = [X s]'z      (a free intercept: s sum z = 0),

and u, a and the slacks lam, nu >= 0 of the two bounds are optimal if ::

    R''u = [X s]'z,     sigma [X s]u + c - lam + nu = 0,     a lam = 0,     (C - a) nu = 0.

It is Newton's method on these equations with mu in place of 0, mu to 0 (Mehrotra's predictor and corrector). With a,
lam and nu eliminated, and Theta = lam / a + nu / (C - a), d + 1 equations are left::

    (R'' + [X s]' Psi [X s]) du = rhs,     Psi = sum_k 1 / Theta_k,

whatever n and C are, in some 20 to 40 steps (Ferris and Munson, Interior-point methods for massive support vector
machines, 2002). With fewer points than features, X is replaced by a square root of XX'. In a point that is yielded,
each a is set to a bound if it is nearer to it, as a share of C, than the slack of that bound is to 0.

**Active-set refinement.** A point near the optimum shows which z_i are at a bound, or at 0 inside the tube. The others,
i in I, solve as many equations as there are unknowns::

    [X s]_I v - t_I + epsilon sign z_I = 0,     v = [X s]'z            (a free intercept: s b apart, and s sum z = 0)

Where the solution leaves a bound, or a slope at a bound points inward, I is not the right set yet: it is corrected and
the equations are solved again. Points that occur twice make the equations singular, which determine v but not z: the
least change of z is taken. If I is empty, a free b is known to lie in an interval, whose middle is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from symsvm._lib.code_cache import njit
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.primal_newton import cholesky_solver
from symsvm.linear.rows import LOOP, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from symsvm._lib.types import Array

__all__ = ["MAX_INTERIOR", "interior_point", "refine_active_set"]

MAX_INTERIOR = 1000  # features, or points, up to which the system of equations is formed
INTERIOR_IDLE = 10  # steps without a smaller mu after which rounding has stopped the progress
MAX_REFINED = 2000  # free variables up to which their equations are solved
MAX_CORRECTIONS = 20  # of the active set
ROUNDING = 1e-13  # a violation of this size, relative to the targets, counts as 0
ACCEPTED = 1e-11  # the same after the last correction


def _gram_root(rows: Rows) -> Rows:
    """Return points of at most n features with the same inner products."""
    X = rows.X.astype("float64")
    K = (X @ X.T).toarray() if rows.sparse else X @ X.T
    values, vectors = np.linalg.eigh(K)
    positive = values > max(values[-1], 0.0) * 1e-15
    if not positive.any():
        positive[-1] = True
    return Rows(vectors[:, positive] * np.sqrt(np.maximum(values[positive], 0.0)), rows.s)


@njit(**LOOP)
def _residuals(f, sides, c, a, h, lam, nu, residual, inverse, psi, z):
    """Set residual = sigma f + c - lam + nu, inverse = 1 / Theta, psi and z; return sum a lam + h nu."""
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


@njit(**LOOP)
def _right_hand_side(sides, a, h, lam, nu, residual, inverse, da, dlam, dnu, centre, e, out):
    """Set e of the variables and out = sum_k sigma e / Theta of the points; da, dlam, dnu give the corrector."""
    m = len(out)
    out[:] = 0.0
    for k in range(len(a)):
        up, down = centre - da[k] * dlam[k], centre + da[k] * dnu[k]
        e[k] = -residual[k] + up / a[k] - lam[k] - down / h[k] + nu[k]
        out[k % m] += sides[k] * e[k] * inverse[k]


@njit(**LOOP)
def _direction(df, sides, a, h, lam, nu, inverse, e, da, dlam, dnu, centre):
    """Set da, dlam and dnu from df = [X s] du; return the longest step that keeps a, h, lam and nu positive."""
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


@njit(**LOOP)
def _complementarity(a, h, lam, nu, da, dlam, dnu, length):
    """Return sum a lam + h nu after a step."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] + length * da[k]) * (lam[k] + length * dlam[k])
        total += (h[k] - length * da[k]) * (nu[k] + length * dnu[k])
    return total


@njit(**LOOP)
def _take_step(sides, C, unit, a, h, lam, nu, da, dlam, dnu, length, z):
    """Take a step, and set z with each a at a bound if it is nearer to it, as a share of C, than its slack is to 0."""
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


def interior_point(problem: LinearProblem) -> Iterator[tuple[int, Array, Array]]:
    """Yield (steps so far, u, z) from the middle of the bounds, until rounding stops the progress."""
    rows, unit, used = problem.rows, problem.unit, np.flatnonzero(problem.used)
    inner = _gram_root(rows) if rows.d > rows.n else rows
    reg = np.append(np.ones(inner.d), problem.reg[-1])
    t, C, m, n = problem.t[used], problem.C[used], len(used), rows.n
    labels = problem.classifies
    sides = np.sign(t) if labels else np.repeat([1.0, -1.0], m)
    copies = len(sides) // m
    c = problem.epsilon - sides * np.tile(t, copies)
    whole = m == n

    def product(u: Array) -> Array:
        f = inner.product(u)
        return f if whole else f[used]

    def transposed(x: Array) -> Array:
        return inner.transposed(x if whole else spread(x))

    def spread(x: Array) -> Array:
        full = np.zeros(n)
        full[used] = x
        return full

    a = 0.5 * np.tile(C, copies)
    h, u, f = a.copy(), np.zeros(inner.d + 1), np.zeros(m)
    lam, nu = np.maximum(c, 0.0) + unit, np.maximum(-c, 0.0) + unit
    residual, inverse, e = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    da, dlam, dnu = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    psi, sums, snapped = np.empty(m), np.empty(m), np.empty(m)
    best, idle, done = np.inf, 0, 0
    while True:
        mu = _residuals(f, sides, c, a, h, lam, nu, residual, inverse, psi, sums) / (2 * len(a))
        if mu == 0:  # less than float64 has: C is as small
            return
        residual_u = reg * u - transposed(sums)
        M = inner.normal(psi if whole else spread(psi))
        M[np.diag_indices_from(M)] += reg
        solve = cholesky_solver(M)

        def direction(centre, residual_u=residual_u, solve=solve):
            _right_hand_side(sides, a, h, lam, nu, residual, inverse, da, dlam, dnu, centre, e, sums)
            du = solve(residual_u - transposed(sums))
            return du, _direction(product(du), sides, a, h, lam, nu, inverse, e, da, dlam, dnu, centre)

        da[:] = dlam[:] = dnu[:] = 0.0
        _, length = direction(0.0)
        after = _complementarity(a, h, lam, nu, da, dlam, dnu, min(length, 1.0)) / (2 * len(a))
        du, length = direction((after / mu) ** 3 * mu)
        length = min(1.0, length * min(max(0.9, 1 - mu / (unit * C.max())), 1 - 1e-5))
        _take_step(sides, C, unit, a, h, lam, nu, da, dlam, dnu, length, snapped)
        u = u + length * du
        f = product(u)
        done += 1
        if not (np.isfinite(f).all() and np.isfinite(snapped).all()):
            return
        z = snapped.copy() if whole else spread(snapped)
        point = rows.transposed(problem.balance(z))
        if problem.free:
            point[-1] = u[-1]
        yield done, point, z
        idle = idle + 1 if not mu < 0.9 * best else 0
        best = min(best, mu)
        if idle >= INTERIOR_IDLE or not mu > 1e-22 * unit * C.max():
            return


def _pseudo_inverse(problem: LinearProblem, inside: Array) -> Callable[[Array], Array]:
    """Return the function r -> K^+ r of the matrix of the equations; its last row and column are of a free intercept.

    With more points than features, K is computed in an orthonormal basis Q of its range: K^+ = Q (Q'KQ)^+ Q'. If K
    exceeds the range of float64, the function returns NaN, which ends a run.
    """
    rows, k, d = problem.rows, len(inside), problem.rows.d
    X = rows.X[inside].astype("float64")
    if k > d + 2:
        X = X.toarray() if rows.sparse else X
        B = np.zeros((k + 1, d + 2))
        B[:k, :d], B[:k, d], B[k, d + 1] = X, 1.0, 1.0
        Q = np.linalg.qr(B)[0]
        P, ones, last = X.T @ Q[:k], Q[:k].sum(axis=0), Q[k]
        mixed = np.outer(ones, last)
        K = P.T @ P + (rows.s * (mixed + mixed.T) if problem.free else rows.s**2 * np.outer(ones, ones))
    else:
        Q, K = None, np.zeros((k + 1, k + 1))
        K[:k, :k] = (X @ X.T).toarray() if rows.sparse else X @ X.T
        if problem.free:
            K[:k, k] = K[k, :k] = rows.s
        else:
            K[:k, :k] += rows.s**2
    if not np.isfinite(K).all():
        return lambda r: np.full(k + 1, np.nan)
    inverse: Any = scipy.linalg.pinvh(K, rtol=ROUNDING)
    return (lambda r: inverse @ r) if Q is None else (lambda r: Q @ (inverse @ (Q.T @ r)))


def _slopes(problem: LinearProblem, f: Array, z: Array) -> tuple[Array, Array]:
    """Return the slopes of the dual for a z_i that rises and for one that falls; positive where it improves."""
    epsilon = problem.epsilon
    F = f - problem.t
    rise = np.where(z < problem.upper, -(F + np.where(z >= 0, epsilon, -epsilon)), -np.inf)
    fall = np.where(z > problem.lower, F + np.where(z > 0, epsilon, -epsilon), -np.inf)
    return rise, fall


def _centre_intercept(problem: LinearProblem, u: Array, z: Array) -> Array:
    """Return u with b in the middle of the interval in which the slopes at z allow it."""
    rise, fall = _slopes(problem, problem.rows.product(np.append(u[:-1], 0.0)), z)
    low, high = np.max(rise[problem.used]), -np.max(fall[problem.used])  # s b lies between
    if not np.isfinite([low, high]).all():
        return u
    return np.append(u[:-1], 0.5 * (low + high) / problem.rows.s)


def refine_active_set(problem: LinearProblem, u: Array, z: Array) -> Generator[tuple[int, Array, Array], Any, bool]:
    """Yield (steps so far, u, z) from a point near the optimum; return whether the last one is optimal to rounding."""
    rows, lower, upper = problem.rows, problem.lower, problem.upper
    kink = problem.epsilon > 0
    inside = (z > lower) & (z < upper) & ((z != 0) | (not kink))
    sign = np.sign(z)
    known, solve, worst = np.empty(0), None, np.zeros(1)
    scale, first = problem.unit + np.abs(problem.t).max(), np.inf
    for done in range(1, MAX_CORRECTIONS + 1):
        where = np.flatnonzero(inside)
        if len(where) > MAX_REFINED:
            return False
        z = z.copy()
        if len(where):
            if solve is None or not np.array_equal(known, where):
                solve, known = _pseudo_inverse(problem, where), where
            F = rows.product(u)[where] - problem.t[where] + problem.epsilon * sign[where]
            change = -solve(np.append(F, rows.s * z.sum() if problem.free else 0.0))
            to = z[where] + change[:-1]
            if kink:
                to[to * sign[where] < 0] = 0.0
            z[where] = np.clip(to, lower[where], upper[where])
            b = u[-1] + change[-1]
            u = rows.transposed(z)
            if problem.free:
                u[-1] = b
        else:
            u = _centre_intercept(problem, rows.transposed(z), z) if problem.free else rows.transposed(z)
        yield done, u, z
        rise, fall = _slopes(problem, rows.product(u), z)
        worst = np.where(problem.used, np.maximum(rise, fall), 0.0)
        if worst.max() <= ROUNDING * scale and done > 1:
            return True
        if worst.max() > 10 * first:  # the correction changed too many variables at once
            return False
        still = (z > lower) & (z < upper) & ((z != 0) | (not kink))
        wrong = ~still & (worst > ROUNDING * scale)
        sign = np.where(wrong, np.where(rise > fall, 1.0, -1.0), np.sign(z))
        inside, first = still | wrong, min(first, worst.max())
    return bool(worst.max() <= ACCEPTED * scale)
