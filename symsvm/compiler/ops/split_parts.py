"""SplitParts: an array cut into parts as long as others, for JAX, whose shapes are fixed when it compiles.

PyTensor's gradient of concatenate([a, b]) cuts at numbers that it computes from shapes, which JAX refuses inside `jit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.tensor.basic import Split
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import Subtensor

from symsvm._lib.compat import subscripts

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

__all__ = ["SplitParts", "replace_splits"]


class SplitParts(Op):
    """Cut x along an axis into parts as long as the other inputs: (x, a, b, ...) -> (x_a, x_b, ...).

    Parameters
    ----------
    axis : int
        The axis.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int):
        self.axis = axis

    def make_node(self, x, *parts):
        """Make the node."""
        shape = [None if axis == self.axis else n for axis, n in enumerate(x.type.shape)]
        return Apply(self, [x, *parts], [pt.tensor(dtype=x.dtype, shape=shape) for _ in parts])

    def perform(self, node, inputs, outputs):
        """Cut the array."""
        for output, part in zip(outputs, self.cut(np, *inputs), strict=True):
            output[0] = part.copy()

    def cut(self, module: Any, x: Any, *parts: Any) -> list[Any]:
        """Return the parts, by NumPy or by JAX.

        Parameters
        ----------
        module : module
            `numpy` or `jax.numpy`.
        x, *parts : arrays
            The inputs.

        Returns
        -------
        list of array
            The parts of x.
        """
        ends = np.cumsum([part.shape[self.axis] for part in parts])
        return module.split(x, [int(end) for end in ends[:-1]], axis=self.axis)


def replace_splits(fgraph: FunctionGraph) -> None:
    """Put `SplitParts` in the place of each Split whose lengths are those of other arrays.

    Parameters
    ----------
    fgraph : FunctionGraph
        The graph, which is changed.
    """
    for node in fgraph.toposort():
        if isinstance(node.op, Split) and isinstance(node.inputs[1], Constant):
            x, axis, lengths = node.inputs
            k = int(axis.data) % x.ndim  # pyright: ignore[reportAttributeAccessIssue]
            parts = [_array_of(length, k) for length in lengths.owner.inputs] if lengths.owner is not None else [None]
            if all(part is not None for part in parts):
                cut = SplitParts(k)(x, *parts, return_list=True)
                pairs = [(old, old.type.filter_variable(new)) for old, new in zip(node.outputs, cut, strict=True)]
                fgraph.replace_all(pairs, reason="symsvm_split_parts", import_missing=True)


def _array_of(length: Variable, axis: int) -> Variable | None:
    """The array whose shape[axis] a length is."""
    node = length.owner
    if node is None or not isinstance(node.op, Subtensor) or subscripts(node) not in ([axis], (axis,)):
        return None
    shape = node.inputs[0].owner
    return shape.inputs[0] if shape is not None and isinstance(shape.op, Shape) else None
