"""How far a linear model is from the optimum: P, D, their gap, the violations; from sums over points and features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP
from symsvm.objectives.certificate import Certificate, rounding_error

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["Assessment", "Measure", "balance_rule", "measure_l2", "regularisers"]


def balance_rule(
    excess: float, sides: tuple[float, float, float, float], n: int, *, squared: bool
) -> tuple[str, float] | None:
    """Return how z gets the sum 0, from its sum and `LinearProblem.sides`; None if it is worth nothing.

    ("move", a) moves each variable by a times its room, ("scale", a) multiplies those with the sign of the excess.
    """
    room, size, more, less = sides
    if not squared:
        if room > 2 * abs(excess):
            return "move", excess / room
        if abs(excess) <= rounding_error(size, n, "float64"):
            return None
    # Not more - excess: where nearly all variables have one sign, that difference is nothing but rounding.
    return "scale", -less / more


@njit(**LOOP)
def regularisers(reg, u, v):
    """Return sum reg u^2, sum reg v^2, sum reg (u - v)^2, and whether u = v where reg is not 0."""
    a = b = c = 0.0
    same = True
    for j in range(len(u)):
        if reg[j] != 0:
            a += reg[j] * u[j] * u[j]
            b += reg[j] * v[j] * v[j]
            c += reg[j] * (u[j] - v[j]) * (u[j] - v[j])
            same = same and u[j] == v[j]
    return a, b, c, same


@dataclass(frozen=True)
class Measure:
    """P, D, their gap, the largest violation of optimality (in the problem's unit) and of feasibility.

    `slack` is the infeasibility that rounding explains.
    """

    primal: float
    dual: float
    gap: float
    violation: float
    infeasibility: float
    slack: float = 0.0
    rounding: float = 0.0  # a P of this size is 0 but for the rounding of residuals

    def reaches(self, tol: float) -> bool:
        """Whether the violation and the gap, relative to P, are at most tol; P = 0 has no relative gap and is least."""
        return self.violation <= tol and (self.gap <= tol * self.primal or self.primal <= self.rounding)

    def status(self, tol: float) -> str:
        """Return the status of a `Certificate`. A run has reached tol where it is "optimal", and nowhere else."""
        if not np.isfinite([self.primal, self.dual, self.gap, self.violation, self.infeasibility]).all():
            return "diverged"
        if self.infeasibility > self.slack:
            return "infeasible"
        return "optimal" if self.reaches(tol) else "feasible"

    def certificate(self, tol: float, b: Any) -> Certificate:
        """Return the `Certificate` that says this, with W = -D and the intercept b."""
        status = self.status(tol)
        gap = self.primal, self.dual, self.gap
        if status in ("diverged", "infeasible"):
            gap = None, None, None
        return Certificate(-self.dual, self.infeasibility, self.violation, b, *gap, status, tol)


class Assessment(NamedTuple):
    """What a measure asks of the points.

    Attributes
    ----------
    loss, dual, excess : float
        sum L, sum h and sum (L - h).
    worst : float
        The largest violation, before it is divided by the unit.
    outside : float
        How far z is out of its bounds.
    total : float
        sum z.
    """

    loss: float
    dual: float
    excess: float
    worst: float
    outside: float
    total: float


def measure_l2(
    reg: Array, u: Array, v: Array, sums: Assessment, unit: float, slack: float, rounding: float, *, free: bool
) -> Measure:
    """Return the `Measure` of a pair (u, z) with the l2 penalty, from v = (X'z, s sum z) and an `Assessment`."""
    of_u, of_v, apart, _ = regularisers(reg, u, v)
    outside = max(sums.outside, abs(sums.total)) if free else sums.outside
    primal, dual, gap = 0.5 * of_u + sums.loss, sums.dual - 0.5 * of_v, 0.5 * apart + sums.excess
    return Measure(primal, dual, gap, float(sums.worst / unit), outside, slack, rounding)
