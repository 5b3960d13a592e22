"""Floating types of graphs: `retype` computes a graph in another type, `widen` in float64 despite narrow constants."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors, nor that a reduction's class fixes its scalar Op.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import CAReduce, Elemwise

from symsvm.graphs.structure import inner_graph, is_literal, scalar_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Graph

__all__ = ["retype", "widen"]

_NARROW_FLOATS = ("float16", "float32")
_NARROW_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_NARROW = _NARROW_FLOATS + _NARROW_INTEGERS
# Operations whose result has the type of these arguments; the others are indices, lengths and axes. They are listed by
# name because not every version of PyTensor has all of them.
_FIRST, _ALL = slice(0, 1), slice(None)
_VALUES = {
    "AdvancedSubtensor": _FIRST,
    "AdvancedSubtensor1": _FIRST,
    "Alloc": _FIRST,
    "Blockwise": _ALL,
    "CumOp": _FIRST,
    "DimShuffle": _FIRST,
    "Dot": _ALL,
    "Join": _ALL,
    "LogSoftmax": _FIRST,
    "Reshape": _FIRST,
    "Shape": _FIRST,
    "Softmax": _FIRST,
    "SpecifyShape": _FIRST,
    "Subtensor": _FIRST,
}
# Those of them that compute nothing.
_VIEWS = _VALUES.keys() - {"Blockwise", "CumOp", "Dot", "LogSoftmax", "Shape", "Softmax"}


def widen(graphs: Sequence[Variable]) -> list[Graph]:
    """Return the graphs computed in float64 (int64) where only a Python number makes a part float32 (int8).

    PyTensor gives a Python number the smallest type that holds it: 2.0 is a float32 and 2 an int8. So sqrt(2) has only
    seven correct digits, also in a graph of float64, and 100 * 2 overflows. In the result, a float32 comes from a
    float32 array or from an explicit cast of a float64, and from nothing else. Outputs keep their types.

    >>> x = pt.dscalar("x")
    >>> (graph,) = widen([x * pt.sqrt(2)])
    >>> graph.eval({x: 1.0}, mode="FAST_COMPILE").item() == 2**0.5
    True
    """
    widening = _Widening()
    for node in toposort(graphs):
        widening.rebuild(node)
    return [widening.original(v) for v in graphs]


class _Widening:
    """The wide versions of the variables of a graph, from its leaves up."""

    def __init__(self):
        # The variables whose wide version is another variable.
        self.wide = {}
        # The variables whose narrow type is that of an array or of an explicit cast.
        self.typed = set()
        # The variables cast from unchanged ones: rounding the wide version gives the same value.
        self.rounded_once = set()

    def version(self, v):
        """Return a variable in the type that no number narrows."""
        if v not in self.wide:
            dtype, value = getattr(v.type, "dtype", None), scalar_constant(v)
            if value is not None and dtype in _NARROW:
                if v.owner is not None:  # a constant with other axes
                    self.wide[v] = v.owner.op(self.version(*v.owner.inputs))
                else:
                    self.wide[v] = pt.constant(v.data.astype("float64" if dtype in _NARROW_FLOATS else "int64"))
            elif v.owner is None and dtype in _NARROW:
                self.typed.add(v)
        return self.wide.get(v, v)

    def original(self, v):
        """Return a variable in the type that it has in the graph."""
        wide = self.version(v)
        if wide is v or scalar_constant(v) is not None or v in self.rounded_once:
            return v
        return wide if wide.type.dtype == v.type.dtype else wide.astype(v.dtype)

    def rebuild(self, node):
        """Make the node again if an argument has a wider version, or its result is narrower than necessary."""
        if scalar_constant(node.outputs[0]) is not None:
            return
        op, is_narrow = node.op, any(getattr(v.type, "dtype", None) in _NARROW for v in node.outputs)
        # A literal next to a float64 is cast exactly, so it stays. Other numbers get one type whatever their value, so
        # that graphs that differ only in them are compiled once.
        args = [self.version(v) if is_narrow or not is_literal(v) else v for v in node.inputs]
        typed = [v for v in node.inputs if v in self.typed]
        made = None
        if any(v.type.dtype in _NARROW_FLOATS for v in typed):
            pass
        elif isinstance(op, Elemwise):
            made = self._elementwise(node, args, typed)
        elif isinstance(op, CAReduce) and args[0] is not node.inputs[0]:
            made = [type(op)(axis=op.axis)(args[0])]
        elif isinstance(op, MakeVector) and op.dtype in _NARROW_FLOATS and not typed:
            made = [MakeVector("float64")(*args)]
        elif isinstance(op, OpFromGraph):
            if any(a is not v for a, v in zip(args, node.inputs, strict=True)):
                inputs, outputs = inner_graph(op)
                made, _ = retype(outputs, "float64", dict(zip(inputs, args, strict=True)))
        elif type(op).__name__ in _VALUES:
            values, mixed = _VALUES[type(op).__name__], [self.original(v) for v in node.inputs]
            mixed[values] = args[values]
            made = _made(node, op, mixed)
        if made is None:
            op = _widened_loop(op) if isinstance(op, Scan) else op
            made = _made(node, op, [self.original(v) for v in node.inputs])
        for old, new in zip(node.outputs, made, strict=True):
            if new is not old:
                self.wide[old] = new
            if getattr(new.type, "dtype", None) in _NARROW:
                self.typed.add(old)
        computes = not _is_cast(node.outputs[0]) and type(op).__name__ not in _VIEWS
        if not computes and all(self.original(v) is v for v in node.inputs):
            self.rounded_once.update(node.outputs)

    def _elementwise(self, node, args, typed):
        """Return the outputs of an elementwise operation of wide arguments; None if the narrow type is intended."""
        op, dtype = node.op, node.outputs[0].dtype
        if isinstance(op.scalar_op, ps.Cast):
            (source,) = node.inputs
            if dtype not in _NARROW_FLOATS:
                return [args[0].astype(dtype)] if args[0] is not source else node.outputs
            return None if source.dtype == "float64" else [args[0].astype("float64")]
        if typed and dtype in _NARROW_INTEGERS:
            return None
        made = _made(node, op, args)
        if made[0].dtype not in _NARROW_FLOATS:
            return made
        integers = [a.astype("int64") if a.dtype in ("bool", *_NARROW_INTEGERS) else a for a in args]
        return _made(node, op, integers)


def _is_cast(variable):
    node = variable.owner
    return node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Cast)


def _made(node, op, args):
    """Return the outputs of an operation; those of the node if nothing has changed."""
    if op is node.op and all(a is v for a, v in zip(args, node.inputs, strict=True)):
        return node.outputs
    return op.make_node(*args).outputs


def _widened_loop(loop):
    """Return the loop with its step widened; its states keep their types."""
    inputs, outputs = inner_graph(loop)
    wide = widen(outputs)
    return loop if all(new is old for new, old in zip(wide, outputs, strict=True)) else _loop(loop, inputs, wide)


def _loop(loop, inputs, outputs):
    options = {name: getattr(loop, name) for name in ("mode", "truncate_gradient", "name", "allow_gc", "strict")}
    return Scan(inputs, outputs, loop.info, **options)


def retype(
    graphs: Sequence[Variable], dtype: str, given: dict[Any, Any] | None = None
) -> tuple[list[Graph], dict[Any, Graph]]:
    """Return the graphs computed in another floating type, and the inputs that replace the floating ones.

    `given` maps variables to their replacements. Other floating inputs and constants are replaced by new ones.
    """
    known, inputs = dict(given or {}), {}

    def other(v):
        if v not in known:
            found = getattr(v, "dtype", "")  # an axis may be None
            if not found.startswith("float") or found == dtype:
                known[v] = v
            elif isinstance(v, Constant):
                known[v] = pt.constant(v.data.astype(dtype))
            else:
                known[v] = inputs[v] = pt.tensor(v.name, dtype=dtype, shape=v.type.shape)
        return known[v]

    for node in toposort(graphs):
        if all(v in known for v in node.outputs):
            continue
        args, op = [other(v) for v in node.inputs], node.op
        if _is_cast(node.outputs[0]) and node.outputs[0].dtype.startswith("float"):
            made = [args[0].astype(dtype)]
        else:
            if isinstance(op, CAReduce):
                op = type(op)(axis=op.axis)
            elif isinstance(op, Scan):
                op = _retyped_loop(op, dtype)
            elif hasattr(op, "retyped"):
                op = op.retyped(dtype)
            made = op.make_node(*args).outputs
        for old, new in zip(node.outputs, made, strict=True):
            known[old] = new.astype(dtype) if old.dtype.startswith("float") else new
    return [other(v) for v in graphs], inputs


def _retyped_loop(loop, dtype):
    """Return the loop over states of another floating type."""
    floats = [v for v in loop.inner_inputs if v.dtype.startswith("float")]
    given = {v: pt.tensor(v.name, dtype=dtype, shape=v.type.shape) for v in floats}
    outputs, _ = retype(loop.inner_outputs, dtype, given)
    inputs = [given.get(v, v) for v in loop.inner_inputs]
    return _loop(loop, inputs, outputs)
