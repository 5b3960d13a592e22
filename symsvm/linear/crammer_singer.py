"""The solver of Crammer and Singer's machine, k classes in one problem, linear, with the l2 penalty.

The problem is in `symsvm.linear.classes_problem`. The solver goes over the points in random order. With the others
fixed, and A = |x_i|^2 + s^2, B = G - A z_i, the best z_im is min(c_im, (beta - B_m) / A), where sorting gives the beta
with sum_m z_im = 0. A class whose z_im is at its bound and whose G_im is less than the others' rests for that point
(Keerthi, Sundararajan, Chang, Hsieh and Lin, A sequential dual method for large scale multi-class linear SVMs, 2008).
Once the gap is small, steps on the face of the point follow on every few passes; see `symsvm.linear.face`.
"""

import numpy as np
from numba import njit

from symsvm._lib.validation import count, number
from symsvm.linear.classes_problem import ClassesProblem
from symsvm.linear.coordinate_descent import _random
from symsvm.linear.face import close, face_descent
from symsvm.linear.linear_solution import LinearSolution, follow
from symsvm.linear.rows import FAST, Rows
from symsvm.linear.solve_linear import checked_C
from symsvm.solvers.program import check_run_arguments

__all__ = ["solve_crammer_singer"]

VISITS = 10  # to each point, on average, between two looks at the whole problem
NEAR = 1e-3  # the gap, as a share of P, below which the descent on a face follows on that
SLOW = 0.5  # the share of the gap that is left by passes that are slow: the same
FACE = 60  # iterations on a face
LAST = 20  # descents on a face until the end is given up
_LOOP = {"cache": True, "nogil": True, **FAST}


@njit(**_LOOP)
def _scores(values, points, s, U, classes, G):
    """G_a += sum_j x_j U_jm + s U_dm for the classes m = classes_a."""
    last = U.shape[0] - 1
    for l in range(len(values)):
        x, row = float(values[l]), U[points[l]]
        for a in range(len(classes)):
            G[a] += x * row[classes[a]]
    for a in range(len(classes)):
        G[a] += s * U[last, classes[a]]


