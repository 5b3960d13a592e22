"""Dual coordinate descent: one z_i at a time, v = [X s]'z kept up to date, for the l2 penalty and every loss.

With the others fixed, the dual (see `symsvm.linear.linear_problem`) is in z_i, up to a constant,

    1/2 H (z - z_i)^2 + G (z - z_i) + epsilon |z|,     G = x_i.v - t_i + D_i z_i,     H = |x_i|^2 + s^2 + D_i,

and its minimum over the bounds is  z_i - G / H  drawn towards 0 by epsilon / H, then cut at the bounds. Points are
visited in random order, and one that is at a bound, or at 0 inside the tube, and stays there by more than the extreme
slopes of the last pass rests until the others are done (Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate
descent method for large-scale linear SVM, 2008; Ho and Lin, Large-scale linear support vector regression, 2012).

A free intercept brings sum z = 0. The method of multipliers keeps its estimate b and puts sigma beta with a penalty
beta^2 / 2 beside it, f = X w + s b + sigma beta: a problem without the equality, whose optimum has beta = sigma sum z,
and b + sigma beta / s is the next estimate. It settles where sum z = 0.
"""

import numpy as np
from numba import njit

from symsvm.linear.fetch import fetch, fetch_start
from symsvm.linear.rows import FAST, add, dot

__all__ = ["descend", "descend_free"]

VISITS = 15  # to each point, on average, between two looks at the whole problem
AHEAD = 4  # points that a row is asked for before it is visited
HOPELESS = 0.6  # the share of P that a gap may be at a look


