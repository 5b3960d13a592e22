"""The l1 penalty with the squared losses: weights most of which are 0.

    minimise  |w|_1 (+ |b|) + sum_i L_i(t_i - f_i),     optimal where  v = [X s]'z,  z = L'(r),  has  v_j = sign u_j,
                                                        |v_j| <= 1 where u_j = 0,  and v = 0 for a free b.

Few features: the loss is replaced by its second-order model, g.p + 1/2 p.Mp with M = [X s]' Psi [X s], whose sum with
the penalty is minimised over one p_j at a time, in d operations each; P is piecewise quadratic, so that a model is
exact once the points with a loss stay the same (Yuan, Ho and Lin, An improved GLMNET for l1-regularized logistic
regression, 2012).

Many features: one u_j at a time, by a step of the one-dimensional model, halved until P falls enough; r and z are kept
up to date, and a weight at 0 whose |v_j| is less than 1 by more than the largest violation of the last pass, over n,
rests (Yuan, Chang, Hsieh and Lin, A comparison of optimization methods for large-scale l1-regularized linear
classification, 2010).
"""

import numpy as np
from numba import njit

from symsvm.linear.coordinate_descent import _random
from symsvm.linear.linear_problem import slopes
from symsvm.linear.newton import along
from symsvm.linear.rows import FAST, inner

__all__ = ["column_descent", "proximal_newton", "violations"]

VISITS = 10  # to each number between two looks at the whole problem


@njit(cache=True, nogil=True, **FAST)
def _model(M, g, u, reg, p, tol, most):
    """Minimise g.p + 1/2 p.Mp + sum reg |u + p| over one p_j at a time; q = Mp."""
    d = len(g)
    q = M @ p
    for _ in range(most):
        worst = 0.0
        for j in range(d):
            h = M[j, j]
            if h <= 0:
                continue
            slope, x = g[j] + q[j], u[j] + p[j]
            to = x - slope / h
            pull = reg[j] / h
            to = to - pull if to > pull else (to + pull if to < -pull else 0.0)
            step = to - x
            if step != 0:
                worst = max(worst, abs(step) * h)
                p[j] += step
                row = M[j]
                for k in range(d):
                    q[k] += step * row[k]
        if worst <= tol:
            break


def violations(u, v, reg):
    """How far each v_j is from what u_j asks for."""
    return np.where(u != 0, np.abs(reg * np.sign(u) - v), np.maximum(np.abs(v) - reg, 0.0))


def _search(problem, u, r, p, q):
    """The a > 0 where the slope of P along p changes its sign, to a tenth of the slope at 0; 1 if that is as good."""
    reg = problem.reg

    def slope(a):
        x = u + a * p
        signs = np.where(x != 0, np.sign(x), -np.sign(p))  # from the left, where a weight reaches 0
        return (reg * signs) @ p - along(r, q, a, *problem.parts)[0]

    start, low, high, a = abs(slope(0.0)), 0.0, np.inf, 1.0
    for _ in range(60):
        value = slope(a)
        if abs(value) <= 0.1 * start:
            return a
        low, high = (a, high) if value < 0 else (low, a)
        a = 0.5 * (low + high) if high < np.inf else 2 * a
    return low or high


def proximal_newton(problem, u):
    """Yield (iterations so far, u, z, f) until rounding leaves no step that helps."""
    rows, reg = problem.rows, problem.reg
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    f, extra, done, idle, least = rows.product(u), 1e-12, 0, 0, np.inf
    lowest = np.inf
    used = np.ones(len(u), dtype=bool)
    used[-1] = rows.s != 0
    while True:
        r = problem.t - f
        P = slopes(r, z, psi, *problem.parts) + inner(reg, np.abs(u))
        v = rows.transposed(z)
        yield done, u.copy(), z.copy(), f
        violation = violations(u, v, reg).max()
        idle = 0 if violation < 0.9 * least or P < lowest * (1 - 1e-15) else idle + 1
        least, lowest = min(violation, least), min(P, lowest)
        if violation == 0 or idle >= 5:
            return
        M = rows.normal(psi)
        top = max(M.diagonal().max(), 1e-300)
        M[np.diag_indices_from(M)] += np.where(used, extra * top, 0.0)
        p = np.zeros(len(u))
        _model(M, -v, u, reg, p, 0.01 * violation, 2000)
        q = rows.product(p)
        a = _search(problem, u, r, p, q)
        # A short step means that the model trusts too few points: more diagonal keeps the next one nearer.
        extra = min(extra * 100, 1.0) if a < 0.1 else max(extra * 0.01, 1e-12)
        u = u + a * p
        f = rows.product(u)
        done += 1


