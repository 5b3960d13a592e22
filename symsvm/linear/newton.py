"""Newton's method in u = (w, b), for the squared losses with the l2 penalty and any intercept.

    g = R'(u) - [X s]'z,     z = L'(r),     M = R'' + [X s]' Psi [X s],     Psi = L''(r) = 2 C_i where the loss is not 0

P is piecewise quadratic: the step -M^-1 g is exact once the set of points with a loss stays the same, and the
slope of P along it, phi'(a) = (u + a p).R''p - z(r - a q).q with q = [X s]p, is increasing, so that its zero is found
with vectors alone. Up to 500 features M is formed and factored; beyond, M p = -g is solved by
conjugate gradients with M's diagonal, as exactly as the gradient deserves (Keerthi and DeCoste, A modified finite
Newton method for fast solution of large scale linear SVMs, 2005; Lin, Weng and Keerthi, Trust region Newton method
for large-scale logistic regression, 2008).
"""

import numpy as np
import scipy.linalg
from numba import njit

from symsvm.linear.linear_problem import slopes
from symsvm.linear.rows import FAST, add, dot, inner

__all__ = ["FORMED", "along", "factored", "newton"]

FORMED = 500  # features up to which M is formed


@njit(cache=True, nogil=True, **FAST)
def _curved(parts, s, psi, p, out):
    """out = [X s]' Psi [X s] p, in one pass over the rows with a loss."""
    d = len(p) - 1
    for i in range(len(psi)):
        if psi[i] != 0:
            a = psi[i] * (dot(parts, i, p) + s * p[d])
            add(parts, i, a, out)
            out[d] += s * a


@njit(cache=True, nogil=True, **FAST)
def along(r, q, a, D, lower, upper, epsilon):
    """sum_i z_i(r - a q) q_i and sum_i psi_i q_i^2."""
    first = second = 0.0
    for i in range(len(r)):
        if lower[i] < upper[i]:
            x = r[i] - a * q[i]
            x = x - epsilon if x > epsilon else (x + epsilon if x < -epsilon else 0.0)
            z = min(max(x / D[i], lower[i]), upper[i])
            if z != 0:
                first += z * q[i]
                second += q[i] * q[i] / D[i]
    return first, second


def factored(M):
    """The function g -> -M^-1 g of a positive semi-definite M; a singular one gets a little more diagonal."""
    diagonal = np.maximum(np.diag(M), np.finfo("float64").tiny)
    scale = 1 / np.sqrt(diagonal)
    A = M * scale[:, None] * scale
    extra = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(A + extra * np.eye(len(A)), check_finite=False)
            return lambda g: -scale * scipy.linalg.cho_solve(factor, scale * g, check_finite=False)
        except np.linalg.LinAlgError:
            extra = max(1e-14, 100 * extra)


def _conjugate(problem, psi, g, forcing):
    """-M^-1 g by conjugate gradients, to |residual| <= forcing |g| in the metric of the diagonal."""
    rows, reg = problem.rows, problem.reg
    diagonal = rows.curvature(psi) + reg
    diagonal[diagonal == 0] = 1.0
    p, residual = np.zeros(len(g)), -g
    scaled = residual / diagonal
    direction, product = scaled.copy(), inner(residual, scaled)
    goal = forcing**2 * product
    for _ in range(10 * len(g)):
        if product <= goal or product == 0:
            break
        image = reg * direction
        _curved(rows.parts, rows.s, psi, direction, image)
        curvature = inner(direction, image)
        if curvature <= 0:
            break
        step = product / curvature
        p += step * direction
        residual -= step * image
        scaled = residual / diagonal
        product, before = inner(residual, scaled), product
        direction = scaled + (product / before) * direction
    return p


def _search(problem, u, r, p, q):
    """The a > 0 with phi'(a) = 0, to a tenth of phi'(0)'s size or better."""
    reg = problem.reg
    constant, linear = inner(reg * u, p), inner(reg * p, p)

    def phi(a):
        first, second = along(r, q, a, *problem.parts)
        return constant + a * linear - first, linear + second

    start, _ = phi(0.0)
    low, high, a = 0.0, np.inf, 1.0
    for _ in range(60):
        value, curvature = phi(a)
        if abs(value) <= 1e-3 * abs(start):
            break
        if value < 0:
            low = a
        else:
            high = a
        trial = a - value / curvature if curvature > 0 else 2 * a
        a = trial if low < trial < high else (0.5 * (low + high) if high < np.inf else 2 * a)
    return a


def newton(problem, u, *, tol, formed=None):
    """Yield (iterations so far, u, z, f, content) until the gradient is lost in rounding.

    It is content when |g| <= tol |g at 0|, for labels times the share of the rarer one.
    """
    rows, reg = problem.rows, problem.reg
    formed = rows.d <= FORMED if formed is None else formed
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    f = rows.product(u)
    slopes(problem.t, z, psi, *problem.parts)
    first = np.sqrt(inner(g0 := rows.transposed(z), g0))
    share = min(1.0, np.mean(problem.t > 0), np.mean(problem.t < 0)) if problem.classifies else 1.0
    least, done, idle = np.inf, 0, 0
    while True:
        r = problem.t - f
        P = slopes(r, z, psi, *problem.parts) + 0.5 * inner(reg, u**2)
        g = reg * u - rows.transposed(z)
        norm = np.sqrt(inner(g, g))
        yield done, u.copy(), z.copy(), f, norm <= tol * (share or 1.0) * first
        idle = idle + 1 if not P < least else 0
        least = min(P, least)
        if norm == 0 or idle >= 3:
            return
        if formed:
            M = rows.normal(psi)
            M[np.diag_indices_from(M)] += reg
            p = factored(M)(g)
        else:
            p = _conjugate(problem, psi, g, min(0.1, np.sqrt(norm / first)) if first > 0 else 0.1)
        q = rows.product(p)
        a = _search(problem, u, r, p, q)
        u = u + a * p
        f = rows.product(u)
        done += 1
