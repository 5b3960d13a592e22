"""Simplified SMO: each variable in turn, with a random second one (the pseudo code of Wei and Ren)."""

# pyright: reportOperatorIssue=false, reportOptionalMemberAccess=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportReturnType=false, reportOptionalSubscript=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt

from symsvm._lib.validation import count, number
from symsvm.solvers.solver import Solver, SolverInfo
from symsvm.solvers.textbook.maximal_violating_pair import hessian_row, initial_gradients

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = [
    "SimplifiedSMO",
    "clipped",
    "errors",
    "limits",
    "partner",
    "random_index",
    "threshold",
    "unclipped",
    "violates",
]

_ROUNDING = {"float64": 2.0**-50, "float32": 2.0**-21}  # the error of a sum of three numbers, relative to them
_PRIME = 2**31 - 1


class SimplifiedSMO(Solver):
    """Visit the variables in turn; one that violates the KKT conditions moves together with a random one.

    A step visits one i. With the errors E_k = f(x_k) - y_k it skips an i that satisfies its condition (Eq. 001:2 to
    001:4); draws j; finds the segment [L, H] of lam_j (Eq. 001:5, 001:6) and eta = 2 K_ij - K_ii - K_jj; and sets ::

        lam_j <- lam_j - y_j (E_i - E_j) / eta, clipped to [L, H]      (Eq. 001:7, 001:8)
        lam_i <- lam_i + y_i y_j (lam_j old - lam_j)                   (Eq. 001:9)
        b     <- b_1 if i is free, b_2 if j is, else their mean        (Eq. 001:10, 001:11)

    if L < H, eta < 0 and lam_j changes by `least` or more. The run ends when `max_passes` passes over all i changed
    nothing. The errors follow from the gradient of W, which is part of the state: E_k = y_k g_k + b.

    There is no proof that it ends at the optimum: a variable may violate its condition and never be drawn together with
    the one it needs. The certificate says how far the last point is from the optimum.

    Parameters
    ----------
    tol : float
        The largest violation of a point's condition. The `tol` of a run bounds the sum of the violations on both sides
        of b, so the default is half of that.
    max_passes : int
        The number of passes without a change that ends the run.
    seed : int
        The seed of the second index. The draws are a function of (seed, step), the same on every backend.
    least : float
        The smallest change of lam_j that counts as one.

    References
    ----------
    J. Platt, Sequential minimal optimization, MSR-TR-98-14 (1998).
    X. Wei, M. Ren: the source of the equations 001:1 to 001:11.

    Examples
    --------
    >>> import numpy as np
    >>> from symsvm import KernelDual, Linear, QuadraticProgram, compile
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> objective = KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    >>> program = compile(objective, SimplifiedSMO(), mode="FAST_COMPILE")
    >>> program.run().z.round(3).tolist()
    [-0.889, 0.889, 0.0]
    """

    info = SolverInfo(
        name="smo-simplified",
        problems=("dual",),
        backends=("numba", "jax"),
        equation="lam_j <- clip(lam_j - y_j (E_i - E_j) / eta, L, H), lam_i <- lam_i + y_i y_j (lam_j old - lam_j)",
        reference="Platt (1998); Wei and Ren, Eq. 001:5 to 001:11",
        accuracy="ends when max_passes passes change nothing; usually at a KKT violation of 2 tol",
    )
    by_rows = True
    carries_gradient = True
    max_iter = 1_000_000  # the steps are cheap

    def __init__(self, *, tol: float = 5e-4, max_passes: int = 10, seed: int = 0, least: float = 1e-5) -> None:
        self.tol, self.least = number(tol, "tol", positive=True), number(least, "least", positive=True)
        self.max_passes, self.seed = count(max_passes, "max_passes", least=1), count(seed, "seed")

    @property
    def structure(self) -> Hashable:
        return (type(self),)

    # The state: lam; its gradient g; p, the gradient at 0; b, one entry for each variable; the step n; the number of
    # changes in this pass; the number of passes without any; the parameters.
    def start(self) -> tuple[float, ...]:
        return (0.0, 0.0, 0.0, self.tol, self.seed, self.least)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        if objective.equality is None:
            raise ValueError(
                "smo-simplified moves two variables along an equality, and this dual has none: use 'smo', which moves "
                "one, or 'decomposition', 'accelerated-gradient', 'projected-gradient', 'adagrad' or 'qp'."
            )
        return *initial_gradients(objective, lam), pt.zeros_like(lam)

    def step(
        self,
        objective: Objective,
        lam: Graph,
        g: Graph,
        p: Graph,
        b: Graph,
        n: Graph,
        changed: Graph,
        passes: Graph,
        *parameters: Graph,
    ) -> Any:
        tol, seed, least = parameters
        W = 0.5 * (lam * (g + p)).sum()
        lower, upper = (bound + pt.zeros_like(lam) for bound in (objective.lower, objective.upper))
        A = pt.atleast_2d(objective.equality[0])  # one equality per row; each variable belongs to one
        y, m = A.sum(axis=0), lam.shape[0]
        i = n.astype("int64") % m
        j = random_index(n, seed, pt.maximum(m - 1, 1))
        j = (j + (j >= i)) % m  # any index other than i
        E = errors(g, y, b)
        one, two = (Point(lam[k], y[k], lower[k], upper[k], E[k]) for k in (i, j))

        H_i, H_j = hessian_row(objective, i), hessian_row(objective, j)
        K_ii, K_jj, K_ij = H_i[i] / y[i] ** 2, H_j[j] / y[j] ** 2, H_i[j] / (y[i] * y[j])
        L, H = limits(one, two)
        eta = 2 * K_ij - K_ii - K_jj
        lam_j = clipped(unclipped(two, one.E, pt.switch(eta < 0, eta, -1.0)), L, H)
        together = pt.neq((A * A[:, i][:, None]).sum(axis=0), 0)  # the variables in the equality of i
        moves = violates(one, tol) & (L < H) & (eta < 0) & (pt.abs(lam_j - two.lam) >= least) & together[j]
        lam_j = pt.switch(moves, lam_j, two.lam)
        lam_i = pt.switch(moves, partner(one, two, lam_j), one.lam)

        b = pt.switch(moves & together, threshold(one, two, lam_i, lam_j, b[i], K_ii, K_jj, K_ij), b)
        change = (lam_i - one.lam) * H_i + (lam_j - two.lam) * H_j
        lam = pt.set_subtensor(lam[i], lam_i)
        lam = pt.set_subtensor(lam[j], lam_j)
        changed, last = changed + moves, pt.eq(i, m - 1)
        passes = pt.switch(last, pt.switch(changed > 0, 0.0, passes + 1), passes)
        state = (lam, g + change, p, b, n + 1, pt.switch(last, 0.0, changed), passes, *parameters)
        return tuple(v.astype(p.dtype) for v in state), W, g

    def is_finished(self, *state: Any) -> bool:
        """Return whether `max_passes` passes in a row changed nothing.

        Parameters
        ----------
        *state : ndarray
            The state without lam.

        Returns
        -------
        bool
            Whether the run ends.
        """
        passes = state[5]
        return float(passes) >= self.max_passes

    def __repr__(self):
        return f"SimplifiedSMO(tol={self.tol}, max_passes={self.max_passes}, seed={self.seed}, least={self.least})"


