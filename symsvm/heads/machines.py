"""k exact machines over one kernel matrix, as a node of a graph: `solve_machines`.

Machine c has the labels t_c of the points, each -1, 0 or 1, and the penalties C_c; a point with the label 0 is not in
it. With q = t lam its dual is that of the C-SVC. The adjoint u and w of a loss of q and b (Eq. 005:6) is computed as in
`symsvm.implicit`, and gives the gradients by K and by C (Eq. 005:7).

K has m^2 entries: this is for the batches of a network, and `argmin` for one machine of many points.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from symsvm._lib.blas import SingleThreadedBlas
from symsvm._lib.validation import number
from symsvm.compiler.functions import add_jax_conversions
from symsvm.heads.batch_solver import adjoint_batch, intercepts, solve_batch
from symsvm.implicit.adjoint import solve_adjoint, warn_if_doubtful
from symsvm.objectives import QuadraticProgram
from symsvm.solvers.decomposition.kernel_problem import KernelProblem
from symsvm.solvers.decomposition.solve_problem import solve_problem

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Graph

__all__ = ["AdjointMachines", "Machines", "StoredMatrix", "solve_machines"]

# A gradient rests on the set of free variables, which a larger violation may not have found.
_VIOLATION = 10.0
# The asymmetry of K, relative to its size, that features in float32 leave.
_SYMMETRIC = 1e-4


def solve_machines(
    K: Any, T: Any, C: Any = 1.0, *, squared: bool = False, is_psd: bool | None = None, tol: float = 1e-8
) -> tuple[Graph, Graph]:
    """Return the coefficients and intercepts of k exact machines over one kernel matrix, as graphs (Eq. 005:4).

    ::

        q_c = argmin of 1/2 q.K q - t_c.q    subject to    0 <= t_ci q_i <= C_ci,    sum q = 0

    b_c is the multiplier of the equality, and f_c(z) = sum_i q_ci K(z, x_i) + b_c. `pytensor.grad` differentiates both
    by K and C. A machine without points of both labels has q = 0 and b = its only label, or 0 without points.

    Parameters
    ----------
    K : TensorVariable or array_like
        The symmetric kernel matrix (m, m).
    T : TensorVariable or array_like
        The labels (k, m), -1 or 1, or 0 for a point that is not in the machine.
    C : float, TensorVariable or array_like
        The penalty of slack: a number, one for each point (m,) or one for each of all labels (k, m).
    squared : bool
        Whether the square of slack is penalised.
    is_psd : bool or None
        Whether K is known to be positive semi-definite.
    tol : float
        The largest KKT violation.

    Returns
    -------
    q : TensorVariable
        The coefficients (k, m), float64.
    b : TensorVariable
        The intercepts (k,), float64.

    Examples
    --------
    >>> K, T = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 2.0]]), np.array([[1, -1, 1], [-1, 0, 1]])
    >>> q, b = solve_machines(K, T, C=10.0)
    >>> q.eval(mode="FAST_COMPILE").round(4).tolist(), float(b.eval(mode="FAST_COMPILE")[0].round(4))
    ([[0.4, -0.8, 0.4], [-1.0, 0.0, 1.0]], -0.2)
    """
    K, T = pt.as_tensor_variable(K).astype("float64"), pt.as_tensor_variable(T).astype("float64")
    if K.ndim != 2 or T.ndim != 2:
        raise ValueError(f"K must be (m, m) and the labels T (k, m), got {K.ndim} and {T.ndim} dimension(s).")
    C = pt.as_tensor_variable(C).astype("float64")
    if C.ndim > 2:
        raise ValueError(f"C must be a number, (m,) or (k, m), got {C.ndim} dimensions.")
    op: Any = Machines(squared=bool(squared), is_psd=is_psd, tol=number(tol, "tol", positive=True))
    q, b = op(K, T, pt.ones_like(T) * C)
    return q, b


class StoredMatrix:
    """A matrix in memory, in float64: a `KernelMatrix`.

    Parameters
    ----------
    K : array of shape (m, m)
        The matrix.
    """

    name, X, is_exact, entries = "K", None, True, 0

    def __init__(self, K: Array):
        self.K, self.m, self.width = K, len(K), 1.0

    def diagonal(self, points: Array) -> Array:
        """Return K_ii for the chosen points."""
        return np.diagonal(self.K)[points]

    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write K between the chosen points to the first columns of `out`, in its type."""
        out[:, : len(columns)] = self.K[rows[:, None], columns]

    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add sum_j K_ij q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        out += (self.K[:, columns] if rows is None else self.K[rows[:, None], columns]) @ q


