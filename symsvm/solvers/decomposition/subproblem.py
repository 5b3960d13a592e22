"""Focus: SMO on all variables of a working set while many are in question, on these alone once they are few.

    F float64; repeat until the violation is within eps:
        those in question: the free variables, and violators
        if they are many: steps of SMO with F in the type of K
        if they are few: steps of SMO in a matrix of their own, and Newton's steps between them
        F += K d for all that moved, summed in float64

Near the end a dozen variables of thousands move, thousands of times. The last line takes away what the steps in float32
have added up to: a violation can then fall as far as K itself is known.
"""

import numpy as np
from numba import njit

from symsvm.evaluation.loops import sum_rows
from symsvm.solvers.decomposition.small_newton import CUT, leap
from symsvm.solvers.decomposition.smo import BLOCK, question, smo

__all__ = ["focus"]

# The part of the variables that is few, and the part of a violation that a matrix of these is to leave.
_PART, _GOAL = 8, 0.1
# The part that steps on all variables are to leave: further, float32 does not go.
_DIGITS = 1e-3
# Nanoseconds of a step of SMO, and of each variable in it.
_STEP, _EACH = 300.0, 0.8
# Steps of SMO before Newton's; how many of these may end at a bound, and the nanoseconds that they may take.
_LEAST, _LEAPS, _LONG = 50, 10, 1e6


@njit(cache=True, nogil=True)
def _few(K, F, z, lower, upper, diagonal, up, low, floor, eps, most_time, is_tied, chosen):
    """Solve for the chosen variables; return the number of steps and their time."""
    groups, n = len(up), len(chosen)
    size = -(-n // BLOCK) * BLOCK
    k = np.zeros((size, size), K.dtype)
    f, d = np.zeros(size, K.dtype), np.zeros(size, K.dtype)
    x, least, most = np.zeros(size), np.zeros(size), np.zeros(size)
    rise, fall = np.full((groups, size), K.dtype.type(np.inf)), np.full((groups, size), K.dtype.type(-np.inf))
    for a in range(n):
        i = chosen[a]
        f[a], d[a], x[a], least[a], most[a] = F[i], diagonal[i], z[i], lower[i], upper[i]
        rise[:, a], fall[:, a] = up[:, i], low[:, i]
        source, target = K[i], k[a]
        for c in range(n):
            target[c] = source[chosen[c]]
    step, spent, steps = _STEP + _EACH * size, float(size * size), 0
    few = size // _PART if size > BLOCK else 0  # then others are chosen
    while spent < most_time:
        free = 0
        for a in range(n):
            for g in range(groups):
                free += rise[g, a] == 0 and fall[g, a] == 0
        cost = 2e3 + free**3 / 32 + 1.5 * free**2 + 0.2 * free * size
        some = max(_LEAST, int(cost / step))
        taken = smo(k, f, x, least, most, d, rise, fall, floor, eps, some, few)
        steps, spent = steps + taken, spent + taken * step
        if taken < some:
            break
        for g in range(groups):
            for _ in range(min(_LEAPS, 1 + int(_LONG / cost))):
                spent += cost
                if leap(k, f, x, least, most, rise[g], fall[g], is_tied) != CUT:
                    break
    for a in range(n):
        i = chosen[a]
        z[i], up[:, i], low[:, i] = x[a], rise[:, a], fall[:, a]
    return steps, spent


@njit(cache=True, nogil=True)
def focus(K, F, z, lower, upper, diagonal, up, low, floor, eps, most_time, is_tied):
    """Take steps until no group violates optimality by more than eps; return their number, their time, the violation.

    Parameters
    ----------
    F : the gradient (n,), float64; it is kept up to date.
    most_time : nanoseconds, by what steps take as a rule: a run does not depend on the clock.
    is_tied : whether there is an equality; else a variable that nothing bounds takes its place.
    The others are those of `smo`.
    """
    n = len(F)
    before, found, d = z.copy(), np.empty(n + 1, np.int64), np.empty(n)
    steps, spent, few = 0, 0.0, n // _PART
    while True:
        f = F.astype(K.dtype)
        size, violation = question(f, up, low, found)
        if not violation > eps or spent >= most_time:  # no number is no violation that steps could mend
            return steps, spent, violation
        if size > few:
            step, goal = _STEP + _EACH * n, max(eps, _DIGITS * violation)
            most = int((most_time - spent) / step) + 1
            taken = smo(K, f, z, lower, upper, diagonal, up, low, floor, goal, most, few)
            time = taken * step
        else:
            goal, left = max(eps, _GOAL * violation), most_time - spent
            ways = diagonal, up, low, floor
            taken, time = _few(K, F, z, lower, upper, *ways, goal, left, is_tied, found[:size])
        steps, spent = steps + taken, spent + time
        moved = 0
        for i in range(n):
            if z[i] != before[i]:
                found[moved], d[moved], before[i] = i, z[i] - before[i], z[i]
                moved += 1
        if not moved:  # what float64 calls a violation is none in float32
            return steps, spent, violation
        sum_rows(K, found[:moved], d[:moved], F, 0)
