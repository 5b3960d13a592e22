"""The adjoint of a solution: how a loss depends on what the problem is made of, by one symmetric system.

Every problem here is: minimise W(v) subject to lower <= v <= upper, A v = c. At the solution let F be the variables
between their bounds, B the others, H the Hessian of W, and b the multipliers: g + A'b = 0 on F, g = dW/dv. While F does
not change, the derivatives of (v_F, b) follow from those equations. For a loss with the gradients gv and gb by v and
b::

    [H_FF  A_F'] [u]   [gv_F]
    [A_F   0   ] [w] = [gb  ],    u = 0 on B

    d loss = -d_theta [u.g(v, theta) + b.A u + w.(A v - c)] + sum over B of (gv - H u - A'w)_i d(bound_i)

d_theta is the derivative by everything that g, A and c depend on, at fixed v, u, b and w. Where no variable of an
equality is free, b is the midpoint of an interval, and its gradient goes in halves to the two variables at its ends.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.blas import SingleThreadedBlas
from symsvm.implicit.symmetric_system import solve_symmetric
from symsvm.objectives.separable_program import SeparableProgram

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.solvers.decomposition.kernel_problem import KernelProblem

__all__ = ["Adjoint", "GradientWarning", "solve_adjoint"]

# A multiplier, relative to the gradient, or a distance from a bound, relative to the variables, that may be rounding.
_UNDECIDED = 1e-12
# A part of a gradient that counts.
_COUNTS = 1e-6
# Variables within this many roundings of a bound are at the bound: they were divided by f and multiplied again.
_ROUNDINGS = 8


class GradientWarning(UserWarning):
    """A derivative of a solution does not exist, or is not determined by the problem."""


@dataclass(frozen=True)
class Adjoint:
    """The adjoint of a solution, and what the gradient rests on.

    Parameters
    ----------
    u : array of shape (n,)
        The adjoint of the variables; 0 for variables at their bounds.
    w : array of shape (G,)
        The adjoint of the equalities.
    multipliers : array of shape (n,)
        For each variable the number b with g_i + a_i b = 0, where u_i is not 0.
    lower, upper : arrays of shape (n,)
        The gradients by the bounds; 0 where they were not asked for.
    n_free : int
        The number of free variables.
    margin : float
        The least distance of a free variable from its bounds, relative to the largest variable.
    complementarity : float
        The least |g_i + a_i b| of a variable at a bound. At 0 it is about to become free.
    has_kink : bool
        Whether the loss depends on a variable that is at a bound with a multiplier of 0.
    condition : float
        An estimate of the condition of H_FF; infinite where it is singular to rounding.
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
    has_kink: bool
    condition: float
    is_determined: bool


def solve_adjoint(
    problem: KernelProblem,
    v: Array,
    gv: Array,
    gb: Array,
    *,
    F: Array | None = None,
    tol: float = 1e-6,
    bounds: tuple[bool, bool] = (True, True),
) -> Adjoint:
    """Solve the adjoint system of a solved problem.

    Parameters
    ----------
    problem : KernelProblem
        The problem, such as `DualProgram.problem` returns it.
    v : array of shape (n,)
        Its solution.
    gv, gb : array of shape (n,), array of shape (G,)
        The gradients of a loss by v and by the multipliers b of the equalities.
    F : array, optional
        The gradient of W by the variables of the program, `Solution.gradient`; computed where it is not given.
    tol : float
        The largest KKT violation of a solution.
    bounds : tuple of bool
        Whether the gradients by the lower and by the upper bounds are asked for.

    Returns
    -------
    Adjoint
        The adjoint variables.

    Raises
    ------
    ValueError
        If v is no solution to `tol`.
    """
    with SingleThreadedBlas():
        return _Adjoint(problem, v, F).solve(gv, gb, tol, bounds)


