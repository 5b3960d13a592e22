"""The stochastic subgradient method, one point at a time, for risks that are strongly convex."""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace
from pytensor.scan.basic import scan

from symsvm._lib.validation import count
from symsvm.compiler.functions import grad, value_and_grad
from symsvm.solvers.solver import Solver, SolverInfo
from symsvm.solvers.textbook.simplified_smo import random_index

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["StochasticSubgradient"]


class StochasticSubgradient(Solver):
    """Step against the subgradient of one point's share of the risk, and average the iterates.

    ::

        v_t+1 = project(v_t - alpha_t g_t),    alpha_t = 2 / (c (t + 1)),    g_t a subgradient of m C_i loss_i + R
        lam = the average of v_1, ..., v_t with the weights 1, ..., t

    The index i is random. P is the mean of the shares, so g_t is an unbiased estimate of its subgradient. With c = 1,
    the strong convexity that R gives every weight, the expected P - P* is at most 2 G^2 / (t + 1), G the largest norm
    of a g_t. R does not contain a free bias, which needs another solver. One step of a run is a pass of m points;
    between passes P and a subgradient of all points certify the average.

    `LinearSVC.partial_fit` is the same method for points that arrive one after another and are not stored.

    Parameters
    ----------
    seed : int
        The seed of the random points, which are a function of (seed, t), the same on every backend.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007.
    S. Lacoste-Julien, M. Schmidt, F. Bach, A simpler approach to obtaining an O(1/t) convergence rate for the projected
    stochastic subgradient method, 2012.

    Examples
    --------
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
        reference="Shalev-Shwartz, Singer and Srebro (2007); Lacoste-Julien, Schmidt and Bach (2012)",
        accuracy="a gap of some per cent of P in some hundred passes, as 1 / T",
    )
    by_rows = True

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = count(seed, "seed")

    @property
    def structure(self) -> Hashable:
        return (type(self),)

    # The state: lam, the average; v; the seed; t.
    def start(self) -> tuple[float, ...]:
        return (float(self.seed), 0.0)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        if not objective.convexity.all():
            raise ValueError(
                "stochastic-subgradient needs a risk that is strongly convex, and a free bias is not regularised: "
                "use 'adagrad' or 'qp', or bias='embedded'."
            )
        lam = objective.project(lam)
        return lam, lam

    def step(self, objective: Objective, lam: Graph, v: Graph, seed: Graph, t: Graph) -> Any:
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
        order = random_index(times, seed, m)
        vs, averages = scan(visit, sequences=[times, order], outputs_info=[v, lam], n_steps=m, return_updates=False)
        state = averages[-1], vs[-1], seed, t + m
        return tuple(s.astype(lam.dtype) for s in state), P, g

    def __repr__(self):
        return f"StochasticSubgradient(seed={self.seed})"
