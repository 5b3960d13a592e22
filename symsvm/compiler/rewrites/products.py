"""Pass 2, sums -> products of matrices: what is summed over an axis becomes a GEMM or a matrix-vector product."""

import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.scalar.basic import Mul, Pow, Sqr, Sub, TrueDiv
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum

from symsvm.graphs.structure import is_elemwise, keep, varies

__all__ = ["factors", "local_squared_distance_to_gemm", "local_sum_of_products_to_dot"]


@node_rewriter([Sum])
def local_squared_distance_to_gemm(fgraph, node):
    """sum_k (a_ik - b_jk)^2 -> |a_i|^2 + |b_j|^2 - 2 a_i.b_j, not below 0, with both centred at the mean of b.

    The difference of large numbers costs digits: the error is at most (d + 4) eps (|a_i|^2 + |b_j|^2) of the centred
    points, which have the size of their spread, not of their distance from the origin.
    """
    (square,) = node.inputs
    difference = _square_root(square)
    if difference is None or square.ndim != 3 or not is_elemwise(difference, Sub):
        return None
    axis = _one_axis(node)
    if axis is None:
        return None
    rows, columns = (i for i in range(3) if i != axis)
    u, v = difference.owner.inputs
    if varies(u) == {rows, axis} and varies(v) == {columns, axis}:
        a, b = u, v
    elif varies(u) == {columns, axis} and varies(v) == {rows, axis}:
        a, b = v, u
    else:
        return None
    a, b = keep(a, (rows, axis)), keep(b, (columns, axis))
    centre = disconnected_grad(b.mean(axis=0))  # the distance does not depend on it
    a, b = (a - centre,) * 2 if a is b else (a - centre, b - centre)
    norms_a, norms_b = ((a * a).sum(axis=1),) * 2 if a is b else ((a * a).sum(axis=1), (b * b).sum(axis=1))
    squared = norms_a[:, None] + norms_b[None, :] - 2 * pt.dot(a, b.T)
    return [pt.maximum(squared, 0).astype(node.outputs[0].dtype)]


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
    outside = [f for f in every if axis not in varies(f)]
    inside = [f for f in every if axis in varies(f)]
    groups = {}
    for f in inside:
        groups.setdefault(frozenset(varies(f)), []).append(f)
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
        result = result * keep(f, others)
    return result


def factors(variable):
    """Return the factors of a product or quotient, those of its factors included."""
    if is_elemwise(variable, Mul):
        return [f for part in variable.owner.inputs for f in factors(part)]
    if is_elemwise(variable, TrueDiv):
        above, below = variable.owner.inputs
        return [*(f for f in factors(above) if not _is_one(f)), pt.reciprocal(below)]
    return [variable]


def _is_one(variable):
    return isinstance(variable, Constant) and bool((variable.data == 1).all())


def _product(parts, axes):
    """The product of the parts, with these axes only."""
    first, *rest = (keep(part, axes) for part in parts)
    for part in rest:
        first = first * part
    return first


def _square_root(variable):
    """x of sqr(x), x ** 2 or x * x, else None."""
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
