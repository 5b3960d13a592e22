"""Newton's step on the free variables: a linear system in place of many small steps.

For   minimise 1/2 d.A d + F.d   subject to   lower <= z + d <= upper,   sum of d over each group = 0   the minimiser
without bounds is one factorisation away. Bounds that it breaks are taken as equalities and the system is solved again,
those that push the wrong way are let go (block pivoting), all on the same factor: with B the columns of the equalities,

    d = -A^-1 (F + B mu),    (B' A^-1 B) mu = -B' A^-1 F - s,    B' d = s.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve

__all__ = ["newton"]

# Rounds of block pivoting, and the part of the variables that may be at a bound at once.
_ROUNDS, _PART = 10, 0.5


def newton(A, F, z, lower, upper, group, groups):
    """Return a feasible point that is no worse than z for the quadratic with the matrix A and the gradient F at z.

    Parameters
    ----------
    A : (n, n) between the free variables, float64; overwritten.
    F, z, lower, upper : vectors (n,).
    group : the index of each variable's equality; `groups` is their number, 0 if there are none.
    """
    factor = _factor(A)
    if factor is None:
        return z
    n = len(z)
    E = (group[:, None] == np.arange(groups)).astype("float64")
    E = E[:, E.any(axis=0)]
    fixed, s = np.zeros(0, dtype="int64"), np.zeros(0)
    v, columns = cho_solve(factor, F, check_finite=False), cho_solve(factor, E, check_finite=False)
    known = {}  # the columns of A^-1 that were asked for
    best = None
    for _ in range(_ROUNDS):
        for j in set(fixed.tolist()) - set(known):
            known[j] = None
        missing = [j for j in fixed.tolist() if known[j] is None]
        if missing:
            unit = np.zeros((n, len(missing)))
            unit[missing, np.arange(len(missing))] = 1.0
            for j, column in zip(missing, cho_solve(factor, unit, check_finite=False).T, strict=True):
                known[j] = column
        inverse = np.column_stack([columns, *(known[j] for j in fixed.tolist())])
        d, mu = -v, np.zeros(0)
        if inverse.shape[1]:
            rows = np.concatenate([E.T @ inverse, inverse[fixed]])
            right = np.concatenate([E.T @ v, v[fixed]]) + np.concatenate([np.zeros(E.shape[1]), s])
            try:
                mu = -solve(rows, right, assume_a="sym", check_finite=False)
            except LinAlgError:
                break
            d = -(v + inverse @ mu)
        new = z + d
        new[fixed] = np.where(s + z[fixed] <= lower[fixed], lower[fixed], upper[fixed])
        best = np.clip(new, lower, upper)
        # A multiplier that pushes away from its bound lets go of it.
        push = mu[E.shape[1] :]
        keep = np.where(new[fixed] <= lower[fixed], push <= 0, push >= 0)
        outside = np.flatnonzero((new < lower) | (new > upper))
        if keep.all() and not len(outside):
            break
        fixed = np.union1d(fixed[keep], outside)
        if len(fixed) > _PART * n:
            break
        s = np.clip(new, lower, upper)[fixed] - z[fixed]
    return z if best is None else best


def _factor(A):
    """The Cholesky factor of A, with as little on its diagonal as it needs."""
    size = float(np.mean(np.diagonal(A)))
    if not np.isfinite(size) or size <= 0:
        return None
    before, diagonal = 0.0, np.arange(len(A))
    for part in (1e-12, 1e-9, 1e-7, 1e-6, 1e-5):
        A[diagonal, diagonal] += part * size - before
        before = part * size
        try:
            return cho_factor(A, lower=True, check_finite=False)
        except LinAlgError:
            continue
    return None
