"""AdaGrad: each coordinate with a step of its own, for objectives that need not be smooth."""

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import number
from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["AdaGrad"]


class AdaGrad:
    """Step against a subgradient, each coordinate divided by the slopes that it has seen (Eq. 002:1).

        s_t    = s_t-1 + (w_t g_t)^2,    g_t a subgradient of W at lam_t
        x_t+1  = project(x_t - alpha w_t g_t / sqrt(s_t)),    in the metric sqrt(s_t) / alpha
        lam_t+1 = the average of x_1, ..., x_t+1 with the weights w_t = t, or x_t+1 alone where W is smooth

    The projection is in the metric of the step: the Euclidean one ends at a wrong point where there is an equality.

    W and its subgradient are evaluated at the average itself, once a step, and so it is the average that is certified.
    For every convex W, smooth or not, W(lam_T) - W* <= 2 / T^2 (the regret of x), and with alpha_i = D_i / sqrt(2), D_i
    the width of the feasible set, the regret is at most sqrt(2) sum_i D_i sqrt(s_iT): the step size follows from
    bounds that are known, and W - W* falls at least as 1 / sqrt(T) (Cutkosky, 2019; Duchi et al., 2011).

    Parameters
    ----------
    alpha : the step size. None takes D_i / sqrt(2); where the feasible set has no width, the largest distance from
        the start so far takes the place of D_i (Ivgi et al., 2023), and the bound holds up to a logarithm.
    average : False gives the plain method of the seed, lam = x and w = 1, which comes to rest where W is smooth; where
        it is not, only averages are known to converge. None averages where W has kinks (`is_smooth` is False).

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and stochastic optimization, JMLR
    12 (2011).
    A. Cutkosky, Anytime online-to-batch, optimism and acceleration, ICML 2019.
    M. Ivgi, O. Hinder, Y. Carmon, DoG is SGD's best friend, ICML 2023.

    >>> from symsvm import Objective, compile
    >>> lam = pt.vector("lam")
    >>> objective = Objective(abs(lam - np.array([3.0, 0.5])).sum(), lam, upper=2.0, is_convex=True)
    >>> solution = compile(objective, AdaGrad(average=True), mode="FAST_COMPILE").run([0.0, 0.0], max_iter=1000)
    >>> solution.lam.round(2).tolist()
    [2.0, 0.5]
    """

    info = SolverInfo(
        name="adagrad",
        problems=("primal", "lagrangian", "dual", "smooth"),
        backends=("numba", "jax"),
        equation="x' = project(x - alpha t g / sqrt(s)) in the metric sqrt(s), s = sum (t g)^2; lam averages x",
        reference="Duchi, Hazan and Singer 2011; Cutkosky 2019; Eq. 002:1",
        accuracy="tol where W is smooth; else a gap of 1e-2 relative to P in some thousand steps, as 1 / sqrt(T)",
    )
    max_iter = 10000  # unless told

    def __init__(self, alpha=None, *, average=None):
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)
        self.average = None if average is None else bool(average)

    @property
    def structure(self):
        """What its graphs depend on; the numbers are in the state."""
        return type(self), self.alpha is None, self.average

    def start(self):
        """Return the numbers of the state: alpha, or the largest distance from the start so far; and t."""
        return (0.0 if self.alpha is None else self.alpha, 1.0)

    def init(self, objective, lam):
        """The graphs of the vectors of the state: lam, x, the start and s."""
        lam = objective.project(lam)
        return lam, lam, lam, pt.zeros_like(lam)

    def step(self, objective, lam, x, start, s, alpha, t):
        """The graphs of the next state, and of W and a subgradient at the present lam."""
        W, g = value_and_grad(objective.value, lam)
        average = not getattr(objective, "is_smooth", True) if self.average is None else self.average
        slope = t * g if average else g
        s = s + slope**2
        root = pt.sqrt(s)
        # A coordinate whose slope has been 0 throughout would move for nothing in the metric of the projection.
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


_FIRST = 1e-3  # the first distance, relative to the start
_FLAT = 1e-6
_TINY = 2.0**-100
