"""The symmetric system of an adjoint: [A E; E' 0] [u; w] = [r; s] with A positive semi-definite.

Cholesky's factor of A serves where A is definite. A may be singular: of duplicated points, or of a linear kernel with
fewer features than free variables. Then eigenvalues give the least solution, if the system has one.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, eigh, solve
from scipy.linalg.blas import dsymv  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]

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
    A : array of shape (n, n), stored by rows
        A positive semi-definite matrix; its entries are overwritten.
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
    right = float(max(np.abs(r).max(initial=0.0), np.abs(s).max(initial=0.0)))
    if right == 0:
        return np.zeros(len(r)), np.zeros(len(s)), 1.0, True
    size = float(max(A.max(), -A.min()))
    factor = _Factor(A)
    found = factor.solve(E, r, s)
    if found is not None and _is_solution(factor.multiply, E, r, s, found, size, right):
        return *found, factor.condition, True
    A = factor.restored()
    M = np.block([[A, E], [E.T, np.zeros((len(s), len(s)))]])
    found = _by_symmetric_factor(M, r, s)
    if found is not None and _is_solution(A.__matmul__, E, r, s, found, size, right):
        return *found, np.inf, True
    values, vectors = eigh(M, driver="evd")
    kept = np.abs(values) > len(M) * np.finfo("float64").eps * np.abs(values).max() * 16
    x = vectors[:, kept] @ ((vectors[:, kept].T @ np.concatenate([r, s])) / values[kept])
    u, w = x[: len(r)], x[len(r) :]
    return u, w, np.inf, bool(_residual(A.__matmul__, E, r, s, u, w) <= _CONSISTENT * right)


def _is_solution(multiply, E, r, s, found, size, right):
    """Whether (u, w) solves the system, and u is not so large that rounding of A decides it."""
    with np.errstate(over="ignore", invalid="ignore"):
        off = _residual(multiply, E, r, s, *found)
        return bool(off <= _CONSISTENT * right and size * np.abs(found[0]).max() <= _DETERMINED * right)


def _residual(multiply, E, r, s, u, w):
    one, two = multiply(u) + E @ w - r, E.T @ u - s
    return float(max(np.abs(one).max(initial=0.0), np.abs(two).max(initial=0.0)))


class _Factor:
    """Cholesky's factor of A in one triangle of its memory, A in the other; two diagonals."""

    def __init__(self, A: Array):
        self._A, self._diagonal = A, np.diagonal(A).copy()
        norm = dlange("1", A.T)
        # The transpose of a matrix by rows is what LAPACK has by columns: it is overwritten in place.
        self._F, info = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
        self.is_definite = info == 0 and self._F is not None and np.shares_memory(self._F, A)
        reciprocal = dpocon(self._F, norm, uplo="L")[0] if self.is_definite else 0.0
        self.condition = 1 / max(float(reciprocal), float(np.finfo("float64").tiny))

    def multiply(self, u: Array) -> Array:
        """A u."""
        return dsymv(1.0, self._F, u, lower=0) + (self._diagonal - np.diagonal(self._F)) * u

    def restored(self) -> Array:
        """A, from its triangle."""
        lower = np.tril(self._A, -1)
        A = lower + lower.T
        A[np.diag_indices(len(A))] = self._diagonal
        return A

    def solve(self, E: Array, r: Array, s: Array) -> tuple[Array, Array] | None:
        """u and w, None where A is not definite."""
        if not self.is_definite:
            return None
        both = dpotrs(self._F, np.column_stack([r, E]), lower=1)[0]
        first, Y = both[:, 0], both[:, 1:]
        S = E.T @ Y
        u, w = np.zeros(len(r)), np.zeros(len(s))
        try:
            for k in range(2):  # the second pass corrects the first
                if k:
                    first = dpotrs(self._F, r - self.multiply(u) - E @ w, lower=1)[0]
                dw = np.linalg.solve(S, E.T @ first - (s - E.T @ u))
                u, w = u + first - Y @ dw, w + dw
        except LinAlgError:
            return None
        return u, w


def _by_symmetric_factor(M: Array, r: Array, s: Array) -> tuple[Array, Array] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # the caller looks at the residual
        try:
            x = solve(M, np.concatenate([r, s]), assume_a="sym", check_finite=False)
        except LinAlgError:
            return None
    return x[: len(r)], x[len(r) :]
