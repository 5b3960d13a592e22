"""Form: a matrix of pairs as a scalar function of sums over features, which a machine computes tile by tile.

    K_ij = e(s_ij, ..., u_i, ..., v_j, ..., theta, ...),    s_ij = sum_k h(a_ik, b_jk, w_k)

Each s is a *channel*: with h = a_ik b_jk a product of matrices (GEMM), with h = |a_ik - b_jk| the distance of the
Laplacian kernel. The epilogue e and the h are scalar functions, taken out of the graph of K.
"""

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedGrad
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Mul, Neg, Sub, TrueDiv
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum

from symsvm.compiler.ops.scalar_function import NotElementwise, ScalarFunction
from symsvm.graphs.dtypes import widen
from symsvm.graphs.structure import is_elemwise, is_literal, keep, varies

__all__ = ["Channel", "Form", "factor", "uncentred"]


@dataclass(frozen=True)
class Channel:
    """sum_k h(a_ik, b_jk, w_k): the function h, the matrices A (m, d) and B (n, d), the vectors w (d,)."""

    h: ScalarFunction
    A: Variable
    B: Variable
    weights: tuple = ()


@dataclass(frozen=True)
class Form:
    """The epilogue of channels, row vectors, column vectors and numbers, in this order."""

    epilogue: ScalarFunction
    channels: tuple
    rows: tuple
    columns: tuple
    numbers: tuple


def factor(K):
    """Return the `Form` of a matrix graph, or raise `NotElementwise` with the reason why it has none.

    >>> A, B = pt.matrices("A", "B")
    >>> factor(pt.exp(-pt.dot(A, B.T) ** 2)).epilogue
    <t0 = square(x0); t1 = -t0; float64 y = exp(t1)>
    """
    if varies(K) != {0, 1}:
        raise NotElementwise("it does not vary along both axes")
    (K,) = widen([K])
    K = _gather_numbers(_merge_centred(K))
    channels, rows, columns, numbers = {}, {}, {}, {}
    for leaf in _leaves(K, lambda v: varies(v) != {0, 1} or not is_elemwise(v)):
        axes = varies(leaf)
        if is_literal(leaf):
            continue
        if axes == {0, 1}:
            channels[leaf] = _channel(leaf)
        elif axes == {0}:
            rows[leaf] = keep(leaf, (0,))
        elif axes == {1}:
            columns[leaf] = keep(leaf, (1,))
        else:
            numbers[leaf] = keep(leaf, ())
    if not channels:
        raise NotElementwise("no sum over features is in it")
    dtypes = {v.dtype for leaf in channels.values() for v in (leaf.A, leaf.B)}
    if dtypes != {K.dtype}:
        raise NotElementwise(f"it mixes {K.dtype} with {', '.join(sorted(dtypes - {K.dtype}))}")
    # All in the type of K, which the loops have functions for, where a constant made a part of it wider.
    epilogue = ScalarFunction.of(K, [*channels, *rows, *columns, *numbers]).retyped(K.dtype)
    groups = (channels, rows, columns, numbers)
    return Form(epilogue, *(tuple(group.values()) for group in groups))


def _leaves(graph, stop):
    """The variables at which a walk down from a graph stops, in the order it meets them."""
    found, seen, stack = [], set(), [graph]
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if stop(variable):
            found.append(variable)
        else:
            stack += reversed(variable.owner.inputs)
    return found


def _channel(leaf):
    """The channel of a (m, n) variable that is not elementwise."""
    op = leaf.owner.op if leaf.owner is not None else None
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        channel = _channel(leaf.owner.inputs[0])
        order = [1, 0, *range(2, len(channel.h.inputs))]
        return Channel(channel.h.permuted(order), channel.B, channel.A, channel.weights)
    if isinstance(op, Dot):
        A, Bt = leaf.owner.inputs
        a, b = pt.scalar(dtype=A.dtype), pt.scalar(dtype=Bt.dtype)
        return Channel(ScalarFunction([a, b], a * b), A, keep(Bt, (1, 0)))
    if isinstance(op, Sum) and op.axis == (2,) and leaf.owner.inputs[0].ndim == 3:
        (term,) = leaf.owner.inputs
        whole = _leaves(term, lambda v: varies(v) != {0, 1, 2} or not is_elemwise(v))
        deep = _leaves(term, lambda v: not is_elemwise(v))
        for leaves in (whole, deep):
            channel = _feature_sum(term, leaves)
            if channel is not None:
                return channel
    raise NotElementwise(f"{op or leaf} is no sum over features of something elementwise")


