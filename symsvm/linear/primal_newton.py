"""Newton's method in the weights u = (w, b), for the squared losses with the l2 penalty and any intercept.

::

    g = R'(u) - [X s]'z,     z = L'(r),     M = R'' + [X s]' Psi [X s],     Psi = L''(r) = 2 C_i where the loss is not 0

P is piecewise quadratic: the step -M^-1 g is exact once the set of points with a loss stays the same. The slope of P
along the step, phi'(a) = (u + a p).R''p - z(r - a q).q with q = [X s]p, is increasing, so that its zero is found with
vectors alone. Up to 500 features M is formed and factored. Beyond, conjugate gradients with the diagonal of M solve M
p = -g, to an accuracy that follows the norm of g (Keerthi and DeCoste, A modified finite Newton method for fast
solution of large scale linear SVMs, 2005; Lin, Weng and Keerthi, Trust region Newton method for large-scale logistic
regression, 2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from symsvm.linear.rows import inner

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from symsvm._lib.types import Array

__all__ = ["MAX_FORMED", "cholesky_solver", "primal_newton"]

MAX_FORMED = 500  # features up to which M is formed
NEWTON_SLOPE = 1e-3  # the share of the first slope at which the line search ends
MAX_FORCING = 0.1  # the largest relative residual of conjugate gradients
NEWTON_IDLE = 3  # iterations without a lower P after which rounding has stopped the progress


def cholesky_solver(M: Array) -> Callable[[Array], Array]:
    """Return the function g -> -M^-1 g of a positive semi-definite M; a singular M gets a small multiple of I added.

    If M exceeds the range of float64, the function returns NaN, which ends a run.
    """
    diagonal = np.maximum(np.diag(M), np.finfo("float64").tiny)
    scale = 1 / np.sqrt(diagonal)
    A = M * scale[:, None] * scale
    if not np.isfinite(A).all():
        return lambda g: np.full(len(g), np.nan)
    extra = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(A + extra * np.eye(len(A)), check_finite=False)
            return lambda g: -scale * scipy.linalg.cho_solve(factor, scale * g, check_finite=False)
        except np.linalg.LinAlgError:
            extra = max(1e-14, 100 * extra)


def _conjugate_gradients(points: Any, reg: Array, g: Array, forcing: float) -> Array:
    """Return -M^-1 g by conjugate gradients, to |residual| <= forcing |g| in the metric of the diagonal."""
    diagonal = points.curvature() + reg
    reg = np.where(diagonal == 0, 1.0, reg)  # an intercept without curvature: the line search finds the length
    diagonal[diagonal == 0] = 1.0
    p, residual = np.zeros(len(g)), -g
    scaled = residual / diagonal
    direction, product = scaled.copy(), inner(residual, scaled)
    goal = forcing**2 * product
    for _ in range(10 * len(g)):
        if product <= goal or product == 0:
            break
        image = points.multiply(direction, reg * direction)
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


def _line_search(points: Any, reg: Array, u: Array, p: Array) -> float:
    """Return the a > 0 with phi'(a) = 0, to a thousandth of phi'(0)."""
    constant, linear = inner(reg * u, p), inner(reg * p, p)

    def phi(a):
        first, second = points.slopes(a)
        return constant + a * linear - first, linear + second

    start = constant - points.advance(p)[0]
    low, high, a = 0.0, np.inf, 1.0
    for _ in range(60):
        value, curvature = phi(a)
        if abs(value) <= NEWTON_SLOPE * abs(start):
            break
        if value < 0:
            low = a
        else:
            high = a
        trial = a - value / curvature if curvature > 0 else 2 * a
        a = trial if low < trial < high else (0.5 * (low + high) if high < np.inf else 2 * a)
    return a


def primal_newton(
    problem: Any, u: Array, *, tol: float, formed: bool | None = None, points: Any = None
) -> Generator[tuple[Any, ...], Any, None]:
    """Yield (iterations so far, u, z, f, converged) until rounding stops the progress.

    A point has converged if |g| <= tol |g at 0|, for labels times the share of the rarer one, as LIBLINEAR asks. The
    problem is a `LinearProblem`, or another with its `reg`, `rarer_share` and `newton_points`, where `points` are None.
    """
    reg, points = problem.reg, problem.newton_points() if points is None else points
    formed = len(reg) - 1 <= MAX_FORMED if formed is None else formed
    u = u.copy()
    first = np.sqrt(inner(g0 := points.first_gradient(), g0))
    least, done, idle = np.inf, 0, 0
    while True:
        loss, v = points.evaluate(u)
        P = loss + 0.5 * inner(reg, u**2)
        g = reg * u - v
        norm = np.sqrt(inner(g, g))
        yield done, u.copy(), *points.snapshot(), norm <= tol * problem.rarer_share * first
        idle = idle + 1 if not P < least else 0
        least = min(P, least)
        if norm == 0 or idle >= NEWTON_IDLE:
            return
        if formed:
            M = points.normal()
            M[np.diag_indices_from(M)] += reg
            p = cholesky_solver(M)(g)
        else:
            forcing = min(MAX_FORCING, np.sqrt(norm / first)) if first > 0 else MAX_FORCING
            p = _conjugate_gradients(points, reg, g, forcing)
        u = u + _line_search(points, reg, u, p) * p
        done += 1
