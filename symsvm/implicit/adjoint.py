"""The adjoint of a solution: how a loss depends on what the problem is made of, by one symmetric system.

Every problem here is: minimise W(v) subject to lower <= v <= upper, A v = c. At the solution let F be the variables
between their bounds, B the others, H the Hessian of W, and b the multipliers: g + A'b = 0 on F, g = dW/dv. While F does not
change, the derivatives of (v_F, b) follow from those equations. For a loss with the gradients gv and gb by v and b::

    [H_FF  A_F'] [u]   [gv_F]
    [A_F   0   ] [w] = [gb  ],    u = 0 on B

    d loss = -d_theta [u.g(v, theta) + b.A u + w.(A v - c)] + sum over B of (gv - H u - A'w)_i d(bound_i)

d_theta is the derivative by everything that g, A and c depend on, at fixed v, u, b and w. Where no variable of an equality
is free, b is the midpoint of an interval, and its gradient goes in halves to the two variables at its ends.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, eigh, solve

from symsvm.objectives.separable_program import SeparableProgram

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.solvers.decomposition.kernel_problem import KernelProblem

__all__ = ["Adjoint", "GradientWarning", "solve_adjoint"]

# A solution of the system that is larger than the right-hand side by this factor, relative to the matrix, is not
# determined: rounding of K changes it in the first digits.
_DETERMINED = 1e11
# The residual, relative to the right-hand side, above which the system has no solution.
_CONSISTENT = 1e-6
# Variables within this many roundings of a bound are at the bound: they were divided by f and multiplied again.
_ROUNDINGS = 8


class GradientWarning(UserWarning):
    """A derivative of a solution does not exist, or is not determined by the problem."""


@dataclass(frozen=True)
class Adjoint:
    """The adjoint of a solution, and what the gradient rests on.

    Attributes
    ----------
    u : array of shape (n,)
        The adjoint of the variables; 0 for variables at their bounds.
    w : array of shape (G,)
        The adjoint of the equalities.
    multipliers : array of shape (n,)
        For each variable the number b with g_i + a_i b = 0, where u_i is not 0.
    lower, upper : arrays of shape (n,)
        The gradients by the bounds.
    n_free : int
        The number of free variables.
    margin : float
        The least distance of a free variable from its bounds, relative to the largest variable.
    complementarity : float
        The least |g_i + a_i b| of a variable at a bound. At 0 it is about to become free.
    is_determined : bool
        Whether the system determines the adjoint.
    """

    u: Array
    w: Array
    multipliers: Array
    lower: Array
    upper: Array
    n_free: int
    margin: float
    complementarity: float
    is_determined: bool


def solve_adjoint(problem: KernelProblem, v: Array, gv: Array, gb: Array, *, tol: float = 1e-6) -> Adjoint:
    """Solve the adjoint system of a solved problem.

    Parameters
    ----------
    problem : KernelProblem
        The problem, such as `DualProgram.problem` returns it.
    v : array of shape (n,)
        Its solution.
    gv, gb : array of shape (n,), array of shape (G,)
        The gradients of a loss by v and by the multipliers b of the equalities.
    tol : float
        The largest KKT violation of a solution.

    Returns
    -------
    Adjoint
        The adjoint variables.

    Raises
    ------
    ValueError
        If v is no solution to `tol`.
    """
    program, change = problem.program, problem.change
    whole: Any = program if problem.smooth is None else SeparableProgram(program, problem.smooth)
    z = _at_bounds(change.to_program(np.asarray(v, dtype="float64")), program.lower, program.upper)
    Kz = _product(problem, program.weights(z))
    F = whole.gradient(Kz, z)
    bs, violation = whole.multipliers(F, z)
    if not change.violation * violation <= tol:
        raise ValueError(
            f"the gradient of a solution needs a solution: the KKT violation is {change.violation * violation:.2g}, above "
            f"tol={tol:g}. Raise max_iter or time_limit, or scale the features."
        )
    free = (z > program.lower) & (z < program.upper)
    # From v to z = f v: entry k of z belongs to entry e(k) of v.
    n = len(v)
    entry = np.arange(n) if change.order is None else np.asarray(change.order)
    entry = np.tile(entry, 2) if change.is_split else entry
    f = np.broadcast_to(np.asarray(change.factor, dtype="float64"), n)
    unit = np.broadcast_to(np.asarray(change.multiplier, dtype="float64"), bs.shape)
    gz, gb_z = gv[entry] / f[entry], unit * gb
    D = program.diagonal if problem.smooth is None else program.diagonal + problem.smooth.curvature(z)

    u = np.zeros(program.n)
    has_free = np.array([(program.group[free] == g).any() for g in range(len(bs))], dtype=bool)
    for g in np.flatnonzero(~has_free):
        ends = _ends(F, z, program, g)
        u[ends] = gb_z[g] / max(1, len(ends))
    w = np.zeros(len(bs))
    is_determined = True
    if free.any():
        r, here = gz[free].copy(), np.flatnonzero(free)
        if u.any():
            r -= _product(problem, program.weights(u))[program.point[here]]
        A = np.empty((len(here), len(here)))
        problem.matrix.block(program.point[here], program.point[here], A)
        A[np.diag_indices(len(here))] += D[here]
        E = (program.group[here][:, None] == np.flatnonzero(has_free)).astype("float64")
        u[here], w[has_free], is_determined = _solve(A, E, r, gb_z[has_free])
    Ku = _product(problem, program.weights(u))[program.point]
    b_of = bs[program.group] if len(bs) else np.zeros(program.n)
    w_of = w[program.group] if len(bs) else np.zeros(program.n)
    slope = F + b_of
    by_bound = np.where(free, 0.0, gz - Ku - w_of)
    at_upper = ~free & (z == program.upper) & ((z > program.lower) | (slope < 0))
    at_lower = ~free & ~at_upper
    if change.is_split:  # a part at 0 is at no bound of v
        at_upper, at_lower = at_upper & (z > 0), at_lower & (z < 0)
    turned = f[entry] < 0
    bound = f[entry] * by_bound
    size = float(np.abs(z).max(initial=0.0)) or 1.0
    distance = np.minimum(z[free] - program.lower[free], program.upper[free] - z[free])
    idle = ~free & (program.upper > program.lower)
    if change.is_split:  # one part of a point outside the tube is free or at its bound, the other one at 0
        idle &= np.tile(~(free | (z != 0)).reshape(2, -1).any(axis=0), 2) | (z != 0)
    return Adjoint(
        u=np.bincount(entry, u, n) / f,
        w=unit * w,
        multipliers=_spread(entry, np.where(free, b_of, -F), u, n, unit, program.group),
        lower=np.bincount(entry, np.where(at_lower & ~turned | at_upper & turned, bound, 0.0), n),
        upper=np.bincount(entry, np.where(at_upper & ~turned | at_lower & turned, bound, 0.0), n),
        n_free=int(free.sum()),
        margin=float(distance.min(initial=np.inf)) / size,
        complementarity=float(change.violation * np.abs(slope[idle]).min(initial=np.inf)),
        is_determined=is_determined,
    )


def warn_if_doubtful(adjoint: Adjoint) -> None:
    """Warn where the derivative is not determined, or where it does not exist."""
    if not adjoint.is_determined:
        warnings.warn(
            f"the problem does not determine the derivative of its {adjoint.n_free} free variables: other values of them "
            "have the same decision function. The gradient is that of the smallest change. Differentiate the decision "
            "function instead, or add a diagonal to W.",
            GradientWarning,
            stacklevel=3,
        )
    elif adjoint.complementarity == 0 or adjoint.margin < 1e-13:
        warnings.warn(
            "the solution has no derivative here: a variable is at its bound and its multiplier is 0. The gradient is that "
            "of one side.",
            GradientWarning,
            stacklevel=3,
        )


def _product(problem: KernelProblem, beta: Array) -> Array:
    """K beta at all points, in float64."""
    support, out = np.flatnonzero(beta), np.zeros(problem.program.m)
    if len(support):
        problem.matrix.product(beta[support], None, support, out, exact=True)
    return out


def _at_bounds(z: Array, lower: Array, upper: Array) -> Array:
    for bound in (lower, upper):
        near = np.isfinite(bound) & (np.abs(z - bound) <= _ROUNDINGS * np.finfo("float64").eps * np.abs(bound))
        z = np.where(near, bound, z)
    return np.clip(z, lower, upper)


def _ends(F: Array, z: Array, program: Any, g: int) -> Array:
    """The variables at the ends of the interval of b: the least F that may rise, the greatest that may fall."""
    members = program.group == g
    rising, falling = members & (z < program.upper), members & (z > program.lower)
    ends = []
    if rising.any():
        ends.append(np.flatnonzero(rising)[np.argmin(F[rising])])
    if falling.any():
        ends.append(np.flatnonzero(falling)[np.argmax(F[falling])])
    return np.array(ends, dtype="int64")


def _spread(entry: Array, b: Array, u: Array, n: int, unit: Array, group: Array) -> Array:
    """The multiplier of each entry of v, in its units: that of the part whose u is not 0."""
    if not len(unit):
        return np.zeros(n)
    out, used = np.zeros(n), u != 0
    out[entry[used]] = (unit[group] * b)[used]
    return out


def _solve(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array, bool]:
    """Solve [A E; E' 0] [u; w] = [r; s]; also whether the solution is determined.

    A is positive semi-definite: Cholesky's factor serves where it is definite; else a symmetric factor, and where that
    is singular, eigenvalues for the smallest solution.
    """
    size, right = float(np.abs(A).max(initial=0.0)), float(max(np.abs(r).max(initial=0.0), np.abs(s).max(initial=0.0)))
    if right == 0:
        return np.zeros(len(r)), np.zeros(len(s)), True
    for method in (_by_cholesky, _by_symmetric_factor):
        found = method(A, E, r, s)
        if found is not None:
            u, w = found
            with np.errstate(over="ignore", invalid="ignore"):
                off = _residual(A, E, r, s, u, w) / right
                if off <= _CONSISTENT and size * np.abs(u).max() <= _DETERMINED * right:
                    return u, w, True
    M = np.block([[A, E], [E.T, np.zeros((len(s), len(s)))]])
    values, vectors = eigh(M)
    kept = np.abs(values) > len(M) * np.finfo("float64").eps * np.abs(values).max() * 16
    x = vectors[:, kept] @ ((vectors[:, kept].T @ np.concatenate([r, s])) / values[kept])
    u, w = x[: len(r)], x[len(r) :]
    return u, w, bool(_residual(A, E, r, s, u, w) <= _CONSISTENT * right)


def _residual(A: Array, E: Array, r: Array, s: Array, u: Array, w: Array) -> float:
    one, two = A @ u + E @ w - r, E.T @ u - s
    return float(max(np.abs(one).max(initial=0.0), np.abs(two).max(initial=0.0)))


def _by_cholesky(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array] | None:
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
    except LinAlgError:
        return None
    if not len(s):
        u = cho_solve(factor, r, check_finite=False)
        return u + cho_solve(factor, r - A @ u, check_finite=False), s
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
    return u, w


def _by_symmetric_factor(A: Array, E: Array, r: Array, s: Array) -> tuple[Array, Array] | None:
    M = np.block([[A, E], [E.T, np.zeros((len(s), len(s)))]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # the caller looks at the residual
        try:
            x = solve(M, np.concatenate([r, s]), assume_a="sym", check_finite=False)
        except LinAlgError:
            return None
    return x[: len(r)], x[len(r) :]
