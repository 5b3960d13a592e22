"""MeshGram, MeshProduct and MeshPairs: Ops over a kernel matrix whose rows are spread over the devices of a JAX mesh.

    MeshGram       K_ij for the rows i of this device        stored between the steps of a run
    MeshProduct    sum_j K_ij q_j for all i                   from those rows: one product, one all-gather
    MeshPairs      the same without K, in tiles               one `KernelMatvec` or `KernelFeatures` of the rows

The other arrays of a graph are whole on each device, and each device computes the same from them. A row of the product
is computed by one device, from the same numbers and in the same order as on one device: no sum crosses devices.

With n devices each has b = ceil(m / n) rows. The last ones repeat row m - 1 where n does not divide m; what they give
is cut off.
"""

# pyright: reportAttributeAccessIssue=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from symsvm.compiler.ops.kernel_ops import KernelGram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Graph
    from symsvm.compiler.ops.kernel_form import KernelForm

__all__ = ["MeshGram", "MeshPairs", "MeshProduct"]


class _MeshOp(Op):
    """An Op over the devices of a mesh, which are along all of its axes."""

    def __init__(self, axes: Sequence[str], n_devices: int) -> None:
        self.axes, self.n_devices = tuple(axes), n_devices

    def perform(self, node, inputs, outputs):
        """Raise: only JAX has meshes."""
        raise NotImplementedError(f"{type(self).__name__} runs on a mesh of JAX devices: compile with mode='JAX'.")


class MeshGram(_MeshOp):
    """The rows of K on this device, (b, n); beside them the whole is an array (b n_devices, n), spread by rows."""

    __props__ = ("axes", "n_devices", "gram")

    def __init__(self, axes: Sequence[str], n_devices: int, gram: KernelGram) -> None:
        super().__init__(axes, n_devices)
        self.gram = gram

    @classmethod
    def of(cls, axes: Sequence[str], n_devices: int, form: KernelForm, *, transposed: bool = False) -> Graph:
        """Apply the Op to a `KernelForm`, or to its transpose."""
        node: Any = KernelGram.of(form, transposed=transposed).owner
        return cls(axes, n_devices, node.op)(*node.inputs)

    def make_node(self, *inputs):
        """Make the node; its inputs are those of `gram`."""
        node: Any = self.gram.make_node(*inputs)
        m, n = node.outputs[0].type.shape
        rows = None if m is None else -(-m // self.n_devices)
        return Apply(self, node.inputs, [pt.tensor(dtype=node.outputs[0].dtype, shape=(rows, n))])


class MeshProduct(_MeshOp):
    """sum_j K_ij q_j for all rows i, (m,) or (m, p), from a `MeshGram`, q and an array of m rows."""

    __props__ = ("axes", "n_devices")

    def make_node(self, rows, q, like):
        """Make the node."""
        rows, q, like = (pt.as_tensor(v) for v in (rows, q, like))
        shape = (like.type.shape[0], *q.type.shape[1:])
        return Apply(self, [rows, q, like], [pt.tensor(dtype=rows.dtype, shape=shape)])


class MeshPairs(_MeshOp):
    """A `KernelMatvec` or a `KernelFeatures`, each device computing its rows."""

    __props__ = ("axes", "n_devices", "pairs")

    def __init__(self, axes: Sequence[str], n_devices: int, pairs: Any) -> None:
        super().__init__(axes, n_devices)
        self.pairs = pairs

    def make_node(self, *inputs):
        """Make the node; its inputs and its output are those of `pairs`."""
        node: Any = self.pairs.make_node(*inputs)
        return Apply(self, node.inputs, [node.outputs[0].type()])
