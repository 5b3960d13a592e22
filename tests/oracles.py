"""Independent references: each numbered equation as plain loops, and a general QP solver."""

import math

import clarabel
import numpy as np
from scipy import sparse


def rbf(x, z, sigma):
    """Eq. 33."""
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * sigma**2))


def inner(x, z):
    """<x, z>."""
    return sum(a * b for a, b in zip(x, z, strict=True))


def affine(x, theta, b):
    """Eq. 1."""
    return inner(theta, x) + b


def margins(theta, b, X, y):
    """Eq. 5."""
    return [y_i * affine(x_i, theta, b) - 1 for x_i, y_i in zip(X, y, strict=True)]


def slack(theta, b, X, y):
    """Eq. 16, the least slack."""
    return [max(0.0, -margin) for margin in margins(theta, b, X, y)]


def f0(theta, xi, C):
    """Eq. 17; Eq. 6 with no slack."""
    return 0.5 * inner(theta, theta) + C * sum(xi)


def lagrangian(theta, b, lam, X, y, xi, mu, C):
    """Eq. 18; Eq. 7 with xi = mu = 0."""
    total = f0(theta, xi, C)
    for i in range(len(y)):
        total -= lam[i] * (y[i] * affine(X[i], theta, b) - 1 + xi[i])
        total -= mu[i] * xi[i]
    return total


def theta(lam, X, y):
    """Eq. 8."""
    return [sum(lam[i] * y[i] * X[i][k] for i in range(len(y))) for k in range(len(X[0]))]


def f1i(i, lam, X, y, k):
    """Eq. 32."""
    return 0.5 * sum(lam[j] * y[j] * k(X[i], X[j]) for j in range(len(y)))


def f1(lam, X, y, k):
    """Eq. 31."""
    m = len(y)
    return 0.5 * sum(lam[i] * lam[j] * y[i] * y[j] * k(X[i], X[j]) for i in range(m) for j in range(m))


def W(lam, X, y, k):
    """Eq. 21."""
    return -sum(lam) + f1(lam, X, y, k)


def grad_W(lam, X, y, k):
    """The derivative of Eq. 21 by hand: -1 + y_i sum_j lam_j y_j K_ij, for a symmetric kernel."""
    return [-1 + y[i] * 2 * f1i(i, lam, X, y, k) for i in range(len(y))]


def P(v, y):
    """Eq. 24."""
    t = sum(a * b for a, b in zip(y, v, strict=True)) / sum(a * a for a in y)
    return [v_i - t * y_i for v_i, y_i in zip(v, y, strict=True)]


def Pi(v, lower, upper):
    """Eq. 22."""
    return [upper if v_i > upper else lower if v_i < lower else v_i for v_i in v]


def step(lam, X, y, k, C, alpha):
    """Eq. 25 with the projections of Eq. 26."""
    moved = [a - alpha * g for a, g in zip(lam, grad_W(lam, X, y, k), strict=True)]
    return Pi(P(moved, y), 0.0, C)


def decision(x, lam, X, y, k, b):
    """Eq. 28, 30."""
    return sum(y[i] * lam[i] * k(X[i], x) for i in range(len(y))) + b


def intercept(lam, X, y, k):
    """Eq. 29, over all m as printed."""
    m = len(y)
    return (sum(y) - sum(y[j] * lam[j] * k(X[j], X[i]) for i in range(m) for j in range(m))) / m


def gram(X, Z, k):
    """K(x_i, z_j) for every pair."""
    return np.array([[k(x, z) for z in Z] for x in X])


def qp(Q, p, lower, upper, a=None, c=0.0):
    """minimise 1/2 v'Qv + p'v subject to lower <= v <= upper, a'v = c, by Clarabel's interior-point method.

    a may be a matrix, with one row and one entry of c an equality.
    """
    m = len(p)
    lower, upper = np.broadcast_to(lower, m).astype(float), np.broadcast_to(upper, m).astype(float)
    eye = sparse.eye(m, format="csr")
    below, above = np.isfinite(upper), np.isfinite(lower)
    rows = [eye[below], -eye[above]]
    limits = [upper[below], -lower[above]]
    cones = [clarabel.NonnegativeConeT(int(below.sum() + above.sum()))]
    if a is not None:
        a, c = np.atleast_2d(a), np.atleast_1d(c)
        rows, limits = [sparse.csr_matrix(a), *rows], [c, *limits]
        cones = [clarabel.ZeroConeT(len(c)), *cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    upper_triangle = sparse.csc_matrix(np.triu(Q))
    solver = clarabel.DefaultSolver(
        upper_triangle, np.asarray(p, float), sparse.vstack(rows, format="csc"), np.concatenate(limits), cones, settings
    )
    return np.array(solver.solve().x)


def one_vs_rest(y, f, p=1):
    """Eq. 005:1 to the power p."""
    return sum(max(0.0, 1 - (1 if r == y else -1) * f[r]) ** p for r in range(len(f)))


def crammer_singer(y, f, p=1, margin=1.0):
    """Eq. 005:2 to the power p."""
    return max(0.0, max(margin - f[y] + f[r] for r in range(len(f)) if r != y)) ** p


def weston_watkins(y, f, p=1, margin=1.0):
    """Eq. 005:3 to the power p."""
    return sum(max(0.0, margin - f[y] + f[r]) ** p for r in range(len(f)) if r != y)


def machine_decisions(Z, q, X, k, b):
    """Eq. 005:5."""
    return [
        [sum(q_i * k(z, x_i) for q_i, x_i in zip(row, X, strict=True)) + b_c for row, b_c in zip(q, b, strict=True)]
        for z in Z
    ]