@njit(cache=True, nogil=True, **FAST)
def _drawn(r, curve, lower, upper, epsilon):
    """z = L'(r), curve = 1 / D."""
    x = r - epsilon if r > epsilon else (r + epsilon if r < -epsilon else 0.0)
    return min(max(x * curve, lower), upper)


@njit(cache=True, nogil=True, **FAST)
def _columns(columns, dense, u, r, z, psi, reg, most_h, curve, lower, upper, epsilon, order, state, memory, most, tol):
    """At most `most` passes over the columns, until the sum of violations is at most tol; their number and that.

    They end after VISITS looks at every number as well. `memory` holds the number of columns that do not rest, and the
    largest violation of the last pass over n.
    """
    data, indices, indptr = columns
    n, size = len(r), len(order)
    active, bar, numbers = int(memory[0]), memory[1], 0
    for done in range(1, most + 1):
        worst, total = 0.0, 0.0
        for k in range(active):
            other = k + _random(state, active - k)
            order[k], order[other] = order[other], order[k]
        k = 0
        while k < active:
            j = order[k]
            values = data[indptr[j] : indptr[j + 1]]
            points = indices if dense else indices[indptr[j] : indptr[j + 1]]
            numbers += len(values)
            g, h = 0.0, 0.0
            for l in range(len(values)):
                i, x = points[l], float(values[l])
                g -= z[i] * x
                h += psi[i] * x * x
            w, c = u[j], reg[j]
            if w == 0:
                violation = max(abs(g) - c, 0.0)
                if abs(g) < c - bar:
                    active -= 1
                    order[k], order[active] = order[active], j
                    continue
            else:
                violation = abs(g + c) if w > 0 else abs(g - c)
            worst, total = max(worst, violation), total + violation
            k += 1
            h = max(h, 1e-12)
            if g + c <= h * w:
                p = -(g + c) / h
            elif g - c >= h * w:
                p = -(g - c) / h
            else:
                p = -w
            if abs(p) <= 1e-15 * abs(w):
                continue
            a = 1.0
            for _ in range(30):
                to = w + a * p if a < 1 or p != -w else 0.0
                step = to - w
                change = c * (abs(to) - abs(w))
                bound = 0.01 * (g * step + change)
                # P is at most what it would be with a loss at every point; else it is computed.
                falls = g * step + 0.5 * most_h[j] * step * step + change <= bound
                if not falls:
                    for l in range(len(values)):
                        i = points[l]
                        if curve[i] > 0:
                            best = _drawn(r[i] - step * values[l], curve[i], lower[i], upper[i], epsilon)
                            change += 0.5 * (best - z[i]) * (best + z[i]) / curve[i]
                    falls = change <= bound
                if falls:
                    u[j] = to
                    for l in range(len(values)):
                        i = points[l]
                        if curve[i] > 0:
                            r[i] -= step * values[l]
                            z[i] = _drawn(r[i], curve[i], lower[i], upper[i], epsilon)
                            psi[i] = curve[i] if z[i] != 0 else 0.0
                    break
                a *= 0.5
        bar = worst / n
        if total <= tol:
            if active == size:
                memory[0], memory[1] = size, np.inf
                return done, True
            active, bar = size, np.inf
        memory[0], memory[1] = active, bar
        if numbers >= VISITS * len(data):
            return done, False
    return most, False


def column_descent(problem, u, *, tol, seed, most):
    """Yield (passes so far, u, z, f) until rounding leaves no step."""
    rows, total = problem.rows, 0
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    slopes(problem.t, z, psi, *problem.parts)
    v = rows.transposed(z)
    share = min(np.mean(problem.t > 0), np.mean(problem.t < 0)) if problem.classifies else 1.0
    # LIBLINEAR's condition: the sum of violations, as a share of that at 0.
    inner = 0.5 * tol * max(share, 1 / rows.n) * float(np.maximum(np.abs(v) - problem.reg, 0.0).sum())
    curve = np.divide(1.0, problem.D, out=np.zeros(rows.n), where=problem.used)
    columns, most_h = rows.columns, rows.curvature(curve)
    order = np.arange(rows.d + (rows.s != 0), dtype="uint64")
    state = np.array([0x9E3779B97F4A7C15 ^ (seed * 2654435761 + 1)], dtype="uint64")
    memory = np.array([len(order), np.inf])
    last = None
    while True:
        r = problem.t - rows.product(u)
        slopes(r, z, psi, *problem.parts)
        own = problem.reg, most_h, curve, *problem.parts[1:], order, state, memory
        done, settled = _columns(columns, not rows.sparse, u, r, z, psi, *own, int(min(2**40, most - total)), inner)
        total += done
        f = rows.product(u)
        slopes(problem.t - f, z, psi, *problem.parts)
        yield total, u.copy(), z.copy(), f
        if settled:
            if last is not None and np.array_equal(last, u):
                return
            last, inner = u.copy(), 0.25 * inner
