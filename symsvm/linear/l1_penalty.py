"""The l1 penalty with the squared losses, whose optimal weights are mostly 0.

::

    minimise  |w|_1 (+ |b|) + sum_i L_i(t_i - f_i),     optimal where  v = [X s]'z,  z = L'(r),  has  v_j = sign u_j,
                                                        |v_j| <= 1 where u_j = 0,  and v = 0 for a free b.

**Proximal Newton**, for few features: the second-order model g.p + 1/2 p.Mp with M = [X s]' Psi [X s] replaces the
loss. Its sum with the penalty is minimised over one p_j at a time, in d operations each. P is piecewise quadratic, so
the model is exact once the points with a loss stay the same (Yuan, Ho and Lin, An improved GLMNET for l1-regularized
logistic regression, 2012).

**Working sets**, for many features of which few matter: most u_j are 0 at the optimum, with |v_j| <= 1. A working set
has the features with u_j != 0 and those whose |v_j| exceeds 1 most, in all twice as many as there were u_j != 0. Its
problem is solved by the proximal Newton method from the present u, so that P falls, to a share of the largest
violation. One product with X' then gives the next set (Massias, Gramfort and Salmon, Celer: a fast solver for the
lasso with dual extrapolation, 2018).

**Column descent**, for many features: one u_j at a time, by a step of the one-dimensional model, halved until P falls
enough; r and z are updated with it. A weight at 0 is shrunk (skipped) if its |v_j| is less than 1 by more than the
largest violation of the last pass, over n (Yuan, Chang, Hsieh and Lin, A comparison of optimization methods for large-
scale l1-regularized linear classification, 2010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from symsvm._lib.code_cache import njit
from symsvm.linear.coordinate_descent import random_below, random_state
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.newton_points import directional_derivatives, loss_derivatives
from symsvm.linear.rows import LOOP, Rows, inner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array

__all__ = ["column_descent", "proximal_newton", "working_sets"]

# Proximal Newton:
MODEL_TOL, MODEL_PASSES = 0.01, 2000  # the model is solved to this share of the violation, in so many passes at most
PROXIMAL_SLOPE = 0.1  # the share of the first slope at which the line search ends
MIN_DAMPING, DAMPED_STEP = 1e-12, 0.1  # the least share of the diagonal that is added; a shorter step adds more
PROXIMAL_IDLE = 5  # iterations without progress after which rounding has stopped it

# Working sets:
FIRST_SET = 100  # features of the first set
MAX_SET = 2000  # features up to which the quadratic model of a set is formed
SET_TOL = 0.1  # the share of the largest violation to which a set's problem is solved
SET_STEPS = 10  # Newton steps on one set between two evaluations of the whole problem
SET_IDLE = 10  # sets without progress after which rounding has stopped it

# Column descent:
COLUMN_VISITS = 10  # visits to each entry of X between two evaluations of the whole problem


@njit(**LOOP)
def _minimize_model(M, g, u, reg, p, tol, most):
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


def _violations(u: Array, v: Array, reg: Array) -> Array:
    """Return how far each v_j is from its optimality condition."""
    return np.where(u != 0, np.abs(reg * np.sign(u) - v), np.maximum(np.abs(v) - reg, 0.0))


def _line_search(problem: LinearProblem, u: Array, r: Array, p: Array, q: Array) -> float:
    """Return the a > 0 where the slope of P along p changes its sign, to a tenth of the slope at 0; 1 if it is."""
    reg = problem.reg

    def slope(a):
        x = u + a * p
        signs = np.where(x != 0, np.sign(x), -np.sign(p))  # from the left, where a weight reaches 0
        return (reg * signs) @ p - directional_derivatives(r, q, a, *problem.loss_parameters)[0]

    start, low, high, a = abs(slope(0.0)), 0.0, np.inf, 1.0
    for _ in range(60):
        value = slope(a)
        if abs(value) <= PROXIMAL_SLOPE * start:
            return a
        low, high = (a, high) if value < 0 else (low, a)
        a = 0.5 * (low + high) if high < np.inf else 2 * a
    return low or high


def proximal_newton(problem: LinearProblem, u: Array) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield (iterations so far, u, z, f) until rounding stops the progress."""
    rows, reg = problem.rows, problem.reg
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    f, damping, done, idle, least = rows.product(u), MIN_DAMPING, 0, 0, np.inf
    lowest = np.inf
    used = np.ones(len(u), dtype=bool)
    used[-1] = rows.s != 0
    while True:
        r = problem.t - f
        P = loss_derivatives(r, z, psi, *problem.loss_parameters) + inner(reg, np.abs(u))
        v = rows.transposed(z)
        yield done, u.copy(), z.copy(), f
        violation = _violations(u, v, reg).max()
        idle = 0 if violation < 0.9 * least or P < lowest * (1 - 1e-15) else idle + 1
        least, lowest = min(violation, least), min(P, lowest)
        if violation == 0 or idle >= PROXIMAL_IDLE:
            return
        M = rows.normal(psi)
        top = max(M.diagonal().max(), 1e-300)
        M[np.diag_indices_from(M)] += np.where(used, damping * top, 0.0)
        p = np.zeros(len(u))
        _minimize_model(M, -v, u, reg, p, MODEL_TOL * violation, MODEL_PASSES)
        q = rows.product(p)
        a = _line_search(problem, u, r, p, q)
        # A short step means that points without a loss, which the model ignores, get one: damp the next step.
        damping = min(damping * 100, 1.0) if a < DAMPED_STEP else max(damping * 0.01, MIN_DAMPING)
        u = u + a * p
        f = rows.product(u)
        done += 1