class Point(NamedTuple):
    """A variable of a step: lam, y, the bounds of lam (0 and C) and the error E."""

    lam: Any
    y: Any
    lower: Any
    upper: Any
    E: Any


def errors(g: Graph, y: Graph, b: Graph) -> Graph:
    """Return E_k = f(x_k) - y_k, with f(x) = sum_j lam_j y_j K(x_j, x) + b (Eq. 001:1).

    W has the gradient y_k f(x_k) - 1 at b = 0, so that E_k = g_k / y_k + b.
    """
    return g / y + b


def violates(one: Point, tol: Graph) -> Graph:
    """Return whether lam_i may grow and y_i f(x_i) < 1 - tol, or fall and y_i f(x_i) > 1 + tol (Eq. 001:2 to 001:4).

    Eq. 002:7.7 says the same.
    """
    excess = one.y * one.E
    return ((excess < -tol) & (one.lam < one.upper)) | ((excess > tol) & (one.lam > one.lower))


def limits(one: Point, two: Point) -> tuple[Graph, Graph]:
    """Return (L, H), the ends of the segment on which lam_j may move with y_i lam_i + y_j lam_j fixed.

    L = max(0, lam_j - lam_i), H = min(C, C + lam_j - lam_i) if y_i != y_j (Eq. 001:5);
    L = max(0, lam_i + lam_j - C), H = min(C, lam_i + lam_j) if y_i = y_j (Eq. 001:6). C may differ from point to point.
    Eq. 002:7.1 and 002:7.2 say the same.
    """
    apart = pt.neq(one.y, two.y)
    low = pt.switch(apart, two.lam - one.lam + one.lower, one.lam + two.lam - one.upper)
    high = pt.switch(apart, two.lam - one.lam + one.upper, one.lam + two.lam - one.lower)
    return pt.maximum(two.lower, low), pt.minimum(two.upper, high)


