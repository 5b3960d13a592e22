"""Dual coordinate descent: one z_i at a time, with v = [X s]'z updated, for the l2 penalty and every loss.

With the others fixed, the dual (see `symsvm.linear.linear_problem`) is in z_i, up to a constant, ::

    1/2 H (z - z_i)^2 + G (z - z_i) + epsilon |z|,     G = x_i.v - t_i + D_i z_i,     H = |x_i|^2 + s^2 + D_i,

and its minimum over the bounds is z_i - G / H, soft-thresholded by epsilon / H and clipped to the bounds. Points are
visited in random order. A point is shrunk (skipped until the others have converged) if it is at a bound, or at 0
inside the tube, by more than the extreme slopes of the last pass (Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual
coordinate descent method for large-scale linear SVM, 2008; Ho and Lin, Large-scale linear support vector regression,
2012).

A free intercept adds sum z = 0. The method of multipliers has an estimate b of it and adds sigma beta with the penalty
beta^2 / 2, f = X w + s b + sigma beta: a problem without the equality, whose optimum has beta = sigma sum z. The next
estimate is b + sigma beta / s. It converges where sum z = 0.

Where passes are slow, they alternate with subspace minimisation, see `symsvm.linear.subspace`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP, add, dot, inner, prefetch, prefetch_pointer
from symsvm.linear.subspace import minimize_free_variables

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from symsvm._lib.types import Array
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["coordinate_descent", "multiplier_descent", "random_below", "random_state"]

VISITS = 15  # visits to each point, on average, between two evaluations of the whole problem
PREFETCH = 4  # how many points ahead a row is prefetched
HOPELESS_GAP = 0.6  # a gap that is more than this share of P at an evaluation ends a descent with limited visits

# With subspace minimisation (see `symsvm.linear.subspace`):
FIRST_VISITS, NEXT_VISITS = 12, 3  # visits before the first one, and after each, to correct the active set
NEAR_GAP, SLOW_GAP = 0.03, 0.5  # it begins at this relative gap, or where passes leave more than this share of it
SUBSPACE_SHARE = 1e-3  # the share of the slopes at which it ends
SUBSPACE_TOL = 1e-3  # or the share of the tolerance
FINAL_GAP = 1e-3  # the share of tol that the relative gap must reach
FIRST_PRODUCTS, MAX_PRODUCTS = 100, 800  # the limit on products with K: at first, doubled after a success, at most
MAX_PAUSE = 4  # evaluations without it after one that did not pay, at most


def random_state(seed: int) -> Array:
    """Return the first state of `random_below` for a seed."""
    return np.array([0x9E3779B97F4A7C15 ^ (seed * 2654435761 + 1)], dtype="uint64")


@njit(**LOOP)
def random_below(state, n):
    """Return a random integer below n, by xorshift."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(n))


