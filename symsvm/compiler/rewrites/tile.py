"""Pass 4, tile: a product with a matrix of pairs, computed a tile at a time and never held."""

import math

from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from symsvm.compiler.ops.form import factor
from symsvm.compiler.ops.kernel_ops import KernelGram, KernelMatvec
from symsvm.compiler.ops.scalar_function import NotElementwise
from symsvm.graphs.structure import keep

__all__ = ["SMALL", "gram", "local_tile"]

# Entries of a matrix that need no loops of their own.
SMALL = 2**20


@node_rewriter([Dot])
def local_tile(fgraph, node):
    """K.q -> KernelMatvec(A, B, ..., q) for a matrix K_ij = e(a_i.b_j, u_i, v_j, ...); q'.K likewise, exchanged."""
    left, right = node.inputs
    if left.ndim != 2 or right.ndim != 2:
        return None
    for K, q, exchanged in ((left, right, False), (right, left, True)):
        while K.owner is not None and isinstance(K.owner.op, DimShuffle) and K.owner.op.new_order == (1, 0):
            K, exchanged = K.owner.inputs[0], not exchanged
        form = _form(K)
        if form is not None:
            product = KernelMatvec.of(form, q if q is right else keep(q, (1, 0)), exchanged=exchanged)
            return [(product if q is right else product.T).astype(node.outputs[0].dtype)]
    return None


def gram(K):
    """A matrix of pairs as a KernelGram, computed by the same loops; anything else as it is.

    So is a matrix that is known to be small: the loops take seconds to compile, once a kernel.
    """
    small = None not in K.type.shape and math.prod(K.type.shape) < SMALL
    form = _form(K) if K.ndim == 2 and not small else None
    return K if form is None else KernelGram.of(form)


def _form(K):
    """The form of a matrix of pairs; None if it has none, or is but a product of matrices."""
    try:
        form = factor(K)
    except NotElementwise:
        return None
    plain = len(form.channels) == 1 and form.channels[0].h.is_product and form.epilogue.is_identity
    return None if plain else form