def _select_features(rows: Rows, S: Array) -> Rows:
    """Return the rows with the features S only."""
    if not rows.sparse:
        return Rows(rows.X[:, S], rows.s)
    values, points, begins = rows.columns
    first, sizes = begins[S].astype("int64"), (begins[S + 1] - begins[S]).astype("int64")
    ends = np.append(0, np.cumsum(sizes))
    where = np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)
    X = scipy.sparse.csc_matrix((values[where], points[where].astype("int32"), ends), (rows.n, len(S)))
    return Rows(X.tocsr(), rows.s)


def _next_set(u: Array, violation: Array) -> Array:
    """Return the features with u_j != 0 and those with the largest violations."""
    support = np.flatnonzero(u)
    new = np.flatnonzero((u == 0) & (violation > 0))
    size = max(FIRST_SET, len(support))
    if len(new) > size:
        new = new[np.argpartition(violation[new], -size)[-size:]]
    return np.sort(np.concatenate([support, new]))


def working_sets(problem: LinearProblem, u: Array) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield (Newton steps so far, u, z, f) until rounding stops the progress or a set has too many features."""
    rows, reg = problem.rows, problem.reg
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    f, done, least, idle = rows.product(u), 0, np.inf, 0
    while True:
        loss_derivatives(problem.t - f, z, psi, *problem.loss_parameters)
        yield done, u.copy(), z.copy(), f
        violation = _violations(u, rows.transposed(z), reg)
        worst = violation.max()
        idle, least = 0 if worst < 0.9 * least else idle + 1, min(least, worst)
        S = _next_set(u[:-1], violation[:-1])
        if worst == 0 or idle >= SET_IDLE or not 0 < len(S) <= MAX_SET:
            return
        subset, loss, epsilon = _select_features(rows, S), problem.loss, problem.epsilon
        part = LinearProblem(subset, problem.t, problem.C, loss=loss, penalty="l1", epsilon=epsilon, free=problem.free)
        indices, steps = np.append(S, rows.d), 0
        for steps, x, y, _ in proximal_newton(part, u[indices]):
            near = steps and _violations(x, part.rows.transposed(y), part.reg).max() <= SET_TOL * worst
            if near or steps >= SET_STEPS:
                break
        u[indices] = x
        f = rows.product(u)
        done += max(steps, 1)


@njit(**LOOP)
def _loss_slope(r, curve, lower, upper, epsilon):
    """Return z = L'(r); curve = 1 / D."""
    x = r - epsilon if r > epsilon else (r + epsilon if r < -epsilon else 0.0)
    return min(max(x * curve, lower), upper)


@njit(**LOOP)
def _column_passes(
    columns, dense, u, r, z, psi, reg, most_h, curve, lower, upper, epsilon, order, state, memory, most, tol
):
    """Make at most `most` passes over the columns, until the sum of violations is at most tol.

    They also end after COLUMN_VISITS visits to every entry. `memory` keeps from call to call the number of columns that
    are not shrunk, and the largest violation of the last pass over n. Return the number of passes and whether the sum
    reached tol.
    """
    data, indices, indptr = columns
    n, size = len(r), len(order)
    active, bar, numbers = int(memory[0]), memory[1], 0
    for done in range(1, most + 1):
        worst, total = 0.0, 0.0
        for k in range(active):
            other = k + random_below(state, active - k)
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
                # With a loss at every point P would change by at most this; where that is not enough, compute it.
                falls = g * step + 0.5 * most_h[j] * step * step + change <= bound
                if not falls:
                    for l in range(len(values)):
                        i = points[l]
                        if curve[i] > 0:
                            best = _loss_slope(r[i] - step * values[l], curve[i], lower[i], upper[i], epsilon)
                            change += 0.5 * (best - z[i]) * (best + z[i]) / curve[i]
                    falls = change <= bound
                if falls:
                    u[j] = to
                    for l in range(len(values)):
                        i = points[l]
                        if curve[i] > 0:
                            r[i] -= step * values[l]
                            z[i] = _loss_slope(r[i], curve[i], lower[i], upper[i], epsilon)
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
        if numbers >= COLUMN_VISITS * len(data):
            return done, False
    return most, False


def column_descent(
    problem: LinearProblem, u: Array, *, tol: float, seed: int, most: float
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield (passes so far, u, z, f) until rounding stops the progress; `most` limits the passes."""
    rows, total = problem.rows, 0
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    loss_derivatives(problem.t, z, psi, *problem.loss_parameters)
    v = rows.transposed(z)
    share = min(np.mean(problem.t > 0), np.mean(problem.t < 0)) if problem.classifies else 1.0
    # LIBLINEAR's condition: the sum of violations, as a share of that at 0.
    goal = 0.5 * tol * max(share, 1 / rows.n) * float(np.maximum(np.abs(v) - problem.reg, 0.0).sum())
    curve = np.divide(1.0, problem.D, out=np.zeros(rows.n), where=problem.used)
    columns, most_h = rows.columns, rows.curvature(curve)
    order = np.arange(rows.d + (rows.s != 0), dtype="uint64")
    state = random_state(seed)
    memory = np.array([len(order), np.inf])
    last = None
    while True:
        r = problem.t - rows.product(u)
        loss_derivatives(r, z, psi, *problem.loss_parameters)
        own = problem.reg, most_h, curve, *problem.loss_parameters[1:], order, state, memory
        done, converged = _column_passes(
            columns, not rows.sparse, u, r, z, psi, *own, int(min(2**40, most - total)), goal
        )
        total += done
        f = rows.product(u)
        loss_derivatives(problem.t - f, z, psi, *problem.loss_parameters)
        yield total, u.copy(), z.copy(), f
        if converged:
            if last is not None and np.array_equal(last, u):
                return
            last, goal = u.copy(), 0.25 * goal
