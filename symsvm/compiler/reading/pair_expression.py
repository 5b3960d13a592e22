"""PairExpression: one expression H(r_i, r_j) for the rows of several arrays, and the matrix of all pairs.

    H_ij = H(x_i, s_i, ...; x_j, s_j, ...; theta)

A kernel is such an expression over the rows of one array, the points. The expression of a W that is written by hand is
found by `separate`: it follows the two axes of a matrix of pairs down to the arrays whose rows vary along them.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors, nor that a variable with an Op has an owner.

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.graph.rewriting.db import EquilibriumDB
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from symsvm.compiler.functions import COMPILING, function
from symsvm.compiler.lifting import canonicalize, lift
from symsvm.compiler.ops.kernel_form import factor
from symsvm.compiler.ops.registration import only_reading
from symsvm.compiler.ops.scalar_function import NotElementwise
from symsvm.compiler.reading.definiteness import psd_conditions
from symsvm.compiler.rewrites.quadratic import is_symmetric
from symsvm.graphs.structure import leaves, select_axes, signature, varying_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from symsvm._lib.types import Graph
    from symsvm.compiler.ops.kernel_form import KernelForm
    from symsvm.kernels import Kernel

__all__ = ["PLAIN", "PairExpression", "Separated", "row_arrays", "separate"]


@node_rewriter([Elemwise])
def local_binary(fgraph, node):
    """a + b + c -> (a + b) + c, and products: of three arrays PyTensor calls NumPy for each entry."""
    if not isinstance(node.op.scalar_op, (Add, Mul)) or len(node.inputs) < 3:
        return None
    first, *rest = node.inputs
    for v in rest:
        first = node.op(first, v)
    return [first]


_BINARY = EquilibriumDB(ignore_newtrees=True)
_BINARY.register("symsvm_local_binary", local_binary, "symsvm_binary")
optdb.register("symsvm_binary_db", _BINARY, "symsvm_binary", position=60)  # after all others

# NumPy by Python: sums over points are not worth a compilation, nor what PyTensor's other modes import.
PLAIN = Mode("py", "fast_compile").including("symsvm_binary")


class PairExpression:
    """The matrix H(r_i, r_j) over two sets of rows, as a graph, with what was compiled from it.

    Parameters
    ----------
    rows, columns : sequence of graphs
        The inputs of both sides: arrays whose first axis is that of the rows.
    numbers : sequence of graphs
        Further inputs: hyper-parameters, and arrays that do not vary with the rows.
    matrix : graph
        The matrix (m, n) of all pairs.

    Attributes
    ----------
    rows, columns, numbers, matrix
        The parameters.
    dtype : str
        The floating type of the matrix.
    loops : dict
        The compiled loops, by storage of the points; filled by whoever evaluates the expression.
    """

    def __init__(self, rows: Sequence[Graph], columns: Sequence[Graph], numbers: Sequence[Graph], matrix: Graph):
        self.rows, self.columns, self.numbers, self.matrix = list(rows), list(columns), list(numbers), matrix
        self.dtype: str = matrix.dtype
        self.loops: dict[Hashable, dict] = {}
        self._forms: dict[str, KernelForm | None] = {}
        self._parts: dict[Any, Any] = {}
        self._functions: dict[Any, Callable] = {}

    @classmethod
    def of_kernel(cls, kernel: Kernel) -> PairExpression:
        """The expression of a kernel over points; its numbers are the kernel's, in the order of `Kernel.lift`."""
        with COMPILING:
            if kernel.key not in _KERNELS:
                _KERNELS[kernel.key] = cls._of_kernel(kernel)
            return _KERNELS[kernel.key]

    @classmethod
    def _of_kernel(cls, kernel: Kernel) -> PairExpression:
        A, B = (pt.tensor(name, dtype="float64", shape=(None, None)) for name in "AB")
        numbers: list[Any] = []

        def variable(name, value):
            numbers.append(pt.tensor(name, dtype="float64", shape=(None,) * np.ndim(value)))
            return numbers[-1]

        lifted = kernel.lift(variable)
        return cls([A], [B], numbers, lifted(A, B))

    @classmethod
    def shared(
        cls, rows: Sequence[Graph], columns: Sequence[Graph], numbers: Sequence[Graph], matrix: Graph
    ) -> PairExpression:
        """The expression with what others of the same structure have compiled."""
        key = signature([*rows, *columns, *numbers], [matrix])
        if key not in _EXPRESSIONS:
            _EXPRESSIONS[key] = cls(rows, columns, numbers, matrix)
        return _EXPRESSIONS[key]

    @functools.cached_property
    def is_symmetric(self) -> bool:
        """Whether the expression proves that H(r, s) = H(s, r)."""
        with COMPILING:
            (same,) = clone_replace([self.matrix], dict(zip(self.columns, self.rows, strict=True)))
            (lifted,) = lift([same])
            return is_symmetric(lifted)

    def is_psd(self, values: Sequence[Any]) -> bool | None:
        """Whether the expression, with these numbers, proves that every matrix is positive semi-definite.

        Parameters
        ----------
        values : sequence of array
            The values of `numbers`.

        Returns
        -------
        bool or None
            True, or None where nothing is known.
        """
        if self._psd_conditions is None:
            return None
        return True if all(np.all(value >= 0) for value in self._psd_conditions(*values)) else None

    @property
    def has_psd_proof(self) -> bool:
        """Whether some numbers make the expression a proof that every matrix is positive semi-definite."""
        return self._psd_conditions is not None

    @functools.cached_property
    def _psd_conditions(self) -> Callable | None:
        """The function of the numbers whose values must be at least 0, None without a proof."""
        with COMPILING:
            (canonical,) = canonicalize([self.matrix], clone=True)
            conditions = psd_conditions(canonical, self.rows, self.columns)
            return None if conditions is None else function(self.numbers, conditions, mode=PLAIN)

    def form(self, dtype: str = "float64") -> KernelForm | None:
        """The form in which tiles are computed, None if there is none."""
        if dtype not in self._forms:
            with COMPILING:
                self._forms[dtype] = self._form(dtype)
        return self._forms[dtype]

    def check_lengths(self, rows: Sequence[Any], values: Sequence[Any]) -> None:
        """Raise ValueError if a vector with a number for each feature does not fit the points.

        Parameters
        ----------
        rows : sequence of array
            The arrays of `rows`.
        values : sequence of array
            The values of `numbers`.
        """
        form = self.form()
        for channel in () if form is None else form.channels:
            if channel.A not in self.rows or not channel.weights:
                continue  # features that the expression computes itself
            d = np.shape(rows[self.rows.index(channel.A)])[1]
            below = set(ancestors(channel.weights))
            for v, value in zip(self.numbers, values, strict=True):
                if v in below and v.ndim == 1 and len(value) != d:
                    raise ValueError(
                        f"{v.name or 'a vector'} of the kernel has length {len(value)}, but the points have {d} "
                        "features: give one number for each feature, or one for all."
                    )

    def _form(self, dtype):
        if dtype != self.dtype:
            form = self.form()
            return None if form is None else form.retyped(dtype)
        with only_reading():
            (K,) = lift([self.matrix])
            try:
                return factor(K)
            except NotElementwise:
                return None

    def parts(self, form: KernelForm, same: bool) -> tuple[list[Graph], list[Any], Callable]:
        """The inputs of the loops: their graphs, the index of each among the results, the function of these.

        Where both sets of rows are the same, so are most arrays of one and of the other: they are computed once.
        """
        key = form, same
        if key not in self._parts:
            with COMPILING:
                self._parts[key] = self._make_parts(form, same)
        return self._parts[key]

    def _make_parts(self, form, same):
        parts = [v for c in form.channels for v in (c.A, c.B, *c.weights)]
        parts += [*form.rows, *form.columns, *form.numbers]
        swaps: Any = dict(zip(self.columns, self.rows, strict=True))
        graphs: Any = clone_replace(parts, swaps) if same else parts
        given = {*self.rows, *self.columns}
        inputs, different, where = [*self.rows, *self.columns, *self.numbers], {}, []
        for part, graph in zip(parts, graphs, strict=True):
            name = None if part in given else signature(inputs, [graph])
            where.append(None if name is None else different.setdefault(name, (len(different), graph))[0])
        compiled = function(inputs, [graph for _, graph in different.values()], mode=PLAIN, trust_input=True)
        return parts, where, compiled

    def function(self, name: str, output: Graph, mode: Mode, inputs: Sequence[Graph] = ()) -> Callable:
        """The compiled function of (rows, columns, the inputs, the numbers)."""
        key = name, mode
        if key not in self._functions:
            inputs = [*self.rows, *self.columns, *inputs, *self.numbers]
            self._functions[key] = function(inputs, output, mode=mode)
        return self._functions[key]


