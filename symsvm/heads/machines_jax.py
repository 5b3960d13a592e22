"""Conversions of `Machines` and `AdjointMachines` to JAX: the solver and the adjoint systems are called on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from symsvm._lib.compat import register_jax
from symsvm.heads.machines import AdjointMachines, Machines

__all__ = ["jax_funcify_adjoint_machines", "jax_funcify_machines"]


def _on_host(solve, shapes, values):
    """Call a function of NumPy arrays, whose results are float64 and have these shapes."""
    results = tuple(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes)
    return jax.pure_callback(lambda *arrays: solve(*map(np.asarray, arrays)), results, *values)


@register_jax(Machines)
def jax_funcify_machines(op, node=None, **kwargs):
    """Convert the solution of machines."""
    return lambda K, T, C: _on_host(op.solve, (T.shape, T.shape[:1]), (K, T, C))


@register_jax(AdjointMachines)
def jax_funcify_adjoint_machines(op, node=None, **kwargs):
    """Convert the solution of the adjoint systems."""
    return lambda *values: _on_host(op.solve, (values[3].shape, values[3].shape), values)
