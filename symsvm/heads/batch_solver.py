"""Many small machines over one kernel matrix, in one call of compiled code: `solve_batch` and `adjoint_batch`.

For each machine c, with its own bounds, D and labels t:

    minimise 1/2 q.(K + D) q - t.q    subject to    lower <= q <= upper,    sum q = 0

by steps of SMO on the whole of K in float64, with Newton's steps on the free variables between and after them.
A machine of a hundred points takes a fraction of a millisecond; the general solver takes two to set up and to certify
it. What does not reach tol here is left to the general solver, and so is each adjoint system that a Cholesky factor
does not determine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]

from symsvm._lib.code_cache import njit
from symsvm.solvers.decomposition.small_newton import CUT, NONE, WHOLE, small_newton
from symsvm.solvers.decomposition.smo import BLOCK, smo

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["adjoint_batch", "intercepts", "solve_batch"]

# Rounds of steps and confirmation, Newton's steps in each, and the part of tol that steps aim at.
_ROUNDS, _NEWTON_STEPS, _AIM = 4, 6, 0.5
# Steps of SMO in a round, and before Newton's steps: so many for each variable. A violation that is rounding.
_STEPS, _STEPS_EACH, _ROUNDING = 200_000, 2, 1e-14
# A solution of a system that is larger than its right-hand side by this factor is not determined; see `solve_adjoint`.
# The residual, relative to the right-hand side, above which it is no solution.
_DETERMINED, _CONSISTENT = 1e11, 1e-9


@njit(cache=True, nogil=True)
def _measure(G, t, z, up, low, F):
    """F = (K + D) z - t from the data; the violation of optimality."""
    least, most = np.inf, -np.inf
    for i in range(len(t)):
        F[i] = -t[i]
    for j in range(len(t)):
        if z[j] != 0:
            row, by = G[j], z[j]
            for i in range(len(t)):
                F[i] += by * row[i]
    for i in range(len(t)):
        least, most = min(least, F[i] + up[i]), max(most, F[i] + low[i])
    return most - least


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _descend(G, F, z, lower, upper, diagonal, up, low, floor, eps):
    """Take steps until the violation is at most eps, or there were many."""
    some, steps = _STEPS_EACH * len(z), 0
    while steps < _STEPS:
        taken = smo(G, F, z, lower, upper, diagonal, up, low, floor, eps, some, 0)
        steps += taken
        if taken < some:
            break
        for _ in range(_NEWTON_STEPS):
            if small_newton(G, F, z, lower, upper, up[0], low[0], True) != CUT:
                break


@njit(cache=True, nogil=True)
def _solve_all(K, T, lower, upper, D, tol, q, violations):
    machines, m = T.shape
    size = -(-m // BLOCK) * BLOCK
    G, F, z = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    below, above, diagonal = np.zeros(size), np.zeros(size), np.zeros(size)
    up, low = np.empty((1, size)), np.empty((1, size))
    G[:m, :m] = K
    scale = 0.0
    for i in range(m):
        scale = max(scale, abs(K[i, i]))
    for c in range(machines):
        least_D = np.inf
        z[:], up[:], low[:] = 0.0, np.inf, -np.inf
        for i in range(m):
            G[i, i] = diagonal[i] = K[i, i] + D[c, i]
            below[i], above[i], F[i] = lower[c, i], upper[c, i], -T[c, i]
            if upper[c, i] > 0:
                up[0, i] = 0.0
            if lower[c, i] < 0:
                low[0, i] = 0.0
            least_D = min(least_D, D[c, i])
        floor = max(1e-30, 1e-12 * scale, 2 * least_D)
        for _ in range(_ROUNDS):
            _descend(G, F, z, below, above, diagonal, up, low, floor, _AIM * tol)
            violation = _measure(G, T[c], z, up[0], low[0], F)
            for _ in range(_NEWTON_STEPS):
                if not violation > _ROUNDING * (1 + scale):
                    break
                outcome = small_newton(G, F, z, below, above, up[0], low[0], True)
                before, violation = violation, _measure(G, T[c], z, up[0], low[0], F)
                if outcome == NONE or (outcome == WHOLE and violation > before / 2):
                    break
            if violation <= tol:
                break
        violations[c] = violation
        q[c] = z[:m]


def solve_batch(K: Array, T: Array, lower: Array, upper: Array, D: Array, tol: float) -> tuple[Array, Array]:
    """Solve the machines; return q and the violation of optimality of each machine.

    Parameters
    ----------
    K : array of shape (m, m)
        The symmetric matrix.
    T, lower, upper, D : arrays of shape (k, m)
        The labels, the bounds of q, of which one is 0 and the other has the sign of the label, and the diagonals.
    tol : float
        The violation to reach.

    Returns
    -------
    tuple of array
        The solutions (k, m), and the violations (k,); above tol where the machine is not solved.
    """
    q, violations = np.zeros(T.shape), np.zeros(len(T))
    _solve_all(K, T, lower, upper, D, tol, q, violations)
    return q, violations


def intercepts(F: Array, q: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The multiplier b of each machine, and its violation of optimality.

    b is the mean of -F over free variables, or the midpoint of the interval that variables at bounds allow.

    Parameters
    ----------
    F : array of shape (k, m)
        The gradients (K + D) q - t.
    q, lower, upper : arrays of shape (k, m)
        The solutions and their bounds.

    Returns
    -------
    tuple of array
        b and the violations, (k,) each.
    """
    free = (q > lower) & (q < upper)
    least = np.min(F, axis=1, where=q < upper, initial=np.inf)
    most = np.max(F, axis=1, where=q > lower, initial=-np.inf)
    n_free = free.sum(axis=1)
    with np.errstate(invalid="ignore"):  # a machine whose variables are all fixed
        ends = (least + most) / 2
        return -np.where(n_free > 0, np.sum(F, axis=1, where=free) / np.maximum(n_free, 1), ends), most - least


