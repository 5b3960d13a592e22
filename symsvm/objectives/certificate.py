"""Certificates: feasibility, optimality and duality gap of a point, in float64, from its value and gradient.

For   minimise W(lam)   subject to   lower <= lam <= upper,   a.lam = c   a feasible lam is stationary if some b gives

    g_i + b a_i >= 0 where lam_i = lower_i,   <= 0 where lam_i = upper_i,   = 0 in between        (g = grad W).

Each coordinate with a_i != 0 bounds b from one side or from both. So b exists if the greatest lower bound does not
exceed the least upper bound; the excess is the violation that LIBSVM compares with `tol`. In the dual of the support
vector machine, a = y, and b is the intercept.

Where equalities share variables, or inequalities G lam <= h are active, the multipliers are not found one by one, and
the violation is the smallest KKT residual in the maximum norm; see `symsvm.objectives.multipliers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.objectives.multipliers import Multipliers, check_feasible
from symsvm.objectives.polytope import rows_overlap

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = [
    "Certificate",
    "PolytopeCertificate",
    "PolytopeCertifier",
    "certify",
    "certify_svc",
    "find_status",
    "infeasibility",
    "level",
    "multiplier",
    "rounding_error",
]

# A total of m terms is feasible if it is off by at most _ROUNDING eps sqrt(m) times the sum of absolute values.
_ROUNDING = 8


@dataclass(frozen=True)
class Certificate:
    """What is known about a point, in float64 from the value and the gradient there.

    Parameters
    ----------
    W : float
        The objective (minimised) at the point.
    infeasibility : float
        The largest violation of a bound, of a.lam = c (Eq. 9, 11) or of an inequality.
    violation : float
        The largest violation of the KKT conditions (Eq. 10, 19; Eq. 003:18); LIBSVM compares it with tol.
    b : float, ndarray or None
        The multiplier of the equality, which is the intercept; None without one, an array for several.
    primal, dual, gap : float or None
        P, D = -W and P - D >= 0, for a problem whose primal is known and a feasible point; else None.
    status : str
        `optimal` (feasible, convex, violation at most tol), `stationary` (the same, but the problem is not known to be
        convex), `feasible` (the violation exceeds tol), `infeasible`, or `diverged` (a value is not finite).
    tol : float
        The tolerance that `status` refers to.
    """

    W: float
    infeasibility: float
    violation: float
    b: float | np.ndarray | None
    primal: float | None
    dual: float | None
    gap: float | None
    status: str
    tol: float

    @property
    def relative_gap(self) -> float | None:
        """The gap (P - D) divided by the largest of abs(P), abs(D) and 1; None without a gap."""
        if self.gap is None or np.isinf(self.gap):
            return self.gap
        assert self.primal is not None
        assert self.dual is not None
        return self.gap / max(abs(self.primal), abs(self.dual), 1.0)

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", gap {self.gap:.3g} ({self.relative_gap:.1e} relative)"
        return (
            f"{self.status}: W = {self.W:.10g}{gap}, violation {self.violation:.2e} (tol {self.tol:g}), "
            f"infeasibility {self.infeasibility:.2e}"
        )


@dataclass(frozen=True)
class PolytopeCertificate(Certificate):
    """A `Certificate` under equalities that share variables and inequalities.

    Attributes
    ----------
    violation : float
        The smallest KKT residual in the maximum norm over all multipliers; as for a `Certificate` where no inequality
        is active and no two equalities share a variable.
    mu : ndarray or None
        The multipliers of the inequalities, 0 where one is not active; None without inequalities.
    """

    mu: np.ndarray | None = None


def infeasibility(
    lam: Array,
    lower: Any,
    upper: Any,
    equality: tuple[Any, ...] | None = None,
    inequality: tuple[Any, ...] | None = None,
) -> float:
    """Return the largest violation of a constraint, zero for a feasible point (Eq. 9, 11, 21).

    ::

        max(|a.lam - c|, max(G lam - h), max(lower - lam), max(lam - upper), 0)

    These are the constraints of Eq. 003:17 and Eq. 002:1.13.

    >>> infeasibility(np.array([1.0, 3.0]), 0.0, 2.0, (np.array([1.0, -1.0]), 0.0))
    2.0
    """
    violations = [0.0, np.max(lower - lam), np.max(lam - upper)]
    if equality is not None:
        a, c = equality
        violations.append(np.max(np.abs(a @ lam - c)))
    if inequality is not None:
        G, h = inequality
        violations.append(np.max(G @ lam - h))
    return float(np.max(violations))  # NaN if any of them is


def multiplier(lam: Array, g: Array, lower: Any, upper: Any, a: Any = None) -> tuple[float | Array | None, float]:
    """Return (b, violation): the multiplier of a.lam = c and the largest violation of the KKT conditions.

    b is that of `level` for -g / a (Eq. 29). The violation is max_up(-g/a) - min_low(-g/a) in LIBSVM's notation, where
    `up` are the coordinates that may increase a.lam and `low` those that may decrease it. Coordinates with a_i = 0 (all
    of them without an equality) must have g_i = 0 or be at a bound with -g_i pointing out of the box. With a matrix a,
    of which no two rows share a variable, b has one entry per row.
    """
    g = np.asarray(g, dtype="float64")
    below, above = lam < upper, lam > lower  # may increase, may decrease
    a = np.zeros((0, len(g))) if a is None else np.asarray(a, dtype="float64")
    rows = np.atleast_2d(a)
    unconstrained = (rows == 0).all(axis=0)
    violations = [
        np.max(-g, where=unconstrained & below, initial=0.0),
        np.max(g, where=unconstrained & above, initial=0.0),
    ]
    bs = []
    for row in rows:
        members = row != 0
        r = -g / np.where(members, row, 1.0)
        up, low = np.where(row > 0, below, above) & members, np.where(row > 0, above, below) & members
        least, greatest = np.max(r, where=up, initial=-np.inf), np.min(r, where=low, initial=np.inf)
        bs.append(level(r, members, greatest, least, _room(lower, upper, len(r))))
        violations.append(least - greatest)
    violation = float(np.max(violations))
    if a.ndim == 2:
        return (np.array(bs) if bs else None), violation
    return (bs[0] if (~unconstrained).any() else None), violation


def level(F: Array, members: Array, least: float, most: float, weight: Array) -> float:
    """Return the number that F has at all free variables, up to the violation; see `multiplier` for its use.

    It is the mean of F between both ends, with `weight`, or the midpoint where an interval of numbers is possible. A
    variable that is there twice, with half the weight, and the order of the variables make no difference.

    Parameters
    ----------
    F : ndarray
        The gradient (n,).
    members : ndarray of bool
        The variables of the equality (n,).
    least, most : float
        The least F of a variable that may rise, and the greatest of one that may fall.
    weight : ndarray
        The weight of each variable (n,), at least 0.

    Returns
    -------
    float
        The number.
    """
    ends = [end for end in (least, most) if np.isfinite(end)]
    if len(ends) < 2 or most <= least:
        return float(sum(ends) / len(ends)) if ends else 0.0
    inside = members & (F >= least) & (F <= most)
    w = weight[inside] / max(float(weight[inside].max()), np.finfo("float64").tiny)
    # A power of two, so that the largest values of F have a finite sum; of ordinary ones it is 1.
    unit = 2.0 ** max(0, math.frexp(max(-least, most))[1] - 900)
    # Sums that are rounded once do not depend on the order.
    total, shift = math.fsum(w), least / 2 / unit + most / 2 / unit
    return unit * (shift + math.fsum(w * (F[inside] / unit - shift)) / total if total > 0 else shift)


def _room(lower: Any, upper: Any, n: int) -> Array:
    """Return the distance of the bounds, 1 for all variables where it is not finite for one."""
    room = np.broadcast_to(np.asarray(upper, dtype="float64") - lower, (n,))
    return room if np.isfinite(room).all() else np.ones(n)


def certify(
    lam: Array,
    W: float,
    g: Array,
    lower: Any,
    upper: Any,
    equality: tuple[Any, ...] | None = None,
    inequality: tuple[Any, ...] | None = None,
    *,
    tol: float,
    is_convex: bool | None = None,
) -> Certificate:
    """Certify a point of any objective from its value and gradient; there is no gap, since the primal is not known."""
    if inequality is not None or (equality is not None and rows_overlap(equality[0])):
        return PolytopeCertifier(lower, upper, equality, inequality, tol, is_convex).exactly(lam, W, g)
    slack = _feasibility_slack(lam, equality)
    lam = np.asarray(lam, dtype="float64")
    b, violation = multiplier(lam, g, lower, upper, None if equality is None else equality[0])
    outside = infeasibility(lam, lower, upper, equality)
    status = find_status(W, outside, violation, tol, is_convex, slack)
    return Certificate(float(W), outside, violation, b, None, None, None, status, tol)


class PolytopeCertifier:
    """Certifies the points of a run under equalities that share variables and inequalities, in their order.

    The violation of a point that is far from optimal is an upper bound of the smallest residual, by least squares; that
    of the others, and of `exactly`, is the smallest residual.

    Parameters
    ----------
    lower, upper : array_like
        The bounds.
    equality, inequality : tuple or None
        (a, c) of a.lam = c and (a, c) of a.lam <= c, for one row or several.
    tol : float
        The largest violation of an optimal point.
    is_convex : bool or None
        Whether W is known to be convex.
    """

    def __init__(
        self,
        lower: Any,
        upper: Any,
        equality: tuple[Any, ...] | None,
        inequality: tuple[Any, ...] | None,
        tol: float,
        is_convex: bool | None,
    ) -> None:
        self.lower, self.upper, self.tol, self.is_convex = lower, upper, tol, is_convex
        self.equality, self.inequality = equality, inequality
        parts = [(np.atleast_2d(a), np.atleast_1d(c)) for a, c in filter(None, (equality, inequality))]
        self.M, self.r = (np.concatenate(each).astype("float64") for each in zip(*parts, strict=True))
        self.n_equal = len(parts[0][0]) if equality is not None else 0
        self._multipliers = Multipliers(self.M, self.n_equal)
        self._is_simple = equality is None or not rows_overlap(equality[0])
        self._is_checked = False

    def __call__(self, lam: Array, W: float, g: Array) -> PolytopeCertificate:
        """Certify the next point of a run; raise if it is infeasible because every point is."""
        certificate = self._certify(lam, W, g, is_last=False)
        if certificate.status == "infeasible" and not self._is_checked:
            check_feasible(self.lower, self.upper, self.M, self.r, self.n_equal)
            self._is_checked = True
        return certificate

    def exactly(self, lam: Array, W: float, g: Array) -> PolytopeCertificate:
        """Certify a point by its smallest residual."""
        return self._certify(lam, W, g, is_last=True)

    def _certify(self, lam: Array, W: float, g: Array, is_last: bool) -> PolytopeCertificate:
        sizes, dtype = np.abs(self.M) @ np.abs(lam) + np.where(np.isfinite(self.r), np.abs(self.r), 0.0), lam.dtype
        slacks = rounding_error(1.0, len(lam), dtype) * sizes
        lam, g = np.asarray(lam, dtype="float64"), np.asarray(g, dtype="float64")
        active = (np.arange(len(self.r)) < self.n_equal) | (self.M @ lam >= self.r - slacks)
        below, above = lam < self.upper, lam > self.lower
        outside = infeasibility(lam, self.lower, self.upper, self.equality, self.inequality)
        mu = np.zeros(len(self.r) - self.n_equal)
        if not np.isfinite(g).all():
            b, violation = None, np.nan
        elif self._is_simple and not active[self.n_equal :].any():
            a = None if self.equality is None else self.equality[0]
            b, violation = multiplier(lam, g, self.lower, self.upper, a)
        else:
            find = self._multipliers
            nu, least, violation = find.estimate(g, below, above, active)
            if is_last or least <= self.tol:
                nu, violation = find.smallest_residual(g, below, above, active)
            b, mu = nu[: self.n_equal], nu[self.n_equal :]
            b = None if self.equality is None else b if np.ndim(self.equality[0]) == 2 else float(b[0])
        status = find_status(W, outside, violation, self.tol, self.is_convex, float(slacks.max()))
        mu = None if self.inequality is None else mu
        return PolytopeCertificate(float(W), outside, violation, b, None, None, None, status, self.tol, mu)


def certify_svc(lam: Array, Kq: Array, y: Array, C: Any, *, tol: float, is_psd: bool | None = None) -> Certificate:
    """Certify a point of the dual of the C-SVC from K q, q = lam y (Eq. 16, 17, 21).

    ::

        D = sum lam - 1/2 q.Kq          P = 1/2 q.Kq + sum_i C_i max(0, 1 - y_i ((Kq)_i + b))

    with the b that is returned. For a feasible lam and a positive semi-definite K, P - D >= 0 bounds the distance of P
    and of D to their common optimum. C may be a vector, one bound per point.
    """
    slack = _feasibility_slack(lam, (y, 0.0))
    lam, Kq = np.asarray(lam, dtype="float64"), np.asarray(Kq, dtype="float64")
    quadratic = 0.5 * float((lam * y) @ Kq)
    W = quadratic - lam.sum()
    b, violation = multiplier(lam, y * Kq - 1, 0.0, C, y)
    outside = infeasibility(lam, 0.0, C, (y, 0.0))
    status = find_status(W, outside, violation, tol, is_psd, slack)
    if status in ("infeasible", "diverged"):
        return Certificate(float(W), outside, violation, b, None, None, None, status, tol)
    xi = np.maximum(0.0, 1 - y * (Kq + b))
    primal = quadratic + float(np.sum(np.where(xi > 0, C, 0.0) * xi))
    return Certificate(float(W), outside, violation, b, primal, -float(W), primal + float(W), status, tol)


def rounding_error(size: float, count: int, dtype: Any) -> float:
    """Return the rounding error of a sum of `count` terms whose absolute values sum to `size`."""
    return _ROUNDING * np.finfo(dtype).eps * np.sqrt(count) * size


def _feasibility_slack(lam: Array, equality: tuple[Any, ...] | None) -> float:
    """Return the infeasibility that rounding alone explains: a.lam sums m terms, each rounded in the dtype of lam."""
    if equality is None:
        return 0.0
    a, c = equality
    size = max(float(np.max(np.abs(a) @ np.abs(lam))), float(np.max(np.abs(c))))
    return rounding_error(size, len(lam), lam.dtype)


def find_status(W: float, outside: float, violation: float, tol: float, is_convex: bool | None, slack: float) -> str:
    """Return the status of a point, see `Certificate`; `slack` is the infeasibility that rounding alone explains."""
    if not np.isfinite([W, outside, violation]).all():
        return "diverged"
    if outside > slack:
        return "infeasible"
    if violation > tol:
        return "feasible"
    return "optimal" if is_convex else "stationary"
