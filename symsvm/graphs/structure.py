"""Small questions about graphs: their axes, their leaves, their structure."""

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt  # noqa: F401 (for the doctests)
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import DimShuffle, Elemwise

__all__ = ["inner_graph", "is_elemwise", "is_literal", "keep", "leaves", "number", "signature", "varies"]


def is_elemwise(variable, *scalar_ops):
    """Say whether a variable is computed by an elementwise operation, one of these if any are given."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise):
        return False
    return not scalar_ops or isinstance(node.op.scalar_op, scalar_ops)


def inner_graph(op):
    """The inputs and outputs of the graph inside an Op, as a graph that others may be made from."""
    inner = op.fgraph
    if hasattr(inner, "unfreeze"):  # PyTensor 3.1 and later keep it frozen
        inner = inner.unfreeze()
    return inner.inputs, inner.outputs


def number(variable):
    """The value of a constant of one entry, with whatever axes, as a 0-d array; else None."""
    variable = _source(variable)
    single = isinstance(variable, Constant) and isinstance(variable.data, np.ndarray) and variable.data.size == 1
    return variable.data.reshape(()) if single else None


def _source(variable):
    """What a variable shows with other axes."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        (variable,) = variable.owner.inputs
    return variable


def varies(variable):
    """The axes along which a variable is not known to have length 1."""
    return {i for i, length in enumerate(variable.type.shape) if length != 1}


def keep(variable, axes):
    """Return the variable with these axes only, in this order; the others have length 1."""
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle):
        order = [node.op.new_order[i] for i in axes]
        source = node.inputs[0]
        if set(order) - {"x"} == set(range(source.ndim)):
            return source if order == list(range(source.ndim)) else source.dimshuffle(order)
    return variable if axes == tuple(range(variable.ndim)) else variable.dimshuffle(axes)


# Numbers that belong to a formula and not to a user: simplifications that know them, 1 + exp(x) say, need to see them.
_LITERALS = (0.0, 0.5, 1.0, 2.0)


def leaves(graphs):
    """Return (variables, numbers) below graphs: inputs and shared variables, and the constants that a user may change.

    The latter are single floats other than 0, 1/2, 1, 2, their negatives and infinities, and exponents. Both come in
    an order that only the structure of the graphs decides.
    """
    exponents = {_source(node.inputs[1]) for node in toposort(graphs) if _is_power(node)}
    variables, numbers = {}, {}
    below = [v for node in toposort(graphs) for v in node.inputs]
    for v in [*below, *graphs]:
        if v.owner is not None:
            continue
        if not isinstance(v, Constant):
            variables[v] = None
        elif v not in exponents and _is_users_number(v):
            numbers[v] = None
    return list(variables), list(numbers)


def is_literal(variable):
    """Say whether a variable is a number that belongs to a formula: a whole one, 1/2, or an infinite one.

    >>> is_literal(pt.constant(0.5)), is_literal(pt.constant(2)), is_literal(pt.constant(0.3)), is_literal(pt.scalar())
    (True, True, False, False)
    """
    value = number(variable)
    if value is None:
        return False
    return value.dtype.kind != "f" or abs(float(value)) in _LITERALS or not np.isfinite(value)


def _is_power(node):
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Pow)


def _is_users_number(constant):
    if number(constant) is None or constant.data.dtype.kind != "f":
        return False
    return not is_literal(constant)


def signature(inputs, outputs):
    """Return what tells a graph from another of inputs of its own: equal for equal computations.

    >>> x, y = pt.scalars("x", "y")
    >>> signature([x], [2 * x]) == signature([y], [2 * y]), signature([x], [2 * x]) == signature([x], [3 * x])
    (True, False)
    """
    index = {v: i for i, v in enumerate(inputs)}
    steps = [tuple(v.type for v in inputs)]

    def name(v):
        if v in index:
            return index[v]
        if isinstance(v, Constant):
            return v.type, _content(v.data)
        return v  # a leaf that was not given

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
