"""AdaGrad: one step size per coordinate, for objectives that need not be smooth."""

# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
# pyright: reportAssignmentType=false
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

__all__ = ["AdaGrad"]

_FIRST = 1e-3  # the first distance, relative to the start
_FLAT = 1e-6  # the least metric of a coordinate, relative to the largest: its slope may have been 0 so far
_TINY = 2.0**-100  # the least metric where all slopes have been 0


class AdaGrad(Solver):
    """Step against a subgradient, each coordinate divided by the root of its summed squared slopes (Eq. 002:1).

    ::

        s_t    = s_t-1 + (w_t g_t)^2,    g_t a subgradient of W at lam_t
        x_t+1  = project(x_t - alpha w_t g_t / sqrt(s_t)),    in the metric sqrt(s_t) / alpha
        lam_t+1 = the average of x_1, ..., x_t+1 with the weights w_t = t, or x_t+1 alone where W is smooth

    The projection is in the metric of the step: with an equality, the Euclidean one converges to a wrong point.

    Each step evaluates W and its subgradient once, at the average, so the certificate is of the average. For every
    convex W, smooth or not, W(lam_T) - W* <= 2 / T^2 (the regret of x), and with alpha_i = D_i / sqrt(2), D_i the width
    of the feasible set, the regret is at most sqrt(2) sum_i D_i sqrt(s_iT). So the known bounds give the step size, and
    W - W* falls at least as 1 / sqrt(T) (Cutkosky, 2019; Duchi et al., 2011).

    Parameters
    ----------
    alpha : float, optional
        The step size. None takes D_i / sqrt(2); where the feasible set is unbounded, the largest distance from the
        start so far replaces D_i (Ivgi et al., 2023), and the bound holds up to a logarithm.
    average : bool, optional
        False gives the plain method of Meoli (2021), lam = x and w = 1, which converges where W is smooth; where it is
        not, only averages are known to converge. None averages where W has kinks (`is_smooth` is False).

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and stochastic optimization, JMLR
    12 (2011).
    A. Cutkosky, Anytime online-to-batch, optimism and acceleration, ICML 2019.
    M. Ivgi, O. Hinder, Y. Carmon, DoG is SGD's best friend, ICML 2023.

    Examples
    --------
    >>> from symsvm import Objective, compile
    >>> lam = pt.vector("lam")
    >>> objective = Objective(((lam - np.array([3.0, 0.5])) ** 2).sum(), lam, upper=2.0, is_convex=True)
    >>> solution = compile(objective, AdaGrad(), mode="FAST_COMPILE").run([0.0, 0.0])
    >>> solution.lam.round(2).tolist()
    [2.0, 0.5]
    """

    info = SolverInfo(
        name="adagrad",
        problems=("primal", "lagrangian", "dual", "smooth"),
        backends=("numba", "jax"),
        equation="x' = project(x - alpha t g / sqrt(s)) in the metric sqrt(s), s = sum (t g)^2; lam averages x",
        reference="Duchi, Hazan and Singer (2011); Cutkosky (2019); Eq. 002:1",
        accuracy="tol where W is smooth; else a gap of 1e-2 relative to P in some thousand steps, as 1 / sqrt(T)",
    )
    max_iter = 10000

    def __init__(self, alpha: float | None = None, *, average: bool | None = None) -> None:
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)
        self.average = None if average is None else bool(average)

    @property
    def structure(self) -> Hashable:
        return type(self), self.alpha is None, self.average

    # The state: lam; x; the start; s; alpha, or the largest distance from the start so far; t.
    def start(self) -> tuple[float, ...]:
        return (0.0 if self.alpha is None else self.alpha, 1.0)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        lam = objective.project(lam)
        return lam, lam, lam, pt.zeros_like(lam)

    def step(self, objective: Objective, lam: Graph, x: Graph, start: Graph, s: Graph, alpha: Graph, t: Graph) -> Any:
        W, g = value_and_grad(objective.value, lam)
        average = not getattr(objective, "is_smooth", True) if self.average is None else self.average
        slope = t * g if average else g
        s = s + slope**2
        root = pt.sqrt(s)
        # In a metric of 0 the projection could move a coordinate, whose slope has been 0 so far, at no cost.
        root = pt.maximum(root, _FLAT * root.max() + _TINY)
        if self.alpha is None:
            far = _FIRST * (1 + pt.max(pt.abs(start)))
            alpha = pt.maximum(pt.maximum(alpha, far), pt.max(pt.abs(x - start)))
            width = (objective.upper - objective.lower) / np.sqrt(2)
            steps = pt.switch(pt.isinf(width), alpha, pt.maximum(width, _TINY)) / root
        else:
            steps = alpha / root
        x = objective.project(x - steps * slope, steps)
        new = lam + (x - lam) * (2 / (t + 2)) if average else x
        state = (new, x, start, s, alpha, t + 1)
        return tuple(v.astype(lam.dtype) for v in state), W, g

    def __repr__(self):
        return f"AdaGrad(alpha={self.alpha}, average={self.average})"
