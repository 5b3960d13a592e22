"""Conversions to JAX of the Ops of `argmin`: the solver and the adjoint system are called on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from symsvm._lib.compat import register_jax
from symsvm.implicit.argmin import AdjointSolve, Argmin
from symsvm.implicit.support import Support

__all__ = ["jax_funcify_adjoint", "jax_funcify_argmin", "jax_funcify_support"]


def _on_host(solve):
    return lambda *arrays: solve(*(np.asarray(x) for x in arrays))


@register_jax(Argmin)
def jax_funcify_argmin(op, node=None, **kwargs):
    """Convert a call of the solver; the lengths of its results follow from the shapes of the inputs."""

    def argmin(*values):
        lengths = op.count([x.shape for x in values])
        shapes = tuple(jax.ShapeDtypeStruct((n,), jnp.float64) for n in lengths)
        return jax.pure_callback(_on_host(op.solve), shapes, *values)

    return argmin


@register_jax(AdjointSolve)
def jax_funcify_adjoint(op, node=None, **kwargs):
    """Convert a solution of the adjoint system."""

    def adjoint(*values):
        v, b = (jax.ShapeDtypeStruct(x.shape, jnp.float64) for x in (values[-4], values[-1]))
        return jax.pure_callback(_on_host(op.solve), (v, b, v, v, v), *values)

    return adjoint


@register_jax(Support)
def jax_funcify_support(op, node=None, **kwargs):
    """Convert to all indices: JAX cannot take a number of rows that depends on values."""
    return lambda x: jnp.arange(x.shape[0])
