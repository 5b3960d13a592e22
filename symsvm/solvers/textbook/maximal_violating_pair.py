"""SMO with the maximal violating pair: two variables a step, found by map and reduce (seed 003's Algorithm 1)."""

import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["MaximalViolatingPair", "gradients", "row"]


class MaximalViolatingPair:
    """Move the two variables that violate optimality most, as far as W falls and the bounds allow.

    With r_k = -g_k / y_k, g the gradient of W, which is part of the state:

        i = argmax r_k over the k that may raise y.lam,    j = argmin r_k over the k that may lower it
        t = min(room of i, room of j, (r_i - r_j) / (K_ii + K_jj - 2 K_ij))
        lam_i += y_i t,    lam_j -= y_j t,    g_k += t y_k (K_ik - K_jk)

    Both searches are a map (infinite where k may not move) and a reduce; the update of g is a map over two rows of the
    kernel, the only ones that a step computes: no matrix is held. The seed prints K_ji K_ij in the denominator, where
    the second derivative of W along the step has 2 K_ij (Eq. 002:7.3).

    With several equalities the pair is of the one that is violated most; with none, one variable moves by itself.

    References
    ----------
    L. Bottou, C.-J. Lin, Support vector machine solvers, in Large Scale Kernel Machines (2007).
    S. Keerthi et al., Improvements to Platt's SMO algorithm for SVM classifier design, Neural Computation 13 (2001).

    >>> import numpy as np
    >>> from symsvm import KernelDual, Linear, QuadraticProgram, compile
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> objective = KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    >>> program = compile(objective, MaximalViolatingPair(), mode="FAST_COMPILE")
    >>> program.run().lam.round(4).tolist()
    [-0.8889, 0.8889, 0.0]
    """

    info = SolverInfo(
        name="smo",
        problems=("dual",),
        backends=("numba", "jax"),
        equation="(lam_i, lam_j) <- argmin W over the pair that violates optimality most",
        reference="seed 003, Algorithm 1; Keerthi et al. (2001), Bottou and Lin (2007)",
        accuracy="a KKT violation of tol, confirmed in float64",
    )
    by_rows = True
    carries_gradient = True
    max_iter = 1_000_000  # of cheap steps

    @property
    def structure(self):
        """What its graphs depend on: nothing but the algorithm."""
        return (type(self),)

    def start(self):
        """Return the numbers of the state: none."""
        return ()

    def init(self, objective, lam):
        """The graphs of the vectors of the state: lam, the gradient there, and p, the gradient at 0."""
        return gradients(objective, lam)

    def step(self, objective, lam, g, p):
        """The graphs of the next (lam, g, p), and of W and its gradient at the present lam."""
        W = 0.5 * (lam * (g + p)).sum()
        move = _single if objective.equality is None else _pair
        new, change = move(objective, lam, g)
        return tuple(v.astype(lam.dtype) for v in (new, g + change, p)), W, g

    def __repr__(self):
        return "MaximalViolatingPair()"


def gradients(objective, lam):
    """The feasible point next to lam, the gradient of W there, and p, the gradient at 0: W = 1/2 lam.(g + p)."""
    _, g = value_and_grad(objective.value, objective.variable)
    feasible = objective.project(lam).astype(lam.dtype)
    at = [graph_replace(g, {objective.variable: v}) for v in (feasible, pt.zeros_like(lam))]
    return feasible, *(v.astype(lam.dtype) for v in at)


def row(objective, k):
    """Row k of the Hessian: y_k y_l K_kl over all l (Eq. 002:3.1)."""
    i, graph = objective.row
    return graph_replace(graph, {i: k.astype("int64")})


def _pair(objective, lam, g):
    """lam after the step of the pair, and what the gradient changes by."""
    lower, upper = (bound + pt.zeros_like(lam) for bound in (objective.lower, objective.upper))
    A = pt.atleast_2d(objective.equality[0])
    r = -g / pt.switch(pt.neq(A, 0), A, 1.0)
    top = pt.switch(pt.switch(A > 0, lam < upper, lam > lower) & pt.neq(A, 0), r, -_INF)
    bottom = pt.switch(pt.switch(A > 0, lam > lower, lam < upper) & pt.neq(A, 0), r, _INF)
    gaps = top.max(axis=1) - bottom.min(axis=1)
    worst = gaps.argmax()
    i, j, gap, a = top[worst].argmax(), bottom[worst].argmin(), gaps[worst], A[worst]

    H_i, H_j = row(objective, i) / a[i], row(objective, j) / a[j]
    curvature = _positive(H_i[i] / a[i] + H_j[j] / a[j] - 2 * H_i[j] / a[j], H_i[i] / a[i] + H_j[j] / a[j])
    end_i, end_j = pt.switch(a[i] > 0, upper[i], lower[i]), pt.switch(a[j] > 0, lower[j], upper[j])
    room_i, room_j = (end_i - lam[i]) * a[i], (lam[j] - end_j) * a[j]
    t = pt.switch(gap > 0, pt.minimum(gap / curvature, pt.minimum(room_i, room_j)), 0.0)
    # Exactly at a bound, or the variable would count as free for ever.
    new = pt.set_subtensor(lam[i], pt.switch(t < room_i, lam[i] + t / a[i], end_i))
    new = pt.set_subtensor(new[j], pt.switch(t < room_j, lam[j] - t / a[j], end_j))
    return pt.switch(gap > 0, new, lam), t * (H_i - H_j)


def _single(objective, lam, g):
    """lam after the step of the one variable whose gradient points most into the box, and the gradient's change."""
    lower, upper = (bound + pt.zeros_like(lam) for bound in (objective.lower, objective.upper))
    violation = pt.maximum(pt.switch(lam < upper, -g, 0.0), pt.switch(lam > lower, g, 0.0))
    i = violation.argmax()
    H_i = row(objective, i)
    to = pt.switch(violation[i] > 0, lam[i] - g[i] / _positive(H_i[i], pt.abs(H_i[i])), lam[i])
    to = pt.clip(to, lower[i], upper[i])
    return pt.set_subtensor(lam[i], to), (to - lam[i]) * H_i


def _positive(curvature, size):
    """The curvature, or what rounding leaves of one of this size; a kernel may say less than 0."""
    return pt.maximum(curvature, _EPS[size.dtype] * size + _TINY)


_INF, _TINY = float("inf"), 2.0**-100
_EPS = {"float64": 2.0**-46, "float32": 2.0**-17}