class Machines(Op):
    """(K, T, C) -> q, b: the solutions of k machines over one kernel matrix; see `solve_machines`."""

    __props__ = ("squared", "is_psd", "tol")

    def __init__(self, *, squared: bool, is_psd: bool | None, tol: float):
        self.squared, self.is_psd, self.tol = squared, is_psd, tol

    def make_node(self, K, T, C):
        """Make the node."""
        register_conversions()
        inputs = [pt.as_tensor_variable(x) for x in (K, T, C)]
        k, m = inputs[1].type.shape
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=shape) for shape in ((k, m), (k,))])

    def bounds(self, T: Array, C: Array) -> tuple[Array, Array, Array]:
        """Return the bounds of q and D; both bounds are 0 for the points of a machine without points of both labels."""
        has_both = np.logical_and((T > 0).any(axis=1), (T < 0).any(axis=1))
        used = T * has_both[:, None]
        most = np.full(T.shape, np.inf) if self.squared else C
        D = 1 / (2 * C) if self.squared else np.zeros(T.shape)
        return np.where(used < 0, -most, 0.0), np.where(used > 0, most, 0.0), D

    def problem(self, K: Array, t: Array, C: Array) -> tuple[Array, KernelProblem]:
        """Return the points and the problem of one machine for the general solver."""
        rows = np.flatnonzero(t)
        program = QuadraticProgram.c_svc(t[rows], C[rows], squared=self.squared)
        return rows, KernelProblem(program, StoredMatrix(K[np.ix_(rows, rows)]), is_convex=self.is_psd)

    def solve(self, K: Array, T: Array, C: Array) -> tuple[Array, Array]:
        """Return q and b in numbers."""
        K, T, C = _checked(K, T, C)
        lower, upper, D = self.bounds(T, C)
        with SingleThreadedBlas():
            q, violations = solve_batch(K, T, lower, upper, D, self.tol)
            for c in np.flatnonzero(~(violations <= self.tol)):
                rows, problem = self.problem(K, T[c], C[c])
                q[c, rows] = solve_problem(problem, kind="z", tol=self.tol).point
            b, _ = intercepts(q @ K + D * q - T, q, lower, upper)
        is_one_class = ~(upper > lower).any(axis=1)
        return q, np.where(is_one_class, np.sign(T.sum(axis=1)), b)

    def perform(self, node, inputs, outputs):
        """Solve the machines."""
        outputs[0][0], outputs[1][0] = self.solve(*inputs)

    def infer_shape(self, fgraph, node, shapes):
        """Return the shapes of T and of its rows."""
        return [shapes[1], (shapes[1][0],)]

    def connection_pattern(self, node):
        """Nothing depends on the labels smoothly."""
        return [[True, True], [False, False], [True, True]]

    def pullback(self, inputs, outputs, cotangents):
        """Return the gradients by K and by C (Eq. 005:7).

        ::

            by K_ij:  -1/2 sum over c of (u_ci q_cj + u_cj q_ci)
            by C_ci:  t_ci (g_ci - (K u_c)_i - w_c) where |q_ci| = C_ci, g the gradient by q, else 0
            by C_ci:  u_ci q_ci / (2 C_ci^2) if slack is squared
        """
        gradients = (
            pt.zeros_like(x) if isinstance(g.type, DisconnectedType) else g
            for x, g in zip(outputs, cotangents, strict=True)
        )
        adjoint: Any = AdjointMachines(self)
        u, by_C = adjoint(*inputs, outputs[0], *gradients)
        by_K = -pt.dot(u.T, outputs[0])
        return [(by_K + by_K.T) / 2, disconnected_type(), by_C]


