"""Objectives, violations and gaps in extended precision, and how far float64 may be from them; nothing of symsvm.

Kernels are evaluated by differences, in `numpy.longdouble` (64 bits of mantissa on x86, exponents to 1e4932). With each
value comes its size in units of eps: what float64, with the same formula and sums in any order, may lose. A kernel is
known by the name of its class and its numbers, so that `model.kernel_` is evaluated without its own code.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["EPS", "Dual", "Judgement", "LinearPrimal", "as_long", "judge", "judge_classes", "judge_linear", "kernel"]

EPS = float(np.finfo("float64").eps)
_TINY = np.longdouble(np.finfo("float64").tiny)  # below it, float64 has no relative precision


def as_long(values):
    """An array in extended precision; sparse ones become dense."""
    return np.asarray(values.toarray() if hasattr(values, "tocsr") else values, dtype=np.longdouble)


class Judgement(NamedTuple):
    """What is true of a point; `of_*` bound the rounding of float64 in each, as absolute numbers."""

    W: float
    violation: float
    gap: float
    infeasibility: float
    of_W: float
    of_violation: float
    of_gap: float
    total: float  # the sum of abs(z)


# ---- kernels


def kernel(k, X, Z):
    """K(x_i, z_j) and its size: float64 loses at most eps times the size."""
    X, Z = as_long(X), as_long(Z)
    return _KERNELS[type(k).__name__](k, X, Z)


def _inner(X, Z):
    return X @ Z.T, (X.shape[1] + 2) * (np.abs(X) @ np.abs(Z).T) + _TINY / EPS


def _exponential(t, d):
    """exp(-t) of a sum of d terms."""
    K = np.exp(-t)
    return K, (2 + (d + 6) * t) * K + _TINY / EPS


def _squared_distance(X, Z, widths=None):
    widths = np.ones(X.shape[1], np.longdouble) if widths is None else widths
    parts = (((x[:, None] - z[None]) / w) ** 2 for x, z, w in zip(X.T, Z.T, widths, strict=True))
    return sum(parts, np.longdouble(0))


def _linear(k, X, Z):
    return _inner(X, Z)


def _rbf(k, X, Z):
    sigma = as_long(k.sigma)
    if sigma.ndim:
        return _exponential(_squared_distance(X, Z, sigma) / 2, X.shape[1])
    return _exponential(_squared_distance(X, Z) / (2 * sigma**2), X.shape[1])


def _laplacian(k, X, Z):
    factors = np.broadcast_to(as_long(k.gamma), X.shape[1])
    parts = (g * np.abs(x[:, None] - z[None]) for x, z, g in zip(X.T, Z.T, factors, strict=True))
    return _exponential(sum(parts, np.longdouble(0)), X.shape[1])


def _affine(k, X, Z):
    K, size = _inner(X, Z)
    return k.gamma * K + k.coef0, k.gamma * size + 2 * (np.abs(k.gamma * K) + abs(k.coef0))


def _polynomial(k, X, Z):
    base, size = _affine(k, X, Z)
    return base**k.degree, k.degree * np.abs(base) ** (k.degree - 1) * (size + 2 * np.abs(base))


def _sigmoid(k, X, Z):
    t, size = _affine(k, X, Z)
    K = np.tanh(t)
    return K, (1 - K**2) * size + 4 * np.abs(K)


def _constant(k, X, Z):
    return np.full((len(X), len(Z)), np.longdouble(k.c)), np.zeros((len(X), len(Z)), np.longdouble)


def _sum(k, X, Z):
    (K1, s1), (K2, s2) = kernel(k.k1, X, Z), kernel(k.k2, X, Z)
    return K1 + K2, s1 + s2 + np.abs(K1) + np.abs(K2)


def _product(k, X, Z):
    (K1, s1), (K2, s2) = kernel(k.k1, X, Z), kernel(k.k2, X, Z)
    return K1 * K2, s1 * np.abs(K2) + s2 * np.abs(K1) + np.abs(K1 * K2)


def _scale(k, X, Z):
    K, size = kernel(k.k1, X, Z)
    return k.c * K, abs(k.c) * (size + np.abs(K))


def _power(k, X, Z):
    K, size = kernel(k.k1, X, Z)
    return K**k.n, k.n * np.abs(K) ** (k.n - 1) * (size + 2 * np.abs(K))


def _pair(k, X, Z):
    """The one pair function of the cases, 1 / (1 + |x - z|^2 / scale)."""
    t = _squared_distance(X, Z) / np.longdouble(k.scale)
    return 1 / (1 + t), ((X.shape[1] + 4) * t + 3) / (1 + t) ** 2 + _TINY / EPS


_KERNELS = {
    "Linear": _linear,
    "RBF": _rbf,
    "Laplacian": _laplacian,
    "Polynomial": _polynomial,
    "Sigmoid": _sigmoid,
    "Constant": _constant,
    "Sum": _sum,
    "Product": _product,
    "Scale": _scale,
    "Power": _power,
    "PairKernel": _pair,
}


# ---- duals over a kernel


class Dual(NamedTuple):
    """minimise 1/2 z.Kz + p.z, lower <= z <= upper, the sum of z over a group its total; z_i belongs to point_i."""

    K: np.ndarray
    size: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    point: np.ndarray
    group: np.ndarray
    totals: tuple


def judge(dual, z):
    """The objective, the violation (LIBSVM's m(z) - M(z)) and the least gap over all multipliers, of a point z."""
    K, size, p, lower, upper, point, group, totals = dual
    lower, upper, p, z = as_long(lower), as_long(upper), as_long(p), as_long(z)
    m = len(K)
    beta = np.zeros(m, np.longdouble)
    np.add.at(beta, point, z)
    values = K @ beta
    # A sum of m terms in any order, the products, and the errors of K itself.
    rounding = (size @ np.abs(beta) + (m + 4) * (np.abs(K) @ np.abs(beta)))[point] * EPS + 2 * EPS * np.abs(p)
    F = values[point] + p
    W = z @ (values[point] / 2 + p)
    below, above = z < upper, z > lower
    violation, of_violation, gap = np.longdouble(0), 2 * rounding.max(initial=0), np.longdouble(0)
    infeasibility = max((lower - z).max(), (z - upper).max(), np.longdouble(0))
    if not totals:
        violation = max(violation, -F[below].min(initial=0), F[above].max(initial=0))
        gap = _gap(F, z, lower, upper)
    for g, total in enumerate(totals):
        here = group == g
        most, least = F[here & above].max(initial=-np.inf), F[here & below].min(initial=np.inf)
        violation = max(violation, most - least)
        gap += min(_gap(F[here] - f, z[here], lower[here], upper[here]) for f in np.unique(F[here]))
        infeasibility = max(infeasibility, abs(z[here].sum() - as_long(total)))
    reach = np.where(np.isfinite(upper - lower), upper - lower, np.abs(z))
    of_gap = 2 * (rounding * reach).sum() + 4 * m * EPS * (np.abs(F) * np.abs(z)).sum()
    of_W = (rounding * np.abs(z)).sum() + (m + 4) * EPS * (np.abs(z) * (np.abs(values[point]) + np.abs(p))).sum()
    return Judgement(W, violation, gap, infeasibility, of_W, of_violation, of_gap, np.abs(z).sum())


def _gap(f, z, lower, upper):
    """sum_i z_i f_i - min over the bounds of v f_i."""
    best = np.where(f > 0, lower, np.where(f < 0, upper, z))
    return ((z - best) * f).sum()


# ---- linear machines


class LinearPrimal(NamedTuple):
    """R(w, b / s) + sum_i C_i loss(t_i, x_i.w + b); s = 0 without an intercept, R is without b if `free`."""

    X: np.ndarray
    t: np.ndarray
    C: np.ndarray
    s: float
    loss: str
    penalty: str
    epsilon: float
    free: bool


def judge_linear(problem, w, b, z):
    """W = -D of the dual vector z (of the z that belongs to the weights for l1), the violation, and P - D."""
    X, t, C, s, loss, penalty, epsilon, free = problem
    X, t, C, w = as_long(X), as_long(t), as_long(C), as_long(w)
    epsilon = np.longdouble(epsilon)
    (n, d), squared, classifies = X.shape, loss.startswith("squared"), loss.endswith("hinge")
    u = np.append(w, as_long(b) / s if s else np.longdouble(0))
    A = np.column_stack([X, np.full(n, np.longdouble(s))])
    reg = np.append(np.ones(d), 0.0 if free or not s else 1.0)
    most = np.full(n, np.inf) if squared else C
    lower, upper = (np.where(t > 0, 0, -most), np.where(t > 0, most, 0)) if classifies else (-most, most)
    D = 1 / (2 * C) if squared else np.zeros(n, np.longdouble)

    def best(r):
        x = np.sign(r) * np.maximum(np.abs(r) - epsilon, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(x / D, lower, upper) if squared else np.where(x > 0, upper, np.where(x < 0, lower, 0))

    def h(v, r):
        return v * r - epsilon * np.abs(v) - D * v**2 / 2

    r = t - A @ u
    size_f = (d + 4) * EPS * (np.abs(A) @ np.abs(u) + np.abs(t)) + EPS * epsilon
    z = best(r) if penalty == "l1" else as_long(z)
    excess, size_v = np.longdouble(0), (n + 4) * EPS * (np.abs(A).T @ np.abs(z))
    if free:
        z = _balanced(z) if penalty == "l1" else z
        excess = abs(z.sum()) if penalty == "l2" else np.longdouble(0)
        # What rounding leaves of sum z = 0 may be moved from any variable to any other.
        size_v += (n + 4) * EPS * np.abs(z).sum() * np.abs(A).max(axis=0)
    v = A.T @ z
    if penalty == "l1":
        violation = np.where(u != 0, np.abs(reg * np.sign(u) - v), np.maximum(np.abs(v) - reg, 0))[: d + bool(s)].max()
        of_violation = size_v.max() + (np.abs(A).T @ (size_f * (2 * C if squared else C))).max()
        scale = min(np.longdouble(1), 1 / max((reg * np.abs(v)).max(), np.longdouble(1e-300)))
        z, v = z * scale, v * scale
        R, R_dual, unit = reg @ np.abs(u), np.longdouble(0), 1.0
    else:
        f = A @ np.where(reg > 0, v, u)
        unit = _unit(t, epsilon, classifies, free)
        with np.errstate(invalid="ignore"):
            G = D * z - t + f
        up = np.where(z < upper, -(G + np.where(z >= 0, epsilon, -epsilon)), 0)
        down = np.where(z > lower, G + np.where(z > 0, epsilon, -epsilon), 0)
        violation = max(np.longdouble(0), up.max(), down.max()) / unit
        of_violation = (np.abs(A) @ size_v + size_f + 4 * EPS * (np.abs(D * z) + np.abs(f))).max() / unit
        R, R_dual = (reg * u**2).sum() / 2, (reg * v**2).sum() / 2
    at = best(r)
    P = R + h(at, r).sum()
    dual = h(z, t).sum() - R_dual
    of_P = n * EPS * P + 2 * (size_f * np.abs(at)).sum() + (n + d) * EPS * R + 4 * EPS * (np.abs(at) * np.abs(r)).sum()
    of_D = (n + 4) * EPS * (np.abs(z * t) + epsilon * np.abs(z) + D * z**2).sum() + 2 * (
        size_v * (np.abs(v) + size_v)
    ).sum()
    if penalty == "l1":  # z follows r, times 1 / D
        of_D += (size_f * (2 * C) * np.abs(t)).sum() + np.abs(h(z, t)).sum() * of_violation
    return Judgement(-dual, violation, P - dual, excess, of_P + of_D, of_violation, of_P + of_D, np.abs(z).sum())


def _balanced(z):
    """z with the larger of its two parts, the positive and the negative one, scaled so that the sum is 0."""
    parts = z[z > 0].sum(), -z[z < 0].sum()
    if min(parts) == 0:
        return np.zeros_like(z)
    return np.where(z > 0, z * min(1, parts[1] / parts[0]), z * min(1, parts[0] / parts[1]))


def _unit(t, epsilon, classifies, free):
    """The unit of a violation: 1 for labels, the mean part of the targets outside the tube."""
    if classifies:
        return 1.0
    t = t - t.mean() if free else t
    return np.maximum(np.abs(t) - epsilon, 0).mean() or np.abs(t).max() or 1.0


def judge_classes(X, labels, C, s, w, b, z):
    """The machine of Crammer and Singer: W = -D of z, its violation, and P - D of the weights w (k, d), b (k,)."""
    X, C, w, b, z = (as_long(a) for a in (X, C, w, b, z))
    n, d = X.shape
    A = np.column_stack([X, np.full(n, np.longdouble(s))])
    u = np.column_stack([w, b / s if s else np.zeros(len(w))])
    rows = np.arange(n)
    e = np.ones_like(z)
    e[rows, labels] = 0

    def losses(f):
        return (e + f).max(axis=1) - f[rows, labels]

    v, size_v = z.T @ A, (n + 4) * EPS * (np.abs(z).T @ np.abs(A))
    G = e + A @ v.T
    bound = np.zeros_like(z)
    bound[rows, labels] = C
    violation = np.where(z < bound, G.max(axis=1, keepdims=True) - G, 0).max()
    sizes = (d + 4) * EPS * (1 + np.abs(A) @ np.abs(v).T) + np.abs(A) @ size_v.T
    f = A @ u.T
    P = (u**2).sum() / 2 + (C * losses(f)).sum()
    dual = -(v**2).sum() / 2 - (e * z).sum()
    of_P = (n + d) * EPS * (u**2).sum() + 4 * (C[:, None] * (d + 4) * EPS * (1 + np.abs(A) @ np.abs(u).T)).sum()
    of_P += 2 * (C[:, None] * sizes).sum() + (np.abs(v) * size_v).sum()
    of_D = (n + 4) * EPS * np.abs(z).sum() + 2 * (size_v * (np.abs(v) + size_v)).sum() + (n + d) * EPS * (v**2).sum()
    outside = max((z - bound).max(), np.abs(z.sum(axis=1)).max(), np.longdouble(0))
    of_violation, of_both = 2 * sizes.max(), of_P + of_D
    return Judgement(-dual, violation, P - dual, outside, of_both, of_violation, of_both, np.abs(z).sum())
