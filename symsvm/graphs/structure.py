"""Questions about graphs: which axes vary, which inputs and numbers they have, whether two are the same computation."""

# pyright: reportAttributeAccessIssue=false, reportReturnType=false
# PyTensor's types do not say which variables are tensors or constants.

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt  # noqa: F401 (for the doctests)
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import DimShuffle, Elemwise

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.op import Op

    from symsvm._lib.types import Array, Graph

__all__ = [
    "inner_graph",
    "is_elemwise",
    "is_literal",
    "leaves",
    "scalar_constant",
    "select_axes",
    "signature",
    "varying_axes",
]


def is_elemwise(variable: Variable, *scalar_ops: type[ps.ScalarOp]) -> bool:
    """Whether a variable is computed by an elementwise operation, one of `scalar_ops` if any are given."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise):
        return False
    return not scalar_ops or isinstance(node.op.scalar_op, scalar_ops)


def inner_graph(op: Op) -> tuple[list, list]:
    """Return the inputs and outputs of the graph inside an Op (a Scan, an OpFromGraph), for use in other graphs."""
    inner = op.fgraph
    if hasattr(inner, "unfreeze"):  # from PyTensor 3.1 on it is frozen
        inner = inner.unfreeze()
    return inner.inputs, inner.outputs


def scalar_constant(variable: Variable) -> Array | None:
    """Return the value of a constant with one entry and any number of axes, as a 0-d array; None for others."""
    variable = _source(variable)
    single = isinstance(variable, Constant) and isinstance(variable.data, np.ndarray) and variable.data.size == 1
    return variable.data.reshape(()) if single else None


def _source(variable):
    """Return the variable below any changes of axes."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        (variable,) = variable.owner.inputs
    return variable


def varying_axes(variable: Variable) -> set[int]:
    """Return the axes along which a variable is not known to have length 1."""
    return {i for i, length in enumerate(variable.type.shape) if length != 1}


def select_axes(variable: Variable, axes: tuple[int, ...]) -> Graph:
    """Return the variable with these axes only, in this order; the others must have length 1."""
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle):
        order = [node.op.new_order[i] for i in axes]
        source = node.inputs[0]
        if set(order) - {"x"} == set(range(source.ndim)):
            return source if order == list(range(source.ndim)) else source.dimshuffle(order)
    return variable if axes == tuple(range(variable.ndim)) else variable.dimshuffle(axes)


# Numbers that belong to a formula, not to a user: PyTensor simplifies expressions with them, such as 1 + exp(x).
_LITERALS = (0.0, 0.5, 1.0, 2.0)


def leaves(graphs: Sequence[Variable]) -> tuple[list, list]:
    """Return (variables, numbers) of graphs: inputs and shared variables, and constants that a user may change.

    The latter are single floats, except 0, 1/2, 1, 2, their negatives, infinities and exponents. The order of both
    depends on the structure of the graphs only.
    """
    exponents = {_source(node.inputs[1]) for node in toposort(graphs) if _is_power(node)}
    variables, numbers = {}, {}
    below = [v for node in toposort(graphs) for v in node.inputs]
    for v in [*below, *graphs]:
        if v.owner is not None:
            continue
        if not isinstance(v, Constant):
            variables[v] = None
        elif v not in exponents and _is_parameter(v):
            numbers[v] = None
    return list(variables), list(numbers)


def is_literal(variable: Variable) -> bool:
    """Whether a variable is a number that belongs to a formula: an integer, 0, 1/2, 1, 2, a negative, or an infinity.

    >>> is_literal(pt.constant(0.5)), is_literal(pt.constant(2)), is_literal(pt.constant(0.3)), is_literal(pt.scalar())
    (True, True, False, False)
    """
    value = scalar_constant(variable)
    if value is None:
        return False
    return value.dtype.kind != "f" or abs(float(value)) in _LITERALS or not np.isfinite(value)


def _is_power(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Pow)


def _is_parameter(constant):
    if scalar_constant(constant) is None or constant.data.dtype.kind != "f":
        return False
    return not is_literal(constant)


def signature(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Hashable:
    """Return a key of the computation from inputs to outputs: equal for equal computations of other inputs.

    >>> x, y = pt.scalars("x", "y")
    >>> signature([x], [2 * x]) == signature([y], [2 * y]), signature([x], [2 * x]) == signature([x], [3 * x])
    (True, False)
    """
    index: dict[Variable, int] = {v: i for i, v in enumerate(inputs)}
    steps = [tuple(v.type for v in inputs)]

    def name(v):
        if v in index:
            return index[v]
        if isinstance(v, Constant):
            return v.type, _content(v.data)
        return v  # a leaf that is not in `inputs`

    for node in toposort(outputs):
        if all(v in index for v in node.outputs):
            continue
        steps.append((node.op, tuple(name(v) for v in node.inputs)))
        for v in node.outputs:
            index.setdefault(v, len(index))
    return (*steps, tuple(name(v) for v in outputs))


def _content(data):
    if hasattr(data, "tocsr"):
        return tuple(part.tobytes() for part in (data.data, data.indices, data.indptr)) + data.shape
    return (data.tobytes(), data.shape) if hasattr(data, "tobytes") else repr(data)
