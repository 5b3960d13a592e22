"""LagrangianDual: a quadratic dual with its bounds and its equality relaxed, over their multipliers.

The quadratic duals in the notation of seed 002, of classifiers (Q = yy'K, q = -1, a = y) and of regressions
(Q = [K -K; -K K], q = [-y; y] + epsilon, a = [1; -1]), are

    minimise 1/2 alpha.Q alpha + q.alpha    subject to    0 <= alpha <= ub,    a.alpha = c

Relaxing both kinds of constraints leaves a minimum over all alpha, a linear system, and a maximum over multipliers:

    maximise over mu free, lam+ >= 0, lam- >= 0    phi = min over alpha of  L(alpha, mu, lam+, lam-)

For a regular Q this is the primal again: b = -mu, the slacks are lam+, and -phi = 1/2 |theta|^2 + ub.lam+. For a
singular Q, phi is minus infinity unless the right-hand side of the system lies in the range of Q. The least-squares
solution, which the seed takes, restricts alpha to that range: a different problem, whose alpha is dense, and for a
linear kernel and classes that overlap alpha = 0 is its only solution. A small ridge keeps the problem: see the class.
"""

from dataclasses import dataclass, field

import numpy as np
import pytensor
from pytensor.gradient import disconnected_grad

from symsvm._lib.validation import count, number
from symsvm.graphs.minres import minres
from symsvm.objectives.certificate import Certificate
from symsvm.objectives.objective import Objective
from symsvm.objectives.quadratic_program import QuadraticProgram

__all__ = ["LagrangianDual", "Recovery", "lagrangian", "right_hand_side"]


def lagrangian(alpha, mu, lam_plus, lam_minus, Q, q, A, ub, c=0.0):
    """L = 1/2 alpha.Q alpha + q.alpha - mu.(A alpha - c) - lam+.(ub - alpha) - lam-.alpha (Eq. 002:1.24, 002:1.31).

    A has a row an equality; without rows it is the Lagrangian of a bias that is embedded (Eq. 002:1.31). The gradient
    in mu, lam+ and lam- is A alpha - c with its sign turned, alpha - ub and -alpha (Eq. 002:1.27, 002:1.28, 002:1.29).
    """
    quadratic = 0.5 * alpha @ (Q @ alpha) + (q * alpha).sum()
    return quadratic - (mu * (A @ alpha - c)).sum() - (lam_plus * (ub - alpha)).sum() - (lam_minus * alpha).sum()


def right_hand_side(mu, lam_plus, lam_minus, q, A):
    """r = -(q - A'mu + lam+ - lam-), for which Q alpha = r makes L stationary in alpha (Eq. 002:1.25, 002:1.26)."""
    return -(q - A.T @ mu + lam_plus - lam_minus)


@dataclass(frozen=True)
class Recovery(Certificate):
    """A `Certificate` with the point of the quadratic dual that was recovered from the multipliers.

    Attributes
    ----------
    z : the average of the alpha of the run, in the program's variables, moved into the bounds and onto the totals.
    infeasibility : how far the average was from them before, relative to the largest bound.
    violation : the greater of the infeasibility and the gap relative to P.
    W : the Lagrangian dual, minus phi.
    primal, dual, gap : of z.
    """

    z: np.ndarray = field(default=None, repr=False)


