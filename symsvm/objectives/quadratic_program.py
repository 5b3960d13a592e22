"""The quadratic program whose instances are the duals of all support vector machines."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import number
from symsvm.objectives import argument_checks as checks
from symsvm.objectives.certificate import Certificate, find_status, level, rounding_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = ["QuadraticProgram"]

_SNAP = 4  # a variable this many eps off its bound, relative to the size of the bound, is at the bound


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """The dual of a support vector machine: a quadratic objective, bounds and one equality per group.

    ::

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    K_ij = K(x_i, x_j) is between points and D is diagonal. With z_i = y_i lam_i the dual of the C-SVC (Eq. 21) has
    p = -y, bounds 0 and C y_i, one group and the total 0. Regression has two variables per point. Without a group there
    is no equality (no intercept, or one that is part of the kernel, K + 1). The constructors `c_svc`, `svr`, `nu_svc`,
    `nu_svr` and `one_class` make the programs of the machines.

    Parameters
    ----------
    p : ndarray
        The linear term (n,).
    lower, upper : ndarray
        The bounds (n,); infinite ones only where D is positive.
    m : int
        The number of points; the variables i, i + m, ... belong to point i.
    group, total : ndarray
        The index of each variable's equality (n,), all -1 if there is none, and the right-hand sides of the equalities.
    diagonal : ndarray
        D, (n,).
    constant : float
        Added to the objective.
    """

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    m: int
    group: np.ndarray
    total: np.ndarray
    diagonal: np.ndarray
    constant: float = 0.0

    @classmethod
    def c_svc(cls, y: ArrayLike, C: ArrayLike, *, squared: bool = False, intercept: bool = True) -> QuadraticProgram:
        """Return the dual of the C-SVC in z = y lam (Eq. 21).

        Parameters
        ----------
        y, C : array_like
            Labels -1 and +1 (m,), and the penalty of slack, one number or one per point.
        squared, intercept : bool
            Whether to penalise xi^2 (then lam has no upper bound, and D = 1 / (2 C)); whether there is an intercept.

        Returns
        -------
        QuadraticProgram
            The program.

        Examples
        --------
        >>> program = QuadraticProgram.c_svc(np.array([1.0, -1.0]), C=2.0)
        >>> program.lower.tolist(), program.upper.tolist()
        ([0.0, -2.0], [2.0, 0.0])
        """
        y = checks.as_labels(y)
        most, diagonal = _slacks(C, len(y), squared)
        return _program(-y, y, most, diagonal=diagonal, intercept=intercept)

    @classmethod
    def svr(
        cls, y: ArrayLike, C: ArrayLike, epsilon: float, *, squared: bool = False, intercept: bool = True
    ) -> QuadraticProgram:
        """Return the dual of epsilon-insensitive regression in z = alpha - alpha'.

        There are two variables per point, z >= 0 and z <= 0. Eq. 002:2.13 maximises what this minimises (Eq. 002:2.14),
        and sum z = 0 (Eq. 002:2.10). A point inside the tube has both at 0, a point outside has one at its bound.

        Parameters
        ----------
        y, C : array_like
            Targets (m,), and the penalty of slack, one number or one per point.
        epsilon : float
            Half the width of the tube, at least 0.
        squared, intercept : bool
            Whether to penalise the squares of the slacks; whether there is an intercept.

        Returns
        -------
        QuadraticProgram
            The program.
        """
        y = checks.as_targets(y)
        checks.as_tube(epsilon)
        most, diagonal = _slacks(C, len(y), squared)
        p, sign = np.concatenate([epsilon - y, -epsilon - y]), np.repeat([1, -1], len(y))
        diagonal = np.tile(diagonal, 2)
        return _program(p, sign, np.tile(most, 2), m=len(y), diagonal=diagonal, intercept=intercept)

    @classmethod
    def one_class(cls, weights: ArrayLike, nu: float) -> QuadraticProgram:
        """Return the dual of the one-class SVM: 0 <= z_i <= weight_i, sum z = nu sum of weights.

        Parameters
        ----------
        weights : array_like
            The weights of the points (m,), ones for equal points.
        nu : float
            The share of margin errors, 0 < nu <= 1.

        Returns
        -------
        QuadraticProgram
            The program.
        """
        weights = checks.as_weights(weights, len(np.asarray(weights)))
        return _program(np.zeros(len(weights)), 1, weights, total=(checks.as_nu(nu) * weights.sum(),))

    @classmethod
    def nu_svc(cls, y: ArrayLike, nu: float, weights: ArrayLike | None = None) -> QuadraticProgram:
        """Return the dual of the nu-SVC in z = y lam: lam sums to nu m / 2 in each class, 0 <= lam_i <= weight_i.

        Parameters
        ----------
        y : array_like
            Labels -1 and +1 (m,).
        nu : float
            The share of margin errors, 0 < nu <= 1.
        weights : array_like, optional
            The weights of the points (m,), ones by default; m is their sum.

        Returns
        -------
        QuadraticProgram
            The program.
        """
        y = checks.as_labels(y)
        weights = checks.as_weights(weights, len(y))
        half = checks.as_class_nu(nu, y, weights) * weights.sum() / 2
        return _program(np.zeros(len(y)), y, weights, group=np.where(y > 0, 0, 1), total=(half, -half))

    @classmethod
    def nu_svr(cls, y: ArrayLike, C: float, nu: float, weights: ArrayLike | None = None) -> QuadraticProgram:
        """Return the dual of the nu-SVR: `svr` with epsilon determined by nu; alpha and alpha' each sum to C nu m / 2.

        Parameters
        ----------
        y : array_like
            Targets (m,).
        C, nu : float
            The penalty of slack, and the share of points outside the tube, 0 < nu <= 1.
        weights : array_like, optional
            The weights of the points (m,), ones by default; m is their sum.

        Returns
        -------
        QuadraticProgram
            The program.
        """
        y = checks.as_targets(y)
        most = number(C, "C", positive=True) * checks.as_weights(weights, len(y))
        half, group = checks.as_nu(nu) * most.sum() / 2, np.repeat([0, 1], len(y))
        return _program(np.tile(-y, 2), 1 - 2 * group, np.tile(most, 2), m=len(y), group=group, total=(half, -half))

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.p)

    @functools.cached_property
    def point(self) -> Array:
        """The index of the point that each variable belongs to."""
        return np.arange(self.n) % self.m

    def weights(self, z: Array) -> Array:
        """Return the coefficients of the points, beta_i = the sum of the variables of point i.

        In regression they are alpha_i - alpha_i', with theta = sum_i beta_i x_i (Eq. 002:2.9).

        Parameters
        ----------
        z : ndarray
            The variables (n,).

        Returns
        -------
        ndarray
            The coefficients beta (m,).
        """
        return z.reshape(-1, self.m).sum(axis=0)

    def start(self, near: ArrayLike | None = None) -> Array:
        """Return a feasible point: `near` clipped to the bounds, then changed as needed to meet the totals.

        Free variables change first and zero variables last, so that a run does not start with needless support vectors.
        Totals that are off by rounding alone are not corrected.

        Parameters
        ----------
        near : array_like, optional
            Variables (n,), 0 by default.

        Returns
        -------
        ndarray
            The feasible point (n,).
        """
        if near is None and not self.total.any() and (self.lower <= 0).all() and (self.upper >= 0).all():
            return np.zeros(self.n)
        z = np.zeros(self.n) if near is None else np.asarray(near, dtype="float64")
        z = np.clip(z, self.lower, self.upper)
        for g, total in enumerate(self.total):
            members = np.flatnonzero(self.group == g)
            free = (z[members] > self.lower[members]) & (z[members] < self.upper[members])
            members = members[np.lexsort((~free, z[members] == 0))]
            missing = total - z[members].sum()
            if abs(missing) <= self.rounding_error(z):
                continue
            bound = self.upper if missing > 0 else self.lower
            room = np.minimum(np.abs(bound[members] - z[members]), abs(missing))
            filled = np.cumsum(room)
            share = np.clip(abs(missing) - (filled - room), 0, room)
            if len(members) == 0 or filled[-1] < abs(missing) * (1 - checks.ATTAINABLE):
                raise ValueError(f"no point is feasible: the bounds do not allow the total {total:g}.")
            z[members] += np.sign(missing) * share
        return np.clip(z, self.lower, self.upper)

    def rounding_error(self, z: Array) -> float:
        """Return a bound of the rounding error of a total.

        Parameters
        ----------
        z : ndarray
            The variables (n,).

        Returns
        -------
        float
            The largest difference from a total that rounding explains.
        """
        return rounding_error(float(np.abs(z).sum()), self.n, z.dtype) if len(self.total) else 0.0

    def snap_to_bounds(self, z: Array) -> Array:
        """Return z with the variables at their bounds that are off them by the rounding of a total alone.

        Such a variable is not free: it is no support vector if the bound is 0, and it does not determine b. What is
        rounding depends on z, not on the bounds, which may be larger by any factor. A gradient may be so steep that
        even this change matters: the caller compares W and the violation.

        Parameters
        ----------
        z : ndarray
            The variables (n,).

        Returns
        -------
        ndarray
            The changed copy, or `z` itself if the change would violate a total by more than rounding.
        """
        snapped, rounding = z.copy(), max(self.rounding_error(z), _SNAP * np.finfo(z.dtype).eps * np.abs(z).max())
        for bound in (self.lower, self.upper):
            np.copyto(snapped, bound, where=np.abs(z - bound) <= rounding)
        return snapped if self.infeasibility(snapped) <= max(self.rounding_error(z), self.infeasibility(z)) else z

    def gradient(self, Kz: Array, z: Array) -> Array:
        """Return the gradient F = (K + D) z + p.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients `weights(z)` (m,), and the variables (n,).

        Returns
        -------
        ndarray
            F, (n,).
        """
        return Kz[self.point] + self.diagonal * z + self.p

    def value(self, Kz: Array, z: Array) -> float:
        """Return the objective.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients `weights(z)` (m,), and the variables (n,).

        Returns
        -------
        float
            The value at z.
        """
        return float(0.5 * z @ (Kz[self.point] + self.diagonal * z) + self.p @ z) + self.constant

    def multipliers(self, F: Array, z: Array) -> tuple[Array, float]:
        """Return the multipliers of the equalities and the largest KKT violation.

        b of a group satisfies F_i + b = 0 at free z_i. It is a mean of -F_i, of y_i -+ epsilon - (K z)_i in regression
        (Eq. 002:2.17, 002:2.18): that of `level`.

        Parameters
        ----------
        F, z : ndarray
            The gradient and the variables (n,).

        Returns
        -------
        b : ndarray
            The multiplier of each group.
        violation : float
            The largest violation of the KKT conditions.
        """
        bs, worst = [], 0.0
        below, above = z < self.upper, z > self.lower
        for g in range(max(1, len(self.total))):
            members = self.group == g if len(self.total) > 1 else np.ones(self.n, dtype=bool)
            least = F[members & below].min(initial=np.inf)
            most = F[members & above].max(initial=-np.inf)
            if not len(self.total):
                return np.zeros(0), float(max(0.0, -least, most))
            bs.append(-level(F, members, least, most, self._penalties))
            worst = max(worst, most - least)
        return np.array(bs), float(worst)

    @functools.cached_property
    def _penalties(self) -> Array:
        """How much each variable counts: the distance of its bounds, or 1 / D where that is not finite, or else 1."""
        size = self.upper - self.lower
        if not np.isfinite(size).all():
            with np.errstate(divide="ignore"):
                size = 1 / self.diagonal
        return size if np.isfinite(size).all() else np.ones(self.n)

    def gap(self, F: Array, z: Array, b: Array) -> float:
        """Return the duality gap, for the C-SVC P - D of Eq. 16 and 21.

        ::

            sum_i h_i(z_i) - min_v h_i(v),    h_i(v) = 1/2 D_i v^2 + v f_i,    f = F - D z + b

        Each minimum is over the bounds, so no term is negative.

        Parameters
        ----------
        F, z : ndarray
            The gradient and the variables (n,).
        b : ndarray
            The multiplier of each group.

        Returns
        -------
        float
            The gap.
        """
        lower, upper, D = self.lower, self.upper, self.diagonal
        f = F - D * z + (b[self.group] if len(b) else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(D > 0, -f / D, np.where(f > 0, -np.inf, np.inf))
        best = np.clip(best, lower, upper)
        best = np.where((f == 0) & (D == 0), z, best)
        return float(np.sum(0.5 * D * (z - best) * (z + best) + (z - best) * f))

    def infeasibility(self, z: Array) -> float:
        """Return the largest violation of a bound or an equality.

        Parameters
        ----------
        z : ndarray
            The variables (n,).

        Returns
        -------
        float
            The violation, 0 for a feasible point.
        """
        worst = max(0.0, float(np.max(self.lower - z)), float(np.max(z - self.upper)))
        if not len(self.total):
            return worst
        sums = np.bincount(self.group, z, len(self.total))
        return max(worst, float(np.abs(sums - self.total).max()))

    def certificate(self, Kz: Array, z: Array, *, tol: float, is_psd: bool | None = None) -> Certificate:
        """Certify a point: the dual is D = -W, the primal P = D + gap.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients `weights(z)` (m,), and the variables (n,).
        tol : float
            The largest violation of an optimal point.
        is_psd : bool, optional
            Whether K is known to be positive semi-definite.

        Returns
        -------
        Certificate
            What is known about z.
        """
        slack, z = self.rounding_error(z), np.asarray(z, dtype="float64")
        F = self.gradient(Kz, z)
        W, (bs, violation) = self.value(Kz, z), self.multipliers(F, z)
        outside = self.infeasibility(z)
        status = find_status(W, outside, violation, tol, is_psd, slack)
        b = (bs if len(bs) > 1 else float(bs[0])) if len(bs) else None
        if status in ("infeasible", "diverged"):
            return Certificate(W, outside, violation, b, None, None, None, status, tol)
        gap = self.gap(F, z, bs)
        return Certificate(W, outside, violation, b, gap - W, -W, gap, status, tol)


def _program(
    p, sign, most, *, m=None, group=None, total=(0.0,), diagonal: Any = 0.0, intercept=True
) -> QuadraticProgram:
    """Return the program with 0 <= sign z <= most; by default all variables are in one group."""
    n = len(p)
    if not intercept:
        group, total = np.full(n, -1), ()
    group = np.zeros(n, dtype="int64") if group is None else group
    is_positive = np.greater(sign, 0)
    bounds = np.where(is_positive, 0.0, -most), np.where(is_positive, most, 0.0)
    D = diagonal if np.shape(diagonal) == (n,) else np.full(n, diagonal, dtype="float64")
    return QuadraticProgram(p, *bounds, n if m is None else m, group, np.asarray(total, dtype="float64"), D)


def _slacks(C: ArrayLike, m: int, squared: bool) -> tuple[Array, Array]:
    """Return the upper bounds and the diagonal for slacks that cost C xi or C xi^2."""
    C = checks.as_penalties(C, m)
    if not squared:
        return C, np.zeros(m)
    with np.errstate(divide="ignore"):
        return np.where(C > 0, np.inf, 0.0), np.where(C > 0, 1 / (2 * C), 0.0)
