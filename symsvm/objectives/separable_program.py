"""The quadratic program with a separable smooth convex term: kernel logistic regression, and other smooth losses."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symsvm.objectives.certificate import Certificate, find_status

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives.quadratic_program import QuadraticProgram
    from symsvm.objectives.separable import SeparableTerm

__all__ = ["SeparableProgram"]

# Steps of the search for the multipliers of the equalities.
_BALANCE_STEPS = 200
# Positions between the bounds at which the curvature is sampled, and the least one relative to the mean.
_POSITIONS, _LEAST_CURVATURE = np.linspace(0.02, 0.98, 49), 1e-2


@dataclass(frozen=True, eq=False)
class SeparableProgram:
    """A quadratic program with a separable smooth convex term.

    ::

        minimise 1/2 z.(K + D) z + p.z + sum_i phi_i(z_i)    subject to    lower <= z <= upper,    sum over g = total_g

    With h_i(v) = phi_i(v) + 1/2 D_i v^2 + p_i v the primal is, for any coefficients beta and multipliers b, ::

        P(beta, b) = 1/2 beta.K beta - sum_i min_v (h_i(v) + v ((K beta)_i + b)) + b.total

    Parameters
    ----------
    quadratic : QuadraticProgram
        The other terms, the bounds and the equalities.
    phi : SeparableTerm
        The separable term.
    """

    quadratic: QuadraticProgram
    phi: SeparableTerm

    @functools.cached_property
    def ends(self) -> tuple[Array, Array]:
        """The gradients of phi at the lower and at the upper bounds."""
        return self.phi.end_gradients(self.quadratic.lower, self.quadratic.upper)

    def _phi(self, name: str, z: Array) -> Array:
        return self.phi.evaluate(name, z, self.quadratic.lower, self.quadratic.upper)

    def value(self, Kz: Array, z: Array) -> float:
        """Return the objective.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients of the points (m,), and the variables (n,).

        Returns
        -------
        float
            The value at z.
        """
        return self.quadratic.value(Kz, z) + float(self._phi("value", z).sum())

    def gradient(self, Kz: Array, z: Array) -> Array:
        """Return the gradient F = (K + D) z + p + phi'(z).

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients of the points (m,), and the variables (n,).

        Returns
        -------
        ndarray
            F, (n,).
        """
        return self.quadratic.gradient(Kz, z) + self._phi("gradient", z)

    def curvature(self, z: Array) -> Array:
        """Return E = D + phi''(z), the second derivatives without K.

        Parameters
        ----------
        z : ndarray
            The variables (n,).

        Returns
        -------
        ndarray
            E, (n,).
        """
        return self.quadratic.diagonal + self._phi("curvature", z)

    def multipliers(self, F: Array, z: Array) -> tuple[Array, float]:
        """Return the multipliers of the equalities and the largest KKT violation, as `QuadraticProgram.multipliers`.

        Next to a bound where phi' is infinite, neighbouring numbers differ in F by more than any tol. So F_i counts for
        a rise of z_i, or a fall, as at the next number in that direction.

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
        b, violation = self.quadratic.multipliers(F, z)
        with np.errstate(over="ignore"):
            spread = self._phi("curvature", z) * np.spacing(np.abs(z))
        if not spread.max(initial=0.0) > 1e-3 * violation:
            return b, violation
        qp, worst = self.quadratic, 0.0
        up, low = np.where(z < qp.upper, F + spread, np.inf), np.where(z > qp.lower, F - spread, -np.inf)
        for g in range(len(qp.total)):
            members = qp.group == g
            worst = max(worst, float(np.max(low[members]) - np.min(up[members])))
        if not len(qp.total):
            worst = max(0.0, float(np.max(low)), -float(np.min(up)))
        return b, max(0.0, worst)

    def minimisers(self, f: Array, near: Array | None = None) -> Array:
        """Return argmin_v h_i(v) + v f_i between the bounds.

        Parameters
        ----------
        f : ndarray
            The linear terms beside p (n,).
        near : ndarray, optional
            Where to begin (n,).

        Returns
        -------
        ndarray
            The minimisers (n,).
        """
        qp = self.quadratic
        return self.phi.minimiser(f + qp.p, qp.diagonal, qp.lower, qp.upper, near, self.ends)

    def balanced_minimisers(self, f: Array, b: Array, near: Array | None = None) -> tuple[Array, Array]:
        """Return the minimisers of h_i(v) + v (f_i + b) with the b at which they satisfy the equalities.

        The sum over a group falls as its b rises: a Newton method in a bracket finds b.

        Parameters
        ----------
        f : ndarray
            The linear terms beside p (n,).
        b : ndarray
            Where to begin, one number per group.
        near : ndarray, optional
            Where to begin for the minimisers (n,).

        Returns
        -------
        z : ndarray
            The minimisers (n,), which satisfy the bounds and the equalities.
        b : ndarray
            The multipliers.
        """
        qp = self.quadratic
        groups = len(qp.total)
        if not groups:
            return self.minimisers(f, near), b
        b, low, high = b.copy(), np.full(groups, -np.inf), np.full(groups, np.inf)
        z, S, reach = self.minimisers(f + b[qp.group], near), np.zeros(qp.n), np.maximum(1.0, np.abs(b))
        for step in range(_BALANCE_STEPS):
            z = self.minimisers(f + b[qp.group], z) if step else z
            excess = np.bincount(qp.group, z, groups) - qp.total
            low, high = np.where(excess > 0, b, low), np.where(excess < 0, b, high)
            S = self.slopes(z)
            slope = np.bincount(qp.group, S, groups)
            done = np.abs(excess) <= qp.rounding_error(z) / 8
            done |= high - low <= 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
            if done.all():
                break
            with np.errstate(all="ignore"):
                new = b + excess / slope
                middle = np.where(np.isinf(low) | np.isinf(high), b + np.sign(excess) * reach, (low + high) / 2)
            reach = 2 * reach
            b = np.where(done, b, np.where((new > low) & (new < high), new, middle))
        assert z is not None
        return self.restore_totals(z, S), b

    def slopes(self, z: Array) -> Array:
        """Return S = 1 / E, by how much a minimiser z falls as its linear term rises; 0 at a bound.

        Parameters
        ----------
        z : ndarray
            The minimisers (n,).

        Returns
        -------
        ndarray
            S, (n,).
        """
        qp = self.quadratic
        with np.errstate(divide="ignore"):
            return np.where((z > qp.lower) & (z < qp.upper), 1 / self.curvature(z), 0.0)

    def restore_totals(self, z: Array, S: Array) -> Array:
        """Return z with its totals corrected, by changes in proportion to S where z is between the bounds.

        Parameters
        ----------
        z, S : ndarray
            The variables, and how far each may move relative to the others (n,).

        Returns
        -------
        ndarray
            The changed copy, between the bounds.
        """
        qp = self.quadratic
        if not len(qp.total):
            return z
        for _ in range(4):
            excess = np.bincount(qp.group, z, len(qp.total)) - qp.total
            slope = np.bincount(qp.group, S, len(qp.total))
            if (np.abs(excess) <= qp.rounding_error(z) / 8).all():
                break
            share = np.divide(excess, slope, out=np.zeros_like(slope), where=slope > 0)
            z = np.clip(z - share[qp.group] * S, qp.lower, qp.upper)
        return z

    def gap(self, Kz: Array, z: Array, b: Array) -> float:
        """Return the duality gap, sum_i of h_i(z_i) + z_i f_i - min_v (h_i(v) + v f_i) with f = K z + b.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients of the points (m,), and the variables (n,).
        b : ndarray
            The multiplier of each group.

        Returns
        -------
        float
            The gap; no term is negative.
        """
        qp = self.quadratic
        f = Kz[qp.point] + (b[qp.group] if len(b) else 0.0)
        best = self.minimisers(f, z)
        if np.isinf(best).any():
            return np.inf
        fall = self._phi("value", z) - self._phi("value", best)
        fall += (z - best) * (0.5 * qp.diagonal * (z + best) + qp.p + f)
        return float(np.maximum(fall, 0.0).sum())

    def certificate(self, Kz: Array, z: Array, *, tol: float, is_psd: bool | None = None) -> Certificate:
        """Certify a point: the dual is D = -W, the primal P = D + gap.

        Parameters
        ----------
        Kz, z : ndarray
            The product of K and the coefficients of the points (m,), and the variables (n,).
        tol : float
            The largest violation of an optimal point.
        is_psd : bool, optional
            Whether K is known to be positive semi-definite.

        Returns
        -------
        Certificate
            What is known about z.
        """
        qp = self.quadratic
        W, (bs, violation) = self.value(Kz, z), self.multipliers(self.gradient(Kz, z), z)
        outside = qp.infeasibility(z)
        status = find_status(W, outside, violation, tol, is_psd, qp.rounding_error(z))
        b = (bs if len(bs) > 1 else float(bs[0])) if len(bs) else None
        if status in ("infeasible", "diverged"):
            return Certificate(W, outside, violation, b, None, None, None, status, tol)
        gap = self.gap(Kz, z, bs)
        return Certificate(W, outside, violation, b, gap - W, -W, gap, status, tol)

    def is_barrier(self) -> bool:
        """Whether phi keeps variables off a bound, by an infinite gradient there, and is strictly convex.

        Strictly convex means that the curvature E, sampled between the bounds, nowhere is far below its mean. Then the
        minimisers are smooth functions of their linear terms.

        Returns
        -------
        bool
            Whether it is so for each variable whose bounds differ.
        """
        qp = self.quadratic
        movable = qp.upper > qp.lower
        with np.errstate(all="ignore"):
            ends = [np.isfinite(end) & ~np.isfinite(self.phi.gradient(end)) for end in (qp.lower, qp.upper)]
        if not (ends[0] | ends[1])[movable].all():
            return False
        lower = np.where(np.isfinite(qp.lower), qp.lower, qp.upper - 10.0)
        upper = np.where(np.isfinite(qp.upper), qp.upper, lower + 10.0)
        samples = np.array([self.curvature(lower + u * (upper - lower)) for u in _POSITIONS])[:, movable]
        return bool((samples.min(axis=0) > _LEAST_CURVATURE * samples.mean(axis=0)).all())
