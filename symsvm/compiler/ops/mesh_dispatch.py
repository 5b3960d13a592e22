"""Conversions of the Ops in `mesh_ops` to JAX: the body of a `jax.shard_map`, the program of one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from symsvm._lib.compat import register_jax
from symsvm.compiler.ops.jax_dispatch import jax_funcify_pairs
from symsvm.compiler.ops.mesh_ops import MeshGram, MeshPairs, MeshProduct

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["jax_funcify_mesh_gram", "jax_funcify_mesh_pairs", "jax_funcify_mesh_product"]


def _on_own_rows(op, pairs) -> Callable:
    """Return an Op over pairs as a function of its whole inputs that computes the rows of this device alone."""
    convert = jax_funcify_pairs(pairs)

    def compute(*inputs):
        channels, u, v, theta, more = pairs.split(inputs)
        m = channels[0][0].shape[0]
        if m == 0:
            return convert(*inputs), 0
        block = -(-m // op.n_devices)
        rows = jnp.minimum(jax.lax.axis_index(op.axes) * block + jnp.arange(block), m - 1)
        sides = [x for A, B, weights in channels for x in (A[rows], B, *weights)]
        return convert(*sides, *(x[rows] for x in u), *v, *theta, *more), m

    return compute


def _gather(op, rows, m):
    """All rows of the product, on each device."""
    return jax.lax.all_gather(rows, op.axes, tiled=True)[:m] if m else rows


@register_jax(MeshGram)
def jax_funcify_mesh_gram(op, node=None, **kwargs):
    """Convert the rows of a kernel matrix that stay on their device."""
    compute = _on_own_rows(op, op.gram)
    return lambda *inputs: compute(*inputs)[0]


@register_jax(MeshProduct)
def jax_funcify_mesh_product(op, node=None, **kwargs):
    """Convert the product with rows that are on their devices."""
    return lambda rows, q, like: _gather(op, rows @ q, like.shape[0])


@register_jax(MeshPairs)
def jax_funcify_mesh_pairs(op, node=None, **kwargs):
    """Convert a product in tiles: this device's rows, then those of all."""
    compute = _on_own_rows(op, op.pairs)
    return lambda *inputs: _gather(op, *compute(*inputs))