class AdjointMachines(Op):
    """(K, T, C, q, gradient by q, gradient by b) -> u, gradient by C: the adjoints of k machines (Eq. 005:6)."""

    __props__ = ("machines",)

    def __init__(self, machines: Machines):
        self.machines = machines

    def make_node(self, *inputs):
        """Make the node."""
        register_conversions()
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        return Apply(self, inputs, [inputs[3].type(), inputs[3].type()])

    def solve(self, K: Array, T: Array, C: Array, q: Array, gq: Array, gb: Array) -> tuple[Array, Array]:
        """Return u and the gradient by C in numbers; warn where the derivative is doubtful."""
        (K, T, C), machines = _checked(K, T, C), self.machines
        q, gq, gb = (np.asarray(x, dtype="float64") for x in (q, gq, gb))
        lower, upper, D = machines.bounds(T, C)
        with SingleThreadedBlas():
            F = q @ K + D * q - T
            b, violations = intercepts(F, q, lower, upper)
            u, w, solved = adjoint_batch(K, D, q, lower, upper, gq, gb)
            by_bound = gq - u @ K - w[:, None]
        at_bound = (q == lower) | (q == upper)
        kinks = at_bound & (upper > lower) & (F + b[:, None] == 0)
        solved &= (violations <= _VIOLATION * machines.tol) & ~kinks.any(axis=1)
        # Of a squared loss D = 1 / (2 C), and the gradient by D is -u q.
        by_C = u * q / (2 * C**2) if machines.squared else np.where(at_bound & (q != 0), T * by_bound, 0.0)
        for c in np.flatnonzero(~solved & (upper > lower).any(axis=1)):
            u[c], by_C[c] = self.solve_one(K, T[c], C[c], q[c], gq[c], gb[c : c + 1])
        return u, by_C

    def solve_one(self, K: Array, t: Array, C: Array, q: Array, gq: Array, gb: Array) -> tuple[Array, Array]:
        """The same for one machine, by the general code, which says where the derivative is doubtful."""
        u, by_C = np.zeros(len(t)), np.zeros(len(t))
        rows, problem = self.machines.problem(K, t, C)
        found = solve_adjoint(problem, q[rows], gq[rows], gb, tol=_VIOLATION * self.machines.tol)
        warn_if_doubtful(found)
        u[rows] = found.u
        if self.machines.squared:
            by_C[rows] = found.u * q[rows] / (2 * C[rows] ** 2)
        else:
            by_C[rows] = np.where(t[rows] > 0, found.upper, -found.lower)
        return u, by_C

    def perform(self, node, inputs, outputs):
        """Solve the adjoint systems."""
        outputs[0][0], outputs[1][0] = self.solve(*inputs)

    def infer_shape(self, fgraph, node, shapes):
        """Return the shape of q, twice."""
        return [shapes[3], shapes[3]]

    def pullback(self, inputs, outputs, cotangents):
        """Raise: there are no second derivatives."""
        raise NotImplementedError("machines have no second derivatives: differentiate what depends on them once.")


def _checked(K: Any, T: Any, C: Any) -> tuple[Array, Array, Array]:
    """The symmetric part of K, T and C, or ValueError unless they are a problem."""
    K, T, C = (np.asarray(x, dtype="float64") for x in (K, T, C))
    m = len(K)
    if K.shape != (m, m) or T.shape[1:] != (m,):
        raise ValueError(f"K must be (m, m) and the labels T (k, m), got the shapes {K.shape} and {T.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite: the features or the numbers of the kernel have overflowed.")
    if np.abs(K - K.T).max(initial=0.0) > _SYMMETRIC * np.abs(K).max(initial=0.0):
        raise ValueError("K must be symmetric: write (K + K.T) / 2.")
    if not (np.abs(T) <= 1).all() or (T % 1).any():
        raise ValueError(
            "the labels T must be -1 or 1, or 0 for a point that is not in the machine; NaN is that of a class outside "
            "0 to n_classes - 1."
        )
    if not ((C > 0) & np.isfinite(C)).all():
        raise ValueError(f"C must be finite and above 0, got {float(C[~((C > 0) & np.isfinite(C))][0])}.")
    return (K + K.T) / 2, T, C


def register_conversions() -> None:
    """Register the conversions of these Ops to Numba."""
    importlib.import_module("symsvm.heads.machines_numba")  # here, so that Numba is loaded only when needed


add_jax_conversions("symsvm.heads.machines_jax")