class _Adjoint:
    """The adjoint system of one solution, in the variables z = f v of its program."""

    def __init__(self, problem: KernelProblem, v: Array, F: Array | None):
        self.problem, self.program, self.change = problem, problem.program, problem.change
        smooth, program = problem.smooth, problem.program
        self.whole: Any = program if smooth is None else SeparableProgram(program, smooth)
        self.z = z = _at_bounds(self.change.to_program(np.asarray(v, dtype="float64")), program.lower, program.upper)
        self.F = self.whole.gradient(self.product(program.weights(z), None), z) if F is None else F
        self.bs, self.violation = self.whole.multipliers(self.F, z)
        self.free = (z > program.lower) & (z < program.upper)

    def product(self, beta: Array, points: Array | None) -> Array:
        """K beta at some points, or at all, in float64; 0 at the others."""
        program, support = self.program, np.flatnonzero(beta)
        out = np.zeros(program.m)
        if not len(support) or (points is not None and not len(points)):
            return out
        found = out if points is None else np.zeros(len(points))
        self.problem.matrix.product(beta[support], points, support, found, exact=True)
        if points is not None:
            out[points] = found
        return out

    def solve(self, gv: Array, gb: Array, tol: float, bounds: tuple[bool, bool]) -> Adjoint:
        """Solve the system for one loss, back in the units of v."""
        program, change, free, z, bs = self.program, self.change, self.free, self.z, self.bs
        if not change.violation * self.violation <= tol:
            raise ValueError(
                "the gradient of a solution needs a solution: the KKT violation is "
                f"{change.violation * self.violation:.2g}, above tol={tol:g}. Raise max_iter or time_limit, or scale "
                "the features."
            )
        # From v to z = f v: entry k of z belongs to entry e(k) of v.
        n = len(gv)
        entry = np.arange(n) if change.order is None else np.asarray(change.order)
        entry = np.tile(entry, 2) if change.is_split else entry
        f = np.broadcast_to(np.asarray(change.factor, dtype="float64"), n)
        unit = np.broadcast_to(np.asarray(change.multiplier, dtype="float64"), bs.shape)
        gz = gv[entry] / f[entry]
        u, w, condition, is_determined = self._system(gz, unit * gb)
        b_of, w_of = (x[program.group] if len(x) else np.zeros(program.n) for x in (bs, w))
        slope = self.F + b_of
        at_upper = ~free & (z == program.upper) & ((z > program.lower) | (slope < 0))
        at_lower = ~free & ~at_upper
        if change.is_split:  # a part at 0 is at no bound of v
            at_upper, at_lower = at_upper & (z > 0), at_lower & (z < 0)
        turned = f[entry] < 0
        ends = at_lower & ~turned | at_upper & turned, at_upper & ~turned | at_lower & turned
        ends = [end & wanted for end, wanted in zip(ends, bounds, strict=True)]
        idle = ~free & (program.upper > program.lower)
        if change.is_split:  # one part of a point outside the tube is free or at its bound, the other one at 0
            idle &= np.tile(~(free | (z != 0)).reshape(2, -1).any(axis=0), 2) | (z != 0)
        undecided = idle & (np.abs(slope) <= _UNDECIDED * (np.abs(self.F).max(initial=0.0) + np.abs(program.p).max()))
        Ku = self.product(program.weights(u), np.unique(program.point[ends[0] | ends[1] | undecided]))
        released = gz - Ku[program.point] - w_of  # how the loss depends on a variable that is let go
        by_bound = f[entry] * released
        size = float(np.abs(z).max(initial=0.0)) or 1.0
        distance = np.minimum(z[free] - program.lower[free], program.upper[free] - z[free])
        has_kink = _is_any(released[undecided], np.abs(gz).max(initial=0.0))
        has_kink |= _is_any(u[free][distance <= _UNDECIDED * size], np.abs(u).max(initial=0.0))
        return Adjoint(
            u=np.bincount(entry, u, n) / f,
            w=unit * w,
            multipliers=_spread(entry, np.where(free, b_of, -self.F), u, n, unit, program.group),
            lower=np.bincount(entry, np.where(ends[0], by_bound, 0.0), n),
            upper=np.bincount(entry, np.where(ends[1], by_bound, 0.0), n),
            n_free=int(free.sum()),
            margin=float(distance.min(initial=np.inf)) / size,
            complementarity=float(change.violation * np.abs(slope[idle]).min(initial=np.inf)),
            has_kink=has_kink,
            condition=condition,
            is_determined=is_determined,
        )

    def _system(self, gz: Array, gb: Array) -> tuple[Array, Array, float, bool]:
        """u and w in the units of z, the condition of the matrix, and whether they are determined."""
        program, free, smooth = self.program, self.free, self.problem.smooth
        u, w = np.zeros(program.n), np.zeros(len(gb))
        has_free = np.array([(program.group[free] == g).any() for g in range(len(gb))], dtype=bool)
        for g in np.flatnonzero(~has_free):
            ends = _ends(self.F, self.z, program, int(g))
            u[ends] = gb[g] / max(1, len(ends))
        if not free.any():
            return u, w, 1.0, True
        here = np.flatnonzero(free)
        points, r = program.point[here], gz[here].copy()
        if u.any():
            r -= self.product(program.weights(u), np.unique(points))[points]
        D = program.diagonal if smooth is None else program.diagonal + smooth.curvature(self.z)
        A = np.empty((len(here), len(here)))
        self.problem.matrix.block(points, points, A)
        A[np.diag_indices(len(here))] += D[here]
        E = (program.group[here][:, None] == np.flatnonzero(has_free)).astype("float64")
        u[here], w[has_free], condition, is_determined = solve_symmetric(A, E, r, gb[has_free])
        return u, w, condition, is_determined


def _is_any(values: Array, size: float) -> bool:
    return bool((np.abs(values) > _COUNTS * size).any())


def warn_if_doubtful(adjoint: Adjoint) -> None:
    """Warn where the derivative is not determined, or where it does not exist."""
    if not adjoint.is_determined:
        warnings.warn(
            f"the problem does not determine the derivative of its {adjoint.n_free} free variables: other values of "
            "them have the same decision function. The gradient is that of the smallest change. Differentiate the "
            "decision function instead, or add a diagonal to W.",
            GradientWarning,
            stacklevel=3,
        )
    elif adjoint.has_kink:
        warnings.warn(
            "the solution has no derivative here: a variable is at its bound and its multiplier is 0. The gradient is "
            "that of one side.",
            GradientWarning,
            stacklevel=3,
        )


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
