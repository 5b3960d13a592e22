"""QuadraticProgram: the dual of every support vector machine in one description.

    minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

K_ij = K(x_i, x_j) is between points and D is diagonal. With z_i = y_i lam_i the dual of the C-SVC (Eq. 21) has p = -y,
bounds between 0 and C y_i, one group and the total 0. Regression has two variables a point. With no group there is no
equality (no intercept, or one that is part of the kernel, K + 1).
"""

import functools
from dataclasses import dataclass

import numpy as np

from symsvm._lib.validation import number
from symsvm.objectives.certificate import Certificate, status

__all__ = ["QuadraticProgram"]


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """minimise 1/2 z.(K + D) z + p.z subject to bounds and one equality a group; see the head of this file.

    Attributes
    ----------
    p, lower, upper : vectors (n,), one entry a variable; infinite bounds where D is positive.
    m : the number of points; the variables i, i + m, ... stand for the point i.
    group : the index of each variable's equality, -1 for all of them if there is none.
    total : the right-hand sides of the equalities.
    diagonal : D.
    constant : added to the objective.
    """

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    m: int
    group: np.ndarray
    total: np.ndarray
    diagonal: np.ndarray
    constant: float = 0.0

    # ---- the duals of support vector machines

    @classmethod
    def c_svc(cls, y, C, *, squared=False, intercept=True):
        """The dual of the C-SVC in z = y lam (Eq. 21), C a number or one a point; `squared` penalises xi^2.

        With squared slacks lam has no upper bound, and D = 1 / (2 C).

        >>> program = QuadraticProgram.c_svc(np.array([1.0, -1.0]), C=2.0)
        >>> program.lower.tolist(), program.upper.tolist()
        ([0.0, -2.0], [2.0, 0.0])
        """
        y = _labels(y)
        most, diagonal = _slacks(C, len(y), squared)
        lower, upper = np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0)
        return _program(-y, lower, upper, diagonal=diagonal, **_equality(len(y), intercept))

    @classmethod
    def svr(cls, y, C, epsilon, *, squared=False, intercept=True):
        """The dual of epsilon-insensitive regression in z = alpha - alpha': two variables a point, z >= 0 and z <= 0.

        Eq. 002:2.13 maximises what this minimises (Eq. 002:2.14), and sum z = 0 (Eq. 002:2.10). A point inside the
        tube has both at 0, one outside has one of them at its bound.
        """
        y, m = _targets(y), len(y)
        if not number(epsilon, "epsilon") >= 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
        most, diagonal = _slacks(C, m, squared)
        zero = np.zeros(m)
        return _program(
            np.concatenate([epsilon - y, -epsilon - y]),
            np.concatenate([zero, -most]),
            np.concatenate([most, zero]),
            m=m,
            diagonal=np.tile(diagonal, 2),
            **_equality(2 * m, intercept),
        )

    @classmethod
    def one_class(cls, weights, nu):
        """The dual of the one-class machine: 0 <= z_i <= weight_i, sum z = nu sum of weights."""
        weights = _weights(weights, len(weights))
        return _program(np.zeros(len(weights)), 0.0, weights, total=(_nu(nu) * weights.sum(),))

    @classmethod
    def nu_svc(cls, y, nu, weights=None):
        """The dual of the nu-SVC in z = y lam: |sum z| = nu m / 2 in each class, 0 <= lam_i <= weight_i."""
        y = _labels(y)
        weights = _weights(weights, len(y))
        half = _nu(nu) * weights.sum() / 2
        most = 2 * min(weights[y > 0].sum(), weights[y < 0].sum()) / weights.sum()
        if nu > most * (1 + 1e-12):
            raise ValueError(f"nu must be at most {most:.6g} for these labels and weights, got {nu!r}.")
        lower, upper = np.where(y > 0, 0.0, -weights), np.where(y > 0, weights, 0.0)
        return _program(np.zeros(len(y)), lower, upper, group=np.where(y > 0, 0, 1), total=(half, -half))

    @classmethod
    def nu_svr(cls, y, C, nu, weights=None):
        """The dual of the nu-SVR: as `svr` with epsilon found, alpha and alpha' each sum to C nu m / 2."""
        y, m = _targets(y), len(y)
        most = number(C, "C", positive=True) * _weights(weights, m)
        half, zero = _nu(nu) * most.sum() / 2, np.zeros(m)
        return _program(
            np.concatenate([-y, -y]),
            np.concatenate([zero, -most]),
            np.concatenate([most, zero]),
            m=m,
            group=np.repeat([0, 1], m),
            total=(half, -half),
        )

    # ---- points and their optimality

    @property
    def n(self):
        """The number of variables."""
        return len(self.p)

    @functools.cached_property
    def point(self):
        """The index of the point that each variable stands for."""
        return np.arange(self.n) % self.m

    def weights(self, z):
        """The factors of the points, beta_i = sum of the z that stand for the point i.

        Of a regression alpha_i - alpha_i', with which theta = sum_i beta_i x_i (Eq. 002:2.9).
        """
        return z.reshape(-1, self.m).sum(axis=0)

    def start(self, near=None):
        """A feasible point: `near` (0 by default) cut at the bounds, then changed where needed to meet the totals.

        Free variables change first, those that are 0 last: the start of a run should not have more support vectors than
        it needs. What rounding leaves of a total is left.
        """
        near = np.zeros(self.n) if near is None else np.asarray(near, dtype="float64")
        z = np.clip(near, self.lower, self.upper)
        for g, total in enumerate(self.total):
            members = np.flatnonzero(self.group == g)
            free = (z[members] > self.lower[members]) & (z[members] < self.upper[members])
            members = members[np.lexsort((~free, z[members] == 0))]
            missing = total - z[members].sum()
            if abs(missing) <= self.rounding(z):
                continue
            room = np.abs((self.upper if missing > 0 else self.lower)[members] - z[members])
            room = np.minimum(room, abs(missing))
            filled = np.cumsum(room)
            share = np.clip(abs(missing) - (filled - room), 0, room)
            if len(members) == 0 or filled[-1] < abs(missing) * (1 - 1e-12):
                raise ValueError(f"no point is feasible: the bounds do not allow the total {total:g}.")
            z[members] += np.sign(missing) * share
        return np.clip(z, self.lower, self.upper)

    def rounding(self, z):
        """What rounding may make of a total."""
        return 8 * np.finfo(z.dtype).eps * np.sqrt(self.n) * float(np.abs(z).sum()) if len(self.total) else 0.0

    def snapped(self, z):
        """z with variables at their bounds that are off them by rounding alone.

        Such a variable is not free: it is no support vector where the bound is 0, and does not fix b. Totals stay what
        rounding may make of them; where they would not, z is returned as it is.
        """
        snapped, totals = z.copy(), np.append(np.abs(self.total), 0.0)[self.group]  # what is in no group is in -1
        for bound, other in ((self.lower, self.upper), (self.upper, self.lower)):
            size = np.abs(np.where(bound != 0, bound, other))
            rounding = np.where(np.isfinite(size), 4 * np.finfo(z.dtype).eps * np.maximum(size, totals), 0.0)
            np.copyto(snapped, bound, where=np.abs(z - bound) <= rounding)
        return snapped if self.infeasibility(snapped) <= max(self.rounding(z), self.infeasibility(z)) else z

    def gradient(self, Kz, z):
        """F = (K + D) z + p from the products Kz, one a point."""
        return Kz[self.point] + self.diagonal * z + self.p

    def value(self, Kz, z):
        """The objective."""
        return float(0.5 * z @ (Kz[self.point] + self.diagonal * z) + self.p @ z) + self.constant

    def multipliers(self, F, z):
        """Return (b, violation): for each group the b with F_i + b = 0 at free z_i, and the largest KKT violation.

        b is the mean of -F_i over them; of a regression y_i -+ epsilon - (K z)_i (Eq. 002:2.17, 002:2.18).
        """
        bs, worst = [], 0.0
        below, above = z < self.upper, z > self.lower
        for g in range(max(1, len(self.total))):
            members = self.group == g if len(self.total) else np.ones(self.n, dtype=bool)
            up, low = members & below, members & above
            least = np.min(F, where=up, initial=np.inf)
            most = np.max(F, where=low, initial=-np.inf)
            if not len(self.total):
                return np.zeros(0), float(max(0.0, -least, most))
            free = up & low
            if free.any():
                b = -float(F[free].mean())
            else:
                ends = [end for end in (least, most) if np.isfinite(end)]
                b = -sum(ends) / len(ends) if ends else 0.0
            bs.append(b)
            worst = max(worst, most - least)
        return np.array(bs), float(worst)

    def gap(self, F, z, b, among=slice(None)):
        """The duality gap at the multipliers b: sum_i of h_i(z_i) - min_v h_i(v), h_i(v) = 1/2 D_i v^2 + v f_i.

        f = F - D z + b; the minimum is over the bounds. For the C-SVC it is P - D of Eq. 16 and 21. `among` sums over
        some of the variables; each term is at least 0.
        """
        lower, upper, D, z = self.lower[among], self.upper[among], self.diagonal[among], z[among]
        f = F[among] - D * z + (b[self.group[among]] if len(b) else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(D > 0, -f / D, np.where(f > 0, -np.inf, np.inf))
        best = np.clip(best, lower, upper)
        best = np.where((f == 0) & (D == 0), z, best)
        return float(np.sum(0.5 * D * (z - best) * (z + best) + (z - best) * f))

    def infeasibility(self, z):
        """The largest violation of a bound or an equality."""
        worst = max(0.0, float(np.max(self.lower - z)), float(np.max(z - self.upper)))
        if not len(self.total):
            return worst
        sums = np.bincount(self.group, z, len(self.total))
        return max(worst, float(np.abs(sums - self.total).max()))

    def certificate(self, Kz, z, *, tol, is_psd=None):
        """Certify z from the products K z: the dual is D = -W, the primal P = D + gap."""
        slack, z = self.rounding(z), np.asarray(z, dtype="float64")
        F = self.gradient(Kz, z)
        W, (b, violation) = self.value(Kz, z), self.multipliers(F, z)
        outside = self.infeasibility(z)
        word = status(W, outside, violation, tol, is_psd, slack)
        b = (b if len(b) > 1 else float(b[0])) if len(b) else None
        if word in ("infeasible", "diverged"):
            return Certificate(W, outside, violation, b, None, None, None, word, tol)
        gap = self.gap(F, z, np.atleast_1d(b) if b is not None else np.zeros(0))
        return Certificate(W, outside, violation, b, gap - W, -W, gap, word, tol)


def _program(p, lower, upper, *, m=None, group=None, total=(0.0,), diagonal=0.0):
    p = np.asarray(p, dtype="float64")
    n = len(p)
    group = np.zeros(n, dtype="int64") if group is None else group
    full = [np.array(np.broadcast_to(v, n), dtype="float64") for v in (lower, upper, diagonal)]
    return QuadraticProgram(p, *full[:2], n if m is None else m, group, np.asarray(total, dtype="float64"), full[2])


def _equality(n, intercept):
    return {} if intercept else {"group": np.full(n, -1), "total": ()}


def _slacks(C, m, squared):
    """The upper bounds and the diagonal that slacks bring, C xi or C xi^2; a point of weight 0 has no part."""
    C = np.asarray(C, dtype="float64")
    if C.ndim and len(C) != m:
        raise ValueError(f"C must be a number, or one for each of the {m} points, got {len(C)}.")
    if not (np.isfinite(C).all() and (C >= 0).all() and (C > 0).any()):
        raise ValueError("C must be finite and positive; one of 0 takes a point out.")
    C = np.broadcast_to(C, m)
    if not squared:
        return C, np.zeros(m)
    with np.errstate(divide="ignore"):
        return np.where(C > 0, np.inf, 0.0), np.where(C > 0, 1 / (2 * C), 0.0)


def _labels(y):
    y = _targets(y)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")
    return y


def _targets(y):
    y = np.asarray(y, dtype="float64")
    if y.ndim != 1 or not len(y) or not np.isfinite(y).all():
        raise ValueError(f"y must be a finite vector, one number a point, got the shape {y.shape}.")
    return y


def _weights(weights, m):
    weights = np.ones(m) if weights is None else np.asarray(weights, dtype="float64")
    if weights.shape != (m,) or not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError(f"weights must be {m} finite numbers of at least 0, and not all 0.")
    return weights


def _nu(nu):
    if not 0 < number(nu, "nu") <= 1:
        raise ValueError(f"nu must be above 0 and at most 1, got {nu!r}.")
    return nu
