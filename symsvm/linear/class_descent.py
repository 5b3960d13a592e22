"""Passes of a dual coordinate descent over the points of `symsvm.linear.crammer_singer`, with shrunk classes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.coordinate_descent import random_below, random_state
from symsvm.linear.rows import LOOP
from symsvm.linear.subspace import restore_zero_sum

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.linear.crammer_singer import ClassesProblem

__all__ = ["ClassDescent"]

CLASS_VISITS = 10  # visits to each point, on average, between two evaluations of the whole problem


@njit(**LOOP)
def _class_scores(values, points, s, U, classes, G):
    """Add sum_j x_j U_jm + s U_dm to G_a, for the classes m = classes_a."""
    last = U.shape[0] - 1
    for l in range(len(values)):
        x, row = float(values[l]), U[points[l]]
        for a in range(len(classes)):
            G[a] += x * row[classes[a]]
    for a in range(len(classes)):
        G[a] += s * U[last, classes[a]]


@njit(**LOOP)
def _passes(flat, dense, s, A, y, C, U, Z, order, classes, sizes, state, memory, most, visits, tol):
    """Make at most `most` passes, until no violation exceeds tol; return their number and whether that was reached.

    The first sizes_i of classes_i are not shrunk. `memory` keeps the number of points that are not shrunk, the
    violation at which all are visited again, whether the pass began with all, and the number of visits.
    """
    values, points, begins = flat
    n, k, last = len(order), Z.shape[1], U.shape[0] - 1
    G, B, sort, new, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    moved = np.empty(k, dtype=np.int64)
    visits += memory[3]
    for done in range(1, most + 1):
        active, worst = int(memory[0]), 0.0
        memory[3] += active
        for q in range(active):
            other = q + random_below(state, active - q)
            order[q], order[other] = order[other], order[q]
        q = 0
        while q < active:
            i = order[q]
            q += 1
            size, own, bound = sizes[i], y[i], C[i]
            row = slice(begins[i], begins[i + 1])
            x, p = values[row], points if dense else points[row]
            mine, z = classes[i], Z[i]
            for a in range(size):
                G[a] = 0.0 if mine[a] == own else 1.0
            _class_scores(x, p, s, U, mine[:size], G)
            top, least = -np.inf, np.inf
            for a in range(size):
                m = mine[a]
                top = max(top, G[a])
                if z[m] < (bound if m == own else 0.0):
                    least = min(least, G[a])
            a = 0
            while a < size:
                m = mine[a]
                if G[a] < least and z[m] == (bound if m == own else 0.0):
                    size -= 1
                    mine[a], mine[size] = mine[size], m
                    G[a], G[size] = G[size], G[a]
                else:
                    a += 1
            sizes[i] = size
            if size <= 1:
                active -= 1
                q -= 1
                order[q], order[active] = order[active], i
                continue
            worst = max(worst, top - least)
            if top - least <= 1e-15:
                continue
            if A[i] > 0:
                for a in range(size):
                    B[a] = G[a] - A[i] * z[mine[a]]
                    sort[a] = B[a] + (A[i] * bound if mine[a] == own else 0.0)
                ordered = np.sort(sort[:size])
                beta, r = ordered[size - 1] - A[i] * bound, 1
                while r < size and beta < r * ordered[size - 1 - r]:
                    beta += ordered[size - 1 - r]
                    r += 1
                beta /= r
            else:  # a point without features: its dual is linear, with the optimum at a vertex
                beta = 0.0
            new[:] = z
            for a in range(size):
                m = mine[a]
                if A[i] > 0:
                    new[m] = min(bound if m == own else 0.0, (beta - B[a]) / A[i])
                else:
                    new[m] = bound if m == own else (-bound if m == (0 if own != 0 else 1) else 0.0)
            restore_zero_sum(new, own, bound)
            count = 0
            for m in range(k):
                if new[m] != z[m]:
                    moved[count], change[count] = m, new[m] - z[m]
                    z[m] = new[m]
                    count += 1
            for l in range(len(x)):
                target, v = U[p[l]], float(x[l])
                for c in range(count):
                    target[moved[c]] += change[c] * v
            for c in range(count):
                U[last, moved[c]] += s * change[c]
        memory[0] = active
        if worst <= memory[1]:
            if worst <= tol and memory[2] == 1:
                return done, True
            memory[0], memory[2] = n, 1.0
            memory[1] = max(0.5 * memory[1], tol)
            for i in range(len(sizes)):
                sizes[i] = k
        else:
            memory[2] = 0.0
        if memory[3] >= visits:
            return done, False
    return most, False


class ClassDescent:
    """The state of the passes: z, the order of the points, and the classes that are shrunk for each point."""

    def __init__(self, problem: ClassesProblem, z: Array, seed: int, deadline: float = np.inf) -> None:
        self.problem, self.z, self.deadline = problem, z.copy(), deadline
        self.order = np.flatnonzero(problem.C > 0).astype("uint64")
        self.classes = np.tile(np.arange(problem.k), (problem.rows.n, 1))
        self.sizes = np.empty(problem.rows.n, dtype="int64")
        self.state = random_state(seed)
        self.memory = np.zeros(4)
        self.unshrink()

    def unshrink(self) -> None:
        """Visit all points and classes again."""
        self.memory[:3] = len(self.order), 1.0, 1.0
        self.sizes[:] = self.problem.k

    def passes(self, most: float, tol: float) -> tuple[int, bool, Array]:
        """See `_passes`; return u as well. Where time is limited, the clock is looked at after each pass."""
        p, rows = self.problem, self.problem.rows
        self.memory[1] = max(self.memory[1], tol)
        own = p.combine(self.z), self.z, self.order, self.classes, self.sizes, self.state, self.memory
        most, visits = int(min(2**40, most)), float(CLASS_VISITS * len(self.order))
        most_at_once, end, done = most if np.isinf(self.deadline) else 1, self.memory[3] + visits, 0
        while True:
            limits = most_at_once, end - self.memory[3], tol
            more, converged = _passes(rows.flat, not rows.sparse, rows.s, rows.squares, p.y, p.C, *own, *limits)
            done += more
            if converged or done >= most or self.memory[3] >= end or time.perf_counter() >= self.deadline:
                return done, converged, p.combine(self.z)