@njit(**LOOP)
def _passes(arrays, s, epsilon, table, u, order, state, memory, most, visits, tol):
    """Make at most `most` passes, until the slopes of all points span no more than tol.

    They also end after so many visits. A row of `table` has the numbers of one point, adjacent in memory: z, lower,
    upper, t, D, H. `memory` keeps from pass to pass the number of points that are not shrunk, the extreme slopes of the
    last pass, and the number of visits. Return the number of passes and whether the span reached tol.
    """
    n, d = len(order), len(u) - 1
    active, highest, lowest = int(memory[0]), memory[1], memory[2]
    visits += memory[3]
    for done in range(1, most + 1):
        new_highest, new_lowest = -np.inf, np.inf
        memory[3] += active
        for k in range(active):
            other = k + random_below(state, active - k)
            order[k], order[other] = order[other], order[k]
        k = 0
        while k < active:
            i = order[k]
            if k + 2 * PREFETCH < active:
                soon = np.int64(order[k + 2 * PREFETCH])
                prefetch(table, soon)
                prefetch_pointer(arrays, soon)
                prefetch(arrays, np.int64(order[k + PREFETCH]))
            a, lo, hi, h = table[i, 0], table[i, 1], table[i, 2], table[i, 5]
            G = dot(arrays, i, u) + s * u[d] - table[i, 3] + table[i, 4] * a
            rise, fall = G + (epsilon if a >= 0 else -epsilon), G + (epsilon if a > 0 else -epsilon)
            slope, shrinks = 0.0, False
            if a <= lo:  # may only rise
                slope, shrinks = min(rise, 0.0), rise > highest
            elif a >= hi:
                slope, shrinks = max(fall, 0.0), fall < lowest
            elif rise > 0 and fall < 0:  # the kink at 0
                shrinks = rise > highest and fall < lowest
            else:
                slope = rise if rise <= 0 else fall
            if shrinks:
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
                    add(arrays, i, step, u)
                    u[d] += s * step
            k += 1
        if not new_highest - new_lowest > tol:  # also if no point is left
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
    """The state of a descent: z, u, the order of the points and which are shrunk."""

    def __init__(self, problem: LinearProblem, z: Array, seed: int, s: float) -> None:
        rows = problem.rows
        self.problem, self.s = problem, s
        H = rows.squares - rows.s**2 + s**2 + problem.D
        self.table = np.zeros((rows.n, 8))
        self.table[:, :6] = np.stack([z, problem.lower, problem.upper, problem.t, problem.D, H], axis=1)
        self.order = np.flatnonzero(problem.used).astype("uint64")
        self.state = random_state(seed)
        self.memory = np.zeros(4)
        self.products, self.wait, self.pause, self.rate = FIRST_PRODUCTS, 0, 0, None
        self.recompute()
        self.unshrink()

    @property
    def z(self) -> Array:
        """A copy of z."""
        return self.table[:, 0].copy()

    def unshrink(self) -> None:
        """Visit all points again."""
        self.memory[:3] = len(self.order), np.inf, -np.inf

    def recompute(self) -> tuple[Array, Array]:
        """Compute u = (X'z, s sum z) anew, without the rounding of its updates; return u and z."""
        z = self.z
        self.u = self.problem.rows.transposed(z)
        self.u[-1] = self.s * z.sum()
        return self.u.copy(), z

    @property
    def visits(self) -> float:
        """The number of visits to each point, on average."""
        return self.memory[3] / len(self.order)

    def dual(self) -> float:
        """Return the dual objective at z."""
        z, _, _, t, D = self.table.T[:5]
        linear = inner(t, z) - self.problem.epsilon * np.abs(z).sum()
        return linear - 0.5 * inner(D, z**2) - 0.5 * inner(self.u, self.u)

    def minimize_subspace(self, tol: float) -> bool:
        """Minimise over the free variables; return whether it was done: it pauses after a time that did not pay."""
        if self.wait:
            self.wait -= 1
            return False
        height, t, H = self.dual(), self.table[:, 3].copy(), self.table[:, 5]
        self.table[:, 0], visits = minimize_free_variables(
            self.problem,
            self.s,
            t,
            self.z,
            self.u,
            H,
            products=self.products,
            share=SUBSPACE_SHARE,
            least=SUBSPACE_TOL * tol,
        )
        if visits:
            self.recompute()
            self.unshrink()
            self.rate = (self.dual() - height) / visits
        return visits > 0

    def passes(self, most: float, visits: float, tol: float) -> tuple[int, bool]:
        """See `_passes`; `visits` counts those to each point, on average.

        Subspace minimisation has paid if it raised the dual by more per visit than the passes after it.
        """
        most, visits = int(min(most, 2**40)), visits * len(self.order)
        seen, height = self.memory[3], 0.0 if self.rate is None else self.dual()
        own = self.table, self.u, self.order, self.state, self.memory
        ended = _passes(self.problem.rows.arrays, self.s, self.problem.epsilon, *own, most, visits, tol)
        if self.rate is not None:
            paid = self.rate >= (self.dual() - height) / (self.memory[3] - seen)
            self.products = min(MAX_PRODUCTS, 2 * self.products) if paid else FIRST_PRODUCTS
            self.wait = self.pause = 0 if paid else min(MAX_PAUSE, max(1, 2 * self.pause))
            self.rate = None
        return ended