@njit(**_LOOP)
def _passes(flat, dense, s, A, y, C, U, Z, order, classes, sizes, state, memory, most, visits, tol):
    """At most `most` passes, until no violation exceeds tol; return their number and whether that was reached.

    The first sizes_i of classes_i do not rest. `memory` holds the number of points that do not rest, the violation at
    which all are called back, whether the pass began with all, and the number of visits.
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
            other = q + _random(state, active - q)
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
            _scores(x, p, s, U, mine[:size], G)
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
            else:  # a point without features: what is linear goes to a vertex
                beta = 0.0
            new[:] = z
            for a in range(size):
                m = mine[a]
                if A[i] > 0:
                    new[m] = min(bound if m == own else 0.0, (beta - B[a]) / A[i])
                else:
                    new[m] = bound if m == own else (-bound if m == (0 if own != 0 else 1) else 0.0)
            close(new, own, bound)
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


class _Descent:
    """The state of the passes: z, the order of the points, and which classes rest for which point."""

    def __init__(self, problem, z, seed):
        self.problem, self.z = problem, z.copy()
        self.order = np.flatnonzero(problem.C > 0).astype("uint64")
        self.classes = np.tile(np.arange(problem.k), (problem.rows.n, 1))
        self.sizes = np.empty(problem.rows.n, dtype="int64")
        self.state = np.array([0x9E3779B97F4A7C15 ^ (seed * 2654435761 + 1)], dtype="uint64")
        self.memory = np.zeros(4)
        self.wake()

    def wake(self):
        """Nobody rests."""
        self.memory[:3] = len(self.order), 1.0, 1.0
        self.sizes[:] = self.problem.k

    def passes(self, most, tol):
        """See `_passes`; return u as well."""
        p, rows = self.problem, self.problem.rows
        self.memory[1] = max(self.memory[1], tol)
        own = p.combined(self.z), self.z, self.order, self.classes, self.sizes, self.state, self.memory
        limits = int(min(2**40, most)), float(VISITS * len(self.order)), tol
        done, settled = _passes(rows.flat, not rows.sparse, rows.s, rows.squares, p.y, p.C, *own, *limits)
        return done, settled, p.combined(self.z)


def _descend(problem, z, *, tol, seed, most):
    """Yield (passes and steps so far, u, z) until rounding leaves no step."""
    descent, total, inner, last, gap = _Descent(problem, z, seed), 0, 0.5 * tol, None, np.inf
    while True:
        done, settled, u = descent.passes(most - total, inner)
        total += done
        z = descent.z.copy()
        measure = yield total, u, z, None, settled
        if settled:
            if last is not None and np.array_equal(last, z):
                return
            last, inner = z, 0.25 * inner
        elif measure.gap <= NEAR * measure.primal or measure.gap > SLOW * gap:
            u, z, f, _ = face_descent(problem, z, iterations=FACE, share=0.03)
            total += 1
            yield total, u, z, f, False
            descent.z = z.copy()
            descent.wake()
        gap = measure.gap


def _last(problem, z):
    """Go on until rounding leaves no step: descents on the face, and passes to correct it."""
    descent, total, least = _Descent(problem, z, 0), 0, np.inf
    for _ in range(LAST):
        u, z, f, _ = face_descent(problem, descent.z, iterations=10 * FACE, share=1e-13)
        total += 1
        yield total, u, z, f
        found = problem.measure(u, z, f=f)[0].violation
        if found <= 1e-13 * (1 + np.abs(f).max()) or (found > 0.5 * least and least < 1e-10):
            return
        least = min(found, least)
        descent.z = z.copy()
        descent.wake()
        done, _, u = descent.passes(np.inf, 0.1 * found)
        total += done
        yield total, u, descent.z.copy()


def solve_crammer_singer(
    X,
    y,
    C,
    *,
    intercept=True,
    intercept_scaling=1.0,
    tol=1e-4,
    max_iter=None,
    time_limit=None,
    callback=None,
    start=None,
    seed=0,
):
    """Solve the problem of Crammer and Singer and return a `LinearSolution` with w (d, k), b (k,) and dual (n, k).

    Parameters
    ----------
    y : classes, integers 0 .. k - 1, k >= 2.
    intercept, intercept_scaling : whether there are intercepts s b_m, which are penalised, and s.
    For the others see `solve_linear`; tol bounds the violation and the gap as a share of P.

    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    >>> solution = solve_crammer_singer(X, y, 1.0, tol=1e-8)
    >>> (X @ solution.w + solution.intercept).argmax(axis=1).tolist(), solution.certificate.status
    ([0, 1, 2], 'optimal')
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    s = number(intercept_scaling, "intercept_scaling", positive=True) if intercept else 0.0
    rows = X if isinstance(X, Rows) and X.s == s else Rows(X.X if isinstance(X, Rows) else X, s)
    y, C = np.asarray(y), checked_C(C, rows.n)
    if y.shape != (rows.n,) or y.dtype.kind not in "iu" or y.min() < 0 or y.max() < 1:
        raise ValueError(f"y must be {rows.n} integers 0 .. k - 1, one a point, of at least two classes.")
    problem = ClassesProblem(rows, y, C, int(y.max()) + 1)
    z = np.zeros((rows.n, problem.k))
    if start is not None:
        if getattr(start, "dual", None) is None or start.dual.shape != z.shape:
            raise ValueError(f"start must be a LinearSolution with a dual of the shape {z.shape}.")
        z = start.dual * np.divide(problem.C, start.C, out=np.zeros(rows.n), where=start.C > 0)[:, None]
        z[np.arange(rows.n), problem.y] = np.minimum(z[np.arange(rows.n), problem.y], problem.C)

    seed = count(seed, "seed")
    stages = [("sequential dual", lambda best, most: _descend(problem, z, tol=tol, seed=seed, most=most))]
    options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback}
    options["last"] = ("polish", lambda best, most: _last(problem, best[2])) if rows.small else None
    (_, u, z_best), stopped, n_iter, trace, algorithm = follow(stages, problem.measure, **options)

    def certify():
        return problem.certificate(u, z_best, tol)

    b = u[-1].copy() if s else None
    return LinearSolution(u[:-1].copy(), b, z_best, stopped, n_iter, trace, algorithm, certify, s, problem.C)
