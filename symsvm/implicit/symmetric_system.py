"""The symmetric system of an adjoint: [A E; E' 0] [u; w] = [r; s] with A positive semi-definite.

Cholesky's factor of A serves where A is definite. A may be singular: of duplicated points, or of a linear kernel with
fewer features than free variables. Then eigenvalues give the least solution, if the system has one.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, eigh, solve
from scipy.linalg.lapack import dpocon  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["solve_symmetric"]

# A solution of the system that is larger than the right-hand side by this factor, relative to the matrix, is not
# determined: rounding of K changes it in the first digits.
_DETERMINED = 1e11
# The residual, relative to the right-hand side, above which the system has no solution.
_CONSISTENT = 1e-6


def solve_symmetric(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array, float, bool]:
    """Solve [A E; E' 0] [u; w] = [r; s].

    Parameters
    ----------
    A : array of shape (n, n)
        A positive semi-definite matrix.
    E : array of shape (n, G)
        Columns of 0 and 1, each row with at most one 1.
    r, s : arrays of shape (n,) and (G,)
        The right-hand side.

    Returns
    -------
    tuple of (array, array, float, bool)
        u, w, an estimate of the condition of A, and whether the system determines u, or all that r and s depend on.

    Examples
    --------
    >>> A, E = np.array([[2.0, 0.0], [0.0, 1.0]]), np.ones((2, 1))
    >>> u, w, _, is_determined = solve_symmetric(A, E, np.array([1.0, 0.0]), np.zeros(1))
    >>> u.round(4).tolist(), w.round(4).tolist(), is_determined
    ([0.3333, -0.3333], [0.3333], True)
    """
    size, right = float(np.abs(A).max(initial=0.0)), float(max(np.abs(r).max(initial=0.0), np.abs(s).max(initial=0.0)))
    if right == 0:
        return np.zeros(len(r)), np.zeros(len(s)), 1.0, True
    for method in (_by_cholesky, _by_symmetric_factor):
        found = method(A, E, r, s)
        if found is not None:
            u, w, condition = found
            with np.errstate(over="ignore", invalid="ignore"):
                off = _residual(A, E, r, s, u, w) / right
                if off <= _CONSISTENT and size * np.abs(u).max() <= _DETERMINED * right:
                    return u, w, condition, True
    M = np.block([[A, E], [E.T, np.zeros((len(s), len(s)))]])
    values, vectors = eigh(M, driver="evd")
    kept = np.abs(values) > len(M) * np.finfo("float64").eps * np.abs(values).max() * 16
    x = vectors[:, kept] @ ((vectors[:, kept].T @ np.concatenate([r, s])) / values[kept])
    u, w = x[: len(r)], x[len(r) :]
    return u, w, np.inf, bool(_residual(A, E, r, s, u, w) <= _CONSISTENT * right)


def _residual(A: Array, E: Array, r: Array, s: Array, u: Array, w: Array) -> float:
    one, two = A @ u + E @ w - r, E.T @ u - s
    return float(max(np.abs(one).max(initial=0.0), np.abs(two).max(initial=0.0)))


def _by_cholesky(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array, float] | None:
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
    except LinAlgError:
        return None
    condition = 1 / max(float(dpocon(factor[0], np.abs(A).sum(axis=0).max(), uplo="L")[0]), np.finfo("float64").tiny)
    if not len(s):
        u = cho_solve(factor, r, check_finite=False)
        return u + cho_solve(factor, r - A @ u, check_finite=False), s, condition
    both = cho_solve(factor, np.column_stack([r, E]), check_finite=False)
    Y = both[:, 1:]
    S = E.T @ Y
    u, w = np.zeros(len(r)), np.zeros(len(s))
    try:
        for _ in range(2):  # the second pass corrects the first
            first = both[:, 0] if not u.any() else cho_solve(factor, r - A @ u - E @ w, check_finite=False)
            dw = np.linalg.solve(S, E.T @ first - (s - E.T @ u))
            u, w = u + first - Y @ dw, w + dw
    except LinAlgError:
        return None
    return u, w, condition


def _by_symmetric_factor(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array, float] | None:
    M = np.block([[A, E], [E.T, np.zeros((len(s), len(s)))]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # the caller looks at the residual
        try:
            x = solve(M, np.concatenate([r, s]), assume_a="sym", check_finite=False)
        except LinAlgError:
            return None
    return x[: len(r)], x[len(r) :], np.inf
