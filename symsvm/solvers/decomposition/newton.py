"""Newton's step on the free variables: one linear system instead of many steps of SMO.

For   minimise 1/2 d.A d + F.d   subject to   lower <= z + d <= upper,   sum of d over each group = 0   the minimiser
without bounds takes one factorisation. Bounds that it violates become equalities and the system is solved again; bounds
with a multiplier of the wrong sign are released (block pivoting), all with the same factor. With B the columns of the
equalities,

    d = -A^-1 (F + B mu),    (B' A^-1 B) mu = -B' A^-1 F - s,    B' d = s.

Where block pivoting does not end, as it may for a nearly singular matrix, each step goes up to the first bound, and the
next one is taken without the variable at that bound: slower, but the objective never rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["newton"]

# Rounds of block pivoting, and the part of the variables that may be at a bound.
_PIVOT_ROUNDS, _PIVOT_PART = 10, 0.5
# Variables up to which one step without LAPACK is tried first.
_SMALL = 256
# Variables up to which steps go from bound to bound, and the multiplications that these may cost.
_DESCENT_VARIABLES, _DESCENT_COST = 640, 2**30


def newton(
    A: Array,
    F: Array,
    z: Array,
    lower: Array,
    upper: Array,
    group: Array,
    groups: int,
    *,
    is_patient: bool = True,
) -> Array:
    """Return a feasible point that is no worse than z for the quadratic with the matrix A and the gradient F at z.

    Parameters
    ----------
    A : (n, n) between the free variables, float64; its diagonal is raised where a factor needs it.
    F, z, lower, upper : vectors (n,).
    group : the index of each variable's equality; `groups` is their number, 0 if there are none.
    is_patient : whether to go from bound to bound where block pivoting does not end.
    """
    best = _unbounded(A, F, z, lower, upper, groups)
    if best is not None:
        return best
    E = _columns(group, groups)
    # d sums to 0 over a group: a constant in its gradient changes nothing, and would cost digits; a constant in A gives
    # curvature to directions that the equality excludes.
    F = F - E @ ((E.T @ F) / E.sum(axis=0))
    if groups:
        A += np.where(group[:, None] == group, np.mean(np.diagonal(A)), 0.0)
    factor, ridge = _factor(A)
    if factor is None:
        return z
    best, is_found = _pivoting(factor, F, z, lower, upper, E)
    d = best - z
    by_ridge = ridge * float(d @ d) > -0.1 * float(F @ d)  # the ridge limits the step, and not A
    if is_patient and len(z) <= _DESCENT_VARIABLES and (by_ridge or not is_found):
        best = _descent(A, ridge, F, z, lower, upper, group, groups)
    for g in range(groups):  # restore the totals from rounding
        inside = (group == g) & (best > lower) & (best < upper)
        best[inside] -= (best - z)[group == g].sum() / max(1, np.count_nonzero(inside))
    return np.clip(best, lower, upper)


def _unbounded(A: Array, F: Array, z: Array, lower: Array, upper: Array, groups: int) -> Array | None:
    """The minimiser if it meets no bound; None if it does, or if the variables are too many or A is too singular."""
    from symsvm.solvers.decomposition.small_newton import (  # Numba is loaded when it is first needed
        RIDGE,
        WHOLE,
        small_newton,
    )

    n = len(z)
    if not 0 < n <= _SMALL or groups > 1:
        return None
    new, f, free = z.copy(), F.copy(), np.zeros(n)
    if small_newton(A, f, new, lower, upper, free, free.copy(), groups == 1) != WHOLE:
        return None
    d = new - z
    by_ridge = RIDGE * float(np.mean(np.diagonal(A))) * float(d @ d) > -0.1 * float((F - F.mean() * groups) @ d)
    return None if by_ridge else new


def _columns(group: Array, groups: int) -> Array:
    """A column of ones and zeros for each equality that has a variable."""
    E = (group[:, None] == np.arange(groups)).astype("float64")
    return E[:, E.any(axis=0)]


def _pivoting(factor: Array, F: Array, z: Array, lower: Array, upper: Array, E: Array) -> tuple[Array, bool]:
    """The minimiser by block pivoting, and whether it is one; else the last point, clipped to the bounds."""
    n, best = len(z), z
    fixed, s = np.zeros(0, dtype="int64"), np.zeros(0)
    v, columns = _solved(factor, F), _solved(factor, E)
    known: dict[int, Any] = {}  # columns of A^-1
    for _ in range(_PIVOT_ROUNDS):
        for j in set(fixed.tolist()) - set(known):
            known[j] = None
        missing = [j for j in fixed.tolist() if known[j] is None]
        if missing:
            unit = np.zeros((n, len(missing)))
            unit[missing, np.arange(len(missing))] = 1.0
            for j, column in zip(missing, _solved(factor, unit).T, strict=True):
                known[j] = column
        inverse = np.column_stack([columns, *(known[j] for j in fixed.tolist())])
        d, mu = -v, np.zeros(0)
        if inverse.shape[1]:
            rows = np.concatenate([E.T @ inverse, inverse[fixed]])
            right = np.concatenate([E.T @ v, v[fixed]]) + np.concatenate([np.zeros(E.shape[1]), s])
            try:
                mu = -np.linalg.solve(rows, right)
            except LinAlgError:
                return best, False
            d = -(v + inverse @ mu)
        new = z + d
        if not np.isfinite(new).all():
            return best, False
        new[fixed] = np.where(s + z[fixed] <= lower[fixed], lower[fixed], upper[fixed])
        best = np.clip(new, lower, upper)
        # A multiplier of the wrong sign releases its bound.
        push = mu[E.shape[1] :]
        keep = np.where(new[fixed] <= lower[fixed], push <= 0, push >= 0)
        outside = np.flatnonzero((new < lower) | (new > upper))
        if keep.all() and not len(outside):
            return new, True
        fixed = np.union1d(fixed[keep], outside)
        if len(fixed) > _PIVOT_PART * n:
            break
        s = best[fixed] - z[fixed]
    return best, False


def _descent(
    A: Array, ridge: float, F: Array, z: Array, lower: Array, upper: Array, group: Array, groups: int
) -> Array:
    """Newton's steps, each up to the first bound that it meets."""
    z, F, free, gained = z.copy(), F.copy(), np.arange(len(z)), 0.0
    size = float(np.mean(np.diagonal(A)))
    for _ in range(min(2 * len(z) + 10, _DESCENT_COST // len(z) ** 3)):
        E = _columns(group[free], groups)
        try:
            factor = _cholesky(A[np.ix_(free, free)])
            v, columns = _solved(factor, F[free]), _solved(factor, E)
            d = columns @ np.linalg.solve(E.T @ columns, E.T @ v) - v if E.shape[1] else -v
        except LinAlgError:
            break
        d -= E @ ((E.T @ d) / E.sum(axis=0))
        change = A[:, free] @ d
        change[free] -= ridge * d
        slope, curvature = float(F[free] @ d), float(change[free] @ d)
        if not (np.isfinite(change).all() and slope < 0):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(d > 0, (upper[free] - z[free]) / d, np.where(d < 0, (lower[free] - z[free]) / d, np.inf))
        # The ridge shortens the step: along it the minimum may be further than 1. Where A has negative eigenvalues,
        # from rounding as a rule, its curvature does not reach that far.
        best, most = -slope / curvature if curvature > 0 else np.inf, float(room.min())
        if most <= 0:  # variables at a bound that would go beyond it
            free = free[room > 0]
            if len(free) <= E.shape[1]:
                break
            continue
        best = min(best, 1.0) if ridge > 1e-8 * size else best
        t = min(best, most)
        gain = -t * slope - 0.5 * t * t * curvature
        if not (np.isfinite(t) and gain > 1e-9 * gained):
            break
        bound = np.where(d > 0, upper[free], lower[free])
        meets = room <= t
        z[free] = np.where(meets, bound, np.clip(z[free] + t * d, lower[free], upper[free]))
        F += t * change
        gained += gain
        free = free[~meets]
        if len(free) <= E.shape[1]:
            break
    return z


def _factor(A: Array) -> tuple[Array | None, float]:
    """The Cholesky factor of A with the least ridge that it needs, and this ridge, which is added to A."""
    size = float(np.mean(np.diagonal(A)))
    if not np.isfinite(size) or size <= 0:
        return None, 0.0
    before, diagonal = 0.0, np.arange(len(A))
    for part in (1e-10, 1e-8, 1e-7, 1e-6, 1e-5):
        A[diagonal, diagonal] += part * size - before
        before = part * size
        try:
            return _cholesky(A), before
        except LinAlgError:
            continue
    return None, 0.0


# LAPACK itself: for small systems SciPy's checks of arguments take longer than the solution.


def _cholesky(A: Array) -> Array:
    """The lower Cholesky factor of A; the upper triangle is undefined."""
    factor, info = dpotrf(A, lower=1, clean=0)
    if info:
        raise LinAlgError("A is not positive definite.")
    return factor


def _solved(factor: Array, right: Array) -> Array:
    """A^-1 right, by the factor of A."""
    return dpotrs(factor, right, lower=1)[0] if right.size else right.copy()
