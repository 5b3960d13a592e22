"""The last polish: the free variables exactly, where they are few.

Once the violation is within tol, which variables are free is known as a rule, and what they are is the solution of a
linear system. Everything is float64 here, from the data. In a small problem this goes on: variables at a bound that
would leave it join the free ones, until the violation is what rounding leaves. The result then does not depend on the
way to it, and a weight of 2 means a point twice.
"""

import numpy as np

from symsvm.solvers.decomposition.newton import newton

__all__ = ["polish"]

# Multiplications that it may cost; rounds, of which there is more than one only where all are within that.
_COST, _ROUNDS = 2**26, 16
# Newton's steps of a round, at most: each takes back what the ridge of the factor kept from the one before.
_REFINE = 6
# The violation that is rounding, as a part of the size of what cancels in the gradient.
_ROUNDING = 1e-13


def polish(state, tol):
    """Solve for the free variables of a `State`, and in a small problem for those that should be free.

    A point at which the violation is larger is not taken, unless it is within tol and the objective is lower.
    """
    state.is_polished = True
    qp = state.qp
    free = np.flatnonzero((state.z > qp.lower) & (state.z < qp.upper))
    if len(free) and _cost(state, free, len(free)) <= _COST:
        _solve(state, free, tol)
    for _ in range(_ROUNDS - 1):
        if not _is_small(state, free):
            return
        state.confirm()
        if state.violation() <= _ROUNDING * float(np.abs(state.Kz).max() + np.abs(qp.p).max()):
            return
        free = _movable(state)
        if not _solve(state, free, tol):
            return


def _is_small(state, free):
    """Whether all rounds are cheap."""
    return _ROUNDS * _cost(state, free, state.qp.m) <= _COST


def _cost(state, free, rows):
    """The multiplications of a factor and of products for so many rows; an entry is dearer than its products."""
    support = np.count_nonzero(state.z)
    return len(free) ** 3 / 3 + 4 * rows * (len(free) + support) * (state.gram.width + 10)


def _movable(state):
    """The free variables, and those at a bound whose gradient would have them leave it."""
    from symsvm.solvers.decomposition.loops import violators  # Numba is loaded when it is first needed

    qp = state.qp
    ends = state.least, state.most, 1e-3 * state.worst
    free, rising, _, falling, _ = violators(state.F, state.z, qp.lower, qp.upper, qp.group, state.play, *ends)
    return np.sort(np.concatenate([free, rising, falling]))


def _solve(state, free, tol):
    """Newton's steps on some of the variables; return whether the point is better for them."""
    qp, before = state.qp, (state.z.copy(), state.Kz.copy(), state.W, state.worst)
    points, support = qp.point[free], np.flatnonzero(state.z)
    A = np.empty((len(free), len(free)))
    state.gram.block(points, points, A)
    A[np.arange(len(free)), np.arange(len(free))] += qp.diagonal[free]
    beta, columns = state.by_point(support, state.z[support])
    Kz = np.zeros(len(free))
    state.gram.product(beta, points, columns, Kz, exact=True)
    F = Kz + qp.diagonal[free] * state.z[free] + qp.p[free]
    start, bounds, groups = state.z[free], (qp.lower[free], qp.upper[free]), (qp.group[free], len(qp.total))
    z, change = start, np.zeros(len(free))  # change = A (z - start)
    level = _ROUNDING * float(np.abs(F).max()) if _is_small(state, free) else 1e-6 * tol
    for _ in range(_REFINE):
        last, z = z, newton(A.copy(), F + change, z, *bounds, *groups)
        change = A @ (z - start)
        if np.abs(z - last).max() <= 1e-10 * np.abs(z).max() or _is_level(F + change, level, z, *bounds, *groups):
            break
    d = z - start
    state.z[free] = z
    state.product(free, d, exact=state.accurate)
    state.Kz[points] = Kz + change - qp.diagonal[free] * d
    state.W = qp.value(state.Kz, state.z)
    violation = state.violation()
    is_better = violation <= before[3] or (violation <= tol and state.W < before[2])
    if is_better and qp.infeasibility(state.z) <= qp.rounding(state.z):
        return True
    state.z, state.Kz, state.W, _ = before
    state.violation()
    return False


def _is_level(F, level, z, lower, upper, group, groups):
    """Whether the gradient of all variables of a group is the same but for `level`, with none of them at a bound."""
    if not ((z > lower) & (z < upper)).all():
        return False
    parts = [F[group == g] for g in range(groups)] or [np.append(F, 0.0)]
    return all(np.ptp(part) <= level for part in parts if len(part))
