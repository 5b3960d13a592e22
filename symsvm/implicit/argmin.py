"""`argmin`: the solution of an objective as a node of a PyTensor graph, differentiable by everything the objective has.

Forward, the Op `Argmin` runs the fast exact solver. Backward, the Op `AdjointSolve` solves one symmetric system
(`symsvm.implicit.adjoint`) for u and w, and the gradient by all inputs is that of a sum over pairs, computed in tiles:

    -u.dW/dv - sum_g b_g a_g.u - w.(A v - c) + lower'.lower + upper'.upper

with v, u, b, w and the gradients lower', upper' by the bounds held fixed. `symsvm.compiler.reading` says what W is, so

    u.dW/dv = s sum_ij Q_i q_j H(r_i, r_j) + sum_i u_i phi_i'(v_i)

q_i is the sum of c_i v_i over the parts of v, and Q_i that of c_i u_i.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalSubscript=false, reportOperatorIssue=false
# pyright: reportOptionalIterable=false, reportIndexIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.gradient import grad as differentiate
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from symsvm._lib.validation import switch
from symsvm.compiler.functions import COMPILING, add_jax_conversions, function
from symsvm.compiler.lifting import tile
from symsvm.compiler.reading import leaves_of
from symsvm.compiler.reading.pair_expression import PLAIN
from symsvm.graphs.structure import leaves
from symsvm.implicit.adjoint import solve_adjoint, warn_if_doubtful
from symsvm.implicit.support import on_support
from symsvm.objectives import KernelDual, Objective
from symsvm.solvers import Decomposition
from symsvm.solvers.decomposition.dual_program import DualProgram
from symsvm.solvers.decomposition.solve_problem import solve_problem
from symsvm.solvers.program import check_run_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array, Graph
    from symsvm.implicit.adjoint import Adjoint
    from symsvm.solvers.decomposition.kernel_problem import KernelProblem
    from symsvm.solvers.solution import Solution

__all__ = ["SECOND_DERIVATIVES", "AdjointSolve", "Argmin", "argmin", "check_objective", "last_adjoint"]

SECOND_DERIVATIVES = "argmin has no second derivatives: differentiate what depends on it once."

# A gradient rests on the set of free variables, which a larger violation may not have found.
_VIOLATION = 10.0


def argmin(
    objective: Objective,
    *,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: bool = False,
    **data: Any,
) -> tuple[Graph, Graph]:
    """Return the solution of an objective and the multiplier b of its equality, as graphs.

    ::

        lam(theta), b(theta) = argmin of W(lam; theta) subject to lower <= lam <= upper, a.lam = c

    `pytensor.grad` differentiates both by everything that W and the constraints depend on: numbers of the kernel, C,
    points, labels, and what these are computed from. The derivative is exact while no variable reaches or leaves a
    bound; it is computed by one symmetric system of the free variables and by sums over pairs, in tiles.

    Parameters
    ----------
    objective : Objective
        Any W that `Decomposition` takes, in symbols: a sum over pairs of points and a sum over points.
    tol : float
        The largest KKT violation of the solution. A gradient is as exact as the set of free variables that it finds.
    max_iter, time_limit : int, float, optional
        Limits of a run, see `Program.run`. A gradient of a run that stopped short is an error.
    warm_start : bool
        Whether a run begins at the solution of the run before it. The last digits then depend on that run.
    **data : array_like, CSR matrix or graph
        Values of inputs of the objective, by name, in their place. A CSR matrix is held as it is, and has no gradient.

    Returns
    -------
    lam : TensorVariable
        The solution (n,).
    b : TensorVariable
        The multiplier of the equality, a scalar, or one for each of several; 0 without one.

    Examples
    --------
    >>> import pytensor
    >>> from symsvm.kernels import RBF
    >>> X, y = np.array([[-1.0], [0.5], [2.0], [2.2]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> lam, C, sigma = pt.dvector("lam"), pt.dscalar("C"), pt.dscalar("sigma")
    >>> q = lam * y
    >>> W = 0.5 * q @ RBF(sigma)(X, X) @ q - lam.sum()
    >>> solution, b = argmin(Objective(W, lam, upper=C, equality=(y, 0.0), is_convex=True))
    >>> f = pytensor.function([C, sigma], [b, *pytensor.grad(b, [C, sigma])], mode="FAST_COMPILE")
    >>> [round(float(x), 4) for x in f(1.0, 1.0)]
    [-0.047, -0.047, -0.044]
    >>> last_adjoint(b).n_free
    0
    """
    inputs, limits, warm_start = check_objective(
        objective, tol=tol, max_iter=max_iter, time_limit=time_limit, warm_start=warm_start
    )
    unknown = set(data) - {v.name for v in inputs}
    if unknown:
        names = ", ".join(sorted(v.name for v in inputs if v.name))
        raise TypeError(f"the objective has no input {min(unknown)!r}: its inputs are {names or 'none'}.")
    sparse = {v: data.pop(v.name).tocsr() for v in inputs if hasattr(data.get(v.name), "tocsr")}
    op = Argmin(objective, inputs, sparse, limits, warm_start=warm_start)
    point, b, _ = op(*(data.get(v.name, v) if v.name else v for v in inputs if v not in sparse))
    point.name = objective.variable.name
    if objective.equality is None:
        return point, pt.constant(0.0)
    return point, b if objective.equality[0].ndim == 2 else b[0]


def check_objective(
    objective: Objective,
    *,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: bool = False,
) -> tuple[list[Any], dict[str, Any], bool]:
    """Return the inputs of an objective, free and shared, and the options of `argmin` after their check.

    Parameters
    ----------
    objective : Objective
        The problem.
    tol, max_iter, time_limit, warm_start
        See `argmin`.

    Returns
    -------
    tuple of (list of TensorVariable, dict, bool)
        The inputs, the limits of a run, and whether it is started at the solution of the one before.
    """
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
    if isinstance(objective, KernelDual):
        raise TypeError("argmin needs an objective in symbols, and a KernelDual has its numbers: write its W.")
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, None)
    variables, _ = leaves([objective.value, *objective.bounds])
    inputs = [v for v in variables if v is not objective.variable]
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    return inputs, limits, switch(warm_start, "warm_start")


def last_adjoint(solution: Graph) -> Adjoint | None:
    """Return what the last gradient of a solution rests on: the size of its free set, margins, a condition.

    Parameters
    ----------
    solution : TensorVariable
        A graph of `argmin`, lam or b.

    Returns
    -------
    Adjoint or None
        The adjoint of the last gradient that was computed in this process; None before the first.
    """
    for x in ancestors([solution]):
        if x.owner is not None and isinstance(x.owner.op, Argmin):
            return x.owner.op.adjoint.last
    raise TypeError(f"solution must be a graph that argmin returned, got {solution!r}.")


class Argmin(Op):
    """The solution of an objective, and the multipliers of its equalities, as a function of what they depend on.

    Parameters
    ----------
    objective : Objective
        The problem.
    inputs : sequence of TensorVariable
        What it depends on: the free inputs and shared variables in W and in the constraints.
    sparse : dict of TensorVariable to CSR matrix
        Those that are held as they are; the others are the inputs of the node.
    limits : dict
        tol, max_iter and time_limit of a run.
    warm_start : bool
        See `argmin`.
    """

    __props__ = ()

    def __init__(
        self,
        objective: Objective,
        inputs: Sequence[Any],
        sparse: dict[Any, Any],
        limits: dict[str, Any],
        *,
        warm_start: bool = False,
    ):
        fresh = {v: v.type(name=f"x{k}") for k, v in enumerate(inputs)}
        self.variable = pt.dvector("v")
        value, *bounds = clone_replace(
            [objective.value, *objective.bounds], {objective.variable: self.variable, **fresh}, rebuild_strict=False
        )
        self.objective = objective.with_graphs(value, self.variable, bounds)
        self.inputs = [x for v, x in fresh.items() if v not in sparse]
        self.sparse = {fresh[v]: matrix for v, matrix in sparse.items()}
        self.limits, self.warm_start = limits, warm_start
        self.program = DualProgram(self.objective, Decomposition())
        self.adjoint = AdjointSolve(self)
        self.last: Solution | None = None
        self._bound: Any = (), None

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __str__(self):
        return f"argmin of {self.objective!r}"

    def make_node(self, *inputs):
        """Make the node: its outputs are the solution, the multipliers, and the gradient of the program there."""
        register_conversions()
        pairs = zip(self.inputs, inputs, strict=True)
        inputs = [x.type.filter_variable(pt.as_tensor(v, dtype=x.dtype)) for x, v in pairs]
        return Apply(self, inputs, [pt.dvector(), pt.tensor(dtype="float64", shape=(self.n_equalities,)), pt.dvector()])

    @property
    def n_equalities(self) -> int | None:
        """The number of equalities, None where the graphs do not say it."""
        equality: Any = self.objective.equality
        return 0 if equality is None else 1 if equality[0].ndim == 1 else equality[0].type.shape[0]

    def data(self, values: Sequence[Array]) -> dict[str, Any]:
        """Return the arguments of `program.run`."""
        given = dict(zip((x.name for x in self.inputs), values, strict=True))
        return given | {x.name: matrix for x, matrix in self.sparse.items()}

    def solve(self, *values: Array) -> tuple[Array, Array, Array]:
        """Return the solution, the multipliers and the gradient of the program in numbers."""
        start = self.last.point if self.warm_start and self.last is not None else None
        if start is not None and len(start) != self.count([np.shape(x) for x in values])[0]:
            start = None
        problem = self.program.problem(**self.data(values))
        options: Any = self.limits | self.program.solver.options
        solution = solve_problem(problem, kind=self.program.kind, start=start, **options)
        self._bound = values, problem
        if self.warm_start:
            self.last = solution
        b = np.zeros(0) if solution.b is None else np.atleast_1d(np.asarray(solution.b, dtype="float64"))
        return np.ascontiguousarray(solution.point, dtype="float64"), b, np.ascontiguousarray(solution.gradient)

    def problem(self, values: Sequence[Array]) -> KernelProblem:
        """Return the problem on these values: that of the last run, with its kernel matrix, where they are the same."""
        last, problem = self._bound
        if len(last) == len(values) and all(map(np.array_equal, last, values)):
            return problem
        return self.program.problem(**self.data(values))

    def perform(self, node, inputs, outputs):
        """Run the solver."""
        for output, value in zip(outputs, self.solve(*inputs), strict=True):
            output[0] = value

    def infer_shape(self, fgraph, node, shapes):
        """Return the shapes of the outputs, from those of the inputs."""
        return [(length,) for length in self.lengths(node.inputs)]

    def lengths(self, inputs: Sequence[Any]) -> list[Graph]:
        """Return the lengths of the outputs as graphs of the inputs."""
        reading = self.program.reading
        assert reading is not None
        rows = reading.matrix if reading.pairs is None else reading.pairs.arrays[0]
        n = rows.shape[0] * len(reading.parts)
        counts = [*clone_replace([n], self._values(reading), rebuild_strict=False), pt.constant(self.n_equalities or 0)]
        if self.n_equalities is None:
            counts[1] = self.objective.equality[0].shape[0]
        held = {x: pt.alloc(0.0, *matrix.shape) for x, matrix in self.sparse.items()}
        lengths = clone_replace(counts, {**dict(zip(self.inputs, inputs, strict=True)), **held}, rebuild_strict=False)
        return [*lengths, 2 * lengths[0] if reading.width else lengths[0]]

    def _values(self, reading: Any) -> dict[Any, Any]:
        """What stands for the inputs of the reading."""
        given = [*leaves_of(self.objective), *(pt.constant(x) for x in reading.fixed)]
        return dict(zip(reading.inputs, given, strict=True))

    def count(self, shapes: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the lengths of the outputs, from the shapes of the inputs."""
        compiled = function(self.inputs, self.lengths(self.inputs), mode=PLAIN)
        return [int(n) for n in compiled(*(np.empty(s, x.dtype) for s, x in zip(shapes, self.inputs, strict=True)))]

    def pullback(self, inputs, outputs, cotangents):
        """Return the gradients by all inputs; the docstring of this module gives the formula."""
        v, b, F = outputs
        gv, gb = (
            pt.zeros_like(x) if isinstance(g.type, DisconnectedType) else g
            for x, g in zip((v, b), cotangents[:2], strict=True)
        )
        found = self.adjoint(*inputs, v, F, gv, gb)
        arguments, gradients = self._gradients
        swaps = dict(zip((*self.inputs, *arguments), (*inputs, v, *found), strict=True))
        # The adjoint stays connected: a second derivative is refused there, and never wrong.
        gradients = clone_replace(gradients, swaps, rebuild_strict=False)
        smooth = iter(gradients)
        return [next(smooth) if _is_float(x) else x.zeros_like(dtype="float64") for x in inputs]

    @functools.cached_property
    def _gradients(self) -> tuple[tuple[Any, ...], list[Graph]]:
        """v, u, w, b, lower' and upper', and the gradients by the inputs that are no integers, as graphs of them."""
        with COMPILING:
            arguments, total = self._sum()
            smooth = [x for x in self.inputs if _is_float(x)]
            found = differentiate(total, smooth, disconnected_inputs="ignore", return_disconnected="zero")
            return arguments, [x.astype("float64") for x in found]

    def _sum(self) -> tuple[tuple[Any, ...], Graph]:
        """v, u, w, b, lower' and upper', and the sum whose gradient is that of a loss, as a graph of them."""
        objective, v = self.objective, self.variable
        u, w, b, low, up = (pt.dvector(name) for name in ("u", "w", "b", "low", "up"))
        total = -on_support(tile([self._slope(u)])[0], self.sparse)
        for g, bound, varies in zip((low, up), objective.bounds[:2], self.varying_bounds, strict=True):
            if varies:  # 0 times an infinite bound is no number, and no variable is at one
                total += pt.switch(pt.neq(g, 0), g * bound, 0).sum()
        if objective.equality is not None:
            a, c = objective.equality
            rows, totals = pt.atleast_2d(a), pt.atleast_1d(c)
            total -= (rows * (b * u)).sum() + (w * (pt.dot(rows, v) - totals)).sum()
        return (v, u, w, b, low, up), total

    @property
    def varying_bounds(self) -> tuple[bool, bool]:
        """Whether the lower and the upper bound are computed from inputs."""
        low, up = (not isinstance(x, Constant) for x in self.objective.bounds[:2])
        return low, up

    def _slope(self, u: Graph) -> Graph:
        """u.dW/dv."""
        reading, v = self.program.reading, self.variable
        assert reading is not None

        def of(part: Graph, x: Graph) -> Graph:
            return clone_replace([part], {reading.v: x}, rebuild_strict=False)[0]

        q, Q = (_weights(reading, [of(part, x) for part in reading.parts]) for x in (v, u))
        total = reading.scale * (Q * pt.dot(reading.matrix, q)).sum()
        for part, p in reading.p:
            total += (of(part, u) * p).sum()
        for part, D in reading.diagonal:
            total += (of(part, u) * D * of(part, v)).sum()
        for part, width in reading.width:
            total += (of(part, u) * width * pt.sign(of(part, v))).sum()
        for part, x, values in reading.smooth:
            slope = differentiate(values.sum(), x)
            total += (of(part, u) * clone_replace([slope], {x: of(part, v)}, rebuild_strict=False)[0]).sum()
        return clone_replace([total], self._values(reading), rebuild_strict=False)[0]


class AdjointSolve(Op):
    """The adjoint system of a solution: (inputs, v, F, gradient by v, gradient by b) -> u, w, b, lower', upper'."""

    __props__ = ()

    def __init__(self, solution: Argmin):
        self.solution = solution
        self.last: Adjoint | None = None

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def make_node(self, *inputs):
        """Make the node."""
        register_conversions()
        inputs = [pt.as_tensor(x) for x in inputs]
        return Apply(self, inputs, [x.type() for x in (inputs[-2], inputs[-1], *(inputs[-2],) * 3)])

    def solve(self, *values: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return the adjoint in numbers; warn where the derivative is doubtful."""
        *data, v, F, gv, gb = values
        problem = self.solution.problem(data)
        tol = _VIOLATION * self.solution.limits["tol"]
        v, F, gv, gb = (np.asarray(x, dtype="float64") for x in (v, F, gv, gb))
        self.last = found = solve_adjoint(problem, v, gv, gb, F=F, tol=tol, bounds=self.solution.varying_bounds)
        warn_if_doubtful(found)
        return found.u, found.w, found.multipliers, found.lower, found.upper

    def perform(self, node, inputs, outputs):
        """Solve the system."""
        for output, value in zip(outputs, self.solve(*inputs), strict=True):
            output[0] = value

    def infer_shape(self, fgraph, node, shapes):
        """Return the shapes of v and b."""
        n, count = shapes[-2:]
        return [n, count, n, n, n]

    def pullback(self, inputs, outputs, cotangents):
        """Raise: there are no second derivatives."""
        raise NotImplementedError(SECOND_DERIVATIVES)


def _is_float(x: Any) -> bool:
    return x.dtype.startswith("float")


def _weights(reading: Any, parts: list[Graph]) -> Graph:
    """q_i = sum over parts of c_i v_i."""
    terms = zip(parts, reading.signs, reading.factors, strict=True)
    return sum(sign * (part if c is None else c * part) for part, sign, c in terms)


def register_conversions() -> None:
    """Register the conversions of these Ops to Numba."""
    importlib.import_module("symsvm.implicit.numba_callbacks")  # here, so that Numba is loaded only when needed


add_jax_conversions("symsvm.implicit.jax_callbacks")
