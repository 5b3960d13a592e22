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

Where passes are slow, they alternate with descents on the face of z, see `symsvm.linear.box_face`.
"""

import numpy as np
from numba import njit

from symsvm.linear.box_face import face_step
from symsvm.linear.fetch import fetch, fetch_start
from symsvm.linear.rows import FAST, add, dot, inner

__all__ = ["descend", "descend_free"]

VISITS = 15  # to each point, on average, between two looks at the whole problem
AHEAD = 4  # points that a row is asked for before it is visited
HOPELESS = 0.6  # the share of P that a gap may be at a look

# With descents on faces (see `symsvm.linear.box_face`):
FIRST, NEXT = 12, 3  # visits before the first of them, and after each, to correct the face
NEAR, SLOW = 0.03, 0.5  # they begin at this relative gap, or where a look leaves more than this share of the last one's
SHARE = 1e-3  # of the slopes, that is left on a face
LEAST = 1e-3  # the share of the tolerance at which slopes on a face are small enough
CLOSE = 1e-3  # the share of tol that the relative gap may be in the end
PRODUCTS = 100  # with the matrix of a face, at most; twice as many after one that was worth it, up to
MANY = 800
PAUSE = 4  # looks without a face after one that was not, at most


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
        self.products, self.wait, self.pause, self.rate = PRODUCTS, 0, 0, None
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

    def dual(self):
        """The dual's value at z."""
        z, _, _, t, D = self.table.T[:5]
        linear = inner(t, z) - self.problem.epsilon * np.abs(z).sum()
        return linear - 0.5 * inner(D, z**2) - 0.5 * inner(self.u, self.u)

    def face(self, tol):
        """Descend on the face of z; return whether it was done. It is not for some looks after one that was no use."""
        if self.wait:
            self.wait -= 1
            return False
        height, t, H = self.dual(), self.table[:, 3].copy(), self.table[:, 5]
        options = {"products": self.products, "share": SHARE, "least": LEAST * tol}
        self.table[:, 0], visits = face_step(self.problem, self.s, t, self.z, self.u, H, **options)
        if visits:
            self.refresh()
            self.wake()
            self.rate = (self.dual() - height) / visits
        return visits > 0

    def passes(self, most, visits, tol):
        """See `_passes`; `visits` to each point, on average.

        A descent on a face was worth it if it raised the dual by more a visit than the passes after it.
        """
        most, visits = int(min(most, 2**40)), visits * len(self.order)
        seen, height = self.memory[3], 0.0 if self.rate is None else self.dual()
        own = self.table, self.u, self.order, self.state, self.memory
        ended = _passes(self.problem.rows.parts, self.s, self.problem.epsilon, *own, most, visits, tol)
        if self.rate is not None:
            good = self.rate >= (self.dual() - height) / (self.memory[3] - seen)
            self.products = min(MANY, 2 * self.products) if good else PRODUCTS
            self.wait = self.pause = 0 if good else min(PAUSE, max(1, 2 * self.pause))
            self.rate = None
        return ended


def descend(problem, z, *, tol, seed, most, visits=np.inf):
    """Yield (passes so far, u, z, f, content) until rounding leaves no step; the intercept is penalised or absent.

    It is content when the slopes span half of tol; LIBLINEAR asks them to span tol. It ends after so many visits to a
    point, on average, and at the first look if that many will not do: a yield may be answered with the `Measure` of its
    point, and a gap that is still most of P tells.
    """
    if visits == np.inf:
        yield from _descend_by_faces(problem, z, tol=tol, seed=seed, most=most)
        return
    descent = _Descent(problem, z, seed, problem.rows.s)
    slopes, total, last = 0.5 * tol * problem.unit, 0, None
    while descent.visits < visits:
        done, settled = descent.passes(most - total, VISITS, slopes)
        total += done
        u, z = descent.refresh()
        measure = yield total, u, z, None, settled
        if measure is not None and measure.gap > HOPELESS * measure.primal:
            return
        if settled:
            if last is not None and np.array_equal(last, z):
                return
            last, slopes = z, 0.25 * slopes


def _descend_by_faces(problem, z, *, tol, seed, most):
    """`descend` without an end to the visits: passes find the face of the optimum, `face_step` what is optimal there.

    It is content when no slope is more than a quarter of tol and the gap is small beside tol as well: what is left on a
    face is left to all its points, and adds up.
    """
    descent = _Descent(problem, z, seed, problem.rows.s)
    slopes, total, last, limit, gap = 0.5 * tol * problem.unit, 0, None, FIRST, np.inf

    def look(settled):
        """The point as it is yielded, and its relative gap."""
        u, z = descent.refresh()
        f = problem.rows.product(u)
        P, gap, violation = problem.judged(u, z, f)
        small = (settled or violation <= 0.25 * tol) and gap <= max(CLOSE * tol, 1e-12) * P
        return (total, u, z, f, small), gap / P if P > 0 else 0.0

    while True:
        done, settled = descent.passes(most - total, limit, slopes)
        total += done
        point, now = look(settled)
        yield point
        if settled:
            if last is not None and np.array_equal(last, point[2]):
                return
            last, slopes = point[2], 0.25 * slopes
        early, gap, limit = NEAR < now < SLOW * gap, now, VISITS
        if not early and descent.face(slopes):
            total, limit = total + 1, NEXT
            yield look(False)[0]


def descend_free(problem, z, b, *, tol, seed, most):
    """Yield (passes so far, u, z) for an intercept that is not penalised, by the method of multipliers."""
    rows = problem.rows
    sigma = float(np.sqrt(max((rows.squares - rows.s**2)[problem.used].mean(), 1e-300)))
    descent = _Descent(problem, z, seed, sigma)
    goal, total = 0.5 * tol * problem.unit, 0
    slopes = max(goal, 0.1 * problem.unit)
    while True:
        descent.table[:, 3] = problem.t - rows.s * b
        done, settled = descent.passes(most - total, FIRST, slopes)
        total += done
        u, z = descent.refresh()
        if not settled and descent.face(slopes):
            total += 1
            u, z = descent.refresh()
        # Another estimate of b moves every slope by the shift, which sigma beta held so far.
        shift = sigma * u[-1]
        b = u[-1] = b + shift / rows.s
        descent.wake()
        yield total, u, z
        if settled and abs(shift) <= 2 * slopes:
            if slopes < 1e-15 * problem.unit:
                return
            slopes = goal if slopes > goal else 0.25 * slopes
        elif settled:
            slopes = max(min(slopes, 0.3 * abs(shift)), min(goal, slopes))
