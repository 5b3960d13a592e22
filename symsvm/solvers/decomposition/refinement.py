"""Refinement: the free variables exactly, where they are few.

Once the violation is within tol, the free variables are usually known, and their values solve a linear system. All is
float64, from the data. In a small problem further rounds follow: variables at a bound whose gradient has the wrong
sign join the free ones, until the violation is at the level of rounding. The result then does not depend on the way to
it, and a weight of 2 equals a point twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm.solvers.decomposition.newton import newton

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.solvers.decomposition.state import State

__all__ = ["refine"]


def refine(state: State, tol: float) -> None:
    """Solve for the free variables, and in a small problem for those that should be free.

    A point with a larger violation is rejected, unless it is within tol and the objective is lower.
    """
    state.is_refined = True
    qp, p = state.qp, state.parameters
    free = np.flatnonzero((state.z > qp.lower) & (state.z < qp.upper))
    if len(free) and _cost(state, free, len(free)) <= p.refine_cost:
        _solve(state, free, tol)
    for _ in range(p.refine_rounds - 1):
        if not _is_small(state, free):
            return
        state.recompute_gradient()
        state.measure()
        if state.violation <= p.rounding * (state.vectors.largest_product() + float(np.abs(qp.p).max())):
            return
        free = _movable(state)
        if not _solve(state, free, tol):
            return


def _is_small(state: State, free: Array) -> bool:
    """Whether all rounds are cheap."""
    return state.parameters.refine_rounds * _cost(state, free, state.qp.m) <= state.parameters.refine_cost


def _cost(state: State, free: Array, rows: int) -> float:
    """The multiplications of a factor and of products for so many rows; a kernel value costs some ten more."""
    support = np.count_nonzero(state.z)
    return len(free) ** 3 / 3 + 4 * rows * (len(free) + support) * (state.matrix.width + 10)


def _movable(state: State) -> Array:
    """The free variables, and those at a bound whose gradient has the wrong sign."""
    ends = state.least, state.most, 1e-3 * state.violation
    free, rising, _, falling, _ = state.vectors.violators(*ends)
    return np.sort(np.concatenate([free, rising, falling]))


def _solve(state: State, free: Array, tol: float) -> bool:
    """Take Newton's steps on some of the variables; return whether the point is better for them."""
    qp, p = state.qp, state.parameters
    before, W, violation = state.vectors.save(), state.W, state.violation
    points, support = qp.point[free], np.flatnonzero(state.z)
    A = np.empty((len(free), len(free)))
    state.matrix.block(points, points, A)
    A[np.arange(len(free)), np.arange(len(free))] += qp.diagonal[free]
    beta, columns = state.by_point(support, state.z[support])
    Kz = np.zeros(len(free))
    state.matrix.product(beta, points, columns, Kz, exact=True)
    F = Kz + qp.diagonal[free] * state.z[free] + qp.p[free]
    start, bounds, groups = state.z[free], (qp.lower[free], qp.upper[free]), (qp.group[free], len(qp.total))
    z, change = start, np.zeros(len(free))  # change = A (z - start)
    level = p.rounding * float(np.abs(F).max()) if _is_small(state, free) else 1e-6 * tol
    for _ in range(p.refine_steps):  # each step takes back what the ridge of the factor kept from the one before
        last, z = z, newton(A.copy(), F + change, z, *bounds, *groups)
        change = A @ (z - start)
        if np.abs(z - last).max() <= 1e-10 * np.abs(z).max() or _is_level(F + change, level, z, *bounds, *groups):
            break
    d = z - start
    state.vectors.move(free, z)
    state.add_product(free, d, exact=state.has_exact_products)
    state.vectors.write_products(points, Kz + change - qp.diagonal[free] * d)
    state.W = state.vectors.value()
    state.measure()
    is_better = state.violation <= violation or (state.violation <= tol and state.W < W)
    is_better = is_better and qp.infeasibility(state.z) <= qp.rounding_error(state.z)
    if not is_better:
        state.vectors.restore(before)
        state.W = W
        state.measure()
    state.vectors.forget(before)
    return is_better


def _is_level(F: Array, level: float, z: Array, lower: Array, upper: Array, group: Array, groups: int) -> bool:
    """Whether the gradient is the same for all variables of a group, up to `level`, with none of them at a bound."""
    if not ((z > lower) & (z < upper)).all():
        return False
    parts = [F[group == g] for g in range(groups)] or [np.append(F, 0.0)]
    return all(np.ptp(part) <= level for part in parts if len(part))
