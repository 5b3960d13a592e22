"""Accelerated projected gradient: FISTA with adaptive restart and backtracking."""

# pyright: reportOperatorIssue=false, reportReturnType=false, reportAssignmentType=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver import Solver, SolverInfo

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["AcceleratedGradient"]

_SHORT = 2.0**-10  # the first step moves no coordinate by more than this share of the largest one, or of 1
_TINY = 2.0**-100  # keeps L positive where the gradient is 0


class AcceleratedGradient(Solver):
    """Step against the gradient at an extrapolated point, then project onto the feasible set.

    ::

        x_k+1   = project(lam_k - grad W(lam_k) / L)
        lam_k+1 = project(x_k+1 + (t_k - 1) / t_k+1 (x_k+1 - x_k)),    t_k+1 = (1 + sqrt(1 + 4 r t_k^2)) / 2

    Each step evaluates W and its gradient once, at lam, which is feasible and the point that is certified. FISTA's
    proof allows the projection of the extrapolated point: the point enters it only by its distance to feasible points,
    and a projection brings it nearer to each of them. So W - W* falls as 1 / k^2 for every convex W, quadratic or not.

    The step size 1 / L must satisfy a descent condition. With x = x_k+1, h = x - lam_k, and g and g' the gradients at
    lam_k and lam_k+1, it is ::

        W(lam_k+1) + g'.(x - lam_k+1) <= W(lam_k) + g.h + L/2 |h|^2

    The left side is a tangent, which lies below W. So the condition holds for every convex W whose gradient has the
    Lipschitz constant L, and the proof needs no more than that: no evaluation at x. A step that violates it is taken
    back, with its momentum, and L rises to the curvature that was found. Otherwise L falls by the factor r, since W is
    often flatter on the active constraints of the optimum than elsewhere. The first L is the curvature along a first,
    short step. Where x_k+1 - x_k points against the step, the momentum restarts (t = 1).

    There are no parameters to set.

    References
    ----------
    A. Beck, M. Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sciences 2 (2009).
    B. O'Donoghue, E. Candes, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15 (2015).
    K. Scheinberg, D. Goldfarb, X. Bai, Fast first-order methods for composite convex optimization with backtracking,
    Found. Comput. Math. 14 (2014): the rule of t where L falls.

    Examples
    --------
    >>> from symsvm import Objective, compile
    >>> lam = pt.vector("lam")
    >>> W = ((lam - np.array([3.0, 1.0])) ** 2).sum()
    >>> objective = Objective(W, lam, upper=1.5, equality=(np.array([1.0, -1.0]), 0.0), is_convex=True)
    >>> solution = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run([0.0, 0.0])
    >>> print(solution.certificate.status, solution.lam)
    optimal [1.5 1.5]
    """

    info = SolverInfo(
        name="accelerated-gradient",
        problems=("dual", "smooth"),
        backends=("numba", "jax"),
        equation="x <- project(lam - grad W(lam) / L), lam <- project(x + (t - 1) / t' (x - x_old))",
        reference="Beck and Teboulle (2009); O'Donoghue and Candes (2015)",
        accuracy="a KKT violation of tol; W - W* falls as 1 / k^2",
    )
    backtracks = True

    @property
    def structure(self) -> Hashable:
        return (type(self),)

    # The state: lam; x, whose step is checked at lam; the last accepted lam0 with its x0 and gradient g0; W0 and t0 of
    # lam0; t and L; the number of violated conditions. t = -1 before the first, short step, and t = 0 when its
    # curvature is measured.
    def start(self) -> tuple[float, ...]:
        return (np.inf, -1.0, -1.0, 1.0, 0.0)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        lam = objective.project(lam)
        return lam, lam, lam, lam, pt.zeros_like(lam)

    def step(
        self,
        objective: Objective,
        lam: Graph,
        x: Graph,
        lam0: Graph,
        x0: Graph,
        g0: Graph,
        W0: Graph,
        t0: Graph,
        t: Graph,
        L: Graph,
        violated: Graph,
    ) -> Any:
        W, g = value_and_grad(objective.value, lam)
        excess, h2 = _excess(lam, W, g, x, lam0, W0, g0, L)
        accepted = (t < 0) | (pt.isfinite(W) & (excess <= L / 2 * h2))
        violated = pt.switch(accepted, violated, violated + 1)
        r = 1 - 1 / (32 + 4 * violated)
        L = _curvature(lam, g, x, lam0, g0, t, L, r, accepted, 2 * excess / pt.switch(h2 > 0, h2, 1.0))
        # If the slope falls between the two points, W is not convex there: without the momentum some L is large enough.
        concave = ((g - g0) * (lam - lam0)).sum() < 0
        t0 = pt.switch(accepted, t, pt.switch(concave, pt.minimum(t0, 1.0), t0))
        lam0, x0, g0, W0 = (pt.switch(accepted, *pair) for pair in ((lam, lam0), (x, x0), (g, g0), (W, W0)))
        x = objective.project(lam0 - g0 / L)
        # (lam0 - x) L is the gradient where there are no bounds, and what is left of it at the bounds.
        restart = ((lam0 - x) * (x - x0)).sum() > 0
        t = pt.switch(t0 < 1, t0 + 1, pt.switch(restart, 1.0, (1 + pt.sqrt(1 + 4 * r * t0**2)) / 2))
        momentum = pt.switch((t0 < 1) | restart, 0.0, (t0 - 1) / pt.maximum(t, 1.0))
        lam = _project_extrapolated(objective, x + momentum * (x - x0))
        state = (lam, x, lam0, x0, g0, W0, t0, t, L, violated)
        return tuple(v.astype(lam.dtype) for v in state), W, g

    def __repr__(self):
        return "AcceleratedGradient()"


