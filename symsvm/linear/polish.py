"""The last polish for the hinge and epsilon-insensitive losses with the l2 penalty: exact, once the bounds are known.

A point that is near the optimum tells which z_i are at a bound, or at 0 inside the tube. The others, i in I, solve

    [X s]_I v - t_I + epsilon sign z_I = 0,     v = [X s]'z            (a free intercept: s b apart, and s sum z = 0),

as many equations as unknowns. Where the solution leaves a bound, or a slope at a bound points inward, I is not the
right set yet: it is corrected and solved again. Points that occur twice make the equations singular, with z not
determined but v: the least change of z is taken. Without any i in I a free b is known to lie in an interval, whose
middle is taken.
"""

import numpy as np
import scipy.linalg

__all__ = ["POLISHED", "polish"]

POLISHED = 2000  # variables between their bounds up to which their equations are solved
CORRECTIONS = 20


def _inverse(problem, inside):
    """The pseudo-inverse of the equations' matrix; the last row and column belong to a free intercept."""
    rows, k = problem.rows, len(inside)
    X = rows.X[inside].astype("float64")
    K = np.zeros((k + 1, k + 1))
    K[:k, :k] = (X @ X.T).toarray() if rows.sparse else X @ X.T
    if problem.free:
        K[:k, k] = K[k, :k] = rows.s
    else:
        K[:k, :k] += rows.s**2
    return scipy.linalg.pinvh(K, rtol=1e-13)


def _slopes(problem, f, z):
    """How far the slope points upward and downward at z, positive where z should move so."""
    epsilon = problem.epsilon
    F = f - problem.t
    rise = np.where(z < problem.upper, -(F + np.where(z >= 0, epsilon, -epsilon)), -np.inf)
    fall = np.where(z > problem.lower, F + np.where(z > 0, epsilon, -epsilon), -np.inf)
    return rise, fall


def _middle(problem, u, z):
    """u with b in the middle of the interval that the slopes at z leave it."""
    rise, fall = _slopes(problem, problem.rows.product(np.append(u[:-1], 0.0)), z)
    low, high = np.max(rise[problem.used]), -np.max(fall[problem.used])  # s b lies between
    if not np.isfinite([low, high]).all():
        return u
    return np.append(u[:-1], 0.5 * (low + high) / problem.rows.s)


def polish(problem, u, z):
    """Yield (steps so far, u, z) from a point near the optimum; return whether the last one is optimal to rounding."""
    rows, lower, upper = problem.rows, problem.lower, problem.upper
    kink = problem.epsilon > 0
    inside = (z > lower) & (z < upper) & ((z != 0) | (not kink))
    sign = np.sign(z)
    known, scale, first = None, problem.unit + np.abs(problem.t).max(), np.inf
    for done in range(1, CORRECTIONS + 1):
        where = np.flatnonzero(inside)
        if len(where) > POLISHED:
            return False
        z = z.copy()
        if len(where):
            if known is None or not np.array_equal(known, where):
                inverse, known = _inverse(problem, where), where
            F = rows.product(u)[where] - problem.t[where] + problem.epsilon * sign[where]
            change = -inverse @ np.append(F, rows.s * z.sum() if problem.free else 0.0)
            to = z[where] + change[:-1]
            if kink:
                to[to * sign[where] < 0] = 0.0
            z[where] = np.clip(to, lower[where], upper[where])
            b = u[-1] + change[-1]
            u = rows.transposed(z)
            if problem.free:
                u[-1] = b
        else:
            u = _middle(problem, rows.transposed(z), z) if problem.free else rows.transposed(z)
        yield done, u, z
        rise, fall = _slopes(problem, rows.product(u), z)
        worst = np.where(problem.used, np.maximum(rise, fall), 0.0)
        if worst.max() <= 1e-13 * scale and done > 1:
            return True
        if worst.max() > 10 * first:  # too many at once
            return False
        still = (z > lower) & (z < upper) & ((z != 0) | (not kink))
        wrong = ~still & (worst > 1e-13 * scale)
        sign = np.where(wrong, np.where(rise > fall, 1.0, -1.0), np.sign(z))
        inside, first = still | wrong, min(first, worst.max())
    return worst.max() <= 1e-11 * scale