def adjoint_batch(
    K: Array, D: Array, q: Array, lower: Array, upper: Array, gq: Array, gb: Array
) -> tuple[Array, Array, Array]:
    """Solve the adjoint systems; return u, w and whether each system was solved (Eq. 005:6).

    ::

        (K + D)_FF u_F + w = gq_F,    sum u_F = gb,    u = 0 elsewhere,    F: lower < q < upper

    Parameters
    ----------
    K : array of shape (m, m)
        The symmetric matrix.
    D, q, lower, upper : arrays of shape (k, m)
        The diagonals, the solutions and their bounds.
    gq, gb : arrays of shape (k, m) and (k,)
        The gradients of a loss by q and b.

    Returns
    -------
    tuple of array
        u (k, m), w (k,), and booleans (k,): False where F is empty or the factor does not determine u.
    """
    u, w, solved = np.zeros(q.shape), np.zeros(len(q)), np.zeros(len(q), dtype=bool)
    free = (q > lower) & (q < upper)
    for c in range(len(q)):
        here = np.flatnonzero(free[c])
        if not len(here):
            continue
        A = K[here[:, None], here]
        A.flat[:: len(here) + 1] += D[c, here]
        # sum u is given: a constant added to A changes w alone, and makes A definite wherever the system is regular.
        shift = float(np.mean(np.diagonal(A)))
        A += shift
        factor, info = dpotrf(A, lower=1, clean=0)
        if info:
            continue
        g = gq[c, here]
        first, ones = dpotrs(factor, np.column_stack([g, np.ones(len(here))]), lower=1)[0].T
        total = ones.sum()
        w[c] = (first.sum() - gb[c]) / total
        x = first - w[c] * ones
        second = dpotrs(factor, g - A @ x - w[c], lower=1)[0]  # corrects the first
        more = (second.sum() - gb[c] + x.sum()) / total
        w[c] += more
        x += second - more * ones
        u[c, here] = x
        off = max(np.abs(g - A @ x - w[c]).max(), abs(x.sum() - gb[c]))
        size = max(np.abs(g).max(), abs(gb[c]))
        w[c] += shift * x.sum()
        solved[c] = off <= _CONSISTENT * size and np.abs(A).max() * np.abs(x).max() <= _DETERMINED * size
    return u, w, solved