# By the key of a kernel and by the structure of a graph.
_KERNELS: dict[Hashable, PairExpression] = {}
_EXPRESSIONS: dict[Hashable, PairExpression] = {}


class Separated(NamedTuple):
    """The expression of a matrix of pairs, the arrays that its rows are of, and the graphs of its numbers."""

    expression: PairExpression
    arrays: list[Graph]
    numbers: list[Graph]


def separate(matrix: Graph) -> Separated | None:
    """Return the expression of a matrix of pairs, or None.

    Both axes must come from the same arrays, as in K(x_i, x_j). None is returned for a matrix that is not computed from
    rows: one that is given as a whole.

    Parameters
    ----------
    matrix : graph
        A square matrix of pairs.

    Returns
    -------
    Separated or None
        The expression; for each of its `rows` the array in the graph; and for each of its `numbers` the variable.

    Examples
    --------
    >>> X, s = pt.dmatrix("X"), pt.dscalar("s")
    >>> expression, arrays, numbers = separate(pt.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / s))
    >>> arrays, numbers, expression.is_symmetric
    ([X], [s], True)
    """
    split = _Separation()
    try:
        separated = split.walk(matrix, (_ROW, _COLUMN))
    except _GivenError:
        return None
    arrays = list(split.arrays)
    if not arrays:
        return None
    rows, columns = ([split.arrays[array][side] for array in arrays] for side in (0, 1))
    variables, _ = leaves([separated])
    numbers = [v for v in variables if v not in {*rows, *columns}]
    return Separated(PairExpression.shared(rows, columns, numbers, separated), arrays, numbers)


