"""SplitParts: an array cut at lengths of other arrays, for JAX, whose shapes are fixed when it compiles.

PyTensor computes such a length from a shape, which JAX refuses inside `jit`: x[:m], x[m:] with m = y.shape[0], and
the gradient of concatenate([a, b]).
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# PyTensor's types do not say that a variable with an Op has an owner.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.tensor.basic import ScalarFromTensor, Split, get_scalar_constant_value
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import Subtensor

from symsvm._lib.compat import subscripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

__all__ = ["SplitParts", "replace_splits"]


class SplitParts(Op):
    """Cut x along an axis into parts as long as other arrays, and what remains: (x, a, b) -> (x_a, x_b, rest).

    Parameters
    ----------
    axis : int
        The axis of x.
    along : tuple of int
        For each other array the axis that is as long as the part.
    """

    __props__ = ("along", "axis")

    def __init__(self, axis: int, along: Sequence[int]):
        self.axis, self.along = axis, tuple(along)

    def make_node(self, x, *others):
        """Make the node."""
        shape: Any = [None if axis == self.axis else n for axis, n in enumerate(x.type.shape)]
        return Apply(self, [x, *others], [pt.tensor(dtype=x.dtype, shape=shape) for _ in (*others, None)])

    def perform(self, node, inputs, outputs):
        """Cut the array."""
        for output, part in zip(outputs, self.cut(np, *inputs), strict=True):
            output[0] = part.copy()

    def cut(self, module: Any, x: Any, *others: Any) -> list[Any]:
        """Return the parts, by NumPy or by JAX.

        Parameters
        ----------
        module : module
            `numpy` or `jax.numpy`.
        x, *others : arrays
            The inputs.

        Returns
        -------
        list of array
            The parts of x.
        """
        ends = np.cumsum([other.shape[axis] for other, axis in zip(others, self.along, strict=True)])
        return module.split(x, [int(end) for end in ends], axis=self.axis)


class _Length(NamedTuple):
    """The length of an axis of an array."""

    array: Any
    axis: int


def replace_splits(fgraph: FunctionGraph) -> None:
    """Put `SplitParts` in the place of each Split, x[:m] and x[m:] whose lengths are those of other arrays.

    Parameters
    ----------
    fgraph : FunctionGraph
        The graph, which is changed.
    """
    for node in fgraph.toposort():
        x, axis, lengths, places = _cuts(node)
        if lengths and all(length is not None for length in lengths):
            op = SplitParts(axis, [length.axis for length in lengths])
            parts: Any = op(x, *(length.array for length in lengths), return_list=True)
            pairs = [(old, old.type.filter_variable(parts[k])) for old, k in zip(node.outputs, places, strict=True)]
            fgraph.replace_all(pairs, reason="symsvm_split_parts", import_missing=True)


def _cuts(node: Apply) -> tuple[Any, int, list[Any], list[int]]:
    """What a node cuts: the array, the axis, the lengths of the parts, and which parts are its outputs."""
    x: Any = node.inputs[0] if node.inputs else None
    if isinstance(node.op, Split) and isinstance(node.inputs[1], Constant) and node.inputs[2].owner is not None:
        lengths: list[Any] = [_length(length) for length in node.inputs[2].owner.inputs]
        return x, int(node.inputs[1].data) % x.ndim, lengths, list(range(len(lengths)))
    if isinstance(node.op, Subtensor):
        index = subscripts(node)
        if len(index) == 1 and isinstance(index[0], slice) and index[0].step is None:
            start, stop = index[0].start, index[0].stop
            if stop is None and start is not None:
                return x, 0, [_length(start)], [1]
            if start is None and stop is not None:
                return x, 0, [_length(stop)], [0]
    return x, 0, [], []


def _length(number: Variable | int) -> _Length | None:
    """The axis of an array whose length a number is."""
    node = getattr(number, "owner", None)
    if node is not None and isinstance(node.op, ScalarFromTensor):
        node = node.inputs[0].owner
    if node is not None and isinstance(node.op, DimShuffle) and node.inputs[0].type.shape == (1,):
        shape, axis = node.inputs[0].owner, 0  # the shape of a vector, as a number
    elif node is not None and isinstance(node.op, Subtensor):
        (index,), shape = subscripts(node), node.inputs[0].owner
        axis = None if isinstance(index, slice) else get_scalar_constant_value(index, raise_not_constant=False)
    else:
        return None
    if shape is None or not isinstance(shape.op, Shape) or not isinstance(axis, (int, np.integer, np.ndarray)):
        return None
    return _Length(shape.inputs[0], int(axis))
