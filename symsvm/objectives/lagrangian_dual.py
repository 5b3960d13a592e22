"""The Lagrangian dual of a quadratic dual: its bounds and its equality relaxed, over their multipliers.

In the notation of Meoli (2021), the quadratic duals of classifiers (Q = yy'K, q = -1, a = y) and of regressions
(Q = [K -K; -K K], q = [-y; y] + epsilon, a = [1; -1]) are

    minimise 1/2 alpha.Q alpha + q.alpha    subject to    0 <= alpha <= ub,    a.alpha = c

Relaxing both kinds of constraints leaves a minimum over all alpha, a linear system, and a maximum over multipliers:

    maximise over mu free, lam+ >= 0, lam- >= 0    phi = min over alpha of  L(alpha, mu, lam+, lam-)

For a regular Q this is the primal again: b = -mu, the slacks are lam+, and -phi = 1/2 |theta|^2 + ub.lam+. For a
singular Q, phi is minus infinity unless the right-hand side of the system lies in the range of Q. The least-squares
solution, which Meoli (2021) uses, restricts alpha to that range. That is a different problem: its alpha is dense, and
for a linear kernel and overlapping classes alpha = 0 is its only solution. A small ridge keeps the original problem:
see `LagrangianDual`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pytensor.gradient import disconnected_grad

from symsvm._lib.validation import count, number
from symsvm.graphs.minres import minres
from symsvm.objectives.certificate import Certificate
from symsvm.objectives.objective import Objective, shared_variables
from symsvm.objectives.quadratic_program import QuadraticProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Graph, Scalar

__all__ = ["LagrangianDual", "Recovery", "lagrangian", "right_hand_side"]

_RIDGE = 0.01  # of mean |q| / mean ub: then the ridge costs about one per cent of P(0)


def lagrangian(
    alpha: Graph,
    mu: Graph,
    lam_plus: Graph,
    lam_minus: Graph,
    Q: Graph,
    q: Graph,
    A: Graph,
    ub: Graph,
    c: Scalar = 0.0,
) -> Graph:
    """L = 1/2 alpha.Q alpha + q.alpha - mu.(A alpha - c) - lam+.(ub - alpha) - lam-.alpha (Eq. 002:1.24, 002:1.31).

    A has one row per equality; without rows it is the Lagrangian for an embedded bias (Eq. 002:1.31). Its gradient in
    mu, lam+ and lam- is -(A alpha - c), alpha - ub and -alpha (Eq. 002:1.27, 002:1.28, 002:1.29).
    """
    quadratic = 0.5 * alpha @ (Q @ alpha) + (q * alpha).sum()
    return quadratic - (mu * (A @ alpha - c)).sum() - (lam_plus * (ub - alpha)).sum() - (lam_minus * alpha).sum()


def right_hand_side(mu: Graph, lam_plus: Graph, lam_minus: Graph, q: Graph, A: Graph) -> Graph:
    """r = -(q - A'mu + lam+ - lam-); Q alpha = r makes L stationary in alpha (Eq. 002:1.25, 002:1.26)."""
    return -(q - A.T @ mu + lam_plus - lam_minus)


@dataclass(frozen=True)
class Recovery(Certificate):
    """A `Certificate` with the point of the quadratic dual that is recovered from the multipliers.

    Attributes
    ----------
    z : ndarray
        The average of the alpha of the run, in the program's variables, moved into the bounds and onto the totals.
    infeasibility : float
        The infeasibility of the average before it was moved, relative to the largest bound.
    violation : float
        The larger of the infeasibility and the gap relative to P.
    W : float
        The Lagrangian dual, minus phi.
    primal, dual, gap : float or None
        Those of z.
    """

    z: Array | None = field(default=None, repr=False)


class LagrangianDual(Objective):
    """Minimise W(v) = -phi(mu, lam+, lam-) over v = (mu, lam+, lam-), lam+ and lam- >= 0 (Eq. 002:1.24, 002:1.31).

    The inner linear system, (Q + ridge) alpha = r, is solved by minres at each point, starting from 0. By Danskin's
    theorem the gradient of phi is that of L at that alpha, with alpha held constant. alpha itself is infeasible until
    the multipliers are right. Its average along the run tends to the solution, and the certificate is that of the point
    recovered from the average: the duality gap of the machine.

    Parameters
    ----------
    program : QuadraticProgram
        A program whose bounds are 0 on one side, such as `QuadraticProgram.c_svc(y, C)` or
        `QuadraticProgram.svr(y, C, epsilon)` (Eq. 002:1.16, 002:2.15); with `intercept=False` and K + 1 the bias is
        embedded (Eq. 002:1.23).
    K : array_like
        The Gram matrix (m, m), positive semi-definite. `symsvm.relax` computes it.
    ridge : float, optional
        Added to the diagonal of Q; it increases W by at most half the ridge times the squared norm of alpha. By default
        a hundredth of the mean of abs(q) divided by the mean of ub, about one per cent of P(0). A smaller ridge is more
        accurate and converges more slowly. With 0 the system is solved in the least-squares sense (Eq. 002:1.30).
    inner : int
        The number of minres steps.

    Attributes
    ----------
    program, K, ridge, inner
        The arguments, checked.
    sign : ndarray
        The signs of the program's variables, z = sign alpha (n,).
    bounded : ndarray
        Whether alpha has an upper bound (n,).
    """

    problem = "lagrangian"
    is_smooth = False  # smooth, but its curvature is that of the inverse of Q: methods for nonsmooth problems suit it

    def __init__(
        self, program: QuadraticProgram, K: ArrayLike, *, ridge: float | None = None, inner: int = 100
    ) -> None:
        if not isinstance(program, QuadraticProgram):
            raise TypeError(
                f"program must be a QuadraticProgram such as QuadraticProgram.c_svc(y, C), got {program!r}."
            )
        K = np.asarray(K, dtype="float64")
        if K.shape != (program.m, program.m) or not np.isfinite(K).all():
            raise ValueError(f"K must be a finite matrix of {program.m} rows and columns, got the shape {K.shape}.")
        if ((program.lower != 0) & (program.upper != 0)).any():
            raise ValueError("every variable of the program needs a bound that is 0.")
        self.program, self.K = program, K
        self.sign = np.where(program.lower < 0, -1.0, 1.0)  # z = sign alpha
        n, groups = program.n, len(program.total)
        ub = np.maximum(program.upper, -program.lower)
        self.bounded = np.isfinite(ub)
        self._scale = float(np.max(ub, where=self.bounded, initial=0.0)) or 1.0
        q = self.sign * program.p
        if ridge is None:
            ridge = _RIDGE * np.abs(q).mean() / (ub[self.bounded].mean() if self.bounded.any() else np.inf)
        self.ridge, self.inner = number(ridge, "ridge"), min(count(inner, "inner", least=1), n)
        if self.ridge < 0:
            raise ValueError(f"ridge must be at least 0, got {ridge!r}.")
        Q = np.outer(self.sign, self.sign) * K[np.ix_(program.point, program.point)]
        Q[np.diag_indices(n)] += program.diagonal + self.ridge
        A = (program.group == np.arange(groups)[:, None]) * self.sign
        (v,) = shared_variables(v=np.zeros(groups + 2 * n))
        ub = np.where(self.bounded, ub, 0.0)
        Q, q, A, ub, c = shared_variables(Q=Q, q=q, A=A, ub=ub, c=program.total)
        mu, lam_plus, lam_minus = v[:groups], v[groups : groups + n], v[groups + n :]
        r = right_hand_side(mu, lam_plus, lam_minus, q, A)
        alpha: Any = minres(lambda d: Q @ d, r, self.inner) if self.ridge else _least_squares(Q, r, self.inner)
        W = -lagrangian(cast("Graph", disconnected_grad(alpha)), mu, lam_plus, lam_minus, Q, q, A, ub, c)
        lower = np.concatenate([np.full(groups, -np.inf), np.zeros(2 * n)])
        upper = np.full(groups + 2 * n, np.inf)
        upper[groups : groups + n][~self.bounded] = 0.0  # a variable without a bound has no multiplier
        super().__init__(W, v, *shared_variables(lower=lower, upper=upper))
        self.is_convex = True

    def certifier(self, lower: Any, upper: Any, equality: Any, tol: float) -> Callable[..., Recovery]:
        # For the average of the alpha of the run, with the weights 1, 2, 3, ...
        average, count = np.zeros(self.program.n), 0

        def certify(v: Array, W: float, g: Array) -> Recovery:
            nonlocal count
            count += 1
            average[:] += 2 / (count + 1) * (g[-self.program.n :] - average)
            return self._recover(average, W, tol)

        return certify

    def certificate(
        self, v: Array, W: float, g: Array, lower: Any, upper: Any, equality: Any, *, tol: float
    ) -> Recovery:
        # For the alpha at v, which is the last part of the gradient (Eq. 002:1.29).
        return self._recover(np.asarray(g)[-self.program.n :], W, tol)

    def _recover(self, alpha: Array, W: float, tol: float) -> Recovery:
        """Move alpha into the feasible set and certify it."""
        program, z = self.program, self.sign * alpha
        if not np.isfinite(W) or not np.isfinite(z).all():
            return Recovery(float(W), np.inf, np.inf, None, None, None, None, "diverged", tol)
        outside = program.infeasibility(z) / self._scale
        z = program.start(z)
        dual = program.certificate(self.K @ program.weights(z), z, tol=tol, is_psd=True)
        if dual.gap is None:
            return Recovery(float(W), outside, np.inf, dual.b, None, None, None, "infeasible", tol, z)
        assert dual.primal is not None
        violation = max(outside, dual.gap / max(abs(dual.primal), np.finfo("float64").tiny))
        status = "optimal" if violation <= tol else "infeasible" if outside > tol else "feasible"
        return Recovery(float(W), outside, violation, dual.b, dual.primal, dual.dual, dual.gap, status, tol, z)

    def __repr__(self) -> str:
        return f"LagrangianDual({self.program.n} variables, ridge={self.ridge:.3g}, inner={self.inner})"


def _least_squares(Q: Graph, r: Graph, steps: int) -> Graph:
    """Return the shortest least-squares solution of Q alpha = r, by minres on Q Q alpha = Q r, which has solutions."""
    return minres(lambda d: Q @ (Q @ d), Q @ r, steps)