def row_arrays(graph: Graph, axes: Sequence[int]) -> list[Graph] | None:
    """Return the arrays whose rows vary along one axis of a graph, or along two of them; None for a given matrix."""
    split, roles = _Separation(), iter((_ROW, _COLUMN))
    try:
        split.walk(graph, tuple(next(roles) if axis in axes else None for axis in range(graph.ndim)))
    except _GivenError:
        return None
    return list(split.arrays)


_ROW, _COLUMN = "row", "column"


class _GivenError(Exception):
    """A matrix of pairs is no expression in rows."""


class _Separation:
    """Replaces arrays of rows by inputs, other ones for the row of a pair than for its column."""

    def __init__(self):
        self.arrays: dict[Graph, tuple[Graph, Graph]] = {}
        self._known: dict[Any, Graph] = {}

    def walk(self, x: Graph, roles: tuple[str | None, ...]) -> Graph:
        """The variable over the inputs; `roles` says which of its axes is that of rows and that of columns."""
        varying = varying_axes(x)
        roles = tuple(role if axis in varying else None for axis, role in enumerate(roles))
        if not any(roles) or (isinstance(x, Constant) and x.ndim == 0):
            return x
        if (x, roles) not in self._known:
            self._known[x, roles] = self._walk(x, roles)
        return self._known[x, roles]

    def _walk(self, x: Any, roles: Any) -> Any:
        node = x.owner
        op = None if node is None else node.op
        if isinstance(op, Elemwise):
            return op(*(self.walk(v, roles) for v in node.inputs))
        if isinstance(op, DimShuffle):
            (inside,) = node.inputs
            below: list[str | None] = [None] * inside.ndim
            for axis, source in enumerate(op.new_order):
                if source != "x":
                    below[source] = roles[axis]
            return op(self.walk(inside, tuple(below)))
        if isinstance(op, Sum):
            (inside,) = node.inputs
            reduced, rest = set(range(inside.ndim)) if op.axis is None else set(op.axis), iter(roles)
            return op(self.walk(inside, tuple(None if a in reduced else next(rest) for a in range(inside.ndim))))
        if isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
            (a, b), (*batch, i, j) = node.inputs, roles
            return op(self.walk(a, (*batch, i, None)), self.walk(b, (*batch, None, j)))
        if isinstance(op, AdvancedSubtensor) and _is_gather(node) and roles[0] is not None:
            source, index = node.inputs
            return op(source, self.walk(index, roles[:1]))
        if isinstance(op, Blockwise) and _is_row_of(op.core_op) and roles[0] is not None:
            source, index = node.inputs  # x[i] for each i, of a stack of one matrix
            if source.type.shape[0] == 1 and index.ndim == 1:
                return source[0][self.walk(index, roles[:1])]
        return self._array(x, roles)

    def _array(self, x, roles):
        """The input that stands for the rows of an array."""
        axes = [axis for axis, role in enumerate(roles) if role is not None]
        if len(axes) != 1:
            raise _GivenError
        order = (axes[0], *(axis for axis in range(x.ndim) if axis != axes[0]))
        array = select_axes(x, order)
        if array not in self.arrays:
            name = array.name or f"rows{len(self.arrays)}"
            shape = (None,) * array.ndim
            i, j = (pt.tensor(f"{name}_{side}", dtype=array.dtype, shape=shape) for side in "ij")
            self.arrays[array] = i, j
        side = self.arrays[array][roles[axes[0]] == _COLUMN]
        return side if order == tuple(range(x.ndim)) else side.dimshuffle(np.argsort(order).tolist())


def _is_row_of(op):
    """Whether an operation takes one row of an array, at a given index."""
    if not isinstance(op, Subtensor):
        return False
    first, *others = op.idx_list
    return not isinstance(first, slice) and all(s == slice(None) for s in others)


def _is_gather(node):
    """Whether a node takes the rows of an array at the indices in a vector."""
    if len(node.inputs) != 2 or node.inputs[1].ndim != 1:
        return False
    first, *others = node.op.idx_list
    return not isinstance(first, slice) and all(s == slice(None) for s in others)
