"""Gradient descent: the plain method, for risks whose loss is smooth."""

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import number
from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["GradientDescent"]


class GradientDescent:
    """Step against the gradient, by 1 / L.

        lam_k+1 = lam_k - grad W(lam_k) / L

    With a Lipschitz constant L of the gradient, W(lam_k+1) <= W(lam_k) - |grad W|^2 / (2 L), and where W is strongly
    convex with the constant c, W - W* falls by the factor 1 - c / L a step. Where L is not given, the promise

        W(lam_k+1) <= W(lam_k) + g.h + L/2 |h|^2,    h = lam_k+1 - lam_k

    measures it: a step that breaks it is taken back and L doubled, after any other L falls by a tenth, for near the
    minimiser W may be flatter than elsewhere. W and its gradient are evaluated once a step.

    Parameters
    ----------
    alpha : the step size 1 / L, such as `1 / PrimalRisk.curvature`; None measures it.

    >>> from symsvm import compile
    >>> from symsvm.objectives import PrimalRisk
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> risk = PrimalRisk(X, y, loss="squared_hinge")
    >>> solution = compile(risk, GradientDescent(1 / risk.curvature), mode="FAST_COMPILE").run(tol=1e-6)
    >>> solution.certificate.status, solution.lam.round(3).tolist()
    ('optimal', [0.909, 0.182])
    """

    info = SolverInfo(
        name="gradient-descent",
        problems=("primal", "smooth"),
        backends=("numba", "jax"),
        equation="lam' = lam - grad W / L",
        reference="Cauchy 1847; seed 002 for the squared losses (Eq. 002:1.10, 002:2.7)",
        accuracy="tol; (1 - 1 / L)^k for a squared loss",
    )
    max_iter = 10000  # unless told
    takes_back = True  # also a step to where W is not finite

    def __init__(self, alpha=None):
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)

    @property
    def structure(self):
        """What its graphs depend on; the numbers are in the state."""
        return type(self), self.alpha is None

    def start(self):
        """Return the numbers of the state: W of the last kept lam, and L."""
        return (np.inf, 1.0 if self.alpha is None else 1 / self.alpha)

    def init(self, objective, lam):
        """The graphs of the vectors of the state: lam, and the last kept lam with its gradient."""
        if not getattr(objective, "is_smooth", True):
            raise ValueError(f"{objective!r} has a gradient that jumps: use 'adagrad' or 'qp', or a squared loss.")
        lam = objective.project(lam)
        return lam, lam, pt.zeros_like(lam)

    def step(self, objective, lam, lam0, g0, W0, L):
        """The graphs of the next state, and of W and its gradient at the present lam."""
        W, g = value_and_grad(objective.value, lam)
        if self.alpha is None:
            h = lam - lam0
            promised = W0 + (g0 * h).sum() + L / 2 * (h * h).sum()
            # What rounding does to W must not count as a broken promise.
            kept = pt.isinf(W0) | (W <= promised + 16 * _EPS[lam.dtype] * pt.abs(W0))
            L = pt.switch(kept, 0.9 * L, 2 * L)
        else:
            kept = pt.isfinite(W)
        lam0, g0, W0 = (pt.switch(kept, *pair) for pair in ((lam, lam0), (g, g0), (W, W0)))
        new = objective.project(lam0 - g0 / L)
        return tuple(v.astype(lam.dtype) for v in (new, lam0, g0, W0, L)), W, g

    def __repr__(self):
        return f"GradientDescent(alpha={self.alpha})"


_EPS = {"float64": 2.0**-52, "float32": 2.0**-23}