def _excess(lam: Graph, W, g, x, lam0, W0, g0, L) -> tuple[Graph, Graph]:
    """How far the tangent at lam lies above the tangent at lam0, both at x; and |h|^2, h = x - lam0.

    Where the difference of two W is small against them, rounding spoils it. The trapezoidal rule along the gradients
    replaces it there: exact for a quadratic W, else up to third order in a step that is then short.
    """
    h, ahead, change = x - lam0, x - lam, g - g0
    h2 = (h * h).sum()
    by_values = W + (g * ahead).sum() - (W0 + (g0 * h).sum())
    by_slopes = ((change * h).sum() + (change * ahead).sum()) / 2
    return pt.switch(L / 2 * h2 > 64 * float(np.finfo(lam.dtype).eps) * pt.abs(W), by_values, by_slopes), h2


def _curvature(lam: Graph, g, x, lam0, g0, t, L, r, accepted, found) -> Graph:
    """The next L: the curvature `found` if L was too small, else L lowered by the factor r; at first, measured."""
    short = _SHORT * (1 + pt.max(pt.abs(lam)))
    first = pt.max(pt.abs(g)) / short + _TINY  # moves no coordinate by more than `short`
    h = x - lam0
    h2 = (h * h).sum()
    measured = ((g - g0) * h).sum() / pt.switch(h2 > 0, h2, 1.0)
    risen = pt.switch(found < 10 * L, pt.maximum(found, 2 * L), 10 * L)  # also where W is not finite
    lower = pt.switch(t < 1, pt.maximum(measured, L * _SHORT**2), r * L)
    return pt.switch(t < 0, first, pt.switch(accepted, lower, risen))


def _project_extrapolated(objective: Objective, v: Graph) -> Graph:
    """The projection of an extrapolated point, which satisfies the equality: itself, bit by bit, if feasible."""
    is_feasible = pt.all((v >= objective.lower) & (v <= objective.upper))
    if objective.inequality is not None:
        G, h = objective.inequality
        is_feasible &= pt.all(G @ v <= h)
    return pt.switch(is_feasible, v, objective.project(v))
