"""k exact machines over one kernel matrix, as a node of a graph: `solve_machines`.

Machine c has the labels t_c of the points, each -1, 0 or 1, and the penalties C_c; a point with the label 0 is not in it.
With q = t lam its dual is the C-SVC (Eq. 21, 005:4), and `symsvm.implicit.solve_adjoint` has its adjoint u and v for the
gradients of a loss by q and b (Eq. 005:6). From them

    gradient by K_ij = -sum over c of u_ci q_cj            gradient by C_ci = t_ci times that by the bound t_ci C_ci

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

from symsvm._lib.validation import number
from symsvm.compiler.functions import add_jax_conversions
from symsvm.implicit.adjoint import solve_adjoint, warn_if_doubtful
from symsvm.objectives import QuadraticProgram
from symsvm.solvers.decomposition.kernel_problem import KernelProblem
from symsvm.solvers.decomposition.solve_problem import solve_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array, Graph

__all__ = ["AdjointMachines", "Machines", "StoredMatrix", "solve_machines"]

# A gradient rests on the set of free variables, which a larger violation may not have found.
_VIOLATION = 10.0


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
    >>> q.eval(mode="FAST_COMPILE").round(4).tolist(), b.eval(mode="FAST_COMPILE").round(4).tolist()
    ([[0.4, -0.8, 0.4], [-1.0, 0.0, 1.0]], [-0.2, 0.0])
    """
    K, T = pt.as_tensor_variable(K).astype("float64"), pt.as_tensor_variable(T).astype("float64")
    if K.ndim != 2 or T.ndim != 2:
        raise ValueError(f"K must be (m, m) and the labels T (k, m), got {K.ndim} and {T.ndim} dimension(s).")
    C = pt.as_tensor_variable(C).astype("float64")
    if C.ndim > 2:
        raise ValueError(f"C must be a number, (m,) or (k, m), got {C.ndim} dimensions.")
    op = Machines(squared=bool(squared), is_psd=is_psd, tol=number(tol, "tol", positive=True))
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

    def problems(self, K: Array, T: Array, C: Array) -> Iterator[tuple[int, Array, KernelProblem]]:
        """Yield the number, the points and the problem of each machine that has points of both labels."""
        matrix = StoredMatrix(K)
        for c, (t, penalty) in enumerate(zip(T, C, strict=True)):
            rows = np.flatnonzero(t)
            if len(rows) == len(t):
                own, rows = matrix, slice(None)
            else:
                own = StoredMatrix(np.ascontiguousarray(K[np.ix_(rows, rows)]))
            if (t > 0).any() and (t < 0).any():
                program = QuadraticProgram.c_svc(t[rows], penalty[rows], squared=self.squared)
                yield c, rows, KernelProblem(program, own, is_convex=self.is_psd)

    def solve(self, K: Array, T: Array, C: Array) -> tuple[Array, Array]:
        """Return q and b in numbers."""
        check(K, T, C)
        q, b = np.zeros(T.shape), np.sign(T.sum(axis=1))
        for c, rows, problem in self.problems(np.asarray(K), np.asarray(T), np.asarray(C)):
            solution = solve_problem(problem, kind="z", tol=self.tol)
            q[c, rows], b[c] = solution.point, solution.b
        return q, b

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
        """Return the gradients by K and by C; the docstring of this module gives the formulas."""
        gradients = (
            pt.zeros_like(x) if isinstance(g.type, DisconnectedType) else g
            for x, g in zip(outputs, cotangents, strict=True)
        )
        u, by_C = AdjointMachines(self)(*inputs, outputs[0], *gradients)
        return [-pt.dot(u.T, outputs[0]), disconnected_type(), by_C]


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
        K, T, C, q, gq, gb = map(np.asarray, (K, T, C, q, gq, gb))
        u, by_C = np.zeros(q.shape), np.zeros(q.shape)
        for c, rows, problem in self.machines.problems(K, T, C):
            if not (gq[c, rows].any() or gb[c]):
                continue
            found = solve_adjoint(problem, q[c, rows], gq[c, rows], gb[c : c + 1], tol=_VIOLATION * self.machines.tol)
            warn_if_doubtful(found)
            u[c, rows] = found.u
            if self.machines.squared:  # D = 1 / (2 C), and the gradient by D is -u q
                by_C[c, rows] = found.u * q[c, rows] / (2 * C[c, rows] ** 2)
            else:
                by_C[c, rows] = np.where(T[c, rows] > 0, found.upper, -found.lower)
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


def check(K: Array, T: Array, C: Array) -> None:
    """Raise ValueError unless K, T and C are a problem."""
    m = K.shape[0]
    if K.shape != (m, m) or T.shape[1:] != (m,):
        raise ValueError(f"K must be (m, m) and the labels T (k, m), got the shapes {K.shape} and {T.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite: the features or the numbers of the kernel have overflowed.")
    if not (np.abs(T) <= 1).all() or (T % 1).any():
        raise ValueError("the labels T must be -1 or 1, or 0 for a point that is not in the machine.")
    if not ((C > 0) & np.isfinite(C)).all():
        raise ValueError(f"C must be a finite number above 0, got {float(np.min(C))}.")


def register_conversions() -> None:
    """Register the conversions of these Ops to Numba."""
    importlib.import_module("symsvm.heads.machines_numba")  # here, so that Numba is loaded only when needed


add_jax_conversions("symsvm.heads.machines_jax")