class LagrangianDual(Objective):
    """minimise W(v) = -phi(mu, lam+, lam-), lam+ and lam- >= 0, over v = (mu, lam+, lam-) (Eq. 002:1.24, 002:1.31).

    The inner linear system, (Q + ridge) alpha = r, is solved by minres, from scratch at each point. By Danskin's
    theorem the gradient of phi is that of L at that alpha; alpha is held constant, and `pytensor.grad` does the rest.
    alpha itself is infeasible until the multipliers are right. Its average along the run tends to the solution, and the
    certificate judges what is recovered from it by the machine's own gap.

    Parameters
    ----------
    program : a `QuadraticProgram` whose bounds are 0 on one side, such as `csvc(y, C)` or `svr(y, C, epsilon)`
        (Eq. 002:1.16, 002:2.15); with `intercept=False` and K + 1 the bias is embedded (Eq. 002:1.23).
    K : the Gram matrix (m, m), positive semi-definite. `symsvm.relax` computes it.
    ridge : added to the diagonal of Q, which costs at most ridge / 2 |alpha|^2: by default a hundredth of mean |q| /
        mean ub, about one per cent of P(0). A smaller one costs less and converges more slowly. With 0 the system is
        solved in the least-squares sense (Eq. 002:1.30).
    inner : steps of minres.
    """

    problem = "lagrangian"
    is_smooth = False  # as good as: its curvature is that of the inverse of Q

    def __init__(self, program, K, *, ridge=None, inner=100):
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
            ridge = 0.01 * np.abs(q).mean() / (ub[self.bounded].mean() if self.bounded.any() else np.inf)
        self.ridge, self.inner = number(ridge, "ridge"), min(count(inner, "inner", least=1), n)
        if self.ridge < 0:
            raise ValueError(f"ridge must be at least 0, got {ridge!r}.")
        Q = np.outer(self.sign, self.sign) * K[np.ix_(program.point, program.point)]
        Q[np.diag_indices(n)] += program.diagonal + self.ridge
        A = (program.group == np.arange(groups)[:, None]) * self.sign
        v = pytensor.shared(np.zeros(groups + 2 * n), name="v")
        Q, q, A, ub, c = (
            pytensor.shared(a, name=name)
            for a, name in ((Q, "Q"), (q, "q"), (A, "A"), (np.where(self.bounded, ub, 0.0), "ub"), (program.total, "c"))
        )
        mu, lam_plus, lam_minus = v[:groups], v[groups : groups + n], v[groups + n :]
        r = right_hand_side(mu, lam_plus, lam_minus, q, A)
        alpha = minres(lambda d: Q @ d, r, self.inner) if self.ridge else _least_squares(Q, r, self.inner)
        W = -lagrangian(disconnected_grad(alpha), mu, lam_plus, lam_minus, Q, q, A, ub, c)
        lower = np.concatenate([np.full(groups, -np.inf), np.zeros(2 * n)])
        upper = np.full(groups + 2 * n, np.inf)
        upper[groups : groups + n][~self.bounded] = 0.0  # no bound, no multiplier
        super().__init__(W, v, pytensor.shared(lower, name="lower"), pytensor.shared(upper, name="upper"))
        self.is_convex = True

    def certifier(self, lower, upper, equality, tol):
        """A function (v, W, g) -> `Recovery` for the points of one run, which averages their alpha."""
        average, seen = np.zeros(self.program.n), 0

        def certify(v, W, g):
            nonlocal seen
            seen += 1
            average[:] += 2 / (seen + 1) * (g[-self.program.n :] - average)  # with the weights 1, 2, 3, ...
            return self._recovery(average, W, tol)

        return certify

    def certificate(self, v, W, g, lower, upper, equality, *, tol):
        """Certify what is recovered from the alpha at v, which is the last part of the gradient (Eq. 002:1.29)."""
        return self._recovery(np.asarray(g)[-self.program.n :], W, tol)

    def _recovery(self, alpha, W, tol):
        program, z = self.program, self.sign * alpha
        if not np.isfinite(W) or not np.isfinite(z).all():
            return Recovery(float(W), np.inf, np.inf, None, None, None, None, "diverged", tol)
        outside = program.infeasibility(z) / self._scale
        z = program.start(z)
        dual = program.certificate(self.K @ program.weights(z), z, tol=tol, is_psd=True)
        if dual.gap is None:
            return Recovery(float(W), outside, np.inf, dual.b, None, None, None, "infeasible", tol, z)
        violation = max(outside, dual.gap / max(abs(dual.primal), np.finfo("float64").tiny))
        word = "optimal" if violation <= tol else "infeasible" if outside > tol else "feasible"
        return Recovery(float(W), outside, violation, dual.b, dual.primal, dual.dual, dual.gap, word, tol, z)

    def __repr__(self):
        return f"LagrangianDual({self.program.n} variables, ridge={self.ridge:.3g}, inner={self.inner})"


def _least_squares(Q, r, steps):
    """The shortest alpha with the least |r - Q alpha|, by minres on Q Q alpha = Q r, which has solutions."""
    return minres(lambda d: Q @ (Q @ d), Q @ r, steps)
