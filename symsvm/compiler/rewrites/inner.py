"""Pass 2 also, batched inner products: a stack of one-row times one-column matrices is a sum of products."""

from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from symsvm.graphs.structure import keep

__all__ = ["local_batched_inner_to_sum"]


@node_rewriter([DimShuffle])
def local_batched_inner_to_sum(fgraph, node):
    """(a_ij[None, :] . b_ij[:, None]) without its two axes of length 1 -> sum_k a_ijk b_ijk.

    It is what `dot(x - z, x - z)` of one pair becomes for all pairs; written as a sum, the other passes know it.
    """
    (stack,) = node.inputs
    product, n = stack.owner, stack.ndim - 2
    if product is None or not isinstance(product.op, Blockwise) or not isinstance(product.op.core_op, Dot) or n < 1:
        return None
    a, b = product.inputs
    if node.op.new_order != tuple(range(n)) or a.type.shape[-2] != 1 or b.type.shape[-1] != 1:
        return None
    axes = tuple(range(n))
    return [(keep(a, (*axes, n + 1)) * keep(b, (*axes, n))).sum(axis=-1).astype(node.outputs[0].dtype)]
