"""Passes 2 and 4: sums become products of matrices, and products with a kernel matrix are computed in tiles."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.scalar.basic import Mul, Pow, Sqr, Sub, TrueDiv
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum

from symsvm.compiler.ops.kernel_form import factor
from symsvm.compiler.ops.kernel_ops import KernelGram, KernelMatvec
from symsvm.compiler.ops.scalar_function import NotElementwise
from symsvm.compiler.ops.squared_distances import SquaredDistances
from symsvm.graphs.structure import is_elemwise, select_axes, varying_axes

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = [
    "SMALL_MATRIX",
    "factors",
    "local_batched_inner_to_sum",
    "local_squared_distances",
    "local_sum_of_products_to_dot",
    "local_tile",
    "tiled_gram",
]

# Entries below which a matrix is computed from its graph: compiling loops for it would take longer.
SMALL_MATRIX = 2**20


@node_rewriter([DimShuffle])
def local_batched_inner_to_sum(fgraph, node):
    """(a_ij[None, :] . b_ij[:, None]) without its two axes of length 1 -> sum_k a_ijk b_ijk.

    `dot(x - z, x - z)` of one pair becomes this product for all pairs. The other passes match sums.
    """
    (stack,) = node.inputs
    product, n = stack.owner, stack.ndim - 2
    if product is None or not isinstance(product.op, Blockwise) or not isinstance(product.op.core_op, Dot) or n < 1:
        return None
    a, b = product.inputs
    if node.op.new_order != tuple(range(n)) or a.type.shape[-2] != 1 or b.type.shape[-1] != 1:
        return None
    axes = tuple(range(n))
    return [(select_axes(a, (*axes, n + 1)) * select_axes(b, (*axes, n))).sum(axis=-1).astype(node.outputs[0].dtype)]


@node_rewriter([Sum])
def local_squared_distances(fgraph, node):
    """sum_k (a_ik - b_jk)^2 -> SquaredDistances(a, b),  sum_k ((a_ik - b_jk) w_k)^2 -> SquaredDistances(a, b, w)."""
    (square,) = node.inputs
    root, axis = _square_root(square), _one_axis(node)
    if root is None or axis is None or square.ndim != 3:
        return None
    others, weights = [], []
    for f in factors(root):
        (weights if varying_axes(f) <= {axis} else others).append(f)
    if len(others) != 1 or not is_elemwise(others[0], Sub) or (weights and not any(map(varying_axes, weights))):
        return None
    (difference,) = others
    rows, columns = (i for i in range(3) if i != axis)
    u, v = difference.owner.inputs
    if varying_axes(u) == {rows, axis} and varying_axes(v) == {columns, axis}:
        a, b = u, v
    elif varying_axes(u) == {columns, axis} and varying_axes(v) == {rows, axis}:
        a, b = v, u
    else:
        return None
    a, b = select_axes(a, (rows, axis)), select_axes(b, (columns, axis))
    w = [_product(weights, (axis,))] if weights else []
    return [SquaredDistances(bool(w))(a, b, *w).astype(node.outputs[0].dtype)]


@node_rewriter([Sum])
def local_sum_of_products_to_dot(fgraph, node):
    """sum_k a_ik b_jk -> a.b',  sum_j K_ij q_j -> K.q,  sum_ij p_i K_ij q_j -> sum_i p_i (K.q)_i."""
    (product,) = node.inputs
    if not is_elemwise(product, Mul, TrueDiv):
        return None
    every = factors(product)
    if product.ndim == 2 and _axes(node) == {0, 1}:
        inner = _contract(every, 1, 2)
        return None if inner is None else [inner.sum().astype(node.outputs[0].dtype)]
    axis = _one_axis(node)
    if axis is None or product.ndim not in (2, 3):
        return None
    result = _contract(every, axis, product.ndim)
    return None if result is None else [result.astype(node.outputs[0].dtype)]


