"""The Ops of `kernel_ops` on JAX: a map over tiles of rows, which XLA compiles."""

import jax
import jax.numpy as jnp
from pytensor.graph.fg import FunctionGraph
from pytensor.sparse.basic import CSMProperties
from pytensor.tensor.elemwise import CAReduce

from symsvm._lib.compat import jax_function, on_jax, own_on_jax
from symsvm.compiler.ops.kernel_ops import KernelFeatures, KernelGram, KernelMatvec, check_shapes

__all__ = ["ROWS"]

# Rows of a tile, and the entries it may have.
ROWS, ENTRIES = 512, 2**24


def _function(scalar_function):
    """A scalar function over arrays that broadcast."""
    graph = FunctionGraph(scalar_function.inputs, [scalar_function.output], clone=True)
    compiled = jax_function(graph)
    return lambda *arrays: compiled(*arrays)[0]


@own_on_jax(CAReduce)
def jax_funcify_reduction(op, node, stock):
    """Let reductions keep their type: PyTensor's return the type they accumulate in, float64 for sums of float32."""
    reduce, dtype = stock(), node.outputs[0].dtype
    return lambda x: reduce(x).astype(dtype)


@on_jax(CSMProperties)
def jax_funcify_sparse(op=None, node=None, **kwargs):
    """Say what to do: PyTensor has no sparse matrices on JAX."""
    raise NotImplementedError("sparse points do not run on JAX: give dense ones, or take another mode.")


@on_jax(KernelFeatures, KernelGram, KernelMatvec)
def jax_funcify_pairs(op, node=None, **kwargs):
    """Evaluate K for a tile of rows and all columns, keep what is wanted of it, and go on to the next."""
    if any("csr" in kind for kind in op.kinds):
        jax_funcify_sparse()
    hs = [None if h.is_product else _function(h) for h in op.hs]
    epilogue = _function(op.epilogue)
    f = _function(op.f[1]) if op.want == "features" else None

    def feature_sum(h, A, B, weights):
        return A @ B.T if h is None else h(A[:, None, :], B[None, :, :], *weights).sum(axis=2)

    def pairs(*inputs):
        channels, u, v, theta, more = op.split(inputs)
        m, n = check_shapes(channels, u, v, more)

        def tile(As, us):
            sums = [feature_sum(h, A, B, w) for h, A, (_, B, w) in zip(hs, As, channels, strict=True)]
            K = epilogue(*sums, *(x[:, None] for x in us), *(x[None, :] for x in v), *theta)
            K = jnp.broadcast_to(K, sums[0].shape)
            if op.want == "matvec":
                return K @ more[0]
            if op.want == "features":
                _, B, weights = channels[op.f[0]]
                return (K[:, :, None] * f(As[op.f[0]][:, None, :], B[None, :, :], *weights)).sum(axis=1)
            return K

        As = [A for A, _, _ in channels]
        rows = max(1, min(m, ROWS, ENTRIES // max(1, n)))
        if m <= rows:
            return tile(As, u)
        count = -(-m // rows)
        cut = [jnp.pad(x, [(0, count * rows - m)] + [(0, 0)] * (x.ndim - 1)) for x in (*As, *u)]
        cut = [x.reshape(count, rows, *x.shape[1:]) for x in cut]
        tiles = jax.lax.map(lambda parts: tile(parts[: len(As)], parts[len(As) :]), cut)
        return tiles.reshape(count * rows, *tiles.shape[2:])[:m]

    return pairs
