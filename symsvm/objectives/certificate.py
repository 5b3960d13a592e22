"""How good is a point? Feasibility, optimality and the duality gap, in float64, from the point and its gradient.

For   minimise W(lam)   subject to   lower <= lam <= upper,   a.lam = c   a feasible lam is stationary when some b gives

    g_i + b a_i >= 0 where lam_i = lower_i,   <= 0 where lam_i = upper_i,   = 0 in between        (g = grad W).

Each coordinate with a_i != 0 bounds b from one side or from both, so b exists when the greatest lower bound does not
exceed the least upper bound; how far it does is the violation that LIBSVM compares with `tol`. In the dual of the
support vector machine, a = y, and b is the intercept.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Certificate", "certify", "certify_svc", "infeasibility", "multiplier", "status"]


@dataclass(frozen=True)
class Certificate:
    """What is known about a point, in float64 from the value and the gradient there.

    Attributes
    ----------
    W : the objective (minimised) at the point.
    infeasibility : max(|a.lam - c|, the largest violation of a bound) (Eq. 9, 11).
    violation : the largest violation of the KKT conditions (Eq. 10, 19; Eq. 003:18); LIBSVM compares it with tol.
    b : the multiplier of the equality, which is the intercept; None without one, an array for several.
    primal, dual, gap : P, D = -W and P - D >= 0, for a problem whose primal is known and a feasible point; else None.
    status : `optimal` (feasible, convex, violation at most tol), `stationary` (the same, but the problem is not known
        to be convex), `feasible` (the violation exceeds tol), `infeasible`, or `diverged` (something is not finite).
    tol : the tolerance that `status` refers to.
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
    def relative_gap(self):
        """(P - D) / max(|P|, |D|, 1), None where there is no gap."""
        if self.gap is None or np.isinf(self.gap):
            return self.gap
        return self.gap / max(abs(self.primal), abs(self.dual), 1.0)

    def __str__(self):
        gap = "" if self.gap is None else f", gap {self.gap:.3g} ({self.relative_gap:.1e} relative)"
        return (
            f"{self.status}: W = {self.W:.10g}{gap}, violation {self.violation:.2e} (tol {self.tol:g}), "
            f"infeasibility {self.infeasibility:.2e}"
        )


def infeasibility(lam, lower, upper, equality=None):
    """max(|a.lam - c|, max(lower - lam), max(lam - upper), 0): zero for a feasible point (Eq. 9, 11, 21).

    In other words, Eq. 003:17 and Eq. 002:1.13.

    >>> infeasibility(np.array([1.0, 3.0]), 0.0, 2.0, (np.array([1.0, -1.0]), 0.0))
    2.0
    """
    violations = [0.0, np.max(lower - lam), np.max(lam - upper)]
    if equality is not None:
        a, c = equality
        violations.append(np.max(np.abs(a @ lam - c)))
    return float(np.max(violations))  # NaN if any of them is


def multiplier(lam, g, lower, upper, a=None):
    """Return (b, violation): the multiplier of a.lam = c and the largest violation of the KKT conditions.

    b is the mean of -g_i / a_i over the free coordinates, else the middle of what the others admit (Eq. 29). The
    violation is max_up(-g/a) - min_low(-g/a) in LIBSVM's notation, where `up` are the coordinates that may raise a.lam
    and `low` those that may lower it; coordinates with a_i = 0 (all of them without an equality) must have g_i = 0 or
    point out of the box. With a matrix a, of which no two rows share a variable, b has an entry a row.
    """
    g = np.asarray(g, dtype="float64")
    below, above = lam < upper, lam > lower  # may rise, may fall
    a = np.zeros((0, len(g))) if a is None else np.asarray(a, dtype="float64")
    rows = np.atleast_2d(a)
    apart = (rows == 0).all(axis=0)
    violations = [np.max(-g, where=apart & below, initial=0.0), np.max(g, where=apart & above, initial=0.0)]
    bs = []
    for row in rows:
        mine = row != 0
        r = -g / np.where(mine, row, 1.0)
        up, low = np.where(row > 0, below, above) & mine, np.where(row > 0, above, below) & mine
        least, greatest = np.max(r, where=up, initial=-np.inf), np.min(r, where=low, initial=np.inf)
        free = below & above & mine
        if free.any():
            b = r[free].mean()
        else:
            ends = [end for end in (least, greatest) if np.isfinite(end)]
            b = sum(ends) / len(ends) if ends else 0.0
        bs.append(float(b))
        violations.append(least - greatest)
    violation = float(np.max(violations))
    if a.ndim == 2:
        return (np.array(bs) if bs else None), violation
    return (bs[0] if (~apart).any() else None), violation


def certify(lam, W, g, lower, upper, equality=None, *, tol, is_convex=None):
    """Certify a point of any objective from its value and gradient: no gap, for no primal is known."""
    slack = _slack(lam, equality)
    lam = np.asarray(lam, dtype="float64")
    b, violation = multiplier(lam, g, lower, upper, None if equality is None else equality[0])
    outside = infeasibility(lam, lower, upper, equality)
    word = status(W, outside, violation, tol, is_convex, slack)
    return Certificate(float(W), outside, violation, b, None, None, None, word, tol)


def certify_svc(lam, Kq, y, C, *, tol, is_psd=None):
    """Certify a point of the dual of the C-SVC from K q, q = lam y (Eq. 16, 17, 21).

        D = sum lam - 1/2 q.Kq          P = 1/2 q.Kq + sum_i C_i max(0, 1 - y_i ((Kq)_i + b))

    with the b that is returned. For feasible lam and a positive semi-definite K, P - D >= 0 bounds the distance of both
    to their common optimum. C may be a vector, one bound a point.
    """
    slack = _slack(lam, (y, 0.0))
    lam, Kq = np.asarray(lam, dtype="float64"), np.asarray(Kq, dtype="float64")
    quadratic = 0.5 * float((lam * y) @ Kq)
    W = quadratic - lam.sum()
    b, violation = multiplier(lam, y * Kq - 1, 0.0, C, y)
    outside = infeasibility(lam, 0.0, C, (y, 0.0))
    word = status(W, outside, violation, tol, is_psd, slack)
    if word in ("infeasible", "diverged"):
        return Certificate(float(W), outside, violation, b, None, None, None, word, tol)
    xi = np.maximum(0.0, 1 - y * (Kq + b))
    primal = quadratic + float(np.sum(np.where(xi > 0, C, 0.0) * xi))
    return Certificate(float(W), outside, violation, b, primal, -float(W), primal + float(W), word, tol)


def _slack(lam, equality):
    """The infeasibility that rounding alone explains: a.lam sums m terms, each rounded in the dtype of lam."""
    if equality is None:
        return 0.0
    a, c = equality
    size = max(float(np.max(np.abs(a) @ np.abs(lam))), float(np.max(np.abs(c))))
    return 8 * np.finfo(lam.dtype).eps * np.sqrt(len(lam)) * size


def status(W, outside, violation, tol, is_convex, slack):
    """The word for a point: see `Certificate`; `slack` is the infeasibility that rounding alone explains."""
    if not np.isfinite([W, outside, violation]).all():
        return "diverged"
    if outside > slack:
        return "infeasible"
    if violation > tol:
        return "feasible"
    return "optimal" if is_convex else "stationary"
