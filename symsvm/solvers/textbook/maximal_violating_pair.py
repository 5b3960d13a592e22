"""SMO with the maximal violating pair: two variables per step, found by map and reduce (Algorithm 1 of psvm)."""

# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportReturnType=false, reportOptionalSubscript=false, reportIndexIssue=false
# pyright: reportGeneralTypeIssues=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver import Solver, SolverInfo

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["MaximalViolatingPair", "hessian_row", "initial_gradients"]

_INF, _TINY = float("inf"), 2.0**-100
_CURVATURE_ROUNDING = {
    "float64": 2.0**-46,
    "float32": 2.0**-17,
}  # the least curvature, relative to its terms: 64 roundings


class MaximalViolatingPair(Solver):
    """Move the two variables that violate optimality most to the minimum of W within the bounds.

    With r_k = -g_k / y_k, g the gradient of W, which is part of the state::

        i = argmax r_k over the k that may raise y.lam,    j = argmin r_k over the k that may lower it
        t = min(room of i, room of j, (r_i - r_j) / (K_ii + K_jj - 2 K_ij))
        lam_i += y_i t,    lam_j -= y_j t,    g_k += t y_k (K_ik - K_jk)

    Both searches are a map (infinite where k may not move) and a reduce. The update of g is a map over two rows of the
    kernel, the only rows that a step computes; no matrix is stored. psvm prints K_ji K_ij in the denominator, where the
    second derivative of W along the step has 2 K_ij (Eq. 002:7.3).

    With several equalities the pair belongs to the one that is violated most; with none, a single variable moves.

    References
    ----------
    L. Bottou, C.-J. Lin, Support vector machine solvers, in Large Scale Kernel Machines (2007).
    S. Keerthi et al., Improvements to Platt's SMO algorithm for SVM classifier design, Neural Computation 13 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from symsvm import KernelDual, Linear, QuadraticProgram, compile
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> objective = KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    >>> program = compile(objective, MaximalViolatingPair(), mode="FAST_COMPILE")
    >>> program.run().z.round(4).tolist()
    [-0.8889, 0.8889, 0.0]
    """

    info = SolverInfo(
        name="smo",
        problems=("dual",),
        backends=("numba", "jax"),
        equation="(lam_i, lam_j) <- argmin W over the pair that violates optimality most",
        reference="Keerthi et al. (2001); Bottou and Lin (2007); Altoe (2017), psvm, Algorithm 1",
        accuracy="a KKT violation of tol, confirmed in float64",
    )
    by_rows = True
    carries_gradient = True
    max_iter = 1_000_000  # the steps are cheap

    @property
    def structure(self) -> Hashable:
        return (type(self),)

    # The state: lam; the gradient g at lam; p, the gradient at 0.
    def start(self) -> tuple[float, ...]:
        return ()

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        return initial_gradients(objective, lam)

    def step(self, objective: Objective, lam: Graph, g: Graph, p: Graph) -> Any:
        W = 0.5 * (lam * (g + p)).sum()
        move = _single if objective.equality is None else _pair
        new, change = move(objective, lam, g)
        return tuple(v.astype(lam.dtype) for v in (new, g + change, p)), W, g

    def __repr__(self):
        return "MaximalViolatingPair()"


def initial_gradients(objective: Objective, lam: Graph) -> tuple[Graph, ...]:
    """Return the projection of lam, the gradient g of W there, and p, the gradient at 0: W = 1/2 lam.(g + p)."""
    _, g = value_and_grad(objective.value, objective.variable)
    feasible = objective.project(lam).astype(lam.dtype)
    at = [graph_replace(g, {objective.variable: v}) for v in (feasible, pt.zeros_like(lam))]
    return feasible, *(v.astype(lam.dtype) for v in at)


def hessian_row(objective: Objective, k: Graph) -> Graph:
    """Return row k of the Hessian: y_k y_l K_kl over all l (Eq. 002:3.1)."""
    i, graph = objective.row
    return graph_replace(graph, {i: k.astype("int64")})


def _pair(objective: Objective, lam: Graph, g: Graph) -> tuple[Graph, Graph]:
    """Return lam after the step of the pair, and the change of the gradient."""
    lower, upper = (bound + pt.zeros_like(lam) for bound in (objective.lower, objective.upper))
    A = pt.atleast_2d(objective.equality[0])
    r = -g / pt.switch(pt.neq(A, 0), A, 1.0)
    top = pt.switch(pt.switch(A > 0, lam < upper, lam > lower) & pt.neq(A, 0), r, -_INF)
    bottom = pt.switch(pt.switch(A > 0, lam > lower, lam < upper) & pt.neq(A, 0), r, _INF)
    gaps = top.max(axis=1) - bottom.min(axis=1)
    worst = gaps.argmax()
    i, j, gap, a = top[worst].argmax(), bottom[worst].argmin(), gaps[worst], A[worst]

    H_i, H_j = hessian_row(objective, i) / a[i], hessian_row(objective, j) / a[j]
    curvature = _positive(H_i[i] / a[i] + H_j[j] / a[j] - 2 * H_i[j] / a[j], H_i[i] / a[i] + H_j[j] / a[j])
    end_i, end_j = pt.switch(a[i] > 0, upper[i], lower[i]), pt.switch(a[j] > 0, lower[j], upper[j])
    room_i, room_j = (end_i - lam[i]) * a[i], (lam[j] - end_j) * a[j]
    t = pt.switch(gap > 0, pt.minimum(gap / curvature, pt.minimum(room_i, room_j)), 0.0)
    # Exactly at a bound: a variable that rounding leaves beside it would count as free.
    new = pt.set_subtensor(lam[i], pt.switch(t < room_i, lam[i] + t / a[i], end_i))
    new = pt.set_subtensor(new[j], pt.switch(t < room_j, lam[j] - t / a[j], end_j))
    return pt.switch(gap > 0, new, lam), t * (H_i - H_j)


def _single(objective: Objective, lam: Graph, g: Graph) -> tuple[Graph, Graph]:
    """Return lam after the step of the variable whose gradient points most into the box, and the gradient's change."""
    lower, upper = (bound + pt.zeros_like(lam) for bound in (objective.lower, objective.upper))
    violation = pt.maximum(pt.switch(lam < upper, -g, 0.0), pt.switch(lam > lower, g, 0.0))
    i = violation.argmax()
    H_i = hessian_row(objective, i)
    to = pt.switch(violation[i] > 0, lam[i] - g[i] / _positive(H_i[i], pt.abs(H_i[i])), lam[i])
    to = pt.clip(to, lower[i], upper[i])
    return pt.set_subtensor(lam[i], to), (to - lam[i]) * H_i


def _positive(curvature: Graph, size: Graph) -> Graph:
    """The curvature, or the rounding of a sum of this size if that is more: an indefinite kernel has less than 0."""
    return pt.maximum(curvature, _CURVATURE_ROUNDING[size.dtype] * size + _TINY)
