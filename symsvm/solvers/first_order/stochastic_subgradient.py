"""Stochastic subgradient: a point at a time, for risks that are strongly convex (seed 004's model for many points)."""

import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace
from pytensor.scan import scan

from symsvm._lib.validation import count
from symsvm.compiler.functions import grad, value_and_grad
from symsvm.solvers.solver_info import SolverInfo
from symsvm.solvers.textbook.simplified_smo import drawn

__all__ = ["StochasticSubgradient"]


class StochasticSubgradient:
    """Step against the subgradient of one point's share of the risk, and average.

        v_t+1 = project(v_t - alpha_t g_t),    alpha_t = 2 / (c (t + 1)),    g_t a subgradient of m C_i loss_i + R
        lam = the average of v_1, ..., v_t with the weights 1, ..., t

    i is drawn at random. P is the mean of the shares, and so g_t is right on the average. With c = 1, the strong
    convexity that R gives every weight, the expected P - P* is at most 2 G^2 / (t + 1), G the largest |g_t|. A free
    bias has no part in R, and needs another solver. A step of a run is a pass, as many points as there are; between
    passes P and a subgradient of all points certify the average.

    `LinearSVC.partial_fit` is the same for points that come one after another and are not kept.

    Parameters
    ----------
    seed : of the points that are drawn, a function of (seed, t), the same on every backend.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007.
    S. Lacoste-Julien, M. Schmidt, F. Bach, A simpler approach to obtaining an O(1/t) convergence rate for the projected
    stochastic subgradient method, 2012.

    >>> import numpy as np
    >>> from symsvm.objectives import PrimalRisk
    >>> from symsvm.solvers import solve
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = solve(PrimalRisk(X, y), "stochastic-subgradient", tol=0.1, mode="FAST_COMPILE")
    >>> solution.certificate.status
    'optimal'
    """

    info = SolverInfo(
        name="stochastic-subgradient",
        problems=("primal",),
        backends=("numba", "jax"),
        equation="v' = project(v - 2 g_i / (t + 1)), i at random, g_i of m C_i loss_i + R; lam averages v",
        reference="seed 004; Shalev-Shwartz, Singer and Srebro 2007; Lacoste-Julien, Schmidt and Bach 2012",
        accuracy="a gap of some per cent of P in some hundred passes, as 1 / T",
    )
    by_rows = True

    def __init__(self, *, seed=0):
        self.seed = count(seed, "seed")

    @property
    def structure(self):
        """What its graphs depend on; the numbers are in the state."""
        return (type(self),)

    def start(self):
        """Return the numbers of the state: the seed, and t."""
        return (float(self.seed), 0.0)

    def init(self, objective, lam):
        """The graphs of the vectors of the state: lam, the average, and v."""
        if not objective.convexity.all():
            raise ValueError(
                "stochastic-subgradient steps by the strong convexity of the risk, which a free bias has no part in: "
                "use 'adagrad' or 'qp', or bias='embedded'."
            )
        lam = objective.project(lam)
        return lam, lam

    def step(self, objective, lam, v, seed, t):
        """The graphs of the state after a pass, and of P and a subgradient at the present lam."""
        P, g = value_and_grad(objective.value, lam)
        i, share = objective.row
        m = objective.m
        slope = grad(share, lam)

        def visit(t, i_t, v, average):
            g_t = graph_replace(slope, {i: i_t, lam: v})
            weight = (2 / (t + 1)).astype(v.dtype)
            average = average + weight * (v - average)
            return objective.project(v - weight * g_t).astype(v.dtype), average.astype(v.dtype)

        times = t + 1 + pt.arange(m)
        turns = drawn(times, seed, m)
        vs, averages = scan(visit, sequences=[times, turns], outputs_info=[v, lam], n_steps=m, return_updates=False)
        state = averages[-1], vs[-1], seed, t + m
        return tuple(s.astype(lam.dtype) for s in state), P, g

    def __repr__(self):
        return f"StochasticSubgradient(seed={self.seed})"