def _feature_sum(term, leaves):
    """The channel of sum_k term_ijk with these leaves: one varies with (i, k), one with (j, k), the rest with k."""
    leaves = [leaf for leaf in leaves if not is_literal(leaf)]
    As = [leaf for leaf in leaves if varies(leaf) == {0, 2}]
    Bs = [leaf for leaf in leaves if varies(leaf) == {1, 2}]
    rest = [leaf for leaf in leaves if varies(leaf) <= {2}]
    if len(As) != 1 or len(Bs) != 1 or len(As) + len(Bs) + len(rest) != len(leaves):
        return None
    A, B = keep(As[0], (0, 2)), keep(Bs[0], (1, 2))
    weights = tuple(pt.broadcast_to(keep(w, (2,)), (A.shape[1],)) for w in rest)
    return Channel(ScalarFunction.of(term, [As[0], Bs[0], *rest]).retyped(A.dtype), A, B, weights)


def _merge_centred(K):
    """x.z -> (x - c).(z - c) + x.c + (z - c).c where K holds the product of the centred points anyway."""
    dots = [v for v in _leaves(K, lambda v: not is_elemwise(v)) if v.owner is not None and isinstance(v.owner.op, Dot)]
    plain = {(v.owner.inputs[0], keep(v.owner.inputs[1], (1, 0))): v for v in dots}
    swaps = {}
    for dot in dots:
        A, Bt = dot.owner.inputs
        a, b = _shifted(A), _shifted(keep(Bt, (1, 0)))
        if a is None or b is None or a[1] is not b[1] or (a[0], b[0]) not in plain:
            continue
        c = keep(a[1], (1,))
        swaps[plain[a[0], b[0]]] = dot + pt.dot(a[0], c)[:, None] + pt.dot(keep(Bt, (1, 0)), c)[None, :]
    return graph_replace(K, swaps) if swaps else K


def _gather_numbers(K):
    """c x / theta -> (c / theta) x: all numbers of a product in one, computed once and not once a pair.

    It is also what makes two graphs of one kernel, written or simplified differently, the same source.
    """
    for v in reversed(_elementwise(K)):  # from the inside out
        if not is_elemwise(v, Mul, TrueDiv, Neg) or not varies(v):
            continue
        above, below = _factors(v)
        numbers = [f for f in above if not varies(f)], [f for f in below if not varies(f)]
        if len(numbers[0]) + len(numbers[1]) < (2 if _is_literal(numbers) else 1):
            continue
        rest = [[f for f in part if varies(f)] for part in (above, below)]
        scale = _product(numbers[0]) if numbers[0] else pt.ones((1,) * v.ndim, dtype=v.dtype)
        if numbers[1]:
            scale = scale / _product(numbers[1])
        value = _product([scale, *rest[0]])
        K = graph_replace(K, {v: (value / _product(rest[1]) if rest[1] else value).astype(v.dtype)}, strict=False)
    return K


def _is_literal(numbers):
    (above, below) = numbers
    return not below and all(is_literal(f) for f in above)


def _factors(v):
    """The factors above and below the line of a product or quotient."""
    if is_elemwise(v, Neg):
        above, below = _factors(v.owner.inputs[0])
        return [pt.constant(-np.ones((1,) * v.ndim, dtype=v.dtype)), *above], below
    if is_elemwise(v, Mul):
        parts = [_factors(part) for part in v.owner.inputs]
        return [f for above, _ in parts for f in above], [f for _, below in parts for f in below]
    if is_elemwise(v, TrueDiv):
        (above, below), (under, over) = (_factors(part) for part in v.owner.inputs)
        return [*above, *over], [*below, *under]
    return [v], []


def _product(factors):
    first, *rest = factors
    for f in rest:
        first = first * f
    return first


def _elementwise(K):
    """The variables of the elementwise part of K, above its leaves."""
    found = []
    _leaves(K, lambda v: not is_elemwise(v) or found.append(v))
    return found


def uncentred(K):
    """The graph with points as they are, not centred: sparse ones would become dense."""
    centred = {v: _shifted(v) for v in ancestors([K]) if _shifted(v) is not None}
    swaps = {v: X for v, (X, row) in centred.items() if _is_op(keep(row, (1,)), DisconnectedGrad)}
    return graph_replace(K, swaps) if swaps else K


def _shifted(matrix):
    """(X, c[None, :]) of X - c[None, :], else None."""
    if not is_elemwise(matrix, Sub) or matrix.ndim != 2:
        return None
    X, row = matrix.owner.inputs
    return (X, row) if varies(row) == {1} and varies(X) == {0, 1} else None


def _is_op(variable, kind):
    return variable.owner is not None and isinstance(variable.owner.op, kind)