def coordinate_descent(
    problem: LinearProblem, z: Array, *, tol: float, seed: int, most: float, visits: float = np.inf
) -> Generator[tuple[Any, ...], Any, None]:
    """Yield (passes so far, u, z, f, converged) until rounding stops the progress.

    The intercept is penalised or absent. A point has converged if the slopes span half of tol, where LIBLINEAR asks
    for tol. `most` limits the passes. With limited `visits` to a point, on average, it also ends early if they will
    not suffice: the caller may send the `Measure` of a yielded point, whose gap is then still most of P.
    """
    if visits == np.inf:
        yield from _descend_with_subspaces(problem, z, tol=tol, seed=seed, most=most)
        return
    descent = _Descent(problem, z, seed, problem.rows.s)
    slopes, total, last = 0.5 * tol * problem.unit, 0, None
    while descent.visits < visits:
        done, converged = descent.passes(most - total, VISITS, slopes)
        total += done
        u, z = descent.recompute()
        measure = yield total, u, z, None, converged
        if measure is not None and measure.gap > HOPELESS_GAP * measure.primal:
            return
        if converged:
            if last is not None and np.array_equal(last, z):
                return
            last, slopes = z, 0.25 * slopes


def _descend_with_subspaces(
    problem: LinearProblem, z: Array, *, tol: float, seed: int, most: float
) -> Iterator[tuple[Any, ...]]:
    """Alternate passes, which find the active set of the optimum, with the minimisation over its free variables.

    A point has converged if no slope exceeds a quarter of tol and the gap is small beside tol as well: the slopes that
    subspace minimisation leaves are on all free variables, and add up in the gap.
    """
    descent = _Descent(problem, z, seed, problem.rows.s)
    slopes, total, last, limit, gap = 0.5 * tol * problem.unit, 0, None, FIRST_VISITS, np.inf

    def evaluate(converged: bool) -> tuple[tuple[Any, ...], float]:
        """Return the point to yield and its relative gap."""
        u, z = descent.recompute()
        f = problem.rows.product(u)
        P, gap, violation = problem.measure_dual(u, z, f)
        small = (converged or violation <= 0.25 * tol) and gap <= max(FINAL_GAP * tol, 1e-12) * P
        return (total, u, z, f, small), gap / P if P > 0 else 0.0

    while True:
        done, converged = descent.passes(most - total, limit, slopes)
        total += done
        point, now = evaluate(converged)
        yield point
        if converged:
            if last is not None and np.array_equal(last, point[2]):
                return
            last, slopes = point[2], 0.25 * slopes
        early, gap, limit = NEAR_GAP < now < SLOW_GAP * gap, now, VISITS
        if not early and descent.minimize_subspace(slopes):
            total, limit = total + 1, NEXT_VISITS
            yield evaluate(False)[0]


def multiplier_descent(
    problem: LinearProblem, z: Array, b: float, *, tol: float, seed: int, most: float
) -> Iterator[tuple[int, Array, Array]]:
    """Yield (passes so far, u, z) for an intercept that is not penalised, by the method of multipliers."""
    rows = problem.rows
    sigma = float(np.sqrt(max((rows.squares - rows.s**2)[problem.used].mean(), 1e-300)))
    descent = _Descent(problem, z, seed, sigma)
    goal, total = 0.5 * tol * problem.unit, 0
    slopes = max(goal, 0.1 * problem.unit)
    while True:
        descent.table[:, 3] = problem.t - rows.s * b
        done, converged = descent.passes(most - total, FIRST_VISITS, slopes)
        total += done
        u, z = descent.recompute()
        if not converged and descent.minimize_subspace(slopes):
            total += 1
            u, z = descent.recompute()
        # The next estimate of b includes sigma beta, which moves every slope by the shift: no point stays shrunk.
        shift = sigma * u[-1]
        b = u[-1] = b + shift / rows.s
        descent.unshrink()
        yield total, u, z
        if converged and abs(shift) <= 2 * slopes:
            if slopes < 1e-15 * problem.unit:
                return
            slopes = goal if slopes > goal else 0.25 * slopes
        elif converged:
            slopes = max(min(slopes, 0.3 * abs(shift)), min(goal, slopes))
