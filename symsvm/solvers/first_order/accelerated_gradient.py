"""Accelerated projected gradient: FISTA with adaptive restart and a step size that is measured on the way."""

import numpy as np
import pytensor.tensor as pt

from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["AcceleratedGradient"]


class AcceleratedGradient:
    """Step against the gradient at a point ahead of the last one, and back onto the feasible set.

        x_k+1   = project(lam_k - grad W(lam_k) / L)
        lam_k+1 = project(x_k+1 + (t_k - 1) / t_k+1 (x_k+1 - x_k)),    t_k+1 = (1 + sqrt(1 + 4 r t_k^2)) / 2

    W and its gradient are evaluated once a step, at lam, which is feasible and the point that is certified. Projecting
    the point ahead takes nothing from FISTA's proof: it enters there by its distance to feasible points only, and a
    projection brings it nearer to each of them. So W - W* falls as 1 / k^2 for every convex W, quadratic or not.

    The step size 1 / L has to keep a promise. With x = x_k+1, h = x - lam_k, and g and g' the gradients at lam_k and
    lam_k+1, it is

        W(lam_k+1) + g'.(x - lam_k+1) <= W(lam_k) + g.h + L/2 |h|^2

    On the left is a tangent, which lies below W: it holds for every convex W with a gradient that has the Lipschitz
    constant L, and it is all that the proof asks of L, so no evaluation at x is needed. A step that breaks the promise
    is taken back, with the momentum that it had, and L rises to the curvature that was found; otherwise L falls by the
    factor r, for on the face of the feasible set where the steps end W is flatter than elsewhere. The first L is the
    curvature along a first, short step. Where x_k+1 - x_k points against the step, the momentum starts anew (t = 1).

    There are no parameters to set.

    References
    ----------
    A. Beck, M. Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sciences 2 (2009).
    B. O'Donoghue, E. Candes, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15 (2015).
    K. Scheinberg, D. Goldfarb, X. Bai, Fast first-order methods for composite convex optimization with backtracking,
    Found. Comput. Math. 14 (2014): the rule of t where L falls.

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
    takes_back = True  # also a step to where W is not finite

    @property
    def structure(self):
        """What its graphs depend on: nothing but the algorithm."""
        return (type(self),)

    def start(self):
        """Return the numbers of the state: W0 and t0 of the last kept lam; t, L; how often a promise was broken.

        t = -1 before the first step, which is short, and t = 0 when its curvature is measured.
        """
        return (np.inf, -1.0, -1.0, 1.0, 0.0)

    def init(self, objective, lam):
        """The graphs of the vectors of the state: lam; x, whose step is judged at lam; lam0, x0 and g0, the last kept
        lam, with its x and its gradient."""
        lam = objective.project(lam)
        return lam, lam, lam, lam, pt.zeros_like(lam)

    def step(self, objective, lam, x, lam0, x0, g0, W0, t0, t, L, broken):
        """The graphs of the next state, and of W and its gradient at the present lam."""
        W, g = value_and_grad(objective.value, lam)
        excess, h2 = _excess(lam, W, g, x, lam0, W0, g0, L)
        kept = (t < 0) | (pt.isfinite(W) & (excess <= L / 2 * h2))
        broken = pt.switch(kept, broken, broken + 1)
        r = 1 - 1 / (32 + 4 * broken)
        L = _curvature(lam, g, x, lam0, g0, t, L, r, kept, 2 * excess / pt.switch(h2 > 0, h2, 1.0))
        # Between the two points W is not convex if its slope falls: no momentum then, or no L would be large enough.
        concave = ((g - g0) * (lam - lam0)).sum() < 0
        t0 = pt.switch(kept, t, pt.switch(concave, pt.minimum(t0, 1.0), t0))
        lam0, x0, g0, W0 = (pt.switch(kept, *pair) for pair in ((lam, lam0), (x, x0), (g, g0), (W, W0)))
        x = objective.project(lam0 - g0 / L)
        # (lam0 - x) L is the gradient where there are no bounds, and what is left of it at the bounds.
        restart = ((lam0 - x) * (x - x0)).sum() > 0
        t = pt.switch(t0 < 1, t0 + 1, pt.switch(restart, 1.0, (1 + pt.sqrt(1 + 4 * r * t0**2)) / 2))
        momentum = pt.switch((t0 < 1) | restart, 0.0, (t0 - 1) / pt.maximum(t, 1.0))
        lam = _inside(objective, x + momentum * (x - x0))
        state = (lam, x, lam0, x0, g0, W0, t0, t, L, broken)
        return tuple(v.astype(lam.dtype) for v in state), W, g

    def __repr__(self):
        return "AcceleratedGradient()"


def _excess(lam, W, g, x, lam0, W0, g0, L):
    """How far the tangent at lam lies above the tangent at lam0, both at x; and |h|^2, h = x - lam0.

    The difference of two W is lost in rounding where it is small against them. The trapezoidal rule along the gradients
    takes its place there: exact for a quadratic W, else up to third order in a step that is then short.
    """
    h, ahead, change = x - lam0, x - lam, g - g0
    h2 = (h * h).sum()
    by_values = W + (g * ahead).sum() - (W0 + (g0 * h).sum())
    by_slopes = ((change * h).sum() + (change * ahead).sum()) / 2
    return pt.switch(L / 2 * h2 > 64 * _EPS[lam.dtype] * pt.abs(W), by_values, by_slopes), h2


def _curvature(lam, g, x, lam0, g0, t, L, r, kept, found):
    """The next L: risen to what was `found` where it was too small, else lower by the factor r; at first, measured."""
    short = _SHORT * (1 + pt.max(pt.abs(lam)))
    first = pt.max(pt.abs(g)) / short + _TINY  # moves no coordinate by more than `short`
    h = x - lam0
    h2 = (h * h).sum()
    measured = ((g - g0) * h).sum() / pt.switch(h2 > 0, h2, 1.0)
    risen = pt.switch(found < 10 * L, pt.maximum(found, 2 * L), 10 * L)  # also where W is not finite
    lower = pt.switch(t < 1, pt.maximum(measured, L * _SHORT**2), r * L)
    return pt.switch(t < 0, first, pt.switch(kept, lower, risen))


def _inside(objective, v):
    """The projection of a point ahead, which lies on the hyperplane: itself, bit by bit, if it is in the box."""
    return pt.switch(pt.all((v >= objective.lower) & (v <= objective.upper)), v, objective.project(v))


_EPS = {"float64": 2.0**-52, "float32": 2.0**-23}
_SHORT = 2.0**-10
_TINY = 2.0**-100