def unclipped(two: Point, E_i: Graph, eta: Graph) -> Graph:
    """Return the best lam_j on the line: lam_j - y_j (E_i - E_j) / eta (Eq. 001:7, where y_i is printed for y_j).

    Eq. 002:7.4 has eta with the other sign.
    """
    return two.lam - two.y * (E_i - two.E) / eta


def clipped(lam_j: Graph, L: Graph, H: Graph) -> Graph:
    """Return lam_j clipped to [L, H] (Eq. 001:8, 002:7.5)."""
    return pt.minimum(pt.maximum(lam_j, L), H)


def partner(one: Point, two: Point, lam_j: Graph) -> Graph:
    """Return lam_i + y_i y_j (lam_j old - lam_j), which keeps y_i lam_i + y_j lam_j (Eq. 001:9, 002:7.6).

    A value within rounding of a bound is set to the bound, or the variable would count as free.
    """
    lam_i = one.lam + one.y * two.y * (two.lam - lam_j)
    near = _ROUNDING[lam_j.dtype] * (pt.abs(one.lam) + pt.abs(two.lam) + pt.abs(lam_j))
    lam_i = pt.switch(lam_i - one.lower <= near, one.lower, lam_i)
    return pt.switch(one.upper - lam_i <= near, one.upper, lam_i)


def threshold(one: Point, two: Point, lam_i, lam_j, b, K_ii, K_jj, K_ij) -> Graph:
    """Return the next b: b_1, at which E_i = 0 (Eq. 001:10), if lam_i is free.

    Else b_2, at which E_j = 0 (Eq. 001:11, where b_2 is printed for both), if lam_j is free; else their mean.
    """
    d_i, d_j = one.y * (lam_i - one.lam), two.y * (lam_j - two.lam)
    b_1 = b - one.E - d_i * K_ii - d_j * K_ij
    b_2 = b - two.E - d_i * K_ij - d_j * K_jj
    i_free, j_free = (one.lower < lam_i) & (lam_i < one.upper), (two.lower < lam_j) & (lam_j < two.upper)
    return pt.switch(i_free, b_1, pt.switch(j_free, b_2, (b_1 + b_2) / 2))


def random_index(n: Graph, seed: Graph, m: Any) -> Graph:
    """Return the nth random index below m: squares of a counter in the field of 2^31 - 1 elements.

    It has no state, and integers are the same on every backend (after B. Widynski, Squares: a fast counter-based RNG,
    arXiv:2004.06278).
    """
    n, seed = n.astype("int64"), seed.astype("int64")
    key = (2 * seed + 1) * 1_103_515_245 % _PRIME
    x = y = (n + 1) * key % _PRIME
    for _ in range(3):
        x = (x * x + y) % _PRIME
        y = (y + key) % _PRIME
    return x % m