@njit(cache=True, nogil=True, **FAST)
def _random(state, n):
    """A number below n, by xorshift."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(n))


@njit(cache=True, nogil=True, **FAST)
def _passes(parts, s, epsilon, table, u, order, state, memory, most, visits, tol):
    """At most `most` passes, until the slopes of all points span no more than tol; return their number and that.

    They end after so many visits as well. A row of `table` has what belongs to a point, beside each other in memory:
    z, lower, upper, t, D, H. `memory` holds, from pass to pass, the number of points that do not rest, the
    extreme slopes of the last pass, and the number of visits.
    """
    n, d = len(order), len(u) - 1
    active, highest, lowest = int(memory[0]), memory[1], memory[2]
    visits += memory[3]
    for done in range(1, most + 1):
        new_highest, new_lowest = -np.inf, np.inf
        memory[3] += active
        for k in range(active):
            other = k + _random(state, active - k)
            order[k], order[other] = order[other], order[k]
        k = 0
        while k < active:
            i = order[k]
            if k + 2 * AHEAD < active:
                soon = np.int64(order[k + 2 * AHEAD])
                fetch(table, soon)
                fetch_start(parts, soon)
                fetch(parts, np.int64(order[k + AHEAD]))
            a, lo, hi, h = table[i, 0], table[i, 1], table[i, 2], table[i, 5]
            G = dot(parts, i, u) + s * u[d] - table[i, 3] + table[i, 4] * a
            rise, fall = G + (epsilon if a >= 0 else -epsilon), G + (epsilon if a > 0 else -epsilon)
            slope, rests = 0.0, False
            if a <= lo:  # may only rise
                slope, rests = min(rise, 0.0), rise > highest
            elif a >= hi:
                slope, rests = max(fall, 0.0), fall < lowest
            elif rise > 0 and fall < 0:  # the kink at 0
                rests = rise > highest and fall < lowest
            else:
                slope = rise if rise <= 0 else fall
            if rests:
                active -= 1
                order[k], order[active] = order[active], i
                continue
            new_highest, new_lowest = max(new_highest, slope), min(new_lowest, slope)
            if slope != 0:
                if h > 0:
                    best, pull = a - G / h, epsilon / h
                    best = best - pull if best > pull else (best + pull if best < -pull else 0.0)
                    best = min(max(best, lo), hi)
                else:
                    best = hi if slope < 0 else lo
                step = best - a
                if step != 0:
                    table[i, 0] = best
                    add(parts, i, step, u)
                    u[d] += s * step
            k += 1
        if not new_highest - new_lowest > tol:  # also when nobody is left
            highest, lowest = np.inf, -np.inf
            if active == n:
                memory[0], memory[1], memory[2] = active, highest, lowest
                return done, True
            active = n
        else:
            highest = new_highest if new_highest > 0 else np.inf
            lowest = new_lowest if new_lowest < 0 else -np.inf
        memory[0], memory[1], memory[2] = active, highest, lowest
        if memory[3] >= visits:
            return done, False
    return most, False


class _Descent:
    """The state of a descent: z, u, the order of the points and who rests."""

    def __init__(self, problem, z, seed, s):
        rows = problem.rows
        self.problem, self.s = problem, s
        H = rows.squares - rows.s**2 + s**2 + problem.D
        self.table = np.zeros((rows.n, 8))
        self.table[:, :6] = np.stack([z, problem.lower, problem.upper, problem.t, problem.D, H], axis=1)
        self.order = np.flatnonzero(problem.used).astype("uint64")
        self.state = np.array([0x9E3779B97F4A7C15 ^ (seed * 2654435761 + 1)], dtype="uint64")
        self.memory = np.zeros(4)
        self.refresh()
        self.wake()

    @property
    def z(self):
        """A copy of z."""
        return self.table[:, 0].copy()

    def wake(self):
        """Nobody rests."""
        self.memory[:3] = len(self.order), np.inf, -np.inf

    def refresh(self):
        """u = (X'z, s sum z) from scratch."""
        z = self.z
        self.u = self.problem.rows.transposed(z)
        self.u[-1] = self.s * z.sum()
        return self.u.copy(), z

    @property
    def visits(self):
        """The number of visits to each point, on average."""
        return self.memory[3] / len(self.order)

    def passes(self, most, visits, tol):
        """See `_passes`; `visits` to each point, on average."""
        most, visits = int(min(most, 2**40)), visits * len(self.order)
        own = self.table, self.u, self.order, self.state, self.memory
        return _passes(self.problem.rows.parts, self.s, self.problem.epsilon, *own, most, visits, tol)


def descend(problem, z, *, tol, seed, most, visits=np.inf):
    """Yield (passes so far, u, z, None, content) until rounding leaves no step; the intercept is penalised or absent.

    It is content when the slopes span half of tol; LIBLINEAR asks them to span tol. It ends after so many visits to a
    point, on average, and at the first look if that many will not do: a yield may be answered with the `Measure` of its
    point, and a gap that is still most of P tells.
    """
    descent = _Descent(problem, z, seed, problem.rows.s)
    inner, total, last = 0.5 * tol * problem.unit, 0, None
    while descent.visits < visits:
        done, settled = descent.passes(most - total, VISITS, inner)
        total += done
        u, z = descent.refresh()
        measure = yield total, u, z, None, settled
        if measure is not None and visits < np.inf and measure.gap > HOPELESS * measure.primal:
            return
        if settled:
            if last is not None and np.array_equal(last, z):
                return
            last, inner = z, 0.25 * inner


def descend_free(problem, z, b, *, tol, seed, most):
    """Yield (passes so far, u, z) for an intercept that is not penalised, by the method of multipliers."""
    rows = problem.rows
    sigma = float(np.sqrt(max((rows.squares - rows.s**2)[problem.used].mean(), 1e-300)))
    descent = _Descent(problem, z, seed, sigma)
    goal, total = 0.5 * tol * problem.unit, 0
    inner = max(goal, 0.1 * problem.unit)
    while True:
        descent.table[:, 3] = problem.t - rows.s * b
        done, settled = descent.passes(most - total, VISITS, inner)
        total += done
        u, z = descent.refresh()
        # Another estimate of b moves every slope by the shift, which sigma beta held so far.
        shift = sigma * u[-1]
        b = u[-1] = b + shift / rows.s
        descent.wake()
        yield total, u, z
        if settled and abs(shift) <= 2 * inner:
            if inner < 1e-15 * problem.unit:
                return
            inner = goal if inner > goal else 0.25 * inner
        elif settled:
            inner = max(min(inner, 0.3 * abs(shift)), min(goal, inner))
