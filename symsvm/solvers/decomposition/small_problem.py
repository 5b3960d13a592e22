"""A small problem in one call: SMO and Newton's steps on the whole matrix, in float64 throughout.

    steps of SMO until the violation is at most a part of tol, with Newton's steps between them where they are many
    repeat: Newton's steps on the free variables; F = K z + D z + p anew; stop at the level of rounding; steps of SMO

It is what `algorithm` does with a problem that is its own working set. For a hundred points its Python takes ten times
as long as the steps; here it is one compiled function, and `algorithm` solves what it leaves: problems that take many
steps, and those whose values are not finite.
"""

from __future__ import annotations

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.compiler.ops.scratch import indices, matrix, vector
from symsvm.solvers.decomposition.small_newton import CUT, small_newton
from symsvm.solvers.decomposition.smo import BLOCK, smo
from symsvm.solvers.decomposition.variable_loops import gap, survey

__all__ = ["FIELDS", "minimise"]

# What `minimise` writes at the start and at the end: W, violation, gap, free and bounded variables. Then whether it has
# converged, whether variables are off their bounds by rounding, the steps, and the largest K_ii.
FIELDS = 14
# Nanoseconds of a step of SMO, and of each variable in it; those that a run may take, by these.
_STEP, _EACH, _MOST_TIME = 100.0, 0.6, 1e8
# Newton's steps that may end at a bound, one after another, and their nanoseconds; steps of SMO before them, at least.
_CUTS, _CUT_TIME, _STEPS_BETWEEN = 10, 1e6, 50
_EPS = 2.0**-52
# The part of tol that is left of a violation where the result is exact.
_EXACT = 1e-6
_INNER = {"cache": True, "error_model": "numpy", "no_cpython_wrapper": True}


@njit(**_INNER)
def _lay_out(K, points, diagonal, A):
    """A = K + D between the variables, of which m, 2 m, ... belong to m points; 0 in further rows and columns."""
    m = len(points)
    for i in range(len(diagonal)):
        row, out = K[points[i % m]], A[i]
        for low in range(0, len(diagonal), m):
            for j in range(m):
                out[low + j] = row[points[j]]
        for j in range(len(diagonal), len(A)):
            out[j] = 0.0
        out[i] += diagonal[i]
    for i in range(len(diagonal), len(A)):
        for j in range(len(A)):
            A[i, j] = 0.0


@njit(**_INNER)
def _multiply(A, z, diagonal, Kz, total):
    """K z for each point, from the rows of A at the support."""
    for j in range(len(total)):
        total[j] = 0.0
    for i in range(len(z)):
        by = z[i]
        if by != 0:
            row = A[i]
            for j in range(len(total)):
                total[j] += by * row[j]
    for k in range(len(Kz)):
        Kz[k] = total[k] - diagonal[k] * z[k]


@njit(**_INNER)
def _negative(x, n):
    """The negatives of the first n; expressions of arrays take seconds to compile."""
    found = vector(n, x)
    for i in range(n):
        found[i] = -x[i]
    return found


@njit(**_INNER)
def _value(Kz, z, diagonal, p):
    """1/2 z.(K + D) z + p.z."""
    total = 0.0
    for i in range(len(z)):
        total += z[i] * (0.5 * (Kz[i % len(Kz)] + diagonal[i] * z[i]) + p[i])
    return total


@njit(**_INNER)
def _largest(x):
    """The largest |x_i|; NaN if one is."""
    most = 0.0
    for i in range(len(x)):
        if not abs(x[i]) <= most:
            most = abs(x[i])
    return most


@njit(**_INNER)
def _is_feasible(z, group, total, slack):
    """Whether the totals are what rounding allows: `slack` times the sum of |z_i|."""
    size = 0.0
    for i in range(len(z)):
        size += abs(z[i])
    for g in range(len(total)):
        found = 0.0
        for i in range(len(z)):
            found += z[i] if group[i] == g else 0.0
        if not abs(found - total[g]) <= slack * size:
            return False
    return True