def _contract(every, axis, ndim):
    """Return the sum over `axis` of the product of the factors as a dot, or None."""
    others = tuple(i for i in range(ndim) if i != axis)
    outside = [f for f in every if axis not in varying_axes(f)]
    inside = [f for f in every if axis in varying_axes(f)]
    groups = {}
    for f in inside:
        groups.setdefault(frozenset(varying_axes(f)), []).append(f)
    line = groups.pop(frozenset({axis}), [])
    if ndim == 2:
        matrix = groups.pop(frozenset({others[0], axis}), None)
        if groups or not matrix or not line:
            return None
        result = pt.dot(_product(matrix, (others[0], axis)), _product(line, (axis,)))
    else:
        left = groups.pop(frozenset({others[0], axis}), None)
        right = groups.pop(frozenset({others[1], axis}), None)
        if groups or not left or not right:
            return None
        result = pt.dot(_product(left, (others[0], axis)), _product([*right, *line], (others[1], axis)).T)
    for f in outside:
        result = result * select_axes(f, others)
    return result


def factors(variable: Graph) -> list:
    """Return the factors of a product or quotient, recursively."""
    if is_elemwise(variable, Mul):
        return [f for part in variable.owner.inputs for f in factors(part)]
    if is_elemwise(variable, TrueDiv):
        above, below = variable.owner.inputs
        return [*(f for f in factors(above) if not _is_one(f)), pt.reciprocal(below)]
    return [variable]


def _is_one(variable):
    return isinstance(variable, Constant) and bool((variable.data == 1).all())


def _product(parts, axes):
    """Return the product of the parts, with these axes only."""
    first, *rest = (select_axes(part, axes) for part in parts)
    for part in rest:
        first = first * part
    return first


def _square_root(variable):
    """Return x of sqr(x), x ** 2 or x * x, else None."""
    if is_elemwise(variable, Sqr):
        return variable.owner.inputs[0]
    if is_elemwise(variable, Mul) and len(variable.owner.inputs) == 2 and len(set(variable.owner.inputs)) == 1:
        return variable.owner.inputs[0]
    if is_elemwise(variable, Pow):
        base, exponent = variable.owner.inputs
        while exponent.owner is not None and isinstance(exponent.owner.op, DimShuffle):
            exponent = exponent.owner.inputs[0]
        if isinstance(exponent, Constant) and (exponent.data == 2).all():
            return base
    return None


def _axes(node):
    axes = node.op.axis
    return set(range(node.inputs[0].ndim)) if axes is None else {a % node.inputs[0].ndim for a in axes}


def _one_axis(node):
    axes = _axes(node)
    return axes.pop() if len(axes) == 1 else None


@node_rewriter([Dot])
def local_tile(fgraph, node):
    """K.q -> KernelMatvec(A, B, ..., q) for a matrix K_ij = e(a_i.b_j, u_i, v_j, ...); q'.K likewise, transposed."""
    left, right = node.inputs
    if left.ndim != 2 or right.ndim != 2:
        return None
    for K, q, transposed in ((left, right, False), (right, left, True)):
        while K.owner is not None and isinstance(K.owner.op, DimShuffle) and K.owner.op.new_order == (1, 0):
            K, transposed = K.owner.inputs[0], not transposed
        form = _tiled_form(K)
        if form is not None:
            product = KernelMatvec.of(form, q if q is right else select_axes(q, (1, 0)), transposed=transposed)
            return [(product if q is right else product.T).astype(node.outputs[0].dtype)]
    return None


def tiled_gram(K: Graph) -> Graph:
    """Return a kernel matrix as a `KernelGram`, which is computed by the tiled loops; any other graph unchanged.

    A matrix with fewer than `SMALL_MATRIX` entries, if known, is unchanged too: the loops of a kernel take seconds to
    compile.
    """
    shape = [length for length in K.type.shape if length is not None]
    small = len(shape) == K.ndim and math.prod(shape) < SMALL_MATRIX
    form = _tiled_form(K) if K.ndim == 2 and not small else None
    return K if form is None else KernelGram.of(form)


def _tiled_form(K):
    """Return the `KernelForm` of a matrix; None if it has none, or is a plain product of two matrices."""
    try:
        form = factor(K)
    except NotElementwise:
        return None
    plain = len(form.channels) == 1 and form.channels[0].h.is_product and form.epilogue.is_identity
    return None if plain else form
