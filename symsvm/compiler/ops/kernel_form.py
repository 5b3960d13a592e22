"""A kernel matrix as a scalar function of sums over features, the form in which it is computed tile by tile.

    K_ij = e(s_ij, ..., u_i, ..., v_j, ..., theta, ...),    s_ij = sum_k h(a_ik, b_jk, w_k)

Each s is a *channel*: with h = a_ik b_jk a product of matrices (GEMM), with h = (a_ik - b_jk)^2 or
((a_ik - b_jk) w_k)^2 the squared distance, with h = |a_ik - b_jk| the distance of the Laplacian kernel. The epilogue e
and the functions h are extracted from the graph of K.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors, nor that a variable with an Op has an owner.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace
from pytensor.scalar.basic import Mul, Neg, TrueDiv
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum

from symsvm.compiler.ops.scalar_function import NotElementwise, ScalarFunction
from symsvm.compiler.ops.squared_distances import SquaredDistances
from symsvm.graphs.dtypes import widen
from symsvm.graphs.structure import is_elemwise, is_literal, select_axes, varying_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from symsvm._lib.types import Graph

__all__ = ["Channel", "KernelForm", "factor"]


@dataclass(frozen=True)
class Channel:
    """sum_k h(a_ik, b_jk, w_k): the function h, the matrices A (m, d) and B (n, d), the vectors w (d,)."""

    h: ScalarFunction
    A: Graph
    B: Graph
    weights: tuple[Graph, ...] = ()


@dataclass(frozen=True)
class KernelForm:
    """The epilogue and its arguments: channels, vectors u over rows, vectors v over columns and numbers theta."""

    epilogue: ScalarFunction
    channels: tuple[Channel, ...]
    rows: tuple[Graph, ...]
    columns: tuple[Graph, ...]
    numbers: tuple[Graph, ...]

    def without_weights(self, channels: Collection[int]) -> KernelForm:
        """The form with (a - b)^2 in place of ((a - b) w)^2 in some channels: for points times w."""
        some = tuple(
            Channel(_squared_difference(c.h.dtype), c.A, c.B) if i in channels else c
            for i, c in enumerate(self.channels)
        )
        return replace(self, channels=some)

    def retyped(self, dtype: str) -> KernelForm:
        """The form whose functions compute in another floating type; the graphs of its arguments stay as they are."""
        channels = tuple(replace(channel, h=channel.h.retyped(dtype)) for channel in self.channels)
        return replace(self, epilogue=self.epilogue.retyped(dtype), channels=channels)


def factor(K: Graph) -> KernelForm:
    """Return the `KernelForm` of a matrix graph, or raise `NotElementwise` with the reason why it has none.

    >>> A, B = pt.matrices("A", "B")
    >>> factor(pt.exp(-pt.dot(A, B.T) ** 2)).epilogue
    <t0 = square(x0); t1 = -t0; float64 y = exp(t1)>
    """
    if varying_axes(K) != {0, 1}:
        raise NotElementwise("it does not vary along both axes")
    (K,) = widen([K])
    K = _gather_numbers(K)
    channels, rows, columns, numbers = {}, {}, {}, {}
    for leaf in _leaves(K, lambda v: varying_axes(v) != {0, 1} or not is_elemwise(v)):
        axes = varying_axes(leaf)
        if is_literal(leaf):
            continue
        if axes == {0, 1}:
            channels[leaf] = _channel(leaf)
        elif axes == {0}:
            rows[leaf] = select_axes(leaf, (0,))
        elif axes == {1}:
            columns[leaf] = select_axes(leaf, (1,))
        else:
            numbers[leaf] = select_axes(leaf, ())
    if not channels:
        raise NotElementwise("no sum over features is in it")
    dtypes = {v.dtype for leaf in channels.values() for v in (leaf.A, leaf.B)}
    if dtypes != {K.dtype}:
        raise NotElementwise(f"it mixes {K.dtype} with {', '.join(sorted(dtypes - {K.dtype}))}")
    # A constant may have made a part of the epilogue wider; the loops compute everything in the type of K.
    epilogue = ScalarFunction.of(K, [*channels, *rows, *columns, *numbers]).retyped(K.dtype)
    groups = (channels, rows, columns, numbers)
    return KernelForm(epilogue, *(tuple(group.values()) for group in groups))


def _leaves(graph: Graph, stop: Callable[[Graph], object]) -> list[Graph]:
    """Return the variables at which a depth-first walk from a graph to its inputs stops, in the order of the walk."""
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
    """Return the channel of a (m, n) variable that is not elementwise."""
    op = leaf.owner.op if leaf.owner is not None else None
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        channel = _channel(leaf.owner.inputs[0])
        order = [1, 0, *range(2, len(channel.h.inputs))]
        return Channel(channel.h.permuted(order), channel.B, channel.A, channel.weights)
    if isinstance(op, Dot):
        A, Bt = leaf.owner.inputs
        a, b = pt.scalar(dtype=A.dtype), pt.scalar(dtype=Bt.dtype)
        return Channel(ScalarFunction([a, b], a * b), A, select_axes(Bt, (1, 0)))
    if isinstance(op, SquaredDistances):
        A, B, *weights = leaf.owner.inputs
        return Channel(_squared_difference(A.dtype, len(weights)), A, B, tuple(weights))
    if isinstance(op, Sum) and op.axis == (2,) and leaf.owner.inputs[0].ndim == 3:
        (term,) = leaf.owner.inputs
        whole = _leaves(term, lambda v: varying_axes(v) != {0, 1, 2} or not is_elemwise(v))
        deep = _leaves(term, lambda v: not is_elemwise(v))
        for leaves in (whole, deep):
            channel = _feature_sum(term, leaves)
            if channel is not None:
                return channel
    raise NotElementwise(f"{op or leaf} is no sum over features of an elementwise expression")


def _squared_difference(dtype, n_weights=0):
    """(a - b)^2, or ((a - b) w)^2."""
    inputs = a, b, *weights = [pt.scalar(dtype=dtype) for _ in range(2 + n_weights)]
    root = (a - b) * weights[0] if weights else a - b
    return ScalarFunction(inputs, pt.sqr(root))  # pyright: ignore[reportArgumentType]


def _feature_sum(term, leaves):
    """Return the channel of sum_k term_ijk, or None unless one leaf has axes (i, k), one (j, k) and the rest k."""
    leaves = [leaf for leaf in leaves if not is_literal(leaf)]
    As = [leaf for leaf in leaves if varying_axes(leaf) == {0, 2}]
    Bs = [leaf for leaf in leaves if varying_axes(leaf) == {1, 2}]
    rest = [leaf for leaf in leaves if varying_axes(leaf) <= {2}]
    if len(As) != 1 or len(Bs) != 1 or len(As) + len(Bs) + len(rest) != len(leaves):
        return None
    A, B = select_axes(As[0], (0, 2)), select_axes(Bs[0], (1, 2))
    weights = [select_axes(w, (2,)) for w in rest]
    weights = tuple(w if varying_axes(w) else pt.broadcast_to(w, (A.shape[1],)) for w in weights)
    return Channel(ScalarFunction.of(term, [As[0], Bs[0], *rest]).retyped(A.dtype), A, B, weights)


def _gather_numbers(K):
    """c x / theta -> (c / theta) x: all numbers of a product in one, computed once instead of once per pair.

    Two graphs of one kernel that are written or simplified differently then give the same source.
    """
    for v in reversed(_elementwise_part(K)):  # from the inside out
        if not is_elemwise(v, Mul, TrueDiv, Neg) or not varying_axes(v):
            continue
        above, below = _factors(v)
        numbers = [f for f in above if not varying_axes(f)], [f for f in below if not varying_axes(f)]
        only_literals = not numbers[1] and all(is_literal(f) for f in numbers[0])
        if len(numbers[0]) + len(numbers[1]) < (2 if only_literals else 1):
            continue
        rest = [[f for f in part if varying_axes(f)] for part in (above, below)]
        scale = _product(numbers[0]) if numbers[0] else pt.ones((1,) * v.ndim, dtype=v.dtype)
        if numbers[1]:
            scale = scale / _product(numbers[1])
        value = _product([scale, *rest[0]])
        K = graph_replace(K, {v: (value / _product(rest[1]) if rest[1] else value).astype(v.dtype)}, strict=False)
    return K


def _factors(v):
    """Return the factors in the numerator and in the denominator of a product or quotient."""
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


def _elementwise_part(K):
    """Return the variables of the elementwise part of K, from K to its leaves."""
    found = []
    _leaves(K, lambda v: not is_elemwise(v) or found.append(v))
    return found
