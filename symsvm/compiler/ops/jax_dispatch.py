"""Conversions to JAX: of the Ops in `kernel_ops`, as a map over tiles of rows, and of reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.graph.fg import FunctionGraph
from pytensor.sparse.basic import CSMProperties
from pytensor.tensor.elemwise import CAReduce

from symsvm._lib.compat import jax_function, override_jax, register_jax
from symsvm.compiler.ops.kernel_ops import KernelFeatures, KernelGram, KernelMatvec, check_shapes
from symsvm.compiler.ops.split_parts import SplitParts
from symsvm.compiler.ops.squared_distances import CANCELLATION, SAMPLE, FeatureMoments, SquaredDistances
from symsvm.objectives.polytope import PolytopeProjection, nearest_point

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm.compiler.ops.scalar_function import ScalarFunction

__all__ = [
    "jax_funcify_distances",
    "jax_funcify_moments",
    "jax_funcify_pairs",
    "jax_funcify_polytope",
    "jax_funcify_reduction",
    "jax_funcify_sparse",
    "jax_funcify_split",
]

# The most rows of a tile, and the most entries.
_ROWS, _ENTRIES = 512, 2**24
# Distances in each row, on average, that are computed by differences where the others are not.
_ROOM = 8


def _function(scalar_function: ScalarFunction) -> Callable:
    """Return a scalar function as a JAX function of arrays that broadcast."""
    graph = FunctionGraph(scalar_function.inputs, [scalar_function.output], clone=True)
    compiled = jax_function(graph)
    return lambda *arrays: compiled(*arrays)[0]


@override_jax(CAReduce)
def jax_funcify_reduction(op, node, stock):
    """Convert a reduction without changing its type: PyTensor's returns float64 for a sum of float32."""
    reduce, dtype = stock(), node.outputs[0].dtype
    return lambda x: reduce(x).astype(dtype)


@register_jax(CSMProperties)
def jax_funcify_sparse(op=None, node=None, **kwargs):
    """Raise: PyTensor has no sparse matrices on JAX."""
    raise NotImplementedError("sparse points do not run on JAX: pass dense points, or choose another mode.")


def _product(A, B):
    return A @ B.T


def _distances(A, B, w=1):
    """Return |a_i - b_j|^2, or sum_k ((a_ik - b_jk) w_k)^2, by the rule of `squared_distances`.

    Shapes are fixed: there is room for a few pairs in each row to compute by differences, such as a point with itself.
    Where there are more, all pairs are computed so.
    """
    (m, d), n = A.shape, B.shape[0]
    c = jnp.median(B[:: -(-n // SAMPLE)], axis=0) if n else jnp.zeros(d, A.dtype)
    a, b = (A - c) * w, (B - c) * w
    norms = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :]
    D = norms - 2 * (a @ b.T)
    cancelled = ~(D >= CANCELLATION[str(D.dtype)] * norms)
    room = min(m * n, _ROOM * max(m, 1))

    def some():
        i, j = jnp.nonzero(cancelled, size=room, fill_value=0)
        exact = (((A[i] - B[j]) * w) ** 2).sum(axis=1)
        return D.at[i, j].set(jnp.where(cancelled[i, j], exact, D[i, j]))

    return jax.lax.cond(cancelled.sum() <= room, some, lambda: (((A[:, None, :] - B[None, :, :]) * w) ** 2).sum(axis=2))


@register_jax(SquaredDistances)
def jax_funcify_distances(op, node=None, **kwargs):
    """Convert the squared distances of all pairs."""
    return _distances


@register_jax(FeatureMoments)
def jax_funcify_moments(op, node=None, **kwargs):
    """Convert the sums of squared differences of each feature: one feature at a time."""

    def moments(A, B, G):
        return jax.lax.map(lambda column: (G * (column[0][:, None] - column[1]) ** 2).sum(), (A.T, B.T))

    return moments


@register_jax(KernelFeatures, KernelGram, KernelMatvec)
def jax_funcify_pairs(op, node=None, **kwargs):
    """Convert an Op of `kernel_ops`: evaluate K for a tile of rows and all columns, then reduce it, tile by tile."""
    if any("csr" in storage for storage in op.storage):
        jax_funcify_sparse()
    hs = [_product if h.is_product else _distances if h.is_squared_difference else _function(h) for h in op.hs]
    epilogue = _function(op.epilogue)
    channel, f = (0, None) if op.f is None else (op.f[0], _function(op.f[1]))

    def feature_sum(h, A, B, weights):
        return (
            h(A, B, *weights) if h in (_product, _distances) else h(A[:, None, :], B[None, :, :], *weights).sum(axis=2)
        )

    def pairs(*inputs):
        channels, u, v, theta, more = op.split(inputs)
        m, n = check_shapes(channels, u, v, more)

        def tile(As, us):
            sums = [feature_sum(h, A, B, w) for h, A, (_, B, w) in zip(hs, As, channels, strict=True)]
            K = epilogue(*sums, *(x[:, None] for x in us), *(x[None, :] for x in v), *theta)
            K = jnp.broadcast_to(K, sums[0].shape)
            if op.result == "matvec":
                return K @ more[0]
            if f is not None:
                _, B, weights = channels[channel]
                return (K[:, :, None] * f(As[channel][:, None, :], B[None, :, :], *weights)).sum(axis=1)
            return K

        As = [A for A, _, _ in channels]
        rows = max(1, min(m, _ROWS, _ENTRIES // max(1, n)))
        if m <= rows:
            return tile(As, u)
        count = -(-m // rows)
        cut = [jnp.pad(x, [(0, count * rows - m)] + [(0, 0)] * (x.ndim - 1)) for x in (*As, *u)]
        cut = [x.reshape(count, rows, *x.shape[1:]) for x in cut]
        tiles = jax.lax.map(lambda parts: tile(parts[: len(As)], parts[len(As) :]), cut)
        return tiles.reshape(count * rows, *tiles.shape[2:])[:m]

    return pairs


@register_jax(SplitParts)
def jax_funcify_split(op, node=None, **kwargs):
    """Convert a cut at the lengths of other arrays."""
    return lambda *inputs: tuple(op.cut(jnp, *inputs))


@register_jax(PolytopeProjection)
def jax_funcify_polytope(op, node=None, **kwargs):
    """Convert the projection onto a polytope: a call of its function on the host."""

    def host(*arrays):
        v, lower, upper, scale, M, r = (np.asarray(x) for x in arrays)
        return nearest_point(v, lower, upper, scale, M, r, op.n_equal, np.zeros(len(r)))

    def project(v, lower, upper, scale, M, r):
        shapes = jax.ShapeDtypeStruct(v.shape, v.dtype), jax.ShapeDtypeStruct(r.shape, r.dtype)
        return jax.pure_callback(host, shapes, v, lower, upper, scale, M, r)

    return project
