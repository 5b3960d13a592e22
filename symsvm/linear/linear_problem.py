"""A linear support vector machine as an optimisation problem: its dual, its optimality conditions and its gap.

::

    (P)   minimise  R(u) + sum_i L_i(t_i - f_i),      f = X w + s b,    u = (w, b)

Every loss here is the conjugate of one family, with r = t - f, bounds lower <= 0 <= upper, D >= 0 and epsilon >= 0::

    L(r) = max over lower <= z <= upper of   h(z) = z r - epsilon |z| - 1/2 D z^2

    hinge                  C max(0, 1 - y f)                t = y    0 <= y z <= C     D = 0           epsilon = 0
    squared hinge          C max(0, 1 - y f)^2              t = y    0 <= y z          D = 1 / (2 C)   epsilon = 0
    epsilon-insensitive    C max(0, |y - f| - epsilon)      t = y    -C <= z <= C      D = 0
    its square             C max(0, |y - f| - epsilon)^2    t = y                      D = 1 / (2 C)

C is C_i, one for each point; a point with C_i = 0 has lower = upper = 0. With v = (X'z, s sum z) the duals are ::

    l2, R = 1/2 |u|^2    maximise sum_i (t_i z_i - epsilon |z_i| - 1/2 D_i z_i^2) - 1/2 |v|^2
    l1, R = |u|_1        maximise sum_i (t_i z_i - epsilon |z_i| - 1/2 D_i z_i^2)   subject to |v_j| <= 1

over lower <= z <= upper. R and the norm of v exclude an intercept that is not penalised, which adds sum z = 0. For any
u and any feasible z the gap is a sum of terms that are at least 0::

    P - D = 1/2 |u - v|^2 + sum_i (L_i(r_i) - h_i(z_i))        l1: sum_j (|u_j| - u_j v_j) instead of 1/2 |u - v|^2,

so it is computed without cancellation. A pair (u, z) is optimal if u = v (l1: v_j = sign u_j, |v_j| <= 1 where u_j =
0) and each z_i maximises h_i. The violation is how far the slope of h_i at z_i, with f = [X s] v, points into the
bounds (l1: how far v of the unscaled z is from its condition), in units of the mean of max(0, |t_i| - epsilon): 1 for
labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.interior_variables import InteriorVariables
from symsvm.linear.measure import Assessment, Measure, balance_rule, measure_l2, regularisers
from symsvm.linear.newton_points import NewtonPoints, loss_derivatives
from symsvm.linear.rows import LOOP, Rows, inner
from symsvm.objectives.certificate import rounding_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.objectives.certificate import Certificate

__all__ = ["LOSSES", "LinearProblem", "Loss"]

Loss: TypeAlias = Literal["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]
LOSSES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")


@njit(**LOOP)
def _assess(t, f, fv, z, D, lower, upper, epsilon):
    """Return sum L, sum (t z - epsilon |z| - 1/2 D z^2), sum (L - h), and the largest violation at fv = [X s] v."""
    loss = dual = excess = worst = 0.0
    for i in range(len(t)):
        if lower[i] == upper[i]:
            continue
        r, a = t[i] - f[i], z[i]
        x = r - epsilon if r > epsilon else (r + epsilon if r < -epsilon else 0.0)
        best = upper[i] if x > 0 else (lower[i] if x < 0 else 0.0)
        if D[i] > 0:
            best = min(max(x / D[i], lower[i]), upper[i])
        # D z^2 as (D z) z: the square of a z as small as C can be is 0 in float64.
        loss += best * (r - 0.5 * (D[i] * best)) - epsilon * abs(best)
        dual += a * (t[i] - 0.5 * (D[i] * a)) - epsilon * abs(a)
        more = (best - a) * (r - 0.5 * (D[i] * (best + a))) - epsilon * (abs(best) - abs(a))
        excess += max(more, 0.0)
        G = D[i] * a - t[i] + fv[i]
        if a < upper[i]:
            worst = max(worst, -(G + (epsilon if a >= 0 else -epsilon)))
        if a > lower[i]:
            worst = max(worst, G + (epsilon if a > 0 else -epsilon))
    return loss, dual, excess, worst


class LinearProblem:
    """A linear support vector machine; the module's docstring states the problem.

    Parameters
    ----------
    rows : Rows
        The points, with the constant feature s.
    y : array_like
        Labels -1 and +1, or targets.
    C : array_like
        A number, or one for each point, at least 0.
    loss : str
        One of `LOSSES`.
    penalty : {"l2", "l1"}
        The regulariser R.
    epsilon : float
        The half width of the tube of the insensitive losses.
    free : bool
        Whether the intercept is not penalised.
    """

    def __init__(
        self,
        rows: Rows,
        y: ArrayLike,
        C: ArrayLike,
        *,
        loss: Loss,
        penalty: Literal["l2", "l1"] = "l2",
        epsilon: float = 0.0,
        free: bool = False,
    ) -> None:
        n = rows.n
        self.rows, self.penalty, self.free = rows, penalty, free
        self.loss: Loss = loss
        self.t = np.ascontiguousarray(y, dtype="float64")
        self.C = np.array(np.broadcast_to(np.asarray(C, dtype="float64"), n))
        self.squared = loss.startswith("squared")
        self.classifies = loss.endswith("hinge")
        self.epsilon = 0.0 if self.classifies else float(epsilon)
        self.used = self.C > 0
        most = np.where(self.used, np.inf, 0.0) if self.squared else self.C
        self.D = np.zeros(n)
        if self.squared:
            self.D[self.used] = 0.5 / self.C[self.used]
        self.lower, self.upper = -most, most.copy()
        if self.classifies:
            self.lower[self.t > 0], self.upper[self.t < 0] = 0.0, 0.0
        self.reg = np.ones(rows.d + 1)  # the weights of R
        if free:
            self.reg[-1] = 0.0
        self.unit, self.rounding = self._unit(), self._rounding()

    def _unit(self) -> float:
        if self.classifies:
            return 1.0
        t = self.t[self.used]
        if self.free:
            t = t - t.mean()
        return float(np.maximum(np.abs(t) - self.epsilon, 0.0).mean()) or float(np.abs(t).max()) or 1.0

    def _rounding(self) -> float:
        """The loss of residuals that are 0 but for rounding: targets that a constant, or w = 0, fits exactly."""
        if self.classifies:
            return 0.0
        residuals = 4 * np.finfo("float64").eps * np.abs(self.t)
        return float(self.C @ (residuals**2 if self.squared else residuals))

    @property
    def rarer_share(self) -> float:
        """The share of the rarer label; 1 for targets, and where there is one label only."""
        share = min(1.0, np.mean(self.t > 0), np.mean(self.t < 0)) if self.classifies else 1.0
        return float(share) or 1.0

    def newton_points(self) -> NewtonPoints:
        """Return what Newton's method asks of the points.

        Returns
        -------
        NewtonPoints
            The points.
        """
        return NewtonPoints(self)

    def interior_variables(self, *, whole: bool = True) -> InteriorVariables:
        """Return what the interior-point method asks of the points.

        Parameters
        ----------
        whole : bool
            Whether these are all points of the problem.

        Returns
        -------
        InteriorVariables
            The variables.
        """
        return InteriorVariables(self, whole=whole)

    @property
    def loss_parameters(self) -> tuple[Array, Array, Array, float]:
        """D, lower, upper and epsilon, as the compiled loops take them."""
        return self.D, self.lower, self.upper, self.epsilon

    def balance(self, z: Array) -> Array:
        """Return z with sum z = 0 if the intercept is free, else z itself.

        Variables between 0 and a bound move in proportion to their distance from it, and those at a bound stay there.
        If that is not enough, or there are no bounds, the variables of the sign with the larger sum are scaled down.
        That moves variables off their bounds, so a sum that is 0 but for rounding is not worth it.

        Parameters
        ----------
        z : ndarray
            A vector within its bounds.

        Returns
        -------
        ndarray
            The balanced vector.
        """
        excess = float(z.sum()) if self.free else 0.0
        rule = balance_rule(excess, self.sides(z, excess), len(z), squared=self.squared) if excess else None
        return z if rule is None else self.rebalanced(z, excess, *rule)

    def sides(self, z: Array, excess: float) -> tuple[float, float, float, float]:
        """Return what `balance_rule` decides by.

        Parameters
        ----------
        z : ndarray
            A vector within its bounds.
        excess : float
            The sum of z, or of a longer vector that it is a part of.

        Returns
        -------
        tuple of float
            The room of the variables between 0 and a bound, sum abs(z), and the sums of z with the sign of the excess
            and with the other.
        """
        sign = 1.0 if excess > 0 else -1.0
        room = 0.0 if self.squared else float(self._room(z, excess).sum())
        return room, float(np.abs(z).sum()), float(z[sign * z > 0].sum()), float(z[sign * z < 0].sum())

    def _room(self, z: Array, excess: float) -> Array:
        """How far each variable that is between 0 and a bound may move against the excess."""
        sign = 1.0 if excess > 0 else -1.0
        end = np.where(sign * z > 0, 0.0, self.lower if excess > 0 else self.upper)
        return np.where((z > self.lower) & (z < self.upper) & (z != 0), sign * (z - end), 0.0)

    def rebalanced(self, z: Array, excess: float, kind: str, factor: float) -> Array:
        """Return z after a `balance_rule`.

        Parameters
        ----------
        z : ndarray
            A vector within its bounds.
        excess : float
            The sum of z, or of a longer vector that it is a part of.
        kind, factor : str, float
            The rule.

        Returns
        -------
        ndarray
            The balanced vector.
        """
        if kind == "move":
            return np.clip(z - self._room(z, excess) * factor, self.lower, self.upper)
        return np.where((1.0 if excess > 0 else -1.0) * z > 0, z * factor, z)

    def combination(self, z: Array) -> Array:
        """Return v = (X'z, s sum z) of the balanced z.

        Parameters
        ----------
        z : ndarray
            A vector within its bounds.

        Returns
        -------
        ndarray
            The vector (d + 1,).
        """
        return self.rows.transposed(self.balance(z))

    def slack(self, z: Array) -> float:
        """Return the infeasibility of z that rounding explains: that of sum z = 0 for a free intercept.

        Parameters
        ----------
        z : ndarray
            A dual vector.

        Returns
        -------
        float
            The largest abs(sum z) that counts as 0.
        """
        return rounding_error(float(np.abs(z).sum()), len(z), "float64") if self.free else 0.0

    def measure(self, u: Array, z: Array, *, f: Array | None = None) -> tuple[Measure, Array]:
        """Measure how far a pair (u, z) is from the optimum, after z has become feasible.

        It is balanced for a free intercept and, for l1, scaled so that no entry of v exceeds 1.

        Parameters
        ----------
        u : ndarray
            The weights (w, b).
        z : ndarray
            The dual vector, within its bounds.
        f : ndarray, optional
            The values [X s] u, if they are known.

        Returns
        -------
        measure : Measure
            The objectives, the gap and the violations.
        z : ndarray
            The feasible z.
        """
        return self._measure(u, self.balance(z), self.rows.product(u) if f is None else f)

    @np.errstate(over="ignore", invalid="ignore")  # what exceeds float64 is "diverged"
    def _measure(self, u: Array, z: Array, f: Array) -> tuple[Measure, Array]:
        """See `measure`, for a balanced z."""
        rows, reg = self.rows, self.reg
        v = rows.transposed(z)
        if self.penalty == "l2":
            sums = self.assess(u, v, z, f=f)
            slack = self.slack(z)
            return measure_l2(reg, u, v, sums, self.unit, slack, self.rounding, free=self.free), z
        worst = float(np.max(np.where(u != 0, np.abs(reg * np.sign(u) - v), np.maximum(np.abs(v) - reg, 0.0))))
        scale = min(1.0, 1.0 / max(float(np.max(reg * np.abs(v))), 1e-300))
        z, v = scale * z, scale * v
        loss, dual, excess, _ = _assess(self.t, f, f, z, *self.loss_parameters)
        primal = inner(reg, np.abs(u)) + loss
        gap = inner(reg, np.maximum(np.abs(u) - u * v, 0.0)) + excess
        outside = self._outside(z)
        if self.free:
            outside = max(outside, abs(float(z.sum())))
        return Measure(primal, dual, gap, float(worst), outside, self.slack(z), self.rounding), z

    def _outside(self, z: Array) -> float:
        return float(max(0.0, np.max(self.lower - z), np.max(z - self.upper)))

    def assess(self, u: Array, v: Array, z: Array, *, f: Array | None = None) -> Assessment:
        """Return what the measure of a pair (u, z) with the l2 penalty asks of the points.

        Parameters
        ----------
        u, v : ndarray
            The weights, and those of z.
        z : ndarray
            The dual vector.
        f : ndarray, optional
            The values [X s] u, if they are known.

        Returns
        -------
        Assessment
            The sums and extremes.
        """
        f = self.rows.product(u) if f is None else f
        *_, same = regularisers(self.reg, u, v)
        fv = f if same else self.rows.product(np.where(self.reg > 0, v, u))  # with the free intercept of u
        loss, dual, excess, worst = _assess(self.t, f, fv, z, *self.loss_parameters)
        return Assessment(loss, dual, excess, worst, self._outside(z), float(z.sum()))

    def measure_dual(self, u: Array, z: Array, f: Array) -> tuple[float, float, float]:
        """Return P, the gap and the violation, as `measure` computes them, where u = v and the intercept is in R.

        Parameters
        ----------
        u : ndarray
            The weights v of z.
        z : ndarray
            The dual vector.
        f : ndarray
            The values [X s] u.

        Returns
        -------
        tuple of float
            P, the gap and the violation.
        """
        loss, _, excess, worst = _assess(self.t, f, f, z, *self.loss_parameters)
        return 0.5 * inner(u, u) + loss, excess, worst / self.unit

    def certificate(self, u: Array, z: Array, tol: float) -> Certificate:
        """Return the certificate of a pair (u, z), computed in float64 from the data, with W = -D.

        For l1 it uses z = L'(r) at u, since the z of a solution has been scaled.

        Parameters
        ----------
        u : ndarray
            The weights (w, b).
        z : ndarray
            The dual vector.
        tol : float
            The tolerance below which violation and relative gap make the pair optimal.

        Returns
        -------
        Certificate
            The certificate.
        """
        f = self.rows.product(u)
        if self.penalty == "l1":
            z = np.empty(self.rows.n)
            loss_derivatives(self.t - f, z, np.empty(self.rows.n), *self.loss_parameters)
            z = self.balance(z)
        # The z of a solution is balanced: the certificate is that of z as it is, and the measure of the run.
        return self._measure(u, z, f)[0].certificate(tol, float(u[-1]) if self.rows.s else None)
