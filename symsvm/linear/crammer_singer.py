"""The machine of Crammer and Singer: k classes in one problem, linear, with the l2 penalty.

    (P)   minimise  1/2 sum_m |u_m|^2 + sum_i C_i max_m (e_im + f_im - f_i,y_i),      f_im = x_i.w_m + s b_m,

e_im = 1 for m != y_i, else 0. In the dual, u_m = sum_i z_im (x_i, s) and

    minimise  1/2 sum_m |u_m|^2 + sum_im e_im z_im    subject to    z_im <= C_i where m = y_i, else 0,  sum_m z_im = 0.

With G_im = e_im + f_im at u = u(z), the gap is a sum of terms that are at least 0,

    P - D = sum_i sum_m (c_im - z_im) (max_m G_im - G_im)            c_im the bound of z_im,

and z is optimal when max_m G_im <= G_im wherever z_im is below its bound; the violation is how far that fails. The
solver goes over the points in random order. With the others fixed, and A = |x_i|^2 + s^2, B = G - A z_i, the best z_im
is min(c_im, (beta - B_m) / A), where sorting gives the beta with sum_m z_im = 0. A class whose z_im is at its bound and
whose G_im is less than the others' rests for that point (Keerthi, Sundararajan, Chang, Hsieh and Lin, A sequential dual
method for large scale multi-class linear SVMs, 2008).
"""

import numpy as np
from numba import njit

from symsvm.certificate import Certificate
from symsvm.linear.coordinate_descent import _random
from symsvm.linear.linear_problem import Measure
from symsvm.linear.linear_solution import LinearSolution, follow
from symsvm.linear.rows import FAST, Rows
from symsvm.linear.solve_linear import checked_C
from symsvm.program import checked_run
from symsvm.validation import count, number

__all__ = ["ClassesProblem", "solve_crammer_singer"]

VISITS = 10  # to each point, on average, between two looks at the whole problem
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
def _assess(flat, dense, s, y, C, U, Z):
    """sum C_i max(...), sum e z, sum of the terms of the gap, and the largest violation."""
    values, points, begins = flat
    n, k = Z.shape
    classes, G = np.arange(k), np.empty(k)
    loss = linear = gap = worst = 0.0
    for i in range(n):
        if C[i] == 0:
            continue
        G[:] = 1.0
        G[y[i]] = 0.0
        row = slice(begins[i], begins[i + 1])
        _scores(values[row], points if dense else points[row], s, U, classes, G)
        top = G.max()
        loss += C[i] * (top - G[y[i]])
        for m in range(k):
            bound = C[i] if m == y[i] else 0.0
            if Z[i, m] < bound:
                gap += (bound - Z[i, m]) * (top - G[m])
                worst = max(worst, top - G[m])
            if m != y[i]:
                linear += Z[i, m]
    return loss, linear, gap, worst


@njit(**_LOOP)
def _combined(flat, dense, s, Z, U):
    """U = [X s]'Z."""
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    U[:] = 0.0
    for i in range(Z.shape[0]):
        row = slice(begins[i], begins[i + 1])
        x, p = values[row], points if dense else points[row]
        for m in range(k):
            a = Z[i, m]
            if a != 0:
                for l in range(len(x)):
                    U[p[l], m] += a * x[l]
                U[last, m] += s * a


@njit(**_LOOP)
def _close(z, own, bound):
    """sum_m z_m = 0 up to one rounding, bounds kept: z_own is what the others leave, else the least z takes the rest.

    What should be 0 is 0 then: a rounding there would count as a point that is not at its bound.
    """
    others, least = 0.0, -1
    for m in range(len(z)):
        if m != own:
            others += z[m]
            if least < 0 or z[m] < z[least]:
                least = m
    if z[own] < bound:
        z[own] = min(bound, -others)
    if -others > bound or z[own] == bound:
        z[least] = min(z[least] - (others + z[own]), 0.0)


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
            _close(new, own, bound)
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


class ClassesProblem:
    """The problem of Crammer and Singer; see the head of this file. y are classes 0 .. k - 1."""

    def __init__(self, rows, y, C, k):
        self.rows, self.k = rows, k
        self.y = np.ascontiguousarray(y, dtype="int64")
        self.C = np.array(np.broadcast_to(np.asarray(C, dtype="float64"), rows.n))

    def combined(self, z):
        """u = [X s]'z (d + 1, k)."""
        U = np.empty((self.rows.d + 1, self.k))
        _combined(self.rows.flat, not self.rows.sparse, self.rows.s, z, U)
        return U

    def measure(self, u, z, *, f=None):
        """Measure z, with u = u(z). Return (Measure, z)."""
        rows = self.rows
        loss, linear, gap, worst = _assess(rows.flat, not rows.sparse, rows.s, self.y, self.C, u, z)
        half = 0.5 * float(np.einsum("ij,ij->", u, u))
        bounds = np.zeros_like(z)
        bounds[np.arange(rows.n), self.y] = self.C
        outside = max(0.0, float(np.max(z - bounds)), float(np.max(np.abs(z.sum(axis=1)))))
        return Measure(half + loss, -half - linear, gap, worst, outside), z

    def certificate(self, u, z, tol):
        """The `Certificate` of z in float64 from the data: W = -D, optimal if the measure reaches tol."""
        measure, z = self.measure(self.combined(z), z)
        rounding = 8 * np.finfo("float64").eps * self.k * float(np.abs(z).max())
        word = "optimal" if measure.reaches(tol) else "feasible"
        gap = measure.primal, measure.dual, measure.gap
        if not np.isfinite(measure.gap):
            word, gap = "diverged", (None, None, None)
        elif measure.infeasibility > rounding:
            word, gap = "infeasible", (None, None, None)
        b = u[-1].copy() if self.rows.s else None
        return Certificate(-measure.dual, measure.infeasibility, measure.violation, b, *gap, word, tol)


def _descend(problem, z, *, tol, seed, most):
    """Yield (passes so far, u, z) until rounding leaves no step."""
    rows, C = problem.rows, problem.C
    z, total, inner, last = z.copy(), 0, 0.5 * tol, None
    order = np.flatnonzero(C > 0).astype("uint64")
    classes = np.tile(np.arange(problem.k), (rows.n, 1))
    sizes = np.full(rows.n, problem.k)
    state = np.array([0x9E3779B97F4A7C15 ^ (seed * 2654435761 + 1)], dtype="uint64")
    memory = np.array([len(order), max(10 * tol, 1.0), 1.0, 0.0])
    own = order, classes, sizes, state, memory
    while True:
        u = problem.combined(z)
        limits = int(min(2**40, most - total)), float(VISITS * len(order)), inner
        done, settled = _passes(rows.flat, not rows.sparse, rows.s, rows.squares, problem.y, C, u, z, *own, *limits)
        total += done
        yield total, problem.combined(z), z.copy()
        if settled:
            if last is not None and np.array_equal(last, z):
                return
            last, inner = z.copy(), 0.25 * inner
            memory[1] = max(memory[1], inner)


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
    tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
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
    (_, u, z_best), stopped, n_iter, trace, algorithm = follow(stages, problem.measure, **options)

    def certify():
        return problem.certificate(u, z_best, tol)

    b = u[-1].copy() if s else None
    return LinearSolution(u[:-1].copy(), b, z_best, stopped, n_iter, trace, algorithm, certify, s, problem.C)