@njit(**_INNER)
def _is_off_bounds(z, lower, upper, slack):
    """Whether a variable is not at its bound, by rounding alone."""
    size, most = 0.0, 0.0
    for i in range(len(z)):
        size, most = size + abs(z[i]), max(most, abs(z[i]))
    rounding = max(slack * size, 8 * _EPS * most)
    for i in range(len(z)):
        for bound in (lower[i], upper[i]):
            if z[i] != bound and abs(z[i] - bound) <= rounding:
                return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def minimise(
    K, points, p, lower, upper, diagonal, group, total, start, tol, aim, slack, rounding, rounds, most_deep, out
):
    """Solve the problem; write `FIELDS` to `out`, and return (z, K z) and (start, K start).

    Parameters
    ----------
    K, points : the kernel matrix, and its rows and columns that are the points of the problem.
    p, lower, upper, diagonal, group, total : those of the `QuadraticProgram`.
    start : a feasible point.
    tol, aim : the largest violation, and the part of it to aim at before Newton's steps.
    slack : the rounding of a total, as a part of the sum of |z_i|.
    rounding, rounds : the violation that is rounding, as a part of what cancels; rounds until it is reached, at most.
    most_deep : the multiplications of all rounds up to which they are taken.
    """
    n, m, groups, is_tied = len(p), len(points), max(1, len(total)), len(total) > 0
    # No equality is an equality with a further variable that has no bounds and no costs.
    size = -(-(n + (1 - is_tied)) // BLOCK) * BLOCK
    A = matrix(size, size, p)
    _lay_out(K, points, diagonal, A)
    f, x, least, most, sizes = vector(size, p), vector(size, p), vector(size, p), vector(size, p), vector(size, p)
    for i in range(size):
        f[i] = x[i] = least[i] = most[i] = sizes[i] = 0.0
    rise, fall = matrix(groups, size, p), matrix(groups, size, p)
    for g in range(groups):
        for i in range(size):
            rise[g, i], fall[g, i] = np.inf, -np.inf
    z, F, every = x[:n], f[:n], indices(n)
    ridge = np.inf
    for i in range(n):
        every[i], x[i], least[i], most[i], sizes[i] = i, start[i], lower[i], upper[i], A[i, i]
        g = max(group[i], 0)
        rise[g, i], fall[g, i] = (0.0 if x[i] < upper[i] else np.inf), (0.0 if x[i] > lower[i] else -np.inf)
        ridge = min(ridge, diagonal[i])
    if not is_tied:
        rise[0, n] = fall[0, n] = 0.0
        least[n], most[n] = -np.inf, np.inf
    # K is positive semi-definite: along an edge at least D is left.
    floor = max(1e-30, 1e-12 * _largest(sizes), (1 + is_tied) * ridge)
    ends, Kz, sums = matrix(3, groups, p), vector(m, p), vector(n, p)
    best_z, best_Kz, before = vector(n, p), vector(m, p), vector(m, p)
    best, last, reached, spent, steps, step, turn = np.inf, np.inf, tol, 0.0, 0, _STEP + _EACH * size, 0
    out[10] = out[11] = 0.0
    # Each function is called in one place: a further one would compile it again.
    while True:
        _multiply(A, z, diagonal, Kz, sums)
        free, bounded, violation = survey(
            Kz, z, lower, upper, diagonal, p, group, every, is_tied, F, ends[0], ends[1], ends[2]
        )
        W = _value(Kz, z, diagonal, p)
        distance = gap(F, z, lower, upper, diagonal, group, _negative(ends[2], len(total)), every)
        level = rounding * (_largest(Kz) + _largest(p))
        if turn == 0:
            out[0], out[1], out[2], out[3], out[4] = W, violation, distance, free, bounded
            goal, some = aim * tol, 0
            for k in range(m):
                before[k] = Kz[k]
        else:
            if violation < best:
                best = violation
                out[5], out[6], out[7], out[8], out[9] = W, violation, distance, free, bounded
                for i in range(n):
                    best_z[i] = z[i]
                for k in range(m):
                    best_Kz[k] = Kz[k]
            is_enough = not violation > level or (violation <= aim * tol and reached == tol)
            if is_enough or not violation <= 0.5 * last or turn == rounds:
                break
            last, goal = violation, max(level, 0.1 * violation)
        while True:  # SMO, and Newton's steps where it takes more time than they do
            free, support, taken = 0, 0, 0
            for i in range(n):
                free += lower[i] < x[i] < upper[i]
                support += x[i] != 0
            cost = 2e3 + free**3 / 8 + 1.5 * free**2 + 0.5 * free * size
            some = max(_STEPS_BETWEEN, int(cost / step)) if turn == 0 else _STEPS_BETWEEN
            if violation > goal:
                taken = smo(A, f, x, least, most, sizes, rise, fall, floor, goal, some, 0)
            steps, spent = steps + taken, spent + taken * step
            for g in range(groups):
                for _ in range(min(_CUTS, 1 + int(_CUT_TIME / cost))):
                    spent += cost
                    if small_newton(A, f, x, least, most, rise[g], fall[g], is_tied) != CUT:
                        break
            if turn > 0 or taken < some or spent > _MOST_TIME:
                break
        turn += 1
        # Where rounds are cheap, the result is exact: it does not depend on the way to it.
        is_deep = rounds * (free**3 / 3.0 + 4.0 * n * (free + support)) <= most_deep
        reached = _EXACT * tol if is_deep else tol
    is_solved = best <= reached and np.isfinite(out[5]) and _is_feasible(best_z, group, total, slack)
    out[10], out[11] = is_solved, _is_off_bounds(best_z, lower, upper, slack)
    out[12], out[13] = steps, _largest(sizes)
    return best_z, best_Kz, before
