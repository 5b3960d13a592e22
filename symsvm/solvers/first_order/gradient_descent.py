"""Gradient descent, for risks whose loss is smooth."""

# pyright: reportOperatorIssue=false, reportReturnType=false, reportAssignmentType=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import number
from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver import Solver, SolverInfo

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["GradientDescent"]


class GradientDescent(Solver):
    """Step against the gradient, with the step size 1 / L.

    ::

        lam_k+1 = lam_k - grad W(lam_k) / L

    With a Lipschitz constant L of the gradient, W(lam_k+1) <= W(lam_k) - |grad W|^2 / (2 L), and where W is strongly
    convex with the constant c, W - W* falls by the factor 1 - c / L in each step. Where L is not given, the
    descent condition ::

        W(lam_k+1) <= W(lam_k) + g.h + L/2 |h|^2,    h = lam_k+1 - lam_k

    finds it: a step that violates the condition is taken back and L doubled; after any other step L falls by a tenth,
    since W may be flatter near the minimiser than elsewhere. Each step evaluates W and its gradient once.

    Parameters
    ----------
    alpha : float, optional
        The step size 1 / L, such as `1 / PrimalRisk.curvature`; None finds it.

    Examples
    --------
    >>> from symsvm import compile
    >>> from symsvm.objectives import PrimalRisk
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> risk = PrimalRisk(X, y, loss="squared_hinge")
    >>> solution = compile(risk, GradientDescent(1 / risk.curvature), mode="FAST_COMPILE").run(tol=1e-6)
    >>> solution.certificate.status, solution.w.round(3).tolist()
    ('optimal', [0.909, 0.182])
    """

    info = SolverInfo(
        name="gradient-descent",
        problems=("primal", "smooth"),
        backends=("numba", "jax"),
        equation="lam' = lam - grad W / L",
        reference="Cauchy (1847); Meoli (2021) for the squared losses (Eq. 002:1.10, 002:2.7)",
        accuracy="tol; (1 - 1 / L)^k for a squared loss",
    )
    max_iter = 10000
    backtracks = True

    def __init__(self, alpha: float | None = None) -> None:
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)

    @property
    def structure(self) -> Hashable:
        return type(self), self.alpha is None

    # The state: lam; the last accepted lam0 and its gradient g0; W0 of lam0; L.
    def start(self) -> tuple[float, ...]:
        return (np.inf, 1.0 if self.alpha is None else 1 / self.alpha)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        if not getattr(objective, "is_smooth", True):
            raise ValueError(f"{objective!r} has a gradient that jumps: use 'adagrad' or 'qp', or a squared loss.")
        lam = objective.project(lam)
        return lam, lam, pt.zeros_like(lam)

    def step(self, objective: Objective, lam: Graph, lam0: Graph, g0: Graph, W0: Graph, L: Graph) -> Any:
        W, g = value_and_grad(objective.value, lam)
        if self.alpha is None:
            h = lam - lam0
            bound = W0 + (g0 * h).sum() + L / 2 * (h * h).sum()
            # The rounding of W must not count as a violation.
            accepted = pt.isinf(W0) | (W <= bound + 16 * float(np.finfo(lam.dtype).eps) * pt.abs(W0))
            L = pt.switch(accepted, 0.9 * L, 2 * L)
        else:
            accepted = pt.isfinite(W)
        lam0, g0, W0 = (pt.switch(accepted, *pair) for pair in ((lam, lam0), (g, g0), (W, W0)))
        new = objective.project(lam0 - g0 / L)
        return tuple(v.astype(lam.dtype) for v in (new, lam0, g0, W0, L)), W, g

    def __repr__(self):
        return f"GradientDescent(alpha={self.alpha})"
