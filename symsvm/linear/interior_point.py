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

from symsvm.linear.primal_newton import cholesky_solver

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from symsvm._lib.types import Array
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["MAX_INTERIOR", "interior_point", "refine_active_set"]

MAX_INTERIOR = 1000  # features, or points, up to which the system of equations is formed
INTERIOR_IDLE = 10  # steps without a smaller mu after which rounding has stopped the progress
MAX_REFINED = 2000  # free variables up to which their equations are solved
MAX_CORRECTIONS = 20  # of the active set
ROUNDING = 1e-13  # a violation of this size, relative to the targets, counts as 0
ACCEPTED = 1e-11  # the same after the last correction


def interior_point(problem: Any) -> Iterator[tuple[int, Array, Any]]:
    """Yield (steps so far, u, z) from the middle of the bounds, until rounding stops the progress.

    The problem is a `LinearProblem`, or another with its `reg`, `unit`, `free`, `interior_variables` and `combination`.
    """
    variables = problem.interior_variables()
    reg = np.append(np.ones(variables.d), problem.reg[-1])
    size = problem.unit * variables.largest_cost
    u = np.zeros(variables.d + 1)
    best, idle, done = np.inf, 0, 0
    while True:
        total, v = variables.residuals()
        mu = total / variables.n_bounds
        if mu == 0:  # less than float64 has: C is as small
            return
        residual_u = reg * u - v
        M = variables.normal()
        M[np.diag_indices_from(M)] += reg
        solve = cholesky_solver(M)

        def direction(centre, residual_u=residual_u, solve=solve):
            du = solve(residual_u - variables.right_hand_side(centre))
            return du, variables.direction(du, centre)

        _, length = direction(0.0)
        after = variables.complementarity(min(length, 1.0)) / variables.n_bounds
        du, length = direction((after / mu) ** 3 * mu)
        length = min(1.0, length * min(max(0.9, 1 - mu / size), 1 - 1e-5))
        u = u + length * du
        z = variables.take_step(length, u)
        done += 1
        if z is None:
            return
        point = problem.combination(z)
        if problem.free:
            point[-1] = u[-1]
        yield done, point, z
        idle = idle + 1 if not mu < 0.9 * best else 0
        best = min(best, mu)
        if idle >= INTERIOR_IDLE or not mu > 1e-22 * size:
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
