"""The sums over pairs of a gradient, restricted to the points that have an adjoint or a multiplier: `on_support`."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalSubscript=false, reportAssignmentType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.gradient import grad as differentiate
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from symsvm.compiler.ops.kernel_ops import KernelMatvec
from symsvm.implicit.sparse_rows import SparseRows, rows_of, sparse_input

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = ["Support", "on_support"]


class Support(Op):
    """The indices where a vector is not 0; on JAX, whose shapes are fixed, all indices."""

    __props__ = ()

    def make_node(self, x):
        """Make the node."""
        return Apply(self, [pt.as_tensor(x)], [pt.lvector()])

    def perform(self, node, inputs, outputs):
        """Find the indices."""
        outputs[0][0] = np.flatnonzero(inputs[0])

    def pullback(self, inputs, outputs, cotangents):
        """Indices do not change."""
        return [pt.zeros_like(inputs[0])]


def on_support(total: Graph, sparse: dict[Any, Any]) -> Graph:
    """Return a sum of products sum_ij c_i K_ij q_j, over the i and j only where c and q are not 0.

    Parameters
    ----------
    total : TensorVariable
        A scalar, with its products as `KernelMatvec`.
    sparse : dict of TensorVariable to CSR matrix
        Inputs that are held as CSR matrices; nothing of the result depends on them.

    Returns
    -------
    TensorVariable
        The same scalar.
    """
    nodes = {x.owner for x in ancestors([total]) if x.owner is not None and isinstance(x.owner.op, KernelMatvec)}
    swaps: dict[Any, Any] = {}
    for node in nodes:
        (out,), op, q = node.outputs, node.op, node.inputs[-1]
        c = differentiate(total, out, disconnected_inputs="ignore")
        (c,) = clone_replace([c], {out: pt.zeros_like(q)}, rebuild_strict=False)  # c has its shape alone from out
        i, j = (Support()(disconnected_grad(abs(x) if x.ndim == 1 else abs(x).sum(axis=1))) for x in (c, q))
        channels, rows, columns, numbers, _ = op.split(node.inputs)
        data, storage = [], []
        for A, B, weights in channels:
            if A in sparse and B in sparse and not weights:  # weights have gradients over dense rows alone
                for side, places in ((A, i), (B, j)):
                    x, k, start = SparseRows(sparse[side])(places)
                    data += [disconnected_grad(x), k, start]
                data.append(pt.constant(sparse[A].shape[1]))
                storage.append(("csr", "csr"))
            else:
                data += [_take(A, i, sparse), _take(B, j, sparse)]
                storage.append(("dense", "dense"))
            data += weights
        data += [*(_take(x, i, sparse) for x in rows), *(_take(x, j, sparse) for x in columns), *numbers]
        restricted = KernelMatvec(op.epilogue, op.hs, op.n_rows, op.n_columns, op.n_numbers, storage)
        swaps[out] = pt.zeros_like(c)[i].set(restricted(*data, q[j]))
    total = clone_replace([total], swaps, rebuild_strict=False)[0] if swaps else total
    if sparse_input(total, sparse) is not None:
        raise TypeError(
            "the gradient over sparse points needs a W that has its points in sums over pairs alone: give dense points."
        )
    return total


def _take(x: Graph, i: Graph, sparse: dict[Any, Any]) -> Graph:
    """The rows i of an array over points."""
    return x[i] if sparse_input(x, sparse) is None else rows_of(x, i, sparse)
