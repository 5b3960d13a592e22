"""The multipliers of a point under bounds, equalities A lam = c and inequalities G lam <= h, and its KKT residual.

A feasible lam is stationary if some b, and some mu >= 0 that is 0 for the inequalities that are not active, give

    s_i >= 0 where lam_i = lower_i,   <= 0 where lam_i = upper_i,   = 0 in between,        s = g + A'b + G'mu.

The violation is the smallest residual in the maximum norm: a linear program in the k multipliers with a row or two for
each coordinate. Least squares come first. They are the projection of -g onto the directions d that stay feasible,

    d = argmin |d + g|^2   over   d_i >= 0 where lam_i = lower_i,   <= 0 where lam_i = upper_i,   A d = 0,   G d <= 0

(the rows of G that are active), whose multipliers leave the residuals |d_i|. As A d = 0 and G d <= 0, d / |d|_1 is a
feasible point of the dual of the linear program, so that

    |d|_2^2 / |d|_1   <=   smallest residual   <=   |d|_inf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.objectives.polytope import nearest_point

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["Multipliers", "check_feasible"]

_ROWS = 4  # rows that enter the linear program at a time, for each of its variables
_CLOSE = 1e-6  # the relative difference between bound and residual at which it ends: HiGHS has seven digits


class Multipliers:
    """Finds the multipliers of the points of a run, in their order: the search starts from those of the point before.

    Parameters
    ----------
    M : ndarray
        The rows A, then G: (k, m).
    n_equal : int
        The number of equalities.
    """

    def __init__(self, M: Array, n_equal: int) -> None:
        self.M, self.n_equal = np.ascontiguousarray(M, dtype="float64"), n_equal
        self._last = np.zeros(len(M))

    def estimate(self, g: Array, below: Array, above: Array, active: Array) -> tuple[Array, float, float]:
        """Return the multipliers (k,) by least squares, and a lower and an upper bound of the smallest residual.

        Parameters
        ----------
        g : ndarray
            The gradient (m,).
        below, above : ndarray of bool
            Whether a coordinate may rise, and whether it may fall.
        active : ndarray of bool
            The rows that may have a multiplier: all equalities, and the inequalities that are active.
        """
        ends = np.where(above, -np.inf, 0.0), np.where(below, np.inf, 0.0)
        limits = np.where(active, 0.0, np.inf)  # a row with an infinite limit has the multiplier 0
        ones = np.ones_like(g)
        d, nu = nearest_point(-g, *ends, ones, self.M, limits, self.n_equal, self._last)
        self._last = nu
        size = np.abs(d)
        upper = residual(g + nu @ self.M, below, above)
        return nu, float(d @ d / size.sum()) if size.any() else 0.0, upper

    def smallest_residual(self, g: Array, below: Array, above: Array, active: Array) -> tuple[Array, float]:
        """Return multipliers (k,) with the smallest residual, and that residual; for the arguments see `estimate`."""
        nu, least, most = self.estimate(g, below, above, active)
        if most <= least * (1 + _CLOSE) or not np.isfinite(most):
            return nu, most
        return _chebyshev(g, self.M, self.n_equal, below, above, active, nu, most)


def residual(s: Array, below: Array, above: Array) -> float:
    """Return the largest violation of the conditions on s = g + A'b + G'mu."""
    return float(max(np.max(-s, where=below, initial=0.0), np.max(s, where=above, initial=0.0)))


def _chebyshev(
    g: Array, M: Array, n_equal: int, below: Array, above: Array, active: Array, nu: Array, most: float
) -> tuple[Array, float]:
    """Minimise the residual t over the multipliers, with the rows of the linear program that matter.

    Few of the 2m rows are tight at the optimum. The program over some rows bounds t from below, and the residual of its
    multipliers from above; the rows that violate it most enter, until both agree. In units of the first residual.
    """
    from scipy.optimize import linprog

    used = np.flatnonzero(active)
    N, s = M[used], (g + nu @ M) / most
    norms = np.maximum(np.abs(N).max(axis=1, initial=0.0), 1e-300)
    N = N / norms[:, None]
    k = len(used)
    # x = (the change of the multipliers, t): minimise t subject to sign_i (s_i + x.N_i) <= t.
    columns = np.concatenate([np.flatnonzero(below), np.flatnonzero(above)])
    signs = np.concatenate([-np.ones(int(below.sum())), np.ones(int(above.sum()))])
    floors = [(None if i < n_equal else -nu[i] * scale / most, None) for i, scale in zip(used, norms, strict=True)]
    cost = np.append(np.zeros(k), 1.0)
    taken = np.zeros(len(columns), dtype=bool)
    best, best_nu, now = most, nu, signs * s[columns]
    while True:
        new = np.argsort(np.where(taken, -np.inf, now))[-_ROWS * (k + 1) :]
        taken[new] = True
        rows = np.flatnonzero(taken)
        left = np.column_stack([signs[rows, None] * N[:, columns[rows]].T, -np.ones(len(rows))])
        found = linprog(cost, left, -signs[rows] * s[columns[rows]], bounds=[*floors, (0, None)], method="highs")
        if found.x is None:
            return best_nu, best
        change = np.zeros(len(M))
        change[used] = found.x[:k] * most / norms
        other = nu + change
        other[n_equal:] = np.maximum(other[n_equal:], 0.0)
        reached = residual(g + other @ M, below, above)
        if reached < best:
            best, best_nu = reached, other
        if best <= (found.fun + _CLOSE) * most * (1 + _CLOSE) or taken.all():
            return best_nu, best
        now = signs * (s[columns] + (found.x[:k] @ N)[columns])


def check_feasible(lower: Any, upper: Any, M: Array, r: Array, n_equal: int) -> None:
    """Raise if no point of the box satisfies M lam = r in the first `n_equal` rows and M lam <= r in the others."""
    from scipy.optimize import linprog

    k, m = M.shape
    norms = np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300)
    rows, limits = M / norms[:, None], r / norms
    below = (np.arange(k) >= n_equal) & np.isfinite(r)
    bounds = np.column_stack([np.broadcast_to(lower, m), np.broadcast_to(upper, m)])
    parts = {"A_eq": rows[:n_equal], "b_eq": limits[:n_equal]} if n_equal else {}
    parts |= {"A_ub": rows[below], "b_ub": limits[below]} if below.any() else {}
    if linprog(np.zeros(m), **parts, bounds=bounds, method="highs").status == 2:
        kinds = [f"{n_equal} equalit{'y' if n_equal == 1 else 'ies'}"] * bool(n_equal)
        kinds += [f"{k - n_equal} inequalit{'y' if k - n_equal == 1 else 'ies'}"] * (k > n_equal)
        raise ValueError(
            f"the constraints are infeasible: no point between lower and upper satisfies the {' and the '.join(kinds)}."
        )
